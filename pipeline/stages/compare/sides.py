"""What is known of the numbers of systems beside their units: the difference of numbers that are far off is so, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, worst
from ...tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from ...metrics.uncertainty.qualities import Quality
    from ..upstream import UpstreamStage
    from .contract import CompareParameters
    from .rows import Row

MARKS: dict[str, Quality] = {  # by key of the parameters
    "failed": "assumption_failed",
    "correlated": "correlated_days",
}
NUMBERS = {"before_after": "before_after_estimates"}  # that have the marks, by kind of stage


def stages_with(mark: Quality, upstream: Sequence[UpstreamStage], grouping: str) -> Iterator[str]:
    """Yield the stages whose numbers have a mark, or whose clusters have an order that their units do not tell.

    Args:
        mark: The mark.
        upstream: The stages, whose tables are not there yet while a config is only checked.
        grouping: Their grouping whose units are compared.
    """
    import polars as pl  # noqa: PLC0415 - the command line reads parameters without it

    for stage in upstream:
        path = Path(stage.file(NUMBERS[stage.kind])) if stage.kind in NUMBERS else None
        is_marked = path is not None and path.exists() and has_mark(pl.read_parquet(path), grouping, mark)
        is_untold = mark == MARKS["correlated"] and stage.cluster_order is not None
        if is_marked or is_untold:
            yield stage.name


def has_mark(numbers: pl.DataFrame, grouping: str, mark: Quality) -> bool:
    """Whether the numbers of a grouping have a mark."""
    quality = dict(numbers.group_by(GROUPING.name).agg(INTERVAL_QUALITY).iter_rows()).get(grouping, [])
    return mark in quality


def marked(row: Row, params: CompareParameters) -> Row:
    """A row about two systems, with the marks of either; a row without limits has none."""
    if row[INTERVAL_QUALITY] is None:
        return row
    systems = {row["system_a"], row["system_b"], *(params.of if len(params.of) == 1 else ())}
    stages = {mark: getattr(params, key) for key, mark in MARKS.items()}
    marks = [mark for mark, names in stages.items() if not systems.isdisjoint(names)]
    return row | {INTERVAL_QUALITY: worst([row[INTERVAL_QUALITY], *marks])}
