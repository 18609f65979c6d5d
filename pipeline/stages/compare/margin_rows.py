"""Rows of compare_margins: claims that one system is not worse than another by more than a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics.comparison.margins import claims_within, level_of_claims
from ...metrics.comparison.significance import adjust_p_values
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, N_CLUSTERS
from ..stage import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.comparison.margins import Claim
    from .contract import CompareParameters
    from .rows import ComparedMetric, Row

CONTRARY: dict[Claim, str] = {
    "a_not_worse": "a is worse than b by {margin} or more",
    "b_not_worse": "b is worse than a by {margin} or more",
    "equivalent": "a and b differ by {margin} or more",
}
_OF_THE_PAIR = ("metric", "system_a", "system_b", "n_units", "n_units_a", "n_units_b", "n_dropped", "difference")


def margin_rows(params: CompareParameters, compared: ComparedMetric) -> Iterator[Row]:
    """Test the claims of one metric of one pair; no row where the metric has no margin.

    Args:
        params: The parameters of the stage.
        compared: The metric.

    Returns:
        Rows without `p_adjusted` and `holds`.
    """
    head = compared.head
    margin = params.margin_of(head["metric"])
    if margin is None:
        return
    level = level_of_claims(params.confidence)
    for test, (inference, quality) in compared.inferences.items():
        lower, upper = inference.limits(level) if level > 0 else (None, None)
        names = (*_OF_THE_PAIR, "undefined", *([N_CLUSTERS] if N_CLUSTERS in head else []))
        shared = {name: head[name] for name in names} | {
            "interval_lower": lower,
            "interval_upper": upper,
            "interval_confidence": level if level > 0 else None,
            "test": test,
            "margin": float(margin),
            "correction": params.correction,
            INTERVAL_QUALITY: quality,
        }
        is_higher_better = head["metric"] not in params.lower_is_better
        for claim in claims_within(inference, margin, higher_is_better=is_higher_better):
            words = {"claim": claim.claim, "hypothesis": CONTRARY[claim.claim].format(margin=number(float(margin)))}
            yield shared | words | {"statistic": claim.statistic, "p_value": claim.p_value}


def with_decisions(params: CompareParameters, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group with p-values adjusted within claim and test, and whether each claim holds."""
    decided = []
    for key in dict.fromkeys((row["claim"], row["test"]) for row in rows):
        same = [row for row in rows if (row["claim"], row["test"]) == key]
        adjusted = adjust_p_values([row["p_value"] for row in same], params.correction)
        for row, p_adjusted in zip(same, map(float, adjusted), strict=True):
            holds = None if p_adjusted != p_adjusted else p_adjusted <= 1 - params.confidence  # noqa: PLR0124 - nan
            decided.append(row | {"p_adjusted": p_adjusted, "holds": holds})
    return decided
