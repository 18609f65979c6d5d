"""Logs of Delta Lake that are edited by hand, for what the library does not write."""

from __future__ import annotations

import base64
import json
import shutil
import string
import uuid
import zlib
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import polars as pl
from pyroaring import BitMap64

if TYPE_CHECKING:
    from pathlib import Path


def edited_log(table: Path, copy: Path, **protocol: Any) -> dict[str, Any]:  # noqa: ANN401 - as in a log
    """A copy of the first version of a table with another protocol; its other actions, to be changed."""
    shutil.copytree(table, copy)
    first, *later = sorted((copy / "_delta_log").iterdir())
    for path in later:
        path.unlink()
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    return {"path": first, "actions": [each for each in actions if "protocol" not in each] + [{"protocol": protocol}]}


def write_log(log: dict[str, Any]) -> None:
    log["path"].write_text("\n".join(map(json.dumps, log["actions"])))


def z85(content: bytes) -> str:
    """Bytes as text, as ZeroMQ and the protocol of Delta Lake write them."""
    letters = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    alphabet = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    return base64.b85encode(content).decode().translate(str.maketrans(alphabet, letters))


def with_vectors(table: Path, copy: Path) -> dict[str, Any]:
    """A copy of the first version of a table that may have deletion vectors; its log, to be changed."""
    names = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    return edited_log(table, copy, minReaderVersion=3, minWriterVersion=7, **names)


def mark(log: dict[str, Any], number: int, rows: list[int], *, in_file: bool = False) -> list[int]:
    """Mark rows of a file in a log as deleted, in the log or in a file of its own; their ids."""
    add = sorted((action["add"] for action in log["actions"] if "add" in action), key=lambda add: add["path"])[number]
    vector = (1681511377).to_bytes(4, "little") + BitMap64(rows).serialize()
    vector += bytes(-len(vector) % 4)
    place: dict[str, Any] = {"storageType": "i", "pathOrInlineDv": z85(vector)}
    if in_file:
        name = uuid.uuid5(uuid.NAMESPACE_URL, add["path"])
        place = {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1}
        content = b"\1" + len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
        (log["path"].parents[1] / f"deletion_vector_{name}.bin").write_bytes(content)
    add["deletionVector"] = place | {"sizeInBytes": len(vector), "cardinality": len(rows)}
    write_log(log)
    file = log["path"].parents[1] / unquote(add["path"])
    return pl.read_parquet(file, hive_partitioning=False).filter(pl.int_range(pl.len()).is_in(rows))["id"].to_list()
