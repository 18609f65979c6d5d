"""What there is to look at of compare: means of the systems, differences of pairs, and posteriors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.uncertainty.qualities import INTERVAL_QUALITY
from pipeline.stages.compare.contract import POOLED
from pipeline.stages.compare.results import one_test_a_pair
from pipeline.stages.figures import Axis, Figure, KeyNumber, Rule, Series
from pipeline.stages.stage import group_text
from pipeline.stages.standard_figures import (
    RATIO_NAMES,
    RATIO_ROLES,
    caption,
    drawn,
    intervals,
    keys_of,
    level,
    shares,
    shown,
    with_limits,
)
from pipeline.tables.groupings import TOTAL
from pipeline.tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.stages.figures import Role

SYSTEM, PAIR, SYSTEMS = "system", "pair", ("system_a", "system_b")
LEVEL = 0.05  # of the tests, as in the sentence of the summary
MOST_DIFFERENCES = 3
MAIN = "pooled_f1"
_PAIR_TITLE = "Pair of systems"


def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> tuple[Figure, ...]:
    """Differences of every pair and means of every system by metric, and posteriors.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    return shown(_figures(tables, confidence))


def _figures(tables: Mapping[str, pl.DataFrame], confidence: float) -> Iterator[Figure | None]:
    tests, posteriors = one_test_a_pair(tables["compare_tests"]), tables.get("compare_posteriors")
    posteriors = None if posteriors is None or posteriors.is_empty() else posteriors
    metrics = [] if posteriors is None else posteriors["metric"].to_list()
    for metric, name in names_of_metrics(list(dict.fromkeys([*tests["metric"], *metrics]))).items():
        is_metric = pl.col("metric") == metric
        if posteriors is not None and metric in metrics:
            yield _posterior_means(posteriors.filter(is_metric), metric, name, confidence)
        else:
            yield _means(tests.filter(is_metric), metric, name)
        yield _differences(tests.filter(is_metric), metric, name, confidence)
    if posteriors is not None:
        yield _probabilities(posteriors)


def names_of_metrics(metrics: list[str]) -> dict[str, str]:
    """Give every metric a name for figures, of lower-case letters, digits and `_`, that no two of them share."""
    names: dict[str, str] = {}
    for index, metric in enumerate(metrics, start=1):
        plain = re.sub(r"[^a-z0-9]+", "_", metric.lower()).strip("_")
        names[metric] = plain if plain and plain not in names.values() else f"{plain}_{index}".strip("_")
    return names


def _pair() -> pl.Expr:
    """The pair of systems as text."""
    texts = (pl.col(name).cast(pl.String).fill_null("null") for name in SYSTEMS)
    return pl.concat_str(texts, separator=" − ").alias(PAIR)


def _by_system(table: pl.DataFrame, values: Mapping[str, str]) -> pl.DataFrame:
    """One row per group and system; a system whose values differ by the system beside it has a row for each of these.

    Args:
        table: One row per group and pair.
        values: The columns of the first system, with the `_a` in them, by the names that they get.
    """
    keys = keys_of(table)
    sides = [
        table.select(
            *keys,
            pl.col(f"system_{side}").cast(pl.String).fill_null("null").alias(SYSTEM),
            pl.col(f"system_{beside}").cast(pl.String).fill_null("null").alias("beside"),
            *(pl.col(column.replace("_a", f"_{side}")).alias(name) for name, column in values.items()),
        )
        for side, beside in (("a", "b"), ("b", "a"))
    ]
    systems = pl.concat(sides).unique([*keys, SYSTEM, *values], keep="first", maintain_order=True)
    differ = pl.len().over(*keys, SYSTEM) > 1
    named = pl.when(differ).then(pl.concat_str(SYSTEM, pl.lit(" (beside "), "beside", pl.lit(")"))).otherwise(SYSTEM)
    return systems.with_columns(named.alias(SYSTEM)).sort([*keys, SYSTEM]).drop("beside")


def _means(tests: pl.DataFrame, metric: str, name: str) -> Figure:
    series = (Series("mean", metric, _role(metric), "point"),)
    table = _by_system(tests, {"mean": "mean_a"})
    counted = "the ratio of the counts of all units" if metric in POOLED else "the mean over units"
    words = f"For every system {counted}. Whether two systems differ is what the figure of their difference shows."
    return _of_systems(table, series, metric, name, words)


def _posterior_means(posteriors: pl.DataFrame, metric: str, name: str, confidence: float) -> Figure:
    columns = {"mean": "mean_a", "mean_lower": "mean_a_lower", "mean_upper": "mean_a_upper"}
    table = _by_system(posteriors, {**columns, INTERVAL_QUALITY: INTERVAL_QUALITY})
    series = (with_limits(table, Series("mean", metric, _role(metric), "point")),)
    words = (
        "For every system the posterior mean of the ratio of the counts of all units. "
        f"Bars hold it with a probability of {level(confidence)}. Systems whose bars overlap can still differ, as they "
        "are tested on the same units: see the figure of their difference."
    )
    return _of_systems(table, series, metric, name, words)


def _of_systems(table: pl.DataFrame, series: tuple[Series, ...], metric: str, name: str, words: str) -> Figure:
    return Figure(
        name=f"means_{name}",
        title=f"{metric} of every system",
        caption=words,
        frame=drawn(table, SYSTEM, series),
        x=Axis(SYSTEM, "System", "category"),
        y=shares(metric) if metric in POOLED else Axis("", metric),
        series=series,
    )


def _differences(tests: pl.DataFrame, metric: str, name: str, confidence: float) -> Figure:
    table = tests.with_columns(_pair()).sort(*keys_of(tests), *SYSTEMS)
    series = (with_limits(table, Series("difference", f"Difference in {metric}", "estimate", "point")),)
    words = f"{metric} of the system that is named first minus that of the other, on the same units."
    limits = intervals(series, confidence, "Bars")
    return Figure(
        name=f"differences_{name}",
        title=f"Differences in {metric}",
        caption=caption(words, limits, "They are not adjusted for the number of pairs." if limits else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, _PAIR_TITLE, "category"),
        y=Axis("", f"Difference in {metric}", includes=(0.0,)),
        series=series,
        rules=(Rule("No difference", 0.0, "y"),),
    )


def _role(metric: str) -> Role:
    return RATIO_ROLES.get(metric.removeprefix("pooled_"), "estimate")


def _probabilities(posteriors: pl.DataFrame) -> Figure:
    keys, is_metric = [*keys_of(posteriors), PAIR], {name: pl.col("metric") == name for name in POOLED}
    present = [name for name in POOLED if name in set(posteriors["metric"])]
    better = pl.col("probability_a_better")
    table = posteriors.with_columns(_pair()).group_by(keys, maintain_order=True)
    series = tuple(
        Series(name, RATIO_NAMES[name.removeprefix("pooled_")], _role(name), "point") for name in reversed(present)
    )
    return Figure(
        name="probabilities",
        title="Probability that the first system of a pair is better",
        caption=(
            "Posterior probability that the system that is named first has the higher ratio of all counts, "
            "the two taken as independent: 50% where the data do not tell."
        ),
        frame=drawn(table.agg(better.filter(is_metric[name]).first().alias(name) for name in present), PAIR, series),
        x=Axis(PAIR, _PAIR_TITLE, "category"),
        y=shares("Probability"),
        series=series,
        rules=(Rule("Undecided", 0.5, "y"),),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """How many comparisons differ, and the differences of up to three pairs in the main metric, of every group.

    The main metric is pooled F1 if it is there, else the first of the table; the pairs are the first of the table.
    """
    tests = one_test_a_pair(tables["compare_tests"])
    ordered = tests.sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    groups = ordered.partition_by(keys_of(tests), maintain_order=True)
    return tuple(number for group in groups for number in _of_group(group))


def _of_group(tests: pl.DataFrame) -> Iterator[KeyNumber]:
    grouping, group = tests[GROUPING.name][0], group_text(tests.row(0, named=True))
    clear = float(tests.filter(pl.col("p_adjusted") < LEVEL).height)
    meaning = f"of {tests.height:,} comparisons, at {LEVEL:.0%}"
    yield KeyNumber(grouping, group, "Clear differences", meaning, clear, format="integer")
    metrics = tests["metric"].to_list()
    main = MAIN if MAIN in metrics else metrics[0]
    for row in tests.filter(pl.col("metric") == main).with_columns(_pair()).head(MOST_DIFFERENCES).to_dicts():
        lower, upper = row["difference_lower"], row["difference_upper"]
        quality = "" if lower is None and upper is None else row[INTERVAL_QUALITY] or ""
        words, value = f"difference in {main}", row["difference"]
        yield KeyNumber(grouping, group, row[PAIR], words, value, lower, upper, quality, _role(main), "number")
