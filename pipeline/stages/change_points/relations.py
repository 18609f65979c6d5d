"""The relations that change_points reads: the series that are evaluated, what was run, and the points of every run."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...plan import rows
from ...plan.nodes import Relation
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...tables.groupings import internal_name
from .contract import ANNOTATOR, END, POSITION, SERIES_ID, START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...sources.source import Source
    from .contract import ChangePointsParameters

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
    """The inputs that are given.

    Attributes:
        predictions: The primary input.
        annotations: The true points, as marked by annotators.
        series: The annotated series.
        runs: What was run.
        coders: Who looked at which series.
    """

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

    Attributes:
        params: The parameters.
        inputs: The inputs.
        by: The grouping columns.
        numbered: Whether positions number the observations of listed series, so that these have an end.
    """

    params: ChangePointsParameters
    inputs: Inputs
    by: Sequence[rows.Grouped]
    numbered: bool

    @property
    def of_predictions(self) -> list[str]:
        """Grouping columns of the predictions, for each of whose values the annotations count."""
        return [grouped.name for grouped in self.by if grouped.source == "predictions"]

    @property
    def of_series(self) -> list[str]:
        """Grouping columns of the series."""
        return [grouped.name for grouped in self.by if grouped.source == "series"]

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
    def one_run_each(self) -> bool:
        """Whether every series that occurs has exactly one run."""
        return self.counted and self.inputs.runs is None and not self.of_predictions

    @property
    def alarmed(self) -> bool:
        """Whether points are counted as alarms."""
        return self.inputs.lasting or bool(self.params.alarm_keys)

    def every(self) -> Iterator[Relation]:
        """The relations in the order in which they are defined."""
        yield from self._inputs()
        yield Relation("points_of_series", statement("change_points/points_of_series"))
        yield from self._annotated_series()
        count, together = self.params.n_replicates, not self.params.is_replicated
        read = ANNOTATED_SERIES if self.order is None else "series_read"
        yield from rows.replicate_relations(read, "cluster", count, together=together, order=self.order)
        yield Relation("systems", self._systems(), keep=True)
        yield from self._runs()
        yield Relation("declared_runs", statement("change_points/declared_runs", self.of_predictions))
        with_runs = statement("change_points/predictions_with_runs", self.of_predictions)
        yield Relation("predictions_with_runs", with_runs)
        if self.alarmed:
            name = "no_observed_time" if self.params.per is None else "observed_time"
            yield Relation("observed_time", statement(f"change_points/{name}"))

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

    def _annotated_series(self) -> Iterator[Relation]:
        """The series that are evaluated: those with an annotator, those listed, or else all that occur."""
        listed = self.inputs.series is not None
        by_annotators = self.per_annotator or self.inputs.coders is not None
        if self.per_annotator:
            yield Relation("annotators", statement("change_points/annotators"), keep=True)
        if by_annotators:
            name = "annotated_by_name" if self.per_annotator else "annotated"
            yield Relation("annotated", statement(f"change_points/{name}"))
            name = "series_annotated_and_listed" if listed else "series_annotated"
        else:
            name = "series_listed" if listed else "series_occurring"
        yield Relation(ANNOTATED_SERIES, statement(f"change_points/{name}", self.of_series), keep=True)

    def _systems(self) -> exp.Query:
        """What was run: on which series if that is declared, else on all."""
        if self.inputs.runs is not None:
            return statement("change_points/declared_systems", self.of_predictions)
        return statement(f"change_points/{'systems' if self.of_predictions else 'one_system'}", self.of_predictions)

    def _runs(self) -> Iterator[Relation]:
        """Every run on an evaluated series, numbered, with its replicate and grouping columns."""
        if not self.separate:
            yield Relation("no_annotators", statement("change_points/no_annotators"))
        is_declared = column(SERIES_ID, "s").eq(column(SERIES_ID, "y"))
        runs = statement(
            "change_points/runs_of_systems",
            {"s": self.of_series, "y": self.of_predictions, "a": [BY_ANNOTATOR] if self.separate else []},
            relations={} if self.separate else {"annotators": "no_annotators"},
            columns={"was_run": exp.true() if self.inputs.runs is None else is_declared},
        )
        yield Relation(RUNS_OF_SERIES, runs, keep=True)

    def frames(self) -> dict[str, exp.Query]:
        """The rows that are matched: runs, predictions, annotations and, for tcpd, annotators of runs."""
        predictions = PREDICTIONS[self.inputs.predictions.has("score"), self.params.duplicates == "max"]
        frames = {
            "runs": statement("change_points/runs"),
            "predictions": statement(f"change_points/{predictions}", self.of_predictions),
            "annotations": statement(f"change_points/{ANNOTATIONS[self.params.annotators, self.inputs.lasting]}"),
        }
        if self.params.annotators == "tcpd":
            frames["annotators"] = statement("change_points/annotators_of_runs")
        return frames

    def sizes(self) -> exp.Query:
        """Every run with about as many rows as its series has."""
        points = {"points_of_series": ANNOTATED_SERIES} if self.counted else {}
        return statement("change_points/sizes", relations=points)

    def outcomes_by_score(self) -> exp.Query:
        """Outcomes of predictions with a score, with the grouping columns and the replicate of their run."""
        name = "alarm_outcomes_by_score" if self.alarmed else "outcomes_by_score"
        return statement(f"change_points/{name}", [grouped.name for grouped in self.by])


def _absent(name: str, like: str, columns: Sequence[str]) -> Relation:
    """An optional input that is absent: no row, and the columns of another input."""
    return Relation(f"{name}_read", statement("inputs/absent", columns, relations={"input": f"{like}_read"}))
