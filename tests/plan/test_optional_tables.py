"""Tables of units, made while inputs are small after `where`, and tables on request: else absent with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from running import POINTS, read_table, run_stages, stage_config
from stage_examples import EXAMPLES

import pipeline
from pipeline.base.errors import DataError
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

MENTIONS = pl.DataFrame({"doc_id": [1, 1, 2], "start": [0, 10, 0], "end": [4, 14, 4], "day": ["mon", "tue", "tue"]})
PLACES = pl.DataFrame(
    {"mention_id": [1, 2, 3], "latitude": [52.0, 48.0, 1.0], "longitude": [5.0, 2.0, 1.0]}
).with_columns(MENTIONS["day"])
MARKS = pl.DataFrame({"series_id": [1, 1, 2], "position": [10, 50, 20], "day": ["mon", "tue", "tue"]})
PAIRS = pl.DataFrame(
    {"event_id": [1, 1, 2], "score": [0.9, 0.6, 0.8], "lag_hours": [1.0, -1.0, 2.0], "day": ["mon", "tue", "tue"]}
)
EVENTS = pl.DataFrame({"event_id": [1, 2], "n_before": [9, 9], "n_after": [9, 9]})
LIMITS = {
    "entity_recognition": "pipeline.stages.entity_recognition.planning.MOST_ROWS_FOR_OUTCOMES",
    "geocoding": "pipeline.stages.geocoding.planning.MOST_ROWS_FOR_OUTCOMES",
    "change_points": "pipeline.stages.change_points.planning.MOST_ROWS_FOR_SERIES",
    "before_after": "pipeline.stages.before_after.planning.MOST_ROWS",
}
STAGES: dict[str, tuple[str, str, dict[str, pl.DataFrame], dict[str, Any]]] = {
    "entity_recognition": ("entity_recognition_outcomes", "outcomes", {"gold": MENTIONS, "predicted": MENTIONS}, {}),
    "geocoding": ("geocoding_outcomes", "outcomes", {"gold": PLACES, "predicted": PLACES}, {}),
    "change_points": (
        "change_points_series",
        "series_counts",
        {"annotations": MARKS, "predictions": MARKS},
        {"margin": 5},
    ),
    "before_after": (
        "before_after_events",
        "event_counts",
        {"pairs": PAIRS, "events": EVENTS},
        {"thresholds": [0.5]},
    ),
}


def config_of(folder: Path, kind: str, where: str | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    _, _, frames, keys = STAGES[kind]
    inputs = {} if where is None else {name: {"where": where} for name, frame in frames.items() if "day" in frame}
    return stage_config(folder, kind, frames, **keys, **inputs, **more)


@pytest.mark.wide
@pytest.mark.parametrize("kind", STAGES)
def test_a_table_that_is_not_made_is_absent_and_says_why(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS[kind], 2)
    table, key, frames, _ = STAGES[kind]
    published = pipeline.run(config_of(tmp_path, kind))
    rows = sum(frame.height for frame in frames.values() if "day" in frame)
    reason = f'{key} = "auto" makes it while'
    assert any(
        f"table {table} is not made: {reason}" in text and f"{rows}; {key} = true" in text for text in published.notes
    )
    assert not (published.path / table).exists()
    record = json.loads((published.path / "run.json").read_bytes())
    assert record["omitted"][kind][table].startswith(reason)
    assert not any(
        table in file["path"] for file in json.loads((published.path / "manifest.json").read_bytes())["files"]
    )
    called = call("query", str(tmp_path / "results"), f"FROM {table}")
    assert called.code == 2
    assert reason in called.err
    assert call("query", str(tmp_path / "results"), "FROM inputs").err == ""


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", STAGES)
def test_the_limit_is_judged_after_where(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS[kind], 2)
    table = STAGES[kind][0]
    one_day = run_stages(config_of(tmp_path / "mon", kind, where="day = 'mon'"))
    assert not read_table(one_day, table, kind).is_empty()
    assert not any(table in text for text in one_day.warnings)
    whole = run_stages(config_of(tmp_path / "all", kind, where="day IN ('mon', 'tue')"))
    assert not (whole.path / table).exists()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", STAGES)
def test_a_table_that_the_config_asks_for_or_rules_out_needs_no_warning(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS[kind], 2)
    table, key, _, _ = STAGES[kind]
    asked = run_stages(config_of(tmp_path / "True", kind, None, **{key: True}))
    ruled_out = pipeline.run(config_of(tmp_path / "False", kind, None, **{key: False}))
    assert not read_table(asked, table, kind).is_empty()
    assert not (ruled_out.path / table).exists()
    assert not any(table in text for text in (*asked.warnings, *ruled_out.warnings))
    assert (
        f"{key} = false; {key} = true makes it"
        in call("query", str(tmp_path / "False" / "results"), f"FROM {table}").err
    )


@pytest.mark.wide
def test_a_table_that_only_some_stages_made_is_there_with_a_note(tmp_path: Path) -> None:
    table, key, frames, keys = STAGES["change_points"]
    config = stage_config(tmp_path, POINTS, frames, **keys, name="made")
    config["stages"].append(config["stages"][0] | {"name": "left", key: False})
    pipeline.run(config)
    called = call("query", str(tmp_path / "results"), f"FROM {table} SELECT DISTINCT stage", "--format", "csv")
    assert called.out.split() == ["stage", "made"]
    assert f"Stage 'left' did not make the table {table}: {key} = false" in called.err


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("apart", [False, True], ids=["same config", "published"])
def test_compare_names_the_stage_that_did_not_make_the_units(tmp_path: Path, apart: bool) -> None:  # noqa: FBT001
    table, key, frames, keys = STAGES["change_points"]
    config = stage_config(tmp_path, POINTS, frames, **keys, name="left", **{key: False})
    config["stages"].append(config["stages"][0] | {"name": "right"})
    compare = {"kind": "compare", "of": ["left", "right"]}
    if apart:
        pipeline.run(config)
        other = {"output": str(tmp_path / "compared"), "stages": [compare | {"results": str(tmp_path / "results")}]}
    else:
        other = config | {"stages": [*config["stages"], compare]}
    with pytest.raises(DataError, match=f"stage 'left' did not make the table {table}.*\n.*{key} = true makes it"):
        run_stages(other)


EMPTY_IF_UNREQUESTED = {  # those of version 0.1.0, which queries may name whatever a config asks for
    *(f"before_after_{name}" for name in ("lags", "trend", "adjusted", "audit", "audit_sample", "gold")),
    "threshold_sweep_averages",
    "compare_posteriors",
}


@pytest.fixture(scope="module")
def every_stage(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of a small example of every stage, which asks for little beside what it needs."""
    folder = tmp_path_factory.mktemp("every")
    configs = [stage_config(folder / each.kind, each.kind, each.frames, **each.keys) for each in EXAMPLES]
    return pipeline.run(configs[0] | {"stages": [stage for config in configs for stage in config["stages"]]})


@pytest.mark.wide
def test_a_table_of_rows_that_are_there_is_asked_for_or_absent(every_stage: Run) -> None:
    for result in every_stage.stages:
        entry = find_stage(result.kind)
        assert entry is not None
        tables = {table.name for table in entry.load().tables}
        made = {table for table in tables if (every_stage.path / table / f"{result.name}.parquet").exists()}
        assert made == tables - set(result.omitted)
        empty = {table for table in made if read_table(every_stage, table, result.name).is_empty()}
        assert empty <= EMPTY_IF_UNREQUESTED
        assert not any(table in text for table in result.unrequested for text in every_stage.warnings)


@pytest.mark.wide
def test_a_key_that_the_config_sets_makes_no_further_table(tmp_path: Path) -> None:
    (example,) = (each for each in EXAMPLES if each.kind == "threshold_sweep")
    keys = example.keys | {"operating_points": [{"min_recall": 0.5}], "net_benefit": False}
    run = pipeline.run(stage_config(tmp_path, example.kind, example.frames, **keys))
    (result,) = run.stages
    assert result.unrequested["threshold_sweep_allocations"] == ""
    page = run.path.parents[1] / "report.html"
    call("report", str(run.path.parents[1]), "--output", str(page))
    assert "bands, prevalence</" in page.read_text(encoding="utf-8")
    assert result.omitted.keys() >= {"threshold_sweep_allocations", "threshold_sweep_net_benefit"}
    assert "allocations" not in call("show", str(run.path.parents[1])).out


def test_keys_of_tables_that_nobody_asked_for_are_told_in_the_report(every_stage: Run, tmp_path: Path) -> None:
    results, page = every_stage.path.parents[1], tmp_path / "report.html"
    said = call("show", str(results), "threshold_sweep").out
    assert "further tables" not in said
    call("report", str(results), "--output", str(page))
    assert "bands, net_benefit, operating_points, prevalence</" in page.read_text(encoding="utf-8")
    assert "threshold_sweep_net_benefit" not in said
    unrequested = json.loads((every_stage.path / "run.json").read_bytes())["unrequested"]["threshold_sweep"]
    assert unrequested["threshold_sweep_at_prevalence"] == "prevalence"
    queried = call("query", str(results), "FROM threshold_sweep_at_prevalence").err
    assert "nothing asks for it; prevalence = 0.05, for example, does" in queried
    with pytest.raises(AttributeError, match="net_benefit = false; net_benefit = true makes it"):
        _ = every_stage.stages["threshold_sweep"].net_benefit
