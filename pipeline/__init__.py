"""thresher: precision and recall at every threshold, with or without gold labels, over Parquet data of any size."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.api import open_results, run

__all__ = ["open_results", "run"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the functions of pipeline.api, loaded when they are used
    if name in __all__:
        from pipeline import api  # noqa: PLC0415 - `thresher --help` must not load the engine

        return getattr(api, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
