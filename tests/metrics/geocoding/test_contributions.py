"""Contributions to the errors of geocoding: against the errors anew without each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.metrics.geocoding import ERRORS, error_contributions, error_statistics

if TYPE_CHECKING:
    from pipeline.metrics.geocoding import Missing


@pytest.mark.parametrize("missing", ["exclude", "max_error"])
@pytest.mark.parametrize("seed", range(3))
def test_contributions_are_pseudo_values_of_leaving_units_out(seed: int, missing: Missing) -> None:
    rng = np.random.default_rng(seed)
    unit = np.sort(rng.permutation(np.concatenate([np.arange(9), rng.integers(0, 9, 40)])))
    distances = np.where(rng.random(49) < 0.3, np.nan, rng.lognormal(3, 2, 49))
    distances[unit == 4] = np.nan  # a unit without an error
    contributed = error_contributions(unit, distances, missing=missing)
    statistics = error_statistics(distances, missing=missing)
    for name in ERRORS:
        without = np.array([error_statistics(distances[unit != each], missing=missing)[name] for each in range(9)])
        np.testing.assert_allclose(contributed[name], statistics[name] + 8 * (without.mean() - without), rtol=1e-10)
        assert contributed[name].mean() == pytest.approx(statistics[name], rel=1e-12)
        jackknife = np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
        assert contributed[name].std(ddof=1) / 3 == pytest.approx(jackknife, rel=1e-10)


def test_where_one_unit_holds_the_errors_there_are_no_contributions() -> None:
    distances = np.array([1.0, 2.0, np.nan, 4.0])
    one = error_contributions(np.array([0, 0, 1, 0]), distances)
    assert np.isnan(one["mean_km"]).all()
    assert np.isnan(one["log_error_auc"]).all()
    two = error_contributions(np.array([0, 0, 1, 1]), distances)
    assert np.isnan(two["log_error_auc"]).all()  # without the first unit one error is left
    assert two["mean_km"].tolist() == pytest.approx([7 / 3 + (1.5 - 4) / 2, 7 / 3 - (1.5 - 4) / 2])
    single = error_contributions(np.array([0, 0, 0, 0]), distances)
    assert np.isnan([single[name] for name in ERRORS]).all()
    nothing = error_contributions(np.array([], dtype=np.int64), np.array([]))
    assert [len(nothing[name]) for name in ERRORS] == [0, 0]
