"""Stages that failed in a run that publishes the others."""

from __future__ import annotations

from typing import Any

from ..errors import ThresherError, system_fault
from ..records import dataclass


class UpstreamFailedError(ThresherError):
    """A stage reads the tables of another one, which failed.

    Args:
        upstream: Name of the stage that failed.
        cause: Why it failed; the code of this error is the same.
    """

    def __init__(self, upstream: str, cause: ThresherError) -> None:
        super().__init__(f"it reads the tables of the stage {upstream!r}, which failed")
        self._cause = cause

    @property
    def code(self) -> int:
        """The code of the error of the stage that failed first."""
        return self._cause.code


@dataclass(frozen=True)
class Failure:
    """A stage that failed.

    Attributes:
        stage: Its name.
        kind: Its task.
        error: What stopped it, as it was raised.
        fault: The same as an error of this package.
    """

    stage: str
    kind: str
    error: Exception
    fault: ThresherError

    @property
    def sentence(self) -> str:
        """What went wrong, on one line."""
        return " ".join(self.fault.message.split())

    def record(self) -> dict[str, Any]:
        """As the record of the run keeps it."""
        return {"kind": self.kind, "exit": self.fault.code, "error": str(self.fault)}


def failure_of(stage: str, kind: str, error: Exception) -> Failure:
    """Return the failure of a stage, whatever stopped it."""
    if isinstance(error, ThresherError):
        return Failure(stage, kind, error, error)
    bug = ThresherError(f"{type(error).__name__}: {error}", remedy="This is a bug of thresher; please report it.")
    return Failure(stage, kind, error, system_fault(error) or bug)
