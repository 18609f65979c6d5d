"""Users' columns in a namespace of their own: their names outside and inside a run."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

from ..records import dataclass
from ..visible_text import cleaned
from .schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

TOTAL = "all"
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:")
_GROUPS, _CLUSTER, _SHOWN = "by:", "cluster:", "shown:"


def internal_name(name: str) -> str:
    """Return the name of a grouping column inside a run, which cannot clash with a canonical name."""
    return f"{_GROUPS}{name}"


def cluster_name(name: str) -> str:
    """Return the name of the cluster column inside a run, which cannot clash with a canonical name."""
    return f"{_CLUSTER}{name}"


def shown_name(name: str) -> str:
    """Return the name of a column that is only shown inside a run, which cannot clash with a canonical name."""
    return f"{_SHOWN}{name}"


def users_name(name: str) -> str:
    """Return the user's name of a column of a run; a canonical name is the same outside and inside."""
    prefix = next((prefix for prefix in (_GROUPS, _CLUSTER, _SHOWN) if name.startswith(prefix)), "")
    return name.removeprefix(prefix)


def grouping_columns(names: Iterable[str]) -> list[str]:
    """Return those of the columns of a run that are grouping columns, under their internal names and in their order."""
    return [name for name in names if name.startswith(_GROUPS)]


@dataclass(frozen=True)
class Grouping:
    """Columns whose values together are the groups of one grouping.

    Attributes:
        columns: Their internal names; none: the total.
    """

    columns: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Grouping:
        """Return the grouping by columns that are given by the users' names."""
        return cls(tuple(internal_name(name) for name in names))

    @property
    def label(self) -> str:
        """Value of the column `grouping` in results: `all`, or the users' names, comma-separated."""
        return ",".join(map(users_name, self.columns)) or TOTAL


def unlike_but_for_case(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two different names that engines and Parquet readers confuse because they differ in case only, if any."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            return first, name
    return None


def in_users_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with its grouping columns under the users' names; this is the last step before it is written."""
    users = {name: users_name(name) for name in grouping_columns(frame.columns)}
    return frame.rename(users) if users else frame


def group_text(row: Mapping[str, Any]) -> str:
    """The group of a result row for people: the values of its grouping columns, or `all`."""
    if row[GROUPING.name] == TOTAL:
        return TOTAL
    return values_text([row[internal_name(name)] for name in row[GROUPING.name].split(",")])


def spellings(text: str) -> tuple[str, ...]:
    """Return how a value may be shown that is written as a text: as it is, or else as a boolean or a point in time."""
    others: list[str] = []
    if text.lower() in {"true", "false"}:
        others = [text.lower(), text.capitalize()]
    elif _TIME.match(text):
        others = [f"{text[:10]} {text[11:]}", f"{text[:10]}T{text[11:]}"]
    return tuple(dict.fromkeys([text, *others]))


def written_groups(values: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the groups that values may mean which are written as texts, the likeliest first."""
    for texts in product(*map(spellings, values.values())):
        yield dict(zip(values, texts, strict=True))


def values_text(values: Sequence[object]) -> str:
    """The values of grouping columns for people, on one line.

    NULL is `null`. Texts that would be read as something else are in double quotes: the empty text, the text `null`,
    and `all` where it is the only value.
    """
    shown = ['""' if value == "" else '"null"' if value == "null" else _value_text(value) for value in values]
    return f'"{TOTAL}"' if shown == [TOTAL] else ", ".join(shown)


def _value_text(value: object) -> str:
    return "null" if value is None else cleaned(str(value), layout="")
