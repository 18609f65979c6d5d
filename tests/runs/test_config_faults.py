"""Every fault of a config is told at once, with its key and in the words of TOML, whatever library found it."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pipeline.base.errors import ConfigError
from pipeline.runs.config import ResourceLimits, load_config, parse_config
from pipeline.runs.variables import explain, toml
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

WRONG: list[object] = [
    *(5, -1, 1.5, float("nan"), float("inf"), True, "x", "", [], {}, [5], ["x"], [[5]], [{}], {"x": 5}, {"path": 5}),
    *({"start": "x"}, {"before": 5, "after": []}, [{"beta": "x"}], [{"x": 1}], {"rule": 5}, {"columns": 3}),
    *(dt.date(2026, 1, 1), dt.time(1, 2), [["x", 5]], {"path": ["a", 5]}, {"path": "a", "columns": {"b": 5}}),
]
MODELS: list[tuple[str, type[BaseModel]]] = [(entry.kind, entry.load().parameters) for entry in STAGES]
FOREIGN = re.compile(r"Input|Extra|Field required|instance|dictionary|tuple|boolean|function-|string|NoneType|<class")


def faults_of(kind: str, model: type[BaseModel], values: dict[str, Any]) -> list[str]:
    """The faults in our words, none of which is pydantic's."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        texts = explain(error, model, values, kind)
        theirs = [fault["msg"] for fault in error.errors() if fault["type"] != "value_error"]
        assert not [(words, text) for words in theirs for text in texts if words in text]
        return texts
    return []


@pytest.mark.parametrize(("kind", "model"), [*MODELS, ("before_after", ResourceLimits)])
def test_no_word_of_pydantic_reaches_people(kind: str, model: type[BaseModel]) -> None:
    seen = 0
    for key in model.model_fields:
        for value in WRONG:
            for text in faults_of(kind, model, {key: value}):
                seen += 1
                assert not FOREIGN.search(text), (key, value, text)
    assert seen > len(model.model_fields)


@pytest.mark.parametrize(("kind", "model"), MODELS)
def test_every_key_of_a_wrong_type_is_named_beside_what_it_should_be(kind: str, model: type[BaseModel]) -> None:
    for key in model.model_fields:
        for value in (dt.time(1, 2), {"no such key": [dt.time(1, 2)]}):
            texts = faults_of(kind, model, {key: value})
            assert any(re.match(rf"(unknown key )?`?{key}\b", text) or f"`{key}`" in text for text in texts), texts


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "cluster = 5",
            (
                "cluster: 5 is not allowed: write text in quotes or a list of texts in quotes, for example "
                'cluster = ["event_id", "day"]'
            ),
        ),
        ("confidence = 5", "confidence: 5 must be at most 0.999999999"),
        ("confidence = nan", "confidence: nan"),
        ("operating_points = { beta = 1 }", "operating_points: { beta = 1 } is not allowed: write a list of tables"),
        ("operating_points = [5]", "operating_points.0: 5 is not allowed: write a table { min_precision = … }"),
        ("events = 5", "events: 5 is not allowed: write a path in quotes, a list of paths, or a table { path = …"),
        ('events = { path = "x", columns = { event_id = 5 } }', "events.columns: event_id: write the name of a column"),
        ('event_counts = "yes please"', 'event_counts: "yes please" is not allowed: write "auto" or true or false'),
        (
            "boundary = 2000-01-01",
            'boundary: 2000-01-01 is not allowed: write ">=" or ">", for example boundary = ">="',
        ),
        ("window = 5", "window: 5 is not allowed: write a table { before = …, after = … }, for example window = {"),
        ("audit = { threshold = 1, size = 0 }", "audit.size: 0 must be at least 1"),
    ],
)
def test_a_value_of_a_wrong_type_is_told_what_to_write(line: str, words: str, tmp_path: Path) -> None:
    stage = {"kind": "before_after", "pairs": "p", "thresholds": [1]} | tomllib.loads(line)
    with pytest.raises(ConfigError) as raised:
        parse_config({"stages": [stage]}, base=tmp_path)
    assert words in raised.value.message


def test_all_faults_of_a_config_are_told_at_once_each_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'outptu = "x"\n[resources]\nthreads = "many"\n'
        '[[stages]]\nkind = "before_after"\ntreshold = [1]\nconfidence = 5\ncluster = 5\n'
        '[[stages]]\nkind = "rankin"\n[[stages]]\nkind = "ranking"\ncutoffs = "x"\n'
    )
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    lines = raised.value.message.splitlines()
    assert lines[0] == "9 faults"
    assert [line for line in lines[1:] if not line.startswith(str(path))] == [
        "Known kinds: " + ", ".join(entry.kind for entry in STAGES) + "."
    ]
    for words in (
        "unknown key `outptu`. Did you mean `output`?",
        'resources.threads: "many" is not allowed: write a whole number, for example threads = 2',
        "[[stages]] 1: `pairs` is missing",
        "[[stages]] 1: unknown key `treshold`. Did you mean `thresholds`?",
        "[[stages]] 1: confidence: 5 must be at most 0.999999999",
        "[[stages]] 1: cluster: 5 is not allowed",
        "[[stages]] 2: unknown kind 'rankin'. Did you mean `ranking`?",
        "[[stages]] 3: `ranking` is missing",
        '[[stages]] 3: cutoffs: "x" is not allowed: write a list of whole numbers, for example cutoffs = [1, 5,',
    ):
        assert sum(words in line for line in lines) == 1, (words, lines)


STAGE = '[[stages]]\nkind = "before_after"\npairs = "p"\nthresholds = { start = 0, stop = 1, count = 3 }\n'


def test_a_key_of_the_only_stage_is_set_without_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STAGE)
    config = load_config(path, overrides={"thresholds.count": 5, "boundary": ">", "output": "out"})
    assert config.stages[0].params.threshold_values == (0, 0.25, 0.5, 0.75, 1)
    assert config.stages[0].params.boundary == ">"
    assert config.output == tmp_path.resolve() / "out"
    with pytest.raises(ConfigError, match=r"unknown key `outptu`. Did you mean `output`"):
        load_config(path, overrides={"outptu": "x"})


def test_a_key_that_several_stages_have_asks_for_the_name_of_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STAGE + 'name = "news"\n' + STAGE + 'name = "blogs"\n')
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides={"thresholds.count": 5})
    assert "--set thresholds.count: which stage is meant?" in raised.value.message
    assert raised.value.remedy == "Write --set stages.NAME.thresholds.count=…, with NAME one of news, blogs."


def test_a_value_of_sixty_characters_is_shown_whole_and_of_more_its_beginning() -> None:
    assert toml("x" * 58) == f'"{"x" * 58}"'
    assert toml("x" * 59) == f'"{"x" * 59}…'
