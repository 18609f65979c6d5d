"""`thresher.before_after`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def before_after(
    *,
    pairs: InputRows,
    events: InputRows | None = None,
    articles: InputRows | None = None,
    gold: InputRows | None = None,
    gold_articles: InputRows | None = None,
    audited: InputRows | None = None,
    by: Sequence[str] | Sequence[Sequence[str]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = None,
    cluster: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    window: Mapping[str, Any] | None = None,
    compared: Literal["events", "timelines", "pairs"] | None = None,
    recall_reference: Mapping[str, Any] | None = None,
    strata: Sequence[str] = (),
    lag_thresholds: Sequence[float] = (),
    audit: Mapping[str, Any] | None = None,
    event_counts: Literal["auto"] | bool = "auto",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    name: str = "before_after",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision and recall of event-article matching, without gold labels.

    Args:
        pairs: Scored event-article pairs.
        events: One row per event, with its time or its numbers of compared articles.
        articles: One row per article, with its time.
        gold: True matches found by people, for a comparison.
        gold_articles: The articles that were coded; only their pairs are judged. Default: those of gold.
        audited: Matches of the audit sample that people checked.
        by: Groupings; `["a"]` means the total and by `a`, `[["a"]]` only by `a`.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
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
        window: Time around an event; default: every pair counts. Required for timelines.
        compared: Where the numbers of compared pairs come from: `events`: given there; `timelines`: counted
            from the times of events and articles; `pairs`: every compared pair is a row of pairs. Default: the
            first that the inputs allow.
        recall_reference: The threshold at which recall is taken as known.
        strata: What the false positive rate is adjusted for: `weekday`, `hour` or `volume` of the article, or
            columns.
        lag_thresholds: Thresholds at which matches are counted per day, and a trend before the event is tested.
        audit: A random sample of matches to draw for people to check: `{ threshold = 10.0, size = 200, seed = 1
            }`.
        event_counts: Whether to count matches per event at the chosen threshold, which reads pairs once more;
            `auto`: while pairs has at most 10 million rows.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "before_after",
        {
            "pairs": pairs,
            "events": events,
            "articles": articles,
            "gold": gold,
            "gold_articles": gold_articles,
            "audited": audited,
            "by": by,
            "thresholds": thresholds,
            "cluster": cluster,
            "confidence": confidence,
            "uncertainty": uncertainty,
            "resamples": resamples,
            "seed": seed,
            "replicates": replicates,
            "boundary": boundary,
            "invalid_scores": invalid_scores,
            "duplicates": duplicates,
            "allow_empty": allow_empty,
            "window": window,
            "compared": compared,
            "recall_reference": recall_reference,
            "strata": strata,
            "lag_thresholds": lag_thresholds,
            "audit": audit,
            "event_counts": event_counts,
            "operating_points": operating_points,
            "name": name,
        },
        resources,
    )
