"""What the numbers of geocoding rest on: documents, or mentions, with their places."""

from __future__ import annotations

from ..sample_sizes import Counted, SampleSizes

_GOLD, _LOCATED = "gold mentions", "located mentions"
SAMPLE_SIZES = SampleSizes(
    nouns={"doc_id": "documents", "mention_id": "gold mentions"},
    counts=(
        Counted(_GOLD, ("n_gold",)),
        Counted(_LOCATED, ("n_attempted",)),
        Counted(_LOCATED, ("n_located",)),
    ),
    rests_on={"precision": _LOCATED, "recall": _GOLD, "f1": _GOLD},
    scales={"precision": "share", "recall": "share", "f1": "jaccard", "mean_km": "log"},
    clusters="geocoding_scores",
    sized_by=_GOLD,
)
