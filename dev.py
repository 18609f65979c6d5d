"""Set up a virtual environment from the lock files and run a task in it: python3 dev.py TASK.

It needs only Python 3.11 or later. The environment is in .venv: first what running needs, then what the tests and the
checks need, each from a lock file of its own when a task first asks for it. That of the lowest versions is in
.venv-lowest, that of the schedulers in .venv-schedulers. An environment is made anew when one of its lock files, the
project file or the Python version changes.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
RUNNING, TESTS = "requirements.lock", "requirements.dev.lock"
SPARK = "requirements.spark.lock"  # 450 MB, for the tests on Apache Spark alone
TO_RUN = (".venv", (RUNNING,))
NEWEST = (".venv", (RUNNING, TESTS))
WITH_SPARK = (".venv", (RUNNING, TESTS, SPARK))
LOWEST = (".venv-lowest", ("requirements.lowest.lock",))
SCHEDULERS = (".venv-schedulers", ("requirements.schedulers.lock",))
ENVIRONMENTS = {"demo": TO_RUN, "spark": WITH_SPARK, "lowest": LOWEST, "schedulers": SCHEDULERS}
ALL_TESTS = ("-m", "pytest", "-n", "auto", "--dist", "worksteal", "--ignore=tests/schedulers")
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
    "tests/queries/test_load.py",
)

TASKS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "demo": ("the main job on data it makes itself", (("-m", "pipeline", "demo", "--output", "demo"),)),
    "test": ("all tests", (ALL_TESTS,)),
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
        (("-m", "pytest", "-n", "auto", *QUICK_TESTS),),
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
    if name == "test" and "THRESHER_SPARK" in os.environ:
        python = set_up(*WITH_SPARK)
    else:
        python = set_up(*ENVIRONMENTS.get(name.removeprefix("setup-"), NEWEST))
    # without bytecode every worker and every process of the tests compiles all modules anew
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for number, command in enumerate(commands := TASKS[name][1], start=1):
        extra = more if number == len(commands) else []
        code = subprocess.run([str(python), *command, *extra], cwd=ROOT, env=environment, check=False).returncode
        if code:
            return code
    return 0


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
