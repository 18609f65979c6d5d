"""`thresher.geocoding`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def geocoding(
    *,
    predicted: InputRows,
    gold: InputRows,
    by: Sequence[str] | Sequence[Sequence[str]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = None,
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
    match: Literal["span", "text", "overlap", "text_near"] | None = None,
    match_type: bool = False,
    assignment: Literal["maximum", "file_order"] = "maximum",
    minimum_overlap: float = 0.0,
    overlap_of: Literal["union", "gold"] = "union",
    max_centre_distance: float = 10.0,
    tolerances_km: Sequence[float] = (
        10.0,
        100.0,
        161.0,
    ),
    tolerance_boundary: Literal["<=", "<"] = "<=",
    candidates: Literal["error", "first", "closest"] = "error",
    distance: Literal["haversine", "geodesic"] = "haversine",
    missing_errors: Literal["exclude", "max_error"] = "exclude",
    outcomes: Literal["auto"] | bool = "auto",
    units: Literal["auto"] | bool = "auto",
    unit_tolerance_km: float | None = None,
    name: str = "geocoding",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Places of toponyms: accuracy within distances, and errors in kilometres.

    Args:
        predicted: Predicted places.
        gold: Gold places.
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
        match: Which mentions may be matched: `span`: the same characters; `text`: the same normalised text
            anywhere in the document; `overlap`: characters in common; `text_near`: the same text and close
            centres; None: none are.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of
            the file takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
        tolerances_km: Largest distances that count as correct, rising.
        tolerance_boundary: Whether a distance equal to the tolerance is within it.
        candidates: What happens when a mention has several predicted rows: `error`; `first`: the one with the
            lowest rank; `closest`: the one nearest to the gold place, the best that any choice among them could
            do.
        distance: `haversine`: great circle on a sphere of 6371.0088 km; `geodesic`: WGS84 ellipsoid, with
            pyproj.
        missing_errors: What mentions that are not located are in the errors: left out, or given the largest
            error.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and
            predicted.
        units: Whether the table of units is made, on which `compare` compares systems; `auto`: likewise.
        unit_tolerance_km: The tolerance at which units are counted, one of `tolerances_km`; default: the
            largest.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "geocoding",
        {
            "predicted": predicted,
            "gold": gold,
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
            "match": match,
            "match_type": match_type,
            "assignment": assignment,
            "minimum_overlap": minimum_overlap,
            "overlap_of": overlap_of,
            "max_centre_distance": max_centre_distance,
            "tolerances_km": tolerances_km,
            "tolerance_boundary": tolerance_boundary,
            "candidates": candidates,
            "distance": distance,
            "missing_errors": missing_errors,
            "outcomes": outcomes,
            "units": units,
            "unit_tolerance_km": unit_tolerance_km,
            "name": name,
        },
        resources,
    )
