"""An explanation in words: formulas with their numbers filled in, as text, Markdown, CSV, JSON or HTML."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.columns import names_in, value_of
from ..base.errors import UsageError
from ..base.records import dataclass
from ..base.visible_text import cleaned
from ..metrics.uncertainty.limits import INTERVAL_QUALITY, MEANINGS
from ..stages.sections import Measure
from .summary import Block, Heading, Items, Paragraph, cells_of, setting, time_of
from .text import (
    GAP,
    check_format,
    cleaned_cells,
    element,
    joined,
    lines_of,
    markdown_text,
    markup_of,
    natural_widths,
    record_lines,
    table_lines,
    total_width,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..stages.sections import Form
    from ..stages.stage import Stage
    from .evidence import ShownSection
    from .explaining import Compared, Effect, Explanation
    from .published import PublishedRun, PublishedStage


# What a published row and its run say of a number, in words: definition, interval, inputs, bindings, parameters.


_FILES_NAMED = 2
_NOT_SHOWN = ("name", "kind", "by")
_WITHOUT_SCORE = ("infinite_score", "nan_score", "null_score")


def meaning_of(stage: Stage, table: str, name: str) -> str:
    """The meaning of a column of a result table: the definition of the number."""
    columns = next(each.columns for each in stage.tables if each.name == table)
    return next(column.definition for column in columns if column.name == name)


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why the number is NULL, or has no limits, in the words of the table."""
    if row[name] is None:
        return f"undefined: {row.get('undefined') or 'no value'}"
    lacks_limits = f"{name}_lower" in row and row[f"{name}_lower"] is None
    return f"no interval: {row.get('undefined_interval') or 'none can be given'}" if lacks_limits else ""


def interval_in_words(run: PublishedRun, stage: PublishedStage, row: Mapping[str, Any], name: str) -> str:
    """How the limits of the number were made and how far they can be trusted; empty without limits."""
    if row.get(f"{name}_lower") is None:
        return ""
    parameters = stage.parameters
    facts = run.record.get("facts", {}).get(stage.name, {})
    evidence = stage.stage.evidence
    independent = facts.get("independent", "rows" if evidence is None else evidence.independent)
    ways = {
        "jackknife": f"closed form, from the spread between {independent}",
        "bootstrap": f"bootstrap-t, {parameters.get('resamples')} resamples of {independent}, seed "
        f"{parameters.get('seed')}",
    }
    way = facts.get("limits") or ways.get(parameters.get("uncertainty", "jackknife"), "closed form")
    quality = row.get(INTERVAL_QUALITY)
    meaning = dict(MEANINGS).get(quality) if quality is not None else None
    words = "" if meaning is None else f"; interval_quality = {quality}: {meaning}"
    return f"{100 * parameters.get('confidence', 0.95):.6g}% confidence, {way}{words}"


def files_in_words(run: PublishedRun, stage: PublishedStage, name: str) -> str:
    """The files that an input was read from: one or two of them by their paths, of more the first and the last."""
    paths = [
        str(file["path"])
        for file in run.record.get("inputs", ())
        if (file["stage"], file["input"]) == (stage.name, name)
    ]
    if len(paths) <= _FILES_NAMED:
        return f"{name}: {', '.join(paths)}" if paths else ""
    return f"{name}: {len(paths):,} files, {paths[0]} to {paths[-1]}"


def account_in_words(name: str, account: Mapping[str, int], *, missed: bool) -> str:
    """How many rows of an input were used, and what became of the others; `missed` ones count as below thresholds."""
    counted = _WITHOUT_SCORE if missed else ()
    others = {status: number for status, number in account.items() if status not in {"used", "rows_in"} and number}
    left_out = [f"{number:,} {status}" for status, number in sorted(others.items()) if status not in counted]
    below = [f"{number:,} {status}" for status, number in sorted(others.items()) if status in counted]
    words = f"{name}: {account.get('used', 0):,} of {account['rows_in']:,} rows used"
    words += f"; left out: {', '.join(left_out)}" if left_out else ""
    return words + (f"; counted as below every threshold: {', '.join(below)}" if below else "")


def bindings_of(run: PublishedRun, stage: PublishedStage) -> dict[str, str]:
    """The origin of every field that is read, by input."""
    words: dict[str, list[str]] = {}
    for name, binding in run.record.get("bindings", {}).get(stage.name, {}).items():
        input_name, _, field_name = name.partition(".")
        origin = binding["source"]
        if origin != "absent":
            column = binding.get("column") or binding.get("sql") or ""
            same = f"{field_name} ({origin})" if origin == "named" else f"{field_name} = {column} ({origin})"
            words.setdefault(input_name, []).append(same)
    return {name: ", ".join(fields) for name, fields in words.items()}


def deciding_parameters(run: PublishedRun, stage: PublishedStage, decides: tuple[str, ...]) -> dict[str, Any]:
    """The parameters that decide the numbers: those that the stage names, and all that differ from their defaults.

    A key that is not set has the value that the stage chose by itself, where the run record tells it.
    """
    inputs = {contract.name for contract in stage.stage.inputs}
    fields = stage.stage.parameters.model_fields
    defaults = {name: _plain(field.get_default(call_default_factory=True)) for name, field in fields.items()}
    facts = run.record.get("facts", {}).get(stage.name, {})
    return {
        name: facts.get(name) if value is None else value
        for name, value in stage.parameters.items()
        if name not in inputs
        and name not in _NOT_SHOWN
        and (name in decides or value != defaults.get(name))
        and (value is not None or name in decides)
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a default of any type
    """A default as JSON would hold it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


# Formulas of counts with the numbers filled in, and what they give.


_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_CLOSE = 1e-6
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "sqrt": math.sqrt}


@dataclass(frozen=True)
class Step:
    """A quantity on the way to a number: its formula, the same with the numbers in their places, and what it gives."""

    name: str
    formula: str
    filled: str
    value: float

    @property
    def text(self) -> str:
        """The step as one line."""
        return f"{self.name} = {self.formula} = {self.filled} = {figure(self.value)}"


def first_fitting(forms: Sequence[Form], values: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps of the first form that the values of a row fill, and that gives the published numbers."""
    return next(filter(None, (_filled(form, values) for form in forms)), ())


def _filled(form: Form, values: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps of a form; nothing where a quantity is missing, or another than the published number results."""
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    steps: list[Step] = []
    for name, formula in form:
        if not names_in(formula) <= numbers.keys():
            return ()
        try:
            value = value_of(formula, numbers, _FUNCTIONS)
        except ZeroDivisionError:
            return ()
        if name in values and (
            name not in numbers or not math.isclose(value, numbers[name], rel_tol=_CLOSE, abs_tol=_CLOSE)
        ):
            return ()
        steps.append(Step(name, formula, _with_numbers(formula, numbers), value))
        numbers.setdefault(name, value)
    return tuple(steps)


def _with_numbers(formula: str, numbers: Mapping[str, float]) -> str:
    def number_of(match: re.Match[str]) -> str:
        return figure(numbers[match[0]]) if match[0] in numbers and match[0] not in _FUNCTIONS else match[0]

    return _NAME.sub(number_of, formula)


def figure(value: object) -> str:
    """A number for people: counts with separators, other numbers with six digits; `null` where there is none."""
    if value is None:
        return "null"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


# What is said of a number, as blocks: its value, definition, inputs and parameters, and the rows behind it.


def blocks_of(explanation: Explanation, *, brief: bool = False) -> Iterator[Block]:
    """Return an explanation as blocks under headings, without its SQL; brief: the number and the rows behind it."""
    for number, facts in enumerate(facts_of(explanation, brief=brief)):
        yield Heading(facts.title, 1 if number == 0 else 2)
        yield Items("", facts.items)
    for section in explanation.sections:
        yield Heading(title_of(section), 2)
        yield Paragraph(section.absent or section.sentence)
        if not section.rows.is_empty():
            yield cells_of(section.rows, cell_text)


def facts_of(explanation: Explanation, *, brief: bool = False) -> Iterator[Items]:
    """Return what is said before the rows, one list for each topic; brief: the number alone."""
    yield _number(explanation)
    if brief:
        return
    if explanation.warnings:
        yield Items("Warnings of the run", explanation.warnings)
    definition = f"{explanation.metric}: {explanation.meaning}"
    yield Items("Definition", (definition, *(step.text for step in explanation.steps)))
    if explanation.compared is not None:
        yield _beside(explanation.compared)
    if explanation.interval:
        yield Items("Interval", (explanation.interval,))
    bindings = (f"{name} reads {fields}" for name, fields in explanation.bindings.items())
    yield Items("Inputs", (*explanation.inputs, *bindings))
    yield Items("Parameters", tuple(f"{key} = {setting(value)}" for key, value in explanation.parameters.items()))


def _number(explanation: Explanation) -> Items:
    whose = f"group {explanation.group}" if explanation.group != "all" else "all groups together"
    at = "" if explanation.threshold is None else f" at {explanation.threshold:g}"
    value = f"{explanation.metric} = {figure(explanation.value)}"
    if explanation.lower is not None and explanation.upper is not None:
        value += f" ({figure(explanation.lower)} to {figure(explanation.upper)})"
    undefined = (explanation.undefined,) if explanation.undefined else ()
    run = (f"run {explanation.run}, published {time_of(explanation.published_at)}",) if explanation.run else ()
    title = f"{explanation.stage}: {explanation.metric}{at}, {whose}"
    return Items(title, (value, *undefined, *explanation.notes, *run))


def _beside(compared: Compared) -> Items:
    """The number of a tool, with an item for every convention."""
    title = f"Compared with {compared.tool}: {compared.name}"
    if compared.refused:
        return Items(title, (f"its number cannot be computed: {compared.refused}",))
    same = compared.ours == compared.theirs
    values = f"{figure(compared.ours)} here, {figure(compared.theirs)} there{': equal' if same else ''}"
    return Items(title, (f"{values} ({compared.exactly})", *map(_of_effect, compared.effects)))


def _of_effect(effect: Effect) -> str:
    change = effect.words or (f"{effect.effect:+.6g}" if effect.effect is not None else "undefined")
    return f"{effect.topic}: here {effect.ours}; there {effect.tool}: {change}"


def title_of(section: ShownSection) -> str:
    """Return the title of a section with how many rows there are, and how many are shown."""
    if section.absent:
        return section.title
    shown = section.rows.height
    number = f"{section.n_rows:,}" if shown == section.n_rows else f"{shown:,} of {section.n_rows:,}"
    return f"{section.title} ({number})"


def cell_text(value: object) -> str:
    """Return a value of a row as text; whole numbers are as they are, as many of them are ids."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else figure(value)


# Numbers of a stage beside its measures: any column of its tables of groups, without a formula of counts.


_NUMBERS = ("DOUBLE", "BIGINT", "DECIMAL(38, 15)")
_OF_ROWS = frozenset(  # columns in the key of tables whose rows are no numbers of groups, but what lies behind these
    {*("event_id", "query_id", "doc_id", "series_id", "unit", "mention", "position"), *("draw", "sample_rank")}
)


def other_measures(stage: PublishedStage) -> dict[str, Measure]:
    """Return the numbers by column, each of the first table that has it; tables that were made come first."""
    tables = [table for table in stage.stage.tables if _OF_ROWS.isdisjoint(table.key)]
    tables.sort(key=lambda table: table.name not in stage.tables or stage.tables[table.name].is_empty())
    return {
        column.name: Measure(column.name, table.name)
        for table in reversed(tables)
        for column in table.columns
        if column.type in _NUMBERS and column.name not in table.key
    }


def at_threshold(frame: pl.DataFrame, column: str, threshold: float) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the rows at a threshold: where there are none, at the next below, else at the lowest, and say so."""
    own = frame[column].drop_nulls().sort()
    if own.is_empty() or threshold in own:
        return (frame if own.is_empty() else frame.filter(frame[column] == threshold)), ()
    below = own.filter(own <= threshold)
    nearest = own[0] if below.is_empty() else below[-1]
    words = f"its table has no row at {threshold:g}: {nearest:g} is the next {column} there"
    return frame.filter(frame[column] == nearest), (words,)


def _json(explanation: Explanation, _width: int | None, _brief: bool) -> str:  # noqa: FBT001 - see _text
    facts = {field.name: getattr(explanation, field.name) for field in dataclasses.fields(explanation)}
    sql, compared = facts.pop("sql"), facts.pop("compared")
    facts |= {name: facts[name] or None for name in ("undefined", "interval")}
    facts["steps"] = [{name: getattr(step, name) for name in ("name", "formula", "value")} for step in facts["steps"]]
    facts["sections"] = list(map(_section, explanation.sections))
    facts |= {"sql": sql} if sql else {}
    facts |= {"profile": _compared(compared)} if compared is not None else {}
    return f"{json.dumps(facts, ensure_ascii=False, default=str, indent=2)}\n"


def _section(section: ShownSection) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "sentence": section.sentence,
        "absent": section.absent or None,
        "n_rows": section.n_rows,
        "rows": section.rows.with_columns(_finite(section.rows)).to_dicts(),
    }


def _finite(rows: pl.DataFrame) -> list[pl.Expr]:
    """The columns of floating numbers without NaN and infinity, which JSON does not know: they are null."""
    columns = (pl.col(name) for name, dtype in rows.schema.items() if dtype.is_float())
    return [pl.when(column.is_finite()).then(column) for column in columns]


def _compared(compared: Compared) -> dict[str, Any]:
    """The number of a tool."""
    names = ("tool", "name", "ours", "theirs", "exactly")
    effects = [dataclasses.asdict(effect) for effect in compared.effects]
    return {name: getattr(compared, name) for name in names} | {
        "refused": compared.refused or None,
        "conventions": effects,
    }


WIDTH_OF_PIPES = 100
_FENCE = "```"


def written(explanation: Explanation, format_: str, width: int | None = None, *, brief: bool = False) -> str:
    """Return an explanation as `text`, `markdown`, `csv` (the rows of one section) or `json` (all of it).

    In text a table that is wider than the terminal becomes one record below the other; without a width tables are as
    wide as their rows, and sentences are broken at 100. Brief text is the number and the rows behind it.

    Raises:
        UsageError: the format is unknown, or CSV is asked of several sections.
    """
    check_format(format_, _WRITERS)
    return _WRITERS[format_](explanation, width, brief)


def _text(explanation: Explanation, width: int | None, brief: bool) -> str:  # noqa: FBT001 - as all writers
    return "".join(f"{line}\n" for line in _lines(explanation, width, brief=brief)) + (
        f"SQL\n\n{cleaned(explanation.sql)}" if explanation.sql else ""
    )


def _lines(explanation: Explanation, width: int | None, *, brief: bool) -> Iterator[str]:
    for facts in facts_of(explanation, brief=brief):
        yield from lines_of(facts, width or WIDTH_OF_PIPES)
        yield ""
    for section in explanation.sections:
        about = Items(title_of(section), (section.absent or section.sentence,))
        yield from lines_of(about, width or WIDTH_OF_PIPES)
        yield from (f"{GAP}{line}".rstrip() for line in _table(section.rows, width))
        yield ""


def _table(rows: pl.DataFrame, width: int | None) -> Iterator[str]:
    """An aligned table below a title, or, if it is too wide, one record below the other."""
    if rows.is_empty():
        return
    cells = cleaned_cells(cells_of(rows, cell_text))
    widths = natural_widths(cells.headers, cells.rows)
    room = None if width is None else width - len(GAP)
    if room is None or total_width(widths) <= room:
        yield from table_lines(cells.headers, cells.rows, widths, cells.flush_right, ruled=False)
    else:
        yield from record_lines(cells.headers, cells.rows, room)


def _markdown(explanation: Explanation, _width: int | None, brief: bool) -> str:  # noqa: FBT001 - see _text
    text = f"{markdown_text(blocks_of(explanation, brief=brief))}\n"
    if not explanation.sql:
        return text
    heading = markdown_text([Heading("SQL", 2)])
    fence = max((_FENCE, *(f"{run}`" for run in re.findall("`{3,}", explanation.sql))), key=len)
    return f"{text}{heading}\n{fence}sql\n{cleaned(explanation.sql)}{fence}\n"


def _csv(explanation: Explanation, _width: int | None, _brief: bool) -> str:  # noqa: FBT001 - see _text
    names = [section.name for section in explanation.sections]
    if len(names) != 1:
        message = "CSV has the rows of one section"
        raise UsageError(message, remedy=f"Add --show with one of {', '.join(names) or 'the sections of the stage'}.")
    section = explanation.sections[0]
    if section.absent:
        message = f"there is no section {section.name} here: {section.absent}"
        raise UsageError(message)
    return section.rows.write_csv()


_WRITERS: dict[str, Callable[[Explanation, int | None, bool], str]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
}


@dataclass(frozen=True, repr=False)
class Explained:
    """Where a number comes from: it shows itself as text, and in notebooks as HTML.

    Attributes:
        explanation: Everything that is said, as data.
    """

    explanation: Explanation

    @property
    def sections(self) -> dict[str, pl.DataFrame]:
        """The rows behind the number by name of the section, such as `false_positives`; none of frames."""
        return {section.name: section.rows for section in self.explanation.sections}

    def __repr__(self) -> str:
        """Say the same as `thresher explain`."""
        return written(self.explanation, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with tables, for notebooks."""
        lines = [content for line in self.explanation.sql.splitlines() for content in (line, element("br"))]
        return str(joined(markup_of(blocks_of(self.explanation)), element("pre", *lines) if lines else None))
