"""Whether scores are probabilities: bins, errors, tests and figures of calibration."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...base.columns import (
    IN_TIME,
    REPLICATE,
    THRESHOLD,
    add_up,
    add_up_in_order,
    among,
    beside,
    by_group,
    doubles,
    nothing,
    runs,
)
from ...base.errors import Note
from ...base.records import dataclass
from ...base.schemas import COUNT_TABLE, GROUPING, Column, Table, limits_of, limits_of_share, polars_types
from ...base.sql_files import statement
from ...base.visible_text import percent
from ...metrics.calibration.bins import (
    BIN,
    BINNING,
    BINNINGS,
    ERRORS,
    BinSums,
    Moments,
    Variances,
    bins_of_cells,
    calibration_errors,
    summed,
)
from ...metrics.calibration.bins import LOWER as SCORE_LOWER
from ...metrics.calibration.bins import UPPER as SCORE_UPPER
from ...metrics.calibration.estimates import estimates_of_clusters, estimates_of_rows, joined
from ...metrics.uncertainty.limits import (
    CLUSTER_COLUMNS,
    INTERVAL_QUALITY,
    N_CLUSTERS,
    N_EFFECTIVE,
    QUALITY_COLUMN,
    UNDEFINED_INTERVAL,
    Interval,
    clusters_of_parents,
    limit_columns,
    marked,
    marked_with,
    with_numbers,
    with_quality,
)
from ...metrics.uncertainty.replicates import MOST_CELLS, Cube
from ...plan.count_tables import LOWER, UPPER, Unfit
from ...plan.counts import ProbabilitySums
from ...plan.nodes import outside_check
from ...plan.plan import OptionalTable
from .. import sections
from ..figures import Axis, Figure, Rule, Series, caption, drawn, intervals, keys_of, level, shares, with_limits
from ..sections import named_group
from ..stage import groups_with
from .contract import CROSSED, CROSSED_CALIBRATION, HEAVIEST, kind_of_counts, with_heaviest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.calibration.estimates import Estimates
    from ...metrics.uncertainty.limits import Reason
    from ...plan.count_tables import CountTables
    from ...plan.nodes import Check, Node
    from ...sources.source import Source
    from .contract import ThresholdSweepParameters

    Ints = NDArray[np.int64]
    from ..sections import Measured


# Result tables of calibration in threshold_sweep.


_BINNING = Column("binning", "VARCHAR", "`quantile`: bins with about as many rows each; `width`: bins of equal width")
_LIMITED = Column(
    "undefined_interval",
    "VARCHAR",
    (
        "why an interval is NULL: `none`, `budget`, `one_replicate`, `undefined_ratio`; the "
        "[reasons](methods/threshold_sweep.md#intervals); NULL: all intervals are given"
    ),
    nullable=True,
)
_NO_ROW = "no row in the bin"
_BOUNDS = tuple(
    Column(
        f"mean_score_{end}",
        "DOUBLE",
        f"certified {words} bound of mean_score, which is the middle; NULL: mean_score is exact, or NULL",
        nullable=True,
    )
    for end, words in (("min", "lower"), ("max", "upper"))
)
_NOT_GIVEN = "see `undefined`"
_NOT_ESTIMATED = "no intervals, a single row, or as for ece"
RELIABILITY = (
    _BINNING,
    Column("bin", "BIGINT", "number of the bin, from 1 on, rising with the score"),
    Column("score_lower", "DOUBLE", "scores of the bin lie above it; the first bin holds it, too"),
    Column("score_upper", "DOUBLE", "highest score that the bin may hold"),
    Column("n", "BIGINT", "rows in the bin, of those with a weight above 0"),
    Column("n_positive", "BIGINT", "such rows with a true label"),
    Column("weight", "DOUBLE", "weight of the rows; NULL: no weights", nullable=True),
    Column("weight_positive", "DOUBLE", "weight of the rows with a true label; NULL: no weights", nullable=True),
    Column("mean_score", "DOUBLE", f"mean score, weighted; NULL: {_NO_ROW}", nullable=True),
    *_BOUNDS,
    Column("share_positive", "DOUBLE", f"share of true rows, of the weights if any; NULL: {_NO_ROW}", nullable=True),
    *limits_of_share("share_positive"),
    *limits_of("share_positive_band", "a band that holds the shares of all bins of the binning together"),
    Column("gap", "DOUBLE", f"share_positive − mean_score, from −1 to 1; NULL: {_NO_ROW}", nullable=True),
    *limits_of("gap"),
    Column("undefined", "VARCHAR", "why numbers are NULL: `no_row`; NULL: they are defined", nullable=True),
    _LIMITED,
    QUALITY_COLUMN,
)
CALIBRATION = (
    _BINNING,
    Column("n", "BIGINT", "rows with a weight above 0 and a score"),
    Column("n_outside", "BIGINT", "such rows with a score outside [0, 1]; unless there is none, nothing else is given"),
    Column("n_bins", "BIGINT", f"bins with rows; NULL: {_NOT_GIVEN}", nullable=True),
    Column("mean_score", "DOUBLE", f"mean score, weighted; NULL: {_NOT_GIVEN}", nullable=True),
    *_BOUNDS,
    Column("share_positive", "DOUBLE", f"share of true rows, of the weights if any; NULL: {_NOT_GIVEN}", nullable=True),
    Column("gap", "DOUBLE", f"share_positive − mean_score, of all rows; NULL: {_NOT_GIVEN}", nullable=True),
    *limits_of("gap"),
    Column("ece", "DOUBLE", f"expected calibration error: mean |gap| over rows; NULL: {_NOT_GIVEN}", nullable=True),
    Column(
        "ece_if_calibrated",
        "DOUBLE",
        f"what ece is on average of so many rows if scores are probabilities; NULL: {_NOT_ESTIMATED}",
        nullable=True,
    ),
    Column(
        "ece_debiased",
        "DOUBLE",
        f"ece less what noise adds to gaps as large, below 0 where noise says it all; NULL: {_NOT_ESTIMATED}",
        nullable=True,
    ),
    Column("mce", "DOUBLE", f"maximum calibration error: largest |gap| of a bin; NULL: {_NOT_GIVEN}", nullable=True),
    Column("brier", "DOUBLE", f"mean squared difference of score and label; NULL: {_NOT_GIVEN}", nullable=True),
    Column("reliability", "DOUBLE", f"mean squared gap over rows; NULL: {_NOT_GIVEN}", nullable=True),
    Column(
        "resolution",
        "DOUBLE",
        f"mean squared difference of share_positive in bins and in all rows; NULL: {_NOT_GIVEN}",
        nullable=True,
    ),
    Column("uncertainty", "DOUBLE", f"share_positive × (1 − share_positive); NULL: {_NOT_GIVEN}", nullable=True),
    Column("within_bin_variance", "DOUBLE", f"mean variance of scores within bins; NULL: {_NOT_GIVEN}", nullable=True),
    Column(
        "within_bin_covariance",
        "DOUBLE",
        f"twice the mean covariance of score and label within bins; NULL: {_NOT_GIVEN}",
        nullable=True,
    ),
    Column(
        "reliability_debiased",
        "DOUBLE",
        f"reliability less the variance of gaps, an unbiased estimate; may be below 0; NULL: {_NOT_ESTIMATED}",
        nullable=True,
    ),
    Column(
        "resolution_debiased",
        "DOUBLE",
        f"resolution less the variance of shares in bins, an unbiased estimate; NULL: {_NOT_ESTIMATED}",
        nullable=True,
    ),
    Column(
        "uncertainty_debiased",
        "DOUBLE",
        f"uncertainty and the variance of share_positive of all rows, an unbiased estimate; NULL: {_NOT_ESTIMATED}",
        nullable=True,
    ),
    Column(
        "spiegelhalter_z",
        "DOUBLE",
        "how far the Brier score exceeds what it is if scores are probabilities, in standard errors; "
        "NULL: no intervals, a single cluster, no score but 0, 1/2 and 1, or as for ece",
        nullable=True,
    ),
    Column("spiegelhalter_p_value", "DOUBLE", "its two-sided p-value; NULL: as for spiegelhalter_z", nullable=True),
    Column(
        "hosmer_lemeshow",
        "DOUBLE",
        "sum over bins of squared excesses of true rows over their variances, of neighbours together where hardly "
        "a true or a false row is expected; "
        "NULL: no intervals, a single cluster, no score but 0 and 1, a true row where all scores are 0, or as for ece",
        nullable=True,
    ),
    Column(
        "hosmer_lemeshow_p_value",
        "DOUBLE",
        "its p-value, 0 where a row has a label that the scores of its bin exclude; "
        "NULL: no intervals, a single cluster, no score but 0 and 1, or as for ece",
        nullable=True,
    ),
    Column(
        "undefined",
        "VARCHAR",
        "why numbers are NULL: `no_row`, `no_score`, `no_probability`; NULL: they are defined",
        nullable=True,
    ),
    _LIMITED,
    QUALITY_COLUMN,
    *CLUSTER_COLUMNS,
)
RELIABILITY_TABLE = Table(
    "threshold_sweep_reliability", "one row per group, binning and bin", RELIABILITY, ("binning", "bin")
)
CALIBRATION_TABLE = Table(
    "threshold_sweep_calibration",
    "one row per group and binning",
    CALIBRATION,
    ("binning",),
    ("ece", "ece_if_calibrated", "mce", "reliability_debiased", "spiegelhalter_p_value", "hosmer_lemeshow_p_value"),
)


# Whether scores of threshold_sweep are probabilities: what is counted for the tables of calibration, and when.


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
    by: Sequence[str],
    *,
    weighted: bool,
    replicated: bool,
    beside: tuple[str, ...],
) -> Iterator[Node]:
    """The nodes that count rows and add up scores by cells, unless no table of calibration is wanted.

    Args:
        params: The parameters.
        by: The grouping columns.
        weighted: Whether rows have weights.
        replicated: Whether rows fall into replicates.
        beside: The column of the replicate of the second parent of rows that have two.
    """
    if params.calibration is False:
        return
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
    every = table.group_by(keys, maintain_order=True).agg(rows.alias("_rows"))
    sums = add_up(counts["likelihood"], keys, scored)
    joined = beside(every, sums, keys)
    undefined = (
        pl.when(pl.col("_rows") == 0)
        .then(pl.lit("no_row"))
        .when(pl.col("_rows") > n)
        .then(pl.lit("no_score"))
        .when(n_outside > 0)
        .then(pl.lit("no_probability"))
    )
    return joined.select(*keys, n, n_outside, undefined.alias("undefined"))


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
    if table.is_empty() or table["undefined"].null_count() in {0, table.height}:
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


# Sums by bin of the score, of all rows and by replicate, from the count tables of calibration.


EDGES = (LOWER, UPPER)
_WEIGHTED = ("weight_positive", "weight_negative", "scores", "scores_positive", "score_squares")
_HEAVY = ("squares_positive", "squares_negative", "heavy_scores", "heavy_scores_positive", "heavy_score_squares")
_OF_ROWS = ("n_positive", "n_negative", "scores", "scores_positive", "score_squares")
_EXPECTED = ("test_expected_positive", "test_expected_negative")
_SUMS = (*_OF_ROWS[:2], *_WEIGHTED, *_HEAVY, "test_variance", *_EXPECTED, "scores_open")


@dataclass(frozen=True)
class Binned:
    """Sums over the rows of the bins of several groups.

    Attributes:
        keys: Columns that identify a group and a binning.
        frame: One row per group, binning and bin that has rows, in this order: `keys`, `bin`, the edges, and sums.
        bins: Which bin every cell lies in.
        tables: The sums by replicate and cell: of the one clustering, or of both parents and of their intersections.
        is_weighted: Whether rows have weights.
        in_time: Whether replicates follow each other in time.
    """

    keys: tuple[str, ...]
    frame: pl.DataFrame
    bins: pl.DataFrame
    tables: tuple[pl.DataFrame, ...]
    is_weighted: bool
    in_time: bool

    @classmethod
    def of(cls, counts: Mapping[str, pl.DataFrame], groups: pl.DataFrame, count: int) -> Binned:
        """From the count tables.

        Args:
            counts: The tables of the plan.
            groups: Columns that identify a group: the groups that are wanted.
            count: Number of bins.
        """
        keys = groups.columns
        tables = [among(counts[name], groups, keys) for name in (INTO, *CROSSED_CALIBRATION) if name in counts]
        tables = [table[[name for name in table.columns if name != THRESHOLD]] for table in tables]
        values = [name for name in tables[0].columns if name not in {*keys, REPLICATE, *EDGES}]
        cells = add_up_in_order(tables[0], [*keys, *EDGES], values)
        cells = cells.hstack([(cells["n_positive"] + cells["n_negative"]).alias("n")])
        bins = bins_of_cells(cells, keys, EDGES, count)
        order = [*keys, BINNING, BIN]
        sums = add_up(bins, order, values).sort(order, nulls_last=True)
        bins = bins[[*keys, *EDGES, BINNING, BIN]]
        edges = _edges(bins, keys, count)  # of the same bins in the same order
        frame = sums.hstack(edges[[SCORE_LOWER, SCORE_UPPER]])
        is_weighted = "weight_positive" in sums.columns
        return cls((*keys, BINNING), _doubles(frame), bins, tuple(tables), is_weighted, IN_TIME in counts)

    @cached_property
    def by_replicate(self) -> tuple[pl.DataFrame, ...]:
        """The sums by replicate, too, of every clustering."""
        by = [*self.keys[:-1], REPLICATE]
        return tuple(_doubles(summed(table, self.bins, by, EDGES).sort(REPLICATE)) for table in self.tables)

    @cached_property
    def starts(self) -> Ints:
        """Index of the first bin of every group and binning."""
        return np.flatnonzero(np.diff(runs(self.frame, self.keys), prepend=-1))

    @cached_property
    def sums(self) -> BinSums:
        """The sums of all bins."""
        return _bin_sums(self.frame, is_weighted=self.is_weighted)

    def bounds(self, starts: Ints | None = None) -> tuple[pl.Series, pl.Series]:
        """Certified bounds of the mean score of every bin, or of the bins from each start on; NULL: it is exact."""
        values = [self.frame["scores_open"].to_numpy(), self.sums.weighted.scores, self.sums.weighted.weight]
        if starts is not None:
            values = [np.add.reduceat(each, starts) for each in values]
        left, scores, weight = values
        left = np.where(left > 0, left, np.nan)
        ends = np.maximum((scores - left) / weight, 0.0), np.minimum((scores + left) / weight, 1.0)
        return doubles("mean_score_min", ends[0]), doubles("mean_score_max", ends[1])

    @property
    def replicates(self) -> int:
        """Number of replicates of all clusterings together."""
        return sum(table[REPLICATE].n_unique() for table in self.tables)

    def groups(self) -> Iterator[tuple[BinSums, list[Moments]]]:
        """The sums of the bins of every group and binning, and the same by replicate, shape (G, K)."""
        clusterings = [by_group(table, self.keys) for table in self.by_replicate]
        for key, frame in by_group(self.frame, self.keys).items():
            numbers = frame[BIN].to_numpy()
            moments = [replace(_by_replicate(tables[key], numbers), in_time=self.in_time) for tables in clusterings]
            yield _bin_sums(frame, is_weighted=self.is_weighted), moments


def _doubles(frame: pl.DataFrame) -> pl.DataFrame:
    """Sums as doubles; without weights every weight and every squared weight is 1."""
    sources = {name: name for name in _SUMS}
    is_weighted = "weight_positive" in frame.columns
    if not is_weighted:
        sources |= dict(zip((*_WEIGHTED[:2], *_HEAVY), (*_OF_ROWS[:2], *_OF_ROWS), strict=True))
        sources["test_expected_positive"] = "test_variance"
        frame = frame.hstack([pl.Series("test_expected_negative", [0.0]).new_from_index(0, frame.height)])
    doubled = [frame.get_column(source).cast(pl.Float64).alias(name) for name, source in sources.items()]
    return pl.DataFrame([*(frame.get_column(name) for name in frame.columns if name not in sources), *doubled])


def _edges(bins: pl.DataFrame, keys: Sequence[str], count: int) -> pl.DataFrame:
    """The edges of every bin: the same for all groups by width, between the group's own rows by quantile."""
    order = [*keys, BINNING, BIN]
    cells = bins.group_by(order).agg(pl.col(LOWER).min(), pl.col(UPPER).max()).sort(order, nulls_last=True)
    below = pl.col(UPPER).shift().over([*keys, BINNING])
    is_width, number = pl.col(BINNING) == "width", pl.col(BIN)
    lower = pl.when(is_width).then((number - 1) / count).otherwise(pl.coalesce(below, LOWER))
    upper = pl.when(is_width).then(number / count).otherwise(UPPER)
    return cells.select(*order, lower.alias(SCORE_LOWER), upper.alias(SCORE_UPPER))


def _moments(values: Sequence[NDArray[np.float64]]) -> Moments:
    """From sums in the order of `_WEIGHTED`."""
    positive, negative, *scores = values
    return Moments(positive + negative, positive, *scores)


def _bin_sums(frame: pl.DataFrame, *, is_weighted: bool) -> BinSums:
    weighted, heavy = (_moments([frame[name].to_numpy() for name in names]) for names in (_WEIGHTED, _HEAVY))
    rows = (frame["n_positive"] + frame["n_negative"]).to_numpy()
    test_variance, positive, negative = (frame[name].to_numpy() for name in ("test_variance", *_EXPECTED))
    return BinSums(rows, weighted, heavy, test_variance, (positive, negative), is_weighted)


def _by_replicate(table: pl.DataFrame, numbers: Ints) -> Moments:
    """The sums of one group and binning by replicate and bin.

    Args:
        table: Its rows.
        numbers: Its bins, rising.
    """
    replicates, row = np.unique(table[REPLICATE].to_numpy(), return_inverse=True)
    place = (row, np.searchsorted(numbers, table[BIN].to_numpy()))
    arrays = []
    for name in _WEIGHTED:
        values = np.zeros((len(replicates), len(numbers)))
        values[place] = table[name].to_numpy()
        arrays.append(values)
    return _moments(arrays)


# The tables threshold_sweep_reliability and threshold_sweep_calibration, from sums by cells of the score.


_OF_BINS = ("share_positive", "share_positive_band", "gap")
_TESTS = ("spiegelhalter_z", "spiegelhalter_p_value", "hosmer_lemeshow", "hosmer_lemeshow_p_value")
_FROM_VARIANCES = ("ece_if_calibrated", *(name for name in ERRORS if name.endswith("_debiased")))
_EVENTS = ("n_positive", "n_negative")
_SIZES = ("weight_positive", "weight_negative")


def calibration_tables(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], clusters: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Both tables; without the first where no group has probabilities, and none where nothing was counted for them.

    Args:
        params: The parameters.
        counts: The tables of the plan.
        clusters: `clusters_of` the groups, NULL where rows are independent.
    """
    if params.calibration is False:
        return {}
    groups = fitness(counts)
    fit = groups if groups["undefined"].null_count() == groups.height else groups.filter(pl.col("undefined").is_null())
    fit = fit[groups.columns[: groups.columns.index("n")]]
    if fit.height and INTO not in counts:
        return {}
    binnings = pl.DataFrame({BINNING: BINNINGS}, schema={BINNING: pl.String})
    every = groups.join(binnings, how="cross", maintain_order="left")
    if fit.is_empty():
        return {"threshold_sweep_calibration": _completed(every, None, clusters)}
    binned = Binned.of(counts, fit, params.calibration_bins)
    estimates, reason = _estimated(params, binned, counts.get("heaviest"))
    return {
        "threshold_sweep_reliability": _reliability(params, binned, estimates, reason, clusters),
        "threshold_sweep_calibration": _completed(every, _errors(binned, estimates, reason), clusters),
    }


def _estimated(
    params: ThresholdSweepParameters, binned: Binned, heaviest: pl.DataFrame | None
) -> tuple[Estimates | None, Reason]:
    """Limits, variances and tests, or none; and why limits are missing."""
    if not params.is_replicated:
        return None, "none"
    with_weights = with_heaviest(binned.frame, heaviest, binned.keys[:-1])
    positive, negative = (with_weights[name].to_numpy() for name in HEAVIEST)
    if params.cluster is None:
        weights = (positive, negative) if binned.is_weighted else None
        return estimates_of_rows(binned.sums, binned.starts, weights, params.confidence), "undefined_ratio"
    if binned.frame.height * max(binned.replicates, params.drawn_resamples) > MOST_CELLS:
        return None, "budget"
    of_groups = []
    for start, (sums, clusterings) in zip(binned.starts, binned.groups(), strict=True):
        heavy = (positive[start], negative[start]) if binned.is_weighted else None
        of_groups.append(estimates_of_clusters(sums, clusterings, heavy, params.confidence, params.resampling))
    return joined(of_groups), "one_replicate"


def _reliability(
    params: ThresholdSweepParameters,
    binned: Binned,
    estimates: Estimates | None,
    reason: Reason,
    of_groups: pl.DataFrame,
) -> pl.DataFrame:
    """One row per group, binning and bin; of bins of equal width those without a row, too."""
    sums, size = binned.sums, binned.frame.height
    weights = [doubles("weight", sums.weighted.weight), doubles("weight_positive", sums.weighted.hits)]
    if estimates is None:
        intervals = dict.fromkeys(_OF_BINS, Interval.none(size, reason))
    else:
        limits = zip(_OF_BINS, (estimates.bins.share, estimates.bins.band, estimates.bins.gap), strict=True)
        intervals = {name: Interval.of(values, reason) for name, values in limits}
    frame = binned.frame.with_columns(
        binned.frame["n_positive"].cast(pl.Int64),
        pl.Series("n", sums.rows, dtype=pl.Int64),
        doubles("mean_score", sums.mean_score),
        *binned.bounds(),
        doubles("share_positive", sums.share),
        doubles("gap", sums.gap),
        *nothing(["undefined"], size, pl.String),
        *limit_columns(intervals),
    )
    of_bin = [*binned.keys, BIN]
    clusters = None
    if params.cluster is not None:
        cube = Cube.of(binned.by_replicate[0], of_bin, None, crossed=binned.by_replicate[1:])
        is_alike = of_groups.filter(marked_with("correlated_days"))
        bins = binned.frame.join(is_alike, on=binned.keys[:-1], how="semi", nulls_equal=True)
        clusters = marked(clusters_of_parents(cube, _SIZES), "correlated_days", bins)
    frame = with_quality(frame, _OF_BINS, clusters=clusters, keys=of_bin, events=_EVENTS)
    frame = frame.with_columns(weights if binned.is_weighted else nothing(["weight", "weight_positive"], size))
    shown = frame[[*binned.keys[:-1], *(column.name for column in RELIABILITY)]]
    if size == len(binned.starts) * params.calibration_bins:
        return shown
    empty = _empty_bins(shown, binned, params.calibration_bins, reason if estimates is None else "undefined_ratio")
    return pl.concat([shown, empty], how="diagonal")


def _empty_bins(bins: pl.DataFrame, binned: Binned, count: int, reason: Reason) -> pl.DataFrame:
    """The bins of equal width that have no row, without numbers."""
    of_width = bins.filter(pl.col(BINNING) == "width").select(binned.keys).unique(maintain_order=True)
    number = pl.col(BIN)
    every = of_width.join(pl.DataFrame({BIN: range(1, count + 1)}, schema={BIN: pl.Int64}), how="cross")
    return every.join(bins, on=[*binned.keys, BIN], how="anti", nulls_equal=True).with_columns(
        ((number - 1) / count).alias(SCORE_LOWER),
        (number / count).alias(SCORE_UPPER),
        *(pl.lit(0, dtype=pl.Int64).alias(name) for name in ("n", "n_positive")),
        pl.lit("no_row").alias("undefined"),
        pl.lit(reason).alias(UNDEFINED_INTERVAL),
    )


def _errors(binned: Binned, estimates: Estimates | None, reason: Reason) -> pl.DataFrame:
    """The numbers of every group and binning that has probabilities."""
    sums, starts = binned.sums, binned.starts
    groups = sums.of_groups(starts)
    nothing, nothing_of_bins = np.full(len(starts), np.nan), np.full(len(sums.rows), np.nan)
    unknown = Variances(nothing_of_bins, nothing_of_bins, nothing_of_bins, nothing)
    variances = unknown if estimates is None else estimates.variances
    numbers = calibration_errors(sums, variances, starts)
    known = ~np.isnan(variances.prevalence)
    numbers |= {name: np.where(known, numbers[name], np.nan) for name in _FROM_VARIANCES}
    numbers |= {"mean_score": groups.mean_score, "share_positive": groups.share, "gap": groups.gap}
    tests = (nothing,) * 4 if estimates is None else (*estimates.spiegelhalter, *estimates.hosmer_lemeshow)
    numbers |= {name: np.where(np.isinf(test), np.nan, test) for name, test in zip(_TESTS, tests, strict=True)}
    gap = (nothing, nothing) if estimates is None else estimates.gap
    sizes = np.diff([*starts, len(sums.rows)])
    columns = [
        pl.Series("n_bins", sizes, dtype=pl.Int64),
        *binned.bounds(starts),
        pl.Series("_positive", groups.weighted.hits),
        pl.Series("_negative", groups.weighted.weight - groups.weighted.hits),
        *(doubles(name, values) for name, values in numbers.items()),
        *limit_columns({"gap": Interval.of(gap, reason)}),
    ]
    return binned.frame[list(binned.keys)][starts].hstack(columns)


def _completed(groups: pl.DataFrame, errors: pl.DataFrame | None, clusters: pl.DataFrame) -> pl.DataFrame:
    """One row per group and binning, without numbers where the group has no probabilities."""
    keys = groups.columns[: groups.columns.index("n")]
    columns = {column.name: polars_types(column.type)[0] for column in CALIBRATION}
    events = ("_positive", "_negative")
    if errors is not None:
        groups = groups.join(errors, on=[*keys, BINNING], how="left", nulls_equal=True, maintain_order="left")
    is_undefined, present = pl.col("undefined").is_not_null(), set(groups.columns)
    given = pl.col(UNDEFINED_INTERVAL) if UNDEFINED_INTERVAL in present else pl.lit(None, dtype=pl.String)
    why = pl.when(is_undefined).then(pl.lit("undefined_ratio")).otherwise(given).alias(UNDEFINED_INTERVAL)
    made_below = {UNDEFINED_INTERVAL, N_CLUSTERS, N_EFFECTIVE, INTERVAL_QUALITY}
    absent = [name for name in (*columns, *events) if name not in present | made_below]
    frame = groups.with_columns(
        why, *(pl.lit(None, dtype=columns.get(name, pl.Float64())).alias(name) for name in absent)
    )
    frame = with_quality(frame, ["gap"], clusters=clusters, keys=keys, events=events)
    return with_numbers(frame, clusters, keys)[[*keys, *columns]]


# Figures of calibration: the share of true rows in bins of the score, and how many rows have which score.


_IN_BAND = "share_in_band"


def calibration_figures(reliability: pl.DataFrame | None, confidence: float) -> Iterator[Figure]:
    """Yield the share of true rows by the mean score of quantile bins, and the number of rows in bins of equal width.

    Args:
        reliability: The table of the bins; None where it was not made.
        confidence: The level of its limits.
    """
    if reliability is None or reliability.is_empty():
        return
    in_order = reliability.sort([*keys_of(reliability), BINNING, BIN])
    yield _shares(in_order.filter(pl.col(BINNING) == "quantile"), confidence)
    yield _rows(in_order.filter(pl.col(BINNING) == "width"))


def _shares(bins: pl.DataFrame, confidence: float) -> Figure:
    bins = bins.with_columns(pl.col("share_positive").alias(_IN_BAND))
    line = with_limits(bins, Series(_IN_BAND, "All bins together", "neutral"), "share_positive_band")
    points = with_limits(bins, Series("share_positive", "Share of true rows", "estimate", "point"))
    band = f"The band holds the shares of all bins together in {level(confidence)} of samples." if line.lower else ""
    words = (
        "The share of true rows in bins of about as many rows each, at their mean score. On the diagonal scores are "
        "probabilities; below it they claim too much."
    )
    return Figure(
        name="calibration",
        title="Calibration",
        caption=caption(words, intervals((points,), confidence), band),
        frame=drawn(bins, "mean_score", (line, points)),
        x=shares("Mean score", "mean_score"),
        y=shares("Share of true rows"),
        series=(line, points),
        rules=(Rule("Scores are probabilities", axis="diagonal"),),
    )


def _rows(bins: pl.DataFrame) -> Figure:
    middle = ((pl.col(SCORE_LOWER) + pl.col(SCORE_UPPER)) / 2).alias("score")
    series = (
        Series("n", "Rows", "neutral", "bar"),
        Series("n_positive", "True rows", "estimate", "bar"),
    )
    table = bins.with_columns(middle)
    return Figure(
        name="scores",
        title="Rows by score",
        caption="Number of rows, and of true rows in front of them, in bins of equal width.",
        frame=drawn(table, "score", series),
        x=shares("Score", "score"),
        y=Axis("", "Number of rows", "integer", includes=(0.0,)),
        series=series,
    )


# What a methods section says of calibration.


HOW = (
    "Scores were held against labels in {bins} bins by quantile{bands}; the Brier score was taken apart after Murphy "
    "(1973) and Stephenson, Coelho and Jolliffe (2008)."
)
BANDS = (
    ", with bands for all bins together (Šidák 1967), and tested for calibration after Spiegelhalter (1986) and after "
    "Hosmer and Lemeshow (1980)"
)


def calibration_sentences(measured: Measured) -> Iterator[str]:
    """Say how calibration was measured and what came out; nothing where no group has probabilities."""
    table = measured.tables.get("threshold_sweep_calibration", pl.DataFrame())
    if table.is_empty():
        return
    rows = table.filter(pl.col(BINNING) == "quantile", pl.col("ece").is_not_null())
    if rows.is_empty():
        return
    is_tested = measured.parameters["uncertainty"] != "none"
    yield HOW.format(bins=measured.parameters["calibration_bins"], bands=BANDS if is_tested else "")
    shown, _ = sections.headline_rows(rows)
    for row in shown:
        group = sections.named_group(row)
        yield f"The expected calibration error (Naeini et al. 2015){f' of {group}' if group else ''} was {_error(row)}."


def _error(row: Mapping[str, Any]) -> str:
    """An error of a group, beside its value for perfect scores, and p-values where there are any."""
    error, perfect = row["ece"], row["ece_if_calibrated"]
    value = percent(error)
    if perfect is None:
        return value
    names = {"spiegelhalter_p_value": "Spiegelhalter", "hosmer_lemeshow_p_value": "Hosmer and Lemeshow"}
    tests = [f"{name}: {_p_value(row[column])}" for column, name in names.items() if row[column] is not None]
    return f"{value} ({'; '.join([f'{percent(perfect)} is expected of perfect scores', *tests])})"


def _p_value(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"  # noqa: PLR2004 - smaller ones say no more
