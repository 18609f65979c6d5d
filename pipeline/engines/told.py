"""What an engine has been told: the scans and the named queries, and what a query reads through them."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..queries.splitting import Splitter
from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..queries.partitions import Partition


@dataclass(frozen=True)
class InputFile:
    """A file of an input.

    Attributes:
        source: Name of the input.
        rows: Its rows, from the footer.
        identity: What tells whether it was replaced; None: it changed so recently that nothing does.
    """

    source: str
    rows: int
    identity: str | None


@dataclass(frozen=True)
class Scan:
    """Files that were registered as a relation.

    Attributes:
        source: Name of the input that they belong to.
        files: Their paths.
        partitions: Further columns, with their values in each file.
        located: Whether the relation tells file and row of every row.
    """

    source: str
    files: tuple[str, ...]
    partitions: tuple[Partition, ...]
    located: bool

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self.files)}

    def partitions_of(self, paths: Iterable[str]) -> list[Partition]:
        """The further columns of some of the files."""
        numbers = [self._numbers[path] for path in paths]
        return [partition.of(numbers) for partition in self.partitions]

    def tells(self, path: str) -> list[str | None]:
        """What rows of a file tell of it besides its content: the values of its further columns, and its path.

        The path counts where rows tell it: that of a copy is another in every run, whatever identifies its content.
        """
        values = [partition.values[self._numbers[path]] for partition in self.partitions]
        return [*values, path] if self.located else values


@dataclass
class Told:
    """The relations of an engine.

    Attributes:
        files: The files of the inputs by path.
        scans: The relations of files.
        views: The named queries that are computed whenever they are read.
    """

    files: Mapping[str, InputFile]
    scans: dict[str, Scan] = field(default_factory=dict)
    views: dict[str, exp.Query] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def replaced(self, name: str, *, scan: Scan | None = None, view: exp.Query | None = None) -> None:
        """Note what a name means from now on: files, a query, or rows that the engine has."""
        self._versions[name] = self._versions.get(name, 0) + 1
        self.scans.pop(name, None)
        self.views.pop(name, None)
        if scan is not None:
            self.scans[name] = scan
        if view is not None:
            self.views[name] = view

    def scans_of(self, query: exp.Expr) -> list[Scan]:
        """The scans that a query reads, through named queries too."""
        return [self.scans[name] for name in self._read_by(query) if name in self.scans]

    def state_of(self, query: exp.Expr) -> dict[str, int]:
        """The relations that a query reads, through named queries too, with the numbers of their definitions."""
        return {name: self._versions.get(name, 0) for name in sorted(self._read_by(query))}

    def _read_by(self, query: exp.Expr) -> dict[str, None]:
        names: dict[str, None] = {}
        for name in dict.fromkeys(table.name for table in query.find_all(exp.Table)):
            names[name] = None
            if name in self.views:
                names |= self._read_by(self.views[name])
        return names

    def files_of(self, source: str) -> list[InputFile]:
        """The files of an input."""
        return [file for file in self.files.values() if file.source == source]

    def inputs_of(self, query: exp.Expr) -> list[str]:
        """The inputs of several files that a query reads, the largest first."""
        sources = dict.fromkeys(scan.source for scan in self.scans_of(query))
        several = [source for source in sources if len(self.files_of(source)) > 1]
        return sorted(several, key=lambda source: -sum(file.rows for file in self.files_of(source)))

    def splitter(self, source: str) -> Splitter:
        """What splits queries over the files of an input."""
        return Splitter(self.views, {name for name, scan in self.scans.items() if scan.source == source}, numbered)


def numbered(scan: str) -> str:
    """Name of a scan whose rows have the number of their file."""
    return f"{scan}_numbered"
