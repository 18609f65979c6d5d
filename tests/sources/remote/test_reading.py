"""Inputs on a remote store: results as from files, what a store refuses in a sentence, nothing copied twice."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from cli.calls import call
from object_store import SECRET, Fault, ObjectStore
from running import run_stages, stage_config

import pipeline
from pipeline.base.errors import (
    ConfigError,
    DataError,
    NoInputError,
    PermissionDenied,
    StorageError,
    ThresherError,
    UnavailableError,
)
from pipeline.engines.engine import bytes_of
from pipeline.engines.expression_types import truths
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input
from pipeline.sources.parquet_files import DataFile
from pipeline.sources.remote import Copies

if TYPE_CHECKING:
    from pipeline.runs.stage_results import Run
    from pipeline.sources.inputs import Rows

ROWS = pl.DataFrame({"id": [1, 2], "score": [0.9, 0.2], "label": [True, False]})
NAMES = ("day=1/a b%20ü.parquet", "day=2/x.parquet", "day=2/y.PARQUET", "day=3/z.parquet")


def parquet(number: int = 0) -> bytes:
    file = io.BytesIO()
    ROWS.with_columns(pl.col("id") + 10 * number).write_parquet(file)
    return file.getvalue()


@pytest.fixture(scope="module", autouse=True)
def _objects(server: ObjectStore) -> None:
    server.bucket("plain", versioned=True)
    for number, name in enumerate(NAMES):
        server.put(f"plain/in/{name}", parquet(number))
    for name in ("day=1/_hidden.parquet", "_tmp/a.parquet", "day=1/.a.parquet.crc"):
        server.put(f"plain/in/{name}", b"not to be read")
    server.put("plain/in/day=1/", b"")  # what consoles make of a folder
    server.put("plain/in/day=1", b"")


def find(folder: Path, path: Any = "s3://plain/in", *, limit: int = 10**9, **keys: Any) -> Listing:  # noqa: ANN401
    spec = Input.model_validate({"path": path, **keys})
    return Listing(spec, folder, name="predictions", truths=truths, copies=Copies(folder / "copies", limit)).opened()


def content(file: Rows) -> pl.DataFrame:
    assert isinstance(file, DataFile)
    assert file.fetch is not None
    file.fetch(file.schema.names)
    return pl.read_parquet(file.path, glob=False)


def names(folder: Path, path: Any) -> list[str]:  # noqa: ANN401 - as in a config
    return [file.name.removeprefix("s3://plain/in/") for file in find(folder, path).files]


def sweep(folder: Path, path: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"path": path, "where": "day <= '2' AND score > 0.1"}
    return stage_config(folder, "threshold_sweep", {}, predictions=spec, thresholds=[0.5], by=["day"], **keys)


def contents(run: Run) -> dict[str, bytes]:
    files = sorted(run.path.rglob("*.parquet"))
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}


def test_objects_give_the_bytes_of_files(store: ObjectStore, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(parquet(number))
    config = sweep(tmp_path / "remote", "s3://plain/in")
    run = pipeline.run(config)
    assert contents(run) == contents(run_stages(sweep(tmp_path / "local", str(tmp_path / "in"))))
    read = [path for method, path in store.requests if method == "GET" and ".parquet" in path]
    assert len(set(read)) == 2  # of four, two of which where leaves to be read
    record = json.loads((run.path / "run.json").read_text())
    (first, *_) = record["inputs"]
    assert first["path"] == f"s3://plain/in/{NAMES[0]}"
    assert (len(first["footer_sha256"]), first["size"], "version_id" in first) == (64, len(parquet()), True)
    n_requests = store.count("GET", ".parquet")
    assert pipeline.run(config).status == "unchanged"
    explained = call("explain", tmp_path / "remote" / "results", "threshold_sweep")
    assert "no rows can be shown" not in explained.out
    assert "s3://plain/in/day=2/x.parquet" in explained.out
    assert store.count("GET", ".parquet") == n_requests  # what is shown is in what was read
    assert SECRET not in (run.path / "run.json").read_text()
    limits = {"copies": str(tmp_path / "elsewhere"), "copies_limit": "1KB"}
    assert pipeline.run(config | {"resources": limits}).status == "unchanged"
    assert list((tmp_path / "elsewhere").glob("*.data")) == []  # of 1 KB in all


@pytest.mark.usefixtures("store")
def test_an_object_a_folder_a_glob_and_a_list_name_their_objects(tmp_path: Path) -> None:
    everything = [NAMES[0], NAMES[1], NAMES[2], NAMES[3]]
    assert names(tmp_path, "s3://plain/in") == everything
    assert names(tmp_path, "s3://plain/in/") == everything
    assert names(tmp_path, "s3://plain/in/day=1/a b%20ü.parquet") == [NAMES[0]]
    assert names(tmp_path, "s3://plain/in/day=[12]/[a-z]*.parquet") == [NAMES[0], NAMES[1]]
    assert names(tmp_path, "s3://plain/**/y.*") == [NAMES[2]]
    assert names(tmp_path, "s3://plain/i?/day=2") == [NAMES[1], NAMES[2]]
    assert names(tmp_path, ["s3://plain/in/day=3", "s3://plain/in/day=2/x.parquet"]) == [NAMES[3], NAMES[1]]
    assert [file.partitions for file in find(tmp_path, "s3://plain/i?/day=3").files] == [{"day": "3"}]
    assert [file.partitions for file in find(tmp_path, "s3://plain/in/day=3").files] == [{}]
    with pytest.raises(DataError, match=r"day=1/\S.* is named twice, by 's3://plain/in' and by 's3://plain/\*\*'"):
        find(tmp_path, ["s3://plain/in", "s3://plain/**"])


def test_what_is_hidden_below_a_folder_is_left_out(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("hidden")
    for number, name in enumerate(("p", "_temporary/0/p", "sub/p", "_day=1/p", "sub/_x", ".h/p")):
        store.put(f"hidden/in/{name}.parquet", parquet(number))
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / f"{name}.parquet").write_bytes(parquet(number))
    store.put("hidden/in/_SUCCESS", b"")
    shown = ["_day=1/p.parquet", "p.parquet", "sub/p.parquet"]
    for pattern, expected in (("**", shown), ("sub/**", shown[2:]), ("**/sub/**", shown[2:])):
        for start in ("s3://hidden/in", str(tmp_path / "in")):
            file_names = [file.name.removeprefix(f"{start}/") for file in find(tmp_path, f"{start}/{pattern}").files]
            assert file_names == expected, (start, pattern)


@pytest.mark.parametrize("character", ["\t", "\n", "\x1b", "\x7f"])
def test_a_control_character_in_a_key_is_told(store: ObjectStore, tmp_path: Path, character: str) -> None:
    store.bucket("controls")
    for name in (f"x{character}y.parquet", f"x{character}y/a.parquet", f"x{character}y/*.parquet"):
        with pytest.raises(DataError, match=r"input predictions: s3://controls/(in/)?x\S*y\S* has a control character"):
            find(tmp_path, f"s3://controls/{name}")
    with pytest.raises(ConfigError, match="names no bucket"):
        find(tmp_path, f"s3://con{character}trols/a.parquet")
    with pytest.raises(ConfigError, match=r"output: s3://controls/re\S*sults has a control character in its key"):
        pipeline.run(sweep(tmp_path, "s3://plain/in") | {"output": f"s3://controls/re{character}sults"})


def test_keys_that_cannot_be_read_are_told_when_they_are_listed(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("tabs")
    store.put("tabs/in/tab\tx.parquet", parquet())
    with pytest.raises(DataError, match="s3://tabs/in holds a key that cannot be read"):
        find(tmp_path, "s3://tabs/in")
    with pytest.raises(DataError, match="s3://tabs/in holds a key that cannot be read"):
        find(tmp_path, "s3://tabs/in/tab\tx.*")
    with pytest.raises(DataError, match="has a control character in its key"):
        find(tmp_path, "s3://tabs/in/tab\tx.parquet")


ODD_NAMES = (
    "q?m.parquet",
    "qxm.parquet",
    "b[1].parquet",
    "b1.parquet",
    "d[1]/a.parquet",
    "d1/a.parquet",
    "s*/s.parquet",
)


def test_a_name_that_looks_like_a_pattern_is_looked_for_first(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("odd")
    for number, name in enumerate(ODD_NAMES):
        store.put(f"odd/in/{name}", parquet(number))
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(parquet(number))
    store.put("odd/other/_delta_log/0.json", b"{}")  # beside it, and no matter
    for text, *expected in (
        *((name, name) for name in ODD_NAMES),
        ("d[1]", "d[1]/a.parquet"),
        ("s*", "s*/s.parquet"),
        ("b[12].parquet", "b1.parquet"),
        ("q?*.parquet", "q?m.parquet", "qxm.parquet"),
        ("d[1]*", "d1/a.parquet"),
    ):
        for start in ("s3://odd/in", str(tmp_path / "in")):
            file_names = [file.name.removeprefix(f"{start}/") for file in find(tmp_path, f"{start}/{text}").files]
            assert file_names == expected, (start, text)
    store.requests.clear()
    find(tmp_path, "s3://odd/in/q?*.parquet")
    assert store.count("GET", "list-type=2") == 4  # once, and what would tell that the bucket is a table
    store.put("odd/in/t[1]/_delta_log/0.json", b"{}")
    with pytest.raises(DataError, match=r"s3://odd/in/t\[1\] cannot be read as a table of Delta Lake"):
        find(tmp_path, "s3://odd/in/t[1]")


def test_a_name_that_looks_like_a_pattern_needs_no_listing(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("unlisted")
    store.put("unlisted/b[1].parquet", parquet(1))
    store.put("unlisted/b1.parquet", parquet(2))
    refused = Fault(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
    store.fault = lambda _method, path: refused if "list-type" in path else None
    (file,) = find(tmp_path, "s3://unlisted/b[1].parquet").files
    assert content(file)["id"].to_list() == [11, 12]
    with pytest.raises(PermissionDenied, match=r"listing s3://unlisted/: AccessDenied: no"):
        find(tmp_path, "s3://unlisted/b[12].parquet")


def test_objects_of_other_endings_are_told(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("others")
    store.put("others/in/a.parquet", parquet())
    store.put("others/in/notes.txt", b"by hand")
    (skipped,) = find(tmp_path, "s3://others/in").skipped
    assert (str(skipped.path), skipped.is_parquet) == ("s3://others/in/notes.txt", False)
    store.put("others/in/part-0", parquet(1))
    with pytest.raises(DataError, match=r"s3://others/in/part-0, …; 1 of them holds Parquet, 1 of 2 Parquet files"):
        find(tmp_path, "s3://others/in")
    store.put("others/elsewhere/part-0", parquet())
    with pytest.raises(
        NoInputError, match=r"no object matches s3://others/else\*: 1 below it have other endings, such as s3"
    ):
        find(tmp_path, "s3://others/else*")


def test_other_formats_are_read_from_stores(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("texts")
    store.put("texts/rows.csv", b"id,score,label\n1,0.9,true\n2,0.2,false\n")
    (file,) = find(tmp_path, "s3://texts/rows.csv").files
    assert (file.name, file.rows, file.schema.names) == ("s3://texts/rows.csv", 2, ["id", "score", "label"])
    assert set(file.identity) == {"size", "etag"}


def test_a_name_that_no_file_can_have_is_read(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("long")
    store.put(f"long/{'ü' * 400}.parquet", parquet())
    (file,) = find(tmp_path, "s3://long").files
    assert content(file).height == 2


def test_a_broken_object_is_called_by_its_address(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("broken")
    store.put("broken/a.parquet", b"no Parquet at all")
    with pytest.raises(DataError, match=r"s3://broken/a\.parquet is not a whole Parquet file \(17 bytes"):
        find(tmp_path, "s3://broken/a.parquet")


@pytest.mark.parametrize("log", ["_delta_log/0.json", ".hoodie/a", "metadata/v1.metadata.json"])
@pytest.mark.parametrize("path", ["", "/t", "/t/day=1", "/t/day=1/a.parquet", "/t/*/a.parquet"])
def test_a_table_on_a_store_is_no_plain_parquet(store: ObjectStore, tmp_path: Path, log: str, path: str) -> None:
    bucket = store.bucket(f"table-{log[0].strip('_.') or log[1]}")
    store.put(f"{bucket}/t/day=1/a.parquet", parquet())
    store.put(f"{bucket}/t/{log}", b"{}")
    is_read = path == "/t" and not log.startswith(".hoodie")
    words = r"cannot be read as (a|the metadata of an?) " if is_read else rf"s3://{bucket}/t is "
    with pytest.raises(DataError, match=words) as caught:
        find(tmp_path, f"s3://{bucket}{path}")
    assert (f'path = "s3://{bucket}/t"' in str(caught.value.remedy)) == (not is_read and ".hoodie" not in log)


def always(status: int, code: str, words: str) -> Any:  # noqa: ANN401 - a rule of faults
    return lambda _method, _path: Fault(status, f"<Error><Code>{code}</Code><Message>{words}</Message></Error>")


@pytest.mark.parametrize(
    ("status", "code", "kind", "exit_code"),
    [
        (500, "InternalError", UnavailableError, 69),
        (503, "SlowDown", UnavailableError, 69),
        (403, "AccessDenied", PermissionDenied, 77),
        (400, "AuthorizationHeaderMalformed", ConfigError, 78),
    ],
)
def test_what_a_store_refuses_is_told_without_secrets(
    store: ObjectStore, tmp_path: Path, status: int, code: str, kind: type[ThresherError], exit_code: int
) -> None:
    store.fault = always(status, code, f"no: {SECRET}")
    with pytest.raises(kind) as caught:
        find(tmp_path, "s3://plain/*/day=1")
    assert caught.value.message == f"input predictions: listing s3://plain/: {code}: no: …"
    assert caught.value.code == exit_code
    store.fault = lambda method, path: always(status, code, SECRET)(method, path) if "%20" in path else None
    with pytest.raises(kind) as caught:
        find(tmp_path)
    assert caught.value.message.startswith(f"input predictions: reading s3://plain/in/{NAMES[0]}: ")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert list((tmp_path / "copies").glob("*.part")) == []


@pytest.mark.usefixtures("store")
def test_what_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        NoInputError, match=r"listing s3://no-such-bucket/a: NoSuchBucket: The specified bucket does not"
    ):
        find(tmp_path, "s3://no-such-bucket/a")
    with pytest.raises(NoInputError, match=r"no object matches s3://plain/elsewhere"):
        find(tmp_path, "s3://plain/elsewhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match=r"listing s3://plain/in: HTTP error: error sending request"):
        find(tmp_path)


def test_faults_that_pass_are_tried_again(store: ObjectStore, tmp_path: Path) -> None:
    faults = iter([Fault(), Fault(500), None, Fault(cut=True), None, Fault(), Fault(429)])
    store.fault = lambda _method, _path: next(faults, None)
    (file,) = find(tmp_path, "s3://plain/in/day=3").files
    assert content(file).equals(pl.read_parquet(io.BytesIO(parquet(3))))
    assert next(faults, "used up") == "used up"
    cuts = iter([Fault(cut=True), Fault(cut=True)])
    store.fault = lambda _method, path: next(cuts, None) if path.endswith(".parquet") else None
    (copied,) = find(tmp_path / "again", "s3://plain/in/day=3").files
    for copy in (file, copied):
        assert content(copy).equals(pl.read_parquet(io.BytesIO(parquet(3))))
    assert next(cuts, "used up") == "used up"
    store.fault = lambda method, path: Fault(cut=True) if (method, path.endswith(".parquet")) == ("GET", True) else None
    with pytest.raises(UnavailableError, match=r"reading s3://plain/in/day=2/x\.parquet: ") as caught:
        find(tmp_path, "s3://plain/in/day=2/x.parquet")
    assert caught.value.code == 69


def test_an_object_that_is_replaced_meanwhile_stops_the_run(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("moving")
    store.put("moving/a.parquet", parquet())

    def replace(method: str, path: str) -> None:
        if (method, path) == ("GET", "/moving/a.parquet"):
            store.put("moving/a.parquet", parquet(1))

    store.fault = replace
    with pytest.raises(DataError, match=r"s3://moving/a\.parquet was replaced while it was read"):
        find(tmp_path, "s3://moving/a.parquet")
    store.fault = lambda _method, _path: None
    large = io.BytesIO()
    pl.DataFrame({"id": pl.int_range(100_000, eager=True).hash()}).write_parquet(large)
    store.put("moving/a.parquet", large.getvalue())
    (file,) = find(tmp_path, "s3://moving/a.parquet").files
    store.put("moving/a.parquet", parquet(2))
    with pytest.raises(DataError, match=r"s3://moving/a\.parquet was replaced while it was read"):
        content(file)


def test_of_a_wide_file_the_footer_and_the_columns_that_are_read_are_copied(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("wide")
    n_rows = 200_000
    numbers = pl.int_range(n_rows, eager=True)
    wide = pl.DataFrame({f"unread_{number}": (numbers * (number + 7919)).hash() for number in range(38)})
    wide = wide.with_columns(score=(numbers.hash(1) % 10_000) / 10_000, label=numbers.hash(2) % 3 == 0)
    wide.write_parquet(tmp_path / "wide.parquet", row_group_size=50_000)
    content = (tmp_path / "wide.parquet").read_bytes()
    store.put("wide/a.parquet", content)
    stage = {"thresholds": [0.25, 0.5], "outcomes": False}
    config = stage_config(tmp_path / "remote", "threshold_sweep", {}, predictions="s3://wide/a.parquet", **stage)
    received = store.received
    run = pipeline.run(config)
    received = store.received - received
    local = stage_config(tmp_path / "local", "threshold_sweep", {}, predictions=str(tmp_path / "wide.parquet"), **stage)
    assert contents(run) == contents(run_stages(local))
    metadata = pq.read_metadata(tmp_path / "wide.parquet")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(metadata.num_columns)]
    bound = sum(each.total_compressed_size for each in chunks if each.path_in_schema in {"score", "label"})
    assert bound + metadata.serialized_size <= received <= 1.2 * bound
    assert received < len(content) / 10
    (copy,) = (tmp_path / "remote").parent.rglob("*.data")
    assert copy.stat().st_size == len(content)
    assert copy.stat().st_blocks * 512 < len(content) / 10  # the rest is a hole


def test_copies_are_checked_used_again_and_removed(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("copies")
    for name in "abc":
        store.put(f"copies/{name}.parquet", parquet())
    for file in find(tmp_path, "s3://copies").files:
        content(file)
    n_requests = store.count("GET", "copies/")
    for file in find(tmp_path, "s3://copies").files:
        content(file)
    assert store.count("GET", "copies/") == n_requests
    data = sorted((tmp_path / "copies").glob("*.data"))
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "copies",)} == {0}
    data[0].write_bytes(parquet(1))  # as long as it was
    data[1].with_suffix(".json").write_text("{")
    assert [content(file)["id"].to_list() for file in find(tmp_path, "s3://copies").files] == [[1, 2]] * 3
    assert store.count("GET", "copies/") > n_requests
    store.put("copies/a.parquet", parquet(2))
    left = [tmp_path / "copies" / name for name in ("thresher-rows-old", "thresher-rows-new")]
    for folder in left:  # of runs that were killed
        folder.mkdir()
        (folder / "a.parquet").touch()
    os.utime(left[0], (0, 0))
    kept = find(tmp_path, "s3://copies", limit=1).files
    assert [folder.exists() for folder in left] == [False, True]
    shutil.rmtree(left[1])
    assert list((tmp_path / "copies").glob("*.data")) == []
    assert content(kept[0])["id"].to_list() == [21, 22]
    assert [content(file).height for file in kept] == [2, 2, 2]  # what a run reads is its own
    del file, kept
    assert {path.suffix for path in (tmp_path / "copies").iterdir()} <= {".data", ".json"}


@pytest.mark.usefixtures("store")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("a file")
    with pytest.raises(StorageError, match=r"copying s3://plain/in/day=3/z\.parquet to \S*copies: "):
        find(tmp_path, "s3://plain/in/day=3/z.parquet")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://", "s3:// names no bucket"),
        ("s3:///key", "s3:///key names no bucket"),
        ("s3://b*/x", "names no bucket"),
        (f"s3://key:{SECRET.partition('/')[0]}@bucket/x", "has credentials in it"),
        ("s3://bucket/a//b", "has an empty name"),
        ("s3://bucket/../b", "has an empty name, . or .. in its key"),
        ("az://container/x", "Account must be specified"),
        ("s3a://bucket/x", "is on a remote store (s3a), which is not supported"),
        ("https://host/x", "is on a remote store (https), which is not supported"),
    ],
)
@pytest.mark.usefixtures("store")
def test_an_address_that_means_nothing_is_refused(tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find(tmp_path, path)
    assert words in caught.value.message
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match="version has no effect: s3://plain/in is no table"):
        find(tmp_path, version=1)


def test_the_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match="s3://b/x needs the package obstore, which is not installed") as caught:
        find(tmp_path, "s3://b/x")
    assert caught.value.remedy == 'Install it: pip install "thresher[remote]"'


def test_google_buckets_are_read_likewise(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_BASE_URL", store.door)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    assert [file.name for file in find(tmp_path, "gs://plain/in/day=3").files] == ["gs://plain/in/day=3/z.parquet"]


@pytest.mark.parametrize(("size", "number"), [("20GB", 20 * 1000**3), ("1.5 MiB", 3 << 19), ("7 kb", 7000)])
def test_sizes_are_read(size: str, number: int) -> None:
    assert bytes_of(size) == number


def test_the_copies_are_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Copies().folder == tmp_path / "thresher" / "objects"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Copies().folder == Path.home() / ".cache" / "thresher" / "objects"


def test_objects_that_have_answered_are_not_read_again(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("nights")
    for number in range(3):
        store.put(f"nights/day={number}/x.parquet", parquet(number))
    stage = {"predictions": "s3://nights", "method": "binned", "outcomes": False, "thresholds": [0.5], "by": ["day"]}
    config = stage_config(tmp_path, "threshold_sweep", {}, **stage)

    def night() -> tuple[int, int]:
        run = pipeline.run(config)
        assert contents(run) == contents(run_stages(config))
        facts = json.loads((run.path / "run.json").read_text())["reused"]["threshold_sweep"]["predictions"]
        return facts["files"], facts["files_read"]

    assert night() == (3, 3)
    store.put("nights/day=3/x.parquet", parquet(3))
    assert night() == (4, 1)
    other = io.BytesIO()
    ROWS.with_columns(pl.col("id"), ~pl.col("label")).write_parquet(other)
    store.put("nights/day=0/x.parquet", other.getvalue())
    assert night() == (4, 1)
