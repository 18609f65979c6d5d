"""Plans in words: the answer in a sentence, and what must be known of it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, field
from itertools import compress
from numbers import Real
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.errors import UsageError
from ..base.records import dataclass
from ..metrics.planning import Claim, Question
from . import text
from .summary import Block, Cells, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..metrics.planning import Pilot
    from .evidence import Choice
    from .published import PublishedStage


_DIGITS = 3
ON_THE_SAFE_SIDE = (
    "on the safe side: in about 80 of 100 pilots like this one the true spread is no larger than this number allows for"
)
CLAIMS: tuple[Claim, ...] = ("not_worse", "equivalent")
DEFAULT_CONFIDENCE = 0.95


def about(number: int) -> str:
    """A number of units, rounded up to three digits."""
    step = 10 ** max(len(str(number)) - _DIGITS, 0)
    return f"{math.ceil(number / step) * step:,}"


def times(factor: float) -> str:
    """A factor with two digits, or three from ten on."""
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}" if factor >= 10 else f"{factor:.2g}"  # noqa: PLR2004


def amount(value: float) -> str:
    """A width or a difference with three digits."""
    return f"{value:.3g}"


def level(confidence: float) -> str:
    """A level as a percentage."""
    return f"{100 * confidence:.6g}%"


@dataclass(frozen=True)
class Measured:
    """A number of a published run with what is needed to plan another.

    Attributes:
        stage: Its stage.
        choice: The row that it stands in.
        metric: What it is called.
        pilot: Its interval.
        noun: What is independent, several of them.
        now: Number of these; None where it is not known.
        counts: Numbers of other things that there are more of with more units, by noun.
        rests_on: The noun of what a share is over; empty for others.
        notes: Why the interval is doubtful, and what clusters are.
        labelled: Share of the rows of which the labelled ones are a sample that have labels; 0: of no finite number.
    """

    stage: PublishedStage
    choice: Choice
    metric: str
    pilot: Pilot
    noun: str
    now: int | None
    counts: Mapping[str, int]
    rests_on: str
    notes: tuple[str, ...]
    labelled: float = 0.0


@dataclass(frozen=True)
class Goal:
    """The aim of a plan: one of a width, a difference and a margin.

    Attributes:
        width: Upper less lower limit of the interval.
        difference: The difference that a test is to find; with a margin how far the systems truly differ, to the worse.
        margin: The difference from which on it matters, which a test is to rule out.
        claim: What a test with a margin shows: `not_worse`, one-sided, or `equivalent`, both sides.
        power: Probability that the test shows it.
        confidence: Level of the interval, or 1 less the level of the test; None: that of the pilot.
    """

    width: float | None = None
    difference: float | None = None
    margin: float | None = None
    claim: str = "not_worse"
    power: float = 0.8
    confidence: float | None = None

    @property
    def name(self) -> str:
        """`width`, `difference` or `margin`."""
        return "width" if self.width is not None else "difference" if self.margin is None else "margin"

    @property
    def wanted(self) -> float:
        """The width, the difference or the margin."""
        return next(value for value in (self.width, self.margin, self.difference) if value is not None)

    def level(self, of_pilot: float = DEFAULT_CONFIDENCE) -> float:
        """The confidence; the pilot's unless it is given."""
        return of_pilot if self.confidence is None else self.confidence

    def question(self, of_pilot: float = DEFAULT_CONFIDENCE) -> Question:
        """The test that is asked for.

        Raises:
            UsageError: the power is not above the level of the test.
        """
        significance = 1 - self.level(of_pilot)
        if self.power <= significance:
            message = f"a power of {self.power:g} is not above the level of the test, {significance:.6g}"
            raise UsageError(message, remedy="Give a power such as 0.8.")
        if self.margin is None:
            return Question("different", float(self.difference or 0), math.nan, self.power, significance)
        claim: Claim = "equivalent" if self.claim == "equivalent" else "not_worse"
        return Question(claim, float(self.difference or 0), self.margin, self.power, significance)

    def check_share(self, name: str) -> None:
        """Refuse a width that every interval of a number from 0 to 1 is within.

        Raises:
            UsageError: the interval is to be 1 wide, or wider.
        """
        if self.width is not None and self.width >= 1:
            message = f"an interval of {name} is never {self.width:g} wide: {name} lies between 0 and 1"
            raise UsageError(message, remedy="Give a width such as 0.05, which is 5 percentage points.")

    def checked(self, spell: Callable[[str], str]) -> Goal:
        """Return the goal, if it is one; `spell` is how a parameter is written where the person writes it: `--width`.

        Raises:
            UsageError: nothing, or several things, are wanted, or a value is none.
        """
        others = {"difference": self.difference, "margin": self.margin}
        if self.width is None and all(value is None for value in others.values()):
            message = "what is wanted is missing"
            wanted = f"the width of the interval, {spell('width')} 0.05, or the difference that a test is to find"
            raise UsageError(message, remedy=f"Give {wanted}, {spell('difference')} 0.02.")
        if self.width is not None and (with_width := [name for name, value in others.items() if value is not None]):
            message = f"{spell('width')} and {spell(with_width[0])} are two plans"
            raise UsageError(message, remedy="Ask for one after the other.")
        self._check_values(spell)
        return self

    def _check_values(self, spell: Callable[[str], str]) -> None:
        for name in ("width", "difference", "margin", "power", "confidence"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                raise impossible(spell(name), value, "a number")
        for name, value in (("width", self.width), ("margin", self.margin)):
            if value is not None and not 0 < value < math.inf:
                raise impossible(spell(name), value, "a number above 0")
        lowest = 0 if self.margin is not None else None
        if self.difference is not None and not (0 < abs(self.difference) < math.inf or self.difference == lowest):
            raise impossible(spell("difference"), self.difference, "a number other than 0")
        if self.margin is not None and abs(self.difference or 0) >= self.margin:
            message = f"a true difference of {self.difference:g} is no smaller than the margin, {self.margin:g}"
            raise UsageError(message, remedy="No test can show then that there is none. Give a smaller difference.")
        if self.claim not in CLAIMS:
            message = f"unknown claim {self.claim!r}"
            raise UsageError(message, remedy=f"Choose one of {', '.join(CLAIMS)}.")
        for name, share in (("power", self.power), ("confidence", self.confidence)):
            if share is not None and not 0 < share < 1:
                raise impossible(spell(name), share, "a number between 0 and 1, such as 0.8")


def impossible(name: str, value: object, expected: str) -> UsageError:
    """Return the error that the value of a parameter is none that it can have."""
    shown = f"{value:g}" if isinstance(value, Real) else repr(value)
    return UsageError(f"{name} {shown} cannot be", remedy=f"Give {expected}.")


def answer(measured: Measured, needed: tuple[int | None, float], cautious: float | None) -> str:
    """Say how many units are needed, beside the pilot: a number, if its own is known, and how many times that.

    On the safe side it is so many times the pilot's; None if no number is enough.
    """
    number, factor = needed
    noun, now = measured.noun, measured.now
    if number is None or now is None:
        safe = "" if cautious is None else f" ({times(cautious)} times to be on the safe side)"
        return f"about {times(factor)} times the {noun} of the pilot are needed{safe}"
    safe = "" if cautious is None else f" ({about(math.ceil(cautious * now))} to be on the safe side)"
    return f"about {about(number)} {noun} are needed{safe}, {times(factor)} times the {now:,} of the pilot"


def sentence_of_width(measured: Measured, goal: Goal, needed: tuple[int | None, float], cautious: float | None) -> str:
    """Say how many units an interval needs; `goal` is what is wanted, other arguments are as for `answer`."""
    pilot = measured.pilot
    of_what = f"the {measured.metric}" if "metric" in measured.choice.row else measured.metric
    interval = f"a {level(goal.level(pilot.confidence))} interval of {of_what}"
    said = answer(measured, needed, cautious)
    now = amount(pilot.width)
    if needed[1] > 1:
        return f"For {interval} that is {amount(goal.wanted)} wide, {said}, whose interval is {now} wide."
    return (
        f"The {measured.noun} of the pilot are enough: its interval is {now} wide. For {interval} that is "
        f"{amount(goal.wanted)} wide, {said}."
    )


def sentence_of_pair(
    measured: Measured, goal: Goal, needed: tuple[int | None, float], cautious: float | None, now: float | None
) -> str:
    """Say how many shared units a test of two systems needs, and what those of the pilot would show; see `answer`."""
    row = measured.choice.row
    first, second = str(row["system_a"]), str(row["system_b"])
    metric = str(row["metric"])
    truth = "are equally good" if not goal.difference else f"truly differ by {amount(abs(goal.difference))}"
    if goal.margin is None:
        claim = f"To find a difference of {amount(abs(goal.wanted))} in {metric} between {first} and {second}"
    elif goal.claim == "equivalent":
        claim = (
            f"To show that {first} and {second}, if they {truth}, differ by less than {amount(goal.margin)} in {metric}"
        )
    else:
        claim = (
            f"To show that one of {first} and {second}, if they {truth}, is not worse than the other by "
            f"{amount(goal.margin)} in {metric}"
        )
    said = answer(measured, needed, cautious)
    shown = "" if now is None else f", with which {amount(now)} would be shown"
    of_both = (row.get("n_units_a"), row.get("n_units_b"))
    is_unpaired = None not in of_both and row["n_units"] == sum(number or 0 for number in of_both)
    where = f"on {measured.noun} of their own" if is_unpaired else f"on the same {measured.noun}"
    return f"{claim}, with a probability of {level(goal.power)} and {where}, {said}{shown}."


def sentence_of_two_runs(
    measured: Measured, goal: Goal, needed: tuple[int | None, float], cautious: float | None, now: float | None
) -> str:
    """Say how many units each of two runs needs; arguments as for `sentence_of_pair`."""
    said = answer(measured, needed, cautious)
    shown = "" if now is None else f"; two runs of its size show a difference of {amount(now)}"
    return (
        f"To tell two runs apart whose {measured.metric} differs by {amount(abs(goal.wanted))}, each on "
        f"{measured.noun} of its own, with a probability of {level(goal.power)}, in each {said}{shown}."
    )


def notes_of_test(goal: Goal, confidence: float) -> Iterator[str]:
    """Say which test is planned."""
    side = level(1 - confidence)
    if goal.margin is None:
        yield f"the test is two-sided at the {side} level"
    elif goal.claim == "equivalent":
        inner = level(max(2 * confidence - 1, 0.0))
        yield f"two one-sided tests at the {side} level: the {inner} interval must lie within the margin on both sides"
    else:
        yield f"the test is one-sided at the {side} level"


def note_of_rows(measured: Measured, wanted: float, narrowed: tuple[float, float], enough: float) -> str:
    """Say what more rows in the same clusters would do, beside more clusters.

    They narrow the interval to two widths, with twice the rows and with ever so many; enough is how many times the rows
    would do, which may be infinite.
    """
    noun, rows = measured.noun, measured.rests_on
    twice, most = (amount(width) for width in narrowed)
    if math.isinf(enough):
        return (
            f"more {noun}, not more of each: twice the {rows} in each of the same {noun} would give a width of "
            f"{twice}, and ever so many {most}, which is more than {amount(wanted)}"
        )
    return f"{times(enough)} times the {rows} in each of the same {noun} would do, too; twice would give {twice}"


def note_of_unlike_rows(measured: Measured) -> str:
    """Say that more rows in the same clusters do as much as more clusters."""
    noun, rows = measured.noun, measured.rests_on
    return (
        f"more {rows} in the same {noun} narrow the interval as much as more {noun} do: within the {noun} of the pilot "
        "they are no more alike than others"
    )


def note_of_few(effective: float, fewest: int) -> str:
    """Say that intervals of so few units are not to be trusted."""
    return (
        f"so few count as {effective:.1f} of equal size: below {fewest} intervals are marked few_clusters, as they may "
        "hold the truth less often than they say"
    )


def note_of_cut(limit: float) -> str:
    """Say what stands for a limit that is cut off."""
    return f"a limit of the pilot is cut off at {amount(limit)}; the distance of the other one stands for it"


_NOTHING = "–"


def written(plans: Planned, format_: str, width: int | None = None) -> str:
    """Return plans as `text`, `markdown`, `latex`, `csv` (a row for each thing that is planned) or `json` (everything).

    Raises:
        UsageError: the format is unknown.
    """
    text.check_format(format_, FORMATS)
    return _WRITERS[format_](plans, width)


def _blocks(plans: Planned) -> Iterator[Block]:
    """Return plans as blocks: the answer, the table, what must be known."""
    for number, plan in enumerate(plans.plans):
        yield Heading(_title(plan), 1 if number == 0 else 2)
        yield Paragraph(plan.sentence)
        yield _cells(plan)
        if plan.notes:
            yield Items("Notes", plan.notes)
    if plans.refused:
        yield Items("Not planned:", tuple(f"{name}: {reason}" for name, reason in plans.refused.items()))


def _title(plan: SamplePlan) -> str:
    value = "" if plan.value is None else f" = {amount(plan.value)}"
    if not plan.stage:
        return f"Plan: {plan.metric}{value}, as expected"
    if plan.lower is not None and plan.upper is not None:
        value += f" ({amount(plan.lower)} to {amount(plan.upper)})"
    at = "" if plan.threshold is None else f" at {plan.threshold:g}"
    whose = "all groups together" if plan.group == "all" else f"group {plan.group}"
    return f"{plan.stage}: {plan.metric}{value}{at}, {whose}"


def _cells(plan: SamplePlan) -> Cells:
    headers = ("unit", "now", "needed", "cautious", "times", f"{plan.goal} now", f"{plan.goal} wanted", "basis")
    rows = [_row(plan, units, is_first=number == 0) for number, units in enumerate(plan.units)]
    is_kept = [
        index in {0, 2} or any(row[index] not in {"", _NOTHING} for row in rows) for index in range(len(headers))
    ]
    flush = (False, True, True, True, True, True, True, False)
    kept_headers, *kept_rows = (tuple(compress(row, is_kept)) for row in (headers, *rows))
    return Cells(kept_headers, tuple(kept_rows), tuple(compress(flush, is_kept)))


def _row(plan: SamplePlan, units: PlannedUnits, *, is_first: bool) -> tuple[str, ...]:
    """The cells of a row; what is the same in all of them stands in the first."""
    counts = (_count(units.now), _count(units.needed), _count(units.needed_cautious))
    factor = _NOTHING if plan.factor is None else times(plan.factor)
    now = _NOTHING if plan.now is None else amount(plan.now)
    shared = (factor, now, amount(plan.wanted)) if is_first else ("", "", "")
    return (units.unit, *counts, *shared, units.basis)


def _count(number: int | None) -> str:
    return _NOTHING if number is None else f"{number:,}"


_WRITERS: dict[str, Callable[[Planned, int | None], str]] = {
    "text": lambda plans, width: text.plain_text(_blocks(plans), width or text.WIDTH_OF_PIPES),
    "markdown": lambda plans, _: text.markdown_text(_blocks(plans)),
    "latex": lambda plans, _: text.latex_text(_blocks(plans)),
    "csv": lambda plans, _: plans.table.write_csv(),
    "json": lambda plans, _: f"{json.dumps(plans.to_dict(), ensure_ascii=False, default=str, indent=2)}\n",
}
FORMATS = tuple(_WRITERS)


@dataclass(frozen=True)
class PlannedUnits:
    """How many there must be of one thing.

    Attributes:
        unit: What it is, several of them.
        now: How many the pilot has; None: not known, or no pilot.
        needed: How many are needed if the pilot is right; None: not known.
        needed_cautious: How many are needed to be on the safe side.
        basis: What that rests on.
    """

    unit: str
    now: int | None
    needed: int | None
    needed_cautious: int | None
    basis: str


@dataclass(frozen=True, kw_only=True)
class SamplePlan:
    """How many units a wanted interval or test needs.

    Attributes:
        stage: Name of the stage; empty without a pilot.
        kind: Its task, likewise.
        metric: The number.
        group: Its group in words; empty without a pilot.
        threshold: Its threshold; None where it has none.
        value: The number, or what is expected of it; None where nothing is.
        lower: Lower limit of the pilot; None without one.
        upper: Upper limit of the pilot.
        confidence: Level of the planned interval, or 1 less the level of the test.
        goal: What is wanted: `width`, `difference` or `margin`.
        now: What the pilot reaches of it: the width of its interval, or what it would find; None without one.
        wanted: What is wanted of it.
        power: Of the test; None for a width.
        factor: Units that are needed over those of the pilot; None without one.
        factor_cautious: The same on the safe side.
        units: How many of each thing; what is independent stands first.
        sentence: The answer in words.
        notes: What must be known of it.
        design_effect: Variance of the pilot over that of independent rows; None where it is not known.
        correlation: Of two rows of a cluster; None where it is not known.
    """

    stage: str = ""
    kind: str = ""
    metric: str
    group: str = ""
    threshold: float | None = None
    value: float | None
    lower: float | None = None
    upper: float | None = None
    confidence: float
    goal: str
    now: float | None = None
    wanted: float
    power: float | None = None
    factor: float | None = None
    factor_cautious: float | None = None
    units: tuple[PlannedUnits, ...]
    sentence: str
    notes: tuple[str, ...] = ()
    design_effect: float | None = None
    correlation: float | None = None


@dataclass(frozen=True, repr=False)
class Planned:
    """How much more data is needed: it shows itself as text, and in notebooks as HTML.

    Attributes:
        run: Name of the folder of the run; empty without one.
        plans: A plan for each stage that was asked for: `.sentence`, `.units`, `.factor` and more.
        refused: Why there is no plan, by stage.
    """

    run: str
    plans: tuple[SamplePlan, ...]
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def goal(self) -> str:
        """The aim of all plans: `width`, `difference` or `margin`."""
        return self.plans[0].goal

    @property
    def table(self) -> pl.DataFrame:
        """All plans, one row for each thing that is planned, as `thresher plan --format csv` writes it."""
        words, numbers, counts = pl.String(), pl.Float64(), pl.Int64()
        schema = {"stage": words, "metric": words, "group": words, "threshold": numbers, "unit": words}
        schema |= dict.fromkeys(("now", "needed", "needed_cautious"), counts)
        reached = ("factor", "factor_cautious", f"{self.goal}_now", f"{self.goal}_wanted")
        schema |= dict.fromkeys(reached, numbers) | {"basis": words}
        rows = [
            (
                *(plan.stage or None, plan.metric, plan.group or None, plan.threshold, units.unit),
                *(units.now, units.needed, units.needed_cautious, plan.factor, plan.factor_cautious),
                *(plan.now, plan.wanted, units.basis),
            )
            for plan in self.plans
            for units in plan.units
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All plans as JSON holds them."""
        plans = [{name: None if value == "" else value for name, value in asdict(each).items()} for each in self.plans]
        return {"run": self.run or None, "plans": plans, "refused": self.refused}

    def __repr__(self) -> str:
        """Say the same as `thresher plan`."""
        return written(self, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with a table, for notebooks."""
        return str(text.markup_of(_blocks(self)))
