"""The stage before_after: what follows from its counts, and the stage put together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from ...errors import DataError
from ...metrics.before_after import estimates as estimator
from ...metrics.before_after import sensitivity
from ...metrics.before_after.formulas import LIMITED
from ...metrics.before_after.sensitivity import with_bands
from ...metrics.curves.operating_points import COST, cost_column, pick
from ...metrics.uncertainty.clusters import SHORTEST_SPAN, Cycle
from ...metrics.uncertainty.cube import Cube
from ...metrics.uncertainty.limits import warnings_of_marks, with_numbers, with_quality
from ...tables.columns import REPLICATE, THRESHOLD, at_or_above
from ...tables.schemas import GROUPING, TOTAL, group_text
from ...visible_text import listed, of_every
from .. import sections
from ..figures import CHOICE, SAME_DATA, on_other_data, words_of_choice
from ..stage import (
    Counted,
    Labelled,
    SampleSizes,
    Stage,
    Summary,
    UnitTable,
    f1_curve,
    integer,
    interval,
    number,
    of_group,
)
from . import assumption, figures, groups, inputs, labels, planning
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
from .figures import EVIDENCE
from .groups import CROSSED, MOST_REPLICATES, with_design_effects, with_intervals, with_safe_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.uncertainty.interval_quality import Quality
    from ..sections import Measured


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
    points = measured.tables["before_after_operating_points"]
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
    clusters="before_after_operating_points",
    labelled=Labelled(
        "precision_audited", "before_after_audit", "n_audited", "n_right", population="m_after", estimate="precision"
    ),
)


# What follows from the counts of before_after: tables, warnings and the summary.


def derive(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Estimates at every threshold, the chosen operating points, and matches per day."""
    keys = [name for name in counts["counts"].columns if name not in {THRESHOLD, REPLICATE, *COUNT_NAMES}]
    cube = cube_of(params, counts, keys)
    frame = cube.curve(["m_before", "m_after"], ["n_before", "n_after"])
    _check_matches(cube)
    recall = params.recall_reference.middle
    curve = estimator.estimates(
        frame,
        keys,
        rule=params.recall_reference.rule,
        min_precision=params.recall_reference.min_precision,
        threshold=params.recall_reference.threshold,
        reference_recall=recall,
    )
    parents_of_pairs = groups.clusters(cube, params)
    parents = groups.with_correlated_days(parents_of_pairs, curve, cube)
    curve = with_intervals(curve, cube, params, parents)
    points = _operating_points(curve, cube, params, parents)
    first = points.filter(pl.col("criterion") == params.operating_points[0].text).select(*keys, THRESHOLD)
    sensitive = sensitivity.over_references(frame, keys, first, params.recall_reference.min_precision, recall)
    return assumption.with_marks(
        {
            "before_after_estimates": curve,
            "before_after_operating_points": points,
            "before_after_sensitivity": sensitive,
            **dict(_optional_tables(params, counts, curve, cube, parents_of_pairs)),
        }
    )


def cube_of(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> Cube:
    """The counts of pairs, by both of their parents where they have two."""
    parent = next((parent for parent, names in CROSSED.items() if names[0] in counts), None)
    crossed = [] if parent is None else [counts[name] for name in CROSSED[parent]]
    cube = Cube.of(counts["counts"], keys, params.threshold_values, params.boundary, crossed)
    if parent != "day":
        return cube
    days = 0.0 if params.window is None else params.window.before / assumption.HOURS
    return replace(cube, cycle=Cycle(MOST_REPLICATES, max(days, SHORTEST_SPAN)))


def _operating_points(
    curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters, parents: pl.DataFrame
) -> pl.DataFrame:
    """The thresholds that the criteria choose and the recall reference, with bands over κ and the clusters behind them.

    Args:
        curve: Estimates, one row per group × threshold.
        cube: The counts that they rest on.
        params: The parameters of the stage.
        parents: `marks.clusters` of the groups.
    """
    keys, recall, wanted = list(cube.keys), params.recall_reference.middle, params.is_replicated
    safe = with_safe_limits(curve, cube, params)
    chosen = [
        estimator.operating_point(safe, keys, criterion, recall, params.boundary)
        for criterion in params.operating_points
    ]
    working = set(safe.columns) - set(curve.columns)
    working |= set() if cost_column(params.operating_points) else {COST}
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
    """Tables of what the config asks for and the inputs have, by name; `parents` are `marks.clusters` of the cube."""
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
    if groups.COUNTED in counts:
        yield groups.ADJUSTED_TABLE, groups.adjusted_table(curve, counts, cube, params)
    if params.lag_thresholds:
        slopes = assumption.trend_table(params, counts, keys)
        of_days = parents if assumption.is_crossed(counts) else groups.clusters(cube, params, crossed=False)
        yield assumption.TREND, with_quality(slopes, ["slope"], clusters=of_days, keys=keys, events=("matches",))
    if "audit" in counts:
        yield labels.AUDIT_TABLE, labels.audit_table(curve, counts, cube, params)


def _lags(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Matches at or above each lag threshold, by day; days without any match have no row."""
    order = [*keys, THRESHOLD, "lag_days"]
    swept = at_or_above(counts["lags"], [*keys, "lag_days"], ["matches"], params.lag_thresholds)
    return swept.filter(pl.col("matches") > 0).select(*order, "matches")


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    total = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all")
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


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The best threshold of every group, and the curve of F1 over the thresholds of the first one."""
    curve, points = tables["before_after_estimates"], tables["before_after_operating_points"]
    if points.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any event or pair.")
    best = points.filter(pl.col("criterion") != "recall_reference")
    best = best.filter(pl.col("criterion") == best["criterion"][0]) if not best.is_empty() else points
    names = best.columns[2 : best.columns.index("criterion")]
    shown = (
        on_other_data(best)
        .sort("m_after", descending=True, nulls_last=True)
        .sort(pl.col(GROUPING.name) != "all", maintain_order=True)
    )
    cells = tuple(
        (
            group_text(row),
            number(row["threshold"]),
            interval(row, "precision"),
            interval(row, "recall"),
            interval(row, "f1"),
            integer(row["m_after"]),
        )
        for row in shown.iter_rows(named=True)
    )
    first_row = shown.row(0, named=True)
    keys = [GROUPING.name, *names]
    values, title = f1_curve(curve, shown.head(1).select(keys))
    return Summary(
        headers=("group", "threshold", "precision", "recall", "F1", "matches after"),
        rows=cells,
        groupings=tuple(shown[GROUPING.name]),
        sentence=" ".join(
            sentence
            for sentence in (
                of_group(first_row, _sentence(first_row)),
                assumption.verdict_on_reference(tables),
                assumption.verdict(tables),
            )
            if sentence
        ),
        curve=values,
        curve_title=title,
        on_same_data=bool((shown[CHOICE] == SAME_DATA).any()),
    )


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "No threshold has both a precision and a recall."
    return (
        f"Keeping scores of {number(row['threshold'])} or more, about {of_every(precision)} kept matches are right, "
        f"and about {of_every(recall)} true matches are kept{words_of_choice(row)}."
    )


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
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("before_after_events", "event_id", grouped=False, has_clusters=True),
)
