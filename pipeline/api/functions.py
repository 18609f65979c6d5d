"""The public function of each stage: its keywords are the config of that stage, which is run in memory.

A function is made from the parameter class of its stage when it is first asked for; for editors and type checkers
tests/api/generating.py writes all of them into thresher/__init__.pyi.
"""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import ConfigError, ThresherError
from ..runs.config import parse_config
from ..runs.evaluation import evaluate_in_memory
from ..sources.frames import is_frame
from ..sources.inputs import Input
from ..stages import find_stage
from .python_words import in_python
from .result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic.fields import FieldInfo

    from ..stages import StageEntry
    from ..stages.parameters import StageParameters

_PLAIN = (str, int, float, tuple)
_WIDTH = 108
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_RESOURCES = "Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`."


@cache
def stage_function(kind: str) -> Callable[..., Result]:
    """Return the public function of a stage, whose signature and help are made from the parameter class."""
    entry = find_stage(kind)
    if entry is None:
        message = f"no stage is called {kind!r}"
        raise ConfigError(message)
    keywords = keywords_of(entry)

    def function(*values: object, **given: Any) -> Result:  # noqa: ANN401 - any value of a parameter
        # refuse a call as Python would, with what was meant
        first = next(iter(keywords))
        if values:
            message = f"{kind}() takes every value by its name: {kind}({first}=…, by=…)"
            raise TypeError(message)
        for name in given:
            if name not in keywords:
                close = get_close_matches(name, keywords, n=1)
                meant = f"did you mean {close[0]}?" if close else f"it takes {', '.join(keywords)}"
                message = f"{kind}() has no keyword {name}; {meant}"
                raise TypeError(message)
        missing = [name for name, field in keywords.items() if is_required(name, field) and name not in given]
        if missing:
            message = f"{kind}() needs {' and '.join(f'{name}=…' for name in missing)}"
            raise TypeError(message)
        return _evaluate(entry, given)

    function.__name__ = function.__qualname__ = kind
    function.__module__ = "thresher"
    function.__doc__ = docstring(entry)
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # which inspect and editors look for
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_default(field))
            for name, field in keywords.items()
        ],
        return_annotation=Result,
    )
    return function


def keywords_of(entry: StageEntry) -> dict[str, FieldInfo | None]:
    """Return the parameters of a stage in the order of its function, required ones first; None of `resources`."""
    stage = entry.load()
    fields = {
        name: field
        for name, field in stage.parameters.model_fields.items()
        if name != "kind" and name not in stage.parameters.inapplicable
    }
    inputs = [contract.name for contract in stage.inputs]
    order = [*inputs, *(name for name in fields if name not in {*inputs, "name"}), "name"]
    order.sort(key=lambda name: not is_required(name, fields[name]))
    return {name: fields[name] for name in order} | {"resources": None}


def is_required(name: str, field: FieldInfo | None) -> bool:
    """Say whether a function cannot be called without a keyword."""
    return field is not None and field.is_required() and name != "name"


def docstring(entry: StageEntry) -> str:
    """Return the help of the function of a stage, from the words of its parameter class."""
    stage = entry.load()
    meanings = {contract.name: contract.meaning for contract in stage.inputs} | dict(_meanings(stage.parameters))
    lines = [entry.summary, "", "Args:"]
    for name in keywords_of(entry):
        meaning = _RESOURCES if name == "resources" else meanings.get(name, "")
        text = f"{name}: {meaning[:1].upper()}{meaning[1:]}"
        lines += textwrap.wrap(
            text if text.endswith(".") else f"{text}.",
            _WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
    lines += ["", "Returns:", "    Its result tables, as Polars frames.", "", "Raises:"]
    return "\n".join([*lines, "    ThresherError: its class and its `code` say what went wrong.", ""])


def _meanings(parameters: type[StageParameters]) -> Iterator[tuple[str, str]]:
    """Yield what the docstrings of a class, and of those that it derives from, say of their attributes."""
    for parent in reversed(parameters.__mro__):
        text = inspect.cleandoc(parent.__doc__ or "")  # Python 3.13 leaves indentation out itself
        _, _, attributes = text.partition("Attributes:\n")
        for name, meaning in _ATTRIBUTE.findall(attributes):
            yield name, " ".join(meaning.split())


def _default(field: FieldInfo | None) -> Any:  # noqa: ANN401 - any default
    if field is None:
        return None
    return inspect.Parameter.empty if field.is_required() else field.default


def _evaluate(entry: StageEntry, given: Mapping[str, Any]) -> Result:
    """Run one stage on files and frames; nothing is written but temporary data.

    Args:
        entry: The stage.
        given: Its parameters. None stands for the default, and what is the default is left out, so that a config
            says the same whether a default is written or not.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    stage = entry.load()
    names = {contract.name for contract in stage.inputs}
    inputs = {name: as_rows(entry.kind, name, value) for name, value in given.items() if name in names}
    fields = stage.parameters.model_fields
    chosen = {
        name: inputs[name] if name in inputs else _as_written(value)
        for name, value in given.items()
        if name != "resources"
        and value is not None
        and not (isinstance(value, _PLAIN) and value == fields[name].default)
    }
    limits = given.get("resources")
    document = {"stages": [{"kind": entry.kind, **chosen}]} | ({} if limits is None else {"resources": dict(limits)})
    try:
        config = replace(parse_config(document, base=Path.cwd(), origin=f"thresher.{entry.kind}"), output=Path())
        evaluation = evaluate_in_memory(config)
    except ThresherError as error:
        for remedy in filter(None, {fault.remedy for fault in error.faults}):  # of several, their message holds them
            error.message = error.message.replace(remedy, in_python(remedy))
        error.remedy = error.remedy and in_python(error.remedy)
        raise
    return Result(config, evaluation)


def as_rows(kind: str, name: str, value: Any) -> Any:  # noqa: ANN401 - any value
    """Return an input as a config can hold it: arrays by name are a frame.

    Raises:
        ConfigError: it cannot be an input; the words are those of Python, where a config has words of its own.
    """
    if isinstance(value, Mapping) and "path" in value and set(value) <= set(Input.model_fields):
        return {**value, "path": as_rows(kind, name, value["path"])}
    if isinstance(value, Mapping) and isinstance(value.get("database"), str | os.PathLike):
        return dict(value)
    if (
        isinstance(value, Mapping)
        and value
        and all(
            (isinstance(column, list | tuple | pl.Series) or getattr(column, "ndim", 0) > 0)
            for column in value.values()
        )
    ):
        return _frame_of(kind, name, value)
    if (fields := getattr(getattr(value, "dtype", None), "names", None)) is not None:
        return _frame_of(kind, name, {field: value[field] for field in fields})
    if value is None or isinstance(value, str | os.PathLike) or is_frame(value):
        return value
    if not isinstance(value, list | tuple):
        is_named = isinstance(value, Mapping)
        what = f"a dictionary without path: {', '.join(map(repr, value))}" if is_named else _type_in_words(value)
        message = f"thresher.{kind}: {name} is {what}, which is no input"
        remedy = 'Pass a path, a frame, arrays by name, a list of them, or {"path": …, "columns": …}.'
        raise ConfigError(message, remedy=remedy)
    for number, each in enumerate(value, start=1):
        if not isinstance(each, str | os.PathLike) and not is_frame(each):
            message = f"thresher.{kind}: {name} has {_type_in_words(each)} at place {number:,}, which is no input"
            remedy = "Pass a list of paths and frames; pl.DataFrame makes a frame of dictionaries."
            raise ConfigError(message, remedy=remedy)
    return value


def _frame_of(kind: str, name: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Make a frame of arrays by name.

    Raises:
        ConfigError: they differ in length, or one has values that no column can hold.
    """
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{column} {length:,}" for column, length in lengths.items())
        message = f"thresher.{kind}: the columns of {name} differ in length: {told}"
        raise ConfigError(message, remedy="Pass arrays with one value for each row.")
    try:
        return pl.DataFrame({column: _series(column, values) for column, values in columns.items()})
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        message = f"thresher.{kind}: {name} cannot be made a frame: {str(error).splitlines()[0]}"
        raise ConfigError(message, remedy="Pass arrays of numbers, texts, times or truth values.") from None


def _series(name: str, values: Any) -> pl.Series:  # noqa: ANN401 - any column
    """Return a column; in a series of pandas NaN stands for no value, as in its frames."""
    is_pandas = type(values).__module__.partition(".")[0] == "pandas"
    return pl.Series(name, pl.from_pandas(values) if is_pandas else values)


def _type_in_words(value: object) -> str:
    """Return its type, with an article: `an int`, `a numpy.ndarray`."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _as_written(value: Any) -> Any:  # noqa: ANN401 - any value of a parameter
    """Return a value as a config can hold it: arrays, series and ranges are lists, numbers of NumPy are numbers."""
    if isinstance(value, Mapping):
        return {key: _as_written(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_written(item) for item in value]
    to_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return value if to_list is None else to_list()
