"""The before/after estimates as exact fractions, straight from their definitions: a second computation for the tests.

The source text: FPR = M_b / N_b, FP = FPR N_a, TP = M_a - FP, P = TP / M_a, R = TP / TP(reference). Corrected, with
A = TP(reference) / (r0 - FPR(reference)) positives: FP = FPR (N_a - A), TP = M_a - FP, P = TP / M_a, R = TP / A.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Ratios = dict[str, "Fraction | str | bool | None"]
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Row:
    """Counts at one threshold of one group, and what the source text makes of them."""

    group: str | None
    threshold: float
    n_before: int
    n_after: int
    m_before: int
    m_after: int

    @property
    def fpr(self) -> Fraction | None:
        return Fraction(self.m_before, self.n_before) if self.n_before else None

    @property
    def tp(self) -> Fraction | None:
        return None if self.fpr is None else self.m_after - self.fpr * self.n_after

    @property
    def precision(self) -> Fraction | None:
        return self._share(self.tp)

    def positives(self, recall: Fraction) -> Fraction | None:
        """A, if this row is the reference and recall is known there; None if it cannot be told."""
        if self.tp is None or self.fpr is None or self.fpr >= recall:
            return None
        return self.tp / (recall - self.fpr)

    def expected(self, reference: Row | None, recall: Fraction = ONE) -> Ratios:
        """All ratios of the row, given the reference of its group and recall there."""
        positives = None if reference is None else reference.positives(recall)
        fp = tp = None
        if self.fpr is not None and positives is not None and positives <= self.n_after:
            fp = self.fpr * (self.n_after - positives)
            tp = self.m_after - fp
        at_reference = None if reference is None else reference.tp
        return {
            "fpr": self.fpr,
            **self._ratios("", fp, tp, positives),
            **self._ratios("_uncorrected", None if self.tp is None else self.m_after - self.tp, self.tp, at_reference),
            "is_reference": self == reference,
            "undefined": self._reason(reference, recall, tp),
        }

    def _ratios(self, suffix: str, fp: Fraction | None, tp: Fraction | None, positives: Fraction | None) -> Ratios:
        raw = None if tp is None or tp < 0 or positives is None else tp / positives
        recall = None if raw is None else min(raw, ONE)
        values = (fp, tp, self._share(tp), recall, raw, harmonic_mean(self._share(tp), recall))
        names = ("fp", "tp", "precision", "recall", "recall_raw", "f1")
        return {f"{name}{suffix}": value for name, value in zip(names, values, strict=True)}

    def _share(self, tp: Fraction | None) -> Fraction | None:
        return tp / self.m_after if tp is not None and self.m_after else None

    def _reason(self, reference: Row | None, recall: Fraction, tp: Fraction | None) -> str | None:
        reasons = {
            "no_before": self.n_before == 0,
            "no_prediction": self.m_after == 0,
            "no_reference": reference is None,
            "unidentified": reference is not None and reference.positives(recall) is None,
            "all_positive": tp is None,
            "negative_tp": tp is not None and tp < 0,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)


def harmonic_mean(precision: Fraction | None, recall: Fraction | None) -> Fraction | None:
    """F1; 0 where nothing right is retrieved; None without a recall."""
    if recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision else ZERO


def reference_of(
    rows: Sequence[Row], rule: str = "lowest", min_precision: Fraction = Fraction(1, 20), threshold: float | None = None
) -> Row | None:
    """The reference of one group, by definition; recall divides by its true positives, so there must be some."""
    positive = sorted((row for row in rows if row.tp is not None and row.tp > 0), key=lambda row: row.threshold)
    if rule == "fixed":
        return next((row for row in positive if row.threshold == threshold), None)
    enough = [row for row in positive if row.precision is not None and row.precision >= min_precision]
    if rule == "lowest" or not enough:
        return enough[0] if enough else None
    most = max(row.tp for row in enough if row.tp is not None)
    return next(row for row in enough if row.tp == most)


def chosen_by(
    rows: Sequence[tuple[Row, Ratios]], eligible: Callable[[Ratios], bool], value: str
) -> tuple[Row, Ratios] | None:
    """The eligible row with the largest value, the lowest threshold of equals; None if none is eligible."""
    candidates = [(row, ratios, ratios[value]) for row, ratios in rows if eligible(ratios)]
    values = [amount for _, _, amount in candidates if isinstance(amount, Fraction)]
    best = [(row, ratios) for row, ratios, amount in candidates if values and amount == max(values)]
    return min(best, key=lambda element: element[0].threshold, default=None)


def reaches(name: str, least: Fraction) -> Callable[[Ratios], bool]:
    """Whether a ratio is defined and at least so large."""

    def test(ratios: Ratios) -> bool:
        value = ratios[name]
        return isinstance(value, Fraction) and value >= least

    return test
