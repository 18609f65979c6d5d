"""SQL of the user as it reads rows: its columns are there, each once, and its type is known before a row is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..errors import DataError, InvalidQueryError, UncomputableError
from ..queries.dialect import column, data_type
from ..records import dataclass
from . import predicates
from .paths import shortened
from .predicates import partition_type
from .rows import columns_in_words, is_partition
from .types import finite, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from .rows import Rows

WHERE = "where"
_TRUE_OR_FALSE = re.compile(r"bool|u?int\d+")  # names of Arrow types
TypeOf = Callable[["exp.Expr", "pa.Schema"], "pa.DataType"]


def in_words(name: str, text: str) -> str:
    """Say what SQL is given for: a column, or `where`."""
    return f"where ({shortened(text)})" if name == WHERE else f"{name} = {{ sql = {shortened(text)!r} }}"


def uncomputable(input_name: str, words: str, reason: str) -> DataError:
    """Return the error that SQL of the user cannot be computed.

    Args:
        input_name: Name of the input.
        words: The SQL, as `in_words` says it.
        reason: What the engine says.
    """
    message = f"input {input_name}: {words} cannot be computed: {reason}"
    remedy = (
        "It must have a value for every row: CAST to a wider type, take what a number cannot hold out of text with "
        "replace, or leave such rows out with CASE."
    )
    return DataError(message, remedy=remedy)


def bound(rows: Rows, tree: exp.Expr) -> exp.Expr:
    """Return SQL of the user as it reads rows: partitions as constants, values that are not finite as NULL.

    As a constant, a partition keeps an engine from computing what it rules out.
    """
    fields = {each.name.lower(): each for each in rows.schema}

    def is_single(name: str) -> bool:
        return name.lower() in fields and str(fields[name.lower()].type) in {"float", "halffloat"}

    def read(name: str) -> exp.Expr:
        if is_partition(rows, name):
            value, sql_type = rows.partitions[name], data_type(partition_type(rows, name))
            return exp.cast(exp.null() if value is None else exp.Literal.string(value), sql_type, dialect="duckdb")
        source = fields[name.lower()]
        kind, as_it_is = str(source.type), column(source.name)
        if kind == "null":  # the engine would read it as whole numbers
            return exp.null()
        return finite(as_it_is) if kind in {"double", "float", "halffloat"} else as_it_is

    def kind_of(name: str) -> str:
        arrow = rows.partition_types.get(name, "string") if is_partition(rows, name) else fields[name.lower()].type
        return str(getattr(arrow, "value_type", arrow)).removeprefix("large_").removesuffix("_view")

    return predicates.bind(predicates.numbers_as_floats(tree, is_single), read, kind_of)


@dataclass(frozen=True)
class UserSql:
    """SQL of the user on the columns of an input.

    Attributes:
        input_name: Name of the input.
        type_of: Returns the type of an expression on the columns of a schema, as an engine finds it.
    """

    input_name: str
    type_of: TypeOf
    _types: dict[object, pa.DataType] = field(default_factory=dict)

    def type_in(
        self, rows: Rows, tree: exp.Expr, words: str, *, name: str, reads: str, columns: Sequence[str] | None = None
    ) -> pa.DataType:
        """Return the type of SQL, found once for all rows in which it reads columns of the same types.

        Args:
            rows: The rows that it reads.
            tree: The SQL.
            words: The same as the user wrote it.
            name: What it is given for: a column, or `where`.
            reads: How a message about a column that it reads begins.
            columns: The columns that must be there; None: those that the SQL reads.

        Raises:
            DataError: it does not fit the columns.
        """
        names = predicates.columns_of(tree) if columns is None else columns
        in_lower_case = {each.lower() for each in names}
        types = tuple((each.name, str(each.type)) for each in rows.schema if each.name.lower() in in_lower_case)
        partitions = tuple((each, partition_type(rows, each)) for each in names if is_partition(rows, each))
        key = (id(tree), types, partitions)  # trees live as long as their input
        if key not in self._types:
            self._check_columns(rows, names, reads)
            try:
                self._types[key] = self.type_of(bound(rows, tree), rows.schema)
            except UncomputableError as error:
                raise uncomputable(self.input_name, in_words(name, words), error.reason) from error
            except InvalidQueryError as error:
                message = (
                    f"input {self.input_name}: {name} = {shortened(words)!r} does not fit the columns of {rows.name}: "
                    f"{error.reason}"
                )
                remedy = "Check the types of its columns, or cast them in the expression."
                raise DataError(message, remedy=remedy) from error
        return self._types[key]

    def check_predicate(self, rows: Rows, residual: exp.Expr, words: str, columns: Sequence[str]) -> None:
        """Check that `where` is true or false for a row, as far as the types of its columns tell.

        Args:
            rows: The rows that it reads.
            residual: What is left of it to decide for these.
            words: The predicate as the user wrote it.
            columns: The columns that it reads.

        Raises:
            DataError: it does not fit the columns, or has another type; an integer other than 0 counts as true.
        """
        arrow = str(self.type_in(rows, residual, words, name=WHERE, reads="where reads", columns=columns))
        if not _TRUE_OR_FALSE.fullmatch(arrow) and not isinstance(bound(rows, residual).unnest(), exp.Null):
            message = f"input {self.input_name}: where = {shortened(words)!r} is {arrow} in {rows.name}"
            remedy = "It must be true or false for a row: write a comparison, as in n >= 5 or kind = 'x'."
            raise DataError(message, remedy=remedy)

    def _check_columns(self, rows: Rows, names: Iterable[str], words: str) -> None:
        """Check that columns are there, each once, and have types whose values mean what they say."""
        types = {each.name.lower(): each.type for each in rows.schema}
        for name in names:
            check_twins(self.input_name, rows, name)
            if name.lower() not in types and name not in rows.partitions:
                message = f"input {self.input_name}: {words} {name!r}, which {rows.name} lacks"
                remedy = (
                    f"{columns_in_words(rows, name)} SQL reads names as they are in the files; "
                    f"text stands in single quotes: {exp.Literal.string(name).sql()}."
                )
                raise DataError(message, remedy=remedy)
            if (odd := refused(types.get(name.lower()))) is not None:
                message = f"input {self.input_name}: {words} {name!r}, which is {odd[0]} in {rows.name}"
                raise DataError(message, remedy=odd[1])


def check_twins(input_name: str, rows: Rows, name: str) -> None:
    """Check that rows do not have a column twice, in upper or lower case.

    Raises:
        DataError: they do.
    """
    same_names = [each.name for each in rows.schema if each.name.lower() == name.lower()]
    if len(same_names) > 1:
        message = (
            f"input {input_name}: {rows.name} has {len(same_names)} columns named {name!r} (in upper or lower case)"
        )
        raise DataError(message, remedy="Rename all but one of them.")
