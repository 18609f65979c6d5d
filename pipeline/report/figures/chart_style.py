"""How all charts look: fonts, axes, the key, and the marks of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .colours import GRID, INK, QUIET, Look, looks

if TYPE_CHECKING:
    from ...stages.figures import Axis, Figure, Series

    Json = dict[str, Any]

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
RULE_LOOKS = (Look(INK, (2, 3)), Look(QUIET, (5, 4)), Look(QUIET, (9, 3, 2, 3)))
TICKS = 6
_FORMATS = {"percent": ".0%", "integer": ",d", "number": ",.9~g"}


def stands(series: Series) -> bool:
    """Whether a series is drawn row by row, as bars or points."""
    return series.mark in {"bar", "point"}


def key_of(figure: Figure) -> list[tuple[str, Look, str]]:
    """Names of series and rules, the most important first, their looks, and what each is: `line`, `point` or `bar`."""
    drawn = list(zip(figure.series, looks(figure.series), strict=True))
    marks = [(series.name, look, series.mark if stands(series) else "line") for series, look in reversed(drawn)]
    rules = [
        (rule.name, rule_look(index), "bar" if rule.until is not None else "line")
        for index, rule in enumerate(figure.rules)
    ]
    return [*marks, *rules]


def rule_look(index: int) -> Look:
    """Return how a rule is drawn, by its place among the rules of a figure."""
    return RULE_LOOKS[index % len(RULE_LOOKS)]


def layer(mark: Json, encoding: Json, values: list[Json] | None = None) -> Json:
    """Return one layer of a chart: a mark, its encodings, and its own data if it has any."""
    drawn: Json = {"mark": {**mark, "aria": False}, "encoding": encoding}
    return drawn if values is None else {**drawn, "data": {"values": values}}


def key_layer(figure: Figure) -> Json:
    """The key of the chart: that of an invisible point for each name."""
    entries = key_of(figure)
    names = [name for name, _, _ in entries]
    colours = {"domain": names, "range": [look.colour.variable for _, look, _ in entries]}
    dashes = {"domain": names, "range": [list(look.dash or (1, 0)) for _, look, _ in entries]}
    style = {"symbolType": "stroke", "symbolSize": 260, "symbolOpacity": 1, "symbolStrokeWidth": 2.5, "labelLimit": 0}
    legend = {"orient": "top", "title": None, **style}
    encoding = {
        "color": {"field": "name", "type": "nominal", "scale": colours, "legend": legend},
        "strokeDash": {"field": "name", "type": "nominal", "scale": dashes, "legend": legend},
    }
    return layer({"type": "point", "opacity": 0}, encoding, [{"name": name} for name in names])


def axis_look(axis: Axis, side: str, *, grid: bool = True) -> Json:
    """Return how an axis is drawn.

    Args:
        axis: The axis.
        side: `x` or `y`, where it lies.
        grid: Whether its ticks are continued across the chart.
    """
    count = {"expr": f"max(1, min({TICKS}, floor(span(domain('{side}')))))"} if axis.format == "integer" else TICKS
    options: Json = {"labelOverlap": True, "labelFlush": False, "grid": grid, "tickCount": count}
    if axis.format in _FORMATS:
        options["format"] = _FORMATS[axis.format]
    return options


def configuration() -> Json:
    """Return what holds for all marks of a chart."""
    axis = {
        "labelColor": QUIET.variable,
        "titleColor": QUIET.variable,
        "gridColor": GRID.variable,
        "domainColor": GRID.variable,
        "tickColor": GRID.variable,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "aria": False,
    }
    title = {"color": INK.variable, "fontSize": 15, "subtitleColor": QUIET.variable, "subtitleFontSize": 12}
    legend = {"labelColor": INK.variable, "labelFontSize": 12, "aria": False}
    return {"font": FONT, "view": {"stroke": None}, "axis": axis, "legend": legend, "title": title}
