"""Gold locations and those that geocoders assign, with known true accuracy at every distance."""

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

HEADING = "measured on gold places, beside the truth"
_KM_PER_DEGREE = 6371.0088 * np.pi / 180
_TOLERANCES_KM = (10.0, 100.0, 161.0, 1000.0)
_MENTIONS = 8
_COUNTRIES = ("France", "Mexico", "Texas")


@dataclass(frozen=True)
class Geocoder:
    """A geocoder whose error has a log-normal distribution.

    Attributes:
        name: Name of the geocoder.
        attempted: Share of the mentions to which it assigns a location.
        median_km: Median of its errors.
        spread: Standard deviation of the logarithm of the error.
        alike: Share of the variance of the log error that the mentions of a document have in common.
    """

    name: str
    attempted: float
    median_km: float
    spread: float
    alike: float

    def precision(self, tolerance_km: float) -> float:
        """True share of the attempted mentions within a distance."""
        return float(ndtr(np.log(tolerance_km / self.median_km) / self.spread))

    def recall(self, tolerance_km: float) -> float:
        """True share of all mentions within a distance."""
        return self.attempted * self.precision(tolerance_km)


GEOCODERS = (Geocoder("gazetteer", 0.95, 40.0, 3.0, 0.3), Geocoder("ranker", 0.85, 15.0, 2.0, 0.2))


def simulate(*, seed: int, documents: int = 150) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Simulate gold locations and the answers of all geocoders; errors within one document are correlated.

    Returns:
        Gold locations (mention_id, doc_id, country, latitude, longitude) and predictions (system, mention_id, latitude,
        longitude; NULL: not located).
    """
    rng = np.random.default_rng(seed)
    number = documents * _MENTIONS
    document = np.repeat(np.arange(documents), _MENTIONS)
    gold = pl.DataFrame(
        {
            "mention_id": np.arange(number),
            "doc_id": document,
            "country": [_COUNTRIES[number_of_document % len(_COUNTRIES)] for number_of_document in document.tolist()],
            "latitude": rng.uniform(-30, 30, number),
            "longitude": rng.uniform(-180, 180, number),
        }
    )
    return gold, pl.concat([_predicted(geocoder, gold, documents, rng) for geocoder in GEOCODERS])


def _predicted(geocoder: Geocoder, gold: pl.DataFrame, documents: int, rng: np.random.Generator) -> pl.DataFrame:
    """Predicted locations, displaced by the error to the north or south, where all degrees have the same length."""
    shared = rng.standard_normal(documents)[gold["doc_id"].to_numpy()]
    individual = rng.standard_normal(gold.height)
    deviate = np.sqrt(geocoder.alike) * shared + np.sqrt(1 - geocoder.alike) * individual
    error = geocoder.median_km * np.exp(geocoder.spread * deviate) / _KM_PER_DEGREE
    latitude = gold["latitude"].to_numpy()
    north = latitude + np.where(latitude < 0, 1, -1) * np.minimum(error, 90)
    missing = pl.Series(rng.random(gold.height) >= geocoder.attempted)
    return gold.select(
        pl.lit(geocoder.name).alias("system"),
        "mention_id",
        pl.when(~missing).then(pl.Series(north)).alias("latitude"),
        pl.when(~missing).then("longitude").alias("longitude"),
    )


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage."""
    paths = written(folder, dict(zip(("gold", "predicted"), simulate(seed=20240101), strict=True)))
    return {
        "kind": "geocoding",
        **paths,
        "by": [["system"]],
        "tolerances_km": list(_TOLERANCES_KM),
    }


def error_table(_: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Measured and true precision and recall at two distances side by side, as text for people."""
    numbers = BesideTruth()
    for geocoder in GEOCODERS:
        rows = tables["geocoding_scores"].filter(pl.col("system") == geocoder.name)
        for tolerance in (_TOLERANCES_KM[0], _TOLERANCES_KM[2]):
            row = rows.row(by_predicate=pl.col("tolerance_km") == tolerance, named=True)
            for name, of in (("precision", geocoder.precision), ("recall", geocoder.recall)):
                numbers.add(f"{geocoder.name:<13}{name} at {tolerance:g} km", row, name, of(tolerance))
    return numbers.text()
