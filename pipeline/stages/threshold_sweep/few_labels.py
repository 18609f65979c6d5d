"""Labels of a sample of the predictions: how it is drawn, what each label stands for, and what they say of all rows.

The sheet of labels meets the predictions by `id`. Rows are counted in cells of scores, which are put into strata as
`thresher sample` draws them; a labelled row stands for so many rows of its stratum. What follows from weighted rows
follows from the labelled ones with these weights. The curve, its points and areas follow from the design: how many rows
of each stratum lie at or above a threshold is counted, and not estimated.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import THRESHOLD, by_group, doubles, lowest_retrieved
from ...base.dialect import column, double
from ...base.errors import DataError, Note
from ...base.records import dataclass
from ...base.schemas import internal_name
from ...base.sql_files import statement
from ...base.visible_text import rows_in_words
from ...metrics.curves.bands import RATIOS as BANDED
from ...metrics.curves.decisions import Payoffs
from ...metrics.curves.operating_points import CRITERION
from ...metrics.few_labels.curve import COUNTS as OUTCOMES
from ...metrics.few_labels.curve import Judge, estimated_curve
from ...metrics.few_labels.draws import (
    Labelled,
    Population,
    merged_strata,
    scaled,
)
from ...metrics.uncertainty.limits import Interval, limit_columns, limit_series, no_limits, with_quality
from ...metrics.uncertainty.proportions import PROPORTIONS, Confusion
from ...plan.nodes import Phase, Statement
from ...plan.plan import Plan
from ...plan.rows import read, resolve_by
from ...sources.inputs import Field, Input, InputContract
from ..sampling import SampleParameters, Sheet, drawn_of_these, labelled_contract, labels_of, nodes_of, strata_of
from ..stage import Stage
from .contract import COST_PER_ROW, DRAWN, OF_DRAWN
from .units import LOCATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...engines.engine import Engine
    from ...metrics.few_labels.curve import Curve
    from ...metrics.uncertainty.jackknife import Limits
    from ...plan.nodes import Progress
    from ...sources.source import Source
    from ..sampling import Strata
    from .contract import ThresholdSweepParameters

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


# The sheet beside the predictions: a relation of labelled rows with weights, and frames of what is known of all rows.


JUDGED = "judged"
CELLS, ABOVE, EDGES, LABELLED = "cells_of_strata", "rows_above_edges", "edges", "labelled_rows"
_EDGES_GIVEN = "edges_given"
SIMPLE = "simple"


@dataclass(frozen=True)
class LabelledRows:
    """The relation of the labelled rows, each with the number of rows that it stands for as its weight.

    Attributes:
        params: The parameters.
        predictions: The scored rows.
        labels: The sheet.
        by: The grouping columns.
        carried: Further columns of the predictions that results need: clusters, and what orders them.
    """

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: ClassVar[str] = DRAWN
    params: ThresholdSweepParameters
    predictions: Source
    labels: Source
    by: tuple[str, ...]
    carried: tuple[str, ...]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define it, and count the rows of strata and those above every score that matters.

        Raises:
            DataError: rows of the sheet and predictions do not fit, or nothing says how rows were drawn.
        """
        sheet = engine.fetch(self._sheet)
        cells = engine.fetch(self._cells).with_columns(pl.col("weight", "proxy").cast(pl.Float64))
        labelled = self._checked(sheet)
        strata = strata_of(cells, self.by, labelled.height)
        labelled = labelled.join(
            strata.cells.select(*self.by, "cell", "stratum"), on=[*self.by, "cell"], how="left", nulls_equal=True
        )
        given = [name for name in ("stratum", "probability") if self.labels.has(name)]
        is_drawn_of_these = drawn_of_these(labelled, strata.cells, self.by, given)
        labelled = self._weighted(labelled, strata, is_drawn_of_these=is_drawn_of_these)
        engine.hand_over(DRAWN, self._relation(labelled).to_arrow())
        progress.tables[CELLS], progress.tables[LABELLED] = strata.cells, labelled
        self._define_edges(engine, labelled["score"])
        progress.tables[EDGES], progress.tables[ABOVE] = engine.fetch(_every_edge()), self._above_edges(engine, strata)
        if self.params.checked is not None:
            progress.tables[JUDGED] = _judged(engine.fetch(_CHECKED), sheet)
        if not is_drawn_of_these:
            progress.warnings += self._beside.of_fewer(sheet, int(strata.rows.sum()))
        progress.warnings += self._warnings(sheet, labelled, strata)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - its columns are its own
        """The queries, and the relation, which has no query."""
        yield Statement(f"rows of the sheet, for relation {DRAWN}", self._sheet, function=LabelledRows)
        yield Statement(f"rows of cells, for relation {DRAWN}", self._cells, function=strata_of)
        yield Statement(f"relation {DRAWN}", None, DRAWN, function=LabelledRows)
        yield Statement(f"relation {_EDGES_GIVEN}", None, _EDGES_GIVEN, function=LabelledRows)
        yield Statement(f"relation {EDGES}", self._edges, EDGES)
        yield Statement("rows above edges", self._above)
        if self.params.checked is not None:
            yield Statement("rows that people checked", _CHECKED, function=_judged)

    @property
    def _beside(self) -> Sheet:
        return Sheet("labels", "predictions", _KEY, _row, has_probability=self.labels.has("probability"))

    @property
    def _has_weight(self) -> bool:
        return self.predictions.has("weight")

    @property
    def has_proxy(self) -> bool:
        """Whether the predictions have a proxy of the label."""
        return self.predictions.has("proxy")

    @property
    def _row_columns(self) -> dict[str, str | exp.Expr]:
        return {
            "row_weight": "weight" if self._has_weight else double(1.0),
            "row_proxy": "proxy" if self.has_proxy else double(0.0),
        }

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of `rows_to_sample` beside id, score and cell."""
        numbers = (name for name in ("weight", "proxy") if self.predictions.has(name))
        return tuple(dict.fromkeys([*self.by, *self.carried, *self._place, *numbers]))

    @property
    def _place(self) -> tuple[str, ...]:
        """Columns of the place of a prediction, where rows are to be shown."""
        return () if self.predictions.shown is None else LOCATION

    @property
    def _sheet(self) -> exp.Query:
        absent = {name: exp.null() for name in ("probability", "stratum") if not self.labels.has(name)}
        if self.labels.without_places is not None:
            absent |= {name: exp.null() for name in LOCATION}
        ids: list[exp.Expr] = [column("id", "p"), column("id", "l")]
        types = [source.types("id", source.contract.field("id") or _ID) for source in (self.predictions, self.labels)]
        if types[0] != types[1]:  # the ids of a sheet in CSV are texts
            ids = [exp.cast(each, exp.DataType.Type.VARCHAR) for each in ids]
        return statement(
            "threshold_sweep/labels_beside_predictions",
            {"p": self.read},
            columns={"same_id": ids[0].eq(ids[1]), **absent},
        )

    @property
    def _cells(self) -> exp.Query:
        return statement("threshold_sweep/cells_of_strata", self.by, columns=self._row_columns)

    @property
    def _edges(self) -> exp.Query:
        return statement("threshold_sweep/rows_to_sample", (), relations={"predictions_read": _EDGES_GIVEN})

    @property
    def _above(self) -> exp.Query:
        return statement("threshold_sweep/rows_above_edges", {"r": self.by}, columns=self._row_columns)

    def _checked(self, sheet: pl.DataFrame) -> pl.DataFrame:
        """The rows of the sheet with a label and a score.

        Raises:
            DataError: an id repeats or is unknown, a label is no truth value, or a probability is none.
        """
        sheet = sheet.with_columns(labels_of(sheet["label_text"], "labels").alias("label"))
        self._beside.check(sheet)
        self._beside.refuse(
            sheet.filter(pl.col("met_id").is_null() & pl.lit(self.predictions.spec.where is None)),
            "{rows}, such as {row}, have ids that no row of predictions has",
            "Name the predictions that the sheet was drawn from, or map id to the same column in both.",
        )
        is_repeated = pl.struct("label_id", *self.by).is_duplicated()
        self._beside.refuse(
            sheet.filter(is_repeated).unique("label_id", maintain_order=True),
            "{row} is that of several predictions, whose label it would be",
            "Make the ids of the predictions distinct; a column that tells systems apart belongs in by.",
        )
        return sheet.filter(pl.col("label").is_not_null() & pl.col("cell").is_not_null()).sort(
            *self.by, "score", "label_id"
        )

    def _weighted(self, labelled: pl.DataFrame, strata: Strata, *, is_drawn_of_these: bool) -> pl.DataFrame:
        """With `relative`, how heavy a row is beside others of its stratum, and `weight`: how many rows it is for."""
        drawn = self._how_drawn(labelled, strata, is_drawn_of_these=is_drawn_of_these)
        own = pl.col("weight") if self._has_weight else pl.lit(1.0)
        labelled = labelled.with_columns((own / drawn).cast(pl.Float64).alias("relative"))
        weight = np.zeros(labelled.height)
        size = strata.cells.group_by("stratum").agg(pl.col("weight").sum()).sort("stratum")["weight"].to_numpy()
        stratum, relative = labelled["stratum"].to_numpy(), labelled["relative"].to_numpy()
        for group in range(int(strata.group.max(initial=-1)) + 1):
            members = np.flatnonzero(strata.group == group)
            rows = np.flatnonzero(np.isin(stratum, members))
            if not len(rows):
                continue
            within = stratum[rows] - members[0]
            population = Population(
                np.zeros(0), np.zeros((len(members), 0)), size[members], strata.rows[members].astype(np.float64)
            )
            merged = merged_strata(population, np.bincount(within, minlength=len(members)))
            weight[rows] = scaled(relative[rows], merged[within], population.merged(merged).size)
        return labelled.with_columns(pl.Series("weight", weight, dtype=pl.Float64))

    def _how_drawn(self, labelled: pl.DataFrame, strata: Strata, *, is_drawn_of_these: bool) -> pl.Expr:
        """How likely rows were drawn, beside others of their stratum.

        Raises:
            DataError: nothing says it.
        """
        alike = pl.lit(1.0)
        if self.params.sampling == SIMPLE:
            differ = labelled.filter(pl.col("probability") != pl.col("probability").first())
            words = 'sampling = "simple" says that all rows were drawn alike, and probability differs in {rows}'
            self._beside.refuse(differ, words, "Leave sampling out: probability says how rows were drawn.")
        if self.params.sampling == SIMPLE or labelled.is_empty() or is_drawn_of_these:
            return alike
        if self.labels.has("probability"):
            return pl.col("probability")
        if labelled.height == strata.rows.sum():
            return alike
        lacking = (
            "column 'stratum' is not that of a sheet of these predictions"
            if self.labels.has("stratum")
            else "it has neither probability nor stratum"
        )
        message = f"input labels: nothing says how its rows were drawn: {lacking}"
        remedy = (
            "Map probability, the share of the rows like it that were drawn; or say sampling = "
            '"simple" where all rows were drawn alike.'
        )
        raise DataError(message, remedy=remedy)

    def _relation(self, labelled: pl.DataFrame) -> pl.DataFrame:
        """The labelled rows as the queries of this stage read predictions."""
        return labelled.select(
            pl.lit(value=True).alias("passes_where"),
            *dict.fromkeys([*self.by, *self.carried, *self._place]),
            pl.col("met_id").alias("id"),
            "score",
            pl.col("score").alias("score_given"),
            "label",
            "weight",
        )

    def _define_edges(self, engine: Engine, scores: pl.Series) -> None:
        """Define the relation of the scores that rows are held against: of labelled rows, and of thresholds."""
        thresholds = self.params.counted_thresholds
        values = scores.to_list() if thresholds is None else thresholds
        values = (*values, *(self.params.probabilities if self.params.net_benefit else ()))
        edges = {*scores, *(lowest_retrieved(value, self.params.boundary) for value in values)}
        table = pl.DataFrame({"score": sorted(edges)}, schema={"score": pl.Float64})
        rows = table.select(
            pl.lit(value=True).alias("passes_where"), pl.lit(None, dtype=pl.String).alias("id"), "score"
        )
        engine.hand_over(_EDGES_GIVEN, rows.to_arrow())
        engine.define(EDGES, self._edges)

    def _above_edges(self, engine: Engine, strata: Strata) -> pl.DataFrame:
        """How many rows of the cell of an edge lie at or above it, by group: with `stratum`, `edge`, `cell`."""
        above = engine.fetch(self._above).with_columns(pl.col("weight", "proxy").cast(pl.Float64))
        of_cells = strata.cells.select(*self.by, "cell", "stratum")
        return above.join(of_cells, on=[*self.by, "cell"], how="left", nulls_equal=True)

    def _warnings(self, sheet: pl.DataFrame, labelled: pl.DataFrame, strata: Strata) -> Iterator[str]:
        """Rows that nobody has labelled between others, and groups without a label."""
        is_empty = pl.col("label_text").is_null() | (pl.col("label_text").str.strip_chars() == "")
        without = sheet.filter(pl.col("met_id").is_null()).height
        if without:
            yield Note(f"input labels: {rows_in_words(without)} are of no prediction that where keeps")
        yield from self._beside.skipped(sheet, is_empty)
        groups = strata.cells.select(self.by).unique() if self.by else None
        if (
            groups is not None
            and (unlabelled := groups.join(labelled, on=list(self.by), how="anti", nulls_equal=True)).height
        ):
            words = "group has" if unlabelled.height == 1 else "groups have"
            yield f"{unlabelled.height:,} {words} no labelled row, and no numbers"


_ID = Field("id", "key", "the item")


_CHECKED = statement("threshold_sweep/labels_read_before", relations={"labelled_read": "checked_read"})


def _judged(checked: pl.DataFrame, sheet: pl.DataFrame) -> pl.DataFrame:
    """People's answers beside a judge's, in one row: how often both say the same, or only one says true.

    Raises:
        DataError: an id repeats, or is that of no row of the sheet.
    """
    people = checked.select(pl.col("id").cast(pl.String).alias("label_id"), labels_of(checked["label"], "checked"))
    of_people = Sheet("checked", "labels", _KEY, _row)
    repeated = people.filter(pl.col("label_id").is_duplicated())
    of_people.refuse(repeated, "{row} is there more than once", "Keep one row of each id.")
    judge = sheet.select("label_id", labels_of(sheet["label_text"], "labels").alias("said")).unique()
    both = people.drop_nulls("label").join(judge, on="label_id", how="left", maintain_order="left")
    unknown, words = (
        both.filter(pl.col("said").is_null()),
        "{rows}, such as {row}, are of no row that labels have a label of",
    )
    of_people.refuse(unknown, words, "The judge must have labelled what people check.")
    label, said = pl.col("label"), pl.col("said")
    counts = ((label & said), (label & ~said), (~label & ~said), (~label & said))
    return both.select(count.sum().cast(pl.Int64).alias(name) for name, count in zip(_ANSWERS, counts, strict=True))


_KEY = "column 'id'"
_ANSWERS = ("true_said_true", "true_said_false", "false_said_false", "false_said_true")


def _every_edge() -> exp.Query:
    return exp.select("score", "cell").from_(EDGES).order_by("score")


def _row(row: Mapping[str, object]) -> str:
    return f"id {row['label_id']!r}"


# What the sample says of all rows: the curve and the areas of every group.


@dataclass(frozen=True)
class Estimates:
    """Estimates for all predictions from the labels of a sample, group by group.

    Attributes:
        params: The parameters.
        keys: The columns that tell groups apart: the name of the grouping, and the grouping columns.
        groups: By the values of the keys, the labelled rows of a group, its cells, and its rows above edges.
        edges: `score` and `cell` of every edge, in rising order.
        judge: How far the labels are right, if they are a judge's.
    """

    params: ThresholdSweepParameters
    keys: tuple[str, ...]
    groups: Mapping[tuple[object, ...], tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]]
    edges: pl.DataFrame
    judge: Judge | None = None
    _curves: dict[tuple[object, ...], Curve] = field(default_factory=dict)

    @classmethod
    def of(cls, params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> Estimates:
        """The estimates, from the frames of `LabelledRows`."""
        by = keys[1:]
        groups = {}
        for grouping in params.groupings:
            names = list(grouping.columns)
            labelled, cells, above = (_by_group(counts[name], names) for name in (LABELLED, CELLS, ABOVE))
            for values, rows in labelled.items():
                if rows.is_empty():
                    continue
                of_names = dict(zip(names, values, strict=True))
                key = (grouping.label, *map(of_names.get, by))
                groups[key] = (rows, cells[values], above.get(values, counts[ABOVE].clear()))
        judge = _judge(counts[JUDGED]) if JUDGED in counts else None
        return cls(params, tuple(keys), groups, counts[EDGES], judge)

    def estimated(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A curve with the estimated weights of the outcomes, and the weights of the labelled rows beside them."""
        drawn = frame.with_columns(pl.col(f"{name}_weight").alias(f"{name}{OF_DRAWN}") for name in OUTCOMES)
        frames = []
        for key, rows in by_group(drawn.sort(THRESHOLD), self.keys).items():
            at = self._curve(key, rows[THRESHOLD]).at if key in self.groups else {}
            weights = (doubles(f"{name}_weight", at[name].estimate[::-1]) for name in OUTCOMES if at)
            frames.append(rows.with_columns(*weights))
        return pl.concat(frames) if frames else drawn

    def with_intervals(self, curve: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
        """A curve with limits that know the design, and what is said of them."""
        names = (*PROPORTIONS, *self.params.metrics)
        if not self.params.is_replicated or curve.is_empty():
            return with_quality(curve.with_columns(no_limits(names, "none")), names)
        frames: list[pl.DataFrame] = []
        lower: dict[str, list[Floats]] = {name: [] for name in names}
        upper: dict[str, list[Floats]] = {name: [] for name in names}
        for key, rows in by_group(curve.sort(THRESHOLD), self.keys).items():
            frames.append(rows)
            nothing = np.full(rows.height, np.nan)
            at = self._curve(key, rows[THRESHOLD]).at if key in self.groups else {}
            for name in names:
                lower[name].append(at[name].lower[::-1] if at else nothing)
                upper[name].append(at[name].upper[::-1] if at else nothing)
        columns = {
            name: Interval.of((np.concatenate(lower[name]), np.concatenate(upper[name])), "undefined_ratio")
            for name in names
        }
        limited = pl.concat(frames).with_columns(*limit_columns(columns))
        return with_quality(limited, names, clusters=clusters, keys=self.keys, events=OUTCOMES)

    def with_costs(self, points: pl.DataFrame, curve: pl.DataFrame) -> pl.DataFrame:
        """Operating points with limits of their cost per row that know the design, where a criterion has costs."""
        if not self._payoffs or not self.params.is_replicated:
            return points
        limits = np.full((2, points.height), np.nan)
        thresholds = {key: rows[THRESHOLD].sort().to_numpy() for key, rows in by_group(curve, self.keys).items()}
        for row, (*key, threshold, criterion) in enumerate(points.select(*self.keys, THRESHOLD, CRITERION).rows()):
            group = tuple(key)
            if criterion in self._payoffs and threshold is not None and group in self.groups:
                cost = self._curves[(*group, None)].at[criterion]
                index = -1 - np.searchsorted(thresholds[group], threshold)
                limits[:, row] = cost.lower[index], cost.upper[index]
        return points.with_columns(*limit_series(COST_PER_ROW, (limits[0], limits[1])))

    def largest(self, key: tuple[object, ...]) -> Mapping[str, Floats]:
        """The largest standardised errors of the ratios of a group over its curve, by draw."""
        return self._curves[(*key, None)].largest if key in self.groups else dict.fromkeys(BANDED, np.zeros(1))

    @property
    def _payoffs(self) -> dict[str, Payoffs]:
        costs = ((point.text, point.cost) for point in self.params.operating_points)
        return {text: Payoffs(*cost.by_outcome) for text, cost in costs if cost is not None}

    def lower(self, rows: pl.DataFrame, name: str, confidence: float) -> Floats:
        """Lower limits of a ratio at the thresholds of one group, of another confidence."""
        curve = self._curve(rows.select(self.keys).row(0), rows[THRESHOLD], confidence)
        return curve.at[name].lower[::-1]

    def at(self, rows: pl.DataFrame, name: str, index: int) -> tuple[float, float, float]:
        """A ratio at one of the rising thresholds of a group, and its limits."""
        numbers = self._curve(rows.select(self.keys).row(0), rows[THRESHOLD]).at[name]
        of_falling = -1 - index
        return numbers.estimate[of_falling], numbers.lower[of_falling], numbers.upper[of_falling]

    def worth(
        self, key: tuple[object, ...], thresholds: Sequence[float], payoffs: Sequence[Payoffs]
    ) -> tuple[Confusion, list[Limits]] | None:
        """The outcomes of all rows of a group at rising thresholds, and limits of the means of what they are worth.

        Args:
            key: The values of the keys.
            thresholds: Rising.
            payoffs: Of the thresholds, in their order.

        Returns:
            None where a group has no labelled row.
        """
        if key not in self.groups:
            return None
        falling = slice(None, None, -1)
        named = {str(number): payoff.at(falling) for number, payoff in enumerate(payoffs)}
        at = self._estimated(key, thresholds, (), named).at
        outcomes = Confusion(*(at[name].estimate[falling] for name in OUTCOMES))
        return outcomes, [(at[name].lower[falling], at[name].upper[falling]) for name in named]

    def areas(self, frame: pl.DataFrame, intervals: Mapping[str, Interval]) -> tuple[pl.DataFrame, dict[str, Interval]]:
        """Areas with their standard errors, and their limits.

        Args:
            frame: One row per group, with the areas of the rows that were drawn.
            intervals: Of these areas, with the reasons why one is missing.
        """
        curves = [self._curves.get((*key, None)) for key in frame.select(self.keys).rows()]
        columns, changed = [], {}
        for name, interval in intervals.items():
            is_estimated = frame[name].is_not_null().to_numpy() & np.array([curve is not None for curve in curves])
            numbers = np.full((4, frame.height), np.nan)
            for row in np.flatnonzero(is_estimated):
                curve = curves[row]
                if curve is not None:
                    area = curve.areas[name]
                    numbers[:, row] = area.estimate, curve.deviations[name], area.lower, area.upper
            value, deviation, lower, upper = numbers
            columns += [doubles(name, value), doubles(f"{name}_se", deviation)]
            wanted = is_estimated & self.params.is_replicated
            reasons = np.array([reason or "undefined_ratio" for reason in interval.reason])
            limits = np.where(wanted, lower, np.nan), np.where(wanted, upper, np.nan)
            changed[name] = Interval.of(limits, reasons)
        return frame.with_columns(*columns), changed

    def _curve(self, key: tuple[object, ...], thresholds: pl.Series, confidence: float | None = None) -> Curve:
        """The curve of a group at rising thresholds, in falling order."""
        asked = (*key, confidence)
        if asked not in self._curves:
            self._curves[asked] = self._estimated(
                key,
                thresholds,
                (*PROPORTIONS, *self.params.metrics),
                self._payoffs,
                banded=BANDED if self.params.bands else (),
                confidence=confidence,
            )
        return self._curves[asked]

    def _estimated(
        self,
        key: tuple[object, ...],
        thresholds: Iterable[float],
        names: Sequence[str],
        payoffs: Mapping[str, Payoffs],
        *,
        banded: Sequence[str] = (),
        confidence: float | None = None,
    ) -> Curve:
        """Numbers of a group at rising thresholds, in falling order; `payoffs` are in falling order, too."""
        labelled, cells, above = self.groups[key]
        boundary = self.params.boundary
        lowest = np.array([lowest_retrieved(each, boundary) for each in thresholds], dtype=np.float64)
        cuts = np.unique(np.concatenate([lowest, labelled["score"].to_numpy()]))[::-1]
        strata = cells["stratum"].unique().sort().to_numpy()
        cluster, has_proxy = self.params.cluster_column, "proxy" in labelled.columns
        return estimated_curve(
            _population(cells, above, self._cells_of(cuts), cuts, has_proxy=has_proxy),
            Labelled(
                stratum=np.searchsorted(strata, labelled["stratum"].to_numpy()),
                score=labelled["score"].to_numpy(),
                label=labelled["label"].to_numpy().astype(np.bool_),
                weight=labelled["relative"].to_numpy(),
                proxy=labelled["proxy"].cast(pl.Float64).to_numpy() if has_proxy else None,
                cluster=None if cluster is None else labelled[cluster].rank("dense").to_numpy().astype(np.int64),
            ),
            wanted=np.searchsorted(-cuts, -lowest[::-1]),
            names=names,
            payoffs=payoffs,
            banded=banded,
            judge=self.judge,
            max_fpr=self.params.max_fpr,
            confidence=self.params.confidence if confidence is None else confidence,
            seed=self.params.seed,
        )

    def _cells_of(self, cuts: Floats) -> Integers:
        """The cells of scores that are edges."""
        return self.edges["cell"].to_numpy()[np.searchsorted(self.edges["score"].to_numpy(), cuts)]


def _judge(answers: pl.DataFrame) -> Judge:
    """How far a judge is right.

    Raises:
        DataError: people have not seen enough to tell, or the judge is no better than chance.
    """
    judge = Judge(**{name: float(answers[name][0]) for name in _ANSWERS})
    try:
        judge.rates  # noqa: B018 - refuses what no labels can be corrected by
    except ValueError as error:
        message = f"input checked: {error}"
        raise DataError(
            message, remedy="Let people check more of the judge's answers, or label rows themselves."
        ) from error
    return judge


def _by_group(frame: pl.DataFrame, names: Sequence[str]) -> dict[tuple[object, ...], pl.DataFrame]:
    return by_group(frame, names) if names else {(): frame}


def _population(
    cells: pl.DataFrame, above: pl.DataFrame, cell_of_cut: Integers, cuts: Floats, *, has_proxy: bool
) -> Population:
    """The counts of all rows of a group, by which the sample is weighed.

    Args:
        cells: `stratum`, `cell`, `n_rows`, `weight` and `proxy` of each cell of scores.
        above: The same of the rows of the cell of each `edge` that lie at or above it; the edges include the cuts.
        cell_of_cut: Shape (K,): the cell of each cut.
        cuts: Falling scores.
        has_proxy: Whether there is a proxy.
    """
    strata = cells["stratum"].unique().sort().to_numpy()
    sums = {}
    for name in ("n_rows", "weight", "proxy"):
        retrieved = np.zeros((len(strata), len(cuts)))
        size = np.zeros(len(strata))
        for number, (_, rows) in enumerate(sorted(by_group(cells, ["stratum"]).items())):
            rising = rows.sort("cell")
            upto = np.concatenate([[0.0], np.cumsum(rising[name].cast(pl.Float64).to_numpy())])
            size[number] = upto[-1]
            retrieved[number] = upto[-1] - upto[np.searchsorted(rising["cell"].to_numpy(), cell_of_cut, side="right")]
        at = np.searchsorted(-cuts, -above["edge"].to_numpy())
        is_cut = (at < len(cuts)) & (cuts[np.minimum(at, len(cuts) - 1)] == above["edge"].to_numpy())
        within = np.searchsorted(strata, above["stratum"].to_numpy())
        np.add.at(retrieved, (within[is_cut], at[is_cut]), above[name].cast(pl.Float64).to_numpy()[is_cut])
        sums[name] = retrieved, size
    return Population(
        cuts,
        *sums["weight"],
        rows=sums["n_rows"][1],
        proxy=sums["proxy"][0] if has_proxy else None,
        proxy_size=sums["proxy"][1] if has_proxy else None,
    )


# Predictions to label, and how they are read when rows of them are drawn.


PREDICTIONS = InputContract(
    "predictions",
    (
        Field("score", "number", "score of the prediction; higher is more likely true", required=True),
        Field("id", "key", "the item that is predicted, by which its label is found again", required=True),
    ),
    "one row per prediction, with its score; labels are not needed",
    required=True,
)


class PredictionsToSample(SampleParameters):
    """Parameters of drawing predictions.

    Attributes:
        predictions: The scored rows.
    """

    source: ClassVar[str] = PREDICTIONS.name
    kind: Literal["sample"] = "sample"
    predictions: Input


def _plan(params: PredictionsToSample, sources: Mapping[str, Source]) -> Plan:
    """Read the predictions with the cells of their scores, and the sheet of the earlier draw."""
    predictions = sources["predictions"]
    by = resolve_by([tuple(dict.fromkeys([*params.groups, *params.shown]))], [predictions])
    to_sample = statement("threshold_sweep/rows_to_sample", [each.name for each in by])
    groups = [internal_name(name) for name in params.groups]
    labelled = read(sources["labelled"], ["id", "label"], (), {}) if "labelled" in sources else None
    nodes = (read(predictions, ["id", "score"], by, {}), *nodes_of(to_sample, groups, labelled))
    return Plan(nodes=nodes, sources=tuple(sources.values()), by=by)


SAMPLE = Stage(
    kind="sample",
    parameters=PredictionsToSample,
    inputs=(PREDICTIONS, labelled_contract(Field("id", "key", "the item that was drawn", required=True))),
    plan=_plan,
)
