"""The examples of docs/examples do with exit codes what docs/operations.md says, and their tools accept them."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import polars as pl
import pytest
import yaml

from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "examples"
NO_RETRY = {2, 3, 65, 70, 77, 78}
COMMAND = "/srv/news/.venv/bin/thresher"


def unit(name: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(EXAMPLES / name)
    return {section: dict(parser[section]) for section in parser.sections()}


def documents() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all((EXAMPLES / "cronjob.yaml").read_text())}


def assigned(name: str, variable: str) -> Any:  # noqa: ANN401 - any constant
    """A constant of a Python example, whose libraries are not needed to read it."""
    for node in ast.parse((EXAMPLES / name).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable:
            return ast.literal_eval(node.value)
    raise AssertionError(variable)


def codes_of_kubernetes() -> set[int]:
    rules = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    return set(rules[0]["onExitCodes"]["values"])


@pytest.mark.parametrize(
    "codes",
    [
        lambda: set(map(int, unit("thresher.service")["Service"]["RestartPreventExitStatus"].split())),
        codes_of_kubernetes,
        lambda: assigned("airflow_dag.py", "NO_RETRY"),
        lambda: assigned("dagster_assets.py", "NO_RETRY"),
    ],
    ids=["systemd", "kubernetes", "airflow", "dagster"],
)
def test_no_example_tries_again_in_vain(codes: Callable[[], set[int]]) -> None:
    assert codes() == NO_RETRY
    page = (ROOT / "docs" / "operations.md").read_text()
    (words,) = re.findall(r"\*\*(2, 3,[\d,\sand]+)\*\* are not tried again", page)
    assert set(map(int, re.findall(r"\d+", words))) == NO_RETRY


def test_a_busy_folder_is_no_failure() -> None:
    assert unit("thresher.service")["Service"]["SuccessExitStatus"] == "75"
    assert assigned("airflow_dag.py", "SKIP") == {75}
    assert "0|66|75)" in (EXAMPLES / "crontab").read_text()


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder with data and a config, and a command `thresher`."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "thresher"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pipeline "$@"\n')
    command.chmod(0o755)
    pl.DataFrame({"score": [0.1, 0.9, 0.4], "label": [True, False, True]}).write_parquet(tmp_path / "p.parquet")
    (tmp_path / "nightly.toml").write_text(
        '[[stages]]\nkind = "threshold_sweep"\npredictions = "p.parquet"\nthresholds = [0.5]\n'
    )
    return tmp_path


def test_the_line_for_cron_mails_only_if_somebody_has_to_act(news: Path) -> None:
    (line,) = [line for line in (EXAMPLES / "crontab").read_text().splitlines() if line[:1].isdigit()]
    assert "%" not in line  # cron would cut the line there
    script = line.split(maxsplit=5)[5].replace("/srv/news", str(news))

    def mail() -> str:
        path = f"{news / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
        environment = {"PATH": path, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
        assert not done.stderr
        return done.stdout

    assert mail() == ""
    assert Path((news / "runs.txt").read_text().strip()).is_dir()
    (news / "p.parquet").unlink()
    assert mail() == ""
    (news / "nightly.toml").write_text("x = 1")
    assert mail() == f"thresher: exit 78, see {news}/log.jsonl\n"
    assert '"exit": 78' in (news / "log.jsonl").read_text().splitlines()[-1]


def test_the_units_of_systemd_name_each_other() -> None:
    service, timer = unit("thresher.service"), unit("thresher.timer")
    assert service["Service"]["ExecStart"].startswith(COMMAND)
    assert timer["Timer"]["Unit"] == "thresher.service"
    assert service["Service"]["ReadWritePaths"].startswith(service["Service"]["WorkingDirectory"])


@pytest.mark.parametrize("name", ["thresher.service"] if shutil.which("systemd-analyze") else [])
def test_systemd_accepts_the_units(name: str, tmp_path: Path) -> None:
    for file in (name, "thresher.timer"):
        (tmp_path / file).write_text((EXAMPLES / file).read_text().replace(COMMAND, sys.executable))
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / name), str(tmp_path / "thresher.timer")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_kubernetes_accepts_the_manifest() -> None:
    for document in documents().values():
        kubernetes_validate.validate(document, "1.33", strict=True)


def test_the_pod_may_do_no_more_than_it_must() -> None:
    job = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert job["podFailurePolicy"]["rules"][0]["onExitCodes"]["containerName"] == container["name"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}


def test_the_config_of_the_pod_is_right_and_writes_where_a_volume_is() -> None:
    text = documents()["ConfigMap"]["data"]["nightly.toml"]
    config = parse_config(tomllib.loads(text), base=Path("/config"))
    container = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    mounts = [Path(each["mountPath"]) for each in container["volumeMounts"] if not each.get("readOnly")]
    for path in (config.output, config.resources.scratch):
        assert path is not None
        assert any(path.is_relative_to(mount) for mount in mounts), path


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in (EXAMPLES / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for line in lines for word, _, rest in [line.partition(" ")]]


def test_the_image_copies_what_the_package_is_built_from_and_needs_no_root() -> None:
    copied = {
        name for word, rest in instructions() if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]
    }
    assert all((ROOT / name).exists() for name in copied)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], build["project"]["readme"]} <= copied
    user = [rest for word, rest in instructions() if word == "USER"][-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    pod = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert user == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_assets.py"])
def test_python_accepts_the_examples(name: str) -> None:
    compile((EXAMPLES / name).read_text(), name, "exec", dont_inherit=True)


def test_the_assets_are_tables_of_the_package() -> None:
    from pipeline.base.run_tables import METRICS
    from pipeline.stages import STAGES

    tables = {table.name for entry in STAGES for table in entry.load().tables}
    assert set(assigned("dagster_assets.py", "TABLES")) <= tables | {METRICS.name}
