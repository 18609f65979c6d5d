"""The macros of the catalog on tables of a few rows."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.queries.load import resource_folder

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
