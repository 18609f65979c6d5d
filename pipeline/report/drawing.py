"""Live charts of the page: the rows of all figures in few characters, keys, small multiples, and history."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.errors import ThresherError
from ..base.paths import remove_own
from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL
from ..sources.remote import folder_for_caches
from ..stages.figures import Axis, Figure, Rule, Series
from ..storage.layout import Layout, generation_of
from ..storage.state import read_state
from .charts import BAND_OPACITY, GRID, GROUP, INK, Group, Panels, is_flat, key_of, looks, numbered, panels
from .published import PublishedRun, read_run
from .summary import counted, described, keys_on_request, value_text
from .text import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..stages.figures import KeyNumber
    from .charts import Look
    from .published import PublishedStage


_CODE = "window.vegaEmbed = vegaEmbed;"
_PRIVATE = 0o700


def drawing_script() -> str:
    """Return the script.

    It depends on the version of vl-convert alone and takes it about a second, so that it is kept in the user's folder
    for caches, with the digest of its content; a copy that is damaged, or cannot be kept, is made anew.
    """
    import vl_convert  # noqa: PLC0415 - only to draw

    name = f"charts-{version('vl-convert-python')}.js"
    with suppress(OSError, RuntimeError):  # no such copy, or no folder of the user's
        if (script := _kept(folder_for_caches() / name)) is not None:
            return script
    script = str(vl_convert.javascript_bundle(_CODE))
    with suppress(OSError, RuntimeError):
        path = folder_for_caches() / name
        content = script.encode()
        path.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            unfinished.write_bytes(b"\n".join([_digest(content).encode(), content]))
            unfinished.replace(path)
        finally:
            remove_own(unfinished, path.parent)
    return script


def _kept(path: Path) -> str | None:
    """The script of a copy; None if it is damaged."""
    digest, _, content = path.read_bytes().partition(b"\n")
    return content.decode() if digest.decode("ascii", "replace") == _digest(content) else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(_CODE.encode() + content).hexdigest()


# The rows of all figures in few characters: each list of numbers once, ratios as differences of integers.
#
# A list begins with how it is written: `r` values as they are; `d` and a factor, differences of integers from the
# value before, NULL left out of the sum. The page decodes the lists of the group that it shows.


RATIO_FACTOR = 10_000
INTEGER_FACTOR = 1


@dataclass
class Lists:
    """Lists that figures refer to by their place; equal lists are kept once.

    Attributes:
        written: The lists.
        size: Number of values in them.
    """

    written: list[list[Any]] = field(default_factory=list)
    size: int = 0
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, values: list[Any]) -> int:
        """Add a list unless it is there; return its place."""
        key = tuple(values)
        if key not in self._places:
            self._places[key] = len(self.written)
            self.written.append(values)
            self.size += len(values)
        return self._places[key]


def encoded(panels: Panels, groups: Sequence[Group], lists: Lists) -> dict[int, dict[str, Any]]:
    """Write the rows of a figure, its lists of numbers to `lists`.

    Returns:
        For the place of every group: the place of the list of each column, the ends of the vertical axis, and the
        chosen rows.
    """
    columns = {name: _written(panels, name) for name in panels.rows.columns if name != GROUP}
    places = {group: number for number, group in enumerate(groups)}
    result = {}
    for group, (offset, length) in panels.spans.items():
        if group not in places:
            continue
        span = {name: lists.add([*head, *values[offset : offset + length]]) for name, (head, values) in columns.items()}
        chosen = panels.chosen.get(group)
        result[places[group]] = {
            "columns": span,
            "ends": [float(f"{end:.7g}") for end in panels.extent(group)],
            "chosen": [] if chosen is None else chosen.with_columns(pl.selectors.float().round_sig_figs(7)).to_dicts(),
        }
    return result


def _written(panels: Panels, name: str) -> tuple[list[Any], list[Any]]:
    """How a column is written, and its values, group by group."""
    column = panels.rows[name]
    axis = panels.figure.x if name == "x" else panels.figure.y
    if name == "d":
        return ["r"], column.to_list()
    if axis.format == "percent" and not axis.logarithmic:
        return ["d", RATIO_FACTOR], _differences(panels.rows, pl.col(name) * RATIO_FACTOR)
    if axis.format in {"integer", "time"} and (column.drop_nulls() == column.drop_nulls().round()).all():
        return ["d", INTEGER_FACTOR], _differences(panels.rows, pl.col(name))
    if axis.format == "category" or column.dtype == pl.String:
        return ["r"], column.to_list()
    return ["r"], column.round_sig_figs(7).to_list()


def _differences(rows: pl.DataFrame, scaled: pl.Expr) -> list[Any]:
    integers = scaled.round().cast(pl.Int64)
    before = integers.forward_fill().shift(1).over(GROUP).fill_null(0)
    return rows.select(value=integers - before)["value"].to_list()


def key(figure: Figure) -> Markup:
    """Make the key of a figure, as text beside small pieces of its lines."""
    return element("ul", *(_key_entry(*entry) for entry in key_of(figure)), class_="key")


def _key_entry(name: str, look: Look, shape: str) -> Markup:
    dashes = " ".join(map(str, look.dash)) or None
    if shape == "line":
        stroke = {"stroke": look.colour.variable, "stroke_width": "2.5", "stroke_dasharray": dashes}
        mark = element("line", x1="0", y1="5", x2="26", y2="5", **stroke)
    elif shape == "point":
        mark = element("circle", cx="13", cy="5", r="4.5", fill=look.colour.variable)
    else:
        mark = element("rect", x="8", y="0", width="10", height="10", fill=look.colour.variable)
    swatch = element("svg", mark, viewBox="0 0 26 10", aria_hidden="true")
    return element("li", swatch, name)


# Small multiples: the first curves of a stage for its largest groups, side by side on the same axes.


MOST_MULTIPLES = 12
FEWEST_MULTIPLES = 2
MOST_POINTS = 60  # of a line
WIDTH, HEIGHT = 200.0, 110.0
_CURVES = frozenset({"line", "step", "path"})

Point = tuple[float, float]


def multiples(content: StageContent) -> Markup | None:
    """Make the small charts of a stage; None if it has no curve by group, or too few groups.

    They show the first figure whose series are all curves. The groups are the first that the stage gives, which are
    those with most data.
    """
    with_groups = (panels for panels in content.figures if not (panels.figure.across or is_flat(panels.figure)))
    drawn = next((each for each in with_groups if all(s.mark in _CURVES for s in each.figure.series)), None)
    if drawn is None:
        return None
    groups = [group for group in content.groups if not group.is_total and group in drawn.spans]
    if len(groups) < FEWEST_MULTIPLES:
        return None
    shown = groups[:MOST_MULTIPLES]
    frame = _Frame.of(drawn.at_most(MOST_POINTS), shown)
    charts = [_multiple(frame, group, str(content.groups.index(group))) for group in shown]
    which = f"the {len(shown)} groups with most data" if len(groups) > len(shown) else "all groups"
    return joined(
        element("h4", f"{drawn.figure.title}: {which}, side by side"),
        key(drawn.figure),
        element("p", frame.axes_in_words(), class_="note"),
        element("div", *charts, class_="multiples"),
    )


@dataclass(frozen=True)
class _Frame:
    """The axes that all small charts share, with the lowest and highest value of each."""

    panels: Panels
    along: Point
    across: Point

    @classmethod
    def of(cls, panels: Panels, groups: Sequence[Group]) -> _Frame:
        """Find axes on which the curves of all groups lie."""
        figure = panels.figure
        ends = [panels.rows_of(group)["x"].drop_nulls() for group in groups]
        reached = [end for values in ends if len(values) for end in (values.min(), values.max())]
        along = [float(end) for end in (*reached, *figure.x.includes)]  # type: ignore[arg-type]  # numbers
        extents = [panels.extent(group) for group in groups]
        low, high = min(low for low, _ in extents), max(high for _, high in extents)
        return cls(panels, (min(along, default=0.0), max(along, default=1.0)), (low, high))

    def axes_in_words(self) -> str:
        """The axes in words: what they measure, from where to where."""
        figure = self.panels.figure
        told = [
            f"{axis.title}, {' to '.join(value_text(end, axis.format) for end in ends)}"
            for axis, ends in ((figure.x, self.along), (figure.y, self.across))
        ]
        return f"All have the same axes: {'; '.join(told)}. A name chooses its group."

    def at(self, along: float | None, across: float | None) -> Point | None:
        """Where a value lies in a chart; None where there is none."""
        figure = self.panels.figure
        x = _share(along, self.along, logarithmic=figure.x.logarithmic)
        y = _share(across, self.across, logarithmic=figure.y.logarithmic)
        return None if x is None or y is None else (x * WIDTH, (1 - y) * HEIGHT)


def _share(value: float | None, ends: Point, *, logarithmic: bool) -> float | None:
    """How far along an axis a value lies, from 0 to 1; what lies beyond an end lies at it."""
    low, high = ends
    if value is None or (logarithmic and (value <= 0 or low <= 0)):
        return None
    if logarithmic:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def _multiple(frame: _Frame, group: Group, number: str) -> Markup:
    panels = frame.panels
    shares = (0.0, 0.5, 1.0)  # lines at the ends and in the middle of both axes
    grid = [ends for s in shares for ends in ((s * WIDTH, 0, s * WIDTH, HEIGHT), (0, s * HEIGHT, WIDTH, s * HEIGHT))]
    names = ("x1", "y1", "x2", "y2")
    middle = [
        element("line", **{name: f"{end:g}" for name, end in zip(names, ends, strict=True)}, stroke=GRID.variable)
        for ends in grid
    ]
    series = list(enumerate(zip(panels.figure.series, looks(panels.figure.series), strict=True)))
    bands = [band for index, (_, look) in series if (band := _band(frame, group, index, look)) is not None]
    lines = [_curve(frame, group, index, look, is_step=entry.mark == "step") for index, (entry, look) in series]
    dots = [
        element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="3", fill=look.colour.variable, stroke=INK.variable)
        for index, (_, look) in series
        for x, y in _chosen(frame, group, index)
    ]
    box = {"viewBox": f"-3 -3 {WIDTH + 6:g} {HEIGHT + 6:g}", "role": "img", "aria_label": described(panels, group)}
    chart = element("svg", *middle, *bands, *lines, *dots, **box)
    return element("div", element("button", group.short, type="button", data_group=number), chart)


def _curve(frame: _Frame, group: Group, index: int, look: Look, *, is_step: bool) -> Markup:
    rows = frame.panels.rows_of(group)
    points = [frame.at(*row) for row in rows.select("x", f"v{index}").iter_rows()]
    dashes = " ".join(map(str, look.dash)) or None
    stroke = {"stroke": look.colour.variable, "stroke_width": "1.6", "stroke_dasharray": dashes}
    return element("path", d=_path(points, is_step=is_step), fill="none", **stroke)


def _path(points: Sequence[Point | None], *, is_step: bool) -> str:
    """A line through points, with a gap where there is none."""
    steps, pen_is_down = [], False
    for point in points:
        if point is not None:
            x, y = point
            steps.append(
                (f"H{x:.1f}V{y:.1f}" if is_step else f"L{x:.1f},{y:.1f}") if pen_is_down else f"M{x:.1f},{y:.1f}"
            )
        pen_is_down = point is not None
    return "".join(steps)


def _band(frame: _Frame, group: Group, index: int, look: Look) -> Markup | None:
    """The limits of a line, or the region that holds a path, as an area."""
    series, rows = frame.panels.figure.series[index], frame.panels.rows_of(group)
    if not (series.lower and series.upper):
        return None
    limits = rows.select("x", f"l{index}", f"u{index}").drop_nulls().sort("x").rows()
    upper = [frame.at(x, high) for x, _, high in limits]
    lower = [frame.at(x, low) for x, low, _ in reversed(limits)]
    outline = _path([*upper, *lower], is_step=False)
    return element("path", d=outline, fill=look.colour.variable, fill_opacity=str(BAND_OPACITY)) if outline else None


def _chosen(frame: _Frame, group: Group, index: int) -> Iterator[Point]:
    chosen = frame.panels.chosen.get(group)
    if chosen is not None:
        points = (frame.at(*row) for row in chosen.select("x", f"v{index}").iter_rows())
        yield from (point for point in points if point is not None)


# The key numbers of the kept runs, one figure for each stage: how they moved from run to run.


MOST_RUNS = 20
MOST_CHANGES = 1
RUN, DAY = "run", "day"


def kept_runs(results: Path, run: PublishedRun) -> tuple[PublishedRun, ...]:
    """Read back the last kept runs up to one of them, the oldest first; those that are damaged are left out."""
    kept = [entry for entry in read_state(Layout(results)).runs if generation_of(entry.folder.name) < run.generation]
    earlier = []
    for entry in kept[-(MOST_RUNS - 1) :]:
        if entry.manifest is None or not entry.is_readable:
            continue
        try:
            earlier.append(read_run(entry.folder, entry.manifest.published_at))
        except ThresherError:  # a record of another format: the numbers of other runs are worth showing
            continue
    return (*earlier, run)


def history(runs: Sequence[PublishedRun]) -> tuple[Panels, ...]:
    """Draw the key numbers of all rows, or of the first group, of every stage that earlier runs have, too.

    Where all runs have a day, they lie at their days, of each day the run that was published last.
    """
    stages = runs[-1].stages
    if all(_day(run) for run in runs):
        last_of_day = {_day(run): run for run in runs}
        runs = [last_of_day[day] for day in sorted(last_of_day)]
    figures = (_figure(runs, stage.name, number) for number, stage in enumerate(stages))
    return tuple(panels(figure) for figure in figures if figure is not None)


def _day(run: PublishedRun) -> str:
    """The day that a run is about, ISO; empty if it has none."""
    return str(run.record.get("ds") or "")


def _figure(runs: Sequence[PublishedRun], stage: str, number: int) -> Figure | None:
    numbers = list(_numbers(runs, stage))[::-1]
    if len(numbers) < 2:  # noqa: PLR2004 - a history
        return None
    names = [name for name, number in numbers[-1][1].items() if number.format == numbers[-1][2].format][::-1]
    rows = [_row(run, named, names) for run, named, _ in numbers]
    are_days = all(_day(run) for run in runs)
    last = numbers[-1][2]
    columns = {f"{letter}{index}": pl.Float64 for index in range(len(names)) for letter in ("value", "lower", "upper")}
    frame = pl.DataFrame(rows, schema={GROUPING.name: pl.String, RUN: pl.Int64, DAY: pl.String, **columns})
    series = [
        Series(f"value{index}", name, numbers[-1][1][name].role, "line", f"lower{index}", f"upper{index}")
        for index, name in enumerate(names)
    ]
    changes = _changes([run for run in runs if any(entry.name == stage for entry in run.stages)], stage)
    whose = "" if last.grouping == TOTAL else f" of {last.grouping} {last.group}"
    return Figure(
        name=f"history_{number}",
        title=f"{stage}: {len(rows)} days" if are_days else f"{stage}: the last {len(rows)} runs",
        caption=f"Key numbers{whose} from {'day to day' if are_days else 'run to run'}, with their intervals as bands."
        + (" The line marks the last run before which the config or the code changed." if changes else ""),
        frame=frame.with_columns(pl.col(DAY).str.to_date(strict=False)),
        x=Axis(DAY, "day", "time") if are_days else Axis(RUN, "run", "integer"),
        y=Axis("", "", last.format),
        series=tuple(series),
        rules=tuple(
            Rule("config or code changed", _position(run, are_days=are_days)) for run in changes[-MOST_CHANGES:]
        ),
        across=True,
    )


def _position(run: PublishedRun, *, are_days: bool) -> float:
    """Where a run lies on the axis: milliseconds of its day, or its generation."""
    if not are_days:
        return float(run.generation)
    return datetime.fromisoformat(_day(run)).replace(tzinfo=UTC).timestamp() * 1000


def _numbers(
    runs: Sequence[PublishedRun], stage: str
) -> Iterator[tuple[PublishedRun, dict[str, KeyNumber], KeyNumber]]:
    """Key numbers by name, and the first of them, of every run that counted the stage, the last run first.

    Numbers that were carried forward stand for the run that counted them, unless that is gone.
    """
    wanted: tuple[str, str] | None = None
    run_ids = {run.run_id for run in runs}
    for run in reversed(runs):
        for published in run.stages:
            if (
                published.name != stage
                or str((run.record["results"][published.name].get("carried_from") or {}).get("run_id", "")) in run_ids
            ):
                continue
            for group, named in numbers_by_group(published).items():
                if wanted is None:
                    wanted = (group.grouping, group.text)
                if (group.grouping, group.text) == wanted:
                    yield run, named, next(iter(named.values()))
                    break


def _row(run: PublishedRun, named: dict[str, KeyNumber], names: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {GROUPING.name: TOTAL, RUN: run.generation, DAY: _day(run) or None}
    for index, name in enumerate(names):
        number = named.get(name)
        if number is not None:
            row |= {f"value{index}": number.value, f"lower{index}": number.lower, f"upper{index}": number.upper}
    return row


def _changes(runs: Sequence[PublishedRun], stage: str) -> list[PublishedRun]:
    """Runs with other code, or other parameters of the stage, than the run before."""
    marks = [
        (run.record.get("code_sha256"), next(dict(entry.parameters) for entry in run.stages if entry.name == stage))
        for run in runs
    ]
    pairs = zip(runs[1:], marks[1:], marks, strict=False)
    return [run for run, mark, before in pairs if mark != before]


MOST_GROUPS = 2000


@dataclass(frozen=True)
class StageContent:
    """One stage of a run, ready to be shown.

    Attributes:
        published: The stage as it was published.
        anchor: Its name in links of the page: user text never stands there.
        sentence: Its main result in words.
        groups: Its groups, at most `MOST_GROUPS` of them, in the order in which the stage gives them.
        left_out: How many groups more there are.
        numbers: The key numbers of every group by their name.
        number_names: The names of the key numbers in order.
        figures: Its figures, with the rows of every group.
    """

    published: PublishedStage
    anchor: str
    sentence: str
    groups: tuple[Group, ...]
    left_out: int
    numbers: dict[Group, dict[str, KeyNumber]]
    number_names: tuple[str, ...]
    figures: tuple[Panels, ...]

    @property
    def shown(self) -> Group | None:
        """The group that is shown before another is chosen; None if the stage shows none."""
        return self.groups[0] if self.groups else None

    @property
    def rows_in_words(self) -> str:
        """The inputs with their numbers of rows."""
        accounts = self.published.accounts
        return " · ".join(f"{name}: {counted(account['rows_in'], 'row')}" for name, account in accounts.items())


def stage_content(published: PublishedStage, anchor: str) -> StageContent:
    """Read what the page shows of a stage."""
    numbers = numbers_by_group(published)
    figures = tuple(panels(figure) for figure in published.figures())
    groups = list(
        dict.fromkeys(
            [*numbers, *(group for drawn in figures for group in (() if drawn.figure.across else tuple(drawn.spans)))]
        )
    )
    groups.sort(key=lambda group: not group.is_total)
    return StageContent(
        published=published,
        anchor=anchor,
        sentence=published.stage.summarize(published.tables).sentence,
        groups=tuple(groups[:MOST_GROUPS]),
        left_out=max(0, len(groups) - MOST_GROUPS),
        numbers=numbers,
        number_names=tuple(dict.fromkeys(name for named in numbers.values() for name in named)),
        figures=figures,
    )


def numbers_by_group(published: PublishedStage) -> dict[Group, dict[str, KeyNumber]]:
    """Return the key numbers of a stage by group and name, groups in the order in which the stage gives them.

    A name that comes again in the same group belongs to a group with the same text.
    """
    numbers: dict[Group, dict[str, KeyNumber]] = {}
    seen: dict[str, list[KeyNumber]] = {}
    for number in published.stage.key_numbers(published.tables):
        seen.setdefault(number.name, []).append(number)
    for name, of_groups in seen.items():
        groups = numbered((number.grouping, number.group) for number in of_groups)
        for group, number in zip(groups, of_groups, strict=True):
            numbers.setdefault(group, {})[name] = number
    return numbers


# How a stage was measured: rows, bindings, parameters, tables, versions, and the query for the same numbers.


_UNSET: tuple[object, ...] = (None, [], {})
_NOT_PARAMETERS = frozenset({"name", "kind", "by"})


def measured(published: PublishedStage, run: PublishedRun, results: Path) -> Markup:
    """Make the folded account of how a stage was measured."""
    entries = [entry for pair in _entries(published, run) for entry in (element("dt", pair[0]), element("dd", pair[1]))]
    query = f"thresher query {shlex.quote(str(results))} {shlex.quote(f'FROM {main_table(published)}')}"
    return element(
        "details",
        element("summary", "How this was measured"),
        element("dl", *entries),
        element("h4", "The same numbers as a table"),
        element("pre", query),
        class_="measured",
    )


def main_table(published: PublishedStage) -> str:
    """The table with the chosen thresholds, or else the first one that was made."""
    names = list(published.tables)
    points = (name for name in names if name.endswith("operating_points"))
    return next(points, names[0] if names else published.stage.tables[0].name)


def _entries(published: PublishedStage, run: PublishedRun) -> Iterator[tuple[str, str]]:
    groupings = [", ".join(grouping) or "all rows" for grouping in published.groupings]
    yield "Groupings", "; ".join(groupings)
    for name, account in published.accounts.items():
        yield f"Rows of {name}", _account(account)
    for entry in run.record.get("inputs", ()):
        if entry["stage"] == published.name:
            yield (
                f"File of {entry['input']}",
                joined(element("code", entry["path"]), f" ({counted(entry['rows'], 'row')})"),
            )
    for input_name, bound in _bindings(run.record.get("bindings", {}).get(published.name, {})).items():
        yield f"Columns of {input_name}", bound
    for name, value in run.record.get("facts", {}).get(published.name, {}).items():
        yield name.replace("_", " ").capitalize(), str(value)
    for name, value in published.parameters.items():
        if name not in _NOT_PARAMETERS and not (isinstance(value, dict) and "path" in value) and value not in _UNSET:
            yield element("code", name), _value(value)
    yield from _tables(published)
    yield "Time", f"{published.seconds:.1f} s"


def _tables(published: PublishedStage) -> Iterator[tuple[str, str]]:
    """The tables of a stage, those that were not made with the reason, and the keys that would make further ones."""
    tables = [table for table in published.stage.tables if table.name in published.tables]
    yield "Tables", joined(*(element("div", element("code", table.name), f": {table.grain}") for table in tables))
    for name, reason in published.omitted.items():
        if name not in published.unrequested:
            yield f"Not made: {name}", reason
    if keys := keys_on_request(published.unrequested):
        yield "Keys that make further tables", ", ".join(keys)


def _account(account: Mapping[str, int]) -> str:
    left_out = {status: number for status, number in account.items() if status not in {"rows_in", "used"} and number}
    text = f"{account['rows_in']:,} read = {account.get('used', 0):,} used + {sum(left_out.values()):,} left out"
    reasons = ", ".join(f"{status.replace('_', ' ')} {number:,}" for status, number in left_out.items())
    return f"{text} ({reasons})" if reasons else text


def _bindings(bindings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The fields of every input with the columns that they are read from."""
    inputs: dict[str, list[str]] = {}
    for name_of_field, binding in bindings.items():
        input_name, _, name = name_of_field.partition(".")
        if binding["source"] != "absent":
            column = binding.get("column") or binding["source"]
            inputs.setdefault(input_name, []).append(name if column == name else f"{name} = {column}")
    return {name: ", ".join(fields) for name, fields in inputs.items()}


def _value(value: object) -> str:
    """A parameter as in a config; keys of tables that are not set are left out."""
    if isinstance(value, dict):
        entries = {key: _value(entry) for key, entry in value.items() if entry not in _UNSET}
        entries |= {key: f"{{ {entries[key]} }}" for key, entry in value.items() if isinstance(entry, dict) and entry}
        return ", ".join(f"{key} = {entry}" for key, entry in entries.items())
    if isinstance(value, list):
        return "; ".join(_value(entry) for entry in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
