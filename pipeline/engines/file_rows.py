"""Queries of the rows of Parquet files, as DuckDB reads them."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

if TYPE_CHECKING:
    from collections.abc import Sequence


def written_paths(files: Sequence[str]) -> exp.Expr:
    """Return a list of the paths of files, in which wildcard characters are taken literally."""
    return exp.Array(expressions=[exp.Literal.string(glob.escape(file)) for file in files])


def files_query(paths: exp.Expr, *, located: bool) -> exp.Select:
    """Return a query of the rows of Parquet files.

    Args:
        paths: A list of their paths, in which wildcard characters have a meaning.
        located: As for `DuckDB.scan`.
    """
    no_folders = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())
    return exp.select(exp.Star()).from_(exp.func("read_parquet", paths, no_folders, *_location(located=located)))


def _location(*, located: bool) -> tuple[exp.Expr, ...]:
    if not located:
        return ()
    name = exp.EQ(this=exp.column("filename"), expression=exp.Literal.string("source_file"))
    return name, exp.EQ(this=exp.column("file_row_number"), expression=exp.true())
