"""The report in a browser, opened from its file: it draws, answers, stays whole on a phone, and runs no user's text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipeline.report.page import report
from pipeline.report.published import latest_run
from report.conftest import COLUMN, HOSTILE, opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from report.conftest import Published

PRECISION = ".tile .number"
LOOKS = [(1280, 900, "light"), (390, 844, "dark")]


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_chart_is_drawn_without_an_error_a_request_or_overflow(
    browser: Browser, published: Published, width: int, height: int, scheme: str
) -> None:
    with opened(browser, published.report, width=width, height=height, color_scheme=scheme) as shown:
        shown.draw_all()
        assert shown.page.locator(".chart.live svg path").count() > 10
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        assert shown.said == []
        assert shown.asked == [published.report.as_uri()]


def test_without_scripts_every_chart_and_group_is_there(browser: Browser, published: Published) -> None:
    with opened(browser, published.report, java_script_enabled=False) as shown:
        charts = shown.page.locator("figure")
        assert charts.count() == charts.locator(".chart > svg").count() > 4
        assert shown.page.locator(".groups tbody tr").count() == len(HOSTILE) + 1
        assert not shown.page.locator(".picker select").is_visible()


def test_hostile_names_are_text(browser: Browser, published: Published) -> None:
    with opened(browser, published.report) as shown:
        shown.draw_all()
        for number in range(len(HOSTILE) + 1):
            shown.page.locator(".picker select").select_option(str(number))
        shown.page.locator("figure summary").first.click()
        assert shown.page.locator("img, i:not(.scale i), b:not(.scale b):not(.tip b)").count() == 0
        assert shown.page.evaluate("window.harm") is None
        assert (
            shown.page.locator(".groups tbody th", has_text="</script><img src=x onerror=window.harm=1>").count() == 1
        )
        assert shown.page.locator(".groups thead button").first.inner_text() == COLUMN
        assert "\x1b" not in shown.page.content()
        assert shown.said == []


def test_a_row_of_the_table_chooses_the_group_of_numbers_and_charts(browser: Browser, published: Published) -> None:
    with opened(browser, published.report) as shown:
        page = shown.page
        page.locator(".chart").first.scroll_into_view_if_needed()
        page.wait_for_selector(".chart.live")
        before = (page.locator(PRECISION).first.inner_text(), page.locator(".chart.live").first.inner_html())
        page.locator(".groups tbody tr", has_text="a, b").click()
        page.locator(".chart").first.scroll_into_view_if_needed()  # charts out of sight are drawn when they come near
        page.locator("figure").first.locator(".of", has_text="a, b").wait_for()
        after = (page.locator(PRECISION).first.inner_text(), page.locator(".chart.live").first.inner_html())
        assert before[0] != after[0]
        assert before[1] != after[1]
        in_table = page.locator(".groups tbody tr[aria-selected=true] td").first.inner_text()
        assert after[0] == in_table
        small = page.locator(".multiples button", has_text="red")
        small.click()
        assert small.get_attribute("aria-pressed") == "true"
        assert page.locator(".groups tbody tr[aria-selected=true] th", has_text="red").count() == 1
        page.locator(".multiples button", has_text="a, b").click()
        page.locator(".chart").first.scroll_into_view_if_needed()
        page.locator("figure").first.locator(".of", has_text="a, b").wait_for()
        assert "a, b" in (page.locator(".chart").first.get_attribute("aria-label") or "")


def test_keys_walk_through_the_groups_and_sorting_and_finding_keep_them_in_order(
    browser: Browser, published: Published
) -> None:
    with opened(browser, published.report) as shown:
        page = shown.page
        page.locator(".groups tbody tr").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.locator(".picker select").input_value() == "1"
        page.locator(".groups thead button").nth(1).click()
        values = page.locator(".groups tbody tr td:nth-child(2)").all_inner_texts()
        numbers = [float(text.rstrip("%").replace("−", "-")) for text in values if text.endswith("%")]
        assert numbers == sorted(numbers, reverse=True)
        page.locator(".tools input").fill("quoted")
        assert page.locator(".groups tbody tr:visible").count() == 1
        assert page.locator(".tools .count").inner_text() == f"1 of {len(HOSTILE) + 1} groups"


def test_pointing_at_a_chart_tells_its_values_and_a_folded_table_repeats_them(
    browser: Browser, published: Published
) -> None:
    with opened(browser, published.report) as shown:
        page = shown.page
        chart = page.locator(".chart").first
        chart.scroll_into_view_if_needed()
        page.wait_for_selector(".chart.live")
        box = chart.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        told = page.locator(".tip").first.inner_text()
        assert "Threshold: 0." in told
        assert "Precision: " in told
        page.locator("figure summary").first.click()
        threshold = told.splitlines()[0].removeprefix("Threshold: ")
        row = page.locator("figure details tr", has=page.locator(f"td:first-child:text-is('{threshold}')"))
        precision = next(line for line in told.splitlines() if line.startswith("Precision: "))
        assert precision.split()[1] in row.inner_text()


def test_on_a_phone_many_long_warnings_leave_the_first_number_on_the_first_screen(
    browser: Browser, published: Published, tmp_path: Path
) -> None:
    long = [f"input predictions: reason {number}: {'and so on ' * 60}" for number in range(5)]
    run = latest_run(published.results)
    warned = replace(run.stages[0], warnings=tuple(long), notes=("of no weight", "nor this"))
    page = tmp_path / "warned.html"
    page.write_text(report(replace(run, stages=(warned,)), published.results), encoding="utf-8")
    with opened(browser, page, width=390, height=844) as shown:
        for selector in (".sentence", ".tile .number"):
            box = shown.page.locator(selector).first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 844, selector
        assert not shown.page.get_by_text("of no weight").is_visible()
        shown.page.locator(".notes summary").click()
        assert shown.page.get_by_text("of no weight").is_visible()
        shown.page.locator(".warning summary").first.click()
        assert "and so on" in shown.page.locator(".warning").first.inner_text()
    with opened(browser, page) as shown:
        assert "and so on" in shown.page.locator(".warning").first.inner_text(), "on a wide screen they are open"


def test_print_shows_light_colours_and_no_controls(browser: Browser, published: Published) -> None:
    with opened(browser, published.report, color_scheme="dark") as shown:
        shown.page.emulate_media(media="print")
        assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not shown.page.locator(".picker").first.is_visible()
