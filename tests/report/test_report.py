"""`thresher report` and `thresher plot` on a published run with hostile names."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import vl_convert
from cli.calls import call

from pipeline.base.schemas import values_text
from pipeline.report import page as page_module
from pipeline.report.charts import Group, Panels, panels
from pipeline.report.drawing import drawing_script, multiples, stage_content
from pipeline.report.page import page_data, report
from pipeline.report.pictures import chosen_group
from pipeline.report.published import kept_run, latest_run, named_runs
from pipeline.report.summary import headline, limits_text, value_text
from pipeline.report.text import element, escaped, inert_json
from pipeline.stages.figures import Axis, Figure, KeyNumber, Series
from report.conftest import COLUMN, publish

if TYPE_CHECKING:
    from report.conftest import Published

MEBIBYTE = 2**20
BEGINNINGS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


def data_of(html: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    data: dict[str, object] = json.loads(match[1])
    return data


@pytest.mark.wide
def test_the_report_is_beside_the_catalog_has_the_same_bytes_again_and_verify_has_nothing_against_it(
    published: Published,
) -> None:
    before = published.report.read_bytes()
    called = call("report", published.results)
    assert (called.code, called.out) == (0, f"{published.results / 'report.html'}\n")
    assert published.report.read_bytes() == before
    assert call("verify", published.results).code == 0
    assert [path.name for path in published.results.glob("*.html*")] == ["report.html"]


def test_the_page_says_what_was_measured_and_how(published: Published) -> None:
    html = published.report.read_text(encoding="utf-8")
    run = latest_run(published.results)
    for text in (
        run.run_id,
        "How this was measured",
        "2,000 read = 2,000 used + 0 left out",
        "<code>boundary</code>",
        "History",
    ):
        assert text in html
    query = re.search(r"thresher query [^<]*", html)
    assert query is not None
    words = shlex.split(query[0].replace("&#x27;", "'"))
    answer = call(*words[1:], "--format", "json")
    assert answer.code == 0
    assert len(json.loads(answer.out)) > 0


def test_all_data_lie_in_a_script_that_they_cannot_end(published: Published) -> None:
    html = published.report.read_text(encoding="utf-8")
    data = data_of(html)
    assert html.count("</script>") == 3
    labels = [group["label"] for group in data["stages"][0]["groups"]]  # type: ignore[index]
    assert f"{COLUMN} </script><img src=x onerror=window.harm=1>" in labels
    assert f"{COLUMN} \\u001b[31mred" in labels


def panels_of(curves: dict[str, list[tuple[float, float | None]]]) -> Panels:
    rows = [(group, x, value) for group, points in curves.items() for x, value in points]
    frame = pl.DataFrame(rows, schema=["by:g", "x", "value"], orient="row").with_columns(grouping=pl.lit("g"))
    axes = (Axis("x", "Threshold"), Axis("", "Share", "percent", includes=(0.0, 1.0)))
    return panels(Figure("f", "Title", "Caption.", frame, *axes, series=(Series("value", "Recall", "recall"),)))


def multiples_of(drawn: Panels) -> str | None:
    content: Any = SimpleNamespace(figures=(drawn,), groups=tuple(drawn.spans))
    return multiples(content)


def test_small_multiples_show_the_first_groups_on_the_same_axes() -> None:
    curves: dict[str, list[tuple[float, float | None]]] = {f"<g{n}>": [(0.0, 1.0), (1.0, n / 20)] for n in range(14)}
    curves["<g1>"] = [(0.0, 0.5), (1.0, None), (2.0, 0.5), (4.0, 0.0)]
    html = multiples_of(panels_of(curves))
    assert html is not None
    assert html.count('viewBox="-3 -3 206 116"') == 12
    assert re.findall(r'data-group="(\d+)">&lt;g(\d+)&gt;<', html) == [(str(n), str(n)) for n in range(12)]
    assert "12 groups with most data" in html
    assert "Threshold, 0 to 4; Share, 0.0% to 100.0%" in html
    assert 'd="M0.0,55.0M100.0,55.0L200.0,110.0"' in html  # a gap where the value is not defined
    assert 'd="M0.0,0.0L50.0,104.5"' not in html  # <g1> has other points now
    assert 'd="M0.0,0.0L50.0,99.0"' in html  # <g2>: 1 at 0 and 0.1 at a quarter of the axis


def test_the_script_of_charts_is_made_once_and_again_where_its_copy_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def bundle(code: str) -> str:
        calls.append(code)
        return "window.vegaEmbed = 1; // é"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert drawing_script() == drawing_script() == "window.vegaEmbed = 1; // é"
    assert len(calls) == 1
    (copy,) = (tmp_path / "caches" / "thresher").iterdir()
    copy.write_bytes(copy.read_bytes() + b"alert(1)")
    assert drawing_script() == "window.vegaEmbed = 1; // é"
    assert len(calls) == 2
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert drawing_script() == "window.vegaEmbed = 1; // é"
    assert len(calls) == 3


def test_one_group_has_no_small_multiples() -> None:
    assert multiples_of(panels_of({"a": [(0.0, 1.0), (1.0, 0.0)]})) is None


def test_a_page_of_very_many_rows_keeps_fewer_of_each_group(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = stage_content(latest_run(published.results).stages[0], "stage-0")
    usual_size = len(str(page_data([content])["lists"]))
    monkeypatch.setattr(page_module, "MOST_VALUES", 300)
    monkeypatch.setattr(page_module, "FEWEST_ROWS", 5)
    assert len(str(page_data([content])["lists"])) < 0.6 * usual_size


@pytest.mark.wide
def test_a_report_elsewhere_of_an_earlier_run_whose_history_ends_with_it(published: Published, tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    called = call("report", published.results, "--run", "1", "--output", path)
    assert called.code == 0
    earlier, later = path.read_text(encoding="utf-8"), published.report.read_text(encoding="utf-8")
    assert kept_run(published.results, "1").run_id in earlier
    assert path.stat().st_size < 2 * MEBIBYTE
    for text in ('id="history"', "config or code changed"):
        assert text not in earlier
        assert text in later


def test_a_number_is_a_generation_and_the_start_of_an_id_only_if_it_is_none() -> None:
    names = ("00000001-7c4602e08434", "00000002-1fe55907cda3", "00000003-1a0000000000")
    runs: list[Any] = [SimpleNamespace(folder=Path(name), run_id=name.partition("-")[2]) for name in names]
    assert named_runs(runs, "1") == runs[:1]
    assert named_runs(runs, "7") == []
    assert named_runs(runs, "1f") == named_runs(runs, "00000002-1fe55907cda3") == named_runs(runs, "02") == runs[1:2]
    assert named_runs(runs, "1") != named_runs(runs, "1a") == runs[2:]
    assert named_runs(runs, "") == named_runs(runs, "9") == []


@pytest.mark.wide
def test_a_report_that_cannot_be_written_says_why(published: Published, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, code in ((tmp_path, 2), (tmp_path / "file" / "page.html", 73)):
        called = call("report", published.results, "--output", path)
        assert called.code == code
        assert "--output" in called.err


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("form", BEGINNINGS)
def test_figures_are_files_that_say_what_they_show(published: Published, tmp_path: Path, form: str) -> None:
    called = call("plot", published.results, "by_threshold", "--to", tmp_path, "--format", form)
    assert called.code == 0, called.err
    path = tmp_path / f"threshold_sweep.by_threshold.{form}"
    assert called.out == f"{path}\n"
    content = path.read_bytes()
    assert content.startswith(BEGINNINGS[form])
    if form == "svg":
        text = content.decode()
        assert "var(" not in text
        for words in ("Precision, recall", "95% intervals", latest_run(published.results).run_id, "thresher 0."):
            assert words in text


def test_a_figure_of_a_group_with_a_hostile_name(published: Published, tmp_path: Path) -> None:
    group = f"{COLUMN}=</script><img src=x onerror=window.harm=1>"
    called = call("plot", published.results, "precision_recall", "--to", tmp_path, "--group", group)
    assert called.code == 0, called.err
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"[\w.,=+-]+", path.name)
    assert "&lt;/script&gt;&lt;img" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("value", "shown"), [("null", "null"), ("", '""'), ("a\nb", "a\\u000ab"), ("all", '"all"')])
def test_a_figure_of_a_group_is_asked_for_by_its_value_and_shows_its_name(value: str, shown: str) -> None:
    groups = [Group("all", "all"), *(Group("kind", values_text([name])) for name in (None, "null", "", "a\nb", "all"))]
    figure: Any = SimpleNamespace(spans=dict.fromkeys(groups, (0, 0)))
    assert chosen_group(figure, {"kind": value}).short == shown


def test_a_folder_that_cannot_be_made_is_blamed_on_the_option(published: Published, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    called = call("plot", published.results, "precision_recall", "--to", tmp_path / "file" / "figures")
    assert called.code == 73
    assert "Choose another folder with --to" in called.err


def test_figures_are_listed(published: Published) -> None:
    called = call("plot", published.results, "--list", "--stage", "threshold_sweep")
    assert "threshold_sweep.by_threshold" in called.out.splitlines()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["by_treshold"], "Did you mean `by_threshold`?"),
        (["--stage", "nope"], "no stage 'nope'"),
        (["--group", "model=b"], "no figure has the group model=b"),
        (["--group", "b"], "write NAME=VALUE"),
        (["--format", "gif"], "there is no such format"),
    ],
)
def test_what_plot_does_not_know_it_says_in_a_sentence(
    published: Published, tmp_path: Path, words: list[str], says: str
) -> None:
    called = call("plot", published.results, "--to", tmp_path / "new", *words)
    assert called.code == 2
    assert says in called.err
    assert not (tmp_path / "new").exists()


def test_plot_needs_a_folder(published: Published) -> None:
    called = call("plot", published.results)
    assert called.code == 2
    assert "--to DIR" in called.err


@pytest.mark.wide
def test_a_run_without_a_positive_row_has_a_report(tmp_path: Path) -> None:
    results = publish(tmp_path, seed=1, predictions={"where": "NOT label"}, by=[[]])
    html = report(latest_run(results), results)
    assert "not defined" in html
    assert "before you use these numbers" in html


def number(
    value: float | None, lower: float | None = None, upper: float | None = None, form: str = "percent"
) -> KeyNumber:
    return KeyNumber("all", "all", "Precision", "what it is", value, lower, upper, format=form)  # type: ignore[arg-type]


def test_numbers_have_the_digits_that_their_intervals_bear() -> None:
    wide, narrow = number(0.7561, 0.738, 0.779), number(0.7561, 0.7551, 0.7572)
    assert (headline(wide), limits_text(wide)) == ("76%", "74–78%")
    assert (headline(narrow), limits_text(narrow)) == ("75.6%", "75.5–75.7%")
    difference = number(-0.003313, -0.02699, 0.02037, "number")
    assert (headline(difference), limits_text(difference)) == ("−0.003", "−0.027 to 0.020")
    assert headline(number(None)) == "not defined"
    assert limits_text(number(0.5)) == ""
    assert limits_text(number(-0.1, -0.3, 0.1)) == "−30% to 10%"


def test_values_are_written_as_their_axis_writes_them() -> None:
    assert value_text(0.123456, "number") == "0.1235"
    assert value_text(1234567.0, "integer") == "1,234,567"
    assert value_text(1.5e-7, "number") == "1.5e-07"
    assert value_text(None, "percent") == "not defined"
    assert value_text(0, "time") == "1970-01-01 00:00"


def test_markup_escapes_whatever_it_did_not_make() -> None:
    assert element("td", "<b>", class_='"x"', hidden=False) == '<td class="&quot;x&quot;">&lt;b&gt;</td>'
    assert escaped("a\x1b\u202eb\n") == "a\\u001b\\u202eb\\u000a"
    assert escaped("a\u200bb\u2060") == "a\\u200bb\\u2060"  # beside a group `ab` nobody would see them
    assert inert_json({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'


def test_no_row_at_all_is_a_report_too(tmp_path: Path) -> None:
    results = publish(tmp_path, seed=1, predictions={"where": "false"}, allow_empty=True)
    html = report(latest_run(results), results)
    assert "How this was measured" in html
    assert pl.read_parquet(next(results.rglob("threshold_sweep_curve/*.parquet"))).height >= 0
