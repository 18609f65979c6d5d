"""Folders of table formats, whose logs decide which of their Parquet files count: they are not plain Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Apache Hudi"}
_ICEBERG_FOLDER = "metadata"
_ICEBERG_HINT = "version-hint.text"
_ICEBERG_ENDINGS = (".metadata.json", ".metadata.json.gz")


def refuse_table_formats(name: str, folders: Iterable[Path]) -> None:
    """Refuse a folder that belongs to a table format: read as plain Parquet, its removed files would count.

    Args:
        name: Name of the input in messages.
        folders: Folders of its files; the folders above them, and those that links lead to, are looked at too.

    Raises:
        DataError: names the folder and its format.
    """
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        for path in dict.fromkeys((folder, *folder.parents, *(real := folder.resolve()).parents, real)):
            if path in seen:
                continue
            seen.add(path)
            kind = _table_format(path)
            if kind is not None:
                message = f"input {name}: {path} is a table of {kind}, whose log decides which files count"
                remedy = "Tables of this kind are not supported yet: write its current rows to plain Parquet files."
                raise DataError(message, remedy=remedy)


def _table_format(folder: Path) -> str | None:
    for log, kind in _LOGS.items():
        if (folder / log).is_dir():
            return kind
    try:
        names = [path.name for path in (folder / _ICEBERG_FOLDER).iterdir()]
    except OSError:
        return None
    is_iceberg = _ICEBERG_HINT in names or any(name.endswith(_ICEBERG_ENDINGS) for name in names)
    return "Apache Iceberg" if is_iceberg else None
