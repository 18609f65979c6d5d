"""What studies share: their options, designs measured in parallel, tallies over data sets, and tables.

Every design, or every table of `print_parts`, draws its data sets from a generator of its own, so that it has the same
numbers however many processes there are, and whichever others are measured beside it.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Asked: TypeAlias = argparse.Namespace  # the options
Row: TypeAlias = "Sequence[str | float]"
Table: TypeAlias = "Iterator[Row]"


def options(description: str | None, datasets: int | None, seed: int = 1, **others: str | float) -> Asked:
    """The command line: the options of all studies, and those of one, each with its default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if datasets is not None:
        parser.add_argument("--datasets", type=int, default=datasets, help="of a design (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=seed, help="default: %(default)s")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="designs whose name has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    for name, default in others.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help="default: %(default)s")
    return parser.parse_args()


def report(
    title: str,
    head: Sequence[str],
    measure: Callable[..., Iterable[Row]],
    designs: Iterable[object],
    asked: Asked,
) -> list[Row]:
    """Print a table, the rows that a function of a script yields of each design and of the options, and return them.

    `--only` names designs by a text that stands in the title or in their names. Cells beyond the head are not printed.
    """
    names = [(f"{title}: {design}", design) for design in designs]
    tasks = [(measure, design, asked) for name, design in names if _is_named(name, asked.only)]
    return print_table(title, head, _measured(tasks, asked.jobs)) if tasks else []


def _is_named(name: str, only: Sequence[str]) -> bool:
    return not only or any(text in name for text in only)


def _measured(
    tasks: Sequence[tuple[Callable[..., Iterable[Row]], object, argparse.Namespace]], jobs: int
) -> Iterator[Row]:
    """The rows of every task in their order: as soon as they are there, or those of a task at once from processes."""
    if min(jobs, len(tasks)) <= 1:
        for measure, *arguments in tasks:
            yield from measure(*arguments)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn")) as pool:
        for rows in pool.map(_rows, *zip(*tasks, strict=True)):
            yield from rows


def _rows(measure: Callable[..., Iterable[Row]], design: object, asked: Asked) -> list[Row]:
    return list(measure(design, asked))


def print_table(title: str, head: Sequence[str], rows: Iterable[Row]) -> list[Row]:
    """Print a table, texts and whole numbers as they are, others with three decimals, nan as nothing."""
    print(f"\n{title}\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
    printed = []
    for row in rows:
        print(f"| {' | '.join(map(_cell, row[: len(head)]))} |", flush=True)
        printed.append(row)
    return printed


def _cell(cell: str | float) -> str:
    if isinstance(cell, str | int | np.integer):
        return str(cell)
    return "" if np.isnan(cell) else f"{cell:.3f}"


def print_error(datasets: int) -> None:
    """Print the Monte Carlo error of a share of .95, or of .05, of so many data sets."""
    print(f"Monte Carlo error {np.sqrt(0.0475 / datasets):.3f}")


def print_parts(
    description: str | None,
    datasets: int,
    tables: Mapping[str, tuple[Callable[[int, np.random.Generator], Table], Sequence[str]]],
) -> None:
    """Print the tables of a script, each of which draws all its designs one after the other from one generator."""
    asked = options(description, datasets)
    print_error(asked.datasets)
    for number, (title, (measure, head)) in enumerate(tables.items()):
        rng = np.random.default_rng([asked.seed, number])
        report(title, head, lambda _, asked, measure=measure, rng=rng: measure(asked.datasets, rng), [title], asked)


def held(limits: tuple[Floats | float, Floats | float], truth: Floats | float, rounding: float = 0.0) -> Floats:
    """1 where limits hold the truth, 0 where they do not, nan where there are none."""
    lower, upper = (np.asarray(limit) for limit in limits)
    return np.where(np.isnan(lower), np.nan, (lower <= truth + rounding) & (truth - rounding <= upper))


class Tally:
    """What data sets say, by name: numbers, or arrays of one shape; nan: nothing is said."""

    def __init__(self) -> None:
        self._values: defaultdict[str, list[Floats]] = defaultdict(list)

    def add(self, values: Mapping[str, NDArray[Any] | float]) -> None:
        """Take what one data set says."""
        for name, value in values.items():
            self._values[name].append(np.asarray(value, dtype=np.float64))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __getitem__(self, name: str) -> Floats:
        """What all data sets said, on axis 0."""
        return np.array(self._values[name])

    def mean(self, name: str, among: Bools | None = None) -> Floats:
        """The mean over data sets, or over some of them; nan where none says anything."""
        values = self[name] if among is None else self[name][among]
        number = (~np.isnan(values)).sum(axis=0)
        return np.asarray(np.where(number > 0, np.nansum(values, axis=0) / np.maximum(number, 1), np.nan))

    def means(self, among: Bools | None = None) -> dict[str, Floats]:
        """The mean of everything."""
        return {name: self.mean(name, among) for name in self}
