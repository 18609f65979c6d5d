"""`derive` of before_after from a few counts: estimates, references, optional tables, warnings and words."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deriving import count_table, derived, saved_counts
from pydantic import ValidationError

from pipeline.base.errors import DataError

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
    # 20 / (1 − 1/10) = 200/9 positives: the other 250/9 pairs after the event alone can be false positives
    tp = Fraction(22) - Fraction(4, 100) * Fraction(250, 9)
    expected: dict[str, tuple[Fraction | int, ...]] = {
        "fpr": (Fraction(10, 100), Fraction(4, 100), 0),
        "fp": (Fraction(25, 9), Fraction(10, 9), 0),
        "tp": (Fraction(200, 9), tp, 10),
        "precision": (Fraction(200, 9 * 25), tp / 22, 1),
        "recall": (1, tp * 9 / 200, Fraction(90, 200)),
        "f1": (Fraction(400, 400 + 25), 2 * tp / (22 + Fraction(200, 9)), Fraction(20 * 9, 90 + 200)),
        # fp = fpr · 50, tp = m_after − fp; 20 true positives at the reference, the lowest threshold
        "fp_uncorrected": (5, 2, 0),
        "tp_uncorrected": (20, 20, 10),
        "precision_uncorrected": (Fraction(20, 25), Fraction(20, 22), 1),
        "recall_uncorrected": (1, 1, Fraction(10, 20)),
        "f1_uncorrected": (Fraction(40, 40 + 5), Fraction(40, 40 + 2), Fraction(20, 20 + 10)),
    }
    for name, values in expected.items():
        assert [row[name] for row in rows] == pytest.approx([float(value) for value in values], rel=1e-15), name
    assert [row["is_reference"] for row in rows] == [True, False, False]


@pytest.mark.parametrize(
    ("rows", "reason", "defined"),
    [
        ([{"n_after": 9}, {"threshold": 3.0, "m_after": 3}], "no_before", {"f1": None, "precision": None}),
        ([{"n_before": 9, "n_after": 9}, {"threshold": 1.0, "m_after": 3}], "no_prediction", {"f1": 0.0}),
        ([{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3}], "no_prediction", {"fpr": 3 / 9}),
        (
            [{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 2}],
            "no_reference",
            {"precision_uncorrected": -1 / 2, "recall_uncorrected": None, "precision": None, "recall": None},
        ),
        (
            [
                {"n_before": 9, "n_after": 9},
                {"threshold": 1.0, "m_after": 2},
                {"threshold": 3.0, "m_before": 3, "m_after": 2},
            ],
            "negative_tp",
            {"precision_uncorrected": -1 / 2, "precision": -1 / 4, "recall": None, "f1": None},
        ),
        (
            [{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 3}],
            "no_reference",
            {"precision_uncorrected": 0.0, "recall_uncorrected": None, "precision": None, "recall": None, "f1": None},
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
    assert (lowest["is_reference"], lowest["tp_uncorrected"], higher["tp_uncorrected"]) == (True, 20.0, 23.0)
    names = ("recall_raw", "recall", "f1")
    assert [higher[f"{name}_uncorrected"] for name in names] == [23 / 20, 1.0, 46 / (24 + 23)]
    positives = Fraction(20) / (1 - Fraction(1, 10))
    tp = 24 - Fraction(2, 100) * (50 - positives)
    assert [higher[name] for name in names] == [float(tp / positives), 1.0, float(2 * tp / (24 + tp))]
    most = estimated([*COMPARED, *matches], recall_reference={"rule": "max"}).row("estimates", threshold=1.0)
    assert (most["is_reference"], most["recall_uncorrected"]) == (False, 20 / 23)
    positives = Fraction(23) / (1 - Fraction(2, 100))
    assert most["recall"] == float((25 - Fraction(1, 10) * (50 - positives)) / positives)


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
    tied += [{"threshold": 3.0, "m_after": 4}]  # 40/9 positives: 40/9, 4 and 4 of them, with 5, 4 and 4 matches
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
    assert table["precision_difference"].to_list() == pytest.approx(
        [200 / 9 / 25 - 6 / 9, (22 - 4 / 100 * 250 / 9) / 22 - 1, 0.0]
    )


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
    # 23 / (1 − 1/25) positives, so that 50 − 23 · 25/24 pairs can be false positives
    assert row["precision_adjusted"] == pytest.approx((25 - 10 / 50 * 10 / 50 * (50 - 23 * 25 / 24)) / 25)
    with pytest.raises(DataError, match="only 100 of 160 pairs before"):
        estimated([*pairs, {"n_before": 60}], frames, thresholds=[1])


def test_more_matches_than_compared_pairs_are_refused() -> None:
    with pytest.raises(DataError, match=r"n_after adds up to 50, but pairs has 51 rows after the event \(all\)"):
        estimated([*PAIRS, {"threshold": 1.0, "m_after": 26}])


@pytest.mark.wide
def test_warnings_and_words() -> None:
    good, poor = (
        estimated(PAIRS),
        estimated([{"n_before": 9, "n_after": 9}, {"threshold": 3.0, "m_before": 3, "m_after": 3}]),
    )
    assert good.summary.sentence.startswith(
        "Keeping scores of 2 or more, about 95 of every 100 kept matches are right, and about 94 of every 100 true "
        "matches are kept (a little too good, because the threshold was chosen on the same data). This depends on the "
        "recall reference: see the warnings."
    )
    assert any("Welbers et al. 2022, gives a recall of 1.00, the corrected one 0.94)" in text for text in good.warnings)
    assert good.summary.curve == pytest.approx((16 / 17, 188 / 199, 18 / 29), rel=1e-15)
    assert any(text.startswith("precision and recall depend on the recall reference, 1: 10%") for text in good.warnings)
    rare: Rows = [{"n_before": 40, "n_after": 20}, {"n_before": 960, "n_after": 480, "replicate": 1}, *MATCHES]
    assert not any("recall" in text for text in estimated(rare).warnings), "1% of the pairs match before the event"
    assert "depends on" not in estimated(rare).summary.sentence
    assert any(text.startswith("no threshold has enough precision") for text in poor.warnings)
    nothing = estimated([{"n_after": 9}, {"threshold": 3.0, "m_after": 3}])
    assert any(text.startswith("no pair was compared before the event") for text in nothing.warnings)
    assert poor.summary.sentence.startswith("No threshold has both")
    low = estimated([{"n_before": 100, "n_after": 100}, {"threshold": 1.0, "m_before": 9, "m_after": 10}])
    assert any(
        "1: 9% of the pairs match there even before the event, and 11% of the matches" in w for w in low.warnings
    )
    fixed: dict[str, object] = {"rule": "fixed", "threshold": 1.0}
    some: Rows = [{"n_before": 10, "n_after": 100}, {"threshold": 1.0, "m_before": 8, "m_after": 90}]
    for recall, words in ((0.8, "as many pairs match before the event"), (0.85, "more positives are estimated")):
        result = estimated(some, recall_reference=fixed | {"recall": recall})
        assert any(words in text for text in result.warnings)
        assert result.row("estimates", threshold=1.0)["precision"] is None


def test_a_range_of_recalls_has_the_estimates_of_its_middle_and_the_limits_of_both_ends() -> None:
    runs = {
        str(recall): estimated(PAIRS, recall_reference={"recall": recall})["estimates"]
        for recall in (0.8, 0.9, 1.0, (0.8, 1.0))
    }
    ranged, middle = runs["(0.8, 1.0)"], runs["0.9"]
    names = ["fp", "tp", "precision", "recall", "recall_raw", "f1", "undefined"]
    assert ranged.select(names).equals(middle.select(names))
    for name in ("precision", "recall", "f1"):
        for side, widest in (("lower", pl.min_horizontal), ("upper", pl.max_horizontal)):
            ends = pl.DataFrame({end: runs[end][f"{name}_{side}"] for end in ("0.8", "1.0")})
            expected = ends.select(pl.when(pl.all_horizontal(pl.all().is_not_null())).then(widest("0.8", "1.0")))
            assert ranged[f"{name}_{side}"].to_list() == expected.to_series().to_list()


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


def test_costs_are_those_of_corrected_counts_and_given_thresholds_are_not_marked() -> None:
    points: Rows = [{"cost": {"fp": 1, "fn": 3}}, {"threshold": 2}, {"max_alerts": 24}]
    rows = {row["criterion"]: row for row in estimated(PAIRS, operating_points=points)["operating_points"].to_dicts()}
    # 200/9 positives; at 2: fp 10/9, tp 188/9, so that 12/9 are missed; at 1: fp 25/9 and none
    assert rows["cost=fp:1,fn:3"]["threshold"] == 1.0
    assert rows["cost=fp:1,fn:3"]["cost"] == pytest.approx(25 / 9)
    assert rows["threshold=2"]["cost"] is rows["max_alerts=24"]["cost"] is rows["recall_reference"]["cost"] is None
    assert rows["threshold=2"]["threshold"] == rows["max_alerts=24"]["threshold"] == 2.0
    without = estimated(PAIRS, operating_points=[{"threshold": 2}])["operating_points"]
    assert "cost" not in without.columns
    added = estimated(PAIRS, thresholds=[1, 3], operating_points=[{"threshold": 2}])["estimates"]
    assert added["threshold"].to_list() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"cost": {"fp": 1, "fn": 3, "tn": -1}}, "true negatives are not estimated"),
        ({"cost": {"fp": 1, "fn": 3}, "confidence": 0.9}, "confidence goes with"),
    ],
)
def test_costs_that_cannot_be_estimated_are_refused(point: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        estimated(PAIRS, operating_points=[point])
