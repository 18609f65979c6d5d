"""A run is read back under every name that it goes by."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.base.errors import DataError, NoInputError, UsageError
from pipeline.report.published import PublishedStage, kept_run, latest_run, named_runs, read_run
from pipeline.report.summary import Paragraph, blocks_of_stage, paragraph_of
from pipeline.report.text import plain_text
from pipeline.stages import STAGES, find_stage
from pipeline.storage.layout import KeptRun

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def earlier(two_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose record lacks all parameters with their defaults, as if they came after it."""
    folder = tmp_path_factory.mktemp("earlier") / "run"
    shutil.copytree(kept_run(two_runs, "1").folder, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    record = json.loads((folder / "run.json").read_text("utf-8"))
    for parameters in record["configuration"]["stages"]:
        entry = find_stage(parameters["kind"])
        assert entry is not None
        fields = entry.load().parameters.model_fields
        defaults = {key: field.default for key, field in fields.items() if key not in {"kind", "name", "by"}}
        for key, default in defaults.items():
            if parameters.get(key, ...) == default:
                del parameters[key]
    (folder / "run.json").write_text(json.dumps(record), "utf-8")
    return folder


@contextmanager
def without(folder: Path, table: str, *columns: str) -> Iterator[None]:
    """Let a run be one that never had a table, or some of its columns."""
    manifest, (path,) = folder / "manifest.json", (folder / table).iterdir()
    before = manifest.read_bytes(), path.read_bytes()
    content = json.loads(before[0])
    files = content["files"]
    if columns:
        pl.read_parquet(path).drop(columns).write_parquet(path)
        schema = next(file["schema"] for file in files if file["table"] == table)
        for column in columns:
            del schema[column]
    else:
        content["files"] = [file for file in files if file["table"] != table]
        path.unlink()
    manifest.write_text(json.dumps(content), "utf-8")
    yield
    manifest.write_bytes(before[0])
    path.write_bytes(before[1])


def said_of(folder: Path, kind: str) -> tuple[PublishedStage, str]:
    """A stage, and what its summary, its methods and its figures say."""
    run = read_run(folder)
    stage = next(stage for stage in run.stages if stage.stage.kind == kind)
    captions = [Paragraph(figure.caption) for figure in stage.figures()]
    text = plain_text([*blocks_of_stage(stage.result()), Paragraph(paragraph_of(run, stage)), *captions], 100)
    return stage, " ".join(text.split())


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_a_run_of_an_earlier_version_is_read_and_what_it_lacks_is_told(earlier: Path, kind: str) -> None:
    """A run without each of its tables by turns, and without the last column of each."""
    complete, told = said_of(earlier, kind)
    assert "later version" not in told
    for name, table in complete.tables.items():
        with without(earlier, name):
            stage, told = said_of(earlier, kind)
            assert stage.tables[name].is_empty()
        assert f"{name}: made since a later version of thresher" in told
        last = table.columns[-1]
        with without(earlier, name, last):
            stage, told = said_of(earlier, kind)
            type_of_last = stage.tables[name][last].dtype  # of a key it is that of the values, of which there are none
            assert stage.tables[name].equals(table.with_columns(pl.lit(None, type_of_last).alias(last)))
        assert f"{name}: {last}: made since a later version" in told


def test_stages_are_chosen_in_the_order_of_the_run(two_runs: Path) -> None:
    run = latest_run(two_runs)
    names = [stage.name for stage in run.chosen(["ranking", "before_after", "ranking"])]
    assert names == ["before_after", "ranking"]
    assert run.chosen([]) == run.stages
    with pytest.raises(UsageError, match="Did you mean `ranking`"):
        run.chosen(["rankin"])
