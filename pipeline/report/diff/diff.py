"""Two published runs of one job: what changed between them, in the order of what matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass
from ...stages.stage import DOUBT
from ..text.blocks import Cells, Heading, Items, Paragraph
from ..text.plain import UNBROKEN
from ..text.summary import heading_of
from .changes import metric_changes, named_group, record_changes
from .tested import is_doubtful, paired_differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..published import PublishedRun
    from ..text.blocks import Block
    from .changes import Change, InputChange, MetricChange, MetricChanges, MetricValue, RecordChanges
    from .tested import Tested

MOST_ROWS = 20  # of a stage, in text
MOST_SIGNIFICANT = 100  # likewise, before other tests are shown
MOST_FILES = 5  # of an input, in text
NOTHING = "–"


@dataclass(frozen=True)
class StageDifference:
    """How the numbers of a stage differ between two runs.

    Attributes:
        name: Name of the stage in both.
        tests: Paired tests on the units of both runs, significant ones first.
        untested: Why there is no test; empty if there is one.
        metrics: The metrics that differ.
        is_redefined: Whether its parameters, bindings or decisions differ, so that numbers may mean something else.
    """

    name: str
    tests: tuple[Tested, ...]
    untested: str
    metrics: MetricChanges
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
    """How two runs differ.

    Attributes:
        before: Name of the folder of the first run.
        after: That of the second.
        records: What differs in inputs, parameters, code and warnings.
        stages: The stages of both runs, those with significant changes first.
    """

    before: str
    after: str
    records: RecordChanges
    stages: tuple[StageDifference, ...]

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
            differences.append(StageDifference(stage.name, *tests, metrics, stage.name in redefined))
    ordered = sorted(differences, key=lambda difference: (difference.least_p_value, difference.is_empty))
    return RunDifference(before.folder.name, after.folder.name, records, tuple(ordered))


# Words ---------------------------------------------------------------------------------------------------------------


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
            yield from _blocks_of_stage(stage)
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


def _blocks_of_stage(stage: StageDifference) -> Iterator[Block]:
    yield Heading(stage.name, level=2)
    if stage.is_redefined:
        yield Paragraph("Its parameters or bindings changed, see below: the numbers may differ for that reason alone.")
    if stage.untested:
        yield Paragraph(f"{stage.untested[0].upper()}{stage.untested[1:]}.")
    else:
        yield from _blocks_of_tests(stage.tests)
    yield from _blocks_of_metrics(stage.metrics)


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


def _blocks_of_metrics(metrics: MetricChanges) -> Iterator[Block]:
    if metrics.changed:
        yield _cells_of_metrics(metrics.changed[:MOST_ROWS])
        n_more = len(metrics.changed) - MOST_ROWS
        more = f"; {n_more:,} smaller changes are left out, --format json has them" if n_more > 0 else ""
        yield Paragraph(f"{len(metrics.changed):,} of {metrics.n_metrics:,} metrics changed{more}.")
    for words, groups in (("second", metrics.groups_added), ("first", metrics.groups_gone)):
        if groups:
            yield Items(f"Groups that only the {words} run has", _few_groups(groups))


def _few_groups(groups: Sequence[str]) -> tuple[str, ...]:
    n_more = len(groups) - MOST_ROWS
    more = (f"and {n_more:,} more, which --format json has",) if n_more > 0 else ()
    return (*groups[:MOST_ROWS], *more)


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


def _cells_of_metrics(changes: Sequence[MetricChange]) -> Cells:
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


def _of_run(number: MetricValue | None) -> str:
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


def _blocks_of_records(records: RecordChanges) -> Iterator[Block]:
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


def _input_in_words(change: InputChange) -> str:
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
