"""A sheet of rows to label, drawn from the inputs that a config names."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..base.errors import ConfigError, UsageError
from ..base.interrupts import stop_requests
from ..base.records import dataclass
from ..sources.types import as_renaming
from ..stages.before_after.contract import AUDITED
from ..stages.entity_recognition.contract import JUDGED
from ..stages.sampling import draw
from ..stages.threshold_sweep.contract import LABELS
from .config import ConfiguredStage
from .evaluation import refuse_after_fork, started
from .opening import open_inputs
from .written import WrittenFileError, check_written, sheet_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

    from ..stages.stage import Stage
    from .config import Config
    from .written import OwnFile

SCORE = "score"
ENDINGS = (".csv", ".parquet")
_OF_ROLES = ("label", "weight", "proxy")  # which predictions to label need not have
_SHEETS = (LABELS, AUDITED, JUDGED)  # inputs that a sheet becomes


@dataclass(frozen=True)
class Wish:
    """The draw that is wanted.

    Attributes:
        size: How many rows.
        by: `score` and grouping columns.
        labelled: The sheet of an earlier draw, as an input of a config; None: this is the first.
        columns: Columns of the predictions that the sheet is to have besides.
        seed: Of the draw.
    """

    size: int
    by: Sequence[str] = (SCORE,)
    labelled: Any = None
    columns: Sequence[str] = ()
    seed: int = 0


def drawn_sheet(config: Config, stage: str, wish: Wish, said: Callable[[str], None]) -> pl.DataFrame:
    """Draw the rows of a sheet from the predictions of a config; the labels that it names need not exist yet.

    The stage is the one whose predictions are meant; empty: the only one that has predictions. `said` is called with
    every warning and note.

    Raises:
        UsageError: what is wished cannot be.
        ThresherError: the predictions cannot be read, or break their contract.
    """
    refuse_after_fork()
    config.check_engine()
    configured = _to_sample(config, stage, wish)
    with stop_requests() as stop, config.variables.concealing():
        opened = open_inputs(config, configured)
        for warning in opened.plan.warnings:
            said(warning)
        with started(config, opened, stop) as engine:
            sheet, notes = draw(engine, opened.configured.params, opened.plan)  # type: ignore[arg-type] # of SAMPLE
    for note in notes:
        said(note)
    return sheet


def checked_sheet(config: Config, file: Path, path: Path) -> OwnFile:
    """The file of a sheet, held against all that is read and published, in a folder that is there.

    Raises:
        UsageError: its ending is none of a sheet, or something is there.
        CannotCreateError: its folder cannot be made, which is told before the predictions are read.
    """
    if path.suffix.lower() not in ENDINGS:
        message = f"--to {path.name}: a sheet is a CSV or a Parquet file"
        raise UsageError(message, remedy="Let its name end in .csv or .parquet.")
    target = sheet_file(path)
    try:
        check_written(_without_labels(config), file, more=(target,))
    except WrittenFileError as error:
        raise UsageError(error.message, remedy=error.remedy) from error
    target.make_folder()
    return target


def _without_labels(config: Config) -> Config:
    """The same config before there are labels: a sheet may be what it will read, as it replaces nothing."""
    stages = []
    for configured in config.stages:
        names = [sheet.name for sheet in _SHEETS if sheet in configured.stage.inputs]
        params = configured.params.model_copy(update=dict.fromkeys(names))
        stages.append(replace(configured, params=params))
    return replace(config, stages=tuple(stages))


def write_sheet(sheet: pl.DataFrame, target: OwnFile) -> None:
    """Write a sheet, whole or not at all.

    Raises:
        ThresherError: the disk is full or failing, or something has come to be there.
    """
    buffer = io.BytesIO()
    if target.path.suffix.lower() == ".csv":
        sheet.write_csv(buffer)
    else:
        sheet.write_parquet(buffer)
    target.replace(buffer.getvalue())


def _to_sample(config: Config, stage: str, wish: Wish) -> ConfiguredStage:
    """The draw as a stage, with the inputs of the one that is meant."""
    named = _stage_to_sample(config, stage)
    draws, values = _DRAWS[named.stage.kind](config.variables.bound(named.params))
    parameters: Any = draws.parameters
    groups = tuple(name for name in wish.by if name != SCORE)
    shown = tuple(name for name in wish.columns if name not in {SCORE, *parameters.key})
    if taken := [name for name in (*groups, *shown) if name in parameters.sheet()]:
        message = f"{taken[0]!r} is a column of the sheet itself"
        raise UsageError(
            message, remedy=f"Map it under another name in the config: {as_renaming('my_column', taken[0])}."
        )
    values |= {
        "name": named.params.name,
        "kind": draws.kind,
        "labelled": wish.labelled,
        "size": wish.size,
        "by_score": SCORE in wish.by,
        "groups": groups,
        "by": [list(groups)],
        "shown": shown,
        "seed": wish.seed,
    }
    try:
        return ConfiguredStage(draws, parameters.model_validate(values))
    except ValidationError as error:
        fault = error.errors()[0]
        message = f"{fault['loc'][0] if fault['loc'] else 'sample'}: {fault['msg']}"
        raise UsageError(message) from error


def _stage_to_sample(config: Config, stage: str) -> ConfiguredStage:
    """The stage that is meant."""
    offered = [each for each in config.stages if each.stage.kind in _DRAWS]
    named = [each for each in offered if stage in {"", each.params.name}]
    names = ", ".join(each.params.name for each in offered)
    if not offered:
        message = f"{config.origin}: no stage has rows that can be drawn"
        raise ConfigError(message, remedy=f"A stage of the kind {' or '.join(_DRAWS)} has.")
    if not named:
        message = f"{config.origin}: no stage with rows that can be drawn is called {stage!r}"
        raise UsageError(message, remedy=f"There is {names}.")
    if len(named) > 1:
        message = f"{config.origin} has several stages with rows that can be drawn: {names}"
        raise UsageError(message, remedy="Name one of them after the config.")
    return named[0]


def _of_predictions(params: Any) -> tuple[Stage, dict[str, Any]]:  # noqa: ANN401 - parameters of the stage
    from ..stages.threshold_sweep.few_labels import SAMPLE  # noqa: PLC0415 - only the stage that is meant

    spec = params.predictions
    columns = {name: mapped for name, mapped in spec.columns.items() if name not in _OF_ROLES}
    return SAMPLE, {"predictions": spec.model_copy(update={"columns": columns})}


def _of_matches(params: Any) -> tuple[Stage, dict[str, Any]]:  # noqa: ANN401 - parameters of the stage
    from ..stages.before_after.sampling import OF_MATCHES, SAMPLE  # noqa: PLC0415 - only the stage that is meant

    values = {name: getattr(params, name) for name in OF_MATCHES}
    return SAMPLE, values | {"uncertainty": "none", "event_counts": False}


def _of_documents(params: Any) -> tuple[Stage, dict[str, Any]]:  # noqa: ANN401 - parameters of the stage
    from ..stages.entity_recognition.sampling import SAMPLE  # noqa: PLC0415 - only the stage that is meant

    return SAMPLE, {name: getattr(params, name) for name in ("predicted", "documents")}


_DRAWS: dict[str, Callable[[Any], tuple[Stage, dict[str, Any]]]] = {
    "threshold_sweep": _of_predictions,
    "before_after": _of_matches,
    "entity_recognition": _of_documents,
}
