"""A store for inputs on stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from object_store import SECRET, ObjectStore, Running

from pipeline.sources import stores as remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def server() -> Iterator[ObjectStore]:
    with Running() as store:
        yield store


@pytest.fixture
def store(server: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """The store, with credentials in the environment and short pauses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIACANARY",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server.door,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "FIRST_PAUSE", remote.FIRST_PAUSE / 200)
    monkeypatch.setattr(remote, "LONGEST_PAUSE", remote.FIRST_PAUSE)
    server.requests.clear()
    yield server
    server.fault = lambda _method, _path: None
