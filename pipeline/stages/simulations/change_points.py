"""Detectors of change points whose true precision and recall are known at every score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from ...base.records import dataclass
from . import BesideTruth, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADING = "measured on simulated detectors, beside the truth"
_MARGIN = 10
_GAP = 100
_SERIES, _CHANGES = 120, 5


@dataclass(frozen=True)
class Detector:
    """A detector that detects every change with the same probability, a little late or early, and raises false alarms.

    Scores are N(shift, 1) for detected changes and N(0, 1) for false alarms.

    Attributes:
        name: Name of the detector.
        sees: Probability that it detects a change.
        alarms: Expected number of false alarms between two changes.
        shift: Distance of the scores of changes from those of false alarms, in standard deviations.
        late: Mean delay, in observations.
    """

    name: str
    sees: float
    alarms: float
    shift: float
    late: int

    def recall(self, score: float) -> float:
        """Expected share of the changes that are detected with at least this score."""
        return float(self.sees * ndtr(self.shift - score))

    def precision(self, score: float) -> float:
        """Expected true positives over expected predictions with at least this score."""
        right, wrong = self.recall(score), float(self.alarms * ndtr(-score))
        return right / (right + wrong)


DETECTORS = (
    Detector("slow", 0.9, 0.5, 1.5, 5),
    Detector("nervous", 0.95, 2.0, 1.0, 0),
    Detector("silent", 0.0, 0, 0, 0),
)


def simulate(*, seed: int, series: int = _SERIES) -> dict[str, pl.DataFrame]:
    """Simulate annotations, detections and the list of runs.

    Changes lie 100 observations apart. Changes are detected less than 10 observations away and false alarms are raised
    more than 10 away from every change, so that the truth is known for a margin of 10. The detector `silent` ran and
    detected nothing.

    Returns:
        Frames `annotations`, `predictions`, `series` and `runs`.
    """
    rng = np.random.default_rng(seed)
    change = np.tile(np.arange(1, _CHANGES + 1) * _GAP, series)
    of_series = np.repeat(np.arange(series), _CHANGES)
    frames = [_detected(rng, detector, of_series, change) for detector in DETECTORS]
    names = [detector.name for detector in DETECTORS]
    numbers = pl.DataFrame({"series_id": np.arange(series)})
    return {
        "annotations": pl.DataFrame({"series_id": of_series, "position": change}),
        "predictions": pl.concat(frames).sort("detector", "series_id", "position"),
        "series": numbers.with_columns(n_obs=pl.lit((_CHANGES + 1) * _GAP, pl.Int64)),
        "runs": pl.DataFrame({"detector": names}).join(numbers, how="cross"),
    }


def _detected(
    rng: np.random.Generator, detector: Detector, series: np.ndarray[Any, Any], change: np.ndarray[Any, Any]
) -> pl.DataFrame:
    """Detections of one detector, at most one at each position."""
    seen = rng.random(len(change)) < detector.sees
    spread = _MARGIN - 1 - detector.late
    delay = detector.late + rng.integers(-spread, spread + 1, len(change))
    count = rng.poisson(detector.alarms, len(change))
    where = np.repeat(change, count) + rng.integers(_MARGIN + 1, _GAP - _MARGIN, count.sum())
    columns = {
        "series_id": np.concatenate([series[seen], np.repeat(series, count)]),
        "position": np.concatenate([(change + delay)[seen], where]),
        "score": np.concatenate([rng.normal(detector.shift, 1, seen.sum()), rng.normal(0, 1, count.sum())]),
    }
    frame = pl.DataFrame(columns).unique(["series_id", "position"], keep="first", maintain_order=True)
    return frame.with_columns(pl.lit(detector.name).alias("detector"))


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    return {
        "kind": "change_points",
        **written(folder, simulate(seed=20240101)),
        "by": [["detector"]],
        "margin": _MARGIN,
        "thresholds": {"start": -2.0, "stop": 3.0, "count": 51},
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true precision, recall and mean delay side by side, as text for people."""
    curve, delays = tables["change_points_curve"], tables["change_points_delays"]
    numbers = BesideTruth()
    for detector in DETECTORS[:2]:
        for score in (0.0, 1.0):
            close = (pl.col("threshold") - score).abs() < 1e-9  # noqa: PLR2004 - an even grid of doubles
            row = curve.filter(pl.col("detector") == detector.name, close).row(0, named=True)
            for name, true in (("precision", detector.precision(score)), ("recall", detector.recall(score))):
                label = detector.name if (score, name) == (0.0, "precision") else ""
                numbers.add(f"{label:<15}{name} at {score:g}", row, name, true)
        mean = delays.filter(pl.col("detector") == detector.name)["delay"].to_numpy().mean()
        numbers.lines.append(f"{'':<15}{'mean delay':<20}{mean:10.3f}{'':>19}{detector.late:9.3f}")
    return numbers.text()
