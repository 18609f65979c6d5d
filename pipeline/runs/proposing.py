"""`thresher init --from`: a config proposed from files, for people to read; what it guesses it says."""

from __future__ import annotations

import json
import math
import re
import shlex
from contextlib import suppress
from dataclasses import field as data_field
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import DataError, NoInputError, UsageError
from ..records import dataclass
from ..sources.bindings import USUAL, fit, is_usual_name, proposed
from ..sources.delimiters import keys_of_file
from ..sources.finding import Search
from ..sources.formats import ENDINGS, TEXTS, format_of, is_read
from ..sources.frames import tables_of
from ..sources.inputs import Field, Input, InputContract
from ..sources.listing import find_files
from ..sources.parquet_files import DataFile
from ..sources.rows import lists_of_tags, tags_in_words
from ..sources.text_casts import text_cast
from ..sources.types import TEXTS as ARROW_TEXTS
from ..sources.types import canonical_type, in_expression
from ..sources.unnesting import ROW
from ..visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from ..sources.inputs import Format, Kind
    from ..sources.text_casts import TextCast
    from ..stages.stage import Stage

STEPS = 100
_BY = "#   by = "
ID, SCORE, INVALID_SCORES, MOST_ROWS = "id", "score", "invalid_scores", 100_000
UNNEST, TAGS = "unnest", "tags"
OF_MENTIONS = ("text", "type")  # a document beside the list of its mentions may have them, too
NAMES_OF_TYPES = ("labels", "label", "types", "tags", "categories")
MOST_LISTS = 4  # and structs within each other
PLACES_OF_LISTS = ("begin", "stop", "tag")  # of [0, 4, "LOC"]
USUAL_GROUPS = (
    *("system", "model", "method", "classifier", "matcher", "dataset", "source", "language", "lang"),
    *("type", "category", "class", "domain", "country", "region", "split", "group"),
)
SELDOM_GROUPS = re.compile(
    r"(?i)q0|from_name|to_name|iteration|text|title|url|link|comment|.*_?id|doc(ument)?|name|date|time|day"
)
WORDS_FOR_NONE = ("NA", "N/A", "#N/A", "n/a", "NULL", "null", "None", "none", "-", ".", "?")
OF_TEXT: tuple[Kind, ...] = ("number", "boolean", "instant")
MOST_CLASSES = 1_000  # that a column of labels names; more are texts
SCORED = InputContract("scored", (Field("score", "number", "the score"),), "rows with a score")
MOST_DIGITS = 700  # of a sum of two floating numbers, all of them


@dataclass(frozen=True)
class Found:
    """A file or pattern, with the columns of its first file.

    Attributes:
        written: As it was written.
        file: Its first file.
        typed: Whether its columns have types.
        rows: Rows of all its files.
        keys: Keys of the input that say how its files are written.
        called: What columns are called for what they hold, where their names do not say so; empty: they fit no field.
        of_elements: The same file with the elements of a list as rows, for each of its columns of lists.
        is_json: Whether it is one of JSON lines, whose times are text.
        casts: What reads its columns of text, as far as it was asked.
    """

    written: str
    file: DataFile
    typed: bool
    rows: int
    keys: dict[str, Any]
    called: dict[str, str] = data_field(default_factory=dict)
    of_elements: tuple[Found, ...] = ()
    is_json: bool = False
    casts: dict[tuple[str, Kind], TextCast | None] = data_field(default_factory=dict, compare=False)

    def fields(self, contract: InputContract) -> dict[str, tuple[str, float]]:
        """The columns proposed for the fields of an input, with how well they fit."""
        return proposed(contract, self.file.schema, can_be=self.can_be, called=self.called)

    def can_be(self, column: str, kind: Kind) -> bool:
        """Whether a column can be read as what a field expects, by an expression if need be."""
        arrow = self.file.schema.field(column).type
        if str(arrow) in ARROW_TEXTS and kind not in {"key", "any"}:
            if kind == "boolean" and (self.class_of_element(column) or self.class_that_is_true(column)):
                return True
            return self.cast(column, kind) is not None or not self.typed  # what does not fit is told when it is read
        return canonical_type(arrow, kind) is not None or self.is_zero_or_one(column, kind)

    def cast(self, column: str, kind: Kind) -> TextCast | None:
        """What reads a column of text as what a field expects; None: nothing does, or it needs nothing."""
        if (column, kind) not in self.casts:
            rows = pl.scan_parquet(self.file.path).select(column)
            self.casts[column, kind] = text_cast(rows, column, kind)
        return self.casts[column, kind]

    def expression(self, column: str, kind: Kind) -> str:
        """The expression that a column is to be read with; empty: it is read as it is."""
        if self.is_zero_or_one(column, kind):
            return f"{in_expression(column)} = 1"
        if kind == "boolean" and (of_element := self.class_of_element(column)):
            return f"{in_expression(column)} = {in_expression(of_element)}"
        if str(self.file.schema.field(column).type) not in ARROW_TEXTS or kind in {"key", "any"}:
            return ""
        spec = Input.model_validate({"path": self.written, **self.keys})
        of_text = not self.typed or (self.is_json and kind in {"instant", "position"})
        if of_text and is_read(pl.scan_parquet(self.file.path), column, kind, spec):
            return ""
        cast = self.cast(column, kind)
        if cast is None and kind == "boolean" and (true_class := self.class_that_is_true(column)):
            return f"{in_expression(column)} = {true_class}"
        return "" if cast is None else cast.sql

    def is_zero_or_one(self, column: str, kind: Kind) -> bool:
        """Whether a column of floating numbers holds nothing but 0, 1 and gaps, for a field of truth values."""
        if kind != "boolean" or str(self.file.schema.field(column).type) not in {"double", "float"}:
            return False
        return self._values(column).drop_nulls().is_in([0.0, 1.0]).all()

    def class_of_element(self, column: str) -> str:
        """The column of elements that names the class each of them scores; empty: there is none.

        Args:
            column: A column of text beside the list, whose values such classes are.
        """
        if UNNEST not in self.keys:
            return ""
        texts = [field.name for field in self.file.schema if str(field.type) in ARROW_TEXTS and field.name != column]
        inside = [name for name in texts if name.startswith(f"{self.keys[UNNEST][-1]}.")]
        values = self._values(column).drop_nulls().unique()
        return next((name for name in inside if values.is_in(self._values(name).unique().implode()).all()), "")

    def class_that_is_true(self, column: str) -> str:
        """What a column that names classes is to be compared with, as SQL; empty: it names none.

        The class that is predicted, if a column names it and the score is that of this class, at least 1 / classes;
        otherwise that of two classes whose rows score higher.
        """
        texts = [field.name for field in self.file.schema if str(field.type) in ARROW_TEXTS]
        score = proposed(SCORED, self.file.schema, can_be=self.can_be, called=self.called).get(SCORE)
        classes = self._values(column).drop_nulls().unique()
        if column not in texts or score is None or not 1 < len(classes) <= min(MOST_CLASSES, self.file.rows / 2):
            return ""
        predicted = [name for name in texts if name != column and self._holds_only(name, classes)]
        least, _ = self.limits(score[0]) or (0.0, 0.0)
        if predicted and (len(classes) > 2 or least >= 1 / len(classes)):  # noqa: PLR2004 - a class and its opposite
            return in_expression(predicted[0])
        if len(classes) > 2:  # noqa: PLR2004
            return ""
        scores = self._numbers(score[0]).collect()["x"]
        means = pl.DataFrame({"class": self._values(column), "score": scores}).drop_nulls().group_by("class").mean()
        true_class = str(means.sort("score", "class")["class"].last())
        return "'{}'".format(true_class.replace("'", "''"))

    def _holds_only(self, column: str, values: pl.Series) -> bool:
        """Whether a column has values, and none but these."""
        held = self._values(column).drop_nulls().unique()
        return len(held) > 0 and held.is_in(values.implode()).all()

    def has_gaps(self, column: str) -> bool:
        """Whether a column of the first file has rows without a value."""
        return self._values(column).null_count() > 0

    def _values(self, column: str) -> pl.Series:
        """The values of a column of the first file, NaN as none."""
        values = pl.scan_parquet(self.file.path).select(column).collect()[column]
        return values.fill_nan(None) if values.dtype.is_float() else values

    def fit(self, contract: InputContract) -> tuple[float, float]:
        """How well the file fits an input: 0 first if a required field finds no column."""
        fields = self.fields(contract)
        return fit(contract, fields, Path(self.written).name), sum(likeness for _, likeness in fields.values())

    def best(self, contract: InputContract) -> Found:
        """The rows that fit an input best: rows of the file, elements of a list, or mentions of its tags."""

        def fit_of(rows: Found) -> tuple[float, float, bool]:
            is_predicted = "pred" in rows.keys.get(TAGS, "").lower()
            return *rows.fit(contract), is_predicted == (contract.name == "predicted")

        return max((self, *self.of_elements), key=fit_of)

    def limits(self, column: str) -> tuple[float, float] | None:
        """The lowest and highest number of a column of the first file; None if it has none."""
        finite = self._numbers(column).filter(pl.col("x").is_finite())
        low, high = finite.select(pl.col("x").min().alias("low"), pl.col("x").max().alias("high")).collect().row(0)
        return None if low is None else (low, high)

    def has_invalid(self, column: str) -> bool:
        """Whether a column of the first file has rows without a number, or with one that is not finite."""
        finite = pl.col("x").is_finite().fill_null(value=False)
        return not self._numbers(column).select(finite.all()).collect().item()

    def _numbers(self, column: str) -> pl.LazyFrame:
        """The numbers of a column of the first file, as `x`."""
        values = pl.col(column)
        cast = self.casts.get((column, "number"))
        if cast is not None and not ("decimal" in self.keys and cast.has_decimal_commas):
            values = cast.reading(values.str.strip_chars())
        elif "decimal" in self.keys:
            values = values.str.replace(self.keys["decimal"], ".", literal=True)
        return pl.scan_parquet(self.file.path).select(values.cast(pl.Float64, strict=False).alias("x"))

    def repeats(self, column: str) -> bool:
        """Whether a column of the first file has a value twice, as far as its first rows tell, or none at all."""
        values = pl.scan_parquet(self.file.path).select(column).head(MOST_ROWS).collect()[column]
        return values.null_count() > 0 or values.n_unique() < len(values)

    def words_for_none(self) -> list[str]:
        """Words that stand for no value in columns of text that hold numbers, truth values or times beside."""
        rows = pl.scan_parquet(self.file.path).select(pl.col(pl.String)).head(MOST_ROWS).collect()
        words: set[str] = set()
        for column in rows.iter_columns():
            is_word = column.is_in(WORDS_FOR_NONE)
            others = column.filter(~is_word).drop_nulls().to_frame().lazy()
            if is_word.any() and not is_word.all() and any(text_cast(others, column.name, kind) for kind in OF_TEXT):
                words.update(column.filter(is_word))
        return sorted(words)

    def example(self, column: str) -> Any:  # noqa: ANN401 - any value
        """A value of a column, for people."""
        values: pl.Series = pl.scan_parquet(self.file.path).select(column).drop_nulls().head(1).collect()[column]
        return values.item() if len(values) else None


def propose(
    stages: Sequence[Stage],
    paths: Sequence[str],
    base: Path,
    *,
    delimiter: str | None = None,
    format_: Format | None = None,
) -> str:
    """Write a config for some files.

    Args:
        stages: The task; or several, of which the files must be enough for one alone.
        paths: Files, folders or patterns; `input=path` says which input one is.
        base: Folder that relative paths start from.
        delimiter: What separates the columns of its CSV files; None: guessed for each from its header.
        format_: Format of the files; None: by their endings, or for other endings by their first lines.

    Returns:
        TOML with a comment on everything that was guessed.

    Raises:
        UsageError: an input is unknown, or files fit no input, or more than one task.
        NoInputError: a file does not exist.
        DataError: a file cannot be read.
    """
    look_at = cache(partial(_found, base=base, delimiter=delimiter, format_=format_))
    stage = stages[0] if len(stages) == 1 else _only_task(stages, paths, look_at)
    files = _assigned(stage, paths, look_at)
    bindings = {name: file.fields(_contract(stage, name)) for name, file in files.items()}
    alignment = list(_alignment(stage, bindings))
    lines = [
        f"# Proposed by thresher init {stage.kind} {cleaned(' '.join(paths), layout='')}",
        "# Names and ranges are guesses: read every line, then run thresher check on this file.",
        "",
        'output = "results"',
        "",
        "[[stages]]",
        f'kind = "{stage.kind}"',
    ]
    for contract in stage.inputs:
        if contract.name in files:
            lines += ["", *_input(contract, files[contract.name], bindings[contract.name])]
        elif contract.required:
            lines += [
                "",
                f"# {contract.name} is required and no file fits it: {contract.meaning}",
                f'#{contract.name} = "…"',
            ]
    if "by" in stage.parameters.keys() and not any(line.startswith(_BY) for line in lines):  # noqa: SIM118 - as below
        lines += [
            "",
            '# no column looks like one to group by; of a column "g", by = ["g"] gives the total and each value,',
        ]
        lines += ['# by = [["g"]] these alone, and by = [[], ["g"], ["h"]] the total and those of each of two columns']
    lines += ["", *alignment, *_thresholds(stage, files, bindings), *_window(stage, files, bindings)]
    lines += [*_margin(stage, files, bindings), *_invalid_scores(stage, files, bindings)]
    lines += _required(stage, {*files, "thresholds", "window", "margin"})
    return "\n".join(lines) + "\n"


def _only_task(stages: Sequence[Stage], paths: Sequence[str], look_at: Callable[[str], Found]) -> Stage:
    """The task that files are enough for.

    Raises:
        UsageError: there is none, or several.
    """
    enough = []
    for stage in stages:
        with suppress(UsageError):
            files = _assigned(stage, paths, look_at)
            enough += [] if any(each.required and each.name not in files for each in stage.inputs) else [stage]
    if len(enough) == 1:
        return enough[0]
    written = shlex.join(word for path in paths for word in ("--from", path))
    if enough:
        message = f"the files are enough for {' and '.join(stage.kind for stage in enough)}"
        raise UsageError(message, remedy=f"Name the task: thresher init {enough[0].kind} {written}")
    message = f"the files are enough for none of the tasks {', '.join(stage.kind for stage in stages)}"
    files_alone = shlex.join(path.partition("=")[2] or path for path in paths)
    raise UsageError(message, remedy=f"thresher doctor {files_alone} says what is missing for each.")


def diagnose(
    stages: Iterable[Stage], paths: Sequence[str], base: Path, delimiter: str | None, format_: Format | None
) -> str:
    """Say what files hold, what they are enough for, and what else other tasks would need.

    Args:
        stages: The tasks.
        paths: The files, or patterns.
        base: Folder that relative paths start from.
        delimiter: As for `propose`.
        format_: As for `propose`.

    Raises:
        ThresherError: as `propose`, but for files that fit nothing.
    """
    files = [_found(path, base, delimiter, format_) for path in paths]
    lines = [line for file in files for line in _seen(file)]
    enough, lacking = [], []
    for stage in stages:
        fitting, _ = _fitting(stage, files)
        required = [contract for contract in stage.inputs if contract.required]
        missing = [contract for contract in required if contract.name not in fitting]
        named = [f"{name} = {files[number].best(_contract(stage, name)).written}" for name, number in fitting.items()]
        if fitting and not missing:
            words = " ".join(f"--from {name}={files[number].written}" for name, number in fitting.items())
            enough += [f"  {stage.kind}: {', '.join(named)}", f"    thresher init {stage.kind} {words} > my.toml"]
        elif needs := [
            need for contract in missing for need in _needs(contract, files, has_others=len(missing) < len(required))
        ]:
            lacking += [f"  {stage.kind}{': ' if named else ''}{', '.join(named)}", *needs]
    lines += ["", "They are enough for", *enough] if enough else ["", "They are enough for no task."]
    return "\n".join(lines + (["", "More would be needed for", *lacking] if lacking else [])) + "\n"


def _seen(file: Found) -> Iterator[str]:
    """What a file holds: rows, columns with their types, and how its lines are written."""
    yield f"{file.written}: {file.rows:,} {'row' if file.rows == 1 else 'rows'}"
    columns = (f"{_text(field.name)} {field.type if file.typed else 'text'}" for field in file.file.schema)
    yield f"  columns: {', '.join(columns)}"
    settings = ", ".join(f"{key} = {_text(value)}" for key, value in file.keys.items())
    if settings:
        yield f"  as its first lines are written: {settings}"


def _needs(contract: InputContract, files: Sequence[Found], *, has_others: bool) -> Iterator[str]:
    """What an input lacks, where other inputs are there or at least half of its required columns."""
    required = [field for field in contract.fields if field.required]
    lacking = [[field for field in required if field.name not in file.fields(contract)] for file in files]
    fewest = min(lacking, key=len, default=required)
    if fewest and 2 * len(fewest) <= len(required):
        nearest = files[lacking.index(fewest)].written
        for field in fewest:
            yield f"    {contract.name} = {nearest} lacks {field.name}: {field.meaning}"
    elif has_others:
        yield f"    {contract.name} is missing: {contract.meaning}"


def _contract(stage: Stage, name: str) -> InputContract:
    return next(contract for contract in stage.inputs if contract.name == name)


def _assigned(stage: Stage, paths: Sequence[str], look_at: Callable[[str], Found]) -> dict[str, Found]:
    """Which input each file is: as it was said, else the one that its columns fit best, no two the same."""
    names = [contract.name for contract in stage.inputs]
    files: dict[str, Found] = {}
    undecided = []
    for path in paths:
        name, equals, named_path = path.partition("=")
        if equals and name in names:
            files[name] = look_at(named_path)
        else:
            undecided.append(look_at(path))
    fitting, placed = _fitting(stage, undecided, files)
    files |= {name: undecided[number] for name, number in fitting.items()}
    for number, file in enumerate(undecided):
        if number not in placed:
            message = f"the columns of {file.written} fit no input of {stage.kind} that has no file yet"
            columns = ", ".join(file.file.schema.names[:12])
            remedy = f"Its columns are: {columns}. Say which input it is: --from {_written(names)}={file.written}."
            remedy += tags_in_words(file.file, names[0])
            raise UsageError(message, remedy=remedy)
    return {name: file.best(_contract(stage, name)) for name, file in files.items()}


def _fitting(stage: Stage, files: Sequence[Found], taken: Iterable[str] = ()) -> tuple[dict[str, int], set[int]]:
    """Which file is which input, those that fit best first; and the numbers of those files.

    No two are the same, unless a file has several lists of tags, such as those of gold and those of predictions.

    Args:
        stage: The task.
        files: The files.
        taken: Inputs that have a file already.
    """
    fits = sorted(
        (-file.best(contract).fit(contract)[0], order, number)
        for order, contract in enumerate(stage.inputs)
        for number, file in enumerate(files)
    )
    names = [contract.name for contract in stage.inputs]
    fitting: dict[str, int] = {}
    placed: dict[int, set[str]] = {}  # with the lists of tags that are taken
    for negative, order, number in fits:
        if not order and len(files[number].best(stage.inputs[0]).fields(stage.inputs[0])) == 1:
            continue  # a key alone: nothing to evaluate
        if negative < 0 and names[order] not in (*fitting, *taken):
            tags = files[number].best(stage.inputs[order]).keys.get(TAGS, "")
            if number not in placed or (tags and tags not in placed[number]):
                fitting[names[order]] = number
                placed.setdefault(number, set()).add(tags)
    return fitting, set(placed)


def _written(names: Sequence[str]) -> str:
    """The name of the only input, or of any of several as usage lines write a choice."""
    return names[0] if len(names) == 1 else f"{{{'|'.join(names)}}}"


def _found(
    path: str,
    base: Path,
    delimiter: str | None,
    format_: Format | None,
    null_values: Sequence[str] = (),
    table: str | None = None,
) -> Found:
    matches = Search(path, base, ENDINGS[format_ or "parquet"]).matches(path)
    if matches and table is None and format_of(Path(matches[0][0]), format_) == "duckdb":
        first, *others = [_found(path, base, None, "duckdb", table=each) for each in tables_of(matches[0][0], path)]
        rows = [each for other in others for each in (replace(other, of_elements=()), *other.of_elements)]
        return replace(first, of_elements=(*first.of_elements, *rows))
    keys: dict[str, Any] = {**(keys_of_file(matches[0][0], delimiter, format_, name=path) if matches else {})}
    if table is not None:
        keys |= {"format": "duckdb", "table": table}
    if null_values:
        keys["null_values"] = list(null_values)
    listing = find_files(Input.model_validate({"path": (path,), **keys}), base, name=path)
    files = [file for file in listing.files if isinstance(file, DataFile)]
    if not files:
        message = f"no file matches {path}"
        raise NoInputError(message)
    if files[0].fetch is not None:
        files[0].fetch(files[0].schema.names)
    typed = format_of(Path(files[0].name), Input.model_validate({"path": path, **keys}).format) not in TEXTS
    as_written = Found(path, files[0], typed, sum(file.rows for file in files), keys)
    if not (typed or null_values) and (words := as_written.words_for_none()):
        return _found(path, base, delimiter, format_, null_values=words)
    is_json = format_of(Path(files[0].name), keys.get("format")) == "jsonl"
    as_written = replace(as_written, is_json=is_json)
    return replace(as_written, of_elements=tuple(_of_elements(as_written, base)))


def _of_elements(of_file: Found, base: Path, outside: Sequence[str] = ()) -> Iterator[Found]:
    """The elements of each list as rows, and the elements of lists within them.

    What stands beside the outermost list tells of the document, and may be called `id`; where nothing is called so, the
    number of the row does.

    Args:
        of_file: The file, or elements of one of its lists.
        base: Folder that relative paths start from.
        outside: Names of the columns beside the outermost list; none: those of the file.
    """
    path = [*of_file.keys.get(UNNEST, ())]
    beside = outside or of_file.file.schema.names
    if not path and (of_tags := list(_mentions(of_file, base))):
        yield from of_tags
        return
    for field in of_file.file.schema:
        is_inner = bool(path) and field.name not in beside
        is_struct = str(field.type).startswith("struct<")
        if not ((_is_list(field.type) and (is_inner or not path)) or (is_struct and is_inner)):
            continue
        with suppress(DataError):  # elements that have no type together
            elements = _elements_of(of_file, [*path, field.name], beside, base)
            yield elements
            if len(path) + 1 < MOST_LISTS:
                yield from _of_elements(elements, base, beside)


def _mentions(of_file: Found, base: Path) -> Iterator[Found]:
    """The mentions that lists of tags make, as rows, of each such list."""
    for tags in lists_of_tags(of_file.file):
        keys = of_file.keys | {TAGS: tags}
        with suppress(DataError):  # lists of something else
            listing = find_files(Input.model_validate({"path": (of_file.written,), **keys}), base, name=of_file.written)
            files = [file for file in listing.files if isinstance(file, DataFile)]
            yield Found(of_file.written, files[0], typed=True, rows=sum(file.rows for file in files), keys=keys)


def _elements_of(of_file: Found, path: list[str], beside: Sequence[str], base: Path) -> Found:
    """The elements of lists within each other as rows.

    Raises:
        DataError: they have no type together.
    """
    keys = of_file.keys | {UNNEST: path}
    number = f"{path[0]}{ROW}"
    numbered = not any(name == ID or is_usual_name("doc_id", name) for name in beside)
    spec = {"path": (of_file.written,), **keys} | ({"columns": {"doc_id": number}} if numbered else {})
    listing = find_files(Input.model_validate(spec), base, name=of_file.written)
    files = [file for file in listing.files if isinstance(file, DataFile)]
    prefix = f"{path[-1]}."
    names = [name for name in files[0].schema.names if name not in {*beside, number}]
    of_lists = names == [f"{prefix}{place}" for place in (1, 2, 3)]
    called = {ID: "document_id"} | dict.fromkeys(OF_MENTIONS, "")
    called = {name: word for name, word in called.items() if name in beside}
    called |= {name: name.rpartition(".")[2] for name in names}
    called |= {number: "document_id"} if numbered else {}
    kinds = {field.name: field.type for field in files[0].schema}
    if any(name in NAMES_OF_TYPES and _is_list(kinds[name]) for name in names):  # as in Label Studio, with a type
        called |= {"type": ""}  # of annotations
    elif len(path) > 1 and path[-1] in NAMES_OF_TYPES and path[-1] in names:
        called |= {"type": "", path[-1]: "type"}
    called |= dict(zip(names, PLACES_OF_LISTS, strict=True)) if of_lists else {}
    rows, is_typed = sum(file.rows for file in files), of_file.typed and not of_lists
    return Found(of_file.written, files[0], is_typed, rows, keys, called, is_json=of_file.is_json)


def _is_list(kind: pa.DataType) -> bool:
    return str(kind).startswith(("list<", "large_list<"))


def _input(contract: InputContract, file: Found, fields: dict[str, tuple[str, float]]) -> Iterator[str]:
    yield f"# {contract.name}: {contract.meaning}; {file.rows:,} {'row' if file.rows == 1 else 'rows'}"
    for field in contract.fields:
        yield from _field(field, file, fields.get(field.name))
    unfit = [name for name, word in file.called.items() if not word and contract.field(name) is not None]
    used = {column for column, _ in fields.values()}
    unused = [name for name in file.file.schema.names if name not in (*used, *unfit) and not name.endswith(ROW)]
    if unused:
        yield f"#   in no role: {', '.join(map(_text, unused))}"
        yield from _groups(unused, file)
    mapping: dict[str, str | bool] = {
        field.name: fields[field.name][0]
        for field in contract.fields
        if field.name in fields and (fields[field.name][0] != field.name or field.mapped_only)
    }
    for name in unfit:
        if name not in mapping:
            yield f"#   {_text(name)} stands beside the list, so it is not the {name} of an element"
            mapping[name] = False
    if ID in fields and contract.field(ID) is not None:  # read only where it is mapped
        column = fields[ID][0]
        if file.repeats(column):
            mapping.pop(ID, None)
            yield f"#   {_text(column)} repeats and is not mapped: group by what tells its rows apart, or set cluster"
        else:
            mapping[ID] = column
    yield from _written_input(contract, file, fields, mapping)


def _written_input(
    contract: InputContract, file: Found, fields: dict[str, tuple[str, float]], mapping: dict[str, str | bool]
) -> Iterator[str]:
    """The line of an input, below what is said of its keys."""
    columns = ", ".join(f"{name} = {column}" for name, column in _columns(contract, file, fields, mapping).items())
    keys = file.keys
    if len(keys.get(UNNEST, ())) == 1:  # a single list that is unnested is a name alone
        keys = keys | {UNNEST: keys[UNNEST][0]}
    settings = [f"{key} = {_text(value)}" for key, value in keys.items()]
    written = [setting for setting in settings if not setting.startswith((f"{UNNEST} = ", f'{TAGS} = "'))]
    if written:
        yield f"#   as its first lines are written: {', '.join(written)}"
    if isinstance(file.keys.get(TAGS), str):
        yield f"#   each row of the file is a sentence, and the tags in {_text(file.keys[TAGS])} make its mentions"
    if UNNEST in file.keys:
        within = " of ".join(map(_text, reversed(file.keys[UNNEST])))
        yield f"#   each element of {within} is a row, with the columns that stand beside the list"
        if fields.get("doc_id", ("", 0.0))[0].endswith(ROW):
            yield "#   each row of the file is taken for a document, in the order of the file"
    items = [f"path = {_text(file.written)}", *settings]
    if conditions := list(_conditions(contract, file, fields)):
        yield "#   where leaves out rows without a value that every row must have"
        items.append(f"where = {_text(' AND '.join(conditions))}")
    text = ", ".join([*items, f"columns = {{ {columns} }}"] if columns else items)
    yield f"{contract.name} = {{ {text} }}"


def _columns(
    contract: InputContract, file: Found, fields: dict[str, tuple[str, float]], mapping: dict[str, str | bool]
) -> dict[str, str]:
    """What `columns` maps, as TOML: names of columns, false, and expressions where text means something else."""
    written = {name: _text(column) for name, column in mapping.items()}
    for field in contract.fields:
        if field.name in fields and mapping.get(field.name, True):
            expression = file.expression(fields[field.name][0], field.kind)
            written |= {field.name: f"{{ sql = {_text(expression)} }}"} if expression else {}
    return written


def _conditions(contract: InputContract, file: Found, fields: dict[str, tuple[str, float]]) -> Iterator[str]:
    """What holds for rows that have all that is required of them; scores have a key of their own."""
    for field in contract.fields:
        if not field.required or field.name == SCORE or field.name not in fields:
            continue
        column = fields[field.name][0]
        if file.has_gaps(column):
            name = in_expression(column)
            yield f"{name} IN (0, 1)" if file.is_zero_or_one(column, field.kind) else f"{name} IS NOT NULL"


def _invalid_scores(
    stage: Stage, files: dict[str, Found], bindings: dict[str, dict[str, tuple[str, float]]]
) -> Iterator[str]:
    """What becomes of rows without a score, where the primary input has some."""
    name = stage.inputs[0].name
    column = bindings.get(name, {}).get(SCORE, ("", 0.0))[0]
    if INVALID_SCORES in stage.parameters.keys() and column and files[name].has_invalid(column):  # noqa: SIM118
        yield '# some rows have no score: "drop" leaves them out, "missed" counts them as below every threshold'
        yield f'{INVALID_SCORES} = "drop"'


def _groups(unused: Sequence[str], file: Found) -> Iterator[str]:
    """Say what results can be grouped by, likely columns first, and in which forms."""
    texts = [name for name in unused if name and str(file.file.schema.field(name).type) in ARROW_TEXTS]
    likely = [name for name in texts if name.lower() in USUAL_GROUPS]
    others = [name for name in texts if name not in likely and not SELDOM_GROUPS.fullmatch(name)]
    likely.sort(key=lambda name: USUAL_GROUPS.index(name.lower()))
    groups = [name for name in (*likely, *others) if file.repeats(name)]
    if groups:
        first, *more = map(_text, groups)
        yield f"{_BY}[{first}] gives the total and results for each value of {first}, by = [[{first}]] these alone"
        if more:
            yield f"#   by = [[], [{first}], [{more[0]}]] gives the total and each of the two"


def _field(field: Field, file: Found, binding: tuple[str, float] | None) -> Iterator[str]:
    if binding is None:
        if field.required:
            yield f'#   {field.name}: NO COLUMN FITS ({field.meaning}); map one: columns = {{ {field.name} = "…" }}'
        return
    column, likeness = binding
    doubt = "" if likeness > USUAL else "GUESSED from its name: " if likeness > 1 else "GUESSED from a like name: "
    if field.mapped_only:
        doubt = "CHANGES EVERY NUMBER, keep it only if it is meant: "
    kind = f"{file.file.schema.field(column).type}, " if file.typed else ""
    example = file.example(column)
    shown = "without a value" if example is None else f"for example {_text(example)}"
    yield f"#   {field.name} ({field.meaning}): {doubt}{_text(column)}, {kind}{shown}"
    if field.kind == "boolean" and (true_class := file.class_that_is_true(column)) and not file.cast(column, "boolean"):
        yield f"#   GUESSED: what is true is {_text(column)} = {true_class}; name the class that the score is of"


def _text(value: object) -> str:
    """A value as TOML writes it."""
    text = json.dumps(value if isinstance(value, str | int | float | bool | list) else str(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON holds as it is


def _alignment(stage: Stage, bindings: dict[str, dict[str, tuple[str, float]]]) -> Iterator[str]:
    """The rule that aligns mentions, where the stage has one and its default does not fit the columns."""
    if "match" not in stage.parameters.keys() or len(bindings) < 2:  # noqa: SIM118, PLR2004 - gold and predicted
        return
    columns = [set(fields) for fields in bindings.values()]
    if all("mention_id" in names for names in columns):
        return
    rules = {"span": ("doc_id", "start", "end"), "text": ("doc_id", "text")}
    rule = next((rule for rule, needs in rules.items() if all(names.issuperset(needs) for names in columns)), None)
    if rule is not None and rule != stage.parameters.model_fields["match"].default:
        for fields in bindings.values():
            fields.pop("mention_id", None)
        needs = ", ".join(rules[rule])
        yield f"# no mention_id in both inputs: mentions are the same where {needs} are equal; see docs/{stage.kind}.md"
        yield f'match = "{rule}"'


def _thresholds(
    stage: Stage, files: dict[str, Found], bindings: dict[str, dict[str, tuple[str, float]]]
) -> Iterator[str]:
    """Even thresholds over the range of the scores, where the stage has thresholds and an input has scores."""
    if "thresholds" not in stage.parameters.keys():  # noqa: SIM118 - a method of its own
        return
    for name, file in files.items():
        if "score" not in bindings[name]:
            continue
        limits = file.limits(bindings[name]["score"][0])
        default = stage.parameters.model_fields["thresholds"].default
        if limits is None or not 0 < limits[1] - limits[0] < math.inf:
            if default != "distinct":
                yield "# the scores of the first file have no range: give the thresholds"
                yield "#thresholds = …"
            return
        low, high = _rounded(*limits)
        comment = "#" if default == "distinct" else ""
        yield f"# scores lie from {limits[0]:.6g} to {limits[1]:.6g} in the first file" + (
            '; the default, "distinct", takes every score' if comment else ""
        )
        yield f"{comment}thresholds = {{ start = {low!r}, stop = {high!r}, count = {STEPS + 1} }}"
        return


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Limits around a range, with the digits that a hundredth of it has."""
    with localcontext(prec=MOST_DIGITS):
        lowest, highest = Decimal(repr(low)), Decimal(repr(high))
        step = Decimal(1).scaleb((highest - lowest).adjusted() - 1)
        down, up = (lowest / step).to_integral(ROUND_FLOOR), (highest / step).to_integral(ROUND_CEILING)
        return float(down * step), float(up * step)


def _window(stage: Stage, files: dict[str, Found], bindings: dict[str, dict[str, tuple[str, float]]]) -> Iterator[str]:
    """Whole days around the lags, where the stage has a window and an input has lags."""
    if "window" not in stage.parameters.keys():  # noqa: SIM118 - a method of its own
        return
    for name, file in files.items():
        for field, hours in (("lag_hours", 1.0), ("lag_days", 24.0)):
            limits = file.limits(bindings[name][field][0]) if field in bindings[name] else None
            if limits is None:
                continue
            before, after = (24 * max(1, math.ceil(abs(limit) * hours / 24)) for limit in limits)
            yield f"# lags lie from {limits[0]:.6g} to {limits[1]:.6g} ({field}) in the first file"
            yield f'window = {{ before = "{before}h", after = "{after}h" }}'
            return


def _margin(stage: Stage, files: dict[str, Found], bindings: dict[str, dict[str, tuple[str, float]]]) -> Iterator[str]:
    """How near a detected point must be, where the stage asks: 5 places, a hundredth of the range, an hour or a day."""
    columns = [(file, bindings[name]["position"][0]) for name, file in files.items() if "position" in bindings[name]]
    if "margin" not in stage.parameters.keys() or not columns:  # noqa: SIM118 - a method of its own
        return
    file, column = columns[0]
    kind = str(file.file.schema.field(column).type)
    limits = None if kind.startswith(("date", "timestamp")) else file.limits(column)
    margin = '"1d"' if kind.startswith("date") else '"1h"'
    if limits is not None:
        are_whole = all(float(limit).is_integer() for limit in limits)
        margin = "5" if are_whole else f"{max(limits[1] - limits[0], 1) / 100:.1g}"
    yield "# GUESSED: a detected point this near to an annotated one is taken for it"
    yield f"margin = {margin}"


def _required(stage: Stage, written: set[str]) -> Iterator[str]:
    """Keys without a default, which only people can set."""
    inputs = {contract.name for contract in stage.inputs}
    for name, field in stage.parameters.model_fields.items():
        if field.is_required() and name not in {*written, *inputs, "name"}:
            yield f"# {name} has no default: see docs/{stage.kind}.md"
            yield f"#{name} = …"
