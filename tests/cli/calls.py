"""Calling thresher as people and schedulers do: in this process for speed, in one of its own for exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from pipeline.cli import app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str
    raw: bytes = b""


def call(*words: str | Path) -> Called:
    """Call in this process; what would be a traceback is raised."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Called(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)


def spawn(
    *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, script: str | None = None
) -> Called:
    """Call in a process of its own; with `script`, that Python text instead of the package."""
    head = ["-m", "pipeline"] if script is None else ["-c", script]
    done = subprocess.run(
        [sys.executable, *head, *(str(word) for word in words)],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return Called(done.returncode, done.stdout.decode(), done.stderr.decode(), done.stdout)
