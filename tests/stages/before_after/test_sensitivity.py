from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after

if TYPE_CHECKING:
    from pathlib import Path

RULES = ("lowest", "max")
MIN_PRECISIONS = (0.01, 0.05, 0.1, 0.2, 0.3)
KEYS = ["grouping", "source"]
THRESHOLDS = {"start": 0.0, "stop": 1.0, "count": 21}


def archive() -> pl.DataFrame:
    """Every compared pair; half of the matches of source x after the event are true, and hardly any of source y."""
    rng = np.random.default_rng(21)
    rows = 4000
    after = rng.random(rows) < 0.4
    source = rng.choice(["x", "y", "z"], rows)
    share = np.select([source == "x", source == "y"], [0.2, 0.01], 0.0)
    score = np.where(after & (rng.random(rows) < share), rng.beta(5, 2, rows), rng.beta(1.5, 4, rows))
    return pl.DataFrame(
        {
            "event_id": rng.integers(0, 25, rows),
            "score": score.round(2),
            "lag_hours": np.where(after, 1.0, -1.0),
            "source": source,
        }
    )


def tables(folder: Path, **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401 - keys of a config
    run = run_before_after(
        folder, {"pairs": archive()}, thresholds=THRESHOLDS, by=["source"], uncertainty="none", **keys
    )
    names = ("estimates", "operating_points", "sensitivity")
    return {name: read_table(run, f"before_after_{name}") for name in names}


def by_group(frame: pl.DataFrame) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(row["grouping"], row["source"]): row for row in frame.to_dicts()}


@pytest.mark.wide
def test_every_row_is_what_the_stage_finds_with_that_reference(tmp_path: Path) -> None:
    points_wanted = [{"min_precision": 0.6}, {"beta": 1}]
    own = tables(tmp_path / "own", operating_points=points_wanted, recall_reference={"min_precision": 0.3})
    chosen = by_group(own["operating_points"].filter(pl.col("criterion") == "min_precision=0.6"))
    assert own["sensitivity"].height == 4 * len(RULES) * len(MIN_PRECISIONS)
    references = set()
    for rule, leasts in (("lowest", (0.01, 0.3)), ("max", (0.05, 0.2))):
        for least in leasts:
            found = by_group(
                own["sensitivity"].filter(pl.col("rule") == rule, pl.col("min_precision") == least).drop("stage")
            )
            reference = {"rule": rule, "min_precision": least}
            other = tables(tmp_path / f"{rule} {least}", recall_reference=reference)
            points = {name: by_group(part) for (name,), part in other["operating_points"].group_by("criterion")}
            curve = {(row["grouping"], row["source"], row["threshold"]): row for row in other["estimates"].to_dicts()}
            assert set(found) == set(chosen)
            for group, row in found.items():
                threshold = chosen[group]["threshold"]
                at_chosen = curve.get((*group, threshold), {})
                at_reference, best = points["recall_reference"][group], points["max_f1"][group]
                assert row == {
                    "grouping": group[0],
                    "source": group[1],
                    "rule": rule,
                    "min_precision": least,
                    "reference_threshold": at_reference["threshold"],
                    "reference_precision": at_reference["precision"],
                    "reference_tp": at_reference["tp"],
                    "threshold": threshold,
                    "recall": at_chosen.get("recall"),
                    "f1": at_chosen.get("f1"),
                    "best_threshold": best["threshold"],
                    "best_f1": best["f1"],
                }
                references.add((group, row["reference_threshold"]))
    assert len(references) > 4, "the choice of the reference matters in these data"


def overturning(curve: list[dict[str, Any]], threshold: float) -> float | None:
    """Smallest of 400 steps from 1 to 100 at which another threshold is better by more than 0.01."""
    reference = next((row for row in curve if row["is_reference"]), None)
    if reference is None:
        return None

    def f1(row: dict[str, Any], kappa: float) -> float:
        rate = kappa * reference["m_before"] / reference["n_before"]
        tp_reference = reference["m_after"] - rate * row["n_after"]
        if rate >= 1 or tp_reference <= 0:
            return 0.0
        positives = tp_reference / (1 - rate)
        fp = kappa * row["m_before"] / row["n_before"] * (row["n_after"] - positives)
        tp = row["m_after"] - fp
        if tp <= 0:
            return 0.0
        fn = max(positives - tp, 0.0)
        return float(2 * tp / (2 * tp + fp + fn))

    chosen = next(row for row in curve if row["threshold"] == threshold)
    steps = (float(100 ** (step / 399)) for step in range(400))
    return next((kappa for kappa in steps if max(f1(row, kappa) for row in curve) - f1(chosen, kappa) > 0.01), None)


def test_kappas_of_every_operating_point_equal_a_search_step_by_step(tmp_path: Path) -> None:
    own = tables(tmp_path, operating_points=[{"beta": 1}, {"beta": 4}, {"min_precision": 0.99}])
    curves = {
        key: part.sort("threshold").to_dicts() for key, part in own["estimates"].group_by(KEYS, maintain_order=True)
    }
    seen = set()
    for row in own["operating_points"].to_dicts():
        if row["threshold"] is None:
            assert (row["kappa_vanishing"], row["kappa_overturning"]) == (None, None)
            seen.add("not reached")
            continue
        all_false = row["m_before"] * row["n_after"] / row["n_before"]
        vanishing = row["m_after"] / all_false if all_false else None
        assert row["kappa_vanishing"] == (None if vanishing is None else pytest.approx(vanishing, rel=1e-12))
        expected = overturning(curves[row["grouping"], row["source"]], row["threshold"])
        found = row["kappa_overturning"]
        assert found == (None if expected is None else pytest.approx(expected, rel=1e-9)), row["criterion"]
        seen.add("none" if expected is None else "some")
    assert {"some", "not reached"} <= seen
    best = own["operating_points"].filter(pl.col("criterion") == "max_f1", pl.col("grouping") == "all")
    assert best["kappa_overturning"][0] > 1


def test_without_matches_before_the_event_no_true_positive_can_vanish(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1, 2, 3], "score": [0.9, 0.8, 0.1], "lag_hours": [1.0, 2.0, -1.0]})
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5, 0.85])
    row = read_table(run, "before_after_operating_points").row(0, named=True)
    assert (row["threshold"], row["kappa_vanishing"], row["kappa_overturning"]) == (0.5, None, None)
