"""Inputs, parameters and result tables of compare."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import polars as pl
import sqlglot.expressions as exp
from pydantic import Field, field_validator, model_validator

from ...base.columns import RATIOS
from ...base.dialect import column, render
from ...base.schemas import GROUPING, STAGE_COLUMN, Column, Grouping, Table, limits_of, limits_of_share
from ...metrics.comparison.significance import Correction
from ...metrics.ranking.measures import is_measure, name_of
from ...metrics.uncertainty.limits import INTERVAL_QUALITY, N_CLUSTERS, QUALITY_COLUMN
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from .. import STAGES, find_stage
from ..stage import CLUSTER, UpstreamParameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.uncertainty.limits import Quality
    from ..stage import UnitTable, UpstreamStage


Test = Literal[
    "paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization", "jackknife_t", "welch_t", "permutation", "bayes"
]
EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")
POOLED = tuple(f"pooled_{name}" for name in RATIOS)

# unless the config says otherwise
PAIRED_TESTS: tuple[Test, ...] = ("paired_t", "bootstrap_t", "randomization", "bayes")
UNPAIRED_TESTS: tuple[Test, ...] = ("welch_t", "jackknife_t", "bayes")
NEEDS_PAIRS: tuple[Test, ...] = ("paired_t", "wilcoxon", "sign", "randomization")
NEEDS_GROUPS: tuple[Test, ...] = ("welch_t", "permutation")

MARKS: dict[str, Quality] = {  # by key of the parameters
    "failed": "assumption_failed",
    "correlated": "correlated_days",
}
NUMBERS = {"before_after": "before_after_estimates"}  # that have the marks, by kind of stage

_PAIR = (
    Column("metric", "VARCHAR", "what is compared: a column of the units, or a ratio of the counts of all units"),
    Column(
        "system_a",
        "KEY",
        "the system that comes first in order, or the one that is compared with the baseline; NULL: with "
        "`paired = false` the group without a value",
    ),
    Column("system_b", "KEY", "the other, or the baseline; NULL: as of system_a"),
    Column(
        "n_units", "BIGINT", "units in which both have a value; with `paired = false` units of either that have a value"
    ),
    Column("n_units_a", "BIGINT", "of these the units of the first system: all, but with `paired = false`"),
    Column("n_units_b", "BIGINT", "those of the other"),
    Column(
        "n_dropped",
        "BIGINT",
        "units of either system that were left out: they have no value, or one of the two has none there or no row",
    ),
)
TESTS = (
    *_PAIR,
    Column(
        "mean_a",
        "DOUBLE",
        "mean of the first system over these units, or its ratio of all counts; NULL: no unit, or 0 / 0",
    ),
    Column("mean_b", "DOUBLE", "the same of the other; NULL: no unit, or 0 / 0"),
    Column("difference", "DOUBLE", "mean_a − mean_b; NULL: no unit, or 0 / 0"),
    *limits_of("difference", "the difference"),
    Column(
        "ratio",
        "DOUBLE",
        "mean_a / mean_b; NULL: mean_b is not above 0, a value is below 0, or one of the means is NULL",
    ),
    *limits_of("ratio", "the ratio"),
    Column(
        "test",
        "VARCHAR",
        "`paired_t`, `bootstrap_t`, `wilcoxon`, `sign`, `randomization`, `jackknife_t`, `welch_t` or `permutation`",
    ),
    Column("hypothesis", "VARCHAR", "what the p-value is of: the null hypothesis of the test, in words"),
    Column(
        "statistic",
        "DOUBLE",
        "t, the smaller rank sum, or the units that a wins; NULL: `randomization`, `permutation`, or see `undefined`",
    ),
    Column("p_value", "DOUBLE", "two-sided p-value of `hypothesis`; NULL: see `undefined`"),
    Column(
        "p_adjusted", "DOUBLE", "p_value adjusted for all pairs and metrics of the group and test; NULL: as p_value"
    ),
    Column("correction", "VARCHAR", "how it was adjusted: `holm`, `bh`, or `none`: not at all"),
    Column(
        "effect_size",
        "DOUBLE",
        "mean difference over its standard deviation between units, with `paired = false` over the root mean square of "
        "the standard deviations of both; NULL: pooled ratios, contributions, or see `undefined`",
    ),
    Column(
        "skewness",
        "DOUBLE",
        "skewness of the differences between units; NULL: pooled ratios, `paired = false`, fewer than three units, or "
        "no spread",
    ),
    Column(
        "wins_a",
        "BIGINT",
        "units in which a has the higher value; NULL: pooled ratios, contributions, `paired = false`",
    ),
    Column("ties", "BIGINT", "units in which both are equal; NULL: pooled ratios, contributions, `paired = false`"),
    Column(
        "wins_b",
        "BIGINT",
        "units in which b has the higher value; NULL: pooled ratios, contributions, `paired = false`",
    ),
    Column(
        "minimum_detectable_difference",
        "DOUBLE",
        "true difference that such a number of such units shows with a probability of 0.8; NULL: no spread",
    ),
    Column("undefined", "VARCHAR", "why a value is NULL; NULL: nothing is undefined"),
    QUALITY_COLUMN,
)
POSTERIORS = (
    *_PAIR,
    Column("mean_a", "DOUBLE", "posterior mean of the first system"),
    *limits_of_share("mean_a", "its credible interval with equal tails"),
    Column("mean_b", "DOUBLE", "posterior mean of the other"),
    *limits_of_share("mean_b", "its credible interval with equal tails"),
    Column("design_effect_a", "DOUBLE", "what the counts of a were divided by, at least 1; NULL: no count"),
    Column(
        "counts_a",
        "VARCHAR",
        "[how that was found](methods/compare.md#posteriors): `as_counted`, `design_effect` or `one_per_unit`",
    ),
    Column("design_effect_b", "DOUBLE", "the same of b; NULL: no count"),
    Column("counts_b", "VARCHAR", "the same of b"),
    Column("probability_a_better", "DOUBLE", "probability that a is better, the two taken as independent"),
    QUALITY_COLUMN,
)
MARGINS = (
    *_PAIR,
    Column("difference", "DOUBLE", "mean_a − mean_b, as in `compare_tests`; NULL: no unit, or 0 / 0"),
    Column(
        "interval_lower",
        "DOUBLE",
        "lower limit of the difference at the level `interval_confidence`; NULL: none can be given",
    ),
    Column("interval_upper", "DOUBLE", "upper limit of the same; NULL: none can be given"),
    Column(
        "interval_confidence",
        "DOUBLE",
        "level of these limits, 2 × `confidence` − 1: without adjustment, `equivalent` holds exactly if they lie "
        "within the margin; NULL: `confidence` is at most 1/2",
    ),
    Column("test", "VARCHAR", "what the limits and the p-values are made by: a test that gives an interval"),
    Column("claim", "VARCHAR", "`a_not_worse`, `b_not_worse`, or `equivalent`: both"),
    Column("margin", "DOUBLE", "the difference that would matter, of the config"),
    Column("hypothesis", "VARCHAR", "what the p-value is of: the contrary of the claim, in words"),
    Column(
        "statistic",
        "DOUBLE",
        "distance of the difference from the margin in standard errors, above 0 on the side of the claim; of "
        "`equivalent` the smaller of both; NULL: see `undefined`",
    ),
    Column(
        "p_value",
        "DOUBLE",
        "one-sided p-value of `hypothesis`; of `equivalent` the larger of both; NULL: see `undefined`",
    ),
    Column(
        "p_adjusted",
        "DOUBLE",
        "p_value adjusted for all pairs and metrics of the group, claim and test; NULL: as p_value",
    ),
    Column("correction", "VARCHAR", "how it was adjusted: `holm`, `bh`, or `none`: not at all"),
    Column(
        "holds",
        "BOOLEAN",
        "whether the claim is shown: p_adjusted is at most 1 − `confidence`; false is no proof of the contrary; "
        "NULL: as p_value",
    ),
    Column("undefined", "VARCHAR", "why a value is NULL; NULL: nothing is undefined"),
    QUALITY_COLUMN,
)
TABLES = (
    Table(
        "compare_tests",
        "one row per group, pair of systems, metric and test",
        TESTS,
        ("metric", "system_a", "system_b", "test"),
    ),
    Table(
        "compare_posteriors",
        "one row per group, pair of systems and ratio of all counts",
        POSTERIORS,
        ("metric", "system_a", "system_b"),
    ),
    Table(
        "compare_margins",
        "one row per group, pair of systems, metric with a margin, test that gives an interval, and claim",
        MARGINS,
        ("metric", "system_a", "system_b", "test", "claim"),
    ),
)


UNITS = InputContract(
    "units",
    (
        InputField("unit", "key", "the unit: query, document, series, event", required=True),
        InputField("system", "key", "the system that the row is about"),
        InputField("tp", "integer", "true positives of the system in the unit"),
        InputField("fp", "integer", "false positives of the system in the unit"),
        InputField("fn", "integer", "false negatives of the system in the unit"),
        InputField("n_predicted", "integer", "tp + fp, in place of fp"),
        InputField("n_true", "integer", "tp + fn, in place of fn"),
        *(InputField(name, "integer", f"{name} of the table before_after_events") for name in EVENT_COUNTS),
    ),
    "one row per unit and system, with its metrics or its counts",
    evaluated=True,
)

COUNTS = (
    Column("system", "KEY", "the system; NULL: with `paired = false` the group without a value"),
    Column("n_units", "BIGINT", "units that it has"),
)


_CLUSTERS = Column(N_CLUSTERS, "BIGINT", "clusters that these units lie in")


def further_columns(params: CompareParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because units lie in clusters."""
    names = ("compare_tests", "compare_posteriors", "compare_margins")
    return dict.fromkeys(names, (_CLUSTERS,) if params.is_clustered else ())


def stages_with(mark: Quality, upstream: Sequence[UpstreamStage], grouping: str) -> Iterator[str]:
    """Yield the stages whose numbers have a mark in a grouping, or whose clusters have an order that units do not tell.

    Tables of stages are not there yet while a config is only checked.
    """
    for stage in upstream:
        path = Path(stage.file(NUMBERS[stage.kind])) if stage.kind in NUMBERS else None
        is_marked = path is not None and path.exists() and has_mark(pl.read_parquet(path), grouping, mark)
        is_untold = mark == MARKS["correlated"] and stage.cluster_order is not None
        if is_marked or is_untold:
            yield stage.name


def has_mark(numbers: pl.DataFrame, grouping: str, mark: Quality) -> bool:
    """Whether the numbers of a grouping have a mark."""
    quality = dict(numbers.group_by(GROUPING.name).agg(INTERVAL_QUALITY).iter_rows()).get(grouping, [])
    return mark in quality


class CompareParameters(UpstreamParameters):
    """Parameters of compare.

    Attributes:
        units: One row per unit and system.
        system: Column that tells the systems apart; with `paired = false` that of the groups.
        paired: Whether all systems have the same units; `false`: each has its own, and nothing is paired.
        baseline: The system that all others are compared with; default: every pair is compared.
        cluster: Column of units whose values are independent, such as the family of a query; default: that of the
            stage in `of`, else the unit.
        metrics: What is compared; default: what the units offer.
        contributions: Metrics whose values per unit mean nothing alone; their mean is a number of all units, such as an
            area.
        lower_is_better: Metrics of which the lower value is the better one, as of errors and delays.
        tests: Tests to make, with `paired = false` by default `welch_t`, `jackknife_t` and `bayes`; `bayes` gives
            posteriors of the ratios of all counts.
        margin: The difference that would matter, on the scale of the metric: one for all metrics, or by metric.
        resamples: Random swaps of the randomization test, and resamples of the bootstrap.
        correction: How p-values are adjusted for the number of pairs and metrics.
        seed: Of the random swaps.
        missing_units: What happens when a system lacks a unit that another has.
        prior: Both shapes of the beta prior of the posteriors.
        failed: Stages in `of` whose numbers rest on an assumption that they found to be contradicted.
        correlated: Stages in `of` whose units may be alike in time in ways that their table of units does not tell.
    """

    inapplicable: ClassVar[frozenset[str]] = frozenset(
        {"thresholds", "uncertainty", "replicates", "boundary", "invalid_scores", "duplicates"}
        | {"failed", "correlated"}  # which the stages in `of` tell
    )
    example: ClassVar[str] = "system=model"
    kind: Literal["compare"] = "compare"
    units: Input | None = None
    system: str | None = None
    paired: bool = True
    baseline: int | str | None = None
    metrics: tuple[str, ...] = ()
    contributions: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()
    tests: tuple[Test, ...] = PAIRED_TESTS
    margin: float | dict[str, float] | None = None
    resamples: Annotated[int, Field(ge=99, le=10_000_000)] = 9999
    correction: Correction = "holm"
    seed: Annotated[int, Field(ge=0)] = 0
    missing_units: Literal["error", "skip"] = "error"
    prior: Annotated[float, Field(gt=0, le=1_000_000)] = 0.5
    failed: tuple[str, ...] = ()
    correlated: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _tests_of_groups(cls, values: object) -> object:
        """Take other tests where nothing is paired."""
        if isinstance(values, dict) and values.get("paired") is False and "tests" not in values:
            return {**values, "tests": UNPAIRED_TESTS}
        return values

    @field_validator("tests", mode="before")
    @classmethod
    def _no_items(cls, value: object) -> object:
        if isinstance(value, list | tuple) and "dirichlet" in value:
            message = (
                "dirichlet compares single items, which tables of units do not hold: give the items as units, with a "
                'metric of 0 and 1, and use "sign"; or call pipeline.metrics.posteriors.probability_better'
            )
            raise ValueError(message)
        return value

    @field_validator("margin", mode="before")
    @classmethod
    def _margins(cls, value: object) -> object:
        margins = value if isinstance(value, dict) else {"": 1.0 if value is None else value}
        if not margins or not all(
            (isinstance(margin, int | float) and not isinstance(margin, bool) and 0 < margin < math.inf)
            for margin in margins.values()
        ):
            message = "write a number above 0, or a table of metrics with their margins, { average_precision = 0.01 }"
            raise ValueError(message)
        return value

    @field_validator("tests", "metrics", "contributions", "lower_is_better")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            message = f"{', '.join(value)} names one twice"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.units is None) == (not self.of):
            message = 'give either units, a path, or of, the name of a stage, for example of = "ranking"'
            raise ValueError(message)
        if self.results and not self.of:
            message = "results goes with of, the name of a stage whose units it holds"
            raise ValueError(message)
        if len(self.of) == 1 and self.system is None:
            message = "system is missing: the grouping column that tells the systems of that stage apart"
            raise ValueError(message)
        if self.cluster in {"system", self.system} - {None}:
            message = f"cluster names {self.cluster!r}, which tells the systems apart: units lie in clusters"
            raise ValueError(message)
        for name in self.by_names:
            if name in {"unit", "system", self.system}:
                message = f"by names {name!r}, which tells units or systems apart"
                raise ValueError(message)
        if len(self.of) > 1 and self.system is not None:
            message = "system goes with one stage in of; with several the stages are the systems"
            raise ValueError(message)
        if len(self.of) > 1 and self.baseline is not None and self.baseline not in self.of:
            message = f"baseline is {str(self.baseline)!r}, but the systems are the stages {', '.join(self.of)}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _fitting_tests(self) -> Self:
        if not self.tests:
            message = "tests is empty: give at least one"
            raise ValueError(message)
        wrong = [test for test in self.tests if test in (NEEDS_GROUPS if self.paired else NEEDS_PAIRS)]
        if wrong and self.paired:
            message = f"tests names {wrong[0]}, which compares different units: set paired = false, or leave it out"
            raise ValueError(message)
        if wrong:
            message = (
                f"tests names {wrong[0]}, which needs the same units for all systems: with paired = false take "
                "welch_t, bootstrap_t, permutation, jackknife_t or bayes"
            )
            raise ValueError(message)
        if not self.paired and self.missing_units == "skip":
            message = "missing_units goes with paired = true: with paired = false no system lacks a unit of another"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _known_metrics(self) -> Self:
        for key, name in self.keys_of_metrics() if self.metrics else ():
            if name_of(name) not in {name_of(metric) for metric in self.metrics}:
                message = f"{key} names {name!r}, which is not among the metrics {', '.join(self.metrics)}"
                raise ValueError(message)
        return self

    def keys_of_metrics(self) -> Iterator[tuple[str, str]]:
        """Every metric that a key names, but `metrics` itself, with the key."""
        margins = self.margin if isinstance(self.margin, dict) else {}
        for key, names in (
            ("margin", margins),
            ("contributions", self.contributions),
            ("lower_is_better", self.lower_is_better),
        ):
            for name in names:
                yield key, name

    @property
    def are_tests_asked(self) -> bool:
        """Whether the config names tests, other than the default ones."""
        return "tests" in self.model_fields_set and (self.paired or self.tests != UNPAIRED_TESTS)

    def margin_of(self, metric: str) -> float | None:
        """The margin of a metric; None: it has none."""
        return self.margin.get(metric) if isinstance(self.margin, dict) else self.margin

    @property
    def is_clustered(self) -> bool:
        """Whether units lie in clusters, within which they are not independent."""
        return self.cluster not in {None, "unit"}

    @property
    def by_names(self) -> tuple[str, ...]:
        """The grouping columns as the user calls them, each once."""
        return tuple(dict.fromkeys(name for grouping in self.by for name in grouping))

    def with_upstream(self, upstream: Sequence[UpstreamStage]) -> Self:
        """Return the same with the unit tables of the upstream stages as units; if several, they are the systems.

        Raises:
            ValueError: their kinds differ or have no table of units, or they lack the grouping that is needed.
        """
        kinds = dict.fromkeys(stage.kind for stage in upstream)
        table = units_of(next(iter(kinds)))
        if len(kinds) > 1 or table is None:
            wrong = "several kinds" if len(kinds) > 1 else "a kind without units"
            comparable = ", ".join(entry.kind for entry in STAGES if units_of(entry.kind) is not None)
            message = f"of names stages of {wrong} ({', '.join(kinds)}); kinds with units: {comparable}"
            raise ValueError(message)
        wanted = {*self.by_names, *([self.system] if self.system is not None else [])}
        if wanted and not table.grouped:
            message = f"{next(iter(kinds))} has units for the total only: name several stages in of, without by"
            raise ValueError(message)
        groupings = [self._grouping(stage, wanted) for stage in upstream]
        shared = [name for name in upstream[0].measures if all(name in stage.measures for stage in upstream)]

        def named(metric: str) -> str:  # measures of all stages are written as their columns are called
            return name_of(metric) if name_of(metric) in shared else metric

        self._refuse_measures(upstream[0], shared)
        metrics = tuple(map(named, self.metrics)) or tuple(shared) or table.metrics or POOLED
        margin = {named(name): margin for name, margin in self.margin.items()} if isinstance(self.margin, dict) else {}
        areas = tuple(name for name in table.contributions if name in metrics and name not in self.contributions)
        counts = table.columns if set(metrics) & set(POOLED) else {}  # a mapping that nothing reads is refused
        columns = {"unit": table.unit, "system": self.system or STAGE_COLUMN.name, **counts}
        cluster = self._cluster(upstream, table)
        rows = exp.In(this=column(GROUPING.name), expressions=list(map(exp.Literal.string, groupings)))
        path = tuple(stage.file(table.table) for stage in upstream)
        units = Input(path=path, columns=columns, where=render(rows, pretty=False))
        update = {
            "units": units,
            "cluster": cluster,
            "metrics": metrics,
            "contributions": (*self.contributions, *areas),
            "margin": margin or self.margin,
            "lower_is_better": tuple(map(named, self.lower_is_better)),
        }
        marked = {key: tuple(stages_with(mark, upstream, groupings[0])) for key, mark in MARKS.items()}
        return self.model_copy(update=update | marked)

    def _cluster(self, upstream: Sequence[UpstreamStage], table: UnitTable) -> str | None:
        """The column of the clusters in the tables of units of some stages; None: their units are independent.

        Raises:
            ValueError: the stages have different clusters, or others than the config names.
        """
        named = {table.cluster_of(stage.cluster) for stage in upstream}
        if self.cluster in {"unit", table.unit}:
            return None
        if len(named) > 1:
            message = f"the stages {', '.join(self.of)} have different clusters: give all of them the same cluster"
            raise ValueError(message)
        found = named.pop()
        if self.cluster not in {None, found}:
            has = "no clusters in its units" if found is None else f"clusters of {found!r}"
            message = f"cluster is {self.cluster!r}, but stage {upstream[0].name!r} has {has}"
            raise ValueError(message)
        return None if found is None else CLUSTER

    def _refuse_measures(self, stage: UpstreamStage, shared: Sequence[str]) -> None:
        """Refuse a measure of rankings that the config names, and that the stages were not all asked for."""
        names = map(name_of, self.metrics)
        lacking = next((name for name in names if is_measure(name) and name not in shared), None)
        if lacking is not None and stage.kind == "ranking":
            offered = f"its measures are {', '.join(shared)}" if shared else "it names no measures"
            message = f"metrics names {lacking}, which stage {stage.name!r} does not measure: {offered}"
            raise ValueError(message)

    @staticmethod
    def _grouping(stage: UpstreamStage, wanted: set[str]) -> str:
        """The grouping of an upstream stage that has these columns, as its tables name it."""
        grouping = next((each for each in stage.by if set(each) == wanted), None)
        if grouping is None:
            shown = ", ".join(sorted(wanted))
            needed = (
                f"by {shown}; give it by = [[{', '.join(map(repr, sorted(wanted)))}]]" if wanted else "of the total"
            )
            message = f"stage {stage.name!r} has no grouping {needed}"
            raise ValueError(message)
        return Grouping.of(grouping).label


def units_of(kind: str) -> UnitTable | None:
    """The table with one row per unit that stages of a kind have; None: they have none."""
    entry = find_stage(kind)
    return None if entry is None or entry.kind == "compare" else entry.load().units
