"""What scikit-learn does otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tables.columns import THRESHOLD
from ..profiles import Convention, Profile
from ..sections import Section
from .outcomes import INPUTS, identity, location_of_known

if TYPE_CHECKING:
    from ..profiles import Recounted

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
