"""Simulated data whose truth is known, one file per stage: for the demo, for tests and for measuring coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl


def written(folder: Path, frames: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """Write frames as Parquet files into a folder; return their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: str(folder / f"{name}.parquet") for name in frames}
    for name, frame in frames.items():
        frame.write_parquet(paths[name])
    return paths


class BesideTruth:
    """Measured numbers and their intervals beside the truth, as a table for people."""

    def __init__(self) -> None:
        self.lines = [f"{'':<35}{'measured':>10}{'95% interval':>19}{'true':>9}"]
        self._holds: list[bool] = []

    def add(self, label: str, row: Mapping[str, Any], name: str, true: float) -> None:
        """Add a number of a result row, with what it is called in the first 35 letters."""
        lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
        interval = f"{lower:.3f} to {upper:.3f}"
        self.lines.append(f"{label:<35}{row[name]:10.3f}{interval:>19}{true:9.3f}")
        self._holds.append(lower <= true <= upper)

    def text(self) -> str:
        """The table, and how many intervals hold the true value."""
        return "\n".join([*self.lines, f"{sum(self._holds)} of {len(self._holds)} intervals hold the true value."])
