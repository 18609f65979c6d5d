"""Any name can be that of a grouping column: the tables are those that a neutral name gives."""

from __future__ import annotations

import ast
import random
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import sqlglot.expressions as exp
from running import read_table, run_stages, stage_config, swept

from pipeline.base.errors import ConfigError, DataError
from pipeline.base.schemas import result_names
from pipeline.base.sql_files import load, query_names, resource_folder
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import render_opened
from pipeline.runs.opening import open_inputs
from pipeline.stages import STAGES
from pipeline.stages.stage import counts_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.stages.stage import Stage

STAGE_OF = {entry.kind: entry for entry in STAGES}
NEUTRAL = "neutral"
GROUPS = ["x", "y", None]
SEEN_TO_FAIL = (
    *("included", "mixed", "no_null", "precision_sum", "relevant_at_r", "_exact_mean", "judged", "straddled"),
    *("_row", "_value", "one", "n_delays", "delay_sum", "mean_recall", "len", "n_f1", "n_recall", "_group", "_size"),
    *(
        "_negatives",
        "_squares",
        "share",
        "passes_where",
        "replicate",
        "bin",
        "complete",
        "segment",
        "cluster",
        "matcher",
    ),
)
ODD = (
    "*",
    "^x$",
    "^.*$",
    "$x",
    'we"ird',
    "new\nline",
    "ünï 漢字 🦊",
    "a.b",
    "by:x",
    " ",
    "x" * 300,
    "{}",
    "%s",
    "NULL",
)
PER_STAGE = 5
PER_GROUPING = 4  # columns that one grouping has: every name takes part, and a grouping costs as much as a name


@cache
def identifiers() -> tuple[str, ...]:
    """Every name and every word of text in the code, and every name of a column in the queries."""
    package = resource_folder("sql").parent / "pipeline"
    names = set()
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name | ast.arg | ast.Attribute):
                names.add(node.id if isinstance(node, ast.Name) else getattr(node, "arg", getattr(node, "attr", "")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                names.add(node.value)
    for query in query_names():
        tree = load(query).tree
        names |= {each.name for each in tree.find_all(exp.Column, exp.Table)}
        names |= {each.alias for each in tree.find_all(exp.Alias)}
    return tuple(sorted(names - {""}))


def drawn_names(stage: Stage, seed: int) -> list[str]:
    """Names for grouping columns: those that failed once, odd ones, and a sample of identifiers and of unicode."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sample
    unicode = ["".join(map(chr, draw.choices(range(0x21, 0xD7FF), k=5))).replace(",", "") for _ in range(2)]
    names = [*SEEN_TO_FAIL, *ODD, *unicode, *draw.sample(identifiers(), PER_STAGE)]
    bound = {field.name for contract in stage.inputs for field in contract.fields}
    taken = {name.lower() for name in bound} | result_names((*stage.tables, counts_table(stage))) | {"all"}
    once = {name.lower(): name for name in names}
    return [name for lower, name in once.items() if lower not in taken]


def groups_of(rows: int) -> pl.Series:
    return pl.Series(NEUTRAL, [GROUPS[row % len(GROUPS)] for row in range(rows)], dtype=pl.String)


def mentions(**more: Any) -> pl.DataFrame:  # noqa: ANN401
    return pl.DataFrame({"doc_id": [1, 1, 2, 2, 3], "start": [0, 5, 0, 9, 4], "end": [3, 9, 4, 12, 6], **more})


def tiny_inputs() -> dict[str, tuple[str, dict[str, pl.DataFrame], dict[str, Any]]]:
    """By stage: the input that has the grouping columns, the inputs, and further keys."""
    days = [-30.0, -20.0, -3.0, 1.0, 2.0, 5.0, -40.0, 12.0, 20.0]
    pairs = pl.DataFrame({"event_id": [1, 2, 3] * 3, "article_id": list(range(9)), "score": [0.2, 0.9, 0.6] * 3})
    toponyms = mentions(mention_id=list(range(5)), latitude=[1.0, 2.0, 3.0, 4.0, 5.0], longitude=[1.0] * 5)
    ranking = {"query_id": [1] * 6 + [2] * 6, "doc_id": list(range(6)) * 2, "score": [0.5, 0.1, 0.7] * 4}
    predictions = pl.DataFrame({"score": [0.1, 0.4, 0.35, 0.8, 0.6, 0.2], "label": [0, 0, 1, 1, 1, 0]})
    predictions = predictions.with_row_index("document")
    points = pl.DataFrame({"series_id": [1, 1, 2, 2, 3], "position": [10, 40, 11, 60, 12]})
    points = points.with_columns(pl.Series("score", [0.5, 0.1, 0.5, 0.1, 1.0]))
    units = pl.DataFrame({"unit": sorted([*range(6)] * 2), "system": ["a", "b"] * 6})
    units = units.with_columns(pl.Series("correct", [0.1, 0.5, 0.3, 0.9] * 3))
    return {
        "before_after": (
            "events",
            {
                "pairs": pairs.with_columns(pl.Series("lag_hours", days)),
                "events": pl.DataFrame({"event_id": [1, 2, 3], "n_before": [5, 6, 7], "n_after": [8, 9, 5]}),
                "gold": pl.DataFrame({"event_id": [1, 2, 3, 3], "article_id": [3, 4, 5, 77]}),
            },
            {"thresholds": [0.2, 0.5, 0.8], "lag_thresholds": [0.5], "window": {"before": "48h", "after": "48h"}},
        ),
        "threshold_sweep": (
            "predictions",
            {"predictions": predictions},
            {
                "thresholds": [0.3, 0.5],
                "averages": ["macro"],
                "cluster": "document",
                "bands": True,
                "prevalence": [0.1],
                "net_benefit": True,
                "operating_points": [{"beta": 1}, {"max_alerts": 4}],
            },
        ),
        "entity_recognition": (
            "predicted",
            {"gold": mentions(), "predicted": mentions(score=[0.1, 0.9, 0.4, 0.3, 0.4])},
            {"match": "span", "averages": ["micro", "macro"]},
        ),
        "geocoding": (
            "predicted",
            {"gold": toponyms, "predicted": toponyms.with_columns(pl.col("latitude") + 0.3)},
            {},
        ),
        "change_points": (
            "predictions",
            {"predictions": points, "annotations": points.select("series_id", pl.col("position") + 2)},
            {"margin": 5, "series_counts": True, "delays": True, "cooldown": 3},
        ),
        "ranking": (
            "ranking",
            {"ranking": pl.DataFrame(ranking | {"relevance": [1, 0, 1, 0, 1, 1] * 2})},
            {"cutoffs": [1, 3], "measures": ["nDCG@3"]},
        ),
        "compare": ("units", {"units": units}, {"resamples": 99, "missing_units": "skip", "margin": 0.2}),
    }


def prepared(folder: Path, kind: str, names: Iterable[str], by: list[list[str]]) -> dict[str, Any]:
    """A config of a stage whose grouping columns all have the same values."""
    origin, frames, keys = tiny_inputs()[kind]
    frame = frames[origin]
    groups = groups_of(frame.height // 2) if kind == "compare" else groups_of(frame.height)
    groups = groups.gather(sorted([*range(len(groups))] * 2)) if kind == "compare" else groups
    frames[origin] = frame.with_columns(groups.alias(name) for name in names)
    return stage_config(folder, kind, frames, by=by, **keys)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", list(STAGE_OF))
def test_any_name_gives_the_tables_of_a_neutral_one(tmp_path: Path, kind: str) -> None:
    stage = STAGE_OF[kind].load()
    names = drawn_names(stage, seed=len(kind))
    groupings = [names[start : start + PER_GROUPING] for start in range(0, len(names), PER_GROUPING)]
    by = [[NEUTRAL], *groupings]
    if kind == "threshold_sweep":
        by.append([])
    run = run_stages(prepared(tmp_path, kind, [NEUTRAL, *names], by))
    for table in ("counts", *(table.name for table in stage.tables)):
        frame = read_table(run, table, kind)
        result_columns = [column for column in frame.columns if column not in {NEUTRAL, *names}]
        expected = of_group(frame, [NEUTRAL], NEUTRAL, result_columns)
        for grouping in groupings:
            for name in grouping:
                renamed = of_group(frame, grouping, name, result_columns)
                assert renamed.equals(expected), f"{table} by {name!r}"
        together = frame.filter(pl.col("grouping").str.starts_with(f"{NEUTRAL},"))
        values = {tuple(together.get_column(name).to_list()) for name in (NEUTRAL, *names)}
        assert len(values) == 1, f"{table} by all"


def of_group(frame: pl.DataFrame, grouping: list[str], name: str, result_columns: list[str]) -> pl.DataFrame:
    """The rows of a grouping with one of its columns, whose values are those of all of them, called neutral."""
    label = ",".join(grouping)
    rows = frame.filter(pl.col("grouping") == ("all" if "averaged" in result_columns else label))
    named = [rows.get_column(column) for column in result_columns if column != "grouping"]
    one = pl.DataFrame([*named, rows.get_column(name).alias(NEUTRAL)])
    if "averaged" not in result_columns:
        return one
    return one.filter(pl.col("averaged") == label).drop(NEUTRAL, "averaged").sort("average", "threshold")


@pytest.mark.parametrize("kind", list(STAGE_OF))
def test_queries_meet_a_users_name_only_where_its_input_is_read(tmp_path: Path, kind: str) -> None:
    name = "name of theirs"
    config = parse_config(prepared(tmp_path, kind, [name], [[], [name]]), base=tmp_path)
    opened = open_inputs(config, config.stages[0])
    statements = render_opened(opened, dialect="duckdb").split("\n\n")
    meeting = [part for part in statements if f'"{name}"' in part]
    origin = tiny_inputs()[kind][0]
    assert any(part.startswith(f"-- {kind}: relation {origin}_read") for part in meeting)
    assert all(f"FROM {origin}_files_0" in part and part.count(f'"{name}"') == 1 for part in meeting)


@pytest.mark.parametrize("name", ["passes_where", "score_given", "complete", "replicate"])
def test_a_cluster_with_a_name_of_ours_is_that_column(tmp_path: Path, name: str) -> None:
    frame = tiny_inputs()["threshold_sweep"][1]["predictions"].with_columns(pl.Series("story", [0, 0, 1, 1, 2, 3]))
    keys = {"thresholds": [0.3]}
    expected = swept(tmp_path / "story", frame, cluster="story", **keys)
    tables = swept(tmp_path / "name", frame.rename({"story": name}), cluster=name, **keys)
    assert all(tables[table].equals(expected[table]) for table in expected)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (["PRECISION"], "is also a column of the results"),
        (["Stage"], "is also a column of the results"),
        (["grouping"], "is also a column of the results"),
        (["replicate"], "is also a column of the results"),
        (["run_id"], "is also a column of the results"),
        (["a,b"], "comma"),
        (["all"], "the total"),
        ([""], "it is empty"),
        (["a\0b"], "holds a NUL character"),
        (["\ud800"], "is not Unicode"),
        (["Source", "source"], "differ in case only"),
        ([["Source"], ["source"]], "differ in case only"),
    ],
)
def test_names_that_cannot_stand_in_results_are_refused_before_anything_is_read(by: list[Any], words: str) -> None:
    stage = {"kind": "threshold_sweep", "predictions": "nowhere.parquet", "by": by}
    with pytest.raises(ConfigError, match=words) as refused:
        parse_config({"stages": [stage]}, base=Path())
    assert refused.value.code == 78


ROWS = pl.DataFrame({"score": [0.1, 0.4, 0.4, 0.9], "label": [False, True, False, True], "a b": list("xxyy")})
FILE = ROWS.with_columns(conf="score", precision=pl.Series(list("uvuv")))


@pytest.mark.parametrize(
    ("frame", "columns", "by", "groups"),
    [
        (FILE.drop("score"), {"score": "conf"}, "score", 3),
        (FILE.drop("score"), {"score": "conf"}, "conf", 3),
        (FILE.rename({"score": "Score"}), {"score": "Score"}, "Score", 3),
        (FILE, {}, "score", 3),
        (FILE, {}, "label", 2),
        (FILE, {"weight": {"sql": "score + 1"}}, "weight", 3),
        (FILE, {}, "precision", 2),
        (FILE, {"precision": "a b"}, "precision", 2),
        (FILE, {"precision": {"sql": "\"a b\" || 'z'"}}, "precision", 2),
        (FILE, {"mine": "precision"}, "precision", 2),
        (FILE, {"mine": "a b"}, "a b", 2),
        (FILE.rename({"a b": "a,b"}), {}, "a,b", 2),
        (FILE.rename({"a b": "all"}), {}, "all", 2),
        (FILE.rename({"a b": 'it\'s "so", all', "score": "it's"}), {"score": "it's"}, "it's", 3),
    ],
)
def test_the_remedy_for_a_name_that_groups_cannot_have_works_when_it_is_followed(
    tmp_path: Path, frame: pl.DataFrame, columns: dict[str, Any], by: str, groups: int
) -> None:
    frame.write_parquet(tmp_path / "rows.parquet")

    def run(mapping: dict[str, Any], name: str) -> pl.DataFrame:
        predictions = {"path": str(tmp_path / "rows.parquet"), "columns": mapping}
        stage = {"kind": "threshold_sweep", "predictions": predictions, "by": [[name]]}
        grouped = run_stages({"output": str(tmp_path / "results"), "stages": [stage]})
        return read_table(grouped, "threshold_sweep_areas", "threshold_sweep")

    with pytest.raises((ConfigError, DataError)) as refused:
        run(columns, by)
    words = str(refused.value)
    line, replaced = re.search(r"columns = \{.* \}", words), re.search(r"in place of (\w+)", words)
    mapping = tomllib.loads(line[0])["columns"] if line is not None else {}
    left = {key: value for key, value in columns.items() if replaced is None or key != replaced[1]}
    name = next(iter(mapping), "mine")
    assert f"rite {name}" in words
    assert run(left | mapping, name).height == groups


def test_a_column_without_a_name_needs_one_in_the_file() -> None:
    stage = {"kind": "threshold_sweep", "predictions": "nowhere.parquet", "by": [""]}
    with pytest.raises(ConfigError, match="no mapping can rename: write the file again") as refused:
        parse_config({"stages": [stage]}, base=Path())
    assert "columns = {" not in str(refused.value)
