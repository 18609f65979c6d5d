"""Which earlier run a baseline means: by files, by logical date, by id."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.runs.gate_outcomes import History, day_of
from pipeline.storage.layout import Layout, run_name

if TYPE_CHECKING:
    from pathlib import Path

IDS = [f"{number:012x}" for number in range(1, 6)]
STAGES = frozenset({"clf"})


def add_run(layout: Layout, generation: int, rows: int, ds: str | None, stage: str = "clf") -> None:
    run_id = IDS[generation - 1]
    folder = layout.run(generation, run_id)
    folder.mkdir(parents=True)
    record: dict[str, Any] = {"run_id": run_id, "inputs": inputs(rows, stage), **({"ds": ds} if ds else {})}
    content = json.dumps(record)
    (folder / "run.json").write_text(content)
    file = {"path": "run.json", "table": "", "stage": "", "rows": 0, "size": len(content), "sha256": "", "schema": {}}
    manifest = {
        "format_version": 1,
        "run_id": run_id,
        "generation": generation,
        "published_at": f"2026-11-{10 + generation}T03:00:00.000000",
        "fingerprint": "",
        "identity": "",
        "files": [file],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def inputs(rows: int, stage: str = "clf") -> list[dict[str, Any]]:
    return [{"stage": stage, "input": "predictions", "path": "s.parquet", "rows": rows, "footer_sha256": str(rows)}]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Nights of 100, 200, and twice 300 rows, and one of another stage."""
    layout = Layout(tmp_path)
    nights = [(100, None, "clf"), (200, "2026-11-20", "clf"), (300, None, "clf"), (300, None, "clf"), (50, None, "x")]
    for generation, (rows, ds, stage) in enumerate(nights, start=1):
        add_run(layout, generation, rows, ds, stage)
    return layout


def find(layout: Layout, baseline: str, rows: int = 400, day: str = "2026-11-27") -> tuple[str, str]:
    names = [run_name(generation, run_id) for generation, run_id in enumerate(IDS, start=1)]
    run, reason = History(layout, names, inputs(rows), date.fromisoformat(day)).find(baseline, STAGES)
    return ("" if run is None else run.kept.folder.name[-1], "" if run is not None else reason)


def test_the_previous_run_read_other_files_for_the_stage(layout: Layout) -> None:
    assert find(layout, "previous") == ("4", "")
    assert find(layout, "previous", rows=300) == ("2", "")


def test_with_a_logical_date_the_previous_run_is_that_of_the_last_date_before(layout: Layout) -> None:
    names = [run_name(generation, run_id) for generation, run_id in enumerate(IDS, start=1)]
    generations = {}
    for day in ("2026-11-27", "2026-11-20", "2026-11-14", "2026-11-11"):
        run, _ = History(layout, names, inputs(400), date.fromisoformat(day), is_dated=True).find("previous", STAGES)
        generations[day] = None if run is None else run.kept.folder.name[-1]
    assert generations == {"2026-11-27": "2", "2026-11-20": "4", "2026-11-14": "3", "2026-11-11": None}


def test_without_an_earlier_run_there_is_a_reason(tmp_path: Path) -> None:
    history = History(Layout(tmp_path), (), inputs(1), date(2026, 11, 27))
    assert history.find("previous", STAGES) == (None, "there is no earlier run of other data yet")


def test_the_same_weekday_is_seven_days_before_by_logical_date_or_else_by_publication(layout: Layout) -> None:
    assert find(layout, "same_weekday") == ("2", "")
    assert find(layout, "same_weekday", day="2026-11-20") == ("3", "")
    assert find(layout, "same_weekday", day="2026-11-19") == ("", "there is no run of 2026-11-12")


def test_a_run_is_named_by_its_id_or_its_folder(layout: Layout) -> None:
    assert find(layout, IDS[0]) == ("1", "")
    assert find(layout, run_name(3, IDS[2])) == ("3", "")
    assert find(layout, "0123456789ab") == ("", "the run 0123456789ab is not kept")


def test_a_damaged_run_is_none(layout: Layout) -> None:
    (layout.run(4, IDS[3]) / "manifest.json").write_text("{}")
    assert find(layout, "previous") == ("3", "")
    assert find(layout, IDS[3]) == ("", f"the run {run_name(4, IDS[3])} is damaged")


def test_a_broken_date_falls_back_on_the_publication() -> None:
    assert day_of({"ds": "last Friday"}, "2026-11-22T03:00:00") == date(2026, 11, 22)
    assert day_of({"ds": "2026-11-20T00:00:00"}, "2026-11-22T03:00:00") == date(2026, 11, 20)
