"""The relation `toponyms` where SQL cannot make it: mentions to be matched, and distances on the ellipsoid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.distance import geodesic, haversine
from pipeline.stages.geocoding.coordinates import PLACE
from pipeline.stages.mentions import DOCUMENT, FILE_ORDER, SYSTEM, matched_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.stages.geocoding.contract import GeocodingParameters

SHOWN = ("start", "end", "text")
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String()}


def by_matching(
    params: GeocodingParameters, systems: Sequence[str], of_gold: Sequence[str]
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that matches mentions and measures their distance.

    Args:
        params: The rule of matching, and which candidate counts.
        systems: Grouping columns of the predictions.
        of_gold: Grouping columns of the gold mentions; NULL for predictions without a match.

    Returns:
        A function of the frames `gold` and `predicted`. Rows of predictions that have the same span are candidates of
        one mention. Its rows are gold mentions and predicted mentions without a match.
    """

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        gold, candidates = frames["gold"], _numbered(frames["predicted"], params)
        if params.assignment == "file_order":
            gold, candidates = gold.sort(FILE_ORDER), candidates.sort(FILE_ORDER)
        mentions = candidates.unique("_mention", keep="first", maintain_order=True)
        matched = matched_rows(gold, mentions, params)
        number = pl.Series("_mention", np.append(mentions["_mention"].to_numpy(), -1)[matched])
        left = _gold_rows(gold, [*systems, *of_gold], number)
        found = candidates.select("_mention", *_places("predicted"), *_rank(candidates))
        pairs = left.join(found, on="_mention", how="left", maintain_order="left_right")
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
    """Candidates with the number of their mention."""
    if params.candidates == "error":
        return predicted.with_row_index("_mention").with_columns(pl.col("_mention").cast(pl.Int64))
    needs = [name for name in ("text", "type") if name in params.needs()]
    keys = [DOCUMENT, *(name for name in (SYSTEM,) if name in predicted.columns), "start", "end", *needs]
    return predicted.with_columns((pl.struct(keys).rank("dense").cast(pl.Int64) - 1).alias("_mention"))


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
        *(each.name.prefix("gold_") for each in shown),
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
    places = [rows[f"{side}_{name}"].cast(pl.Float64).fill_null(np.nan).to_numpy() for side in _SIDES for name in PLACE]
    distance = (geodesic if params.distance == "geodesic" else haversine)(*places)
    located = pl.col("predicted_latitude").is_not_null().alias("is_located")
    return rows.with_columns(pl.Series("distance_km", distance, dtype=pl.Float64).fill_nan(None), located)


_SIDES = ("gold", "predicted")


def chosen(rows: pl.DataFrame, params: GeocodingParameters, keys: Sequence[str]) -> pl.DataFrame:
    """One candidate for each mention; ties go to the lower latitude and longitude."""
    if params.candidates == "error":
        return rows
    first = "rank" if params.candidates == "first" else "distance_km"
    order = rows.sort(first, *(f"predicted_{name}" for name in PLACE), nulls_last=True)
    return order.unique(keys, keep="first", maintain_order=True)
