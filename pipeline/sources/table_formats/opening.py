"""From what a path leads to, to the version of the table that is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .delta import delta_table
from .folders import DELTA, ICEBERG, ICEBERG_ENDINGS, LocalFolder, format_of_table
from .iceberg import iceberg_table

if TYPE_CHECKING:
    from pathlib import Path

    from ..inputs import Input
    from .folders import LiveTable, TableFolder


def table_at(path: Path, spec: Input, *, name: str) -> LiveTable | None:
    """Return the version of a table that an input asks for; None if a path leads to no table.

    Args:
        path: The folder of a table, or a metadata file of an Apache Iceberg table.
        spec: What the config says about the input.
        name: Name of the input in messages.

    Raises:
        ConfigError: the library of the format is not installed.
        NoInputError: there is no such version.
        DataError: the table cannot be read.
    """
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that are too long
        return None
    if path.name.endswith(ICEBERG_ENDINGS) and path.is_file():
        return table_in(LocalFolder(path.parent.parent, name=name), ICEBERG, spec, metadata=str(path))
    return table_in(LocalFolder(path, name=name), format_of_table(path), spec)


def table_in(folder: TableFolder, kind: str | None, spec: Input, *, metadata: str | None = None) -> LiveTable | None:
    """Return the version of the table in a folder, here or on a store, that an input asks for.

    Args:
        folder: The folder.
        kind: Its format; None for one that is read as no table.
        spec: What the config says about the input.
        metadata: The metadata file of an Apache Iceberg table that the config names in the place of the folder.

    Raises:
        The errors of `table_at`.
    """
    if kind == DELTA:
        return delta_table(folder, spec.version, spec.timestamp)
    if kind == ICEBERG:
        return iceberg_table(folder, metadata, spec.version, spec.timestamp)
    return None
