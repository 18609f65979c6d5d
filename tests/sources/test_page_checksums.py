"""Every flipped bit in a page that has a checksum is found, and pages without one are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.sources.parquet_files import PageCounts, PageFaultError, check_pages

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
def test_a_flipped_bit_is_found_where_pyarrow_finds_it(tmp_path: Path, compression: str, version: str) -> None:
    path = tmp_path / "a.parquet"
    content = _written(path, compression=compression, data_page_version=version)
    assert check_pages(path, TABLE.column_names).without == 0
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    n_found = 0
    for at in range(4, footer, 97):
        _flipped(path, content, at)
        try:
            pq.ParquetFile(path, page_checksum_verification=True).read()
        except (OSError, pa.ArrowInvalid) as error:
            if "CRC checksum" in str(error):
                n_found += 1
                with pytest.raises(PageFaultError, match="row group"):
                    check_pages(path, TABLE.column_names)
    assert n_found > 20


def test_the_message_names_column_row_group_and_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    content = _written(path, compression="none")
    chunk = pq.read_metadata(path).row_group(1).column(0)
    _flipped(path, content, chunk.dictionary_page_offset + chunk.total_compressed_size - 2)
    with pytest.raises(PageFaultError, match=r"column 'a', row group 2 of 3: page \d does not fit its checksum"):
        check_pages(path, ["a"])
    assert check_pages(path, ["s"]).verified > 0


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _written(path)
    pages = {name: check_pages(path, [name]).verified for name in TABLE.column_names}
    assert min(pages.values()) >= 3
    assert pages["l"] > pages["l.b"]  # paths do not tell a field of a struct from a name with a full stop
    assert check_pages(path, TABLE.column_names).verified == pages["a"] + pages["s"] + pages["l"]
    assert check_pages(path, ["x"]) == PageCounts(0, 0)


def test_a_file_without_checksums_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _written(path, checksums=False)
    counts = check_pages(path, ["a"])
    assert counts.verified == 0
    assert counts.without >= 3


def test_a_damaged_header_behind_a_verified_page_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    content = _written(path, compression="none")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    at = chunk.data_page_offset
    assert at > chunk.dictionary_page_offset
    path.write_bytes(content[:at] + b"\xff" * 12 + content[at + 12 :])
    with pytest.raises(PageFaultError, match="the header of page 2 is damaged"):
        check_pages(path, ["a"])
