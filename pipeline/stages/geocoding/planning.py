"""What geocoding asks of an engine: coordinates checked, places aligned, distances counted."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sqlglot.expressions as exp

from ...errors import ConfigError, DataError
from ...metrics.geocoding.accuracy import geodesic
from ...plan import rows
from ...plan.accounting import Roles, UnmappedId, pooled_systems
from ...plan.checks import doubtful_groups, duplicate_check, file_check, missing_check
from ...plan.counts import Query, Sweep, Transform
from ...plan.nodes import After, CrossCheck, Relation
from ...plan.plan import OptionalTable, Plan
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...sources.bins import Grid
from ...sources.source import canonical_relation
from ...tables.columns import lowest_retrieved
from ...tables.groupings import users_name
from ..mentions import MentionRows, fault_of, key_type, systems_relation
from .contract import COUNT_NAMES, DOCUMENTS, GOLD, OUTCOMES
from .places import PLACE, SEVERAL, SPAN, by_matching, documents, errors, exchanged, of_pairs, outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...plan.checks import Faults
    from ...plan.nodes import After, Check, CrossCheck
    from ...sources.inputs import Field
    from ...sources.source import Source
    from .contract import GeocodingParameters


MOST_ROWS_FOR_OUTCOMES = 1_000_000
TOPONYMS, PAIRS = "toponyms", "pairs"


def plan(params: GeocodingParameters, sources: Mapping[str, Source]) -> Plan:
    """Align gold and predicted places, and count distances within every tolerance.

    Raises:
        DataError: an input lacks a column that the parameters need.
        ConfigError: the parameters do not fit the inputs.
    """
    return _Planner(params, sources["predicted"], sources["gold"]).plan()


def grid(params: GeocodingParameters) -> Grid:
    """The tolerances as thresholds of a score: minus the distance."""
    thresholds = tuple(sorted(0.0 - each for each in params.tolerances_km))
    return Grid(thresholds, ">=" if params.tolerance_boundary == "<=" else ">")


@dataclass(frozen=True)
class _Planner:
    params: GeocodingParameters
    predicted: Source
    gold: Source

    def plan(self) -> Plan:
        self._check_inputs()
        places = self.aligned if self.params.match is None else self.mentions
        distances = statement("geocoding/distances", [grouped.name for grouped in self.by])
        sweep = Sweep("toponyms_by_distance", distances, "score", grid(self.params))
        return Plan(
            nodes=(
                *places.relations(),
                *self._checks(),
                *self._looks(),
                *self._transforms(),
                exchanged(),
                Query("geocoding/located", columns=COUNT_NAMES, sweep=sweep),
                Query("geocoding/totals", columns=COUNT_NAMES),
                *rows.frame_in_time(self._order),
                *self._after_results(),
            ),
            sources=self.sources,
            key_matches=(KeyMatch(self.predicted, self.gold, "mention_id" if self.params.match is None else "doc_id"),),
            by=self.by,
            used=("n_predicted",),
            accounting=Query("geocoding/accounting"),
            optional=(self.outcomes, self.units),
            warnings=tuple(doubtful_groups(self.sources, self.by)),
            facts={
                "aligned_by": self.params.match or "mention_id",
                "independent": self._independent(),
                "units": self._independent(),
            },
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs, the primary input first."""
        return self.predicted, self.gold

    @property
    def outcomes(self) -> OptionalTable:
        """The table of gold mentions."""
        sources = (self.gold, self.predicted)
        return OptionalTable(OUTCOMES.name, "outcomes", self.params.outcomes, MOST_ROWS_FOR_OUTCOMES, sources)

    @property
    def units(self) -> OptionalTable:
        """The table of units."""
        sources = (self.gold, self.predicted)
        return OptionalTable(DOCUMENTS.name, "units", self.params.units, MOST_ROWS_FOR_OUTCOMES, sources, told=False)

    @cached_property
    def by(self) -> tuple[rows.Grouped, ...]:
        """The grouping columns, of predictions or of gold mentions."""
        return rows.resolve_by(self.params.by, self.sources)

    @cached_property
    def aligned(self) -> AlignedPlaces:
        """Places aligned by the id of the mention."""
        return AlignedPlaces(self.params, self.predicted, self.gold, self.by)

    @cached_property
    def mentions(self) -> MentionRows:
        """Mentions that have to be matched."""
        shown = ("doc_id", "mention_id", "start", "end", "text", *PLACE, "rank")
        return MentionRows(
            self.params, self.predicted, self.gold, None, self.by, self.params.needs(), shown, located=True
        )

    @property
    def _order(self) -> str | None:
        """The column that orders the clusters in time; None: their order means nothing."""
        return self.aligned.order if self.params.match is None else None

    def _independent(self) -> str:
        return users_name(self.aligned.cluster) if self.params.match is None else "doc_id"

    def _check_inputs(self) -> None:
        if self.params.distance == "geodesic":
            geodesic(*np.zeros((4, 1)))
        if self.params.candidates == "first":
            rank = self.predicted.field("rank")
            if rank is None:
                message = 'candidates = "first" needs the column rank in predicted'
                raise DataError(message, remedy='Map it, or use candidates = "closest".')
            self.predicted.types("rank", rank)
        if self.params.match is None:
            rows.check_keys(self.sources, "mention_id")
            return
        if self.params.cluster_order is not None:
            message = "cluster_order does not go with match: documents are the independent units"
            raise ConfigError(message, remedy="Leave cluster_order out.")
        if self.params.cluster not in {None, "doc_id"}:
            message = f"cluster: {self.params.cluster!r} does not go with match: documents are the independent units"
            raise ConfigError(message, remedy="Leave cluster out.")
        if self.params.candidates != "error" and not all(
            source.has(name) for source in self.sources for name in ("start", "end")
        ):
            message = (
                f'candidates = "{self.params.candidates}" with match needs start and end: they tell mentions apart'
            )
            raise DataError(message, remedy="Map them in gold and in predicted.")
        self.mentions.check()

    def _checks(self) -> Iterator[Check]:
        for source in self.sources:
            taken = self.aligned.taken(source) if self.params.match is None else self.mentions.taken(source)
            yield from coordinate_checks(source, rows.fields_of(source, taken, self.by))
        yield from (missing_check(self.gold, name) for name in PLACE)
        if self.params.candidates == "first":
            yield missing_check(self.predicted, "rank")
        if self.params.match is None:
            yield from self.aligned.checks()
            return
        yield from self.mentions.checks()
        if self.params.candidates == "error" and all(self.predicted.has(name) for name in SPAN):
            keys = dict.fromkeys(("doc_id", *SPAN, *self.params.needs(), *self.mentions.systems))
            yield duplicate_check(self.predicted, tuple(keys), remedy=SEVERAL, of_systems=True)

    def _looks(self) -> Iterator[CrossCheck | Roles | UnmappedId]:
        """What the rows tell of mentions that are counted twice, together, or as independent ones."""
        yield pooled_systems(self.predicted, self.by)
        if self.params.match is not None:
            yield from self.mentions.cross_checks()
            yield from self.mentions.repeats(self.gold)
        elif self.params.uncertainty != "none" and self.params.first_cluster is None and not self.gold.has("doc_id"):
            yield UnmappedId(self.gold, self.by, "doc_id", (), "which count as independent")

    def _transforms(self) -> Iterator[Transform]:
        number = self.predicted.rows + self.gold.rows
        if self.params.match is not None:
            frames = {"gold": self.mentions.rows_of_gold(), "predicted": self.mentions.rows_of_predicted()}
            match = by_matching(self.params, self.mentions.systems, self.mentions.of_gold, self.predicted.source_name)
            yield Transform(TOPONYMS, frames, ("doc_id",), match, number)
        elif self.params.distance == "geodesic":
            pairs = {PAIRS: self.aligned.pairs()}
            yield Transform(TOPONYMS, pairs, ("mention_id",), of_pairs(self.params, self.aligned.systems), number)

    def _after_results(self) -> Iterator[After]:
        by = [each.name for each in self.by]
        yield errors(self.params, by, in_time=self._order is not None)
        if self.outcomes.is_possible:
            tolerances = grid(self.params)
            yield outcomes(by, lowest_retrieved(tolerances.thresholds[-1], tolerances.boundary))
        if self.units.is_possible and self.params.tolerances_km:
            yield documents(self.params, by, unit="unit" if self.params.match is None else "doc_id")


# Checks of coordinates that name the file and the row.


def coordinate_checks(source: Source, read: Mapping[str, Field]) -> Iterator[Check]:
    """Coordinates that are infinite or off the Earth, and places of which only one coordinate is known.

    Args:
        source: The input.
        read: The columns that are read of it, grouping columns too, by their names in its relation.
    """
    for name in PLACE:
        # elsewhere an infinite value is NULL, as an unknown one is; the columns are those that are read otherwise, too,
        # because files are grouped by what is read of them
        with_state = canonical_relation(source, read, score=name, located=True)
        yield _check("infinite_coordinate", source, {"coordinate": name}, {"input_read": with_state})
    yield _check("latitude", source, {})
    yield _check("longitude", source, {})
    for missing, other in (PLACE, PLACE[::-1]):
        yield _check("half_a_place", source, {"coordinate": missing, "other": other})


def _check(
    name: str, source: Source, columns: Mapping[str, str], relations: Mapping[str, exp.Query] | None = None
) -> Check:
    """A check of sql/geocoding/checks, whose message names the first file and row itself."""

    def words(faults: Faults) -> dict[str, object]:
        fault = faults[0]
        remedy = "Correct these rows, or leave them out with where."
        if source.name != GOLD.name:
            remedy = "Correct these rows, leave them out with where, or make both NULL: not located."
        if fault["n_exchangeable"] == fault["n_rows"]:
            both = " and ".join(repr(source.source_name(coordinate)) for coordinate in PLACE)
            remedy = f"{both} are most likely exchanged: map them with columns = {{ latitude = …, … }}."
        place, row = str(fault["source_file"]), fault["first_row"]
        if source.without_places is None and isinstance(row, int):
            place = f"{place}, first at row {row + 1:,}"
        return {"place": place, "remedy": remedy}

    check = file_check(f"geocoding/checks/{name}", source, columns=columns, relations=relations, words=words)
    return replace(check, problem=None)


# Gold and predicted places aligned by the id of the mention, in SQL.


GOLD_PLACES = "gold_places"
CANDIDATES = "candidates"
KEY = "mention_id"
SHOWN_ALIGNED = {
    "doc_id": "VARCHAR",
    "start": "BIGINT",
    "end": "BIGINT",
    "text": "VARCHAR",
}  # types where gold lacks them


@dataclass(frozen=True)
class AlignedPlaces:
    """Places of the same mention, side by side.

    Attributes:
        params: Parameters of the stage.
        predicted: Predicted places.
        gold: Gold places.
        by: The grouping columns.
    """

    params: GeocodingParameters
    predicted: Source
    gold: Source
    by: tuple[rows.Grouped, ...]

    @property
    def chosen(self) -> bool:
        """Whether the distance is computed and one candidate chosen in SQL; on the ellipsoid they are afterwards."""
        return self.params.distance == "haversine"

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
        shown = (name for name in SHOWN_ALIGNED if self.gold.can_show(name))
        return tuple(dict.fromkeys((KEY, *PLACE, *shown, self.cluster, *([] if self.order is None else [self.order]))))

    def relations(self) -> Iterator[Relation]:
        """Places as they are read, gold places with their replicate, candidates, and pairs."""
        derived: dict[str, exp.Expr] = {"fault": fault_of((KEY,), has_score=False)}
        if not self.predicted.can_show("rank"):
            derived["rank"] = exp.cast(exp.null(), "DOUBLE")
        yield rows.read(self.predicted, self.taken(self.predicted), self.by, derived, located=True)
        of_gold = self.taken(self.gold)
        not_shown = {name: exp.cast(exp.null(), kind) for name, kind in SHOWN_ALIGNED.items() if name not in of_gold}
        yield rows.read(self.gold, of_gold, self.by, not_shown, located=True)
        units = rows.Units(
            GOLD_PLACES,
            KEY,
            fields=tuple(dict.fromkeys((*PLACE, *SHOWN_ALIGNED, *([] if self.cluster == KEY else [self.cluster])))),
            cluster=self.cluster,
            order=self.order,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )
        yield from rows.units_relations(self.predicted, units, self.gold, self.by)
        yield systems_relation(self.systems)
        yield from self._candidates()
        if self.chosen:
            yield Relation(TOPONYMS, self.pairs(), keep=True)

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
        in_gold, in_predicted = (key_type(source, KEY) for source in (self.gold, self.predicted))
        as_in_gold = KEY if in_gold == in_predicted else exp.cast(column(KEY, "c"), in_gold, dialect="duckdb")
        columns = {"unaligned_id": as_in_gold, "unit_key": self.cluster}
        return statement("geocoding/toponyms", segment, columns=columns)

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
