"""Figures as Vega-Lite charts: rows by group, colours and dashes, bands, lines and points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl

from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL, group_text, users_name
from ..base.visible_text import cleaned
from ..metrics.uncertainty.limits import DOUBTFUL, INTERVAL_QUALITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..stages.figures import Axis, Figure, Role, Rule, Series

    Json = dict[str, Any]


# The rows of a figure by group, under the names that every drawing uses, whatever the columns are called.
#
# Columns of a drawing: `x`; `v0`, `l0` and `u0` for value and limits of the first series, and so on; `d`, 1 where the
# limits of the row are doubtful. Chosen rows have `x`, `c` (the criterion) and the values.


GROUP = "group"


@dataclass(frozen=True)
class Group:
    """One group of a stage: the grouping as tables name it, and the values of its columns as text, or `all`.

    The namesake counts the groups of the grouping with the same text that come before it.
    """

    grouping: str
    text: str
    namesake: int = 0

    @property
    def is_total(self) -> bool:
        """Whether it is all rows."""
        return self.grouping == TOTAL

    @property
    def label(self) -> str:
        """The group for people."""
        return TOTAL if self.is_total else cleaned(f"{self.grouping} {self.text}", layout="")

    @property
    def short(self) -> str:
        """The group for people where its grouping is said elsewhere."""
        return cleaned(self.text, layout="")


def numbered(names: Iterable[tuple[str, str]]) -> Iterator[Group]:
    """Tell apart groups of the same text, such as `a, b` of one column and of two."""
    seen: dict[tuple[str, str], int] = {}
    for name in names:
        yield Group(*name, seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1


@dataclass(frozen=True)
class Panels:
    """A figure taken apart: the rows of every group, one after the other.

    Attributes:
        figure: The figure.
        rows: Its rows, with the column `group` that counts the groups.
        spans: Offset and number of rows of every group.
        chosen: The rows of operating points by group.
    """

    figure: Figure
    rows: pl.DataFrame
    spans: dict[Group, tuple[int, int]]
    chosen: dict[Group, pl.DataFrame]

    def rows_of(self, group: Group) -> pl.DataFrame:
        """The rows of one group."""
        return self.rows.slice(*self.spans[group])

    def at_most(self, number_of_rows: int) -> Panels:
        """Keep evenly spaced rows of every group, the last among them; bars, points and names are all kept."""
        is_whole = self.figure.x.format == "category" or any(map(stands, self.figure.series))
        if is_whole or max(length for _, length in self.spans.values()) <= number_of_rows:
            return self
        index, length = pl.int_range(pl.len()).over(GROUP), pl.len().over(GROUP)
        spaced = (index * number_of_rows // length) != ((index - 1) * number_of_rows // length)
        rows = self.rows.filter((length <= number_of_rows) | spaced | (index == length - 1))
        lengths = dict(rows.group_by(GROUP, maintain_order=True).len().iter_rows())
        return Panels(self.figure, rows, _spans(self.spans, lengths), self.chosen)

    @property
    def first(self) -> Group:
        """The group that is shown before another is chosen: all rows, or else the first."""
        return next((group for group in self.spans if group.is_total), next(iter(self.spans)))

    def extent(self, group: Group) -> tuple[float, float]:
        """Ends of the axis of values: all values and what it must reach, and limits unless they lie far beyond.

        Limits reach as far as half the range of the values beyond them, or as far as three quarters of all limits do.
        """
        rows, figure = self.rows_of(group), self.figure
        reached = [*figure.y.includes, *(end for rule in figure.rules if rule.axis == "y" for end in rule.ends)]
        if any(series.mark == "bar" for series in figure.series):
            reached.append(0.0)
        indices = range(len(figure.series))
        lowest, highest = _range([rows[f"v{index}"] for index in indices], reached)
        room = (highest - lowest) / 2
        lower = _limits(rows, [f"l{index}" for index in indices])
        upper = _limits(rows, [f"u{index}" for index in indices])
        if not lower.is_empty() and not upper.is_empty():
            usual = cast("float", lower.quantile(0.25, "higher")), cast("float", upper.quantile(0.75, "lower"))
            low, high = min(usual[0], lowest - room), max(usual[1], highest + room)
            lowest, highest = min(lowest, max(low, *lower.head(1))), max(highest, min(high, *upper.tail(1)))
        return (lowest, highest) if highest > lowest else (lowest - 0.5, highest + 0.5)


def _limits(rows: pl.DataFrame, names: list[str]) -> pl.Series:
    """All limits of some columns in order."""
    columns = [rows[name].alias("limit") for name in names if name in rows.columns]
    return pl.concat(columns).drop_nulls().sort() if columns else pl.Series("limit", [], pl.Float64)


def _range(columns: list[pl.Series], reached: list[float]) -> tuple[float, float]:
    ends = [float(end) for column in columns for end in (column.min(), column.max()) if isinstance(end, (int, float))]
    values = [*ends, *reached]
    return (min(values), max(values)) if values else (0.0, 1.0)


def panels(figure: Figure) -> Panels:
    """Take a figure apart by group."""
    if figure.across:
        rows = _drawn(figure, figure.frame).with_columns(pl.lit(0, pl.Int64).alias(GROUP))
        return Panels(figure, rows, {Group(TOTAL, TOTAL): (0, rows.height)}, {})
    keys = _keys(figure.frame)
    beginnings = figure.frame.with_row_index(GROUP).select(pl.col(GROUP).min().over(keys))
    rows = _drawn(figure, figure.frame).with_columns(beginnings)
    rows = rows.sort(GROUP, maintain_order=True).with_columns(pl.col(GROUP).rank("dense").cast(pl.Int64) - 1)
    names = _names(figure.frame.select(keys).unique(maintain_order=True))
    lengths = rows.group_by(GROUP, maintain_order=True).len()["len"]
    spans = _spans(dict.fromkeys(numbered(names), (0, 0)), dict(enumerate(lengths)))
    return Panels(figure, rows, spans, _chosen(figure))


def _spans(groups: dict[Group, tuple[int, int]], lengths: dict[int, int]) -> dict[Group, tuple[int, int]]:
    spans, offset = {}, 0
    for number, group in enumerate(groups):
        spans[group] = (offset, lengths[number])
        offset += lengths[number]
    return spans


def _keys(frame: pl.DataFrame) -> list[str]:
    return [GROUPING.name, *(name for name in frame.columns if name != users_name(name))]


def _names(groups: pl.DataFrame) -> Iterator[tuple[str, str]]:
    return ((str(row[GROUPING.name]), group_text(row)) for row in groups.iter_rows(named=True))


def _chosen(figure: Figure) -> dict[Group, pl.DataFrame]:
    frame = figure.chosen
    if frame is None or frame.is_empty():
        return {}
    keys = _keys(frame)
    groups = frame.select(keys).unique(maintain_order=True)
    values = [pl.col(series.column).cast(pl.Float64).alias(f"v{index}") for index, series in enumerate(figure.series)]
    rows = frame.select(*keys, _on_axis(figure.x), pl.col("criterion").alias("c"), *values)
    drawn = rows.partition_by(keys, maintain_order=True, include_key=False)
    return dict(zip(numbered(_names(groups)), drawn, strict=True))


def _drawn(figure: Figure, frame: pl.DataFrame) -> pl.DataFrame:
    columns = [_on_axis(figure.x)]
    for index, series in enumerate(figure.series):
        names = {"v": series.column, "l": series.lower, "u": series.upper}
        columns += [_finite(name).alias(f"{letter}{index}") for letter, name in names.items() if name]
    if INTERVAL_QUALITY in frame.columns:
        columns.append(pl.col(INTERVAL_QUALITY).is_in(DOUBTFUL).fill_null(value=False).cast(pl.Int8).alias("d"))
    return frame.select(columns)


def _finite(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value.is_finite()).then(value)


def _on_axis(axis: Axis) -> pl.Expr:
    column = pl.col(axis.column)
    if axis.format == "time":
        return column.cast(pl.Datetime("ms")).dt.epoch("ms").alias("x")
    if axis.format == "category":
        text = column.cast(pl.String).fill_null("null")
        return text.map_elements(lambda name: cleaned(name, layout=""), return_dtype=pl.String).alias("x")
    return _finite(axis.column).alias("x")


def as_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for a drawing, numbers rounded to seven digits."""
    rounded = frame.with_columns(pl.selectors.float().round_sig_figs(7))
    return rounded.with_row_index("i").to_dicts()


# Colours and dashes of what figures show: the same role looks the same in every figure.
#
# The hues follow Okabe and Ito. On their background they have a contrast of at least 4.8, `before` and `chance` of
# 3.1.


@dataclass(frozen=True)
class _Colour:
    """A colour on white and on the dark background, in hexadecimal digits, with its variable in the style sheet."""

    name: str
    light: str
    dark: str

    @property
    def variable(self) -> str:
        """The colour in a page, which follows the style sheet."""
        return f"var(--{self.name},{self.light})"


@dataclass(frozen=True)
class Look:
    """How one series or rule is drawn: its colour, and the lengths of dash and gap; none for a solid line."""

    colour: _Colour
    dash: tuple[int, ...] = ()


INK = _Colour("ink", "#1a1d21", "#e8eaed")
QUIET = _Colour("quiet", "#5b626a", "#a2a9b1")
GRID = _Colour("grid", "#e6e8eb", "#2b3036")
_PRECISION = _Colour("precision", "#0068a8", "#5cb3ea")
_RECALL = _Colour("recall", "#c24e00", "#f0913c")
_F1 = _Colour("f1", "#00785a", "#3ccf9f")
_BEFORE = _Colour("before", "#8b929b", "#7d858f")
_NEUTRAL = _Colour("neutral", "#4d5963", "#b4bcc4")
_VIOLET = _Colour("violet", "#8a3f86", "#d99bd4")
_OLIVE = _Colour("olive", "#6b6200", "#cfc04a")

_DASHED, _DOTTED, _LONG = (6, 3), (2, 2), (10, 4)
_LOOKS: dict[Role, Look] = {
    "precision": Look(_PRECISION),
    "recall": Look(_RECALL, _DASHED),
    "f1": Look(_F1, _DOTTED),
    "before": Look(_BEFORE),
    "after": Look(_PRECISION),
    "estimate": Look(_PRECISION),
    "gold": Look(INK, _LONG),
    "chance": Look(_NEUTRAL, _DASHED),
    "neutral": Look(_NEUTRAL),
}
_FURTHER = (Look(_VIOLET, _DASHED), Look(_OLIVE, _DOTTED), Look(_F1, _LONG), Look(_RECALL), Look(_NEUTRAL, _DOTTED))
PALETTE = (INK, QUIET, GRID, _PRECISION, _RECALL, _F1, _BEFORE, _NEUTRAL, _VIOLET, _OLIVE)


def look_of_role(role: Role) -> Look:
    """Return how a role is drawn."""
    return _LOOKS[role]


def looks(series: tuple[Series, ...]) -> tuple[Look, ...]:
    """Return how every series of a figure is drawn: as its role, or otherwise if an earlier one looks like that."""
    chosen: list[Look] = []
    for entry in series:
        look = _LOOKS[entry.role]
        if any(look.colour == taken.colour for taken in chosen):
            free = (further for further in _FURTHER if all(further.colour != taken.colour for taken in chosen))
            look = next(free, _FURTHER[len(chosen) % len(_FURTHER)])
        chosen.append(look)
    return tuple(chosen)


def in_hex(text: str) -> str:
    """Put hexadecimal digits where a drawing names a variable of the style sheet."""
    for colour in PALETTE:
        text = text.replace(colour.variable, colour.light)
    return text


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
    """The key of the chart, made of an invisible point for each name."""
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
    """Return how an axis at the side `x` or `y` is drawn, and whether its ticks are continued across the chart."""
    count = {"expr": f"max(1, min({TICKS}, floor(span(domain('{side}')))))"} if axis.format == "integer" else TICKS
    options: Json = {"labelOverlap": True, "labelFlush": False, "grid": grid, "tickCount": count}
    if axis.format in _FORMATS:
        options["format"] = _FORMATS[axis.format]
    return options


def configuration() -> Json:
    """Return what holds for all marks of a chart."""
    axis = {
        **dict.fromkeys(("labelColor", "titleColor"), QUIET.variable),
        **dict.fromkeys(("gridColor", "domainColor", "tickColor"), GRID.variable),
        **dict.fromkeys(("labelFontSize", "titleFontSize"), 12),
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
    """Draw one group of a figure: a Vega-Lite specification with its data.

    With a legend the chart has its own key, as pictures need it; on the page the key is text.
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
    """The common part of the layers of one chart.

    That is half the width of a bar on a horizontal axis of numbers, whether several series of bars or points stand at
    the same name, and the height in pixels.
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
        style = {"color": look.colour.variable, "opacity": BAND_OPACITY / 2, "interpolate": _interpolation(series)}
        area = {"type": "area", **style, "clip": True}
        upper = self._second(f"u{index}")
        firm = {"transform": [{"calculate": f"datum.d ? null : datum.l{index}", "as": "firm"}]}
        return [
            layer(area, {**self._channels(f"l{index}"), **upper}),
            {**layer(area, {**self._channels("firm"), **upper}), **firm},
        ]

    def _whiskers(self, index: int, series: Series, look: Look) -> Json:
        is_bar = series.mark == "bar"
        colour = INK.variable if is_bar else look.colour.variable
        mark = {"type": "rule", "color": colour, "strokeWidth": 2, "clip": True}
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
        style = {"strokeWidth": 2, "strokeJoin": "round", "interpolate": _interpolation(series)}
        line = {"type": "line", **style, **colour}
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
