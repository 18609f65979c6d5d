"""Which tests `make test` leaves to `make test-all`, and which tests belong to a changed file.

What a user relies on is tested by `make test`, on every machine with Python alone. Of the rest, whole files stand here
with the reason; single tests are marked `wide` where they stand, and of a test marked `first_cases(n)` the cases after
the first n walk the same lines with other values. It needs the standard library alone: dev.py asks it, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent

WIDE = {  # path below tests/, or the beginning of one, and why it is not part of `make test`
    "cli/test_installed": "builds packages and installs them",
    "cli/test_notebook": "runs notebooks in a kernel",
    "cli/test_watchdog": "ends processes",
    "engines/spark": "needs Java",
    "fuzz": "random cases by the hundred",
    "metrics/before_after/test_size": "simulations",
    "metrics/uncertainty/test_coverage": "simulations",
    "base/test_portability": "every query in the words of another engine",
    "report/test_diff": "two nights of every stage",
    "report/test_explained_columns": "every number of every table",
    "report/test_in_browser": "needs a browser",
    "report/test_influence": "leaves out one unit after another, in whole runs",
    "report/test_planning": "plans every number of every stage",
    "report/test_profiles": "every profile of another tool",
    "report/test_published": "runs of earlier versions",
    "runs/announcing": "servers that are told of runs",
    "runs/faults": "needs a C compiler",
    "runs/gates/test_compared_nights": "many nights",
    "runs/gates/test_files_of_nights": "many nights",
    "runs/gates/test_gated_nights": "many nights",
    "runs/inputs/test_group_names": "every name of a group in every stage",
    "runs/inputs/test_null_types": "every type in every column",
    "runs/test_forks": "forks processes",
    "runs/test_real_data": "real data",
    "runs/test_rendering": "every case as it is printed",
    "runs/test_resuming": "kills runs",
    "schedulers": "needs Airflow and Dagster",
    "stages/simulations": "simulations",
    "sources/remote": "stores of objects",
    "sources/test_frames": "every form of a frame",
    "sources/test_predicate_faults": "long predicates",
    "sources/test_table_formats": "Delta and Iceberg",
    "sources/test_unread_columns": "every type in every format",
    "stages/test_bootstrap": "resamples in every stage",
    "stages/test_days": "simulations in every stage",
    "stages/threshold_sweep/test_sampled_by_score": "simulations",
    "storage/test_damage": "damages results at every place",
    "storage/test_expire": "many runs",
    "storage/test_mirror": "stores of objects",
    "storage/test_others_things": "results of somebody else",
    "test_examples": "starts the examples as users do",
}
WIDE_FIXTURES = {"real_data", "browser", "spark"}  # what they need is not on every machine

BESIDES = {  # beginning of a changed path → tests that belong to it beside those found by its name
    "sql/": ("cases", "base", "engines"),
    "pipeline/base/": ("cases", "engines", "test_docs.py"),
    "pipeline/engines/": ("cases",),
    "pipeline/stages/": ("cases",),
    "pipeline/plan/": ("cases", "runs/inputs"),
    "pipeline/sources/": ("cases", "runs/inputs"),
    "pipeline/metrics/": ("cases",),
    "pipeline/storage/": ("runs/faults",),
    "pipeline/runs/": ("storage", "runs/faults"),
    "pipeline/api/": ("cli/test_notebook.py",),
    "docs/": ("test_docs.py", "test_examples.py"),
    "docs/examples/": ("schedulers",),
    "README.md": ("test_docs.py", "cli/test_commands.py"),
    "configs/": ("test_docs.py", "test_examples.py"),
}
OF_EVERYTHING = re.compile(r"pyproject\.toml|requirements.*\.lock|dev\.py|\.ci/.*|tests/[^/]*\.py")
OF_LOWEST = (
    "pipeline/engines/",
    "pipeline/base/",
    "pipeline/sources/",
)  # where versions of libraries differ most
ASKS_FOR_ALL = "Tests: all"
NOT_OF_THE_PROGRAM = re.compile(r"tests/(test_|golden)[^/]*\.py|.*\.md")


def is_wide(path: Path) -> bool:
    """Say whether a file or folder of tests is left to `make test-all` as a whole."""
    name = path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""
    return any(name == wide or name.startswith((f"{wide}/", f"{wide}_", f"{wide}.")) for wide in WIDE)


def changed_files(base: str) -> list[str]:
    """Return the files that differ from a commit, new ones included, below the root."""
    differing = _git("diff", "--name-only", base)
    return sorted({*differing, *_git("ls-files", "--others", "--exclude-standard")})


def base() -> str | None:
    """Return the commit to compare with: the last one that main has too, else the last at which all tests were run."""
    head = _git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        shared = _git("merge-base", main, "HEAD", check=False)
        if shared and shared != head:
            return shared[0]
    tested = _git("log", "--max-count=1", "--format=%H", f"--grep=^{ASKS_FOR_ALL}$", "HEAD~1", check=False)
    return tested[0] if tested else None


def touched() -> list[str] | None:
    """Return the files and folders of tests of which the wide ones are to be run; None where all of them are.

    All of them are asked for by the variable THRESHER_TESTS, by a line of the last commit's message, and by a change
    of what all of them rest on.
    """
    message = _git("log", "-1", "--format=%B", check=False)
    compared = base()
    if os.environ.get("THRESHER_TESTS") == "all" or ASKS_FOR_ALL in message or compared is None:
        return None
    changed = changed_files(compared)
    chosen = tests_of(changed)
    if chosen is None:
        return None
    return [*chosen, *(["lowest"] if any(name.startswith(OF_LOWEST) for name in changed) else [])]


def tests_of(changed: list[str]) -> list[str] | None:
    """Return the files and folders of tests that belong to changed files; None where that is all of them."""
    if any(OF_EVERYTHING.fullmatch(path) and not NOT_OF_THE_PROGRAM.fullmatch(path) for path in changed):
        return None
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    chosen = {TESTS / "test_structure.py", TESTS / "test_names.py"} if changed else set()
    for name in changed:
        path = Path(name)
        if path.parts[0] == "tests":
            chosen |= {TESTS.parent / (path if path.name.startswith("test_") else path.parent)}
        elif path.parts[0] in {"pipeline", "sql"}:
            chosen |= _of_its_name(path) | _that_import(path, texts)
        chosen |= {TESTS / test for beginning, tests in BESIDES.items() if name.startswith(beginning) for test in tests}
    whole = {path for path in chosen if path.exists()}
    return sorted(str(path.relative_to(TESTS.parent)) for path in whole if not whole & set(path.parents))


def _of_its_name(path: Path) -> set[Path]:
    """Return the tests of a module, else the folder of tests that mirrors its own, or one above that."""
    folder = (TESTS / "stages" if path.parts[0] == "sql" else TESTS).joinpath(*path.parts[1:-1])
    if named := set(folder.glob(f"test_{path.stem.lstrip('_')}*.py")):
        return named
    while not folder.is_dir():
        folder = folder.parent
    return {folder} - {TESTS, TESTS / "stages"}


def _that_import(path: Path, texts: dict[Path, str]) -> set[Path]:
    """Return the tests that import a module."""
    *packages, module = path.with_suffix("").parts
    package = re.escape(".".join(packages))
    imports = re.compile(rf"\b{package}\.{module}\b|from {package} import [^\n]*\b{module}\b")
    return {test for test, text in texts.items() if imports.search(text)}


def _git(*words: str, check: bool = True) -> list[str]:
    """Return the lines that git prints; none where it fails and that is no error."""
    git = shutil.which("git") or "git"
    return subprocess.run([git, *words], cwd=ROOT, check=check, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    chosen = touched()
    print("all" if chosen is None else " ".join(chosen))
