"""How all charts look: fonts, axes, the key, and the marks of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...records import dataclass
from .panels import GRID, INK, QUIET, Look, as_rows, looks

if TYPE_CHECKING:
    from ...stages.figures import Axis, Figure, Rule, Series
    from .panels import Group, Panels


if TYPE_CHECKING:
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


# Figures as Vega-Lite charts: bands under lines, gaps where undefined, operating points on top.
#
# Every chart reads the rows of `panels` from the data sets `rows` and `chosen`, so that another group is drawn by
# exchanging them. The ends of the axis of values are the parameters `low` and `high`.


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 540, 300
ROW_HEIGHT, SERIES_HEIGHT, MOST_NAMES = 24, 13, 60
BAND_OPACITY = 0.18
ROWS, CHOSEN = "rows", "chosen"


def is_flat(figure: Figure) -> bool:
    """Whether its horizontal axis holds names, which are then written one below the other."""
    return figure.x.format == "category"


def chart(panels: Panels, group: Group, *, legend: bool = False) -> Json:
    """Draw one group of a figure.

    Args:
        panels: The figure.
        group: The group.
        legend: Whether the chart has its own key, as pictures need it; on the page the key is text.

    Returns:
        A Vega-Lite specification with its data.
    """
    low, high = panels.extent(group)
    chosen = panels.chosen.get(group)
    data = {ROWS: as_rows(panels.rows_of(group)), CHOSEN: [] if chosen is None else as_rows(chosen)}
    params = [{"name": "low", "value": low}, {"name": "high", "value": high}]
    return {**template(panels, legend=legend), "params": params, "datasets": data}


def template(panels: Panels, *, legend: bool = False) -> Json:
    """Draw a figure without its rows: a Vega-Lite specification that holds for every group."""
    drawing = _Drawing.of(panels)
    return {
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": drawing.height,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": 4,
        "background": "transparent",
        "params": [{"name": "low", "value": 0}, {"name": "high", "value": 1}],
        "datasets": {ROWS: [], CHOSEN: []},
        "data": {"name": ROWS},
        "layer": [*drawing.layers(), *([key_layer(panels.figure)] if legend else [])],
        "config": configuration(),
    }


@dataclass(frozen=True)
class _Drawing:
    """What the layers of one chart share.

    Attributes:
        figure: The figure.
        half: Half the width of a bar on a horizontal axis of numbers.
        crowded: Whether several series of bars or points stand at the same name.
        height: Height of the chart in pixels.
    """

    figure: Figure
    half: float
    crowded: bool
    height: int

    @classmethod
    def of(cls, panels: Panels) -> _Drawing:
        """Measure a figure."""
        figure = panels.figure
        if not is_flat(figure):
            return cls(figure, _half_width(panels), crowded=False, height=HEIGHT)
        standing = sum(stands(series) for series in figure.series)
        names = max((panels.rows_of(group)["x"].n_unique() for group in panels.spans), default=1)
        height = 56 + min(names, MOST_NAMES) * max(ROW_HEIGHT, SERIES_HEIGHT * standing)
        return cls(figure, 0.0, crowded=standing > 1, height=height)

    def layers(self) -> list[Json]:
        """All layers, the lowest first."""
        drawn = list(enumerate(zip(self.figure.series, looks(self.figure.series), strict=True)))
        limits = [layer for index, (series, look) in drawn for layer in self._limits(index, series, look)]
        marks = [self._mark(index, series, look) for index, (series, look) in drawn]
        rules = [self._rule(rule, rule_look(index)) for index, rule in enumerate(self.figure.rules)]
        return [*self._reached(), *self._zero(), *rules, *limits, *marks, *self._operating_points()]

    def _along(self, field: str) -> Json:
        """The axis of names, thresholds or times."""
        axis = self.figure.x
        if is_flat(self.figure):
            style = {"labelLimit": 230, "grid": False, "ticks": False}
            return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": style}
        scale: Json = {"type": "log"} if axis.logarithmic else {"zero": False}
        if axis.format == "time":
            scale["type"] = "utc"
        if any(series.mark == "point" for series in self.figure.series):
            scale["padding"] = 14
        return {
            "field": field,
            "type": "temporal" if axis.format == "time" else "quantitative",
            "title": axis.title,
            "scale": {**scale, "nice": axis.format != "percent"},
            "axis": axis_look(axis, "x", grid=self.half == 0),
        }

    def _across(self, field: str) -> Json:
        """The axis of values."""
        axis = self.figure.y
        ends = {"domain": [{"expr": "low"}, {"expr": "high"}], "nice": True, "zero": False}
        scale = {"type": "log"} if axis.logarithmic else ends
        look = axis_look(axis, "x" if is_flat(self.figure) else "y")
        return {"field": field, "type": "quantitative", "title": axis.title, "scale": scale, "axis": look}

    def _channels(self, field: str) -> Json:
        """Both axes: names stand on the vertical one."""
        along, across = self._along("x"), self._across(field)
        return {"y": along, "x": across} if is_flat(self.figure) else {"x": along, "y": across}

    def _second(self, field: str) -> Json:
        """The other end of a band or bar on the axis of values."""
        return {"x2" if is_flat(self.figure) else "y2": {"field": field}}

    def _offset(self, name: str) -> Json:
        """Sets series at the same name apart."""
        names = [series.name for series in reversed(self.figure.series) if stands(series)]
        return {"yOffset": {"datum": name, "scale": {"domain": names}}} if self.crowded else {}

    def _reached(self) -> list[Json]:
        """Invisible marks that make the horizontal axis reach what it must."""
        includes = self.figure.x.includes
        if is_flat(self.figure) or not includes:
            return []
        return [layer({"type": "rule", "opacity": 0}, {"x": self._along("r")}, [{"r": value} for value in includes])]

    def _zero(self) -> list[Json]:
        """The line at zero, where the axis goes below it."""
        axis, rules = self.figure.y, self.figure.rules
        if axis.logarithmic or any(rule.axis == "y" and rule.value == 0 for rule in rules):
            return []
        side = "x" if is_flat(self.figure) else "y"
        mark = {"type": "rule", "color": QUIET.variable, "strokeWidth": 1.2}
        zero = layer(mark, {side: self._across("z")}, [{"z": 0}])
        return [{**zero, "transform": [{"filter": "low < 0 && high >= 0"}]}]

    def _rule(self, rule: Rule, look: Look) -> Json:
        style = {"color": look.colour.variable, "strokeDash": list(look.dash), "strokeWidth": 1.4}
        if rule.axis == "diagonal":
            axes = {"x": self._along("x"), "y": self._across("v")}
            return layer({"type": "line", "clip": True, **style}, axes, [{"x": 0, "v": 0}, {"x": 1, "v": 1}])
        side = "x" if (rule.axis == "x") != is_flat(self.figure) else "y"
        axis = self._along("r") if rule.axis == "x" else self._across("r")
        if rule.until is None:
            return layer({"type": "rule", **style}, {side: axis}, [{"r": rule.value}])
        mark = {"type": "rect", "color": look.colour.variable, "opacity": BAND_OPACITY, "clip": True}
        return layer(mark, {side: axis, f"{side}2": {"field": "e"}}, [{"r": rule.value, "e": rule.until}])

    def _limits(self, index: int, series: Series, look: Look) -> list[Json]:
        """Intervals: bands of lines, paler where doubtful, and bars of points."""
        if not series.lower or not series.upper:
            return []
        if stands(series):
            return [self._whiskers(index, series, look)]
        area = {
            "type": "area",
            "color": look.colour.variable,
            "opacity": BAND_OPACITY / 2,
            "interpolate": _interpolation(series),
            "clip": True,
        }
        upper = self._second(f"u{index}")
        firm = {"transform": [{"calculate": f"datum.d ? null : datum.l{index}", "as": "firm"}]}
        return [
            layer(area, {**self._channels(f"l{index}"), **upper}),
            {**layer(area, {**self._channels("firm"), **upper}), **firm},
        ]

    def _whiskers(self, index: int, series: Series, look: Look) -> Json:
        is_bar = series.mark == "bar"
        mark = {
            "type": "rule",
            "color": INK.variable if is_bar else look.colour.variable,
            "strokeWidth": 2,
            "clip": True,
        }
        opacity = _paler(0.35, 0.6 if is_bar else 0.9)
        axes = {**self._channels(f"l{index}"), **self._second(f"u{index}")}
        return layer(mark, {**axes, "opacity": opacity, **self._offset(series.name)})

    def _mark(self, index: int, series: Series, look: Look) -> Json:
        colour = {"color": look.colour.variable, "clip": True}
        if series.mark == "bar":
            return self._bars(index, series, {"type": "bar", **colour})
        axes = self._channels(f"v{index}")
        if series.mark == "point":
            points = {"type": "point", "filled": True, "size": 55, **colour, "clip": self.figure.y.logarithmic}
            drawn = layer(points, {**axes, "opacity": _paler(0.45, 1), **self._offset(series.name)})
            if self.figure.y.logarithmic:
                return drawn
            inside = f"datum.v{index} >= low && datum.v{index} <= high"  # one at the edge is drawn whole
            return {**drawn, "transform": [{"filter": inside}]}
        line = {
            "type": "line",
            "strokeWidth": 2,
            "strokeJoin": "round",
            "interpolate": _interpolation(series),
            **colour,
        }
        if look.dash:
            line["strokeDash"] = list(look.dash)
        if series.mark == "path":
            axes["order"] = {"field": "i", "type": "quantitative"}
        return layer(line, axes)

    def _bars(self, index: int, series: Series, mark: Json) -> Json:
        opacity = {"opacity": _paler(0.45, 1)}
        if is_flat(self.figure):
            return layer(mark, {**self._channels(f"v{index}"), **opacity, **self._offset(series.name)})
        ends = {"x0": f"datum.x - {self.half}", "x1": f"datum.x + {self.half}", "base": "0"}
        axes = {"x": self._along("x0"), "x2": {"field": "x1"}, "y": self._across(f"v{index}"), "y2": {"field": "base"}}
        edges = [{"calculate": formula, "as": name} for name, formula in ends.items()]
        return {**layer(mark, {**axes, **opacity}), "transform": edges}

    def _operating_points(self) -> list[Json]:
        """The chosen rows: a line across the chart, and a dot on every line."""
        figure, data = self.figure, {"data": {"name": CHOSEN}}
        if figure.chosen is None:
            return []
        layers = []
        if not is_flat(figure) and all(series.mark != "path" for series in figure.series):
            line = {"type": "rule", "color": INK.variable, "strokeWidth": 1.2, "opacity": 0.8}
            layers.append(layer(line, {"x": self._along("x")}))
        for index, look in enumerate(looks(figure.series)):
            dot = {"type": "point", "filled": True, "size": 75, "color": look.colour.variable, "opacity": 1}
            layers.append(layer({**dot, "stroke": INK.variable, "strokeWidth": 1.4}, self._channels(f"v{index}")))
        return [{**drawn, **data} for drawn in layers]


def _paler(doubtful: float, firm: float) -> Json:
    return {"condition": {"test": "datum.d", "value": doubtful}, "value": firm}


def _interpolation(series: Series) -> str:
    return "step-after" if series.mark == "step" else "linear"


def _half_width(panels: Panels) -> float:
    """Half the width of a bar: a little less than half the least distance of two bars; 0 without bars."""
    if not any(series.mark == "bar" for series in panels.figure.series):
        return 0.0
    middles = panels.rows["x"].drop_nulls().unique().sort()
    least = middles.diff().min() if middles.len() > 1 else 1.0
    return 0.45 * float(cast("float", least))
