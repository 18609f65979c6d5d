"""Queries of the rows of single files, by a column that tells the file."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..records import dataclass
from .dialect import render

if TYPE_CHECKING:
    from collections.abc import Collection

FILE = "of:file"  # number of the file that a row comes from


@dataclass(frozen=True)
class Met:
    """A relation whose rows meet those of the files in a join.

    Attributes:
        relation: It, as a query.
        keys: Column of the relation → the column of the rows of files that it must equal; empty: any of its rows may
            count for any file.
        rows: Query of these columns for the rows of files, each distinct combination once for a file.
    """

    relation: exp.Query
    keys: tuple[tuple[str, str], ...] = ()
    rows: ByFile | None = None


@dataclass(frozen=True)
class ByFile:
    """A query of rows that each come from one file.

    Attributes:
        rows: It, with the column `FILE`.
        met: What else its rows depend on.
        merged_by: How values of several files become one, by column: `sum`, `min` or `max`. Rows with equal other
            columns are of one group.
    """

    rows: exp.Select
    met: tuple[Met, ...]
    merged_by: dict[str, str] = field(default_factory=dict)

    def of_each_scan(self) -> tuple[str, dict[str, str]]:
        """What decides the answer of a file: the text around the scans, and that of each scan by its name.

        Scans of files with other columns, or in other folders, are united; they differ in their own part only.
        """
        tree = self.rows.copy()
        scans = _scans(tree)
        names = [table.meta[FILE] for table in scans]
        for table in scans:
            table.set("this", exp.to_identifier("scan"))
        branches = [_branch(table) for table in scans]
        texts = ["" if branch is None else render(branch, pretty=False) for branch in branches]
        if branches[0] is not None:
            _union(branches[0]).replace(exp.select("*").from_(exp.to_table("united_scans")))
        return render(tree, pretty=False), dict(zip(names, texts, strict=True))

    def of_scans(self, names: Collection[str]) -> exp.Select:
        """The same over some of the scans only."""
        tree = self.rows.copy()
        branches = {table.meta[FILE]: _branch(table) for table in _scans(tree)}
        chosen = [branch.copy() for name, branch in branches.items() if name in names and branch is not None]
        any_branch = next(iter(branches.values()))
        if any_branch is not None and len(chosen) < len(branches):
            _union(any_branch).replace(
                chosen[0] if len(chosen) == 1 else exp.union(*chosen, distinct=False, copy=False)
            )
        return tree


def _scans(tree: exp.Expr) -> list[exp.Table]:
    return [table for table in tree.find_all(exp.Table) if table.meta.get(FILE)]


def _branch(table: exp.Table) -> exp.Query | None:
    """The query of a scan that is united with those of others; None if it is the only one."""
    node = table.find_ancestor(exp.Select)
    while node is not None and not isinstance(node.parent, exp.Union):
        node = node.parent_select
    return node


def _union(branch: exp.Expr) -> exp.Expr:
    """The whole union that a query is part of."""
    while isinstance(branch.parent, exp.Union):
        branch = branch.parent
    return branch
