"""What there is to look at of before_after: the estimates, what they rest on, and where their numbers come from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.before_after.estimates import references_of, with_estimates
from ...metrics.before_after.formulas import SHOWN, STATED, steps
from ...tables.columns import THRESHOLD, lowest_retrieved
from ...tables.schemas import GROUPING
from ..figures import (
    GAP,
    Axis,
    Figure,
    Rule,
    Series,
    Wanted,
    by_threshold,
    caption,
    drawn,
    intervals,
    key_numbers_of,
    keys_of,
    on_other_data,
    precision_recall,
    ratios_of_groups,
    rising,
    shares,
    shown,
    thinned,
    visible,
    with_limits,
)
from ..parameters import EVERYTHING
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section, Sheet
from ..stage import WITHOUT, by_influence, number
from .inputs import PAIR, TABLE_OF_EVENTS, USED_PAIRS
from .labels import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..figures import KeyNumber
    from ..sections import Asked


# Where the numbers of before_after come from: certain false positives, pairs near the threshold, events.


_ESTIMATES = "before_after_estimates"
_COUNTS = ("n_before", "n_after", "m_before", "m_after")
_MAIN = ("precision", "recall", "f1")  # what is explained first


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
    return (*asked.by, *(name for name in PAIR if pairs.has(name)))


def _events(events: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Events with their matches and compared pairs, and the number that all others have without them."""
    of_groups = {grouped.name: grouped.source for grouped in asked.plan.by}
    is_known = TABLE_OF_EVENTS in asked.tables and all(of_groups[name] == "events" for name in asked.group)
    if not is_known or asked.measure not in STATED or not asked.row.keys() >= {*_COUNTS}:
        # matches alone: which pairs of the group were compared is not known of single events
        matches = events.select("event_id", "m_before", "m_after").filter(pl.col("m_before") + pl.col("m_after") > 0)
        return matches.sort("m_before", "m_after", descending=True, maintain_order=True)
    compared = asked.tables[TABLE_OF_EVENTS].select("event_id", "n_before", "n_after")
    joined = events.join(compared, on="event_id", how="left", maintain_order="left")
    joined = joined.join(_without(joined, asked), on="event_id", how="left", maintain_order="left")
    return by_influence(joined.select("event_id", *_COUNTS, WITHOUT), asked.row[asked.measure])


def _without(events: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """The number that all other events have without each of some, with the recall reference at the same threshold."""
    keys, reference = ["event_id"], _reference(asked)
    rows = _others(events, asked.row, "")
    references = rows.clear()
    if reference is not None:
        at_reference = _others(events, reference, "_reference")
        references = references_of(at_reference, keys, rule="fixed", threshold=reference[THRESHOLD])
    recall = asked.params.recall_reference.middle
    estimated = with_estimates(rows, keys, references, recall, (asked.measure,))
    return estimated.select(*keys, pl.col(asked.measure).alias(WITHOUT))


def _others(events: pl.DataFrame, row: Mapping[str, Any], suffix: str) -> pl.DataFrame:
    """Counts of all other events than each of some, at the threshold of a row."""
    own = {name: pl.col(f"{name}{suffix}" if name.startswith("m_") else name) for name in _COUNTS}
    others = ((pl.lit(row[name], dtype=pl.Int64) - own[name]).alias(name) for name in _COUNTS)
    return events.select("event_id", pl.lit(row[THRESHOLD], dtype=pl.Float64).alias(THRESHOLD), *others)


def _audited_rows(sample: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    """The drawn matches in the order of draws. Their scores are left out, as they would sway those who check."""
    return sample.sort("draw").select("draw", *PAIR, "lag_hours")


def _without_gold(asked: Asked) -> str:
    return "" if asked.source("gold") is not None else "there are no gold labels"


def _without_audit(asked: Asked) -> str:
    if asked.params.audit is None:
        return "the config has no audit; audit = { threshold = …, size = … } draws a sample to check"
    return "" if SAMPLE in asked.tables else "the sample was not made"


_INPUTS = {
    "pairs": {name: name for name in PAIR},
    "events": {"event_id": "event_id"},
    "articles": {"article_id": "article_id"},
}
EVIDENCE = Evidence(
    measures=tuple(
        Measure(each.name, _ESTIMATES, (steps(each.name),))
        for each in sorted(SHOWN, key=lambda each: each.name not in _MAIN)
    ),
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
            finish=_audited_rows,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_audit,
            sheet=Sheet("audited", PAIR, "is_match"),
        ),
    ),
    rows=_rows,
    points="before_after_operating_points",
    values=_values,
    quantities=_quantities,
    decides=("window", "compared", "boundary", "recall_reference", "invalid_scores", "duplicates", "cluster"),
)


# Figures of what before_after rests on: matches by day, and whether false positives are as frequent at all times.


DAY = "lag_days"
MOST_BARS, MOST_FIGURES = 120, 6
X_TITLE = "Threshold: score from which a pair counts as a match"


def by_day(lags: pl.DataFrame | None) -> Iterator[Figure]:
    """Matches by day of the lag, a figure for each threshold of `lag_thresholds`; of many thresholds a few.

    Args:
        lags: The table of the lags, if it was made: days without a match have no row.
    """
    if lags is None or lags.is_empty():
        return
    thresholds = lags[THRESHOLD].unique().sort()
    thresholds = thresholds.gather_every(math.ceil(len(thresholds) / MOST_FIGURES))
    days = lags[DAY].to_list()
    width = math.ceil((max(days) - min(days) + 1) / MOST_BARS)
    # matches in bins of so many days, none of which holds the event inside; bins without a match are 0
    keys = [*keys_of(lags), THRESHOLD]
    start = (pl.col(DAY).floordiv(width) * width).alias(DAY)
    counted = lags.group_by(*keys, start).agg(pl.col("matches").sum())
    every = lags.select(keys).unique().join(_bins(counted[DAY], width), how="cross")
    table = every.join(counted, on=[*keys, DAY], how="left", nulls_equal=True).sort([*keys, DAY])
    matches, is_before = pl.col("matches").fill_null(0), pl.col(DAY) < 0
    sides = [pl.when(is_before).then(matches).alias("before"), pl.when(~is_before).then(matches).alias("after")]
    binned = table.with_columns(sides).with_columns(pl.col("before").mean().over(keys).alias("by_chance"))
    for index, threshold in enumerate(thresholds, start=1):
        yield _at_threshold(binned.filter(pl.col(THRESHOLD) == threshold), index, threshold, width)


def _bins(starts: pl.Series, width: int) -> pl.DataFrame:
    """First days of all bins in which a match of any group lies or can lie, on both sides of the event."""
    sides = [starts.filter(starts < 0).to_list(), starts.filter(starts >= 0).to_list()]
    days = [day for side in sides if side for day in range(min(side), max(side) + 1, width)]
    return pl.DataFrame({DAY: days}, schema={DAY: pl.Int64})


def _at_threshold(table: pl.DataFrame, index: int, threshold: float, width: int) -> Figure:
    series = (
        Series("before", "Before the event", "before", "bar"),
        Series("after", "After the event", "after", "bar"),
        Series("by_chance", "Expected by chance", "chance"),
    )
    per = "day" if width == 1 else f"{width} days"
    words = (
        f"Matches with a score of {number(threshold)} or more. Those before the event are false. The line is their "
        f"mean per {per}: about as many are false after the event if as many pairs are compared then. The window may "
        "hold the bars at its ends only in part."
    )
    return Figure(
        name=f"matches_by_day_{index}",
        title=f"Matches by day, at threshold {number(threshold)}",
        caption=words,
        frame=drawn(table, DAY, series),
        x=Axis(DAY, "Days from the event to the article (0: within 24 hours after the event)", "integer"),
        y=Axis("", f"Matches per {per}", "integer", includes=(0.0,)),
        series=series,
    )


def placebo(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The match rate near the event over that far before it, on the log scale, by threshold.

    Args:
        table: The table of the placebo test, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    by_threshold = rising(table)
    series = (with_limits(table, Series("log_rate_ratio", "Log of the ratio", "estimate")),)
    words = (
        "Natural logarithm of the rate of matches shortly before the event over the rate long before it: 0 if both are "
        "equal, as the method assumes, 0.1 if matches shortly before are about 10% more frequent."
    )
    return Figure(
        name="placebo",
        title="Placebo test: matches near to and far before the event",
        caption=caption(words, intervals(series, confidence), "A gap: one of the two times has no match."),
        frame=drawn(thinned(by_threshold, THRESHOLD), THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=Axis("", "Log ratio of match rates, near / far", includes=(0.0,)),
        series=series,
        rules=(Rule("Equal rates", 0.0, "y"),),
    )


def trend(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The change of the match rate per day before the event, by threshold of `lag_thresholds`.

    Args:
        table: The table of the trend, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    texts = pl.Series("at", [number(threshold) for threshold in table[THRESHOLD]], dtype=pl.String)
    series = (with_limits(table, Series("slope", "Change per day", "estimate", "point")),)
    words = (
        "Change of the natural logarithm of the rate of matches from one day to the next before the event: 0 if the "
        "rate stays the same, as the method assumes, 0.1 if it rises by about 10% a day. A row for each threshold of "
        "lag_thresholds."
    )
    return Figure(
        name="trend",
        title="Trend of the rate of matches before the event",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(rising(table.with_columns(texts)), "at", series),
        x=Axis("at", X_TITLE, "category"),
        y=Axis("", "Change of the log rate per day", includes=(0.0,)),
        series=series,
        rules=(Rule("No trend", 0.0, "y"),),
    )


# What there is to look at of before_after: the estimates, what they rest on, and numbers at chosen thresholds.


VISIBLE = 0.02  # a difference between two ratios that can be seen in a figure
NUMBERS = (
    Wanted("precision", "Precision", "kept matches that are right", "precision"),
    Wanted("recall", "Recall", "true matches that are kept", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """The estimates, what other methods and labels make of them, and what their assumption rests on."""
    estimates, points = rising(tables["before_after_estimates"]), tables["before_after_operating_points"]
    what = (
        "Estimates, without labels, of the ratios if every pair that scores at least the threshold counts as a match. "
        "Precision falls below 0 where fewer matches follow an event than chance would give."
    )
    yield by_threshold(estimates, points, confidence, what=what, x_title=X_TITLE)
    yield precision_recall(estimates, points)
    best = _best_rows(points)
    if not best.is_empty():
        chosen_by = best["criterion"][0]
        yield ratios_of_groups(best, "m_after", confidence, f"at the threshold that {chosen_by} chose")
    yield from by_day(tables.get("before_after_lags"))
    yield placebo(tables.get("before_after_placebo"), confidence)
    yield trend(tables.get("before_after_trend"), confidence)
    for ratio in ("precision", "recall"):
        yield _gold(estimates, tables.get("before_after_gold"), ratio, confidence)
    yield _audit(tables.get("before_after_audit"), confidence)
    yield _adjusted(estimates, tables.get("before_after_adjusted"), confidence)
    for ratio in ("precision", "recall"):
        yield _uncorrected(estimates, ratio, confidence)
    yield _realised(estimates, confidence)


def _beside(
    table: pl.DataFrame, series: Sequence[Series], confidence: float, *, name: str, title: str, words: str
) -> Figure:
    """Lines of a ratio by threshold beside each other; the rows of the table lie as `rising` orders them."""
    series = tuple(visible(table, line) for line in series)
    y_title = "Recall" if "recall" in name else "Precision"
    return Figure(
        name=name,
        title=title,
        caption=caption(words, intervals(series, confidence), GAP),
        frame=drawn(thinned(table, THRESHOLD), THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=shares(y_title),
        series=series,
    )


def _gold(estimates: pl.DataFrame, gold: pl.DataFrame | None, ratio: str, confidence: float) -> Figure | None:
    if gold is None or gold.is_empty():
        return None
    keys = [*keys_of(estimates), THRESHOLD]
    of_matches = gold.filter(pl.col("level") == "match").select(*keys, pl.col(ratio).alias("gold"))
    table = estimates.join(of_matches, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return _beside(
        table,
        (with_limits(table, Series(ratio, "Estimate without labels", "estimate")), Series("gold", "Gold", "gold")),
        confidence,
        name=f"gold_{ratio}",
        title=f"Estimated {ratio} beside {ratio} on gold labels",
        words="Gold is counted on the matches of the coded articles, the estimate on the matches of all articles.",
    )


def _audit(audit: pl.DataFrame | None, confidence: float) -> Figure | None:
    if audit is None or audit.is_empty():
        return None
    series = (
        Series("precision", "Estimate without labels", "estimate"),
        with_limits(audit, Series("precision_combined", "Both combined", "precision")),
        with_limits(audit, Series("precision_audited", "Checked by people", "gold")),
    )
    words = "Precision of this data set: estimated, among the matches that people checked, and both combined."
    title = "Estimated precision beside checked matches"
    return _beside(rising(audit), series, confidence, name="audited_precision", title=title, words=words)


def _adjusted(estimates: pl.DataFrame, adjusted: pl.DataFrame | None, confidence: float) -> Figure | None:
    if adjusted is None or adjusted.is_empty():
        return None
    keys = [*keys_of(estimates), THRESHOLD]
    plain = estimates.select(*keys, "precision")
    table = adjusted.join(plain, on=keys, how="left", nulls_equal=True, maintain_order="left")
    series = (
        Series("precision", "Without adjustment", "neutral"),
        with_limits(table, Series("precision_adjusted", "Adjusted for strata", "precision")),
    )
    words = "Adjusted, the false positive rate is taken in every stratum apart, as the strata lie after the event."
    title = "Precision adjusted for strata"
    return _beside(rising(table), series, confidence, name="adjusted_precision", title=title, words=words)


def _uncorrected(estimates: pl.DataFrame, ratio: str, confidence: float) -> Figure | None:
    difference = (estimates[ratio] - estimates[f"{ratio}_uncorrected"]).abs().max()
    if not isinstance(difference, float) or difference < VISIBLE:
        return None
    series = (
        Series(f"{ratio}_uncorrected", "Uncorrected", "neutral"),
        with_limits(estimates, Series(ratio, "Corrected", "precision" if ratio == "precision" else "recall")),
    )
    words = (
        "Uncorrected, the false positives are those of all pairs after the event, although some of them are true "
        "matches; corrected, only of the pairs that are not."
    )
    title = f"{ratio.capitalize()} with and without correction"
    return _beside(estimates, series, confidence, name=f"uncorrected_{ratio}", title=title, words=words)


def _realised(estimates: pl.DataFrame, confidence: float) -> Figure | None:
    if not estimates["precision_realised_lower"].is_not_null().any():
        return None
    series = (
        with_limits(estimates, Series("precision", "Of new events", "estimate")),
        with_limits(estimates, Series("precision", "Of this data set", "precision"), "precision_realised"),
    )
    words = "One estimate with two intervals: the precision to expect of new events, and that of this data set."
    title = "Precision of this data set and of new events"
    return _beside(estimates, series, confidence, name="realised_precision", title=title, words=words)


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the first criterion, or at the recall reference if that chose none."""
    return key_numbers_of(on_other_data(_best_rows(tables["before_after_operating_points"])), NUMBERS)


def _best_rows(points: pl.DataFrame) -> pl.DataFrame:
    """The operating point of every group that the summary speaks of, groups with most matches first."""
    chosen = points.filter(pl.col("criterion") != "recall_reference")
    best = chosen.filter(pl.col("criterion") == chosen["criterion"][0]) if not chosen.is_empty() else points
    return best.sort("m_after", descending=True, nulls_last=True)
