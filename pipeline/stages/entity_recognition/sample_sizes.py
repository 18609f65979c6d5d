"""What the numbers of entity_recognition rest on: documents, with their mentions."""

from __future__ import annotations

from ..sample_sizes import Counted, SampleSizes

_GOLD, _PREDICTED = "gold mentions", "predicted mentions"
SAMPLE_SIZES = SampleSizes(
    nouns={"doc_id": "documents"},
    units={"doc_id": "n_documents"},
    counts=(
        Counted(_GOLD, ("tp", "fn")),
        Counted(_PREDICTED, ("tp", "fp")),
        Counted("gold or predicted mentions", ("tp", "fp", "fn"), is_listed=False),
    ),
    rests_on={"precision": _PREDICTED, "recall": _GOLD, "f1": "gold or predicted mentions"},
    scales={"precision": "share", "recall": "share", "f1": "jaccard"},
    clusters="entity_recognition_scores",
)
