"""The report: one page that needs nothing but itself, made from a published run."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from ..figures.charts import is_flat, template
from ..figures.colours import PALETTE
from ..words import counted, doubt_text, headline, utc_time
from .content import StageContent, stage_content
from .drawing_script import drawing_script
from .encoding import Lists, encoded
from .gate_box import gate_box
from .history import history, kept_runs
from .markup import Markup, element, escaped, inert_json, joined
from .stage_section import chart_figure, stage_section
from .tiles import tile_limits
from .warning_box import notes_box, warning_box

if TYPE_CHECKING:
    from ...stages.figures import KeyNumber
    from ..figures.panels import Group, Panels
    from ..published import PublishedRun

MOST_ROWS = 200  # of a group in a chart
FEWEST_ROWS = 20
MOST_VALUES = 1_150_000  # in all lists, which then take about four megabytes
HISTORY = "history"
SCRIPTS = ("charts.js", "page.js")
_FOLDER = Path(__file__).parent / "template"


def report(run: PublishedRun, results: Path) -> str:
    """Make the page of a run.

    Args:
        run: The run.
        results: Its results folder, absolute: earlier runs in it make the history.

    Returns:
        The page as HTML.
    """
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
