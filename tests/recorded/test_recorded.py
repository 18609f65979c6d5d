"""What carries the name of a tool gives that tool's own numbers, as `record.py` recorded them, with the version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import points_tables, ranked, read_table, run_stages, run_threshold_sweep, stage_config

from pipeline.metrics.ranking.measures import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSIONS = {
    "dcurves": "1.1.7",
    "ir_measures": "ir-measures 0.4.3, pytrec-eval-terrier 0.5.11, cwl-eval 1.0.12",
    "nervaluate": "1.2.1",
    "roerich": "0.6.0",
    "ruptures": "1.1.10",
    "tcpdbench": "1709f406eddda318f39275a4d9f3838bdaa83496",
    "trec_eval": "9.0.8, 10.0",
}
PRINTED = {
    "map": "average_precision",
    "Rprec": "r_precision",
    "bpref": "bpref",
    "recip_rank": "reciprocal_rank",
    **{f"iprec_at_recall_{level / 100:.2f}": f"interpolated_{level}" for level in range(0, 101, 10)},
}
INTERPOLATIONS = {"trec_eval_9": "9.0.8", "trec_eval_10": "10.0"}
DIGITS = 0.5001e-4  # of what trec_eval prints
CUTOFFS = [5, 10, 15, 20, 30, 100, 200, 500, 1000]


def recorded(tool: str) -> dict[str, Any]:
    recording: dict[str, Any] = json.loads(Path(__file__).with_name(f"{tool}.json").read_text(encoding="utf-8"))
    assert recording["version"] == VERSIONS[tool]
    return recording


def points(series: Sequence[dict[str, Any]], name: str) -> pl.DataFrame:
    rows = [(number, position) for number, row in enumerate(series) for position in row[name]]
    return pl.DataFrame(rows, schema={"series_id": pl.Int64, "position": pl.Int64}, orient="row")


# Change points -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "boundary"), [("roerich", "<="), ("ruptures", "<")])
@pytest.mark.parametrize("margin", [2, 5])
def test_matching_rules_of_change_points(tmp_path: Path, tool: str, boundary: str, margin: int) -> None:
    series = recorded(tool)["series"]
    frames = {"predictions": points(series, "predicted"), "annotations": points(series, "true")}
    keys = {"matching": tool, "margin": margin, "margin_boundary": boundary, "uncertainty": "none"}
    rows = points_tables(tmp_path, frames, **keys)["series"].sort("series_id").to_dicts()
    assert len(rows) == len(series) == 60
    for ours, theirs in zip(rows, series, strict=True):
        assert [ours["precision"], ours["recall"]] == pytest.approx(theirs["precision_recall"][str(margin)], rel=1e-15)


@pytest.mark.parametrize("margin", [2, 5])
def test_the_benchmark_of_the_turing_institute(tmp_path: Path, margin: int) -> None:
    recording = recorded("tcpdbench")
    series = recording["series"]
    marks = [
        (number, int(annotator), position)
        for number, row in enumerate(series)
        for annotator, positions in row["annotations"].items()
        for position in positions
    ]
    names = {"series_id": pl.Int64, "annotator_id": pl.Int64}
    annotators = [(number, int(annotator)) for number, row in enumerate(series) for annotator in row["annotations"]]
    frames = {
        "predictions": points(series, "predicted"),
        "annotations": pl.DataFrame(marks, schema=names | {"position": pl.Int64}, orient="row"),
        "coders": pl.DataFrame(annotators, schema=names, orient="row"),
        "series": pl.DataFrame({"series_id": range(len(series)), "n_obs": recording["length"]}),
    }
    keys = {"annotators": "tcpd", "margin": margin, "margin_boundary": "<=", "uncertainty": "none"}
    rows = points_tables(tmp_path, frames, **keys)["series"].sort("series_id").to_dicts()
    for ours, theirs in zip(rows, series, strict=True):
        wanted = [*theirs["f1_precision_recall"][str(margin)], theirs["covering"]]
        assert [ours[name] for name in ("f1", "precision", "recall", "covering")] == pytest.approx(wanted, rel=1e-14)


# Rankings ------------------------------------------------------------------------------------------------------------


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("interpolation", list(INTERPOLATIONS))
def test_measures_of_rankings_by_version_of_trec_eval(tmp_path: Path, interpolation: str) -> None:
    recording = recorded("trec_eval")
    ranking = [(query, name, score) for query, run in recording["runs"].items() for name, score in run.items()]
    judged = [
        (query, name, label) for query, labels in recording["judgements"].items() for name, label in labels.items()
    ]
    tables = ranked(
        tmp_path,
        pl.DataFrame(ranking, schema=["query_id", "doc_id", "score"], orient="row").cast({"score": pl.Float64}),
        pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row"),
        cutoffs=CUTOFFS,
        interpolation=interpolation,
        missing_queries="skip",
    )
    printed = recording["printed"][INTERPOLATIONS[interpolation]]
    assert tables["queries"].height == len(printed) == 40
    for row in tables["queries"].to_dicts():
        ours = {measure: row[name] for measure, name in PRINTED.items()}
        for cutoff in tables["cutoffs"].filter(pl.col("query_id") == row["query_id"]).to_dicts():
            ours[f"P_{cutoff['k']}"], ours[f"recall_{cutoff['k']}"] = cutoff["precision"], cutoff["recall"]
        assert ours == pytest.approx(printed[row["query_id"]], rel=0, abs=DIGITS)


def test_the_versions_of_trec_eval_differ_in_interpolated_precision_alone() -> None:
    old, new = (recorded("trec_eval")["printed"][version] for version in INTERPOLATIONS.values())
    differing = {(query, name) for query in old for name in old[query] if old[query][name] != new[query][name]}
    assert {name[:15] for _, name in differing} == {"iprec_at_recall"}
    assert len({query for query, _ in differing}) >= 8


FIVE_DIGITS = ("ERR", "nDCG(dcg='exp-log2')")  # of gdeval


@pytest.mark.parametrize(("kind", "number"), [("tied", 20), ("untied", 25)])
def test_measures_by_name_of_ir_measures(tmp_path: Path, kind: str, number: int) -> None:
    recording = recorded("ir_measures")
    run = [(query, name, value) for query, values in recording["runs"][kind].items() for name, value in values.items()]
    labels = [
        (query, name, label) for query, values in recording["judgements"].items() for name, label in values.items()
    ]
    values = recording["values"][kind]
    texts = list(next(iter(values.values())))
    tables = ranked(
        tmp_path,
        pl.DataFrame(run, schema=["query_id", "doc_id", "score"], orient="row"),
        pl.DataFrame(labels, schema=["query_id", "doc_id", "relevance"], orient="row"),
        measures=texts,
        no_relevant="zero",
        uncertainty="none",
    )
    assert (len(texts), tables["queries"].height, len(values)) == (number, 40, 40)
    for row in tables["queries"].to_dicts():
        assert set(values[row["query_id"]]) == set(texts)
        for text, value in values[row["query_id"]].items():
            digits = 0.5001e-5 if text.startswith(FIVE_DIGITS) else 1e-12
            assert row[name_of(text)] == pytest.approx(value, rel=0, abs=digits), text
    means = dict(tables["measures"].select("measure", "mean").rows())
    assert means["nDCG@10"] == pytest.approx(sum(row["nDCG@10"] for row in values.values()) / 40, rel=1e-12)


@pytest.mark.parametrize("ties", ["trec", "order"])
def test_measures_of_ir_measures_that_order_ties_by_rising_id(tmp_path: Path, ties: str) -> None:
    """Judged@k and RR@k of its providers are ours with ranks that say so, and differ from the order of trec_eval."""
    recording = recorded("ir_measures")
    runs, values = recording["runs"]["tied"], recording["values"]["rising"]
    run = [
        (query, name, score, rank)
        for query, scores in runs.items()
        for rank, (name, score) in enumerate(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])), start=1)
    ]
    labels = [
        (query, name, label) for query, judged in recording["judgements"].items() for name, label in judged.items()
    ]
    texts = list(next(iter(values.values())))
    tables = ranked(
        tmp_path,
        pl.DataFrame(run, schema=["query_id", "doc_id", "score", "rank"], orient="row"),
        pl.DataFrame(labels, schema=["query_id", "doc_id", "relevance"], orient="row"),
        measures=texts,
        no_relevant="zero",
        uncertainty="none",
        ties=ties,
    )
    differing = [
        text
        for row in tables["queries"].to_dicts()
        for text, value in values[row["query_id"]].items()
        if abs(row[name_of(text)] - value) > 1e-12
    ]
    assert (len(texts), len(values)) == (5, 40)
    assert (set(differing) == set(texts)) if ties == "trec" else not differing


# Decision curves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1])
def test_net_benefit_of_dcurves(tmp_path: Path, number: int) -> None:
    sample = recorded("dcurves")["samples"][number]
    frame = pl.DataFrame({"score": sample["scores"], "label": sample["labels"]})
    assert set(sample["scores"]) & set(sample["thresholds"])  # a score may equal a threshold
    keys = {"net_benefit": True, "threshold_probabilities": sample["thresholds"], "uncertainty": "none"}
    run = run_threshold_sweep(tmp_path, frame, thresholds=[0.5], **keys)
    ours = read_table(run, "threshold_sweep_net_benefit", "threshold_sweep").sort("threshold")
    for column, model in (("net_benefit", "score"), ("net_benefit_all", "all")):
        assert ours[column].to_list() == pytest.approx(sample["net_benefit"][model], abs=1e-12)
    assert set(sample["net_benefit"]["none"]) == {0.0}


# Entities ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("schema", "typed"), [("strict", True), ("exact", False)])
def test_counts_of_nervaluate(tmp_path: Path, schema: str, typed: bool) -> None:  # noqa: FBT001 - parametrized
    recording = recorded("nervaluate")
    names = {"doc_id": pl.Int64, "start": pl.Int64, "end": pl.Int64, "type": pl.String}
    frames = {
        side: pl.DataFrame(
            [
                (number, mention["start"], mention["end"], mention["label"])
                for number, row in enumerate(recording["documents"])
                for mention in row[side]
            ],
            schema=names,
            orient="row",
        )
        for side in ("gold", "predicted")
    }
    keys = {"match": "span", "match_type": typed, "averages": ["micro"], "uncertainty": "none"}
    run = run_stages(stage_config(tmp_path, "entity_recognition", frames, **keys))
    row = read_table(run, "entity_recognition_scores", "entity_recognition").row(0, named=True)
    theirs = recording["overall"][schema]
    assert 0 < theirs["correct"] < min(theirs["possible"], theirs["actual"])
    assert (row["tp"], row["tp"] + row["fp"], row["tp"] + row["fn"]) == (
        theirs["correct"],
        theirs["actual"],
        theirs["possible"],
    )
