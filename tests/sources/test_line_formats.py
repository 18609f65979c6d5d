"""TREC, CoNLL and brat files as inputs, against references written token by token, and against recorded numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from pipeline.errors import DataError
from pipeline.sources.line_formats import QRELS, RUN, brat, conll, trec

if TYPE_CHECKING:
    from pathlib import Path

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-ORG
rejects VBZ O
German JJ B-MISC
"call NN O

Peter NNP B-PER
Blackburn NNP I-PER

-DOCSTART- -X- -X- O

New NN I-LOC
York NN I-LOC
Paris NN B-LOC
Oslo S-LOC
"""


def test_lines_of_a_run_and_of_judgements(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.9 bm25\n\nq1\tQ0 d2  2 0.8 bm25\n")
    run = trec(tmp_path / "a.run", RUN, name="ranking").collect()
    assert run.select("query_id", "doc_id", "score", "system").rows() == [
        ("q1", "d1", "0.9", "bm25"),
        ("q1", "d2", "0.8", "bm25"),
    ]
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\n")
    assert trec(tmp_path / "a.qrels", QRELS, name="relevance").collect().row(0) == ("q1", "0", "d1", "1")


def test_a_line_with_another_number_of_values_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.9 bm25\nq1 Q0 d2 2 0.8\n")
    with pytest.raises(DataError, match=r"a\.run has lines without 6 values: 1 \(first: line 2, 'q1 Q0 d2 2 0\.8'\)"):
        trec(tmp_path / "a.run", RUN, name="ranking")


def test_trec_files_are_inputs_of_ranking(tmp_path: Path) -> None:
    (tmp_path / "bm25.run").write_text("q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 2.5 bm25\nq1 Q0 d3 3 1.5 bm25\n")
    (tmp_path / "judged.qrels").write_text("q1 0 d1 0\nq1 0 d2 1\nq1 0 d3 1\n")
    result = thresher.ranking(ranking=tmp_path / "bm25.run", relevance=tmp_path / "judged.qrels", by=[["system"]])
    assert result.queries.select("system", "average_precision").row(0) == ("bm25", pytest.approx((1 / 2 + 2 / 3) / 2))


def test_a_score_that_is_no_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 high bm25\n")
    with pytest.raises(DataError, match="column 'score' is not a number in 1 row of"):
        thresher.ranking(ranking=tmp_path / "a.run", relevance=pl.DataFrame())


def test_tagged_tokens_are_mentions(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(CONLL)
    assert conll(tmp_path / "a.conll", alone=True, name="gold").collect().rows() == [
        ("1", 0, 2, "EU", "ORG"),
        ("1", 11, 17, "German", "MISC"),
        ("1", 24, 39, "Peter Blackburn", "PER"),
        ("2", 0, 8, "New York", "LOC"),
        ("2", 9, 14, "Paris", "LOC"),
        ("2", 15, 19, "Oslo", "LOC"),
    ]
    assert conll(tmp_path / "a.conll", alone=False, name="gold").collect()["doc_id"][0] == "a:1"


def spans(tags: list[str]) -> list[tuple[int, int, str]]:
    """The mentions of one sentence of one-letter tokens, one token after the other, as conlleval counts them."""
    mentions: list[tuple[int, int, str]] = []
    begun: tuple[int, str] | None = None
    before = "O"
    for number, tag in enumerate([*tags, "O"]):
        ends = begun is not None and (tag == "O" or tag[0] in "BSU" or tag[2:] != begun[1] or before[0] in "ESLU")
        if begun is not None and ends:
            mentions.append((2 * begun[0], 2 * number - 1, begun[1]))
            begun = None
        if begun is None and tag != "O":
            begun = number, tag[2:]
        before = tag
    return mentions


TAGS = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in "BIESLU" for kind in ("X", "Y"))])


@given(tags=st.lists(TAGS, min_size=1, max_size=12))
def test_mentions_are_those_of_a_walk_over_the_tokens(
    tags: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "walk.conll"
    path.write_text("".join(f"t {tag}\n" for tag in tags))
    mentions = conll(path, alone=True, name="gold").collect()
    assert mentions.select("start", "end", "type").rows() == spans(tags)


@pytest.mark.parametrize(
    ("between", "rows"),
    [
        ("", [("0", 0, 3, "a b")]),
        ("\n", [("0", 0, 1, "a"), ("0", 2, 3, "b")]),
        ("-DOCSTART- O\n", [("0", 0, 1, "a"), ("1", 0, 1, "b")]),
    ],
    ids=["sentence", "two sentences", "two documents"],
)
def test_a_mention_ends_with_its_sentence_and_document(
    between: str, rows: list[tuple[str, int, int, str]], tmp_path: Path
) -> None:
    (tmp_path / "a.conll").write_text(f"a B-X\n{between}b I-X\n")
    mentions = conll(tmp_path / "a.conll", alone=True, name="gold").collect()
    assert mentions.select("doc_id", "start", "end", "text").rows() == rows


@pytest.mark.parametrize("line", ["word", "word X", "word B-", "word Q-LOC"])
def test_a_line_without_a_tag_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(f"EU B-ORG\n{line}\n")
    with pytest.raises(DataError, match=r"a\.conll has lines that do not end in a tag: 1 \(first: line 2, "):
        conll(tmp_path / "a.conll", alone=True, name="gold")


def test_annotations_of_brat_are_mentions(tmp_path: Path) -> None:
    (tmp_path / "doc7.ann").write_text(
        "T1\tLocation 0 6\tLondon\nR1\tWithin Arg1:T1\nT2\tPerson 8 10\tAl\n#1\tNote T1\tx\n"
    )
    assert brat(tmp_path / "doc7.ann", name="gold").collect().rows() == [
        ("doc7", 0, 6, "London", "Location"),
        ("doc7", 8, 10, "Al", "Person"),
    ]
    (tmp_path / "doc8.ann").write_text("T1\tLocation 0 5;16 23\tNorth America\n")
    with pytest.raises(DataError, match=r"doc8\.ann has annotations without a type and one span: 1 "):
        brat(tmp_path / "doc8.ann", name="gold")


def test_gold_and_predictions_in_their_own_formats_meet(tmp_path: Path) -> None:
    (tmp_path / "gold.conll").write_text(CONLL)
    (tmp_path / "system.conll").write_text(CONLL.replace("German JJ B-MISC", "German JJ O").replace("B-PER", "B-LOC"))
    result = thresher.entity_recognition(
        gold=tmp_path / "gold.conll", predicted=tmp_path / "system.conll", match_type=True, averages=["micro"]
    )
    assert result.scores.select("tp", "fp", "fn").row(0) == (4, 2, 2)
