"""What the numbers of ranking rest on: queries, of whose values they are means."""

from __future__ import annotations

from ..sample_sizes import SampleSizes

SAMPLE_SIZES = SampleSizes(
    nouns={"query_id": "queries"},
    unit="query_id",
    units={"query_id": "n_queries"},
    other_scale="mean",
    clusters="ranking_summary",
    has_groups=False,
)
