"""Times of events and articles: counts around events without forming a pair, lags, and neighbouring days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...base.records import dataclass
from ..uncertainty.clusters import JackknifeSpread, serial_correlation
from ..uncertainty.jackknife import covariance, leave_one_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from ..uncertainty.clusters import SerialCorrelation
    from ..uncertainty.jackknife import Floats
    from .estimates import Sides


# Whether neighbouring days are alike in how often pairs match before their events.


_FEWEST = 2  # events, and days, that a spread needs


def spread_of(sides: Sequence[Sides]) -> JackknifeSpread:
    """The spread over the clusterings of the pairs, with what days in a row add to it.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    return JackknifeSpread(tuple(len(clustering.n_before) for clustering in sides), correlation_of_days(sides))


@np.errstate(divide="ignore", invalid="ignore")
def correlation_of_days(sides: Sequence[Sides]) -> SerialCorrelation | None:
    """The serial correlation of the false positive rate over days; None where there is none, or it cannot be known.

    It is that at the threshold whose matches before the event tell most: their number times the share of compared
    pairs that do not match is highest there.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    in_time = sides[1].in_time if len(sides) > 1 else None
    matches, pairs = sides[0].m_before.sum(axis=0), float(sides[0].n_before.sum())
    if in_time is None or not matches.any() or min(len(clustering.n_before) for clustering in sides[:2]) < _FEWEST:
        return None
    telling = int(np.argmax(matches * (1 - matches / pairs)))
    of_events, of_days = (_rates(clustering, telling) for clustering in sides[:2])
    rate = float(matches[telling]) / pairs
    of_rows = rate * (1 - rate) / pairs
    return serial_correlation(of_days, in_time, of_first=float(covariance(of_events)), of_rows=of_rows)


def _rates(sides: Sides, threshold: int) -> Floats:
    """The false positive rate at a threshold without each replicate in turn."""
    return np.asarray(leave_one_out(sides.m_before[:, threshold]) / leave_one_out(sides.n_before))


# Numbers of compared articles around events, counted from two timelines without forming any pair.


MICROSECONDS_PER_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Span:
    """A window around an event in whole microseconds: [before_start, before_end) and [after_start, after_end].

    Attributes:
        before_start: Start of the part before the event, inclusive; negative.
        before_end: End of the part before the event, exclusive.
        near_start: Start of the near part of the time before the event, inclusive.
        after_start: Start of the part after the event, inclusive.
        after_end: End of the part after the event.
        closed: Whether `after_end` itself belongs to the window.
    """

    before_start: int
    before_end: int
    near_start: int
    after_start: int
    after_end: int
    closed: bool


def counts_around(events: NDArray[np.int64], articles: NDArray[np.int64], span: Span) -> dict[str, NDArray[np.int64]]:
    """Number of articles before and after every event, inside its window.

    With L(x) the number of articles earlier than x and U(x) the number not later than x,
    n_before = L(e + before_end) - L(e + before_start) and n_after = U(e + after_end) - L(e + after_start); in a
    half-open window U(e + after_end) is replaced by L(e + after_end). Both sides are sorted once, which makes it
    O((E + A) log A).

    Args:
        events: Timestamps of the events in microseconds, shape (E,), any order.
        articles: Timestamps of the articles in microseconds, shape (A,), ascending.
        span: The window.

    Returns:
        `n_before`, `n_after` and `n_near` (the near part of the time before), each of shape (E,), in the order of
        `events`.
    """
    order = np.argsort(events, kind="stable")
    timestamps = events[order]

    def rank(offset: int, *, inclusive: bool = False) -> NDArray[np.int64]:
        return np.searchsorted(articles, timestamps + offset, side="right" if inclusive else "left")

    until_event = rank(span.before_end)
    ordered = {
        "n_before": until_event - rank(span.before_start),
        "n_after": rank(span.after_end, inclusive=span.closed) - rank(span.after_start),
        "n_near": until_event - rank(span.near_start),
    }
    counts = {name: np.empty(len(events), dtype=np.int64) for name in ordered}
    for name, values in ordered.items():
        counts[name][order] = values
    return counts


def counts_between(
    events: NDArray[np.int64], articles: NDArray[np.int64], edges: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Numbers of articles in adjacent intervals around every event, one interval [edge, next edge) at a time.

    Args:
        events: Timestamps of the events in microseconds, shape (E,), any order.
        articles: Timestamps of the articles in microseconds, shape (A,), ascending.
        edges: Ascending offsets from the event, in microseconds.
    """
    earlier: NDArray[np.int64] | None = None
    for edge in edges:
        rank = np.searchsorted(articles, events + edge)
        if earlier is not None:
            yield rank - earlier
        earlier = rank


# Whether the lags that a user supplies agree with the difference of the times, and if not, why.


_RARE = 0.01  # share of rows
_NEARLY_ALL = 0.95  # share of rows
_MOST_SHIFT = 26  # hours: time zones lie at most 26 hours apart
_MINUTE = 1 / 60
_SINGLE_PRECISION = 1e-6  # relative
_STEPS = (1.0, 0.5, 0.25, 0.1)  # of an hour or a day: what lags are rounded to
_PER_HOUR = {"hours": 1.0, "days": 1 / 24, "minutes": 60.0, "seconds": 3600.0, "milliseconds": 3_600_000.0}


@dataclass(frozen=True)
class Disagreement:
    """How user-supplied lags differ from those that the times give.

    Attributes:
        n_rows: Number of rows compared.
        n_apart: Number of rows in which the lag and the times differ.
        cause: The likeliest cause, in words.
        remedy: What to do about it, with `{column}` in place of the name of the lag column; may be empty.
        event: Event of the first row that differs.
        lag: Lag of that row in hours, as the user supplied it.
        from_times: Lag of that row in hours, according to the times.
    """

    n_rows: int
    n_apart: int
    cause: str
    remedy: str
    event: object
    lag: float
    from_times: float

    @property
    def is_rare(self) -> bool:
        """Whether so few rows differ that the lag column itself is not in doubt."""
        return self.n_apart <= _RARE * self.n_rows


def lag_agreement(sample: pl.DataFrame, *, in_days: bool, dates: bool) -> Disagreement | None:
    """Compare lags with times; returns None if they agree in every row.

    Lags that are all whole units, halves, quarters or tenths may have been rounded in any way, so they agree with
    every number less than one such step away. Other lags agree if they differ by at most a minute (for days: a quarter
    of an hour) and the rounding error of single precision.

    Args:
        sample: Columns `event_id`, `given` and `from_times`, both in hours, finite and not NULL.
        in_days: Whether the lag is in days.
        dates: Whether one of the times is a date, which may be off by a day.
    """
    lags, times = sample["given"].to_numpy(), sample["from_times"].to_numpy()
    unit = 24.0 if in_days else 1.0
    slack = max(unit * _step(lags / unit), _MINUTE * (15 if in_days else 1)) + (24.0 if dates else 0.0)
    apart = ~_agree(lags, times, slack)
    if not apart.any():
        return None
    cause, remedy = _cause(lags[apart], times[apart], slack, in_days=in_days)
    first = int(np.flatnonzero(apart)[0])
    return Disagreement(
        len(lags), int(apart.sum()), cause, remedy, sample["event_id"][first], float(lags[first]), float(times[first])
    )


def _step(lags: NDArray[np.float64]) -> float:
    """The largest step that all lags are multiples of, up to single precision; 0 if there is none."""
    for step in _STEPS:
        multiples = lags / step
        if np.all(np.abs(multiples - np.round(multiples)) <= _SINGLE_PRECISION * np.maximum(np.abs(multiples), 1.0)):
            return step
    return 0.0


def _agree(lags: NDArray[np.float64], times: NDArray[np.float64], slack: float) -> NDArray[np.bool_]:
    agree: NDArray[np.bool_] = np.abs(lags - times) <= slack + _SINGLE_PRECISION * np.abs(times)
    return agree


def _cause(lags: NDArray[np.float64], times: NDArray[np.float64], slack: float, *, in_days: bool) -> tuple[str, str]:
    """The likeliest cause and its remedy: another sign, another unit, or clocks that are whole hours apart."""
    for name, per_hour in _PER_HOUR.items():
        scale = per_hour * (24 if in_days else 1)
        for factor in (-scale, scale):
            if factor != 1.0 and np.mean(_agree(lags / factor, times, slack / min(scale, 1.0))) >= _NEARLY_ALL:
                return _misread(name, factor, in_days=in_days)
    shifts = lags - times
    hours = np.unique(np.round(shifts))
    if np.mean(np.abs(shifts - np.round(shifts)) <= _MINUTE) >= _NEARLY_ALL and np.abs(hours).max() <= _MOST_SHIFT:
        span = f"{hours[0]:+g}" if len(hours) == 1 else f"{hours[0]:+g} to {hours[-1]:+g}"
        return (
            f"they differ by whole hours ({span}), as if one time were in local time",
            'Declare the zone of the input whose times are local: timezone = "Europe/Amsterdam".',
        )
    return "no single sign, unit or shift explains it", ""


def _misread(name: str, factor: float, *, in_days: bool) -> tuple[str, str]:
    negative, scale = factor < 0, abs(factor)
    causes = [*(["its sign is the other way round"] if negative else []), *([f"it is in {name}"] if scale != 1 else [])]
    column = "-{column}" if negative else "{column}"
    sql = column if scale == 1 else f"{column} / {scale:.0f}" if scale > 1 else f"{column} * {1 / scale:.0f}"
    unit = "lag_days" if in_days else "lag_hours"
    return " and ".join(causes), f"columns = {{{{ {unit} = {{{{ sql = '{sql}' }}}} }}}} reads it right."
