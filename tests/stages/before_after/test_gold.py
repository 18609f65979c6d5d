from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import read_table, rows_by_status, run_before_after

from pipeline.base.errors import ConfigError, DataError
from pipeline.stages.before_after.contract import OF_GOLD
from pipeline.stages.stated import with_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.runs.stage_results import Run

WINDOW = {"before": "24h", "after": "12h"}
AFTER = 12
GROUPINGS: list[list[str]] = [[], ["source"], ["source", "country"]]
COUNTS = ("tp", "fp", "fn")

Group = tuple[str | None, ...]
Found = dict[tuple[str, Group, float, str], tuple[int, int, int]]


@dataclass(frozen=True)
class Judged:
    """A pair that people judged; `score` is None where the matcher did not store it."""

    event: int
    article: int
    score: float | None
    gold: bool


@dataclass(frozen=True)
class Archive:
    """Small data with everything that can go wrong between a matcher and people who code articles."""

    pairs: pl.DataFrame
    events: pl.DataFrame
    gold: pl.DataFrame
    gold_articles: pl.DataFrame

    def judged(self, *, coded: bool) -> list[Judged]:
        """Every judged pair once, by definition."""
        complete = {row["event_id"] for row in self.events.to_dicts() if row["complete_window"]}
        gold = set(self.gold.rows())
        articles = set(self.gold_articles["article_id"]) if coded else {article for _, article in gold}
        rows = [row for row in self.pairs.to_dicts() if row["event_id"] in complete and row["article_id"] in articles]
        found = [
            Judged(row["event_id"], row["article_id"], row["score"], (row["event_id"], row["article_id"]) in gold)
            for row in rows
            if 0 <= row["lag_hours"] <= AFTER
        ]
        stored = {(row["event_id"], row["article_id"]) for row in rows}
        missed = [pair for pair in gold if pair[0] in complete and pair[1] in articles and pair not in stored]
        return found + [Judged(event, article, None, gold=True) for event, article in missed]

    def groups(self, judged: Sequence[Judged]) -> Iterator[tuple[str, Group, list[Judged]]]:
        """The judged pairs of every group of every grouping."""
        labels = {row["event_id"]: row for row in self.events.to_dicts()}
        for grouping in GROUPINGS:
            keys = {each: tuple(labels[each.event][name] for name in grouping) for each in judged}
            for key in set(keys.values()):
                padded = (*key, *[None] * (2 - len(key)))
                yield ",".join(grouping) or "all", padded, [each for each in judged if keys[each] == key]


def random_archive(seed: int) -> Archive:
    rng = np.random.default_rng(seed)
    n_events, n_articles = 9, 25
    events = pl.DataFrame(
        {
            "event_id": range(n_events),
            "source": ["x", "y", None] * 3,
            "country": ["a", "a", "a", "b", "b", "b", "a", "b", "a"],
            "complete_window": rng.permutation([True] * 7 + [False] * 2).tolist(),
        }
    )
    every = np.array([(event, article) for event in range(n_events + 1) for article in range(n_articles)])
    stored = every[rng.random(len(every)) < 0.5]
    pairs = pl.DataFrame(
        {
            "event_id": stored[:, 0],
            "article_id": stored[:, 1],
            "score": rng.integers(0, 11, len(stored)) / 10,
            "lag_hours": rng.choice(np.array([-30.0, -24.0, -1.0, 0.0, 3.0, 11.5, 12.0, 12.5]), len(stored)),
        }
    )
    known = every[rng.random(len(every)) < 0.15]
    gold = pl.DataFrame({"event_id": known[:, 0], "article_id": known[:, 1]})
    coded = rng.choice(n_articles, 18, replace=False).tolist()
    return Archive(pairs, events, pl.concat([gold, gold[:3]]), pl.DataFrame({"article_id": coded + coded[:2]}))


def run_archive(folder: Path, archive: Archive, *, coded: bool, **keys: Any) -> Run:  # noqa: ANN401 - keys of a config
    frames = {"pairs": archive.pairs, "events": archive.events, "gold": archive.gold}
    frames |= {"gold_articles": archive.gold_articles} if coded else {}
    return run_before_after(folder, frames, **({"window": WINDOW, "by": GROUPINGS} | keys))


def found_counts(run: Run) -> Found:
    rows = read_table(run, "before_after_gold").to_dicts()
    return {
        (row["grouping"], (row.get("source"), row.get("country")), row["threshold"], row["level"]): (
            row["tp"],
            row["fp"],
            row["fn"],
        )
        for row in rows
    }


def level_counts(judged: Sequence[Judged], level: str, threshold: float, boundary: str) -> tuple[int, int, int]:
    """Items of one group: pairs, or articles with any retrieved pair and any gold pair."""
    items: dict[object, list[Judged]] = {}
    for each in judged:
        items.setdefault(each.article if level == "article" else (each.event, each.article), []).append(each)

    def retrieved(each: Judged) -> bool:
        if each.score is None:
            return False
        return each.score >= threshold if boundary == ">=" else each.score > threshold

    marks = [(any(map(retrieved, own)), any(each.gold for each in own)) for own in items.values()]
    return marks.count((True, True)), marks.count((True, False)), marks.count((False, True))


def expected_counts(archive: Archive, thresholds: Sequence[float], boundary: str, *, coded: bool) -> Found:
    return {
        (grouping, key, threshold, level): level_counts(own, level, threshold, boundary)
        for grouping, key, own in archive.groups(archive.judged(coded=coded))
        for threshold in thresholds
        for level in ("match", "article")
    }


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "boundary", "coded", "uncertainty"),
    [(0, ">=", True, "jackknife"), (1, ">", True, "none"), (2, ">=", False, "none"), (3, ">", False, "jackknife")],
)
def test_every_count_of_random_data_is_the_one_of_its_definition(
    tmp_path: Path, seed: int, boundary: str, uncertainty: str, *, coded: bool
) -> None:
    archive, thresholds = random_archive(seed), [-1.0, 0.0, 0.3, 0.55, 1.0, 7.0]
    run = run_archive(tmp_path, archive, coded=coded, thresholds=thresholds, boundary=boundary, uncertainty=uncertainty)
    expected = expected_counts(archive, thresholds, boundary, coded=coded)
    assert found_counts(run) == expected
    assert any(fp > 0 for _, fp, _ in expected.values())
    assert any(key[1][0] is None and key[0] == "source" for key in expected), "NULL is a group"


def distinct_values(archive: Archive, *, coded: bool) -> set[tuple[str, Group, float, str]]:
    """Every score of a pair, and of the best pair of an article, in its group."""
    found = set()
    for grouping, key, own in archive.groups(archive.judged(coded=coded)):
        best: dict[int, float] = {}
        for each in own:
            if each.score is not None:
                found.add((grouping, key, each.score, "match"))
                best[each.article] = max(each.score, best.get(each.article, each.score))
        found |= {(grouping, key, score, "article") for score in best.values()}
    return found


def test_with_distinct_thresholds_each_level_has_the_scores_at_which_it_changes(tmp_path: Path) -> None:
    archive = random_archive(4)
    run = run_archive(tmp_path, archive, coded=True, thresholds="distinct")
    scores = sorted(set(archive.pairs["score"]))
    every = expected_counts(archive, scores, ">=", coded=True)
    assert found_counts(run) == {key: every[key] for key in distinct_values(archive, coded=True)}


def test_with_distinct_thresholds_and_boundary_above_a_score_equal_to_the_threshold_is_not_retrieved(
    tmp_path: Path,
) -> None:
    archive = random_archive(4)
    run = run_archive(tmp_path, archive, coded=True, thresholds="distinct", boundary=">")
    expected = expected_counts(archive, sorted(set(archive.pairs["score"])), ">", coded=True)
    found = found_counts(run)
    assert found == {key: expected[key] for key in found}


def small(**more: list[Any]) -> dict[str, pl.DataFrame]:
    pairs = {
        "event_id": [1, 1, 1, 2, 2],
        "article_id": [1, 2, 3, 1, 4],
        "score": [0.9, 0.8, 0.2, 0.6, 0.7],
        "lag_hours": [1.0, 2.0, 20.0, 3.0, -5.0],
    }
    return {"pairs": pl.DataFrame(pairs | more)}


def test_a_gold_pair_that_was_never_stored_is_missed_and_one_stored_outside_the_window_is_not_looked_for(
    tmp_path: Path,
) -> None:
    gold = pl.DataFrame({"event_id": [1, 1, 2, 2], "article_id": [1, 3, 4, 9]})
    run = run_before_after(tmp_path, small() | {"gold": gold}, thresholds=[0.5, 0.95], window=WINDOW)
    table = read_table(run, "before_after_gold").sort("level", "threshold")
    assert table.select("level", "threshold", *COUNTS).rows() == [
        ("article", 0.5, 1, 0, 1),
        ("article", 0.95, 0, 0, 2),
        ("match", 0.5, 1, 1, 1),
        ("match", 0.95, 0, 0, 2),
    ]
    assert table["undefined"].to_list() == [None, "no_prediction", None, "no_prediction"]
    assert table["precision"].to_list() == [1.0, None, 0.5, None]
    assert table["recall"].to_list() == [0.5, 0.0, 0.5, 0.0]
    assert not any("repeat" in warning for warning in run.warnings)


def test_gold_rows_that_repeat_a_pair_count_once_with_a_warning_and_where_leaves_gold_out(tmp_path: Path) -> None:
    gold = pl.DataFrame({"event_id": [1, 1, 1, 2], "article_id": [1, 1, 1, 9], "coder": ["a", "b", "b", "c"]})
    frames = small() | {"gold": gold, "gold_articles": pl.DataFrame({"article_id": [1, 2, 9]})}
    run = run_before_after(tmp_path, frames, thresholds=[0.5], window=WINDOW, gold={"where": "coder <> 'c'"})
    table = read_table(run, "before_after_gold").sort("level")
    assert table.select("level", *COUNTS).rows() == [("article", 1, 1, 0), ("match", 1, 2, 0)]
    assert [warning for warning in run.warnings if "repeat" in warning] == [
        "before_after: 2 gold rows repeat a pair; each pair counts once"
    ]
    assert rows_by_status(run, "gold") == {"used": 3, "where": 1}
    assert rows_by_status(run, "gold_articles") == {"used": 3}


def test_an_article_counts_once_in_every_group_so_groups_do_not_add_up(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1, 2], "source": ["x", "y"]})
    gold = pl.DataFrame({"event_id": [1], "article_id": [1]})
    frames = small() | {"events": events, "gold": gold}
    run = run_before_after(tmp_path, frames, by=["source"], thresholds=[0.5], window=WINDOW)
    table = read_table(run, "before_after_gold").filter(pl.col("level") == "article")
    counts = {(row["grouping"], row["source"]): (row["tp"], row["fp"], row["fn"]) for row in table.to_dicts()}
    assert counts == {("all", None): (1, 0, 0), ("source", "x"): (1, 0, 0), ("source", "y"): (0, 1, 0)}


def test_a_dropped_score_is_a_missed_gold_pair_and_a_merged_duplicate_counts_by_its_best(tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {
            "event_id": [1, 1, 1, 2],
            "article_id": [1, 1, 2, 3],
            "score": [0.9, 0.1, float("nan"), None],
            "lag_hours": [1.0, 1.0, 1.0, 1.0],
        }
    )
    gold = pl.DataFrame({"event_id": [1, 1, 2], "article_id": [1, 2, 3]})
    run = run_before_after(
        tmp_path,
        {"pairs": pairs, "gold": gold},
        thresholds=[0.0, 0.5],
        window=WINDOW,
        duplicates="max",
        invalid_scores="drop",
    )
    table = read_table(run, "before_after_gold").filter(pl.col("level") == "match")
    assert table.select(COUNTS).rows() == [(1, 0, 2), (1, 0, 2)]
    assert rows_by_status(run) == {"used": 1, "duplicate": 1, "nan_score": 1, "null_score": 1}


def test_without_gold_the_table_has_no_row(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, small(), thresholds=[0.5], window=WINDOW)
    assert read_table(run, "before_after_gold").is_empty()


def test_a_grouping_that_missed_gold_pairs_have_not_is_refused(tmp_path: Path) -> None:
    gold = pl.DataFrame({"event_id": [1], "article_id": [1]})
    frames = small(medium=list("abcde")) | {"gold": gold}
    with pytest.raises(DataError, match="'medium' is no column of events"):
        run_before_after(tmp_path, frames, by=["medium"], thresholds=[0.5])
    articles = pl.DataFrame({"article_id": [1, 2, 3, 4], "kind": list("abab")})
    with pytest.raises(DataError, match="'kind' is no column of events"):
        run_before_after(tmp_path, frames | {"articles": articles}, by=["kind"], thresholds=[0.5])


def test_gold_needs_article_id_in_pairs_and_one_type_of_keys(tmp_path: Path) -> None:
    gold = pl.DataFrame({"event_id": [1], "article_id": [1]})
    frames = {"pairs": small()["pairs"].drop("article_id"), "gold": gold}
    with pytest.raises(DataError, match="gold needs article_id in pairs"):
        run_before_after(tmp_path, frames, thresholds=[0.5])
    frames = small() | {"gold": gold.with_columns(pl.col("article_id").cast(pl.String))}
    with pytest.raises(DataError, match=r"article_id is .* the two cannot be compared"):
        run_before_after(tmp_path, frames, thresholds=[0.5])


@pytest.mark.parametrize("column", ["event_id", "article_id"])
def test_gold_rows_without_an_event_or_an_article_are_refused(tmp_path: Path, column: str) -> None:
    gold = pl.DataFrame({"event_id": [1, 2], "article_id": [1, 9]})
    gold = gold.with_columns(pl.Series(column, [1, None]))
    with pytest.raises(DataError, match=column):
        run_before_after(tmp_path, small() | {"gold": gold}, thresholds=[0.5])


def test_coded_articles_without_gold_are_refused_in_words(tmp_path: Path) -> None:
    frames = small() | {"gold_articles": pl.DataFrame({"article_id": [1]})}
    with pytest.raises((ConfigError, DataError), match="gold"):
        run_before_after(tmp_path, frames, thresholds=[0.5])


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_ratios_of_gold_counts_are_their_definitions_and_no_quotient_by_0(tp: int, fp: int, fn: int) -> None:
    row = with_ratios(pl.DataFrame({"tp": [tp], "fp": [fp], "fn": [fn]}), OF_GOLD).row(0, named=True)

    def quotient(top: int, bottom: int) -> float | None:
        return float(Fraction(top, bottom)) if bottom else None

    expected = {
        "precision": quotient(tp, tp + fp),
        "recall": quotient(tp, tp + fn),
        "f1": quotient(2 * tp, 2 * tp + fp + fn),
    }
    for name, value in expected.items():
        assert row[name] == (None if value is None else pytest.approx(value, rel=1e-15)), name
    assert row["undefined"] == ("no_prediction" if tp + fp == 0 else "no_positive" if tp + fn == 0 else None)


def test_gold_of_other_data_is_said_with_an_example_of_both_keys(tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {"event_id": [1, 1, 2, 2], "article_id": [1, 2, 1, 3], "score": [0.9] * 4, "lag_hours": [1.0, -1.0, 2.0, -3.0]}
    )
    gold = pl.DataFrame({"event_id": [8, 9], "article_id": [1, 2]})
    found = run_before_after(tmp_path, {"pairs": pairs, "gold": gold}, thresholds=[0.5])
    words = "no event_id of input gold is in input pairs (gold has for example event_id = 8, pairs has event_id = 1)"
    assert [said for said in found.warnings if words in said]
    assert not [said for said in found.warnings if "no article_id" in said]
