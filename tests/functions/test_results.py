"""What notebooks show of a result: summary, warnings and figures; names of groups are text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import thresher

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.functions.result import Result

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def result() -> Result:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "score": np.round(rng.uniform(size=60), 2),
            "label": rng.uniform(size=60) < 0.4,
            "source": [None, *rng.choice([HOSTILE, "dawn"], 60)[1:]],
            "user": rng.integers(0, 5, 60),
        }
    )
    return thresher.threshold_sweep(predictions=frame, by=["source"], thresholds=[0.25, 0.5, 0.75], cluster="user")


def test_a_notebook_shows_warnings_summary_and_figures(result: Result) -> None:
    html = result._repr_html_()
    assert html.index("warning") < html.index("<table>") < html.index("<svg")
    assert html.count("<svg") == 2
    assert "few_clusters" in html
    assert "<img" not in html
    assert "&lt;/script&gt;" in html


def test_figures_have_names_and_groups(result: Result, tmp_path: Path) -> None:
    assert result.figures[0] == "by_threshold"
    chart = result.plot()
    assert chart._repr_svg_().startswith("<svg")
    assert chart.specification()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert repr(result.plot("precision_recall", source="dawn")).endswith("source dawn")
    assert repr(result.plot("by_threshold", source=None)).endswith("source null")
    for form, magic in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert result.plot().save(tmp_path / "figures" / f"a.{form}").read_bytes().startswith(magic)


def test_what_cannot_be_drawn_is_told(result: Result, tmp_path: Path) -> None:
    with pytest.raises(thresher.ThresherError, match="no figure is called 'curves'"):
        result.plot("curves")
    with pytest.raises(thresher.ThresherError, match="no figure has the group source=dusk"):
        result.plot(source="dusk")
    with pytest.raises(thresher.ThresherError, match=r"does not end in \.svg, \.png, \.pdf"):
        result.plot().save(tmp_path / "a.gif")


def test_a_saved_result_can_be_shown_reported_and_queried(result: Result, tmp_path: Path) -> None:
    run = result.save(tmp_path / "results")
    with thresher.open_results(tmp_path / "results") as connection:
        rows = connection.sql("SELECT count(*) FROM threshold_sweep_curve").fetchall()
    assert rows == [(result.curve.height,)]
    assert run.stages[0].summary == result.summary
