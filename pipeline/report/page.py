"""The report: one page that needs nothing but itself, made from a published run, section by section."""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import chain, zip_longest
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from ..base.errors import CannotCreateError
from ..runs.stage_results import texts_once
from ..runs.written import PAGE, OwnFile
from .charts import PALETTE, is_flat, look_of_role, template
from .drawing import (
    Lists,
    StageContent,
    drawing_script,
    encoded,
    history,
    kept_runs,
    key,
    measured,
    multiples,
    stage_content,
)
from .pictures import page_svg
from .summary import counted, described, doubt_text, headline, limits_text, notes_in_words, summary_of_gates, utc_time
from .text import Markup, drawing, element, escaped, inert_json, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..stages.figures import KeyNumber
    from .charts import Group, Panels
    from .published import PublishedRun


# Tiles of key numbers: a value, its interval in digits and on a fixed scale, and what it means.


def tiles(content: StageContent) -> Markup | None:
    """Make the tiles of a stage; None if it has no key number."""
    if content.shown is None or not content.number_names:
        return None
    numbers = content.numbers.get(content.shown, {})
    level = content.published.parameters.get("confidence")
    boxes = [_tile(name, numbers.get(name), content, level) for name in content.number_names]
    return element("div", *boxes, class_="tiles")


def _tile(name: str, number: KeyNumber | None, content: StageContent, level: object) -> Markup:
    """One key number: its value, its interval in digits and on a scale, and what it means."""
    example = number or next(named[name] for named in content.numbers.values() if name in named)
    limits = tile_limits(number, level)
    doubt = doubt_text(number.quality) if number else ""
    value = headline(number) if number else "–"
    is_undefined = number is None or number.value is None
    return element(
        "div",
        element("h3", name),
        element("div", value, class_="number undefined" if is_undefined else "number", style=style_of(example)),
        element("div", limits, class_="limits", hidden=not limits),
        scale(number) if example.format == "percent" else None,
        element("div", example.meaning, class_="meaning"),
        element("div", doubt, class_="doubt", hidden=not doubt),
        class_="tile",
    )


def style_of(number: KeyNumber) -> str:
    """The colour of a key number."""
    return f"color:var(--{look_of_role(number.role).colour.name})"


def tile_limits(number: KeyNumber | None, level: object) -> str:
    """The interval of a tile with its level; empty without one."""
    limits = limits_text(number) if number else ""
    percent = f"{100 * level:.4g}% " if isinstance(level, float) else ""
    return f"{percent}interval {limits}" if limits else ""


def scale(number: KeyNumber | None) -> Markup:
    """The value and its interval on a fixed scale from 0 to 100%."""
    value = None if number is None else number.value
    lower, upper = (None, None) if number is None else (number.lower, number.upper)
    ends = (0.0, 0.0) if lower is None or upper is None else (_within(lower), _within(upper))
    band = f"left:{ends[0]:.1%};width:{ends[1] - ends[0]:.1%}"
    style = None if number is None else style_of(number)
    return element(
        "span",
        element("i", style=band, hidden=lower is None or upper is None),
        element("b", style=f"left:{_within(value or 0.0):.1%}", hidden=value is None),
        class_="scale pale" if number is not None and doubt_text(number.quality) else "scale",
        style=style,
        aria_hidden="true",
    )


def _within(value: float) -> float:
    return min(max(value, 0.0), 1.0)


# The table of all groups of a stage: one row for each, with its key numbers, intervals as bars and in digits.


FEWEST_TO_FIND = 8
MOST_WITH_DIGITS = 3  # numbers with intervals as bars and in digits; with more, digits are for phones


def group_table(content: StageContent) -> Markup | None:
    """Make the table of groups; None if there is nothing to compare."""
    if len(content.groups) < 2 or not content.number_names:  # noqa: PLR2004 - one group alone
        return None
    count = counted(len(content.groups), "group")
    note = "A row chooses the group that numbers and charts show."
    if content.left_out:
        note += f" {content.left_out:,} more groups are in the tables."
    find = element("input", type="search", placeholder="Find a group", aria_label="Find a group", autocomplete="off")
    tools = element(
        "div", find, element("span", count, class_="count", aria_live="polite"), class_="tools needs-script"
    )
    beside = {name: _beside(content, name) for name in content.number_names}
    groupings = sorted({group.grouping for group in content.groups if not group.is_total})
    alone = groupings[0] if len(groupings) == 1 else ""
    rows = [_row(content, group, group.short if alone else group.label, beside) for group in content.groups]
    table = element("table", _head_of_groups(alone or "group", beside), element("tbody", *rows), class_="groups")
    return joined(
        element("h4", f"Groups ({len(content.groups):,})"),
        element("p", note, class_="note needs-script"),
        tools if len(content.groups) >= FEWEST_TO_FIND else None,
        element("div", table, class_="scroll"),
    )


def _head_of_groups(groups: str, beside: dict[str, list[tuple[str, str]]]) -> Markup:
    cells = [_header(groups, -1)]
    for number, (name, columns) in enumerate(beside.items()):
        cells.append(_header(name, number))
        cells += [element("th", text, class_=class_) for text, class_ in columns]
    return element("thead", element("tr", *cells))


def _beside(content: StageContent, name: str) -> list[tuple[str, str]]:
    """The columns beside a number: its interval in digits, and a bar for ratios."""
    numbers = [named[name] for named in content.numbers.values() if name in named]
    is_ratio, crowded = numbers[0].format == "percent", len(content.number_names) > MOST_WITH_DIGITS
    columns = []
    if any(number.lower is not None for number in numbers):
        columns.append(("interval", "digits narrow" if is_ratio and crowded else "digits"))
    if is_ratio:
        columns.append(("0–100%", "bar"))
    return columns


def _header(text: str, number: int) -> Markup:
    return element("th", element("button", text, type="button", data_number=str(number)), scope="col")


def _row(content: StageContent, group: Group, name_of_group: str, beside: dict[str, list[tuple[str, str]]]) -> Markup:
    cells = [element("th", name_of_group, scope="row")]
    for name, columns in beside.items():
        number = content.numbers.get(group, {}).get(name)
        cells.append(_value(number))
        for _, class_ in columns:
            cells.append(element("td", scale(number), class_="bar") if class_ == "bar" else _digits(number, class_))
    selected = "true" if group == content.shown else "false"
    return element("tr", *cells, tabindex="-1", data_group=str(content.groups.index(group)), aria_selected=selected)


def _value(number: KeyNumber | None) -> Markup:
    if number is None:
        return element("td", "–", class_="undefined")
    return element("td", headline(number), class_="undefined" if number.value is None else None)


def _digits(number: KeyNumber | None, class_: str) -> Markup:
    if number is None:
        return element("td", "–", class_=class_)
    doubt = doubt_text(number.quality)
    mark = element("span", " *", class_="few", title=doubt) if doubt else None
    return element("td", limits_text(number) or "–", mark, class_=class_)


MOST_ROWS_IN_PICTURE = 150


def stage_section(content: StageContent, run: PublishedRun, results: Path) -> Markup:
    """Make the section of a stage; its queries on the results folder give the same numbers."""
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
    """One figure under a name: title, key, chart, caption, and a table that is filled when it is opened."""
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


# The warnings of all stages, above every number: each in a line that opens, the worst first, many folded.


SHOWN = 3
LONGEST_LEAD = 110
_LEAD = re.compile(r"(?:input [^:]+: )?.*?: ")


def warning_box(contents: list[StageContent], absent: Mapping[str, str]) -> Markup:
    """Make the box: the first warning of every stage comes before the second of any, as stages begin with the worst.

    Before all others stands what is said of stages that have no tables.
    """
    warned = [[(content, warning) for warning in content.published.warnings] for content in contents]
    ordered = [pair for pair in chain.from_iterable(zip_longest(*warned)) if pair is not None]
    if not ordered and not absent:
        return element("p", "No warnings.", class_="calm")
    several = len(contents) > 1
    entries = [element("li", element("strong", f"{name}:"), f" {sentence}") for name, sentence in absent.items()]
    entries += [_entry(content, warning, several=several) for content, warning in ordered]
    folded = None
    if len(entries) > SHOWN:
        summary = element("summary", f"{len(entries) - SHOWN:,} more")
        folded = element("details", summary, element("ul", *entries[SHOWN:]))
    heading = element("h2", f"{counted(len(entries), 'warning')} before you use these numbers")
    return element("div", heading, element("ul", *entries[:SHOWN]), folded, class_="warnings", role="note")


def notes_box(contents: list[StageContent]) -> Markup | None:
    """Make the folded list of what changes no decision; None without any."""
    notes = texts_once({content.published.name: content.published.notes for content in contents})
    if not notes:
        return None
    listed = element("ul", *(element("li", text) for text in notes))
    return element("details", element("summary", notes_in_words(notes)), listed, class_="notes")


def _entry(content: StageContent, warning: str, *, several: bool) -> Markup:
    """One warning: what is wrong, and below it, once opened, what follows and what to do."""
    lead, consequence = _parted(warning)
    link = joined(element("a", content.published.name, href=f"#{content.anchor}"), ": ") if several else None
    if not consequence:
        return element("li", link, lead)
    opened = element("details", element("summary", element("strong", lead)), consequence, class_="warning", open=True)
    return element("li", link, opened)


def _parted(warning: str) -> tuple[str, str]:
    """A warning in two parts, the fault in few words and the rest; where the first words are many, they are cut."""
    match = _LEAD.match(warning)
    lead = match[0] if match and match[0].count("(") == match[0].count(")") else ""
    if 0 < len(lead) <= LONGEST_LEAD:
        return lead.rstrip(), warning[len(lead) :]
    if len(warning) <= LONGEST_LEAD:
        return warning, ""
    cut = warning[:LONGEST_LEAD].rsplit(" ", 1)[0]
    return f"{cut} …", f"… {warning[len(cut) :].lstrip()}"


def gate_box(rows: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Make the box from the rows of the table `gates`; None without any."""
    summary = summary_of_gates(rows)
    if summary is None:
        return None
    passed = element("ul", *(element("li", text) for text in summary.passed))
    if not summary.failed:
        return element("div", _folded(summary.headline, passed), class_="gates")
    failures = [element("li", text) for text in summary.failed]
    n_more = len(failures) - SHOWN
    more = _folded(f"{n_more:,} more", element("ul", *failures[SHOWN:])) if n_more > 0 else None
    folded = _folded("Passed", passed) if summary.passed else None
    shown = element("ul", *failures[:SHOWN])
    return element("div", element("h2", summary.headline), shown, more, folded, class_="failed", role="alert")


def _folded(title: str, content: Markup) -> Markup:
    return element("details", element("summary", title), content)


MOST_ROWS = 200  # of a group in a chart
FEWEST_ROWS = 20
MOST_VALUES = 1_150_000  # in all lists, which then take about four megabytes
HISTORY = "history"
SCRIPTS = ("charts.js", "page.js")
_FOLDER = Path(__file__).parent / "template"


def report(run: PublishedRun, results: Path) -> str:
    """Make the page of a run as HTML; earlier runs in its results folder make the history."""
    contents = [stage_content(stage, f"stage-{number}") for number, stage in enumerate(run.stages)]
    past = StageContent(run.stages[0], HISTORY, "", (), 0, {}, (), history(kept_runs(results, run)))
    sections = [stage_section(content, run, results) for content in contents]
    if past.figures:
        charts = [chart_figure(drawn, f"{HISTORY}-{index}", past) for index, drawn in enumerate(past.figures)]
        heading, box = element("h2", "History"), element("div", *charts, class_="charts")
        sections.append(element("section", heading, box, id=HISTORY))
    content = joined(_head(run, contents, has_history=bool(past.figures)), *sections, _foot(run))
    return _assembled(_title(run), content, page_data([*contents, past] if past.figures else contents))


def _title(run: PublishedRun) -> str:
    config = Path(str(run.record.get("config", ""))).stem
    return run.stages[0].name if len(run.stages) == 1 else config or counted(len(run.stages), "stage")


def _head(run: PublishedRun, contents: list[StageContent], *, has_history: bool) -> Markup:
    facts = [
        f"Published {utc_time(run.published_at)}",
        *run.about,
        counted(len(run.stages), "stage"),
        counted(sum(stage.n_rows for stage in run.stages), "row"),
        f"run {run.folder.name}",
        f"thresher {run.record.get('versions', {}).get('thresher', '')}",
    ]
    links = [element("a", content.published.name, href=f"#{content.anchor}") for content in contents]
    if has_history:
        links.append(element("a", "History", href=f"#{HISTORY}"))
    return joined(
        element("h1", _title(run)),
        element("p", " · ".join(facts), class_="facts"),
        gate_box(run.record.get("gates", ())),
        warning_box(contents, run.absent),
        notes_box(contents),
        element("nav", *links, aria_label="Stages") if len(links) > 1 else None,
    )


def _foot(run: PublishedRun) -> Markup:
    versions = " · ".join(f"{name} {version}" for name, version in run.record.get("versions", {}).items())
    return element("footer", f"Made with {versions}. This page needs no network.")


def _assembled(title: str, content: Markup, data: dict[str, Any]) -> str:
    charts = drawing_script().replace("</script", "<\\/script")
    script = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return Template((_FOLDER / "page.html").read_text(encoding="utf-8")).substitute(
        title=escaped(f"{title} – thresher"),
        style=_style(),
        content=content,
        data=inert_json(data),
        charts=charts,
        script=script,
        hashes=f"{_hash(charts)} {_hash(script)}",
    )


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _style() -> str:
    light = " ".join(f"--{colour.name}: {colour.light};" for colour in PALETTE)
    dark = " ".join(f"--{colour.name}: {colour.dark};" for colour in PALETTE)
    text = (_FOLDER / "style.css").read_text(encoding="utf-8")
    return Template(text).substitute(light=light, dark=dark)


def page_data(contents: list[StageContent]) -> dict[str, Any]:
    """Return what the page's script reads: with fewer rows of every group, if there are very many."""
    most = MOST_ROWS
    while True:
        lists = Lists()
        stages = [_stage_data(content, lists, most) for content in contents]
        if lists.size <= MOST_VALUES or most <= FEWEST_ROWS:
            return {"stages": stages, "lists": lists.written}
        most = max(FEWEST_ROWS, min(most - 1, int(0.95 * most * MOST_VALUES / lists.size)))


def _stage_data(content: StageContent, lists: Lists, most: int) -> dict[str, Any]:
    level = content.published.parameters.get("confidence")
    figures = []
    for index, drawn in enumerate(content.figures):
        groups = (drawn.first,) if drawn.figure.across else content.groups
        figures.append(_figure_data(drawn, f"{content.anchor}-{index}", groups, lists, most))
    numbers = [
        [_number_data(content.numbers.get(group, {}).get(name), level) for name in content.number_names]
        for group in content.groups
    ]
    labels = [{"label": group.label} for group in content.groups]
    return {"id": content.anchor, "groups": labels, "numbers": numbers, "figures": figures}


def _number_data(number: KeyNumber | None, level: object) -> dict[str, Any]:
    if number is None:
        return {"value": None, "lower": None, "upper": None, "text": "–", "limits": "", "doubt": ""}
    return {
        "value": number.value,
        "lower": number.lower,
        "upper": number.upper,
        "text": headline(number),
        "limits": tile_limits(number, level),
        "doubt": doubt_text(number.quality),
    }


def _figure_data(drawn: Panels, name: str, groups: tuple[Group, ...], lists: Lists, most: int) -> dict[str, Any]:
    figure = drawn.figure
    return {
        "id": name,
        "spec": template(drawn),
        "title": figure.title,
        "across": figure.across,
        "marked": figure.chosen is not None,
        "flat": is_flat(figure),
        "path": any(series.mark == "path" for series in figure.series),
        "sparse": any(series.mark == "bar" for series in figure.series),
        "xTitle": figure.x.title,
        "xFormat": figure.x.format,
        "yFormat": figure.y.format,
        "series": [series.name for series in figure.series],
        "panels": encoded(drawn.at_most(most), groups, lists),
    }


FILE_NAME = "report.html"


def write_report(run: PublishedRun, results: Path, path: Path | None = None) -> Path:
    """Write the page of a run, whole or not at all, and return its path, by default in the results folder.

    Raises:
        CannotCreateError: the file cannot be written there.
    """
    file = path or results / FILE_NAME
    if file.is_dir():
        message = f"the report {file} is a folder"
        raise CannotCreateError(message, remedy="Name a file with --output.")
    own = OwnFile("--output", file, PAGE)
    if own.fault:
        message = f"the report {file} cannot be written: it {own.fault}"
        raise CannotCreateError(message, remedy=own.remedy)
    content = report(run, results).encode()
    own.make_folder()
    own.replace(content)
    return file
