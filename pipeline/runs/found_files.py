"""A file that a config is proposed for: what its columns can be read as, and which lists in it are rows."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import field as data_field
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.errors import DataError, NoInputError
from ..base.records import dataclass
from ..sources.bindings import fit, is_usual_name, proposed
from ..sources.finding import Listing, Search
from ..sources.formats import ENDINGS, TEXTS, format_of, is_read, keys_of_file
from ..sources.frames import tables_of
from ..sources.inputs import Field, Input, InputContract, lists_of_tags
from ..sources.parquet_files import DataFile
from ..sources.types import TEXTS as ARROW_TEXTS
from ..sources.types import canonical_type, in_expression, text_cast
from ..sources.unnesting import ROW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from ..sources.inputs import Format, Kind
    from ..sources.types import TextCast

ID, SCORE, INVALID_SCORES, MOST_ROWS = "id", "score", "invalid_scores", 100_000
UNNEST, TAGS = "unnest", "tags"
OF_MENTIONS = ("text", "type")  # a document beside the list of its mentions may have them, too
NAMES_OF_TYPES = ("labels", "label", "types", "tags", "categories")
MOST_LISTS = 4  # and structs within each other
PLACES_OF_LISTS = ("begin", "stop", "tag")  # of [0, 4, "LOC"]
WORDS_FOR_NONE = ("NA", "N/A", "#N/A", "n/a", "NULL", "null", "None", "none", "-", ".", "?")
OF_KEYS: tuple[Kind, ...] = ("key", "position", "integer")
OF_TEXT: tuple[Kind, ...] = ("number", "boolean", "instant")
TRUTHS = ({"true", "false"}, {"1", "0"}, {"1.0", "0.0"})
NAMES_OF_IDS = re.compile(r"(?i)(.*[_ -])?(id|key)|.*Id")
BY_VALUES = 0.5  # how well a column fits that has no name for it
MOST_CLASSES = 1_000  # that a column of labels names; more are texts
SCORED = InputContract("scored", (Field("score", "number", "the score"),), "rows with a score")
MOST_DIGITS = 700  # of a sum of two floating numbers, all of them


@dataclass(frozen=True)
class Found:
    """A file or pattern as it was written, with the columns of its first file.

    Attributes:
        typed: Whether its columns have types.
        rows: Rows of all its files.
        keys: Keys of the input that say how its files are written.
        called: What columns are called for what they hold, where their names do not say so; empty: they fit no field.
        of_elements: The same file with the elements of a list as rows, for each of its columns of lists.
        is_json: Whether it is one of JSON lines, whose times are text.
        by_values: Whether columns whose names tell nothing are taken for what they hold.
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
    by_values: bool = False
    casts: dict[tuple[str, Kind], TextCast | None] = data_field(default_factory=dict, compare=False)

    def fields(self, contract: InputContract) -> dict[str, tuple[str, float]]:
        """The columns proposed for the fields of an input, with how well they fit."""
        by_name = proposed(contract, self.file.schema, can_be=self.can_be, called=self.called)
        return by_name | dict(self._by_values(contract, by_name)) if self.by_values else by_name

    def _by_values(
        self, contract: InputContract, by_name: dict[str, tuple[str, float]]
    ) -> Iterator[tuple[str, tuple[str, float]]]:
        """For required fields that no name fits, the only column left that holds truth values, fractions, or ids."""
        taken = {column for column, _ in by_name.values()}
        left = [name for name in self.file.schema.names if name not in taken]
        for field in contract.fields:
            if field.required and field.name not in by_name and field.kind in {"boolean", "number"}:
                fitting = [name for name in left if self._holds(name, field.kind)]
                if len(fitting) == 1:
                    yield field.name, (fitting[0], BY_VALUES)
            if field.required and field.name == ID and ID not in by_name:
                named = [name for name in left if NAMES_OF_IDS.fullmatch(name) and not self.repeats(name)]
                if len(named) == 1:
                    yield ID, (named[0], BY_VALUES)

    def _holds(self, column: str, kind: Kind) -> bool:
        """Whether a column has both truth values and nothing else, or numbers with fractions."""
        is_text = str(self.file.schema.field(column).type) in ARROW_TEXTS
        values = self._values(column).drop_nulls()
        if kind == "boolean":
            texts = {str(value).lower() for value in values.unique().head(3)}
            return texts in TRUTHS or (is_text and len(texts) == 2 and self.cast(column, kind) is not None)  # noqa: PLR2004
        if not is_text and not values.dtype.is_float():
            return False
        numbers = self._numbers(column).collect()["x"].drop_nulls()
        return 0 < len(numbers) == len(values) and bool((numbers != numbers.floor()).any())

    def is_called(self, field: Field) -> bool:
        """Whether a column is called as a field is, whatever it holds."""
        alone = InputContract("alone", (field,), field.meaning)
        return bool(proposed(alone, self.file.schema, can_be=lambda _column, _kind: True, called=self.called))

    def can_be(self, column: str, kind: Kind) -> bool:
        """Whether a column can be read as what a field expects, by an expression if need be."""
        arrow = self.file.schema.field(column).type
        if str(arrow) in ARROW_TEXTS and kind not in {"key", "any"}:
            if kind == "boolean" and (self.class_of_element(column) or self.class_that_is_true(column)):
                return True
            return self.cast(column, kind) is not None or not self.typed  # what does not fit is told when it is read
        return canonical_type(arrow, kind) is not None or self.is_zero_or_one(column, kind)

    def cast(self, column: str, kind: Kind) -> TextCast | None:
        """The expression that reads a column of text as its field expects; None: there is none, or none is needed."""
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
        """The column of elements that names the class each of them scores, a value of a column beside the list."""
        if UNNEST not in self.keys:
            return ""
        texts = [field.name for field in self.file.schema if str(field.type) in ARROW_TEXTS and field.name != column]
        inside = [name for name in texts if name.startswith(f"{self.keys[UNNEST][-1]}.")]
        values = self._values(column).drop_nulls().unique()
        return next((name for name in inside if values.is_in(self._values(name).unique().implode()).all()), "")

    def class_that_is_true(self, column: str) -> str:
        """The class, as SQL, that means true in a column that names classes; empty: it names none.

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

    def repeats(self, *columns: str) -> bool:
        """Whether columns of the first file have values twice, as far as its first rows tell, or none at all."""
        values = pl.scan_parquet(self.file.path).select(columns).head(MOST_ROWS).collect()
        return values.drop_nulls().height < values.height or bool(values.is_duplicated().any())

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


def look_at_file(
    path: str,
    base: Path,
    delimiter: str | None,
    format_: Format | None,
    null_values: Sequence[str] = (),
    table: str | None = None,
) -> Found:
    """Look at the first file that a path means: a file, a folder or a pattern.

    Args:
        path: The path, from the folder `base` where it is relative.
        base: That folder.
        delimiter: What separates the columns of CSV files; None: guessed from the header.
        format_: Format of the files; None: by their endings, or for other endings by their first lines.
        null_values: Words that stand for no value.
        table: The table of a DuckDB file; None: each of its tables is looked at.

    Raises:
        NoInputError: there is no such file.
        DataError: it cannot be read.
    """
    matches = Search(path, base, ENDINGS[format_ or "parquet"]).matches(path)
    if matches and table is None and format_of(Path(matches[0][0]), format_) == "duckdb":
        first, *others = [
            look_at_file(path, base, None, "duckdb", table=each) for each in tables_of(matches[0][0], path)
        ]
        rows = [each for other in others for each in (replace(other, of_elements=()), *other.of_elements)]
        return replace(first, of_elements=(*first.of_elements, *rows))
    keys: dict[str, Any] = {**(keys_of_file(matches[0][0], delimiter, format_, name=path) if matches else {})}
    if table is not None:
        keys |= {"format": "duckdb", "table": table}
    if null_values:
        keys["null_values"] = list(null_values)
    files = _files(path, base, keys)
    if not files:
        message = f"no file matches {path}"
        raise NoInputError(message)
    if files[0].fetch is not None:
        files[0].fetch(files[0].schema.names)
    kind = format_of(Path(files[0].name), keys.get("format"))
    typed = kind not in TEXTS
    as_written = Found(path, files[0], typed, sum(file.rows for file in files), keys, is_json=kind == "jsonl")
    if not (typed or null_values) and (words := as_written.words_for_none()):
        return look_at_file(path, base, delimiter, format_, null_values=words)
    return replace(as_written, of_elements=tuple(_of_elements(as_written, base)))


def _files(path: str, base: Path, keys: Mapping[str, Any]) -> list[DataFile]:
    """The files that a path means, read as keys of an input say."""
    listing = Listing(Input.model_validate({"path": (path,), **keys}), base, name=path).opened()
    return [file for file in listing.files if isinstance(file, DataFile)]


def _of_elements(of_file: Found, base: Path, outside: Sequence[str] = ()) -> Iterator[Found]:
    """The elements of each list as rows, and the elements of lists within them.

    What stands beside the outermost list, `outside`, or the columns of the file, tells of the document, and may be
    called `id`; where nothing is called so, the number of the row does.
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
            files = _files(of_file.written, base, keys)
            yield Found(of_file.written, files[0], typed=True, rows=sum(file.rows for file in files), keys=keys)


def _elements_of(of_file: Found, path: list[str], beside: Sequence[str], base: Path) -> Found:
    """The elements of lists within each other as rows; a DataError says that they have no type together."""
    keys = of_file.keys | {UNNEST: path}
    number = f"{path[0]}{ROW}"
    numbered = not any(name == ID or is_usual_name("doc_id", name) for name in beside)
    files = _files(of_file.written, base, keys | ({"columns": {"doc_id": number}} if numbered else {}))
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
