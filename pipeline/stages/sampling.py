"""Sheets of labels: strata of scores, what people write and what is refused of it, and how rows are drawn.

A sheet has a row for each row of an input that was drawn to be labelled: a prediction, a match, or a document. Every
query of a sheet beside what it was drawn from brings `label_id`, by which a row is known in the sheet, `met_id`, by
which it was found, `sheet_file` and `sheet_row`, its place, and `probability`.

A draw is nested, and without the rows of an earlier one. It takes two scans: one counts the rows of each cell of
scores, one brings the rows whose digests are the lowest of their stratum. What lies between is pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

import numpy as np
import polars as pl
import sqlglot.expressions as exp
from pydantic import Field

from ..base.dialect import column
from ..base.errors import DataError, NoInputError, Note
from ..base.records import dataclass
from ..base.schemas import internal_name
from ..base.sql_files import statement
from ..base.visible_text import rows_in_words
from ..metrics.few_labels.draws import (
    PER_STRATUM,
    allocation,
    further,
    places,
    strata_of_cells,
    worth_after_labels,
    worth_of_cells,
)
from ..plan import rows
from ..plan.accounting import begin, run_nodes
from ..plan.nodes import Frame, Grouped, Phase, Relation, Statement
from ..sources.inputs import Field as InputField
from ..sources.inputs import Input, InputContract
from .parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..engines.engine import Engine
    from ..plan.nodes import Node, Progress
    from ..plan.plan import Plan
    from ..sources.source import Source

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
    """The names of the strata of a group in a sheet."""
    words = [
        "NULL" if value is None else str(value) for value in (group.select(groups).row(0) if groups and number else ())
    ]
    return ["/".join([*words, f"s{index:02}"]) for index in range(1, number + 1)]


def _possible_names(cells: pl.DataFrame, groups: Sequence[str], worth_of: Worth) -> pl.DataFrame:
    """Possible names of the stratum of each cell in a sheet, by the number of strata of its group, and its rows."""
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


# How rows are drawn.


_MORE_DEVIATIONS = 8.0  # by which digests up to the last one exceed the rows that are needed
_DIGESTS = 2.0**64  # how many there are


class SampleParameters(StageParameters):
    """Parameters of drawing rows.

    Attributes:
        labelled: The sheet of an earlier draw, after which this one goes on.
        size: How many rows are drawn.
        by_score: Whether strata are of scores.
        groups: Grouping columns, each of whose groups has strata of its own.
        shown: Further columns of the inputs that the sheet has.
    """

    source: ClassVar[str]  # the input whose rows are drawn
    key: ClassVar[tuple[str, ...]] = ("id",)  # of its rows, by which labels find them
    score_name: ClassVar[str] = "score"  # what the sheet calls that by which rows are drawn
    answer: ClassVar[str] = "label"  # and what people fill in
    nouns: ClassVar[str] = "rows"
    labelled: Input | None = None
    size: Annotated[int, Field(ge=1)]
    by_score: bool = True
    groups: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @classmethod
    def worth_of(cls) -> Worth:
        """How many labels cells of scores are worth."""
        return worth_of_cells

    @classmethod
    def sheet(cls) -> tuple[str, ...]:
        """The columns of the sheet before those to look at."""
        return (*cls.key, "stratum", "probability", cls.score_name, cls.answer)

    @classmethod
    def beside_key(cls) -> tuple[str, ...]:
        """The columns of the key, where it is more than `id`."""
        return tuple(name for name in cls.key if name != "id")


def labelled_contract(*keys: InputField) -> InputContract:
    """The sheet of an earlier draw, whose rows are known by their keys."""
    words = "whether it is true: true, yes, 1; false, no, 0; empty: not labelled yet"
    label = InputField("label", "any", words, required=True)
    return InputContract("labelled", (*keys, label), "the sheet of an earlier draw")


def nodes_of(rows_to_sample: exp.Query, groups: Sequence[str], labelled: Relation | None) -> tuple[Node, ...]:
    """Rows that can be drawn, with `id`, `score` and `cell`, their cells by group, and the sheet of an earlier draw."""
    nodes: tuple[Node, ...] = (
        Relation("rows_to_sample", rows_to_sample),
        Frame("cells", statement("threshold_sweep/cells_to_sample", groups)),
    )
    if labelled is None:
        return nodes
    return (labelled, *nodes, Frame("labelled", statement("threshold_sweep/labels_read_before")))


@dataclass(frozen=True)
class ShownBeside:
    """Columns of an input to look at, found by the keys of the rows that were drawn.

    Attributes:
        source: The input.
        keys: The columns by which its rows are found.
        columns: The columns.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    source: Source
    keys: tuple[str, ...]
    columns: tuple[Grouped, ...]

    @property
    def into(self) -> str:
        """Name of the frame, and of the relation that it comes from."""
        return f"shown_{self.source.name}"

    @property
    def _query(self) -> exp.Query:
        names = [*self.keys, *(each.name for each in self.columns)]
        is_same = [column(name, "shown").eq(column(name, "drawn")) for name in self.keys]
        columns = {"same_row": exp.and_(*is_same)}
        return statement("inputs/shown_beside", {"shown": names}, relations={"input_read": self.into}, columns=columns)

    @property
    def _read(self) -> Relation:
        return replace(rows.read(self.source, self.keys, self.columns, {}), into=self.into)

    def run(self, engine: Engine, progress: Progress) -> None:
        """Bring the columns of the rows that were drawn, the first row of each key."""
        self._read.run(engine, progress)
        frame = engine.fetch(self._query, once=True)
        progress.tables[self.into] = frame.unique(self.keys, keep="first", maintain_order=True)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The relation, and the query."""
        yield from self._read.statements(by)
        yield Statement(f"frame {self.into}", self._query)


def draw(engine: Engine, params: SampleParameters, asked: Plan) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Draw the rows of the sheet, in the order in which they are to be labelled.

    Returns:
        The sheet, with its own columns and those that were asked for; and what is to be said of rows left out.

    Raises:
        NoInputError: no row has a score.
        DataError: rows lack an id, ids repeat, or the earlier sheet was not drawn from these rows.
    """
    progress = begin(params, asked)
    run_nodes(engine, params, asked, progress, Phase.RELATIONS, Phase.FRAMES)
    cells, earlier = progress.tables["cells"], progress.tables.get("labelled")
    scored = cells.filter(pl.col("cell").is_not_null())
    _check(params, cells, scored)
    groups = [internal_name(name) for name in params.groups]
    n_earlier = 0 if earlier is None else len(earlier)
    strata = strata_of(scored, groups, params.size + n_earlier if params.by_score else 0, params.worth_of())
    candidates = _candidates(engine, params, asked, strata, n_earlier)
    drawn = _drawn_before(params, candidates, earlier, len(strata.rows))
    sheet = sheet_of(params, candidates, strata, drawn, numbers_of(strata, drawn, params.size))
    shown = tuple(node for node in asked.nodes if isinstance(node, ShownBeside))
    if shown:
        engine.hand_over("drawn", sheet.select(params.key).to_arrow())
        run_nodes(engine, params, asked, progress, Phase.AFTER_RESULTS, Phase.AFTER_RESULTS)
    for node in shown:
        sheet = sheet.join(progress.tables[node.into], on=node.keys, how="left", maintain_order="left")
    without_score = int(cells["n_rows"].sum()) - int(scored["n_rows"].sum())
    notes = [Note(text) for text in progress.warnings]
    if without_score:
        notes.append(Note(f"input {params.source}: {rows_in_words(without_score)} without a score cannot be drawn"))
    if len(sheet) < params.size:
        notes.append(Note(f"{len(sheet):,} {params.nouns} are drawn, not {params.size:,}: there are no more"))
    names = dict.fromkeys([*params.groups, *params.shown])
    sheet = sheet.rename({"score": params.score_name, "label": params.answer})
    if params.score_name != "score":  # it is a number of what rows have
        sheet = sheet.with_columns(pl.col(params.score_name).cast(pl.Int64))
    return sheet.select(*params.sheet(), *(pl.col(internal_name(name)).alias(name) for name in names)), tuple(notes)


@dataclass(frozen=True)
class Drawn:
    """The sizes of an earlier draw by stratum, all 0 if there was none.

    Attributes:
        rows: Shape (H,): rows of its sheet.
        labels: Shape (H,): those with a label.
        trues: Shape (H,): those that are true.
        ids: Their ids, as texts.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    trues: NDArray[np.int64]
    ids: pl.Series


def numbers_of(strata: Strata, drawn: Drawn, size: int) -> NDArray[np.int64]:
    """How many more rows of each stratum are drawn, shape (H,)."""
    groups = np.arange(strata.group.max() + 1)
    of_groups = np.bincount(strata.group, strata.rows).astype(np.int64)
    before = np.bincount(strata.group, drawn.rows).astype(np.int64)
    shares = shares_of_groups(of_groups, before, size)
    numbers = np.zeros(len(strata.rows), np.int64)
    for group, share in zip(groups, shares, strict=True):
        members = strata.group == group
        worth, sizes, taken = strata.worth[members], strata.rows[members], drawn.rows[members]
        if before[group]:
            worth = worth_after_labels(worth, sizes, drawn.labels[members], drawn.trues[members])
            numbers[members] = further(worth, sizes, taken, int(share))
        else:
            numbers[members] = allocation(worth, sizes, int(share))
    return numbers


def sheet_of(
    params: SampleParameters, candidates: pl.DataFrame, strata: Strata, drawn: Drawn, numbers: NDArray[np.int64]
) -> pl.DataFrame:
    """The rows to label in order, the first k of them a sample of size k; candidates come by `stratum` and `digest`."""
    left = candidates.filter(~pl.col("id").cast(pl.String).is_in(drawn.ids.implode()))
    stratum = left["stratum"].to_numpy()
    starts = np.searchsorted(stratum, np.arange(len(numbers)))
    rank = np.arange(len(left)) - starts[stratum]
    chosen = rank < numbers[stratum]
    left, stratum, rank = left.filter(chosen), stratum[chosen], rank[chosen]
    if len(left) < numbers.sum():  # many rows with one digest lie behind the last one that was asked for
        message = f"input {params.source}: ids repeat so often that rows cannot be drawn by them"
        raise DataError(message, remedy="Make the ids distinct, or leave rows out with where.")
    if repeated := left["id"].filter(left["id"].is_duplicated()).unique(maintain_order=True).to_list():
        message = (
            f"input {params.source}: {':'.join(params.key)} {repeated[0]!r} is there more than once: its label would "
            "be that of several rows"
        )
        raise DataError(message, remedy="Make the ids distinct, or leave rows out with where.")
    probability = (drawn.rows + numbers) / strata.rows
    order = np.argsort(places(stratum, rank, np.maximum(numbers, 1)), kind="stable")
    return left.with_columns(
        pl.Series("stratum", [strata.names[index] for index in stratum], dtype=pl.String),
        pl.Series("probability", probability[stratum], dtype=pl.Float64),
        pl.lit(None, dtype=pl.Boolean).alias("label"),
    )[order]


def _check(params: SampleParameters, cells: pl.DataFrame, scored: pl.DataFrame) -> None:
    if scored.is_empty():
        message = f"input {params.source}: no row has a score, so that none can be drawn"
        raise NoInputError(message, remedy="Look at where, and at the column of the score.")
    if without_id := int(cells["n_without_id"].sum()):
        names = " or ".join(repr(name) for name in params.key)
        message = f"input {params.source}: column {names} is NULL in {rows_in_words(without_id)}"
        raise DataError(message, remedy="Fill it in, or leave the rows out with where: labels are found again by it.")


def _candidates(engine: Engine, params: SampleParameters, asked: Plan, strata: Strata, n_earlier: int) -> pl.DataFrame:
    """The rows with the lowest digests of each stratum: so many that those which are drawn are among them."""
    none = np.zeros_like(strata.rows)
    first = numbers_of(strata, Drawn(none, none, none, pl.Series(dtype=pl.String)), params.size)
    most = np.minimum(strata.rows, params.size + n_earlier if n_earlier else first)
    share = (most + _MORE_DEVIATIONS * (np.sqrt(most) + 1)) / strata.rows
    groups = [internal_name(name) for name in params.groups]
    last = pl.Series("last_digest", share * _DIGESTS)[strata.cells["stratum"]]
    table = strata.cells.select(*groups, "cell", "stratum", last.alias("last_digest"))
    engine.hand_over("strata", table.to_arrow())
    names = [*(each.name for each in asked.by), *params.beside_key()]
    is_same = [exp.NullSafeEQ(this=column(name, "digested"), expression=column(name, "strata")) for name in groups]
    query = statement("threshold_sweep/drawn_rows", names, columns={"same_group": exp.and_(exp.true(), *is_same)})
    return engine.fetch(query, {"seed": float(params.seed)} | _rows_with_cells(strata.cells, last), once=True)


def _rows_with_cells(cells: pl.DataFrame, last: pl.Series) -> dict[str, float]:
    """Which rows need the cell of their score: those from a score on, and below it those up to a digest.

    Of all such pairs it is the one of which the fewest rows are; `last` is the last digest of the stratum of each cell.
    """
    rising = cells.with_columns(last).group_by("cell").agg(pl.sum("n_rows"), pl.min("lowest"), pl.max("last_digest"))
    rising = rising.sort("cell")
    below = np.append(0, rising["n_rows"].cum_sum().to_numpy())
    last_below = np.append(0.0, rising["last_digest"].cum_max().to_numpy())
    best = int(np.argmin(below[-1] - below + below * np.minimum(last_below / _DIGESTS, 1)))
    return {"first_score": [*rising["lowest"], np.inf][best], "last_digest_below": float(last_below[best])}


def _drawn_before(
    params: SampleParameters, candidates: pl.DataFrame, earlier: pl.DataFrame | None, strata: int
) -> Drawn:
    """The sizes of the earlier sheet by stratum.

    Raises:
        DataError: it repeats an id, or has rows that such a draw would not have drawn.
    """
    none = np.zeros(strata, np.int64)
    if earlier is None or earlier.is_empty():
        return Drawn(none, none, none, pl.Series(dtype=pl.String))
    if repeated := earlier["id"].filter(earlier["id"].is_duplicated()).to_list():
        message = f"input labelled: id {repeated[0]!r} is there more than once"
        raise DataError(message, remedy="Keep one row of each id.")
    earlier = earlier.with_columns(
        pl.col("id").cast(pl.String), labels_of(earlier["label"], "labelled")
    )  # ids of CSV are texts
    met = earlier.join(
        candidates.with_columns(pl.col("id").cast(pl.String)), on="id", how="left", maintain_order="left"
    )
    if unknown := met.filter(pl.col("stratum").is_null())["id"].to_list():
        message = (
            f"input labelled: {rows_in_words(len(unknown))}, such as id {unknown[0]!r}, would not have been drawn from "
            f"these {params.source}"
        )
        remedy = f"Name the {params.source}, by and seed with which the sheet was drawn, and use the same engine."
        raise DataError(message, remedy=remedy)
    counts = met.group_by("stratum").agg(
        pl.len().alias("rows"), pl.col("label").count().alias("labels"), pl.col("label").sum().alias("trues")
    )
    index = counts["stratum"].to_numpy()

    def by_stratum(name: str) -> NDArray[np.int64]:
        numbers = none.copy()
        numbers[index] = counts[name].to_numpy()
        return numbers

    return Drawn(by_stratum("rows"), by_stratum("labels"), by_stratum("trues"), earlier["id"])
