"""The before/after estimates from resampled events: studentised statistics of the bootstrap, for `intervals`.

All statistics are functions of six totals: the matches before and after the event at a threshold and at the reference,
and the compared pairs before and after it. The false positive rate F and the ratio F / H, which is 1 - precision, are
taken as logarithms. Recall and F1 are ratios N / D whose denominator may be near 0; what is resampled is N - r D with
the ratio r of the sample, so that `fieller_interval` with these quantiles gives their limits (Hwang 1995).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.bootstrap import studentised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..uncertainty.bootstrap import Resampling, Statistic, Studentised, Valued
    from ..uncertainty.jackknife import Floats
    from .estimates import Counts, Sides

_Ratio: TypeAlias = "Callable[[_Estimators], tuple[_Form, _Form]]"


@dataclass(frozen=True)
class _Form:
    """A number with its derivatives by the totals, which sums, products, quotients and logarithms carry along.

    Attributes:
        value: The number.
        slopes: Its derivative by each total.
    """

    value: Floats
    slopes: tuple[Floats, ...]

    @classmethod
    def of(cls, totals: Sequence[Floats]) -> list[_Form]:
        """The totals themselves."""
        nothing, unit = np.zeros((1, 1)), np.ones((1, 1))
        return [
            cls(total, tuple(unit if other == number else nothing for other in range(len(totals))))
            for number, total in enumerate(totals)
        ]

    def _with(self, value: Floats, *weighed: tuple[Floats | float, _Form]) -> _Form:
        """Another number, whose derivatives are a weighted sum of those of others (the chain rule)."""
        by_total = zip(*(form.slopes for _, form in weighed), strict=True)
        weights = [weight for weight, _ in weighed]
        return _Form(value, tuple(sum(w * s for w, s in zip(weights, slopes, strict=True)) for slopes in by_total))

    def __add__(self, other: _Form) -> _Form:
        return self._with(self.value + other.value, (1.0, self), (1.0, other))

    def __sub__(self, other: _Form) -> _Form:
        return self._with(self.value - other.value, (1.0, self), (-1.0, other))

    def __mul__(self, other: _Form) -> _Form:
        return self._with(self.value * other.value, (other.value, self), (self.value, other))

    def __truediv__(self, other: _Form) -> _Form:
        quotient = self.value / other.value
        return self._with(quotient, (1 / other.value, self), (-quotient / other.value, other))

    def times(self, number: Floats | float) -> _Form:
        """Multiplied by a constant."""
        return self._with(self.value * number, (number, self))

    def log(self) -> _Form:
        """Its logarithm."""
        return self._with(np.log(self.value), (1 / self.value, self))


@dataclass(frozen=True)
class _Estimators:
    """The estimators of `sums.Sums` with their derivatives.

    Attributes:
        totals: M_b, M_a, N_b and N_a, and at the reference M_b and M_a.
        reference_recall: r0.
    """

    totals: Sequence[_Form]
    reference_recall: float

    @property
    def fpr(self) -> _Form:
        """F = M_b / N_b."""
        return self.totals[0] / self.totals[2]

    @property
    def tp(self) -> _Form:
        """TP = M_a - F N_a."""
        return self.totals[1] - self.fpr * self.totals[3]

    @property
    def tp_reference(self) -> _Form:
        """TP0."""
        return self.totals[5] - self.totals[4] / self.totals[2] * self.totals[3]

    @property
    def gap(self) -> _Form:
        """The difference r0 - F0."""
        of_reference = self.totals[4] / self.totals[2]
        return _Form(self.reference_recall - of_reference.value, tuple(-slope for slope in of_reference.slopes))

    def recall(self) -> tuple[_Form, _Form]:
        """TP (r0 - F0) + F TP0 and TP0."""
        return self.tp * self.gap + self.fpr * self.tp_reference, self.tp_reference

    def f1(self) -> tuple[_Form, _Form]:
        """The same numerator, and half of M_a (r0 - F0) + TP0."""
        return self.recall()[0], (self.totals[1] * self.gap + self.tp_reference).times(0.5)

    def recall_uncorrected(self) -> tuple[_Form, _Form]:
        """TP and TP0."""
        return self.tp, self.tp_reference

    def f1_uncorrected(self) -> tuple[_Form, _Form]:
        """TP and half of M_a + TP0."""
        return self.tp, (self.totals[1] + self.tp_reference).times(0.5)

    def precision(self) -> _Form:
        """The logarithm of F / H with H = M_a / (N_a - TP0 / (r0 - F0))."""
        negatives = self.totals[3] - self.tp_reference / self.gap
        return self.fpr.log() - self.totals[1].log() + negatives.log()


def _log_rate(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
    """The logarithm of F, and its derivatives."""
    matches, pairs = totals
    return np.log(matches / pairs), (1 / matches, -1 / pairs)


def _log_rates(totals: Sequence[Floats], sample: Sequence[Floats]) -> Valued:
    """The logarithm of F / H, and its derivatives."""
    (before, before_slopes), (after, after_slopes) = (_log_rate(side, sample) for side in (totals[:2], totals[2:]))
    return before - after, (*before_slopes, *(-slope for slope in after_slopes))


def _difference(ratio: _Ratio, reference_recall: float) -> Statistic:
    """The statistic N - r D with r = N / D of the sample."""

    def top_and_bottom(totals: Sequence[Floats]) -> tuple[_Form, _Form]:
        return ratio(_Estimators(_Form.of(totals), reference_recall))

    def statistic(totals: Sequence[Floats], sample: Sequence[Floats]) -> Valued:
        (top, bottom), (top_of_sample, bottom_of_sample) = top_and_bottom(totals), top_and_bottom(sample)
        form = top - bottom.times(top_of_sample.value / bottom_of_sample.value)
        return form.value, form.slopes

    return statistic


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def resampled(
    sides: Sides, *, reference: int | None, reference_recall: float, confidence: float, resampling: Resampling
) -> dict[str, Studentised]:
    """Studentised statistics of all ratios at every threshold.

    Args:
        sides: The counts by replicates of events, at least two, all of which have compared pairs.
        reference: Index of the threshold that recall is measured against; None: ratios that need it are left out.
        reference_recall: What recall is believed to be at the reference.
        confidence: Such as 0.95.
        resampling: How events are drawn.

    Returns:
        By ratio: the logarithms of F and of F / H (precisions), and N - r D for recall and F1.
    """
    m_before, m_after, n_before, n_after = sides.columns

    def taken(statistic: Statistic, *counts: Counts) -> Studentised:
        return studentised(statistic, counts, confidence, resampling)

    statistics = {
        "fpr": taken(_log_rate, m_before, n_before),
        "precision_uncorrected": taken(_log_rates, m_before, n_before, m_after, n_after),
    }
    if reference is None:
        return statistics
    counts = (*sides.columns, m_before[:, [reference]], m_after[:, [reference]])

    def precision(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
        form = _Estimators(_Form.of(totals), reference_recall).precision()
        return form.value, form.slopes

    statistics["precision"] = taken(precision, *counts)
    ratios = (_Estimators.recall, _Estimators.f1, _Estimators.recall_uncorrected, _Estimators.f1_uncorrected)
    for ratio in ratios:
        statistics[ratio.__name__] = taken(_difference(ratio, reference_recall), *counts)
    return statistics
