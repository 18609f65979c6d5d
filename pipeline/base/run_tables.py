"""Contracts of the tables that every run has, and the long table `metrics` of all key figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from .columns import THRESHOLD
from .schemas import CRITERION, GROUPING, STAGE_COLUMN, TOTAL, Column, Table, internal_name, polars_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


GROUP = Column("group", "VARCHAR", 'the group as a JSON object, such as {"source": "noon"}; {} for the total')
LIMITS = (
    Column("lower", "DOUBLE", "lower limit of its interval; NULL: none can be given"),
    Column("upper", "DOUBLE", "upper limit of its interval; NULL: none can be given"),
)
INPUTS = Table(
    "inputs",
    "one row per stage, input and status of rows: rows in = rows used + rows left out, by reason",
    (
        STAGE_COLUMN,
        Column(
            "input",
            "VARCHAR",
            "name of the input: `pairs`, `events`, `articles`, `gold`, `gold_articles`, `audited`, "
            "`predictions`, `ranking`, `relevance`, `annotations`, `series`, `runs`, `coders`, `predicted`, "
            "`documents`, `units`",
        ),
        Column("status", "VARCHAR", "`used`, or why rows were left out"),
        Column("n_rows", "BIGINT", "number of rows with this status"),
        Column("rows_in", "BIGINT", "rows of the input in all files that were opened"),
        Column("rows_used", "BIGINT", "rows of the input that were used"),
        Column("n_files", "BIGINT", "files of the input that were opened"),
        Column(
            "files_left_out",
            "BIGINT",
            "files that were not opened, since `where` holds for no row of their partitions; "
            "their rows are not counted",
        ),
    ),
    ("stage", "input", "status"),
)
BINDINGS = Table(
    "bindings",
    "one row per stage, input and field: what it was read from",
    (
        STAGE_COLUMN,
        Column("input", "VARCHAR", "name of the input"),
        Column(
            "field",
            "VARCHAR",
            "canonical name of the field, or of another column that the stage reads, such as a grouping column",
        ),
        Column("source", "VARCHAR", "`mapped`, `named`, `derived` or `absent`"),
        Column("file_column", "VARCHAR", "name of the column in the files; NULL: no one column is read"),
        Column(
            "sql",
            "VARCHAR",
            "the expression, or what the field is derived from, in words; NULL: neither mapped to an expression"
            " nor derived",
        ),
    ),
    ("stage", "input", "field"),
)
METRICS = Table(
    "metrics",
    "one row per stage, group, criterion and metric",
    (
        STAGE_COLUMN,
        GROUPING,
        GROUP,
        Column("result_table", "VARCHAR", "the table that the value comes from"),
        Column(
            "criterion",
            "VARCHAR",
            "what tells the rows of that table apart in a group: the criterion of an operating point, else "
            "key=value, comma-separated; NULL: the group has one row",
        ),
        Column("threshold", "DOUBLE", "the chosen threshold; NULL: there is none"),
        Column("metric", "VARCHAR", "name of the column that the value comes from"),
        Column("value", "DOUBLE", "its value; NULL: it is undefined"),
        *LIMITS,
        Column("quality", "VARCHAR", "interval_quality of the row: how far to trust the interval; NULL: without one"),
    ),
    ("stage", "result_table", "grouping", "group", "criterion", "metric"),
)

GATES = Table(
    "gates",
    "one row per gate, limit and group that it judged",
    (
        STAGE_COLUMN,
        Column("gate", "VARCHAR", "name of the gate"),
        Column("condition", "VARCHAR", "`min`, `max`, `min_rows`, `max_drop`, `max_rise` or `max_change`"),
        Column("metric", "VARCHAR", "what is judged; NULL: only rows are counted"),
        GROUPING,
        GROUP,
        Column("result_table", "VARCHAR", "the table that the value comes from; NULL: it is absent"),
        Column(
            "criterion",
            "VARCHAR",
            "what tells the judged row from others of the group, as in `metrics`; NULL: a group has one row",
        ),
        Column("threshold", "DOUBLE", "threshold of the judged row; NULL: there is none"),
        Column("value", "DOUBLE", "what was judged; NULL: it is absent or undefined"),
        *LIMITS,
        Column("quality", "VARCHAR", "interval_quality of the row: how far to trust the interval; NULL: there is none"),
        Column("n_rows", "DOUBLE", "rows that the value rests on, weights added up; NULL: unknown"),
        Column("baseline", "VARCHAR", "what it was compared with, as the config says; NULL: nothing"),
        Column("baseline_run", "VARCHAR", "id of the earlier run that this was; NULL: none"),
        Column("baseline_value", "DOUBLE", "value of the baseline; NULL: there is none"),
        Column("baseline_lower", "DOUBLE", "lower limit of the baseline's interval; NULL: there is none"),
        Column("baseline_upper", "DOUBLE", "upper limit of the baseline's interval; NULL: there is none"),
        Column("limit", "DOUBLE", "the limit of the condition; an allowance for a difference"),
        Column(
            "p_value",
            "DOUBLE",
            "probability of a value so far beyond the limit if the true one keeps it; NULL: without a test",
        ),
        Column("p_adjusted", "DOUBLE", "the same adjusted by Holm over the gate; NULL: without a test"),
        Column("confidence", "DOUBLE", "a gate fails where p_adjusted is at most 1 less this"),
        Column("outcome", "VARCHAR", "`passed`, `failed` or `undecided`"),
        Column("on_fail", "VARCHAR", "`fail`: a failure makes the run exit with 3; `warn`: it is a warning"),
        Column("sentence", "VARCHAR", "the outcome in words"),
    ),
    ("stage", "gate", "condition", "grouping", "group"),
)

RUN_ID = Column("run_id", "VARCHAR", "id of the run")
PUBLISHED_AT = Column("published_at", "TIMESTAMP", "when the run was published, in UTC")
DS = Column("ds", "DATE", "logical date of the run: the day that it is about; NULL: without one")
LABELS = Column("labels", "VARCHAR", "labels of the run, a JSON object of texts; NULL: without any")
HISTORY_COLUMNS = (RUN_ID, PUBLISHED_AT, DS, LABELS)

RUNS = Table(
    "runs",
    "one row per kept run",
    (
        RUN_ID,
        Column("generation", "BIGINT", "its place in the sequence of runs"),
        PUBLISHED_AT,
        DS,
        LABELS,
        Column("path", "VARCHAR", "its folder"),
        Column("started_at", "TIMESTAMP", "when it began, in UTC; NULL: its record is lost"),
        Column("seconds", "DOUBLE", "how long it took, in seconds; NULL: its record is lost"),
        Column("config", "VARCHAR", "the config it was run from; NULL: its record is lost"),
        Column("version", "VARCHAR", "version of thresher that made it; NULL: its record is lost"),
        Column("peak_rss_bytes", "BIGINT", "peak resident memory in bytes; NULL: unknown"),
        Column(
            "verify_inputs",
            "VARCHAR",
            "how the content of its input files was verified: `none`, `crc` or `sha256`; NULL: unknown",
        ),
        Column(
            "left_out", "VARCHAR[]", "files of the run that are damaged, whose rows are missing here; empty if none"
        ),
    ),
    ("generation",),
)
ATTEMPTS = Table(
    "attempts",
    "one row per attempt, failed ones too",
    (
        Column("run_id", "VARCHAR", "id of the attempt; that of the run if it published one"),
        Column(
            "status",
            "VARCHAR",
            "`published`, `unchanged`, `failed`, `interrupted`, `crashed` or `running`; NULL: unknown",
        ),
        Column("exit", "BIGINT", "exit code; NULL: while it runs, and if it crashed"),
        Column("error", "VARCHAR", "what went wrong, and what to do; NULL: unless it failed"),
        Column("started_at", "TIMESTAMP", "when it began, in UTC; NULL: its record is damaged"),
        Column("ended_at", "TIMESTAMP", "when it ended, in UTC; NULL: while it runs, and if it crashed"),
        Column("generation", "BIGINT", "the run that it published or found unchanged; NULL: none"),
        Column("config", "VARCHAR", "the config it was run from; NULL: its record is damaged"),
        Column("host", "VARCHAR", "name of the machine; NULL: its record is damaged"),
        DS,
    ),
    ("started_at", "run_id"),
)
STAGES = Table(
    "stages",
    "one row per stage, those without tables in this run among them",
    (
        STAGE_COLUMN,
        Column("kind", "VARCHAR", "its task; NULL: unknown"),
        Column("seconds", "DOUBLE", "how long it took, in seconds; NULL: unknown"),
        Column("rows_in", "BIGINT", "rows of its inputs in all files; NULL: unknown"),
        Column("rows_used", "BIGINT", "rows of its inputs that were used; NULL: unknown"),
        Column("n_warnings", "BIGINT", "number of its warnings"),
        Column("omitted", "VARCHAR[]", "result tables that were not made, each as `table: reason`; empty if none"),
        Column(
            "carried_from",
            "VARCHAR",
            "id of the earlier run that its rows were carried forward from; NULL: rows of this run",
        ),
        Column("carried_since", "TIMESTAMP", "when that run was published, in UTC; NULL: rows of this run"),
        Column(
            "taken_over_from",
            "VARCHAR",
            "id of the attempt that had counted it from the same inputs, config and code; NULL: it was not",
        ),
        Column("exit", "BIGINT", "exit code of its error; NULL: it did not fail in this run"),
        Column("error", "VARCHAR", "what went wrong, and what to do; NULL: it did not fail in this run"),
    ),
    ("stage",),
)
PARAMETERS = Table(
    "parameters",
    "one row per stage and parameter, defaults included",
    (
        STAGE_COLUMN,
        Column("parameter", "VARCHAR", "name of the key in the config"),
        Column("value", "VARCHAR", "its value as JSON; `null` where it is not set"),
    ),
    ("stage", "parameter"),
)
WARNINGS = Table(
    "warnings",
    "one row per stage and warning",
    (
        STAGE_COLUMN,
        Column("number", "BIGINT", "place of the warning in the stage, from 1"),
        Column("warning", "VARCHAR", "what to know before using the numbers"),
    ),
    ("stage", "number"),
)
FILES = Table(
    "files",
    "one row per file of the run",
    (
        Column("path", "VARCHAR", "path in the folder of the run, with `/`"),
        Column("result_table", "VARCHAR", "the table that it belongs to; NULL: for records"),
        Column("stage", "VARCHAR", "name of the stage; NULL: for records"),
        Column("n_rows", "BIGINT", "number of rows; 0 for records"),
        Column("bytes", "BIGINT", "size in bytes"),
        Column("sha256", "VARCHAR", "hash of the content"),
        Column("in_history", "BOOLEAN", "whether schema `history` holds its rows: not those of large tables"),
    ),
    ("path",),
)
INPUT_FILES = Table(
    "input_files",
    "one row per stage and file that it read, or skipped in an input folder because of its name",
    (
        STAGE_COLUMN,
        Column("input", "VARCHAR", "name of the input"),
        Column("path", "VARCHAR", "path of the file; in the folder of the run if another stage made it"),
        Column("skipped", "BOOLEAN", "whether the file was not read because of its name"),
        Column("n_rows", "BIGINT", "number of rows; NULL: for skipped files"),
        Column("bytes", "BIGINT", "size in bytes; NULL: it was not recorded"),
        Column("footer_sha256", "VARCHAR", "hash of the Parquet footer; NULL: for skipped files, and what Spark reads"),
    ),
    ("stage", "input", "path"),
)
RECORD_TABLES = (STAGES, PARAMETERS, WARNINGS, FILES, INPUT_FILES)  # made from the manifest and the record of a run


# The table `metrics`: the key figures of every stage in one long table, derived from the contracts of its tables.
#
# What a metric is, is decided here for all who need to know, such as `thresher diff`.
#
# A result table takes part if it has intervals, or one row per group (an empty key). Of its rows those count that are
# no points of a curve: where `threshold` is part of the key, it is NULL; rows by bin of the score are all such points.
# Of its columns those count that have limits `<name>_lower` and `<name>_upper` beside them, and those that its contract
# names; in a table with one row per group, every DOUBLE column that is no limit.


QUALITY = "interval_quality"
BIN = "bin"  # key of rows by bin of the score
_LIMITS = ("_lower", "_upper")


def metrics_table(tables: Sequence[Table], frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of `metrics` of one stage from its tables, whose grouping columns have their internal names."""
    rows = [row for table in tables if table.name in frames for row in _rows(table, frames[table.name])]
    schema = {column.name: polars_types(column.type)[0] for column in METRICS.columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def metric_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that are metrics; none if the table does not take part."""
    names = {column.name for column in table.columns}
    if BIN in table.key:
        return ()
    if table.key:
        limited = (column.name for column in table.columns if f"{column.name}_lower" in names)
        return tuple(name for name in limited if name not in table.metrics) + table.metrics
    doubles = (column.name for column in table.columns if column.type == "DOUBLE")
    return tuple(name for name in doubles if not name.endswith(_LIMITS))


def metric_rows(table: Table, frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Return the rows of a table that have metrics: those that are no points of a curve."""
    if THRESHOLD in table.key:
        frame = frame.filter(pl.col(THRESHOLD).is_null()) if frame[THRESHOLD].null_count() else frame.clear()
    return frame.iter_rows(named=True)


def metric_key(table: Table) -> tuple[str, ...]:
    """Return the columns that tell such rows of a group apart."""
    return tuple(name for name in table.key if name != THRESHOLD)


def quality_of(row: Mapping[str, Any], name: str) -> str | None:
    """Return how far to trust the interval of a metric: what is cross-fitted was not chosen on the same data."""
    quality = row.get(QUALITY)
    return "good" if quality == "chosen_on_same_data" and name.endswith("_cross_fitted") else quality


def _rows(table: Table, frame: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    metrics, key = metric_columns(table), metric_key(table)
    if not metrics:
        return
    columns = [(name, *(f"{name}{side}" for side in _LIMITS)) for name in metrics]
    for row in metric_rows(table, frame):
        group = (row[STAGE_COLUMN.name], row[GROUPING.name], _group(row))
        about = (table.name, criterion_of(row, key), row.get(THRESHOLD))
        for name, *sides in columns:
            limits = tuple(map(row.get, sides))
            quality = quality_of(row, name) if limits != (None, None) else None
            yield (*group, *about, name, row[name], *limits, quality)


def _group(row: Mapping[str, Any]) -> str:
    """Return the group of a row as JSON: the users' names of its grouping columns and their values."""
    if row[GROUPING.name] == TOTAL:
        return "{}"
    values = {name: row[internal_name(name)] for name in row[GROUPING.name].split(",")}
    return json.dumps(values, ensure_ascii=False, default=str)


def criterion_of(row: Mapping[str, Any], key: Sequence[str]) -> str | None:
    """Return what tells a row from the others of its group, as people write it: `max_f1`, `tolerance_km=161`."""
    values = ((name, str(row[name]).removesuffix(".0")) for name in key)
    return ", ".join(value if name == CRITERION else f"{name}={value}" for name, value in values) or None
