"""Addresses of objects on remote stores, and buckets: listing and copying what an address means."""

from __future__ import annotations

import glob
import os
import random
import re
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import BufferedReader, BytesIO, RawIOBase
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import ConfigError, DataError, NoInputError, PermissionDenied, ThresherError, UnavailableError
from ..base.paths import plain_text, shortened
from ..base.records import dataclass
from ..base.visible_text import cleaned
from .finding import is_meant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO


SCHEMES = {"s3": "S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
SEPARATOR = "://"
ACCOUNTS = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")  # variables of the environment
_SPELLINGS = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "adl": "az"}  # of Hadoop and of table formats
_IN_ACCOUNT = re.compile(r"(?:abfss?|wasbs?)://(?P<container>[^/@]+)@(?P<account>[^/.]+)[^/]*/(?P<key>.*)", re.DOTALL)
_ADDRESS = re.compile(rf"(?P<scheme>{'|'.join(SCHEMES)})://(?P<bucket>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Address:
    """An object, a folder or a pattern in a bucket, or container, of `s3`, `gs` or `az`; no slash ends its key."""

    scheme: str
    bucket: str
    key: str

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of which the key consists."""
        return tuple(self.key.split("/")) if self.key else ()

    @property
    def is_readable(self) -> bool:
        """Whether the library takes its key: one with a control character it takes for no key at all."""
        return _CONTROL.search(self.key) is None

    def at(self, key: str) -> Address:
        """Return the address of another key of the same bucket."""
        return Address(self.scheme, self.bucket, key)

    def __str__(self) -> str:
        return f"{self.scheme}{SEPARATOR}{self.bucket}/{self.key}"


def parse_address(text: str, *, what: str) -> Address:
    """Return the address that a text for which `is_remote` holds means; `what` it is for is said in messages.

    Raises:
        ConfigError: it names no bucket, or a pattern of buckets, holds credentials, or a name that no key can have.
    """
    match = _ADDRESS.fullmatch(plain_text(text, what=what))
    scheme, bucket, key = ("", "", "") if match is None else (match["scheme"], match["bucket"], match["key"] or "")
    if "@" in bucket or ":" in bucket:
        message = f"{what}: an address on {scheme}{SEPARATOR} has credentials in it"
        raise ConfigError(message, remedy="Write s3://bucket/key, and set credentials as environment variables.")
    if not bucket or glob.has_magic(bucket) or _CONTROL.search(bucket):
        message = f"{what}: {cleaned(shortened(text), layout='')} names no bucket"
        raise ConfigError(message, remedy=f"Write {scheme}{SEPARATOR}bucket/folder, with the name of one bucket.")
    key = key.removesuffix("/")
    if any(name in {"", ".", ".."} for name in key.split("/")) and key:
        message = f"{what}: {shortened(text)} has an empty name, . or .. in its key"
        raise ConfigError(message, remedy="Write the key as the store lists it; such keys cannot be read.")
    return Address(scheme, bucket, key)


def address_in_table(written: str) -> Address | None:
    """Return the address of a file that a table lists, as its writers spell it; nothing in it is encoded.

    None: it is no address on a store that inputs can be read from, is in another account of Azure than the environment
    names, or has credentials in it.
    """
    if in_account := _IN_ACCOUNT.fullmatch(written):
        accounts = {os.environ.get(name) for name in ACCOUNTS} - {None, ""}
        is_own = not accounts or in_account["account"] in accounts
        return Address("az", in_account["container"], in_account["key"]) if is_own else None
    scheme, _, bucket_and_key = written.partition(SEPARATOR)
    scheme = _SPELLINGS.get(scheme, scheme)
    bucket, _, key = bucket_and_key.partition("/")
    has_credentials = "@" in bucket or ":" in bucket
    return Address(scheme, bucket, key) if scheme in SCHEMES and bucket and key and not has_credentials else None


T = TypeVar("T")
RETRIES, TRIES = 5, 3  # of every request, and of those whose answer breaks off
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_RETRY = timedelta(seconds=0.2), timedelta(seconds=10), timedelta(seconds=60)
CHUNK_BYTES = 1 << 20
PAGE = 1000  # keys that a store lists at a time
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "GOOGLE_BASE_URL")
_SECRET_NAMES = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|SAS|CREDENTIAL|CONNECTION", re.IGNORECASE)
_SHORTEST_SECRET = 4
_IN_QUERIES = re.compile(r"(?i)([?&;](?:sig|signature|x-[a-z-]+|token|se|sp|skoid)=)[^&\s\"]+")
_STATUS = re.compile(r"status code: (?P<status>\d{3})")
_ANSWER = re.compile(r"Error performing \S+ \S+ in .*? +- (?P<words>\S.*?):? *$")
_CODE = re.compile(r"<Code>(?P<code>[^<]{1,80})</Code>(?:.*?<Message>(?P<words>[^<]{1,200})</Message>)?", re.DOTALL)
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _CHANGED = 400, 403, 404, 412
_REFUSED, _MISDIRECTED = {401, _FORBIDDEN}, {301, 307, _BAD_REQUEST}
_TIME = "time:"  # in the place of an ETag
_NO_ANSWER = re.compile(r"error sending request|HTTP error|[Cc]onnect(ion)? (error|refused|reset)|timed out")
_IN_ADDRESS = re.compile(r"//[^/@]*:[^/@]*@")
_LATER = "Run again later; if it goes on, check the network and the endpoint."


@dataclass(frozen=True)
class RemoteObject:
    """An object as a store lists it.

    Attributes:
        address: Where it is.
        size: Its bytes.
        etag: What the store changes whenever the content changes; where it has none, the time of the last change.
        version: Its version; None where the bucket keeps none, or a listing does not tell.
    """

    address: Address
    size: int
    etag: str
    version: str | None = None


class Bucket:
    """A bucket of a store; the environment names credentials, region and endpoint.

    Args:
        address: Any address in it.
        what: What it is used for, in messages: `input pairs`.

    Raises:
        ConfigError: the library is not installed, or the environment holds a setting that it does not understand.
    """

    needs = "listing and getting objects"  # what its credentials must permit

    def __init__(self, address: Address, *, what: str) -> None:
        try:
            import obstore  # noqa: PLC0415 - an optional extra
            import obstore.store  # noqa: PLC0415
        except ImportError as error:
            message = f"{what}: {address} needs the package obstore, which is not installed"
            raise ConfigError(message, remedy='Install it: pip install "thresher[remote]"') from error
        self._obstore: Any = obstore
        self._what = what
        self.address = address.at("")
        try:
            self._store = obstore.store.from_url(
                f"{address.scheme}://{address.bucket}",
                client_options={
                    "allow_http": any(url.startswith("http://") for url in endpoints()),
                    "connect_timeout": timedelta(seconds=5),
                    "timeout": timedelta(hours=6),
                    "read_timeout": timedelta(seconds=60),
                },
                retry_config={
                    "max_retries": RETRIES,
                    "backoff": {"init_backoff": FIRST_PAUSE, "max_backoff": LONGEST_PAUSE, "base": 2},
                    "retry_timeout": LONGEST_RETRY,
                },
            )
        except obstore.exceptions.BaseError as error:
            message = f"{what}: {address}: {said(error)}"
            remedy = "Check the variables of the environment that name account, region and credentials."
            raise ConfigError(message, remedy=remedy) from None

    def listed(self, folder: str) -> list[RemoteObject]:
        """Return the objects below a folder; markers of folders, which are empty, are no objects.

        Raises:
            ThresherError: its class says what the store refuses.
        """

        def ask() -> list[RemoteObject]:
            return [self._object(entry) for page in self._obstore.list(self._store, folder or None) for entry in page]

        objects = self._tried(self.address.at(folder), "listing", ask)
        names_of = [item.address.folders for item in objects]
        folders = {folder, *("/".join(names[:depth]) for names in names_of for depth in range(1, len(names)))}
        return [item for item in objects if item.size or item.address.key not in folders]

    def first_key(self, folder: str, name: str, is_wanted: Callable[[str], bool]) -> str | None:
        """Return a key below a name in a folder that is wanted; None if there is none.

        Raises:
            ThresherError: its class says what the store refuses.
        """
        below = f"{folder}/{name}" if folder else name

        def ask() -> str | None:
            entries = chain.from_iterable(self._obstore.list(self._store, below, chunk_size=PAGE))
            return next((entry["path"] for entry in entries if is_wanted(entry["path"])), None)

        return self._tried(self.address.at(folder), "listing", ask)

    def object(self, key: str) -> RemoteObject | None:
        """Return an object, or None if the bucket has none of that key.

        Raises:
            ThresherError: its class says what the store refuses.
        """
        try:
            return self._tried(
                self.address.at(key), "looking at", lambda: self._object(self._obstore.head(self._store, key))
            )
        except NoInputError:
            return None

    def part(self, item: RemoteObject, start: int, end: int) -> bytes:
        """Return some bytes of an object.

        Raises:
            DataError: it was replaced since it was listed.
            ThresherError: its class says what the store refuses.
        """
        content = BytesIO()
        self.copy(item, content, start, end)
        return content.getvalue()

    def copy(
        self, item: RemoteObject, target: BinaryIO, start: int, end: int, stopped: threading.Event | None = None
    ) -> RemoteObject:
        """Write some bytes of an object to a file; where they break off, they are asked for again from the beginning.

        Args:
            item: The object, as it was listed.
            target: A file, which is written from where it is.
            start: The first byte.
            end: The byte behind the last one.
            stopped: Set when nobody wants the content any more.

        Returns:
            The object with the version that was read.

        Raises:
            DataError: it was replaced since it was listed.
            ThresherError: its class says what the store refuses.
        """
        at = target.tell()

        def ask() -> RemoteObject:
            target.seek(at)
            return self._copied(item, target, start, end, stopped)

        return self._tried(item.address, "reading", ask, stopped)

    def reader(self, address: Address) -> BinaryIO:
        """Return the content of an object as a file, which is asked for piece by piece.

        Raises:
            NoInputError: there is none.
            ThresherError: its class says what the store refuses.
        """
        item = self.object(address.key)
        if item is None:
            message = f"{self._what}: {address} is not there, and the table needs it"
            raise NoInputError(message, remedy="Check the table, or read a later version of it.")
        return BufferedReader(_Content(self, item), CHUNK_BYTES)

    def _tried(self, address: Address, doing: str, ask: Callable[[], T], stopped: threading.Event | None = None) -> T:
        """Return an answer of the store; one that breaks off is asked for again, beside the retries of the library."""
        wanted = stopped or threading.Event()
        for attempt in range(TRIES):
            try:
                with self._faults(address, doing):
                    return ask()
            except UnavailableError:
                if attempt == TRIES - 1 or wanted.is_set():
                    raise
            pause = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE).total_seconds()
            wanted.wait(pause * random.uniform(0.5, 1))  # noqa: S311 - so that many readers do not return together
        raise AssertionError

    def _copied(
        self, item: RemoteObject, target: BinaryIO, start: int, end: int, stopped: threading.Event | None
    ) -> RemoteObject:
        if start == end:
            return item
        options: dict[str, Any] = {"if_match": item.etag} if item.etag.strip('W/"') else {}
        if item.etag.startswith(_TIME):
            options = {"if_unmodified_since": datetime.fromisoformat(item.etag.removeprefix(_TIME))}
        answer = self._obstore.get(self._store, item.address.key, options={"range": (start, end), **options})
        received = 0
        for chunk in answer.stream(min_chunk_size=CHUNK_BYTES):
            received += target.write(chunk)
            if stopped is not None and stopped.is_set():
                break
        if received != end - start:
            message = f"{self._what}: {item.address} ended after {received:,} of {end - start:,} bytes"
            raise UnavailableError(message, remedy=_LATER)
        return RemoteObject(item.address, item.size, item.etag, answer.meta["version"])

    def _object(self, entry: Any) -> RemoteObject:  # noqa: ANN401 - a dictionary of the library
        etag = entry["e_tag"] or f"{_TIME}{entry['last_modified'].isoformat()}"
        return RemoteObject(self.address.at(entry["path"]), entry["size"], etag, entry["version"])

    @contextmanager
    def _faults(self, address: Address, doing: str) -> Iterator[None]:
        """Translate what the library raises into errors that say what the store said, without secrets."""
        kinds = self._obstore.exceptions
        remedy = "Rename the object: keys with control characters, empty names, . or .. are not supported."
        if not address.is_readable:
            message = f"{self._what}: {cleaned(str(address), layout='')} has a control character in its key"
            raise DataError(message, remedy=remedy)
        try:
            yield
        except kinds.InvalidPathError as error:
            message = f"{self._what}: {address} holds a key that cannot be read: {_first_line(error)}"
            raise DataError(message, remedy=remedy) from None
        except (FileNotFoundError, kinds.BaseError) as error:  # the cause is dropped: its text may hold secrets
            statuses = {
                FileNotFoundError: _NOT_FOUND,
                kinds.PermissionDeniedError: _FORBIDDEN,
                kinds.UnauthenticatedError: _FORBIDDEN,
                kinds.PreconditionError: _CHANGED,
                kinds.AlreadyExistsError: _CHANGED,
                kinds.UnknownConfigurationKeyError: _BAD_REQUEST,
            }
            status = next((number for kind, number in statuses.items() if isinstance(error, kind)), _status(error))
            words = f"{doing} {address}: {said(error)}"
            words = f"{address} was replaced while it was read" if status == _CHANGED else words
            message = f"{self._what}: {words}"
            raise _fault_of(message, status, self.needs) from None


def _fault_of(message: str, status: int, needs: str) -> ThresherError:
    if status == _NOT_FOUND:
        return NoInputError(message, remedy="Check the bucket and the key.")
    if status == _CHANGED:
        return DataError(message, remedy="Run again when its writer is done.")
    if status in _REFUSED:
        return PermissionDenied(
            message, remedy=f"Check the credentials in the environment, and what they may do: {needs}."
        )
    if status in _MISDIRECTED:
        return ConfigError(message, remedy="Check the region and the endpoint in the environment, such as AWS_REGION.")
    return UnavailableError(message, remedy=_LATER)


def fault_of_text(what: str, text: str) -> ThresherError | None:
    """Return what a store refused, as the library of a table format tells it in its text; None if it was no store."""
    status = _status(text)
    if status in {0, _NOT_FOUND} and not _NO_ANSWER.search(text):
        return None
    return _fault_of(f"{what}: {said(text)}", status, Bucket.needs)


class _Content(RawIOBase):
    """The bytes of an object."""

    def __init__(self, bucket: Bucket, item: RemoteObject) -> None:
        self._bucket, self._item, self._at = bucket, item, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._item.size)[whence]
        return self._at

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable buffer
        end = min(self._at + len(buffer), self._item.size)
        content = self._bucket.part(self._item, self._at, max(end, self._at))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


class Objects:
    """What pyiceberg reads the files of a table on a store through: those in its folder, or beside it on the store."""

    properties: dict[str, str] = {}  # noqa: RUF012 - as pyiceberg has it

    def __init__(self, folder: Address, bucket: Callable[[Address], Bucket], *, what: str) -> None:
        self._folder, self._bucket, self._what = folder, bucket, what

    def new_input(self, location: str) -> Objects.File:
        """Return a file."""
        address = address_in_table(location)
        if address is None or address.scheme != self._folder.scheme:
            shown = _IN_ADDRESS.sub("//…@", location)
            message = f"{self._what}: {self._folder} lists files elsewhere, such as {shown}"
            raise DataError(message, remedy="Only tables whose files lie on the store of the table are supported.")
        return Objects.File(self._bucket(address), address)

    class File:
        """A file."""

        def __init__(self, bucket: Bucket, address: Address) -> None:
            self._bucket, self._address, self.location = bucket, address, str(address)

        def open(self, *, seekable: bool = True) -> BinaryIO:
            """Return its content."""
            del seekable
            return self._bucket.reader(self._address)


def options_for_tables() -> dict[str, str]:
    """Return how deltalake reaches a store, beside what it takes from the environment itself."""
    options = {"max_retries": str(RETRIES), "retry_timeout": f"{LONGEST_RETRY.total_seconds():.0f}s"}
    options |= {"connect_timeout": "5s", "timeout": "21600s"}
    options["backoff_config.init_backoff"] = f"{FIRST_PAUSE.total_seconds() * 1000:.0f}ms"
    options["backoff_config.max_backoff"] = f"{LONGEST_PAUSE.total_seconds() * 1000:.0f}ms"
    return options | ({"allow_http": "true"} if any(url.startswith("http://") for url in endpoints()) else {})


def endpoints() -> list[str]:
    """Return the endpoints and accounts that the environment names: where buckets are looked for."""
    return [os.environ[name] for name in (*_ENDPOINTS, *ACCOUNTS) if os.environ.get(name)]


def _status(error: Exception | str) -> int:
    """Return the HTTP status that an error tells; 0 if it tells none."""
    status = _STATUS.search(str(error))
    return 0 if status is None else int(status["status"])


def said(error: Exception | str) -> str:
    """Return what a store said, in one line without secrets: its code and message, or else the words of the library."""
    text = str(error)
    code = _CODE.search(text)
    if code is not None:
        return shortened(_without_secrets(f"{code['code']}: {code['words']}" if code["words"] else code["code"]))
    return _first_line(error)


def _first_line(error: Exception | str) -> str:
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    answer = _ANSWER.search(line)
    return shortened(_without_secrets(line if answer is None else answer["words"]))


def _without_secrets(text: str) -> str:
    """Return a text without signatures in addresses and without the values of secrets of the environment."""
    text = _IN_QUERIES.sub(r"\1…", text)
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAMES.search(name):
            text = text.replace(value, "…")
    return text


_Names = tuple[str, ...]


def fixed_part(names: _Names) -> _Names:
    """Return the names before the first one that is a pattern."""
    number = next((at for at, name in enumerate(names) if glob.has_magic(name)), len(names))
    return names[:number]


def match_keys(
    keys: Iterable[str], folder: _Names, pattern: _Names, endings: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Return the keys of a bucket that a folder, or a pattern of names below it, means, and those it passes over.

    The latter are visible keys below folders whose names end otherwise than files of the format; see `is_meant`.
    """
    chosen, passed_over = list[str](), list[str]()
    for key in sorted(keys):
        names = tuple(key.split("/"))
        if names[: len(folder)] != folder:
            continue
        meant = is_meant(names[len(folder) :], pattern, endings)
        if meant is not False:
            (passed_over if meant is None else chosen).append(key)
    return chosen, passed_over
