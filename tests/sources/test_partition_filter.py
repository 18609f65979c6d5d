"""Files whose partitions `where` leaves out are not opened; what is not certain is left to the rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from running import run_stages, stage_config

import pipeline
from pipeline.base.errors import DataError, NoInputError
from pipeline.engines.expression_types import truths
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pl.DataFrame({"id": [1, 2], "score": [0.9, 0.2], "label": [True, False]})
BROKEN = b"no Parquet at all"


def write(folder: Path, *names: str, broken: tuple[str, ...] = ()) -> None:
    for number, name in enumerate((*names, *broken)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        ROWS.with_columns(pl.col("id") + 10 * number).write_parquet(folder / name)
        if name in broken:
            (folder / name).write_bytes(BROKEN)


def opened(folder: Path, where: str | None, path: Any = "in") -> list[str]:  # noqa: ANN401 - as in a config
    spec = Input.model_validate({"path": path, "where": where})
    listing = Listing(spec, folder, name="predictions", truths=truths).opened()
    files = [file.name.removeprefix(f"{folder}/in/").removesuffix("/a.parquet") for file in listing.files]
    assert len(files) + listing.left_out == len(list((folder / "in").rglob("*.parquet")))
    return files


DAYS = (
    "day=2026-10-31/hour=23",
    "day=2026-11-01/hour=0",
    "day=2026-11-01/hour=12",
    "day=__HIVE_DEFAULT_PARTITION__/hour=1",
)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("days")
    write(folder / "in", *(f"{day}/a.parquet" for day in DAYS))
    return folder


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (None, [0, 1, 2, 3]),
        ("day = '2026-11-01'", [1, 2]),
        ("day >= '2026-11-01' AND score > 0.5", [1, 2]),
        ("score > 0.5 AND (day = '2026-10-31' OR hour = '12')", [0, 2]),
        ("(day = '2026-10-31' AND score > 0.5) OR (day = '2026-11-01' AND hour = '0' AND label)", [0, 1]),
        ("day = '2026-10-31' OR score > 0.5", [0, 1, 2, 3]),
        ("NOT (day = '2026-10-31')", [1, 2]),
        ("NOT (day = '2026-10-31' AND score > 0.5)", [0, 1, 2, 3]),
        ("day IS NULL", [3]),
        ("CAST(day AS DATE) < DATE '2026-11-01'", [0]),
        ("CAST(hour AS INTEGER) BETWEEN 0 AND 12", [3, 1, 2]),
        ("hour > '12'", [0]),
        ("CASE WHEN score > 0.5 THEN day = '2026-11-01' ELSE false END", [0, 1, 2, 3]),
        ("coalesce(day, '2026-11-01') LIKE '2026-11%'", [1, 2, 3]),
        ("score > 0.5", [0, 1, 2, 3]),
        ("1 = 0", [0, 1, 2, 3]),
        ("day IN ('2026-10-31', NULL)", [0]),
        ("day NOT IN ('2026-10-31', NULL)", [0]),  # true for none: the first file tells the columns
    ],
)
def test_only_files_that_where_may_keep_are_opened(days: Path, where: str | None, numbers: list[int]) -> None:
    assert sorted(opened(days, where)) == sorted(DAYS[number] for number in numbers)


def test_values_that_cannot_be_compared_leave_no_file_out(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", "day=2/a.parquet", "day=x/a.parquet")
    assert opened(tmp_path, "CAST(day AS INTEGER) = 1") == ["day=1", "day=x"]
    assert opened(tmp_path, "day = DATE '2026-11-01'") == ["day=1", "day=2", "day=x"]  # does not fit at all


def test_a_column_of_the_file_itself_comes_before_its_folder_name(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", "day=2/a.parquet")
    ROWS.with_columns(day=pl.lit("2")).write_parquet(tmp_path / "in" / "day=1" / "a.parquet")
    ROWS.with_columns(day=pl.lit("1")).write_parquet(tmp_path / "in" / "day=2" / "a.parquet")
    assert opened(tmp_path, "day = '1'") == ["day=1", "day=2"]


def test_files_of_other_names_are_weighed_against_those_that_are_opened(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", "day=2/a.parquet", "day=2/part-0", "day=2/part-1")
    assert opened(tmp_path, "day = '1'") == ["day=1"]
    with pytest.raises(DataError, match="2 files in its folders are not read"):
        opened(tmp_path, "day = '2'")


def sweep(folder: Path, where: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"path": str(folder / "in"), "where": where}
    return stage_config(folder, "threshold_sweep", {}, predictions=spec, thresholds=[0.5], **keys)


@pytest.mark.wide
def test_a_file_that_is_left_out_may_be_anything(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", "day=2/a.parquet", broken=("day=3/a.parquet", "day=4/a.csv.parquet"))
    config = sweep(tmp_path, "day <= '2' AND score > 0.5", by=["day"])
    run = pipeline.run(config)
    (account,) = run.table("inputs").filter(status="used").to_dicts()
    assert account["rows_in"] == 4
    assert (account["n_files"], account["files_left_out"]) == (2, 2)
    record = json.loads((run.path / "run.json").read_text())
    assert record["files_left_out"] == [{"stage": "threshold_sweep", "input": "predictions", "files": 2}]
    assert len(record["inputs"]) == 2
    assert run.table("threshold_sweep_curve")["day"].to_list() == [None, "1", "2"]
    plain = sweep(tmp_path / "plain", "score > 0.5", by=["day"])
    write(tmp_path / "plain" / "in", "day=1/a.parquet", "day=2/a.parquet")
    assert run_stages(plain).table("threshold_sweep_curve").equals(run.table("threshold_sweep_curve"))


def test_nothing_is_left_where_no_partition_matches(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", broken=("day=2/a.parquet", "day=3/a.parquet"))
    with pytest.raises(NoInputError) as caught:
        run_stages(sweep(tmp_path, "day = '9'"))
    assert caught.value.message == (
        "nothing is left to evaluate: input predictions: where keeps none of 2 rows, and leaves out 2 more files by "
        "their partitions"
    )
    run = run_stages(sweep(tmp_path, "day = '9'", allow_empty=True))
    assert run.table("threshold_sweep_curve").select("tp", "fp", "fn").row(0) == (0, 0, 0)


def test_check_says_how_many_files_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path / "in", "day=1/a.parquet", broken=("day=2/a.parquet",))
    path = tmp_path / "config.toml"
    path.write_text("""
        [[stages]]
        kind = "threshold_sweep"
        predictions = { path = "in", where = "day = '1'" }
    """)
    result = call("check", str(path))
    assert "predictions: 1 file, 2 rows; 1 file not opened, since where leaves them out" in result.out
