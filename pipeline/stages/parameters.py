"""Parameters that all stages share, and durations in configs."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from ..base.columns import Boundary
from ..base.schemas import TOTAL, Grouping, cluster_name, internal_name, unlike_but_for_case
from ..metrics.before_after.timelines import MICROSECONDS_PER_HOUR, Span
from ..metrics.curves.operating_points import given_thresholds
from ..metrics.uncertainty.replicates import DEFAULT_RESAMPLES, FEWEST_RESAMPLES, MOST_RESAMPLES, Resampling
from ..sources.bins import Grid
from ..sources.types import as_renaming

# Durations in configs, and the window around an event.


_MICROSECONDS = {
    "s": 1_000_000,
    "m": 60_000_000,
    "h": MICROSECONDS_PER_HOUR,
    "d": 24 * MICROSECONDS_PER_HOUR,
    "w": 168 * MICROSECONDS_PER_HOUR,
}
LONGEST_HOURS = 36525 * 24  # a century: days are counted one by one
RECORDED = "recorded"  # key of the context in which parameters are read back from the record of a run
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhdw])")


def parse_microseconds(value: object) -> int:
    """Whole microseconds of a duration such as `90m`, `168h`, `7.3d`; what is finer is rounded, halves to even.

    Raises:
        ValueError: it is written otherwise, or longer than a century.
    """
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        message = f'{value!r} is no duration: write a number and s, m, h, d or w, for example "168h"'
        raise ValueError(message)
    exact = Fraction(match["number"]) * _MICROSECONDS[match["unit"]]
    if exact > LONGEST_HOURS * MICROSECONDS_PER_HOUR:
        message = f"{value!r} is longer than a century (36525d)"
        raise ValueError(message)
    return round(exact)


def parse_hours(value: object) -> float:
    """Hours of a duration, of its whole microseconds; `parse_microseconds` says how it may be written."""
    return parse_microseconds(value) / MICROSECONDS_PER_HOUR


def microseconds(hours: float) -> int:
    """Whole microseconds of hours: exact for hours that are the nearest to whole microseconds, up to a century."""
    return round(hours * MICROSECONDS_PER_HOUR)


def _hours(value: object, info: ValidationInfo) -> float:
    """Hours as a config writes them, or as the record of a run holds them: as a number."""
    is_recorded = bool(info.context and info.context.get(RECORDED))
    return float(value) if is_recorded and isinstance(value, int | float) else parse_hours(value)


Hours = Annotated[float, BeforeValidator(_hours)]


class Window(BaseModel):
    """Time around an event, in hours from the event to the article.

    Attributes:
        before: Length of the part before the event; it starts inclusive.
        after: Length of the part after the event; lag 0 belongs to it.
        closed: `both`: a lag of exactly `after` belongs to the window; `left`: it does not.
        gap: Length of a guard gap: lags in [-gap, 0) belong to neither part.
        near: Length of the part nearest to the event, up to the gap, that the placebo test compares with the rest of
            the window before; default: as long as the part after the event, at most half of it.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    before: Hours = Field()
    after: Hours = Field()
    closed: Literal["both", "left"] = "both"
    gap: Hours = 0.0
    near: Hours | None = None

    @model_validator(mode="after")
    def _room(self) -> Window:
        room = microseconds(self.before) - microseconds(self.gap)
        if room <= 0 or self.after < 0:
            message = f"the window before the event ({self.before:g} h) must be longer than the gap ({self.gap:g} h)"
            raise ValueError(message)
        if self.near is not None and not 0 < microseconds(self.near) < room:
            message = f"near ({self.near:g} h) must be shorter than the window before the event without its gap"
            raise ValueError(message)
        return self

    def span(self) -> Span:
        """The window in whole microseconds."""
        before, gap, after = microseconds(self.before), microseconds(self.gap), microseconds(self.after)
        half = (before - gap + 1) // 2
        near = (min(after, half) or half) if self.near is None else microseconds(self.near)
        return Span(
            before_start=-before,
            before_end=-gap,
            near_start=-gap - near,
            after_start=0,
            after_end=after,
            closed=self.closed == "both",
        )

    def bounds(self) -> dict[str, float]:
        """Lags that belong to it: [before_start, before_end) and [after_start, after_end], in whole microseconds."""
        span = self.span()
        return {
            "before_start": float(span.before_start),
            "before_end": float(span.before_end),
            "near_start": float(span.near_start),
            "after_start": 0.0,
            "after_end": float(span.after_end if span.closed else span.after_end - 1),
        }


EVERYTHING = {
    "before_start": -math.inf,
    "before_end": 0.0,
    "near_start": math.inf,
    "after_start": 0.0,
    "after_end": math.inf,
}


# Parameters that all stages share.


NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
FEWEST_REPLICATES, MOST_REPLICATES = 2, 10_000
MAX_CONFIDENCE = 1 - 1e-9  # nearer to 1, quantiles are infinite as doubles
Confidence = Annotated[float, Field(gt=0, le=MAX_CONFIDENCE)]


class EvenThresholds(BaseModel):
    """Evenly spaced thresholds, both ends included: the doubles nearest to the decimal values that people write."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    start: float = Field(allow_inf_nan=False)
    stop: float = Field(allow_inf_nan=False)
    count: int = Field(ge=1, le=100_000)

    @model_validator(mode="after")
    def _ascending(self) -> EvenThresholds:
        if self.count > 1 and self.stop <= self.start:
            message = f"stop ({self.stop}) must be greater than start ({self.start})"
            raise ValueError(message)
        return self

    def values(self) -> tuple[float, ...]:
        """The thresholds in ascending order, see `even_values`."""
        if not math.isfinite(self.stop - self.start):
            message = f"the thresholds from {self.start} to {self.stop} span more than a double holds"
            raise ValueError(message)
        values = even_values(self.start, self.stop, self.count)
        if len(set(values)) < len(values):
            message = f"{self.count} thresholds between {self.start} and {self.stop} are not distinct as doubles"
            raise ValueError(message)
        return values


Thresholds: TypeAlias = EvenThresholds | tuple[float, ...] | Literal["distinct"] | None


@lru_cache(maxsize=16)
def even_values(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Evenly spaced values, both ends included; only `start` if one is wanted.

    The ends stand for the shortest decimals that parse as them; the points between are exact fractions of these, each
    rounded once to the nearest double, so that a point that is a short decimal is what that decimal parses as.
    """
    first, last = Fraction(repr(start)), Fraction(repr(stop))
    denominator = math.lcm(first.denominator, last.denominator)
    low, high = (end.numerator * (denominator // end.denominator) for end in (first, last))
    steps = max(count - 1, 1)
    return tuple((low * (steps - step) + high * step) / (denominator * steps) for step in range(count))


def ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    """The values, if they are finite and rise; else a ValueError that says which does not."""
    if not values:
        message = "thresholds are empty: give at least one"
        raise ValueError(message)
    if not all(math.isfinite(value) for value in values):
        message = "thresholds must be finite numbers"
        raise ValueError(message)
    for left, right in pairwise(values):
        if right <= left:
            message = f"thresholds must rise: {right:g} follows {left:g}"
            raise ValueError(message)
    return values


def _why_no_column(name: str) -> str | None:
    """Why a grouping column cannot have a name, and what to do; None: it can."""
    rename = f"rename it with {as_renaming('my_column', name)}, and write my_column"
    if not name:
        return "it is empty, which no mapping can rename: write the file again with a name for that column"
    if "," in name:
        return f"the column `grouping` of results puts a comma between names; {rename}"
    if name == TOTAL:
        return f"the column `grouping` of results calls the total {TOTAL!r}; {rename}"
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in name):
        return "no file can have a column with such characters"
    return None


def _names_of(item: object, computed: list[dict[str, Any]]) -> object:
    """Return a part of `by` with names alone; what is computed goes to the list."""
    if isinstance(item, list | tuple):
        return [_names_of(each, computed) for each in item]
    if not isinstance(item, dict):
        return item
    if not {"name", "sql"} <= set(item) <= {"name", "sql", "input"}:
        message = """by: a value that is computed is written { name = "week", sql = "date_trunc('week', day)" }"""
        raise ValueError(message)
    computed.append(item)
    return item["name"]


class StageParameters(BaseModel):
    """Parameters of every stage; stages add their inputs and their own keys.

    Attributes:
        name: Name of the stage in results; default: its kind.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a column may
            stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the first input, or of
            the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and the
            stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a column of
            dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below every
            threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an error.
        example: A key with its value, for the help of the stage's command.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")
    most_parents: ClassVar[int] = 1  # of a row, by which `cluster` can name it
    inapplicable: ClassVar[frozenset[str]] = frozenset()  # keys that mean nothing to the stage: refused, and not shown
    example: ClassVar[str] = "thresholds={start=0, stop=1, count=101}"

    name: str
    by: tuple[tuple[str, ...], ...] = ((),)
    thresholds: Thresholds = None
    cluster: str | tuple[str, str] | None = None
    cluster_order: str | None = None
    confidence: Confidence = 0.95
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife"
    resamples: Annotated[int, Field(ge=FEWEST_RESAMPLES, le=MOST_RESAMPLES)] = DEFAULT_RESAMPLES
    seed: Annotated[int, Field(ge=0)] = 0
    replicates: Literal["auto"] | int = "auto"
    boundary: Boundary = ">="
    invalid_scores: Literal["error", "drop", "missed"] = "error"
    duplicates: Literal["error", "max", "keep"] = "error"
    allow_empty: bool = False

    @classmethod
    def keys(cls) -> list[str]:
        """The keys that a config may have."""
        return [name for name in cls.model_fields if name not in cls.inapplicable]

    @property
    def measured(self) -> tuple[str, ...]:
        """Measures that the config asks for by name, which are columns of the table of units."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _used(cls, values: object) -> object:
        for name in values if isinstance(values, dict) else ():
            if name in cls.inapplicable:
                message = f"`{name}` means nothing to this stage: leave it out"
                raise ValueError(message)
        return values

    @model_validator(mode="before")
    @classmethod
    def _computed_groups(cls, values: object) -> object:
        """Put the expressions of `by` where expressions stand: into the columns of an input."""
        if not isinstance(values, dict) or not isinstance(values.get("by"), list | tuple):
            return values
        computed: list[dict[str, Any]] = []
        by = [_names_of(item, computed) for item in values["by"]]
        if not computed:
            return values
        inputs = [name for name, field in cls.model_fields.items() if "Input" in str(field.annotation)]
        values = {**values, "by": by}
        for group in computed:
            name = group.get("input", inputs[0])
            if name not in inputs or values.get(name) is None:
                message = f"by: {group['name']} is computed from the input {name!r}, which is not given"
                raise ValueError(message)
            given = values[name]
            spec = given if isinstance(given, dict) else {"path": given}
            columns = spec.get("columns") or {}
            if columns.get(group["name"], {"sql": group["sql"]}) != {"sql": group["sql"]}:
                message = f"by: {group['name']} is computed in two ways: give each a name of its own"
                raise ValueError(message)
            values[name] = {**spec, "columns": {**columns, group["name"]: {"sql": group["sql"]}}}
        return values

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            message = (
                f"{value!r} is no stage name: use a-z, 0-9, '_', '.', '-', at most 64, starting with a letter or digit"
            )
            raise ValueError(message)
        return value

    @field_validator("by", mode="before")
    @classmethod
    def _groupings(cls, value: object) -> object:
        if isinstance(value, str):
            return ((), (value,))
        if not isinstance(value, list | tuple):
            message = 'write a list of columns, for example by = ["source"], or of groupings, by = [[], ["source"]]'
            raise ValueError(message)  # noqa: TRY004 - pydantic turns only a ValueError into a message
        if value and all(isinstance(item, str) for item in value):
            return ((), tuple(value))
        if any(isinstance(item, str) for item in value):
            message = 'mix no columns with groupings: write for example by = [["source"], ["source", "country"]]'
            raise ValueError(message)
        return value

    @field_validator("cluster", mode="before")
    @classmethod
    def _clusters(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            if len(value) == 1:
                return value[0]
            if len(value) > cls.most_parents or len(set(value)) < len(value):
                most = "one column" if cls.most_parents == 1 else "one column, or two different ones"
                message = f"the rows of this stage have independent units by {most}"
                raise ValueError(message)
        return value

    @field_validator("replicates", mode="before")
    @classmethod
    def _replicates(cls, value: object) -> object:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if value != "auto" and not (is_integer and value in range(FEWEST_REPLICATES, MOST_REPLICATES + 1)):
            message = f'write "auto" or a number from {FEWEST_REPLICATES} to {MOST_REPLICATES:,}'
            raise ValueError(message)
        return value

    @field_validator("by")
    @classmethod
    def _plain_by(cls, value: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for grouping in value:
            for name in grouping:
                if why := _why_no_column(name):
                    message = f"{name!r} cannot be a grouping column: {why}"
                    raise ValueError(message)
            if len(set(grouping)) < len(grouping):
                message = f"grouping {', '.join(grouping)} names a column twice"
                raise ValueError(message)
        if alike := unlike_but_for_case(name for grouping in value for name in grouping):
            message = (
                f"{alike[0]!r} and {alike[1]!r} differ in case only, which readers of the results do not tell apart; "
                "rename one with columns = { … }"
            )
            raise ValueError(message)
        if len({tuple(sorted(grouping)) for grouping in value}) < len(value):
            message = "the same grouping is given twice"
            raise ValueError(message)
        if not value:
            message = "by is empty: leave it out, or write [[]] for the total"
            raise ValueError(message)
        return value

    @field_validator("thresholds", mode="before")
    @classmethod
    def _threshold_forms(cls, value: object) -> object:
        if value != "distinct" and not isinstance(value, list | tuple | dict | EvenThresholds | None):
            message = f'{value!r}: write a list, {{ start, stop, count }} or "distinct"'
            raise ValueError(message)
        if isinstance(value, list | tuple):
            if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
                message = "thresholds must be numbers"
                raise ValueError(message)
            return ascending(tuple(float(item) for item in value))
        return value

    @field_validator("thresholds")
    @classmethod
    def _distinct_values(cls, value: Thresholds) -> Thresholds:
        if isinstance(value, EvenThresholds):
            value.values()
        return value

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        if self.cluster_order is not None and not isinstance(self.cluster, str):
            message = "cluster_order goes with cluster, one column, whose values it puts in order"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _enough_resamples(self) -> Self:
        resampling = self.resampling
        if resampling is not None and resampling.rank(self.confidence) == 0:
            message = (
                f"resamples = {self.resamples} are too few for confidence = {self.confidence:g}: the limits are "
                f"quantiles with {(1 - self.confidence) / 2:.3g} on each side; give at least "
                f"{math.ceil(2 / (1 - self.confidence) - 1 - 1e-6)}"
            )
            raise ValueError(message)
        return self

    @property
    def first_cluster(self) -> str | None:
        """The column of the clusters, of two the first."""
        return self.cluster[0] if isinstance(self.cluster, tuple) else self.cluster

    @property
    def cluster_column(self) -> str | None:
        """Internal name of the column of the clusters, of two the first."""
        return None if self.first_cluster is None else cluster_name(self.first_cluster)

    @property
    def second_cluster_column(self) -> str | None:
        """Internal name of the column of the second parent; None: rows have one parent."""
        return cluster_name(self.cluster[1]) if isinstance(self.cluster, tuple) else None

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings in internal names: what every query, count table and frame is grouped by."""
        return tuple(Grouping.of(names) for names in self.by)

    @property
    def by_columns(self) -> tuple[str, ...]:
        """Internal names of all grouping columns, each once."""
        return tuple(dict.fromkeys(internal_name(name) for names in self.by for name in names))

    @property
    def n_replicates(self) -> int | None:
        """Number of replicates; None: it follows from the number of clusters."""
        return None if self.replicates == "auto" else self.replicates

    @property
    def is_replicated(self) -> bool:
        """Whether intervals are wanted, so that replicates are counted."""
        return self.uncertainty != "none"

    @property
    def resampling(self) -> Resampling | None:
        """How the bootstrap draws; None: intervals have closed forms."""
        return Resampling(self.resamples, self.seed) if self.uncertainty == "bootstrap" else None

    @property
    def drawn_resamples(self) -> int:
        """Number of resamples that intervals are made from; 0 for closed forms."""
        return 0 if self.resampling is None else self.resamples

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds in ascending order, including operating points; None: they are the scores themselves."""
        values = self.thresholds.values() if isinstance(self.thresholds, EvenThresholds) else self.thresholds
        if not isinstance(values, tuple):
            return None
        further = given_thresholds(getattr(self, "operating_points", ()))
        return tuple(sorted({*values, *further})) if further else values

    @property
    def counts_missed(self) -> bool:
        """Whether rows without a valid score count, as below every threshold."""
        return self.invalid_scores == "missed"

    def grid(self) -> Grid | None:
        """The thresholds with their boundary; None when they are the scores themselves."""
        values = self.threshold_values
        return None if values is None else Grid(values, self.boundary)
