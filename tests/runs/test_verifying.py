"""`verify_inputs`: content that changed without a sign is found before anything is counted or found unchanged."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from pipeline.base.errors import DataError
from runs.nights import record_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

SCORES = [number / 20 for number in range(20)]


def _write(path: Path, *, checksums: bool = True) -> None:
    table = pa.table({"score": SCORES, "label": [number % 2 == 0 for number in range(20)], "unused": SCORES})
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": checksums}
    pq.write_table(table, path, **options)


def _flip(path: Path, column: int = 0) -> None:
    """Flip a bit in the last value of a column; size and modification time stay."""
    chunk = pq.read_metadata(path).row_group(0).column(column)
    at = chunk.data_page_offset + chunk.total_compressed_size - 8
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _sidecar(path: Path, name: str = "") -> Path:
    sidecar = path.with_name(f"{path.name}.sha256")
    sidecar.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name or path.name}\n")
    return sidecar


def _run(folder: Path, method: str | None, *paths: object, **keys: Any) -> Run:  # noqa: ANN401 - TOML values
    stage = {"kind": "threshold_sweep", "uncertainty": "none", "outcomes": False, "thresholds": [0.25, 0.75]}
    config = {"output": str(folder / "results"), "stages": [stage | {"name": "a", "predictions": list(paths)}]}
    return thresher.run(config | keys | ({} if method is None else {"verify_inputs": method}))


def _attempts(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "results" / "attempts").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_bytes()) for path in paths]


@pytest.mark.wide
def test_by_default_nothing_is_verified_and_the_record_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _write(path)
    record = record_of(_run(tmp_path, None, str(path)))
    assert record["verify_inputs"] == "none"
    assert not {"verified"} & record.keys()
    assert "sha256" not in record["inputs"][0]
    with thresher.open_results(tmp_path / "results") as connection:
        assert connection.sql("SELECT verify_inputs FROM runs").fetchall() == [("none",)]


@pytest.mark.wide
def test_crc_finds_a_flipped_bit_also_when_nothing_else_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _write(path)
    run = _run(tmp_path, "crc", str(path))
    assert record_of(run)["verified"] == {"columns_verified": 2, "columns_without_checksums": 0}
    assert not [text for text in run.warnings if "verify" in text]
    _flip(path, column=2)  # nothing reads it
    _run(tmp_path, "crc", str(path))
    _flip(path)
    with pytest.raises(DataError, match=r"input predictions: .*a.parquet is damaged: column 'score', row group 1 of 1"):
        _run(tmp_path, "crc", str(path))
    assert _attempts(tmp_path)[-1]["exit"] == 65


@pytest.mark.wide
def test_crc_counts_files_without_checksums_and_verifies_the_others(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "c.csv"]
    _write(paths[0])
    _write(paths[1], checksums=False)
    pl.read_parquet(paths[0]).write_csv(paths[2])
    warning = (
        "a: verify_inputs: input predictions: 2 of 3 files have no page checksums, so nothing in them was verified"
    )
    run = _run(tmp_path, "crc", *map(str, paths))
    assert warning in run.warnings
    assert warning.removeprefix("a: ") in record_of(run)["results"]["a"]["warnings"]
    assert warning not in _run(tmp_path, "none", *map(str, paths[:1])).warnings
    _flip(paths[0])
    with pytest.raises(DataError, match="CRC checksum verification failed"):
        _run(tmp_path, "crc", *map(str, paths))


@pytest.mark.wide
def test_another_method_alone_publishes_nothing_and_still_verifies(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _write(path, checksums=False)
    os.utime(path)
    before = _run(tmp_path, "none", str(path))
    for method in ("crc", "sha256"):
        run = _run(tmp_path, method, str(path))
        assert (run.status, run.path) == ("unchanged", before.path)
        assert _attempts(tmp_path)[-1]["verify_inputs"] == method
        assert any("1 of 1 file has no page checksums" in text for text in run.warnings) is (method == "crc")
    _flip(path)  # only the attempt that published nothing knows the hash
    with pytest.raises(DataError, match=r"has changed since run .*, although its size and its time have not"):
        _run(tmp_path, "sha256", str(path))


@pytest.mark.wide
def test_sha256_is_recorded_and_compared_with_the_last_run(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _write(path)
    run = _run(tmp_path, "sha256", str(path))
    record = record_of(run)
    assert record["inputs"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["verified"]["files_compared_with_nothing"] == 1
    stat = path.stat()
    _flip(path)
    with pytest.raises(DataError, match=f"has changed since run {run.run_id}") as fault:
        _run(tmp_path, "sha256", str(path), cache=False)
    assert "touch it" in str(fault.value)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    _run(tmp_path, "sha256", str(path))
    assert _attempts(tmp_path)[-1]["inputs"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.wide
def test_sha256_is_compared_with_the_file_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    path = folder / "a.parquet"
    _write(path)
    sidecar = _sidecar(path)
    verified = record_of(_run(tmp_path, "sha256", str(path)))["verified"]
    assert (verified["files_equal_to_sidecar"], verified["files_compared_with_nothing"]) == (1, 0)
    assert record_of(_run(tmp_path, "sha256", str(folder), cache=False))["skipped"] == []
    _flip(path, column=2)
    with pytest.raises(DataError, match=r"a.parquet.sha256 says"):
        _run(tmp_path, "sha256", str(path))
    sidecar.write_text("no hash\n")
    with pytest.raises(DataError, match=r"does not tell the SHA-256 of a.parquet\nWrite it with: sha256sum"):
        _run(tmp_path, "sha256", str(path))


@pytest.mark.wide
def test_a_damaged_input_stops_only_its_stage_where_others_are_published(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        _write(path)
    _flip(paths[0])
    other = {"kind": "threshold_sweep", "uncertainty": "none", "outcomes": False, "thresholds": [0.5], "name": "b"}
    stages = [other | {"name": "a", "predictions": str(paths[0])}, other | {"predictions": str(paths[1])}]
    run = _run(tmp_path, "crc", stages=stages, on_error="publish_others")
    assert [failure.stage for failure in run.failures] == ["a"]
    assert run.exit_code == 65
    assert [stage.name for stage in run.stages] == ["b"]


def test_frames_are_not_hashed(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": SCORES, "label": [number % 2 == 0 for number in range(20)]})
    for method in ("crc", "sha256"):
        record = record_of(_run(tmp_path, method, frame))
        assert "verified" not in record
        assert "sha256" not in record["inputs"][0]
