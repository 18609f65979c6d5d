"""The equal-FPR assumption: placebo and trend, their tables and figures, and what they say of the numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...base.columns import REPLICATE, SECOND_REPLICATE, THRESHOLD, add_up, by_group, doubles, nulls, texts
from ...base.schemas import GROUPING, TOTAL, grouping_columns
from ...base.visible_text import percent
from ...metrics.before_after.assumption import CrossedMatches, placebo, placebo_joint, trend
from ...metrics.before_after.estimates import Sums
from ...metrics.before_after.intervals import MIN_REPLICATES
from ...metrics.comparison.significance import adjust_p_values
from ...metrics.uncertainty.limits import INTERVAL_QUALITY, Quality
from ...metrics.uncertainty.replicates import GroupCounts
from ...plan.counts import CountFunction, Query
from ..figures import Axis, Figure, Rule, Series, caption, drawn, intervals, keys_of, rising, thinned, with_limits
from ..stage import number
from .groups import groups_of
from .inputs import chosen_threshold, pairs_by_day

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp
    from numpy.typing import NDArray

    from ...metrics.before_after.timelines import Span
    from ...metrics.uncertainty.limits import Reason
    from ...metrics.uncertainty.replicates import Cube
    from .contract import BeforeAfterParameters, Compared
    from .groups import EstimatedGroup
    from .planning import Matchers


# The table `before_after_placebo`: the near against the far part of the time before the event.


PLACEBO = "before_after_placebo"
COUNTS = ("n_far", "n_near", "m_far", "m_near")
PRECISIONS = ("precision_far", "precision_near")
PLACEBO_VALUES = ("log_rate_ratio", "log_rate_ratio_lower", "log_rate_ratio_upper", "p_value")


def placebo_table(curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters) -> pl.DataFrame:
    """The table `before_after_placebo`.

    One row per group and threshold, and one with a NULL threshold for the joint test; only the latter where the two
    parts cannot be compared at all.
    """
    keys = list(cube.keys)
    order = [*keys, THRESHOLD, *COUNTS, *PLACEBO_VALUES, *PRECISIONS, "undefined"]
    if not cube.within_budget(curve.height):
        return _placebo_untested(curve.select(keys).unique(maintain_order=True), "budget").select(order)
    pairs_known = bool(cube.counts["n_near"].sum())
    frames = []
    for group in groups_of(curve, cube):
        reason = _why_untested(group, params, pairs_known=pairs_known)
        label = group.rows.head(1).select(keys)
        frames.append(_placebo_untested(label, reason) if reason else _tested(group, keys, params))
    return pl.concat([frame.select(order) for frame in frames])


def _why_untested(group: EstimatedGroup, params: BeforeAfterParameters, *, pairs_known: bool) -> Reason | None:
    """Why the time before the event of a group has not two parts to compare; None if it has."""
    n_before, n_near = group.sides[2], group.near[1]
    if params.window is None:
        return "no_window"
    if not n_before.any():
        return "no_before"
    if not n_near.any():
        return "no_near" if pairs_known else "unknown_pairs"
    return None if (n_before > n_near).any() else "no_far"


def _placebo_untested(labels: pl.DataFrame, reason: Reason | None) -> pl.DataFrame:
    """The row of the joint test alone, for each of the groups."""
    zeros = [pl.lit(0, dtype=pl.Int64).alias(name) for name in COUNTS[:2]]
    undefined = pl.lit(reason, dtype=pl.String).alias("undefined")
    return labels.with_columns(
        *zeros, *nulls(COUNTS[2:], pl.Int64), *nulls((THRESHOLD, *PLACEBO_VALUES, *PRECISIONS)), undefined
    )


def _tested(group: EstimatedGroup, keys: Sequence[str], params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group, that of the joint test last."""
    m_before, _, n_before, _ = group.sides
    m_near, n_near = group.near
    m_far, n_far = m_before - m_near, n_before - n_near
    tests = placebo(m_far, m_near, n_far, n_near, confidence=params.confidence, crossed=group.crossed_periods)
    size = group.rows.height
    counts = (np.full(size, n_far.sum()), np.full(size, n_near.sum()), m_far.sum(axis=0), m_near.sum(axis=0))
    values = (tests.log_rate_ratio, tests.lower, tests.upper, tests.p_value)
    rows = group.rows.select(*keys, THRESHOLD).with_columns(
        *(pl.Series(name, column, dtype=pl.Int64) for name, column in zip(COUNTS, counts, strict=True)),
        *(doubles(name, column) for name, column in zip(PLACEBO_VALUES, values, strict=True)),
        doubles("precision_far", _precision(group, counts[2], n_far.sum(), params)),
        doubles("precision_near", _precision(group, counts[3], n_near.sum(), params)),
    )
    single = ((n_far + n_near) > 0).sum() < MIN_REPLICATES
    joint = doubles("p_value", np.array([placebo_joint(m_far, m_near, n_far, n_near, crossed=group.crossed_periods)]))
    empty = (THRESHOLD, "m_far", "m_near", *PLACEBO_VALUES[:-1], *PRECISIONS)
    last = rows.head(1).with_columns(*(pl.lit(None, dtype=rows.schema[name]).alias(name) for name in empty), joint)
    reason = pl.when(pl.col("p_value").is_null()).then(pl.lit("one_replicate" if single else "few_matches"))
    return pl.concat([rows, last]).with_columns(reason.alias("undefined"))


def _precision(
    group: EstimatedGroup, matches: NDArray[np.int64], pairs: np.int64, params: BeforeAfterParameters
) -> NDArray[np.float64]:
    """Precision with the false positive rate of one part of the time before the event."""
    _, m_after, _, n_after = group.sides
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = (matches, m_after.sum(axis=0), np.full(1, pairs), np.full(1, n_after.sum()))
        return Sums.of(group.reference, params.recall_reference.middle, counts).identified_precision


# The match rate by day before the event: what it needs counted, and the table `before_after_trend`.


TREND = "before_after_trend"
COUNTED = "lag_pairs"
DAY, VALUE = "lag_days", "n_pairs"
HOURS = 24
LEAST_OF_GIVEN = 0.95
MOMENTS = "moments"  # sums of the days, in the middle of which matches lie
TREND_VALUES = ("slope", "slope_lower", "slope_upper", "p_value")


def counts(
    compared: Compared,
    bounds: Mapping[str, float],
    timelines: tuple[Mapping[str, exp.Query], Span] | None,
    matchers: Matchers,
) -> Iterator[Query | CountFunction]:
    """What counts the compared pairs of every day before the event; nothing where they cannot be known.

    Args:
        compared: Where the numbers of compared pairs come from.
        bounds: Which lags lie before the event.
        timelines: Queries of the rows `events` and `articles`, and the window; None: their times are not known.
        matchers: Who compared them.
    """
    if compared == "pairs":
        params = {name: bounds[name] for name in ("before_start", "before_end")}
        yield Query("before_after/pairs_by_day", params, (VALUE,), (DAY,), into=COUNTED)
    elif timelines is not None:
        frames, span = timelines

        def compute(rows: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            counted = pairs_by_day(rows["events"], rows["articles"], span, matchers.known(segment))
            return matchers.repeated(counted, rows, segment)

        yield CountFunction(
            "before_after/pairs_by_day", {**frames, **matchers.frames()}, compute, (VALUE,), (DAY,), COUNTED
        )


def trend_table(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The table `before_after_trend`, for at least one group.

    Args:
        params: The parameters of the stage.
        counts: The count tables `counts`, `lags` and, where known, `lag_pairs`.
        keys: Columns that identify a group.
    """
    groups = counts["counts"].select(keys).unique().sort(keys, nulls_last=True)
    before = counts["lags"].filter(pl.col(DAY) < 0, pl.col(THRESHOLD).is_not_null())
    matches, pairs = by_group(before, keys), by_group(counts.get(COUNTED, before.clear()), keys)
    compared = by_group(add_up(counts["counts"], [*keys, REPLICATE], ["n_before"]), keys)
    no_pairs = counts[COUNTED].clear() if COUNTED in counts else None
    frames = [
        _trend(params, groups[row], matches.get(key, before.clear()), pairs.get(key, no_pairs), compared[key])
        for row, key in enumerate(groups.rows())
    ]
    return pl.concat(frames)


def _trend(
    params: BeforeAfterParameters,
    group: pl.DataFrame,
    matches: pl.DataFrame,
    pairs: pl.DataFrame | None,
    compared: pl.DataFrame,
) -> pl.DataFrame:
    """The rows of one group; `pairs` is None where the compared pairs of a day are not known."""
    moments = pl.Series(MOMENTS, matches["matches"].to_numpy() * _middle(params, matches[DAY].to_numpy()))
    counts = GroupCounts.of(
        matches.with_columns(moments), params.lag_thresholds, replicates=compared[REPLICATE].to_numpy()
    )
    hits = counts.at_or_above("matches")
    rows = group.join(pl.DataFrame({THRESHOLD: counts.thresholds, "matches": hits.sum(axis=0)}), how="cross")
    if pairs is None or _contradicted(matches, pairs, compared):
        return _trend_untested(rows, None, "unknown_pairs")
    with_pairs = pairs.filter(pl.col(VALUE) > 0)
    days = np.unique(with_pairs[DAY].to_numpy())
    if params.uncertainty == "none":
        return _trend_untested(rows, len(days), "none")
    trend_table = _by_day(with_pairs, counts.replicates, days)
    middle = _middle(params, days)
    slopes = trend(
        hits.astype(np.float64),
        counts.at_or_above(MOMENTS),
        trend_table,
        middle,
        confidence=params.confidence,
        crossed=_crossed(counts, params.lag_thresholds),
    )
    values = (slopes.slope, slopes.lower, slopes.upper, slopes.p_value)
    columns = (doubles(name, column) for name, column in zip(TREND_VALUES, values, strict=True))
    return rows.with_columns(_n_days(len(days)), *columns, texts("undefined", slopes.reason))


def _crossed(counts: GroupCounts, thresholds: Sequence[float]) -> CrossedMatches | None:
    """The matches by both parents of the pairs; None where there is one, or one replicate of the second has all."""
    if SECOND_REPLICATE not in counts.counts.columns:
        return None
    cells = counts.counts.select(REPLICATE, SECOND_REPLICATE).unique().sort(REPLICATE, SECOND_REPLICATE)
    seconds = cells[SECOND_REPLICATE].unique().sort()
    if len(seconds) < MIN_REPLICATES:
        return None
    numbered = cells.with_row_index("_cell")
    rows = counts.counts.join(numbered, on=[REPLICATE, SECOND_REPLICATE], how="left", maintain_order="left")
    of_cells = GroupCounts.of(rows.with_columns(pl.col("_cell").cast(pl.Int64).alias(REPLICATE)), thresholds)
    return CrossedMatches(
        of_cells.at_or_above("matches").astype(np.float64),
        of_cells.at_or_above(MOMENTS),
        np.searchsorted(counts.replicates, cells[REPLICATE].to_numpy()),
        np.searchsorted(seconds.to_numpy(), cells[SECOND_REPLICATE].to_numpy()),
        len(seconds),
    )


def _trend_untested(rows: pl.DataFrame, n_days: int | None, reason: Reason) -> pl.DataFrame:
    return rows.with_columns(_n_days(n_days), *nulls(TREND_VALUES), pl.lit(reason).alias("undefined"))


def _n_days(number: int | None) -> pl.Expr:
    return pl.lit(number, dtype=pl.Int64).alias("n_days")


def _by_day(pairs: pl.DataFrame, replicates: NDArray[np.int64], days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compared pairs, shape (replicates, days)."""
    trend_table = np.zeros((len(replicates), len(days)), dtype=np.int64)
    cell = np.searchsorted(replicates, pairs[REPLICATE].to_numpy()), np.searchsorted(days, pairs[DAY].to_numpy())
    np.add.at(trend_table, cell, pairs[VALUE].to_numpy())
    return trend_table


def _contradicted(matches: pl.DataFrame, pairs: pl.DataFrame, compared: pl.DataFrame) -> bool:
    """Whether the times do not fit: a day has more matches than pairs, or all days more or far fewer than are given."""
    keys = [REPLICATE, DAY]
    days = add_up(matches, keys, ["matches"]).join(add_up(pairs, keys, [VALUE]), on=keys, how="left")
    all_days = add_up(pairs, [REPLICATE], [VALUE]).join(add_up(compared, [REPLICATE], ["n_before"]), on=REPLICATE)
    more = days.filter(pl.col("matches") > pl.col(VALUE).fill_null(0))
    too_few = int(all_days[VALUE].sum()) < LEAST_OF_GIVEN * int(compared["n_before"].sum())
    return too_few or not (more.is_empty() and all_days.filter(pl.col(VALUE) > pl.col("n_before")).is_empty())


def _middle(params: BeforeAfterParameters, days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Middle of the part of each day that lies in the window, in days from the event."""
    start, end = days.astype(np.float64), days + 1.0
    if params.window is not None:
        start = np.maximum(start, -params.window.before / HOURS)
        end = np.minimum(end, -params.window.gap / HOURS)
    return np.asarray((start + end) / 2)


# The assumption of equal false positive rates, as the placebo test and the trend judge it: marks, and plain words.
#
# A group fails if one of its tests rejects at `LEVEL` over the number of them (Bonferroni), of several lag thresholds
# the smallest p-value times their number. The total is judged by itself. Of the groups of a grouping at most one in
# twenty of those that fail does so by chance (Benjamini & Hochberg 1995), and none at all in nineteen of twenty runs
# where the assumption holds for all of them. A group that has too few matches for a test shares the verdict on the
# total.


EQUAL_RATES = "whether wrong matches are as frequent before the event as after it (equal-FPR assumption)"
LEVEL = 0.05
SURE = 0.002  # no flip of signs is as extreme, in either of two tests: that small a p-value needs no adjustment
FAILED: Quality = "assumption_failed"
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
    """Warnings that speak against the assumption, or why it was not tested for the total."""
    joint, level = _joint(tables), _level(tables)
    if joint is not None and joint["p_value"] is None:
        yield f"it was not tested {EQUAL_RATES}, as these numbers assume: {UNTESTED[joint['undefined']]}"
    elif joint is not None and joint["p_value"] < level:
        yield (
            f"it is doubtful {EQUAL_RATES}: before the event, where no match should be right, "
            f"{_comparison(tables, equal=False)} (placebo test over all thresholds, p = {joint['p_value']:.2g}), so "
            f"that precision, recall and F1 may be far off (assumption_failed); {_advice(_log_ratio(tables))}"
        )
    if trend := _trend_in_words(tables):
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
    """The verdict of the tests on the assumption, for the summary; empty when it could not be tested."""
    joint, trend, level = _joint(tables), _trend_in_words(tables), _level(tables)
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
    """Advice on rates that differ, by the side that is higher."""
    if log_rate is None:
        return "look at before_after_lags"
    return NEAR_IS_HIGHER if log_rate > 0 else FAR_IS_HIGHER


def _trend_in_words(tables: Mapping[str, pl.DataFrame]) -> str:
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


# The recall reference in plain words: whether the estimates depend on it, and on the correction made with it.


LOW_PRECISION, HIGH_FPR = 0.2, 0.1
UNDEFINED = {
    "no_before": "no pair was compared before the event, so that precision, recall and F1 are undefined",
    "no_reference": (
        "no threshold has enough precision to serve as recall reference, so that precision, recall and F1 are "
        "undefined; precision_uncorrected is given, which is too low by the positives among the pairs after the event"
    ),
    "unidentified": (
        "at the recall reference as many pairs match before the event as are believed to be found after it, so that "
        "the number of positives, and with it precision, recall and F1, cannot be estimated; set a higher reference: "
        'recall_reference = { rule = "fixed", threshold = … }'
    ),
    "all_positive": (
        "more positives are estimated at the recall reference than pairs were compared after the event, so that "
        "precision, recall and F1 are undefined; is the assumption of equal false positive rates right?"
    ),
}


def doubtful(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Why the estimates of the total depend on the recall reference, or are missing for it; None where they do not."""
    total = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all")
    row, reasons = _reference(tables), total["undefined"].to_list()
    if row is None:
        return UNDEFINED["no_before" if "no_before" in reasons else "no_reference"]
    missing = next((reason for reason in UNDEFINED if reason in reasons), None)
    if missing is not None:
        return UNDEFINED[missing]
    if not _is_doubtful(row):
        return None
    right = "an unknown share" if row["precision"] is None else percent(row["precision"], 0)
    return (
        f"precision and recall depend on the recall reference, {number(row[THRESHOLD])}: {percent(row['fpr'], 0)} of "
        f"the pairs match there even before the event, and {right} of the matches after it are right"
        f"{_without_correction(tables)}; see before_after_sensitivity, try "
        "another recall_reference, or have a sample checked with audit"
    )


def verdict_on_reference(tables: Mapping[str, pl.DataFrame]) -> str:
    """The verdict on a doubtful reference, for the summary; empty where it is not doubtful."""
    row = _reference(tables)
    return "" if row is None or not _is_doubtful(row) else "This depends on the recall reference: see the warnings."


def _reference(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any] | None:
    """The row of the reference of the total, if there is one."""
    rows = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all", "is_reference")
    return None if rows.is_empty() else rows.row(0, named=True)


def _is_doubtful(row: Mapping[str, Any]) -> bool:
    """Whether the false positive rate at the reference is high, or precision low, so that the correction is large."""
    return bool(row["fpr"] >= HIGH_FPR or row["precision_uncorrected"] < LOW_PRECISION)


def _without_correction(tables: Mapping[str, pl.DataFrame]) -> str:
    """The recall of the first criterion as the source text has it, for comparison."""
    points = tables["before_after_operating_points"].filter(
        pl.col(GROUPING.name) == "all", pl.col(THRESHOLD).is_not_null()
    )
    chosen = points.filter(pl.col("criterion") != "recall_reference").head(1)
    if chosen.is_empty() or chosen["recall_uncorrected"][0] is None or chosen["recall"][0] is None:
        return ""
    row = chosen.row(0, named=True)
    if f"{row['recall_uncorrected']:.2f}" == f"{row['recall']:.2f}":
        return ""
    return (
        f" (at {number(row[THRESHOLD])} the formula as published, Welbers et al. 2022, gives a recall of "
        f"{row['recall_uncorrected']:.2f}, the corrected one {row['recall']:.2f})"
    )


# Figures: matches by day, and whether false positives are as frequent at all times.


MOST_BARS, MOST_FIGURES = 120, 6
X_TITLE = "Threshold: score from which a pair counts as a match"


def figures_by_day(lags: pl.DataFrame | None) -> Iterator[Figure]:
    """Matches by day of the lag, a figure for each threshold of `lag_thresholds`; of many thresholds a few.

    Args:
        lags: The table of the lags, if it was made: days without a match have no row.
    """
    if lags is None or lags.is_empty():
        return
    thresholds = lags[THRESHOLD].unique().sort()
    thresholds = thresholds.gather_every(math.ceil(len(thresholds) / MOST_FIGURES))
    days = lags[DAY].to_list()
    width = math.ceil((max(days) - min(days) + 1) / MOST_BARS)
    # matches in bins of so many days, none of which holds the event inside; bins without a match are 0
    keys = [*keys_of(lags), THRESHOLD]
    start = (pl.col(DAY).floordiv(width) * width).alias(DAY)
    counted = lags.group_by(*keys, start).agg(pl.col("matches").sum())
    every = lags.select(keys).unique().join(_bins(counted[DAY], width), how="cross")
    table = every.join(counted, on=[*keys, DAY], how="left", nulls_equal=True).sort([*keys, DAY])
    matches, is_before = pl.col("matches").fill_null(0), pl.col(DAY) < 0
    sides = [pl.when(is_before).then(matches).alias("before"), pl.when(~is_before).then(matches).alias("after")]
    binned = table.with_columns(sides).with_columns(pl.col("before").mean().over(keys).alias("by_chance"))
    for index, threshold in enumerate(thresholds, start=1):
        yield _at_threshold(binned.filter(pl.col(THRESHOLD) == threshold), index, threshold, width)


def _bins(starts: pl.Series, width: int) -> pl.DataFrame:
    """First days of all bins in which a match of any group lies or can lie, on both sides of the event."""
    sides = [starts.filter(starts < 0).to_list(), starts.filter(starts >= 0).to_list()]
    days = [day for side in sides if side for day in range(min(side), max(side) + 1, width)]
    return pl.DataFrame({DAY: days}, schema={DAY: pl.Int64})


def _at_threshold(table: pl.DataFrame, index: int, threshold: float, width: int) -> Figure:
    series = (
        Series("before", "Before the event", "before", "bar"),
        Series("after", "After the event", "after", "bar"),
        Series("by_chance", "Expected by chance", "chance"),
    )
    per = "day" if width == 1 else f"{width} days"
    words = (
        f"Matches with a score of {number(threshold)} or more. Those before the event are false. The line is their "
        f"mean per {per}: about as many are false after the event if as many pairs are compared then. The window may "
        "hold the bars at its ends only in part."
    )
    return Figure(
        name=f"matches_by_day_{index}",
        title=f"Matches by day, at threshold {number(threshold)}",
        caption=words,
        frame=drawn(table, DAY, series),
        x=Axis(DAY, "Days from the event to the article (0: within 24 hours after the event)", "integer"),
        y=Axis("", f"Matches per {per}", "integer", includes=(0.0,)),
        series=series,
    )


def figure_of_placebo(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The match rate near the event over that far before it, on the log scale, by threshold.

    Args:
        table: The table of the placebo test, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    by_threshold = rising(table)
    series = (with_limits(table, Series("log_rate_ratio", "Log of the ratio", "estimate")),)
    words = (
        "Natural logarithm of the rate of matches shortly before the event over the rate long before it: 0 if both are "
        "equal, as the method assumes, 0.1 if matches shortly before are about 10% more frequent."
    )
    return Figure(
        name="placebo",
        title="Placebo test: matches near to and far before the event",
        caption=caption(words, intervals(series, confidence), "A gap: one of the two times has no match."),
        frame=drawn(thinned(by_threshold, THRESHOLD), THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=Axis("", "Log ratio of match rates, near / far", includes=(0.0,)),
        series=series,
        rules=(Rule("Equal rates", 0.0, "y"),),
    )


def figure_of_trend(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The change of the match rate per day before the event, by threshold of `lag_thresholds`.

    Args:
        table: The table of the trend, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    texts = pl.Series("at", [number(threshold) for threshold in table[THRESHOLD]], dtype=pl.String)
    series = (with_limits(table, Series("slope", "Change per day", "estimate", "point")),)
    words = (
        "Change of the natural logarithm of the rate of matches from one day to the next before the event: 0 if the "
        "rate stays the same, as the method assumes, 0.1 if it rises by about 10% a day. A row for each threshold of "
        "lag_thresholds."
    )
    return Figure(
        name="trend",
        title="Trend of the rate of matches before the event",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(rising(table.with_columns(texts)), "at", series),
        x=Axis("at", X_TITLE, "category"),
        y=Axis("", "Change of the log rate per day", includes=(0.0,)),
        series=series,
        rules=(Rule("No trend", 0.0, "y"),),
    )
