"""The public face for Python: configs run, results opened, a function for each stage; loaded when a name is used."""

TYPE_CHECKING = False  # typing itself takes longer to load than all that is needed here
if TYPE_CHECKING:
    from typing import Any

    from ..base.errors import ThresherError
    from ..report.planned import Planned
    from ..runs.stage_results import Run
    from .functions import Result
    from .running import open_results, plan_sample, run, sample

    __version__: str

__all__ = ["Planned", "Result", "Run", "ThresherError", "__version__", "open_results", "plan_sample", "run", "sample"]
_HOMES = {
    "Planned": "..report.planned",
    "Result": ".functions",
    "open_results": ".running",
    "plan_sample": ".running",
    "run": ".running",
    "sample": ".running",
    "Run": "..runs.stage_results",
    "ThresherError": "..base.errors",
}


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - what __all__ names, loaded when it is used
    from importlib import import_module  # noqa: PLC0415 - as little as can be is loaded before it is used

    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - few ask for it

        return version("thresher")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    from ..stages import find_stage  # noqa: PLC0415 - `thresher --help` must not load the engine

    if find_stage(name) is not None:
        from .functions import stage_function  # noqa: PLC0415 - see above

        return stage_function(name)
    message = f"module {__name__.rpartition('.')[0]!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    from ..stages import STAGES  # noqa: PLC0415 - see above

    return sorted([*__all__, *(entry.kind for entry in STAGES)])
