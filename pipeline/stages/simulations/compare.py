"""Counts and scores of taggers on the same documents, whose true differences are known."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from ...base.records import dataclass
from . import written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADING = "differences of taggers on the same documents, beside the truth"
_MENTIONS = 8.0
_SHARED = 0.3
_TITLES = {"overlap": "mean overlap", "pooled_precision": "precision", "pooled_recall": "recall", "pooled_f1": "F1"}


@dataclass(frozen=True)
class Tagger:
    """A tagger that finds a mention if its difficulty, N(0, 1), is below the reach of the tagger.

    Attributes:
        name: Name of the tagger.
        reach: The higher, the more mentions it finds.
        false: Mean number of false mentions in a document.
        overlap: Mean share of the characters of a mention that it annotates.
    """

    name: str
    reach: float
    false: float
    overlap: float

    def truth(self) -> dict[str, float]:
        """The values for an infinite number of documents."""
        hits, misses = _MENTIONS * float(ndtr(self.reach)), _MENTIONS * float(ndtr(-self.reach))
        return {
            "overlap": self.overlap,
            "pooled_precision": hits / (hits + self.false),
            "pooled_recall": hits / _MENTIONS,
            "pooled_f1": 2 * hits / (2 * hits + self.false + misses),
        }


TAGGERS = (Tagger("lexicon", 0.3, 2.5, 0.70), Tagger("neural", 0.7, 2.0, 0.72), Tagger("retrained", 0.7, 2.0, 0.72))


def simulate(*, seed: int, documents: int = 200) -> pl.DataFrame:
    """Simulate the taggers on the same documents.

    Documents differ in how hard they are, for all taggers alike; two of the taggers are equally good.

    Returns:
        One row per document and tagger: doc_id, tagger, tp, fp, fn, overlap.
    """
    rng = np.random.default_rng(seed)
    hard = rng.standard_normal(documents)
    clutter = rng.gamma(4.0, 1 / 4, documents)
    mentions = rng.poisson(_MENTIONS, documents)
    frames = []
    for tagger in TAGGERS:
        chance = ndtr((tagger.reach - np.sqrt(_SHARED) * hard) / np.sqrt(1 - _SHARED))
        tp = rng.binomial(mentions, chance)
        columns = {
            "doc_id": np.arange(documents),
            "tagger": np.full(documents, tagger.name),
            "tp": tp,
            "fp": rng.poisson(tagger.false * clutter),
            "fn": mentions - tp,
            "overlap": tagger.overlap - 0.05 * hard + 0.05 * rng.standard_normal(documents),
        }
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    paths = written(folder, {"documents": simulate(seed=20240101)})
    return {
        "kind": "compare",
        "units": {"path": paths["documents"], "columns": {"unit": "doc_id"}},
        "system": "tagger",
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true differences side by side, with the adjusted p-value of the randomization test, as text."""
    tests = tables["compare_tests"].filter(pl.col("test") == "randomization")
    lines, held, intervals = [], 0, 0
    for a, b in combinations(TAGGERS, 2):
        for metric, title in _TITLES.items():
            is_pair = (pl.col("system_a") == a.name) & (pl.col("system_b") == b.name) & (pl.col("metric") == metric)
            row = tests.row(by_predicate=is_pair, named=True)
            true = a.truth()[metric] - b.truth()[metric]
            lower, upper = row["difference_lower"], row["difference_upper"]
            label = f"{a.name} - {b.name}" if metric == "overlap" else ""
            interval = f"{lower:.3f} to {upper:.3f}"
            lines.append(
                f"{label:<22}{title:<14}{row['difference']:9.3f}{interval:>19}{true:9.3f}{row['p_adjusted']:13.4f}"
            )
            held, intervals = held + (lower <= true <= upper), intervals + 1
    head = f"{'':<36}{'measured':>9}{'95% interval':>19}{'true':>9}{'adjusted p':>13}"
    return "\n".join([head, *lines, f"{held} of {intervals} intervals hold the true difference."])
