"""What there is to look at of change_points: curves, delays, spread over series, numbers at the best threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from ..figures import Axis, Figure, Rule, Series, of_best, rising, shown
from ..standard_figures import (
    BIN,
    NUMBER,
    Wanted,
    by_threshold,
    histogram,
    histogram_of_shares,
    key_numbers_of,
    precision_recall,
    ratios_of_groups,
)
from .alarm_figures import alarm_figures, numbers_of, with_rates
from .results import best_on_other_data, best_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber

MOST_BINS = 40
NUMBERS = (
    Wanted("precision", "Precision", "predictions near a true point", "precision"),
    Wanted("recall", "Recall", "true points that are found", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by threshold where there are scores, delays of the matches, F1 over series.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    curve, points = rising(tables["change_points_curve"]), tables["change_points_operating_points"]
    what = "The ratios if every predicted change point that scores at least the threshold counts."
    x_title = "Threshold: score from which a prediction counts"
    yield by_threshold(curve, points, confidence, what=what, x_title=x_title)
    yield precision_recall(curve, points)
    best = of_best(best_rows(tables))
    yield ratios_of_groups(best, "n_true", confidence, "at its best threshold, or of all predictions without scores")
    yield _delays(tables.get("change_points_delays"))
    yield from alarm_figures(tables, confidence)
    series = tables.get("change_points_series")
    if series is not None:
        yield histogram_of_shares(
            series,
            "f1",
            name="f1_of_series",
            title="F1 of the series",
            what="F1 of a series, all its predictions counted",
            unit="series",
        )


def _delays(delays: pl.DataFrame | None) -> Figure | None:
    if delays is None or delays.is_empty():
        return None
    is_timed = delays.schema["position"].is_temporal()
    unit = "hours" if is_timed else "units of the positions"
    width = width_of_bins(delays["delay"].abs().max(), whole=bool((delays["delay"].floor() == delays["delay"]).all()))  # type: ignore[arg-type]  # a number
    centred = delays.with_columns(pl.col("delay") / width + 0.5)  # a bin has the delay 0 in its middle
    cells = centred["delay"].floor().cast(pl.Int64)
    frame = histogram(centred, "delay", 1.0, cells.min(), cells.max())  # type: ignore[arg-type]  # whole numbers
    return Figure(
        name="delays",
        title="Delays of the matched predictions",
        caption=(
            f"Number of matched predictions by how many {unit} they lie behind the true point; below 0 they lie before "
            f"it. Every bar is {width:g} wide."
        ),
        frame=frame.with_columns((pl.col(BIN) - 0.5) * width),
        x=Axis(BIN, f"Delay: prediction − true point, in {unit}", includes=(0.0,)),
        y=Axis("", "Number of matched predictions", "integer", includes=(0.0,)),
        series=(Series(NUMBER, "Matched predictions", "estimate", "bar"),),
        rules=(Rule("No delay", 0.0),),
    )


def width_of_bins(largest: float, *, whole: bool) -> float:
    """Return the width of bins for delays of both signs: 1, 2 or 5 times a power of ten, for at most `MOST_BINS` bins.

    Args:
        largest: The largest delay without its sign.
        whole: Whether bins narrower than 1 are of no use.
    """
    if largest == 0:
        return 1.0
    least = 2 * largest / (MOST_BINS - 1)
    power = math.floor(math.log10(least))
    steps = (step * 10.0**exponent for exponent in (power, power + 1) for step in (1, 2, 5))
    width = next(step for step in steps if step >= least)
    return max(width, 1.0) if whole else width


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the threshold with the best F1, of alarms the rate of false ones."""
    best = with_rates(best_on_other_data(tables), tables)
    return key_numbers_of(best, (*NUMBERS, *numbers_of(tables)))
