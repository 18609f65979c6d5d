"""Build the pages as a site: python docs/site/build.py [FOLDER]; every link and anchor is checked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()(?:\.\./)*(docs/|configs/|sql/|CHANGELOG\.md|README\.md|CONTRIBUTING\.md)([^)]*)")


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
    for page in pages.rglob("*.md"):
        depth = len(page.relative_to(pages).parts) - 1
        page.write_text(LINK.sub(lambda link, up="../" * depth: up + _here(link), page.read_text("utf-8")), "utf-8")


def _here(link: re.Match[str]) -> str:
    """Where a target lies in the copy, from its root."""
    target = {"docs/": "", "README.md": "index.md"}.get(link[1], link[1])
    return target + link[2]


if __name__ == "__main__":
    sys.exit(main())
