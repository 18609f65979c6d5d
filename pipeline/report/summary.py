"""The words about a run: blocks of results, gates and methods, and numbers as text, whatever the format."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from ..base.records import dataclass
from ..base.visible_text import cleaned, percent, rows_in_words
from ..metrics.uncertainty.limits import DOUBTFUL, MEANINGS
from ..runs.stage_results import is_failure, texts_once
from ..stages.sections import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ..runs.stage_results import StageResult
    from ..stages.figures import Format, KeyNumber
    from .charts import Group, Panels
    from .published import PublishedRun, PublishedStage

    Row = Mapping[str, Any]


# Numbers, times and figures in words, as people read them on the page.


UNDEFINED = "not defined"
_SMALL, _LARGE = 1e-3, 1e6
_WIDE = 0.02  # an interval of a ratio that bears no tenth of a percentage point


def value_text(value: object, form: Format) -> str:
    """A value as its axis writes it."""
    if value is None:
        return UNDEFINED
    if form == "time" and isinstance(value, (int, float)):
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return cleaned(str(value), layout="")
    if form == "percent":
        return percent(value)
    if form == "integer" or (value == round(value) and abs(value) < _LARGE):
        return f"{value:,.0f}"
    return f"{value:,.4g}" if _SMALL <= abs(value) < _LARGE else f"{value:.3g}"


def headline(number: KeyNumber) -> str:
    """The value of a key number, in as many digits as its interval can bear."""
    if number.value is None:
        return UNDEFINED
    return _rounded(number.value, number)


def limits_text(number: KeyNumber) -> str:
    """The interval of a key number; empty without one."""
    if number.lower is None or number.upper is None:
        return ""
    lower, upper = _rounded(number.lower, number), _rounded(number.upper, number)
    return (
        f"{lower.removesuffix('%')}–{upper}"
        if number.format == "percent" and number.lower >= 0
        else f"{lower} to {upper}"
    )


def _rounded(value: float, number: KeyNumber) -> str:
    """A value or limit with the digits that the width of the interval bears: two of the width, one of a ratio's."""
    has_limits = number.lower is not None and number.upper is not None
    width = number.upper - number.lower if has_limits else 0.0  # type: ignore[operator]  # both are numbers
    if number.format == "percent":
        return _signed(percent(value, 0 if width > _WIDE else 1))
    if number.format != "number" or width <= 0:
        return _signed(value_text(value, number.format))
    return _signed(f"{value:,.{max(0, 1 - math.floor(math.log10(width)))}f}")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def doubt_text(quality: str) -> str:
    """Why limits are doubtful; empty if they are not."""
    if quality == "chosen_on_same_data":
        return "the threshold was chosen on the same data, which makes this a little too good"
    return next((f"doubtful: {MEANINGS[name]}" for name in DOUBTFUL if name == quality), "")


def utc_time(text: str) -> str:
    """A time of a record, which is UTC, for people."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return cleaned(text, layout="")
    return f"{time.day} {time:%b %Y, %H:%M} UTC"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 stage`, `2 stages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def described(panels: Panels, group: Group) -> str:
    """The numbers of a chart, for people who cannot see it."""
    figure, rows = panels.figure, panels.rows_of(group)
    sentences = [figure.title if figure.across else f"{figure.title}, {group.label}"]
    for index, series in reversed(list(enumerate(figure.series))):
        values = rows.select("x", value=pl.col(f"v{index}")).drop_nulls()
        if values.is_empty():
            sentences.append(f"{series.name}: {UNDEFINED}")
            continue
        ends = (values.row(values["value"].arg_min() or 0), values.row(values["value"].arg_max() or 0))
        lowest, highest = (
            f"{value_text(value, figure.y.format)} at {value_text(at, figure.x.format)}" for at, value in ends
        )
        sentences.append(f"{series.name}: lowest {lowest}, highest {highest}")
    return ". ".join(cleaned(sentence, layout="") for sentence in sentences) + "."


def setting(value: object) -> str:
    """Return a value of a config as JSON, without the keys that are not set."""
    return json.dumps(_without_unset(value), ensure_ascii=False)


def _without_unset(value: object) -> object:
    if isinstance(value, list):
        return [_without_unset(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_unset(inner) for key, inner in value.items() if inner is not None}
    return value


@dataclass(frozen=True)
class Heading:
    """A heading.

    Attributes:
        text: What stands below it.
        level: 1 for the whole, 2 for one of its stages.
    """

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """Running text in one paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list.

    Attributes:
        title: What its items are; may be empty.
        items: Texts of one paragraph.
        tone: `warning` where a reader must not miss them, `failure` where they say that a gate failed, `note` where a
            reader may pass them over.
    """

    title: str
    items: tuple[str, ...]
    tone: Literal["plain", "warning", "failure", "note"] = "plain"


@dataclass(frozen=True)
class Cells:
    """A table for people.

    Attributes:
        headers: Titles of the columns.
        rows: Cells as text, as many in each row as there are headers.
        flush_right: Of every column, whether its cells are numbers, which stand flush right.
        record_words: What a row is called where the table is too wide, and each row becomes a list of its fields.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    flush_right: tuple[bool, ...]
    record_words: str = "row"


def cells_of(frame: pl.DataFrame, text_of: Callable[[object], str]) -> Cells:
    """Return the rows of a frame as a table for people, whose values `text_of` writes; numbers stand flush right."""
    rows = tuple(tuple(map(text_of, row)) for row in frame.iter_rows())
    return Cells(tuple(frame.columns), rows, tuple(dtype.is_numeric() for dtype in frame.dtypes))


@dataclass(frozen=True)
class Curve:
    """A small curve.

    Attributes:
        values: Between 0 and 1, None where undefined: a gap.
        title: What it shows, from where to where.
    """

    values: tuple[float | None, ...]
    title: str


Block: TypeAlias = Heading | Paragraph | Items | Cells | Curve


def blocks_of_methods(run: PublishedRun, stages: Sequence[PublishedStage]) -> Iterator[Block]:
    """Return a paragraph for every stage, with its name above it if there are several."""
    for stage in stages:
        if len(stages) > 1:
            yield Heading(stage.name, level=2)
        yield Paragraph(paragraph_of(run, stage))


def paragraph_of(run: PublishedRun, stage: PublishedStage) -> str:
    """Return what a methods section says of a stage."""
    measured = Measured(
        parameters=stage.parameters,
        facts=run.record["facts"][stage.name],
        bindings=run.record["bindings"][stage.name],
        accounts=stage.accounts,
        tables=stage.tables,
    )
    sentences = [f"{sentence[0].upper()}{sentence[1:]}" for sentence in stage.stage.methods(measured) if sentence]
    carried = run.record["results"][stage.name].get("carried_from") or {}
    version = carried.get("version") or run.record["versions"]["thresher"]
    return " ".join([*sentences, f"All numbers were computed with thresher {version}."])


MOST_GROUPS = 10  # of one gate that are told one by one


@dataclass(frozen=True)
class GateSummary:
    """The gates of a run in words: what failed and makes it exit with 3, what passed, and how many went how."""

    failed: tuple[str, ...]
    passed: tuple[str, ...]
    headline: str


def summary_of_gates(rows: Sequence[Row]) -> GateSummary | None:
    """Return what there is to say of rows of the table `gates`; None without any."""
    if not rows:
        return None
    by_gate: dict[str, list[Row]] = {}
    for row in rows:
        by_gate.setdefault(row["gate"], []).append(row)
    failed = {gate: [row for row in of_gate if is_failure(row)] for gate, of_gate in by_gate.items()}
    passed = {gate: [row for row in of_gate if row["outcome"] == "passed"] for gate, of_gate in by_gate.items()}
    n_failed = sum(map(bool, failed.values()))
    n_passed = sum(len(passed[gate]) == len(of_gate) for gate, of_gate in by_gate.items())
    numbers = {"failed": n_failed, "passed": n_passed, "with warnings": len(by_gate) - n_failed - n_passed}
    outcomes = ", ".join(f"{number:,} {word}" for word, number in numbers.items() if number)
    return GateSummary(
        failed=tuple(_lines(failed, by_gate)),
        passed=tuple(_lines(passed, by_gate)),
        headline=f"{counted(len(by_gate), 'gate')}: {outcomes}",
    )


def blocks_of_gates(rows: Sequence[Row], stages: Collection[str] | None = None) -> Iterator[Block]:
    """Return what there is to say of rows of the table `gates`, of all stages or of some, failures first."""
    summary = summary_of_gates([row for row in rows if stages is None or row["stage"] in stages])
    if summary is not None:
        yield Items(summary.headline, summary.failed, tone="failure" if summary.failed else "plain")
        if summary.passed:
            yield Items("Passed:", summary.passed)


def _lines(chosen: Mapping[str, Sequence[Row]], by_gate: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield a line for each row, and one in place of the rows of a gate that has too many."""
    for gate, rows in chosen.items():
        shown = rows if len(rows) <= MOST_GROUPS else rows[: MOST_GROUPS // 2 if is_failure(rows[0]) else 0]
        yield from (f"{gate}: {row['sentence']}" for row in shown)
        if len(shown) < len(rows):
            word = "fail" if is_failure(rows[0]) else "pass"
            yield f"{gate}: {len(rows):,} of {len(by_gate[gate]):,} groups {word}; the table gates has all"


GROUP = "group"
NUMBERS_BEGIN = frozenset("0123456789-\u2013\u2212")


def blocks_of_run(run: PublishedRun, stages: Sequence[PublishedStage]) -> Iterator[Block]:
    """Return what there is to say of stages of a published run, warnings first."""
    yield Heading(heading_of(run))
    yield from blocks_of_gates(run.record.get("gates", ()), {stage.name for stage in stages})
    absent = {} if len(stages) < len(run.stages) else {name: [sentence] for name, sentence in run.absent.items()}
    if warnings := texts_once(absent | {stage.name: stage.warnings for stage in stages}):
        yield warnings_block(warnings)
    else:
        yield Paragraph("No warnings.")
    for stage in stages:
        yield from blocks_of_stage(stage.result())
    if notes := texts_once({stage.name: stage.notes for stage in stages}):
        yield notes_block(notes)


def heading_of(run: PublishedRun) -> str:
    """Return the name of a run, what it is about, when it was published and by which version."""
    about = "".join(f", {words}" for words in run.about)
    published = f", published {time_of(run.published_at)}" if run.published_at else ""
    return f"Run {run.folder.name}{about}{published}, by thresher {run.record['versions']['thresher']}"


def time_of(published_at: str) -> str:
    """Return the time of a record, which is UTC, to the minute."""
    return f"{published_at[:16].replace('T', ' ')} UTC"


def warnings_block(warnings: Sequence[str]) -> Items:
    """Return warnings with their number above them."""
    return Items(f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}", tuple(warnings), tone="warning")


def notes_block(notes: Sequence[str]) -> Items:
    """Return notes with their number above them."""
    return Items(notes_in_words(notes), tuple(notes), tone="note")


def notes_in_words(notes: Sequence[str]) -> str:
    """Return how many notes there are, and that none of them matters much."""
    return "1 note, which changes no decision" if len(notes) == 1 else f"{len(notes)} notes, which change no decision"


def blocks_of_stage(stage: StageResult, most_rows: int | None = None) -> Iterator[Block]:
    """Return what there is to say of the result of one stage, of at most so many groups."""
    summary = stage.summary
    task = "" if stage.kind == stage.name else f" ({stage.kind})"
    yield Heading(f"{stage.name}{task}: {rows_in_words(stage.n_rows)} in {stage.seconds:.1f} s", level=2)
    if stage.carried:
        yield Items("Not of this run:", (stage.carried,), tone="warning")
    if summary.rows:
        yield _cells(stage, most_rows)
        n_more = 0 if most_rows is None else len(summary.rows) - most_rows
        if n_more > 0:
            yield Paragraph(f"… {n_more:,} more group{'s' if n_more > 1 else ''}; thresher show prints all")
    if summary.legend:
        yield Paragraph(summary.legend)
    yield Paragraph(summary.sentence)
    if summary.curve:
        yield Curve(summary.curve, summary.curve_title)
    said = [
        *stage.unrequested,
        *(
            table
            for table in stage.omitted
            if any(text.startswith(f"table {table} is not made") for text in (*stage.warnings, *stage.notes))
        ),
    ]
    expected = {table: reason for table, reason in stage.omitted.items() if table not in said}
    if expected:
        yield Items("Not made:", tuple(f"{table}: {reason}" for table, reason in expected.items()))


def keys_on_request(unrequested: Mapping[str, str]) -> list[str]:
    """Return the keys that make tables which the config does not ask for, each once, in the order of the alphabet."""
    return sorted({key for key in unrequested.values() if key})


def _cells(stage: StageResult, most_rows: int | None) -> Cells:
    """Return the groups, with the grouping of each where there are several, else in the header."""
    summary = stage.summary
    groupings = dict.fromkeys(grouping for grouping in summary.groupings if grouping != "all")
    headers, rows = summary.headers, summary.rows[:most_rows]
    n_names = 1
    if len(groupings) > 1:
        headers = ("grouping", *headers)
        rows = tuple((name, *row) for name, row in zip(summary.groupings, rows, strict=False))
        n_names = 2
    elif groupings:
        headers = tuple(f"{GROUP} ({next(iter(groupings))})" if header == GROUP else header for header in headers)
    elif headers[0] == GROUP and len(headers) > 1:
        headers, rows, n_names = headers[1:], tuple(row[1:] for row in rows), 0
    are_numbers = (all(cell[:1] in NUMBERS_BEGIN for cell in column) for column in zip(*rows, strict=True))
    flush_right = tuple(number >= n_names and are for number, are in enumerate(are_numbers))
    return Cells(headers, rows, flush_right, GROUP if n_names else "row")
