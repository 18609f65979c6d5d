"""A sheet that people have filled in, as the input of a later run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...errors import DataError, NoInputError, UsageError, os_fault
from ...safe_files import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from ...stages.sections import Section, Sheet
    from ..published import PublishedStage

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
