"""Names of measures of rankings, as people write them: `nDCG@10`, `nDCG(gain=exponential)@10`, `RBP(p=0.8)`.

The notation is that of ir_measures (MacAvaney, Macdonald and Ounis 2022): a name, its parameters in parentheses, and
`@` with the cutoff.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Gain: TypeAlias = Literal["identity", "exponential"]
Kind: TypeAlias = Literal["nDCG", "AP", "P", "R", "RR", "Success", "Judged", "RBP", "ERR"]

EXPONENTIAL: Gain = "exponential"
PERSISTENCE = 0.8  # of RBP, where none is given, as in ir_measures
GREATEST_GRADE = 4.0  # of ERR, where none is given, as in gdeval of TREC
MOST_GRADE = 50.0  # beyond it, 2 ** grade swamps every other document
DEEPEST = 10**9
PARAMETERS: Mapping[Kind, tuple[str, ...]] = {
    "nDCG": ("gain",),
    "AP": ("rel",),
    "P": ("rel",),
    "R": ("rel",),
    "RR": ("rel",),
    "Success": ("rel",),
    "Judged": (),
    "RBP": ("p", "rel", "max_grade"),
    "ERR": ("max_grade",),
}
NEEDS_CUTOFF: tuple[Kind, ...] = ("P", "R", "Success", "Judged")
_ALIASES: Mapping[str, Kind] = {"map": "AP", "mrr": "RR", "precision": "P", "recall": "R"}
_GAINS: Mapping[str, Gain] = {
    "identity": "identity",
    "log2": "identity",
    "exponential": "exponential",
    "exp-log2": "exponential",
}
_FORM = re.compile(r"\s*(?P<name>[A-Za-z]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*(?:@\s*(?P<k>[0-9]+))?\s*")


@dataclass(frozen=True)
class RankingMeasure:
    """One measure.

    Attributes:
        kind: What is measured.
        k: Number of first documents that count; None: all.
        rel: Least relevance of a relevant document; None: that of the stage.
        gain: What a document of nDCG is worth: its relevance (`identity`: Järvelin and Kekäläinen 2002, as in
            trec_eval), or 2 to the power of it, less 1 (`exponential`: Burges et al. 2005).
        p: Persistence of RBP: the probability to look at the next document.
        max_grade: Highest relevance on the scale: of ERR, and of RBP with graded gains; None: RBP with gains 0 and 1.
    """

    kind: Kind
    k: int | None = None
    rel: float | None = None
    gain: Gain = "identity"
    p: float = PERSISTENCE
    max_grade: float | None = None

    @property
    def name(self) -> str:
        """The measure in the notation, one for each measure."""
        written = {
            "gain": self.gain if self.gain == EXPONENTIAL else None,
            "p": _number(self.p) if self.kind == "RBP" else None,
            "rel": None if self.rel is None else _number(self.rel),
            "max_grade": None if self.max_grade is None or self._is_usual else _number(self.max_grade),
        }
        words = ", ".join(f"{name}={text}" for name, text in written.items() if text is not None)
        return self.kind + (f"({words})" if words else "") + ("" if self.k is None else f"@{self.k}")

    @property
    def _is_usual(self) -> bool:
        return self.kind == "ERR" and self.max_grade == GREATEST_GRADE

    @property
    def is_graded(self) -> bool:
        """Whether it takes gains from the relevance, so that every relevance above 0 counts."""
        return self.kind in {"nDCG", "ERR"} or (self.kind == "RBP" and self.max_grade is not None)


def measure_of(text: str) -> RankingMeasure:
    """Read a measure; capitals do not matter.

    Raises:
        ValueError: it is no measure, or its parameters do not fit it.
    """
    match = _FORM.fullmatch(text)
    kind = _kind_of(match["name"]) if match else None
    if match is None or kind is None:
        message = (
            f"{text!r} is no measure: write for example nDCG@10, AP@100 or RBP(p=0.8); known: {', '.join(PARAMETERS)}"
        )
        raise ValueError(message)
    k = None if match["k"] is None else int(match["k"])
    if k is not None and not 1 <= k <= DEEPEST:
        message = f"{text!r}: the cutoff must be a number from 1 to {DEEPEST:,}"
        raise ValueError(message)
    if k is None and kind in NEEDS_CUTOFF:
        message = f"{text!r} needs a cutoff, for example {kind}@10"
        raise ValueError(message)
    words = dict(_parameters(text, kind, match["parameters"] or ""))
    if "rel" in words and "max_grade" in words:
        message = f"{text!r}: rel makes gains of 0 and 1, max_grade graded ones: leave one out"
        raise ValueError(message)
    usual = GREATEST_GRADE if kind == "ERR" else None
    return RankingMeasure(
        kind,
        k,
        rel=_within(text, "rel", words.get("rel"), 0, math.inf),
        gain=_gain_of(text, words.get("gain", "identity")),
        p=_persistence(text, words.get("p")),
        max_grade=_within(text, "max_grade", words.get("max_grade"), 0, MOST_GRADE, open_below=True) or usual,
    )


def name_of(text: str) -> str:
    """The name of a measure in the notation; a text that is no measure stays as it is."""
    try:
        return measure_of(text).name
    except ValueError:
        return text


def is_measure(text: str) -> bool:
    """Whether a text is the name of a measure, as the notation writes it."""
    try:
        return measure_of(text).name == text
    except ValueError:
        return False


def _kind_of(name: str) -> Kind | None:
    kinds = {kind.lower(): kind for kind in PARAMETERS} | dict(_ALIASES)
    return kinds.get(name.lower())


def _parameters(text: str, kind: Kind, written: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for item in written.split(",") if written.strip() else ():
        name, sign, value = (word.strip() for word in item.partition("="))
        name = "gain" if name == "dcg" else name  # as ir_measures calls it
        allowed = PARAMETERS[kind]
        if not sign or name not in allowed:
            fitting = f"it has {', '.join(allowed)}" if allowed else "it has no parameters"
            message = f"{text!r}: {item.strip()!r} is no parameter of {kind}; {fitting}"
            raise ValueError(message)
        if name in dict(pairs):
            message = f"{text!r} has {name} twice"
            raise ValueError(message)
        pairs.append((name, value.strip("'\"")))
    return pairs


def _gain_of(text: str, value: str) -> Gain:
    if value not in _GAINS:
        message = f"{text!r}: gain is identity (the relevance) or exponential (2 ** relevance - 1)"
        raise ValueError(message)
    return _GAINS[value]


def _persistence(text: str, value: str | None) -> float:
    p = PERSISTENCE if value is None else _float(text, "p", value)
    if not 0 < p < 1:
        message = f"{text!r}: p must be above 0 and below 1"
        raise ValueError(message)
    return p


def _within(
    text: str, name: str, value: str | None, low: float, high: float, *, open_below: bool = False
) -> float | None:
    if value is None:
        return None
    number = _float(text, name, value)
    if not low <= number <= high or math.isinf(number) or (open_below and number == low):
        message = f"{text!r}: {name} must be {'above' if open_below else 'at least'} {low:g}"
        raise ValueError(message + ("" if math.isinf(high) else f" and at most {high:g}"))
    return number


def _float(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        message = f"{text!r}: {name} = {value!r} is no number"
        raise ValueError(message) from None


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
