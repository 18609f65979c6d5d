"""What a night is compared with: data of another day in the same file, numbers of the same meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import thresher

if TYPE_CHECKING:
    from pathlib import Path


def write_days(path: Path, shares: dict[str, float]) -> Path:
    """Write 400 rows a day, of which a share is ranked right."""
    days = [
        {
            "day": day,
            "score": (number + (label if number < 200 * share else 1 - label) * 200) / 400,
            "label": bool(label),
        }
        for day, share in shares.items()
        for label in (0, 1)
        for number in range(200)
    ]
    pl.DataFrame(days).write_parquet(path)
    return path


def night(path: Path, results: Path, gate: dict[str, Any], **keys: object) -> dict[str, Any]:
    stage = {"kind": "threshold_sweep", "predictions": str(path), "outcomes": False, "units": False} | keys
    return {"output": str(results), "stages": [stage], "gates": [gate]}


def test_days_of_one_file_are_other_data_where_its_condition_names_the_day(tmp_path: Path) -> None:
    path = write_days(tmp_path / "all.parquet", {"2026-11-01": 0.9, "2026-11-02": 0.91, "2026-11-03": 0.4})
    predictions = {"path": str(path), "where": "day = '${ds}'"}
    gate = {"metric": "roc_auc", "max_drop": 0.01, "baseline": "previous"}
    config = night(path, tmp_path / "results", gate, predictions=predictions)
    verdicts = [thresher.run(config, vars={"ds": f"2026-11-0{day}"}).gates[0] for day in (1, 2, 3)]
    assert [verdict["outcome"] for verdict in verdicts] == ["undecided", "passed", "failed"]
    config["gates"][0]["max_drop"] = 0.02
    (again,) = thresher.run(config, vars={"ds": "2026-11-03"}).gates
    assert (again["outcome"], again["baseline_run"]) == ("failed", verdicts[2]["baseline_run"])


@pytest.mark.parametrize(("boundary", "outcome", "value"), [(">=", "failed", 0.5), (">", "failed", 0.5)])
def test_between_two_scores_a_gate_judges_what_is_retrieved_there(
    tmp_path: Path, boundary: str, outcome: str, value: float
) -> None:
    scores = [0.2] * 100 + [0.45] * 400 + [0.9] * 200
    labels = [False] * 100 + [True] * 200 + [False] * 200 + [True] * 200
    pl.DataFrame({"score": scores, "label": labels}).write_parquet(tmp_path / "scores.parquet")
    gate = {"metric": "recall", "threshold": 0.5, "min": 0.9}
    points = {"boundary": boundary, "operating_points": [{"threshold": 0.5}]}
    config = night(tmp_path / "scores.parquet", tmp_path / "results", gate, boundary=boundary)
    asked = {"metric": "recall", "criterion": "threshold=0.5", "min": 0.9, "name": "point"}
    (of_curve,) = thresher.run(config).gates
    (of_point,) = thresher.run(night(tmp_path / "scores.parquet", tmp_path / "points", asked, **points)).gates
    assert (of_curve["outcome"], of_curve["value"]) == (of_point["outcome"], of_point["value"]) == (outcome, value)


@pytest.mark.parametrize("limit", [{"min": 0.5}, {"max_drop": 0.1, "baseline": "previous"}, {"min_rows": 1}])
def test_a_gate_fails_where_no_score_reaches_its_threshold(tmp_path: Path, limit: dict[str, Any]) -> None:
    results, path = tmp_path / "results", tmp_path / "scores.parquet"
    for top in (0.9, 0.4):
        scores = [top * number / 100 for number in range(101)]
        pl.DataFrame({"score": scores, "label": [number > 50 for number in range(101)]}).write_parquet(path)
        run = thresher.run(night(path, results, {"metric": "recall", "threshold": 0.45} | limit))
    assert (run.exit_code, run.gates[0]["outcome"], run.gates[0]["value"]) == (3, "failed", None)
    assert run.gates[0]["sentence"].endswith("fails: its curve has no threshold at or above 0.45")


def test_another_operating_point_is_not_held_against_that_of_the_night_before(tmp_path: Path) -> None:
    gate = {"metric": "recall", "max_drop": 0.02, "baseline": "previous"}
    results = tmp_path / "results"
    path = write_days(tmp_path / "first.parquet", {"a": 0.9})
    thresher.run(night(path, results, gate))
    path = write_days(tmp_path / "second.parquet", {"b": 0.85})
    (verdict,) = thresher.run(night(path, results, gate, operating_points=[{"min_recall": 0.8}])).gates
    assert (verdict["outcome"], verdict["baseline_value"]) == ("undecided", None)
    assert verdict["sentence"].endswith("it is not defined in run 1 (there is none at min_recall=0.8)")
