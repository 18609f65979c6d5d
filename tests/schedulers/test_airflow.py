"""Airflow loads its example and runs its task, with the command itself and with commands that end otherwise."""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "airflow_dag.py"
FINAL = {2, 3, 65, 70, 77, 78}
pytestmark = [
    pytest.mark.filterwarnings("default"),  # Airflow warns of itself
    pytest.mark.skipif(
        find_spec("airflow") is None, reason="Airflow is not installed: python3 dev.py schedulers has it"
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Airflow writes settings and logs to its home when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        yield


def task_in(news: Path) -> Any:  # noqa: ANN401 - an operator of Airflow, which this environment may lack
    example = news / "airflow_dag.py"
    example.write_text(EXAMPLE.read_text().replace("/srv/news", str(news)))
    bag = import_module("airflow.dag_processing.dagbag").DagBag(str(example))
    assert not bag.import_errors
    return bag.dags["thresher_nightly"].get_task("thresher")


def command_in(news: Path) -> Path:
    command = news / ".venv" / "bin" / "thresher"
    command.parent.mkdir(parents=True)
    return command


def test_the_task_publishes_a_run_and_returns_its_path(news: Path) -> None:
    command_in(news).symlink_to(Path(sys.executable).with_name("thresher"))
    task = task_in(news)
    assert (task.retries, task.retry_delay) == (3, timedelta(minutes=10))
    run = Path(task.python_callable())
    assert run.is_relative_to(news / "results")
    assert (run / "manifest.json").is_file()
    (news / "predictions.parquet").unlink()
    with pytest.raises(import_module("airflow.sdk.exceptions").AirflowException, match="ended with exit code 66"):
        task.python_callable()


@pytest.mark.parametrize("code", [*FINAL, 66, 69, 71, 74, 75])
def test_the_task_is_skipped_or_tried_again_as_the_exit_code_says(news: Path, code: int) -> None:
    command = command_in(news)
    command.write_text(f"#!/bin/sh\nexit {code}\n")
    command.chmod(0o755)
    exceptions = import_module("airflow.sdk.exceptions")
    expected = {
        **dict.fromkeys(FINAL, exceptions.AirflowFailException),
        75: exceptions.AirflowSkipException,
    }.get(code, exceptions.AirflowException)
    with pytest.raises(exceptions.AirflowException, match=f"exit code {code}") as raised:
        task_in(news).python_callable()
    assert raised.type is expected
