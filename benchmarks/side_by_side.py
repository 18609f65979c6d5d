"""Two things timed in turns, so that a busy machine slows both alike; and the table of what came out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MEBI = 1024 * 1024
_CHILD = Path(__file__).with_name("in_child.py")


@dataclass(frozen=True)
class Took:
    """What one execution took.

    Attributes:
        wall: Seconds on the clock.
        cpu: Seconds of processor time, over all threads: the steadier number on a busy machine.
    """

    wall: float
    cpu: float


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        job: What was measured.
        figure: The number that the target is about, with its unit.
        target: What it should be; empty: nothing is promised.
        value: The number of `figure`.
        met: Whether the target is met; None without one.
        cpu_figure: As `figure`, of processor time.
        seconds: Median of the job, if it was timed.
        floor_seconds: Median of what it is compared with.
        times: Every execution of the job, in order.
        floor_times: Every execution of the floor.
    """

    job: str
    figure: str
    target: str
    value: float
    met: bool | None
    cpu_figure: str = ""
    seconds: float | None = None
    floor_seconds: float | None = None
    times: tuple[Took, ...] = field(default=())
    floor_times: tuple[Took, ...] = field(default=())


@dataclass(frozen=True)
class Times:
    """Executions of a job and of its floor, in turns."""

    job: tuple[Took, ...]
    floor: tuple[Took, ...]

    def ratio(
        self, name: str, *, at_most: float | None = None, at_least: float | None = None, share: float = 1.0
    ) -> Line:
        """The line that says how many times its floor a job takes.

        Args:
            name: The job.
            at_most: Target.
            at_least: Target of what is meant to be slow.
            share: Part of the floor's work that the job does.
        """
        wall, cpu = self._medians(share)
        value = wall[0] / wall[1]
        target = f"≤ {at_most:g} ×" if at_most else f"≥ {at_least:g} ×" if at_least else ""
        met = value <= at_most if at_most else value >= at_least if at_least else None
        return Line(name, f"{value:.2f} ×", target, value, met, f"{cpu[0] / cpu[1]:.2f} ×", *wall, self.job, self.floor)

    def difference(self, name: str, *, at_most: float | None) -> Line:
        """The line that says how many seconds longer than its floor a job takes."""
        wall, cpu = self._medians(1.0)
        value = wall[0] - wall[1]
        figures = f"{value:+.2f} s", f"≤ +{at_most:g} s" if at_most else ""
        met = value <= at_most if at_most else None
        return Line(name, *figures, value, met, f"{cpu[0] - cpu[1]:+.2f} s", *wall, self.job, self.floor)

    def _medians(self, share: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Medians of (job, floor × share), on the clock and of processor time."""
        wall = median(each.wall for each in self.job), share * median(each.wall for each in self.floor)
        cpu = median(each.cpu for each in self.job), share * median(each.cpu for each in self.floor)
        return wall, cpu


def in_turns(job: Callable[[], Took | None], floor: Callable[[], Took | None], repeats: int) -> Times:
    """Warm both up, then time them in turns.

    Args:
        job: What is measured; one that runs elsewhere returns what it took.
        floor: What it is compared with.
        repeats: Number of turns.
    """
    _timed(job)
    _timed(floor)
    pairs = [(_timed(job), _timed(floor)) for _ in range(repeats)]
    return Times(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def _timed(work: Callable[[], Took | None]) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    reported = work()
    return reported or Took(time.perf_counter() - wall, time.process_time() - cpu)


@dataclass(frozen=True)
class Child:
    """What a child process took, and its peak resident memory in bytes."""

    took: Took
    peak_rss: int


def child(command: Sequence[str | Path]) -> Child:
    """Run a command in a process of its own and wait for it.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    words = [sys.executable, "-I", "-S", str(_CHILD), *map(str, command)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    facts = json.loads(done.stdout)
    if facts["exit"] != 0:
        message = f"{' '.join(map(str, command))} ended with {facts['exit']}: {done.stderr}"
        raise RuntimeError(message)
    return Child(Took(facts["seconds"], facts["cpu"]), facts["peak_rss"])


def in_process(
    *command: str | Path, before: Callable[[], None] | None = None
) -> tuple[Callable[[], Took], list[Child]]:
    """Work that runs a command in a process of its own, after what is not timed; and what its runs took."""
    runs: list[Child] = []

    def work() -> Took:
        if before is not None:
            before()
        runs.append(child(command))
        return runs[-1].took

    return work, runs


def memory(name: str, runs: Sequence[Child], *, at_most: int) -> Line:
    """The line that says how much memory processes had at their peak."""
    target, peak = f"≤ {at_most / MEBI:,.0f} MiB", max(run.peak_rss for run in runs)
    return Line(f"{name}: peak memory", f"{peak / MEBI:,.0f} MiB", target, peak, peak <= at_most)


HEADERS = ("job", "seconds", "floor", "result", "of CPU", "target", "")


def print_header(width: int) -> None:
    """Print the head of the table; `width` is the width of its first column."""
    print(_row(HEADERS, width))
    print("-" * len(_row(HEADERS, width)), flush=True)


def print_line(line: Line, width: int) -> None:
    """Print one line of the table as soon as it is known."""
    seconds, floor = (f"{each:.3f}" if each is not None else "" for each in (line.seconds, line.floor_seconds))
    verdict = "" if line.met is None else "met" if line.met else "missed"
    print(_row((line.job, seconds, floor, line.figure, line.cpu_figure, line.target, verdict), width), flush=True)


def _row(cells: Sequence[str], width: int) -> str:
    job, seconds, floor, figure, cpu, target, verdict = cells
    return f"{job:<{width}}{seconds:>9}{floor:>9}{figure:>11}{cpu:>10}{target:>13}  {verdict:<6}"


def write_json(path: Path, lines: Sequence[Line], facts: dict[str, object]) -> None:
    """Write facts and lines to a JSON file."""
    path.write_text(json.dumps(facts | {"lines": [asdict(line) for line in lines]}, indent=2) + "\n")
