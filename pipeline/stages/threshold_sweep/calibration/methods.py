"""What a methods section says of calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ....metrics.calibration.bins import BINNING
from ....visible_text import percent
from ... import methods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...methods import Measured

HOW = (
    "Scores were held against labels in {bins} bins by quantile{bands}; the Brier score was taken apart after Murphy "
    "(1973) and Stephenson, Coelho and Jolliffe (2008)."
)
BANDS = (
    ", with bands for all bins together (Šidák 1967), and tested for calibration after Spiegelhalter (1986) and after "
    "Hosmer and Lemeshow (1980)"
)


def calibration_sentences(measured: Measured) -> Iterator[str]:
    """Say how calibration was measured and what came out; nothing where no group has probabilities."""
    table = measured.tables.get("threshold_sweep_calibration", pl.DataFrame())
    if table.is_empty():
        return
    rows = table.filter(pl.col(BINNING) == "quantile", pl.col("ece").is_not_null())
    if rows.is_empty():
        return
    is_tested = measured.parameters["uncertainty"] != "none"
    yield HOW.format(bins=measured.parameters["calibration_bins"], bands=BANDS if is_tested else "")
    shown, _ = methods.headline_rows(rows)
    for row in shown:
        group = methods.named_group(row)
        yield f"The expected calibration error (Naeini et al. 2015){f' of {group}' if group else ''} was {_error(row)}."


def _error(row: Mapping[str, Any]) -> str:
    """An error of a group, beside that of perfect scores and p-values where there are any."""
    error, perfect = row["ece"], row["ece_if_calibrated"]
    value = percent(error)
    if perfect is None:
        return value
    names = {"spiegelhalter_p_value": "Spiegelhalter", "hosmer_lemeshow_p_value": "Hosmer and Lemeshow"}
    tests = [f"{name}: {_p_value(row[column])}" for column, name in names.items() if row[column] is not None]
    return f"{value} ({'; '.join([f'{percent(perfect)} is expected of perfect scores', *tests])})"


def _p_value(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"  # noqa: PLR2004 - smaller ones say no more
