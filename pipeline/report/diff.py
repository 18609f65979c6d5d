"""Two published runs of one job: what differs between their records, and how their metrics changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..base.columns import THRESHOLD
from ..base.records import dataclass
from ..base.run_tables import metric_columns, metric_key, metric_rows
from ..base.schemas import GROUPING, TOTAL, group_text, internal_name
from ..metrics.uncertainty.limits import DESIGN_EFFECT, INTERVAL_QUALITY, N_EFFECTIVE
from ..stages.stage import DOUBT
from .diff_tests import is_doubtful, paired_differences
from .summary import Cells, Heading, Items, Paragraph, heading_of, setting
from .text import UNBROKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..base.schemas import Table
    from .diff_tests import Tested
    from .published import PublishedRun, PublishedStage
    from .summary import Block


_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True)
class Change:
    """One entry of a record that differs; keys of tables in tables are joined by dots, and None is no entry."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class _InputChange:
    """An input, `stage.input`: paths that one run alone read, or with another footer, and numbers of rows."""

    name: str
    added: tuple[str, ...]
    gone: tuple[str, ...]
    replaced: tuple[str, ...]
    rows: tuple[Change, ...]


@dataclass(frozen=True)
class _RecordChanges:
    """All that differs between two run records, of the stages of both.

    Parameters are named `stage.key` and stand beside engine, day, labels and variables, bindings `stage.input.field`,
    facts, which the stages decided from their inputs, `stage.fact`. The code is the versions of thresher, Python and
    the libraries, and its hash. Warnings that changed differ in numbers only, as the second run says them.
    """

    stages_added: tuple[str, ...]
    stages_gone: tuple[str, ...]
    inputs: tuple[_InputChange, ...]
    parameters: tuple[Change, ...]
    bindings: tuple[Change, ...]
    facts: tuple[Change, ...]
    code: tuple[Change, ...]
    warnings_added: tuple[str, ...]
    warnings_gone: tuple[str, ...]
    warnings_changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not any(vars(self).values())


def record_changes(before: PublishedRun, after: PublishedRun) -> _RecordChanges:
    """Compare the records of two runs.

    What belongs to a stage is compared for the stages of both runs only.
    """
    names = [stage.name for stage in before.stages]
    names_after = [stage.name for stage in after.stages]
    shared = [name for name in names_after if name in names]
    records = before.record, after.record
    parameters = (dict(_flat(_parameters(record, shared))) for record in records)
    return _RecordChanges(
        stages_added=tuple(name for name in names_after if name not in names),
        stages_gone=tuple(name for name in names if name not in names_after),
        inputs=tuple(_input_changes(*records, shared)),
        parameters=tuple(_changes(*parameters)),
        bindings=tuple(_changes(*(_bindings(record, shared) for record in records))),
        facts=tuple(_changes(*(dict(_flat(_of_stages(record["facts"], shared))) for record in records))),
        code=tuple(
            _changes(*({**record["versions"], "hash of the code": record["code_sha256"][:12]} for record in records))
        ),
        warnings_added=tuple(_new_warnings(*records, shared)),
        warnings_gone=tuple(_new_warnings(after.record, before.record, shared)),
        warnings_changed=tuple(_new_warnings(*records, shared, numbers_only=True)),
    )


def _of_stages(values: Mapping[str, Any], stages: Sequence[str]) -> dict[str, Any]:
    return {name: values[name] for name in stages if name in values}


def _parameters(record: Mapping[str, Any], stages: Sequence[str]) -> dict[str, Any]:
    configuration = record["configuration"]
    named = {parameters["name"]: parameters for parameters in configuration["stages"]}
    values = {name: value for name, value in record.get("vars", {}).items() if name != "ds"}
    of_run = {"ds": record.get("ds"), "labels": record.get("labels", {}), "vars": values}
    return {"engine": configuration["engine"], **of_run, **_of_stages(named, stages)}


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Return the entries of nested tables by dotted keys; what is not set has no entry, and lists are one entry."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif value is not None:
        yield name, value if isinstance(value, str) else setting(value)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name), after.get(name))


def _bindings(record: Mapping[str, Any], stages: Sequence[str]) -> dict[str, str]:
    """Return what every field is read from, in words, by stage, input and field."""
    return {
        f"{stage}.{field}": " ".join(binding[key] for key in ("source", "column", "sql") if key in binding)
        for stage, fields in _of_stages(record["bindings"], stages).items()
        for field, binding in fields.items()
    }


def _new_warnings(
    before: Mapping[str, Any], after: Mapping[str, Any], stages: Sequence[str], *, numbers_only: bool = False
) -> Iterator[str]:
    """The warnings that the first record lacks, of which it has, or has not, one that differs in numbers only."""
    for stage in stages:
        present, present_after = (record["results"][stage]["warnings"] for record in (before, after))
        shapes = {_NUMBER.sub("#", text) for text in present}
        for text in present_after:
            if text not in present and (_NUMBER.sub("#", text) in shapes) == numbers_only:
                yield f"{stage}: {text}"


def _input_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], stages: Sequence[str]
) -> Iterator[_InputChange]:
    files_before, files_after = _files(before), _files(after)
    for stage in stages:
        rows_before, rows_after = before["accounting"][stage], after["accounting"][stage]
        for name in dict.fromkeys((*rows_before, *rows_after)):
            old, new = files_before.get((stage, name), {}), files_after.get((stage, name), {})
            change = _InputChange(
                name=f"{stage}.{name}",
                added=tuple(path for path in new if path not in old),
                gone=tuple(path for path in old if path not in new),
                replaced=tuple(path for path in new if path in old and new[path] != old[path]),
                rows=tuple(_changes(_counts(rows_before.get(name, {})), _counts(rows_after.get(name, {})))),
            )
            if change.added or change.gone or change.replaced or change.rows:
                yield change


def _files(record: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, tuple[int, str]]]:
    """Return rows and hash of the footer of every file, by stage and input."""
    files: dict[tuple[str, str], dict[str, tuple[int, str]]] = {}
    for file in record["inputs"]:
        files.setdefault((file["stage"], file["input"]), {})[file["path"]] = (
            file["rows"],
            file["footer_sha256"] or file.get("files_sha256"),
        )
    return files


def _counts(rows: Mapping[str, int]) -> dict[str, str]:
    """Return numbers of rows as text, all rows first."""
    names = sorted(rows, key=lambda name: (name != "rows_in", name != "used", name))
    return {"rows" if name == "rows_in" else name: f"{rows[name]:,}" for name in names}


_OF_INTERVALS = frozenset({N_EFFECTIVE, DESIGN_EFFECT})


_Key = tuple[str, str, tuple[str | None, ...], tuple[object, ...]]
# what identifies a number in every run: its table, column, group, and the key of its row
_GROUP = 2


@dataclass(frozen=True)
class _MetricValue:
    """One number of one group, with its limits and how far they can be trusted; None where undefined.

    The group is for people, and `row` is what else identifies the row, such as `max_f1`; empty where a group has one.
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
class _MetricChange:
    """A metric of two runs; None: one had no such row or column."""

    before: _MetricValue | None
    after: _MetricValue | None

    @property
    def number(self) -> _MetricValue:
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
class _MetricChanges:
    """How the metrics of groups of both runs differ, largest change first, and which groups one run alone has."""

    changed: tuple[_MetricChange, ...]
    n_metrics: int
    groups_added: tuple[str, ...]
    groups_gone: tuple[str, ...]


def metric_changes(before: PublishedStage, after: PublishedStage) -> _MetricChanges:
    """Compare the metrics of a stage in two runs."""
    old, new = dict(_metric_values(before)), dict(_metric_values(after))
    groups_before, groups_after = _groups(old), _groups(new)
    pairs = [
        _MetricChange(old.get(key), new.get(key))
        for key in dict.fromkeys((*new, *old))
        if key[_GROUP] in groups_before and key[_GROUP] in groups_after
    ]
    changed = [pair for pair in pairs if pair.before is None or pair.after is None or not _equal(pair)]
    return _MetricChanges(
        changed=tuple(sorted(changed, key=lambda pair: -pair.weight)),
        n_metrics=len(pairs),
        groups_added=tuple(words for group, words in groups_after.items() if group not in groups_before),
        groups_gone=tuple(words for group, words in groups_before.items() if group not in groups_after),
    )


def _groups(numbers: Mapping[_Key, _MetricValue]) -> dict[tuple[str | None, ...], str]:
    """Return the groups in words by what identifies them."""
    return {group: named_group(number.grouping, number.group) for (_, _, group, _), number in numbers.items()}


def named_group(grouping: str, group: str) -> str:
    """Return a group with its grouping; the total has none."""
    return group if grouping == TOTAL else f"{grouping} {group}"


def _equal(pair: _MetricChange) -> bool:
    assert pair.before is not None  # noqa: S101 - for the type checker
    assert pair.after is not None  # noqa: S101 - likewise
    return all(getattr(pair.before, name) == getattr(pair.after, name) for name in ("value", "lower", "upper"))


def _metric_values(stage: PublishedStage) -> Iterator[tuple[_Key, _MetricValue]]:
    """Return the metrics of a stage by what identifies them in every run."""
    for table in stage.stage.tables:
        if table.name not in stage.tables or not (names := compared_columns(table)):
            continue
        frame = stage.tables[table.name]
        present = [name for name in names if name in frame.columns]
        for row in metric_rows(table, frame):
            group, row_key = _group(row), tuple(row.get(name) for name in metric_key(table))
            for name in present:
                yield (table.name, name, group, row_key), _value_of(table, row, name)


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


def _value_of(table: Table, row: Mapping[str, Any], name: str) -> _MetricValue:
    limits = [row.get(f"{name}_{side}") for side in ("lower", "upper")]
    return _MetricValue(
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


MOST_ROWS = 20  # of a stage, in text
MOST_SIGNIFICANT = 100  # likewise, before other tests are shown
MOST_FILES = 5  # of an input, in text
NOTHING = "–"


@dataclass(frozen=True)
class _StageDifference:
    """How the numbers of a stage differ between two runs.

    Tests are paired, on the units of both, significant ones first; `untested` says why there is none. If its
    parameters, bindings or decisions differ it is redefined: numbers may mean something else.
    """

    name: str
    tests: tuple[Tested, ...]
    untested: str
    metrics: _MetricChanges
    is_redefined: bool

    @property
    def is_empty(self) -> bool:
        """Whether no number differs."""
        metrics = self.metrics
        differ = any(test.difference for test in self.tests)
        return not (differ or metrics.changed or metrics.groups_added or metrics.groups_gone)

    @property
    def least_p_value(self) -> float:
        """The smallest adjusted p-value; 2 without a test."""
        return min((test.p_adjusted for test in self.tests if test.p_adjusted is not None), default=2.0)


@dataclass(frozen=True)
class RunDifference:
    """How two runs, by the names of their folders, differ; stages with significant changes come first."""

    before: str
    after: str
    records: _RecordChanges
    stages: tuple[_StageDifference, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return self.records.is_empty and all(stage.is_empty for stage in self.stages)


def run_difference(before: PublishedRun, after: PublishedRun) -> RunDifference:
    """Compare two runs; stages are matched by their names and tasks."""
    stages_before = {(stage.name, stage.stage.kind): stage for stage in before.stages}
    records = record_changes(before, after)
    redefined = {change.name.partition(".")[0] for change in (*records.parameters, *records.bindings, *records.facts)}
    variables = [change.name for change in records.parameters if change.name.startswith("vars.")]
    references = [f"${{{name.removeprefix('vars.')}}}" for name in variables]
    differences = []
    for stage in after.stages:
        if any(reference in str(stage.parameters) for reference in references):
            redefined.add(stage.name)
        old = stages_before.get((stage.name, stage.stage.kind))
        if old is not None:
            facts = after.record["facts"][stage.name]
            independent = facts.get("independent", "")
            tests = paired_differences(old, stage, "" if facts.get("units") == independent else independent)
            metrics = metric_changes(old, stage)
            differences.append(_StageDifference(stage.name, *tests, metrics, stage.name in redefined))
    ordered = sorted(differences, key=lambda difference: (difference.least_p_value, difference.is_empty))
    return RunDifference(before.folder.name, after.folder.name, records, tuple(ordered))


def blocks_of(difference: RunDifference, before: PublishedRun, after: PublishedRun) -> Iterator[Block]:
    """Return what differs, in words."""
    yield Heading("What changed between two runs")
    yield Items("", (f"before: {heading_of(before)}", f"after: {heading_of(after)}"))
    if difference.is_empty:
        yield Paragraph("Nothing changed: inputs, parameters, code, warnings and numbers are the same.")
        return
    yield Paragraph(" ".join(_sentences(difference)))
    for stage in difference.stages:
        if not stage.is_empty:
            yield Heading(stage.name, level=2)
            if stage.is_redefined:
                yield Paragraph(
                    "Its parameters or bindings changed, see below: the numbers may differ for that reason alone."
                )
            if stage.untested:
                yield Paragraph(f"{stage.untested[0].upper()}{stage.untested[1:]}.")
            else:
                yield from _blocks_of_tests(stage.tests)
            if stage.metrics.changed:
                yield _cells_of_metrics(stage.metrics.changed[:MOST_ROWS])
                n_more = len(stage.metrics.changed) - MOST_ROWS
                more = f"; {n_more:,} smaller changes are left out, --format json has them" if n_more > 0 else ""
                yield Paragraph(f"{len(stage.metrics.changed):,} of {stage.metrics.n_metrics:,} metrics changed{more}.")
            for words, groups in (("second", stage.metrics.groups_added), ("first", stage.metrics.groups_gone)):
                if groups:
                    n_more = len(groups) - MOST_ROWS
                    more_groups = (f"and {n_more:,} more, which --format json has",) if n_more > 0 else ()
                    yield Items(f"Groups that only the {words} run has", (*groups[:MOST_ROWS], *more_groups))
    unchanged = [stage.name for stage in difference.stages if stage.is_empty]
    if unchanged:
        yield Paragraph(f"No number changed in {', '.join(unchanged)}.")
    yield from _blocks_of_records(difference.records)


def _sentences(difference: RunDifference) -> Iterator[str]:
    tests = [test for stage in difference.stages for test in stage.tests if test.p_value is not None]
    if tests:
        n_significant = sum(test.is_significant for test in tests)
        yield (
            f"{n_significant:,} of {len(tests):,} differences that were tested on shared units are significant at the "
            "5% level (p adjusted by Holm within each stage)."
        )
    if not difference.stages:
        yield "No stage is in both runs."
        return
    changed = sum(len(stage.metrics.changed) for stage in difference.stages)
    yield f"{changed:,} of {sum(stage.metrics.n_metrics for stage in difference.stages):,} metrics changed."


def _blocks_of_tests(tests: Sequence[Tested]) -> Iterator[Block]:
    n_significant = min(sum(test.is_significant for test in tests), MOST_SIGNIFICANT)
    shown = tests[: max(n_significant, MOST_ROWS)]
    yield _cells_of_tests(shown)
    names = dict.fromkeys(test.test for test in tests)
    n_more = len(tests) - len(shown)
    more = f" {n_more:,} further tests are left out, --format json has them." if n_more else ""
    yield Paragraph(
        f"Tests: {' and '.join(names)}, two-sided, on units of both runs; limits are those of the difference.{more}"
    )
    if any(map(is_doubtful, shown)):
        yield Paragraph(
            f"{DOUBT} doubtful: few or unequal units, skewed differences, or units that are not independent."
        )


def _cells_of_tests(tests: Sequence[Tested]) -> Cells:
    rows = tuple(
        (
            named_group(test.grouping, test.group),
            test.metric,
            f"{test.n_units:,}",
            _number(test.before),
            _number(test.after),
            _with_limits(test.difference, test.lower, test.upper, signed=True) + (DOUBT if is_doubtful(test) else ""),
            _p_value(test.p_adjusted),
        )
        for test in tests
    )
    headers = ("group", "tested", "units", "before", "after", "difference", "adjusted p")
    return Cells(headers, rows, (False, False, True, True, True, True, True), "difference")


def _cells_of_metrics(changes: Sequence[_MetricChange]) -> Cells:
    rows = tuple(
        (
            named_group(change.number.grouping, change.number.group),
            ", ".join(filter(None, (change.number.row, change.number.name))),
            _of_run(change.before),
            _of_run(change.after),
            _number(change.difference, signed=True),
        )
        for change in changes
    )
    return Cells(("group", "metric", "before", "after", "difference"), rows, (False, False, True, True, True), "metric")


def _of_run(number: _MetricValue | None) -> str:
    return "absent" if number is None else _with_limits(number.value, number.lower, number.upper)


def _with_limits(value: float | None, lower: float | None, upper: float | None, *, signed: bool = False) -> str:
    if lower is None or upper is None:
        return _number(value, signed=signed)
    limits = f"({lower:.3g} to {upper:.3g})".replace(" ", UNBROKEN)
    return f"{_number(value, signed=signed)} {limits}"


def _number(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return NOTHING
    return f"{value:+.4g}" if signed else f"{value:.4g}"


def _p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.2g}" if value >= 0.0001 else "<0.0001"  # noqa: PLR2004 - the usual way to write it


def _blocks_of_records(records: _RecordChanges) -> Iterator[Block]:
    lists = {
        "Stages that only the second run has": records.stages_added,
        "Stages that only the first run has": records.stages_gone,
        "New warnings": records.warnings_added,
        "Warnings that are gone": records.warnings_gone,
        "Warnings with other numbers": records.warnings_changed,
        "Inputs": tuple(map(_input_in_words, records.inputs)),
        "Parameters": tuple(map(_change_in_words, records.parameters)),
        "Bindings": tuple(map(_change_in_words, records.bindings)),
        "Decided from the inputs": tuple(map(_change_in_words, records.facts)),
        "Code and versions": tuple(map(_change_in_words, records.code)),
    }
    for title, items in lists.items():
        if items:
            yield Items(title, items, "warning" if title == "New warnings" else "plain")


def _change_in_words(change: Change) -> str:
    before, after = ("not set" if text is None else text for text in (change.before, change.after))
    return f"{change.name}: {before} → {after}"


def _input_in_words(change: _InputChange) -> str:
    rows = [f"{count.name} {count.before or 0} → {count.after or 0}" for count in change.rows]
    files = [
        f"{len(paths):,} {'file' if len(paths) == 1 else 'files'} {words} ({_few(paths)})"
        for words, paths in (("added", change.added), ("gone", change.gone), ("replaced", change.replaced))
        if paths
    ]
    return f"{change.name}: {'; '.join([*files, *rows])}"


def _few(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_FILES:,} more" if len(paths) > MOST_FILES else ""
    return f"{', '.join(paths[:MOST_FILES])}{more}"
