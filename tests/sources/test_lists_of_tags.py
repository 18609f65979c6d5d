"""Lists of tags, one row for each sentence, as data sets of Hugging Face and seqeval have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from pipeline.base.errors import ConfigError, DataError
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input

if TYPE_CHECKING:
    from pathlib import Path

TAGS = st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "L-A", "U-A", "B-B", "I-B"])
SENTENCES = st.lists(st.lists(st.tuples(st.sampled_from(["a", "bb", "ü", "c d"]), TAGS), min_size=1), min_size=1)
CLASSES = ["O", "B-PER", "I-PER"]
TOKENS = [["Ann", "Lee", "met"], ["Bob"]]


def mentions(folder: Path, **keys: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    (file,) = Listing(Input.model_validate(keys), folder, name="gold").opened().files
    return pl.read_parquet(file.path).select("doc_id", "start", "end", "text", "type").rows()  # type: ignore[union-attr]


def scores(**inputs: Any) -> tuple[int, ...]:  # noqa: ANN401
    result = thresher.entity_recognition(**inputs, averages=["micro"], uncertainty="none")
    counts: tuple[int, ...] = result.scores.select("tp", "fp", "fn").row(0)
    return counts


@given(SENTENCES)
@settings(deadline=None)
def test_they_make_the_mentions_of_the_same_tokens_in_a_conll_file(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[tuple[str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    lines = ["\n".join(f"{token}\t{tag}" for token, tag in sentence) for sentence in sentences]
    (folder / "a.conll").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    columns = {
        "doc_id": ["0"] * len(sentences),
        "words": [[token for token, _ in sentence] for sentence in sentences],
        "gold_tags": [[tag for _, tag in sentence] for sentence in sentences],
    }
    frame = pl.DataFrame(columns)
    frame.write_parquet(folder / "a.parquet")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_ipc(folder / "a.arrow")
    expected = mentions(folder, path="a.conll", tags=2)
    for name in ("a.parquet", "a.jsonl", "a.arrow"):
        assert mentions(folder, path=name, tags="gold_tags") == expected


def classed(features: object) -> pa.Table:
    """A table as `Dataset.to_parquet` writes it, tags being numbers of classes."""
    table = pa.table({"tokens": TOKENS, "ner_tags": [[1, 2, 0], [1]], "predicted": [[1, 0, 0], [1]]})
    names = dict.fromkeys(("ner_tags", "predicted"), features)
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": names}})})


@pytest.mark.parametrize(
    "features",
    [
        {"feature": {"names": CLASSES, "_type": "ClassLabel"}, "_type": "Sequence"},
        {"feature": {"names": CLASSES, "_type": "ClassLabel"}, "_type": "List"},
        [{"names": CLASSES, "_type": "ClassLabel"}],
    ],
)
def test_numbers_are_the_classes_that_a_data_set_names(tmp_path: Path, features: object) -> None:
    pq.write_table(classed(features), tmp_path / "a.parquet")
    rows = {"path": str(tmp_path / "a.parquet")}
    gold, predicted = rows | {"tags": "ner_tags"}, rows | {"tags": "predicted"}
    assert scores(gold=gold, predicted=predicted) == (1, 1, 1)  # Bob; Ann, where Ann Lee is right


def test_frames_without_tokens_have_mentions_without_text() -> None:
    frame = pl.DataFrame({"references": [["B-A", "I-A", "O"], ["B-B"]], "predictions": [["B-A", "I-A", "B-B"], ["O"]]})
    gold, predicted = ({"path": frame, "tags": name} for name in ("references", "predictions"))
    assert scores(gold=gold, predicted=predicted, match="span") == (1, 1, 1)


def test_other_tokens_stop_the_run_and_prefixes_can_be_compared(tmp_path: Path) -> None:
    gold = pl.DataFrame({"id": ["x"], "tokens": [["Ann", "met", "Bob"]], "tags": [["B-P", "O", "B-P"]]})
    cut = pl.DataFrame({"id": ["x"], "tokens": [["Ann", "met"]], "tags": [["B-P", "O"]]})
    for name, frame in (("gold", gold), ("cut", cut)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    inputs: dict[str, Any] = {
        key: {"path": str(tmp_path / f"{name}.parquet"), "tags": "tags"}
        for key, name in (("gold", "gold"), ("predicted", "cut"))
    }
    with pytest.raises(DataError, match="document 'x', sentence 1, token 3: gold has 'Bob'"):
        scores(**inputs)
    result = thresher.entity_recognition(**inputs, align="prefix", averages=["micro"], uncertainty="none")
    assert result.scores.select("tp", "fp", "fn").row(0) == (1, 0, 0)
    assert "1 of 1 sentences" in " ".join(result.warnings)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"tokens": TOKENS, "tags": [["O", "O"], ["O"]]},
            "1 row of .* with another number of tags than of tokens .*row 1",
        ),
        ({"tokens": TOKENS, "tags": [["O", "O", "X"], ["O"]]}, r"a value that is no tag \(first: row 1, 'X'\)"),
        ({"tokens": TOKENS, "tags": [[0, 1, 2], [0]]}, "4 values that are no tags .*'0'"),
        ({"tokens": [["", "a", "b"], ["c"]], "tags": [["O"] * 3, ["O"]]}, "a token without a character"),
        ({"tokens": TOKENS, "tags": ["O", "O"]}, "no column of lists 'tags'"),
        ({"tokens": TOKENS, "other": [["O"] * 3, ["O"]]}, "no column of lists 'tags'"),
        ({"doc_id": ["a", None], "tags": [["O"], ["O"]]}, "1 row of .* without a document .*row 2"),
    ],
)
def test_what_is_no_list_of_tags_is_told(columns: dict[str, Any], message: str) -> None:
    frame = pl.DataFrame(columns)
    with pytest.raises(DataError, match=message):
        scores(gold={"path": frame, "tags": "tags"}, predicted={"path": frame, "tags": "tags"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"path": "a.csv", "tags": "t"}, "tags has no effect on csv: it names a column of lists"),
        ({"path": "a.parquet", "tags": 2}, "tags has no effect on parquet: it names the column of CoNLL files"),
        ({"path": "a.parquet", "tags": "t", "unnest": "u"}, "tags and unnest are two ways to read lists"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scores(gold=keys, predicted=keys)


def test_rows_that_only_their_order_tells_apart_are_said_to_be() -> None:
    frame = pl.DataFrame({"gold": [["B-A", "O"], ["O"]], "predicted": [["B-A", "O"], ["O"]]})
    gold, predicted = ({"path": frame, "tags": name} for name in ("gold", "predicted"))
    result = thresher.entity_recognition(gold=gold, predicted=predicted)
    assert "taken for the same by their order" in " ".join((*result.warnings, *result.notes))
    named = frame.with_columns(doc_id=pl.Series(["a", "b"]))
    gold, predicted = ({"path": named, "tags": name} for name in ("gold", "predicted"))
    result = thresher.entity_recognition(gold=gold, predicted=predicted)
    assert "order" not in " ".join((*result.warnings, *result.notes))


@pytest.mark.parametrize("align", ["exact", "prefix"])
def test_the_document_may_be_mapped(align: str) -> None:
    gold = pl.DataFrame({"key": ["b", "a"], "tokens": [["x", "y"], ["z"]], "tags": [["B-P", "O"], ["B-P"]]})
    predicted = gold.reverse()
    if align == "prefix":
        predicted = pl.DataFrame({"key": ["a", "b"], "tokens": [["z"], ["x"]], "tags": [["B-P"], ["B-P"]]})
    inputs: dict[str, Any] = {
        name: {"path": frame, "tags": "tags", "columns": {"doc_id": "key"}}
        for name, frame in (("gold", gold), ("predicted", predicted))
    }
    assert scores(**inputs, align=align) == (2, 0, 0)
