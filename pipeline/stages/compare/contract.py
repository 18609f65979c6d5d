"""Inputs, parameters and result tables of compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import sqlglot.expressions as exp
from pydantic import Field, field_validator, model_validator

from pipeline.metrics.comparison.significance import Correction
from pipeline.metrics.ranking.notation import is_measure, name_of
from pipeline.metrics.uncertainty.qualities import QUALITY_COLUMN
from pipeline.queries.dialect import column, render
from pipeline.sources.inputs import Field as InputField
from pipeline.sources.inputs import Input, InputContract
from pipeline.stages import STAGES, find_stage
from pipeline.stages.upstream import UpstreamParameters
from pipeline.tables.groupings import Grouping
from pipeline.tables.ratios import RATIOS
from pipeline.tables.schemas import GROUPING, STAGE_COLUMN, Column, Table, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.stages.stage import UnitTable
    from pipeline.stages.upstream import UpstreamStage

Test = Literal["paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization", "jackknife_t", "bayes"]
HYPOTHESES: dict[Test, str] = {
    "paired_t": "equal means",
    "bootstrap_t": "equal means",
    "wilcoxon": "differences symmetric about 0",
    "sign": "median difference 0",
    "randomization": "systems exchangeable within units",
    "jackknife_t": "equal ratios of all counts",
}
SYMMETRIC_EVENTS = (
    "contributions of events to the difference symmetric about 0"  # randomization of counts around events
)
POOLED_TESTS: tuple[Test, ...] = ("randomization", "jackknife_t")  # of ratios of all counts
EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")
CELLS = ("tp", "fp", "fn")
POOLED = tuple(f"pooled_{name}" for name in RATIOS)

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
    Column("system", "KEY", "the system"),
    Column("n_units", "BIGINT", "units that it has"),
)


_PAIR = (
    Column("metric", "VARCHAR", "what is compared: a column of the units, or a ratio of the counts of all units"),
    Column("system_a", "KEY", "the system that comes first in order"),
    Column("system_b", "KEY", "the other"),
    Column("n_units", "BIGINT", "units in which both have a value"),
    Column("n_dropped", "BIGINT", "units of either system that were left out: one has no value there, or no row"),
)
TESTS = (
    *_PAIR,
    Column(
        "mean_a",
        "DOUBLE",
        "mean of the first system over these units, or its ratio of all counts; NULL: no unit, or 0 / 0",
        nullable=True,
    ),
    Column("mean_b", "DOUBLE", "the same of the other; NULL: no unit, or 0 / 0", nullable=True),
    Column("difference", "DOUBLE", "mean_a − mean_b; NULL: no unit, or 0 / 0", nullable=True),
    *limits_of("difference", "the difference"),
    Column("test", "VARCHAR", "`paired_t`, `bootstrap_t`, `wilcoxon`, `sign`, `randomization` or `jackknife_t`"),
    Column("hypothesis", "VARCHAR", "what the p-value is of: the null hypothesis of the test, in words"),
    Column(
        "statistic",
        "DOUBLE",
        ("t, the smaller rank sum, or the units that a wins; NULL: `randomization`, `jackknife_t`, or see `undefined`"),
        nullable=True,
    ),
    Column("p_value", "DOUBLE", "two-sided p-value of `hypothesis`; NULL: see `undefined`", nullable=True),
    Column(
        "p_adjusted",
        "DOUBLE",
        "p_value adjusted for all pairs and metrics of the group and test; NULL: as p_value",
        nullable=True,
    ),
    Column(
        "effect_size",
        "DOUBLE",
        "mean difference over its standard deviation between units; NULL: pooled ratios, or see `undefined`",
        nullable=True,
    ),
    Column(
        "skewness",
        "DOUBLE",
        ("skewness of the differences between units; NULL: pooled ratios, fewer than three units, or no spread"),
        nullable=True,
    ),
    Column("wins_a", "BIGINT", "units in which a has the higher value; NULL: pooled ratios", nullable=True),
    Column("ties", "BIGINT", "units in which both are equal; NULL: pooled ratios", nullable=True),
    Column("wins_b", "BIGINT", "units in which b has the higher value; NULL: pooled ratios", nullable=True),
    Column(
        "minimum_detectable_difference",
        "DOUBLE",
        "true difference that such a number of such units shows with a probability of 0.8; NULL: no spread",
        nullable=True,
    ),
    Column("undefined", "VARCHAR", "why a value is NULL; NULL: nothing is undefined", nullable=True),
    QUALITY_COLUMN,
)
POSTERIORS = (
    *_PAIR,
    Column("mean_a", "DOUBLE", "posterior mean of the first system"),
    *limits_of("mean_a", "its credible interval with equal tails"),
    Column("mean_b", "DOUBLE", "posterior mean of the other"),
    *limits_of("mean_b", "its credible interval with equal tails"),
    Column(
        "design_effect_a", "DOUBLE", "what the counts of a were divided by, at least 1; NULL: no count", nullable=True
    ),
    Column(
        "counts_a",
        "VARCHAR",
        "[how that was found](compare.md#posteriors): `as_counted`, `design_effect` or `one_per_unit`",
    ),
    Column("design_effect_b", "DOUBLE", "the same of b; NULL: no count", nullable=True),
    Column("counts_b", "VARCHAR", "the same of b"),
    Column("probability_a_better", "DOUBLE", "probability that a is better, the two taken as independent"),
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
)


class CompareParameters(UpstreamParameters):
    """Parameters of compare.

    Attributes:
        units: One row per unit and system.
        system: Column that tells the systems apart.
        metrics: What is compared; default: what the units offer.
        tests: Tests to make; `bayes` gives posteriors of the ratios of all counts.
        resamples: Random swaps of the randomization test, and resamples of the bootstrap.
        correction: How p-values are adjusted for the number of pairs and metrics.
        seed: Of the random swaps.
        missing_units: What happens when a system lacks a unit that another has.
        prior: Both shapes of the beta prior of the posteriors.
    """

    inapplicable: ClassVar[frozenset[str]] = frozenset(
        {"thresholds", "cluster", "uncertainty", "replicates", "boundary", "invalid_scores", "duplicates"}
    )
    example: ClassVar[str] = "system=model"
    kind: Literal["compare"] = "compare"
    units: Input | None = None
    system: str | None = None
    metrics: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ("paired_t", "wilcoxon", "randomization", "bayes")
    resamples: Annotated[int, Field(ge=99, le=10_000_000)] = 9999
    correction: Correction = "holm"
    seed: Annotated[int, Field(ge=0)] = 0
    missing_units: Literal["error", "skip"] = "error"
    prior: Annotated[float, Field(gt=0, le=1_000_000)] = 0.5

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

    @field_validator("tests", "metrics")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            message = f"{', '.join(value)} names one twice"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_origin(self) -> CompareParameters:
        if not self.tests:
            message = "tests is empty: give at least one"
            raise ValueError(message)
        if (self.units is None) == (not self.of):
            message = 'give either units, a path, or of, the name of a stage, for example of = "ranking"'
            raise ValueError(message)
        if self.results and not self.of:
            message = "results goes with of, the name of a stage whose units it holds"
            raise ValueError(message)
        if len(self.of) == 1 and self.system is None:
            message = "system is missing: the grouping column that tells the systems of that stage apart"
            raise ValueError(message)
        for name in self.by_names:
            if name in {"unit", "system", self.system}:
                message = f"by names {name!r}, which tells units or systems apart"
                raise ValueError(message)
        if len(self.of) > 1 and self.system is not None:
            message = "system goes with one stage in of; with several the stages are the systems"
            raise ValueError(message)
        return self

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
        names = [exp.Literal.string(self._grouping(stage, wanted)) for stage in upstream]
        metrics = self._metrics(upstream) or table.metrics or POOLED
        counts = table.columns if set(metrics) & set(POOLED) else {}  # a mapping that nothing reads is refused
        columns = {"unit": table.unit, "system": self.system or STAGE_COLUMN.name, **counts}
        rows = exp.In(this=column(GROUPING.name), expressions=names)
        path = tuple(stage.file(table.table) for stage in upstream)
        units = Input(path=path, columns=columns, where=render(rows, pretty=False))
        return self.model_copy(update={"units": units, "metrics": metrics})

    def _metrics(self, upstream: Sequence[UpstreamStage]) -> tuple[str, ...]:
        """What is compared: as the config says, else the measures that all stages were asked for by name.

        Raises:
            ValueError: the config names a measure that a stage was not asked for.
        """
        shared = [name for name in upstream[0].measures if all(name in stage.measures for stage in upstream)]
        if not self.metrics:
            return tuple(shared)
        names = {metric: name_of(metric) for metric in self.metrics}
        lacking = [name for name in names.values() if is_measure(name) and name not in shared]
        if lacking:
            offered = f"its measures are {', '.join(shared)}" if shared else "it names no measures"
            message = f"metrics names {lacking[0]}, which stage {upstream[0].name!r} does not measure: {offered}"
            raise ValueError(message)
        return tuple(names[metric] if names[metric] in shared else metric for metric in self.metrics)

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
