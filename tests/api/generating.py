"""The types of the public functions, one for each stage, made from the parameter classes.

    python tests/api/generating.py

writes them to `thresher/__init__.pyi`, where a test compares them with what this makes.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from pipeline.api.functions import docstring, is_required, keywords_of
from pipeline.sources.inputs import Input
from pipeline.stages import STAGES
from pipeline.stages.change_points.contract import MarginSides

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from pipeline.stages import StageEntry

STUB = Path(__file__).parents[2] / "thresher" / "__init__.pyi"
IMPORTS = """
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pipeline.api.functions import Result as Result
from pipeline.api.functions import InputRows
from pipeline.api.running import open_results as open_results
from pipeline.api.running import plan_sample as plan_sample
from pipeline.api.running import run as run
from pipeline.api.running import sample as sample
from pipeline.base.errors import ThresherError as ThresherError
from pipeline.report.planned import Planned as Planned
from pipeline.runs.stage_results import Run as Run

__version__: str
"""


def stub() -> str:
    """The types of the public face, formatted."""
    head = '"""Made from the parameter classes by tests/api/generating.py."""\n'
    return _formatted(head + IMPORTS + "".join(_source_of(entry) for entry in STAGES), STUB)


def _source_of(entry: StageEntry) -> str:
    fields = keywords_of(entry)
    arguments = "".join(f"    {_annotated(entry.kind, name, field)},\n" for name, field in fields.items())
    help_text = textwrap.indent(f'"""{docstring(entry)}"""', "    ")
    return f"\n\ndef {entry.kind}(\n    *,\n{arguments}) -> Result:\n{help_text}\n"


def _annotated(kind: str, name: str, field: FieldInfo | None) -> str:
    """A keyword with its annotation and its default."""
    if field is None:
        return f"{name}: Mapping[str, Any] | None = None"
    annotation = (
        "str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]]"
        if name == "by"
        else _text(field.annotation)
    )
    if is_required(name, field):
        return f"{name}: {annotation}"
    shown = _shown(kind if name == "name" else field.default)
    if name == "by" or shown is None:
        annotation += "" if annotation.endswith("None") else " | None"
        return f"{name}: {annotation} = None"
    return f"{name}: {annotation} = {shown}"


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


def _formatted(text: str, path: Path) -> str:
    for task in (["check", "--select", "I", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *task, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
