"""What threshold_sweep asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan import rows
from pipeline.plan.areas import Areas
from pipeline.plan.checks import doubtful_groups, duplicate_check, missing_check, outside_check, rows_check
from pipeline.plan.counts import Query, Sweep
from pipeline.plan.nodes import Check, Relation
from pipeline.plan.plan import Plan
from pipeline.queries.dialect import column, double, is_finite
from pipeline.sources.source import PASSES_WHERE, SCORE_GIVEN
from pipeline.stages.threshold_sweep.contract import COUNT_NAMES
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.sources.source import Source
    from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters

UNITS = "clusters_of_rows"
MOST_WEIGHT, LEAST_WEIGHT = 1e6, 1e-6
LIKELIHOOD = ("n", "n_outside", "weights", "squares", "first", "weighted", "second", "squared_errors")


def plan(params: ThresholdSweepParameters, predictions: Source) -> Plan:
    """Bind the predictions, count labels per bin, and ask for areas and likelihoods.

    Raises:
        DataError: the predictions lack a column that the parameters need.
    """
    return _Planner(params, predictions).plan()


@dataclass(frozen=True)
class _Planner:
    params: ThresholdSweepParameters
    predictions: Source

    def plan(self) -> Plan:
        by = rows.resolve_by(self.params.by, [self.predictions])
        units = self._units()
        every = self._rows(units, by)
        labelled = exp.Not(this=exp.Is(this=column("label", "p"), expression=exp.null()))
        used = every.where(is_finite(column(SCORE_GIVEN, "p")), labelled)
        missed = self.params.counts_missed
        sweep = Sweep("predictions", every, "score", self.params.grid(), replicated=self.replicated, missed=missed)
        name = "weighted_counts" if self.weighted else "counts"
        likelihood = Query("threshold_sweep/likelihood", columns=LIKELIHOOD, into="likelihood")
        return Plan(
            nodes=(
                *self._relations(units, by, used),
                *self._checks(),
                Query(f"threshold_sweep/{name}", columns=COUNT_NAMES, sweep=sweep),
                likelihood,
                self._areas(every.where(labelled.copy()) if missed else used, by),
            ),
            sources=(self.predictions,),
            by=by,
            used=("n_positive", "n_negative"),
            accounting=Query("threshold_sweep/accounting", {"missed": float(missed)}),
            positive=column("label"),
            warnings=tuple(self._warnings(by)),
            facts={"independent": self.params.cluster or "rows"},
        )

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.predictions.has("weight")

    @property
    def replicated(self) -> bool:
        """Whether replicates of clusters, not rows, are independent."""
        return self.params.cluster is not None and self.params.uncertainty == "jackknife"

    def _units(self) -> rows.Units | None:
        if not self.replicated or self.params.cluster_column is None:
            return None
        replicates = None if self.params.replicates == "auto" else self.params.replicates
        return rows.Units(UNITS, self.params.cluster_column, replicates=replicates)

    def _rows(self, units: rows.Units | None, by: Sequence[rows.Grouped]) -> exp.Select:
        fields = ("score", "label", *(["weight"] if self.weighted else []))
        missed = self.params.counts_missed
        return rows.joined_rows(self.predictions, units, (), fields, by, checked=False, missed=missed)

    def _relations(self, units: rows.Units | None, by: Sequence[rows.Grouped], used: exp.Select) -> Iterator[Relation]:
        names = ["score", "label", *(name for name in ("weight", "id") if self.predictions.is_mapped(name))]
        cluster = [self.params.cluster_column] if self.params.cluster_column is not None else []
        yield rows.read(self.predictions, [*names, *cluster], by, {})
        if units is not None:
            yield from rows.units_relations(self.predictions, units, None, by)
        weight = column("weight") if self.weighted else double(1.0)
        names = [*(each.name for each in by), REPLICATE, "score", "label"]
        weighted = exp.select(*(column(name) for name in names), exp.alias_(weight, "weight", quoted=True))
        yield Relation("weighted_predictions", weighted.from_(used.subquery("used_predictions")))

    def _areas(self, used: exp.Select, by: Sequence[rows.Grouped]) -> Areas:
        names = [*(each.name for each in by), REPLICATE, "score", "label"]
        as_counted = exp.cast(exp.cast(column("weight"), "DECIMAL(38, 15)"), "DOUBLE")
        weight = [exp.alias_(as_counted, "weight", quoted=True)] if self.weighted else []
        return Areas(
            rows=exp.select(*map(column, names), *weight).from_(used.subquery("used_predictions")),
            exact=self.params.method == "exact",
            width=self.params.width,
            span=self.predictions.span("score"),
            weighted=self.weighted,
            replicated=self.replicated,
            random_sizes=self.params.class_sizes == "random",
            missed=self.params.counts_missed,
        )

    def _checks(self) -> Iterator[Check]:
        if self.weighted:
            yield missing_check(self.predictions, "weight")
            yield outside_check(self.predictions, "weight", 0.0, MOST_WEIGHT)
            yield _no_weight(self.predictions)
            yield _tiny_weight(self.predictions)
        if self.params.cluster_column is not None:
            yield missing_check(self.predictions, self.params.cluster_column)
        if self.params.duplicates == "error" and self.predictions.is_mapped("id"):  # a name too common to guess
            keys = ("id", *self.params.by_columns)  # the same item may be predicted once in each group
            remedy = 'Keep one row per item and group, or set duplicates = "keep" to count every row.'
            yield duplicate_check(self.predictions, keys, remedy=remedy)

    def _warnings(self, by: Sequence[rows.Grouped]) -> Iterator[str]:
        yield from doubtful_groups([self.predictions], by)
        if self.predictions.has_float32("score"):
            yield "scores are single precision (FLOAT); they are compared with the thresholds as DOUBLE"


def _no_weight(predictions: Source) -> Check:
    """Weights that are 0 in every row."""

    def explain(_: list[dict[str, object]]) -> tuple[str, str]:
        message = f"input {predictions.name}: column {predictions.source_name('weight')!r} is 0 in every row"
        return message, "Weights say how much a row counts: some must be above 0."

    most = exp.alias_(exp.Max(this=column("weight")), "most")
    query = exp.select(most).from_(exp.to_table(f"{predictions.name}_read")).where(column(PASSES_WHERE))
    return Check(query.having(exp.EQ(this=exp.Max(this=column("weight")), expression=double(0))), explain)


def _tiny_weight(predictions: Source) -> Check:
    """Weights of which 15 decimals keep too little."""
    above = exp.GT(this=column("weight"), expression=double(0.0))
    below = exp.LT(this=column("weight"), expression=double(LEAST_WEIGHT))
    words = f"column {predictions.source_name('weight')!r} is above 0 but below {LEAST_WEIGHT:g}"
    remedy = "Multiply all weights by one number, such as 1e6: only their ratios matter."
    return rows_check(predictions, exp.and_(above, below), words, remedy)
