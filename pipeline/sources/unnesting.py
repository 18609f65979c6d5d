"""Rows that lists hold, as elements or as the mentions of tags: written to a Parquet file, one row for each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from ..base.errors import DataError
from .bindings import is_usual_name
from .formats import TOKENS as OF_TOKENS
from .formats import typed
from .frames import spooled
from .inputs import TOKENS, columns_in_words
from .parquet_files import DataFile
from .types import refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .finding import Listing
    from .frames import FrameRows
    from .inputs import Input, Rows


_BY_ORDER = (
    "nothing names the documents, and there are no tokens to compare: rows of gold and of predictions are taken for "
    "the same by their order"
)
ROW = ".row"  # behind the name of the outermost list: the number of the row of the file that has it


def unnested(rows: DataFile | FrameRows, listing: Listing) -> DataFile:
    """Return one row for each element of the list column that an input names, in order, beside the others of its row.

    The fields of a struct become columns, those of a name that another column has as `column.field`; the values of a
    list become `column.1`, `column.2` and so on; other values keep the name of the column. Empty lists and NULL have no
    row; where there is nothing else, the fields of the elements may not be known. Further columns that are named lie
    within the elements: lists of them likewise, and structs, whose fields become columns.

    Raises:
        DataError: there is no such column, it holds no lists, or its elements cannot be read.
    """
    column, *inner = listing.spec.unnested
    _check(rows, column, name=listing.name)

    def write(target: Path) -> None:
        _elements(rows, listing).sink_parquet(target)

    try:
        file = spooled(write, rows.name, listing.scratch, name=listing.name)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        message = f"input {listing.name}: the elements of {column!r} in {rows.name} cannot be read: {reason}"
        raise DataError(message, remedy="Give them the same fields, each with values of one type.") from error
    kind = rows.schema.field(column).type
    if not file.rows and (inner or not pa.types.is_struct(getattr(kind, "value_type", kind))):
        file = replace(file, tells_fields=False)
    return _in_place_of(rows, file)


def _in_place_of(rows: DataFile | FrameRows, file: DataFile) -> DataFile:
    """A file that was made of rows, with what is known of these."""
    if not isinstance(rows, DataFile):
        return file
    origin = rows.origin if rows.label else rows.path
    identity = file.identity if origin is None and not rows.is_versioned else rows.identity  # spooled rows are gone
    return replace(of_same_rows(file, rows), origin=origin, identity=identity, tokens=file.tokens or rows.tokens)


def of_same_rows(file: DataFile, rows: DataFile, *further: str) -> DataFile:
    """Return a file that was made of the rows of another with what is known of these, and further attributes."""
    names = ("partitions", "partition_types", "notices", *further)
    return replace(file, **{name: getattr(rows, name) for name in names})


def with_fields(files: Sequence[Rows], names: Iterable[str], listing: Listing) -> tuple[Rows, ...]:
    """Return the files of an input, those whose elements tell no fields with the columns of the others, all NULL.

    Such a file has no row, so it means what another without a row would mean. Where no file tells, all that is read, by
    its names, is there.
    """
    silent = [file for file in files if isinstance(file, DataFile) and not file.tells_fields]
    of_files = (name for file in files for name in file.schema.names)
    wanted = dict.fromkeys([*of_files, *(names if len(silent) == len(files) else ())])
    return tuple(_with_columns(file, wanted, listing) if file in silent else file for file in files)


def _with_columns(file: DataFile, names: Iterable[str], listing: Listing) -> DataFile:
    """A file without a row that has some columns more."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for files that tell no fields

    taken = {*file.schema.names, *file.partitions}
    schema = pa.schema([*file.schema, *(pa.field(name, pa.null()) for name in names if name not in taken)])

    def write(target: Path) -> None:
        pq.write_table(schema.empty_table(), target)

    wider = spooled(write, file.name, listing.scratch, name=listing.name)
    return of_same_rows(wider, file, "identity", "origin", "tokens", "label")


def _check(rows: DataFile | FrameRows, column: str, *, name: str) -> None:

    if column not in rows.schema.names:
        message = f"input {name}: {rows.name} has no column {column!r}, which unnest names"
        raise DataError(message, remedy=columns_in_words(rows, column))
    kind = rows.schema.field(column).type
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_null)
    if not any(check(kind) for check in lists):
        message = f"input {name}: unnest names {column!r}, which is {kind} in {rows.name}, not a list"
        raise DataError(message, remedy="Name a column of lists, or leave unnest out.")


def _frame(rows: DataFile | FrameRows) -> pl.LazyFrame:

    if isinstance(rows, DataFile):
        if rows.fetch is not None:
            rows.fetch(rows.schema.names)
        return pl.scan_parquet(rows.path, glob=False, hive_partitioning=False)
    unread = [each.name for each in rows.schema if refused(each.type)]
    return pl.DataFrame(pl.from_arrow(rows.table.drop_columns(unread))).lazy()


def _elements(rows: DataFile | FrameRows, listing: Listing) -> pl.LazyFrame:

    frame = _with_numbers(_frame(rows), listing)
    for number, column in enumerate(listing.spec.unnested):
        schema = frame.collect_schema()
        if number and column not in schema:
            if not frame.head(1).collect().height:  # of lists that are all empty nothing more is known
                break
            message = f"input {listing.name}: unnest names {column!r}, which elements in {rows.name} do not have"
            raise DataError(message, remedy=f"What is there then: {', '.join(schema.names())}.")
        if isinstance(schema[column], pl.Struct):
            frame = _fields(frame, column)
        elif number and not isinstance(schema[column], pl.List | pl.Array | pl.Null):
            message = f"input {listing.name}: unnest names {column!r}, which is {schema[column]} in {rows.name}"
            raise DataError(message, remedy="Name a column of lists or structs, or leave it out.")
        else:
            frame = _of_list(frame, column, rows, listing)
    return frame


def _with_numbers(frame: pl.LazyFrame, listing: Listing) -> pl.LazyFrame:
    """The rows with their numbers, from 1, if a field is mapped to them; of several files these are not unique."""
    number = f"{listing.spec.unnested[0]}{ROW}"
    if number not in listing.spec.columns.values() or number in frame.collect_schema():
        return frame
    if len(listing.items) > 1:
        message = (
            f"input {listing.name}: {number!r} numbers the rows of a file, and there are {len(listing.items):,} files"
        )
        raise DataError(message, remedy="Give one file, or map a column that tells the rows of all files apart.")
    return frame.with_row_index(number, offset=1)


def _fields(frame: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """The fields of a struct as columns in its place."""
    schema = frame.collect_schema()
    kind, others = schema[column], {each.lower() for each in schema.names() if each != column}
    names = [field.name for field in kind.fields] if isinstance(kind, pl.Struct) else []
    fields = [f"{column}.{each}" if each.lower() in others else each for each in names]
    columns = [pl.col(column).struct.field(each).alias(field) for each, field in zip(names, fields, strict=True)]
    return frame.select(pl.exclude(column), *columns)


def _of_list(frame: pl.LazyFrame, column: str, rows: DataFile | FrameRows, listing: Listing) -> pl.LazyFrame:
    """The elements of a list as rows."""
    written = frame.collect_schema()[column]
    if isinstance(written, pl.Array):
        frame = frame.with_columns(pl.col(column).arr.to_list())
    elif written == pl.Null():
        frame = frame.with_columns(pl.col(column).cast(pl.List(pl.Null)))
    frame = frame.filter(pl.col(column).list.len() > 0).explode(column)
    kind = frame.collect_schema()[column]
    if isinstance(kind, pl.Struct):
        return _fields(frame, column)
    if not isinstance(kind, pl.List):
        return frame
    width = frame.select(pl.col(column).list.len().max()).collect(engine="streaming").item() or 0
    names = [f"{column}.{number + 1}" for number in range(width)]
    columns = [pl.col(column).list.get(number, null_on_oob=True).alias(each) for number, each in enumerate(names)]
    frame = frame.select(pl.exclude(column), *columns)
    kinds = {each: field for each, field in listing.kinds(frame.collect_schema().names()).items() if each in names}
    return frame.with_columns(typed(frame, kinds, rows.name, "csv", listing.spec, name=listing.name))


def mentions_of_tags(rows: DataFile | FrameRows, tags: str, listing: Listing) -> DataFile:
    """Return the mentions of rows that are sentences, with a list of tokens and a list of as many tags.

    Tags are read as those of CoNLL files, and so are characters and sentences counted. The document is the value of the
    column `doc_id`, of one that is usual for it, or of `id`; without one, the number of the row. Rows of one document
    are its sentences. Tags that are numbers have the names that a data set of Hugging Face keeps in a file. Without
    a column of tokens each has one character, and mentions have no text.

    Raises:
        DataError: there is no such column, a row has more tokens than tags or fewer, or a tag is none.
    """
    from .line_formats import mentions_of  # noqa: PLC0415 - which needs this module

    tokens = _tagged(rows, tags, listing)

    def write(target: Path) -> None:
        tokens.write_parquet(target.with_name(OF_TOKENS))
        with_own_document(mentions_of(tokens), listing.spec).write_parquet(target)

    file = spooled(write, rows.name, listing.scratch, name=listing.name)
    file = _in_place_of(rows, replace(file, tokens=file.path.with_name(OF_TOKENS)))
    is_by_order = _document(rows.schema.names, listing.spec) is None and TOKENS.isdisjoint(
        map(str.lower, rows.schema.names)
    )
    return replace(file, notices=file.notices | {_BY_ORDER: 0}) if is_by_order else file


def with_own_document(mentions: pl.DataFrame, spec: Input) -> pl.DataFrame:
    """Mentions of lists of tags, with their document under the name of the column that is mapped to it, too."""
    mapped = spec.columns.get("doc_id") if isinstance(spec.tags, str) else None
    return mentions.with_columns(pl.col("doc_id").alias(mapped)) if isinstance(mapped, str) else mentions


def _document(names: Sequence[str], spec: Input) -> str | None:
    """The column that names the document of a sentence: the one that is mapped to it, or a usual one."""
    mapped = spec.columns.get("doc_id")
    if isinstance(mapped, str) and mapped in names:
        return mapped
    return next((each for each in names if is_usual_name("doc_id", each)), "id" if "id" in names else None)


def _tagged(rows: DataFile | FrameRows, tags: str, listing: Listing) -> pl.DataFrame:
    """The tokens of lists, with the columns of those of CoNLL files; `number` is that of the row."""
    from .line_formats import UNKNOWN  # noqa: PLC0415 - likewise

    frame = _frame(rows)
    schema, number, label = frame.collect_schema(), pl.col("number"), pl.lit("")
    tokens = next((each for each, kind in schema.items() if isinstance(kind, pl.List) and each.lower() in TOKENS), None)
    if not isinstance(schema.get(tags), pl.List):
        message = f"input {listing.name}: {rows.name} has no column of lists {tags!r}, which tags names"
        raise DataError(message, remedy=columns_in_words(rows, tags))
    document = _document(schema.names(), listing.spec)
    if len(listing.items) > 1 and isinstance(rows, DataFile):
        label = pl.lit(f"{PurePath(rows.name).stem}:")
    sentences: pl.DataFrame = (
        frame.with_row_index("number", offset=1)
        .select(
            number.cast(pl.Int64),
            doc_id=label + (number if document is None else pl.col(document)).cast(pl.String),
            tag=pl.col(tags).cast(pl.List(pl.String)),
            token=pl.col(tags if tokens is None else tokens).cast(pl.List(pl.String)),
        )
        .collect()
    )
    _check_lists(sentences, rows, (tags, tokens), name=listing.name)
    exploded = sentences.filter(pl.col("tag").list.len() > 0).explode("tag", "token")
    exploded = exploded.with_columns(pl.col("tag").replace(_classes(rows, tags)))
    exploded = exploded if tokens is not None else exploded.with_columns(token=pl.lit(UNKNOWN))
    _check_tags(exploded, rows, tags, name=listing.name)
    length = pl.col("token").str.len_chars().cast(pl.Int64) + 1
    return exploded.select(
        "doc_id",
        number.rank("dense").over("doc_id").cast(pl.Int64).alias("sentence"),
        *("number", "token", "tag"),
        (length.cum_sum().over("doc_id") - length).alias("start"),
    )


def _check_lists(sentences: pl.DataFrame, rows: Rows, columns: tuple[str, str | None], *, name: str) -> None:
    """Refuse rows without a document, and rows with another number of tokens than of tags."""
    lengths = pl.col("tag", "token").list.len().fill_null(0)
    nameless = sentences.filter(pl.col("doc_id").is_null())
    uneven = sentences.with_columns(lengths).filter(pl.col("tag") != pl.col("token"))
    if nameless.height:
        message = f"input {name}: {_counted(nameless)} of {rows.name} without a document ({_first(nameless)})"
        raise DataError(message, remedy="Give each row its document, or leave that column out.")
    if uneven.height:
        row = uneven.row(0, named=True)
        message = (
            f"input {name}: {_counted(uneven)} of {rows.name} with another number of {columns[0]} than of {columns[1]} "
            f"({_first(uneven)}, {row['tag']:,} and {row['token']:,})"
        )
        raise DataError(message, remedy="Give every token one tag; predict on the tokens of gold.")


def _check_tags(tokens: pl.DataFrame, rows: Rows, tags: str, *, name: str) -> None:
    """Refuse what is no tag, and tokens that are empty."""
    from .line_formats import TAG  # noqa: PLC0415 - likewise

    odd = tokens.filter(~pl.col("tag").str.contains(TAG).fill_null(value=False))
    if odd.height:
        first = f"{_first(odd)}, {odd['tag'][0]!r}"
        values = "a value that is no tag" if odd.height == 1 else f"{odd.height:,} values that are no tags"
        message = f"input {name}: {tags} of {rows.name} has {values} ({first})"
        remedy = (
            "A tag is O, or B-, I-, E-, S-, L- or U- with a type behind it; numbers stand for such where a data set of "
            "Hugging Face was written with to_parquet."
        )
        raise DataError(message, remedy=remedy)
    empty = tokens.filter(pl.col("token").fill_null("") == "")
    if empty.height:
        tokens_at_fault = "a token" if empty.height == 1 else f"{empty.height:,} tokens"
        message = f"input {name}: {rows.name} has {tokens_at_fault} without a character ({_first(empty)})"
        raise DataError(message, remedy="Leave them out, with their tags.")


def _counted(rows: pl.DataFrame) -> str:
    return "1 row" if rows.height == 1 else f"{rows.height:,} rows"


def _first(rows: pl.DataFrame) -> str:
    return f"first: row {rows['number'][0]:,}"


def _classes(rows: DataFile | FrameRows, tags: str) -> dict[str, str]:
    """Names of tags that are numbers, by these, as a data set of Hugging Face keeps them in a file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for names of classes

    if not isinstance(rows, DataFile):
        return {}
    try:
        feature = json.loads((pq.read_schema(rows.path).metadata or {})[b"huggingface"])["info"]["features"][tags]
        names = (feature[0] if isinstance(feature, list) else feature["feature"])["names"]
        return {str(number): str(each) for number, each in enumerate(names)}
    except (ValueError, LookupError, TypeError):  # of another writer
        return {}
