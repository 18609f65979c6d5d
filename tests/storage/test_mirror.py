"""Results on a store: read by everything that reads results, never a part of a run, and no run lost to another one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from object_store import Fault, ObjectStore, Running

import pipeline
from pipeline.base.errors import BusyError, ConfigError, PermissionDenied, ThresherError, UnavailableError
from pipeline.runs import written
from pipeline.runs.config import parse_config
from pipeline.runs.written import put_beside, results_at, store_of
from pipeline.sources import stores as remote
from pipeline.storage import mirror
from pipeline.storage.mirror import Mirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.runs.stage_results import Run

SECRET = "canary+secret/of=the&store"  # noqa: S105 - to be looked for
BUCKET = "results"
ROWS = pl.DataFrame(
    {"id": [1, 2, 3], "score": [0.9, 0.2, 0.6], "label": [True, False, True], "by": ["<b>", "all", None]}
)


class RemoteResults:
    """A results folder on the store, and what the test does with it."""

    def __init__(self, server: ObjectStore, folder: Path, name: str) -> None:
        self.store, self.folder, self.name = server, folder, name
        self.address = f"s3://{BUCKET}/{name}"
        ROWS.write_parquet(folder / "in.parquet")
        os.utime(folder / "in.parquet", (0, 0))

    def config(self, threshold: float = 0.5, *, machine: str = "", output: str = "", **keys: Any) -> dict[str, Any]:  # noqa: ANN401
        stage = {"kind": "threshold_sweep", "predictions": str(self.folder / "in.parquet"), "thresholds": [threshold]}
        limits = {"resources": {"copies": str(self.folder / machine)}} if machine else {}
        stages = [stage | {"by": ["by"], "uncertainty": "none"}]
        return {"output": output or self.address, "stages": stages, **limits, **keys}

    def run(self, threshold: float = 0.5, **keys: Any) -> Run:  # noqa: ANN401
        return pipeline.run(self.config(threshold, **keys))

    def listed(self, below: str = "") -> list[str]:
        return self.store.keys(BUCKET, f"{self.name}/{below}")

    def get(self, key: str) -> bytes:
        return self.store.get(f"{BUCKET}/{self.name}/{key}")

    def put(self, key: str, content: bytes) -> None:
        self.store.put(f"{BUCKET}/{self.name}/{key}", content)

    def named(self) -> list[str]:
        return list(json.loads(self.get("CURRENT"))["manifests"])

    def moved_to_another_machine(self) -> None:
        shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]), ignore_errors=True)

    def faults(self, fault: Callable[[str, str], Fault | None]) -> None:
        """Let the door ask about every request to this folder, by its key."""
        front = f"/{BUCKET}/{self.name}/"
        self.store.fault = lambda method, path: fault(method, path.removeprefix(front))

    def assert_one_whole_run(self) -> str:
        """The runs that the pointer names are there, each byte as its manifest says."""
        pointer = json.loads(self.get("CURRENT"))
        for name, sha256 in pointer["manifests"].items():
            manifest = self.get(f"runs/{name}/manifest.json")
            assert hashlib.sha256(manifest).hexdigest() == sha256
            for file in json.loads(manifest)["files"]:
                assert hashlib.sha256(self.get(f"runs/{name}/{file['path']}")).hexdigest() == file["sha256"]
        assert list(pointer["manifests"])[-1] == pointer["run"]
        return str(pointer["run"])


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with Running() as store:
        store.bucket(BUCKET)
        yield store


@pytest.fixture
def results(
    server: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[RemoteResults]:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    settings = {"AWS_ACCESS_KEY_ID": "AKIACANARY", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    settings |= {"AWS_ENDPOINT_URL": server.door, "NO_PROXY": "127.0.0.1", "XDG_CACHE_HOME": str(tmp_path / "caches")}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "FIRST_PAUSE", remote.FIRST_PAUSE / 200)
    monkeypatch.setattr(remote, "LONGEST_PAUSE", remote.FIRST_PAUSE)
    monkeypatch.setattr(written, "PAUSE", 0.001)
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 0.0)
    server.requests.clear()
    yield RemoteResults(server, tmp_path, re.sub(r"\W", "_", request.node.name)[:60])
    server.fault, server.has_conditions = lambda _method, _path: None, True


def test_everything_reads_them(results: RemoteResults) -> None:
    run = results.run()
    assert (
        run.place
        == f"{results.address}/runs/{run.path.name}"
        == f"{results.address}/runs/{results.assert_one_whole_run()}"
    )
    local = results.run(output=str(results.folder / "here"))
    tables = sorted(path.relative_to(run.path) for path in run.path.rglob("*.parquet"))
    assert [results.get(f"runs/{run.path.name}/{path.as_posix()}") for path in tables] == [
        (local.path / path).read_bytes() for path in tables
    ]
    assert not any(text.encode() in results.get(key) for key in results.listed() for text in (SECRET, "caches"))
    results.moved_to_another_machine()
    assert results.run().status == "unchanged"
    second = results.run(0.7)
    assert results.named() == [run.path.name, second.path.name]
    assert second.warnings == run.warnings
    results.moved_to_another_machine()
    for words in (("diff",), ("explain", "threshold_sweep", "--rows", "0")):
        assert call(words[0], results.address, *words[1:]).code == 0, words
    assert second.path.name in call("show", results.address).out
    n_files = sum(
        len(json.loads(results.get(f"runs/{published.path.name}/manifest.json"))["files"])
        for published in (run, second)
    )
    told = f"{results.address}/: 2 runs, {n_files} files, all as published\n"
    assert call("verify", f"{results.address}/").out == told
    n_requests = len(results.store.requests)
    with pipeline.open_results(results.address) as connection:
        paths = [path for (path,) in connection.execute("SELECT path FROM runs ORDER BY generation").fetchall()]
        counted = connection.execute("SELECT count(*), count(DISTINCT run_id) FROM history.threshold_sweep_curve")
        assert counted.fetchall() == [(8, 2)]
        assert connection.execute("SELECT count(*) FROM attempts").fetchall() == [(3,)]
    assert paths == [run.place, second.place]
    assert len(results.store.requests) - n_requests <= 6  # what is here is not copied again
    page = results.folder / "report.html"
    page.write_text("<p>")
    assert put_beside(results.address, page, "text/html") == f"{results.address}/report.html"
    assert results.get("report.html") == b"<p>"


def test_stages_read_results_of_another_place(results: RemoteResults) -> None:
    run = results.run()
    with results_at(results.address) as folder:
        assert (folder / "runs" / run.path.name / "manifest.json").is_file()
    ranked = ROWS.select(query_id="id", doc_id="id", score="score", relevance=pl.col("label").cast(pl.Int64))
    both = pl.concat([ranked.with_columns(system=pl.lit(name)) for name in "ab"])
    both.write_parquet(results.folder / "ranking.parquet")
    stage = {"kind": "ranking", "ranking": str(results.folder / "ranking.parquet"), "by": ["system"], "cutoffs": [1]}
    upstream = f"{results.address}/upstream"
    pipeline.run({"output": upstream, "stages": [stage | {"uncertainty": "none", "no_relevant": "zero"}]})
    compare = {"kind": "compare", "of": "ranking", "results": upstream, "system": "system", "resamples": 99}
    config = {"output": str(results.folder / "compared"), "stages": [compare]}
    compared = pipeline.run(config)
    (recorded,) = json.loads((compared.path / "run.json").read_text())["inputs"]
    assert recorded["path"].startswith(f"{upstream}/runs/00000001-")
    assert "mtime_ns" not in recorded
    results.moved_to_another_machine()
    assert pipeline.run(config).status == "unchanged"
    with pytest.raises(ConfigError, match="is the output folder of this run itself"):
        pipeline.run(config | {"output": upstream})


def test_of_two_runs_at_a_time_none_is_lost(results: RemoteResults) -> None:
    others = iter([parse_config(results.config(0.9, machine="other"), base=Path())])
    published: list[str] = []

    def publish_first(method: str, key: str) -> None:
        if (method, key) == ("PUT", "CURRENT"):
            published.extend(pipeline.run(config).path.name for config in others)

    results.faults(publish_first)
    run = results.run()
    assert [f"00000001-{name.partition('-')[2]}" for name in published] == published
    assert run.path.name == f"00000002-{run.run_id}" == results.assert_one_whole_run()
    lost = f"another run was published first to {results.address}: this run was made again on top"
    assert run.warnings[-1] == lost
    record = json.loads(results.get(f"runs/{run.path.name}/run.json"))
    (taken_over,) = [result["taken_over_from"] for result in record["results"].values()]
    first = json.loads(results.get(f"attempts/{taken_over}.json"))
    assert (first["status"], first["exit"]) == ("failed", 75)
    assert first["error"].startswith(f"another run was published to {results.address} meanwhile")
    with pipeline.open_results(results.address) as connection:
        names = connection.execute("SELECT path FROM runs ORDER BY generation").fetchall()
    assert names == [(f"{results.address}/runs/{published[0]}",), (run.place,)]
    assert len(results.listed("runs/")) > 2 * 12  # the objects of the lost attempt are there, and nobody sees them


def test_races_that_are_always_lost_end(results: RemoteResults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "TRIES", 2)
    results.faults(lambda method, key: Fault(412, "") if (method, key) == ("PUT", "CURRENT") else None)
    with pytest.raises(
        BusyError, match=f"2 times another run was published first to {results.address} while"
    ) as caught:
        results.run()
    assert caught.value.code == 75
    assert "CURRENT" not in results.listed()


def test_an_answer_that_is_lost_publishes_once(results: RemoteResults) -> None:
    faults = iter([Fault(500, "", late=True)])
    results.faults(lambda method, key: next(faults, None) if (method, key) == ("PUT", "CURRENT") else None)
    run = results.run()
    assert (run.status, run.path.name) == ("published", results.assert_one_whole_run())
    assert next(faults, None) is None
    assert results.named() == [run.path.name]


def fails_for_good(method: str, key: str) -> Fault | None:
    return Fault() if method == "PUT" and key.startswith("runs/") else None


def loses_bytes(method: str, key: str) -> Fault | None:
    return Fault(spoilt=True) if method == "PUT" and key.endswith("run.json") else None


def refuses_pointer(method: str, key: str) -> Fault | None:
    refused = Fault(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
    return refused if (method, key) == ("PUT", "CURRENT") else None


def is_gone_at_the_pointer(method: str, key: str) -> Fault | None:
    _ASKED.append(f"{method} {key}")
    return Fault() if key == "CURRENT" and "PUT CURRENT" in _ASKED else None


_ASKED: list[str] = []


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (fails_for_good, 69, "SlowDown"),
        (loses_bytes, 74, "run.json was written, but does not hold what was written"),
        (refuses_pointer, 77, "AccessDenied"),
        (is_gone_at_the_pointer, 69, "is published is not known"),
    ],
)
def test_a_run_that_cannot_be_shown_goes_on_later(
    results: RemoteResults, fault: Callable[[str, str], Fault | None], code: int, words: str
) -> None:
    _ASKED.clear()
    results.faults(fault)
    with pytest.raises(ThresherError) as caught:
        results.run()
    assert (caught.value.code, words in caught.value.message) == (code, True), caught.value.message
    assert str(results.folder / "caches") not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "CURRENT" not in results.listed()
    assert call("show", results.address).code == (69 if fault is is_gone_at_the_pointer else 66)
    results.store.fault = lambda _method, _path: None
    run = results.run()
    assert run.path.name == results.assert_one_whole_run()
    (result,) = json.loads(results.get(f"runs/{run.path.name}/run.json"))["results"].values()
    assert result["taken_over_from"]  # counted by the attempt that failed


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_published", [False, True])
def test_a_publisher_that_is_killed_leaves_a_whole_run(results: RemoteResults, is_published: bool) -> None:  # noqa: FBT001
    first = results.run()
    with pytest.MonkeyPatch.context() as patch:

        def kill(*_arguments: object) -> None:
            results.store.fault = lambda _method, _path: Fault(403, "")
            raise KilledError

        patch.setattr(Mirror, "complete" if is_published else "_commit", kill)
        with pytest.raises(KilledError):
            results.run(0.7)
    results.store.fault = lambda _method, _path: None
    shown = results.assert_one_whole_run()
    assert (shown != first.path.name) == is_published
    assert results.named() == ([first.path.name, shown] if is_published else [shown])
    assert (first.path.name in call("show", results.address).out) != is_published
    killed = {"run_id": "0123456789ab", "host": platform.node(), "status": "running", "pid": -1}
    results.put("attempts/0123456789ab.json", json.dumps(killed, indent=2).encode())
    run = results.run(0.8)
    assert b"crashed" in results.get("attempts/0123456789ab.json")
    assert run.path.name == results.assert_one_whole_run() == f"0000000{2 + is_published}-{run.run_id}"
    assert len(results.named()) == 2 + is_published
    results.moved_to_another_machine()
    assert call("verify", results.address).code == 0


def test_damage_on_the_store_is_found(results: RemoteResults) -> None:
    run = results.run()
    key = f"runs/{run.path.name}/threshold_sweep_curve/threshold_sweep.parquet"
    content = results.get(key)
    results.put(key, content[:-1] + b"?")
    assert call("show", results.address).code == 65
    verified = call("verify", results.address)
    assert (verified.code, f"{results.address}/{key} has changed since it was published" in verified.err) == (65, True)
    results.put(key, content)
    results.put(f"runs/{run.path.name}/extra", b"")
    assert f"{results.address}/runs/{run.path.name}/extra is not in the manifest" in call("verify", results.address).err
    results.store.delete(f"{BUCKET}/{results.name}/runs/{run.path.name}/extra")
    assert call("show", results.address).code == 0
    lost = {"CURRENT", "catalog.duckdb"}
    for name in lost:
        results.store.delete(f"{BUCKET}/{results.name}/{name}")
    assert call("show", results.address).code == 0
    assert call("verify", results.address).code == 65
    assert call("verify", results.address, "--repair").code == 0
    assert lost <= set(results.listed())
    results.store.delete(f"{BUCKET}/{results.name}/{key}")
    again = results.run()
    assert (again.status, again.generation) == ("published", 2)
    assert f"a published run is damaged: {results.address}/{key} is missing" in "\n".join(again.warnings)


def test_old_runs_expire(results: RemoteResults) -> None:
    names = [results.run().path.name]
    stale = results.get("CURRENT")
    names.append(results.run(0.6).path.name)
    results.put("CURRENT", stale)  # as after somebody restored it
    assert names[1] in call("show", results.address).out
    results.put("runs/00000003-0123456789ab/manifest.json", b"of a run that was never published")
    results.moved_to_another_machine()
    assert f"would remove {names[0]}" in call("expire", results.address, "--keep", "1", "--dry-run").out
    assert results.listed(f"runs/{names[0]}")
    called = call("expire", results.address, "--keep", "1")
    assert (called.code, f"removed {names[0]}" in called.out) == (0, True), called.err
    assert {key.split("/")[0] for key in results.listed("runs/")} == {names[1], "00000003-0123456789ab"}
    assert results.named() == [names[1]]
    assert call("verify", results.address).code == 0
    with pipeline.open_results(results.address) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]
    assert results.run(0.6).status == "unchanged"


def test_a_store_that_cannot_be_used_is_told_at_once(results: RemoteResults, monkeypatch: pytest.MonkeyPatch) -> None:
    results.store.has_conditions = False
    with pytest.raises(ConfigError, match=f"{results.address}: the store ignores conditions of writes"):
        results.run()
    results.store.has_conditions = True
    results.faults(lambda method, _key: Fault(403, "") if method == "PUT" else None)
    with pytest.raises(PermissionDenied, match=rf"output: writing {results.address}/attempts/") as caught:
        results.run()
    assert caught.value.remedy is not None
    assert "putting" in caught.value.remedy
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(UnavailableError):
        results.run()
    assert call("show", results.address).code == 69
    assert time.monotonic() - started < 30
    monkeypatch.setenv("AWS_ENDPOINT_URL", results.store.door)
    results.store.fault = lambda _method, _path: None
    config = results.config(output="s3://no-such-bucket/x")
    with pytest.raises(ThresherError, match="no-such-bucket") as caught_bucket:
        pipeline.run(config)
    assert caught_bucket.value.code == 73


@pytest.mark.parametrize("text", ["s3://b/a*", "s3://u:p@b/x", "s3://", "s3://b/../x", "hdfs://b/x"])
def test_places_that_mean_nothing_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        parse_config({"output": text, "stages": [{"kind": "threshold_sweep", "predictions": "x"}]}, base=tmp_path)
    assert call("show", text).code == 78


def test_mirrors_that_are_not_used_make_room(results: RemoteResults, monkeypatch: pytest.MonkeyPatch) -> None:
    results.run()
    store = store_of(results.address, what="results")
    assert store is not None
    elsewhere = store.folder.parent / "0123456789abcdef" / "read"
    elsewhere.mkdir(parents=True)
    (elsewhere / "x").write_bytes(b"0" * 1000)
    mirror.make_room(store.folder.parent, 10, kept=store.folder)
    assert elsewhere.is_dir()  # used within the hour
    monkeypatch.setattr(mirror, "IN_USE", -1.0)
    mirror.make_room(store.folder.parent, 10**9, kept=store.folder)
    assert elsewhere.is_dir()
    mirror.make_room(store.folder.parent, 10, kept=store.folder)
    assert not elsewhere.exists()
    assert store.work.is_dir()
