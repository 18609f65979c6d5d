"""Gold and predicted places aligned by the id of the mention, in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan import rows
from pipeline.plan.checks import duplicate_check, missing_check
from pipeline.plan.nodes import Relation
from pipeline.queries.dialect import column
from pipeline.stages.geocoding.coordinates import PLACE, haversine_distance, haversine_square
from pipeline.stages.geocoding.locating import SEVERAL
from pipeline.stages.mentions.rows import SYSTEMS, fault_of, key_type, systems_relation
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.plan.nodes import Check
    from pipeline.sources.source import Source
    from pipeline.stages.geocoding.contract import GeocodingParameters

UNITS = "gold_places"
CANDIDATES = "candidates"
KEY = "mention_id"
SHOWN = ("doc_id", "start", "end", "text")


@dataclass(frozen=True)
class AlignedPlaces:
    """Places of the same mention, side by side.

    Attributes:
        params: Parameters of the stage.
        predicted: Predicted places.
        gold: Gold places.
        by: The grouping columns.
        name: Relation of the pairs.
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
        return tuple(each.name for each in self.by if each.source == "predicted")

    @property
    def cluster(self) -> str:
        """The column of gold whose values are independent."""
        return self.params.cluster_column or ("doc_id" if self.gold.has("doc_id") else KEY)

    def taken(self, source: Source) -> tuple[str, ...]:
        """Columns that are read of gold or of predicted places."""
        if source is self.predicted:
            return (KEY, *PLACE, *(["rank"] if source.can_show("rank") else []))
        return tuple(dict.fromkeys((KEY, *PLACE, *self._shown_of_gold(), self.cluster)))

    def _shown_of_gold(self) -> list[str]:
        return [name for name in SHOWN if self.gold.can_show(name)]

    def relations(self) -> Iterator[Relation]:
        """Places as they are read, gold places with their replicate, candidates, and pairs."""
        fault = {"fault": fault_of((KEY,), has_score=False)}
        yield rows.read(self.predicted, self.taken(self.predicted), self.by, fault, located=True)
        yield rows.read(self.gold, self.taken(self.gold), self.by, {}, located=True)
        units = rows.Units(
            UNITS,
            KEY,
            fields=(*PLACE, *self._shown_of_gold()),
            cluster=self.cluster,
            replicated=self.params.uncertainty == "jackknife",
            replicates=None if self.params.replicates == "auto" else self.params.replicates,
        )
        yield from rows.units_relations(self.predicted, units, self.gold, self.by)
        yield systems_relation(self.systems)
        yield Relation(CANDIDATES, self._candidates())
        yield Relation(self.name, exp.union(self._of_gold(), self._spurious(), distinct=False), keep=self.chosen)

    def _candidates(self) -> exp.Select:
        """Predicted rows with their distance from the gold place, one for each mention if they are chosen here."""
        rank = column("rank", "p") if self.predicted.can_show("rank") else exp.cast(exp.null(), "DOUBLE")
        square = haversine_square("g", "p") if self.chosen else exp.cast(exp.null(), "DOUBLE")
        query = exp.select(
            *(column(name, "p") for name in (KEY, *self.systems, *PLACE)),
            exp.alias_(rank, "rank", quoted=True),
            exp.alias_(square, "_square", quoted=True),
            exp.alias_(exp.Not(this=_null(column(KEY, "g"))), "is_aligned", quoted=True),
        ).from_(exp.to_table("predicted_read").as_("p"))
        same = exp.EQ(this=column(KEY, "p"), expression=column(KEY, "g"))
        query = query.join(exp.to_table(UNITS).as_("g"), on=same, join_type="left")
        query = query.where(column("passes_where", "p"), _null(column("fault", "p")))
        distance = exp.alias_(haversine_distance(column("_square")), "distance_km", quoted=True)
        query = exp.select("*", distance).from_(query.subquery("beside_gold"))
        if not self.chosen or self.params.candidates == "error":
            return query
        order = ("rank" if self.params.candidates == "first" else "distance_km", *PLACE)
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[column(name) for name in (KEY, *self.systems)],
            order=exp.Order(expressions=[exp.Ordered(this=column(name), nulls_first=False) for name in order]),
        )
        ranked = exp.select("*", exp.alias_(place, "_place")).from_(query.subquery("every_candidate"))
        first = exp.EQ(this=column("_place"), expression=exp.Literal.number(1))
        return exp.select("*").from_(ranked.subquery("ranked")).where(first)

    def _of_gold(self) -> exp.Select:
        """Every gold place, once for each system, with its candidates."""
        of_gold = [column(each.name, "g") for each in self.by if each.source == "gold"]
        shown = [_shown(self.gold, name, "g") for name in SHOWN if name != "doc_id"]
        doc_id = column("doc_id", "g") if self.gold.has("doc_id") else exp.cast(exp.null(), "VARCHAR")
        query = exp.select(
            *(column(name, "s") for name in self.systems),
            *of_gold,
            column(REPLICATE, "g"),
            column(KEY, "g"),
            exp.alias_(doc_id, "doc_id", quoted=True),
            *shown,
            *(exp.alias_(column(name, "g"), f"gold_{name}", quoted=True) for name in PLACE),
            *_predicted(),
            *_flags(exp.true(), exp.Not(this=_null(column(KEY, "c")))),
        ).from_(exp.to_table(UNITS).as_("g"))
        query = query.join(exp.to_table(SYSTEMS).as_("s"), on=exp.true(), join_type="left")
        same = [exp.NullSafeEQ(this=column(name, "s"), expression=column(name, "c")) for name in self.systems]
        on = exp.and_(exp.EQ(this=column(KEY, "g"), expression=column(KEY, "c")), *same)
        return query.join(exp.to_table(CANDIDATES).as_("c"), on=on, join_type="left")

    def _spurious(self) -> exp.Select:
        """Predictions of mentions that gold lacks."""
        unknown = [each.name for each in self.by if each.source == "gold"]
        query = exp.select(
            *(column(name, "c") for name in self.systems),
            *(exp.alias_(exp.null(), name, quoted=True) for name in unknown),
            exp.alias_(exp.cast(exp.Literal.number(0), "SMALLINT"), REPLICATE, quoted=True),
            exp.alias_(self._like_gold(column(KEY, "c")), KEY, quoted=True),
            *(
                exp.alias_(exp.null(), name, quoted=True)
                for name in ("doc_id", *(f"gold_{name}" for name in (*SHOWN[1:], *PLACE)))
            ),
            *_predicted(),
            *_flags(exp.false(), exp.true()),
        ).from_(exp.to_table(CANDIDATES).as_("c"))
        return query.where(exp.Not(this=column("is_aligned", "c")))

    def _like_gold(self, value: exp.Expr) -> exp.Expr:
        """A key of the predictions with the type that it has in gold."""
        ours, theirs = (key_type(source, KEY) for source in (self.gold, self.predicted))
        return value if ours == theirs else exp.cast(value, ours, dialect="duckdb")

    def checks(self) -> Iterator[Check]:
        """Gold mentions that repeat or whose cluster is missing, and mentions with several predictions."""
        yield missing_check(self.gold, KEY)
        if self.cluster != KEY:
            yield missing_check(self.gold, self.cluster)
        yield duplicate_check(self.gold, (KEY,), remedy="Keep one row per gold mention.")
        if self.params.candidates == "error":
            yield duplicate_check(self.predicted, (KEY, *self.systems), remedy=SEVERAL)


def _null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def _shown(source: Source, name: str, table: str) -> exp.Expr:
    kind = "BIGINT" if name in {"start", "end"} else "VARCHAR"
    value = column(name, table) if source.can_show(name) else exp.cast(exp.null(), kind)
    return exp.alias_(value, f"gold_{name}", quoted=True)


def _predicted() -> tuple[exp.Expr, ...]:
    """Place, rank and distance of a candidate, called `c`."""
    places = (exp.alias_(column(name, "c"), f"predicted_{name}", quoted=True) for name in PLACE)
    return (*places, column("rank", "c"), column("distance_km", "c"))


def _flags(is_gold: exp.Expr, is_predicted: exp.Expr) -> tuple[exp.Expr, ...]:
    located = exp.Not(this=_null(column("latitude", "c")))
    named = (("is_gold", is_gold), ("is_predicted", is_predicted), ("is_located", located))
    return tuple(exp.alias_(value, name, quoted=True) for name, value in named)
