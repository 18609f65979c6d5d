"""What is known of the numbers of systems beside their units: the difference of numbers that are far off is so, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...metrics.uncertainty.qualities import INTERVAL_QUALITY
from ...tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import polars as pl

    from ...metrics.uncertainty.qualities import Quality
    from ..upstream import UpstreamStage
    from .rows import Row

FAILED: Quality = "assumption_failed"
NUMBERS = {"before_after": "before_after_estimates"}  # that have the mark, by kind of stage


def failed_stages(upstream: Sequence[UpstreamStage], grouping: str) -> Iterator[str]:
    """Yield the stages whose numbers rest on an assumption that they found to be contradicted.

    Args:
        upstream: The stages, whose tables are not there yet while a config is only checked.
        grouping: Their grouping whose units are compared.
    """
    import polars as pl  # noqa: PLC0415 - the command line reads parameters without it

    for stage in upstream:
        path = Path(stage.file(NUMBERS[stage.kind])) if stage.kind in NUMBERS else None
        if path is not None and path.exists() and has_failed(pl.read_parquet(path), grouping):
            yield stage.name


def has_failed(numbers: pl.DataFrame, grouping: str) -> bool:
    """Whether the numbers of a grouping have the mark."""
    quality = dict(numbers.group_by(GROUPING.name).agg(INTERVAL_QUALITY).iter_rows()).get(grouping, [])
    return FAILED in quality


def marked(row: Row, failed: Collection[str]) -> Row:
    """A row about two systems, with the mark of either; a row without limits has none."""
    is_marked = row[INTERVAL_QUALITY] is not None and not {row["system_a"], row["system_b"]}.isdisjoint(failed)
    return row | {INTERVAL_QUALITY: FAILED} if is_marked else row
