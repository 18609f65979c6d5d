"""The same rows in another form give the same bytes."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest
from cli.calls import call, spawn
from storage.promises import assert_results_ok

from runs.inputs.test_scores import WRITERS, by_duckdb
from runs.inputs.workplace import Workplace, make_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Result hashes of the usual form."""
    return Workplace(tmp_path_factory.mktemp("usual")).evaluate(uncertainty="jackknife")


def without_accounts(hashes: dict[str, str]) -> dict[str, str]:
    """All but the numbers of files and rows of the inputs."""
    return {path: sha256 for path, sha256 in hashes.items() if not path.startswith("inputs/")}


def shuffled(frame: pl.DataFrame, folder: Path, *, seed: int) -> None:
    frame.sample(fraction=1.0, shuffle=True, seed=seed).write_parquet(folder / "a.parquet")


def sorted_by(frame: pl.DataFrame, folder: Path, *, column: str, descending: bool) -> None:
    frame.sort(column, descending=descending).write_parquet(folder / "a.parquet", row_group_size=50)


def split(frame: pl.DataFrame, folder: Path, *, size: int) -> None:
    for number, slice_ in enumerate(frame.iter_slices(size)):
        slice_.write_parquet(folder / f"{number}.parquet")


def partitioned(frame: pl.DataFrame, folder: Path) -> None:
    for number in range(3):
        inner = folder / f"day=0{number}" / f"odd%20name={number}"
        inner.mkdir(parents=True)
        frame.filter(pl.col("article_id") % 3 == number).write_parquet(inner / "p.parquet")


def many_row_groups(frame: pl.DataFrame, folder: Path) -> None:
    frame.write_parquet(folder / "a.parquet", row_group_size=7, compression="uncompressed", statistics=False)


def other_types(frame: pl.DataFrame, folder: Path) -> None:
    narrow = frame.with_columns(pl.col("event_id").cast(pl.Int8), pl.col("score").cast(pl.Decimal(12, 2)))
    narrow.select("lag_hours", "score", "article_id", "event_id").write_parquet(folder / "a.parquet")


def written(frame: pl.DataFrame, folder: Path, *, write: Callable[[pl.DataFrame, Path], None]) -> None:
    write(frame, folder / "a.parquet")


FORMS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "shuffled": partial(shuffled, seed=1),
    "ascending": partial(sorted_by, column="score", descending=False),
    "descending": partial(sorted_by, column="score", descending=True),
    "by event": partial(sorted_by, column="event_id", descending=False),
    "split": partial(split, size=37),
    "partitioned": partitioned,
    "row groups": many_row_groups,
    "types": other_types,
    **{write.__name__: partial(written, write=write) for write in WRITERS},
}


@pytest.mark.wide
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_an_input_does_not_change_a_byte(workplace: Workplace, usual: dict[str, str], form: str) -> None:
    folder = workplace.folder / "in"
    folder.mkdir()
    FORMS[form](make_pairs(), folder)
    assert without_accounts(workplace.evaluate(pairs="in", uncertainty="jackknife")) == without_accounts(usual)


def test_a_shuffled_events_input_does_not_change_a_byte(workplace: Workplace, usual: dict[str, str]) -> None:
    by_duckdb(workplace.events.reverse(), workplace.folder / "events.parquet")
    assert workplace.evaluate(uncertainty="jackknife") == usual


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "limits", ["threads = 1", "threads = 2", "threads = 4", "memory = '200MB'", "memory = '200MB'\nthreads = 4"]
)
def test_limits_do_not_change_a_byte(workplace: Workplace, usual: dict[str, str], limits: str) -> None:
    assert workplace.evaluate(top=f"[resources]\n{limits}", uncertainty="jackknife") == usual


@pytest.mark.wide
@pytest.mark.parametrize(
    "env",
    [
        {"TZ": "America/New_York", "LC_ALL": "C", "LANG": "C", "PYTHONHASHSEED": "1"},
        {"TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "2", "POLARS_MAX_THREADS": "1"},
    ],
)
def test_the_environment_does_not_change_a_byte(
    workplace: Workplace, usual: dict[str, str], env: dict[str, str]
) -> None:
    called = spawn("run", workplace.config(uncertainty="jackknife"), env=env)
    assert called.code == 0, called.err
    assert assert_results_ok(workplace.results).hashes == usual


def test_partition_values_are_text_that_can_be_grouped_by(workplace: Workplace) -> None:
    folder = workplace.folder / "in"
    partitioned(workplace.pairs, folder)
    workplace.evaluate(pairs="in", events=None, by=["day"])
    assert workplace.table("before_after_estimates")["day"].unique().sort().to_list() == [None, "00", "01", "02"]


@pytest.mark.wide
def test_a_list_of_paths_equals_a_glob_and_a_folder_whatever_the_order(workplace: Workplace) -> None:
    folder = workplace.folder / "in"
    folder.mkdir()
    split(workplace.pairs, folder, size=200)
    names = [f"in/{number}.parquet" for number in range(3)]
    forms: list[object] = ["in", "in/*.parquet", [*names[:0:-1], "in/0*.parquet"]]
    seen = [without_accounts(workplace.evaluate(pairs=form)) for form in forms]
    name = "before_after_estimates/before_after.parquet"
    assert len({hashes[name] for hashes in seen}) == 1
    assert workplace.rows_by_status() == {"used": 500}


def test_a_home_folder_and_relative_paths_are_found(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(workplace.folder))
    workplace.evaluate(pairs="~/pairs.parquet", events="./../" + workplace.folder.name + "/events.parquet")


def test_the_working_folder_does_not_matter(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sys.prefix)
    assert call("run", workplace.config()).code == 0
    assert_results_ok(workplace.results)
