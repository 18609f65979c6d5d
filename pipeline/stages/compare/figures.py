"""What there is to look at of compare: means of systems, differences of pairs, margins and posteriors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, MEANINGS
from ...tables.groupings import TOTAL, group_text
from ...tables.schemas import GROUPING
from ..figures import (
    RATIO_NAMES,
    RATIO_ROLES,
    Axis,
    Figure,
    KeyNumber,
    Rule,
    Series,
    caption,
    drawn,
    intervals,
    keys_of,
    level,
    shares,
    shown,
    with_limits,
)
from ..stage import number
from .rows import POOLED
from .summary import MAIN, claims_of_pairs, different_units, largest_gaps, one_test_a_pair, strongest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..figures import Format


# Rows of the figures of compare: pairs and systems by name, metrics side by side.


SYSTEM, PAIR, SYSTEMS = "system", "pair", ("system_a", "system_b")
PAIR_TITLE = "Pair of systems"


def names_of_metrics(metrics: list[str]) -> dict[str, str]:
    """Give every metric a name for figures, of lower-case letters, digits and `_`, that no two of them share.

    Args:
        metrics: The metrics as users name them; `pooled` is the name of the figures of all pooled ratios.
    """
    names: dict[str, str] = {}
    taken = {"", "pooled"}
    for metric in metrics:
        plain = re.sub(r"[^a-z0-9]+", "_", metric.lower()).strip("_")
        candidates = (plain, *(f"{plain}_{number}".strip("_") for number in range(1, len(metrics) + 2)))
        names[metric] = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(names[metric])
    return names


def pair_text() -> pl.Expr:
    """The pair of systems as text."""
    return pl.concat_str((text_of(name, name) for name in SYSTEMS), separator=" − ").alias(PAIR)


def by_system(table: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    """One row per group, metric and system; where its values differ by the system beside it, one for each of these.

    Args:
        table: One row per group, metric and pair.
        values: Columns of the first system without the `_a` in them; `interval_quality` is kept.
    """
    keys = [*keys_of(table), "metric"]
    sides = []
    for side, beside in (("a", "b"), ("b", "a")):
        names = (text_of(f"system_{side}", SYSTEM), text_of(f"system_{beside}", "beside"))
        of_side = (pl.col(name.replace("mean", f"mean_{side}")).alias(name) for name in values)
        sides.append(table.select(*keys, *names, *of_side, INTERVAL_QUALITY))
    systems = pl.concat(sides).unique([*keys, SYSTEM, *values], keep="first", maintain_order=True)
    systems = systems.with_columns(pl.len().over(*keys, SYSTEM).alias("n_values"))
    differ = pl.col("n_values").max().over(keys_of(table), SYSTEM) > 1
    named = pl.when(differ).then(pl.concat_str(SYSTEM, pl.lit(" (beside "), "beside", pl.lit(")"))).otherwise(SYSTEM)
    return systems.with_columns(named.alias(SYSTEM)).sort([*keys, SYSTEM]).drop("beside", "n_values")


def text_of(column: str, name: str) -> pl.Expr:
    """A column of systems as text, NULL as `null`."""
    return pl.col(column).cast(pl.String).fill_null("null").alias(name)


def wide(table: pl.DataFrame, at: str, column: str) -> pl.DataFrame:
    """One row per group and name on the horizontal axis, with a column for each pooled metric, its limits beside it.

    Args:
        table: One row per group, metric and name; `interval_quality` becomes the worst of the metrics.
        at: The column of the names.
        column: The column of the values; its limits, if it has any, are beside it.
    """
    present = [metric for metric in POOLED if metric in set(table["metric"])]
    ends = [end for end in ("", "_lower", "_upper") if f"{column}{end}" in table.columns]
    values = [
        pl.col(f"{column}{end}").filter(pl.col("metric") == metric).first().alias(f"{metric}{end}")
        for metric in present
        for end in ends
    ]
    qualities = list(MEANINGS)
    rank = pl.col(INTERVAL_QUALITY).replace_strict(qualities, range(len(qualities)), return_dtype=pl.Int64)
    worst = rank.min().replace_strict(range(len(qualities)), qualities, return_dtype=pl.String)
    return table.group_by([*keys_of(table), at], maintain_order=True).agg(*values, worst.alias(INTERVAL_QUALITY))


def pooled_series(table: pl.DataFrame) -> tuple[Series, ...]:
    """The pooled metrics that a wide table has, precision last."""
    present = (name for name in RATIO_ROLES if f"pooled_{name}" in table.columns)
    points = (Series(f"pooled_{name}", RATIO_NAMES[name], RATIO_ROLES[name], "point") for name in present)
    return tuple(with_limits(table, point) for point in points)


# Figures of compare for ratios of systems with different units, and for claims within a margin.


_READING = (
    "Bars are {level} intervals. A bar within the band shows that both are equivalent; one that stays above its lower "
    "end, that the first is not lower by the margin; one that stays below its upper end, that the first is not higher "
    "by it. Unlike the claims in the table they are not adjusted for the number of pairs. A bar that reaches beyond "
    "the band is no proof of a difference."
)


def ratio_figures(tests: pl.DataFrame, confidence: float) -> Iterator[Figure]:
    """Ratios of every pair by metric, where systems have different units.

    Args:
        tests: One row per group, pair and metric, of one test.
        confidence: The level of their intervals.
    """
    if different_units(tests).is_empty():
        return
    named = tests.with_columns(pair_text()).sort(*keys_of(tests), *SYSTEMS, nulls_last=True)
    metrics = [metric for metric in named["metric"].unique(maintain_order=True) if metric not in POOLED]
    for metric, name in names_of_metrics(metrics).items():
        table = named.filter(pl.col("metric") == metric)
        series = (with_limits(table, Series("ratio", f"Ratio of {metric}", "estimate", "point")),)
        yield _ratios(table, series, name, metric, confidence)
    pooled = named.filter(pl.col("metric").is_in(POOLED))
    if not pooled.is_empty():
        table = wide(pooled, PAIR, "ratio")
        yield _ratios(table, pooled_series(table), "pooled", "precision, recall and F1", confidence)


def _ratios(table: pl.DataFrame, series: tuple[Series, ...], name: str, what: str, confidence: float) -> Figure:
    limits = intervals(series, confidence)
    words = f"The system that is named first over the other one, each on units of its own: ratio of {what}."
    return Figure(
        name=f"ratios_{name}",
        title=f"Ratios of {what}",
        caption=caption(words, limits, "They are not adjusted for the number of pairs." if limits else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=Axis("", f"Ratio of {what}", includes=(1.0,)),
        series=series,
        rules=(Rule("Equal", 1.0, "y"),),
    )


def margin_figures(margins: pl.DataFrame) -> Iterator[Figure]:
    """Differences of every pair beside the margin, by metric.

    Args:
        margins: The rows of one test of every pair, metric and claim of every group.
    """
    of_pairs = margins.filter(pl.col("claim") == "equivalent").with_columns(pair_text())
    for metric, name in names_of_metrics(of_pairs["metric"].unique(maintain_order=True).to_list()).items():
        table = of_pairs.filter(pl.col("metric") == metric).sort(*keys_of(of_pairs), *SYSTEMS, nulls_last=True)
        yield _margin(table, metric, name)


def _margin(table: pl.DataFrame, metric: str, name: str) -> Figure:
    margin, confidence = table["margin"][0], table["interval_confidence"][0]
    point = Series("difference", f"Difference in {metric}", "estimate", "point")
    series = (with_limits(table, point, "interval"),)
    words = (
        f"The system that is named first minus the other one, in {metric}. The grey band is the margin, "
        f"{number(margin)} to both sides."
    )
    reading = "" if confidence is None else _READING.format(level=level(confidence))
    return Figure(
        name=f"margins_{name}",
        title=f"Differences in {metric} and the margin",
        caption=caption(words, reading if series[0].lower else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=Axis("", f"Difference in {metric}", "percent" if metric in POOLED else "number", includes=(0.0,)),
        series=series,
        rules=(Rule("No difference", 0.0, "y"), Rule("Margin", -margin, "y", until=margin)),
    )


# What there is to look at of compare: means of the systems, differences of pairs, and posteriors.


LEVEL = 0.05  # of the tests, as in the sentence of the summary
MOST_DIFFERENCES = 3
_OVERLAP = " Systems whose bars overlap can still differ, as all have the same units."


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Differences of every pair and means of every system by metric, and posteriors.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    tests, posteriors = one_test_a_pair(tables["compare_tests"]), tables.get("compare_posteriors")
    metrics = [metric for metric in tests["metric"].unique(maintain_order=True) if metric not in POOLED]
    for metric, name in names_of_metrics(metrics).items():
        of_metric = tests.filter(pl.col("metric") == metric)
        yield _means(of_metric, metric, name)
        yield _differences(of_metric, metric, name, confidence)
    pooled = tests.filter(pl.col("metric").is_in(POOLED))
    if posteriors is not None and not posteriors.is_empty():
        yield _pooled_means(posteriors, confidence)
        yield _pooled_differences(pooled, confidence)
        yield _probabilities(posteriors)
    elif not pooled.is_empty():
        yield _pooled_means(pooled, confidence)
        yield _pooled_differences(pooled, confidence)
    yield from ratio_figures(tests, confidence)
    if "compare_margins" in tables:
        yield from margin_figures(one_test_a_pair(tables["compare_margins"]))


def _means(tests: pl.DataFrame, metric: str, name: str) -> Figure:
    series = (Series("mean", metric, "estimate", "point"),)
    return Figure(
        name=f"means_{name}",
        title=f"{metric} of every system",
        caption="For every system the mean over units. Whether two differ is what the figure of differences shows.",
        frame=drawn(by_system(tests, ["mean"]), SYSTEM, series),
        x=Axis(SYSTEM, "System", "category"),
        y=Axis("", f"{metric}, mean over units"),
        series=series,
    )


def _pooled_means(table: pl.DataFrame, confidence: float) -> Figure:
    """Pooled ratios of the systems: posterior means with limits from a table that has these."""
    values = [name for name in ("mean", "mean_lower", "mean_upper") if name.replace("mean", "mean_a") in table.columns]
    frame = wide(by_system(table, values), SYSTEM, "mean")
    series = pooled_series(frame)
    words = (
        f"For every system the ratio of the counts of all units: its posterior mean, and bars that hold it with a "
        f"probability of {level(confidence)}.{_OVERLAP if different_units(table).is_empty() else ''}"
        if "mean_lower" in values
        else "For every system the ratio of the counts of all units."
    )
    return Figure(
        name="means_pooled",
        title="Precision, recall and F1 of every system",
        caption=words,
        frame=drawn(frame, SYSTEM, series),
        x=Axis(SYSTEM, "System", "category"),
        y=Axis("", "Precision, recall, F1 of all units together", "percent"),
        series=series,
    )


def _differences(tests: pl.DataFrame, metric: str, name: str, confidence: float) -> Figure:
    table = tests.with_columns(pair_text()).sort(*keys_of(tests), *SYSTEMS, nulls_last=True)
    series = (with_limits(table, Series("difference", f"Difference in {metric}", "estimate", "point")),)
    axis, differs = Axis("", f"Difference in {metric}"), not different_units(tests).is_empty()
    return _of_pairs(table, series, f"differences_{name}", metric, axis, confidence, differs=differs)


def _pooled_differences(tests: pl.DataFrame, confidence: float) -> Figure:
    table = wide(tests.with_columns(pair_text()).sort(*keys_of(tests), *SYSTEMS, nulls_last=True), PAIR, "difference")
    series, what = pooled_series(table), "precision, recall and F1"
    axis = Axis("", "Difference in precision, recall, F1 of all units together", "percent")
    differs = not different_units(tests).is_empty()
    return _of_pairs(table, series, "differences_pooled", what, axis, confidence, differs=differs)


def _of_pairs(
    table: pl.DataFrame, series: tuple[Series, ...], name: str, what: str, y: Axis, confidence: float, *, differs: bool
) -> Figure:
    units = "each on units of its own" if differs else "on the same units"
    words = f"The system that is named first minus the other one, {units}: difference in {what}."
    limits = intervals(series, confidence)
    return Figure(
        name=name,
        title=f"Differences in {what}",
        caption=caption(words, limits, "They are not adjusted for the number of pairs." if limits else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=replace(y, includes=(0.0,)),
        series=series,
        rules=(Rule("No difference", 0.0, "y"),),
    )


def _probabilities(posteriors: pl.DataFrame) -> Figure:
    table = wide(posteriors.with_columns(pair_text()), PAIR, "probability_a_better")
    series = pooled_series(table)
    return Figure(
        name="probabilities",
        title="Probability that the first system of a pair is better",
        caption=(
            "Posterior probability that the system that is named first has the higher ratio of all counts, the two "
            "taken as independent: 50% where the data do not tell."
        ),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=shares("Probability"),
        series=series,
        rules=(Rule("Undecided", 0.5, "y"),),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """How many comparisons differ, and the differences of up to three pairs in the main metric, of every group.

    The main metric is pooled F1 if it is there, else the first of the table; the pairs are the first of the table.
    Where nothing was tested, posterior probabilities stand for the differences.
    """
    tests, posteriors = one_test_a_pair(tables["compare_tests"]), tables.get("compare_posteriors")
    if tests.is_empty() and posteriors is not None:
        return tuple(number for group in _groups(posteriors) for number in _probable(group))
    margins = tables.get("compare_margins")
    claims = () if margins is None else tuple(number for group in _groups(margins) for number in _claimed(group))
    return (*(number for group in _groups(tests) for number in _tested(group)), *claims)


def _groups(table: pl.DataFrame) -> list[pl.DataFrame]:
    ordered = table.sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    return ordered.partition_by(keys_of(table), maintain_order=True)


def _of_main_metric(table: pl.DataFrame) -> tuple[str, list[dict[str, Any]]]:
    """The main metric and the rows of its first pairs."""
    metrics = table["metric"].to_list()
    main = MAIN if MAIN in metrics else metrics[0]
    pairs = table.filter(pl.col("metric") == main).with_columns(pair_text())
    return main, pairs.head(MOST_DIFFERENCES).to_dicts()


def _tested(tests: pl.DataFrame) -> Iterator[KeyNumber]:
    grouping, group = tests[GROUPING.name][0], group_text(tests.row(0, named=True))
    clear = float(tests.filter(pl.col("p_adjusted") < LEVEL).height)
    meaning = f"of {tests.height:,} comparisons, at {LEVEL:.0%}"
    yield KeyNumber(grouping, group, "Clear differences", meaning, clear, format="integer")
    main, pairs = _of_main_metric(tests)
    form: Format = "percent" if main in POOLED else "number"
    for row in largest_gaps(tests):
        if row["metric"] == main:
            meaning = f"largest gap in {row['metric']} between systems"
            yield KeyNumber(
                grouping, group, "Largest gap", meaning, abs(row["difference"]), role="estimate", format=form
            )
    for row in pairs:
        value, limits = row["difference"], (row["difference_lower"], row["difference_upper"])
        quality = "" if limits == (None, None) else row[INTERVAL_QUALITY] or ""
        words = f"difference in {main}"
        yield KeyNumber(grouping, group, row[PAIR], words, value, *limits, quality, "estimate", form)


def _claimed(margins: pl.DataFrame) -> Iterator[KeyNumber]:
    """Of how many pairs and metrics of a group a claim within the margin holds."""
    grouping, group = margins[GROUPING.name][0], group_text(margins.row(0, named=True))
    pairs = claims_of_pairs(one_test_a_pair(margins)).values()
    shown = float(sum(strongest(claims) is not None for claims in pairs))
    meaning = f"of {len(pairs):,} comparisons: not worse, or equivalent"
    yield KeyNumber(grouping, group, "Within the margin", meaning, shown, format="integer")


def _probable(posteriors: pl.DataFrame) -> Iterator[KeyNumber]:
    grouping, group = posteriors[GROUPING.name][0], group_text(posteriors.row(0, named=True))
    main, pairs = _of_main_metric(posteriors)
    for row in pairs:
        words = f"probability of a higher {main}"
        yield KeyNumber(grouping, group, row[PAIR], words, row["probability_a_better"], role="estimate")
