"""What change_points asks of an engine."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DataError
from ...plan import rows
from ...plan.counts import Query, Sweep, Transform
from ...plan.optional_tables import OptionalTable
from ...plan.plan import Plan
from ...plan.plausibility import pooled_systems
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...sources.types import TIME_TYPES
from ...tables.groupings import users_name
from . import checking, results
from .alarms import AlarmMatcher
from .contract import ALARM_TABLES, ANNOTATOR, COUNT_NAMES, INCIDENTS, LEADS, SERIES_ID, in_positions
from .points import RUN, Matcher
from .relations import OUTCOMES, Inputs, Relations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...plan.nodes import After
    from ...sources.source import Source
    from .contract import ChangePointsParameters

MOST_ROWS_FOR_SERIES = 10_000_000
MOST_ROWS_FOR_DELAYS = 1_000_000
KINDS = {"BIGINT": "integers", "DOUBLE": "floating numbers"} | dict.fromkeys(TIME_TYPES, "times")


def plan(params: ChangePointsParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the inputs, match the points of every run, and count what they add.

    Raises:
        DataError: an input lacks a column that the parameters need, or positions cannot be compared.
    """
    optional = (sources.get(name) for name in ("series", "runs", "coders"))
    return _Planner(params, Inputs(sources["predictions"], sources["annotations"], *optional)).plan()


@dataclass(frozen=True)
class _Planner:
    params: ChangePointsParameters
    inputs: Inputs

    def plan(self) -> Plan:
        by = self._by()
        checking.check_columns(self.params, self.inputs, by)
        relations = Relations(self.params, self.inputs, by, self.numbered)
        return Plan(
            nodes=(
                *relations.every(),
                *checking.checks(self.params, self.inputs, relations),
                self._matching(relations),
                *checking.cross_checks(self.params, self.inputs, relations),
                pooled_systems(self.inputs.predictions, by),
                *self._counts(relations),
                *rows.frame_in_time(relations.order),
                *self._after_results(relations),
            ),
            sources=self.inputs.given,
            by=by,
            used=("n_rows",),
            accounting=Query("change_points/accounting"),
            optional=(self._series, self._delays, *self._of_alarms(alarmed=relations.alarmed)),
            key_matches=(
                KeyMatch(
                    self.inputs.predictions, self.inputs.series or self.inputs.annotations, SERIES_ID, "unjudged_series"
                ),
            ),
            warnings=tuple(checking.warnings(self.inputs, by, self._kind)),
            facts={
                "matching": self.params.rule,
                "positions": self._kind,
                "independent": users_name(relations.cluster),
                "true_points": INCIDENTS if self.inputs.lasting else "points",
                "repeats": self._repeats,
            },
        )

    def _by(self) -> tuple[rows.Grouped, ...]:
        """Grouping columns: of predictions, of series, and the annotator."""
        annotated = (rows.Grouped(ANNOTATOR, "annotations", ANNOTATOR),) if self.params.annotators == "separate" else ()
        groupings = [[name for name in grouping if name != ANNOTATOR] for grouping in self.params.by]
        sources = [self.inputs.predictions, *([self.inputs.series] if self.inputs.series is not None else [])]
        by = rows.resolve_by(groupings, sources)
        return (*by, *annotated)

    @cached_property
    def _kind(self) -> str:
        """What the positions are, the same on both sides."""
        source_by_kind = {}
        for source, name in checking.positions(self.inputs, self.params):
            field = source.contract.field(name)
            sql_type = source.known_type(name, field) if field is not None else None
            if sql_type is not None:
                source_by_kind[KINDS[sql_type]] = source, name
        if len(source_by_kind) > 1:
            columns = sorted(
                (kind, f"{kind} in {source.name}.{name}") for kind, (source, name) in source_by_kind.items()
            )
            message = f"positions are {' but '.join(words for _, words in columns)}: the two cannot be compared exactly"
            raise DataError(message, remedy='Compute one of them as the other is: columns = { … = { sql = "…" } }.')
        kind = next(iter(source_by_kind), "times" if self.params.margin.is_duration else "integers")
        checking.check_lengths(self.params, self.inputs, kind)
        if kind == "times" and self.params.annotators == "tcpd":
            message = 'annotators = "tcpd" adds index 0 to both sides, but positions are times'
            raise DataError(message, remedy='Number the observations, or use "union" or "separate".')
        return kind

    @property
    def _repeats(self) -> str:
        """What repeats count as."""
        return self.params.repeats or ("ignore" if self.inputs.lasting else "false_alarm")

    @property
    def numbered(self) -> bool:
        """Whether positions number the observations of listed series."""
        series = self.inputs.series
        return series is not None and series.has("n_obs") and self._kind == "integers"

    @property
    def covered(self) -> bool:
        """Whether segments can be counted in observations."""
        return self.numbered and not self.inputs.lasting

    @property
    def _scored(self) -> bool:
        return self.inputs.predictions.has("score")

    @property
    def _delays(self) -> OptionalTable:
        return OptionalTable("change_points_delays", "delays", self.params.delays, MOST_ROWS_FOR_DELAYS, self._points)

    @property
    def _series(self) -> OptionalTable:
        return OptionalTable(
            "change_points_series", "series_counts", self.params.series_counts, MOST_ROWS_FOR_SERIES, self._points
        )

    @staticmethod
    def _of_alarms(*, alarmed: bool) -> Iterator[OptionalTable]:
        wish = "per, cooldown or repeats, or incidents that last,"
        for table in ALARM_TABLES:
            yield OptionalTable(table, "per", alarmed, wish=wish)

    @property
    def _points(self) -> tuple[Source, Source]:
        return self.inputs.annotations, self.inputs.predictions

    def _matching(self, relations: Relations) -> Transform:
        params = self.params
        matcher = Matcher(
            rule=params.rule,
            annotators=params.annotators,
            margin=params.margin.closed(closed=params.margin_boundary == "<="),
            kind=np.float64 if self._kind == "floating numbers" else np.int64,
            times=self._kind == "times",
            scored=self._scored,
            covered=self.covered,
            detailed=self._delays.is_possible or self._series.is_possible,
        )
        size = self.inputs.predictions.rows + self.inputs.annotations.rows
        match = self._alarms(matcher).match if relations.alarmed else matcher.match
        return Transform(OUTCOMES, relations.frames(), (RUN,), match, size, sizes=relations.sizes())

    def _alarms(self, matcher: Matcher) -> AlarmMatcher:
        params = self.params
        return AlarmMatcher(
            matcher=matcher,
            lasting=self.inputs.lasting,
            ignores_repeats=self._repeats == "ignore",
            cooldown=None if params.cooldown is None else in_positions(params.cooldown),
            grid=params.grid(),
        )

    def _counts(self, relations: Relations) -> Iterator[Query]:
        name = "alarm_" if relations.alarmed else ""
        if self._scored:
            sweep = Sweep("predictions", relations.outcomes_by_score(), "score", self.params.grid())
            yield Query(f"change_points/{name}counts", columns=COUNT_NAMES, sweep=sweep)
            if relations.alarmed:
                yield Query(f"change_points/{LEADS}", columns=("n_alerted",), keys=("lead",), sweep=sweep, into=LEADS)
            if self.params.area_scores == "every" and self.params.threshold_values is not None:
                yield Query("change_points/scores", columns=("n_predicted", "tp"), keys=("score",), into="scores")
        yield Query(f"change_points/{name}totals", columns=COUNT_NAMES)
        if relations.alarmed:
            yield Query("change_points/leads_always", columns=("n_alerted",), keys=("lead",), into=LEADS)
        if self.covered:
            yield Query("change_points/covering", columns=("n_covered", "covering"), into="covering")

    def _after_results(self, relations: Relations) -> Iterator[After]:
        if self._series.is_possible:
            yield results.series_table(relations, tcpd=self.params.annotators == "tcpd", covered=self.covered)
        if self._delays.is_possible:
            yield results.delays_table(relations)
