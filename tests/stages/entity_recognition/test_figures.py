"""Figures of entity_recognition from a few rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deriving import figures_of, result_tables, stage_of

if TYPE_CHECKING:
    from deriving import Rows

KIND = "entity_recognition"


def score(average: str, threshold: float | None, f1: float | None, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"average": average, "threshold": threshold, "f1": f1, "precision": f1, "recall": f1, "tp": 3, **values}


SCORES: Rows = [
    score("macro", 0.1, 0.9),
    score("macro", 0.5, 0.2),
    score("micro", 0.1, 0.3),
    score("micro", 0.5, 0.6, f1_lower=0.5, f1_upper=0.7, interval_quality="good"),
]


def test_curves_are_those_of_all_mentions_together() -> None:
    points = [{"criterion": "max_f1", "threshold": 0.5, "precision": 0.6, "recall": 0.6, "f1": 0.6}]
    figures = figures_of(KIND, {"scores": SCORES, "operating_points": points})
    assert figures["by_threshold"].frame.select("threshold", "f1").rows() == [(0.1, 0.3), (0.5, 0.6)]
    assert figures["by_threshold"].chosen is not None
    assert "micro average" in figures["by_threshold"].caption


def test_without_micro_the_curve_of_another_average_has_no_operating_point() -> None:
    points = [{"criterion": "max_f1", "threshold": 0.5, "precision": 0.6, "recall": 0.6, "f1": 0.6}]
    figures = figures_of(KIND, {"scores": SCORES[:2], "operating_points": points})
    assert figures["by_threshold"].chosen is None
    assert "macro average" in figures["by_threshold"].caption


def test_without_scores_there_is_no_curve() -> None:
    figures = figures_of(KIND, {"scores": [score("micro", None, 0.6)]})
    assert list(figures) == ["averages"]


def test_averages_stand_at_their_best_thresholds() -> None:
    figure = figures_of(KIND, {"scores": SCORES})["averages"]
    assert figure.frame.select("average", "f1", "interval_quality").rows() == [
        ("macro", 0.9, None),
        ("micro", 0.6, "chosen_on_same_data"),
    ]


def test_documents_without_any_mention_have_no_f1() -> None:
    documents = [
        {"doc_id": 1, "tp": 1, "fp": 1, "fn": 0},
        {"doc_id": 2, "tp": 0, "fp": 0, "fn": 0},
        {"doc_id": 3, "tp": 2, "fp": 0, "fn": 0},
    ]
    frame = figures_of(KIND, {"scores": SCORES, "documents": documents})["f1_of_documents"].frame
    assert [round(middle, 3) for middle, number in frame.select("bin", "number").rows() if number] == [0.675, 0.975]


def test_key_numbers_are_micro_averages_at_their_best_threshold() -> None:
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"scores": SCORES}))
    assert [(number.name, number.value, number.quality) for number in numbers] == [
        ("Precision", 0.6, ""),
        ("Recall", 0.6, ""),
        ("F1", 0.6, "chosen_on_same_data"),
    ]
