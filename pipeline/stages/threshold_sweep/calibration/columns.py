"""Result tables of calibration in threshold_sweep."""

from __future__ import annotations

from ....metrics.uncertainty.interval_quality import CLUSTER_COLUMNS, QUALITY_COLUMN
from ....tables.schemas import Column, Table, limits_of, limits_of_share

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
