"""What the config says of an input, and what a stage expects of it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

Kind = Literal["number", "integer", "boolean", "key", "instant", "position", "any"]


class Input(BaseModel):
    """Where an input lies and how its columns are called there.

    Attributes:
        path: Files, globs, folders; at least one.
        columns: Our name of a column → the name it has in the files.
        where: An SQL predicate on the columns of the files; rows that do not satisfy it are left out.
        timezone: Zone in which timestamps without a zone are meant, for example `Europe/Amsterdam`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: tuple[str, ...]
    columns: dict[str, str] = {}
    where: str | None = None
    timezone: str | None = None

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        known = available_timezones()  # empty where the system has no zone data: then the engine decides
        if value is not None and known and value not in known:
            near = get_close_matches(value, sorted(known), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ', write for example "Europe/Amsterdam"'
            message = f"{value!r} is no time zone{hint}"
            raise ValueError(message)
        return value

    @field_validator("columns")
    @classmethod
    def _named(cls, value: dict[str, str]) -> dict[str, str]:
        if "" in value or "" in value.values():
            message = "a column needs a name, on both sides of ="
            raise ValueError(message)
        return value

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: object) -> object:
        return {"path": value} if isinstance(value, str | list | tuple) else value

    @field_validator("path", mode="before")
    @classmethod
    def _one_path(cls, value: object) -> object:
        paths = (value,) if isinstance(value, str) else value
        if isinstance(paths, list | tuple) and (not paths or "" in paths):
            message = "an input needs at least one path, and none may be empty"
            raise ValueError(message)
        return paths


@dataclass(frozen=True)
class Field:
    """One column that a stage can use of an input.

    Attributes:
        name: Our name.
        kind: The types it accepts: `number` is compared as DOUBLE, `key` identifies, `instant` is a point in time, and
            `position` an integer, a number or a point in time, read as what it is.
        meaning: One phrase for help and error messages, with the unit.
        required: Whether the stage cannot run without it.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class InputContract:
    """One input of a stage.

    Attributes:
        name: Key in the config, option on the command line, logical relation in the SQL.
        fields: The columns the stage knows; others may serve as grouping columns.
        meaning: One phrase for help.
        required: Whether the stage cannot run without it.
    """

    name: str
    fields: tuple[Field, ...]
    meaning: str
    required: bool = False

    def field(self, name: str) -> Field | None:
        """The known column of that name, if any."""
        return next((field for field in self.fields if field.name == name), None)
