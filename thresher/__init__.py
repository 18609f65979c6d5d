"""thresher under its own name: the public face of the package `pipeline`, whatever else is called pipeline.

The package is loaded when a name is used. Nothing here touches a package `pipeline` of the user's.
"""

TYPE_CHECKING = False  # typing itself takes longer to load than all that is needed here
if TYPE_CHECKING:
    from typing import Any

    from pipeline.api import open_results, run
    from pipeline.errors import ThresherError
    from pipeline.runs.runner import Run

    __version__: str

__all__ = ["Run", "ThresherError", "__version__", "open_results", "run"]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - whatever the package exports
    if name in __all__:
        from thresher.loading import package  # noqa: PLC0415 - the command handles signals before it loads anything

        return getattr(package(), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(__all__)
