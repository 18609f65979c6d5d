"""The outcomes of gates: what a run is compared with, the table `gates`, sentences, and files for CI systems."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree as ET

import polars as pl

from ..base.errors import BusyError, ThresherError
from ..base.paths import read_file, remove_own
from ..base.records import dataclass
from ..base.run_tables import GATES
from ..base.schemas import TOTAL, polars_types, values_text
from ..base.visible_text import cleaned, percent, rows_in_words
from ..metrics.uncertainty.limits import DOUBTFUL
from ..storage.layout import (
    RUN_RECORD,
    DamagedError,
    KeptRun,
    Layout,
    generation_of,
    json_bytes,
    own_sha256,
    read_kept_run,
    read_record,
    run_id_of,
    storage_errors,
)
from ..storage.state import utc_now
from .config import Config
from .gates import DEFAULT_LEVEL, OF_DIFFERENCES, PREVIOUS, SAME_WEEKDAY, Numbers, Verdict, judge, judged_rows
from .stage_results import is_failure
from .variables import substituted
from .written import gate_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..stages.parameters import StageParameters
    from ..storage.publish import Staging
    from ..storage.state import State
    from .gates import Gate, JudgedRow
    from .written import OwnFile


DAY, WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True)
class _EarlierRun:
    """A kept run that numbers are compared with, and its record."""

    kept: KeptRun
    record: Mapping[str, Any]

    @property
    def day(self) -> date:
        """Its logical date."""
        return day_of(self.record, "" if self.kept.manifest is None else self.kept.manifest.published_at)

    def confidence(self, stage: str) -> float | None:
        """Return the confidence of the intervals of a stage; None if the run did not have it."""
        with suppress(KeyError, TypeError, ValueError):
            for parameters in self.record["configuration"]["stages"]:
                if parameters["name"] == stage:
                    return float(parameters["confidence"])
        return None

    def reader(self, stage: str) -> Callable[[str], pl.DataFrame | None]:
        """Return what reads a table of a stage; it gives None for a table that is missing or damaged."""
        files = {} if self.kept.manifest is None else self.kept.manifest.results

        def read(table: str) -> pl.DataFrame | None:
            path = f"{table}/{stage}.parquet"
            with suppress(DamagedError):
                if path in files and own_sha256(self.kept.folder / path) == files[path]:
                    return pl.read_parquet(self.kept.folder / path)
            return None

        return read


@dataclass(frozen=True)
class History:
    """The kept runs of a results folder, as a run sees them that is about to be published.

    Attributes:
        names: Names of the folders of the kept runs, oldest first.
        inputs: The input records of this run.
        day: Its logical date.
        is_dated: Whether the run was given that date, so that earlier runs are those of earlier dates; else they are
            those that were published before.
        values: Values of the variables that paths and SQL of the config refer to, by name.
    """

    layout: Layout
    names: Sequence[str]
    inputs: Sequence[Mapping[str, Any]]
    day: date
    is_dated: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    _read: dict[str, _EarlierRun | None] = field(default_factory=dict)

    def find(self, baseline: str, stages: frozenset[str]) -> tuple[_EarlierRun | None, str]:
        """Return the run that a baseline means, and why there is none, empty if there is.

        The previous run is the last one, by logical date if this run has one, in which `stages`, the judged one or
        those whose tables it reads, read other data: other files, or files through variables that had other values. A
        night that is run again, because its run was damaged or because gates, config or code changed, is held against
        the night before.
        """
        if baseline == PREVIOUS:
            return self._previous(stages), "there is no earlier run of other data yet"
        if baseline == SAME_WEEKDAY:
            wanted = self.day - WEEK
            return next((run for run in self._backwards() if run.day == wanted), None), f"there is no run of {wanted}"
        for name in reversed(self.names):
            if baseline in {name, run_id_of(name)}:
                return self._opened(name), f"the run {name} is damaged"
        return None, f"the run {baseline} is not kept"

    def _previous(self, stages: frozenset[str]) -> _EarlierRun | None:
        now, previous = _files(self.inputs, stages), None
        for run in self._backwards():
            files = _files(run.record.get("inputs", ()), stages)
            is_same = files == now and not self._had_other_values(run, stages)
            if not files or is_same or (self.is_dated and run.day >= self.day):
                continue
            if previous is None or run.day > previous.day:
                previous = run
            if not self.is_dated or previous.day == self.day - DAY:
                break
        return previous

    def _had_other_values(self, run: _EarlierRun, stages: frozenset[str]) -> bool:
        """Whether the stages, as a run had them, refer to variables that have other values now."""
        with suppress(KeyError, TypeError, AttributeError):
            text = json.dumps([each for each in run.record["configuration"]["stages"] if each["name"] in stages])
            values = run.record.get("vars", {}).items()
            return any(f"${{{name}}}" in text and self.values.get(name) != value for name, value in values)
        return False

    def _backwards(self) -> Iterator[_EarlierRun]:
        """Yield the intact runs, the latest first."""
        return filter(None, map(self._opened, reversed(self.names)))

    def _opened(self, name: str) -> _EarlierRun | None:
        if name not in self._read:
            kept = read_kept_run(self.layout, name)
            record = read_record(kept.folder / RUN_RECORD)
            self._read[name] = _EarlierRun(kept, record) if kept.is_readable and record is not None else None
        return self._read[name]


def _files(records: Sequence[Mapping[str, Any]], stages: frozenset[str]) -> list[str]:
    """Return what identifies the content of the files that some stages read, wherever they lie."""
    names = ("stage", "input", "rows", "footer_sha256")
    return sorted(str([record.get(name) for name in names]) for record in records if record.get("stage") in stages)


def day_of(record: Mapping[str, Any], published_at: str) -> date:
    """Return the logical date of a run: `ds` of its record, or the day on which it was published, UTC."""
    with suppress(ValueError):
        return date.fromisoformat(str(record.get("ds"))[:10])
    return date.fromisoformat(published_at[:10])


def _reader_of_folder(folder: Path, stage: str) -> Callable[[str], pl.DataFrame | None]:
    """Return what reads a table of a stage in the folder of a run that is being made; None if it was not made."""

    def read(table: str) -> pl.DataFrame | None:
        path = folder / table / f"{stage}.parquet"
        return pl.read_parquet(path) if path.is_file() else None

    return read


def judge_gates(
    config: Config, staging: Staging, state: State, inputs: Sequence[Mapping[str, Any]], attempt: Mapping[str, Any]
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, tuple[str, ...]]]:
    """Judge the gates of a run whose other tables are written, and write the table `gates` of each judged stage.

    The state is that of the results folder before the run is published, the record that of the attempt, whose `ds` is
    the logical date of the run, if it has one.

    Returns:
        The rows of the table `gates`; and by stage what is to be known before its numbers are used.
    """
    values = config.variables.record().get("vars", {})
    history = History(state.layout, state.kept, inputs, day_of(attempt, utc_now()), "ds" in attempt, values)
    rows: list[Mapping[str, Any]] = []
    warnings: dict[str, tuple[str, ...]] = {}
    for gate in config.gates:
        verdicts = _verdicts(gate, config, staging.folder, history)
        rows += [_row(verdict) for verdict in verdicts]
        warnings[gate.stage] = (*warnings.get(gate.stage, ()), *sentences_of_warnings(verdicts))
    schema = {column.name: polars_types(column.type)[0] for column in GATES.columns}
    for name in warnings:
        frame = pl.DataFrame([row for row in rows if row["stage"] == name], schema=schema, orient="row")
        staging.write(GATES, name, frame, {})
    return tuple(rows), warnings


def _verdicts(gate: Gate, config: Config, folder: Path, history: History) -> list[Verdict]:
    stages = {configured.params.name: configured for configured in config.every}
    judged = stages[gate.stage]
    stage = judged.stage.as_asked(judged.params)
    next_above = _holds_next_above(judged.params)
    like, missing = judged_rows(gate, stage, _reader_of_folder(folder, gate.stage), next_above=next_above)
    now = Numbers(like, missing, judged.params.confidence)
    if gate.baseline is None:
        return judge(gate, now, Numbers())
    other = stages.get(gate.baseline)
    if other is not None:
        reader = _reader_of_folder(folder, gate.baseline)
        is_above, other_stage = _holds_next_above(other.params), other.stage.as_asked(other.params)
        rows, missing = judged_rows(gate, other_stage, reader, next_above=is_above, like=like)
        words = f"stage {gate.baseline}"
        return judge(gate, now, Numbers(rows, missing and f"{words}: {missing}", other.params.confidence, "", words))
    earlier, reason = history.find(gate.baseline, frozenset(judged.upstream or (gate.stage,)))
    if earlier is None:
        return judge(gate, now, Numbers(missing=reason))
    rows, missing = judged_rows(gate, stage, earlier.reader(gate.stage), next_above=next_above, like=like)
    words = f"run {generation_of(earlier.kept.folder.name)}"
    confidence = earlier.confidence(gate.stage) or DEFAULT_LEVEL
    missing = f"{words} has no such number" if missing else ""
    return judge(gate, now, Numbers(rows, missing, confidence, earlier.kept.folder.name, words))


def _holds_next_above(params: StageParameters) -> bool:
    """Whether a curve has, between two of its thresholds, the counts of the next above.

    It has where every distinct score is a threshold and scores equal to it are retrieved.
    """
    return params.grid() is None and params.boundary == ">="


def _row(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row of the table `gates`."""
    gate, row, before = verdict.gate, verdict.row, verdict.before
    about: dict[str, Any] = {
        "grouping": ",".join(gate.columns) or TOTAL,
        "group": json.dumps(gate.group or {}, ensure_ascii=False, default=str),
        "result_table": None,
        "criterion": gate.criterion,
        "threshold": gate.threshold,
    }
    if (shown := row or before) is not None:
        texts = {"grouping": shown.grouping, "group": shown.group_json, "result_table": shown.table}
        about = texts | {"criterion": shown.criterion, "threshold": shown.threshold}
    return {
        "stage": gate.stage,
        "gate": gate.name,
        "condition": verdict.condition,
        "metric": gate.metric,
        **about,
        **{name: getattr(row, name, None) for name in ("value", "lower", "upper", "quality", "n_rows")},
        "baseline": gate.baseline,
        "baseline_run": run_id_of(verdict.baseline.run) or None,
        **{f"baseline_{name}": getattr(before, name, None) for name in ("value", "lower", "upper")},
        "limit": gate.limit(verdict.condition),
        "p_value": None if math.isnan(verdict.p_value) else verdict.p_value,
        "p_adjusted": None if math.isnan(verdict.p_adjusted) else verdict.p_adjusted,
        "confidence": gate.level,
        "outcome": verdict.outcome,
        "on_fail": gate.on_fail,
        "sentence": sentence(verdict),
    }


MOST_SENTENCES = 5  # of one gate among the warnings
_SMALLEST_P = 0.0001
_VERBS = {"max_drop": "fell", "max_rise": "rose", "max_change": "changed"}
_NOUNS = {"max_drop": "fall", "max_rise": "rise", "max_change": "change"}


def sentence(verdict: Verdict) -> str:
    """Return what a verdict says, with the number that it is about."""
    marks = [row.quality for row in (verdict.row, verdict.before) if row is not None and row.quality in DOUBTFUL]
    doubt = f"; its interval is doubtful: {marks[0]}" if marks and not verdict.reason else ""
    return cleaned(f"{_subject(verdict)} {_predicate(verdict)}{doubt}", layout="")


def sentences_of_warnings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield what is to be known of one gate before its numbers are used: what it could not judge, or only warns of.

    Groups that share a reason are told together.
    """
    gate = f"gate {verdicts[0].gate.name}" if verdicts else ""
    failed = [verdict for verdict in verdicts if verdict.outcome == "failed" and verdict.gate.on_fail == "warn"]
    for verdict in failed[:MOST_SENTENCES]:
        yield f"{gate} failed: {sentence(verdict)}"
    if len(failed) > MOST_SENTENCES:
        yield f"{gate} failed in {len(failed) - MOST_SENTENCES:,} more groups: see the table gates"
    by_reason: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.outcome == "undecided":
            by_reason.setdefault(verdict.reason, []).append(verdict)
    for reason, undecided in by_reason.items():
        if len(undecided) == 1:
            yield f"gate {undecided[0].gate.name} is undecided: {sentence(undecided[0])}"
        else:
            yield f"{gate} is undecided in {len(undecided):,} groups: {cleaned(reason, layout='')}"


def _subject(verdict: Verdict) -> str:
    gate, row = verdict.gate, verdict.row or verdict.before
    group = f"{','.join(gate.group)} {values_text(list(gate.group.values()))}" if gate.group else ""
    if row is not None:
        group = "" if row.grouping == TOTAL else f"{row.grouping} {row.group_text}"
    words = [f"{gate.metric or 'rows'} of {gate.stage}"]
    if row is not None and gate.threshold is not None and row.threshold is not None:
        words.append(f"at the threshold {row.threshold:.4g}")
    elif gate.criterion is not None or (row is not None and row.criterion is not None):
        words.append(f"at {gate.criterion or (row.criterion if row is not None else '')}")
    if group:
        words.append(f"for {group}")
    return " ".join(words)


def _predicate(verdict: Verdict) -> str:
    row, condition = verdict.row, verdict.condition
    if verdict.reason:
        verb = "fails" if verdict.outcome == "failed" else "cannot be judged"
        return f"{verb}: {verdict.reason}"
    if row is None:
        return "is missing"
    limit = verdict.gate.limit(condition)
    if condition == "min_rows":
        relation = "fewer than" if verdict.outcome == "failed" else "at least"
        return f"rests on {rows_in_words(round(row.n_rows or 0))}, {relation} {limit:,.0f}"
    if condition in OF_DIFFERENCES:
        return _of_difference(verdict, row, limit)
    side, extreme = ("below", "minimum") if condition == "min" else ("above", "maximum")
    bound, value = _number(limit, is_share=row.is_share), row.value or 0.0
    if verdict.outcome == "failed":
        words = f"{side} the {extreme} of {bound} ({_p(verdict)})"
    elif value < limit if side == "below" else value > limit:
        words = f"{side} the {extreme} of {bound}, but not beyond sampling error ({_p(verdict)})"
    else:
        words = f"{'at least' if side == 'below' else 'at most'} {bound}"
    return f"is {_value(row)}, {words}"


def _of_difference(verdict: Verdict, row: JudgedRow, limit: float) -> str:
    condition, words = verdict.condition, verdict.baseline.words
    points = f"{100 * limit:.4g}"
    unit = "percentage point" if points == "1" else "percentage points"
    allowed = f"{points} {unit}" if row.is_share else f"{limit:.4g}"
    before = f"{_value(verdict.before)} in {words}" if verdict.before is not None else words
    if verdict.outcome == "failed":
        more = f", by more than {allowed}" if limit else ""
        return f"{_VERBS[condition]} from {before} to {_value(row)}{more} beyond sampling error ({_p(verdict)})"
    more = f" of more than {allowed}" if limit else ""
    return f"is {_value(row)} after {before}: no {_NOUNS[condition]}{more} beyond sampling error ({_p(verdict)})"


def _value(row: JudgedRow) -> str:
    value, lower, upper = row.value, row.lower, row.upper
    is_share = row.is_share
    if value is None or lower is None or upper is None:
        return "undefined" if value is None else _number(value, is_share=is_share)
    if is_share:
        return f"{percent(value)} ({100 * lower:.3g}–{100 * upper:.3g})"
    return f"{value:.4g} ({lower:.4g} to {upper:.4g})"


def _number(value: float, *, is_share: bool) -> str:
    return f"{100 * value:.4g}%" if is_share else f"{value:.4g}"


def _p(verdict: Verdict) -> str:
    p_value = verdict.p_adjusted
    shown = f"< {_SMALLEST_P:.4f}" if p_value < _SMALLEST_P else f"= {p_value:.2g}"
    adjusted = "adjusted p" if verdict.p_adjusted != verdict.p_value else "p"
    return f"{adjusted} {shown}"


# What gates found as files for CI systems: JSON, and JUnit's XML.
#
# The XML has what the schemas of Apache Ant and of Jenkins ask for: one suite for each stage and one case for each row
# of the table `gates`. A row that makes the run exit with 3 is a failure; one that is undecided, or only warns, is
# skipped.


Row: TypeAlias = Mapping[str, Any]


def remove(files: Iterable[OwnFile]) -> None:
    """Remove the files of an earlier run, so that a run that fails leaves none that says otherwise.

    What a run did not write stays, and what cannot be removed: the run says so when it cannot write the file.
    """
    for file in files:
        if not file.fault:
            remove_own(file.path, file.path.parent, as_far_as_possible=True)


@contextmanager
def kept_by_success(files: Sequence[OwnFile]) -> Iterator[None]:
    """Remove the files if what is done inside fails, unless another run is at work, whose files they are."""
    try:
        yield
    except BusyError:
        raise
    except BaseException:
        remove(files)
        raise


def write(files: Iterable[OwnFile], record: Row, status: str, code: int) -> tuple[str, ...]:
    """Write the files of a finished run, and return a warning for each that cannot be written.

    The record is the content of `run.json`, and the status `published` or `unchanged`.
    """
    warnings = []
    for file in files:
        is_json = file.key == "gates_json"
        try:
            with storage_errors(f"writing {file.path}"):
                file.path.parent.mkdir(parents=True, exist_ok=True)
                file.replace(json_bytes(_as_json(record, status, code)) if is_json else _as_junit(record))
        except ThresherError as error:
            warnings.append(f"the results of the gates could not be written: {error.message}")
    return tuple(warnings)


def _as_json(record: Row, status: str, code: int) -> dict[str, Any]:
    """Return what the JSON file holds."""
    rows = record.get("gates", [])
    outcomes = [row["outcome"] for row in rows]
    return {
        "run_id": record["run_id"],
        "generation": record["generation"],
        "status": status,
        "config": record.get("config"),
        "judged_at": record.get("ended_at"),
        "exit": code,
        **{outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "undecided")},
        "gates": rows,
    }


def _as_junit(record: Row) -> bytes:
    """Return the XML file."""
    rows: list[Row] = record.get("gates", [])
    by_stage: dict[str, list[Row]] = {}
    for row in rows:
        by_stage.setdefault(row["stage"], []).append(row)
    totals = {name: number for name, number in _counts(rows).items() if name != "skipped"}  # not in every schema
    root = ET.Element("testsuites", {"name": "thresher gates", "time": "0", **totals})
    for number, (stage, of_stage) in enumerate(by_stage.items()):
        root.append(_suite(number, stage, of_stage, record))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _suite(number: int, stage: str, rows: Sequence[Row], record: Row) -> ET.Element:
    moment = str(record.get("ended_at") or "1970-01-01T00:00:00")[:19]
    host = str(record.get("host") or "localhost")
    suite = ET.Element("testsuite", name=stage, package="thresher", id=str(number), timestamp=moment)
    suite.attrib.update({"hostname": _plain(host), "time": "0", **_counts(rows)})
    properties = ET.SubElement(suite, "properties")
    for name in ("run_id", "generation"):
        ET.SubElement(properties, "property", name=name, value=str(record[name]))
    for row in rows:
        suite.append(_case(row))
    ET.SubElement(suite, "system-out").text = "\n".join(_plain(row["sentence"]) for row in rows)
    ET.SubElement(suite, "system-err")
    return suite


def _case(row: Row) -> ET.Element:
    group = "" if row["grouping"] == TOTAL else f" {row['group']}"
    name = _plain(f"{row['gate']} {row['condition']}{group}")
    case = ET.Element("testcase", classname=f"thresher.{row['stage']}", name=name, time="0")
    text = _plain(row["sentence"])
    if is_failure(row):
        names = ("value", "lower", "upper", "baseline_run", "baseline_value", "limit", "p_value", "p_adjusted")
        numbers = (f"{name}: {row[name]}" for name in names if row[name] is not None)
        ET.SubElement(case, "failure", message=text, type=row["condition"]).text = "\n".join(numbers)
    elif row["outcome"] != "passed":
        word = "undecided" if row["outcome"] == "undecided" else "warning"
        ET.SubElement(case, "skipped", message=f"{word}: {text}")
    return case


def _counts(rows: Sequence[Row]) -> dict[str, str]:
    n_failures = sum(map(is_failure, rows))
    n_skipped = sum(row["outcome"] != "passed" for row in rows) - n_failures
    return {"tests": str(len(rows)), "failures": str(n_failures), "errors": "0", "skipped": str(n_skipped)}


def _plain(text: str) -> str:
    """Return a text that XML can hold."""
    return cleaned(text, layout="").replace("\ufffe", "").replace("\uffff", "")


def remove_of_faulty(config: object, overrides: Mapping[str, Any] | None, values: Mapping[str, Any] | None) -> None:
    """Remove the files of the gates that a config names which cannot be used, as far as their place can be told.

    The config may be a path, a dictionary or a checked one; its values by dotted key, and those of its variables, may
    be replaced.
    """
    if isinstance(config, Config):
        remove(config.gate_files)
        return
    document, base = _document_and_base(config)
    declared = {"vars": document["vars"]} if "vars" in document else {}
    for key in ("gates_json", "gates_junit"):
        written = (overrides or {}).get(key, document.get(key))
        if isinstance(written, str | os.PathLike):
            with suppress(ThresherError):  # a reference in it has no value, or the text names no place here
                chosen = (values or {}) if declared else {}
                texts, _ = substituted({**declared, key: os.fsdecode(written)}, chosen, origin="<config>")
                remove(gate_files(texts, base, "<config>"))


def _document_and_base(config: object) -> tuple[Mapping[str, Any], Path]:
    """Return what can be read of a config, and the folder that its relative paths start from."""
    if isinstance(config, Mapping):
        return config, Path.cwd()
    if not isinstance(config, str | os.PathLike):
        return {}, Path.cwd()
    path = Path(os.fsdecode(config))
    try:
        return tomllib.loads(read_file(path).decode("utf-8-sig")), path.resolve().parent
    except (OSError, ValueError, RecursionError):
        return {}, path.absolute().parent
