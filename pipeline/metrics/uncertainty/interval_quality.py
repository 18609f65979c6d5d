"""Values of `interval_quality` and `undefined_interval`: how far a number can be trusted, or why it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ...tables.schemas import Column

if TYPE_CHECKING:
    from collections.abc import Iterable


# How far an interval can be trusted: every value of `interval_quality`, and the columns that tell why.
#
# A row gives one value, the worst of those that hold for any of its intervals. The list is the same for all stages.


Quality: TypeAlias = Literal[
    "assumption_failed",
    "unequal_clusters",
    "few_clusters",
    "one_parent",
    "correlated_days",
    "skewed",
    "at_edge",
    "few_events_of_interest",
    "chosen_on_same_data",
    "good",
]

FEWEST_CLUSTERS = 15  # effective clusters below which coverage is not vouched for
LARGEST_SHARE = 1 / 3  # of all rows that one cluster may hold
FEWEST_EVENTS = 10  # of the rarer of what a ratio weighs against each other
FEWEST_OF_CLASS = 20  # positives, and negatives, of an area
UNITS_PER_SQUARED_SKEWNESS = 25  # that Student's t needs (Cochran 1977, section 2.15)

MEANINGS: dict[Quality, str] = {  # the worst first
    "assumption_failed": (
        "the tests before the event contradict equal false positive rates, which these numbers rest on: the truth may "
        "lie far outside their limits"
    ),
    "unequal_clusters": "one cluster holds over a third of the rows, and over twice what it would if all were equal",
    "few_clusters": f"the effective number of clusters (Kish) is below {FEWEST_CLUSTERS}",
    "one_parent": "the rows have a second parent, such as articles, of which these intervals know nothing",
    "correlated_days": (
        "neighbouring days, or other clusters in the order of time, are alike, or fewer than 50 so that it is not "
        "excluded: limits allow for it as far as they tell"
    ),
    "skewed": f"fewer units than {UNITS_PER_SQUARED_SKEWNESS} × the squared skewness of their values, by Student's t",
    "at_edge": "a ratio is 0 or 1, so that one of its limits rests on a rule and not on a spread",
    "few_events_of_interest": (
        f"fewer than {FEWEST_EVENTS} of the rarer of what a ratio weighs against each other; of areas fewer than "
        f"{FEWEST_OF_CLASS} positives or negatives"
    ),
    "chosen_on_same_data": "the threshold was chosen on these rows, by a criterion without confidence",
    "good": "none of these",
}

INTERVAL_QUALITY = "interval_quality"
DOUBTFUL: tuple[Quality, ...] = (  # warn
    "assumption_failed",
    "unequal_clusters",
    "few_clusters",
    "one_parent",
    "correlated_days",
    "skewed",
)
N_CLUSTERS, N_EFFECTIVE, DESIGN_EFFECT = "n_clusters", "n_clusters_effective", "design_effect"

QUALITY_COLUMN = Column(
    INTERVAL_QUALITY,
    "VARCHAR",
    "[how far to trust the intervals](#how-far-to-trust-an-interval) of the row, the worst that holds: "
    f"`{'`, `'.join(MEANINGS)}`; NULL: no interval is given",
)
CLUSTER_COLUMNS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        "clusters with rows, or replicates that more than 1,000 of them are put in; NULL: rows are independent",
    ),
    Column(
        N_EFFECTIVE,
        "DOUBLE",
        "how many clusters of equal size would weigh as much: (Σ n)² / Σ n² of their sizes; NULL: rows are independent",
    ),
)


def worst(qualities: Iterable[Quality | None]) -> Quality | None:
    """The worst of several; None stands for no interval, and is given if there is no other."""
    present = set(qualities)
    return next((quality for quality in MEANINGS if quality in present), None)


def design_effect_column(ratio: str) -> Column:
    """The column `design_effect` of a table whose main ratio has this name."""
    meaning = f"variance of {ratio} between clusters over that of independent rows"
    rule = "rows are independent, or one is not known"
    return Column(DESIGN_EFFECT, "DOUBLE", f"{meaning}; NULL: {rule}")


# Why an interval or a test is missing: every value of `undefined_interval`, and of `undefined` of tables of tests.
#
# A row gives one reason. The list of reasons is the same for all stages.


Reason: TypeAlias = Literal[
    "none",  # no interval is wanted
    "budget",  # rows of the result × replicates are more than intervals are computed for
    "one_replicate",  # fewer than two replicates have data, and one has no spread
    "undefined_ratio",  # the ratio itself is undefined
    "not_a_proportion",  # the ratio is no share of what it is divided by
    "no_limit",  # the replicates are too few, or too much alike, for a limit
    "harmonic_mean",  # a harmonic mean of averages has no limits
    "few_positives",  # fewer than two positives with a weight above 0
    "few_negatives",  # fewer than two negatives with a weight above 0
    "at_limit",  # an area is 0 or 1, where the logit scale ends
    "no_spread",  # the rows show no spread of an area, as if all scores are equal
    "no_query",  # no query has a relevant document
    "one_query",  # a single query has no spread
    "no_before",  # fewer than two replicates have pairs before the event
    "no_near",  # the compared pairs near to the event are not known
    "no_far",  # no pair in the far part of the time before the event was compared
    "no_window",  # without a window the time before the event has no near and no far part
    "no_prediction",  # nothing is retrieved
    "unidentified",  # the false positive rate at the reference of recall is not below the recall believed there
    "no_reference",  # no threshold serves as the reference of recall
    "negative_tp",  # the estimated number of true positives is below 0
    "all_positive",  # no pair after the event is left to be negative
    "unbounded",  # the data allow anything from 0 to 1
    "unsupported_stratum",  # a stratum has pairs after the event and none before it
    "thin_stratum",  # all pairs before the event of a stratum lie in one replicate
    "unknown_pairs",  # the compared pairs of a day, or near to the event, are not known
    "few_matches",  # too few matches to compare
    "few_replicates",  # too few replicates have matches that could lie on more than one day
    "no_match",  # there is no match
    "one_day",  # all compared pairs lie on one day
    "no_audit",  # no checked match is retrieved
]
