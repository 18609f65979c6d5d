from __future__ import annotations

import math
import os
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pipeline.base.errors import ConfigError, NoInputError
from pipeline.base.sql_files import resource_folder
from pipeline.runs.config import load_config, parse_config
from pipeline.stages.parameters import EvenThresholds

STAGE = 'kind = "before_after"\npairs = "pairs.parquet"\nthresholds = [1, 2]\n'
CONFIGS = sorted(resource_folder("configs").glob("*.toml"))


def refused(tmp_path: Path, text: str) -> str:
    """Message of the error; it always names the file."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.code == 78
    assert "mine.toml" in caught.value.message
    return str(caught.value)


def refused_stage(tmp_path: Path, text: str) -> str:
    """Message of the error about the second of two stages; it names that stage."""
    message = refused(tmp_path, f'[[stages]]\nname = "a"\n{STAGE}\n[[stages]]\nname = "b"\n{text}')
    assert "[[stages]] 2" in message
    return message


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("outptu = 1\n", "outptu", "output"),
        ("[resources]\nmemroy = '1GB'\n", "resources.memroy", "memory"),
        ("[resource]\nmemory = '1GB'\n", "resource", "resources"),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(tmp_path: Path, text: str, key: str, nearest: str) -> None:
    message = refused(tmp_path, f"{text}\n[[stages]]\n{STAGE}")
    assert f"unknown key `{key}`" in message
    assert f"`{nearest}`" in message


def test_an_unknown_kind_names_the_nearest_and_all_known_ones(tmp_path: Path) -> None:
    message = refused_stage(tmp_path, STAGE.replace('"before_after"', '"before_afer"'))
    assert "unknown kind 'before_afer'" in message
    assert "Did you mean `before_after`" in message
    assert "Known kinds: before_after" in message


@pytest.mark.parametrize(
    ("thresholds", "written"),
    [
        ("{ start = 0, stop = 1, count = 101 }", [f"{number / 100:.2f}" for number in range(101)]),
        ("{ start = 0.01, stop = 0.99, count = 99 }", [f"{number / 100:.2f}" for number in range(1, 100)]),
        ("{ start = -0.3, stop = 0.3, count = 7 }", ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", "0.3"]),
        ("{ start = 1e-7, stop = 5e-7, count = 5 }", ["1e-7", "2e-7", "3e-7", "4e-7", "5e-7"]),
    ],
)
def test_even_thresholds_are_the_decimals_that_people_write(
    tmp_path: Path, thresholds: str, written: list[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[[stages]]\n" + STAGE.replace("[1, 2]", thresholds))
    assert load_config(path).stages[0].params.threshold_values == tuple(float(text) for text in written)


@pytest.mark.parametrize(
    ("start", "stop", "count"), [("0.1", "60.0", 200), ("-2.5", "1e-3", 7), ("5e-324", "1e300", 9)]
)
def test_no_double_is_nearer_to_an_even_threshold(start: str, stop: str, count: int) -> None:
    low, high = Fraction(start), Fraction(stop)
    values = EvenThresholds(start=float(start), stop=float(stop), count=count).values()
    for step, value in enumerate(values):
        exact = low + (high - low) * step / (count - 1)
        beside = (math.nextafter(value, to) for to in (-math.inf, math.inf))
        assert all(abs(Fraction(value) - exact) <= abs(Fraction(other) - exact) for other in beside)


WEEK = """{ name = "week", sql = "date_trunc('week', day)" }"""


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (f"[{WEEK}]", ((), ("week",))),
        (f'["source", {WEEK}]', ((), ("source", "week"))),
        (f'[[], ["source"], ["source", {WEEK}]]', ((), ("source",), ("source", "week"))),
    ],
)
def test_a_group_that_is_computed_is_an_expression_of_an_input(
    tmp_path: Path, by: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[stages]]\n{STAGE}by = {by}")
    (configured,) = load_config(path).stages
    params: Any = configured.params
    assert params.by == expected
    assert params.pairs.columns["week"].sql == "date_trunc('week', day)"


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ('"a"', ((), ("a",))),
        ('["a"]', ((), ("a",))),
        ('["a", "b"]', ((), ("a", "b"))),
        ('[["a"]]', (("a",),)),
        ('[[], ["a"], ["a", "b"]]', ((), ("a",), ("a", "b"))),
    ],
)
def test_a_plain_list_of_groupings_means_the_total_and_that_grouping(
    tmp_path: Path, by: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[stages]]\n{STAGE}by = {by}\n")
    assert load_config(path).stages[0].params.by == expected


@pytest.mark.parametrize("names", [('name = "x"', 'name = "x"'), ("", ""), ('name = "before_after"', "")])
def test_two_stages_of_one_name_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    message = refused(tmp_path, "".join(f"[[stages]]\n{STAGE}{name}\n" for name in names))
    assert "2 stages are called" in message
    assert "name = " in message


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "../x", "a/b", "é", "x" * 65, "."])
def test_a_stage_name_must_be_plain(tmp_path: Path, name: str) -> None:
    text = f'[[stages]]\n{STAGE}name = "{name}"\n'
    message = refused(tmp_path, text)
    assert "name" in message
    assert "[[stages]] 1" in message


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('memory = "4"', "resources.memory"),
        ('memory = "lots"', "resources.memory"),
        ("memory = 4", "resources.memory"),
        ('memory = "-4GB"', "resources.memory"),
        ("threads = 0", "resources.threads"),
        ('threads = "x"', "resources.threads"),
        ("threads = 1.5", "resources.threads"),
        ('scratch_limit = "full"', "resources.scratch_limit"),
        ("scratch = 3", "resources.scratch"),
    ],
)
def test_resources_that_are_no_resources_are_refused(tmp_path: Path, line: str, key: str) -> None:
    assert key in refused(tmp_path, f"[resources]\n{line}\n[[stages]]\n{STAGE}")


REFUSED: dict[str, tuple[str, ...]] = {  # lines beside or instead of those of the same key, and what is said of them
    "treshold = 1": ("unknown key `treshold`", "`thresholds`"),
    "recall_referense = {}": ("unknown key `recall_referense`", "`recall_reference`"),
    'window = { befor = "1d", after = "1d" }': ("unknown key `window.befor`", "`before`"),
    "recall_reference = { min_precission = 0.1 }": ("unknown key `recall_reference.min_precission`", "`min_precision`"),
    "operating_points = [{ min_presicion = 0.1 }]": ("key `operating_points.0.min_presicion`", "`min_precision`"),
    'events = { path = "x", colums = {} }': ("unknown key `events.colums`", "`columns`"),
    "thresholds = { start = 0, stop = 1, cuont = 3 }": ("thresholds", "count"),
    **dict.fromkeys(("kind =", "kind = 3", 'kind = ""', "kind = ['before_after']"), ("kind",)),
    **{f"{key} =": (key,) for key in ("pairs", "thresholds")},
    **{
        f"thresholds = {value}": ("thresholds", words)
        for value, words in {
            "[2, 1]": "must rise: 1 follows 2",
            "[1, 1]": "must rise: 1 follows 1",
            "[-0.0, 0.0]": "must rise",
            "[]": "empty",
            "[nan]": "finite",
            "[1, inf]": "finite",
            "['1']": "numbers",
            "[true]": "numbers",
            "[[1]]": "numbers",
            "'all'": "distinct",
            "3": "",
            "{ start = 1, stop = 2 }": "count",
            "{ start = 1, stop = 1, count = 3 }": "stop",
            "{ start = 2, stop = 1, count = 3 }": "stop",
            "{ start = 1, stop = 1.0000000000000002, count = 3 }": "not distinct",
            **{f"{{ start = 1, stop = 2, count = {count} }}": "count" for count in (0, 100_001, 2.5)},
            "{ start = nan, stop = 2, count = 3 }": "start",
            "{ start = 1, stop = inf, count = 3 }": "stop",
            "{ start = -1.7e308, stop = 1.7e308, count = 3 }": "",
        }.items()
    },
    **{
        f'by = ["{name}"]': (f"by: {name!r}", "columns = {")
        for name in ["precision", "Precision", "threshold", "stage", "grouping", "m_after", "undefined", "lag_hours"]
    },
    **{
        f"by = {value}": ("by", words)
        for value, words in {
            '["a,b"]': "'a,b'",
            '["all"]': "'all'",
            '[""]': "''",
            '""': "''",
            "[]": "empty",
            "[1]": "",
            **dict.fromkeys(('[["a", "a"]]', '[["a", "b"], ["b", "a"]]', "[[], []]"), "twice"),
            '[{ name = "week" }]': 'is written { name = "week", sql = ',
            '[{ name = "week", sql = "day", input = "events" }]': "week is computed from the input 'events', which is",
            """[["a", { name = "w", sql = "x" }], [{ name = "w", sql = "y" }]]""": "w is computed in two ways",
            '[{ name = "week", sql = "day", where = "a" }]': 'is written { name = "week", sql = ',
        }.items()
    },
    **{
        f"window = {value}": (key,)
        for value, key in {
            '{ before = "7 days", after = "3d" }': "window.before",
            '{ before = "7d", after = 3 }': "window.after",
            '{ before = "7d", after = "-3d" }': "window.after",
            '{ before = "7d", after = "3d", gap = "7" }': "window.gap",
            '{ before = "7d", after = "3d", gap = "7d" }': "window",
            '{ before = "0d", after = "3d" }': "window",
            '{ before = "7d" }': "window.after",
            '{ before = "7d", after = "3d", closed = "right" }': "window.closed",
            '"7d"': "window",
        }.items()
    },
    **{
        line: (line.partition(" ")[0],)
        for line in (
            *('boundary = ">>"', 'invalid_scores = "ignore"', 'duplicates = "min"', 'uncertainty = "wild"'),
            *("replicates = 1", 'replicates = "all"', "confidence = 1", "confidence = 95", 'compared = "guess"'),
            'recall_reference = { rule = "fixed" }',
            'recall_reference = { rule = "max", threshold = 1 }',
            "recall_reference = { min_precision = 5 }",
            "recall_reference = { min_precision = 0.1234567891 }",
            "recall_reference = { recall = 0 }",
            "recall_reference = { recall = [1.0, 0.8] }",
            "recall_reference = { recall = [0.5] }",
            "recall_reference = { recall = [0.5, 0.1234567891] }",
            *("operating_points = [{ beta = 1, min_recall = 0.5 }]", "operating_points = [{}]"),
            *("events = []", 'events = ""', "events = 3", 'events = { columns = { event_id = "x" } }'),
        )
    },
}


@pytest.mark.parametrize(("line", "words"), REFUSED.items(), ids=REFUSED)
def test_a_line_of_a_stage_that_cannot_be_is_refused_and_its_key_is_named(
    tmp_path: Path, line: str, words: tuple[str, ...]
) -> None:
    key, _, value = line.partition(" =")
    others = [each for each in STAGE.splitlines() if not each.startswith(f"{key} =")]
    message = refused_stage(tmp_path, "\n".join([*others, *([line] if value else [])]))
    assert all(each in message for each in words), message


def test_an_engine_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "engine" in refused(tmp_path, f'engine = "sqlite"\n[[stages]]\n{STAGE}')


@pytest.mark.parametrize("text", ["", "output = 'x'\n", "stages = []\n"])
def test_a_config_without_a_stage_is_refused(tmp_path: Path, text: str) -> None:
    assert "no stage" in refused(tmp_path, text)


@pytest.mark.parametrize("text", ["= 1", "[[stages]]\nkind = ", "stages = 3", "stages = [3]", "[stages]\nkind = 'x'"])
def test_what_is_no_toml_or_no_list_of_stages_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text)


def test_a_config_that_is_not_there_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(NoInputError, match=r"gone\.toml"):
        load_config(tmp_path / "gone.toml")
    with pytest.raises(NoInputError, match="is a folder, not a config file"):
        load_config(tmp_path)


def test_an_override_replaces_one_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[stages]]\n{STAGE}")
    overrides: dict[str, Any] = {
        "stages.before_after.boundary": ">",
        "stages.1.thresholds": {"start": 0, "stop": 1, "count": 2},
        "resources.threads": 2,
    }
    config = load_config(path, overrides=overrides)
    assert config.stages[0].params.boundary == ">"
    assert config.stages[0].params.threshold_values == (0, 1)
    assert config.resources.threads == 2


@pytest.mark.parametrize("key", ["stages.other.boundary", "stages", "output.x", "stages.1.boundry", "resources.cores"])
def test_an_override_of_a_place_that_is_not_there_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'output = "x"\n[[stages]]\n{STAGE}')
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        load_config(path, overrides={key: ">"})


def test_only_some_stages_can_be_chosen_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[[stages]]\nname = "news"\n{STAGE}[[stages]]\nname = "blogs"\n{STAGE}')
    config = load_config(path)
    assert [each.params.name for each in config.only(["blogs"]).stages] == ["blogs"]
    assert len(config.only([]).stages) == 2
    with pytest.raises(ConfigError, match=r"(?s)mine\.toml.*'new'.*`news`.*news, blogs"):
        config.only(["new"])


def test_relative_paths_start_at_the_folder_of_the_config(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'output = "out"\n[resources]\nscratch = "tmp"\n[[stages]]\n{STAGE}')
    config = load_config(path)
    assert config.output == tmp_path.resolve() / "out"
    assert config.resources.scratch is not None
    assert Path(config.resources.scratch).resolve() == (tmp_path / "tmp").resolve()


def test_a_dictionary_is_a_config_too(tmp_path: Path) -> None:
    config = parse_config(tomllib.loads(f"[[stages]]\n{STAGE}"), base=tmp_path)
    assert config.output == tmp_path.resolve() / "results"
    with pytest.raises(ConfigError, match="<config>"):
        parse_config({"stages": [{"kind": "x"}]}, base=tmp_path)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_that_is_shipped_is_valid(path: Path) -> None:
    config = load_config(path)
    assert config.stages
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("#"), "a config opens with what it is for"


@pytest.mark.parametrize("descriptors", ["/dev/fd", "/proc/self/fd"])
def test_a_config_that_a_shell_writes_into_a_pipe_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descriptors: str
) -> None:
    if not Path(descriptors).is_dir():
        pytest.skip(f"this system has no {descriptors}")
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    os.write(writing, resource_folder("configs").joinpath("ranking.toml").read_bytes())
    os.close(writing)
    try:
        config = load_config(Path(f"{descriptors}/{reading}"))
    finally:
        os.close(reading)
    assert config.base == tmp_path
    assert config.output == tmp_path / "results"
    assert [stage.params.name for stage in config.stages] == ["ranking"]
    os.mkfifo(tmp_path / "named")
    with pytest.raises(NoInputError, match="is a named pipe, not a config file"):
        load_config(tmp_path / "named")
