"""Mentions of entities in documents as stages use them: the rule of matching, and the relations to be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field, field_validator

from ...metrics.matching.bipartite import packed
from ...metrics.matching.spans import (
    Assignment,
    Mentions,
    ShareOf,
    match_near,
    match_overlapping,
    match_spans,
    match_texts,
    normalised_text,
)
from ...metrics.sorting import rising_order
from ...tables.groupings import internal_name
from ..parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


Match = Literal["span", "text", "overlap", "text_near"]
DOCUMENT, SYSTEM = "_document", "_system"
FILE_ORDER = ("source_file", "file_row_number")
PLACE = ("start", "end")
TYPE = "type"
FARTHEST_CHARACTER = 1_000_000_000


class MentionParameters(StageParameters):
    """Parameters of stages that match mentions.

    Attributes:
        match: Which mentions may be matched: `span`: the same characters; `text`: the same normalised text anywhere in
            the document; `overlap`: characters in common; `text_near`: the same text and close centres; None: none are.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of the file
            takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
    """

    match: Match | None = None
    match_type: bool = False
    assignment: Assignment = "maximum"
    minimum_overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    overlap_of: ShareOf = "union"
    max_centre_distance: Annotated[float, Field(gt=0, le=1_000_000)] = 10.0

    @field_validator("duplicates")
    @classmethod
    def _no_highest(cls, value: str) -> str:
        if value == "max":
            message = 'duplicates = "max" has no meaning here: use "error" or "keep"'
            raise ValueError(message)
        return value

    @property
    def type_group(self) -> str | None:
        """Internal name of the grouping column that is the type of matched mentions; None: no grouping has it."""
        grouped = self.match_type and any(TYPE in names for names in self.by)
        return internal_name(TYPE) if grouped else None

    def needs(self) -> tuple[str, ...]:
        """The columns that matching needs of gold and predicted mentions."""
        places = () if self.match == "text" else ("start", "end")
        texts = ("text",) if self.match in {"text", "text_near"} else ()
        return ("doc_id", *places, *texts, *(("type",) if self.match_type else ()))


def matched_rows(gold: pl.DataFrame, predicted: pl.DataFrame, params: MentionParameters) -> NDArray[np.int64]:
    """The matching of gold and predicted mentions by the rule of a stage.

    Args:
        gold: Columns `_document` and, if there are several, `_system`, numbers from 0, within which mentions are
            matched, and those that the rule needs; where it does not need `start` and `end`, they may be missing or
            unknown.
        predicted: The same, and `score` if there is one.
        params: The rule.

    Returns:
        Shape (gold.height,): row of the matched prediction, or -1.
    """
    of_gold, of_predicted = _mentions(gold, predicted, params)
    if params.match == "span":
        return match_spans(of_gold, of_predicted)
    if params.match == "text":
        return match_texts(of_gold, of_predicted, assignment=params.assignment)
    if params.match == "text_near":
        return match_near(
            of_gold, of_predicted, max_centre_distance=params.max_centre_distance, assignment=params.assignment
        )
    return match_overlapping(
        of_gold,
        of_predicted,
        minimum_share=params.minimum_overlap,
        share_of=params.overlap_of,
        assignment=params.assignment,
    )


def in_order(mentions: pl.DataFrame, further: Sequence[str] = ()) -> pl.DataFrame:
    """Mentions in an order that that of their rows does not decide: by document, system, place and further columns.

    A largest matching takes the first of rows that it cannot tell apart: which one that is, the further columns decide.
    """
    if mentions.height < 2:  # noqa: PLR2004 - one row is in order
        return mentions
    first = [name for name in (DOCUMENT, SYSTEM, *PLACE) if name in mentions.columns]
    keys = list(dict.fromkeys([*first, *(name for name in further if name in mentions.columns)]))
    outside = FARTHEST_CHARACTER + 1
    columns = mentions.select(pl.col(first).fill_null(outside).clip(-outside, outside))
    words = packed([(column.to_numpy(), np.empty(0, dtype=np.int64)) for column in columns])
    order = rising_order(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    same = np.logical_and.reduce([np.diff(word[order]) == 0 for word in words])
    repeated = np.append(False, same) | np.append(same, False)
    rows = order[repeated]
    again = mentions.select(keys)[rows].select(pl.arg_sort_by(keys, nulls_last=True))
    order[repeated] = rows[again.to_series().to_numpy()]
    return mentions[order]


def text_numbers(texts: pl.Series) -> pl.Series:
    """The same number from 0 for the same normalised text."""
    return pl.Series(_numbers([texts], normalised=True)[0])


def _mentions(gold: pl.DataFrame, predicted: pl.DataFrame, params: MentionParameters) -> tuple[Mentions, Mentions]:
    frames = gold, predicted
    documents = [frame[DOCUMENT].to_numpy() for frame in frames]
    if SYSTEM in gold.columns:
        documents = _combined(documents, [frame[SYSTEM].to_numpy() for frame in frames])
    codes = [np.zeros(frame.height, dtype=np.int64) for frame in frames]
    for name in ("text", "type"):
        if name in params.needs() and (name != "type" or params.match_type):
            codes = _combined(codes, _numbers([frame[name] for frame in frames], normalised=name == "text"))
    sides = []
    for frame, document, code, (start, end) in zip(frames, documents, codes, _places(frames), strict=True):
        score = frame["score"].to_numpy() if "score" in frame.columns else None
        sides.append(Mentions(document, start, end, code, score))
    return sides[0], sides[1]


def _places(frames: tuple[pl.DataFrame, pl.DataFrame]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """First character and the one after the last of gold and of predicted mentions; zeros where one side has none.

    Mentions whose place is not known, or cannot be one, stand behind all others, predicted ones at another place than
    gold ones: nothing says that the two are the same.
    """
    if not all(name in frame.columns for frame in frames for name in PLACE):
        nothing = [np.zeros(frame.height, dtype=np.int64) for frame in frames]
        return list(zip(nothing, nothing, strict=True))
    places = []
    for behind, frame in enumerate(frames, start=1):
        somewhere = is_placed().fill_null(value=False)
        names = [pl.when(somewhere).then(name).otherwise(FARTHEST_CHARACTER + behind).alias(name) for name in PLACE]
        start, end = (column.to_numpy() for column in frame.select(names))
        places.append((start, end))
    return places


def is_placed() -> pl.Expr:
    """Whether `start` and `end` are the place of a mention in a text; NULL or false: they are not."""
    start, end = (pl.col(name) for name in PLACE)
    return (start >= -FARTHEST_CHARACTER) & (start <= end) & (end <= FARTHEST_CHARACTER)


def _numbers(columns: Sequence[pl.Series], *, normalised: bool) -> list[NDArray[np.int64]]:
    """The same number for the same value in both columns; texts are normalised once each."""
    everything = pl.concat(columns)
    if everything.dtype == pl.String and len(everything):
        coded = everything.cast(pl.Categorical(pl.Categories.random()))
        values = coded.unique()
        texts = pl.DataFrame({"value": values.cast(pl.String)})
        names = texts.select(normalised_text(pl.col("value")) if normalised else pl.col("value")).to_series()
        of_code = np.zeros(len(values), dtype=np.int64)
        of_code[values.to_physical().to_numpy()] = names.rank("dense").cast(pl.Int64).to_numpy() - 1
        numbers = of_code[coded.to_physical().to_numpy()]
    else:
        numbers = everything.rank("dense").cast(pl.Int64).to_numpy() - 1
    return [numbers[: len(columns[0])], numbers[len(columns[0]) :]]


def _combined(first: list[NDArray[np.int64]], second: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """One number for each pair of two numbers."""
    size = 1 + max(int(each.max(initial=0)) for each in second)
    return [left * size + right for left, right in zip(first, second, strict=True)]


# The rule by which mentions are matched, for a methods section.


def rule_in_words(parameters: Mapping[str, object]) -> str:
    """Say which mentions may be matched and how they are, as the end of a sentence."""
    share = f"at least {parameters['minimum_overlap']:.10g} of the characters in "
    of_share = share + ("the gold mention" if parameters["overlap_of"] == "gold" else "either")
    rules = {
        "span": "whose first and last characters are equal",
        "text": "whose normalised texts are equal",
        "overlap": f"that have {of_share if parameters['minimum_overlap'] else 'a character'} in common",
        "text_near": (
            f"whose normalised texts are equal and whose centres lie less than {parameters['max_centre_distance']:g} "
            "characters apart (Gritta et al. 2018)"
        ),
    }
    types = ", and whose types are equal" if parameters["match_type"] else ""
    how = (
        "by a largest one-to-one matching"
        if parameters["assignment"] == "maximum"
        else "one to one, every gold mention in the order of the file taking the first prediction that is free"
    )
    return f"mentions of one document {rules[str(parameters['match'])]}{types}, {how}"
