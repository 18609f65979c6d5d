"""Colours and dashes of what figures show: the same role looks the same in every figure.

The hues follow Okabe and Ito. On their background they have a contrast of at least 4.8, `before` and `chance` of 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass

if TYPE_CHECKING:
    from ...stages.figures import Role, Series


@dataclass(frozen=True)
class Colour:
    """A colour with a name in the style sheet of the page.

    Attributes:
        name: Its variable in the style sheet, without `--`.
        light: On white, as hexadecimal digits.
        dark: On the dark background.
    """

    name: str
    light: str
    dark: str

    @property
    def variable(self) -> str:
        """The colour in a page, which follows the style sheet."""
        return f"var(--{self.name},{self.light})"


@dataclass(frozen=True)
class Look:
    """How one series or rule is drawn.

    Attributes:
        colour: Its colour.
        dash: Lengths of dash and gap; empty for a solid line.
    """

    colour: Colour
    dash: tuple[int, ...] = ()


INK = Colour("ink", "#1a1d21", "#e8eaed")
QUIET = Colour("quiet", "#5b626a", "#a2a9b1")
GRID = Colour("grid", "#e6e8eb", "#2b3036")
_PRECISION = Colour("precision", "#0068a8", "#5cb3ea")
_RECALL = Colour("recall", "#c24e00", "#f0913c")
_F1 = Colour("f1", "#00785a", "#3ccf9f")
_BEFORE = Colour("before", "#8b929b", "#7d858f")
_NEUTRAL = Colour("neutral", "#4d5963", "#b4bcc4")
_VIOLET = Colour("violet", "#8a3f86", "#d99bd4")
_OLIVE = Colour("olive", "#6b6200", "#cfc04a")

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
