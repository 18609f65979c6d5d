"""The plan of compare, and the units that its numbers are shown to come from."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...base.columns import RATIOS, REPLICATE
from ...base.dialect import column, kept
from ...base.errors import DataError
from ...base.records import dataclass
from ...base.schemas import cluster_name, users_name
from ...base.sql_files import statement
from ...plan import rows
from ...plan.counts import Query
from ...plan.nodes import Check, Frame, Relation, file_check, missing_check, negative_check, shown_name
from ...plan.plan import OptionalTable, Plan
from ...sources.inputs import Field
from ...sources.source import PASSES_WHERE
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from .contract import EVENT_COUNTS, POOLED
from .rows import CELLS, fitting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...plan.nodes import Faults
    from ...sources.source import Source
    from ..sections import Asked
    from .contract import CompareParameters
    from .rows import Compared


METRIC, COUNT = "metric:", "count:"  # prefixes of the fetched columns
IN_ORDER = "in_order"  # what puts units, or their clusters, in the order of time, if they have one
WISH_OF_MARGINS = "margin = 0.01, for example,"
_KEYS = ("unit", "system")
_IN_PLACE_OF = {"fp": "n_predicted", "fn": "n_true"}
_NEED: dict[Compared, str] = {
    "mean": "means of one value per unit",
    "contribution": "contributions",
    "counts": "ratios of all counts",
    "events": "ratios of counts around events",
}
_OF_VALUES = {*fitting("mean", paired=True), *fitting("mean", paired=False)}
_FLOATING = {"double", "float", "halffloat"}


def plan(params: CompareParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the units, check that they can be paired, count them and fetch their metrics.

    Raises:
        DataError: the units lack a column that the parameters need.
    """
    units = sources["units"]
    columns = units.spec.columns | ({"system": params.system} if params.system is not None else {})
    keyed = frozenset({"system"} if params.system is not None or "system" not in columns else ())
    mapped = replace(units, spec=units.spec.model_copy(update={"columns": columns}), keyed=keyed)
    mapped.types("system", Field("system", "key", "the system that the row is about"))
    metrics = params.metrics or (*_counted(mapped), *_floating(params, mapped))
    known = {field.name for field in units.contract.fields}
    new = [
        Field(name, "number", "a metric of the units")
        for name in metrics
        if name not in known and _is_column(mapped, name)
    ]
    contract = replace(units.contract, fields=(*units.contract.fields, *new))
    return _Planner(params, replace(mapped, contract=contract), metrics).plan()


def _is_column(units: Source, name: str) -> bool:
    return units.has(name) or (name not in POOLED and not (name in RATIOS and _has_cells(units)))


def _has_cells(units: Source) -> bool:
    return units.has("tp") and all(units.has(name) or units.has(other) for name, other in _IN_PLACE_OF.items())


def _counted(units: Source) -> tuple[str, ...]:
    return POOLED if _has_cells(units) or all(units.has(name) for name in EVENT_COUNTS) else ()


def _floating(params: CompareParameters, units: Source) -> tuple[str, ...]:
    """Every column of floating numbers, or without a value in some of the files, that has no other use."""
    used = {*params.by_names, params.cluster, params.cluster_order}
    used |= {*(units.source_name(field.name) for field in units.contract.fields)}
    schemas = [file.schema for file in units.files]
    shared = [name for name in schemas[0].names if name not in used and all(name in each.names for each in schemas)]
    kinds = {name: [str(schema.field(name).type) for schema in schemas] for name in shared}
    return tuple(name for name in shared if next((each for each in kinds[name] if each != "null"), "") in _FLOATING)


@dataclass(frozen=True)
class _Planner:
    params: CompareParameters
    units: Source
    metrics: tuple[str, ...]

    def plan(self) -> Plan:
        self._check_metrics()
        by = rows.resolve_by(self.params.by, [self.units])
        fields = tuple(dict.fromkeys((*_KEYS, *self.counts, *self.values)))
        keys = [*_KEYS, *(each.name for each in by)]
        prefixed = [f"{prefix}{name}" for prefix, names in self._prefixed for name in names]
        in_order = [IN_ORDER for _ in self._ordering]
        columns = [*keys[len(_KEYS) :], *self._cluster, *in_order, *prefixed]
        metrics_of_units = statement("compare/metrics_of_units", columns)
        return Plan(
            nodes=(
                rows.read(self.units, dict.fromkeys((*fields, *self._cluster, *self._ordering)), by, {}),
                Relation("units", self._units(keys)),
                *self._checks(keys),
                Query("compare/counts", columns=("n_units",), keys=("system",)),
                Frame("units", metrics_of_units),
            ),
            sources=(self.units,),
            by=by,
            used=("n_units",),
            accounting=Query("compare/accounting"),
            optional=(
                OptionalTable("compare_margins", "margin", self.params.margin is not None, wish=WISH_OF_MARGINS),
            ),
            warnings=tuple(self._warnings()),
            facts={
                "metrics": ", ".join(self.metrics),
                **({"cluster": str(self.params.cluster)} if self._cluster else {}),
            },
        )

    @property
    def _cluster(self) -> list[str]:
        """The column of the clusters, if units lie in some."""
        return [str(self.params.cluster_column)] if self.params.is_clustered else []

    @property
    def _ordering(self) -> list[str]:
        """The column by which units, or their clusters, follow each other in time, if the config names one."""
        return [] if self.params.cluster_order is None else [cluster_name(self.params.cluster_order)]

    @property
    def _prefixed(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (COUNT, self.counts), (METRIC, self.values)

    def _units(self, keys: Sequence[str]) -> exp.Select:
        """Units with their counts and metrics, which have a prefix so that no name of them meets one of ours."""
        names, ordering, prefixed = (*keys, *self._cluster), tuple(self._ordering), self._prefixed

        def build() -> exp.Select:
            replicate = exp.cast(exp.convert(0), "SMALLINT").as_(REPLICATE)
            units = exp.select(*map(column, names), replicate).from_("units_read").where(column(PASSES_WHERE))
            units = units.select(*(column(name).as_(IN_ORDER, quoted=True) for name in ordering))
            shown = ((name, f"{prefix}{name}") for prefix, columns in prefixed for name in columns)
            return units.select(*(column(name).as_(alias, quoted=True) for name, alias in shown))

        return kept(("units", names, ordering, prefixed), build)

    @cached_property
    def counts(self) -> tuple[str, ...]:
        """The count columns that the metrics need."""
        if not set(self.metrics) - set(self.values):
            return ()
        if _has_cells(self.units):
            return tuple(name if self.units.has(name) else _IN_PLACE_OF[name] for name in CELLS)
        return EVENT_COUNTS

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The metrics that are columns: one value per unit."""
        return tuple(name for name in self.metrics if _is_column(self.units, name))

    def _check_metrics(self) -> None:
        pooled = [name for name in self.metrics if name in POOLED]
        if not self.metrics:
            message = "input units has neither counts nor a column of floating numbers to compare"
            raise DataError(message, remedy='Name its metrics, for example metrics = ["correct"].')
        if pooled and not _counted(self.units):
            message = f"input units lacks the counts that {pooled[0]} is made of"
            raise DataError(message, remedy="It needs tp, fp (or n_predicted) and fn (or n_true).")
        for name in self.metrics:
            if name in {*_KEYS, *self.params.by_names}:
                message = f"metrics names {name!r}, which is no metric but identifies a row"
                raise DataError(message)
        for name in self.values:
            if self.params.of and not self.units.has(name):
                message = f"metrics names {name!r}, which the units of {', '.join(self.params.of)} do not have"
                raise DataError(message, remedy=f"Comparable are {', '.join(self._comparable())}.")
            self.units.types(name, Field(name, "number", "a metric of the units"))
        for key, name in self.params.keys_of_metrics():
            if name not in self.metrics:
                message = f"{key} names {name!r}, which is not compared"
                raise DataError(
                    message, remedy=f"Compared are {', '.join(self.metrics)}; the key metrics names others."
                )
        if set(self.params.tests) == {"bayes"} and not (pooled and _has_cells(self.units)):
            message = (
                'tests: "bayes" needs the counts tp, fp and fn of every unit, and a pooled ratio among the metrics'
            )
            raise DataError(message, remedy="For metrics that are one value per unit take another test.")

    def _comparable(self) -> Iterator[str]:
        """Every metric that the units of another stage offer."""
        yield from _counted(self.units)
        yield from RATIOS if _has_cells(self.units) else ()
        schema, keys = self.units.files[0].schema, {self.units.source_name(name) for name in _KEYS}
        kinds = {name: str(schema.field(name).type) for name in schema.names}
        numeric = (name for name, kind in kinds.items() if kind in _FLOATING or kind.startswith(("int", "uint", "dec")))
        yield from (name for name in numeric if name not in {*keys, *self.params.by_names})

    def _checks(self, keys: Sequence[str]) -> Iterator[Check]:
        yield from (missing_check(self.units, name) for name in (_KEYS if self.params.paired else _KEYS[:1]))
        for name in dict.fromkeys((*self._cluster, *self._ordering)):
            if name not in _KEYS:
                yield missing_check(self.units, name)
        for cluster in self._cluster:
            if self.params.paired:
                yield _one_cluster_check(self.units, [name for name in keys if name != "system"], cluster)
        yield from (negative_check(self.units, name) for name in self.counts)
        for name in sorted(set(_IN_PLACE_OF.values()) & set(self.counts)):
            yield file_check("compare/checks/exceeding", self.units, columns={"total": name})
        yield _repeated_check(self.units, keys)
        yield file_check("compare/checks/one_system", self.units, located=False)
        if self.params.baseline is not None:
            yield file_check(
                "compare/checks/no_baseline", self.units, values={"baseline": str(self.params.baseline)}, located=False
            )
        if self.params.paired and self.params.missing_units == "error":
            yield _missing_units_check(self.units, [name for name in keys if name != "system"])

    def _warnings(self) -> Iterator[str]:
        """Warnings of results that are asked for and cannot be made."""
        params, asked = self.params, self.params.are_tests_asked
        for kind, names in self._kinds():
            tests = fitting(kind, paired=params.paired)
            if not set(tests) & set(params.tests):
                yield f"no test of tests fits {', '.join(names)}: {_NEED[kind]} need {_listed(tests)}"
            elif asked and kind == "contribution":
                left_out = [test for test in params.tests if test in _OF_VALUES and test not in tests]
                if left_out:
                    yield (
                        f"{', '.join(left_out)} among tests {'is' if len(left_out) == 1 else 'are'} not made of "
                        f"{', '.join(names)}: a single contribution means nothing alone, only the mean does"
                    )
        has_counts = any(kind == "counts" for kind, _ in self._kinds())
        if asked and "bayes" in params.tests and not has_counts:
            yield "no posteriors: bayes needs the counts tp, fp and fn of every unit, and a pooled ratio in metrics"

    def _kinds(self) -> Iterator[tuple[Compared, tuple[str, ...]]]:
        """The metrics by what they are, without kinds that have none."""
        pooled = tuple(name for name in self.metrics if name in POOLED)
        values = [name for name in self.metrics if name not in POOLED]
        areas = tuple(name for name in values if name in self.params.contributions)
        means = tuple(name for name in values if name not in areas)
        counted: Compared = "counts" if _has_cells(self.units) else "events"
        kinds: tuple[tuple[Compared, tuple[str, ...]], ...] = (
            ("mean", means),
            ("contribution", areas),
            (counted, pooled),
        )
        return ((kind, names) for kind, names in kinds if names)


def _listed(tests: Sequence[str]) -> str:
    *before, last = tests
    return f"{', '.join(before)} or {last}" if before else last


def _repeated_check(units: Source, keys: Sequence[str]) -> Check:
    """A unit that a system has twice; NULL in a grouping column is a value like any other."""

    def words(faults: Faults) -> dict[str, object]:
        return {"examples": "; ".join(f"{_named(units, fault, keys)} ({fault['n_rows']} rows)" for fault in faults)}

    return file_check("compare/checks/repeated_units", units, keys, words=words, located=False)


def _one_cluster_check(units: Source, keys: Sequence[str], cluster: str) -> Check:
    """A unit in several clusters."""

    def words(faults: Faults) -> dict[str, object]:
        return {"unit": _named(units, faults[0], keys), "cluster": users_name(cluster)}

    columns = {"unit_cluster": cluster}
    return file_check("compare/checks/several_clusters", units, keys, columns=columns, words=words, located=False)


def _missing_units_check(units: Source, keys: Sequence[str]) -> Check:
    """A unit that not every system has."""

    def words(faults: Faults) -> dict[str, object]:
        numbers = (f"{fault['n_systems']} of {fault['of_systems']} systems" for fault in faults)
        units_in_words = (_named(units, fault, keys) for fault in faults)
        return {"examples": "; ".join(f"{unit} ({n})" for unit, n in zip(units_in_words, numbers, strict=True))}

    return file_check("compare/checks/missing_units", units, keys, words=words, located=False)


def _named(units: Source, fault: Mapping[str, object], keys: Sequence[str]) -> str:
    return ", ".join(f"{shown_name(units, key)} = {fault[key]}" for key in keys)


# Where the numbers of compare come from: the units in which two systems differ most.


_MEASURES = ("mean_a", "mean_b", "p_value", "p_adjusted", "effect_size")
_PULL = "pull"


def _compared(asked: Asked) -> tuple[str, ...]:
    """Columns of the units that the metric of the row is made of: its values, or all counts."""
    units = next(node for node in asked.plan.nodes if isinstance(node, Relation) and node.into == "units")
    names = tuple(units.query.named_selects)
    value = f"{METRIC}{asked.row['metric']}"
    return (value,) if value in names else tuple(name for name in names if name.startswith(COUNT))


def _of_system(units: pl.DataFrame, asked: Asked, side: str) -> pl.DataFrame:
    """The units of the first or of the other system."""
    system = pl.lit(asked.row[f"system_{side}"], dtype=units.schema["system"])
    return units.filter(pl.col("system").eq_missing(system))


def _pulls(units: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Units of both systems below each other, those first that lie farthest from the mean of their system.

    Of counts those with the most.
    """
    names = _compared(asked)
    values = [pl.col(name).cast(pl.Float64) for name in names]
    if len(names) == 1:
        values = [(value - value.mean()).abs() for value in values]
    systems = [_of_system(units, asked, side).with_columns(pl.sum_horizontal(values).alias(_PULL)) for side in "ab"]
    keys = ["system", "unit", *asked.by]
    order = pl.concat(systems).sort(_PULL, *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    return order.select(*keys, *(pl.col(name).alias(_plain(name)) for name in names))


def _differences(units: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Units of both systems side by side, and the differences; the largest first, of counts the largest together."""
    names = _compared(asked)
    keys = ["unit", *asked.by]
    sides = [
        _of_system(units, asked, side).select(*keys, *(pl.col(name).alias(f"{_plain(name)}_{side}") for name in names))
        for side in "ab"
    ]
    paired = sides[0].join(sides[1], on=keys, how="inner", nulls_equal=True)
    differences = [
        (pl.col(f"{_plain(name)}_a") - pl.col(f"{_plain(name)}_b")).alias(f"{_plain(name)}_difference")
        for name in names
    ]
    paired = paired.with_columns(differences)
    size = pl.sum_horizontal(pl.col(f"{_plain(name)}_difference").abs().cast(pl.Float64) for name in names)
    return paired.sort(size, *(pl.col(key) for key in keys), descending=[True] + [False] * len(keys), nulls_last=True)


def _plain(name: str) -> str:
    return name.removeprefix(METRIC).removeprefix(COUNT)


EVIDENCE = Evidence(
    measures=(
        Measure("difference", "compare_tests", ((("difference", "mean_a - mean_b"),),)),
        Measure("ratio", "compare_tests", ((("ratio", "mean_a / mean_b"),),)),
        *(Measure(name, "compare_tests") for name in _MEASURES),
    ),
    sections=(
        Section(
            "units",
            "Units that decide the difference",
            "Units of both systems side by side, the largest differences first; of ratios of all counts the largest "
            "differences of counts. With paired = false units of either system, those first that lie farthest from its "
            "mean, or have the most counts.",
            "compare/explain/units",
            finish=lambda units, _, asked: (_differences if asked.params.paired else _pulls)(units, asked),
            ranks=True,
            segment=lambda asked: ("unit", "system", *asked.by, *_compared(asked)),
            inputs={"units": {"unit": "unit"}},
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "units"},
    threshold="",
    values=lambda _asked: {},
    preferred={"test": "paired_t"},  # whose limits tell the spread that plans start from
    independent="units",
    decides=(
        "metrics",
        "paired",
        "baseline",
        "tests",
        "margin",
        "lower_is_better",
        "contributions",
        "correction",
        "missing_units",
        "resamples",
        "seed",
    ),
)
