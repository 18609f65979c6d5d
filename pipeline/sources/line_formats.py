"""Files of evaluation campaigns, whose lines have no header: TREC runs and judgements, CoNLL and brat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

RUN = ("query_id", "q0", "doc_id", "rank", "score", "system")
QRELS = ("query_id", "iteration", "doc_id", "relevance")
DOCUMENT_MARK = "-DOCSTART-"
PIECES = "n_pieces"
_NEW_DOCUMENT = r"^#\s*(newdoc|begin document)\b"  # of CoNLL-U and of CoNLL-2012
_TAG = r"^(O$|[BIESLU]-.)"
_NUMBER = r"^\d+$"
_JOINED = (
    "an annotation of several pieces is read as one span, from the start of its first piece to the end of its last; "
    f'where = "{PIECES} = 1" leaves such rows out'
)
_NO_SEPARATOR = "\x01"
_LINE = "line"


def trec(path: Path, names: tuple[str, ...], *, name: str) -> pl.LazyFrame:
    """Read a TREC run or judgements: values between blanks, all of them text.

    Args:
        path: The file.
        names: The columns, `RUN` or `QRELS`.
        name: Name of the input in messages.

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


def conll(path: Path, *, alone: bool, name: str) -> pl.LazyFrame:
    """Read tagged tokens as mentions: one token a line, its tag last, an empty line between sentences.

    Tags are BIO (IOB2), IOB1 or IOBES/BILOU; a mention that begins with I is taken as begun, as conlleval does. The
    token is the first value of a line, or the second where all first values are numbers, as in CoNLL-U. Lines that
    begin with `#` before the first token of a sentence are comments, unless they end in a tag and have as many values
    as most lines: then `#` is a token.

    Characters are counted as if the tokens of a document were joined by single blanks. A document is the number of
    lines so far that begin with `-DOCSTART-`, `# newdoc` or `#begin document`; where an input has several files, with
    the name of the file in front, so that documents of gold and of predictions are the same if their files are called
    the same.

    Args:
        path: The file.
        alone: Whether it is the only file of its input.
        name: Name of the input in messages.

    Returns:
        Columns doc_id, start, end, text, type.

    Raises:
        DataError: a line has no tag, or its tag is none.
    """
    values = pl.col("values")
    lines = _lines(path).with_columns(values=pl.col(_LINE).str.extract_all(r"\S+")).collect()
    lines = lines.with_columns(
        is_mark=values.list.first().eq(DOCUMENT_MARK).fill_null(value=False) | pl.col(_LINE).str.contains(_NEW_DOCUMENT)
    )
    lines = lines.with_columns(
        sentence=((values.list.len() == 0) | pl.col("is_mark")).cum_sum(), document=pl.col("is_mark").cum_sum()
    )
    tokens = lines.filter(values.list.len() > 0, ~pl.col("is_mark"), ~_is_comment(lines))
    is_numbered = tokens.select((values.list.first().str.contains(_NUMBER) & (values.list.len() > 2)).all()).item()  # noqa: PLR2004 - number, token and tag
    tokens = tokens.with_columns(token=values.list.get(int(is_numbered), null_on_oob=True), tag=values.list.last())
    _check_tags(tokens, path, name=name)
    return _mentions(tokens, "" if alone else f"{path.stem}:").lazy()


def _is_comment(lines: pl.DataFrame) -> pl.Series:
    """Whether lines are comments, from their values, sentences and marks of documents."""
    values = pl.col("values")
    is_hash = pl.col(_LINE).str.starts_with("#")
    is_plain = ~is_hash & ~pl.col("is_mark") & (values.list.len() > 0)
    widths = lines.filter(is_plain).select(values.list.len().alias("width"))["width"]
    is_token = values.list.last().str.contains(_TAG) & values.list.len().eq(widths.mode().max() if len(widths) else 0)
    begins = is_plain.cast(pl.Int64).cum_sum().over("sentence") == 0
    return lines.select((is_hash & begins & ~is_token.fill_null(value=False)).alias("is_comment"))["is_comment"]


def _check_tags(tokens: pl.DataFrame, path: Path, *, name: str) -> None:
    odd = tokens.filter(~pl.col("tag").str.contains(_TAG) | (pl.col("values").list.len() == 1))
    if odd.height:
        message = f"input {name}: {path} has lines that do not end in a tag: {_told(odd)}"
        raise DataError(message, remedy="A tag is O, or B-, I-, E-, S-, L- or U- with a type behind it.")


def _mentions(tokens: pl.DataFrame, prefix_of_documents: str) -> pl.DataFrame:
    """Mentions from tokens with their tags, sentences and documents."""
    prefix, kind = pl.col("tag").str.head(1), pl.col("tag").str.slice(2)
    length = pl.col("token").str.len_chars().cast(pl.Int64)
    placed = tokens.with_columns(
        prefix=prefix,
        kind=pl.when(pl.col("tag") != "O").then(kind),
        start=(length + 1).cum_sum().over("document") - length - 1,
        length=length,
    )
    continues = (  # the token before is of the same mention
        pl.col("kind").is_not_null()
        & pl.col("kind").eq_missing(pl.col("kind").shift())
        & pl.col("sentence").eq_missing(pl.col("sentence").shift())  # which ends with its document
        & ~pl.col("prefix").is_in(["B", "S", "U"])
        & ~pl.col("prefix").shift().is_in(["E", "S", "L", "U"]).fill_null(value=False)
    )
    document = pl.concat_str(pl.lit(prefix_of_documents), pl.col("document").cast(pl.String))
    return (
        placed.with_columns(mention=(~continues).cum_sum(), doc_id=document)
        .filter(pl.col("kind").is_not_null())
        .group_by("mention", maintain_order=True)
        .agg(
            pl.col("doc_id").first(),
            pl.col("start").first(),
            (pl.col("start") + pl.col("length")).last().alias("end"),
            pl.col("token").str.join(" ").alias("text"),
            pl.col("kind").first().alias("type"),
        )
        .drop("mention")
    )


def brat(path: Path, *, name: str) -> pl.LazyFrame:
    """Read the text-bound annotations of a brat file, `T1<tab>Location 0 6<tab>London`; the document is its name.

    An annotation in several pieces, `T1<tab>Location 0 5;16 23<tab>North America`, is a mention from the start of the
    first to the end of the last.

    Args:
        path: The file.
        name: Name of the input in messages.

    Returns:
        Columns doc_id, start, end, text, type, n_pieces.

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
    """Return what is to be said of the rows of a brat file that was written to a Parquet file, with how many there are.

    Args:
        path: The Parquet file.
    """
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


def _told(lines: pl.DataFrame) -> str:
    """How many lines there are, and the first with its number."""
    text = lines[_LINE][0]
    return f"{lines.height:,} (first: line {lines['number'][0]:,}, {text[:60]!r})"
