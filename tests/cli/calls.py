"""Calling thresher as people and schedulers do: in this process for speed, in one of its own for exit codes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest
from typer import testing
from typer.main import get_command

from pipeline.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str
    raw: bytes = b""


def call(*words: str | Path, columns: int | None = None) -> Called:
    """Call in this process, with its output in a pipe; what would be a traceback is raised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)  # which xdist sets
        if columns is not None:
            patch.setenv("COLUMNS", str(columns))
        patch.setattr(testing, "_get_command", _commands)
        result = testing.CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Called(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)


_commands = cache(get_command)  # to make them takes longer than many of them


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


def at_terminal(*words: str | Path, columns: int = 160) -> str:
    """What the command writes to a terminal of that width, called in this process."""
    ours, theirs = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(max_workers=1) as reader:
        seen = reader.submit(_written, ours)
        for name in _DROPPED:
            patch.delenv(name, raising=False)
        for name, value in _environment_of_terminal(columns).items():
            patch.setenv(name, value)
        with open(theirs, "w", encoding="utf-8") as out, open(os.dup(theirs), "w", encoding="utf-8") as err:  # noqa: PTH123 - descriptors
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with suppress(SystemExit):
                app([str(word) for word in words])
        text = seen.result()
    os.close(ours)
    return text


def at_terminal_of_its_own(*words: str | Path, columns: int = 160) -> str:
    """What the command writes to a terminal of that width, called in a process of its own."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    environment |= _environment_of_terminal(columns)
    command = [sys.executable, "-m", "pipeline", *(str(word) for word in words)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        text = _written(ours)
        process.wait()
    os.close(ours)
    return text


_DROPPED = ("CI", "NO_COLOR", "FORCE_COLOR")


def _environment_of_terminal(columns: int) -> dict[str, str]:
    return {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}


def _written(terminal: int) -> str:
    """All that is written to a terminal until its other side is closed."""
    return b"".join(iter(lambda: _block(terminal), b"")).decode().replace("\r\n", "\n")


def _block(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side has closed its end
        return b""
