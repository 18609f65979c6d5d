"""The command `thresher`: it can be stopped by a signal from the start, loads the package, and calls it."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from time import gmtime, strftime

TYPE_CHECKING = False  # typing itself takes longer to load than all that is needed here
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # what `signal` wraps: that would load enum and more before the first signal is handled

NEW_OBJECTS = 200_000  # between two looks for garbage, of which a command that loads modules and ends has little
STOPPED = "Stopped. Published results are unchanged."


def _leave(number: int, _frame: FrameType | None) -> None:
    """End at once: while modules are being loaded there is nothing to tidy up, and an exception might be swallowed."""
    code = 128 + number
    try:
        os.write(2, _told(code).encode())
    finally:  # also where stderr is closed or full
        os._exit(code)


def _told(code: int) -> str:
    """Return the last message, as an object where the command line asks for a log of objects."""
    words = " ".join(sys.argv)
    if "--log-format json" not in words and "--log-format=json" not in words:
        return f"error: {STOPPED}  [exit {code}]\n"
    time = strftime("%Y-%m-%dT%H:%M:%S+00:00", gmtime())
    fields = f'"level": "error", "event": "error", "message": "{STOPPED}", "remedy": null, "exit": {code}'
    return f'{{"time": "{time}", {fields}}}\n'


def _handle(handler: Callable[[int, FrameType | None], None] | int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, handler)


_handle(_leave)


def main() -> None:
    """Entry point of the command."""
    from thresher.loading import module  # noqa: PLC0415 - signals come first

    gc.set_threshold(NEW_OBJECTS)
    try:
        module("cli.app").main()
    finally:
        _handle(signal.SIG_IGN)  # the result is told: a signal comes too late


def command() -> None:
    """Run the command in a process of its own, which ends without searching its memory for garbage once more.

    That takes a quarter of a second. What was registered to be done at the end is done first. Where nothing can be
    written any more, Python ends as it always does, and tells it.
    """
    codes: list[int] = []

    def end() -> None:
        from contextlib import suppress  # noqa: PLC0415 - signals come first

        for code in codes:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)

    atexit.register(end)  # before all others, so that it is called after them
    try:
        main()
    except SystemExit as stop:
        codes += [stop.code or 0] if isinstance(stop.code, int | None) else []
        raise


if __name__ == "__main__":
    command()
