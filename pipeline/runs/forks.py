"""Forked children: threads of Polars and DuckDB do not survive a fork, so a child of a process that used them hangs."""

from __future__ import annotations

import os

from ..errors import ResourceError

_used_by: list[int] = []


def refuse_after_fork() -> None:
    """Note that this process uses the libraries; refuse if its parent used them before the fork.

    Raises:
        ResourceError: the parent used them before the fork.
    """
    process = os.getpid()
    if _used_by and _used_by[0] != process:
        message = (
            f"process {process} was forked from process {_used_by[0]} after thresher had run there: the threads of "
            "Polars and DuckDB do not exist in a forked child, which would wait for them forever"
        )
        remedy = 'Start workers by multiprocessing.get_context("spawn") or "forkserver", or fork before the first run.'
        raise ResourceError(message, remedy=remedy)
    _used_by[:] = [process]
