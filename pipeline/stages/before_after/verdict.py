"""The assumption of equal false positive rates in plain words, from the placebo test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.sweep import THRESHOLD
from pipeline.schemas import GROUPING
from pipeline.stages.before_after.units import chosen_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEVEL = 0.05


def doubts(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """What speaks against the assumption for the total, or that it was not tested."""
    joint, ratio = _evidence(tables)
    off = (tables["before_after_estimates"]["undefined_interval"] == "none").all()
    if joint is None and not off:
        yield (
            "the equal-FPR assumption was not tested: the placebo test needs a window, and the times of events and "
            "articles or every compared pair as a row"
        )
    elif joint is not None and joint < LEVEL:
        yield (
            f"the equal-FPR assumption is doubtful: before the event, where no match should be right, matches are "
            f"{ratio} (placebo test over all thresholds, p = {joint:.2g}); look at before_after_lags, at time zones "
            "and dates without an hour, and try a gap in the window"
        )
    if trend := _trend(tables):
        yield f"the equal-FPR assumption is doubtful: {trend}; look at before_after_lags and before_after_trend"


def verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """What the tests say of the assumption, for the summary; empty when it could not be tested."""
    (joint, ratio), trend = _evidence(tables), _trend(tables)
    said = []
    if joint is not None and joint < LEVEL:
        said.append(f"The equal-FPR assumption is doubtful: before the event, matches are {ratio} (p = {joint:.2g}).")
    elif joint is not None:
        said.append(
            f"The placebo test does not contradict the equal-FPR assumption: matches are {ratio} (p = {joint:.2g})."
        )
    if trend:
        said.append(f"{trend[0].upper()}{trend[1:]}.")
    return " ".join(said)


def _trend(tables: Mapping[str, pl.DataFrame]) -> str:
    """How the match rate of the total changes before the event, if it does; empty where that is not known.

    Of several lag thresholds the one with the smallest p-value counts, times their number (Bonferroni).
    """
    rows = tables["before_after_trend"].filter(pl.col(GROUPING.name) == "all", pl.col("p_value").is_not_null())
    if rows.is_empty():
        return ""
    row = rows.sort("p_value", THRESHOLD).row(0, named=True)
    p_value = min(row["p_value"] * rows.height, 1.0)
    if p_value >= LEVEL:
        return ""
    if row["slope"] is None:
        return f"before the event, matches of {row[THRESHOLD]:g} or more lie on its first or last day only"
    low, high = (
        "?" if row[f"slope_{side}"] is None else f"{_percent(row[f'slope_{side}'])}" for side in ("lower", "upper")
    )
    return (
        f"over the days before the event, the rate of matches of {row[THRESHOLD]:g} or more changes by "
        f"{_percent(row['slope'])} a day ({low} to {high}, p = {p_value:.2g})"
    )


def _percent(slope: float) -> str:
    return f"{math.expm1(slope):+.0%}"


def _evidence(tables: Mapping[str, pl.DataFrame]) -> tuple[float | None, str]:
    """p-value of the joint test, and how the rates near and far compare at the chosen threshold."""
    rows = tables["before_after_placebo"].filter(pl.col(GROUPING.name) == "all")
    joint = rows.filter(pl.col(THRESHOLD).is_null())
    if joint.is_empty() or joint["p_value"][0] is None:
        return None, ""
    chosen = chosen_threshold(tables)
    at_chosen = rows.clear() if chosen is None else rows.filter(pl.col(THRESHOLD) == chosen)
    names = ("log_rate_ratio", "log_rate_ratio_lower", "log_rate_ratio_upper")
    logs = at_chosen.select(names).row(0) if not at_chosen.is_empty() else (None,)
    if any(value is None for value in logs):
        return float(joint["p_value"][0]), "too few to compare near to it with far from it at the chosen threshold"
    ratio, lower, upper = (math.exp(value) for value in logs)
    words = f"{ratio:.2f} ({lower:.2f}–{upper:.2f}) times as frequent near to it as far from it"
    return float(joint["p_value"][0]), words
