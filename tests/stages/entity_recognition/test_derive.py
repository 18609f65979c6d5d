"""`derive` of entity_recognition from a few counts: scores, averages over documents, documents, warnings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deriving import count_table, derived, saved_counts
from pydantic import ValidationError

from pipeline.base.schemas import internal_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

KIND = "entity_recognition"
SUMS = ("precision", "recall", "f1", "n_precision", "n_recall", "n_f1", "n_documents")
COUNTS: Rows = [  # 5 gold mentions; 4 predictions, of which 3 are right, and one below all thresholds
    {"n_gold": 5, "fp": 1},
    {"threshold": 0.2, "tp": 1, "fp": 1},
    {"threshold": 0.6, "tp": 2},
]
DOCUMENTS: Rows = [{"_document": 1, "tp": 2, "fp": 1, "n_gold": 3}, {"_document": 2, "tp": 1, "n_gold": 2}]
OF_DOCUMENTS: Rows = [  # from 0.6 on 2 of 3 gold mentions of the first document; from 0.2 on 1 of 2 of the second, too
    {"n_recall": 2.0, "n_f1": 2.0, "n_documents": 2.0},
    {"threshold": 0.6, "precision": 1.0, "recall": 2 / 3, "f1": 4 / 5, "n_precision": 1.0},
    {"threshold": 0.2, "precision": 2 / 3 - 1 + 1, "recall": 1 / 2, "f1": 2 / 3 - 4 / 5 + 2 / 3, "n_precision": 1.0},
]


def recognised(
    counts: Sequence[Mapping[str, Any]],
    documents: Sequence[Mapping[str, Any]],
    by: Groupings = ((),),
    sums: Sequence[Mapping[str, Any]] | None = None,
    lowest: pl.DataFrame | None = None,
    **keys: object,
) -> Derived:
    frames = {
        "counts": saved_counts(KIND, counts, by),
        "documents": of_documents(documents, by),
        "document_ids": pl.DataFrame({"doc_id": ["x", "y", "z"]}),
    }
    if sums is not None:
        frames["sums_of_documents"] = count_table(sums, dict.fromkeys(SUMS, pl.Float64()), by)
    if lowest is not None:
        frames["lowest"] = lowest
    return derived(KIND, frames, {}, **{"thresholds": [0.2, 0.6], "averages": ["micro"], "by": by} | keys)


def of_documents(rows: Sequence[Mapping[str, Any]], by: Groupings) -> pl.DataFrame:
    counts: dict[str, pl.DataType] = dict.fromkeys(("tp", "fp", "n_gold"), pl.Int64())
    table = count_table(rows, counts, by, {"_document": pl.Int64()})
    return table.drop("grouping", "threshold").with_columns(pl.col("replicate").cast(pl.Int16))


def ratios(row: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(row[name] for name in ("precision", "recall", "f1"))


def test_pooled_scores_at_every_threshold() -> None:
    rows = recognised(COUNTS, DOCUMENTS)["scores"].to_dicts()
    cells = [tuple(row[name] for name in ("average", "threshold", "n_documents", "tp", "fp", "fn")) for row in rows]
    assert cells == [("micro", 0.2, 2, 3, 1, 2), ("micro", 0.6, 2, 2, 0, 3)]
    assert [ratios(row) for row in rows] == [(3 / 4, 3 / 5, 6 / 9), (1.0, 2 / 5, 4 / 7)]
    assert {row["undefined_interval"] for row in rows} == {"one_replicate"}


def test_replicates_are_those_of_documents_also_without_mentions() -> None:
    documents: Rows = [*DOCUMENTS, {"_document": 3, "replicate": 1}]
    rows = recognised(COUNTS, documents)["scores"].to_dicts()
    assert {row["undefined_interval"] for row in rows} == {None}
    assert all(row["precision_lower"] < row["precision"] <= row["precision_upper"] for row in rows)
    assert {row["n_documents"] for row in rows} == {3}
    wanted = recognised(COUNTS, documents, uncertainty="none")["scores"]
    assert set(wanted["undefined_interval"]) == {"none"}


def test_averages_over_documents_leave_out_or_count_what_is_undefined() -> None:
    result = recognised(COUNTS, DOCUMENTS, sums=OF_DOCUMENTS, averages=["macro", "semeval"])
    macro = {row["threshold"]: row for row in result.rows("scores", average="macro")}
    assert ratios(macro[0.6]) == pytest.approx((1.0, (2 / 3 + 0) / 2, (4 / 5 + 0) / 2))
    assert ratios(macro[0.2]) == pytest.approx(((2 / 3 + 1) / 2, (2 / 3 + 1 / 2) / 2, (2 / 3 + 2 / 3) / 2))
    assert (macro[0.6]["precision_dropped"], macro[0.6]["recall_dropped"], macro[0.2]["precision_dropped"]) == (1, 0, 0)
    semeval = result.row("scores", average="semeval", threshold=0.6)  # without a prediction precision is 1 there
    assert ratios(semeval) == pytest.approx((1.0, 1 / 3, 2 * 1 / 3 / (4 / 3)))
    assert semeval["precision_dropped"] == 0


@pytest.mark.parametrize(
    ("counts", "values", "reason"),
    [
        ([{"n_gold": 2}], (None, 0.0, 0.0), "no_prediction"),
        ([{"threshold": 0.6, "fp": 2}], (0.0, None, 0.0), "no_positive"),
        ([{}], (None, None, None), "no_prediction"),
    ],
)
def test_a_ratio_of_nothing_is_null_and_says_why(
    counts: list[dict[str, Any]], values: tuple[float | None, ...], reason: str
) -> None:
    result = recognised(
        counts, [{"_document": 1}, {"_document": 2, "replicate": 1}], averages=["micro", "semeval_micro"]
    )
    row = result.row("scores", average="micro", threshold=0.6)
    assert (ratios(row), row["undefined"], row["undefined_interval"]) == (values, reason, "undefined_ratio")
    by_convention = result.row("scores", average="semeval_micro", threshold=0.6)
    assert ratios(by_convention) == tuple(1.0 if value is None else value for value in values)
    words = {"no_prediction": "there is no prediction", "no_positive": "there is no gold mention"}
    assert any(text.startswith(words[reason]) for text in result.warnings)


def test_without_scores_all_predictions_count_at_once() -> None:
    counts: Rows = [{"n_gold": 5, "tp": 3, "fp": 1}]
    row = recognised(counts, DOCUMENTS, thresholds="distinct").row("scores")
    assert (row["threshold"], row["tp"], row["fp"], row["fn"]) == (None, 3, 1, 2)


def test_thresholds_are_chosen_by_all_mentions_and_counted_on_other_documents() -> None:
    counts: Rows = [{**row, "replicate": number} for number in range(12) for row in COUNTS]
    documents: Rows = [{"_document": 1 + number, "replicate": number, "n_gold": 5} for number in range(3)]
    points: Rows = [{"beta": 1}, {"min_recall": 0.6}, {"min_precision": 0.9, "confidence": 0.5001}, {"min_recall": 0.9}]
    result = recognised(counts, documents, operating_points=points)
    chosen = {row["criterion"]: row for row in result["operating_points"].to_dicts()}
    # at .2: tp 3, fp 1, fn 2; at .6: tp 2, fp 0, fn 3; every document is like the others
    names = ("precision_cross_fitted", "recall_cross_fitted", "f1_cross_fitted")
    assert [chosen["max_f1"][name] for name in ("threshold", *names)] == pytest.approx([0.2, 3 / 4, 3 / 5, 6 / 9])
    assert [chosen["min_recall=0.6"][name] for name in ("threshold", *names)] == pytest.approx(
        [0.2, 3 / 4, 3 / 5, 6 / 9]
    )
    assert chosen["min_precision=0.9,confidence=0.5001"]["threshold"] == 0.6  # 24 of 24
    assert chosen["min_recall=0.9"]["undefined"] == "not_reached"
    none = recognised(counts, documents, operating_points=points, uncertainty="none")["operating_points"]
    assert set(none["undefined_cross_fitted"]) == {"none", "confidence"}
    assert recognised([{"tp": 1, "n_gold": 1}], DOCUMENTS, thresholds="distinct")["operating_points"].is_empty()


def test_costs_and_capacities_of_mentions() -> None:
    counts: Rows = [{**row, "replicate": number} for number in range(2) for row in COUNTS]
    points: Rows = [{"cost": {"fp": 4, "fn": 3}}, {"cost": {"fp": 2, "fn": 3}}, {"max_alerts": 7}, {"threshold": 0.6}]
    rows = {
        row["criterion"]: row
        for row in recognised(counts, DOCUMENTS, operating_points=points)["operating_points"].to_dicts()
    }
    # of both halves at .2: fp 2, fn 4; at .6: fp 0, fn 6
    names = ("threshold", "cost", "cost_cross_fitted")
    assert [rows["cost=fp:4,fn:3"][name] for name in names] == [0.6, 18.0, 18.0]
    assert [rows["cost=fp:2,fn:3"][name] for name in names] == [0.2, 16.0, 16.0]
    assert rows["max_alerts=7"]["threshold"] == rows["threshold=0.6"]["threshold"] == 0.6
    assert rows["threshold=0.6"]["undefined_cross_fitted"] == "given"
    with pytest.raises(ValidationError, match="tn has no cost or gain"):
        recognised(counts, DOCUMENTS, operating_points=[{"cost": {"fp": 1, "fn": 3, "tn": -1}}])


def test_documents_are_counted_in_every_grouping() -> None:
    systems: Rows = [
        {"system": "a", "_document": 2, "tp": 1, "fp": 2, "n_gold": 1},
        {"system": None, "_document": 2, "tp": 2, "n_gold": 3},
        {"system": "a", "_document": 1, "fp": 1},
    ]
    result = recognised([], systems, by=[[], ["system"]])
    columns = ("grouping", "by:system", "doc_id", "tp", "fp", "fn")
    assert result["documents"].select(columns).rows() == [
        ("all", None, "x", 0, 1, 0),
        ("all", None, "y", 3, 2, 1),
        ("system", "a", "x", 0, 1, 0),
        ("system", "a", "y", 1, 2, 0),
        ("system", None, "y", 2, 0, 1),
    ]
    numbers = {(row["grouping"], row["by:system"]): row["n_documents"] for row in result.rows("scores", threshold=0.2)}
    assert numbers == {("all", None): 2, ("system", "a"): 2, ("system", None): 1}


def test_the_lowest_score_of_a_group_is_not_retrieved_where_it_must_be_exceeded() -> None:
    documents: Rows = [
        {"system": "a", "_document": 1, "tp": 2, "n_gold": 2},
        {"system": "b", "_document": 1, "tp": 1, "n_gold": 1},
    ]
    lowest = of_documents(
        [{"system": "a", "_document": 1, "tp": 1}, {"system": "b", "_document": 1, "tp": 1}], [["system"]]
    ).drop("n_gold")
    lowest = lowest.with_columns(lowest=pl.when(pl.col(internal_name("system")) == "a").then(0.1).otherwise(0.4))
    result = recognised([], documents, by=[[], ["system"]], lowest=lowest, thresholds="distinct", boundary=">")
    tp = {(row["grouping"], row["by:system"]): row["tp"] for row in result["documents"].to_dicts()}
    assert tp == {("all", None): 2, ("system", "a"): 1, ("system", "b"): 0}  # 0.4 exceeds the lowest of all, 0.1


def test_summary_and_empty_tables() -> None:
    summary = recognised(COUNTS, DOCUMENTS).summary
    assert summary.sentence == (
        "3 of 5 gold mentions are found, and 1 prediction is wrong (a little too good, because the threshold was "
        "chosen on the same data)."
    )
    assert summary.curve == (6 / 9, 4 / 7)
    nothing = recognised([], [], by=[["system"]])
    assert all(table.is_empty() for table in nothing.tables.values())
    assert "entity_recognition_outcomes" not in nothing.returned
    assert (nothing.warnings, nothing.summary.sentence) == ((), "There is no document.")
