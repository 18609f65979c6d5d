"""The public face for Python: run a config, open its results, draw rows to label, plan how many are needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import ConfigError, ThresherError
from ..base.paths import path_text, shortened
from ..runs import runner
from ..runs.config import Config, load_config, overridden, parse_config
from ..runs.stage_results import Run, StageResults

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    import polars as pl

    from ..report.planned import Planned
    from ..runs.stage_results import StageResult
    from .functions import InputRows


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
    try:
        checked = _checked(config, set, vars).only(only)
    except ThresherError:
        from ..runs.gate_outcomes import remove_of_faulty  # noqa: PLC0415 - only a faulty config needs it

        remove_of_faulty(config, set, vars)
        raise
    finished = runner.run(checked)
    stages: Sequence[StageResult] = finished.stages
    if not stages:
        from ..report.published import read_run  # noqa: PLC0415 - of an unchanged run that did not need to count

        stages = [stage.result() for stage in read_run(finished.path).stages]
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
    from ..runs.written import results_at  # noqa: PLC0415 - runs do without
    from ..storage import catalog  # noqa: PLC0415 - likewise

    with results_at(path_text(results, what="results")) as folder:
        return catalog.open_results(folder)


_INPUTS = ("predictions", "pairs", "events", "articles", "predicted", "documents", "gold")
_UNREAD = {"entity_recognition": {"gold": "gold.parquet"}}  # inputs that a stage needs, and a draw does not read


def sample(
    stage: str = "threshold_sweep",
    *,
    size: int,
    by: str | Sequence[str] = "score",
    labelled: InputRows | None = None,
    columns: Sequence[str] = (),
    seed: int = 0,
    resources: Mapping[str, Any] | None = None,
    **keys: Any,  # noqa: ANN401 - inputs and parameters of the stage
) -> pl.DataFrame:
    """Draw rows to label, by strata of scores, so that few labels tell most.

    The first k rows are a sample of size k, so that people may stop early.

    Args:
        stage: What the rows are for: `threshold_sweep`: predictions to label; `before_after`: matches to check;
            `entity_recognition`: documents to judge whole.
        size: How many rows are drawn.
        by: `score`, and grouping columns: each group gets rows of its own.
        labelled: The frame or file of an earlier draw: this one goes on where that one ended.
        columns: Columns of the inputs that the sheet has besides, to look at.
        seed: Another seed draws other rows.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.
        keys: The inputs and parameters of the stage, as for its function: `predictions`, which need no labels; of
            `before_after` `pairs`, `events`, `articles`, `window`, `thresholds` and `audit`; of `entity_recognition`
            `predicted` and `documents`.

    Returns:
        The key of each row, `stratum`, `probability`, `score`, the empty column `label`, and the columns that were
        asked for, in the order in which rows are to be labelled. Documents have `n_predicted` and `judged` in the place
        of `score` and `label`.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    from ..runs.sampling import Wish, drawn_sheet  # noqa: PLC0415 - a run draws nothing
    from .functions import as_rows, in_python  # noqa: PLC0415 - likewise

    told = {name: as_rows("sample", name, value) if name in _INPUTS else value for name, value in keys.items()}
    told = _UNREAD.get(stage, {}) | told
    document = {"stages": [{"kind": stage, **told}]} | ({} if resources is None else {"resources": dict(resources)})
    before = None if labelled is None else as_rows("sample", "labelled", labelled)
    wish = Wish(size, (by,) if isinstance(by, str) else tuple(by), before, tuple(columns), seed)
    try:
        config = replace(parse_config(document, base=Path.cwd(), origin="thresher.sample"), output=Path())
        return drawn_sheet(config, "", wish, lambda text: warnings.warn(text, stacklevel=4))
    except ThresherError as error:
        error.remedy = error.remedy and in_python(error.remedy)
        raise


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
    from ..report.evidence import Wish  # noqa: PLC0415 - a run plans nothing
    from ..report.planned import Goal  # noqa: PLC0415 - likewise
    from ..report.planning import Expectation, plans_of  # noqa: PLC0415 - likewise

    wish = Wish.of_python(metric, threshold, group or {}, option="group ", criterion=criterion, verb="planned")
    expectation = Expectation(metric, expected, deviation, design_effect, share_positive)
    goal = Goal(width, difference, margin, claim, power, confidence)
    if isinstance(results, Run):
        pilot: str | None = str(results.path.parent.parent)
        run = run or results.path.name
    else:
        pilot = None if results is None else path_text(results, what="results")
    return plans_of(pilot, stage, run, wish, expectation, goal, str)
