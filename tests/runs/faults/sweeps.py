"""Faults at call after call of a command, every time from the same state."""

from __future__ import annotations

import random
import re
import shutil
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runs.faults.scene import Outcome
from runs.faults.shim import Action, Kind
from runs.faults.survival import FAULTS, Fault, assert_survived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from runs.faults.scene import Scene
    from runs.faults.shim import Call, Shim

KILLED = next(fault for fault in FAULTS if fault.action == Action.KILL_BEFORE)
STATE = ("results", "lineage.jsonl", "metrics.prom")
TOLD_EVERY = 20  # faults
HEALED = 2  # after one of so many faults the next run follows
VARYING = re.compile(r"[0-9a-f]{12,}|\d+")


@dataclass(frozen=True)
class Act:
    """A command on a state.

    Attributes:
        name: What people call it.
        prepare: Makes the state.
        words: The command.
        publishes: Whether it may publish a run.
        harm: Damages the state, so that readers may see nothing until the command has mended it.
    """

    name: str
    prepare: Callable[[Scene], None]
    words: Callable[[Scene], tuple[str, ...]]
    publishes: bool = True
    harm: Callable[[Scene], None] | None = None


@dataclass
class Tally:
    """What happened so far: faults that were injected, and the broken states that they left, as sentences."""

    injected: int = 0
    broken: list[str] = field(default_factory=list)

    def note(self, title: str, fired: int, survives: Callable[[], object]) -> None:
        """Count a fault and see whether it was survived."""
        self.injected += bool(fired)
        if fired and self.injected % TOLD_EVERY == 0:
            print(self, flush=True)  # noqa: T201 - so that people see that it goes on
        try:
            survives()
        except AssertionError as error:
            self.broken.append(f"{title}: {error}")
            print(f"BROKEN {self.broken[-1]}", flush=True)  # noqa: T201 - told as it is found

    def __str__(self) -> str:
        return f"{self.injected:,} faults injected, {len(self.broken):,} left a broken state"


def _nothing(scene: Scene) -> None:
    shutil.rmtree(scene.results, ignore_errors=True)


def _runs(count: int) -> Callable[[Scene], None]:
    def prepare(scene: Scene) -> None:
        for number in range(count):
            scene.confidence = 0.5 + number / 10
            scene.run()

    return prepare


def _another_config(scene: Scene) -> None:
    _runs(1)(scene)
    scene.confidence = 0.9


def _another_file(scene: Scene) -> None:
    _runs(1)(scene)
    scene.write_pairs(2, seed=2)


def _lose_catalog(scene: Scene) -> None:
    (scene.results / "catalog.duckdb").unlink()
    (scene.results / "CURRENT").unlink()


def _run(scene: Scene) -> tuple[str, ...]:
    return "run", "--quiet", str(scene.config)


ACTS = (
    Act("first run", _nothing, _run),
    Act("another config", _another_config, _run),
    Act("another input file", _another_file, _run),
    Act("nothing new", _runs(1), _run),
    Act("expire", _runs(3), lambda scene: ("expire", str(scene.results), "--keep", "1"), publishes=False),
    Act("repair", _runs(2), lambda scene: ("verify", str(scene.results), "--repair"), False, _lose_catalog),
)


class Sweep:
    """One act, done again and again from the same state."""

    def __init__(self, scene: Scene, shim: Shim, act: Act, tally: Tally) -> None:
        self._scene, self._shim, self._act, self._tally = scene, shim, act, tally
        self._saved = scene.folder.with_name("saved")
        _nothing(scene)
        act.prepare(scene)
        self._words = act.words(scene)
        self._before = scene.seen()
        if act.harm is not None:
            act.harm(scene)
        self._copy(scene.folder, self._saved)

    def faults(self, n_faults: int, seed: int) -> None:
        """Inject some of all faults that are possible, of every kind of fault, call and path about as many."""
        drawn = random.Random(seed)  # noqa: S311 - no secret
        possible = list(self._possible(drawn))
        for number in range(min(n_faults, len(possible))):
            self._inject(*possible[number], heals=number % HEALED == 0)

    def _possible(self, drawn: random.Random) -> Iterator[tuple[Fault, int, Call]]:
        """Every fault at every call, of each kind in turn."""
        groups: dict[tuple[str, ...], list[tuple[Fault, int, Call]]] = {}
        every_call = self.calls()
        for fault in FAULTS:
            calls = (call for call in every_call if fault.can_hit(call))
            for number, call in enumerate(calls, start=1):
                key = fault.name, call.name, VARYING.sub("*", call.path)
                groups.setdefault(key, []).append((fault, number, call))
        for group in groups.values():
            drawn.shuffle(group)
        order = list(groups.values())
        while order:
            drawn.shuffle(order)
            yield from (group.pop() for group in order)
            order = [group for group in order if group]

    def calls(self) -> list[Call]:
        """The calls of the act, undisturbed."""
        self._restore()
        with self._shim.armed(self._scene.folder, Kind.ANY):
            self._scene.call(*self._words)
        return self._shim.calls

    def _inject(self, fault: Fault, number: int, call: Call, *, heals: bool) -> None:
        """Do the act with a fault at one call."""
        self._restore()
        folder = self._scene.folder / fault.within
        with self._shim.armed(folder, fault.kinds, fault.action, number=number, error=fault.error):
            outcome = self._scene.call(*self._words)
        title = f"{self._act.name}, {fault.name} at call {number} ({call.name} {call.path})"
        self._judge(title, outcome, fault, fired=self._shim.fired, heals=heals)

    def kills(self, n_moments: int, n_healed: int, seed: int) -> None:
        """Do the act once, and see what a kill would leave before some of the calls that change something.

        That is what others see at that moment, and a process that has gone.

        Args:
            n_moments: At how many moments, of all at which the folder differs.
            n_healed: After how many of them the next run follows.
            seed: Which ones.
        """
        self._restore()
        moments = self._moments()
        drawn = random.Random(seed)  # noqa: S311 - no secret
        drawn.shuffle(moments)
        for number, (title, folder) in enumerate(moments[:n_moments]):
            self._copy(folder, self._scene.folder)
            killed = Outcome(-signal.SIGKILL, "", "")
            self._judge(f"{self._act.name}, killed before {title}", killed, KILLED, fired=1, heals=number < n_healed)
        for _, folder in moments:
            shutil.rmtree(folder)

    def _moments(self) -> list[tuple[str, Path]]:
        moments: list[tuple[str, Path]] = []
        last: object = None
        with self._shim.armed(self._scene.folder, KILLED.kinds, Action.STOP):
            for number, _ in enumerate(self._scene.stops(*self._words), start=1):
                state = [(path, path.lstat().st_mtime_ns, path.lstat().st_size) for path in self._scene.files()]
                if state != last:
                    folder = self._saved.with_name(f"moment-{number}")
                    self._copy(self._scene.folder, folder)
                    call = self._shim.calls[-1]
                    moments.append((f"call {number} ({call.name} {call.path})", folder))
                last = state
        return moments

    def _judge(self, title: str, outcome: Outcome, fault: Fault, *, fired: int, heals: bool) -> None:
        def survives() -> object:
            act = self._act
            harmed = act.harm is not None
            return assert_survived(
                self._scene, self._before, [outcome], fault, publishes=act.publishes, harmed=harmed, heals=heals
            )

        self._tally.note(title, fired, survives)

    def _restore(self) -> None:
        self._copy(self._saved, self._scene.folder)

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        """Copy what a command may change; inputs stay, since a new time would make them other files."""
        target.mkdir(exist_ok=True)
        for name in STATE:
            path = target / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if (source / name).is_dir():
                shutil.copytree(source / name, path, symlinks=True)
            elif (source / name).exists():
                shutil.copy2(source / name, path)
