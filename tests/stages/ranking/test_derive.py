"""`derive` of ranking from the measures of a few rankings: queries, cutoffs, means, chance, warnings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from deriving import derived, saved_counts
from scipy import stats

from pipeline.base.schemas import internal_name
from pipeline.metrics.uncertainty.jackknife import tail
from pipeline.metrics.uncertainty.proportions import mean_limits
from pipeline.stages.ranking.contract import INTERPOLATED
from pipeline.stages.ranking.means import Groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

INTEGERS = ("query_id", "n_retrieved", "n_relevant", "n_nonrelevant", "n_relevant_retrieved")
NUMBERS = ("precision_sum", "relevant_at_r", "reciprocal_rank", "bpref", *INTERPOLATED, "hits_1", "hits_3")
FLAGS = ("judged", "mixed", "straddled_1", "straddled_3")
FIRST = {  # of 4 documents the first and the last are relevant
    "query_id": 1,
    "n_retrieved": 4,
    "n_relevant": 2,
    "n_nonrelevant": 2,
    "n_relevant_retrieved": 2,
    "precision_sum": 1 + 2 / 4,
    "relevant_at_r": 1.0,
    "reciprocal_rank": 1.0,
    "bpref": 0.5,
    "hits_1": 1.0,
    "hits_3": 1.0,
    "interpolated_100": 0.5,
}
SECOND = {  # of 2 documents the second is relevant, of 2 relevant ones
    "query_id": 2,
    "n_retrieved": 2,
    "n_relevant": 2,
    "n_nonrelevant": 1,
    "n_relevant_retrieved": 1,
    "precision_sum": 1 / 2,
    "relevant_at_r": 1.0,
    "reciprocal_rank": 0.5,
    "hits_1": 0.0,
    "hits_3": 1.0,
}


def ranked(rankings: Sequence[Mapping[str, Any]], by: Groupings = ((),), **keys: object) -> Derived:
    groups = [name for names in by for name in names]
    schema: dict[str, pl.DataType] = dict.fromkeys(groups, pl.String())
    schema |= dict.fromkeys(INTEGERS, pl.Int64()) | dict.fromkeys(NUMBERS, pl.Float64())
    schema |= dict.fromkeys(FLAGS, pl.Boolean())
    default = dict.fromkeys(groups) | dict.fromkeys(INTEGERS, 0) | dict.fromkeys(NUMBERS, 0.0)
    rows = [default | dict.fromkeys(FLAGS, False) | {"judged": True} | dict(row) for row in rankings]
    lists = pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)
    frames = {
        "lists": lists.rename({name: internal_name(name) for name in groups}),
        "counts": saved_counts("ranking", [], by),
    }
    return derived("ranking", frames, {}, **{"cutoffs": [1, 3], "by": by} | keys)


def test_measures_of_a_query_are_ratios_of_its_counts() -> None:
    result = ranked([FIRST, SECOND])
    first, second = result["queries"].to_dicts()
    assert (first["average_precision"], first["r_precision"], first["bpref"]) == (1.5 / 2, 1 / 2, 0.5)
    assert (second["average_precision"], second["set_precision"], second["set_recall"]) == (0.5 / 2, 1 / 2, 1 / 2)
    assert (first["n"], first["interpolated_100"], first["undefined"]) == (4, 0.5, None)
    assert result["cutoffs"].select("query_id", "k", "hits", "precision", "recall").rows() == [
        (1, 1, 1.0, 1.0, 1 / 2),
        (1, 3, 1.0, 1 / 3, 1 / 2),
        (2, 1, 0.0, 0.0, 0.0),
        (2, 3, 1.0, 1 / 3, 1 / 2),
    ]


def test_chance_is_that_of_a_random_order() -> None:
    pair = {
        "query_id": 3,
        "n_retrieved": 2,
        "n_relevant": 1,
        "n_relevant_retrieved": 1,
        "precision_sum": 1.0,
        "hits_1": 1.0,
    }
    query = ranked([pair]).row("queries")
    # the relevant one of two documents is first or second, with average precision 1 or 1/2
    assert (query["ap_expected"], query["ap_variance"]) == (pytest.approx(3 / 4), pytest.approx(1 / 16))
    assert (query["ap_p_value"], query["ap_p_value_method"]) == (pytest.approx(1 / 2), "exact")
    at_one = ranked([FIRST]).row("cutoffs", k=1)
    assert (at_one["precision_expected"], at_one["precision_variance"]) == (2 / 4, pytest.approx(1 / 4))
    assert (at_one["recall_expected"], at_one["p_value"]) == (1 / 4, pytest.approx(1 / 2))
    assert ranked([FIRST]).row("cutoffs", k=3)["p_value"] == pytest.approx(1.0)  # 3 of 4 hold one of 2 at least


def test_means_are_over_queries_with_limits_by_students_t() -> None:
    row = ranked([FIRST, SECOND], confidence=0.5).row("summary")
    assert (row["n_queries"], row["n_excluded"], row["map"]) == (2, 0, (0.75 + 0.25) / 2)
    # t of one degree of freedom is 1 at 3/4; the design effect is 1/16 · 2 / (1/4), of which half a query is more
    hits, misses, squares = 1 + 0.5, 1, (1 / 2 + 1 / 4, 1 / 2)
    share = hits / (hits + misses)
    variance = (squares[0] * (1 - share) ** 2 + squares[1] * share**2) / (hits + misses) ** 2
    size = share * (1 - share) / variance
    mid = min(share * size - 1, (1 - share) * size) / 20
    upper = stats.beta.isf(stats.norm.sf(1), share * size - mid, (1 - share) * size + mid)
    assert (row["map_lower"], row["map_upper"]) == (pytest.approx(1 - upper), pytest.approx(upper))
    one = ranked([FIRST]).row("summary")
    assert (one["map"], one["map_lower"], one["undefined_interval"]) == (0.75, None, "one_query")
    without = {"query_id": 4, "n_retrieved": 3, "n_nonrelevant": 3}
    nothing = ranked([without], no_relevant="zero").row("summary")  # a mean at the edge is no limit of itself
    assert (nothing["map"], nothing["map_lower"], nothing["map_upper"]) == (0.0, None, None)
    assert ranked([FIRST, SECOND], uncertainty="none").row("summary")["undefined_interval"] == "none"


@pytest.mark.parametrize(("no_relevant", "mean", "n_excluded"), [("null", 0.75, 1), ("zero", 0.375, 0)])
def test_a_query_without_relevant_documents_counts_as_the_config_says(
    no_relevant: str, mean: float, n_excluded: int
) -> None:
    without = {"query_id": 4, "n_retrieved": 3, "n_nonrelevant": 3}
    result = ranked([FIRST, without], no_relevant=no_relevant)
    summary = result.row("summary")
    assert (summary["map"], summary["n_excluded"]) == (mean, n_excluded)
    assert result.row("queries", query_id=4)["undefined"] == "no_relevant"
    left_out = "means leave out rankings of queries without a relevant document: 1 ranking"
    assert (left_out in result.warnings) == (no_relevant == "null")


@pytest.mark.parametrize(
    ("change", "keys", "reason"),
    [
        ({"judged": False, "n_relevant": 0}, {}, "unjudged"),
        ({"n_retrieved": 0, "n_relevant_retrieved": 0}, {}, "no_retrieved"),
        ({}, {"n_candidates": 3}, "small_pool"),
        ({"n_relevant": 3}, {}, "unranked_relevant"),
        ({"mixed": True}, {}, "ties"),
    ],
)
def test_what_is_unknown_of_chance_is_null_and_says_why(
    change: dict[str, Any], keys: dict[str, Any], reason: str
) -> None:
    result = ranked([FIRST | change], **keys)
    query = result.row("queries")
    assert query["undefined"] == reason
    assert query["ap_p_value"] is None
    assert (query["interpolated_100"] is None) == (reason in {"ties", "unjudged"})
    assert (query["ap_expected"] is None) == (reason != "ties")
    assert any("more documents than n_candidates" in text for text in result.warnings) == (reason == "small_pool")
    assert any("by chance is missing for 1 of 1" in text for text in result.warnings) == (reason == "unranked_relevant")


def test_a_tie_across_the_cutoff_has_no_p_value() -> None:
    row = ranked([FIRST | {"hits_1": 0.5, "straddled_1": True}])
    assert (row.row("cutoffs", k=1)["p_value"], row.row("cutoffs", k=1)["undefined_p_value"]) == (None, "ties")
    assert row.row("cutoffs", k=1)["hits"] == 0.5
    assert row.row("cutoffs", k=3)["undefined_p_value"] is None


def test_queries_are_listed_where_each_has_one_ranking() -> None:
    rankings: Rows = [FIRST | {"system": "a"}, SECOND | {"system": "a"}, FIRST | {"system": None, "precision_sum": 1.0}]
    result = ranked(rankings, by=[[], ["system"]])
    assert set(result["queries"]["grouping"]) == {"system"}  # the first query has two rankings in the total
    summary = {(row["grouping"], row["by:system"]): row for row in result["summary"].to_dicts()}
    values = {group: (row["n_queries"], row["map"]) for group, row in summary.items()}
    assert values == {("all", None): (3, 0.5), ("system", "a"): (2, 0.5), ("system", None): (1, 0.5)}
    assert summary["all", None]["undefined_interval"] is None
    assert result.warnings == (
        (
            "3 of 3 groups have fewer than 15 queries: means are very uncertain, and their intervals may be "
            "too narrow (marked few_clusters)"
        ),
        (
            "the value by chance is missing for 1 of 3 rankings: relevant documents are not in them, so it is not "
            "known how many documents there were to rank; n_candidates says it"
        ),
    )
    assert result.summary.sentence.endswith(
        "50 of every 100 documents read so far are relevant (MAP of 50.0% over 3 queries)."
    )


def test_without_any_ranking_only_the_total_has_a_row() -> None:
    total, groups = ranked([]), ranked([], by=[["system"]])
    row = total.row("summary")
    assert (row["n_queries"], row["map"], row["undefined"], row["undefined_interval"]) == (
        0,
        None,
        "no_query",
        "no_query",
    )
    assert total.summary.sentence == "No query has a relevant document."
    assert total["queries"].is_empty()
    assert all(table.is_empty() for table in groups.tables.values())
    assert groups.summary.sentence == "No group has any ranking."


def test_queries_of_a_family_are_left_out_together() -> None:
    values = [0.2, 0.4, 0.3, 0.9, 0.8, 0.5, 0.7, 0.1]
    family = [1, 1, 2, 2, 2, 3, 4, 4]
    rankings = pl.DataFrame({"query_id": range(8), "cluster": family, "included": True, "value": values})
    groups = Groups(rankings, [])
    without = np.array(
        [np.mean([v for v, f in zip(values, family, strict=True) if f != each]) for each in (1, 2, 3, 4)]
    )
    variance = 3 / 4 * ((without - without.mean()) ** 2).sum()
    shifts = np.mean(values) - without
    assert variance == pytest.approx(3 / 4 * (shifts**2).sum(), rel=0.02)
    degrees = np.full(1, 64 / (4 + 9 + 1 + 4) - 1)
    expected = mean_limits(
        np.array([np.mean(values)]), 3 / 4 * (shifts**2).sum(keepdims=True), np.array([8.0]), tail(0.95, degrees)
    )
    assert np.concatenate(groups.limits(np.array(values), 0.95)) == pytest.approx(np.concatenate(expected))


@pytest.mark.wide
def test_means_over_families_hold_as_often_as_they_say() -> None:
    rng, held, number = np.random.default_rng(8), {"cluster": 0, "query_id": 0}, 300
    family = np.repeat(np.arange(24), 4)
    for _ in range(number):
        latent = rng.normal(size=24)[family] + 0.3 * rng.normal(size=96)
        values = 1 / (1 + np.exp(-latent))
        frame = pl.DataFrame({"query_id": np.arange(96), "cluster": family, "included": True})
        for unit in held:
            rankings = frame if unit == "cluster" else frame.drop("cluster")
            lower, upper = Groups(rankings, []).limits(values, 0.95)
            held[unit] += bool(lower[0] <= 0.5 <= upper[0])
    assert held["cluster"] >= 0.92 * number
    assert held["query_id"] < 0.8 * number  # copies are no independent queries
