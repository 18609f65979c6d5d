"""Result tables of compare."""

from __future__ import annotations

from ...metrics.uncertainty.interval_quality import QUALITY_COLUMN
from ...tables.schemas import Column, Table, limits_of, limits_of_share

_PAIR = (
    Column("metric", "VARCHAR", "what is compared: a column of the units, or a ratio of the counts of all units"),
    Column(
        "system_a",
        "KEY",
        "the system that comes first in order, or the one that is compared with the baseline; NULL: with "
        "`paired = false` the group without a value",
        nullable=True,
    ),
    Column("system_b", "KEY", "the other, or the baseline; NULL: as of system_a", nullable=True),
    Column(
        "n_units", "BIGINT", "units in which both have a value; with `paired = false` units of either that have a value"
    ),
    Column("n_units_a", "BIGINT", "of these the units of the first system: all, but with `paired = false`"),
    Column("n_units_b", "BIGINT", "those of the other"),
    Column(
        "n_dropped",
        "BIGINT",
        "units of either system that were left out: they have no value, or one of the two has none there or no row",
    ),
)
TESTS = (
    *_PAIR,
    Column(
        "mean_a",
        "DOUBLE",
        "mean of the first system over these units, or its ratio of all counts; NULL: no unit, or 0 / 0",
        nullable=True,
    ),
    Column("mean_b", "DOUBLE", "the same of the other; NULL: no unit, or 0 / 0", nullable=True),
    Column("difference", "DOUBLE", "mean_a − mean_b; NULL: no unit, or 0 / 0", nullable=True),
    *limits_of("difference", "the difference"),
    Column(
        "ratio",
        "DOUBLE",
        "mean_a / mean_b; NULL: mean_b is not above 0, a value is below 0, or one of the means is NULL",
        nullable=True,
    ),
    *limits_of("ratio", "the ratio"),
    Column(
        "test",
        "VARCHAR",
        "`paired_t`, `bootstrap_t`, `wilcoxon`, `sign`, `randomization`, `jackknife_t`, `welch_t` or `permutation`",
    ),
    Column("hypothesis", "VARCHAR", "what the p-value is of: the null hypothesis of the test, in words"),
    Column(
        "statistic",
        "DOUBLE",
        "t, the smaller rank sum, or the units that a wins; NULL: `randomization`, `permutation`, or see `undefined`",
        nullable=True,
    ),
    Column("p_value", "DOUBLE", "two-sided p-value of `hypothesis`; NULL: see `undefined`", nullable=True),
    Column(
        "p_adjusted",
        "DOUBLE",
        "p_value adjusted for all pairs and metrics of the group and test; NULL: as p_value",
        nullable=True,
    ),
    Column("correction", "VARCHAR", "how it was adjusted: `holm`, `bh`, or `none`: not at all"),
    Column(
        "effect_size",
        "DOUBLE",
        "mean difference over its standard deviation between units, with `paired = false` over the root mean square of "
        "the standard deviations of both; NULL: pooled ratios, contributions, or see `undefined`",
        nullable=True,
    ),
    Column(
        "skewness",
        "DOUBLE",
        "skewness of the differences between units; NULL: pooled ratios, `paired = false`, fewer than three units, or "
        "no spread",
        nullable=True,
    ),
    Column(
        "wins_a",
        "BIGINT",
        "units in which a has the higher value; NULL: pooled ratios, contributions, `paired = false`",
        nullable=True,
    ),
    Column(
        "ties",
        "BIGINT",
        "units in which both are equal; NULL: pooled ratios, contributions, `paired = false`",
        nullable=True,
    ),
    Column(
        "wins_b",
        "BIGINT",
        "units in which b has the higher value; NULL: pooled ratios, contributions, `paired = false`",
        nullable=True,
    ),
    Column(
        "minimum_detectable_difference",
        "DOUBLE",
        "true difference that such a number of such units shows with a probability of 0.8; NULL: no spread",
        nullable=True,
    ),
    Column("undefined", "VARCHAR", "why a value is NULL; NULL: nothing is undefined", nullable=True),
    QUALITY_COLUMN,
)
POSTERIORS = (
    *_PAIR,
    Column("mean_a", "DOUBLE", "posterior mean of the first system"),
    *limits_of_share("mean_a", "its credible interval with equal tails"),
    Column("mean_b", "DOUBLE", "posterior mean of the other"),
    *limits_of_share("mean_b", "its credible interval with equal tails"),
    Column(
        "design_effect_a", "DOUBLE", "what the counts of a were divided by, at least 1; NULL: no count", nullable=True
    ),
    Column(
        "counts_a",
        "VARCHAR",
        "[how that was found](methods/compare.md#posteriors): `as_counted`, `design_effect` or `one_per_unit`",
    ),
    Column("design_effect_b", "DOUBLE", "the same of b; NULL: no count", nullable=True),
    Column("counts_b", "VARCHAR", "the same of b"),
    Column("probability_a_better", "DOUBLE", "probability that a is better, the two taken as independent"),
    QUALITY_COLUMN,
)
MARGINS = (
    *_PAIR,
    Column("difference", "DOUBLE", "mean_a − mean_b, as in `compare_tests`; NULL: no unit, or 0 / 0", nullable=True),
    Column(
        "interval_lower",
        "DOUBLE",
        "lower limit of the difference at the level `interval_confidence`; NULL: none can be given",
        nullable=True,
    ),
    Column("interval_upper", "DOUBLE", "upper limit of the same; NULL: none can be given", nullable=True),
    Column(
        "interval_confidence",
        "DOUBLE",
        "level of these limits, 2 × `confidence` − 1: without adjustment, `equivalent` holds exactly if they lie "
        "within the margin; NULL: `confidence` is at most 1/2",
        nullable=True,
    ),
    Column("test", "VARCHAR", "what the limits and the p-values are made by: a test that gives an interval"),
    Column("claim", "VARCHAR", "`a_not_worse`, `b_not_worse`, or `equivalent`: both"),
    Column("margin", "DOUBLE", "the difference that would matter, of the config"),
    Column("hypothesis", "VARCHAR", "what the p-value is of: the contrary of the claim, in words"),
    Column(
        "statistic",
        "DOUBLE",
        "distance of the difference from the margin in standard errors, above 0 on the side of the claim; of "
        "`equivalent` the smaller of both; NULL: see `undefined`",
        nullable=True,
    ),
    Column(
        "p_value",
        "DOUBLE",
        "one-sided p-value of `hypothesis`; of `equivalent` the larger of both; NULL: see `undefined`",
        nullable=True,
    ),
    Column(
        "p_adjusted",
        "DOUBLE",
        "p_value adjusted for all pairs and metrics of the group, claim and test; NULL: as p_value",
        nullable=True,
    ),
    Column("correction", "VARCHAR", "how it was adjusted: `holm`, `bh`, or `none`: not at all"),
    Column(
        "holds",
        "BOOLEAN",
        "whether the claim is shown: p_adjusted is at most 1 − `confidence`; false is no proof of the contrary; "
        "NULL: as p_value",
        nullable=True,
    ),
    Column("undefined", "VARCHAR", "why a value is NULL; NULL: nothing is undefined", nullable=True),
    QUALITY_COLUMN,
)
TABLES = (
    Table(
        "compare_tests",
        "one row per group, pair of systems, metric and test",
        TESTS,
        ("metric", "system_a", "system_b", "test"),
    ),
    Table(
        "compare_posteriors",
        "one row per group, pair of systems and ratio of all counts",
        POSTERIORS,
        ("metric", "system_a", "system_b"),
    ),
    Table(
        "compare_margins",
        "one row per group, pair of systems, metric with a margin, test that gives an interval, and claim",
        MARGINS,
        ("metric", "system_a", "system_b", "test", "claim"),
    ),
)
