"""Where a published number comes from, and why another tool's number differs from it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.errors import ConfigError, DataError, ThresherError, UsageError
from ..base.interrupts import stop_requests
from ..base.records import dataclass
from ..base.schemas import users_name
from ..plan.plan import Plan
from ..runs.evaluation import render_opened
from ..runs.recorded import changed_files, open_recorded, recorded_config, recount
from ..runs.stage_results import code_sha256
from ..runs.variables import near
from ..stages.figures import CROSS_FITTED
from ..stages.sections import Asked, Recounted
from .evidence import (
    MOST_ROWS,
    Choice,
    ShownSection,
    Wish,
    choose,
    chosen_sections,
    columns_to_show,
    named,
    rows_behind,
    same_group,
)
from .explanation import (
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

    from ..base.interrupts import StopRequest
    from ..runs.opening import OpenedStage
    from ..stages.sections import Convention, Evidence, Profile, Section
    from .explanation import Step
    from .published import PublishedRun, PublishedStage


_WITHOUT_INTERVALS = {"uncertainty": "none"}


@dataclass(frozen=True)
class Effect:
    """What one convention of a tool does to a number, beside what the run does.

    The effect is the number with the convention less that without it; None where one is undefined. Words say what
    becomes of the number where it is no difference: `the same`, `0 in place of NULL`.
    """

    topic: str
    ours: str
    tool: str
    effect: float | None
    words: str


@dataclass(frozen=True)
class Compared:
    """The number of a tool beside the published one.

    Attributes:
        tool: The tool, with its version.
        name: What the tool calls the number.
        ours: The published number.
        theirs: The number of the tool; None where it has none.
        exactly: When it is exactly that of the tool.
        effects: Its conventions, in the order in which they were applied, each on top of those before it.
        refused: Why the number of the tool cannot be computed; empty if it can.
        units: The units whose numbers differ.
        sections: Sections of the stage with the rows that make a difference.
    """

    tool: str
    name: str
    ours: float | None
    theirs: float | None
    exactly: str
    effects: tuple[Effect, ...]
    refused: str
    units: ShownSection | None
    sections: tuple[Section, ...]


def find_profile(evidence: Evidence, name: str, metric: str) -> Profile:
    """Return a profile of a stage.

    Raises:
        UsageError: the stage has no such profile, or the tool has no such number.
    """
    profiles = {profile.name: profile for profile in evidence.profiles}
    if name not in profiles:
        message = f"there is no profile {name!r} of this stage{near(name, profiles)}"
        names = ", ".join(profiles)
        raise UsageError(message, remedy=f"Its profiles are: {names}." if names else "It has none.")
    if metric not in profiles[name].measures:
        message = f"{name} has no {metric}"
        raise UsageError(message, remedy=f"It has: {', '.join(profiles[name].measures)}. Choose one with --metric.")
    return profiles[name]


def compare_with(
    run: PublishedRun, stage: PublishedStage, choice: Choice, profile: Profile, most_rows: int | None, stop: StopRequest
) -> Compared:
    """Apply the conventions of a tool one after the other; for each, rows are counted again with our own options."""
    metric = choice.measure.name
    comparison = _Comparison(run, stage, choice, profile, stop)
    refused = profile.refuses(comparison.params)
    effects: list[Effect] = []
    sections: list[Section] = []
    if not refused:
        try:
            effects, sections = comparison.effects()
        except (ConfigError, DataError) as error:  # the inputs lack what the tool needs
            refused = error.message
    return Compared(
        tool=profile.tool,
        name=profile.measures[metric],
        ours=choice.row[metric],
        theirs=None if refused else comparison.value,
        exactly=profile.exactly,
        effects=tuple(effects),
        refused=refused,
        units=None if refused else comparison.units(most_rows),
        sections=tuple(sections),
    )


class _Comparison:
    """Numbers of a stage while conventions of a tool are applied."""

    def __init__(
        self, run: PublishedRun, stage: PublishedStage, choice: Choice, profile: Profile, stop: StopRequest
    ) -> None:
        self._run, self._stage, self._choice, self._profile, self._stop = run, stage, choice, profile, stop
        self._options: dict[str, Any] = {}
        opened = self._opened({})
        self.params, self._sources = opened.configured.params, opened.sources
        self._tables: Mapping[str, pl.DataFrame] = stage.tables
        self.value: float | None = choice.row[choice.measure.name]

    def _opened(self, options: Mapping[str, Any]) -> OpenedStage:
        parameters = {**_WITHOUT_INTERVALS, **options}
        return open_recorded(self._run.record, self._run.folder, self._stage.name, parameters)

    def effects(self) -> tuple[list[Effect], list[Section]]:
        """Apply all conventions that can change the number."""
        effects, sections = [], []
        metric = self._choice.measure.name
        for convention in self._profile.conventions:
            if (convention.measures and metric not in convention.measures) or not (
                not convention.needs_scores or any(source.has("score") for source in self._sources.values())
            ):
                continue
            before, options = (
                self.value,
                (
                    {
                        key: value
                        for key, value in convention.options.items()
                        if getattr(self.params, key) not in (value, convention.keeps.get(key, value))
                    }
                ),
            )
            if convention.options:
                if options:
                    self._options |= options
                    self._tables = recount(self._opened(self._options), self._stop)
                    row = self._row()
                    self.value = None if row is None else row[self._choice.measure.name]
                effects.append(self._effect(convention, before, self._words(convention), is_same=not options))
            else:
                # apply a convention without an option: what it adds, or what replaces NULL
                if self.value is None:
                    self.value = convention.undefined
                elif convention.change is not None:
                    change = convention.change(Recounted(self._tables, self._row() or {}, self._of_group))
                    self.value = None if change is None else self.value + change
                effects.append(self._effect(convention, before, convention.ours, is_same=before == self.value))
            if before != self.value and convention.section is not None:
                sections.append(convention.section)
        return effects, sections

    def _words(self, convention: Convention) -> str:
        facts = self._run.record.get("facts", {}).get(self._stage.name, {})  # what was chosen where nothing was set
        values = ((key, self._stage.parameters.get(key)) for key in convention.options)
        shown = ((key, facts.get(key) if value is None else value) for key, value in values)
        return ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in shown)

    def _row(self) -> dict[str, Any] | None:
        """The row of the explained group and threshold in the tables as they are now."""
        choice, table = self._choice, self._of_group(self._choice.measure.table)
        keys = next(each.key for each in self._stage.stage.tables if each.name == choice.measure.table)
        threshold = "" if self._stage.stage.evidence is None else self._stage.stage.evidence.threshold
        for key in keys:
            if key != threshold:
                table = table.filter(pl.col(key).eq_missing(pl.lit(choice.row[key], dtype=table.schema[key])))
        is_without_scores = self._profile.all_scores and "thresholds" in self._options
        if threshold in keys and choice.threshold is not None and not is_without_scores:
            table = table.filter(pl.col(threshold) == choice.threshold)
        elif threshold in keys:
            table = table.sort(threshold, nulls_last=True)
        return None if table.is_empty() else table.row(0, named=True)

    def _of_group(self, name: str) -> pl.DataFrame:
        return same_group(self._tables[name], self._choice.group)

    def _effect(self, convention: Convention, before: float | None, ours: str, *, is_same: bool) -> Effect:
        effect = None if before is None or self.value is None else self.value - before
        words = "the same" if is_same else "no effect here" if before == self.value else ""
        if before is None and self.value is not None:
            words = f"{figure(self.value)} in place of NULL"
        elif before is not None and self.value is None:
            words = "undefined"
        return Effect(convention.topic, ours, convention.tool, effect, words)

    def units(self, most_rows: int | None) -> ShownSection | None:
        """The units whose numbers differ from the published ones, the largest differences first."""
        if self._profile.units is None or self._profile.units[0] not in self._stage.tables:
            return None
        table, key, columns = self._profile.units
        published = same_group(self._stage.tables[table], self._choice.group)
        # units of both tables in which a column differs
        theirs = self._of_group(table)
        left, right = (frame.select(key, *columns) for frame in (published, theirs))
        joined = left.join(right, on=key, how="full", coalesce=True, suffix="_tool", nulls_equal=True)
        differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_tool")) for name in columns)
        size = pl.max_horizontal((pl.col(name) - pl.col(f"{name}_tool")).abs().cast(pl.Float64) for name in columns)
        rows = (
            joined.filter(differs)
            .sort(size, key, descending=[True, False], nulls_last=False)
            .select(key, *chain.from_iterable((name, f"{name}_tool") for name in columns))
        )
        shown = rows.head(MOST_ROWS if most_rows is None else most_rows)
        title = f"Rows of {table} that differ"
        sentence = (
            f"Each {users_name(key)} whose numbers differ under the conventions of the tool: those of the run and, "
            "with _tool behind their names, those of the tool; the largest differences first. It is NULL where only "
            "one has it."
        )
        return ShownSection("units", title, sentence, named(shown), rows.height)


@dataclass(frozen=True)
class Shown:
    """The parts of an explanation to be shown.

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
        undefined: Why it is NULL, or has no interval, in the words of the table; empty if neither.
        interval: How its interval was made, and how far it can be trusted; empty without one.
        steps: How it follows from the counts; nothing where no formula of counts gives it.
        parameters: What decides it, by key of the config.
        inputs: Sentences on the rows of every input.
        bindings: What every field is read from, by input.
        notes: What was chosen, and what must be known before rows are compared with counts.
        warnings: What the run said of the stage.
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
    undefined: str
    interval: str
    steps: tuple[Step, ...]
    parameters: Mapping[str, Any]
    inputs: tuple[str, ...]
    bindings: Mapping[str, str]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    sections: tuple[ShownSection, ...]
    sql: str
    compared: Compared | None = None


def explain(run: PublishedRun, name: str, wish: Wish, shown: Shown) -> Explanation:
    """Explain a number of a stage of a published run.

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
    plan = Plan() if opened is None else opened.plan
    if opened is None:
        config = recorded_config(run.record, run.folder)
        params = next(configured.params for configured in config.stages if configured.params.name == stage.name)
    else:
        params = opened.configured.params
    asked = Asked(params, plan, stage.tables, choice.measure.name, choice.row, choice.group, choice.threshold)
    compared: Compared | None = None
    behind: tuple[ShownSection, ...] = ()
    with stop_requests() as stop:
        if shown.profile:
            profile = find_profile(evidence, shown.profile, choice.measure.name)
            compared = compare_with(run, stage, choice, profile, shown.most_rows, stop)
            sections = (*compared.sections, *(sections if shown.sections else ()))
        if opened is not None and shown.rows:
            showing = opened.showing(columns_to_show(opened, shown.columns))
            behind = rows_behind(showing, evidence, replace(asked, plan=showing.plan), sections, shown.most_rows, stop)
            behind = tuple(section for section in behind if shown.sections or not section.absent)
    sql = render_opened(opened, dialect="duckdb") if opened is not None and shown.sql else ""
    units = () if compared is None or compared.units is None else (compared.units,)
    explanation = _explanation(run, stage, choice, asked, (*choice.notes, *notes), (*behind, *units), sql)
    return replace(explanation, compared=compared)


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
    notes = changed_files(run.record, run.folder, opened)
    if run.record.get("code_sha256") == code_sha256():
        return opened, tuple(notes)
    version = run.record.get("versions", {}).get("thresher", "another version")
    words = f"the run was made by other code than this ({version}): rows and SQL are those of this code"
    return opened, (words, *notes)


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
