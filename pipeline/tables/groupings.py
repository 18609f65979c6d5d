"""Users' columns in a namespace of their own: what a user calls them, and what they are called inside a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

TOTAL = "all"
_GROUPS, _CLUSTER = "by:", "cluster:"


def internal_name(name: str) -> str:
    """What a grouping column is called inside a run, so that no name of a user's meets one of ours."""
    return f"{_GROUPS}{name}"


def cluster_name(name: str) -> str:
    """What the column of the clusters is called inside a run, likewise."""
    return f"{_CLUSTER}{name}"


def users_name(name: str) -> str:
    """What a user calls a column of a run; columns that are known by our names have one name."""
    prefix = next((prefix for prefix in (_GROUPS, _CLUSTER) if name.startswith(prefix)), "")
    return name.removeprefix(prefix)


@dataclass(frozen=True)
class Grouping:
    """Columns whose values together are the groups of one grouping.

    Attributes:
        columns: Their internal names; none: the total.
    """

    columns: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Grouping:
        """The grouping by some columns, as a user calls them."""
        return cls(tuple(internal_name(name) for name in names))

    @property
    def label(self) -> str:
        """Value of the column `grouping` in results: `all`, or the users' names, comma-separated."""
        return ",".join(map(users_name, self.columns)) or TOTAL


def unlike_but_for_case(names: Iterable[str]) -> tuple[str, str] | None:
    """Two different names that engines and Parquet readers take for one, because only their case differs."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            return first, name
    return None


def in_users_names(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table with its grouping columns as a user calls them: the last thing done to it before it is written."""
    return frame.rename({name: users_name(name) for name in frame.columns})
