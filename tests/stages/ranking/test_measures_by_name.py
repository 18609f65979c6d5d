"""The measures that a config names: which queries they are of, their means, and systems compared by them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import COMPARE, RANKING, ranked, read_table, run_stages, stage_config

import pipeline
from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.comparison.significance import adjust_p_values
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Shown, explain
from pipeline.report.published import latest_run
from pipeline.stages.ranking.contract import MEANS_OF_MEASURES, QUERIES
from pipeline.stages.ranking.stage import STAGE
from pipeline.stages.sections import Measured

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

MEASURES = ["ndcg@3", "RBP(p=0.5)", "Success(rel=1)@1", "Judged@2"]
NAMES = ["nDCG@3", "RBP(p=0.5)", "Success(rel=1)@1", "Judged@2"]
LOG3 = math.log2(3)


def ranking_of(**runs: str) -> pl.DataFrame:
    """Rankings of single letters, best first, `a` of the query `a_x`; letters in brackets are tied."""
    rows: list[tuple[str, str, float]] = []
    for query, documents in runs.items():
        score, tied = 100.0, False
        for letter in documents:
            tied = letter == "(" or (tied and letter != ")")
            if letter.isalpha():
                rows.append((query, letter, score))
            score -= not tied
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def relevance_of(**grades: dict[str, float]) -> pl.DataFrame:
    rows = [(query, document, grade) for query, labels in grades.items() for document, grade in labels.items()]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")


RUN = ranking_of(q1="abc", q2="zyx", q3="ab", q5="a")
JUDGED = relevance_of(
    q1={"a": 1, "c": 3, "d": 2, "b": -1},  # b is as if nobody had judged it
    q2={"x": 1, "y": 0},  # relevant from 1 on alone
    q3={"a": 0},  # nothing relevant
    q4={"a": 2},  # not retrieved
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    folder = tmp_path_factory.mktemp("by_name")
    return ranked(folder, RUN, JUDGED, measures=MEASURES, relevance_level=2, missing_queries="zero")


def test_values_of_queries(tables: dict[str, pl.DataFrame]) -> None:
    rows = {row["query_id"]: [row[name] for name in NAMES] for row in tables["queries"].to_dicts()}
    ideal = 3 + 2 / LOG3 + 1 / 2
    assert rows["q1"] == pytest.approx([(1 + 3 / 2) / ideal, 0.125, 1, 0.5], rel=1e-14)
    assert rows["q2"] == pytest.approx([0.5, None, 0, 0.5])  # no document is relevant from 2 on
    assert rows["q3"] == [None, None, None, 0.5]
    assert rows["q4"] == [0, 0, 0, 0]
    assert rows["q5"] == [None] * 4  # nobody has judged it


def test_means_are_over_the_queries_with_a_value(tables: dict[str, pl.DataFrame]) -> None:
    means = {row["measure"]: row for row in tables["measures"].to_dicts()}
    assert list(means) == sorted(NAMES)
    for name in NAMES:
        values = tables["queries"][name].drop_nulls()
        assert means[name]["mean"] == pytest.approx(values.mean(), rel=1e-14)
        assert (means[name]["n_queries"], means[name]["n_excluded"]) == (len(values), 5 - len(values))
        assert means[name]["mean_lower"] < means[name]["mean"] < means[name]["mean_upper"]
    assert [means[name]["n_queries"] for name in NAMES] == [3, 2, 3, 4]


def test_other_tables_are_the_same_without(tables: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    without = ranked(tmp_path, RUN, JUDGED, relevance_level=2, missing_queries="zero")
    assert "measures" not in without
    assert without["queries"].columns == ["stage", "grouping", *(column.name for column in QUERIES)]
    for name, table in without.items():
        assert table.equals(tables[name].drop(NAMES, strict=False))


def test_a_query_without_relevance_can_count_as_zero(tmp_path: Path) -> None:
    keys = {"missing_queries": "skip", "no_relevant": "zero"}
    tables = ranked(tmp_path, RUN, JUDGED, measures=MEASURES, relevance_level=2, **keys)
    assert set(tables["cutoffs"].filter(query_id="q3")["recall"]) == {0.0}
    rows = {row["query_id"]: [row[name] for name in NAMES] for row in tables["queries"].to_dicts()}
    assert rows["q3"] == [0, 0, 0, 0.5]
    assert rows["q5"] == [None] * 4
    assert "q4" not in rows


@pytest.mark.parametrize(
    ("measures", "stops"),
    [(["nDCG@3"], True), (["AP(rel=1)"], True), (["Judged@3"], True), (["AP@3", "RR"], False), ([], False)],
)
def test_a_missing_query_that_a_measure_counts_stops_the_run(
    tmp_path: Path,
    measures: list[str],
    stops: bool,  # noqa: FBT001 - parametrized
) -> None:
    """It has no relevant document at the level of the stage, so that without these measures it matters to nobody."""
    judged = relevance_of(q1={"a": 2}, q6={"a": 1})
    keys: dict[str, Any] = {"measures": measures, "relevance_level": 2}
    if stops:
        with pytest.raises(DataError, match="no document of query q6"):
            ranked(tmp_path, RUN.filter(query_id="q1"), judged, **keys)
    else:
        ranked(tmp_path, RUN.filter(query_id="q1"), judged, **keys)


def test_ties_count_by_name_or_as_their_mean(tmp_path: Path) -> None:
    run, judged = ranking_of(q="a(bcd)e"), relevance_of(q={"c": 3, "e": 1})
    names = ["nDCG@2", "nDCG", "Success@2", "RR@2"]
    by_name = ranked(tmp_path / "trec", run, judged, measures=names)["queries"].row(0, named=True)
    expected = ranked(tmp_path / "expected", run, judged, measures=names, ties="expected")["queries"].row(0, named=True)
    ideal = 3 + 1 / LOG3
    # by name the order is a d c b e
    assert [by_name[name] for name in names[2:]] == [0, 0]
    assert by_name["nDCG"] == pytest.approx((3 / 2 + 1 / math.log2(6)) / ideal, rel=1e-14)
    assert expected["nDCG@2"] == pytest.approx(1 / LOG3 / ideal, rel=1e-14)
    of_tie = 1 / LOG3 + 1 / 2 + 1 / math.log2(5)
    assert expected["nDCG"] == pytest.approx((of_tie + 1 / math.log2(6)) / ideal, rel=1e-14)
    assert [expected[name] for name in names[2:]] == pytest.approx([1 / 3, 1 / 6], rel=1e-14)


def test_labels_in_the_ranking_itself(tmp_path: Path) -> None:
    """Only ranked documents are known, also those that had no valid score; NULL is not judged."""
    labelled = ranking_of(q="abcd").with_columns(relevance=pl.Series([None, 1.0, 0.0, 2.5]))
    row = ranked(tmp_path / "all", labelled, measures=["nDCG", "Judged@4"])["queries"].row(0, named=True)
    ideal = 2.5 + 1 / LOG3
    assert row["nDCG"] == pytest.approx((1 / LOG3 + 2.5 / math.log2(5)) / ideal, rel=1e-14)
    assert row["Judged@4"] == 0.75
    unscored = labelled.with_columns(score=pl.when(doc_id="d").then(None).otherwise("score"))
    keys = {"measures": ["nDCG"], "invalid_scores": "missed"}
    missed = ranked(tmp_path / "missed", unscored, **keys)["queries"].row(0, named=True)
    assert missed["nDCG"] == pytest.approx(1 / LOG3 / ideal, rel=1e-14)


def test_groups_and_the_mean_over_systems(tmp_path: Path) -> None:
    run = pl.concat(
        [
            ranking_of(q1="ab", q2="ba").with_columns(system=pl.lit("</script>")),
            ranking_of(q1="ba", q2="ba").with_columns(system=pl.lit(None, dtype=pl.String)),
        ]
    )
    judged = relevance_of(q1={"a": 1}, q2={"a": 1}).with_columns(language=pl.lit("all"))
    by = [[], ["system"], ["language"]]
    means = ranked(tmp_path, run, judged, measures=["RR@1", "RR"], by=by)["measures"]
    reciprocal = means.filter(measure="RR").select("grouping", "system", "n_queries", "mean").rows()
    assert reciprocal == [
        ("all", None, 4, 0.625),
        ("language", None, 4, 0.625),
        ("system", "</script>", 2, 0.75),
        ("system", None, 2, 0.5),
    ]
    assert means.columns[:4] == ["stage", "grouping", "system", "language"]
    assert means.columns[4:] == [column.name for column in MEANS_OF_MEASURES]


@pytest.mark.parametrize(
    ("grade", "measures", "words"),
    [
        (5, ["ERR@10"], r"ERR@10 takes a relevance of at most 4, and there is 5(?s:.*)ERR\(max_grade=…\)"),
        (5, ["RBP(p=0.5, max_grade=3)"], "at most 3"),
        (100, ["nDCG(gain=exponential)"], "at most 50, and there is 100(?s:.*)smaller scale"),
    ],
)
@pytest.mark.parametrize("labelled", [False, True])
def test_a_relevance_that_is_no_grade_stops_the_run(
    tmp_path: Path,
    grade: float,
    measures: list[str],
    words: str,
    labelled: bool,  # noqa: FBT001 - parametrized
) -> None:
    run, judged = ranking_of(q="ab"), relevance_of(q={"a": float(grade)})
    frames = (run.join(judged, on=["query_id", "doc_id"], how="left"),) if labelled else (run, judged)
    with pytest.raises(DataError, match=words):
        ranked(tmp_path, *frames, measures=measures)


def test_documents_that_repeat_cannot_make_more_than_one(tmp_path: Path) -> None:
    run, judged = ranking_of(q="aab"), relevance_of(q={"a": 3, "c": 1})
    with pytest.raises(DataError, match="nDCG exceeds 1, since documents repeat"):
        ranked(tmp_path, run, judged, measures=["nDCG"], duplicates="keep")
    best = ranked(tmp_path / "max", run, judged, measures=["nDCG"], duplicates="max")["queries"]
    assert best["nDCG"].item() == pytest.approx(3 / (3 + 1 / LOG3), rel=1e-14)


@pytest.mark.parametrize(
    ("measures", "words"),
    [(["nDCG@10", "ndcg@10"], "names nDCG@10 twice"), (["ncdg"], "'ncdg' is no measure"), ("nDCG@10", "tuple|list")],
)
def test_a_config_that_names_no_measures(tmp_path: Path, measures: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ranked(tmp_path, RUN, JUDGED, measures=measures)


def test_a_grouping_column_cannot_have_the_name_of_a_measure(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'ap' is also a column of the results"):
        ranked(tmp_path, RUN.with_columns(ap=1), JUDGED, measures=["AP"], by=["ap"])


# Compared ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two systems on 24 queries, each of which has one document of every grade from 0 to 3."""
    folder = tmp_path_factory.mktemp("compared")
    orders = ["abcd", "bacd", "cabd", "dcba", "adcb", "bdca"]
    queries = {f"q{number:02}": number for number in range(24)}
    run = pl.concat(
        [
            ranking_of(**{query: orders[number * step % 6] for query, number in queries.items()}).with_columns(
                system=pl.lit(system)
            )
            for system, step in (("x", 1), ("y", 5))
        ]
    )
    judged = relevance_of(**{query: {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0} for query in queries})
    measures = ["nDCG@2", "MAP(rel=2)", "RBP(p=0.5)"]
    return stage_config(folder, RANKING, {"ranking": run, "relevance": judged}, by=[["system"]], measures=measures)


@pytest.fixture(scope="module")
def run(stages: dict[str, Any]) -> Run:
    return pipeline.run(stages)


def compare(stages: dict[str, Any], **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - keys of a config
    stage = {"kind": COMPARE, "of": RANKING, "system": "system", "resamples": 99, "tests": ["paired_t"]} | keys
    return read_table(run_stages(stages | {"stages": [*stages["stages"], stage]}), "compare_tests", COMPARE)


@pytest.mark.wide
def test_systems_are_compared_by_the_measures_of_the_stage(stages: dict[str, Any], run: Run) -> None:
    tests = compare(stages, tests=["paired_t", "randomization"])
    assert tests["metric"].unique(maintain_order=True).to_list() == ["AP(rel=2)", "RBP(p=0.5)", "nDCG@2"]
    assert set(tests["n_units"]) == {24}
    means = {
        (row["system"], row["measure"]): row["mean"] for row in read_table(run, "ranking_measures", RANKING).to_dicts()
    }
    for row in tests.to_dicts():
        assert row["mean_a"] == pytest.approx(means[("x", row["metric"])], rel=1e-12)
        assert row["mean_b"] == pytest.approx(means[("y", row["metric"])], rel=1e-12)
    paired = tests.filter(test="paired_t")
    assert paired["p_adjusted"].to_list() == pytest.approx(adjust_p_values(paired["p_value"].to_list(), "holm"))


def test_measures_and_columns_are_compared_together(stages: dict[str, Any]) -> None:
    tests = compare(
        stages, metrics=["ndcg@2", "average_precision", "pooled_recall", "MAP(rel=2)"], tests=["randomization"]
    )
    assert sorted(tests["metric"]) == ["AP(rel=2)", "average_precision", "nDCG@2", "pooled_recall"]


def test_a_measure_that_the_stage_does_not_have(stages: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"nDCG@20, which stage 'ranking' does not measure: its measures are nDCG@2, AP"
    ):
        compare(stages, metrics=["nDCG@20"])


@pytest.mark.wide
def test_measures_of_a_published_run(run: Run, tmp_path: Path) -> None:
    results = str(run.path.parents[1])
    alone = {"kind": COMPARE, "of": RANKING, "system": "system", "results": results, "tests": ["paired_t"]}
    later = run_stages({"output": str(tmp_path / "later"), "stages": [alone]})
    assert read_table(later, "compare_tests", COMPARE)["metric"].to_list() == ["AP(rel=2)", "RBP(p=0.5)", "nDCG@2"]


# Shown ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(run: Run) -> dict[str, pl.DataFrame]:
    """The tables as the report reads them."""
    names = (table.name for table in STAGE.tables)
    return {name: read_table(run, name, RANKING).rename({"system": "by:system"}) for name in names}


def test_the_summary_shows_the_measures_that_are_named(shown: dict[str, pl.DataFrame]) -> None:
    summary = STAGE.summarize(shown)
    assert summary.headers == ("group", "queries", "MAP", "by chance", "nDCG@2", "AP(rel=2)", "RBP(p=0.5)")
    value = shown["ranking_measures"].filter(measure="nDCG@2")["mean"][0]
    assert summary.rows[0][4].startswith(f"{value:.1%} (")


def test_every_measure_has_a_figure_and_a_key_number(shown: dict[str, pl.DataFrame]) -> None:
    figures = {figure.name: figure for figure in STAGE.figures(shown, 0.95)}
    assert [name for name in figures if name.startswith("measure_")] == [
        "measure_ndcg_2",
        "measure_ap_rel_2",
        "measure_rbp_p_0_5",
    ]
    means = shown["ranking_measures"].filter(measure="RBP(p=0.5)")
    drawn = figures["measure_rbp_p_0_5"].frame.sort("group")
    assert drawn.select("mean", "mean_lower", "mean_upper").equals(means.select("mean", "mean_lower", "mean_upper"))
    numbers = {(number.group, number.name): number for number in STAGE.key_numbers(shown)}
    assert numbers[("y", "RBP(p=0.5)")].value == means["mean"][1]
    assert numbers[("y", "RBP(p=0.5)")].lower == means["mean_lower"][1]


def test_methods_say_what_the_measures_are(shown: dict[str, pl.DataFrame]) -> None:
    parameters = {"relevance_level": 1.0, "ties": "trec", "missing_queries": "error", "no_relevant": "null"}
    parameters |= {"confidence": 0.95, "uncertainty": "jackknife"}
    account = {"ranking": {"used": 192, "rows_in": 192}}
    text = " ".join(STAGE.methods(Measured(parameters, {"order": "score"}, {}, account, shown)))
    assert "nDCG divides the discounted gains by those of the best order (Järvelin and Kekäläinen 2002); RBP is" in text
    assert "mean nDCG@2 was" in text
    assert "Burges" not in text


def test_a_measure_is_explained_by_its_worst_queries(run: Run) -> None:
    latest = latest_run(run.path.parents[1])
    wish = Wish("mean", group=("measure=nDCG@2", "system=x"))
    explanation = explain(latest, RANKING, wish, Shown(("worst_queries",), 1000))
    queries = explanation.sections[0].rows
    assert queries.height == 24
    assert queries["nDCG@2"].is_sorted()
    assert explanation.value == pytest.approx(queries["nDCG@2"].mean(), rel=1e-12)
