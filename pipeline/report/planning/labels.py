"""How many matches people must check, from a run with labels of a sample or from one that has none yet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import scipy

from ...errors import UsageError
from ...metrics.planning.pilot import ASSURANCE
from ...metrics.planning.power import labels_for, width_with_labels
from ...tables.columns import THRESHOLD
from ...visible_text import percent
from ..explain.choosing import Wish, choose, same_group
from . import writing
from .pilots import sizes_of
from .writing import PlannedUnits, SamplePlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...stages.units import Labelled, SampleSizes
    from ..explain.choosing import Choice
    from ..published import PublishedStage
    from .pilots import Goal

_OF_JEFFREYS = 0.5


def asks_for_labels(sizes: SampleSizes, wish: Wish) -> bool:
    """Whether the number that is wished for is that of a sample that people check."""
    return sizes.labelled is not None and wish.metric == sizes.labelled.metric


def plan_of_labels(stage: PublishedStage, wish: Wish, goal: Goal) -> SamplePlan:
    """Plan how many matches people must check.

    Args:
        stage: The stage whose matches they are.
        wish: The number.
        goal: What is wanted: a width.

    Raises:
        UsageError: something else is wanted, there are no matches, or nothing tells their precision.
    """
    labelled, evidence = sizes_of(stage).labelled, stage.stage.evidence
    if labelled is None or evidence is None:
        message = f"stage {stage.name!r} has no sample to check"
        raise UsageError(message)
    if goal.width is None:
        message = f"{labelled.metric} is planned by the width of its interval"
        raise UsageError(message, remedy="Give a width.")
    goal.check_share(labelled.metric)
    choice = choose(stage, evidence, Wish(labelled.estimate, wish.threshold, wish.group, wish.option, wish.criterion))
    checked = _checked(stage, labelled, choice)
    n_labels, n_right = (int(checked.get(name) or 0) for name in (labelled.labels, labelled.right))
    share, safe_share = _shares(choice.row, labelled, n_labels, n_right)
    matches = int(choice.row.get(labelled.population) or 0)
    if share is None or safe_share is None or matches == 0:
        message = (
            f"nothing tells the precision of the matches of stage {stage.name!r}, so that no sample can be planned"
        )
        raise UsageError(message, remedy="Choose another threshold or group.")
    level = goal.level(float(stage.parameters["confidence"]))
    needed = labels_for(matches, share, goal.width, level)
    safe = max(labels_for(matches, safe_share, goal.width, level), needed)
    lower, upper = (checked.get(f"{labelled.metric}_{side}") for side in ("lower", "upper"))
    now = None if lower is None or upper is None else float(upper - lower)
    at = choice.threshold
    where = "" if at is None else f" at {at:g} or more"
    basis = f"of {matches:,} matches, {percent(share)} of them right"
    units = (PlannedUnits("labels", n_labels, needed, safe, basis), *_all_draws(stage, labelled, choice, needed, safe))
    return SamplePlan(
        stage=stage.name,
        kind=stage.stage.kind,
        metric=labelled.metric,
        group=choice.group_words,
        threshold=at,
        value=share,
        lower=lower,
        upper=upper,
        confidence=level,
        goal=goal.name,
        now=now,
        wanted=goal.width,
        power=None,
        factor=needed / n_labels if n_labels else None,
        factor_cautious=safe / n_labels if n_labels else None,
        units=units,
        sentence=_sentence(labelled, goal, level, (needed, safe), (matches, where), n_labels),
        notes=(*choice.notes, *_notes(labelled, n_labels, (safe_share, matches), (needed, safe), goal.width, level)),
    )


def _checked(stage: PublishedStage, labelled: Labelled, choice: Choice) -> Mapping[str, Any]:
    """Return the row of the checked matches at the threshold; empty where nobody has checked one."""
    if labelled.table not in stage.tables or choice.threshold is None:
        return {}
    rows = same_group(stage.tables[labelled.table], choice.group).filter(
        pl.col(THRESHOLD) == choice.threshold, pl.col(labelled.labels) > 0
    )
    return {} if rows.is_empty() else rows.row(0, named=True)


def _shares(
    row: Mapping[str, Any], labelled: Labelled, n_labels: int, n_right: int
) -> tuple[float | None, float | None]:
    """Return the share of right matches, and its limit towards 1/2, where an interval is widest."""
    if n_labels:
        share = n_right / n_labels
        level = ASSURANCE if share <= 1 / 2 else 1 - ASSURANCE
        limit = float(scipy.special.betaincinv(n_right + _OF_JEFFREYS, n_labels - n_right + _OF_JEFFREYS, level))
        return share, _toward_half(share, limit)
    estimate = row.get(labelled.estimate)
    if estimate is None:
        return None, None
    share = min(max(float(estimate), 0.0), 1.0)
    of_estimate = row.get(f"{labelled.estimate}_{'upper' if share <= 1 / 2 else 'lower'}")
    return share, share if of_estimate is None else _toward_half(share, float(of_estimate))


def _toward_half(share: float, limit: float) -> float:
    """The limit, but not beyond 1/2."""
    return min(max(limit, share), 1 / 2) if share <= 1 / 2 else max(min(limit, share), 1 / 2)


def _all_draws(
    stage: PublishedStage, labelled: Labelled, choice: Choice, needed: int, safe: int
) -> Iterator[PlannedUnits]:
    """Yield how many are to be drawn where the sample is drawn from a lower threshold, of which some lie above."""
    if labelled.table not in stage.tables or choice.threshold is None:
        return
    rows = same_group(stage.tables[labelled.table], choice.group).sort(THRESHOLD)
    at = rows.filter(pl.col(THRESHOLD) == choice.threshold)
    if at.is_empty() or rows[THRESHOLD][0] == choice.threshold:
        return
    everything, above = int(rows[labelled.labels][0]), int(at[labelled.labels][0])
    if above and everything > above:
        times = everything / above
        basis = f"from {rows[THRESHOLD][0]:g} on, of which {above:,} of {everything:,} count"
        in_all, safe_in_all = math.ceil(needed * times), math.ceil(safe * times)
        yield PlannedUnits("labels of the whole sample", everything, in_all, safe_in_all, basis)


def _sentence(
    labelled: Labelled,
    goal: Goal,
    level: float,
    needed: tuple[int, int],
    matches: tuple[int, str],
    n_labels: int,
) -> str:
    number, where = matches
    said = f"about {writing.about(needed[0])} of the {number:,} matches{where} are to be checked"
    said += f" ({writing.about(needed[1])} to be on the safe side)"
    beside = f", {writing.times(needed[0] / n_labels)} times the {n_labels:,} that are checked" if n_labels else ""
    return (
        f"For a {writing.level(level)} interval of {labelled.metric} that is {writing.amount(goal.wanted)} wide, "
        f"{said}{beside}."
    )


def _notes(
    labelled: Labelled,
    n_labels: int,
    safe: tuple[float, int],
    needed: tuple[int, int],
    width: float,
    level: float,
) -> Iterator[str]:
    share, matches = safe
    if n_labels:
        yield f"on the safe side {percent(share)} are right, the 80% limit of what the checked matches say"
    else:
        yield (
            f"nobody has checked a match: what is expected is the {labelled.estimate} that the run estimates, and on "
            f"the safe side its limit, {percent(share)}"
        )
    reached = width_with_labels(matches, needed[1], share, level)
    if needed[1] == matches and reached <= width:
        yield "all matches are to be checked then, and nothing is left to estimate"
