"""What follows from the counts of change_points: curve, areas, and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...metrics.change_points.areas import average_precision, roerich_area, trapezoid_area
from ...metrics.curves.operating_points import operating_points
from ...metrics.uncertainty.cube import Cube
from ...metrics.uncertainty.interval_quality import N_CLUSTERS, N_EFFECTIVE
from ...metrics.uncertainty.limits import warnings_of_marks, with_clusters
from ...plan.nodes import After
from ...queries.load import statement
from ...tables.columns import IN_TIME, THRESHOLD, add_up, as_key, at_or_above, by_group, nulls, quotient
from ...tables.groupings import Grouping, group_text, grouping_columns
from ...tables.schemas import GROUPING
from ...visible_text import of_every
from ..stage import CLUSTER, Summary, doubt, f1_curve, groups_without, integer, interval, number, of_group, percent
from ..standard_figures import CHOICE, SAME_DATA, beside_best, on_other_data, words_of_choice
from .alarm_figures import RATE, unit_of, with_rates
from .alarms import alarm_tables
from .choosing import IGNORED, candidates, f_beta, outcomes, with_ignored
from .contract import AREAS, CURVE, DELAYS, SERIES_COLUMNS, SERIES_ID
from .points import RUN, with_ratios
from .uncertainty import SIZES, with_intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...tables.schemas import Column
    from .contract import ChangePointsParameters
    from .relations import Relations


if TYPE_CHECKING:
    Counts: TypeAlias = NDArray[np.int64]

SWEPT = ("n_predicted", "tp", "recall_sum")
TOTALS = ("n_series", "n_true", "n_always", "tp_always", "recall_always")  # what does not depend on a threshold
AREA_NAMES = ("average_precision", "pr_auc", "pr_auc_roerich")


def derive(params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of change_points; those of single runs and matches follow."""
    in_time = IN_TIME in counts
    cube = Cube.of_groups(counts["counts"], params.threshold_values, params.boundary, in_time=in_time)
    curve = with_intervals(_curve(params, cube), cube, params)
    keys = list(cube.keys)
    curve = curve.select(*keys, *(column.name for column in CURVE))
    scored = with_ignored(curve.filter(pl.col(THRESHOLD).is_not_null()), cube)
    choices = candidates(scored, cube, params)
    best = partial(f_beta, params)
    points = operating_points(scored, keys, params.operating_points, choices, best, outcomes(), params.boundary)
    areas = with_clusters(_areas(params, counts, curve, keys), cube, SIZES, wanted=params.is_replicated)
    return {
        "change_points_curve": curve,
        "change_points_operating_points": points.drop(IGNORED),
        "change_points_areas": areas.select(*keys, *(column.name for column in AREAS)),
        **alarm_tables(params, counts, cube, curve, points),
    }


def _curve(params: ChangePointsParameters, cube: Cube) -> pl.DataFrame:
    """Counts and ratios at every threshold; one row without a threshold where nothing has a score."""
    keys, totals = list(cube.keys), cube.totals(TOTALS)
    swept = cube.at_or_above(SWEPT)
    without = totals.select(keys).join(swept, on=keys, how="anti", nulls_equal=True)
    zeros = (pl.lit(0).cast(swept.schema[name]).alias(name) for name in SWEPT)
    without = without.with_columns(*nulls([THRESHOLD]), *zeros)
    frame = pl.concat([swept, without.select(swept.columns)])
    frame = frame.join(totals, on=keys, how="left", nulls_equal=True)
    frame = frame.with_columns(
        pl.col("n_predicted") + pl.col("n_always"),
        pl.col("tp") + pl.col("tp_always"),
        (pl.col("recall_sum").cast(pl.Float64) + pl.col("recall_always").cast(pl.Float64)).alias("recall_sum"),
    )
    recalls = ("recall_sum", "n_series") if params.annotators == "tcpd" else None
    return with_ratios(frame, recalls)


def _areas(
    params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame], curve: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """One row per group: areas from every score, and from the thresholds of the stage."""
    table = counts["counts"]
    totals = add_up(table, keys, (*TOTALS, *SWEPT[:2]))
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
        return at_or_above(scores, keys, SWEPT[:2], None)
    return at_or_above(counts["counts"], keys, SWEPT[:2], None)


def _counts_of(rows: pl.DataFrame | None) -> tuple[Counts, Counts]:
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
    rows = tuple(
        (
            group_text(row),
            integer(row["n_series"]),
            integer(row["n_true"]),
            number(row[THRESHOLD]),
            interval(row, "precision"),
            interval(row, "recall"),
            interval(row, "f1"),
            percent(row["average_precision"]) if unit is None else _rate(row),
        )
        for row in shown.iter_rows(named=True)
    )
    values, title = f1_curve(curve, shown.head(1).select(keys))
    last = "average precision" if unit is None else f"false alarms per {unit}"
    return Summary(
        headers=(*HEADERS, last),
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(shown.row(0, named=True), _sentence(shown.row(0, named=True))),
        curve=values,
        curve_title=title,
        on_same_data=bool((shown[CHOICE] == SAME_DATA).any()),
    )


HEADERS = ("group", "series", "true points", "threshold", "precision", "recall", "F1")


def _rate(row: Mapping[str, object]) -> str:
    """A rate and its limits for people, with a mark behind doubtful limits."""
    rate, lower, upper = (row[name] for name in (RATE, f"{RATE}_lower", f"{RATE}_upper"))
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


def series_table(relations: Relations, *, tcpd: bool, covered: bool) -> After:
    """One row per run, over all its predictions."""

    def finish(runs: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        runs = with_ratios(runs.with_columns(one=pl.lit(1)), ("mean_recall", "one") if tcpd else None)
        mean = quotient(runs["delay_sum"], runs["n_delays"]).alias("mean_delay")
        rows = _named(runs.with_columns(mean), frames["runs"], relations, SERIES_COLUMNS)
        if CLUSTERS not in frames:
            return rows
        clusters = frames[CLUSTERS].with_columns(as_key(frames[CLUSTERS][CLUSTER]))
        return rows.join(clusters, on=SERIES_ID, how="left", maintain_order="left")

    covering: dict[str, exp.Expr] = {} if covered else {"covering": exp.cast(exp.null(), "DOUBLE")}
    query = statement(f"change_points/{'alarm_series' if relations.alarmed else 'series'}", columns=covering)
    clusters = {} if relations.cluster == SERIES_ID else {CLUSTERS: statement("change_points/clusters_of_series")}
    return _follow_up("series", query, relations, finish, clusters)


def delays_table(relations: Relations) -> After:
    """One row per matched prediction."""

    def finish(matches: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return _named(matches, frames["runs"], relations, DELAYS)

    return _follow_up("delays", statement("change_points/delays"), relations, finish)


def _follow_up(
    table: str,
    query: exp.Query,
    relations: Relations,
    finish: Finish,
    further: Mapping[str, exp.Query] = MappingProxyType({}),
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
