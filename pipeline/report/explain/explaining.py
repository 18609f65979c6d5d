"""Where a published number comes from: definition, counts, inputs, SQL, and the rows behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import ThresherError, UsageError
from ...interrupts import stop_requests
from ...plan.plan import Plan
from ...records import dataclass
from ...runs.provenance import code_sha256
from ...runs.recorded import changed_files, open_recorded, recorded_config
from ...runs.rendering import render_opened
from ...stages.sections import Asked
from ...stages.standard_figures import CROSS_FITTED
from .choosing import Choice, Wish, choose
from .evidence import chosen_sections, columns_to_show, rows_behind
from .profiles import Compared, compare_with, find_profile
from .wording import (
    account_in_words,
    bindings_of,
    deciding_parameters,
    figure,
    files_in_words,
    first_fitting,
    interval_in_words,
    meaning_of,
    why_undefined,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...runs.opening import OpenedStage
    from ...stages.sections import Evidence
    from ..published import PublishedRun, PublishedStage
    from .evidence import ShownSection
    from .wording import Step


@dataclass(frozen=True)
class Shown:
    """What of an explanation is to be shown.

    Attributes:
        sections: Names of sections; none: all that need not be asked for.
        most_rows: Most rows of each section; None: ten, and all rows of a sheet.
        columns: Columns of the inputs as `input.column`; none: the first that have no role.
        sql: Whether the SQL that counts is wanted.
        rows: Whether rows are wanted at all.
        profile: A tool whose number is to be compared; empty: none. Its rows take the place of the sections.
    """

    sections: tuple[str, ...] = ()
    most_rows: int | None = None
    columns: tuple[str, ...] = ()
    sql: bool = False
    rows: bool = True
    profile: str = ""


@dataclass(frozen=True)
class Explanation:
    """Where a published number comes from.

    Attributes:
        run: Name of the folder of the run.
        published_at: When it was published, UTC.
        stage: Name of the stage.
        kind: Its task.
        metric: The number.
        group: Its group in words.
        threshold: Its threshold; None where it has none.
        value: The number; None where undefined.
        lower: Its lower limit.
        upper: Its upper limit.
        meaning: Its definition.
        steps: How it follows from the counts; nothing where no formula of counts gives it.
        undefined: Why it is NULL, or has no interval, in the words of the table; empty if neither.
        interval: How its interval was made, and how far it can be trusted; empty without one.
        inputs: Sentences on the rows of every input.
        bindings: What every field is read from, by input.
        parameters: What decides it, by key of the config.
        warnings: What the run said of the stage.
        notes: What was chosen, and what must be known before rows are compared with counts.
        sections: The rows behind it.
        sql: The SQL that counts it; empty if it is not wanted.
        compared: The number of another tool beside it, if that is wanted.
    """

    run: str
    published_at: str
    stage: str
    kind: str
    metric: str
    group: str
    threshold: float | None
    value: Any
    lower: float | None
    upper: float | None
    meaning: str
    steps: tuple[Step, ...]
    undefined: str
    interval: str
    inputs: tuple[str, ...]
    bindings: Mapping[str, str]
    parameters: Mapping[str, Any]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    sections: tuple[ShownSection, ...]
    sql: str
    compared: Compared | None = None


def explain(run: PublishedRun, name: str, wish: Wish, shown: Shown) -> Explanation:
    """Explain a number of a stage of a published run.

    Args:
        run: The run.
        name: Name of the stage.
        wish: The number.
        shown: What is to be shown of it.

    Raises:
        UsageError: the run has no such stage, or the stage no such number, group, threshold, section or column.
        NoInputError: rows or SQL are asked for by name, and the inputs are gone.
    """
    stage = run.chosen([name])[0]
    evidence = stage.stage.evidence
    if evidence is None:
        message = f"nothing is known of the rows behind stage {name!r}, which is of kind {stage.stage.kind}"
        raise UsageError(message)
    sections = chosen_sections(evidence, shown.sections)
    choice = choose(stage, evidence, wish)
    opened, notes = _opened(run, name, evidence, shown)
    asked = _asked(run, stage, choice, opened)
    compared: Compared | None = None
    behind: tuple[ShownSection, ...] = ()
    with stop_requests() as stop:
        if shown.profile:
            profile = find_profile(evidence, shown.profile, choice.measure.name)
            compared = compare_with(run, stage, choice, profile, shown.most_rows, stop)
            sections = (*compared.sections, *(sections if shown.sections else ()))
        if opened is not None and shown.rows:
            showing = opened.showing(columns_to_show(opened, shown.columns))
            behind = rows_behind(showing, evidence, _with_plan(asked, showing.plan), sections, shown.most_rows, stop)
            behind = tuple(section for section in behind if shown.sections or not section.absent)
    sql = render_opened(opened, dialect="duckdb") if opened is not None and shown.sql else ""
    explanation = _explanation(run, stage, choice, asked, (*choice.notes, *notes), behind, sql)
    return explanation if compared is None else _with_compared(explanation, compared)


def _with_compared(explanation: Explanation, compared: Compared) -> Explanation:
    """Add the number of a tool, and the units in which it differs."""
    units = () if compared.units is None else (compared.units,)
    return replace(explanation, compared=compared, sections=(*explanation.sections, *units))


def _opened(
    run: PublishedRun, name: str, evidence: Evidence, shown: Shown
) -> tuple[OpenedStage | None, tuple[str, ...]]:
    """Return the stage with its inputs found, if they are there, and what became of them since the run."""
    if not shown.rows and not shown.sql and not shown.profile:
        return None, ()
    try:
        opened = open_recorded(run.record, run.folder, name, evidence.parameters)
    except ThresherError as error:
        if shown.sections or shown.columns or shown.sql or shown.profile:
            raise
        return None, (f"no rows can be shown: {error.message}",)
    return opened, (*_other_version(run), *changed_files(run.record, run.folder, opened))


def _other_version(run: PublishedRun) -> tuple[str, ...]:
    """Say where the code has changed since the run, so that rows and SQL are not quite those that were counted."""
    if run.record.get("code_sha256") == code_sha256():
        return ()
    version = run.record.get("versions", {}).get("thresher", "another version")
    return (f"the run was made by other code than this ({version}): rows and SQL are those of this code",)


def _asked(run: PublishedRun, stage: PublishedStage, choice: Choice, opened: OpenedStage | None) -> Asked:
    plan = Plan() if opened is None else opened.plan
    if opened is None:
        config = recorded_config(run.record, run.folder)
        params = next(configured.params for configured in config.stages if configured.params.name == stage.name)
    else:
        params = opened.configured.params
    return Asked(params, plan, stage.tables, choice.measure.name, choice.row, choice.group, choice.threshold)


def _with_plan(asked: Asked, plan: Plan) -> Asked:
    return Asked(asked.params, plan, asked.tables, asked.measure, asked.row, asked.group, asked.threshold)


def _explanation(
    run: PublishedRun,
    stage: PublishedStage,
    choice: Choice,
    asked: Asked,
    notes: tuple[str, ...],
    sections: tuple[ShownSection, ...],
    sql: str,
) -> Explanation:
    name, row, evidence = choice.measure.name, choice.row, stage.stage.evidence
    quantities = {} if evidence is None else evidence.quantities(asked)
    forms, decides = choice.measure.forms, () if evidence is None else evidence.decides
    return Explanation(
        run=run.folder.name,
        published_at=run.published_at,
        stage=stage.name,
        kind=stage.stage.kind,
        metric=name if "metric" not in row else f"{name} of {row['metric']}",
        group=choice.group_words,
        threshold=choice.threshold if evidence is not None and evidence.threshold in row else None,
        value=row[name],
        lower=row.get(f"{name}_lower"),
        upper=row.get(f"{name}_upper"),
        meaning=meaning_of(stage.stage, choice.table, name),
        steps=first_fitting(forms, {**quantities, **row}),
        undefined=why_undefined(row, name),
        interval=interval_in_words(run, stage, row, name),
        inputs=tuple(
            words
            for input_name, account in stage.accounts.items()
            for words in (
                account_in_words(input_name, account, missed=stage.parameters.get("invalid_scores") == "missed"),
                files_in_words(run, stage, input_name),
            )
            if words
        ),
        bindings=bindings_of(run, stage),
        parameters=deciding_parameters(run, stage, decides),
        warnings=stage.warnings,
        notes=(*notes, *_of_other_data(choice), *_of_other_rows(choice, evidence)),
        sections=sections,
        sql=sql,
    )


def _of_other_data(choice: Choice) -> tuple[str, ...]:
    """Say which value the summary shows, where that is of data that did not choose the threshold."""
    name = f"{choice.measure.name}{CROSS_FITTED}"
    value, lower, upper = (choice.row.get(f"{name}{end}") for end in ("", "_lower", "_upper"))
    if value is None:
        return ()
    limits = "" if lower is None or upper is None else f" ({figure(lower)} to {figure(upper)})"
    return (f"the summary shows {figure(value)}{limits}, {name}: of data that did not choose the threshold",)


def _of_other_rows(choice: Choice, evidence: Evidence | None) -> tuple[str, ...]:
    """Say at which threshold rows are shown of a number that has none."""
    if evidence is None or choice.threshold is None or evidence.threshold in choice.row:
        return ()
    return (f"{choice.measure.name} has no threshold: the rows are those at {choice.threshold:g}",)
