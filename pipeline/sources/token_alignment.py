"""Whether gold and predicted mentions are made of the same tokens, where their files hold tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import polars as pl

from ..errors import DataError
from .formats import TOKENS
from .frames import SPOOLED, TemporaryFolder
from .line_formats import UNKNOWN, mentions_of
from .parquet_files import DataFile, open_file
from .unnesting import with_own_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .source import Source

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

    Args:
        gold: The gold mentions.
        predicted: The predicted mentions.
        align: What becomes of sentences whose tokens differ: `exact`: none may; `prefix`: the tokens with which a
            sentence begins alike in all files are compared, and no others.
        scratch: Folder for temporary data; None: that of the system.
        judged: Whether a list says which documents are judged: then a document that only one input has is no fault.

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
    """The tokens of gold beside those of every file of predictions that has their document; NULL where one has none.

    Returns:
        Columns file (of predictions; NULL: none has the document), doc_id, sentence, position, token, number, differs,
        and file_of_gold, token_other, number_other.
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
    """The tokens that all have, and those of documents that were not compared."""
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
        folder = TemporaryFolder(scratch)
        target = folder.path / SPOOLED
        kept = of_file.get((number,), nothing)
        with_own_document(mentions_of(kept), source.spec).write_parquet(target)
        kept.select("doc_id", "sentence", "number", "token", "tag", "start").write_parquet(target.with_name(TOKENS))
        new = open_file(target, folder.path, name=source.name, label=file.name, holder=folder)
        same = ("label", "origin", "identity", "partitions", "partition_types", "notices")
        return replace(new, tokens=target.with_name(TOKENS), **{name: getattr(file, name) for name in same})

    return replace(
        source,
        files=tuple(
            rewritten(file, number_of[id(file)]) if isinstance(file, DataFile) and id(file) in number_of else file
            for file in source.files
        ),
    )
