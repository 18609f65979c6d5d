"""How every public function works: its keywords are the config of one stage, which is run in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import ConfigError
from pipeline.functions.result import Result
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import evaluate_in_memory
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    fields = entry.load().parameters.model_fields
    chosen = {
        name: value
        for name, value in keywords.items()
        if value is not None and not (isinstance(value, _PLAIN) and value == fields[name].default)
    }
    document = {"stages": [{"kind": kind, **chosen}]} | ({} if resources is None else {"resources": dict(resources)})
    config = replace(parse_config(document, base=Path.cwd(), origin=f"thresher.{kind}"), output=Path())
    evaluation, tables = evaluate_in_memory(config)
    return Result(config, evaluation, tables)
