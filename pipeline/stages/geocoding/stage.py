"""The stage geocoding: from counts to scores, and what people look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...base.columns import IN_TIME, THRESHOLD, divide, lowest_retrieved
from ...base.schemas import GROUPING
from ...base.visible_text import listed
from ...metrics.geocoding import ERRORS as CONTRIBUTED
from ...metrics.geocoding import errors_without
from ...metrics.uncertainty.limits import (
    INTERVAL_QUALITY,
    clusters_of,
    intervals_of,
    marked_in_time,
    warnings_of_marks,
    with_limits,
    with_numbers,
)
from ...metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from ...metrics.uncertainty.replicates import Cube
from .. import sections
from ..figures import (
    Axis,
    Figure,
    Rule,
    Series,
    Wanted,
    caption,
    drawn,
    intervals,
    key_numbers_of,
    keys_of,
    ratio_series,
    ratios_of_groups,
    shares,
    shown,
)
from ..mentions import rule_in_words
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from ..stage import (
    OF_COUNTS,
    WITHOUT,
    Stage,
    Summary,
    UnitTable,
    by_influence,
    groups_without,
    integer,
    interval_cells,
    number,
    summary_of,
    untold,
    with_influence,
)
from ..stated import counted, limited_of, measures_of, outcomes_of, sample_sizes_of, with_ratios
from .contract import (
    COUNTS,
    DOCUMENTS,
    ERRORS,
    GOLD,
    LOCATED,
    OUTCOMES,
    PREDICTED,
    SCORES,
    STATED,
    TABLES,
    GeocodingParameters,
)
from .planning import grid, plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...base.columns import Boundary
    from ...metrics.uncertainty.limits import Interval
    from ...metrics.uncertainty.replicates import GroupCounts
    from ..figures import KeyNumber
    from ..sections import Asked, Measured


SIZES = ("n_gold",)
TOLERANCE = "tolerance_km"
USUAL_KM = 161.0  # a hundred miles


def derive(params: GeocodingParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The scores; errors and single mentions are added by follow-ups."""
    cube = Cube.of(counts["counts"], None, grid(params).thresholds, in_time=IN_TIME in counts)
    limited, wanted = limited_of(STATED), params.is_replicated
    clusters = clusters_of(cube.counts, cube.keys, SIZES)

    def intervals(_rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        replicates = _with_gold(group)
        limits = intervals_of_clusters(
            replicates, params.confidence, names=list(limited), ratios=limited, resampling=params.resampling
        )
        return intervals_of(limits, len(replicates.tp))

    scores = with_limits(
        with_ratios(counted(STATED, cube), STATED).with_columns(pl.col(THRESHOLD).abs().alias(TOLERANCE)),
        cube,
        list(limited),
        intervals,
        wanted=wanted,
        clusters=marked_in_time(clusters, cube, ["n_located"], _with_gold),
        events=("tp", "fp", "fn"),
        resamples=params.drawn_resamples,
    )
    scores = with_numbers(scores, clusters, cube.keys, wanted=wanted)
    return {SCORES.name: scores.select(*cube.keys, *(column.name for column in SCORES.columns))}


def _with_gold(group: GroupCounts) -> Confusion:
    """Counts of the replicates that have gold mentions, at every tolerance."""
    return outcomes_of(STATED, group, group.totals("n_gold") > 0)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    errors = tables[ERRORS.name]
    conditions = {
        "no gold mention": (pl.col("n_gold") == 0).all(),  # one group is that of spurious predictions, if any
        "no located gold mention": (pl.col("n_gold") > 0) & (pl.col("n_located") == 0),
    }
    return (*groups_without(errors, conditions), *warnings_of_marks(tables))


def at_usual_tolerance(scores: pl.DataFrame) -> pl.DataFrame:
    """The rows within 161 km, at which geocoders are mostly compared; without it, within the smallest tolerance."""
    within = pl.lit(USUAL_KM) if (scores[TOLERANCE] == USUAL_KM).any() else pl.col(TOLERANCE).min()
    return scores.filter(pl.col(TOLERANCE) == within)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """Every group at the usual tolerance, with its errors, and the accuracy over the tolerances of the first."""
    scores, errors = tables[SCORES.name], tables[ERRORS.name]
    keys = keys_of(errors)
    shown = at_usual_tolerance(scores).join(errors, on=keys, how="left", nulls_equal=True, suffix="_of_errors")
    shown = shown.sort(pl.col(GROUPING.name) != "all", maintain_order=True)
    if shown.is_empty():
        return Summary(headers=(), rows=(), sentence="There is nothing to judge.")
    curve = scores.join(shown.head(1).select(keys), on=keys, how="semi", nulls_equal=True).sort(TOLERANCE)
    values = tuple(curve["precision"].to_list()) if curve.height > 2 else None  # noqa: PLR2004 - a line needs points
    return summary_of(
        shown,
        {
            "gold": lambda row: integer(row["n_gold"]),
            "attempted": lambda row: integer(row["n_attempted"]),
            **interval_cells({"precision": "precision", "recall": "recall", "F1": "f1"}),
            "mean km": lambda row: number(row["mean_km"]),
            "median km": lambda row: number(row["median_km"]),
        },
        lambda row: (
            f"{row['tp']:,} of {row['n_attempted']:,} located mentions lie within {row[TOLERANCE]:g} km of the right "
            f"place; gold has {row['n_gold']:,} mentions."
        ),
        (values, f"accuracy within {number(curve[TOLERANCE].min())} to {number(curve[TOLERANCE].max())} km"),
    )


# What there is to look at of geocoding: accuracy over the tolerance, and the distribution of the errors.


DISTANCE = "distance_km"
CUSTOMARY = Rule("161 km (100 miles)", 161.0)
FARTHEST = 20_100.0  # km, beyond half the circumference of the Earth
GRID = (*(10 ** (tenth / 10) for tenth in range(-10, 43)), FARTHEST)  # km, ten distances for every power of ten
OF_LOCATED, OF_GOLD = "of_located", "of_gold"
QUALITY_OF_ERRORS = "quality_of_errors"
OF_ERRORS = (
    Wanted("median_km", "Median error", "km, of the located mentions", format="number"),
    Wanted("mean_km", "Mean error", "km, of the located mentions", format="number", quality=QUALITY_OF_ERRORS),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Precision and recall over the tolerance, and the share of mentions within every distance."""
    yield _accuracy(tables[SCORES.name], confidence)
    usual = at_usual_tolerance(tables[SCORES.name])
    if not usual.is_empty():
        yield ratios_of_groups(usual, "n_gold", confidence, f"within {usual[TOLERANCE][0]:g} km")
    outcomes = tables.get(OUTCOMES.name)
    if outcomes is not None and not outcomes.is_empty():
        yield _errors(outcomes)


def _accuracy(scores: pl.DataFrame, confidence: float) -> Figure:
    positive = scores.filter(pl.col(TOLERANCE) > 0).sort([*keys_of(scores), TOLERANCE])
    series = tuple(line for line in ratio_series(positive) if line.column != "f1")
    words = (
        "A prediction is right within the tolerance: precision is the share of located mentions, recall of all gold "
        "mentions."
    )
    without = "A tolerance of 0 has no place on the logarithmic axis." if positive.height < scores.height else ""
    return Figure(
        name="accuracy",
        title="Precision and recall by tolerance",
        caption=caption(words, intervals(series, confidence), without),
        frame=drawn(positive, TOLERANCE, series),
        x=Axis(TOLERANCE, "Tolerance in km", logarithmic=True),
        y=shares("Precision (accuracy), recall"),
        series=series,
        rules=(CUSTOMARY,),
    )


def _errors(outcomes: pl.DataFrame) -> Figure:
    series = (
        Series(OF_GOLD, "Of all gold mentions", "recall"),
        Series(OF_LOCATED, "Of the located mentions", "precision"),
    )
    return Figure(
        name="errors",
        title="Share of mentions within every distance",
        caption=(
            "Share of the mentions whose predicted place lies within the distance of the gold place; where the line of "
            "the located mentions passes 50% is the median error. Mentions that are not located never are within it."
        ),
        frame=drawn(_within(outcomes), DISTANCE, series),
        x=Axis(DISTANCE, "Distance in km", logarithmic=True),
        y=shares("Share of mentions"),
        series=series,
        rules=(CUSTOMARY,),
    )


def _within(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Shares of the mentions of every group within the distances of the grid, from the lowest that one reaches."""
    keys = keys_of(outcomes)
    sizes = outcomes.group_by(keys).agg(pl.len().alias("n_gold"), pl.col(DISTANCE).count().alias("n_located"))
    grid = pl.Series(DISTANCE, GRID, dtype=pl.Float64)
    located = outcomes.filter(pl.col(DISTANCE).is_not_null())
    cell = grid.search_sorted(located[DISTANCE], side="left").clip(0, len(grid) - 1).alias("cell")
    counted = located.select(*keys, cell).group_by(*keys, "cell").agg(pl.len().alias("n"))
    cells = grid.to_frame().with_row_index("cell").join(sizes, how="cross")
    cells = cells.join(counted, on=[*keys, "cell"], how="left", nulls_equal=True).sort([*keys, "cell"])
    within = pl.col("n").fill_null(0).cum_sum().over(keys)
    return cells.with_columns(within.alias("n")).select(
        *keys,
        DISTANCE,
        divide(pl.col("n"), pl.col("n_located")).alias(OF_LOCATED),
        divide(pl.col("n"), pl.col("n_gold")).alias(OF_GOLD),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision and recall of every group at the usual tolerance, and its median and mean error."""
    scores, errors = tables[SCORES.name], tables[ERRORS.name]
    keys = keys_of(errors)
    usual = at_usual_tolerance(scores)
    if usual.is_empty():
        return ()
    within = f"within {usual[TOLERANCE][0]:g} km"
    wanted = (
        Wanted("precision", "Precision", f"located mentions {within}", "precision"),
        Wanted("recall", "Recall", f"gold mentions {within}", "recall"),
        *OF_ERRORS,
    )
    quality = pl.col(INTERVAL_QUALITY).alias(QUALITY_OF_ERRORS)
    beside = errors.select(*keys, "median_km", "mean_km", "mean_km_lower", "mean_km_upper", quality)
    return key_numbers_of(usual.join(beside, on=keys, how="left", nulls_equal=True, maintain_order="left"), wanted)


# What a methods section says of geocoding.


NOUNS = {"predicted": "predicted places", "gold": "gold places"}
DISTANCES = {
    "haversine": "along great circles on a sphere of 6371.0088 km",
    "geodesic": "along geodesics of the WGS84 ellipsoid (Karney 2013)",
}
CANDIDATES = {
    "first": "Of several candidates of a mention the first counts.",
    "closest": "Of several candidates of a mention the one nearest to the gold place counts, an upper limit.",
    "error": "",
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how predicted places were compared with gold places, and what came out."""
    parameters = measured.parameters
    aligned = "by their ids" if parameters["match"] is None else f"as {rule_in_words(parameters)}"
    yield (
        f"{measured.used('predicted'):,} predicted places were compared with {measured.used('gold'):,} gold places; "
        f"mentions were aligned {aligned}, and distances measured {DISTANCES[parameters['distance']]}."
    )
    yield sections.left_out(measured, NOUNS)
    yield CANDIDATES[parameters["candidates"]]
    within = "at most" if parameters["tolerance_boundary"] == "<=" else "less than"
    tolerances = listed((f"{value:g}" for value in parameters["tolerances_km"]), "or")
    yield (
        f"A place is right if it lies {within} {tolerances} km from the gold place; precision is the share of right "
        "ones among the located mentions, recall among all gold mentions."
    )
    units = sections.units_in_words(measured, {"doc_id": "documents", "rows": "mentions"})
    yield sections.intervals(
        measured,
        units,
        "of ratios are those of proportions whose counts are divided by the design effect, by the jackknife over "
        f"{units}; those of the mean error are symmetric on the log scale",
    )
    yield from _results(measured)


def _results(measured: Measured) -> Iterator[str]:
    scores = at_usual_tolerance(measured.tables[SCORES.name])
    within = f"Within {scores[TOLERANCE][0]:g} km" if not scores.is_empty() else ""
    yield from sections.results(scores, sections.RATIO_NAMES, measured.confidence, within)
    shown, _ = sections.headline_rows(measured.tables[ERRORS.name])
    for row in shown:
        if row["mean_km"] is not None:
            group = sections.named_group(row)
            limits = (
                ""
                if row["mean_km_lower"] is None
                else f" ({measured.confidence} CI {row['mean_km_lower']:.1f}\u2013{row['mean_km_upper']:.1f} km)"
            )
            yield (
                f"The mean error{f' of {group}' if group else ''} was {row['mean_km']:.1f} km{limits}, the median "
                f"{row['median_km']:.1f} km."
            )


SAMPLE_SIZES = sample_sizes_of(
    STATED,
    {"doc_id": "documents", "mention_id": "gold mentions"},
    SCORES.name,
    further=(LOCATED,),
    sized_by="gold mentions",
    scales_of_others={"mean_km": "log"},
)


# Where the numbers of geocoding come from: places that are far off, mentions that are not located, documents.


_END_TO_END = "_end_to_end"
_ERRORS = ("mean_km", "median_km", "log_error_auc")
_INPUTS = {name: {"mention_id": "mention_id"} for name in ("gold", "predicted")}


def _values(asked: Asked) -> dict[str, float]:
    tolerance = 0.0 if asked.threshold is None else asked.threshold
    boundary: Boundary = ">=" if asked.params.tolerance_boundary == "<=" else ">"
    return {"tolerance_km": tolerance, "lowest_score": lowest_retrieved(0.0 - tolerance, boundary)}


def _mentions(mentions: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    """Mentions without the columns that the inputs lack."""
    empty = [name for name in mentions.columns if mentions[name].null_count() == mentions.height]
    removable = {"mention_id", "doc_id", "gold_start", "gold_end", "gold_text"}
    return mentions.drop(name for name in empty if name in removable and not mentions.is_empty())


def _documents(documents: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Documents with what all other mentions have together: a ratio of counts, or a number of their errors."""
    if asked.measure in _ERRORS:
        found = _with_errors(frames["errors"], asked)
    else:
        found = with_influence(documents, asked.measure.removesuffix(_END_TO_END))
    return found.filter(pl.col("doc_id").is_not_null())


def _with_errors(errors: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Documents with their mentions and the mean, median or area of the errors of all others."""
    grouped = errors.group_by("doc_id", maintain_order=True)
    located = pl.col("distance_km").count().cast(pl.Int64).alias("n_located")
    documents = grouped.agg(pl.len().cast(pl.Int64).alias("n_gold"), located)
    unit = errors["doc_id"].rle_id().cast(pl.Int64).to_numpy()
    distances = errors["distance_km"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    without = errors_without(unit, distances, asked.measure, missing=asked.params.missing_errors)
    values = pl.Series(WITHOUT, without, dtype=pl.Float64, nan_to_null=True)
    return by_influence(documents.with_columns(values), asked.row[asked.measure])


def _without_documents(asked: Asked) -> str:
    gold = asked.source("gold")
    if gold is None or not gold.has("doc_id"):
        return "the gold mentions have no doc_id"
    if asked.measure in {f"{name}{_END_TO_END}" for name in OF_COUNTS} and not asked.row["n_spurious"]:
        return ""  # they are the ratios of the gold mentions
    return untold(asked, "documents", (*OF_COUNTS, *_ERRORS))


EVIDENCE = Evidence(
    measures=(*measures_of(STATED, SCORES.name), *(Measure(name, ERRORS.name) for name in _ERRORS)),
    sections=(
        *(
            Section(name, title, words, f"geocoding/explain/{name}", finish=_mentions, inputs=_INPUTS)
            for name, title, words in (
                (
                    "wrong_places",
                    "Places beyond the tolerance",
                    "Gold mentions whose prediction is farther away than {threshold} km, the farthest first.",
                ),
                (
                    "not_located",
                    "Mentions that are not located",
                    "Gold mentions that no prediction locates, in the order of their ids.",
                ),
                (
                    "nearest",
                    "Mentions nearest to the tolerance",
                    "Located gold mentions in the order of the difference between their distance and {threshold} km.",
                ),
            )
        ),
        Section(
            "documents",
            "Documents that carry the scores",
            "Each document with the {measure} that all others have together without it; the largest influence first.",
            "geocoding/explain/documents",
            reads={"errors": "geocoding/explain/errors"},
            finish=_documents,
            ranks=True,
            absent=_without_documents,
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "toponyms"},
    threshold="tolerance_km",
    values=_values,
    parameters={"outcomes": True},
    decides=("tolerance_boundary", "candidates", "distance", "missing_errors", "match"),
)


STAGE = Stage(
    kind="geocoding",
    parameters=GeocodingParameters,
    inputs=(PREDICTED, GOLD),
    tables=TABLES,
    count_columns=COUNTS,
    plan=plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    units=UnitTable(
        DOCUMENTS.name,
        "unit",
        metrics=(*CONTRIBUTED, "pooled_precision", "pooled_recall", "pooled_f1"),
        contributions=CONTRIBUTED,
    ),
    sample_sizes=SAMPLE_SIZES,
)
