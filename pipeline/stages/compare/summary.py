"""What compare says in plain words: the largest gap, claims within a margin, warnings and summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.comparison.significance import skewness_error
from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, N_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS
from ...metrics.uncertainty.limits import warnings_of_marks
from ...tables.schemas import GROUPING, TOTAL, group_text, grouping_columns
from ...visible_text import cleaned
from ..stage import DOUBT, Summary, doubt, integer, number, of_group
from .rows import POOLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


if TYPE_CHECKING:
    Row = Mapping[str, Any]


# What compare says in plain words: of the largest gap between groups, and of claims within a margin.


MAIN = "pooled_f1"  # the metric that is told first
LEVEL = 0.05  # of the tests, as in the sentence of the summary
MOST_GAPS, MOST_CLAIMS = 2, 3  # that are told
_CLAIMS = ("equivalent", "a_not_worse", "b_not_worse")  # the strongest first


def system_text(system: object) -> str:
    """A system or a metric for people, on one line; texts that would be read as something else are in double quotes."""
    if system in {"", "null"}:
        return f'"{system}"'
    return "null" if system is None else cleaned(str(system), layout="")


def different_units(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table that compare systems with different units."""
    return table.filter(pl.col("n_units") == pl.col("n_units_a") + pl.col("n_units_b"), pl.col("n_units") > 0)


def has_different_units(row: Mapping[str, Any]) -> bool:
    """Whether a row of a table is one of these; earlier versions, whose units were all shared, do not say."""
    counts = row["n_units_a"], row["n_units_b"]
    return bool(None not in counts and 0 < row["n_units"] == sum(counts))


def is_unadjusted(shown: pl.DataFrame) -> bool:
    """Whether p-values are not adjusted for their number."""
    return set(shown["correction"]) == {"none"}


def key_of_pair(row: Row) -> tuple[object, ...]:
    """What tells a pair, metric and group from the others."""
    names = grouping_columns(list(row))
    return (row[GROUPING.name], *(row[name] for name in names), row["metric"], row["system_a"], row["system_b"])


def claims_of_pairs(margins: pl.DataFrame) -> dict[tuple[object, ...], dict[str, Row]]:
    """The rows of one test of every pair and metric of every group, by claim."""
    claims: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in margins.iter_rows(named=True):
        claims.setdefault(key_of_pair(row), {})[row["claim"]] = row
    return claims


# The largest gap ------------------------------------------------------------------------------------------------------


def gap_sentences(shown: pl.DataFrame) -> Iterator[str]:
    """Say between which systems the largest gap of every metric is, where systems have different units.

    Args:
        shown: One row per group, pair and metric, of one test.
    """
    gaps = largest_gaps(shown)
    for row in gaps[:MOST_GAPS]:
        yield of_group(row, _gap(row, shown))
    n_further = len(gaps) - MOST_GAPS
    if n_further > 0:
        yield f"The largest gaps in {n_further:,} further metric{'s' if n_further > 1 else ''} are in the tables."


def largest_gaps(shown: pl.DataFrame) -> list[dict[str, Any]]:
    """The row of the largest difference of every metric, of the total or else of the first group.

    Args:
        shown: One row per group, pair and metric, of one test; none is given if systems share their units.
    """
    different = different_units(shown)
    total = different.filter(pl.col(GROUPING.name) == TOTAL)
    groups = [GROUPING.name, *grouping_columns(shown.columns)]
    chosen = different.join(different.head(1).select(groups), on=groups, how="semi", nulls_equal=True)
    rows = _with_positives(chosen if total.is_empty() else total)
    largest = rows.filter(pl.col("difference").is_not_null()).sort(
        pl.col("difference").abs(), descending=True, maintain_order=True
    )
    of_metrics = largest.unique("metric", keep="first", maintain_order=True)
    return of_metrics.sort(pl.col("metric") != MAIN, "metric").to_dicts()


def without_positives(tests: pl.DataFrame) -> list[object]:
    """The systems of which nothing is positive: their recall is NULL, and their precision and F1 can only be 0."""
    pooled = tests.filter(pl.col("metric").is_in(POOLED))
    sides = [
        pooled.select(pl.col(f"system_{side}").alias("system"), "metric", pl.col(f"mean_{side}").alias("mean"))
        for side in "ab"
    ]
    systems = pl.concat(sides)
    has_none = ((pl.col("metric") == "pooled_recall") & pl.col("mean").is_null()).any() & (pl.col("mean") == 0).any()
    return systems.group_by("system").agg(has_none.alias("has_none")).filter("has_none")["system"].sort().to_list()


def _with_positives(tests: pl.DataFrame) -> pl.DataFrame:
    """The rows without ratios of counts of systems of which nothing is positive."""
    absent = without_positives(tests)
    is_absent = pl.col("system_a").is_in(absent, nulls_equal=True) | pl.col("system_b").is_in(absent, nulls_equal=True)
    return tests.filter(~(pl.col("metric").is_in(POOLED) & is_absent)) if absent else tests


def _gap(row: Row, shown: pl.DataFrame) -> str:
    """One gap in words: who has the highest and who the lowest value."""
    names = (GROUPING.name, *grouping_columns(shown.columns), "metric")
    rows = _with_positives(shown.filter(pl.col(name).eq_missing(pl.lit(row[name])) for name in names[:-1]))
    rows = rows.filter(pl.col("metric") == row["metric"])
    systems = pl.concat([rows["system_a"], rows["system_b"]]).unique()
    against = rows["system_b"].unique()
    is_from_baseline = against.len() == 1 and systems.len() > 2  # noqa: PLR2004 - else it is a single pair
    of = f" from {system_text(against[0])}" if is_from_baseline else f" among {systems.len():,} systems"
    sides = [(row["mean_a"], row["system_a"]), (row["mean_b"], row["system_b"])]
    (high, best), (low, worst) = sides if row["difference"] >= 0 else sides[::-1]
    words = f"{system_text(best)} has {number(high)}, {system_text(worst)} {number(low)}"
    ratio = f", {number(low / high)} times as much" if row["ratio"] is not None and low > 0 else ""
    what = f"{'difference' if is_from_baseline else 'gap'} in {system_text(row['metric'])}"
    head = f"The largest {what}{of}" if rows.height > 1 else f"The {what}"
    largest = f"{head} is {number(abs(row['difference']))}: {words}{ratio} ({_chance(row, rows)})."
    return f"{largest}{_clearest(row, rows)}"


def _clearest(largest: Row, rows: pl.DataFrame) -> str:
    """The difference with the smallest p-value, if that is not the largest one; empty if none is below 5%."""
    clear = rows.filter(pl.col("p_adjusted") < LEVEL).sort("p_adjusted", maintain_order=True).head(1).to_dicts()
    if not clear or is_unadjusted(rows) or key_of_pair(clear[0]) == key_of_pair(largest):
        return ""
    (row,) = clear
    a, b = system_text(row["system_a"]), system_text(row["system_b"])
    return f" The clearest is between {a} and {b}: {number(row['difference'])} ({_chance(row, rows)})."


def _chance(row: Row, rows: pl.DataFrame) -> str:
    """What the p-value of the largest of some differences is, which was chosen among them."""
    if row["p_adjusted"] is None:
        return f"no p-value: {row['undefined'] or 'it has no test'}"
    if is_unadjusted(rows) and rows.height > 1:
        return "no p-value, as those of the largest difference need a correction"
    return f"adjusted p = {row['p_adjusted']:.2g} by {row['test']}"


# Margins --------------------------------------------------------------------------------------------------------------


def margin_sentences(margins: pl.DataFrame) -> Iterator[str]:
    """Say which systems are shown not to be worse than others, or equivalent, within the margin.

    Args:
        margins: The rows of one test of every pair and metric of every group.
    """
    pairs = claims_of_pairs(margins)
    shown = [claim for claims in pairs.values() if (claim := strongest(claims)) is not None]
    n_open, of = len(pairs) - len(shown), f"{len(pairs):,} pairs and metrics" if len(pairs) > 1 else "the pair"
    if len(shown) <= MOST_CLAIMS:
        yield from (of_group(row, claim_sentence(row)) for row in shown)
    else:
        yield f"Of {of}, {len(shown):,} are shown not to be worse, or to be equivalent, within the margin."
    if n_open and len(pairs) > 1:
        yield f"Nothing is shown of {n_open:,} of the {of}, which is no proof that they differ."
    elif n_open:
        yield "Nothing is shown of the pair within the margin, which is no proof that the two differ."


def strongest(claims: Mapping[str, Row]) -> Row | None:
    """The strongest claim that holds; None: none does."""
    return next((claims[name] for name in _CLAIMS if name in claims and claims[name]["holds"]), None)


def claim_sentence(row: Row) -> str:
    """One claim that holds, in words."""
    a, b = system_text(row["system_a"]), system_text(row["system_b"])
    metric, margin = system_text(row["metric"]), number(row["margin"])
    limits = ""
    if row["interval_lower"] is not None and row["interval_upper"] is not None:
        level = f"{100 * row['interval_confidence']:.10g}%"
        limits = f"{level} interval {number(row['interval_lower'])} to {number(row['interval_upper'])}"
        limits += " (doubtful)" if doubt(row) == DOUBT else ""
    evidence = "; ".join(text for text in (limits, f"adjusted p = {row['p_adjusted']:.2g}") if text)
    if row["claim"] == "equivalent":
        return f"In {metric}, {a} and {b} are equivalent within {margin} ({evidence})."
    better, worse = (a, b) if row["claim"] == "a_not_worse" else (b, a)
    return f"In {metric}, {better} is not worse than {worse} by more than {margin} ({evidence})."


# What compare says of its tables: warnings, and the summary of a run.


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
