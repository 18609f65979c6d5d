"""Whole runs of ranking: against a plain loop over documents, and what stops them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import RANKING, ranked, rows_by_status, run_stages, stage_config
from scipy import stats

from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.ranking.random_selection import average_precision_moments, average_precision_p_value

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

K = [1, 3, 10]


def frames(seed: int, *, queries: int = 12, systems: int = 1, decimals: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rankings with many ties and relevant documents inside and outside them, as ranking and relevance."""
    rng = np.random.default_rng(seed)
    rows, judged = [], []
    for query in range(queries):
        pool = rng.permutation(40)
        judged += [(f"q{query}", f"d{doc}", int(rng.integers(-1, 4))) for doc in pool[:15]]
        judged.append((f"q{query}", "d99", 3))
        for system in range(systems):
            docs = rng.choice(40, size=int(rng.integers(1, 30)), replace=False)
            rows += [(f"s{system}", f"q{query}", f"d{doc}", round(float(rng.random()), decimals)) for doc in docs]
    ranking = pl.DataFrame(rows, schema=["system", "query_id", "doc_id", "score"], orient="row")
    return ranking, pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row")


def by_hand(ranking: pl.DataFrame, relevance: pl.DataFrame, query: str, level: int) -> dict[str, float]:
    """Measures of one query with ties in descending order of names."""
    labels = {doc: grade for name, doc, grade in relevance.rows() if name == query}
    wanted = {doc for doc, grade in labels.items() if grade >= level}
    own = ranking.filter(pl.col("query_id") == query).select("score", "doc_id").rows()
    order = [doc for _, doc in sorted(own, reverse=True)]
    places = [place for place, doc in enumerate(order, start=1) if doc in wanted]
    precision = [number / place for number, place in enumerate(places, start=1)]
    found = {
        "n": len(order),
        "n_relevant": len(wanted),
        "n_retrieved": len(order),
        "n_relevant_retrieved": len(places),
        "average_precision": sum(precision) / len(wanted),
        "r_precision": sum(place <= len(wanted) for place in places) / len(wanted),
        "reciprocal_rank": 1 / places[0] if places else 0.0,
        "set_precision": len(places) / len(order),
        "set_recall": len(places) / len(wanted),
    }
    return found | {f"hits_{k}": sum(place <= k for place in places) for k in K}


@pytest.mark.parametrize("level", [1, 2, 3])
def test_measures_are_those_of_a_loop_over_documents(level: int, tmp_path: Path) -> None:
    ranking, relevance = frames(level)
    tables = ranked(tmp_path, ranking.drop("system"), relevance, relevance_level=level, cutoffs=K)
    assert tables["queries"].height == 12
    for row in tables["queries"].to_dicts():
        truth = by_hand(ranking, relevance, row["query_id"], level)
        cutoffs = tables["cutoffs"].filter(pl.col("query_id") == row["query_id"])
        for cutoff in cutoffs.to_dicts():
            hits = truth.pop(f"hits_{cutoff['k']}")
            assert cutoff["hits"] == hits
            assert cutoff["precision"] == pytest.approx(hits / cutoff["k"])
            assert cutoff["recall"] == pytest.approx(hits / truth["n_relevant"])
        assert {name: row[name] for name in truth} == pytest.approx(truth)


def degrees_of(values: NDArray[np.float64]) -> float:
    """Satterthwaite: 2 V² / Var(V), with the variance of V from the fourth moment."""
    squares = (values - values.mean()) ** 2
    return float(np.clip(2 * squares.sum() ** 2 / (len(values) * squares.var()), 4, len(values) - 1))


def of_mean(mean: float, error: float, size: int, degrees: float) -> tuple[float, float]:
    """Limits of a share with the variance of the mean, to which half a query is added on the side that is feared."""
    effect = error**2 * size / (mean * (1 - mean))
    unseen, outside = max(effect, 0.5), stats.norm.sf(stats.t.ppf(0.975, degrees))

    def above(share: float) -> float:
        hits, misses = share * size + unseen, (1 - share) * size
        mixed = hits / (hits + misses)
        variance = (effect * share * size + unseen**2) * (1 - mixed) ** 2 + effect * misses * mixed**2
        number = mixed * (1 - mixed) * (hits + misses) ** 2 / variance
        first, second = mixed * number, (1 - mixed) * number
        mid = min(first - 1, second, 10) / 20
        return float(stats.beta.isf(outside, first - mid, second + mid))

    return 1 - above(1 - mean), above(mean)


def test_means_are_those_of_the_queries_with_students_interval(tmp_path: Path) -> None:
    ranking, relevance = frames(5, queries=20)
    tables = ranked(tmp_path, ranking.drop("system"), relevance, cutoffs=K)
    values, row = tables["queries"]["average_precision"].to_numpy(), tables["summary"].row(0, named=True)
    limits = of_mean(values.mean(), stats.sem(values), 20, degrees_of(values))
    assert (row["map"], row["map_lower"], row["map_upper"]) == pytest.approx((values.mean(), *limits))
    assert row["n_queries"] == 20
    at_three = tables["cutoffs"].filter(pl.col("k") == 3)["precision"].to_numpy()
    means = tables["cutoff_means"].filter(pl.col("k") == 3).row(0, named=True)
    limits = of_mean(at_three.mean(), stats.sem(at_three), 20, degrees_of(at_three))
    found = means["precision"], means["precision_lower"], means["precision_upper"]
    assert found == pytest.approx((at_three.mean(), *limits))


def test_random_selection_beside_every_ranking(tmp_path: Path) -> None:
    ranking, relevance = frames(6, decimals=9)
    tables = ranked(tmp_path, ranking.drop("system"), relevance, n_candidates=60, cutoffs=K)
    for row in tables["queries"].to_dicts():
        size = 60, row["n_relevant"]
        assert row["n"] == 60
        assert (row["ap_expected"], row["ap_variance"]) == pytest.approx(average_precision_moments(*size))
        assert row["ap_p_value"] == average_precision_p_value(row["average_precision"], *size)
    for row in tables["cutoffs"].join(tables["queries"].select("query_id", "n_relevant"), on="query_id").to_dicts():
        chance = stats.hypergeom(60, row["n_relevant"], row["k"])
        assert row["precision_expected"] == pytest.approx(chance.mean() / row["k"])
        assert row["precision_variance"] == pytest.approx(chance.var() / row["k"] ** 2)
        assert row["recall_variance"] == pytest.approx(chance.var() / row["n_relevant"] ** 2)
        assert row["p_value"] == pytest.approx(chance.sf(row["hits"] - 1))


def test_the_mean_under_random_selection_is_that_of_simulated_rankings(tmp_path: Path) -> None:
    """10 queries of 30 documents with 4 relevant ones, in an order that is a little better than chance."""
    rng = np.random.default_rng(1)
    rows = [
        (query, doc, float(rng.random() + 0.02 * (doc < 4)), int(doc < 4)) for query in range(10) for doc in range(30)
    ]
    ranking = pl.DataFrame(rows, schema=["query_id", "doc_id", "score", "relevance"], orient="row")
    row = ranked(tmp_path, ranking)["summary"].row(0, named=True)
    places = np.argsort(rng.random((200_000, 30)), axis=1)[:, :4] + 1
    values = (np.arange(1, 5) / np.sort(places, axis=1)).mean(axis=1)
    means = values.reshape(10, -1).mean(axis=0)
    assert row["map_expected"] == pytest.approx(means.mean(), abs=0.001)
    assert row["map_variance"] == pytest.approx(means.var(), rel=0.03)
    assert row["map_p_value"] == pytest.approx((means >= row["map"]).mean(), rel=0.1)
    assert row["map_p_value_method"] == "lognormal"


def test_a_skewed_mean_under_random_selection_is_drawn(tmp_path: Path) -> None:
    """4 queries with 1 relevant document of 500; and the p-value is that of numpy's own draws."""
    rows = [(query, doc, -float(doc), int(doc == 40 + query)) for query in range(4) for doc in range(500)]
    ranking = pl.DataFrame(rows, schema=["query_id", "doc_id", "score", "relevance"], orient="row")
    row = ranked(tmp_path, ranking)["summary"].row(0, named=True)
    draws = (1 / np.random.default_rng(5).integers(1, 501, (400_000, 4))).mean(axis=1)
    assert row["map_p_value_method"] == "monte_carlo"
    assert row["map_p_value"] == pytest.approx((draws >= row["map"]).mean(), rel=0.03)


@pytest.mark.wide
def test_systems_share_the_relevance_and_the_total_is_the_mean_over_rankings(tmp_path: Path) -> None:
    ranking, relevance = frames(7, systems=3)
    tables = ranked(tmp_path, ranking, relevance, by=["system"], cutoffs=K)
    assert tables["queries"]["grouping"].unique().to_list() == ["system"]
    assert tables["summary"]["n_queries"].to_list() == [36, 12, 12, 12]
    for name in ("s0", "s1", "s2"):
        alone = ranked(tmp_path / name, ranking.filter(pl.col("system") == name).drop("system"), relevance, cutoffs=K)
        own = tables["queries"].filter(pl.col("system") == name).drop("grouping", "system")
        assert_frame_equal(own, alone["queries"].drop("grouping"))
    means = tables["summary"].filter(pl.col("system").is_not_null())["map"]
    total = tables["summary"].filter(pl.col("grouping") == "all").row(0, named=True)
    assert total["map"] == pytest.approx(means.mean())
    sums = tables["queries"].group_by("query_id").agg(pl.col("average_precision").sum())["average_precision"].to_numpy()
    error = np.sqrt(12 / 11 * ((sums - sums.mean()) ** 2).sum() / 36**2)
    limits = of_mean(total["map"], error, 36, degrees_of(sums))
    assert (total["map_lower"], total["map_upper"]) == pytest.approx(limits)


def test_a_grouping_column_of_the_relevance_describes_queries(tmp_path: Path) -> None:
    ranking, relevance = frames(8)
    even = pl.col("query_id").str.slice(1).cast(pl.Int64) % 2 == 0
    relevance = relevance.with_columns(pl.when(even).then(pl.lit("nl")).alias("language"))
    missing = ranking.filter(pl.col("query_id") != "q3").drop("system")
    tables = ranked(tmp_path, missing, relevance, by=["language"], missing_queries="zero")
    assert tables["summary"].select("grouping", "language", "n_queries").rows() == [
        ("all", None, 12),
        ("language", "nl", 6),
        ("language", None, 6),
    ]
    row = tables["queries"].filter((pl.col("query_id") == "q3") & (pl.col("grouping") == "language")).row(0, named=True)
    assert (row["language"], row["average_precision"], row["n_retrieved"]) == (None, 0.0, 0)
    several = relevance.with_columns(pl.col("relevance").cast(pl.String).alias("language"))
    with pytest.raises(DataError, match="several values of language"):
        ranked(tmp_path / "several", missing, several, by=["language"])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("rule", ["trec", "expected", "order"])
def test_the_order_of_rows_and_files_changes_nothing(rule: str, tmp_path: Path) -> None:
    ranking, relevance = frames(9, systems=2)
    ranking = ranking.sort("score", "doc_id").with_columns(
        pl.int_range(1, pl.len() + 1).over("system", "query_id").alias("rank")
    )
    keys: dict[str, Any] = {"by": [["system"]], "ties": rule}
    plain = ranked(tmp_path / "plain", ranking, relevance, **keys)
    mixed = ranked(tmp_path / "mixed", ranking.sample(fraction=1, shuffle=True, seed=1), relevance.reverse(), **keys)
    for name, table in plain.items():
        assert_frame_equal(mixed[name], table, check_exact=True)


def test_a_grouping_column_of_both_inputs_is_named_with_its_input(tmp_path: Path) -> None:
    ranking, relevance = frames(17, systems=2)
    relevance = relevance.with_columns(pl.lit("nl").alias("system"))
    with pytest.raises(DataError, match="column of ranking and of relevance"):
        ranked(tmp_path, ranking, relevance, by=["system"])
    tables = ranked(tmp_path, ranking, relevance, by=[["ranking.system", "relevance.system"]])
    assert tables["summary"].select("ranking.system", "relevance.system", "n_queries").rows() == [
        ("s0", "nl", 12),
        ("s1", "nl", 12),
    ]


def test_a_labelled_ranking_is_the_same_as_relevance_of_its_documents(tmp_path: Path) -> None:
    ranking, relevance = frames(10)
    ranking = ranking.drop("system")
    labelled = ranking.join(relevance, on=["query_id", "doc_id"], how="left")
    inside = labelled.filter(pl.col("relevance").is_not_null()).select("query_id", "doc_id", "relevance")
    relevant = inside.filter(pl.col("relevance") >= 1)["query_id"].unique()
    own = ranked(tmp_path / "labelled", labelled)["queries"].filter(pl.col("query_id").is_in(relevant.implode()))
    apart = ranked(tmp_path / "apart", ranking, inside)["queries"].filter(pl.col("query_id").is_in(relevant.implode()))
    assert_frame_equal(own, apart)


def test_p_values_beyond_the_budget_are_null(tmp_path: Path) -> None:
    queries = np.repeat(np.arange(2_001), 4)
    ranking = pl.DataFrame(
        {"query_id": queries, "doc_id": np.arange(len(queries)), "score": np.arange(len(queries)) * 1.0}
    )
    ranking = ranking.with_columns((pl.col("doc_id") % 4 == 1).cast(pl.Int64).alias("relevance"))
    tables = ranked(tmp_path, ranking)
    assert tables["queries"]["ap_p_value"].null_count() == 2_001
    assert tables["queries"]["undefined_p_value"].unique().to_list() == ["budget"]
    assert tables["queries"]["ap_expected"].null_count() == 0
    assert tables["summary"]["map_p_value"].null_count() == 0


def test_published_moments_are_given_with_a_warning(tmp_path: Path) -> None:
    ranking = pl.DataFrame(
        {"query_id": [1] * 1000, "doc_id": range(1000), "score": [1.0 * each for each in range(1000)]}
    )
    ranking = ranking.with_columns((pl.col("doc_id") < 100).cast(pl.Int64).alias("relevance"))
    run = run_stages(stage_config(tmp_path, RANKING, {"ranking": ranking}, null="zhang_su_2012"))
    row = pl.read_parquet(run.path / "ranking_queries" / "ranking.parquet").row(0, named=True)
    assert round(row["ap_expected"], 4) == 0.1037
    assert row["ap_variance"] == pytest.approx(0.000139235, rel=1e-5)
    assert any("zhang_su_2012" in warning and "wrong" in warning for warning in run.warnings)


def test_rows_left_out_are_counted(tmp_path: Path) -> None:
    ranking, relevance = frames(11)
    ranking = ranking.drop("system").with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(float("nan")).otherwise(pl.col("score")).alias("score")
    )
    config = stage_config(tmp_path, RANKING, {"ranking": ranking, "relevance": relevance}, invalid_scores="drop")
    run = run_stages(config)
    assert rows_by_status(run, "ranking", RANKING) == {"used": ranking.height - 1, "nan_score": 1}
    with pytest.raises(DataError, match="NaN"):
        ranked(tmp_path / "error", ranking, relevance)


@pytest.mark.parametrize("name", ["query_id", "doc_id"])
def test_a_missing_key_stops_the_run(name: str, tmp_path: Path) -> None:
    ranking, relevance = frames(12)
    gone = pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col(name)).alias(name)
    with pytest.raises(DataError, match=name):
        ranked(tmp_path, ranking.drop("system").with_columns(gone), relevance)
    with pytest.raises(DataError, match=name):
        ranked(tmp_path, ranking.drop("system"), relevance.with_columns(gone))


def test_a_missing_rank_or_relevance_stops_the_run(tmp_path: Path) -> None:
    ranking, relevance = frames(13)
    ranking = ranking.select("query_id", "doc_id", pl.int_range(pl.len()).alias("rank"))
    holed = ranking.with_columns(pl.when(pl.col("rank") > 0).then("rank"))
    with pytest.raises(DataError, match="'rank' is NULL"):
        ranked(tmp_path, holed, relevance)
    with pytest.raises(DataError, match="'relevance' is NULL"):
        ranked(tmp_path, ranking, relevance.with_columns(pl.when(pl.col("relevance") > 0).then("relevance")))


def test_repeated_documents_stop_the_run_or_the_best_is_kept(tmp_path: Path) -> None:
    ranking, relevance = frames(14)
    ranking = ranking.drop("system")
    twice = pl.concat([ranking, ranking.head(1).with_columns(pl.lit(-1.0).alias("score"))])
    with pytest.raises(DataError, match="repeat"):
        ranked(tmp_path, twice, relevance)
    with pytest.raises(DataError, match="repeat"):
        ranked(tmp_path, ranking, pl.concat([relevance, relevance.head(1)]))
    best = ranked(tmp_path / "max", twice, pl.concat([relevance, relevance.head(1)]), duplicates="max")
    assert_frame_equal(best["queries"], ranked(tmp_path / "once", ranking, relevance)["queries"])
    kept = ranked(tmp_path / "keep", twice, relevance, duplicates="keep")
    assert kept["queries"]["n_retrieved"].sum() == twice.height
    documents = {"query_id": ["q"] * 4, "doc_id": ["a", "a", "b", "c"], "score": [3.0, 1.0, 2.0, None]}
    labelled = pl.DataFrame(documents | {"relevance": [1, 0, 0, 1]})
    row = ranked(tmp_path / "own", labelled, duplicates="max", invalid_scores="missed")["queries"].row(0, named=True)
    assert (row["n_relevant"], row["average_precision"]) == (2, 0.5)


def test_inputs_that_lack_a_column_stop_the_run(tmp_path: Path) -> None:
    ranking, relevance = frames(15)
    with pytest.raises(DataError, match="neither 'score' nor 'rank'"):
        ranked(tmp_path, ranking.drop("system", "score"), relevance)
    with pytest.raises(DataError, match="no column 'relevance'"):
        ranked(tmp_path, ranking)
    with pytest.raises(DataError, match='ties = "order" needs'):
        ranked(tmp_path, ranking, relevance, ties="order")
    with pytest.raises(DataError, match="cannot be compared"):
        ranked(tmp_path, ranking, relevance.with_columns(pl.lit(1).alias("query_id")))
    ranks = ranking.drop("system").with_columns(pl.lit(1).alias("rank"))
    with pytest.raises(DataError, match="rank repeat"):
        ranked(tmp_path, ranks, relevance, ties="order")


@pytest.mark.wide
def test_queries_lie_in_clusters_that_either_input_tells(tmp_path: Path) -> None:
    ranking, relevance = frames(5, queries=20, systems=2)
    family = pl.col("query_id").str.slice(1).cast(pl.Int64) // 2
    told = [(ranking.with_columns(family=family), relevance), (ranking, relevance.with_columns(family=family))]
    tables = [
        ranked(tmp_path / str(number), *inputs, cluster="family", by=["system"], measures=["nDCG@10"])
        for number, inputs in enumerate(told)
    ]
    for name in ("queries", "summary", "cutoff_means", "measures"):
        assert_frame_equal(tables[0][name], tables[1][name])
    assert tables[0]["summary"]["n_clusters"].to_list() == [10, 10, 10]
    assert tables[0]["summary"]["interval_quality"].to_list() == ["few_clusters"] * 3
    assert (tables[0]["queries"]["cluster"] == tables[0]["queries"].select(family).to_series()).all()
    of_queries = ranked(tmp_path / "queries", ranking, relevance, by=["system"], cluster="query_id")
    assert "n_clusters" not in of_queries["summary"].columns
    assert_frame_equal(of_queries["summary"].select("map"), tables[0]["summary"].select("map"))


def test_a_query_lies_in_one_cluster_and_every_query_that_counts_in_one(tmp_path: Path) -> None:
    ranking, relevance = frames(6)
    split = ranking.with_columns(family=pl.int_range(pl.len()) % 2)
    with pytest.raises(DataError, match="query_id = q0 lies in 2 values of cluster 'family'"):
        ranked(tmp_path / "split", split, relevance, cluster="family")
    with pytest.raises(DataError, match="cluster: no input has a column 'family'"):
        ranked(tmp_path / "absent", ranking, relevance, cluster="family")
    with pytest.raises(DataError, match="NULL"):
        ranked(tmp_path / "null", ranking.with_columns(family=pl.lit(None, pl.Int64)), relevance, cluster="family")
    lacking = ranking.filter(pl.col("query_id") != "q3").with_columns(family=pl.lit(1))
    with pytest.raises(DataError, match="no row tells 'family' of the judged query q3") as stopped:
        ranked(tmp_path / "zero", lacking, relevance, cluster="family", missing_queries="zero")
    assert 'missing_queries = "skip"' in str(stopped.value.remedy)
    skipped = ranked(tmp_path / "skip", lacking, relevance, cluster="family", missing_queries="skip")
    assert skipped["summary"]["undefined_interval"].to_list() == ["one_replicate"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("thresholds", [1.0], "no thresholds"),
        ("cluster", "doc_id", "cluster cannot be"),
        ("by", [["doc_id"]], "by cannot name doc_id"),
        ("cutoffs", [], "at least one"),
        ("cutoffs", [5, 1], "must rise"),
        ("cutoffs", [0], "must be at least 1"),
        ("ties", "random", "trec"),
        ("relevance_level", -1, "must be at least 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(key: str, value: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        ranked(tmp_path, *frames(16), **{key: value})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("ties", ["trec", "expected"])
@pytest.mark.parametrize("labelled", [False, True])
def test_parts_and_the_order_of_rows_change_no_bit(
    ties: str, *, labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranking, relevance = frames(9, systems=2)
    ranking = ranking.with_columns(pl.when(pl.col("system") != "s0").then("system").alias("system"))
    judged: tuple[pl.DataFrame, ...] = (ranking, relevance)
    if labelled:
        judged = (ranking.join(relevance, on=["query_id", "doc_id"], how="left", maintain_order="left"),)
    settings = {"by": ["system"], "ties": ties, "cutoffs": K, "missing_queries": "zero"}
    whole = ranked(tmp_path / "whole", *judged, **settings)
    assert whole["queries"]["system"].null_count() == 12
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 20)
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=2) for frame in judged]
    parts = ranked(tmp_path / "parts", *shuffled, **settings)
    for name, table in whole.items():
        assert_frame_equal(parts[name], table, check_exact=True)


def test_repeated_documents_take_as_many_places_and_minus_zero_is_zero(tmp_path: Path) -> None:
    rows = [("q", "a", 0.0), ("q", "b", -0.0), ("q", "b", -0.0), ("q", "c", 0.0), ("q", "d", 1.0), ("q", "b", 0.5)]
    ranking = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    wanted = ["b", "a", "x", "y", "z"]
    relevance = pl.DataFrame({"query_id": ["q"] * 5, "doc_id": wanted, "relevance": [1] * 5})
    tables = ranked(tmp_path / "keep", ranking, relevance, duplicates="keep", cutoffs=[2, 3, 4, 5, 6])
    assert tables["cutoffs"]["hits"].to_list() == [1.0, 1.0, 2.0, 3.0, 4.0]
    tables = ranked(tmp_path / "max", ranking, relevance, duplicates="max", cutoffs=[2, 3, 4])
    assert tables["cutoffs"]["hits"].to_list() == [1.0, 1.0, 2.0]


@pytest.mark.parametrize("ties", ["trec", "expected"])
def test_documents_that_repeat_cannot_make_more_hits_than_there_are_relevant_ones(tmp_path: Path, ties: str) -> None:
    documents = {"query_id": ["p", "q", "q", "q"], "doc_id": ["a", "a", "a", "b"], "score": [1.0, 3.0, 2.0, 1.0]}
    ranking = pl.DataFrame(documents)
    relevance = pl.DataFrame({"query_id": ["p", "q"], "doc_id": ["a", "a"], "relevance": [1, 1]})
    with pytest.raises(DataError, match="query q retrieves 2 relevant documents where 1 are known") as caught:
        ranked(tmp_path, ranking, relevance, duplicates="keep", ties=ties)
    assert 'duplicates = "max"' in str(caught.value.remedy)
    found = ranked(tmp_path, ranking, relevance, duplicates="max", ties=ties)["queries"]
    assert found["average_precision"].to_list() == [1.0, 1.0]
