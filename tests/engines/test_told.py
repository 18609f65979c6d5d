"""What the engine that keeps answers knows of its scans."""

from __future__ import annotations

import pytest

from pipeline.base.dialect import Partition
from pipeline.engines.engine import Scan

FILES = ("/a/x.parquet", "/b/x.parquet", "/c/x.parquet")
DAY = Partition("folder 0: day", "VARCHAR", ("1", None, "3"))


@pytest.mark.parametrize("located", [False, True])
def test_rows_of_a_file_tell_its_folders_and_where_asked_for_its_path(located: bool) -> None:  # noqa: FBT001 - a case
    """A copy of equal content in another folder, as of an object of a store, is not taken for the file."""
    scan = Scan("pairs", FILES, (DAY,), located)
    paths = [[path] if located else [] for path in FILES]
    assert [scan.tells(path) for path in FILES] == [["1", *paths[0]], [None, *paths[1]], ["3", *paths[2]]]
    assert Scan("pairs", FILES, (), located=False).tells(FILES[0]) == []


def test_partitions_of_some_files_keep_their_order() -> None:
    (of_two,) = Scan("pairs", FILES, (DAY,), located=False).partitions_of([FILES[2], FILES[0]])
    assert (of_two.column, of_two.values) == (DAY.column, ("3", "1"))
