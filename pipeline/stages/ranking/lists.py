"""One row per ranking, with its measures, from the places of its judged documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.ranking.grades import Grades
from ...metrics.ranking.measures import Judged, Measures, Ties, measures
from ...records import dataclass
from ...tables.groupings import users_name
from ...tables.sweep import IN_TIME, REPLICATE
from ..stage import CLUSTER
from .contract import INTERPOLATED
from .grading import GRADES, Grading
from .places import NUMBER, RELEVANCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from .contract import RankingParameters

QUERY = "query_id"
CLUSTERS = "clusters_of_queries"  # frame, if queries lie in clusters
PLACE = "_place"  # column: that of the cluster of the query in the order of time, if clusters have one
INDEX = "_row"
TOTALS = ("n_retrieved", "n_relevant", "n_nonrelevant")
COUNTED = ("relevant", "nonrelevant")


@dataclass(frozen=True)
class Lists:
    """Makes the table of rankings.

    Attributes:
        params: The parameters of the stage.
        by: All grouping columns.
        of_ranking: Those of the ranking; a ranking is a query within one value of each.
        labelled: Whether relevance stands in the ranking, and only ranked documents are known.
        judged_apart: Whether judgements are an input of their own, the same for all rankings of a query; else every
            ranking has its own.
    """

    params: RankingParameters
    by: tuple[str, ...]
    of_ranking: tuple[str, ...]
    labelled: bool
    judged_apart: bool = True

    def reduce(self, blocks: Iterator[pl.DataFrame], frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """One row per ranking: the grouping columns, query_id, counts and measures.

        Args:
            blocks: Places of judged documents, by number of the ranking and place; a ranking lies in one block.
            frames: `rankings`, and unless labelled `judged_queries`, with measures by name `judged_grades` too; where
                queries lie in clusters, these, and where clusters have an order in time, it.

        Raises:
            DataError: a query was not retrieved, and missing queries are an error; it counts all the same, and its
                cluster is not known; or documents that repeat make more hits than there are relevant documents.
        """
        rankings = frames["rankings"].drop(REPLICATE)
        grading = Grading(self.params, frames.get(GRADES), [*self._of_judgements, QUERY])
        if self.labelled:
            rankings = rankings.with_columns(pl.lit(value=True).alias("judged"))
        else:
            rankings = self._with_judgements(rankings, frames["judged_queries"], grading.queries_that_count())
        if CLUSTERS in frames:
            rankings = self._with_clusters(rankings, frames[CLUSTERS])
        if IN_TIME in frames:
            clusters = frames[IN_TIME].sort("in_order", CLUSTER).select(CLUSTER, pl.int_range(pl.len()).alias(PLACE))
            rankings = rankings.join(clusters, on=CLUSTER, how="left")
        rankings = rankings.sort([*self.by, QUERY], nulls_last=True).with_row_index(INDEX)
        tables = [self._measured(block, rankings, grading) for block in blocks]
        unmeasured = rankings
        if tables:
            measured = pl.concat([table[INDEX] for table in tables])
            unmeasured = rankings.filter(~pl.col(INDEX).is_in(measured.implode()))
        nothing = np.zeros(0)
        tables.append(self._table(unmeasured, _no_ties(), grading, Grades(nothing.astype(np.int64), nothing, nothing)))
        return pl.concat(tables).sort(INDEX).drop(INDEX)

    @property
    def _of_judgements(self) -> list[str]:
        """What tells judgements apart, beside the query."""
        return [] if self.judged_apart else list(self.of_ranking)

    def _with_judgements(self, rankings: pl.DataFrame, queries: pl.DataFrame, counting: pl.DataFrame) -> pl.DataFrame:
        """Every ranking with the judged documents of its query, and rankings of queries that are missing.

        Args:
            rankings: Rankings with retrieved documents.
            queries: Judged queries.
            counting: Keys of those in which a measure by name is defined, with or without a relevant document.
        """
        of_queries = [name for name in self.by if name not in self.of_ranking]
        of_judgements = self._of_judgements
        groups = rankings.select(self.of_ranking).unique() if self.of_ranking else pl.DataFrame({"_": [0]}).drop("_")
        wanted = queries.select(*of_judgements, QUERY, *of_queries)
        wanted = groups.join(wanted, how="cross") if self.of_ranking and not of_judgements else wanted
        numbers, key = queries.drop(of_queries), [*of_judgements, QUERY]
        missing = wanted.join(rankings, on=[*self.of_ranking, QUERY], how="anti", nulls_equal=True)
        missing = missing.join(numbers, on=key, how="left", nulls_equal=True)
        self._refuse(missing.filter(pl.col("n_relevant") > 0))
        if counting.width:
            self._refuse(missing.join(counting, on=key, how="semi", nulls_equal=True))
        rankings = rankings.join(numbers, on=key, how="left", nulls_equal=True)
        if self.params.missing_queries != "skip":
            missing = missing.with_columns(
                pl.lit(0, dtype=pl.Int64).alias("n_retrieved"), pl.lit(None, dtype=pl.Int32).alias(NUMBER)
            )
            rankings = pl.concat([rankings, missing.select(rankings.columns)])
        judged = pl.col("n_relevant").is_not_null().alias("judged")
        return rankings.with_columns(judged, *(pl.col(f"n_{name}").fill_null(0) for name in COUNTED))

    def _with_clusters(self, rankings: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
        """Every ranking with the cluster of its query."""
        rankings = rankings.join(clusters, on=QUERY, how="left", nulls_equal=True)
        unknown = rankings.filter(pl.col(CLUSTER).is_null() & pl.col("judged"))
        if not unknown.is_empty():
            first, number = unknown[QUERY].sort()[0], unknown[QUERY].n_unique()
            queries = "1 such query" if number == 1 else f"{number:,} such queries"
            message = f"cluster: no row tells {self.params.cluster!r} of the judged query {first} ({queries})"
            remedy = 'Put the column into the other input, or leave such queries out with missing_queries = "skip".'
            raise DataError(message, remedy=remedy)
        return rankings

    def _refuse(self, missing: pl.DataFrame) -> None:
        if self.params.missing_queries != "error" or missing.is_empty():
            return
        first = missing.sort([*self.of_ranking, QUERY], nulls_last=True).row(0, named=True)
        where = "".join(f", {users_name(name)} = {first[name]}" for name in self.of_ranking)
        missing_in_words = "1 query is missing" if missing.height == 1 else f"{missing.height:,} queries are missing"
        message = f"input ranking: no document of query {first[QUERY]}{where} ({missing_in_words})"
        remedy = 'Set missing_queries = "zero" to count such a query as 0, or "skip" to leave it out.'
        raise DataError(message, remedy=remedy)

    def _measured(self, places: pl.DataFrame, rankings: pl.DataFrame, grading: Grading) -> pl.DataFrame:
        runs = places[NUMBER].rle_id()
        first = places.select(NUMBER).filter(runs.is_first_distinct())
        retrieved = first.join(rankings, on=NUMBER, how="left", maintain_order="left").select(rankings.columns)
        ties, grades = _ties(places, runs.cast(pl.Int64).to_numpy())
        table = self._table(retrieved, ties, grading, grades)
        self._refuse_repeated(table.filter(pl.col("n_relevant_retrieved") > pl.col("n_relevant")))
        return table

    def _refuse_repeated(self, rankings: pl.DataFrame) -> None:
        """More hits than relevant documents: some repeat, and average precision would exceed 1."""
        if rankings.is_empty():
            return
        first = rankings.row(0, named=True)
        where = "".join(f", {users_name(name)} = {first[name]}" for name in self.of_ranking)
        hits = f"{first['n_relevant_retrieved']:,} relevant documents where {first['n_relevant']:,} are known"
        message = f"input ranking: query {first[QUERY]}{where} retrieves {hits} ({rankings.height:,} such queries)"
        raise DataError(message, remedy='Documents repeat: set duplicates = "max" to keep the highest of each.')

    def _table(self, rankings: pl.DataFrame, ties: Ties, grading: Grading, grades: Grades | None) -> pl.DataFrame:
        if self.labelled:
            numbers = (ties.hits, ties.misses)
            sums = (np.bincount(ties.ranking, number, rankings.height).astype(np.float64) for number in numbers)
            judged = Judged(*sums)
            totals = zip(COUNTED, (judged.relevant, judged.nonrelevant), strict=True)
            rankings = rankings.with_columns(pl.Series(f"n_{name}", total).cast(pl.Int64) for name, total in totals)
        else:
            judged = Judged(*(rankings[f"n_{name}"].cast(pl.Float64).to_numpy() for name in COUNTED))
        columns = [
            INDEX,
            *self.by,
            QUERY,
            *(name for name in (CLUSTER, PLACE) if name in rankings.columns),
            *TOTALS,
            "judged",
        ]
        measured = _columns(measures(ties, judged, self.params.cutoffs, self.params.interpolation), self.params.cutoffs)
        by_name = () if grades is None else grading.columns(rankings, ties, grades)
        return rankings.select(columns).with_columns(*measured, *by_name)


def _columns(measured: Measures, cutoffs: tuple[int, ...]) -> Iterator[pl.Series]:
    yield pl.Series("n_relevant_retrieved", measured.retrieved_relevant).cast(pl.Int64)
    for name in ("precision_sum", "relevant_at_r", "reciprocal_rank", "bpref", "mixed"):
        yield pl.Series(name, getattr(measured, name))
    for level, name in enumerate(INTERPOLATED):
        yield pl.Series(name, measured.interpolated[:, level])
    for number, k in enumerate(cutoffs):
        yield pl.Series(f"hits_{k}", measured.hits[:, number])
        yield pl.Series(f"straddled_{k}", measured.straddled[:, number])


def _ties(places: pl.DataFrame, ranking: NDArray[np.int64]) -> tuple[Ties, Grades | None]:
    """The ties that rows are of, and where rows have a relevance, the documents of each by relevance."""
    columns = ("n_before", "n_documents", "n_hits", "n_misses")
    before, size, hits, misses = (places[name].cast(pl.Float64).to_numpy() for name in columns)
    if RELEVANCE not in places.columns:
        return Ties(ranking, before, size, hits, misses), None
    is_new = np.diff(ranking, prepend=-1).astype(bool) | np.diff(before, prepend=-1).astype(bool)
    tie = np.cumsum(is_new) - 1
    added = (np.bincount(tie, number).astype(np.float64) for number in (hits, misses))
    relevance = places[RELEVANCE].cast(pl.Float64).to_numpy()
    return Ties(ranking[is_new], before[is_new], size[is_new], *added), Grades(tie, relevance, hits + misses)


def _no_ties() -> Ties:
    numbers = (np.zeros(0) for _ in range(4))
    return Ties(np.zeros(0, dtype=np.int64), *numbers)
