"""`derive` of before_after from a few counts: estimates, references, optional tables, warnings and words."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deriving import count_table, derived, saved_counts

from pipeline.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

KIND = "before_after"
COMPARED: Rows = [{"n_before": 60, "n_after": 30}, {"replicate": 1, "n_before": 40, "n_after": 20}]
MATCHES: Rows = [  # of 100 pairs before and 50 after: 10 and 25 from 1 on, 4 and 22 from 2 on, 0 and 10 from 3 on
    {"threshold": 1.0, "m_before": 4, "m_after": 2},
    {"threshold": 1.0, "replicate": 1, "m_before": 2, "m_after": 1},
    {"threshold": 2.0, "m_before": 3, "m_after": 7},
    {"threshold": 2.0, "replicate": 1, "m_before": 1, "m_after": 5},
    {"threshold": 3.0, "m_after": 10},
]
PAIRS: Rows = [*COMPARED, *MATCHES]
OPTIONAL = {"lags", "placebo", "adjusted", "trend", "audit", "gold", "events", "audit_sample"}


def estimated(
    rows: Sequence[Mapping[str, Any]],
    frames: Mapping[str, pl.DataFrame] | None = None,
    by: Groupings = ((),),
    **keys: object,
) -> Derived:
    counts = {"counts": saved_counts(KIND, rows, by)} | dict(frames or {})
    return derived(KIND, counts, {}, **{"thresholds": [1, 2, 3], "by": by} | keys)


def test_estimates_at_every_threshold() -> None:
    rows = estimated(PAIRS)["estimates"].to_dicts()
    counts = ("threshold", "m_before", "m_after", "n_before", "n_after")
    assert [tuple(row[name] for name in counts) for row in rows] == [
        (1.0, 10, 25, 100, 50),
        (2.0, 4, 22, 100, 50),
        (3.0, 0, 10, 100, 50),
    ]
    expected: dict[
        str, tuple[Fraction | int, ...]
    ] = {  # fp = fpr · 50, tp = m_after − fp; 20 true positives at the reference, the lowest threshold
        "fpr": (Fraction(10, 100), Fraction(4, 100), 0),
        "fp": (5, 2, 0),
        "tp": (20, 20, 10),
        "precision": (Fraction(20, 25), Fraction(20, 22), 1),
        "recall": (1, 1, Fraction(10, 20)),
        "f1": (Fraction(40, 40 + 5), Fraction(40, 40 + 2), Fraction(20, 20 + 10)),
    }
    for name, values in expected.items():
        assert [row[name] for row in rows] == [float(value) for value in values], name
    assert [row["is_reference"] for row in rows] == [True, False, False]
    # 20 / (1 − 1/10) positives: the other pairs after the event alone can be false positives
    assert rows[0]["tp_corrected"] == pytest.approx(20 + 1 / 10 * 200 / 9)
    assert rows[1]["recall_corrected"] == pytest.approx((20 + 4 / 100 * 200 / 9) / (200 / 9))


@pytest.mark.parametrize(
    ("rows", "reason", "defined"),
    [
        ([{"n_after": 9}, {"threshold": 3.0, "m_after": 3}], "no_before", {"f1": None, "precision": None}),
        ([{"n_before": 9, "n_after": 9}, {"threshold": 1.0, "m_after": 3}], "no_prediction", {"f1": 0.0}),
        ([{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3}], "no_prediction", {"fpr": 3 / 9}),
        (
            [{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 2}],
            "negative_tp",
            {"precision": -1 / 2, "recall": None, "f1": None},
        ),
        (
            [{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 3}],
            "no_reference",
            {"precision": 0.0, "recall": None, "f1": None},
        ),
    ],
)
def test_a_ratio_that_is_not_defined_says_why(
    rows: list[dict[str, Any]], reason: str, defined: dict[str, float | None]
) -> None:
    result = estimated(rows)
    row = result.row("estimates", threshold=3.0)
    assert row["undefined"] == reason
    assert {name: row[name] for name in defined} == defined


def test_a_threshold_with_more_true_positives_than_the_reference_has_recall_1() -> None:
    matches: Rows = [{"threshold": 1.0, "m_before": 8, "m_after": 1}, {"threshold": 2.0, "m_before": 2, "m_after": 24}]
    result = estimated([*COMPARED, *matches])
    lowest, higher = (result.row("estimates", threshold=threshold) for threshold in (1.0, 2.0))
    assert (lowest["is_reference"], lowest["tp"], higher["tp"]) == (True, 20.0, 23.0)
    assert (higher["recall_raw"], higher["recall"], higher["f1"]) == (23 / 20, 1.0, 46 / (24 + 23))
    most = estimated([*COMPARED, *matches], recall_reference={"rule": "max"}).row("estimates", threshold=1.0)
    assert (most["is_reference"], most["recall"]) == (False, 20 / 23)


def test_one_replicate_has_no_interval_and_says_so() -> None:
    alone: Rows = [row | {"replicate": 0} for row in PAIRS]
    one, two = estimated(alone)["estimates"], estimated(PAIRS)["estimates"]
    of_intervals = ("undefined_interval", "interval_quality", "^.*_(lower|upper)$")
    assert one.drop(of_intervals).equals(two.drop(of_intervals))
    assert one["interval_quality"].to_list() == [None] * 3
    assert set(two["interval_quality"]) == {"few_clusters"}
    assert one["precision_lower"].null_count() == 3
    assert set(one["undefined_interval"]) == {"one_replicate"}
    assert two.select((pl.col("precision_lower") < pl.col("precision")).first()).item()
    assert set(estimated(PAIRS, uncertainty="none")["estimates"]["undefined_interval"]) == {"none"}


def test_thresholds_are_chosen_in_every_group_the_lowest_of_equal_ones() -> None:
    tied: Rows = [{"n_before": 10, "n_after": 10}, {"threshold": 1.0, "m_before": 1, "m_after": 1}]
    tied += [{"threshold": 3.0, "m_after": 4}]  # 4 true positives at each threshold
    groups: Rows = [{"grouping": "source", "source": name, **row} for name in ("x", None) for row in tied]
    points: Rows = [{"beta": 1}, {"min_recall": 0.9}, {"min_precision": 1.0}]
    rows: Rows = [*groups, *({**row, "m_after": 0} for row in tied)]
    result = estimated(rows, by=[[], ["source"]], operating_points=points)
    for group in ("x", None):
        chosen = {
            row["criterion"]: row["threshold"]
            for row in result.rows("operating_points", grouping="source")
            if row["by:source"] == group
        }
        assert chosen == {"max_f1": 2.0, "min_recall=0.9": 2.0, "min_precision=1.0": 2.0, "recall_reference": 1.0}
    total = result.row("operating_points", grouping="all", criterion="recall_reference")
    assert (total["threshold"], total["undefined"]) == (None, "not_reached")


def test_tables_without_their_option_are_left_out() -> None:
    result = estimated(PAIRS)
    assert result.returned == {
        f"before_after_{name}" for name in ("estimates", "operating_points", "sensitivity", "placebo")
    }
    assert [name for name in sorted(OPTIONAL - {"placebo"}) if not result[name].is_empty()] == []
    assert result["placebo"]["undefined"].to_list() == ["no_window"]
    assert "before_after_placebo" not in estimated(PAIRS, uncertainty="none").returned


def test_matches_by_day_are_those_at_or_above_the_lag_thresholds() -> None:
    days: Rows = [
        {"threshold": 2.0, "lag_days": -1, "matches": 3},
        {"threshold": 2.0, "lag_days": 0, "matches": 4},
        {"threshold": 3.0, "lag_days": 0, "matches": 5},
        {"threshold": 3.0, "lag_days": 0, "replicate": 1, "matches": 1},
        {"lag_days": 4, "matches": 7},
    ]
    lags = count_table(days, {"matches": pl.Int64()}, keys={"lag_days": pl.Int64()})
    result = estimated(PAIRS, {"lags": lags}, lag_thresholds=[2, 3])
    assert result["lags"].select("threshold", "lag_days", "matches").rows() == [(2.0, -1, 3), (2.0, 0, 10), (3.0, 0, 6)]
    assert result["trend"].select("threshold", "matches", "n_days", "undefined").rows() == [
        (2.0, 3, None, "unknown_pairs"),
        (3.0, 0, None, "unknown_pairs"),
    ]


def test_gold_pairs_stand_beside_the_estimates() -> None:
    counts = dict.fromkeys(("tp", "fp", "n_gold"), pl.Int64())
    rows: Rows = [
        {"level": "match", "n_gold": 8},
        {"level": "match", "threshold": 1.0, "tp": 2, "fp": 3},
        {"level": "match", "threshold": 3.0, "tp": 4},
    ]
    frames = {"gold": count_table(rows, counts, keys={"level": pl.String()})}
    table = estimated(PAIRS, frames)["gold"]
    assert table.select("threshold", "tp", "fp", "fn", "precision", "recall").rows() == [
        (1.0, 6, 3, 2, 6 / 9, 6 / 8),
        (2.0, 4, 0, 4, 1.0, 4 / 8),
        (3.0, 4, 0, 4, 1.0, 4 / 8),
    ]
    assert table["precision_difference"].to_list() == pytest.approx([20 / 25 - 6 / 9, 20 / 22 - 1, 0.0])


def test_strata_adjust_the_false_positive_rate() -> None:
    counts = dict.fromkeys(("n_before", "n_after", "m_before"), pl.Int64())
    keys = dict.fromkeys(("event_stratum", "article_stratum"), pl.Int64())
    rows: Rows = [  # day: 10 of 50 match, for 10 pairs after; night: none of 50, for 40 pairs after
        {"event_stratum": 0, "article_stratum": 0, "n_before": 50, "n_after": 10},
        {"event_stratum": 0, "article_stratum": 0, "threshold": 1.0, "m_before": 10},
        {"event_stratum": 0, "article_stratum": 1, "n_before": 50, "n_after": 40},
    ]
    pairs: Rows = [{"n_before": 100, "n_after": 50}, {"threshold": 1.0, "m_before": 10, "m_after": 25}]
    frames = {"strata": count_table(rows, counts, keys=keys)}
    row = estimated(pairs, frames, thresholds=[1]).row("adjusted")
    assert row["n_strata"] == 2
    assert row["fpr_adjusted"] == pytest.approx(10 / 50 * 10 / 50)
    assert row["precision_adjusted"] == pytest.approx((25 - 2) / 25)
    with pytest.raises(DataError, match="only 100 of 160 pairs before"):
        estimated([*pairs, {"n_before": 60}], frames, thresholds=[1])


def test_more_matches_than_compared_pairs_are_refused() -> None:
    with pytest.raises(DataError, match=r"n_after adds up to 50, but pairs has 51 rows after the event \(all\)"):
        estimated([*PAIRS, {"threshold": 1.0, "m_after": 26}])


def test_warnings_and_words() -> None:
    good, poor = (
        estimated(PAIRS),
        estimated([{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 3}]),
    )
    assert good.summary.sentence.startswith(
        "Keeping scores of 2 or more, about 91 of every 100 kept matches are right, and about 100 of every 100"
    )
    assert good.summary.curve == (8 / 9, 20 / 21, 2 / 3)
    assert not any("recall" in text for text in good.warnings)
    assert any(text.startswith("no threshold has enough precision") for text in poor.warnings)
    assert poor.summary.sentence.startswith("No threshold has both")
    low = estimated([{"n_before": 100, "n_after": 100}, {"threshold": 1.0, "m_before": 9, "m_after": 10}])
    assert any("at its reference threshold 1 only 10% of the matches are right" in text for text in low.warnings)


def test_no_group_gives_empty_tables_of_the_contract() -> None:
    result = estimated(
        [],
        by=[["source"]],
        lag_thresholds=[2],
        frames={"lags": count_table([], {"matches": pl.Int64()}, [["source"]], {"lag_days": pl.Int64()})},
    )
    assert all(table.is_empty() for table in result.tables.values())
    assert result.warnings == ()
    assert result.summary.sentence == "No group has any event or pair."
