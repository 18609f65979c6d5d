"""Results of stages, and callbacks that follow their progress."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import polars as pl

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ..stages.stage import Summary
    from .opening import OpenedStage


@dataclass(frozen=True)
class StageResult:
    """Result of one stage.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        summary: A summary for people.
        warnings: What to know before using the numbers.
        seconds: How long it took.
        n_rows: Number of rows of its inputs.
        omitted: Result tables that were not made, with the reason.
        unrequested: Those of them that the config does not ask for, with the key that would; empty where the
            config sets that key to something else.
        carried: Which run its numbers are of, if this one did not count it but carried its tables forward; else empty.
        folder: Folder of its run, once that is published: then its tables are attributes under their short names,
            `curve` for `threshold_sweep_curve`, as Polars frames.
        key_figures: Its rows of the table `metrics`; None for a stage that was read back.
        reused: Which files were not read again, and why others were, in words.
        notes: What was noticed besides, which changes no decision.
    """

    name: str
    kind: str
    summary: Summary
    warnings: tuple[str, ...]
    seconds: float
    n_rows: int
    omitted: dict[str, str]
    unrequested: Mapping[str, str] = field(default_factory=dict)
    carried: str = ""
    folder: Path | None = field(default=None, compare=False, repr=False)
    key_figures: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    reused: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> pl.DataFrame:
        """Read a table by its short name.

        Raises:
            AttributeError: the stage has no such table, or did not make it.
        """
        if name.startswith("_") or self.folder is None:
            raise AttributeError(name)
        table = f"{self.kind}_{name}"
        if table in self.omitted:
            message = f"the table {table} was not made: {self.omitted[table]}"
            raise AttributeError(message)
        path = self.folder / table / f"{self.name}.parquet"
        if not path.is_file():
            message = f"the stage {self.name!r} has no table {name!r}"
            raise AttributeError(message)
        return pl.read_parquet(path)


class StageResults(tuple[StageResult, ...]):
    """The results of the stages of a run in their order; one is found by its name, too: `stages["nightly"]`."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - an index, a slice or a name
        """Return the result of a stage by name, by index, or several by a slice.

        Raises:
            KeyError: the run has no stage of that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        for stage in self:
            if stage.name == key:
                return stage
        message = f"no stage is called {key!r}; the stages are {', '.join(stage.name for stage in self)}"
        raise KeyError(message)


def texts_once(texts_of_stages: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """List the warnings, or the notes, of all stages; one that several stages give appears once, with their names."""
    stages_of: dict[str, list[str]] = {}
    for stage, texts in texts_of_stages.items():
        for text in dict.fromkeys(texts):
            stages_of.setdefault(text, []).append(stage)
    return tuple(f"{', '.join(stages)}: {text}" for text, stages in stages_of.items())


@dataclass
class Watcher:
    """Callbacks that follow the progress of a run.

    Attributes:
        on_run: Called with the id of the attempt.
        on_crash: Called with what an earlier attempt was reading when it ended without a word; None: it is a warning of
            the run.
        on_stage: Called with the name of the stage that begins.
        on_opened: Called with the stage when its inputs have been found, before they are read.
        on_result: Called with the result of the stage that ends.
        on_taken_over: Called with the name of a stage that an earlier attempt had counted, and the id of that attempt.
        on_progress: Called with the percentage read while its inputs are read; None if nobody watches.
    """

    on_run: Callable[[str], None] = field(default=lambda _run_id: None)
    on_crash: Callable[[str], None] | None = None
    on_stage: Callable[[str], None] = field(default=lambda _name: None)
    on_opened: Callable[[OpenedStage], None] = field(default=lambda _opened: None)
    on_result: Callable[[StageResult], None] = field(default=lambda _result: None)
    on_taken_over: Callable[[str, str], None] = field(default=lambda _name, _attempt: None)
    on_progress: Callable[[float], None] | None = None
