"""What threshold_sweep asks of an engine."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...plan import rows
from ...plan.accounting import NOT_LABELLED, STATES, Roles
from ...plan.area_work import MOST_CELLS as MOST_SINGLE
from ...plan.area_work import Areas
from ...plan.count_tables import losses_of_scores
from ...plan.counts import Fineness, LossesOfCells, Query, Sums, Sweep, SweptCells
from ...plan.nodes import (
    Check,
    Relation,
    doubtful_groups,
    doubtful_scores,
    duplicate_check,
    file_check,
    missing_check,
    outside_check,
)
from ...plan.plan import OptionalTable, Plan, Sample
from ...queries.dialect import all_rows, column, double, is_finite
from ...queries.load import statement
from ...records import dataclass
from ...sources.inputs import is_passed_in
from ...sources.source import SCORE_GIVEN
from ...tables.columns import SECOND_REPLICATE
from . import calibration
from .contract import (
    COUNT_NAMES,
    CROSSED,
    CROSSED_LIKELIHOOD,
    DRAWN,
    HEAVIEST,
    LIGHTEST,
    LIKELIHOOD,
)
from .tables import requested_tables
from .units import OUTCOMES, POINTS, OutcomeSampler, UnitsOfSweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...plan.nodes import Node
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import ThresholdSweepParameters


SCORE_OR_LOWEST = "score_or_lowest"
MOST_WEIGHT, LEAST_WEIGHT = 1e6, 1e-6
MOST_ROWS_FOR_OUTCOMES = 1_000_000
OUTCOMES_WITH_NONE = 'uncertainty = "none" leaves it out, as it reads the rows once more; outcomes = true makes it'
MOST_BINS_WITH_SUMS = 4096  # from some ten thousand on, sums by bin take longer than another scan
REMEDIES_OF_SAMPLE = {
    NOT_LABELLED: "Fill in the column label of the sheet.",
    **dict.fromkeys(STATES, 'Set invalid_scores = "drop" to leave them out: they are in no stratum.'),
}
GROUPS = 16  # that are expected where rows are grouped
FEW_ROWS = 50_000


def plan(params: ThresholdSweepParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the predictions, count labels per bin, and ask for areas and likelihoods.

    Raises:
        DataError: the predictions lack a column that the parameters need.
    """
    return _Planner(params, sources["predictions"], sources.get("labels"), sources.get("checked")).plan()


@dataclass(frozen=True)
class _Planner:
    params: ThresholdSweepParameters
    predictions: Source
    labels: Source | None = None
    checked: Source | None = None

    def plan(self) -> Plan:
        by = rows.resolve_by(self.params.by, [self.predictions])
        names = [each.name for each in by]
        evaluated = self._evaluated(names)
        missed = self.params.counts_missed
        swept = all_rows("evaluated_predictions") if self.is_small else evaluated
        grid = self.params.grid() if self.fineness is None else self.fineness.grid()
        sweep = Sweep("predictions", swept, "score", grid, replicated=self.replicated, missed=missed)
        return Plan(
            nodes=(
                *self._relations(by, evaluated),
                *self._checks(),
                *self.units.checks(),
                *self._roles(by),
                *self._counts(sweep),
                *self._heaviest(),
                *rows.frame_in_time(self.order),
                self._areas(names),
                *self._calibration(names),
                *self._sample(names),
                *self.units.nodes(names, weighted=self.weighted),
            ),
            sources=tuple(source for source in (self.predictions, self.labels, self.checked) if source is not None),
            by=by,
            used=("n_positive", "n_negative"),
            accounting=Query(f"threshold_sweep/{self._accounting}", {"missed": float(missed)}),
            other_accounting={"labels": Query("threshold_sweep/accounting_of_labels")},
            positive=column("label") if self.labels is None else None,
            remedies={} if self.labels is None else REMEDIES_OF_SAMPLE,
            warnings=tuple(self._warnings(by)),
            facts={"independent": self._independent(), **self.units.facts, **self._limits},
            optional=(
                self.outcomes,
                self.units.table,
                *calibration.optional_tables(self.params, self.predictions),
                *requested_tables(self.params, weighted=self.weighted),
            ),
        )

    def _counts(self, sweep: Sweep) -> Iterator[Node]:
        """Counts by threshold and the likelihood: one scan for both where few bins make that cheaper than two."""
        if self.fineness is not None:
            yield SweptCells("threshold_sweep/counts", columns=COUNT_NAMES, sweep=sweep, fineness=self.fineness)
            of_rows = Query("threshold_sweep/likelihood_of_rows", columns=LIKELIHOOD, into="likelihood")
            yield LossesOfCells(of_rows, self.params.width)
            return
        likelihood = Sums("likelihood", LIKELIHOOD, self._of(CROSSED_LIKELIHOOD))
        of_both = self._counts_with_likelihood(sweep.grid)
        name = "weighted_counts" if self.weighted else "counts_and_likelihood" if of_both else "counts"
        yield Query(
            f"threshold_sweep/{name}",
            columns=COUNT_NAMES,
            sweep=sweep,
            beside=self.beside,
            crossed=self._of(CROSSED),
            sums=likelihood if of_both else None,
        )
        if not of_both:
            name = "likelihood" if self.weighted else "likelihood_of_rows"
            yield Query(
                f"threshold_sweep/{name}",
                columns=likelihood.columns,
                into=likelihood.into,
                beside=self.beside,
                crossed=likelihood.crossed,
                of_scores=None if self.weighted else losses_of_scores,
            )

    def _counts_with_likelihood(self, grid: Grid | None) -> bool:
        """Whether bins are so few that their sums stay in the cache of a core; else a scan of its own costs less."""
        if self.weighted or self.replicated or grid is None:
            return False
        return (len(grid.thresholds) + 1) * (GROUPS if self.params.by_columns else 1) <= MOST_BINS_WITH_SUMS

    @cached_property
    def fineness(self) -> Fineness | None:
        """How fine the cells of one scan are from which all follows; None where rows are few, or not alike."""
        thresholds, params = self.params.grid(), self.params
        unlike = self.weighted or self.replicated or params.counts_missed
        if params.method == "exact" or unlike or thresholds is None or self.predictions.rows <= MOST_SINGLE:
            return None
        return Fineness.of(thresholds, params.calibration_bins, self.predictions.span("score"), params.width)

    @property
    def outcomes(self) -> OptionalTable:
        """The sample of single rows, for which they are read once more."""
        sources, asked = (self.predictions,), self.params.outcomes
        lacking = OUTCOMES_WITH_NONE if asked == "auto" and self.params.uncertainty == "none" else ""
        return OptionalTable(OUTCOMES, "outcomes", asked, MOST_ROWS_FOR_OUTCOMES, sources, told=False, lacking=lacking)

    @property
    def units(self) -> UnitsOfSweep:
        """The table of units."""
        return UnitsOfSweep(self.params, self.predictions, self._counted)

    @property
    def is_small(self) -> bool:
        """Whether rows are so few that planning a query takes longer than its scan: they are kept, ready to be read."""
        files = self.predictions.files
        if self.labels is not None:
            return True
        return all(is_passed_in(file) for file in files) and self.predictions.rows <= FEW_ROWS

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.labels is not None or self.predictions.has("weight")

    @property
    def _limits(self) -> dict[str, str]:
        """How limits are made where they are those of no other stage, in words."""
        return {} if self.labels is None else {"limits": "from draws that know the strata of the sample"}

    @property
    def _accounting(self) -> str:
        return "accounting" if self.labels is None else "accounting_of_sample"

    @property
    def _counted(self) -> dict[str, str]:
        """The relation of the rows that are counted, in the place of that of all predictions."""
        return {} if self.labels is None else {"predictions_read": DRAWN}

    @property
    def replicated(self) -> bool:
        """Whether replicates of clusters, not rows, are independent."""
        return self.params.cluster is not None and self.params.is_replicated

    @property
    def beside(self) -> tuple[str, ...]:
        """The column of the replicate of the second parent, where rows have two."""
        return (SECOND_REPLICATE,) if self.replicated and self.params.second_cluster_column is not None else ()

    def _of(self, crossed: tuple[str, ...]) -> tuple[str, ...]:
        """Count tables by the second parent and by both, where rows have two."""
        return crossed if self.beside else ()

    def _independent(self) -> str:
        """What is independent, in words."""
        cluster = self.params.cluster
        return " and ".join(cluster) if isinstance(cluster, tuple) else cluster or "rows"

    def _evaluated(self, by: Sequence[str]) -> exp.Query:
        """The rows that `where` keeps, with replicate; those without a valid score may count, as minus infinity."""
        score = {"score_given": SCORE_OR_LOWEST} if self.params.counts_missed else {}
        if not self.replicated:
            return statement("threshold_sweep/evaluated_predictions", by, columns=score, relations=self._counted)
        columns = score | {"cluster_key": str(self.params.cluster_column)}
        segment = {"p": by}
        if not self.beside:
            name = "threshold_sweep/evaluated_predictions_of_clusters"
            return statement(name, segment, columns=columns, relations=self._counted)
        columns |= {"second_cluster_key": str(self.params.second_cluster_column)}
        return statement("threshold_sweep/evaluated_predictions_of_two_parents", segment, columns=columns)

    def _relations(self, by: Sequence[rows.Grouped], evaluated: exp.Query) -> Iterator[Node]:
        clusters = dict.fromkeys([*self._clusters(), *([] if self.order is None else [self.order])])
        yield rows.read(self.predictions, [*self._fields(), *clusters], by, self._derived())
        if self.labels is not None:
            yield from self._labelled(self.labels, [grouped.name for grouped in by], tuple(clusters))
        if self.replicated:
            yield from self._replicates()
        yield Relation("evaluated_predictions", evaluated, keep=self.is_small)
        segment = [*self.beside, *(grouped.name for grouped in by)]
        yield Relation("weighted_predictions", statement("threshold_sweep/weighted_predictions", segment))

    def _labelled(self, labels: Source, by: list[str], clusters: tuple[str, ...]) -> Iterator[Node]:
        """The rows of a sheet of labels, and those of the predictions that they are of."""
        from .few_labels import LabelledRows  # noqa: PLC0415 - only labels of a sample need it

        given = [name for name in ("probability", "stratum") if labels.has(name)]
        yield rows.read(labels, ["id", "label", *given], (), {}, located=labels.without_places is None)
        if self.checked is not None:
            yield rows.read(self.checked, ["id", "label"], (), {})
        labelled = LabelledRows(self.params, self.predictions, labels, tuple(by), clusters)
        yield Relation("rows_to_sample", statement("threshold_sweep/rows_to_sample", labelled.read))
        yield labelled

    def _fields(self) -> list[str]:
        """The fields that are read."""
        if self.labels is not None:
            return ["score", "id", *(name for name in ("weight", "proxy") if self.predictions.has(name))]
        return ["score", "label", *(name for name in ("weight", "id") if self.predictions.is_mapped(name))]

    def _clusters(self) -> list[str]:
        """The columns of the clusters."""
        columns = (self.params.cluster_column, self.params.second_cluster_column)
        return [name for name in columns if name is not None]

    @cached_property
    def order(self) -> str | None:
        """The column that orders the clusters in time, as rows are read; None: their order means nothing."""
        cluster = self.params.cluster
        if not self.replicated or not isinstance(cluster, str):
            return None
        return rows.order_of_clusters(self.predictions, cluster, self.params.cluster_order)

    def _replicates(self) -> Iterator[Relation]:
        """The replicates of the clusters; of two parents few, so that counts by both stay few."""
        read = f"{self.predictions.name}_read" if self.labels is None else DRAWN
        wanted = self.params.n_replicates
        clusters = self._clusters()
        if not self.beside:
            yield from rows.replicate_relations(read, clusters[0], wanted, order=self.order)
            return
        yield from rows.replicate_relations(read, clusters[0], wanted or rows.HASH_REPLICATES)
        yield from rows.replicate_relations(read, clusters[1], rows.HASH_REPLICATES, of="second_parents")

    def _derived(self) -> dict[str, exp.Expr]:
        """The weight of rows that have none, and the score that counts where rows without a valid one do."""
        weight: dict[str, exp.Expr] = {} if self.weighted else {"weight": double(1.0)}
        if not self.params.counts_missed:
            return weight
        score = column(SCORE_GIVEN)
        lowest = exp.Case().when(is_finite(score), score.copy()).else_(double(-math.inf))
        return weight | {SCORE_OR_LOWEST: lowest}

    def _sample(self, by: Sequence[str]) -> Iterator[Sample]:
        """Single rows that the chosen thresholds point at."""
        if self.outcomes.is_possible:
            score: str | exp.Expr = "score"
            if self.params.counts_missed:
                score = exp.func("coalesce", column("score"), double(-math.inf))
            names = [*by, *(["id"] if self.labels is not None or self.predictions.is_mapped("id") else [])]
            columns = {"used_score": score}
            query = statement("threshold_sweep/sampled_predictions", names, columns=columns, relations=self._counted)
            yield Sample(OUTCOMES, query, self._sampler)

    def _sampler(self, tables: Mapping[str, pl.DataFrame]) -> OutcomeSampler:
        return OutcomeSampler(self.params.groupings, tables[POINTS], self.params.boundary)

    def _heaviest(self) -> Iterator[Query]:
        """How heavy a row may be that was not observed, where rows have weights."""
        if self.weighted:
            yield Query("threshold_sweep/heaviest", columns=(*HEAVIEST, *LIGHTEST), into="heaviest", additive=False)

    def _areas(self, by: Sequence[str]) -> Areas:
        predictions = {"weighted_predictions": "evaluated_predictions"} if self.params.counts_missed else {}
        return Areas(
            rows=statement("threshold_sweep/scored", [*self.beside, *by], relations=predictions),
            exact=self.params.method == "exact",
            width=self.params.width,
            span=None if self.params.method == "exact" else self.predictions.span("score"),
            weighted=self.weighted,
            replicated=self.replicated,
            random_sizes=self.params.class_sizes == "random",
            missed=self.params.counts_missed,
            second_replicates=rows.HASH_REPLICATES if self.beside else 0,
            in_time=self.order is not None,
            confidence=self.params.confidence,
            resampling=self.params.resampling,
            in_memory=all(map(is_passed_in, self.predictions.files)),
        )

    def _calibration(self, by: Sequence[str]) -> Iterator[Node]:
        return calibration.nodes(
            self.params, by, weighted=self.weighted, replicated=self.replicated, beside=self.beside
        )

    def _checks(self) -> Iterator[Check]:
        if self.labels is not None and self.predictions.has("proxy"):
            yield missing_check(self.predictions, "proxy")
        if self.predictions.has("weight"):
            yield missing_check(self.predictions, "weight")
            yield outside_check(self.predictions, "weight", 0.0, MOST_WEIGHT)
            yield _no_weight(self.predictions)
            yield _tiny_weight(self.predictions)
        yield from calibration.checks(self.params, self.predictions)
        for cluster in dict.fromkeys([*self._clusters(), *([] if self.order is None else [self.order])]):
            yield missing_check(self.predictions, cluster)
        if (
            self.labels is None and self.params.duplicates == "error" and self.predictions.is_mapped("id")
        ):  # a name too common to guess
            keys = ("id", *self.params.by_columns)  # the same item may be predicted once in each group
            remedy = 'Keep one row per item and group, or set duplicates = "keep" to count every row.'
            yield duplicate_check(self.predictions, keys, remedy=remedy, of_systems=True)

    def _roles(self, by: Sequence[rows.Grouped]) -> Iterator[Roles]:
        """What columns without a role say of rows that are taken as independent."""
        if self.params.uncertainty != "none" and self.labels is None:
            yield Roles(self.predictions, by, self._fields(), self._clusters(), ("label", "score"))

    def _warnings(self, by: Sequence[rows.Grouped]) -> Iterator[str]:
        yield from doubtful_groups([self.predictions], by)
        yield from doubtful_scores(self.predictions)


def _no_weight(predictions: Source) -> Check:
    """Weights that are 0 in every row."""
    return file_check("threshold_sweep/checks/no_weight", predictions, located=False)


def _tiny_weight(predictions: Source) -> Check:
    """Weights of which 15 decimals keep too little."""
    return file_check("threshold_sweep/checks/tiny_weight", predictions, values={"least": LEAST_WEIGHT})
