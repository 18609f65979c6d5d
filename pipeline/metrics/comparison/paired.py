"""Two matchers on the same events, without gold labels: differences of precision, recall and F1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...records import dataclass
from ...tables.columns import RATIOS
from ..uncertainty.jackknife import leave_one_out
from .paired_tests import sign_flip_p_value
from .pooled import Errors, jackknife_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")


@dataclass(frozen=True)
class PairedRatio:
    """One ratio of two matchers.

    Attributes:
        value_a: Of the first, over all events; nan where undefined.
        value_b: The same of the other.
        jackknifed_a: The first without each event in turn, shape (E,).
        jackknifed_b: The same of the other.
        errors: The standard error of the difference and its degrees of freedom.
    """

    value_a: float
    value_b: float
    jackknifed_a: Floats
    jackknifed_b: Floats
    errors: Errors

    @property
    def difference(self) -> float:
        """The first less the other."""
        return self.value_a - self.value_b

    @property
    def jackknifed(self) -> Floats:
        """The difference without each event in turn, shape (E,)."""
        return self.jackknifed_a - self.jackknifed_b

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval of the difference, by Student's t."""
        return float(self.errors.half_width(confidence)[0])

    def t_p_value(self) -> float:
        """Two-sided p-value of equal ratios, by Student's t; agrees with the interval."""
        return float(self.errors.p_values(np.array([self.difference]))[0])

    def flip_p_value(self, flips: int, seed: int) -> float:
        """Two-sided p-value that what each event adds to the difference is symmetric about 0, by random signs.

        An event adds the difference itself less its deviation in the jackknife: the pseudo-value without the correction
        of bias (E - 1)(difference - mean), which is as large as the difference itself where a denominator is small or
        F1 has its kink, and let the test reject a true null hypothesis in up to 19 of 100 cases. As a flip changes no
        square, it orders the flips as the studentised sum would (Efron & Tibshirani 1993, chapters 11 and 15).
        """
        deviations = self.jackknifed - self.jackknifed.mean()
        contributions = self.difference - (len(deviations) - 1) * deviations
        factor = float(np.max(self.errors.factor))
        return sign_flip_p_value(contributions, resamples=flips, seed=seed, factor=factor)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def paired_ratios(units_a: pl.DataFrame, units_b: pl.DataFrame, *, in_time: bool = False) -> dict[str, PairedRatio]:
    """Precision, recall and F1 of two matchers over the same events; arguments and errors as for `compare_matchers`.

    `in_time` tells that events follow each other in time, in the order of their ids.
    """
    joined = units_a.select("event_id", *EVENT_COUNTS).join(
        units_b.select("event_id", *EVENT_COUNTS), on="event_id", suffix="_b"
    )
    if not joined.height == units_a.height == units_b.height or joined.height < 2:  # noqa: PLR2004 - a spread needs two
        message = f"the matchers share {joined.height:,} of {units_a.height:,} and {units_b.height:,} events"
        raise ValueError(message)
    joined = joined.sort("event_id")
    counts = [np.column_stack([joined[f"{name}{side}"].to_numpy() for name in EVENT_COUNTS]) for side in ("", "_b")]
    of_a, of_b = (ratios_of_matcher(table) for table in counts)
    ratios = {}
    for name in RATIOS:
        (value_a, jackknifed_a), (value_b, jackknifed_b) = of_a[name], of_b[name]
        errors = jackknife_errors((jackknifed_a - jackknifed_b)[:, None], joined.height, in_time=in_time)
        ratios[name] = PairedRatio(value_a, value_b, jackknifed_a, jackknifed_b, errors)
    return ratios


def ratios_of_matcher(counts: NDArray[Any]) -> dict[str, tuple[float, Floats]]:
    """Precision, recall and F1 of one matcher, and the same without each event in turn, shape (E,); nan if undefined.

    Args:
        counts: In the order of `EVENT_COUNTS`, shape (E, 6), two events or more.
    """
    totals, jackknifed = _values(counts.sum(axis=0).astype(np.float64)), _values(leave_one_out(counts))
    return {name: (float(totals[name]), jackknifed[name]) for name in RATIOS}


def compare_matchers(
    units_a: pl.DataFrame, units_b: pl.DataFrame, *, confidence: float = 0.95, flips: int = 9999, seed: int = 0
) -> pl.DataFrame:
    """Differences between two matchers, each at its own threshold, over the same events.

    Both matchers process the same events, so that the difficulty of an event is common to both and cancels in the
    difference. The intervals come from the delete-one jackknife of the difference itself, with Student's t and the
    degrees of freedom of Satterthwaite. The test flips the signs of what each event adds to the difference at random:
    p = (1 + flips at least as extreme) / (1 + flips).

    Args:
        units_a: Table `before_after_events` of one stage.
        units_b: The same table of another stage, with the same events.
        confidence: Confidence of the intervals.
        flips: Number of random flips.
        seed: The same seed gives the same p-values.

    Returns:
        One row for each of precision, recall and F1: `metric`, `n_events`, `value_a`, `value_b`, `difference` (a - b),
        `difference_lower`, `difference_upper`, `p_value`. NULL where a value is undefined; recall is not clipped.

    Raises:
        ValueError: the events of the two tables differ, or there are fewer than two.
    """
    rows = []
    for name, ratio in paired_ratios(units_a, units_b).items():
        half = ratio.half_width(confidence)
        rows.append(
            {
                "metric": name,
                "n_events": len(ratio.jackknifed),
                "value_a": ratio.value_a,
                "value_b": ratio.value_b,
                "difference": ratio.difference,
                "difference_lower": ratio.difference - half,
                "difference_upper": ratio.difference + half,
                "p_value": ratio.flip_p_value(flips, seed),
            }
        )
    return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))


def _values(totals: Floats) -> dict[str, Floats]:
    """Precision, recall and F1 from totals whose last axis holds the counts in the order of `EVENT_COUNTS`.

    They are corrected for the positives among the pairs after the event (`metrics.before_after.estimates`), with a
    recall of 1 at the reference.
    """
    n_before, n_after, m_before, m_after, before_reference, after_reference = np.moveaxis(totals, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the positives, A = TP(reference) / (1 - FPR(reference))
        at_reference = after_reference - before_reference / n_before * n_after
        gap = 1 - before_reference / n_before
        positives = np.where((at_reference > 0) & (gap > 0), at_reference / gap, np.nan)
        positives = np.where(positives <= n_after, positives, np.nan)
        tp = m_after - m_before / n_before * (n_after - positives)
        return {
            "precision": np.asarray(tp / np.where(m_after > 0, m_after, np.nan)),
            "recall": np.asarray(tp / positives),
            "f1": np.asarray(2 * tp / (m_after + np.maximum(tp, positives))),
        }
