"""What a config says, as Python says it: `cluster = "a"` becomes `cluster="a"`."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ..sources.inputs import Input

_SETTING = re.compile(r"(?<![\w.'\"])([a-z_]\w+(?:\.\w+)*) = (?=[\[{'\"\d-]|true|false)|(?=\{ [a-z_]+ = )")
_LEFT_OPEN, _QUOTED = "…", '= "…"'  # what a message leaves to the reader, and how TOML can read it
_PATH = '{"path": …, '
_CLOSING = {"[": "]", "{": "}"}  # a text in quotes ends as it begins


def in_python(text: str) -> str:
    """Return a text in which what a config would say is written as keywords of a call.

    Args:
        text: A sentence that may hold settings, `key = value` with a value of TOML.
    """
    parts: list[str] = []
    done, of_input = 0, False
    for setting in _SETTING.finditer(text):
        if setting.start() < done:
            continue  # within the value of the one before
        value, end = _value(text, setting.end())
        if end == setting.end():
            continue
        between, written = text[done : setting.start()], _written(setting[1], value) if setting[1] else _shown(value)
        if of_input and between == ", " and setting[1] in Input.model_fields:
            parts[-1] = f"{parts[-1][:-1]}, {written.removeprefix(_PATH)}"
        else:
            parts += [between, written]
        done, of_input = end, written.startswith(_PATH)
    return "".join([*parts, text[done:]])


def _value(text: str, start: int) -> tuple[Any, int]:
    """Return the value of TOML that begins there, and where it ends: the shortest text that is one.

    Numbers and words go as far as they can.
    """
    line_end = text.find("\n", start) % (len(text) + 1)
    if text[start] not in "[{'\"":
        word = re.compile(r"true|false|-?\d+(?:\.\d+)?(?:e-?\d+)?").match(text, start)
        return (tomllib.loads(f"a = {word[0]}")["a"], word.end()) if word else (None, start)
    end = start + 1
    while end := text.find(_CLOSING.get(text[start], text[start]), end, line_end) + 1:
        try:
            return tomllib.loads(f"a = {text[start:end].replace(f'= {_LEFT_OPEN}', _QUOTED)}")["a"], end
        except tomllib.TOMLDecodeError:
            continue
    return None, start


def _written(key: str, value: object) -> str:
    """Return a setting as a keyword, and one of an input as a dictionary; so are the inner names of a dotted key."""
    name, *inner = key.split(".")
    for part in reversed(inner):
        value = {part: value}
    if name in Input.model_fields:
        return f'{_PATH}"{name}": {_shown(value)}}}'
    return f"{name}={_shown(value)}"


def _shown(value: object) -> str:
    """Return a value as Python writes it, texts in double quotes where they have none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if value == _LEFT_OPEN:
        return _LEFT_OPEN
    if isinstance(value, str) and '"' not in value and value.isprintable() and "\\" not in value:
        return f'"{value}"'
    return repr(value)
