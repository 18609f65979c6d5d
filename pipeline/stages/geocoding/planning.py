"""The plan of geocoding: coordinates checked, places aligned, distances counted and measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import REPLICATE, as_key, doubles, lowest_retrieved
from ...base.dialect import column
from ...base.errors import ConfigError, DataError
from ...base.records import dataclass
from ...base.schemas import GROUPING, Grouping, polars_types, users_name
from ...base.sql_files import statement
from ...metrics.geocoding import ERRORS as CONTRIBUTED
from ...metrics.geocoding import error_contributions, error_statistics, geodesic, haversine, likely_swapped
from ...metrics.uncertainty.clusters import effective_number, may_neighbours_be_alike, spread_of_shifts
from ...metrics.uncertainty.jackknife import leave_one_out, log_interval, t_quantile
from ...metrics.uncertainty.limits import INTERVAL_QUALITY, quality_of_sizes, worst
from ...metrics.uncertainty.replicates import otherwise, ratio_limits
from ...plan import rows
from ...plan.counts import Query, Sweep, Transform
from ...plan.nodes import (
    After,
    CrossCheck,
    Grouped,
    Relation,
    doubtful_groups,
    duplicate_check,
    file_check,
    missing_check,
)
from ...plan.plan import OptionalTable, Plan
from ...plan.roles import Roles, UnmappedId, pooled_systems
from ...sources.bindings import KeyMatch
from ...sources.bins import Grid
from ...sources.source import canonical_relation
from ..mentions import (
    DOCUMENT,
    FILE_ORDER,
    SYSTEM,
    SYSTEMS,
    MentionRows,
    fault_of,
    in_order,
    key_type,
    matched_rows,
    systems_from,
    text_numbers,
)
from .contract import COUNT_NAMES, DOCUMENTS, ERRORS, GOLD, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...metrics.uncertainty.limits import Quality
    from ...plan.nodes import Check, Faults
    from ...sources.inputs import Field
    from ...sources.source import Source
    from .contract import GeocodingParameters


PLACE = ("latitude", "longitude")
SPAN = ("start", "end")
SHOWN = (*SPAN, "text")
SEVERAL = 'Keep one, or choose: candidates = "first" (by rank), or "closest" (the best any choice could be).'
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String()}


def by_matching(
    params: GeocodingParameters, systems: Sequence[str], of_gold: Sequence[str], names: Callable[[str], str] = str
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function of the frames `gold` and `predicted` that matches mentions and measures their distance.

    Predictions with the same span and normalised text are candidates of one mention. Rows are gold mentions and
    predicted mentions without a match, in which the columns `of_gold` are NULL. Except for the order of file they do
    not depend on the order of the rows: of mentions that the rule cannot tell apart, gold ones come by their id and
    place on Earth, predictions by rank and place on Earth. Messages call the columns of predictions by their `names` in
    files.

    Raises:
        DataError: by the function, where mentions have candidates that are not wanted.
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
    """Candidates with the number of their mention, in an order that does not depend on the order of the rows."""
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
    """Every gold mention at the smallest tolerance, minus which is the lowest score, with all grouping columns."""

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
    """One row per group and unit, a value of this column of the aligned mentions, at the tolerance of units."""
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


# What geocoding asks of an engine: coordinates checked, places aligned, distances counted.


MOST_ROWS_FOR_OUTCOMES = 1_000_000
TOPONYMS, PAIRS = "toponyms", "pairs"


def plan(params: GeocodingParameters, sources: Mapping[str, Source]) -> Plan:
    """Align gold and predicted places, and count distances within every tolerance.

    Raises:
        DataError: an input lacks a column that the parameters need.
        ConfigError: the parameters do not fit the inputs.
    """
    predicted, gold = sources["predicted"], sources["gold"]
    _check_inputs(params, predicted, gold)
    by = rows.resolve_by(params.by, (predicted, gold))
    names, tolerances = [grouped.name for grouped in by], grid(params)
    places: AlignedPlaces | MentionRows
    if params.match is None:
        places = AlignedPlaces(params, predicted, gold, by)
        key, unit, independent = "mention_id", "unit", users_name(places.cluster)
    else:
        shown = ("doc_id", "mention_id", *SPAN, "text", *PLACE, "rank")
        places = MentionRows(params, predicted, gold, None, by, params.needs(), shown, located=True)
        key = unit = independent = "doc_id"
        places.check()
    limit = MOST_ROWS_FOR_OUTCOMES, (gold, predicted)
    outcome_table = OptionalTable(OUTCOMES.name, "outcomes", params.outcomes, *limit)
    unit_table = OptionalTable(DOCUMENTS.name, "units", params.units, *limit, told=False)
    after = [errors(params, names, in_time=places.order is not None)]
    if outcome_table.is_possible:
        after.append(outcomes(names, lowest_retrieved(tolerances.thresholds[-1], tolerances.boundary)))
    if unit_table.is_possible:
        after.append(documents(params, names, unit=unit))
    sweep = Sweep("toponyms_by_distance", statement("geocoding/distances", names), "score", tolerances)
    return Plan(
        nodes=(
            *places.relations(),
            *_checks(params, places),
            *_looks(places),
            *_transforms(params, places),
            exchanged(),
            Query("geocoding/located", columns=COUNT_NAMES, sweep=sweep),
            Query("geocoding/totals", columns=COUNT_NAMES),
            *rows.frame_in_time(places.order),
            *after,
        ),
        sources=(predicted, gold),
        key_matches=(KeyMatch(predicted, gold, key),),
        by=by,
        used=("n_predicted",),
        accounting=Query("geocoding/accounting"),
        optional=(outcome_table, unit_table),
        warnings=tuple(doubtful_groups((predicted, gold), by)),
        facts={"aligned_by": params.match or "mention_id", "independent": independent, "units": independent},
    )


def grid(params: GeocodingParameters) -> Grid:
    """The tolerances as thresholds of a score: minus the distance."""
    thresholds = tuple(sorted(0.0 - each for each in params.tolerances_km))
    return Grid(thresholds, ">=" if params.tolerance_boundary == "<=" else ">")


def _check_inputs(params: GeocodingParameters, predicted: Source, gold: Source) -> None:
    if params.distance == "geodesic":
        geodesic(*np.zeros((4, 1)))
    if params.candidates == "first":
        rank = predicted.field("rank")
        if rank is None:
            message = 'candidates = "first" needs the column rank in predicted'
            raise DataError(message, remedy='Map it, or use candidates = "closest".')
        predicted.types("rank", rank)
    if params.match is None:
        rows.check_keys((predicted, gold), "mention_id")
        return
    if params.cluster_order is not None:
        message = "cluster_order does not go with match: documents are the independent units"
        raise ConfigError(message, remedy="Leave cluster_order out.")
    if params.cluster not in {None, "doc_id"}:
        message = f"cluster: {params.cluster!r} does not go with match: documents are the independent units"
        raise ConfigError(message, remedy="Leave cluster out.")
    if params.candidates != "error" and not all(source.has(name) for source in (predicted, gold) for name in SPAN):
        message = f'candidates = "{params.candidates}" with match needs start and end: they tell mentions apart'
        raise DataError(message, remedy="Map them in gold and in predicted.")


def _checks(params: GeocodingParameters, places: AlignedPlaces | MentionRows) -> Iterator[Check]:
    predicted, gold = places.predicted, places.gold
    for source in (predicted, gold):
        yield from _coordinate_checks(source, rows.fields_of(source, places.taken(source), places.by))
    yield from (missing_check(gold, name) for name in PLACE)
    if params.candidates == "first":
        yield missing_check(predicted, "rank")
    yield from places.checks()
    has_spans = all(predicted.has(name) for name in SPAN)
    if isinstance(places, MentionRows) and params.candidates == "error" and has_spans:
        keys = dict.fromkeys(("doc_id", *SPAN, *params.needs(), *places.systems))
        yield duplicate_check(predicted, tuple(keys), remedy=SEVERAL, of_systems=True)


def _looks(places: AlignedPlaces | MentionRows) -> Iterator[CrossCheck | Roles | UnmappedId]:
    """Looks for mentions that are counted twice, together, or as independent ones."""
    yield pooled_systems(places.predicted, places.by)
    if isinstance(places, MentionRows):
        yield from places.cross_checks()
        yield from places.repeats(places.gold)
    elif places.params.uncertainty != "none" and places.params.first_cluster is None and not places.gold.has("doc_id"):
        yield UnmappedId(places.gold, places.by, "doc_id", (), "which count as independent")


def _transforms(params: GeocodingParameters, places: AlignedPlaces | MentionRows) -> Iterator[Transform]:
    predicted, number = places.predicted, places.predicted.rows + places.gold.rows
    if isinstance(places, MentionRows):
        frames = {"gold": places.rows_of_gold(), "predicted": places.rows_of_predicted()}
        match = by_matching(params, places.systems, places.of_gold, predicted.source_name)
        yield Transform(TOPONYMS, frames, ("doc_id",), match, number)
    elif params.distance == "geodesic":
        pairs = {PAIRS: places.pairs()}
        yield Transform(TOPONYMS, pairs, ("mention_id",), of_pairs(params, places.systems), number)


# Checks of coordinates that name the file and the row.


def _coordinate_checks(source: Source, read: Mapping[str, Field]) -> Iterator[Check]:
    """Coordinates that are infinite or off the Earth, and places of which only one is known, among the columns read."""
    for name in PLACE:
        # elsewhere an infinite value is NULL, as an unknown one is; the columns are those that are read otherwise, too,
        # because files are grouped by what is read of them
        with_state = canonical_relation(source, read, score=name, located=True)
        check = _check("infinite_coordinate", source, {"coordinate": name}, {"input_read": with_state})
        yield replace(check, before=missing_check(source, name).query)
    yield _check("latitude", source, {})
    yield _check("longitude", source, {})
    for missing, other in (PLACE, PLACE[::-1]):
        yield _check("half_a_place", source, {"coordinate": missing, "other": other})


def _check(
    name: str, source: Source, columns: Mapping[str, str], relations: Mapping[str, exp.Query] | None = None
) -> Check:
    """A check of sql/geocoding/checks, whose message names the first file and row itself."""

    def words(faults: Faults) -> dict[str, object]:
        fault = faults[0]
        remedy = "Correct these rows, or leave them out with where."
        if source.name != GOLD.name:
            remedy = "Correct these rows, leave them out with where, or make both NULL: not located."
        if fault["n_exchangeable"] == fault["n_rows"]:
            both = " and ".join(repr(source.source_name(coordinate)) for coordinate in PLACE)
            remedy = f"{both} are most likely exchanged: map them with columns = {{ latitude = …, … }}."
        place, row = str(fault["source_file"]), fault["first_row"]
        if source.without_places is None and isinstance(row, int):
            place = f"{place}, first at row {row + 1:,}"
        return {"place": place, "remedy": remedy}

    check = file_check(f"geocoding/checks/{name}", source, columns=columns, relations=relations, words=words)
    return replace(check, problem=None)


# Gold and predicted places aligned by the id of the mention, in SQL.


GOLD_PLACES = "gold_places"
CANDIDATES = "candidates"
KEY = "mention_id"
SHOWN_ALIGNED = {
    "doc_id": "VARCHAR",
    "start": "BIGINT",
    "end": "BIGINT",
    "text": "VARCHAR",
}  # types where gold lacks them


@dataclass(frozen=True)
class AlignedPlaces:
    """Places of the same mention, side by side."""

    params: GeocodingParameters
    predicted: Source
    gold: Source
    by: tuple[Grouped, ...]

    @property
    def chosen(self) -> bool:
        """Whether the distance is computed and one candidate chosen in SQL; on the ellipsoid they are afterwards."""
        return self.params.distance == "haversine"

    @property
    def systems(self) -> tuple[str, ...]:
        """Grouping columns of the predictions."""
        return tuple(grouped.name for grouped in self.by if grouped.source == "predicted")

    @property
    def cluster(self) -> str:
        """The column of gold whose values are independent."""
        return self.params.cluster_column or ("doc_id" if self.gold.has("doc_id") else KEY)

    @cached_property
    def order(self) -> str | None:
        """The column of gold that orders the clusters in time, as it is read; None: their order means nothing."""
        if self.params.first_cluster is None or not self.params.is_replicated:
            return None
        return rows.order_of_clusters(self.gold, self.params.first_cluster, self.params.cluster_order)

    def taken(self, source: Source) -> tuple[str, ...]:
        """Columns that are read of gold or of predicted places."""
        if source is self.predicted:
            return (KEY, *PLACE, *(["rank"] if source.can_show("rank") else []))
        shown = (name for name in SHOWN_ALIGNED if self.gold.can_show(name))
        return tuple(dict.fromkeys((KEY, *PLACE, *shown, self.cluster, *([] if self.order is None else [self.order]))))

    def relations(self) -> Iterator[Relation]:
        """Places as they are read, gold places with their replicate, candidates, and pairs."""
        derived: dict[str, exp.Expr] = {"fault": fault_of((KEY,), has_score=False)}
        if not self.predicted.can_show("rank"):
            derived["rank"] = exp.cast(exp.null(), "DOUBLE")
        yield rows.read(self.predicted, self.taken(self.predicted), self.by, derived, located=True)
        of_gold = self.taken(self.gold)
        not_shown = {name: exp.cast(exp.null(), kind) for name, kind in SHOWN_ALIGNED.items() if name not in of_gold}
        yield rows.read(self.gold, of_gold, self.by, not_shown, located=True)
        yield from self.graph.relations(GOLD_PLACES, SYSTEMS, CANDIDATES, *([TOPONYMS] if self.chosen else []))

    @cached_property
    def graph(self) -> rows.Graph:
        """The relations of sql/geocoding/, where there is a choice."""
        units = rows.Units(
            GOLD_PLACES,
            KEY,
            fields=tuple(dict.fromkeys((*PLACE, *SHOWN_ALIGNED, *([] if self.cluster == KEY else [self.cluster])))),
            cluster=self.cluster,
            order=self.order,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )
        made: dict[str, rows.From | Sequence[Relation]] = {
            GOLD_PLACES: rows.units_relations(self.predicted, units, self.gold, self.by),
            SYSTEMS: systems_from(self.systems),
            CANDIDATES: rows.From(CANDIDATES if self.chosen else "unmeasured_candidates"),
        }
        if self.chosen and self.params.candidates != "error":
            preference = {"preference": "rank" if self.params.candidates == "first" else "distance_km"}
            made["every_candidate"] = made[CANDIDATES]
            made[CANDIDATES] = rows.From("chosen_candidates", {CANDIDATES: "every_candidate"}, preference)
        made[TOPONYMS] = self._side_by_side
        return rows.Graph("geocoding", self.by, made, segments={"systems": self.systems})

    @property
    def _side_by_side(self) -> rows.From:
        in_gold, in_predicted = (key_type(source, KEY) for source in (self.gold, self.predicted))
        as_in_gold = KEY if in_gold == in_predicted else exp.cast(column(KEY, "c"), in_gold, dialect="duckdb")
        return rows.From(TOPONYMS, columns={"unaligned_id": as_in_gold, "unit_key": self.cluster})

    def pairs(self) -> exp.Query:
        """Every gold place, once for each system, with its candidates, and candidates of mentions that gold lacks."""
        return self.graph.query(self._side_by_side)

    def checks(self) -> Iterator[Check]:
        """Gold mentions that repeat or whose cluster is missing, and mentions with several predictions."""
        yield missing_check(self.gold, KEY)
        if self.cluster != KEY:
            yield missing_check(self.gold, self.cluster)
        if self.order not in {None, self.cluster}:
            yield missing_check(self.gold, str(self.order))
        yield duplicate_check(self.gold, (KEY,), remedy="Keep one row per gold mention.")
        if self.params.candidates == "error":
            yield duplicate_check(self.predicted, (KEY, *self.systems), remedy=SEVERAL, of_systems=True)
