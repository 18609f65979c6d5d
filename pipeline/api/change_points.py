"""`thresher.change_points`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def change_points(
    *,
    predictions: InputRows,
    annotations: InputRows,
    margin: float | str | Mapping[str, Any],
    series: InputRows | None = None,
    runs: InputRows | None = None,
    coders: InputRows | None = None,
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
    margin_boundary: Literal["<", "<="] = "<",
    matching: Literal["one_to_one", "any", "roerich", "ruptures", "nearest"] | None = None,
    annotators: Literal["union", "separate", "tcpd"] = "union",
    cooldown: float | str | None = None,
    repeats: Literal["ignore", "false_alarm"] | None = None,
    per: float | str | None = None,
    area_scores: Literal["every", "thresholds"] = "every",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    series_counts: Literal["auto"] | bool = "auto",
    delays: Literal["auto"] | bool = "auto",
    name: str = "change_points",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision, recall and delays of detected change points, within a margin.

    Args:
        predictions: Predicted change points.
        annotations: True change points, as marked by each annotator.
        margin: How far a prediction may lie from a true point: a number in the unit of the positions, a
            duration where they are times, or `{ before = …, after = … }`.
        series: The annotated series, with their numbers of observations; predictions elsewhere are left out.
        runs: What was run, also where nothing was found; predictions of other runs are left out.
        coders: Who looked at which series, also those who marked nothing.
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
        margin_boundary: Whether a distance equal to the margin matches (`<=`) or not (`<`).
        matching: What a true positive is; default: `one_to_one`, with `annotators = "tcpd"` `nearest`.
        annotators: `union`: all distinct marks of a series; `separate`: one by one; `tcpd`: precision against
            the union, recall averaged over annotators, index 0 added to both sides.
        cooldown: Predictions of a run that come less than this after an alarm are one alarm with it: a number
            in the unit of the positions, or a duration where they are times.
        repeats: What an alarm counts as that lies near a true point and does not detect it: `false_alarm`, the
            default of points, or neither true nor false, `ignore`, the default of incidents that last.
        per: Unit of the observed time, such as `1d`: false alarms are counted per unit.
        area_scores: Whether average precision and pr_auc_roerich use every score, or only the thresholds of the
            stage.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`, the last two perhaps with a `confidence` that they hold on new data.
        series_counts: Whether to write the table of series; `auto`: up to 10 million rows of predictions and
            marks.
        delays: Whether to write the table of matched predictions; `auto`: up to 1 million such rows.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "change_points",
        {
            "predictions": predictions,
            "annotations": annotations,
            "margin": margin,
            "series": series,
            "runs": runs,
            "coders": coders,
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
            "margin_boundary": margin_boundary,
            "matching": matching,
            "annotators": annotators,
            "cooldown": cooldown,
            "repeats": repeats,
            "per": per,
            "area_scores": area_scores,
            "operating_points": operating_points,
            "series_counts": series_counts,
            "delays": delays,
            "name": name,
        },
        resources,
    )
