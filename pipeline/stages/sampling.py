"""Rows to label: drawn by strata of scores, nested, and without the rows of an earlier draw.

Two scans: one counts the rows of each cell of scores, one brings the rows whose digests are the lowest of their
stratum. What lies between is pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl
import sqlglot.expressions as exp
from pydantic import Field

from ..errors import DataError, NoInputError, Note
from ..metrics.few_labels.draws import allocation, further, places, worth_after_labels, worth_of_cells
from ..plan import rows
from ..plan.count_tables import begin, run_nodes
from ..plan.nodes import Frame, Phase, Relation, Statement
from ..queries.dialect import column
from ..queries.load import statement
from ..records import dataclass
from ..sources.inputs import Field as InputField
from ..sources.inputs import Input, InputContract
from ..tables.schemas import internal_name
from ..visible_text import rows_in_words
from .parameters import StageParameters
from .sheets import Worth, labels_of, shares_of_groups, strata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ..engines.engine import Engine
    from ..plan.nodes import Node, Progress
    from ..plan.plan import Plan
    from ..sources.source import Source
    from .sheets import Strata

_MORE_DEVIATIONS = 8.0  # by which digests up to the last one exceed the rows that are needed
_DIGESTS = 2.0**64  # how many there are


class SampleParameters(StageParameters):
    """What is drawn.

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
    columns: tuple[rows.Grouped, ...]

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
    """What an earlier draw took of each stratum, all 0 if there was none.

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
    """What the earlier sheet took of each stratum.

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


def nothing_follows(*_: object) -> dict[str, pl.DataFrame]:
    """No table follows from a draw."""
    return {}
