"""before_after: precision and recall of event-article matching without gold labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import polars as pl
import sqlglot.expressions as exp
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.errors import ConfigError, DataError
from pipeline.metrics import before_after as estimator
from pipeline.metrics.operating_points import MAX_DECIMALS, Criterion, pick
from pipeline.metrics.sweep import THRESHOLD, add_up, at_or_above
from pipeline.schemas import GROUPING, Column, Table
from pipeline.sources import rows
from pipeline.sources.inputs import Field as InputField
from pipeline.sources.inputs import Input, InputContract
from pipeline.stages.checks import duplicate_check, missing_check, negative_check
from pipeline.stages.durations import EVERYTHING, Window
from pipeline.stages.parameters import StageParameters
from pipeline.stages.plan import Check, CountQuery, Plan, Sweep
from pipeline.stages.stage import Summary, integer, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.sources.source import Source

Fraction = Annotated[float, Field(ge=0, le=1)]

PAIRS = InputContract(
    "pairs",
    (
        InputField("event_id", "key", "the event of the pair", required=True),
        InputField("score", "number", "similarity of the pair; higher is more alike", required=True),
        InputField("lag_hours", "number", "article time minus event time, in hours"),
        InputField("lag_days", "number", "article time minus event time, in days"),
        InputField("article_id", "key", "the article of the pair"),
    ),
    "scored event-article pairs",
    required=True,
)
EVENTS = InputContract(
    "events",
    (
        InputField("event_id", "key", "the event", required=True),
        InputField("n_before", "integer", "articles compared with the event before it"),
        InputField("n_after", "integer", "articles compared with the event from its moment on"),
        InputField("complete_window", "boolean", "whether articles cover the whole window of the event"),
    ),
    "one row per event, with the numbers of compared articles",
)

_COUNTS = (
    Column("n_before", "BIGINT", "compared pairs before the event"),
    Column("n_after", "BIGINT", "compared pairs from the moment of the event on"),
    Column("m_before", "BIGINT", "matches (score at or above the threshold) before the event"),
    Column("m_after", "BIGINT", "matches from the moment of the event on"),
)
_ESTIMATES = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    *_COUNTS,
    Column("fpr", "DOUBLE", "false positive rate m_before / n_before; NULL without pairs before", nullable=True),
    Column("fp", "DOUBLE", "estimated false positives after the event, fpr × n_after", nullable=True),
    Column("tp", "DOUBLE", "estimated true positives m_after − fp; may be negative", nullable=True),
    Column("precision", "DOUBLE", "tp / m_after; may be negative; NULL without matches after", nullable=True),
    Column("recall", "DOUBLE", "recall_raw, at most 1", nullable=True),
    Column("recall_raw", "DOUBLE", "tp / tp at the reference; NULL if tp < 0 or without reference", nullable=True),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn), with the clipped recall", nullable=True),
    Column("tp_corrected", "DOUBLE", "true positives without the overestimate of fp", nullable=True),
    Column("precision_corrected", "DOUBLE", "tp_corrected / m_after", nullable=True),
    Column("recall_corrected", "DOUBLE", "tp_corrected / estimated positives", nullable=True),
    Column("is_reference", "BOOLEAN", "whether recall is measured against this threshold"),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL when all are defined", nullable=True),
)
_NULLABLE = tuple(Column(column.name, column.type, column.meaning, nullable=True) for column in _ESTIMATES)


class RecallReference(BaseModel):
    """The threshold at which recall is taken as known.

    Attributes:
        rule: `lowest`: the lowest threshold with enough precision; `max`: the one with most true positives among
            those; `fixed`: `threshold`.
        min_precision: Enough precision, at most 9 decimals.
        threshold: The reference of rule `fixed`.
        recall: What recall is believed to be there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: estimator.ReferenceRule = "lowest"
    min_precision: Fraction = 0.05
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    recall: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _complete(self) -> RecallReference:
        if (self.rule == "fixed") != (self.threshold is not None):
            message = 'threshold goes with rule = "fixed", and only with it'
            raise ValueError(message)
        if round(self.min_precision, MAX_DECIMALS) != self.min_precision:
            message = f"min_precision has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        return self


class BeforeAfterParameters(StageParameters):
    """Parameters of before_after.

    Attributes:
        pairs: Scored event-article pairs.
        events: One row per event, with the numbers of compared articles.
        window: Time around an event; default: every pair counts.
        compared: Where the numbers of compared pairs come from: `events`: given there; `pairs`: every compared pair
            is a row of pairs. Default: the first that the inputs allow.
        recall_reference: The threshold at which recall is taken as known.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`.
    """

    kind: Literal["before_after"] = "before_after"
    pairs: Input
    events: Input | None = None
    window: Window | None = None
    compared: Literal["events", "timelines", "pairs"] | None = None
    recall_reference: RecallReference = RecallReference()
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)

    required_keys: ClassVar[tuple[str, ...]] = ("thresholds",)

    @model_validator(mode="after")
    def _needs_thresholds(self) -> BeforeAfterParameters:
        if self.thresholds is None:
            message = "thresholds are required, for example { start = 0.1, stop = 60.0, count = 200 }"
            raise ValueError(message)
        return self

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds; a fixed reference that is not among them is added."""
        values = super().threshold_values
        fixed = self.recall_reference.threshold
        return values if values is None or fixed is None else tuple(sorted({*values, fixed}))


@dataclass(frozen=True)
class BeforeAfter:
    """The stage."""

    kind: str = "before_after"
    parameters: type[StageParameters] = BeforeAfterParameters
    inputs: tuple[InputContract, ...] = (PAIRS, EVENTS)
    tables: tuple[Table, ...] = (
        Table("before_after_estimates", "one row per group and threshold", _ESTIMATES, ("threshold",)),
        Table(
            "before_after_operating_points",
            "one row per group and criterion",
            (Column("criterion", "VARCHAR", "what the threshold was chosen for"), *_NULLABLE),
            ("criterion",),
        ),
    )
    count_columns: tuple[Column, ...] = _COUNTS

    def plan(self, params: BeforeAfterParameters, sources: Mapping[str, Source]) -> Plan:
        """Bind pairs and events, and count matches and compared pairs."""
        pairs, events = sources["pairs"], sources.get("events")
        by = rows.resolve_by(params.by, [source for source in (pairs, events) if source is not None])
        compared = _compared(params, events)
        _check_grouping(compared, by)
        bounds = EVERYTHING if params.window is None else params.window.bounds()
        units = _units(params, compared, events)
        wanted = ["event_id", "score", _lag_field(pairs), *(["article_id"] if pairs.has("article_id") else [])]
        lag = {} if pairs.has("lag_hours") else {"lag_hours": _hours_of_days()}
        unit_fields = [each for each in ("event_id", *units.fields, units.flag) if each and events and events.has(each)]
        relations = [rows.read(pairs, wanted, by, lag)]
        relations += [rows.read(events, unit_fields, by, {})] if events is not None else []
        relations += rows.units_relations(pairs, units, events, by)
        joins = events is not None or units.replicated
        row_query = rows.joined_rows(pairs, units, by, [*_row_fields(params, pairs)], joins=joins)
        if params.duplicates == "max" and pairs.has("article_id"):
            row_query = rows.distinct_rows(row_query, ("event_id", "article_id"), ("score", "lag_hours"))
        swept = "before_after/matches" if compared == "events" else "before_after/every_pair"
        counts = [CountQuery(swept, bounds, swept=True)]
        counts += [CountQuery("before_after/compared")] if compared == "events" else []
        return Plan(
            sources=tuple(sources.values()),
            by=by,
            relations=tuple(relations),
            checks=tuple(_checks(params, pairs, events, units)),
            sweep=Sweep("pairs", row_query, "score", params.grid()),
            counts=tuple(counts),
            used=("m_before", "m_after"),
            accounting=CountQuery("before_after/accounting", bounds),
            warnings=tuple(_input_warnings(params, pairs, events)),
            facts={"compared": compared, "lag": _lag_field(pairs)},
        )

    def derive(self, params: BeforeAfterParameters, counts: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Estimates at every threshold, and the chosen operating points."""
        keys = [name for name in counts.columns if name not in {THRESHOLD, "replicate", *_COUNT_NAMES}]
        compared = add_up(counts, keys, ["n_before", "n_after"])
        swept = at_or_above(counts, keys, ["m_before", "m_after"], params.threshold_values)
        frame = swept.join(compared, on=keys, how="left", nulls_equal=True)
        _check_matches(counts, keys)
        reference = params.recall_reference
        curve = estimator.estimates(
            frame,
            keys,
            rule=reference.rule,
            min_precision=reference.min_precision,
            threshold=reference.threshold,
            reference_recall=reference.recall,
        )
        points = [estimator.operating_point(curve, keys, criterion) for criterion in params.operating_points]
        at_reference = pick(
            curve, keys, criterion="recall_reference", among=pl.col("is_reference"), best=pl.col(THRESHOLD)
        )
        return {
            "before_after_estimates": curve,
            "before_after_operating_points": pl.concat([*points, at_reference], how="diagonal"),
        }

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """Doubts that the numbers themselves raise."""
        total = tables["before_after_estimates"].filter(pl.col(GROUPING.name) == "all")
        if total.is_empty():
            return ()
        found = []
        if not total["is_reference"].any():
            found.append("no threshold has enough precision to serve as recall reference: recall and F1 are undefined")
        reference = total.filter("is_reference")
        low = reference.filter(pl.col("precision") < LOW_PRECISION)
        if not low.is_empty():
            share = f"{low['precision'][0]:.0%}"
            found.append(
                f"recall may be too high or too low: at its reference threshold {low[THRESHOLD][0]:g} only {share} of "
                "the matches are right, so the total it is measured against is itself uncertain; "
                "try another recall_reference, or check a sample by hand"
            )
        return tuple(found)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """The best threshold of every group, and the curve of F1 over the thresholds of the first one."""
        return _summary(tables["before_after_estimates"], tables["before_after_operating_points"])


STAGE = BeforeAfter()
LOW_PRECISION = 0.2
_COUNT_NAMES = tuple(column.name for column in _COUNTS)


def _lag_field(pairs: Source) -> str:
    for name in ("lag_hours", "lag_days"):
        if pairs.has(name):
            return name
    message = "input pairs: neither lag_hours nor lag_days is there"
    raise DataError(message, remedy='Map one of them, for example columns = { lag_hours = "hourdiff" }.')


def _hours_of_days() -> exp.Expr:
    return exp.Mul(this=exp.column("lag_days"), expression=exp.cast(exp.Literal.string("24"), "DOUBLE"))


def _row_fields(params: BeforeAfterParameters, pairs: Source) -> tuple[str, ...]:
    keys = ("event_id", "article_id") if params.duplicates == "max" and pairs.has("article_id") else ()
    return (*keys, "score", "lag_hours")


def _compared(params: BeforeAfterParameters, events: Source | None) -> str:
    given = events is not None and events.has("n_before") and events.has("n_after")
    compared = params.compared or ("events" if given else "pairs")
    if compared == "timelines":
        message = 'compared = "timelines" is not available yet'
        raise ConfigError(message, remedy='Give n_before and n_after in events, or use compared = "pairs".')
    if compared == "events" and not given:
        message = 'compared = "events" needs the input events with n_before and n_after'
        raise DataError(message, remedy='Map them, or use compared = "pairs" if every compared pair is a row.')
    return compared


def _check_grouping(compared: str, by: tuple[rows.Grouped, ...]) -> None:
    for each in by:
        if compared == "events" and each.source == "pairs":
            message = f"by: {each.name!r} is a column of pairs, but the compared pairs are given per event"
            remedy = 'Their number for each value is not known: take the column from events, or use compared = "pairs".'
            raise DataError(message, remedy=remedy)


def _units(params: BeforeAfterParameters, compared: str, events: Source | None) -> rows.Units:
    return rows.Units(
        "events",
        "event_id",
        fields=("n_before", "n_after") if compared == "events" else (),
        flag="complete_window" if events is not None and events.has("complete_window") else None,
        cluster=params.cluster,
        replicated=params.uncertainty == "jackknife",
        replicates=None if params.replicates == "auto" else params.replicates,
    )


def _checks(params: BeforeAfterParameters, pairs: Source, events: Source | None, units: rows.Units) -> Iterator[Check]:
    if events is not None:
        for name in ("event_id", *units.fields, *([units.flag] if units.flag else [])):
            yield missing_check(events, name)
        for name in units.fields:
            yield negative_check(events, name)
        yield duplicate_check(events, ("event_id",), remedy="Keep one row per event.")
    if params.duplicates == "error" and pairs.has("article_id"):
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(pairs, ("event_id", "article_id"), remedy=remedy)


def _check_matches(counts: pl.DataFrame, keys: list[str]) -> None:
    """More matches than compared pairs cannot be: then the given numbers do not describe these pairs."""
    totals = add_up(counts, keys, _COUNT_NAMES)
    for side in ("before", "after"):
        odd = totals.filter(pl.col(f"m_{side}") > pl.col(f"n_{side}")).sort(keys)
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"input events: n_{side} adds up to {row[f'n_{side}']:,}, but pairs has {row[f'm_{side}']:,} rows "
                f"({row[GROUPING.name]})"
            )
            raise DataError(
                message, remedy=f"n_{side} must count every compared pair of the same window, matched or not."
            )


def _input_warnings(params: BeforeAfterParameters, pairs: Source, events: Source | None) -> Iterator[str]:
    if pairs.has_float32("score"):
        yield "scores are single precision (FLOAT); they are compared with the thresholds as DOUBLE"
    if params.window is not None and not (events is not None and events.has("complete_window")):
        yield "no complete_window is given: events whose window runs beyond the articles are counted too"
    if _lag_field(pairs) == "lag_days":
        yield "lags are in days: articles of the day of the event count as after it, whatever the hour"


def _summary(curve: pl.DataFrame, points: pl.DataFrame) -> Summary:
    best = points.filter(pl.col("criterion") != "recall_reference")
    best = best.filter(pl.col("criterion") == best["criterion"][0]) if not best.is_empty() else points
    labels = best.columns[2 : best.columns.index("criterion")]
    shown = best.sort("m_after", descending=True, nulls_last=True).sort(
        pl.col(GROUPING.name) != "all", maintain_order=True
    )
    rows_ = tuple(
        (
            ", ".join(str(row[name]) for name in labels if row[name] is not None) or row[GROUPING.name],
            number(row["threshold"]),
            percent(row["precision"]),
            percent(row["recall"]),
            percent(row["f1"]),
            integer(row["m_after"]),
        )
        for row in shown.iter_rows(named=True)
    )
    first = curve.filter(pl.col(GROUPING.name) == curve[GROUPING.name][0])
    if labels:
        first = first.filter(pl.all_horizontal(pl.col(name).eq_missing(first[name][0]) for name in labels))
    return Summary(
        headers=("group", "threshold", "precision", "recall", "F1", "matches after"),
        rows=rows_,
        sentence=_sentence(shown.row(0, named=True)) if not shown.is_empty() else "No group has any event.",
        curve=tuple(first["f1"].to_list()),
        curve_title=f"F1 from {number(first['threshold'].min())} to {number(first['threshold'].max())}",
    )


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "No threshold has both a precision and a recall."
    return (
        f"Keeping scores of {number(row['threshold'])} or more, about {precision * 100:.0f} of every 100 kept matches "
        f"are right, and about {recall * 100:.0f} of every 100 matches that could be found are kept."
    )
