"""Columns of the tables of before_after that hold its counts, its estimates and what was chosen from them."""

from __future__ import annotations

from ...metrics.uncertainty.qualities import DESIGN_EFFECT, N_CLUSTERS, N_EFFECTIVE, QUALITY_COLUMN
from ...tables.schemas import Column, limits_of_share, of_chosen_row

COUNTS = (
    Column("n_before", "BIGINT", "compared pairs before the event, the same at every threshold"),
    Column("n_after", "BIGINT", "compared pairs from the time of the event on, the same at every threshold"),
    Column("m_before", "BIGINT", "matches before the event: pairs at or above the threshold"),
    Column("m_after", "BIGINT", "matches from the time of the event on"),
)
NEAR = (
    Column("n_near", "BIGINT", "compared pairs in the near part of the window before the event; 0 where unknown"),
    Column("m_near", "BIGINT", "matches in the near part of the window before the event"),
)
COUNT_TABLE = (*COUNTS, *NEAR)
COUNT_NAMES = tuple(column.name for column in COUNT_TABLE)


ESTIMATES = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    *COUNTS,
    Column("fpr", "DOUBLE", "false positive rate, m_before / n_before; NULL: no pairs before", nullable=True),
    *limits_of_share("fpr", "fpr"),
    Column(
        "fp",
        "DOUBLE",
        (
            "estimated false positives after the event: fpr × the estimated number of negatives there; NULL: no"
            " reference, `unidentified` or `all_positive`"
        ),
        nullable=True,
    ),
    Column("tp", "DOUBLE", "estimated true positives, m_after − fp; may be negative; NULL: as fp", nullable=True),
    Column(
        "precision",
        "DOUBLE",
        "tp / m_after; may be negative, never above 1; NULL: as fp, or no matches after",
        nullable=True,
    ),
    *limits_of_share("precision", "the precision to expect of new events"),
    *limits_of_share("precision_realised", "the precision of this data set, of which precision is the estimate too"),
    Column("recall", "DOUBLE", "recall_raw, at most 1; NULL: as recall_raw", nullable=True),
    *limits_of_share("recall", "recall, with the doubt in its reference"),
    Column(
        "recall_raw",
        "DOUBLE",
        "tp / estimated number of positives; may exceed 1; NULL: as fp, or tp < 0",
        nullable=True,
    ),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn), with the clipped recall; NULL: as recall_raw", nullable=True),
    *limits_of_share("f1", "f1"),
    Column(
        "fp_uncorrected",
        "DOUBLE",
        ("the source text's fp: fpr × n_after, as if no pair after the event were positive; NULL: no pairs before"),
        nullable=True,
    ),
    Column(
        "tp_uncorrected", "DOUBLE", "m_after − fp_uncorrected; may be negative; NULL: no pairs before", nullable=True
    ),
    Column(
        "precision_uncorrected",
        "DOUBLE",
        "tp_uncorrected / m_after; may be negative; NULL: no pairs before, or no matches after",
        nullable=True,
    ),
    *limits_of_share("precision_uncorrected", "precision_uncorrected"),
    Column(
        "recall_uncorrected",
        "DOUBLE",
        "recall_raw_uncorrected, at most 1; it does not converge to recall; NULL: as recall_raw_uncorrected",
        nullable=True,
    ),
    *limits_of_share("recall_uncorrected", "recall_uncorrected"),
    Column(
        "recall_raw_uncorrected",
        "DOUBLE",
        (
            "tp_uncorrected / tp_uncorrected at the reference; NULL: tp_uncorrected < 0, no pairs before, or no"
            " reference"
        ),
        nullable=True,
    ),
    Column("f1_uncorrected", "DOUBLE", "F1 of the uncorrected counts; NULL: as recall_raw_uncorrected", nullable=True),
    *limits_of_share("f1_uncorrected", "f1_uncorrected"),
    Column("is_reference", "BOOLEAN", "whether recall is measured against this threshold"),
    Column(
        "undefined",
        "VARCHAR",
        (
            "why the first ratio that is missing is NULL: `no_before`, `no_prediction`, `no_reference`, "
            "`unidentified`, `all_positive`, `negative_tp`; NULL: all ratios are defined"
        ),
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        (
            "why the first interval that is missing is NULL; the [reasons](methods/before_after.md#intervals); NULL: "
            "all intervals are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
CHOSEN = of_chosen_row(ESTIMATES, reasons="`not_reached`")


def _over_kappa(name: str, rule: str) -> tuple[Column, Column]:
    """The lowest and the highest value of a ratio over the plausible ratios of false positive rates."""
    span = f"corrected {name} as the false positive rate after over that before runs from 0.75 to 1.5"
    return (
        Column(f"{name}_over_kappa_lower", "DOUBLE", f"lowest {span}; {rule}", nullable=True),
        Column(f"{name}_over_kappa_upper", "DOUBLE", f"highest {span}; {rule}", nullable=True),
    )


KAPPAS = (
    Column(
        "kappa_vanishing",
        "DOUBLE",
        (
            "false positive rate after the event over that before it at which no true positive is left, m_after"
            " / fp_uncorrected; NULL: not reached, or fpr is 0"
        ),
        nullable=True,
    ),
    Column(
        "kappa_overturning",
        "DOUBLE",
        (
            "the same ratio from which another threshold has an F1 better by over 0.01; 1 where one has it "
            "already; NULL: not reached, no reference, or none up to 100"
        ),
        nullable=True,
    ),
    *_over_kappa("precision", "may be negative; NULL: no reference, no match, or no estimate of the positives"),
    *_over_kappa("recall", "from 0 to 1; NULL: no reference, or no estimate of the positives"),
)
PARENTS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        (
            "events, clusters or replicates with matches, or days or articles where their effective number is "
            "smaller; NULL: no interval is wanted"
        ),
        nullable=True,
    ),
    Column(
        N_EFFECTIVE,
        "DOUBLE",
        ("(Σ n)² / Σ n² of their matches n: how many of equal size would weigh as much; NULL: no interval is wanted"),
        nullable=True,
    ),
    Column(
        DESIGN_EFFECT,
        "DOUBLE",
        (
            "variance of fpr between events, or over both parents, over that of independent pairs; "
            "NULL: it is not known, or no interval is wanted"
        ),
        nullable=True,
    ),
)
CRITERION = Column(
    "criterion",
    "VARCHAR",
    (
        "what the threshold was chosen for: `max_f1`, `min_precision=0.9`, "
        "`min_precision=0.9,confidence=0.95`, `min_recall=0.8`, `threshold=6.54`, `max_alerts=500`, "
        "`cost=fp:1,fn:20`, …, and always `recall_reference`"
    ),
)
EVENT_COLUMNS = (
    Column("event_id", "KEY", "the event"),
    *COUNTS,
    Column("m_before_reference", "BIGINT", "matches before the event at the recall reference; 0 without one"),
    Column("m_after_reference", "BIGINT", "matches after the event at the recall reference; 0 without one"),
)
