"""How much more data is needed, as people and notebooks see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass
from ..report.planning.writing import markup_of, written

if TYPE_CHECKING:
    import polars as pl

    from ..report.planning.writing import Plans, SamplePlan


@dataclass(frozen=True, repr=False)
class Planned:
    """How much more data is needed: it shows itself as text, and in notebooks as HTML.

    Attributes:
        outcome: Everything that is said, as data.
    """

    outcome: Plans

    @property
    def plans(self) -> tuple[SamplePlan, ...]:
        """A plan for each stage that was asked for: `.sentence`, `.units`, `.factor` and more."""
        return self.outcome.plans

    @property
    def refused(self) -> dict[str, str]:
        """Why there is no plan, by stage."""
        return self.outcome.refused

    @property
    def table(self) -> pl.DataFrame:
        """One row for each thing that is planned, as `thresher plan --format csv` writes it."""
        return self.outcome.table

    def __repr__(self) -> str:
        """Say the same as `thresher plan`."""
        return written(self.outcome, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with a table, for notebooks."""
        return str(markup_of(self.outcome))
