"""Blocks as text, Markdown and LaTeX: nothing is cut, nothing is markup that is not meant."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pipeline.report.summary import Cells, Curve, Heading, Items, Paragraph
from pipeline.report.text import (
    draw,
    in_latex,
    in_markdown,
    latex_table,
    latex_text,
    lines_of,
    markdown_table,
    markdown_text,
    plain_text,
)

HOSTILE = [
    "</script><img onerror=x>",
    "a\nb\rc",
    "\x1b]0;owned\x07\u202e",
    "`code` *x* _y_ | $z$ ~~w~~ [l](http://e.x) @user #1",
    r"\input{/etc/passwd} 5 % & { } ^ ~ -- ''",
    'quoted "x", comma',
]
NUMBERS = ("90.1% (87–93)", "0.1 (0 to 0.2)")


def table(*cells: str, columns: int = 6) -> Cells:
    rows = tuple((cell, *(NUMBERS[number % 2] for number in range(columns - 1))) for cell in cells)
    headers = ("group", *(f"measure of number {number}" for number in range(columns - 1)))
    return Cells(headers, rows, (False, *(True,) * (columns - 1)), "group")


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_a_table_is_fitted_and_nothing_is_cut(width: int) -> None:
    lines = list(lines_of(table("north", "south west"), width))
    assert max(map(cell_len, lines)) <= width
    words = " ".join(lines).split()
    assert words.count("90.1%") == words.count("(87–93)") == 6
    assert {"north", "south", "west"} <= set(words)
    assert any(line.startswith("── group 2") for line in lines) == (width == 30)


WORD = st.text("ab–1中", min_size=1, max_size=6)
CELL = st.lists(WORD, min_size=1, max_size=4).map(" ".join)


@given(
    rows=st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=4)),
    width=st.integers(20, 90),
)
@settings(max_examples=40)
def test_any_table_fits_and_keeps_its_words(rows: list[list[str]], width: int) -> None:
    columns = len(rows[0])
    headers = tuple(f"h{number}" for number in range(columns))
    cells = Cells(headers, tuple(map(tuple, rows)), (False,) * columns)
    lines = list(lines_of(cells, width))
    assert max(map(cell_len, lines)) <= width
    shown = Counter("\n".join(lines).split())
    wanted = Counter(word for row in rows for cell in row for word in cell.split())
    assert all(shown[word] >= number for word, number in wanted.items())


def test_what_fits_stays_in_one_line() -> None:
    lines = list(lines_of(Cells(("a", "b"), (("x y", "1"), ("z", "23")), (False, True)), 80))
    assert lines == ["a     b", "───  ──", "x y   1", "z    23"]


def test_cells_are_wrapped_only_where_they_must_be() -> None:
    cells = Cells(("group", "long header", "value"), (("x", "1", "10 (9–11)"),), (False, True, True))
    assert list(lines_of(cells, 24)) == [
        "group    long      value",
        "       header",
        "─────  ──────  ─────────",
        "x           1  10 (9–11)",
    ]
    assert list(lines_of(cells, 21))[-2:] == ["x           1      10", "               (9–11)"]


def test_headers_are_wrapped_before_cells_and_gaps_narrowed_before_records() -> None:
    cells = Cells(("v", "a bb"), (("10 (9–11)", "1"),), (False, True))
    assert list(lines_of(cells, 13))[-1] == "10 (9–11)   1"
    assert list(lines_of(cells, 10))[-2:] == ["10       1", "(9–11)"]
    assert list(lines_of(cells, 9))[-2:] == ["10      1", "(9–11)"]
    assert next(lines_of(cells, 8)) == "── row 1 ──"


def test_unbroken_blanks_are_broken_before_a_table_becomes_records() -> None:
    cells = Cells(("group", "value"), (("north", "0.5 (0.25\u00a0to\u00a00.75)"),), (False, True))
    assert list(lines_of(cells, 21))[-2:] == ["north             0.5", "       (0.25\u00a0to\u00a00.75)"]
    assert list(lines_of(cells, 17))[-2:] == ["north   0.5 (0.25", "         to 0.75)"]


def test_a_word_wider_than_the_page_is_not_broken() -> None:
    path = "/very/long/" + "x" * 60
    assert list(lines_of(Paragraph(f"see {path} there"), 20)) == ["see", path, "there"]
    assert path in "\n".join(lines_of(table(path), 20))


def test_wide_characters_take_two_columns() -> None:
    lines = list(lines_of(Cells(("a", "b"), (("中文", "1"), ("x", "2")), (False, True)), 80))
    assert [cell_len(line) for line in lines] == [7] * 4


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_shown_in_one_line_and_steers_nothing(text: str) -> None:
    for block in (Paragraph(text), Heading(text), Items(text, (text,)), table(text), Curve((0.5,), text)):
        shown = "\n".join(lines_of(block, 2000))
        assert not set(shown) & {"\x1b", "\x07", "\r", "\u202e"}
        assert len(shown.splitlines()) == {Items: 2, Cells: 3}.get(type(block), 1)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    escaped = in_markdown(text)
    assert not re.search(r"[<>@\n\x1b\u202e]", escaped)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~$]", escaped)
    assert re.sub(r"&(lt|gt|amp|#64);", "", escaped).count("&") == 0
    row = list(markdown_table(["a"], [[text]], [False]))[2]
    assert len(re.findall(r"(?<!\\)\|", row)) == 2


@pytest.mark.parametrize("text", ["- a", "+ a", "1. a", "2) a", "=", "# a"])
def test_a_paragraph_does_not_begin_a_list_or_heading(text: str) -> None:
    assert re.match(r"\\|\d+\\", markdown_text([Paragraph(text)]))


def test_decimals_stay_as_they_are_in_markdown() -> None:
    assert markdown_text([Paragraph("12.37 and 1.5"), table("x")]).count("\\") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_shows_text_as_it_is(text: str) -> None:
    escaped = in_latex(text)
    commands = "textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|symbol"
    bare = re.sub(rf"\\(?:{commands})\{{\d*\}}|\\[{{}}$&#%_]|\{{[\[\]*]\}}|\{{\}}", "\0", escaped)
    assert not re.search(r"[\\{}$&#%_~^<>|\"`\[\]*\n\x1b]|--|''", bare)


def test_dashes_and_percent_signs_are_those_of_latex() -> None:
    assert in_latex("90.1% (87–93) − 2 ≥ 1 × 3") == r"90.1\% (87--93) $-$ 2 $\ge$ 1 $\times$ 3"
    assert in_latex("-0.5 (-1 to 2), 2026-11-22, a-1") == "$-$0.5 ($-$1 to 2), 2026-11-22, a-1"


def test_a_row_of_latex_does_not_begin_with_an_option() -> None:
    assert list(latex_table(["a"], [["[1pt]"], ["*"]], [False]))[4:6] == [r"{[}1pt{]} \\", r"{*} \\"]


def test_a_curve_has_a_gap_where_it_is_undefined() -> None:
    curve = Curve((0.0, None, 1.0), "F1 from 1 to 3")
    assert plain_text([curve]) == "▁ █  F1 from 1 to 3\n"
    assert markdown_text([curve]) == "`▁ █` F1 from 1 to 3\n"
    assert latex_text([curve]).count(r"\rule") == 2
    assert latex_text([curve]).count(r"\hspace*") == 1


def test_long_curves_are_thinned_evenly() -> None:
    values = [number / 999 for number in range(1000)]
    assert len(draw(values)) == 60
    assert draw(values)[0] == "▁"
    assert draw(values)[-1] == "█"
    assert draw([]) == ""
