"""Why the number of another tool differs from a published one: convention by convention, and row by row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import ConfigError, DataError, UsageError
from ...records import dataclass
from ...runs.config_faults import near
from ...runs.recorded import open_recorded, recount
from ...stages.profiles import Recounted
from ...tables.groupings import users_name
from .choosing import same_group
from .evidence import MOST_ROWS, ShownSection, named
from .wording import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...interrupts import StopRequest
    from ...runs.opening import OpenedStage
    from ...stages.profiles import Convention, Profile
    from ...stages.sections import Evidence, Section
    from ..published import PublishedRun, PublishedStage
    from .choosing import Choice

_WITHOUT_INTERVALS = {"uncertainty": "none"}


@dataclass(frozen=True)
class Effect:
    """What one convention of a tool does to a number.

    Attributes:
        topic: What is chosen.
        ours: What the run does.
        tool: What the tool does.
        effect: The number with the convention less the number without it; None where one of them is undefined.
        words: What becomes of the number, where it is no difference: `the same`, `0 in place of NULL`.
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
    """Apply the conventions of a tool one after the other; for each, rows are counted again with our own options.

    Args:
        run: The published run.
        stage: The stage.
        choice: The number.
        profile: The tool.
        most_rows: Most units that are shown; None: ten.
        stop: Checked while a query runs.
    """
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
    """Numbers of a stage while conventions of a tool are applied.

    Args:
        run: The published run.
        stage: The stage.
        choice: The number.
        profile: The tool.
        stop: Checked while a query runs.
    """

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
            if (convention.measures and metric not in convention.measures) or not self._applies(convention):
                continue
            before, options = self.value, self._changed(convention)
            if convention.options:
                if options:
                    self._recount(options)
                effects.append(self._effect(convention, before, self._words(convention), is_same=not options))
            else:
                self._adjust(convention)
                effects.append(self._effect(convention, before, convention.ours, is_same=before == self.value))
            if before != self.value and convention.section is not None:
                sections.append(convention.section)
        return effects, sections

    def _applies(self, convention: Convention) -> bool:
        """Whether the inputs have scores, where a convention is about them."""
        return not convention.needs_scores or any(source.has("score") for source in self._sources.values())

    def _changed(self, convention: Convention) -> dict[str, Any]:
        """The options of a convention that differ from those of the run."""
        return {
            key: value
            for key, value in convention.options.items()
            if getattr(self.params, key) not in (value, convention.keeps.get(key, value))
        }

    def _words(self, convention: Convention) -> str:
        facts = self._run.record.get("facts", {}).get(self._stage.name, {})  # what was chosen where nothing was set
        values = ((key, self._stage.parameters.get(key)) for key in convention.options)
        shown = ((key, facts.get(key) if value is None else value) for key, value in values)
        return ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in shown)

    def _recount(self, options: Mapping[str, Any]) -> None:
        self._options |= options
        self._tables = recount(self._opened(self._options), self._stop)
        row = self._row()
        self.value = None if row is None else row[self._choice.measure.name]

    def _row(self) -> dict[str, Any] | None:
        """The row of the explained group and threshold in the tables as they are now."""
        choice, table = self._choice, self._of_group(self._choice.measure.table)
        keys = next(each.key for each in self._stage.stage.tables if each.name == choice.measure.table)
        threshold = "" if self._stage.stage.evidence is None else self._stage.stage.evidence.threshold
        for key in keys:
            if key != threshold:
                table = table.filter(pl.col(key).eq_missing(pl.lit(choice.row[key], dtype=table.schema[key])))
        if threshold in keys and choice.threshold is not None and not self._is_without_scores:
            table = table.filter(pl.col(threshold) == choice.threshold)
        elif threshold in keys:
            table = table.sort(threshold, nulls_last=True)
        return None if table.is_empty() else table.row(0, named=True)

    @property
    def _is_without_scores(self) -> bool:
        return self._profile.all_scores and "thresholds" in self._options

    def _of_group(self, name: str) -> pl.DataFrame:
        return same_group(self._tables[name], self._choice.group)

    def _adjust(self, convention: Convention) -> None:
        """Apply a convention without an option: what it adds, or what replaces NULL."""
        if self.value is None:
            self.value = convention.undefined
        elif convention.change is not None:
            change = convention.change(Recounted(self._tables, self._row() or {}, self._of_group))
            self.value = None if change is None else self.value + change

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
        rows = _differing(published, self._of_group(table), key, columns)
        shown = rows.head(MOST_ROWS if most_rows is None else most_rows)
        title = f"Rows of {table} that differ"
        sentence = (
            f"Each {users_name(key)} whose numbers differ under the conventions of the tool: those of the run and, "
            "with _tool behind their names, those of the tool; the largest differences first. It is NULL where only "
            "one has it."
        )
        return ShownSection("units", title, sentence, named(shown), rows.height)


def _differing(ours: pl.DataFrame, theirs: pl.DataFrame, key: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """Units of both tables in which a column differs."""
    left, right = (frame.select(key, *columns) for frame in (ours, theirs))
    joined = left.join(right, on=key, how="full", coalesce=True, suffix="_tool", nulls_equal=True)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_tool")) for name in columns)
    size = pl.max_horizontal((pl.col(name) - pl.col(f"{name}_tool")).abs().cast(pl.Float64) for name in columns)
    return (
        joined.filter(differs)
        .sort(size, key, descending=[True, False], nulls_last=False)
        .select(key, *_beside(columns))
    )


def _beside(columns: tuple[str, ...]) -> Iterator[str]:
    for name in columns:
        yield name
        yield f"{name}_tool"
