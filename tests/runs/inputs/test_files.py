"""Files that are missing or broken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl
import pytest
from cli.calls import call, spawn
from storage.promises import assert_results_ok, attempts

from runs.inputs.workplace import assert_error

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace


def cut(workplace: Workplace, size: int) -> None:
    path = workplace.folder / "pairs.parquet"
    path.write_bytes(path.read_bytes()[:size])


def test_no_file_matches(workplace: Workplace) -> None:
    workplace.publish()
    workplace.refuse(66, "no file matches", "nothing/*.parquet", pairs="nothing/*.parquet")


def test_an_empty_folder_holds_no_input(workplace: Workplace) -> None:
    (workplace.folder / "empty").mkdir()
    workplace.refuse(66, "no file matches empty", pairs="empty")


def test_one_of_several_paths_without_a_file(workplace: Workplace) -> None:
    workplace.refuse(66, "no file matches gone.parquet", pairs=["pairs.parquet", "gone.parquet"])


def test_no_config_file(workplace: Workplace) -> None:
    assert_error(call("run", workplace.folder / "gone.toml"), 66, "gone.toml", "thresher init")


@pytest.mark.wide
def test_files_with_zero_rows_are_published_with_a_warning(workplace: Workplace) -> None:
    expected = workplace.publish()
    workplace.pairs.clear().write_parquet(workplace.folder / "pairs.parquet")
    called = workplace.run()
    assert called.code == 0
    assert "input pairs has no rows" in called.err
    assert workplace.rows_by_status() == {"used": 0}
    rows = workplace.table("before_after_estimates")
    assert rows["m_after"].sum() == 0
    assert rows.schema == pl.read_parquet(expected.folder / "before_after_estimates" / "before_after.parquet").schema


def test_both_inputs_with_zero_rows(workplace: Workplace) -> None:
    workplace.pairs.clear().write_parquet(workplace.folder / "pairs.parquet")
    workplace.events.clear().write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(
        66, "nothing is left to evaluate", "input pairs has no rows; input events has no rows", "allow_empty"
    )
    called = workplace.run(allow_empty=True)
    assert called.code == 0, called.err
    assert_results_ok(workplace.results)
    assert workplace.rows_by_status("events") == {"used": 0}


def test_zero_rows_where_every_compared_pair_is_a_row(workplace: Workplace) -> None:
    workplace.pairs.clear().write_parquet(workplace.folder / "pairs.parquet")
    called = workplace.run(events=None, by=None, allow_empty=True)
    assert called.code == 0, called.err
    assert workplace.rows_by_status() == {"used": 0}


@pytest.mark.wide
def test_an_empty_file_beside_full_ones_changes_nothing(workplace: Workplace) -> None:
    workplace.publish(pairs="pairs*.parquet")
    before = workplace.table("before_after_estimates")
    workplace.pairs.clear().write_parquet(workplace.folder / "pairs2.parquet")
    workplace.publish(pairs="pairs*.parquet")
    assert workplace.table("before_after_estimates").equals(before)


@pytest.mark.parametrize("size", [0, 3, 4, 11, 12, 100, -1, -8])
def test_a_truncated_file_is_named(workplace: Workplace, size: int) -> None:
    cut(workplace, size)
    workplace.refuse(65, "pairs.parquet is not a whole Parquet file", "let its writer finish")


@pytest.mark.wide
def test_a_truncated_file_among_whole_ones_is_named(workplace: Workplace) -> None:
    workplace.publish()
    workplace.pairs.write_parquet(workplace.folder / "pairs2.parquet")
    cut(workplace, 5000)
    workplace.refuse(65, "pairs.parquet is not a whole Parquet file", pairs="pairs*.parquet", duplicates="keep")


@pytest.mark.parametrize("content", [b"event_id,score\n1,0.5\n", b"PAR1PAR1", b"PAR1" + b"\xff" * 20 + b"PAR1"])
def test_what_is_no_parquet_file_is_named(workplace: Workplace, content: bytes) -> None:
    (workplace.folder / "pairs.parquet").write_bytes(content)
    workplace.refuse(65, "pairs.parquet is not a whole Parquet file")


def test_a_footer_of_garbage_is_named(workplace: Workplace) -> None:
    path = workplace.folder / "pairs.parquet"
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    content[-8 - length : -8] = b"\xa5" * length
    path.write_bytes(content)
    workplace.refuse(65, "pairs.parquet is not a whole Parquet file")


def test_a_page_of_garbage_is_named(workplace: Workplace) -> None:
    workplace.publish()
    path = workplace.folder / "pairs.parquet"
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xa5" * 1996
    path.write_bytes(content)
    workplace.refuse(65, "pairs.parquet cannot be read", "leave it out by a glob")


def test_a_folder_that_ends_like_a_file_is_no_file(workplace: Workplace) -> None:
    (workplace.folder / "odd.parquet").mkdir()
    workplace.refuse(66, "no file matches odd.parquet", pairs="odd.parquet")


def test_hidden_and_unfinished_files_are_left_out_of_a_folder(workplace: Workplace) -> None:
    folder = workplace.folder / "in"
    (folder / "_temporary").mkdir(parents=True)
    workplace.pairs.write_parquet(folder / "a.parquet")
    for name in (".b.parquet", "_c.parquet", "_temporary/d.parquet"):
        (folder / name).write_bytes(b"unfinished")
    workplace.publish(pairs="in")
    assert workplace.rows_by_status() == {"used": 500}


def test_a_remote_path_is_refused(workplace: Workplace) -> None:
    workplace.refuse(78, "remote store", pairs="hdfs://bucket/pairs.parquet")


def test_a_file_that_changes_while_it_is_read_is_noticed(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.runs import evaluation

    original = evaluation._run_stage

    def touching(*args: object) -> object:
        os.utime(workplace.folder / "pairs.parquet")
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(evaluation, "_run_stage", touching)
    workplace.refuse(65, "pairs.parquet changed while it was read", "Run again")


@pytest.mark.wide
def test_the_process_exits_with_the_code_and_says_it_in_one_sentence(workplace: Workplace) -> None:
    assert_error(spawn("run", workplace.config(pairs="gone")), 66)
    assert attempts(workplace.results)[-1]["exit"] == 66
    for code, keys in ((78, {"tresholds": [1]}), (65, {"by": ["nope"]})):
        assert_error(call("run", workplace.config(**keys)), code)
    assert attempts(workplace.results)[-1]["exit"] == 65
