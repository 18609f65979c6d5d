"""The result table threshold_sweep_bands."""

from __future__ import annotations

from ....metrics.uncertainty.qualities import QUALITY_COLUMN
from ....tables.schemas import Column, Table, limits_of_share


def _critical(ratio: str) -> Column:
    said = f"what takes the place of the normal quantile in the limits of {ratio}; above 1.96 of 95% intervals"
    return Column(f"critical_{ratio}", "DOUBLE", f"{said}; NULL: there is no band", nullable=True)


COLUMNS = (
    Column("threshold", "DOUBLE", "threshold of the curve; of more than 1,000 in a group about as many are chosen"),
    Column("precision", "DOUBLE", "as in the curve; NULL: nothing retrieved", nullable=True),
    *limits_of_share("precision", "the band of precision"),
    Column("recall", "DOUBLE", "as in the curve; NULL: no positive", nullable=True),
    *limits_of_share("recall", "the band of recall, for both curves"),
    Column("fpr", "DOUBLE", "as in the curve; NULL: no negative", nullable=True),
    *limits_of_share("fpr", "the band of the false positive rate"),
    *map(_critical, ("precision", "recall", "fpr")),
    Column(
        "method",
        "VARCHAR",
        "how the critical values were found: `sup_t_rows`, `sup_t_clusters`, `bonferroni`; NULL: there is no band",
        nullable=True,
    ),
    Column("n_thresholds", "BIGINT", "thresholds of the group at which the limits hold together: its rows here"),
    Column(
        "undefined_interval",
        "VARCHAR",
        "why a limit is NULL: `budget`, `one_replicate`, `undefined_ratio`; the "
        "[reasons](methods/threshold_sweep.md#bands-of-the-whole-curve); NULL: all limits are given",
        nullable=True,
    ),
    QUALITY_COLUMN,
)
BANDS = Table("threshold_sweep_bands", "one row per group and threshold", COLUMNS, ("threshold",))
