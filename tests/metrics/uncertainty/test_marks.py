"""Marks of single rows, of averages, and what a run says of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.uncertainty.limits import (
    MEANINGS,
    Quality,
    clusters_of,
    quality_of_events,
    quality_of_sizes,
    warnings_of_marks,
    worst,
    worst_of,
)

NAMES: list[Quality] = list(MEANINGS)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=80).filter(any))
def test_a_table_and_an_array_of_sizes_have_the_same_quality(sizes: list[int]) -> None:
    counts = pl.DataFrame({"replicate": range(len(sizes)), "n": sizes}).with_columns(pl.lit("all").alias("group"))
    (of_table,) = clusters_of(counts, ["group"], ["n"])["_quality_of_clusters"]
    assert of_table == quality_of_sizes(np.array(sizes))


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([4] * 20, "good"),
        ([4] * 15, "good"),
        ([4] * 14, "few_clusters"),
        ([1, 1, 1], "few_clusters"),
        ([40] + [1] * 40, "unequal_clusters"),
        ([12, 9, 6, 5, 3, 3] + [1, 2] * 20, "good"),
        ([12, 9, 6, 5, 3, 3] * 40, "good"),
        ([], "few_clusters"),
    ],
)
def test_sizes_have_a_quality(sizes: list[int], wanted: str) -> None:
    assert quality_of_sizes(np.array([*sizes, 0])) == wanted


@pytest.mark.parametrize("kind", ["poisson", "lognormal", "zipf", "exponential"])
def test_sizes_with_a_tail_are_no_mark_where_clusters_are_many(kind: str) -> None:
    rng = np.random.default_rng(2)
    sizes = {
        "poisson": rng.poisson(8, (200, 60)) + 1,
        "lognormal": np.ceil(20 * rng.lognormal(0, 0.8, (200, 60))),
        "zipf": np.minimum(rng.zipf(2.5, (200, 200)), 60),
        "exponential": np.ceil(rng.exponential(20, (200, 60))),
    }[kind]
    assert np.mean([quality_of_sizes(of_sample) != "good" for of_sample in sizes]) < 0.2


def test_rare_events_have_a_quality() -> None:
    assert [quality_of_events(*numbers) for numbers in ((0, 50), (9, 50), (10, 50))] == [
        "at_edge",
        "few_events_of_interest",
        "good",
    ]


@given(st.lists(st.sampled_from([*NAMES, None]), max_size=6))
def test_the_worst_of_a_column_is_the_worst_of_a_list(qualities: list[Quality | None]) -> None:
    frame = pl.DataFrame({"quality": qualities}, schema={"quality": pl.String})
    (of_column,) = frame.select(worst_of(pl.col("quality")))["quality"]
    assert of_column == worst(qualities)
    ranks = [NAMES.index(quality) for quality in qualities if quality]
    assert of_column == (NAMES[min(ranks)] if ranks else None)


def marked(*qualities: str | None, **columns: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"interval_quality": qualities, **columns}, schema_overrides={"interval_quality": pl.String})


def test_a_stage_warns_once_and_names_marks_tables_and_the_fewest_clusters() -> None:
    tables = {
        "curve": marked("good", "few_clusters", "unequal_clusters", None),
        "areas": marked("few_clusters", "few_clusters", n_clusters=[5, 50], n_clusters_effective=[5.0, 4.4]),
        "means": marked("skewed", "at_edge"),
        "counts": pl.DataFrame({"n": [1]}),
    }
    (words,) = warnings_of_marks(tables)
    assert words.endswith(
        "one cluster has over a third of the rows (unequal_clusters in curve); they rest on few independent clusters, "
        "50 that count as 4.4 at the fewest (few_clusters in curve, areas); there are too few units for values so "
        "unevenly spread (skewed in means)"
    )
    (words,) = warnings_of_marks({"areas": tables["areas"][:1]})
    assert words.endswith("few independent clusters, 5 at the fewest (few_clusters in areas)")


def test_a_stage_without_doubtful_intervals_does_not_warn() -> None:
    tables = {"curve": marked("good", "at_edge", "few_events_of_interest", "chosen_on_same_data", None)}
    assert warnings_of_marks(tables) == ()
    assert warnings_of_marks({"curve": marked("one_parent")}, without=("one_parent",)) == ()


def test_limits_that_were_asked_for_and_are_missing_are_told_with_the_reason() -> None:
    def limitless(*reasons: str | None) -> pl.DataFrame:
        return marked(*(None if reason else "good" for reason in reasons)).with_columns(
            undefined_interval=pl.Series(reasons, dtype=pl.String)
        )

    tables = {"curve": limitless("budget", None), "areas": limitless("one_replicate"), "means": limitless("none", None)}
    (words,) = warnings_of_marks(tables)
    assert "a single cluster has no spread (one_replicate in areas)" in words
    assert "thresholds × replicates are too many, ask for fewer of either (budget in curve)" in words
    assert "means" not in words


def test_no_cluster_is_alone_where_nothing_was_counted() -> None:
    rows = marked(None, None).with_columns(undefined_interval=pl.lit("one_replicate"))

    def told(n: list[int], tp: list[int | None]) -> tuple[str, ...]:
        counts = {"n": pl.Series(n), "tp": pl.Series(tp, dtype=pl.Int64)}
        return warnings_of_marks({"curve": rows.with_columns(**counts), "bands": rows})

    assert told([0, 0], [None, 0]) == ()
    for (words,) in (told([0, 1], [None, 0]), told([0, 0], [None, 1])):
        assert "a single cluster has no spread (one_replicate in curve, bands)" in words
