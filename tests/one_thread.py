"""Load Polars with one thread: tests run side by side, and a second thread costs small frames more than it gives them.

Processes that tests start have as many threads as ever.
"""

from __future__ import annotations

import os

_NAME = "POLARS_MAX_THREADS"
_before = os.environ.get(_NAME)
os.environ[_NAME] = _before or "1"

import polars as pl  # noqa: E402, F401 - it reads the variable when it is loaded

if _before is None:
    del os.environ[_NAME]
