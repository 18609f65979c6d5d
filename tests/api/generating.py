"""The source of the public functions, one for each stage, made from the parameter classes.

    python tests/api/generating.py

writes them to `pipeline/api/`, where a test compares them with what this makes.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from pipeline.sources.inputs import Input
from pipeline.stages import STAGES
from pipeline.stages.change_points.margins import MarginSides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from pipeline.stages import StageEntry
    from pipeline.stages.parameters import StageParameters

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "pipeline" / "api"
STUB = ROOT / "thresher" / "__init__.pyi"
LEFT_OUT = {"kind"}
WIDTH = 112
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)

HEADER = '''"""`thresher.{kind}`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows

'''


def source_of(entry: StageEntry) -> str:
    """The module with the function of a stage, formatted."""
    stage = entry.load()
    fields = {
        name: field
        for name, field in stage.parameters.model_fields.items()
        if name not in LEFT_OUT and name not in stage.parameters.inapplicable
    }
    inputs = [contract.name for contract in stage.inputs]
    order = [*inputs, *(name for name in fields if name not in {*inputs, "name"}), "name"]
    order.sort(key=lambda name: not _is_required(name, fields[name]))
    arguments = "".join(f"    {name}: {_annotated(entry.kind, name, fields[name])},\n" for name in order)
    passed = "".join(f'            "{name}": {name},\n' for name in order)
    text = (
        HEADER.format(kind=entry.kind)
        + f"\ndef {entry.kind}(\n    *,\n{arguments}"
        + "    resources: Mapping[str, Any] | None = None,\n"
        + f") -> Result:\n{_docstring(entry, stage.parameters, order)}"
        + f'    return evaluate(\n        "{entry.kind}",\n        {{\n{passed}        }},\n        resources,\n    )\n'
    )
    return _formatted(text, FOLDER / f"{entry.kind}.py")


def stub() -> str:
    """The types of the public face, which is loaded when it is used."""
    homes = {entry.kind: f"api.{entry.kind}" for entry in STAGES}
    homes |= dict.fromkeys(("open_results", "plan_sample", "run"), "api.running")
    homes |= {"Planned": "api.planned", "Result": "api.result", "Run": "runs.run", "ThresherError": "errors"}
    by_module = sorted(homes.items(), key=lambda item: (item[1], item[0]))
    imports = "".join(f"from pipeline.{module} import {name} as {name}\n" for name, module in by_module)
    text = f"{imports}\n__version__: str\n"
    return _formatted(text, STUB)


def _is_required(name: str, field: FieldInfo) -> bool:
    return field.is_required() and name != "name"


def _annotated(kind: str, name: str, field: FieldInfo) -> str:
    """The annotation of a keyword, with its default."""
    annotation = "Sequence[str] | Sequence[Sequence[str]]" if name == "by" else _text(field.annotation)
    if _is_required(name, field):
        return annotation
    default = kind if name == "name" else field.default
    shown = _shown(default)
    if name == "by" or shown is None:
        annotation += "" if annotation.endswith("None") else " | None"
        return f"{annotation} = None"
    return f"{annotation} = {shown}"


def _text(annotation: Any) -> str:  # noqa: ANN401 - any annotation
    """An annotation as it is written, with what a config can hold in place of our own classes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return "None" if annotation is type(None) else _class_text(annotation)
    if origin is Literal:
        return f"Literal[{', '.join(map(_quoted, arguments))}]"
    if origin in {Annotated, tuple}:
        inner = _text(arguments[0])
        return f"Sequence[{inner}]" if origin is tuple else inner
    if origin is dict:
        return f"Mapping[{', '.join(map(_text, arguments))}]"
    others = (argument for argument in arguments if argument is not int or float not in arguments)  # a float takes both
    return " | ".join(dict.fromkeys(_text(argument) for argument in others))


def _class_text(kind: type) -> str:
    if issubclass(kind, Input):
        return "InputRows"
    if issubclass(kind, MarginSides):
        return "float | str | Mapping[str, Any]"
    return "Mapping[str, Any]" if issubclass(kind, BaseModel) else kind.__name__


def _shown(default: Any) -> str | None:  # noqa: ANN401 - any default
    """A default as it is written; None if it is an object of ours, which nobody has to write."""
    if isinstance(default, str):
        return _quoted(default)
    if default is None or isinstance(default, bool | int | float):
        return repr(default)
    if isinstance(default, tuple) and all(isinstance(value, str | int | float) for value in default):
        values = "".join(f"{_shown(value)}, " for value in default)
        return f"({values})" if default else "()"
    return None


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _docstring(entry: StageEntry, parameters: type[StageParameters], order: list[str]) -> str:
    meanings = dict(_meanings(parameters))
    contracts = {contract.name: contract.meaning for contract in entry.load().inputs}
    lines = [f'    """{entry.summary}', "", "    Args:"]
    for name in [*order, "resources"]:
        meaning = meanings.get(name) or contracts.get(name) or ""
        if name == "resources":
            meaning = "Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`."
        text = f"{name}: {meaning[:1].upper()}{meaning[1:]}"
        lines += textwrap.wrap(
            text if text.endswith(".") else f"{text}.",
            WIDTH,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
    lines += ["", "    Returns:", "        Its result tables, as Polars frames.", "", "    Raises:"]
    lines += ["        ThresherError: its class and its `code` say what went wrong.", '    """', ""]
    return "\n".join(lines)


def _meanings(parameters: type[StageParameters]) -> Iterator[tuple[str, str]]:
    """What the docstrings of a class and of those that it derives from say of their attributes."""
    for parent in reversed(parameters.__mro__):
        text = inspect.cleandoc(parent.__doc__ or "")  # Python 3.13 leaves indentation out itself
        _, _, attributes = text.partition("Attributes:\n")
        for name, meaning in _ATTRIBUTE.findall(attributes):
            yield name, " ".join(meaning.split())


def _formatted(text: str, path: Path) -> str:
    for task in (["check", "--select", "I", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *task, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for stage_entry in STAGES:
        (FOLDER / f"{stage_entry.kind}.py").write_text(source_of(stage_entry), encoding="utf-8")
    STUB.write_text(stub(), encoding="utf-8")
