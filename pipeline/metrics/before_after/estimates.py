"""The before/after estimator: precision and recall without gold labels (Van Atteveldt, Welbers et al., gtdnews).

An article cannot cover an event that has not happened, so the matches before the event, M_b of N_b compared pairs,
measure the false positive rate, and the rest follows:

    FPR = M_b / N_b     FP = FPR N_a     TP = M_a - FP     P = TP / M_a     R = TP / TP(reference)

All ratios are computed from exact integers, using the common numerator u = M_a N_b - M_b N_a:

    TP = u / N_b        P = u / (M_a N_b)        R = u / u(reference)

so every sign, and every comparison with a minimum precision, is decided without rounding error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import polars as pl

from pipeline.metrics.curves.operating_points import Criterion, pick
from pipeline.tables.ratios import quotient
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

ReferenceRule = Literal["lowest", "max", "fixed"]

_U = "_u"
_U_REFERENCE = "_u_reference"
_RETRIEVED = "_retrieved"
_FPR_REFERENCE = "_fpr_reference"
_REFERENCE = "_reference_threshold"
_POSITIVES = "_positives"


def estimates(
    sweep: pl.DataFrame,
    keys: Sequence[str],
    *,
    rule: ReferenceRule = "lowest",
    min_precision: float = 0.05,
    threshold: float | None = None,
    reference_recall: float = 1.0,
) -> pl.DataFrame:
    """Estimates at every threshold.

    Args:
        sweep: One row per group × threshold with the integers `n_before`, `n_after` (compared pairs of the group) and
            `m_before`, `m_after` (pairs at or above the threshold).
        keys: Columns that identify a group.
        rule: Which threshold recall is measured against. `lowest`: the lowest whose precision is at least
            `min_precision` (source text of the method); `max`: among those, the one with the most true positives
            (the gtdnews code; on ties the lowest); `fixed`: `threshold`.
        min_precision: A fraction with at most 9 decimals, compared exactly.
        threshold: The reference threshold of the rule `fixed`; it must be one of the thresholds.
        reference_recall: What recall is believed to be at the reference; only the corrected columns use it.

    Returns:
        The rows with the columns of the table `before_after_estimates`. Null rules: with N_b = 0 all ratios are NULL
        (`no_before`); with M_a = 0 precision is NULL (`no_prediction`); with TP < 0 recall and F1 are NULL
        (`negative_tp`); without a reference threshold recall and F1 are NULL (`no_reference`); if FPR(reference) is
        not below r0 the corrected columns are NULL (`unidentified`). Precision may be negative and `recall_raw` may
        exceed 1; `recall` is clipped to 1. F1 is computed from counts, 2 TP / (2 TP + FP + FN), so it is 0 and not
        NULL where nothing is retrieved although something could be.

    The corrected columns remove the overestimate of FP: only N_a - A pairs after the event are negative, where
    A = TP(reference) / (r0 - FPR(reference)) estimates the positives (Rogan & Gladen 1978) and r0 is
    `reference_recall`; TP_c = TP + FPR A, P_c = TP_c / M_a, R_c = TP_c / A.
    """
    frame = with_ratios(sweep)
    references = reference_rows(frame, keys, rule=rule, min_precision=min_precision, threshold=threshold)
    frame = _with_corrected(with_recalls(frame, keys, references), reference_recall)
    frame = frame.with_columns(_undefined().alias("undefined"))
    return frame.drop(_U, _U_REFERENCE, _RETRIEVED, _FPR_REFERENCE, _REFERENCE, _POSITIVES)


def _wide(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int128)


def _numerator() -> pl.Expr:
    return _wide("m_after") * _wide("n_before") - _wide("m_before") * _wide("n_after")


def _retrieved() -> pl.Expr:
    return _wide("m_after") * _wide("n_before")


def at_least(numerator: pl.Expr, denominator: pl.Expr, bound: float) -> pl.Expr:
    """Whether numerator / denominator ≥ bound, decided with integers; false for 0 / 0.

    Args:
        numerator: Int128.
        denominator: Int128, not negative.
        bound: A fraction with at most 9 decimals, taken to be the decimal that it prints as.
    """
    exact = Fraction(repr(float(bound)))
    enough = numerator * exact.denominator >= denominator * exact.numerator
    return enough & (denominator > 0)


def _divide(frame: pl.DataFrame, numerator: pl.Expr, denominator: pl.Expr) -> pl.Series:
    """`quotient` of two expressions over a frame."""
    return quotient(*(frame.select(expression).to_series() for expression in (numerator, denominator)))


def with_ratios(sweep: pl.DataFrame) -> pl.DataFrame:
    """Add what no reference changes: `fpr`, `fp`, `tp`, `precision`, and working columns for `with_recalls`.

    Args:
        sweep: As for `estimates`.
    """
    frame = sweep.with_columns(_numerator().alias(_U), _retrieved().alias(_RETRIEVED))
    return frame.with_columns(
        _divide(frame, pl.col("m_before"), pl.col("n_before")).alias("fpr"),
        _divide(frame, _wide("m_before") * _wide("n_after"), _wide("n_before")).alias("fp"),
        _divide(frame, pl.col(_U), _wide("n_before")).alias("tp"),
        _divide(frame, pl.col(_U), pl.col(_RETRIEVED)).alias("precision"),
    )


def reference_rows(
    frame: pl.DataFrame,
    keys: Sequence[str],
    *,
    rule: ReferenceRule,
    min_precision: float,
    threshold: float | None = None,
) -> pl.DataFrame:
    """Return the row of every group that its recall is measured against; a group without one is not in it.

    Args:
        frame: Result of `with_ratios`.
        keys: Columns that identify a group.
        rule: As for `estimates`.
        min_precision: As for `estimates`.
        threshold: As for `estimates`.
    """
    if rule == "fixed":
        eligible = pl.col(THRESHOLD) == threshold
    else:
        eligible = at_least(pl.col(_U), pl.col(_RETRIEVED), min_precision) & (pl.col("n_before") > 0)
    candidates = frame.filter(eligible, pl.col(_U) > 0)
    order = [pl.col(_U), pl.col(THRESHOLD)] if rule == "max" else [pl.col(THRESHOLD)]
    ranked = candidates.sort(order, descending=[rule == "max", False][: len(order)])
    return ranked.unique(subset=list(keys), keep="first", maintain_order=True)


def with_recalls(frame: pl.DataFrame, keys: Sequence[str], references: pl.DataFrame) -> pl.DataFrame:
    """Add `is_reference`, `recall_raw`, `recall` and `f1`, and working columns of the references.

    Args:
        frame: Result of `with_ratios`.
        keys: Columns that identify a group.
        references: Result of `reference_rows`.
    """
    names = {THRESHOLD: _REFERENCE, _U: _U_REFERENCE, "fpr": _FPR_REFERENCE}
    renamed = references.select(*keys, *(pl.col(name).alias(alias) for name, alias in names.items()))
    frame = frame.join(renamed, on=list(keys), how="left", nulls_equal=True)
    u = pl.when((pl.col(_U) >= 0) & (pl.col("n_before") > 0)).then(pl.col(_U))
    raw = _divide(frame, u, pl.col(_U_REFERENCE))
    positives = pl.max_horizontal(pl.col(_U), pl.col(_U_REFERENCE))
    doubled_u = pl.when(pl.col(_U_REFERENCE).is_not_null()).then(2 * u)
    f1 = _divide(frame, doubled_u, pl.col(_RETRIEVED) + positives)
    is_reference = (pl.col(THRESHOLD) == pl.col(_REFERENCE)).fill_null(value=False).alias("is_reference")
    return frame.with_columns(
        is_reference, raw.alias("recall_raw"), raw.clip(upper_bound=1.0).alias("recall"), f1.alias("f1")
    )


def _with_corrected(frame: pl.DataFrame, reference_recall: float) -> pl.DataFrame:
    """Add the columns without the overestimate of FP; NULL where FPR(reference) reaches the recall at the reference."""
    gap = pl.when(pl.col(_FPR_REFERENCE) < reference_recall).then(reference_recall - pl.col(_FPR_REFERENCE))
    frame = frame.with_columns(_divide(frame, pl.col(_U_REFERENCE), pl.col("n_before")).alias(_POSITIVES))
    frame = frame.with_columns(_divide(frame, pl.col(_POSITIVES), gap).alias(_POSITIVES))
    frame = frame.with_columns((pl.col("tp") + pl.col("fpr") * pl.col(_POSITIVES)).alias("tp_corrected"))
    return frame.with_columns(
        _divide(frame, pl.col("tp_corrected"), pl.col("m_after")).alias("precision_corrected"),
        _divide(frame, pl.col("tp_corrected"), pl.col(_POSITIVES)).alias("recall_corrected"),
    )


def _undefined() -> pl.Expr:
    """Why the first undefined ratio of the row is NULL."""
    return (
        pl.when(pl.col("n_before") == 0)
        .then(pl.lit("no_before"))
        .when(pl.col("m_after") == 0)
        .then(pl.lit("no_prediction"))
        .when(pl.col(_U) < 0)
        .then(pl.lit("negative_tp"))
        .when(pl.col(_U_REFERENCE).is_null())
        .then(pl.lit("no_reference"))
        .when(pl.col("tp_corrected").is_null())
        .then(pl.lit("unidentified"))
        .otherwise(pl.lit(None, dtype=pl.String))
    )


def f_beta(beta: float) -> pl.Expr:
    """(1 + β²) P R / (β² P + R) of the columns `precision` and `recall`; 0 where both are 0, else as `f1`."""
    if beta == 1:
        return pl.col("f1")
    square = beta * beta
    weighted = square * pl.col("precision") + pl.col("recall")
    value = (1 + square) * pl.col("precision") * pl.col("recall") / weighted
    return pl.when(pl.col("f1").is_null()).then(None).when(weighted > 0).then(value).otherwise(0.0)


def safe_column(confidence: float) -> str:
    """Name of the working column with the lower limits of precision that hold simultaneously at all thresholds."""
    return f"_precision_at_least_{confidence!r}"


def operating_point(curve: pl.DataFrame, keys: Sequence[str], criterion: Criterion) -> pl.DataFrame:
    """The row of every group that a criterion chooses, using exact precision and clipped recall.

    Args:
        curve: Result of `estimates`; a criterion with a confidence also needs the column named by `safe_column`.
        keys: Columns that identify a group.
        criterion: What the threshold is chosen for.
    """
    if criterion.confidence is not None:
        among, best = pl.col(safe_column(criterion.confidence)) >= criterion.min_precision, pl.col("recall")
    elif criterion.beta is not None:
        among, best = pl.lit(value=True), f_beta(criterion.beta)
    elif criterion.min_precision is not None:
        among, best = at_least(_numerator(), _retrieved(), criterion.min_precision), pl.col("recall")
    else:
        among, best = pl.col("recall") >= criterion.min_recall, pl.col("precision")
    return pick(curve, keys, criterion=criterion.text, among=among, best=best)
