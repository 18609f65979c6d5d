"""Gold and predicted places aligned by the id of the mention, in SQL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...plan import rows
from ...plan.checks import duplicate_check, missing_check
from ...plan.nodes import Relation
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ..mentions.rows import fault_of, key_type, systems_relation
from .coordinates import PLACE
from .locating import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...plan.nodes import Check
    from ...sources.source import Source
    from .contract import GeocodingParameters

GOLD_PLACES = "gold_places"
CANDIDATES = "candidates"
KEY = "mention_id"
SHOWN = {"doc_id": "VARCHAR", "start": "BIGINT", "end": "BIGINT", "text": "VARCHAR"}  # types where gold lacks them


@dataclass(frozen=True)
class AlignedPlaces:
    """Places of the same mention, side by side.

    Attributes:
        params: Parameters of the stage.
        predicted: Predicted places.
        gold: Gold places.
        by: The grouping columns.
        name: Relation of the pairs, if SQL makes them ready.
        chosen: Whether the distance is computed and one candidate chosen in SQL.
    """

    params: GeocodingParameters
    predicted: Source
    gold: Source
    by: tuple[rows.Grouped, ...]
    name: str
    chosen: bool

    @property
    def systems(self) -> tuple[str, ...]:
        """Grouping columns of the predictions."""
        return tuple(grouped.name for grouped in self.by if grouped.source == "predicted")

    @property
    def of_gold(self) -> tuple[str, ...]:
        """Grouping columns of gold."""
        return tuple(grouped.name for grouped in self.by if grouped.source == "gold")

    @property
    def cluster(self) -> str:
        """The column of gold whose values are independent."""
        return self.params.cluster_column or ("doc_id" if self.gold.has("doc_id") else KEY)

    @cached_property
    def order(self) -> str | None:
        """The column of gold that orders the clusters in time, as it is read; None: their order means nothing."""
        if self.params.first_cluster is None or not self.params.is_replicated:
            return None
        return rows.order_of_clusters(self.gold, self.params.first_cluster, self.params.cluster_order)

    def taken(self, source: Source) -> tuple[str, ...]:
        """Columns that are read of gold or of predicted places."""
        if source is self.predicted:
            return (KEY, *PLACE, *(["rank"] if source.can_show("rank") else []))
        shown = (name for name in SHOWN if self.gold.can_show(name))
        return tuple(dict.fromkeys((KEY, *PLACE, *shown, self.cluster, *([] if self.order is None else [self.order]))))

    def relations(self) -> Iterator[Relation]:
        """Places as they are read, gold places with their replicate, candidates, and pairs."""
        fault: dict[str, exp.Expr] = {"fault": fault_of((KEY,), has_score=False)}
        for source, derived in ((self.predicted, fault | self._no_rank()), (self.gold, self._not_shown())):
            yield rows.read(source, self.taken(source), self.by, derived, located=True)
        units = rows.Units(
            GOLD_PLACES,
            KEY,
            fields=tuple(dict.fromkeys((*PLACE, *SHOWN, *([] if self.cluster == KEY else [self.cluster])))),
            cluster=self.cluster,
            order=self.order,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )
        yield from rows.units_relations(self.predicted, units, self.gold, self.by)
        yield systems_relation(self.systems)
        yield from self._candidates()
        if self.chosen:
            yield Relation(self.name, self.pairs(), keep=True)

    def _no_rank(self) -> dict[str, exp.Expr]:
        return {} if self.predicted.can_show("rank") else {"rank": exp.cast(exp.null(), "DOUBLE")}

    def _not_shown(self) -> dict[str, exp.Expr]:
        """The columns of gold that are shown and that it lacks: NULL."""
        columns = self.taken(self.gold)
        return {name: exp.cast(exp.null(), sql_type) for name, sql_type in SHOWN.items() if name not in columns}

    def _candidates(self) -> Iterator[Relation]:
        """Predicted rows with their distance from the gold place, one for each mention if they are chosen here."""
        name = "candidates" if self.chosen else "unmeasured_candidates"
        candidates = statement(f"geocoding/{name}", self.systems)
        if not self.chosen or self.params.candidates == "error":
            yield Relation(CANDIDATES, candidates)
            return
        yield Relation("every_candidate", candidates)
        candidates_of_all = {"candidates": "every_candidate"}
        preference = {"preference": "rank" if self.params.candidates == "first" else "distance_km"}
        query = "geocoding/chosen_candidates"
        yield Relation(CANDIDATES, statement(query, self.systems, relations=candidates_of_all, columns=preference))

    def pairs(self) -> exp.Query:
        """Every gold place, once for each system, with its candidates, and candidates of mentions that gold lacks."""
        segment = {"s": self.systems, "c": self.systems, "g": self.of_gold}
        columns = {"unaligned_id": self._unaligned_id(), "unit_key": self.cluster}
        return statement("geocoding/toponyms", segment, columns=columns)

    def _unaligned_id(self) -> str | exp.Expr:
        """The key of predictions with the type that it has in gold."""
        in_gold, in_predicted = (key_type(source, KEY) for source in (self.gold, self.predicted))
        return KEY if in_gold == in_predicted else exp.cast(column(KEY, "c"), in_gold, dialect="duckdb")

    def checks(self) -> Iterator[Check]:
        """Gold mentions that repeat or whose cluster is missing, and mentions with several predictions."""
        yield missing_check(self.gold, KEY)
        if self.cluster != KEY:
            yield missing_check(self.gold, self.cluster)
        if self.order not in {None, self.cluster}:
            yield missing_check(self.gold, str(self.order))
        yield duplicate_check(self.gold, (KEY,), remedy="Keep one row per gold mention.")
        if self.params.candidates == "error":
            yield duplicate_check(self.predicted, (KEY, *self.systems), remedy=SEVERAL, of_systems=True)
