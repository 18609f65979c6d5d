"""Gates, limits on published numbers: as a config says them, and judged with their sampling error."""

from __future__ import annotations

import json
import math
import re
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..base.columns import THRESHOLD
from ..base.errors import ConfigError, together
from ..base.records import dataclass
from ..base.run_tables import criterion_of, metric_key, quality_of
from ..base.schemas import CRITERION, GROUPING, TOTAL, values_text, written_groups
from ..metrics.comparison.pooled import (
    NIGHTS_PER_YEAR,
    Estimates,
    confidence_for,
    p_values_above,
    p_values_below,
    p_values_of_change,
    p_values_of_drop,
    p_values_of_rise,
)
from ..metrics.comparison.significance import adjust_p_values
from ..metrics.uncertainty.limits import N_EFFECTIVE, UNDEFINED_INTERVAL
from ..stages.parameters import NAME
from .variables import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..base.schemas import Table
    from ..stages.parameters import StageParameters
    from ..stages.stage import Stage

    Stages: TypeAlias = Mapping[str, tuple[Stage, StageParameters]]
    from ..metrics.uncertainty.limits import Quality

    Row: TypeAlias = Mapping[str, Any]
    ReadTable: TypeAlias = Callable[[str], pl.DataFrame | None]


Condition: TypeAlias = Literal["min", "max", "min_rows", "max_drop", "max_rise", "max_change"]
CONDITIONS: tuple[Condition, ...] = ("min", "max", "min_rows", "max_drop", "max_rise", "max_change")
OF_DIFFERENCES = ("max_drop", "max_rise", "max_change")
PREVIOUS, SAME_WEEKDAY = "previous", "same_weekday"
RUN_NAME = re.compile(r"(\d{8,}-)?[0-9a-f]{12}")
# what criteria with a value begin with
CHOOSING = ("min_precision", "min_recall", "threshold", "max_alerts", "max_alert_share", "cost")
DEFAULT_CONFIDENCE = 0.95
Allowance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, Field(allow_inf_nan=False)]


class Gate(BaseModel):
    """One gate.

    Attributes:
        name: What it is called in results; default: stage and metric.
        stage: The stage that it judges; may be left out where the config has one.
        metric: The column that it judges; may be left out beside `min_rows` alone.
        group: Values of grouping columns: the group that it judges; default: the total.
        by: Grouping columns: all groups are judged, and p-values adjusted over them.
        threshold: Judge the row of the curve at this threshold, or at the nearest below.
        criterion: Judge the row of this criterion, as the table `metrics` writes it.
        min: The true number is at least so large.
        max: The true number is at most so large.
        min_rows: At least so many rows are counted.
        max_drop: The true number fell by at most so much since the baseline.
        max_rise: It rose by at most so much.
        max_change: It fell or rose by at most so much.
        baseline: `previous`, `same_weekday`, a run or another stage.
        confidence: How sure a failure is, every night, over all groups together.
        alarms_per_year: The same, by the nights with a false alarm that are expected in a year of daily runs.
        on_fail: Whether a failure makes the run exit with 3, or is a warning.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    name: str = ""
    stage: str = ""
    metric: str | None = None
    group: dict[str, str | bool | int | float] | None = None
    by: tuple[str, ...] | None = None
    threshold: Limit | None = None
    criterion: str | None = None
    min: Limit | None = None
    max: Limit | None = None
    min_rows: Annotated[int, Field(ge=1)] | None = None
    max_drop: Allowance | None = None
    max_rise: Allowance | None = None
    max_change: Allowance | None = None
    baseline: str | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    alarms_per_year: Annotated[float, Field(gt=0, lt=NIGHTS_PER_YEAR / 2)] | None = None
    on_fail: Literal["fail", "warn"] = "fail"

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if value and not NAME.fullmatch(value):
            message = f"{value!r} is no name: use a-z, 0-9, '_', '.', '-', at most 64, starting with a letter or digit"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _complete(self) -> Gate:
        for fault in self._faults():
            raise ValueError(fault)
        return self

    def _faults(self) -> Iterator[str]:
        if not self.conditions:
            yield f"a gate has a limit: give one of {', '.join(CONDITIONS)}"
        if self.metric is None and self.conditions != ("min_rows",):
            yield "`metric` is missing: a gate that has no other limit than min_rows can do without"
        if self.group is not None and self.by is not None:
            yield "give group or by: `by` judges all groups of these columns"
        if self.by is not None and (not self.by or len(set(self.by)) < len(self.by)):
            yield 'by names the columns of one grouping, each once, for example by = ["source"]'
        if self.threshold is not None and self.criterion is not None:
            yield "give threshold or criterion: a criterion has a threshold of its own"
        differences = [name for name in self.conditions if name in OF_DIFFERENCES]
        if differences and self.baseline is None:
            yield f'{differences[0]} needs a baseline, for example baseline = "{PREVIOUS}"'
        if self.baseline is not None and not differences:
            yield f"baseline goes with {', '.join(OF_DIFFERENCES)}"
        if self.confidence is not None and self.alarms_per_year is not None:
            yield "give confidence or alarms_per_year: each follows from the other"
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f"min ({self.min:g}) is greater than max ({self.max:g})"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The limits that it has, by name."""
        return tuple(name for name in CONDITIONS if getattr(self, name) is not None)

    @property
    def level(self) -> float:
        """The confidence of one night."""
        if self.alarms_per_year is not None:
            return confidence_for(self.alarms_per_year)
        return DEFAULT_CONFIDENCE if self.confidence is None else self.confidence

    @property
    def columns(self) -> tuple[str, ...]:
        """The grouping columns that it names; none: the total."""
        return tuple(self.group or ()) if self.by is None else self.by

    @property
    def words(self) -> str:
        """The judged number, for people."""
        subject = f"{self.metric or 'rows'} of {self.stage}"
        row = self.criterion or ("" if self.threshold is None else f"threshold {self.threshold:g}")
        group = ", ".join(f"{name} {value}" for name, value in (self.group or {}).items())
        limits = ", ".join(f"{name} {self.limit(name):g}" for name in self.conditions)
        return "".join(
            (
                subject,
                f" at {row}" if row else "",
                f" for {group}" if group else "",
                f" by {', '.join(self.by)}" if self.by else "",
                f": {limits}",
                f" since {self.baseline}" if self.baseline else "",
                f", confidence {self.level:.4g}",
            )
        )

    def limit(self, condition: Condition) -> float:
        """Return the limit of one of its conditions."""
        return float(getattr(self, condition))


def parse_gates(
    tables: Sequence[Mapping[str, Any]], stages: Stages, origin: str, validated: Callable[..., Any]
) -> tuple[Gate, ...]:
    """Check the gates of a config against its stages; `validated` makes a model of a table, or raises a `ConfigError`.

    Raises:
        ConfigError: it names the gate, the key and, for an unknown name, the nearest known one.
    """
    gates: list[Gate] = []
    faults: list[ConfigError] = []
    for number, table in enumerate(tables, start=1):
        where = f"{origin}: [[gates]] {number}"
        try:
            gate = validated(Gate, dict(table), where=where, starter="gates")
            if not gate.stage and len(stages) == 1:
                gate = gate.model_copy(update={"stage": next(iter(stages))})
            _check(gate, stages)
            gates.append(_named(gate, gates))
        except ConfigError as error:
            faults.append(error)
        except ValueError as error:
            faults.append(ConfigError(f"{where}: {error}"))
    if faults:
        raise together(faults)
    return tuple(gates)


def _named(gate: Gate, others: Sequence[Gate]) -> Gate:
    """Return the gate with a name of its own."""
    names = {other.name for other in others}
    if gate.name in names:
        message = f"name: an earlier gate is called {gate.name!r}"
        raise ValueError(message)
    base = gate.name or f"{gate.stage}.{gate.metric or 'rows'}"[:60]
    numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(others) + 2))
    return gate.model_copy(update={"name": next(name for name in numbered if name not in names)})


def _check(gate: Gate, stages: Stages) -> None:
    """Refuse what no data can give: stages, metrics, thresholds, criteria and groupings that are not there."""
    if gate.stage not in stages:
        message = f"stage: no stage is called {gate.stage!r}{near(gate.stage, stages)}"
        raise ValueError(message if gate.stage else f"`stage` is missing: name one of {', '.join(stages)}")
    _check_of_stage(gate, *stages[gate.stage])
    baseline = gate.baseline
    if baseline is None or baseline in {PREVIOUS, SAME_WEEKDAY} or RUN_NAME.fullmatch(baseline):
        return
    if baseline not in stages:
        hint = near(baseline, [PREVIOUS, SAME_WEEKDAY, *stages])
        message = f"baseline: {baseline!r} is no stage{hint or ', and no run: runs have ids of 12 hexadecimal digits'}"
        raise ValueError(message)
    if baseline == gate.stage:
        message = "baseline: a stage does not differ from itself"
        raise ValueError(message)
    _check_of_stage(gate, *stages[baseline], words=f"baseline {baseline}: ")


def _check_of_stage(gate: Gate, stage: Stage, params: StageParameters, words: str = "") -> None:
    for fault in (*_faults_of_metric(gate, stage, params), *_faults_of_row(gate, stage, params)):
        raise ValueError(words + fault)
    columns = set(gate.columns)
    if not any(set(grouping) == columns for grouping in params.by):
        groupings = "; ".join(", ".join(grouping) or "the total" for grouping in params.by)
        key = "by" if gate.by is not None else "group"
        asked = ", ".join(gate.columns) or "the total"
        names = [name for grouping in params.by for name in grouping]
        hint = next((near(name, names) for name in gate.columns if name not in names), "")
        message = f"{words}{key}: stage {params.name!r} has no results by {asked}{hint or f': it has {groupings}'}"
        raise ValueError(message)


def _faults_of_metric(gate: Gate, stage: Stage, params: StageParameters) -> Iterator[str]:
    if gate.metric is None:
        return
    tables = stage.tables_of(params)
    names = list(dict.fromkeys(name for table in tables for name in _limited_columns(table)))
    if gate.metric not in names:
        columns = {column.name for table in tables for column in table.columns if column.type != "VARCHAR"}
        if gate.metric in columns:
            yield f"metric: {gate.metric} of {params.name!r} has no interval, without which no gate can judge it"
        else:
            yield f"metric: {params.name!r} has no {gate.metric!r}{near(gate.metric, names)}"
    if gate.conditions != ("min_rows",) and params.uncertainty == "none":
        yield f'metric: {params.name!r} has uncertainty = "none", and no gate can judge a number without an interval'


def _faults_of_row(gate: Gate, stage: Stage, params: StageParameters) -> Iterator[str]:
    if gate.threshold is not None:
        if not any(gate.metric in _limited_columns(table) for table in curves(stage)):
            yield f"threshold: {gate.metric} of {params.name!r} has no intervals by threshold"
        values = params.threshold_values
        if values is not None and gate.threshold < values[0]:
            yield f"threshold: {gate.threshold:g} lies below all thresholds of {params.name!r}, from {values[0]:g} on"
    # the criteria of a stage that chooses thresholds, as far as its parameters name them
    points = getattr(params, "operating_points", None) or ()
    texts = [str(point.text) for point in points if hasattr(point, "text")]
    criteria = [*texts, "recall_reference"] if texts else []
    is_chosen = gate.criterion is not None and gate.criterion.partition("=")[0] in CHOOSING
    if criteria and gate.criterion not in {None, *criteria} and (is_chosen or "=" not in str(gate.criterion)):
        yield f"criterion: {params.name!r} has no {gate.criterion!r}{near(str(gate.criterion), criteria)}"


def _limited_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that have intervals."""
    names = {column.name for column in table.columns}
    return tuple(column.name for column in table.columns if f"{column.name}_lower" in names)


def curves(stage: Stage) -> tuple[Table, ...]:
    """Return the tables of a stage with rows by threshold."""
    return tuple(table for table in stage.tables if THRESHOLD in table.key)


Group: TypeAlias = "tuple[tuple[str, str | None], ...]"  # columns with their values as text, sorted by column
REFERENCE = "recall_reference"
SIZES = (
    ("n",),
    ("n_gold",),
    ("n_queries",),
    ("m_before", "m_after"),
    ("tp", "fp", "fn", "tn"),
    ("n_true", "n_predicted"),
)
_OPTIONAL = frozenset({"tn"})


@dataclass(frozen=True)
class JudgedRow:
    """One number of one group, with its limits; None where it is undefined, or without an interval.

    Attributes:
        columns: The columns of its grouping with their values; none: the total.
        criterion: What tells its row from others of the group, as the table `metrics` writes it; None: nothing.
        degrees: Degrees of freedom of its variance, from the effective number of clusters; infinite without clusters.
        quality: How far the limits can be trusted; None without limits.
        missing: Why number or interval is missing; empty if nothing is known of it.
        n_rows: How many rows it rests on; None where its table does not tell.
        is_share: Whether it is a share, which people read in percent.
    """

    grouping: str
    columns: Mapping[str, Any]
    table: str
    criterion: str | None
    threshold: float | None
    value: float | None
    lower: float | None
    upper: float | None
    degrees: float
    quality: str | None
    missing: str
    n_rows: float | None
    is_share: bool

    @property
    def group_json(self) -> str:
        """The group as the table `metrics` writes it."""
        return json.dumps(dict(self.columns), ensure_ascii=False, default=str)

    @property
    def group_text(self) -> str:
        """The group for people; empty for the total."""
        return values_text(list(self.columns.values())) if self.columns else ""


def group_of(columns: Mapping[str, Any]) -> Group:
    """Return what identifies a group: its columns with their values as text, in the order of the columns' names."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in columns.items()}
    return tuple(sorted((name, None if columns[name] is None else text) for name, text in texts.items()))


def judged_rows(
    gate: Gate,
    stage: Stage,
    read: ReadTable,
    *,
    next_above: bool = False,
    like: Mapping[Group, JudgedRow] | None = None,
) -> tuple[dict[Group, JudgedRow], str]:
    """Return the rows that a gate judges by group, and which table was not made; empty if one was read.

    Args:
        gate: The gate.
        stage: The task of its stage.
        read: Reads a table of the stage; None where it was not made.
        next_above: Whether the row of the next threshold above holds at a threshold that a curve lacks, as where every
            distinct score is one and equal scores are retrieved; else that of the next below.
        like: The rows of these are compared with: those of the same criterion and, where the thresholds of a curve are
            given and not the scores, of the same threshold; None: they are compared with no other rows.
    """
    not_made, is_read = "", False
    for table in curves(stage) if gate.threshold is not None else stage.tables:
        limited = _limited_columns(table)
        if not limited or gate.metric not in {None, *limited}:
            continue
        frame = read(table.name)
        if frame is None:
            not_made = not_made or f"the table {table.name} was not made"
            continue
        is_read = True
        by_group = _by_group(_rows(gate, table, frame, next_above=next_above), set(gate.columns))
        by_threshold = gate.threshold is not None and not next_above
        judged = {
            group: _of_group(gate, table, rows, (like or {}).get(group), by_threshold=by_threshold)
            for group, rows in by_group.items()
        }
        if gate.threshold is not None and like is None:
            judged |= _out_of_reach(gate, table, frame, judged, next_above=next_above)
        if judged:
            return judged, ""
    return {}, "" if is_read else not_made


def _by_group(rows: Sequence[Row], columns: set[str]) -> dict[Group, list[Row]]:
    """Return the rows of the grouping with these columns, by group."""
    by_group: dict[Group, list[Row]] = {}
    for row in rows:
        if (set() if row[GROUPING.name] == TOTAL else set(row[GROUPING.name].split(","))) == columns:
            by_group.setdefault(group_of(_group(row)), []).append(row)
    return by_group


def _of_group(
    gate: Gate, table: Table, rows: Sequence[Row], other: JudgedRow | None, *, by_threshold: bool
) -> JudgedRow:
    """Return the row of a group that a gate means; if it is compared with another row, the one that may be."""
    if other is None or (by_threshold and other.threshold is None):
        return _judged(gate, table, _chosen(rows, table))
    alike = [
        row
        for row in rows
        if criterion_of(row, metric_key(table)) == other.criterion
        and (not by_threshold or _float(row.get(THRESHOLD)) == other.threshold)
    ]
    if alike:
        return _judged(gate, table, _chosen(alike, table))
    at = f"the threshold {other.threshold:.10g}" if by_threshold else other.criterion
    return _without_number(gate, table, rows[0], f"there is none at {at}")


def _out_of_reach(
    gate: Gate, table: Table, frame: pl.DataFrame, judged: Mapping[Group, JudgedRow], *, next_above: bool
) -> dict[Group, JudgedRow]:
    """Return the groups whose curves do not reach the threshold of the gate, without a number."""
    missing = f"its curve has no threshold {'at or above' if next_above else 'at or below'} {gate.threshold:.10g}"
    points = list(frame.filter(pl.col(THRESHOLD).is_not_null()).iter_rows(named=True))
    return {
        group: _without_number(gate, table, rows[0], missing)
        for group, rows in _by_group(points, set(gate.columns)).items()
        if group not in judged
    }


def _without_number(gate: Gate, table: Table, row: Row, missing: str) -> JudgedRow:
    nothing: dict[str, Any] = dict.fromkeys(("threshold", "value", "lower", "upper", "quality", "n_rows"))
    return replace(_judged(gate, table, row), missing=missing, **nothing)


def _rows(gate: Gate, table: Table, frame: pl.DataFrame, *, next_above: bool) -> list[Row]:
    """Return the rows that the gate may mean: of a curve at its threshold, else those that are no points of a curve."""
    if gate.threshold is not None:
        at = pl.col(THRESHOLD)
        side = frame.filter(at >= gate.threshold if next_above else at <= gate.threshold)
        side = side.sort(THRESHOLD, descending=next_above, maintain_order=True)
        keys = [name for name in frame.columns if name not in {column.name for column in table.columns}]
        return list(side.unique([*keys, *metric_key(table)], keep="last", maintain_order=True).iter_rows(named=True))
    of_no_curve = frame.filter(pl.col(THRESHOLD).is_null()) if THRESHOLD in table.key else frame
    rows: list[Row] = list(of_no_curve.iter_rows(named=True))
    if gate.criterion is None:
        return rows
    return [row for row in rows if criterion_of(row, metric_key(table)) == gate.criterion]


def _chosen(rows: Sequence[Row], table: Table) -> Row:
    """Return the row of a group that a gate without a criterion means.

    It is the first criterion of the config, as in the summary of the run, never the recall reference; the largest
    tolerance or cutoff; the micro average; else the first.
    """
    key = metric_key(table)
    if CRITERION in key:
        ranks = {text: rank for rank, text in enumerate(table.criteria)}  # earlier versions have another order
        return min(rows, key=lambda row: (row[CRITERION] == REFERENCE, ranks.get(row[CRITERION], len(ranks))))
    if key and all(isinstance(row[key[0]], int | float) for row in rows):
        return max(rows, key=lambda row: row[key[0]])
    return next((row for row in rows if row.get("average") == "micro"), rows[0])


def _judged(gate: Gate, table: Table, row: Row) -> JudgedRow:
    metric = gate.metric or _limited_columns(table)[0]
    value, lower, upper = (_float(row.get(name)) for name in (metric, f"{metric}_lower", f"{metric}_upper"))
    effective = _float(row.get(N_EFFECTIVE))
    return JudgedRow(
        grouping=row[GROUPING.name],
        columns=_group(row),
        table=table.name,
        criterion=criterion_of(row, metric_key(table)),
        threshold=_float(row.get(THRESHOLD)),
        value=value,
        lower=lower,
        upper=upper,
        degrees=math.inf if effective is None else max(effective - 1, 1.0),
        quality=quality_of(row, metric) if lower is not None or upper is not None else None,
        missing=str(row.get("undefined" if value is None else UNDEFINED_INTERVAL) or ""),
        n_rows=_size(row),
        is_share=any(column.is_share for column in table.columns if column.name == f"{metric}_lower"),
    )


def _size(row: Row) -> float | None:
    """Return how many rows a row of results rests on: the first that its table tells of `SIZES`."""
    for names in SIZES:
        if all(row.get(name) is not None for name in names if name not in _OPTIONAL):
            return float(sum(row.get(name) or 0 for name in names))
    return None


def _group(row: Row) -> dict[str, Any]:
    return {} if row[GROUPING.name] == TOTAL else {name: row[name] for name in row[GROUPING.name].split(",")}


def _float(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]  # a number of a result table


# One gate judged: the numbers of its groups, a test of each, p-values adjusted over all of them, outcomes.


Outcome: TypeAlias = Literal["passed", "failed", "undecided"]
DEFAULT_LEVEL = 0.95  # of intervals, where a run does not tell
UNFOUNDED: Quality = "assumption_failed"  # limits that cannot show that a number is good enough
WITHOUT_ASSUMPTION = "the data contradict the assumption that its interval rests on (assumption_failed)"
_TESTS = {"min": p_values_below, "max": p_values_above}
_TESTS_OF_DIFFERENCES = {"max_drop": p_values_of_drop, "max_rise": p_values_of_rise, "max_change": p_values_of_change}


@dataclass(frozen=True)
class Numbers:
    """The rows that a gate judges, or compares with, by group; or why they are missing.

    Attributes:
        confidence: Level of their intervals.
        run: The run that they come from, for a baseline that is an earlier run; else empty.
        words: What they are called in sentences, for a baseline.
    """

    rows: Mapping[Group, JudgedRow] = field(default_factory=dict)
    missing: str = ""
    confidence: float = DEFAULT_LEVEL
    run: str = ""
    words: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one limit of a gate in one group.

    Attributes:
        row: The number; None where the group, or the number, is not there.
        before: The number of the baseline; None without one.
        outcome: `undecided` where the data cannot tell.
        reason: Why it is undecided, or failed without a test; else empty.
        p_value: One-sided, two-sided for `max_change`; nan without a test.
        p_adjusted: The same adjusted by Holm over all tests of the gate.
    """

    gate: Gate
    condition: Condition
    row: JudgedRow | None
    before: JudgedRow | None
    outcome: Outcome
    reason: str = ""
    p_value: float = math.nan
    p_adjusted: float = math.nan
    baseline: Numbers = field(default_factory=Numbers)


def judge(gate: Gate, now: Numbers, baseline: Numbers) -> list[Verdict]:
    """Judge a gate: a verdict for each of its limits and groups, in the order of the tables.

    The baseline is empty for a gate that compares nothing.
    """
    wanted = _wanted(gate, now)
    if not wanted:  # a group that was named and has no row fails
        why = now.missing or ("the group has no rows" if gate.group else "it has no row")
        outcome: Outcome = "undecided" if now.missing else "failed"
        return [Verdict(gate, condition, None, None, outcome, why) for condition in gate.conditions]
    verdicts = [verdict for condition in gate.conditions for verdict in _tried(gate, condition, wanted, now, baseline)]
    adjusted = adjust_p_values([verdict.p_value for verdict in verdicts], "holm")
    return [
        *(_decided(verdict, float(p_adjusted)) for verdict, p_adjusted in zip(verdicts, adjusted, strict=True)),
        *_gone(gate, now, baseline),
    ]


def _wanted(gate: Gate, now: Numbers) -> list[Group]:
    if gate.by is not None:
        return list(now.rows)
    texts = {name: str(value) for name, value in group_of(gate.group or {})}
    groups = (group_of(written) for written in written_groups(texts))
    return list(islice((group for group in groups if group in now.rows), 1))


def _gone(gate: Gate, now: Numbers, baseline: Numbers) -> Iterator[Verdict]:
    """Yield a verdict for each group that the baseline has, and the run has not."""
    conditions = [condition for condition in gate.conditions if condition in OF_DIFFERENCES]
    if gate.by is not None and conditions:
        for group, before in baseline.rows.items():
            if group not in now.rows:
                reason = f"the group has no rows; it had in {baseline.words}"
                yield Verdict(gate, conditions[0], None, before, "undecided", reason, baseline=baseline)


def _tried(
    gate: Gate, condition: Condition, groups: Sequence[Group], now: Numbers, baseline: Numbers
) -> Iterator[Verdict]:
    """Yield a verdict for every group, `passed` until its p-value is adjusted and found small."""
    rows = [now.rows[group] for group in groups]
    if condition == "min_rows":
        for row in rows:
            if row.n_rows is None:
                yield Verdict(gate, condition, row, None, "undecided", "its table does not tell the number of rows")
            else:
                yield Verdict(gate, condition, row, None, "failed" if row.n_rows < gate.limit(condition) else "passed")
        return
    estimates = _estimates(rows, now.confidence)
    if condition not in OF_DIFFERENCES:
        p_values = _TESTS[condition](estimates, gate.limit(condition))
        for row, p_value in zip(rows, p_values, strict=True):
            yield Verdict(gate, condition, row, None, "passed", p_value=float(p_value))
        return
    earlier = [baseline.rows.get(group) for group in groups]
    before = _estimates(earlier, baseline.confidence)
    p_values = _TESTS_OF_DIFFERENCES[condition](before, estimates, gate.limit(condition))
    for row, of_baseline, p_value in zip(rows, earlier, p_values, strict=True):
        yield Verdict(gate, condition, row, of_baseline, "passed", p_value=float(p_value), baseline=baseline)


def _estimates(rows: Sequence[JudgedRow | None], confidence: float) -> Estimates:
    columns = [
        (row.value, row.lower, row.upper, row.degrees) if row is not None else (None, None, None, math.inf)
        for row in rows
    ]
    value, lower, upper, degrees = (np.array(column, dtype=np.float64) for column in zip(*columns, strict=True))
    return Estimates(value, lower, upper, degrees, confidence)


def _decided(verdict: Verdict, p_adjusted: float) -> Verdict:
    """Return a verdict with its adjusted p-value: it fails where that is small, and is undecided where it is nan."""
    row = verdict.row
    if verdict.gate.threshold is not None and row is not None and row.threshold is None:
        return replace(verdict, outcome="failed", reason=row.missing)  # as where the group has no rows
    if verdict.condition == "min_rows":
        return verdict
    if math.isnan(p_adjusted):
        return replace(verdict, outcome="undecided", reason=_why_undecided(verdict))
    if p_adjusted <= 1 - verdict.gate.level:
        return replace(verdict, p_adjusted=p_adjusted, outcome="failed")
    if any(number is not None and number.quality == UNFOUNDED for number in (row, verdict.before)):
        return replace(verdict, p_adjusted=p_adjusted, outcome="undecided", reason=WITHOUT_ASSUMPTION)
    return replace(verdict, p_adjusted=p_adjusted)


def _why_undecided(verdict: Verdict) -> str:
    numbers = [(verdict.row, "")]
    if verdict.condition in OF_DIFFERENCES:
        if verdict.baseline.missing or verdict.before is None:
            return verdict.baseline.missing or f"{verdict.baseline.words} has no such group"
        numbers.append((verdict.before, f" in {verdict.baseline.words}"))
    for row, words in numbers:
        in_brackets = f" ({row.missing})" if row is not None and row.missing else ""
        if row is None or row.value is None:
            return f"it is not defined{words}{in_brackets}"
        if row.lower is None or row.upper is None:
            return f"it has no interval{words}{in_brackets}"
    return "it has no p-value"
