"""What the criteria of entity_recognition choose from: the counts of all mentions of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.curves.cross_fitting import at_choices
from ...metrics.curves.operating_points import Candidates, Outcomes, f_beta_of_counts, ratios_of_counts
from ...metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from ...tables.columns import RATIOS, divide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...metrics.curves.cross_fitting import Ints
    from ...metrics.uncertainty.bootstrap import Resampling
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from .documents import Group


def candidates(rows: pl.DataFrame, group: Group, confidence: float | None, resampling: Resampling | None) -> Candidates:
    """One group.

    Args:
        rows: Its scores of all mentions, by rising threshold.
        group: Its counts.
        confidence: Of the limits; None: uncertainty is not asked for, and replicates are not counted.
        resampling: How the bootstrap draws; None: limits of the closed form.
    """
    wanted = confidence is not None
    counts = group.tp, group.fp, group.n_gold[:, None] - group.tp

    def lower(name: str, confidence: float) -> Floats:
        return intervals_of_clusters(group.confusion, confidence, names=[name])[name][0]

    def limits(chosen: Ints, _pooled: Sequence[Floats]) -> dict[str, Limits]:
        tp, fp, fn = (at_choices(count, chosen) for count in counts)
        level = confidence or 0.0
        outcomes = Confusion(tp, fp, fn, 0 * tp, in_time=group.counts.in_time)
        return intervals_of_clusters(outcomes, level, names=RATIOS, resampling=resampling)

    return Candidates(
        rows=rows,
        lower=lower if wanted and group.counts.within_budget else None,
        retrieved=(rows["tp"] + rows["fp"]).to_numpy().astype(np.float64),
        counts=counts if wanted else "none",
        ratios=ratios_of_counts,
        f_beta=f_beta_of_counts,
        outcomes=lambda counts: Outcomes(*counts),
        at_folds=limits if wanted and group.counts.within_budget else None,
    )


def outcomes() -> Outcomes[pl.Expr]:
    """Outcomes of a row."""
    return Outcomes(*(pl.col(name).cast(pl.Float64) for name in ("tp", "fp", "fn")))


def f_beta(beta: float) -> pl.Expr:
    """F-beta of a row; 0 where nothing is retrieved."""
    square = beta**2
    tp, fp, fn = (pl.col(name).cast(pl.Float64) for name in ("tp", "fp", "fn"))
    return divide((1 + square) * tp, (1 + square) * tp + square * fn + fp)
