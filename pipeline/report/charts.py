"""Figures as Vega-Lite charts, made with altair: bands under lines, gaps where undefined, operating points on top.

Every chart reads the rows of `panels` from the data sets `rows` and `chosen`, so that another group is drawn by
exchanging them. The ends of the vertical axis are the parameters `low` and `high`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pipeline.report.colours import GRID, INK, QUIET, Look, looks
from pipeline.report.panels import as_rows

if TYPE_CHECKING:
    import altair as alt

    from pipeline.report.panels import Group, Panels
    from pipeline.stages.figures import Axis, Figure, Rule, Series

WIDTH, HEIGHT = 540, 300
ROW_HEIGHT, MOST_ROWS = 24, 60
BAND_OPACITY = 0.18
ROWS, CHOSEN = "rows", "chosen"
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
RULE_LOOKS = (Look(INK, (2, 3)), Look(QUIET, (5, 4)), Look(QUIET, (9, 3, 2, 3)))


def is_flat(figure: Figure) -> bool:
    """Whether its horizontal axis holds names, which are then written one below the other."""
    return figure.x.format == "category"


def key_of(figure: Figure) -> list[tuple[str, Look, bool]]:
    """Names of series and rules, their looks, and whether each is a line."""
    marks = [
        (series.name, look, series.mark not in {"bar", "point"})
        for series, look in zip(figure.series, looks(figure.series), strict=True)
    ]
    rules = [(rule.name, RULE_LOOKS[index % len(RULE_LOOKS)], True) for index, rule in enumerate(figure.rules)]
    return [*marks, *rules]


@dataclass(frozen=True)
class _Drawing:
    """What the layers of one chart share.

    Attributes:
        figure: The figure.
        half: Half the width of a bar on a horizontal axis of numbers.
        crowded: Whether several series of bars or points stand at the same name.
    """

    figure: Figure
    half: float
    crowded: bool

    def along(self, field: str) -> alt.X | alt.Y:
        """The axis of names or thresholds."""
        import altair as alt  # noqa: PLC0415 - only to draw

        axis = self.figure.x
        if is_flat(self.figure):
            return alt.Y(f"{field}:N", sort=None, title=None, axis=alt.Axis(labelLimit=230, grid=False, ticks=False))
        return alt.X(
            f"{field}:{'T' if axis.format == 'time' else 'Q'}",
            title=axis.title,
            scale=_scale(axis),
            axis=_axis(axis, is_bar=self.half > 0),
        )

    def across(self, field: str) -> alt.X | alt.Y:
        """The axis of values."""
        import altair as alt  # noqa: PLC0415 - only to draw

        axis = self.figure.y
        if axis.logarithmic:
            scale = alt.Scale(type="log")
        else:
            scale = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=True, zero=False)
        channel = alt.X if is_flat(self.figure) else alt.Y
        return channel(f"{field}:Q", title=axis.title, scale=scale, axis=_axis(axis))

    def across_to(self, field: str) -> alt.X2 | alt.Y2:
        """The other end of a band or bar on the axis of values."""
        import altair as alt  # noqa: PLC0415 - only to draw

        return alt.X2(field) if is_flat(self.figure) else alt.Y2(field)

    def offset(self, name: str) -> dict[str, Any]:
        """Encoding that sets series at the same name apart."""
        import altair as alt  # noqa: PLC0415 - only to draw

        return {"yOffset": alt.YOffsetDatum(name)} if self.crowded else {}


def chart(panels: Panels, group: Group, *, legend: bool = False) -> dict[str, Any]:
    """Draw one group of a figure.

    Args:
        panels: The figure.
        group: The group.
        legend: Whether the chart has its own key, as pictures need it; on the page the key is text.

    Returns:
        A Vega-Lite specification with its data.
    """
    specification = template(panels, legend=legend)
    low, high = panels.extent(group)
    specification["params"] = [{"name": "low", "value": low}, {"name": "high", "value": high}]
    chosen = panels.chosen.get(group)
    specification["datasets"] = {
        ROWS: as_rows(panels.rows_of(group)),
        CHOSEN: [] if chosen is None else as_rows(chosen),
    }
    return specification


def template(panels: Panels, *, legend: bool = False) -> dict[str, Any]:
    """Draw a figure without its rows: a Vega-Lite specification that holds for every group."""
    import altair as alt  # noqa: PLC0415 - only to draw

    figure = panels.figure
    flat = is_flat(figure)
    standing = [series for series in figure.series if series.mark in {"bar", "point"}]
    drawing = _Drawing(figure, 0.0 if flat else _half_width(panels), crowded=flat and len(standing) > 1)
    layers = [
        *_reaches(drawing),
        *_grounds(drawing),
        *_rules(drawing),
        *_bands(drawing),
        *_marks(drawing),
        *_operating_points(drawing),
    ]
    if legend:
        layers.append(_key(figure))
    height = HEIGHT if not flat else _flat_height(panels, len(standing) if drawing.crowded else 1)
    layered = alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(width=WIDTH, height=height)
    layered = layered.properties(autosize=alt.AutoSizeParams(type="fit", contains="padding"), padding=4)
    low, high = alt.param(name="low", value=0), alt.param(name="high", value=1)
    return cast("dict[str, Any]", layered.add_params(low, high).configure(**_config()).to_dict())


def _flat_height(panels: Panels, series: int) -> int:
    most = max((panels.rows_of(group)["x"].n_unique() for group in panels.spans), default=1)
    return 56 + min(most, MOST_ROWS) * max(ROW_HEIGHT, 13 * series)


def _half_width(panels: Panels) -> float:
    """Half the width of a bar: a little less than half the least distance of two bars."""
    if not any(series.mark == "bar" for series in panels.figure.series):
        return 0.0
    places = panels.rows["x"].drop_nulls().unique().sort()
    least = places.diff().min() if places.len() > 1 else 1.0
    return 0.45 * float(cast("float", least))


def _grounds(drawing: _Drawing) -> list[alt.Chart]:
    """The line at zero, where the axis goes below it."""
    import altair as alt  # noqa: PLC0415 - only to draw

    if drawing.figure.y.logarithmic or any(rule.axis == "y" and rule.value == 0 for rule in drawing.figure.rules):
        return []
    channel = alt.X if is_flat(drawing.figure) else alt.Y
    zero = {"x" if is_flat(drawing.figure) else "y": channel("z:Q", title=drawing.figure.y.title)}
    data = alt.Data(values=[{"z": 0}])
    return [
        alt.Chart(data)
        .transform_filter("low < 0 && high >= 0")
        .mark_rule(color=QUIET.variable, strokeWidth=1.2, aria=False)
        .encode(**zero)
    ]


def _reaches(drawing: _Drawing) -> list[alt.Chart]:
    """Invisible marks that make the horizontal axis reach what it must."""
    import altair as alt  # noqa: PLC0415 - only to draw

    figure = drawing.figure
    if is_flat(figure) or not figure.x.includes:
        return []
    data = alt.Data(values=[{"r": value} for value in figure.x.includes])
    return [alt.Chart(data).mark_rule(opacity=0, aria=False).encode(x=drawing.along("r"))]


def _key(figure: Figure) -> alt.Chart:
    """The key of the chart: that of an invisible point for each name."""
    import altair as alt  # noqa: PLC0415 - only to draw

    entries = key_of(figure)
    names = [name for name, _, _ in entries]
    key = alt.Legend(
        orient="top",
        title=None,
        symbolType="stroke",
        symbolSize=260,
        symbolOpacity=1,
        symbolStrokeWidth=2.5,
        labelLimit=0,
    )
    colours = alt.Scale(domain=names, range=[look.colour.variable for _, look, _ in entries])
    dashes = alt.Scale(domain=names, range=[list(look.dash or (1, 0)) for _, look, _ in entries])
    points = alt.Chart(alt.Data(values=[{"name": name} for name in names])).mark_point(opacity=0, aria=False)
    return points.encode(
        color=alt.Color("name:N", scale=colours, legend=key),
        strokeDash=alt.StrokeDash("name:N", scale=dashes, legend=key),
    )


def _rules(drawing: _Drawing) -> list[alt.Chart]:
    rules = drawing.figure.rules
    return [_rule(drawing, rule, RULE_LOOKS[index % len(RULE_LOOKS)]) for index, rule in enumerate(rules)]


def _rule(drawing: _Drawing, rule: Rule, look: Look) -> alt.Chart:
    import altair as alt  # noqa: PLC0415 - only to draw

    style: dict[str, Any] = {"color": look.colour.variable, "strokeDash": look.dash, "strokeWidth": 1.4, "aria": False}
    if rule.axis == "diagonal":
        ends = [{"x": 0, "v": 0}, {"x": 1, "v": 1}]
        line = alt.Chart(alt.Data(values=ends)).mark_line(clip=True, **style)
        return line.encode(x=drawing.along("x"), y=drawing.across("v"))
    vertical = (rule.axis == "x") != is_flat(drawing.figure)
    axis = drawing.along("r") if rule.axis == "x" else drawing.across("r")
    mark = alt.Chart(alt.Data(values=[{"r": rule.value}])).mark_rule(**style)
    return mark.encode(**{"x" if vertical else "y": axis})


def _bands(drawing: _Drawing) -> list[alt.Chart]:
    """Intervals: bands of lines, paler where doubtful, and bars of points."""
    layers = []
    for index, (series, look) in enumerate(zip(drawing.figure.series, looks(drawing.figure.series), strict=True)):
        if not series.lower or not series.upper:
            continue
        if series.mark in {"line", "step"}:
            layers += _areas(drawing, index, series, look)
        elif series.mark in {"bar", "point"}:
            layers.append(_whiskers(drawing, index, series, look))
    return layers


def _areas(drawing: _Drawing, index: int, series: Series, look: Look) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415 - only to draw

    interpolate: Any = "step-after" if series.mark == "step" else "linear"
    areas = []
    for field, doubtful in ((f"l{index}", True), ("firm", False)):
        area = alt.Chart().mark_area(
            color=look.colour.variable, opacity=BAND_OPACITY / 2, interpolate=interpolate, clip=True, aria=False
        )
        if not doubtful:
            area = area.transform_calculate(firm=f"datum.d ? null : datum.l{index}")
        areas.append(area.encode(**_channels(drawing, field), **{_second(drawing): drawing.across_to(f"u{index}")}))
    return areas


def _second(drawing: _Drawing) -> str:
    return "x2" if is_flat(drawing.figure) else "y2"


def _channels(drawing: _Drawing, field: str) -> dict[str, Any]:
    along, across = drawing.along("x"), drawing.across(field)
    return {"y": along, "x": across} if is_flat(drawing.figure) else {"x": along, "y": across}


def _whiskers(drawing: _Drawing, index: int, series: Series, look: Look) -> alt.Chart:
    import altair as alt  # noqa: PLC0415 - only to draw

    paler = alt.condition("datum.d", alt.value(0.35), alt.value(0.9 if series.mark == "point" else 0.6))
    colour = INK.variable if series.mark == "bar" else look.colour.variable
    mark = alt.Chart().mark_rule(color=colour, strokeWidth=2, clip=True, aria=False)
    limits = {**_channels(drawing, f"l{index}"), _second(drawing): drawing.across_to(f"u{index}")}
    return mark.encode(opacity=paler, **limits, **drawing.offset(series.name))


def _marks(drawing: _Drawing) -> list[alt.Chart]:
    drawn = enumerate(zip(drawing.figure.series, looks(drawing.figure.series), strict=True))
    return [_mark(drawing, index, series, look) for index, (series, look) in drawn]


def _mark(drawing: _Drawing, index: int, series: Series, look: Look) -> alt.Chart:
    import altair as alt  # noqa: PLC0415 - only to draw

    colour, channels = look.colour.variable, _channels(drawing, f"v{index}")
    paler = alt.condition("datum.d", alt.value(0.45), alt.value(1))
    if series.mark == "point":
        points = alt.Chart().mark_point(filled=True, size=55, color=colour, clip=True, aria=False)
        return points.encode(**channels, opacity=paler, **drawing.offset(series.name))
    if series.mark == "bar":
        return _bars(drawing, index, series, look).encode(opacity=paler)
    interpolate: Any = "step-after" if series.mark == "step" else "linear"
    dash: Any = look.dash or alt.Undefined
    line = alt.Chart().mark_line(
        strokeWidth=2, color=colour, strokeDash=dash, interpolate=interpolate, clip=True, strokeJoin="round", aria=False
    )
    return line.encode(**channels, order=alt.Order("i:Q")) if series.mark == "path" else line.encode(**channels)


def _bars(drawing: _Drawing, index: int, series: Series, look: Look) -> alt.Chart:
    import altair as alt  # noqa: PLC0415 - only to draw

    bars = alt.Chart().mark_bar(color=look.colour.variable, clip=True, aria=False)
    if is_flat(drawing.figure):
        return bars.encode(**_channels(drawing, f"v{index}"), **drawing.offset(series.name))
    ends = {"x": drawing.along("x0"), "x2": alt.X2("x1"), "y": drawing.across(f"v{index}"), "y2": alt.Y2("base")}
    edges = bars.transform_calculate(x0=f"datum.x - {drawing.half}", x1=f"datum.x + {drawing.half}", base="0")
    return edges.encode(**ends)


def _operating_points(drawing: _Drawing) -> list[alt.Chart]:
    """The chosen rows: a line across the chart, and a dot on every line."""
    import altair as alt  # noqa: PLC0415 - only to draw

    figure, data = drawing.figure, alt.NamedData(name=CHOSEN)
    if figure.chosen is None:
        return []
    layers = []
    if not is_flat(figure) and all(series.mark != "path" for series in figure.series):
        rule = alt.Chart(data).mark_rule(color=INK.variable, strokeWidth=1.2, opacity=0.8, aria=False)
        layers.append(rule.encode(x=drawing.along("x")))
    for index, look in enumerate(looks(figure.series)):
        dot = alt.Chart(data).mark_point(
            filled=True,
            size=75,
            color=look.colour.variable,
            stroke=INK.variable,
            strokeWidth=1.4,
            opacity=1,
            aria=False,
        )
        layers.append(dot.encode(**_channels(drawing, f"v{index}")))
    return layers


def _scale(axis: Axis) -> alt.Scale:
    import altair as alt  # noqa: PLC0415 - only to draw

    kind: Any = "log" if axis.logarithmic else "utc" if axis.format == "time" else "linear"
    return alt.Scale(type=kind, zero=alt.Undefined if axis.logarithmic else False, nice=axis.format != "percent")


def _axis(axis: Axis, *, is_bar: bool = False) -> alt.Axis:
    import altair as alt  # noqa: PLC0415 - only to draw

    formats = {"percent": ".0%", "integer": ",d", "number": ",.4~g"}
    options: dict[str, Any] = {"format": formats[axis.format]} if axis.format in formats else {}
    if axis.format == "integer":
        options["tickMinStep"] = 1
    return alt.Axis(labelOverlap=True, labelFlush=False, grid=not is_bar, tickCount=6, **options)


def _config() -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - only to draw

    axis = alt.AxisConfig(
        labelColor=QUIET.variable,
        titleColor=QUIET.variable,
        gridColor=GRID.variable,
        domainColor=GRID.variable,
        tickColor=GRID.variable,
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        titlePadding=8,
        aria=False,
    )
    return {
        "font": FONT,
        "background": "transparent",
        "view": alt.ViewConfig(stroke=None),
        "axis": axis,
        "legend": alt.LegendConfig(labelColor=INK.variable, labelFontSize=12, aria=False),
        "title": alt.TitleConfig(color=INK.variable, fontSize=15, subtitleColor=QUIET.variable, subtitleFontSize=12),
    }
