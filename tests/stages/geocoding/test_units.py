"""The table of units of geocoding: counts of every unit add up to the scores, contributions to the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import thresher
from pipeline.base.errors import ConfigError

COUNTS = ("n_gold", "n_attempted", "tp", "fp", "fn")
PLACE = ("latitude", "longitude")
ROWS = 60


def places() -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(4)
    gold = pl.DataFrame(
        {
            "mention_id": np.arange(ROWS),
            "doc_id": [f"d{number}" for number in rng.integers(0, 7, ROWS)],
            "story": rng.integers(0, 4, ROWS),
            "start": 9 * np.arange(ROWS),
            "end": 9 * np.arange(ROWS) + 5,
            "latitude": rng.uniform(-60, 60, ROWS),
            "longitude": rng.uniform(-170, 170, ROWS),
            "country": [("x", None)[number] for number in rng.integers(0, 2, ROWS)],
        }
    )
    systems = []
    for name, spread in (("a", 0.5), ("b", 2.0)):
        moved = [pl.col(place) + spread * pl.Series(rng.normal(size=ROWS)) for place in PLACE]
        keys = ("mention_id", "doc_id", "start", "end")
        system = gold.select(*keys, *moved, system=pl.lit(name)).filter(pl.Series(rng.random(ROWS) < 0.9))
        lost = pl.col("mention_id") % 11 == 3
        systems.append(system.with_columns(pl.when(~lost).then(pl.col(place)) for place in PLACE))
    return gold, pl.concat(systems)


def located(**keys: Any) -> Any:  # noqa: ANN401 - a result
    gold, predicted = places()
    if "match" in keys:
        gold = gold.drop("mention_id", "story")
        predicted = predicted.drop("mention_id")
    else:
        predicted = predicted.drop("doc_id", "start", "end")
    return thresher.geocoding(gold=gold, predicted=predicted, **keys)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "keys",
    [
        {"by": [[], ["system"], ["system", "country"]]},
        {"by": [["system"]], "unit_tolerance_km": 10, "cluster": "story", "tolerance_boundary": "<"},
        {"by": [["system"]], "match": "span", "missing_errors": "max_error"},
    ],
)
def test_units_add_up_to_scores_and_errors(keys: dict[str, Any]) -> None:
    result = located(**keys)
    units, tolerance = result.documents, keys.get("unit_tolerance_km", 161.0)
    assert set(units["tolerance_km"]) == {tolerance}
    names = [name for name in ("grouping", "system", "country") if name in units.columns]
    summed = units.group_by(names).agg(pl.col(COUNTS).sum(), pl.col("mean_km", "log_error_auc").mean())
    beside = result.scores.filter(tolerance_km=tolerance).join(
        result.errors, on=names, nulls_equal=True, suffix="_of_errors"
    )
    both = summed.join(beside, on=names, nulls_equal=True, suffix="_expected", validate="1:1")
    assert both.height == summed.height == beside.height
    for name in (*COUNTS, "mean_km", "log_error_auc"):
        np.testing.assert_allclose(both[name].to_numpy(), both[f"{name}_expected"].to_numpy(), rtol=1e-10)
    number = {"story": 4}.get(keys.get("cluster", ""), 7)
    assert units.group_by(names).agg(pl.col("unit").n_unique()).filter(unit=number).height >= 2


def test_mentions_are_the_units_where_gold_has_no_documents() -> None:
    gold, predicted = places()
    result = thresher.geocoding(
        gold=gold.drop("doc_id", "start", "end"), predicted=predicted.drop("doc_id", "start", "end"), by=[["system"]]
    )
    assert result.documents.filter(system="a")["unit"].to_list() == list(range(ROWS))


def test_the_tolerance_of_units_is_one_of_the_tolerances() -> None:
    with pytest.raises(ConfigError, match=r"unit_tolerance_km: 20 is none of tolerances_km \(10, 100, 161\)"):
        located(unit_tolerance_km=20)
    off = located(by=[["system"]], units=False)
    with pytest.raises(AttributeError, match="units=False; units=True makes it"):
        _ = off.documents
