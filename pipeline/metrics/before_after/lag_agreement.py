"""Whether lags that are given agree with the times they should be the difference of, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

RARE = 0.01
MOST_OF = 0.95
MOST_SHIFT = 26  # hours: zones lie at most 26 hours apart
_MINUTE = 1 / 60
_SINGLE = 1e-6
_STEPS = (1.0, 0.5, 0.25, 0.1)  # of an hour or a day: what lags are rounded to
_PER_HOUR = {"hours": 1.0, "days": 1 / 24, "minutes": 60.0, "seconds": 3600.0, "milliseconds": 3_600_000.0}


@dataclass(frozen=True)
class Disagreement:
    """What is wrong with given lags.

    Attributes:
        n_rows: Rows compared.
        n_apart: Rows in which lag and times differ.
        cause: The likeliest cause, in words.
        remedy: What to do about it, with `{column}` for the name of their column; may be empty.
        event: Event of the first row that differs.
        given: Its lag in hours, as given.
        from_times: Its lag in hours, from the times.
    """

    n_rows: int
    n_apart: int
    cause: str
    remedy: str
    event: object
    given: float
    from_times: float

    @property
    def is_rare(self) -> bool:
        """Whether so few rows differ that the lag as a whole is not in doubt."""
        return self.n_apart <= RARE * self.n_rows


def lag_agreement(sample: pl.DataFrame, *, in_days: bool, dates: bool) -> Disagreement | None:
    """Compare lags with times; None when they agree in every row.

    Lags that are all whole units, halves, quarters or tenths may be rounded in any way, so they agree with anything
    less than one such step away; other numbers agree within a minute (days: a quarter of an hour) and what single
    precision loses.

    Args:
        sample: Columns `event_id`, `given` and `from_times`, both in hours, finite and not NULL.
        in_days: Whether the lag is given in days.
        dates: Whether a time is a date, which may be off by a day.
    """
    given, times = sample["given"].to_numpy(), sample["from_times"].to_numpy()
    unit = 24.0 if in_days else 1.0
    slack = max(unit * _step(given / unit), _MINUTE * (15 if in_days else 1)) + (24.0 if dates else 0.0)
    apart = ~_agree(given, times, slack)
    if not apart.any():
        return None
    cause, remedy = _cause(given[apart], times[apart], slack, in_days=in_days)
    first = int(np.flatnonzero(apart)[0])
    return Disagreement(
        len(given), int(apart.sum()), cause, remedy, sample["event_id"][first], float(given[first]), float(times[first])
    )


def _step(lags: NDArray[np.float64]) -> float:
    """The largest step of which all lags are multiples, up to what single precision loses; 0 where there is none."""
    for step in _STEPS:
        parts = lags / step
        if np.all(np.abs(parts - np.round(parts)) <= _SINGLE * np.maximum(np.abs(parts), 1.0)):
            return step
    return 0.0


def _agree(given: NDArray[np.float64], times: NDArray[np.float64], slack: float) -> NDArray[np.bool_]:
    agree: NDArray[np.bool_] = np.abs(given - times) <= slack + _SINGLE * np.abs(times)
    return agree


def _cause(given: NDArray[np.float64], times: NDArray[np.float64], slack: float, *, in_days: bool) -> tuple[str, str]:
    """The likeliest cause and its remedy: another sign, another unit, or clocks that differ by whole hours."""
    for name, per_hour in _PER_HOUR.items():
        scale = per_hour * (24 if in_days else 1)
        for factor in (-scale, scale):
            if factor != 1.0 and np.mean(_agree(given / factor, times, slack / min(scale, 1.0))) >= MOST_OF:
                return _misread(name, factor, in_days=in_days)
    shifts = given - times
    hours = np.unique(np.round(shifts))
    if np.mean(np.abs(shifts - np.round(shifts)) <= _MINUTE) >= MOST_OF and np.abs(hours).max() <= MOST_SHIFT:
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
