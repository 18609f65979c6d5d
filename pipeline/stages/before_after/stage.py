"""The stage before_after: from counts to estimates and chosen thresholds, and what people read and see of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ...base.columns import REPLICATE, SECOND_REPLICATE, THRESHOLD, at_or_above, lowest_retrieved
from ...base.errors import DataError
from ...base.schemas import GROUPING, TOTAL
from ...base.visible_text import listed, of_every
from ...metrics.before_after import estimates as estimator
from ...metrics.before_after import sensitivity
from ...metrics.before_after.estimates import references_of, with_estimates
from ...metrics.before_after.formulas import LIMITED, SHOWN, STATED, steps
from ...metrics.before_after.sensitivity import with_bands
from ...metrics.curves.operating_points import COST, cost_columns, pick
from ...metrics.uncertainty.clusters import SHORTEST_SPAN, Cycle
from ...metrics.uncertainty.limits import warnings_of_marks, with_numbers, with_quality
from ...metrics.uncertainty.replicates import Cube
from .. import sections
from ..figures import (
    CHOICE,
    GAP,
    SAME_DATA,
    Axis,
    Figure,
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
    words_of_choice,
)
from ..parameters import EVERYTHING
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section, Sheet
from ..stage import (
    WITHOUT,
    Counted,
    Labelled,
    SampleSizes,
    Stage,
    Summary,
    UnitTable,
    by_influence,
    f1_curve,
    integer,
    interval_cells,
    number,
    summary_of,
)
from . import assumption, groups, inputs, labels, planning
from .assumption import X_TITLE
from .contract import (
    ARTICLES,
    AUDITED,
    COUNT_NAMES,
    COUNT_TABLE,
    EVENTS,
    GOLD,
    GOLD_ARTICLES,
    PAIRS,
    TABLES,
    BeforeAfterParameters,
    further_columns,
)
from .groups import CROSSED, MOST_REPLICATES, with_design_effects, with_intervals, with_safe_limits
from .inputs import PAIR, TABLE_OF_EVENTS, USED_PAIRS
from .labels import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.uncertainty.limits import Quality
    from ..figures import KeyNumber
    from ..sections import Asked, Measured


ESTIMATES_TABLE, POINTS = "before_after_estimates", "before_after_operating_points"


# From counts to numbers.


def derive(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Estimates at every threshold, the chosen operating points, and the tables that rest on them."""
    keys = [name for name in counts["counts"].columns if name not in {THRESHOLD, REPLICATE, *COUNT_NAMES}]
    reference = params.recall_reference
    # matches at or above every threshold, and compared pairs, before and after the event
    cube = cube_of(params, counts, keys)
    _check_matches(cube)
    swept = cube.curve(["m_before", "m_after"], ["n_before", "n_after"])
    # the page of formulas in every row
    curve = estimator.estimates(
        swept,
        keys,
        rule=reference.rule,
        min_precision=reference.min_precision,
        threshold=reference.threshold,
        reference_recall=reference.middle,
    )
    # limits from what the numbers are without each replicate
    parents_of_pairs = groups.clusters(cube, params)
    parents = groups.with_correlated_days(parents_of_pairs, curve, cube)
    curve = with_intervals(curve, cube, params, parents)
    # the thresholds that are chosen, and how much rests on the recall reference
    points = _operating_points(curve, cube, params, parents)
    first = points.filter(pl.col("criterion") == params.operating_points[0].text).select(*keys, THRESHOLD)
    sensitive = sensitivity.over_references(swept, keys, first, reference.min_precision, reference.middle)
    others = dict(_optional_tables(params, counts, curve, cube, parents_of_pairs))
    tables = {ESTIMATES_TABLE: curve, POINTS: points, "before_after_sensitivity": sensitive, **others}
    return assumption.with_marks(tables)


def cube_of(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> Cube:
    """The counts of pairs, by both of their parents where they have two."""
    parent = next((parent for parent, names in CROSSED.items() if names[0] in counts), None)
    crossed = [] if parent is None else [counts[name] for name in CROSSED[parent]]
    cube = Cube.of(counts["counts"], keys, params.threshold_values, params.boundary, crossed)
    if parent != "day":
        return cube
    days = 0.0 if params.window is None else params.window.before / assumption.HOURS
    return replace(cube, cycle=Cycle(MOST_REPLICATES, max(days, SHORTEST_SPAN)))


def _check_matches(cube: Cube) -> None:
    """More matches than compared pairs cannot be: then the given numbers do not describe these pairs."""
    totals = cube.totals(COUNT_NAMES)
    for side in ("before", "after"):
        odd = totals.filter(pl.col(f"m_{side}") > pl.col(f"n_{side}")).sort(cube.keys)
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"n_{side} adds up to {row[f'n_{side}']:,}, but pairs has {row[f'm_{side}']:,} rows {side} the event "
                f"({row[GROUPING.name]})"
            )
            remedy = (
                f"Given in events, n_{side} must count every compared pair of the same window, matched or not; counted "
                "from the times of events and articles, articles must hold every article that was compared."
            )
            raise DataError(message, remedy=remedy)


def _operating_points(
    curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters, parents: pl.DataFrame
) -> pl.DataFrame:
    """The thresholds that the criteria choose and the recall reference, with bands over κ and the clusters behind them.

    Args:
        curve: Estimates, one row per group × threshold.
        cube: The counts that they rest on.
        params: The parameters of the stage.
        parents: `groups.clusters` of the groups.
    """
    keys, recall, wanted = list(cube.keys), params.recall_reference.middle, params.is_replicated
    safe = with_safe_limits(curve, cube, params)
    chosen = [
        estimator.operating_point(safe, keys, criterion, recall, params.boundary)
        for criterion in params.operating_points
    ]
    working = set(safe.columns) - set(curve.columns)
    working |= set() if cost_columns(params.operating_points) else {COST}
    points = [rows.drop(working) for rows in chosen]
    is_reference, is_given = pl.col("is_reference"), params.recall_reference.rule == "fixed"
    at_reference = pick(
        curve, keys, criterion="recall_reference", among=is_reference, best=pl.col(THRESHOLD), is_given=is_given
    )
    every = pl.concat([*points, at_reference], how="diagonal")
    with_kappas = sensitivity.with_kappas(every, curve, keys, recall)
    banded = with_bands(with_kappas, curve, keys, recall)
    return with_design_effects(with_numbers(banded, parents, keys, wanted=wanted), cube, wanted=wanted)


def _optional_tables(
    params: BeforeAfterParameters,
    counts: Mapping[str, pl.DataFrame],
    curve: pl.DataFrame,
    cube: Cube,
    parents: pl.DataFrame,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Tables of what the config asks for and the inputs have, by name; `parents` are `groups.clusters` of the cube."""
    keys = list(cube.keys)
    if "gold" in counts:
        yield "before_after_gold", labels.gold_table(curve, counts, cube, params)
    if params.lag_thresholds:
        yield "before_after_lags", _lags(params, counts, keys)
    if curve.is_empty():
        return
    if params.uncertainty != "none":
        tested = assumption.placebo_table(curve, cube, params)
        events = ("m_far", "m_near")
        yield assumption.PLACEBO, with_quality(tested, ["log_rate_ratio"], clusters=parents, keys=keys, events=events)
    if groups.COUNTED_BY_STRATUM in counts:
        yield groups.ADJUSTED_TABLE, groups.adjusted_table(curve, counts, cube, params)
    if params.lag_thresholds:
        slopes = assumption.trend_table(params, counts, keys)
        is_crossed = SECOND_REPLICATE in counts["lags"].columns
        of_days = parents if is_crossed else groups.clusters(cube, params, crossed=False)
        yield assumption.TREND, with_quality(slopes, ["slope"], clusters=of_days, keys=keys, events=("matches",))
    if "audit" in counts:
        yield labels.AUDIT_TABLE, labels.audit_table(curve, counts, cube, params)


def _lags(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Matches at or above each lag threshold, by day; days without any match have no row."""
    order = [*keys, THRESHOLD, "lag_days"]
    swept = at_or_above(counts["lags"], [*keys, "lag_days"], ["matches"], params.lag_thresholds)
    return swept.filter(pl.col("matches") > 0).select(*order, "matches")


# Warnings and the summary.


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    total = tables[ESTIMATES_TABLE].filter(pl.col(GROUPING.name) == "all")
    messages: list[str] = []
    if not total.is_empty():
        doubtful = (inputs.one_sided(total), inputs.strictest_precision(total), assumption.doubtful(tables))
        messages += (words for words in doubtful if words is not None)
    messages += groups.warnings(tables)
    of_others: tuple[Quality, ...] = ("assumption_failed", "one_parent", "correlated_days")  # who tell of them
    messages += warnings_of_marks(tables, without=of_others)
    messages += assumption.warnings(tables)
    messages += labels.contradictions(tables)
    return tuple(messages)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The best threshold of every group, and the curve of F1 over the thresholds of the first one."""
    curve, points = tables[ESTIMATES_TABLE], tables[POINTS]
    if points.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any event or pair.")
    rows = on_other_data(_best_rows(points)).sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    verdicts = [words for words in (assumption.verdict_on_reference(tables), assumption.verdict(tables)) if words]
    return summary_of(
        rows,
        {
            "threshold": lambda row: number(row[THRESHOLD]),
            **interval_cells({"precision": "precision", "recall": "recall", "F1": "f1"}),
            "matches after": lambda row: integer(row["m_after"]),
        },
        lambda row: " ".join((_sentence(row), *verdicts)),
        f1_curve(curve, rows.head(1).select(keys_of(points))),
        on_same_data=bool((rows[CHOICE] == SAME_DATA).any()),
    )


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "No threshold has both a precision and a recall."
    return (
        f"Keeping scores of {number(row['threshold'])} or more, about {of_every(precision)} kept matches are right, "
        f"and about {of_every(recall)} true matches are kept{words_of_choice(row)}."
    )


def _best_rows(points: pl.DataFrame) -> pl.DataFrame:
    """The operating point of every group that the summary speaks of, groups with most matches first."""
    chosen = points.filter(pl.col("criterion") != "recall_reference")
    best = chosen.filter(pl.col("criterion") == chosen["criterion"][0]) if not chosen.is_empty() else points
    return best.sort("m_after", descending=True, nulls_last=True)


# What a methods section says of before_after.


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
    yield sections.left_out(measured, NOUNS)
    yield _window(measured.parameters["window"])
    yield COMPARED[measured.facts["compared"]]
    yield (
        f"A pair is a match if its score is {sections.at_or_above(measured)} a threshold; estimates were made "
        f"{sections.thresholds(measured)}."
    )
    yield sections.invalid_scores(measured, "Pairs")
    yield _reference(measured.parameters["recall_reference"])
    units = sections.units_in_words(measured, UNITS)
    parents = " over both (Cameron, Gelbach and Miller 2011)" if " and " in measured.facts["independent"] else ""
    yield sections.intervals(measured, units, CLOSED_FORMS.format(units=units, parents=parents))
    yield sections.criteria(measured)
    points = measured.tables[POINTS]
    chosen = points.filter(pl.col("criterion") != "recall_reference")
    rows = sections.of_first_criterion(points if chosen.is_empty() else chosen)
    yield from sections.results(rows, sections.RATIO_NAMES, measured.confidence, sections.CHOSEN)
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
SAMPLE_SIZES = SampleSizes(
    nouns={"event_id": "events", "day": "days", "article_id": "articles"},
    inputs={"event_id": "events"},
    counts=(
        Counted("compared pairs", ("n_before", "n_after")),
        Counted(_AFTER, ("m_after",)),
        Counted(_BEFORE, ("m_before",)),
    ),
    rests_on={each.name: _AFTER if each.rests_on == "after" else _BEFORE for each in LIMITED},
    scales={each.name: each.scale for each in LIMITED if each.scale},
    bounds={each.name: (0.0, 1.0) for each in LIMITED if each.scale != "log"},
    clusters=POINTS,
    labelled=Labelled(
        "precision_audited", "before_after_audit", "n_audited", "n_right", population="m_after", estimate="precision"
    ),
)


# Where the numbers of before_after come from: certain false positives, pairs near the threshold, events.


_COUNTS = ("n_before", "n_after", "m_before", "m_after")
_MAIN = ("precision", "recall", "f1")  # what is explained first


def _values(asked: Asked) -> dict[str, float]:
    bounds = EVERYTHING if asked.params.window is None else asked.params.window.bounds()
    threshold = -math.inf if asked.threshold is None else asked.threshold
    reference = _row_of_reference(asked)
    at_reference = math.inf if reference is None else lowest_retrieved(reference[THRESHOLD], asked.params.boundary)
    scores = {"lowest_score": asked.lowest_score, "reference_score": at_reference}
    return {**bounds, **scores, "threshold": threshold}


def _row_of_reference(asked: Asked) -> dict[str, Any] | None:
    """The row of the recall reference of the group; None: it has none."""
    rows = _of_group(asked.tables[ESTIMATES_TABLE], asked).filter("is_reference")
    return None if rows.is_empty() else rows.row(0, named=True)


def _quantities(asked: Asked) -> dict[str, float]:
    """The recall reference of the group: true positives and false positive rate there, and recall."""
    row = _row_of_reference(asked)
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
    keys, reference = ["event_id"], _row_of_reference(asked)
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
        Measure(each.name, ESTIMATES_TABLE, (steps(each.name),))
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
    points=POINTS,
    values=_values,
    quantities=_quantities,
    decides=("window", "compared", "boundary", "recall_reference", "invalid_scores", "duplicates", "cluster"),
)


# Figures of the estimates, and numbers at chosen thresholds.


VISIBLE = 0.02  # a difference between two ratios that can be seen in a figure
NUMBERS = (
    Wanted("precision", "Precision", "kept matches that are right", "precision"),
    Wanted("recall", "Recall", "true matches that are kept", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """The estimates, what other methods and labels make of them, and what their assumption rests on."""
    estimates, points = rising(tables[ESTIMATES_TABLE]), tables[POINTS]
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
    yield from assumption.figures_by_day(tables.get("before_after_lags"))
    yield assumption.figure_of_placebo(tables.get("before_after_placebo"), confidence)
    yield assumption.figure_of_trend(tables.get("before_after_trend"), confidence)
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
    return key_numbers_of(on_other_data(_best_rows(tables[POINTS])), NUMBERS)


# The stage before_after, put together.


STAGE = Stage(
    kind="before_after",
    parameters=BeforeAfterParameters,
    inputs=(PAIRS, EVENTS, ARTICLES, GOLD, GOLD_ARTICLES, AUDITED),
    tables=TABLES,
    count_columns=COUNT_TABLE,
    plan=planning.plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("before_after_events", "event_id", grouped=False, has_clusters=True),
)
