"""Marks of intervals beside `limits.with_quality`: of single rows, of averages, and what a run says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from .clusters import effective_number
from .limits import UNDEFINED_INTERVAL
from .qualities import (
    DOUBTFUL,
    FEWEST_CLUSTERS,
    FEWEST_EVENTS,
    INTERVAL_QUALITY,
    LARGEST_SHARE,
    MEANINGS,
    N_CLUSTERS,
    N_EFFECTIVE,
    Quality,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from .reasons import Reason

_MISSING: dict[Reason, str] = {  # reasons that lie in what was asked for, or in the data as a whole
    "one_replicate": "a single cluster has no spread",
    "budget": "thresholds × replicates are too many, ask for fewer of either",
}
WHY: dict[Quality, str] = {  # of marks that warn, to people
    "assumption_failed": "what these numbers assume does not hold",
    "unequal_clusters": "one cluster has over a third of the rows",
    "few_clusters": "they rest on few independent clusters",
    "one_parent": "pairs of one article or day are alike, which the intervals do not know",
    "correlated_days": "neighbouring days are alike, which the intervals allow for only as far as these days tell",
    "skewed": "there are too few units for values so unevenly spread",
}
_COUNTS = frozenset(  # columns of which one is above 0 wherever there are rows
    {
        *("n", "tp", "fp", "fn", "n_before", "n_after", "m_before", "m_after"),
        *("n_documents", "n_gold", "n_series", "n_true", "n_predicted", "n_queries"),
    }
)


def quality_of_sizes(sizes: NDArray[Any]) -> Quality:
    """The quality of an interval that rests on clusters of these sizes alone, shape (G,)."""
    sizes = sizes[sizes > 0]
    if sizes.max(initial=0) > max(LARGEST_SHARE, 2 / max(len(sizes), 1)) * sizes.sum():
        return "unequal_clusters"
    return "good" if effective_number(sizes) >= FEWEST_CLUSTERS else "few_clusters"


def quality_of_events(*numbers: float) -> Quality:
    """The quality of an interval for the numbers of what its ratio weighs against each other."""
    rarest = min(numbers)
    if rarest <= 0:
        return "at_edge"
    return "few_events_of_interest" if rarest < FEWEST_EVENTS else "good"


def worst_of(qualities: pl.Expr) -> pl.Expr:
    """The worst of the values of `interval_quality` in some rows, as an aggregate; NULL without any."""
    severity = {quality: number for number, quality in enumerate(MEANINGS)}
    ranks = qualities.replace_strict(severity, default=None, return_dtype=pl.Int64)
    return ranks.min().replace_strict(dict(enumerate(MEANINGS)), default=None, return_dtype=pl.String)


def warnings_of_marks(tables: Mapping[str, pl.DataFrame], without: Sequence[Quality] = ()) -> tuple[str, ...]:
    """Sentences for a stage on the doubtful and the missing intervals of its tables: why, in which tables; or none.

    Args:
        tables: The result tables of the stage; those without `interval_quality` are passed over.
        without: Marks that something else tells of.
    """
    return (*_doubtful(tables, without), *_missing(tables))


def _missing(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """What tells that rows have no limits although limits were asked for; nothing where nothing was counted."""
    if _are_without_rows(tables):
        return
    reasons = {
        name: _values(table[UNDEFINED_INTERVAL])
        for name, table in tables.items()
        if {INTERVAL_QUALITY, UNDEFINED_INTERVAL} <= set(table.columns)
    }
    phrases = []
    for reason, meaning in _MISSING.items():
        names = [name for name, present in reasons.items() if reason in present]
        if names:
            phrases.append(f"{meaning} ({reason} in {', '.join(names)})")
    if phrases:
        yield f"some intervals are missing: {'; '.join(phrases)}"


def _values(column: pl.Series) -> set[str]:
    """The values that are there, but NULL."""
    return {value for value in column.value_counts().to_series().to_list() if value is not None}


def _are_without_rows(tables: Mapping[str, pl.DataFrame]) -> bool:
    """Whether the tables have counts, all of which are 0: no cluster is there, so that none is alone."""
    counts = [table[name] for table in tables.values() for name in table.columns if name in _COUNTS]
    return bool(counts) and not any((column > 0).any() for column in counts)


def _doubtful(tables: Mapping[str, pl.DataFrame], without: Sequence[Quality]) -> Iterator[str]:
    """What tells which marks stand in which tables."""
    marked = {name: table for name, table in tables.items() if INTERVAL_QUALITY in table.columns}
    qualities = {name: _values(table[INTERVAL_QUALITY]) for name, table in marked.items()}
    phrases = []
    for quality in DOUBTFUL:
        names = [name for name, present in qualities.items() if quality in present]
        if names and quality not in without:
            why = f"{WHY[quality]}{_fewest(marked, names, quality)}"
            phrases.append(f"{why} ({quality} in {', '.join(names)})")
    if phrases:
        yield f"some intervals may be too narrow: {'; '.join(phrases)}"


def _fewest(tables: Mapping[str, pl.DataFrame], names: list[str], quality: Quality) -> str:
    """The fewest clusters of the rows with a mark, as words; empty where not known."""
    counted = [tables[name] for name in names if {N_CLUSTERS, N_EFFECTIVE} <= set(tables[name].columns)]
    rows = [table.filter(pl.col(INTERVAL_QUALITY) == quality).select(N_EFFECTIVE, N_CLUSTERS) for table in counted]
    fewest = pl.concat(rows).drop_nulls().sort(N_EFFECTIVE, N_CLUSTERS) if rows else pl.DataFrame()
    if fewest.is_empty() or quality not in {"unequal_clusters", "few_clusters"}:
        return ""
    effective, number = fewest.row(0)
    words = f"{number:,}" if effective > number - 1 else f"{number:,} that count as {effective:.1f}"
    return f", {words} at the fewest"
