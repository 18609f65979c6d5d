"""Whole runs on Spark: from the command line, on a Spark Connect server, stopped, refused, and beyond the limits."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_stages, stage_config

import pipeline
from engines.spark.both_engines import differences
from pipeline.base.errors import DataError, UnavailableError
from pipeline.engines import spark_session
from pipeline.engines.engine import Resources
from pipeline.engines.spark_session import SparkSettings
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.runs.config import Config

START_SECONDS = 300
STOP_SECONDS = 30  # a start of Spark is not given up: on a loaded machine it takes most of this
N_ROWS = 3000
SWEEP = {"thresholds": {"start": 0, "stop": 1, "count": 11}, "by": [[], ["system"]]}


def predictions(rows: int = N_ROWS) -> pl.DataFrame:
    """Scores with two decimals more than thresholds have, of three systems."""
    rng = np.random.default_rng(5)
    score = rng.random(rows).round(4)
    label = rng.random(rows) < score
    return pl.DataFrame({"score": score, "label": label, "system": rng.choice(["a", "b", "ü`\"'"], rows)})


def config(folder: Path, settings: SparkSettings | None, frame: pl.DataFrame | None = None, **keys: Any) -> Config:  # noqa: ANN401
    """A sweep by system; on DuckDB without settings of Spark."""
    keys = SWEEP | keys
    document = stage_config(
        folder, "threshold_sweep", {"predictions": predictions() if frame is None else frame}, **keys
    )
    parsed = parse_config(document, base=folder)
    return parsed if settings is None else replace(parsed, engine="spark", spark=settings)


def areas(config: Config) -> pl.DataFrame:
    return read_table(run_stages(config), "threshold_sweep_areas", "threshold_sweep")


def test_areas_beyond_the_limit_have_certified_bounds_and_say_so(spark_settings: SparkSettings, tmp_path: Path) -> None:
    few = spark_settings.model_copy(update={"driver_rows": N_ROWS - 1})
    run = run_stages(config(tmp_path / "spark", few, width=1e-3, outcomes=False))
    bounded = read_table(run, "threshold_sweep_areas", "threshold_sweep")
    exact = areas(config(tmp_path / "duckdb", None))
    assert any("method binned" in text for text in (*run.stages[0].warnings, *run.stages[0].notes))
    assert bounded["method"].to_list() == ["binned"] * 4
    for area in ("average_precision", "roc_auc"):
        assert (bounded[f"{area}_min"].fill_null(0) <= exact[area]).all()
        assert (bounded[f"{area}_max"].fill_null(1) >= exact[area]).all()
        assert (bounded[f"{area}_max"] - bounded[f"{area}_min"]).max() <= 1e-3  # type: ignore[operator]


def test_rows_in_order_beyond_the_limit_are_refused_with_the_key(spark_settings: SparkSettings, tmp_path: Path) -> None:
    ranking = pl.DataFrame({"query_id": ["q"] * 6, "doc_id": list("abcdef"), "score": [6.0, 5, 4, 3, 2, 1]})
    relevance = pl.DataFrame({"query_id": ["q"] * 6, "doc_id": list("abcdef"), "relevance": [1, 0, 1, 0, 0, 1]})
    document = stage_config(tmp_path, "ranking", {"ranking": ranking, "relevance": relevance}, cutoffs=[2])
    few = spark_settings.model_copy(update={"driver_rows": 5})
    with pytest.raises(DataError, match=r"6 rows .* the limit is 5") as caught:
        run_stages(replace(parse_config(document, base=tmp_path), engine="spark", spark=few))
    assert "driver_rows" in str(caught.value)


def test_a_fault_that_a_pure_function_finds_on_a_worker_is_told_as_on_duckdb(
    spark_settings: SparkSettings, tmp_path: Path
) -> None:
    points = {"series_id": ["s"], "position": [3]}
    frames = {"predictions": pl.DataFrame(points), "annotations": pl.DataFrame(points | {"annotator_id": ["x"]})}
    document = stage_config(tmp_path, "change_points", frames, margin=1)
    parsed = parse_config(document, base=tmp_path)
    said = []
    for engine in ("duckdb", "spark"):
        (tmp_path / "predictions.parquet").write_bytes(b"PAR1 no more")
        with pytest.raises(DataError) as caught:
            run_stages(replace(parsed, engine=engine, spark=spark_settings))
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_file_that_breaks_while_it_is_read_is_named(spark_settings: SparkSettings, tmp_path: Path) -> None:
    checked = config(tmp_path, spark_settings)
    path = tmp_path / "predictions.parquet"
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)  # pages, not the footer
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        run_stages(checked)


def test_a_run_publishes_and_says_that_spark_reads_all_files(spark_settings: SparkSettings, tmp_path: Path) -> None:
    document = stage_config(tmp_path, "threshold_sweep", {"predictions": predictions(50)}, thresholds=[0.5])
    shutil.copy(tmp_path / "predictions.parquet", tmp_path / "predictions2.parquet")
    document["stages"][0]["predictions"] |= {"path": str(tmp_path / "*.parquet")}
    document["stages"][0]["duplicates"] = "keep"
    options = {"engine": "spark", "spark": spark_settings.model_dump(exclude_none=True)}
    published = pipeline.run(document | options)
    assert published.status == "published"
    assert any("all 2 files read, since Spark" in words for words in published.stages[0].reused)
    assert "pyspark" in (published.path / "run.json").read_text()
    assert pipeline.run(document | options).status == "unchanged"


@pytest.mark.usefixtures("spark_settings")
def test_no_server_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    nowhere = SparkSettings(remote=f"sc://127.0.0.1:{_free_port()}")
    with pytest.raises(UnavailableError, match=r"Spark cannot be used on sc://127\.0\.0\.1"):
        run_stages(config(tmp_path, nowhere))


@pytest.fixture
def server(spark_settings: SparkSettings, tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server on this machine, which ends with the test."""
    import pyspark

    port = _free_port()
    submit = [sys.executable, "-m", "pyspark.find_spark_home"]
    home = Path(subprocess.run(submit, check=True, capture_output=True, text=True).stdout.strip())
    assert home == Path(str(pyspark.__file__)).parent
    options = {name: str(value).lower() for name, value in spark_settings.options.items()}
    options |= {"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1"}
    options |= {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in options.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home)}
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        _wait_for(port, process, tmp_path / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text()}")


def test_a_spark_connect_server_gives_the_same_run(server: str, tmp_path: Path) -> None:
    on_duckdb = run_stages(config(tmp_path / "duckdb", None))
    on_server = run_stages(config(tmp_path / "connect", SparkSettings(remote=server)))
    assert differences(on_duckdb, on_server) == []
    rows = tmp_path / "duckdb" / "predictions.parquet"
    session = spark_session.started_session(SparkSettings(remote=server), Resources())
    session.read.parquet(str(rows)).createGlobalTempView("scored")
    for stored in ({"table": "global_temp.scored"}, f"file://{rows}"):
        document = {"kind": "threshold_sweep", "predictions": stored, **SWEEP}
        parsed = parse_config({"engine": "spark", "spark": {"remote": server}, "stages": [document]}, base=tmp_path)
        assert differences(on_duckdb, run_stages(parsed)) == [], stored


def test_a_client_is_closed_at_the_end_only_if_its_server_is_gone() -> None:
    closed: list[str] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        addresses = [f"sc://127.0.0.1:{port}" for port in (server.getsockname()[1], _free_port())]
        for address in addresses:
            client = SimpleNamespace(close=partial(closed.append, address))
            spark_session._leave(SimpleNamespace(client=client), address)
    assert closed == addresses[1:]


@pytest.mark.usefixtures("spark_settings")
def test_a_signal_stops_a_run_on_spark(tmp_path: Path) -> None:
    predictions().write_parquet(tmp_path / "predictions.parquet")
    (tmp_path / "slow.toml").write_text(
        'output = "results"\nengine = "spark"\n[spark]\nmaster = "local[1]"\n'
        '[[stages]]\nkind = "threshold_sweep"\nthresholds = [0.5]\n'
        'predictions = "predictions.parquet"\nuncertainty = "none"\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "run", "slow.toml", "--log-format", "json"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    time.sleep(4)  # Spark starts
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - begun < STOP_SECONDS
    assert not (tmp_path / "results" / "latest").exists()


def test_one_scan_of_cells_is_the_same(
    spark_settings: SparkSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stages.threshold_sweep.stage.MOST_SINGLE", 0)
    monkeypatch.setattr("pipeline.plan.area_work.MOST_CELLS", 16)
    keys: dict[str, Any] = {"thresholds": [0.1, 0.51234567], "method": "binned", "width": 0.01, "outcomes": False}
    runs = [
        run_stages(config(tmp_path / engine, settings, **keys))
        for engine, settings in (("duckdb", None), ("spark", spark_settings))
    ]
    assert differences(*runs) == []
    bounds = read_table(runs[1], "threshold_sweep_areas", "threshold_sweep")["log_likelihood_max"]
    assert bounds.null_count() == 0


@pytest.mark.parametrize("method", ["exact", "binned"])
def test_scores_that_no_integer_can_hold_are_counted(
    method: str, spark_settings: SparkSettings, tmp_path: Path
) -> None:
    scores = [1e300, -1e300, 5e-324, -0.0, 0.0, 0.5, 9.3e18, -9.3e18]
    frame = pl.DataFrame({"score": scores, "label": [True, False] * 4})
    keys = {"thresholds": {"start": -1, "stop": 1, "count": 5}, "by": [[]], "method": method}
    runs = [
        run_stages(config(tmp_path / engine, settings, frame, **keys))
        for engine, settings in (("duckdb", None), ("spark", spark_settings))
    ]
    assert differences(*runs) == []
