"""The results of change_points: curve, areas, alarms, and single runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import IN_TIME, THRESHOLD, add_up, as_key, at_or_above, by_group, divide, nulls, quotient
from ...base.schemas import GROUPING, Grouping, grouping_columns
from ...base.sql_files import statement
from ...base.visible_text import of_every
from ...metrics.change_points.matching import average_precision, roerich_area, trapezoid_area
from ...metrics.curves.decisions import FOLDS
from ...metrics.curves.operating_points import (
    Candidates,
    Outcomes,
    f_beta_of_counts,
    operating_points,
    ratios_of_counts,
)
from ...metrics.uncertainty.limits import (
    N_CLUSTERS,
    N_EFFECTIVE,
    Interval,
    clusters_of,
    marked_in_time,
    warnings_of_marks,
    with_limits,
    with_numbers,
)
from ...metrics.uncertainty.proportions import UNSEEN, Confusion, intervals_of_clusters
from ...metrics.uncertainty.replicates import Cube
from ...plan.nodes import After
from ..figures import CHOICE, SAME_DATA, beside_best, keys_of, on_other_data, words_of_choice
from ..stage import (
    CLUSTER,
    Summary,
    doubt,
    f1_curve,
    groups_without,
    integer,
    interval_cells,
    number,
    percent,
    summary_of,
)
from ..stated import at_folds, counted, f_beta_of_row, limited_of, outcomes_of, outcomes_of_row
from .contract import ALARMS, AREAS, CURVE, DELAYS, RATE, SERIES_COLUMNS, SERIES_ID, STATED
from .points import RUN, alarm_tables, with_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...base.schemas import Column
    from ...metrics.curves.decisions import Ints
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from ...metrics.uncertainty.replicates import GroupCounts, Resampling
    from .contract import ChangePointsParameters
    from .planning import Relations


SWEPT = ("n_predicted", "tp")  # what areas are made of
AREA_NAMES = ("average_precision", "pr_auc", "pr_auc_roerich")


def derive(params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of change_points; tables of single runs and matches follow."""
    in_time = IN_TIME in counts
    cube = Cube.of(counts["counts"], None, params.threshold_values, params.boundary, in_time=in_time)
    keys, names = list(cube.keys), [column.name for column in CURVE]
    recalls = ("recall_sum", "n_series") if params.annotators == "tcpd" else None
    every = with_intervals(with_ratios(counted(STATED, cube), recalls), cube, params)
    curve, scored = every.select(*keys, *names), every.select(*keys, *names, *WORKING)
    scored = scored.filter(pl.col(THRESHOLD).is_not_null())
    choices = candidates(scored, cube, params)
    best = partial(f_beta, params)
    points = operating_points(
        scored, keys, params.operating_points, choices, best, outcomes_of_row(IGNORED), params.boundary
    )
    clusters = clusters_of(cube.counts, keys, SIZES)
    areas = with_numbers(_areas(params, counts, curve, keys), clusters, keys, wanted=params.is_replicated)
    return {
        "change_points_curve": curve,
        "change_points_operating_points": points.drop(WORKING),
        "change_points_areas": areas.select(*keys, *(column.name for column in AREAS)),
        **alarm_tables(params, counts, cube, curve, points),
    }


def _areas(
    params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame], curve: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """One row per group: areas from every score, and from the thresholds of the stage."""
    table = counts["counts"]
    totals = add_up(table, keys, ("n_series", "n_true", "n_predicted", "n_always"))
    of_thresholds = by_group(curve, keys)
    of_scores = by_group(_at_every_score(params, counts, curve, keys), keys)
    rows = []
    for row in totals.iter_rows(named=True):
        key = tuple(row[name] for name in keys)
        areas: tuple[float | None, ...] = (None, None, None)
        has_areas = params.annotators != "tcpd" and params.cooldown is None
        if has_areas and row["n_true"] and row["n_predicted"]:
            at_scores, at_thresholds = _counts_of(of_scores.get(key)), _counts_of(of_thresholds.get(key))
            n_true = row["n_true"]
            inner = trapezoid_area(*at_thresholds, n_true)
            areas = (average_precision(*at_scores, n_true), inner, roerich_area(*at_scores, n_true))
        rows.append((*key, *areas))
    schema = {name: totals.schema[name] for name in keys} | dict.fromkeys(AREA_NAMES, pl.Float64())
    frame = totals.join(pl.DataFrame(rows, schema=schema, orient="row"), on=list(keys), nulls_equal=True)
    frame = _with_covering(frame, counts, keys).with_columns(pl.col("n_predicted") + pl.col("n_always"))
    averaged = pl.when(pl.lit(params.annotators == "tcpd")).then(pl.lit("averaged_recall"))
    reason = averaged.when(pl.lit(params.cooldown is not None)).then(pl.lit("cooldown"))
    reason = reason.when(pl.col("n_true") == 0).then(pl.lit("no_positive"))
    reason = reason.when(pl.col("n_predicted") == 0).then(pl.lit("no_prediction"))
    reason = reason.when(pl.col("average_precision").is_null()).then(pl.lit("no_score"))
    return frame.with_columns(reason.alias("undefined"))


def _at_every_score(
    params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame], curve: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """Counts at the thresholds of the areas."""
    if params.area_scores == "thresholds":
        return curve
    if "scores" in counts:
        scores = counts["scores"].with_columns(pl.col("score").alias(THRESHOLD))
        return at_or_above(scores, keys, SWEPT, None)
    return at_or_above(counts["counts"], keys, SWEPT, None)


def _counts_of(rows: pl.DataFrame | None) -> tuple[Ints, Ints]:
    """Counts tp and n_predicted of one group, thresholds falling."""
    if rows is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    ordered = rows.sort(THRESHOLD, descending=True, nulls_last=True)
    return ordered["tp"].to_numpy(), ordered["n_predicted"].to_numpy()


def _with_covering(frame: pl.DataFrame, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    if "covering" not in counts:
        return frame.with_columns(pl.lit(0, dtype=pl.Int64).alias("n_covered"), *nulls(["covering"]))
    sums = add_up(counts["covering"], keys, ("n_covered", "covering"))
    joined = frame.join(sums, on=list(keys), how="left", nulls_equal=True)
    mean = quotient(joined["covering"], joined["n_covered"])
    return joined.with_columns(pl.col("n_covered").fill_null(0), mean.alias("covering"))


def unit_of(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """The unit of the observed time, as the config has it; None if false alarms are not counted over time."""
    alarms = tables.get(ALARMS.name)
    units = [] if alarms is None else alarms["per"].drop_nulls().unique().to_list()
    return units[0] if units else None


def with_rates(best: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows of chosen thresholds, one per group, with the rate of false alarms there and its limits, if there is one."""
    if unit_of(tables) is None:
        return best
    keys = [*keys_of(best), THRESHOLD]
    rates = tables[ALARMS.name].select(*keys, *(column.name for column in RATE.columns()))
    return best.join(rates, on=keys, how="left", nulls_equal=True, maintain_order="left")


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    curve, areas = tables["change_points_curve"], tables["change_points_areas"]
    messages = []
    above = curve.filter(pl.col("precision") > 1).height
    if above:
        messages.append(
            f"precision is above 1 in {above:,} of {curve.height:,} rows of the curve: one prediction served several "
            'true points; matching = "one_to_one" keeps it a proportion'
        )
    keys = areas.columns[1 : areas.columns.index("n_series")]
    numbered = curve.join(areas.select(*keys, N_CLUSTERS, N_EFFECTIVE), on=keys, how="left", nulls_equal=True)
    return (
        *messages,
        *groups_without(areas, {"no true point": pl.col("n_true") == 0}, "recall and areas are empty (NULL)"),
        *warnings_of_marks({**tables, "change_points_curve": numbered}),
    )


def best_rows(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Every group at the threshold with its best F1, beside its areas, the total first."""
    areas, curve = tables["change_points_areas"], tables["change_points_curve"]
    keys = [GROUPING.name, *grouping_columns(areas.columns)]
    best = curve.sort("f1", THRESHOLD, descending=[True, False], nulls_last=True).group_by(keys, maintain_order=True)
    shown = areas.join(best.first(), on=keys, how="left", nulls_equal=True, suffix="_of_point", maintain_order="left")
    return shown.sort(pl.col(GROUPING.name) != "all", maintain_order=True)


def best_on_other_data(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`best_rows` with what their choice gives on other data."""
    return on_other_data(beside_best(best_rows(tables), tables["change_points_operating_points"]))


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The best threshold of every group, and the curve of F1 of the first group."""
    areas, curve = tables["change_points_areas"], tables["change_points_curve"]
    if areas.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any series.")
    shown, unit = with_rates(best_on_other_data(tables), tables), unit_of(tables)
    keys = [GROUPING.name, *grouping_columns(areas.columns)]
    last = (lambda row: percent(row["average_precision"])) if unit is None else _rate
    return summary_of(
        shown,
        {
            "series": lambda row: integer(row["n_series"]),
            "true points": lambda row: integer(row["n_true"]),
            "threshold": lambda row: number(row[THRESHOLD]),
            **interval_cells({"precision": "precision", "recall": "recall", "F1": "f1"}),
            "average precision" if unit is None else f"false alarms per {unit}": last,
        },
        _sentence,
        f1_curve(curve, shown.head(1).select(keys)),
        on_same_data=bool((shown[CHOICE] == SAME_DATA).any()),
    )


def _rate(row: Mapping[str, object]) -> str:
    """A rate and its limits for people, with a mark behind doubtful limits."""
    rate, lower, upper = (row[column.name] for column in RATE.columns())
    if not isinstance(lower, float) or not isinstance(upper, float):
        return number(rate)
    return f"{number(rate)} ({lower:.3g}–{upper:.3g}){doubt(row)}"


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "There is no threshold with both a precision and a recall."
    chosen = row[THRESHOLD]
    start = f"With scores of {number(chosen)} or more" if isinstance(chosen, float) else "With all predictions"
    right = (
        f"precision is {percent(precision)}" if precision > 1 else f"{of_every(precision)} predicted points are right"
    )
    return (
        f"{start}, {right}, and {of_every(recall)} true points are found, of {integer(row['n_true'])} in all"
        f"{words_of_choice(row)}."
    )


# Tables of single runs and of single matches of change_points, which are read once more at the end.


CLUSTERS = "clusters"  # frame of the clusters of series
Finish = Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], pl.DataFrame]


def series_table(relations: Relations) -> After:
    """One row per run, over all its predictions."""
    tcpd = relations.params.annotators == "tcpd"

    def finish(runs: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        runs = with_ratios(runs.with_columns(one=pl.lit(1)), ("mean_recall", "one") if tcpd else None)
        mean = quotient(runs["delay_sum"], runs["n_delays"]).alias("mean_delay")
        rows = _named(runs.with_columns(mean), frames["runs"], relations, SERIES_COLUMNS)
        if CLUSTERS not in frames:
            return rows
        clusters = frames[CLUSTERS].with_columns(as_key(frames[CLUSTERS][CLUSTER]))
        return rows.join(clusters, on=SERIES_ID, how="left", maintain_order="left")

    covering: dict[str, exp.Expr] = {} if relations.covered else {"covering": exp.cast(exp.null(), "DOUBLE")}
    query = statement(f"change_points/{'alarm_series' if relations.alarmed else 'series'}", columns=covering)
    clusters = {} if relations.cluster == SERIES_ID else {CLUSTERS: statement("change_points/clusters_of_series")}
    return _follow_up("series", query, relations, finish, clusters)


def delays_table(relations: Relations) -> After:
    """One row per matched prediction."""

    def finish(matches: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return _named(matches, frames["runs"], relations, DELAYS)

    return _follow_up("delays", statement("change_points/delays"), relations, finish, {})


def _follow_up(
    table: str, query: exp.Query, relations: Relations, finish: Finish, further: Mapping[str, exp.Query]
) -> After:
    frames = {"runs": statement("change_points/keys_of_runs", [grouped.name for grouped in relations.by]), **further}
    return After(f"change_points_{table}", None, query, {}, frames, finish)


def _named(rows: pl.DataFrame, runs: pl.DataFrame, relations: Relations, columns: Sequence[Column]) -> pl.DataFrame:
    """Rows with the grouping columns and the series of their run, as one grouping."""
    by = [grouped.name for grouped in relations.by]
    if runs.schema[SERIES_ID].is_decimal():  # signed and unsigned integers in one column
        unsigned = bool((runs[SERIES_ID] >= 0).all())
        runs = runs.with_columns(pl.col(SERIES_ID).cast(pl.UInt64 if unsigned else pl.Int64))
    grouping = pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name)
    names = [column.name for column in columns]
    return rows.join(runs, on=RUN, how="inner").select(grouping, *by, *names)


# Intervals of the curve of change_points: series, or clusters of them, are independent.


SIZES = ("n_series", "n_true", "n_predicted", "n_always")  # what makes a series, or a cluster of them, large


def clusters_of_groups(params: ChangePointsParameters, cube: Cube) -> pl.DataFrame:
    """How many clusters each group rests on, and how far intervals that rest on them alone can be trusted."""

    def confusion(group: GroupCounts) -> Confusion:
        outcomes = outcomes_of(STATED, group)
        of_true = _recalled(outcomes) if params.annotators == "tcpd" else outcomes
        return replace(of_true, fp=0 * outcomes.fp if params.rule == "any" else outcomes.fp)

    return marked_in_time(clusters_of(cube.counts, cube.keys, SIZES), cube, ["n_predicted"], confusion)


def with_intervals(curve: pl.DataFrame, cube: Cube, params: ChangePointsParameters) -> pl.DataFrame:
    """The curve with `<ratio>_lower`, `<ratio>_upper`, `undefined_interval` and `interval_quality`."""
    clusters = clusters_of_groups(params, cube)

    def intervals(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        limits = limits_of(group, params, params.confidence, params.resampling)
        # the limits of all ratios; a row gives one reason for all of them
        one_replicate = len(group.replicates) == 1
        names = list(limited_of(STATED))
        nothing = np.full(rows.height, np.nan)
        undefined = np.logical_or.reduce([rows[name].is_null().to_numpy() for name in names])
        reasons = np.where(undefined, "undefined_ratio", "no_limit")
        if one_replicate or any(name not in limits for name in names):
            reasons = np.full(rows.height, "one_replicate" if one_replicate else "not_a_proportion")
        return {name: Interval.of(limits.get(name, (nothing, nothing)), reasons) for name in names}

    wanted, resamples = params.is_replicated, params.drawn_resamples
    return with_limits(
        curve,
        cube,
        list(limited_of(STATED)),
        intervals,
        wanted=wanted,
        clusters=clusters,
        events=("tp", "fp", "fn"),
        resamples=resamples,
    )


def limits_of(
    group: GroupCounts,
    params: ChangePointsParameters,
    confidence: float,
    resampling: Resampling | None = None,
    chosen: Ints | None = None,
) -> dict[str, Limits]:
    """Limits of the ratios of one group that are proportions: at its thresholds, or where each fold has one of its own.

    Under `any` a prediction may serve several true points, so precision and F1 are no proportions; under `tcpd` F1 is
    none, because precision and recall count different things.
    """
    every, stated = outcomes_of(STATED, group), limited_of(STATED)
    outcomes = every if chosen is None else at_folds(every, chosen)
    names = list(stated) if (outcomes.fp >= 0).all() and params.rule != "any" else ["recall"]
    if params.annotators == "tcpd":
        names = [name for name in names if name == "precision"]
    limits = intervals_of_clusters(outcomes, confidence, names=names, ratios=stated, resampling=resampling)
    if params.annotators == "tcpd":
        recalls, heaviest = _recalled(outcomes), (UNSEEN, UNSEEN)
        limits |= intervals_of_clusters(recalls, confidence, heaviest=heaviest, names=["recall"], resampling=resampling)
    return limits


def _recalled(outcomes: Confusion) -> Confusion:
    """The recalls of series as hits, and what they lack of 1 as misses, see `mean_limits`."""
    recalled = outcomes.others["recall_sum"]
    missed, nothing = np.maximum(outcomes.others["n_series"] - recalled, 0.0), np.zeros_like(recalled)
    return Confusion(recalled, nothing, missed, nothing, in_time=outcomes.in_time)


# What the criteria of change_points choose from: limits and counts by fold of every group.


IGNORED = "n_ignored"
WORKING = ("fp", "fn", IGNORED)  # columns of a curve that its criteria need


def candidates(curve: pl.DataFrame, cube: Cube, params: ChangePointsParameters) -> Iterator[Candidates]:
    """Every group of a curve whose rows have a threshold."""
    wanted = params.is_replicated
    promises = wanted and cube.within_budget(curve.height)
    is_mean = params.annotators == "tcpd"
    for rows, group in cube.beside(curve):

        def lower(name: str, confidence: float, group: GroupCounts = group) -> Floats:
            limits = limits_of(group, params, confidence)
            return limits[name][0] if name in limits else np.full(len(group.thresholds), np.nan)

        def at_chosen(chosen: Ints, _: Sequence[Floats], group: GroupCounts = group) -> dict[str, Limits]:
            return limits_of(group, params, params.confidence, params.resampling, chosen)

        yield Candidates(
            rows=rows,
            lower=lower if promises else None,
            retrieved=rows["n_predicted"].to_numpy().astype(np.float64),
            counts=_by_fold(group) if wanted else "none",
            ratios=_of_mean_recall if is_mean else ratios_of_counts,
            f_beta=_f_beta_of_mean_recall if is_mean else f_beta_of_counts,
            outcomes=lambda counts: Outcomes(counts[0], counts[1], counts[2], neither=counts[3]),
            at_folds=at_chosen if promises else None,
        )


def _by_fold(group: GroupCounts) -> Sequence[Floats]:
    """True and false positives, misses, ignored repeats, sums of recalls and series, by fold and threshold."""
    folds = outcomes_of(STATED, group.in_folds(FOLDS))
    return folds.tp, folds.fp, folds.fn, *(folds.others[name] for name in (IGNORED, "recall_sum", "n_series"))


@np.errstate(divide="ignore", invalid="ignore")
def _of_mean_recall(counts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Precision and recall of them where recall is a mean over series."""
    tp, fp, _, _, recalls, n_series = counts
    return tp / (tp + fp), recalls / n_series


@np.errstate(divide="ignore", invalid="ignore")
def _f_beta_of_mean_recall(counts: Sequence[Floats], beta: float) -> Floats:
    """The weighted harmonic mean of these two."""
    (precision, recall), square = _of_mean_recall(counts), beta**2
    mean = (1 + square) * precision * recall / (square * precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


def f_beta(params: ChangePointsParameters, beta: float) -> pl.Expr:
    """F-beta of a row of the curve."""
    if params.annotators != "tcpd":
        return f_beta_of_row(beta)
    square, precision, recall = beta**2, pl.col("precision"), pl.col("recall")
    mean = divide((1 + square) * precision * recall, square * precision + recall)
    return pl.when(precision + recall == 0).then(0.0).otherwise(mean)
