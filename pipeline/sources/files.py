"""From the paths of an input to the fixed list of its files, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass
from .engine_rows import EngineRows
from .frames import labelled, open_frame
from .listed import Listed
from .listing import Listing
from .parquet_files import DataFile
from .partition_filter import columns_that_decide, left_out, none_known
from .predicates import columns_of, parse_predicate
from .skipped import Skipped, look_at, refuse_most_skipped
from .unnesting import unnested, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import sqlglot.expressions as exp

    from .engine_rows import Looks
    from .frames import FrameRows
    from .inputs import Input
    from .listing import Kinds
    from .partition_filter import Truths
    from .remote.copies import Copies
    from .rows import Rows
    from .table_formats.live_files import LiveTable


@dataclass(frozen=True)
class FoundFiles:
    """The files and frames found for an input.

    Attributes:
        files: Its files and frames in a fixed order.
        skipped: Files in its folders that are not read because of their names.
        left_out: Number of files that are not opened, because `where` holds for no row of their partitions.
        tables: The versions of tables of table formats that its files belong to.
        results_left_out: Results folders below its folders, which are not read.
    """

    files: tuple[Rows, ...]
    skipped: tuple[Skipped, ...]
    left_out: int = 0
    tables: tuple[LiveTable, ...] = ()
    results_left_out: tuple[Path, ...] = ()


def find_files(
    source: Input,
    base: Path,
    scratch: Path | None = None,
    *,
    name: str,
    kinds: Kinds = lambda _names: {},
    reads: Sequence[str] = (),
    truths: Truths = none_known,
    copies: Copies | None = None,
    look: Looks | None = None,
    results: Path | None = None,
) -> FoundFiles:
    """Find the files of an input in a fixed order, read their footers, and list the skipped files of its folders.

    Args:
        source: The input; relative paths are relative to `base`. Frames in the place of paths are opened.
        base: Folder of the config file.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.
        reads: Columns that are read beside those of `where`, for files that do not tell their columns.
        truths: Says for which partitions a predicate holds; files whose rows it leaves out are not opened.
        copies: Where copies of remote objects are; None: in the user's folder for caches.
        look: How the engine looks at tables and addresses; None: it reads files here alone.
        results: The results folder of the run, which is never an input; None: it has none here.

    Raises:
        ConfigError: a path is on a store that is not known, or is empty; `where` is not a predicate; a version is asked
            for of what is no table of a table format; a library that is needed is not installed.
        NoInputError: no file matches, or a link leads nowhere.
        DataError: a file is not a whole Parquet file, or is reached twice; a folder belongs to a table format; half of
            the Parquet files or more would be skipped; the rows of a frame cannot be computed.
        ThresherError: the operating system fails, or a remote store does; by what it says.
    """
    listing = Listing(source, base, scratch, name, kinds, copies, look, results)
    listing.fill()
    where = None if source.where is None else parse_predicate(source.where, name=name, values=source.values())
    chosen = [item for item in listing.items if isinstance(item, Listed)]
    unneeded = left_out(where, chosen, truths)
    if len(unneeded) == len(listing.items):
        unneeded = unneeded[1:]  # one file tells which columns there are
    opened: dict[int, Rows] = {}
    _open(listing, unneeded, opened)
    in_folders = [item for item in chosen if not item.of_table]
    if unneeded and _have_own(opened.values(), columns_that_decide(where, in_folders)):
        unneeded = []
        _open(listing, unneeded, opened)
    files = tuple(opened[id(item)] for item in listing.items if id(item) in opened)
    if source.unnested:
        names = (*reads, *(() if where is None else columns_of(where)))
        files = with_fields(files, names, listing)
    skipped = _skipped(listing, where, truths)
    refuse_most_skipped(name, [file.identity["size"] for file in files if isinstance(file, DataFile)], skipped)
    return FoundFiles(files, skipped, len(unneeded), tuple(listing.tables), listing.results_left_out)


def _open(listing: Listing, unneeded: Sequence[Listed], opened: dict[int, Rows]) -> None:
    """Open the items of a listing that have not been opened, but for those that are not needed."""
    labels = dict(labelled(listing.spec.path, name=listing.name))
    done = {*opened, *map(id, unneeded)}
    pending = [item for item in listing.items if id(item) not in done]
    remote = [item for item in pending if isinstance(item, Listed) and item.is_remote]
    copied = listing.remote.open_all(remote) if remote else {}
    for item in pending:
        if isinstance(item, EngineRows):
            opened[id(item)] = item
            continue
        rows: DataFile | FrameRows
        if not isinstance(item, Listed):
            rows = open_frame(item, labels[item], listing.scratch, name=listing.name)
        else:
            rows = copied[item.name] if item.is_remote else item.open()
        opened[id(item)] = unnested(rows, listing) if listing.spec.unnested else rows


def _have_own(files: Iterable[Rows], names: Sequence[str]) -> bool:
    """Whether a file has a column of its own by the name of a partition: then that column is what `where` reads."""
    return any(name in file.partitions and name in file.schema.names for file in files for name in names)


def _skipped(listing: Listing, where: exp.Expr | None, truths: Truths) -> tuple[Skipped, ...]:
    """Look at the files that are not read because of their names, unless `where` leaves their partitions out."""
    passed_over = listing.passed_over
    unneeded = {item.path for item in left_out(where, passed_over, truths)}
    needed = [item for item in passed_over if item.path not in unneeded]
    return (
        *look_at(item.path for item in needed if item.remote is None),
        *(item.remote for item in needed if item.remote),
    )
