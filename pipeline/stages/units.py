"""What the numbers of a stage rest on: units, how much each moves a number, and stages whose units are compared."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, Self

import polars as pl
from pydantic import field_validator

from ..errors import DataError
from ..records import dataclass
from ..tables import columns
from ..tables.ratios import RATIO_OF
from .parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ..metrics.planning.pilot import Scale
    from ..tables.ratios import Ratio
    from .sections import Asked


# How much a unit (event, cluster, document, series) moves a number: the number with it and without it.


CONFUSION = ("tp", "fp", "fn")
OF_COUNTS = ("precision", "recall", "f1")
WITHOUT, INFLUENCE = "without", "influence"


def untold(asked: Asked, units: str, told: Sequence[str] = OF_COUNTS) -> str:
    """Why there is no influence of units on the number that is explained; empty if there is.

    Args:
        asked: What is explained.
        units: What the units are, in words.
        told: The numbers whose value without a unit follows from what is known of the units.
    """
    if asked.measure in told:
        return ""
    return (
        f"what {asked.measure} would be without one of the {units} is not known from their counts; it is known for "
        f"{', '.join(told)}"
    )


def ratio_of(counts: Mapping[str, pl.Expr], measure: str) -> pl.Expr:
    """A ratio of counts, such as precision; of `fpr` and others `tn` must be among them.

    Args:
        counts: Expressions of `tp`, `fp`, `fn`, perhaps `tn`.
        measure: The ratio.

    Raises:
        ValueError: it is no ratio of these counts.
    """
    ratio = RATIO_OF.get(measure)
    if ratio is not None and counts.keys() >= set(ratio.outcomes):
        return columns.ratio_of(ratio, counts)
    message = f"{measure} is no ratio of {', '.join(counts)}"
    raise ValueError(message)


def with_influence(units: pl.DataFrame, measure: str, suffix: str = "") -> pl.DataFrame:
    """Units with the ratio of all others, `without`, and `influence`, the difference that the unit makes.

    Args:
        units: One row per unit with `tp`, `fp`, `fn` and perhaps `tn`.
        measure: As for `ratio_of`.
        suffix: Behind the names of the counts, such as `_weight`.

    Returns:
        The rows with the largest influence first; where the others alone have no ratio it is NULL, and comes last.
    """
    names = [name for name in (*CONFUSION, "tn") if f"{name}{suffix}" in units.columns]
    values = {name: pl.col(f"{name}{suffix}").cast(pl.Float64) for name in names}
    totals = units.select(value.sum().alias(name) for name, value in values.items())
    ratio = totals.select(ratio_of({name: pl.col(name) for name in names}, measure).alias(measure)).item()
    others = {name: pl.lit(totals[name].item()) - value for name, value in values.items()}
    return by_influence(units.with_columns(ratio_of(others, measure).alias(WITHOUT)), ratio)


def by_influence(units: pl.DataFrame, ratio: float | None) -> pl.DataFrame:
    """Units with `influence`, the ratio of all less `without`; the largest come first, equal ones keep their order.

    Args:
        units: One row per unit, with the column `without`.
        ratio: The ratio of all units.
    """
    influence = (pl.lit(ratio, dtype=pl.Float64) - pl.col(WITHOUT)).alias(INFLUENCE)
    return units.with_columns(influence).sort(
        pl.col(INFLUENCE).abs(), descending=True, nulls_last=True, maintain_order=True
    )


# What the numbers of a stage rest on, as data: which units are independent, and what grows with their number.
#
# `thresher plan` reads it: how many units an interval or a test needs follows from the published numbers and from
# this.


@dataclass(frozen=True)
class Counted:
    """What a row of results tells the number of.

    Attributes:
        noun: What it is, several of them.
        columns: The columns whose sum the number is; it is not known where a row lacks one of them.
        is_listed: Whether every plan tells of it; else only those of metrics that rest on it.
    """

    noun: str
    columns: tuple[str, ...]
    is_listed: bool = True


def nouns_of(ratios: Iterable[Ratio], counts: Iterable[Counted]) -> dict[str, str]:
    """What ratios are over, by their names: the noun of what is counted by the outcomes of each."""
    nouns = {frozenset(counted.columns): counted.noun for counted in counts}
    return {ratio.name: nouns[frozenset(ratio.outcomes)] for ratio in ratios}


@dataclass(frozen=True)
class Labelled:
    """A sample that people check.

    Attributes:
        metric: The number that it gives.
        table: The table that has it.
        labels: The column with the number of checked rows.
        right: The column with the number of right ones among them.
        population: The column, beside the estimate, with the number of rows that the sample is drawn from.
        estimate: The metric that estimates the same without labels.
    """

    metric: str
    table: str
    labels: str
    right: str
    population: str
    estimate: str


@dataclass(frozen=True)
class SampleSizes:
    """What the numbers of a stage rest on.

    Attributes:
        nouns: What is independent, several of them, by the column that identifies it; values of other columns are
            clusters.
        unit: The column that identifies units where the record of the run does not say what is independent.
        units: The column that tells the number of units, by the column that identifies them.
        inputs: The input with a row for each unit, by that column: for the total, where no column tells their number.
        counts: What else there is more of with more units; of those with one noun the first that a row tells.
        rests_on: The noun of what a share is over, by metric.
        scales: How limits are made, by metric.
        other_scale: How limits of all other metrics are made; None: these are not planned.
        bounds: Where limits are cut off, for scales that do not end there.
        clusters: The table that tells the effective number of clusters of every group; empty: units are all alike.
        sized_by: The noun of the rows that make the size of a cluster there; empty: others than any ratio is over.
        has_groups: Whether many units are put into groups.
        is_paired: Whether its numbers are differences of two systems on the same units.
        labelled: The sample that people check, if it draws one.
    """

    nouns: Mapping[str, str]
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: tuple[Counted, ...] = ()
    rests_on: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    other_scale: Scale | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    clusters: str = ""
    sized_by: str = ""
    has_groups: bool = True
    is_paired: bool = False
    labelled: Labelled | None = None


# Stages whose input can be the tables of other stages.


@dataclass(frozen=True)
class UpstreamStage:
    """A stage whose tables another stage reads.

    Attributes:
        name: Its name.
        kind: Its task.
        by: Its groupings.
        folder: The folder of its run.
        omitted: Its tables that were not made, with the reason.
        measures: Measures that it was asked for by name, columns of its units.
        cluster: The column that its key `cluster` names, the first of two.
        cluster_order: Its key `cluster_order`: the column by which these follow each other in time.
    """

    name: str
    kind: str
    by: tuple[tuple[str, ...], ...]
    folder: Path
    omitted: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    cluster: str | None = None
    cluster_order: str | None = None

    def file(self, table: str) -> str:
        """Path of one of its tables.

        Raises:
            DataError: the table was not made.
        """
        if table in self.omitted:
            message = f"stage {self.name!r} did not make the table {table}, which holds the units to compare"
            raise DataError(message, remedy=f"The reason: {self.omitted[table]}.")
        return str(self.folder / table / f"{self.name}.parquet")


class UpstreamParameters(StageParameters):
    """Parameters of a stage whose input can be the tables of others.

    Attributes:
        of: Names of the stages, one or several.
        results: Results folder in which they were published; empty: they come earlier in the same config.
    """

    of: tuple[str, ...] = ()
    results: str = ""

    @field_validator("of", mode="before")
    @classmethod
    def _one_name(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("of")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            message = f"{', '.join(value)} names a stage twice"
            raise ValueError(message)
        return value

    @property
    def upstream(self) -> tuple[str, ...]:
        """The stages of the same config that have to run before."""
        return () if self.results else self.of

    @abstractmethod
    def with_upstream(self, upstream: Sequence[UpstreamStage]) -> Self:
        """The parameters with the tables of these stages as an input.

        Raises:
            ValueError: they have no such tables.
            DataError: one of them did not make its table.
        """
