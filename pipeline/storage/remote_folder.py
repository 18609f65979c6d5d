"""A folder on a store for results to live in: objects are put whole, and one can be replaced on a condition."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import CannotCreateError, NoInputError
from ..sources.remote.store import CHUNK_BYTES, Bucket, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from ..sources.remote.store import Address

MOST_REMOVED = 500  # keys of one request
PART_BYTES = 8 << 20


Version = dict[str, str]  # the state of an object, as the store tells it apart from every other: ETag, perhaps a number


class RemoteFolder(Bucket):
    """A folder on a store; keys are relative to it, with `/`.

    Every method repeats requests that fail for a reason that may pass, within bounds, and then raises a ThresherError
    whose class says what the store refuses.

    Args:
        address: The folder; it need not exist.
        what: What it is used for, in messages.

    Raises:
        ConfigError: as for `Bucket`.
    """

    needs = "listing, getting, putting and deleting objects"

    def __init__(self, address: Address, *, what: str) -> None:
        super().__init__(address, what=what)
        self._folder = address

    def folders(self, below: str) -> set[str]:
        """Return the names of the folders directly below a folder."""
        prefix = self._key(below)

        def ask() -> set[str]:
            answer = self._obstore.list_with_delimiter(self._store, prefix)
            return {str(name).rpartition("/")[2] for name in answer["common_prefixes"]}

        return self._tried(self.address.at(prefix), "listing", ask)

    def entries(self, below: str) -> dict[str, tuple[int, datetime]]:
        """Return bytes and time of all objects below a folder, by their keys relative to it."""
        prefix = self._key(below)

        def ask() -> dict[str, tuple[int, datetime]]:
            listed = (each for chunk in self._obstore.list(self._store, prefix) for each in chunk)
            return {each["path"].removeprefix(f"{prefix}/"): (each["size"], each["last_modified"]) for each in listed}

        return self._tried(self.address.at(prefix), "listing", ask)

    def content(self, key: str) -> tuple[bytes, Version] | None:
        """Return content and version of an object; None if there is none."""

        def ask() -> tuple[bytes, Version]:
            answer = self._obstore.get(self._store, self._key(key))
            number = answer.meta["version"]
            version = {"e_tag": answer.meta["e_tag"] or ""} | ({} if number is None else {"version": number})
            return bytes(answer.bytes()), version

        return self._if_there(key, ask)

    def sha256(self, key: str, path: Path | None = None) -> str | None:
        """Read an object, write it to a file if one is given, and return its hash; None if there is no such object."""

        def ask() -> str:
            digest = hashlib.sha256()
            with nullcontext() if path is None else path.open("wb") as file:
                for chunk in self._obstore.get(self._store, self._key(key)).stream(min_chunk_size=CHUNK_BYTES):
                    digest.update(chunk)
                    if file is not None:
                        file.write(chunk)
            return digest.hexdigest()

        return self._if_there(key, ask)

    def upload(self, key: str, source: Path | bytes, *, kind: str | None = None) -> None:
        """Write an object, whole or not at all; `kind` is the type of its content."""
        options: dict[str, Any] = {} if kind is None else {"attributes": {"Content-Type": kind}}
        with self._creating():
            self._tried(
                self.address.at(self._key(key)),
                "writing",
                lambda: self._obstore.put(self._store, self._key(key), source, chunk_size=PART_BYTES, **options),
            )

    def swap(self, key: str, content: bytes, version: Version | None) -> bool:
        """Write an object if it still has a version, or if there is none and `version` is None; else return False.

        Where an answer was lost, False can also mean that the object was written: its content tells.
        """
        kinds = self._obstore.exceptions

        def ask() -> bool:
            try:
                self._obstore.put(self._store, self._key(key), content, mode=version or "create")
            except (kinds.PreconditionError, kinds.AlreadyExistsError):
                return False
            except FileNotFoundError:
                if version is None:
                    raise
                return False  # it was removed
            return True

        with self._creating():
            return self._tried(self.address.at(self._key(key)), "writing", ask)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are left out."""
        paths = [self._key(key) for key in keys]
        for start in range(0, len(paths), MOST_REMOVED):
            chunk = paths[start : start + MOST_REMOVED]
            self._tried(self.address.at(chunk[0]), "removing", lambda chunk=chunk: self._removed(chunk))  # type: ignore[misc]

    def _removed(self, paths: list[str]) -> None:
        try:
            self._obstore.delete(self._store, paths)
        except FileNotFoundError:  # where a store tells of the first that is missing, the others are still there
            for path in paths if len(paths) > 1 else ():
                self._removed([path])

    def _if_there(self, key: str, ask: Callable[[], T]) -> T | None:
        try:
            return self._tried(self.address.at(self._key(key)), "reading", ask)
        except NoInputError:
            return None

    def _key(self, key: str) -> str:
        return "/".join(name for name in (self._folder.key, key.strip("/")) if name)

    @contextmanager
    def _creating(self) -> Iterator[None]:
        """A bucket that is not there cannot be written: that is no missing input."""
        try:
            yield
        except NoInputError as error:
            raise CannotCreateError(error.message, remedy="Make the bucket, or name another.") from None
