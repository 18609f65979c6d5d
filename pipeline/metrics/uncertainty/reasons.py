"""Why an interval or a test is missing: every value of `undefined_interval`, and of `undefined` of tables of tests.

A row gives one reason. The list of reasons is the same for all stages.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

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
