"""Sessions of Apache Spark: started or joined, and set so that SQL means on Spark what it means on DuckDB."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from ..base.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from .engine import Resources

OLDEST_JAVA = 17
DRIVER_ROWS = 20_000_000
PORT = 15002  # of Spark Connect, where an address names none
ANSWER_SECONDS = 10.0
NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"
SETTINGS_OF_SESSIONS = {
    "spark.sql.ansi.enabled": "true",  # what cannot be computed is an error, not NULL
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # else "${env:NAME}" in a literal would be replaced
    NANOSECONDS: "true",  # Spark has no type for nanoseconds
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # names of folders are text
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # what goes wrong is told by thresher, once
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
_MASTER = re.compile(r"local(\[([1-9]\d*|\*)(,\s*\d+)?\])?$|local-cluster\[|yarn$|spark://.|k8s://.")
_REASON = re.compile(r"^: [\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)  # behind the call that failed
_LOCAL = re.compile(r"local(\[.*\])?")
_SIZE = re.compile(r"(?P<number>\d+)(?:\.\d+)?\s*(?P<unit>[KMGT])i?B", re.IGNORECASE)


class SparkSettings(BaseModel):
    """The table `[spark]` of a config.

    Attributes:
        master: Where Spark runs, as spark-submit has it: `local[4]`, `yarn`, `spark://host:7077`, `k8s://…`. None: the
            cluster that spark-submit or the notebook is attached to; without one, all cores of this machine.
        remote: Address of a Spark Connect server, `sc://host:15002`, in place of `master`.
        options: Options of Spark, `spark.*`, by name.
        driver_rows: Most rows that a step which needs all rows in order brings to this machine.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    master: str | None = None
    remote: str | None = None
    options: dict[str, str | int | float | bool] = {}
    driver_rows: int = DRIVER_ROWS

    @field_validator("options")
    @classmethod
    def _named(cls, options: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        for name in options:
            if not name.startswith("spark."):
                message = f"{name!r} is not an option of Spark: their names start with spark."
                raise ValueError(message)
            if name in SETTINGS_OF_SESSIONS:
                message = (
                    f"{name} is {SETTINGS_OF_SESSIONS[name]} in every session, so that results do not depend on it"
                )
                raise ValueError(message)
        return options

    @field_validator("driver_rows")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value < 1:
            message = "driver_rows must be at least 1"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_place(self) -> SparkSettings:
        if self.master is not None and self.remote is not None:
            message = "give master or remote, not both"
            raise ValueError(message)
        if self.master is not None and not _MASTER.match(self.master):
            message = (
                f"master = {self.master!r} is no place that Spark knows: write local[4], yarn, spark://… or k8s://…"
            )
            raise ValueError(message)
        if self.remote is not None and not re.match("sc://[^/:]", self.remote):
            message = f'remote = {self.remote!r} is not the address of a Spark Connect server: write "sc://host:15002"'
            raise ValueError(message)
        return self


def check_spark(settings: SparkSettings) -> None:
    """Check that Spark can be started here, without starting it.

    Raises:
        ConfigError: the package or Java is missing.
    """
    if find_spec("pyspark") is None:
        message = 'engine = "spark" needs the package pyspark, which is not installed'
        raise ConfigError(message, remedy='Run pip install "thresher[spark]", or use engine = "duckdb".')
    if settings.remote is not None:
        missing = [name for name in ("grpc", "grpc_status", "pandas") if find_spec(name) is None]
        if missing:
            message = f"Spark Connect (remote = …) needs packages that are not installed: {', '.join(missing)}"
            raise ConfigError(message, remedy='Run pip install "thresher[spark-connect]".')
        return
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        home = os.environ.get("JAVA_HOME")
        java = which("java") if not home else which(str(Path(home, "bin", "java")))
        remedy = (
            f'Install Java {OLDEST_JAVA} or newer (or set JAVA_HOME), give [spark] remote = "sc://…", or use DuckDB.'
        )
        if java is None:
            where = "on the PATH" if not home else f"in JAVA_HOME ({home})"
            message = f'engine = "spark" needs Java, and there is none {where}'
            raise ConfigError(message, remedy=remedy)
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - found above
        match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
        if match is None or int(match[1]) < OLDEST_JAVA:
            version = "cannot be started" if match is None else f"is version {match[1]}"
            message = f'engine = "spark" needs Java {OLDEST_JAVA} or newer, and {java} {version}'
            raise ConfigError(message, remedy=remedy)


def started_session(settings: SparkSettings, resources: Resources) -> SparkSession:
    """Return a session of our own, with views and settings of its own, of the Spark that the settings name.

    Raises:
        ConfigError: Spark is not installed.
        UnavailableError: it cannot be started, or not be reached.
    """
    check_spark(settings)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)  # it repeats every error on stderr
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    try:
        session = _remote(settings) if settings.remote is not None else _joined(settings, resources)
        for name, value in (
            SETTINGS_OF_SESSIONS
            | {name: value for name, value in _texts(settings.options).items() if session.conf.isModifiable(name)}
        ).items():
            session.conf.set(name, value)
    except Exception as error:  # what pyspark raises has no class in common
        address = settings.remote or settings.master or "this machine"
        of_java = _REASON.search(str(error))
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        reason = lines[0] if of_java is None else of_java[1]
        message = f"Spark cannot be used on {address}: {reason.strip()}"
        raise UnavailableError(message, remedy="Check master, remote and options in [spark].") from error
    return session


def _remote(settings: SparkSettings) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415 - an optional extra

    _check_listening(str(settings.remote))
    session: SparkSession = Remote.builder.remote(str(settings.remote)).create()
    atexit.register(_leave, session, str(settings.remote))  # runs before what the client does when the process ends
    return session


def _leave(session: SparkSession, remote: str) -> None:
    """Close the client of a server that is gone: else it would try to reach it for ten minutes before it ends."""
    try:
        _check_listening(remote)
    except OSError:
        session.client.close()


def _check_listening(remote: str) -> None:
    """Connect once: the client of Spark would try for ten minutes.

    Raises:
        OSError: nobody answers.
    """
    address = urlsplit(remote)
    socket.create_connection((address.hostname or "localhost", address.port or PORT), timeout=ANSWER_SECONDS).close()


def _joined(settings: SparkSettings, resources: Resources) -> SparkSession:
    """Join the Spark of this process, or start one."""
    from pyspark.sql import SparkSession as Classic  # noqa: PLC0415 - an optional extra

    active = Classic.getActiveSession()
    if active is not None:
        return Classic(active.sparkContext, active._jsparkSession.cloneSession())  # noqa: SLF001 - with its temporary views
    builder = Classic.builder.appName("thresher")
    master = settings.master
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]" if resources.threads is None else f"local[{resources.threads}]"
    if master is not None:
        builder = builder.master(master)
    local = _local_settings(resources) if master is not None and _LOCAL.fullmatch(master) else {}
    for name, value in (local | _texts(settings.options)).items():
        builder = builder.config(name, value)
    with _kept_apart() if local else nullcontext(), _same_signals():
        return builder.getOrCreate().newSession()


@contextmanager
def _same_signals() -> Iterator[None]:
    """Leave the handler of SIGINT as it is: Spark sets one of its own when it starts."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _kept_apart() -> Iterator[None]:
    """Let a Java process that is started here write its messages to a file; show them only if it does not start."""
    with tempfile.TemporaryFile() as messages:
        stderr = os.dup(2)
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except Exception as error:
            messages.seek(0)
            last = [line for line in messages.read().decode(errors="replace").splitlines() if line.strip()][-1:]
            raise RuntimeError("; ".join([str(error), *last])) from error
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _local_settings(resources: Resources) -> dict[str, str]:
    """Options of a Spark that runs in a process beside this one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers; no option of Spark says so here
    scratch = resources.scratch or Path(tempfile.gettempdir())
    settings = _LOCAL_SETTINGS | {"spark.sql.warehouse.dir": str(scratch / "thresher-warehouse")}  # else in this folder
    if resources.memory is not None and (size := _SIZE.match(resources.memory)):
        settings["spark.driver.memory"] = f"{size['number']}{size['unit'].lower()}"
    if resources.scratch is not None:
        settings["spark.local.dir"] = str(resources.scratch)
    return settings


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
