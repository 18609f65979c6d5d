"""One column, one role: which column of a file is read as which field, whatever the columns are called."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal
from running import read_table, run_before_after, run_stages, run_threshold_sweep, stage_config
from stage_examples import EXAMPLES, Example

import pipeline
from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.stage_results import Run

ABOUT_INPUTS = ("inputs", "bindings")
PREDICTIONS = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.3, 0.2],
        "weight": [5.0, 1.0, 1.0, 1.0],
        "label": [True, False, True, False],
        "kind": ["a", "b", "a", "b"],
    }
)
PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 1, 2, 2, 2],
        "article_id": [1, 2, 3, 1, 2, 3],
        "score": [3.0, 1.0, 4.0, 2.0, 5.0, 1.0],
        "lag_hours": [-30.0, 2.0, 20.0, -40.0, 5.0, -3.0],
    }
)


def run_example(
    folder: Path, example: Example, frames: dict[str, pl.DataFrame], renamed: dict[str, dict[str, str]] | None = None
) -> Run:
    names = renamed or {}
    inputs = {name: {"columns": example.columns(name, names.get(name))} for name in frames}
    return run_stages(stage_config(folder, example.kind, frames, **(inputs | example.keys)))


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Example], Run]:
    """Runs an example as it is, once for all tests."""

    @cache
    def run(kind: str) -> Run:
        example = next(example for example in EXAMPLES if example.kind == kind)
        return run_example(tmp_path_factory.mktemp("plain"), example, example.frames)

    return lambda example: run(example.kind)


def tables(run: Run) -> dict[str, pl.DataFrame]:
    return {
        path.relative_to(run.path).as_posix(): pl.read_parquet(path)
        for path in sorted(run.path.rglob("*.parquet"))
        if path.parent.name not in ABOUT_INPUTS
    }


def precision(folder: Path, **columns: Any) -> float:  # noqa: ANN401 - any TOML value
    run = run_threshold_sweep(folder, PREDICTIONS, predictions={"columns": columns}, thresholds=[1.0])
    return float(read_table(run, "threshold_sweep_curve", "threshold_sweep")["precision"][0])


@pytest.mark.wide
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_any_permutation_of_the_names_of_columns_gives_the_same_tables(
    tmp_path: Path, example: Example, plain_run: Callable[[Example], Run]
) -> None:
    expected = tables(plain_run(example))
    shuffled = random.Random(example.kind)  # noqa: S311 - an order, not a secret
    for attempt in range(3):
        frames, names = {}, {}
        for name, frame in example.frames.items():
            order = shuffled.sample(frame.columns, len(frame.columns))
            names[name] = dict(zip(frame.columns, order, strict=True))
            frames[name] = frame.rename(names[name]).select(shuffled.sample(order, len(order)))
        permuted = tables(run_example(tmp_path / str(attempt), example, frames, names))
        assert permuted.keys() == expected.keys()
        for path, frame in expected.items():
            assert_frame_equal(permuted[path], frame)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_columns_that_nothing_binds_change_no_byte(
    tmp_path: Path, example: Example, plain_run: Callable[[Example], Run]
) -> None:
    expected = plain_run(example)
    extra = {"weight": [-1.5], "complete_window": ["no"], "zzz": [None], "comment, all": ["§"]}
    frames = {}
    for name, frame in example.frames.items():
        more = pl.DataFrame(extra).select(column for column in extra if column not in frame.columns)
        frames[name] = frame.join(more, how="cross")
    run = run_example(tmp_path / "more", example, frames)
    for path in sorted(expected.path.rglob("*.parquet")):
        assert (run.path / path.relative_to(expected.path)).read_bytes() == path.read_bytes(), path


def test_a_column_mapped_to_the_score_is_not_the_weight_as_well(tmp_path: Path) -> None:
    assert precision(tmp_path, score="weight") == 0.5


def test_a_text_column_called_weight_stops_nothing(tmp_path: Path) -> None:
    frame = PREDICTIONS.with_columns(weight=pl.lit("heavy"))
    run = run_threshold_sweep(tmp_path, frame, predictions={"columns": {"score": "s"}}, thresholds=[0.5])
    assert len([said for said in run.warnings if "'weight' is not used" in said]) == 1


def test_false_unbinds_and_ends_the_notice(tmp_path: Path) -> None:
    run = run_threshold_sweep(
        tmp_path, PREDICTIONS, predictions={"columns": {"score": "s", "weight": False}}, thresholds=[0.5]
    )
    assert not [said for said in run.warnings if "weight" in said]
    assert read_table(run, "threshold_sweep_curve", "threshold_sweep")["precision"][0] == 0.5


def test_weights_weigh_where_they_are_mapped(tmp_path: Path) -> None:
    run = run_threshold_sweep(
        tmp_path, PREDICTIONS, predictions={"columns": {"score": "s", "weight": "weight"}}, thresholds=[0.5]
    )
    assert read_table(run, "threshold_sweep_curve", "threshold_sweep")["precision"][0] == pytest.approx(5 / 6)


def test_expressions_are_computed_from_the_columns_of_the_files(tmp_path: Path) -> None:
    columns = {"score": {"sql": "1 - s"}, "label": {"sql": "kind = 'b'"}, "weight": {"sql": "weight * 2"}}
    run = run_threshold_sweep(tmp_path, PREDICTIONS, predictions={"columns": columns}, thresholds=[0.5], by=["kind"])
    curve = read_table(run, "threshold_sweep_curve", "threshold_sweep")
    assert curve.select("grouping", "kind", "tp", "fp").rows() == [
        ("all", None, 1, 1),
        ("kind", "a", 0, 1),
        ("kind", "b", 1, 0),
    ]


def test_expressions_on_floating_columns_are_missing_where_these_are_not_finite(tmp_path: Path) -> None:
    frame = PREDICTIONS.with_columns(s=pl.Series([0.9, float("nan"), float("inf"), None]))
    with pytest.raises(DataError, match="3"):
        run_threshold_sweep(tmp_path, frame, predictions={"columns": {"score": {"sql": "1 - s"}}}, thresholds=[0.5])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"score": {"sql": "1 - kind"}}, "does not fit the columns"),
        ({"score": {"sql": "kind"}}, "is string, not a number"),
        ({"score": {"sql": "1 - x"}}, "computed from 'x'"),
        ({"score": {"sql": "count(*)"}}, "may not hold"),
        ({"score": {"sql": "(SELECT 1)"}}, "may not hold"),
        ({"score": {"sql": "s; DROP TABLE x"}}, "is not an SQL expression"),
        ({"score": {"sql": "1"}}, "reads no column"),
        ({"score": {"sql": "s", "more": 1}}, "write the name of a column"),
        ({"score": True}, "write the name of a column"),
        ({"score": ""}, "write the name of a column"),
        ({"score": False}, "it is required"),
        ({"score": "s", "label": "s"}, "a column has one role"),
        ({"score": "s", "labl": "label"}, "which is not used"),
        ({"score": "s", "labl": False}, "which is not used"),
        ({"label": "score"}, "no column 'score'"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, DataError), match=words.replace("(", r"\(")):
        run_threshold_sweep(tmp_path, PREDICTIONS, predictions={"columns": columns}, thresholds=[0.5])


def test_groups_take_our_names_and_a_mapped_column_is_not_found_under_its_old_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'s' of predictions is mapped to score"):
        run_threshold_sweep(tmp_path, PREDICTIONS, predictions={"columns": {"score": "s"}}, by=["s"])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"lag_hours": "lag_hours", "lag_days": "days"}, "both mapped"),
        ({"event_time": "when"}, "which has no effect: the lag is lag_hours"),
    ],
)
def test_a_lag_has_one_source(tmp_path: Path, columns: dict[str, str], words: str) -> None:
    frame = PAIRS.with_columns(days=pl.col("lag_hours") / 24, when=pl.date(2026, 1, 1))
    with pytest.raises(ConfigError, match=words):
        run_before_after(tmp_path, {"pairs": frame}, pairs={"columns": columns}, thresholds=[1, 2])


def test_a_column_mapped_to_days_is_read_as_days_whatever_it_is_called(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"thresholds": [1, 2], "window": {"before": "10d", "after": "10d"}, "lag_thresholds": [1]}
    days = PAIRS.with_columns(pl.col("lag_hours") / 24)
    as_days = run_before_after(tmp_path / "days", {"pairs": days}, pairs={"columns": {"lag_days": "lag_hours"}}, **keys)
    as_hours = run_before_after(tmp_path / "hours", {"pairs": PAIRS}, **keys)
    for name in ("before_after_estimates", "before_after_lags"):
        assert_frame_equal(read_table(as_days, name, "before_after"), read_table(as_hours, name, "before_after"))


def test_one_given_number_without_the_other_is_said(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1, 2], "n": [9, 9]})
    with pytest.raises(ConfigError, match="n_after is neither mapped nor named"):
        run_before_after(
            tmp_path, {"pairs": PAIRS, "events": events}, events={"columns": {"n_before": "n"}}, thresholds=[1]
        )


@pytest.mark.wide
def test_bindings_stand_in_the_run_record_the_catalog_and_the_files(tmp_path: Path) -> None:
    columns = {"score": "s", "label": {"sql": "kind = 'a'"}}
    keys: dict[str, Any] = {"predictions": {"columns": columns}, "thresholds": [0.5], "by": ["kind"]}
    run = pipeline.run(stage_config(tmp_path, "threshold_sweep", {"predictions": PREDICTIONS}, **keys))
    wanted = {
        "predictions.score": {"source": "mapped", "column": "s"},
        "predictions.label": {"source": "mapped", "sql": "kind = 'a'"},
        "predictions.weight": {"source": "absent"},
        "predictions.id": {"source": "absent"},
        "predictions.proxy": {"source": "absent"},
        "predictions.kind": {"source": "named", "column": "kind"},
    }
    assert json.loads((run.path / "run.json").read_bytes())["bindings"]["threshold_sweep"] == wanted
    metadata = pq.read_metadata(run.path / "threshold_sweep_curve" / "threshold_sweep.parquet").metadata
    assert json.loads(metadata[b"thresher"])["bindings"] == wanted
    with pipeline.open_results(tmp_path / "results") as connection:
        rows = connection.sql("SELECT input || '.' || field, source, file_column, sql FROM bindings").fetchall()
    in_catalog = {name: {"source": source, "column": column, "sql": sql} for name, source, column, sql in rows}
    assert in_catalog == {
        name: {"source": None, "column": None, "sql": None} | binding for name, binding in wanted.items()
    }


def test_a_column_that_an_expression_reads_is_still_the_field_of_its_name(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1, 2], "n_before": [40, 50], "n_compared": [70, 75]})
    frames = {"pairs": PAIRS, "events": events}
    computed = {"columns": {"n_after": {"sql": "n_compared - n_before"}}}
    computed_run = run_before_after(tmp_path / "computed", frames, events=computed, thresholds=[2])
    plain_frames = {"pairs": PAIRS, "events": events.with_columns(n_after=pl.col("n_compared") - pl.col("n_before"))}
    expected = run_before_after(tmp_path / "given", plain_frames, thresholds=[2])
    assert_frame_equal(*(read_table(run, "before_after_estimates", "before_after") for run in (computed_run, expected)))


def test_a_required_column_can_be_read_by_an_expression_of_another_field(tmp_path: Path) -> None:
    frame = PREDICTIONS.rename({"s": "score"}).drop("label")
    columns = {"label": {"sql": "score > 0.5"}, "weight": {"sql": "1 / score"}}
    run = run_threshold_sweep(tmp_path, frame, predictions={"columns": columns}, thresholds=[0.25])
    table = read_table(run, "threshold_sweep_curve", "threshold_sweep")
    assert table.select("tp", "fp").row(0) == (2, 1)
    assert table["precision"][0] == pytest.approx((1 / 0.9 + 1 / 0.8) / (1 / 0.9 + 1 / 0.8 + 1 / 0.3))


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["entity_recognition", "geocoding"])
def test_a_column_that_is_only_shown_stops_no_run_whatever_its_type(
    tmp_path: Path, kind: str, plain_run: Callable[[Example], Run]
) -> None:
    example = next(each for each in EXAMPLES if each.kind == kind)
    expected = tables(plain_run(example))
    names = {"entity_recognition": ("type",), "geocoding": ("start", "end", "text", "rank")}[kind]
    for value in ([1, 2], True, None, 0.5):
        frames = {
            key: frame
            if key == "documents"
            else frame.with_columns(pl.Series(name, [value] * frame.height) for name in names)
            for key, frame in example.frames.items()
        }
        with_values = tables(run_example(tmp_path / type(value).__name__, example, frames))
        shown = {path for path in expected if "_outcomes" in path}
        assert with_values.keys() == expected.keys()
        assert all(with_values[path].equals(expected[path]) for path in expected.keys() - shown)


def test_a_column_of_another_type_than_its_field_can_be_unbound_and_the_message_says_so(tmp_path: Path) -> None:
    pairs = PAIRS.with_columns(event_time=pl.lit("1 May"), article_time=pl.lit("2 May"))
    with pytest.raises(DataError, match="is large_string, not a date or timestamp") as caught:
        run_before_after(tmp_path / "text", {"pairs": pairs}, thresholds=[2])
    assert "If it is something else: columns = { event_time = false }." in str(caught.value)
    unbound = {"columns": {"event_time": False, "article_time": False}}
    run_before_after(tmp_path / "unbound", {"pairs": pairs}, pairs=unbound, thresholds=[2])


def test_the_value_of_a_folder_name_is_text_and_the_message_says_how_to_cast_it(tmp_path: Path) -> None:
    folder = tmp_path / "days" / "score=1"
    folder.mkdir(parents=True)
    PREDICTIONS.select("label").write_parquet(folder / "a.parquet")
    config = {"kind": "threshold_sweep", "predictions": str(tmp_path / "days"), "thresholds": [1.0]}
    with pytest.raises(
        DataError, match=r"'score' in .* is the name of a folder, which is text, not a number"
    ) as caught:
        run_stages({"output": str(tmp_path / "refused"), "stages": [config]})
    assert "columns = { score = { sql = 'CAST(score AS DOUBLE)' } }" in str(caught.value)
    cast = {"path": config["predictions"], "columns": {"score": {"sql": "CAST(score AS DOUBLE)"}}}
    run = run_stages({"output": str(tmp_path / "cast"), "stages": [config | {"predictions": cast}]})
    assert read_table(run, "threshold_sweep_curve", "threshold_sweep").select("tp", "fp").row(0) == (2, 2)


def test_a_column_in_other_case_is_suggested_and_a_file_without_a_mapped_column_is_not_told_of_roles(
    tmp_path: Path,
) -> None:
    frame = PREDICTIONS.rename({"s": "SCORE"})
    with pytest.raises(DataError, match="Did you mean 'SCORE'"):
        run_threshold_sweep(tmp_path, frame, thresholds=[1.0])
    with pytest.raises(DataError, match="has no column 'id'") as caught:
        run_threshold_sweep(tmp_path, frame, predictions={"columns": {"score": "SCORE", "id": "id"}}, thresholds=[1.0])
    assert "is mapped to" not in str(caught.value)
