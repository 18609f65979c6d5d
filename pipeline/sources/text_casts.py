"""Expressions that read columns of text as numbers, truth values or times, where all values have one known form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass
from .types import in_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import polars as pl

    from .inputs import Kind

_DAYS = ("%d-%m-%Y", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d")
_OF_DAY = ("", " %H:%M", " %H:%M:%S")
_TRUE = {  # beside the word for false
    "yes": "no",
    "y": "n",
    "true": "false",
    "t": "f",
    "1": "0",
    "1.0": "0.0",
    "positive": "negative",
    "pos": "neg",
    "match": "nonmatch",
    "relevant": "irrelevant",
    "correct": "incorrect",
    "right": "wrong",
}
_MOST_WORDS = 20


@dataclass(frozen=True)
class TextCast:
    """How a column of text is read.

    Attributes:
        sql: The expression, for `{ sql = "…" }`.
        reading: The same of a column in Polars.
        is_plain: Whether it is a cast alone, which text formats do without being told.
        has_decimal_commas: Whether the only thing odd about its numbers are decimal commas.
    """

    sql: str
    reading: Callable[[pl.Expr], pl.Expr]
    is_plain: bool = False
    has_decimal_commas: bool = False


def text_cast(rows: pl.LazyFrame, column: str, kind: Kind) -> TextCast | None:
    """Return what reads all values of a column of text as what a field expects; None if no known form fits.

    Args:
        rows: Rows that have the column.
        column: Its name.
        kind: What the field expects: a number, an integer, a truth value, a time or a position.
    """
    import polars as pl  # noqa: PLC0415 - the command line shows its help without it

    texts = rows.select(pl.col(column).str.strip_chars().alias("value")).drop_nulls()
    if kind == "boolean":
        return _words(texts, in_expression(column))
    forms: dict[str, Callable[[str], Iterable[tuple[str, TextCast]]]] = {
        "number": _numbers,
        "integer": _integers,
        "instant": _times,
        "position": lambda name: (*_integers(name), *_numbers(name), *_times(name)),
    }
    candidates = list(forms[kind](in_expression(column))) if kind in forms else []
    for pattern, cast in candidates:
        value = pl.col("value")
        fits = cast.reading(value).is_not_null() & (value.str.contains(pattern) if pattern else True)
        if texts.select(fits.all()).collect(engine="streaming").item():
            return cast
    return None


def _numbers(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of numbers: with a point, in percent, with separators of thousands, with decimal commas."""
    import polars as pl  # noqa: PLC0415 - see text_cast

    def number(text: pl.Expr) -> pl.Expr:
        return text.cast(pl.Float64, strict=False)

    def pointed(text: pl.Expr) -> pl.Expr:
        return number(text.str.replace_all(",", ".", literal=True))

    def ungrouped(text: pl.Expr) -> pl.Expr:
        return number(text.str.replace_all(",", "", literal=True))

    bare, comma = f"rtrim({name}, ' %')", "replace({}, ',', '.')"
    yield "", TextCast(f"CAST({name} AS DOUBLE)", number, is_plain=True)
    yield "%$", TextCast(f"CAST({bare} AS DOUBLE) / 100", lambda text: number(text.str.strip_chars_end(" %")) / 100)
    yield (
        "%$",
        TextCast(
            f"CAST({comma.format(bare)} AS DOUBLE) / 100", lambda text: pointed(text.str.strip_chars_end(" %")) / 100
        ),
    )
    grouped = r"^[+-]?[1-9]\d{0,2}(,\d{3})*(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
    yield grouped, TextCast(f"CAST(replace({name}, ',', '') AS DOUBLE)", ungrouped)
    yield r"^[+-]?\d*,?\d+$", TextCast(f"CAST({comma.format(name)} AS DOUBLE)", pointed, has_decimal_commas=True)
    without_points = f"replace({name}, '.', '')"
    yield (
        r"^[+-]?\d{1,3}(\.\d{3})*(,\d+)?$|^[+-]?\d+(,\d+)?$",
        TextCast(
            f"CAST({comma.format(without_points)} AS DOUBLE)",
            lambda text: pointed(text.str.replace_all(".", "", literal=True)),
        ),
    )


def _integers(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of whole numbers: plain, with separators of thousands, with a point and zeros."""
    import polars as pl  # noqa: PLC0415 - see text_cast

    def integer(text: pl.Expr) -> pl.Expr:
        return text.cast(pl.Int64, strict=False)

    yield "", TextCast(f"CAST({name} AS BIGINT)", integer, is_plain=True)
    yield (
        r"^[+-]?\d{1,3}(,\d{3})*$",
        TextCast(
            f"CAST(replace({name}, ',', '') AS BIGINT)",
            lambda text: integer(text.str.replace_all(",", "", literal=True)),
        ),
    )
    yield (
        r"^[+-]?\d+\.0*$",
        TextCast(
            f"CAST(CAST({name} AS DOUBLE) AS BIGINT)", lambda text: text.cast(pl.Float64, strict=False).cast(pl.Int64)
        ),
    )


def _times(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of times: ISO 8601, seconds since 1970, and days and times of day in the usual orders."""
    import polars as pl  # noqa: PLC0415 - see text_cast

    iso = TextCast(
        f"CAST({name} AS TIMESTAMP)",
        lambda text: text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")),
        is_plain=True,
    )
    yield r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$", iso
    seconds = TextCast(
        f"to_timestamp(CAST({name} AS BIGINT))",
        lambda text: pl.from_epoch(text.cast(pl.Int64, strict=False), time_unit="s"),
    )
    yield r"^\d{9,10}$", seconds
    for pattern in (day + time for day in _DAYS for time in _OF_DAY):
        yield (
            "",
            TextCast(
                f"strptime({name}, '{pattern}')",
                lambda text, pattern=pattern: text.str.to_datetime(pattern, strict=False),  # type: ignore[misc]
            ),
        )


def _words(texts: pl.LazyFrame, name: str) -> TextCast | None:
    """The words of a column that mean true, where all of them are such words or mean false."""
    written = sorted(texts.unique().head(_MOST_WORDS).collect()["value"].to_list())
    if not all(word.lower() in {*_TRUE, *_TRUE.values()} for word in written):
        return None
    true = [word for word in written if word.lower() in _TRUE]
    plain = all(word.lower() in {"true", "false", "1", "0"} for word in written)
    if not true:
        true = [word for word, opposite in _TRUE.items() if opposite in {each.lower() for each in written}]
    listed = ", ".join(f"'{word}'" for word in true)
    sql = f"{name} = {listed}" if len(true) == 1 else f"{name} IN ({listed})"
    return TextCast(sql, lambda text: text.is_in(true), is_plain=plain)
