"""Counts of mentions by document, the averages that follow, and what documents that were judged say of all."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import RATIOS, REPLICATE, THRESHOLD, doubles, lowest_retrieved, ratios
from ...base.errors import DataError, Note
from ...base.records import dataclass
from ...base.schemas import GROUPING
from ...base.sql_files import statement
from ...base.visible_text import rows_in_words
from ...metrics.few_labels.draws import DocumentDesign, JudgedMentions, estimated_scores, worth_of_documents
from ...metrics.matching import POOLED_AVERAGES
from ...metrics.uncertainty.limits import Interval, compared_at, limit_columns
from ...metrics.uncertainty.proportions import UNSEEN, Confusion, intervals_of_clusters, may_days_be_alike
from ...metrics.uncertainty.replicates import GroupCounts
from ...plan import rows
from ...plan.counts import Reduction
from ...plan.nodes import Frame, Phase, Relation, Statement, duplicate_check
from ..mentions import DOCUMENT
from ..sampling import Sheet, drawn_of_these, labels_of, strata_of
from .contract import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Boundary
    from ...base.schemas import Grouping
    from ...engines.engine import Engine
    from ...metrics.few_labels.draws import EstimatedScores
    from ...metrics.matching import Average
    from ...metrics.uncertainty.jackknife import Limits
    from ...metrics.uncertainty.limits import Reason
    from ...metrics.uncertainty.replicates import Resampling
    from ...plan.nodes import Check, Node, Progress
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import EntityRecognitionParameters


# Sums of the documents' precision, recall and F1 over all documents, as they change from threshold to threshold.
#
# A document's ratios change only at thresholds where it has predictions, so each document adds what changes there:
# adding up from above gives the sums at every threshold, and no table of documents × thresholds is made. Rows are read
# in the order of documents, in blocks, so that sums are the same for the same data, to the last digit, and memory is
# bounded.


Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

TABLE = "sums_of_documents"
SUMS = (*RATIOS, *(f"n_{name}" for name in RATIOS), "n_documents")
TYPES: dict[str, type[pl.DataType]] = {REPLICATE: pl.Int64} | dict.fromkeys((THRESHOLD, *SUMS), pl.Float64)
_DENSE = 1 << 20


def sums_of_documents(
    params: EntityRecognitionParameters, grid: Grid | None, *, scored: bool, listed: bool
) -> Reduction:
    """The table of sums, of predictions with scores or all at once; `listed` documents may be without any mention.

    Its rows are group, replicate and threshold; NULL: what documents add before any prediction is retrieved, or with
    all predictions where they have no scores. `precision`, `recall` and `f1` are sums of the documents' ratios, `n_…`
    the numbers of documents where the ratio is defined. Without a grid every score is a threshold.
    """
    reads = {"scores": statement("entity_recognition/scores")} if scored and grid is None else {}

    def reduce(blocks: Iterator[pl.DataFrame], frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        thresholds = _Thresholds.of(grid, frames.get("scores"))
        totals: dict[Grouping, pl.DataFrame] = {}
        for block in _whole_documents(blocks):
            bins = thresholds.bins(block)
            for grouping in params.groupings:
                sums = _sums(*_counted_in(block, bins, params, grouping), grouping, thresholds)
                totals[grouping] = _added(totals[grouping], sums) if grouping in totals else sums
        tables = [frame.with_columns(pl.lit(grouping.label).alias(GROUPING.name)) for grouping, frame in totals.items()]
        if not tables:
            keys: dict[str, type[pl.DataType]] = dict.fromkeys((GROUPING.name, *params.by_columns), pl.String)
            return pl.DataFrame(schema=keys | TYPES)
        return pl.concat(tables, how="diagonal")

    mentions = mentions_of_documents(params.by_columns, listed=listed)
    rows = statement("entity_recognition/mentions_by_document", params.by_columns, relations=mentions)
    return Reduction(TABLE, rows, reads, reduce)


def mentions_of_documents(by: Sequence[str], *, listed: bool) -> dict[str, str | exp.Query]:
    """What to read as `mentions`: with a row for every listed document, where these may be without any mention."""
    return {"mentions": statement("entity_recognition/mentions_and_documents", by)} if listed else {}


@dataclass(frozen=True)
class _Thresholds:
    """Rising thresholds, those of a grid or else scores; without any all predictions are retrieved at once."""

    values: Floats
    grid: Grid | None

    @classmethod
    def of(cls, grid: Grid | None, scores: pl.DataFrame | None) -> _Thresholds:
        """Those of a grid, else the scores, else none."""
        if grid is not None:
            return cls(np.asarray(grid.thresholds), grid)
        return cls(np.empty(0) if scores is None else np.unique(scores["score"].to_numpy()), None)

    @property
    def edges(self) -> Floats:
        """The threshold of every bin, nan for bin 0; bin 1 is nan where there are no thresholds."""
        return np.concatenate([[np.nan], self.values if len(self.values) else [np.nan]])

    def bins(self, block: pl.DataFrame) -> Ints:
        """Bin of every row: the number of thresholds that retrieve the prediction; 0: none does, or there is none."""
        scores = block["score"].fill_null(0.0).to_numpy()
        if not len(self.values):
            bins = np.ones(len(scores), dtype=np.int64)
        elif self.grid is not None:
            bins = self.grid.bins(scores)
        else:
            bins = np.searchsorted(self.values, scores, side="right")
        return np.where(block["is_predicted"].to_numpy(), bins, 0)


def _whole_documents(blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Blocks of the same rows that end with a document."""
    held: pl.DataFrame | None = None
    for block in blocks:
        rows = block if held is None else pl.concat([held, block])
        documents = rows[DOCUMENT].to_numpy()
        end = int(np.searchsorted(documents, documents[-1])) if len(documents) else 0
        if end:
            yield rows[:end]
        held = rows[end:]
    if held is not None and held.height:
        yield held


def _counted_in(
    block: pl.DataFrame, bins: Ints, params: EntityRecognitionParameters, grouping: Grouping
) -> tuple[pl.DataFrame, Ints]:
    """The rows that count in a grouping: a document that is listed has no type, so only where types are one."""
    if params.type_group is None or params.type_group not in grouping.columns:
        return block, bins
    has_one = pl.col("is_gold") | pl.col("is_predicted") | pl.col(params.type_group).is_not_null()
    counts = block.select(has_one.alias("counts")).to_series()
    return block.filter(counts), bins[counts.to_numpy()]


def _sums(block: pl.DataFrame, bins: Ints, grouping: Grouping, thresholds: _Thresholds) -> pl.DataFrame:
    """The sums of one block for one grouping."""
    labels, group = _groups(block, grouping.columns)
    replicate = block[REPLICATE].to_numpy().astype(np.int64)
    n_replicates, edges = 1 + int(replicate.max(initial=0)), thresholds.edges
    cell, edge, sums = _changes(block, group, replicate, bins, len(edges))
    group, replicate = np.divmod(cell, n_replicates)
    keys = pl.Series(REPLICATE, replicate), doubles(THRESHOLD, edges[edge])
    frame = pl.DataFrame([*keys, *(pl.Series(name, values) for name, values in sums.items())])
    return frame if labels is None else pl.concat([labels[group], frame], how="horizontal")


def _groups(block: pl.DataFrame, grouping: tuple[str, ...]) -> tuple[pl.DataFrame | None, Ints]:
    """The groups of a block, and the number of every row's group."""
    if not grouping:
        return None, np.zeros(block.height, dtype=np.int64)
    labels = block.select(grouping).unique(maintain_order=True)
    numbered = labels.with_row_index("_group")
    rows = block.select(grouping).join(numbered, on=grouping, how="left", nulls_equal=True, maintain_order="left")
    return labels, rows["_group"].to_numpy().astype(np.int64)


def _changes(
    block: pl.DataFrame, group: Ints, replicate: Ints, bins: Ints, n_bins: int
) -> tuple[Ints, Ints, dict[str, Floats]]:
    """Cell, bin and sums of what every bin changes; bin 0: what documents add without any prediction.

    A cell is a group and replicate, a unit a document of a group.
    """
    documents, is_gold = block[DOCUMENT].to_numpy(), block["is_gold"].to_numpy()
    n_groups, n_replicates = (1 + int(number.max(initial=0)) for number in (group, replicate))
    # rows in the order of units and of falling bins, 0 for what no threshold retrieves
    unit, cell = (documents - documents[:1]) * n_groups + group, group * n_replicates + replicate
    order = np.argsort(unit * n_bins + (n_bins - 1 - bins), kind="stable")
    unit, cell, edge, is_gold = (column[order] for column in (unit, cell, bins, is_gold))
    # one row per unit and bin, from the highest bin down: running counts of tp, fp and gold mentions at its end
    ends, retrieved = _ends(unit, edge), edge > 0
    counts = [np.cumsum(flag)[ends] for flag in (retrieved & is_gold, retrieved & ~is_gold, is_gold)]
    unit, cell, edge = (column[ends] for column in (unit, cell, edge))
    # the running counts go on over units: those before the first bin of a unit are taken off
    last = _ends(unit)
    sizes = np.diff(last, prepend=-1)
    first = last - sizes + 1
    before = [np.append(0, count)[:-1] for count in counts]
    base = [np.repeat(count[first], sizes) for count in before]
    n_gold = np.repeat(counts[2][last] - before[2][first], sizes)
    # tp and fp with the bin and without it; what a bin changes is the difference of the ratios
    now, then = ((count[0] - base[0], count[1] - base[1]) for count in (counts, before))
    changed = np.flatnonzero(edge > 0)
    new, old = (_ratios(*(count[changed] for count in (*confusion, n_gold))) for confusion in (now, then))
    # without any prediction recall and F1 are 0, and defined where there is a gold mention
    start = {"n_recall": n_gold[first] > 0, "n_f1": n_gold[first] > 0, "n_documents": np.ones(len(first), np.bool_)}

    # sums by cell and bin; the start of a unit stands in bin 0
    code = cell * n_bins + edge
    starts = cell[first] * n_bins
    codes, number = _numbered(np.append(starts, code[changed]), n_groups * n_replicates * n_bins)
    at_start, at_change = number[: len(starts)], number[len(starts) :]
    sums = {name: np.zeros(len(codes)) for name in SUMS}
    for name in new:
        sums[name] += np.bincount(at_change, new[name] - old[name], len(codes))
    for name, values in start.items():
        sums[name] += np.bincount(at_start, values, len(codes))
    return codes // n_bins, codes % n_bins, sums


def _ends(*columns: Ints) -> Ints:
    """The last row of every run of equal rows."""
    new = np.ones(len(columns[0]), dtype=np.bool_)
    new[:-1] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(new)


def _ratios(tp: Ints, fp: Ints, n_gold: Ints) -> dict[str, Floats]:
    """Ratios, 0 where they are undefined, and whether they are defined, 0 or 1."""
    quotients = ((tp, tp + fp), (tp, n_gold), (2 * tp, tp + fp + n_gold))
    ratios = {}
    for name, (numerator, denominator) in zip(RATIOS, quotients, strict=True):
        ratios[name] = np.divide(numerator, denominator, out=np.zeros(len(denominator)), where=denominator > 0)
        ratios[f"n_{name}"] = (denominator > 0).astype(np.float64)
    return ratios


def _numbered(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """The codes that occur, rising, and the index of every code among them."""
    if size > _DENSE:
        occurring, number = np.unique(codes, return_inverse=True)
        return occurring, number
    seen = np.zeros(size, dtype=np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes]


def _added(totals: pl.DataFrame, sums: pl.DataFrame) -> pl.DataFrame:
    keys = [name for name in totals.columns if name not in SUMS]
    return pl.concat([totals, sums]).group_by(keys, maintain_order=True).agg(pl.col(SUMS).sum())


# Counts of one group by replicate, and the sums over its documents, at every threshold.


EVERYTHING = float("-inf")  # the threshold of a group without scores, whose predictions are all retrieved at once


@dataclass(frozen=True)
class Group:
    """Counts of one group.

    Attributes:
        counts: Mentions by replicate and threshold.
        documents: Sums over documents, see `sums_of_documents`, likewise; None where no average over
            documents is wanted.
        n_documents: Number of documents.
    """

    counts: GroupCounts
    documents: GroupCounts | None
    n_documents: int

    @property
    def thresholds(self) -> Floats:
        """Shape (K,), rising; one nan where everything is retrieved at once."""
        return np.where(self.counts.thresholds == EVERYTHING, np.nan, self.counts.thresholds)

    @cached_property
    def tp(self) -> Ints:
        """Retrieved matched predictions by replicate and threshold, shape (G, K)."""
        return self.counts.at_or_above("tp")

    @cached_property
    def fp(self) -> Ints:
        """Other retrieved predictions, likewise."""
        return self.counts.at_or_above("fp")

    @cached_property
    def n_gold(self) -> Ints:
        """Gold mentions by replicate, shape (G,)."""
        return self.counts.totals("n_gold")

    @property
    def confusion(self) -> Confusion:
        """Outcomes of all mentions by replicate and threshold; nothing is a true negative."""
        fn = self.n_gold[:, None] - self.tp
        return Confusion(self.tp, self.fp, fn, np.zeros_like(self.tp), in_time=self.counts.in_time)

    @cached_property
    def sums(self) -> Mapping[str, Floats]:
        """Sums over documents by name, shape (G, K): what they add before any retrieval, and what each bin changes."""
        if self.documents is None:
            return {}
        return {name: self.documents.below(name)[:, None] + self.documents.at_or_above(name) for name in SUMS}


def group_of(
    counts: pl.DataFrame,
    sums: pl.DataFrame | None,
    replicates: Ints,
    n_documents: int,
    thresholds: Sequence[float] | None,
    boundary: Boundary,
    *,
    in_time: bool = False,
) -> Group:
    """The counts of one group.

    Args:
        counts: Its rows of the count table, with `replicate`, `threshold`, `tp`, `fp`, `n_gold`.
        sums: Its rows of the sums of documents; None: they are not wanted.
        replicates: Replicates of its documents, in any order.
        n_documents: Number of its documents.
        thresholds: The thresholds; None: every score of the group.
        boundary: Without thresholds: whether a score equal to the threshold is retrieved.
        in_time: Whether replicates follow each other in time.
    """
    if thresholds is None and counts[THRESHOLD].null_count() == counts.height:
        at_once, thresholds = pl.lit(EVERYTHING).alias(THRESHOLD), (EVERYTHING,)
        counts, sums = counts.with_columns(at_once), None if sums is None else sums.with_columns(at_once)
    group = replace(GroupCounts.of(counts, thresholds, boundary, replicates), in_time=in_time)
    return Group(group, None if sums is None else group.with_counts(sums), n_documents)


# Micro and macro averages and those of SemEval-2019 Task 12 at every threshold, with intervals from replicates.


_Limits: TypeAlias = "Callable[[float, Resampling | None], dict[str, Limits]]"


def average_of(
    group: Group, kind: Average, confidence: float | None, resampling: Resampling | None = None
) -> pl.DataFrame:
    """One row per threshold: the columns of the table of scores; without a confidence no intervals are wanted."""
    tp, fp = group.tp.sum(axis=0), group.fp.sum(axis=0)
    fn = group.n_gold.sum() - tp
    frame = pl.DataFrame({"tp": tp, "fp": fp, "fn": fn}).with_columns(
        pl.lit(kind).alias("average"),
        doubles(THRESHOLD, group.thresholds),
        pl.lit(group.n_documents, dtype=pl.Int64).alias("n_documents"),
    )
    values, dropped, limits = _pooled(group, frame, kind) if kind in POOLED_AVERAGES else _of_documents(group, kind)
    return frame.with_columns_seq(
        *(doubles(name, column) for name, column in values.items()),
        *(pl.Series(f"{name}_dropped", column.astype(np.int64)) for name, column in dropped.items()),
    ).with_columns_seq(*limit_columns(_intervals(group, limits, confidence, resampling)), _undefined(kind))


def _pooled(group: Group, frame: pl.DataFrame, kind: Average) -> tuple[dict[str, Floats], dict[str, Floats], _Limits]:
    """Ratios of summed counts; a ratio that the conventions of SemEval alone define has no limits."""
    pooled = frame.select_seq(ratios(*(pl.col(name) for name in ("tp", "fp", "fn"))))
    if kind == "semeval_micro" and group.n_documents:
        pooled = pooled.fill_null(1.0)
    values = {name: pooled[name].to_numpy() for name in RATIOS}
    dropped = {name: np.zeros(frame.height) for name in RATIOS}

    def limits(confidence: float, resampling: Resampling | None) -> dict[str, Limits]:
        return intervals_of_clusters(group.confusion, confidence, resampling=resampling)

    return values, dropped, limits


def _of_documents(group: Group, kind: Average) -> tuple[dict[str, Floats], dict[str, Floats], _Limits]:
    """Means of the documents' ratios."""
    sums = (
        _semeval(group) if kind == "semeval" else {name: (group.sums[name], group.sums[f"n_{name}"]) for name in RATIOS}
    )
    values, dropped = {}, {}
    for name, (total, defined) in sums.items():
        number = defined.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[name] = np.where(number > 0, total.sum(axis=0) / number, np.nan)
        dropped[name] = group.n_documents - number
    if kind == "semeval":
        values["f1"], dropped["f1"] = _harmonic(values["precision"], values["recall"]), np.zeros(len(group.thresholds))

    def limits(confidence: float, resampling: Resampling | None) -> dict[str, Limits]:
        in_time = group.counts.in_time
        means = {name: _means(*of_ratio, in_time=in_time) for name, of_ratio in sums.items()}
        return {name: _of_means(of_ratio, confidence, resampling) for name, of_ratio in means.items()}

    return values, dropped, limits


def _semeval(group: Group) -> dict[str, tuple[Floats, Floats]]:
    """Sums of ratios, each of them 1 in a document where it is undefined."""
    number = group.sums["n_documents"]
    return {name: (group.sums[name] + number - group.sums[f"n_{name}"], number) for name in ("precision", "recall")}


def are_alike_in_time(group: Group) -> tuple[bool, bool]:
    """Whether clusters nearby in time are alike in ratios of all mentions, and in means of ratios of documents."""
    retrieved, pooled = (group.tp + group.fp).sum(axis=0), group.confusion
    if not pooled.in_time or not len(retrieved) or not group.counts.within_budget():
        return False, False
    columns = compared_at(retrieved[0] - np.append(retrieved[1:], 0.0))
    of_mentions = (side[:, columns] for side in (pooled.tp, pooled.fp, pooled.fn, pooled.tn))
    of_documents = [
        (group.sums[name][:, columns], group.sums[f"n_{name}"][:, columns]) for name in RATIOS if group.sums
    ]
    means = [np.concatenate(sums, axis=1) for sums in zip(*of_documents, strict=True)]
    return (
        may_days_be_alike(Confusion(*of_mentions, in_time=True)),
        bool(means) and may_days_be_alike(_means(*means, in_time=True)),
    )


def _means(total: Floats, defined: Floats, *, in_time: bool) -> Confusion:
    """Sums of ratios as hits, and what they lack of the number of ratios as misses, see `mean_limits`."""
    hits, misses = np.clip(total, 0.0, None), np.clip(defined - total, 0.0, None)
    nothing = np.zeros_like(hits)
    return Confusion(hits, misses, nothing, nothing, in_time=in_time)


def _of_means(means: Confusion, confidence: float, resampling: Resampling | None) -> Limits:
    """Limits of a mean of ratios: of a share whose hits are the ratios."""
    names, heaviest = ["precision"], (UNSEEN, UNSEEN)
    return intervals_of_clusters(means, confidence, heaviest=heaviest, names=names, resampling=resampling)["precision"]


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = 2 * precision * recall / (precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


def _intervals(
    group: Group, limits: _Limits, confidence: float | None, resampling: Resampling | None
) -> dict[str, Interval]:
    """Intervals of the three ratios; a row gives one reason for all of them."""
    size = len(group.thresholds)
    resamples = 0 if resampling is None else resampling.resamples
    if confidence is None or not group.counts.within_budget(resamples):
        return dict.fromkeys(RATIOS, Interval.none(size, "none" if confidence is None else "budget"))
    of_ratios = limits(confidence, resampling)
    reason: Reason = "undefined_ratio" if "f1" in of_ratios else "harmonic_mean"
    reason = "one_replicate" if len(group.counts.replicates) == 1 else reason
    return {
        name: Interval.of(of_ratios[name], reason) if name in of_ratios else Interval.none(size, reason)
        for name in RATIOS
    }


def _undefined(kind: Average) -> pl.Expr:
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    none = pl.col("precision").is_null() if kind != "micro" else tp + fp == 0
    no_gold = pl.col("recall").is_null() if kind != "micro" else tp + fn == 0
    reason = pl.when(none).then(pl.lit("no_prediction")).when(no_gold).then(pl.lit("no_positive"))
    return reason.alias("undefined")


# Documents that were drawn and judged: which they are, how they were drawn, and what they say of all documents.


CORPUS = "corpus_read"  # all documents that are listed
DESIGN, SIZES, MENTIONS = "judged_documents", "sizes_of_strata", "judged_mentions"
_TO_SAMPLE = "corpus_to_sample"
_MOST_REPLICATES = 1_000
_DESIGNED = ("probability", "stratum")


def repeated_documents(documents: Source, relation: str = CORPUS) -> Check:
    """Check that no document is listed twice; of a sheet among all documents, and not only the judged ones."""
    return duplicate_check(documents, ("doc_id",), remedy="Keep one row per document.", relation=relation)


def judged_relations(relation: Relation, judged: Source, by: Sequence[str], columns: Sequence[str]) -> Iterator[Node]:
    """The documents that are judged, in the place of all that are listed, with their groups and these columns."""
    yield replace(relation, into=CORPUS)
    wanted = ["doc_id", *(name for name in ("judged", *_DESIGNED) if judged.has(name))]
    derived: dict[str, exp.Expr] = {} if judged.has("judged") else {"judged": exp.true()}
    yield rows.read(judged, wanted, (), derived, located=judged.without_places is None)
    yield Relation("documents_to_sample", statement("entity_recognition/documents_to_sample", {"d": by}))
    relations = {"predictions_read": "documents_to_sample"}
    yield Relation(_TO_SAMPLE, statement("threshold_sweep/rows_to_sample", [*by, "doc_id"], relations=relations))
    yield JudgedDocuments(judged, tuple(by))
    segment = {CORPUS: list(dict.fromkeys([*columns, *by]))}
    yield Relation(relation.into, statement("entity_recognition/judged_documents", segment))


def frame_of_mentions(by: Sequence[str]) -> Frame:
    """All mentions of judged documents, with a row for each of these."""
    mentions = mentions_of_documents(by, listed=True)
    return Frame(MENTIONS, statement("entity_recognition/mentions_by_document", by, relations=mentions))


@dataclass(frozen=True)
class JudgedDocuments:
    """The relation of the documents that are judged, by the groups of documents, and how they were drawn."""

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: ClassVar[str] = DESIGN
    judged: Source
    by: tuple[str, ...]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define it.

        Raises:
            DataError: rows of the sheet and documents do not fit, or nothing says how documents were drawn.
        """
        sheet = self._checked(engine.fetch(self._sheet))
        judged = sheet.filter(pl.col("is_judged")).sort("doc_id")
        cells = engine.fetch(self._cells)
        strata = strata_of(cells, self.by, judged.height, worth_of_documents)
        keys = [*self.by, "cell"]
        judged = judged.join(strata.cells.select(*keys, "stratum"), on=keys, how="left", nulls_equal=True)
        named = [name for name in _DESIGNED if self.judged.has(name)]
        is_drawn_of_these = drawn_of_these(judged, cells, self.by, named, worth_of_documents)
        is_alike = judged.height in {0, int(cells["n_rows"].sum())} or is_drawn_of_these
        relative = pl.lit(1.0) if is_alike else self._how_drawn()
        judged = judged.with_columns(relative.cast(pl.Float64).alias("relative"))
        engine.hand_over(DESIGN, judged.select("doc_id").to_arrow())
        progress.tables[DESIGN] = judged.select("doc_id", "stratum", "relative")
        progress.tables[SIZES] = pl.DataFrame({"n_documents": strata.rows})
        progress.warnings += self._warnings(sheet, int(strata.rows.sum()), is_drawn_of_these=is_drawn_of_these)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - its columns are its own
        """The queries, and the relation, which has none."""
        yield Statement(f"rows of the sheet, for relation {DESIGN}", self._sheet, function=JudgedDocuments)
        yield Statement(f"documents of cells, for relation {DESIGN}", self._cells, function=strata_of)
        yield Statement(f"relation {DESIGN}", None, DESIGN, function=JudgedDocuments)

    @property
    def _sheet(self) -> exp.Query:
        absent = {name: exp.null() for name in _DESIGNED if not self.judged.has(name)}
        if self.judged.without_places is not None:
            absent |= {name: exp.null() for name in ("source_file", "file_row_number")}
        return statement("entity_recognition/judged_beside_documents", {"p": self.by}, columns=absent)

    @property
    def _cells(self) -> exp.Query:
        return statement("threshold_sweep/cells_to_sample", self.by, relations={"rows_to_sample": _TO_SAMPLE})

    def _checked(self, sheet: pl.DataFrame) -> pl.DataFrame:
        """The rows of the sheet, with `is_judged`.

        Raises:
            DataError: a document repeats or is unknown, `judged` is no truth value, or a probability is none.
        """
        answers = labels_of(sheet["label_text"], "judged", "judged")
        sheet = sheet.with_columns(answers.fill_null(value=False).alias("is_judged"))
        self._beside.check(sheet)
        self._beside.refuse(
            sheet.filter(pl.col("met_id").is_null()),
            "{rows}, such as {row}, are of no document that the input documents lists",
            "Name the documents that the sheet was drawn from.",
        )
        return sheet

    def _how_drawn(self) -> pl.Expr:
        """How heavy a judged document is beside others of its stratum.

        Raises:
            DataError: nothing says it.
        """
        if self.judged.has("probability"):
            return 1 / pl.col("probability")
        has_strata = self.judged.has("stratum")
        lacking = "its strata are not those of a sheet of these documents" if has_strata else "it has no probability"
        message = f"input judged: nothing says how its documents were drawn: {lacking}"
        remedy = (
            "Map probability, the share of the documents like it that were drawn; one number for all if all were alike."
        )
        raise DataError(message, remedy=remedy)

    @property
    def _beside(self) -> Sheet:
        has_probability = self.judged.has("probability")
        return Sheet(
            "judged",
            "documents",
            "column 'doc_id'",
            lambda row: f"doc_id {row['label_id']!r}",
            has_probability,
            "that are not judged",
        )

    def _warnings(self, sheet: pl.DataFrame, n_documents: int, *, is_drawn_of_these: bool) -> Iterator[str]:
        """Documents that nobody has judged, and a sheet that lacks rows."""
        is_judged = pl.col("is_judged")
        n_judged = sheet.filter(is_judged).height
        yield Note(
            f"{n_judged:,} of {n_documents:,} documents are judged: mentions of the others are left out, and numbers "
            "are estimates for all documents"
        )
        if without := sheet.height - n_judged:
            yield Note(
                f"input judged: {rows_in_words(without)} of {sheet.height:,} are not judged yet, and do not count"
            )
        yield from self._beside.skipped(sheet, ~is_judged)
        if not is_drawn_of_these:
            yield from self._beside.of_fewer(sheet, n_documents)


# What the judged documents say of all documents.


@dataclass(frozen=True)
class JudgedScores:
    """Judged documents with their mentions.

    Attributes:
        params: The parameters.
        design: How the documents were drawn, in the order of their numbers.
        mentions: Their mentions by all grouping columns, and a row for each document.
    """

    params: EntityRecognitionParameters
    design: DocumentDesign
    mentions: pl.DataFrame

    @classmethod
    def of(cls, params: EntityRecognitionParameters, counts: Mapping[str, pl.DataFrame]) -> JudgedScores:
        """The judged documents, from the frames of the plan."""
        ids = counts["document_ids"].to_series(0).alias("doc_id").to_frame()
        drawn = ids.join(counts[DESIGN], on="doc_id", how="left", maintain_order="left")
        sizes = counts[SIZES]["n_documents"].to_numpy().astype(np.float64)
        stratum = drawn["stratum"].to_numpy().astype(np.int64)
        return cls(params, DocumentDesign.of(sizes, stratum, drawn["relative"].to_numpy()), counts[MENTIONS])

    def scores(self, label: pl.DataFrame, thresholds: Floats) -> EstimatedScores:
        """The scores of one group, its keys in one row, at rising thresholds, one nan where everything is retrieved."""
        grouping = next(each for each in self.params.groupings if each.label == label[GROUPING.name][0])
        key = [name for name in label.columns if name in grouping.columns]
        mentions = self.mentions
        if key:
            mentions = mentions.join(label.select(key), on=key, how="semi", nulls_equal=True)
        lowest = np.array([lowest_retrieved(each, self.params.boundary) for each in thresholds])
        score = mentions["score"].fill_null(0.0).to_numpy()
        number = np.ones(len(score)) if np.isnan(thresholds).any() else np.searchsorted(lowest, score, side="right")
        retrieving = np.where(mentions["is_predicted"].to_numpy(), number, 0).astype(np.int64)
        document = mentions[DOCUMENT].to_numpy() - 1
        in_group = np.zeros(len(self.design.weight), np.bool_)
        in_group[document] = True
        rows_of_group = JudgedMentions(document, retrieving, mentions["is_gold"].to_numpy(), in_group)
        return estimated_scores(
            self.design,
            rows_of_group,
            len(thresholds),
            self.params.averages if "micro" in self.params.averages else (*self.params.averages, "micro"),
            np.arange(len(in_group)) % _MOST_REPLICATES,
            confidence=self.params.confidence,
            seed=self.params.seed,
        )


def with_estimates(rows: pl.DataFrame, average: Average, scores: EstimatedScores, *, wanted: bool) -> pl.DataFrame:
    """Rows of an average by rising threshold, with what is estimated for all documents in the place of ratios."""
    columns = [doubles(name, scores.values[average, name][0]) for name in RATIOS]
    sides = (scores.tp, scores.fp, scores.fn)
    columns += [doubles(column.name, side.sum(axis=0)) for column, side in zip(WEIGHTS, sides, strict=True)]
    limits = {}
    for name in RATIOS:
        _, lower, upper = scores.values[average, name]
        reason: Reason = "harmonic_mean" if (average, name) == ("semeval", "f1") else "undefined_ratio"
        limits[name] = Interval.of((lower, upper), reason) if wanted else Interval.none(len(lower), "none")
    return rows.with_columns(*columns).with_columns(limit_columns(limits))


def weighted_confusion(scores: EstimatedScores) -> Confusion:
    """The weights of outcomes by replicate."""
    return Confusion(scores.tp, scores.fp, scores.fn, np.zeros_like(scores.tp))
