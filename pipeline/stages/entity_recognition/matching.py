"""The relation `mentions`: matched pairs, false positives and misses, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..mentions.rules import FILE_ORDER, TYPE, in_order, matched_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..mentions.rules import MentionParameters

SHOWN = ("start", "end", "text", "type")
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String(), "type": pl.String()}


def matcher(
    params: MentionParameters, passed_on: Sequence[str], *, shown: bool
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that makes the relation.

    Args:
        params: The rule of matching.
        passed_on: Columns of gold and predicted mentions that every row keeps.
        shown: Whether rows have `doc_id` and the spans, texts and types of both sides, for people.

    Returns:
        A function of the frames `gold` and `predicted`. Its rows have the columns passed on, `score` (0 without
        scores, NULL without a prediction), `is_gold`, `is_predicted` and, where a grouping has it, the type, which is
        the same in a matched pair.
    """

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        gold, predicted = frames["gold"], frames["predicted"]
        if params.assignment == "file_order":
            gold, predicted = (each.sort(FILE_ORDER) for each in (gold, predicted))
        elif shown:  # counts are the same for mentions that the rule cannot tell apart, but people see their texts
            gold, predicted = (in_order(each, ("text", "type")) for each in (gold, predicted))
        matched = matched_rows(gold, predicted, params)
        spurious = np.ones(predicted.height, dtype=np.bool_)
        spurious[matched[matched >= 0]] = False
        columns = [pl.col(name) for name in (*passed_on, *(["doc_id"] if shown else []))]
        columns += [pl.col(TYPE).alias(params.type_group)] if params.type_group else []
        pairs = _rows(gold, predicted, matched, columns, shown=shown)
        unmatched = predicted.filter(pl.Series(spurious))
        absent = pl.Series(np.zeros(unmatched.height, dtype=np.int64) - 1)
        false_positives = unmatched.select(columns).with_columns(
            _score(unmatched), pl.lit(value=False).alias("is_gold"), pl.lit(value=True).alias("is_predicted")
        )
        if shown:
            shown_columns = (*_shown(gold, "gold", absent), *_shown(unmatched, "predicted", None))
            false_positives = false_positives.with_columns(*shown_columns)
        return pl.concat([pairs, false_positives.select(pairs.columns)])

    return match


def _rows(
    gold: pl.DataFrame, predicted: pl.DataFrame, matched: NDArray[np.int64], columns: Sequence[pl.Expr], *, shown: bool
) -> pl.DataFrame:
    """A row for every gold mention, with the prediction that it is matched with."""
    row = pl.Series(matched)
    score = _taken(_score(predicted), row)
    rows = gold.select(columns).with_columns(
        score.alias("score"), pl.lit(value=True).alias("is_gold"), (row >= 0).alias("is_predicted")
    )
    return rows.with_columns(*_shown(gold, "gold", None), *_shown(predicted, "predicted", row)) if shown else rows


def _score(predicted: pl.DataFrame) -> pl.Series:
    """The scores, 0 without."""
    if "score" in predicted.columns:
        return predicted["score"]
    return pl.Series("score", np.zeros(predicted.height))


def _shown(frame: pl.DataFrame, side: str, row: pl.Series | None) -> list[pl.Series]:
    """Span, text and type of rows of a frame, NULL where the row is -1 and where the frame lacks the column."""
    height = frame.height if row is None else len(row)
    columns = []
    for name in SHOWN:
        if name not in frame.columns:
            column = pl.Series(values=[None], dtype=_TYPES[name]).new_from_index(0, height)
        else:
            column = frame[name] if row is None else _taken(frame[name], row)
        columns.append(column.alias(f"{side}_{name}"))
    return columns


def _taken(column: pl.Series, row: pl.Series) -> pl.Series:
    """Values of some rows; NULL for row -1."""
    return column.gather(row.set(row < 0, None)) if len(column) else column.extend_constant(None, len(row))
