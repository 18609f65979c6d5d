"""Text formats whose lines have no header: TREC, CoNLL, brat and JSON lines; whether two files have equal tokens."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import polars as pl
import pyarrow as pa

from ..base.errors import DataError
from .formats import TOKENS
from .frames import spooled
from .parquet_files import DataFile
from .types import can_hold
from .unnesting import of_same_rows, with_own_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .source import Source


RUN = ("query_id", "q0", "doc_id", "rank", "score", "system")
QRELS = ("query_id", "iteration", "doc_id", "relevance")
DOCUMENT_MARK = "-DOCSTART-"
PIECES = "n_pieces"
_NEW_DOCUMENT = r"^#\s*(newdoc|begin document)\b"  # of CoNLL-U and of CoNLL-2012
TAG = r"^(O$|[BIESLU]-.)"
_ID = r"^\d+([-.]\d+)?$"  # of a token, of a range of tokens, of an empty node
_RANGE = r"^\d+[-.]\d+$"
_JOINED = (
    "an annotation of several pieces is read as one span, from the start of its first piece to the end of its last; "
    f'where = "{PIECES} = 1" leaves such rows out'
)
UNKNOWN = _NO_SEPARATOR = "\x01"  # what stands for a token that is not known
_LINE = "line"
_TOKEN_COLUMNS = ("doc_id", "sentence", "number", "token", "tag", "start")


def trec(path: Path, names: tuple[str, ...], *, name: str) -> pl.LazyFrame:
    """Read a TREC run or judgements, with the columns `RUN` or `QRELS`: values between blanks, all of them text.

    Raises:
        DataError: a line has another number of values.
    """
    lines = _lines(path).filter(pl.col(_LINE).str.contains(r"\S"))
    values = lines.with_columns(values=pl.col(_LINE).str.extract_all(r"\S+"))
    uneven = values.filter(pl.col("values").list.len() != len(names)).collect(engine="streaming")
    if uneven.height:
        message = f"input {name}: {path} has lines without {len(names)} values: {_told(uneven)}"
        raise DataError(message, remedy=f'Its lines are: {" ".join(names)}; or say what it is: format = "…".')
    return values.select(pl.col("values").list.get(number).alias(column) for number, column in enumerate(names))


def tagged_tokens(
    path: Path, *, alone: bool, tags: int | None = None, name: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Read the tokens of a CoNLL file: one token a line with its tag, an empty line between sentences.

    Where a line of a token has a tab, tabs alone separate the columns of the file, so that a token may hold blanks;
    else blanks do. The token is the first value of a line, or the second where the first values number the tokens of
    every sentence, as in CoNLL-U; of such files, lines of a range (`1-2`) and of an empty node (`2.1`) are no tokens.
    The tag is in the only column that holds nothing but tags. Lines that begin with `#` before the first token of a
    sentence are comments, unless they end in a tag and have as many values as most lines of a file without numbers:
    then `#` is a token.

    Characters are counted as if the tokens of a document were joined by single blanks. A document is the number of
    lines so far that begin with `-DOCSTART-`, `# newdoc` or `#begin document`; where an input has several files, with
    the name of the file in front, so that documents of gold and of predictions are the same if their files are called
    the same.

    Args:
        path: The file.
        alone: Whether it is the only file of its input.
        tags: The column of the tags, from 1; None: the one that holds them.
        name: Name of the input in messages.

    Returns:
        Columns doc_id, sentence (its number in its document, from 1), number (the line), token, tag, start (first
        character); and what was taken for granted, which is to be said.

    Raises:
        DataError: a line has no token or no tag, or several columns hold tags.
    """
    lines = _split(_lines(path).collect())
    plain = lines.filter(_is_plain())
    is_numbered = _is_numbered(plain)
    tokens = lines.filter(_width() > 0, ~pl.col("is_mark"), ~_is_comment(lines, is_numbered=is_numbered))
    if is_numbered:
        tokens = tokens.filter(~_first().str.contains(_RANGE))
    at = _column_of_tags(tokens, path, tags, int(is_numbered), name=name)
    token = int(is_numbered) + int(at == int(is_numbered))  # the next column, where the tags stand in front
    tokens = tokens.with_columns(token=_value(token), tag=_value(at).str.strip_chars())
    _check_tokens(tokens, at, path, name=name)
    length = pl.col("token").str.len_chars().cast(pl.Int64)
    placed = tokens.with_columns(
        doc_id=pl.concat_str(pl.lit("" if alone else f"{path.stem}:"), pl.col("document").cast(pl.String)),
        sentence=pl.col("sentence").rank("dense").over("document").cast(pl.Int64),
        start=(length + 1).cum_sum().over("document") - length - 1,
    )
    said = {} if tags is not None else dict.fromkeys(_taken_for_granted(plain, at, token, is_numbered=is_numbered), 0)
    return placed.select(_TOKEN_COLUMNS), said


def _split(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines with their values, and the numbers of their sentence and document."""
    line = pl.col(_LINE).str.strip_chars_end()
    lines = lines.with_columns(
        is_mark=line.str.contains(rf"^{DOCUMENT_MARK}(\s|$)") | line.str.contains(_NEW_DOCUMENT), is_empty=line == ""
    )
    has_tabs = lines.select((line.str.contains("\t") & ~pl.col("is_mark") & ~line.str.starts_with("#")).any()).item()
    values = line.str.split("\t") if has_tabs else line.str.extract_all("[^ ]+")
    return lines.with_columns(
        values=pl.when("is_empty").then(pl.lit([], dtype=pl.List(pl.String))).otherwise(values),
        sentence=(pl.col("is_empty") | pl.col("is_mark")).cum_sum(),
        document=pl.col("is_mark").cum_sum(),
    )


def _width() -> pl.Expr:
    return pl.col("values").list.len().cast(pl.Int64)


def _value(column: int) -> pl.Expr:
    return pl.col("values").list.get(column, null_on_oob=True)


def _first() -> pl.Expr:
    return _value(0)


def _is_plain() -> pl.Expr:
    """Whether lines hold a token, whatever it is: they are neither empty nor a mark, and no comment."""
    return (_width() > 0) & ~pl.col("is_mark") & ~pl.col(_LINE).str.starts_with("#")


def _is_numbered(plain: pl.DataFrame) -> bool:
    """Whether the first values of lines number the tokens of each sentence, from 0 or 1 on in the first one."""
    if plain.is_empty() or not plain.select((_first().str.contains(_ID) & (_width() > 2)).all()).item():  # noqa: PLR2004 - number, token and tag
        return False
    numbers = plain.select("sentence", id=_first().cast(pl.Int64, strict=False)).drop_nulls()
    steps = numbers.select((pl.col("id").diff().over("sentence") == 1).all()).item()
    return bool(steps) and (numbers.is_empty() or numbers["id"][0] in {0, 1})


def _is_comment(lines: pl.DataFrame, *, is_numbered: bool) -> pl.Series:
    """Whether lines are comments, from their values, sentences and marks of documents."""
    plain = lines.filter(_is_plain())
    widths = plain.select(_width().alias("width"))["width"]
    usual = widths.mode().max() if len(widths) and not is_numbered else 0
    is_token = _value(-1).str.contains(TAG) & _width().eq(usual)
    begins = _is_plain().cast(pl.Int64).cum_sum().over("sentence") == 0
    is_hash = pl.col(_LINE).str.starts_with("#")
    return lines.select((is_hash & begins & ~is_token.fill_null(value=False)).alias("is_comment"))["is_comment"]


def _column_of_tags(tokens: pl.DataFrame, path: Path, tags: int | None, first: int, *, name: str) -> int:
    """Where the tags stand in the values of lines, from 0, or from -1 at their ends where these are of unequal length.

    `tags` is the column that the config says, from 1, and `first` where the token stands, unless the tags do.
    """
    if tags is not None or tokens.is_empty():
        return -1 if tags is None else tags - 1
    least, most = tokens.select(_width().min().alias("least"), _width().max().alias("most")).row(0)
    candidates = [*range(first, least), *(range(-1, first - least, -1) if most > least else ())]
    hits = tokens.select(_value(column).str.contains(TAG).sum().alias(str(column)) for column in candidates).row(0)
    holding = [column for column, n_tags in zip(candidates, hits, strict=True) if n_tags == tokens.height]
    behind = [column for column in holding if column != first]
    if len(behind) > 1:
        words = " and ".join(
            (
                f"column {column + 1}"
                if column >= 0
                else "the last"
                if column == -1
                else f"column {-column} from the end"
            )
            for column in behind
        )
        message = f"input {name}: several columns of {path} hold tags: {words} ({_told(tokens.head(1), count=False)})"
        number = max(behind) + 1
        raise DataError(
            message,
            remedy=f"Say which column holds those that count, from 1: tags = {number} beside the path of {name}, or "
            f"--set {name}.tags={number} on the command line.",
        )
    if holding:
        return next(iter(behind), first)
    last = -1 if most > least else int(most) - 1
    n_tags, best = max(zip(hits, candidates, strict=True), default=(0, last))
    return best if 2 * n_tags > tokens.height and best != first else last


def _taken_for_granted(plain: pl.DataFrame, at: int, token: int, *, is_numbered: bool) -> Iterator[str]:
    """Guesses about the columns of a file, from the lines of its tokens."""
    if plain.is_empty():
        return
    widths = plain.select(_width().max()).item()
    if at not in {-1, widths - 1}:
        yield (
            f"the tags are taken from column {at + 1} of {widths}, the only one with nothing but tags, and the tokens "
            f"from column {token + 1}; tags = {at + 1} ends this notice"
        )
    if not is_numbered and plain.select((_first().str.contains(_ID) & (_width() > 2)).all()).item():  # noqa: PLR2004 - as in _is_numbered
        yield "the first column is taken for the tokens: it holds numbers, which do not count the tokens of a sentence"


def _check_tokens(tokens: pl.DataFrame, at: int, path: Path, *, name: str) -> None:
    is_tag = pl.col("tag").str.contains(TAG).fill_null(value=False)
    odd = tokens.filter(~is_tag | (_width() == 1))
    if odd.height:
        usual = tokens.select(_width().mode().max()).item()
        where = "do not end in a tag" if at in {-1, usual - 1} else f"have no tag in column {at + 1}"
        message = f"input {name}: {path} has lines that {where}: {_told(odd)}"
        raise DataError(
            message,
            remedy="A tag is O, or B-, I-, E-, S-, L- or U- with a type behind it. Tabs, or blanks in a file without "
            f"tabs, separate the columns; if another column holds the tags, say which: tags = 2, for example, or "
            f"--set {name}.tags=2 on the command line.",
        )
    empty = tokens.filter(pl.col("token").fill_null("") == "")
    if empty.height:
        message = f"input {name}: {path} has lines without a token: {_told(empty)}"
        raise DataError(message, remedy="Write the token in front of its tag; a line without either ends a sentence.")


def mentions_of(tokens: pl.DataFrame) -> pl.DataFrame:
    """The mentions of tagged tokens, in the order of the text: columns doc_id, start, end, text, type.

    Tags are BIO (IOB2), IOB1 or IOBES/BILOU; a mention that begins with I is taken as begun, as conlleval does.
    """
    placed = tokens.with_columns(
        prefix=pl.col("tag").str.head(1),
        kind=pl.when(pl.col("tag") != "O").then(pl.col("tag").str.slice(2)),
        end=pl.col("start") + pl.col("token").str.len_chars().cast(pl.Int64),
    )
    continues = (  # the token before is of the same mention
        pl.col("kind").is_not_null()
        & pl.col("kind").eq_missing(pl.col("kind").shift())
        & pl.col("sentence").eq_missing(pl.col("sentence").shift())
        & pl.col("doc_id").eq_missing(pl.col("doc_id").shift())
        & ~pl.col("prefix").is_in(["B", "S", "U"])
        & ~pl.col("prefix").shift().is_in(["E", "S", "L", "U"]).fill_null(value=False)
    )
    return (
        placed.with_columns(mention=(~continues).cum_sum())
        .filter(pl.col("kind").is_not_null())
        .group_by("mention", maintain_order=True)
        .agg(
            pl.col("doc_id").first(),
            pl.col("start").first(),
            pl.col("end").last(),
            pl.when(pl.col("token").first() != UNKNOWN).then(pl.col("token").str.join(" ")).alias("text"),
            pl.col("kind").first().alias("type"),
        )
        .drop("mention")
    )


def brat(path: Path, *, name: str) -> pl.LazyFrame:
    """Read the text-bound annotations of a brat file, `T1<tab>Location 0 6<tab>London`; the document is its name.

    An annotation in several pieces, `T1<tab>Location 0 5;16 23<tab>North America`, is a mention from the start of the
    first to the end of the last. Columns doc_id, start, end, text, type, n_pieces.

    Raises:
        DataError: an annotation is not of that form.
    """
    lines = _lines(path).filter(pl.col(_LINE).str.starts_with("T")).collect()
    pattern = r"^T\S*\t(?<type>\S+) (?<pieces>\d+ \d+(?:;\d+ \d+)*)(?:\t(?<text>.*))?$"
    values = lines.with_columns(pl.col(_LINE).str.extract_groups(pattern).alias("values"))
    odd = values.filter(pl.col("values").struct.field("pieces").is_null())
    if odd.height:
        message = f"input {name}: {path} has annotations without a type and a span: {_told(odd)}"
        raise DataError(message, remedy="They are written as T1<tab>TYPE START END<tab>TEXT.")
    fields = values.select(pl.col("values").struct.unnest())
    limits = pl.col("pieces").str.extract_all(r"\d+").cast(pl.List(pl.Int64))
    return fields.lazy().select(
        pl.lit(path.stem).alias("doc_id"),
        limits.list.min().alias("start"),
        limits.list.max().alias("end"),
        pl.col("text", "type"),
        (limits.list.len() // 2).cast(pl.Int64).alias(PIECES),
    )


def notices(path: Path) -> dict[str, int]:
    """Return what is to be said of the rows of a brat file that was written to Parquet, with how many there are."""
    n_joined = int(pl.scan_parquet(path).select((pl.col(PIECES) > 1).sum()).collect().item())
    return {_JOINED: n_joined} if n_joined else {}


def _lines(path: Path) -> pl.LazyFrame:
    lines = pl.scan_csv(
        path,
        has_header=False,
        separator=_NO_SEPARATOR,
        quote_char=None,
        new_columns=[_LINE],
        schema={_LINE: pl.String},
        glob=False,
        raise_if_empty=False,
    )
    return lines.with_columns(pl.col(_LINE).fill_null("")).with_row_index("number", offset=1)


def _told(lines: pl.DataFrame, *, count: bool = True) -> str:
    """The first of some lines with its number; before it how many there are, unless that says nothing."""
    first = f"line {lines['number'][0]:,}, {lines[_LINE][0][:60]!r}"
    return f"{lines.height:,} (first: {first})" if count else first


# Files of JSON lines: one object a line, its columns with the types that all their values have together.
#
# A column whose values have no type together, or one that a Parquet file cannot hold, is read as the text of its
# values in JSON, so that it may stand beside those that are used.


_LARGEST = 1 << 63


class LineError(ValueError):
    """A line that is not one object in JSON."""


def json_lines(path: Path) -> pl.LazyFrame:
    """Read a file whose columns have each values of one type.

    Raises:
        PolarsError: a line is no object, or a column has values of several types, which may be found only later.
    """
    frame = pl.scan_ndjson(path, infer_schema_length=None)
    texts = {column: pl.String() for column, dtype in frame.collect_schema().items() if not can_hold(dtype)}
    return pl.scan_ndjson(path, infer_schema_length=None, schema_overrides=texts) if texts else frame


def mixed_json_lines(path: Path) -> pl.LazyFrame:
    """Read a file whose columns may have values of several types, after it has been read once for these.

    Raises:
        LineError: a line is no object.
    """
    types: dict[str, pl.DataType] = {}
    for row in _rows(path):
        for column, value in row.items():
            dtype = _type(value)
            earlier = types.get(column, dtype)
            types[column] = earlier if earlier == dtype else _together(earlier, dtype)
    return pl.scan_ndjson(
        path, schema={column: dtype if can_hold(dtype) else pl.String() for column, dtype in types.items()}
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with io.BufferedReader(pa.input_stream(str(path))) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                message = f"line {number:,} is not JSON ({error})"
                raise LineError(message) from error
            if not isinstance(row, dict):
                message = f"line {number:,} is no object"
                raise LineError(message)
            yield row


def _refuse(word: str) -> NoReturn:
    message = f"{word} is no value"
    raise ValueError(message)


def _type(value: object) -> pl.DataType:
    if isinstance(value, dict):
        return pl.Struct({key: _type(each) for key, each in value.items()})
    if isinstance(value, list):
        nothing: pl.DataType = pl.Null()
        return pl.List(reduce(_together, map(_type, value), nothing))
    if isinstance(value, int) and not isinstance(value, bool):
        return pl.Int64() if -_LARGEST <= value < _LARGEST else pl.String()
    types: dict[type, pl.DataType] = {bool: pl.Boolean(), float: pl.Float64(), str: pl.String()}
    return types.get(type(value), pl.Null())


def _together(one: pl.DataType, other: pl.DataType) -> pl.DataType:
    """The type that holds the values of two types; text if none does."""
    if one == other or other == pl.Null():
        return one
    if one == pl.Null():
        return other
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        return pl.List(_together(_dtype(one.inner), _dtype(other.inner)))
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        fields, others = ({each.name: _dtype(each.dtype) for each in kind.fields} for kind in (one, other))
        shared = {key: _together(fields[key], others[key]) for key in fields if key in others}
        return pl.Struct(fields | others | shared)
    return pl.Float64() if {one, other} == {pl.Int64(), pl.Float64()} else pl.String()


def _dtype(dtype: Any) -> pl.DataType:  # noqa: ANN401 - Polars has classes in the place of types without parameters
    return dtype if isinstance(dtype, pl.DataType) else dtype()


Align = Literal["exact", "prefix"]
_SENTENCE = ["doc_id", "sentence"]
_PLACE = [*_SENTENCE, "position"]
_FILE = "file"
_REMEDY = (
    "Predict on the tokens of gold. If sentences were cut, at the longest length of a model for example, "
    'align = "prefix" compares what they begin with alike, and says what that leaves out.'
)


def aligned(
    gold: Source, predicted: Source, align: Align, scratch: Path | None, *, judged: bool
) -> tuple[Source, Source, tuple[str, ...]]:
    """Return gold and predictions that are made of the same tokens, sentence by sentence, and what is to be said.

    Sentences whose tokens differ are refused (`exact`), or compared as far as they begin alike in all files (`prefix`).
    If a list says which documents are judged, a document that only one input has is no fault.

    Raises:
        DataError: tokens differ, which `align` does not allow; or two files of gold have one document.
    """
    gold_files, predicted_files = _with_tokens(gold), _with_tokens(predicted)
    if not gold_files or not predicted_files:
        return gold, predicted, ()
    of_gold, of_predicted = _tokens(gold_files), _tokens(predicted_files)
    _refuse_twins(of_gold, gold_files)
    beside = _beside(of_gold, of_predicted, judged=judged)
    differing = beside.filter("differs")
    if differing.is_empty():
        return gold, predicted, ()
    first = _place(differing.row(0, named=True), gold_files, predicted_files)
    n_sentences = differing.select(_SENTENCE).unique().height
    if align == "exact":
        sentences = "1 sentence" if n_sentences == 1 else f"{n_sentences:,} sentences"
        message = f"gold and predicted have different tokens in {sentences} (first: {first})"
        raise DataError(message, remedy=_REMEDY)
    lengths = beside.group_by(_SENTENCE).agg(
        common=pl.coalesce(pl.col("position").filter("differs").min() - 1, pl.col("position").max())
    )
    kept = _within(of_gold, lengths)
    cut_gold = _rewritten(gold, gold_files, kept, scratch)
    cut_predicted = _rewritten(predicted, predicted_files, _placed(_within(of_predicted, lengths), kept), scratch)
    warning = (
        f'align = "prefix": {n_sentences:,} of {lengths.height:,} sentences are compared only as far as gold and '
        f"predicted begin alike; of gold, {of_gold.height - kept.height:,} of {of_gold.height:,} tokens and "
        f"{gold.rows - cut_gold.rows:,} of {gold.rows:,} mentions are left out (first: {first})"
    )
    return cut_gold, cut_predicted, (warning,)


def _with_tokens(source: Source) -> list[DataFile]:
    return [file for file in source.files if isinstance(file, DataFile) and file.tokens is not None]


def _tokens(files: Sequence[DataFile]) -> pl.DataFrame:
    """The tokens of files, with the number of their file, from 0, and their positions in their sentences, from 1."""
    position = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_SENTENCE)
    read = (pl.read_parquet(file.tokens) for file in files if file.tokens is not None)
    return pl.concat(tokens.with_columns(position=position, file=number) for number, tokens in enumerate(read))


def _refuse_twins(tokens: pl.DataFrame, files: Sequence[DataFile]) -> None:
    """Refuse two files of gold with one document, whose tokens nothing would keep apart."""
    files_of = tokens.group_by("doc_id", maintain_order=True).agg(pl.col(_FILE).unique(maintain_order=True))
    for document, numbers in files_of.filter(pl.col(_FILE).list.len() > 1).iter_rows():
        names = f"{files[numbers[0]].name} and {files[numbers[1]].name}"
        message = f"input gold: {names} both have a document {document!r}"
        raise DataError(message, remedy="Documents are called after their files: give these files different names.")


def _beside(gold: pl.DataFrame, predicted: pl.DataFrame, *, judged: bool) -> pl.DataFrame:
    """The gold tokens beside the tokens of every file of predictions that has their document; NULL where one lacks it.

    Columns file (of predictions; NULL: none has the document), doc_id, sentence, position, token, number, differs, and
    file_of_gold, token_other, number_other.
    """
    documents = predicted.select(_FILE, "doc_id").unique(maintain_order=True)
    columns = [*_PLACE, "token", "number"]
    expected = gold.select(*columns, file_of_gold=_FILE).join(
        documents, on="doc_id", how="inner" if judged else "left", maintain_order="left"
    )
    others = predicted.select(_FILE, *columns)
    if judged:
        others = others.filter(pl.col("doc_id").is_in(gold["doc_id"].unique().implode()))
    beside = expected.join(
        others, on=[_FILE, *_PLACE], how="full", coalesce=True, suffix="_other", maintain_order="left_right"
    )
    return beside.with_columns(differs=pl.col("token").ne_missing(pl.col("token_other")))


def _place(row: dict[str, object], gold: Sequence[DataFile], predicted: Sequence[DataFile]) -> str:
    """A place where tokens differ, with the tokens of both and their lines."""
    sides = []
    for name, files, token, number, file in (
        ("gold", gold, row["token"], row["number"], row["file_of_gold"]),
        ("predicted", predicted, row["token_other"], row["number_other"], row[_FILE]),
    ):
        where = "" if file is None else f" in {files[int(str(file))].name}"
        shown = "a token without a name" if token == UNKNOWN else repr(token)
        sides.append(f"{name} has none{where}" if token is None else f"{name} has {shown}{where}, line {number:,}")
    return f"document {row['doc_id']!r}, sentence {row['sentence']:,}, token {row['position']:,}: {'; '.join(sides)}"


def _within(tokens: pl.DataFrame, lengths: pl.DataFrame) -> pl.DataFrame:
    """The tokens that all files have, and the tokens of documents that were not compared."""
    measured = tokens.join(lengths, on=_SENTENCE, how="left", maintain_order="left")
    return measured.filter((pl.col("position") <= pl.col("common")).fill_null(value=True))


def _placed(predicted: pl.DataFrame, gold: pl.DataFrame) -> pl.DataFrame:
    """Tokens of predictions at the places of the same tokens of gold, so that what was cut moves none behind it."""
    starts = gold.select(*_PLACE, pl.col("start").alias("start_in_gold"))
    placed = predicted.join(starts, on=_PLACE, how="left", maintain_order="left")
    return placed.with_columns(start=pl.coalesce("start_in_gold", "start"))


def _rewritten(source: Source, files: Sequence[DataFile], tokens: pl.DataFrame, scratch: Path | None) -> Source:
    """An input whose mentions are made of some of the tokens of its files."""
    number_of = {id(file): number for number, file in enumerate(files)}
    of_file = tokens.partition_by(_FILE, as_dict=True)
    nothing = tokens.clear()

    def rewritten(file: DataFile, number: int) -> DataFile:
        kept = of_file.get((number,), nothing)

        def write(target: Path) -> None:
            with_own_document(mentions_of(kept), source.spec).write_parquet(target)
            kept.select(_TOKEN_COLUMNS).write_parquet(target.with_name(TOKENS))

        new = spooled(write, file.name, scratch, name=source.name)
        return replace(of_same_rows(new, file, "label", "origin", "identity"), tokens=new.path.with_name(TOKENS))

    return replace(
        source,
        files=tuple(
            rewritten(file, number_of[id(file)]) if isinstance(file, DataFile) and id(file) in number_of else file
            for file in source.files
        ),
    )
