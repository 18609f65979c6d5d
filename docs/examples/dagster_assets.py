"""A Dagster asset for each result table of a config: dagster dev -f dagster_assets.py."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

import thresher

CONFIG = Path(os.environ.get("THRESHER_CONFIG", "/srv/news/nightly.toml"))
TABLES = ("threshold_sweep_curve", "threshold_sweep_areas", "threshold_sweep_operating_points", "metrics")
NO_RETRY = {2, 3, 65, 70, 77, 78}


@dg.multi_asset(
    specs=[dg.AssetSpec(table, group_name="thresher", kinds={"parquet"}) for table in TABLES],
    retry_policy=dg.RetryPolicy(max_retries=3, delay=600),
)
def tables() -> Iterator[dg.MaterializeResult]:
    """Run the config; a table with the same bytes as before has the same data version."""
    try:
        run = thresher.run(CONFIG)
    except thresher.ThresherError as error:
        raise dg.Failure(str(error), allow_retries=error.code not in NO_RETRY) from error
    files = json.loads((run.path / "manifest.json").read_bytes())["files"]
    for table in TABLES:
        parts = [file for file in files if file["table"] == table]
        yield dg.MaterializeResult(
            asset_key=table,
            data_version=dg.DataVersion(" ".join(file["sha256"] for file in parts)),
            metadata={
                "dagster/row_count": sum(file["rows"] for file in parts),
                "path": dg.MetadataValue.path(str(run.path / table)),
                "run": run.run_id,
                "status": run.status,
                "warnings": list(run.warnings),
            },
        )


defs = dg.Definitions(assets=[tables])
