"""What a mirror has of the objects that may change: their ETags, and the hashes of their contents."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import ThresherError
from ..durable import DamagedError, read_own, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = ".synced.json"


class Notes:
    """The notes of a mirror; where they are lost, objects are read once more.

    Args:
        root: The folder of the mirror.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self._notes: dict[str, list[str]] = {}
        with suppress(DamagedError, ThresherError, ValueError, TypeError, AttributeError):
            read = json.loads(read_own(self._path))
            self._notes = {str(key): [str(etag), str(sha256)] for key, (etag, sha256) in read.items()}

    def is_here(self, key: str, etag: str) -> bool:
        """Whether an object was brought, or sent, with this ETag."""
        return bool(etag) and self._notes.get(key, [""])[0] == etag

    def is_noted(self, key: str) -> bool:
        """Whether an object was there."""
        return key in self._notes

    def keep_only(self, folder: str, keys: Iterable[str]) -> None:
        """Forget the objects of a folder that are no longer there."""
        present = set(keys)
        gone = [key for key in self._notes if key.startswith(f"{folder}/") and key not in present]
        for key in gone:
            del self._notes[key]

    def holds(self, key: str, content: bytes) -> bool:
        """Whether an object has this content on the store, as far as is noted."""
        return self._notes.get(key, ["", ""])[1] == hashlib.sha256(content).hexdigest()

    def note(self, key: str, etag: str, content: bytes) -> None:
        """Note what an object holds."""
        self._notes[key] = [etag, hashlib.sha256(content).hexdigest()]

    def write(self) -> None:
        """Write the notes."""
        write_json(self._path, self._notes)
