"""Stages whose input can be the tables of other stages."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, Self

from pydantic import field_validator

from ..errors import DataError
from ..records import dataclass
from .parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


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
