from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pipeline.engines.engine import MIB, default_limit, process_limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("container", "limit"),
    [(64 * GIB, 44.8 * GIB), (4 * GIB, 2.8 * GIB), (GIB, 0.7 * GIB), (512 * MIB, 256 * MIB), (300 * MIB, 60 * MIB)],
)
def test_python_and_polars_have_room_beside_the_engine(container: float, limit: float) -> None:
    assert default_limit(int(0.8 * container)) == pytest.approx(limit, rel=1e-6)


def test_a_limit_that_the_engine_overlooks_counts() -> None:
    assert default_limit(int(0.8 * 64 * GIB), 4 * GIB) == pytest.approx(2.8 * GIB, rel=1e-6)
    assert default_limit(int(0.8 * 4 * GIB), 64 * GIB) == pytest.approx(2.8 * GIB, rel=1e-6)


ENDLESS = 9223372036854771712  # as version 1 says where there is no limit
UNIFIED, MEMORY = "sys/fs/cgroup", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/\n", {f"{UNIFIED}/memory.max": "max"}, None),
        ("0::/\n", {f"{UNIFIED}/memory.max": GIB}, GIB),  # a container
        ("0::/a.slice/b.service\n", {f"{UNIFIED}/a.slice/b.service/memory.max": GIB}, GIB),
        (  # the slice around a service, and the softer limit
            "0::/a.slice/b.service\n",
            {f"{UNIFIED}/a.slice/b.service/memory.max": 4 * GIB, f"{UNIFIED}/a.slice/memory.high": 2 * GIB},
            2 * GIB,
        ),
        ("4:memory:/docker/7f\n", {f"{MEMORY}/memory.limit_in_bytes": GIB}, GIB),  # seen from inside
        (  # a step of a batch job
            "5:cpu,cpuacct:/\n4:memory:/slurm/job_1/step_0\n0::/\n",
            {
                f"{MEMORY}/memory.limit_in_bytes": ENDLESS,
                f"{MEMORY}/slurm/job_1/memory.limit_in_bytes": 3 * GIB,
                f"{MEMORY}/slurm/job_1/step_0/memory.limit_in_bytes": ENDLESS,
                f"{MEMORY}/slurm/job_1/step_0/memory.soft_limit_in_bytes": ENDLESS,
            },
            3 * GIB,
        ),
        ("no colon\n", {}, None),
        (None, {}, None),
    ],
)
def test_the_groups_around_the_process_limit_it(
    groups: str | None, limits: Mapping[str, object], expected: int | None, tmp_path: Path
) -> None:
    if groups is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit}\n")
    assert process_limit(tmp_path) == expected


def test_a_limit_of_the_address_space_counts(tmp_path: Path) -> None:
    script = f"""
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, ({2 * GIB}, {2 * GIB}))
from pipeline.engines.engine import process_limit
print(process_limit(Path(sys.argv[1])))
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 2 * GIB
