"""The node of areas under curves, which need every score."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..errors import Note
from ..queries.load import expand, load
from ..records import dataclass
from ..tables.schemas import COUNT_TABLE
from .area_work import AreaRequest, areas, rows_in_order
from .nodes import Phase, Statement
from .score_cells import IN_CELLS, SCORED, rows_in_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..engines.engine import Engine
    from .nodes import Progress


@dataclass(frozen=True)
class Areas(AreaRequest):
    """Areas under the curves of scored and labelled rows, from every score; they become the table `areas`."""

    phase: ClassVar[Phase] = Phase.AREAS
    into: ClassVar[str] = "areas"

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add the table; how many positives and negatives a group has tell the counts."""
        counts = progress.counts
        table, in_order = areas(engine, self, counts.groupings, counts.by, counts[COUNT_TABLE], progress.cells)
        progress.tables[self.into] = table
        if self.exact and not in_order:
            words = (
                f"areas are the middle of certified bounds (method binned) and not exact: {engine.name} hands over at "
                f"most {engine.most_in_order:,} rows in order (driver_rows)"
            )
            progress.warnings.append(Note(words))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows, and what is asked of them."""
        yield Statement(f"relation {SCORED}", self.rows, SCORED)
        if self.exact:
            yield Statement("rows in order, for areas", rows_in_order(self, by), function=areas)
            return
        yield Statement(f"relation {IN_CELLS}, every score a cell", rows_in_cells(None, missed=self.missed), IN_CELLS)
        cells = load("areas/weighted_cells" if self.weighted else "areas/cells")
        title = f"counts in cells that are made finer until bounds are narrower than {self.width:g}"
        yield Statement(title, expand(cells, by))
        yield Statement("extremes of cells, where counts leave wider bounds", expand(load("areas/extremes"), by))
