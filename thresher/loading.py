"""Load the package `pipeline` beside this one, also where another package or folder has that name."""

from __future__ import annotations

import atexit
import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

OWN_NAME = "thresher_pipeline"
atexit.register(gc.disable)  # Python looks for garbage twice when it ends: once is enough
INIT = Path(__file__).resolve().parent.parent / "pipeline" / "__init__.py"


def package() -> ModuleType:
    """Import the package: as `pipeline` if that name leads to it, otherwise under a name of its own.

    `sys.modules["pipeline"]` is left to the user's package, whether it was imported already or will be.
    """
    if OWN_NAME in sys.modules:
        return sys.modules[OWN_NAME]
    if _is_beside():
        return import_module("pipeline")
    spec = spec_from_file_location(OWN_NAME, INIT)
    if spec is None or spec.loader is None:
        raise ImportError(name=OWN_NAME, path=str(INIT))
    sys.modules[OWN_NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[OWN_NAME])
    return sys.modules[OWN_NAME]


def module(name: str) -> ModuleType:
    """Import a module of the package, such as `cli.app`."""
    return import_module(f"{package().__name__}.{name}")


@contextmanager
def keeping_all() -> Iterator[None]:
    """Look for no garbage meanwhile: of modules that are being loaded everything is kept, and each look takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_beside() -> bool:
    """Whether `import pipeline` leads to the package beside this one."""
    try:
        spec = find_spec("pipeline")
    except (ImportError, ValueError):  # a module without a spec, as made by hand
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == INIT
