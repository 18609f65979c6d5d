"""What there is to look at of before_after: the estimates, what they rest on, and numbers at chosen thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.sweep import THRESHOLD
from ..figure_blocks import (
    GAP,
    caption,
    drawn,
    intervals,
    keys_of,
    rising,
    shares,
    shown,
    thinned,
    visible,
    with_limits,
)
from ..figures import Axis, Figure, Series
from ..standard_figures import by_threshold, precision_recall, ratios_of_groups
from ..standard_numbers import Wanted, key_numbers_of, on_other_data
from .figures_of_assumption import by_day, placebo, trend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..figures import KeyNumber

VISIBLE = 0.02  # a difference between two ratios that can be seen in a figure
X_TITLE = "Threshold: score from which a pair counts as a match"
NUMBERS = (
    Wanted("precision", "Precision", "kept matches that are right", "precision"),
    Wanted("recall", "Recall", "true matches that are kept", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """The estimates, what other methods and labels make of them, and what their assumption rests on.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    estimates, points = rising(tables["before_after_estimates"]), tables["before_after_operating_points"]
    what = (
        "Estimates, without labels, of the ratios if every pair that scores at least the threshold counts as a match. "
        "Precision falls below 0 where fewer matches follow an event than chance would give."
    )
    yield by_threshold(estimates, points, confidence, what=what, x_title=X_TITLE)
    yield precision_recall(estimates, points)
    best = _best_rows(points)
    if not best.is_empty():
        chosen_by = best["criterion"][0]
        yield ratios_of_groups(best, "m_after", confidence, f"at the threshold that {chosen_by} chose")
    yield from by_day(tables.get("before_after_lags"))
    yield placebo(tables.get("before_after_placebo"), confidence)
    yield trend(tables.get("before_after_trend"), confidence)
    for ratio in ("precision", "recall"):
        yield _gold(estimates, tables.get("before_after_gold"), ratio, confidence)
    yield _audit(tables.get("before_after_audit"), confidence)
    yield _adjusted(estimates, tables.get("before_after_adjusted"), confidence)
    for ratio in ("precision", "recall"):
        yield _uncorrected(estimates, ratio, confidence)
    yield _realised(estimates, confidence)


def _beside(
    table: pl.DataFrame, series: Sequence[Series], confidence: float, *, name: str, title: str, words: str
) -> Figure:
    """Lines of a ratio by threshold beside each other; the rows of the table lie as `rising` orders them."""
    series = tuple(visible(table, line) for line in series)
    y_title = "Recall" if "recall" in name else "Precision"
    return Figure(
        name=name,
        title=title,
        caption=caption(words, intervals(series, confidence), GAP),
        frame=drawn(thinned(table, THRESHOLD), THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=shares(y_title),
        series=series,
    )


def _gold(estimates: pl.DataFrame, gold: pl.DataFrame | None, ratio: str, confidence: float) -> Figure | None:
    if gold is None or gold.is_empty():
        return None
    keys = [*keys_of(estimates), THRESHOLD]
    of_matches = gold.filter(pl.col("level") == "match").select(*keys, pl.col(ratio).alias("gold"))
    table = estimates.join(of_matches, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return _beside(
        table,
        (with_limits(table, Series(ratio, "Estimate without labels", "estimate")), Series("gold", "Gold", "gold")),
        confidence,
        name=f"gold_{ratio}",
        title=f"Estimated {ratio} beside {ratio} on gold labels",
        words="Gold is counted on the matches of the coded articles, the estimate on the matches of all articles.",
    )


def _audit(audit: pl.DataFrame | None, confidence: float) -> Figure | None:
    if audit is None or audit.is_empty():
        return None
    series = (
        Series("precision", "Estimate without labels", "estimate"),
        with_limits(audit, Series("precision_combined", "Both combined", "precision")),
        with_limits(audit, Series("precision_audited", "Checked by people", "gold")),
    )
    words = "Precision of this data set: estimated, among the matches that people checked, and both combined."
    title = "Estimated precision beside checked matches"
    return _beside(rising(audit), series, confidence, name="audited_precision", title=title, words=words)


def _adjusted(estimates: pl.DataFrame, adjusted: pl.DataFrame | None, confidence: float) -> Figure | None:
    if adjusted is None or adjusted.is_empty():
        return None
    keys = [*keys_of(estimates), THRESHOLD]
    plain = estimates.select(*keys, "precision")
    table = adjusted.join(plain, on=keys, how="left", nulls_equal=True, maintain_order="left")
    series = (
        Series("precision", "Without adjustment", "neutral"),
        with_limits(table, Series("precision_adjusted", "Adjusted for strata", "precision")),
    )
    words = "Adjusted, the false positive rate is taken in every stratum apart, as the strata lie after the event."
    title = "Precision adjusted for strata"
    return _beside(rising(table), series, confidence, name="adjusted_precision", title=title, words=words)


def _uncorrected(estimates: pl.DataFrame, ratio: str, confidence: float) -> Figure | None:
    difference = (estimates[ratio] - estimates[f"{ratio}_uncorrected"]).abs().max()
    if not isinstance(difference, float) or difference < VISIBLE:
        return None
    series = (
        Series(f"{ratio}_uncorrected", "Uncorrected", "neutral"),
        with_limits(estimates, Series(ratio, "Corrected", "precision" if ratio == "precision" else "recall")),
    )
    words = (
        "Uncorrected, the false positives are those of all pairs after the event, although some of them are true "
        "matches; corrected, only of the pairs that are not."
    )
    title = f"{ratio.capitalize()} with and without correction"
    return _beside(estimates, series, confidence, name=f"uncorrected_{ratio}", title=title, words=words)


def _realised(estimates: pl.DataFrame, confidence: float) -> Figure | None:
    if not estimates["precision_realised_lower"].is_not_null().any():
        return None
    series = (
        with_limits(estimates, Series("precision", "Of new events", "estimate")),
        with_limits(estimates, Series("precision", "Of this data set", "precision"), "precision_realised"),
    )
    words = "One estimate with two intervals: the precision to expect of new events, and that of this data set."
    title = "Precision of this data set and of new events"
    return _beside(estimates, series, confidence, name="realised_precision", title=title, words=words)


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the first criterion, or at the recall reference if that chose none."""
    return key_numbers_of(on_other_data(_best_rows(tables["before_after_operating_points"])), NUMBERS)


def _best_rows(points: pl.DataFrame) -> pl.DataFrame:
    """The operating point of every group that the summary speaks of, groups with most matches first."""
    chosen = points.filter(pl.col("criterion") != "recall_reference")
    best = chosen.filter(pl.col("criterion") == chosen["criterion"][0]) if not chosen.is_empty() else points
    return best.sort("m_after", descending=True, nulls_last=True)
