"""What only results need is imported while the engine counts, which leaves Python and often a core free."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEEDED_FOR_INTERVALS = ("scipy.special",)


@contextmanager
def importing_meanwhile(names: Sequence[str]) -> Iterator[None]:
    """Import modules in another thread while something else is done; at the end they are there.

    An import that fails here fails again where the module is used, and is told there.

    Args:
        names: The modules.
    """
    thread = Thread(target=_import, args=(names,), name="thresher-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            import_module(name)
