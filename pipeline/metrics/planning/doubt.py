"""How far the spread of a pilot can be trusted: the upper limit of its variance.

The variance of a pilot is itself an estimate. With ν degrees of freedom its upper limit is V ν / χ²(0.2; ν): in 80 of
100 pilots the true variance lies below. A plan that rests on the limit reaches what is wanted in about 80 of 100
cases, one that rests on the estimate in about half of them (Browne 1995, Statistics in Medicine 14, 1933-1940; Kieser
& Wassmer 1996, Biometrical Journal 38, 941-949).

Of a normal sample ν is n - 1. Shares of clusters are not normal: the relative variance of V is 2 / (n - 1) + κ / n
with their excess kurtosis κ, and ν is two over that (Satterthwaite 1946). κ is that of a beta-binomial distribution
with the share, the rows per cluster and the intra-cluster correlation of the pilot; of single rows, that of a
binomial one, where near a share of 1/2 the variance is known nearly without error. Where clusters are of unequal
size, the squares of their sizes are still more unequal: n_e² / n clusters of n with the effective number n_e take the
place of n_e. This lies between the clusters that count where variances grow with sizes and those where they grow with
their squares.

Of areas and of matches without labels what a row adds is taken as normal, and their number in a cluster as Poisson:
then κ is 3 over their mean number. Where limits lie on a scale, such as that of the logarithm, their width goes along
with the number itself, whose error adds to that of V.

Measured in `benchmarks/sample_sizes.py`.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from .clusters import intracluster_correlation
from .pilot import FEWEST_UNITS, Pilot

ASSURANCE = 0.8  # of reaching what is wanted
_OF_NORMAL = 3.0  # fourth moment over the squared variance
_FEWEST_DEGREES, _MOST_DEGREES = 1.0, 1e9
_SHARES = frozenset({"share", "jaccard"})
_LEAST_CORRELATION, _MOST_CORRELATION = 1e-6, 1 - 1e-6


def inflation_limit(degrees: float, assurance: float = ASSURANCE) -> float:
    """The upper limit of a variance over its estimate.

    Args:
        degrees: Degrees of freedom of the estimate, > 0.
        assurance: One-sided level of the limit.

    Returns:
        ν / χ²(1 - assurance; ν); near 1 for many degrees.
    """
    return degrees / float(scipy.special.chdtri(degrees, assurance))


def kurtosis_of_shares(share: float, correlation: float, rows: float) -> float:
    """Excess kurtosis of the hits of a cluster, if they are beta-binomial.

    Args:
        share: From 0 to 1; of 0 and 1, which do not vary, 0 is returned.
        correlation: Of two rows of a cluster, from 0 to 1.
        rows: Rows per cluster, ≥ 1; 1: single rows.
    """
    if not 0 < share < 1:
        return 0.0
    if rows <= 1:
        return (1 - 6 * share * (1 - share)) / (share * (1 - share))
    rho = min(max(correlation, _LEAST_CORRELATION), _MOST_CORRELATION)
    a, b = share * (1 - rho) / rho, (1 - share) * (1 - rho) / rho
    total, product = a + b, a * b
    scale = total**2 * (1 + total) / (rows * product * (total + 2) * (total + 3) * (total + rows))
    moment = total * (total - 1 + 6 * rows) + 3 * product * (rows - 2) + 6 * rows**2
    moment -= 3 * product * rows * (6 - rows) / total + 18 * product * rows**2 / total**2
    return scale * moment - 3


def kurtosis_of_values(mean: float, variance: float) -> float:
    """Excess kurtosis of values from 0 to 1, if they have a beta distribution.

    Args:
        mean: Between 0 and 1, exclusive.
        variance: Of a value, above 0 and below mean × (1 - mean).
    """
    total = max(mean * (1 - mean) / variance - 1, 1e-6)
    a, b = mean * total, (1 - mean) * total
    top = (a - b) ** 2 * (total + 1) - a * b * (total + 2)
    return 6 * top / (a * b * (total + 2) * (total + 3))


def variance_degrees(pilot: Pilot) -> float:
    """Degrees of freedom of the variance of a pilot."""
    relative = _error_of_rows(pilot) if math.isinf(pilot.effective) else _error_of_clusters(pilot)
    relative += _error_of_scale(pilot)
    return float(np.clip(2 / max(relative, 2 / _MOST_DEGREES), _FEWEST_DEGREES, _MOST_DEGREES))


def _error_of_rows(pilot: Pilot) -> float:
    """Relative variance of the variance where rows are independent."""
    if pilot.scale not in _SHARES:
        number = pilot.units if math.isnan(pilot.rows) else pilot.rows
        return 2 / max(number - 1, 1.0)
    return (2 + kurtosis_of_shares(pilot.share, 0.0, 1.0)) / pilot.binomial_size


def _error_of_clusters(pilot: Pilot) -> float:
    """The same where clusters are."""
    alike = max(pilot.effective**2 / max(pilot.units, pilot.effective), FEWEST_UNITS)
    return 2 / max(alike - 1, 1.0) + _kurtosis(pilot) / max(pilot.effective, 1.0)


def _error_of_scale(pilot: Pilot) -> float:
    """What the number itself adds, as the width of an interval on its scale depends on it."""
    slope = {"log": 1.0, "lack": 1.0, "logit": abs(1 - 2 * pilot.value)}.get(pilot.scale, 0.0)
    return 4 * slope**2 * pilot.error_on_scale**2 if slope else 0.0


def _kurtosis(pilot: Pilot) -> float:
    """Excess kurtosis of what a cluster adds; 0 where nothing is known of it."""
    if pilot.scale == "mean" and 0 < pilot.value < 1:
        return max(kurtosis_of_values(pilot.value, pilot.variance * pilot.size), 0.0)
    if pilot.scale not in _SHARES:
        return 0.0 if math.isnan(pilot.rows) else _OF_NORMAL * pilot.effective / max(pilot.rows, 1.0)
    rows = pilot.rows_per_cluster
    if math.isnan(rows):
        return max(kurtosis_of_shares(pilot.share, 0.0, 1.0), 0.0) * pilot.effective / pilot.binomial_size
    correlation = intracluster_correlation(pilot.rows / pilot.binomial_size, rows)
    return max(kurtosis_of_shares(pilot.share, correlation if math.isfinite(correlation) else 0.0, rows), 0.0)


def cautious(pilot: Pilot, assurance: float = ASSURANCE) -> tuple[Pilot, float]:
    """The pilot on the safe side, and by what its variance is multiplied.

    A share of 0 or 1 shows no variance: the limit of the share itself takes the place of that of its variance.

    Args:
        pilot: The pilot.
        assurance: One-sided level of the limit.
    """
    if pilot.scale in _SHARES and pilot.share in {0.0, 1.0}:
        unseen = 1 - (1 - assurance) ** (1 / pilot.binomial_size)
        return pilot.moved(unseen if pilot.share == 0.0 else 1 - unseen), 1.0
    return pilot, inflation_limit(variance_degrees(pilot), assurance)
