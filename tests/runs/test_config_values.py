"""Whatever stands at a key of a config: it is accepted, or it is one sentence that names the key."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from pydantic import BaseModel
from running import compared, nested

from pipeline.base.errors import ConfigError
from pipeline.runs.config import load_config, parse_config
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator


VALUES: list[Any] = [
    [], {}, "", 0, -1, 1, 1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -0.0, 2**31, 2**63, 2**64, 10**400,
    True, False, None, "x", "NUL \0", "\udcff", "${x}", "1e308h", "9" * 400 + "h", "~", "x" * 100_000, ["x"], [""],
    [[]], [[[]]], [1e308], [5e-324, 1e308], [-1, 0, 1], [True], [None], [{}], {"": 1}, {"x": {"y": []}}, {"start": 0},
    {"start": -1e308, "stop": 1e308, "count": 100_000}, {"start": 0, "stop": 5e-324, "count": 3},
    {"before": "1e5h", "after": "1h"}, {"before": "9" * 400 + "h", "after": "0h"}, {"path": []}, {"path": [[]]},
    {"path": "x", "columns": {"": "y"}}, {"path": "x", "columns": {"score": ""}}, {"path": "x", "where": ""},
    {"path": "x", "timezone": "../x"}, {"path": "x\0"}, nested(50), nested(500), nested(3000), "distinct", "auto",
]  # fmt: skip


@cache
def small(kind: str) -> dict[str, Any]:
    """A config of the stage that is right."""
    required: dict[str, dict[str, Any]] = {
        "before_after": {"pairs": "p.parquet", "thresholds": [0.5]},
        "threshold_sweep": {"predictions": "p.parquet"},
        "ranking": {"ranking": "r.parquet", "relevance": "q.parquet"},
        "entity_recognition": {"gold": "g.parquet", "predicted": "p.parquet"},
        "geocoding": {"gold": "g.parquet", "predicted": "p.parquet"},
        "change_points": {"annotations": "a.parquet", "predictions": "p.parquet", "margin": 5},
        "compare": {"units": "u.parquet", "system": "model"},
    }
    return {"kind": kind} | required[kind]


def places(kind: str) -> Iterator[tuple[str, ...]]:
    """Every key of a stage, and those of its nested tables; of several of one kind, as inputs are, the first stands."""
    seen = set()
    for name, field in STAGE[kind].model_fields.items():
        yield (name,)
        for model in models(field.annotation):
            yield from ((name, inner) for inner in model.model_fields if (model, inner) not in seen)
            seen |= {(model, inner) for inner in model.model_fields}


def models(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in getattr(annotation, "__args__", ()) for model in models(part)]


def fault(document: dict[str, Any]) -> str | None:
    """What is wrong with a config; None when it is accepted. Any other error than ours is raised."""
    try:
        parse_config(document, base=Path("/data"))
    except ConfigError as error:
        return error.message
    return None


def check_fault(message: str | None) -> None:
    if message is not None:
        first = re.sub(r"^\d+ faults\n", "", message)
        assert first.startswith("<config>: "), message
        assert all(len(line) < 1_000 for line in message.splitlines()), message
    assert message is None or message.encode()


STAGE = {entry.kind: entry.load().parameters for entry in STAGES}


@pytest.mark.wide
@pytest.mark.parametrize("kind", STAGE)
def test_any_value_of_a_key_is_accepted_or_a_fault_of_the_config(kind: str) -> None:
    assert parse_config({"stages": [small(kind)]}, base=Path("/data")).stages
    for name, *inner in places(kind):
        for value in VALUES:
            put = {inner[0]: value} if inner else value
            for setting in [put, [put]] if inner else [put]:
                check_fault(fault({"stages": [small(kind) | {name: setting}]}))


@pytest.mark.parametrize(
    "key", ["output", "engine", "resources", "stages", "memory", "threads", "scratch", "scratch_limit"]
)
def test_any_value_outside_the_stages_is_accepted_or_a_fault_of_the_config(key: str) -> None:
    for value in VALUES:
        inside = (
            {"resources": {key: value}} if key in {"memory", "threads", "scratch", "scratch_limit"} else {key: value}
        )
        check_fault(fault({"stages": [small("before_after")]} | inside))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a = " * 3000 + "1" + "}" * 3000,
        "x = " + "9" * 5000,
        "x = 1e999",
        "x = 9999-99-99",
        'x = "\\ud800"',
        "x = '\x00'",
        "a." * 3000 + "b = 1",
        "[" + "a." * 3000 + "b]",
        "\ufeff\ufeffx = 1",
        "[[stages]]\nby = " + "[" * 500 + "]" * 500,
    ],
    ids=str,
)
def test_text_that_is_no_toml_or_too_deep_is_a_fault_of_the_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    called = call("run", tmp_path / "c.toml")
    assert called.code == 78, called.err
    assert called.err.count("error: ") == 1
    assert "c.toml" in called.err


@pytest.mark.parametrize("columns", [{"score": ""}, {"": "score"}])
def test_a_column_without_a_name_cannot_be_mapped(columns: dict[str, str]) -> None:
    message = fault({"stages": [small("before_after") | {"pairs": {"path": "p", "columns": columns}}]})
    assert message is not None
    assert message.startswith("<config>: [[stages]] 1: pairs.columns: ")


@pytest.mark.parametrize("key", ["by", "cluster", "strata", "pairs", "events"])
def test_a_nul_character_is_told_with_its_key(key: str) -> None:
    value: Any = {"path": "p", "columns": {"score": "a\0"}} if key in {"pairs", "events"} else ["a\0"]
    message = fault({"stages": [small("before_after") | {key: "a\0" if key == "cluster" else value}]})
    assert message is not None
    assert f"[[stages]] 1: {key}" in message
    assert "'a\\x00' holds a NUL character" in message


@pytest.mark.parametrize("beta", [1e300, 1e308, 1.0000001e6])
def test_a_beta_that_means_nothing_is_refused(beta: float) -> None:
    message = fault({"stages": [small("threshold_sweep") | {"operating_points": [{"beta": beta}]}]})
    assert message is not None
    assert "operating_points.0.beta" in message


@pytest.mark.parametrize("keys", [{"prior": 1e6}, {"prior": 5e-324}, {"confidence": 1 - 1e-9}, {"confidence": 5e-324}])
def test_the_widest_values_of_compare_give_results(tmp_path: Path, keys: dict[str, float]) -> None:
    units = pl.DataFrame({"unit": [1, 2, 3] * 2, "model": list("aaabbb"), "tp": [3, 1, 2, 1, 2, 9]})
    frame = units.with_columns(fp=pl.Series([1, 0, 2, 5, 1, 0]), fn=pl.Series([0, 1, 1, 1, 0, 3]))
    tables = compared(tmp_path, frame, system="model", **keys)
    assert tables["tests"].height > 0


@pytest.mark.parametrize("keys", [{"prior": 1e308}, {"confidence": 1 - 2**-53}])
def test_values_of_compare_that_mean_nothing_are_refused(keys: dict[str, float]) -> None:
    message = fault({"stages": [small("compare") | keys]})
    assert message is not None
    assert next(iter(keys)) in message


def test_bytes_that_are_no_text_are_a_fault_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"x = '\xff\xfe'")
    with pytest.raises(ConfigError, match=r"c\.toml cannot be read as TOML"):
        load_config(tmp_path / "c.toml")


@pytest.mark.parametrize(
    "text", ["by=" + "[" * 3000 + "]" * 3000, "stages=3", "stages.1=2", "a.b.c.d=1", "output.x=1", "=", "x"]
)
@pytest.mark.parametrize("command", ["run", "flags"])
def test_any_setting_is_accepted_or_one_sentence(tmp_path: Path, text: str, command: str) -> None:
    (tmp_path / "c.toml").write_text('[[stages]]\nkind = "before_after"\npairs = "p.parquet"\nthresholds = [0.5]\n')
    words = ["run", str(tmp_path / "c.toml")] if command == "run" else ["before-after", "--pairs", "p.parquet"]
    called = call(*words, "--set", text, "--output", str(tmp_path / "out"))
    assert called.code in {2, 66, 78}, called.err
    assert called.err.count("error: ") == 1
