"""Set up a virtual environment from the lock files and run a task in it: python3 dev.py TASK.

It needs only Python 3.11 or later. The environment is in .venv: first what running needs, then what the tests and the
checks need, each from a lock file of its own when a task first asks for it. That of the lowest versions is in
.venv-lowest, that of the schedulers in .venv-schedulers. An environment is made anew when one of its lock files, the
project file or the Python version changes. tests/tiers.py says which tests belong to `test` and which to a change.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests"))

import tiers  # noqa: E402 - which stands beside the tests, and needs nothing that must be installed

if TYPE_CHECKING:
    from collections.abc import Iterable
RUNNING, TESTS = "requirements.lock", "requirements.dev.lock"
SPARK = "requirements.spark.lock"  # 450 MB, for the tests on Apache Spark alone
TO_RUN = (".venv", (RUNNING,))
NEWEST = (".venv", (RUNNING, TESTS))
WITH_SPARK = (".venv", (RUNNING, TESTS, SPARK))
LOWEST = (".venv-lowest", ("requirements.lowest.lock",))
SCHEDULERS = (".venv-schedulers", ("requirements.schedulers.lock",))
ENVIRONMENTS = {
    "demo": TO_RUN,
    "lowest": LOWEST,
    "schedulers": SCHEDULERS,
    "spark": WITH_SPARK,
    "test-all": WITH_SPARK,
}
PYTEST = ("-m", "pytest", "-n", "auto", "--dist", "worksteal")
ALL_TESTS = (*PYTEST, "--ignore=tests/schedulers")
TESTS_OF_USERS = (*PYTEST, "-m", "not wide")
NONE_CHOSEN = 5  # how pytest ends where no test is left
QUICK_TESTS = (
    "tests/cases",
    "tests/cli/test_commands.py",
    "tests/cli/test_queries.py",
    "tests/cli/test_terminal.py",
    "tests/engines",
    "--ignore=tests/engines/spark",
    "tests/runs/inputs/test_scores.py",
    "tests/metrics/matching/test_bipartite.py",
    "tests/report/test_charts.py",
    "tests/metrics/test_posteriors.py",
    "tests/sources/test_formats.py",
    "tests/sources/test_line_formats.py",
    "tests/sources/test_predicates.py",
    "tests/sources/test_types.py",
    "tests/storage/test_layout.py",
    "tests/runs/test_config.py",
    "tests/base/test_sql_files.py",
)

TASKS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "demo": ("the main job on data it makes itself", (("-m", "pipeline", "demo", "--output", "demo"),)),
    "test": ("the tests of everything that a user relies on, in minutes", (TESTS_OF_USERS,)),
    "test-all": ("all tests: other formats and engines, faults, fuzz, a browser, other versions", (ALL_TESTS,)),
    "test-changed": ("those of `test` that belong to what differs from main, or from the commit that is named", ()),
    "test-touched": ("those of `test-all`, beside `test`, that belong to it; all of them where that is asked for", ()),
    "coverage": (
        "all tests, and the lines that they do not run",
        ((*ALL_TESTS, "--cov", "--cov-report=term:skip-covered"),),
    ),
    "spark": (
        "the tests on Apache Spark, which it installs; Java must be there",
        (("-m", "pytest", "tests/engines/spark"),),
    ),
    "schedulers": (
        "the examples for Airflow and Dagster, in an environment that has both",
        (("-m", "pytest", "tests/schedulers"),),
    ),
    "search": (
        "property tests and fuzz tests on new random examples, more of them",
        ((*ALL_TESTS, "-m", "hypothesis or fuzz", "--hypothesis-profile=search"),),
    ),
    "faults": (
        "faults of disk and process, injected by the hundred below Python, on Linux with a C compiler",
        (("-c", "import sys; sys.path.insert(0, 'tests'); from runs.faults.driver import main; sys.exit(main())"),),
    ),
    "golden": (
        "`golden freeze DIR` keeps every output of a wide set of inputs, `golden compare DIR` shows what differs now",
        (("tests/golden.py",),),
    ),
    "check": (
        "format, lint, types, import contract",
        (
            ("-m", "ruff", "format", "--check", "."),
            ("-m", "ruff", "check", "."),
            ("-m", "mypy"),
            ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"),
        ),
    ),
    "site": ("the pages as a site, in build/site", (("docs/site/build.py",),)),
    "bench": (
        "benchmarks: ratios measured side by side",
        (("benchmarks/before_after.py",), ("benchmarks/threshold_sweep.py",)),
    ),
    "lowest": (
        "quick tests with the lowest versions of all dependencies",
        ((*TESTS_OF_USERS, *QUICK_TESTS),),
    ),
    "setup": ("the environment alone", ()),
    "setup-lowest": ("the environment of `lowest` alone", ()),
    "setup-schedulers": ("the environment of `schedulers` alone", ()),
}


def main() -> int:
    """Run the task named on the command line; further arguments go to its last command."""
    name, *more = sys.argv[1:] or ["help"]
    if name not in TASKS:
        print("python3 dev.py TASK\n")
        for task, (summary, _) in TASKS.items():
            print(f"  {task:12} {summary}")
        return 0 if name in {"help", "-h", "--help"} else 2
    if name == "test-changed":
        return _test_changed(*more)
    if name == "test-touched":
        return _test_touched()
    if code := _run(TASKS[name][1], ENVIRONMENTS.get(name.removeprefix("setup-"), NEWEST), more):
        return code
    return _run_tasks("lowest", "schedulers") if name == "test-all" and not more else 0


def _run_tasks(*names: str) -> int:
    """Run tasks one after the other, to the first that fails."""
    return next((code for name in names if (code := _run(TASKS[name][1], ENVIRONMENTS.get(name, NEWEST)))), 0)


def _run(
    commands: tuple[tuple[str, ...], ...], environment: tuple[str, tuple[str, ...]], more: Iterable[str] = ()
) -> int:
    """Run commands in an environment, further arguments with the last of them; return how the first that fails ends."""
    python = set_up(*environment)
    # without bytecode every worker and every process of the tests compiles all modules anew
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for number, command in enumerate(commands, start=1):
        words = [str(python), *command, *(more if number == len(commands) else ())]
        if code := subprocess.run(words, cwd=ROOT, env=variables, check=False).returncode:
            return code
    return 0


def _test_changed(base: str | None = None) -> int:
    """Run the tests of users that belong to what differs from main, or from a commit."""
    chosen = tiers.tests_of(tiers.changed_files(base or tiers.base() or "HEAD"))
    if chosen == []:
        print("nothing differs that has tests")
        return 0
    code = _run(((*TESTS_OF_USERS, *(chosen or ())),), NEWEST)
    return 0 if code == NONE_CHOSEN else code


def _test_touched() -> int:
    """Run the wide tests that belong to what differs from the commit at which all were run last; or all of them."""
    chosen = tiers.touched()
    print("wide tests:", "all of them" if chosen is None else " ".join(chosen) or "none are touched", flush=True)
    if chosen is None:
        return _run(((*ALL_TESTS, "-m", "wide"),), WITH_SPARK) or _run_tasks("lowest", "schedulers")
    others = [path for path in chosen if path not in {"lowest", "tests/schedulers"}]
    has_spark = any(path.startswith("tests/engines") for path in others)
    environment = WITH_SPARK if has_spark else NEWEST
    code = _run(((*ALL_TESTS, "-m", "wide", *others),), environment) if others else 0
    if code not in {0, NONE_CHOSEN}:
        return code
    return _run_tasks(*(task for task in ("lowest", "schedulers") if task in chosen or f"tests/{task}" in chosen))


def set_up(folder: str, locks: tuple[str, ...]) -> Path:
    """Install what the lock files name, unless it is there already; return the Python of the environment."""
    venv = ROOT / folder
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamps = {lock: (venv / f"made-from-{lock}", _digest(lock)) for lock in locks}
    missing = [lock for lock, (stamp, digest) in stamps.items() if not stamp.is_file() or stamp.read_text() != digest]
    if python.is_file() and not missing:
        return python
    print(f"setting up {folder} (once): {', '.join(missing or locks)}", file=sys.stderr)
    is_outdated = any(stamp.is_file() for stamp, _ in (stamps[lock] for lock in missing))
    if is_outdated or not python.is_file():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        missing = list(locks)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    for lock in missing:
        # The lock file names everything, and a resolver may want more than that: pip before 23.3 takes `coverage[toml]`
        # for the newest coverage, whatever version of it is locked. Bytecode is written of the modules that are used,
        # when they are: of all it would take longer than the rest.
        options = ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
        if lock == SPARK:  # which comes as source alone, and which the pinned setuptools builds
            options += ["--no-build-isolation", "--no-binary", "pyspark"]
        subprocess.run([*pip, *options, "-r", str(ROOT / lock)], check=True)
        if lock == locks[0]:
            subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
        stamp, digest = stamps[lock]
        stamp.write_text(digest)
    return python


def _digest(lock: str) -> str:
    """Return what an environment depends on, as text."""
    project = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256((ROOT / lock).read_bytes() + project + platform.python_version().encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
