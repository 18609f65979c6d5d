"""What the examples of a page print: each is run as a reader would run it, from the first to the last.

    python tests/documenting.py docs/ranking.md …

writes it into the pages, where a test compares it with what is printed. Blocks of `sh` and `python` are run in a folder
that holds the demo as `demo`, those of `sql` are asked of the demo's results; a block of `text` right below shows what
was printed, with `[…]` for what is left out. A block below a line that ends with `NAME`: is a file of that name.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from cli.calls import call

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+)`:$")
LEFT_OUT = "[…]\n"


class Example(NamedTuple):
    """A block of code or a file of a page, and where the page shows what it prints."""

    language: str
    text: str
    file: str | None
    shown: tuple[int, int] | None


def examples(page: str) -> list[Example]:
    """The blocks of a page that are run or written, in their order."""
    found, made, shown = list(BLOCK.finditer(page)), [], None
    for block, below in zip(found, [*found[1:], None], strict=True):
        if shown is block:
            continue
        file = FILE.search(page[: block.start()].rstrip())
        prints = below is not None and below["language"] == "text" and not page[block.end() : below.start()].strip()
        shown = below if prints and not file else None
        made.append(Example(block["language"], block["text"], file and file[1], shown and shown.span("text")))
    return made


def written(page: str, folder: Path) -> str:
    """The page with what its examples print, in a folder that has the demo."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    outputs = [(example, _printed(example, folder, variables)) for example in examples(page)]
    for example, output in reversed(outputs):
        if example.shown is not None:
            start, end = example.shown
            page = page[:start] + (page[start:end] if _shows(page[start:end], output) else output) + page[end:]
    return page


def _shows(shown: str, output: str) -> bool:
    """Whether what a page shows is the output, but for what it leaves out."""
    pieces = shown.split(LEFT_OUT)
    return re.fullmatch(".*".join(map(re.escape, pieces)), output, re.DOTALL) is not None


def _printed(example: Example, folder: Path, variables: dict[str, Any]) -> str:
    if example.file:
        (folder / example.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / example.file).write_text(example.text, encoding="utf-8")
        return ""
    if example.language == "python":
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(example.text, "page", "exec"), variables)  # noqa: S102 - what people type
        return out.getvalue()
    if example.language == "sql":
        return call("query", folder / "demo" / "results", example.text).out
    return _typed(example.text, folder) if example.language == "sh" else ""


def _typed(text: str, folder: Path) -> str:
    """Standard output of commands; `thresher` is the package of this checkout."""
    function = f'thresher() {{ "{sys.executable}" -m pipeline "$@"; }}\n'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    words = ["bash", "-euo", "pipefail", "-c", function + text]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(text + done.stderr)
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        _typed("thresher demo --quiet --output demo", Path(place))
        for name in sys.argv[1:]:
            with tempfile.TemporaryDirectory(dir=place) as own:
                Path(own, "demo").symlink_to(Path(place, "demo"))
                Path(name).write_text(written(Path(name).read_text("utf-8"), Path(own)), encoding="utf-8")
