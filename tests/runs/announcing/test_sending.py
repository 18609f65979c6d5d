"""Where nobody listens and nothing can be written, a run publishes all the same, and says so."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from storage.promises import assert_results_ok

import pipeline
from pipeline.base.errors import ConfigError, Interrupted
from pipeline.runs import config
from pipeline.runs.announcing import Announcement
from pipeline.runs.lineage import KEY, TIMEOUT, Job, post

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runs.announcing.nights import Night

CANARY = "canary-5f0a5b1e"


class Server(HTTPServer):
    """Takes events; a path that ends in /moved is answered by a redirect."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(307 if self.path.endswith("/moved") else 201)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_events_reach_a_server_with_the_key_and_the_key_reaches_nothing_else(
    night: Night, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, CANARY)
    run = night.run(lineage={"url": server.url, "job": "nightly", "namespace": "news"})
    assert [(path, key, event["eventType"]) for path, key, event in server.taken] == [
        ("/api/v1/lineage", f"Bearer {CANARY}", "START"),
        ("/api/v1/lineage", f"Bearer {CANARY}", "COMPLETE"),
    ]
    assert {(event["job"]["namespace"], event["job"]["name"]) for _, _, event in server.taken} == {("news", "nightly")}
    assert run.warnings == night.run(lineage={}).warnings
    artefacts = [path for path in night.folder.rglob("*") if path.is_file()]
    assert len(artefacts) > 10
    assert not [path for path in artefacts if CANARY.encode() in path.read_bytes()]


def test_no_redirect_is_followed(server: Server) -> None:
    event = Job("n", "j", "o").start({"run_id": "0123456789ab", "started_at": "2026-11-20T01:02:03"})
    with pytest.raises(OSError, match="redirects"):
        post(f"{server.url}/moved", event)
    assert [path for path, _, _ in server.taken] == ["/moved"]


def test_a_signal_does_not_wait_for_a_server_that_is_silent(night: Night) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stages = night.config()["stages"][1:]
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(Interrupted):
            night.run(lineage={"url": f"http://127.0.0.1:{silent.getsockname()[1]}"}, stages=stages)
        timer.join()
    (attempt,) = (json.loads(path.read_bytes()) for path in (night.results / "attempts").iterdir())
    seconds = datetime.fromisoformat(attempt["ended_at"]) - datetime.fromisoformat(attempt["started_at"])
    assert (attempt["status"], attempt["exit"]) == ("interrupted", 143)
    assert seconds.total_seconds() < TIMEOUT - 1


def test_a_run_publishes_where_nothing_can_be_announced(night: Night) -> None:
    gone = night.folder / "gone"
    run = night.run(
        lineage={"file": str(gone / "events.jsonl"), "url": "http://127.0.0.1:9"},
        prometheus={"file": str(gone / "t.prom")},
    )
    assert run.status == "published"
    assert assert_results_ok(night.results).generation == 1
    told = [warning for warning in run.warnings if "could not be written" in warning]
    assert len(told) == 3
    for name in ("events.jsonl could not be written:", "127.0.0.1 could not be written:", "t.prom"):
        assert sum(name in warning for warning in told) == 1, told


def test_a_bug_in_an_event_costs_no_results(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Announcement) -> None:
        message = "no job"
        raise ZeroDivisionError(message)

    monkeypatch.setattr(Announcement, "_job", fail)
    run = night.run(stages=night.config()["stages"][1:])
    assert run.status == "published"
    assert any("ZeroDivisionError: no job" in warning for warning in run.warnings)


def test_what_is_not_installed_is_told_with_its_extra(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "find_spec", lambda _name: None)
    for key, package in (("lineage", "openlineage-python"), ("prometheus", "prometheus-client")):
        other: dict[str, Any] = {"lineage": {}, "prometheus": {}}
        with pytest.raises(ConfigError, match=f"{key} needs the package {package}, which is not installed") as told:
            pipeline.run(night.config() | {**other, key: night.config()[key]})
        assert told.value.remedy == f"pip install 'thresher[{key}]'"
    assert night.run(lineage={}, prometheus={}).status == "published"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"lineage": {"url": "ftp://x"}}, "lineage.url: write a URL that starts with http://"),
        ({"lineage": {"url": "http://user:secret@x"}}, "lineage.url: a URL must hold no password"),
        ({"lineage": {"job": ""}}, "lineage.job: it must not be empty"),
        ({"lineage": {"fil": "x"}}, "unknown key `lineage.fil`. Did you mean `file`?"),
        ({"prometheus": {"file": "x.txt"}}, "prometheus.file: the name must end in .prom"),
        ({"prometheus": {"file": 7}}, "prometheus.file"),
    ],
)
def test_a_wrong_table_is_told(night: Night, table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as told:
        pipeline.run(night.config() | table)
    assert words in str(told.value)
    assert "secret" not in str(told.value)
