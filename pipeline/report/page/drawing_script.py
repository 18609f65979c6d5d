"""The library that draws the live charts of a page, as one script."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

from ...safe_files import remove_own
from ...sources.remote.copies import folder_for_caches

if TYPE_CHECKING:
    from pathlib import Path

_CODE = "window.vegaEmbed = vegaEmbed;"
_PRIVATE = 0o700


def drawing_script() -> str:
    """Return the script.

    It depends on the version of vl-convert alone and takes it about a second, so that it is kept in the user's folder
    for caches, with the digest of its content; a copy that is damaged, or cannot be kept, is made anew.
    """
    import vl_convert  # noqa: PLC0415 - only to draw

    name = f"charts-{version('vl-convert-python')}.js"
    with suppress(OSError, RuntimeError):  # no such copy, or no folder of the user's
        if (script := _kept(folder_for_caches() / name)) is not None:
            return script
    script = str(vl_convert.javascript_bundle(_CODE))
    with suppress(OSError, RuntimeError):
        _keep(folder_for_caches() / name, script)
    return script


def _kept(path: Path) -> str | None:
    """The script of a copy; None if it is damaged."""
    digest, _, content = path.read_bytes().partition(b"\n")
    return content.decode() if digest.decode("ascii", "replace") == _digest(content) else None


def _keep(path: Path, script: str) -> None:
    content = script.encode()
    path.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        unfinished.write_bytes(b"\n".join([_digest(content).encode(), content]))
        unfinished.replace(path)
    finally:
        remove_own(unfinished, path.parent)


def _digest(content: bytes) -> str:
    return hashlib.sha256(_CODE.encode() + content).hexdigest()
