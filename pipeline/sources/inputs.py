"""Inputs: as the config states them, as a stage expects them, and their rows, wherever they lie."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import field, replace
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, PlainSerializer, StringConstraints, field_validator, model_validator
from pydantic import Field as Constraint

from ..base.errors import ConfigError, DataError
from ..base.records import dataclass
from .frames import Frame, FrameRows, Unpartitioned, is_frame
from .parquet_files import DataFile
from .predicates import MARKED, expanded, is_expression_of
from .types import MeansSomethingElse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import pyarrow as pa

    from ..base.dialect import Description

    Looks = Callable[..., Description]  # of a kind, `table` or `parquet`, a target, and the `name` of the input


Format = Literal["parquet", "csv", "tsv", "jsonl", "arrow", "duckdb", "trec_run", "trec_qrels", "conll", "brat"]
DATABASES = (".duckdb", ".ddb")
WITHOUT_LISTS = frozenset({"csv", "tsv", "trec_run", "trec_qrels", "conll", "brat"})
Kind = Literal["number", "integer", "boolean", "key", "instant", "position", "any"]


class Expression(BaseModel):
    """A value computed from columns of the files.

    Attributes:
        sql: One SQL expression, with the functions that `where` may use.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    sql: str

    def values(self) -> Mapping[str, str]:
        """Return what references in `sql` stand for; nothing until they are bound."""
        return {}


class BoundExpression(Expression):
    """An expression with what its references stand for; its text stays as it is written."""

    bound_values: dict[str, str]

    def values(self) -> Mapping[str, str]:
        """Return what references in `sql` stand for."""
        return self.bound_values


Mapped = str | Literal[False] | Expression
PathOrFrame = str | Annotated[Frame, PlainSerializer(lambda frame: f"<{frame.kind}>", return_type=str)]


ColumnName = Annotated[str, StringConstraints(min_length=1)]


class Input(BaseModel):
    """Where an input is and what its columns are called there.

    Attributes:
        path: Files, globs, folders, addresses, or, from Python, frames; at least one, unless `table` is there.
        table: Name of a table or view of a DuckDB file, for which `database` may stand in the place of `path`; or of
            one that Spark knows, with the engine `spark`: `catalog.schema.table`.
        columns: Canonical name of a column → its name in the files, `{ sql = "…" }` to compute it, or false: the
            input has no such column, whatever its files hold.
        where: An SQL predicate on the columns of the files; rows that do not satisfy it are left out.
        timezone: Zone of the timestamps that have none, for example `Europe/Amsterdam`.
        format: Format of all its files; None: by their endings.
        delimiter: What separates the columns of CSV files; None: a comma, and a tab in TSV files.
        decimal: Decimal separator of the numbers in CSV and TSV files.
        null_values: Texts that mean NULL in CSV and TSV files, beside empty ones.
        tags: The column of CoNLL files that holds the tags, counted from 1; None: the only one that holds tags. Or the
            name of a column of lists of tags, one for each token of the row, whose mentions are the rows.
        unnest: A column of lists: each element is a row, whose fields are columns beside those of the row that has the
            list; several names: lists, and tables, within each other, from the outside; None: rows are read as they
            are.
        version: Version of a Delta Lake table, id of a snapshot of an Apache Iceberg table; None: the latest.
        timestamp: A point in time in ISO 8601: the version of such a table that was the latest then.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", arbitrary_types_allowed=True)
    forms: ClassVar[str] = "a path in quotes, a list of paths, or a table { path = …, columns = … }"

    path: tuple[PathOrFrame, ...] = ()
    table: Annotated[str, StringConstraints(min_length=1)] | None = None
    columns: dict[str, Mapped] = {}
    where: str | None = None
    timezone: str | None = None
    format: Format | None = None
    delimiter: Annotated[str, StringConstraints(min_length=1, max_length=1)] | None = None
    decimal: Literal[".", ","] = "."
    null_values: tuple[str, ...] = ()
    tags: Annotated[int, Constraint(strict=True, ge=1)] | ColumnName | None = None
    unnest: ColumnName | Annotated[tuple[ColumnName, ...], Constraint(min_length=1)] | None = None
    version: Annotated[int, Constraint(strict=True, ge=0)] | None = None
    timestamp: str | None = None

    @property
    def unnested(self) -> tuple[str, ...]:
        """The columns of lists whose elements are rows, from the outside; empty: rows are read as they are."""
        return (self.unnest,) if isinstance(self.unnest, str) else self.unnest or ()

    @property
    def of_table(self) -> str | None:
        """The key that only a table of a table format can have, if it is set."""
        return "version" if self.version is not None else "timestamp" if self.timestamp is not None else None

    @field_validator("timestamp", mode="before")
    @classmethod
    def _point_in_time(cls, value: object) -> object:
        if isinstance(value, str):
            try:
                datetime.fromisoformat(value)
            except ValueError as error:
                message = f'{value!r} is not a point in time: write for example "2026-11-01T00:00:00Z"'
                raise ValueError(message) from error
        return value.isoformat() if isinstance(value, date) else value  # TOML has dates and times of its own

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.table is not None and self.path and self.format != "duckdb":
            message = "path and table are two ways to name an input: leave one of them out"
            raise ValueError(message)
        if self.table is None and not self.path:
            message = "an input needs at least one path, and none may be empty"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _keys_of_texts(self) -> Self:
        """Refuse keys that say how lines of text are written where no file can be such text."""
        if self.format is None and not all(isinstance(path, str) for path in self.path):
            return self
        from .formats import ENDINGS, SEPARATED, format_of  # noqa: PLC0415 - which needs this class

        telling = tuple(ending for endings in ENDINGS.values() for ending in endings)
        if self.format is None and not all(str(path).lower().endswith(telling) for path in self.path):
            return self  # a folder, or files that are told apart when they are opened
        kinds = {format_of(PurePath(str(path)), self.format) for path in self.path}
        of_text = {"delimiter": self.delimiter, "null_values": self.null_values}
        if not self.unnested:  # texts in lists are read as those of CSV files
            of_text["decimal"] = self.decimal if self.decimal != "." else None
        for key in (key for key, value in of_text.items() if value and kinds and not kinds & SEPARATED):
            message = f"{key} has no effect on {' and '.join(sorted(kinds))}: it says how CSV and TSV files are written"
            raise ValueError(message)
        of_lists = isinstance(self.tags, str)
        if self.tags is not None and kinds and (kinds <= WITHOUT_LISTS if of_lists else "conll" not in kinds):
            words = "a column of lists" if of_lists else "the column of CoNLL files, by its number"
            message = f"tags has no effect on {' and '.join(sorted(kinds))}: it names {words}"
            raise ValueError(message)
        if of_lists and self.unnested:
            message = "tags and unnest are two ways to read lists: leave one of them out"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        if self.version is not None and self.timestamp is not None:
            message = "version and timestamp are two ways to name one version: leave one of them out"
            raise ValueError(message)
        if self.of_table and len(self.path) > 1:
            message = f"{self.of_table} is of one table, and path names {len(self.path)} places"
            raise ValueError(message)
        return self

    def values(self) -> Mapping[str, str]:
        """Return what references in `where` stand for; nothing until they are bound."""
        return {}

    def bound(self, values: Mapping[str, str]) -> Input:
        """Return the same input with its paths expanded, whose SQL knows the values of its references.

        Raises:
            ConfigError: a reference has no value.
        """
        texts = [text for text in (*self.path, self.table) if isinstance(text, str)]
        texts += [mapped.sql for mapped in self.columns.values() if isinstance(mapped, Expression)]
        if not any(MARKED in text for text in (*texts, self.where or "")):
            return self
        columns = {
            name: BoundExpression(sql=mapped.sql, bound_values=dict(values))
            if isinstance(mapped, Expression)
            else mapped
            for name, mapped in self.columns.items()
        }
        path = tuple(expanded(text, values) if isinstance(text, str) else text for text in self.path)
        table = None if self.table is None else expanded(self.table, values)
        changed = {"path": path, "table": table, "columns": columns, "bound_values": dict(values)}
        return BoundInput.model_construct(**(dict(self) | changed))

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        if value is None:
            return value
        zones = available_timezones()  # empty where the system has no zone data: then the engine decides
        if zones and value not in zones:
            near = get_close_matches(value, sorted(zones), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ', write for example "Europe/Amsterdam"'
            message = f"{value!r} is not a time zone{hint}"
            raise ValueError(message)
        return value

    @field_validator("columns", mode="before")
    @classmethod
    def _mapped_forms(cls, value: object) -> object:
        for name, mapped in value.items() if isinstance(value, dict) else ():
            if not name:
                message = "a column needs a name on both sides of ="
                raise ValueError(message)
            if isinstance(mapped, Expression) or mapped is False or (isinstance(mapped, str) and mapped):
                continue
            if not (isinstance(mapped, dict) and set(mapped) == {"sql"} and isinstance(mapped["sql"], str)):
                message = f'{name}: write the name of a column, {{ sql = "…" }} for an expression, or false for none'
                raise ValueError(message)
        return value

    @field_validator("columns")
    @classmethod
    def _one_role(cls, value: dict[str, Mapped]) -> dict[str, Mapped]:
        roles: dict[str, str] = {}
        for name, mapped in value.items():
            if isinstance(mapped, str) and (other := roles.setdefault(mapped, name)) != name:
                message = (
                    f"{other} and {name} are both mapped to the column {mapped!r}, and a column has one role; "
                    f'for a copy write {name} = {{ sql = "…" }} with its name as the expression'
                )
                raise ValueError(message)
        return value

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: object) -> object:
        if isinstance(value, dict) and "database" in value:
            others = {key: item for key, item in value.items() if key != "database"}
            if {"path", "format"} & set(others):
                message = "database names a DuckDB file: leave path and format out"
                raise ValueError(message)
            return {"path": value["database"], "format": "duckdb", **others}
        if (
            isinstance(value, dict)
            and isinstance(path := value.get("path"), str | os.PathLike)
            and str(path).endswith(DATABASES)
        ):
            return {"format": "duckdb", **value}
        return {"path": value} if isinstance(value, str | os.PathLike | list | tuple) or is_frame(value) else value

    @field_validator("path", mode="before")
    @classmethod
    def _one_path(cls, value: object) -> object:
        paths = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(path, str) and not path for path in paths):
            message = "an input needs at least one path, and none may be empty"
            raise ValueError(message)
        return tuple(_path_or_frame(path) for path in paths)


class BoundInput(Input):
    """An input with expanded paths, and with what the references in its SQL stand for."""

    bound_values: dict[str, str]

    def values(self) -> Mapping[str, str]:
        """Return what references in `where` stand for."""
        return self.bound_values


def _path_or_frame(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return Frame(value) if is_frame(value) else value


@dataclass(frozen=True)
class Field:
    """A column of an input that a stage can use.

    Attributes:
        name: Canonical name.
        kind: The types it accepts: `number` is compared as DOUBLE, `key` identifies, `instant` is a point in time, and
            `position` an integer, a number or a point in time, read as what it is.
        meaning: One phrase for help and error messages, with the unit.
        required: Whether the stage cannot run without it.
        mapped_only: Whether it is bound only if the config maps it: it would change every number, so the same name is
            not enough.
        as_written: Whether a number of single precision is the shortest decimal that is read as it: 1.1, which as
            DOUBLE would be 1.10000002.
        truth_of: The field of the same input that it is held against, which must not come from the same column.
        given_by: The other input of the stage that brings it, if there is one: this input then does not have it.
        named_beside: The other input of the stage beside which the same name is enough, although it is `mapped_only`.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    mapped_only: bool = False
    as_written: bool = False
    truth_of: str = ""
    given_by: str = ""
    named_beside: str = ""


@dataclass(frozen=True)
class InputContract:
    """One input of a stage.

    Attributes:
        name: Key in the config, option on the command line, logical relation in the SQL.
        fields: The columns the stage knows; others may serve as grouping columns.
        meaning: One phrase for help.
        required: Whether the stage cannot run without it.
        evaluated: Whether its rows can be evaluated even if all other inputs are empty.
        truth_of: The input whose rows are held against its own, which must not be the same rows; empty: none is.
    """

    name: str
    fields: tuple[Field, ...]
    meaning: str
    required: bool = False
    evaluated: bool = False
    truth_of: str = ""

    def field(self, name: str) -> Field | None:
        """Return the field of that name, if any."""
        return next((field for field in self.fields if field.name == name), None)

    def beside(self, others: Collection[str]) -> InputContract:
        """The same input without the fields that other inputs of the stage bring, and with those that they ask for."""
        fields = tuple(
            replace(field, mapped_only=False) if field.named_beside in others else field
            for field in self.fields
            if field.given_by not in others
        )
        return self if fields == self.fields else replace(self, fields=fields)


TABLE, PARQUET = "table", "parquet"
_OF_FILES = ("format", "delimiter", "null_values", "tags", "unnest")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a drive of Windows


@dataclass(frozen=True, eq=False)
class EngineRows(Unpartitioned):
    """The rows of a table, or at an address, as the engine described them: folders are columns like others to it.

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

    @property
    def name(self) -> str:
        """Its name in messages and tables."""
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


def look_at(spec: Input, address: str | None, look: Looks | None, *, name: str) -> EngineRows:
    """Return the rows of the Parquet files at an address, or of the table that an input names.

    Raises:
        ConfigError: the engine of the config knows no tables, or a key has no effect.
        ThresherError: the engine cannot describe it; by what it says.
    """
    if look is None:
        message = f"input {name}: table = {spec.table!r} names a table of Spark, and the engine is duckdb"
        raise ConfigError(message, remedy='Set engine = "spark", or give path = … with the files of the table.')
    shown = address or f"table = {spec.table!r}"
    if spec.of_table is not None:
        message = f"input {name}: {spec.of_table} has no effect on {shown}, which Spark reads as it is now"
        remedy = "Make a view of that version in Spark, SELECT * FROM … VERSION AS OF …, and name it with table = …"
        raise ConfigError(message, remedy=remedy)
    for key in _OF_FILES:
        if getattr(spec, key) and (key, spec.format) != ("format", PARQUET):
            message = f"input {name}: {key} has no effect on {shown}: Spark reads Parquet files and tables"
            raise ConfigError(message, remedy=f"Remove {key}; other formats are read where they are a table of Spark.")
    kind, target = (PARQUET, address) if address else (TABLE, str(spec.table))
    description = look(kind, target, name=name)
    schema = description.schema
    for number, column in enumerate(schema):
        if (words := description.unreadable.get(column.name)) is not None:
            schema = schema.set(number, column.with_type(MeansSomethingElse(words)))
    about = (description.rows, schema, description.has_places, dict(description.identity), tuple(description.files))
    return EngineRows(kind, target, *about, lambda: look(kind, target, name=name).identity)


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
TOKENS = frozenset({"tokens", "words"})  # what lists of them are called
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

    A list whose elements have a field by the name of the column that is lacking comes first.
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

    `name` is what the text was mapped to; empty: nothing, it needs a name.
    """
    if not is_expression_of(wanted, [*rows.schema.names, *rows.partitions]):
        return ""
    mapping = f"columns = {{ {name or 'my_column'} = {{ sql = {json.dumps(wanted, ensure_ascii=False)} }} }}"
    return f"An expression is written {mapping}." if name else f"Give the expression a name: {mapping}."
