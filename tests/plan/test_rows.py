from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import estimates_of, read_table, rows_by_status, run_before_after

import pipeline
from pipeline.base.dialect import render
from pipeline.base.errors import ConfigError, DataError
from pipeline.base.sql_files import statement
from pipeline.engines.duckdb import DuckDB
from pipeline.plan.nodes import Grouped, Relation
from pipeline.plan.rows import From, Graph

if TYPE_CHECKING:
    from pathlib import Path

    import sqlglot.expressions as exp

PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2, 3],
        "article_id": [1, 2, 1, 2, 1],
        "score": [0.9, 0.2, 0.7, 0.8, 0.9],
        "lag_hours": [1.0, -1.0, 2.0, -3.0, 1.0],
        "medium": ["print", "online", "print", "online", "print"],
    }
)
EVENTS = pl.DataFrame(
    {
        "event_id": [1, 2],
        "n_before": [5, 5],
        "n_after": [5, 5],
        "source": ["x", "y"],
        "segment": ["s", "s"],
    }
)


@pytest.mark.parametrize(
    ("n_rows", "keys", "kept"), [(10_000, {}, True), (10_001, {}, False), (10, {"where": "label"}, False)]
)
def test_few_passed_in_rows_are_kept_as_they_are_read(
    monkeypatch: pytest.MonkeyPatch, n_rows: int, keys: dict[str, str], *, kept: bool
) -> None:
    defined: dict[str, bool] = {}
    define = DuckDB.define

    def noted(engine: DuckDB, name: str, query: exp.Query, *, keep: bool = False) -> None:
        defined[name] = keep
        define(engine, name, query, keep=keep)

    monkeypatch.setattr(DuckDB, "define", noted)
    rows = pl.DataFrame({"score": [0.5, 0.7]}).with_columns(label=pl.Series([True, False]))
    rows = rows.sample(n_rows, with_replacement=True, seed=1)
    pipeline.threshold_sweep(predictions={"path": rows, **keys}, uncertainty="none", calibration=False)
    assert defined["predictions_read"] is kept


def grouped(table: pl.DataFrame, name: str) -> dict[Any, int]:
    rows = table.filter(pl.col("grouping") == name)
    return dict(zip(rows[name].to_list(), rows["m_after"].to_list(), strict=True))


def test_a_grouping_column_is_found_in_the_input_that_has_it(tmp_path: Path) -> None:
    table = estimates_of(tmp_path, {"pairs": PAIRS, "events": EVENTS}, by=["source"], thresholds=[0.5])
    assert grouped(table, "source") == {"x": 1, "y": 1}
    table = estimates_of(tmp_path, {"pairs": PAIRS}, by=["medium"], thresholds=[0.5])
    assert grouped(table, "medium") == {"print": 3, "online": 0}


def test_a_grouping_column_of_two_inputs_must_say_which(tmp_path: Path) -> None:
    frames = {"pairs": PAIRS.with_columns(source=pl.lit("z")), "events": EVENTS}
    with pytest.raises((ConfigError, DataError), match=r"pairs\.source or events\.source"):
        run_before_after(tmp_path, frames, by=["source"], thresholds=[0.5])
    table = estimates_of(tmp_path, frames, by=["events.source"], thresholds=[0.5])
    assert grouped(table, "events.source") == {"x": 1, "y": 1}


def test_a_grouping_column_that_no_input_has_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)no input has a column 'sourse'.*'source'"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, by=["sourse"], thresholds=[0.5])


def test_a_column_of_articles_cannot_group_numbers_that_are_given_per_event(tmp_path: Path) -> None:
    frames = {"pairs": PAIRS, "events": EVENTS, "articles": pl.DataFrame({"article_id": [1, 2], "length": [7, 9]})}
    with pytest.raises(DataError, match="'length' is a column of articles"):
        run_before_after(tmp_path, frames, by=["length"], thresholds=[0.5])


NAMES = [
    "segment",
    "cluster",
    "p",
    "u",
    "status",
    "n_rows",
    "exact",
    "n",
    'a"; DROP TABLE pairs; --',
    "two words",
    "events.x",
    "é",
    "select",
    "$x",
]


@pytest.mark.wide
def test_a_grouping_column_may_have_any_name(tmp_path: Path) -> None:
    pairs = PAIRS.drop("medium").with_columns(PAIRS["medium"].alias(name) for name in NAMES)
    table = estimates_of(tmp_path, {"pairs": pairs}, by=[[name] for name in NAMES], thresholds=[0.5], duplicates="max")
    for name in NAMES:
        assert grouped(table, name) == {"print": 3, "online": 0}, name


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("name", ["rank_in_key", "_best", "_u", "_qualifies", "_reference_threshold"])
def test_a_grouping_column_named_like_one_that_is_used_inside_works_or_is_refused(tmp_path: Path, name: str) -> None:
    pairs = PAIRS.rename({"medium": name})
    with suppress(ConfigError):
        table = estimates_of(tmp_path, {"pairs": pairs}, by=[name], thresholds=[0.5], duplicates="max")
        assert grouped(table, name) == {"print": 3, "online": 0}


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("name", ["segment", "cluster", "complete_window", "digest", "Complete_Window2"])
def test_a_grouping_column_of_events_may_have_any_name(tmp_path: Path, name: str) -> None:
    events = EVENTS.drop("segment").rename({"source": name})
    if name == "complete_window":
        events = events.with_columns(complete_window=pl.Series([True, False]))
    table = estimates_of(tmp_path, {"pairs": PAIRS, "events": events}, by=[name], thresholds=[0.5])
    expected = {True: 1} if name == "complete_window" else {"x": 1, "y": 1}
    assert grouped(table, name) == expected


def test_groupings_are_sums_of_finer_ones(tmp_path: Path) -> None:
    by: list[list[str]] = [[], ["medium"], ["medium", "article"], ["article"]]
    pairs = PAIRS.rename({"article_id": "article"})
    table = estimates_of(tmp_path, {"pairs": pairs}, by=by, thresholds=[0.0, 0.75])
    values = ["n_before", "n_after", "m_before", "m_after"]
    finest = table.filter(pl.col("grouping") == "medium,article")
    for grouping in by:
        own = table.filter(pl.col("grouping") == (",".join(grouping) or "all"))
        keys = [*grouping, "threshold"]
        expected = finest.group_by(keys).agg(pl.col(values).sum()).sort(keys)
        assert own.select(*keys, *values).sort(keys).equals(expected)


def test_repeated_pairs_are_refused_with_two_examples(tmp_path: Path) -> None:
    pairs = pl.concat([PAIRS, PAIRS])
    with pytest.raises(DataError, match=r"event_id = 1, article_id = 1 \(2 rows\); event_id = 1, article_id = 2"):
        run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5])


def test_repeated_pairs_are_merged_or_kept_on_request(tmp_path: Path) -> None:
    pairs = pl.concat([PAIRS, PAIRS.with_columns(pl.col("score") - 0.5), PAIRS.with_columns(score=0.0)])
    merged = run_before_after(tmp_path / "max", {"pairs": pairs}, duplicates="max", thresholds=[0.5])
    plain = estimates_of(tmp_path / "plain", {"pairs": PAIRS}, thresholds=[0.5])
    assert read_table(merged, "before_after_estimates").equals(plain)
    assert rows_by_status(merged) == {"used": 5, "duplicate": 10}
    kept = estimates_of(tmp_path / "keep", {"pairs": pairs}, duplicates="keep", thresholds=[0.5])
    assert kept.select("n_before", "n_after").row(0) == (6, 9)


def test_a_repeated_pair_without_a_score_does_not_hide_the_one_with_a_score(tmp_path: Path) -> None:
    odd = PAIRS.with_columns(score=pl.Series([None, float("nan"), None, None, float("inf")]))
    run = run_before_after(
        tmp_path, {"pairs": pl.concat([odd, PAIRS])}, duplicates="max", invalid_scores="drop", thresholds=[0.5]
    )
    plain = estimates_of(tmp_path / "plain", {"pairs": PAIRS}, thresholds=[0.5])
    assert read_table(run, "before_after_estimates").equals(plain)
    assert rows_by_status(run) == {"used": 5, "null_score": 3, "nan_score": 1, "infinite_score": 1}


def test_repeated_events_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"input events: event_id repeats: event_id = 1 \(2 rows\)"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": pl.concat([EVENTS, EVENTS])}, thresholds=[0.5])


def test_pairs_of_unlisted_events_are_left_out_and_counted(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, thresholds=[0.5])
    assert rows_by_status(run) == {"used": 4, "unlisted_event": 1}
    assert rows_by_status(run, "events") == {"used": 2}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("uncertainty", "replicates"), [("none", "auto"), ("jackknife", 2), ("jackknife", "auto")])
def test_replicates_split_the_counts_and_change_no_estimate(
    tmp_path: Path, uncertainty: str, replicates: str | int
) -> None:
    frames = {"pairs": PAIRS, "events": EVENTS}
    plain = estimates_of(tmp_path / "plain", frames, thresholds=[0.5])
    run = run_before_after(tmp_path / "split", frames, thresholds=[0.5], uncertainty=uncertainty, replicates=replicates)
    values = ["n_before", "n_after", "m_before", "m_after", "tp", "precision", "recall"]
    assert read_table(run, "before_after_estimates").select(values).equals(plain.select(values))
    replicate = read_table(run, "counts")["replicate"]
    assert replicate.n_unique() == (1 if uncertainty == "none" else 2)


def test_an_event_keeps_its_replicate_whatever_the_order_of_rows(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": range(3000), "score": 1.0, "lag_hours": 1.0})
    tables = [
        read_table(run_before_after(tmp_path / name, {"pairs": frame}, thresholds=[0.5]), "counts")
        for name, frame in (("plain", pairs), ("turned", pairs.reverse()))
    ]
    assert tables[0].equals(tables[1])
    assert tables[0]["replicate"].n_unique() == 64, "over 1,000 clusters fall into 64 groups"
    assert tables[0]["m_after"].sum() == 3000


def test_clusters_may_be_larger_than_units(tmp_path: Path) -> None:
    frames = {"pairs": PAIRS, "events": EVENTS}
    run = run_before_after(tmp_path, frames, thresholds=[0.5], cluster="segment")
    assert read_table(run, "counts")["replicate"].unique().to_list() == [0]
    assert rows_by_status(run) == {"used": 4, "unlisted_event": 1}


def test_a_unit_without_a_cluster_is_never_dropped_in_silence(tmp_path: Path) -> None:
    events = EVENTS.with_columns(region=pl.Series(["north", None]))
    with pytest.raises(DataError, match="region"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, thresholds=[0.5], cluster="region")


def test_a_cluster_column_that_no_input_has_is_named(tmp_path: Path) -> None:
    with pytest.raises((ConfigError, DataError), match="nosuch"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, thresholds=[0.5], cluster="nosuch")


def test_a_mapped_name_that_nothing_uses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)'scroe'.*'score'"):
        run_before_after(tmp_path, {"pairs": PAIRS}, pairs={"columns": {"scroe": "score"}}, thresholds=[0.5])


def test_a_flag_that_is_neither_0_nor_1_is_refused(tmp_path: Path) -> None:
    events = EVENTS.with_columns(complete_window=pl.Series([2, 0]))
    with pytest.raises(DataError, match="complete_window"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, thresholds=[0.5])


def test_a_dotted_name_that_fits_two_columns_is_refused(tmp_path: Path) -> None:
    frames = {
        "pairs": pl.DataFrame({"event_id": [1], "score": [0.5], "lag_hours": [1.0], "events.source": ["x"]}),
        "events": pl.DataFrame({"event_id": [1], "n_before": [1], "n_after": [1], "source": ["y"]}),
    }
    with pytest.raises(DataError, match=r"'events.source' is a column of pairs and of events, called 'source'"):
        run_before_after(tmp_path, frames, by=["events.source"], thresholds=[0.1])


def test_relations_and_their_order_are_read_off_the_headers() -> None:
    by = [Grouped("system", "ranking", "system"), Grouped("kind", "relevance", "kind")]
    read = [Relation("relevance_read", statement("inputs/absent", ["query_id"], relations={"input": "files"}))]
    labels = From("labelled_documents", {"numbered_documents": "ranked"})
    made: dict[str, From | list[Relation]] = {"relevance_read": read, "labels": labels}
    graph = Graph("ranking", by, made, {"relevance_level": 1.0}, {"judgements": ["by:kind"]})
    every = list(graph.relations("rankings", "labels", "rankings", "no_such_relation"))
    names = ["relevance_read", "judged_documents", "judged_queries", "ranked_documents", "retrieved", "rankings"]
    assert [relation.into for relation in every] == [*names, "labels"]
    assert [relation.into for relation in every if relation.keep] == [*names[1:3], *names[4:]]
    texts = {relation.into: render(relation.query, pretty=False) for relation in every}
    assert 'p."by:system", o."by:kind", p.replicate' in texts["rankings"]
    assert "relevance >= CAST('1.0' AS DOUBLE)" in texts["judged_queries"]
    assert "FROM ranked AS p" in texts["labels"]
    assert "$relevance_level" in render(Graph("ranking", by, {}).query("judged_queries"))
