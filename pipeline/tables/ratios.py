"""Ratios of outcomes, each stated once: its column, its formula in words, its value, and what its limits rest on."""

from __future__ import annotations

import re
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal

from ..records import dataclass
from .schemas import Column, limits_of, limits_of_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        """It in words.

        Args:
            suffix: Behind the names of the outcomes, such as `_weight`.
        """
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
        """What is divided by what, from the outcomes by name."""
        first, *others = (counts[name] for name in self.hits)
        over = reduce(add, others, 2 * first if self.is_harmonic else first)
        if self.over:
            return over, reduce(add, (counts[name] for name in self.over))
        return over, reduce(add, (counts[name] for name in self.misses), over)

    def of_share(self, share: Any) -> Any:  # noqa: ANN401 - a number, an array, or an expression
        """It, or a limit of it, from the share of hits."""
        return 2 * share / (1 + share) if self.is_harmonic else share

    def column(self, note: str = "", null: str = "") -> Column:
        """Its column.

        Args:
            note: What a table says of it beside its formula.
            null: When it is NULL, where the table has words of its own.
        """
        formula = self.says.format(formula=self.formula().replace("2 * ", "2 "))
        said = ", ".join(filter(None, (f"{self.words} {formula}".strip(), note)))
        return Column(self.name, "DOUBLE", f"{said}; NULL: {null or self.null}")

    def columns(self, note: str = "", null: str = "") -> tuple[Column, ...]:
        """Its column and those of its limits; arguments as for `column`."""
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

    Attributes:
        name: Its column.
        text: Its formula, of `tp`, `fp`, `fn` and `tn`.
        words: What people call it.
        null: When it is NULL.
        lowest: Its lowest value; 1 is the highest.
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
        """Its column and those of its limits; the argument as for `Ratio.column`."""
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
FURTHER: tuple[Ratio | Index, ...] = (
    SPECIFICITY,
    NPV,
    ACCURACY,
    BALANCED_ACCURACY,
    YOUDEN_J,
    MCC,
)  # of these, where they are asked for
RATIO_OF = {each.name: each for each in (*OF_LABELS, *FURTHER) if isinstance(each, Ratio)}
INDEX_OF = {each.name: each for each in FURTHER if isinstance(each, Index)}


def columns_of(stated: Iterable[Column | Count | Ratio]) -> tuple[Column, ...]:
    """The columns of a table from what it states, in order."""
    return tuple(column for each in stated for column in ((each,) if isinstance(each, Column) else each.columns()))


def scales(ratios: Iterable[Ratio]) -> dict[str, Literal["share", "jaccard", "log"]]:
    """How the limits of ratios are made, by their names."""
    return {ratio.name: ratio.scale for ratio in ratios}
