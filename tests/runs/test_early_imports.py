"""Modules that are imported while the engine counts."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from running import run_threshold_sweep

from pipeline.runs import evaluation
from pipeline.runs.evaluation import importing_meanwhile

NAME = "module_that_is_imported_early"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that can be imported as `NAME`, still empty."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / f"{NAME}.py"
    sys.modules.pop(NAME, None)


def test_a_module_is_there_at_the_end_and_was_imported_by_another_thread(module: Path) -> None:
    module.write_text("import threading\nTHREAD = threading.get_ident()\n")
    with importing_meanwhile([NAME]):
        pass
    of_module = sys.modules[NAME].THREAD
    assert of_module != threading.get_ident()


def test_work_goes_on_while_a_module_is_imported(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module.write_text("import builtins\nassert builtins.work_is_done.wait(10)\n")
    done = threading.Event()
    monkeypatch.setattr("builtins.work_is_done", done, raising=False)
    with importing_meanwhile([NAME]):
        done.set()
    assert NAME in sys.modules


def test_a_faulty_module_is_told_where_it_is_used(module: Path) -> None:
    module.write_text("raise RuntimeError('it cannot be imported')\n")
    with importing_meanwhile([NAME]):
        pass
    with pytest.raises(RuntimeError, match="it cannot be imported"):
        __import__(NAME)


def test_an_error_of_the_work_is_the_one_that_is_told(module: Path) -> None:
    module.write_text("raise RuntimeError('it cannot be imported')\n")
    with pytest.raises(ZeroDivisionError), importing_meanwhile([NAME]):
        1 / 0  # noqa: B018
    assert not any(thread.name == "thresher-imports" for thread in threading.enumerate())


@pytest.mark.parametrize(("uncertainty", "imported"), [("none", []), ("jackknife", ["scipy.special"])])
def test_a_stage_imports_early_what_its_intervals_need(
    uncertainty: str, imported: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(evaluation, "import_module", names.append)
    frame = pl.DataFrame({"score": [0.1, 0.9], "label": [True, False]})
    run_threshold_sweep(tmp_path, frame, thresholds=[0.5], uncertainty=uncertainty)
    assert names == imported
