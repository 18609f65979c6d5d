"""The contract of a table, checked before it is written, and users' columns in a namespace of their own."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from .errors import ThresherError
from .records import dataclass
from .visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl


COUNT_TABLE = "counts"  # name of the count table that every stage saves
DESCRIPTION = "thresher_table"  # key of the meta data of a Parquet file: what its table and columns mean, as JSON

_RULE = "; NULL: "
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")

SqlType = Literal[
    "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR[]", "KEY", "POSITION"
]


@dataclass(frozen=True)
class Column:
    """One column of a result table.

    Attributes:
        name: Name in the Parquet file and in the catalog.
        type: SQL type; counts are BIGINT, ratios DOUBLE, sums of weights DECIMAL(38, 15); `KEY` is an integer or
            VARCHAR, as in the input; `POSITION` is DOUBLE, or TIMESTAMP (UTC) where the input has times.
        meaning: What a value says, with its unit; then, behind `; NULL: `, when it is NULL, if that is not where it is
            undefined. Links are those of docs/results.md, to which `docs/site/build.py` adds rows from here.
        nullable: Whether it may contain NULL; where its meaning says when, it may.
        is_share: Whether it is a limit of a share, a number from 0 to 1 that people read in percent.
    """

    name: str
    type: SqlType
    meaning: str
    nullable: bool = False
    is_share: bool = False

    def __post_init__(self) -> None:
        if _RULE in self.meaning:
            object.__setattr__(self, "nullable", True)

    @property
    def definition(self) -> str:
        """The meaning of a value, without links."""
        return _LINK.sub(r"\1", self.said)

    @property
    def said(self) -> str:
        """The meaning of a value, with its unit."""
        return self.meaning.partition(_RULE)[0]

    @property
    def when_null(self) -> str | None:
        """When it is NULL, as a phrase; None: never."""
        return (self.meaning.partition(_RULE)[2] or "undefined") if self.nullable else None

    @property
    def comment(self) -> str:
        """The comment on the column in the catalog and the Parquet files: its meaning and null rule, without links."""
        rule = "never NULL" if self.when_null is None else f"NULL: {self.when_null}"
        return _LINK.sub(r"\1", f"{self.said}; {rule}")


def of_chosen_row(
    columns: Iterable[Column], *, reasons: str, always: Sequence[str] = ("undefined", "interval_quality")
) -> tuple[Column, ...]:
    """Return columns as they are in a table of operating points, where they are NULL if no threshold was chosen.

    Args:
        columns: The columns of the table that the row is chosen from.
        reasons: What `undefined` says if none was.
        always: Columns whose null rule stays as it is.
    """
    chosen = []
    for column in columns:
        said = f"{column.said}; also {reasons}" if column.name == "undefined" else column.said
        rules = [column.when_null] if column.name in always else ["not reached", column.when_null]
        rule = ", or ".join(filter(None, rules))
        chosen.append(replace(column, meaning=f"{said}{_RULE}{rule}", nullable=True))
    return tuple(chosen)


def limits_of(name: str, words: str | None = None) -> tuple[Column, Column]:
    """Return the columns `<name>_lower` and `<name>_upper` of an interval, limits of `words` where these say more."""
    rule = f"{_RULE}none can be given"
    return (
        Column(f"{name}_lower", "DOUBLE", f"lower limit of {words or name}{rule}"),
        Column(f"{name}_upper", "DOUBLE", f"upper limit of {words or name}{rule}"),
    )


def limits_of_share(name: str, words: str | None = None) -> tuple[Column, ...]:
    """Return the limits of a share, a number from 0 to 1 such as a ratio; takes the arguments of `limits_of`."""
    return tuple(replace(column, is_share=True) for column in limits_of(name, words))


@dataclass(frozen=True)
class Table:
    """One result table.

    Attributes:
        name: Name of the view in the catalog and of the folder in a run.
        grain: What one row stands for.
        columns: The columns after `stage`, `grouping` and the `by` columns, in order.
        key: The columns, beside the group, that identify a row and order the file.
        metrics: Where a group has several rows: columns that are metrics although they have no limits.
        criteria: Values of its column `criterion` in the order of the config, which its rows follow: a summary is about
            the first. Others come behind them, in the order of the alphabet.
    """

    name: str
    grain: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()

    def with_columns(self, columns: tuple[Column, ...]) -> Table:
        """Return the same table with further columns, the last ones."""
        return replace(self, columns=(*self.columns, *columns)) if columns else self

    def description(self, names: Iterable[str]) -> str:
        """Return the grain and the comment of every column as JSON, which each Parquet file of the table carries.

        Columns of the file that the contract lacks are grouping columns.
        """
        comments = {column.name: column.comment for column in (*LEADING, *self.columns)}
        return json.dumps({"grain": self.grain, "columns": {name: comments.get(name, GROUP_COMMENT) for name in names}})


GROUP_COMMENT = (
    "value of the grouping column; NULL: in rows of a grouping without it, and where the value itself is NULL"
)
STAGE_COLUMN = Column("stage", "VARCHAR", "name of the stage in the config")
CRITERION = "criterion"  # the column with what a threshold was chosen for
GROUPING = Column("grouping", "VARCHAR", "`all`, or the names of the grouping columns, comma-separated")
LEADING = (STAGE_COLUMN, GROUPING)

OF_HISTORY = ("run_id", "published_at")  # what tables in `history` have in addition


def result_names(tables: Iterable[Table]) -> frozenset[str]:
    """Return the names, in lower case, that grouping columns must not have: other result columns have them."""
    result_columns = {column.name for table in tables for column in table.columns}
    return frozenset(name.lower() for name in (*result_columns, *OF_HISTORY, *(column.name for column in LEADING)))


@cache
def polars_types(sql_type: SqlType) -> tuple[pl.DataType, ...]:
    """Return the Polars types that are written as a given SQL type."""
    import polars as pl  # noqa: PLC0415 - the command line reads schemas without loading Polars

    types: dict[SqlType, tuple[pl.DataType, ...]] = {
        "BIGINT": (pl.Int64(),),
        "DOUBLE": (pl.Float64(),),
        "DECIMAL": (pl.Decimal(38, 15),),
        "VARCHAR": (pl.String(),),
        "BOOLEAN": (pl.Boolean(),),
        "DATE": (pl.Date(),),
        "TIMESTAMP": (pl.Datetime("us"),),
        "VARCHAR[]": (pl.List(pl.String()),),
        "KEY": (pl.Int64(), pl.UInt64(), pl.String()),
        "POSITION": (pl.Float64(), pl.Datetime("us")),
    }
    return types[sql_type]


def empty_table(table: Table, groups: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return a result without a row, with the columns and types of its contract.

    A column that has one of several types is text, or a timestamp; grouping columns, `by` their internal names, have
    the type that they have in `groups`.
    """
    schema = groups.schema if by else {}
    return _empty(table, tuple((name, schema[name]) for name in by)).clone()


@cache
def _empty(table: Table, by: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - see polars_types

    types = {column.name: polars_types(column.type)[-1] for column in table.columns}
    return pl.DataFrame(schema={GROUPING.name: pl.String(), **dict(by), **types})


def conform(frame: pl.DataFrame, table: Table, *, stage: str, by: Sequence[str]) -> pl.DataFrame:
    """Make a result follow its contract (leading columns, column order, types, row order); refuse what breaks it.

    Args:
        frame: Columns `grouping`, the `by` columns and those of the table, in any order; others are an error.
        table: The contract.
        stage: Name of the stage, written into every row.
        by: Internal names of the grouping columns, which keep the type they have.

    Raises:
        ThresherError: a column is missing, extra, of another type, NULL where it must not be, or a key repeats.
    """
    import polars as pl  # noqa: PLC0415 - see polars_types

    names = [GROUPING.name, *by, *(column.name for column in table.columns)]
    if set(names) != set(frame.columns):
        odd = ", ".join(sorted(set(names) ^ set(frame.columns)))
        message = f"table {table.name}: its columns and its contract differ in {odd}"
        raise ThresherError(message)
    decimal, schema = pl.Decimal(38, 15), frame.schema  # the schema is made anew each time it is asked for
    others = [column.name for column in table.columns if column.type == "DECIMAL" and schema[column.name] != decimal]
    if others:
        columns = (frame.get_column(name) for name in names)  # a sum of no weights is an integer 0
        frame = pl.DataFrame([each.cast(decimal) if each.name in others else each for each in columns])
        schema = frame.schema
    for column in table.columns:
        if schema[column.name] not in polars_types(column.type):
            message = f"table {table.name}: {column.name} is {schema[column.name]}, not {column.type}"
            raise ThresherError(message)
    stages = pl.Series(STAGE_COLUMN.name, [stage], dtype=pl.String).new_from_index(0, frame.height)
    rows = pl.DataFrame([stages, *(frame.get_column(name) for name in names)])
    key = [GROUPING.name, *by, *table.key]
    ordered, repeats = in_order(rows, key, table.criteria)
    _refuse_values(ordered, table)
    if repeats:
        message = f"table {table.name}: rows repeat in {', '.join(key)}"
        raise ThresherError(message)
    return ordered


def in_order(frame: pl.DataFrame, key: Sequence[str], criteria: Sequence[str] = ()) -> tuple[pl.DataFrame, bool]:
    """Rows in the order of their key, NULL last, criteria in an order of their own; and whether a key repeats.

    Columns of the key with one value say nothing, and rows that are in order stay: most results are of one group.
    """
    import polars as pl  # noqa: PLC0415 - see polars_types

    columns = {name: frame.get_column(name) for name in key}
    is_few = frame.height <= FEW_ROWS and not any(column.dtype.is_nested() for column in columns.values())
    few = {name: column.to_list() for name, column in columns.items()} if is_few else None
    n_values = {name: column.n_unique() if few is None else len(set(few[name])) for name, column in columns.items()}
    varying = [name for name in key if n_values[name] > 1]
    by_rank = bool(criteria) and CRITERION in varying
    is_in_order = not varying or (len(varying) == 1 and columns[varying[0]].is_sorted(nulls_last=True))
    if by_rank or not is_in_order:
        order: Sequence[str | pl.Expr | pl.Series] = _order(criteria, varying) if by_rank else varying
        if not by_rank and _has_few_values([n_values[name] for name in varying], frame.height):
            order = [_place(frame, varying)]
        frame = frame.sort(order, nulls_last=True, maintain_order=True, multithreaded=few is None)
    if len(varying) < 2:  # noqa: PLR2004 - the values of one column tell
        return frame, max(n_values.values(), default=1) < frame.height
    if few is not None:
        return frame, len(set(zip(*(few[name] for name in varying), strict=True))) < frame.height
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in varying)
    return frame, bool(frame.select(same.slice(1).any()).item())


FEW_ROWS = 1000  # up to which it takes longer to hand work to threads than to do it
_MANY_ROWS, _MOST_PLACES = 50_000, 1 << 62


def _has_few_values(n_values: Sequence[int], n_rows: int) -> bool:
    """Whether rows are sorted faster by one whole number, for which their values are looked up, than by their key."""
    return n_rows > _MANY_ROWS and 16 * max(n_values) < n_rows and math.prod(n_values) < _MOST_PLACES


def _place(frame: pl.DataFrame, key: Sequence[str]) -> pl.Series:
    """A whole number of every row that rises in the order of the key, NULL last."""
    import polars as pl  # noqa: PLC0415 - see polars_types

    rank = pl.Series([0], dtype=pl.Int64).new_from_index(0, frame.height)
    for name in key:
        column = frame.select(name)
        values = column.unique().sort(name, nulls_last=True).with_row_index("_place")
        number = column.join(values, on=name, how="left", nulls_equal=True, maintain_order="left").get_column("_place")
        rank = rank * values.height + number
    return rank


def _order(criteria: Sequence[str], key: Sequence[str]) -> list[pl.Expr]:
    """The expressions to sort rows by: their key, criteria in the order of the config."""
    import polars as pl  # noqa: PLC0415 - see polars_types

    ranks = {text: rank for rank, text in enumerate(criteria)}
    rank = pl.col(CRITERION).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int64)
    return [expression for name in key for expression in ([rank] if name == CRITERION else []) + [pl.col(name)]]


def _refuse_values(ordered: pl.DataFrame, table: Table) -> None:
    """Refuse NULL and numbers that are not finite where the contract does."""
    for column in table.columns:
        values = ordered.get_column(column.name)
        if not column.nullable and (n_null := values.null_count()):
            message = f"table {table.name}: {column.name} is NULL in {n_null} rows"
            raise ThresherError(message)
        # a sum is asked first, since it takes a hundredth of the time
        if column.type == "DOUBLE" and not math.isfinite(values.sum()) and not values.is_finite().all():
            message = f"table {table.name}: {column.name} is not finite; an undefined value must be NULL"
            raise ThresherError(message)


# Users' columns in a namespace of their own: their names outside and inside a run.


TOTAL = "all"
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:")
_GROUPS, _CLUSTER, _SHOWN = "by:", "cluster:", "shown:"


def internal_name(name: str) -> str:
    """Return the name of a grouping column inside a run, which cannot clash with a canonical name."""
    return f"{_GROUPS}{name}"


def cluster_name(name: str) -> str:
    """Return the name of the cluster column inside a run, which cannot clash with a canonical name."""
    return f"{_CLUSTER}{name}"


def shown_name(name: str) -> str:
    """Return the name of a column that is only shown inside a run, which cannot clash with a canonical name."""
    return f"{_SHOWN}{name}"


def users_name(name: str) -> str:
    """Return the user's name of a column of a run; a canonical name is the same outside and inside."""
    prefix = next((prefix for prefix in (_GROUPS, _CLUSTER, _SHOWN) if name.startswith(prefix)), "")
    return name.removeprefix(prefix)


def grouping_columns(names: Iterable[str]) -> list[str]:
    """Return the grouping columns among the columns of a run, under their internal names and in their order."""
    return [name for name in names if name.startswith(_GROUPS)]


@dataclass(frozen=True)
class Grouping:
    """Columns, by their internal names, whose values together are the groups of one grouping; none: the total."""

    columns: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Grouping:
        """Return the grouping by columns that are given by the users' names."""
        return cls(tuple(internal_name(name) for name in names))

    @property
    def label(self) -> str:
        """Value of the column `grouping` in results: `all`, or the users' names, comma-separated."""
        return ",".join(map(users_name, self.columns)) or TOTAL


def unlike_but_for_case(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two different names that engines and Parquet readers confuse because they differ in case only, if any."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            return first, name
    return None


def in_users_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with its grouping columns under the users' names; this is the last step before it is written."""
    if not grouping_columns(frame.columns):
        return frame
    named = frame.clone()
    named.columns = [users_name(name) if name.startswith(_GROUPS) else name for name in frame.columns]
    return named


def group_text(row: Mapping[str, Any]) -> str:
    """The group of a result row for people: the values of its grouping columns, or `all`."""
    if row[GROUPING.name] == TOTAL:
        return TOTAL
    return values_text([row[internal_name(name)] for name in row[GROUPING.name].split(",")])


def spellings(text: str) -> tuple[str, ...]:
    """Return how a value may be shown that is written as a text: as it is, or else as a boolean or a point in time."""
    others: list[str] = []
    if text.lower() in {"true", "false"}:
        others = [text.lower(), text.capitalize()]
    elif _TIME.match(text):
        others = [f"{text[:10]} {text[11:]}", f"{text[:10]}T{text[11:]}"]
    return tuple(dict.fromkeys([text, *others]))


def written_groups(values: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the groups that values may mean which are written as texts, the likeliest first."""
    for texts in product(*map(spellings, values.values())):
        yield dict(zip(values, texts, strict=True))


def values_text(values: Sequence[object]) -> str:
    """The values of grouping columns for people, on one line.

    NULL is `null`. Texts that would be read as something else are in double quotes: the empty text, the text `null`,
    and `all` where it is the only value.
    """
    shown = ['""' if value == "" else '"null"' if value == "null" else _value_text(value) for value in values]
    return f'"{TOTAL}"' if shown == [TOTAL] else ", ".join(shown)


def _value_text(value: object) -> str:
    return "null" if value is None else cleaned(str(value), layout="")
