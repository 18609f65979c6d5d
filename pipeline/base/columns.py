"""Columns from arrays, counts and formulas: ratios of outcomes, each stated once; what is undefined is NULL."""

from __future__ import annotations

import ast
import math
import operator
import re
from functools import cache, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from .records import dataclass
from .schemas import FEW_ROWS, Column, in_order, limits_of, limits_of_share, polars_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@cache
def parsed(formula: str) -> ast.expr:
    """The tree of a formula."""
    return ast.parse(formula, mode="eval").body


def value_of(formula: str, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:  # noqa: ANN401 - as the values are
    """What a formula gives, of names, whole numbers, `+ - * /` and calls of functions.

    Raises:
        ValueError: it holds something else.
        KeyError: it holds another name or function.
    """

    def of(node: ast.expr) -> Any:  # noqa: ANN401 - as the values are
        match node:
            case ast.BinOp(left=left, op=sign, right=right):
                return _OPERATORS[type(sign)](of(left), of(right))
            case ast.Name(id=name):
                return values[name]
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return functions[name](*map(of, arguments))
            case ast.Constant(value=int() | float() as number):
                return number
        message = f"no formula of counts: {ast.unparse(node)}"
        raise ValueError(message)

    return of(parsed(formula))


def names_in(formula: str) -> frozenset[str]:
    """The names in a formula, but for functions."""
    nodes = list(ast.walk(parsed(formula)))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)


_OUTCOME = re.compile(r"\b[tf][pn]\b")


@dataclass(frozen=True)
class Ratio:
    """A share of counts, hits of hits and misses; or, of such a share J, the harmonic 2 J / (1 + J).

    Attributes:
        name: Its column.
        hits: The outcomes that are hits: `tp`, `fp`, `fn`, `tn`.
        misses: Those that are misses.
        null: When it is NULL.
        words: What people call it where its name does not say it.
        is_harmonic: Whether it is 2 J / (1 + J), as F1 is of tp of tp + fp + fn (Jaccard).
        over: Counts whose sum is its denominator, where its formula names them in place of hits and misses.
        says: What a value says, a format of its `formula`.
        reason: What `undefined` says where it is NULL; empty: what it says of another ratio.
        is_limited: Whether it has an interval.
        is_rate: Whether it is no share: a number of hits over what they are counted over, without an upper end.
    """

    name: str
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    null: str
    words: str = ""
    is_harmonic: bool = False
    over: tuple[str, ...] = ()
    says: str = "{formula}"
    reason: str = ""
    is_limited: bool = True
    is_rate: bool = False

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes that it is made of."""
        return (*self.hits, *self.misses)

    @property
    def counts(self) -> tuple[str, ...]:
        """The outcomes, and the counts that it is over."""
        return (*self.outcomes, *self.over)

    @property
    def scale(self) -> Literal["share", "jaccard", "log"]:
        """How its limits are made."""
        return "log" if self.is_rate else "jaccard" if self.is_harmonic else "share"

    def formula(self, suffix: str = "") -> str:
        """It in words, with a suffix behind the names of the outcomes, such as `_weight`."""
        hits, every = ([f"{name}{suffix}" for name in names] for names in (self.hits, self.outcomes))
        twice = "2 * " if self.is_harmonic else ""
        over = " + ".join(hits)
        under = f"{twice}{' + '.join(every)}" if not self.over else " + ".join(self.over)
        under = under if len(self.over) == 1 else f"({under})"
        return f"{twice}{over if len(hits) == 1 else f'({over})'} / {under}"

    def sides(self, counts: Mapping[str, Any]) -> tuple[Any, Any]:
        """Hits and misses, from the outcomes by name."""
        hits, misses = (reduce(add, (counts[name] for name in names)) for names in (self.hits, self.misses))
        return hits, misses

    def fraction(self, counts: Mapping[str, Any]) -> tuple[Any, Any]:
        """Numerator and denominator, from the outcomes by name."""
        first, *others = (counts[name] for name in self.hits)
        over = reduce(add, others, 2 * first if self.is_harmonic else first)
        if self.over:
            return over, reduce(add, (counts[name] for name in self.over))
        return over, reduce(add, (counts[name] for name in self.misses), over)

    def of_share(self, share: Any) -> Any:  # noqa: ANN401 - a number, an array, or an expression
        """It, or a limit of it, from the share of hits."""
        return 2 * share / (1 + share) if self.is_harmonic else share

    def column(self, note: str = "", null: str = "") -> Column:
        """Its column, with what a table says of it beside its formula, and of when it is NULL in words of its own."""
        formula = self.says.format(formula=self.formula().replace("2 * ", "2 "))
        said = ", ".join(filter(None, (f"{self.words} {formula}".strip(), note)))
        return Column(self.name, "DOUBLE", f"{said}; NULL: {null or self.null}")

    def columns(self, note: str = "", null: str = "") -> tuple[Column, ...]:
        """Its column and the columns of its limits; takes the arguments of `column`."""
        limits = limits_of if self.is_rate else limits_of_share
        return (self.column(note, null), *(limits(self.name) if self.is_limited else ()))


@dataclass(frozen=True)
class Count:
    """A count of a result table, and how it follows from a count table.

    Attributes:
        name: Its column.
        meaning: What it counts.
        within: The column of the count table whose bins at or above the threshold it adds up.
        total: The column that it adds up over all bins; it counts beside `within` if both are given.
        formula: Of counts stated before it, in place of both.
        noun: What it counts, several of them, where plans may ask for more of it.
        is_shown: Whether the table has it; else only its ratios do.
    """

    name: str
    meaning: str = ""
    within: str = ""
    total: str = ""
    formula: str = ""
    noun: str = ""
    is_shown: bool = True

    def columns(self) -> tuple[Column, ...]:
        """Its column."""
        return (Column(self.name, "BIGINT", self.meaning),) if self.is_shown else ()


PRECISION = Ratio("precision", ("tp",), ("fp",), "nothing retrieved")
RECALL = Ratio("recall", ("tp",), ("fn",), "no positive")
F1 = Ratio("f1", ("tp",), ("fp", "fn"), "neither retrieved nor positive", is_harmonic=True)
FPR = Ratio("fpr", ("fp",), ("tn",), "no negative", "false positive rate")
SPECIFICITY = Ratio("specificity", ("tn",), ("fp",), "no negative", "true negative rate")
NPV = Ratio("npv", ("tn",), ("fn",), "everything retrieved", "negative predictive value")
ACCURACY = Ratio("accuracy", ("tp", "tn"), ("fp", "fn"), "no row", "share of right predictions")


@dataclass(frozen=True)
class Index:
    """A number of all four outcomes that is no share of them.

    Its `text` is a formula of `tp`, `fp`, `fn` and `tn`, its `words` what people call it, its highest value 1.
    """

    name: str
    text: str
    words: str
    null: str
    lowest: float

    def formula(self, suffix: str = "") -> str:
        """It in words; the argument as for `Ratio.formula`."""
        return _OUTCOME.sub(lambda outcome: f"{outcome[0]}{suffix}", self.text)

    def columns(self, note: str = "") -> tuple[Column, ...]:
        """Its column and the columns of its limits; takes the argument of `Ratio.column`."""
        said = ", ".join(filter(None, (f"{self.words}: {self.text}", note)))
        return (Column(self.name, "DOUBLE", f"{said}; NULL: {self.null}"), *limits_of(self.name))


_OF_BOTH = "no positive, or no negative"
YOUDEN_J = Index("youden_j", "tp / (tp + fn) - fp / (fp + tn)", "Youden's J, recall less fpr", _OF_BOTH, -1.0)
BALANCED_ACCURACY = Index(
    "balanced_accuracy", "(tp / (tp + fn) + tn / (fp + tn)) / 2", "mean of recall and specificity", _OF_BOTH, 0.0
)
MCC = Index(
    "mcc",
    "(tp * tn - fp * fn) / (sqrt(tp + fp) * sqrt(tp + fn) * sqrt(fp + tn) * sqrt(fn + tn))",
    "Matthews correlation coefficient",
    "all rows, or none, are positive or retrieved",
    -1.0,
)

OF_LABELS = (PRECISION, RECALL, F1, FPR)  # of rows with a score and a label
# of these, where they are asked for
FURTHER: tuple[Ratio | Index, ...] = (SPECIFICITY, NPV, ACCURACY, BALANCED_ACCURACY, YOUDEN_J, MCC)
RATIO_OF = {each.name: each for each in (*OF_LABELS, *FURTHER) if isinstance(each, Ratio)}
INDEX_OF = {each.name: each for each in FURTHER if isinstance(each, Index)}


def columns_of(stated: Iterable[Column | Count | Ratio]) -> tuple[Column, ...]:
    """The columns of a table from what it states, in order."""
    return tuple(column for each in stated for column in ((each,) if isinstance(each, Column) else each.columns()))


def scales(ratios: Iterable[Ratio]) -> dict[str, Literal["share", "jaccard", "log"]]:
    """How the limits of ratios are made, by their names."""
    return {ratio.name: ratio.scale for ratio in ratios}


# Columns of result tables from arrays: an undefined number is NULL, never NaN.


def doubles(name: str, values: NDArray[np.float64]) -> pl.Series:
    """A DOUBLE column; nan becomes NULL."""
    return pl.Series(name, values, dtype=pl.Float64, nan_to_null=True)


def texts(name: str, values: Iterable[object]) -> pl.Series:
    """A VARCHAR column; None and the empty text become NULL."""
    return pl.Series(name, [str(value) if value else None for value in values], dtype=pl.String)


def nulls(names: Iterable[str], kind: type[pl.DataType] = pl.Float64) -> list[pl.Expr]:
    """Columns of one type that are NULL in every row."""
    return [pl.lit(None, dtype=kind).alias(name) for name in names]


def nothing(names: Iterable[str], size: int, kind: type[pl.DataType] | pl.DataType = pl.Float64) -> list[pl.Series]:
    """The same as columns of a size, which are put beside others in no time."""
    return [pl.Series(name, [None], dtype=kind).new_from_index(0, size) for name in names]


def beside(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A table with what is known of the group of every row; NULL where nothing is."""
    if _is_of_group(table, groups, keys):
        others = (name for name in groups.columns if name not in keys)
        return table.hstack([groups.get_column(name).new_from_index(0, table.height) for name in others])
    return table.join(groups, on=list(keys), how="left", nulls_equal=True, maintain_order="left")


def among(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows of a table that are of some groups."""
    if _is_of_group(table, groups, keys):
        return table
    return table.join(groups, on=list(keys), how="semi", nulls_equal=True, maintain_order="left")


def _is_of_group(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> bool:
    """Whether all rows of a table are of one group, the only one that there is: most results are."""
    if groups.height != 1 or table.is_empty():
        return False
    columns = [(table.get_column(name), groups.get_column(name)) for name in keys]
    return all(ours.n_unique() == 1 and ours[0] == other[0] and ours.dtype == other.dtype for ours, other in columns)


def runs(frame: pl.DataFrame, keys: Sequence[str]) -> NDArray[np.int64]:
    """The number of the run of equal keys that every row is in, from 0."""
    if all(frame.get_column(name).n_unique() <= 1 for name in keys):
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(list(keys)).rle_id()).to_series().to_numpy().astype(np.int64)


def by_group(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], pl.DataFrame]:
    """The rows of every group by the values of its keys, groups and rows in the order of the frame."""
    frames = frame.partition_by(list(keys), maintain_order=True)
    return {tuple(rows.get_column(name)[0] for name in keys): rows for rows in frames if rows.height}


def as_key(values: pl.Series) -> pl.Series:
    """Return keys as a table may hold them: integers and text as they are, others (dates, flags) as text."""
    return values if values.dtype in polars_types("KEY") else values.cast(pl.String)


RATIOS = ("precision", "recall", "f1")


def quotient(over: pl.Series, under: pl.Series) -> pl.Series:
    """Divide one column by another, as DOUBLE; NULL where the divisor is 0 or either value is NULL.

    NumPy divides, because Polars multiplies by the reciprocal of a column that it knows to be constant: that rounds
    twice, makes 49 / 49 less than 1, and lets the last digit depend on how a frame was made.
    """
    dividend, divisor = (each.cast(pl.Float64).to_numpy() for each in (over, under))  # NULL is nan
    quotients = np.divide(dividend, divisor, out=np.full(len(divisor), np.nan), where=divisor != 0)
    return pl.Series(over.name, quotients, dtype=pl.Float64, nan_to_null=True)


def divide(over: pl.Expr, under: pl.Expr) -> pl.Expr:
    """Divide one expression by another of the same length, as `quotient` does."""
    return pl.map_batches(
        [over, under], lambda pair: quotient(pair[0], pair[1]), return_dtype=pl.Float64, is_elementwise=True
    )


def ratios(tp: pl.Expr, fp: pl.Expr, fn: pl.Expr) -> list[pl.Expr]:
    """Return the columns `precision`, `recall` and `f1` = 2 tp / (2 tp + fp + fn); NULL where the denominator is 0."""
    return [ratio_of(RATIO_OF[name], {"tp": tp, "fp": fp, "fn": fn}) for name in RATIOS]


def ratio_of(ratio: Ratio, counts: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the column of a ratio from expressions of its outcomes; NULL where the denominator is 0."""
    return divide(*ratio.fraction(counts)).alias(ratio.name)


REPLICATE, THRESHOLD = "replicate", "threshold"
IN_TIME = "clusters_in_time"  # frame that is there if replicates follow each other in time
SECOND_REPLICATE = "second_replicate"  # that of the second parent of rows that have two
Boundary = Literal[">=", ">"]
"""Whether a threshold retrieves a score that equals it: with `>=` it does, with `>` it does not."""


def lowest_retrieved(threshold: float, boundary: Boundary) -> float:
    """The lowest score that a threshold retrieves."""
    return threshold if boundary == ">=" else math.nextafter(threshold, math.inf)


def add_up(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Sum integer counts by keys; counts add up over files, replicates and bins."""
    if counts.height == 1 and not any(counts.get_column(name).null_count() for name in values):
        return counts[[*keys, *values]]  # a single row is the sum
    if not keys:
        return counts.select(pl.col(values).sum())
    return counts.group_by(keys, maintain_order=False).agg(pl.col(values).sum())


def add_up_in_order(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Do the same in the order of the keys, NULL last; rows that repeat no key, as they mostly are, are only sorted."""
    if counts.height > FEW_ROWS and counts.height > math.prod(counts.get_column(name).n_unique() for name in keys):
        counts = add_up(counts, keys, values)  # some repeat, and fewer rows are to be sorted
    rows, repeats = in_order(counts[[*keys, *values]], keys)
    return rows.group_by(keys, maintain_order=True).agg(pl.col(values).sum()) if repeats else rows


def at_or_above(
    counts: pl.DataFrame,
    keys: Sequence[str],
    values: Sequence[str],
    thresholds: Sequence[float] | None,
    boundary: Boundary = ">=",
) -> pl.DataFrame:
    """Return the counts at or above every threshold: running sums over the bins from the highest down.

    Args:
        counts: Columns `keys`, `threshold` (lower edge of the bin; NULL below all thresholds) and `values` (BIGINT).
        keys: Columns that identify a group; NULL is a value like any other.
        values: The counts to add up.
        thresholds: Every group gets a row for each; None: a group gets a row for each of its own bins.
        boundary: Without thresholds, where bins are scores: whether a score equal to the threshold is retrieved. With
            thresholds the bins have been made by their boundary.

    Returns:
        One row per group × threshold in this order, columns `keys`, `threshold`, `values`; groups without any count in
        the bins get zeros when thresholds are given.
    """
    has_others = counts.get_column(THRESHOLD).null_count()
    scored = counts.filter(pl.col(THRESHOLD).is_not_null()) if has_others else counts
    per_bin = add_up_by_threshold(scored, keys, values)
    if thresholds is not None:
        groups = counts.select(keys).unique().sort(keys, nulls_last=True)
        frame = groups.join(pl.DataFrame({THRESHOLD: sorted(thresholds)}, schema={THRESHOLD: pl.Float64}), how="cross")
        per_bin = frame.join(
            per_bin, on=[*keys, THRESHOLD], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(pl.col(values).fill_null(0))
    sums = per_bin.with_columns(pl.col(values).cum_sum(reverse=True).over(keys))
    if thresholds is not None or boundary == ">=":
        return sums
    return sums.with_columns(sums[name] - per_bin[name] for name in values)


def add_up_by_threshold(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Sum counts over replicates, in the order of group and threshold."""
    order = [*keys, THRESHOLD]
    if counts[REPLICATE].min() == counts[REPLICATE].max():
        return add_up_in_order(counts, order, values)
    return add_up(counts, order, values).sort(order, nulls_last=True)
