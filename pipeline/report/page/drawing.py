"""The library that draws the live charts of a page, as one script."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import polars as pl

from ...records import dataclass
from ...safe_files import remove_own
from ...sources.remote.reading import folder_for_caches
from ..figures.charts import key_of
from ..figures.panels import GROUP
from .markup import Markup, element

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...stages.figures import Figure
    from ..figures.panels import Group, Look, Panels


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
        _keep(folder_for_caches() / name, script)
    return script


def _kept(path: Path) -> str | None:
    """The script of a copy; None if it is damaged."""
    digest, _, content = path.read_bytes().partition(b"\n")
    return content.decode() if digest.decode("ascii", "replace") == _digest(content) else None


def _keep(path: Path, script: str) -> None:
    content = script.encode()
    path.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        unfinished.write_bytes(b"\n".join([_digest(content).encode(), content]))
        unfinished.replace(path)
    finally:
        remove_own(unfinished, path.parent)


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
    """Write the rows of a figure.

    Args:
        panels: The figure.
        groups: The groups of the stage, to which results refer by their place.
        lists: Where the lists go.

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
            "ends": [_short(end) for end in panels.extent(group)],
            "chosen": [] if chosen is None else _points(chosen),
        }
    return result


def _points(chosen: pl.DataFrame) -> list[dict[str, Any]]:
    return chosen.with_columns(pl.selectors.float().round_sig_figs(7)).to_dicts()


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def _written(panels: Panels, name: str) -> tuple[list[Any], list[Any]]:
    """How a column is written, and its values, those of a group one after the other."""
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


# The key of a chart: what its lines, points and bars are.


def key(figure: Figure) -> Markup:
    """Make the key of a figure, as text beside small pieces of its lines."""
    return element("ul", *(_key_entry(*entry) for entry in key_of(figure)), class_="key")


def _key_entry(name: str, look: Look, shape: str) -> Markup:
    dashes = " ".join(map(str, look.dash)) or None
    if shape == "line":
        mark = element(
            "line",
            x1="0",
            y1="5",
            x2="26",
            y2="5",
            stroke=look.colour.variable,
            stroke_width="2.5",
            stroke_dasharray=dashes,
        )
    elif shape == "point":
        mark = element("circle", cx="13", cy="5", r="4.5", fill=look.colour.variable)
    else:
        mark = element("rect", x="8", y="0", width="10", height="10", fill=look.colour.variable)
    swatch = element("svg", mark, viewBox="0 0 26 10", aria_hidden="true")
    return element("li", swatch, name)
