"""`thresher init --from`: what is proposed for files runs, and what is guessed is said."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
from cli.calls import call
from hypothesis import given, settings
from hypothesis import strategies as st
from running import read_table, run_stages

from pipeline.base.errors import ThresherError
from pipeline.runs.config import parse_config
from pipeline.runs.proposing import propose
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from pipeline.runs.stage_results import Run

EDGELIST = pl.DataFrame(  # as RNewsflow's compare_documents writes it
    {
        "from": ["e1", "e2", "e1", "e2"] * 5,
        "to": [f"a{number}" for number in range(20)],
        "weight": [0.5 + number / 10 for number in range(20)],
        "hourdiff": [-30.5, 10.0, -2.0, 40.0] * 5,
    }
)


def proposal(kind: str, paths: list[str], folder: Path) -> tuple[str, dict[str, Any]]:
    entry = find_stage(kind)
    assert entry is not None
    text = propose([entry.load()], paths, folder)
    return text, tomllib.loads(text)


@pytest.mark.wide
def test_an_edgelist_runs_as_proposed(tmp_path: Path) -> None:
    EDGELIST.write_csv(tmp_path / "edgelist.csv")
    text, config = proposal("before_after", ["edgelist.csv"], tmp_path)
    (stage,) = config["stages"]
    assert stage["pairs"] == {
        "path": "edgelist.csv",
        "columns": {"event_id": "from", "score": "weight", "lag_hours": "hourdiff", "article_id": "to"},
    }
    assert stage["window"] == {"before": "48h", "after": "48h"}
    assert stage["thresholds"] == {"start": 0.5, "stop": 2.4, "count": 101}
    assert 'score (similarity of the pair; higher is more alike): GUESSED from its name: "weight"' in text
    run = run_config(config | {"stages": [stage | {"compared": "pairs"}]}, tmp_path)
    table = read_table(run, "before_after_estimates", "before_after")
    assert table["m_after"][0] + table["m_before"][0] == 20


NUMBERS: dict[str, Callable[[float], str]] = {
    "plain": str,
    "percent": lambda x: f"{100 * x:.1f}%",
    "percent with a blank and a comma": lambda x: f"{100 * x:.1f} %".replace(".", ","),
    "thousands": lambda x: f"{1e5 * x:,.0f}",
    "thousands and decimal commas": lambda x: f"{1e5 * x:,.1f}".translate({44: 46, 46: 44}),
    "decimal commas": lambda x: str(x).replace(".", ","),
}
LABELS = [("1", "0"), ("true", "False"), ("yes", "no"), ("Yes", "No"), ("t", "f"), ("1.0", "0.0"), ("pos", "neg")]


@settings(max_examples=12)
@given(
    number=st.sampled_from(sorted(NUMBERS)),
    labels=st.sampled_from(LABELS),
    scores=st.lists(st.integers(0, 1000).map(lambda x: x / 1000), min_size=3, max_size=30),
    gap=st.sampled_from(["", "NA", "null", "-"]),
    gaps=st.tuples(st.booleans(), st.booleans()),
    form=st.sampled_from([",", ";", "\t", ".parquet", ".jsonl"]),
    seed=st.randoms(use_true_random=False),
)
def test_what_is_proposed_for_text_of_many_shapes_runs_and_reads_the_numbers(
    number: str,
    labels: tuple[str, str],
    scores: list[float],
    gap: str,
    gaps: tuple[bool, bool],
    form: str,
    seed: Random,
) -> None:
    written: list[str | None] = [NUMBERS[number](score) for score in scores]
    label: list[str | None] = [labels[0], labels[1], *(seed.choice(labels) for _ in scores[2:])]
    in_scores, in_labels = gaps
    written = written + [gap or None] * in_scores + written[:1] * in_labels
    label = label + label[:1] * in_scores + [gap or None] * in_labels
    frame = pl.DataFrame({"item": range(len(label)), "score": written, "label": label})
    with TemporaryDirectory() as name:
        folder = Path(name)
        if form in {".parquet", ".jsonl"}:
            frame = frame.with_columns(pl.when(pl.col("score", "label") != gap).then(pl.col("score", "label")))
            path = folder / f"rows{form}"
            frame.write_parquet(path) if form == ".parquet" else frame.write_ndjson(path)
        else:
            path = folder / "rows.csv"
            frame.write_csv(path, separator=form)
        text, config = proposal("threshold_sweep", [path.name], folder)
        done = run_config(config, folder)
        curve = read_table(done, "threshold_sweep_curve", "threshold_sweep")
    assert curve["tp"].max() == sum(value == labels[0] for value in label[: len(scores)]), text
    share = 1e5 if number.startswith("thousands") else 1
    highest = curve["threshold"].max()
    assert highest == pytest.approx(share * max(round(score, 3) for score in scores), rel=1e-6), text


@pytest.mark.parametrize(
    ("times", "reads"),
    [
        (["20-11-2026", "21-11-2026"], "strptime(at, '%d-%m-%Y')"),
        (["20.11.2026 10:30", "21.11.2026 11:00"], "strptime(at, '%d.%m.%Y %H:%M')"),
        (["1763600000", "1763700000"], "to_timestamp(CAST(at AS BIGINT))"),
        (["2026-11-20", "2026-11-21"], "CAST(at AS TIMESTAMP)"),
    ],
)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_times_of_text_are_proposed_with_what_reads_them(
    times: list[str], reads: str, ending: str, tmp_path: Path
) -> None:
    columns = {"series_id": ["a", "b"], "position": times}
    for name in ("predictions", "annotations"):
        frame = pl.DataFrame(columns | ({"score": [0.5, 0.7]} if name == "predictions" else {}))
        path = tmp_path / f"{name}.{ending}"
        frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    paths = [f"{name}={name}.{ending}" for name in ("predictions", "annotations")]
    _, config = proposal("change_points", paths, tmp_path)
    (stage,) = config["stages"]
    mapped = stage["predictions"].get("columns", {}).get("position")
    is_read_anyway = ending == "csv" and reads.startswith("CAST")
    if not reads.startswith("to_timestamp"):  # which a position takes for whole numbers
        assert mapped == (
            None if is_read_anyway else {"sql": reads.replace("at", "position", 1).replace("(at", "(position")}
        )
    run_config(config, tmp_path)


def test_truth_values_as_numbers_with_gaps_are_proposed_with_what_reads_them(tmp_path: Path) -> None:
    rows = pl.DataFrame({"score": [0.5, None, float("nan"), 0.1], "y_true": [1.0, 0.0, None, float("nan")]})
    rows.write_parquet(tmp_path / "rows.parquet")
    _, config = proposal("threshold_sweep", ["rows.parquet"], tmp_path)
    (stage,) = config["stages"]
    assert stage["predictions"]["columns"] == {"label": {"sql": "y_true = 1"}}
    assert (stage["predictions"]["where"], stage["invalid_scores"]) == ("y_true IN (0, 1)", "drop")
    run_config(config, tmp_path)


def run_config(config: dict[str, Any], folder: Path) -> Run:
    """Run what was proposed."""
    return run_stages(parse_config(config | {"output": str(folder / "results")}, base=folder))


def test_words_for_no_value_are_proposed_and_what_is_proposed_runs(tmp_path: Path) -> None:
    lines = ('"","score","label","note"', '"1",0.5,1,"NA"', '"2",NA,0,"b"', '"3",0.7,N/A,"c"', '"4",0.1,0,"d"')
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    _, config = proposal("threshold_sweep", ["rows.csv"], tmp_path)
    (stage,) = config["stages"]
    assert stage["predictions"]["null_values"] == ["N/A", "NA"]
    assert (stage["predictions"]["where"], stage["invalid_scores"]) == ("label IS NOT NULL", "drop")
    (done,) = run_config(config, tmp_path).stages
    assert done.n_rows == 4


def test_groups_are_proposed_by_their_names_and_only_where_values_repeat(tmp_path: Path) -> None:
    names = ("", "q0", "iteration", "note", "source", "model", "title")
    columns = {name: ["a", "b", "a", "b"] for name in names} | {"key": ["1", "2", "3", "4"]}
    rows = pl.DataFrame({"score": [0.1, 0.2, 0.3, 0.4], "label": [0, 1, 0, 1], **columns})
    rows.write_parquet(tmp_path / "rows.parquet")
    text, _ = proposal("threshold_sweep", ["rows.parquet"], tmp_path)
    (first, second) = (line.strip("# ") for line in text.splitlines() if "by = [" in line)
    assert first.startswith('by = ["model"] gives the total and results for each value of "model", by = [["model"]]')
    assert second == 'by = [[], ["model"], ["source"]] gives the total and each of the two'


def test_files_are_told_apart_by_their_columns_and_their_names(tmp_path: Path) -> None:
    mentions = pl.DataFrame({"docno": ["1", "1"], "begin": [0, 5], "stop": [3, 7], "mood": ["x", "x"]})
    for name in ("my_gold", "predicted_by_us"):
        mentions.write_parquet(tmp_path / f"{name}.parquet")
    mentions.select("docno").write_parquet(tmp_path / "all.parquet")
    paths = ["all.parquet", "my_gold.parquet", "predicted_by_us.parquet"]
    text, config = proposal("entity_recognition", paths, tmp_path)
    (stage,) = config["stages"]
    assert stage["gold"]["path"] == "my_gold.parquet"
    assert stage["predicted"]["path"] == "predicted_by_us.parquet"
    assert stage["documents"] == {"path": "all.parquet", "columns": {"doc_id": "docno"}}
    assert 'in no role: "mood"' in text
    assert 'by = ["mood"] gives the total and results for each value of "mood", by = [["mood"]] these alone' in text


def test_a_column_that_changes_every_number_is_pointed_out(tmp_path: Path) -> None:
    pl.DataFrame({"score": [0.5], "label": [True], "weight": [2.0]}).write_parquet(tmp_path / "a.parquet")
    text, config = proposal("threshold_sweep", ["a.parquet"], tmp_path)
    assert config["stages"][0]["predictions"]["columns"] == {"weight": "weight"}
    assert "CHANGES EVERY NUMBER" in text


def test_what_nobody_can_guess_is_left_open(tmp_path: Path) -> None:
    pl.DataFrame({"series_id": ["a"], "position": [3], "score": [0.5]}).write_parquet(tmp_path / "found.parquet")
    text, config = proposal("change_points", ["predictions=found.parquet"], tmp_path)
    assert config["stages"][0]["margin"] == 5
    assert "# GUESSED: a detected point this near" in text
    assert "# annotations is required and no file fits it" in text


@pytest.mark.parametrize(
    ("positions", "margin"),
    [
        ([3, 90], 5),
        ([0.5, 200.25], 2.0),
        ([dt.date(2026, 1, 1), dt.date(2026, 2, 1)], "1d"),
        ([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)], "1h"),
    ],
)
def test_change_points_run_as_proposed(positions: list[Any], margin: object, tmp_path: Path) -> None:
    pl.DataFrame({"series": ["a", "a"], "cp": positions}).write_parquet(tmp_path / "points.parquet")
    _, config = proposal("change_points", ["points.parquet", "points.parquet"], tmp_path)
    assert config["stages"][0]["margin"] == margin
    curve = read_table(run_config(config, tmp_path), "change_points_curve", "change_points")
    assert curve["precision"].to_list() == [1.0] * curve.height


def test_a_file_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"colour": ["red"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ThresherError, match=r"a\.parquet fit no input of ranking") as caught:
        proposal("ranking", ["a.parquet"], tmp_path)
    assert "Its columns are: colour" in str(caught.value)


def test_the_command_prints_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"p": [0.5, 0.75], "y": [True, False]}).write_parquet(tmp_path / "a.parquet")
    called = call("init", "threshold_sweep", "--from", "a.parquet")
    assert called.code == 0
    assert tomllib.loads(called.out)["stages"][0]["predictions"]["columns"] == {"score": "p", "label": "y"}
    assert call("init", "threshold_sweep", "--from", "b.parquet").code == 66


WRITTEN: dict[str, tuple[str, dict[str, str]]] = {
    "comma.csv": ("p,y,n\n0.5,1,a;b;c\n0.25,0,x\n", {}),
    "semicolon.csv": ("p;y;n\n0,5;1;a\n-0,25;0;b\n1;1;\n", {"delimiter": ";", "decimal": ","}),
    "points.csv": ("p;y;n\n0.5;1;1,5\n0.25;0;b\n", {"delimiter": ";"}),
    "tabs.csv": ("p\ty\n0.5\t1\n0.25\t0\n", {"delimiter": "\t"}),
    "tabs.tsv": ("p\ty\n0.5\t1\n0.25\t0\n", {}),
    "bars.txt": ("p|y\n0.5|1\n0.25|0\n", {"format": "csv", "delimiter": "|"}),
    "lines.log": ('{"p": 0.5, "y": true}\n{"p": 0.25, "y": false}\n', {"format": "jsonl"}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_how_a_file_is_written_is_proposed(name: str, tmp_path: Path) -> None:
    text, keys = WRITTEN[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    proposed, config = proposal("threshold_sweep", [name], tmp_path)
    predictions = config["stages"][0]["predictions"]
    assert predictions == {"path": name, **keys, "columns": {"score": "p", "label": "y"}}
    assert ("as its first lines are written" in proposed) == bool(keys)
    assert "# scores lie from" in proposed
    (tmp_path / "config.toml").write_text(proposed, encoding="utf-8")
    checked = call("check", tmp_path / "config.toml")
    assert checked.code == 0, checked.err


def test_a_compressed_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(WRITTEN["semicolon.csv"][0].encode()))
    _, config = proposal("threshold_sweep", ["a.csv.gz"], tmp_path)
    assert config["stages"][0]["predictions"]["delimiter"] == ";"


def test_a_delimiter_and_a_format_can_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.csv").write_text("p~y\n0.5~1\n0.25~0\n")
    called = call("init", "threshold_sweep", "--from", "rows", "--format", "csv", "--delimiter", "~")
    predictions = tomllib.loads(called.out)["stages"][0]["predictions"]
    assert predictions == {"path": "rows", "format": "csv", "delimiter": "~", "columns": {"score": "p", "label": "y"}}
    (tmp_path / "my.toml").write_text(called.out)
    assert call("check", "my.toml").code == 0
    (tmp_path / "b.csv").write_text("p\ty\n0.5\t1\n")
    tab = call("init", "threshold_sweep", "--from", "b.csv", "--delimiter", "tab")
    assert tomllib.loads(tab.out)["stages"][0]["predictions"]["delimiter"] == "\t"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "a.csv", "--delimiter", ";;"), "--delimiter ';;' is not one character"),
        (("--from", "a.csv", "--format", "cvs"), "--format cvs: there is no such format"),
        (("--delimiter", ";"), "no file was named"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], message: str) -> None:
    called = call("init", "threshold_sweep", *words)
    assert called.code == 2
    assert message in called.err


PLACES = pl.DataFrame({"doc_id": ["d", "d"], "start": [0, 5], "end": [3, 9], "text": ["Ede", "Oslo"]})


@pytest.mark.parametrize(
    ("columns", "rule"), [(["doc_id", "start", "end"], "span"), (["doc_id", "text"], "text"), (["doc_id"], None)]
)
def test_places_without_mention_ids_are_aligned_by_what_is_there(
    columns: list[str], rule: str | None, tmp_path: Path
) -> None:
    gold = PLACES.select(columns).with_columns(lat=pl.Series([52.0, 60.0]), lon=pl.Series([5.7, 10.7]))
    gold.with_columns(mention_id=pl.Series([1, 2])).write_parquet(tmp_path / "gold.parquet")
    gold.write_parquet(tmp_path / "predicted.parquet")
    text, config = proposal("geocoding", ["gold.parquet", "predicted.parquet"], tmp_path)
    assert config["stages"][0].get("match") == rule
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    assert call("check", tmp_path / "config.toml").code == (0 if rule else 65)


def test_mention_ids_align_places_where_both_have_them(tmp_path: Path) -> None:
    for name in ("gold", "predicted"):
        rows = PLACES.with_columns(id=pl.Series([1, 2]), lat=pl.Series([52.0, 60.0]), lon=pl.Series([5.7, 10.7]))
        rows.write_parquet(tmp_path / f"{name}.parquet")
    _, config = proposal("geocoding", ["gold.parquet", "predicted.parquet"], tmp_path)
    assert "match" not in config["stages"][0]
    assert config["stages"][0]["gold"]["columns"]["mention_id"] == "id"


@pytest.mark.parametrize(
    ("scores", "thresholds"),
    [
        ([0.3, 0.7], {"start": 0.3, "stop": 0.7, "count": 101}),
        ([-1e308, 1e308], None),
        ([0.0, 2e-320], {"start": 0.0, "stop": 2e-320, "count": 101}),
        ([0.5, 0.5], None),
        ([float("nan"), None], None),
    ],
)
def test_thresholds_are_proposed_where_scores_have_a_range(
    scores: list[float | None], thresholds: dict[str, float] | None, tmp_path: Path
) -> None:
    pl.DataFrame({"event_id": ["a", "b"], "article_id": ["c", "d"], "score": scores}).write_parquet(
        tmp_path / "a.parquet"
    )
    text, config = proposal("before_after", ["a.parquet"], tmp_path)
    assert config["stages"][0].get("thresholds") == thresholds
    assert ("#thresholds = …" in text) == (thresholds is None)


def test_names_with_control_characters_are_written_as_toml_can_hold_them(tmp_path: Path) -> None:
    name = "a\nb\x7f'\".parquet"
    pl.DataFrame({"score\x7f": [0.5], "label": [True], "\n": [1]}).write_parquet(tmp_path / name)
    _, config = proposal("threshold_sweep", [name], tmp_path)
    assert config["stages"][0]["predictions"] == {"path": name, "columns": {"score": "score\x7f"}}


SPACY = """{"id": 1, "text": "Rome and Oslo", "ents": [{"start": 0, "end": 4, "label": "LOC"}]}
{"id": 2, "text": "no place", "ents": []}
"""
DOCCANO = """{"id": 1, "text": "Rome and Oslo", "label": [[0, 4, "LOC"], [9, 13, "LOC"]], "Comments": []}
{"id": 2, "text": "no place", "label": [], "Comments": []}
"""
WITH_TEXTS = """{"doc_id": 1, "id": "x", "ents": [{"id": "m", "start": 0, "end": 4, "label": "LOC", "text": "Rome"}]}
"""
NESTED = [
    (SPACY, "ents", {"doc_id": "id", "type": "label", "text": False}),
    (DOCCANO, "label", {"doc_id": "id", "start": "label.1", "end": "label.2", "type": "label.3", "text": False}),
    (WITH_TEXTS, "ents", {"type": "label"}),
]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("text", "column", "columns", "ending"),
    [(*each, "jsonl") for each in NESTED] + [(*each, "parquet") for each in NESTED if each[0] != DOCCANO],
)
def test_mentions_in_lists_run_as_proposed(
    tmp_path: Path, text: str, column: str, columns: dict[str, Any], ending: str
) -> None:
    for name in ("gold", "predicted"):
        (tmp_path / f"{name}.jsonl").write_text(text)
        pl.read_ndjson(tmp_path / f"{name}.jsonl").write_parquet(tmp_path / f"{name}.parquet")
    written, config = proposal("entity_recognition", [f"gold.{ending}", f"predicted.{ending}"], tmp_path)
    assert f'each element of "{column}" is a row' in written
    (stage,) = config["stages"]
    for name in ("gold", "predicted"):
        assert stage[name] == {"path": f"{name}.{ending}", "unnest": column, "columns": columns}
    run = run_config(config, tmp_path)
    scores = read_table(run, "entity_recognition_scores", "entity_recognition")
    assert scores.select("tp", "fp", "fn").row(-1) == (text.count('"LOC"'), 0, 0)


TEXT = "Ann met Bob in Rome."
MENTIONED = [("PER", 0, 3), ("PER", 8, 11), ("LOC", 15, 19)]


def spacy_line(_number: int) -> Any:  # noqa: ANN401 - what JSON can hold
    return {"text": TEXT, "ents": [{"start": start, "end": end, "label": label} for label, start, end in MENTIONED]}


def label_studio_result() -> list[Any]:
    values = [
        {"start": start, "end": end, "text": TEXT[start:end], "labels": [label]} for label, start, end in MENTIONED
    ]
    return [{"id": f"r{n}", "from_name": "label", "type": "labels", "value": value} for n, value in enumerate(values)]


def label_studio_line(number: int) -> Any:  # noqa: ANN401 - what JSON can hold
    annotation = {"id": 10 * number, "completed_by": 1, "result": label_studio_result()}
    return {"id": number, "data": {"text": TEXT}, "annotations": [annotation], "predictions": []}


def label_studio_min(number: int) -> Any:  # noqa: ANN401 - what JSON can hold
    return {"id": number, "text": TEXT, "label": [each["value"] for each in label_studio_result()], "annotator": 1}


@pytest.mark.parametrize("line", [spacy_line, label_studio_line, label_studio_min])
def test_exports_of_other_tools_run_as_proposed(tmp_path: Path, line: Callable[[int], Any]) -> None:
    for name in ("gold", "predicted"):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(line(number))}\n" for number in range(4)))
    _, config = proposal("entity_recognition", ["gold.jsonl", "predicted.jsonl"], tmp_path)
    run = run_config(config, tmp_path)
    scores = read_table(run, "entity_recognition_scores", "entity_recognition")
    assert scores.filter(pl.col("average") == "micro").select("tp", "fp", "fn").row(0) == (12, 0, 0)
    types = {"type": "label"} if line is spacy_line else {"type": "labels"}
    assert config["stages"][0]["gold"]["columns"].items() >= types.items()


def test_rows_of_several_files_are_no_documents(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(spacy_line(0)))
    spec = {"path": ["a.jsonl", "b.jsonl"], "unnest": "ents", "columns": {"doc_id": "ents.row", "type": "label"}}
    stage = {"kind": "entity_recognition", "gold": spec, "predicted": spec}
    with pytest.raises(ThresherError, match=r"'ents\.row' numbers the rows of a file, and there are 2 files"):
        run_config({"stages": [stage]}, tmp_path)


def test_arrays_are_told_with_a_command_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("gold", "predicted"):
        Path(f"{name}_all.json").write_text(json.dumps([spacy_line(0)] * 2))
        said = call("init", "entity_recognition", "--from", f"{name}={name}_all.json").err
        assert "it is an array in JSON" in said
        follow(said.partition("as JSON lines: ")[2].splitlines()[0].removesuffix("  [exit 65]"))
    _, config = proposal("entity_recognition", ["gold_all.jsonl", "predicted_all.jsonl"], tmp_path)
    scores = read_table(run_config(config, tmp_path), "entity_recognition_scores", "entity_recognition")
    assert scores["tp"][-1] == 6


@pytest.mark.parametrize("with_tokens", [True, False])
def test_gold_and_predicted_tags_of_one_file_are_proposed(tmp_path: Path, with_tokens: bool) -> None:  # noqa: FBT001
    tokens = {"tokens": [["Ann", "met", "Bob"]] * 3} if with_tokens else {}
    tags = {"references": [["B-PER", "O", "B-PER"]] * 3, "predictions": [["B-PER", "O", "O"]] * 3}
    pl.DataFrame(tokens | tags | {"authors": [["A. Person"]] * 3}).write_parquet(tmp_path / "tagged.parquet")
    text, config = proposal("entity_recognition", ["tagged.parquet"], tmp_path)
    assert config["stages"][0]["gold"] == {"path": "tagged.parquet", "tags": "references"}
    assert config["stages"][0]["predicted"] == {"path": "tagged.parquet", "tags": "predictions"}
    assert 'the tags in "references" make its mentions' in text
    scores = read_table(run_config(config, tmp_path), "entity_recognition_scores", "entity_recognition")
    assert scores.filter(average="micro").select("tp", "fp", "fn").row(0) == (3, 0, 3)


def test_classes_that_elements_score_are_compared_with_the_label_beside_the_list(tmp_path: Path) -> None:
    scored = [{"label": each, "score": score} for each, score in (("art", 0.7), ("sport", 0.3))]
    pl.DataFrame({"label": ["art", "sport", "art"], "predicted": [scored] * 3}).write_parquet(tmp_path / "p.parquet")
    _, config = proposal("threshold_sweep", ["p.parquet"], tmp_path)
    assert config["stages"][0]["predictions"]["columns"] == {"label": {"sql": 'label = "predicted.label"'}}
    curve = read_table(run_config(config, tmp_path), "threshold_sweep_curve", "threshold_sweep")
    assert curve.filter(threshold=0.7).select("tp", "fp", "fn").row(0) == (2, 1, 1)


def test_without_a_task_the_one_is_taken_that_the_files_are_enough_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"references": [0, 1], "predictions": [0.2, 0.9]}).write_parquet("scored.parquet")
    assert 'kind = "threshold_sweep"' in call("init", "--from", "scored.parquet").out
    pl.DataFrame({"x": [0, 1]}).write_parquet("other.parquet")
    none = call("init", "--from", "other.parquet")
    assert none.code == 2
    assert "thresher doctor other.parquet says what is missing" in none.err
    pl.DataFrame({"query_id": [1], "doc_id": [2], "score": [0.5], "label": [1]}).write_parquet("both.parquet")
    several = call("init", "--from", "both.parquet")
    if several.code:
        assert "thresher init threshold_sweep --from both.parquet" in several.err


def follow(line: str) -> None:
    """Run a line of a shell with our Python."""
    subprocess.run(line.replace("python", sys.executable, 1), shell=True, check=True)  # noqa: S602 - our own words


def test_of_a_database_the_table_that_fits_best_is_proposed(tmp_path: Path) -> None:
    with closing(duckdb.connect(tmp_path / "all.duckdb")) as connection:
        connection.execute("CREATE TABLE notes AS SELECT 'x' AS note")
        connection.execute("CREATE TABLE scored AS SELECT range / 10 AS score, range % 2 = 0 AS label FROM range(10)")
    _, config = proposal("threshold_sweep", ["all.duckdb"], tmp_path)
    assert config["stages"][0]["predictions"] == {"path": "all.duckdb", "format": "duckdb", "table": "scored"}
    run_config(config, tmp_path)


def test_elements_are_proposed_for_every_stage_and_only_where_they_fit_better(tmp_path: Path) -> None:
    rows = [{"series": "a", "n": 9, "marks": [3, 5]}, {"series": "b", "n": 9, "marks": []}]
    pl.DataFrame(rows).write_ndjson(tmp_path / "annotations.jsonl")
    scored = [{"series": "a", "points": [{"index": 3, "p": 0.5}]}, {"series": "b", "points": []}]
    pl.DataFrame(scored).write_ndjson(tmp_path / "predictions.jsonl")
    _, config = proposal("change_points", ["predictions.jsonl"], tmp_path)
    columns = {"series_id": "series", "position": "index", "score": "p"}
    predictions = {"path": "predictions.jsonl", "unnest": "points", "columns": columns}
    assert config["stages"][0]["predictions"] == predictions
    flat = pl.DataFrame({"doc_id": ["a"], "start": [0], "end": [4], "tokens": [["Rome", "Oslo"]], "type": ["LOC"]})
    flat.write_parquet(tmp_path / "flat.parquet")
    _, config = proposal("entity_recognition", ["gold=flat.parquet"], tmp_path)
    assert config["stages"][0]["gold"] == {"path": "flat.parquet"}


def test_files_are_said_to_be_enough_for_tasks_or_what_they_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"id": ["a", "b"], "score": [0.1, 0.9], "label": [0, 1]}).write_csv("scored.csv")
    pl.DataFrame({"series": ["a"], "cp": [3]}).write_parquet("points.parquet")
    said = call("doctor", "scored.csv").out
    assert 'scored.csv: 2 rows\n  columns: "id" text, "score" text, "label" text\n' in said
    assert (
        "threshold_sweep: predictions = scored.csv\n    thresher init threshold_sweep --from predictions=scored.csv"
        in said
    )
    config = call("init", "threshold_sweep", "--from", "predictions=scored.csv")  # as it says
    (tmp_path / "my.toml").write_text(config.out)
    assert call("run", "my.toml", "--quiet").code == 0
    said = call("doctor", "points.parquet").out
    assert "They are enough for no task." in said
    assert "change_points: predictions = points.parquet\n    annotations is missing: one row per true change" in said
    pl.DataFrame({"id": ["a"], "score": [0.1]}).write_csv("scored.csv")
    assert "predictions = scored.csv lacks label: whether it is true" in call("doctor", "scored.csv").out
    assert call("doctor", "nothing.csv").code == 66


ENDINGS = ["csv", "jsonl", "parquet"]
ROWS_OF_CLASSES = {
    # the score of one class: 'spam' scores higher
    "one class": (["spam", "ham", "ham", "spam"], None, [0.9, 0.2, 0.4, 0.3], "label = 'spam'", 2),
    "quoted": (["it's", "not", "not", "it's"], None, [0.9, 0.2, 0.4, 0.3], "label = 'it''s'", 2),
    # confidence in what is predicted, never below a half: whether that is right
    "confidence": (
        ["spam", "ham", "ham", "spam"],
        ["spam", "ham", "spam", "spam"],
        [0.9, 0.8, 0.6, 0.7],
        "label = predicted",
        3,
    ),
    "confidence down to a half": (
        ["a", "b", "b", "a"],
        ["a", "b", "a", "a"],
        [0.9, 0.8, 0.5, 0.7],
        "label = predicted",
        3,
    ),
    "score beside": (
        ["spam", "ham", "ham", "spam"],
        ["spam", "ham", "ham", "ham"],
        [0.9, 0.2, 0.4, 0.3],
        "label = 'spam'",
        2,
    ),
    "three classes": (["a", "b", "c", "c"], ["a", "c", "c", "b"], [0.9, 0.2, 0.4, 0.3], "label = predicted", 2),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("case", ROWS_OF_CLASSES)
def test_labels_that_name_classes_are_compared(case: str, ending: str, tmp_path: Path) -> None:
    labels, predicted, scores, condition, n_true = ROWS_OF_CLASSES[case]
    rows = pl.DataFrame({"label": labels, "score": scores} | ({} if predicted is None else {"predicted": predicted}))
    rows = pl.concat([rows] * 10)
    path = tmp_path / f"rows.{ending}"
    getattr(rows, {"jsonl": "write_ndjson"}.get(ending, f"write_{ending}"))(path)
    text, config = proposal("threshold_sweep", [path.name], tmp_path)
    assert config["stages"][0]["predictions"]["columns"] == {"label": {"sql": condition}}
    assert "#   GUESSED: what is true is " in text
    if list(ROWS_OF_CLASSES).index(case) % len(ENDINGS) == ENDINGS.index(ending):  # each case runs from one form
        areas = read_table(run_config(config, tmp_path), "threshold_sweep_areas", "threshold_sweep")
        assert areas["n_positive"].item() == 10 * n_true


def test_classes_without_a_prediction_are_not_guessed(tmp_path: Path) -> None:
    rows = pl.DataFrame({"label": ["a", "b", "c"] * 9, "score": [0.1, 0.2, 0.3] * 9})
    rows.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ThresherError, match="fit no input of threshold_sweep"):
        proposal("threshold_sweep", ["rows.parquet"], tmp_path)


def test_files_may_stand_without_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"label": [0, 1] * 9, "score": [0.1, 0.2] * 9}).write_parquet("rows.parquet")
    pl.DataFrame({"label": [0, 1] * 9, "score": [0.1, 0.2] * 9}).write_parquet("ranking")
    proposals = [
        call("init", *words).out
        for words in (
            ("rows.parquet",),
            ("threshold_sweep", "rows.parquet"),
            ("threshold-sweep", "predictions=rows.parquet"),
            ("--from", "rows.parquet"),
        )
    ]
    assert {tomllib.loads(each)["stages"][0]["kind"] for each in proposals} == {"threshold_sweep"}
    assert "Proposed" not in call("init", "ranking").out  # the task comes first
    assert "no stage is called 'rows', and no file" in call("init", "rows").err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_whose_names_tell_nothing_are_taken_for_what_they_hold(ending: str, tmp_path: Path) -> None:
    rows = pl.DataFrame({"Wert": [0.1, 0.7, 0.4, 0.9] * 5, "richtig": [0, 1, 0, 1] * 5, "Nummer": range(20)})
    getattr(rows, f"write_{ending}")(tmp_path / f"rows.{ending}")
    text, config = proposal("threshold_sweep", [f"rows.{ending}"], tmp_path)
    assert config["stages"][0]["predictions"]["columns"] == {"score": "Wert", "label": "richtig"}
    assert text.count("GUESSED from its values") == 2
    run_config(config, tmp_path)


@pytest.mark.parametrize("task", [[], ["threshold_sweep"]])
def test_a_table_without_labels_is_one_to_draw_a_sample_of(
    task: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"pair_id": range(400), "score": [number / 400 for number in range(400)], "text": "abc"})
    rows.write_parquet("rows.parquet")
    proposed = call("init", *task, "rows.parquet")
    assert proposed.code == 0, proposed.err
    Path("my.toml").write_text(proposed.out)
    stage = tomllib.loads(proposed.out)["stages"][0]
    assert (stage["labels"], stage["predictions"]["columns"]) == ("sheet.csv", {"id": "pair_id"})
    said = call("doctor", "rows.parquet").out
    assert "threshold_sweep, once a sample is labelled: predictions = rows.parquet" in said
    assert call("sample", "my.toml", "--size", "60", "--to", "sheet.csv").code == 0
    pl.read_csv("sheet.csv").with_columns(label=pl.col("score") > 0.5).write_csv("sheet.csv")
    done = call("run", "my.toml")
    assert done.code == 0, done.err
    both = call("init", "threshold_sweep", "--from", "predictions=rows.parquet", "--from", "labels=sheet.csv").out
    Path("my.toml").write_text(both)
    assert tomllib.loads(both)["stages"][0]["labels"]["path"] == "sheet.csv"
    again = call("run", "my.toml")
    assert again.code == 0, again.err


def test_a_label_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    rows = pl.DataFrame({"id": range(27), "label": ["a", "b", "c"] * 9, "score": [0.1, 0.2, 0.3] * 9})
    rows.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ThresherError, match="fit no input of threshold_sweep"):
        proposal("threshold_sweep", ["rows.parquet"], tmp_path)


def test_text_with_few_numbers_is_no_score(tmp_path: Path) -> None:
    rows = pl.DataFrame({"wert": ["0.5", "low", "0.75", "high"] * 5, "wahr": [0, 1, 0, 1] * 5})
    rows.write_csv(tmp_path / "rows.csv")
    with pytest.raises(ThresherError, match="fit no input of threshold_sweep"):
        proposal("threshold_sweep", ["rows.csv"], tmp_path)


def test_values_that_fit_twice_are_not_guessed(tmp_path: Path) -> None:
    rows = pl.DataFrame({"a": [0.1, 0.7] * 5, "b": [0, 1] * 5, "c": [True, False] * 5})
    rows.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ThresherError, match="fit no input of threshold_sweep"):
        proposal("threshold_sweep", ["rows.parquet"], tmp_path)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("predicted", "gold"), [("eng.pred", "eng.testa"), ("system_output.txt", "reference.txt"), ("hyp.bio", "truth.bio")]
)
def test_names_of_files_tell_gold_from_predicted(predicted: str, gold: str, order: int, tmp_path: Path) -> None:
    for name in (predicted, gold):
        (tmp_path / name).write_text("Ann B-PER\nsaw O\n\nBob B-PER\n")
    _, config = proposal("entity_recognition", [predicted, gold][::order], tmp_path)
    assert {name: config["stages"][0][name]["path"] for name in ("predicted", "gold")} == {
        "predicted": predicted,
        "gold": gold,
    }


def test_rows_that_repeat_are_told_apart_by_their_system(tmp_path: Path) -> None:
    points = pl.DataFrame({"series": ["s", "s", "s", "s"], "position": [5, 9, 5, 9], "algorithm": ["a", "a", "b", "b"]})
    points.write_csv(tmp_path / "predictions.csv")
    points.head(2).drop("algorithm").with_columns(coder=pl.lit("c")).write_csv(tmp_path / "annotations.csv")
    text, config = proposal("change_points", ["predictions.csv", "annotations.csv"], tmp_path)
    assert config["stages"][0]["by"] == [["algorithm"]]
    assert '# rows repeat "series" and "position" unless "algorithm" tells them apart' in text
    run_config(config, tmp_path)
    points.head(2).write_csv(tmp_path / "predictions.csv")
    assert "by" not in proposal("change_points", ["predictions.csv", "annotations.csv"], tmp_path)[1]["stages"][0]
