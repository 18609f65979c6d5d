"""Tables of other stages that have one row per unit: one line for each kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.metrics.comparison.pooled import RATIOS

POOLED = tuple(f"pooled_{name}" for name in RATIOS)


@dataclass(frozen=True)
class UnitTable:
    """The table of a kind that has one row per unit.

    Attributes:
        table: Its name.
        unit: Its column that identifies a unit.
        columns: Its names of counts, where they differ: ours = theirs.
        metrics: What is compared unless the config says otherwise.
        grouped: Whether it has rows for the groupings of its stage, not only for the total.
    """

    table: str
    unit: str
    columns: dict[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = POOLED
    grouped: bool = True


_RETRIEVED = {"tp": "n_relevant_retrieved", "n_predicted": "n_retrieved", "n_true": "n_relevant"}
_RANKED = ("average_precision", "r_precision", "reciprocal_rank")

UNIT_TABLES = {
    "before_after": UnitTable("before_after_events", "event_id", grouped=False),
    "entity_recognition": UnitTable("entity_recognition_documents", "doc_id"),
    "change_points": UnitTable("change_points_series", "series_id"),
    "ranking": UnitTable("ranking_queries", "query_id", _RETRIEVED, _RANKED),
}
