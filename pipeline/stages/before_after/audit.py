"""A random sample of matches for people to check, and what their labels say of precision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from ...errors import ConfigError, DataError
from ...metrics.before_after.assumption import predicted
from ...metrics.before_after.estimates import audited_precision, combined_precision
from ...metrics.before_after.sensitivity import LogRatio, kappa_limits, kappa_variance, placebo_ratio
from ...metrics.uncertainty.limits import with_quality
from ...plan import rows
from ...plan.counts import Query, Sweep
from ...plan.nodes import After, Check, CrossCheck, Node, Relation, duplicate_check, file_check, missing_check
from ...plan.plan import Plan
from ...queries.dialect import all_rows
from ...queries.load import statement
from ...tables.columns import THRESHOLD, at_or_above, doubles, lowest_retrieved, nulls
from ...tables.schemas import GROUPING
from . import assumption, judged, uncertainty
from .judged import STRATA, Designed, alike, is_designed, is_sheet
from .uncertainty import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.before_after.assumption import Prediction
    from ...metrics.before_after.estimates import AuditedPrecision
    from ...metrics.uncertainty.cube import Cube
    from ...metrics.uncertainty.interval_quality import Reason
    from ...sources.bins import Grid
    from ...sources.source import Source
    from ...tables.columns import Boundary
    from .contract import Audit, BeforeAfterParameters
    from .uncertainty import EstimatedGroup

SAMPLE, TABLE = "before_after_audit_sample", "before_after_audit"
COLUMNS = ("n_audited", "n_right")
DRIFT = ("value", "error")
LEVEL = 0.05
MOST_THRESHOLDS = 10_000
KEY = ("event_id", "article_id")
REGION = ("after_start", "after_end", "lowest_score")
KAPPAS = ("kappa_lower", "kappa_upper")
VALUES = (
    *("precision_audited", "precision_audited_lower", "precision_audited_upper", "precision"),
    *("precision_combined", "precision_combined_lower", "precision_combined_upper", *KAPPAS, "p_value"),
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
    if audited is not None and not audited.has("is_match") and not audited.has("label"):
        message = "input audited has neither is_match nor label, which say whether a match is right"
        raise DataError(message, remedy="Map one of them: columns = { label = … }.")
    if not pairs.has("article_id"):
        message = "audit needs article_id in pairs"
        raise DataError(message, remedy="Map it with columns = { article_id = … }.")
    if params.duplicates == "keep":
        message = 'audit does not go with duplicates = "keep": a pair could be drawn twice'
        raise ConfigError(message, remedy='Use duplicates = "error" or "max".')


def parameters(audit: Audit, bounds: Mapping[str, float], boundary: Boundary) -> dict[str, float]:
    """Parameters of the query that draws the sample."""
    return parameters_of_matches(audit, bounds, boundary) | {"seed": audit.seed, "size": audit.size}


def parameters_of_matches(audit: Audit, bounds: Mapping[str, float], boundary: Boundary) -> dict[str, float]:
    """Parameters that tell which pairs can be drawn."""
    return {name: bounds[name] for name in REGION[:2]} | {REGION[2]: lowest_retrieved(audit.threshold, boundary)}


def sample(drawn: Mapping[str, float]) -> After:
    """The sample: the matches with the lowest digests of the seed and their keys."""

    def finish(drawn_rows: pl.DataFrame, _frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return drawn_rows.with_columns(pl.lit("all").alias(GROUPING.name))

    query = statement("before_after/audit_sample")
    return After(SAMPLE, None, query, dict(drawn), {}, finish)


def relations(audited: Source, by: Sequence[rows.Grouped], drawn: Mapping[str, float]) -> Iterator[Relation]:
    """The labels, and the audited pairs among those that could be drawn."""
    yield rows.read(audited, [*KEY, "is_match"], (), {})
    labels = statement("inputs/rows", [*KEY, "is_match"], relations={"input_read": "audited_read"})
    yield Relation("audited", labels, keep=True)
    query = statement(
        "before_after/audit_pairs",
        [grouped.name for grouped in by],
        values=drawn,
    )
    yield Relation("audit_found", query, keep=True)


def checks(pairs: Source, audited: Source | None, audit: Audit) -> Iterator[Check]:
    """Every pair has its keys; labels are complete, each pair has one, and it could have been drawn."""
    yield missing_check(pairs, "article_id")
    if audited is None or is_sheet(audited):
        return
    for name in (*KEY, "is_match"):
        yield missing_check(audited, name)
    yield duplicate_check(audited, KEY, remedy="Keep one label per pair.")
    threshold = {"threshold": audit.threshold}
    yield file_check("before_after/checks/outside_sample", audited, words=lambda _: threshold)


def plan(
    params: BeforeAfterParameters,
    pairs: Source,
    audited: Source | None,
    by: Sequence[rows.Grouped],
    drawn: Mapping[str, float],
) -> Plan:
    """The sample of matches to check; with labels also their checks and counts.

    Args:
        params: The parameters of the stage, with `audit`.
        pairs: The input of pairs.
        audited: The labels of an earlier sample, if given.
        by: The grouping columns.
        drawn: Parameters of the query that draws the sample.
    """
    if params.audit is None:
        return Plan()
    nodes: list[Node] = [*checks(pairs, audited, params.audit), sample(drawn)]
    if audited is None:
        return Plan(tuple(nodes))
    if is_sheet(audited):
        names, matches = [each.name for each in by], {name: drawn[name] for name in REGION}
        nodes += judged.nodes(audited, names, matches, params.grid())
    else:
        nodes += relations(audited, by, drawn)
    nodes += [] if is_designed(audited) else [undrawn(drawn)]
    nodes.append(query(params.grid()))
    return Plan(tuple(nodes))


def query(grid: Grid | None) -> Query:
    """Audited and right matches by bin."""
    sweep = Sweep("audit_pairs", all_rows("audit_found"), "score", grid, exact=True)
    return Query("before_after/audited", columns=COLUMNS, sweep=sweep, into="audit")


def undrawn(drawn: Mapping[str, float]) -> CrossCheck:
    """Audited pairs that this seed does not draw."""
    frames = {
        "drawn": statement("before_after/audit_sample", values=drawn),
        "audited": statement("before_after/audited_pairs"),
    }

    def compare(sampled: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        n_undrawn = sampled["audited"].join(sampled["drawn"], on=list(KEY), how="anti").height
        words = (
            f"{n_undrawn:,} of {sampled['audited'].height:,} audited pairs are not in the sample that audit draws: the "
            "precision of the audit holds only if they were drawn at random all the same"
        )
        return (words,) if n_undrawn else ()

    return CrossCheck(frames, compare)


def table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], cube: Cube, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_audit`.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables, `audit` among them.
        cube: The counts of `counts`.
        params: The parameters of the stage.
    """
    keys = list(cube.keys)
    order = [*keys, THRESHOLD, *COLUMNS, *VALUES, "undefined"]
    audited = at_or_above(counts["audit"], keys, COLUMNS, params.threshold_values)
    drifts = _drifts(params, counts, keys)
    designed = Designed.of(counts, params) if STRATA in counts else None
    groups = [_group(group, audited, designed, drifts, params) for group in groups_of(curve, cube)]
    table = pl.concat([group.select(order) for group in groups])
    parents = uncertainty.clusters(cube, params) if params.is_replicated else None
    table = table.with_columns((pl.col("n_audited") - pl.col("n_right")).alias("_n_wrong"))
    names = ("precision_audited", "precision_combined", "kappa")
    return with_quality(table, names, clusters=parents, keys=keys, events=("n_right", "_n_wrong")).drop("_n_wrong")


def _drifts(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Drift of the match rate by the trend of the days before the event: `keys`, `threshold`, `value` and `error`.

    The slope is projected from the middle of the time before the event to the middle of the time after it. There is no
    row where no trend was asked for or none can be estimated.
    """
    if not params.lag_thresholds or params.window is None or params.uncertainty == "none":
        return counts["counts"].select(*keys, *nulls((THRESHOLD, *DRIFT))).clear()
    window = params.window
    days = (window.before + window.gap + window.after) / 2 / assumption.HOURS
    width = 2 * float(scipy.special.ndtri(0.5 + params.confidence / 2))
    slopes = assumption.trend_table(params, counts, keys).drop_nulls(["slope", "slope_lower", "slope_upper"])
    return slopes.select(
        *keys,
        THRESHOLD,
        (pl.col("slope") * days).alias(DRIFT[0]),
        ((pl.col("slope_upper") - pl.col("slope_lower")) / width * days).alias(DRIFT[1]),
    )


def contradictions(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Whether the checked matches contradict the estimate for the total, at the threshold of the audit."""
    tested = tables[TABLE].filter(pl.col(GROUPING.name) == "all", pl.col("p_value").is_not_null())
    if tested.is_empty():
        return
    row = tested.sort(THRESHOLD).row(0, named=True)
    if row["p_value"] < LEVEL:
        yield (
            f"the audit contradicts the estimate: {row['n_right']:,} of {row['n_audited']:,} checked matches are "
            f"right, where the estimated precision is {row['precision']:.2f} (p = {row['p_value']:.2g}); rely on "
            "precision_audited"
        )


def _group(
    group: EstimatedGroup,
    audited: pl.DataFrame,
    designed: Designed | None,
    drifts: pl.DataFrame,
    params: BeforeAfterParameters,
) -> pl.DataFrame:
    """The rows of one group from the threshold of the audit on."""
    keys = [name for name in drifts.columns if name not in {THRESHOLD, *DRIFT}]
    inside = group.rows[THRESHOLD].to_numpy() >= (params.audit.threshold if params.audit else np.inf)
    retrieved = group.rows.filter(pl.Series(inside)).select(*keys, THRESHOLD, "precision")
    joined = retrieved.join_asof(
        audited.join(retrieved.select(keys).unique(), on=list(keys), how="semi", nulls_equal=True)
        .select(THRESHOLD, *COLUMNS)
        .sort(THRESHOLD),
        on=THRESHOLD,
        strategy="forward",
        allow_exact_matches=params.threshold_values is not None or params.boundary == ">=",
    ).with_columns(pl.col(COLUMNS).fill_null(0))
    matches = group.sides[1].sum(axis=0)[inside]
    n_audited, n_right = (joined[name].to_numpy() for name in COLUMNS)
    if designed is None:
        alone = audited_precision(matches, n_audited, n_right, confidence=params.confidence)
    else:
        alone = designed.precision(retrieved.select(keys).head(1), retrieved[THRESHOLD].to_numpy())
        n_audited, n_right = alike(alone, matches, params.confidence)
    prediction, missing = _prediction(group, params)
    combined, p_value = alone, np.full(len(matches), np.nan)
    kappas = np.full((2, len(matches)), np.nan)
    if prediction is not None:
        variance = _kappa_variance(group, drifts)[inside]
        kappas = np.where(n_audited > 0, np.stack(kappa_limits(variance, params.confidence)), np.nan)
        of_rows = {name: getattr(prediction, name)[inside] for name in ("count", "phi", "degrees")}
        combined, p_value = combined_precision(
            matches,
            n_audited,
            n_right,
            replace(prediction, **of_rows),
            confidence=params.confidence,
            kappa_variance=variance,
        )
    columns = [*_columns("precision_audited", alone), *_columns("precision_combined", combined, is_given=not missing)]
    reason = pl.when(pl.col("n_audited") == 0).then(pl.lit("no_audit")).otherwise(pl.lit(missing, dtype=pl.String))
    columns += [doubles(name, values) for name, values in zip(KAPPAS, kappas, strict=True)]
    return joined.with_columns(*columns, doubles("p_value", p_value), reason.alias("undefined"))


def _kappa_variance(group: EstimatedGroup, drifts: pl.DataFrame) -> NDArray[np.float64]:
    """Variance of the prior of κ at every threshold of a group, from the placebo and the trend.

    A threshold takes the trend at the highest lag threshold up to it.
    """
    keys = [name for name in drifts.columns if name not in {THRESHOLD, *DRIFT}]
    rows = group.rows.select(*keys, THRESHOLD)
    own = drifts.join(rows.head(1).select(keys), on=keys, how="semi", nulls_equal=True).drop(keys).sort(THRESHOLD)
    of_trend = rows.join_asof(own, on=THRESHOLD, strategy="backward")
    m_before, _, n_before, _ = group.sides
    m_near, n_near = group.near
    of_placebo = placebo_ratio(m_before - m_near, m_near, n_before - n_near, n_near, crossed=group.crossed_periods)
    values = (of_trend[name].to_numpy() for name in DRIFT)
    return kappa_variance(of_placebo, LogRatio(*values))


def _columns(name: str, precision: AuditedPrecision, *, is_given: bool = True) -> Iterator[pl.Series]:
    for side, values in (("", precision.estimate), ("_lower", precision.lower), ("_upper", precision.upper)):
        yield doubles(f"{name}{side}", values if is_given else np.full_like(values, np.nan))


def _prediction(group: EstimatedGroup, params: BeforeAfterParameters) -> tuple[Prediction | None, Reason | None]:
    """What the matches before the event let expect, or why that is not known."""
    if params.uncertainty == "none":
        return None, "none"
    if not group.counts.within_budget or group.rows.height > MOST_THRESHOLDS:
        return None, "budget"
    prediction = predicted(
        *group.sides,
        *group.near,
        reference=group.reference,
        reference_recall=params.recall_reference.middle,
        crossed=group.crossed_periods,
    )
    if prediction is None:
        return None, "no_near"
    return (prediction, None) if prediction.after[0] > 0 else (None, "all_positive")
