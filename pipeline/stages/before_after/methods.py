"""What a methods section says of before_after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.columns import THRESHOLD
from ...tables.groupings import TOTAL
from ...tables.schemas import GROUPING
from ...visible_text import listed
from .. import methods
from ..units import Counted, Labelled, SampleSizes
from . import assumption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...metrics.planning.pilot import Scale
    from ..methods import Measured


NOUNS = {"pairs": "pairs", "events": "events", "articles": "articles"}
UNITS = {"event_id": "events", "day": "days", "article_id": "articles"}
COMPARED = {
    "events": "The numbers of compared pairs before and after every event were given.",
    "timelines": "The numbers of compared pairs were counted from the times of events and articles.",
    "pairs": "Every compared pair is a row of the data.",
}
CLOSED_FORMS = (
    "rest on the variance between {units}, by the delete-a-group jackknife (Quenouille 1956; Tukey 1958; Kott 2001)"
    "{parents}, with quantiles of Student's t and degrees of freedom after Satterthwaite (1946): gamma limits of the "
    "false positive rate (Garwood 1936), limits of precision by MOVER (Zou and Donner 2008), and limits of recall and "
    "F1 after Fieller (1954)"
)


def sentences(measured: Measured) -> Iterator[str]:
    """Say how precision and recall were estimated without labels, and what they are."""
    yield (
        "Precision and recall of the matches between events and articles were estimated without labels: matches before "
        "an event are false, and their rate among the pairs compared before it is taken as the false positive rate "
        "after it (Welbers et al. 2022), corrected for the true matches among the pairs after it (Rogan and Gladen "
        "1978)."
    )
    yield _data(measured)
    yield methods.left_out(measured, NOUNS)
    yield _window(measured.parameters["window"])
    yield COMPARED[measured.facts["compared"]]
    yield (
        f"A pair is a match if its score is {methods.at_or_above(measured)} a threshold; estimates were made "
        f"{methods.thresholds(measured)}."
    )
    yield methods.invalid_scores(measured, "Pairs")
    yield _reference(measured.parameters["recall_reference"])
    units = methods.units_in_words(measured, UNITS)
    parents = " over both (Cameron, Gelbach and Miller 2011)" if " and " in measured.facts["independent"] else ""
    yield methods.intervals(measured, units, CLOSED_FORMS.format(units=units, parents=parents))
    yield methods.criteria(measured)
    yield from _results(measured)
    yield _placebo(measured.tables)


def _data(measured: Measured) -> str:
    others = [f"{measured.used(name):,} {NOUNS[name]}" for name in ("events", "articles") if name in measured.accounts]
    return f"The data are {measured.used('pairs'):,} scored pairs{f' with {listed(others)}' if others else ''}."


def _window(window: Mapping[str, object] | None) -> str:
    if window is None:
        return "Pairs count whatever the time between event and article."
    gap = f", without the last {window['gap']:g} hours before it" if window["gap"] else ""
    end = "included" if window["closed"] == "both" else "excluded"
    return (
        f"The window runs from {window['before']:g} hours before an event to {window['after']:g} hours after it{gap}, "
        f"its end {end}."
    )


def _reference(reference: Mapping[str, object]) -> str:
    recall = reference["recall"]
    share = (
        f"between {100 * recall[0]:.10g}% and {100 * recall[1]:.10g}%" if isinstance(recall, list) else f"{recall:.10g}"
    )
    least = f"an uncorrected precision of at least {reference['min_precision']:.10g}"
    place = {
        "fixed": f"the threshold {reference['threshold']}",
        "lowest": f"the lowest threshold with {least}",
        "max": f"the threshold with most true positives among those with {least}",
    }[str(reference["rule"])]
    return f"Recall is relative to {place}, where it is taken to be {share}."


def _results(measured: Measured) -> Iterator[str]:
    points = measured.tables["before_after_operating_points"]
    chosen = points.filter(pl.col("criterion") != "recall_reference")
    rows = methods.of_first_criterion(points if chosen.is_empty() else chosen)
    yield from methods.results(rows, methods.RATIO_NAMES, measured.confidence, methods.CHOSEN)


def _placebo(tables: Mapping[str, pl.DataFrame]) -> str:
    rows = tables["before_after_placebo"].filter(pl.col(GROUPING.name) == TOTAL, pl.col(THRESHOLD).is_null())
    p_value = None if rows.is_empty() else rows["p_value"].item(0)
    if p_value is None:
        return "The assumption of equal false positive rates was not tested."
    verdict = "contradicts" if assumption.contradicts(tables) else "does not contradict"
    return (
        f"A placebo test of the rates of matches near to the event and far from it, both before it, {verdict} equal "
        f"false positive rates (p = {p_value:.2g}, wild bootstrap: Davidson and Flachaire 2008)."
    )


# What the numbers of before_after rest on: events, with their pairs.
#
# Limits of precision lie on the scale of the logarithm of 1 - P, those of recall and F1 are Fieller's, which are
# nearly symmetric about the number where they are narrow.


_AFTER, _BEFORE = "matches after the event", "matches before the event"
_VERSIONS = ("", "_uncorrected")
_RATIOS: dict[str, Scale] = {"precision": "lack", "recall": "plain", "f1": "plain"}
SAMPLE_SIZES = SampleSizes(
    nouns={"event_id": "events", "day": "days", "article_id": "articles"},
    inputs={"event_id": "events"},
    counts=(
        Counted("compared pairs", ("n_before", "n_after")),
        Counted(_AFTER, ("m_after",)),
        Counted(_BEFORE, ("m_before",)),
    ),
    rests_on={
        "fpr": _BEFORE,
        **{f"precision{version}": _BEFORE for version in _VERSIONS},
        **{f"{name}{version}": _AFTER for name in ("recall", "f1") for version in _VERSIONS},
    },
    scales={"fpr": "log", **{f"{name}{version}": scale for name, scale in _RATIOS.items() for version in _VERSIONS}},
    bounds={
        **{f"precision{version}": (0.0, 1.0) for version in _VERSIONS},
        **{f"{name}{version}": (0.0, 1.0) for name in ("recall", "f1") for version in _VERSIONS},
    },
    clusters="before_after_operating_points",
    labelled=Labelled(
        "precision_audited", "before_after_audit", "n_audited", "n_right", population="m_after", estimate="precision"
    ),
)
