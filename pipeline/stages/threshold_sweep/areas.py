"""The table threshold_sweep_areas: areas, likelihoods, their standard errors and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.curves.influence import ClassMoments, variance_of_means
from pipeline.metrics.curves.pr_auc import Retrieved, true_point_areas, true_point_clusters
from pipeline.metrics.uncertainty.jackknife import logit_interval, t_quantile
from pipeline.stages.threshold_sweep.contract import COUNT_NAMES
from pipeline.stages.threshold_sweep.uncertainty import group_counts, kind_of_counts, swept_groups
from pipeline.tables.sweep import add_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters
    from pipeline.stages.threshold_sweep.uncertainty import GroupCounts, SweptGroups

TWO = 2  # a spread needs two
SIDES = ("positive", "negative")
OWN_ROWS = ("_positives", "_negatives")  # rows with a weight above 0
OF_PROBABILITIES = ("log_likelihood", "log_likelihood_se", "brier")
SCORED = "_scored"  # rows with a valid score and a weight above 0
AREAS = ("average_precision", "pr_auc", "roc_auc")
TRUE_POINTS = ("pr_auc", "pr_auc_se_true_points", "pr_auc_se", "pr_auc_degrees")
ROUNDING = 1e-12  # areas that differ less from 0 or 1 are 0 or 1
LOSSES = ("n", "n_outside", "weights", "squares", "first", "weighted", "second", "squared_errors")


def areas_table(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]
) -> pl.DataFrame:
    """One row per group."""
    kind = "n_weighted" if kind_of_counts(counts["counts"]) == "weight" else "n"
    frame = add_up(counts["counts"], keys, COUNT_NAMES[:4]).with_columns(
        (pl.col("n_positive") + pl.col("n_negative")).alias("n"),
        *(pl.col(f"{kind}_{side}").alias(name) for side, name in zip(SIDES, OWN_ROWS, strict=True)),
    )
    for part in (counts["areas"], _true_points(params, counts["counts"], keys), _losses(params, counts, keys)):
        frame = frame.join(part, on=list(keys), how="left", nulls_equal=True)
    missed = pl.sum_horizontal(OWN_ROWS) > pl.col(SCORED).fill_null(0)  # their score says no probability
    frame = frame.with_columns(pl.when(~missed).then(pl.col(name)).alias(name) for name in OF_PROBABILITIES)
    if params.cluster is not None and params.uncertainty == "none":  # those of rows would pass for those of clusters
        names = [f"{name}_se" for name in (*AREAS, "log_likelihood")]
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in names)
    frame = frame.with_columns(*_limits(frame, params))
    undefined = (
        pl.when(pl.col("average_precision").is_null())
        .then(pl.lit("no_positive"))
        .when(pl.col("roc_auc").is_null())
        .then(pl.lit("no_negative"))
        .when(missed)
        .then(pl.lit("no_score"))
        .when(pl.col("log_likelihood").is_null())
        .then(pl.lit("no_probability"))
    )
    frame = frame.with_columns(undefined.alias("undefined"), pl.lit(params.method).alias("method"))
    return frame.drop("n_negative", SCORED, *COUNT_NAMES[2:4], *OWN_ROWS, *(f"{name}_degrees" for name in AREAS))


def _true_points(params: ThresholdSweepParameters, counts: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """`pr_auc` of every group at the thresholds of the stage; with `distinct`, so that every score is parted."""
    kind = kind_of_counts(counts)
    parts = [_of_groups(params, part, kind) for part in swept_groups(counts, keys, params.threshold_values)]
    if not parts:  # no group has a row, and the total is not asked for
        return counts.select(keys).with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in TRUE_POINTS)
    frame = pl.concat([part.groups.with_columns(*series) for part, series in parts])
    if not _clustered(params):
        return frame
    groups = group_counts(counts, keys, params.threshold_values, inclusive=True)
    rows = [(*group.key, *_of_replicates(group, kind)) for group in groups]
    names = ("pr_auc_se", "pr_auc_degrees")
    schema = {name: counts.schema[name] for name in keys} | dict.fromkeys(names, pl.Float64())
    found = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(names).fill_nan(None))
    return frame.drop(names).join(found, on=list(keys), how="left", nulls_equal=True)


def _clustered(params: ThresholdSweepParameters) -> bool:
    return params.cluster is not None and params.uncertainty == "jackknife"


def _of_groups(params: ThresholdSweepParameters, part: SweptGroups, kind: str) -> tuple[SweptGroups, list[pl.Series]]:
    def retrieved(kind: str) -> Retrieved:
        return Retrieved(
            *(part.swept[f"{kind}_{side}"] for side in SIDES), *(part.totals[f"{kind}_{side}"] for side in SIDES)
        )

    rows = retrieved("n_weighted" if kind == "weight" else "n")
    kinds = (retrieved("weight"), retrieved("squares")) if kind == "weight" else (rows, rows)
    found = true_point_areas(*kinds, rows, random_sizes=params.class_sizes == "random")
    columns = {
        "pr_auc": found.auc,
        "pr_auc_se_true_points": found.se_true_points,
        "pr_auc_se": found.se,
        "pr_auc_degrees": found.degrees,
    }
    return part, [pl.Series(name, values, dtype=pl.Float64).fill_nan(None) for name, values in columns.items()]


def _of_replicates(group: GroupCounts, kind: str) -> tuple[float, float]:
    """Standard error and degrees of freedom where replicates are independent."""
    swept = (group.swept[f"{kind}_{side}"][:, ::-1] for side in SIDES)
    return true_point_clusters(Retrieved(*swept, *(group.totals[f"{kind}_{side}"] for side in SIDES)))


def _losses(params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Mean log-likelihood, its standard error, the Brier score, and their rows; NULL where one is no probability."""
    table = counts["likelihood"]
    sums = add_up(table, keys, LOSSES).with_columns(pl.col(LOSSES).cast(pl.Float64))  # decimals are added up exactly
    n, weights, squares, first, weighted, second = (
        sums[name].to_numpy() for name in ("n", "weights", "squares", "first", "weighted", "second")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, brier = first / weights, sums["squared_errors"].to_numpy() / weights
    variance = ClassMoments(n, weights, squares, first, weighted, second).variance
    if _clustered(params):
        variance = _of_clusters(table.with_columns(pl.col(LOSSES).cast(pl.Float64)), sums.select(keys), keys)
    known = sums["n_outside"].to_numpy() == 0
    columns = {"log_likelihood": mean, "log_likelihood_se": np.sqrt(variance), "brier": brier}
    series = (pl.Series(name, np.where(known, values, np.nan)).fill_nan(None) for name, values in columns.items())
    return sums.select(keys).with_columns(*series, pl.Series(SCORED, n, dtype=pl.Float64))


def _of_clusters(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> NDArray[np.float64]:
    """Variance of the mean log-likelihood of every group, in the order of the groups."""
    parts = {part.select(keys).row(0): part for part in table.partition_by(list(keys))}
    own = (parts[key] for key in groups.iter_rows())
    found = [variance_of_means(part["first"].to_numpy(), part["weights"].to_numpy()) for part in own]
    return np.asarray(found, dtype=np.float64)


def _limits(frame: pl.DataFrame, params: ThresholdSweepParameters) -> list[pl.Series]:
    """Limits on the logit scale, with Student's t, and why one is missing."""
    made, missing = [], np.zeros(frame.height, dtype=bool)
    for name in AREAS:
        area, se, degrees = (
            frame[each].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for each in (name, f"{name}_se", f"{name}_degrees")
        )
        inside = np.where(np.minimum(area, 1 - area) > ROUNDING, area, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = logit_interval(inside, se, t_quantile(params.confidence, degrees))
        for side, values in zip(("lower", "upper"), limits, strict=True):
            kept = np.full(frame.height, np.nan) if params.uncertainty == "none" else values
            made.append(pl.Series(f"{name}_{side}", kept).fill_nan(None))
            missing |= np.isnan(kept)
    words = [str(why) if gone else None for why, gone in zip(_reasons(frame, params), missing, strict=True)]
    return [*made, pl.Series("undefined_interval", words, dtype=pl.String)]


def _reasons(frame: pl.DataFrame, params: ThresholdSweepParameters) -> NDArray[np.str_]:
    """Why a limit of an area would be missing."""
    if params.uncertainty == "none":
        return np.full(frame.height, "none")
    positives, negatives = (frame[name].to_numpy() for name in OWN_ROWS)
    known = frame.select(pl.all_horizontal(pl.col(f"{name}_se").is_not_null() for name in AREAS)).to_series().to_numpy()
    few = np.where(positives < TWO, "few_positives", np.where(negatives < TWO, "few_negatives", "one_replicate"))
    return np.where((positives >= TWO) & (negatives >= TWO) & known, "at_limit", few)
