"""The relations that change_points reads: who was judged, what was run, and the points of every run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan import rows
from pipeline.plan.nodes import Relation
from pipeline.queries.dialect import column
from pipeline.stages.change_points.contract import ANNOTATOR, POSITION, SERIES_ID
from pipeline.stages.change_points.points import RUN
from pipeline.tables.groupings import internal_name
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.sources.source import Source
    from pipeline.stages.change_points.contract import ChangePointsParameters

JUDGED, RUNS_OF_SERIES, LISTED, SYSTEMS, ANNOTATORS = "judged", "runs_of_series", "listed", "systems", "annotators"
BY_ANNOTATOR = internal_name(ANNOTATOR)


@dataclass(frozen=True)
class Inputs:
    """The inputs that are given.

    Attributes:
        predictions: The row input.
        annotations: The marks.
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
        """All that are there, the row input first."""
        every = (self.predictions, self.annotations, self.series, self.runs, self.coders)
        return tuple(source for source in every if source is not None)


@dataclass(frozen=True)
class Relations:
    """The relations, in terms of the inputs and the grouping columns.

    Attributes:
        params: The parameters.
        inputs: The inputs.
        by: The grouping columns.
        covered: Whether covering is wanted.
    """

    params: ChangePointsParameters
    inputs: Inputs
    by: Sequence[rows.Grouped]
    covered: bool

    @property
    def of_predictions(self) -> list[str]:
        """Grouping columns of the predictions, which the marks are repeated for."""
        return [each.name for each in self.by if each.source == "predictions"]

    @property
    def of_series(self) -> list[str]:
        """Grouping columns of the series."""
        return [each.name for each in self.by if each.source == "series"]

    @property
    def separate(self) -> bool:
        """Whether every annotator is a run of its own."""
        return self.params.annotators == "separate"

    @property
    def cluster(self) -> str:
        """Column whose values are independent."""
        own = None if self.params.cluster == SERIES_ID else self.params.cluster_column
        return own or SERIES_ID

    @property
    def per_annotator(self) -> bool:
        """Whether annotators are told apart."""
        return self.params.annotators != "union"

    def every(self) -> Iterator[Relation]:
        """The relations in the order in which they are defined."""
        inputs = self.inputs
        scored = inputs.predictions.has("score")
        absent = {} if scored else {"score_state": exp.cast(exp.null(), "VARCHAR")}
        names = [SERIES_ID, POSITION, *(["score"] if scored else [])]
        yield rows.read(inputs.predictions, names, self.by, absent)
        by_marks = [ANNOTATOR] if inputs.annotations.has(ANNOTATOR) else []
        yield rows.read(inputs.annotations, [SERIES_ID, POSITION, *by_marks], (), {})
        if inputs.series is not None:
            more = [*(["n_obs"] if self.covered else []), *([self.cluster] if self.cluster != SERIES_ID else [])]
            yield rows.read(inputs.series, [SERIES_ID, *more], self.by, {})
        if inputs.runs is not None:
            same = [replace(each, source="runs") for each in self.by if each.source == "predictions"]
            yield rows.read(inputs.runs, [SERIES_ID], same, {})
        if inputs.coders is not None:
            yield rows.read(inputs.coders, [SERIES_ID, ANNOTATOR], (), {})
        if self.per_annotator:
            yield Relation(ANNOTATORS, self._annotators(), keep=True)
        yield Relation(JUDGED, self._judged(), keep=True)
        if self.params.uncertainty == "jackknife":
            count = None if self.params.replicates == "auto" else self.params.replicates
            yield from rows.replicate_relations(JUDGED, self.cluster, count)
        if self.inputs.runs is not None or self.of_predictions:
            yield Relation(SYSTEMS, self._systems(), keep=True)
        yield Relation(RUNS_OF_SERIES, self._runs(), keep=True)
        yield Relation(LISTED, self._listed())
        yield Relation("placed_predictions", self._placed())

    def _annotators(self) -> exp.Select:
        """Who looked at which series, numbered."""
        names = (SERIES_ID, ANNOTATOR)
        sources = ["annotations_read", *(["coders_read"] if self.inputs.coders is not None else [])]
        who = _distinct(_kept(source, names) for source in sources)
        number = exp.Window(this=exp.RowNumber(), order=_ascending(names))
        return exp.select("*", exp.alias_(number, "annotator", quoted=True)).from_(who.subquery("known_annotators"))

    @property
    def counted(self) -> bool:
        """Whether all series that occur take part, so that the relation of them has n_points and n_marks of each."""
        return not self.per_annotator and self.inputs.coders is None and self.inputs.series is None

    @property
    def one_run_each(self) -> bool:
        """Whether every series that occurs has exactly one run."""
        return self.counted and self.inputs.runs is None and not self.of_predictions

    def _judged(self) -> exp.Select:
        """The series that take part: those with an annotator, those listed, or else all that occur."""
        series, coders = self.inputs.series, self.inputs.coders
        numbers = ("n_points", "n_marks") if self.counted else ()
        if self.per_annotator:
            known = exp.select(column(SERIES_ID)).distinct().from_(ANNOTATORS)
        elif coders is not None:
            known = _distinct(_kept(name, (SERIES_ID,)) for name in ("coders_read", "annotations_read"))
        elif series is not None:
            known = _distinct([_kept("series_read", (SERIES_ID,))])
        else:
            known = self._points_of_series()
        query = exp.select(*(column(name, "k") for name in (SERIES_ID, *numbers)))
        query = query.select(exp.alias_(exp.true(), "passes_where", quoted=True))
        query = query.from_(known.subquery("k")).where(_known(column(SERIES_ID, "k")))
        if series is None:
            return query
        more = [*self.of_series, *(["n_obs"] if self.covered else [])]
        more += [self.cluster] if self.cluster != SERIES_ID else []
        query = query.select(*(column(name, "s") for name in more)).where(column("passes_where", "s"))
        return query.join(exp.to_table("series_read").as_("s"), on=_equal(SERIES_ID, "k", "s"), join_type="inner")

    def _points_of_series(self) -> exp.Select:
        """Every series that occurs, with how many rows of predictions, annotations and runs it has, and marks."""
        others = ["runs_read"] if self.inputs.runs is not None else []
        parts = [
            _kept(name, (SERIES_ID,)).select(exp.alias_(exp.convert(name == "annotations_read"), "is_mark"))
            for name in ("predictions_read", "annotations_read", *others)
        ]
        every = exp.union(*parts, distinct=False).subquery("every_row")
        numbers = {"n_points": exp.Count(this=exp.Star()), "n_marks": exp.CountIf(this=column("is_mark"))}
        counts = (exp.alias_(exp.cast(value, "BIGINT"), name, quoted=True) for name, value in numbers.items())
        return exp.select(column(SERIES_ID), *counts).from_(every).group_by(column(SERIES_ID))

    def sizes(self) -> exp.Select:
        """Every run with about as many rows as its series has."""
        origin = exp.to_table(JUDGED) if self.counted else self._points_of_series().subquery()
        query = exp.select(column(RUN, "r"), exp.alias_(column("n_points", "k"), "n_rows", quoted=True))
        query = query.from_(exp.to_table(RUNS_OF_SERIES).as_("r"))
        return query.join(origin.as_("k"), on=_equal(SERIES_ID, "r", "k"), join_type="inner")

    def _systems(self) -> exp.Select:
        """What was run: on which series if that is listed, else on all."""
        if self.inputs.runs is not None:
            return _distinct([_kept("runs_read", (SERIES_ID, *self.of_predictions))])
        return _distinct([_kept("predictions_read", self.of_predictions)])

    def _runs(self) -> exp.Select:
        """Every run on a judged series, numbered, with its replicate and grouping columns.

        Numbers rise with the series, so a range of them is a range of series, which files may be sorted by.
        """
        key = [SERIES_ID, *self.of_predictions, *([BY_ANNOTATOR] if self.separate else [])]
        query = exp.select(column(SERIES_ID, "j"), *(column(name, "j") for name in self.of_series))
        query = query.select(*(column(name, "y") for name in self.of_predictions))
        query = query.from_(exp.to_table(JUDGED).as_("j"))
        if self.covered:
            query = query.select(column("n_obs", "j"))
        if self.inputs.runs is not None:
            query = query.join(exp.to_table(SYSTEMS).as_("y"), on=_equal(SERIES_ID, "j", "y"), join_type="inner")
        elif self.of_predictions:
            query = query.join(exp.to_table(SYSTEMS).as_("y"), join_type="cross")
        if self.separate:
            query = query.select(exp.alias_(column(ANNOTATOR, "a"), BY_ANNOTATOR, quoted=True))
            query = query.join(exp.to_table(ANNOTATORS).as_("a"), on=_equal(SERIES_ID, "j", "a"), join_type="inner")
        if self.params.uncertainty == "jackknife":
            matches = exp.EQ(this=column(self.cluster, "j"), expression=column("cluster", "c"))
            query = query.select(column(REPLICATE, "c"))
            query = query.join(exp.to_table("replicates").as_("c"), on=matches, join_type="inner")
        else:
            query = query.select(exp.alias_(exp.cast(exp.Literal.number(0), "SMALLINT"), REPLICATE))
        number = exp.Window(this=exp.RowNumber(), order=_ascending(key))
        first: exp.Expr = exp.true()
        if self.separate:
            within = [column(name) for name in key if name != BY_ANNOTATOR]
            rank = exp.Window(this=exp.RowNumber(), partition_by=within, order=_ascending([BY_ANNOTATOR]))
            first = exp.EQ(this=rank, expression=exp.Literal.number(1))
        columns = (exp.alias_(value, name, quoted=True) for name, value in ((RUN, number), ("is_first", first)))
        return exp.select("*", *columns).from_(query.subquery("runs_of_judged"))

    def _listed(self) -> exp.Select:
        """Runs without their annotators: one for every prediction at most."""
        names = (SERIES_ID, *self.of_predictions)
        query = exp.select(*(column(name) for name in names)).from_(RUNS_OF_SERIES)
        return query.where(column("is_first"))

    def _placed(self) -> exp.Select:
        names = ("passes_where", "score_state", SERIES_ID, POSITION)
        query = exp.select(*(column(name, "p") for name in names))
        for name, alias in (("is_judged", "j"), ("is_listed", "l")):
            query = query.select(exp.alias_(_known(column(SERIES_ID, alias)), name, quoted=True))
        query = query.from_(exp.to_table("predictions_read").as_("p"))
        query = query.join(exp.to_table(JUDGED).as_("j"), on=_equal(SERIES_ID, "p", "j"), join_type="left")
        same = [_same(name, "p", "l") for name in self.of_predictions]
        on = exp.and_(_equal(SERIES_ID, "p", "l"), *same)
        return query.join(exp.to_table(LISTED).as_("l"), on=on, join_type="left")

    def predictions(self) -> exp.Select:
        """Predictions of every run: run_number, position and, if there, score."""
        scored = self.inputs.predictions.has("score")
        fields = [POSITION, *(["score"] if scored else [])]
        query = exp.select(column(RUN, "r"), *(column(name, "p") for name in fields))
        query = query.from_(exp.to_table("predictions_read").as_("p"))
        same = [_same(name, "p", "r") for name in self.of_predictions]
        on = exp.and_(_equal(SERIES_ID, "p", "r"), *same)
        query = query.join(exp.to_table(RUNS_OF_SERIES).as_("r"), on=on, join_type="inner")
        query = query.where(column("passes_where", "p"), *(_known(column(name, "p")) for name in fields))
        if self.params.duplicates != "max":
            return query
        return rows.distinct_rows(query, (RUN, POSITION), ("score" if scored else POSITION,))

    def marks(self) -> exp.Select:
        """Marks of every run: run_number, position and, if recall is averaged over them, annotator."""
        query = exp.select(column(RUN, "r"), column(POSITION, "p"))
        query = query.from_(exp.to_table("annotations_read").as_("p"))
        on = [_equal(SERIES_ID, "p", "r"), *([_by_annotator("p", "r")] if self.separate else [])]
        query = query.join(exp.to_table(RUNS_OF_SERIES).as_("r"), on=exp.and_(*on), join_type="inner")
        if self.params.annotators == "tcpd":
            both = exp.and_(_equal(SERIES_ID, "p", "a"), _equal(ANNOTATOR, "p", "a"))
            query = query.select(column("annotator", "a"))
            query = query.join(exp.to_table(ANNOTATORS).as_("a"), on=both, join_type="inner")
        return query.where(column("passes_where", "p"))

    def annotators_of_runs(self) -> exp.Select:
        """Annotators of the series of every run: run_number, annotator."""
        query = exp.select(column(RUN, "r"), column("annotator", "a"))
        query = query.from_(exp.to_table(RUNS_OF_SERIES).as_("r"))
        return query.join(exp.to_table(ANNOTATORS).as_("a"), on=_equal(SERIES_ID, "r", "a"), join_type="inner")

    def with_runs(self, names: Sequence[str], where: exp.Expr) -> exp.Select:
        """Rows of the matched relation with the grouping columns and the replicate of their run."""
        query = exp.select(*(column(each.name, "r") for each in self.by), column(REPLICATE, "r"))
        query = query.select(*(column(name, "m") for name in names)).from_(exp.to_table("matched").as_("m"))
        return query.join(exp.to_table(RUNS_OF_SERIES).as_("r"), on=_equal(RUN, "m", "r"), join_type="inner").where(
            where
        )


def _kept(relation: str, names: Sequence[str]) -> exp.Select:
    return exp.select(*(column(name) for name in names)).from_(relation).where(column("passes_where"))


def _distinct(queries: object) -> exp.Select:
    parts = list(queries)  # type: ignore[call-overload]
    both = parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)
    return exp.select("*").distinct().from_(both.subquery("every_row"))


def _ascending(names: Sequence[str]) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=column(name), desc=False, nulls_first=False) for name in names])


def _known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))


def _equal(name: str, left: str, right: str) -> exp.Expr:
    return exp.EQ(this=column(name, left), expression=column(name, right))


def _by_annotator(marks: str, runs: str) -> exp.Expr:
    """Whether a run is that of the annotator of a mark."""
    return exp.EQ(this=column(ANNOTATOR, marks), expression=column(BY_ANNOTATOR, runs))


def _same(name: str, left: str, right: str) -> exp.Expr:
    """Equal, or both NULL."""
    return exp.NullSafeEQ(this=column(name, left), expression=column(name, right))
