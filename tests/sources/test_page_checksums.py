"""Every flipped bit in a page that has a checksum is found, and columns without one are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.sources.parquet_files import PageFaultError, check_pages

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 900
TABLE = pa.table(
    {
        "a": [number % 7 / 3 for number in range(ROWS)],
        "s": [f"x{number % 5}" for number in range(ROWS)],
        "l": [[number, number + 1] for number in range(ROWS)],
        "l.b": list(range(ROWS)),
    }
)


def _written(path: Path, *, checksums: bool = True, **options: str) -> bytes:
    pq.write_table(TABLE, path, write_page_checksum=checksums, row_group_size=400, data_page_size=512, **options)
    return path.read_bytes()


def _flipped(path: Path, content: bytes, at: int) -> None:
    path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_flipped_bit_is_found_in_the_column_that_it_lies_in(tmp_path: Path, compression: str, version: str) -> None:
    path = tmp_path / "a.parquet"
    content = _written(path, compression=compression, data_page_version=version)
    assert all(check_pages(path, name) for name in TABLE.column_names)
    metadata = pq.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            _flipped(path, content, start + chunk.total_compressed_size - 2)
            name = TABLE.column_names[number]
            with pytest.raises(PageFaultError, match=rf"column '{name}', row group {group + 1} of 3: .*CRC"):
                check_pages(path, name)
            others = [other for other in TABLE.column_names if not f"{name}.".startswith(f"{other}.")]
            assert all(check_pages(path, other) for other in others)


def test_a_file_without_checksums_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _written(path, checksums=False)
    assert not any(check_pages(path, name) for name in TABLE.column_names)
    assert check_pages(path, "x")  # nothing to verify


def test_a_damaged_header_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    content = _written(path, compression="none")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    at = chunk.data_page_offset
    assert at > chunk.dictionary_page_offset
    path.write_bytes(content[:at] + b"\xff" * 12 + content[at + 12 :])
    with pytest.raises(PageFaultError, match="column 'a', row group 1 of 3: "):
        check_pages(path, "a")
