"""Mentions of entities found by systems whose true precision and recall are known at every confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...base.records import dataclass
from . import BesideTruth, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

HEADING = "measured on gold mentions, beside the truth"
_MENTIONS = 6.0
_CONCENTRATION = 8.0
_ROOM = 40
_TYPES = ("location", "organisation", "person")


@dataclass(frozen=True)
class System:
    """A system that finds, misplaces and invents mentions.

    Its confidence in a real mention has the distribution function t ^ `sharpness`, and in an invented one
    1 - (1 - t) ^ `sharpness`: the sharper, the better the confidence distinguishes the two.

    Attributes:
        name: Name of the system.
        hit_rate: Share of the gold mentions that it finds, on average over documents.
        misplaced: Share of the found mentions whose end is off by one character.
        spurious: Mean number of invented mentions in a document.
        sharpness: At least 1.
    """

    name: str
    hit_rate: float
    misplaced: float
    spurious: float
    sharpness: float

    def _above(self, threshold: float) -> tuple[float, float]:
        """Shares of the real and of the invented mentions with at least this confidence."""
        return 1 - threshold**self.sharpness, (1 - threshold) ** self.sharpness

    def recall(self, threshold: float) -> float:
        """True recall of identical spans."""
        return self.hit_rate * (1 - self.misplaced) * self._above(threshold)[0]

    def precision(self, threshold: float) -> float:
        """True precision of identical spans: expected true positives over expected predictions."""
        right, invented = self._above(threshold)
        predictions = _MENTIONS * self.hit_rate * right + self.spurious * invented
        return _MENTIONS * self.recall(threshold) / predictions


MENTION_SYSTEMS = (System("dictionary", 0.7, 0.1, 2.0, 1.5), System("tagger", 0.9, 0.04, 1.0, 3.0))


def simulate(*, seed: int, documents: int = 400) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Simulate gold mentions and the predictions of every system.

    Documents differ in their number of mentions and in their difficulty, so that mentions of one document are alike.

    Returns:
        Gold mentions (doc_id, start, end, type), predictions (system, the same, score) and documents (doc_id).
    """
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(documents), rng.poisson(_MENTIONS, documents))
    first = np.concatenate([[True], document[1:] != document[:-1]])
    index = np.arange(len(document)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    gold = _mentions(document, _ROOM * index, rng.integers(4, 16, len(document)), rng)
    predicted = [_predicted(system, gold, documents, rng) for system in MENTION_SYSTEMS]
    declared = pl.DataFrame({"doc_id": np.arange(documents)})
    return gold, pl.concat(predicted), declared


def _predicted(system: System, gold: pl.DataFrame, documents: int, rng: np.random.Generator) -> pl.DataFrame:
    ease = rng.beta(_CONCENTRATION * system.hit_rate, _CONCENTRATION * (1 - system.hit_rate), documents)
    detected = gold.filter(pl.Series(rng.random(gold.height) < ease[gold["doc_id"].to_numpy()]))
    off = (rng.random(detected.height) < system.misplaced).astype(np.int64)
    right = rng.random(detected.height) ** (1 / system.sharpness)
    misplaced_or_right = detected.with_columns((pl.col("end") + pl.Series(off)).alias("end"), pl.Series("score", right))
    document = np.repeat(np.arange(documents), rng.poisson(system.spurious, documents))
    start = _ROOM * rng.integers(0, 20, len(document)) + _ROOM // 2
    invented = _mentions(document, start, rng.integers(4, 16, len(document)), rng)
    wrong = 1 - (1 - rng.random(len(document))) ** (1 / system.sharpness)
    both = pl.concat([misplaced_or_right, invented.with_columns(pl.Series("score", wrong))])
    return both.select(pl.lit(system.name).alias("system"), pl.all())


def _mentions(
    document: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64], rng: np.random.Generator
) -> pl.DataFrame:
    kinds = [_TYPES[number] for number in rng.integers(0, len(_TYPES), len(document))]
    return pl.DataFrame({"doc_id": document, "start": start, "end": start + length, "type": kinds})


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    names = ("gold", "predicted", "documents")
    return {
        "kind": "entity_recognition",
        **written(folder, dict(zip(names, simulate(seed=20240101), strict=True))),
        "by": [["system"]],
        "thresholds": {"start": 0.0, "stop": 0.95, "count": 20},
        "averages": ["micro", "macro", "semeval"],
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true precision and recall side by side, for all predictions and at the best F1, as text."""
    micro = tables["entity_recognition_scores"].filter(pl.col("average") == "micro")
    numbers = BesideTruth()
    for system in MENTION_SYSTEMS:
        rows = micro.filter(pl.col("system") == system.name).sort("threshold")
        best = rows.sort("f1", descending=True, maintain_order=True).head(1)
        for row in pl.concat([rows.head(1), best]).iter_rows(named=True):
            for name, of in (("precision", system.precision), ("recall", system.recall)):
                title = f"{name} at {row['threshold']:.2f}"
                numbers.add(f"{system.name:<15}{title}", row, name, of(row["threshold"]))
    return numbers.text()
