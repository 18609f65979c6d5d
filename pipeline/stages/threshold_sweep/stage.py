"""The stage threshold_sweep: what follows from its counts, and the stage put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.curves.operating_points import operating_points
from ...metrics.uncertainty.cube import Cube
from ...metrics.uncertainty.limits import warnings_of_marks, with_numbers
from ...tables.columns import IN_TIME, THRESHOLD, beside, divide, nothing, ratios
from ...tables.schemas import GROUPING, group_text
from ...visible_text import of_every
from ..figures import CHOICE, QUALITY_IN_SAMPLE, SAME_DATA, on_other_data, words_of_choice
from ..stage import (
    Stage,
    Summary,
    UnitTable,
    f1_curve,
    groups_with,
    groups_without,
    integer,
    interval,
    number,
    of_group,
)
from . import figures, planning
from .areas import AREAS, areas_table, bands_table
from .calibration import RELIABILITY_TABLE, calibration_tables, few_outside
from .contract import (
    CHECKED,
    CONFUSION,
    COUNT_NAMES,
    COUNTS,
    CROSSED,
    HEAVIEST,
    LABELS,
    OF_DRAWN,
    PREDICTIONS,
    ThresholdSweepParameters,
    candidates,
    clusters_of_groups,
    f_beta,
    kind_of_counts,
    outcomes,
    with_further,
    with_heaviest,
    with_intervals,
)
from .decisions import (
    COST_PER_ROW,
    Swept,
    at_own_thresholds,
    cost_cell,
    cost_text,
    decision_tables,
    is_about_cost,
    not_allocated,
    with_costs,
)
from .figures import EVIDENCE, SAMPLE_SIZES
from .tables import TABLES, averages_table, further_columns
from .units import COST, UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .few_labels import Estimates


# What follows from the counts of threshold_sweep: curve, areas, operating points, averages, and words.


FEW = 20  # rows of a class, below which areas say little


def derive(params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of threshold_sweep."""
    as_counted, counts = counts, at_own_thresholds(params, counts)
    crossed = [counts[name] for name in CROSSED if name in counts]
    table, in_time = counts["counts"], IN_TIME in counts
    cube = Cube.of_groups(table, params.threshold_values, params.boundary, crossed, in_time=in_time)
    keys = list(cube.keys)
    clusters = clusters_of_groups(params, cube)
    estimates = _estimates(params, counts, keys)
    ratios_of_all = with_further(_curve(cube, estimates), params.metrics)
    curve = with_heaviest(ratios_of_all, counts.get("heaviest"), keys)
    if estimates is None:
        curve = with_intervals(curve, cube, params, clusters)
    else:
        curve = estimates.with_intervals(curve, clusters)
    choices = candidates(curve, cube, params, estimates)
    points = operating_points(curve, keys, params.operating_points, choices, f_beta, outcomes(), params.boundary)
    points = with_numbers(points, clusters, keys)
    points = with_costs(points, cube, params, within=params.cluster is None or cube.within_budget(curve.height))
    points = points if estimates is None else estimates.with_costs(points, curve)
    areas = areas_table(params, counts, keys, clusters, estimates)
    bands = bands_table(params, curve, points, cube, clusters, estimates) if params.bands else None
    working = [*(f"{name}_squares" for name in CONFUSION), *HEAVIEST]
    working += [] if estimates is None else [f"{name}{OF_DRAWN}" for name in CONFUSION]
    shown = curve[[name for name in curve.columns if name not in working]]
    return {
        "threshold_sweep_curve": shown,
        "threshold_sweep_areas": areas,
        "threshold_sweep_operating_points": points[[name for name in points.columns if name not in working]],
        "threshold_sweep_averages": averages_table(params, counts["counts"], shown, areas, keys),
        **calibration_tables(params, counts, clusters),
        **({} if bands is None else {"threshold_sweep_bands": bands}),
        **decision_tables(params, as_counted, Swept(cube, curve, points, clusters)),
    }


def _estimates(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]
) -> Estimates | None:
    """What labels of a sample say of all rows; None where all rows have labels."""
    if params.labels is None:
        return None
    from .few_labels import Estimates  # noqa: PLC0415 - only labels of a sample need it

    return Estimates.of(params, counts, keys)


def _curve(cube: Cube, estimates: Estimates | None = None) -> pl.DataFrame:
    """Counts, weights and ratios at every threshold."""
    totals = cube.totals(COUNT_NAMES).rename({name: f"all_{name}" for name in COUNT_NAMES})
    frame = beside(cube.at_or_above(COUNT_NAMES), totals, cube.keys)
    weighted = kind_of_counts(cube.counts) == "weight"
    squares = (each.cast(pl.Float64) for each in _confusion("squares", "_squares"))
    frame = frame.with_columns(*_confusion("n", ""), *_confusion("weight", "_weight"), *squares)
    counted = _whole(frame[[f"{name}_weight" for name in CONFUSION]]) if weighted else frame[list(CONFUSION)]
    weights = (
        frame[f"{name}_weight"].cast(pl.Float64) if weighted else nothing([f"{name}_weight"], frame.height)[0]
        for name in CONFUSION
    )
    frame, kinds = frame.with_columns(*weights), ["_weight", "_squares"]
    if estimates is not None:
        frame, kinds = estimates.estimated(frame), [*kinds, OF_DRAWN]
        counted = frame[[f"{name}_weight" for name in CONFUSION]]
    of_kinds = (f"{name}{kind}" for kind in kinds for name in CONFUSION)
    return frame[[*cube.keys, THRESHOLD, *CONFUSION, *of_kinds]].hstack(_ratios(counted))


def _confusion(source: str, suffix: str) -> list[pl.Expr]:
    names = ("positive", "negative")
    retrieved = [pl.col(f"{source}_{name}") for name in names]
    missed = [pl.col(f"all_{source}_{name}") - pl.col(f"{source}_{name}") for name in names]
    return [expr.alias(f"{name}{suffix}") for name, expr in zip(CONFUSION, (*retrieved, *missed), strict=True)]


def _whole(decimals: pl.DataFrame) -> pl.DataFrame:
    """The decimals of each row as whole numbers, in the largest power of ten of which all of them are multiples.

    Their ratios are the same, and of weights with few digits they are rounded only once: 0.3 / 0.4 is 0.75.
    """
    numbers = decimals.select(pl.all().to_physical())
    for digits in (8, 4, 2, 1):  # 15 in all, the decimals that there are
        shorter = pl.all_horizontal(pl.all() % 10**digits == 0)
        numbers = numbers.select(
            pl.when(shorter).then(pl.col(name) // 10**digits).otherwise(pl.col(name)).alias(name)
            for name in numbers.columns
        )
    return numbers


def _ratios(counted: pl.DataFrame) -> pl.DataFrame:
    """Ratios of whole numbers of true and false positives and negatives; 0/0 is NULL, and `undefined` says why."""
    tp, fp, fn, tn = (pl.col(name) for name in counted.columns)
    reason = pl.when(tp + fp <= 0).then(pl.lit("no_prediction")).when(tp + fn <= 0).then(pl.lit("no_positive"))
    return counted.select_seq(
        *ratios(tp, fp, fn),
        divide(fp, fp + tn).alias("fpr"),
        reason.when(fp + tn <= 0).then(pl.lit("no_negative")).alias("undefined"),
    )


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    areas = tables["threshold_sweep_areas"]
    undefined = pl.col("undefined")
    conditions = {
        "no row with a true label": undefined == "no_positive",
        "no row with a false label": undefined == "no_negative",
    }
    messages = groups_without(areas, conditions)
    positives, negatives = pl.col("n_positive"), pl.col("n") - pl.col("n_positive")
    few, lopsided = areas.select(
        positives.is_between(1, FEW - 1).sum().alias("few"),
        ((positives >= FEW) & negatives.is_between(1, FEW - 1)).sum().alias("lopsided"),
    ).row(0)
    words = f"{groups_with(few, areas.height, only='there are')} fewer than {FEW} positives: areas are very uncertain"
    lacking = f"{groups_with(lopsided, areas.height, only='there are')} fewer than {FEW} negatives"
    of_negatives = f"{lacking}: ROC AUC is very uncertain"
    # a bin of few rows or clusters is no surprise, and its own mark says so
    of_groups = {name: table for name, table in tables.items() if name != RELIABILITY_TABLE.name}
    outside = few_outside(tables)
    of_few = ([words] if few else []) + ([of_negatives] if lopsided else [])
    return (*messages, *of_few, *outside, *not_allocated(tables), *warnings_of_marks(of_groups))


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The areas and the first operating point of every group, and the curve of F1 of the first group."""
    areas, points, curve = (tables[f"threshold_sweep_{name}"] for name in ("areas", "operating_points", "curve"))
    if areas.is_empty() or points.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any prediction.")
    labels = areas.columns[2 : areas.columns.index("n")]
    keys = [GROUPING.name, *labels]
    first_points = on_other_data(points.filter(pl.col("criterion") == points["criterion"][0]))
    shown = areas.join(first_points, on=keys, how="left", nulls_equal=True, suffix="_of_point")
    if shown.height > 1:
        shown = shown.sort("n", descending=True).sort(pl.col(GROUPING.name) != "all", maintain_order=True)
    is_costly = is_about_cost(first_points)
    rows = tuple(
        (
            group_text(row),
            integer(row["n"]),
            integer(row["n_positive"]),
            interval(row, "average_precision"),
            interval(row, "roc_auc"),
            number(row[THRESHOLD]),
            interval(row, "precision", "interval_quality_of_point"),
            interval(row, "recall", "interval_quality_of_point"),
            *([cost_cell(row, QUALITY_IN_SAMPLE)] if is_costly else []),
        )
        for row in shown.iter_rows(named=True)
    )
    values, title = f1_curve(curve, shown[:1][keys])
    return Summary(
        headers=(*HEADERS, *(["cost per row"] if is_costly else [])),
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(shown.row(0, named=True), _sentence(shown.row(0, named=True))),
        curve=values,
        curve_title=title,
        on_same_data=bool((first_points[CHOICE] == SAME_DATA).any() or is_costly),
    )


HEADERS = ("group", "rows", "positives", "average precision", "ROC AUC", "threshold", "precision", "recall")


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "No threshold has both a precision and a recall."
    costs = f" A row costs {cost_text(row)} on average." if row.get(COST_PER_ROW) is not None else ""
    return (
        f"With scores of {number(row[THRESHOLD])} or more predicted to be true, {of_every(precision)} predicted rows "
        f"are true, and {of_every(recall)} true rows are found{words_of_choice(row)}.{costs}"
    )


# The stage threshold_sweep, put together.


STAGE = Stage(
    kind="threshold_sweep",
    parameters=ThresholdSweepParameters,
    inputs=(PREDICTIONS, LABELS, CHECKED),
    tables=TABLES,
    count_columns=COUNTS,
    plan=planning.plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=figures.sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable(
        UNITS.name,
        "unit",
        metrics=(*AREAS, "pooled_precision", "pooled_recall", "pooled_f1"),
        contributions=(*AREAS, COST.name),
    ),
)
