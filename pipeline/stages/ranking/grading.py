"""The measures that the config asks for by name, for every ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.ranking.graded import GradedRankings, measure_values
from ...metrics.ranking.grades import Grades
from ...metrics.ranking.notation import EXPONENTIAL, MOST_GRADE
from ...records import dataclass
from ...tables.columns import doubles
from .places import RELEVANCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.ranking.measures import Ties
    from .contract import RankingParameters

N_DOCUMENTS = "n_documents"
GRADES = "judged_grades"  # frame of the judged documents of every query by relevance
_ROW = "_ranking_row"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Grading:
    """Makes one column for each measure.

    Attributes:
        params: The parameters of the stage.
        judged: Judged documents by query and relevance, with `n_documents`; None: those of a ranking are its own.
        key: The columns by which rankings find theirs.
    """

    params: RankingParameters
    judged: pl.DataFrame | None
    key: Sequence[str]

    def __post_init__(self) -> None:
        if self.judged is not None:
            self._refuse(self.judged[RELEVANCE])

    def queries_that_count(self) -> pl.DataFrame:
        """Keys of the queries in which a measure is defined, so that it matters whether they were retrieved."""
        if self.judged is None or not self.params.measures:
            return pl.DataFrame()
        highest = self.judged.group_by(self.key).agg(pl.col(RELEVANCE).max())
        asked = self.params.ranking_measures
        levels = [self.params.relevance_level if measure.rel is None else measure.rel for measure in asked]
        counts = [
            pl.lit(measure.kind == "Judged")
            | (pl.col(RELEVANCE) > 0 if measure.is_graded else pl.col(RELEVANCE) >= level)
            for measure, level in zip(asked, levels, strict=True)
        ]
        return highest.filter(pl.any_horizontal(counts)).select(self.key)

    def columns(self, rankings: pl.DataFrame, ties: Ties, grades: Grades) -> Iterator[pl.Series]:
        """A column for each measure; NULL where it is undefined.

        Args:
            rankings: The rankings that the ties are of, in that order, with the key and n_retrieved.
            ties: Their ties.
            grades: Judged documents of the ties.

        Raises:
            DataError: a relevance is no grade that a measure can take; or documents that repeat make a value above 1.
        """
        if not self.params.measures:
            return
        if self.judged is None:
            self._refuse(pl.Series(grades.relevance))
        judged = _added_up(ties, grades) if self.judged is None else _judged_of(rankings, self.judged, self.key)
        n_retrieved = rankings["n_retrieved"].cast(pl.Float64).to_numpy()
        graded = GradedRankings(ties, grades, judged, n_retrieved)
        for measure in self.params.ranking_measures:
            values = measure_values(measure, graded, self.params.relevance_level)
            if (values > 1 + _ROUNDING).any():
                message = f"input ranking: {measure.name} exceeds 1, since documents repeat"
                raise DataError(message, remedy='Set duplicates = "max" to keep the highest of each.')
            yield doubles(measure.name, np.minimum(values, 1.0))

    def _refuse(self, relevance: pl.Series) -> None:
        """Stop at a relevance of which gains cannot be taken."""
        if relevance.is_empty():
            return
        highest = float(relevance.cast(pl.Float64).to_numpy().max())
        for measure in self.params.ranking_measures:
            most = measure.max_grade or (MOST_GRADE if measure.gain == EXPONENTIAL else np.inf)
            if highest > most:
                message = f"measures: {measure.name} takes a relevance of at most {most:g}, and there is {highest:g}"
                remedy = f"Write the highest relevance of the scale into the name: {measure.kind}(max_grade=…)."
                if measure.gain == EXPONENTIAL:
                    remedy = "Take nDCG with its usual gain, the relevance, or a smaller scale."
                raise DataError(message, remedy=remedy)


def _judged_of(rankings: pl.DataFrame, judged: pl.DataFrame, key: Sequence[str]) -> Grades:
    """The judged documents of the query of every ranking."""
    rows = rankings.select(*key).with_row_index(_ROW)
    return _grades(rows.join(judged.select(*key, RELEVANCE, N_DOCUMENTS), on=list(key), nulls_equal=True))


def _added_up(ties: Ties, grades: Grades) -> Grades:
    """The judged documents of every ranking, of those of its ties."""
    columns = {_ROW: ties.ranking[grades.of], RELEVANCE: grades.relevance, N_DOCUMENTS: grades.number}
    return _grades(pl.DataFrame(columns))


def _grades(rows: pl.DataFrame) -> Grades:
    added = rows.group_by(_ROW, pl.col(RELEVANCE).cast(pl.Float64)).agg(pl.col(N_DOCUMENTS).sum())
    ordered = added.sort(_ROW, RELEVANCE, descending=[False, True])
    columns = (ordered[_ROW].cast(pl.Int64), *(ordered[name].cast(pl.Float64) for name in (RELEVANCE, N_DOCUMENTS)))
    return Grades(*(column.to_numpy() for column in columns))
