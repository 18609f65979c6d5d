"""The shifted lognormal distribution with a given skewness."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from ..uncertainty.jackknife import Floats

_SYMMETRIC = 1e-6  # skewness below which the distribution is taken as normal


def shifted_lognormal_tail(standard: Floats, skewness: float) -> Floats:
    """P(Z ≥ standard) for a lognormal Z, shifted and scaled to mean 0 and variance 1; reflected for negative skewness.

    With r = exp(σ²) - 1, σ being the standard deviation of the logarithm, the skewness is (r + 3) √r.

    Args:
        standard: Standardised values, any shape.
        skewness: The third standardised moment.
    """
    if abs(skewness) < _SYMMETRIC:
        return np.asarray(scipy.special.ndtr(-standard))
    # √r solves x³ + 3 x = |skewness|
    root = 2 * math.sinh(math.asinh(abs(skewness) / 2) / 3)
    sigma = math.sqrt(math.log1p(root * root))
    sign = math.copysign(1.0, skewness)
    with np.errstate(divide="ignore"):
        quantile = np.log(np.maximum(1 + sign * root * standard, 0.0)) / sigma + sigma / 2
    return np.asarray(scipy.special.ndtr(-sign * quantile))
