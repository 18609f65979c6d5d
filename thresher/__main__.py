"""The command `thresher`: it can be stopped by a signal from the start, loads the package, and calls it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to load than all that is needed here
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # what `signal` wraps: that would load enum and more before the first signal is handled

STOPPED = "error: Stopped. Published results are unchanged.  [exit {}]\n"


def _leave(number: int, _frame: FrameType | None) -> None:
    """End at once: while modules are being loaded there is nothing to tidy up, and an exception might be swallowed."""
    os.write(2, STOPPED.format(128 + number).encode())
    os._exit(128 + number)


def _handle(handler: Callable[[int, FrameType | None], None] | int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, handler)


_handle(_leave)


def main() -> None:
    """Entry point of the command."""
    from thresher.loading import module  # noqa: PLC0415 - signals come first

    try:
        module("cli.app").main()
    finally:
        _handle(signal.SIG_IGN)  # the result is told: a signal comes too late


if __name__ == "__main__":
    main()
