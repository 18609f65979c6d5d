"""A folder with a small before/after input, and the one command that is tried on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.calls import Called, call
from running import run_stages
from storage.promises import Visible, assert_results_ok, attempts, sha256

SOURCES = ("noon", "dusk", "dawn")
N_EVENTS, N_PAIRS = 30, 500


def make_pairs(*, seed: int = 7) -> pl.DataFrame:
    """Pairs whose later half is more alike; scores have two decimals, so that many equal a threshold."""
    rng = np.random.default_rng(seed)
    lag = np.round(rng.uniform(-100.0, 100.0, N_PAIRS), 1)
    score = np.round(rng.gamma(2.0, 1.5, N_PAIRS) + np.where((lag >= 0) & (rng.random(N_PAIRS) < 0.5), 5.0, 0.0), 2)
    return pl.DataFrame(
        {
            "event_id": rng.integers(0, N_EVENTS, N_PAIRS),
            "article_id": np.arange(N_PAIRS),
            "score": score,
            "lag_hours": lag,
        }
    )


def make_events() -> pl.DataFrame:
    """Events that were compared with more articles than are stored as pairs."""
    ids = np.arange(N_EVENTS)
    return pl.DataFrame(
        {
            "event_id": ids,
            "n_before": np.full(N_EVENTS, 60),
            "n_after": np.full(N_EVENTS, 60),
            "source": [SOURCES[index % len(SOURCES)] for index in ids],
        }
    )


def toml(value: object) -> str:
    """A value as TOML, tables inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, Path):
        return toml(str(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_config(path: Path, *, top: str = "", **keys: Any) -> Path:  # noqa: ANN401 - any TOML value
    """Write a config: the usual stage with some keys replaced, or left out where None."""
    stage = {
        "kind": "before_after",
        "pairs": "pairs.parquet",
        "events": "events.parquet",
        "by": ["source"],
        "thresholds": {"start": 1.0, "stop": 10.0, "count": 19},
        "uncertainty": "none",
    } | keys
    lines = [f"{toml(key)} = {toml(value)}" for key, value in stage.items() if value is not None]
    path.write_text(f"{top}\n[[stages]]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


class Workplace:
    """Inputs, config and results in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pairs, self.events = make_pairs(), make_events()
        self._checked: tuple[bytes, Visible] | None = None
        self._unpublished: Path | None = None
        self.pairs.write_parquet(folder / "pairs.parquet")
        self.events.write_parquet(folder / "events.parquet")

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def config(self, *, top: str = "", file: str = "c.toml", **keys: Any) -> Path:  # noqa: ANN401 - any TOML value
        return write_config(self.folder / file, top=top, **keys)

    def run(self, *words: str, **keys: Any) -> Called:  # noqa: ANN401
        return call("run", self.config(**keys), *words)

    def publish(self, *words: str, **keys: Any) -> Visible:  # noqa: ANN401
        """Run, and see that it was published whole."""
        called = self.run(*words, **keys)
        assert called.code == 0, called.err
        visible = assert_results_ok(self.results)
        self._unpublished = None
        self._checked = (self.results / "CURRENT").read_bytes(), visible
        return visible

    def evaluate(self, **keys: Any) -> dict[str, str]:  # noqa: ANN401
        """Make the tables of a run without publishing them, for tests of what is in them; their hashes by path."""
        folder = self._unpublished = run_stages(self.config(**keys)).path
        return {path.relative_to(folder).as_posix(): sha256(path) for path in sorted(folder.rglob("*.parquet"))}

    def refuse(self, code: int, *words: str, **keys: Any) -> Called:  # noqa: ANN401
        """Run, and see it fail: the code, one error that holds the words, results as before."""
        before = assert_results_ok(self.results) if (self.results / "CURRENT").exists() else None
        called = self.run(**keys)
        assert_error(called, code, *words)
        if before is None:
            assert not (self.results / "catalog.duckdb").exists()
        else:
            assert assert_results_ok(self.results) == before
        if code != 78 and self.results.exists():
            assert (attempts(self.results)[-1]["status"], attempts(self.results)[-1]["exit"]) == ("failed", code)
        return called

    def table(self, name: str, stage: str = "before_after") -> pl.DataFrame:
        """A result table of the visible run, or of the run that was made last without publishing it."""
        folder = self._unpublished or self.visible().folder
        return pl.read_parquet(folder / name / f"{stage}.parquet")

    def visible(self) -> Visible:
        """The visible run, which is checked once."""
        pointer = (self.results / "CURRENT").read_bytes()
        if self._checked is None or self._checked[0] != pointer:
            self._checked = pointer, assert_results_ok(self.results)
        return self._checked[1]

    def rows_by_status(self, source: str = "pairs") -> dict[str, int]:
        """What became of the rows of an input; their sum is the rows in the files."""
        rows = self.table("inputs").filter(pl.col("input") == source)
        rows_by_status = dict(zip(rows["status"].to_list(), rows["n_rows"].to_list(), strict=True))
        assert rows["rows_in"].unique().to_list() == [sum(rows_by_status.values())]
        return rows_by_status


def assert_error(called: Called, code: int, *words: str) -> None:
    """One error on stderr that holds the words and the exit code, nothing on stdout."""
    assert called.code == code, (called.code, called.err)
    assert called.out == ""
    assert called.err.count("error: ") == 1, called.err
    assert called.err.rstrip().endswith(f"[exit {code}]"), called.err
    assert "Traceback" not in called.err
    for word in words:
        assert word in called.err, (word, called.err)


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)
