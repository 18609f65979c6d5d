"""The page of before_after: precision and recall without labels, each number by a formula of those above it.

An article cannot cover an event that has not happened, so the matches before the event, `m_before` of `n_before`
compared pairs, measure the false positive rate, and the rest follows (Van Atteveldt, Welbers et al., gtdnews). The
`uncorrected` numbers are those of the source text. They take all pairs after the event for negative, so their fp is too
large, and their recall does not converge to recall: it is off by (fpr_at_reference recall - fpr) / (1 -
fpr_at_reference). Only `n_after - positives` pairs after the event are negative; the positives follow from what recall
is believed to be at the reference (Rogan & Gladen 1978), and what people read is corrected for them.

`PAGE` is what runs: `exactly` computes the published numbers from it, in fractions, and `in_doubles` those
without each replicate.
"""

from __future__ import annotations

import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from ...base.columns import names_in, value_of
from ...base.records import dataclass
from ...base.schemas import Column, limits_of_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

    Whole: TypeAlias = pl.Series | NDArray[np.object_]

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
        """Its column and the columns of its limits."""
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
        """The value that the page states."""
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


# The page in exact fractions, for every row of a sweep at once.
#
# A fraction is a product of whole numbers, each to its power: fpr is m_before n_before⁻¹. A sum has the divisors of
# both its sides, and what stands above them is one more whole number. So nothing is divided before the end, and what
# cancels is cancelled: with u = m_after n_before - m_before n_after, tp_uncorrected is u n_before⁻¹, and
# recall_raw_uncorrected is u u(reference)⁻¹. Every sign, and every comparison with a minimum, is decided without
# rounding error.


COUNTS = ["n_before", "n_after", "m_before", "m_after"]
_SAME_IN_GROUP = frozenset({"n_before", "n_after"})
_BITS = 127  # of whole numbers in Polars; where more are needed, those of Python take their place


def exactly(counts: pl.DataFrame, reference: NDArray[np.int64], recall_at_reference: Fraction) -> Numbers:
    """The numbers of the page, each as `Exact`.

    Args:
        counts: The columns `COUNTS`.
        reference: The row of the recall reference of every row's group; -1: it has none.
        recall_at_reference: What recall is believed to be there.
    """
    rows = _Rows({}, {}, reference)
    fractions = {name: rows.counted(name, counts[name]) for name in COUNTS}
    fractions["recall_at_reference"] = rows.constant(recall_at_reference)
    functions: dict[str, Callable[..., Exact]] = {
        "at_reference": Exact.at_reference,
        "min": Exact.least,
        "max": Exact.most,
    }
    return Numbers(fractions, functions, Exact.only)


@dataclass(frozen=True)
class _Rows:
    """The whole numbers of some rows.

    Attributes:
        integers: Each by its name, which says what it is made of.
        bits: How many bits none of them exceeds.
        reference: The row of the recall reference of every row's group; -1: it has none.
    """

    integers: dict[str, Whole]
    bits: dict[str, int]
    reference: NDArray[np.int64]

    def counted(self, name: str, counts: pl.Series) -> Exact:
        """A count."""
        self.integers[name], self.bits[name] = counts.cast(pl.Int128), int(counts.max() or 0).bit_length()  # type: ignore[arg-type]
        return self._everywhere({name: 1})

    def constant(self, number: int | Fraction) -> Exact:
        """The same number in every row."""
        powers = _product({str(number.numerator): 1}, {str(number.denominator): -1})
        for name in powers:
            self.integers[name], self.bits[name] = self._filled(int(name)), int(name).bit_length()
        return self._everywhere(powers)

    def above_divisors(self, *products: Mapping[str, int]) -> list[Whole]:
        """The numerators of some products, all of one type that has a bit more than the largest."""
        names = [[name for name, power in powers.items() for _ in range(power)] for powers in products]
        is_wide = max(sum(self.bits[name] for name in factors) for factors in names) + 1 >= _BITS
        return [self._multiplied(factors, is_wide=is_wide) for factors in names]

    def _multiplied(self, names: Sequence[str], *, is_wide: bool) -> Whole:
        factors = [self.integers[name] for name in names] or [self._filled(1)]
        return reduce(operator.mul, map(_wide, factors) if is_wide else factors)

    def _filled(self, number: int) -> Whole:
        return pl.Series([number], dtype=pl.Int128).new_from_index(0, len(self.reference))

    def _everywhere(self, powers: Mapping[str, int]) -> Exact:
        return Exact(self, powers, np.ones(len(self.reference), dtype=np.bool_))


@dataclass(frozen=True)
class Exact:
    """A fraction in every row.

    Attributes:
        rows: The whole numbers of the rows.
        powers: The power of each of those that it is a product of.
        is_defined: Whether a row has it; its divisors are above 0 there.
    """

    rows: _Rows
    powers: Mapping[str, int]
    is_defined: NDArray[np.bool_]

    def __mul__(self, other: Exact | int) -> Exact:
        """The product."""
        other = self._exact(other)
        return Exact(self.rows, _product(self.powers, other.powers), self.is_defined & other.is_defined)

    __rmul__ = __mul__

    def __truediv__(self, other: Exact) -> Exact:
        """The quotient, defined where the other is above 0."""
        inverse = {name: -power for name, power in other.powers.items()}
        return Exact(self.rows, _product(self.powers, inverse), self.is_defined & other.has(">", 0))

    def __add__(self, other: Exact) -> Exact:
        """The sum."""
        return self._joined(other, "+", operator.add)

    def __sub__(self, other: Exact) -> Exact:
        """The difference."""
        return self._joined(other, "-", operator.sub)

    def least(self, other: Exact | int) -> Exact:
        """The smaller one."""
        return self._joined(other, "min", lambda left, right: _where(_doubles(right - left) >= 0, left, right))

    def most(self, other: Exact | int) -> Exact:
        """The larger one."""
        return self._joined(other, "max", lambda left, right: _where(_doubles(left - right) >= 0, left, right))

    def has(self, sign: str, other: Exact | int | Fraction) -> NDArray[np.bool_]:
        """Whether a row has both, and this one has a sign of `SIGNS` towards the other."""
        if other == 0:  # divisors are above it, and doubles have the signs of the whole numbers that they stand for
            (numerator,) = self.rows.above_divisors(self.powers)
            return np.asarray(self.is_defined & SIGNS[sign](_doubles(numerator), 0))
        other = self._exact(other)
        left, right = self.rows.above_divisors(*self._over_divisors(other)[:2])
        return np.asarray(self.is_defined & other.is_defined & SIGNS[sign](_doubles(left - right), 0))

    def only(self, left: Exact, sign: str, right: Exact | int) -> Exact:
        """It where another one has a sign towards a third."""
        return Exact(self.rows, self.powers, self.is_defined & left.has(sign, right))

    def at_reference(self) -> Exact:
        """It at the recall reference of every row's group."""
        reference, powers = self.rows.reference, {}
        for name, power in self.powers.items():
            there = name if name in _SAME_IN_GROUP else f"at_reference({name})"
            if there not in self.rows.integers:
                self.rows.integers[there] = self.rows.integers[name][np.maximum(reference, 0)]
                self.rows.bits[there] = self.rows.bits[name]
            powers[there] = power
        return Exact(self.rows, powers, (reference >= 0) & self.is_defined[reference])

    def over_divisors(self, name: str) -> pl.Series:
        """The numerator."""
        (numerator,) = self.rows.above_divisors(self.powers)
        return pl.Series(name, numerator, dtype=pl.Int128)

    def doubles(self) -> Floats:
        """It as doubles; nan where it is undefined."""
        inverse = {name: -power for name, power in self.powers.items()}
        over, under = self.rows.above_divisors(self.powers, inverse)
        if isinstance(over, pl.Series):
            undefined = np.full(len(self.is_defined), np.nan)
            return np.asarray(np.divide(_doubles(over), _doubles(under), out=undefined, where=self.is_defined))
        pairs = zip(over, under, self.is_defined, strict=True)
        return np.array([left / right if is_defined else np.nan for left, right, is_defined in pairs], np.float64)

    def _exact(self, other: Exact | int | Fraction) -> Exact:
        return other if isinstance(other, Exact) else self.rows.constant(other)

    def _over_divisors(self, other: Exact) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Both numerators over their common divisors, and these divisors."""
        names = sorted({*self.powers, *other.powers})
        divisors = {name: min(self.powers.get(name, 0), other.powers.get(name, 0), 0) for name in names}
        inverse = {name: -power for name, power in divisors.items()}
        return _product(self.powers, inverse), _product(other.powers, inverse), _product(divisors, {})

    def _joined(self, other: Exact | int, words: str, join: Callable[[Whole, Whole], Whole]) -> Exact:
        """One whole number that is made of what both are over their common divisors, and these."""
        other, rows = self._exact(other), self.rows
        left, right, divisors = self._over_divisors(other)
        name = f"({_text(left)} {words} {_text(right)})"
        if name not in rows.integers:
            rows.integers[name] = join(*rows.above_divisors(left, right))
            rows.bits[name] = 1 + max(
                sum(rows.bits[each] * power for each, power in powers.items()) for powers in (left, right)
            )
        return Exact(rows, _product(divisors, {name: 1}), self.is_defined & other.is_defined)


def _product(powers: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """The powers of a product, without what cancels, and without 1."""
    sums = {name: powers.get(name, 0) + others.get(name, 0) for name in (*powers, *others)}
    return {name: power for name, power in sums.items() if power and name != "1"}


def _text(powers: Mapping[str, int]) -> str:
    """A product in words, the same for the same product."""
    return " ".join(f"{name}^{powers[name]}" for name in sorted(powers))


def _doubles(integers: Whole) -> Floats:
    """Whole numbers as doubles."""
    return integers.cast(pl.Float64).to_numpy() if isinstance(integers, pl.Series) else integers.astype(np.float64)


def _wide(integers: Whole) -> Whole:
    """Whole numbers as Python integers."""
    return np.array(integers.to_list(), dtype=object) if isinstance(integers, pl.Series) else integers


def _where(holds: NDArray[np.bool_], left: Whole, right: Whole) -> Whole:
    """One of two whole numbers in every row."""
    if isinstance(left, pl.Series) and isinstance(right, pl.Series):
        return left.zip_with(pl.Series(holds), right)
    return np.where(holds, left, right)
