"""`thresher.ranking`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def ranking(
    *,
    ranking: InputRows,
    relevance: InputRows | None = None,
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
    cutoffs: Sequence[int] = (
        1,
        5,
        10,
        100,
    ),
    measures: Sequence[str] = (),
    relevance_level: float = 1.0,
    ties: Literal["trec", "expected", "order"] = "trec",
    interpolation: Literal["trec_eval_10", "trec_eval_9"] = "trec_eval_10",
    missing_queries: Literal["error", "zero", "skip"] = "error",
    no_relevant: Literal["null", "zero"] = "null",
    n_candidates: int | None = None,
    null: Literal["exact", "zhang_su_2012"] = "exact",
    name: str = "ranking",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Average precision and other measures of rankings, beside random selection.

    Args:
        ranking: Retrieved documents of every query.
        relevance: Judged documents of every query; default: the column `relevance` of the ranking.
        by: Groupings; `["a"]` means the total and by `a`, `[["a"]]` only by `a`.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column of queries whose values are independent, such as the family of a query; default: the
            query.
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
        cutoffs: Numbers of first documents at which precision and recall are measured.
        measures: Further measures by name, as `nDCG@10`, `nDCG(gain=exponential)@10`, `AP@100`, `RBP(p=0.8)`.
        relevance_level: Least relevance of a relevant document.
        ties: Order of documents with equal scores: `trec`: descending by name; `expected`: the mean over all
            orders; `order`: documents come in the order of the column `rank`, whatever the scores.
        interpolation: How many hits interpolated precision at a recall asks for, by version of trec_eval.
        missing_queries: What happens to a query with relevant documents of which none was retrieved in a group.
        no_relevant: Measures of a query without a relevant document: `null`: left out of means; `zero`.
        n_candidates: Documents of the pool that each ranking was made from; default: those ranked.
        null: Moments of average precision under random selection: `exact`; `zhang_su_2012`: as printed there,
            wrong.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "ranking",
        {
            "ranking": ranking,
            "relevance": relevance,
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
            "cutoffs": cutoffs,
            "measures": measures,
            "relevance_level": relevance_level,
            "ties": ties,
            "interpolation": interpolation,
            "missing_queries": missing_queries,
            "no_relevant": no_relevant,
            "n_candidates": n_candidates,
            "null": null,
            "name": name,
        },
        resources,
    )
