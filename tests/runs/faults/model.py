"""A seeded walk through all that happens to a results folder, faults among it; after every step the promises hold."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runs.faults.shim import Action
from runs.faults.survival import FAULTS, Fault, assert_survived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runs.faults.scene import Scene, Seen
    from runs.faults.shim import Shim
    from runs.faults.sweeps import Tally

MOST_FILES = 4
FAULTY, CONCURRENT, HEALED, RESTORED = 0.6, 0.15, 0.2, 0.6
USUAL_CALLS = 400
LASTING = {Action.SHORT, Action.FAIL_ON, Action.FILL}  # the command may go on to its end


class Walk:
    """Steps drawn from a seed, on a scene of its own.

    Args:
        scene: A new scene.
        shim: The shim of this process.
        tally: What is counted.
        seed: Decides every step.
        told: Called with a line about every command; None: nobody wants to know.
    """

    def __init__(self, scene: Scene, shim: Shim, tally: Tally, seed: int, told: Callable[[str], None] | None) -> None:
        self._scene, self._shim, self._tally, self._told = scene, shim, tally, told
        self._seed, self._drawn = seed, random.Random(seed)  # noqa: S311 - no secret
        self._before: Seen | None = None
        self._damaged: set[int] = set()
        self._n_calls: dict[tuple[str, str], int] = {}
        self._n_steps = 0

    def steps(self, n_steps: int) -> None:
        """Take some steps, none after a state that is broken."""
        weights = {
            self._new_file: 1,
            self._changed_file: 2,
            self._deleted_file: 1,
            self._damaged_file: 1,
            self._another_config: 2,
            self._damaged_answers: 1,
            self._run: 12,
            self._expire: 2,
            self._repair: 2,
        }
        n_broken = len(self._tally.broken)
        for step in self._drawn.choices(list(weights), list(weights.values()), k=n_steps):
            self._n_steps += 1
            step()
            if len(self._tally.broken) > n_broken:
                return

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._scene.pairs.iterdir())

    def _write(self, number: int) -> None:
        self._scene.write_pairs(number, seed=self._drawn.randrange(10**6))
        self._damaged.discard(number)

    def _new_file(self) -> None:
        numbers = self._numbers()
        if len(numbers) < MOST_FILES:
            self._write(max(numbers) + 1)

    def _changed_file(self) -> None:
        self._write(self._drawn.choice(sorted(self._damaged) or self._numbers()))

    def _deleted_file(self) -> None:
        numbers = self._numbers()
        if len(numbers) > 1:
            number = self._drawn.choice(sorted(self._damaged) or numbers)
            (self._scene.pairs / f"{number}.parquet").unlink()
            self._damaged.discard(number)

    def _damaged_file(self) -> None:
        """An input file is cut off, or a bit of it flips."""
        number = self._drawn.choice(self._numbers())
        path = self._scene.pairs / f"{number}.parquet"
        content = bytearray(path.read_bytes())
        if not content:
            return
        position = self._drawn.randrange(len(content))
        if self._drawn.random() < 0.5:
            del content[position:]
        else:
            content[position] ^= 1 << self._drawn.randrange(8)
        path.write_bytes(content)
        self._damaged.add(number)

    def _another_config(self) -> None:
        self._scene.confidence = self._drawn.choice([0.8, 0.9, 0.95])
        self._scene.has_ranking = self._drawn.random() < 0.5

    def _damaged_answers(self) -> None:
        """A bit flips in what is kept of single input files."""
        kept = sorted((self._scene.results / ".cache").glob("*/*.answers"))
        if kept:
            path = self._drawn.choice(kept)
            content = bytearray(path.read_bytes())
            content[self._drawn.randrange(len(content))] ^= 1 << self._drawn.randrange(8)
            path.write_bytes(content)

    def _run(self) -> None:
        if self._damaged and self._drawn.random() < RESTORED:
            for number in sorted(self._damaged):
                self._write(number)
        cache = ["--no-cache"] if self._drawn.random() < 0.3 else []
        n_at_once = self._drawn.choice([2, 3]) if self._drawn.random() < CONCURRENT else 1
        self._command("run", "--quiet", str(self._scene.config), *cache, n_at_once=n_at_once, publishes=True)

    def _expire(self) -> None:
        if self._before is not None:
            self._command("expire", str(self._scene.results), "--keep", str(self._drawn.choice([1, 2])))

    def _repair(self) -> None:
        if self._before is not None:
            self._command("verify", str(self._scene.results), "--repair")

    def _command(self, *words: str, n_at_once: int = 1, publishes: bool = False) -> None:
        """Call thresher, perhaps several times at once and perhaps with a fault, and see that all is as promised."""
        drawn = self._drawn
        fault = drawn.choice(FAULTS) if drawn.random() < FAULTY else None
        heals = drawn.random() < HEALED
        number = self._number(words[0], fault) if fault is not None else 0
        with self._armed(fault, number):
            outcomes = self._scene.wait(*[self._scene.start(*words) for _ in range(n_at_once)])
        fired = self._shim.fired if fault is not None else 0
        ends = ", ".join(str(outcome.code) for outcome in outcomes)
        what = f"{fault.name} at call {number}" if fault is not None and fired else "undisturbed"
        if fault is not None and (not fired or fault.action in LASTING):
            self._n_calls[words[0], fault.name] = max(len(self._shim.calls), 1)
        title = f"seed {self._seed}, step {self._n_steps}: {words[0]}, {what}: exit {ends}"
        if self._told is not None:
            self._told(title)

        def survives() -> None:
            self._before = assert_survived(
                self._scene, self._before, outcomes, fault if fired else None, publishes=publishes, heals=heals
            )

        self._tally.note(title, fired, survives)

    @contextmanager
    def _armed(self, fault: Fault | None, number: int) -> Iterator[None]:
        if fault is None:
            yield
            return
        folder = self._scene.folder / fault.within
        with self._shim.armed(folder, fault.kinds, fault.action, number=number, error=fault.error):
            yield

    def _number(self, command: str, fault: Fault) -> int:
        """Draw the call that a fault hits, of as many as there were the last time; half of the time an early one."""
        n_calls = self._n_calls.get((command, fault.name), USUAL_CALLS)
        is_early = self._drawn.random() < 0.5
        return round(n_calls ** self._drawn.random()) if is_early else self._drawn.randint(1, n_calls)
