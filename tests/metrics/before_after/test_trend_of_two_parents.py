"""The trend over two parents: its t statistic written out over cells, and days that differ for all events alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.before_after.assumption import CrossedMatches, Trend, trend

EVENTS, LAGS, PAIRS = 60, 7, 20  # compared pairs of every event on every day before it
MIDDLES = np.arange(-LAGS, 0) + 0.5


class Archive:
    """Events on few days, whose days before them differ in how often everything matches; no trend but by chance."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        happened = rng.choice([8, 9, 10, 14, 15, 20], EVENTS)
        self.day = happened[:, None] + np.arange(-LAGS, 0)  # calendar day of every event and lag
        rates = 0.1 * rng.lognormal(-0.245, 0.7, 24)
        self.matches = rng.binomial(PAIRS, rates[self.day]).astype(np.float64)

    def trend(self, *, crossed: bool) -> Trend:
        """The trend with one parent or with two."""
        _, second = np.unique(self.day, return_inverse=True)
        cells = CrossedMatches(
            self.matches.reshape(-1, 1),
            (self.matches * MIDDLES).reshape(-1, 1),
            np.repeat(np.arange(EVENTS), LAGS),
            second.ravel(),
            int(second.max()) + 1,
        )
        return trend(
            self.matches.sum(axis=1)[:, None],
            (self.matches @ MIDDLES)[:, None],
            np.full((EVENTS, LAGS), PAIRS),
            MIDDLES.astype(np.float64),
            confidence=0.95,
            crossed=cells if crossed else None,
        )

    def p_value(self) -> float:
        """With equal numbers of pairs the mean day under no trend is that of the window."""
        scores = self.matches * (MIDDLES - MIDDLES.mean())
        of_days = np.bincount(self.day.ravel(), scores.ravel())[np.unique(self.day)]
        groups = (scores.sum(axis=1), of_days, scores[self.matches > 0])
        # a cell on the middle day scores 0 and tells nothing; nor does a day of such cells alone
        groups = (groups[0], *(sums[sums != 0] for sums in groups[1:]))
        events, days, cells = (sums.var(ddof=1) * len(sums) for sums in groups)
        variance = max(events + days - cells, cells)
        degrees = min((self.matches.sum(axis=1) > 0).sum(), len(np.unique(self.day[self.matches > 0]))) - 1
        return float(2 * stats.t.sf(abs(scores.sum()) / np.sqrt(variance), degrees))


@pytest.mark.parametrize("seed", range(8))
def test_the_variance_of_the_scores_is_over_events_and_days_less_cells(seed: int) -> None:
    archive = Archive(seed)
    actual = archive.trend(crossed=True)
    assert actual.p_value[0] == pytest.approx(archive.p_value(), rel=1e-9)
    assert actual.slope[0] == pytest.approx(archive.trend(crossed=False).slope[0], abs=1e-12)
    holds_no_trend = actual.lower[0] <= 0 <= actual.upper[0]
    assert holds_no_trend != (actual.p_value[0] < 0.05)


@pytest.mark.wide
def test_days_that_differ_make_no_trend() -> None:
    p_values = np.array([[Archive(100 + n).trend(crossed=way).p_value[0] for way in (False, True)] for n in range(60)])
    one_parent, both = (p_values < 0.05).mean(axis=0)
    assert one_parent > 0.4
    assert both < 0.2
