"""A published run whose group names are hostile, its report, and one browser for all tests of the page."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import stage_config

from pipeline.report.page import write_report
from pipeline.report.published import latest_run
from pipeline.runs import runner
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

COLUMN = "<i>so.ur[ce]</i>"
HOSTILE = [
    "</script><img src=x onerror=window.harm=1>",
    "line\nbreak",
    "\x1b[31mred",
    "all",
    "a, b",
    '"quoted" & <b>bold</b>',
    "null",
    None,
    "{{7*7}}",
    "datum.x",
]
ROWS = 2000


@dataclass(frozen=True)
class Published:
    results: Path
    report: Path


def predictions(seed: int) -> pl.DataFrame:
    """Scores of labelled rows of groups with hostile names; the last group has no positive row."""
    random = np.random.default_rng(seed)
    groups = random.integers(0, len(HOSTILE), ROWS)
    positive = (random.random(ROWS) < 0.4) & (groups != len(HOSTILE) - 1)
    score = np.clip(random.normal(0.35 + 0.3 * positive, 0.15), 0, 1)
    names = [HOSTILE[group] for group in groups]
    return pl.DataFrame({"score": score, "label": positive, COLUMN: names})


def publish(folder: Path, seed: int, **keys: Any) -> Path:  # noqa: ANN401
    """Publish a run of threshold_sweep; return its results folder."""
    settings = {"by": [[], [COLUMN]], "thresholds": {"start": 0, "stop": 1, "count": 21}} | keys
    config = stage_config(folder, "threshold_sweep", {"predictions": predictions(seed)}, **settings)
    runner.run(parse_config(config, base=folder, origin=str(folder / "nightly.toml")))
    return folder / "results"


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Two runs, of which the second has another boundary; and the report of the second."""
    folder = tmp_path_factory.mktemp("report")
    publish(folder, seed=1)
    results = publish(folder, seed=2, boundary=">")
    return Published(results, write_report(latest_run(results), results))


@dataclass
class Opened:
    """A page in the browser, with what it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def draw_all(self) -> None:
        """Scroll through the page until every chart is live."""
        for number in range(self.page.locator(".chart").count()):
            self.page.locator(".chart").nth(number).scroll_into_view_if_needed()
        self.page.wait_for_selector(".chart:not(.live)", state="detached")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1280, height: int = 900, **options: Any) -> Iterator[Opened]:  # noqa: ANN401
    """Open a page from its file."""
    with browser.new_context(viewport={"width": width, "height": height}, **options) as context:
        page = context.new_page()
        result = Opened(page)
        page.on("console", lambda message: result.said.append(message.text))
        page.on("pageerror", lambda error: result.said.append(str(error)))
        page.on("dialog", lambda dialog: result.said.append(dialog.message))
        page.on("request", lambda request: result.asked.append(request.url))
        page.goto(path.as_uri())
        yield result
