"""What notebooks show of a result: summary, warnings and figures; names of groups are text."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pytest

import thresher
from pipeline.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.api.functions import Result

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


@pytest.mark.wide
def test_a_notebook_shows_warnings_summary_and_figures(result: Result) -> None:
    html = result._repr_html_()
    assert html.index("warning") < html.index("<table>") < html.index("<svg")
    assert html.count("<svg") == 3  # with the small curve of the summary
    assert html.count('<svg role="img" aria-label="') == 2
    assert "lowest" in html
    assert "few_clusters" in html
    assert "<img" not in html
    assert "&lt;/script&gt;" in html


def test_what_was_not_made_is_said_as_python_says_it() -> None:
    made = thresher.threshold_sweep(predictions=pl.DataFrame({"score": [0.1, 0.9] * 9, "label": [0, 1] * 9}))
    assert 'predictions={"path": …, "columns": {"id": "item_id"}}' in made.omitted["threshold_sweep_units"]
    assert "bands=True makes it" in made.omitted["threshold_sweep_bands"]
    assert "columns = {" not in made._repr_html_()


@pytest.mark.wide
def test_figures_have_names_and_groups(result: Result, tmp_path: Path) -> None:
    assert result.figures[0] == "by_threshold"
    chart = result.plot()
    assert chart._repr_svg_().startswith("<svg")
    assert chart.specification()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert repr(result.plot("precision_recall", source="dawn")).endswith("source dawn")
    assert repr(result.plot("by_threshold", source=None)).endswith("source null")
    for form, magic in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert result.plot().save(tmp_path / "figures" / f"a.{form}").read_bytes().startswith(magic)


@pytest.mark.wide
def test_null_and_the_text_null_are_two_groups() -> None:
    """`explain` gave the numbers of the text for None, and `plot` the picture of NULL for the text."""
    frame = pl.DataFrame(
        {
            "score": [(row * 7 % 30) / 30 for row in range(90)],
            "label": [row % 3 == 0 if row < 60 else row % 5 > 1 for row in range(90)],
            "source": [None] * 30 + ["null"] * 30 + [""] * 30,
        }
    )
    result = thresher.threshold_sweep(predictions=frame, by=[["source"]], thresholds=[0.25, 0.5])
    for value, shown in ((None, "null"), ("null", '"null"'), ("", '""')):
        same = pl.col("source").eq_missing(pl.lit(value))
        expected = result.curve.filter(same, pl.col("threshold") == 0.5).row(0, named=True)
        explained = str(result.explain("precision", 0.5, source=value))
        assert f"precision = {expected['precision']:.6g} (" in explained
        assert repr(result.plot("by_threshold", source=value)).endswith(f"source {shown}")
        assert f"precision = {expected['precision']:.3g} (" in str(
            result.plan("precision", 0.5, width=0.3, source=value)
        )
    alone = thresher.threshold_sweep(predictions=frame[30:], by=[["source"]], thresholds=[0.5])
    assert str(alone.explain("precision", source="null")) == str(alone.explain("precision", source='"null"'))
    for only, absent in (("null", None), (None, "null")):
        values = pl.Series([only] * 30 + ["x"] * 30, dtype=pl.String)
        single = thresher.threshold_sweep(
            predictions=frame[:60].with_columns(source=values), by=[["source"]], thresholds=[0.5]
        )
        for method, metric, keys in (
            ("explain", "precision", {}),
            ("plan", "precision", {"width": 0.3}),
            ("plot", "by_threshold", {}),
        ):
            ask: Callable[..., object] = getattr(single, method)
            ask(metric, **keys, source=only)
            with pytest.raises(UsageError, match=r"has no group source|no figure has the group"):
                ask(metric, **keys, source=absent)


@pytest.mark.wide
def test_a_group_that_is_called_all_is_not_the_total() -> None:
    frame = pl.DataFrame(
        {
            "score": [(row * 7 % 30) / 30 for row in range(60)],
            "label": [row % 3 == 0 for row in range(60)],
            "site": ["all", "b"] * 30,
            "day": ["all", "c", "d"] * 20,
        }
    )
    result = thresher.threshold_sweep(predictions=frame, by=[[], ["site"], ["site", "day"]], thresholds=[0.5])
    asked: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "all groups together"),
        ({"site": "all"}, 'group site = "all"'),
        ({"site": '"all"'}, 'group site = "all"'),
        ({"site": "b"}, "group site = b"),
        ({"site": "all", "day": "all"}, "group site = all, day = all"),
    )
    for group, words in asked:
        explained = str(result.explain("precision", **group)).splitlines()[0]
        planned = str(result.plan("precision", width=0.3, **group)).splitlines()[0]
        assert explained.endswith(f", {words}")
        assert planned.endswith(f", {words}")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda result: result.explain("precision", "high"), "threshold 'high' is no number"),
        (lambda result: result.explain("precision", float("nan")), "threshold nan is no number"),
        (lambda result: result.plan("precision", "high", width=0.1), "threshold 'high' is no number"),
        (lambda result: result.plan("precision", width="wide"), "width 'wide' cannot be"),
        (lambda result: result.plan("precision", width=1.5), "an interval of precision is never 1.5 wide"),
        (lambda result: result.plan("precision", width=0.1, confidence="high"), "confidence 'high' cannot be"),
    ],
    ids=["text", "nan", "text of a plan", "width", "width of a share", "confidence"],
)
def test_what_is_no_number_is_told(result: Result, ask: Callable[[Result], object], words: str) -> None:
    with pytest.raises(thresher.ThresherError, match=words) as caught:
        ask(result)
    assert caught.value.code == 2


def test_what_cannot_be_drawn_is_told(result: Result, tmp_path: Path) -> None:
    with pytest.raises(thresher.ThresherError, match="no figure is called 'curves'"):
        result.plot("curves")
    with pytest.raises(thresher.ThresherError, match="no figure has the group source=dusk"):
        result.plot(source="dusk")
    with pytest.raises(thresher.ThresherError, match=r"does not end in \.svg, \.png, \.pdf"):
        result.plot().save(tmp_path / "a.gif")


@pytest.mark.wide
def test_a_saved_result_can_be_shown_reported_and_queried(result: Result, tmp_path: Path) -> None:
    run = result.save(tmp_path / "results")
    with thresher.open_results(tmp_path / "results") as connection:
        rows = connection.sql("SELECT count(*) FROM threshold_sweep_curve").fetchall()
    assert rows == [(result.curve.height,)]
    assert run.stages[0].summary == result.summary


@pytest.mark.wide
def test_a_number_of_a_file_is_explained_with_its_rows(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.8, 0.3, 0.2], "label": [True, False, True, False], "who": [HOSTILE] * 4})
    frame.write_parquet(tmp_path / "p.parquet")
    result = thresher.threshold_sweep(predictions=tmp_path / "p.parquet", by=["who"], thresholds=[0.5])
    explained = result.explain("recall", 0.6, rows=1, who=HOSTILE)
    assert explained.sections["false_positives"]["score"].to_list() == [0.8]
    assert explained.sections["false_negatives"]["score"].to_list() == [0.3]
    text, html = repr(explained), explained._repr_html_()
    assert "recall = tp / (tp + fn) = 1 / (1 + 1) = 0.5" in text
    assert "0.6 is no threshold of the run: 0.5, the next below, is" in text
    assert "Rows nearest to the threshold (1 of 4)" in text
    assert "run " not in text.splitlines()[-1]
    assert ("<img" in html, "&lt;/script&gt;" in html, "<table>" in html) == (False, True, True)
    assert result.explain(rows=0).sections == {}


@pytest.mark.wide
@pytest.mark.parametrize(
    ("boundary", "held", "note", "beyond"),
    [
        (">=", 0.8, "the next above, which retrieves the same, is", (0.95, "at or above 0.95")),
        (">", 0.3, "the next below, is", (0.1, "at or below 0.1")),
    ],
)
def test_between_two_scores_the_row_is_explained_that_holds_there(
    boundary: Literal[">=", ">"], held: float, note: str, beyond: tuple[float, str]
) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.8, 0.3, 0.2], "label": [True, False, True, False]})
    result = thresher.threshold_sweep(predictions=frame, boundary=boundary)
    explained = result.explain("recall", 0.6)
    assert f"0.6 is no threshold of the run: {held}, {note}" in repr(explained)
    assert "recall = tp / (tp + fn) = 1 / (1 + 1) = 0.5" in repr(explained)
    assert "no threshold of the run" not in repr(result.explain("recall", held))
    with pytest.raises(UsageError, match=f"no threshold is {beyond[1]}"):
        result.explain("recall", beyond[0])


@pytest.mark.wide
def test_a_number_of_a_frame_is_explained_without_rows(result: Result) -> None:
    explained = result.explain(sql=True, source="dawn")
    assert explained.sections == {}
    assert "no rows can be shown: the run read the polars.DataFrame, which was passed in and is not kept" in repr(
        explained
    )
    assert "COUNT_IF" in repr(explained)
    assert "<br>" in explained._repr_html_()
    assert explained.explanation.value == pytest.approx(result.operating_points.filter(source="dawn")["precision"][0])
    with pytest.raises(thresher.ThresherError, match="sorce=x: 'sorce' is no grouping column") as caught:
        result.explain(sorce="x")
    assert "--" not in str(caught.value)


def test_a_table_has_its_short_and_its_full_name_in_brackets(result: Result) -> None:
    assert result["curve"] is result.curve is result["threshold_sweep_curve"]
    with pytest.raises(KeyError, match="threshold_sweep has no table 'curves'; it has curve, "):
        result["curves"]


def test_a_summary_shows_itself_as_a_table_and_a_sentence(result: Result) -> None:
    lines = repr(result.summary).splitlines()
    assert lines[0].split()[:3] == ["group", "rows", "positives"]
    assert lines[1].startswith("all ")
    assert "of every 100" in lines[-1]


@pytest.mark.wide
def test_a_result_that_was_pickled_has_its_tables_and_figures_and_says_what_it_lacks(result: Result) -> None:
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - written here
    assert repr(again) == repr(result)
    assert again.curve.equals(result.curve)
    assert again._repr_html_() == result._repr_html_()
    with pytest.raises(thresher.ThresherError, match="was pickled, and has its tables"):
        again.explain()
