"""Places of judged documents among all documents of their rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.ranking.ranks import Documents, RankCounter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

NUMBER = "_ranking"
VALUE = "_value"
NAME = "_name"
RELEVANCE = "relevance"
BLOCK_ROWS = 1 << 20


def judged_places(judged: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Judged documents with their ranks less one, `n_before`; equal values come in descending order of names.

    Args:
        judged: Judged documents: number of the ranking, value (-0 is 0), name, `n_hits`, `n_misses`, and `relevance`
            where gains are taken of it.
        blocks: All documents of these rankings: number, value and name.

    Returns:
        Whole rankings in blocks of about a million rows, with `n_documents`, which is 1, `n_hits`, `n_misses`, and
        `relevance` if the documents have it.
    """
    marked = judged.with_columns(pl.col(VALUE) + 0.0).sort(NUMBER, VALUE, NAME, descending=[False, True, True])
    places = _counted(marked, blocks)
    yield from _whole_rankings(
        marked.with_columns(pl.Series("n_before", places.before()), pl.lit(1, dtype=pl.Int64).alias("n_documents"))
    )


def tied_places(judged: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Ties with a judged document, the documents above each (`n_before`) and in it (`n_documents`).

    A tie has one row, or one for each relevance in it, where documents have that.

    Args:
        judged: As for `judged_places`, without names.
        blocks: As for `judged_places`, without names.
    """
    graded = [RELEVANCE] if RELEVANCE in judged.columns else []
    rows = judged.group_by(NUMBER, pl.col(VALUE) + 0.0, *graded).agg(pl.col("n_hits", "n_misses").sum())
    rows = rows.sort(NUMBER, VALUE, *graded, descending=[False, True, *(True for _ in graded)])
    tie = rows.select(pl.struct(NUMBER, VALUE).rle_id().cast(pl.Int64)).to_series()
    places = _counted(rows.filter(tie.is_first_distinct()), blocks)
    yield from _whole_rankings(
        rows.with_columns(
            pl.Series("n_before", places.before()).gather(tie), pl.Series("n_documents", places.equal()).gather(tie)
        )
    )


def _counted(marked: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> RankCounter | _NothingMarked:
    if marked.is_empty():
        return _NothingMarked()
    places = RankCounter(_documents(marked))
    for block in blocks:
        places.add(_documents(block))
    return places


class _NothingMarked:
    """What there is to say of no document: a part of the rankings may hold no judged one."""

    def before(self) -> NDArray[np.int64]:
        """No number of documents."""
        return np.zeros(0, dtype=np.int64)

    equal = before


def _documents(frame: pl.DataFrame) -> Documents:
    name = frame[NAME] if NAME in frame.columns else None
    return Documents(frame[NUMBER].to_numpy(), frame[VALUE].to_numpy(), name)


def _whole_rankings(places: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Blocks that end where a ranking ends, at least one."""
    graded = [RELEVANCE] if RELEVANCE in places.columns else []
    places = places.select(NUMBER, "n_before", "n_documents", "n_hits", "n_misses", *graded)
    number = places[NUMBER]
    if number.is_empty():
        yield places
    start = 0
    while start < len(number):
        last = number[min(start + BLOCK_ROWS, len(number)) - 1]
        end = int(number.search_sorted(last, side="right"))
        yield places[start:end]
        start = end
