"""Modules: which are imported while the engine counts, and how many a plain run meets."""

import json
import os
import subprocess
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


@pytest.mark.parametrize(("uncertainty", "imported"), [("none", []), ("jackknife", [NAME])])
def test_a_stage_imports_early_what_its_intervals_need(
    uncertainty: str, imported: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    assert evaluation.NEEDED_FOR_INTERVALS == ("scipy.special",)
    monkeypatch.setattr(evaluation, "NEEDED_FOR_INTERVALS", (NAME,))  # which no earlier test has imported
    monkeypatch.setattr(evaluation, "import_module", names.append)
    frame = pl.DataFrame({"score": [0.1, 0.9], "label": [True, False]})
    run_threshold_sweep(tmp_path, frame, thresholds=[0.5], uncertainty=uncertainty)
    assert names == imported


# A plain run reads one Parquet file: it enters what it needs and loads nothing that only a config would ask for.

TRACED = """
import json, os, sys, threading

root = os.path.join(sys.argv[1], "")
entered, loading = set(), []

def profile(frame, event, arg):
    code = frame.f_code
    if not code.co_filename.startswith(root) or event not in ("call", "return"):
        return
    if code.co_name == "<module>":
        loading.append(code) if event == "call" else loading.pop()
    elif event == "call" and code.co_flags & 1 and not loading:
        entered.add(code.co_filename)

threading.setprofile(profile)
sys.setprofile(profile)
import thresher

if sys.argv[2] == "call":
    thresher.threshold_sweep(predictions="p.parquet")
else:
    thresher.run({"output": "results", "stages": [{"kind": "threshold_sweep", "predictions": "p.parquet"}]})
sys.setprofile(None)
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
loaded = sorted(file[len(root):] for file in files if file.startswith(root))
heavy = [name for name in ("pandas", "pyarrow.dataset") if name in sys.modules]
print(json.dumps({"entered": len(entered), "loaded": loaded, "heavy": heavy}))
"""
OPTIONAL = (
    "engines/per_file_cache.py",
    "engines/spark.py",
    "base/splitting.py",
    "runs/announcing.py",
    "runs/gate_outcomes.py",
    "runs/gates.py",
    "runs/lineage.py",
    "runs/prometheus.py",
    "runs/recorded.py",
    "sources/remote.py",
    "sources/stores.py",
    "storage/mirror.py",
)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("kind", "most_entered", "most_loaded"), [("call", 60, 85), ("run", 67, 90)])
def test_a_plain_run_meets_few_modules_and_none_for_what_it_does_not_ask(
    tmp_path: Path, kind: str, most_entered: int, most_loaded: int
) -> None:
    pl.DataFrame({"score": [0.1, 0.9, 0.4, 0.6], "label": [False, True, True, False]}).write_parquet(
        tmp_path / "p.parquet"
    )
    package = Path(evaluation.__file__).parents[1]
    called = subprocess.run(
        [sys.executable, "-c", TRACED, str(package), kind],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(package.parent)},
        stdout=subprocess.PIPE,
        check=True,
    )
    modules = json.loads(called.stdout)
    assert modules["entered"] <= most_entered
    assert len(modules["loaded"]) <= most_loaded
    assert not set(OPTIONAL) & set(modules["loaded"])
    assert not modules["heavy"]
    if kind == "run":
        assert not [file for file in modules["loaded"] if file.startswith("report/")]
