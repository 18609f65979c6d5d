"""Faults below Python, many of them: `python dev.py faults`.

This process answers its calls of the C library through the shim and forks for every command that a fault is to hit, so
that libraries are loaded once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from runs.faults import shim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runs.faults.scene import Scene
    from runs.faults.sweeps import Tally

FAILED = 1
HEALED = 5  # after one of so many kills the next run follows
LONGEST_WALK = 50


def main() -> int:
    """Inject faults as the command line says; 0 if none left a broken state."""
    words = _words()
    if (reason := shim.missing_here()) is not None:
        print(reason, file=sys.stderr)  # noqa: T201
        return FAILED
    if shim.VARIABLE not in os.environ:
        with tempfile.TemporaryDirectory(prefix="thresher-faults-") as folder:
            environment = os.environ | shim.environment(Path(folder)) | {"PYTHONPATH": os.pathsep.join(sys.path)}
            command = [sys.executable, "-m", "runs.faults.driver", *sys.argv[1:]]
            return subprocess.run(command, env=environment, check=False).returncode
    from runs.faults.sweeps import Tally

    tally = Tally()
    _sweep(words, tally)
    _walk(words, tally)
    print(tally)  # noqa: T201
    return FAILED if tally.broken else 0


def _sweep(words: argparse.Namespace, tally: Tally) -> None:
    """Inject faults at call after call of every command."""
    from runs.faults.sweeps import ACTS, Sweep

    for act in ACTS:
        if words.act in act.name and words.faults + words.kills:
            with _scene() as scene:
                sweep = Sweep(scene, shim.Shim(), act, tally)
                sweep.kills(words.kills, words.kills // HEALED, words.seed)
                sweep.faults(words.faults, words.seed)
            print(f"{act.name}: {tally}", flush=True)  # noqa: T201


def _walk(words: argparse.Namespace, tally: Tally) -> None:
    """Walk from seed after seed, so many steps together; a walk is drawn again by its seed alone."""
    from runs.faults.model import Walk

    n_left = words.steps
    for seed in count(words.seed):
        if n_left <= 0:
            return
        with _scene() as scene:
            walk = Walk(scene, shim.Shim(), tally, seed, told=_tell if words.verbose else None)
            walk.steps(min(LONGEST_WALK, n_left))
        n_left -= LONGEST_WALK
        print(f"walk of seed {seed}: {tally}", flush=True)  # noqa: T201


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


@contextmanager
def _scene() -> Iterator[Scene]:
    from runs.faults.scene import Scene, warm

    with tempfile.TemporaryDirectory(prefix="thresher-faults-") as folder:
        scene = Scene(Path(folder).resolve())
        warm(scene)
        yield scene


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python dev.py faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn; walks begin with it (default 0)")
    parser.add_argument("--steps", type=int, default=200, help=f"steps of walks, of {LONGEST_WALK} each (default 200)")
    parser.add_argument("--faults", type=int, default=40, help="faults at calls of each command (default 40)")
    parser.add_argument("--kills", type=int, default=40, help="kills at calls of each command (default 40)")
    parser.add_argument("--act", default="", help="only the command with this in its name")
    parser.add_argument("--verbose", action="store_true", help="tell every step")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
