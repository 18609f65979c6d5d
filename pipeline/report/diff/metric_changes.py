"""How the metrics of a stage, and the thresholds that it chose, changed between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...metrics.uncertainty.qualities import DESIGN_EFFECT, INTERVAL_QUALITY, N_EFFECTIVE
from ...records import dataclass
from ...tables.groupings import TOTAL, group_text, internal_name
from ...tables.metrics_table import metric_columns, metric_key, metric_rows
from ...tables.schemas import GROUPING
from ...tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...tables.schemas import Table
    from ..published import PublishedStage

_OF_INTERVALS = frozenset({N_EFFECTIVE, DESIGN_EFFECT})


@dataclass(frozen=True)
class _Key:
    """What identifies a number in every run: its table, column, group, and the key of its row."""

    table: str
    name: str
    group: tuple[str | None, ...]
    row: tuple[object, ...]


@dataclass(frozen=True)
class MetricValue:
    """One number of one group.

    Attributes:
        table: Its table.
        name: Its column.
        grouping: The grouping, as the table names it.
        group: The group for people: values of the grouping columns, or `all`.
        row: What else identifies the row, such as `max_f1`; empty where a group has one row.
        value: The number; None where undefined.
        lower: Its lower limit, if it has limits.
        upper: Its upper limit.
        quality: How far the limits can be trusted; None without limits.
    """

    table: str
    name: str
    grouping: str
    group: str
    row: str
    value: float | None
    lower: float | None
    upper: float | None
    quality: str | None


@dataclass(frozen=True)
class MetricChange:
    """A metric of two runs.

    Attributes:
        before: That of the first run; None: it had no such row or column.
        after: That of the second; None likewise.
    """

    before: MetricValue | None
    after: MetricValue | None

    @property
    def number(self) -> MetricValue:
        """The number that names both."""
        number = self.after or self.before
        assert number is not None  # noqa: S101 - for the type checker: one of the two is there
        return number

    @property
    def difference(self) -> float | None:
        """The second less the first; None where one is undefined."""
        values = (number.value if number is not None else None for number in (self.before, self.after))
        before, after = values
        return None if before is None or after is None else after - before

    @property
    def weight(self) -> float:
        """How large the difference is beside half of the wider interval, by which changes are ordered; -1 without."""
        if self.difference is None:
            return -1.0
        numbers = [number for number in (self.before, self.after) if number is not None]
        widths = [n.upper - n.lower for n in numbers if n.lower is not None and n.upper is not None]
        scale = max(widths, default=0.0) / 2 or max(abs(n.value or 0.0) for n in numbers) or 1.0
        return abs(self.difference) / scale


@dataclass(frozen=True)
class MetricChanges:
    """How the metrics of a stage differ between two runs.

    Attributes:
        changed: Those that differ, of groups in both, largest change first; those that one run lacks come last.
        n_metrics: How many there are of groups in both.
        groups_added: Groups that only the second run has, with their groupings.
        groups_gone: Groups that only the first run has.
    """

    changed: tuple[MetricChange, ...]
    n_metrics: int
    groups_added: tuple[str, ...]
    groups_gone: tuple[str, ...]


def metric_changes(before: PublishedStage, after: PublishedStage) -> MetricChanges:
    """Compare the metrics of a stage in two runs."""
    old, new = dict(_metric_values(before)), dict(_metric_values(after))
    groups_before, groups_after = _groups(old), _groups(new)
    pairs = [
        MetricChange(old.get(key), new.get(key))
        for key in dict.fromkeys((*new, *old))
        if key.group in groups_before and key.group in groups_after
    ]
    changed = [pair for pair in pairs if pair.before is None or pair.after is None or not _equal(pair)]
    return MetricChanges(
        changed=tuple(sorted(changed, key=lambda pair: -pair.weight)),
        n_metrics=len(pairs),
        groups_added=tuple(words for group, words in groups_after.items() if group not in groups_before),
        groups_gone=tuple(words for group, words in groups_before.items() if group not in groups_after),
    )


def _groups(numbers: Mapping[_Key, MetricValue]) -> dict[tuple[str | None, ...], str]:
    """Return the groups in words by what identifies them."""
    return {key.group: named_group(number.grouping, number.group) for key, number in numbers.items()}


def named_group(grouping: str, group: str) -> str:
    """Return a group with its grouping; the total has none."""
    return group if grouping == TOTAL else f"{grouping} {group}"


def _equal(pair: MetricChange) -> bool:
    assert pair.before is not None  # noqa: S101 - for the type checker
    assert pair.after is not None  # noqa: S101 - likewise
    return all(getattr(pair.before, name) == getattr(pair.after, name) for name in ("value", "lower", "upper"))


def _metric_values(stage: PublishedStage) -> Iterator[tuple[_Key, MetricValue]]:
    """Return the metrics of a stage by what identifies them in every run."""
    for table in stage.stage.tables:
        if table.name not in stage.tables or not (names := compared_columns(table)):
            continue
        frame = stage.tables[table.name]
        present = [name for name in names if name in frame.columns]
        for row in metric_rows(table, frame):
            group, row_key = _group(row), tuple(row.get(name) for name in metric_key(table))
            for name in present:
                yield _Key(table.name, name, group, row_key), _number(table, row, name)


def compared_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that are compared: its metrics and, where it was chosen, the threshold."""
    metrics = tuple(name for name in metric_columns(table) if name not in _OF_INTERVALS)
    is_chosen = THRESHOLD in {column.name for column in table.columns} and THRESHOLD not in (*table.key, *metrics)
    return (THRESHOLD, *metrics) if metrics and is_chosen else metrics


def _group(row: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the grouping and the values of its columns as text: their types may differ between runs."""
    if row[GROUPING.name] == TOTAL:
        return (TOTAL,)
    values = (row[internal_name(name)] for name in row[GROUPING.name].split(","))
    return (row[GROUPING.name], *(None if value is None else str(value) for value in values))


def _number(table: Table, row: Mapping[str, Any], name: str) -> MetricValue:
    limits = [row.get(f"{name}_{side}") for side in ("lower", "upper")]
    return MetricValue(
        table=table.name,
        name=name,
        grouping=row[GROUPING.name],
        group=group_text(row),
        row=", ".join(str(row.get(key)) for key in metric_key(table)),
        value=row[name],
        lower=limits[0],
        upper=limits[1],
        quality=row.get(INTERVAL_QUALITY) if limits[0] is not None else None,
    )
