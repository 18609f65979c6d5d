"""Places side by side, and the tables that need their distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.geocoding.accuracy import ERRORS as CONTRIBUTED
from ...metrics.geocoding.accuracy import error_contributions, error_statistics, geodesic, haversine, likely_swapped
from ...metrics.uncertainty.bootstrap import otherwise, ratio_limits
from ...metrics.uncertainty.clusters import effective_number, spread_of_shifts
from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, worst
from ...metrics.uncertainty.jackknife import leave_one_out, log_interval, t_quantile
from ...metrics.uncertainty.limits import quality_of_sizes
from ...metrics.uncertainty.serial import may_neighbours_be_alike
from ...plan.nodes import After, CrossCheck
from ...queries.load import statement
from ...tables.columns import REPLICATE, as_key, doubles
from ...tables.groupings import Grouping
from ...tables.schemas import GROUPING, polars_types
from ..mentions import DOCUMENT, FILE_ORDER, SYSTEM, in_order, matched_rows, text_numbers
from .contract import DOCUMENTS, ERRORS, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...metrics.uncertainty.interval_quality import Quality
    from .contract import GeocodingParameters


# The relation `toponyms` where SQL cannot make it: mentions to be matched, and distances on the ellipsoid.


PLACE = ("latitude", "longitude")
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


# Tables of geocoding that need the distances themselves, and a second look at coordinates.


FARTHER_KM = 1000.0
FEWEST_EXCHANGED = 0.01
_COORDINATES = ("predicted_latitude", "predicted_longitude", "gold_latitude", "gold_longitude")


def errors(params: GeocodingParameters, by: Sequence[str], *, in_time: bool) -> After:
    """Mean, median and area of the distances of every group, also of one that has spurious predictions alone."""

    def finish(distances: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        rows = distances.sort(*by, REPLICATE, "distance_km", nulls_last=True)
        statistics = [_of_group(rows.clear(), params).clear()]
        for grouping in params.groupings:
            columns, label = grouping.columns, pl.lit(grouping.label).alias(GROUPING.name)
            for group in rows.partition_by(columns, maintain_order=True) if columns else [rows]:
                values = (pl.lit(group[name][0], dtype=group.schema[name]).alias(name) for name in columns)
                statistics.append(_of_group(group, params, in_time=in_time).select(label, *values, pl.all()))
            if columns:
                groups = frames["groups"].select(columns).unique()
                empty_groups = groups.join(rows, on=columns, how="anti", nulls_equal=True)
                statistics.append(
                    empty_groups.select(label, *columns).join(_of_group(rows.clear(), params), how="cross")
                )
        return pl.concat(statistics[1:] or statistics, how="diagonal")

    groups = {"groups": statement("geocoding/groups", by)} if by else {}
    return After(ERRORS.name, None, statement("geocoding/errors", by), {}, groups, finish)


def _of_group(rows: pl.DataFrame, params: GeocodingParameters, *, in_time: bool = False) -> pl.DataFrame:
    distances = rows["distance_km"].to_numpy()
    lower, upper, quality = _limits(rows, params, in_time=in_time)
    values: dict[str, float | str | None] = {**error_statistics(distances, missing=params.missing_errors)}
    values |= {"mean_km_lower": lower, "mean_km_upper": upper, INTERVAL_QUALITY: quality}
    types = {column.name: polars_types(column.type)[0] for column in ERRORS.columns}
    frame = pl.DataFrame({name: [values[name]] for name in types}, schema=types)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _limits(rows: pl.DataFrame, params: GeocodingParameters, *, in_time: bool) -> tuple[float, float, Quality | None]:
    """Limits of the mean on the log scale, from the sums of replicates, and how far to trust them."""
    located = rows.drop_nulls("distance_km")
    if params.uncertainty == "none" or params.missing_errors != "exclude" or located[REPLICATE].n_unique() < 2:  # noqa: PLR2004
        return np.nan, np.nan, None
    _, replicate = np.unique(located[REPLICATE].to_numpy(), return_inverse=True)
    total = np.bincount(replicate, located["distance_km"].to_numpy())
    number = np.bincount(replicate)
    means = leave_one_out(total) / leave_one_out(number)
    shifts = means - means.mean(axis=0)
    spread = spread_of_shifts(shifts, effective_number(number), in_time=in_time)
    quantile = t_quantile(params.confidence, spread.degrees)
    limits = log_interval(np.asarray(total.sum() / number.sum()), np.sqrt(spread.variance), quantile)
    if params.resampling is not None:
        resampled = ratio_limits(total[:, None], number[:, None], params.confidence, params.resampling)
        limits = otherwise((resampled[0][0], resampled[1][0]), limits)
    if np.isnan(limits[0]):
        return float(limits[0]), float(limits[1]), None
    of_time: Quality = "correlated_days" if in_time and may_neighbours_be_alike(shifts[:, None]) else "good"
    return float(limits[0]), float(limits[1]), worst([quality_of_sizes(number), of_time])


def outcomes(by: Sequence[str], lowest_score: float) -> After:
    """Every gold mention at the smallest tolerance, with all grouping columns.

    Args:
        by: The grouping columns.
        lowest_score: Minus the largest distance that is within that tolerance.
    """

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = mentions.rename({f"gold_{name}": name for name in ("start", "end", "text")})
        names = [column.name for column in OUTCOMES.columns if column.name != "mention"]
        place_columns = ["doc_id", "start", "end", "mention_id"]
        rows = mentions.sort(
            *by, *place_columns, *(name for name in names if name not in place_columns), nulls_last=True
        )
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
        number = (number.over(by) if by else number).alias("mention")
        return rows.select(pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name), *by, number, *names)

    return After(OUTCOMES.name, None, statement("geocoding/outcomes", by), {"lowest_score": lowest_score}, {}, finish)


def exchanged() -> CrossCheck:
    """Whether many predictions look as if latitude and longitude were exchanged."""
    frames = {
        "located": statement("geocoding/located_mentions"),
        "far": statement("geocoding/far_mentions", values={"farther_km": FARTHER_KM}),
    }

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        coordinates = (frames["far"][name].to_numpy() for name in _COORDINATES)
        number, n_located = int(likely_swapped(*coordinates).sum()), frames["located"].item() or 0
        if number <= FEWEST_EXCHANGED * n_located:
            return ()
        share = f"{number:,} of {n_located:,} located mentions"
        return (f"{share} would be right with latitude and longitude exchanged: check the columns",)

    return CrossCheck(frames, compare)


# The table geocoding_documents: counts of every unit at one tolerance, and its contributions to the errors.


UNIT, DISTANCE = "unit", "distance_km"


def documents(params: GeocodingParameters, by: Sequence[str], *, unit: str) -> After:
    """One row per group and unit.

    Args:
        params: The parameters, with at least one tolerance.
        by: The grouping columns.
        unit: The column of the aligned mentions whose values are independent.
    """
    tolerance = params.tolerances_km[-1] if params.unit_tolerance_km is None else params.unit_tolerance_km

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = mentions.with_columns(as_key(mentions[UNIT])).sort(*by, UNIT, DISTANCE, nulls_last=True)
        within = pl.col(DISTANCE) <= tolerance if params.tolerance_boundary == "<=" else pl.col(DISTANCE) < tolerance
        counts = (
            pl.lit(tolerance).alias("tolerance_km"),
            pl.len().cast(pl.Int64).alias("n_gold"),
            pl.col(DISTANCE).count().cast(pl.Int64).alias("n_attempted"),
            within.sum().cast(pl.Int64).alias("tp"),
        )
        tables = []
        for grouping in params.groupings:
            keys = list(grouping.columns)
            counted = mentions.group_by(*keys, UNIT, maintain_order=True).agg(counts)
            groups = mentions.partition_by(keys, maintain_order=True) if keys else []
            contributed = pl.concat([_contributions(group, keys, params) for group in groups or [mentions]])
            counted = counted.join(contributed, on=[*keys, UNIT], how="left", nulls_equal=True, maintain_order="left")
            tables.append(counted.with_columns(pl.lit(grouping.label).alias(GROUPING.name)))
        fp, fn = pl.col("n_attempted") - pl.col("tp"), pl.col("n_gold") - pl.col("tp")
        return pl.concat(tables, how="diagonal").with_columns(fp.alias("fp"), fn.alias("fn"))

    return After(DOCUMENTS.name, None, statement("geocoding/documents", by, columns={"unit_key": unit}), {}, {}, finish)


def _contributions(group: pl.DataFrame, keys: Sequence[str], params: GeocodingParameters) -> pl.DataFrame:
    """Contributions of the units of one group, in the order in which they come first."""
    units = group.select(*keys, UNIT).unique(UNIT, keep="first", maintain_order=True)
    numbered = units.select(UNIT, pl.int_range(pl.len(), dtype=pl.Int64).alias("_number"))
    number = group.select(UNIT).join(numbered, on=UNIT, how="left", maintain_order="left")["_number"].to_numpy()
    distances = group[DISTANCE].to_numpy()
    values = error_contributions(number, distances, missing=params.missing_errors)
    return units.with_columns(doubles(name, values[name]) for name in CONTRIBUTED)
