"""In a Jupyter kernel without ipywidgets a run is published and its results are opened."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jupyter_client.manager import start_new_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runs.inputs.workplace import Workplace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Runs a cell in a kernel; returns what it shows."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(tmp_path),
        "JUPYTER_RUNTIME_DIR": str(tmp_path),
    }
    manager, client = start_new_kernel(kernel_name="python3", env=environment)

    def execute(text: str) -> str:
        shown: list[str] = []

        def hear(message: dict[str, dict[str, object]]) -> None:
            content = message["content"]
            shown.extend(str(content[name]) for name in ("text", "data", "ename", "evalue") if name in content)

        client.execute_interactive(text, output_hook=hear, timeout=120)
        return "\n".join(shown)

    try:
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_run_is_published_and_opened_in_a_kernel(workplace: Workplace, cell: Callable[[str], str]) -> None:
    assert find_spec("ipywidgets") is None, "the test shows nothing beside ipywidgets"
    assert (
        cell(f"import thresher\nthresher.run({str(workplace.config())!r}).status") == "{'text/plain': \"'published'\"}"
    )
    opened = f"with thresher.open_results({str(workplace.results)!r}) as connection:\n"
    assert cell(f"{opened}    print(len(connection.sql('FROM before_after_estimates').fetchall()))") == "76\n"


def test_the_tutorial_runs_from_top_to_bottom(cell: Callable[[str], str], tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
    cell(f"import os; os.chdir({str(tmp_path)!r})")
    shown = [cell("".join(block["source"])) for block in notebook["cells"] if block["cell_type"] == "code"]
    assert not [text for text in shown if "Error" in text]
    assert "<svg" in shown[1]
    assert "image/svg+xml" in shown[3]
    assert "shape: (2, 3)" in shown[-1]
