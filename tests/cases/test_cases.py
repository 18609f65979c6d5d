from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
import sqlglot.expressions as exp
from running import run_stages
from spark import through_spark

import pipeline
from cases.reading import case_folders, case_name, prepare, read_expected
from pipeline.base.dialect import render
from pipeline.engines import duckdb as engine
from pipeline.sources.finding import Listing
from pipeline.sources.frames import Frame
from pipeline.sources.parquet_files import DataFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.config import Config
    from pipeline.runs.stage_results import Run

FOLDERS = case_folders()
PUBLISHED = {folder.parent.name: folder for folder in FOLDERS}.values()
TOLERANCE = 1e-12


@pytest.fixture(scope="module", params=FOLDERS, ids=case_name)
def case(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def plain(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of a case as it stands, which the tests here only read; published for one case of every stage."""
    run = pipeline.run if case in PUBLISHED else run_stages
    return run(prepare(case, tmp_path_factory.mktemp("plain")))


def read(run: Run, table: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((run.path / table).glob("*.parquet"))])


def assert_equal(actual: Any, expected: Any, place: str) -> None:  # noqa: ANN401 - cells
    if isinstance(expected, float):
        assert isinstance(actual, float), place
        assert abs(actual - expected) <= TOLERANCE * max(1.0, abs(expected)), f"{place}: {actual} is not {expected}"
    else:
        assert actual == expected, place


def test_results_are_as_expected(case: Path, plain: Run) -> None:
    tables = sorted((case / "expected").glob("*.csv"))
    assert tables, "a case expects at least one table"
    for path in tables:
        actual = read(plain, path.stem)
        expected = read_expected(path, actual)
        assert actual.height == len(expected), path.stem
        for number, (found, row) in enumerate(zip(actual.to_dicts(), expected, strict=True), start=1):
            for name, value in row.items():
                assert_equal(found[name], value, f"{path.stem}, row {number}, {name}")


FORMS: tuple[Callable[[pl.DataFrame], object], ...] = (
    lambda frame: frame,
    lambda frame: frame.lazy(),
    lambda frame: frame.to_arrow(),
    lambda frame: frame.to_arrow().to_reader(),
    lambda frame: duckdb.from_arrow(frame.to_arrow()),
)


def in_frames(config: Config) -> Config:
    """The same config with a frame in the place of every file, each of another form; folder names stay paths."""
    stages, form = [], cycle(FORMS)
    for configured in config.stages:
        inputs = {}
        for contract in configured.stage.inputs:
            spec = getattr(configured.params, contract.name)
            files = Listing(spec, config.base, name=contract.name).opened().files if spec is not None else ()
            paths = [file.path for file in files if isinstance(file, DataFile) and not file.partitions]
            if paths and len(paths) == len(files):
                frames = tuple(Frame(next(form)(pl.read_parquet(path))) for path in paths)
                inputs[contract.name] = spec.model_copy(update={"path": frames})
        stages.append(replace(configured, params=configured.params.model_copy(update=inputs)))
    return replace(config, stages=tuple(stages))


@pytest.mark.first_cases(1)
def test_order_and_form_of_the_rows_and_the_way_through_spark_change_no_byte(
    case: Path, plain: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are mixed over files, in every other case over frames, and every statement takes the way through Spark.

    Relations, checks and counts take it, of Python, too.
    """
    travelled = 0

    def detour(tree: exp.Expr, *more: Any, **options: Any) -> str:  # noqa: ANN401 - as render
        nonlocal travelled
        if tree.find(exp.ReadParquet) or isinstance(tree, exp.Set):  # files are read and named in one dialect
            return render(tree, *more, **options)
        tree = tree.copy()
        if isinstance(tree, exp.Create):
            tree.set("expression", through_spark(tree.expression))
        else:
            tree = through_spark(tree)
        travelled += 1
        return render(tree, *more, **options)

    monkeypatch.setattr(engine, "render", detour)
    config = prepare(case, tmp_path, shuffle=1)
    mixed = run_stages(in_frames(config) if FOLDERS.index(case) % 2 else config)
    expected = contents(plain)
    assert any(path.startswith("counts/") for path in expected)
    assert contents(mixed) == expected
    assert statuses(mixed).equals(statuses(plain))
    assert travelled > 0


def statuses(run: Run) -> pl.DataFrame:
    """What became of the rows of every input, whatever the number of its files."""
    return read(run, "inputs").drop("n_files")


def contents(run: Run) -> dict[str, bytes]:
    """The bytes of every table but `inputs`, which tells files apart."""
    files = sorted(path for path in run.path.rglob("*.parquet") if path.parent.name != "inputs")
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}
