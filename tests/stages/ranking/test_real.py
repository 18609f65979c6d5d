"""Rankings of TREC topics through whole runs, beside the numbers that trec_eval printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import ranked

from pipeline.metrics.ranking.random_selection import average_precision_moments

if TYPE_CHECKING:
    from pathlib import Path

CUTOFFS = [5, 10, 15, 20, 30, 100, 200, 500, 1000]
LEVELS = range(0, 101, 10)
NAMES = {
    "num_ret": "n_retrieved",
    "num_rel": "n_relevant",
    "num_rel_ret": "n_relevant_retrieved",
    "ap": "average_precision",
    "r_precision": "r_precision",
    "recip_rank": "reciprocal_rank",
    "set_precision": "set_precision",
    "set_recall": "set_recall",
}
PRINTED = {
    "num_ret": "n_retrieved",
    "num_rel": "n_relevant",
    "num_rel_ret": "n_relevant_retrieved",
    "map": "average_precision",
    "Rprec": "r_precision",
    "bpref": "bpref",
    "recip_rank": "reciprocal_rank",
    "set_P": "set_precision",
    "set_recall": "set_recall",
    **{f"iprec_at_recall_{level / 100:.2f}": f"interpolated_{level}" for level in LEVELS},
}
MEANS = {"map": "map", "r_precision": "r_precision", "recip_rank": "reciprocal_rank"}


@pytest.fixture(scope="session")
def trec(real_data: Path) -> Path:
    return real_data / "ranking_trec"


@pytest.fixture(scope="session")
def expected(trec: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trec / "expected.json").read_text(encoding="utf-8"))
    return found


def frames(trec: Path, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ranking and relevance, rows in no order."""
    ranking = pl.read_parquet(trec / f"{name}_ranking.parquet").drop("relevance", "rank")
    return ranking.sample(fraction=1, shuffle=True, seed=1), pl.read_parquet(trec / f"{name}_qrels.parquet")


@pytest.fixture(scope="session", params=["trec", "rag"])
def run(
    request: pytest.FixtureRequest, trec: Path, expected: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """The tables of one set as trec_eval would make them, and what it made."""
    folder = tmp_path_factory.mktemp(request.param)
    tables = ranked(folder, *frames(trec, request.param), cutoffs=CUTOFFS, no_relevant="zero")
    return tables, expected[request.param]


def test_every_measure_has_its_full_precision(run: tuple[dict[str, pl.DataFrame], dict[str, Any]]) -> None:
    tables, made = run
    rows = {row["query_id"]: row for row in tables["queries"].to_dicts()}
    assert set(rows) == set(made["full_precision_numpy"])
    for query, values in made["full_precision_numpy"].items():
        row = rows[query]
        assert {name: row[ours] for name, ours in NAMES.items()} == pytest.approx(
            {name: values[name] for name in NAMES}
        )
        assert [row[f"interpolated_{level}"] for level in LEVELS] == pytest.approx(values["iprec_at_recall"])
        cutoffs = tables["cutoffs"].filter(pl.col("query_id") == query)
        for column, name in (("precision", "p_at"), ("recall", "recall_at")):
            assert cutoffs[column].to_list() == pytest.approx([values[name][str(k)] for k in CUTOFFS])


def test_every_printed_value_is_ours_rounded(run: tuple[dict[str, pl.DataFrame], dict[str, Any]]) -> None:
    tables, made = run
    compared = 0
    for row in tables["queries"].to_dicts():
        printed = made["trec_eval_printed_4_decimals"][row["query_id"]]
        for name in set(PRINTED) & set(printed):
            assert float(printed[name]) == pytest.approx(row[PRINTED[name]], abs=0.5001e-4), name
            compared += 1
        for cutoff in tables["cutoffs"].filter(pl.col("query_id") == row["query_id"]).to_dicts():
            for column, name in (("precision", f"P_{cutoff['k']}"), ("recall", f"recall_{cutoff['k']}")):
                if name in printed:
                    assert float(printed[name]) == pytest.approx(cutoff[column], abs=0.5001e-4), name
                    compared += 1
    assert compared >= 30 * tables["queries"].height


def test_means_over_queries(run: tuple[dict[str, pl.DataFrame], dict[str, Any]]) -> None:
    tables, made = run
    row = tables["summary"].row(0, named=True)
    means = made["mean_over_queries"]
    assert row["n_queries"] == means["n_queries"]
    assert {name: row[ours] for name, ours in MEANS.items()} == pytest.approx({name: means[name] for name in MEANS})
    at_ten = tables["cutoff_means"].filter(pl.col("k") == 10)["precision"].item()
    assert at_ten == pytest.approx(means["p_at_10"])


def test_expected_ties_lie_between_the_two_orders_of_names(
    trec: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    queries = ranked(tmp_path, *frames(trec, "trec"), ties="expected")["queries"]
    ends = expected["trec"]["ap_if_ties_are_ordered_by_doc_id_ascending"]
    for row in queries.to_dicts():
        descending = expected["trec"]["full_precision_numpy"][row["query_id"]]["ap"]
        ascending = ends[row["query_id"]]
        low, high = sorted((ascending, descending))
        assert low - 1e-15 <= row["average_precision"] <= high + 1e-15
    mixed = queries.filter(pl.col("query_id") == "301").row(0, named=True)
    assert mixed["average_precision"] < expected["trec"]["full_precision_numpy"]["301"]["ap"]


def test_a_query_that_is_not_retrieved_is_named_or_counts_nothing(trec: Path, tmp_path: Path) -> None:
    ranking, relevance = frames(trec, "trec")
    less = ranking.filter(pl.col("query_id") != "301")
    zero = ranked(tmp_path, less, relevance, missing_queries="zero")
    whole = ranked(tmp_path / "whole", ranking, relevance)["queries"]
    other = whole.filter(pl.col("query_id") == "302")["average_precision"].item()
    assert zero["summary"]["map"].item() == pytest.approx(other / 2)
    skipped = ranked(tmp_path / "skip", less, relevance, missing_queries="skip")
    assert skipped["summary"].select("n_queries", "map").row(0) == (1, other)


def test_moments_are_those_of_enumeration_and_simulation(trec: Path) -> None:
    rows = json.loads((trec / "expected_random_selection.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        mean, variance = average_precision_moments(row["n"], row["m"])
        assert mean == pytest.approx(row["exact_mean"], rel=1e-12)
        assert variance == pytest.approx(row["exact_variance"], rel=1e-12)
        error = 4 * (row["exact_variance"] / row["replicates"]) ** 0.5
        assert mean == pytest.approx(row["mc_mean"], abs=error)
