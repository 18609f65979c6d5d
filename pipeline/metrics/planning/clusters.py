"""More clusters, or more rows in the same clusters: what the intra-cluster correlation says.

The variance of a share over clusters of m rows is that of independent rows times the design effect 1 + (m - 1) ρ,
where ρ is the correlation of two rows of a cluster (Kish 1965, Survey Sampling, chapter 5). With r times the rows in
the same clusters it is multiplied by (1 + (r m - 1) ρ) / (r (1 + (m - 1) ρ)), and however many rows there are it does
not fall below m ρ / (1 + (m - 1) ρ) of what it was: only more clusters take it further. Where clusters are of unequal
size, m is the mean size of the cluster of a row, Σ n² / Σ n. Of a ratio that is over some of the rows of each cluster,
such as those that are kept, the number in a cluster varies as a Poisson number does, with the mean λ, and m is 1 + λ.
"""

from __future__ import annotations

import math

_ROUNDING = 1e-9


def intracluster_correlation(design_effect: float, rows_per_cluster: float) -> float:
    """Correlation of two rows of a cluster, (d - 1) / (m - 1).

    Args:
        design_effect: Variance over that of independent rows.
        rows_per_cluster: Mean size of the cluster of a row.

    Returns:
        At most 1, below 0 where rows of a cluster are less alike than others; nan for a row per cluster.
    """
    if not rows_per_cluster > 1 + _ROUNDING:
        return math.nan
    return min((design_effect - 1) / (rows_per_cluster - 1), 1.0)


def variance_with_more_rows(times: float, correlation: float, rows_per_cluster: float) -> float:
    """Variance with so many times the rows in the same clusters, over that of the pilot.

    Args:
        times: ≥ 1, may be infinite.
        correlation: As from `intracluster_correlation`; below 0 it counts as 0.
        rows_per_cluster: Of the pilot.
    """
    rho = max(correlation, 0.0)
    effect = 1 + (rows_per_cluster - 1) * rho
    return ((1 - rho) / times + rows_per_cluster * rho) / effect


def rows_for_variance(wanted: float, correlation: float, rows_per_cluster: float) -> float:
    """How many times the rows in the same clusters multiply the variance by this; infinite if no number does.

    Args:
        wanted: The variance that is wanted over that of the pilot, > 0.
        correlation: As for `variance_with_more_rows`.
        rows_per_cluster: Likewise.
    """
    rho = max(correlation, 0.0)
    room = wanted * (1 + (rows_per_cluster - 1) * rho) - rows_per_cluster * rho
    return (1 - rho) / room if room > 0 else math.inf
