"""Rows of compare_posteriors: precision, recall and F1 of two systems, and which is better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics import posteriors
from ...metrics.comparison.pooled import effective_counts
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, worst
from ...tables.ratios import RATIOS
from .qualities import hits_and_misses, jackknifed, quality_of_days, quality_of_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...metrics.comparison.pooled import EffectiveCounts
    from ...metrics.uncertainty.jackknife import Floats
    from .rows import PairOfSystems, Row


def posterior_rows(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[Row]:
    """Posteriors of precision, recall and F1 of all units' counts, and which system is better.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: tp, fp and fn of the units of the first system, or of their clusters, shape (A, 3).
        b: The same of the other, shape (B, 3); the same units, if the stage pairs them.
        n_units: Units of both.
    """
    if not (len(a) and len(b)):
        return
    is_paired = pair.params.paired
    n_clusters = (len(a) if is_paired else len(a) + len(b)) if pair.params.is_clustered else None
    numbers = (n_units[0], None) if is_paired else (sum(n_units), n_units)
    for ratio in RATIOS:
        if f"pooled_{ratio}" not in names:
            continue
        of_a, of_b = (_posterior(ratio, counts, pair) for counts in (a, b))
        row = pair.head(f"pooled_{ratio}", *numbers, n_clusters=n_clusters)
        for side, (posterior, counts) in (("a", of_a), ("b", of_b)):
            lower, upper = posterior.interval(pair.params.confidence)
            row |= {f"mean_{side}": float(posterior.mean())}
            row |= {f"mean_{side}_lower": float(lower), f"mean_{side}_upper": float(upper)}
            row |= {f"design_effect_{side}": counts.design_effect, f"counts_{side}": counts.used}
        of_days = quality_of_days(jackknifed(ratio, (a, b)) if pair.in_time else ())
        row[INTERVAL_QUALITY] = worst([*(quality_of_share(ratio, counts) for counts in (a, b)), of_days])
        yield row | {"probability_a_better": float(posteriors.probability_greater(of_a[0], of_b[0]))}


def _posterior(ratio: str, counts: Floats, pair: PairOfSystems) -> tuple[posteriors.BetaPosterior, EffectiveCounts]:
    """Posterior of a ratio from what its counts are worth, and these."""
    params = pair.params
    worth = effective_counts(*hits_and_misses(ratio, counts), params.confidence, in_time=pair.in_time)
    if ratio == "f1":
        return posteriors.f1_posterior(worth.hits, worth.misses, 0.0, params.prior), worth
    return posteriors.precision_posterior(worth.hits, worth.misses, params.prior), worth
