"""Documents drawn whole: a sheet of them, what judged documents say of all, and what is wrong with a sheet."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.calls import call

import thresher
from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.few_labels.draws import DocumentDesign, JudgedMentions, estimated_scores

NUMBER = 60


def corpus() -> dict[str, pl.DataFrame]:
    """Documents of which every fifth has no mention, and a tagger that misses some and invents others."""
    random = np.random.default_rng(4)
    gold, predicted = [], []
    for document in range(NUMBER):
        for place in range(0 if document % 5 == 0 else int(random.integers(1, 12))):
            gold.append((document, 20 * place, 20 * place + 4))
            if random.random() < 0.8:
                predicted.append((document, 20 * place, 20 * place + 4, random.beta(4, 2)))
            if random.random() < 0.2:
                predicted.append((document, 20 * place + 9, 20 * place + 12, random.beta(2, 3)))
    names = ["doc_id", "start", "end", "score"]
    return {
        "gold": pl.DataFrame(gold, schema=names[:3], orient="row"),
        "predicted": pl.DataFrame(predicted, schema=names, orient="row"),
        "documents": pl.DataFrame({"doc_id": range(NUMBER), "genre": ["a", "b", "b"] * (NUMBER // 3)}),
    }


INPUTS: dict[str, Any] = corpus()
KEYS: dict[str, Any] = INPUTS | {"thresholds": [0.0, 0.4, 0.7], "averages": ["micro", "macro", "semeval"]}
ORDER = ("average", "threshold")


def scores_of(judged: Any = None, **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - any input, and keys of a config
    return thresher.entity_recognition(**(KEYS | keys), judged=judged).scores.sort(*ORDER)


@pytest.fixture(scope="module")
def sheet() -> pl.DataFrame:
    return thresher.sample("entity_recognition", size=30, columns=["genre"], **INPUTS)


def test_documents_are_drawn_before_there_is_gold(sheet: pl.DataFrame) -> None:
    rows = {name: INPUTS[name].to_dict(as_series=False) for name in ("predicted", "documents")}
    assert thresher.sample("entity_recognition", size=30, columns=["genre"], **rows).equals(sheet)


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_document_that_is_listed_twice_is_refused(sheet: pl.DataFrame, is_drawn: bool) -> None:  # noqa: FBT001 - a case
    """Also if it was not drawn: it would count twice among all documents."""
    documents = INPUTS["documents"]
    again = documents.filter(pl.col("doc_id").is_in(sheet["doc_id"].implode()) == is_drawn).head(1)
    twice = pl.concat([documents, again])
    words = rf"input documents: doc_id repeats: doc_id = {again['doc_id'][0]} \(2 rows\)"
    with pytest.raises(DataError, match=words):
        scores_of(sheet.with_columns(judged=pl.lit("yes")), documents=twice)
    with pytest.raises(DataError, match=words):
        thresher.sample("entity_recognition", size=30, **(INPUTS | {"documents": twice}))


def test_a_sheet_has_whole_documents_with_their_numbers_of_predictions(sheet: pl.DataFrame) -> None:
    assert sheet.columns == ["doc_id", "stratum", "probability", "n_predicted", "judged", "genre"]
    assert sheet["doc_id"].n_unique() == len(sheet) == 30
    numbers = dict(INPUTS["predicted"].group_by("doc_id").len().iter_rows())
    assert sheet.schema["n_predicted"] == pl.Int64
    assert sheet["n_predicted"].to_list() == [numbers.get(document, 0) for document in sheet["doc_id"]]
    sizes = sheet.group_by("stratum").agg(pl.len() / pl.col("probability").first()).to_series(1)
    assert sizes.sum() == pytest.approx(NUMBER)


def test_all_documents_judged_give_the_numbers_of_all_without_doubt() -> None:
    everything = thresher.sample("entity_recognition", size=NUMBER, **INPUTS).with_columns(judged=pl.lit("yes"))
    plain, judged = scores_of(), scores_of(everything)
    for name in ("tp", "fp", "fn", "precision", "recall", "f1", "undefined"):
        assert judged[name].to_list() == pytest.approx(plain[name].to_list())
    assert judged["tp_weight"].to_list() == pytest.approx(plain["tp"].to_list())
    assert judged["recall_lower"].to_list() == pytest.approx(plain["recall"].to_list())
    assert judged["recall_upper"].to_list() == pytest.approx(plain["recall"].to_list())


def test_only_judged_documents_count_and_others_are_told(sheet: pl.DataFrame, tmp_path: Path) -> None:
    judged = sheet.with_columns(judged=pl.when(pl.int_range(pl.len()) < 20).then(pl.lit("Yes")))
    result = thresher.entity_recognition(**KEYS, judged=judged)
    drawn = judged["doc_id"][:20].to_list()
    gold = INPUTS["gold"].filter(pl.col("doc_id").is_in(drawn))
    rows = result.scores.sort(*ORDER)
    assert (rows["n_documents"] == 20).all()
    assert (rows["tp"] + rows["fn"] == gold.height).all()
    lowest = rows.filter(threshold=0.0, average="micro").row(0, named=True)
    predicted = INPUTS["predicted"].filter(pl.col("doc_id").is_in(drawn))
    assert lowest["tp"] + lowest["fp"] == predicted.height
    said = " ".join(result.notes)
    assert "20 of 60 documents are judged" in said
    assert "10 rows of 30 are not judged yet" in said
    judged.write_csv(tmp_path / "sheet.csv")
    judged.write_parquet(tmp_path / "sheet.parquet")
    of_judged = INPUTS | {"gold": gold}  # nobody marked mentions of the other documents
    for path in ("sheet.csv", "sheet.parquet"):
        assert scores_of(tmp_path / path, **of_judged).equals(rows)


def test_weights_are_those_of_the_strata(sheet: pl.DataFrame) -> None:
    judged = sheet.with_columns(judged=pl.lit(value=True))
    row = scores_of(judged).filter(threshold=0.0, average="micro").row(0, named=True)
    counts = thresher.entity_recognition(**INPUTS, thresholds=[0.0]).documents
    weighted = judged.join(counts, on="doc_id")
    for name in ("tp", "fp", "fn"):
        expected = (weighted[name] / weighted["probability"]).sum()
        assert row[f"{name}_weight"] == pytest.approx(expected, rel=1e-9)
    assert row["precision"] == pytest.approx(row["tp_weight"] / (row["tp_weight"] + row["fp_weight"]))
    assert row["precision_lower"] < row["precision"] < row["precision_upper"]


def test_documents_that_others_drew_count_by_their_probabilities() -> None:
    judged = pl.DataFrame({"doc_id": range(0, 60, 5)}).with_columns(doc_id=pl.col("doc_id") + 1)
    judged = judged.with_columns(probability=pl.when(pl.col("doc_id") < 30).then(0.9).otherwise(0.15))
    row = scores_of(judged).filter(threshold=0.0, average="micro").row(0, named=True)
    weighted = judged.join(thresher.entity_recognition(**INPUTS, thresholds=[0.0]).documents, on="doc_id")
    share = 1 / weighted["probability"] / (1 / judged["probability"]).sum()
    for name in ("tp", "fp", "fn"):
        assert row[f"{name}_weight"] == pytest.approx(NUMBER * (weighted[name] * share).sum(), rel=1e-9)


@pytest.mark.parametrize("boundary", [">=", ">"])
def test_scores_that_equal_a_threshold_count_as_without_a_sheet(boundary: str) -> None:
    rounded = INPUTS["predicted"].with_columns(pl.col("score").round(1))
    everything = INPUTS["documents"].select("doc_id", judged=pl.lit(value=True))
    keys: dict[str, Any] = {"predicted": rounded, "boundary": boundary, "thresholds": [0.3, 0.5, 0.7]}
    of_sheet, of_all = scores_of(everything, **keys), scores_of(**keys)
    for name in ("precision", "recall", "f1"):
        np.testing.assert_allclose(of_sheet[name].to_numpy(), of_all[name].to_numpy(), rtol=1e-12)


def test_of_all_samples_of_a_few_documents_the_mean_of_the_totals_is_right() -> None:
    tp, fp, gold = np.array([3, 0, 2, 5, 1, 4]), np.array([1, 1, 0, 2, 0, 3]), np.array([4, 1, 2, 6, 3, 4])
    stratum = np.array([0, 0, 0, 1, 1, 1])
    totals = []
    for first in combinations(range(3), 2):
        for second in combinations(range(3, 6), 2):
            drawn = np.array([*first, *second])
            design = DocumentDesign(stratum[drawn], np.full(4, 1.5), np.full(2, 2 / 3))
            document = np.repeat(np.arange(4), gold[drawn] + fp[drawn])
            of_gold = [np.arange(gold[each] + fp[each]) < gold[each] for each in drawn]
            retrieved = [
                (np.arange(gold[each] + fp[each]) < tp[each]) | (np.arange(gold[each] + fp[each]) >= gold[each])
                for each in drawn
            ]
            mentions = JudgedMentions(
                document,
                np.concatenate(retrieved).astype(np.int64),
                np.concatenate(of_gold),
                np.ones(4, dtype=np.bool_),
            )
            scores = estimated_scores(design, mentions, 1, ["micro"], np.arange(4))
            totals.append([scores.tp.sum(), scores.fp.sum(), scores.fn.sum()])
    assert np.mean(totals, axis=0) == pytest.approx([tp.sum(), fp.sum(), (gold - tp).sum()])


@pytest.mark.wide
def test_limits_hold_the_numbers_of_all_documents() -> None:
    truth = scores_of()
    held = []
    for seed in range(30):
        drawn = thresher.sample("entity_recognition", size=24, seed=seed, **INPUTS).with_columns(judged=pl.lit(1))
        rows = scores_of(drawn)
        limits = [rows[f"{name}_{side}"].to_numpy() for name in ("precision", "recall") for side in ("lower", "upper")]
        values = [truth[name].to_numpy() for name in ("precision", "recall")]
        held.append([(limits[2 * i] <= values[i]) & (values[i] <= limits[2 * i + 1]) for i in range(2)])
    assert np.mean(held) >= 0.92
    assert np.mean(held, axis=0).min() >= 0.85


def test_groups_of_documents_and_types_have_estimates_of_their_own(sheet: pl.DataFrame) -> None:
    drawn = thresher.sample("entity_recognition", size=40, by=["score", "genre"], **INPUTS)
    judged = drawn.with_columns(judged=pl.lit("yes"))
    rows = scores_of(judged, by=["genre"], averages=["micro"]).filter(threshold=0.0)
    parts = rows.filter(pl.col("genre").is_not_null())
    assert rows.filter(grouping="all")["tp_weight"][0] == pytest.approx(parts["tp_weight"].sum())
    points = thresher.entity_recognition(**(KEYS | {"judged": sheet.with_columns(judged=pl.lit("yes"))}))
    chosen = points.operating_points.row(0, named=True)
    best = points.scores.filter(average="micro").sort("f1", descending=True).row(0, named=True)
    assert [chosen[name] for name in ("threshold", "f1", "tp_weight")] == [
        best[name] for name in ("threshold", "f1", "tp_weight")
    ]


def test_a_criterion_that_no_threshold_reaches_has_no_numbers(sheet: pl.DataFrame) -> None:
    judged = sheet.with_columns(judged=pl.lit("yes"))
    keys = KEYS | {"operating_points": [{"min_recall": 0.99}], "judged": judged}
    row = thresher.entity_recognition(**keys).operating_points.row(0, named=True)
    assert (row["threshold"], row["tp_weight"], row["undefined"]) == (None, None, "not_reached")


def test_a_second_draw_goes_on(sheet: pl.DataFrame) -> None:
    more = thresher.sample("entity_recognition", size=10, labelled=sheet.with_columns(judged=pl.lit("yes")), **INPUTS)
    assert not set(more["doc_id"]) & set(sheet["doc_id"])
    both = [each.select(more.columns).with_columns(judged=pl.lit("yes")) for each in (sheet, more)]
    assert (scores_of(both)["n_documents"] == 40).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.with_columns(judged=pl.lit("maybe")), "'judged' says neither true nor false in 30 rows"),
        (lambda rows: pl.concat([rows, rows[:1]]), "doc_id .* is there more than once"),
        (lambda rows: rows.with_columns(pl.col("doc_id") + 1_000), "30 rows, such as doc_id .* are of no document"),
        (lambda rows: rows.with_columns(doc_id=pl.lit(None, pl.Int64)), "'doc_id' is NULL in 30 rows"),
        (lambda rows: rows.with_columns(probability=pl.lit(0.0)), "'probability' is not above 0 and at most 1"),
        (lambda rows: rows.drop("probability").with_columns(stratum=pl.lit("x")), "its strata are not those"),
        (lambda rows: rows.drop("probability", "stratum"), "it has no probability"),
    ],
)
def test_a_sheet_at_fault_is_refused(sheet: pl.DataFrame, change: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match=message) as caught:
        scores_of(change(sheet.with_columns(judged=pl.lit("yes"))))
    assert caught.value.remedy


def test_a_sheet_that_nobody_has_filled_in_is_nothing_to_evaluate(sheet: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="not judged") as caught:
        scores_of(sheet)
    assert (caught.value.remedy or "").startswith("Write yes into the column judged of the sheet.")
    empty = thresher.entity_recognition(**KEYS, judged=sheet, allow_empty=True).scores
    assert set(empty["tp"]) <= {0}


def test_a_sheet_needs_the_documents_that_it_was_drawn_from(sheet: pl.DataFrame) -> None:
    without = {name: value for name, value in INPUTS.items() if name != "documents"}
    with pytest.raises(ConfigError, match="judged goes with documents"):
        thresher.entity_recognition(**without, judged=sheet)
    with pytest.raises(ConfigError, match="documents are drawn from those that the input documents lists"):
        thresher.sample("entity_recognition", size=5, **without)


def test_the_command_draws_documents_before_there_is_gold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("predicted", "documents"):
        INPUTS[name].write_parquet(f"{name}.parquet")
    inputs = "\n".join(f'{name} = "{name}.parquet"' for name in ("predicted", "documents", "gold"))
    Path("my.toml").write_text(f'output = "results"\n[[stages]]\nkind = "entity_recognition"\n{inputs}\n')
    drawn = call("sample", "my.toml", "entity_recognition", "--size", "25", "--to", "sheet.csv")
    assert drawn.code == 0, drawn.err
    rows = pl.read_csv("sheet.csv")
    INPUTS["gold"].filter(pl.col("doc_id").is_in(rows["doc_id"].to_list())).write_parquet("gold.parquet")
    rows.with_columns(judged=pl.lit("yes")).write_csv("filled.csv")
    done = call("run", "my.toml", "--set", "judged=filled.csv")
    assert done.code == 0, done.err
    assert "25 of 60 documents are judged" in done.err
