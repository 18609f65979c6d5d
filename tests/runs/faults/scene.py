"""A folder with inputs, a config and results, and commands on it that run in forks of this process."""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import shutil
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from running import stage_tables
from storage.promises import assert_results_ok, sha256

from pipeline.base.errors import ThresherError
from pipeline.base.sql_files import load, query_names
from pipeline.runs.config import load_config
from pipeline.runs.stage_results import code_sha256, versions
from pipeline.storage.publish import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHILD_FAILED, HANGS = 99, 98
LONGEST_SECONDS = 600.0  # on a busy machine; what waits for ever, waits longer
QUERIES = {"before_after", "ranking", "checks", "inputs", "replicates", "areas", "units", "accounting"}
MODULES = (
    "encodings.ascii",
    "pipeline.cli.app",
    "pipeline.cli.session",
    "pipeline.cli.reading",
    "pipeline.cli.running",
    "pipeline.report.published",
    "pipeline.runs.runner",
    "pipeline.storage.publish",
    "polars._utils.parquet",
    "sqlglot.generators.duckdb",
    "thresher.__main__",
)
FOLDER = "scene"
CONFIG = """
output = "results"
[lineage]
file = "lineage.jsonl"
[prometheus]
file = "metrics.prom"
[resources]
threads = 1
[[stages]]
kind = "before_after"
pairs = "pairs/*.parquet"
thresholds = [1.0, 2.5, 4.0]
uncertainty = "none"
confidence = {confidence}
"""
RANKING = """
[[stages]]
kind = "ranking"
ranking = "queries.parquet"
cutoffs = [1]
uncertainty = "none"
"""


@dataclass(frozen=True)
class Outcome:
    """What a command did.

    Attributes:
        code: Its exit code; minus the signal when one ended it.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
    """

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Seen:
    """The run that readers see, and the hashes of its tables by path."""

    run_id: str
    generation: int
    hashes: dict[str, str]


class Scene:
    """Inputs, config and results in a folder of their own.

    Args:
        parent: Folder of the scene; what forks write to stdout and stderr lies beside it.
    """

    def __init__(self, parent: Path) -> None:
        self._parent, self.folder = parent, parent / FOLDER
        self.confidence, self.has_ranking = 0.9, False
        self.pairs.mkdir(parents=True)
        for number in range(2):
            self.write_pairs(number, seed=number)
        columns = {"query_id": [0, 0, 1, 1], "doc_id": [0, 1, 0, 1], "rank": [1, 2, 1, 2], "relevance": [1, 0, 0, 1]}
        pq.write_table(pa.table(columns), self.folder / "queries.parquet")

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def pairs(self) -> Path:
        return self.folder / "pairs"

    @property
    def config(self) -> Path:
        """The config, written as this scene has it now."""
        path = self.folder / "c.toml"
        path.write_text(CONFIG.format(confidence=self.confidence) + (RANKING if self.has_ranking else ""))
        return path

    def write_pairs(self, number: int, *, seed: int) -> None:
        """Write an input file in the place of any that has its number."""
        drawn = random.Random(seed)  # noqa: S311 - no secret
        columns = {
            "event_id": [drawn.randrange(9) for _ in range(40)],
            "article_id": [number * 1000 + row for row in range(40)],
            "score": [round(drawn.uniform(0.0, 5.0), 1) for _ in range(40)],
            "lag_hours": [round(drawn.uniform(-90.0, 90.0), 1) for _ in range(40)],
        }
        temporary = self.folder / "pairs.new"
        pq.write_table(pa.table(columns), temporary)
        temporary.replace(self.pairs / f"{number}.parquet")

    def inputs_digest(self) -> str:
        """What decides the numbers: config and content of all inputs."""
        digest = hashlib.sha256(self.config.read_bytes())
        for path in sorted(self.pairs.iterdir()):
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def call(self, *words: str) -> Outcome:
        """Call thresher in a fork."""
        return self._outcome(self.start(*words))

    def run(self) -> None:
        """Run the config, undisturbed."""
        outcome = self.call("run", "--quiet", str(self.config))
        assert outcome.code == 0, outcome

    def files(self) -> list[Path]:
        """Everything below the folder."""
        return sorted(self.folder.rglob("*"))

    def stops(self, *words: str) -> Iterator[None]:
        """Call thresher in a fork that stops again and again; it goes on when the caller comes back."""
        child = self.start(*words)
        while os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]):
            yield
            os.kill(child, signal.SIGCONT)

    def start(self, *words: str) -> int:
        """Start thresher in a fork; the number of its process."""

        def work() -> int:
            from pipeline.cli.app import app

            try:
                app(list(words))
            except SystemExit as end:
                return end.code if isinstance(end.code, int) else int(end.code is not None)
            return 0

        return self._fork(work)

    def check(self, work: Callable[[], None]) -> None:
        """Do work that reads results in a fork, because it starts threads.

        Raises:
            AssertionError: it failed; the text is its traceback.
        """

        def checked() -> int:
            work()
            return 0

        outcome = self._outcome(self._fork(checked))
        if outcome.code:
            raise AssertionError(outcome.err or f"exit {outcome.code}")

    def seen(self, results: Path | None = None, *, crashed: bool = False) -> Seen | None:
        """What readers see of results that are as they should be; None if nothing was published.

        Raises:
            AssertionError: they are not.
        """
        root, note = results or self.results, self._parent / "note"

        def work() -> None:
            visible = assert_results_ok(root, crashed=crashed)
            verify(root)  # what a crash leaves is no damage
            note.write_text(json.dumps([visible.run_id, visible.generation, visible.hashes]))

        if not (root / "catalog.duckdb").exists():
            assert not (root / "CURRENT").exists()
            assert not (root / "latest").is_symlink()
            return None
        self.check(work)
        return Seen(*json.loads(note.read_text()))

    def reference(self) -> tuple[int, dict[str, str]]:
        """Exit code and hashes of the tables of an undisturbed run of the same config on the same inputs."""
        digest = self.inputs_digest()
        if digest not in self._references:
            config, note = self.config, self._parent / "note"
            copy = config.with_name("undisturbed.toml")
            copy.write_text(config.read_text().replace('"results"', json.dumps(str(self._parent / "undisturbed"))))

            def work() -> None:
                try:
                    folder = stage_tables(load_config(copy)).path
                except ThresherError as error:
                    note.write_text(json.dumps([error.code, {}]))
                    return
                paths = folder.rglob("*.parquet")
                hashes = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
                note.write_text(json.dumps([0, hashes]))
                shutil.rmtree(folder)

            self.check(work)
            copy.unlink()
            code, hashes = json.loads(note.read_text())
            self._references[digest] = code, hashes
        return self._references[digest]

    @cached_property
    def _references(self) -> dict[str, tuple[int, dict[str, str]]]:
        return {}

    def _fork(self, work: Callable[[], int]) -> int:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = CHILD_FAILED
            try:
                for descriptor, name in ((1, "out"), (2, "err")):
                    file = os.open(self._parent / f"{name}.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                    os.dup2(file, descriptor)
                code = work()
            except BaseException:  # noqa: BLE001 - told in the file, and the fork must end here
                traceback.print_exc()
            finally:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
        return child

    def wait(self, *children: int) -> list[Outcome]:
        """Wait for commands that were started."""
        return [self._outcome(child) for child in children]

    def _outcome(self, child: int) -> Outcome:
        descriptor = os.pidfd_open(child)
        ended, _, _ = select.select([descriptor], [], [], LONGEST_SECONDS)
        os.close(descriptor)
        if not ended:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for name in ("out", "err"):
            path = self._parent / f"{name}.{child}"
            texts.append(path.read_text(errors="replace") if path.exists() else "")
            path.unlink(missing_ok=True)
        return Outcome(code if ended else HANGS, *texts)


def warm(scene: Scene) -> None:
    """Load what every command loads of the package itself: it is then there for every fork.

    Nothing here starts a thread, which a fork would lose. What changed a moment ago counts as settled, so that answers
    of files are kept.
    """
    for module in MODULES:
        import_module(module)
    for module in ("stage_results", "evaluation"):
        vars(import_module(f"pipeline.runs.{module}"))["RACY_SECONDS"] = 0.0
    load_config(scene.config)
    code_sha256()
    versions()
    for name in query_names():
        if name.partition("/")[0] in QUERIES:
            load(name)
