"""GeoWebNews through whole runs: 2,720 toponyms found by people, beside independently computed numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from running import read_table, run_stages

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

KIND = "entity_recognition"
LITERAL = ("Literal", "Literal_Modifier", "Mixed", "Coercion", "Embedded_Literal")
RATIOS = ("precision", "recall", "f1")


@pytest.fixture(scope="module")
def folder(real_data: Path) -> Path:
    return real_data / "ner_geowebnews"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["spacy"]
    return found


def tables(folder: Path, output: Path, where: str = "is_toponym", **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    stage = {
        "kind": KIND,
        "gold": {"path": str(folder / "gold.parquet"), "where": where},
        "predicted": {"path": str(folder / "predictions.parquet"), "where": "system = 'spacy'"},
        "documents": str(folder / "documents.parquet"),
        **keys,
    }
    run = run_stages({"output": str(output), "stages": [stage]})
    return {name: read_table(run, f"{KIND}_{name}", KIND) for name in ("scores", "documents", "outcomes")}


def assert_counts(row: dict[str, Any], expected: dict[str, Any]) -> None:
    assert [row[name] for name in ("tp", "fp", "fn")] == [expected[name] for name in ("TP", "FP", "FN")]
    assert [row[name] for name in RATIOS] == pytest.approx([expected[name] for name in RATIOS], rel=1e-14)


def test_identical_spans_documents_types_and_averages(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    found = tables(folder, tmp_path)
    scores = {row["average"]: row for row in found["scores"].to_dicts()}
    assert_counts(scores["micro"], expected["strict_span"])
    macro, means = scores["macro"], expected["strict_macro_over_documents"]
    assert [macro["precision"], macro["recall"]] == pytest.approx([means["precision"], means["recall"]], rel=1e-12)
    assert macro["n_documents"] - macro["precision_dropped"] == means["n_docs_with_pred"]
    assert macro["recall_dropped"] == expected["n_docs_without_gold"]
    rows = found["documents"].select("doc_id", "tp", "fp", "fn").rows()
    assert {row[0]: list(row[1:]) for row in rows} == expected["strict_counts_per_document"]
    outcomes = found["outcomes"].drop_nulls("gold_start")
    counted = {
        kind: {"n": part.height, "found": part.filter(outcome="tp").height}
        for (kind,), part in outcomes.group_by("gold_type")
    }
    assert counted == expected["strict_recall_by_gold_type"]


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"match": "overlap"}, "overlap_one_to_one_max_matching"),
        (
            {"where": f"is_toponym AND type IN {LITERAL}"},
            "literal_types_only_gold",
        ),
    ],
)
def test_other_rules(folder: Path, expected: dict[str, Any], tmp_path: Path, keys: dict[str, Any], name: str) -> None:
    scores = tables(folder, tmp_path, **keys, averages=["micro"])["scores"]
    assert_counts(scores.row(0, named=True), expected[name])


def test_the_strict_numbers_of_nervaluate(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    strict = expected["nervaluate"]["strict"]
    row = tables(folder, tmp_path, averages=["micro"])["scores"].row(0, named=True)
    assert row["tp"] == strict["correct"]
    assert row["tp"] + row["fp"] == strict["actual"]
    assert row["tp"] + row["fn"] == strict["possible"]
