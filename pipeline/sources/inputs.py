"""What the config says about an input, and what a stage expects of it."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self
from zoneinfo import available_timezones

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic import Field as Constraint

from ..records import dataclass
from .frames import Frame, is_frame
from .predicates import MARKED, expanded

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    mapped_only: bool = False
    as_written: bool = False
    truth_of: str = ""
    given_by: str = ""


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
        """The same input without the fields that other inputs of the stage bring."""
        fields = tuple(field for field in self.fields if field.given_by not in others)
        return self if len(fields) == len(self.fields) else replace(self, fields=fields)
