"""What a store must be able to do for results to live on it; `stores.remote_folder` does it with obstore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...errors import BusyError
from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path


class LostRaceError(BusyError):
    """Another run was published to the store while this one was being made."""


@dataclass(frozen=True)
class Version:
    """The state of an object, as the store tells it apart from every other.

    Attributes:
        etag: Its ETag.
        number: Its version or generation; None where the store has none.
    """

    etag: str
    number: str | None = None


@dataclass(frozen=True)
class Entry:
    """An object as it is listed.

    Attributes:
        size: Its bytes.
        etag: Its ETag.
        modified: When it was written.
    """

    size: int
    etag: str
    modified: datetime


class Objects(Protocol):
    """A folder on a store; keys are relative to it, with `/`.

    Every method repeats requests that fail for a reason that may pass, within bounds, and then raises a ThresherError
    whose class says what the store refuses.
    """

    def folders(self, below: str) -> set[str]:
        """Return the names of the folders directly below a folder."""
        ...

    def entries(self, below: str) -> dict[str, Entry]:
        """Return all objects below a folder, by their keys relative to it."""
        ...

    def content(self, key: str) -> tuple[bytes, Version] | None:
        """Return content and version of an object; None if there is none."""
        ...

    def download(self, key: str, path: Path) -> str | None:
        """Write the content of an object to a file and return its SHA-256; None if there is no such object."""
        ...

    def sha256(self, key: str) -> str | None:
        """Read an object and return the hash of its content; None if there is none."""
        ...

    def upload(self, key: str, source: Path | bytes, *, kind: str | None = None) -> str:
        """Write an object, whole or not at all, and return its ETag; `kind` is the type of its content."""
        ...

    def swap(self, key: str, content: bytes, version: Version | None) -> bool:
        """Write an object if it still has a version, or if there is none and `version` is None; else return False.

        Where an answer was lost, False can also mean that the object was written: its content tells.
        """
        ...

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are left out."""
        ...
