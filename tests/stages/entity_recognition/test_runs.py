from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from reference_averages import averages
from reference_mentions import RULES, Row, counts_by_hand, random_mentions
from running import read_table, rows_by_status, run_stages, stage_config

import pipeline
from pipeline.engines import duckdb
from pipeline.stages.entity_recognition import documents as document_sums

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.metrics.matching import Average
    from pipeline.runs.stage_results import Run

KIND = "entity_recognition"
AVERAGES: list[Average] = ["micro", "macro", "semeval", "semeval_micro"]
RATIOS = ["precision", "recall", "f1"]


def run_on(folder: Path, gold: pl.DataFrame, predicted: pl.DataFrame, **keys: Any) -> Run:  # noqa: ANN401
    documents = keys.pop("documents", None)
    frames = {"gold": gold, "predicted": predicted} | ({} if documents is None else {"documents": documents})
    return run_stages(stage_config(folder, KIND, frames, **keys))


def table(run: Run, name: str) -> pl.DataFrame:
    return read_table(run, f"{KIND}_{name}", KIND)


def mentions(*rows: tuple[Any, ...], **more: Any) -> pl.DataFrame:  # noqa: ANN401 - any values
    """Mentions of (doc_id, start, end) and further columns."""
    types = {"doc_id": pl.String, "start": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(list(rows), schema=types, orient="row").with_columns(**more)


def with_types(allowed: Callable[[Row, Row], bool]) -> Callable[[Row, Row], bool]:
    return lambda gold, predicted: gold["type"] == predicted["type"] and allowed(gold, predicted)


# Against brute force -------------------------------------------------------------------------------------------------


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("match_type", [False, True], ids=["", "typed"])
@pytest.mark.parametrize("match", list(RULES))
def test_every_table_is_that_of_largest_matchings_at_every_threshold(
    tmp_path: Path,
    match: str,
    match_type: bool,  # noqa: FBT001 - parametrized
) -> None:
    rng = np.random.default_rng([7, len(match), match_type])
    gold, predicted = random_mentions(rng, 40), random_mentions(rng, 70, predicted=True)
    listed = [f"d{number}" for number in range(8)]
    run = run_on(
        tmp_path,
        gold,
        predicted,
        documents=pl.DataFrame({"doc_id": listed}),
        match=match,
        match_type=match_type,
        max_centre_distance=3,
        by=[["system"]],
        averages=AVERAGES,
    )
    allowed = with_types(RULES[match]) if match_type else RULES[match]
    scores = table(run, "scores")
    assert scores.height == 2 * len(AVERAGES) * 5
    for (system, threshold), part in scores.group_by("system", "threshold"):
        retrieved = predicted.filter(pl.col("score") >= threshold, system=system)
        by_hand = counts_by_hand(gold, retrieved, listed, allowed)
        expected = averages(by_hand, [], AVERAGES).sort("average")
        found = part.sort("average")
        for name in ("average", "n_documents", "tp", "fp", "fn", *(f"{ratio}_dropped" for ratio in RATIOS)):
            assert found[name].to_list() == expected[name].to_list(), name
        for name in RATIOS:
            assert found[name].to_list() == pytest.approx(expected[name].to_list(), abs=1e-14), name
        if threshold == 0.1:
            of_documents = table(run, "documents").filter(system=system).select(by_hand.columns)
            assert of_documents.equals(by_hand)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_given_thresholds_and_their_boundary(tmp_path: Path, boundary: str) -> None:
    rng = np.random.default_rng(3)
    gold, predicted = random_mentions(rng, 30), random_mentions(rng, 50, predicted=True)
    listed = sorted({*gold["doc_id"], *predicted["doc_id"]})
    thresholds = [0.25, 0.3, 0.9, 2.0]
    run = run_on(tmp_path, gold, predicted, match="overlap", thresholds=thresholds, boundary=boundary)
    scores = table(run, "scores")
    for number, threshold in enumerate(thresholds):
        keep = pl.col("score") >= threshold if boundary == ">=" else pl.col("score") > threshold
        by_hand = counts_by_hand(gold, predicted.filter(keep), listed, RULES["overlap"])
        expected = averages(by_hand, [], ["macro", "micro"])
        found = scores.filter(threshold=threshold).sort("average")
        for name in ("tp", "fp", "fn"):
            assert found[name].to_list() == expected[name].to_list()
        for name in RATIOS:
            assert found[name].to_list() == pytest.approx(expected[name].to_list(), abs=1e-14)
        if number == 0:
            assert table(run, "documents").select(by_hand.columns).equals(by_hand)
            outcomes = table(run, "outcomes")["outcome"].value_counts().sort("outcome")
            assert outcomes["count"].to_list() == [by_hand[name].sum() for name in ("fn", "fp", "tp")]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_distinct_scores_and_their_boundary_agree_with_the_same_list(tmp_path: Path, boundary: str) -> None:
    rng = np.random.default_rng(4)
    gold, predicted = random_mentions(rng, 30), random_mentions(rng, 50, predicted=True)
    given = predicted["score"].unique().sort().to_list()
    runs = [
        run_on(tmp_path / str(number), gold, predicted, thresholds=thresholds, boundary=boundary, averages=AVERAGES)
        for number, thresholds in enumerate(("distinct", given))
    ]
    first, second = (table(run, "scores") for run in runs)
    assert first.equals(second)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("match", RULES)
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_documents_and_single_mentions_are_those_of_the_lowest_threshold_of_their_group(
    tmp_path: Path, boundary: str, match: str
) -> None:
    """The lowest score of one system is not that of the other, nor is that of one type."""
    rng = np.random.default_rng(14)
    gold, predicted = random_mentions(rng, 30), random_mentions(rng, 60, predicted=True)
    predicted = predicted.filter((pl.col("system") == "x") | (pl.col("score") > 0.2))
    keys = {"match": match, "match_type": True, "by": [[], ["system"], ["system", "type"]], "boundary": boundary}
    run = run_on(tmp_path, gold, predicted, averages=["micro"], **keys)
    scores, group = table(run, "scores"), ["grouping", "system", "type"]
    lowest = scores.sort("threshold").unique(group, keep="first").sort(group)
    assert lowest["threshold"].n_unique() > 1
    counts = ["tp", "fp", "fn"]
    documents = table(run, "documents").group_by(group).agg(pl.col(counts).sum()).sort(group)
    assert documents.equals(lowest.select(*group, *counts))
    outcomes = table(run, "outcomes")
    single = outcomes.group_by(group).agg(
        (pl.col("outcome") == each).sum().cast(pl.Int64).alias(each) for each in counts
    )
    assert single.sort(group).equals(documents.filter(grouping="system,type"))
    missed = outcomes.filter(outcome="fn")
    assert missed.select("predicted_start", "predicted_text", "score").null_count().row(0) == (missed.height,) * 3


def test_micro_alone_needs_no_counts_of_documents_in_bins(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    gold, predicted = random_mentions(rng, 30), random_mentions(rng, 50, predicted=True)
    keys = {"thresholds": [0.3, 0.6], "by": [[], ["system"]]}
    alone = run_on(tmp_path / "alone", gold, predicted, averages=["micro"], **keys)
    both = run_on(tmp_path / "both", gold, predicted, averages=["micro", "macro"], **keys)
    assert table(alone, "scores").equals(table(both, "scores").filter(average="micro"))
    assert table(alone, "documents").equals(table(both, "documents"))


# Groups --------------------------------------------------------------------------------------------------------------


def test_groups_of_types_add_up_and_are_those_of_filtered_mentions(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    gold, predicted = random_mentions(rng, 40), random_mentions(rng, 60, predicted=True).drop("score")
    run = run_on(tmp_path / "all", gold, predicted, match_type=True, by=["type"], averages=["micro", "macro"])
    scores = table(run, "scores")
    total = scores.filter(grouping="all", average="micro")
    of_types = scores.filter(grouping="type", average="micro")
    assert of_types["type"].to_list() == ["person", "place"]
    for name in ("tp", "fp", "fn"):
        assert of_types[name].sum() == total[name].item()
    for kind in ("person", "place"):
        alone = run_on(tmp_path / kind, gold.filter(type=kind), predicted.filter(type=kind))
        one = scores.filter(pl.col("type") == kind).sort("average")
        columns = ["average", "n_documents", "tp", "fp", "fn", *RATIOS, "precision_lower", "recall_upper"]
        assert one.select(columns).equals(table(alone, "scores").sort("average").select(columns))


def test_documents_without_a_mention_count_in_the_total_and_in_no_group_of_types(tmp_path: Path) -> None:
    gold, predicted = mentions(("a", 0, 3), type=pl.lit("t")), mentions(("a", 0, 3), type=pl.lit("t"))
    listed = pl.DataFrame({"doc_id": ["a", "b"]})
    run = run_on(tmp_path, gold, predicted, documents=listed, match_type=True, by=["type"], averages=["semeval"])
    found = table(run, "scores").select("grouping", "type", "n_documents", "f1")
    assert found.rows() == [("all", None, 2, 1.0), ("type", "t", 1, 1.0)]
    assert table(run, "documents").select("grouping", "doc_id").rows() == [("all", "a"), ("all", "b"), ("type", "a")]


def test_the_gold_of_every_document_counts_for_every_system(tmp_path: Path) -> None:
    gold = mentions(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    predicted = mentions(("a", 0, 3), ("b", 0, 3), ("d", 5, 6), system=pl.Series(["x", "y", None]))
    run = run_on(tmp_path, gold, predicted, by=["system"], averages=["micro"])
    found = table(run, "scores").select("grouping", "system", "n_documents", "tp", "fp", "fn")
    systems = [("system", name, 4) for name in ("x", "y", None)]
    assert found.rows() == [
        ("all", None, 4, 2, 1, 7),
        *((*each, *counts) for each, counts in zip(systems, [(1, 0, 2), (1, 0, 2), (0, 1, 3)], strict=True)),
    ]


def test_groups_of_documents(tmp_path: Path) -> None:
    gold, predicted = mentions(("a", 0, 3), ("b", 0, 3)), mentions(("a", 0, 3), ("c", 0, 3))
    listed = pl.DataFrame({"doc_id": ["a", "b", "c", "d"], "genre": ["news", "news", "blog", "mail"]})
    run = run_on(tmp_path, gold, predicted, documents=listed, by=[["genre"]], averages=["micro"])
    found = table(run, "scores").select("genre", "n_documents", "tp", "fp", "fn", "undefined")
    assert found.rows() == [
        ("blog", 1, 0, 1, 0, "no_positive"),
        ("mail", 1, 0, 0, 0, "no_prediction"),
        ("news", 2, 1, 0, 1, None),
    ]
    assert any("1 of 3 groups has no prediction" in text for text in run.notes)


# Rows ----------------------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_parts_of_the_rows_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    gold, predicted = random_mentions(rng, 60, documents=20), random_mentions(rng, 90, predicted=True, documents=20)
    keys = {"match": "overlap", "by": ["system"], "averages": AVERAGES}
    whole = run_on(tmp_path / "whole", gold, predicted, **keys)
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 7)
    parts = run_on(tmp_path / "parts", gold, predicted, **keys)
    for name in ("scores", "documents", "outcomes"):
        assert table(parts, name).equals(table(whole, name)), name


@pytest.mark.wide
@pytest.mark.parametrize("thresholds", ["distinct", [0.3, 0.6]], ids=["distinct", "given"])
def test_blocks_of_the_rows_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thresholds: str | list[float]
) -> None:
    """Averages over documents are summed in blocks; a document that lies in several counts once."""
    rng = np.random.default_rng(9)
    gold, predicted = random_mentions(rng, 60, documents=9), random_mentions(rng, 90, predicted=True, documents=9)
    keys = {"match_type": True, "by": [[], ["system"], ["type", "system"]], "averages": AVERAGES}
    whole = run_on(tmp_path / "whole", gold, predicted, thresholds=thresholds, **keys)
    monkeypatch.setattr(document_sums, "_DENSE", 0)
    sparse = run_on(tmp_path / "sparse", gold, predicted, thresholds=thresholds, **keys)
    assert table(sparse, "scores").equals(table(whole, "scores"))
    monkeypatch.setattr(duckdb, "BLOCK_ROWS", 5)
    blocks = run_on(tmp_path / "blocks", gold, predicted, thresholds=thresholds, **keys)
    found, expected = (table(run, "scores").select(cs.exclude(cs.float())) for run in (blocks, whole))
    assert found.equals(expected)
    numbers = [table(run, "scores").select(cs.float()).fill_null(-1).to_numpy() for run in (blocks, whole)]
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-12)


def test_the_order_of_the_rows_decides_nothing_but_by_the_rule_of_the_file(tmp_path: Path) -> None:
    """The first gold mention takes the prediction that the second needs."""
    gold = mentions(("a", 0, 10), ("a", 8, 12))
    predicted = mentions(("a", 9, 11), ("a", 0, 2))
    for number, (rows, expected) in enumerate(((predicted, 1), (predicted.reverse(), 2))):
        first = run_on(tmp_path / f"{number}", gold, rows, match="overlap", assignment="file_order")
        assert table(first, "scores")["tp"].to_list() == [expected] * 2
        largest = run_on(tmp_path / f"{number} largest", gold, rows, match="overlap")
        assert table(largest, "scores")["tp"].to_list() == [2] * 2


def test_rows_of_documents_that_are_not_listed_are_left_out_and_counted(tmp_path: Path) -> None:
    gold, predicted = mentions(("a", 0, 3), ("b", 0, 3)), mentions(("a", 0, 3), ("b", 0, 3), ("b", 1, 3))
    run = run_on(tmp_path, gold, predicted, documents=pl.DataFrame({"doc_id": ["a"]}), averages=["micro"])
    assert table(run, "scores").select("tp", "fp", "fn").rows() == [(1, 0, 0)]
    assert rows_by_status(run, "predicted", KIND) == {"used": 1, "unlisted_document": 2}
    assert rows_by_status(run, "gold", KIND) == {"used": 1, "unlisted_document": 1}


def test_scores_at_fault_are_left_out_if_wanted(tmp_path: Path) -> None:
    gold = mentions(("a", 0, 3))
    scores = pl.Series("score", [0.5, None, float("nan"), float("inf")])
    predicted = mentions(*[("a", 0, 3)] * 4).with_columns(scores)
    run = run_on(tmp_path, gold, predicted, invalid_scores="drop")
    assert rows_by_status(run, "predicted", KIND) == {"used": 1, "null_score": 1, "nan_score": 1, "infinite_score": 1}
    with pytest.raises(pipeline.base.errors.DataError, match="column 'score' is NULL in 1 row"):
        run_on(tmp_path / "refused", gold, predicted)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("scored", [False, True], ids=["", "scored"])
@pytest.mark.parametrize("empty", ["gold", "predicted", "both"])
def test_empty_inputs_have_results(tmp_path: Path, empty: str, scored: bool) -> None:  # noqa: FBT001 - parametrized
    gold, predicted = mentions(("a", 0, 3)), mentions(("a", 0, 3))
    predicted = predicted.with_columns(score=0.5) if scored else predicted
    gold = gold.clear() if empty in {"gold", "both"} else gold
    predicted = predicted.clear() if empty in {"predicted", "both"} else predicted
    run = run_on(tmp_path, gold, predicted, averages=AVERAGES, allow_empty=empty == "both")
    rows = table(run, "scores").filter(average="micro").select("tp", "fp", "fn", "precision", "recall").rows()
    expected = {"gold": (0, 1, 0, 0.0, None), "predicted": (0, 0, 1, None, 0.0), "both": (0, 0, 0, None, None)}
    assert rows == [expected[empty]]
    assert any("no gold" in each or "no prediction" in each for each in run.warnings)


@pytest.mark.parametrize("match", RULES)
def test_nothing_at_all_has_a_total_and_no_group(tmp_path: Path, match: str) -> None:
    nothing = mentions().with_columns(text=pl.lit("", dtype=pl.String), type=pl.lit("", dtype=pl.String))
    keys = {"match_type": True, "by": ["type"], "averages": AVERAGES, "allow_empty": True}
    run = run_on(tmp_path, nothing, nothing, match=match, **keys)
    rows = table(run, "scores").select("grouping", "type", "n_documents", "tp", "fp", "fn").rows()
    assert rows == [("all", None, 0, 0, 0, 0)] * len(AVERAGES)
    assert any("no gold mention" in each for each in run.warnings)


def test_single_mentions_are_left_out_if_they_are_not_wanted(tmp_path: Path) -> None:
    gold, predicted = mentions(("a", 0, 3)), mentions(("a", 0, 3))
    assert not (run_on(tmp_path / "off", gold, predicted, outcomes=False).path / "entity_recognition_outcomes").exists()
    assert table(run_on(tmp_path / "auto", gold, predicted), "outcomes")["outcome"].to_list() == ["tp"]


def test_means_over_documents_are_not_marked_by_mentions_that_they_do_not_weigh_by(tmp_path: Path) -> None:
    """Of 20 documents one holds 100 of 195 mentions: that matters where mentions are pooled, and nowhere else."""
    document = np.repeat(np.arange(20), [100, *[5] * 19])
    start = 10 * np.arange(len(document))
    gold = pl.DataFrame({"doc_id": document, "start": start, "end": start + 4})
    predicted = gold.with_columns(pl.when(pl.int_range(pl.len()) % 4 == 0).then(pl.col("end") + 1).otherwise("end"))
    run = run_on(tmp_path, gold, predicted, averages=["micro", "macro"])
    names = ("average", "interval_quality", "n_clusters", "n_clusters_effective")
    rows = {row[0]: row[1:] for row in table(run, "scores").select(names).iter_rows()}
    assert rows == {
        "micro": ("unequal_clusters", 20, pytest.approx(195**2 / (100**2 + 19 * 25))),
        "macro": ("good", 20, 20.0),
    }
    points = table(run, "operating_points")
    assert set(points["n_clusters_effective"].drop_nulls()) <= {rows["micro"][2]}
