"""The tables of columns in docs/results.md, made from the contracts of the result tables.

    python tests/documenting.py

writes them into the page, where a test compares them with what this makes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.stages import STAGES
from pipeline.tables.run_tables import ATTEMPTS, BINDINGS, INPUTS, METRICS, RECORD_TABLES, RUNS
from pipeline.tables.schemas import LEADING

if TYPE_CHECKING:
    from pipeline.tables.schemas import Column

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
RUN_TABLES = (INPUTS, BINDINGS, METRICS, RUNS, ATTEMPTS, *RECORD_TABLES)
HEAD = "| column | type | NULL | meaning |\n|---|---|---|---|\n"
ROWS = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)


def documented() -> dict[str, tuple[Column, ...]]:
    """The columns of every table of which the page has a section, by the heading of that section."""
    stages = (table for entry in STAGES for table in entry.load().tables)
    tables = {table.name: table.columns for table in (*stages, *RUN_TABLES)}
    return {"Conventions of all tables": LEADING, **tables}


def rows(columns: tuple[Column, ...]) -> str:
    """The table of some columns in Markdown, without its head."""
    return "".join(
        f"| `{column.name}` | {column.type} | {column.when_null or 'no'} | {column.said} |\n" for column in columns
    )


def with_tables(text: str) -> str:
    """The page with the tables that its columns should have.

    Raises:
        ValueError: a table has no section, or its section no table of columns.
    """
    for heading, columns in documented().items():
        start = re.search(rf"^#+ {re.escape(heading)}\n", text, re.MULTILINE)
        head = text.find(HEAD, start.end()) if start else -1
        below = re.compile(r"^#", re.MULTILINE).search(text, start.end()) if start else None
        if head < 0 or (below is not None and below.start() < head):
            message = f"docs/results.md has no section {heading} with a table of columns"
            raise ValueError(message)
        begin = head + len(HEAD)
        old = ROWS.match(text, begin)
        text = text[:begin] + rows(columns) + text[old.end() if old else begin :]
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), encoding="utf-8")
