"""The stage compare: what follows from its units, and the stage put together."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ...base.schemas import GROUPING, TOTAL, group_text, grouping_columns, polars_types
from ...base.visible_text import listed
from ...metrics.comparison.significance import adjust_p_values, skewness_error
from ...metrics.uncertainty.limits import (
    INTERVAL_QUALITY,
    MEANINGS,
    N_CLUSTERS,
    UNITS_PER_SQUARED_SKEWNESS,
    warnings_of_marks,
)
from .. import sections
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
from ..stage import Counted, SampleSizes, Stage, Summary, doubt, integer, number
from . import planning
from .contract import COUNTS, MARGINS, POOLED, POSTERIORS, TABLES, TESTS, UNITS, CompareParameters, further_columns
from .pairs import units_of_group, with_order
from .planning import EVIDENCE, IN_ORDER
from .rows import (
    LEVEL,
    MAIN,
    claims_of_pairs,
    different_units,
    gap_sentences,
    has_different_units,
    is_unadjusted,
    key_of_pair,
    largest_gaps,
    margin_rows,
    margin_sentences,
    marked,
    strongest,
    system_text,
    with_decisions,
    without_positives,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...base.schemas import Column
    from ..figures import Format
    from ..sections import Measured
    from .rows import Row


SYSTEM, PAIR, SYSTEMS = "system", "pair", ("system_a", "system_b")
PAIR_TITLE = "Pair of systems"


def names_of_metrics(metrics: list[str]) -> dict[str, str]:
    """Give every metric a name for figures, of lower-case letters, digits and `_`, that no two of them share.

    `pooled` is the name of the figures of all pooled ratios.
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


def by_pair(table: pl.DataFrame) -> pl.DataFrame:
    """Rows with the name of their pair, in the order of groups and pairs."""
    return table.with_columns(pair_text()).sort(*keys_of(table), *SYSTEMS, nulls_last=True)


def by_system(table: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    """One row per group, metric and system; where its values differ by the system beside it, one for each of these.

    Values are columns of the first system without the `_a` in them; `interval_quality` is kept.
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
    """One row per group and name `at` the horizontal axis, with each pooled metric, its limits beside it.

    `interval_quality` becomes the worst of the metrics.
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
    """Ratios of every pair by metric, of one test, where systems have different units."""
    if different_units(tests).is_empty():
        return
    named = by_pair(tests)
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
    """Differences of every pair beside the margin, by metric, of one test."""
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


MOST_DIFFERENCES = 3
_OVERLAP = " Systems whose bars overlap can still differ, as all have the same units."


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Differences of every pair and means of every system by metric, and posteriors."""
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
    table = by_pair(tests)
    series = (with_limits(table, Series("difference", f"Difference in {metric}", "estimate", "point")),)
    axis, differs = Axis("", f"Difference in {metric}"), not different_units(tests).is_empty()
    return _of_pairs(table, series, f"differences_{name}", metric, axis, confidence, differs=differs)


def _pooled_differences(tests: pl.DataFrame, confidence: float) -> Figure:
    table = wide(by_pair(tests), PAIR, "difference")
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


# What a methods section says of compare.


TESTS_IN_WORDS = {
    "paired_t": "the paired t test (Student 1908)",
    "bootstrap_t": "a test of means that allows for skewed differences (bootstrap-t: Hall 1988)",
    "wilcoxon": "the signed-rank test (Wilcoxon 1945)",
    "sign": "the exact sign test",
    "randomization": "the randomization test (Noreen 1989; Yeh 2000) with {resamples:,} random swaps",
    "welch_t": "the t test of Welch (1947)",
    "permutation": "the studentised permutation test (Janssen 1997) with {resamples:,} random splits",
    "jackknife_t": "the t test of pooled ratios, by the jackknife over units (Efron and Tibshirani 1993)",
    "bayes": "posteriors of pooled ratios (Goutte and Gaussier 2005), counts being divided by their design effect",
}
POOLED_IN_WORDS = {"pooled_precision": "pooled precision", "pooled_recall": "pooled recall", "pooled_f1": "pooled F1"}
CORRECTIONS = {
    "holm": "P-values were adjusted for all pairs and metrics of a test (Holm 1979).",
    "bh": "P-values were adjusted for all pairs and metrics of a test (Benjamini and Hochberg 1995).",
    "none": "P-values were not adjusted for the number of tests.",
}
MOST_SENTENCES = 6
MOST_SYSTEMS = 10  # that are named


def sentences(measured: Measured) -> Iterator[str]:
    """Say how systems were compared, and what came out."""
    tests, parameters = measured.tables["compare_tests"], measured.parameters
    systems = sorted({str(system) for name in ("system_a", "system_b") for system in tests[name]})
    if systems:
        n_units = measured.most(tests["n_units"])
        names = f" ({listed(systems)})" if len(systems) <= MOST_SYSTEMS else ""
        units = f"{n_units} shared units" if parameters["paired"] else f"different units, {n_units} in a comparison"
        baseline = parameters["baseline"]
        beside = "" if baseline is None else f", each with {system_text(baseline)} as the baseline"
        yield f"{len(systems):,} systems{names} were compared on {units}{beside}."
    if "cluster" in measured.facts:
        yield f"Units with one value of {measured.facts['cluster']} were one cluster, and clusters independent."
    yield sections.left_out(measured, {"units": "rows of units"})
    made = list(dict.fromkeys(tests["test"])) + (["bayes"] if has_rows(measured.tables, "compare_posteriors") else [])
    asked = [name for name in parameters["tests"] if name in made]
    if asked:
        words = listed(TESTS_IN_WORDS[name] for name in asked).format(**parameters)
        seed = parameters["seed"]
        paired_by = "cluster" if "cluster" in measured.facts else "unit"
        how = f"two-sided and paired by {paired_by}" if parameters["paired"] else "two-sided"
        yield f"Differences between systems were tested, {how}, by {words}; seed {seed}."
    if parameters["missing_units"] == "skip":
        yield "Units that a system lacks are left out of its comparisons."
    yield CORRECTIONS[parameters["correction"]]
    if asked and asked != ["bayes"]:
        yield from _results(tests, asked[0], measured.confidence)
    if not parameters["paired"]:
        yield from gap_sentences(one_test_a_pair(tests))
    yield from _claims(measured)


def _claims(measured: Measured) -> Iterator[str]:
    """Say with which margin claims were tested, and which hold."""
    if not has_rows(measured.tables, "compare_margins"):
        return
    margins = measured.tables["compare_margins"]
    by_metric = dict(zip(margins["metric"], margins["margin"], strict=True))
    words = listed(f"{margin:g} in {POOLED_IN_WORDS.get(metric, metric)}" for metric, margin in by_metric.items())
    level = 1 - measured.parameters["confidence"]
    yield (
        f"Non-inferiority and equivalence were tested with a margin of {words}, by one-sided tests at the level of "
        f"{level:.3g}, two of them for equivalence (Schuirmann 1987)."
    )
    yield from margin_sentences(one_test_a_pair(margins))


def _results(tests: pl.DataFrame, test: str, level: str) -> Iterator[str]:
    """Give the differences by the first test, or where it has none by the first of the metric."""
    keys = [GROUPING.name, *tests.columns[2 : tests.columns.index("metric")], "metric", "system_a", "system_b"]
    ordered = tests.sort(pl.col("test") != test, maintain_order=True)
    first = ordered.unique(keys, keep="first", maintain_order=True)
    n_different = first.filter(pl.col("p_adjusted") < LEVEL).height
    yield f"{n_different:,} of {first.height:,} comparisons differ at the 5% level."
    shown = first.sort("p_adjusted", nulls_last=True, maintain_order=True).head(MOST_SENTENCES).to_dicts()
    yield from (_difference(row, level) for row in shown if row["difference"] is not None)
    if first.height > MOST_SENTENCES:
        yield f"The other {first.height - MOST_SENTENCES:,} comparisons are in the tables."
    yield from sections.doubts(shown)


def _difference(row: Mapping[str, object], level: str) -> str:
    limits = ""
    if row["difference_lower"] is not None and row["difference_upper"] is not None:
        limits = f", {level} CI {row['difference_lower']:.3g} to {row['difference_upper']:.3g}"
    test = TESTS_IN_WORDS[str(row["test"])].partition(" (")[0]
    p_value = "" if row["p_adjusted"] is None else f", adjusted p = {row['p_adjusted']:.2g} by {test}"
    group = "" if row[GROUPING.name] == TOTAL else f" for {row[GROUPING.name]} {group_text(row)}"
    metric = POOLED_IN_WORDS.get(str(row["metric"]), row["metric"])
    return (
        f"In {metric}, {row['system_a']} had {row['mean_a']:.4g} and {row['system_b']} {row['mean_b']:.4g}"
        f"{group} (difference {row['difference']:.3g}{limits}{p_value})."
    )


SAMPLE_SIZES = SampleSizes(
    nouns={"unit": "units"},
    unit="unit",
    units={"unit": "n_units"},
    counts=(Counted("units of the first system", ("n_units_a",)), Counted("units of the second", ("n_units_b",))),
    scales={"difference": "plain", "ratio": "log"},
    has_groups=False,
    is_paired=True,
)


# What follows from the units: tests, claims and posteriors of every pair of systems.


def derive(params: CompareParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of compare."""
    units = counts["units"]
    by, further = grouping_columns(units.columns), further_columns(params)
    units = with_order(units.sort([*by, "unit", "system"], nulls_last=True), params)
    if IN_ORDER in units.columns:
        params = params.model_copy(update={"correlated": ()})  # what the stages in `of` tell is in the units
    tests: list[Row] = []
    margins: list[Row] = []
    posteriors: list[Row] = []
    for grouping in params.groupings:
        columns = grouping.columns
        for frame in units.partition_by(columns, maintain_order=True) if columns else [units]:
            values = frame.select(columns).row(0, named=True) if columns else {}
            labels = dict.fromkeys(by) | values | {GROUPING.name: grouping.label}
            group = units_of_group(params, frame, by)
            of_tests, of_margins = [], []
            for compared in group.compared():
                of_tests += [labels | marked(row, params) for row in compared.rows]
                of_margins += [labels | marked(row, params) for row in margin_rows(params, compared)]
            tests += _adjusted(params, of_tests)
            margins += with_decisions(params, of_margins)
            posteriors += [labels | marked(row, params) for row in group.posteriors()]
    keys = {GROUPING.name: pl.String(), **{name: units.schema[name] for name in by}}
    return {
        name: _frame(rows, keys, (*stated, *further[name]), units.schema["system"])
        for name, rows, stated in (
            ("compare_tests", tests, TESTS),
            ("compare_posteriors", posteriors, POSTERIORS),
            ("compare_margins", margins, MARGINS),
        )
    }


def _frame(
    rows: Sequence[Row], keys: Mapping[str, pl.DataType], columns: Sequence[Column], system: pl.DataType
) -> pl.DataFrame:
    types = {each.name: system if each.type == "KEY" else polars_types(each.type)[0] for each in columns}
    frame = pl.DataFrame(rows, schema={**keys, **types}, orient="row")
    doubles = pl.col([each.name for each in columns if each.type == "DOUBLE"])
    return frame.with_columns(pl.when(doubles.is_finite()).then(doubles))


def _adjusted(params: CompareParameters, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group with p-values adjusted within each test."""
    adjusted_rows = []
    for test in params.tests:
        rows_of_test = [row for row in rows if row["test"] == test]
        adjusted = adjust_p_values([row["p_value"] for row in rows_of_test], params.correction)
        adjusted_rows += [row | {"p_adjusted": float(value)} for row, value in zip(rows_of_test, adjusted, strict=True)]
    return adjusted_rows


# What compare says of its tables: warnings, and the summary of a run.


FEW_UNITS = 20
MOST_WITHOUT = 5  # systems that are named
MANY_SYSTEMS = 3  # of which the best was kindly treated by chance: its own interval covers .91, and less of more
_FEWEST = pl.min_horizontal("n_units_a", "n_units_b")
SKEWED = 2.58  # standard errors of the skewness, beyond which it is no chance (1 in 100)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Doubts that the numbers themselves raise."""
    tests = tables["compare_tests"]
    messages = []
    keys = tests.columns[1 : tests.columns.index("n_units")]
    rows = tests.unique(keys, maintain_order=True)
    dropped = rows.filter(pl.col("n_dropped") > 0)
    if dropped.height:
        messages.append(
            f"{dropped.height:,} of {rows.height:,} comparisons leave out units for which a system has no value: see "
            "n_dropped"
        )
    few = rows.filter(_FEWEST < FEW_UNITS).height
    if few:
        messages.append(f"{few:,} of {rows.height:,} comparisons rest on fewer than {FEW_UNITS} units")
    untold = {name: table.filter(_FEWEST >= FEW_UNITS) for name, table in tables.items()}
    return (
        *messages,
        *_positives(tests),
        *_skewed(tests),
        *_skewed_groups(tests),
        *_in_time(tests),
        *warnings_of_marks(untold, without=("skewed",)),
    )


def _positives(tests: pl.DataFrame) -> Iterator[str]:
    """Systems of which nothing is positive."""
    absent = without_positives(different_units(tests))
    if absent:
        names = ", ".join(map(system_text, absent[:MOST_WITHOUT])) + (", …" if len(absent) > MOST_WITHOUT else "")
        yield (
            f"{len(absent):,} system{'s have' if len(absent) > 1 else ' has'} no positive ({names}): recall is NULL, "
            "and precision and F1 can only be 0, which says nothing of the system"
        )


def _skewed(tests: pl.DataFrame) -> Iterator[str]:
    """Tests whose hypothesis, or whose error rate, is another one where differences are skewed."""
    number = pl.col(N_CLUSTERS if N_CLUSTERS in tests.columns else "n_units")
    error = number.map_elements(skewness_error, return_dtype=pl.Float64)
    skewed = tests.filter(pl.col("skewness").abs() > SKEWED * error)
    ranked = skewed.filter(pl.col("test").is_in(["wilcoxon", "sign"]))
    if ranked.height:
        yield (
            f"differences between units are skewed in {ranked.height:,} tests by wilcoxon or sign: these do not test "
            "means and can reject equal ones; take bootstrap_t, which does (see skewness and hypothesis)"
        )
    student = skewed.filter(
        pl.col("test").is_in(["paired_t", "randomization"]),
        number < UNITS_PER_SQUARED_SKEWNESS * pl.col("skewness") ** 2,
    )
    if student.height:
        yield (
            f"differences between units are too skewed for their number in {student.height:,} tests by paired_t or "
            "randomization, which then reject equal means too often: take bootstrap_t, which allows for it"
        )


def _skewed_groups(tests: pl.DataFrame) -> Iterator[str]:
    """Tests of different units whose values are too skewed."""
    skewed = tests.filter(pl.col("test").is_in(["welch_t", "permutation"]), pl.col(INTERVAL_QUALITY) == "skewed")
    if skewed.height:
        yield (
            f"values are too skewed for their number in {skewed.height:,} tests by welch_t or permutation, which then "
            "can reject equal means too often: take bootstrap_t, which allows for it"
        )


def _in_time(tests: pl.DataFrame) -> Iterator[str]:
    """Tests that know of no time although neighbours are alike."""
    ranked = tests.filter(pl.col("test").is_in(["wilcoxon", "sign"]), pl.col(INTERVAL_QUALITY) == "correlated_days")
    if ranked.height:
        yield (
            f"neighbouring days may be alike in {ranked.height:,} tests by wilcoxon or sign, which take them for "
            "independent and can reject too often: take paired_t or bootstrap_t, or weeks as clusters"
        )


def has_rows(tables: Mapping[str, pl.DataFrame], name: str) -> bool:
    """Whether a table was made and has a row."""
    return name in tables and not tables[name].is_empty()


def one_test_a_pair(tests: pl.DataFrame) -> pl.DataFrame:
    """The first test of every pair and metric of every group; of margins, the claims of the first test."""
    keys = [GROUPING.name, *grouping_columns(tests.columns), "metric", "system_a", "system_b"]
    return tests.unique([*keys, *(["claim"] if "claim" in tests.columns else [])], keep="first", maintain_order=True)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The first test of every pair and metric of the total, or of all groups."""
    tests = tables["compare_tests"]
    if tests.is_empty():
        return Summary(headers=(), rows=(), sentence="No two systems were tested.")
    shown = one_test_a_pair(tests)
    margins = one_test_a_pair(tables["compare_margins"]) if has_rows(tables, "compare_margins") else None
    columns = dict(_columns(shown, margins))
    rows = tuple(tuple(cell(row) for cell in columns.values()) for row in shown.iter_rows(named=True))
    within = () if margins is None else margin_sentences(margins)
    sentences = (_clear(shown), *_chosen(shown), *gap_sentences(shown), *within)
    return Summary(
        headers=tuple(columns), rows=rows, groupings=tuple(shown[GROUPING.name]), sentence=" ".join(sentences)
    )


def _columns(
    shown: pl.DataFrame, margins: pl.DataFrame | None
) -> Iterator[tuple[str, Callable[[Mapping[str, Any]], str]]]:
    """Titles of the columns of the summary, with what makes a cell from a row."""
    yield "group", group_text
    yield "metric", lambda row: str(row["metric"])
    yield "systems", lambda row: f"{system_text(row['system_a'])} – {system_text(row['system_b'])}"
    yield "units", _units
    yield "first", lambda row: number(row["mean_a"])
    yield "second", lambda row: number(row["mean_b"])
    yield "difference", lambda row: _limited(row, "difference")
    if not different_units(shown).is_empty():
        yield "ratio", lambda row: _limited(row, "ratio")
    if margins is not None:
        claims = claims_of_pairs(margins)
        yield "within margin", lambda row: _within_margin(claims.get(key_of_pair(row), {}))
    yield "test", lambda row: str(row["test"])
    yield "adjusted p", lambda row: number(row["p_adjusted"])


def _units(row: Mapping[str, Any]) -> str:
    if has_different_units(row):
        return f"{integer(row['n_units_a'])} + {integer(row['n_units_b'])}"
    return integer(row["n_units"])


def _limited(row: Mapping[str, Any], name: str) -> str:
    if row[f"{name}_lower"] is None or row[f"{name}_upper"] is None:
        return number(row[name])
    lower, upper = number(row[f"{name}_lower"]), number(row[f"{name}_upper"])
    return f"{number(row[name])} ({lower} to {upper}){doubt(row)}"


def _within_margin(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """A pair within its margin, as it is shown."""
    words = {"equivalent": "equivalent", "a_not_worse": "first not worse", "b_not_worse": "second not worse"}
    shown = [word for claim, word in words.items() if claims.get(claim, {}).get("holds")]
    return shown[0] if shown else "not shown" if claims else "–"


def _chosen(shown: pl.DataFrame) -> Iterator[str]:
    """A caveat on the value of the best system, where several have the same units."""
    same = shown.join(different_units(shown), on=["metric", "system_a", "system_b"], how="anti", nulls_equal=True)
    systems = same.unpivot(["system_a", "system_b"], index="metric", value_name="system")
    most = systems.group_by("metric").agg(pl.col("system").n_unique())["system"].max() or 0
    if isinstance(most, int) and most >= MANY_SYSTEMS:
        yield f"The best of {most} systems was found on these same units, so that its own value is a little too good."


def _clear(shown: pl.DataFrame) -> str:
    clear = shown.filter(pl.col("p_adjusted") < LEVEL).height
    how = "not adjusted for their number" if is_unadjusted(shown) else "adjusted for their number"
    differ = "shows" if clear == 1 else "show"
    return f"{clear:,} of {shown.height:,} comparisons {differ} a difference beyond chance, at the 5% level {how}."


STAGE = Stage(
    kind="compare",
    parameters=CompareParameters,
    inputs=(UNITS,),
    tables=TABLES,
    count_columns=COUNTS,
    plan=planning.plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    sample_sizes=SAMPLE_SIZES,
    further_columns=further_columns,
)
