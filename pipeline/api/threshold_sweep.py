"""`thresher.threshold_sweep`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def threshold_sweep(
    *,
    predictions: InputRows,
    by: Sequence[str] | Sequence[Sequence[str]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = "distinct",
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    method: Literal["exact", "binned"] = "exact",
    width: float = 0.0001,
    class_sizes: Literal["fixed", "random"] = "random",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    averages: Sequence[Literal["micro", "macro", "weighted"]] = (),
    average_over: Sequence[str] = (),
    net_benefit: bool = False,
    threshold_probabilities: Mapping[str, Any] | Sequence[float] | None = None,
    prevalence: float | Sequence[float] = (),
    outcomes: Literal["auto"] | bool = "auto",
    calibration: Literal["auto"] | bool = "auto",
    calibration_bins: int = 10,
    units: Literal["auto"] | bool = "auto",
    bands: bool = False,
    name: str = "threshold_sweep",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision-recall curves, areas and thresholds of scored, labelled predictions.

    Args:
        predictions: Scored and labelled predictions.
        by: Groupings; `["a"]` means the total and by `a`, `[["a"]]` only by `a`.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        method: How areas and means of scores are found: `exact`: from all rows; `binned`: from counts in cells
            of scores, in one scan or a few, with certified bounds.
        width: Widest bounds of areas and means that `binned` accepts.
        class_sizes: What the intervals are about: `random`: samples of as many rows; `fixed`: samples with as
            many positives and negatives. With clusters the sizes are always random.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`, the last two perhaps with a `confidence` that they hold on new data; `{ max_alerts = 500 }`, `{
            max_alert_share = 0.01 }`, `{ cost = { fp = 1, fn = 20 } }`; or of your own: `{ threshold = 6.54 }`.
        averages: Averages over groups: `micro`, `macro`, `weighted`.
        average_over: Grouping columns to average over; default: all of a grouping.
        net_benefit: Whether to make decision curves, of scores that are probabilities.
        threshold_probabilities: Where: an even grid or an ascending list from 0 to below 1; default: 0.01 to
            0.99.
        prevalence: Shares of positives for which precision and operating points are wanted, too.
        outcomes: Whether the sample of single rows is made; `auto`: up to one million rows of predictions.
        calibration: Whether the tables of calibration are made; `auto`: if scores lie in [0, 1].
        calibration_bins: Number of bins of scores, by quantile and of equal width.
        units: Whether the table of units is made, on which `compare` compares systems: of the clusters, else of
            the items that `id` names; `auto`: up to one million rows of predictions, or 250,000 items.
        bands: Whether limits are made that hold at all thresholds together, from draws by `seed`.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "threshold_sweep",
        {
            "predictions": predictions,
            "by": by,
            "thresholds": thresholds,
            "cluster": cluster,
            "cluster_order": cluster_order,
            "confidence": confidence,
            "uncertainty": uncertainty,
            "resamples": resamples,
            "seed": seed,
            "replicates": replicates,
            "boundary": boundary,
            "invalid_scores": invalid_scores,
            "duplicates": duplicates,
            "allow_empty": allow_empty,
            "method": method,
            "width": width,
            "class_sizes": class_sizes,
            "operating_points": operating_points,
            "averages": averages,
            "average_over": average_over,
            "net_benefit": net_benefit,
            "threshold_probabilities": threshold_probabilities,
            "prevalence": prevalence,
            "outcomes": outcomes,
            "calibration": calibration,
            "calibration_bins": calibration_bins,
            "units": units,
            "bands": bands,
            "name": name,
        },
        resources,
    )
