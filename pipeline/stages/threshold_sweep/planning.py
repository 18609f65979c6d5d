"""What threshold_sweep asks of an engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan import rows
from pipeline.plan.areas import Areas
from pipeline.plan.checks import doubtful_groups, duplicate_check, file_check, missing_check, outside_check
from pipeline.plan.counts import Query, Sweep
from pipeline.plan.nodes import Check, Relation
from pipeline.plan.plan import Plan
from pipeline.queries.dialect import column, double, is_finite
from pipeline.queries.load import statement
from pipeline.sources.source import SCORE_GIVEN
from pipeline.stages.threshold_sweep.contract import COUNT_NAMES, HEAVIEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.sources.source import Source
    from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters

SCORE_OR_LOWEST = "score_or_lowest"
MOST_WEIGHT, LEAST_WEIGHT = 1e6, 1e-6
LIKELIHOOD = ("n", "n_outside", "weights", "squares", "first", "weighted", "second", "squared_errors")


def plan(params: ThresholdSweepParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the predictions, count labels per bin, and ask for areas and likelihoods.

    Raises:
        DataError: the predictions lack a column that the parameters need.
    """
    return _Planner(params, sources["predictions"]).plan()


@dataclass(frozen=True)
class _Planner:
    params: ThresholdSweepParameters
    predictions: Source

    def plan(self) -> Plan:
        by = rows.resolve_by(self.params.by, [self.predictions])
        names = [each.name for each in by]
        evaluated = self._evaluated(names)
        missed = self.params.counts_missed
        sweep = Sweep("predictions", evaluated, "score", self.params.grid(), replicated=self.replicated, missed=missed)
        name = "weighted_counts" if self.weighted else "counts"
        likelihood = Query("threshold_sweep/likelihood", columns=LIKELIHOOD, into="likelihood")
        return Plan(
            nodes=(
                *self._relations(by, evaluated),
                *self._checks(),
                Query(f"threshold_sweep/{name}", columns=COUNT_NAMES, sweep=sweep),
                likelihood,
                *self._heaviest(),
                self._areas(names),
            ),
            sources=(self.predictions,),
            by=by,
            used=("n_positive", "n_negative"),
            accounting=Query("threshold_sweep/accounting", {"missed": float(missed)}),
            positive=column("label"),
            warnings=tuple(self._warnings(by)),
            facts={"independent": self.params.first_cluster or "rows"},
        )

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.predictions.has("weight")

    @property
    def replicated(self) -> bool:
        """Whether replicates of clusters, not rows, are independent."""
        return self.params.cluster is not None and self.params.is_replicated

    def _evaluated(self, by: Sequence[str]) -> exp.Query:
        """The rows that `where` keeps, with replicate; those without a valid score may count, as minus infinity."""
        score = {"score_given": SCORE_OR_LOWEST} if self.params.counts_missed else {}
        if not self.replicated:
            return statement("threshold_sweep/evaluated_predictions", by, columns=score)
        columns = score | {"cluster_key": str(self.params.cluster_column)}
        segment = {"p": by}
        return statement("threshold_sweep/evaluated_predictions_of_clusters", segment, columns=columns)

    def _relations(self, by: Sequence[rows.Grouped], evaluated: exp.Query) -> Iterator[Relation]:
        names = ["score", "label", *(name for name in ("weight", "id") if self.predictions.is_mapped(name))]
        cluster = self.params.cluster_column
        yield rows.read(self.predictions, [*names, *([cluster] if cluster is not None else [])], by, self._derived())
        if self.replicated and cluster is not None:
            yield from rows.replicate_relations(f"{self.predictions.name}_read", cluster, self.params.n_replicates)
        yield Relation("evaluated_predictions", evaluated)
        used = statement("threshold_sweep/weighted_predictions", [each.name for each in by])
        yield Relation("weighted_predictions", used)

    def _derived(self) -> dict[str, exp.Expr]:
        """The weight of rows that have none, and the score that counts where rows without a valid one do."""
        weight: dict[str, exp.Expr] = {} if self.weighted else {"weight": double(1.0)}
        if not self.params.counts_missed:
            return weight
        score = column(SCORE_GIVEN)
        lowest = exp.Case().when(is_finite(score), score.copy()).else_(double(-math.inf))
        return weight | {SCORE_OR_LOWEST: lowest}

    def _heaviest(self) -> Iterator[Query]:
        """How heavy a row may be that was not observed, where rows have weights."""
        if self.weighted:
            yield Query("threshold_sweep/heaviest", columns=HEAVIEST, into="heaviest", additive=False)

    def _areas(self, by: Sequence[str]) -> Areas:
        predictions = {"weighted_predictions": "evaluated_predictions"} if self.params.counts_missed else {}
        return Areas(
            rows=statement("threshold_sweep/scored", by, relations=predictions),
            exact=self.params.method == "exact",
            width=self.params.width,
            span=self.predictions.span("score"),
            weighted=self.weighted,
            replicated=self.replicated,
            random_sizes=self.params.class_sizes == "random",
            missed=self.params.counts_missed,
            confidence=self.params.confidence,
            resampling=self.params.resampling,
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
    return file_check("threshold_sweep/checks/no_weight", predictions, located=False)


def _tiny_weight(predictions: Source) -> Check:
    """Weights of which 15 decimals keep too little."""
    return file_check("threshold_sweep/checks/tiny_weight", predictions, values={"least": LEAST_WEIGHT})
