"""People's findings beside the estimate without labels: gold pairs, and matches of an audit or of a sheet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import polars as pl
import scipy
import sqlglot.expressions as exp

from ...base.columns import REPLICATE, THRESHOLD, at_or_above, by_group, doubles, lowest_retrieved, nulls
from ...base.dialect import all_rows, column
from ...base.errors import ConfigError, DataError, Note
from ...base.records import dataclass
from ...base.schemas import GROUPING
from ...base.sql_files import statement
from ...base.visible_text import rows_in_words
from ...metrics.before_after.assumption import predicted
from ...metrics.before_after.estimates import AuditedPrecision, Sums, audited_precision, combined_precision
from ...metrics.before_after.sensitivity import LogRatio, kappa_limits, kappa_variance, placebo_ratio
from ...metrics.few_labels.curve import estimated_curve
from ...metrics.few_labels.draws import Labelled, Population, worth_of_rows_alike
from ...metrics.uncertainty.jackknife import covariance, t_quantile
from ...metrics.uncertainty.limits import with_quality
from ...metrics.uncertainty.replicates import Cube, jackknifed
from ...plan import rows
from ...plan.counts import Query, Sweep
from ...plan.nodes import (
    After,
    Check,
    CrossCheck,
    Grouped,
    Node,
    Phase,
    Relation,
    Statement,
    duplicate_check,
    file_check,
    missing_check,
)
from ...plan.plan import Plan
from ..sampling import Sheet, drawn_of_these, labels_of, strata_of
from ..stated import with_ratios
from . import assumption, groups
from .contract import OF_GOLD
from .groups import groups_of
from .inputs import PAIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Boundary
    from ...engines.engine import Engine
    from ...metrics.before_after.estimates import Prediction
    from ...metrics.uncertainty.jackknife import Floats
    from ...metrics.uncertainty.limits import Reason
    from ...plan.nodes import Progress
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import Audit, BeforeAfterParameters
    from .groups import EstimatedGroup
    from .planning import Matchers


# Gold pairs: precision and recall on coded articles, on the same window as the estimate.


GOLD_COUNTS = ("tp", "fp", "n_gold")


def check_grouping_of_gold(by: Sequence[Grouped], matchers: Matchers, pairs: Source) -> None:
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


def plan_of_gold(
    gold: Source,
    coded: Source | None,
    by: Sequence[Grouped],
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
    return Plan((*_judged_pairs(gold, coded, by, pairs, bounds), *checks, _repeated(), *_gold_counts(grid)))


def _judged_pairs(
    gold: Source, coded: Source | None, by: Sequence[Grouped], pairs: exp.Query, bounds: Mapping[str, float]
) -> Iterator[Relation]:
    """Gold pairs, coded articles, and the judged pairs: found or missed; arguments as for `plan_of_gold`."""
    yield rows.read(gold, PAIR, (), {})
    yield Relation("gold", statement("before_after/gold"), keep=True)
    if coded is not None:
        yield rows.read(coded, ["article_id"], (), {})
    articles = "coded_articles_of_gold" if coded is None else "coded_articles"
    yield Relation("coded", statement(f"before_after/{articles}"), keep=True)
    yield Relation("pairs_of_gold", pairs)
    after = {name: bounds[name] for name in ("after_start", "after_end")}
    annotated = statement("before_after/gold_pairs", [grouped.name for grouped in by], values=after)
    yield Relation("annotated_pairs", annotated, keep=True)


def _gold_counts(grid: Grid | None) -> tuple[Query, ...]:
    """Counts at the level of matches and of articles; articles count once in a group, so groups do not add up."""
    sweep = Sweep("gold_pairs", all_rows("annotated_pairs"), "score", grid, exact=True)
    names = ("gold_matches", "gold_articles", "gold_totals")
    return tuple(
        Query(
            f"before_after/{name}",
            columns=GOLD_COUNTS,
            keys=("level",),
            sweep=None if name == "gold_totals" else sweep,
            into="gold",
            additive=False,
        )
        for name in names
    )


def _repeated() -> CrossCheck:
    """Gold pairs that stand more than once; they count once."""

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        n_repeated = frames["repeated"].item()
        return (f"{n_repeated:,} gold rows repeat a pair; each pair counts once",) if n_repeated else ()

    return CrossCheck({"repeated": statement("before_after/repeated_gold")}, compare)


NAMES = ("precision_difference", "precision_difference_lower", "precision_difference_upper")


def gold_table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], cube: Cube, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_gold`: counts, ratios, and the estimated precision less the precision of gold pairs.

    Both of these come from the same events, so the jackknife leaves out an event's pairs and its gold pairs together.
    The difference is NULL at the level of articles, without replicates, and where one of the two is undefined.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables, `gold` among them.
        cube: The counts that the estimates rest on.
        params: The parameters of the stage.
    """
    keys, gold = cube.keys, counts["gold"]
    frame = Cube.of(gold, [*keys, "level"], cube.thresholds, cube.boundary).curve(["tp", "fp"], ["n_gold"])
    fn = (pl.col("n_gold") - pl.col("tp")).alias("fn")
    counted = frame.with_columns(fn).select(*keys, THRESHOLD, "level", "tp", "fp", "fn")
    compared = _with_difference(with_ratios(counted, OF_GOLD), curve, cube, gold, params)
    parents = groups.clusters(cube, params, crossed=False)
    return with_quality(compared, NAMES[:1], clusters=parents, keys=keys, events=("tp", "fp"))


def _with_difference(
    table: pl.DataFrame, curve: pl.DataFrame, cube: Cube, gold: pl.DataFrame, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table with the difference and its limits."""
    if params.uncertainty == "none" or not cube.within_budget(curve.height):
        return table.with_columns(nulls(NAMES))
    keys = list(cube.keys)
    matches = by_group(gold.filter(pl.col("level") == "match", pl.col(THRESHOLD).is_not_null()), keys)
    with_gold = ((group, matches.get(group.rows.select(keys).row(0))) for group in groups_of(curve, cube))
    frames = [
        group.rows.select(*keys, THRESHOLD).with_columns(
            pl.lit("match").alias("level"), *_difference(group, annotated, params)
        )
        for group, annotated in with_gold
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
        return _less_gold(Sums.of(group.reference, params.recall_reference.middle, totals[:4]), *totals[4:])

    if len(n_before) < 2:  # noqa: PLR2004 - a spread needs two
        difference = difference_of(*(count.sum(axis=0).astype(np.float64) for count in counts))
        half = np.full(len(difference), np.nan)
    else:
        difference, without_each = jackknifed(difference_of, *counts)
        half = t_quantile(params.confidence, len(n_before) - 1) * np.sqrt(covariance(without_each))
    values = (difference, difference - half, difference + half)
    return [doubles(name, column) for name, column in zip(NAMES, values, strict=True)]


def _less_gold(sums: Sums, tp: Floats, fp: Floats) -> Floats:
    """Estimated precision minus the precision of gold pairs; nan where one of them is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = sums.identified_precision - tp / (tp + fp)
    return np.where(np.isfinite(difference), difference, np.nan)


# The audit: a random sample of matches for people to check, and what their labels say of precision.


SAMPLE, AUDIT_TABLE = "before_after_audit_sample", "before_after_audit"
AUDIT_COUNTS = ("n_audited", "n_right")
DRIFT = ("value", "error")
AUDIT_LEVEL = 0.05
MOST_THRESHOLDS = 10_000
KAPPAS = ("kappa_lower", "kappa_upper")
AUDIT_VALUES = (
    *("precision_audited", "precision_audited_lower", "precision_audited_upper", "precision"),
    *("precision_combined", "precision_combined_lower", "precision_combined_upper", *KAPPAS, "p_value"),
)


def check_audit(params: BeforeAfterParameters, pairs: Source, audited: Source | None) -> None:
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


def parameters_of_matches(audit: Audit, bounds: Mapping[str, float], boundary: Boundary) -> dict[str, float]:
    """Parameters that tell which pairs can be drawn."""
    after = {name: bounds[name] for name in ("after_start", "after_end")}
    return after | {"lowest_score": lowest_retrieved(audit.threshold, boundary)}


def _sample(drawn: Mapping[str, float]) -> After:
    """The sample: the matches with the lowest digests of the seed and their keys."""

    def finish(drawn_rows: pl.DataFrame, _frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return drawn_rows.with_columns(pl.lit("all").alias(GROUPING.name))

    query = statement("before_after/audit_sample")
    return After(SAMPLE, None, query, dict(drawn), {}, finish)


def _labelled_pairs(audited: Source, by: Sequence[Grouped], drawn: Mapping[str, float]) -> Iterator[Relation]:
    """The labels, and the audited pairs among those that could be drawn."""
    yield rows.read(audited, [*PAIR, "is_match"], (), {})
    labels = statement("inputs/rows", [*PAIR, "is_match"], relations={"input_read": "audited_read"})
    yield Relation("audited", labels, keep=True)
    found = statement("before_after/audit_pairs", [grouped.name for grouped in by], values=drawn)
    yield Relation("audit_found", found, keep=True)


def _checks_of_audit(pairs: Source, audited: Source | None, audit: Audit) -> Iterator[Check]:
    """Every pair has its keys; labels are complete, each pair has one, and it could have been drawn."""
    yield missing_check(pairs, "article_id")
    if audited is None or is_sheet(audited):
        return
    for name in (*PAIR, "is_match"):
        yield missing_check(audited, name)
    yield duplicate_check(audited, PAIR, remedy="Keep one label per pair.")
    threshold = {"threshold": audit.threshold}
    yield file_check("before_after/checks/outside_sample", audited, words=lambda _: threshold)


def plan_of_audit(
    params: BeforeAfterParameters,
    pairs: Source,
    audited: Source | None,
    by: Sequence[Grouped],
    bounds: Mapping[str, float],
) -> Plan:
    """The sample of matches to check, with labels also their checks and counts; nothing without `audit`.

    Args:
        params: The parameters of the stage.
        pairs: The input of pairs.
        audited: The labels of an earlier sample, if given.
        by: The grouping columns.
        bounds: Which lags lie after the event.
    """
    if params.audit is None:
        return Plan()
    matches = parameters_of_matches(params.audit, bounds, params.boundary)
    drawn = matches | {"seed": params.audit.seed, "size": params.audit.size}
    nodes: list[Node] = [*_checks_of_audit(pairs, audited, params.audit), _sample(drawn)]
    if audited is None:
        return Plan(tuple(nodes))
    if is_sheet(audited):
        nodes += nodes_of_sheet(audited, [each.name for each in by], matches, params.grid())
    else:
        nodes += _labelled_pairs(audited, by, drawn)
    nodes += [] if is_designed(audited) else [_undrawn(drawn)]
    sweep = Sweep("audit_pairs", all_rows("audit_found"), "score", params.grid(), exact=True)
    nodes.append(Query("before_after/audited", columns=AUDIT_COUNTS, sweep=sweep, into="audit"))
    return Plan(tuple(nodes))


def _undrawn(drawn: Mapping[str, float]) -> CrossCheck:
    """Audited pairs that this seed does not draw."""
    frames = {
        "drawn": statement("before_after/audit_sample", values=drawn),
        "audited": statement("before_after/audited_pairs"),
    }

    def compare(sampled: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        n_undrawn = sampled["audited"].join(sampled["drawn"], on=list(PAIR), how="anti").height
        words = (
            f"{n_undrawn:,} of {sampled['audited'].height:,} audited pairs are not in the sample that audit draws: the "
            "precision of the audit holds only if they were drawn at random all the same"
        )
        return (words,) if n_undrawn else ()

    return CrossCheck(frames, compare)


def audit_table(
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
    order = [*keys, THRESHOLD, *AUDIT_COUNTS, *AUDIT_VALUES, "undefined"]
    audited = at_or_above(counts["audit"], keys, AUDIT_COUNTS, params.threshold_values)
    drifts = _drifts(params, counts, keys)
    designed = Designed.of(counts, params) if STRATA in counts else None
    frames = [_audited_group(group, audited, designed, drifts, params) for group in groups_of(curve, cube)]
    table = pl.concat([frame.select(order) for frame in frames])
    parents = groups.clusters(cube, params) if params.is_replicated else None
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
    tested = tables[AUDIT_TABLE].filter(pl.col(GROUPING.name) == "all", pl.col("p_value").is_not_null())
    if tested.is_empty():
        return
    row = tested.sort(THRESHOLD).row(0, named=True)
    if row["p_value"] < AUDIT_LEVEL:
        yield (
            f"the audit contradicts the estimate: {row['n_right']:,} of {row['n_audited']:,} checked matches are "
            f"right, where the estimated precision is {row['precision']:.2f} (p = {row['p_value']:.2g}); rely on "
            "precision_audited"
        )


def _audited_group(
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
        .select(THRESHOLD, *AUDIT_COUNTS)
        .sort(THRESHOLD),
        on=THRESHOLD,
        strategy="forward",
        allow_exact_matches=params.threshold_values is not None or params.boundary == ">=",
    ).with_columns(pl.col(AUDIT_COUNTS).fill_null(0))
    matches = group.sides[1].sum(axis=0)[inside]
    n_audited, n_right = (joined[name].to_numpy() for name in AUDIT_COUNTS)
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
    """The precision that matches before the event let expect, or why it is not known."""
    if params.uncertainty == "none":
        return None, "none"
    if not group.counts.within_budget() or group.rows.height > MOST_THRESHOLDS:
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


# A sheet of labels beside the matches that it was drawn from.


JUDGED, STRATA = "judged_matches", "audit_strata"
_FOUND, _CELLS, _TO_SAMPLE = "audit_found", "audit_cells", "matches_to_sample"
_DESIGN = ("probability", "stratum")


def is_sheet(audited: Source) -> bool:
    """Whether labels come from a sheet: with `label`, or with columns that say how it was drawn."""
    return audited.has("label") or is_designed(audited)


def is_designed(audited: Source) -> bool:
    """Whether the sheet says how its matches were drawn; if not, they are a simple random sample."""
    return any(audited.has(name) for name in _DESIGN)


def nodes_of_sheet(
    audited: Source, by: Sequence[str], matches: Mapping[str, float], grid: Grid | None
) -> Iterator[Node]:
    """The sheet and the matches that it was drawn from, with the number of matches of each stratum.

    Args:
        audited: The sheet.
        by: The grouping columns.
        matches: Parameters that tell which pairs are matches that can be drawn.
        grid: The thresholds.
    """
    wanted = [*PAIR, "label" if audited.has("label") else "is_match", *(name for name in _DESIGN if audited.has(name))]
    derived = {} if audited.has("label") else {"label": column("is_match", "canonical")}
    yield rows.read(audited, wanted, (), derived, located=audited.without_places is None)
    yield Relation("audit_matches", statement("before_after/audit_matches", by, values=matches))
    columns = [*by, REPLICATE, *PAIR]
    relations = {"predictions_read": "audit_matches"}
    yield Relation(_TO_SAMPLE, statement("threshold_sweep/rows_to_sample", columns, relations=relations))
    yield JudgedMatches(audited, tuple(by))
    if is_designed(audited):
        is_same = [exp.NullSafeEQ(this=column(name, "p"), expression=column(name, "c")) for name in by]
        in_strata = statement(
            "before_after/matches_in_strata", {"p": by}, columns={"same_group": exp.and_(exp.true(), *is_same)}
        )
        sweep = Sweep("strata_of_audit", in_strata, "score", grid)
        yield Query(f"before_after/{STRATA}", columns=("n_rows",), keys=("stratum",), sweep=sweep, into=STRATA)


@dataclass(frozen=True)
class JudgedMatches:
    """The relation of the matches that people judged, and the strata that they were drawn from.

    Attributes:
        audited: The sheet.
        by: The grouping columns.
    """

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: ClassVar[str] = _FOUND
    audited: Source
    by: tuple[str, ...]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define it, and hand over which cells of scores are of which stratum.

        Raises:
            DataError: rows of the sheet and matches do not fit, or nothing says how rows were drawn.
        """
        sheet = self._checked(engine.fetch(self._sheet))
        judged = sheet.filter(pl.col("is_match").is_not_null()).sort(*self.by, "score", *PAIR)
        cells = engine.fetch(self._cells)
        strata = strata_of(cells, self.by, judged.height, worth_of_rows_alike)
        keys = [*self.by, "cell"]
        judged = judged.join(strata.cells.select(*keys, "stratum"), on=keys, how="left", nulls_equal=True)
        named = [name for name in _DESIGN if self.audited.has(name)]
        is_drawn_of_these = drawn_of_these(judged, cells, self.by, named, worth_of_rows_alike)
        is_alike = not named or judged.is_empty() or is_drawn_of_these
        judged = judged.with_columns((pl.lit(1.0) if is_alike else self._how_drawn()).alias("relative"))
        found = judged.select(*self.by, REPLICATE, *PAIR, "score", "is_match")
        engine.hand_over(_FOUND, found.to_arrow())
        engine.hand_over("audited", judged.select(*PAIR, "is_match").to_arrow())
        engine.hand_over(_CELLS, strata.cells.select(*keys, "stratum").to_arrow())
        progress.tables[JUDGED] = judged.select(*self.by, "score", "is_match", "stratum", "relative")
        progress.warnings += self._warnings(sheet, int(strata.rows.sum()), is_drawn_of_these=is_drawn_of_these)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - its columns are its own
        """The queries, and the relations, which have none."""
        yield Statement(f"rows of the sheet, for relation {_FOUND}", self._sheet, function=JudgedMatches)
        yield Statement(f"rows of cells, for relation {_CELLS}", self._cells, function=strata_of)
        for name in (_FOUND, "audited", _CELLS):
            yield Statement(f"relation {name}", None, name, function=JudgedMatches)

    @property
    def _sheet(self) -> exp.Query:
        absent = {name: exp.null() for name in _DESIGN if not self.audited.has(name)}
        if self.audited.without_places is not None:
            absent |= {name: exp.null() for name in ("source_file", "file_row_number")}
        return statement("before_after/audited_beside_matches", {"p": self.by}, columns=absent)

    @property
    def _cells(self) -> exp.Query:
        return statement("threshold_sweep/cells_to_sample", self.by, relations={"rows_to_sample": _TO_SAMPLE})

    def _checked(self, sheet: pl.DataFrame) -> pl.DataFrame:
        """The rows of the sheet, with `is_match`.

        Raises:
            DataError: a pair repeats or could not be drawn, a label is no truth value, or a probability is none.
        """
        sheet = sheet.with_columns(labels_of(sheet["label_text"], "audited").alias("is_match"))
        self._beside.check(sheet)
        self._beside.refuse(
            sheet.filter(pl.col("met_id").is_null()),
            "{rows}, such as {row}, are no match after their event with a score that the audit draws from",
            "Give the pairs and the audit that the sheet was drawn with.",
        )
        return sheet

    def _how_drawn(self) -> pl.Expr:
        """How heavy a judged match is beside others of its stratum.

        Raises:
            DataError: nothing says it.
        """
        if self.audited.has("probability"):
            return 1 / pl.col("probability")
        message = (
            "input audited: nothing says how its rows were drawn: its strata are not those of a sheet of these pairs"
        )
        remedy = (
            "Map probability, the share of the matches like it that were drawn; or leave stratum out where all were "
        )
        raise DataError(message, remedy=f"{remedy}drawn alike.")

    @property
    def _beside(self) -> Sheet:
        has_probability = self.audited.has("probability")
        return Sheet("audited", "matches", "event_id or article_id", _row, has_probability=has_probability)

    def _warnings(self, sheet: pl.DataFrame, n_matches: int, *, is_drawn_of_these: bool) -> Iterator[str]:
        """Matches that nobody has judged, and a sheet that lacks rows."""
        is_empty = pl.col("is_match").is_null()
        if without := sheet.filter(is_empty).height:
            yield Note(f"input audited: {rows_in_words(without)} of {sheet.height:,} have no label, and do not count")
        yield from self._beside.skipped(sheet, is_empty)
        if not is_drawn_of_these:
            yield from self._beside.of_fewer(sheet, n_matches)


def _row(row: Mapping[str, object]) -> str:
    return f"event_id = {row['label_event']}, article_id = {row['label_article']}"


# What the judged matches say of all matches.


_ROUNDS = 60  # of bisection


@dataclass(frozen=True)
class Designed:
    """Judged matches by how they were drawn.

    Attributes:
        judged: The judged matches of every group of every grouping.
        strata: Numbers of matches of every group by `stratum` and `threshold`.
        params: The parameters of the stage.
    """

    judged: pl.DataFrame
    strata: pl.DataFrame
    params: BeforeAfterParameters

    @classmethod
    def of(cls, counts: Mapping[str, pl.DataFrame], params: BeforeAfterParameters) -> Designed:
        """The counts in the tables of a run."""
        judged = counts[JUDGED]
        frames = [
            judged.select(*grouping.columns, "score", "is_match", "stratum", "relative").with_columns(
                pl.lit(grouping.label).alias(GROUPING.name)
            )
            for grouping in params.groupings
        ]
        return cls(pl.concat(frames, how="diagonal"), counts[STRATA], params)

    def precision(self, key: pl.DataFrame, thresholds: Floats) -> AuditedPrecision:
        """The share of matches that are right; nan at thresholds without a judged match.

        Args:
            key: The key of a group, in one row.
            thresholds: Rising thresholds, from that of the audit on.
        """
        judged, strata = (
            frame.join(key, on=key.columns, how="semi", nulls_equal=True) for frame in (self.judged, self.strata)
        )
        if judged.is_empty() or not len(thresholds):
            return AuditedPrecision(*np.full((3, len(thresholds)), np.nan))
        numbers = strata["stratum"].unique().sort().to_numpy()
        retrieved, cuts = self._retrieved(strata, numbers, thresholds)
        falling = judged.sort("score", descending=True)
        rows = Labelled(
            stratum=np.searchsorted(numbers, falling["stratum"].to_numpy()),
            score=falling["score"].to_numpy(),
            label=falling["is_match"].to_numpy().astype(np.bool_),
            weight=falling["relative"].to_numpy(),
        )
        above = np.searchsorted(-rows.score, -cuts, side="right")  # judged matches that each cut retrieves
        limits = np.full((3, len(cuts)), np.nan)
        for number in np.unique(above[above > 0]):
            limits[:, above == number] = self._limits(rows, int(number), cuts, retrieved, above == number)
        return AuditedPrecision(*limits[:, ::-1])

    def _limits(
        self, rows: Labelled, number: int, cuts: Floats, retrieved: Floats, same: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """Precision at the cuts that retrieve the same judged matches, the matches there being the population.

        So it is 1 if all of them are right, which an estimate from all judged matches need not be.
        """
        population = Population(cuts[same], retrieved[:, same], retrieved[:, same][:, -1])
        confidence = self.params.confidence
        curve = estimated_curve(population, rows.take(np.arange(number)), names=("precision",), confidence=confidence)
        precision = curve.at["precision"]
        return precision.estimate, precision.lower, precision.upper

    def _retrieved(self, strata: pl.DataFrame, numbers: NDArray[np.int64], thresholds: Floats) -> tuple[Floats, Floats]:
        """How many matches of each stratum the thresholds retrieve, and the falling scores from which on they do."""
        cuts = np.array([lowest_retrieved(each, self.params.boundary) for each in thresholds])[::-1]
        side: Literal["left", "right"] = (
            "right" if self.params.threshold_values is None and self.params.boundary == ">" else "left"
        )  # without given thresholds the bins are scores
        retrieved = np.zeros((len(numbers), len(cuts)))
        for row, number in enumerate(numbers):
            counted = strata.filter(pl.col("stratum") == number).drop_nulls(THRESHOLD).sort(THRESHOLD)
            counted = counted.group_by(THRESHOLD, maintain_order=True).agg(pl.col("n_rows").sum())
            below = np.append(0, np.cumsum(counted["n_rows"].to_numpy()))
            retrieved[row] = below[-1] - below[np.searchsorted(counted[THRESHOLD].to_numpy(), thresholds[::-1], side)]
        return retrieved, cuts


def alike(precision: AuditedPrecision, matches: Floats, confidence: float) -> tuple[Floats, Floats]:
    """How many matches drawn one by one would tell as much, and how many of them would be right; 0 without labels.

    It is the number with which Jeffreys' limits are as wide as those of the design.

    Args:
        precision: What the design says.
        matches: Shape (T,): how many matches there are.
        confidence: Of the limits.
    """
    share, width = precision.estimate, precision.upper - precision.lower
    low, high = np.zeros(len(matches)), np.asarray(matches, dtype=np.float64)
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(_ROUNDS):
            number = (low + high) / 2
            right = share * number
            lower, upper = (scipy.special.betaincinv(right + 0.5, number - right + 0.5, tail) for tail in tails)
            lower, upper = np.where(share == 0, 0.0, lower), np.where(share == 1, 1.0, upper)
            is_wider = (upper - lower) * np.sqrt(1 - number / np.maximum(matches, 1)) > width
            low, high = np.where(is_wider, number, low), np.where(is_wider, high, number)
    number = np.where(high > matches - 1, matches, high)  # a whole number of right ones must remain possible
    right = np.where(number == matches, np.rint(share * matches), share * number)
    return np.where(np.isnan(share), 0.0, number), np.where(np.isnan(share), 0.0, right)
