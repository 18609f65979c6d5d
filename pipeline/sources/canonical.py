"""The canonical relation of an input: all rows with canonical columns, finite scores, and whether they pass `where`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..queries.dialect import column, double, is_finite
from ..queries.kept import kept
from .bindings import bound, shown_items
from .parquet_files import DataFile
from .rows import is_partition, partition_column
from .source import PASSES_WHERE, SCORE_GIVEN, SCORE_STATE, Source
from .types import TIME_TYPES, UNKNOWN, canonical_type, microseconds, typed

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from .inputs import Field
    from .rows import Rows


def canonical_relation(
    source: Source, wanted: Mapping[str, Field], *, score: str | None = None, located: bool = False
) -> exp.Query:
    """Select every row of an input with canonical columns.

    The result has the wanted columns under the names they are asked for by, and the boolean `passes_where`: whether
    `where` holds. When `score` is named, it also has `score_state`, which is NULL for a finite score, otherwise
    `null_score`, `nan_score` or `infinite_score`; and `score_given`, the score as it is in the file, even if it is NaN
    or infinite, for readers that check it themselves and so do without the barrier.

    Args:
        source: The input.
        wanted: Names in the result, each with the canonical name of its column and the field it must fit.
        score: The wanted column whose state is asked for.
        located: Whether to keep `source_file` and `file_row_number` of a located scan.
    """
    types = {name: (field, source.types(field.name, field)) for name, field in wanted.items()}
    key = _key(source, types, score, located=located)
    return kept(key, lambda: _canonical(source, types, score, located=located))


def _key(
    source: Source, types: Mapping[str, tuple[Field, str]], score: str | None, *, located: bool
) -> Hashable | None:
    """Return what the relation depends on; None where values or names of the files decide, too."""
    spec = source.spec
    is_named = located and bool(_names_to_show(source.files))
    if spec.where is not None or is_named or any(file.partitions for file in source.files):
        return None
    said = repr([(name, value) for name, value in spec if name != "path"])
    schemas = tuple(
        (type(group[0]), tuple((field.name, str(field.type)) for field in group[0].schema)) for group in source.groups
    )
    wanted = tuple(
        (name, repr(field), sql_type, repr(source.binding(field.name))) for name, (field, sql_type) in types.items()
    )
    return "canonical", source.name, said, schemas, wanted, source.shown, source.keyed, score, located


def _canonical(
    source: Source, types: Mapping[str, tuple[Field, str]], score: str | None, *, located: bool
) -> exp.Query:
    selects = [
        _select(source, f"{source.name}_files_{number}", files, types, score, located=located)
        for number, files in enumerate(source.groups)
    ]
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)


def _select(
    source: Source,
    scan: str,
    files: tuple[Rows, ...],
    types: Mapping[str, tuple[Field, str]],
    score: str | None,
    *,
    located: bool,
) -> exp.Select:
    file = files[0]
    items = [
        exp.alias_(_typed(source, file, field, sql_type), name, quoted=True)
        for name, (field, sql_type) in types.items()
    ]
    items.append(exp.alias_(_kept(source, file), PASSES_WHERE, quoted=True))
    if score is not None:
        raw_score = exp.cast(_value(source, file, score), "DOUBLE")
        items.append(exp.alias_(raw_score, SCORE_GIVEN, quoted=True))
        items.append(exp.alias_(_score_state(raw_score), SCORE_STATE, quoted=True))
    items += shown_items(source, file)
    if located:
        items += [_source_file(files), column("file_row_number")]
    return exp.select(*items).from_(exp.table_(scan))


def _source_file(files: tuple[Rows, ...]) -> exp.Expr:
    """The name of the file of each row: its path, or where the rows lie in a temporary file what they come from.

    Rows are ordered by it, so that it must be the same in every run.
    """
    names = _names_to_show(files)
    if not names:
        return column("source_file")
    starts = {_differing_start(path, shown) for path, shown in names.items()}
    if (
        len(starts) == 1 < len(names) == len(files)
    ):  # as for all files below a folder; a comparison for each file would take its time
        ((hidden, shown),) = starts
        below = exp.func("substring", column("source_file"), exp.Literal.number(len(hidden) + 1))
        return exp.alias_(exp.DPipe(this=exp.Literal.string(shown), expression=below), "source_file", quoted=True)
    name = exp.Case(this=column("source_file"))
    for path, shown in names.items():
        name = name.when(exp.Literal.string(path), exp.Literal.string(shown))
    return exp.alias_(name.else_(column("source_file")), "source_file", quoted=True)


def _names_to_show(files: Iterable[Rows]) -> dict[str, str]:
    """What people call the files that lie at another path than they are called, by that path."""
    return {str(file.path): file.name for file in files if isinstance(file, DataFile) and file.name != str(file.path)}


def _differing_start(path: str, name: str) -> tuple[str, str]:
    """Return what path and name of a file start with before they become the same."""
    pairs = enumerate(zip(reversed(path), reversed(name), strict=False))
    alike = next((place for place, (a, b) in pairs if a != b), min(len(path), len(name)))
    return path[: len(path) - alike], name[: len(name) - alike]


def _typed(source: Source, file: Rows, field: Field, sql_type: str) -> exp.Expr:
    name, kind = field.name, field.kind
    arrow = source.type_in(file, name)
    if arrow is None or isinstance(arrow, str):  # text, which needs no cast
        return column(partition_column(file, source.source_name(name)))
    is_time = kind in {"instant", "position"} and sql_type in TIME_TYPES
    if canonical_type(arrow, kind) == UNKNOWN:
        return exp.cast(exp.null(), "BIGINT" if is_time else sql_type, dialect="duckdb")
    value = typed(_value(source, file, name), arrow, sql_type, as_written=field.as_written)
    if kind == "any" and sql_type == "DOUBLE":  # a group of zeros would have the sign of whichever row came first
        return exp.Add(this=exp.paren(value), expression=double(0))
    return microseconds(value, sql_type, source.spec.timezone) if is_time else value


def _value(source: Source, file: Rows, name: str) -> exp.Expr:
    """A column of the file, the value of its partition, or the expression that the config maps it to."""
    tree, file_column = source.bindings.tree(name), source.source_name(name)
    if tree is not None:
        return exp.paren(bound(file, tree))
    return column(partition_column(file, file_column) if is_partition(file, file_column) else file_column)


def _kept(source: Source, file: Rows) -> exp.Expr:
    where = source.where_of(file)
    if where is None or isinstance(where, exp.Boolean):
        return exp.true() if where is None else where.copy()
    return exp.Coalesce(this=bound(file, exp.paren(where)), expressions=[exp.false()])


def _score_state(raw_score: exp.Expr) -> exp.Expr:
    zero = is_finite(raw_score)
    # statistics leave out NaN: a column that has one value beside it would be taken for that value
    factor = exp.paren(exp.Case().when(zero, double(2)).else_(double(1)))
    text = exp.Lower(this=exp.cast(exp.paren(exp.Mul(this=raw_score.copy(), expression=factor)), "VARCHAR"))
    return (
        exp.Case()
        .when(exp.Is(this=raw_score.copy(), expression=exp.null()), exp.Literal.string("null_score"))
        .when(zero.copy(), exp.null())
        .when(exp.EQ(this=text, expression=exp.Literal.string("nan")), exp.Literal.string("nan_score"))
        .else_(exp.Literal.string("infinite_score"))
    )
