"""Rows to label: drawn by strata, nested, in the same order from any files, and on where an earlier draw ended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.calls import call
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import sample
from pipeline.base.errors import DataError, NoInputError, UsageError

CONFIG = '[[stages]]\nkind = "threshold_sweep"\npredictions = "predictions.parquet"\n'


def predictions(rows: int = 2_000, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    true = random.random(rows) < 0.05
    score = 1 / (1 + np.exp(3 - 2 * (random.standard_normal(rows) + 2 * true)))
    country = random.choice(["nl", "be"], rows)
    return pl.DataFrame({"id": np.arange(rows), "score": score, "country": country, "true": true})


ROWS = predictions()


def test_a_sheet_says_of_every_row_where_it_comes_from() -> None:
    sheet = sample(predictions=ROWS, size=100, columns=["country"])
    assert sheet.columns == ["id", "stratum", "probability", "score", "label", "country"]
    assert len(sheet) == sheet["id"].n_unique() == 100
    assert sheet["label"].null_count() == 100
    beside = sheet.join(ROWS, on="id", maintain_order="left")
    assert beside["score"].to_list() == beside["score_right"].to_list()
    assert beside["country"].to_list() == beside["country_right"].to_list()


def test_strata_rise_with_the_score_and_probabilities_are_shares_of_them() -> None:
    sheet = sample(predictions=ROWS, size=200)
    strata = sheet.group_by("stratum").agg(
        pl.col("score").min().alias("lowest"), pl.col("score").max().alias("highest"), pl.col("probability"), pl.len()
    )
    strata = strata.sort("stratum")
    assert (strata["lowest"][1:] > strata["highest"][:-1]).all()
    assert strata["probability"].list.n_unique().to_list() == [1] * len(strata)
    sizes = strata["len"] / strata["probability"].list.first()  # add up to all rows, and are whole numbers
    assert sizes.sum() == pytest.approx(len(ROWS))
    assert sizes.to_list() == pytest.approx(sizes.round().to_list())


@settings(max_examples=8)
@given(st.integers(160, 400), st.integers(1, 400))
def test_a_smaller_draw_takes_the_first_rows_of_every_stratum_of_a_larger_one(size: int, more: int) -> None:
    small, large = (sample(predictions=ROWS, size=number) for number in (size, size + more))
    for (stratum,), rows in small.group_by("stratum"):
        of_large = large.filter(pl.col("stratum") == stratum)["id"].to_list()
        of_small = rows["id"].to_list()
        assert of_small[: len(of_large)] == of_large[: len(of_small)]


def test_neither_the_order_of_rows_nor_files_matter(tmp_path: Path) -> None:
    expected = sample(predictions=ROWS, size=150)
    shuffled = ROWS.sample(fraction=1, shuffle=True, seed=3)
    for number, part in enumerate((shuffled[:700], shuffled[700:])):
        part.write_parquet(tmp_path / f"{number}.parquet")
    assert sample(predictions=str(tmp_path / "*.parquet"), size=150).equals(expected)
    assert not sample(predictions=ROWS, size=150, seed=1).equals(expected)


def test_of_many_rows_as_many_are_drawn_as_of_few() -> None:
    """Of which hardly one needs the cell of its score."""
    sheet = sample(predictions=predictions(60_000), size=200)
    assert len(sheet) == 200
    sizes = sheet.group_by("stratum").agg(pl.len() / pl.col("probability").first()).to_series(1)
    assert sizes.sum() == pytest.approx(60_000)


def test_of_all_samples_every_row_of_a_stratum_is_as_likely() -> None:
    few = predictions(60)
    times = np.zeros(60)
    strata: dict[int, float] = {}
    for seed in range(60):
        sheet = sample(predictions=few, size=12, by="country", seed=seed)
        times[sheet["id"].to_numpy()] += 1
        strata |= dict(sheet.select("id", "probability").iter_rows())
    expected = np.array([strata[row] for row in range(60) if row in strata]) * 60
    seen = times[[row for row in range(60) if row in strata]]
    assert ((seen - expected) ** 2 / expected).sum() < 110  # a chi-squared number of 60 rows, .0001 of which are higher


def test_every_group_gets_rows_of_its_own() -> None:
    few = ROWS.filter((pl.col("country") == "nl") | (pl.col("id") < 60)).with_columns(
        pl.when(pl.col("id") < 10).then(None).otherwise(pl.col("country")).alias("country")
    )
    sheet = sample(predictions=few, size=120, by=["score", "country"])
    numbers = dict(sheet.group_by("country").len().iter_rows())
    assert numbers["nl"] > numbers["be"] >= 10
    assert numbers[None] >= 5
    assert sheet.filter(pl.col("stratum").str.starts_with("nl/s"))["country"].unique().to_list() == ["nl"]
    assert sheet.filter(pl.col("stratum").str.starts_with("NULL/s"))["country"].unique().to_list() == [None]


@pytest.mark.parametrize("words", [("yes", "no"), ("1", "0"), ("true", "false"), (True, False), (1, 0)])
def test_a_second_draw_goes_on_where_the_first_ended(words: tuple[Any, Any]) -> None:
    first = sample(predictions=ROWS, size=200)
    true = first.join(ROWS, on="id", maintain_order="left")["true"]
    labels = [words[0] if is_true else words[1] for is_true in true[:180]] + [None] * 20  # twenty are not labelled yet
    second = sample(predictions=ROWS, size=60, labelled=first.with_columns(pl.Series("label", labels)))
    assert len(second) == 60
    assert not set(first["id"]) & set(second["id"])
    for (stratum,), rows in second.group_by("stratum"):
        n_first = (first["stratum"] == stratum).sum()
        size = ROWS.height if rows["probability"][0] == 0 else (len(rows) + n_first) / rows["probability"][0]
        assert size == pytest.approx(round(size))


def test_more_rows_than_there_are_is_all_of_them() -> None:
    with pytest.warns(UserWarning, match="2,000 rows are drawn, not 5,000: there are no more"):
        sheet = sample(predictions=ROWS, size=5_000)
    assert sorted(sheet["id"]) == list(range(2_000))
    assert sheet["probability"].unique().to_list() == [1.0]


def test_rows_without_a_score_are_told_and_not_drawn() -> None:
    holes = ROWS.with_columns(
        pl.when(pl.col("id") < 3).then(None).when(pl.col("id") < 5).then(float("nan")).otherwise("score").alias("score")
    )
    with pytest.warns(UserWarning, match="5 rows without a score cannot be drawn"):
        sheet = sample(predictions=holes, size=300)
    assert min(sheet["id"].to_list()) >= 5


@pytest.mark.parametrize("shift", [0.0, -1.0, 1e6])
def test_scores_of_any_range_have_strata(shift: float) -> None:
    of_ranks = ROWS.with_columns(pl.col("score").rank("ordinal") * 7.0 + shift)
    sheet = sample(predictions=of_ranks, size=200)
    assert sheet["stratum"].n_unique() >= 1
    shares = sheet.filter(pl.col("score") > of_ranks["score"].quantile(0.9))
    if shift <= 0:  # scores far from 0 beside their range lie in one cell
        assert len(shares) > 60


def test_scores_at_the_edges_have_strata_in_their_order() -> None:
    edges = [-1e300, -3.0, -5e-324, 0.0, 5e-324, 0.5, 1 - 2**-53, 1.0, 1 + 2**-52, 3.0, 1e300]
    rows = pl.DataFrame({"id": range(len(edges)), "score": edges})
    sheet = sample(predictions=rows, size=len(edges))
    assert sheet.sort("score")["stratum"].is_sorted()
    assert sheet["probability"].to_list() == [1.0] * len(edges)


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(NoInputError, match="no row has a score"):
        sample(predictions=ROWS.with_columns(pl.lit(None, pl.Float64).alias("score")), size=5)
    with pytest.raises(DataError, match="column 'id' is NULL in 2 rows"):
        sample(predictions=ROWS.with_columns(pl.when(pl.col("id") > 1).then("id").alias("id")), size=5)
    with pytest.raises(DataError, match=r"ids repeat so often|id 0 is there more than once"):  # as its digest falls
        sample(predictions=ROWS.with_columns(pl.lit(0).alias("id")), size=5)
    with pytest.raises(DataError, match=r"id \d+ is there more than once"):
        sample(predictions=ROWS.with_columns(pl.col("id") // 2), size=500)
    with pytest.raises(DataError, match="no input has a column 'land'"):
        sample(predictions=ROWS, size=5, by=["score", "land"])
    for asked in ({"by": "id"}, {"columns": ["label"]}):
        with pytest.raises(UsageError, match=r"'(id|label)' is a column of the sheet itself"):
            sample(predictions=ROWS, size=5, **asked)
    with pytest.raises(UsageError, match="size: Input should be greater than or equal to 1"):
        sample(predictions=ROWS, size=0)


def test_an_earlier_sheet_that_does_not_fit_is_told() -> None:
    first = sample(predictions=ROWS, size=50).with_columns(label=True)
    with pytest.raises(
        DataError, match=r"(?s)1 row, such as id '9999', would not have been drawn from these predictions"
    ):
        sample(predictions=ROWS, size=5, labelled=first.with_columns(pl.col("id").replace(first["id"][0], 9_999)))
    with pytest.raises(DataError, match="is there more than once"):
        sample(predictions=ROWS, size=5, labelled=pl.concat([first, first]))
    with pytest.raises(DataError, match="says neither true nor false in 50 rows, such as 'maybe'"):
        sample(predictions=ROWS, size=5, labelled=first.with_columns(label=pl.lit("maybe")))


def test_the_command_writes_a_sheet_once_and_a_second_beside_it(tmp_path: Path) -> None:
    ROWS.drop("true").write_parquet(tmp_path / "predictions.parquet")
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    done = call("sample", config, "--size", "40", "--columns", "country", "--to", tmp_path / "sheet.csv")
    assert (done.code, done.out.strip()) == (0, str(tmp_path / "sheet.csv"))
    sheet = pl.read_csv(tmp_path / "sheet.csv")
    assert sheet.columns == ["id", "stratum", "probability", "score", "label", "country"]
    again = call("sample", config, "--size", "40", "--to", tmp_path / "sheet.csv")
    assert (again.code, "is there already" in again.err) == (2, True)
    sheet.with_columns(label=pl.lit("no")).write_csv(tmp_path / "filled.csv")
    second = tmp_path / "new" / "folder" / "more.parquet"
    more = ("--labelled", tmp_path / "filled.csv", "--to", second)
    assert call("sample", config, "threshold_sweep", "--size", "30", *more).code == 0
    assert not set(pl.read_parquet(second)["id"]) & set(sheet["id"])


def test_of_several_stages_with_rows_to_draw_one_must_be_named(tmp_path: Path) -> None:
    ROWS.drop("true").write_parquet(tmp_path / "predictions.parquet")
    config = tmp_path / "config.toml"
    mentions = '[[stages]]\nkind = "entity_recognition"\npredicted = "p.parquet"\ngold = "g.parquet"\n'
    config.write_text(CONFIG + mentions)
    unnamed = call("sample", config, "--size", "5", "--to", tmp_path / "sheet.csv")
    assert (unnamed.code, "threshold_sweep, entity_recognition" in unnamed.err) == (2, True)
    assert call("sample", config, "threshold_sweep", "--size", "5", "--to", tmp_path / "sheet.csv").code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--to", "sheet.txt"), 2, "a sheet is a CSV or a Parquet file"),
        (("--to", "predictions.parquet"), 2, "is a file of the input predictions"),
        (("--to", "config.toml.csv", "other"), 2, "no stage with rows that can be drawn is called 'other'"),
        (("--to", "sheet.csv", "--labelled", "none.csv"), 66, "labelled"),
        (("--to", "sheet.csv", "--columns", "text"), 65, "'text'"),
        (("--to", "config.toml/sheet.csv"), 73, "Name another file with --to"),
    ],
)
def test_the_command_tells_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.write_parquet("predictions.parquet")
    (tmp_path / "config.toml").write_text(CONFIG)
    done = (
        call("sample", "config.toml", *words[2:3], "--size", "40", *words[:2], *words[3:])
        if (len(words) == 3)
        else call("sample", "config.toml", "--size", "40", *words)
    )
    assert (done.code, message in done.err) == (code, True), done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "predictions.parquet"]


def test_the_config_of_the_page_runs_on_a_sheet_that_was_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sheet = sample(predictions=ROWS, size=200).drop("label").join(ROWS.select("id", label="true"), on="id")
    sheet.with_columns(pl.when(pl.int_range(pl.len()) < 190).then("label").alias("label")).write_csv("sheet.csv")
    page = Path(__file__).parents[3] / "docs" / "sample.md"
    Path("scores").mkdir()
    ROWS.select(pl.col("id").alias("pair_id"), "score").write_parquet("scores/1.parquet")
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    Path("page.toml").write_text(next(block for block in blocks if "labels =" in block))
    done = call("run", "page.toml")
    assert done.code == 0, done.err
    table = pl.read_parquet(Path(done.out.strip()) / "threshold_sweep_areas" / "threshold_sweep.parquet")
    assert table["n_positive"].to_list() == [pl.read_csv("sheet.csv")["label"].sum()]
