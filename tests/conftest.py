"""Settings of all tests: hypothesis profiles, the real data, and runs in which nothing may be skipped."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import SimpleNamespace
from typing import TYPE_CHECKING

import one_thread  # noqa: F401 - before anything else loads Polars

# isort: split
import duckdb
import pytest
from filelock import FileLock
from hypothesis import settings
from kept_trees import kept_trees_stay_as_they_are  # noqa: F401 - a fixture of the whole session
from one_database import OneDatabase
from tiers import WIDE_FIXTURES, is_wide

import pipeline
from pipeline.engines import duckdb as engine
from pipeline.storage import catalog

if TYPE_CHECKING:
    from collections.abc import Generator

NO_SKIPS = bool(os.environ.get("THRESHER_NO_SKIPS"))
UNMEASURED = pytest.StashKey[bool]()
TESTS = Path(__file__).parent
SHARING = ("api", "fuzz", "metrics", "plan", "report", "runs", "sources", "stages", "storage")
STARTING = (  # tests of what an engine may read, and of its start: among the others, but with databases of their own
    "fuzz/test_configs.py",
    "runs/faults",
    "runs/inputs/test_files.py",
    "runs/inputs/test_forms.py",
    "runs/inputs/test_names.py",
    "runs/inputs/test_places.py",
    "runs/test_forks.py",
    "runs/test_rendering.py",
    "sources/remote",
    "sources/test_files.py",
    "sources/test_finding.py",
    "sources/test_predicate_faults.py",
)

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("few", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("search", deadline=None, derandomize=False, max_examples=1000, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Generator[None]:
    """What tests write in this process need not survive a loss of power; processes they start do wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_database_writes_all_catalogs() -> Generator[None]:
    """To start a database takes as long as to fill a small catalog, and to make its tables several times as long."""
    idle: list[duckdb.DuckDBPyConnection] = []

    @contextmanager
    def connect(name: str) -> Generator[duckdb.DuckDBPyConnection]:
        connection = idle.pop() if idle else duckdb.connect(name)
        connection.execute("PRAGMA disable_optimizer")  # which takes half the time of statements on a few rows
        yield connection  # one that an error ends is not used again
        if len(connection.execute("SHOW DATABASES").fetchall()) == 1:
            idle.append(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "duckdb", SimpleNamespace(connect=connect, Error=duckdb.Error))
        patch.setattr(catalog, "_MOST_TEMPLATES", 64)
        yield
    for connection in idle:
        connection.close()


@pytest.fixture(scope="session")
def _one_database() -> Generator[OneDatabase]:
    with closing(OneDatabase()) as database:
        yield database


@pytest.fixture(autouse=True, scope="module")
def _engines_share_a_database(request: pytest.FixtureRequest, _one_database: OneDatabase) -> Generator[None]:
    """Let engines of tests be connections to one database, but for those that are about what locks a database."""
    with pytest.MonkeyPatch.context() as patch:
        path = request.node.path
        if any(path.is_relative_to(TESTS / name) for name in SHARING) and not any(
            path.is_relative_to(TESTS / name) for name in STARTING
        ):
            _one_database.share(patch)
        yield
    engine.forget_databases()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets, one folder each with its expected results."""
    folder = os.environ.get("THRESHER_REAL_DATA")
    if not folder:
        pytest.skip("THRESHER_REAL_DATA is not set: it names the folder of the real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def demo_as_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo with what it printed, made once for all workers; its lock is held to add to it or copy it."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / "demo"
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "printed.txt").exists():
            command = [sys.executable, "-m", "pipeline", "demo", "--quiet", "--output", str(folder)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            (folder / "printed.txt").write_text(printed)
    return folder


def _leaves_out_wide(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not wide")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property where the tests that users rely on are run alone."""
    if _leaves_out_wide(config) and not config.getoption("--hypothesis-profile"):
        settings.load_profile("few")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import files of tests that are left out as a whole."""
    return True if _leaves_out_wide(config) and is_wide(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the collector of garbage: nearly all that is made then lives to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out, and those in which no coverage is measured.

    Coverage costs much and adds nothing where random cases, real data and the later cases of a test run what small
    tests run.
    """
    cases: Counter[str] = Counter()
    for item in items:
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        first = item.get_closest_marker("first_cases")
        is_another_case = first is not None and cases[function] > first.args[0]
        fixtures = set(getattr(item, "fixturenames", ()))
        if is_another_case or is_wide(item.path) or fixtures & WIDE_FIXTURES:
            item.add_marker("wide")
        item.stash[UNMEASURED] = bool(is_another_case or item.get_closest_marker("fuzz") or "real_data" in fixtures)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spare the collector of garbage the modules and tests that live to the end: it would walk them again and again.

    It comes less often, too: trees of SQL are many objects for a short time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    """Let the interpreter end in silence: bindings of libraries report objects that are still there then as leaks."""
    gc.unfreeze()
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Switch the measuring of coverage on or off where it changes: the marker of pytest-cov switches for every test."""
    plugin = item.config.pluginmanager.getplugin("_cov")
    controller = plugin and plugin.cov_controller
    if controller is not None and controller.started == item.stash[UNMEASURED]:
        _import_everything()
        (controller.pause if controller.started else controller.resume)()
    return (yield)


@cache
def _import_everything() -> None:
    """Import every module before measuring is first switched off: its definitions are measured when it is imported."""
    for module in walk_packages(pipeline.__path__, "pipeline."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure where the test runs, so that it counts under xdist too."""
    if NO_SKIPS and report.outcome == "skipped":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"THRESHER_NO_SKIPS is set, so nothing may be skipped. {reason}"
