"""Gold labels beside the estimate without them: precision and recall on coded articles, and their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.estimates import Sums
from ...metrics.uncertainty.cube import Cube, jackknifed
from ...metrics.uncertainty.jackknife import covariance, t_quantile
from ...metrics.uncertainty.limits import with_quality
from ...plan import rows
from ...plan.counts import Query, Sweep
from ...plan.nodes import CrossCheck, Relation, missing_check
from ...plan.plan import Plan
from ...queries.dialect import all_rows
from ...queries.load import statement
from ...tables.columns import THRESHOLD, by_group, doubles, nulls
from ...tables.columns import ratios as ratios_of
from . import uncertainty
from .uncertainty import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ...metrics.uncertainty.jackknife import Floats
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import BeforeAfterParameters
    from .tables import Matchers
    from .uncertainty import EstimatedGroup


# Gold labels beside the gold-free estimate: precision and recall on coded articles, on the same window.


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
    sweep = Sweep("gold_pairs", all_rows("annotated_pairs"), "score", grid, exact=True)
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


# Estimated precision beside that of gold pairs: their difference, with an interval over events.


NAMES = ("precision_difference", "precision_difference_lower", "precision_difference_upper")


def with_difference(
    table: pl.DataFrame, curve: pl.DataFrame, cube: Cube, gold: pl.DataFrame, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_gold` with the difference at the level of matches.

    Both numbers come from the same events, so the jackknife leaves out an event's pairs and its gold pairs together.
    NULL at the level of articles, without replicates, and where one of the two is undefined.

    Args:
        table: The table without the difference.
        curve: Estimates, one row per group × threshold.
        cube: The counts that the estimates rest on.
        gold: The count table `gold`.
        params: The parameters of the stage.
    """
    parents = uncertainty.clusters(cube, params, crossed=False)
    compared = _joined(table, curve, cube, gold, params)
    return with_quality(compared, NAMES[:1], clusters=parents, keys=cube.keys, events=("tp", "fp"))


def _joined(
    table: pl.DataFrame, curve: pl.DataFrame, cube: Cube, gold: pl.DataFrame, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table with the difference and its limits."""
    if params.uncertainty == "none" or not cube.within_budget(curve.height):
        return table.with_columns(nulls(NAMES))
    keys = list(cube.keys)
    matches = by_group(gold.filter(pl.col("level") == "match", pl.col(THRESHOLD).is_not_null()), keys)
    groups = ((group, matches.get(group.rows.select(keys).row(0))) for group in groups_of(curve, cube))
    frames = [
        group.rows.select(*keys, THRESHOLD).with_columns(
            pl.lit("match").alias("level"), *_difference(group, annotated, params)
        )
        for group, annotated in groups
        if annotated is not None
    ]
    if not frames:
        return table.with_columns(nulls(NAMES))
    return table.join(pl.concat(frames), on=[*keys, THRESHOLD, "level"], how="left", nulls_equal=True)


def _difference(group: EstimatedGroup, gold: pl.DataFrame, params: BeforeAfterParameters) -> list[pl.Series]:
    """The difference and its limits at every threshold of a group."""
    m_before, m_after, n_before, n_after = group.sides
    annotated = group.counts.with_counts(gold)
    tp, fp = annotated.at_or_above("tp"), annotated.at_or_above("fp")
    counts = (m_before, m_after, n_before[:, None], n_after[:, None], tp, fp)

    def difference_of(*totals: Floats) -> Floats:
        return _of_totals(Sums.of(group.reference, params.recall_reference.middle, totals[:4]), *totals[4:])

    if len(n_before) < 2:  # noqa: PLR2004 - a spread needs two
        difference = difference_of(*(count.sum(axis=0).astype(np.float64) for count in counts))
        half = np.full(len(difference), np.nan)
    else:
        difference, without_each = jackknifed(difference_of, *counts)
        half = t_quantile(params.confidence, len(n_before) - 1) * np.sqrt(covariance(without_each))
    values = (difference, difference - half, difference + half)
    return [doubles(name, column) for name, column in zip(NAMES, values, strict=True)]


def _of_totals(sums: Sums, tp: Floats, fp: Floats) -> Floats:
    """Estimated precision minus that of the gold pairs; nan where one of them is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        is_possible = (sums.tp_reference > 0) & sums.is_possible
        difference = np.where(is_possible, sums.precision, np.nan) - tp / (tp + fp)
    return np.where(np.isfinite(difference), difference, np.nan)
