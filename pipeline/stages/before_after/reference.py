"""The recall reference in plain words: whether the estimates depend on it, and on the correction made with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...tables.schemas import GROUPING
from ...tables.sweep import THRESHOLD
from ...visible_text import percent
from ..stage import number

if TYPE_CHECKING:
    from collections.abc import Mapping

LOW_PRECISION, HIGH_FPR = 0.2, 0.1
UNDEFINED = {
    "no_before": "no pair was compared before the event, so that precision, recall and F1 are undefined",
    "no_reference": (
        "no threshold has enough precision to serve as recall reference, so that precision, recall and F1 are "
        "undefined; precision_uncorrected is given, which is too low by the positives among the pairs after the event"
    ),
    "unidentified": (
        "at the recall reference as many pairs match before the event as are believed to be found after it, so that "
        "the number of positives, and with it precision, recall and F1, cannot be estimated; set a higher reference: "
        'recall_reference = { rule = "fixed", threshold = … }'
    ),
    "all_positive": (
        "more positives are estimated at the recall reference than pairs were compared after the event, so that "
        "precision, recall and F1 are undefined; is the assumption of equal false positive rates right?"
    ),
}


def doubtful(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Why the estimates of the total depend on the recall reference, or are missing for it; None where they do not."""
    total = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all")
    row, reasons = _reference(tables), total["undefined"].to_list()
    if row is None:
        return UNDEFINED["no_before" if "no_before" in reasons else "no_reference"]
    missing = next((reason for reason in UNDEFINED if reason in reasons), None)
    if missing is not None:
        return UNDEFINED[missing]
    if not _is_doubtful(row):
        return None
    return (
        f"precision and recall depend on the recall reference, {number(row[THRESHOLD])}: {percent(row['fpr'], 0)} of "
        f"the pairs match there even before the event, and {_right(row)} of the matches after it are right"
        f"{_without_correction(tables)}; see before_after_sensitivity, try "
        "another recall_reference, or have a sample checked with audit"
    )


def verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """What the summary says of a doubtful reference; empty where it is not doubtful."""
    row = _reference(tables)
    if row is None or not _is_doubtful(row):
        return ""
    return "This depends on the recall reference: see the warnings."


def _reference(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any] | None:
    """The row of the reference of the total, if there is one."""
    rows = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all", "is_reference")
    return None if rows.is_empty() else rows.row(0, named=True)


def _is_doubtful(row: Mapping[str, Any]) -> bool:
    """Whether the false positive rate at the reference is high, or precision low, so that the correction is large."""
    return bool(row["fpr"] >= HIGH_FPR or row["precision_uncorrected"] < LOW_PRECISION)


def _right(row: Mapping[str, Any]) -> str:
    return "an unknown share" if row["precision"] is None else percent(row["precision"], 0)


def _without_correction(tables: Mapping[str, pl.DataFrame]) -> str:
    """The recall of the first criterion as the source text has it, for comparison."""
    points = tables["before_after_operating_points"].filter(
        pl.col(GROUPING.name) == "all", pl.col(THRESHOLD).is_not_null()
    )
    chosen = points.filter(pl.col("criterion") != "recall_reference").head(1)
    if chosen.is_empty() or chosen["recall_uncorrected"][0] is None or chosen["recall"][0] is None:
        return ""
    row = chosen.row(0, named=True)
    if f"{row['recall_uncorrected']:.2f}" == f"{row['recall']:.2f}":
        return ""
    return (
        f" (at {number(row[THRESHOLD])} the formula as published, Welbers et al. 2022, gives a recall of "
        f"{row['recall_uncorrected']:.2f}, the corrected one {row['recall']:.2f})"
    )
