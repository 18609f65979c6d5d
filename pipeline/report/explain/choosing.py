"""Which number of a published stage is meant: its table, its group and its threshold."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import UsageError
from ...records import dataclass
from ...runs.config_faults import near
from ...tables.columns import THRESHOLD
from ...tables.groupings import TOTAL, Grouping, group_text, internal_name, spellings, users_name
from ...tables.schemas import GROUPING
from .wording import at_threshold, other_measures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...stages.sections import Evidence, Measure
    from ..published import PublishedStage

REFERENCE, MEASURE = "recall_reference", "measure"
MOST_NAMED = 8
NULL = "null"


@dataclass(frozen=True)
class Wish:
    """What a person wants explained.

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
    frame, notes = _of_group(stage, _table(stage, measure.table), conditions, wish)
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


def _is_made(stage: PublishedStage, measure: Measure) -> bool:
    """Whether a table has a number, which may have to be asked for; where the table was not made that is told later."""
    table = stage.tables.get(measure.table)
    return table is None or measure.name in table.columns


def _measure(stage: PublishedStage, evidence: Evidence, wish: Wish) -> tuple[Measure, Wish]:
    """Return the number; a name that is a value of the column `metric` chooses the rows of that metric."""
    measures = {each.name: each for each in evidence.measures if _is_made(stage, each)}
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
    """Columns, grouping columns under their internal names, with the text that their value has.

    Raises:
        UsageError: a text is not `NAME=VALUE`, or names no such column.
    """
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


def _of_group(
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
    """Return the threshold whose row is shown for one that was asked for, and what to say where it is another.

    Args:
        thresholds: Those of the curve, rising.
        wanted: What was asked for.
        next_above: Whether the row of the next threshold above holds between two; else the next below is taken.

    Raises:
        UsageError: there is none on that side.
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
