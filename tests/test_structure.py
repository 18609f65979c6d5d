from __future__ import annotations

import ast
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pipeline
from pipeline.base.sql_files import resource_folder
from pipeline.cli.app import app
from pipeline.stages import STAGES

PACKAGE = Path(pipeline.__file__).parent
ROOT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
KINDS = [entry.kind for entry in STAGES]
ENGINE_HOMES = (
    *("engines/", "storage/", "cli/showing.py", "api/running.py", "api/functions.py"),
    *("sources/frames.py", "sources/frames.py"),
)
HEAVY = ("polars", "duckdb", "scipy", "pyarrow", "pydantic", "numpy", "sqlglot", "vl_convert", "http")
RUNS_SQL = {"execute", "sql", "executemany", "query", "from_query"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def command_line(*words: str) -> str:
    """Standard output of the command."""
    called = CliRunner().invoke(app, words, env={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"})
    assert called.exit_code == 0
    return called.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_has_one_word_in_every_place(kind: str) -> None:
    def files(pattern: str) -> list[Path]:
        return sorted(ROOT.glob(pattern))

    stage = [PACKAGE / "stages" / f"{kind}.py", PACKAGE / "stages" / kind / "__init__.py"]
    places = {
        "queries": sorted((resource_folder("sql") / kind).glob("*.sql")),
        "stage": [path for path in stage if path.is_file()],
        "config": [path for path in [resource_folder("configs") / f"{kind}.toml"] if path.is_file()],
        "cases": files(f"tests/cases/{kind}/*/config.toml"),
        "page": files(f"docs/{kind}.md"),
        "method": files(f"docs/methods/{kind}.md"),
        "simulation": files(f"pipeline/stages/simulations/{kind}.py"),
    }
    assert [name for name, paths in places.items() if not paths] == []
    entry = next(entry for entry in STAGES if entry.kind == kind)
    stage_itself = entry.load()
    assert stage_itself.kind == kind
    assert stage_itself.parameters.model_fields["kind"].default == kind
    assert [table.name for table in stage_itself.tables if not table.name.startswith(f"{kind}_")] == []


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_has_a_command_with_an_example(kind: str) -> None:
    command = kind.replace("_", "-")
    assert re.search(rf"(?m)^\W*{command}\b", command_line("--help"))
    assert f"thresher {command}" in command_line(command, "--help")


def test_no_place_has_a_word_that_is_no_task() -> None:
    shared = {
        "accounting",
        "areas",
        "bins",
        "catalog",
        "checks",
        "explain",
        "inputs",
        "mentions",
        "replicates",
        "units",
    }
    assert {path.name for path in resource_folder("sql").iterdir() if path.is_dir()} - shared <= set(KINDS)
    simulations = {path.stem for path in (PACKAGE / "stages" / "simulations").glob("*.py")} - {"__init__"}
    assert [name for name in simulations if not name.startswith(tuple(KINDS))] == []
    assert {path.name for path in (ROOT / "tests" / "cases").iterdir() if any(path.rglob("config.toml"))} <= set(KINDS)


def test_result_columns_have_one_type_and_unique_names() -> None:
    for entry in STAGES:
        for table in entry.load().tables:
            names = [column.name for column in table.columns]
            assert len(set(names)) == len(names), table.name
            assert set(table.key) <= set(names), table.name
            assert all(column.meaning for column in table.columns), table.name


def stands_for_something(dotted: str) -> bool:
    """Whether a dotted name is that of a module, or of what stands in one."""
    with suppress(ImportError, AttributeError):
        pkgutil.resolve_name(dotted)
        return True
    return False


def test_names_of_modules_in_texts_exist() -> None:
    """In messages, docstrings and pages, and in what tests replace: no import tells when such a name moves."""
    folders = ("pipeline", "tests", "studies", "benchmarks", "docs")
    texts = [path for folder in folders for ending in ("*.py", "*.md") for path in (ROOT / folder).rglob(ending)]
    dotted = re.compile(r"(?<![\w.])pipeline(?:\.\w+)+(?<!_)\b(?!\.?[*{<])")
    named = {name for path in texts for name in dotted.findall(path.read_text(encoding="utf-8"))}
    made_up = {"pipeline.stages.top_share", "pipeline.WHOSE"}
    assert sorted(name for name in named - made_up if not stands_for_something(name)) == []


def imports_of(tree: ast.AST) -> set[str]:
    packages = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.partition(".")[0])
    return packages


@pytest.mark.wide
def test_only_engines_storage_and_querying_import_the_engine() -> None:
    homes = {relative(path) for path in MODULES if "duckdb" in imports_of(tree_of(path))}
    assert {path for path in homes if not path.startswith(ENGINE_HOMES)} == set()
    assert "engines/duckdb.py" in homes


def test_metrics_import_nothing_that_reads_or_writes() -> None:
    for path in (PACKAGE / "metrics").glob("*.py"):
        assert not imports_of(tree_of(path)) & {"duckdb", "sqlglot", "os", "pathlib", "pyarrow"}, relative(path)


def _is_made_up(node: ast.expr) -> bool:
    """Whether a text is put together in Python: an f-string with a value, `+`, `%`, format, join, replace."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"format", "join", "replace", "substitute", "format_map"}
    return False


def made_up_sql(tree: ast.AST) -> list[int]:
    """Lines where a text that is put together in Python, directly or by a local name, is run as SQL."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and (_is_made_up(node.value) or isinstance(node, ast.AugAssign))
    }
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNS_SQL:
            texts = [*node.args[:1], *(word.value for word in node.keywords if word.arg in {"query", "sql"})]
            if any(_is_made_up(text) or (isinstance(text, ast.Name) and text.id in names) for text in texts):
                lines.append(node.lineno)
    return lines


@pytest.mark.wide
def test_no_text_put_together_in_python_is_run_as_sql() -> None:
    statements = {relative(path): lines for path in MODULES if (lines := made_up_sql(tree_of(path)))}
    assert statements == {}


@pytest.mark.parametrize(
    "text",
    [
        "c.execute(f'SELECT {x}')",
        "c.sql('SELECT ' + x)",
        "c.execute('SELECT %s' % x)",
        "c.execute('SELECT {}'.format(x))",
        "c.sql(query=' '.join(x))",
        "t = f'SELECT {x}'\nc.execute(t)",
        "t = 'SELECT '\nt += x\nc.execute(t)",
    ],
)
def test_text_put_together_in_python_would_be_found(text: str) -> None:
    assert made_up_sql(ast.parse(text))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help_loads_no_engine_and_no_frame_library(words: list[str]) -> None:
    probe = (
        "import sys\nfrom pipeline.cli.app import app\n"
        f"sys.argv[1:] = {words!r}\n"
        "try:\n    app()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_importing_the_package_loads_nothing_heavy() -> None:
    probe = f"import sys, pipeline\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.wide
def test_special_functions_are_loaded_where_they_are_first_needed() -> None:
    """They take a tenth of a second, which commands that only read results need not wait for."""
    probe = "import sys\nfrom pipeline.stages import STAGES\n[entry.load() for entry in STAGES]\n"
    probe += "print(sorted({'scipy.special', 'scipy.stats'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_folder_is_a_drawer_for_everything() -> None:
    assert not [relative(path) for path in MODULES if path.stem in {"utils", "misc", "common", "helpers", "util"}]


@pytest.mark.wide
def test_files_and_functions_keep_their_budgets() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 800, relative(path)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                assert lines <= 60, f"{relative(path)}: {node.name}"


SKIPPED = (
    "import pytest\ndef test_skipped():\n    pytest.skip('no data')\n",
    "def test_needs_data(real_data):\n    pass\n",
    "import pytest\npytest.skip('no data', allow_module_level=True)\ndef test_nothing():\n    pass\n",
)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("workers", "variable", "code"),
    [([], "", 0), ([], "1", 1), (["-n", "1"], "1", 1)],
    ids=["alone, allowed", "alone", "xdist"],
)
def test_a_skip_fails_where_nothing_may_be_skipped(
    tmp_path: Path, workers: list[str], variable: str, code: int
) -> None:
    for name in ("conftest.py", "kept_trees.py", "one_database.py", "one_thread.py", "tiers.py"):
        shutil.copy(Path(__file__).parent / name, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --continue-on-collection-errors\n")
    for number, text in enumerate(SKIPPED):
        (tmp_path / f"test_skips_{number}.py").write_text(text + "def test_passes():\n    pass\n")
    (tmp_path / "test_more.py").write_text("def test_passes():\n    pass\n")
    drop = {"THRESHER_REAL_DATA", "PYTEST_ADDOPTS"}
    environment = {
        key: value for key, value in os.environ.items() if key not in drop and not re.search("XDIST|^COV", key)
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment | {"THRESHER_NO_SKIPS": variable},
    )
    assert bool(done.returncode) == bool(code), done.stdout
    refused = set(re.findall(r"(?m)^(?:FAILED|ERROR) (test_skips_\d\.py)", done.stdout))
    assert refused == {f"test_skips_{number}.py" for number in range(len(SKIPPED)) if code}
    assert ("nothing may be skipped" in done.stdout) == bool(code)
