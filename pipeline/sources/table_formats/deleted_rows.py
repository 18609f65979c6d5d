"""Files of tables some of whose rows are marked as deleted: the rows that are left become a file of their own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.errors import DataError, os_error_number
from pipeline.sources.parquet_files import open_file
from pipeline.sources.spooling import spooled

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from pipeline.sources.parquet_files import DataFile


def without(file: DataFile, deleted: NDArray[np.int64], scratch: Path | None, *, name: str) -> DataFile:
    """Return a file with the rows of another one that are not marked as deleted, in their order.

    Args:
        file: The file.
        deleted: Numbers of the rows that are marked, from 0, each once, rising.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.

    Raises:
        DataError: the file has no such row, or is damaged.
        StorageError: the folder for temporary data is full.
    """
    if not len(deleted):
        return file
    if not 0 <= deleted[0] <= deleted[-1] < file.rows:
        message = (
            f"input {name}: row {int(deleted[-1]):,} of {file.name} is marked as deleted, and it has {file.rows:,}"
        )
        raise DataError(message, remedy="Somebody else than the table's own writers wrote it: restore the file.")
    path, holder = spooled(lambda target: _write(file, deleted, target, name=name), file.name, scratch, name=name)
    kept = open_file(path, path.parent, name=name, label=file.name, holder=holder)
    marks = {"n_deleted": len(deleted), "deleted_sha256": hashlib.sha256(deleted.tobytes()).hexdigest()}
    origin = None if file.is_remote else file.path
    return replace(kept, origin=origin, identity=file.identity | marks, partitions=file.partitions)


def _write(file: DataFile, deleted: NDArray[np.int64], target: Path, *, name: str) -> None:
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    start = 0
    try:
        with pq.ParquetFile(file.path) as rows, pq.ParquetWriter(target, rows.schema_arrow) as writer:
            for batch in rows.iter_batches():
                is_left = np.ones(batch.num_rows, bool)
                first, last = np.searchsorted(deleted, (start, start + batch.num_rows))
                is_left[deleted[first:last] - start] = False
                writer.write_batch(batch.filter(pa.array(is_left)))
                start += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        if os_error_number(error) is not None:
            raise
        message = f"input {name}: {file.name} cannot be read: {str(error).splitlines()[0]}"
        raise DataError(message, remedy="The file is damaged: restore it.") from error
