"""Recognition and geocoding of toponyms on real news texts, beside published and independently computed numbers."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from reference_averages import averages
from reference_mentions import document_counts
from reference_toponyms import tolerance_counts

from pipeline.metrics.geocoding import error_statistics, haversine, log_error_auc
from pipeline.metrics.matching import Mentions, match_near, match_overlapping, match_spans, match_texts, normalised_text

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

Expected: TypeAlias = "dict[str, Any]"

GEOPY_RADIUS_KM = 6371.009
SYSTEMS = [("geocoding_geowebnews", "edin"), ("geoparsing_lgl", "edin"), ("geoparsing_lgl", "geo")]
LITERAL = ["Literal", "Literal_Modifier", "Mixed", "Coercion", "Embedded_Literal"]


def read_expected(folder: Path) -> Expected:
    actual: Expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return actual


def numbered(*columns: pl.Series) -> list[NDArray[np.int64]]:
    """The same number for the same text in every column."""
    ranks = pl.concat(columns).rank("dense").cast(pl.Int64).to_numpy() - 1
    return np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])


def both(gold: pl.DataFrame, predicted: pl.DataFrame, text: str | None = None) -> tuple[Mentions, Mentions]:
    frames = gold, predicted
    documents = numbered(*(frame["doc_id"] for frame in frames))
    codes = [np.zeros(frame.height, dtype=np.int64) for frame in frames]
    if text is not None:
        codes = numbered(*(frame.select(normalised_text(pl.col(text))).to_series() for frame in frames))
    first, second = (
        Mentions(document, frame["start"].to_numpy(), frame["end"].to_numpy(), code)
        for document, frame, code in zip(documents, frames, codes, strict=True)
    )
    return first, second


def assert_counts(matched: NDArray[np.int64], predicted: Mentions, expected: Expected) -> None:
    tp = int((matched >= 0).sum())
    fp, fn = len(predicted) - tp, len(matched) - tp
    assert (tp, fp, fn) == tuple(expected[name] for name in ("TP", "FP", "FN"))
    assert tp / (tp + fp) == pytest.approx(expected["precision"], rel=1e-14)
    assert tp / (tp + fn) == pytest.approx(expected["recall"], rel=1e-14)
    assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(expected["f1"], rel=1e-14)


@pytest.fixture(scope="session")
def tagged(real_data: Path) -> tuple[pl.DataFrame, pl.DataFrame, Expected]:
    """Gold toponyms, the spans of spaCy and what is expected of them."""
    folder = real_data / "ner_geowebnews"
    gold = pl.read_parquet(folder / "gold.parquet")
    return gold, pl.read_parquet(folder / "predictions.parquet"), read_expected(folder)["spacy"]


Tagged: TypeAlias = "tuple[pl.DataFrame, pl.DataFrame, Expected]"


def test_recognition_by_every_rule(tagged: Tagged) -> None:
    everything, predictions, expected = tagged
    gold, predicted = both(everything.filter("is_toponym"), predictions)
    assert_counts(match_spans(gold, predicted), predicted, expected["strict_span"])
    assert_counts(match_overlapping(gold, predicted), predicted, expected["overlap_one_to_one_max_matching"])
    literal, predicted = both(everything.filter("is_toponym", pl.col("type").is_in(LITERAL)), predictions)
    assert_counts(match_spans(literal, predicted), predicted, expected["literal_types_only_gold"])


def test_recognition_of_spans_with_their_texts(tagged: Tagged) -> None:
    everything, predictions, expected = tagged
    gold, predicted = both(everything.filter("is_toponym"), predictions, "text")
    assert_counts(match_spans(gold, predicted), predicted, expected["strict_span_and_text"])


def test_the_most_identical_and_then_partial_spans_are_those_of_nervaluate(tagged: Tagged) -> None:
    everything, predictions, expected = tagged
    gold, predicted = both(everything.filter("is_toponym"), predictions)
    matched = match_overlapping(gold, predicted)
    hit = np.flatnonzero(matched >= 0)
    other = matched[hit]
    identical = ((gold.start[hit] == predicted.start[other]) & (gold.end[hit] == predicted.end[other])).sum()
    partial = expected["nervaluate"]["partial"]
    assert (identical, len(hit) - identical) == (partial["correct"], partial["partial"])
    assert len(gold) - len(hit) == partial["missed"]
    assert len(predicted) - len(hit) == partial["spurious"]
    correct = identical + (len(hit) - identical) / 2
    assert correct / len(predicted) == pytest.approx(partial["precision"], rel=1e-14)
    assert correct / len(gold) == pytest.approx(partial["recall"], rel=1e-14)


def test_gold_that_is_not_filtered_gives_the_numbers_that_are_known_to_be_wrong(tagged: Tagged) -> None:
    everything, predictions, expected = tagged
    gold, predicted = both(everything.unique(["doc_id", "start", "end"]), predictions)
    assert_counts(match_spans(gold, predicted), predicted, expected["gold_all_6612_annotations_WRONG_if_not_filtered"])


def test_recall_by_type_of_gold(tagged: Tagged) -> None:
    everything, predictions, expected = tagged
    toponyms = everything.filter("is_toponym")
    evaluated = toponyms.with_columns(found=match_spans(*both(toponyms, predictions)) >= 0)
    counts = evaluated.group_by("type").agg(n=pl.len(), found=pl.col("found").sum())
    actual = {row["type"]: {"n": row["n"], "found": row["found"]} for row in counts.to_dicts()}
    assert actual == expected["strict_recall_by_gold_type"]


def test_counts_per_document_and_their_averages(tagged: Tagged, real_data: Path) -> None:
    everything, predictions, expected = tagged
    gold, predicted = both(everything.filter("is_toponym"), predictions)
    names = pl.concat([everything.filter("is_toponym")["doc_id"], predictions["doc_id"]]).unique().sort()
    listed = pl.read_parquet(real_data / "ner_geowebnews" / "documents.parquet").select("doc_id")
    counts = document_counts(gold, predicted, match_spans(gold, predicted), len(names))
    columns = dict(zip(("tp", "fp", "fn"), counts, strict=True))
    documents = listed.join(pl.DataFrame({"doc_id": names, **columns}), on="doc_id", how="left")
    documents = documents.with_columns(pl.col("tp", "fp", "fn").fill_null(0))
    actual = {row[0]: list(row[1:]) for row in documents.select("doc_id", "tp", "fp", "fn").rows()}
    assert actual == expected["strict_counts_per_document"]

    micro, macro = averages(documents, [], ["micro", "macro"]).to_dicts()
    for name in ("precision", "recall", "f1"):
        assert micro[name] == pytest.approx(expected["strict_span"][name], rel=1e-14)
    means = expected["strict_macro_over_documents"]
    assert macro["precision"] == pytest.approx(means["precision"], rel=1e-13)
    assert macro["recall"] == pytest.approx(means["recall"], rel=1e-13)
    assert macro["n_documents"] - macro["precision_dropped"] == means["n_docs_with_pred"]
    assert macro["n_documents"] - macro["recall_dropped"] == means["n_docs_with_gold"]
    assert macro["precision_dropped"] == expected["n_docs_without_prediction"]
    assert macro["recall_dropped"] == expected["n_docs_without_gold"]


class Parsed:
    """Gold toponyms, the output of one geoparser, and their alignment by the published rule."""

    def __init__(self, folder: Path, system: str) -> None:
        self.gold = pl.read_parquet(folder / "gold.parquet")
        self.predicted = pl.read_parquet(folder / "predictions.parquet").filter(system=system)
        self.aligned = pl.read_parquet(folder / "aligned.parquet").filter(system=system)
        self.errors = pl.read_parquet(folder / "expected_errors.parquet").filter(system=system)
        self.expected: Expected = read_expected(folder)[system]
        self.mentions = both(self.gold, self.predicted, "toponym")
        self.matched = match_near(*self.mentions, assignment="file_order")

    def distances(self, radius_km: float) -> NDArray[np.float64]:
        """One per gold toponym; nan where it was not matched or not located."""
        row = np.where(self.matched >= 0, self.matched, self.predicted.height)
        latitude, longitude = (np.append(self.predicted[name].to_numpy(), np.nan)[row] for name in ("lat", "lon"))
        gold = self.gold["lat"].to_numpy(), self.gold["lon"].to_numpy()
        return haversine(*gold, latitude, longitude, radius_km=radius_km)


@pytest.fixture(scope="module", params=SYSTEMS, ids="-".join)
def parsed(request: pytest.FixtureRequest, real_data: Path) -> Parsed:
    folder, system = request.param
    return Parsed(real_data / folder, system)


def test_the_published_alignment_row_by_row(parsed: Parsed) -> None:
    assert parsed.aligned["toponym_id"].to_list() == parsed.gold["toponym_id"].to_list()
    assert (parsed.matched >= 0).tolist() == parsed.aligned["matched"].to_list()
    row = np.where(parsed.matched >= 0, parsed.matched, parsed.predicted.height)
    for name in ("lat", "lon"):
        actual = np.append(parsed.predicted[name].to_numpy(), np.nan)[row]
        np.testing.assert_array_equal(actual, parsed.aligned[f"pred_{name}"].to_numpy())
    assert_counts(parsed.matched, parsed.mentions[1], parsed.expected["recognition"])


def test_a_largest_matching_is_as_large_as_the_published_one_on_these_texts(parsed: Parsed) -> None:
    largest = match_near(*parsed.mentions)
    assert (largest >= 0).sum() == parsed.expected["n_matched_names"]
    assert (match_texts(*parsed.mentions) >= 0).sum() > parsed.expected["n_matched_names"]


def test_spans_alone(parsed: Parsed) -> None:
    actual = int((match_spans(*both(parsed.gold, parsed.predicted)) >= 0).sum())
    assert actual == (parsed.expected.get("strict_span_only") or parsed.expected["strict_span"]["TP"])


def test_every_distance_and_their_statistics(parsed: Parsed) -> None:
    distances, expected = parsed.distances(GEOPY_RADIUS_KM), parsed.expected
    np.testing.assert_allclose(distances, parsed.errors["error_km"].to_numpy(), rtol=0, atol=1e-6)
    actual = error_statistics(distances)
    assert actual["n_gold"] == expected["n_gold"]
    assert actual["n_located"] == expected["n_errors"]
    assert expected["n_matched_names"] - actual["n_located"] == expected["n_matched_without_coordinates"]
    assert actual["mean_km"] == pytest.approx(expected["error_km"]["mean"], rel=1e-12)
    assert actual["median_km"] == pytest.approx(expected["error_km"]["median"], rel=1e-9)
    assert actual["log_error_auc"] == pytest.approx(expected["log_error"]["auc_trapezoid_sorted"], rel=1e-12)
    ours = error_statistics(parsed.distances(6371.0088))
    assert ours["log_error_auc"] == pytest.approx(actual["log_error_auc"], rel=1e-7)


def test_accuracy_at_every_tolerance(parsed: Parsed) -> None:
    distances, accuracy = parsed.distances(GEOPY_RADIUS_KM), parsed.expected["accuracy"]
    tolerances = [float(name.removeprefix("le_").removesuffix("km")) for name in accuracy]
    actual = tolerance_counts(distances, tolerances)
    assert actual["precision"].to_list() == pytest.approx(list(accuracy.values()), rel=1e-14)
    below = tolerance_counts(distances, [161], boundary="<")["precision"][0]
    assert below == pytest.approx(parsed.expected["accuracy_lt_161km"], rel=1e-14)


@pytest.mark.parametrize("tolerance", [1, 10, 161])
def test_counts_by_the_rules_of_the_source_text(parsed: Parsed, tolerance: int) -> None:
    row = tolerance_counts(parsed.distances(GEOPY_RADIUS_KM), [tolerance]).to_dicts()[0]
    expected = parsed.expected["coursework_geocoding"][f"{tolerance}km"]
    assert [row[name] for name in ("tp", "fp", "fn")] == [expected[name] for name in ("TP", "FP", "FN")]
    ratios = ("precision", "recall", "f1")
    assert [row[name] for name in ratios] == pytest.approx([expected[name] for name in ratios], rel=1e-14)


def test_the_published_table_but_for_one_precision(real_data: Path) -> None:
    """Table 1 and 3 of Gritta et al. (2018), to their two digits.

    The precision of the Edinburgh geoparser is printed 0.71; 2439 of its 3410 predictions match, which is 0.7152.
    """
    differing = []
    for system in ("edin", "geo"):
        parsed = Parsed(real_data / "geoparsing_lgl", system)
        distances, published = parsed.distances(GEOPY_RADIUS_KM), parsed.expected["published_table"]
        tp, n_predicted, n_gold = int((parsed.matched >= 0).sum()), parsed.predicted.height, parsed.gold.height
        logs = np.log1p(distances[~np.isnan(distances)])
        actual = {
            "P": tp / n_predicted,
            "R": tp / n_gold,
            "F": 2 * tp / (n_predicted + n_gold),
            "auc": log_error_auc(distances[~np.isnan(distances)]),
            "med": float(np.median(logs)),
            "mean": float(logs.mean()),
            "acc": tolerance_counts(distances, [161])["precision"][0],
        }
        for name, value in actual.items():
            digits = 1 if name == "mean" or (name == "med" and value > 1) else 2
            if round(value, digits) != published[name]:
                differing.append((system, name, round(value, 4), published[name]))
    assert differing == [("edin", "P", 0.7152, 0.71)]


def test_the_published_code_tests_for_less_than_160_km(parsed: Parsed) -> None:
    code = parsed.expected["paper_code_print_stats"]
    distances = parsed.distances(GEOPY_RADIUS_KM)
    assert tolerance_counts(distances, [160], boundary="<")["precision"][0] == pytest.approx(code["acc161"])
    actual = error_statistics(distances)
    assert actual["mean_km"] + 1 == pytest.approx(code["mean_exp"], rel=1e-12)
    assert math.isclose(actual["median_km"] + 1, code["median_exp"], rel_tol=1e-9)
