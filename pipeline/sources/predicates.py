"""SQL of the user on columns of the files, `where` and `{ sql = … }`, parsed and limited to plain expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from ..base.dialect import ROUNDS, column, data_type, mark
from ..base.errors import ConfigError
from ..base.paths import shortened
from .types import column_type

if TYPE_CHECKING:
    from collections.abc import Iterable


# References in texts of a config: `${NAME}` and `${env.NAME}`, and `$${` for a literal `${`.


MARKED = "${"
ENVIRONMENT = "env."
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}|\$\{")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg)
_NAME = re.compile(r"(?:env\.)?[A-Za-z_][A-Za-z0-9_]*")


def replaced(text: str, value_of: Callable[[str], str]) -> str:
    """Return a text of a config with every reference replaced by what `value_of` returns for its name.

    Raises:
        ConfigError: a `${` starts no reference; or whatever `value_of` raises.
    """

    def swap(match: re.Match[str]) -> str:
        name = match["name"]
        if match.group() == "$${":
            return MARKED
        if name is None or not _NAME.fullmatch(name):
            message = f"{match.group()!r} is not the name of a variable"
            raise ConfigError(message, remedy="Write ${NAME}, ${env.NAME}, or $${ for the two characters themselves.")
        return value_of(name)

    return _REFERENCE.sub(swap, text)


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in the place of its references.

    Raises:
        ConfigError: a reference has no value.
    """
    return replaced(text, lambda name: _value(name, values))


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        kind = "the environment variable" if name.startswith(ENVIRONMENT) else "the variable"
        message = f"{kind} {name.removeprefix(ENVIRONMENT)} is not set, which ${{{name}}} needs"
        raise ConfigError(message, remedy="Set it and run again.")
    return values[name]


class Placeholders:
    """SQL in which a word stands for each reference, so that it is parsed, as `text`, before any value is known."""

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        self._values = values
        self._names: list[str] = []
        self._word = "thresher_variable"
        while any(self._word in taken.lower() for taken in (text, *values.values())):
            self._word += "_"
        self._mark = re.compile(rf"{self._word}_(\d+)_", re.IGNORECASE)
        self.text = replaced(text, self._placeholder)

    def _placeholder(self, name: str) -> str:
        _value(name, self._values)
        self._names.append(name)
        return f"{self._word}_{len(self._names) - 1}_"

    def restored(self, text: str) -> str:
        """Return a text of the parsed SQL with the references as they were written."""
        return self._mark.sub(lambda match: f"${{{self._names[int(match[1])]}}}", text)

    def filled(self, tree: exp.Expr, *, name: str) -> exp.Expr:
        """Return the parsed SQL with values in the place of the placeholders; no value becomes anything but a value.

        Where a reference stands by itself it becomes one literal of text. In a literal, and in a name in double
        quotes, it becomes a piece of that literal or name. Elsewhere, as in the place of a function, it is refused.
        """
        replaced_nodes = set()
        for node in list(tree.walk()):
            node.pop_comments()
            if (
                isinstance(node, exp.Column)
                and len(node.parts) == 1
                and (
                    isinstance(node.this, exp.Identifier)
                    and not node.this.quoted
                    and bool(self._mark.fullmatch(node.this.name))
                )
            ):
                if isinstance(node.parent, _ARITHMETIC):
                    reference = self.restored(node.name)
                    message = f"input {name}: {reference} is text, and cannot be added or multiplied"
                    raise ConfigError(message, remedy=f"Write CAST({reference} AS DOUBLE), or another type.")
                replaced_nodes.add(id(node.this))
                literal = exp.Literal.string(self._put(node.name))
                tree = literal if node is tree else tree
                node.replace(literal)
            elif (isinstance(node, exp.Literal) and node.is_string) or (
                isinstance(node, exp.Identifier) and node.quoted
            ):
                node.set("this", self._put(node.name))
            elif id(node) not in replaced_nodes:
                self._check(node, name)
        return tree

    def _put(self, text: str) -> str:
        return self._mark.sub(lambda match: self._values[self._names[int(match[1])]], text)

    def _check(self, node: exp.Expr, name: str) -> None:
        for text in node.args.values():
            if isinstance(text, str) and (match := self._mark.search(text)):
                reference = self.restored(match.group())
                message = (
                    f"input {name}: {reference} stands for one value, and for no piece of a name, function or type"
                )
                remedy = f"Write it by itself, or in quotes: '… {reference} …' is a text, \"… {reference} …\" a column."
                raise ConfigError(message, remedy=remedy)


DEEPEST = 30
MOST_GROWTH = 1_000_000
_ESCAPED = 6  # characters that a cast can make of one
_LONG = 50  # values of a list from which on it is not parsed one by one
_MARK = "\x1flist "
_NUMBER = r"-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_DECIMAL = re.compile(rf"'(?:[^']|'')*+'|({_NUMBER})")
_VALUE = rf"(?:(?:DATE\s*+)?'(?:[^']|'')*+'|{_NUMBER}|NULL\b)"
_LISTS = re.compile(  # what stands in quotes and comments is passed over
    r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*.*?\*/|"""
    rf"(?P<start>\bIN\s*\(\s*)(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*+)\s*\)",
    re.IGNORECASE | re.DOTALL,
)
_ALLOWED = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Binary, exp.Unary, exp.Between),
    *(exp.In, exp.Tuple, exp.Case, exp.If, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var),
    *(exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Substring, exp.StartsWith, exp.EndsWith, exp.Contains),
    *(exp.RegexpLike, exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Year, exp.Month, exp.Day),
    *(exp.TimestampTrunc, exp.Coalesce, exp.Replace, exp.StrToTime, exp.UnixToTime),  # the first is date_trunc
)


_NO_VALUES: Mapping[str, str] = MappingProxyType({})


def parse_predicate(text: str, *, name: str, values: Mapping[str, str] = _NO_VALUES) -> exp.Expr:
    """Parse a predicate; anything but columns, constants, comparisons and simple scalar functions is refused.

    `values` is what `${NAME}` stands for: a value never changes the structure of the predicate.

    Raises:
        ConfigError: it does not parse, or contains a subquery, an aggregate or a function that is not allowed.
    """
    return _parse(text, name=f"{name}: where", kind="an SQL predicate", values=values)


def parse_value(text: str, *, name: str, values: Mapping[str, str] = _NO_VALUES) -> exp.Expr:
    """Parse an expression that a field is mapped to; it may contain what a predicate may.

    Raises:
        ConfigError: as for `parse_predicate`, or it reads no column.
    """
    tree = _parse(text, name=name, kind="an SQL expression", values=values)
    if not columns_of(tree):
        message = f"input {name}: {shortened(text)!r} reads no column"
        raise ConfigError(message, remedy="Write names of columns without quotes, as in from_n - lag_n.")
    return tree


def is_expression_of(text: str, names: Iterable[str]) -> bool:
    """Whether a text is an expression, more than a name, and all columns that it reads are among some names."""
    try:
        tree = parse_value(text, name="")
    except ConfigError:
        return False
    return not isinstance(tree, exp.Column) and {each.lower() for each in columns_of(tree)} <= set(
        map(str.lower, names)
    )


def _parse(text: str, *, name: str, kind: str, values: Mapping[str, str]) -> exp.Expr:
    if MARKED not in text:
        return _limited(text, name=name, kind=kind)
    placeholders = Placeholders(text, values)
    try:
        tree = _limited(placeholders.text, name=name, kind=kind)
    except ConfigError as error:
        raise ConfigError(placeholders.restored(error.message), remedy=error.remedy) from None
    return placeholders.filled(tree, name=name)


def _limited(text: str, *, name: str, kind: str) -> exp.Expr:
    lists: list[str] = []
    tree = _parsed(_shorter(text, lists), name=name, kind=kind)
    for values in list(tree.find_all(exp.Column)) if lists else ():
        if values.name.startswith(_MARK):
            values.replace(exp.var(lists[int(values.name.removeprefix(_MARK))]))
    if _growth(tree) > MOST_GROWTH:
        message = f"input {name} can make texts {MOST_GROWTH:,} times as long as they are: {shortened(text)!r}"
        raise ConfigError(message, remedy="Write it with fewer replacements inside of one another.")
    for node in tree.walk():
        if not isinstance(node, _ALLOWED):
            message = f"input {name} may not hold {shortened(node.sql(dialect='duckdb'))!r}"
            remedy = (
                "Use columns, constants, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE, CAST and simple functions."
            )
            raise ConfigError(message, remedy=remedy)
        if isinstance(node, exp.Cast) and node.to.this in exp.DataType.INTEGER_TYPES:
            node.meta[ROUNDS] = True
    return tree


def _shorter(text: str, lists: list[str]) -> str:
    """Put a name in the place of the values of each long list, which take the parser a millisecond each."""

    def named(match: re.Match[str]) -> str:
        values = match["values"]
        if values is None or values.count(",") < _LONG:
            return match[0]
        lists.append(values)
        return f'{match["start"]}"{_MARK}{len(lists) - 1}")'

    return text if "\\" in text or "$" in text or _MARK in text else _LISTS.sub(named, text)


def _growth(tree: exp.Expr) -> int:
    """How many characters the longest text that SQL makes can have, for a column of one character.

    Texts grow by `replace`, and by casts, which can escape each character; all others add at most.
    """
    longest: dict[int, int] = {}
    for node in reversed(list(tree.walk())):
        lengths = [longest[id(part)] for part in node.iter_expressions()]
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
            size = 1
        elif isinstance(node, exp.Replace):
            of_new = longest[id(node.args["replacement"])] if node.args.get("replacement") else 1
            size = longest[id(node.this)] * max(of_new, 1)
        elif isinstance(node, exp.Cast):
            size = longest[id(node.this)] * _ESCAPED
        else:
            size = len(node.name) if isinstance(node, exp.Literal) else max(sum(lengths), 1)
        longest[id(node)] = size
    return max(longest.values())


def _parsed(text: str, *, name: str, kind: str) -> exp.Expr:
    shown = shortened(text)
    too_deep = ConfigError(
        f"input {name} is nested too deeply: {shown!r}",
        remedy="Write it with fewer brackets, or compute a column beforehand.",
    )
    try:
        tree = parse_one(text, read="duckdb", into=exp.Condition)
    except SqlglotError as error:
        message = f"input {name} is not {kind}: {shown!r}{_reason(error)}"
        raise ConfigError(message) from error
    except RecursionError as error:
        raise too_deep from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # odd words trip the parser
        message = f"input {name} is not {kind}: {shown!r}"
        raise ConfigError(message) from error
    if _is_too_deep(tree):
        raise too_deep
    return tree


def _reason(error: SqlglotError) -> str:
    """Return the parser's reason in brackets; empty if it only repeats the text."""
    reason = str(error).splitlines()[0]
    return "" if reason.startswith("Failed to parse ") else f" ({shortened(reason)})"


def _is_too_deep(tree: exp.Expr) -> bool:
    """Whether a tree has too many levels; a chain of one operator is one level."""
    levels: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while levels:
        node, level = levels.pop()
        if level > DEEPEST:
            return True
        chained = isinstance(node, exp.Binary)
        levels += [
            (child, level if chained and type(child) is type(node) else level + 1) for child in node.iter_expressions()
        ]
    return False


def columns_of(predicate: exp.Expr) -> tuple[str, ...]:
    """Return the names of the columns that a predicate reads, in order of appearance."""
    return tuple(dict.fromkeys(node.name for node in predicate.find_all(exp.Column)))


_MEETINGS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In, exp.Coalesce),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod),
)


def numbers_as_floats(predicate: exp.Expr, is_single: Callable[[str], bool]) -> exp.Expr:
    """Return the predicate with numbers cast to FLOAT where they meet columns of single precision alone.

    DuckDB takes them so; other engines would compute and compare in double precision, in which no FLOAT is 0.9.
    """
    tree = exp.Paren(this=predicate.copy())  # so that every node has one above it
    for node in reversed(list(tree.find_all(*_MEETINGS))):
        operands = list(node.iter_expressions())
        names = [name for operand in operands for name in columns_of(operand)]
        if names and all(map(is_single, names)):
            for values in (each for each in operands if isinstance(each, exp.Var)):
                values.set(
                    "this",
                    _DECIMAL.sub(lambda match: f"CAST({match[1]} AS FLOAT)" if match[1] else match[0], values.name),
                )
            for number in filter(_is_number, operands):
                number.replace(exp.cast(number.copy(), "FLOAT"))
            if isinstance(node, exp.Div):
                node.replace(exp.cast(node.copy(), "FLOAT"))
    single: exp.Expr = tree.this
    return single


def _is_number(node: exp.Expr) -> bool:
    number = node.this if isinstance(node, exp.Neg) else node
    return isinstance(number, exp.Literal) and not number.is_string and "e" not in number.name.lower()


def bind(predicate: exp.Expr, replace: Callable[[str], exp.Expr], kind_of: Callable[[str], str]) -> exp.Expr:
    """Return the predicate with every column replaced, for example by its finite barrier.

    `kind_of` returns the name of the Arrow type of a column.
    """

    def swap(node: exp.Expr) -> exp.Expr:
        return replace(node.name) if isinstance(node, exp.Column) else node

    tree = predicate.copy()
    for node in tree.find_all(exp.In):
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Var):
            mark(node, _kind_looked_for(node.this, kind_of))
    return tree.transform(swap, copy=False)


def _kind_looked_for(operand: exp.Expr, kind_of: Callable[[str], str]) -> str:
    """The name of the type of what is looked for in a list; empty where that, or whether it can fail, is not known."""
    if isinstance(operand, exp.Column):
        return kind_of(operand.name)
    if isinstance(operand, exp.Paren):
        return _kind_looked_for(operand.this, kind_of)
    if isinstance(operand, exp.Lower | exp.Upper | exp.Trim):
        return "string" if _kind_looked_for(operand.this, kind_of) == "string" else ""
    if isinstance(operand, exp.Cast) and operand.to.this == exp.DataType.Type.VARCHAR:
        return "string" if isinstance(operand.this.unnest(), exp.Column) else ""
    return ""


Truths = Callable[["exp.Expr", "pa.Table"], Sequence[bool | None]]


class Partitioned(Protocol):
    """Whatever has partitions, column → value or None for NULL, some of them of other types than text."""

    @property
    def partitions(self) -> Mapping[str, str | None]:
        """The value of each column."""
        ...

    @property
    def partition_types(self) -> Mapping[str, pa.DataType]:
        """The types of those that are not text."""
        ...


T = TypeVar("T", bound=Partitioned)
TEXT = "VARCHAR"
_KINDS = {TEXT: "string", "INTEGER": "int32", "BIGINT": "int64"}
_Values = tuple[tuple[str, str | None, str], ...]  # name, value and SQL type of every column


def partition_type(item: Partitioned, name: str) -> str:
    """Return the SQL type of a partition column; folder names are text."""
    arrow = item.partition_types.get(name)
    return TEXT if arrow is None else column_type(arrow)


def none_known(_predicate: exp.Expr, values: pa.Table) -> Sequence[bool | None]:
    """Stand in for an engine where none is needed: nothing is certain, so no file is left out."""
    return [None] * values.num_rows


def columns_that_decide(where: exp.Expr | None, items: Sequence[Partitioned]) -> tuple[str, ...]:
    """Return the partition columns that a predicate reads."""
    names = () if where is None else columns_of(where)
    return tuple(name for name in names if any(name in item.partitions for item in items))


def left_out(where: exp.Expr | None, items: Sequence[T], truths: Truths) -> list[T]:
    """Return the items for no row of which a predicate can be true, whatever else the rows contain.

    `truths` says of every row of a table whether a predicate on its columns holds, None where it cannot tell.
    """
    if where is None or not columns_that_decide(where, items):
        return []
    residuals = settled(where, items, truths, lambda item, name: name in item.partitions)
    return [item for item, residual in zip(items, residuals, strict=True) if residual == exp.false()]


def settled(
    where: exp.Expr, items: Sequence[T], truths: Truths, is_partition: Callable[[T, str], bool]
) -> list[exp.Expr]:
    """Return what is left of a predicate for the rows of each item: conditions on partitions alone are decided.

    They stand in the predicate itself or below AND and OR, where a condition that is NULL may count as false. So it is
    known of every file whether it can have rows, and a condition that a partition rules out is not computed of its
    rows, as the cast in `day = 'x' AND CAST(n AS INTEGER) > 3`. What cannot be computed stays. Items alike have the
    same predicate, TRUE or FALSE where nothing is left to decide.
    """
    used = columns_of(where)
    values_of = [
        tuple((name, item.partitions[name], partition_type(item, name)) for name in used if is_partition(item, name))
        for item in items
    ]
    alike: dict[tuple[tuple[str, str], ...], dict[_Values, exp.Expr]] = {}
    for values in values_of:
        alike.setdefault(tuple((name, sql_type) for name, _, sql_type in values), {}).setdefault(values, where)
    residuals: dict[_Values, exp.Expr] = {}
    for columns, of_values in alike.items():
        conditions = list(_conditions(where, frozenset(name for name, _ in columns)))
        held = [_held(condition, list(of_values), truths) for condition in conditions]
        by_truths: dict[tuple[bool | None, ...], exp.Expr] = {}
        for index, values in enumerate(of_values):
            decided = tuple(truths_of_values[index] for truths_of_values in held)
            if decided not in by_truths:
                is_open = all(holds is None for holds in decided)
                by_id = dict(zip(map(id, conditions), decided, strict=True))
                by_truths[decided] = where if is_open else _residual(where, by_id)
            residuals[values] = by_truths[decided]
    return [residuals[values] for values in values_of]


def _conditions(tree: exp.Expr, names: frozenset[str]) -> Iterator[exp.Expr]:
    """Yield the conditions of a predicate that read some columns alone; those that AND and OR join one by one."""
    columns = columns_of(tree)
    if isinstance(tree, exp.Paren):
        yield from _conditions(tree.this, names)
    elif isinstance(tree, exp.And | exp.Or):
        for side in tree.flatten():
            yield from _conditions(side, names)
    elif columns and names.issuperset(columns):
        yield tree


def _residual(tree: exp.Expr, holds: Mapping[int, bool | None]) -> exp.Expr:
    """Return a predicate without the conditions that are decided, which `holds` has by their id."""
    decided = holds.get(id(tree))
    if decided is not None:
        return exp.true() if decided else exp.false()
    if isinstance(tree, exp.Paren):
        return _residual(tree.this, holds)
    if not isinstance(tree, exp.And | exp.Or):
        return tree
    decides, joined = (exp.false(), exp.and_) if isinstance(tree, exp.And) else (exp.true(), exp.or_)
    residuals = [_residual(side, holds) for side in tree.flatten()]
    if decides in residuals:
        return decides
    open_sides = [exp.paren(residual.copy()) for residual in residuals if not isinstance(residual, exp.Boolean)]
    return joined(*open_sides) if open_sides else residuals[0]


def _held(condition: exp.Expr, keys: list[_Values], truths: Truths) -> Sequence[bool | None]:
    """Whether a condition on partitions holds for each of some values, all of the same columns and types."""
    sql_types = {name: sql_type for name, _, sql_type in keys[0]}
    columns = {name: f"value_{number}" for number, name in enumerate(sql_types)}  # none differs in case only
    texts = zip(*([text for _, text, _ in values] for values in keys), strict=True)
    table = pa.table([pa.array(values, pa.string()) for values in texts], names=list(columns.values()))

    def read(name: str) -> exp.Expr:
        return exp.cast(column(columns[name]), data_type(sql_types[name]), dialect="duckdb")

    return truths(bind(condition, read, lambda name: _KINDS.get(sql_types[name], "")), table)
