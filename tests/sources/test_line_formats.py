"""TREC, CoNLL and brat files as inputs, against references written token by token, and against recorded numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from pipeline.base.errors import ConfigError, DataError
from pipeline.sources.line_formats import QRELS, RUN, brat, mentions_of, tagged_tokens, trec

if TYPE_CHECKING:
    from collections.abc import Sequence
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


def conll(path: Path, *, alone: bool, tags: int | None = None) -> pl.DataFrame:
    return mentions_of(tagged_tokens(path, alone=alone, tags=tags, name="gold")[0])


def test_tagged_tokens_are_mentions(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(CONLL)
    assert conll(tmp_path / "a.conll", alone=True).rows() == [
        ("1", 0, 2, "EU", "ORG"),
        ("1", 11, 17, "German", "MISC"),
        ("1", 24, 39, "Peter Blackburn", "PER"),
        ("2", 0, 8, "New York", "LOC"),
        ("2", 9, 14, "Paris", "LOC"),
        ("2", 15, 19, "Oslo", "LOC"),
    ]
    assert conll(tmp_path / "a.conll", alone=False)["doc_id"][0] == "a:1"


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
    assert conll(tmp_path / "a.conll", alone=True).rows() == [
        ("1", 0, 4, "Bonn", "LOC"),
        ("2", 0, 3, "# 1", "MISC"),
    ]
    (tmp_path / "a.conll").write_text(COMMENTED)
    with pytest.raises(DataError, match=r"do not end in a tag: 1 \(first: line 9, '# sent_id = 2, without"):
        conll(tmp_path / "a.conll", alone=True)


@pytest.mark.parametrize("first_line", ["# B-MISC", "-DOCSTART- (1 EU)\n# B-MISC"])
def test_a_token_that_is_a_number_sign_is_no_comment(first_line: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(f"{first_line}\n1 I-MISC\nEU B-ORG\n\n# a comment\nOslo B-LOC\n")
    mentions = conll(tmp_path / "a.conll", alone=True)
    assert mentions["text"].to_list() == ["# 1", "EU", "Oslo"]


def test_documents_of_conll_2012_begin_with_a_comment(tmp_path: Path) -> None:
    document = "#begin document (bc/cctv); part 000\nbc/cctv Oslo B-LOC\n\n#end document\n"
    (tmp_path / "a.conll").write_text(document + document.replace("Oslo", "Rome"))
    assert conll(tmp_path / "a.conll", alone=True)["doc_id"].to_list() == ["1", "2"]


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
    mentions = conll(path, alone=True)
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
    mentions = conll(tmp_path / "a.conll", alone=True)
    assert mentions.select("doc_id", "start", "end", "text").rows() == rows


@pytest.mark.parametrize("line", ["word", "word X", "word B-", "word Q-LOC"])
def test_a_line_without_a_tag_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(f"EU B-ORG\n{line}\n")
    with pytest.raises(DataError, match=r"a\.conll has lines that do not end in a tag: 1 \(first: line 2, "):
        conll(tmp_path / "a.conll", alone=True)


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
    (notice,) = [text for text in result.notes if "pieces" in text]
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


Segment = tuple[list[str], str | None]  # tokens, and the type of the mention that they are; None: they are in none
WORDS = st.text("aé中🙂#1-.O", min_size=1, max_size=3)
WIDE_WORDS = st.one_of(WORDS, st.builds("{} {}".format, WORDS, WORDS))  # a token with a blank


def prefixes(length: int, scheme: str, *, follows: bool) -> list[str]:
    """The first letters of the tags of a mention in a scheme; `follows`: one of the same type ends right before it."""
    if scheme == "IOB1":
        return ["B" if follows else "I", *"I" * (length - 1)]
    if scheme == "IOB2":
        return ["B", *"I" * (length - 1)]
    begin, inside, last, single = list(scheme)
    return [single] if length == 1 else [begin, *inside * (length - 2), last]


def tagged(sentence: Sequence[Segment], scheme: str) -> list[tuple[str, str]]:
    """Tokens with their tags."""
    rows: list[tuple[str, str]] = []
    before = None
    for tokens, kind in sentence:
        tags = ["O"] * len(tokens)
        if kind is not None:
            tags = [f"{letter}-{kind}" for letter in prefixes(len(tokens), scheme, follows=kind == before)]
        rows += zip(tokens, tags, strict=True)
        before = kind
    return rows


def expected_mentions(documents: Sequence[Sequence[Sequence[Segment]]]) -> list[tuple[str, int, int, str, str]]:
    """The mentions with their places in documents whose tokens are joined by blanks."""
    mentions = []
    for number, document in enumerate(documents, start=1):
        start = 0
        for tokens, kind in (segment for sentence in document for segment in sentence):
            text = " ".join(tokens)
            if kind is not None:
                mentions.append((str(number), start, start + len(text), text, kind))
            start += len(text) + 1
    return mentions


def in_columns(documents: Sequence[Sequence[Sequence[Segment]]], scheme: str, separator: str) -> str:
    """A file of CoNLL-2003: token, part of speech, tag."""
    text = ""
    for document in documents:
        text += separator.join(["-DOCSTART-", "-X-", "O"]) + "\n\n"
        for sentence in document:
            text += "".join(separator.join([token, "NN", tag]) + "\n" for token, tag in tagged(sentence, scheme)) + "\n"
    return text


def in_conll_u(documents: Sequence[Sequence[Sequence[Segment]]], scheme: str) -> str:
    """A file of CoNLL-U: id, token, lemma, tag, miscellany, with comments, ranges and empty nodes."""
    text = ""
    for document in documents:
        text += "# newdoc\n"
        for sentence in document:
            text += "# sent_id = 1\n# text = a\tb O\n0.1\tnothing\t_\t_\t_\n"
            rows = tagged(sentence, scheme)
            for number, (token, tag) in enumerate(rows, start=1):
                text += f"{number}-{number + 1}\tboth\t_\tB-X\t_\n" if number % 2 and number < len(rows) else ""
                text += f"{number}\t{token}\t_\t{tag}\tSpaceAfter=No\n"
                text += f"{number}.1\tnothing\t_\t_\t_\n" if number == 2 else ""
            text += "\n"
    return text


def documents_of(words: st.SearchStrategy[str]) -> st.SearchStrategy[list[list[list[Segment]]]]:
    segments = st.tuples(st.lists(words, min_size=1, max_size=3), st.sampled_from([None, "X", "Y"]))
    sentences = st.lists(segments, min_size=1, max_size=4)
    return st.lists(st.lists(sentences, min_size=1, max_size=3), min_size=1, max_size=3)


@pytest.mark.wide
@given(
    data=st.data(),
    scheme=st.sampled_from(["IOB1", "IOB2", "BILU", "BIES"]),
    form=st.sampled_from(["CoNLL-U", "\t", " "]),
)
def test_a_file_has_the_mentions_that_were_written_to_it(
    data: st.DataObject, scheme: str, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    documents = data.draw(documents_of(WORDS if form == " " else WIDE_WORDS))
    path = tmp_path_factory.getbasetemp() / "written.conll"
    text = in_conll_u(documents, scheme) if form == "CoNLL-U" else in_columns(documents, scheme, form)
    path.write_text(text, encoding="utf-8")
    mentions = conll(path, alone=True, tags=4 if form == "CoNLL-U" else 3)
    assert mentions.rows() == expected_mentions(documents)


@pytest.mark.parametrize("line", ["1-2\tdel\t_\t_", "1.1\tnada\t_\tB-LOC", "0.1\tnada\t_\tO"])
def test_ranges_and_empty_nodes_are_no_tokens(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu.conll").write_text(f"{line}\n1\tde\t_\tO\n2\tel\t_\tO\n3\tRio\t_\tB-LOC\n")
    mentions = conll(tmp_path / "a.conllu.conll", alone=True)
    assert mentions.rows() == [("0", 6, 9, "Rio", "LOC")]


RANGE = "1-2\tdel\t_\tO\n1\tde\t_\tO\n2\tel\t_\tO\n3\tRio\t_\tB-LOC\n\n1\tvive\t_\tO\n2\ten\t_\tO\n3\tLima\t_\tO\n"
CITIES = "New York\tB-LOC\nis\tO\nNew Delhi\tO\n"


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("gold", "cities"), [(RANGE, ("Rio\t_", "Lima\t_")), (CITIES, ("New York", "New Delhi"))])
def test_another_city_is_no_match(gold: str, cities: tuple[str, str], tmp_path: Path) -> None:
    first, second = cities
    predicted = gold.replace(f"{first}\tB-LOC", f"{first}\tO").replace(f"{second}\tO", f"{second}\tB-LOC")
    (tmp_path / "gold.conll").write_text(gold)
    (tmp_path / "predicted.conll").write_text(predicted)
    for match in ("text", "span"):
        result = thresher.entity_recognition(
            gold=tmp_path / "gold.conll", predicted=tmp_path / "predicted.conll", match=match, averages=["micro"]
        )
        assert result.scores.select("tp", "fp", "fn").row(0) == (0, 1, 1)


def test_tabs_alone_separate_columns_where_there_are_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("New York\tB-LOC\nis\u00a0not\tO\r\nNew Delhi\tS-LOC\t\n")
    mentions = conll(tmp_path / "a.conll", alone=True)
    assert mentions.rows() == [("0", 0, 8, "New York", "LOC"), ("0", 16, 25, "New Delhi", "LOC")]


def test_only_blanks_separate_columns_where_there_are_no_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("20\u00a0000 B-X\nkm  O\n")
    assert conll(tmp_path / "a.conll", alone=True)["text"].to_list() == ["20\u00a0000"]


def test_numbers_that_do_not_count_tokens_are_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("1996 CD B-YEAR\n1997 CD O\n\n12 CD O\n")
    (tmp_path / "b.conll").write_text("1996 CD O\n1997 CD O\n\n12 CD B-YEAR\n")
    spec = {"path": tmp_path / "a.conll"}
    result = thresher.entity_recognition(gold=spec, predicted=tmp_path / "b.conll", averages=["micro"])
    assert result.scores.select("tp", "fp", "fn").row(0) == (0, 1, 1)
    assert any("input gold: the first column is taken for the tokens: it holds numbers" in w for w in result.notes)


CHUNKED = "-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\nsays VB I-VP O\nhello UH O O\n"


def test_which_of_several_columns_holds_the_tags_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(CHUNKED)
    with pytest.raises(DataError) as caught:
        thresher.entity_recognition(gold=path, predicted=path)
    assert f"several columns of {path} hold tags: column 3 and column 4 (line 3, 'U.N. NNP I-NP I-ORG')" in str(
        caught.value
    )
    assert '{"path": …, "tags": 4} beside the path of gold, or --set gold.tags=4 on the command line' in str(
        caught.value
    )
    for column, mentions in ((4, 1), (3, 2)):
        spec = {"path": path, "tags": column}
        result = thresher.entity_recognition(gold=spec, predicted=spec, averages=["micro"], uncertainty="none")
        assert result.scores.select("tp", "fp", "fn").row(0) == (mentions, 0, 0)
        assert not [text for text in result.warnings if "tags" in text]
    with pytest.raises(DataError, match=r"has lines that have no tag in column 5: 3 \(first: line 3, 'U\.N\."):
        thresher.entity_recognition(gold={"path": path, "tags": 5}, predicted=path)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("text", "notice"),
    [
        (
            "1\tA\tB-X\t-\tann\n2\tb\tO\t-\tann\n",
            "column 3 of 5, the only one with nothing but tags, and the tokens from column 2",
        ),
        ("B-X\tA\nO\tb\n", "column 1 of 2, the only one with nothing but tags, and the tokens from column 2"),
    ],
    ids=["behind it more columns", "before the token"],
)
def test_a_column_of_tags_that_is_not_the_last_is_told(text: str, notice: str, tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text)
    result = thresher.entity_recognition(gold=path, predicted=path, match="text", averages=["micro"])
    assert result.scores.select("tp", "fp", "fn").row(0) == (1, 0, 0)
    assert [note for note in result.notes if notice in note]
    column = 1 if text.startswith("B") else 3
    spec = {"path": path, "tags": column}
    result = thresher.entity_recognition(gold=spec, predicted=spec, match="text", averages=["micro"])
    assert not [text for text in (*result.warnings, *result.notes) if "holds tags" in text or "hold tags" in text]


def test_a_line_without_a_token_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("EU\tB-ORG\n\tO\n")
    with pytest.raises(DataError, match=r"a\.conll has lines without a token: 1 \(first: line 2, '\\tO'\)"):
        conll(tmp_path / "a.conll", alone=True)


def test_tags_of_files_without_tokens_have_no_effect(tmp_path: Path) -> None:
    frame = pl.DataFrame({"doc_id": [1], "start": [0], "end": [1]})
    frame.write_parquet(tmp_path / "a.parquet")
    spec = {"path": tmp_path / "a.parquet", "tags": 4}
    with pytest.raises(ConfigError, match="gold: tags has no effect on parquet: it names the column of CoNLL files"):
        thresher.entity_recognition(gold=spec, predicted=frame)
