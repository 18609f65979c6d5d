"""Names, values and paths that look like something else: they stay names, values and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from cli.calls import call
from storage.promises import assert_results_ok

from runs.inputs.workplace import assert_error

if TYPE_CHECKING:
    from pathlib import Path

    from runs.inputs.workplace import Workplace

ODD_NAMES = [
    'we"ird',
    "naïve ünïcode 漢字 🦊",
    "select",
    "a b; DROP TABLE pairs; --",
    "x" * 300,
    "*",
    "a.b",
    "\u202eright-to-left",
    "${env:HOME}",
    "^x$",
    " ",
]
HOSTILE = [
    "'; DROP TABLE events; --",
    "\"; COPY (SELECT 1) TO '/tmp/owned'; --",
    "' OR 1=1 --",
    "${env:HOME}",
    "a,b",
    "all",
    "",
    "NULL",
    "a/../../b",
    "\u0000nul",
]


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_column_name_can_be_mapped_and_grouped_by(workplace: Workplace, name: str) -> None:
    workplace.pairs.rename({"score": name}).write_parquet(workplace.folder / "pairs.parquet")
    workplace.events.rename({"source": name}).write_parquet(workplace.folder / "events.parquet")
    columns = {"score": name, "lag_hours": "lag_hours"}
    workplace.evaluate(
        pairs={"path": "pairs.parquet", "columns": columns},
        events={"path": "events.parquet", "columns": {"place": name}},
        by=["place"],
    )
    groups = workplace.table("before_after_estimates")["place"].unique().sort()
    assert groups.to_list() == [None, "dawn", "dusk", "noon"]


@pytest.mark.wide
def test_any_name_can_be_a_column_of_the_results(workplace: Workplace) -> None:
    names = ["select", "segment", "a b; DROP TABLE pairs; --", 'we"ird', "x" * 300, " ", "*", "^x$"]
    events = workplace.events.with_columns(pl.col("source").alias(name) for name in names)
    events.write_parquet(workplace.folder / "events.parquet")
    seen = workplace.publish(by=[[name] for name in names])
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        assert set(names) <= set(reader.sql("FROM before_after_estimates").columns)
        assert set(names) <= set(reader.sql("FROM history.before_after_estimates").columns)
    assert set(names) <= set(pl.read_parquet_schema(seen.folder / "before_after_estimates" / "before_after.parquet"))


@pytest.mark.parametrize("name", ["", "a,b", "all", "a\0b"])
def test_names_that_would_make_groupings_ambiguous_are_refused(workplace: Workplace, name: str) -> None:
    workplace.refuse(78, "holds a NUL character" if "\0" in name else "cannot be a grouping column", by=[name])


@pytest.mark.parametrize("name", ["precision", "Threshold", "grouping", "stage", "replicate", "undefined"])
def test_a_grouping_column_named_like_a_result_is_refused(workplace: Workplace, name: str) -> None:
    workplace.refuse(78, f"'{name}' is also a column of the results", by=[name])


def test_group_values_that_look_like_sql_stay_values(workplace: Workplace) -> None:
    values = [HOSTILE[index % len(HOSTILE)] for index in range(workplace.events.height)]
    workplace.events.with_columns(pl.Series("source", values)).write_parquet(workplace.folder / "events.parquet")
    workplace.evaluate()
    groups = workplace.table("before_after_estimates").filter(pl.col("grouping") == "source")["source"]
    assert set(groups) == set(HOSTILE)


@pytest.mark.wide
@pytest.mark.parametrize("folder", ["a[1]b", "st*r", "**", "quote'd/{a,b}/k=v/ü;\"#%41"])
def test_any_folder_name_is_taken_literally(workplace: Workplace, folder: str) -> None:
    inner = workplace.folder / folder
    inner.mkdir(parents=True)
    workplace.events.write_parquet(inner / "events.parquet")
    (workplace.folder / "a1b").mkdir()
    workplace.pairs.head(100).write_parquet(workplace.folder / "a1b" / "pairs.parquet")
    workplace.pairs.write_parquet(inner / "pairs.parquet")
    output = inner / "results"
    called = call(
        "run", workplace.config(pairs=f"{folder}/pairs.parquet", events=f"{folder}/events.parquet"), "--output", output
    )
    assert called.code == 0, called.err
    assert_results_ok(output)
    answer = call("query", output, "SELECT n_rows FROM inputs WHERE input = 'pairs'")
    assert answer.out == "n_rows\n500\n"
    assert call("verify", output).code == 0


def test_an_input_folder_with_a_question_mark_works(workplace: Workplace) -> None:
    (workplace.folder / "q?").mkdir()
    workplace.pairs.write_parquet(workplace.folder / "q?" / "pairs.parquet")
    workplace.evaluate(pairs="q?/pairs.parquet")
    assert workplace.rows_by_status() == {"used": 500}


def test_an_output_folder_with_a_question_mark_is_refused_with_the_reason(workplace: Workplace) -> None:
    called = call("run", workplace.config(), "--output", workplace.folder / "q?")
    assert_error(called, 73, "'?' in its path", "Choose another folder")
    assert not (workplace.folder / "q?").exists()


def test_a_config_in_a_folder_with_pattern_characters(tmp_path: Path, workplace: Workplace) -> None:
    inner = tmp_path / "[x]*"
    inner.mkdir()
    for name in ("pairs.parquet", "events.parquet"):
        (inner / name).write_bytes((workplace.folder / name).read_bytes())
    config = inner / "c.toml"
    config.write_text(
        workplace.config(pairs="*.parquet", events=None, by=None).read_text().replace("*.par", "pair*.par")
    )
    called = call("run", config)
    assert called.code == 0, called.err


@pytest.mark.wide
def test_links_to_files_folders_and_results_are_followed(workplace: Workplace) -> None:
    real = workplace.folder / "real"
    real.mkdir()
    out = workplace.folder / "out"
    out.mkdir()
    workplace.pairs.write_parquet(real / "p.parquet")
    (workplace.folder / "link.parquet").symlink_to(real / "p.parquet")
    (workplace.folder / "folder").symlink_to(real)
    (workplace.folder / "results").symlink_to(out)
    first = workplace.publish(pairs="link.parquet")
    second = workplace.publish(pairs="folder")
    assert first.hashes.keys() == second.hashes.keys()
    assert workplace.rows_by_status() == {"used": 500}


def test_a_link_that_leads_nowhere_is_told(workplace: Workplace) -> None:
    (workplace.folder / "link.parquet").symlink_to(workplace.folder / "gone.parquet")
    workplace.refuse(66, "link.parquet leads nowhere", "gone.parquet", pairs="link.parquet")


@pytest.mark.parametrize(
    "where",
    [
        "1 = 1; DROP TABLE pairs_read",
        "score > (SELECT 0)",
        "score IN (SELECT 1)",
        "EXISTS (FROM events)",
        "count(*) > 0",
        "getenv('HOME') = ''",
        "score > 0 OR (COPY pairs TO '/tmp/owned')",
        "read_text('/etc/passwd') IS NOT NULL",
        "1 = 1) UNION SELECT (1",
        "score > $before_start",
        "row_number() OVER () = 1",
        "COLUMNS(*) > 0",
        "pairs.* IS NULL",
        "",
        "(",
        "score >",
        "SELECT 1",
        "current_setting('memory_limit') = ''",
    ],
)
def test_where_takes_a_predicate_and_nothing_else(workplace: Workplace, where: str) -> None:
    workplace.refuse(78, "where", pairs={"path": "pairs.parquet", "where": where})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("score >= 2", None),
        ("article_id < 250 AND NOT score IS NULL", 250),
        ('"article_id" BETWEEN 10 AND 19 -- \';', 10),
        ("article_id IN (1, 2, 3)", 3),
        ("CASE WHEN article_id % 2 = 0 THEN true ELSE false END", 250),
        ("lower('A') = 'a'", 500),
        ("'x; DROP TABLE events' = 'x' OR article_id = 7", 1),
    ],
)
def test_where_keeps_the_rows_that_satisfy_it(workplace: Workplace, where: str, kept: int | None) -> None:
    workplace.evaluate(pairs={"path": "pairs.parquet", "where": where})
    kept = workplace.pairs.filter(pl.col("score") >= 2).height if kept is None else kept
    counts = workplace.rows_by_status()
    assert (counts["used"], counts.get("where", 0)) == (kept, 500 - kept)


def test_where_names_the_column_that_a_file_lacks(workplace: Workplace) -> None:
    workplace.refuse(65, "where reads 'nope'", "pairs.parquet", pairs={"path": "pairs.parquet", "where": "nope = 1"})


def test_where_that_does_not_fit_the_types_is_an_error_of_the_user(workplace: Workplace) -> None:
    called = workplace.run(pairs={"path": "pairs.parquet", "where": "score = 'high'"})
    assert_error(called, 65, "'high'", "where")


@pytest.mark.parametrize("name", ["../up", "/abs", "a/b", "", ".", "UP", "x" * 65, "é", "a b", "-a", "a;b"])
def test_a_stage_name_cannot_be_a_path(workplace: Workplace, name: str) -> None:
    workplace.refuse(78, "is no stage name", name=name)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["a..b", "0.1-x_y", "x" * 64, "select"])
def test_plain_stage_names_work(workplace: Workplace, name: str) -> None:
    workplace.publish(name=name)
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        assert reader.sql("SELECT DISTINCT stage FROM before_after_estimates").fetchall() == [(name,)]
        assert reader.table(f"counts_{name}").columns[:2] == ["stage", "grouping"]


@pytest.mark.parametrize("ours", ["scroe", 'x"; DROP TABLE pairs; --'])
def test_a_mapped_name_that_nothing_uses_is_refused(workplace: Workplace, ours: str) -> None:
    workplace.refuse(78, "which is not used", pairs={"path": "pairs.parquet", "columns": {ours: "score"}})


def test_a_path_with_a_nul_character_is_an_error_of_the_user(workplace: Workplace) -> None:
    config = workplace.config(pairs="PATH")
    config.write_text(config.read_text().replace('"PATH"', '"a\\u0000b.parquet"'))
    called = call("run", config)
    assert_error(called, 66 if called.code == 66 else 78)
