"""Answers of single input files to a query, that are kept for later runs; `pipeline.storage.states` keeps them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

import polars as pl

from ..records import dataclass
from .by_file import FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A kept answer.

    Attributes:
        files: Ids of the files that gave it: of one, or of several that were asked together.
        segment: Name of the segment that has its rows.
        number: Its number there.
    """

    files: tuple[str, ...]
    segment: str
    number: int


class Segment(Protocol):
    """A file of kept answers."""

    @property
    def rows(self) -> pl.DataFrame:
        """The rows of its entries, with `FILE`, the number of the entry in the segment."""
        ...


@dataclass
class Answers:
    """The kept answers to one query.

    Attributes:
        folder: Where they lie; it need not exist.
        segments: The files that hold them, by name.
        entries: The answers.
        too_large_for: Rows of the files of which the answers were found to be too large to be kept; 0: they were not.
    """

    folder: Path
    segments: dict[str, Segment] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    too_large_for: int = 0

    def of(self, files: Iterable[str], *, finest: bool = False) -> list[Entry]:
        """Answers of some files and of no others, each file once.

        Args:
            files: Ids of the files.
            finest: Answers of as few files each as can be, of which later totals can be made; else as few answers as
                can be, of which most are totals.
        """
        wanted = set(files)
        usable = []
        for entry in sorted(self.entries, key=lambda entry: len(entry.files), reverse=not finest):
            if wanted.issuperset(entry.files):
                wanted.difference_update(entry.files)
                usable.append(entry)
        return usable

    def rows(self, entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Rows of some answers, with `FILE` as it is given for each; segments that have none of them are not opened."""
        for name, segment in self.segments.items():
            new = {
                entry.number: number for entry, number in zip(entries, numbers, strict=True) if entry.segment == name
            }
            if new:
                yield renumbered(segment.rows, new)


def renumbered(rows: pl.DataFrame, numbers: Mapping[int, int]) -> pl.DataFrame:
    """Rows whose `FILE` is among some numbers, with others in their place."""
    schema = {FILE: pl.Int32(), "_number": pl.Int32()}
    new = pl.DataFrame({FILE: list(numbers), "_number": list(numbers.values())}, schema=schema)
    joined = rows.join(new, on=FILE, how="inner", maintain_order="left")
    return joined.with_columns(pl.col("_number").alias(FILE)).drop("_number")


class KeepsAnswers(Protocol):
    """What keeps the answers to the queries of runs."""

    def answers(self, key: str) -> Answers:
        """Return the kept answers to a query."""
        ...

    def keep(
        self,
        answers: Answers,
        files: Sequence[Sequence[str]],
        rows: pl.DataFrame,
        *,
        alone: bool = False,
    ) -> None:
        """Keep further answers to a query.

        Args:
            answers: What is kept of the query so far.
            files: Ids of the files of each answer.
            rows: Rows of the answers; `FILE` is the index of the answer.
            alone: Whether these are all answers from now on.
        """
        ...

    def give_up(self, answers: Answers, n_rows: int) -> None:
        """Remember that the answers of files of so many rows to a query are too large to be kept."""
        ...
