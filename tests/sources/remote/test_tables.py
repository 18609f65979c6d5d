"""Tables of Delta Lake and Apache Iceberg on a store give what the same tables give here."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from delta_logs import mark, with_vectors
from deltalake import DeltaTable, write_deltalake
from object_store import SECRET, Fault, ObjectStore
from pyiceberg.catalog.sql import SqlCatalog
from running import run_stages, stage_config

import pipeline
from pipeline.base.errors import DataError, NoInputError, PermissionDenied, UnavailableError
from pipeline.engines.expression_types import truths
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input
from pipeline.sources.parquet_files import DataFile
from pipeline.sources.remote import Copies
from pipeline.sources.stores import Address, Bucket, Objects, address_in_table

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

ROWS = pl.DataFrame(
    {
        "id": range(8),
        "score": [0.9, 0.2, 0.7, 0.8, 0.4, 0.6, 0.1, 0.3],
        "label": [True, False, True, False, True, False, False, True],
        "day": [date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 2), None] * 2,
        "site": ["a b/=%", "ü", "a b/=%", "ü"] * 2,
    }
)
LATER = ROWS.with_columns(pl.col("id") + 8, pl.col("score") / 2, shade=pl.lit("dark"))


def upload(store: ObjectStore, folder: Path, bucket: str, prefix: str = "") -> None:
    store.bucket(bucket)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            store.put(f"{bucket}/{prefix}{path.relative_to(folder).as_posix()}", path.read_bytes())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, server: ObjectStore) -> Path:
    """A table of Delta Lake: version 0 rows, 1 as many, 2 without two of them and a checkpoint, 3 one row more."""
    folder = tmp_path_factory.mktemp("delta") / "t ü"
    write_deltalake(folder, ROWS, partition_by=["day", "site"])
    write_deltalake(folder, LATER, mode="append", schema_mode="merge")
    DeltaTable(folder).delete("id = 2 OR id = 9")
    DeltaTable(folder).create_checkpoint()
    write_deltalake(folder, LATER.head(1), mode="append")
    upload(server, folder, "lake", "deep/t ü/")
    upload(server, folder, "root")
    return folder


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory, server: ObjectStore) -> Path:
    """The folder of an Iceberg table on the store; beside it a table whose files say that they are here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        server.bucket("ice")
        access = {"s3.endpoint": server.address, "s3.access-key-id": "k", "s3.secret-access-key": "s"}
        options = access | {"s3.region": "us-east-1", "uri": "sqlite:///:memory:", "warehouse": "s3://ice/w"}
        catalog = SqlCatalog("test", **options)
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema=ROWS.to_arrow().schema)
        with table.update_spec() as spec:
            spec.add_identity("day")
        table.append(ROWS.to_arrow())
        with table.update_schema() as schema:
            schema.union_by_name(LATER.to_arrow().schema)
        table.append(LATER.to_arrow())
        table.delete("id = 2 OR id = 9")
        catalog.close()
    folder = tmp_path_factory.mktemp("ice")
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=str(folder))
    catalog.create_namespace("n")
    catalog.create_table("n.here", schema=ROWS.to_arrow().schema).append(ROWS.to_arrow())
    catalog.close()
    upload(server, folder / "n" / "here", "ice", "moved/")
    return folder


def parquet() -> bytes:
    file = io.BytesIO()
    ROWS.write_parquet(file)
    return file.getvalue()


def find(folder: Path, path: str, **keys: Any) -> Listing:  # noqa: ANN401 - keys of an input
    spec = Input.model_validate({"path": path, **keys})
    return Listing(spec, folder, name="predictions", truths=truths, copies=Copies(folder / "copies")).opened()


def rows(folder: Path, path: str, **keys: Any) -> int:  # noqa: ANN401
    return sum(file.rows for file in find(folder, path, **keys).files)


def brought(listing: Listing, *columns: str) -> pl.DataFrame:
    """The rows of a table, as they are brought here."""
    (file,) = listing.files
    assert isinstance(file, DataFile)
    assert file.fetch is not None
    file.fetch(columns)
    return pl.read_parquet(file.path)


def sweep(folder: Path, **spec: Any) -> Run:  # noqa: ANN401
    spec = {"columns": {"weight": False}} | spec
    keys = {"thresholds": [0.25, 0.5], "by": [["day"], ["site"], ["shade"]]}
    return run_stages(stage_config(folder, "threshold_sweep", {}, predictions=spec, **keys))


def contents(run: Run) -> dict[str, bytes]:
    files = sorted(path for path in run.path.rglob("*.parquet") if path.parent.name != "inputs")
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}


@pytest.mark.usefixtures("table", "ice")
@pytest.mark.parametrize(
    ("address", "now"),
    [("s3://lake/deep/t ü", [ROWS, LATER, LATER.head(1)]), ("s3://ice/w/n/t/", [ROWS, LATER])],
)
def test_a_table_on_a_store_gives_the_bytes_of_its_rows_in_parquet(
    store: ObjectStore, tmp_path: Path, address: str, now: list[pl.DataFrame]
) -> None:
    where = "day >= DATE '2026-11-02' OR day IS NULL"
    kept = pl.concat(now, how="diagonal").filter(~pl.col("id").is_in([2, 9]))
    kept.write_parquet(tmp_path / "plain.parquet")
    from_table = sweep(tmp_path / "table", path=address, where=where)
    from_file = sweep(tmp_path / "file", path=str(tmp_path / "plain.parquet"), where=where)
    assert contents(from_table) == contents(from_file)
    left_out = from_table.table("inputs").filter(status="used")["files_left_out"].item()
    assert left_out > 0
    store.requests.clear()
    config = stage_config(tmp_path / "table", "threshold_sweep", {}, predictions=address, thresholds=[0.5])
    published = pipeline.run(config)
    text = (published.path / "run.json").read_text()
    record = json.loads(text)
    (of_table,) = record["tables"]
    assert of_table["path"] == address.removesuffix("/")
    assert of_table["format"] == ("Delta Lake" if "lake" in address else "Apache Iceberg")
    assert [file["path"] for file in record["inputs"]] == [of_table["path"]]
    assert SECRET not in text
    assert pipeline.run(config).status == "unchanged"
    assert call("explain", tmp_path / "table" / "results", "threshold_sweep").code == 0


def test_a_table_in_a_folder_of_another_name_is_refused(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("nested")
    store.put("nested/t/metadata/inner/_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(DataError, match="s3://nested/t/metadata/inner is a table of Delta Lake, whose log decides"):
        find(tmp_path, "s3://nested/t")


@pytest.mark.usefixtures("store")
def test_versions_of_a_delta_table_on_a_store(table: Path, tmp_path: Path) -> None:
    address = "s3://lake/deep/t ü"
    assert [rows(tmp_path, address, version=number) for number in range(4)] == [8, 16, 14, 15]
    assert rows(tmp_path, "s3://root") == 15
    log = {commit["version"]: commit["timestamp"] for commit in DeltaTable(table).history()}
    for number, milliseconds in log.items():
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
        assert [each.version for each in find(tmp_path, address, timestamp=moment).tables] == [number]
    with pytest.raises(NoInputError, match=r"s3://lake/deep/t ü has no version 9: its latest is 3"):
        find(tmp_path, address, version=9)


def test_rows_that_vectors_mark_as_deleted_are_not_counted(table: Path, store: ObjectStore, tmp_path: Path) -> None:
    log = with_vectors(table, tmp_path / "t")
    deleted = mark(log, 0, [1]) + mark(log, 1, [0], in_file=True)
    upload(store, tmp_path / "t", "marked")
    kept = ROWS.filter(~pl.col("id").is_in(deleted))
    rows = brought(find(tmp_path, "s3://marked"), "id")
    assert rows["id"].sort().to_list() == kept["id"].to_list()
    (vector,) = (tmp_path / "t").glob("*.bin")
    store.delete(f"marked/{vector.name}")
    with pytest.raises(
        NoInputError, match=r"s3://marked cannot be read as a table of Delta Lake: a file of it is gone"
    ):
        find(tmp_path, "s3://marked")


@pytest.mark.usefixtures("store", "ice")
def test_snapshots_of_an_iceberg_table_on_a_store(server: ObjectStore, tmp_path: Path) -> None:
    newest = max(key for key in server.keys("ice", "w/n/t/metadata/") if key.endswith(".metadata.json"))
    described = json.loads(server.get(f"ice/w/n/t/metadata/{newest}"))
    numbers = [entry["snapshot-id"] for entry in described["snapshot-log"]]
    rows_of_snapshots = [rows(tmp_path, "s3://ice/w/n/t", version=number) for number in numbers]
    assert (rows_of_snapshots[:2], rows_of_snapshots[-1]) == ([8, 16], 14)
    metadata = f"s3://ice/w/n/t/metadata/{newest}"
    of_file = find(tmp_path, metadata)
    assert sum(file.rows for file in of_file.files) == 14
    assert of_file.tables[0].record()["path"] == metadata
    server.put(f"ice/w/n/t/other/{newest}", json.dumps(described).encode())
    assert rows(tmp_path, f"s3://ice/w/n/t/other/{newest}") == 14
    server.put("ice/w/n/t/metadata/version-hint.text", b"0")
    assert rows(tmp_path, "s3://ice/w/n/t") == 0
    server.delete("ice/w/n/t/metadata/version-hint.text")
    server.put(f"ice/w/n/t/metadata/{newest[:6]}zz.metadata.json", b"{}")
    with pytest.raises(DataError, match="s3://ice/w/n/t is a table of Apache Iceberg with 2 files") as caught:
        find(tmp_path, "s3://ice/w/n/t")
    assert 'path = "s3://ice/w/n/t/metadata/….metadata.json"' in str(caught.value.remedy)
    server.delete(f"ice/w/n/t/metadata/{newest[:6]}zz.metadata.json")
    with pytest.raises(DataError, match=r"s3://ice/moved lists files elsewhere, such as (file://)?/"):
        find(tmp_path, "s3://ice/moved")
    folder = Address("s3", "ice", "t")
    files = Objects(folder, lambda address: Bucket(address, what="input p"), what="input p")
    for address in ("gs://b/k", "/k", "file:///k", "abfss://c@a.dfs.core.windows.net/k"):
        with pytest.raises(DataError, match=f"lists files elsewhere, such as {address}"):
            files.new_input(address)


def slow_down(key: str, _method: str, path: str) -> Fault | None:
    return Fault() if key in path else None


@pytest.mark.usefixtures("table", "ice")
def test_what_fails_on_the_way_is_told(store: ObjectStore, tmp_path: Path) -> None:
    for address, key in (
        ("s3://root", "_delta_log/0"),
        ("s3://root", ".parquet"),
        ("s3://ice/w/n/t", ".metadata.json"),
        ("s3://ice/w/n/t", ".avro"),
        ("s3://ice/w/n/t", ".parquet"),
    ):
        store.fault = partial(slow_down, key)
        words = rf"input predictions: (reading|looking at) {address}.*(SlowDown|503 Service Unavailable)"
        with pytest.raises(UnavailableError, match=words) as caught:
            brought(find(tmp_path / key.strip("/."), address), "score")
        assert SECRET not in str(caught.value)
        assert len(caught.value.message.splitlines()) == 1
    store.fault = lambda _method, _path: None
    first = next(key for key in store.keys("root", "") if key.startswith("day=2026-11-01"))
    content = store.get(f"root/{first}")
    store.delete(f"root/{first}")
    with pytest.raises(NoInputError, match=r"s3://root cannot be read as a table of Delta Lake: a file of it is gone"):
        brought(find(tmp_path, "s3://root"), "score")
    store.put(f"root/{first}", content)
    with pytest.raises(DataError, match=r"s3://root/ is a table of Delta Lake, whose log decides") as refused:
        find(tmp_path, "s3://root/day=2026-11-01")
    assert 'path = "s3://root/"' in str(refused.value.remedy)


@pytest.mark.usefixtures("ice")
def test_a_table_is_known_whatever_its_metadata_is_sorted_behind(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("many")
    for number in range(60):
        store.put(f"many/t/metadata/{number:02}-m0.avro", b"")
    store.put("many/t/metadata/v1.metadata.json", b"{}")
    store.put("many/t/data/a.parquet", parquet())
    with pytest.raises(DataError, match="s3://many/t is a table of Apache Iceberg, whose log decides"):
        find(tmp_path, "s3://many/t/data")
    with pytest.raises(DataError, match=r"s3://many/t cannot be read as a table of Apache Iceberg: "):
        find(tmp_path, "s3://many/t")


@pytest.mark.usefixtures("table")
def test_a_log_that_may_not_be_listed_stops_the_run(store: ObjectStore, tmp_path: Path) -> None:
    store.fault = lambda _method, path: Fault(403) if "_delta_log" in path else None
    inside = next(key for key in store.keys("root", "") if key.startswith("day=2026-11-01"))
    for address in ("s3://root", "s3://root/day=2026-11-01"):
        with pytest.raises(PermissionDenied, match="input predictions: listing s3://root"):
            find(tmp_path, address)
    assert rows(tmp_path, f"s3://root/{inside}") > 0  # who may get an object need not be able to list


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("s3a://b/k/a%20b", Address("s3", "b", "k/a%20b")),
        ("gs://b/k", Address("gs", "b", "k")),
        ("abfss://c@own.dfs.core.windows.net/k/x", Address("az", "c", "k/x")),
        ("wasbs://c@other.blob.core.windows.net/k/x", None),
        ("hdfs://b/k", None),
        ("s3://b", None),
        ("s3://key:secret@b/k", None),
        ("/b/k", None),
    ],
)
def test_addresses_of_other_writers_are_understood(
    written: str, address: Address | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "own")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    assert address_in_table(written) == address
