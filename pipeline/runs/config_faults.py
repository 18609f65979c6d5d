"""What is wrong with a config, in terms of TOML: every fault with its key, what is expected, and an example."""

from __future__ import annotations

import json
import re
import tomllib
import types
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ..queries.load import resource_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Keys = tuple[str | int, ...]
LONGEST_VALUE, LONGEST_EXAMPLE, MOST_KEYS = 60, 100, 3
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_ONE = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a path in quotes",
}
_SEVERAL = {str: "texts in quotes", int: "whole numbers", float: "numbers", bool: "true or false", Path: "paths"}
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_SETTING = re.compile(r"^#?(?P<key>[a-z_]+) = ")


def explain(error: ValidationError, model: type[BaseModel], values: Mapping[str, Any], starter: str) -> list[str]:
    """List the faults of a table, in the order of its keys, each once.

    Args:
        error: What pydantic found.
        model: The class of the table.
        values: The table.
        starter: Name of the starter config that has examples of its keys.
    """
    faults = [_Fault(each, model, values, starter) for each in error.errors(include_url=False)]
    return list(dict.fromkeys(fault.text() for fault in _one_branch_each(faults)))


def near(name: str, names: Iterable[str]) -> str:
    """Return the nearest known name as a hint, if any is near."""
    matches = get_close_matches(name, list(names), n=1)
    return f". Did you mean `{matches[0]}`?" if matches else ""


class _Fault:
    """A fault, located in the table as it was written, without pydantic's names of alternatives.

    Attributes:
        keys: Keys and indexes that lead to the faulty value, or to the table that lacks a key.
        site: Number of keys in front of an alternative among types; None if there is no alternative.
        branch: The alternative.
        value: The faulty value.
    """

    def __init__(self, details: ErrorDetails, model: type[BaseModel], values: Mapping[str, Any], starter: str) -> None:
        self.details, self.model, self.starter = details, model, starter
        self.kind = details["type"]
        self.site: int | None = None
        self.branch = ""
        keys: list[str | int] = []
        value: Any = values
        *path, last = details["loc"] or ("",)
        for key in path if self.kind == "missing" else details["loc"]:
            if _holds(value, key):
                value = value[key]
                keys.append(key)
            elif self.site is None:
                self.site, self.branch = len(keys), str(key)
        self.value = value
        self.keys: Keys = (*keys, last) if self.kind == "missing" and isinstance(value, dict) else (*keys,)

    @property
    def is_inside(self) -> bool:
        """Whether the value is of the right kind for its alternative, and something in it is wrong."""
        return len(self.keys) > (self.site or 0) or self.kind in _BOUNDS or self.kind == "value_error"

    def text(self) -> str:
        """Return the fault as one sentence that starts with its key."""
        key = ".".join(map(str, self.keys))
        if self.kind == "extra_forbidden":
            return f"unknown key `{key}`{near(str(self.keys[-1]), _known_keys(self.model, self.keys[:-1]))}"
        if self.kind == "missing":
            return f"`{key}` is missing{self._example()}"
        words = self._words()
        return f"{key}: {words}" if key else words

    def _words(self) -> str:
        if self.kind in {"value_error", "assertion_error"}:
            return str(self.details["ctx"]["error"])
        if self.kind in _BOUNDS:
            name, words = _BOUNDS[self.kind]
            bound = self.details["ctx"][name]
            return f"{toml(self.value)} must be {words} {bound:.12g}"
        expected = _expected(_annotations(self.model, self.keys))
        return f"{toml(self.value)} is not allowed: write {expected}{self._example()}"

    def _example(self) -> str:
        names = [name for name in self.keys if isinstance(name, str)]
        lines = examples(self.starter)
        line = next((lines[name] for name in (*names[-1:], *names[:1]) if name in lines), "")
        return f", for example {line}" if 0 < len(line) <= LONGEST_EXAMPLE else ""


def _holds(value: object, key: str | int) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list | tuple) and isinstance(key, int) and key < len(value)


def _one_branch_each(faults: list[_Fault]) -> Iterator[_Fault]:
    """If a value may have one of several types, keep the faults of the type that it comes nearest to, or one fault."""
    alternatives: dict[Keys, dict[str, list[_Fault]]] = {}
    for fault in faults:
        if fault.site is not None:
            alternatives.setdefault(fault.keys[: fault.site], {}).setdefault(fault.branch, []).append(fault)
    chosen = {id(fault) for branches in alternatives.values() for fault in _nearest(branches)}
    for fault in faults:
        if fault.site is None or id(fault) in chosen:
            yield fault


def _nearest(branches: dict[str, list[_Fault]]) -> list[_Fault]:
    inside = [faults for faults in branches.values() if any(fault.is_inside for fault in faults)]
    return min(inside, key=len) if inside else next(iter(branches.values()))[:1]


@cache
def examples(starter: str) -> dict[str, str]:
    """Return the lines of a starter config by key, without comments; a starter shows every key of its stage."""
    path = resource_folder("configs") / f"{starter}.toml"
    lines = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if match := _SETTING.match(line):
            setting = re.split(r"\s{2,}#", line.removeprefix("#"))[0].strip()
            try:
                tomllib.loads(setting)
            except tomllib.TOMLDecodeError:  # a value of several lines, or a sentence
                continue
            lines[match["key"]] = setting
    return lines


def toml(value: object) -> str:
    """Write a value as TOML, cut off if it is long or nested deeply."""
    text = _toml(value, LONGEST_VALUE)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def unwritable(table: Mapping[str, Any]) -> str | None:
    """Describe the first key or text with a character that no path, column or query can contain, if any."""
    pending: list[tuple[str, object]] = [("", table)]
    seen = set()  # a table made in Python may hold itself
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            for name, item in value.items() if isinstance(value, dict) else enumerate(value):
                pending += [(f"{key}.{name}".removeprefix("."), text) for text in (name, item)]
        elif isinstance(value, str) and _UNWRITABLE.search(value):
            return f"{key!a} holds NUL or half a surrogate pair, which no file can have: {toml(ascii(value))}"
    return None


def _toml(value: object, levels: int) -> str:
    if isinstance(value, dict | list | tuple) and not levels:
        return "…"
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(item, levels - 1)}" for key, item in value.items())
        return f"{{ {inner} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item, levels - 1) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False)
    return str(value)


def _alternatives(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Yield the types that an annotation allows, without None and without metadata."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in {Union, types.UnionType}:
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    elif annotation not in {None, types.NoneType}:
        yield annotation


def _annotations(model: type[BaseModel], keys: Keys) -> list[Any]:
    """Return the types that are allowed at some keys; empty if none is."""
    annotations: list[Any] = [model]
    for key in keys:
        annotations = [part for each in annotations for inner in _inside(each, key) for part in _alternatives(inner)]
    return annotations


def _inside(annotation: Any, key: str | int) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        if key in fields:
            yield fields[str(key)].annotation
        elif isinstance(key, int):  # a list that stands for a table with one key
            for field in fields.values():
                for alternative in _alternatives(field.annotation):
                    yield from _inside(alternative, key) if get_origin(alternative) in {tuple, list} else ()
    elif get_origin(annotation) in {tuple, list} and isinstance(key, int):
        yield get_args(annotation)[0]
    elif get_origin(annotation) is dict:
        yield get_args(annotation)[1]


def _expected(annotations: list[Any]) -> str:
    words = list(dict.fromkeys(_form(each, _ONE) for each in annotations)) or ["something else"]
    return " or ".join(words)


def _form(annotation: Any, names: Mapping[Any, str]) -> str:  # noqa: ANN401 - any annotation
    """Say how one value, or several values, of a type are written in TOML."""
    one = names is _ONE
    if annotation in names:
        return names[annotation]
    if get_origin(annotation) is Literal:
        *first, last = (toml(value) for value in get_args(annotation))
        return f"{', '.join(first)} or {last}" if first else last
    if get_origin(annotation) in {tuple, list}:
        inner = " or ".join(_form(part, _SEVERAL) for part in _alternatives(get_args(annotation)[0]))
        return f"{'a list' if one else 'lists'} of {inner}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _table(annotation, one=one)
    return "a table" if one else "tables"


def _table(model: type[BaseModel], *, one: bool) -> str:
    forms: str | None = getattr(model, "forms", None)
    if forms:
        return forms
    fields = model.model_fields
    keys = [name for name, field in fields.items() if field.is_required()] or list(fields)[:1]
    inner = ", ".join(f"{name} = …" for name in keys[:MOST_KEYS])
    return f"{'a table' if one else 'tables'} {{ {inner} }}"


def _known_keys(model: type[BaseModel], keys: Keys) -> list[str]:
    """Return the keys of the tables that are allowed at some keys."""
    tables = [each for each in _annotations(model, keys) if isinstance(each, type) and issubclass(each, BaseModel)]
    return [name for table in tables for name in _names(table)]


def _names(table: type[BaseModel]) -> Iterable[str]:
    keys = getattr(table, "keys", None)  # a stage leaves out those that mean nothing to it
    return keys() if callable(keys) else table.model_fields
