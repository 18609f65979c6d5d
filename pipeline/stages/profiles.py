"""Conventions of other tools, as data: what they do otherwise, and which options of ours do the same."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from .sections import Section


@dataclass(frozen=True)
class Recounted:
    """The tables of a stage under some conventions of a tool.

    Attributes:
        tables: The result tables.
        row: The row of the explained group and threshold in the table of the number.
        of_group: Rows of a result table that belong to the explained group.
    """

    tables: Mapping[str, pl.DataFrame]
    row: Mapping[str, Any]
    of_group: Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class Convention:
    """A choice that changes a number, as a tool makes it.

    Attributes:
        topic: What is chosen.
        tool: What the tool does.
        options: Keys of the config with the values that do the same; without any there is no such option.
        keeps: Other values of these keys that come to the same.
        ours: What is done here where there is no option.
        measures: The numbers that it can change; none: all of the profile.
        change: What it adds to the number where there is no option.
        undefined: What the tool gives where the number is NULL; None: it gives none either.
        needs_scores: Whether it is about scores, and is left out where no input has any.
        section: The rows that make the difference.
    """

    topic: str
    tool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    keeps: Mapping[str, Any] = field(default_factory=dict)
    ours: str = ""
    measures: tuple[str, ...] = ()
    change: Callable[[Recounted], float | None] | None = None
    undefined: float | None = None
    needs_scores: bool = False
    section: Section | None = None


@dataclass(frozen=True)
class Profile:
    """A tool whose number can be had with our options.

    Attributes:
        name: Its name on the command line.
        tool: What it is called, with the version that it was compared with.
        measures: Our names of numbers, with its own.
        conventions: What it does, in the order in which the options are changed.
        exactly: When the number is that of the tool, in words.
        units: The result table with one row per unit, its key and the numbers that are compared; empty: none.
        all_scores: Whether the tool knows no scores, so that every prediction counts.
        refuses: Why its number cannot be computed with these parameters; empty if it can.
    """

    name: str
    tool: str
    measures: Mapping[str, str]
    conventions: tuple[Convention, ...]
    exactly: str
    units: tuple[str, str, tuple[str, ...]] | None = None
    all_scores: bool = False
    refuses: Callable[[Any], str] = lambda _params: ""
