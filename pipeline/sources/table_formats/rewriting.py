"""Files of tables that are not read as they are: some rows are marked as deleted, or columns have other names now."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import DataError, os_error_number
from ..parquet_files import open_file
from ..spooling import spooled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ..parquet_files import DataFile


def rewritten(
    file: DataFile, names: Mapping[str, str], deleted: NDArray[np.int64], scratch: Path | None, *, name: str
) -> DataFile:
    """Return a file with the rows of another one that are not marked as deleted, in their order, under other names.

    Args:
        file: The file.
        names: Its columns that are kept, with their names now.
        deleted: Numbers of the rows that are marked, from 0, each once, rising.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.

    Raises:
        DataError: the file has no such row, or is damaged.
        StorageError: the folder for temporary data is full.
    """
    if len(deleted) and not 0 <= deleted[0] <= deleted[-1] < file.rows:
        message = (
            f"input {name}: row {int(deleted[-1]):,} of {file.name} is marked as deleted, and it has {file.rows:,}"
        )
        raise DataError(message, remedy="Somebody else than the table's own writers wrote it: restore the file.")

    def write(target: Path) -> None:
        _write(file, names, deleted, target, name=name)

    path, holder = spooled(write, file.name, scratch, name=name)
    kept = open_file(path, path.parent, name=name, label=file.name, holder=holder)
    marks = {"n_deleted": len(deleted), "deleted_sha256": hashlib.sha256(deleted.tobytes()).hexdigest()}
    identity = file.identity | (marks if len(deleted) else {})
    origin = None if file.is_remote else file.path
    return replace(kept, origin=origin, identity=identity, partitions=file.partitions)


def _write(file: DataFile, names: Mapping[str, str], deleted: NDArray[np.int64], target: Path, *, name: str) -> None:
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    start = 0
    try:
        with pq.ParquetFile(file.path) as rows:
            fields = [field for field in rows.schema_arrow if field.name in names]
            schema = pa.schema([field.with_name(names[field.name]) for field in fields])
            with pq.ParquetWriter(target, schema) as writer:
                for batch in rows.iter_batches(columns=[field.name for field in fields]):
                    is_left = np.ones(batch.num_rows, bool)
                    first, last = np.searchsorted(deleted, (start, start + batch.num_rows))
                    is_left[deleted[first:last] - start] = False
                    left = batch.filter(pa.array(is_left))
                    writer.write_batch(pa.record_batch(left.columns, schema=schema))
                    start += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        if os_error_number(error) is not None:
            raise
        message = f"input {name}: {file.name} cannot be read: {str(error).splitlines()[0]}"
        raise DataError(message, remedy="The file is damaged: restore it.") from error
