"""Inputs, parameters and result tables of geocoding."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator, model_validator

from ...base.columns import Count, Ratio, columns_of
from ...base.schemas import Column, Table, limits_of
from ...metrics.uncertainty.limits import CLUSTER_COLUMNS, QUALITY_COLUMN
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..mentions import MentionParameters
from ..parameters import ascending

_PLACE = (
    InputField("mention_id", "key", "the mention, the same in gold and predicted; not with match"),
    InputField("latitude", "number", "degrees north, from -90 to 90", required=True),
    InputField("longitude", "number", "degrees east, from -180 to 360", required=True),
    InputField("doc_id", "key", "the document of the mention"),
    InputField("start", "integer", "its first character, counted from 0"),
    InputField("end", "integer", "the character after its last"),
    InputField("text", "key", "its text"),
    InputField("type", "key", "its type"),
)
PREDICTED = InputContract(
    "predicted",
    (*_PLACE, InputField("rank", "number", "order of the candidates of a mention; the first has the lowest")),
    "one row per predicted place, or candidate; NULL coordinates: not located",
    required=True,
    evaluated=True,
)
GOLD = InputContract(
    "gold", _PLACE, "one row per gold mention with its place", required=True, evaluated=True, truth_of="predicted"
)

COUNTS = (
    Column("n_located", "BIGINT", "gold mentions whose distance from the prediction lies in the bin"),
    Column("n_gold", "BIGINT", "gold mentions; they have no bin"),
    Column("n_predicted", "BIGINT", "predicted mentions; they have no bin"),
    Column("n_spurious", "BIGINT", "located predictions without a gold mention; they have no bin"),
)
COUNT_NAMES = tuple(column.name for column in COUNTS)


_FALSE = ("fp", "fn")
STATED = (  # a further ratio is one more statement: column, comment, value, limits, formula and plan follow from it
    Count("n_gold", "gold mentions", total="n_gold", noun="gold mentions"),
    Count("n_attempted", "gold mentions whose match has coordinates", total="n_located", noun="located mentions"),
    Count("tp", "true positives: attempted and within the tolerance", within="n_located"),
    Count("fp", "false positives: attempted and beyond it", formula="n_attempted - tp"),
    Count("fn", "false negatives: gold mentions that are not true positives", formula="n_gold - tp"),
    Ratio(
        "precision",
        ("tp",),
        ("fp",),
        "nothing attempted",
        over=("n_attempted",),
        says="{formula}, the accuracy at this distance",
        reason="no_prediction",
    ),
    Ratio("recall", ("tp",), ("fn",), "no gold mention", over=("n_gold",), reason="no_positive"),
    Ratio("f1", ("tp",), _FALSE, "neither attempted nor gold", is_harmonic=True),
    Count("n_spurious", "predictions with coordinates but without a gold mention", total="n_spurious"),
    Ratio(
        "precision_end_to_end",
        ("tp",),
        ("fp", "n_spurious"),
        "neither attempted nor spurious",
        over=("n_attempted", "n_spurious"),
        is_limited=False,
    ),
    Ratio(
        "f1_end_to_end",
        ("tp",),
        (*_FALSE, "n_spurious"),
        "nothing at all",
        is_harmonic=True,
        says="f1 with n_spurious as further false positives",
        is_limited=False,
    ),
)
SCORES = Table(
    "geocoding_scores",
    "one row per tolerance",
    (
        Column("tolerance_km", "DOUBLE", "largest distance that counts as correct, in km"),
        *columns_of(STATED),
        Column("undefined", "VARCHAR", "why a ratio is NULL; NULL: all ratios are defined"),
        Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL: all limits are given"),
        QUALITY_COLUMN,
        *CLUSTER_COLUMNS,
    ),
    ("tolerance_km",),
)
LOCATED = Count("n_located", "gold mentions whose match has coordinates", noun="located mentions")
ERRORS = Table(
    "geocoding_errors",
    "one row",
    (
        *columns_of((STATED[0], LOCATED)),
        Column("mean_km", "DOUBLE", "mean distance of the located mentions; NULL: nothing located"),
        *limits_of("mean_km"),
        QUALITY_COLUMN,
        Column("median_km", "DOUBLE", "median distance; NULL: nothing located"),
        Column(
            "log_error_auc",
            "DOUBLE",
            "area under the log errors, 0 is perfect and 1 the worst; NULL: fewer than two located",
        ),
    ),
    (),
)
OUTCOMES = Table(
    "geocoding_outcomes",
    "one row per gold mention",
    (
        Column("mention", "BIGINT", "number of the gold mention in its group, from 1"),
        Column("mention_id", "KEY", "the mention; NULL: not in gold"),
        Column("doc_id", "KEY", "document of the mention; NULL: not in gold"),
        Column("start", "BIGINT", "first character of the mention; NULL: not in gold"),
        Column("end", "BIGINT", "the character after the last of the mention; NULL: not in gold"),
        Column("text", "KEY", "text of the mention; NULL: not in gold"),
        Column("gold_latitude", "DOUBLE", "where it is"),
        Column("gold_longitude", "DOUBLE", "where it is"),
        Column("predicted_latitude", "DOUBLE", "where the prediction puts it; NULL: not located"),
        Column("predicted_longitude", "DOUBLE", "where the prediction puts it; NULL: not located"),
        Column("distance_km", "DOUBLE", "distance of the two; NULL: not located"),
        Column(
            "outcome", "VARCHAR", "at the smallest tolerance: `tp`, `fp` (which is a miss, too), `fn` (not located)"
        ),
        Column(
            "not_located",
            "VARCHAR",
            "`no_prediction`: no prediction is aligned; `no_coordinates`: it has none; NULL: located",
        ),
    ),
    ("mention",),
)
DOCUMENTS = Table(
    "geocoding_documents",
    "one row per group and unit",
    (
        Column("unit", "KEY", "the independent unit: the cluster, else the document, else the mention"),
        Column("tolerance_km", "DOUBLE", "the tolerance of the counts: `unit_tolerance_km`"),
        Column("n_gold", "BIGINT", "gold mentions of the unit"),
        Column("n_attempted", "BIGINT", "of these, mentions whose match has coordinates"),
        *columns_of(STATED[2:5]),
        *(
            Column(
                name,
                "DOUBLE",
                f"its [contribution](methods/geocoding.md#units) to `{name}`, whose mean over the units is that "
                "number; NULL: undefined, or without one of the units",
            )
            for name in ("mean_km", "log_error_auc")
        ),
    ),
    ("unit",),
)
TABLES = (SCORES, ERRORS, OUTCOMES, DOCUMENTS)


class GeocodingParameters(MentionParameters):
    """Parameters of geocoding.

    Attributes:
        predicted: Predicted places.
        gold: Gold places.
        tolerances_km: Largest distances that count as correct, rising.
        tolerance_boundary: Whether a distance equal to the tolerance is within it.
        candidates: What happens when a mention has several predicted rows: `error`; `first`: the one with the lowest
            rank; `closest`: the one nearest to the gold place, the best that any choice among them could do.
        distance: `haversine`: great circle on a sphere of 6371.0088 km; `geodesic`: WGS84 ellipsoid, with pyproj.
        missing_errors: What mentions that are not located are in the errors: left out, or given the largest error.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and predicted.
        units: Whether the table of units is made, on which `compare` compares systems; `auto`: likewise.
        unit_tolerance_km: The tolerance at which units are counted, one of `tolerances_km`; default: the largest.
    """

    example: ClassVar[str] = "tolerances_km=[10, 161]"

    kind: Literal["geocoding"] = "geocoding"
    predicted: Input
    gold: Input
    tolerances_km: tuple[float, ...] = (10.0, 100.0, 161.0)
    tolerance_boundary: Literal["<=", "<"] = "<="
    candidates: Literal["error", "first", "closest"] = "error"
    distance: Literal["haversine", "geodesic"] = "haversine"
    missing_errors: Literal["exclude", "max_error"] = "exclude"
    outcomes: Literal["auto"] | bool = "auto"
    units: Literal["auto"] | bool = "auto"
    unit_tolerance_km: float | None = None

    @field_validator("tolerances_km")
    @classmethod
    def _distances(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if value and value[0] < 0:
            message = "a tolerance is a distance, at least 0"
            raise ValueError(message)
        return ascending(value)

    @field_validator("by")
    @classmethod
    def _groups(cls, value: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        taken = {"threshold", *COUNT_NAMES, "gold_start", "gold_end", "gold_text"}
        for name in (name for grouping in value for name in grouping):
            if name.lower() in taken:
                message = f"{name!r} is also a column of the counts: give it another name with columns = {{ … }}"
                raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _fits(self) -> GeocodingParameters:
        if self.thresholds not in {None, "distinct"} or self.boundary != ">=":
            message = "geocoding has no thresholds: use tolerances_km and tolerance_boundary"
            raise ValueError(message)
        if self.counts_missed:
            message = (
                'there are no scores that invalid_scores = "missed" could count: NULL coordinates mean not located'
            )
            raise ValueError(message)
        if self.duplicates != "error":
            message = 'every gold mention counts once, so duplicates must be "error"; several predictions: candidates'
            raise ValueError(message)
        if self.unit_tolerance_km is not None and self.unit_tolerance_km not in self.tolerances_km:
            shown = ", ".join(f"{tolerance:g}" for tolerance in self.tolerances_km)
            message = f"unit_tolerance_km: {self.unit_tolerance_km:g} is none of tolerances_km ({shown})"
            raise ValueError(message)
        if self.match is None and self.match_type:
            message = "match_type goes with match: mentions are aligned by mention_id"
            raise ValueError(message)
        return self
