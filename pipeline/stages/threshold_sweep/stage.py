"""The stage threshold_sweep: what it asks of an engine, what follows from its counts, and the stage put together."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import IN_TIME, RATIOS, SECOND_REPLICATE, THRESHOLD, beside, divide, nothing, ratios
from ...base.dialect import all_rows, column, double, is_finite
from ...base.records import dataclass
from ...base.schemas import GROUPING, group_text
from ...base.sql_files import statement
from ...base.visible_text import of_every
from ...metrics.curves.decisions import FOLDS, at_choices, split_rows
from ...metrics.curves.operating_points import (
    Candidates,
    Outcomes,
    f_beta_of_counts,
    operating_points,
    ratios_of_counts,
)
from ...metrics.uncertainty.limits import warnings_of_marks, with_numbers
from ...metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows
from ...metrics.uncertainty.replicates import Cube
from ...plan.accounting import NOT_LABELLED, STATES
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
from ...plan.roles import Roles
from ...plan.rows import HASH_REPLICATES, frame_in_time, order_of_clusters, read, replicate_relations, resolve_by
from ...sources.inputs import is_passed_in
from ...sources.source import SCORE_GIVEN
from ..figures import CHOICE, QUALITY_IN_SAMPLE, SAME_DATA, on_other_data, words_of_choice
from ..stage import (
    Stage,
    Summary,
    UnitTable,
    f1_curve,
    groups_with,
    groups_without,
    integer,
    interval,
    number,
    of_group,
)
from . import calibration, figures
from .areas import AREAS, areas_table, bands_table
from .calibration import RELIABILITY_TABLE, calibration_tables, few_outside
from .contract import (
    CHECKED,
    CONFUSION,
    COST_PER_ROW,
    COUNT_NAMES,
    COUNTS,
    CROSSED,
    CROSSED_LIKELIHOOD,
    DRAWN,
    HEAVIEST,
    LABELS,
    LIGHTEST,
    LIKELIHOOD,
    OF_DRAWN,
    PREDICTIONS,
    ThresholdSweepParameters,
    clusters_of_groups,
    confusion_of,
    counts_of_clusters,
    f_beta,
    kind_of_counts,
    limits_of_clusters,
    limits_of_rows,
    outcomes,
    with_further,
    with_heaviest,
    with_intervals,
)
from .decisions import (
    Swept,
    at_own_thresholds,
    cost_cell,
    cost_text,
    decision_tables,
    is_about_cost,
    not_allocated,
    with_costs,
)
from .figures import EVIDENCE, SAMPLE_SIZES
from .tables import TABLES, averages_table, further_columns, requested_tables
from .units import COST, OUTCOMES, POINTS, UNITS, OutcomeSampler, UnitsOfSweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...metrics.curves.decisions import Ints
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from ...metrics.uncertainty.replicates import GroupCounts
    from ...plan.nodes import Grouped, Node
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .few_labels import Estimates


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
        by = resolve_by(self.params.by, [self.predictions])
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
                *frame_in_time(self.order),
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
        """How limits are made that no other stage has, in words."""
        return {} if self.labels is None else {"limits": "from draws that know the strata of the sample"}

    @property
    def _accounting(self) -> str:
        return "accounting" if self.labels is None else "accounting_of_sample"

    @property
    def _counted(self) -> dict[str, str]:
        """The relation of the rows that are counted, under the name of the predictions that queries read."""
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
        """The independent units, in words."""
        cluster = self.params.cluster
        return " and ".join(cluster) if isinstance(cluster, tuple) else cluster or "rows"

    def _evaluated(self, by: Sequence[str]) -> exp.Query:
        """The rows that `where` keeps, with replicate; those without a valid score may count, as minus infinity."""
        columns = {"score_given": SCORE_OR_LOWEST} if self.params.counts_missed else {}
        columns |= dict(zip(("cluster_key", "second_cluster_key"), self._clusters(), strict=False))
        kind = "_of_two_parents" if self.beside else "_of_clusters" if self.replicated else ""
        segment = {"p": by} if self.replicated else by
        name = f"threshold_sweep/evaluated_predictions{kind}"
        return statement(name, segment, columns=columns, relations=self._counted)

    def _relations(self, by: Sequence[Grouped], evaluated: exp.Query) -> Iterator[Node]:
        clusters = dict.fromkeys([*self._clusters(), *([] if self.order is None else [self.order])])
        yield read(self.predictions, [*self._fields(), *clusters], by, self._derived())
        if self.labels is not None:
            yield from self._labelled(self.labels, [grouped.name for grouped in by], tuple(clusters))
        if self.replicated:
            yield from self._replicates()
        yield Relation("evaluated_predictions", evaluated, keep=self.is_small)
        segment = [*self.beside, *(grouped.name for grouped in by)]
        yield Relation("weighted_predictions", statement("threshold_sweep/weighted_predictions", segment))

    def _labelled(self, labels: Source, by: list[str], clusters: tuple[str, ...]) -> Iterator[Node]:
        """The rows of a sheet of labels, and the predictions that they belong to."""
        from .few_labels import LabelledRows  # noqa: PLC0415 - only labels of a sample need it

        given = [name for name in ("probability", "stratum") if labels.has(name)]
        yield read(labels, ["id", "label", *given], (), {}, located=labels.without_places is None)
        if self.checked is not None:
            yield read(self.checked, ["id", "label"], (), {})
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
        return order_of_clusters(self.predictions, cluster, self.params.cluster_order)

    def _replicates(self) -> Iterator[Relation]:
        """The replicates of the clusters; of two parents few, so that counts by both stay few."""
        relation = f"{self.predictions.name}_read" if self.labels is None else DRAWN
        wanted = self.params.n_replicates
        clusters = self._clusters()
        if not self.beside:
            yield from replicate_relations(relation, clusters[0], wanted, order=self.order)
            return
        yield from replicate_relations(relation, clusters[0], wanted or HASH_REPLICATES)
        yield from replicate_relations(relation, clusters[1], HASH_REPLICATES, of="second_parents")

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
            second_replicates=HASH_REPLICATES if self.beside else 0,
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

    def _roles(self, by: Sequence[Grouped]) -> Iterator[Roles]:
        """A look at columns without a role, where rows are taken as independent."""
        if self.params.uncertainty != "none" and self.labels is None:
            yield Roles(self.predictions, by, self._fields(), self._clusters(), ("label", "score"))

    def _warnings(self, by: Sequence[Grouped]) -> Iterator[str]:
        yield from doubtful_groups([self.predictions], by)
        yield from doubtful_scores(self.predictions)


def _no_weight(predictions: Source) -> Check:
    """Weights that are 0 in every row."""
    return file_check("threshold_sweep/checks/no_weight", predictions, located=False)


def _tiny_weight(predictions: Source) -> Check:
    """Weights of which 15 decimals keep too little."""
    return file_check("threshold_sweep/checks/tiny_weight", predictions, values={"least": LEAST_WEIGHT})


# What follows from the counts of threshold_sweep: curve, areas, operating points, averages, and words.


FEW = 20  # rows of a class, below which areas say little


def derive(params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of threshold_sweep."""
    as_counted, counts = counts, at_own_thresholds(params, counts)
    crossed = [counts[name] for name in CROSSED if name in counts]
    table, in_time = counts["counts"], IN_TIME in counts
    cube = Cube.of(table, None, params.threshold_values, params.boundary, crossed, in_time=in_time)
    keys = list(cube.keys)
    clusters = clusters_of_groups(params, cube)
    estimates = _estimates(params, counts, keys)
    ratios_of_all = with_further(_curve(cube, estimates), params.metrics)
    curve = with_heaviest(ratios_of_all, counts.get("heaviest"), keys)
    if estimates is None:
        curve = with_intervals(curve, cube, params, clusters)
    else:
        curve = estimates.with_intervals(curve, clusters)
    choices = candidates(curve, cube, params, estimates)
    points = operating_points(curve, keys, params.operating_points, choices, f_beta, outcomes(), params.boundary)
    points = with_numbers(points, clusters, keys)
    points = with_costs(points, cube, params, within=params.cluster is None or cube.within_budget(curve.height))
    points = points if estimates is None else estimates.with_costs(points, curve)
    areas = areas_table(params, counts, keys, clusters, estimates)
    bands = bands_table(params, curve, points, cube, clusters, estimates) if params.bands else None
    working = [*(f"{name}_squares" for name in CONFUSION), *HEAVIEST]
    working += [] if estimates is None else [f"{name}{OF_DRAWN}" for name in CONFUSION]
    shown = curve[[name for name in curve.columns if name not in working]]
    return {
        "threshold_sweep_curve": shown,
        "threshold_sweep_areas": areas,
        "threshold_sweep_operating_points": points[[name for name in points.columns if name not in working]],
        "threshold_sweep_averages": averages_table(params, counts["counts"], shown, areas, keys),
        **calibration_tables(params, counts, clusters),
        **({} if bands is None else {"threshold_sweep_bands": bands}),
        **decision_tables(params, as_counted, Swept(cube, curve, points, clusters, estimates)),
    }


def _estimates(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]
) -> Estimates | None:
    """Estimates from the labels of a sample; None where all rows have labels."""
    if params.labels is None:
        return None
    from .few_labels import Estimates  # noqa: PLC0415 - only labels of a sample need it

    return Estimates.of(params, counts, keys)


def _curve(cube: Cube, estimates: Estimates | None = None) -> pl.DataFrame:
    """Counts, weights and ratios at every threshold."""
    totals = cube.totals(COUNT_NAMES).rename({name: f"all_{name}" for name in COUNT_NAMES})
    frame = beside(cube.at_or_above(COUNT_NAMES), totals, cube.keys)
    weighted = kind_of_counts(cube.counts) == "weight"
    squares = (each.cast(pl.Float64) for each in _confusion("squares", "_squares"))
    frame = frame.with_columns(*_confusion("n", ""), *_confusion("weight", "_weight"), *squares)
    counted = _whole(frame[[f"{name}_weight" for name in CONFUSION]]) if weighted else frame[list(CONFUSION)]
    weights = (
        frame[f"{name}_weight"].cast(pl.Float64) if weighted else nothing([f"{name}_weight"], frame.height)[0]
        for name in CONFUSION
    )
    frame, kinds = frame.with_columns(*weights), ["_weight", "_squares"]
    if estimates is not None:
        frame, kinds = estimates.estimated(frame), [*kinds, OF_DRAWN]
        counted = frame[[f"{name}_weight" for name in CONFUSION]]
    of_kinds = (f"{name}{kind}" for kind in kinds for name in CONFUSION)
    return frame[[*cube.keys, THRESHOLD, *CONFUSION, *of_kinds]].hstack(_ratios(counted))


def _confusion(source: str, suffix: str) -> list[pl.Expr]:
    names = ("positive", "negative")
    retrieved = [pl.col(f"{source}_{name}") for name in names]
    missed = [pl.col(f"all_{source}_{name}") - pl.col(f"{source}_{name}") for name in names]
    return [expr.alias(f"{name}{suffix}") for name, expr in zip(CONFUSION, (*retrieved, *missed), strict=True)]


def _whole(decimals: pl.DataFrame) -> pl.DataFrame:
    """The decimals of each row as whole numbers, in the largest power of ten of which all of them are multiples.

    Their ratios are the same, and of weights with few digits they are rounded only once: 0.3 / 0.4 is 0.75.
    """
    numbers = decimals.select(pl.all().to_physical())
    for digits in (8, 4, 2, 1):  # 15 in all, the decimals that there are
        shorter = pl.all_horizontal(pl.all() % 10**digits == 0)
        numbers = numbers.select(
            pl.when(shorter).then(pl.col(name) // 10**digits).otherwise(pl.col(name)).alias(name)
            for name in numbers.columns
        )
    return numbers


def _ratios(counted: pl.DataFrame) -> pl.DataFrame:
    """Ratios of whole numbers of true and false positives and negatives; 0/0 is NULL, and `undefined` says why."""
    tp, fp, fn, tn = (pl.col(name) for name in counted.columns)
    reason = pl.when(tp + fp <= 0).then(pl.lit("no_prediction")).when(tp + fn <= 0).then(pl.lit("no_positive"))
    return counted.select_seq(
        *ratios(tp, fp, fn),
        divide(fp, fp + tn).alias("fpr"),
        reason.when(fp + tn <= 0).then(pl.lit("no_negative")).alias("undefined"),
    )


# What criteria choose from: limits and counts by fold of every group.


def candidates(
    curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, estimates: Estimates | None = None
) -> Iterator[Candidates]:
    """Every group of the curve, with the working columns of squares and heaviest weights.

    A promise allows for other class sizes, whatever `class_sizes` says, as the next data may have others.
    """
    within_budget = params.cluster is None or cube.within_budget(curve.height)
    promises = params.is_replicated and within_budget
    any_weight = curve["tp_weight"].null_count() < curve.height
    if not any(criterion.confidence is not None for criterion in params.operating_points):  # counts are enough
        numbers = (f"{name}{suffix}" for suffix in ("", "_weight", "_squares", OF_DRAWN) for name in CONFUSION)
        wanted = (*cube.keys, THRESHOLD, *numbers, *HEAVIEST)
        curve = curve[[name for name in wanted if name in curve.columns]]
    for rows, group in cube.beside(curve):

        def lower(name: str, confidence: float, rows: pl.DataFrame = rows, group: GroupCounts = group) -> Floats:
            if estimates is not None:
                return estimates.lower(rows, name, confidence)
            if params.cluster is None:
                return limits_of_rows(rows, confidence, [name], fixed_sizes=False)[name][0]
            return limits_of_clusters(rows, group, confidence, [name])[name][0]

        is_split = params.cluster is None or params.uncertainty != "none"
        counts = _by_fold(rows, group, params, weighted=any_weight) if is_split else None
        yield Candidates(
            rows=rows,
            lower=lower if promises else None,
            retrieved=(rows["tp"] + rows["fp"]).to_numpy().astype(np.float64),
            counts="none" if counts is None else counts,
            ratios=ratios_of_counts,
            f_beta=f_beta_of_counts,
            outcomes=lambda counts: Outcomes(*counts),
            **_limits(rows, group, params, counts, estimates) if promises and counts is not None else {},
        )


def _limits(
    rows: pl.DataFrame,
    group: GroupCounts,
    params: ThresholdSweepParameters,
    counts: Sequence[Floats],
    estimates: Estimates | None,
) -> dict[str, Callable[..., Any]]:
    """How `Candidates` has its limits."""
    if estimates is not None:
        return {"at_folds": partial(_limits_of_sample, rows, estimates)}
    if params.cluster is not None:
        return {"at_folds": partial(_limits_of_clusters, rows, group, params)}
    weighted = rows["tp_weight"].null_count() < rows.height
    at_folds = partial(_weights_at_folds, rows, counts) if weighted else _counts_at_folds
    return {"at_folds": at_folds, "limits": partial(_limits_of_rows, params)}


def _counts_at_folds(_chosen: Ints, pooled: Sequence[Floats]) -> Sequence[Floats]:
    """The outcomes of independent rows whose folds have thresholds of their own."""
    return pooled


def _weights_at_folds(
    rows: pl.DataFrame, weights: Sequence[Floats], chosen: Ints, _pooled: Sequence[Floats]
) -> list[Floats]:
    """The same of weights, their squares, and the heaviest ones."""
    heaviest = [rows[name][:1].to_numpy() for name in HEAVIEST]
    return [at_choices(side, chosen).sum(axis=0) for side in (*weights, *_of_rows(rows, "_squares"))] + heaviest


def _limits_of_rows(params: ThresholdSweepParameters, at_folds: Sequence[Sequence[Floats]]) -> dict[str, Limits]:
    """Limits of the ratios of several groups, from `_counts_at_folds` or `_weights_at_folds`."""
    counts = [np.concatenate(sides) for sides in zip(*at_folds, strict=True)]
    squares = counts[len(CONFUSION) :]
    weights = Weights(Confusion(*squares[: len(CONFUSION)]), *squares[len(CONFUSION) :]) if squares else None
    fixed = params.class_sizes == "fixed"
    outcomes = Confusion(*counts[: len(CONFUSION)])
    return intervals_of_rows(outcomes, weights, params.confidence, fixed_sizes=fixed, names=RATIOS)


def _limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    params: ThresholdSweepParameters,
    chosen: Ints,
    _pooled: Sequence[Floats],
) -> dict[str, Limits]:
    """Limits of the ratios of a group whose folds have thresholds of their own.

    Of two parents the first is in folds; the second, which tells the spread alone, is taken at the middle one of their
    thresholds.
    """
    (first, *crossed), heaviest = counts_of_clusters(rows, group)
    middle = np.full(1, np.sort(chosen)[len(chosen) // 2])
    of_folds, *of_others = (
        Confusion(*(at_choices(side, at) for side in (each.tp, each.fp, each.fn, each.tn)), in_time=each.in_time)
        for each, at in zip((first, *crossed), (chosen, *[middle] * len(crossed)), strict=True)
    )
    resampling = params.resampling
    return intervals_of_clusters(
        of_folds, params.confidence, heaviest=heaviest, names=RATIOS, crossed=of_others, resampling=resampling
    )


def _limits_of_sample(
    rows: pl.DataFrame, estimates: Estimates, chosen: Ints, pooled: Sequence[Floats]
) -> dict[str, Limits]:
    """Limits of the ratios of a group whose rows are labels of a sample.

    They lie as far from the ratios as those of the middle one of the thresholds lie from its estimates.
    """
    ratios = dict(zip(RATIOS, (*ratios_of_counts(pooled), f_beta_of_counts(pooled, 1.0)), strict=True))
    middle = int(np.sort(chosen)[len(chosen) // 2])
    limits = {}
    for name, ratio in ratios.items():
        estimate, lower, upper = estimates.at(rows, name, middle)
        limits[name] = np.maximum(ratio + lower - estimate, 0.0), np.minimum(ratio + upper - estimate, 1.0)
    return limits


def _by_fold(
    rows: pl.DataFrame, group: GroupCounts, params: ThresholdSweepParameters, *, weighted: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes by fold, or their weights: of clusters, else of rows."""
    if params.cluster is not None:
        counts = confusion_of(group.in_folds(FOLDS), "weight" if weighted else "n")
        return counts.tp, counts.fp, counts.fn, counts.tn
    of_weights = OF_DRAWN if f"tp{OF_DRAWN}" in rows.columns else "_weight"
    return _of_rows(rows, of_weights if weighted else "")


def _of_rows(rows: pl.DataFrame, suffix: str) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes of independent rows by fold, or what the columns with this suffix hold of them."""
    true, positives = _split(rows, ("tp", "fn"), suffix, seed=0)
    false, negatives = _split(rows, ("fp", "tn"), suffix, seed=1)
    return true, false, positives - true, negatives - false


def _split(rows: pl.DataFrame, names: tuple[str, str], suffix: str, *, seed: int) -> tuple[Floats, Floats]:
    """The retrieved part of one class, and all of it, by fold."""
    retrieved, missed = (rows[name].to_numpy() for name in names)
    weights = None
    if suffix:
        heavy, heavy_missed = (rows[f"{name}{suffix}"].to_numpy() for name in names)
        weights = (heavy, float(heavy[0] + heavy_missed[0]))
    return split_rows(retrieved, int(retrieved[0] + missed[0]), weights, seed=seed)


# What a run says of its results.


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    areas = tables["threshold_sweep_areas"]
    undefined = pl.col("undefined")
    conditions = {
        "no row with a true label": undefined == "no_positive",
        "no row with a false label": undefined == "no_negative",
    }
    messages = groups_without(areas, conditions)
    positives, negatives = pl.col("n_positive"), pl.col("n") - pl.col("n_positive")
    few, lopsided = areas.select(
        positives.is_between(1, FEW - 1).sum().alias("few"),
        ((positives >= FEW) & negatives.is_between(1, FEW - 1)).sum().alias("lopsided"),
    ).row(0)
    words = f"{groups_with(few, areas.height, only='there are')} fewer than {FEW} positives: areas are very uncertain"
    lacking = f"{groups_with(lopsided, areas.height, only='there are')} fewer than {FEW} negatives"
    of_negatives = f"{lacking}: ROC AUC is very uncertain"
    # a bin of few rows or clusters is no surprise, and its own mark says so
    of_groups = {name: table for name, table in tables.items() if name != RELIABILITY_TABLE.name}
    outside = few_outside(tables)
    of_few = ([words] if few else []) + ([of_negatives] if lopsided else [])
    return (*messages, *of_few, *outside, *not_allocated(tables), *warnings_of_marks(of_groups))


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The areas and the first operating point of every group, and the curve of F1 of the first group."""
    areas, points, curve = (tables[f"threshold_sweep_{name}"] for name in ("areas", "operating_points", "curve"))
    if areas.is_empty() or points.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any prediction.")
    labels = areas.columns[2 : areas.columns.index("n")]
    keys = [GROUPING.name, *labels]
    first_points = on_other_data(points.filter(pl.col("criterion") == points["criterion"][0]))
    shown = areas.join(first_points, on=keys, how="left", nulls_equal=True, suffix="_of_point")
    if shown.height > 1:
        shown = shown.sort("n", descending=True).sort(pl.col(GROUPING.name) != "all", maintain_order=True)
    is_costly = is_about_cost(first_points)
    rows = tuple(
        (
            group_text(row),
            integer(row["n"]),
            integer(row["n_positive"]),
            interval(row, "average_precision"),
            interval(row, "roc_auc"),
            number(row[THRESHOLD]),
            interval(row, "precision", "interval_quality_of_point"),
            interval(row, "recall", "interval_quality_of_point"),
            *([cost_cell(row, QUALITY_IN_SAMPLE)] if is_costly else []),
        )
        for row in shown.iter_rows(named=True)
    )
    values, title = f1_curve(curve, shown[:1][keys])
    return Summary(
        headers=(*HEADERS, *(["cost per row"] if is_costly else [])),
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(shown.row(0, named=True), _sentence(shown.row(0, named=True))),
        curve=values,
        curve_title=title,
        on_same_data=bool((first_points[CHOICE] == SAME_DATA).any() or is_costly),
    )


HEADERS = ("group", "rows", "positives", "average precision", "ROC AUC", "threshold", "precision", "recall")


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if not isinstance(precision, float) or not isinstance(recall, float):
        return "No threshold has both a precision and a recall."
    costs = f" A row costs {cost_text(row)} on average." if row.get(COST_PER_ROW) is not None else ""
    return (
        f"With scores of {number(row[THRESHOLD])} or more predicted to be true, {of_every(precision)} predicted rows "
        f"are true, and {of_every(recall)} true rows are found{words_of_choice(row)}.{costs}"
    )


# The stage threshold_sweep, put together.


STAGE = Stage(
    kind="threshold_sweep",
    parameters=ThresholdSweepParameters,
    inputs=(PREDICTIONS, LABELS, CHECKED),
    tables=TABLES,
    count_columns=COUNTS,
    plan=plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=figures.sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable(
        UNITS.name,
        "unit",
        metrics=(*AREAS, "pooled_precision", "pooled_recall", "pooled_f1"),
        contributions=(*AREAS, COST.name),
    ),
)
