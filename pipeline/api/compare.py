"""`thresher.compare`, made from its parameter class by tests/api/generating.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipeline.api.evaluating import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.api.result import Result
    from pipeline.api.rows import InputRows


def compare(
    *,
    units: InputRows | None = None,
    by: Sequence[str] | Sequence[Sequence[str]] | None = None,
    confidence: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    allow_empty: bool = False,
    of: Sequence[str] = (),
    results: str = "",
    system: str | None = None,
    metrics: Sequence[str] = (),
    tests: Sequence[Literal["paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization", "jackknife_t", "bayes"]] = (
        "paired_t",
        "wilcoxon",
        "randomization",
        "bayes",
    ),
    correction: Literal["holm", "bh", "none"] = "holm",
    missing_units: Literal["error", "skip"] = "error",
    prior: float = 0.5,
    name: str = "compare",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Two or more systems on the same units: tests, intervals, posteriors.

    Args:
        units: One row per unit and system.
        by: Groupings; `["a"]` means the total and by `a`, `[["a"]]` only by `a`.
        confidence: Confidence level of intervals.
        resamples: Random swaps of the randomization test, and resamples of the bootstrap.
        seed: Of the random swaps.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        of: Names of the stages, one or several.
        results: Results folder in which they were published; empty: they come earlier in the same config.
        system: Column that tells the systems apart.
        metrics: What is compared; default: what the units offer.
        tests: Tests to make; `bayes` gives posteriors of the ratios of all counts.
        correction: How p-values are adjusted for the number of pairs and metrics.
        missing_units: What happens when a system lacks a unit that another has.
        prior: Both shapes of the beta prior of the posteriors.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    return evaluate(
        "compare",
        {
            "units": units,
            "by": by,
            "confidence": confidence,
            "resamples": resamples,
            "seed": seed,
            "allow_empty": allow_empty,
            "of": of,
            "results": results,
            "system": system,
            "metrics": metrics,
            "tests": tests,
            "correction": correction,
            "missing_units": missing_units,
            "prior": prior,
            "name": name,
        },
        resources,
    )
