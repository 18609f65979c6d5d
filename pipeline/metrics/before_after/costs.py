"""What a threshold costs without labels: counts of false positives and misses as the corrected estimates have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..curves.outcome_counts import Outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence


def estimated_outcomes(keys: Sequence[str]) -> Outcomes[pl.Expr]:
    """Estimated outcomes of a row of the estimates, NULL where its recall is.

    The positives of a group are the true positives at the recall reference over the recall that is believed there;
    those that a threshold does not retrieve are misses, and none where it retrieves more: recall is clipped to 1 there.

    Args:
        keys: Columns that identify a group.
    """
    tp, fp, recall = (pl.when(pl.col("recall").is_not_null()).then(name) for name in ("tp", "fp", "recall"))
    positives = pl.when("is_reference").then(tp / recall).drop_nulls().first().over(list(keys))
    return Outcomes(tp, fp, pl.max_horizontal(positives - tp, pl.lit(0.0)))


def alerts() -> Outcomes[pl.Expr]:
    """What a threshold retrieves after the event and what it does not, for capacities; true or false is left open."""
    retrieved, every = (pl.col(name).cast(pl.Float64) for name in ("m_after", "n_after"))
    nothing = pl.lit(0.0)
    return Outcomes(retrieved, nothing, nothing, every - retrieved)
