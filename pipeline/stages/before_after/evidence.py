"""Where the numbers of before_after come from: certain false positives, pairs near the threshold, compared pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import DataError
from ...metrics.before_after.estimates import RATIOS, reference_rows, with_ratios, with_recalls
from ...tables.columns import THRESHOLD, lowest_retrieved
from ...tables.schemas import GROUPING
from ..parameters import EVERYTHING
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section, Sheet
from ..stage import WITHOUT, by_influence
from .audit import KEY, SAMPLE
from .inputs import USED_PAIRS
from .lags import N_COLUMNS
from .units import TABLE as EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...plan.rows import Grouped
    from ...sources.source import Source
    from ..sections import Asked
    from .contract import BeforeAfterParameters, Compared


# Where the numbers of before_after come from: certain false positives, pairs near the threshold, events.


_ESTIMATES = "before_after_estimates"
_POSITIVES, _RATE, _FALSE = (
    ("positives", "tp_at_reference / (recall_at_reference - fpr_at_reference)"),
    ("fpr", "m_before / n_before"),
    ("fp", "fpr * (n_after - positives)"),
)
_CORRECTED = (_POSITIVES, _RATE, _FALSE, ("tp", "m_after - fp"))
_UNCORRECTED = (_RATE, ("fp_uncorrected", "fpr * n_after"), ("tp_uncorrected", "m_after - fp_uncorrected"))
_MEASURES = {
    "precision": (*_CORRECTED, ("precision", "tp / m_after")),
    "recall": (*_CORRECTED, ("recall_raw", "tp / positives"), ("recall", "min(recall_raw, 1)")),
    "f1": (*_CORRECTED, ("f1", "2 * tp / (m_after + max(tp, positives))")),
    "fpr": (_RATE,),
    "fp": (_POSITIVES, _RATE, _FALSE),
    "tp": _CORRECTED,
    "precision_uncorrected": (*_UNCORRECTED, ("precision_uncorrected", "tp_uncorrected / m_after")),
    "recall_uncorrected": (
        *_UNCORRECTED,
        ("recall_raw_uncorrected", "tp_uncorrected / tp_at_reference"),
        ("recall_uncorrected", "min(recall_raw_uncorrected, 1)"),
    ),
}
_COUNTS = ("n_before", "n_after", "m_before", "m_after")
_OF_COUNTS = ("fpr", *(f"{name}{source}" for name in RATIOS for source in ("", "_uncorrected")))


def _values(asked: Asked) -> dict[str, float]:
    bounds = EVERYTHING if asked.params.window is None else asked.params.window.bounds()
    threshold = -math.inf if asked.threshold is None else asked.threshold
    reference = _reference(asked)
    at_reference = math.inf if reference is None else lowest_retrieved(reference[THRESHOLD], asked.params.boundary)
    scores = {"lowest_score": asked.lowest_score, "reference_score": at_reference}
    return {**bounds, **scores, "threshold": threshold}


def _reference(asked: Asked) -> dict[str, Any] | None:
    """The row of the recall reference of the group; None: it has none."""
    rows = _of_group(asked.tables[_ESTIMATES], asked).filter("is_reference")
    return None if rows.is_empty() else rows.row(0, named=True)


def _quantities(asked: Asked) -> dict[str, float]:
    """What the recall reference of the group says: true positives and false positive rate there, and recall."""
    row = _reference(asked)
    if row is None:
        return {}
    return {
        "tp_at_reference": row["tp_uncorrected"],
        "fpr_at_reference": row["fpr"],
        "recall_at_reference": asked.params.recall_reference.middle,
    }


def _of_group(table: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    same = (pl.col(name).eq_missing(pl.lit(value)) for name, value in asked.group.items())
    return table.filter(pl.col(GROUPING.name) == asked.row[GROUPING.name], *same)


def _rows(asked: Asked) -> dict[str, str]:
    """The pairs that take part, and with gold labels those that people judged."""
    judged = {"explained_gold": "annotated_pairs"} if asked.source("gold") is not None else {}
    return {EXPLAINED_ROWS: USED_PAIRS, **judged}


def _keys(asked: Asked) -> tuple[str, ...]:
    pairs = asked.plan.sources[0]
    return (*asked.by, *(name for name in KEY if pairs.has(name)))


def _events(events: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Events with their matches and compared pairs, and the number that all others have without them."""
    of_groups = {grouped.name: grouped.source for grouped in asked.plan.by}
    is_known = EVENTS in asked.tables and all(of_groups[name] == "events" for name in asked.group)
    if not is_known or asked.measure not in _OF_COUNTS or not asked.row.keys() >= {*_COUNTS}:
        # matches alone: which pairs of the group were compared is not known of single events
        matches = events.select("event_id", "m_before", "m_after").filter(pl.col("m_before") + pl.col("m_after") > 0)
        return matches.sort("m_before", "m_after", descending=True, maintain_order=True)
    compared = asked.tables[EVENTS].select("event_id", "n_before", "n_after")
    joined = events.join(compared, on="event_id", how="left", maintain_order="left")
    joined = joined.join(_without(joined, asked), on="event_id", how="left", maintain_order="left")
    return by_influence(joined.select("event_id", *_COUNTS, WITHOUT), asked.row[asked.measure])


def _without(events: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """The number that all other events have without each of some, with the recall reference at the same threshold."""
    keys, reference = ["event_id"], _reference(asked)
    rows = with_ratios(_others(events, asked.row, ""))
    references = rows.clear()
    if reference is not None:
        at_reference = with_ratios(_others(events, reference, "_reference"))
        references = reference_rows(at_reference, keys, rule="fixed", min_precision=0.0, threshold=reference[THRESHOLD])
    estimated = with_recalls(rows, keys, references, asked.params.recall_reference.middle)
    return estimated.select(*keys, pl.col(asked.measure).alias(WITHOUT))


def _others(events: pl.DataFrame, row: Mapping[str, Any], suffix: str) -> pl.DataFrame:
    """Counts of all other events than each of some, at the threshold of a row."""
    own = {name: pl.col(f"{name}{suffix}" if name.startswith("m_") else name) for name in _COUNTS}
    others = ((pl.lit(row[name], dtype=pl.Int64) - own[name]).alias(name) for name in _COUNTS)
    return events.select("event_id", pl.lit(row[THRESHOLD], dtype=pl.Float64).alias(THRESHOLD), *others)


def _audit(sample: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    """The drawn matches in the order of draws. Their scores are left out, as they would sway those who check."""
    return sample.sort("draw").select("draw", *KEY, "lag_hours")


def _without_gold(asked: Asked) -> str:
    return "" if asked.source("gold") is not None else "there are no gold labels"


def _without_audit(asked: Asked) -> str:
    if asked.params.audit is None:
        return "the config has no audit; audit = { threshold = …, size = … } draws a sample to check"
    return "" if SAMPLE in asked.tables else "the sample was not made"


_INPUTS = {
    "pairs": {name: name for name in KEY},
    "events": {"event_id": "event_id"},
    "articles": {"article_id": "article_id"},
}
EVIDENCE = Evidence(
    measures=tuple(Measure(name, _ESTIMATES, (form,)) for name, form in _MEASURES.items()),
    sections=(
        Section(
            "certain_false_positives",
            "Certain false positives",
            "Matches at {threshold} whose article is older than the event, so that none can be right; the highest "
            "scores first.",
            "before_after/explain/certain_false_positives",
            segment=_keys,
            inputs=_INPUTS,
        ),
        Section(
            "nearest",
            "Pairs nearest to the threshold",
            "Pairs in the order of their distance from {threshold}: a slightly other threshold turns these.",
            "before_after/explain/nearest",
            segment=_keys,
            inputs=_INPUTS,
        ),
        Section(
            "gold_misses",
            "Gold pairs that are missed",
            "Gold pairs after their event that the matcher does not retrieve at {threshold}; those that it did not "
            "store come first, then the lowest scores.",
            "before_after/explain/gold_misses",
            segment=_keys,
            inputs=_INPUTS,
            absent=_without_gold,
        ),
        Section(
            "gold_false_positives",
            "Matches that are not gold",
            "Matches of coded articles after the event at {threshold} that are no gold pair; the highest scores first.",
            "before_after/explain/gold_false_positives",
            segment=_keys,
            inputs=_INPUTS,
            absent=_without_gold,
        ),
        Section(
            "events",
            "Events that carry the estimate",
            "Each event with the {measure} of all others without it, at the same recall reference; the largest "
            "influence first, or the most matches before the event where that is not known of single events.",
            "before_after/explain/events",
            finish=_events,
            ranks=True,
            inputs={"events": {"event_id": "event_id"}},
        ),
        Section(
            "audit",
            "The sample to check",
            "Matches drawn at random for people to check: fill in is_match with true or false. --checked SHEET makes "
            "it the input audited.",
            table=SAMPLE,
            finish=_audit,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_audit,
            sheet=Sheet("audited", KEY, "is_match"),
        ),
    ),
    rows=_rows,
    points="before_after_operating_points",
    values=_values,
    quantities=_quantities,
    decides=("window", "compared", "boundary", "recall_reference", "invalid_scores", "duplicates", "cluster"),
)


# Where the numbers of compared pairs come from: rows of pairs, numbers per event, or the two timelines.


def resolve_compared(params: BeforeAfterParameters, events: Source | None, articles: Source | None) -> Compared:
    """Find where the numbers of compared pairs come from, unless the config says so.

    Raises:
        DataError: the inputs lack what the config asks for.
    """
    counted = has(events, *N_COLUMNS)
    timed = has(events, "event_time") and has(articles, "article_time") and params.window is not None
    default: Compared = "events" if counted else "timelines" if timed else "pairs"
    compared = params.compared or default
    if compared == "events" and not counted:
        message = 'compared = "events" needs the input events with n_before and n_after'
        raise DataError(message, remedy='Map them, or use compared = "pairs" if every compared pair is a row.')
    if compared == "timelines" and not timed:
        message = 'compared = "timelines" needs events with event_time and articles with article_time'
        raise DataError(message, remedy='Map them, for example columns = { event_time = "date" }.')
    return compared


def check_grouping(compared: Compared, by: Sequence[Grouped]) -> None:
    """Refuse groups whose number of compared pairs is not known.

    Raises:
        DataError: the pairs are counted per event, and a grouping column is one of articles.
    """
    for grouped in by:
        if compared == "events" and grouped.source == "articles":
            message = f"by: {grouped.label!r} is a column of articles, but the compared pairs are given per event"
            remedy = 'Their number for each value is not known: use compared = "timelines" if the data allow it.'
            raise DataError(message, remedy=remedy)


def has(source: Source | None, *names: str) -> bool:
    """Whether an input is given and has all of some fields."""
    return source is not None and all(source.has(name) for name in names)
