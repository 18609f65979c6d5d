from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import tiers

if TYPE_CHECKING:
    from pathlib import Path


def test_every_beginning_of_a_path_is_that_of_a_test() -> None:
    paths = [path for path in tiers.TESTS.rglob("*") if path.is_dir() or path.name.startswith("test_")]
    for name in tiers.WIDE:
        assert any(path.relative_to(tiers.TESTS).as_posix().startswith(name) for path in paths), name
    for beginning, tests in tiers.BESIDES.items():
        assert any((tiers.ROOT / beginning).parent.glob("*")), beginning
        assert all((tiers.TESTS / test).exists() for test in tests), beginning


def test_whole_files_and_folders_are_wide_and_no_others_of_like_names() -> None:
    wide = {name: tiers.is_wide(tiers.TESTS / name) for name in ("fuzz", "fuzz/test_mutants.py", "runs/test_config.py")}
    assert wide == {"fuzz": True, "fuzz/test_mutants.py": True, "runs/test_config.py": False}
    assert not tiers.is_wide(tiers.TESTS / "stages/threshold_sweep/test_days.py")  # beside stages/test_days.py


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("pipeline/metrics/curves/bands.py", "tests/metrics/curves/test_bands.py"),
        ("pipeline/stages/ranking/derive.py", "tests/cases"),
        ("sql/geocoding/events.sql", "tests/stages/geocoding"),
        ("docs/ranking.md", "tests/test_docs.py"),
        ("tests/cases/reading.py", "tests/cases"),
        ("pipeline/storage/catalog.py", "tests/storage/test_catalog.py"),
    ],
)
def test_a_change_has_the_tests_of_its_name_and_those_that_import_it(changed: str, tests: str) -> None:
    assert tests in (tiers.tests_of([changed]) or [])


def test_what_everything_rests_on_has_all_tests() -> None:
    assert [tiers.tests_of([name]) for name in ("pyproject.toml", "tests/conftest.py", ".ci/run")] == [None] * 3
    assert tiers.tests_of([]) == []


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of three commits, of which the first had all its tests run."""
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    monkeypatch.delenv("THRESHER_TESTS", raising=False)
    git(tmp_path, "init", "--quiet", "--initial-branch", "work")
    for message in ("One\n\nTests: all", "Two", "Three"):
        commit(tmp_path, message)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        [shutil.which("git") or "git", *names, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, message: str) -> None:
    (folder / "README.md").write_text(message)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", message)


def test_a_change_is_compared_with_the_last_commit_that_had_all_tests_run(clone: Path) -> None:
    assert tiers.base() == git(clone, "rev-parse", "HEAD~2")
    assert tiers.changed_files("HEAD~2") == ["README.md"]
    assert "tests/test_docs.py" in (tiers.touched() or [])


def test_a_change_is_compared_with_what_main_has_too(clone: Path) -> None:
    git(clone, "branch", "main", "HEAD~1")
    assert tiers.base() == git(clone, "rev-parse", "HEAD~1")


def test_all_tests_are_run_where_that_is_asked_for(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRESHER_TESTS", "all")
    assert tiers.touched() is None
    monkeypatch.delenv("THRESHER_TESTS")
    commit(clone, "Four\n\nTests: all")
    assert tiers.touched() is None
    commit(clone, "Five")
    assert tiers.base() == git(clone, "rev-parse", "HEAD~1")
