"""Gold and predicted mentions at random, and their matching by brute force, for the tests of stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.matching import Mentions

Row = dict[str, Any]
Ints: TypeAlias = "NDArray[np.int64]"
TEXTS = ["Paris", "paris", "PARIS ", "Rome", "Bonn"]


def random_mentions(rng: np.random.Generator, n: int, *, predicted: bool = False, documents: int = 6) -> pl.DataFrame:
    """Mentions in few places of few documents, so that many overlap, nest and repeat."""
    start = rng.integers(0, 12, n)
    columns = {
        "doc_id": [f"d{number}" for number in rng.integers(0, documents, n)],
        "start": start,
        "end": start + rng.integers(0, 6, n),
        "text": [TEXTS[number] for number in rng.integers(0, len(TEXTS), n)],
        "type": [("place", "person")[number] for number in rng.integers(0, 2, n)],
    }
    if predicted:
        columns["system"] = [("x", "y")[number] for number in rng.integers(0, 2, n)]
        columns["score"] = rng.choice([0.1, 0.25, 0.5, 0.75, 0.9], n)
    return pl.DataFrame(columns)


def _same_text(gold: Row, predicted: Row) -> bool:
    first, second = (" ".join(each["text"].casefold().split()) for each in (gold, predicted))
    return first == second


def _overlap(gold: Row, predicted: Row) -> bool:
    return bool(min(gold["end"], predicted["end"]) > max(gold["start"], predicted["start"]))


def _near(gold: Row, predicted: Row) -> bool:
    centres = [(each["start"] + each["end"]) / 2 for each in (gold, predicted)]
    return _same_text(gold, predicted) and abs(centres[0] - centres[1]) < 3


RULES: dict[str, Callable[[Row, Row], bool]] = {
    "span": lambda gold, predicted: (gold["start"], gold["end"]) == (predicted["start"], predicted["end"]),
    "text": _same_text,
    "overlap": _overlap,
    "text_near": _near,
}


def most_pairs(gold: Sequence[Row], predicted: Sequence[Row], allowed: Callable[[Row, Row], bool]) -> int:
    """Size of a largest one-to-one matching, as an assignment problem."""
    if not gold or not predicted:
        return 0
    table = np.array([[allowed(left, right) for right in predicted] for left in gold])
    rows, columns = linear_sum_assignment(~table)
    return int(table[rows, columns].sum())


def counts_by_hand(
    gold: pl.DataFrame, predicted: pl.DataFrame, documents: Sequence[str], allowed: Callable[[Row, Row], bool]
) -> pl.DataFrame:
    """tp, fp and fn of every document."""
    rows = []
    for document in documents:
        ours, theirs = (frame.filter(doc_id=document).to_dicts() for frame in (gold, predicted))
        tp = most_pairs(ours, theirs, allowed)
        rows.append({"doc_id": document, "tp": tp, "fp": len(theirs) - tp, "fn": len(ours) - tp})
    return pl.DataFrame(rows, schema={"doc_id": pl.String, "tp": pl.Int64, "fp": pl.Int64, "fn": pl.Int64})


def document_counts(gold: Mentions, predicted: Mentions, matched: Ints, n_documents: int) -> tuple[Ints, Ints, Ints]:
    """True positives, false positives and misses of every document, each of shape (n_documents,)."""
    true = np.bincount(gold.document[matched != -1], minlength=n_documents)
    n_gold = np.bincount(gold.document, minlength=n_documents)
    n_predicted = np.bincount(predicted.document, minlength=n_documents)
    return true, n_predicted - true, n_gold - true
