"""How every public function works: its keywords are the config of one stage, which is run in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.api.result import Result
from pipeline.errors import ConfigError
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import evaluate_in_memory
from pipeline.sources.frames import is_frame
from pipeline.stages import find_stage

_PLAIN = (str, int, float, tuple)


def evaluate(kind: str, keywords: Mapping[str, Any], resources: Mapping[str, Any] | None) -> Result:
    """Run one stage on files and frames; nothing is written but temporary data.

    Args:
        kind: Its task.
        keywords: Its parameters. None stands for the default, and what is the default is left out, so that a config
            says the same whether a default is written or not.
        resources: Limits, as in the config; None: none are set.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    entry = find_stage(kind)
    if entry is None:
        message = f"no stage is called {kind!r}"
        raise ConfigError(message)
    stage = entry.load()
    inputs = {contract.name: keywords.get(contract.name) for contract in stage.inputs}
    _check_inputs(kind, inputs)
    fields = stage.parameters.model_fields
    written = inputs | {name: _as_written(value) for name, value in keywords.items() if name not in inputs}
    chosen = {
        name: written[name]
        for name, value in keywords.items()
        if value is not None and not (isinstance(value, _PLAIN) and value == fields[name].default)
    }
    document = {"stages": [{"kind": kind, **chosen}]} | ({} if resources is None else {"resources": dict(resources)})
    config = replace(parse_config(document, base=Path.cwd(), origin=f"thresher.{kind}"), output=Path())
    evaluation, tables = evaluate_in_memory(config)
    return Result(config, evaluation, tables)


def _check_inputs(kind: str, inputs: Mapping[str, Any]) -> None:
    """Refuse what cannot be an input; the words are those of Python, where a config has words of its own."""
    for name, value in inputs.items():
        rows = value.get("path") if isinstance(value, Mapping) else value
        is_named = isinstance(value, Mapping) and "path" not in value
        is_input = value is None or isinstance(rows, str | os.PathLike | list | tuple) or is_frame(rows)
        if is_named or not is_input:
            what = f"a dictionary without path: {', '.join(map(repr, value))}" if is_named else _type_in_words(rows)
            message = f"thresher.{kind}: {name} is {what}, which is no input"
            remedy = 'Pass a path, a frame, a list of them, or {"path": …, "columns": …}; pl.DataFrame makes a frame.'
            raise ConfigError(message, remedy=remedy)
        for number, each in enumerate(rows if isinstance(rows, list | tuple) else (), start=1):
            if not isinstance(each, str | os.PathLike) and not is_frame(each):
                message = f"thresher.{kind}: {name} has {_type_in_words(each)} at place {number:,}, which is no input"
                remedy = "Pass a list of paths and frames; pl.DataFrame makes a frame of dictionaries."
                raise ConfigError(message, remedy=remedy)


def _type_in_words(value: object) -> str:
    """Its type, with an article: `an int`, `a numpy.ndarray`."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _as_written(value: Any) -> Any:  # noqa: ANN401 - any value of a parameter
    """A value as a config can hold it: arrays, series and ranges are lists, numbers of NumPy are numbers."""
    if isinstance(value, Mapping):
        return {key: _as_written(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_written(item) for item in value]
    to_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return value if to_list is None else to_list()
