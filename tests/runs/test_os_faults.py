"""Errors of the operating system are told apart by their number, whoever passes them on."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

import pipeline
from pipeline.base.errors import ResourceError, os_fault, system_fault

if TYPE_CHECKING:
    from pathlib import Path

CODES = {
    errno.EIO: 74,
    errno.EMFILE: 74,
    errno.ENFILE: 74,
    errno.ENOSPC: 74,
    errno.EDQUOT: 74,
    errno.EFBIG: 74,
    errno.ESTALE: 74,
    errno.ENOLCK: 74,
    errno.EACCES: 77,
    errno.EPERM: 77,
    errno.EROFS: 73,
    errno.ENOMEM: 71,
}


@pytest.mark.parametrize(("number", "code"), CODES.items(), ids=[errno.errorcode[number] for number in CODES])
def test_a_number_of_the_system_has_one_exit_code(number: int, code: int) -> None:
    fault = os_fault(OSError(number, os.strerror(number), "/data/a.parquet"), "reading pairs")
    assert fault.code == code
    assert fault.message == f"reading pairs: {os.strerror(number)} (/data/a.parquet)"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("IO Error: Could not write file: No space left on device"), 74),
        (RuntimeError("Too many open files (os error 24)"), 74),
        (RuntimeError("fehlgeschlagen (os error 13)"), 77),
        (RuntimeError('{"exception_type":"IO","errno":"30"}'), 73),
        (OSError("[Errno 12] error in the decoder"), 71),
        (MemoryError(), 71),
        (RuntimeError("the page header is broken"), 74),
    ],
)
def test_an_error_that_a_library_passes_on_is_found_in_its_text(error: Exception, code: int) -> None:
    fault = os_fault(error, "reading pairs")
    assert fault.code == code
    assert fault.message == f"reading pairs: {str(error) or 'MemoryError'}"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError("Unable to allocate 8 GiB"), 71),
        (RuntimeError("can't start new thread"), 71),
        (ImportError("_duckdb.so: failed to map segment from shared object"), 71),
        (OSError(errno.EMFILE, "Too many open files"), 74),
        (RuntimeError("dictionary changed size during iteration"), None),
        (ImportError("no module named x"), None),
        (KeyboardInterrupt(), None),
    ],
)
def test_an_unforeseen_error_is_a_bug_only_where_the_system_is_not_to_blame(
    error: BaseException, code: int | None
) -> None:
    fault = system_fault(error)
    assert (None if fault is None else fault.code) == code


def test_a_run_without_memory_says_so_and_leaves_its_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pipeline.runs.runner._Job.run", fail)
    stage = {"kind": "before_after", "pairs": "p.parquet", "thresholds": [0.5]}
    with pytest.raises(ResourceError, match="MemoryError"):
        pipeline.run({"output": str(tmp_path), "stages": [stage]})
    (attempt,) = (tmp_path / "attempts").iterdir()
    assert json.loads(attempt.read_text())["exit"] == 71
