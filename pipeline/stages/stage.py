"""The declaration of a stage: a plan of counts, tables derived from them, and the units of its numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from pydantic import field_validator

from ..base import columns, visible_text
from ..base.columns import RATIO_OF, REPLICATE, THRESHOLD, among
from ..base.errors import DataError, Note
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE, CRITERION, GROUPING, TOTAL, Column, Table, group_text
from ..metrics.uncertainty.limits import DOUBTFUL, INTERVAL_QUALITY, ON_SAME_DATA
from .parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ..base.columns import Ratio
    from ..metrics.planning import Scale
    from ..plan.plan import Plan
    from ..sources.inputs import InputContract
    from ..sources.source import Source
    from .figures import KeyNumber, MakesFigures
    from .sections import Asked, Evidence, Measured


DOUBT = "*"
MOST_POINTS = 200  # of a small curve, about


@dataclass(frozen=True, repr=False)
class Summary:
    """The summary at the end of a run on a terminal; it shows itself as text.

    Attributes:
        headers: Titles of the columns.
        rows: Cells as text.
        groupings: The grouping of every row, as the tables name it: shown where several are mixed.
        sentence: The main result in words.
        curve: Values between 0 and 1 over rising thresholds, None where undefined; None: nothing to draw.
        curve_title: What the curve shows.
        on_same_data: Whether a threshold was chosen on the rows that its numbers are of.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentence: str
    groupings: tuple[str, ...] = ()
    curve: tuple[float | None, ...] | None = None
    curve_title: str = ""
    on_same_data: bool = False

    def __repr__(self) -> str:
        """Return the table and the sentence below it."""
        lines = [self.headers, *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)] if self.rows else []
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines if widths]
        return "\n".join([*table, *filter(None, (self.legend, self.sentence))])

    @property
    def legend(self) -> str:
        """The meaning of `DOUBT`, if one of the cells has it behind limits; else empty."""
        words = f"{DOUBT} the interval is doubtful: see the warnings, and interval_quality in the tables"
        if self.on_same_data:
            words = f"{words}; or the threshold was chosen on the same data, so that the number is a little too good"
        return words if any(cell.endswith(f"){DOUBT}") for row in self.rows for cell in row) else ""


@dataclass(frozen=True)
class UnitTable:
    """A result table with one row per unit, on which `compare` can compare stages.

    Where units of the stage lie in clusters, `has_clusters` says whether the column `CLUSTER` of the table tells them.

    Attributes:
        table: Its name.
        unit: Its column that identifies a unit.
        columns: Its names of counts, where they differ from those of `compare`: name there → name here.
        metrics: What is compared unless the config says otherwise; none: pooled precision, recall and F1.
        grouped: Whether it has rows for the groupings of its stage, not only for the total.
        contributions: Metrics whose values are contributions of units to a number of all units together: their mean is
            that number and their spread its sampling error, but a single value means nothing. Only tests of means fit.
        has_clusters: Whether it has the column `CLUSTER` if the stage has clusters of units.
    """

    table: str
    unit: str
    columns: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    grouped: bool = True
    contributions: tuple[str, ...] = ()
    has_clusters: bool = False

    def cluster_of(self, cluster: str | None) -> str | None:
        """The clusters of its units, if the stage has this key `cluster`; None: the units are independent."""
        return cluster if self.has_clusters and cluster != self.unit else None


CLUSTER = "cluster"  # the column of a table of units that tells their clusters


@dataclass(frozen=True)
class Stage:
    """One task, as data. A stage never opens a file or a connection: it plans, and it derives.

    Attributes:
        kind: Name of the task, the same in every place.
        parameters: The parameter class.
        inputs: The inputs, the primary input first.
        plan: What to bind, check and count, from the parameters and the inputs by name.
        tables: The result tables.
        count_columns: The counts of the saved count table.
        derive: Result tables by name, from the parameters and the tables of the plan: count tables with the columns
            `grouping`, the `by` columns, `replicate`, `threshold` and the counts, and frames. A table that it leaves
            out has no row.
        warnings: What the numbers themselves call for, from the result tables: said in the summary and kept in the
            run record.
        summarize: The result for a person, from the result tables.
        figures: What there is to look at, from the result tables and the level of their intervals; figures without a
            row are left out.
        key_numbers: The numbers that matter most, group by group, from the result tables.
        methods: What a methods section says of the stage: sentences, empty ones being left out.
        units: The table with one row per unit, if it has one.
        evidence: Where its numbers come from: formulas, and sections of rows.
        sample_sizes: What its numbers rest on, from which `thresher plan` tells how much more of it is needed.
        further_columns: Columns that tables have beside those of their contract because the parameters ask for them, by
            table.
    """

    kind: str
    parameters: type[StageParameters]
    inputs: tuple[InputContract, ...]
    plan: Callable[[Any, Mapping[str, Source]], Plan]
    tables: tuple[Table, ...] = ()
    count_columns: tuple[Column, ...] = ()
    derive: Callable[[Any, Mapping[str, pl.DataFrame]], dict[str, pl.DataFrame]] = lambda _params, _counts: {}
    warnings: Callable[[Mapping[str, pl.DataFrame]], tuple[str, ...]] = lambda _tables: ()
    summarize: Callable[[Mapping[str, pl.DataFrame]], Summary] = lambda _tables: Summary((), (), "")
    figures: MakesFigures = lambda _tables, _confidence=0.95: ()
    key_numbers: Callable[[Mapping[str, pl.DataFrame]], tuple[KeyNumber, ...]] = lambda _tables: ()
    methods: Callable[[Measured], Iterable[str]] = lambda _measured: ()
    units: UnitTable | None = None
    evidence: Evidence | None = None
    sample_sizes: SampleSizes | None = None
    further_columns: Callable[[Any], Mapping[str, tuple[Column, ...]]] = lambda _params: {}

    def tables_of(self, params: StageParameters) -> tuple[Table, ...]:
        """Return the result tables with the columns that the parameters ask for, and the order of their criteria."""
        further = self.further_columns(params)
        criteria = tuple(point.text for point in getattr(params, "operating_points", ()))
        tables = (table.with_columns(further.get(table.name, ())) for table in self.tables)
        return tuple(replace(table, criteria=criteria) if CRITERION in table.key else table for table in tables)

    def as_asked(self, params: StageParameters) -> Stage:
        """Return the stage with the tables that the parameters ask for."""
        return replace(self, tables=self.tables_of(params))


_REPLICATE = Column(REPLICATE, "BIGINT", "group of clusters; intervals leave one out at a time")
_THRESHOLD = Column("threshold", "DOUBLE", "lower edge of the bin; NULL: below all", nullable=True)


def counts_table(stage: Stage) -> Table:
    """The saved count table of a stage."""
    keys = (REPLICATE, "threshold", *(each.name for each in stage.count_columns if each.type == "KEY"))
    columns = (_REPLICATE, _THRESHOLD, *stage.count_columns)
    return Table(COUNT_TABLE, "one row per group, replicate and bin", columns, keys)


def groups_without(
    groups: pl.DataFrame, conditions: Mapping[str, pl.Expr], consequence: str = "numbers that need one are empty (NULL)"
) -> tuple[str, ...]:
    """Warnings that all groups, one a row, lack something, or notes that some do: what it is in words, by condition."""
    messages = []
    for words, condition in conditions.items():
        number_of = groups.filter(condition).height
        if number_of:
            message = f"{groups_with(number_of, groups.height)} {words}: {consequence}"
            messages.append(message if number_of == groups.height else Note(message))
    return tuple(messages)


def groups_with(number_of: int, groups: int, *, only: str = "there is") -> str:
    """The beginning of a sentence on how many of the groups have something; `only` is said of a single group."""
    if groups == 1:
        return only
    return f"{number_of:,} of {groups:,} groups {'has' if number_of == 1 else 'have'}"


def f1_curve(curve: pl.DataFrame, group: pl.DataFrame) -> tuple[tuple[float | None, ...] | None, str]:
    """The small curve of a summary, of the rows of one group, and its title; None where there are no two thresholds."""
    rows = among(curve, group, group.columns)
    rows = rows if rows[THRESHOLD].is_sorted() else rows.sort(THRESHOLD)
    thresholds = rows[THRESHOLD].drop_nulls()
    if thresholds.len() <= 1:
        return None, ""
    title = f"F1 at thresholds from {number(thresholds[0])} to {number(thresholds[-1])}"
    return tuple(rows["f1"].gather_every(max(1, rows.height // MOST_POINTS))), title


def summary_of(
    rows: pl.DataFrame,
    cells: Mapping[str, Callable[[Mapping[str, Any]], str]],
    sentence: Callable[[Mapping[str, Any]], str],
    curve: tuple[tuple[float | None, ...] | None, str] = (None, ""),
    *,
    on_same_data: bool = False,
) -> Summary:
    """What people see of groups, the most important first.

    Args:
        rows: At least one.
        cells: What makes the cells of a row behind its group, by their titles.
        sentence: The main result in words, of the first row.
        curve: The small curve and its title, as from `f1_curve`.
        on_same_data: As in `Summary`.
    """
    every = rows.to_dicts()
    return Summary(
        headers=("group", *cells),
        rows=tuple((group_text(row), *(cell(row) for cell in cells.values())) for row in every),
        sentence=of_group(every[0], sentence(every[0])),
        groupings=tuple(rows[GROUPING.name]),
        curve=curve[0],
        curve_title=curve[1],
        on_same_data=on_same_data,
    )


def interval_cells(names: Mapping[str, str]) -> dict[str, Callable[[Mapping[str, Any]], str]]:
    """Cells of numbers with their limits, by title, from their columns by title."""
    return {title: partial(interval, name=name) for title, name in names.items()}


def of_group(row: Mapping[str, Any], sentence: str) -> str:
    """A sentence about a group, which it names unless it is the total."""
    return sentence if row[GROUPING.name] == TOTAL else f"{row[GROUPING.name]} {group_text(row)}: {sentence}"


def number(value: object) -> str:
    """A threshold for people."""
    return f"{value:.4g}" if isinstance(value, float) else "–"


def percent(value: object) -> str:
    """A ratio for people."""
    return visible_text.percent(value) if isinstance(value, float) else "–"


def interval(row: Mapping[str, object], name: str, quality: str = INTERVAL_QUALITY) -> str:
    """A ratio and its limits for people, with `DOUBT` behind doubtful limits."""
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    if not isinstance(lower, float) or not isinstance(upper, float):
        return percent(row[name])
    return f"{percent(row[name])} ({visible_text.percent_limits(lower, upper)}){doubt(row, quality)}"


def doubt(row: Mapping[str, object], quality: str = INTERVAL_QUALITY) -> str:
    """`DOUBT` if limits of a row are doubtful, or their threshold was chosen on the same data, else nothing."""
    return DOUBT if row[quality] in {*DOUBTFUL, ON_SAME_DATA} else ""


def integer(value: object) -> str:
    """A count for people."""
    return f"{value:,}" if isinstance(value, int) else "–"


# How much a unit (event, cluster, document, series) moves a number: the number with it and without it.


CONFUSION = ("tp", "fp", "fn")
OF_COUNTS = ("precision", "recall", "f1")
WITHOUT, INFLUENCE = "without", "influence"


def untold(asked: Asked, units: str, told: Sequence[str] = OF_COUNTS) -> str:
    """Why the number that is explained is not known without one of the units; empty if it is one of those told."""
    if asked.measure in told:
        return ""
    return (
        f"what {asked.measure} would be without one of the {units} is not known from their counts; it is known for "
        f"{', '.join(told)}"
    )


def ratio_of(counts: Mapping[str, pl.Expr], measure: str) -> pl.Expr:
    """A ratio of the counts `tp`, `fp`, `fn`, perhaps `tn`.

    Raises:
        ValueError: it is no ratio of these counts.
    """
    ratio = RATIO_OF.get(measure)
    if ratio is not None and counts.keys() >= set(ratio.outcomes):
        return columns.ratio_of(ratio, counts)
    message = f"{measure} is no ratio of {', '.join(counts)}"
    raise ValueError(message)


def with_influence(units: pl.DataFrame, measure: str, suffix: str = "") -> pl.DataFrame:
    """Units with the ratio of all others, `without`, and `influence`, the difference that the unit makes.

    Units have `tp`, `fp`, `fn` and perhaps `tn`, with a suffix such as `_weight`. Those with the largest influence come
    first; where the others alone have no ratio it is NULL, and comes last.
    """
    names = [name for name in (*CONFUSION, "tn") if f"{name}{suffix}" in units.columns]
    values = {name: pl.col(f"{name}{suffix}").cast(pl.Float64) for name in names}
    totals = units.select(value.sum().alias(name) for name, value in values.items())
    ratio = totals.select(ratio_of({name: pl.col(name) for name in names}, measure).alias(measure)).item()
    others = {name: pl.lit(totals[name].item()) - value for name, value in values.items()}
    return by_influence(units.with_columns(ratio_of(others, measure).alias(WITHOUT)), ratio)


def by_influence(units: pl.DataFrame, ratio: float | None) -> pl.DataFrame:
    """Units with `influence`, the ratio of all less `without`; the largest come first, equal ones keep their order."""
    influence = (pl.lit(ratio, dtype=pl.Float64) - pl.col(WITHOUT)).alias(INFLUENCE)
    return units.with_columns(influence).sort(
        pl.col(INFLUENCE).abs(), descending=True, nulls_last=True, maintain_order=True
    )


@dataclass(frozen=True)
class Counted:
    """A kind of item that a row of results counts.

    Attributes:
        noun: What it is, several of them.
        columns: The columns whose sum the number is; it is not known where a row lacks one of them.
        is_listed: Whether every plan tells of it; else only those of metrics that rest on it.
    """

    noun: str
    columns: tuple[str, ...]
    is_listed: bool = True


def nouns_of(ratios: Iterable[Ratio], counts: Iterable[Counted]) -> dict[str, str]:
    """The noun of the items that the outcomes of each ratio count, by the name of the ratio."""
    nouns = {frozenset(counted.columns): counted.noun for counted in counts}
    return {ratio.name: nouns[frozenset(ratio.outcomes)] for ratio in ratios}


@dataclass(frozen=True)
class Labelled:
    """A sample that people check.

    Attributes:
        metric: The number that it gives.
        table: The table that has it.
        labels: The column with the number of checked rows.
        right: The column with the number of right ones among them.
        population: The column, beside the estimate, with the number of rows that the sample is drawn from.
        estimate: The metric that estimates the same without labels.
    """

    metric: str
    table: str
    labels: str
    right: str
    population: str
    estimate: str


@dataclass(frozen=True)
class SampleSizes:
    """The units and counts that the numbers of a stage rest on.

    Attributes:
        nouns: What is independent, several of them, by the column that identifies it; values of other columns are
            clusters.
        unit: The column that identifies units where the record of the run does not say what is independent.
        units: The column that tells the number of units, by the column that identifies them.
        inputs: The input with a row for each unit, by that column: for the total, where no column tells their number.
        counts: What else there is more of with more units; of those with one noun the first that a row tells.
        rests_on: The noun of what a share is over, by metric.
        scales: How limits are made, by metric.
        other_scale: How limits of all other metrics are made; None: these are not planned.
        bounds: Where limits are cut off, for scales that do not end there.
        clusters: The table that tells the effective number of clusters of every group; empty: units are all alike.
        sized_by: The noun of the rows that make the size of a cluster there; empty: others than any ratio is over.
        has_groups: Whether many units are put into groups.
        is_paired: Whether its numbers are differences of two systems on the same units.
        labelled: The sample that people check, if it draws one.
    """

    nouns: Mapping[str, str]
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: tuple[Counted, ...] = ()
    rests_on: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    other_scale: Scale | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    clusters: str = ""
    sized_by: str = ""
    has_groups: bool = True
    is_paired: bool = False
    labelled: Labelled | None = None


# Stages whose input can be the tables of other stages.


@dataclass(frozen=True)
class UpstreamStage:
    """A stage whose tables another stage reads.

    Attributes:
        name: Its name.
        kind: Its task.
        by: Its groupings.
        folder: The folder of its run.
        omitted: Its tables that were not made, with the reason.
        measures: Measures that it was asked for by name, columns of its units.
        cluster: The column that its key `cluster` names, the first of two.
        cluster_order: Its key `cluster_order`: the column by which these follow each other in time.
    """

    name: str
    kind: str
    by: tuple[tuple[str, ...], ...]
    folder: Path
    omitted: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    cluster: str | None = None
    cluster_order: str | None = None

    def file(self, table: str) -> str:
        """Path of one of its tables.

        Raises:
            DataError: the table was not made.
        """
        if table in self.omitted:
            message = f"stage {self.name!r} did not make the table {table}, which holds the units to compare"
            raise DataError(message, remedy=f"The reason: {self.omitted[table]}.")
        return str(self.folder / table / f"{self.name}.parquet")


class UpstreamParameters(StageParameters):
    """Parameters of a stage whose input can be the tables of others.

    Attributes:
        of: Names of the stages, one or several.
        results: Results folder in which they were published; empty: they come earlier in the same config.
    """

    of: tuple[str, ...] = ()
    results: str = ""

    @field_validator("of", mode="before")
    @classmethod
    def _one_name(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("of")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            message = f"{', '.join(value)} names a stage twice"
            raise ValueError(message)
        return value

    @property
    def upstream(self) -> tuple[str, ...]:
        """The stages of the same config that have to run before."""
        return () if self.results else self.of

    @abstractmethod
    def with_upstream(self, upstream: Sequence[UpstreamStage]) -> Self:
        """The parameters with the tables of these stages as an input.

        Raises:
            ValueError: they have no such tables.
            DataError: one of them did not make its table.
        """
