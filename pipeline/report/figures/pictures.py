"""Charts as pictures, drawn without a browser: SVG for the page, and files that explain themselves."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as ET

from ...visible_text import cleaned
from ..words import described
from .charts import chart
from .colours import in_hex

if TYPE_CHECKING:
    from .panels import Group, Panels

PictureFormat = Literal["svg", "png", "pdf"]
FORMATS: tuple[PictureFormat, ...] = ("svg", "png", "pdf")
PNG_SCALE = 2.0
WIDTH = 720
CAPTION_WIDTH = 106  # characters
LINE_HEIGHT, HEAD_HEIGHT = 16, 48
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_TAGS = frozenset({"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"})
_GEOMETRY = (
    "width",
    "height",
    "viewBox",
    "transform",
    "d",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "dx",
    "dy",
    "id",
    "clip-path",
)
_COLOURS = ("fill", "stroke", "opacity", "fill-opacity", "stroke-opacity")
_LINES = ("stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit")
_LETTERS = ("font-family", "font-size", "font-weight", "text-anchor")
_ATTRIBUTES = frozenset((*_GEOMETRY, *_COLOURS, *_LINES, *_LETTERS))
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")


def page_svg(panels: Panels, group: Group, *, prefix: str) -> str:
    """Draw a chart for the page: its colours follow the style sheet, and the key and the caption are the page's.

    Args:
        panels: The figure.
        group: The group.
        prefix: Begins the names that the drawing refers to, which must differ from those of the page's other charts.
    """
    import vl_convert  # noqa: PLC0415 - only to draw

    return inert(vl_convert.vegalite_to_svg(chart(panels, group), allowed_base_urls=[]), prefix=prefix)


def picture(panels: Panels, group: Group, *, form: PictureFormat, source: str) -> bytes:
    """Draw a file that can stand alone: with title, caption, key and where it comes from.

    Args:
        panels: The figure.
        group: The group.
        form: The format of the file.
        source: Where the numbers come from, in one line.
    """
    import vl_convert  # noqa: PLC0415 - only to draw

    specification = picture_specification(panels, group, source=source)
    if form == "svg":
        svg = vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])
        return f"{inert(svg, prefix='clip', label=described(panels, group))}\n".encode()
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, scale=PNG_SCALE, allowed_base_urls=[]))
    return bytes(vl_convert.vegalite_to_pdf(specification, allowed_base_urls=[]))


def picture_specification(panels: Panels, group: Group, *, source: str) -> dict[str, Any]:
    """Return the chart of a file as a Vega-Lite specification; arguments are those of `picture`."""
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

    Args:
        svg: The drawing.
        prefix: Begins the names that it refers to.
        label: What it shows, for people who cannot see it; empty where the page says so beside it.
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
