"""compare after other stages: of the same config, or of a published run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from comparing import compare_matchers
from running import COMPARE, read_table, run_stages

import pipeline
from pipeline.base.errors import ConfigError, DataError, NoInputError
from pipeline.runs import runner
from pipeline.runs.config import parse_config
from pipeline.stages import STAGES
from pipeline.stages.compare.contract import POOLED, CompareParameters, units_of
from pipeline.stages.simulations import before_after
from pipeline.stages.stage import UpstreamStage

if TYPE_CHECKING:
    from pipeline.runs.stage_results import Run

COMPARING: dict[str, Any] = {"kind": "compare", "of": ["loose", "strict"], "resamples": 999}


@pytest.fixture(scope="module")
def matchers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Two stages on the same events, at different thresholds."""
    stage = before_after.write_demo(tmp_path_factory.mktemp("matchers"))
    shared = {key: value for key, value in stage.items() if key not in {"by", "lag_thresholds"}}
    shared["thresholds"] = {"start": 1.0, "stop": 40.0, "count": 40}
    criteria = {"loose": {"min_recall": 0.99}, "strict": {"min_precision": 0.95}}
    return [shared | {"name": name, "operating_points": [each]} for name, each in criteria.items()]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, matchers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"output": str(tmp_path_factory.mktemp("following") / "results"), "stages": [*matchers, COMPARING]}


@pytest.fixture(scope="module")
def run(document: dict[str, Any]) -> Run:
    return pipeline.run(document)


@pytest.mark.wide
def test_the_stages_are_the_systems_and_their_events_the_units(run: Run) -> None:
    tests = read_table(run, "compare_tests", COMPARE)
    loose, strict = (read_table(run, "before_after_events", name) for name in ("loose", "strict"))
    expected = compare_matchers(loose, strict, flips=999)
    assert tests["system_a"].unique().to_list() == ["loose"]
    assert tests["system_b"].unique().to_list() == ["strict"]
    for row in expected.iter_rows(named=True):
        found = tests.row(by_predicate=pl.col("metric") == f"pooled_{row['metric']}", named=True)
        for mine, theirs in (("mean_a", "value_a"), ("difference_lower", "difference_lower"), ("p_value", "p_value")):
            assert found[mine] == pytest.approx(row[theirs], rel=1e-9)
    assert tests.filter(metric="pooled_precision")["difference"].item() < 0
    assert tests.filter(metric="pooled_recall")["difference"].item() > 0


@pytest.mark.wide
def test_running_again_changes_nothing(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 0.0)
    moved = document | {"output": str(tmp_path / "results")}
    first, again = pipeline.run(moved), pipeline.run(moved)
    assert (again.status, again.path) == ("unchanged", first.path)
    assert [stage.summary for stage in again.stages] == [stage.summary for stage in first.stages]
    Path(document["stages"][0]["pairs"]).touch()
    touched = pipeline.run(moved)
    assert (touched.status, touched.path, len(touched.stages)) == ("unchanged", first.path, 3)


def test_no_record_names_a_place_that_is_gone(run: Run) -> None:
    record = json.loads((run.path / "run.json").read_text("utf-8"))
    inputs = [each for each in record["inputs"] if each["stage"] == COMPARE]
    assert [each["path"] for each in inputs] == [f"before_after_events/{name}.parquet" for name in ("loose", "strict")]
    assert all((run.path / each["path"]).is_file() for each in inputs)
    texts = [(run.path / name).read_text("utf-8") for name in ("run.json", "manifest.json")]
    metadata = pl.read_parquet_metadata(run.path / "compare_tests" / "compare.parquet")["thresher"]
    assert not [text for text in (*texts, metadata) if ".staging" in text]
    assert json.loads(metadata)["parameters"]["of"] == ["loose", "strict"]
    assert "thresholds" not in json.loads(metadata)["parameters"]
    assert record["accounting"][COMPARE]["units"]["used"] == record["accounting"][COMPARE]["units"]["rows_in"]


@pytest.mark.wide
def test_published_results_give_the_same_comparison(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    later = {"output": str(tmp_path / "later"), "stages": [COMPARING | {"results": document["output"]}]}
    found = pipeline.run(later)
    assert read_table(found, "compare_tests", COMPARE).equals(read_table(run, "compare_tests", COMPARE))
    assert pipeline.run(later).status == "unchanged"
    record = json.loads((found.path / "run.json").read_text("utf-8"))
    assert all(each["path"].startswith(str(run.path)) for each in record["inputs"])


@pytest.mark.wide
def test_the_command_compares_published_results(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    words = ["compare", "--set", f"results={document['output']}", "--set", 'of=["loose", "strict"]']
    called = call(*words, "--set", "resamples=999", "--output", tmp_path / "flags")
    assert called.code == 0, called.err
    found = pl.read_parquet(f"{called.out.strip()}/compare_tests/compare.parquet")
    assert found.equals(read_table(run, "compare_tests", COMPARE))


def test_the_command_compares_units_of_a_file(tmp_path: Path) -> None:
    rows = [(unit, model, unit * 0.1 + (model == "x") * 0.05) for unit in range(5) for model in "xy"]
    pl.DataFrame(rows, schema=["unit", "model", "ap"], orient="row").write_parquet(tmp_path / "units.parquet")
    called = call("compare", "--units", tmp_path / "units.parquet", "--set", "system=model", "-o", tmp_path / "results")
    assert called.code == 0, called.err
    assert pl.read_parquet(f"{called.out.strip()}/compare_tests/compare.parquet").height == 3


def test_help_shows_only_keys_that_mean_something() -> None:
    text = call("compare", "--help").out
    assert "thresher compare --units units.parquet --set 'system=model'" in text
    assert "missing_units" in text
    assert "thresholds" not in text


def test_check_and_render_name_the_upstream_stages(document: dict[str, Any], tmp_path: Path) -> None:
    lines = []
    for stage in document["stages"]:
        values = {key: value for key, value in stage.items() if key != "kind"}
        lines += [
            "[[stages]]",
            f'kind = "{stage["kind"]}"',
            *(f"{key} = {toml(value)}" for key, value in values.items()),
        ]
    (tmp_path / "my.toml").write_text("\n".join(lines), "utf-8")
    checked, rendered = call("check", tmp_path / "my.toml"), call("render", tmp_path / "my.toml")
    assert (checked.code, rendered.code) == (0, 0), checked.err + rendered.err
    assert "compare  reads tables of loose, strict" in checked.out
    assert "-- compare: reads tables of loose, strict" in rendered.out


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(each) for each in value) + "]"
    return json.dumps(value)


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"of": ["loose", "stricct"]}, "'stricct', which is not there. Did you mean `strict`"),
        ({"of": ["loose", "compare"]}, "'compare', which does not come before it"),
        ({"of": ["loose", "loose"]}, "names a stage twice"),
        ({"of": "loose"}, "system is missing"),
        ({"of": "loose", "system": "source"}, "before_after has units for the total only"),
        ({"by": ["source"]}, "before_after has units for the total only"),
        ({"system": "source"}, "system goes with one stage"),
        ({"of": []}, "give either units, a path, or of"),
        ({"units": "units.parquet"}, "give either units, a path, or of"),
        ({"of": ["loose", "sweep"]}, r"several kinds \(before_after, threshold_sweep\)"),
    ],
)
def test_what_cannot_be_read_from_upstream_is_refused_before_anything_runs(
    matchers: list[dict[str, Any]], tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    sweep = {"kind": "threshold_sweep", "name": "sweep", "predictions": "p.parquet", "by": ["model"]}
    with pytest.raises(ConfigError, match=words):
        parse_config({"stages": [*matchers, sweep, COMPARING | keys]}, base=tmp_path)


def test_a_stage_that_comes_later_cannot_be_upstream(matchers: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="put it first"):
        parse_config({"stages": [matchers[0], COMPARING, matchers[1]]}, base=tmp_path)


def test_only_a_follower_without_its_leaders_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    config = parse_config(document, base=tmp_path)
    with pytest.raises(ConfigError, match="reads the tables of 'strict', which is left out, and cannot be carried"):
        runner.run(replace(config.only(["compare", "loose"]), output=tmp_path / "new"))
    assert len(config.only(["compare", "loose", "strict"]).stages) == 3
    assert len(config.only([]).stages) == 3
    assert len(config.only(["loose"]).stages) == 1


@pytest.mark.wide
def test_events_that_only_one_stage_has_are_refused_or_skipped(matchers: list[dict[str, Any]], tmp_path: Path) -> None:
    loose, strict = matchers
    last = max(pl.read_parquet(loose["events"]["path"])["event_id"].to_list())
    where = {"where": f"event_id < {last}"}
    fewer = {"pairs": {"path": loose["pairs"]} | where, "events": loose["events"] | where}
    stages = [loose | fewer, strict, COMPARING]
    with pytest.raises(DataError, match=f"not every system has every unit, for example event_id = {last} .1 of 2"):
        pipeline.run({"output": str(tmp_path / "results"), "stages": stages})
    stages[2] = COMPARING | {"missing_units": "skip"}
    run = pipeline.run({"output": str(tmp_path / "results"), "stages": stages})
    assert read_table(run, "compare_tests", COMPARE)["n_dropped"].to_list() == [1, 1, 1]


@pytest.mark.usefixtures("run")
def test_wrong_results_folders_are_refused(document: dict[str, Any], tmp_path: Path) -> None:
    def refused(kind: type[Exception], words: str, output: str, **keys: Any) -> None:  # noqa: ANN401
        with pytest.raises(kind, match=words):
            pipeline.run({"output": output, "stages": [COMPARING | keys]})

    own = document["output"]
    refused(ConfigError, "is the output folder of this run itself", own, results=own)
    other = str(tmp_path / "other")
    refused(NoInputError, "holds no published run", other, results=str(tmp_path / "nothing"))
    refused(NoInputError, "has no stage 'gone'(?s:.*)loose, strict, compare", other, results=own, of=["loose", "gone"])
    refused(ConfigError, "a kind without units", other, results=own, of="compare", system="x")
    words = "metrics names 'ap', which the units of loose, strict do not have(?s:.*)Comparable are pooled_precision, "
    refused(DataError, words, other, results=own, metrics=["ap"])
    refused(DataError, "margin names 'ap', which is not compared", other, results=own, margin={"ap": 0.1})
    refused(ConfigError, "baseline is 'gone', but the systems are the stages", other, results=own, baseline="gone")


def test_stages_can_be_groups_of_different_events(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    stage = COMPARING | {"results": document["output"], "paired": False, "baseline": "strict", "margin": 0.5}
    groups = run_stages({"output": str(tmp_path / "apart"), "stages": [stage]})
    tests, margins = (read_table(groups, f"compare_{name}", COMPARE) for name in ("tests", "margins"))
    assert tests["test"].unique().to_list() == ["jackknife_t"]
    assert (tests["n_units"] == tests["n_units_a"] + tests["n_units_b"]).all()
    paired = read_table(run, "compare_tests", COMPARE)
    assert tests["difference"].to_list() == pytest.approx(paired["difference"].to_list())
    apart, together = (each["difference_upper"] - each["difference_lower"] for each in (tests, paired))
    assert (apart > together).all()  # the difficulty of an event no longer cancels
    assert margins.height == 9


# Tables of kinds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES if units_of(entry.kind) is not None])
def test_units_come_from_the_grouping_with_the_system(kind: str, tmp_path: Path) -> None:
    table = units_of(kind)
    assert table is not None
    params = CompareParameters.model_validate({"name": "compare", "of": "s", "system": "model", "by": ["language"]})
    stage = UpstreamStage("s", kind, ((), ("model",), ("model", "language")), tmp_path)
    if not table.grouped:
        with pytest.raises(ValueError, match="total only"):
            params.with_upstream([stage])
        return
    compared_params = params.with_upstream([stage])
    assert compared_params.units is not None
    assert compared_params.units.path == (str(tmp_path / table.table / "s.parquet"),)
    assert compared_params.units.where == "\"grouping\" IN ('model,language')"
    assert compared_params.units.columns["unit"] == table.unit
    assert compared_params.metrics == (table.metrics or POOLED)
    lacking = UpstreamStage("s", kind, ((), ("language",)), tmp_path)
    with pytest.raises(ValueError, match="has no grouping by language, model"):
        params.with_upstream([lacking])


def test_a_table_of_queries_is_read_as_units(tmp_path: Path) -> None:
    """As the stage ranking writes it; the rows of other groupings are left out, and said so."""
    frames = []
    for grouping, models in (("all", [None]), ("model", ["m", "n"])):
        frames += [
            pl.DataFrame(
                {
                    "stage": "ranking",
                    "grouping": grouping,
                    "model": pl.Series([model] * 30, dtype=pl.String),
                    "query_id": range(30),
                    "n_relevant": 4,
                    "n_retrieved": 10,
                    "n_relevant_retrieved": [(query + (model == "n")) % 4 for query in range(30)],
                    "average_precision": [
                        (query % 7) / 10 + 0.01 * (model == "n") * (query % 3) for query in range(30)
                    ],
                    "r_precision": 0.5,
                    "reciprocal_rank": 0.25,
                }
            )
            for model in models
        ]
    folder = tmp_path / "ranking_queries"
    folder.mkdir()
    pl.concat(frames).write_parquet(folder / "ranking.parquet")
    metrics = ["average_precision", "r_precision", "pooled_recall"]
    keys = {"name": "compare", "of": "ranking", "system": "model", "metrics": metrics}
    params = CompareParameters.model_validate(keys)
    units = params.with_upstream([UpstreamStage("ranking", "ranking", ((), ("model",)), tmp_path)]).units
    assert units is not None
    stage = {
        "kind": "compare",
        "units": units.model_dump(),
        "metrics": metrics,
        "tests": ["sign", "randomization", "bayes"],
    }
    run = pipeline.run({"output": str(tmp_path / "results"), "stages": [stage]})
    tests = read_table(run, "compare_tests", COMPARE)
    assert tests["metric"].unique().sort().to_list() == sorted(metrics)
    assert set(tests["n_units"]) == {30}
    posterior = read_table(run, "compare_posteriors", COMPARE).row(0, named=True)
    tp = sum(frames[1]["n_relevant_retrieved"].to_list())
    effect = posterior["design_effect_a"]
    assert (effect > 1, posterior["counts_a"]) == (True, "design_effect")
    assert posterior["mean_a"] == pytest.approx((tp / effect + 0.5) / (30 * 4 / effect + 1), rel=1e-12)


@pytest.mark.wide
@pytest.mark.parametrize("failed", [[], ["strict"], ["loose", "strict"]])
@pytest.mark.parametrize("margin", [None, 0.05])
def test_a_difference_of_numbers_whose_assumption_failed_is_marked_too(
    tmp_path: Path, matchers: list[dict[str, Any]], failed: list[str], margin: float | None
) -> None:
    pairs = pl.read_parquet(matchers[0]["pairs"])
    reported = pl.col("lag_hours").is_between(-12, -1) & (pl.col("event_id").hash(1) % 2 == 0)
    pairs.with_columns(score=pl.when(reported).then(39.5).otherwise("score")).write_parquet(tmp_path / "early.parquet")
    early = str(tmp_path / "early.parquet")
    stages = [each | ({"pairs": early} if each["name"] in failed else {}) for each in matchers]
    comparing = COMPARING | ({} if margin is None else {"margin": margin})
    run = pipeline.run({"output": str(tmp_path / "results"), "stages": [*stages, comparing]})
    for name in ("loose", "strict"):
        qualities = read_table(run, "before_after_estimates", name)["interval_quality"].to_list()
        assert ("assumption_failed" in qualities) == (name in failed)
    tests = read_table(run, "compare_tests", COMPARE)
    marked = tests["interval_quality"] == "assumption_failed"
    assert marked.drop_nulls().all() == bool(failed)
    assert (tests["interval_quality"].is_null() == tests["difference_lower"].is_null()).all()
    if margin is not None:
        claims = read_table(run, "compare_margins", COMPARE)["interval_quality"]
        assert (claims == "assumption_failed").drop_nulls().all() == bool(failed)
