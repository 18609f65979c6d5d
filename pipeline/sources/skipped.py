"""Files of an input folder that are not read because of their names; they are counted, named, and never most data."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError
from ..records import dataclass
from .finding import ENDING
from .parquet_files import ENCRYPTED, MAGIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pyarrow as pa

MAGICS = (MAGIC, ENCRYPTED)
MOST_NAMES = 3
RENAME = (
    f"Rename them to end in {ENDING}, or name them by a glob or a list: only folders are searched by the ending, "
    'which format = "csv", for example, changes.'
)


@dataclass(frozen=True)
class PassedOver:
    """A visible file of an input folder whose name does not end in `.parquet`, of which nothing has been read.

    Attributes:
        path: Absolute path, or the address on a remote store.
        partitions: Column → value, from the folder names.
        partition_types: None: folder names are text.
        remote: Of an object on a remote store: it has been looked at when it was listed.
    """

    path: Path | str
    partitions: dict[str, str | None]
    partition_types: dict[str, pa.DataType] = field(default_factory=dict)
    remote: Skipped | None = None


@dataclass(frozen=True)
class Skipped:
    """A visible file of an input folder that is not read, because its name does not end in `.parquet`.

    Attributes:
        path: Absolute path, or the address on a remote store.
        size: Its bytes.
        is_parquet: Whether it starts and ends as Parquet files do.
    """

    path: Path | str
    size: int
    is_parquet: bool


def look_at(paths: Iterable[Path | str]) -> tuple[Skipped, ...]:
    """Return skipped files sorted by name; one that cannot be opened is assumed to have another format."""
    return tuple(_look(path) for path in sorted(map(Path, paths), key=lambda path: path.as_posix()))


def _look(path: Path) -> Skipped:
    length = len(MAGICS[0])
    try:
        with path.open("rb") as file:
            head, size = file.read(length), file.seek(0, 2)
            file.seek(max(size - length, 0))
            return Skipped(path, size, head in MAGICS and file.read(length) == head and size > 2 * length)
    except OSError:
        return Skipped(path, 0, is_parquet=False)


def skipped_words(skipped: Collection[Skipped]) -> str:
    """Say how many files of an input were skipped, why, the first names, and how many contain Parquet."""
    parquet = [each for each in skipped if each.is_parquet]
    shown = (parquet or list(skipped))[:MOST_NAMES]
    names = ", ".join(str(each.path) for each in shown) + (", …" if len(skipped) > len(shown) else "")
    plural = len(skipped) > 1
    verb, ending = ("are", "their names do") if plural else ("is", "its name does")
    holds = (
        f"{len(parquet):,} of them {'hold' if len(parquet) > 1 else 'holds'} Parquet" if plural else "it holds Parquet"
    )
    content = holds if parquet else "none holds Parquet" if plural else "it holds no Parquet"
    files = f"{len(skipped):,} files" if plural else "1 file"
    return f"{files} in its folders {verb} not read, because {ending} not end in {ENDING}: {names}; {content}"


def refuse_most_skipped(name: str, sizes: Collection[int], skipped: Collection[Skipped]) -> None:
    """Refuse an input of which half or more of the Parquet files, or of their bytes, would be skipped.

    Args:
        name: The input.
        sizes: Bytes of the files that are read.
        skipped: The files that are not.

    Raises:
        DataError: the results would rest on the smaller part of the data.
    """
    left_out = [each.size for each in skipped if each.is_parquet]
    if left_out and (len(left_out) >= len(sizes) or sum(left_out) >= sum(sizes)):
        total = len(left_out) + len(sizes)
        message = f"input {name}: {skipped_words(skipped)}, {len(left_out):,} of {total:,} Parquet files in all"
        raise DataError(message, remedy=RENAME)
