"""Gold and predictions made of other tokens: refused, or compared as far as their sentences begin alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.api.functions import Result

GOLD = "A B-PER\nB O\n\nC B-PER\nD B-LOC\n"
CUT = GOLD.replace("B O\n", "")
COUNTS = ("tp", "fp", "fn")


def compared(folder: Path, gold: str, predicted: str, **parameters: Any) -> Result:  # noqa: ANN401 - of the stage
    (folder / "gold.conll").write_text(gold)
    (folder / "predicted.conll").write_text(predicted)
    inputs: dict[str, Any] = {"gold": folder / "gold.conll", "predicted": folder / "predicted.conll"}
    return thresher.entity_recognition(**inputs, averages=["micro"], uncertainty="none", **parameters)


def test_other_tokens_are_refused_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        compared(tmp_path, GOLD, CUT)
    assert str(caught.value).startswith(
        "gold and predicted have different tokens in 1 sentence (first: document '0', sentence 1, token 2: "
        "gold has 'B' in "
        f"{tmp_path / 'gold.conll'}, line 2; predicted has none in {tmp_path / 'predicted.conll'})"
    )
    with pytest.raises(DataError, match=r"in 2 sentences \(first: .*token 2: gold has 'D' in .*predicted has 'E' in "):
        compared(tmp_path, GOLD, GOLD.replace("D B-LOC", "E B-LOC\n\nmore O"))


@pytest.mark.wide
def test_what_sentences_begin_with_alike_is_compared(tmp_path: Path) -> None:
    result = compared(tmp_path, GOLD, CUT, align="prefix")
    assert result.scores.select(COUNTS).row(0) == (3, 0, 0)
    assert result.warnings[0].startswith(
        'align="prefix": 1 of 2 sentences are compared only as far as gold and predicted begin alike; of gold, 1 of '
        "4 tokens and 0 of 3 mentions are left out (first: document '0', sentence 1, token 2: gold has 'B' in "
    )
    starts = result.tables["entity_recognition_outcomes"].select("gold_start", "predicted_start")
    assert starts.rows() == [(0, 0), (4, 4), (6, 6)]  # in the text of gold
    assert compared(tmp_path, CUT, GOLD, align="prefix").scores.select(COUNTS).row(0) == (3, 0, 0)
    assert compared(tmp_path, GOLD, GOLD, align="prefix").warnings == compared(tmp_path, GOLD, GOLD).warnings


def test_a_mention_that_is_cut_ends_where_its_sentence_does(tmp_path: Path) -> None:
    gold = "in O\nNew B-LOC\nYork I-LOC\nby O\nAl B-PER\n\nEve B-PER\n"
    predicted = "in O\nNew B-LOC\n\nEve B-PER\n"
    result = compared(tmp_path, gold, predicted, align="prefix")
    assert result.scores.select(COUNTS).row(0) == (2, 0, 0)
    assert "of gold, 3 of 6 tokens and 1 of 3 mentions are left out" in result.warnings[0]


def test_documents_that_one_has_are_judged_where_they_are_listed(tmp_path: Path) -> None:
    mark = "-DOCSTART- O\n"
    gold, predicted = f"{mark}{GOLD}{mark}{GOLD}", f"{mark}{GOLD}"
    lacking = r"document '2', sentence 1, token 1: gold has 'A' in .*; predicted has none\)\n"
    with pytest.raises(DataError, match=lacking):
        compared(tmp_path, gold, predicted)
    assert compared(tmp_path, gold, predicted, align="prefix").scores.select(COUNTS).row(0) == (3, 0, 0)
    documents = pl.DataFrame({"doc_id": ["1", "2"]})
    assert compared(tmp_path, gold, predicted, documents=documents).scores.select(COUNTS).row(0) == (3, 0, 3)


def test_every_system_is_compared_on_the_same_tokens(tmp_path: Path) -> None:
    for name, text in {"gold": GOLD, "system=a": GOLD, "system=b": CUT}.items():
        (tmp_path / name).mkdir()
        for file in ("x", "y"):
            (tmp_path / name / f"{file}.conll").write_text(text.replace("B O", "B B-LOC"))
    inputs: dict[str, Any] = {"gold": f"{tmp_path}/gold/*.conll", "predicted": f"{tmp_path}/system=*/*.conll"}
    rules: dict[str, Any] = {"averages": ["micro"], "uncertainty": "none", "by": [["system"]]}
    with pytest.raises(DataError, match=r"document 'x:0', sentence 1, token 2: gold has 'B'"):
        thresher.entity_recognition(**inputs, **rules)
    result = thresher.entity_recognition(**inputs, **rules, align="prefix")
    assert result.scores.select("system", *COUNTS).rows() == [("a", 6, 0, 0), ("b", 6, 0, 0)]
    assert "2 of 4 sentences" in result.warnings[0]


def test_two_files_of_gold_with_one_document_are_refused(tmp_path: Path) -> None:
    for language in ("en", "nl"):
        (tmp_path / f"language={language}").mkdir()
        (tmp_path / f"language={language}" / "x.conll").write_text(GOLD)
    paths = f"{tmp_path}/*/*.conll"
    with pytest.raises(DataError, match="both have a document 'x:0'\\nDocuments are called after their files"):
        thresher.entity_recognition(gold=paths, predicted=paths)


SENTENCES = st.lists(st.lists(st.sampled_from(["B-X", "S-Y", "O"]), min_size=1, max_size=5), min_size=1, max_size=4)


@pytest.mark.wide
@settings(max_examples=20)
@given(sentences=SENTENCES, lengths=st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_cut_sentences_count_what_is_left_of_them(
    sentences: list[list[str]], lengths: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    cut = [tags[:length] for tags, length in zip(sentences, lengths, strict=False)]
    texts = ["\n\n".join("\n".join(f"t {tag}" for tag in tags) for tags in each) + "\n" for each in (sentences, cut)]
    n_mentions = sum(tag != "O" for tags in cut for tag in tags)
    if not n_mentions:
        return
    result = compared(tmp_path_factory.getbasetemp(), texts[0], texts[1], align="prefix")
    assert result.scores.select(COUNTS).row(0) == (n_mentions, 0, 0)
