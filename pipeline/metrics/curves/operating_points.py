"""Operating points: thresholds chosen by a criterion, what they cost, and what they are worth elsewhere."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...base.columns import RATIOS, THRESHOLD, beside, nothing
from ...base.records import dataclass
from ...base.schemas import Column, limits_of_share
from ..uncertainty.limits import limit_names, of_chosen
from .decisions import MAX_DECIMALS, Cost, by_fold, cross_fitted, keeps_precision, keeps_recall, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ...base.columns import Boundary
    from ..uncertainty.jackknife import Floats, Limits
    from .decisions import Bools, Ints


CRITERION, _RATED = "criterion", "_rated"
_NOT_REACHED, _NOT_PROMISED = "not_reached", "not_promised"
_MAX_BETA = 1e6  # above, F-beta is practically recall
_KINDS = ("min_precision", "min_recall", "beta", "threshold", "max_alerts", "max_alert_share", "cost", "youden_j")


class Criterion(BaseModel):
    """The purpose of a threshold: exactly one of the attributes, but for `confidence`.

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
        youden_j: True: highest Youden's J, recall less false positive rate (Youden 1950).
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    min_precision: Annotated[float, Field(ge=0, le=1)] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    min_recall: Annotated[float, Field(ge=0, le=1)] | None = None
    beta: Annotated[float, Field(gt=0, le=_MAX_BETA)] | None = None
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_alerts: Annotated[int, Field(ge=1)] | None = None
    max_alert_share: Annotated[float, Field(gt=0, le=1)] | None = None
    cost: Cost | None = None
    youden_j: Literal[True] | None = None

    @model_validator(mode="after")
    def _one(self) -> Criterion:
        if sum(getattr(self, name) is not None for name in _KINDS) != 1:
            message = f"an operating point has exactly one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}"
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
            return f"max_f{short(self.beta)}"
        if self.cost is not None:
            return f"cost={self.cost.text}"
        if self.youden_j:
            return "max_youden_j"
        name = next(name for name in _KINDS if getattr(self, name) is not None)
        value = getattr(self, name)
        shown = short(value) if name in {"threshold", "max_alert_share"} else repr(value)
        return f"{name}={shown}" if self.confidence is None else f"{name}={shown},confidence={self.confidence!r}"


def each_once(criteria: tuple[Criterion, ...], *, counts_all: bool = False) -> tuple[Criterion, ...]:
    """The criteria, if there is one and none is given twice; else a ValueError that says so.

    If not all outcomes are counted there are no costs of true negatives, and no shares of all rows.
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
    if any(criterion.youden_j for criterion in criteria):
        message = "youden_j needs true negatives, and this stage counts none: use beta, or a cost"
        raise ValueError(message)
    if any(criterion.cost is not None and criterion.cost.tn for criterion in criteria):
        message = "cost: this stage counts no true negatives, so that tn has no cost or gain: leave it out"
        raise ValueError(message)
    return criteria


def given_thresholds(criteria: Iterable[Criterion]) -> tuple[float, ...]:
    """The thresholds that users gave as operating points, of which the curve needs a row."""
    return tuple(criterion.threshold for criterion in criteria if criterion.threshold is not None)


def holds_at(threshold: float, boundary: Boundary) -> tuple[pl.Expr, pl.Expr]:
    """Eligibility and rank of rows of a curve, for the row that retrieves as a given threshold would.

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
    otherwise: str = _NOT_REACHED,
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
    groups, highest = curve[list(keys)].unique(), pl.col(_RATED).max()
    rated = curve.with_columns(pl.when(among.fill_null(value=False)).then(best).alias(_RATED))
    chosen = rated.filter(pl.col(_RATED) == (highest if groups.height == 1 else highest.over(keys)))
    if chosen.height > 1:
        chosen = chosen.sort(THRESHOLD).unique(subset=list(keys), keep="first", maintain_order=True)
    chosen = chosen[[*keys, *(name for name in curve.columns if name not in keys)]]
    if chosen.height < groups.height:
        chosen = groups.join(chosen, on=list(keys), how="left", nulls_equal=True)
    missing = pl.col(THRESHOLD).is_null()
    reason = pl.when(missing).then(pl.lit(otherwise)).otherwise(pl.col("undefined"))
    points = chosen.with_columns_seq(reason.alias("undefined"), pl.lit(criterion).alias(CRITERION))
    return points if is_given or "confidence=" in criterion else of_chosen(points)


_CROSS_FITTED = ("precision_cross_fitted", "recall_cross_fitted", "f1_cross_fitted")
_UNDEFINED_CROSS_FITTED = "undefined_cross_fitted"
_MEANINGS = (
    "precision where the threshold is [chosen on other clusters](methods/threshold_sweep.md#operating-points)",
    "recall where the threshold is chosen on other clusters",
    "F1 where the threshold is chosen on other clusters: what the same choice gives on other data",
)
COLUMNS = (
    *(
        column
        for name, meaning in zip(_CROSS_FITTED, _MEANINGS, strict=True)
        for column in (Column(name, "DOUBLE", f"{meaning}; NULL: none can be given"), *limits_of_share(name, name))
    ),
    Column(
        _UNDEFINED_CROSS_FITTED,
        "VARCHAR",
        "why one of these three ratios is NULL: `confidence`, `given`, `one_replicate`, `not_reached`, "
        "`undefined_ratio`, `none`; NULL: all three are given",
    ),
)
COST, _COST_CROSS_FITTED = "cost", "cost_cross_fitted"
_COST_COLUMNS = (
    Column(
        COST,
        "DOUBLE",
        "total cost of the outcomes at the threshold, of the weights if there are any; NULL: not reached, or a "
        "criterion without costs",
    ),
    Column(
        _COST_CROSS_FITTED,
        "DOUBLE",
        "total cost where the threshold is chosen on other clusters; NULL: none can be given",
    ),
)


def criterion_column(examples: str) -> Column:
    """The column `criterion` of a table of operating points."""
    meaning = f"what the threshold was chosen for: {examples}, `threshold=6.54`, `max_alerts=500`, `cost=fp:1,fn:20`, …"
    return Column(CRITERION, "VARCHAR", meaning)


def cost_columns(criteria: Iterable[Criterion]) -> tuple[Column, ...]:
    """Columns that operating points have beside their contract: costs, if a criterion has any."""
    return _COST_COLUMNS if any(criterion.cost is not None for criterion in criteria) else ()


# Counts of the four outcomes of a threshold, as columns or as arrays, and what criteria ask of them: alerts and
# costs.
#
# The total cost of a threshold is the sum of what its outcomes cost (Elkan 2001); a cost below 0 is a gain.


_Values = TypeVar("_Values", pl.Expr, NDArray[np.float64])

_ROUNDING = 1e-12  # sums of weights are rounded
_DIGITS = 14  # costs of weights that differ less are equal


@dataclass(frozen=True)
class Outcomes(Generic[_Values]):
    """Counts of true and false positives and negatives, or sums of weights, of one shape; `tn` may not be counted.

    `neither` is what is retrieved and counts neither as true nor as false; None: nothing.
    """

    tp: _Values
    fp: _Values
    fn: _Values
    tn: _Values | None = None
    neither: _Values | None = None

    @property
    def retrieved(self) -> _Values:
        """The rows that the threshold retrieves."""
        judged = self.tp + self.fp
        return judged if self.neither is None else judged + self.neither

    def cost(self, cost: Cost) -> _Values:
        """The total cost."""
        return self._total(*cost.by_outcome)

    def whole_cost(self, cost: Cost) -> _Values:
        """The total cost in the unit in which costs are whole numbers, so that equal costs of counts are equal."""
        return self._total(*cost.whole)

    def _total(self, tp: float, fp: float, fn: float, tn: float) -> _Values:
        total = self.tp * tp + self.fp * fp + self.fn * fn
        return total + self.tn * tn if tn and self.tn is not None else total

    @property
    def youden_j(self) -> _Values:
        """Youden's J."""
        tn = self.fp * math.nan if self.tn is None else self.tn
        return self.tp / (self.tp + self.fn) - self.fp / (self.fp + tn)

    def excess(self, criterion: Criterion, share: float = 1.0) -> _Values:
        """By how much the threshold retrieves more than the capacity of a criterion; 0 or less: it does not.

        Of a share of the data `max_alerts`, which is for all of them, is that share.
        """
        if criterion.max_alerts is not None:
            return self.retrieved - criterion.max_alerts * share * (1 + _ROUNDING)
        missed = self.fn if self.tn is None else self.fn + self.tn
        most = (criterion.max_alert_share or 1.0) * (1 + _ROUNDING)
        return self.retrieved - (self.retrieved + missed) * most


def lowest_cost(outcomes: Outcomes[pl.Expr], cost: Cost) -> pl.Expr:
    """The negative cost, to be maximised; costs of weights that differ by rounding are equal."""
    return -outcomes.whole_cost(cost).cast(pl.Float64).round_sig_figs(_DIGITS)


# The table of operating points of a curve: thresholds chosen by criteria, and what the choice is worth elsewhere.
#
# A criterion with a confidence chooses among the thresholds that keep its minimum on new data (`promises`). The
# choice of any other criterion is repeated without each fold of clusters in turn and counted on that fold
# (`cross_fitting`); a given threshold is no choice.


NotFitted: TypeAlias = Literal[
    "none",  # clusters, but uncertainty = "none": replicates were not counted
    "confidence",  # the criterion has a confidence, and holds on new data by itself
    "given",  # the threshold was given, and is the same on new data
    "one_replicate",  # fewer than two clusters
    "not_reached",  # without some fold no threshold meets the criterion
    "undefined_ratio",  # the choice retrieves nothing of the data that it was not made on
]
_Fitted: TypeAlias = tuple[float | str | None, ...]  # ratios, their limits, cost, and why a ratio is missing
_LIMITS_CROSS_FITTED = limit_names(_CROSS_FITTED)
_BATCH_CELLS = 1_000_000  # replicates × thresholds of the groups whose choices are made at once


def _one_by_one(limits: Sequence[Mapping[str, Limits]]) -> dict[str, Limits]:
    """Limits of shape (1,) of several groups, by ratio, one after the other; nan where a group has none."""
    nothing = np.full(1, np.nan), np.full(1, np.nan)
    names = dict.fromkeys(name for of_group in limits for name in of_group)
    sides = {name: zip(*(of_group.get(name, nothing) for of_group in limits), strict=True) for name in names}
    return {name: (np.concatenate(lower), np.concatenate(upper)) for name, (lower, upper) in sides.items()}


@dataclass(frozen=True)
class Candidates:
    """One group of a curve, for criteria to choose from.

    Attributes:
        rows: Its rows by rising threshold, with the keys.
        lower: Lower limits, shape (K,), of `precision` or `recall` by two-sided confidence; None: there are none.
        retrieved: Rows that each threshold retrieves, shape (K,).
        counts: Additive counts by fold and threshold, each of shape (folds, K); or why there are none.
        ratios: Precision and recall of such counts added up; the same of all groups.
        f_beta: F-beta of such counts added up, from the counts and beta; likewise.
        outcomes: Outcomes of such counts added up; likewise.
        at_folds: What all folds retrieve, each at a threshold of its own, or its limits, by the numbers of these
            thresholds, shape (F,), and the counts there, pooled, each of shape (1,); None: there are no limits.
        limits: Limits of shape (groups,) by ratio, of `at_folds` of several groups; likewise.
    """

    rows: pl.DataFrame
    lower: Callable[[str, float], Floats] | None
    retrieved: Floats
    counts: Sequence[NDArray[Any]] | NotFitted
    ratios: Callable[[Sequence[Floats]], tuple[Floats, Floats]]
    f_beta: Callable[[Sequence[Floats], float], Floats]
    outcomes: Callable[[Sequence[Floats]], Outcomes[Floats]]
    at_folds: Callable[[Ints, Sequence[Floats]], Any] | None = None
    limits: Callable[[Sequence[Any]], Mapping[str, Limits]] = _one_by_one

    def promised(self, criterion: Criterion) -> Bools:
        """Whether each threshold keeps the minimum of a criterion with its confidence."""
        lower, confidence = self.lower, criterion.confidence
        if lower is None or confidence is None:
            return np.zeros(self.rows.height, dtype=np.bool_)
        if criterion.min_recall is not None:
            return keeps_recall(lambda level: lower("recall", level), criterion.min_recall, confidence)
        minimum = criterion.min_precision or 0.0
        return keeps_precision(lambda level: lower("precision", level), self.retrieved, minimum, confidence)

    @cached_property
    def folds(self) -> Sequence[NDArray[Any]] | NotFitted:
        """The counts added up by fold, each of shape (F, K) with F ≥ 2; or why there are none."""
        if isinstance(self.counts, str):
            return self.counts
        return by_fold(self.counts) if len(self.counts[0]) > 1 else "one_replicate"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the counts by fold; empty without any."""
        return () if isinstance(self.folds, str) else self.folds[0].shape

    @property
    def cells(self) -> int:
        """How many numbers each count consists of."""
        return 0 if isinstance(self.counts, str) else self.counts[0].size

    def chosen(self, criterion: Criterion, counts: Sequence[Floats]) -> Ints:
        """The threshold that a criterion chooses by each row of counts, by number; of equally good ones the lowest."""
        best = self._best(criterion, counts)
        best = np.where(np.isnan(best), -np.inf, best)
        return np.where(best.max(axis=1) > -np.inf, best.argmax(axis=1), -1)

    def _best(self, criterion: Criterion, counts: Sequence[Floats]) -> Floats:
        """The value that a criterion maximises, from counts without one fold; nan where a threshold is not eligible."""
        if criterion.cost is not None:
            return -self.outcomes(counts).whole_cost(criterion.cost)
        if criterion.youden_j:
            return self.outcomes(counts).youden_j
        if criterion.has_capacity:
            share = 1 - 1 / self.shape[0]
            return np.where(self.outcomes(counts).excess(criterion, share) <= 0, 1.0, np.nan)
        if criterion.beta is not None:
            return self.f_beta(counts, criterion.beta)
        precision, recall = self.ratios(counts)
        if criterion.min_precision is not None:
            return np.where(precision >= criterion.min_precision, recall, np.nan)
        return np.where(recall >= (criterion.min_recall or 0.0), precision, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def ratios_of_counts(counts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Precision and recall of counts of true positives, false positives and false negatives; 0 / 0 is nan."""
    tp, fp, fn = counts[:3]
    return tp / (tp + fp), tp / (tp + fn)


@np.errstate(divide="ignore", invalid="ignore")
def f_beta_of_counts(counts: Sequence[Floats], beta: float) -> Floats:
    """F-beta of the same counts; 0 / 0 is nan."""
    tp, fp, fn = counts[:3]
    square = beta**2
    return (1 + square) * tp / ((1 + square) * tp + square * fn + fp)


def operating_points(
    curve: pl.DataFrame,
    keys: Sequence[str],
    criteria: Sequence[Criterion],
    candidates: Iterable[Candidates],
    f_beta: Callable[[float], pl.Expr],
    outcomes: Outcomes[pl.Expr],
    boundary: Boundary = ">=",
) -> pl.DataFrame:
    """The threshold that each criterion chooses in every group.

    Args:
        curve: One row per group × threshold, with `precision`, `recall` and `undefined`.
        keys: Columns that identify a group.
        criteria: What thresholds are chosen for.
        candidates: The groups of the curve.
        f_beta: F-beta of a row of the curve, by beta.
        outcomes: Outcomes of a row of the curve.
        boundary: Whether a score equal to the threshold is retrieved.

    Returns:
        One row per group and criterion: the columns of the curve, `criterion`, `choice_columns.COLUMNS`, and its
        `cost_columns`.
    """
    frames, fitted = [], []
    promised = any(criterion.confidence is not None for criterion in criteria)
    for groups in _batches(candidates):
        frames += [group.rows.with_columns(_promises(group, criteria)) for group in groups if promised]
        labels = [tuple(map(group.rows.row(0, named=True).get, keys)) for group in groups]
        for criterion in criteria:
            rows = zip(labels, _fitted(groups, criterion), strict=True)
            fitted += [(*label, criterion.text, *ratios) for label, ratios in rows]
    working = [pl.lit(value=False).alias(_promised(each)) for each in criteria if each.confidence is not None]
    whole_curve = pl.concat(frames) if frames else curve.with_columns(working)
    chosen = pl.concat(
        _point(whole_curve, keys, criterion, asked_of(criterion, f_beta, outcomes, boundary), outcomes)
        for criterion in criteria
    )
    types = {name: curve.schema[name] for name in keys} | {CRITERION: pl.String()}
    fitted_columns = (*_CROSS_FITTED, *_LIMITS_CROSS_FITTED, _COST_CROSS_FITTED)
    types |= dict.fromkeys(fitted_columns, pl.Float64()) | {_UNDEFINED_CROSS_FITTED: pl.String()}
    elsewhere = pl.DataFrame(fitted, schema=types, orient="row")
    points = beside(chosen, elsewhere, [*keys, CRITERION])
    costs = (column.name for column in cost_columns(criteria))
    return points[[*curve.columns, CRITERION, *(column.name for column in COLUMNS), *costs]]


def _batches(candidates: Iterable[Candidates]) -> Iterator[list[Candidates]]:
    """Groups whose counts by fold have one shape; of all together as many as are counted in `_BATCH_CELLS`, or one."""
    batches: dict[tuple[int, ...], list[Candidates]] = {}
    cells = 0
    for group in candidates:
        if batches and cells + group.cells > _BATCH_CELLS:
            yield from batches.values()
            batches, cells = {}, 0
        batches.setdefault(group.shape, []).append(group)
        cells += group.cells
    yield from batches.values()


def _fitted(groups: Sequence[Candidates], criterion: Criterion) -> list[_Fitted]:
    """Precision, recall, F1 and cost of the choice made on other clusters, in each group of a batch, or why none is."""
    if criterion.confidence is not None or criterion.is_given:
        return [_without("given" if criterion.is_given else "confidence")] * len(groups)
    folds = [group.folds for group in groups if not isinstance(group.folds, str)]
    if not folds:
        return [_without(group.folds) for group in groups if isinstance(group.folds, str)]
    stacked = [np.stack(count) if len(groups) > 1 else count[0][None] for count in zip(*folds, strict=True)]
    choices: list[Ints] = []

    def choose(totals: Sequence[Floats]) -> Ints:
        choices.append(groups[0].chosen(criterion, totals))
        return choices[-1]

    pooled = cross_fitted(stacked, choose)
    ratios = np.stack([*groups[0].ratios(pooled), groups[0].f_beta(pooled, 1.0)], axis=1)
    costs: list[float | None] = [None] * len(groups)
    if criterion.cost is not None:
        costs = groups[0].outcomes(pooled).cost(criterion.cost).tolist()
    limits = _limits(groups, np.stack(choices, axis=1), pooled, ratios)
    sums = [count.sum(axis=1).astype(np.float64) for count in stacked]
    limits = _widened(limits, _apart(groups[0], criterion, sums, ratios))
    rows = zip(np.isnan(pooled[0]), ratios.tolist(), limits.tolist(), costs, strict=True)
    return [
        _without("not_reached") if missing else _or_undefined(of_group, sides, cost)
        for missing, of_group, sides, cost in rows
    ]


def _limits(groups: Sequence[Candidates], chosen: Ints, pooled: Sequence[Floats], ratios: Floats) -> Floats:
    """The limits of three ratios, both of each, shape (N, 6); nan where there are none, or the ratio is not defined."""
    limits = np.full((len(groups), len(_LIMITS_CROSS_FITTED)), np.nan)
    at_folds = {
        at: group.at_folds(of_group, [count[at : at + 1] for count in pooled])
        for at, (group, of_group) in enumerate(zip(groups, chosen, strict=True))
        if group.at_folds is not None and (of_group >= 0).all()
    }
    if not at_folds:
        return limits
    of_ratios = groups[0].limits(list(at_folds.values()))
    for number, name in enumerate(RATIOS):
        if name in of_ratios:
            limits[list(at_folds), 2 * number : 2 * number + 2] = np.stack(of_ratios[name], axis=1)
    is_missing = np.isnan(ratios) | np.isnan(limits[:, ::2]) | np.isnan(limits[:, 1::2])
    return np.where(np.repeat(is_missing, 2, axis=1), np.nan, limits)


def _widened(limits: Floats, apart: Floats) -> Floats:
    """Limits of three ratios, widened to reach as far around the ratios of all data at their own threshold.

    Which of many thresholds with nearly the best F-beta is chosen is chance, too, and moves precision and recall far
    more than F-beta.
    """
    lower = np.maximum(limits[:, ::2] + np.minimum(apart, 0.0), 0.0)
    upper = np.minimum(limits[:, 1::2] + np.maximum(apart, 0.0), 1.0)
    return np.stack([lower, upper], axis=2).reshape(limits.shape)


def _apart(group: Candidates, criterion: Criterion, sums: Sequence[Floats], ratios: Floats) -> Floats:
    """By how much three ratios of all data, at their own threshold, exceed the cross-fitted ones, shape (N, 3)."""
    if criterion.has_capacity:  # a capacity of all data is another one
        return np.zeros(ratios.shape)
    best = group.chosen(criterion, sums)
    counts = [np.take_along_axis(count, best[:, None], axis=1)[:, 0] for count in sums]
    at_best = np.stack([*group.ratios(counts), group.f_beta(counts, 1.0)], axis=1)
    return np.where(best[:, None] < 0, 0.0, np.nan_to_num(at_best - ratios))


def _without(reason: NotFitted) -> _Fitted:
    return (*[None] * (len(_CROSS_FITTED) + len(_LIMITS_CROSS_FITTED) + 1), reason)


def _or_undefined(ratios: Iterable[float], limits: Iterable[float], cost: float | None) -> _Fitted:
    """Three ratios, of which nan is None and a reason, their limits, of which nan is None, and a cost."""
    values, sides = ([None if math.isnan(each) else each for each in numbers] for numbers in (ratios, limits))
    return *values, *sides, cost, "undefined_ratio" if None in values else None


def _promised(criterion: Criterion) -> str:
    return f"_promised_{criterion.text}"


def _promises(group: Candidates, criteria: Sequence[Criterion]) -> Iterator[pl.Series]:
    """A working column for each criterion with a confidence: whether the threshold keeps its minimum."""
    for criterion in criteria:
        if criterion.confidence is not None:
            yield pl.Series(_promised(criterion), group.promised(criterion), dtype=pl.Boolean)


def asked_of(
    criterion: Criterion, f_beta: Callable[[float], pl.Expr], outcomes: Outcomes[pl.Expr], boundary: Boundary
) -> tuple[pl.Expr, pl.Expr]:
    """Which rows of a curve are eligible for a criterion without a confidence, and what is best."""
    precision, recall, best = pl.col("precision"), pl.col("recall"), None
    if criterion.threshold is not None:
        return holds_at(criterion.threshold, boundary)
    if criterion.has_capacity:
        return outcomes.excess(criterion) <= 0, -pl.col(THRESHOLD)
    if criterion.cost is not None:
        best = lowest_cost(outcomes, criterion.cost)
    elif criterion.beta is not None:
        best = f_beta(criterion.beta)
    elif criterion.youden_j:
        best = outcomes.youden_j
    if best is not None:
        return pl.lit(value=True), best
    if criterion.min_precision is not None:
        return precision >= criterion.min_precision, recall
    return recall >= criterion.min_recall, precision


def _point(
    curve: pl.DataFrame,
    keys: Sequence[str],
    criterion: Criterion,
    asked: tuple[pl.Expr, pl.Expr],
    outcomes: Outcomes[pl.Expr],
) -> pl.DataFrame:
    """The row of every group that one criterion chooses, with its cost."""
    promised = criterion.confidence is not None
    among, best = asked
    points = pick(
        curve,
        keys,
        criterion=criterion.text,
        among=pl.col(_promised(criterion)) if promised else among,
        best=best.cast(pl.Float64).fill_nan(None),
        otherwise=_NOT_PROMISED if promised else _NOT_REACHED,
        is_given=criterion.is_given,
    )
    if criterion.cost is None:
        return points.hstack(nothing([COST], points.height))
    return points.with_columns(outcomes.cost(criterion.cost).cast(pl.Float64).alias(COST))
