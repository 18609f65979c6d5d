"""Build the pages as a site: python docs/site/build.py [FOLDER]; every link and anchor is checked.

The columns of the tables are not in the checkout: they are added to results.md from the contracts of the tables.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.base.run_tables import ATTEMPTS, BINDINGS, GATES, INPUTS, METRICS, RECORD_TABLES, RUNS
from pipeline.base.schemas import LEADING
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pipeline.base.schemas import Column

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()(?:\.\./)*(docs/|configs/|sql/|CHANGELOG\.md|README\.md|CONTRIBUTING\.md)([^)]*)")
RUN_TABLES = (INPUTS, BINDINGS, METRICS, GATES, RUNS, ATTEMPTS, *RECORD_TABLES)
HEAD = "| column | type | NULL | meaning |\n|---|---|---|---|\n"


def main() -> int:
    """Copy the pages to where links between them hold, and build them there."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        copy(source / "pages")
        shutil.copy(ROOT / "docs" / "site" / "mkdocs.yml", source)
        command = [
            "build",
            "--strict",
            "--quiet",
            "--config-file",
            str(source / "mkdocs.yml"),
            "--site-dir",
            str(target),
        ]
        done = subprocess.run([sys.executable, "-m", "mkdocs", *command], check=False)
    print(target / "index.html")
    return done.returncode


def copy(pages: Path) -> None:
    """Copy docs, README, change log and configs into one folder, with their links."""
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("site", "__pycache__"))
    shutil.copytree(ROOT / "configs", pages / "configs")
    shutil.copytree(ROOT / "sql", pages / "sql", ignore=shutil.ignore_patterns("*.sql"))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, pages)
    shutil.copy(ROOT / "README.md", pages / "index.md")
    results = pages / "results.md"
    results.write_text(with_columns(results.read_text("utf-8")), "utf-8")
    for page in pages.rglob("*.md"):
        depth = len(page.relative_to(pages).parts) - 1
        page.write_text(LINK.sub(lambda link, up="../" * depth: up + _here(link), page.read_text("utf-8")), "utf-8")


def _here(link: re.Match[str]) -> str:
    """Where a target lies in the copy, from its root."""
    target = {"docs/": "", "README.md": "index.md"}.get(link[1], link[1])
    return target + link[2]


def documented() -> dict[str, tuple[Column, ...]]:
    """The columns of every table, by the heading of its section in results.md."""
    stages = (table for entry in STAGES for table in entry.load().tables)
    tables = {table.name: table.columns for table in (*stages, *RUN_TABLES)}
    return {"Conventions of all tables": LEADING, **tables}


def rows(columns: tuple[Column, ...]) -> str:
    """The table of some columns in Markdown, without its head."""
    return "".join(
        f"| `{column.name}` | {column.type} | {column.when_null or 'no'} | {column.said} |\n" for column in columns
    )


def with_columns(text: str) -> str:
    """The page results.md with the columns of each table at the end of its section.

    Raises:
        ValueError: a table has no section.
    """
    for heading, columns in documented().items():
        section = re.search(rf"^#+ {re.escape(heading)}\n(?:(?!#).*\n?)*", text, re.MULTILINE)
        if section is None:
            message = f"docs/results.md has no section {heading}"
            raise ValueError(message)
        made = f"{section[0].rstrip()}\n\n{HEAD}{rows(columns)}\n"
        text = text[: section.start()] + made + text[section.end() :]
    return text


if __name__ == "__main__":
    sys.exit(main())
