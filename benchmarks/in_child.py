"""Run a command and print its seconds, CPU seconds, peak resident memory in bytes and exit code, as JSON on stdout.

A small process of its own, because Linux lets a child inherit the peak of the process that started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Run `argv[1:]` with its output thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    complaints = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    sys.stderr.buffer.write(complaints)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_rss": peak, "exit": process.returncode}))


if __name__ == "__main__":
    main()
