"""What must hold after any fault, seen from outside: `assert_survived`."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runs.faults.shim import Action, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runs.faults.scene import Outcome, Scene, Seen
    from runs.faults.shim import Call

DOCUMENTED = {0, 2, 3, 65, 66, 69, 71, 73, 74, 75, 77, 78, 130, 143}  # docs/operations.md; 70 would be a bug
CODES = {
    errno.ENOSPC: {74},
    errno.EDQUOT: {74},
    errno.EIO: {74},
    errno.EMFILE: {74},
    errno.ENOLCK: {74},
    errno.EACCES: {77, 73},
    errno.EROFS: {73},
}
NEEDS_SPACE = Kind.CREATE | Kind.WRITE | Kind.FOLDER | Kind.LINK | Kind.TRUNCATE
NAMES = Kind.OPEN_TO_READ | Kind.OPEN_TO_WRITE | Kind.CREATE | Kind.RENAME | Kind.UNLINK | Kind.LINK | Kind.FOLDER
KILLS = {Action.KILL_BEFORE, Action.KILL_AFTER, Action.KILL_WITHIN}


@dataclass(frozen=True)
class Fault:
    """What goes wrong at one call.

    Attributes:
        name: What people call it.
        kinds: Calls at which it can happen.
        action: What happens.
        error: The number of the system's error, or of the signal.
        within: The folder of the scene in which it happens; empty: everywhere.
    """

    name: str
    kinds: Kind
    action: Action
    error: int = 0
    within: str = ""

    def can_hit(self, call: Call) -> bool:
        """Whether it can happen at a call in the scene."""
        return bool(call.kind & self.kinds) and f"{call.path}/".startswith(f"/{self.within}/" if self.within else "/")


FAULTS = (
    Fault("disk full for a moment", NEEDS_SPACE | Kind.RENAME | Kind.SYNC, Action.FAIL, errno.ENOSPC),
    Fault("disk full", NEEDS_SPACE, Action.FILL, errno.ENOSPC),
    Fault("quota", NEEDS_SPACE, Action.FILL, errno.EDQUOT),
    Fault("input/output error", Kind.ANY & ~Kind.LOCK, Action.FAIL, errno.EIO),
    Fault("input/output errors", Kind.CHANGE | Kind.READ, Action.FAIL_ON, errno.EIO, "results"),
    Fault("input cannot be read", Kind.READ | Kind.OPEN_TO_READ | Kind.LIST, Action.FAIL_ON, errno.EIO, "pairs"),
    Fault("access refused", NAMES | Kind.LIST, Action.FAIL, errno.EACCES),
    Fault("read-only", NAMES & ~Kind.OPEN_TO_READ | Kind.TRUNCATE, Action.FAIL_ON, errno.EROFS, "results"),
    Fault("folder of another user", NAMES & ~Kind.OPEN_TO_READ, Action.FAIL_ON, errno.EACCES, "results"),
    Fault("too many open files", Kind.OPEN_TO_READ | Kind.OPEN_TO_WRITE | Kind.CREATE, Action.FAIL, errno.EMFILE),
    Fault("no locks", Kind.LOCK, Action.FAIL_ON, errno.ENOLCK),
    Fault("short write", Kind.WRITE, Action.SHORT),
    Fault("kill before a call", Kind.CHANGE, Action.KILL_BEFORE),
    Fault("kill after a call", Kind.CHANGE, Action.KILL_AFTER),
    Fault("kill within a write", Kind.WRITE, Action.KILL_WITHIN),
    Fault("SIGTERM", Kind.ANY, Action.SIGNAL, signal.SIGTERM),
)


def assert_survived(
    scene: Scene,
    before: Seen | None,
    outcomes: Sequence[Outcome],
    fault: Fault | None = None,
    *,
    publishes: bool,
    harmed: bool = False,
    heals: bool = True,
) -> Seen | None:
    """A results folder and what a command said of it are as promised, whatever happened to the command.

    The exit code is documented and the message names the fault; readers see one whole run, whose files, manifest,
    catalog and counts agree, the run before or the new one, and never a new one after an error; the tables of a new one
    are those of an undisturbed run; what is left does not stop the next run, which makes the same tables and tidies up.

    Args:
        scene: The folder.
        before: What readers saw before the command.
        outcomes: What the command did; several if it was called as often at the same time.
        fault: What went wrong below it.
        publishes: Whether the command may publish a run.
        harmed: Whether the folder was damaged before the command: readers may see nothing until it has ended well.
        heals: Whether the next run follows here; otherwise it is the caller's next step.

    Returns:
        What readers see now.
    """
    code, hashes = scene.reference() if publishes or heals else (0, {})
    codes = {outcome.code for outcome in outcomes}
    for outcome in outcomes:
        _assert_documented(outcome, fault, code)
    if fault is None:
        assert codes - {75} == {code if publishes else 0}, f"exit {codes} without a fault: {outcomes}"
    seen = before
    if not harmed or 0 in codes:
        seen = scene.seen(crashed=fault is not None or code != 0)
        _assert_old_or_new(seen, before, codes, hashes, publishes=publishes)
    if heals:
        after = scene.call("run", str(scene.config))
        assert after.code == code, f"the next run: {after}"
        seen = scene.seen(crashed=code != 0)
        assert code or (seen is not None and seen.hashes == hashes), "the tables of the next run are others"
    return seen


def _assert_old_or_new(
    seen: Seen | None, before: Seen | None, codes: set[int], hashes: dict[str, str], *, publishes: bool
) -> None:
    """Readers see the run before; or, if a command succeeded or was killed, a new one with the right tables."""
    same = (seen and seen.run_id) == (before and before.run_id)
    assert not same or seen == before, "a published run has changed"
    assert same or (publishes and codes & {0, -signal.SIGKILL}), f"exit {codes}, but another run is seen"
    if publishes and (0 in codes or not same):
        assert seen is not None, "exit 0, but nothing is published"
        assert seen.hashes == hashes, "the tables are not those of an undisturbed run"


def _assert_documented(outcome: Outcome, fault: Fault | None, undisturbed: int) -> None:
    """The exit code is one of those that people can act on, and one message names the fault, or that of the inputs."""
    assert "Traceback" not in outcome.err, outcome.err
    if fault is not None and fault.action in KILLS and outcome.code == -signal.SIGKILL:
        return
    assert outcome.code in DOCUMENTED, f"exit {outcome.code}: {outcome.err}"
    if outcome.code == 0:
        return
    assert sum(line.startswith("error: ") for line in outcome.err.splitlines()) == 1, outcome.err
    assert outcome.err.rstrip().endswith(f"[exit {outcome.code}]"), outcome.err
    if fault is not None and outcome.code not in {75, undisturbed}:
        _assert_fault_named(outcome, fault)


def _assert_fault_named(outcome: Outcome, fault: Fault) -> None:
    if fault.action == Action.SIGNAL:
        assert outcome.code == 128 + fault.error, outcome.err
    elif fault.action in {Action.FAIL, Action.FAIL_ON, Action.FILL}:
        assert os.strerror(fault.error) in outcome.err, f"{os.strerror(fault.error)!r} is not in {outcome.err}"
        told_as_damage = any(words in outcome.err for words in ("estore what is damaged", "Repair it again"))
        damaged = {65} if fault.error == errno.EIO and told_as_damage else set()
        assert outcome.code in CODES[fault.error] | damaged, f"exit {outcome.code} for {fault.name}: {outcome.err}"
