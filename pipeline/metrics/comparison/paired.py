"""Two matchers on the same events, without gold labels: differences of precision, recall and F1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.comparison.paired_tests import sign_flip_p_value
from pipeline.metrics.uncertainty.jackknife import covariance, leave_one_out, t_quantile
from pipeline.tables.ratios import RATIOS

if TYPE_CHECKING:
    from pipeline.metrics.uncertainty.jackknife import Floats

EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def compare_matchers(
    units_a: pl.DataFrame, units_b: pl.DataFrame, *, confidence: float = 0.95, flips: int = 9999, seed: int = 0
) -> pl.DataFrame:
    """Differences between two matchers, each at its own threshold, over the same events.

    Both matchers process the same events, so that the difficulty of an event is common to both and cancels in the
    difference. The intervals come from the delete-one jackknife of the difference itself, with Student's t. The test
    flips the signs of the events' pseudo-values at random (Efron & Tibshirani 1993, chapters 11 and 15):
    p = (1 + flips at least as extreme) / (1 + flips).

    Args:
        units_a: Table `before_after_events` of one stage.
        units_b: The same table of another stage, with the same events.
        confidence: Confidence of the intervals.
        flips: Number of random flips.
        seed: The same seed gives the same p-values.

    Returns:
        One row for each of precision, recall and F1: `metric`, `n_events`, `value_a`, `value_b`, `difference` (a - b),
        `difference_lower`, `difference_upper`, `p_value`. NULL where a value is undefined; recall is not clipped.

    Raises:
        ValueError: the events of the two tables differ, or there are fewer than two.
    """
    joined = units_a.select("event_id", *EVENT_COUNTS).join(
        units_b.select("event_id", *EVENT_COUNTS), on="event_id", suffix="_b"
    )
    if not joined.height == units_a.height == units_b.height or joined.height < 2:  # noqa: PLR2004 - a spread needs two
        message = f"the matchers share {joined.height:,} of {units_a.height:,} and {units_b.height:,} events"
        raise ValueError(message)
    joined = joined.sort("event_id")
    counts = [np.column_stack([joined[f"{name}{side}"].to_numpy() for name in EVENT_COUNTS]) for side in ("", "_b")]
    totals = [_values(table.sum(axis=0).astype(np.float64)) for table in counts]
    jackknifed = [_values(leave_one_out(table)) for table in counts]
    rows = [
        _row(name, totals[0][name], totals[1][name], jackknifed[0][name] - jackknifed[1][name], confidence, flips, seed)
        for name in RATIOS
    ]
    return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))


def _values(totals: Floats) -> dict[str, Floats]:
    """Precision, recall and F1 from totals whose last axis holds the counts in the order of `EVENT_COUNTS`."""
    n_before, n_after, m_before, m_after, before_reference, after_reference = np.moveaxis(totals, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tp = m_after - m_before / n_before * n_after
        reference = after_reference - before_reference / n_before * n_after
        reference = np.where(reference > 0, reference, np.nan)
        return {
            "precision": np.asarray(tp / np.where(m_after > 0, m_after, np.nan)),
            "recall": np.asarray(tp / reference),
            "f1": np.asarray(2 * tp / (m_after + np.maximum(tp, reference))),
        }


def _row(
    metric: str, value_a: Floats, value_b: Floats, jackknifed: Floats, confidence: float, flips: int, seed: int
) -> dict[str, object]:
    difference, events = float(value_a - value_b), len(jackknifed)
    half = t_quantile(confidence, events - 1) * float(np.sqrt(covariance(jackknifed)))
    pseudo = events * difference - (events - 1) * jackknifed
    return {
        "metric": metric,
        "n_events": events,
        "value_a": float(value_a),
        "value_b": float(value_b),
        "difference": difference,
        "difference_lower": difference - half,
        "difference_upper": difference + half,
        "p_value": sign_flip_p_value(pseudo, resamples=flips, seed=seed),
    }
