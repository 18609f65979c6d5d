"""The wheel, installed: command and package work beside a `pipeline` of the user's, and have types and pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runs.inputs.workplace import Workplace

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = ("Planned", "Result", "Run", "ThresherError", "__version__", "open_results", "plan_sample", "run", "sample")
PUBLIC = sorted([*OBJECTS, *(entry.kind for entry in STAGES)])


class Installed:
    """A virtual environment with the wheel; all other packages are those of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        self.site = next((folder / "lib").glob("python*/site-packages"))
        (self.site / "shared.pth").write_text(sysconfig.get_path("purelib"))  # a path only: its .pth files are not read
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        (wheel,) = folder.glob("*.whl")
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)

    def call(self, *words: str | Path, cwd: Path, path: str | None = None) -> str:
        """Standard output of the installed command, called in a folder."""
        return self._run([self.folder / "bin" / "thresher", *words], cwd, path)

    def script(self, text: str, *, cwd: Path, path: str | None = None) -> str:
        """Standard output of a Python script."""
        return self._run([self.python, "-c", text], cwd, path)

    @staticmethod
    def _run(words: list[str | Path], cwd: Path, path: str | None) -> str:
        kept: Mapping[str, str] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = {**kept, "PYTHONPATH": path} if path is not None else dict(kept)
        done = subprocess.run(
            [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def dags(workplace: Workplace) -> Path:
    """A folder of the user's with a config, and with a package `pipeline` of the user's."""
    workplace.config()
    (workplace.folder / "pipeline").mkdir()
    (workplace.folder / "pipeline" / "__init__.py").write_text("WHOSE = 'the user'\n")
    (workplace.folder / "pipeline" / "errors.py").write_text(
        "raise ImportError('this is not the package of thresher')\n"
    )
    return workplace.folder


def test_the_command_works_beside_a_package_of_the_same_name(dags: Path, installed: Installed) -> None:
    run = installed.call("run", "c.toml", cwd=dags, path=".").strip()
    assert (Path(run) / "manifest.json").is_file()
    assert installed.call("query", "results", "SELECT 1 AS a", cwd=dags, path=".") == "a\n1\n"
    assert "Example:" in installed.call("before-after", "--help", cwd=dags, path=".")
    for path in (None, str(dags)):  # where a command is found does not depend on which it is
        assert installed.call("check", "c.toml", cwd=dags, path=path)


USE = """
run = thresher.run("c.toml")
with thresher.open_results("results") as connection:
    print(run.status, len(connection.sql("FROM inputs").fetchall()) > 0)
try:
    thresher.run({"stages": []})
except thresher.ThresherError as error:
    print(error.code)
import pipeline
print(pipeline.WHOSE)
"""


@pytest.mark.parametrize("first", ["import thresher", "import pipeline, thresher", "import thresher; thresher.run"])
def test_the_package_works_beside_a_package_of_the_same_name_and_leaves_it_alone(
    dags: Path, installed: Installed, first: str
) -> None:
    assert installed.script(f"{first}\n{USE}", cwd=dags, path=".") == "published True\n78\nthe user\n"


def test_the_package_has_two_names_and_one_face(tmp_path: Path, installed: Installed) -> None:
    text = "import pipeline, thresher\nprint(dir(pipeline), dir(thresher))\n"
    text += "print([getattr(pipeline, name) == getattr(thresher, name) for name in dir(thresher)])\n"
    text += "print(thresher.__version__)"
    faces, same, version = installed.script(text, cwd=tmp_path).splitlines()
    assert faces == f"{PUBLIC} {PUBLIC}"
    assert set(re.findall(r"\w+", same)) == {"True"}
    assert version == "0.1.0"


def test_importing_thresher_loads_nothing_heavy(tmp_path: Path, installed: Installed) -> None:
    text = "import sys, thresher; print(sorted({'polars', 'duckdb', 'pydantic', 'typer', 'typing'} & set(sys.modules)))"
    assert installed.script(text, cwd=tmp_path) == "[]\n"


SKIPPED = """
[mypy]
[mypy-duckdb.*,numpy.*,pyarrow.*,pydantic.*,pydantic_core.*,rich.*,scipy.*,sqlglot.*,typer.*]
follow_imports = skip
"""  # to read what they say of their types takes as long as all else


def test_type_checkers_see_both_packages(installed: Installed, tmp_path: Path) -> None:
    assert (installed.site / "pipeline" / "py.typed").is_file()
    assert (installed.site / "thresher" / "py.typed").is_file()
    (tmp_path / "mine.py").write_text(
        "import thresher\nreveal_type(thresher.run('c.toml').path)\nthresher.run(5)\n"
        "reveal_type(thresher.threshold_sweep(predictions='a.parquet').curve)\n"
        "thresher.threshold_sweep(predictions='a.parquet', boundary='<')\n"
    )
    (tmp_path / "mypy.ini").write_text(SKIPPED)
    words = ["-m", "mypy", "--python-executable", str(installed.python), "--cache-dir", os.devnull, "mine.py"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'Revealed type is "pathlib.Path"' in done.stdout, done.stdout
    assert 'incompatible type "int"' in done.stdout
    assert "polars" in done.stdout.split("Revealed type is")[2], done.stdout
    assert 'expected "Literal[' in done.stdout, done.stdout


def test_starters_and_messages_point_to_pages_that_are_installed(dags: Path, installed: Installed) -> None:
    for stage in ("before_after", "ranking"):
        pages = re.findall(r"\S+/docs/\w+\.md", text := installed.call("init", stage, cwd=dags))
        assert len(pages) >= 2
        assert all(Path(page).is_file() and Path(page).is_relative_to(installed.site) for page in pages)
        assert not re.search(r"(?<![\w/])docs/", text)


def test_the_page_of_the_report_is_installed(installed: Installed) -> None:
    names = {path.name for path in (installed.site / "pipeline" / "report" / "template").iterdir()}
    assert names == {"charts.js", "page.html", "page.js", "style.css"}


def test_links_between_installed_pages_lead_somewhere(installed: Installed) -> None:
    pages = list((installed.site / "pipeline" / "docs").rglob("*.md"))
    assert len(pages) > 8
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            assert "://" in target or (page.parent / target).exists(), (page.name, target)
