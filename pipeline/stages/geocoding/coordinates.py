"""Distance in SQL, and checks of coordinates that name the file and the row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.metrics.geocoding.distance import EARTH_RADIUS_KM, MAX_LATITUDE, MAX_LONGITUDE, MIN_LONGITUDE
from pipeline.plan.checks import rows_in_words
from pipeline.plan.nodes import Check
from pipeline.queries.dialect import column, double
from pipeline.sources.canonical import canonical_relation
from pipeline.sources.keys import is_missing
from pipeline.sources.source import PASSES_WHERE, SCORE_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.sources.inputs import Field
    from pipeline.sources.source import Source

PLACE = ("latitude", "longitude")


def haversine_square(first: str, second: str) -> exp.Expr:
    """SQL of the square under the arcsine of the great-circle distance; NULL when a coordinate is.

    Args:
        first: Name of a table with latitude and longitude in degrees.
        second: Name of the other one.
    """
    (latitude, longitude), (other_latitude, other_longitude) = (
        [column(name, table) for name in PLACE] for table in (first, second)
    )
    across = exp.Mul(this=_call("cos", _radians(latitude)), expression=_call("cos", _radians(other_latitude)))
    return exp.Add(
        this=_squared(_half_sine(latitude, other_latitude)),
        expression=exp.Mul(this=across, expression=_squared(_half_sine(longitude, other_longitude))),
    )


def haversine_distance(square: exp.Expr) -> exp.Expr:
    """SQL of the distance in km from that square: see `pipeline.metrics.geocoding.distance`.

    Rounding may take the square above 1, and latitudes that a check is about to refuse may take it below 0.
    """
    zero, one = double(0.0), double(1.0)
    clipped = exp.Case().when(exp.GT(this=square.copy(), expression=one), one.copy())
    clipped = clipped.when(exp.LT(this=square.copy(), expression=zero), zero.copy()).else_(square.copy())
    return exp.Mul(this=double(2 * EARTH_RADIUS_KM), expression=_call("asin", _call("sqrt", clipped)))


def _call(name: str, value: exp.Expr) -> exp.Expr:
    return exp.func(name, value)


def _radians(value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=value.copy(), expression=double(math.pi / 180))


def _half_sine(value: exp.Expr, other: exp.Expr) -> exp.Expr:
    difference = exp.paren(exp.Sub(this=other.copy(), expression=value.copy()))
    return _call("sin", exp.Mul(this=difference, expression=double(math.pi / 360)))


def _squared(value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=value, expression=value.copy())


def coordinate_checks(source: Source, read: Mapping[str, Field]) -> Iterator[Check]:
    """Coordinates that are infinite or off the Earth, and places of which only one coordinate is known.

    Args:
        source: The input.
        read: The columns that are read of it, grouping columns too, by their names in its relation.
    """
    for name in PLACE:
        yield _check(source, name, _is_infinite(), "is infinite", _with_state(source, name, read))
    latitude, longitude = (column(name) for name in PLACE)
    beyond = exp.or_(
        exp.GT(this=latitude, expression=double(MAX_LATITUDE)), exp.LT(this=latitude, expression=double(-MAX_LATITUDE))
    )
    outside = exp.or_(
        exp.LT(this=longitude, expression=double(MIN_LONGITUDE)),
        exp.GT(this=longitude, expression=double(MAX_LONGITUDE)),
    )
    yield _check(source, "latitude", beyond, f"is beyond ±{MAX_LATITUDE:g}")
    yield _check(source, "longitude", outside, f"is outside {MIN_LONGITUDE:g} to {MAX_LONGITUDE:g}")
    for missing, known in (PLACE, PLACE[::-1]):
        half = exp.and_(is_missing(missing), exp.Not(this=is_missing(known)))
        yield _check(source, missing, half, f"is missing where {source.source_name(known)!r} is not")


def _with_state(source: Source, name: str, read: Mapping[str, Field]) -> exp.Query:
    """The rows of an input with the state of one column: elsewhere an infinite value is NULL, as an unknown one is.

    The columns are those that are read otherwise, too, because files are grouped by what is read of them.
    """
    return canonical_relation(source, read, score=name, located=True)


def _is_infinite() -> exp.Expr:
    return exp.EQ(this=column(SCORE_STATE), expression=exp.Literal.string("infinite_score"))


def _check(source: Source, name: str, problem: exp.Expr, words: str, rows: exp.Query | None = None) -> Check:
    """Rows with a problem, counted for the first file that has one.

    Args:
        source: The input.
        name: The column that has the problem.
        problem: Whether a row has it.
        words: What the column then is.
        rows: The rows; default: those of the input.
    """
    latitude, longitude = (column(each) for each in PLACE)
    exchangeable = exp.and_(
        exp.LTE(this=longitude, expression=double(MAX_LATITUDE)),
        exp.GTE(this=longitude, expression=double(-MAX_LATITUDE)),
        exp.GTE(this=latitude, expression=double(MIN_LONGITUDE)),
        exp.LTE(this=latitude, expression=double(MAX_LONGITUDE)),
    )
    query = exp.select(
        column("source_file"),
        exp.alias_(exp.Min(this=column("file_row_number")), "first"),
        exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows"),
        exp.alias_(exp.cast(exp.CountIf(this=exchangeable), "BIGINT"), "n_exchangeable"),
    )
    query = query.from_(exp.to_table(f"{source.name}_read") if rows is None else rows.subquery("with_state"))
    query = query.where(column(PASSES_WHERE), problem).group_by(column("source_file")).order_by(column("source_file"))

    def explain(faults: list[dict[str, object]]) -> tuple[str, str]:
        fault = faults[0]
        first = fault["first"]
        row = first + 1 if isinstance(first, int) else first
        message = (
            f"input {source.name}: column {source.source_name(name)!r} {words} in {rows_in_words(fault['n_rows'])} of "
            f"{fault['source_file']}, first at row {row:,}"
        )
        if fault["n_exchangeable"] == fault["n_rows"]:
            theirs = " and ".join(repr(source.source_name(each)) for each in PLACE)
            return message, f"{theirs} are most likely exchanged: map them with columns = {{ latitude = …, … }}."
        return message, "Correct these rows, leave them out with where, or make both NULL: not located."

    return Check(query.limit(1), explain)
