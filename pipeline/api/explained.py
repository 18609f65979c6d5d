"""Where a number of a result in memory comes from, as people and notebooks see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass
from ..report.explain.writing import markup_of, written

if TYPE_CHECKING:
    import polars as pl

    from ..report.explain.explaining import Explanation


@dataclass(frozen=True, repr=False)
class Explained:
    """Where a number comes from: it shows itself as text, and in notebooks as HTML.

    Attributes:
        explanation: Everything that is said, as data.
    """

    explanation: Explanation

    @property
    def sections(self) -> dict[str, pl.DataFrame]:
        """The rows behind the number by name of the section, such as `false_positives`; none of frames."""
        return {section.name: section.rows for section in self.explanation.sections}

    def __repr__(self) -> str:
        """Say the same as `thresher explain`."""
        return written(self.explanation, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with tables, for notebooks."""
        return str(markup_of(self.explanation))
