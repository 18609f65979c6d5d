"""Runs about days: what is published of their dates and labels, a range of days, and what is unchanged."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pytest
import typer
from cli.calls import Called, call
from polars.testing import assert_frame_equal
from storage.promises import assert_results_ok, read_json

import pipeline
from pipeline.base.errors import ConfigError
from pipeline.cli.running import run_days
from pipeline.cli.session import Console
from pipeline.storage.layout import Layout
from pipeline.storage.publish import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CANARY = "canary-8d1f"
LABEL = "v7</script>\x1b[31m'\""
CONFIG = """
output = "results"
labels = { model = "${model}" }
[vars]
model = "v7</script>\\u001b[31m'\\""
[[stages]]
kind = "threshold_sweep"
name = "scores"
thresholds = [0.25, 0.5]
uncertainty = "none"
[stages.predictions]
path = "${env.PLACE}/day=${ds}"
where = "lang <> ${env.SECRET} AND ${ds} > '2026-01-01'"
columns = { label = { sql = "truth = 'yes' AND lang <> '${env.SECRET}'" } }
"""


@dataclass(frozen=True)
class Job:
    """A job that has run for some days, and what each command said; tests only read it."""

    config: Path
    today: pipeline.Run
    backfill: Called
    again: Called
    touched: Called
    gap: Called

    @property
    def results(self) -> Path:
        return self.config.parent / "results"


def write_day(folder_of_days: Path, day: str, *, scores: tuple[float, ...] = (0.9, 0.4, 0.3)) -> Path:
    folder = folder_of_days / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame({"score": scores, "truth": ["yes", "yes", "no"], "lang": ["nl", "de", "x"]})
    frame.write_parquet(folder / "p.parquet")
    os.utime(folder / "p.parquet", (1_700_000_000, 1_700_000_000))
    return folder / "p.parquet"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    folder, folder_of_days = tmp_path_factory.mktemp("job"), tmp_path_factory.mktemp(f"folder_of_days-{CANARY}")
    files = [write_day(folder_of_days, f"2026-11-0{day}") for day in (1, 2, 3, 5)]
    config = folder / "job.toml"
    config.write_text(CONFIG, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLACE", str(folder_of_days))
        patch.setenv("SECRET", CANARY)
        patch.setattr("pipeline.runs.stage_results.RACY_SECONDS", -1e9)
        today = pipeline.run(config, vars={"ds": "2026-11-05"})
        days = "ds=2026-11-01..2026-11-03"
        backfill, again = call("run", config, "--var", days), call("run", config, "--quiet", "--var", days)
        os.utime(files[0], (1_700_000_001, 1_700_000_001))
        touched = call("run", config, "--var", "ds=2026-11-01")
        gap = call("run", config, "--var", "ds=2026-11-03..2026-11-05")
        yield Job(config, today, backfill, again, touched, gap)


@pytest.mark.wide
def test_every_day_is_a_run_of_its_own_in_order(job: Job) -> None:
    assert job.backfill.code == 0, job.backfill.err
    paths = job.backfill.out.splitlines()
    assert [path.rpartition("/")[2][:8] for path in paths] == ["00000002", "00000003", "00000004"]
    assert "ds 2026-11-02: day 2 of 3" in job.backfill.err
    assert "show 2026-11-03, the run that was published last; history goes up to 2026-11-05" in job.backfill.err
    assert_results_ok(job.results)


def test_days_that_are_published_are_unchanged(job: Job) -> None:
    assert (job.again.code, job.again.out, job.again.err) == (0, job.backfill.out, "")
    assert job.touched.out == job.backfill.out.splitlines(keepends=True)[0]
    assert "unchanged 00000002" in job.touched.err
    assert len(list((job.results / "runs").iterdir())) == 4


def test_a_range_stops_at_the_first_day_that_fails(job: Job) -> None:
    assert job.gap.code == 66
    assert job.gap.out == job.backfill.out.splitlines(keepends=True)[-1]
    assert "error: ds 2026-11-04: input predictions: " in job.gap.err
    assert "Done is 2026-11-03, of 3 days; --var ds=2026-11-04..2026-11-05 goes on from here." in job.gap.err
    with pipeline.open_results(job.results) as reader:
        failed = reader.sql("SELECT exit, CAST(ds AS VARCHAR) FROM attempts WHERE status = 'failed'").fetchall()
    assert failed == [(66, "2026-11-04")]


def test_day_and_labels_are_in_every_record(job: Job) -> None:
    with pipeline.open_results(job.results) as reader:
        runs = reader.sql("SELECT CAST(ds AS VARCHAR), labels ->> 'model' FROM runs ORDER BY generation").fetchall()
        tables = reader.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'history'").fetchall()
        for (table,) in tables:
            rows = reader.table(f"history.{table}").select("ds", "labels", "run_id").distinct().pl()
            assert rows.height in {0, 4}
            assert rows["ds"].null_count() == rows["labels"].null_count() == 0
    assert runs == [(f"2026-11-0{day}", LABEL) for day in (5, 1, 2, 3)]
    record = read_json(job.today.path / "run.json")
    assert (record["ds"], record["labels"], record["vars"]) == ("2026-11-05", {"model": LABEL}, {"ds": "2026-11-05"})
    assert record["environment"] == ["PLACE", "SECRET"]
    for path in job.today.path.glob("*/*.parquet"):
        stored = json.loads(pl.read_parquet_metadata(path)["thresher"])
        assert (stored["ds"], stored["labels"]["model"]) == ("2026-11-05", LABEL)


def test_history_goes_by_the_day_and_not_by_the_publication(job: Job) -> None:
    with pipeline.open_results(job.results) as reader:
        trend = reader.sql("SELECT CAST(ds AS VARCHAR) FROM trend('f1', of_criterion := 'max_f1')").fetchall()
        by_default = reader.sql("FROM compare_runs()").fetchall()
        day_before = job.backfill.out.splitlines()[1].rpartition("-")[2]
        by_name = reader.execute("FROM compare_runs(earlier := $1)", [day_before]).fetchall()
    assert [day for (day,) in trend] == ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-05"]
    assert by_default == by_name != []


def test_values_of_the_environment_are_in_no_artefact_and_no_message(job: Job) -> None:
    said = [job.backfill, job.again, job.touched, job.gap]
    said += [call(command, job.config, "--var", "ds=2026-11-05") for command in ("render", "check")]
    said += [call("explain", job.results, "scores", "--sql"), call("run", job.config, "--var", "ds=2026-11-09")]
    assert [called.code for called in said] == [0, 0, 0, 66, 0, 0, 0, 66]
    assert not [called for called in said if CANARY in called.out + called.err]
    files = [path for path in job.results.rglob("*") if path.is_file()]
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
    with pipeline.open_results(job.results) as reader:
        for schema, table in reader.sql("SELECT schema_name, table_name FROM duckdb_tables()").fetchall():
            assert CANARY not in str(reader.sql(f'FROM "{schema}"."{table}"').fetchall())
        assert reader.sql("FROM input_files").pl()["path"].to_list() == ["${env.PLACE}/day=2026-11-03/p.parquet"]


@pytest.mark.wide
def test_report_and_differences_go_by_the_day(job: Job, tmp_path: Path) -> None:
    assert call("report", job.results, "-o", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "scores: 4 days" in page
    assert " · day 2026-11-03 · model v7&lt;/script&gt;" in page
    shown = call("show", job.results).out
    assert ", day 2026-11-03, model v7</script>" in " ".join(shown.split())
    assert "\x1b" not in page + shown
    pipeline.run(job.config, set={"output": str(tmp_path / "r")}, vars={"ds": "2026-11-01"})
    pipeline.run(job.config, set={"output": str(tmp_path / "r")}, vars={"ds": "2026-11-02", "model": "v8"})
    told = call("diff", tmp_path / "r", "--format", "markdown")
    assert told.code == 0, told.err
    assert "ds: 2026-11-01 → 2026-11-02" in told.out.replace("`", "")
    assert "labels.model" in told.out
    assert "Its parameters or bindings changed" not in told.out
    assert CANARY not in page + shown + told.out


def test_rows_are_explained_while_the_environment_is_set(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = call("explain", job.results, "scores", "--show", "false_negatives", "--threshold", "0.5")
    assert shown.code == 0, shown.err
    monkeypatch.delenv("PLACE")
    missing = call("explain", job.results, "scores")
    assert missing.code == 0
    assert "no rows can be shown: the environment variable PLACE is not set" in missing.out + missing.err


@pytest.mark.wide
def test_a_damaged_run_of_a_day_and_a_later_day_than_the_shown_are_published_again(job: Job, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(job.results, results, symlinks=True)
    (damaged,) = results.glob("runs/00000003-*/threshold_sweep_curve/scores.parquet")
    damaged.write_bytes(b"x")
    changes = {"output": str(results)}
    statuses = [
        pipeline.run(job.config, set=changes, vars={"ds": day}).status
        for day in ("2026-11-01", "2026-11-02", "2026-11-05", "2026-11-05", "2026-11-03")
    ]
    assert statuses == ["unchanged", "published", "published", "unchanged", "unchanged"]


@pytest.mark.wide
def test_a_catalog_that_was_carried_equals_one_that_is_built(job: Job, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(job.results, results, symlinks=True)
    with pipeline.open_results(results) as reader:
        carried = {name: reader.sql(f"FROM {name} ORDER BY ALL").pl() for name in ("runs", "history.metrics")}
    Layout(results).catalog.unlink()
    with pipeline.open_results(results) as reader:
        for name, frame in carried.items():
            assert_frame_equal(reader.sql(f"FROM {name} ORDER BY ALL").pl(), frame)


@pytest.mark.wide
def test_a_grouping_column_called_ds_stays_what_it_is(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.1], "label": [True, False], "ds": [7, 8], "labels": ["a", "b"]})
    stage = {"kind": "threshold_sweep", "predictions": frame, "thresholds": [0.5], "uncertainty": "none"}
    config = {"output": str(tmp_path / "results"), "labels": {"a": "b"}, "stages": [stage | {"by": [["ds", "labels"]]}]}
    pipeline.run(config, vars={"ds": "2026-11-01"})
    pipeline.run(config | {"stages": [stage]}, vars={"ds": "2026-11-02"})
    query = "SELECT DISTINCT ds, labels FROM history.threshold_sweep_curve ORDER BY ALL"
    expected = [("2026-11-02", '{"a": "b"}'), ("7", "a"), ("8", "b")]
    with pipeline.open_results(tmp_path / "results") as reader:
        assert reader.sql(query).fetchall() == expected
    assert verify(tmp_path / "results").runs == 2
    Layout(tmp_path / "results").catalog.unlink()
    with pipeline.open_results(tmp_path / "results") as reader:
        assert reader.sql(query).fetchall() == expected


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ("2026-11-04..2026-11-01", "the first day is after the last"),
        ("2016-11-04..2026-11-30", "these are 3,679 days, more than 3,660"),
        ("2026-11-04..", "this is no range of days"),
        ("2026-11-01..2026-11-02..2026-11-03", "this is no range of days"),
    ],
)
def test_a_range_that_is_none_is_refused(job: Job, days: str, words: str) -> None:
    called = call("run", job.config, "--var", f"ds={days}")
    assert (called.code, words in called.err) == (2, True)


@pytest.mark.parametrize(("last", "words"), [(3, "of 3 days; --var ds=2026-11-03 goes"), (2, "all 2 days.")])
def test_a_day_that_is_published_and_no_success_ends_a_range(
    job: Job, capsys: pytest.CaptureFixture[str], last: int, words: str
) -> None:
    def run_once(values: Mapping[str, str]) -> Path:
        if values["ds"] == "2026-11-02":
            raise typer.Exit(65)
        return job.results

    with pytest.raises(typer.Exit) as caught:
        run_days({"ds": f"2026-11-01..2026-11-0{last}"}, run_once, Console())
    assert caught.value.exit_code == 65
    assert f"error: ds 2026-11-02: Done are 2026-11-01 to 2026-11-02, {words}" in capsys.readouterr().err


def test_days_after_a_failed_gate_are_run_all_the_same(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    days = []

    def run_once(values: Mapping[str, str]) -> Path:
        days.append(values["ds"])
        if values["ds"] != "2026-11-02":
            raise typer.Exit(3)
        return job.results

    with pytest.raises(typer.Exit) as caught:
        run_days({"ds": "2026-11-01..2026-11-03"}, run_once, Console())
    assert (caught.value.exit_code, len(days)) == (3, 3)
    assert "error: a gate failed on 2026-11-01, 2026-11-03" in capsys.readouterr().err


def test_python_takes_one_day(job: Job) -> None:
    with pytest.raises(ConfigError, match="thresher run takes a range of days"):
        pipeline.run(job.config, vars={"ds": "2026-11-01..2026-11-02"})
    with pytest.raises(ConfigError, match="vars changes a config before it is checked"):
        pipeline.run(pipeline.runs.config.load_config(job.config, values={"ds": "2026-11-01"}), vars={"model": "x"})
