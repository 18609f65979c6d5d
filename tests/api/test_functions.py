"""The public functions: typed keywords, tables as frames, and the bytes that a run of a config publishes."""

from __future__ import annotations

import ast
import inspect
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases.reading import case_folders, prepare

import pipeline
import thresher
from api.generating import STUB, stub
from pipeline.api.functions import in_python
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.stages import StageEntry


def scored(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "p": np.round(rng.uniform(size=rows), 2),
            "label": rng.uniform(size=rows) < 0.4,
            "source": rng.choice(["noon", "dawn"], rows),
        }
    )


ROWS = scored().rename({"p": "score"})


def test_the_types_of_the_public_face_name_every_function() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "run python tests/api/generating.py"
    assert {entry.kind for entry in STAGES} <= set(dir(thresher))


@pytest.mark.parametrize("entry", STAGES, ids=lambda entry: entry.kind)
def test_a_function_has_a_keyword_for_every_parameter(entry: StageEntry) -> None:
    function = getattr(thresher, entry.kind)
    keywords = inspect.signature(function).parameters
    assert set(keywords) == {*entry.load().parameters.keys(), "resources"} - {"kind"}
    assert all(f"\n    {name}: " in (inspect.getdoc(function) or "") for name in keywords)


@pytest.mark.wide
@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_a_function_gives_the_tables_of_a_run_and_saves_their_bytes(kind: str, tmp_path: Path) -> None:
    config = prepare(next(case for case in case_folders() if case.parent.name == kind), tmp_path)
    run = pipeline.run(config)
    configured = next(stage for stage in config.stages if stage.stage.kind == kind)
    keywords: dict[str, Any] = configured.params.model_dump(exclude={"kind"}, exclude_unset=True, exclude_none=True)
    for contract in configured.stage.inputs:
        if contract.name in keywords:
            paths = [str(config.base / path) for path in keywords[contract.name]["path"]]
            keywords[contract.name] |= {"path": paths}
    result = getattr(thresher, kind)(**keywords)
    published = {path.parent.name: path for path in run.path.glob(f"*/{configured.params.name}.parquet")}
    assert set(result.tables) == set(published)
    for name, path in published.items():
        assert result.tables[name].equals(pl.read_parquet(path)), name
    saved = result.save(tmp_path / "saved")
    for name, path in published.items():
        assert (saved.path / name / path.name).read_bytes() == path.read_bytes(), name
    assert result.save(tmp_path / "saved").status == "unchanged"


def test_tables_are_attributes_under_short_names() -> None:
    result = thresher.threshold_sweep(
        predictions={"path": scored(), "columns": {"score": "p"}}, by=["source"], thresholds=[0.25, 0.5]
    )
    assert result.curve.height == 6
    assert result.curve is result.tables["threshold_sweep_curve"]
    assert set(result.curve["grouping"]) == {"all", "source"}
    assert "curve" in dir(result)
    assert "threshold_sweep: " in repr(result)
    assert "tables: curve, areas, operating_points" in repr(result)
    with pytest.raises(AttributeError, match="threshold_sweep has no table 'curves'; it has curve, areas"):
        _ = result.curves


def test_a_table_that_was_not_made_says_why() -> None:
    mentions = pl.DataFrame({"doc_id": [1, 1], "start": [0, 9], "end": [3, 12]})
    result = thresher.entity_recognition(predicted=mentions, gold=mentions, outcomes=False)
    with pytest.raises(AttributeError, match="the table entity_recognition_outcomes was not made: "):
        _ = result.outcomes


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scored().rename({"p": "score"}).write_parquet("rows.parquet")
    assert thresher.threshold_sweep(predictions="rows.parquet").areas.height == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_wrong_keyword_value_is_one_sentence() -> None:
    with pytest.raises(thresher.ThresherError, match=r"thresher\.threshold_sweep: .*thresholds must rise"):
        thresher.threshold_sweep(predictions=scored(), thresholds=[0.5, 0.25])
    with pytest.raises(thresher.ThresherError, match=r"the polars\.DataFrame has no column 'score'"):
        thresher.threshold_sweep(predictions=scored())


@pytest.mark.parametrize(
    ("call", "value", "words"),
    [
        (lambda value: thresher.threshold_sweep(predictions=ROWS).save(value), None, "folder: None is no path"),
        (thresher.open_results, 5, "results: 5 is no path"),
        (lambda value: thresher.plan_sample(value, width=0.1), ["r"], r"results: \['r'\] is no path"),
        (thresher.run, None, "config: None is neither a path nor a dictionary"),
    ],
)
def test_what_is_no_path_is_one_sentence(call: Callable[[Any], object], value: object, words: str) -> None:
    with pytest.raises(thresher.ThresherError, match=words):
        call(value)


def test_limits_are_those_of_the_config() -> None:
    frame = scored().rename({"p": "score"})
    with pytest.raises(thresher.ThresherError, match=r"resources\.memory: 'much' is not a size"):
        thresher.threshold_sweep(predictions=frame, resources={"memory": "much"})


@pytest.mark.wide
def test_parameters_can_be_arrays() -> None:
    frame = scored().rename({"p": "score"})
    expected = thresher.threshold_sweep(predictions=frame, thresholds=[0.25, 0.5]).curve
    arrays: list[Any] = [np.array([0.25, 0.5], np.float32), pl.Series([0.25, 0.5]), [np.float32(0.25), 0.5]]
    for thresholds in arrays:
        assert thresher.threshold_sweep(predictions=frame, thresholds=thresholds).curve.equals(expected)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((2, 2)), r"predictions is a numpy\.ndarray, which is no input"),
        ({"score": "a.parquet", "label": [True]}, "predictions is a dictionary without path: 'score', 'label'"),
        ({"score": [0.5, 0.6], "label": [True]}, "the columns of predictions differ in length: score 2, label 1"),
        ({"score": [0.5], "label": [{1}, object]}, "differ in length"),
        ({"score": np.array(0.5), "label": np.array(1)}, "predictions is a dictionary without path: 'score', 'label'"),
        ((row for row in [scored()]), "predictions is a generator"),
        (pl.DataFrame, r"predictions is a type, which is no input"),
        (3, "predictions is an int, which is no input"),
        (scored().to_dicts(), "predictions has a dict at place 1, which is no input\nPass a list of paths and frames"),
        ([scored(), scored().lazy, 3], "predictions has a method at place 2"),
    ],
)
def test_what_is_no_input_is_told_in_words_of_python(value: Any, words: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(thresher.ThresherError, match=words) as caught:
        thresher.threshold_sweep(predictions=value)
    assert caught.value.code == 78


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "form", ["lists", "arrays", "series", "structured", "with a path", "with columns of our words"]
)
def test_arrays_by_name_are_a_frame(form: str) -> None:
    score, label = ROWS["score"].to_list(), ROWS["label"].to_list()
    structured = np.array(list(zip(score, label, strict=True)), dtype=[("score", float), ("label", bool)])
    predictions: dict[str, Any] = {
        "lists": {"score": score, "label": label},
        "arrays": {"score": np.array(score), "label": np.array(label)},
        "series": {"score": pd.Series(score), "label": pl.Series(label)},
        "structured": structured,
        "with columns of our words": {"score": score, "label": label, "path": label, "database": label},
        "with a path": {"path": {"p": score, "label": label}, "columns": {"score": "p"}},
    }
    result = thresher.threshold_sweep(predictions=predictions[form])
    assert result.curve.equals(thresher.threshold_sweep(predictions=ROWS).curve)


def test_a_group_that_is_computed_takes_no_place_of_a_column_that_is_mapped() -> None:
    predictions: dict[str, Any] = {"path": ROWS, "columns": {"g": "source"}}
    with pytest.raises(thresher.ThresherError, match="by: g is computed in two ways: give each a name of its own"):
        thresher.threshold_sweep(predictions=predictions, by=[{"name": "g", "sql": "lower(source)"}])
    predictions["columns"] = {"g": {"sql": "lower(source)"}}
    areas = thresher.threshold_sweep(predictions=predictions, by=[{"name": "g", "sql": "lower(source)"}]).areas
    assert areas["g"].to_list() == [None, "dawn", "noon"]


def test_one_grouping_column_needs_no_list() -> None:
    of_text, of_list = (thresher.threshold_sweep(predictions=ROWS, by=by).curve for by in ("source", ["source"]))
    assert of_text.equals(of_list)


@pytest.mark.parametrize(
    ("values", "keywords", "words"),
    [
        (
            (),
            {"predictions": ROWS, "treshold": [0.5]},
            r"threshold_sweep\(\) has no keyword treshold; did you mean thre",
        ),
        (
            (),
            {"predictions": ROWS, "xyz": 1},
            r"no keyword xyz; it takes predictions, labels, checked, by, thresholds, ",
        ),
        ((ROWS,), {}, r"takes every value by its name: threshold_sweep\(predictions=…, by=…\)"),
        ((), {"by": "source"}, r"threshold_sweep\(\) needs predictions=…"),
    ],
)
def test_a_wrong_call_is_told_with_what_was_meant(values: tuple[Any], keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        getattr(thresher, "threshold_sweep")(*values, **keywords)  # noqa: B009 - its types would refuse it, too


def test_labels_with_gaps_are_read_after_one_edit_that_the_message_gives() -> None:
    label = [1.0, 0.0, float("nan")] * 100
    frame = ROWS.to_pandas().assign(label=label)
    with pytest.raises(thresher.ThresherError) as caught:
        thresher.threshold_sweep(predictions=frame)
    told = re.search(r"\{.*\}", caught.value.remedy or "")
    assert told
    edited = ast.literal_eval(told[0].replace("…", "None")) | {"path": frame}
    areas = thresher.threshold_sweep(predictions=edited).areas
    assert areas.select("n", "n_positive").row(0) == (200, 100)


def test_labels_that_are_null_are_left_out_as_the_message_says() -> None:
    frame = ROWS.with_columns(pl.when(pl.col("score") > 0.1).then("label").alias("label"))
    with pytest.raises(thresher.ThresherError) as caught:
        thresher.threshold_sweep(predictions=frame)
    told = re.search(r"\{.*?\}", caught.value.remedy or "")
    assert told
    edited = ast.literal_eval(told[0].replace("…", "None")) | {"path": frame}
    assert thresher.threshold_sweep(predictions=edited).areas["n"].item() == frame["label"].count()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('Set invalid_scores = "drop" or boundary = ">".', 'Set invalid_scores="drop" or boundary=">".'),
        ("columns = { id = 'a' }, where = \"b = 'c'\"", '{"path": …, "columns": {"id": "a"}, "where": "b = \'c\'"}'),
        ('an expression, { sql = "a / 100" }.', 'an expression, {"sql": "a / 100"}.'),
        ("ranking = { path = …, format = 'csv' }.", 'ranking={"path": …, "format": "csv"}.'),
        ("calibration = false, width = 0.5, by = [['a', 'b']]", 'calibration=False, width=0.5, by=[["a", "b"]]'),
        ("resources.memory = '4GB'.", 'resources={"memory": "4GB"}.'),
        ("p = 0.04, a = b, and key = [1, of no end", "p = 0.04, a = b, and key = [1, of no end"),
    ],
)
def test_settings_are_written_as_keywords(text: str, words: str) -> None:
    assert in_python(text) == words


def test_a_path_can_be_anything_that_has_one(tmp_path: Path) -> None:
    scored().rename({"p": "score"}).write_parquet(tmp_path / "rows.parquet")
    with os.scandir(tmp_path) as entries:
        entry = next(entries)
    assert thresher.threshold_sweep(predictions=entry).areas.height == 1


def test_a_field_that_is_missing_is_called_by_its_meaning() -> None:
    mention = pl.DataFrame({"mention_id": [1], "latitude": [1.0], "longitude": [2.0]})
    with pytest.raises(thresher.ThresherError, match=r"no column 'mention_id' \(the mention, the same in gold"):
        thresher.geocoding(gold=mention, predicted=mention.drop("mention_id"))
