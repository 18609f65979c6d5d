"""Where the numbers of a stage come from: formulas and sections of rows, as data, which `explain` shows."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import sqlglot.expressions as exp

    from ..plan.nodes import Node
    from .profiles import Profile
    from .sections import Asked, Section

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
