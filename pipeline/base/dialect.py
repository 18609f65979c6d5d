"""SQL as trees and as text, kept in this process: names, dialects of DuckDB and Spark, digests of rows, long lists."""

from __future__ import annotations

import re
import sys
from dataclasses import field, replace
from datetime import date
from functools import cache
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from .records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import pyarrow as pa


# Trees of SQL and their text, kept in this process by what they were built from: building takes longer than running.
#
# A kept tree is shared, so nobody may change it. It has a number that is never given again: a key made of numbers names
# what it was made of, also after everything was dropped.


T = TypeVar("T", bound="exp.Expr")

MOST = 2000
_numbers = count()
_trees: dict[Hashable, exp.Expr] = {}
_by_id: dict[int, tuple[exp.Expr, int]] = {}
_texts: dict[Hashable, str] = {}


def kept(key: Hashable | None, build: Callable[[], T]) -> T:
    """Return the tree of a key, built the first time it is asked for; None as key: it is built, and not kept."""
    if key is None:
        return build()
    tree = cast("T | None", _trees.get(key))
    if tree is None:
        if len(_trees) >= MOST:
            _trees.clear()
            _by_id.clear()
            _texts.clear()
        tree = build()
        if id(tree) not in _by_id:
            _by_id[id(tree)] = tree, next(_numbers)
        _trees[key] = tree
    return tree


def number_of(tree: exp.Expr) -> int | None:
    """Return the number of a kept tree; None: it is not kept."""
    numbered, number = _by_id.get(id(tree), (None, None))
    return number if numbered is tree else None


def part(value: object) -> Hashable:
    """Return what stands for a part of a key: the number of a kept tree, the text of another, the value itself."""
    if isinstance(value, exp.Expression):
        number = number_of(value)
        return ("tree", number) if number is not None else ("text", value.sql("duckdb", comments=False))
    return value


def parts(values: Mapping[str, object] | None) -> Hashable:
    """Return what stands for a mapping in a key; its order counts."""
    return None if values is None else tuple((name, part(value)) for name, value in values.items())


def text(key: Hashable | None, make: Callable[[], str]) -> str:
    """Return the text of a key, made the first time it is asked for."""
    if key is None:
        return make()
    if key not in _texts:
        _texts[key] = make()
    return _texts[key]


# What SQL is written otherwise for DuckDB, to have the same result sooner.


OF_DOUBLES = "of_doubles"  # key of the meta data of a sum of decimals that are made of doubles
SCALE = 15
_SHORT = ("DECIMAL(18, 15)", "DECIMAL(19, 15)")  # times ten to the fifteenth they are a BIGINT, up to 9,223


def mark_sums(tree: exp.Expr) -> None:
    """Mark the sums in a tree whose terms are short decimals, all of which are made of doubles."""
    for total in tree.find_all(exp.Sum):
        if isinstance(total.this, exp.Cast) and total.this.to.sql() in _SHORT:
            total.meta[OF_DOUBLES] = True


def for_duckdb(tree: exp.Expr, *, copy: bool) -> exp.Expr:
    """Return a tree with sums of integers for those sums of decimals that are marked.

    A cast to a decimal multiplies by a power of ten and rounds halves away from zero, as is written out here: the sums
    are the same to the last digit, in half the time.

    Args:
        tree: Any tree.
        copy: Whether the tree must stay as it is.
    """
    if not any(node.meta.get(OF_DOUBLES) for node in tree.find_all(exp.Sum)):
        return tree
    tree = tree.copy() if copy else tree
    for total in list(tree.find_all(exp.Sum)):
        if total.meta.get(OF_DOUBLES):
            total.replace(_sum_of_integers(total.this.this))
    return tree


def _sum_of_integers(term: exp.Expr) -> exp.Expr:
    power = exp.cast(exp.Literal.string(repr(10.0**SCALE)), "DOUBLE")
    in_units = exp.Round(this=exp.Mul(this=exp.paren(term.copy()), expression=power))
    total = exp.cast(exp.Sum(this=exp.cast(in_units, "BIGINT")), "DECIMAL(38, 0)")
    unit = exp.cast(exp.Literal.string(f"{10**-SCALE:.{SCALE}f}"), f"DECIMAL({SCALE}, {SCALE})")
    return exp.paren(exp.Mul(this=total, expression=unit))


# What SQL must be written otherwise to mean the same on Spark, where sqlglot leaves it as it is.


_QUOTED = re.compile(r"'(?:[^']|'')*+'")
ROUNDS = "rounds"  # key of the meta data of a cast by the user, which rounds a fraction where Spark would cut it
_TYPES = {
    exp.DataType.Type.USMALLINT: "INT",
    exp.DataType.Type.UINT: "BIGINT",
    exp.DataType.Type.UBIGINT: "DECIMAL(20, 0)",
    exp.DataType.Type.HUGEINT if hasattr(exp.DataType.Type, "HUGEINT") else exp.DataType.Type.INT128: "DECIMAL(38, 0)",
}


def for_spark(tree: exp.Expr) -> exp.Expr:
    """Return a copy of a tree with other words for what Spark lacks, or takes for something else.

    What stands inside is rewritten before what it stands in, so that nothing is left out.
    """
    rewritten = tree.copy()
    for node in reversed(list(rewritten.walk())):
        rewrite = _REWRITES.get(type(node))
        replacement = node if rewrite is None else rewrite(node)
        if node is rewritten:
            rewritten = replacement
        elif replacement is not node:
            node.replace(replacement)
    return rewritten


def _type(node: exp.Expr) -> exp.Expr:
    """Unsigned and very wide types, which only DuckDB has, become the next type that holds their values."""
    wider = _TYPES.get(node.this)
    return node if wider is None else exp.DataType.build(wider, dialect="duckdb")


def _quotient(node: exp.Expr) -> exp.Expr:
    """A quotient is a DOUBLE, and infinite or NaN where the divisor is 0: an error on Spark."""
    dividend, divisor = exp.cast(node.this, "DOUBLE"), node.expression
    quotient = exp.Div(this=dividend, expression=divisor, typed=False, safe=False)
    if _is_constant(divisor):
        return quotient
    infinite = exp.Mul(this=dividend.copy(), expression=exp.cast(exp.Literal.string("Infinity"), "DOUBLE"))
    is_zero = exp.EQ(this=exp.paren(divisor.copy()), expression=exp.Literal.number(0))
    return exp.Paren(this=exp.Case().when(is_zero, infinite).else_(quotient))


def _is_constant(divisor: exp.Expr) -> bool:
    """Whether a divisor is a number other than 0."""
    while isinstance(divisor, exp.Paren | exp.Cast):
        divisor = divisor.this
    try:
        return isinstance(divisor, exp.Literal) and float(divisor.name) != 0
    except ValueError:  # a text
        return False


def _instant(node: exp.Expr) -> exp.Expr:
    """The instant of a time without a zone, in a zone: of a time that comes twice when clocks go back, the later one.

    Spark takes the earlier one. The later one comes of the offset of a day later, where it leads back to the time.
    """
    zone = node.args["zone"]
    timestamp = exp.cast(node.this, "TIMESTAMPTZ")
    day = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
    next_day = exp.paren(exp.Add(this=timestamp.copy(), expression=day))
    later = exp.Sub(this=exp.func("to_utc_timestamp", next_day, zone.copy()), expression=day.copy())
    leads_back = exp.func("from_utc_timestamp", exp.paren(later), zone.copy()).eq(timestamp.copy())
    case = exp.Case().when(leads_back, later.copy())
    return exp.paren(case.else_(exp.func("to_utc_timestamp", timestamp.copy(), zone.copy())))


def _pattern(node: exp.Expr) -> exp.Expr:
    """A pattern in which a backslash stands for itself, as on DuckDB."""
    pattern, one, two = node.expression, "\\", "\\\\"
    if isinstance(pattern, exp.Literal):
        node.set("expression", exp.Literal.string(pattern.name.replace(one, two)))
    else:
        literals = exp.Literal.string(one), exp.Literal.string(two)
        node.set("expression", exp.Replace(this=pattern, expression=literals[0], replacement=literals[1]))
    return node


def _seconds(node: exp.Expr) -> exp.Expr:
    """The time of a number of seconds since 1970, with their fraction, or of milliseconds or microseconds."""
    scale = node.args.get("scale")
    name = {None: "timestamp_seconds", "3": "timestamp_millis", "6": "timestamp_micros"}.get(scale and scale.name)
    if name is None:
        message = f"no time of {node.sql(dialect='duckdb')} is known to Spark"
        raise UnsupportedError(message)
    return exp.func(name, node.this)


def _cast(node: exp.Expr) -> exp.Expr:
    if node.meta.get(ROUNDS):
        # A cast by the user of what may be a fraction to a whole number: to the nearest one, halves as on
        # DuckDB
        value, text = node.this, exp.cast(node.this.copy(), "TEXT")
        halves_to_even = exp.func("rint", exp.cast(text, "DOUBLE"))
        halves_up = exp.func("round", exp.cast(text.copy(), "DECIMAL(38, 18)"))
        is_decimal = exp.Like(this=exp.func("typeof", value.copy()), expression=exp.Literal.string("decimal%"))

        def cast(operand: exp.Expr) -> exp.Cast:
            return exp.Cast(this=operand, to=node.args["to"].copy())

        case = exp.Case().when(_is_of_type(value, "float", "double"), cast(halves_to_even))
        return exp.Paren(this=case.when(is_decimal, cast(halves_up)).else_(cast(value.copy())))
    return _text(node) if node.args["to"].this in exp.DataType.TEXT_TYPES else node


def _is_of_type(value: exp.Expr, *names: str) -> exp.In:
    return exp.In(this=exp.func("typeof", value.copy()), expressions=[exp.Literal.string(name) for name in names])


def _text(node: exp.Expr) -> exp.Expr:
    """A text that does not depend on the engine, since clusters fall into replicates by it.

    Spark writes whole numbers of floating point from ten million on with an exponent, and no zone behind instants.
    """
    value = node.this
    if isinstance(value, exp.Literal | exp.Null):
        return node
    number = exp.cast(node.copy(), "DOUBLE")
    size = exp.Abs(this=number.copy())
    at_least, below = (exp.cast(exp.Literal.string(text), "DOUBLE") for text in ("1e7", "1e16"))
    has_exponent = exp.and_(
        _is_of_type(value, "float", "double"),
        exp.GTE(this=size, expression=at_least),
        exp.LT(this=size.copy(), expression=below),
    )
    # Spark's floor is a whole number, which what is larger, or infinite, would overflow
    equal = exp.EQ(this=exp.Floor(this=number), expression=number.copy())
    is_whole = exp.paren(exp.Case().when(has_exponent, equal).else_(exp.false()))
    without_exponent = exp.Cast(this=exp.cast(number.copy(), "DECIMAL(17, 0)"), to=node.args["to"].copy())
    texts = (without_exponent, exp.Literal.string(".0")), (node.copy(), exp.Literal.string("+00"))
    with_decimal, with_zone = (exp.DPipe(this=text, expression=ending) for text, ending in texts)
    case = exp.Case().when(is_whole, with_decimal).when(_is_of_type(value, "timestamp"), with_zone)
    return exp.Paren(this=case.else_(node.copy()))


def _listed(node: exp.Expr) -> exp.Expr:
    """A long list as it was written, whose texts have two quotes for one: Spark takes these for the end of a text."""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Var):
        written = _QUOTED.sub(
            lambda text: text[0][:1] + text[0][1:-1].replace("''", "\\'") + "'", node.expressions[0].name
        )
        node.set("expressions", [exp.var(written)])
    return node


def _refused(node: exp.Expr) -> exp.Expr:
    """Refuse what means something else on Spark, where nothing says the same.

    Raises:
        UnsupportedError: always.
    """
    message = f"{node.sql(dialect='duckdb')} means something else on Spark"
    raise UnsupportedError(message)


def _digest(node: exp.Expr) -> exp.Expr:
    """A digest from 0 to 2⁶⁴ - 1, in the place of one of another function in the same range."""
    if not isinstance(node.this, str) or node.this.lower() != "hash":
        return node
    signed = exp.cast(exp.func("xxhash64", *node.expressions), "DECIMAL(20, 0)")
    return exp.paren(exp.Add(this=signed, expression=exp.Literal.number(str(2**63))))


def _substring(node: exp.Expr) -> exp.Expr:
    start = node.args.get("start")
    return node if isinstance(start, exp.Literal) and int(start.name) > 0 else _refused(node)


def _rounded_to(node: exp.Expr) -> exp.Expr:
    return node if node.args.get("decimals") is None else _refused(node)


_REWRITES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.DataType: _type,
    exp.Div: _quotient,
    exp.AtTimeZone: _instant,
    exp.UnixToTime: _seconds,
    exp.Cast: _cast,
    exp.In: _listed,
    exp.TryCast: _refused,
    exp.TimestampTrunc: _refused,
    exp.RegexpLike: _refused,  # RE2 and Java differ in classes, ends of lines and flags
    exp.Escape: _refused,
    exp.Glob: _refused,
    exp.SimilarTo: _refused,
    exp.Collate: _refused,
    exp.Anonymous: _digest,
    exp.Substring: _substring,
    exp.Round: _rounded_to,
    exp.Like: _pattern,
    exp.ILike: _pattern,
}


# SQL trees: quoted names in, text of a dialect out.


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a quoted reference to a column; whatever characters the name has, it stays a name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def all_rows(relation: str) -> exp.Select:
    """Return a query of all rows and columns of a relation."""
    return kept(("all rows", relation), lambda: exp.select("*").from_(relation))


def from_clause(query: exp.Expr) -> exp.Expr | None:
    """Return the FROM of a query; None: it has none."""
    clause: exp.Expr | None = query.args.get("from_") or query.args.get("from")  # the name that older versions have
    return clause


def render(tree: exp.Expr, dialect: str = "duckdb", *, pretty: bool = True, copy: bool = True) -> str:
    """Return the SQL text of a tree in a dialect; raise an error for anything that the dialect cannot express.

    Without `copy` the tree may change meanwhile: for trees that were made to be written once.
    """
    number = number_of(tree)
    key = None if number is None else (number, dialect, pretty)
    return text(key, lambda: _rendered(tree, dialect, pretty=pretty, copy=copy or number is not None))


def _rendered(tree: exp.Expr, dialect: str, *, pretty: bool, copy: bool) -> str:
    tree = for_duckdb(tree, copy=copy) if dialect == "duckdb" else for_spark(tree)
    return tree.sql(dialect=dialect, pretty=pretty, copy=copy, comments=False, unsupported_level=ErrorLevel.RAISE)


@cache
def data_type(sql_type: str) -> exp.DataType:
    """Return a type of DuckDB as a tree, to be copied, never changed: reading its text takes longer than all else."""
    return exp.DataType.build(sql_type, dialect="duckdb")


def double(value: float) -> exp.Cast:
    """Return a DOUBLE literal, made from text because a bare `0.1` is a decimal in DuckDB."""
    return exp.cast(exp.Literal.string(repr(float(value))), data_type("DOUBLE"))


def is_finite(value: exp.Expr) -> exp.EQ:
    """Test whether a floating-point value is neither NaN nor infinite; NULL for NULL.

    The test needs no function, so every engine can run it, and none answers it from statistics.
    """
    difference = exp.paren(exp.Sub(this=value.copy(), expression=value.copy()))
    return exp.EQ(this=difference, expression=double(0))


# Digests of the rows of a relation, whatever their order: queries for DuckDB alone.


_UPPER, _LOWER = "digest:upper", "digest:lower"


def digest(relation: exp.Query) -> exp.Select:
    """Number and digest of the rows of a relation, whatever their order."""
    return added(numbers_of_rows(relation, ()), "met")


def numbers_of_rows(relation: exp.Query, names: Sequence[str]) -> exp.Select:
    """Some columns of a relation, and two numbers for every row, made before rows are repeated in a join."""
    text = exp.cast(exp.column("met"), "VARCHAR")
    upper, lower = exp.func("md5_number_upper", text), exp.func("md5_number_lower", text.copy())
    wide = exp.cast(lower, exp.DataType.build("HUGEINT", dialect="duckdb"))
    numbers = (exp.alias_(upper, _UPPER, quoted=True), exp.alias_(wide, _LOWER, quoted=True))
    return exp.select(*(column(name, "met") for name in names), *numbers).from_(relation.subquery("met"))


def added(numbers: exp.Select, alias: str) -> exp.Select:
    """How many rows there are, and what their numbers are together."""
    sums = (exp.func("bit_xor", column(_UPPER)), exp.Sum(this=column(_LOWER)))
    return exp.select(exp.Count(this=exp.Star()), *sums).from_(numbers.subquery(alias))


# Long lists in SQL of the user, as relations: of the text of a statement DuckDB takes 0.3 ms a value, again and again.
#
# A list stays in its tree as it was written, so that whatever shows, compares or translates the tree has its values.


Tree = TypeVar("Tree", bound="exp.Expr")

_VALUE = "value"
_TYPE = "type_of_values"  # key of the meta data of an IN whose list may be a relation
_WRITTEN = re.compile(r"\s*(?:(DATE)\s*)?(?:'((?:[^']|'')*+)'|([^\s,']++))\s*(?:,|$)", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER = re.compile(r"(u?)int(8|16|32|64)")
_LONGS = range(-(2**63), 2**63)
_without: set[int] = set()  # numbers of kept trees without such a list


def mark(node: exp.In, kind: str) -> None:
    """Note that a list may be a relation, if its values mean the same there.

    DuckDB gives texts in a list the type of what is looked for, and both sides the wider one of two types of numbers.

    Args:
        node: The IN, whose values are one text.
        kind: Name of the Arrow type of what is looked for: text, integers, numbers of double precision, or days.
    """
    values = [each for each in _WRITTEN.findall(_text_of_list(node)) if each[2].upper() != "NULL"]
    are_days, are_numbers = ({bool(each[place]) for each in values} for place in (0, 2))
    if len(are_days) != 1 or len(are_numbers) != 1:  # values of several kinds: the engine finds a type for all
        return
    texts = [text or number for _, text, number in values]
    if are_numbers == are_days == {False} and kind == "string":
        node.meta[_TYPE] = "string"
    elif are_numbers == {False} and kind == "date32[day]" and all(map(_is_day, texts)):
        node.meta[_TYPE] = "date32"
    elif are_days == {False} and _are_whole(texts, kind, quoted=are_numbers == {False}):
        node.meta[_TYPE] = "int64"
    elif are_numbers == {True} and kind == "double" and _are_exact(texts):
        node.meta[_TYPE] = "double"


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _are_whole(texts: list[str], kind: str, *, quoted: bool) -> bool:
    """Whether texts are whole numbers that the type of what is looked for, if they are quoted, and BIGINT hold."""
    held = _held(kind) if quoted else _LONGS if kind == "double" or _INTEGER.fullmatch(kind) else range(0)
    return all(_WHOLE.fullmatch(text) and int(text) in held and int(text) in _LONGS for text in texts)


def _are_exact(texts: list[str]) -> bool:
    """Whether decimals are the same DOUBLE by way of the type that holds all of them, with at most 15 digits."""
    digits = [text.lstrip("-").partition(".") for text in texts]
    if not all(whole.isdigit() or not whole for whole, _, _ in digits):
        return False
    behind = [part for _, _, part in digits]
    most = max(len(whole) for whole, _, _ in digits) + max(map(len, behind))
    return most <= sys.float_info.dig and all(part.isdigit() or not part for part in behind)


def _held(kind: str) -> range:
    """The numbers that a type of integers holds; none for other types."""
    match = _INTEGER.fullmatch(kind)
    if match is None:
        return range(0)
    bits = int(match[2])
    return range(2**bits) if match[1] else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


def _text_of_list(node: exp.In) -> str:
    return str(node.expressions[0].name)


def apart(tree: Tree) -> tuple[Tree, dict[str, exp.In]]:
    """Return a tree that reads its long lists from relations, and the lists by the names of these relations."""
    number = number_of(tree)
    if number in _without:
        return tree, {}
    if not any(_TYPE in node.meta for node in tree.find_all(exp.In)):
        if number is not None:
            _without.add(number)
        return tree, {}
    lists: dict[str, exp.In] = {}
    tree = tree.copy()
    for node in [node for node in tree.find_all(exp.In) if _TYPE in node.meta]:
        written = f"{node.meta[_TYPE]} {_text_of_list(node)}"
        name = f"values_{sha256(written.encode()).hexdigest()[:32]}"
        lists[name] = node.copy()
        node.set("expressions", None)
        node.set("query", exp.select(column(_VALUE)).from_(name).subquery())
    return tree, lists


def table(node: exp.In) -> pa.Table:
    """Return the values of a list, as `apart` returns it, as a table of one column."""
    import polars as pl  # noqa: PLC0415 - only those who have a long list need it here; pyarrow would load pandas

    types: dict[str, tuple[pl.DataType, Callable[[str], object]]] = {
        "string": (pl.String(), lambda text: text.replace("''", "'")),
        "int64": (pl.Int64(), int),
        "double": (pl.Float64(), float),
        "date32": (pl.Date(), date.fromisoformat),
    }
    kind, value_of = types[node.meta[_TYPE]]
    written = _WRITTEN.findall(_text_of_list(node))
    values = [None if number.upper() == "NULL" else value_of(text or number) for _, text, number in written]
    return pl.DataFrame({_VALUE: values}, schema={_VALUE: kind}).to_arrow()


# What an engine tells of a table, or of files at an address, before their rows are read.


@dataclass(frozen=True)
class Description:
    """An engine's description of a relation.

    Attributes:
        schema: Columns with their Arrow types; null for those that Arrow has no type for.
        unreadable: The columns that Arrow has no type for, with what the engine calls their types.
        rows: Rows, as the engine counts them.
        has_places: Whether the engine tells the file of every row, and its number there.
        identity: What is recorded of them: number, bytes, latest change and a hash of the list of their files, as far
            as the engine tells.
        files: Addresses of the files; none where the engine does not tell.
    """

    schema: pa.Schema
    unreadable: dict[str, str]
    rows: int
    has_places: bool
    identity: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


# Columns that files lack and a relation of their rows has: one value for each file, that of a folder's name.


FILE = "of:file"  # number of the file that a row comes from


@dataclass(frozen=True)
class Partition:
    """A column with one value for each file of a relation.

    Attributes:
        column: Its name in the relation.
        sql_type: Its type.
        values: Its value in each file, in the order of the files, as text; None is NULL.
    """

    column: str
    sql_type: str
    values: tuple[str | None, ...]

    def of(self, files: Iterable[int]) -> Partition:
        """The same for some of the files."""
        return replace(self, values=tuple(self.values[index] for index in files))

    def typed(self, text: exp.Expr) -> exp.Expr:
        """Return the column as a select item, of an expression for its text."""
        return exp.alias_(exp.cast(text, data_type(self.sql_type)), self.column, quoted=True)

    def constant(self, file: int) -> exp.Expr:
        """Return the column as a select item for the rows of one file."""
        value = self.values[file]
        return self.typed(exp.null() if value is None else exp.Literal.string(value))
