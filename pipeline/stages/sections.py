"""What `explain` shows of a stage, as data: formulas, rows behind a number, and conventions of other tools."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..records import dataclass
from ..tables.columns import lowest_retrieved
from ..tables.groupings import internal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl
    import sqlglot.expressions as exp

    from ..plan.nodes import Node
    from ..plan.plan import Plan
    from ..sources.source import Source


# Where the numbers of a stage come from: formulas and sections of rows, as data, which `explain` shows.


Form = tuple[tuple[str, str], ...]
"""Steps to a number: the name of each quantity, with its formula of columns of the row and of earlier steps."""


@dataclass(frozen=True)
class Measure:
    """A number that can be explained.

    Attributes:
        name: Its column, which also has its definition.
        table: The result table.
        forms: How it follows from counts; the first of which every column is there and not NULL is shown.
    """

    name: str
    table: str
    forms: tuple[Form, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What `explain` shows of a stage.

    Attributes:
        measures: Its numbers, the main one first.
        sections: The rows behind them.
        rows: What sections are about, each a relation or a query with all grouping columns, by the name under which
            queries read the rows of the explained group.
        points: The table with the threshold that the summary speaks of, in the rows of its first criterion; empty: it
            speaks of the highest.
        threshold: The column of thresholds; empty: the numbers have none.
        preferred: Values of other key columns that the summary speaks of.
        values: Parameters of the queries by name.
        quantities: What formulas need beyond the row, by name.
        nodes: What is asked of the engine in place of nodes of the plan that make the same.
        parameters: Parameters that differ from those of the run, so that rows carry what people want to see.
        independent: What is independent, where the record of the run does not say it.
        profiles: Tools whose numbers can be compared.
        decides: Keys of the config that decide the numbers, shown even where they have their default.
    """

    measures: tuple[Measure, ...]
    sections: tuple[Section, ...]
    rows: Callable[[Asked], Mapping[str, str] | Mapping[str, str | exp.Query]]
    points: str = ""
    threshold: str = "threshold"
    preferred: Mapping[str, str] = field(default_factory=dict)
    values: Callable[[Asked], dict[str, float]] = lambda asked: {"lowest_score": asked.lowest_score}
    quantities: Callable[[Asked], dict[str, float]] = lambda _asked: {}
    nodes: Callable[[Asked], tuple[Node, ...]] = lambda _asked: ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    independent: str = "rows"
    decides: tuple[str, ...] = ()


# Rows behind a number, as data: what is explained, and the sections of rows that `explain` shows of it.


EXPLAINED_ROWS = "explained_rows"


@dataclass(frozen=True)
class Asked:
    """What is explained: one number of one group.

    Attributes:
        params: The parameters of the stage.
        plan: Its plan.
        tables: Its result tables.
        measure: The number.
        row: The row of the result table that has it, grouping columns under their internal names.
        group: Grouping columns of that row, internal names, with their values; empty for the total.
        threshold: The threshold of the row; None where there is none.
    """

    params: Any
    plan: Plan
    tables: Mapping[str, pl.DataFrame]
    measure: str
    row: Mapping[str, Any]
    group: Mapping[str, Any]
    threshold: float | None

    @property
    def lowest_score(self) -> float:
        """The lowest score that the threshold retrieves; minus infinity without a threshold."""
        return float("-inf") if self.threshold is None else lowest_retrieved(self.threshold, self.params.boundary)

    @property
    def by(self) -> tuple[str, ...]:
        """Internal names of all grouping columns."""
        return tuple(internal_name(grouped.label) for grouped in self.plan.by)

    def source(self, name: str) -> Source | None:
        """Return an input of the stage, if it was given."""
        return next((source for source in self.plan.sources if source.name == name), None)


@dataclass(frozen=True)
class Sheet:
    """Rows that people fill in, which a later run reads back as an input.

    Attributes:
        input: The input.
        key: Columns that tell the rows apart.
        verdict: The column that people fill in: true or false.
    """

    input: str
    key: tuple[str, ...]
    verdict: str


def _unchanged(frame: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    return frame


@dataclass(frozen=True)
class Section:
    """Rows behind a number, the most telling first.

    Attributes:
        name: Its name on the command line.
        title: What the rows are.
        sentence: Why they are here and in which order; `{threshold}` stands for the threshold and `{measure}`
            for the number.
        query: The query file of its rows, which reads `explained_rows`; empty: it shows rows of `table`.
        table: A result table whose rows it shows.
        reads: Further query files whose rows it needs, by name.
        finish: Makes the rows that are shown from those of the query, those of `reads` and what is asked.
        ranks: Whether `finish` puts the rows in order, and so needs all of them.
        segment: What `segment` stands for in its queries; default: the grouping columns.
        columns: What stands for columns of its queries that have another name in the relations.
        inputs: Inputs whose own columns are shown beside, each with its key: canonical name → column of the rows.
        hides: Columns that are needed to find others and are not shown.
        absent: Why there is no such section for what is asked; empty if there is.
        sheet: What people fill in of it; such a section is shown only when it is asked for by name, with all its rows.
    """

    name: str
    title: str
    sentence: str
    query: str = ""
    table: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    finish: Callable[[pl.DataFrame, Mapping[str, pl.DataFrame], Asked], pl.DataFrame] = _unchanged
    ranks: bool = False
    segment: Callable[[Asked], tuple[str, ...]] = lambda asked: asked.by
    columns: Callable[[Asked], Mapping[str, str | exp.Expr]] = lambda _asked: {}
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hides: Callable[[Asked], tuple[str, ...]] = lambda _asked: ()
    absent: Callable[[Asked], str] = lambda _asked: ""
    sheet: Sheet | None = None


# Conventions of other tools, as data: what they do otherwise, and which options of ours do the same.


@dataclass(frozen=True)
class Recounted:
    """The tables of a stage under some conventions of a tool.

    Attributes:
        tables: The result tables.
        row: The row of the explained group and threshold in the table of the number.
        of_group: Rows of a result table that belong to the explained group.
    """

    tables: Mapping[str, pl.DataFrame]
    row: Mapping[str, Any]
    of_group: Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class Convention:
    """A choice that changes a number, as a tool makes it.

    Attributes:
        topic: What is chosen.
        tool: What the tool does.
        options: Keys of the config with the values that do the same; without any there is no such option.
        keeps: Other values of these keys that come to the same.
        ours: What is done here where there is no option.
        measures: The numbers that it can change; none: all of the profile.
        change: What it adds to the number where there is no option.
        undefined: What the tool gives where the number is NULL; None: it gives none either.
        needs_scores: Whether it is about scores, and is left out where no input has any.
        section: The rows that make the difference.
    """

    topic: str
    tool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    keeps: Mapping[str, Any] = field(default_factory=dict)
    ours: str = ""
    measures: tuple[str, ...] = ()
    change: Callable[[Recounted], float | None] | None = None
    undefined: float | None = None
    needs_scores: bool = False
    section: Section | None = None


@dataclass(frozen=True)
class Profile:
    """A tool whose number can be had with our options.

    Attributes:
        name: Its name on the command line.
        tool: What it is called, with the version that it was compared with.
        measures: Our names of numbers, with its own.
        conventions: What it does, in the order in which the options are changed.
        exactly: When the number is that of the tool, in words.
        units: The result table with one row per unit, its key and the numbers that are compared; empty: none.
        all_scores: Whether the tool knows no scores, so that every prediction counts.
        refuses: Why its number cannot be computed with these parameters; empty if it can.
    """

    name: str
    tool: str
    measures: Mapping[str, str]
    conventions: tuple[Convention, ...]
    exactly: str
    units: tuple[str, str, tuple[str, ...]] | None = None
    all_scores: bool = False
    refuses: Callable[[Any], str] = lambda _params: ""
