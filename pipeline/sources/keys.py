"""Keys by which inputs look up each other's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass

if TYPE_CHECKING:
    from .source import Source


@dataclass(frozen=True)
class KeyMatch:
    """A key by which rows of one input look up those of another; if too few match, a warning says so.

    Attributes:
        source: The input whose rows look up others.
        other: The input in which they look.
        key: The column that both inputs have.
        unmatched_status: Status of rows that find no match and are left out; None if such rows count all the same.
    """

    source: Source
    other: Source
    key: str
    unmatched_status: str | None = None
