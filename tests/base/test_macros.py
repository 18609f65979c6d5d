"""The macros of the catalog on tables of a few rows."""

from __future__ import annotations

import json

import duckdb
import pytest

from pipeline.base.sql_files import resource_folder

NAME = "a~b/c"
ROWS = [("all", None, 0.2), ("all", None, 0.5), (NAME, "x", 0.1), (NAME, "x", 0.4), (NAME, None, 0.3)]


@pytest.mark.parametrize(("wanted", "thresholds"), [(0.45, [0.2, 0.4, 0.3]), (0.5, [0.5, 0.4, 0.3]), (0.05, [])])
def test_at_threshold_is_the_nearest_at_or_below_in_every_group(wanted: float, thresholds: list[float]) -> None:
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE curve (stage TEXT, grouping TEXT, "{NAME}" TEXT, threshold DOUBLE)')
        connection.executemany("INSERT INTO curve VALUES ('s', $1, $2, $3)", ROWS)
        connection.execute((resource_folder("sql") / "catalog" / "at_threshold.sql").read_text("utf-8"))
        rows = connection.execute("FROM at_threshold('curve', $1)", [wanted]).fetchall()
    groups = [("all", None), (NAME, "x"), (NAME, None)] if thresholds else []
    expected = {("s", *group, threshold) for group, threshold in zip(groups, thresholds, strict=True)}
    assert set(rows) == expected


DAYS: dict[str, tuple[list[tuple[int | None, str]], int | None]] = {
    "the day before, not an earlier run of the day": ([(28, "nl"), (29, "nl"), (29, "nl")], 1),
    "of the same labels": ([(28, "nl"), (28, "be"), (29, "be"), (29, "nl")], 1),
    "whatever its labels, where none has the same": ([(28, "v7"), (29, "v8")], 1),
    "not a later day": ([(28, "nl"), (30, "nl"), (29, "nl")], 1),
    "a later day not even alone": ([(30, "nl"), (29, "nl")], None),
    "the run before, where no day is before": ([(28, "nl"), (28, "nl")], 1),
    "the run before, where runs have no day": ([(None, "nl"), (None, "nl"), (None, "nl")], 2),
    "none, where it is the first": ([(28, "nl")], None),
}


@pytest.mark.parametrize("case", DAYS)
def test_the_run_before_is_that_of_the_last_day_before(case: str) -> None:
    runs, expected = DAYS[case]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE runs (run_id TEXT, generation BIGINT, ds DATE, labels JSON, published_at TIMESTAMP)"
        )
        connection.execute("CREATE SCHEMA history")
        connection.execute(
            'CREATE TABLE history.metrics (run_id TEXT, stage TEXT, grouping TEXT, "group" TEXT, result_table TEXT, '
            "criterion TEXT, metric TEXT, threshold DOUBLE, value DOUBLE, lower DOUBLE, upper DOUBLE)"
        )
        for generation, (day, label) in enumerate(runs, start=1):
            ds = None if day is None else f"2026-11-{day}"
            row = [str(generation), generation, ds, json.dumps({"label": label})]
            connection.execute("INSERT INTO runs VALUES ($1, $2, $3, $4, '2026-12-01')", row)
            metric = [str(generation), generation]
            connection.execute(
                "INSERT INTO history.metrics VALUES ($1, 's', 'all', '{}', 't', NULL, 'f1', NULL, $2, NULL, NULL)",
                metric,
            )
        connection.execute((resource_folder("sql") / "catalog" / "compare_runs.sql").read_text("utf-8"))
        rows = connection.execute("SELECT value_a, value_b FROM compare_runs()").fetchall()
    assert rows == [(expected, len(runs))]


def test_a_trend_goes_from_run_to_run_of_the_same_labels() -> None:
    values = [(1, "nl", 0.5), (2, "be", 0.9), (3, "nl", 0.25), (4, "be", 1.0), (5, None, 0.1)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE runs (run_id TEXT)")
        connection.execute("CREATE SCHEMA history")
        connection.execute("CREATE TABLE history.stages (run_id TEXT, stage TEXT, carried_from TEXT)")
        connection.execute(
            "CREATE TABLE history.metrics (run_id TEXT, published_at TIMESTAMP, ds DATE, labels JSON, stage TEXT, "
            'grouping TEXT, "group" TEXT, result_table TEXT, criterion TEXT, metric TEXT, threshold DOUBLE, '
            "value DOUBLE, lower DOUBLE, upper DOUBLE)"
        )
        for day, region, value in values:
            labels = None if region is None else json.dumps({"region": region})
            row = [str(day), f"2026-11-0{day}", labels, value]
            connection.execute(
                "INSERT INTO history.metrics VALUES "
                "($1, $2, $2, $3, 's', 'all', '{}', 't', NULL, 'f1', NULL, $4, NULL, NULL)",
                row,
            )
        connection.execute((resource_folder("sql") / "catalog" / "trend.sql").read_text("utf-8"))
        rows = connection.execute("SELECT run_id, labels ->> 'region', change FROM trend('f1')").fetchall()
    assert [row[:2] for row in rows] == [("2", "be"), ("4", "be"), ("1", "nl"), ("3", "nl"), ("5", None)]
    assert [row[2] for row in rows] == [None, pytest.approx(0.1), None, -0.25, None]
