"""Nights: a run that reads new files only has the bytes of one that reads all, whatever happened to the files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from cases.reading import case_folders, case_name, prepare
from running import read_table, stage_tables

from pipeline.base.errors import DataError, StorageError, ThresherError
from pipeline.engines import per_file_cache
from pipeline.engines.duckdb import DuckDB
from pipeline.runs import evaluation, runner
from pipeline.runs.config import parse_config
from pipeline.storage import state as storing
from pipeline.storage.state import AnswerCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.config import Config
    from pipeline.runs.stage_results import Run

CASES = [
    folder
    for folder in case_folders()
    if folder.name
    in {"textbook", "timelines", "lags", "separate", "labelled", "source_text_rules", "duplicates_merged"}
]


@pytest.fixture(autouse=True)
def _files_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "RACY_SECONDS", 0.0)


def hashes(folder: Path) -> dict[str, str]:
    paths = sorted(folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def night(config: Config, states: AnswerCache | None) -> dict[str, str] | str:
    """The bytes of all tables, or what the run says instead."""
    try:
        return hashes(stage_tables(config, states).path)
    except ThresherError as error:
        return str(error)


@pytest.mark.wide
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_nights_of_cases_have_the_bytes_of_full_runs(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_file_cache, "MOST_ROWS", 40)
    config = prepare(case, tmp_path, shuffle=1)
    kept = AnswerCache(tmp_path / "states", 1 << 30)
    late = sorted(tmp_path.glob("*/part-2.parquet"))
    for path in late:
        path.rename(path.with_suffix(".late"))
    without_late = night(config, None)
    assert night(config, kept) == without_late
    for path in late:
        path.with_suffix(".late").rename(path)
    full = night(config, None)
    assert night(config, kept) == full
    for file in sorted(tmp_path.glob("*/part-0.parquet")):  # the rows change places
        other, aside = file.with_name("part-1.parquet"), file.with_name("aside")
        file.rename(aside)
        other.rename(file)
        aside.rename(other)
    assert night(config, kept) == full
    for path in late:
        path.unlink()
    assert night(config, kept) == without_late


def predictions(seed: int, n_rows: int = 400) -> pl.DataFrame:
    draws = np.random.default_rng(seed)
    label = draws.random(n_rows) < 0.3
    return pl.DataFrame(
        {
            "score": np.round(np.clip(draws.normal(0.4 + 0.2 * label, 0.2), 0, 1), 2),
            "label": label,
            "language": draws.choice(["en", "nl"], n_rows),
            "document": draws.integers(0, 60, n_rows),
        }
    )


ALL_COUNTS: dict[str, Any] = {"by": ["language"], "cluster": "document"}  # of the total, groups and replicates


def sweep(folder: Path, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - of a config
    stage = {
        "kind": "threshold_sweep",
        "predictions": "days",
        "thresholds": {"start": 0, "stop": 1, "count": 21},
        "method": "binned",
        "outcomes": False,
        "units": False,
    }
    return {"output": str(folder / "results"), "stages": [stage | keys]}


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A folder with three daily files."""
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(3):
        predictions(day).write_parquet(folder / f"{day}.parquet")
    return folder


def publish(folder: Path, **keys: Any) -> Run:  # noqa: ANN401 - of a config
    settings = {name: keys.pop(name) for name in ("cache", "resources") if name in keys}
    return runner.run(parse_config(sweep(folder, **keys) | settings, base=folder))


def read(run: Run, source: str = "predictions") -> tuple[int, int]:
    """Files of an input, and those of which rows were read."""
    facts = json.loads((run.path / "run.json").read_bytes())["reused"][run.stages[0].name][source]
    return facts["files"], facts["files_read"]


def is_as_a_full_run(run: Run, folder: Path, **keys: Any) -> bool:  # noqa: ANN401 - of a config
    full = stage_tables(parse_config(sweep(folder, **keys), base=folder))
    return hashes(run.path) == hashes(full.path)


@pytest.mark.wide
def test_the_night_after_a_new_day_reads_that_day_only(days: Path, tmp_path: Path) -> None:
    assert read(publish(tmp_path, **ALL_COUNTS)) == (3, 3)
    predictions(3).write_parquet(days / "3.parquet")
    run = publish(tmp_path, **ALL_COUNTS)
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, **ALL_COUNTS)
    assert run.stages[0].reused == ("predictions: 3 of 4 files as counted before, 1 read",)


@pytest.mark.wide
@pytest.mark.parametrize("thresholds", [{"start": 0, "stop": 1, "count": 21}, [0.1234567, 0.5]], ids=["even", "cut"])
@pytest.mark.parametrize("by", [[[]], ["language"]], ids=["total", "groups"])
def test_the_cells_of_one_scan_add_up_over_days(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: list[Any], thresholds: object
) -> None:
    monkeypatch.setattr("pipeline.stages.threshold_sweep.stage.MOST_SINGLE", 0)
    monkeypatch.setattr("pipeline.plan.area_work.MOST_CELLS", 16)
    monkeypatch.setattr("pipeline.plan.counts.MOST_SCORES", 0)
    keys = {"by": by, "thresholds": thresholds, "width": 0.01}

    def write(day: int) -> None:
        scores = np.random.default_rng(day).uniform(size=200)
        frame = predictions(day, 200) if day % 2 else predictions(day, 200).with_columns(score=pl.Series(scores))
        frame.write_parquet(days / f"{day}.parquet")

    for day in range(3):
        write(day)
    assert read(publish(tmp_path, **keys)) == (3, 3)
    write(3)
    run = publish(tmp_path, **keys)
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, **keys)
    assert read_table(run, "threshold_sweep_areas", "threshold_sweep")["brier_min"].null_count() == 0


@pytest.mark.wide
def test_days_in_folders_are_asked_once_by_their_names_too(tmp_path: Path) -> None:
    def write(day: int, seed: int) -> Path:
        folder = tmp_path / "days" / f"day={day}"
        folder.mkdir(parents=True)
        predictions(seed).write_parquet(folder / "part.parquet")
        return folder

    where = "day <> '1' OR score > 0.5"
    keys = ALL_COUNTS | {"by": ["day", "language"], "predictions": {"path": "days", "where": where}}
    folders = [write(day, day) for day in range(3)]
    assert read(publish(tmp_path, **keys)) == (3, 3)
    write(3, 3)
    run = publish(tmp_path, **keys)
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, **keys)
    days = [name for name in run.table("threshold_sweep_areas")["day"].unique().sort().to_list() if name]
    assert days == ["0", "1", "2", "3"]
    folders[0].rename(folders[0].with_name("day=4"))  # the file is as it was, but its rows are of another day
    run = publish(tmp_path, **keys)
    assert is_as_a_full_run(run, tmp_path, **keys)
    assert "0" not in run.table("threshold_sweep_areas")["day"].to_list()


@pytest.mark.wide
def test_days_in_another_format_are_converted_but_counted_once(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    for day in range(3):
        predictions(day).write_csv(tmp_path / "days" / f"{day}.csv")
    keys = {"predictions": {"path": "days/*.csv"}}
    publish(tmp_path, **keys)
    predictions(3).write_csv(tmp_path / "days" / "3.csv")
    run = publish(tmp_path, **keys)
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, **keys)
    content = (tmp_path / "days" / "0.csv").read_text()
    (tmp_path / "days" / "0.csv").write_text(
        content.replace("true", "falsch").replace("false", "true").replace("falsch", "false")
    )
    run = publish(tmp_path, **keys)
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, **keys)


def test_days_in_folders_of_their_own_are_read_once(tmp_path: Path) -> None:
    for day in range(3):
        (tmp_path / "days" / f"day={day}").mkdir(parents=True)
        predictions(day).write_parquet(tmp_path / "days" / f"day={day}" / "rows.parquet")
    publish(tmp_path, by=["day"])
    (tmp_path / "days" / "day=3").mkdir()
    predictions(3).write_parquet(tmp_path / "days" / "day=3" / "rows.parquet")
    run = publish(tmp_path, by=["day"])
    assert read(run) == (4, 1)
    assert is_as_a_full_run(run, tmp_path, by=["day"])


@pytest.mark.wide
def test_a_file_that_is_rewritten_in_place_is_read_again_whatever_its_size_and_times(
    days: Path, tmp_path: Path
) -> None:
    publish(tmp_path, **ALL_COUNTS)
    path = days / "1.parquet"
    before = path.stat()
    frame = pl.read_parquet(path)
    frame.with_columns(~pl.col("label")).write_parquet(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    run = publish(tmp_path, **ALL_COUNTS)
    assert read(run) == (3, 1)
    assert is_as_a_full_run(run, tmp_path, **ALL_COUNTS)


@pytest.mark.wide
def test_a_file_that_is_gone_no_longer_counts(days: Path, tmp_path: Path) -> None:
    publish(tmp_path)
    (days / "0.parquet").unlink()
    run = publish(tmp_path)
    assert read(run) == (2, 0)
    assert is_as_a_full_run(run, tmp_path)


@pytest.mark.wide
def test_other_thresholds_are_other_questions(days: Path, tmp_path: Path) -> None:
    publish(tmp_path)
    thresholds = {"start": 0, "stop": 1, "count": 11}
    run = publish(tmp_path, thresholds=thresholds)
    assert read(run) == (3, len(list(days.iterdir())))
    assert is_as_a_full_run(run, tmp_path, thresholds=thresholds)


@pytest.mark.wide
def test_a_file_that_has_just_changed_is_not_trusted(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "RACY_SECONDS", 3600.0)
    publish(tmp_path)
    predictions(3).write_parquet(days / "3.parquet")
    assert read(publish(tmp_path)) == (4, 4)


@pytest.mark.wide
def test_without_the_cache_all_files_are_read_and_none_is_kept(days: Path, tmp_path: Path) -> None:
    run = publish(tmp_path, cache=False)
    assert json.loads((run.path / "run.json").read_bytes())["reused"] == {"threshold_sweep": {}}
    assert not (tmp_path / "results" / ".cache").exists()
    assert len(list(days.iterdir())) == len(list(run.path.parent.parent.glob("runs/*"))) + 2
    assert publish(tmp_path, cache=False).status == "unchanged"


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (flip, lambda content: content[:-9], lambda _: b"")


@pytest.mark.wide
def test_damaged_answers_are_asked_for_again(days: Path, tmp_path: Path) -> None:
    """The answers to one question are flipped, to another cut, to the next empty."""
    publish(tmp_path, **ALL_COUNTS)
    paths = sorted((tmp_path / "results" / ".cache").glob("*/*"))
    assert len(paths) >= len(DAMAGES)
    for number, path in enumerate(paths):
        path.write_bytes(DAMAGES[number % len(DAMAGES)](path.read_bytes()))
    predictions(3).write_parquet(days / "3.parquet")
    run = publish(tmp_path, **ALL_COUNTS)
    assert read(run) == (4, 4)
    assert is_as_a_full_run(run, tmp_path, **ALL_COUNTS)


@pytest.mark.wide
def test_the_cache_stays_within_its_limit(days: Path, tmp_path: Path) -> None:
    publish(tmp_path, resources={"cache_limit": "1KB"})
    assert len(list(days.iterdir())) == 3
    sizes = [path.stat().st_size for path in (tmp_path / "results" / ".cache").glob("*/*")]
    assert sum(sizes) <= 1000


@pytest.mark.wide
def test_a_disk_that_cannot_hold_the_cache_costs_the_cache_only(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        message = "no space is left"
        raise StorageError(message)

    monkeypatch.setattr(storing, "write_whole", full)
    run = publish(tmp_path)
    assert run.status == "published"
    assert is_as_a_full_run(run, tmp_path)
    assert not [*(tmp_path / "results" / ".cache").glob("*/*")]
    assert len(list(days.iterdir())) == 3


@pytest.mark.wide
def test_answers_as_large_as_their_files_are_not_kept(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_file_cache, "KEPT_ROWS", 5)
    monkeypatch.setattr(per_file_cache, "KEPT_SHARE", 10_000)
    run = publish(tmp_path)
    assert is_as_a_full_run(run, tmp_path)
    assert run.stages[0].reused == (
        "predictions: all 3 files read, since what single files answer is nearly as large as they are",
    )
    predictions(3).write_parquet(days / "3.parquet")
    assert read(publish(tmp_path)) == (4, 4)


@pytest.mark.wide
def test_answers_that_take_many_rows_are_added_up(days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours become one: then a file that was replaced has those with it asked again, and no others."""
    monkeypatch.setattr(per_file_cache, "MOST_ROWS", 200)
    for day in range(3, 9):
        predictions(day, 40).write_parquet(days / f"{day:02}.parquet")
        run = publish(tmp_path)
        assert read(run)[1] in {1, 4}
    assert is_as_a_full_run(run, tmp_path)
    predictions(99, 40).write_parquet(days / "1.parquet")
    run = publish(tmp_path)
    assert 1 <= read(run)[1] < 9
    assert is_as_a_full_run(run, tmp_path)
    predictions(10, 40).write_parquet(days / "10.parquet")
    run = publish(tmp_path)
    assert read(run) == (10, 1)
    assert is_as_a_full_run(run, tmp_path)


@pytest.mark.wide
def test_stages_with_the_same_question_keep_their_answers_apart(days: Path, tmp_path: Path) -> None:
    assert days.name == "days"
    (tmp_path / "others").mkdir()
    for day in range(2):
        predictions(day + 50).write_parquet(tmp_path / "others" / f"{day}.parquet")

    def night() -> list[tuple[int, int]]:
        (stage,) = sweep(tmp_path)["stages"]
        stages = [stage | {"name": name, "predictions": name} for name in ("days", "others")]
        run = runner.run(parse_config(sweep(tmp_path) | {"stages": stages}, base=tmp_path))
        reused = json.loads((run.path / "run.json").read_bytes())["reused"]
        facts = [reused[name]["predictions"] for name in ("days", "others")]
        return [(each["files"], each["files_read"]) for each in facts]

    assert night() == [(3, 3), (2, 2)]
    for name in ("days", "others"):
        predictions(9).write_parquet(tmp_path / name / "9.parquet")
    assert night() == [(4, 1), (3, 1)]


def test_a_where_that_cannot_be_computed_is_the_fault_of_the_config(days: Path, tmp_path: Path) -> None:
    keys = {"predictions": {"path": str(days), "where": "CAST(language AS INTEGER) > 3"}}
    with pytest.raises(DataError, match=r"where \(.*\) cannot be computed: Conversion Error: Could not convert"):
        publish(tmp_path, **keys)


@pytest.mark.wide
def test_columns_of_other_inputs_whose_types_change_and_not_their_text_are_read_anew(tmp_path: Path) -> None:
    for name in ("pairs", "events"):
        (tmp_path / name).mkdir()
    for day in range(3):
        ids = np.arange(30) + 30 * day
        pairs = {"event_id": ids, "score": ids % 7 / 7, "lag_hours": ids % 48 - 24}
        pl.DataFrame(pairs).write_parquet(tmp_path / "pairs" / f"{day}.parquet")
        events = {"event_id": ids, "source": ids % 2}
        pl.DataFrame(events).write_parquet(tmp_path / "events" / f"{day}.parquet")
    stage = {"kind": "before_after", "pairs": "pairs", "events": "events", "thresholds": [0.1, 0.5], "by": ["source"]}
    config = {"output": str(tmp_path / "results"), "stages": [stage]}
    runner.run(parse_config(config, base=tmp_path))
    for path in (tmp_path / "events").iterdir():
        pl.read_parquet(path).with_columns(pl.col("source").cast(pl.String)).write_parquet(path)
    run = runner.run(parse_config(config, base=tmp_path))
    assert hashes(run.path) == hashes(stage_tables(parse_config(config, base=tmp_path)).path)


@pytest.mark.wide
@pytest.mark.parametrize("share", [10_000, 60])
def test_answers_of_many_files_are_kept_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """Of several files, or of all, by how large they are; a file more, and one less."""
    monkeypatch.setattr(per_file_cache, "KEPT_ROWS", share)
    monkeypatch.setattr(per_file_cache, "KEPT_SHARE", 1_000_000)
    (tmp_path / "days").mkdir()
    for day in range(12):
        predictions(day, 60).write_parquet(tmp_path / "days" / f"{day:02}.parquet")
    keys = {"thresholds": [0.5]}
    publish(tmp_path, **keys)
    predictions(12, 60).write_parquet(tmp_path / "days" / "12.parquet")
    assert is_as_a_full_run(publish(tmp_path, **keys), tmp_path, **keys)
    (tmp_path / "days" / "03.parquet").unlink()
    assert is_as_a_full_run(publish(tmp_path, **keys), tmp_path, **keys)


@pytest.mark.wide
@pytest.mark.parametrize(("large_file", "files_at_once"), [(1, [1] * 11), (400, [6, 5])], ids=["large", "together"])
def test_large_files_are_asked_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_file: int, files_at_once: list[int]
) -> None:
    """A statement for each, or for those that are asked together, with the bytes of one for all."""
    monkeypatch.setattr(per_file_cache, "LARGE_FILE", large_file)
    monkeypatch.setattr(per_file_cache, "KEPT_ROWS", 40 if large_file > 1 else 10_000)
    monkeypatch.setattr(per_file_cache, "KEPT_SHARE", 1_000_000)
    asked: list[int] = []
    register = DuckDB.scan_numbered

    def watched(self: DuckDB, name: str, files: list[str], *args: Any, **keys: Any) -> None:  # noqa: ANN401 - passed on
        asked.append(len(files))
        register(self, name, files, *args, **keys)

    monkeypatch.setattr(DuckDB, "scan_numbered", watched)
    (tmp_path / "days").mkdir()
    for day in range(11):
        predictions(day, 100).write_parquet(tmp_path / "days" / f"{day:02}.parquet")
    keys = {"by": ["language"], "thresholds": [0.5], "method": "exact", "calibration": False}
    run = publish(tmp_path, **keys)
    assert asked[-len(files_at_once) :] == files_at_once
    assert is_as_a_full_run(run, tmp_path, **keys)


def test_exact_areas_read_all_files_and_the_run_says_so(days: Path, tmp_path: Path) -> None:
    run = publish(tmp_path, method="exact")
    assert len(list(days.iterdir())) == 3
    assert run.stages[0].reused == (
        "predictions: all 3 files read, since their rows are needed in order, or one by one",
    )


@pytest.mark.wide
@pytest.mark.parametrize("large_file", [per_file_cache.LARGE_FILE, 1], ids=["at once", "one by one"])
def test_files_whose_rows_meet_other_rows_now_are_read_again_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_file: int
) -> None:
    """The window of the last events is complete only once the articles of the next days are there."""
    monkeypatch.setattr(per_file_cache, "LARGE_FILE", large_file)
    start = np.datetime64("2026-01-01", "us")
    for name in ("pairs", "events", "articles"):
        (tmp_path / name).mkdir()

    def write(day: int) -> None:
        draws, hours = np.random.default_rng(day), np.arange(200)
        time = start + np.timedelta64(day, "D")
        ids = np.arange(20) + 20 * day
        pl.DataFrame({"event_id": ids, "event_time": time + ids % 20 * np.timedelta64(1, "h")}).write_parquet(
            tmp_path / "events" / f"{day}.parquet"
        )
        pl.DataFrame(
            {"article_id": hours + 200 * day, "article_time": time + hours * np.timedelta64(432, "s")}
        ).write_parquet(tmp_path / "articles" / f"{day}.parquet")
        pl.DataFrame(
            {"event_id": draws.choice(ids, 200), "article_id": hours + 200 * day, "score": draws.random(200)}
        ).write_parquet(tmp_path / "pairs" / f"{day}.parquet")

    stage = {
        "kind": "before_after",
        **{name: name for name in ("pairs", "events", "articles")},
        "window": {"before": "12h", "after": "12h"},
        "thresholds": {"start": 0.1, "stop": 0.9, "count": 9},
        "duplicates": "keep",
        "event_counts": False,
    }
    config = {"output": str(tmp_path / "results"), "stages": [stage]}
    for day in range(6):
        write(day)
    runner.run(parse_config(config, base=tmp_path))
    write(6)
    run = runner.run(parse_config(config, base=tmp_path))
    assert hashes(run.path) == hashes(stage_tables(parse_config(config, base=tmp_path)).path)
    assert read(run, "pairs") == (7, 2), "the new day, and the day before, whose last windows have become complete"
    shutil.rmtree(tmp_path / "results" / ".cache")
