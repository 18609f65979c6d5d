"""Sheets of matches to check: drawn by strata, given back as they are, and what they say by how they were drawn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.calls import call

import thresher
from pipeline.base.errors import ConfigError, DataError, UsageError
from pipeline.metrics.before_after.estimates import AuditedPrecision
from pipeline.stages.before_after.labels import alike

from .test_audit import frames

INPUTS = frames()
KEYS: dict[str, Any] = {
    "pairs": INPUTS["pairs"].drop("right"),
    "events": INPUTS["events"],
    "window": {"before": "48h", "after": "12h", "near": "12h"},
    "compared": "pairs",
    "thresholds": [0.5, 0.6, 0.8, 0.99],
    "audit": {"threshold": 0.5},
}
RIGHT = INPUTS["pairs"].select("event_id", "article_id", "right")
MATCHES = INPUTS["pairs"].filter(pl.col("lag_hours").is_between(0, 12), pl.col("score") >= 0.5)


def filled(sheet: pl.DataFrame, first: int | None = None) -> pl.DataFrame:
    """The sheet with labels in its first rows."""
    beside = sheet.join(RIGHT, on=["event_id", "article_id"], maintain_order="left")
    is_labelled = pl.int_range(pl.len()) < (len(sheet) if first is None else first)
    return beside.with_columns(label=pl.when(is_labelled).then("right")).drop("right")


def audit_of(audited: Any, **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - any input, and keys of a config
    return thresher.before_after(**(KEYS | keys), audited=audited).audit.sort("threshold")


@pytest.fixture(scope="module")
def sheet() -> pl.DataFrame:
    return thresher.sample("before_after", size=60, columns=["kind", "lag_hours"], **KEYS)


def test_a_sheet_is_of_matches_after_their_event_from_the_score_of_the_audit_on(sheet: pl.DataFrame) -> None:
    of_sheet = ["event_id", "article_id", "stratum", "probability", "score", "label"]
    assert sheet.columns == [*of_sheet, "kind", "lag_hours"]
    assert len(sheet) == len(sheet.select("event_id", "article_id").unique()) == 60
    beside = sheet.join(MATCHES, on=["event_id", "article_id"], maintain_order="left")
    assert beside["score"].to_list() == beside["score_right"].to_list()
    assert beside["lag_hours"].to_list() == beside["lag_hours_right"].to_list()
    kinds = sheet.join(INPUTS["events"], on="event_id", maintain_order="left")
    assert kinds["kind"].to_list() == kinds["kind_right"].to_list()
    sizes = sheet.group_by("stratum").agg(pl.len() / pl.col("probability").first()).to_series(1)
    assert sizes.sum() == pytest.approx(len(MATCHES))


def test_a_sheet_that_is_filled_in_is_read_as_it_is(sheet: pl.DataFrame, tmp_path: Path) -> None:
    of_frame = audit_of(filled(sheet))
    words = filled(sheet).with_columns(label=pl.when("label").then(pl.lit("Yes ")).otherwise(pl.lit("no")))
    words.write_csv(tmp_path / "sheet.csv")
    words.write_parquet(tmp_path / "sheet.parquet")
    for path in ("sheet.csv", "sheet.parquet"):
        assert audit_of(tmp_path / path).equals(of_frame)
    row = of_frame.row(0, named=True)
    assert (row["n_audited"], row["n_right"]) == (60, filled(sheet)["label"].sum())
    truth = MATCHES["right"].mean()
    assert row["precision_audited_lower"] <= truth <= row["precision_audited_upper"]
    assert row["precision_combined_lower"] <= row["precision_combined"] <= row["precision_combined_upper"]


def test_a_sheet_that_others_drew_counts_by_its_probabilities() -> None:
    """Half of the matches with a probability of .2 and half with .8: Σ y/p over Σ 1/p."""
    rows = MATCHES.sort("event_id", "article_id")[::7].head(16).select("event_id", "article_id", label="right")
    probability = np.where(rows["label"].to_numpy() ^ (np.arange(16) % 5 == 0), 0.2, 0.8)
    row = audit_of(rows.with_columns(probability=pl.Series(probability))).row(0, named=True)
    expected = (rows["label"].to_numpy() / probability).sum() / (1 / probability).sum()
    assert abs(expected - rows["label"].mean()) > 0.1
    assert row["precision_audited"] == pytest.approx(expected, rel=1e-9)


def test_strata_make_limits_narrower(sheet: pl.DataFrame) -> None:
    by_design, at_random = (
        audit_of(each).row(0, named=True) for each in (filled(sheet), filled(sheet).drop("probability", "stratum"))
    )
    for name in ("precision_audited", "precision_combined"):
        widths = [row[f"{name}_upper"] - row[f"{name}_lower"] for row in (by_design, at_random)]
        assert widths[0] < 0.9 * widths[1]


@pytest.mark.wide
def test_the_estimate_is_right_on_average_and_its_limits_hold_the_truth() -> None:
    truth = np.array([MATCHES.filter(pl.col("score") >= t)["right"].mean() for t in KEYS["thresholds"][:3]])
    estimates, held = [], []
    for seed in range(30):
        drawn = thresher.sample("before_after", size=40, seed=seed, **KEYS)
        table = audit_of(filled(drawn))[:3]
        lower, upper = (table[f"precision_audited_{side}"].to_numpy() for side in ("lower", "upper"))
        estimates.append(table["precision_audited"].to_numpy())
        held.append((lower <= truth) & (truth <= upper))
    errors = np.std(estimates, axis=0) / np.sqrt(30)
    assert (np.abs(np.mean(estimates, axis=0) - truth) <= 3.5 * errors + 1e-9).all()
    assert np.mean(held, axis=0).min() >= 0.88


def test_all_matches_judged_leave_no_doubt() -> None:
    with pytest.warns(UserWarning, match="matches are drawn, not 5,000: there are no more"):
        everything = thresher.sample("before_after", size=5_000, **KEYS)
    for row in audit_of(filled(everything), boundary=">=").to_dicts():
        truth = MATCHES.filter(pl.col("score") >= row["threshold"])["right"].mean()
        if truth is not None:
            ends = [row[f"precision_audited{side}"] for side in ("", "_lower", "_upper")]
            ends += [row[f"precision_combined{side}"] for side in ("", "_lower", "_upper")]
            assert ends == pytest.approx([truth] * 6)


@pytest.mark.filterwarnings("ignore:.* are drawn, not 10,000")
@pytest.mark.parametrize("thresholds", [KEYS["thresholds"], "distinct"])
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_groups_and_both_boundaries_count_what_they_retrieve(thresholds: Any, boundary: str) -> None:  # noqa: ANN401
    keys = {"thresholds": thresholds, "boundary": boundary}
    drawn = thresher.sample("before_after", size=10_000, by=["score", "kind"], **(KEYS | keys))
    table = audit_of(filled(drawn), by=["kind"], **keys)
    matches = MATCHES.join(INPUTS["events"], on="event_id")
    for row in table.to_dicts():
        above = matches["score"] >= row["threshold"] if boundary == ">=" else matches["score"] > row["threshold"]
        retrieved = matches.filter(above, pl.col("kind").is_in(["x", "y"] if row["kind"] is None else [row["kind"]]))
        if boundary == ">" and row["threshold"] == 0.5:
            retrieved = retrieved.filter(pl.col("score") > row["threshold"])
        assert (row["n_audited"], row["n_right"]) == (retrieved.height, retrieved["right"].sum())
        assert row["precision_audited"] == (pytest.approx(retrieved["right"].mean()) if retrieved.height else None)


def test_labels_that_lack_count_as_not_judged_and_are_told(sheet: pl.DataFrame) -> None:
    result = thresher.before_after(**KEYS, audited=filled(sheet, 40))
    assert result.audit.sort("threshold")["n_audited"][0] == 40
    assert "20 rows of 60 have no label, and do not count" in " ".join(result.notes)
    gap = filled(sheet).with_columns(label=pl.when(pl.int_range(pl.len()) != 3).then("label"))
    said = " ".join(thresher.before_after(**KEYS, audited=gap).warnings)
    assert "1 row without a label lie before others" in said
    nothing = audit_of(sheet)
    assert nothing["n_audited"].to_list() == [0] * 4
    assert nothing["undefined"].to_list() == ["no_audit"] * 4


def test_a_second_draw_goes_on_and_both_sheets_are_read(sheet: pl.DataFrame) -> None:
    more = thresher.sample("before_after", size=40, labelled=filled(sheet, 50), **KEYS)
    both = pl.concat([sheet, more], how="diagonal").select("event_id", "article_id")
    assert len(both.unique()) == 100
    row = audit_of([filled(sheet.select(more.columns)), filled(more)]).row(0, named=True)
    assert row["n_audited"] == 100
    assert row["precision_audited_lower"] <= MATCHES["right"].mean() <= row["precision_audited_upper"]


def test_rows_that_others_drew_weigh_by_their_probability() -> None:
    high = MATCHES.filter(pl.col("score") >= 0.7).with_columns(probability=1.0)
    low = MATCHES.filter(pl.col("score") < 0.7).sort("article_id").gather_every(2).with_columns(probability=0.5)
    own = pl.concat([high, low]).select("event_id", "article_id", "probability", label="right")
    row = audit_of(own).row(0, named=True)
    n_low = MATCHES.filter(pl.col("score") < 0.7).height
    expected = (high["right"].sum() + low["right"].to_numpy().mean() * n_low) / len(MATCHES)
    assert row["precision_audited"] == pytest.approx(expected, abs=0.03)
    said = thresher.before_after(**KEYS, audited=own.filter(pl.col("probability") == 1)).warnings
    assert any("by their probabilities its rows stand for" in each for each in said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.with_columns(label=pl.lit("maybe")), "says neither true nor false in 60 rows"),
        (lambda rows: pl.concat([rows, rows[:1]]), r"event_id = \d+, article_id = \d+ is there more than once"),
        (lambda rows: rows.with_columns(pl.col("event_id") + 1_000), "60 rows, such as event_id = .* are no match"),
        (lambda rows: rows.with_columns(event_id=pl.lit(None, pl.Int64)), "event_id or article_id is NULL in 60 rows"),
        (lambda rows: rows.with_columns(probability=pl.lit(1.5)), "'probability' is not above 0 and at most 1"),
        (lambda rows: rows.drop("probability").with_columns(stratum=pl.lit("x")), "its strata are not those"),
        (lambda rows: rows.drop("label"), "neither is_match nor label"),
    ],
)
def test_a_sheet_at_fault_is_refused(sheet: pl.DataFrame, change: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match=message) as caught:
        audit_of(change(filled(sheet)))
    assert caught.value.remedy


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(ConfigError, match="audit says from which score on matches are drawn"):
        thresher.sample("before_after", size=5, **(KEYS | {"audit": None}))
    with pytest.raises(UsageError, match="'stratum' is a column of the sheet itself"):
        thresher.sample("before_after", size=5, columns=["stratum"], **KEYS)
    with pytest.raises(DataError, match="columns: no input has a column 'text'"):
        thresher.sample("before_after", size=5, columns=["text"], **KEYS)
    others = filled(thresher.sample("before_after", size=5, seed=1, **KEYS))
    with pytest.raises(DataError, match="would not have been drawn from these pairs"):
        thresher.sample("before_after", size=5, labelled=others.with_columns(pl.col("event_id") + 1_000), **KEYS)


def test_as_many_matches_drawn_one_by_one_have_limits_of_the_same_width(sheet: pl.DataFrame) -> None:
    table = audit_of(filled(sheet).drop("probability", "stratum"))
    of_sample = thresher.before_after(**KEYS, audited=filled(sheet).drop("probability", "stratum"))
    retrieved = of_sample.estimates.sort("threshold").filter(pl.col("threshold").is_in(table["threshold"].to_list()))
    numbers = [table[f"precision_audited{side}"].cast(pl.Float64).to_numpy() for side in ("", "_lower", "_upper")]
    number, right = alike(AuditedPrecision(*numbers), retrieved["m_after"].to_numpy(), 0.95)
    seen = table["n_audited"].to_numpy()
    assert number[:2] == pytest.approx(seen[:2], rel=0.15)  # limits are whole numbers of matches
    assert right[:2] == pytest.approx(numbers[0][:2] * number[:2])


def test_the_config_of_the_page_runs_on_its_sheet(
    demo_as_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").symlink_to(demo_as_made)
    page = Path(__file__).parents[3] / "docs" / "sample.md"
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    Path("matches.toml").write_text(next(block for block in blocks if "audit =" in block))
    words = ("--size", "50", "--columns", "events.event_time", "--to", "sheet.csv")
    drawn = call("sample", "matches.toml", "before_after", *words)
    assert drawn.code == 0, drawn.err
    rows = pl.read_csv("sheet.csv")
    rows.with_columns(label=pl.lit("yes")).write_csv("filled.csv")
    done = call("run", "matches.toml", "--set", "audited=filled.csv")
    assert done.code == 0, done.err
    table = pl.read_parquet(Path(done.out.strip()) / "before_after_audit" / "before_after.parquet")
    assert table.sort("threshold")["n_audited"][0] == 50
