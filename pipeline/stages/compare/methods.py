"""What a methods section says of compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.groupings import TOTAL, group_text
from ...tables.schemas import GROUPING
from ...visible_text import listed
from .. import methods
from ..units import Counted, SampleSizes
from .summary import gap_sentences, has_rows, margin_sentences, one_test_a_pair, system_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..methods import Measured


TESTS = {
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
POOLED = {"pooled_precision": "pooled precision", "pooled_recall": "pooled recall", "pooled_f1": "pooled F1"}
CORRECTIONS = {
    "holm": "P-values were adjusted for all pairs and metrics of a test (Holm 1979).",
    "bh": "P-values were adjusted for all pairs and metrics of a test (Benjamini and Hochberg 1995).",
    "none": "P-values were not adjusted for the number of tests.",
}
LEVEL = 0.05
MOST_DIFFERENCES = 6
MOST_SYSTEMS = 10  # that are named


def sentences(measured: Measured) -> Iterator[str]:
    """Say how systems were compared, and what came out."""
    tests, parameters = measured.tables["compare_tests"], measured.parameters
    systems = sorted({str(system) for name in ("system_a", "system_b") for system in tests[name]})
    if systems:
        n_units = measured.most(tests["n_units"])
        names = f" ({listed(systems)})" if len(systems) <= MOST_SYSTEMS else ""
        units = f"{n_units} shared units" if parameters["paired"] else f"different units, {n_units} in a comparison"
        yield f"{len(systems):,} systems{names} were compared on {units}{_with_baseline(parameters)}."
    if "cluster" in measured.facts:
        yield f"Units with one value of {measured.facts['cluster']} were one cluster, and clusters independent."
    yield methods.left_out(measured, {"units": "rows of units"})
    made = list(dict.fromkeys(tests["test"])) + (["bayes"] if has_rows(measured.tables, "compare_posteriors") else [])
    asked = [name for name in parameters["tests"] if name in made]
    if asked:
        words = listed(TESTS[name] for name in asked).format(**parameters)
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


def _with_baseline(parameters: Mapping[str, object]) -> str:
    baseline = parameters["baseline"]
    return "" if baseline is None else f", each with {system_text(baseline)} as the baseline"


def _claims(measured: Measured) -> Iterator[str]:
    """Say with which margin claims were tested, and which hold."""
    if not has_rows(measured.tables, "compare_margins"):
        return
    margins = measured.tables["compare_margins"]
    by_metric = dict(zip(margins["metric"], margins["margin"], strict=True))
    words = listed(f"{margin:g} in {POOLED.get(metric, metric)}" for metric, margin in by_metric.items())
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
    shown = first.sort("p_adjusted", nulls_last=True, maintain_order=True).head(MOST_DIFFERENCES).to_dicts()
    yield from (_difference(row, level) for row in shown if row["difference"] is not None)
    if first.height > MOST_DIFFERENCES:
        yield f"The other {first.height - MOST_DIFFERENCES:,} comparisons are in the tables."
    yield from methods.doubts(shown)


def _difference(row: Mapping[str, object], level: str) -> str:
    limits = ""
    if row["difference_lower"] is not None and row["difference_upper"] is not None:
        limits = f", {level} CI {row['difference_lower']:.3g} to {row['difference_upper']:.3g}"
    p_value = "" if row["p_adjusted"] is None else f", adjusted p = {row['p_adjusted']:.2g} by {_test(row)}"
    group = "" if row[GROUPING.name] == TOTAL else f" for {row[GROUPING.name]} {group_text(row)}"
    metric = POOLED.get(str(row["metric"]), row["metric"])
    return (
        f"In {metric}, {row['system_a']} had {row['mean_a']:.4g} and {row['system_b']} {row['mean_b']:.4g}"
        f"{group} (difference {row['difference']:.3g}{limits}{p_value})."
    )


def _test(row: Mapping[str, object]) -> str:
    return TESTS[str(row["test"])].partition(" (")[0]


# What the numbers of compare rest on: units that two systems have in common.


SAMPLE_SIZES = SampleSizes(
    nouns={"unit": "units"},
    unit="unit",
    units={"unit": "n_units"},
    counts=(Counted("units of the first system", ("n_units_a",)), Counted("units of the second", ("n_units_b",))),
    scales={"difference": "plain", "ratio": "log"},
    has_groups=False,
    is_paired=True,
)
