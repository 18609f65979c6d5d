"""What `explain` says a number would be without a unit is what a run on the data without it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_stages, stage_config
from stage_examples import EXAMPLES

import pipeline
from pipeline.metrics.geocoding import error_statistics, errors_without
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Shown, explain
from pipeline.report.published import PublishedRun, latest_run
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.report.explaining import Explanation

KINDS = {entry.kind: entry.load() for entry in STAGES}
BY_KIND = {example.kind: example for example in EXAMPLES}
SECTIONS = {
    "before_after": "events",
    "threshold_sweep": "clusters",
    "entity_recognition": "documents",
    "geocoding": "documents",
    "change_points": "series",
}
UNIT = {
    "before_after": "event_id",
    "threshold_sweep": "cluster",
    "entity_recognition": "doc_id",
    "geocoding": "doc_id",
    "change_points": "series_id",
}
OF_DATA = {"threshold_sweep": "page"}  # what the unit is called there
RATIOS = ("precision", "recall", "f1")
TOLD = {
    "before_after": (*(f"{name}{end}" for name in (*RATIOS, "fp", "tp") for end in ("", "_uncorrected")), "fpr"),
    "threshold_sweep": (*RATIOS, "fpr"),
    "entity_recognition": RATIOS,
    "geocoding": (*RATIOS, "mean_km", "median_km", "log_error_auc", "precision_end_to_end", "f1_end_to_end"),
    "change_points": RATIOS,
}
UNTOLD = {
    "threshold_sweep": ("average_precision", "pr_auc", "roc_auc", "brier", "precision_lower"),
    "entity_recognition": ("precision_lower", "n_documents"),
    "geocoding": ("precision_lower", "n_gold", "mean_km_upper"),
    "change_points": ("average_precision", "pr_auc", "covering", "recall_lower"),
}


def _keys(kind: str) -> dict[str, Any]:
    keys = dict(BY_KIND[kind].keys)
    if kind == "change_points":
        keys |= {"annotators": "union"}
    if kind == "entity_recognition":
        keys |= {"averages": ["micro", "macro", "semeval"]}
    if kind == "before_after":
        keys |= {"recall_reference": {"rule": "fixed", "threshold": 5.0}}
    return keys


def _config(folder: Path, kind: str, frames: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    config = stage_config(folder / kind, kind, frames, **_keys(kind))
    for name, columns in BY_KIND[kind].mapped_only.items():
        config["stages"][0][name]["columns"] |= {column: column for column in columns}
    return config


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> PublishedRun:
    folder = tmp_path_factory.mktemp("influence")
    stages = [stage for kind in SECTIONS for stage in _config(folder, kind, BY_KIND[kind].frames)["stages"]]
    pipeline.run({"output": str(folder / "results"), "stages": stages})
    return latest_run(folder / "results")


def _explained(run: PublishedRun, kind: str, measure: str, *group: str) -> Explanation:
    return explain(run, kind, Wish(measure, group=group), Shown((SECTIONS[kind],), 1000))


def _without(folder: Path, kind: str, unit: object, explanation: Explanation, *group: str) -> float | None:
    """The number in a run on the data without a unit, in the same row."""
    name = OF_DATA.get(kind, UNIT[kind])
    ids = set()
    if kind == "geocoding":
        gold = BY_KIND[kind].frames["gold"]
        ids = set(gold.filter(pl.col("doc_id") == unit)["mention_id"])
    frames = {
        of_input: frame.filter(pl.col(name).ne_missing(pl.lit(unit, dtype=frame.schema[name])))
        if name in frame.columns
        else frame.filter(~pl.col("mention_id").is_in(ids))
        if "mention_id" in frame.columns
        else frame
        for of_input, frame in BY_KIND[kind].frames.items()
    }
    run = run_stages(_config(folder, kind, frames))
    evidence = KINDS[kind].evidence
    assert evidence is not None
    tables = {measure.name: measure.table for measure in evidence.measures}
    table = tables.get(explanation.metric, evidence.measures[0].table)
    rows = read_table(run, table, kind)
    for column in ("threshold", "tolerance_km"):
        if column in rows.columns and explanation.threshold is not None:
            rows = rows.filter(pl.col(column) == explanation.threshold)
    if "average" in rows.columns:
        rows = rows.filter(pl.col("average") == (group[0].partition("=")[2] if group else "micro"))
    total = rows.filter(pl.col("grouping") == "all")
    rows = rows.head(1) if total.is_empty() else total
    value: float | None = rows[explanation.metric][0]
    return value


@pytest.mark.parametrize("kind", TOLD)
def test_a_number_without_a_unit_is_what_a_run_without_it_has(
    published: PublishedRun, tmp_path: Path, kind: str
) -> None:
    for measure in TOLD[kind]:
        explanation = _explained(published, kind, measure)
        rows = explanation.sections[0].rows
        assert not rows.is_empty(), (measure, explanation.sections[0].absent)
        row = rows.row(0, named=True)
        expected = _without(tmp_path / measure, kind, row[UNIT[kind]], explanation)
        assert row["without"] == pytest.approx(expected, rel=1e-12), measure
        assert row["influence"] == pytest.approx(explanation.value - row["without"])


@pytest.mark.parametrize(("average", "measure"), [("macro", "f1"), ("macro", "recall"), ("semeval", "precision")])
def test_a_mean_of_documents_is_that_of_all_others(
    published: PublishedRun, tmp_path: Path, average: str, measure: str
) -> None:
    group = f"average={average}"
    explanation = _explained(published, "entity_recognition", measure, group)
    scores = published.chosen(["entity_recognition"])[0].tables["entity_recognition_scores"]
    scores = scores.filter(pl.col("average") == average, pl.col("threshold") == explanation.threshold)
    assert explanation.value == scores[measure][0]
    row = explanation.sections[0].rows.row(0, named=True)
    expected = _without(tmp_path, "entity_recognition", row["doc_id"], explanation, group)
    assert row["without"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("kind", "measure"), [(kind, name) for kind, names in UNTOLD.items() for name in names])
def test_what_counts_of_units_do_not_tell_is_said_and_no_other_number_stands_for_it(
    published: PublishedRun, kind: str, measure: str
) -> None:
    section = _explained(published, kind, measure).sections[0]
    assert section.rows.is_empty()
    assert f"what {measure} would be without one of the" in section.absent


@pytest.mark.parametrize("missing", ["exclude", "max_error"])
def test_errors_without_a_unit_are_those_of_the_others(missing: Any) -> None:  # noqa: ANN401
    rng = np.random.default_rng(5)
    for _ in range(50):
        n_units, size = int(rng.integers(1, 6)), int(rng.integers(6, 14))
        unit = np.concatenate([np.arange(n_units), rng.integers(0, n_units, size)])
        distances = rng.choice([np.nan, 0.0, 1.5, 1.5, 80.0, 900.0], len(unit))
        for name in ("mean_km", "median_km", "log_error_auc"):
            found = errors_without(unit, distances, name, missing=missing)
            expected = [error_statistics(distances[unit != u], missing=missing)[name] for u in range(n_units)]
            assert found == pytest.approx(expected, nan_ok=True)
