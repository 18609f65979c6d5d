"""The assumption of equal false positive rates, as the placebo test and the trend judge it: marks, and plain words.

A group fails if one of its tests rejects at `LEVEL` over the number of them (Bonferroni), of several lag thresholds the
smallest p-value times their number. The total is judged by itself. Of the groups of a grouping at most one in twenty of
those that fail does so by chance (Benjamini & Hochberg 1995), and none at all in nineteen of twenty runs where the
assumption holds for all of them. A group that has too few matches for a test shares the verdict on the total.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.comparison.significance import adjust_p_values
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, Quality
from ...tables.columns import by_group
from ...tables.groupings import TOTAL, grouping_columns
from ...tables.schemas import GROUPING
from ...tables.sweep import THRESHOLD
from .units import chosen_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EQUAL_RATES = "whether wrong matches are as frequent before the event as after it (equal-FPR assumption)"
LEVEL = 0.05
SURE = 0.002  # no flip of signs is as extreme, in either of two tests: that small a p-value needs no adjustment
FAILED: Quality = "assumption_failed"
PLACEBO, TREND = "before_after_placebo", "before_after_trend"
RESTING = ("before_after_estimates", "before_after_operating_points", "before_after_adjusted")
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
NEAR_IS_HIGHER = (
    "early reports, time zones that are off and dates without an hour raise the rate shortly before the event: mend "
    "the times, or leave out the last hours before it with a `gap` in the window"
)
FAR_IS_HIGHER = (
    "the rate long before the event is not that around it: give a shorter `before` (a gap does not help), such as the "
    "days in before_after_lags over which the rate stays the same"
)


def with_marks(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of the stage, with `FAILED` on every interval of a group whose tests contradict the assumption.

    Intervals of the tests themselves and of labels do not rest on it, and those of an audit allow for doubt in it.
    """
    failed = failed_groups(tables)
    return {name: _marked(table, failed) if name in RESTING else table for name, table in tables.items()}


def _marked(table: pl.DataFrame, failed: pl.DataFrame) -> pl.DataFrame:
    labels = failed.with_columns(pl.lit(FAILED).alias("_mark"))
    keys = failed.columns
    joined = table.join(labels, on=keys, how="left", nulls_equal=True, maintain_order="left")
    is_marked = pl.col("_mark").is_not_null() & pl.col(INTERVAL_QUALITY).is_not_null()
    mark = pl.when(is_marked).then("_mark").otherwise(INTERVAL_QUALITY).alias(INTERVAL_QUALITY)
    return joined.with_columns(mark).drop("_mark")


def failed_groups(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The groups for which the assumption is contradicted: one row each, of their keys.

    Args:
        tables: The result tables, of which the estimates tell the groups; tests that were not made may be absent.
    """
    estimates = tables["before_after_estimates"]
    keys = [GROUPING.name, *grouping_columns(estimates.columns)]
    groups = estimates.select(keys).unique(maintain_order=True)
    tested = groups.join(_p_values(tables, keys), on=keys, how="left", nulls_equal=True, maintain_order="left")
    total = tested.filter(pl.col(GROUPING.name) == TOTAL)["p_value"].to_list()
    of_total = bool(total and total[0] is not None and total[0] < LEVEL)
    frames = [groups.clear()]
    for frame in by_group(tested, [GROUPING.name]).values():
        known = frame.filter(pl.col("p_value").is_not_null())
        adjusted = pl.Series(adjust_p_values(known["p_value"].to_list(), "bh"), dtype=pl.Float64)
        frames.append(known.filter((adjusted < LEVEL) | (known["p_value"] <= SURE)).select(keys))
        frames.append(frame.filter(pl.col("p_value").is_null() & of_total).select(keys))
    return pl.concat(frames)


def _p_values(tables: Mapping[str, pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """The p-value of each group that was tested, over all of its tests."""
    tests = [groups.select(*keys, "p_value") for groups in _tests(tables, keys) if not groups.is_empty()]
    if not tests:
        of_none = tables["before_after_estimates"].select(keys).clear()
        return of_none.with_columns(pl.lit(None, dtype=pl.Float64).alias("p_value"))
    return _smallest(pl.concat(tests), keys)


def _tests(tables: Mapping[str, pl.DataFrame], keys: list[str]) -> Iterator[pl.DataFrame]:
    """The p-values of groups by the joint placebo test, then by the trend at all lag thresholds."""
    if PLACEBO in tables:
        yield tables[PLACEBO].filter(pl.col(THRESHOLD).is_null(), pl.col("p_value").is_not_null())
    if TREND in tables:
        yield _smallest(tables[TREND].filter(pl.col("p_value").is_not_null()), keys)


def _smallest(tests: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The smallest p-value of each group times the number of its tests (Bonferroni)."""
    smallest = (pl.col("p_value").min() * pl.len()).clip(upper_bound=1.0)
    return tests.group_by(keys, maintain_order=True).agg(smallest)


def warnings(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """What speaks against the assumption, or why it was not tested for the total."""
    joint, level = _joint(tables), _level(tables)
    if joint is not None and joint["p_value"] is None:
        yield f"it was not tested {EQUAL_RATES}, as these numbers assume: {UNTESTED[joint['undefined']]}"
    elif joint is not None and joint["p_value"] < level:
        yield (
            f"it is doubtful {EQUAL_RATES}: before the event, where no match should be right, "
            f"{_comparison(tables, equal=False)} (placebo test over all thresholds, p = {joint['p_value']:.2g}), so "
            f"that precision, recall and F1 may be far off (assumption_failed); {_advice(_log_ratio(tables))}"
        )
    if trend := _trend(tables):
        slope = _steepest(tables)["slope"]
        yield f"it is doubtful {EQUAL_RATES} (assumption_failed): {trend}; {_advice(slope)}"
    failed = failed_groups(tables)
    apart = failed.filter(pl.col(GROUPING.name) != TOTAL).height
    if apart and apart == failed.height:  # a total that fails has been told of
        every = tables["before_after_estimates"].select(failed.columns).unique()
        groups = every.filter(pl.col(GROUPING.name) != TOTAL).height
        total = ", though not in the total" if groups < every.height else ""
        yield (
            f"it is doubtful {EQUAL_RATES} in {apart:,} of {groups:,} groups{total}: their numbers are "
            "marked assumption_failed, see before_after_placebo"
        )


def verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """What the tests say of the assumption, for the summary; empty when it could not be tested."""
    joint, trend, level = _joint(tables), _trend(tables), _level(tables)
    if joint is not None and joint["p_value"] is not None:
        if joint["p_value"] < level or trend:
            return "These numbers may be far off: see the warnings."
        return (
            "The placebo test does not contradict the equal-FPR assumption: before the event, "
            f"{_comparison(tables, equal=True)} (p = {joint['p_value']:.2g})."
        )
    return "These numbers may be far off: see the warnings." if trend else ""


def contradicts(tables: Mapping[str, pl.DataFrame]) -> bool:
    """Whether the placebo test of the total contradicts the assumption."""
    joint = _joint(tables)
    return joint is not None and joint["p_value"] is not None and joint["p_value"] < _level(tables)


def _level(tables: Mapping[str, pl.DataFrame]) -> float:
    """The level of each test of the total, so that all of them together have `LEVEL`."""
    made = [test.filter(pl.col(GROUPING.name) == TOTAL) for test in _tests(tables, [GROUPING.name])]
    return LEVEL / max(sum(not test.is_empty() for test in made), 1)


def _advice(log_rate: float | None) -> str:
    """What to do about rates that differ, by the side that is higher."""
    if log_rate is None:
        return "look at before_after_lags"
    return NEAR_IS_HIGHER if log_rate > 0 else FAR_IS_HIGHER


def _trend(tables: Mapping[str, pl.DataFrame]) -> str:
    """How the match rate of the total changes before the event, if it does; empty where that is not known."""
    row = _steepest(tables)
    if not row or row["p_value"] >= _level(tables):
        return ""
    if row["slope"] is None:
        return f"before the event, matches of {row[THRESHOLD]:g} or more lie on its first or last day only"
    low, high = (
        "?" if row[f"slope_{side}"] is None else f"{_percent(row[f'slope_{side}'])}" for side in ("lower", "upper")
    )
    return (
        f"over the days before the event, the rate of matches of {row[THRESHOLD]:g} or more changes by "
        f"{_percent(row['slope'])} a day ({low} to {high}, p = {row['p_value']:.2g})"
    )


def _steepest(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """The trend of the total with the smallest p-value, times the number of lag thresholds; empty without any."""
    rows = tables[TREND].filter(pl.col(GROUPING.name) == TOTAL, pl.col("p_value").is_not_null())
    if rows.is_empty():
        return {}
    row = rows.sort("p_value", THRESHOLD).row(0, named=True)
    return row | {"p_value": min(row["p_value"] * rows.height, 1.0)}


def _percent(slope: float) -> str:
    return f"{math.expm1(slope):+.0%}"


def _joint(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any] | None:
    """The joint test of the total; None without a total or with `uncertainty = "none"`."""
    rows = tables[PLACEBO].filter(pl.col(GROUPING.name) == TOTAL, pl.col(THRESHOLD).is_null())
    return None if rows.is_empty() else rows.row(0, named=True)


def _shown(tables: Mapping[str, pl.DataFrame], *, equal: bool) -> dict[str, Any]:
    """The row of the placebo test that speaks for the total; empty where none has a ratio with limits.

    It is that of the chosen threshold, or where the joint test rejects and this row does not, the one at which the
    rates differ most clearly.
    """
    chosen = chosen_threshold(tables)
    limited = pl.all_horizontal(pl.col("^log_rate_ratio(_lower|_upper)?$").is_not_null())
    rows = tables[PLACEBO].filter(pl.col(GROUPING.name) == TOTAL, pl.col(THRESHOLD).is_not_null(), limited)
    at_chosen = rows.clear() if chosen is None else rows.filter(pl.col(THRESHOLD) == chosen)
    if not equal and not (at_chosen["p_value"] < LEVEL).any():
        at_chosen = rows.sort("p_value", THRESHOLD).head(1)
    return {} if at_chosen.is_empty() else at_chosen.row(0, named=True)


def _log_ratio(tables: Mapping[str, pl.DataFrame]) -> float | None:
    value = _shown(tables, equal=False).get("log_rate_ratio")
    return None if value is None else float(value)


def _comparison(tables: Mapping[str, pl.DataFrame], *, equal: bool) -> str:
    """How the rates near and far compare, in numbers if they can be given.

    Args:
        tables: The result tables.
        equal: Whether the joint test lets them be equal.
    """
    chosen, row = chosen_threshold(tables), _shown(tables, equal=equal)
    if row:
        ratio, lower, upper = (math.exp(row[f"log_rate_ratio{side}"]) for side in ("", "_lower", "_upper"))
        at = "" if row[THRESHOLD] == chosen else f" at the threshold {row[THRESHOLD]:g}"
        return f"matches are {ratio:.2f} ({lower:.2f}–{upper:.2f}) times as frequent near to it as far from it{at}"
    differ = "do not differ by more than chance" if equal else "differ by more than chance"
    without = "no threshold was chosen" if chosen is None else f"at the chosen threshold, {chosen:g}, they are too few"
    return f"the rates of matches near to it and far from it {differ}, all thresholds together; {without} for a ratio"
