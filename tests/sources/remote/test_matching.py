"""Keys of a bucket and files of the same names: folders and patterns mean the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.sources.finding import Search
from pipeline.sources.stores import fixed_part, match_keys

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    "p-0.parquet",
    "p-0.parquet.sha256",
    "notes.txt",
    "_SUCCESS",
    "_x.parquet",
    ".y.parquet",
    "_temporary/0/p-1.parquet",
    "_temporary/_SUCCESS",
    "_temporary/sub/p-3.parquet",
    "_day=1/p.parquet",
    "_day=1/_z.parquet",
    "_day=1/sub/q.parquet",
    ".h/p.parquet",
    ".h/sub/p.parquet",
    ".k=1/p.parquet",
    "sub/p-2.PARQUET",
    "sub/_x.parquet",
    "sub/.x.parquet",
    "sub/part-0",
    "sub/part-0.sha256",
    "sub/deep/er/p-4.parquet",
    "sub/_deep/p-5.parquet",
    "sub/deep/sub/p-6.parquet",
)
PATTERNS = (
    *("*", "**", "**/**", "**/*", "**/*.parquet", "*.parquet", "*/*.parquet", "?-0.parquet", "**/p-*.parquet"),
    *("sub/*", "sub/**", "*/sub", "*/sub/**", "**/sub", "**/sub/**", "**/sub/**/**", "**/sub/*", "**/sub/**/*", "s?b"),
    *("[s]ub/*.parquet", "*/deep/**", "sub/**/er", "**/deep/**/p-*", "**/0/**", "**/part-0", "**/part-0/**"),
    *(
        "_*",
        "_*/**",
        "_temporary/**",
        "_temporary/*",
        "**/_temporary/**",
        "**/_*",
        "**/_*/**",
        "_day=*/**",
        "**/_day=1",
    ),
    *(".*", ".*/**", ".h/**", "**/.h/**", "**/.h/*", ".*/*", "p-0.parquet/**", "*.parquet/**", "nothing/**"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("text", [*PATTERNS, "sub", "_temporary", ".h", "_day=1", "nothing"])
def test_keys_match_as_files_do(folder: Path, text: str) -> None:
    search = Search("pairs", folder)
    files = [path.relative_to(folder).as_posix() for path, _ in search.matches(text)]
    names = tuple(text.split("/"))
    fixed = fixed_part(names)
    chosen, passed_over_keys = match_keys(NAMES, fixed, names[len(fixed) :], (".parquet",))
    assert chosen == sorted(files)
    passed_over = {path.relative_to(folder).as_posix() for path in search.passed_over}
    assert passed_over_keys == sorted(passed_over - set(files))  # a pattern may match what its folders pass over


def test_what_is_hidden_is_left_out_below_any_depth() -> None:
    assert match_keys(NAMES, (), ("**", "sub", "**"), (".parquet",))[0] == [
        "_day=1/sub/q.parquet",
        "_temporary/sub/p-3.parquet",
        "sub/deep/er/p-4.parquet",
        "sub/deep/sub/p-6.parquet",
        "sub/p-2.PARQUET",
    ]
    assert match_keys(["a/_SUCCESS", "a/_temporary/0/p.parquet"], ("a",), ("**",), (".parquet",))[0] == []
