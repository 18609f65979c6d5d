"""Rankings of systems whose true mean average precision is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import gammaln, ndtr, xlog1py, xlogy

from ...base.records import dataclass
from . import written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

HEADING = "measured on rankings, beside the truth and random selection"
DOCUMENTS_PER_QUERY = 200
RELEVANT_PER_QUERY = (5, 10, 20)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(120)


@dataclass(frozen=True)
class System:
    """A system whose scores are N(shift, 1) for a relevant document and N(0, 1) for any other.

    Attributes:
        name: Name of the system.
        shift: How far scores of relevant documents lie above those of others, in standard deviations.
    """

    name: str
    shift: float

    def average_precision(self, n: int, m: int) -> float:
        """Expected average precision of n documents with m relevant ones.

        A relevant document with A relevant and B other documents above it contributes (1 + A) / (1 + A + B) to the
        mean; given its score, A and B are binomial. The mean over the score is computed by Gauss-Hermite quadrature.
        """
        score = _NODES + self.shift
        above = _binomial(m - 1, ndtr(-_NODES)), _binomial(n - m, ndtr(-score))
        a, b = np.arange(m)[:, None], np.arange(n - m + 1)
        precision = np.einsum("qa,qb,ab->q", *above, (1 + a) / (1 + a + b))
        return float(_WEIGHTS @ precision / _WEIGHTS.sum())

    @property
    def mean_average_precision(self) -> float:
        """Mean over the queries of `simulate`."""
        return float(np.mean([self.average_precision(DOCUMENTS_PER_QUERY, m) for m in RELEVANT_PER_QUERY]))


def _binomial(n: int, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Binomial probabilities of 0 … n, shape (len(p), n + 1)."""
    k = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(choose + xlogy(k, p[:, None]) + xlog1py(n - k, -p[:, None])))


RANKING_SYSTEMS = (System("random", 0.0), System("keywords", 1.0), System("trained", 2.0))


def simulate(*, seed: int, queries: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Simulate rankings of all systems for the same queries; 5, 10 or 20 of 200 documents are relevant, in turn.

    Returns:
        The ranking, one row per system, query and document: system, query_id, doc_id, score; and the relevance, one row
        per query and document: query_id, doc_id, relevance.
    """
    rng = np.random.default_rng(seed)
    relevant = np.array(RELEVANT_PER_QUERY)[np.arange(queries) % len(RELEVANT_PER_QUERY)]
    label = np.arange(DOCUMENTS_PER_QUERY) < relevant[:, None]
    keys = {
        "query_id": np.repeat(np.arange(queries), DOCUMENTS_PER_QUERY),
        "doc_id": np.tile(np.arange(DOCUMENTS_PER_QUERY), queries),
    }
    relevance = pl.DataFrame(keys | {"relevance": label.ravel().astype(np.int64)})
    frames = []
    for system in RANKING_SYSTEMS:
        score = rng.standard_normal(label.shape) + system.shift * label
        frames.append(pl.DataFrame({"system": np.full(label.size, system.name)} | keys | {"score": score.ravel()}))
    return pl.concat(frames), relevance


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    paths = written(folder, dict(zip(("ranking", "relevance"), simulate(seed=20240101), strict=True)))
    return {
        "kind": "ranking",
        **{name: {"path": path} for name, path in paths.items()},
        "by": [["system"]],
        "cutoffs": [1, 5, 10, 100],
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true mean average precision side by side, with how probable it is under random selection."""
    rows = tables["ranking_summary"]
    lines, held = [], 0
    for system in RANKING_SYSTEMS:
        row = rows.row(by_predicate=pl.col("system") == system.name, named=True)
        true = system.mean_average_precision
        held += row["map_lower"] <= true <= row["map_upper"]
        interval = f"{row['map_lower']:.3f} to {row['map_upper']:.3f}"
        numbers = f"{row['map']:10.3f}{interval:>19}{true:9.3f}{row['map_expected']:12.3f}{row['map_p_value']:12.1e}"
        lines.append(f"{system.name:<15}{numbers}")
    title = f"{'MAP':<15}{'measured':>10}{'95% interval':>19}{'true':>9}{'by chance':>12}{'p-value':>12}"
    return "\n".join([title, *lines, f"{held} of {len(RANKING_SYSTEMS)} intervals hold the true value."])
