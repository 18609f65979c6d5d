"""Which published number is meant, and the rows behind it, asked of an engine."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import sqlglot.expressions as exp

from ..base.columns import THRESHOLD
from ..base.dialect import column
from ..base.errors import DataError, NoInputError, UsageError, os_fault
from ..base.paths import read_file
from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL, Grouping, group_text, internal_name, shown_name, spellings, users_name
from ..base.sql_files import statement
from ..engines.duckdb import DuckDB
from ..engines.engine import Resources
from ..plan.accounting import begin
from ..plan.nodes import Phase
from ..plan.plan import naming_user_sql
from ..runs.variables import near
from ..sources.bindings import columns_without_role, shown_columns
from .explanation import at_threshold, other_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..base.interrupts import StopRequest
    from ..plan.nodes import Node
    from ..runs.opening import OpenedStage
    from ..stages.sections import Asked, Evidence, Measure, Section, Sheet
    from .published import PublishedStage


REFERENCE, MEASURE = "recall_reference", "measure"
MOST_NAMED = 8
NULL = "null"


@dataclass(frozen=True)
class Wish:
    """The number that a person wants explained.

    Attributes:
        metric: The number; empty: the main one of the stage.
        threshold: The threshold; None: that of the first operating point.
        group: Texts `NAME=VALUE` of grouping columns, or of other columns that identify a row.
        option: What stands before such a text where the person writes it.
        criterion: The operating point whose threshold is meant, such as `max_f1`; empty: the first.
        verb: What is done with it, in notes.
    """

    metric: str = ""
    threshold: float | None = None
    group: tuple[str, ...] = ()
    option: str = "--group "
    criterion: str = ""
    verb: str = "explained"

    @classmethod
    def of_python(cls, metric: str, threshold: Any, group: Mapping[str, object], **more: str) -> Wish:  # noqa: ANN401
        """The wish of a call from Python, whose threshold may be any number and whose groups are values.

        Raises:
            UsageError: the threshold is no number.
        """
        try:
            number = None if threshold is None else float(threshold)
        except (TypeError, ValueError) as error:
            message = f"threshold {threshold!r} is no number"
            raise UsageError(message, remedy="Give a score, such as 0.5.") from error
        return cls(metric, number, tuple(f"{name}={text_of(value)}" for name, value in group.items()), **more)


@dataclass(frozen=True)
class Choice:
    """The number that is explained.

    Attributes:
        measure: What it is.
        table: The table that has it.
        row: Its row, grouping columns under their internal names.
        group: Values of the grouping columns by internal name; empty for the total.
        threshold: The threshold of the rows behind it; None without thresholds.
        notes: What was chosen because it was not asked for, and what differs from what was asked for.
    """

    measure: Measure
    table: str
    row: Mapping[str, Any]
    group: Mapping[str, Any]
    threshold: float | None
    notes: tuple[str, ...]

    @property
    def group_words(self) -> str:
        """The group for people: `source = x`, or `all`; a group that is called so is in quotes."""
        texts = {users_name(name): text_of(value) for name, value in self.group.items()}
        if list(texts.values()) == [TOTAL]:  # as in names of groups elsewhere
            texts = dict.fromkeys(texts, f'"{TOTAL}"')
        return ", ".join(f"{name} = {text}" for name, text in texts.items()) or TOTAL


def choose(stage: PublishedStage, evidence: Evidence, wish: Wish) -> Choice:
    """Find the row of a wish in the tables of a stage.

    Raises:
        UsageError: the stage has no such number, group or threshold.
    """
    measure, wish = _measure(stage, evidence, wish)
    conditions = _conditions(stage, measure, wish)
    frame, notes = _rows_of_group(stage, _table(stage, measure.table), conditions, wish)
    frame, more_notes = _of_keys(stage, evidence, measure, frame, conditions, wish.option)
    group = {name: frame[name][0] for name in _columns(frame[GROUPING.name][0])}
    threshold, criterion, words = _threshold(stage, evidence, group, wish)
    if measure not in evidence.measures:
        choice = Choice(measure, measure.table, {}, group, threshold, (*notes, *more_notes, *words))
        return _of_other_column(stage, evidence, frame, choice)
    if evidence.threshold in frame.columns and threshold is not None:
        frame = frame.filter(pl.col(evidence.threshold) == threshold)
    table, row = measure.table, frame.row(0, named=True)
    is_of_points = measure.table == evidence.measures[0].table and evidence.preferred.items() <= row.items()
    if criterion is not None and measure.name in criterion and is_of_points:
        table, row = evidence.points, {**row, **criterion}
    return Choice(measure, table, row, group, threshold, (*notes, *more_notes, *words))


def _of_other_column(stage: PublishedStage, evidence: Evidence, frame: pl.DataFrame, choice: Choice) -> Choice:
    """Choose the row of a number that is no measure: at the threshold, or at that which its table chose."""
    if evidence.threshold not in frame.columns:
        return replace(choice, row=frame.row(0, named=True))
    key = next(table.key for table in stage.stage.tables if table.name == choice.table)
    if evidence.threshold not in key:
        row = frame.row(0, named=True)
        return replace(choice, row=row, threshold=row[evidence.threshold])
    if choice.threshold is None:
        return replace(choice, row=frame.row(0, named=True))
    frame, words = at_threshold(frame, evidence.threshold, choice.threshold)
    row = frame.row(0, named=True)
    return replace(choice, row=row, threshold=row[evidence.threshold], notes=(*choice.notes, *words))


def _measure(stage: PublishedStage, evidence: Evidence, wish: Wish) -> tuple[Measure, Wish]:
    """Return the number; a name that is a value of the column `metric` chooses the rows of that metric."""
    # a table may lack a number that was not asked for; where the table was not made that is told later
    made_tables = {each.table: stage.tables.get(each.table) for each in evidence.measures}
    columns_of = {name: None if table is None else table.columns for name, table in made_tables.items()}
    measures = {m.name: m for m in evidence.measures if (names := columns_of[m.table]) is None or m.name in names}
    if not wish.metric:
        return evidence.measures[0], wish
    if wish.metric in measures:
        return measures[wish.metric], wish
    table = _table(stage, evidence.measures[0].table)
    metrics = table["metric"].unique().sort().to_list() if "metric" in table.columns else []
    if wish.metric in metrics:
        return evidence.measures[0], replace(wish, metric="", group=(*wish.group, f"metric={wish.metric}"))
    by_name = _by_name(stage, evidence)
    if wish.metric in by_name:
        return by_name[wish.metric], replace(wish, metric="", group=(*wish.group, f"{MEASURE}={wish.metric}"))
    others = other_measures(stage) if wish.verb == "explained" else {}
    if wish.metric in others:
        return others[wish.metric], wish
    names = [*measures, *metrics, *by_name]
    message = f"stage {stage.name!r} has no metric {wish.metric!r}{near(wish.metric, [*names, *others])}"
    columns = ", and every number in its tables of groups" if others else ""
    raise UsageError(message, remedy=f"Its metrics are: {', '.join(names)}{columns}.")


def _by_name(stage: PublishedStage, evidence: Evidence) -> dict[str, Measure]:
    """Return the numbers that a table has a row for each of, by the name in its column `measure`."""
    tables = ((measure, stage.tables.get(measure.table)) for measure in evidence.measures)
    return {
        str(name): measure
        for measure, table in tables
        if table is not None and MEASURE in table.columns
        for name in table[MEASURE].unique(maintain_order=True)
    }


def _table(stage: PublishedStage, name: str) -> pl.DataFrame:
    if name not in stage.tables:
        message = f"stage {stage.name!r} did not make the table {name}: {stage.omitted.get(name, 'it is not there')}"
        raise UsageError(message)
    table = stage.tables[name]
    if table.is_empty():
        message = f"the table {name} of stage {stage.name!r} has no row, so there is nothing to explain"
        raise UsageError(message)
    return table


def _columns(label: str) -> tuple[str, ...]:
    """Internal names of the columns of a grouping."""
    return () if label == Grouping(()).label else tuple(internal_name(name) for name in label.split(","))


def _conditions(stage: PublishedStage, measure: Measure, wish: Wish) -> dict[str, str]:
    """The columns that are asked for, grouping columns under their internal names, with the text of their value."""
    names = list(dict.fromkeys(name for grouping in stage.groupings for name in grouping))
    keys = next((table.key for table in stage.stage.tables if table.name == measure.table), ())
    columns = {key: key for key in keys} | {name: internal_name(name) for name in names}
    conditions = {}
    for text in wish.group:
        matching = [name for name in columns if text.startswith(f"{name}=")]
        if not matching:
            name = text.partition("=")[0]
            message = f"{wish.option}{text}: {name!r} is no grouping column of stage {stage.name!r}{near(name, names)}"
            offered = ", ".join(names) or "none, as the stage has no by"
            raise UsageError(message, remedy=f"Write NAME=VALUE; its grouping columns are: {offered}.")
        longest = max(matching, key=len)
        conditions[columns[longest]] = text.removeprefix(f"{longest}=")
    return conditions


def text_of(value: object) -> str:
    """A value of a grouping column as people write it: NULL is `null`; the texts `null` and none are in quotes."""
    if value in (NULL, ""):
        return f'"{value}"'
    return _plain_text(value)


def _plain_text(value: object) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date | dt.datetime) else str(value)


def _is(name: str, text: str, frame: pl.DataFrame) -> pl.Series:
    """Which rows have a value that is written as a text; `null` is NULL alone, the text `null` stands in quotes."""
    values = frame[name].to_list()
    if text == NULL:
        return pl.Series([value is None for value in values], dtype=pl.Boolean)
    # in double quotes, as messages show values that would be read as something else
    for shown in (text_of, _plain_text, str, lambda value: f'"{_plain_text(value)}"'):
        for spelling in spellings(text):
            found = [value is not None and shown(value) == spelling for value in values]
            if any(found):
                return pl.Series(found, dtype=pl.Boolean)
    return pl.Series([False] * len(values), dtype=pl.Boolean)


def _rows_of_group(
    stage: PublishedStage, frame: pl.DataFrame, conditions: Mapping[str, str], wish: Wish
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the rows of one group: the one that is asked for, else the total, else the first one."""
    asked = [name for name in conditions if name.startswith(internal_name(""))]
    if not asked:
        total = frame.filter(pl.col(GROUPING.name) == Grouping(()).label)
        if not total.is_empty():
            return total, ()
        columns = [GROUPING.name, *_columns(frame[GROUPING.name][0])]
        first = frame.join(frame.head(1).select(columns), on=columns, how="semi", nulls_equal=True)
        n_groups = frame.filter(pl.col(GROUPING.name) == frame[GROUPING.name][0]).select(columns).unique().height
        words = (
            f"there is no total: of {n_groups:,} groups the first is {wish.verb}; {wish.option}NAME=VALUE names another"
        )
        return first, (words,) if n_groups > 1 else ()
    labels = [Grouping.of(names).label for names in stage.groupings if {*map(internal_name, names)} == set(asked)]
    words = " and ".join(users_name(name) for name in asked)
    if not labels:
        offered = "; ".join(",".join(names) or "all" for names in stage.groupings)
        message = f"stage {stage.name!r} has no grouping by {words}"
        raise UsageError(message, remedy=f"Its groupings are: {offered}.")
    of_grouping = frame.filter(pl.col(GROUPING.name) == labels[0])
    matches = of_grouping
    for name in asked:
        matches = matches.filter(_is(name, conditions[name], matches))
    if matches.is_empty():
        groups = of_grouping.unique(_columns(labels[0]), maintain_order=True)
        between = "; " if len(asked) > 1 else ", "  # the values of one group are separated by commas
        offered = between.join(group_text(row) for row in groups.head(MOST_NAMED).iter_rows(named=True))
        more = f", and {groups.height - MOST_NAMED:,} more" if groups.height > MOST_NAMED else ""
        wanted = ", ".join(f"{users_name(name)} = {conditions[name]}" for name in asked)
        message = f"stage {stage.name!r} has no group {wanted}"
        raise UsageError(message, remedy=f"Its groups are: {offered}{more}.")
    return matches, ()


def _of_keys(
    stage: PublishedStage,
    evidence: Evidence,
    measure: Measure,
    frame: pl.DataFrame,
    conditions: Mapping[str, str],
    option: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows of one value of every key but the threshold: as asked, as the stage prefers, or the first."""
    keys = next(table.key for table in stage.stage.tables if table.name == measure.table)
    notes = []
    for name in keys:
        if name == evidence.threshold:
            continue
        values = [text_of(value) for value in frame[name].unique(maintain_order=True)]
        preferred = evidence.preferred.get(name)
        text = conditions.get(name) or (preferred if preferred in values else values[0])
        if text not in values:
            message = f"stage {stage.name!r} has no {name} {text!r}{near(text, values)}"
            raise UsageError(message, remedy=f"There are: {', '.join(values[:MOST_NAMED])}.")
        if name not in conditions and len(values) > 1:
            others = [value for value in values if value != text]
            more = f" and {len(others) - MOST_NAMED:,} more" if len(others) > MOST_NAMED else ""
            words = f"{', '.join(others[:MOST_NAMED])}{more}"
            notes.append(f"{name} = {text}; there are also {words}: {option}{name}=VALUE")
        frame = frame.filter(_is(name, text, frame))
    return frame, notes


def _threshold(
    stage: PublishedStage, evidence: Evidence, group: Mapping[str, Any], wish: Wish
) -> tuple[float | None, dict[str, Any] | None, Sequence[str]]:
    """Return the threshold, the row of the operating point that it comes from, if any, and what to say of both."""
    if wish.criterion and not evidence.points:
        message = f"stage {stage.name!r} has no operating points"
        raise UsageError(message, remedy="Leave the criterion out.")
    if not evidence.threshold:
        if wish.threshold is not None:
            message = f"stage {stage.name!r} has no thresholds"
            raise UsageError(message, remedy="Leave the threshold out.")
        return None, None, ()
    thresholds = same_group(_table(stage, evidence.measures[0].table), group)[evidence.threshold].drop_nulls()
    thresholds = thresholds.unique().sort()
    if wish.threshold is not None:
        is_of_scores = evidence.threshold == THRESHOLD and stage.parameters.get("thresholds") in (None, "distinct")
        next_above = is_of_scores and stage.parameters.get("boundary") == ">="
        held, notes = _where_it_holds(thresholds, wish.threshold, next_above=next_above)
        return held, None, notes
    if thresholds.is_empty():
        return None, None, ("there are no scores: every prediction counts",)
    if not evidence.points:
        return thresholds[-1], None, (f"{evidence.threshold} = {thresholds[-1]:g}, the highest, as in the summary",)
    points = same_group(stage.tables[evidence.points], group)
    points = _of_criterion(stage, points, wish.criterion).filter(pl.col(evidence.threshold).is_not_null())
    if points.is_empty():
        words = f"no operating point was reached: the lowest threshold, {thresholds[0]:g}, is {wish.verb}"
        return thresholds[0], None, (words,)
    row = points.row(0, named=True)
    chosen = row[evidence.threshold]
    beside = "" if wish.criterion else ", as in the summary"
    return chosen, row, (f"{evidence.threshold} = {chosen:g}, chosen for {row['criterion']}{beside}",)


def _of_criterion(stage: PublishedStage, points: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Return the operating point of a criterion; all but the recall reference if none is asked for."""
    if not criterion:
        return points.filter(pl.col("criterion") != REFERENCE)
    matches = points.filter(pl.col("criterion") == criterion)
    if matches.is_empty():
        criteria = points["criterion"].unique(maintain_order=True).to_list()
        message = f"stage {stage.name!r} has no operating point {criterion!r}{near(criterion, criteria)}"
        raise UsageError(message, remedy=f"There are: {', '.join(criteria) or 'none'}.")
    if matches["threshold"].null_count() == matches.height:
        message = f"no threshold of stage {stage.name!r} reaches {criterion}"
        raise UsageError(message, remedy="Choose another operating point, or a threshold.")
    return matches


def same_group(table: pl.DataFrame, group: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of a result table that belong to a group, given by its grouping columns; none: the total."""
    same = (pl.col(name).eq_missing(pl.lit(value, dtype=table.schema[name])) for name, value in group.items())
    return table.filter(pl.col(GROUPING.name) == Grouping(tuple(group)).label, *same)


def _where_it_holds(thresholds: pl.Series, wanted: float, *, next_above: bool) -> tuple[float, tuple[str, ...]]:
    """The threshold whose row is shown for one that was asked for, and what to say where it is another.

    Between two it is the next above or below, as the curve holds there.
    """
    if math.isnan(wanted):
        message = "threshold nan is no number"
        raise UsageError(message, remedy="Give a score, such as 0.5.")
    side = thresholds.filter(thresholds >= wanted if next_above else thresholds <= wanted)
    end, index, extreme = ("above", 0, "highest") if next_above else ("below", -1, "lowest")
    if side.is_empty():
        message = f"no threshold is at or {end} {wanted:g}"
        words = f"The {extreme} is {thresholds[-1 - index]:g}." if len(thresholds) else "The stage has no scores."
        raise UsageError(message, remedy=words)
    held = float(side[index])
    if held == wanted:
        return held, ()
    why = ", which retrieves the same" if next_above else ""
    return held, (f"{wanted!r} is no threshold of the run: {held!r}, the next {end}{why}, is",)


MOST_ROWS = 10
MOST_COLUMNS, MOST_OF_INPUT = 6, 3
_GROUP = "explained_group"


@dataclass(frozen=True)
class ShownSection:
    """Rows behind a number, as they are shown.

    Attributes:
        name: Name of the section.
        title: What the rows are.
        sentence: Why they are here, and in which order.
        rows: The first of them, with the names that users know.
        n_rows: How many there are.
        absent: Why there is no such section; empty if there is.
    """

    name: str
    title: str
    sentence: str
    rows: pl.DataFrame
    n_rows: int
    absent: str = ""


def chosen_sections(evidence: Evidence, names: Sequence[str]) -> tuple[Section, ...]:
    """Return the sections of these names, in their order; all that need not be asked for if no name is there.

    Raises:
        UsageError: the stage has no section of that name.
    """
    sections = {section.name: section for section in evidence.sections}
    for name in names:
        if name not in sections:
            message = f"there is no section {name!r}{near(name, sections)}"
            raise UsageError(message, remedy=f"Sections of this stage: {', '.join(sections)}.")
    if names:
        return tuple(sections[name] for name in dict.fromkeys(names))
    return tuple(section for section in evidence.sections if section.sheet is None)


def columns_to_show(opened: OpenedStage, wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the users' own, `input.column`, that are shown, by input; none: the first without a role.

    Raises:
        UsageError: there is no such input or column.
    """
    if not wanted:
        return _first_without_role(opened)
    shown: dict[str, list[str]] = {}
    for text in wanted:
        name, _, file_column = text.partition(".")
        source = opened.sources.get(name)
        if source is None or not file_column:
            message = f"--columns {text}: write INPUT.COLUMN{near(name, opened.sources)}"
            raise UsageError(message, remedy=f"The inputs are: {', '.join(opened.sources)}.")
        columns = shown_columns(source)
        if file_column not in columns:
            message = f"--columns {text}: input {name} has no column {file_column!r}{near(file_column, columns)}"
            raise UsageError(message, remedy=f"Its columns are: {', '.join(columns)}.")
        shown.setdefault(name, []).append(file_column)
    return {name: tuple(dict.fromkeys(columns)) for name, columns in shown.items()}


def _first_without_role(opened: OpenedStage) -> dict[str, tuple[str, ...]]:
    bindings, n_left, shown = opened.bindings, MOST_COLUMNS, {}
    for name, source in opened.sources.items():
        columns = columns_without_role(source, bindings)[: min(MOST_OF_INPUT, n_left)]
        shown[name], n_left = columns, n_left - len(columns)
    return shown


def rows_behind(
    opened: OpenedStage,
    evidence: Evidence,
    asked: Asked,
    sections: Iterable[Section],
    most_rows: int | None,
    stop: StopRequest,
) -> tuple[ShownSection, ...]:
    """Return the rows of some sections of an opened stage, with the columns to show in its plan.

    Of each they are at most so many: by default ten, and all rows of a sheet.
    """
    opened.fetch()
    with DuckDB(Resources(), opened.folders, stop) as engine, naming_user_sql(engine, opened.plan):
        reader = _Reader(engine, opened, evidence, asked, most_rows)
        reader.define()
        return tuple(reader.section(section) for section in sections)


@dataclass(frozen=True)
class _Reader:
    """Reads the rows of sections of a stage from an engine."""

    engine: DuckDB
    opened: OpenedStage
    evidence: Evidence
    asked: Asked
    most_rows: int | None

    def define(self) -> None:
        """Define the relations of the plan, and the rows of the explained group."""
        progress = begin(self.opened.configured.params, self.opened.plan)
        for node in self._nodes():
            node.run(self.engine, progress)
        if self.asked.group:
            group = pl.DataFrame([self.asked.group], schema=self._types())
            self.engine.fill(_GROUP, [group])
        for name, rows in self.evidence.rows(self.asked).items():
            self.engine.define(name, _of_group(rows, self.asked.group))

    def _types(self) -> dict[str, pl.DataType]:
        table = self.asked.tables[self.evidence.measures[0].table]
        return {name: table.schema[name] for name in self.asked.group}

    def _nodes(self) -> list[Node]:
        """The relations of the plan in the order of phases, with the relations of the evidence replaced."""
        wanted = (Phase.RELATIONS, Phase.TRANSFORMS)
        nodes = {node.into: node for node in self.opened.plan.nodes if node.phase in wanted}
        nodes |= {node.into: node for node in self.evidence.nodes(self.asked)}
        return sorted(nodes.values(), key=lambda node: node.phase)

    def section(self, section: Section) -> ShownSection:
        """Return the rows of one section."""
        threshold = "" if self.asked.threshold is None else f"{self.asked.threshold:g}"
        sentence = section.sentence.replace("at {threshold}", f"at {threshold}" if threshold else "of any score")
        sentence = sentence.replace("{threshold}", threshold or "any threshold")
        sentence = sentence.replace("{measure}", self.asked.measure)
        if absent := section.absent(self.asked):
            return ShownSection(section.name, section.title, sentence, pl.DataFrame(), 0, absent)
        default = MOST_ROWS if section.sheet is None else None
        rows, n_rows = self._rows(section, default if self.most_rows is None else self.most_rows)
        shown = self._with_columns(section, rows).drop(section.hides(self.asked), strict=False)
        if section.sheet is not None:
            shown = shown.with_columns(pl.lit(None, dtype=pl.String).alias(section.sheet.verdict))
        return ShownSection(section.name, section.title, sentence, named(shown), n_rows)

    def _rows(self, section: Section, most_rows: int | None) -> tuple[pl.DataFrame, int]:
        """Return the rows that are shown, and how many there are."""
        frames = {name: self._fetch(section, file) for name, file in section.reads.items()}
        if section.table or section.ranks:
            rows = self.asked.tables[section.table] if section.table else self._fetch(section, section.query)
            finished = section.finish(rows, frames, self.asked)
            return finished.head(finished.height if most_rows is None else most_rows), finished.height
        rows = self._fetch(section, section.query, most_rows=most_rows)
        return section.finish(rows, frames, self.asked), self._number(section)

    def _query(self, section: Section, file: str) -> exp.Query:
        return statement(file, section.segment(self.asked), columns=section.columns(self.asked))

    def _fetch(self, section: Section, file: str, *, most_rows: int | None = None) -> pl.DataFrame:
        query = self._query(section, file)
        limited = query if most_rows is None else query.limit(most_rows)
        return self.engine.fetch(limited, self._params(query))

    def _params(self, query: exp.Query) -> dict[str, float]:
        values = self.evidence.values(self.asked)
        names = dict.fromkeys(str(node.this) for node in query.find_all(exp.Placeholder))
        return {name: values[name] for name in names}

    def _number(self, section: Section) -> int:
        query = self._query(section, section.query).copy()  # what it returns is kept for others
        query.set("order", None)
        number = exp.cast(exp.Count(this=exp.Star()), "BIGINT").as_("n_rows")
        counted = exp.select(number).from_(query.subquery("every_row"))
        return int(self.engine.fetch(counted, self._params(query)).item())

    def _with_columns(self, section: Section, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with columns of the users' own, which they find by their keys; the first of several with one key."""
        for name, keys in section.inputs.items():
            source = self.opened.sources.get(name)
            if source is None or not source.shown or not self._has_keys(name, keys, rows):
                continue
            own_columns = self._columns_of(name, keys, rows, source.shown)
            rows = rows.join(own_columns, on=list(keys.values()), how="left", maintain_order="left")
        return rows

    def _has_keys(self, name: str, keys: Mapping[str, str], rows: pl.DataFrame) -> bool:
        """Whether the rows have the key, and the input is read with it."""
        relation = next((each for each in self.opened.plan.relations if each.into == f"{name}_read"), None)
        if relation is None or rows.is_empty():
            return False
        names = {*relation.reads, "source_file", "file_row_number"}
        return all(
            canonical in names and column_name in rows.columns and rows[column_name].null_count() < rows.height
            for canonical, column_name in keys.items()
        )

    def _columns_of(
        self, name: str, keys: Mapping[str, str], rows: pl.DataFrame, columns: Sequence[str]
    ) -> pl.DataFrame:
        wanted = rows.select(pl.col(column_name).alias(key) for key, column_name in keys.items())
        self.engine.fill("explained_keys", [wanted.unique().drop_nulls()])
        shown = [shown_name(each) for each in columns]
        segment = {"i": [*keys, *shown], "k": [*keys]}
        query = statement("explain/shown_columns", segment, relations={"input_read": f"{name}_read"})
        fetched = self.engine.fetch(query).sort([*keys, *shown], nulls_last=True)
        first = fetched.unique([*keys], keep="first", maintain_order=True)
        labels = {shown_name(each): f"{name}.{each}" for each in columns}
        return first.rename({**keys, **labels})


def _of_group(rows: str | exp.Query, group: Mapping[str, object]) -> exp.Query:
    """The rows of one group: those that equal its one row in every grouping column."""
    query = exp.select("*").from_(rows) if isinstance(rows, str) else rows
    if not group:
        return query
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("r"))
    same = [exp.NullSafeEQ(this=column(name, "r"), expression=column(name, "g")) for name in group]
    of_rows = exp.select(every).from_(query.subquery("r"))
    return of_rows.join(exp.to_table(_GROUP).as_("g"), on=exp.and_(*same), join_type="inner")


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the names that users know; a name that repeats gets a mark behind it."""
    return rows.rename(dict(zip(rows.columns, _unlike(map(users_name, rows.columns)), strict=True)))


def _unlike(names: Iterable[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        unlike = name
        while unlike in taken:
            unlike += "_"
        taken.add(unlike)
        yield unlike


# A sheet that people have filled in, as the input of a later run.


VERDICTS = {
    **dict.fromkeys(("true", "yes", "y", "1", "right"), True),
    **dict.fromkeys(("false", "no", "n", "0", "wrong"), False),
}
_SEPARATORS = ",;\t"
_MOST_OF_HEADER = 1 << 20  # bytes


def checked_rows(stage: PublishedStage, path: Path) -> pl.DataFrame:
    """Return the keys and verdicts of a sheet, with the types of the sample; rows without a verdict are left out.

    The sheet is CSV of `explain --format csv`, or written again by a spreadsheet.

    Raises:
        UsageError: the stage has no such sample.
        NoInputError: the file is not there.
        DataError: the sheet lacks a column, has a row that the sample lacks or has twice, or a verdict that is none.
    """
    section, sheet = _sheet(stage)
    if section.table not in stage.tables:
        message = f"stage {stage.name!r} did not make the table {section.table}"
        raise UsageError(message, remedy="Explain the run that drew the sample: --run names it.")
    filled = _read(path)
    for name in (*sheet.key, sheet.verdict):
        if name not in filled.columns:
            message = f"{path} has no column {name!r}"
            raise DataError(message, remedy=f"Its columns are: {', '.join(filled.columns)}.")
    verdicts = _with_verdicts(filled, sheet, path)
    keys = stage.tables[section.table].select(sheet.key)
    texts = keys.with_columns(pl.col(name).cast(pl.String).alias(f"_{name}") for name in sheet.key)
    of_texts = [f"_{name}" for name in sheet.key]
    renamed = verdicts.rename({name: f"_{name}" for name in sheet.key})
    strange = renamed.join(texts, on=of_texts, how="anti")
    if not strange.is_empty():
        message = f"{path}: row {strange['_row'][0]}: {_words(strange, sheet)} is not in the sample"
        raise DataError(message, remedy="A spreadsheet may have rounded a long number: import keys as text.")
    repeated = renamed.filter(pl.struct(of_texts).is_duplicated())
    if not repeated.is_empty():
        message = f"{path}: rows {repeated['_row'][0]} and {repeated['_row'][1]}: a match is there twice"
        raise DataError(message, remedy="Keep one row of each match.")
    return renamed.join(texts, on=of_texts, how="inner").sort("_row").select(*sheet.key, sheet.verdict)


def _sheet(stage: PublishedStage) -> tuple[Section, Sheet]:
    sections = () if stage.stage.evidence is None else stage.stage.evidence.sections
    sheets = [(section, section.sheet) for section in sections if section.sheet is not None]
    if not sheets:
        message = f"stage {stage.name!r} has no sample that people check"
        raise UsageError(message)
    return sheets[0]


def _read(path: Path) -> pl.DataFrame:
    """Return the sheet as text, whatever its separator; `_row` numbers the rows as a spreadsheet does."""
    try:
        header = read_file(path, most=_MOST_OF_HEADER).decode("utf-8", "replace").partition("\n")[0]
        separator = max(_SEPARATORS, key=header.count)
        filled = pl.read_csv(path, separator=separator, infer_schema=False, encoding="utf8-lossy")
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise NoInputError(message) from error
    except OSError as error:
        raise os_fault(error, f"reading {path}") from error
    except pl.exceptions.PolarsError as error:
        message = f"{path} cannot be read as CSV: {error}"
        raise DataError(message) from error
    names = {name: name.removeprefix("\ufeff").strip() for name in filled.columns}
    return filled.rename(names).with_row_index("_row", offset=2)


def _with_verdicts(filled: pl.DataFrame, sheet: Sheet, path: Path) -> pl.DataFrame:
    """Return the rows with a verdict, as a truth value."""
    text = pl.col(sheet.verdict).str.strip_chars().str.to_lowercase()
    judged = filled.with_columns(text.alias("_text")).filter(pl.col("_text").fill_null("") != "")
    strange = judged.filter(~pl.col("_text").is_in(list(VERDICTS)))
    if not strange.is_empty():
        row = strange.row(0, named=True)
        message = f"{path}: row {row['_row']}: {sheet.verdict} = {row[sheet.verdict]!r} is neither true nor false"
        raise DataError(message, remedy="Write true or false, or leave the cell empty.")
    verdict = pl.col("_text").replace_strict(VERDICTS, return_dtype=pl.Boolean).alias(sheet.verdict)
    stripped = (pl.col(name).str.strip_chars() for name in sheet.key)
    return judged.select("_row", *stripped, verdict)


def _words(rows: pl.DataFrame, sheet: Sheet) -> str:
    row = rows.row(0, named=True)
    return ", ".join(f"{name} = {row[f'_{name}']}" for name in sheet.key)
