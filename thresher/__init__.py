"""thresher under its own name: the public face of the package `pipeline`, whatever else is called pipeline.

The package is loaded when a name is used. Nothing here touches a package `pipeline` of the user's.
"""

TYPE_CHECKING = False  # typing itself takes longer to load than all that is needed here
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - whatever the package exports
    if name.startswith("__") and name not in {"__all__", "__version__"}:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from thresher.loading import keeping_all, package  # noqa: PLC0415 - the command handles signals first

    with keeping_all():
        return __dir__() if name == "__all__" else getattr(package(), name)


def __dir__() -> list[str]:
    from thresher.loading import package  # noqa: PLC0415 - see above

    return dir(package())
