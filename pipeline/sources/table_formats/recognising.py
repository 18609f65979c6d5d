"""Folders of table formats, whose logs decide which of their Parquet files count: they are not plain Parquet."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from ...errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DELTA, ICEBERG, HUDI = "Delta Lake", "Apache Iceberg", "Apache Hudi"
ICEBERG_ENDINGS = (".metadata.json", ".metadata.json.gz")
ICEBERG_FOLDER = "metadata"
ICEBERG_HINT = "version-hint.text"
DELTA_LOG = "_delta_log"
_LOGS = {DELTA_LOG: DELTA, ".hoodie": HUDI}


def refuse_table_formats(name: str, folders: Iterable[Path]) -> None:
    """Refuse files of a folder that belongs to a table format: read as plain Parquet, its removed files would count.

    Args:
        name: Name of the input in messages.
        folders: Folders of its files; the folders above them, and those that links lead to, are looked at too.

    Raises:
        DataError: names the folder and its format.
    """
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        for path in (*_not_seen(folder, seen), *_not_seen(folder.resolve(), seen)):
            kind = format_of_table(path)
            if kind is not None:
                message = f"input {name}: {path} is a table of {kind}, whose log decides which files count"
                raise DataError(message, remedy=remedy_for(kind, str(path)))


def _not_seen(folder: Path, seen: set[Path]) -> list[Path]:
    """Return a folder and those above it, but for those that were seen before, and all above them."""
    new = list(takewhile(lambda path: path not in seen, (folder, *folder.parents)))
    seen.update(new)
    return new


def remedy_for(kind: str, path: str) -> str:
    """Return what helps where a file, a folder or a pattern in a table is named: `path` is that of the table."""
    if kind == HUDI:
        return "Tables of this kind are not supported: write its current rows to plain Parquet files."
    return f'Name the folder of the table itself, path = "{path}", with where for some of its rows.'


def format_of_table(folder: Path) -> str | None:
    """Return the format of the table that a folder holds; None if it holds none."""
    for log, kind in _LOGS.items():
        if (folder / log).is_dir():
            return kind
    try:
        names = [path.name for path in (folder / ICEBERG_FOLDER).iterdir()]
    except OSError:
        return None
    is_iceberg = ICEBERG_HINT in names or any(name.endswith(ICEBERG_ENDINGS) for name in names)
    return ICEBERG if is_iceberg else None


def format_of_keys(keys: Iterable[str]) -> tuple[str, str | None]:
    """Return the folder and the format of a table among the keys of a bucket; no format if there is none."""
    for key in keys:
        *folders, name = key.split("/")
        for log, kind in _LOGS.items():
            if log in folders:
                return "/".join(folders[: folders.index(log)]), kind
        if folders[-1:] == [ICEBERG_FOLDER] and (name == ICEBERG_HINT or name.endswith(ICEBERG_ENDINGS)):
            return "/".join(folders[:-1]), ICEBERG
    return "", None


def tells_a_table(key: str) -> bool:
    """Whether a key of a bucket is that of a file by which a table is known."""
    return format_of_keys([key])[1] is not None


LOG_FOLDERS = (*_LOGS, ICEBERG_FOLDER)
