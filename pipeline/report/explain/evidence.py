"""The rows behind a number: the sections of a stage, asked of an engine, with columns of the users' own beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...engines.duckdb import DuckDB, Resources
from ...errors import DataError, NoInputError, UsageError, os_fault
from ...plan.checks import naming_user_sql
from ...plan.count_tables import begin
from ...plan.nodes import Phase
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...runs.config_faults import near
from ...safe_files import read_file
from ...sources.bindings import columns_without_role, shown_columns
from ...tables.groupings import shown_name, users_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ...interrupts import StopRequest
    from ...plan.nodes import Node
    from ...runs.opening import OpenedStage
    from ...stages.sections import Asked, Evidence, Section, Sheet
    from ..published import PublishedStage


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
    """Return the columns of the users' own that are shown, by input.

    Args:
        opened: The stage.
        wanted: Names `input.column`; none: the first columns that have no role.

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
    """Return the rows of some sections.

    Args:
        opened: The stage, with the columns to show in its plan.
        evidence: What there is to show of it.
        asked: What is explained.
        sections: The sections.
        most_rows: Most rows of each; None: ten, and all rows of a sheet.
        stop: Checked while a query runs.
    """
    opened.fetch()
    with DuckDB(Resources(), opened.folders, stop) as engine, naming_user_sql(engine, opened.plan):
        reader = _Reader(engine, opened, evidence, asked, most_rows)
        reader.define()
        return tuple(reader.section(section) for section in sections)


@dataclass(frozen=True)
class _Reader:
    """Reads the rows of sections from an engine.

    Attributes:
        engine: The engine.
        opened: The stage.
        evidence: What there is to show of it.
        asked: What is explained.
        most_rows: Most rows of a section, as `rows_behind` takes it.
    """

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
        """The relations of the plan, those of the evidence in their places, in the order of phases."""
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

    Args:
        stage: The stage whose sample was checked.
        path: The sheet as CSV: of `explain --format csv`, or written again by a spreadsheet.

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
