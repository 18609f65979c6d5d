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


COMMENTED = """# newdoc id = first
# sent_id = 1
# text = Bonn is # 1 O

1 Bonn B-LOC
2 is O
3 # O
4 1 O
# sent_id = 2, without an empty line before it is a damaged line
"""


def test_comments_are_skipped_and_begin_documents(tmp_path: Path) -> None:
    text = COMMENTED.rpartition("# sent_id")[0] + "\n# newdoc\n# sent_id = 2\n1 # B-MISC\n2 1 I-MISC\n"
    (tmp_path / "a.conll").write_text(text)
    assert conll(tmp_path / "a.conll", alone=True, name="gold").collect().rows() == [
        ("1", 0, 4, "Bonn", "LOC"),
        ("2", 0, 3, "# 1", "MISC"),
    ]
    (tmp_path / "a.conll").write_text(COMMENTED)
    with pytest.raises(DataError, match=r"do not end in a tag: 1 \(first: line 9, '# sent_id = 2, without"):
        conll(tmp_path / "a.conll", alone=True, name="gold")


@pytest.mark.parametrize("first_line", ["# B-MISC", "-DOCSTART- (1 EU)\n# B-MISC"])
def test_a_token_that_is_a_number_sign_is_no_comment(first_line: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(f"{first_line}\n1 I-MISC\nEU B-ORG\n\n# a comment\nOslo B-LOC\n")
    mentions = conll(tmp_path / "a.conll", alone=True, name="gold").collect()
    assert mentions["text"].to_list() == ["# 1", "EU", "Oslo"]


def test_documents_of_conll_2012_begin_with_a_comment(tmp_path: Path) -> None:
    document = "#begin document (bc/cctv); part 000\nbc/cctv Oslo B-LOC\n\n#end document\n"
    (tmp_path / "a.conll").write_text(document + document.replace("Oslo", "Rome"))
    assert conll(tmp_path / "a.conll", alone=True, name="gold").collect()["doc_id"].to_list() == ["1", "2"]


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
        ("doc7", 0, 6, "London", "Location", 1),
        ("doc7", 8, 10, "Al", "Person", 1),
    ]
    (tmp_path / "doc8.ann").write_text("T1\tLocation 0 5;16 23;30\tNorth America\n")
    with pytest.raises(DataError, match=r"doc8\.ann has annotations without a type and a span: 1 "):
        brat(tmp_path / "doc8.ann", name="gold")


def test_annotations_of_several_pieces_are_read_whole_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.ann").write_text("T1\tLocation 0 5;16 23\tNorth America\nT2\tPerson 30 32\tAl\n")
    (tmp_path / "b.ann").write_text("T1\tLocation 4 6;9 11;20 25\tx y z\n")
    columns = ("doc_id", "start", "end", "text", "n_pieces")
    assert brat(tmp_path / "a.ann", name="gold").select(columns).collect().rows() == [
        ("a", 0, 23, "North America", 2),
        ("a", 30, 32, "Al", 1),
    ]
    predicted = pl.DataFrame({"doc_id": ["a", "a", "b"], "start": [0, 30, 4], "end": [23, 32, 25]})
    gold = str(tmp_path / "*.ann")
    result = thresher.entity_recognition(gold=gold, predicted=predicted, averages=["micro"], uncertainty="none")
    assert result.scores.select("tp", "fp", "fn").row(0) == (3, 0, 0)
    (notice,) = [text for text in result.warnings if "pieces" in text]
    assert "input gold: in 2 of 3 rows an annotation of several pieces is read as one span, from the start" in notice
    spec = {"path": gold, "where": "n_pieces = 1"}
    result = thresher.entity_recognition(gold=spec, predicted=predicted, averages=["micro"], uncertainty="none")
    assert result.scores.select("tp", "fp", "fn").row(0) == (1, 2, 0)


def test_gold_and_predictions_in_their_own_formats_meet(tmp_path: Path) -> None:
    (tmp_path / "gold.conll").write_text(CONLL)
    (tmp_path / "system.conll").write_text(CONLL.replace("German JJ B-MISC", "German JJ O").replace("B-PER", "B-LOC"))
    result = thresher.entity_recognition(
        gold=tmp_path / "gold.conll", predicted=tmp_path / "system.conll", match_type=True, averages=["micro"]
    )
    assert result.scores.select("tp", "fp", "fn").row(0) == (4, 2, 2)
