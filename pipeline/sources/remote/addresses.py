"""Addresses of objects on remote stores, as people write them: `s3://bucket/key`, `gs://…`, `az://…`."""

from __future__ import annotations

import glob
import os
import re

from ...errors import ConfigError
from ...records import dataclass
from ...visible_text import cleaned
from ..paths import plain_text, shortened

SCHEMES = {"s3": "S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
SEPARATOR = "://"
ACCOUNTS = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")  # variables of the environment
_SPELLINGS = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "adl": "az"}  # of Hadoop and of table formats
_IN_ACCOUNT = re.compile(r"(?:abfss?|wasbs?)://(?P<container>[^/@]+)@(?P<account>[^/.]+)[^/]*/(?P<key>.*)", re.DOTALL)
_ADDRESS = re.compile(rf"(?P<scheme>{'|'.join(SCHEMES)})://(?P<bucket>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Address:
    """An object, a folder or a pattern in a bucket.

    Attributes:
        scheme: `s3`, `gs` or `az`.
        bucket: The bucket, or container.
        key: What stands behind it, without a slash at the end.
    """

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


def is_remote(text: str) -> bool:
    """Whether a text is an address on a store that inputs can be read from."""
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str, *, what: str) -> Address:
    """Return the address that a text means.

    Args:
        text: A text for which `is_remote` holds.
        what: What it is for, in messages.

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
