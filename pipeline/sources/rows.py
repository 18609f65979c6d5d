"""The rows of an input, wherever they lie: in a file, in a frame, or where an engine reads them itself."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ConfigError, DataError
from ..records import dataclass
from .frames import FrameRows
from .parquet_files import DataFile
from .predicates import is_expression_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from ..queries.dialect import Description
    from .inputs import Input

    Looks = Callable[..., Description]  # of a kind, `table` or `parquet`, a target, and the `name` of the input


# Rows that only the engine reads: of a table that it knows by name, or at an address on storage that it reaches.


TABLE, PARQUET = "table", "parquet"
_OF_FILES = ("format", "delimiter", "null_values", "tags", "unnest")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a drive of Windows


@dataclass(frozen=True, eq=False)
class EngineRows:
    """The rows of a table, or at an address, as the engine described them.

    Attributes:
        kind: `table` or `parquet`.
        target: Name of the table, or the address.
        rows: Rows, as the engine counted them.
        schema: Columns and types.
        has_places: Whether the engine tells the file of every row, and its number there.
        identity: What is recorded: number, bytes and latest change of the files, as far as the engine tells.
        files: Addresses of its files; none where the engine does not tell.
        look_again: Returns the identity as it is now.
        label: What messages call it; empty: by its place.
        partitions: None: to the engine the name of a folder is a column like others.
        partition_types: As `partitions`.
    """

    kind: str
    target: str
    rows: int
    schema: pa.Schema
    has_places: bool
    identity: dict[str, Any]
    files: tuple[str, ...] = ()
    look_again: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    label: str = ""
    partitions: dict[str, str | None] = field(default_factory=dict)
    partition_types: dict[str, pa.DataType] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What messages and tables call it."""
        return self.label or self.target

    @property
    def digest(self) -> str:
        """Hash of what is recorded, which does not tell that the content is the same."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def n_files(self) -> int:
        """Number of its files; 1 where the engine does not tell."""
        return int(self.identity.get("n_files", 1))

    def has_changed(self) -> bool:
        """Whether it has other files than when it was opened; False where the engine does not tell its files."""
        return "files_sha256" in self.identity and dict(self.look_again()) != self.identity

    def null_free(self, column: str) -> bool:  # noqa: ARG002 - all rows are asked alike
        """Whether a column has no NULL: it may have some."""
        return False

    def bounds(self, column: str) -> None:  # noqa: ARG002 - all rows are asked alike
        """Return the lowest and highest number of a column: not known."""
        return


def is_address(text: str) -> bool:
    """Whether a text is an address on storage, such as `hdfs://…`, `s3a://…`, `dbfs:/…` or `file:///…`."""
    return _ADDRESS.match(text) is not None


def look_at_table(spec: Input, look: Looks | None, *, name: str) -> EngineRows:
    """Return the rows of the table that an input names.

    Raises:
        ConfigError: the engine of the config knows no tables, or a key has no effect.
        ThresherError: the engine cannot describe it; by what it says.
    """
    if look is None:
        message = f"input {name}: table = {spec.table!r} names a table of Spark, and the engine is duckdb"
        raise ConfigError(message, remedy='Set engine = "spark", or give path = … with the files of the table.')
    _refuse_keys(spec, f"table = {spec.table!r}", name=name)
    return _described(TABLE, str(spec.table), look, name=name)


def look_at_address(spec: Input, address: str, look: Looks, *, name: str) -> EngineRows:
    """Return the rows of the Parquet files at an address; errors as those of `look_at_table`."""
    _refuse_keys(spec, address, name=name)
    return _described(PARQUET, address, look, name=name)


def _refuse_keys(spec: Input, target: str, *, name: str) -> None:
    if spec.of_table is not None:
        message = f"input {name}: {spec.of_table} has no effect on {target}, which Spark reads as it is now"
        remedy = "Make a view of that version in Spark, SELECT * FROM … VERSION AS OF …, and name it with table = …"
        raise ConfigError(message, remedy=remedy)
    for key in _OF_FILES:
        if getattr(spec, key) and (key, spec.format) != ("format", PARQUET):
            message = f"input {name}: {key} has no effect on {target}: Spark reads Parquet files and tables"
            raise ConfigError(message, remedy=f"Remove {key}; other formats are read where they are a table of Spark.")


def _described(kind: str, target: str, look: Looks, *, name: str) -> EngineRows:
    from .types import MeansSomethingElse  # noqa: PLC0415 - loads pyarrow

    description = look(kind, target, name=name)
    schema = description.schema
    for number, column in enumerate(schema):
        if (words := description.unreadable.get(column.name)) is not None:
            schema = schema.set(number, column.with_type(MeansSomethingElse(words)))
    return EngineRows(
        kind,
        target,
        description.rows,
        schema,
        description.has_places,
        dict(description.identity),
        tuple(description.files),
        lambda: look(kind, target, name=name).identity,
    )


def refuse_overlaps(items: Iterable[object], *, name: str) -> None:
    """Refuse files that two places of an input both have.

    Raises:
        DataError: names the file and the places.
    """
    place_of: dict[str, str] = {}
    for rows in items:
        if not isinstance(rows, EngineRows):
            continue
        for file in rows.files:
            earlier = place_of.setdefault(file, rows.name)
            if earlier != rows.name:
                message = f"input {name}: {file} belongs to {earlier} and to {rows.name}"
                raise DataError(message, remedy="Its rows would count twice: name it once.")


def relabelled(rows: EngineRows, label: str) -> EngineRows:
    """Return the same rows under another name in messages and tables."""
    return rows if label == rows.name else replace(rows, label=label)


Rows: TypeAlias = DataFile | FrameRows | EngineRows
TOKENS = ("tokens", "words")  # what lists of them are called
_MOST_NAMES = 12  # a readable line


def is_passed_in(rows: Rows) -> bool:
    """Whether rows came from a frame, so that nothing of them is left when the run has ended."""
    if not isinstance(rows, DataFile):
        return isinstance(rows, FrameRows)
    return bool(rows.label) and rows.origin is None and not rows.is_versioned


def is_partition(rows: Rows, name: str) -> bool:
    """Whether a column comes from the folder names of a file; a column of the file itself comes first."""
    return name in rows.partitions and name not in rows.schema.names


def partition_column(rows: Rows, name: str) -> str:
    """Return the name that a partition's column has in a relation of rows: none of the files, and none of another."""
    in_lower_case = {each.lower() for each in rows.schema.names}
    column = f"folder {list(rows.partitions).index(name)}: {name}"
    while column.lower() in in_lower_case:
        column = f"folder {column}"
    return column


def is_index(rows: Rows, name: str) -> bool:
    """Whether a level of the index of a frame, none of which is read, has a name."""
    return isinstance(rows, FrameRows) and name in rows.index


def columns_in_words(rows: Rows, wanted: str) -> str:
    """List the columns of rows, with the one nearest to a name that they lack."""
    names = [*rows.schema.names, *rows.partitions]
    in_any_case = [name for name in names if name.lower() == wanted.lower()]
    near = in_any_case or get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if is_index(rows, wanted):
        hint = f" {wanted!r} is in its index, which is not read: pass frame.reset_index()."
    shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return f"Its columns are: {shown}.{hint}" if names else f"It has no column.{hint}"


def elements_in_words(rows: Rows, wanted: str, name: str) -> str:
    """Say how elements of lists of structs become rows; empty where rows have no such list.

    Args:
        rows: The rows that lack a column.
        wanted: The name of the column; a list whose elements have a field of that name comes first.
        name: Name of the input.
    """
    fields_of = {
        field.name: [each.name for each in field.type.value_type]
        for field in rows.schema
        if str(field.type).startswith(("list<", "large_list<", "fixed_size_list<"))
        and str(field.type.value_type).startswith("struct<")
    }
    if not fields_of:
        return tags_in_words(rows, name)
    column = next((each for each, fields in fields_of.items() if wanted in fields), next(iter(fields_of)))
    value = json.dumps(column, ensure_ascii=False)
    fields = ", ".join(fields_of[column][:_MOST_NAMES])
    return (
        f" If each element of {column!r} ({fields}) is a row, say so: unnest = {value}, on the command line "
        f"--set '{name}.unnest={value}'."
    )


def tags_in_words(rows: Rows, name: str) -> str:
    """Say how lists of tokens with a tag each are read as mentions; empty where rows have no such lists."""
    tags = lists_of_tags(rows)
    if not tags or not any(field.name.lower() in TOKENS for field in rows.schema):
        return ""
    return f" Tags of tokens make mentions: tags = {json.dumps(tags[0])} beside the path of {name}."


def lists_of_tags(rows: Rows) -> list[str]:
    """The columns of a file that may be lists of tags: texts, or numbers that name classes."""
    lists = (field for field in rows.schema if str(field.type).startswith(("list<", "large_list<")))
    kinds = {field.name: str(field.type.value_type) for field in lists if field.name.lower() not in TOKENS}
    suitable = ("string", "large_string", "string_view", "int")
    return [name for name, kind in kinds.items() if kind.startswith(suitable) and isinstance(rows, DataFile)]


def mapping_of_expression(rows: Rows, wanted: str, name: str = "") -> str:
    """Say how an expression that stands where the name of a column belongs is mapped; empty if it is none of columns.

    Args:
        rows: The rows that lack a column of that name.
        wanted: The text in the place of the name.
        name: What the text was mapped to; empty: nothing, it needs a name.
    """
    if not is_expression_of(wanted, [*rows.schema.names, *rows.partitions]):
        return ""
    mapping = f"columns = {{ {name or 'my_column'} = {{ sql = {json.dumps(wanted, ensure_ascii=False)} }} }}"
    return f"An expression is written {mapping}." if name else f"Give the expression a name: {mapping}."
