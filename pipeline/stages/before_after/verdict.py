"""The assumption of equal false positive rates in plain words, from the placebo test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.sweep import THRESHOLD
from pipeline.schemas import GROUPING
from pipeline.stages.before_after.units import chosen_threshold

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVEL = 0.05


def doubt(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Why the assumption is doubtful for the total; None when nothing speaks against it or nothing is known."""
    joint, ratio = _evidence(tables)
    if joint is None or joint >= LEVEL:
        return None
    return (
        f"the equal-FPR assumption is doubtful: before the event, matches are {ratio} near to it than far from it "
        f"(placebo test over all thresholds, p = {joint:.2g}), although none of them can be right; look at "
        "before_after_lags, at time zones and dates without an hour, and try a gap in the window"
    )


def verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """One sentence on the assumption for the summary; empty when it could not be tested."""
    joint, ratio = _evidence(tables)
    if joint is None:
        return ""
    if joint < LEVEL:
        return f"The equal-FPR assumption is doubtful: matches are {ratio} just before the event (p = {joint:.2g})."
    return f"The equal-FPR assumption holds as far as the placebo test can tell (p = {joint:.2g})."


def _evidence(tables: Mapping[str, pl.DataFrame]) -> tuple[float | None, str]:
    rows = tables["before_after_placebo"].filter(pl.col(GROUPING.name) == "all")
    joint = rows.filter(pl.col(THRESHOLD).is_null())
    if joint.is_empty() or joint["p_value"][0] is None:
        return None, ""
    at_chosen = rows.filter(pl.col(THRESHOLD) == chosen_threshold(tables))["log_rate_ratio"].to_list()
    ratio = math.exp(at_chosen[0]) if at_chosen and at_chosen[0] is not None else None
    return float(joint["p_value"][0]), "not equally frequent" if ratio is None else f"{ratio:.2f} times as frequent"
