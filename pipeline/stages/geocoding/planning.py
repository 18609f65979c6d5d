"""What geocoding asks of an engine."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ConfigError, DataError
from ...metrics.geocoding.distance import geodesic
from ...plan import rows
from ...plan.checks import doubtful_groups, duplicate_check, missing_check
from ...plan.counts import Query, Sweep, Transform
from ...plan.optional_tables import OptionalTable
from ...plan.plan import Plan
from ...plan.plausibility import Roles, UnmappedId, pooled_systems
from ...queries.load import statement
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...sources.bins import Grid
from ...tables.columns import lowest_retrieved
from ...tables.groupings import users_name
from ..mentions.rows import MentionRows
from .contract import COUNT_NAMES
from .documents import TABLE as UNITS
from .documents import documents
from .locating import PLACE, SEVERAL, SPAN, AlignedPlaces, by_matching, coordinate_checks, of_pairs
from .row_tables import TABLE as OUTCOMES
from .row_tables import errors, exchanged, outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
            warnings=tuple(self._warnings()),
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
        return OptionalTable(OUTCOMES, "outcomes", self.params.outcomes, MOST_ROWS_FOR_OUTCOMES, sources)

    @property
    def units(self) -> OptionalTable:
        """The table of units."""
        sources = (self.gold, self.predicted)
        return OptionalTable(UNITS, "units", self.params.units, MOST_ROWS_FOR_OUTCOMES, sources, told=False)

    @cached_property
    def by(self) -> tuple[rows.Grouped, ...]:
        """The grouping columns, of predictions or of gold mentions."""
        return rows.resolve_by(self.params.by, self.sources)

    @cached_property
    def aligned(self) -> AlignedPlaces:
        """Places aligned by the id of the mention; distances on the ellipsoid are measured afterwards."""
        chosen = self.params.distance == "haversine"
        name = TOPONYMS if chosen else PAIRS
        return AlignedPlaces(self.params, self.predicted, self.gold, self.by, name, chosen)

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
            self._check_rank()
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

    def _check_rank(self) -> None:
        rank = self.predicted.field("rank")
        if rank is None:
            message = 'candidates = "first" needs the column rank in predicted'
            raise DataError(message, remedy='Map it, or use candidates = "closest".')
        self.predicted.types("rank", rank)

    def _read(self, source: Source) -> dict[str, Field]:
        """Columns that are read of an input."""
        taken = self.aligned.taken(source) if self.params.match is None else self.mentions.taken(source)
        return rows.fields_of(source, taken, self.by)

    def _checks(self) -> Iterator[Check]:
        for source in self.sources:
            yield from coordinate_checks(source, self._read(source))
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

    def _warnings(self) -> Iterator[str]:
        yield from doubtful_groups(self.sources, self.by)
