"""Labels of a sheet of matches: which matches they are of, how these were drawn, and what they say of all matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import polars as pl
import scipy
import sqlglot.expressions as exp

from ...errors import DataError, Note
from ...metrics.before_after.estimates import AuditedPrecision
from ...metrics.few_labels.curve import estimated_curve
from ...metrics.few_labels.draws import Labelled, Population, worth_of_rows_alike
from ...plan import rows
from ...plan.counts import Query, Sweep
from ...plan.nodes import Phase, Relation, Statement
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import REPLICATE, THRESHOLD, lowest_retrieved
from ...tables.schemas import GROUPING
from ...visible_text import rows_in_words
from ..sheets import Sheet, drawn_of_these, labels_of, strata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...engines.engine import Engine
    from ...plan.nodes import Node, Progress
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import BeforeAfterParameters

    Floats = NDArray[np.float64]


# The sheet beside the matches that it was drawn from.


KEY = ("event_id", "article_id")
JUDGED, STRATA = "judged_matches", "audit_strata"
_FOUND, _CELLS, _TO_SAMPLE = "audit_found", "audit_cells", "matches_to_sample"
_DESIGN = ("probability", "stratum")


def is_sheet(audited: Source) -> bool:
    """Whether labels are those of a sheet: with `label`, or with what says how it was drawn."""
    return audited.has("label") or is_designed(audited)


def is_designed(audited: Source) -> bool:
    """Whether the sheet says how its matches were drawn; if not, they are a simple random sample."""
    return any(audited.has(name) for name in _DESIGN)


def nodes(audited: Source, by: Sequence[str], matches: Mapping[str, float], grid: Grid | None) -> Iterator[Node]:
    """The sheet and the matches that it was drawn from, with the number of matches of each stratum.

    Args:
        audited: The sheet.
        by: The grouping columns.
        matches: Parameters that tell which pairs are matches that can be drawn.
        grid: The thresholds.
    """
    wanted = [*KEY, "label" if audited.has("label") else "is_match", *(name for name in _DESIGN if audited.has(name))]
    derived = {} if audited.has("label") else {"label": column("is_match", "canonical")}
    yield rows.read(audited, wanted, (), derived, located=audited.without_places is None)
    yield Relation("audit_matches", statement("before_after/audit_matches", by, values=matches))
    columns = [*by, REPLICATE, *KEY]
    relations = {"predictions_read": "audit_matches"}
    yield Relation(_TO_SAMPLE, statement("threshold_sweep/rows_to_sample", columns, relations=relations))
    yield JudgedMatches(audited, tuple(by))
    if is_designed(audited):
        is_same = [exp.NullSafeEQ(this=column(name, "p"), expression=column(name, "c")) for name in by]
        in_strata = statement(
            "before_after/matches_in_strata", {"p": by}, columns={"same_group": exp.and_(exp.true(), *is_same)}
        )
        sweep = Sweep("strata_of_audit", in_strata, "score", grid)
        yield Query(f"before_after/{STRATA}", columns=("n_rows",), keys=("stratum",), sweep=sweep, into=STRATA)


@dataclass(frozen=True)
class JudgedMatches:
    """The relation of the matches that people judged, and the strata that they were drawn from.

    Attributes:
        audited: The sheet.
        by: The grouping columns.
    """

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: ClassVar[str] = _FOUND
    audited: Source
    by: tuple[str, ...]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define it, and hand over which cells of scores are of which stratum.

        Raises:
            DataError: rows of the sheet and matches do not fit, or nothing says how rows were drawn.
        """
        sheet = self._checked(engine.fetch(self._sheet))
        judged = sheet.filter(pl.col("is_match").is_not_null()).sort(*self.by, "score", *KEY)
        cells = engine.fetch(self._cells)
        strata = strata_of(cells, self.by, judged.height, worth_of_rows_alike)
        keys = [*self.by, "cell"]
        judged = judged.join(strata.cells.select(*keys, "stratum"), on=keys, how="left", nulls_equal=True)
        named = [name for name in _DESIGN if self.audited.has(name)]
        is_drawn_of_these = drawn_of_these(judged, cells, self.by, named, worth_of_rows_alike)
        is_alike = not named or judged.is_empty() or is_drawn_of_these
        judged = judged.with_columns((pl.lit(1.0) if is_alike else self._how_drawn()).alias("relative"))
        found = judged.select(*self.by, REPLICATE, *KEY, "score", "is_match")
        engine.hand_over(_FOUND, found.to_arrow())
        engine.hand_over("audited", judged.select(*KEY, "is_match").to_arrow())
        engine.hand_over(_CELLS, strata.cells.select(*keys, "stratum").to_arrow())
        progress.tables[JUDGED] = judged.select(*self.by, "score", "is_match", "stratum", "relative")
        progress.warnings += self._warnings(sheet, int(strata.rows.sum()), is_drawn_of_these=is_drawn_of_these)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - its columns are its own
        """The queries, and the relations, which have none."""
        yield Statement(f"rows of the sheet, for relation {_FOUND}", self._sheet, function=JudgedMatches)
        yield Statement(f"rows of cells, for relation {_CELLS}", self._cells, function=strata_of)
        for name in (_FOUND, "audited", _CELLS):
            yield Statement(f"relation {name}", None, name, function=JudgedMatches)

    @property
    def _sheet(self) -> exp.Query:
        absent = {name: exp.null() for name in _DESIGN if not self.audited.has(name)}
        if self.audited.without_places is not None:
            absent |= {name: exp.null() for name in ("source_file", "file_row_number")}
        return statement("before_after/audited_beside_matches", {"p": self.by}, columns=absent)

    @property
    def _cells(self) -> exp.Query:
        return statement("threshold_sweep/cells_to_sample", self.by, relations={"rows_to_sample": _TO_SAMPLE})

    def _checked(self, sheet: pl.DataFrame) -> pl.DataFrame:
        """The rows of the sheet, with `is_match`.

        Raises:
            DataError: a pair repeats or could not be drawn, a label is no truth value, or a probability is none.
        """
        sheet = sheet.with_columns(labels_of(sheet["label_text"], "audited").alias("is_match"))
        self._beside.check(sheet)
        self._beside.refuse(
            sheet.filter(pl.col("met_id").is_null()),
            "{rows}, such as {row}, are no match after their event with a score that the audit draws from",
            "Give the pairs and the audit that the sheet was drawn with.",
        )
        return sheet

    def _how_drawn(self) -> pl.Expr:
        """How heavy a judged match is beside others of its stratum.

        Raises:
            DataError: nothing says it.
        """
        if self.audited.has("probability"):
            return 1 / pl.col("probability")
        message = (
            "input audited: nothing says how its rows were drawn: its strata are not those of a sheet of these pairs"
        )
        remedy = (
            "Map probability, the share of the matches like it that were drawn; or leave stratum out where all were "
        )
        raise DataError(message, remedy=f"{remedy}drawn alike.")

    @property
    def _beside(self) -> Sheet:
        has_probability = self.audited.has("probability")
        return Sheet("audited", "matches", "event_id or article_id", _row, has_probability=has_probability)

    def _warnings(self, sheet: pl.DataFrame, n_matches: int, *, is_drawn_of_these: bool) -> Iterator[str]:
        """Matches that nobody has judged, and a sheet that lacks rows."""
        is_empty = pl.col("is_match").is_null()
        if without := sheet.filter(is_empty).height:
            yield Note(f"input audited: {rows_in_words(without)} of {sheet.height:,} have no label, and do not count")
        yield from self._beside.skipped(sheet, is_empty)
        if not is_drawn_of_these:
            yield from self._beside.of_fewer(sheet, n_matches)


def _row(row: Mapping[str, object]) -> str:
    return f"event_id = {row['label_event']}, article_id = {row['label_article']}"


# What the judged matches say of all matches.


_ROUNDS = 60  # of bisection


@dataclass(frozen=True)
class Designed:
    """Judged matches by how they were drawn.

    Attributes:
        judged: The judged matches of every group of every grouping.
        strata: Numbers of matches of every group by `stratum` and `threshold`.
        params: The parameters of the stage.
    """

    judged: pl.DataFrame
    strata: pl.DataFrame
    params: BeforeAfterParameters

    @classmethod
    def of(cls, counts: Mapping[str, pl.DataFrame], params: BeforeAfterParameters) -> Designed:
        """What the count tables hold."""
        judged = counts[JUDGED]
        frames = [
            judged.select(*grouping.columns, "score", "is_match", "stratum", "relative").with_columns(
                pl.lit(grouping.label).alias(GROUPING.name)
            )
            for grouping in params.groupings
        ]
        return cls(pl.concat(frames, how="diagonal"), counts[STRATA], params)

    def precision(self, key: pl.DataFrame, thresholds: Floats) -> AuditedPrecision:
        """The share of matches that are right; nan at thresholds without a judged match.

        Args:
            key: The key of a group, in one row.
            thresholds: Rising thresholds, from that of the audit on.
        """
        judged, strata = (
            frame.join(key, on=key.columns, how="semi", nulls_equal=True) for frame in (self.judged, self.strata)
        )
        if judged.is_empty() or not len(thresholds):
            return AuditedPrecision(*np.full((3, len(thresholds)), np.nan))
        numbers = strata["stratum"].unique().sort().to_numpy()
        retrieved, cuts = self._retrieved(strata, numbers, thresholds)
        falling = judged.sort("score", descending=True)
        rows = Labelled(
            stratum=np.searchsorted(numbers, falling["stratum"].to_numpy()),
            score=falling["score"].to_numpy(),
            label=falling["is_match"].to_numpy().astype(np.bool_),
            weight=falling["relative"].to_numpy(),
        )
        above = np.searchsorted(-rows.score, -cuts, side="right")  # judged matches that each cut retrieves
        limits = np.full((3, len(cuts)), np.nan)
        for number in np.unique(above[above > 0]):
            limits[:, above == number] = self._limits(rows, int(number), cuts, retrieved, above == number)
        return AuditedPrecision(*limits[:, ::-1])

    def _limits(
        self, rows: Labelled, number: int, cuts: Floats, retrieved: Floats, same: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """Precision at the cuts that retrieve the same judged matches, the matches there being the population.

        So it is 1 if all of them are right, which an estimate from all judged matches need not be.
        """
        population = Population(cuts[same], retrieved[:, same], retrieved[:, same][:, -1])
        confidence = self.params.confidence
        curve = estimated_curve(population, rows.take(np.arange(number)), names=("precision",), confidence=confidence)
        precision = curve.at["precision"]
        return precision.estimate, precision.lower, precision.upper

    def _retrieved(self, strata: pl.DataFrame, numbers: NDArray[np.int64], thresholds: Floats) -> tuple[Floats, Floats]:
        """How many matches of each stratum the thresholds retrieve, and the falling scores from which on they do."""
        cuts = np.array([lowest_retrieved(each, self.params.boundary) for each in thresholds])[::-1]
        side: Literal["left", "right"] = (
            "right" if self.params.threshold_values is None and self.params.boundary == ">" else "left"
        )  # without given thresholds the bins are scores
        retrieved = np.zeros((len(numbers), len(cuts)))
        for row, number in enumerate(numbers):
            counted = strata.filter(pl.col("stratum") == number).drop_nulls(THRESHOLD).sort(THRESHOLD)
            counted = counted.group_by(THRESHOLD, maintain_order=True).agg(pl.col("n_rows").sum())
            below = np.append(0, np.cumsum(counted["n_rows"].to_numpy()))
            retrieved[row] = below[-1] - below[np.searchsorted(counted[THRESHOLD].to_numpy(), thresholds[::-1], side)]
        return retrieved, cuts


def alike(precision: AuditedPrecision, matches: Floats, confidence: float) -> tuple[Floats, Floats]:
    """How many matches drawn one by one would tell as much, and how many of them would be right; 0 without labels.

    It is the number with which Jeffreys' limits are as wide as those of the design.

    Args:
        precision: What the design says.
        matches: Shape (T,): how many matches there are.
        confidence: Of the limits.
    """
    share, width = precision.estimate, precision.upper - precision.lower
    low, high = np.zeros(len(matches)), np.asarray(matches, dtype=np.float64)
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(_ROUNDS):
            number = (low + high) / 2
            right = share * number
            lower, upper = (scipy.special.betaincinv(right + 0.5, number - right + 0.5, tail) for tail in tails)
            lower, upper = np.where(share == 0, 0.0, lower), np.where(share == 1, 1.0, upper)
            is_wider = (upper - lower) * np.sqrt(1 - number / np.maximum(matches, 1)) > width
            low, high = np.where(is_wider, number, low), np.where(is_wider, high, number)
    number = np.where(high > matches - 1, matches, high)  # a whole number of right ones must remain possible
    right = np.where(number == matches, np.rint(share * matches), share * number)
    return np.where(np.isnan(share), 0.0, number), np.where(np.isnan(share), 0.0, right)
