"""Tiles of key numbers: a value, its interval in digits and on a fixed scale, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures.panels import look_of_role
from ..words import counted, doubt_text, headline, limits_text
from .markup import Markup, element, joined

if TYPE_CHECKING:
    from ...stages.figures import KeyNumber
    from ..figures.panels import Group
    from .content import StageContent


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
    table = element("table", _head(alone or "group", beside), element("tbody", *rows), class_="groups")
    return joined(
        element("h4", f"Groups ({len(content.groups):,})"),
        element("p", note, class_="note needs-script"),
        tools if len(content.groups) >= FEWEST_TO_FIND else None,
        element("div", table, class_="scroll"),
    )


def _head(groups: str, beside: dict[str, list[tuple[str, str]]]) -> Markup:
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
