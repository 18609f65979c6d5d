"""Checksums of the pages of a Parquet file: CRC-32 of their bytes on disk, in their headers, where the writer adds it.

Engines do not compare them, and footers do not say whether there are any, so the headers of all pages are read here.
A header is a struct of Thrift's compact protocol: https://github.com/apache/parquet-format, `PageHeader`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO

from ..crash_notes import reading
from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTEGERS = (4, 5, 6)
_COMPRESSED_SIZE, _CRC = 3, 4  # fields of PageHeader
_DEEPEST, _LONGEST_VARINT = 8, 70
_FIRST_WINDOW, _LARGEST_WINDOW = 4096, 16 << 20
_BLOCK = 1 << 20


class PageFaultError(Exception):
    """A page is not what its checksum says; the text says which."""


@dataclass(frozen=True)
class PageCounts:
    """How many pages were looked at.

    Attributes:
        verified: Pages whose checksum fits.
        without: Pages that have no checksum.
    """

    verified: int
    without: int


def check_pages(path: Path, columns: Collection[str]) -> PageCounts:
    """Compare the pages of some columns with their checksums; one megabyte is held at a time.

    Args:
        path: A Parquet file whose footer is intact.
        columns: Names of columns; those inside a nested column belong to it.

    Raises:
        PageFaultError: a checksum does not fit, or the headers of pages that have checksums are damaged.
        OSError: the file cannot be read.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    verified = without = 0
    with reading(path), path.open("rb") as file:
        metadata = pq.read_metadata(file)
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(index)
                if not any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns):
                    continue
                start = chunk.data_page_offset
                if chunk.dictionary_page_offset:  # None, or 0 by some writers, where there is none
                    start = min(start, chunk.dictionary_page_offset)
                site = f"column {chunk.path_in_schema!r}, row group {group + 1} of {metadata.num_row_groups}"
                counts = _check_chunk(file, start, start + chunk.total_compressed_size, site)
                verified, without = verified + counts.verified, without + counts.without
    return PageCounts(verified, without)


def _check_chunk(file: BinaryIO, start: int, end: int, site: str) -> PageCounts:
    verified = without = 0
    while start < end:
        try:
            length, size, crc = _header(file, start, end)
        except ValueError as error:
            if not verified:  # some old writers give a wrong length of a column: not a fault of pages
                return PageCounts(0, without + 1)
            message = f"{site}: the header of page {verified + without + 1} is damaged"
            raise PageFaultError(message) from error
        if crc is None:
            without += 1
        elif _crc_of(file, start + length, size) == crc:
            verified += 1
        else:
            message = f"{site}: page {verified + without + 1} does not fit its checksum"
            raise PageFaultError(message)
        start += length + size
    return PageCounts(verified, without)


def _crc_of(file: BinaryIO, start: int, size: int) -> int:
    file.seek(start)
    crc = 0
    while size > 0:
        block = file.read(min(size, _BLOCK))
        if not block:
            return -1
        crc, size = zlib.crc32(block, crc), size - len(block)
    return crc


def _header(file: BinaryIO, start: int, end: int) -> tuple[int, int, int | None]:
    """Return the length of a page header, the size of its page, and the checksum if it has one.

    Raises:
        ValueError: it is no page header.
    """
    window = _FIRST_WINDOW
    while True:
        file.seek(start)
        reader = _Compact(file.read(min(window, end - start)))
        try:
            fields = {number: reader.value(kind) for number, kind in reader.fields()}
            break
        except IndexError:
            window *= 8
            if window > _LARGEST_WINDOW or len(reader.data) >= end - start:
                message = "it does not end"
                raise ValueError(message) from None
    size, crc = fields.get(_COMPRESSED_SIZE), fields.get(_CRC)
    if size is None or not 0 <= size <= end - start - reader.at:
        message = "it has no size, or one that does not fit the column"
        raise ValueError(message)
    return reader.at, size, None if crc is None else crc & 0xFFFFFFFF


class _Compact:
    """A reader of Thrift's compact protocol; it raises an IndexError at the end of its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads its value in between."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def value(self, kind: int, depth: int = 0) -> int | None:
        """Read an integer, or pass over a value of another type.

        Raises:
            ValueError: the type does not occur in headers of pages.
        """
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT and depth < _DEEPEST:
            for _, inner in self.fields():
                self.value(inner, depth + 1)
        elif kind in {_BYTE, _DOUBLE}:
            self.at += 1 if kind == _BYTE else 8
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind not in {_TRUE, _FALSE}:
            message = f"type {kind}"
            raise ValueError(message)
        return None

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte

    def _integer(self) -> int:
        raw = self._varint()
        return (raw >> 1) ^ -(raw & 1)

    def _varint(self) -> int:
        value = shift = 0
        while shift < _LONGEST_VARINT:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the highest bit says that another byte follows
                return value
            shift += 7
        message = "an integer does not end"
        raise ValueError(message)
