"""Find this package `pipeline` even if another package or folder has that name."""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

NAME = "pipeline"
OWN_NAME = "thresher_pipeline"
INIT = Path(__file__).resolve().parent.parent / NAME / "__init__.py"


def package() -> ModuleType:
    """Import this package: as `pipeline` if that name leads to it, otherwise under a name of its own.

    Under its own name it is a second package to Python. Nothing is put into `sys.modules["pipeline"]`, so that the
    user's package of that name works as before, whether it was imported already or will be.
    """
    if OWN_NAME in sys.modules:
        return sys.modules[OWN_NAME]
    if _is_this_package():
        return import_module(NAME)
    sys.meta_path.insert(0, _Finder())
    try:
        return import_module(OWN_NAME)
    except BaseException:
        sys.modules.pop(OWN_NAME, None)
        raise


def module(name: str) -> ModuleType:
    """Import a module of this package, such as `cli.app`."""
    return import_module(f"{package().__name__}.{name}")


def _is_this_package() -> bool:
    """Whether `import pipeline` leads to the package beside this one."""
    try:
        spec = find_spec(NAME)
    except (ImportError, ValueError):  # a module without a spec, as made by hand
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == INIT


class _Finder:
    """Finds this package and its modules under the package's own name."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name == OWN_NAME:
            loader = _Loader(name, str(INIT))
            return spec_from_file_location(name, INIT, loader=loader, submodule_search_locations=[str(INIT.parent)])
        if not name.startswith(f"{OWN_NAME}."):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Runs a module whose imports of `pipeline` mean this package."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


def _import(name: str, *more: Any, **options: Any) -> Any:  # noqa: ANN401 - as `__import__`
    if name == NAME or name.startswith(f"{NAME}."):
        name = OWN_NAME + name.removeprefix(NAME)
    return builtins.__import__(name, *more, **options)
