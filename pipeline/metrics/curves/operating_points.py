"""Thresholds chosen by a criterion: best F-beta, a ratio that is high enough, lowest cost, a capacity, or given."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...tables.sweep import THRESHOLD
from ..uncertainty.limits import of_chosen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...tables.sweep import Boundary

CRITERION = "criterion"
NOT_REACHED, NOT_PROMISED = "not_reached", "not_promised"
MAX_DECIMALS = 9
MAX_BETA = 1e6  # above, F-beta is practically recall
MAX_COST = 1e9
KINDS = ("min_precision", "min_recall", "beta", "threshold", "max_alerts", "max_alert_share", "cost")

Amount = Annotated[float, Field(ge=-MAX_COST, le=MAX_COST)]


class Cost(BaseModel):
    """What a row costs by its outcome, in any unit; a negative cost is a gain.

    Attributes:
        fp: A false positive; more than a true negative.
        fn: A false negative; more than a true positive.
        tp: A true positive.
        tn: A true negative.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fp: Amount
    fn: Amount
    tp: Amount = 0.0
    tn: Amount = 0.0

    @model_validator(mode="after")
    def _reasonable(self) -> Cost:
        if self.fp <= self.tn or self.fn <= self.tp:
            message = (
                "a false positive must cost more than a true negative, and a false negative more than a true positive, "
                "for example { fp = 1, fn = 20 }: else it is best to retrieve all rows or none, whatever they score"
            )
            raise ValueError(message)
        if any(round(value, MAX_DECIMALS) != value for value in self.by_outcome):
            message = f"a cost has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        return self

    @property
    def by_outcome(self) -> tuple[float, float, float, float]:
        """The costs of a true positive, a false positive, a false negative and a true negative."""
        return self.tp, self.fp, self.fn, self.tn

    @property
    def whole(self) -> tuple[int, int, int, int]:
        """`by_outcome` in the largest unit of which all costs are multiples, so that totals of counts are exact."""
        exact = [Fraction(repr(value)) for value in self.by_outcome]
        denominator = lcm(*(value.denominator for value in exact))
        tp, fp, fn, tn = (value.numerator * (denominator // value.denominator) for value in exact)
        unit = gcd(tp, fp, fn, tn)
        return tp // unit, fp // unit, fn // unit, tn // unit

    @property
    def text(self) -> str:
        """As the column `criterion` has it: `fp:1,fn:20`."""
        further = ((name, value) for name, value in (("tp", self.tp), ("tn", self.tn)) if value)
        return ",".join(f"{name}:{_short(value)}" for name, value in (("fp", self.fp), ("fn", self.fn), *further))


class Criterion(BaseModel):
    """What a threshold is chosen for: exactly one of the attributes, but for `confidence`.

    Attributes:
        min_precision: Highest recall among the thresholds with at least this precision.
        confidence: Goes with `min_precision` and `min_recall`: the ratio is at least that high on new data with this
            confidence, even though the threshold is chosen after looking at all of them.
        min_recall: Highest precision among the thresholds with at least this recall.
        beta: Highest F-beta, for beta up to 1,000,000.
        threshold: This threshold, whatever the data say.
        max_alerts: The lowest threshold that retrieves at most so many rows, or so much weight, of a group.
        max_alert_share: The lowest threshold that retrieves at most this share of all rows of a group.
        cost: Lowest total cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_precision: Annotated[float, Field(ge=0, le=1)] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    min_recall: Annotated[float, Field(ge=0, le=1)] | None = None
    beta: Annotated[float, Field(gt=0, le=MAX_BETA)] | None = None
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_alerts: Annotated[int, Field(ge=1)] | None = None
    max_alert_share: Annotated[float, Field(gt=0, le=1)] | None = None
    cost: Cost | None = None

    @model_validator(mode="after")
    def _one(self) -> Criterion:
        if sum(getattr(self, name) is not None for name in KINDS) != 1:
            message = f"an operating point has exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}"
            raise ValueError(message)
        if self.confidence is not None and self.min_precision is None and self.min_recall is None:
            message = "confidence goes with min_precision or min_recall: no other criterion keeps a minimum"
            raise ValueError(message)
        if self.min_precision is not None and round(self.min_precision, MAX_DECIMALS) != self.min_precision:
            message = f"min_precision has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        return self

    @property
    def is_given(self) -> bool:
        """Whether the threshold is the user's own, so that nothing is chosen."""
        return self.threshold is not None

    @property
    def has_capacity(self) -> bool:
        """Whether a number or a share of rows to retrieve bounds the choice."""
        return self.max_alerts is not None or self.max_alert_share is not None

    @property
    def text(self) -> str:
        """Text of the column `criterion`."""
        if self.beta is not None:
            return f"max_f{_short(self.beta)}"
        if self.cost is not None:
            return f"cost={self.cost.text}"
        name = next(name for name in KINDS if getattr(self, name) is not None)
        value = getattr(self, name)
        shown = _short(value) if name in {"threshold", "max_alert_share"} else repr(value)
        return f"{name}={shown}" if self.confidence is None else f"{name}={shown},confidence={self.confidence!r}"


def _short(value: float) -> str:
    """A number without zeros that say nothing."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def each_once(criteria: tuple[Criterion, ...], *, counts_all: bool = False) -> tuple[Criterion, ...]:
    """The criteria, if there is one and none is given twice; else a ValueError that says so.

    Args:
        criteria: As the config has them.
        counts_all: Whether true negatives are counted, so that there are costs of these, and shares of all rows.
    """
    texts = [criterion.text for criterion in criteria]
    if not criteria or len(set(texts)) < len(texts):
        message = f"give each criterion once, and at least one: {', '.join(texts) or 'none is given'}"
        raise ValueError(message)
    if counts_all:
        return criteria
    if any(criterion.max_alert_share is not None for criterion in criteria):
        message = "max_alert_share is a share of all rows, and this stage counts no true negatives: use max_alerts"
        raise ValueError(message)
    if any(criterion.cost is not None and criterion.cost.tn for criterion in criteria):
        message = "cost: this stage counts no true negatives, so that tn has no cost or gain: leave it out"
        raise ValueError(message)
    return criteria


def given_thresholds(criteria: Iterable[Criterion]) -> tuple[float, ...]:
    """The thresholds that users gave as operating points, of which the curve needs a row."""
    return tuple(criterion.threshold for criterion in criteria if criterion.threshold is not None)


def holds_at(threshold: float, boundary: Boundary) -> tuple[pl.Expr, pl.Expr]:
    """What is eligible, and what is best, for the row of a curve that retrieves what a threshold would retrieve.

    Where every score is a threshold, that is the lowest score at or above the given one; where a score equal to the
    threshold is not retrieved, it is the highest at or below it. A threshold that is one of the curve's has its row.
    """
    at = pl.col(THRESHOLD)
    return (at >= threshold, -at) if boundary == ">=" else (at <= threshold, at)


def pick(
    curve: pl.DataFrame,
    keys: Sequence[str],
    *,
    criterion: str,
    among: pl.Expr,
    best: pl.Expr,
    otherwise: str = NOT_REACHED,
    is_given: bool = False,
) -> pl.DataFrame:
    """The best row of every group; of several best rows, the one with the lowest threshold.

    Args:
        curve: One row per group × threshold.
        keys: Columns that identify a group.
        criterion: Text of the column `criterion`.
        among: Which rows are eligible; NULL counts as not eligible.
        best: What is maximised; rows in which it is NULL are never chosen.
        otherwise: What `undefined` says of a group in which no row is eligible.
        is_given: Whether the threshold was given, so that nothing was chosen.

    Returns:
        One row per group with the columns of the curve and `criterion`. A group in which no row is eligible keeps its
        row, with NULL in every column but these and `undefined`. Without a confidence in the criterion the quality of
        intervals says that the threshold was chosen on the same data.
    """
    eligible = curve.filter(among.fill_null(value=False), best.is_not_null())
    chosen = eligible.sort([best, pl.col(THRESHOLD)], descending=[True, False]).unique(
        subset=list(keys), keep="first", maintain_order=True
    )
    groups = curve.select(keys).unique()
    rows = groups.join(chosen, on=list(keys), how="left", nulls_equal=True)
    missing = pl.col(THRESHOLD).is_null()
    reason = pl.when(missing).then(pl.lit(otherwise)).otherwise(pl.col("undefined"))
    points = rows.with_columns(reason.alias("undefined"), pl.lit(criterion).alias(CRITERION))
    return points if is_given or "confidence=" in criterion else of_chosen(points)
