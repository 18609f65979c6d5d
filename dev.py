"""Set up a virtual environment from the lock file and run a task in it: python3 dev.py TASK.

It needs only Python 3.11 or later. The environment is in .venv, that of the lowest versions in .venv-lowest; each is
recreated when its lock file, the project file or the Python version changes.
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
NEWEST = (ROOT / ".venv", ROOT / "requirements.lock")
SPARK = ROOT / "requirements.spark.lock"  # beside the newest: 450 MB, for the tests on Apache Spark alone
LOWEST = (ROOT / ".venv-lowest", ROOT / "requirements.lowest.lock")
SCHEDULERS = (ROOT / ".venv-schedulers", ROOT / "requirements.schedulers.lock")
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
    python = set_up(*(LOWEST if name.endswith("lowest") else SCHEDULERS if name.endswith("schedulers") else NEWEST))
    if name == "spark" or (name == "test" and "THRESHER_SPARK" in os.environ):
        add_spark(python)
    # without bytecode every worker and every process of the tests compiles all modules anew
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for number, command in enumerate(commands := TASKS[name][1], start=1):
        extra = more if number == len(commands) else []
        code = subprocess.run([str(python), *command, *extra], cwd=ROOT, env=environment, check=False).returncode
        if code:
            return code
    return 0


def set_up(venv: Path, lock: Path) -> Path:
    """Create an environment unless it matches its lock file already; return its Python."""
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = venv / "made-from"
    wanted = hashlib.sha256(
        lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + platform.python_version().encode()
    ).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted and python.is_file():
        return python
    print(f"setting up {venv.name} (once)", file=sys.stderr)
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # The lock file names everything, and a resolver may want more than that: pip before 23.3 takes `coverage[toml]` for
    # the newest coverage, whatever version of it is locked. Bytecode is written of the modules that are used, when they
    # are: of all it would take longer than the rest.
    options = ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
    subprocess.run([*pip, *options, "-r", str(lock)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
    stamp.write_text(wanted)
    return python


def add_spark(python: Path) -> None:
    """Install Spark into the environment unless it is there."""
    stamp = python.parent.parent / "spark-made-from"
    if stamp.is_file() and stamp.read_bytes() == SPARK.read_bytes():
        return
    print("adding Apache Spark (once)", file=sys.stderr)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # Spark comes as source alone, which the pinned setuptools builds
    options = ["--no-deps", "--no-build-isolation", "--only-binary", ":all:", "--no-binary", "pyspark"]
    subprocess.run([*pip, *options, "--require-hashes", "-r", str(SPARK)], check=True)
    stamp.write_bytes(SPARK.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
