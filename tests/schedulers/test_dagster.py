"""Dagster loads its example and materializes its assets."""

from __future__ import annotations

import runpy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "dagster_assets.py"
pytestmark = [
    pytest.mark.filterwarnings("default"),  # Dagster warns of itself
    pytest.mark.skipif(
        find_spec("dagster") is None, reason="Dagster is not installed: python3 dev.py schedulers has it"
    ),
]


@pytest.fixture
def example(news: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("THRESHER_CONFIG", str(news / "nightly.toml"))
    return runpy.run_path(str(EXAMPLE))


def materialized(example: dict[str, Any]) -> dict[str, Any]:
    """What Dagster knows of every asset after it was made."""
    dagster = import_module("dagster")
    dagster.Definitions.validate_loadable(example["defs"])
    result = dagster.materialize([example["tables"]])
    assert result.success
    return {
        event.asset_key.to_user_string(): event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
    }


def test_every_table_is_an_asset_with_its_rows_and_the_version_of_its_bytes(
    example: dict[str, Any], news: Path
) -> None:
    assets = materialized(example)
    assert set(assets) == set(example["TABLES"])
    for asset in assets.values():
        rows = pl.read_parquet(f"{asset.metadata['path'].path}/*.parquet").height
        assert asset.metadata["dagster/row_count"].value == rows > 0
        assert asset.metadata["status"].value == "published"
    versions = {name: asset.tags["dagster/data_version"] for name, asset in assets.items()}
    again = materialized(example)
    assert {name: asset.tags["dagster/data_version"] for name, asset in again.items()} == versions
    assert {asset.metadata["status"].value for asset in again.values()} == {"unchanged"}
    predictions = pl.read_parquet(news / "predictions.parquet").with_columns(~pl.col("label"))
    predictions.write_parquet(news / "predictions.parquet")
    changed = {name: asset.tags["dagster/data_version"] for name, asset in materialized(example).items()}
    assert all(changed[name] != versions[name] for name in versions)


@pytest.mark.parametrize(("column", "may_retry"), [("score", False), (None, True)])
def test_a_fault_of_the_data_is_not_tried_again_and_data_that_are_late_are(
    example: dict[str, Any], news: Path, column: str | None, *, may_retry: bool
) -> None:
    path = news / "predictions.parquet"
    if column is None:
        path.unlink()
    else:
        pl.read_parquet(path).drop(column).write_parquet(path)
    with pytest.raises(import_module("dagster").Failure) as raised:
        list(example["tables"]())
    assert raised.value.allow_retries is may_retry
