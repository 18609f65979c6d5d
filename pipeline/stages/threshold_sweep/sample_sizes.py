"""What the numbers of threshold_sweep rest on: rows, or clusters of them."""

from __future__ import annotations

from ..sample_sizes import Counted, SampleSizes

_POSITIVES, _KEPT = "positives", "kept predictions"
SAMPLE_SIZES = SampleSizes(
    nouns={"rows": "predictions"},
    counts=(
        Counted("predictions", ("tp", "fp", "fn", "tn")),
        Counted("predictions", ("n",)),
        Counted(_POSITIVES, ("tp", "fn")),
        Counted(_POSITIVES, ("n_positive",)),
        Counted("negatives", ("fp", "tn"), is_listed=False),
        Counted(_KEPT, ("tp", "fp")),
        Counted("positive or kept predictions", ("tp", "fp", "fn"), is_listed=False),
    ),
    rests_on={
        "precision": _KEPT,
        "recall": _POSITIVES,
        "fpr": "negatives",
        "f1": "positive or kept predictions",
        **dict.fromkeys(("average_precision", "pr_auc", "roc_auc"), _POSITIVES),
    },
    scales={
        "precision": "share",
        "recall": "share",
        "fpr": "share",
        "f1": "jaccard",
        **dict.fromkeys(("average_precision", "pr_auc", "roc_auc"), "logit"),
    },
    clusters="threshold_sweep_areas",
)
