"""The public face for Python: run a config, open its results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, ThresherError
from ..report.explain.choosing import Wish, text_of, threshold_of
from ..report.planning.expectations import Expectation
from ..report.planning.pilots import Goal
from ..report.planning.planning import Asked, plans_of
from ..report.published import read_run
from ..runs import runner
from ..runs.config import Config, load_config, overridden, parse_config
from ..runs.gates.leftovers import removing_gate_files
from ..runs.results_location import results_at
from ..runs.run import Run
from ..runs.stage_results import StageResults
from ..sources.paths import path_text, shortened
from ..storage import read
from .planned import Planned
from .result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

__all__ = ["Planned", "Result", "Run", "ThresherError", "open_results", "plan_sample", "run"]


def run(
    config: str | os.PathLike[str] | Mapping[str, Any] | Config,
    *,
    only: Sequence[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as the option --set
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - as the option --var
) -> Run:
    """Run a config and publish one run.

    Args:
        config: Path of a TOML file, a dictionary with the same content (relative paths start at the current folder),
            or a checked config.
        only: Names of stages: only these are run; the tables of the others are those of the last run, carried forward.
        set: Values by dotted key, as `--set` on the command line: they replace those of the config.
        vars: Values of its variables by name, as `--var` on the command line: texts, numbers or dates.

    Returns:
        The published run, or the existing one if nothing has changed. `run.stages["name"].curve` is a table of a stage,
        and `run.table("threshold_sweep_curve")` that of all stages, as Polars frames. With
        `on_error = "publish_others"`, `run.failures` are the stages that failed. `run.gates` are the rows of the table
        `gates`, and `run.exit_code` is 3 if one of them failed.

    Raises:
        ThresherError: its class and its `code` say what went wrong; published results are unchanged.
        ConfigError: `set` or `vars` goes with a config that is checked already.
    """
    with removing_gate_files(config, set, vars):
        checked = _checked(config, set, vars).only(only)
    finished = runner.run(checked)
    stages = finished.stages or tuple(stage.result() for stage in read_run(finished.path).stages)
    return replace(finished, stages=StageResults(replace(stage, folder=finished.path) for stage in stages))


def _checked(
    config: str | os.PathLike[str] | Mapping[str, Any] | Config,
    overrides: Mapping[str, Any] | None,
    values: Mapping[str, Any] | None,
) -> Config:
    if isinstance(config, Config):
        if overrides or values:
            name = "set" if overrides else "vars"
            message = f"{name} changes a config before it is checked, and this one is checked already"
            raise ConfigError(message, remedy="Give its path or its dictionary.")
        return config
    if isinstance(config, str | os.PathLike):
        return load_config(Path(config), overrides=overrides, values=values)
    if not isinstance(config, Mapping):
        message = f"config: {shortened(repr(config))} is neither a path nor a dictionary"
        raise ConfigError(message, remedy="Give the path of a config file, or its content as a dictionary.")
    document = overridden(config, overrides) if overrides else config
    return parse_config(document, base=Path.cwd(), values=values)


def open_results(results: str | Path) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection with one view per result table of the latest run, and all runs in schema `history`.

    The connection keeps showing the run that was the latest when it was opened; call again to see a later one. It works
    on a results folder that has been moved, and can read the results and nothing else. Earlier runs that were deleted
    or are damaged are missing from `history`.

    Args:
        results: The output of a run: a folder, or an address on a store, of which a mirror here is read.

    Raises:
        ConfigError: the text names neither a folder on this machine nor an address on a store.
        UnavailableError: the store does not answer.
        NoInputError: no run was published there.
        DataError: a file of the latest run is lost or damaged.
    """
    with results_at(path_text(results, what="results")) as folder:
        return read.open_results(folder)


def plan_sample(
    results: str | os.PathLike[str] | Run | None = None,
    *,
    width: float | None = None,
    difference: float | None = None,
    margin: float | None = None,
    claim: str = "not_worse",
    power: float = 0.8,
    confidence: float | None = None,
    stage: str = "",
    metric: str = "",
    criterion: str = "",
    threshold: float | None = None,
    group: Mapping[str, object] | None = None,
    run: str = "",
    expected: float | None = None,
    deviation: float | None = None,
    design_effect: float | None = None,
    share_positive: float | None = None,
) -> Planned:
    """Say how many events, documents, queries or labels an interval of a wanted width, or a test, needs.

    Args:
        results: The output of a pilot run, a folder or an address on a store; or the run itself. None: there is no
            pilot, and `expected` or `deviation` says what is expected.
        width: Wanted width of the interval, upper less lower limit.
        difference: Difference that a test is to find: between the systems of a stage of compare on the same units, else
            between two runs on units of their own. With `margin` the true difference, to the worse.
        margin: Difference of two systems that a test is to rule out.
        claim: What a test with a margin shows: `not_worse`, one-sided, or `equivalent`, both sides.
        power: Probability that the test shows it.
        confidence: Level of the interval, or 1 less the level of the test; default: that of the pilot, or 0.95.
        stage: Stage of the pilot; default: all.
        metric: The number; default: the main one of the stage.
        criterion: Operating point whose threshold is meant, such as `max_f1`; default: the first.
        threshold: Threshold in its place. The nearest at or below it is taken.
        group: The group by its grouping columns, None for NULL, or by other columns that tell rows apart; default: the
            total, or the first group.
        run: A kept run by generation, run id or folder; default: the latest.
        expected: Without a pilot: the expected share, or the area for `metric="roc_auc"`.
        deviation: Without a pilot: standard deviation of the values of units, or of the differences within units.
        design_effect: Without a pilot: variance over that of independent rows.
        share_positive: Without a pilot: share of positives among the rows.

    Returns:
        The plans; `.table` is a Polars frame, and `.plans[0].sentence` the answer in words.

    Raises:
        ThresherError: what is asked for does not fit together, the results cannot be read, or nothing can be planned.
    """
    texts = tuple(f"{name}={text_of(value)}" for name, value in (group or {}).items())
    wish = Wish(metric, None if threshold is None else threshold_of(threshold), texts, "group ", criterion, "planned")
    expectation = Expectation(metric, expected, deviation, design_effect, share_positive)
    goal = Goal(width, difference, margin, claim, power, confidence)
    if isinstance(results, Run):
        pilot: str | None = str(results.path.parent.parent)
        run = run or results.path.name
    else:
        pilot = None if results is None else path_text(results, what="results")
    return Planned(plans_of(Asked(pilot, stage, run, wish, expectation, goal, str)))
