"""Gates in a config: what is refused, with the gate, the key and the nearest name, before any data is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pipeline.base.errors import ConfigError
from pipeline.runs.config import Config, parse_config

SWEEP = {
    "kind": "threshold_sweep",
    "name": "clf",
    "predictions": "scores.parquet",
    "by": ["source"],
    "thresholds": {"start": 0.2, "stop": 1, "count": 9},
    "operating_points": [{"min_precision": 0.9}, {"beta": 1}],
}
OTHER = SWEEP | {"name": "challenger"}
PLACES = {"kind": "geocoding", "name": "places", "gold": "gold.parquet", "predicted": "predicted.parquet"}


def config_of(*gates: dict[str, Any], stages: tuple[dict[str, Any], ...] = (SWEEP, OTHER, PLACES)) -> Config:
    return parse_config({"stages": list(stages), "gates": list(gates)}, base=Path("/nowhere"), origin="c.toml")


def gate(**keys: object) -> dict[str, Any]:
    return {"stage": "clf", "metric": "precision", "min": 0.8} | keys


REFUSED: list[tuple[dict[str, Any], str]] = [
    (gate(treshold=0.5), "unknown key `treshold`. Did you mean `threshold`?"),
    (gate(stage="clv"), "stage: no stage is called 'clv'. Did you mean `clf`?"),
    (gate(stage=""), "`stage` is missing: name one of clf, challenger, places"),
    (gate(metric="precison"), "metric: 'clf' has no 'precison'. Did you mean `precision`?"),
    (gate(metric="brier"), "metric: brier of 'clf' has no interval, without which no gate can judge it"),
    (gate(metric=None), "`metric` is missing: a gate that has no other limit than min_rows can do without"),
    (gate(group={"sorce": "noon"}), "group: stage 'clf' has no results by sorce. Did you mean `source`?"),
    (gate(by=["country"]), "by: stage 'clf' has no results by country: it has the total; source"),
    (gate(by=[]), 'by names the columns of one grouping, each once, for example by = ["source"]'),
    (gate(by=["source"], group={"source": "noon"}), "give group or by: `by` judges all groups of these columns"),
    (gate(criterion="max_f2"), "criterion: 'clf' has no 'max_f2'. Did you mean `max_f1`?"),
    (
        gate(criterion="min_precision=0.8"),
        "criterion: 'clf' has no 'min_precision=0.8'. Did you mean `min_precision=0.9`?",
    ),
    (gate(threshold=0.1), "threshold: 0.1 lies below all thresholds of 'clf', from 0.2 on"),
    (gate(threshold=0.5, criterion="max_f1"), "give threshold or criterion: a criterion has a threshold of its own"),
    (gate(stage="places", threshold=0.5), "threshold: precision of 'places' has no intervals by threshold"),
    (gate(min=None), "a gate has a limit: give one of min, max, min_rows, max_drop, max_rise, max_change"),
    (gate(max=0.5), "min (0.8) is greater than max (0.5)"),
    (gate(min_rows=0), "min_rows: 0 must be at least 1"),
    (gate(max_drop=-0.1, baseline="previous"), "max_drop: -0.1 must be at least 0"),
    (gate(max_drop=0.1), 'max_drop needs a baseline, for example baseline = "previous"'),
    (gate(baseline="previous"), "baseline goes with max_drop, max_rise, max_change"),
    (gate(max_drop=0.1, baseline="previus"), "baseline: 'previus' is no stage. Did you mean `previous`?"),
    (gate(max_drop=0.1, baseline="xyz"), "'xyz' is no stage, and no run: runs have ids of 12 hexadecimal digits"),
    (gate(max_drop=0.1, baseline="clf"), "baseline: a stage does not differ from itself"),
    (gate(metric="roc_auc", max_drop=0.1, baseline="places"), "baseline places: metric: 'places' has no 'roc_auc'"),
    (gate(confidence=0.95, alarms_per_year=2), "give confidence or alarms_per_year: each follows from the other"),
    (gate(confidence=1.0), "confidence: 1.0 must be less than 1"),
    (gate(on_fail="stop"), 'on_fail: "stop" is not allowed: write "fail" or "warn"'),
    (gate(name="No Name"), "'No Name' is no name"),
]


@pytest.mark.parametrize(("table", "words"), REFUSED, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_what_cannot_be_judged_is_refused(table: dict[str, Any], words: str) -> None:
    table = {key: value for key, value in table.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        config_of(gate(name="good"), table)
    assert str(caught.value).startswith("c.toml: [[gates]] 2: ")
    assert words in str(caught.value)


def test_faults_of_all_gates_are_told_together() -> None:
    with pytest.raises(ConfigError, match=r"2 faults\n.*\[\[gates\]\] 1: .*\n.*\[\[gates\]\] 2: "):
        config_of(gate(metric="a"), gate(metric="b"))


def test_a_stage_without_intervals_has_no_gates_but_on_rows() -> None:
    bare = SWEEP | {"uncertainty": "none"}
    assert config_of({"min_rows": 5}, stages=(bare,)).gates[0].stage == "clf"
    with pytest.raises(
        ConfigError, match='has uncertainty = "none", and no gate can judge a number without an interval'
    ):
        config_of(gate(), stages=(bare,))


def test_what_is_not_said_has_its_default() -> None:
    gates = config_of(gate(), gate(), gate(name="mine", alarms_per_year=3.65), stages=(SWEEP,)).gates
    assert [each.name for each in gates] == ["clf.precision", "clf.precision-2", "mine"]
    assert [each.level for each in gates] == pytest.approx([0.95, 0.95, 0.99])
    assert gates[0].on_fail == "fail"


def test_two_gates_do_not_share_a_name() -> None:
    with pytest.raises(ConfigError, match="name: an earlier gate is called 'mine'"):
        config_of(gate(name="mine"), gate(name="mine"))


def test_gates_of_stages_that_are_left_out_are_judged_on_their_last_results() -> None:
    gates = (gate(name="a"), gate(name="b", stage="challenger"), gate(name="c", max_drop=0, baseline="challenger"))
    assert [each.name for each in config_of(*gates).only(["clf"]).gates] == ["a", "b", "c"]


def test_files_of_gates_are_relative_to_the_config() -> None:
    document = {"stages": [SWEEP], "gates_json": "ci/gates.json", "gates_junit": "/elsewhere/gates.xml"}
    files = parse_config(document, base=Path("/nowhere")).gate_files
    assert {file.key: file.path for file in files} == {
        "gates_json": Path("/nowhere/ci/gates.json"),
        "gates_junit": Path("/elsewhere/gates.xml"),
    }


def test_limits_are_finite() -> None:
    values: tuple[object, ...] = (math.nan, math.inf, [])
    for value in values:
        with pytest.raises(ConfigError, match=r"\[\[gates\]\] 1: min: "):
            config_of(gate(min=value))
