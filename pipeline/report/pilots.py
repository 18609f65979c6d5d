"""A published number as a pilot of a plan: what it rests on, and what the plan is to reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import scipy

from ..base.columns import REPLICATE, THRESHOLD
from ..base.errors import UsageError
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE
from ..base.visible_text import percent
from ..metrics.planning import ASSURANCE, FEWEST_UNITS, HASH_GROUPS, Pilot, labels_for, width_with_labels
from ..metrics.uncertainty.limits import INTERVAL_QUALITY, MEANINGS, N_CLUSTERS, N_EFFECTIVE
from . import planned
from .evidence import Wish, choose, same_group
from .planned import Goal, Measured, PlannedUnits, SamplePlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..stages.stage import Labelled, SampleSizes
    from .evidence import Choice
    from .published import PublishedRun, PublishedStage


_OF_JEFFREYS = 0.5


def asks_for_labels(sizes: SampleSizes, wish: Wish) -> bool:
    """Whether the wanted number is the size of a sample that people check."""
    return sizes.labelled is not None and wish.metric == sizes.labelled.metric


def plan_of_labels(stage: PublishedStage, wish: Wish, goal: Goal) -> SamplePlan:
    """Plan how many matches people must check for an interval of some width.

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
    labelled: Labelled, goal: Goal, level: float, needed: tuple[int, int], matches: tuple[int, str], n_labels: int
) -> str:
    number, where = matches
    said = f"about {planned.about(needed[0])} of the {number:,} matches{where} are to be checked"
    said += f" ({planned.about(needed[1])} to be on the safe side)"
    beside = f", {planned.times(needed[0] / n_labels)} times the {n_labels:,} that are checked" if n_labels else ""
    return (
        f"For a {planned.level(level)} interval of {labelled.metric} that is {planned.amount(goal.wanted)} wide, "
        f"{said}{beside}."
    )


def _notes(
    labelled: Labelled, n_labels: int, safe: tuple[float, int], needed: tuple[int, int], width: float, level: float
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


ROWS = "rows"  # what is independent where there are no clusters
_UNSPOILT = frozenset({"good", "chosen_on_same_data", None})
_ENDS = {"lack": (1.0,), "log": (0.0,), "logit": (0.0, 1.0)}  # numbers that a scale does not have
_WITH_REFERENCE = ("recall", "f1", "precision")


def measured(run: PublishedRun, stage: PublishedStage, choice: Choice) -> Measured:
    """Return a chosen number as a pilot.

    Raises:
        UsageError: it is undefined, has no interval, or one that does not depend on the number of units.
    """
    sizes, row, name = sizes_of(stage), choice.row, choice.measure.name
    _check_limits(stage, choice)
    counts, over = _counts(sizes, row), sizes.rests_on.get(name, "")
    units = _units(run, stage, choice, counts)
    words = f"{name} of {row['metric']}" if "metric" in row else str(row.get("measure") or name)
    listed = {counted.noun for counted in sizes.counts if counted.is_listed} | {over}
    others = {
        other: number
        for other, number in counts.items()
        if other != units.noun and other in listed and not (sizes.is_paired and number == units.now)
    }
    notes = (*_doubts(row), *_of_columns(units.columns, sizes))
    pilot, labelled = _pilot(stage, choice, units, counts.get(over)), 0.0
    if stage.parameters.get("labels") is not None:
        rows = stage.accounts["predictions"]
        n_rows = rows["used"] + rows.get("not_labelled", 0)
        is_finite = stage.parameters.get("cluster") is None  # limits take clusters for a few of very many
        labelled = rows["used"] / n_rows if is_finite else 0.0
        notes = (*notes, _OF_SAMPLE.format(n_rows) + ("" if is_finite else _NO_MORE))
    return Measured(stage, choice, words, pilot, units.noun, units.now, others, over, notes, labelled)


_OF_SAMPLE = (
    "these are predictions to label, of {:,}: thresher sample --labelled draws the next ones where the labels at hand "
    "say that they tell most, so that fewer may be enough"
)
_NO_MORE = "; if there are no more predictions, label all of them"


@dataclass(frozen=True)
class _Units:
    """What is independent: its columns, two where rows have two parents, its noun, and how many there are.

    An interval knows of a number, and of an effective one, which is infinite for rows; it may put units into groups.
    """

    columns: tuple[str, ...]
    noun: str
    now: int | None
    number: float
    effective: float
    is_grouped: bool


def _units(run: PublishedRun, stage: PublishedStage, choice: Choice, counts: Mapping[str, int]) -> _Units:
    sizes, row = sizes_of(stage), choice.row
    # the column of what is independent, or both where rows have two parents
    words = str(run.record.get("facts", {}).get(stage.name, {}).get("independent") or sizes.unit or ROWS)
    second_parents = [name for name in sizes.nouns if words.endswith(f" and {name}")]
    columns = (words.removesuffix(f" and {second_parents[0]}"), second_parents[0]) if second_parents else (words,)
    noun = sizes.nouns.get(columns[0], "clusters")
    if columns[0] == ROWS:
        now = counts.get(noun)
        return _Units(columns, noun, now, float(now or FEWEST_UNITS), math.inf, is_grouped=False)
    n_clusters, effective = _clusters(stage, sizes, choice)
    is_grouped = len(columns) > 1 or (sizes.has_groups and n_clusters is not None and _is_grouped(run, stage))
    now = _number(run, stage, sizes, row, columns[0])
    if now is None and not is_grouped:
        now = n_clusters
    number = float(n_clusters or now or FEWEST_UNITS)
    return _Units(columns, noun, now, number, number if effective is None else effective, is_grouped)


def _pilot(stage: PublishedStage, choice: Choice, units: _Units, rows: int | None) -> Pilot:
    """The interval of the number, which is over so many rows."""
    sizes, row, name = sizes_of(stage), choice.row, choice.measure.name
    scale = sizes.scales.get(name, sizes.other_scale)
    if scale is None:
        message = f"how the limits of {name} follow from the number of units is not known to plan"
        raise UsageError(message, remedy=_with_limits(stage))
    if row[name] in _ENDS.get(str(scale), ()):
        if row[f"{name}_upper"] > 1:
            message = f"{name} of stage {stage.name!r} is {row[name]:g}, which does not tell how much it varies"
            raise UsageError(message, remedy="Choose another threshold or group.")
        scale = "share"
    number = math.nan if rows is None else float(rows)
    is_over_others = sizes.rests_on.get(name, "") != sizes.sized_by
    return Pilot(
        value=float(row[name]),
        lower=float(row[f"{name}_lower"]),
        upper=float(row[f"{name}_upper"]),
        confidence=float(stage.parameters["confidence"]),
        scale=scale,
        units=units.number,
        effective=units.effective,
        size=units.number if scale == "mean" else math.nan,
        rows=number,
        rows_per_cluster=number / units.effective + is_over_others,
        bounds=sizes.bounds.get(name, (-math.inf, math.inf)),
        is_grouped=units.is_grouped,
        has_groups=sizes.has_groups and math.isfinite(units.effective),
    )


def sizes_of(stage: PublishedStage) -> SampleSizes:
    """Return what the numbers of a stage rest on.

    Raises:
        UsageError: nothing is known of it.
    """
    if stage.stage.sample_sizes is None or stage.stage.evidence is None:
        message = f"nothing is known of what stage {stage.name!r} rests on, which is of kind {stage.stage.kind}"
        raise UsageError(message)
    return stage.stage.sample_sizes


def _check_limits(stage: PublishedStage, choice: Choice) -> None:
    """Refuse a number whose interval says nothing of how much it varies."""
    name, row = choice.measure.name, choice.row
    what = f"{name} of stage {stage.name!r}"
    if row[name] is None:
        message = f"{what} is undefined: {row.get('undefined') or 'it has no value'}"
        raise UsageError(message, remedy="Choose another metric, threshold or group.")
    if row[name] < sizes_of(stage).bounds.get(name, (-math.inf, math.inf))[0]:
        message = f"{what} is {row[name]:.3g}: below 0 it cannot be right, and more units would not mend that"
        raise UsageError(message, remedy="Choose another threshold, or see what the run warns of.")
    lower, upper = row.get(f"{name}_lower"), row.get(f"{name}_upper")
    if lower is None or upper is None or not math.isfinite(upper - lower):
        reason = row.get("undefined_interval") or "none is given for it"
        message = f"{what} has no interval ({reason}), so that nothing tells how much it varies"
        raise UsageError(message, remedy=_with_limits(stage))
    if not upper > lower:
        message = f"the interval of {what} has no width: it is known by assumption, however few units there are"
        raise UsageError(message, remedy="Choose another threshold.")
    recall = (stage.parameters.get("recall_reference") or {}).get("recall")
    if isinstance(recall, list) and name in _WITH_REFERENCE and len(set(recall)) > 1:
        low, high = recall[0], recall[-1]
        message = f"{what} holds for every recall from {low:g} to {high:g} at the reference, and no data narrow that"
        remedy = f"Plan {name}_uncorrected, or give recall_reference.recall as one number."
        raise UsageError(message, remedy=remedy)


def _with_limits(stage: PublishedStage) -> str:
    evidence = stage.stage.evidence
    names = [] if evidence is None else [measure.name for measure in evidence.measures]
    columns = {column.name for table in stage.stage.tables for column in table.columns}
    sizes = sizes_of(stage)
    limited = [name for name in names if f"{name}_lower" in columns and (name in sizes.scales or sizes.other_scale)]
    return f"Metrics with intervals are: {', '.join(limited)}." if limited else "The stage has no intervals."


def _of_columns(columns: Sequence[str], sizes: SampleSizes) -> Iterator[str]:
    """Say what clusters are, and that two parents must both grow."""
    if columns[0] not in sizes.nouns:
        yield f"clusters are the values of {columns[0]}"
    if len(columns) > 1:
        noun, second = sizes.nouns.get(columns[0], "clusters"), sizes.nouns[columns[1]]
        yield f"there must be as many times the {second}, too: more {noun} among the same {second} tell less"


def _counts(sizes: SampleSizes, row: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for counted in sizes.counts:
        if counted.noun not in counts and all(row.get(name) is not None for name in counted.columns):
            counts[counted.noun] = int(sum(row[name] for name in counted.columns))
    return counts


def _clusters(stage: PublishedStage, sizes: SampleSizes, choice: Choice) -> tuple[int | None, float | None]:
    """Return number and effective number of the clusters of a group, from its row or the table that tells them."""
    row: Mapping[str, Any] = choice.row
    if row.get(N_EFFECTIVE) is None and sizes.clusters in stage.tables:
        of_group = same_group(stage.tables[sizes.clusters], choice.group)
        columns = {N_CLUSTERS, N_EFFECTIVE} & set(of_group.columns)
        numbers = of_group.drop_nulls(N_EFFECTIVE) if len(columns) == 2 else of_group.clear()  # noqa: PLR2004 - both
        row = {} if numbers.is_empty() else numbers.row(0, named=True)
    return row.get(N_CLUSTERS), row.get(N_EFFECTIVE)


def _is_grouped(run: PublishedRun, stage: PublishedStage) -> bool:
    """Whether clusters were put into groups: where the config says how many replicates there are, or there are 64."""
    if stage.parameters.get("replicates", "auto") != "auto":
        return True
    path = run.folder / COUNT_TABLE / f"{stage.name}.parquet"
    if not path.is_file():
        return False
    return int(pl.scan_parquet(path).select(pl.col(REPLICATE).n_unique()).collect().item()) == HASH_GROUPS


def _number(
    run: PublishedRun, stage: PublishedStage, sizes: SampleSizes, row: Mapping[str, Any], column: str
) -> int | None:
    """Return the number of units where a column of the row tells it or, for the total, the account of an input."""
    if (name := sizes.units.get(column)) is not None and row.get(name) is not None:
        return int(row[name])
    account = run.record.get("accounting", {}).get(stage.name, {}).get(sizes.inputs.get(column, ""))
    is_total = row["grouping"] == "all"
    return int(account["used"]) if account and is_total and account.get("used") else None


def _doubts(row: Mapping[str, Any]) -> list[str]:
    quality = row.get(INTERVAL_QUALITY)
    if quality in _UNSPOILT:
        return []
    meaning = dict(MEANINGS).get(quality, "") if quality is not None else ""
    return [f"the interval of the pilot is doubtful, and so is this plan: {quality}, {meaning}"]
