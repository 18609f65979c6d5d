"""`thresher show`: the summary of a published run in a pipe, in every format, with names that must not be markup."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cli.calls import call
from rich.cells import cell_len
from runs.inputs.workplace import assert_error

from pipeline.report import summary
from pipeline.report.published import latest_run
from pipeline.report.summary import Cells, Paragraph
from pipeline.runs.stage_results import StageResult
from pipeline.stages.stage import Summary

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("report.two_runs",)


@pytest.fixture(scope="module")
def text(two_runs: Path) -> str:
    called = call("show", two_runs)
    assert (called.code, called.err) == (0, "")
    return called.out


def test_text_in_a_pipe_is_fitted_to_80_columns_without_colour(text: str) -> None:
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert "\x1b" not in text


def test_warnings_come_first_and_once(text: str, two_runs: Path) -> None:
    run = latest_run(two_runs)
    lines = text.splitlines()
    number = len({warning for stage in run.stages for warning in stage.warnings})
    assert lines[2] == f"{number} warnings"
    joined = " ".join(text.split())
    for warning in {warning for stage in run.stages for warning in stage.warnings}:
        assert joined.count(" ".join(warning.split())) == 1


def test_every_stage_has_its_table_sentence_and_curve(text: str, two_runs: Path) -> None:
    joined = " ".join(text.split())
    for stage in latest_run(two_runs).stages:
        shown = stage.result().summary
        assert f"{stage.name}: {stage.n_rows:,} rows in" in joined or f"{stage.name} ({stage.stage.kind}): " in joined
        assert shown.curve_title in joined
        for row in shown.rows:
            assert all(word in joined for cell in row for word in cell.split() if "\x1b" not in word)
    assert "group (source)" in text.replace("\n(", " (") or "(source)" in text


def test_groupings_are_named_and_numbers_stand_flush_right() -> None:
    rows = (("all", "micro", "90.1% (87–93)"), ("x", "macro", "–"), ("1, x", "micro", "-2"))
    stage = StageResult(
        "s", "ranking", Summary(("group", "average", "value"), rows, "Words.", ("all", "a", "b,a")), (), 0.1, 3, {}
    )

    def cells(result: StageResult, most: int | None = None) -> Cells:
        return next(block for block in summary.blocks_of_stage(result, most) if isinstance(block, Cells))

    assert cells(stage).headers == ("grouping", "group", "average", "value")
    assert cells(stage).rows[2] == ("b,a", "1, x", "micro", "-2")
    assert cells(stage).flush_right == (False, False, False, True)
    assert Paragraph("… 1 more group; thresher show prints all") in list(summary.blocks_of_stage(stage, 2))
    one = replace(stage, summary=replace(stage.summary, groupings=("all", "a", "a")))
    assert cells(one).headers == ("group (a)", "average", "value")
    total = replace(stage, summary=replace(stage.summary, groupings=("all",), rows=rows[:1]))
    assert (cells(total).headers, cells(total).flush_right) == (("average", "value"), (False, True))


def test_only_the_stages_that_are_named_are_shown(two_runs: Path) -> None:
    called = call("show", two_runs, "ranking", "--run", "1")
    assert "ranking: " in called.out
    assert "threshold_sweep: " not in called.out
    assert "Run 00000001-" in called.out


@pytest.mark.parametrize("format_", ["text", "markdown", "latex"])
def test_names_of_groups_are_never_markup(two_runs: Path, format_: str) -> None:
    out = call("show", two_runs, "--format", format_).out
    assert not set(out) & {"\x1b", "\r"}
    assert ("<img" in out) == (format_ == "text")
    assert {"text": "\\u001b[31m", "markdown": r"\\u001b\[31m", "latex": r"\textbackslash{}u001b{[}31m"}[format_] in out


@pytest.mark.wide
def test_omitted_tables_are_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runs.inputs.workplace import Workplace

    workplace = Workplace(tmp_path)
    monkeypatch.setattr("pipeline.stages.before_after.planning.MOST_ROWS", 2)
    workplace.publish()
    out = " ".join(call("show", workplace.results).out.split())
    assert 'table before_after_events is not made: event_counts = "auto" makes it while' in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rankin"], "the run has no stage 'rankin'. Did you mean `ranking`?"),
        (["--run", "9"], "no kept run is called '9'"),
        (["--format", "html"], "unknown format 'html'"),
    ],
)
def test_what_is_not_there_is_told(two_runs: Path, words: list[str], message: str) -> None:
    assert_error(call("show", two_runs, *words), 2, message)
