"""What the page shows of one stage, and how the stage was measured."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from ...records import dataclass
from ..figures.charts import Group, Panels, numbered, panels
from ..text.summary import keys_on_request
from ..words import counted
from .markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...stages.figures import KeyNumber
    from ..published import PublishedRun, PublishedStage


# What the page shows of one stage: its groups, key numbers and figures, read once from a published run.


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
    """Read what the page shows of a stage.

    Args:
        published: The stage.
        anchor: Its name in links of the page.
    """
    numbers = numbers_by_group(published)
    figures = tuple(panels(figure) for figure in published.figures())
    groups = list(dict.fromkeys([*numbers, *(group for drawn in figures for group in _groups_of(drawn))]))
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


def _groups_of(drawn: Panels) -> tuple[Group, ...]:
    return () if drawn.figure.across else tuple(drawn.spans)


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
        yield _label(name), str(value)
    for name, value in published.parameters.items():
        if name not in _NOT_PARAMETERS and not _is_input(value) and value not in _UNSET:
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
    for field, binding in bindings.items():
        input_name, _, name = field.partition(".")
        if binding["source"] != "absent":
            column = binding.get("column") or binding["source"]
            inputs.setdefault(input_name, []).append(name if column == name else f"{name} = {column}")
    return {name: ", ".join(fields) for name, fields in inputs.items()}


def _is_input(value: object) -> bool:
    return isinstance(value, dict) and "path" in value


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _value(value: object) -> str:
    """A parameter as in a config; keys of tables that are not set are left out."""
    if isinstance(value, dict):
        entries = {key: _value(entry) for key, entry in value.items() if entry not in _UNSET}
        entries |= {key: f"{{ {entries[key]} }}" for key, entry in value.items() if isinstance(entry, dict) and entry}
        return ", ".join(f"{key} = {entry}" for key, entry in entries.items())
    if isinstance(value, list):
        return "; ".join(_value(entry) for entry in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
