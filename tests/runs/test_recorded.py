"""The config of a run is read back from its record, whatever the config says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases.reading import CASES, case_folders

from pipeline.base.errors import DataError
from pipeline.runs.config import load_config
from pipeline.runs.recorded import recorded_config
from pipeline.runs.stage_results import canonical

CONFIGS = [*(folder / "config.toml" for folder in case_folders()), *(CASES.parents[1] / "configs").glob("*.toml")]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: "-".join((*path.parts[-3:-1], path.stem)))
def test_a_config_comes_back_from_the_record_of_its_run(path: Path) -> None:
    config = load_config(path)
    record = json.loads(json.dumps({"config": config.origin, "configuration": canonical(config)}))
    back = recorded_config(record, Path("/results/runs/1-a"))
    assert [stage.params for stage in back.stages] == [stage.params for stage in config.stages]
    assert back.base == config.base


def test_the_folder_that_paths_are_relative_to_is_that_of_the_record() -> None:
    config = load_config(CONFIGS[0])
    record = {"config": "<config>", "base": "/elsewhere", "configuration": canonical(config)}
    assert recorded_config(record, Path("/results/runs/1-a")).base == Path("/elsewhere")


def test_parameters_that_this_version_does_not_know_are_said() -> None:
    stage = {"kind": "ranking", "name": "x", "ranking": "r.parquet", "later": 1}
    with pytest.raises(DataError, match="cannot be read back"):
        recorded_config({"config": "c.toml", "configuration": {"stages": [stage]}}, Path("/results/runs/1-a"))
