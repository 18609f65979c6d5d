"""Where the numbers of change_points come from: missed and false points with their neighbours, and series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...plan.counts import Query, Transform
from ...plan.nodes import Relation
from ...queries.dialect import column, double
from ...queries.load import statement
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from ..units import untold, with_influence
from .alarms import FALSE, MERGED, REPEAT, TRUE
from .contract import ALARMS, INCIDENTS, LEADS, SERIES_ID
from .points import RUN
from .profiles import PROFILES
from .relations import OUTCOMES, RUNS_OF_SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...plan.nodes import Node
    from ..sections import Asked

_CURVE, _AREAS = "change_points_curve", "change_points_areas"
_MEASURES = {
    "precision": "tp / n_predicted",
    "recall": "tp / n_true",
    "f1": "2 * tp / (n_predicted + n_true)",
}
_RATES = {"false_alarm_rate": "n_false / observed", "time_between_false_alarms": "observed / n_false"}
_WHY = {REPEAT: "it repeats a detection", MERGED: "it comes within the cooldown"}
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


def _is_alarmed(asked: Asked) -> bool:
    """Whether points are counted as alarms."""
    return any(isinstance(node, Query) and node.into == LEADS for node in asked.plan.nodes)


def _rows(asked: Asked) -> dict[str, str | exp.Query]:
    shown: dict[str, str | exp.Expr] = {"is_shown": exp.true()}
    if _is_alarmed(asked):
        shown["is_shown"] = column("is_prediction", "m")
    else:
        is_true = column("tp", "m") > exp.Literal.number(0)
        shown["status"] = exp.Case().when(is_true, exp.Literal.number(TRUE)).else_(exp.Literal.number(FALSE))
        if asked.params.annotators == "tcpd":
            shown["is_shown"] = column("is_row", "m")
    rows = statement("change_points/explain/rows", asked.by, columns=shown)
    detected = statement("change_points/explain/detected_of_runs", asked.by)
    return {EXPLAINED_ROWS: rows, "explained_runs": RUNS_OF_SERIES, "explained_detections": detected}


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
    wrong = points.filter(pl.col("status") == FALSE).drop("status", "true_position")
    beside = _beside(wrong, _like(frames["true_points"], points), "nearest_true_point")
    order = [pl.col(SERIES_ID), *map(pl.col, asked.by), pl.col("position")]
    return beside.sort(pl.col("score"), *order, descending=[True] + [False] * len(order), nulls_last=True)


def _missed(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """True points that no prediction is matched with, beside the nearest prediction that counts."""
    missed = _like(frames["true_points"], points).join(frames["detected"], on=[RUN, "position"], how="anti")
    beside = _beside(missed, points, "nearest_prediction")
    return beside.sort(pl.col("distance").abs(), SERIES_ID, *asked.by, "position", nulls_last=True)


def _series(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Series with their counts, and the ratio that all others have together."""
    is_true, counts_as_either = pl.col("status") == TRUE, pl.col("status").is_in([TRUE, FALSE])
    numbers = {"n_predicted": counts_as_either, "tp": is_true}
    predicted = points.group_by(SERIES_ID).agg(
        *(rows.sum().cast(pl.Int64).alias(name) for name, rows in numbers.items())
    )
    true = frames["true_points"].group_by(SERIES_ID).agg(pl.len().cast(pl.Int64).alias("n_true"))
    counts = true.join(predicted, on=SERIES_ID, how="full", coalesce=True)
    counts = counts.with_columns(pl.col("n_true", "n_predicted", "tp").fill_null(0).cast(pl.Int64)).sort(SERIES_ID)
    fp, fn = (pl.col(name) - pl.col("tp") for name in ("n_predicted", "n_true"))
    return with_influence(counts.select(SERIES_ID, "tp", fp.alias("fp"), fn.alias("fn")), asked.measure)


def _not_counted(points: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Predictions that count neither as true nor as false, and why."""
    silent = points.filter(pl.col("status").is_in(list(_WHY)))
    why = pl.col("status").replace_strict(_WHY, default=None, return_dtype=pl.String).alias("why")
    order = [pl.col(SERIES_ID), *map(pl.col, asked.by), pl.col("position")]
    sorted_rows = silent.sort(pl.col("score"), *order, descending=[True] + [False] * len(order), nulls_last=True)
    return sorted_rows.with_columns(why).drop("status", "true_position", RUN)


def _without_matches(asked: Asked) -> str:
    rule = asked.params.rule
    if rule == "any" and asked.plan.facts["true_points"] == INCIDENTS:
        return ""
    words = f'with matching = "{rule}" several points can share a match, so that no point is missed by itself'
    return "" if rule == "one_to_one" and asked.params.annotators != "tcpd" else words


def _without_influence(asked: Asked) -> str:
    return _without_matches(asked) or untold(asked, "series")


def _without_alarms(asked: Asked) -> str:
    return "" if _is_alarmed(asked) else "every prediction counts: neither cooldown nor repeats is set"


EVIDENCE = Evidence(
    measures=(
        *(Measure(name, _CURVE, (((name, formula),),)) for name, formula in _MEASURES.items()),
        *(Measure(name, ALARMS.name, (((name, formula),),)) for name, formula in _RATES.items()),
        Measure("mean_lead", ALARMS.name),
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
            reads={"true_points": _TRUE_POINTS, "detected": "change_points/explain/detected"},
            finish=_missed,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_matches,
        ),
        Section(
            "series",
            "Series that carry the scores",
            "Each series with the {measure} that all others have together without it; the largest influence first.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_series,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_influence,
        ),
        Section(
            "not_counted",
            "Alarms that count neither way",
            "Predictions at {threshold} that come within the cooldown after an earlier alarm of their run, or that lie "
            "near a true point and do not detect it; the highest scores first.",
            _POINTS,
            finish=_not_counted,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_alarms,
        ),
    ),
    rows=_rows,
    points="change_points_operating_points",
    nodes=_nodes,
    parameters={"delays": True, "series_counts": True},
    profiles=PROFILES,
    decides=(
        *("margin", "margin_boundary", "matching", "annotators", "boundary", "duplicates"),
        *("cooldown", "repeats", "per"),
    ),
)
