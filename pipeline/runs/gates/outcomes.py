"""The gates of a run: judged once its tables are written, kept as the table `gates` and in its record."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ...records import dataclass
from ...storage.attempts import utc_now
from ...storage.layout import generation_of, run_id_of
from ...tables.groupings import TOTAL
from ...tables.run_tables import GATES
from ...tables.schemas import polars_types
from .baselines import History, day_of, reader_of_folder
from .judging import DEFAULT_LEVEL, Numbers, Verdict, judge
from .rows import judged_rows
from .sentences import sentence, sentences_of_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...stages.parameters import StageParameters
    from ...storage.publish import Staging
    from ...storage.state import State
    from ..config import Config
    from ..stage_results import StageResult
    from .settings import Gate


@dataclass(frozen=True)
class Judged:
    """The gates of a run, judged.

    Attributes:
        rows: The rows of the table `gates`.
        warnings: What is to be known before the numbers of a stage are used, by its name.
    """

    rows: tuple[Mapping[str, Any], ...]
    warnings: Mapping[str, tuple[str, ...]]

    def with_warnings(self, results: Sequence[StageResult]) -> tuple[StageResult, ...]:
        """Return the results of the stages with the warnings of their gates."""
        return tuple(
            replace(result, warnings=(*self.warnings.get(result.name, ()), *result.warnings)) for result in results
        )


def settings_of(config: Config) -> list[dict[str, Any]]:
    """Return the gates of a config as its record keeps them."""
    return [gate.model_dump(mode="json", exclude_none=True) for gate in config.gates]


def judge_gates(
    config: Config,
    staging: Staging,
    state: State,
    inputs: Sequence[Mapping[str, Any]],
    attempt: Mapping[str, Any],
) -> Judged:
    """Judge the gates of a run whose other tables are written, and write the table `gates` of each judged stage.

    Args:
        config: Its config.
        staging: The run.
        state: The results folder before it is published.
        inputs: The input records of the run.
        attempt: The record of the attempt, whose `ds` is the logical date of the run, if it has one.
    """
    values = config.variables.record().get("vars", {})
    history = History(state.layout, state.kept, inputs, day_of(attempt, utc_now()), "ds" in attempt, values)
    rows: list[Mapping[str, Any]] = []
    warnings: dict[str, tuple[str, ...]] = {}
    for gate in config.gates:
        verdicts = _verdicts(gate, config, staging.folder, history)
        rows += [_row(verdict) for verdict in verdicts]
        warnings[gate.stage] = (*warnings.get(gate.stage, ()), *sentences_of_warnings(verdicts))
    for name in dict.fromkeys(gate.stage for gate in config.gates):
        staging.write(GATES, name, _frame([row for row in rows if row["stage"] == name]), {})
    return Judged(tuple(rows), warnings)


def _verdicts(gate: Gate, config: Config, folder: Path, history: History) -> list[Verdict]:
    stages = {configured.params.name: configured for configured in config.every}
    judged = stages[gate.stage]
    stage = judged.stage.as_asked(judged.params)
    next_above = _holds_next_above(judged.params)
    like, missing = judged_rows(gate, stage, reader_of_folder(folder, gate.stage), next_above=next_above)
    now = Numbers(like, missing, judged.params.confidence)
    if gate.baseline is None:
        return judge(gate, now, Numbers())
    other = stages.get(gate.baseline)
    if other is not None:
        reader = reader_of_folder(folder, gate.baseline)
        is_above, other_stage = _holds_next_above(other.params), other.stage.as_asked(other.params)
        rows, missing = judged_rows(gate, other_stage, reader, next_above=is_above, like=like)
        words = f"stage {gate.baseline}"
        return judge(gate, now, Numbers(rows, missing and f"{words}: {missing}", other.params.confidence, "", words))
    earlier, reason = history.find(gate.baseline, frozenset(judged.upstream or (gate.stage,)))
    if earlier is None:
        return judge(gate, now, Numbers(missing=reason))
    rows, missing = judged_rows(gate, stage, earlier.reader(gate.stage), next_above=next_above, like=like)
    words = f"run {generation_of(earlier.name)}"
    confidence = earlier.confidence(gate.stage) or DEFAULT_LEVEL
    missing = f"{words} has no such number" if missing else ""
    return judge(gate, now, Numbers(rows, missing, confidence, earlier.name, words))


def _holds_next_above(params: StageParameters) -> bool:
    """Whether a curve has, between two of its thresholds, the counts of the next above.

    It has where every distinct score is a threshold and scores equal to it are retrieved.
    """
    return params.grid() is None and params.boundary == ">="


def _row(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row of the table `gates`."""
    gate, row, before = verdict.gate, verdict.row, verdict.before
    shown = row or before
    group = json.dumps(gate.group or {}, ensure_ascii=False, default=str) if shown is None else shown.group_json
    grouping = (",".join(gate.columns) or TOTAL) if shown is None else shown.grouping
    return {
        "stage": gate.stage,
        "gate": gate.name,
        "condition": verdict.condition,
        "metric": gate.metric,
        "grouping": grouping,
        "group": group,
        "result_table": None if shown is None else shown.table,
        "criterion": gate.criterion if shown is None else shown.criterion,
        "threshold": gate.threshold if shown is None else shown.threshold,
        "value": None if row is None else row.value,
        "lower": None if row is None else row.lower,
        "upper": None if row is None else row.upper,
        "quality": None if row is None else row.quality,
        "n_rows": None if row is None else row.n_rows,
        "baseline": gate.baseline,
        "baseline_run": run_id_of(verdict.baseline.run) or None,
        "baseline_value": None if before is None else before.value,
        "baseline_lower": None if before is None else before.lower,
        "baseline_upper": None if before is None else before.upper,
        "limit": gate.limit(verdict.condition),
        "p_value": None if math.isnan(verdict.p_value) else verdict.p_value,
        "p_adjusted": None if math.isnan(verdict.p_adjusted) else verdict.p_adjusted,
        "confidence": gate.level,
        "outcome": verdict.outcome,
        "on_fail": gate.on_fail,
        "sentence": sentence(verdict),
    }


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    schema = {column.name: polars_types(column.type)[0] for column in GATES.columns}
    return pl.DataFrame(list(rows), schema=schema, orient="row")
