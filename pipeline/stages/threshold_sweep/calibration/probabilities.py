"""Whether scores of threshold_sweep are probabilities: what is counted for the tables of calibration, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ....errors import Note
from ....metrics.calibration.bins import BINNING
from ....plan.checks import outside_check
from ....plan.optional_tables import OptionalTable, Unfit
from ....plan.probability_sums import ProbabilitySums
from ....queries.load import statement
from ....tables.schemas import COUNT_TABLE, GROUPING
from ....tables.sweep import REPLICATE, add_up
from ...methods import named_group
from ...stage import groups_with
from ..contract import CROSSED, CROSSED_CALIBRATION
from ..uncertainty import kind_of_counts
from .columns import CALIBRATION_TABLE, RELIABILITY_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ....plan.count_tables import CountTables
    from ....plan.nodes import Check, Node
    from ....sources.source import Source
    from ..contract import ThresholdSweepParameters

INTO = "calibration"  # the count table
SUMS = ("n_positive", "n_negative", "scores", "scores_positive", "score_squares", "test_variance", "scores_open")
SUMS_OF_WEIGHTS = (
    *("weight_positive", "weight_negative", "squares_positive", "squares_negative"),
    *("heavy_scores", "heavy_scores_positive", "heavy_score_squares"),
    *("test_expected_positive", "test_expected_negative"),
)
OBVIOUS = 0.1  # share of rows with other scores from which on nobody takes scores for probabilities
_OUTSIDE = (pl.col("n_outside").sum(), pl.col("n").sum())


def optional_tables(params: ThresholdSweepParameters, predictions: Source) -> tuple[OptionalTable, ...]:
    """Both tables of calibration, which `auto` makes of any number of rows whose scores are probabilities."""
    return tuple(
        OptionalTable(table.name, "calibration", params.calibration, sources=(predictions,), told=False, unfit=unfit)
        for table in (RELIABILITY_TABLE, CALIBRATION_TABLE)
    )


def nodes(
    params: ThresholdSweepParameters,
    predictions: Source,
    by: Sequence[str],
    *,
    replicated: bool,
    beside: tuple[str, ...],
) -> Iterator[Node]:
    """What counts rows and adds up their scores by cells, unless no table of calibration is wanted.

    Args:
        params: The parameters.
        predictions: The input.
        by: The grouping columns.
        replicated: Whether rows fall into replicates.
        beside: The column of the replicate of the second parent of rows that have two.
    """
    if params.calibration is False:
        return
    weighted = predictions.has("weight")

    yield ProbabilitySums(
        INTO,
        "threshold_sweep/weighted_calibration" if weighted else "threshold_sweep/calibration",
        statement("threshold_sweep/probabilities", [*beside, *by]),
        (*SUMS, *SUMS_OF_WEIGHTS) if weighted else SUMS,
        params.calibration_bins,
        params.width,
        unfit,
        replicated=replicated,
        beside=beside,
        crossed=CROSSED_CALIBRATION if beside else (),
        replicated_like=(COUNT_TABLE, *(CROSSED[:1] if beside else ())),
    )


def checks(params: ThresholdSweepParameters, predictions: Source) -> Iterator[Check]:
    """Scores outside [0, 1] are a fault where calibration is asked for."""
    if params.calibration is True:
        yield outside_check(predictions, "score", 0.0, 1.0)


def fitness(counts: Mapping[str, pl.DataFrame] | CountTables) -> pl.DataFrame:
    """Which groups have probabilities.

    Args:
        counts: The count tables `counts` and `likelihood`.

    Returns:
        The columns of groups; `n` and `n_outside`: rows with a weight above 0 and a score, and those of them outside
        [0, 1]; `undefined`: `no_row`, `no_score` where such a row lacks its score, `no_probability`; NULL: they have.
    """
    table = counts[COUNT_TABLE]
    keys = table.columns[: table.columns.index(REPLICATE)]
    kind = "n_weighted" if kind_of_counts(table) == "weight" else "n"
    scored = ("n", "n_outside")
    n, n_outside = (pl.col(name).fill_null(0) for name in scored)
    rows = pl.sum_horizontal(f"{kind}_{side}" for side in ("positive", "negative")).sum()
    every = table.group_by(keys).agg(rows.alias("_rows"))
    joined = every.join(add_up(counts["likelihood"], keys, scored), on=keys, how="left", nulls_equal=True)
    undefined = (
        pl.when(pl.col("_rows") == 0)
        .then(pl.lit("no_row"))
        .when(pl.col("_rows") > n)
        .then(pl.lit("no_score"))
        .when(n_outside > 0)
        .then(pl.lit("no_probability"))
    )
    return joined.select(*keys, n, n_outside, undefined.alias("undefined")).sort(keys, nulls_last=True)


def unfit(counts: CountTables) -> Unfit | None:
    """Why no group has probabilities; None: a group has, or there is no row."""
    groups = fitness(counts)
    reasons = groups["undefined"]
    if groups.is_empty() or reasons.null_count() or (reasons == "no_row").all():
        return None
    if not (reasons == "no_probability").any():
        return Unfit(
            'calibration = "auto" makes it where every row has a score, and some rows have none', is_obvious=True
        )
    outside, rows = groups.filter(pl.col(GROUPING.name) == groups[GROUPING.name].first()).select(_OUTSIDE).row(0)
    words = f'calibration = "auto" makes it of scores from 0 to 1, and {_others(outside, rows)}'
    return Unfit(words, is_obvious=outside >= OBVIOUS * rows)


def few_outside(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    """Warn of groups without calibration because of a few scores, which are a mistake; others have probabilities.

    Where all scores of some group are of another kind, as those of one model, groups that hold it among others say
    nothing new.
    """
    table = tables.get(CALIBRATION_TABLE.name, pl.DataFrame())
    if table.is_empty() or not table["undefined"].null_count():
        return []
    groups = table.filter(pl.col(BINNING) == table[BINNING].first())
    is_obvious = pl.col("n_outside") >= OBVIOUS * pl.col("n")
    outside = groups.filter(pl.col("undefined") == "no_probability")
    if (of_another_kind := outside.filter(is_obvious)).height:
        outside = outside.join(of_another_kind, on=GROUPING.name, how="semi", maintain_order="left")
    few = outside.filter(~is_obvious).sort("n", descending=True, maintain_order=True)
    if few.is_empty():
        return []
    largest = few.row(0, named=True)
    rows = _others(largest["n_outside"], largest["n"], named_group(largest))
    who = groups_with(few.height, groups.height)
    words = f"{who} no calibration, which is of scores from 0 to 1: {rows}; calibration = true names the first"
    return [Note(words)]


def _others(outside: int, rows: int, group: str = "") -> str:
    of_group = f" of {group}" if group else ""
    return f"{outside:,} of {rows:,} rows{of_group} {'has' if outside == 1 else 'have'} others"
