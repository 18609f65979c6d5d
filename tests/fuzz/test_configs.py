"""Random configs of every stage: a result, or one clear message with a promised code."""

from __future__ import annotations

import copy
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from running import stage_config
from stage_examples import EXAMPLES, Example

from fuzz.driver import count, each_case, fault, parsed, publish
from fuzz.grammar import ODD_NAMES, grouping, mapping, predicate, value
from pipeline.base.sql_files import resource_folder
from pipeline.stages import STAGES, find_stage

if TYPE_CHECKING:
    import random
    from pathlib import Path

pytestmark = pytest.mark.fuzz

KINDS = [entry.kind for entry in STAGES]
DOCUMENT_KEYS = ("output", "engine", "resources", "stages", "nobody")
RESOURCE_KEYS = ("memory", "threads", "scratch", "scratch_limit", "nobody")


def example_of(kind: str) -> Example:
    examples = [example for example in EXAMPLES if example.kind == kind]
    assert examples, f"tests/stage_examples.py has no example of {kind}: add one"
    return examples[0]


def keys_of(kind: str) -> list[str]:
    entry = find_stage(kind)
    assert entry is not None
    return entry.load().parameters.keys()


def spoil(draw: random.Random, config: dict[str, Any], example: Example) -> None:
    """Change one thing of a config that runs."""
    stage = config["stages"][0]
    name = draw.choice(list(example.frames))
    columns = example.frames[name].columns
    change = draw.randrange(8)
    if change == 0:
        config[draw.choice(DOCUMENT_KEYS)] = value(draw)
    elif change == 1:
        config["resources"] = {draw.choice(RESOURCE_KEYS): value(draw)}
    elif change == 2:
        stage["by"] = grouping(draw, columns)
    elif change == 3 and isinstance(stage.get(name), dict):
        stage[name]["columns"] = mapping(draw, columns, columns)
    elif change == 4 and isinstance(stage.get(name), dict):
        stage[name][draw.choice(("path", "where", "timezone", "columns", "nobody"))] = value(draw)
    elif change == 5:
        stage.pop(draw.choice(list(stage)))
    else:
        stage[draw.choice((*keys_of(example.kind), *ODD_NAMES))] = value(draw)


def is_safe(config: dict[str, Any]) -> bool:
    """Whether a config stays inside the folder of the test when it is run."""
    output = config.get("output")
    resources = config.get("resources")
    scratch = resources.get("scratch") if isinstance(resources, dict) else None
    return all(place is None or place in {"r", ""} for place in (output, scratch) if isinstance(place, str | None))


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_config_is_read_or_refused_in_one_message(tmp_path: Path, kind: str) -> None:
    example = example_of(kind)
    plain = stage_config(tmp_path, kind, example.frames, **example.keys)

    def judge(draw: random.Random) -> str | None:
        config = copy.deepcopy(plain)
        for _ in range(draw.randrange(1, 5)):
            if isinstance(config.get("stages"), list) and config["stages"] and isinstance(config["stages"][0], dict):
                spoil(draw, config, example)
        broken = fault(parsed(config, tmp_path))
        return broken and f"{broken}\n{config}"

    each_case(150, judge)


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_config_runs_or_is_refused_in_one_message(tmp_path: Path, kind: str) -> None:
    example = example_of(kind)
    plain = stage_config(tmp_path, kind, example.frames, **example.keys) | {"output": "r"}

    def judge(draw: random.Random) -> str | None:
        config = copy.deepcopy(plain)
        config["stages"][0]["uncertainty"] = "none"
        if kind == "compare":
            config["stages"][0].pop("uncertainty")
        spoil(draw, config, example)
        if not is_safe(config):
            return None
        run = publish if draw.random() < 0.1 else count
        broken = fault(run(config, tmp_path))
        return broken and f"{broken}\n{config}"

    each_case(14, judge)


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_predicate_or_expression_is_applied_or_refused_in_one_message(tmp_path: Path, kind: str) -> None:
    example = example_of(kind)
    plain = stage_config(tmp_path, kind, example.frames, **example.keys) | {"output": "r"}

    def judge(draw: random.Random) -> str | None:
        config = copy.deepcopy(plain)
        name = draw.choice(list(example.frames))
        columns = example.frames[name].columns
        if draw.random() < 0.7:
            config["stages"][0][name]["where"] = predicate(draw, columns)
        else:
            mapped = mapping(draw, columns, columns)
            config["stages"][0][name]["columns"] |= mapped if isinstance(mapped, dict) else {}
        broken = fault(count(config, tmp_path))
        return broken and f"{broken}\n{config['stages'][0][name]}"

    each_case(14, judge)


def test_a_config_file_with_damaged_bytes_is_read_or_refused_in_one_message(tmp_path: Path) -> None:
    texts = [path.read_bytes() for path in sorted(resource_folder("configs").glob("*.toml"))]

    def judge(draw: random.Random) -> str | None:
        lines = [line for line in draw.choice(texts).splitlines(keepends=True) if not line.startswith(b"# ")]
        data = bytearray(b"".join(lines))
        for _ in range(draw.randrange(1, 4)):
            position = draw.randrange(len(data))
            if draw.random() < 0.5:
                data[position] = draw.choice(b'"[]{}=,.0-\n\0\xff#a')
            else:
                del data[position : position + draw.randrange(1, 40)]
        path = tmp_path / "damaged.toml"
        path.write_bytes(data)
        broken = fault(parsed(path, tmp_path))
        return broken and f"{broken}\n{bytes(data)!r}"

    each_case(200, judge)
    assert all(tomllib.loads(text.decode()) for text in texts)
