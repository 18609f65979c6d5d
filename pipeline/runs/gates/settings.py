"""The tables `[[gates]]` of a config: what a gate can be told, and what the stages say against it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ...errors import ConfigError, together
from ...metrics.comparison.student import NIGHTS_PER_YEAR, confidence_for
from ...stages.parameters import NAME
from ...tables.columns import THRESHOLD
from ..config_faults import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...stages.parameters import StageParameters
    from ...stages.stage import Stage
    from ...tables.schemas import Table

    Stages: TypeAlias = Mapping[str, tuple[Stage, StageParameters]]

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
        """What it judges, for people."""
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
    """Check the gates of a config.

    Args:
        tables: Their tables.
        stages: Task and parameters of every stage by its name.
        origin: Name of the config in messages.
        validated: Makes a model of a table, or raises a `ConfigError`.

    Raises:
        ConfigError: it names the gate, the key and, for an unknown name, the nearest known one.
    """
    gates: list[Gate] = []
    faults: list[ConfigError] = []
    for number, table in enumerate(tables, start=1):
        where = f"{origin}: [[gates]] {number}"
        try:
            gate = _with_stage(validated(Gate, dict(table), where=where, starter="gates"), stages)
            _check(gate, stages)
            gates.append(_named(gate, gates))
        except ConfigError as error:
            faults.append(error)
        except ValueError as error:
            faults.append(ConfigError(f"{where}: {error}"))
    if faults:
        raise together(faults)
    return tuple(gates)


def _with_stage(gate: Gate, stages: Stages) -> Gate:
    if not gate.stage and len(stages) == 1:
        return gate.model_copy(update={"stage": next(iter(stages))})
    if not gate.stage:
        message = f"`stage` is missing: name one of {', '.join(stages)}"
        raise ValueError(message)
    return gate


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
        raise ValueError(message)
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
    names = list(dict.fromkeys(name for table in tables for name in limited_columns(table)))
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
        if not any(gate.metric in limited_columns(table) for table in curves(stage)):
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


def limited_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that have intervals."""
    names = {column.name for column in table.columns}
    return tuple(column.name for column in table.columns if f"{column.name}_lower" in names)


def curves(stage: Stage) -> tuple[Table, ...]:
    """Return the tables of a stage with rows by threshold."""
    return tuple(table for table in stage.tables if THRESHOLD in table.key)
