from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import read_table, rows_by_status, run_before_after, run_stages

from pipeline.base.errors import DataError, NoInputError
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Field, Input, InputContract
from pipeline.sources.parquet_files import DataFile
from pipeline.sources.source import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAIRS = pl.DataFrame(
    {"event_id": [1, 2, 3, 4], "score": [0.9, 0.2, 0.7, 0.8], "lag_hours": [1.0, -1.0, 2.0, 3.0]},
)


def write(folder: Path, *names: str) -> None:
    """One file of one row for each name, the rows in order."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        PAIRS[number % PAIRS.height].write_parquet(path)


def find(folder: Path, path: Any, **more: str) -> tuple[DataFile, ...]:  # noqa: ANN401 - as in a config
    listed = Listing(Input.model_validate({"path": path} | more), folder, name="pairs").opened().files
    return tuple(file for file in listed if isinstance(file, DataFile))


def names(folder: Path, path: Any) -> list[str]:  # noqa: ANN401 - as in a config
    return [file.path.relative_to(folder).as_posix() for file in find(folder, path)]


def test_a_file_a_glob_a_folder_and_a_list_name_their_files_in_order(tmp_path: Path) -> None:
    write(tmp_path, "b.parquet", "a.parquet", "deep/er/c.parquet")
    (tmp_path / "deep" / "notes.txt").write_text("by hand")
    assert names(tmp_path, "b.parquet") == ["b.parquet"]
    assert names(tmp_path, "*.parquet") == ["a.parquet", "b.parquet"]
    assert names(tmp_path, "**/*.parquet") == ["a.parquet", "b.parquet", "deep/er/c.parquet"]
    assert names(tmp_path, "deep") == ["deep/er/c.parquet"]
    assert names(tmp_path, ".") == ["a.parquet", "b.parquet", "deep/er/c.parquet"]
    assert names(tmp_path, str(tmp_path / "deep" / ".." / "a.parquet")) == ["a.parquet"]
    assert names(tmp_path, ["b.parquet", "a*.parquet", "deep"]) == ["b.parquet", "a.parquet", "deep/er/c.parquet"]


def test_footers_say_rows_and_schema(tmp_path: Path) -> None:
    PAIRS.write_parquet(tmp_path / "a.parquet")
    (file,) = find(tmp_path, "a.parquet")
    assert (file.rows, file.schema.names) == (4, ["event_id", "score", "lag_hours"])
    assert file.identity["size"] == (tmp_path / "a.parquet").stat().st_size


def test_hidden_files_and_folders_are_left_out_of_folders(tmp_path: Path) -> None:
    write(
        tmp_path,
        "a.parquet",
        ".hidden.parquet",
        "_tmp.parquet",
        "_temporary/0/b.parquet",
        ".git/c.parquet",
        "_day=1/d.parquet",
    )
    assert names(tmp_path, ".") == ["_day=1/d.parquet", "a.parquet"]


def test_a_folder_that_is_named_like_a_file_is_searched(tmp_path: Path) -> None:
    write(tmp_path, "out.parquet/part-0.parquet", "out.parquet/part-1.parquet")
    expected = ["out.parquet/part-0.parquet", "out.parquet/part-1.parquet"]
    assert names(tmp_path, "out.parquet") == expected
    assert names(tmp_path, ".") == expected
    assert names(tmp_path, "*.parquet") == expected


def test_folder_names_give_partition_columns(tmp_path: Path) -> None:
    write(tmp_path, "p/year=2024/lang=be%20x/a.parquet", "p/year=2024/lang=__HIVE_DEFAULT_PARTITION__/b.parquet")
    expected = [{"year": "2024", "lang": None}, {"year": "2024", "lang": "be x"}]
    assert [file.partitions for file in find(tmp_path, "p")] == expected
    assert [file.partitions for file in find(tmp_path, "p/year=*/*/*.parquet")] == expected
    assert [file.partitions for file in find(tmp_path, "p/year=2024")] == [{"lang": None}, {"lang": "be x"}]
    assert find(tmp_path, "p/year=2024/lang=be%20x/a.parquet")[0].partitions == {}


LITERAL = [
    "a[1].parquet",
    "b*.parquet",
    "c?.parquet",
    "d e.parquet",
    "é 'q\".parquet",
    "f{1,2}.parquet",
    "g#%41.parquet",
]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", LITERAL)
def test_characters_of_patterns_in_file_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "a1.parquet", "bb.parquet", "cc.parquet", "f1.parquet")
    assert names(tmp_path, name) == [name]
    frames: Mapping[str, pl.DataFrame] = {}
    run = run_before_after(tmp_path, frames, pairs=str(tmp_path / name), thresholds=[0.5])
    assert read_table(run, "inputs")["rows_in"].to_list() == [1]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("folder", ["x[1]", "x*", "x?", "x y", "x'\"", "k=v"])
def test_characters_of_patterns_in_the_folder_of_the_config_are_taken_literally(tmp_path: Path, folder: str) -> None:
    base = tmp_path / folder
    write(base, "a.parquet")
    write(tmp_path / "x1", "b.parquet")
    for path in ("a.parquet", "*.parquet", "."):
        assert names(base, path) == ["a.parquet"]
    (base / "mine.toml").write_text(
        'output = "../results"\n[[stages]]\nkind = "before_after"\npairs = "*.parquet"\nthresholds = [0.5]\n'
    )
    run = run_stages(base / "mine.toml")
    assert read_table(run, "inputs")["rows_in"].to_list() == [1]


def test_partition_columns_can_group_and_filter(tmp_path: Path) -> None:
    write(tmp_path, "p/lang=01/a.parquet", "p/lang=1/b.parquet", "p/lang=__HIVE_DEFAULT_PARTITION__/c.parquet")
    source = {"path": str(tmp_path / "p"), "where": "lang IS NULL OR lang <> '1'"}
    run = run_before_after(tmp_path, {}, pairs=source, by=[["lang"]], thresholds=[0.5])
    table = read_table(run, "before_after_estimates")
    assert table.select("lang", "m_after").rows() == [("01", 1), (None, 1)]


def test_files_of_all_partitions_are_one_scan(tmp_path: Path) -> None:
    for day in range(30):
        write(tmp_path, f"p/day={day:02}/lang={'nl' if day % 2 else 'be'}/a.parquet")
    contract = InputContract("pairs", (Field("score", "number", "a score", required=True),), "rows")
    (scan,) = open_source(contract, Input.model_validate({"path": "p"}), tmp_path).scans
    assert [partition.column for partition in scan.partitions] == ["folder 0: day", "folder 1: lang"]
    assert scan.partitions[0].values == tuple(f"{day:02}" for day in range(30))
    pairs = {"path": str(tmp_path / "p"), "where": "day < '20' AND (day <> '07' OR score > 2)"}
    run = run_before_after(tmp_path, {}, pairs=pairs, by=["day", "lang"], thresholds=[0.5])
    table = read_table(run, "before_after_estimates")
    rows = table.filter(pl.col("day").is_not_null()).select("day", "lang", "m_after").sort("day").rows()
    assert rows == [(f"{day:02}", "nl" if day % 2 else "be", 1) for day in range(20) if day != 7]


@pytest.mark.wide
@pytest.mark.parametrize("name", ["file_index", "File_Index", "folder 0: lang", "source_file", "filename", "other"])
@pytest.mark.parametrize("value", [2, None, "t"])
def test_no_column_of_a_file_stands_for_its_partition(tmp_path: Path, name: str, value: int | str | None) -> None:
    for number, lang in enumerate(("be", "nl", "pl")):
        path = tmp_path / "p" / f"lang={lang}" / "files=a" / "a.parquet"
        path.parent.mkdir(parents=True)
        PAIRS[: number + 1].with_columns(pl.lit(value).alias(name)).write_parquet(path)
    run = run_before_after(tmp_path, {}, pairs=str(tmp_path / "p"), by=[["lang"], ["files"]], thresholds=[-5.0])
    table = read_table(run, "before_after_estimates").select("lang", "files", pl.col("m_before") + pl.col("m_after"))
    assert sorted(table.rows(), key=str) == [("be", None, 1), ("nl", None, 2), ("pl", None, 3), (None, "a", 6)]
    where = {"path": str(tmp_path / "p"), "where": "lang = 'nl' OR score > 2"}
    run = run_before_after(tmp_path / "where", {}, pairs=where, thresholds=[-5.0])
    assert rows_by_status(run) == {"used": 2, "where": 4}


def test_the_file_of_a_wrong_score_is_named_whatever_its_columns_are_called(tmp_path: Path) -> None:
    for number in range(3):
        rows = PAIRS.with_columns(file_index=pl.lit(None, pl.Int32))
        rows = rows.with_columns(score=pl.Series([0.9, 0.2, None, 0.8])) if number == 1 else rows
        write(tmp_path, f"p/{number}/a.parquet")
        rows.write_parquet(tmp_path / "p" / str(number) / "a.parquet")
    with pytest.raises(DataError, match=r"1 in .*p/1/a\.parquet, first at row 3"):
        run_before_after(tmp_path, {}, pairs=str(tmp_path / "p"), thresholds=[0.5])


GUARDED = {
    "day LIKE '2026%' AND CAST(day AS DATE) > DATE '2026-01-01'": [1],
    "(day LIKE '2026%' AND CAST(day AS DATE) > DATE '2026-01-01') OR score > 2": [1],
    "(day = 'unknown' AND CAST(txt AS INTEGER) > 3) OR (day = '2026-01-01' AND txt = 'x')": [0, 2],
    "day = '2026-01-02' OR day = '2026-01-01' OR CAST(txt AS INTEGER) > 3": [0, 1, 2],
    "NOT (day = 'unknown' AND CAST(txt AS INTEGER) > 3)": [0, 1],
    "CASE WHEN day = 'unknown' THEN CAST(txt AS INTEGER) > 3 ELSE txt = 'y' END": [1, 2],
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("where", GUARDED)
def test_a_condition_on_partitions_keeps_others_from_being_computed(tmp_path: Path, where: str) -> None:
    for number, (day, text) in enumerate((("2026-01-01", "x"), ("2026-01-02", "y"), ("unknown", "5"))):
        path = tmp_path / "p" / f"day={day}" / "a.parquet"
        path.parent.mkdir(parents=True)
        PAIRS[:1].with_columns(event_id=number, txt=pl.lit(text)).write_parquet(path)
    pairs = {"path": str(tmp_path / "p"), "where": where}
    run = run_before_after(tmp_path, {}, pairs=pairs, by=[["day"]], thresholds=[0.5])
    days = ["2026-01-01", "2026-01-02", "unknown"]
    assert read_table(run, "before_after_estimates")["day"].to_list() == [days[number] for number in GUARDED[where]]


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("outer", ["score=7", "event_id=7", "lag_hours=-5", "SCORE=7"])
def test_folder_names_above_the_input_never_replace_a_column(tmp_path: Path, outer: str) -> None:
    base = tmp_path / outer
    write(base, "p/lang=nl/a.parquet", "p/lang=be/b.parquet", "p/lang=be/c.parquet")
    run = run_before_after(tmp_path, {}, pairs=str(base / "p"), by=[["lang"]], thresholds=[0.5])
    table = read_table(run, "before_after_estimates")
    assert table.select("lang", "n_before", "m_before", "m_after").rows() == [("be", 1, 0, 1), ("nl", 0, 0, 1)]


@pytest.mark.wide
@pytest.mark.parametrize("key", ["score", "Score"])
def test_a_column_of_the_file_comes_before_a_partition_of_its_name(tmp_path: Path, key: str) -> None:
    write(tmp_path, f"p/{key}=0/a.parquet", f"p/{key}=1/b.parquet")
    write(tmp_path, "q/a.parquet", "q/b.parquet")
    partitioned = run_before_after(tmp_path / "1", {}, pairs=str(tmp_path / "p"), thresholds=[0.5])
    plain = run_before_after(tmp_path / "2", {}, pairs=str(tmp_path / "q"), thresholds=[0.5])
    assert read_table(partitioned, "before_after_estimates").equals(read_table(plain, "before_after_estimates"))


@pytest.mark.parametrize("other", ["p/b.parquet", "p/day=1/b.parquet"])
def test_a_partition_that_some_files_lack_is_a_fault_of_the_data(tmp_path: Path, other: str) -> None:
    write(tmp_path, "p/lang=nl/a.parquet", other)
    with pytest.raises(DataError, match="pairs"):
        run_before_after(tmp_path, {}, pairs=str(tmp_path / "p"), by=[["lang"]], thresholds=[0.5])


@pytest.mark.parametrize("name", ["lang", "Lang"])
def test_folders_whose_names_differ_in_case_alone_are_columns_of_their_own(tmp_path: Path, name: str) -> None:
    write(tmp_path, "p/lang=nl/Lang=be/a.parquet", "p/lang=nl/Lang=fr/b.parquet")
    run = run_before_after(tmp_path, {}, pairs=str(tmp_path / "p"), by=[[name]], thresholds=[-5.0])
    groups = read_table(run, "before_after_estimates")[name].to_list()
    assert groups == (["nl"] if name == "lang" else ["be", "fr"])


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    write(tmp_path, "real/a.parquet", "real/b.parquet")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "linked.parquet").symlink_to(tmp_path / "real" / "a.parquet")
    (tmp_path / "folder").symlink_to(tmp_path / "real", target_is_directory=True)
    assert names(tmp_path, "in") == ["in/linked.parquet"]
    assert names(tmp_path, "folder") == ["folder/a.parquet", "folder/b.parquet"]
    run = run_before_after(
        tmp_path, {}, pairs=[str(tmp_path / "in"), str(tmp_path / "folder" / "b.parquet")], thresholds=[0.5]
    )
    assert read_table(run, "inputs")["n_files"].to_list() == [2]


def test_a_path_that_matches_nothing_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet")
    for path in ("b.parquet", "*.pq", "deep", ["a.parquet", "b.parquet"]):
        with pytest.raises(NoInputError, match="input pairs: no file matches"):
            find(tmp_path, path)


@pytest.mark.parametrize("keep", [0, 3, 11, 40, -1])
def test_a_file_that_was_cut_off_is_named(tmp_path: Path, keep: int) -> None:
    write(tmp_path, "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(content[:keep])
    with pytest.raises(DataError, match=r"a\.parquet is not a whole Parquet file"):
        find(tmp_path, "a.parquet")


def changed(files: tuple[DataFile, ...]) -> list[Path]:
    return [file.path for file in files if file.has_changed()]


def test_a_file_that_was_replaced_or_removed_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", "b.parquet")
    files = find(tmp_path, ".")
    assert changed(files) == []
    os.utime(tmp_path / "b.parquet", ns=(1, 1))
    assert changed(files) == [tmp_path / "b.parquet"]
    (tmp_path / "a.parquet").unlink()
    assert changed(files) == [tmp_path / "a.parquet", tmp_path / "b.parquet"]


def span_of(paths: list[Path], column: str = "x") -> tuple[float, float] | None:
    contract = InputContract("rows", (Field(column, "number", "a number"),), "one row each")
    return open_source(contract, Input(path=tuple(str(path) for path in paths)), paths[0].parent).span(column)


def test_the_span_of_a_column_is_that_of_all_files_with_rows(tmp_path: Path) -> None:
    paths = []
    for number, values in enumerate([[0.5, -2.0], [7.5, None], []]):
        paths.append(tmp_path / f"{number}.parquet")
        pl.DataFrame({"x": values}, schema={"x": pl.Float64}).write_parquet(paths[-1])
    assert span_of(paths[:1]) == (-2.0, 0.5)
    assert span_of(paths) == (-2.0, 7.5)
    assert span_of(paths[2:]) is None


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"x": [0.1, math.inf]}),
        pl.DataFrame({"x": [None, None]}, schema={"x": pl.Float64}),
    ],
    ids=["infinite", "NULL"],
)
def test_a_span_that_the_footers_do_not_tell_is_none(tmp_path: Path, frame: pl.DataFrame) -> None:
    with_statistics, without_statistics = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pl.DataFrame({"x": [0.0, 1.0]}).write_parquet(with_statistics)
    frame.write_parquet(without_statistics)
    assert span_of([with_statistics, without_statistics]) is None


def test_a_file_without_statistics_leaves_the_span_open(tmp_path: Path) -> None:
    pl.DataFrame({"x": [0.0, 1.0]}).write_parquet(tmp_path / "a.parquet", statistics=False)
    assert span_of([tmp_path / "a.parquet"]) is None


def test_spans_of_integers_are_numbers(tmp_path: Path) -> None:
    pl.DataFrame({"x": [3, 1, 2]}).write_parquet(tmp_path / "a.parquet")
    assert span_of([tmp_path / "a.parquet"]) == (1.0, 3.0)
