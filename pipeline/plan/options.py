"""What plans need to know of the parameters of a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..tables.groupings import Grouping


class Options(Protocol):
    """What the parameters of every stage say of counting."""

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings that results are asked for."""
        ...

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds in rising order; None: every distinct score is one, or there is none."""
        ...

    @property
    def invalid_scores(self) -> str:
        """What becomes of rows without a valid score: `error`, `drop` or `missed`."""
        ...

    @property
    def allow_empty(self) -> bool:
        """Whether zeros are published where nothing can be evaluated."""
        ...
