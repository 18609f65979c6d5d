"""Figures as pictures, drawn without a browser: on the page, in notebooks, and as files."""

from __future__ import annotations

import html
import json
import re
import textwrap
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from xml.etree import ElementTree as ET

from ..base.errors import UsageError
from ..base.records import dataclass
from ..base.schemas import values_text, written_groups
from ..base.visible_text import cleaned
from ..runs.variables import near
from ..runs.written import PICTURE, OwnFile
from ..storage.layout import make_folder
from .charts import Group, Panels, chart, in_hex, panels
from .summary import described, utc_time

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from .published import PublishedRun


# Charts as pictures, drawn without a browser: SVG for the page, and files that explain themselves.


PictureFormat = Literal["svg", "png", "pdf"]
FORMATS: tuple[PictureFormat, ...] = ("svg", "png", "pdf")
PNG_SCALE = 2.0
WIDTH = 720
CAPTION_WIDTH = 106  # characters
LINE_HEIGHT, HEAD_HEIGHT = 16, 48
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_TAGS = frozenset({"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"})
_PLACES = ("x", "y", "x1", "x2", "y1", "y2", "dx", "dy")
_GEOMETRY = ("width", "height", "viewBox", "transform", "d", *_PLACES, "id", "clip-path")
_COLOURS = ("fill", "stroke", "opacity", "fill-opacity", "stroke-opacity")
_LINES = ("stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit")
_LETTERS = ("font-family", "font-size", "font-weight", "text-anchor")
_ATTRIBUTES = frozenset((*_GEOMETRY, *_COLOURS, *_LINES, *_LETTERS))
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")


def page_svg(panels: Panels, group: Group, *, prefix: str) -> str:
    """Draw a chart for the page: its colours follow the style sheet, and the key and the caption are the page's.

    The prefix begins the names that the drawing refers to, which must differ from those of other charts.
    """
    import vl_convert  # noqa: PLC0415 - only to draw

    return inert(vl_convert.vegalite_to_svg(chart(panels, group), allowed_base_urls=[]), prefix=prefix)


def picture(panels: Panels, group: Group, *, form: PictureFormat, source: str) -> bytes:
    """Draw a file that can stand alone: with title, caption, key and, in one line, where its numbers come from."""
    import vl_convert  # noqa: PLC0415 - only to draw

    specification = picture_specification(panels, group, source=source)
    if form == "svg":
        svg = vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])
        return f"{inert(svg, prefix='clip', label=described(panels, group))}\n".encode()
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, scale=PNG_SCALE, allowed_base_urls=[]))
    return bytes(vl_convert.vegalite_to_pdf(specification, allowed_base_urls=[]))


def picture_specification(panels: Panels, group: Group, *, source: str) -> dict[str, Any]:
    """Return the chart of a file as a Vega-Lite specification; takes the arguments of `picture`."""
    specification: dict[str, Any] = json.loads(in_hex(json.dumps(chart(panels, group, legend=True))))
    figure = panels.figure
    title = figure.title if group.is_total else f"{figure.title}: {group.label}"
    lines = [*textwrap.wrap(figure.caption, CAPTION_WIDTH), cleaned(source, layout="")]
    text = {"text": title, "subtitle": lines, "anchor": "start", "frame": "bounds", "offset": 12}
    # the chart keeps its height, and title and caption come on top of that
    height = specification["height"] + LINE_HEIGHT * len(lines) + HEAD_HEIGHT
    return {**specification, "title": text, "width": WIDTH, "height": height, "background": "#ffffff", "padding": 12}


def inert(svg: str, *, prefix: str, label: str = "") -> str:
    """Keep of a drawing what draws, and nothing that could act; round its numbers.

    The prefix begins the names that it refers to; the label says what it shows, unless the page says so beside it.
    """
    ET.register_namespace("", _NAMESPACE[1:-1])
    root = ET.fromstring(svg)  # noqa: S314 - drawn here from a chart without entities
    _strip(root, {}, prefix)
    if label:
        root.set("role", "img")
        root.set("aria-label", label)
    return ET.tostring(root, encoding="unicode")


def _strip(element: ET.Element, names: dict[str, str], prefix: str) -> None:
    """Clean an element and what is in it; names that it defines or refers to are counted from 1 in every drawing."""
    for child in list(element):
        if child.tag.removeprefix(_NAMESPACE) not in _TAGS:
            element.remove(child)
    for name, value in list(element.attrib.items()):
        if name not in _ATTRIBUTES:
            del element.attrib[name]
        elif name == "id":
            element.set(name, _renamed(value, names, prefix))
        elif name == "clip-path":
            element.set(name, f"url(#{_renamed(value.removeprefix('url(#').removesuffix(')'), names, prefix)})")
        elif name in {"d", "transform"}:
            element.set(name, _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.1f}", value))
    for child in element:
        _strip(child, names, prefix)


def _renamed(name: str, names: dict[str, str], prefix: str) -> str:
    return names.setdefault(name, f"{prefix}{len(names) + 1}")


# Figures of a published run as files: which there are, and writing those that were asked for.


MOST_TOLD = 20
MOST_ROWS = 1000
_UNSAFE = re.compile(r"[^\w.,=+-]+")
_LONGEST_NAME = 120


@dataclass(frozen=True)
class NamedFigure:
    """A figure of a stage of a run, by group."""

    stage: str
    panels: Panels

    @property
    def name(self) -> str:
        """Its name in the run: `<stage>.<figure>`."""
        return f"{self.stage}.{self.panels.figure.name}"


def figures_of(run: PublishedRun, stages: Sequence[str] = ()) -> tuple[NamedFigure, ...]:
    """Return the figures of some stages of a run, all of them by default.

    Raises:
        UsageError: the run has no stage of that name.
    """
    return tuple(NamedFigure(stage.name, panels(figure)) for stage in run.chosen(stages) for figure in stage.figures())


def wanted(figures: Sequence[NamedFigure], names: Sequence[str]) -> tuple[NamedFigure, ...]:
    """Return the figures of these names, `<stage>.<figure>` or `<figure>` of every stage; all if no name is there.

    Raises:
        UsageError: no figure has that name.
    """
    for name in names:
        if all(name not in {figure.name, figure.panels.figure.name} for figure in figures):
            known_names = [figure.name for figure in figures]
            short_names = [figure.panels.figure.name for figure in figures]
            message = f"no figure is called {name!r}{near(name, [*known_names, *short_names])}"
            more = f" and {len(known_names) - MOST_TOLD:,} more" if len(known_names) > MOST_TOLD else ""
            raise UsageError(message, remedy=f"The figures are: {', '.join(known_names[:MOST_TOLD]) or 'none'}{more}.")
    return tuple(figure for figure in figures if not names or {figure.name, figure.panels.figure.name} & {*names})


def write_plots(
    run: PublishedRun, figures: Sequence[NamedFigure], group: dict[str, str], folder: Path, form: PictureFormat
) -> Iterator[Path]:
    """Write figures as files, each whole or not at all, and return their paths one by one.

    A group is given by values of grouping columns, as people write them; without any it is all rows, or the first group
    of a figure that has no rows for all.

    Raises:
        UsageError: no figure has the group.
        CannotCreateError: the folder cannot be written.
    """
    chosen = [(figure, _group(figure.panels, group)) for figure in figures]
    drawn = [(figure, own_group) for figure, own_group in chosen if own_group is not None]
    if not drawn:
        raise _no_group(figures, group)
    make_folder(folder, "--to")
    taken: set[str] = set()
    version = run.record.get("versions", {}).get("thresher", "")
    for figure, own_group in drawn:
        source = f"{figure.stage} · {utc_time(run.published_at)} · run {run.folder.name} · thresher {version}"
        content = picture(figure.panels.at_most(MOST_ROWS), own_group, form=form, source=source)
        path = folder / f"{_file_name(figure, own_group, taken)}.{form}"
        OwnFile("--to", path, PICTURE).replace(content)
        yield path


def _group(drawn: Panels, values: dict[str, str]) -> Group | None:
    """The group of these values; None if the figure does not have it, or shows all groups at once.

    `null` is NULL alone; the text `null` stands in quotes.
    """
    if not values:
        return drawn.first
    meanings: Iterator[Mapping[str, str | None]] = (
        {name: None if value == "null" else value for name, value in meant.items()} for meant in written_groups(values)
    )
    matches = (group for meant in meanings for group in drawn.spans if _is_of(group, meant))
    return next(matches, None)


def _is_of(group: Group, values: Mapping[str, str | None]) -> bool:
    names = group.grouping.split(",")
    return sorted(names) == sorted(values) and group.text == values_text([values[name] for name in names])


def chosen_group(drawn: Panels, values: dict[str, str]) -> Group:
    """Return a group of a figure, by its values as people write them; without any as in `write_plots`.

    Raises:
        UsageError: the figure has no such group.
    """
    group = _group(drawn, values)
    if group is None:
        raise _no_group([NamedFigure("", drawn)], values)
    return group


def _no_group(figures: Sequence[NamedFigure], group: dict[str, str]) -> UsageError:
    name = ", ".join(f"{column}={value}" for column, value in group.items())
    groups = dict.fromkeys(entry.label for figure in figures for entry in figure.panels.spans)
    if not figures:
        return UsageError("there is no figure to write", remedy="See --list; a stage without any row has no figure.")
    told = "; ".join(list(groups)[:MOST_TOLD])
    more = f"; and {len(groups) - MOST_TOLD:,} more" if len(groups) > MOST_TOLD else ""
    return UsageError(f"no figure has the group {name}", remedy=f"Groups, with their columns first: {told}{more}.")


def _file_name(figure: NamedFigure, group: Group, taken: set[str]) -> str:
    """A name that every file system takes: what is not a letter, a digit or one of a few signs becomes `_`."""
    of_group = "" if group.is_total else f".{group.grouping}={group.text}"
    name = _UNSAFE.sub("_", cleaned(f"{figure.name}{of_group}", layout=""))[:_LONGEST_NAME]
    numbered_names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(candidate for candidate in numbered_names if candidate.lower() not in taken)
    taken.add(free.lower())
    return free


@dataclass(frozen=True, repr=False)
class Chart:
    """A figure of one group, with where its numbers come from, in one line."""

    panels: Panels
    group: Group
    source: str

    def __repr__(self) -> str:
        """Say what it shows."""
        return f"{self.panels.figure.name}: {self.panels.figure.title}, {self.group.label}"

    def _repr_svg_(self) -> str:
        """Return the drawing, which notebooks show."""
        drawn = picture(self.panels, self.group, form="svg", source=self.source).decode()
        label = html.escape(described(self.panels, self.group), quote=True)
        return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification with its data, for example for `altair.Chart.from_dict`."""
        return picture_specification(self.panels, self.group, source=self.source)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to a file; its ending, `.svg`, `.png` or `.pdf`, is the format.

        Raises:
            UsageError: the ending is another one.
            CannotCreateError: the folder cannot be written.
        """
        target = Path(path).expanduser()
        form = next((form for form in get_args(PictureFormat) if target.suffix.lower() == f".{form}"), None)
        if form is None:
            message = f"{target} does not end in {', '.join(f'.{form}' for form in get_args(PictureFormat))}"
            raise UsageError(message, remedy="Choose the format by the ending of the file.")
        make_folder(target.absolute().parent, "save")
        content = picture(self.panels, self.group, form=form, source=self.source)
        OwnFile("save", target.absolute(), PICTURE).replace(content)
        return target
