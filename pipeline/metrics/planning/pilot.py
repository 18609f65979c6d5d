"""What an interval would be with more units, from the interval of a pilot.

A published interval says how much its number varies: it is turned back into what it was made from, and made again for
another number of units. How limits are made decides on which scale that is done:

| scale | limits are | what grows with the units |
|---|---|---|
| `share` | beta quantiles of a binomial share (`jackknife.binomial_limits`) | rows over their design effect |
| `jaccard` | those of J, tp of tp + fp + fn, for F1 = 2 J / (1 + J) | the same |
| `mean` | those of a mean of values from 0 to 1 (`proportions.mean_limits`) | the number of values |
| `logit` | symmetric about the logit, by Student's t | the inverse of the variance |
| `log`, `lack`, `plain` | the same about the logarithm, that of what is lacking of 1, or the number itself | likewise |

Student's t takes its degrees of freedom from the effective number of clusters (Kish 1965), and these grow with the
units, too. A stage gives each of up to 1,000 clusters a replicate of its own, and puts more of them into 64: then the
degrees are 63, and just above 1,000 clusters an interval is 2 % wider than just below.

Near 0 and 1 the limits of a share are not those of a normal distribution, and do not shrink with the root of the
number of rows; this is why they are made anew, and not only scaled.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.jackknife import binomial_limits, t_quantile, tail
from ..uncertainty.proportions import mean_limits
from .searching import smallest_factor

if TYPE_CHECKING:
    from collections.abc import Callable

Scale: TypeAlias = Literal["share", "jaccard", "mean", "logit", "log", "lack", "plain"]

MOST_OWN_REPLICATES, HASH_GROUPS = 1000, 64
FEWEST_UNITS = 2  # a spread needs two
OF_SHARES: tuple[Scale, ...] = ("share", "jaccard", "mean", "logit")  # numbers from 0 to 1
_SCALES: dict[Scale, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "logit": (lambda value: float(scipy.special.logit(value)), lambda moved: float(scipy.special.expit(moved))),
    "log": (math.log, math.exp),
    "lack": (lambda value: -math.log1p(-value), lambda moved: -math.expm1(-moved)),
    "plain": (lambda value: value, lambda moved: moved),
}


@dataclass(frozen=True)
class Pilot:
    """A number with its interval.

    Attributes:
        value: The number.
        lower: Its lower limit.
        upper: Its upper limit.
        confidence: Two-sided level of the limits, such as 0.95.
        scale: How limits are made.
        units: Number of independent units, all of them.
        effective: Their effective number (Kish 1965); infinite where rows are independent.
        size: Number of values, for the scale `mean`; for `share` and `jaccard` the number of independent rows that have
            such limits, nan where it is to follow from the limits.
        rows: Number of rows that the number rests on; nan where it is not known.
        rows_per_cluster: Mean size of the cluster of such a row, Σ n² / Σ n; nan where it is not known.
        bounds: Where limits are cut off; a limit that lies there says nothing of the spread.
        is_grouped: Whether the units are already put into groups of them.
        has_groups: Whether more than 1,000 units are put into groups.
    """

    value: float
    lower: float
    upper: float
    confidence: float
    scale: Scale
    units: float
    effective: float = math.inf
    size: float = math.nan
    rows: float = math.nan
    rows_per_cluster: float = math.nan
    bounds: tuple[float, float] = (-math.inf, math.inf)
    is_grouped: bool = False
    has_groups: bool = False

    @property
    def width(self) -> float:
        """Width of the interval of the pilot itself."""
        return self.upper - self.lower

    def degrees(self, factor: float = 1.0) -> float:
        """Degrees of freedom of Student's t with so many times the units."""
        degrees = max(self.effective * factor - 1, 1.0)
        is_grouped = self.is_grouped or (self.has_groups and self.units * factor > MOST_OWN_REPLICATES)
        return min(degrees, HASH_GROUPS - 1.0) if is_grouped and math.isfinite(degrees) else degrees

    def limits(self, factor: float, confidence: float | None = None, *, inflation: float = 1.0) -> tuple[float, float]:
        """The limits with so many times the units, if the number is the same and the spread is so many times as large.

        Args:
            factor: Units of the plan over those of the pilot.
            confidence: Level of the limits; None: that of the pilot.
            inflation: By what the variance of a unit is multiplied.
        """
        level = self.confidence if confidence is None else confidence
        degrees = self.degrees(factor)
        if self.scale in {"share", "jaccard"}:
            lower, upper = _share_limits(self.share, self.binomial_size * factor / inflation, level, degrees)
            return (_f1(lower), _f1(upper)) if self.scale == "jaccard" else (lower, upper)
        if self.scale == "mean":
            return self._mean_limits(self.variance * inflation / factor, self.size * factor, tail(level, degrees))
        step = float(t_quantile(level, degrees) / t_quantile(self.confidence, self.degrees()))
        down, up = (distance * step * math.sqrt(inflation / factor) for distance in self._distances)
        transform, inverse = _SCALES[self.scale]
        centre = transform(self.value)
        return max(inverse(centre - down), self.bounds[0]), min(inverse(centre + up), self.bounds[1])

    def width_with(self, factor: float, confidence: float | None = None, *, inflation: float = 1.0) -> float:
        """Width of these limits."""
        lower, upper = self.limits(factor, confidence, inflation=inflation)
        return upper - lower

    def error(self, factor: float = 1.0, *, inflation: float = 1.0) -> float:
        """Standard error of the number itself with so many times the units."""
        if self.scale == "share" and 0 < self.value < 1:
            return math.sqrt(self.value * (1 - self.value) * inflation / (self.binomial_size * factor))
        if self.scale == "mean":
            return math.sqrt(self.variance * inflation / factor)
        width = self.width_with(factor, inflation=inflation)
        return width / 2 / float(t_quantile(self.confidence, self.degrees(factor)))

    def factor_for(self, width: float, confidence: float | None = None, *, inflation: float = 1.0) -> float | None:
        """The smallest factor with which the interval is no wider than this; None if none is.

        Args:
            width: Upper less lower limit, > 0.
            confidence: As for `limits`.
            inflation: Likewise.
        """

        def is_enough(factor: float) -> bool:
            return self.width_with(factor, confidence, inflation=inflation) <= width

        return smallest_in_both_ways(self, is_enough)

    def moved(self, share: float) -> Pilot:
        """The same with another share, of as many rows."""
        value = _f1(share) if self.scale == "jaccard" else share
        return replace(self, value=value, size=self.binomial_size)

    @property
    def share(self) -> float:
        """The share that the limits are made of: the number, or J of F1."""
        return self.value / (2 - self.value) if self.scale == "jaccard" else self.value

    @cached_property
    def binomial_size(self) -> float:
        """Number of rows with which a binomial share has an interval as wide as that of the pilot."""
        if not math.isnan(self.size):
            return self.size

        def is_enough(size: float) -> bool:
            lower, upper = _share_limits(self.share, size, self.confidence, self.degrees())
            return (_f1(upper) - _f1(lower) if self.scale == "jaccard" else upper - lower) <= self.width

        return smallest_factor(is_enough) or math.nan

    @cached_property
    def variance(self) -> float:
        """Variance of the mean, for the scale `mean`, with which its interval is as wide as that of the pilot."""
        tails = tail(self.confidence, self.degrees())

        def is_enough(precision: float) -> bool:
            lower, upper = self._mean_limits(1 / precision, self.size, tails)
            return upper - lower <= self.width

        return 1 / (smallest_factor(is_enough, 1.0, 1e15) or math.nan)

    def _mean_limits(self, variance: float, size: float, tails: object) -> tuple[float, float]:
        numbers = (np.asarray(number, dtype=np.float64) for number in (self.value, variance, size, tails))
        lower, upper = mean_limits(*numbers)
        return float(lower), float(upper)

    @property
    def error_on_scale(self) -> float:
        """Standard error of the number on its scale, where that is one."""
        return sum(self._distances) / 2 / float(t_quantile(self.confidence, self.degrees()))

    @property
    def _distances(self) -> tuple[float, float]:
        """Distances of the limits from the number on the scale.

        A limit that is cut off has the distance of the other one, or that of the bound if it is larger.
        """
        down, up = (self._distance(limit) for limit in (self.lower, self.upper))
        return (max(down, up) if self.is_cut(self.lower) else down), (max(down, up) if self.is_cut(self.upper) else up)

    def _distance(self, limit: float) -> float:
        transform, _ = _SCALES[self.scale]
        is_end = (self.scale in {"lack", "logit"} and limit >= 1) or (self.scale in {"log", "logit"} and limit <= 0)
        return 0.0 if is_end else abs(transform(limit) - transform(self.value))

    def is_cut(self, limit: float) -> bool:
        """Whether a limit lies where limits are cut off."""
        return limit in self.bounds


def smallest_in_both_ways(pilot: Pilot, is_enough: Callable[[float], bool]) -> float | None:
    """The smallest factor that is enough, with clusters that are replicates of their own or else with groups of them.

    Args:
        pilot: Whose units are counted.
        is_enough: Whether a factor is; in each of the two ways every larger one is, too.
    """
    lowest = FEWEST_UNITS / pilot.units if math.isfinite(pilot.units) else 1e-9
    if pilot.has_groups and not pilot.is_grouped:
        most = MOST_OWN_REPLICATES / pilot.units
        if most > lowest and (factor := smallest_factor(is_enough, lowest, most)) is not None:
            return factor
        lowest = max(lowest, math.nextafter(most, math.inf))
    return smallest_factor(is_enough, lowest, max(1e9, 2 * lowest))


def _share_limits(share: float, size: float, confidence: float, degrees: float) -> tuple[float, float]:
    hits, misses = np.asarray(size * share), np.asarray(size * (1 - share))
    lower, upper = binomial_limits(hits, misses, tail(confidence, degrees))
    return float(lower), float(upper)


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)
