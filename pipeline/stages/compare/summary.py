"""What compare says of its tables: warnings, and the summary of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.comparison.bootstrap_t import skewness_error
from ...metrics.uncertainty.marks import warnings_of_marks
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, N_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS
from ...tables.groupings import group_text, grouping_columns
from ...tables.schemas import GROUPING
from ..stage import Summary, doubt, integer, number
from .sentences import (
    claims_of_pairs,
    different_units,
    gap_sentences,
    has_different_units,
    is_unadjusted,
    key_of_pair,
    margin_sentences,
    system_text,
    without_positives,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FEW_UNITS = 20
MOST_SYSTEMS = 5  # that are named
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
        names = ", ".join(map(system_text, absent[:MOST_SYSTEMS])) + (", …" if len(absent) > MOST_SYSTEMS else "")
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
        yield "within margin", lambda row: _claimed(claims.get(key_of_pair(row), {}))
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


def _claimed(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """What is shown of a pair within its margin."""
    words = {"equivalent": "equivalent", "a_not_worse": "first not worse", "b_not_worse": "second not worse"}
    shown = [word for claim, word in words.items() if claims.get(claim, {}).get("holds")]
    return shown[0] if shown else "not shown" if claims else "–"


def _chosen(shown: pl.DataFrame) -> Iterator[str]:
    """What the value of the best system is not, where several have the same units."""
    same = shown.join(different_units(shown), on=["metric", "system_a", "system_b"], how="anti", nulls_equal=True)
    systems = same.unpivot(["system_a", "system_b"], index="metric", value_name="system")
    most = systems.group_by("metric").agg(pl.col("system").n_unique())["system"].max() or 0
    if isinstance(most, int) and most >= MANY_SYSTEMS:
        yield f"The best of {most} systems was found on these same units, so that its own value is a little too good."


def _clear(shown: pl.DataFrame) -> str:
    clear = shown.filter(pl.col("p_adjusted") < 0.05).height  # noqa: PLR2004 - the usual level, in a sentence
    how = "not adjusted for their number" if is_unadjusted(shown) else "adjusted for their number"
    differ = "shows" if clear == 1 else "show"
    return f"{clear:,} of {shown.height:,} comparisons {differ} a difference beyond chance, at the 5% level {how}."
