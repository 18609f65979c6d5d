"""`thresher.entity_recognition`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def entity_recognition(
    *,
    predicted: InputRows,
    gold: InputRows,
    documents: InputRows | None = None,
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
    match: Literal["span", "text", "overlap", "text_near"] = "span",
    match_type: bool = False,
    assignment: Literal["maximum", "file_order"] = "maximum",
    minimum_overlap: float = 0.0,
    overlap_of: Literal["union", "gold"] = "union",
    max_centre_distance: float = 10.0,
    align: Literal["exact", "prefix"] = "exact",
    averages: Sequence[Literal["micro", "macro", "semeval", "semeval_micro"]] = (
        "micro",
        "macro",
    ),
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    outcomes: Literal["auto"] | bool = "auto",
    name: str = "entity_recognition",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Recognition of entities in documents, matched one to one with gold mentions.

    Args:
        predicted: Predicted mentions.
        gold: Gold mentions.
        documents: The documents that are judged.
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
        match: Which mentions may be matched.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of
            the file takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
        align: What becomes of CoNLL sentences whose tokens in gold and predicted differ: `exact`: none may;
            `prefix`: the tokens with which a sentence begins alike are compared, and a warning says what is
            left out.
        averages: Which averages: `micro`: all mentions together; `macro`: mean of documents where defined;
            `semeval`: the macro scores of the scorer of SemEval-2019 Task 12; `semeval_micro`: its micro
            scores.
        operating_points: Thresholds to choose by the counts of all mentions: `{ beta = 1 }`, `{ min_precision =
            0.9 }`, `{ min_recall = 0.8 }`, the last two perhaps with a `confidence` that they hold on new data.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and
            predicted.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "entity_recognition",
        {
            "predicted": predicted,
            "gold": gold,
            "documents": documents,
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
            "align": align,
            "averages": averages,
            "operating_points": operating_points,
            "outcomes": outcomes,
            "name": name,
        },
        resources,
    )
