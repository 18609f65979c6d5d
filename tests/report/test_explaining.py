"""`explain` is held to the published numbers: what it shows of rows adds up to the counts, at any threshold."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from running import read_table, run_stages, stage_config
from stage_examples import EXAMPLES

import pipeline
from pipeline.base.errors import UsageError
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Explanation, Shown, explain
from pipeline.report.published import PublishedRun, PublishedStage, latest_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

HOSTILE = ["</script><img onerror=x>", "two\nlines\x1b[31m", 'quote\'s "name", and | more', None]
AUDIT = {"threshold": 5.0, "size": 8, "seed": 3}
KINDS = [example.kind for example in EXAMPLES]


def _frames(kind: str, frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The frames of an example, with columns that have no role and text that is hostile."""
    frames = dict(frames)
    if kind == "before_after":
        titles = [f"{HOSTILE[row % 4]} {row}" for row in range(frames["articles"].height)]
        frames["articles"] = frames["articles"].with_columns(pl.Series("title", titles), url=pl.lit("https://a.b/c"))
        after = frames["pairs"].filter(pl.col("lag_hours") >= 0).select("event_id", "article_id")
        stored = after.gather_every(3)
        other = pl.DataFrame({"event_id": ["e0"], "article_id": [39]})  # a pair that the matcher did not store
        frames["gold"] = pl.concat([stored, other])
        frames["gold_articles"] = frames["articles"].select("article_id")
    if kind == "threshold_sweep":
        groups = [HOSTILE[row % 4] for row in range(frames["predictions"].height)]
        frames["predictions"] = frames["predictions"].with_columns(pl.Series("model", groups), note=pl.lit("<b>"))
    if kind == "entity_recognition":  # mentions that repeat
        frames |= {side: pl.concat([frames[side], frames[side].head(4)]) for side in ("gold", "predicted")}
        frames["predicted"] = pl.concat([frames["predicted"], frames["predicted"].head(6)])
    if kind == "change_points":
        frames["series"] = frames["series"].with_columns(name=pl.lit("a series"))
    return frames


def _keys(kind: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    keys = dict(keys)
    if kind == "before_after":
        keys |= {"audit": AUDIT}
    if kind == "change_points":
        keys |= {"annotators": "union"}
    return keys


@dataclass(frozen=True)
class Published:
    folder: Path
    run: PublishedRun

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def explain(self, name: str, wish: Wish | None = None, shown: Shown | None = None) -> Explanation:
        return explain(self.run, name, wish or Wish(), shown or Shown())

    def stage(self, name: str) -> PublishedStage:
        return self.run.chosen([name])[0]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("explained")
    stages = []
    for example in EXAMPLES:
        frames = _frames(example.kind, example.frames)
        config = stage_config(folder / example.kind, example.kind, frames, **_keys(example.kind, example.keys))
        for name, columns in example.mapped_only.items():
            config["stages"][0][name]["columns"] |= {column: column for column in columns}
        stages += config["stages"]
    pipeline.run({"output": str(folder / "results"), "stages": stages})
    return Published(folder, latest_run(folder / "results"))


def _thresholds(published: Published, kind: str) -> list[float | None]:
    evidence = published.stage(kind).stage.evidence
    assert evidence is not None
    if not evidence.threshold:
        return [None]
    values = published.stage(kind).tables[evidence.measures[0].table][evidence.threshold]
    return [None, values.drop_nulls().sort().to_list()[0]]


def _row_of(published: Published, kind: str, explanation: Explanation) -> dict[str, Any]:
    """The row of the main table with the threshold and the group of an explanation."""
    stage = published.stage(kind)
    assert stage.stage.evidence is not None
    column = stage.stage.evidence.threshold
    table = stage.tables[stage.stage.evidence.measures[0].table]
    rows = table.filter(pl.col(column) == explanation.threshold) if column else table
    if "average" in rows.columns:
        rows = rows.filter(pl.col("average") == "micro")
    total = rows.filter(pl.col("grouping") == "all")
    return (rows if total.is_empty() else total).row(0, named=True)


def _sections(explanation: Explanation) -> dict[str, Any]:
    return {section.name: section for section in explanation.sections}


# Numbers -------------------------------------------------------------------------------------------------------------


def _formulas(published: Published) -> Iterator[tuple[str, str]]:
    for stage in published.run.stages:
        assert stage.stage.evidence is not None
        for measure in stage.stage.evidence.measures:
            table = stage.tables.get(measure.table)
            if measure.forms and table is not None and measure.name in table.columns and not table.is_empty():
                yield stage.name, measure.name


@pytest.mark.wide
def test_every_formula_with_its_numbers_gives_the_published_number(published: Published) -> None:
    explained = []
    for name, measure in _formulas(published):
        explanation = published.explain(name, Wish(measure), Shown(rows=False))
        if explanation.value is None:
            continue
        assert explanation.steps, (name, measure)
        assert explanation.steps[-1].value == pytest.approx(explanation.value, rel=1e-9), (name, measure)
        explained.append((name, measure))
    assert len(explained) >= 20
    assert {name for name, _ in explained} == set(KINDS) - {"ranking"}


def test_a_definition_is_the_comment_of_the_column(published: Published) -> None:
    explanation = published.explain("threshold_sweep", Wish("recall"), Shown(rows=False))
    assert explanation.meaning == "tp / (tp + fn), of the weights if there are any"
    assert "tp_weight / (tp_weight + fn_weight)" in explanation.steps[0].formula


def test_parameters_that_are_not_set_are_shown_as_they_were_chosen(published: Published) -> None:
    parameters = published.explain("change_points", None, Shown(rows=False)).parameters
    assert parameters["matching"] == "one_to_one"
    assert parameters["margin"] == {"before": 5, "after": 5}
    assert "seed" not in parameters
    parameters = published.explain("before_after", None, Shown(rows=False)).parameters
    assert parameters["compared"] == published.run.record["facts"]["before_after"]["compared"]


def test_a_threshold_between_two_of_the_run_is_said_not_to_be_exact(published: Published) -> None:
    explanation = published.explain("before_after", Wish("", 6.9), Shown(rows=False))
    assert explanation.threshold == 5.0
    assert "6.9 is no threshold of the run: 5.0, the next below, is" in explanation.notes
    assert not any("no threshold" in note for note in published.explain("before_after", Wish("", 5.0)).notes)
    with pytest.raises(UsageError, match="no threshold is at or below 1"):
        published.explain("before_after", Wish("", 1.0))


def test_without_a_threshold_it_is_that_of_the_first_operating_point(published: Published) -> None:
    points = published.stage("before_after").tables["before_after_operating_points"]
    row = points.filter(pl.col("grouping") == "all", pl.col("criterion") == "max_f1").row(0, named=True)
    explanation = published.explain("before_after", Wish(), Shown(rows=False))
    assert (explanation.threshold, explanation.value) == (row["threshold"], row["precision"])
    assert "chosen_on_same_data" in explanation.interval or row["interval_quality"] != "chosen_on_same_data"


@pytest.mark.parametrize("index", range(4))
def test_every_group_can_be_named_whatever_its_value(published: Published, index: int) -> None:
    value = HOSTILE[index]
    wish = Wish("precision", 1.0, (f"model={'null' if value is None else value}",))
    explanation = published.explain("threshold_sweep", wish, Shown(("false_positives",), 100))
    curve = published.stage("threshold_sweep").tables["threshold_sweep_curve"]
    same = pl.col("by:model").eq_missing(pl.lit(value))
    row = curve.filter(pl.col("grouping") == "model", same, pl.col("threshold") == 1.0).row(0, named=True)
    shown = _sections(explanation)["false_positives"]
    assert (explanation.value, shown.n_rows) == (row["precision"], row["fp"])
    assert shown.rows["model"].unique().to_list() == [value]


@pytest.mark.parametrize(
    ("name", "wish", "words"),
    [
        ("threshold_sweep", Wish("precison"), "has no metric 'precison'. Did you mean `precision`"),
        ("threshold_sweep", Wish(group=("modell=x",)), "'modell' is no grouping column"),
        ("threshold_sweep", Wish(group=("model=nobody",)), "has no group model = nobody"),
        ("ranking", Wish(threshold=0.5), "has no thresholds"),
        ("entity_recognition", Wish(group=("average=mean",)), "has no average 'mean'"),
        ("nothing", Wish(), "the run has no stage 'nothing'"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(published: Published, name: str, wish: Wish, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        published.explain(name, wish)
    assert words in str(caught.value)
    assert caught.value.remedy


# Rows ----------------------------------------------------------------------------------------------------------------


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("threshold", [None, 5.0, 11.0])
def test_events_with_impossible_matches_are_all_there(published: Published, threshold: float | None) -> None:
    explanation = published.explain("before_after", Wish("precision_uncorrected", threshold), Shown(most_rows=1000))
    row, sections = _row_of(published, "before_after", explanation), _sections(explanation)
    certain = sections["certain_false_positives"]
    assert certain.n_rows == certain.rows.height == row["m_before"]
    assert (certain.rows["lag_hours"] < 0).all()
    assert certain.rows["score"].is_sorted(descending=True)
    events = sections["events"].rows
    assert events.select("m_before", "m_after").sum().row(0) == (row["m_before"], row["m_after"])
    without = events.filter(pl.col("without").is_not_null()).row(0, named=True)
    others = {name: row[name] - without[name] for name in ("n_before", "n_after", "m_before", "m_after")}
    expected = 1 - others["m_before"] * others["n_after"] / (others["n_before"] * others["m_after"])
    assert without["without"] == pytest.approx(expected)
    near = sections["nearest"].rows
    assert (near["score"] - explanation.threshold).abs().is_sorted()
    assert near.filter("is_match").height == row["m_before"] + row["m_after"]


def test_gold_pairs_are_retrieved_or_missed(published: Published) -> None:
    table = published.stage("before_after").tables["before_after_gold"]
    of_matches = table.filter(pl.col("level") == "match", pl.col("threshold") == 5.0)
    for wish in (Wish("", 5.0), Wish("", 5.0, ("source=x",))):
        explanation = published.explain("before_after", wish, Shown(("gold_misses", "gold_false_positives"), 1000))
        is_total = pl.col("grouping") == "all"
        row = of_matches.filter(pl.col("by:source") == "x" if wish.group else is_total).row(0, named=True)
        sections = _sections(explanation)
        assert sections["gold_misses"].rows.height == row["fn"] > 0
        assert sections["gold_false_positives"].rows.height == row["fp"] > 0
        assert sections["gold_misses"].rows["score"].null_count() == 1
        assert sections["gold_misses"].rows["articles.title"].null_count() == 0


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["threshold_sweep", "entity_recognition", "geocoding", "change_points"])
def test_errors_and_units_add_up_to_the_counts_at_every_threshold(published: Published, name: str) -> None:
    false, missed, units = {
        "threshold_sweep": ("false_positives", "false_negatives", "clusters"),
        "entity_recognition": ("false_positives", "misses", "documents"),
        "geocoding": ("wrong_places", "not_located", "documents"),
        "change_points": ("false_points", "missed", "series"),
    }[name]
    for threshold in _thresholds(published, name):
        explanation = published.explain(name, Wish("f1", threshold), Shown(most_rows=1000))
        row, sections = _row_of(published, name, explanation), _sections(explanation)
        fp = row["fp"] if "fp" in row else row["n_predicted"] - row["tp"]
        fn = row["fn"] if "fn" in row else row["n_true"] - row["tp"]
        assert sections[false].n_rows == sections[false].rows.height == fp
        assert sections[missed].n_rows == fn - (fp if name == "geocoding" else 0)  # what is wrong is missed, too
        counts = sections[units].rows
        assert counts.select("tp", "fp", "fn").sum().row(0) == (row["tp"], fp, fn)
        assert counts["influence"].drop_nulls().abs().is_sorted(descending=True)


def test_influence_is_what_a_unit_changes(published: Published) -> None:
    explanation = published.explain("entity_recognition", Wish("recall"), Shown(("documents",), 1000))
    documents = explanation.sections[0].rows
    row, totals = documents.row(0, named=True), documents.select("tp", "fp", "fn").sum().row(0, named=True)
    without = (totals["tp"] - row["tp"]) / (totals["tp"] - row["tp"] + totals["fn"] - row["fn"])
    assert row["without"] == pytest.approx(without)
    assert row["influence"] == pytest.approx(explanation.value - without)


def test_relevant_documents_are_retrieved_or_not(published: Published) -> None:
    explanation = published.explain("ranking", Wish(), Shown(most_rows=1000))
    sections = _sections(explanation)
    queries = published.stage("ranking").tables["ranking_queries"].filter(pl.col("by:system") == "a")
    assert sections["relevant_last"].n_rows == queries["n_relevant_retrieved"].sum()
    found = sections["relevant_last"].n_rows + sections["not_retrieved"].n_rows
    assert found == queries["n_relevant"].sum()
    assert sections["worst_queries"].rows["average_precision"].is_sorted()
    hits = sections["relevant_last"].rows.filter(pl.col("query_id") == queries["query_id"][0]).sort("rank")
    precisions = [(number + 1) / rank for number, rank in enumerate(hits["rank"])]
    assert sum(precisions) / queries["n_relevant"][0] == pytest.approx(queries["average_precision"][0])


def test_the_value_that_the_summary_shows_is_told_where_it_is_of_other_data(published: Published) -> None:
    explanation = published.explain("threshold_sweep", Wish("recall"), Shown(rows=False))
    points = published.stage("threshold_sweep").tables["threshold_sweep_operating_points"]
    point = points.filter((pl.col("grouping") == explanation.group) & (pl.col("threshold") == explanation.threshold))
    shown = point["recall_cross_fitted"][0]
    assert shown is not None
    assert any(f"the summary shows {shown:.6g}" in note for note in explanation.notes)
    given = published.explain("threshold_sweep", Wish("recall", explanation.threshold), Shown(rows=False))
    assert not any("the summary shows" in note for note in given.notes)


def test_differences_of_units_have_the_mean_of_the_test(published: Published) -> None:
    explanation = published.explain("compare", Wish("recall"), Shown(most_rows=1000))
    units = explanation.sections[0].rows
    assert units.height == 12
    assert explanation.metric == "difference of recall"
    recalls = units.select(pl.col(f"tp_{side}") / (pl.col(f"tp_{side}") + pl.col(f"fn_{side}")) for side in "ab")
    defined = recalls.filter(pl.all_horizontal(pl.all().is_not_nan()))
    assert explanation.value == pytest.approx((defined["tp_a"] - defined["tp_b"]).mean())
    sizes = units.select(pl.col("^.*_difference$").abs()).sum_horizontal()
    assert sizes.is_sorted(descending=True)


def test_columns_without_a_role_stand_beside_the_rows(published: Published) -> None:
    explanation = published.explain("before_after", Wish("", 5.0), Shown(("certain_false_positives",), 1000))
    rows = explanation.sections[0].rows
    articles = pl.read_parquet(published.folder / "before_after" / "articles.parquet")
    expected = rows.select("article_id").join(articles, on="article_id", maintain_order="left")
    assert rows["articles.title"].to_list() == expected["title"].to_list()
    assert set(rows.columns) >= {"articles.url", "articles.title"}
    chosen = Shown(("certain_false_positives",), 1000, columns=("articles.url", "events.source", "pairs.score"))
    rows = published.explain("before_after", Wish("", 5.0), chosen).sections[0].rows
    assert [name for name in rows.columns if "." in name] == ["pairs.score", "events.source", "articles.url"]
    assert rows["events.source"].to_list() == rows["source"].to_list()
    assert rows["pairs.score"].to_list() == rows["score"].to_list()


@pytest.mark.parametrize("columns", ["title", "article.title", "articles.titel"])
def test_columns_that_are_not_there_are_said(published: Published, columns: str) -> None:
    with pytest.raises(UsageError, match=r"--columns|no column 'titel'"):
        published.explain("before_after", Wish(), Shown(columns=(columns,)))


def test_rows_without_an_id_are_told_by_their_place(published: Published) -> None:
    explanation = published.explain("threshold_sweep", Wish("", 1.0), Shown(("false_positives",), 2))
    assert "id" in explanation.sections[0].rows.columns
    assert "file_row_number" not in explanation.sections[0].rows.columns
    assert explanation.sections[0].rows["predictions.note"].to_list() == ["<b>"] * 2


# The sheet to fill in ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sheet(published: Published) -> pl.DataFrame:
    called = call("explain", published.results, "before_after", "--show", "audit", "--format", "csv")
    assert called.code == 0, called.err
    return pl.read_csv(called.raw, infer_schema=False)


@pytest.mark.wide
@pytest.mark.parametrize(("separator", "yes", "no"), [(",", "true", "false"), (";", "Yes ", "NO")])
def test_a_sheet_that_is_filled_in_is_read_back(
    published: Published, sheet: pl.DataFrame, tmp_path: Path, separator: str, yes: str, no: str
) -> None:
    sample = published.stage("before_after").tables["before_after_audit_sample"]
    assert sheet["article_id"].to_list() == sample["article_id"].cast(pl.String).to_list()
    assert {"articles.title", "articles.url"} < set(sheet.columns)
    assert sheet.columns[-1] == "is_match"
    assert "score" not in sheet.columns
    assert sheet["is_match"].null_count() == sheet.height == AUDIT["size"]
    verdicts = [yes, no, None, yes, "", yes, no, no]
    filled = sheet.with_columns(pl.Series("is_match", verdicts)).reverse()
    filled.write_csv(tmp_path / "filled.csv", separator=separator, include_bom=True, line_terminator="\r\n")
    called = call("explain", published.results, "before_after", "--checked", tmp_path / "filled.csv")
    assert called.code == 0, called.err
    (tmp_path / "audited.parquet").write_bytes(called.raw)
    example = next(example for example in EXAMPLES if example.kind == "before_after")
    frames = _frames("before_after", example.frames)
    config = stage_config(tmp_path, "before_after", frames, **_keys("before_after", example.keys))
    config["stages"][0]["audited"] = str(tmp_path / "audited.parquet")
    run = run_stages(config)
    audit = read_table(run, "before_after_audit").filter(pl.col("grouping") == "all", pl.col("threshold") == 5.0)
    assert audit.select("n_audited", "n_right").row(0) == (6, 3)
    assert not any("not in the sample" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"is_match": pl.lit("perhaps")}, "row 2: is_match = 'perhaps' is neither true nor false"),
        ({"article_id": pl.lit("1e17"), "is_match": pl.lit("true")}, "article_id = 1e17 is not in the sample"),
        (
            {
                "event_id": pl.col("event_id").first(),
                "article_id": pl.col("article_id").first(),
                "is_match": pl.lit("1"),
            },
            "twice",
        ),
    ],
)
def test_a_sheet_that_is_not_that_of_the_sample_is_refused(
    published: Published, sheet: pl.DataFrame, tmp_path: Path, change: dict[str, pl.Expr], words: str
) -> None:
    sheet.with_columns(**change).write_csv(tmp_path / "filled.csv")
    called = call("explain", published.results, "before_after", "--checked", tmp_path / "filled.csv")
    assert called.code == 65
    assert words in called.err


def test_a_stage_without_a_sample_has_no_sheet(published: Published, tmp_path: Path) -> None:
    called = call("explain", published.results, "ranking", "--checked", tmp_path / "none.csv")
    assert (called.code, "has no sample" in called.err) == (2, True)
    called = call("explain", published.results, "before_after", "--checked", tmp_path / "none.csv")
    assert (called.code, "does not exist" in called.err) == (66, True)


# What became of the inputs -------------------------------------------------------------------------------------------


@pytest.fixture
def moved(published: Published) -> Iterator[Path]:
    """A file of an input that a test may move away or write again; afterwards it is what it was."""
    path = published.folder / "geocoding" / "gold.parquet"
    content, stat = path.read_bytes(), path.stat()
    yield path
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_file_that_changed_is_named(published: Published, moved: Path) -> None:
    assert not any("rows shown may differ" in note for note in published.explain("geocoding").notes)
    pl.read_parquet(moved).head(20).write_parquet(moved)
    notes = published.explain("geocoding").notes
    assert f"input gold: {moved} has changed since the run: rows shown may differ from those that were counted" in notes


def test_other_code_than_that_of_the_run_is_said(published: Published) -> None:
    words = "the run was made by other code than this (0.1.0): rows and SQL are those of this code"
    assert words not in published.explain("geocoding", None, Shown((), 0)).notes
    run = replace(published.run, record={**published.run.record, "code_sha256": "another"})
    assert words in explain(run, "geocoding", Wish(), Shown((), 0)).notes


def test_a_number_is_explained_without_its_rows_when_a_file_is_gone(published: Published, moved: Path) -> None:
    moved.unlink()
    explanation = published.explain("geocoding")
    assert explanation.sections == ()
    assert explanation.steps
    assert any(f"no rows can be shown: {moved} is gone" in note for note in explanation.notes)
    called = call("explain", published.results, "geocoding", "--show", "nearest")
    assert called.code == 66
    assert f"{moved} is gone" in called.err


# The command line ----------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(published: Published) -> None:
    called = call("explain", published.results, "before_after", "-t", "5", "-n", "3", "--sql", "-f", "json")
    assert called.code == 0, called.err
    explained = json.loads(called.out)
    assert explained["steps"][-1]["value"] == pytest.approx(explained["value"])
    assert [section["name"] for section in explained["sections"]] == [
        *("certain_false_positives", "nearest", "gold_misses", "gold_false_positives", "events")
    ]
    assert len(explained["sections"][0]["rows"]) == 3
    assert explained["sections"][0]["rows"][0].keys() >= {"event_id", "score", "articles.title"}
    assert "sql/before_after/matches.sql" in explained["sql"]
    assert explained["run"] == published.run.folder.name
    assert explained["warnings"] == list(published.stage("before_after").warnings)


@pytest.mark.wide
def test_text_and_markdown_cannot_be_steered_by_what_they_show(published: Published) -> None:
    for format_ in ("text", "markdown"):
        options = ("-t", "5", "-n", "40", "-f", format_)
        called = call("explain", published.results, "before_after", *options)
        assert called.code == 0, called.err
        assert "\x1b" not in called.out
        assert "two\nlines" not in called.out
        assert "\\u001b" in called.out
    assert "<img" not in called.out
    assert "&lt;img" in called.out


def test_csv_has_the_rows_of_one_section(published: Published) -> None:
    called = call("explain", published.results, "before_after", "-t", "5", "-f", "csv")
    assert (called.code, "Add --show" in called.err) == (2, True)
    called = call("explain", published.results, "before_after", "-t", "5", "-f", "csv", "--show", "nearest", "-n", "7")
    assert called.code == 0, called.err
    assert pl.read_csv(called.raw).height == 7


def test_a_section_that_is_not_there_is_said(published: Published) -> None:
    called = call("explain", published.results, "ranking", "--show", "worst_query")
    assert called.code == 2
    assert "Did you mean `worst_queries`" in called.err


@pytest.mark.wide
def test_groups_of_two_columns_are_told_apart() -> None:
    frame = pl.DataFrame({"score": [0.1, 0.9] * 2, "label": [False, True] * 2, "a": ["x", "x", "y", "y"], "b": "z"})
    result = pipeline.threshold_sweep(predictions=frame, by=[["a", "b"]])
    with pytest.raises(UsageError) as error:
        result.explain("recall", a="x", b="y")
    assert error.value.remedy == "Its groups are: x, z; y, z."


def test_a_mention_that_only_touches_another_is_not_shown_beside_it(tmp_path: Path) -> None:
    sides = {
        "gold": pl.DataFrame({"doc_id": ["a"], "start": [8], "end": [10]}),
        "predicted": pl.DataFrame({"doc_id": ["a", "a"], "start": [4, 8], "end": [8, 10]}),
    }
    pipeline.run(stage_config(tmp_path, "entity_recognition", sides, match="span"))
    explanation = explain(latest_run(tmp_path / "results"), "entity_recognition", Wish("precision"), Shown())
    (row,) = _sections(explanation)["false_positives"].rows.to_dicts()
    assert (row["predicted_start"], row["predicted_end"], row["gold_start"]) == (4, 8, None)
