"""The table threshold_sweep_outcomes: rows near the chosen threshold, and the most confident errors, of every group."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import polars as pl

from ...records import dataclass
from ...tables.columns import THRESHOLD
from ...tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...tables.columns import Boundary
    from ...tables.groupings import Grouping
    from ..sections import Asked


TABLE = "threshold_sweep_outcomes"
POINTS = "threshold_sweep_operating_points"
ROWS_OF_A_SAMPLE = 50
SAMPLES = ("nearest", "false_positives", "false_negatives")


@dataclass
class OutcomeSampler:
    """Keeps of every group the rows nearest to its threshold and its most confident errors.

    The threshold of a group is that of its first operating point that has one. Rows that are alike in all that is kept
    stand for each other, so that the sample does not depend on the order of the rows.

    Attributes:
        groupings: The groupings.
        points: The operating points.
        boundary: Whether a score equal to the threshold is retrieved.
    """

    groupings: Sequence[Grouping]
    points: pl.DataFrame
    boundary: Boundary
    _kept: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)

    def see(self, rows: pl.DataFrame) -> None:
        """Keep the rows of a block that belong to a sample of the rows so far."""
        for grouping in self.groupings:
            outcomes = self._outcomes(rows, grouping)
            for sample in SAMPLES:
                candidates = outcomes.filter(_belongs(sample)).with_columns(_distance(sample).alias("_distance"))
                before = self._kept.get((grouping.label, sample))
                together = candidates if before is None else pl.concat([before, candidates])
                self._kept[grouping.label, sample] = _nearest(together, list(grouping.columns))

    def _outcomes(self, rows: pl.DataFrame, grouping: Grouping) -> pl.DataFrame:
        """The rows with the threshold of their group and what becomes of them there."""
        keys = list(grouping.columns)
        points = self.points.filter(pl.col(GROUPING.name) == grouping.label, pl.col(THRESHOLD).is_not_null())
        thresholds = points.group_by(keys, maintain_order=True).first() if keys else points[:1]
        thresholds = thresholds.select(*keys, THRESHOLD)
        joined = (
            rows.join(thresholds, on=keys, how="inner", nulls_equal=True)
            if keys
            else rows.join(thresholds, how="cross")
        )
        score, threshold = pl.col("score"), pl.col(THRESHOLD)
        retrieved = score >= threshold if self.boundary == ">=" else score > threshold
        outcome = (
            pl.when(retrieved & pl.col("label"))
            .then(pl.lit("tp"))
            .when(retrieved)
            .then(pl.lit("fp"))
            .when("label")
            .then(pl.lit("fn"))
            .otherwise(pl.lit("tn"))
        )
        return joined.with_columns(outcome.alias("outcome"))

    def sample(self) -> pl.DataFrame:
        """The samples of all groupings, each numbered in its order."""
        frames = [frame for parts in self._numbered() for frame in parts]
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()

    def _numbered(self) -> Iterator[list[pl.DataFrame]]:
        for grouping in self.groupings:
            keys = list(grouping.columns)
            number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
            numbered = number.over(keys) if keys else number
            yield [
                self._kept[grouping.label, sample].select(
                    pl.lit(grouping.label).alias(GROUPING.name),
                    *keys,
                    pl.lit(sample).alias("sampled_as"),
                    numbered.alias("sample_rank"),
                    THRESHOLD,
                    *(name for name in ("id",) if name in self._kept[grouping.label, sample].columns),
                    pl.when(pl.col("score").is_finite()).then("score").alias("score"),
                    "label",
                    "weight",
                    "outcome",
                )
                for sample in SAMPLES
                if (grouping.label, sample) in self._kept
            ]


def _belongs(sample: str) -> pl.Expr:
    if sample == "nearest":
        return pl.col("score").is_finite()
    return pl.col("outcome") == ("fp" if sample == "false_positives" else "fn")


def _distance(sample: str) -> pl.Expr:
    """What orders a sample: the distance from the threshold; of errors the largest, which is the most confident."""
    distance = (pl.col("score") - pl.col(THRESHOLD)).abs()
    return distance if sample == "nearest" else -distance


def _nearest(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The first rows of every group, in an order of all that is kept of a row."""
    distance = pl.col("_distance")
    last = distance.bottom_k(ROWS_OF_A_SAMPLE).max()
    near = rows.filter(distance <= (last.over(keys) if keys else last))  # with all ties of the last
    order = [*keys, "_distance", *(name for name in ("score", "label", "id", "weight") if name in rows.columns)]
    ordered = near.sort(order, nulls_last=True, descending=[name == "score" for name in order])
    number = pl.int_range(pl.len())
    return ordered.filter((number.over(keys) if keys else number) < ROWS_OF_A_SAMPLE)


# What tells people which prediction a row is.


LOCATION = ("source_file", "file_row_number")
INPUTS = {"predictions": {name: name for name in LOCATION}}


def identity(asked: Asked) -> tuple[str, ...]:
    """What tells people which row it is, beside its place in the files: its groups, its id and its clusters."""
    predictions = asked.plan.sources[0]
    clusters = (asked.params.cluster_column, asked.params.second_cluster_column)
    ids = ("id",) if asked.params.labels is not None or predictions.is_mapped("id") else ()
    return tuple(dict.fromkeys((*asked.by, *ids, *(name for name in clusters if name is not None))))


def location_of_known(asked: Asked) -> tuple[str, ...]:
    """The place of rows in the files, where they have an id that tells which they are."""
    return LOCATION if "id" in identity(asked) else ()
