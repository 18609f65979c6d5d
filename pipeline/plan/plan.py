"""A plan: the nodes that read the data of a stage. Plans can be added."""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

from ..records import dataclass
from .counts import Query, Sweep
from .nodes import Phase, Relation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import sqlglot.expressions as exp

    from ..sources.keys import KeyMatch
    from ..sources.source import Source
    from .nodes import Node
    from .optional_tables import OptionalTable
    from .rows import Grouped


@dataclass(frozen=True)
class Plan:
    """Everything that reads data for one stage, or for a part of it.

    Attributes:
        nodes: What is asked, in the order of phases.
        sources: The inputs, the primary input first.
        by: The grouping columns in order.
        used: Count columns whose sum is the number of used rows of the primary input.
        accounting: Query that says what became of every row of the primary input; asked only when rows were left out.
        other_accounting: Queries that say what became of every row of other inputs, by input; default: those that
            `where` keeps are used.
        positive: Condition on the primary input that a row is a positive; None: its rows are not labelled.
        units: Input whose rows can be excluded; its relation has the column `complete`.
        optional: Tables that are made only if the config asks for them, or while the inputs are small.
        key_matches: Keys by which inputs find each other's rows.
        derived: Fields that the stage computes from others, `input.field` → how, in words.
        inapplicable: Mapped fields that it does not read, `input.field` → why, in words.
        remedies: What to do where a status takes every row of an input, where the stage knows better than the runner.
        warnings: What the user should know before the numbers are used.
        facts: Choices made for the user, kept in the run record.
    """

    nodes: tuple[Node, ...] = ()
    sources: tuple[Source, ...] = ()
    by: tuple[Grouped, ...] = ()
    used: tuple[str, ...] = ()
    accounting: Query | None = None
    other_accounting: dict[str, Query] = field(default_factory=dict)
    positive: exp.Expr | None = None
    units: str | None = None
    optional: tuple[OptionalTable, ...] = ()
    key_matches: tuple[KeyMatch, ...] = ()
    derived: dict[str, str] = field(default_factory=dict)
    inapplicable: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(_in_order(self.nodes)))

    def __add__(self, other: Plan) -> Plan:
        """Both together: nodes of one phase run in the order of the sum.

        Raises:
            ValueError: both set a field that is not a collection.
        """
        return Plan(**{each.name: _sum(getattr(self, each.name), getattr(other, each.name)) for each in fields(Plan)})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that read the inputs."""
        return tuple(node for node in self.nodes if isinstance(node, Relation))

    @property
    def counts_missed(self) -> bool:
        """Whether rows without a valid score are counted, below every threshold."""
        return any(node.missed for node in self.nodes if isinstance(node, Sweep))

    def without(self, tables: Collection[str]) -> Plan:
        """The same without what makes some of the optional tables."""
        nodes = (node for node in self.nodes if node.phase != Phase.AFTER_RESULTS or node.into not in tables)
        return replace(self, nodes=tuple(nodes))


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Nodes by phase, and the sweep of every counting query, each once, after the relations that it reads.

    Raises:
        ValueError: two different sweeps have one name.
    """
    sweeps: dict[str, Sweep] = {}
    listed: list[Node] = []
    for node in nodes:
        sweep = node.sweep if isinstance(node, Query) else node if isinstance(node, Sweep) else None
        if sweep is not None and sweeps.setdefault(sweep.into, sweep) != sweep:
            message = f"two sweeps are called {sweep.into!r}"
            raise ValueError(message)
        if sweep is not None and sweep not in listed:
            listed.append(sweep)
        if node is not sweep:
            listed.append(node)
    return sorted(listed, key=lambda node: node.phase)


def _sum(left: Any, right: Any) -> Any:  # noqa: ANN401 - tuples, dictionaries, or what only one of them has
    if isinstance(left, tuple):
        return left + right
    if isinstance(left, dict):
        return left | right
    if left is not None and right is not None:
        message = f"only one of two plans that are added may say this: {left!r}, {right!r}"
        raise ValueError(message)
    return right if left is None else left
