"""The page of before_after: precision and recall without labels, each number by a formula of those above it.

An article cannot cover an event that has not happened, so the matches before the event, `m_before` of `n_before`
compared pairs, measure the false positive rate, and the rest follows (Van Atteveldt, Welbers et al., gtdnews). The
`uncorrected` numbers are those of the source text. They take all pairs after the event for negative, so their fp is too
large, and their recall does not converge to recall: it is off by (fpr_at_reference recall - fpr) / (1 -
fpr_at_reference). Only `n_after - positives` pairs after the event are negative; the positives follow from what recall
is believed to be at the reference (Rogan & Gladen 1978), and what people read is corrected for them.

`PAGE` is what runs: `exact` computes the published numbers from it, `in_doubles` those without each replicate.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...records import dataclass
from ...tables.columns import names_in, value_of
from ...tables.schemas import Column, limits_of_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..uncertainty.jackknife import Floats

ROUNDING = 1e-12  # relative error within which doubles of a number of pairs are taken to be equal
SIGNS: dict[str, Callable[[Any, Any], Any]] = {">=": operator.ge, ">": operator.gt, "<=": operator.le}
_AT_MOST = re.compile(r"min\((\w+), 1\)")
_UNCORRECTED, _AT_REFERENCE = "_uncorrected", "_at_reference"


@dataclass(frozen=True)
class Estimate:
    """A number that the page states.

    Attributes:
        name: Its column, or the name of a step on the way to others.
        formula: Of counts, of numbers above it, and of `recall_at_reference`, which is what recall is believed to be
            there; `at_reference(x)` is x at the threshold that recall is measured against.
        only: The condition under which it is defined, beside those of its parts; divisors are above 0.
        reason: What `undefined` says where it is NULL, unless a number above it with a reason is.
        says: What a value says, a format of its `formula`; empty: it is a step, which no table shows.
        null: When it is NULL, in words.
        scale: How its limits are made: on the scale of its logarithm, of that of 1 less it, or of itself; empty: none.
        rests_on: Whether it is as sure as the matches `before` the event are many, or as those `after` it.
        limits: What the limits belong to, if its name does not say it.
    """

    name: str
    formula: str
    only: str = ""
    reason: str = ""
    says: str = ""
    null: str = ""
    scale: Literal["", "log", "lack", "plain"] = ""
    rests_on: Literal["before", "after"] = "before"
    limits: str = ""

    @property
    def is_uncorrected(self) -> bool:
        """Whether it is one of the source text."""
        return self.name.endswith(_UNCORRECTED)

    @property
    def column(self) -> Column:
        """Its column."""
        formula = _AT_MOST.sub(r"\1, at most 1", self.formula).replace(" - ", " − ").replace(" * ", " × ")
        return Column(self.name, "DOUBLE", f"{self.says.format(formula=formula)}; NULL: {self.null}")

    def columns(self) -> tuple[Column, ...]:
        """Its column and those of its limits."""
        return (self.column, *(limits_of_share(self.name, self.limits or self.name) if self.scale else ()))


PAGE = (  # a further number is one more statement: column, comment, value, limits, formula and plan follow from it
    # matches before the event are false, and as frequent after it
    Estimate(
        "fpr",
        "m_before / n_before",
        reason="no_before",
        says="false positive rate, {formula}",
        null="no pairs before",
        scale="log",
    ),
    Estimate(
        "fp_uncorrected",
        "fpr * n_after",
        says="the source text's fp: {formula}, as if no pair after the event were positive",
        null="no pairs before",
    ),
    Estimate("tp_uncorrected", "m_after - fp_uncorrected", says="{formula}; may be negative", null="no pairs before"),
    Estimate(
        "precision_uncorrected",
        "tp_uncorrected / m_after",
        reason="no_prediction",
        says="{formula}; may be negative",
        null="no pairs before, or no matches after",
        scale="lack",
    ),
    # what recall is measured against
    Estimate("tp_at_reference", "at_reference(tp_uncorrected)", reason="no_reference"),
    Estimate("fpr_at_reference", "at_reference(fpr)"),
    Estimate(
        "recall_raw_uncorrected",
        "tp_uncorrected / tp_at_reference",
        only="tp_uncorrected >= 0",
        says="tp_uncorrected / tp_uncorrected at the reference",
        null="tp_uncorrected < 0, no pairs before, or no reference",
    ),
    Estimate(
        "recall_uncorrected",
        "min(recall_raw_uncorrected, 1)",
        says="{formula}; it does not converge to recall",
        null="as recall_raw_uncorrected",
        scale="plain",
        rests_on="after",
    ),
    Estimate(
        "f1_uncorrected",
        "2 * tp_uncorrected / (m_after + max(tp_uncorrected, tp_at_reference))",
        only="tp_uncorrected >= 0",
        says="F1 of the uncorrected counts",
        null="as recall_raw_uncorrected",
        scale="plain",
        rests_on="after",
    ),
    # the positives among the pairs after the event, and what is corrected for them
    Estimate(
        "positives",
        "tp_at_reference / (recall_at_reference - fpr_at_reference)",
        only="recall_at_reference > fpr_at_reference",
        reason="unidentified",
    ),
    Estimate(
        "fp",
        "fpr * (n_after - positives)",
        only="positives <= n_after",
        reason="all_positive",
        says="estimated false positives after the event: fpr × the estimated number of negatives there",
        null="no reference, `unidentified` or `all_positive`",
    ),
    Estimate("tp", "m_after - fp", says="estimated true positives, {formula}; may be negative", null="as fp"),
    Estimate(
        "precision",
        "tp / m_after",
        says="{formula}; may be negative, never above 1",
        null="as fp, or no matches after",
        scale="lack",
        limits="the precision to expect of new events",
    ),
    Estimate(
        "recall_raw",
        "tp / positives",
        only="tp >= 0",
        reason="negative_tp",
        says="tp / estimated number of positives; may exceed 1",
        null="as fp, or tp < 0",
    ),
    Estimate(
        "recall",
        "min(recall_raw, 1)",
        says="{formula}",
        null="as recall_raw",
        scale="plain",
        rests_on="after",
        limits="recall, with the doubt in its reference",
    ),
    Estimate(
        "f1",
        "2 * tp / (m_after + max(tp, positives))",
        only="tp >= 0",
        says="2 tp / (2 tp + fp + fn), with the clipped recall",
        null="as recall_raw",
        scale="plain",
        rests_on="after",
    ),
)


STATED = {each.name: each for each in PAGE}
_FIRST = ("fpr", "fp", "tp", "precision", "recall", "recall_raw", "f1")  # what people look for; others follow


def _place(estimate: Estimate) -> tuple[bool, int]:
    name = estimate.name.removesuffix(_UNCORRECTED)
    return estimate.is_uncorrected, _FIRST.index(name) if name in _FIRST else len(_FIRST)


SHOWN = tuple(sorted((each for each in PAGE if each.says), key=_place))  # as tables show them
LIMITED = tuple(each for each in SHOWN if each.scale)


class Numbers(dict[str, Any]):
    """The numbers of the page by name, each computed from the counts when it is first asked for."""

    def __init__(
        self,
        counts: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        only: Callable[[Any, Any, str, Any], Any],
    ) -> None:
        """Begin with the counts alone.

        Args:
            counts: `m_before`, `n_before`, `m_after`, `n_after` and `recall_at_reference`, or what takes their place.
            functions: `at_reference`, `min` and `max` of such values.
            only: A value where one value has a sign (`>=`, `>`, `<=`) towards another, and elsewhere what is undefined.
        """
        super().__init__(counts)
        self._functions, self._only = functions, only

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - as the counts are
        """What the page states."""
        stated = STATED[name]
        value = value_of(stated.formula, self, self._functions)
        if stated.only:
            left, sign, right = stated.only.split()
            value = self._only(value, self._side(left), sign, self._side(right))
        self[name] = value
        return value

    def _side(self, formula: str) -> Any:  # noqa: ANN401 - as the counts are
        return value_of(formula, self, self._functions)


def in_doubles(counts: Mapping[str, Floats], reference: int | None) -> Numbers:
    """The numbers in doubles; nan is undefined, and what exceeds an upper end by no more than rounding is defined.

    Args:
        counts: As for `Numbers`, the thresholds on the last axis.
        reference: Index of the threshold that recall is measured against; None: there is none.
    """

    def at_reference(values: Floats) -> Floats:
        return np.full_like(values[..., :1], np.nan) if reference is None else values[..., [reference]]

    def only(value: Floats, left: Floats, sign: str, right: Floats) -> Floats:
        end = right * (1 + ROUNDING) if sign == "<=" else right
        return np.where(SIGNS[sign](left, end), value, np.nan)

    return Numbers(counts, {"at_reference": at_reference, "min": np.minimum, "max": np.maximum}, only)


def steps(name: str) -> tuple[tuple[str, str], ...]:
    """The formulas that lead to a number from the counts of its row and from what is known at the reference.

    What is the same at every threshold comes first.
    """
    needed = names_in(STATED[name].formula) & {each.name for each in PAGE if _AT_REFERENCE not in each.name}
    before = [step for each in PAGE if each.name in needed for step in steps(each.name)]
    every = dict.fromkeys((*before, (name, STATED[name].formula)))
    return tuple(sorted(every, key=lambda step: not all(_AT_REFERENCE in part for part in names_in(step[1]))))
