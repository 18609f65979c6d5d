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
                before = self._kept.get((grouping.label, sample))
                together = outcomes if before is None else pl.concat([before, outcomes])
                self._kept[grouping.label, sample] = _sampled(together, sample, list(grouping.columns))

    def _outcomes(self, rows: pl.DataFrame, grouping: Grouping) -> pl.DataFrame:
        """The rows with the threshold of their group and what becomes of them there."""
        keys = list(grouping.columns)
        points = self.points.filter(pl.col(GROUPING.name) == grouping.label, pl.col(THRESHOLD).is_not_null())
        thresholds = points.group_by(keys, maintain_order=True).first() if keys else points[:1]
        thresholds = thresholds[[*keys, THRESHOLD]]
        if keys:
            joined = rows.join(thresholds, on=keys, how="inner", nulls_equal=True)
        elif thresholds.is_empty():
            joined = rows.clear().hstack(thresholds)
        else:
            joined = rows.hstack([thresholds[THRESHOLD].new_from_index(0, rows.height)])
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
        distance = (score - threshold).abs()
        return joined.with_columns(outcome.alias("outcome"), distance.alias(_NEAR), (-distance).alias(_CONFIDENT))

    def sample(self) -> pl.DataFrame:
        """The samples of all groupings, each numbered in its order."""
        frames = list(self._numbered())
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()

    def _numbered(self) -> Iterator[pl.DataFrame]:
        for grouping in self.groupings:
            keys, number = list(grouping.columns), pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
            kept = {sample: self._kept.get((grouping.label, sample)) for sample in SAMPLES}
            frames = [
                rows.hstack([pl.Series("sampled_as", [sample]).new_from_index(0, rows.height)])
                for sample, rows in kept.items()
                if rows is not None
            ]
            if frames:
                yield pl.concat(frames).select(
                    pl.lit(grouping.label).alias(GROUPING.name),
                    *keys,
                    "sampled_as",
                    number.over(["sampled_as", *keys]).alias("sample_rank"),
                    THRESHOLD,
                    *(name for name in ("id",) if name in frames[0].columns),
                    pl.when(pl.col("score").is_finite()).then("score").alias("score"),
                    "label",
                    "weight",
                    "outcome",
                )


_NEAR, _CONFIDENT = "_distance", "_distance_of_errors"  # what orders samples; of errors the largest distance is first


def _sampled(rows: pl.DataFrame, sample: str, keys: list[str]) -> pl.DataFrame:
    """The first rows of a sample of every group, in an order of all that is kept of a row."""
    belongs = pl.col("outcome") == ("fp" if sample == "false_positives" else "fn")
    by = _NEAR if sample == "nearest" else _CONFIDENT
    candidates = rows.filter(pl.col("score").is_finite() if sample == "nearest" else belongs)
    if candidates.height > ROWS_OF_A_SAMPLE or candidates[by].null_count():
        last = pl.col(by).bottom_k(ROWS_OF_A_SAMPLE).max()
        candidates = candidates.filter(pl.col(by) <= (last.over(keys) if keys else last))  # with all ties of the last
    order = [*keys, by, *(name for name in ("score", "label", "id", "weight") if name in rows.columns)]
    ordered = candidates.sort(order, nulls_last=True, descending=[name == "score" for name in order])
    return ordered.filter(pl.int_range(pl.len()).over(keys) < ROWS_OF_A_SAMPLE) if keys else ordered[:ROWS_OF_A_SAMPLE]


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
