"""Whose fault it is: that of a predicate, of a file or of the system."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from cli.calls import spawn
from running import rows_by_status, run_before_after

from pipeline.base.errors import ConfigError, DataError, ThresherError
from pipeline.engines.engine import QueryThread
from pipeline.sources.predicates import parse_predicate

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = pl.DataFrame(
    {
        "event_id": [1, 2, 3],
        "score": [0.9, 0.2, 0.7],
        "lag_hours": [1.0, -1.0, 2.0],
        "big": [1, 2, 2**63 - 1],
        "small": pl.Series([1, 2, 255], dtype=pl.UInt8),
        "text": ["1", "2", "x["],
        "day": [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
    }
)
UNCOMPUTABLE = [
    "big * 1000 > 5",
    "epoch_ns = 1 OR big + big > 0",
    "small + small > 2",
    "CAST(text AS INTEGER) > 1",
    "CAST(text AS DATE) > day",
    "regexp_matches('a', text)",
    "regexp_matches(text, '[')",
    "day + INTERVAL 999999 YEAR > day",
    "big % 0 = 1",
    "big // 0 = 1",
    "big << 70 > 1",
    "text IN (1, 2)",
    "text LIKE 'a' ESCAPE 'ab'",
    "substring(text, big, 1) = 'x'",
]


@pytest.mark.parametrize("where", UNCOMPUTABLE)
def test_a_predicate_that_fails_for_a_row_is_named_with_its_input(tmp_path: Path, where: str) -> None:
    frame = PAIRS.with_columns(epoch_ns=pl.lit(0))
    with pytest.raises(DataError, match="input pairs: where") as raised:
        run_before_after(tmp_path, {"pairs": frame}, pairs={"where": where}, thresholds=[0.5])
    assert raised.value.code == 65


def test_a_predicate_of_another_input_is_named(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1, 2, 3], "n_before": [9, 9, 9], "n_after": [9, 9, 2**62]})
    frames = {"pairs": PAIRS, "events": events}
    where = {"pairs": {"where": "big > 0"}, "events": {"where": "n_after * 8 > 5"}}
    with pytest.raises(DataError, match=r"input events: where \(n_after \* 8 > 5\) cannot be computed"):
        run_before_after(tmp_path, frames, **where, thresholds=[0.5])


def test_a_predicate_that_guards_itself_is_computed(tmp_path: Path) -> None:
    where = "CASE WHEN big < 1000 THEN big * 1000 > 1500 ELSE FALSE END"
    run = run_before_after(tmp_path, {"pairs": PAIRS}, pairs={"where": where}, thresholds=[0.5])
    assert rows_by_status(run) == {"used": 1, "where": 2}


def test_a_broken_page_is_not_laid_at_the_door_of_the_predicate(tmp_path: Path) -> None:
    PAIRS.write_parquet(tmp_path / "p.parquet", compression="snappy")
    content = bytearray((tmp_path / "p.parquet").read_bytes())
    content[4:400] = b"\xa5" * 396
    (tmp_path / "p.parquet").write_bytes(content)
    source = {"path": str(tmp_path / "p.parquet"), "where": "big > 0"}
    with pytest.raises(DataError) as raised:
        run_before_after(tmp_path, {}, pairs=source, thresholds=[0.5])
    assert "where" not in raised.value.message


@pytest.mark.parametrize("depth", [200, 500, 3000, 20000])
@pytest.mark.parametrize(
    "pieces", [("(", "big = 1", ")"), ("NOT ", "TRUE", ""), ("CASE WHEN TRUE THEN ", "TRUE", " END")]
)
def test_a_predicate_that_is_nested_too_deep_is_a_fault_of_the_config(depth: int, pieces: tuple[str, str, str]) -> None:
    before, middle, after = pieces
    with pytest.raises(ConfigError, match="input pairs: where is nested too deep") as raised:
        parse_predicate(before * depth + middle + after * depth, name="pairs")
    assert len(raised.value.message) < 400


@pytest.mark.parametrize("where", ["big" + " + 1" * 3000 + " > 0", " OR ".join(f"big = {n}" for n in range(2000))])
def test_a_long_predicate_is_computed_or_refused(tmp_path: Path, where: str) -> None:
    try:
        run = run_before_after(tmp_path, {"pairs": PAIRS}, pairs={"where": where}, thresholds=[0.5])
        assert rows_by_status(run) == {"used": 2, "where": 1}
    except (ConfigError, DataError) as error:
        assert "input pairs: where" in error.message  # noqa: PT017 - either way is right


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('IO Error: Could not read from file "a.parquet": Input/output error', 74),
        ('{"exception_message":"Could not read","errno":"5"}', 74),
        ('IO Error: Cannot open file "a.parquet": Too many open files', 74),
        ("IO Error: Cannot allocate memory", 71),
        ('IO Error: Cannot open file "a.parquet": Permission denied', 77),
        ("IO Error: No magic bytes found", 65),
    ],
)
def test_an_error_of_the_system_while_rows_are_read_has_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise duckdb.IOException(text)

    monkeypatch.setattr(QueryThread, "result", fail)
    with pytest.raises(ThresherError) as raised:
        run_before_after(tmp_path, {"pairs": PAIRS}, thresholds=[0.5])
    assert raised.value.code == code


def test_too_many_open_files_while_inputs_are_read_is_told_so(tmp_path: Path) -> None:
    for number in range(3):
        PAIRS.write_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "c.toml").write_text('[[stages]]\nkind = "before_after"\npairs = "*.parquet"\nthresholds = [0.5]\n')
    script = (
        "import os, sys, resource\n"
        "import pipeline.runs.runner, pipeline.cli.app, pyarrow.parquet\n"
        "from pipeline.sources import finding\n"
        "original = finding.open_file\n"
        "def lowered(*words, **keys):\n"
        "    limit = len(os.listdir('/proc/self/fd')) - 1\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "    try:\n"
        "        return original(*words, **keys)\n"
        "    finally:\n"
        "        high = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (high, high))\n"
        "finding.open_file = lowered\n"
        "sys.argv[0] = 'thresher'\n"
        "pipeline.cli.app.main()\n"
    )
    called = spawn("run", tmp_path / "c.toml", script=script)
    assert called.code == 74, called.err
    assert "input pairs: reading" in called.err
    assert "Too many open files" in called.err
