"""The plan of change_points: inputs checked, and relations."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sqlglot.expressions as exp

from ...base.dialect import column
from ...base.errors import DataError, Note
from ...base.records import dataclass
from ...base.schemas import internal_name, users_name
from ...base.sql_files import statement
from ...base.visible_text import rows_in_words
from ...plan import rows
from ...plan.counts import Query, Sweep, Transform
from ...plan.nodes import (
    CrossCheck,
    Grouped,
    Relation,
    doubtful_groups,
    doubtful_scores,
    duplicate_check,
    file_check,
    missing_check,
    negative_check,
    outside_check,
)
from ...plan.plan import OptionalTable, Plan
from ...plan.roles import pooled_systems
from ...sources.bindings import KeyMatch
from ...sources.types import TIME_TYPES
from . import results
from .contract import (
    ALARM_TABLES,
    ANNOTATOR,
    COUNT_NAMES,
    END,
    INCIDENTS,
    LEADS,
    POSITION,
    SERIES_ID,
    START,
    in_positions,
)
from .points import RUN, AlarmMatcher, Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...plan.nodes import Check, Faults
    from ...sources.source import Source
    from .contract import ChangePointsParameters


MOST_ROWS_FOR_SERIES = 10_000_000
MOST_ROWS_FOR_DELAYS = 1_000_000
WISH_OF_ALARMS = "per, cooldown or repeats, or incidents that last,"
KINDS = {"BIGINT": "integers", "DOUBLE": "floating numbers"} | dict.fromkeys(TIME_TYPES, "times")


def plan(params: ChangePointsParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the inputs, match the points of every run, and count what they add.

    Raises:
        DataError: an input lacks a column that the parameters need, or positions cannot be compared.
    """
    optional = (sources.get(name) for name in ("series", "runs", "coders"))
    inputs = Inputs(sources["predictions"], sources["annotations"], *optional)
    by = _grouping_columns(params, inputs)
    _check_columns(params, inputs, by)
    kind = _kind_of_positions(params, inputs)
    is_numbered = inputs.series is not None and inputs.series.has("n_obs") and kind == "integers"
    relations = Relations(params, inputs, by, is_numbered)
    repeats = params.repeats or ("ignore" if inputs.lasting else "false_alarm")
    points = (inputs.annotations, inputs.predictions)
    series = OptionalTable("change_points_series", "series_counts", params.series_counts, MOST_ROWS_FOR_SERIES, points)
    delays = OptionalTable("change_points_delays", "delays", params.delays, MOST_ROWS_FOR_DELAYS, points)
    matcher = Matcher(
        rule=params.rule,
        annotators=params.annotators,
        margin=params.margin.closed(closed=params.margin_boundary == "<="),
        kind=np.float64 if kind == "floating numbers" else np.int64,
        times=kind == "times",
        scored=inputs.predictions.has("score"),
        covered=relations.covered,
        detailed=delays.is_possible or series.is_possible,
    )
    return Plan(
        nodes=(
            *relations.every(),
            *_checks(relations),
            _matching(relations, matcher, ignores_repeats=repeats == "ignore"),
            *_cross_checks(relations),
            pooled_systems(inputs.predictions, by),
            *_counts(relations),
            *rows.frame_in_time(relations.order),
            *([results.series_table(relations)] if series.is_possible else []),
            *([results.delays_table(relations)] if delays.is_possible else []),
        ),
        sources=inputs.given,
        by=by,
        used=("n_rows",),
        accounting=Query("change_points/accounting"),
        optional=(
            series,
            delays,
            *(OptionalTable(table, "per", relations.alarmed, wish=WISH_OF_ALARMS) for table in ALARM_TABLES),
        ),
        key_matches=(KeyMatch(inputs.predictions, inputs.series or inputs.annotations, SERIES_ID, "unjudged_series"),),
        warnings=tuple(_warnings(inputs, by, kind)),
        facts={
            "matching": params.rule,
            "positions": kind,
            "independent": users_name(relations.cluster),
            "true_points": INCIDENTS if inputs.lasting else "points",
            "repeats": repeats,
        },
    )


def _grouping_columns(params: ChangePointsParameters, inputs: Inputs) -> tuple[Grouped, ...]:
    """Grouping columns: of predictions, of series, and the annotator."""
    annotated = (Grouped(ANNOTATOR, "annotations", ANNOTATOR),) if params.annotators == "separate" else ()
    groupings = [[name for name in grouping if name != ANNOTATOR] for grouping in params.by]
    sources = [inputs.predictions, *([] if inputs.series is None else [inputs.series])]
    return (*rows.resolve_by(groupings, sources), *annotated)


def _kind_of_positions(params: ChangePointsParameters, inputs: Inputs) -> str:
    """The kind of the positions, the same on both sides."""
    source_by_kind = {}
    for source, name in positions(inputs, params):
        field = source.contract.field(name)
        sql_type = source.known_type(name, field) if field is not None else None
        if sql_type is not None:
            source_by_kind[KINDS[sql_type]] = source, name
    if len(source_by_kind) > 1:
        columns = sorted((kind, f"{kind} in {source.name}.{name}") for kind, (source, name) in source_by_kind.items())
        message = f"positions are {' but '.join(words for _, words in columns)}: the two cannot be compared exactly"
        raise DataError(message, remedy='Compute one of them as the other is: columns = { … = { sql = "…" } }.')
    kind = next(iter(source_by_kind), "times" if params.margin.is_duration else "integers")
    _check_lengths(params, inputs, kind)
    if kind == "times" and params.annotators == "tcpd":
        message = 'annotators = "tcpd" adds index 0 to both sides, but positions are times'
        raise DataError(message, remedy='Number the observations, or use "union" or "separate".')
    return kind


def _matching(relations: Relations, matcher: Matcher, *, ignores_repeats: bool) -> Transform:
    """What every prediction adds, as points or as alarms."""
    params, inputs = relations.params, relations.inputs
    alarms = AlarmMatcher(
        matcher=matcher,
        lasting=inputs.lasting,
        ignores_repeats=ignores_repeats,
        cooldown=None if params.cooldown is None else in_positions(params.cooldown),
        grid=params.grid(),
    )
    match = alarms.match if relations.alarmed else matcher.match
    size = inputs.predictions.rows + inputs.annotations.rows
    return Transform(OUTCOMES, relations.frames(), (RUN,), match, size, sizes=relations.sizes())


def _counts(relations: Relations) -> Iterator[Query]:
    """Counts of points, or of alarms and their leads, at every score and of all; and sums of coverings."""
    params, name = relations.params, "alarm_" if relations.alarmed else ""
    if relations.inputs.predictions.has("score"):
        sweep = Sweep("predictions", relations.outcomes_by_score(), "score", params.grid())
        yield Query(f"change_points/{name}counts", columns=COUNT_NAMES, sweep=sweep)
        if relations.alarmed:
            yield Query(f"change_points/{LEADS}", columns=("n_alerted",), keys=("lead",), sweep=sweep, into=LEADS)
        if params.area_scores == "every" and params.threshold_values is not None:
            yield Query("change_points/scores", columns=("n_predicted", "tp"), keys=("score",), into="scores")
    yield Query(f"change_points/{name}totals", columns=COUNT_NAMES)
    if relations.alarmed:
        yield Query("change_points/leads_always", columns=("n_alerted",), keys=("lead",), into=LEADS)
    if relations.covered:
        yield Query("change_points/covering", columns=("n_covered", "covering"), into="covering")


# The relations that change_points reads: the series that are evaluated, what was run, and the points of every run.


ANNOTATED_SERIES, RUNS_OF_SERIES, OUTCOMES = "annotated_series", "runs_of_series", "outcomes"
BY_ANNOTATOR = internal_name(ANNOTATOR)
PREDICTIONS = {  # files, by whether predictions have scores, and whether those at one position count once
    (False, False): "predictions",
    (False, True): "distinct_predictions",
    (True, False): "scored_predictions",
    (True, True): "highest_predictions",
}
ANNOTATIONS = {  # files, by how several annotators are taken together, and whether incidents last
    ("union", False): "annotations",
    ("separate", False): "annotations_of_own_annotator",
    ("tcpd", False): "annotations_by_annotator",
    ("union", True): "incidents",
    ("separate", True): "incidents_of_own_annotator",
}
OBSERVED = "observed"


@dataclass(frozen=True)
class Inputs:
    """The inputs that are given, the primary one first."""

    predictions: Source
    annotations: Source
    series: Source | None
    runs: Source | None
    coders: Source | None

    @property
    def given(self) -> tuple[Source, ...]:
        """All that are there, the primary input first."""
        inputs = (self.predictions, self.annotations, self.series, self.runs, self.coders)
        return tuple(source for source in inputs if source is not None)

    @property
    def lasting(self) -> bool:
        """Whether true points are incidents that last, from a start to an end."""
        return not self.annotations.has(POSITION) and self.annotations.has(START) and self.annotations.has(END)

    @property
    def true_positions(self) -> tuple[str, ...]:
        """The columns of annotations that say where true points are."""
        return (START, END) if self.lasting else (POSITION,)

    @property
    def spans(self) -> bool:
        """Whether series say from where to where they were observed."""
        return self.series is not None and self.series.has(START) and self.series.has(END)


@dataclass(frozen=True)
class Relations:
    """The relations, in terms of the inputs and the grouping columns.

    `numbered` says whether positions number the observations of listed series, so that these have an end.
    """

    params: ChangePointsParameters
    inputs: Inputs
    by: Sequence[Grouped]
    numbered: bool

    @property
    def of_predictions(self) -> list[str]:
        """Grouping columns of the predictions, for each of whose values the annotations count."""
        return [grouped.name for grouped in self.by if grouped.source == "predictions"]

    @property
    def separate(self) -> bool:
        """Whether every annotator is a run of its own."""
        return self.params.annotators == "separate"

    @property
    def cluster(self) -> str:
        """Column whose values are independent."""
        column_of_series = None if self.params.cluster == SERIES_ID else self.params.cluster_column
        return column_of_series or SERIES_ID

    @cached_property
    def order(self) -> str | None:
        """Column of series that orders clusters in time, as it is read; None: their order means nothing."""
        cluster, order, series = self.params.first_cluster, self.params.cluster_order, self.inputs.series
        if series is None or cluster is None or not self.params.is_replicated:
            return None
        return None if (cluster, order) == (SERIES_ID, None) else rows.order_of_clusters(series, cluster, order)

    @property
    def per_annotator(self) -> bool:
        """Whether annotators are told apart."""
        return self.params.annotators != "union"

    @property
    def counted(self) -> bool:
        """Whether all series that occur are evaluated, so that their relation says how many points each has."""
        return not self.per_annotator and self.inputs.coders is None and self.inputs.series is None

    @property
    def covered(self) -> bool:
        """Whether segments can be counted in observations."""
        return self.numbered and not self.inputs.lasting

    @property
    def alarmed(self) -> bool:
        """Whether points are counted as alarms."""
        return self.inputs.lasting or bool(self.params.alarm_keys)

    def every(self) -> Iterator[Relation]:
        """The relations in the order in which they are defined."""
        yield from self._inputs()
        annotators = ["annotators"] if self.per_annotator else []
        observed = ["observed_time"] if self.alarmed else []
        runs = ["replicates", "systems", "predictions_with_runs"]
        yield from self.graph.relations("points_of_series", *annotators, ANNOTATED_SERIES, *runs, *observed)

    @cached_property
    def graph(self) -> rows.Graph:
        """The relations of sql/change_points/, where there is a choice."""
        count, together = self.params.n_replicates, not self.params.is_replicated
        read = ANNOTATED_SERIES if self.order is None else "series_read"
        runs_are_told = self.inputs.runs is not None
        annotators = {"annotators": "annotators" if self.separate else "no_annotators"}
        was_run = column(SERIES_ID, "s").eq(column(SERIES_ID, "y")) if runs_are_told else exp.true()
        systems = "systems" if self.of_predictions else "one_system"
        made: dict[str, rows.From | Sequence[Relation]] = {
            ANNOTATED_SERIES: rows.From(self._evaluated),
            "annotated": rows.From("annotated_by_name" if self.per_annotator else "annotated"),
            "replicates": rows.replicate_relations(read, "cluster", count, together=together, order=self.order),
            "systems": rows.From("declared_systems" if runs_are_told else systems),
            RUNS_OF_SERIES: rows.From("runs_of_systems", annotators, {"was_run": was_run}),
            "observed_time": rows.From("no_observed_time" if self.params.per is None else "observed_time"),
        }
        return rows.Graph("change_points", self.by, made)

    @property
    def _evaluated(self) -> str:
        """The file of the series that are evaluated: those with an annotator, those listed, or else all that occur."""
        listed = self.inputs.series is not None
        if self.per_annotator or self.inputs.coders is not None:
            return "series_annotated_and_listed" if listed else "series_annotated"
        return "series_listed" if listed else "series_occurring"

    def _inputs(self) -> Iterator[Relation]:
        """The inputs as they are read; optional ones that are absent have no row."""
        inputs = self.inputs
        scored = inputs.predictions.has("score")
        no_score = {} if scored else {"score_state": exp.cast(exp.null(), "VARCHAR")}
        yield rows.read(inputs.predictions, [SERIES_ID, POSITION, *(["score"] if scored else [])], self.by, no_score)
        annotator = [ANNOTATOR] if inputs.annotations.has(ANNOTATOR) else []
        yield rows.read(inputs.annotations, [SERIES_ID, *inputs.true_positions, *annotator], (), {})
        if inputs.series is not None:
            yield self._series(inputs.series)
        if inputs.runs is not None:
            same = [replace(grouped, source="runs") for grouped in self.by if grouped.source == "predictions"]
            yield rows.read(inputs.runs, [SERIES_ID], same, {})
        else:
            yield _absent("runs", "predictions", [SERIES_ID])
        if inputs.coders is not None:
            yield rows.read(inputs.coders, [SERIES_ID, ANNOTATOR], (), {})
        elif self.per_annotator:
            yield _absent("coders", "annotations", [SERIES_ID, ANNOTATOR])

    def _series(self, series: Source) -> Relation:
        """The listed series with their cluster; unless positions number the observations, n_obs is NULL."""
        columns = [SERIES_ID, *(["n_obs"] if self.numbered else [])]
        columns += [self.cluster] if self.cluster != SERIES_ID else []
        columns += [] if self.order is None else [self.order]
        derived: dict[str, exp.Expr] = {"cluster": column(self.cluster, "canonical")}
        if self.params.per is not None:
            spans = self.inputs.spans
            columns += [START, END] if spans else ["n_obs"]
            end, start, n_obs = (column(name, "canonical") for name in (END, START, "n_obs"))
            derived[OBSERVED] = end - start if spans else n_obs
        if "n_obs" not in columns:
            derived["n_obs"] = exp.cast(exp.null(), "BIGINT")
        return rows.read(series, dict.fromkeys(columns), self.by, derived)

    def frames(self) -> dict[str, exp.Query]:
        """The rows that are matched: runs, predictions, annotations and, for tcpd, annotators of runs."""
        files = {
            "runs": "runs",
            "predictions": PREDICTIONS[self.inputs.predictions.has("score"), self.params.duplicates == "max"],
            "annotations": ANNOTATIONS[self.params.annotators, self.inputs.lasting],
            **({"annotators": "annotators_of_runs"} if self.params.annotators == "tcpd" else {}),
        }
        return {name: self.graph.query(file) for name, file in files.items()}

    def sizes(self) -> exp.Query:
        """Every run with about as many rows as its series has."""
        points = {"points_of_series": ANNOTATED_SERIES} if self.counted else {}
        return statement("change_points/sizes", relations=points)

    def outcomes_by_score(self) -> exp.Query:
        """Outcomes of predictions with a score, with the grouping columns and the replicate of their run."""
        return self.graph.query("alarm_outcomes_by_score" if self.alarmed else "outcomes_by_score")


def _absent(name: str, like: str, columns: Sequence[str]) -> Relation:
    """An optional input that is absent: no row, and the columns of another input."""
    return Relation(f"{name}_read", statement("inputs/absent", columns, relations={"input": f"{like}_read"}))


# Faults of the inputs of change_points, and warnings about them.


FARTHEST = 1e19  # beyond every 64-bit integer; the sum of some thousand such delays is still a decimal
INCIDENT_RULES = ("one_to_one", "any")
ENDS_BEFORE_START = "change_points/checks/ends_before_start"
OUTSIDE_SERIES = "change_points/checks/outside_series"
CLOCKS = 'Declare it with timezone = "Europe/Amsterdam" (or "UTC") on that input.'


def positions(inputs: Inputs, params: ChangePointsParameters) -> Iterator[tuple[Source, str]]:
    """The columns that are positions: of predictions, of true points and, if it is wanted, of the observed time."""
    yield inputs.predictions, POSITION
    for name in inputs.true_positions:
        yield inputs.annotations, name
    if params.per is not None and inputs.spans and inputs.series is not None:
        for name in (START, END):
            yield inputs.series, name


def _check_columns(params: ChangePointsParameters, inputs: Inputs, by: Sequence[Grouped]) -> None:
    """Faults that the footers show.

    Raises:
        DataError: a column is missing, or two that must be compared differ in type.
    """
    for key in (SERIES_ID, ANNOTATOR):
        rows.check_keys(inputs.given, key)
    _check_true_points(params, inputs)
    if params.annotators != "union" and not inputs.annotations.has(ANNOTATOR):
        message = f"annotators = {params.annotators!r} needs {ANNOTATOR} in annotations"
        raise DataError(message, remedy="Map it with columns = { annotator_id = … }.")
    if params.threshold_values is not None and not inputs.predictions.has("score"):
        message = "thresholds are given, but predictions has no column 'score'"
        raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")
    if params.first_cluster not in {None, SERIES_ID} and not (inputs.series and inputs.series.has(str(params.cluster))):
        message = f"cluster: {params.cluster!r} must be a column of the input series"
        raise DataError(message, remedy="Give series, with a row per series and that column.")
    _check_clocks(inputs, params)
    if inputs.runs is not None:
        for grouped in by:
            if grouped.source == "predictions":
                # A grouping column of predictions must be in runs, with its type
                if not inputs.runs.has(grouped.column):
                    message = f"input runs: it has no column {grouped.column!r}, by which predictions are grouped"
                    raise DataError(
                        message, remedy="It lists what was run: one row per series and value of these columns."
                    )
                types = {
                    source.known_type(grouped.column, grouped.field) for source in (inputs.predictions, inputs.runs)
                }
                known_types = sorted(sql_type for sql_type in types if sql_type is not None)
                if len(known_types) > 1:
                    message = f"column {grouped.column} is {' but '.join(known_types)} in predictions and runs"
                    raise DataError(
                        message,
                        remedy='Give one the type of the other: columns = { … = { sql = "CAST(… AS VARCHAR)" } }.',
                    )


def _check_true_points(params: ChangePointsParameters, inputs: Inputs) -> None:
    """Annotations say where points are, or where incidents start and end, for which not every rule has a meaning."""
    annotations, series = inputs.annotations, inputs.series
    if not annotations.has(POSITION) and not inputs.lasting:
        known = next((name for name in (START, END) if annotations.has(name)), None)
        field = annotations.contract.field(POSITION)
        if known is None and field is not None:
            annotations.types(POSITION, field)  # raises: no column of that name
        message = f"input annotations: it has {known!r}, but an incident that lasts needs both {START!r} and {END!r}"
        raise DataError(message, remedy=f'Map the other: columns = {{ {START if known == END else END} = "…" }}.')
    if annotations.has(POSITION) and any(annotations.is_mapped(name) for name in (START, END)):
        message = f"input annotations: {POSITION} is a point, and {START} and {END} are those of an incident that lasts"
        raise DataError(message, remedy=f"Keep one of the two: columns = {{ {POSITION} = false, … }} for incidents.")
    if inputs.lasting and params.annotators == "tcpd":
        message = 'annotators = "tcpd" is about points, and annotations have a start and an end'
        raise DataError(message, remedy='Use "union" or "separate", or map position to the start alone.')
    if inputs.lasting and params.rule not in INCIDENT_RULES:
        message = f"matching = {params.rule!r} pairs positions, and annotations have a start and an end"
        raise DataError(message, remedy=f"Use {' or '.join(map(repr, INCIDENT_RULES))}, or map position to the start.")
    if params.per is not None and not inputs.spans and not (series is not None and series.has("n_obs")):
        message = f"per = {params.per!r}: it is not known how long the series were observed"
        remedy = f"Give series with {START!r} and {END!r}, or with 'n_obs' where positions number the observations."
        raise DataError(message, remedy=remedy)


def _check_lengths(params: ChangePointsParameters, inputs: Inputs, kind: str) -> None:
    """Lengths are durations where positions are times, and numbers elsewhere.

    Raises:
        DataError: one is not, or the number of observations says nothing about how long they took.
    """
    for name, length in (("margin", params.margin.before), ("cooldown", params.cooldown), ("per", params.per)):
        if length is not None and (kind == "times") != isinstance(length, str):
            remedy = 'Write a duration, such as "2h".' if kind == "times" else "Write a number in their unit."
            message = f"{name}: positions are {kind}"
            raise DataError(message, remedy=remedy)
    if params.per is not None and not inputs.spans and kind != "integers":
        message = f"per = {params.per!r}: n_obs of series is a number of observations, and positions are {kind}"
        raise DataError(message, remedy=f"Give {START!r} and {END!r} of the observation of every series.")


def _check_clocks(inputs: Inputs, params: ChangePointsParameters) -> None:
    """Times on all sides must have a zone, or none."""
    zoned = {}
    for source, name in positions(inputs, params):
        field = source.contract.field(name)
        if field is not None and source.known_type(name, field) in {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}:
            zoned[f"{source.name}.{name}"] = bool(source.is_zoned(name))
    if len(set(zoned.values())) > 1:
        naive = next(name for name, has_zone in sorted(zoned.items()) if not has_zone)
        message = f"no time zone in {naive}, but in the other input"
        raise DataError(message, remedy=CLOCKS)


def _checks(relations: Relations) -> Iterator[Check]:
    """Faults that only a scan shows."""
    params, inputs = relations.params, relations.inputs
    for source, name in positions(inputs, params):
        field = source.contract.field(name)
        if field is not None and source.known_type(name, field) == "DOUBLE":
            yield outside_check(source, name, -FARTHEST, FARTHEST)
    for name in (SERIES_ID, *inputs.true_positions, *((ANNOTATOR,) if params.annotators != "union" else ())):
        yield missing_check(inputs.annotations, name)
    if inputs.lasting:
        yield file_check(ENDS_BEFORE_START, inputs.annotations)
    if inputs.coders is not None:
        yield missing_check(inputs.coders, SERIES_ID)
        yield missing_check(inputs.coders, ANNOTATOR)
    if inputs.runs is not None:
        yield missing_check(inputs.runs, SERIES_ID)
    if inputs.series is not None:
        yield from _of_series(inputs.series, relations)
    if params.duplicates == "error":
        keys = (*relations.of_predictions, SERIES_ID, POSITION)
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(inputs.predictions, keys, remedy=remedy, of_systems=True)


def _of_series(series: Source, relations: Relations) -> Iterator[Check]:
    """Faults of the listed series, and of the time in which they were observed."""
    inputs = relations.inputs
    yield missing_check(series, SERIES_ID)
    yield duplicate_check(series, (SERIES_ID,), remedy="Keep one row per series.")
    if relations.numbered:
        yield negative_check(series, "n_obs")
        yield _outside_check(inputs.predictions, POSITION)
        for name in inputs.true_positions:
            yield _outside_check(inputs.annotations, name)
    if relations.cluster != SERIES_ID:
        yield missing_check(series, relations.cluster)
    if relations.order not in {None, relations.cluster}:
        yield missing_check(series, str(relations.order))
    if relations.params.per is not None:
        yield from (missing_check(series, name) for name in ((START, END) if inputs.spans else ("n_obs",)))
        if inputs.spans:
            yield file_check(ENDS_BEFORE_START, series)
        elif not relations.numbered:
            yield negative_check(series, "n_obs")


def _outside_check(source: Source, name: str) -> Check:
    """Check that no position lies before the first or after the last observation of its series."""

    def words(faults: Faults) -> dict[str, object]:
        count = int(str(faults[0]["n_rows"]))
        return {"outside": "1 position lies" if count == 1 else f"{count:,} positions lie", "field": name}

    return file_check(OUTSIDE_SERIES, source, columns={POSITION: name}, words=words)


def _cross_checks(relations: Relations) -> Iterator[CrossCheck]:
    """Annotations that repeat, annotations that are left out, and series that may not have been looked at."""
    params, inputs = relations.params, relations.inputs
    if inputs.series is not None:  # else every series with an annotation is evaluated
        yield CrossCheck({"outside": statement("change_points/annotations_elsewhere")}, _outside)
    if params.duplicates != "keep":
        by_annotator = [ANNOTATOR] if inputs.annotations.has(ANNOTATOR) else []
        name = "repeated_incidents" if inputs.lasting else "repeated_annotations"
        repeated = statement(f"change_points/{name}", by_annotator)
        has_one_run_each = relations.counted and inputs.runs is None and not relations.of_predictions
        if has_one_run_each and not by_annotator:  # then what is matched are the distinct annotations
            repeated = statement("change_points/repeated_annotations_of_runs")
        yield CrossCheck({"repeated": repeated}, _repeated)
    if params.per is not None and inputs.spans:
        yield CrossCheck({"unobserved": statement("change_points/outside_observed_time")}, _unobserved)
    if relations.counted:
        yield CrossCheck({"unmarked": statement("change_points/series_without_annotation")}, _unmarked)


def _outside(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["outside"].item()
    return (f"{count:,} rows of annotations are of series that are not listed; they are left out",) if count else ()


def _unobserved(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["unobserved"].item()
    words = (
        f"{count:,} predictions lie before the start or after the end of the observation of their series; they count"
    )
    return (f"{words} all the same, so that rates over the observed time are too high",) if count else ()


def _repeated(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["repeated"].item()
    mark = "marks" if count == 1 else "mark"
    words = f"{rows_in_words(count)} of annotations {mark} a point that is marked already, which counts once"
    return (Note(words),) if count else ()


def _unmarked(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["unmarked"].item()
    if not count:
        return ()
    words = (
        f"{count:,} series have no mark: they are taken as looked at, so that every prediction in them is wrong; "
        "give series or coders to say which series were annotated"
    )
    return (words,)


def _warnings(inputs: Inputs, by: Sequence[Grouped], kind: str) -> Iterator[str]:
    """Warnings that the user should know before the numbers are used."""
    yield from doubtful_groups(inputs.given, by)
    if inputs.predictions.has("score"):
        yield from doubtful_scores(inputs.predictions)
    points = ((inputs.predictions, POSITION), *((inputs.annotations, name) for name in inputs.true_positions))
    for source, name in points:
        if source.has_float32(name):
            words = "is single precision (FLOAT): distances are those of the rounded positions"
            yield Note(f"{source.name}.{name} {words}")
    if inputs.annotations.has(POSITION) and inputs.annotations.has(START) and inputs.annotations.has(END):
        yield "annotations have a position and also start and end: points are counted; incidents if position = false"
    if inputs.series is not None and inputs.series.has("n_obs") and kind != "integers" and not inputs.lasting:
        yield Note(f"covering is empty (NULL): it needs positions that number the observations, and they are {kind}")
