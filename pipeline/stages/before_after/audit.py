"""A random sample of matches for people to check, and what their labels say of precision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.before_after.audit import audited_precision, combined_precision
from pipeline.metrics.before_after.placebo import predicted
from pipeline.plan import rows
from pipeline.plan.checks import duplicate_check, missing_check
from pipeline.plan.counts import Query, Sweep
from pipeline.plan.nodes import After, Check, CrossCheck, Node, Relation
from pipeline.plan.plan import Plan
from pipeline.queries.dialect import column
from pipeline.queries.load import expand, fill, load, statement
from pipeline.stages.before_after.uncertainty import BUDGET, group_counts
from pipeline.stages.before_after.units import lowest_retrieved
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD, at_or_above

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.metrics.before_after.audit import AuditedPrecision
    from pipeline.metrics.before_after.placebo import Prediction
    from pipeline.sources.bins import Boundary, Grid
    from pipeline.sources.source import Source
    from pipeline.stages.before_after.contract import Audit, BeforeAfterParameters
    from pipeline.stages.before_after.uncertainty import GroupCounts

SAMPLE, TABLE = "before_after_audit_sample", "before_after_audit"
COLUMNS = ("n_audited", "n_right")
LEVEL = 0.05
MOST_THRESHOLDS = 10_000
KEY = ("event_id", "article_id")
VALUES = (
    *("precision_audited", "precision_audited_lower", "precision_audited_upper", "precision"),
    *("precision_combined", "precision_combined_lower", "precision_combined_upper", "p_value"),
)


def check_inputs(params: BeforeAfterParameters, pairs: Source, audited: Source | None) -> None:
    """A sample must know its pairs, and draw none of them twice.

    Raises:
        ConfigError: the parameters do not fit each other.
        DataError: pairs have no article_id.
    """
    if params.audit is None:
        if audited is not None:
            message = "audited goes with audit: labels of a sample need the parameters it was drawn with"
            raise ConfigError(message, remedy="Write audit = { threshold = …, size = …, seed = … } as in that run.")
        return
    if not pairs.has("article_id"):
        message = "audit needs article_id in pairs"
        raise DataError(message, remedy="Map it with columns = { article_id = … }.")
    if params.duplicates == "keep":
        message = 'audit does not go with duplicates = "keep": a pair could be drawn twice'
        raise ConfigError(message, remedy='Use duplicates = "error" or "max".')


def parameters(audit: Audit, bounds: Mapping[str, float], boundary: Boundary) -> dict[str, float]:
    """Parameters of the query that draws the sample."""
    region = {name: bounds[name] for name in ("after_start", "after_end")}
    region["lowest_score"] = lowest_retrieved(audit.threshold, boundary)
    return {**region, "seed": audit.seed, "size": audit.size}


def sample(pairs: exp.Select, drawn: Mapping[str, float]) -> After:
    """The sample: the matches with the lowest digests of the seed and their keys."""

    def finish(found: pl.DataFrame, _frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return found.with_columns(pl.lit("all").alias(GROUPING.name))

    relation = Relation("pairs_of_audit", pairs)
    return After(SAMPLE, relation, statement("before_after/audit_sample"), dict(drawn), {}, finish)


def relations(
    audited: Source, by: Sequence[rows.Grouped], pairs: exp.Select, drawn: Mapping[str, float]
) -> Iterator[Relation]:
    """The labels, and the audited pairs among those that could be drawn."""
    yield rows.read(audited, [*KEY, "is_match"], (), {})
    yield Relation("audited", rows.kept(audited), keep=True)
    yield Relation("pairs_of_audit", pairs)
    query = expand(load("before_after/audit_pairs"), [each.name for each in by])
    yield Relation("audit_found", fill(query, drawn), keep=True)


def checks(pairs: Source, audited: Source | None, audit: Audit) -> Iterator[Check]:
    """Every pair has its keys; labels are complete, each pair has one, and it could have been drawn."""
    yield missing_check(pairs, "article_id")
    if audited is None:
        return
    for name in (*KEY, "is_match"):
        yield missing_check(audited, name)
    yield duplicate_check(audited, KEY, remedy="Keep one label per pair.")

    def explain(faults: list[dict[str, object]]) -> tuple[str, str]:
        fault = faults[0]
        message = (
            f"input audited: {fault['n_rows']:,} pairs are no match after their event with a score from "
            f"{audit.threshold:g} on, so the sample cannot hold them (event_id = {fault['event_id']}, "
            f"article_id = {fault['article_id']})"
        )
        return message, f"Give back the labels of {SAMPLE}, drawn from the same pairs with the same audit."

    on = [exp.EQ(this=column(key, "a"), expression=column(key, "f")) for key in KEY]
    query = exp.select(*(column(key, "a") for key in KEY)).from_(exp.to_table("audited").as_("a"))
    query = query.join(exp.to_table("audit_found").as_("f"), on=exp.and_(*on), join_type="left")
    missing = query.where(exp.Is(this=column("event_id", "f"), expression=exp.null()))
    number = exp.Window(this=exp.Count(this=exp.Star()))
    counted = exp.select(*(column(key) for key in KEY), exp.alias_(exp.cast(number, "BIGINT"), "n_rows"))
    yield Check(counted.from_(missing.subquery("outside")).order_by(*(column(key) for key in KEY)).limit(1), explain)


def plan(
    params: BeforeAfterParameters,
    pairs: Source,
    audited: Source | None,
    by: Sequence[rows.Grouped],
    drawable: exp.Select,
    drawn: Mapping[str, float],
) -> Plan:
    """The sample of matches to check; with labels also their checks and counts.

    Args:
        params: The parameters of the stage, with `audit`.
        pairs: The input of pairs.
        audited: The labels of an earlier sample, if given.
        by: The grouping columns.
        drawable: The rows that take part, with event_id and article_id.
        drawn: Parameters of the query that draws the sample.
    """
    if params.audit is None:
        return Plan()
    nodes: list[Node] = [*checks(pairs, audited, params.audit), sample(drawable, drawn)]
    if audited is not None:
        nodes += [*relations(audited, by, drawable, drawn), undrawn(drawn), query(params.grid())]
    return Plan(tuple(nodes))


def query(grid: Grid | None) -> Query:
    """Audited and right matches by bin."""
    sweep = Sweep("audit_pairs", exp.select("*").from_("audit_found"), "score", grid, exact=True)
    return Query("before_after/audited", columns=COLUMNS, sweep=sweep, into="audit")


def undrawn(drawn: Mapping[str, float]) -> CrossCheck:
    """Audited pairs that this seed does not draw."""
    frames = {
        "drawn": fill(expand(load("before_after/audit_sample"), ()), drawn),
        "audited": exp.select(*(column(key) for key in KEY)).from_("audited"),
    }

    def compare(found: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        others = found["audited"].join(found["drawn"], on=list(KEY), how="anti").height
        words = (
            f"{others:,} of {found['audited'].height:,} audited pairs are not in the sample that audit draws: the "
            "precision of the audit holds only if they were drawn at random all the same"
        )
        return (words,) if others else ()

    return CrossCheck(frames, compare)


def empty_sample(curve: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The table of the sample without a row."""
    types = {"draw": pl.Int64, "event_id": pl.String, "article_id": pl.String, "score": pl.Float64}
    nothing = (pl.lit(None, dtype=kind).alias(name) for name, kind in (types | {"lag_hours": pl.Float64}).items())
    return curve.clear().select(*keys).with_columns(*nothing)


def table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_audit`; without labels it has no row.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables `counts` and, with labels, `audit`.
        keys: Columns that identify a group.
        params: The parameters of the stage.
    """
    order = [*keys, THRESHOLD, *COLUMNS, *VALUES, "undefined"]
    if "audit" not in counts or params.audit is None or curve.is_empty():
        numbers = [pl.lit(None, dtype=pl.Int64).alias(name) for name in COLUMNS]
        nothing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in VALUES]
        reason = pl.lit(None, dtype=pl.String).alias("undefined")
        return curve.clear().select(*keys, THRESHOLD).with_columns(*numbers, *nothing, reason).select(order)
    audited = at_or_above(counts["audit"], keys, COLUMNS, params.threshold_values)
    found = [
        _group(group, audited, keys, params).select(order)
        for group in group_counts(curve, counts["counts"], keys, params)
    ]
    return pl.concat(found)


def contradictions(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Whether the checked matches contradict the estimate for the total, at the threshold of the audit."""
    rows_ = tables[TABLE].filter(pl.col(GROUPING.name) == "all", pl.col("p_value").is_not_null())
    if rows_.is_empty():
        return
    row = rows_.sort(THRESHOLD).row(0, named=True)
    if row["p_value"] < LEVEL:
        yield (
            f"the audit contradicts the estimate: {row['n_right']:,} of {row['n_audited']:,} checked matches are "
            f"right, where the estimated precision is {row['precision']:.2f} (p = {row['p_value']:.2g}); rely on "
            "precision_audited"
        )


def _group(
    group: GroupCounts, audited: pl.DataFrame, keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The rows of one group from the threshold of the audit on."""
    inside = group.rows[THRESHOLD].to_numpy() >= (params.audit.threshold if params.audit else np.inf)
    rows_ = group.rows.filter(pl.Series(inside)).select(*keys, THRESHOLD, "precision")
    joined = rows_.join_asof(
        audited.join(rows_.select(keys).unique(), on=list(keys), how="semi", nulls_equal=True)
        .select(THRESHOLD, *COLUMNS)
        .sort(THRESHOLD),
        on=THRESHOLD,
        strategy="forward",
        allow_exact_matches=params.threshold_values is not None or params.inclusive,
    ).with_columns(pl.col(COLUMNS).fill_null(0))
    matches = group.swept["m_after"].sum(axis=0)[inside]
    audited_, right = (joined[name].to_numpy() for name in COLUMNS)
    alone = audited_precision(matches, audited_, right, confidence=params.confidence)
    prediction, missing = _prediction(group, params)
    nothing = np.full(len(matches), np.nan)
    both, p_value = alone, nothing
    if prediction is not None:
        part = replace(prediction, **{name: getattr(prediction, name)[inside] for name in ("count", "phi", "degrees")})
        both, p_value = combined_precision(matches, audited_, right, part, confidence=params.confidence)
    columns = [*_columns("precision_audited", alone), *_columns("precision_combined", both, known=not missing)]
    reason = pl.when(pl.col("n_audited") == 0).then(pl.lit("no_audit")).otherwise(pl.lit(missing, dtype=pl.String))
    return joined.with_columns(*columns, pl.Series("p_value", p_value).fill_nan(None), reason.alias("undefined"))


def _columns(name: str, found: AuditedPrecision, *, known: bool = True) -> Iterator[pl.Series]:
    for side, values in (("", found.estimate), ("_lower", found.lower), ("_upper", found.upper)):
        given = values if known else np.full_like(values, np.nan)
        yield pl.Series(f"{name}{side}", given, dtype=pl.Float64).fill_nan(None)


def _prediction(group: GroupCounts, params: BeforeAfterParameters) -> tuple[Prediction | None, str | None]:
    """What the matches before the event let expect, or why that is not known."""
    if params.uncertainty == "none":
        return None, "none"
    if len(group.replicates) * group.rows.height > BUDGET or group.rows.height > MOST_THRESHOLDS:
        return None, "budget"
    found = predicted(
        group.swept["m_before"],
        group.swept["m_after"],
        group.totals["n_before"],
        group.totals["n_after"],
        group.swept["m_near"],
        group.totals["n_near"],
        reference=group.reference,
        reference_recall=params.recall_reference.recall,
    )
    if found is None:
        return None, "no_near"
    return (found, None) if found.after[0] > 0 else (None, "all_positive")
