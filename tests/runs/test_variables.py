"""Variables of a config, up to the moment when its inputs are opened."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.base.errors import ConfigError
from pipeline.cli.app import _overrides
from pipeline.runs.config import Config, parse_config
from pipeline.runs.stage_results import canonical
from pipeline.runs.variables import NO_VARIABLES, recorded_variables

CANARY = 'canary-5f1d\' OR \\ "1"'


def config(values: dict[str, Any] | None = None, /, **keys: Any) -> Config:  # noqa: ANN401 - any TOML value
    """A config of one stage; keys of the stage have the names of its parameters, others are those of the document."""
    stage = {"kind": "threshold_sweep", "predictions": "p.parquet"}
    top = {key: keys.pop(key) for key in list(keys) if key in {"vars", "labels", "output", "resources"}}
    return parse_config({**top, "stages": [stage | keys]}, base=Path("/base"), values=values)


def predictions(of: Config) -> Any:  # noqa: ANN401 - an Input
    """The input of the only stage, as it is opened."""
    return of.variables.bound(of.stages[0].params).predictions  # type: ignore[attr-defined]


def test_a_variable_stands_in_folders_paths_sql_names_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/srv")
    parsed = config(
        {"region": "be", "ds": dt.date(2026, 11, 3)},
        vars={"region": "nl", "least": 0.5},
        output="results/${region}",
        resources={"scratch": "${env.PLACE}/scratch"},
        labels={"of": "${region}-${ds}"},
        name="${region}_${ds}",
        predictions={
            "path": ["${env.PLACE}/day=${ds}/*.parquet", Path("x/${region}")],
            "where": "region = ${region}",
            "columns": {"score": {"sql": "s * CAST(${least} AS DOUBLE)"}, "label": "truth_${region}"},
        },
        by=["group_${region}"],
    )
    assert parsed.output == Path("/base/results/be")
    assert parsed.resources.scratch == Path("/srv/scratch")
    assert parsed.variables.labels == {"of": "be-2026-11-03"}
    assert parsed.stages[0].params.name == "be_2026-11-03"
    assert parsed.stages[0].params.by == ((), ("group_be",))
    bound = predictions(parsed)
    assert bound.path == ("/srv/day=2026-11-03/*.parquet", "x/be")
    assert bound.columns["label"] == "truth_be"
    assert bound.where == "region = ${region}"
    assert bound.values()["region"] == bound.columns["score"].values()["region"] == "be"


def test_records_keep_paths_and_sql_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", CANARY)
    paths = {"path": "${env.SECRET}/${day}", "where": "a = ${env.SECRET} OR b = '${day}'"}
    parsed = config(vars={"day": "x"}, predictions=paths, labels={"a": "b"})
    assert CANARY not in json.dumps([canonical(parsed), parsed.variables.record()])
    assert canonical(parsed)["stages"][0]["predictions"]["where"] == paths["where"]
    record = parsed.variables.record()
    assert record == {"labels": {"a": "b"}, "vars": {"day": "x"}, "environment": ["SECRET"]}
    back = recorded_variables(record)
    assert (back, back.revealed(parsed.variables.concealed(f"/x/{CANARY}/y"))) == (parsed.variables, f"/x/{CANARY}/y")
    monkeypatch.delenv("SECRET")
    with pytest.raises(ConfigError, match="the environment variable SECRET is not set"):
        recorded_variables(record).bound(parsed.stages[0].params)


@pytest.mark.parametrize(
    "text", [CANARY, f"a = '{CANARY.replace(chr(39), chr(39) * 2)}'", repr(CANARY), json.dumps(CANARY), CANARY * 2]
)
def test_a_value_of_the_environment_is_concealed_however_it_is_written(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", CANARY)
    variables = config(predictions="${env.SECRET}/x").variables
    assert "canary" not in variables.concealed(text)
    error = ConfigError(f"{CANARY} is bad", remedy=f"{CANARY} too")
    with pytest.raises(ConfigError) as caught, variables.concealing():
        raise error from ValueError(CANARY)
    assert str(caught.value) == "${env.SECRET} is bad\n${env.SECRET} too"
    assert caught.value.__cause__ is None


def test_a_config_without_references_is_as_it_was() -> None:
    parsed = config(by=["a${b}"], predictions={"path": "p", "columns": {"score": "${x}"}})
    assert parsed.variables is NO_VARIABLES or parsed.variables == NO_VARIABLES
    assert predictions(parsed) is parsed.stages[0].params.predictions  # type: ignore[attr-defined]
    assert parsed.stages[0].params.by == ((), ("a${b}",))
    assert parsed.variables.identity() == {}


@pytest.mark.parametrize(
    ("values", "keys", "words"),
    [
        (
            {},
            {"name": "${regoin}", "vars": {"region": "a"}},
            "name: unknown variable ${regoin}. Did you mean `region`?",
        ),
        (
            {"regoin": "x"},
            {"vars": {"region": "a"}},
            "--var regoin: no variable of that name is declared. Did you mean",
        ),
        ({"x": "x"}, {}, "known are: ds."),
        ({}, {"predictions": "${ds}/x"}, "predictions: ${ds} is not set\nSet it with --var ds=2026-11-20"),
        (
            {},
            {"vars": {"model": {"required": True}}, "name": "${model}"},
            "${model} is not set\nSet it with --var model=",
        ),
        ({}, {"predictions": "${env.THRESHER_NO}/x"}, "the environment variable THRESHER_NO is not set"),
        ({}, {"predictions": "${env.THRESHER_EMPTY}/x"}, "the environment variable THRESHER_EMPTY is empty"),
        (
            {},
            {"predictions": {"path": "p", "timezone": "${env.HOME}"}},
            "predictions.timezone: ${env.HOME} would be seen",
        ),
        ({}, {"predictions": "${env:HOME}"}, "predictions: '${env:HOME}' is not the name of a variable"),
        ({"ds": "20-11-2026"}, {}, 'ds = "20-11-2026" is not a date\nWrite the day as 2026-11-20'),
        ({"ds": "2026-02-30"}, {}, "is not a date"),
        ({"ds": dt.datetime(2026, 1, 1, 5, tzinfo=dt.UTC)}, {}, "--var ds: its value is not text"),
        ({"ds": "2026-11-01..2026-11-02"}, {}, "thresher run takes a range of days"),
        ({}, {"vars": {"ds": "today"}}, 'ds = "today" is not a date'),
        ({}, {"vars": 5}, "vars: 5 is not allowed\nWrite a table"),
        ({}, {"vars": {"a": ["x"]}}, 'vars.a: ["x"] is not allowed\nWrite text in quotes'),
        ({}, {"vars": {"a": "${b}"}}, "vars.a: a default holds no variables"),
        ({}, {"vars": {"a-b": "x"}}, "vars: 'a-b' is not a name"),
        ({"a": "x\0"}, {"vars": {"a": "x"}}, "--var a: its value is not text that a file can hold"),
        ({}, {"labels": {"a": 5}}, "labels.a: 5 is not allowed: write text in quotes"),
        ({}, {"labels": "x"}, "labels"),
    ],
)
def test_a_fault_names_the_key_and_the_remedy(
    values: dict[str, Any], keys: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THRESHER_EMPTY", "")
    with pytest.raises(ConfigError) as caught:
        config(values, **keys)
    assert words in str(caught.value)


def test_all_faults_are_told_together() -> None:
    with pytest.raises(ConfigError, match="3 faults") as caught:
        config({"b": "1"}, vars={"a": "x"}, predictions={"path": "${c}", "where": "x = ${d}"})
    assert [fault.message.rpartition(": ")[0] for fault in caught.value.faults] == [
        "<config>: --var b",
        "<config>: [[stages]] 1: predictions.path",
        "<config>: [[stages]] 1: predictions.where",
    ]


def test_another_day_label_or_used_value_makes_another_run() -> None:
    def identity(values: dict[str, Any], **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - any TOML value
        keys = {"vars": {"used": "a", "unused": "a"}, "predictions": "${used}.parquet"} | keys
        return config(values, **keys).variables.identity()

    same = identity({})
    assert identity({"unused": "b"}) == same
    others = [identity({"used": "b"}), identity({"ds": "2026-11-03"}), identity({}, labels={"a": "b"})]
    assert all(other != same for other in others)


def test_a_config_nested_too_deep_is_told() -> None:
    value: dict[str, Any] = {"a": "${ds}"}
    value["b"] = value
    with pytest.raises(ConfigError, match="nested too deep"):
        config(predictions={"path": "p", "columns": {"score": value}})


def test_the_option_output_refers_to_variables_and_folders_are_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "${odd}"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for output, expected in {"out/${ds}": "out/2026-11-03", "out": "out", str(tmp_path / "x"): "../x"}.items():
        chosen = config({"ds": "2026-11-03"}, output=_overrides(None, output=output)["output"])
        assert chosen.output == (folder / expected).resolve()
