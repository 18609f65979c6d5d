"""What every stage is: parameters, inputs, a plan of counts, and result tables derived from counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.tables.groupings import TOTAL, internal_name
from pipeline.tables.schemas import COUNT_TABLE, GROUPING, Column, Table
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pipeline.plan.plan import Plan
    from pipeline.sources.inputs import InputContract
    from pipeline.sources.source import Source
    from pipeline.stages.parameters import StageParameters


@dataclass(frozen=True)
class Summary:
    """What a person sees at the end of a run on a terminal.

    Attributes:
        headers: Titles of the columns.
        rows: Cells as text.
        groupings: The grouping of every row, as the tables name it: shown where several are mixed.
        sentence: The main result in words.
        curve: Values between 0 and 1 over rising thresholds, None where undefined; None: nothing to draw.
        curve_title: What the curve shows.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentence: str
    groupings: tuple[str, ...] = ()
    curve: tuple[float | None, ...] | None = None
    curve_title: str = ""


class Stage(Protocol):
    """One task. A stage never opens a file or a connection: it plans, and it derives."""

    @property
    def kind(self) -> str:
        """Name of the task, the same in every place."""
        ...

    @property
    def parameters(self) -> type[StageParameters]:
        """The parameter class."""
        ...

    @property
    def inputs(self) -> tuple[InputContract, ...]:
        """The inputs, the primary input first."""
        ...

    @property
    def tables(self) -> tuple[Table, ...]:
        """The result tables."""
        ...

    @property
    def count_columns(self) -> tuple[Column, ...]:
        """The counts of the saved count table."""
        ...

    def plan(self, params: Any, sources: Mapping[str, Source]) -> Plan:  # noqa: ANN401 - each stage has its own class
        """What to bind, check and count."""
        ...

    def derive(self, params: Any, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:  # noqa: ANN401 - see plan
        """Result tables by name, from the count tables of all groupings.

        Args:
            params: The parameters of the stage.
            counts: By name; columns `grouping`, the `by` columns, `replicate`, `threshold` and the counts.
        """
        ...

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """What the numbers themselves call for: said in the summary and kept in the run record."""
        ...

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """The result for a person."""
        ...


_REPLICATE = Column(REPLICATE, "BIGINT", "group of clusters; intervals leave one out at a time")
_THRESHOLD = Column("threshold", "DOUBLE", "lower edge of the bin; NULL below all", nullable=True)


def counts_table(stage: Stage) -> Table:
    """The saved count table of a stage."""
    keys = (REPLICATE, "threshold", *(each.name for each in stage.count_columns if each.type == "KEY"))
    columns = (_REPLICATE, _THRESHOLD, *stage.count_columns)
    return Table(COUNT_TABLE, "one row per group, replicate and bin", columns, keys)


def group_text(row: Mapping[str, Any]) -> str:
    """The group of a result row for people: the values of its grouping columns, or `all`."""
    if row[GROUPING.name] == TOTAL:
        return TOTAL
    values = (row[internal_name(name)] for name in row[GROUPING.name].split(","))
    return ", ".join("null" if value is None else str(value) for value in values)


def of_group(row: Mapping[str, Any], sentence: str) -> str:
    """A sentence about a group, which it names unless it is the total."""
    return sentence if row[GROUPING.name] == TOTAL else f"{row[GROUPING.name]} {group_text(row)}: {sentence}"


def number(value: object) -> str:
    """A threshold for people."""
    return f"{value:.4g}" if isinstance(value, float) else "–"


def percent(value: object) -> str:
    """A ratio for people."""
    return f"{value:.1%}" if isinstance(value, float) else "–"


def interval(row: Mapping[str, object], name: str) -> str:
    """A ratio and its limits for people."""
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    if not isinstance(lower, float) or not isinstance(upper, float):
        return percent(row[name])
    return f"{percent(row[name])} ({lower * 100:.0f}–{upper * 100:.0f})"


def integer(value: object) -> str:
    """A count for people."""
    return f"{value:,}" if isinstance(value, int) else "–"
