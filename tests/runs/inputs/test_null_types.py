"""Columns of Arrow type null, as writers choose it where no value is there, are columns of NULLs of the right type."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot.expressions as exp
from cases.reading import CASES, prepare
from running import points_tables, run_stages, run_threshold_sweep, stage_config

import thresher
from pipeline.base.errors import DataError, ThresherError
from pipeline.base.interrupts import StopRequest
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources
from pipeline.plan.accounting import count
from pipeline.plan.count_tables import CountTables
from pipeline.plan.nodes import Check, Progress, Relation
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.opening import OpenedStage

CHOSEN = (
    "before_after/given_counts",
    "before_after/timelines",
    "before_after/several_groupings",
    "change_points/runs",
    "change_points/times",
    "change_points/separate",
    "compare/counts",
    "entity_recognition/systems_and_confidence",
    "geocoding/candidates_of_matched_mentions",
    "geocoding/antimeridian_and_poles",
    "ranking/pool",
    "ranking/ties_order",
    "threshold_sweep/averages",
    "threshold_sweep/weights",
)


def no_value(name: str, *, typed: bool) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        kind = table.schema.field(index).type if typed else pa.null()
        return table.set_column(index, name, pa.nulls(table.num_rows, kind))

    return change


def no_row(*, typed: bool) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        schema = pa.schema([(field.name, field.type if typed else pa.null()) for field in table.schema])
        return schema.empty_table()

    return change


def outcome(
    case: str, folder: Path, source: str, change: Callable[[pa.Table], pa.Table], what: Callable[[OpenedStage], object]
) -> object:
    """What is said of a case one of whose inputs was changed, or `what` of its stages."""
    config = prepare(CASES / case, folder)
    (path,) = (folder / f"{source}.parquet").glob("*.parquet")
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)
    try:
        return [what(open_inputs(config, stage)) for stage in config.stages]
    except ThresherError as error:
        return error.code, str(error).replace(str(folder), "…")


def _counted(opened: OpenedStage) -> tuple[object, ...]:
    """All that is counted, which decides the results."""
    with DuckDB(Resources(), opened.folders, StopRequest()) as engine:
        counted = count(engine, opened.configured.params, opened.plan)
    tables = {name: (frame.schema, sorted(map(str, frame.rows()))) for name, frame in counted.tables.items()}
    accounts = [(account.name, account.rows_by_status) for account in counted.inputs]
    return tables, accounts, counted.alarms, counted.warnings, counted.omitted


def _canonical(engine: DuckDB, opened: OpenedStage) -> list[str]:
    """All that reaches the counting: the rows of every input with their types, and the statements on them."""
    lines = [str((opened.bindings, opened.plan.warnings, opened.plan.facts))]

    def fetch(query: exp.Query) -> None:
        frame = engine.fetch(query)
        lines.extend([str(frame.schema), *sorted(map(str, frame.rows()))])

    for node in opened.plan.nodes:
        if isinstance(node, Relation) and node.source is not None:
            node.run(engine, Progress(CountTables((), ())))
            fetch(exp.select("*").from_(exp.table_(node.into)))
        elif isinstance(node, Check) and any("_files_" in table.name for table in node.query.find_all(exp.Table)):
            fetch(node.query)  # its text says how the columns of the file are read
        else:
            for shown in node.statements([grouped.name for grouped in opened.plan.by]):
                lines += [shown.title, str(shown.query and shown.query.sql())]
    return [line.replace("/typed/", "/null/") for line in lines]


def inputs_of(case: str) -> list[Path]:
    return sorted((CASES / case).glob("*.csv"))


def columns() -> dict[tuple[str, str], list[str]]:
    """The columns of the inputs of the cases, by case and input; one of the same type, input and stage only once."""
    seen = set()
    listed: dict[tuple[str, str], list[str]] = {}
    for case in CHOSEN:
        for path in inputs_of(case):
            for column in path.read_text(encoding="utf-8").splitlines()[0].split(","):
                key = case.partition("/")[0], path.stem, column
                if key not in seen:
                    seen.add(key)
                    listed.setdefault((case, path.stem), []).append(column.rpartition(":")[0])
    return listed


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("case", "source"), list(columns()))
def test_a_column_without_a_value_is_one_of_nulls(tmp_path: Path, case: str, source: str) -> None:
    """What reaches the counting is the same, or where a column of NULLs has another type, what is counted."""

    def outcomes(name: str, folder: Path, what: Callable[[OpenedStage], object]) -> list[object]:
        kinds = {"null": False, "typed": True}
        return [
            outcome(case, folder / kind, source, no_value(name, typed=typed), what) for kind, typed in kinds.items()
        ]

    with DuckDB(Resources(), [tmp_path], StopRequest()) as engine:
        for name in columns()[case, source]:
            untyped, typed = outcomes(name, tmp_path / name, partial(_canonical, engine))
            if untyped != typed:
                untyped, typed = outcomes(name, tmp_path / f"{name} counted", _counted)
            assert untyped == typed, name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("case", "source"), list(columns()))
def test_an_empty_frame_without_types_is_an_empty_frame(tmp_path: Path, case: str, source: str) -> None:
    untyped = outcome(case, tmp_path / "null", source, no_row(typed=False), _counted)
    assert untyped == outcome(case, tmp_path / "typed", source, no_row(typed=True), _counted)


def test_labels_without_a_value_are_named(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.2], "label": pl.Series([None, None])})
    with pytest.raises(DataError, match="column 'label' is NULL, or neither 0 nor 1, in 2 rows"):
        run_threshold_sweep(tmp_path, frame, thresholds=[0.5])


def test_other_numbers_than_0_and_1_are_mapped_as_the_message_says() -> None:
    rows = pl.DataFrame({"score": [0.1, 0.9, 0.2], "is it": [-1, 1, -1]})
    with pytest.raises(DataError, match="neither 0 nor 1, in 2 rows") as refused:
        thresher.threshold_sweep(predictions={"path": rows, "columns": {"label": "is it"}})
    (mapped,) = re.findall(r"which are true: (.*)\.$", str(refused.value.remedy))
    swept = thresher.threshold_sweep(predictions=ast.literal_eval(mapped.replace("…", "None")) | {"path": rows})
    assert swept.curve.select("tp", "fn").sum_horizontal().unique().to_list() == [1]


def test_a_key_without_a_value_has_the_type_of_the_other_input(tmp_path: Path) -> None:
    gold = pl.DataFrame({"mention_id": ["a", "b"], "latitude": [1.0, 2.0], "longitude": [1.0, 2.0]})
    predicted = gold.with_columns(pl.lit(None).alias("mention_id"))
    config = stage_config(tmp_path, "geocoding", {"gold": gold, "predicted": predicted})
    with pytest.raises(DataError, match="input predicted: column 'mention_id' is NULL or not finite in 2 rows"):
        run_stages(config)


def test_where_reads_a_column_without_a_value_as_null(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.2], "label": [True, False], "note": pl.Series([None, None])})
    for where in ("note IS NULL", "note IS NULL OR note = 'x'", "coalesce(note, 'y') = 'y'"):
        folder = tmp_path / str(len(where))
        config = stage_config(folder, "threshold_sweep", {"predictions": frame}, thresholds=[0.5])
        table = pa.table({"score": [0.1, 0.2], "label": [True, False], "note": pa.nulls(2)})
        pq.write_table(table, folder / "predictions.parquet")
        config["stages"][0]["predictions"]["where"] = where
        published = run_stages(config)
        counted = pl.read_parquet(published.path / "inputs" / "threshold_sweep.parquet")
        assert counted["rows_used"].to_list() == [2], where


def test_a_metric_may_be_without_a_value_in_the_first_file(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    folder.mkdir()
    units = pl.DataFrame({"unit": [1, 1, 2, 2], "system": ["a", "b", "a", "b"], "ap": [0.1, 0.2, 0.3, 0.1]})
    pq.write_table(no_value("ap", typed=False)(units[:0].to_arrow()), folder / "1.parquet")
    units.write_parquet(folder / "2.parquet")
    stage = {"kind": "compare", "units": str(folder)}
    published = run_stages({"output": str(tmp_path / "results"), "stages": [stage]})
    tests = pl.read_parquet(published.path / "compare_tests" / "compare.parquet")
    assert set(tests["metric"]) == {"ap"}


def test_times_without_a_value_are_on_any_clock(tmp_path: Path) -> None:
    marks = pl.DataFrame({"series_id": ["a"], "position": pl.Series([0], dtype=pl.Datetime("us", "UTC"))})
    none = marks[:0].with_columns(pl.lit(None).alias("position"))
    tables = points_tables(tmp_path, {"predictions": none, "annotations": marks}, margin="2h")
    assert tables["curve"]["tp"].to_list() == [0]
