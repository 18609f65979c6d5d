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
    cluster: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    allow_empty: bool = False,
    of: Sequence[str] = (),
    results: str = "",
    system: str | None = None,
    paired: bool = True,
    baseline: int | str | None = None,
    metrics: Sequence[str] = (),
    contributions: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    tests: Sequence[
        Literal[
            "paired_t",
            "bootstrap_t",
            "wilcoxon",
            "sign",
            "randomization",
            "jackknife_t",
            "welch_t",
            "permutation",
            "bayes",
        ]
    ] = (
        "paired_t",
        "bootstrap_t",
        "randomization",
        "bayes",
    ),
    margin: float | Mapping[str, float] | None = None,
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
        cluster: Column of units whose values are independent, such as the family of a query; default: that of
            the stage in `of`, else the unit.
        confidence: Confidence level of intervals.
        resamples: Random swaps of the randomization test, and resamples of the bootstrap.
        seed: Of the random swaps.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        of: Names of the stages, one or several.
        results: Results folder in which they were published; empty: they come earlier in the same config.
        system: Column that tells the systems apart; with `paired = false` that of the groups.
        paired: Whether all systems have the same units; `false`: each has its own, and nothing is paired.
        baseline: The system that all others are compared with; default: every pair is compared.
        metrics: What is compared; default: what the units offer.
        contributions: Metrics whose values per unit mean nothing alone; their mean is a number of all units,
            such as an area.
        lower_is_better: Metrics of which the lower value is the better one, as of errors and delays.
        tests: Tests to make, with `paired = false` by default `welch_t`, `jackknife_t` and `bayes`; `bayes`
            gives posteriors of the ratios of all counts.
        margin: The difference that would matter, on the scale of the metric: one for all metrics, or by metric.
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
            "cluster": cluster,
            "confidence": confidence,
            "resamples": resamples,
            "seed": seed,
            "allow_empty": allow_empty,
            "of": of,
            "results": results,
            "system": system,
            "paired": paired,
            "baseline": baseline,
            "metrics": metrics,
            "contributions": contributions,
            "lower_is_better": lower_is_better,
            "tests": tests,
            "margin": margin,
            "correction": correction,
            "missing_units": missing_units,
            "prior": prior,
            "name": name,
        },
        resources,
    )
