"""What must hold for a results folder at any moment, checked without the package's own code."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq

from pipeline.storage.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NUMBERS = count()


@dataclass(frozen=True)
class Visible:
    """What a reader of the catalog sees."""

    run_id: str
    generation: int
    folder: Path
    hashes: dict[str, str]


def assert_results_ok(root: Path, *, crashed: bool = False) -> Visible:
    """The catalog shows one whole, verified run; nothing partial lies about.

    Args:
        root: The results folder.
        crashed: Whether a writer was just ended by force: then the pointer may lag, and a whole run folder that no
            catalog names may wait for the next run.
    """
    assert not (root / "catalog.duckdb.wal").exists()
    with _attached(root / "catalog.duckdb") as reader:
        visible = _visible(root, reader)
        if not crashed:
            _assert_history_whole(root, reader)
    named = {entry["path"] for entry in read_json(visible.folder / "manifest.json")["files"]}
    for folder in (root / "runs").iterdir():
        _assert_run_whole(folder)
    assert {*named, "manifest.json"} == {
        path.relative_to(visible.folder).as_posix() for path in visible.folder.rglob("*") if path.is_file()
    }
    _assert_latest_leads_to_a_run(root, visible.folder, crashed=crashed)
    if not crashed:
        pointer = read_json(root / "CURRENT")
        assert (pointer["generation"], pointer["run_id"]) == (visible.generation, visible.run_id)
        assert pointer["manifest_sha256"] == sha256(visible.folder / "manifest.json")
        assert_tidy(root, since=read_json(visible.folder / "manifest.json")["published_at"])
    return visible


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")


@contextmanager
def _attached(catalog: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a catalog, as any reader has it; to start a database for each takes longer than to read it."""
    alias, path = f"catalog_{next(_NUMBERS)}", str(catalog).replace("'", "''")
    with _database().cursor() as reader:
        reader.execute(f"ATTACH '{path}' AS {alias} (READ_ONLY)")
        try:
            reader.execute(f"USE {alias}")
            yield reader
        finally:
            reader.execute("USE memory")
            reader.execute(f"DETACH {alias}")


def _assert_latest_leads_to_a_run(root: Path, folder: Path, *, crashed: bool) -> None:
    """The stable path leads to the visible run; after a crash it may be missing, or lead to the run before it."""
    latest = root / "latest"
    if not (crashed and not latest.is_symlink()):
        leads_to = latest.resolve(strict=True)
        assert leads_to == folder.resolve() or (crashed and leads_to.parent == folder.resolve().parent)


def assert_tidy(root: Path, *, since: str = "") -> None:
    """No leftover of a crashed run in any file or folder, but for stages of the last one, which the next can take over.

    Args:
        root: The results folder.
        since: When the visible run was published: only a run that began later may have left stages.
    """
    staging = root / ".staging"
    unfinished = {path.relative_to(staging).parts[0] for path in staging.rglob("*.parquet")}
    assert unfinished <= set(Layout(root).unfinished()[-1:])
    assert all(read_json(root / "attempts" / f"{run_id}.json")["started_at"] > since for run_id in unfinished)
    written = [path for path in root.rglob(".*") if path.suffix == ".tmp" or path.name.startswith(".probe")]
    assert {path.parent.name for path in written} <= {".cache", "attempts"}  # removed by runs with answers; later
    assert {path.name for path in root.iterdir()} <= {
        "catalog.duckdb",
        "CURRENT",
        "latest",
        "report.html",
        "runs",
        "attempts",
        "chain",  # of earlier versions
        ".staging",
        ".cache",
        ".lock",
    }


def _assert_history_whole(root: Path, reader: duckdb.DuckDBPyConnection) -> None:
    """The history has the run folders that are there, but for runs that it says it leaves out, and no other run."""
    paths_and_ids = reader.execute("SELECT path FROM runs UNION SELECT DISTINCT run_id FROM runs").fetchall()
    in_history = reader.execute("SELECT DISTINCT run_id FROM history.inputs").fetchall()
    assert set(in_history) <= set(paths_and_ids)
    marked = reader.execute("SELECT run_id FROM runs WHERE len(left_out) > 0").fetchall()
    present = {(path.name.partition("-")[2],) for path in (root / "runs").iterdir()}
    assert present - set(marked) <= set(in_history) <= present


def _visible(root: Path, reader: duckdb.DuckDBPyConnection) -> Visible:
    row = reader.execute("SELECT run_id, generation FROM runs ORDER BY generation DESC LIMIT 1").fetchone()
    assert row is not None
    run_id, generation = row
    folder = root / "runs" / f"{generation:08d}-{run_id}"
    files = [entry for entry in read_json(folder / "manifest.json")["files"] if entry["table"]]
    rows: dict[str, int] = {}
    for entry in files:
        rows[entry["table"]] = rows.get(entry["table"], 0) + entry["rows"]
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM \"{table}\"" for table in rows)  # noqa: S608 - names from the manifest
    assert dict(reader.execute(counts).fetchall()) == rows
    for rows_in, n_rows in reader.execute(
        "SELECT any_value(rows_in), sum(n_rows) FROM inputs GROUP BY stage, input"
    ).fetchall():
        assert rows_in == n_rows
    return Visible(run_id, generation, folder, {entry["path"]: entry["sha256"] for entry in files})


def _assert_run_whole(folder: Path) -> None:
    manifest = read_json(folder / "manifest.json")
    assert folder.name == f"{manifest['generation']:08d}-{manifest['run_id']}"
    for entry in manifest["files"]:
        path = folder / entry["path"]
        assert path.stat().st_size == entry["size"]
        assert sha256(path) == entry["sha256"]
        if entry["table"]:
            metadata = pq.read_metadata(path)
            assert metadata.num_rows == entry["rows"]
            assert metadata.schema.names == list(entry["schema"])


def attempts(root: Path) -> list[dict[str, Any]]:
    """The records of all attempts, in order of their start."""
    records = [read_json(path) for path in (root / "attempts").glob("*.json")]
    return sorted(records, key=lambda record: str(record["started_at"]))


def read_json(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
