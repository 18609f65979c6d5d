"""`derive` of geocoding from a few counts: scores at every tolerance, intervals, warnings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deriving import count_table, derived, saved_counts, stage_of

from pipeline.base.schemas import polars_types
from pipeline.stages.geocoding.contract import ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

LOCATED: Rows = [  # of 8 gold mentions 6 are located: 2 within 10 km, 3 within 161 km; 4 spurious predictions
    {"n_gold": 8, "n_predicted": 10, "n_spurious": 4, "n_located": 3},
    {"threshold": -161.0, "n_located": 1},
    {"threshold": -10.0, "n_located": 2},
]


def located(
    rows: Sequence[Mapping[str, Any]],
    by: Groupings = ((),),
    errors: Sequence[Mapping[str, Any]] = (),
    **keys: object,
) -> Derived:
    types = {column.name: polars_types(column.type)[0] for column in ERRORS.columns}
    table = count_table(errors, {}, by, types).drop("replicate", "threshold")
    frames = {"counts": saved_counts("geocoding", rows, by)}
    config = {"tolerances_km": [10, 161], "by": by} | keys
    return derived("geocoding", frames, {"geocoding_errors": table}, **config)


def values(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_a_distance_within_a_tolerance_is_within_the_larger_ones() -> None:
    rows = located(LOCATED)["scores"].to_dicts()
    counts = [values(row, "tolerance_km", "n_gold", "n_attempted", "tp", "fp", "fn") for row in rows]
    assert counts == [(10.0, 8, 6, 2, 4, 6), (161.0, 8, 6, 3, 3, 5)]
    ratios = [values(row, "precision", "recall", "f1") for row in rows]
    assert ratios == [(2 / 6, 2 / 8, 4 / 14), (3 / 6, 3 / 8, 6 / 14)]
    ends = [values(row, "n_spurious", "precision_end_to_end", "f1_end_to_end") for row in rows]
    assert ends == [(4, 2 / 10, 4 / 18), (4, 3 / 10, 6 / 18)]


@pytest.mark.parametrize(
    ("row", "ratios", "reason"),
    [
        ({"n_gold": 2}, (None, 0.0, 0.0, None), "no_prediction"),
        ({"n_spurious": 2}, (None, None, None, 0.0), "no_prediction"),
        ({}, (None, None, None, None), "no_prediction"),
        ({"n_gold": 2, "n_located": 2}, (0.0, 0.0, 0.0, 0.0), None),
    ],
)
def test_a_ratio_of_nothing_is_null_and_says_why(
    row: dict[str, Any], ratios: tuple[float | None, ...], reason: str | None
) -> None:
    scores = located([row]).row("scores", tolerance_km=161.0)
    assert values(scores, "precision", "recall", "f1", "precision_end_to_end") == ratios
    assert scores["undefined"] == reason


def test_replicates_without_gold_mentions_give_no_interval() -> None:
    spurious = {"replicate": 1, "n_predicted": 1, "n_spurious": 1}
    one = located([*LOCATED, spurious])["scores"]
    assert set(one["undefined_interval"]) == {"one_replicate"}
    two = located([*LOCATED, spurious | {"n_gold": 2, "n_located": 1}])["scores"]
    assert set(two["undefined_interval"]) == {None}
    assert all(row["recall_lower"] < row["recall"] < row["recall_upper"] for row in two.to_dicts())
    assert set(located(LOCATED, uncertainty="none")["scores"]["undefined_interval"]) == {"none"}


def test_groups_keep_apart_also_where_their_name_is_null() -> None:
    named: Rows = [row | {"grouping": "system", "system": "a"} for row in LOCATED]
    unnamed = {"grouping": "system", "threshold": -10.0, "n_gold": 1, "n_located": 1}
    scores = located([*named, unnamed], by=[["system"]])["scores"]
    assert scores.select("by:system", "tolerance_km", "n_gold", "tp").rows() == [
        ("a", 10.0, 8, 2),
        ("a", 161.0, 8, 3),
        (None, 10.0, 1, 1),
        (None, 161.0, 1, 1),
    ]


@pytest.mark.parametrize(
    ("tolerances", "said"), [([10, 161, 1000], "161 km"), ([10, 100, 1000], "10 km"), ([50], "50 km")]
)
def test_the_headline_is_within_the_usual_tolerance_or_the_smallest(tolerances: list[float], said: str) -> None:
    rows: Rows = [{"threshold": -tolerance, "n_gold": 1, "n_located": 1} for tolerance in tolerances]
    errors: Rows = [{"n_gold": len(rows), "n_located": len(rows), "mean_km": 120.0, "median_km": 90.0}]
    result = located(rows, errors=errors, tolerances_km=tolerances)
    assert f"lie within {said} of the right place;" in result.summary.sentence
    tiles = stage_of("geocoding").key_numbers(result.tables)
    assert tiles[0].meaning == f"located mentions within {said}"


def test_words_are_about_the_usual_tolerance() -> None:
    errors: Rows = [{"n_gold": 8, "n_located": 6, "mean_km": 120.0, "median_km": 90.0}]
    result = located(LOCATED, errors=errors)
    (single,) = result.warnings
    assert single == "some intervals are missing: a single cluster has no spread (one_replicate in geocoding_scores)"
    assert result.summary.sentence == (
        "3 of 6 located mentions lie within 161 km of the right place; gold has 8 mentions."
    )
    assert result.summary.rows == (("all", "8", "6", "50.0%", "37.5%", "42.9%", "120", "90"),)
    none_located = located([{"n_gold": 2}], errors=[{"n_gold": 2, "n_located": 0}])
    assert none_located.warnings[0] == "there is no located gold mention: numbers that need one are empty (NULL)"
    no_gold = located([{"n_spurious": 1}], errors=[{"n_gold": 0, "n_located": 0}])
    assert no_gold.warnings[0] == "there is no gold mention: numbers that need one are empty (NULL)"


def test_no_group_gives_empty_tables_of_the_contract() -> None:
    result = located([], by=[["system"]])
    assert result.returned == {"geocoding_scores"}
    assert all(table.is_empty() for table in result.tables.values())
    assert result.warnings == ()
    assert result.summary.sentence == "There is nothing to judge."
