"""Gold labels beside the gold-free estimate: precision and recall on coded articles, on the same window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...errors import DataError
from ...metrics.uncertainty.cube import Cube
from ...plan import rows
from ...plan.checks import missing_check
from ...plan.counts import Query, Sweep
from ...plan.nodes import CrossCheck, Relation
from ...plan.plan import Plan
from ...queries.load import statement
from ...tables.ratios import ratios as ratios_of
from ...tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...sources.bins import Grid
    from ...sources.source import Source
    from .matchers import Matchers

COLUMNS = ("tp", "fp", "n_gold")
KEY = ("event_id", "article_id")


def check_grouping(by: Sequence[rows.Grouped], matchers: Matchers, pairs: Source) -> None:
    """Gold pairs that a matcher missed are known by their event alone, so other groups must come from events.

    Raises:
        DataError: a grouping column comes from elsewhere, or pairs have no article_id.
    """
    refused = [each.label for each in by if each.source != "events" and each.name not in matchers.columns]
    if refused:
        message = (
            f"by: {refused[0]!r} is no column of events, but gold pairs that were missed are known by their event only"
        )
        raise DataError(message, remedy="Group by columns of events, or leave gold out.")
    if not pairs.has("article_id"):
        message = "input gold needs article_id in pairs"
        raise DataError(message, remedy="Map it with columns = { article_id = … }.")


def relations(
    gold: Source, coded: Source | None, by: Sequence[rows.Grouped], pairs: exp.Query, bounds: Mapping[str, float]
) -> Iterator[Relation]:
    """Gold pairs, coded articles, and the judged pairs: found or missed.

    Args:
        gold: The gold pairs.
        coded: The articles that were coded; None: those of the gold pairs.
        by: The grouping columns, of events or naming the matcher.
        pairs: The rows that take part, with event_id, article_id, score, lag and the number of the matcher.
        bounds: Which lags lie after the event.
    """
    yield rows.read(gold, KEY, (), {})
    yield Relation("gold", statement("before_after/gold"), keep=True)
    if coded is not None:
        yield rows.read(coded, ["article_id"], (), {})
    articles = "coded_articles_of_gold" if coded is None else "coded_articles"
    yield Relation("coded", statement(f"before_after/{articles}"), keep=True)
    yield Relation("pairs_of_gold", pairs)
    after = {name: bounds[name] for name in ("after_start", "after_end")}
    annotated = statement("before_after/gold_pairs", [grouped.name for grouped in by], values=after)
    yield Relation("annotated_pairs", annotated, keep=True)


def plan(
    gold: Source,
    coded: Source | None,
    by: Sequence[rows.Grouped],
    pairs: exp.Query,
    bounds: Mapping[str, float],
    grid: Grid | None,
) -> Plan:
    """Counts on gold labels: their relations and checks, and the counts at the level of matches and of articles.

    Args:
        gold: The gold pairs.
        coded: The articles that were coded; None: those of the gold pairs.
        by: The grouping columns, of events or naming the matcher.
        pairs: The rows that take part, with event_id, article_id, score, lag and the number of the matcher.
        bounds: Which lags lie after the event.
        grid: The thresholds.
    """
    sources = [source for source in (gold, coded) if source is not None]
    checks = (missing_check(source, field.name) for source in sources for field in source.contract.fields)
    return Plan((*relations(gold, coded, by, pairs, bounds), *checks, repeated(), *queries(grid)))


def queries(grid: Grid | None) -> tuple[Query, ...]:
    """Counts at the level of matches and of articles; articles count once in a group, so groups do not add up."""
    sweep = Sweep("gold_pairs", exp.select("*").from_("annotated_pairs"), "score", grid, exact=True)
    names = ("gold_matches", "gold_articles", "gold_totals")
    return tuple(
        Query(
            f"before_after/{name}",
            columns=COLUMNS,
            keys=("level",),
            sweep=None if name == "gold_totals" else sweep,
            into="gold",
            additive=False,
        )
        for name in names
    )


def repeated() -> CrossCheck:
    """Gold pairs that stand more than once; they count once."""

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        n_repeated = frames["repeated"].item()
        return (f"{n_repeated:,} gold rows repeat a pair; each pair counts once",) if n_repeated else ()

    return CrossCheck({"repeated": statement("before_after/repeated_gold")}, compare)


def table(gold: pl.DataFrame, cube: Cube) -> pl.DataFrame:
    """The table `before_after_gold`, without the difference from the estimate.

    Args:
        gold: The count table `gold`.
        cube: The counts of the estimates, with the same groups and thresholds.
    """
    keys = cube.keys
    frame = Cube.of(gold, [*keys, "level"], cube.thresholds, cube.boundary).curve(["tp", "fp"], ["n_gold"])
    fn = (pl.col("n_gold") - pl.col("tp")).alias("fn")
    return frame.with_columns(fn).select(*keys, THRESHOLD, "level", "tp", "fp", "fn").with_columns(ratios())


def ratios() -> list[pl.Expr]:
    """Precision, recall and F1 of the counts tp, fp, fn; 0/0 is NULL, and `undefined` says why."""
    tp, fp, fn = pl.col("tp"), pl.col("fp"), pl.col("fn")

    reason = pl.when(tp + fp == 0).then(pl.lit("no_prediction")).when(tp + fn == 0).then(pl.lit("no_positive"))
    return [*ratios_of(tp, fp, fn), reason.alias("undefined")]
