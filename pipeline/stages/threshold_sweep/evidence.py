"""Where the numbers of threshold_sweep come from, and what scikit-learn does otherwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...queries.dialect import column, double
from ...queries.load import statement
from ...tables.columns import THRESHOLD
from ...tables.ratios import FURTHER, OF_LABELS
from ..sections import EXPLAINED_ROWS, Convention, Evidence, Measure, Profile, Section
from ..stage import untold, with_influence
from .calibration import CALIBRATION_TABLE, RELIABILITY_TABLE
from .contract import DRAWN
from .outcomes import INPUTS, identity, location_of_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from ...tables.ratios import Index, Ratio
    from ..sections import Asked, Recounted


# What scikit-learn does otherwise.


_RATIOS = ("precision", "recall", "f1")


def _end_point(recounted: Recounted) -> float | None:
    """What the point (recall 0, precision 1) adds to the area beside (0, precision of the highest score).

    It is half of recall × (1 − precision) there: a triangle on top of the first strip.
    """
    curve = recounted.of_group("threshold_sweep_curve").sort(THRESHOLD)
    if curve.is_empty():
        return None
    row = curve.row(-1, named=True)
    if row["precision"] is None or row["recall"] is None:
        return None
    return float(row["recall"] * (1 - row["precision"]) / 2)


SCIKIT_LEARN = Profile(
    name="scikit-learn",
    tool="scikit-learn 1.9",
    measures={
        "precision": "precision_score(label, score >= threshold)",
        "recall": "recall_score(label, score >= threshold)",
        "f1": "f1_score(label, score >= threshold)",
        "average_precision": "average_precision_score(label, score)",
        "roc_auc": "roc_auc_score(label, score)",
        "pr_auc": "auc(recall, precision) of precision_recall_curve(label, score)",
        "brier": "brier_score_loss(label, score)",
    },
    conventions=(
        Convention(
            "rows without a finite score",
            "refuses them, so that they must be left out",
            {"invalid_scores": "drop"},
            keeps={"invalid_scores": "error"},  # then the run had none
            section=Section(
                "without_score",
                "Rows without a finite score",
                "Rows that count as below every threshold here, in the order of the files.",
                "threshold_sweep/explain/without_score",
                segment=identity,
                inputs=INPUTS,
                hides=location_of_known,
            ),
        ),
        Convention(
            "a score equal to the threshold",
            "is retrieved",
            {"boundary": ">="},
            measures=(*_RATIOS, "pr_auc"),
            section=Section(
                "at_threshold",
                "Rows with a score equal to the threshold",
                "Rows that are retrieved there and not here, in the order of the files.",
                "threshold_sweep/explain/at_threshold",
                segment=identity,
                inputs=INPUTS,
                hides=location_of_known,
            ),
        ),
        Convention("areas", "every score, in order", {"method": "exact"}, measures=("average_precision", "roc_auc")),
        Convention(
            "thresholds of the area",
            "every distinct score",
            {"thresholds": "distinct"},
            measures=("pr_auc",),
        ),
        Convention(
            "the point at recall 0",
            "precision is 1",
            ours="precision is that of the highest score",
            measures=("pr_auc",),
            change=_end_point,
        ),
        Convention(
            "nothing retrieved, or nothing to find",
            "0, with a warning (zero_division)",
            ours="NULL",
            measures=_RATIOS,
            undefined=0.0,
        ),
    ),
    exactly="with sample_weight where rows have weights",
)


# Where the numbers of threshold_sweep come from: errors, rows near the threshold, and clusters that carry them.


_CURVE, _AREAS = "threshold_sweep_curve", "threshold_sweep_areas"
_OF_BINS = (
    Measure(
        "share_positive",
        RELIABILITY_TABLE.name,
        ((("share_positive", "weight_positive / weight"),), (("share_positive", "n_positive / n"),)),
    ),
    Measure("gap", RELIABILITY_TABLE.name, ((("gap", "share_positive - mean_score"),),)),
)


def _measure(metric: Ratio | Index) -> Measure:
    """A number of the weights if there are any, else of the counts."""
    return Measure(metric.name, _CURVE, tuple(((metric.name, metric.formula(suffix)),) for suffix in ("_weight", "")))


def _rows(asked: Asked) -> exp.Query:
    """The predictions that count; those without a valid score may, below every threshold."""
    score: str | exp.Expr = "score"
    if asked.params.counts_missed:
        score = exp.func("coalesce", column("score"), double(-math.inf))
    relations = {} if asked.params.labels is None else {"predictions_read": DRAWN}
    return statement(
        "threshold_sweep/explain/rows", identity(asked), columns={"used_score": score}, relations=relations
    )


def _values(asked: Asked) -> dict[str, float]:
    threshold = asked.lowest_score if asked.threshold is None else asked.threshold
    return {"lowest_score": asked.lowest_score, "threshold": threshold}


def _clusters(clusters: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    if asked.params.labels is not None or asked.plan.sources[0].has("weight"):
        return with_influence(clusters, asked.measure, "_weight")
    return with_influence(clusters.select("cluster", "tp", "fp", "fn", "tn"), asked.measure)


def _without_clusters(asked: Asked) -> str:
    if not asked.params.cluster_column:
        return "the rows are independent: the config names no cluster"
    return untold(asked, "clusters", tuple(ratio.name for ratio in OF_LABELS))


EVIDENCE = Evidence(
    measures=(
        *map(_measure, OF_LABELS),
        *map(_measure, FURTHER),
        *(Measure(name, _AREAS) for name in ("average_precision", "pr_auc", "roc_auc", "log_likelihood", "brier")),
        *_OF_BINS,
        *(Measure(name, CALIBRATION_TABLE.name) for name in ("ece", "mce", "reliability", "spiegelhalter_z")),
    ),
    sections=(
        Section(
            "false_positives",
            "False positives",
            "Rows with a false label and a score that {threshold} retrieves, the highest scores first.",
            "threshold_sweep/explain/false_positives",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "false_negatives",
            "False negatives",
            "Rows with a true label and a score below {threshold}, the lowest scores first.",
            "threshold_sweep/explain/false_negatives",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "nearest",
            "Rows nearest to the threshold",
            "Rows in the order of their distance from {threshold}: a slightly other threshold turns these.",
            "threshold_sweep/explain/nearest",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "clusters",
            "Clusters that carry the estimate",
            "Each cluster with the {measure} that all others have without it; the largest influence first.",
            "threshold_sweep/explain/clusters",
            finish=_clusters,
            ranks=True,
            columns=lambda asked: {"cluster_key": str(asked.params.cluster_column)},
            absent=_without_clusters,
        ),
    ),
    rows=lambda asked: {EXPLAINED_ROWS: _rows(asked)},
    points="threshold_sweep_operating_points",
    values=_values,
    profiles=(SCIKIT_LEARN,),
    decides=("boundary", "thresholds", "invalid_scores", "cluster", "operating_points"),
)
