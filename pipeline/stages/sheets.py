"""Sheets of labels: the strata that they are drawn from, what people write into them, and what is refused and said.

A sheet has a row for each row of an input that was drawn to be labelled: a prediction, a match, or a document. Every
query of a sheet beside what it was drawn from brings `label_id`, by which a row is known in the sheet, `met_id`, by
which it was found, `sheet_file` and `sheet_row`, its place, and `probability`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ..errors import DataError
from ..metrics.few_labels.draws import PER_STRATUM, further, strata_of_cells, worth_of_cells
from ..records import dataclass
from ..visible_text import rows_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


NUMBERS_OF_STRATA = (1, 2, 4, 8, 16)
Worth: TypeAlias = "Callable[[Floats, Integers], Floats]"  # of cells with these scores and numbers of rows
_WORDS = {"true": True, "yes": True, "y": True, "t": True, "1": True, "1.0": True}
_WORDS |= {"false": False, "no": False, "n": False, "f": False, "0": False, "0.0": False}
_WHOLE = 1e-6  # by which a whole number of rows may be off
_MISSING = 0.1  # of the rows, for which a sheet may lack some


@dataclass(frozen=True)
class Strata:
    """The strata of all groups.

    Attributes:
        cells: Cells of scores with their group, `stratum` and `n_rows`.
        worth: Shape (H,): how many of the labels of its group each stratum is worth.
        rows: Shape (H,).
        group: Shape (H,): number of the group of each stratum.
        names: Shape (H,): what each is called in the sheet.
    """

    cells: pl.DataFrame
    worth: NDArray[np.float64]
    rows: NDArray[np.int64]
    group: NDArray[np.int64]
    names: tuple[str, ...]


def strata_of(cells: pl.DataFrame, groups: Sequence[str], size: int, worth_of: Worth = worth_of_cells) -> Strata:
    """Put the cells of every group into strata of about equal worth.

    Args:
        cells: Grouping columns, `cell`, `n_rows`, `lowest` and `highest`, in the order of groups and cells.
        groups: The grouping columns.
        size: How many labels all groups have together; 0: each group is one stratum.
        worth_of: How many labels cells are worth.
    """
    framed, worths, sizes, numbers, names = [], [], [], [], []
    of_groups = _by_groups(cells, groups)
    rows_of_groups = np.array([group["n_rows"].sum() for group in of_groups], dtype=np.int64)
    labels = shares_of_groups(rows_of_groups, np.zeros_like(rows_of_groups), size)
    first = 0
    for number, group in enumerate(of_groups):
        worth, n_rows = _worth(group, worth_of)
        stratum = strata_of_cells(worth, int(labels[number]))
        framed.append(group.with_columns(pl.Series("stratum", stratum + first)))
        worths.append(np.bincount(stratum, worth))
        sizes.append(np.bincount(stratum, n_rows).astype(np.int64))
        numbers.append(np.full(len(worths[-1]), number))
        first += len(worths[-1])
        names += _names(group, groups, len(worths[-1]))
    return Strata(
        pl.concat(framed), np.concatenate(worths), np.concatenate(sizes), np.concatenate(numbers), tuple(names)
    )


def _by_groups(cells: pl.DataFrame, groups: Sequence[str]) -> list[pl.DataFrame]:
    return cells.partition_by(groups, maintain_order=True) if groups and cells.height else [cells]


def _worth(group: pl.DataFrame, worth_of: Worth) -> tuple[Floats, Integers]:
    """The worth of the cells of a group, and their rows."""
    n_rows = group["n_rows"].to_numpy().astype(np.int64)
    middle = ((group["lowest"] + group["highest"]) / 2).to_numpy()
    return worth_of(middle, n_rows), n_rows


def _names(group: pl.DataFrame, groups: Sequence[str], number: int) -> list[str]:
    """What the strata of a group are called in a sheet."""
    words = [
        "NULL" if value is None else str(value) for value in (group.select(groups).row(0) if groups and number else ())
    ]
    return ["/".join([*words, f"s{index:02}"]) for index in range(1, number + 1)]


def _possible_names(cells: pl.DataFrame, groups: Sequence[str], worth_of: Worth) -> pl.DataFrame:
    """What the stratum of each cell may be called in a sheet, by how many strata its group has, and its rows."""
    frames = []
    for group in _by_groups(cells, groups):
        worth, n_rows = _worth(group, worth_of)
        for number in NUMBERS_OF_STRATA:
            stratum = strata_of_cells(worth, number * PER_STRATUM)
            names = _names(group, groups, int(stratum.max()) + 1)
            of_strata = pl.Series("stratum_rows", np.bincount(stratum, n_rows))
            of_cells = (pl.Series("stratum_name", names)[stratum], of_strata[stratum])
            frames.append(group.select(*groups, "cell").with_columns(*of_cells))
    return pl.concat(frames).unique()


def drawn_of_these(
    labelled: pl.DataFrame,
    cells: pl.DataFrame,
    by: Sequence[str],
    given: Sequence[str],
    worth_of: Worth = worth_of_cells,
) -> bool:
    """Whether labelled rows are of strata that `thresher sample` draws from these cells, in which they are alike.

    A probability then is that of a whole number of rows of its stratum. Rows have `cell`, `stratum_name`, `probability`
    and their place in the sheet; `given` is which of `stratum` and `probability` the sheet has.
    """
    if "stratum" not in given or labelled.is_empty():
        return False
    keys = [*by, "cell", "stratum_name"]
    named = labelled.with_row_index("_row").join(_possible_names(cells, by, worth_of), on=keys, nulls_equal=True)
    if "probability" in given:
        number = pl.col("probability") * pl.col("stratum_rows")
        named = named.filter((number - number.round()).abs() < _WHOLE)
    return named["_row"].n_unique() == labelled.height


def shares_of_groups(rows_of_groups: NDArray[np.int64], before: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """How many more rows each group gets, in proportion to the roots of their sizes (Bankier 1988).

    Each group is to have limits of its own, and large ones matter more to the whole.
    """
    return further(np.sqrt(rows_of_groups), rows_of_groups, before, size)


def labels_of(words: pl.Series, source: str, name: str = "label") -> pl.Series:
    """What people write into the column of labels of a source, as truth values; NULL where it is empty.

    Raises:
        DataError: something else is written there.
    """
    texts = words.cast(pl.String).str.strip_chars().str.to_lowercase()
    texts = texts.set(texts == "", None)
    labels = texts.replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
    if unknown := words.filter(labels.is_null() & texts.is_not_null()).to_list():
        where = f"in {rows_in_words(len(unknown))}, such as {str(unknown[0])!r}"
        message = f"input {source}: column {name!r} says neither true nor false {where}"
        remedy = "Write true, yes or 1, and false, no or 0; leave it empty where nobody knows."
        raise DataError(message, remedy=remedy)
    return labels


@dataclass(frozen=True)
class Sheet:
    """A sheet beside the rows that it was drawn from.

    Attributes:
        name: The input.
        nouns: What its rows are drawn of, such as `predictions`.
        key: What is NULL where a row has no id.
        row: How a row is named.
        has_probability: Whether the sheet says how likely each row was drawn.
        open: What rows without an answer are, such as `without a label`.
    """

    name: str
    nouns: str
    key: str
    row: Callable[[Mapping[str, object]], str]
    has_probability: bool = False
    open: str = "without a label"

    def refuse(self, rows: pl.DataFrame, words: str, remedy: str) -> None:
        """Refuse rows, if there are any; words have places for `rows`, how many, and `row`, the first."""
        if rows.height:
            texts = {"rows": rows_in_words(rows.height), "row": self.row(rows.row(0, named=True))}
            message = f"input {self.name}: {words.format(**texts)}"
            raise DataError(message, remedy=remedy)

    def check(self, rows: pl.DataFrame) -> None:
        """Refuse rows without an id, with one that is there twice, or with a probability that is none.

        Raises:
            DataError: there are such rows.
        """
        of_sheet = rows.unique(["sheet_file", "sheet_row", "label_id"]) if rows["sheet_row"].count() else rows
        without = of_sheet.filter(pl.col("label_id").is_null())
        self.refuse(without, f"{self.key} is NULL in {{rows}}", "Fill it in, or leave the rows out with where.")
        self.refuse(
            of_sheet.filter(pl.col("label_id").is_duplicated()).unique("label_id", maintain_order=True),
            "{row} is there more than once",
            "Keep one row of each: of sheets that overlap, or in which one was labelled twice.",
        )
        probability = pl.col("probability")
        if self.has_probability:
            self.refuse(
                rows.filter(~((probability > 0) & (probability <= 1)).fill_null(value=False)),
                "column 'probability' is not above 0 and at most 1 in {rows}, such as that of {row}",
                f"It is the share of the {self.nouns} of its stratum that were drawn.",
            )

    def skipped(self, rows: pl.DataFrame, is_open: pl.Expr) -> Iterator[str]:
        """A warning of rows without an answer that lie before others."""
        place = pl.col("sheet_row")
        last = place.filter(~is_open).max().over("sheet_file")
        if rows.height and (skipped := rows.filter(is_open & (place < last)).height):
            yield (
                f"input {self.name}: {rows_in_words(skipped)} {self.open} lie before others: if they were left "
                "out because they are hard to tell, all numbers are those of the easy ones"
            )

    def of_fewer(self, rows: pl.DataFrame, n_rows: int) -> Iterator[str]:
        """A warning of a sheet whose rows stand for far fewer rows than there are."""
        if not self.has_probability or rows.is_empty():
            return
        n_drawn = float((1 / rows["probability"]).sum())
        if n_drawn < (1 - _MISSING) * n_rows:
            yield (
                f"input {self.name}: by their probabilities its rows stand for {n_drawn:,.0f} of {n_rows:,} "
                f"{self.nouns}: rows of the sheet are missing, or it was drawn from fewer of them, and numbers are not "
                "those of all"
            )
