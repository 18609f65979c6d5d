"""A run is read back under every name that it goes by."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.errors import DataError, NoInputError, UsageError
from pipeline.report.published import kept_run, latest_run, named_runs
from pipeline.storage.kept import KeptRun

pytest_plugins = ("report.two_runs",)


def test_a_kept_run_goes_by_generation_run_id_and_folder(two_runs: Path) -> None:
    latest = latest_run(two_runs)
    assert latest.generation == 2
    names = ["2", "00000002", latest.run_id, latest.run_id[:6], latest.folder.name]
    assert [kept_run(two_runs, name).folder for name in names] == [latest.folder] * 5
    assert kept_run(two_runs, "1").generation == 1


@pytest.mark.parametrize("name", ["3", "", "x", "-1", "00000001-", "../runs", "1 or 2"])
def test_a_run_that_is_not_kept_is_told_with_those_that_are(two_runs: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no kept run is called") as raised:
        kept_run(two_runs, name)
    assert latest_run(two_runs).folder.name in str(raised.value.remedy)


@pytest.mark.parametrize(
    ("name", "generations"),
    [
        ("12", [12]),
        ("00000012", [12]),
        ("3456", [3456]),  # a generation before the start of an id
        ("34567", [11]),
        ("3456789abcde", [11]),
        ("00000011-3456789abcde", [11]),
        ("345", []),
        ("4567", []),
        ("abcd0", [12]),
        ("ab", [12, 3456]),
        ("abcd", [12, 3456]),
        ("", []),
    ],
)
def test_a_number_is_a_generation_and_a_start_stands_for_an_id(name: str, generations: list[int]) -> None:
    ids = {11: "3456789abcde", 12: "abcd0", 3456: "abcd1"}
    runs = [KeptRun(Path(f"{generation:08}-{id_}"), id_, None, "", {}) for generation, id_ in ids.items()]
    assert [int(run.folder.name[:8]) for run in named_runs(runs, name)] == generations


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoInputError, match="no published run"):
        kept_run(tmp_path, "1")


def test_a_damaged_table_is_told_by_its_file(two_runs: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(two_runs, results)
    path = next((results / "runs").glob("00000002-*")) / "ranking_summary" / "ranking.parquet"
    path.chmod(0o644)
    path.write_bytes(bytes(path.stat().st_size))
    (stage,) = latest_run(results).chosen(["ranking"])
    with pytest.raises(DataError, match=r"ranking_summary/ranking\.parquet cannot be read"):
        stage.result()


def test_stages_are_chosen_in_the_order_of_the_run(two_runs: Path) -> None:
    run = latest_run(two_runs)
    names = [stage.name for stage in run.chosen(["ranking", "before_after", "ranking"])]
    assert names == ["before_after", "ranking"]
    assert run.chosen([]) == run.stages
    with pytest.raises(UsageError, match="Did you mean `ranking`"):
        run.chosen(["rankin"])
