"""What tells people which prediction a row is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..sections import Asked

LOCATION = ("source_file", "file_row_number")
INPUTS = {"predictions": {name: name for name in LOCATION}}


def identity(asked: Asked) -> tuple[str, ...]:
    """What tells people which row it is, beside its place in the files: its groups, its id and its clusters."""
    predictions = asked.plan.sources[0]
    clusters = (asked.params.cluster_column, asked.params.second_cluster_column)
    ids = ("id",) if predictions.is_mapped("id") else ()
    return tuple(dict.fromkeys((*asked.by, *ids, *(name for name in clusters if name is not None))))


def location_of_known(asked: Asked) -> tuple[str, ...]:
    """The place of rows in the files, where they have an id that tells which they are."""
    return LOCATION if "id" in identity(asked) else ()
