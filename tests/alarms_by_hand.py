"""Alarms counted by plain loops, from their definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.change_points.windows import Margin

Series: TypeAlias = "int | str"
Alarm: TypeAlias = "tuple[Series, float, float]"  # series, position, score
Incident: TypeAlias = "tuple[Series, float, float]"  # series, start, end


@dataclass(frozen=True)
class Terms:
    """How alarms are counted."""

    margin: Margin
    is_any: bool
    ignores: bool
    cooldown: float | None


def kept_of(positions: Sequence[float], cooldown: float | None) -> list[int]:
    """Places of the alarms that are kept: the first, and every one that comes the cooldown after the last kept."""
    kept: list[int] = []
    for number, position in enumerate(positions):
        if cooldown is None or not kept or position - positions[kept[-1]] >= cooldown:
            kept.append(number)
    return kept


def in_zone(position: float, incident: Incident, margin: Margin) -> bool:
    """Inside the incident, or nearer to its end than the margin."""
    _, start, end = incident
    early, late = start - position, position - end
    if margin.closed:
        return early <= margin.before and late <= margin.after
    return early < margin.before and late < margin.after


def by_hand(
    alarms: Sequence[Alarm], incidents: Sequence[Incident], terms: Terms, threshold: float
) -> tuple[dict[str, int], dict[Incident, float]]:
    """Counts over all series at a threshold, and the position of the first alarm of every incident that has one.

    Args:
        alarms: In the order of their positions.
        incidents: Distinct.
        terms: How they are counted.
        threshold: Scores from which on alarms count.
    """
    counts = dict.fromkeys(("n_predicted", "tp", "n_false", "n_ignored", "n_merged"), 0)
    firsts: dict[Incident, float] = {}
    for series in {row[0] for row in (*alarms, *incidents)}:
        retrieved = [alarm[1] for alarm in alarms if alarm[0] == series and alarm[2] >= threshold]
        kept = [retrieved[number] for number in kept_of(retrieved, terms.cooldown)]
        of_series = [incident for incident in incidents if incident[0] == series]
        near = np.array([[in_zone(alarm, incident, terms.margin) for incident in of_series] for alarm in kept])
        near = near.reshape(len(kept), len(of_series))
        earliest = {int(np.flatnonzero(column)[0]) for column in near.T if column.any()}
        firsts |= {
            i: kept[int(np.flatnonzero(column)[0])] for i, column in zip(of_series, near.T, strict=True) if column.any()
        }
        if terms.is_any:
            tp, detecting = int(near.any(axis=0).sum()), len(earliest)
        else:
            pairs = maximum_bipartite_matching(csr_matrix(near.astype(int)), perm_type="column") if near.size else []
            tp = detecting = sum(int(match >= 0) for match in pairs)
        inside = int(near.any(axis=1).sum())
        repeats = inside - detecting
        counts["tp"] += tp
        counts["n_false"] += len(kept) - inside + (0 if terms.ignores else repeats)
        counts["n_ignored"] += repeats if terms.ignores else 0
        counts["n_predicted"] += len(kept) - (repeats if terms.ignores else 0)
        counts["n_merged"] += len(retrieved) - len(kept)
    return counts, firsts
