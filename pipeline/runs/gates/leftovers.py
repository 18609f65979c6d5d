"""The files of gates that a run before has left, where the config of this one turns out to be wrong."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ThresherError
from ...safe_files import read_file
from ..config import Config
from ..variables import substituted
from .files import JSON, JUNIT, GateFiles


def remove_gate_files(config: object, overrides: Mapping[str, Any] | None, values: Mapping[str, Any] | None) -> None:
    """Remove the files of the gates that a config names which cannot be used, as far as their place can be told.

    Args:
        config: Path of a TOML file, a dictionary with the same content, or a checked config.
        overrides: Values by dotted key; they replace those of the config.
        values: Values of variables by name.
    """
    if isinstance(config, Config):
        config.gate_files.remove()
    else:
        _remove_named(config, overrides or {}, values or {})


def _remove_named(config: object, overrides: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    document, base = _document_and_base(config)
    for key in (JSON, JUNIT):
        written = overrides.get(key, document.get(key))
        if isinstance(written, str | os.PathLike):
            _files({key: os.fsdecode(written)}, document, base, values).remove()


def _document_and_base(config: object) -> tuple[Mapping[str, Any], Path]:
    """Return what can be read of a config, and the folder that its relative paths start from."""
    if isinstance(config, Mapping):
        return config, Path.cwd()
    if not isinstance(config, str | os.PathLike):
        return {}, Path.cwd()
    path = Path(os.fsdecode(config))
    try:
        return tomllib.loads(read_file(path).decode("utf-8-sig")), path.resolve().parent
    except (OSError, ValueError, RecursionError):
        return {}, path.absolute().parent


def _files(written: dict[str, str], document: Mapping[str, Any], base: Path, values: Mapping[str, Any]) -> GateFiles:
    """Return the files at a place; none if a reference in it has no value, or the text names no place here."""
    declared = {"vars": document["vars"]} if "vars" in document else {}
    try:
        texts, _ = substituted({**declared, **written}, values if declared else {}, origin="<config>")
        return GateFiles.of(texts.get(JSON), texts.get(JUNIT), base, "<config>")
    except ThresherError:
        return GateFiles()
