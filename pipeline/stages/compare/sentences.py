"""What compare says in plain words: of the largest gap between groups, and of claims within a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...tables.groupings import TOTAL, grouping_columns
from ...tables.schemas import GROUPING
from ...visible_text import cleaned
from ..stage import DOUBT, doubt, number, of_group
from .fitting import POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Row = Mapping[str, Any]

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
