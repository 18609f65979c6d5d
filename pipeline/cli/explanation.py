"""`thresher explain`: where a published number comes from, as text, Markdown, CSV or JSON on stdout."""

from __future__ import annotations

import dataclasses
import html
import json
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from pipeline.cli.terminal import cleaned, write
from pipeline.errors import UsageError
from pipeline.report.explain.formulas import figure
from pipeline.report.text.summary import time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import polars as pl

    from pipeline.report.explain.evidence import ShownSection
    from pipeline.report.explain.explaining import Explanation
    from pipeline.report.explain.profiles import Compared, Effect
    from pipeline.report.published import PublishedRun

GAP = "  "
WIDTH = 100


def write_explanation(explanation: Explanation, format_: str) -> None:
    """Write an explanation to stdout.

    Args:
        explanation: What is to be written.
        format_: `text`, `markdown`, `csv` (the rows of one section) or `json` (all of it).

    Raises:
        UsageError: the format is unknown, or CSV is asked of several sections.
    """
    if format_ not in WRITERS:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(WRITERS)}.")
    write("".join(WRITERS[format_](explanation)))


def write_checked(run: PublishedRun, name: str, path: Path) -> None:
    """Write the verdicts of a filled-in sheet as Parquet to stdout.

    Args:
        run: The run that drew the sample.
        name: Name of its stage.
        path: The sheet, CSV.

    Raises:
        UsageError: stdout is a terminal, or the stage has no sample.
        DataError: the sheet is not that of the sample, or has a verdict that is none.
    """
    from pipeline.report.explain.checked import checked_rows  # noqa: PLC0415 - not for --help

    if sys.stdout.isatty():
        message = "Parquet is not for a terminal"
        raise UsageError(message, remedy=f"Send it to a file: … --checked {path} > audited.parquet")
    checked_rows(run.chosen([name])[0], path).write_parquet(sys.stdout.buffer)


def _csv(explanation: Explanation) -> Iterator[str]:
    names = [section.name for section in explanation.sections]
    if len(names) != 1:
        message = "CSV has the rows of one section"
        raise UsageError(message, remedy=f"Add --show with one of {', '.join(names) or 'the sections of the stage'}.")
    section = explanation.sections[0]
    if section.absent:
        message = f"there is no section {section.name} here: {section.absent}"
        raise UsageError(message)
    yield section.rows.write_csv()


def _json(explanation: Explanation) -> Iterator[str]:
    sections = [
        {
            "name": section.name,
            "title": section.title,
            "sentence": section.sentence,
            "absent": section.absent or None,
            "n_rows": section.n_rows,
            "rows": section.rows.with_columns(_finite(section.rows)).to_dicts(),
        }
        for section in explanation.sections
    ]
    steps = [{"name": step.name, "formula": step.formula, "value": step.value} for step in explanation.steps]
    plain = (
        "run",
        "published_at",
        "stage",
        "kind",
        "metric",
        "group",
        "threshold",
        "value",
        "lower",
        "upper",
        "meaning",
    )
    facts = {name: getattr(explanation, name) for name in plain}
    facts |= {"undefined": explanation.undefined or None, "interval": explanation.interval or None, "steps": steps}
    facts |= {"parameters": dict(explanation.parameters), "inputs": list(explanation.inputs)}
    facts |= {"bindings": dict(explanation.bindings), "notes": list(explanation.notes)}
    facts |= {"warnings": list(explanation.warnings), "sections": sections}
    facts |= {"sql": explanation.sql} if explanation.sql else {}
    facts |= {"profile": _compared(explanation.compared)} if explanation.compared is not None else {}
    yield f"{json.dumps(facts, ensure_ascii=False, default=str, indent=2)}\n"


def _compared(compared: Compared) -> dict[str, Any]:
    """The number of a tool, for JSON."""
    names = ("tool", "name", "ours", "theirs", "exactly")
    effects = [dataclasses.asdict(effect) for effect in compared.effects]
    return {name: getattr(compared, name) for name in names} | {
        "refused": compared.refused or None,
        "conventions": effects,
    }


def _finite(rows: pl.DataFrame) -> list[pl.Expr]:
    """The columns of floating numbers without NaN and infinity, which JSON does not know: they are null."""
    import polars as pl  # noqa: PLC0415 - not for --help

    columns = (pl.col(name) for name, dtype in rows.schema.items() if dtype.is_float())
    return [pl.when(column.is_finite()).then(column) for column in columns]


def _facts(explanation: Explanation) -> Iterator[tuple[str, list[str]]]:
    """The parts of an explanation before its rows: a heading and lines."""
    where = f"group {explanation.group}" if explanation.group != "all" else "all groups together"
    at = "" if explanation.threshold is None else f" at {explanation.threshold:g}"
    value = f"{explanation.metric} = {figure(explanation.value)}"
    if explanation.lower is not None and explanation.upper is not None:
        value += f" ({figure(explanation.lower)} to {figure(explanation.upper)})"
    yield (
        f"{explanation.stage}: {explanation.metric}{at}, {where}",
        [
            value,
            *([explanation.undefined] if explanation.undefined else []),
            *explanation.notes,
            f"run {explanation.run}, published {time_of(explanation.published_at)}",
        ],
    )
    if explanation.warnings:
        yield "Warnings of the run", list(explanation.warnings)
    yield "Definition", [f"{explanation.metric}: {explanation.meaning}", *(step.text for step in explanation.steps)]
    if explanation.compared is not None:
        yield _beside(explanation.compared)
    if explanation.interval:
        yield "Interval", [explanation.interval]
    bindings = [f"{name} reads {fields}" for name, fields in explanation.bindings.items()]
    yield "Inputs", [*explanation.inputs, *bindings]
    yield "Parameters", [f"{key} = {_setting(value)}" for key, value in explanation.parameters.items()]


def _beside(compared: Compared) -> tuple[str, list[str]]:
    """The number of a tool: a heading, and a line for every convention."""
    heading = f"Compared with {compared.tool}: {compared.name}"
    if compared.refused:
        return heading, [f"its number cannot be had: {compared.refused}"]
    same = compared.ours == compared.theirs
    values = f"{figure(compared.ours)} here, {figure(compared.theirs)} there{': equal' if same else ''}"
    return heading, [f"{values} ({compared.exactly})", *map(_of_effect, compared.effects)]


def _of_effect(effect: Effect) -> str:
    change = effect.words or (f"{effect.effect:+.6g}" if effect.effect is not None else "undefined")
    return f"{effect.topic}: here {effect.ours}; there {effect.tool}: {change}"


def _setting(value: Any) -> str:  # noqa: ANN401 - any value of a config
    """A value of the config without the keys that are not set."""
    if isinstance(value, dict):
        value = {key: inner for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        value = [
            {key: inner for key, inner in item.items() if inner is not None} if isinstance(item, dict) else item
            for item in value
        ]
    return json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """Text on one line that cannot steer a terminal."""
    return cleaned(text, layout="")


def _text(explanation: Explanation) -> Iterator[str]:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    for heading, lines in _facts(explanation):
        yield f"{_plain(heading)}\n"
        yield from (f"{wrapped}\n" for line in lines for wrapped in _wrapped(line, width))
        yield "\n"
    for section in explanation.sections:
        yield f"{section.title}{_of_all(section)}\n"
        yield from (f"{wrapped}\n" for wrapped in _wrapped(section.absent or section.sentence, width))
        yield from (f"{GAP}{line}\n" for line in _table(section.rows, width - len(GAP)))
        yield "\n"
    if explanation.sql:
        yield f"SQL\n\n{cleaned(explanation.sql)}"


def _of_all(section: ShownSection) -> str:
    """How many rows there are, and how many are shown."""
    if section.absent:
        return ""
    shown = section.rows.height
    return f" ({section.n_rows:,})" if shown == section.n_rows else f" ({shown:,} of {section.n_rows:,})"


def _wrapped(line: str, width: int) -> list[str]:
    inner = textwrap.wrap(_plain(line), max(width - 4, 20), break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{GAP}{inner[0]}", *(f"{GAP}{GAP}{further}" for further in inner[1:])]


def _cells(rows: pl.DataFrame) -> list[list[str]]:
    return [[_plain(_cell(value)) for value in row] for row in rows.iter_rows()]


def _cell(value: object) -> str:
    """A value of a row; whole numbers are as they are, as many of them are ids."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else figure(value)


def _table(rows: pl.DataFrame, width: int) -> Iterator[str]:
    """An aligned table, or, where it is too wide, one record below the other."""
    if rows.is_empty():
        return
    names = [_plain(name) for name in rows.columns]
    cells = _cells(rows)
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    if sum(widths) + len(GAP) * (len(widths) - 1) <= width or not sys.stdout.isatty():
        right = [dtype.is_numeric() for dtype in rows.dtypes]
        yield _line(names, widths, right)
        yield from (_line(row, widths, right) for row in cells)
        return
    longest = max(map(cell_len, names))
    for number, row in enumerate(cells, start=1):
        yield f"── row {number} ──"
        for name, cell in zip(names, row, strict=True):
            yield f"{name}{' ' * (longest - cell_len(name))}{GAP}{cell}"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        f"{' ' * (width - cell_len(cell))}{cell}" if flush else f"{cell}{' ' * (width - cell_len(cell))}"
        for cell, width, flush in zip(cells, widths, right, strict=True)
    )
    return GAP.join(padded).rstrip()


def _markdown(explanation: Explanation) -> Iterator[str]:
    for number, (heading, lines) in enumerate(_facts(explanation)):
        yield f"{'##' if number == 0 else '###'} {_escaped(heading)}\n\n"
        yield from (f"- {_escaped(line)}\n" for line in lines)
        yield "\n"
    for section in explanation.sections:
        yield f"### {section.title}{_of_all(section)}\n\n{_escaped(section.absent or section.sentence)}\n\n"
        yield from _markdown_table(section.rows)
    if explanation.sql:
        yield f"### SQL\n\n```sql\n{cleaned(explanation.sql)}```\n"


def _markdown_table(rows: pl.DataFrame) -> Iterator[str]:
    if rows.is_empty():
        return
    yield _markdown_row(rows.columns)
    yield _markdown_row("--:" if dtype.is_numeric() else "---" for dtype in rows.dtypes)
    yield from (_markdown_row(row) for row in _cells(rows))
    yield "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |\n"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, on one line."""
    escaped = html.escape(_plain(text), quote=False)
    return "".join(f"\\{letter}" if letter in "\\`*_[]|#~" else letter for letter in escaped)


WRITERS: dict[str, Callable[[Explanation], Iterator[str]]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
}
