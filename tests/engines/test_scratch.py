"""The scratch folder is the user's own, whoever was there before."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.base.errors import ThresherError
from pipeline.engines import engine
from pipeline.engines.engine import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is taken where nobody was before, in a folder for temporary files of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine._fresh.cache_clear()
    return tmp_path / f"thresher-{os.getuid()}"


def test_the_usual_folder_is_private_and_used_again(usual: Path) -> None:
    assert scratch_folder(None) == scratch_folder(None) == usual.resolve()
    assert usual.stat().st_mode & 0o777 == 0o700


def link(path: Path) -> None:
    path.with_name("theirs").mkdir(mode=0o700)
    path.symlink_to("theirs")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def readable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o750)


def plain(path: Path) -> None:
    path.write_text("theirs")


@pytest.mark.parametrize("harm", [link, dangling, open_to_all, readable, plain])
def test_a_folder_that_somebody_else_laid_out_is_not_taken(usual: Path, harm: Callable[[Path], None]) -> None:
    harm(usual)
    folder = scratch_folder(None)
    assert folder.parent == usual.parent.resolve()
    assert folder.name.startswith(f"{usual.name}-")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert scratch_folder(None) == folder


def test_a_folder_of_another_owner_is_not_taken(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.getuid() + 1
    theirs = usual.with_name(f"thresher-{other}")
    theirs.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: other)
    assert scratch_folder(None).name.startswith(f"thresher-{other}-")


@pytest.mark.parametrize("name", ["plain", "plain/below", "x" * 300])
def test_a_folder_of_the_config_that_cannot_be_made_names_its_key(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(ThresherError) as caught:
        scratch_folder(tmp_path / name)
    assert caught.value.code == 73
    assert "resources.scratch" in str(caught.value)


def test_a_place_that_can_only_be_read_names_the_key() -> None:
    with pytest.raises(ThresherError) as caught:
        scratch_folder(Path("/proc/thresher"))
    assert caught.value.code in {73, 77}
    assert "resources.scratch" in str(caught.value)
