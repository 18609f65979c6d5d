"""A process that runs a config again and again, each time with a fault at another moment of its writing.

Words: the folder, the kind of fault, which share of the moments, of how many shares. Every attempt is a fork, so that
libraries are loaded once. A moment is anything that changes a file or a name below the results folder: opening for
writing, renaming, removing, making a folder, changing a mode, forcing to disk.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
import traceback
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from storage.promises import assert_results_ok

from pipeline.errors import ThresherError
from pipeline.queries.load import load, query_names
from pipeline.runs import runner
from pipeline.runs.config import load_config
from pipeline.runs.provenance import code_sha256, versions
from pipeline.storage.verify import verify
from runs.inputs.workplace import write_config

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"}
QUERIES = {"before_after", "checks", "inputs", "replicates"}
CHILD_FAILED = 99
NOT_REACHED = 98
RUN_AGAIN_EVERY = 9
KILL_EVERY = 8  # of the moments a process is killed in truth; of the others the folder is what a kill would leave
MANY, PUBLISHING, SOME = 250, 40, 16


class Fault:
    """Something that happens at the N-th moment."""

    def __init__(self, root: Path, kind: str, moment: int) -> None:
        self._root, self._kind, self.left = str(root), kind, moment
        self._sync = os.fsync

    def install(self) -> None:
        sys.addaudithook(self._notice)
        os.fsync = self._synced  # type: ignore[assignment]

    def reached(self) -> bool:
        return self.left <= 0

    def _synced(self, descriptor: int) -> None:
        self._count()
        self._sync(descriptor)

    def _notice(self, event: str, words: tuple[object, ...]) -> None:
        if event in EVENTS and str(words[0]).startswith(self._root) and self._writes(event, words):
            self._count()

    @staticmethod
    def _writes(event: str, words: tuple[object, ...]) -> bool:
        return event != "open" or bool(int(str(words[2])) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            if self._kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            number = {"full": errno.ENOSPC, "broken": errno.EIO}[self._kind]
            raise OSError(number, self._kind)


class Copies(Fault):
    """No fault: a copy of the folder at some of the moments, by what is left of all when they come."""

    moments: dict[int, Path]

    def _count(self) -> None:
        self.left -= 1
        if self.left in self.moments:
            shutil.copytree(self._root, self.moments[self.left], symlinks=True)


def in_child(work: Callable[[], int]) -> int:
    """The exit code of some work in a fork; minus the signal when one ended it."""
    child = os.fork()
    if child == 0:
        code = CHILD_FAILED
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - told below, and the fork must end here
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(config: Path, before: Callable[[], None], reached: Callable[[], bool]) -> int:
    """The exit code of a run with a fault; another one when it ended before the fault."""

    def work() -> int:
        loaded = load_config(config)
        before()
        try:
            runner.run(loaded)
        except ThresherError as error:
            return error.code
        return 0 if reached() else NOT_REACHED

    return in_child(work)


def run_again(config: Path, *generations: int) -> int:
    """What the next run does after a fault: it succeeds and tidies up."""

    def work() -> int:
        runner.run(load_config(config))
        assert assert_results_ok(config.parent / "results").generation in generations
        return 0

    return in_child(work)


def check(root: Path, generations: set[int], *, crashed: bool) -> None:
    def work() -> int:
        assert assert_results_ok(root, crashed=crashed).generation in generations
        verify(root)  # what a crash leaves is no damage
        return 0

    assert in_child(work) == 0


def limited(size: int) -> None:
    """Let no file grow beyond a size, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def every_moment(folder: Path, kind: str, share: int, shares: int) -> int:
    """Fail at moment after moment, one share of them all; the number of moments that a run has.

    While tables are written the same moments come again and again: of those, some are enough. From the first record of
    the run on, every one counts.
    """
    results = folder / "results"
    assert run_again(configured(folder, 1), 1) == 0
    shutil.copytree(results, folder / "old")
    counter = Fault(results, kind, MANY)
    total = MANY - in_child(lambda: counted(configured(folder, 2), counter))
    moments = [*range(1, max(total - PUBLISHING, 1), SOME), *range(max(total - PUBLISHING, 1), total + 1)][
        share::shares
    ]
    if kind == "kill":
        _what_a_kill_leaves(folder, moments)
    for number, moment in enumerate(moments):
        shutil.rmtree(results)
        if kind == "kill" and number % KILL_EVERY:
            (folder / f"moment-{moment}").rename(results)
            code = -signal.SIGKILL
        else:
            shutil.copytree(folder / "old", results)
            fault = Fault(results, kind, moment)
            code = run(configured(folder, 2), fault.install, fault.reached)
        assert code in ({-signal.SIGKILL} if kind == "kill" else {0, 74}), f"moment {moment}: exit {code}"
        check(results, {-signal.SIGKILL: {1, 2}, 74: {1}, 0: {2}}[code], crashed=True)
        if moment % RUN_AGAIN_EVERY == 0:
            assert run_again(configured(folder, 3), 2, 3) == 0, f"after moment {moment}"
    return total


def _what_a_kill_leaves(folder: Path, moments: list[int]) -> None:
    """Run once and copy the results at every moment: a kill leaves what other processes see, and a process gone."""
    results = folder / "results"
    shutil.rmtree(results)
    shutil.copytree(folder / "old", results)
    copies = Copies(results, "copy", MANY)
    copies.moments = {MANY - moment: folder / f"moment-{moment}" for moment in moments}
    assert in_child(lambda: counted(configured(folder, 2), copies)) < MANY


def counted(config: Path, fault: Fault) -> int:
    """Moments that are left of many after a run without a fault."""
    loaded = load_config(config)
    fault.install()
    runner.run(loaded)
    return fault.left


def every_size(folder: Path) -> int:
    """Let files grow to one size after another until a run comes through; that size."""
    results, size = folder / "results", 64
    assert run_again(configured(folder, 1), 1) == 0
    while (code := run(configured(folder, 2), partial(limited, size), lambda: True)) != 0:
        assert code == 74, f"size {size}: exit {code}"
        check(results, {1}, crashed=True)
        size *= 2
    check(results, {2}, crashed=False)
    return size


def configured(folder: Path, generation: int) -> Path:
    """A config that is another than that of the generation before."""
    return write_config(folder / "c.toml", by=None, confidence=1 - 0.1 / generation)


def warm(config: Path) -> None:
    """Read what every run reads of the package itself: it is then there for every fork, and no moment of a run.

    Nothing here starts a thread, which a fork would lose.
    """
    import_module("sqlglot.generators.duckdb")
    load_config(config)
    code_sha256()
    versions()
    for name in query_names():
        if name.partition("/")[0] in QUERIES:
            load(name)


if __name__ == "__main__":
    warm(configured(Path(sys.argv[1]), 1))
    here, what, *numbers = sys.argv[1:]
    print(every_size(Path(here)) if what == "size" else every_moment(Path(here), what, *map(int, numbers)))  # noqa: T201
