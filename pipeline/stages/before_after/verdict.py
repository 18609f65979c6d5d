"""The assumption of equal false positive rates in plain words, from the placebo test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.stages.before_after.units import chosen_threshold
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEVEL = 0.05
UNTESTED = {
    "no_window": "without a window, the time before the event has no near and no far part; give `window`",
    "unknown_pairs": (
        "no compared pair is known in the near part of the window before the event; give the times of events and "
        "articles, with numbers of compared articles that fit these times, or every compared pair as a row"
    ),
    "no_before": "no pair before the event was compared",
    "no_near": "no pair in the near part of the window before the event was compared",
    "no_far": "no pair in the far part of the window before the event was compared; give a longer `before`",
    "one_replicate": "only one event, or cluster, has compared pairs before the event",
    "few_matches": (
        "at no threshold are there enough matches before the event, which takes ten that are expected in its near part "
        "and ten in its far part"
    ),
    "budget": "thresholds × replicates are too many; set a lower number of `replicates` or of thresholds",
}


def warnings(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """What speaks against the assumption for the total, or why it was not tested."""
    joint = _joint(tables)
    if joint is not None and joint["p_value"] is None:
        yield f"the equal-FPR assumption was not tested by the placebo test: {UNTESTED[joint['undefined']]}"
    elif joint is not None and joint["p_value"] < LEVEL:
        yield (
            "the equal-FPR assumption is doubtful: before the event, where no match should be right, "
            f"{_comparison(tables, equal=False)} (placebo test over all thresholds, p = {joint['p_value']:.2g}); look "
            "at before_after_lags, at time zones and dates without an hour, and try a gap in the window"
        )
    if trend := _trend(tables):
        yield f"the equal-FPR assumption is doubtful: {trend}; look at before_after_lags and before_after_trend"


def verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """What the tests say of the assumption, for the summary; empty when it could not be tested."""
    joint, trend = _joint(tables), _trend(tables)
    said = []
    if joint is not None and joint["p_value"] is not None:
        equal = joint["p_value"] >= LEVEL
        found = (
            "The placebo test does not contradict the equal-FPR assumption"
            if equal
            else "The equal-FPR assumption is doubtful"
        )
        said.append(f"{found}: before the event, {_comparison(tables, equal=equal)} (p = {joint['p_value']:.2g}).")
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


def _joint(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any] | None:
    """The joint test of the total; None without a total or with `uncertainty = "none"`."""
    rows = tables["before_after_placebo"].filter(pl.col(GROUPING.name) == "all", pl.col(THRESHOLD).is_null())
    return None if rows.is_empty() else rows.row(0, named=True)


def _comparison(tables: Mapping[str, pl.DataFrame], *, equal: bool) -> str:
    """How the rates near and far compare, in numbers at the chosen threshold if they can be given there.

    Args:
        tables: The result tables.
        equal: Whether the joint test lets them be equal.
    """
    chosen = chosen_threshold(tables)
    rows = tables["before_after_placebo"].filter(pl.col(GROUPING.name) == "all")
    at_chosen = rows.clear() if chosen is None else rows.filter(pl.col(THRESHOLD) == chosen)
    names = ("log_rate_ratio", "log_rate_ratio_lower", "log_rate_ratio_upper")
    logs = at_chosen.select(names).row(0) if not at_chosen.is_empty() else (None,)
    if all(value is not None for value in logs):
        ratio, lower, upper = (math.exp(value) for value in logs)
        return f"matches are {ratio:.2f} ({lower:.2f}–{upper:.2f}) times as frequent near to it as far from it"
    differ = "do not differ by more than chance" if equal else "differ by more than chance"
    without = "no threshold was chosen" if chosen is None else f"at the chosen threshold, {chosen:g}, they are too few"
    return f"the rates of matches near to it and far from it {differ}, all thresholds together; {without} for a ratio"
