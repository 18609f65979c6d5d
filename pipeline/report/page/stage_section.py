"""The section of one stage: main result, tiles, charts, groups, and how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures.pictures import page_svg
from ..words import described
from .group_table import group_table
from .key import key
from .markup import Markup, drawing, element, joined
from .measured import measured
from .multiples import multiples
from .tiles import tiles

if TYPE_CHECKING:
    from pathlib import Path

    from ..figures.panels import Panels
    from ..published import PublishedRun
    from .content import StageContent

MOST_ROWS_IN_PICTURE = 150


def stage_section(content: StageContent, run: PublishedRun, results: Path) -> Markup:
    """Make the section of a stage.

    Args:
        content: What to show.
        run: The run that it belongs to.
        results: The results folder, for the queries that give the same numbers.
    """
    published = content.published
    name, kind = published.name, published.stage.kind
    heading = element("h2", name, None if name == kind else joined(" ", element("span", kind, class_="kind")))
    charts = [chart_figure(drawn, f"{content.anchor}-{index}", content) for index, drawn in enumerate(content.figures)]
    return element(
        "section",
        heading,
        element("p", element("strong", "Not of this run: "), published.carried, class_="carried", role="note")
        if published.carried
        else None,
        element("p", content.rows_in_words, class_="facts"),
        element("p", content.sentence, class_="sentence"),
        _picker(content),
        tiles(content),
        element("div", *charts, class_="charts") if charts else None,
        group_table(content),
        multiples(content),
        measured(published, run, results),
        id=content.anchor,
    )


def _picker(content: StageContent) -> Markup | None:
    """The control that chooses the group; it works on phones and with a keyboard."""
    if len(content.groups) < 2:  # noqa: PLR2004 - nothing to choose
        return None
    options = [element("option", group.label, value=str(number)) for number, group in enumerate(content.groups)]
    chooser = element("select", *options, id=f"{content.anchor}-group", autocomplete="off")
    label = element("label", "Numbers and charts of", for_=f"{content.anchor}-group")
    return element("div", label, chooser, class_="picker needs-script")


def chart_figure(drawn: Panels, name: str, content: StageContent) -> Markup:
    """One figure: title, key, chart, caption, and a table that is filled when it is opened.

    Args:
        drawn: The figure.
        name: Its name in the page.
        content: The stage that it belongs to.
    """
    figure = drawn.figure
    group = content.shown if content.shown is not None and content.shown in drawn.spans else drawn.first
    picture = drawn.at_most(MOST_ROWS_IN_PICTURE)
    label = "" if figure.across or group.is_total else f": {group.label}"
    title = element("h3", figure.title, element("span", label, class_="of"))
    svg = drawing(page_svg(picture, group, prefix=f"{name}-"))
    chart = element("div", svg, class_="chart", role="img", tabindex="0", aria_label=described(drawn, group))
    table = element("details", element("summary", "The numbers as a table"), class_="needs-script")
    caption = element("figcaption", element("p", figure.caption, class_="caption"))
    return element("figure", title, key(figure), chart, caption, table, id=name)
