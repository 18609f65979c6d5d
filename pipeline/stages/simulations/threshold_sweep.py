"""Scored and labelled predictions of models whose true curve is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import expit, logit, ndtr

from ...base.records import dataclass
from . import BesideTruth, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

HEADING = "measured on labelled predictions, beside the truth"
_POSITIVE = 0.15
_SHARED = 0.25
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(120)


@dataclass(frozen=True)
class Model:
    """A binormal model: what it sees is N(shift, 1) for a true item and N(0, 1) for a false one.

    Its score is the probability that the item is true, given what it sees. `sharpness` multiplies the logit of that
    probability: above 1 the order stays the same, but the score is overconfident.

    Attributes:
        name: Name of the model.
        shift: Distance between what it sees of true items and of false ones, in standard deviations.
        sharpness: 1 for scores that are calibrated probabilities.
    """

    name: str
    shift: float
    sharpness: float = 1.0

    def score(self, seen: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score for what is seen."""
        right = logit(_POSITIVE) + self.shift * seen - self.shift**2 / 2
        return np.asarray(expit(self.sharpness * right))

    def seen(self, score: float) -> float:
        """The observation at which the model gives this score: the inverse of `score`."""
        return float((logit(score) / self.sharpness - logit(_POSITIVE)) / self.shift + self.shift / 2)

    def precision(self, seen: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """True precision if every item with at least `seen` is predicted to be true."""
        true, false = _POSITIVE * ndtr(self.shift - seen), (1 - _POSITIVE) * ndtr(-np.asarray(seen))
        return np.asarray(true / (true + false))

    def recall(self, seen: float) -> float:
        """True recall if every item with at least `seen` is predicted to be true."""
        return float(ndtr(self.shift - seen))

    @property
    def average_precision(self) -> float:
        """Mean precision at the true items, by Gauss-Hermite quadrature."""
        return float(_WEIGHTS @ self.precision(_NODES + self.shift) / _WEIGHTS.sum())

    @property
    def roc_auc(self) -> float:
        """Probability that a true item scores above a false one: Φ(shift / √2)."""
        return float(ndtr(self.shift / np.sqrt(2)))


MODELS = (Model("keywords", 1.0), Model("overconfident", 2.0, 2.0), Model("trained", 2.0))


def simulate(*, seed: int, documents: int = 300, items: int = 20) -> pl.DataFrame:
    """Simulate predictions of all models on the same items.

    Items of one document are correlated: documents differ in their share of true items, and what a model sees of them
    shifts together. Over all documents, every model has its binormal distributions.

    Returns:
        One row per model and item: item_id, document_id, model, score, label.
    """
    rng = np.random.default_rng(seed)
    share = rng.beta(_POSITIVE * 4, (1 - _POSITIVE) * 4, documents)
    label = rng.random((documents, items)) < share[:, None]
    frames = []
    for model in MODELS:
        noise = np.sqrt(_SHARED) * rng.standard_normal((documents, 1))
        noise = noise + np.sqrt(1 - _SHARED) * rng.standard_normal((documents, items))
        columns = {
            "item_id": np.arange(documents * items),
            "document_id": np.repeat(np.arange(documents), items),
            "model": np.full(documents * items, model.name),
            "score": model.score(noise + model.shift * label).ravel(),
            "label": label.ravel(),
        }
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    paths = written(folder, {"predictions": simulate(seed=20240101)})
    return {
        "kind": "threshold_sweep",
        "predictions": {"path": paths["predictions"], "columns": {"id": "item_id"}},
        "by": [["model"]],
        "cluster": "document_id",
        "thresholds": {"start": 0.01, "stop": 0.99, "count": 99},
        "operating_points": [{"beta": 1}, {"min_precision": 0.8}, {"min_recall": 0.8}],
        "averages": ["macro"],
        "bands": True,
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true areas, precision and recall at the best threshold side by side, as text for people."""
    points = tables["threshold_sweep_operating_points"].filter(pl.col("criterion") == "max_f1")
    rows = tables["threshold_sweep_areas"].join(points, on="model", suffix="_of_point")
    numbers = BesideTruth()
    for model in MODELS:
        row = rows.row(by_predicate=pl.col("model") == model.name, named=True)
        seen = model.seen(row["threshold"])
        truth = {
            "average_precision": model.average_precision,
            "roc_auc": model.roc_auc,
            "precision": float(model.precision(seen)),
            "recall": model.recall(seen),
        }
        for name, true in truth.items():
            label = model.name if name == "average_precision" else ""
            title = f"{name} at {row['threshold']:.2f}" if name in {"precision", "recall"} else name
            numbers.add(f"{label:<15}{title}", row, name, true)
    return numbers.text()
