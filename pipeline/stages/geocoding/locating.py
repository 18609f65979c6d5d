"""The relation `toponyms` where SQL cannot make it: mentions to be matched, and distances on the ellipsoid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.geocoding.distance import geodesic, haversine
from ...tables.columns import doubles
from ..mentions.rules import DOCUMENT, FILE_ORDER, SYSTEM, in_order, matched_rows, text_numbers
from .coordinates import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .contract import GeocodingParameters

SPAN = ("start", "end")
SHOWN = (*SPAN, "text")
SEVERAL = 'Keep one, or choose: candidates = "first" (by rank), or "closest" (the best any choice could be).'
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String()}


def by_matching(
    params: GeocodingParameters, systems: Sequence[str], of_gold: Sequence[str], names: Callable[[str], str] = str
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that matches mentions and measures their distance.

    Args:
        params: The rule of matching, and which candidate counts.
        systems: Grouping columns of the predictions.
        of_gold: Grouping columns of the gold mentions; NULL for predictions without a match.
        names: The name that a column of the predictions has in their files, for messages.

    Returns:
        A function of the frames `gold` and `predicted`. Rows of predictions that have the same span and normalised text
        are candidates of one mention. Its rows are gold mentions and predicted mentions without a match. Except for the
        order of file they do not depend on the order of the rows: of mentions that the rule cannot tell apart, gold
        ones come by their id and place on Earth, predictions by rank and place on Earth. It raises a DataError where
        mentions have candidates that are not wanted.
    """

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        gold, candidates = frames["gold"], _numbered(frames["predicted"], params)
        if params.candidates == "error":
            _check_alone(candidates, names)
        if params.assignment == "file_order":
            gold, candidates = gold.sort(FILE_ORDER), candidates.sort(FILE_ORDER)
        else:
            gold = in_order(gold, ("mention_id", *PLACE, "text", "type", *of_gold))
        mentions = candidates.unique("_mention", keep="first", maintain_order=True)
        matched = matched_rows(gold, mentions, params)
        number = pl.Series("_mention", np.append(mentions["_mention"].to_numpy(), -1)[matched])
        left = _gold_rows(gold, [*systems, *of_gold], number)
        ranked = candidates.select("_mention", *_places("predicted"), *_rank(candidates))
        pairs = left.join(ranked, on="_mention", how="left", maintain_order="left_right")
        absent = [name for name in left.columns if name not in {*systems, "replicate", "doc_id", "_mention", *_FLAGS}]
        others = candidates.filter(~pl.col("_mention").is_in(number.unique().implode()))
        spurious = others.select(
            *systems, "replicate", "doc_id", "_mention", *_places("predicted"), *_rank(candidates)
        ).with_columns(
            pl.lit(value=False).alias("is_gold"),
            pl.lit(value=True).alias("is_predicted"),
            *(pl.lit(None, dtype=left.schema[name]).alias(name) for name in absent),
        )
        rows = pl.concat([pairs, spurious.select(pairs.columns)])
        return chosen(measured(rows, params), params, ["_gold", "_mention"]).drop("_gold", "_mention")

    return match


_FLAGS = ("is_gold", "is_predicted")


def _numbered(predicted: pl.DataFrame, params: GeocodingParameters) -> pl.DataFrame:
    """Candidates in an order that does not depend on that of the rows, with the number of their mention."""
    keys = [name for name in (DOCUMENT, SYSTEM, *SPAN) if name in predicted.columns]
    if "text" in params.needs():  # the number of the text, until that of the mention takes its place
        predicted = predicted.with_columns(text_numbers(predicted["text"]).alias("_mention"))
        keys.append("_mention")
    keys += ["type"] if params.match_type else []
    ordered = in_order(predicted, (*keys, "rank", *PLACE))
    if not set(SPAN) <= set(keys):
        return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("_mention"))
    # rows that differ from the one before start a mention; those whose span is not known are mentions of their own
    unknown = [pl.col(name).is_null() for name in SPAN]
    starts = pl.any_horizontal(*(pl.col(name).ne_missing(pl.col(name).shift()) for name in keys), *unknown)
    return ordered.with_columns((starts.cast(pl.Int64).cum_sum() - 1).alias("_mention"))


def _check_alone(candidates: pl.DataFrame, names: Callable[[str], str]) -> None:
    """Refuse mentions with several candidates; rows that repeat to the letter have been refused before."""
    again = candidates.filter(pl.col("_mention") == pl.col("_mention").shift(-1)).head(1)
    if again.is_empty():
        return
    alike = candidates.filter(_mention=again["_mention"].item())
    doc_id, start, end = (f"{names(name)} = {again[name].item()}" for name in ("doc_id", *SPAN))
    texts = ", ".join(repr(text) for text in alike["text"].unique().sort().to_list())
    message = (
        f"input predicted: {doc_id}, {start}, {end} has {alike.height} rows with the same normalised text: {texts}"
    )
    raise DataError(message, remedy=SEVERAL)


def _places(side: str) -> list[pl.Expr]:
    return [pl.col(name).alias(f"{side}_{name}") for name in PLACE]


def _rank(frame: pl.DataFrame) -> list[pl.Expr]:
    return [pl.col("rank") if "rank" in frame.columns else pl.lit(None, dtype=pl.Float64).alias("rank")]


def _gold_rows(gold: pl.DataFrame, groups: Sequence[str], number: pl.Series) -> pl.DataFrame:
    """Gold mentions with the number of the predicted mention that each is matched with; -1: none."""
    shown = [pl.col(name) if name in gold.columns else pl.lit(None, dtype=_TYPES[name]).alias(name) for name in SHOWN]
    mention_id = pl.col("mention_id") if "mention_id" in gold.columns else pl.lit(None, dtype=pl.String)
    return gold.select(
        *groups,
        "replicate",
        mention_id.alias("mention_id"),
        "doc_id",
        *(value.name.prefix("gold_") for value in shown),
        *_places("gold"),
    ).with_columns(
        number,
        pl.int_range(pl.len(), dtype=pl.Int64).alias("_gold"),
        pl.lit(value=True).alias("is_gold"),
        (number >= 0).alias("is_predicted"),
    )


def of_pairs(
    params: GeocodingParameters, systems: Sequence[str]
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that measures the distance of pairs that are aligned already: a function of the frame `pairs`."""

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return chosen(measured(frames["pairs"], params), params, ["mention_id", *systems])

    return match


def measured(rows: pl.DataFrame, params: GeocodingParameters) -> pl.DataFrame:
    """Rows with `distance_km`, NULL where a place is missing, and `is_located`."""
    places = [rows[f"{side}_{name}"].cast(pl.Float64).to_numpy() for side in _SIDES for name in PLACE]
    distance = (geodesic if params.distance == "geodesic" else haversine)(*places)
    located = pl.col("predicted_latitude").is_not_null().alias("is_located")
    return rows.with_columns(doubles("distance_km", distance), located)


_SIDES = ("gold", "predicted")


def chosen(rows: pl.DataFrame, params: GeocodingParameters, keys: Sequence[str]) -> pl.DataFrame:
    """One candidate for each mention; ties go to the lower latitude and longitude."""
    if params.candidates == "error":
        return rows
    first = "rank" if params.candidates == "first" else "distance_km"
    order = rows.sort(first, *(f"predicted_{name}" for name in PLACE), nulls_last=True)
    return order.unique(keys, keep="first", maintain_order=True)
