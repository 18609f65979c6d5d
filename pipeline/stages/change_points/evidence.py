"""Where the numbers of change_points come from: missed and false points with their neighbours, and series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from pipeline.plan.nodes import Relation
from pipeline.plan.transforms import Transform
from pipeline.queries.dialect import column, double
from pipeline.queries.load import statement
from pipeline.stages.change_points.contract import SERIES_ID
from pipeline.stages.change_points.points import RUN
from pipeline.stages.change_points.profiles import PROFILES
from pipeline.stages.change_points.relations import OUTCOMES, RUNS_OF_SERIES
from pipeline.stages.evidence import Evidence, Measure
from pipeline.stages.influence import with_influence
from pipeline.stages.sections import EXPLAINED_ROWS, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.plan.nodes import Node
    from pipeline.stages.sections import Asked

_CURVE, _AREAS = "change_points_curve", "change_points_areas"
_MEASURES = {
    "precision": "tp / n_predicted",
    "recall": "tp / n_true",
    "f1": "2 * tp / (n_predicted + n_true)",
}
_POINTS, _TRUE_POINTS = "change_points/explain/points", "change_points/explain/true_points"
_MICROSECONDS_PER_HOUR = 3.6e9
_INPUTS = {"series": {SERIES_ID: SERIES_ID}}


def _nodes(asked: Asked) -> tuple[Node, ...]:
    """The points of every run matched anew, of the predictions that count at the threshold."""
    matching = next(node for node in asked.plan.nodes if isinstance(node, Transform) and node.into == OUTCOMES)
    reads = dict(matching.reads)
    if asked.threshold is not None:
        retrieved = column("score") >= double(asked.lowest_score)
        reads["predictions"] = exp.select("*").from_(reads["predictions"].subquery("predictions")).where(retrieved)
    return replace(matching, reads=reads), Relation("annotations_of_runs", matching.reads["annotations"])


def _rows(asked: Asked) -> dict[str, str | exp.Query]:
    is_shown = column("is_row", "m") if asked.params.annotators == "tcpd" else exp.true()
    rows = statement("change_points/explain/rows", asked.by, columns={"is_shown": is_shown})
    return {EXPLAINED_ROWS: rows, "explained_runs": RUNS_OF_SERIES}


def _like(true_points: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """True points with positions of the type that predictions have: numbers, or times of microseconds."""
    return true_points.with_columns(pl.col("position").cast(points.schema["position"]))


def _beside(points: pl.DataFrame, neighbours: pl.DataFrame, name: str) -> pl.DataFrame:
    """Points with the nearest neighbour of their run, called `name`, and their distance from it, in hours for times."""
    right = neighbours.select(RUN, pl.col("position").alias("_at"), pl.col("position").alias(name)).sort("_at")
    joined = points.sort("position").join_asof(
        right, left_on="position", right_on="_at", by=RUN, strategy="nearest", check_sortedness=False
    )
    difference = pl.col("position") - pl.col(name)
    if points.schema["position"].is_temporal():
        difference = difference.dt.total_microseconds() / _MICROSECONDS_PER_HOUR
    return joined.with_columns(difference.alias("distance")).drop(RUN, "_at", strict=False)


def _false_points(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Predictions that are no true positive, beside the nearest true point."""
    wrong = points.filter(pl.col("tp") == 0).drop("tp", "true_position")
    beside = _beside(wrong, _like(frames["true_points"], points), "nearest_true_point")
    order = [pl.col(SERIES_ID), *map(pl.col, asked.by), pl.col("position")]
    return beside.sort(pl.col("score"), *order, descending=[True] + [False] * len(order), nulls_last=True)


def _missed(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """True points that no prediction is matched with, beside the nearest prediction that counts."""
    matched = points.filter(pl.col("tp") > 0).select(RUN, pl.col("true_position").alias("position"))
    missed = _like(frames["true_points"], points).join(matched, on=[RUN, "position"], how="anti")
    beside = _beside(missed, points, "nearest_prediction")
    return beside.sort(pl.col("distance").abs(), SERIES_ID, *asked.by, "position", nulls_last=True)


def _series(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Series with their counts, and the ratio that all others have together."""
    predicted = points.group_by(SERIES_ID).agg(pl.len().cast(pl.Int64).alias("n_predicted"), pl.col("tp").sum())
    true = frames["true_points"].group_by(SERIES_ID).agg(pl.len().cast(pl.Int64).alias("n_true"))
    counts = true.join(predicted, on=SERIES_ID, how="full", coalesce=True)
    counts = counts.with_columns(pl.col("n_true", "n_predicted", "tp").fill_null(0).cast(pl.Int64)).sort(SERIES_ID)
    fp, fn = (pl.col(name) - pl.col("tp") for name in ("n_predicted", "n_true"))
    return with_influence(counts.select(SERIES_ID, "tp", fp.alias("fp"), fn.alias("fn")), asked.measure)


def _without_matches(asked: Asked) -> str:
    rule = asked.params.rule
    words = f'with matching = "{rule}" several points can share a match, so that no point is missed by itself'
    return "" if rule == "one_to_one" and asked.params.annotators != "tcpd" else words


EVIDENCE = Evidence(
    measures=(
        *(Measure(name, _CURVE, (((name, formula),),)) for name, formula in _MEASURES.items()),
        *(Measure(name, _AREAS) for name in ("average_precision", "pr_auc", "pr_auc_roerich", "covering")),
    ),
    sections=(
        Section(
            "false_points",
            "False points",
            "Predictions at {threshold} that are matched with no true point, beside the nearest true point of the "
            "series; the highest scores first. The distance is in the unit of the positions, in hours for times.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_false_points,
            ranks=True,
            inputs=_INPUTS,
        ),
        Section(
            "missed",
            "Missed points",
            "True points that no prediction at {threshold} is matched with, beside the nearest prediction, which may "
            "be matched with another point; the nearest first.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_missed,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_matches,
        ),
        Section(
            "series",
            "Series that carry the scores",
            "Each series with the ratio that all others have together without it; the largest influence first.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_series,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_matches,
        ),
    ),
    rows=_rows,
    points="change_points_operating_points",
    nodes=_nodes,
    parameters={"delays": True, "series_counts": True},
    profiles=PROFILES,
    decides=("margin", "margin_boundary", "matching", "annotators", "boundary", "duplicates"),
)
