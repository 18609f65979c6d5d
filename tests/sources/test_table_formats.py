"""Tables of Delta Lake and Apache Iceberg give what the same rows in plain Parquet give."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.calls import call
from delta_logs import edited_log, mark, with_vectors, write_log
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.types import StringType
from running import run_stages, stage_config

import pipeline
from pipeline.base.errors import ConfigError, DataError, NoInputError
from pipeline.engines.expression_types import truths
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input
from pipeline.sources.parquet_files import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.runs.stage_results import Run

ROWS = pl.DataFrame(
    {
        "id": range(8),
        "score": [0.9, 0.2, 0.7, 0.8, 0.4, 0.6, 0.1, 0.3],
        "label": [True, False, True, False, True, False, False, True],
        "day": [date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 2), None] * 2,
        "part": [1, 1, 2, 2] * 2,
        "site": ["a b/=%", "ü", "a b/=%", "ü"] * 2,
    }
)
LATER = ROWS.with_columns(pl.col("id") + 8, pl.col("score") / 2, shade=pl.lit("dark"))
RENAMED = ROWS.rename({"site": "place", "day": "part", "part": "day"})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions: 0 rows, 1 as many with one more column, 2 without some of them, 3 with fewer files."""
    folder = tmp_path_factory.mktemp("delta lake") / "t ü"
    write_deltalake(folder, ROWS, partition_by=["day", "part", "site"])
    write_deltalake(folder, LATER, mode="append", schema_mode="merge")
    DeltaTable(folder).delete("id = 2 OR id = 9")
    return folder


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an Iceberg table with the same rows."""
    folder = tmp_path_factory.mktemp("ice berg")
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=str(folder))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=ROWS.to_arrow().schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
        spec.add_identity("part")
    table.append(ROWS.to_arrow())
    with table.update_schema() as schema:
        schema.union_by_name(LATER.to_arrow().schema)
    table.append(LATER.to_arrow())
    table.delete("id = 2 OR id = 9")
    renamed = catalog.create_table("n.renamed", schema=ROWS.to_arrow().schema)
    renamed.append(ROWS.to_arrow())
    for name, later in (("site", "place"), ("day", "date"), ("part", "day"), ("date", "part")):
        with renamed.update_schema() as schema:
            schema.rename_column(name, later)
    renamed.append(RENAMED.with_columns(pl.col("id") + 10).to_arrow())
    dropped = catalog.create_table("n.dropped", schema=ROWS.to_arrow().schema)
    dropped.append(ROWS.to_arrow())
    with dropped.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("part")
    with dropped.update_schema() as schema:
        schema.add_column("part", StringType())
    catalog.close()
    return folder / "n" / "t"


def find(path: Path, **keys: Any) -> Listing:  # noqa: ANN401 - keys of an input
    return Listing(
        Input.model_validate({"path": str(path), **keys}), path.parent, name="predictions", truths=truths
    ).opened()


def rows_of(listing: Listing, *columns: str) -> pl.DataFrame:
    """The rows of a table, all columns or some, as they are brought here."""
    (file,) = listing.files
    assert isinstance(file, DataFile)
    assert file.fetch is not None
    file.fetch(columns or file.schema.names)
    return pl.read_parquet(file.path)


def sweep(folder: Path, **spec: Any) -> Run:  # noqa: ANN401
    spec = {"columns": {"weight": False}} | spec
    keys = {"thresholds": [0.25, 0.5], "by": [["day", "part"], ["site"], ["shade"]]}
    return run_stages(stage_config(folder, "threshold_sweep", {}, predictions=spec, **keys))


def contents(run: Run) -> dict[str, bytes]:
    files = sorted(path for path in run.path.rglob("*.parquet") if path.parent.name != "inputs")
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("kind", ["table", "snapshots"])
def test_a_table_gives_the_bytes_of_its_rows_in_parquet(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = "day >= DATE '2026-11-02' AND part = 2 OR day IS NULL"
    now = pl.concat([ROWS, LATER], how="diagonal").filter(~pl.col("id").is_in([2, 9]))
    now.write_parquet(tmp_path / "plain.parquet")
    from_table = sweep(tmp_path / "table", path=str(request.getfixturevalue(kind)), where=where)
    from_file = sweep(tmp_path / "file", path=str(tmp_path / "plain.parquet"), where=where)
    assert contents(from_table) == contents(from_file)
    used, left_out = (
        run.table("inputs").filter(status="used").select("rows_used", "files_left_out").row(0)
        for run in (from_table, from_file)
    )
    assert (used[0], left_out) == (left_out[0], (left_out[0], 0))
    assert used[1] > 0


def test_a_folder_whose_name_looks_encoded_is_not_taken_for_another(table: Path, tmp_path: Path) -> None:
    for name in ("x%41y", "xAy", "50% off"):
        shutil.copytree(table, tmp_path / name)
    with pytest.raises(DataError, match=r"deltalake takes %41 in .* for a character, and reads another folder"):
        find(tmp_path / "x%41y")
    assert [sum(file.rows for file in find(tmp_path / name).files) for name in ("xAy", "50% off")] == [14, 14]


def test_versions_of_a_delta_table(table: Path) -> None:
    log = DeltaTable(table).history()
    times = {commit["version"]: datetime.fromtimestamp(commit["timestamp"] / 1000, UTC) for commit in log}
    rows = {number: sum(file.rows for file in find(table, version=number).files) for number in times}
    assert list(rows.values())[::-1] == [8, 16, 14]
    assert sum(file.rows for file in find(table).files) == 14
    for number, moment in times.items():
        listing = find(table, timestamp=moment.isoformat())
        assert [each.version for each in listing.tables] == [number]
    with pytest.raises(NoInputError, match=r"has no version 9: its latest is 2"):
        find(table, version=9)
    with pytest.raises(NoInputError, match=r"has no version that was there at 2001-02-03T04:05:06Z"):
        find(table, timestamp="2001-02-03T04:05:06Z")


def test_snapshots_of_an_iceberg_table(snapshots: Path) -> None:
    newest = max((snapshots / "metadata").glob("*.metadata.json"))
    log = json.loads(newest.read_text())["snapshot-log"]
    numbers = [entry["snapshot-id"] for entry in log]
    assert [sum(file.rows for file in find(snapshots, version=number).files) for number in numbers][:2] == [8, 16]
    assert sum(file.rows for file in find(newest).files) == 14
    moment = datetime.fromtimestamp(log[0]["timestamp-ms"] / 1000, UTC).replace(tzinfo=None)
    (read,) = find(snapshots, timestamp=moment.isoformat(timespec="milliseconds")).tables
    assert read.record() == {
        "path": str(snapshots),
        "format": "Apache Iceberg",
        "version": numbers[0],
        "metadata": str(newest),
    }
    with pytest.raises(NoInputError, match="has no snapshot 5: it has "):
        find(snapshots, version=5)
    with pytest.raises(NoInputError, match="has no snapshot that was current at 2001-02-03"):
        find(snapshots, timestamp="2001-02-03")


def test_the_record_keeps_the_version(table: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"""
        [[stages]]
        kind = "threshold_sweep"
        predictions = {{ path = '{table}', timestamp = 2126-11-01T00:00:00Z }}
        thresholds = [0.5]
    """)
    run = pipeline.run(config)
    record = json.loads((run.path / "run.json").read_text())
    expected = {
        "stage": "threshold_sweep",
        "input": "predictions",
        "path": str(table),
        "format": "Delta Lake",
        "version": 2,
    }
    assert record["tables"] == [expected]
    assert f"predictions: version 2 of the Delta Lake table {table}" in call("check", config).out
    assert pipeline.run(config).status == "unchanged"
    assert call("explain", tmp_path / "results", "threshold_sweep").code == 0


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"version": 1, "timestamp": "2026-11-01"}, "two ways to name one version"),
        ({"version": True}, "valid integer"),
        ({"version": -1}, "greater than or equal to 0"),
        ({"timestamp": "yesterday"}, "'yesterday' is not a point in time"),
        ({"timestamp": 3}, "valid string"),
    ],
)
def test_a_version_that_means_nothing_is_refused(keys: dict[str, Any], words: str, table: Path) -> None:
    with pytest.raises(ValueError, match=words):
        find(table, **keys)
    with pytest.raises(ValueError, match="path names 2 places"):
        Input.model_validate({"path": ["a", "b"], "version": 1})


def test_a_version_of_plain_files_is_refused(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"version has no effect: \S*a\.parquet is no table of a table format"):
        find(tmp_path / "a.parquet", version=1)


@pytest.mark.parametrize(("kind", "library"), [("table", "deltalake"), ("snapshots", "pyiceberg.table")])
def test_a_library_that_is_missing_is_named(
    kind: str, library: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = request.getfixturevalue(kind)  # made while the library is there
    monkeypatch.setitem(sys.modules, library, None)
    extra = "delta" if kind == "table" else "iceberg"
    with pytest.raises(ConfigError, match=f"need the package {library.partition('.')[0]}") as caught:
        find(folder)
    assert caught.value.remedy == f'Install it: pip install "thresher[{extra}]"'


@pytest.mark.parametrize("kind", ["table", "snapshots"])
def test_only_the_columns_that_are_read_are_brought_here(kind: str, request: pytest.FixtureRequest) -> None:
    listing = find(request.getfixturevalue(kind))
    (file,) = listing.files
    assert isinstance(file, DataFile)
    assert not file.path.exists()
    first = rows_of(listing, "score", "unknown")
    assert (first.columns, first.height) == (["score"], 14)
    more = rows_of(listing, "id")
    assert more.columns == ["id", "score"]
    assert more["score"].equals(first["score"])  # always in the same order
    assert rows_of(find(request.getfixturevalue(kind))).select("id", "score").equals(more)
    assert rows_of(find(request.getfixturevalue(kind)), "unknown").height == 14


def test_a_config_is_proposed_from_a_table(table: Path) -> None:
    proposed = call("init", "threshold_sweep", "--from", table)
    assert proposed.code == 0, proposed.err
    assert "score" in proposed.out


def test_a_file_that_is_gone_is_told(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table, tmp_path / "t")
    listing = find(tmp_path / "t")
    for path in (tmp_path / "t").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(
        NoInputError, match=r"input predictions: \S*/t cannot be read as .*: a file of it is gone"
    ) as caught:
        rows_of(listing)
    assert "VACUUM" in str(caught.value.remedy)
    (tmp_path / "t" / "_delta_log" / "00000000000000000001.json").write_text("{")
    with pytest.raises(
        DataError, match=r"input predictions: \S*/t cannot be read as a table of Delta Lake: "
    ) as damaged:
        find(tmp_path / "t")
    assert len(damaged.value.message.splitlines()) == 1


def test_a_file_of_a_snapshot_that_is_gone_is_told(tmp_path: Path) -> None:
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    catalog.create_table("n.t", schema=ROWS.to_arrow().schema).append(ROWS.to_arrow())
    catalog.close()
    listing = find(tmp_path / "n" / "t")
    (path,) = (tmp_path / "n" / "t").rglob("*.parquet")
    path.unlink()
    with pytest.raises(NoInputError, match="cannot be read as a table of Apache Iceberg: a file of it is gone"):
        rows_of(listing)


def test_rows_that_vectors_mark_as_deleted_are_not_counted(table: Path, tmp_path: Path) -> None:
    log = with_vectors(table, tmp_path / "t")
    write_log(log)
    assert rows_of(find(tmp_path / "t")).height == 8  # the feature alone deletes nothing
    deleted = mark(log, 0, [1]) + mark(log, 2, [0])
    assert len(deleted) == 2
    ROWS.filter(~pl.col("id").is_in(deleted)).write_parquet(tmp_path / "plain.parquet")
    keys: dict[str, Any] = {"by": [["day", "part"], ["site"]], "thresholds": [0.25, 0.5]}
    runs = [
        run_stages(stage_config(tmp_path / name, "threshold_sweep", {}, predictions=str(tmp_path / path), **keys))
        for name, path in (("a", "t"), ("b", "plain.parquet"))
    ]
    assert contents(runs[0]) == contents(runs[1])
    listing = find(tmp_path / "t")
    assert [file.rows for file in listing.files] == [6]
    assert set(rows_of(listing, "id")["id"]) == {*range(8)} - {*deleted}


def test_a_night_sees_another_version(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table, tmp_path / "t")
    config = stage_config(tmp_path, "threshold_sweep", {}, predictions=str(tmp_path / "t"), thresholds=[0.5])
    nights = []
    for number in (3, 4):
        DeltaTable(tmp_path / "t").delete(f"id = {number}")
        nights.append(pipeline.run(config))
        assert pipeline.run(config).status == "unchanged"
        afresh = pipeline.run(config | {"output": str(tmp_path / "afresh")})
        assert contents(nights[-1]) == contents(afresh)
        shutil.rmtree(tmp_path / "afresh")
    assert [night.table("inputs").filter(status="used")["rows_used"].item() for night in nights] == [13, 12]
    assert call("explain", tmp_path / "results", "threshold_sweep").code == 0


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_read(mode: str, tmp_path: Path) -> None:
    names = {column: f"col-{number}" for number, column in enumerate(ROWS.columns)}
    columns = {name: column for column, name in names.items()}
    in_files = pl.concat([ROWS.rename(names), ROWS.rename(names).with_columns(pl.col("col-0") + 8)]).to_arrow()
    numbered = pa.schema(
        [
            field.with_metadata({b"PARQUET:field_id": str(number).encode()})
            for number, field in enumerate(in_files.schema, start=1)
        ]
    )
    write_deltalake(tmp_path / "made", in_files.cast(numbered), partition_by=["col-4"])
    log = edited_log(tmp_path / "made", tmp_path / "t", minReaderVersion=2, minWriterVersion=5)
    for path in (tmp_path / "t").rglob("*.parquet"):  # the library leaves the numbers out
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.cast(pa.schema([numbered.field(name) for name in rows.schema.names])), path)
    for action in log["actions"]:
        if "add" in action:
            action["add"]["size"] = (tmp_path / "t" / action["add"]["path"]).stat().st_size
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": mode}
            action["metaData"]["partitionColumns"] = ["part"]
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], start=1):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"other-{number}"
                    if (mode, number) == ("id", 1)
                    else field["name"],
                }
                field["name"] = columns[field["name"]]
            action["metaData"]["schemaString"] = json.dumps(schema)
    write_log(log)
    pl.concat([ROWS, ROWS.with_columns(pl.col("id") + 8)]).write_parquet(tmp_path / "plain.parquet")
    keys: dict[str, Any] = {"by": [["day", "part"], ["site"]], "thresholds": [0.25, 0.5]}
    runs = [
        run_stages(stage_config(tmp_path / name, "threshold_sweep", {}, predictions=str(tmp_path / path), **keys))
        for name, path in (("a", "t"), ("b", "plain.parquet"))
    ]
    assert contents(runs[0]) == contents(runs[1])


def test_renamed_columns_are_read_under_their_names_of_today(snapshots: Path, tmp_path: Path) -> None:
    pl.concat([RENAMED, RENAMED.with_columns(pl.col("id") + 10)]).write_parquet(tmp_path / "plain.parquet")
    keys: dict[str, Any] = {"by": [["day"], ["place"], ["part"]], "thresholds": [0.25, 0.5]}
    runs = [
        run_stages(stage_config(tmp_path / name, "threshold_sweep", {}, predictions=str(path), **keys))
        for name, path in (("a", snapshots.parent / "renamed"), ("b", tmp_path / "plain.parquet"))
    ]
    assert contents(runs[0]) == contents(runs[1])
    assert [file.schema.names for file in find(snapshots.parent / "renamed").files] == [RENAMED.columns]


def test_a_column_that_was_dropped_is_not_read_for_a_new_one_of_its_name(snapshots: Path) -> None:
    assert rows_of(find(snapshots.parent / "dropped"))["part"].to_list() == [None] * 8


def deletes(path: Path, **facts: Any) -> IcebergFile:  # noqa: ANN401 - facts of a file
    kind = {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PARQUET} | facts
    return IcebergFile.from_args(file_path=str(path), file_size_in_bytes=path.stat().st_size, **kind)


def test_rows_that_files_of_positions_mark_as_deleted_are_not_counted(
    snapshots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, all_ids = DataScan.plan_files, rows_of(find(snapshots), "id")["id"]
    marked = max((task.file for task in listed(find_scan(snapshots))), key=lambda file: file.record_count)
    inside = pl.read_parquet(marked.file_path, hive_partitioning=False)["id"]
    for number, pairs in enumerate(
        [[(marked.file_path, 1), ("elsewhere", 0)], [(marked.file_path, 0), (marked.file_path, 1)]]
    ):
        pl.DataFrame(pairs, ["file_path", "pos"], orient="row").write_parquet(tmp_path / f"{number}.parquet")
    chosen = {marked.file_path: {deletes(tmp_path / "0.parquet"), deletes(tmp_path / "1.parquet")}}

    def with_deletes(scan: DataScan) -> Iterator[FileScanTask]:
        return (FileScanTask(task.file, delete_files=chosen.get(task.file.file_path)) for task in listed(scan))

    monkeypatch.setattr(DataScan, "plan_files", with_deletes)
    listing = find(snapshots)
    assert [file.rows for file in listing.files] == [12]
    assert set(rows_of(listing, "id")["id"]) == {*all_ids} - {*inside[:2]}
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(NoInputError, match="a file of it is gone: "):
        find(snapshots)


def find_scan(path: Path) -> DataScan:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(str(max((path / "metadata").glob("*.metadata.json")))).scan()


def test_two_files_of_the_latest_metadata_are_told_apart(snapshots: Path, tmp_path: Path) -> None:
    shutil.copytree(snapshots / "metadata", tmp_path / "t" / "metadata")
    newest = max((tmp_path / "t" / "metadata").glob("*.metadata.json"))
    shutil.copy(newest, newest.with_name(f"{newest.name[:6]}zzz.metadata.json"))
    with pytest.raises(DataError, match="with 2 files of its latest metadata: ") as caught:
        find(tmp_path / "t")
    assert "Name the one that the catalog names" in str(caught.value.remedy)
    oldest = min((tmp_path / "t" / "metadata").glob("*.metadata.json"))
    for words in ("0", oldest.name, oldest.name.removesuffix(".metadata.json")):
        (tmp_path / "t" / "metadata" / "version-hint.text").write_text(f"{words}\n")
        assert find(tmp_path / "t").tables[0].record()["metadata"] == str(oldest)  # that of the empty table
    (tmp_path / "t" / "metadata" / "version-hint.text").write_text("nothing")
    with pytest.raises(DataError, match="with 0 files of its latest metadata: none"):
        find(tmp_path / "t")
    packed = oldest.with_name("00009-a.metadata.json.gz")
    packed.write_bytes(gzip.compress(newest.read_bytes()))
    assert sum(file.rows for file in find(packed).files) == 14
