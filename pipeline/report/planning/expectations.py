"""Plans without a run, from what is expected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...metrics.planning.pilot import ASSURANCE, factor_for_difference, inflation_limit, other_run
from ...metrics.planning.power import units_for
from ...metrics.planning.without_pilot import (
    of_expected_share,
    rows_for_auc,
    rows_for_share,
    rows_for_share_assured,
    units_for_mean,
)
from ...records import dataclass
from . import writing
from .writing import PlannedUnits, Plans, SamplePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...metrics.planning.pilot import Pilot, Scale
    from .pilots import Goal

AREA = "roc_auc"
_OVER = {  # what a ratio is over
    "precision": "predictions that are kept (tp + fp)",
    "recall": "positives (tp + fn)",
    "f1": "rows that are positive or kept (tp + fp + fn)",
    "fpr": "negatives (fp + tn)",
}
_NO_SHARES = ("average_precision", "pr_auc", "map", "ndcg")


@dataclass(frozen=True)
class Expectation:
    """What is expected of numbers that are yet to be measured.

    Attributes:
        metric: The number; any name that is not known is that of a share of rows, or of a mean of units.
        expected: Its value; None where it is of no use.
        deviation: Standard deviation of the values of units, or of the differences within units; None for shares.
        design_effect: Variance over that of independent rows; None: 1.
        share_positive: Share of positives among all rows; None where it is of no use.
    """

    metric: str = ""
    expected: float | None = None
    deviation: float | None = None
    design_effect: float | None = None
    share_positive: float | None = None

    def checked(self, spell: Callable[[str], str]) -> Expectation:
        """Return the expectation, if it can be one.

        Args:
            spell: How a parameter is written where the person writes it.

        Raises:
            UsageError: a value is none, or the one that is needed is missing.
        """
        if self.expected is None and self.deviation is None:
            remedy = (
                f"Name the results of a pilot, or say what is expected: {spell('expected')} 0.9 of a share, or "
                f"{spell('deviation')} 0.2 between units."
            )
            message = "there is neither a pilot nor anything expected"
            raise UsageError(message, remedy=remedy)
        if self.deviation is not None and not 0 < self.deviation < math.inf:
            raise _wrong(spell("deviation"), self.deviation, "a number above 0")
        if self.expected is not None and self.deviation is None and not 0 <= self.expected <= 1:
            raise _wrong(spell("expected"), self.expected, "a share from 0 to 1, such as 0.9")
        if self.design_effect is not None and not 0 < self.design_effect < math.inf:
            raise _wrong(spell("design_effect"), self.design_effect, "a number above 0, such as 1.5")
        if self.share_positive is not None and not 0 < self.share_positive < 1:
            raise _wrong(spell("share_positive"), self.share_positive, "a share between 0 and 1, such as 0.1")
        if self.deviation is not None and self.design_effect is not None:
            message = f"{spell('design_effect')} goes with a share of rows, and {spell('deviation')} with units"
            raise UsageError(message, remedy="The units that a deviation is between are independent: leave it out.")
        return self

    @property
    def effect(self) -> float:
        """The design effect."""
        return 1.0 if self.design_effect is None else self.design_effect

    @property
    def name(self) -> str:
        """The number; a share of rows, or a mean, where it has no name."""
        return self.metric or ("share" if self.deviation is None else "values")


def _wrong(name: str, value: float, expected: str) -> UsageError:
    return UsageError(f"{name} {value:g} cannot be", remedy=f"Give {expected}.")


def plan_expectation(expectation: Expectation, goal: Goal, spell: Callable[[str], str]) -> Plans:
    """Plan what is wanted from what is expected.

    Args:
        expectation: What is expected.
        goal: What is wanted.
        spell: How a parameter is written where the person writes it.

    Raises:
        UsageError: nothing can be planned of it; the message says why.
    """
    expectation = expectation.checked(spell)
    if expectation.deviation is None:
        goal.check_share(expectation.name)
    if expectation.deviation is not None:
        plan = _of_units(expectation, goal)
    elif goal.margin is not None:
        message = f"a margin needs the spread of the differences within units: {spell('deviation')}"
        raise UsageError(
            message, remedy="It is that of a stage of compare; give its results as a pilot if you have them."
        )
    elif expectation.metric == AREA:
        plan = _of_area(expectation, goal, spell)
    else:
        plan = _of_rows(expectation, goal, spell)
    return Plans("", (plan,))


def _of_units(expectation: Expectation, goal: Goal) -> SamplePlan:
    """A mean over units, or a difference of two systems on the same units."""
    deviation, level = float(expectation.deviation or 0), goal.level()
    if goal.width is not None:
        needed = units_for_mean(deviation, goal.width, level)
        safe = units_for_mean(deviation, goal.width, level, ASSURANCE)
        what = (
            f"For a {writing.level(level)} interval of {_mean(expectation)} that is {writing.amount(goal.width)} wide"
        )
        basis = f"Student's t, with a standard deviation of {deviation:g} between units"
    else:
        question = goal.question()
        needed = units_for(question, deviation)
        wider = deviation * math.sqrt(inflation_limit(max((needed or 2) - 1.0, 1.0)))
        safe = units_for(question, wider)
        what = _claim(goal)
        basis = f"Student's t, with a standard deviation of {deviation:g} of the differences within units"
    notes = () if goal.width is not None else tuple(writing.notes_of_test(goal, level))
    return _finished(expectation, goal, (PlannedUnits("units", None, needed, safe, basis),), what, notes)


def _mean(expectation: Expectation) -> str:
    return f"the mean of {expectation.name}"


def _claim(goal: Goal) -> str:
    """What a test of two systems on the same units is to show."""
    truth = "equally good" if not goal.difference else f"truly {writing.amount(abs(goal.difference))} apart"
    sure = f"with a probability of {writing.level(goal.power)}"
    if goal.margin is None:
        return (
            f"To find a difference of {writing.amount(abs(goal.wanted))} between two systems on the same units {sure}"
        )
    if goal.claim == "equivalent":
        margin = writing.amount(goal.margin)
        return f"To show that two systems that are {truth} differ by less than {margin} on the same units {sure}"
    margin = writing.amount(goal.margin)
    return f"To show that a system is not worse than another by {margin}, if they are {truth}, on the same units {sure}"


def _of_area(expectation: Expectation, goal: Goal, spell: Callable[[str], str]) -> SamplePlan:
    area, share, level = expectation.expected, expectation.share_positive, goal.level()
    if goal.width is None:
        message = f"a difference of {AREA} is planned from a pilot, whose systems rank the same rows"
        raise UsageError(message, remedy="Name the results of a stage of compare.")
    if area is None or not 0 < area < 1 or share is None:
        message = f"the interval of {AREA} depends on the area and on the share of positives"
        raise UsageError(message, remedy=f"Give {spell('expected')} 0.9 {spell('share_positive')} 0.1.")
    rows = rows_for_auc(area, share, goal.width, level, expectation.effect)
    basis = f"Hanley and McNeil (1982), {_effect(expectation)}"
    units = [PlannedUnits("rows", None, rows, None, basis)]
    if rows is not None:
        for noun, of_class in (("positives", share), ("negatives", 1 - share)):
            units.append(PlannedUnits(noun, None, math.ceil(rows * of_class), None, f"{of_class:.3g} of the rows"))
    what = f"For a {writing.level(level)} interval of {AREA} that is {writing.amount(goal.width)} wide around {area:g}"
    return _finished(expectation, goal, tuple(units), what, ())


def _of_rows(expectation: Expectation, goal: Goal, spell: Callable[[str], str]) -> SamplePlan:
    if expectation.metric.casefold().startswith(_NO_SHARES):
        message = f"{expectation.metric} is no share of rows, so that its value does not tell how much it varies"
        remedy = f"Name the results of a pilot, or give {spell('deviation')}: how much it varies between queries."
        raise UsageError(message, remedy=remedy)
    scale: Scale = "jaccard" if expectation.metric == "f1" else "share"
    value, level = float(expectation.expected or 0), goal.level()
    pilot = of_expected_share(value, expectation.effect, level, scale)
    if goal.width is not None:
        needed = rows_for_share(pilot, goal.width)
        safe = rows_for_share_assured(pilot, goal.width) if 0 < value < 1 else None
        what = (
            f"For a {writing.level(level)} interval of {expectation.name} that is {writing.amount(goal.width)} wide "
            f"around {value:g}"
        )
        notes = tuple(_at_most(pilot, goal.width, needed))
    else:
        needed, safe = _rows_of_two_runs(pilot, goal), None
        sure = f"with a probability of {writing.level(goal.power)}"
        apart = f"{value:g} and {writing.amount(abs(goal.wanted))} away from it"
        what = f"To tell two runs apart whose {expectation.name} is {apart} {sure}, in each"
        notes = (
            "each run has rows of its own; on the same units a comparison needs fewer",
            *writing.notes_of_test(goal, level),
        )
    over = _OVER.get(expectation.metric, "rows")
    units = [PlannedUnits(over, None, needed, safe, _effect(expectation))]
    units += _all_rows(expectation, needed, safe)
    return _finished(expectation, goal, tuple(units), what, notes)


def _rows_of_two_runs(pilot: Pilot, goal: Goal) -> int | None:
    question = goal.question()
    other = other_run(pilot, abs(question.difference))
    if other is None:
        message = f"no share lies {abs(question.difference):g} away from {pilot.value:g}"
        raise UsageError(message, remedy="Give a smaller difference.")
    rows = factor_for_difference(pilot, other, question)
    return None if rows is None else math.ceil(rows)


def _at_most(pilot: Pilot, width: float, needed: int | None) -> Iterator[str]:
    """Say what the share that needs most would need."""
    most = rows_for_share(pilot.moved(1 / 2), width)
    if most is not None and needed is not None and most > needed:
        yield f"whatever it turns out to be, {most:,} are enough"


def _all_rows(expectation: Expectation, needed: int | None, safe: int | None) -> Iterator[PlannedUnits]:
    """Yield how many rows there must be for so many positives or negatives."""
    share = expectation.share_positive
    if share is None or needed is None:
        return
    of_class = {"recall": share, "fpr": 1 - share}.get(expectation.metric)
    if of_class is not None:
        in_all = math.ceil(needed / of_class)
        safe_in_all = None if safe is None else math.ceil(safe / of_class)
        basis = f"{of_class:.3g} of them are {_OVER[expectation.metric]}"
        yield PlannedUnits("rows in all", None, in_all, safe_in_all, basis)


def _effect(expectation: Expectation) -> str:
    return "independent rows" if expectation.effect == 1 else f"design effect {expectation.effect:g}"


def _finished(
    expectation: Expectation, goal: Goal, units: tuple[PlannedUnits, ...], what: str, notes: tuple[str, ...]
) -> SamplePlan:
    """The plan with its sentence.

    Raises:
        UsageError: no number is enough.
    """
    first, *_ = units
    if first.needed is None:
        message = f"no number of {first.unit} is enough"
        raise UsageError(message, remedy="Ask for less.")
    safe = first.needed_cautious
    beside = "" if safe is None or safe == first.needed else f" ({writing.about(safe)} to be on the safe side)"
    comma = "" if what.endswith("in each") else ","
    sentence = f"{what}{comma} about {writing.about(first.needed)} {first.unit} are needed{beside}."
    if beside:
        notes = (*notes, "on the safe side: in about 80 of 100 samples like the expected ones it is reached")
    return SamplePlan(
        stage="",
        kind="",
        metric=expectation.name,
        group="",
        threshold=None,
        value=expectation.expected,
        lower=None,
        upper=None,
        confidence=goal.level(),
        goal=goal.name,
        now=None,
        wanted=abs(goal.wanted),
        power=None if goal.width is not None else goal.power,
        factor=None,
        factor_cautious=None,
        units=units,
        sentence=sentence,
        notes=notes,
        design_effect=expectation.effect if expectation.deviation is None else None,
    )
