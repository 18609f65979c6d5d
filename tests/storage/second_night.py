"""A second night for published results: a run like the first, worse in one group, and an attempt that failed."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING

import polars as pl

from pipeline.storage.layout import MANIFEST, RUN_RECORD, Layout, new_run_id, run_name
from pipeline.storage.publish import verify

if TYPE_CHECKING:
    from pathlib import Path

FAILED = {
    "run_id": "00000000dead",
    "status": "failed",
    "started_at": "2026-11-20T03:15:00.000000",
    "exit": 66,
    "error": "no file matches pairs/*.parquet",
    "ended_at": "2026-11-20T03:15:01.000000",
}


def add_second_night(results: Path, *, stage: str, drop: float = 0.3) -> str:
    """Publish a copy of the only run, in which the ratios of a stage are lower and its confidence is another.

    Returns:
        The id of the new run.
    """
    layout = Layout(results)
    (folder,) = layout.runs.iterdir()
    manifest = json.loads((folder / MANIFEST).read_bytes())
    manifest |= {"run_id": new_run_id(), "generation": 2, "published_at": "2099-01-01T00:00:00.000000"}
    target = layout.runs / run_name(2, manifest["run_id"])
    shutil.copytree(folder, target)
    path = target / "metrics" / f"{stage}.parquet"
    lowered = [pl.col(name) - drop for name in ("value", "lower", "upper")]
    metadata = pl.read_parquet_metadata(path)
    metadata.pop("ARROW:schema", None)
    pl.read_parquet(path).with_columns(lowered).write_parquet(path, metadata=metadata)
    record = json.loads((target / RUN_RECORD).read_bytes())
    next(entry for entry in record["configuration"]["stages"] if entry["name"] == stage)["confidence"] = 0.9
    (target / RUN_RECORD).write_text(json.dumps(record))
    for file in manifest["files"]:
        if file["path"] in {f"metrics/{stage}.parquet", RUN_RECORD}:
            content = (target / file["path"]).read_bytes()
            file |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (target / MANIFEST).write_text(json.dumps(manifest))
    attempt = {"run_id": manifest["run_id"], "status": "published", "generation": 2}
    layout.attempt(manifest["run_id"]).write_text(json.dumps(attempt))
    layout.attempt(str(FAILED["run_id"])).write_text(json.dumps(FAILED))
    verify(results, repair=True)
    return str(manifest["run_id"])
