"""Everything that `thresher plan` is asked: from a published run as the pilot, or from what is expected."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ..base.records import dataclass
from ..metrics.planning import (
    ASSURANCE,
    OF_SHARES,
    cautious,
    detectable,
    detectable_now,
    factor_for_difference,
    inflation_limit,
    intracluster_correlation,
    of_expected_share,
    other_run,
    rows_for_auc,
    rows_for_share,
    rows_for_share_assured,
    rows_for_variance,
    smallest_factor,
    units_for,
    units_for_mean,
    variance_degrees,
    variance_with_more_rows,
)
from ..metrics.uncertainty.limits import FEWEST_CLUSTERS
from ..runs.written import results_at
from . import planned
from .evidence import Wish, choose
from .pilots import asks_for_labels, measured, plan_of_labels, sizes_of
from .planned import Measured, Planned, PlannedUnits, SamplePlan, impossible
from .published import published_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..metrics.planning import Pilot, Scale
    from .planned import Goal
    from .published import PublishedRun, PublishedStage


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
    """Expectations about numbers that are yet to be measured.

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
        """Return the expectation, if it can be one; `spell` as for `Goal.checked`.

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
            raise impossible(spell("deviation"), self.deviation, "a number above 0")
        if self.expected is not None and self.deviation is None and not 0 <= self.expected <= 1:
            raise impossible(spell("expected"), self.expected, "a share from 0 to 1, such as 0.9")
        if self.design_effect is not None and not 0 < self.design_effect < math.inf:
            raise impossible(spell("design_effect"), self.design_effect, "a number above 0, such as 1.5")
        if self.share_positive is not None and not 0 < self.share_positive < 1:
            raise impossible(spell("share_positive"), self.share_positive, "a share between 0 and 1, such as 0.1")
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


def plan_expectation(expectation: Expectation, goal: Goal, spell: Callable[[str], str]) -> Planned:
    """Plan what is wanted from what is expected.

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
        what = (
            f"For a {planned.level(level)} interval of {AREA} that is {planned.amount(goal.width)} wide around {area:g}"
        )
        plan = _finished(expectation, goal, tuple(units), what, ())
    else:
        plan = _of_rows(expectation, goal, spell)
    return Planned("", (plan,))


def _of_units(expectation: Expectation, goal: Goal) -> SamplePlan:
    """A mean over units, or a difference of two systems on the same units."""
    deviation, level = float(expectation.deviation or 0), goal.level()
    if goal.width is not None:
        needed = units_for_mean(deviation, goal.width, level)
        safe = units_for_mean(deviation, goal.width, level, ASSURANCE)
        mean = f"the mean of {expectation.name}"
        what = f"For a {planned.level(level)} interval of {mean} that is {planned.amount(goal.width)} wide"
        basis = f"Student's t, with a standard deviation of {deviation:g} between units"
    else:
        question = goal.question()
        needed = units_for(question, deviation)
        wider = deviation * math.sqrt(inflation_limit(max((needed or 2) - 1.0, 1.0)))
        safe = units_for(question, wider)
        what = _claim(goal)
        basis = f"Student's t, with a standard deviation of {deviation:g} of the differences within units"
    notes = () if goal.width is not None else tuple(planned.notes_of_test(goal, level))
    return _finished(expectation, goal, (PlannedUnits("units", None, needed, safe, basis),), what, notes)


def _claim(goal: Goal) -> str:
    """The claim that a test of two systems on the same units is to show."""
    truth = "equally good" if not goal.difference else f"truly {planned.amount(abs(goal.difference))} apart"
    sure = f"with a probability of {planned.level(goal.power)}"
    if goal.margin is None:
        return (
            f"To find a difference of {planned.amount(abs(goal.wanted))} between two systems on the same units {sure}"
        )
    if goal.claim == "equivalent":
        margin = planned.amount(goal.margin)
        return f"To show that two systems that are {truth} differ by less than {margin} on the same units {sure}"
    margin = planned.amount(goal.margin)
    return f"To show that a system is not worse than another by {margin}, if they are {truth}, on the same units {sure}"


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
            f"For a {planned.level(level)} interval of {expectation.name} that is {planned.amount(goal.width)} wide "
            f"around {value:g}"
        )
        most = rows_for_share(pilot.moved(1 / 2), goal.width)  # by the share that needs most
        is_less = most is not None and needed is not None and most > needed
        notes: tuple[str, ...] = (f"whatever it turns out to be, {most:,} are enough",) if is_less else ()
    else:
        needed, safe = _rows_of_two_runs(pilot, goal), None
        sure = f"with a probability of {planned.level(goal.power)}"
        apart = f"{value:g} and {planned.amount(abs(goal.wanted))} away from it"
        what = f"To tell two runs apart whose {expectation.name} is {apart} {sure}, in each"
        notes = (
            "each run has rows of its own; on the same units a comparison needs fewer",
            *planned.notes_of_test(goal, level),
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
    beside = "" if safe is None or safe == first.needed else f" ({planned.about(safe)} to be on the safe side)"
    comma = "" if what.endswith("in each") else ","
    sentence = f"{what}{comma} about {planned.about(first.needed)} {first.unit} are needed{beside}."
    if beside:
        notes = (*notes, "on the safe side: in about 80 of 100 samples like the expected ones it is reached")
    return SamplePlan(
        metric=expectation.name,
        value=expectation.expected,
        confidence=goal.level(),
        goal=goal.name,
        wanted=abs(goal.wanted),
        power=None if goal.width is not None else goal.power,
        units=units,
        sentence=sentence,
        notes=notes,
        design_effect=expectation.effect if expectation.deviation is None else None,
    )


_TESTED = "difference"
_ROUNDING = 1e-10
_ALIKE = 1e-3  # correlation of the rows of a cluster from which on they are alike
_SQUARED_SKEWNESS = 1.5  # times it is the excess kurtosis of a gamma distribution


@dataclass(frozen=True)
class _Factors:
    """How many times the units of the pilot are needed, also to be on the safe side, and what the pilot reaches."""

    needed: float
    cautious: float | None
    now: float | None
    sentence: str


def plan_run(run: PublishedRun, name: str, wish: Wish, goal: Goal) -> Planned:
    """Plan what is wanted from a published run; without the name of a stage from every stage that has the number.

    Raises:
        UsageError: the run has no such stage, or nothing can be planned of what is asked for; the message says why.
    """
    stages = run.chosen([name] if name else [])
    if name or len(stages) == 1:
        return Planned(run.folder.name, (plan_stage(run, stages[0], wish, goal),))
    plans, refused = [], {}
    first_error: UsageError | None = None
    for stage in stages:
        try:
            plans.append(plan_stage(run, stage, wish, goal))
        except UsageError as error:
            refused[stage.name] = error.message
            first_error = first_error or error
    if not plans:
        names = ", ".join(stage.name for stage in stages) or "none"
        if first_error is None:
            message = "the run has no stage"
            raise UsageError(message)
        n_others = len(stages) - 1
        none = "the other stage cannot" if n_others == 1 else f"none of the other {n_others} stages can"
        message = f"{first_error.message}; {none} be planned either"
        raise UsageError(message, remedy=f"Name the stage that is meant; the stages are: {names}.")
    return Planned(run.folder.name, tuple(plans), refused)


def plan_stage(run: PublishedRun, stage: PublishedStage, wish: Wish, goal: Goal) -> SamplePlan:
    """Plan what is wanted from one stage; arguments and errors as for `plan_run`."""
    sizes = sizes_of(stage)
    if asks_for_labels(sizes, wish):
        return plan_of_labels(stage, wish, goal)
    evidence = stage.stage.evidence
    if evidence is None:  # as sizes_of has refused it
        raise UsageError(stage.name)
    choice = choose(stage, evidence, wish)
    pilot = measured(run, stage, choice)
    if goal.name == "width":
        of_pilot, level = pilot.pilot, goal.level(pilot.pilot.confidence)
        if of_pilot.scale in OF_SHARES:
            goal.check_share(pilot.metric)
        factor = of_pilot.factor_for(goal.wanted, level)
        if factor is None:
            raise _unreachable(pilot, f"an interval that is {goal.wanted:g} wide")
        safe_side, inflation = cautious(of_pilot)
        safe = safe_side.factor_for(goal.wanted, level, inflation=inflation)
        safe = None if safe is None else _more_labels(max(safe, factor), pilot.labelled)
        factor = _more_labels(factor, pilot.labelled)
        sentence = planned.sentence_of_width(pilot, goal, _needed(pilot, factor), safe)
        factors = _Factors(factor, safe, of_pilot.width, sentence)
    elif sizes.is_paired:
        factors = _for_pair(pilot, goal)
    else:
        factors = _for_two_runs(pilot, goal)
    return _plan(pilot, goal, factors)


def _more_labels(factor: float, labelled: float) -> float:
    """How many times the labels do what so many times the units would, where a share of all rows is labelled.

    What is left to doubt has the variance 1/n - 1/N (Cochran 1977, 2.17): if all rows have labels, nothing is.
    """
    return 1 / ((1 - labelled) / factor + labelled)


def _for_two_runs(pilot: Measured, goal: Goal) -> _Factors:
    of_pilot = pilot.pilot
    if goal.margin is not None:
        message = f"a margin is planned from a stage of compare, and {pilot.stage.name!r} has the numbers of one system"
        raise UsageError(message, remedy="Give a difference, or name a stage of compare.")
    question = goal.question(of_pilot.confidence)
    other = other_run(of_pilot, abs(question.difference))
    if other is None:
        message = f"no {pilot.metric} lies {abs(question.difference):g} away from {of_pilot.value:.4g}"
        raise UsageError(message, remedy="Give a smaller difference.")
    factor = factor_for_difference(of_pilot, other, question, degrees=variance_degrees(of_pilot))
    if factor is None:
        raise _unreachable(pilot, f"a difference of {abs(question.difference):g} visible")
    safe_side, inflation = cautious(of_pilot)
    other_on_safe_side = other_run(safe_side, abs(question.difference)) or other
    safe = factor_for_difference(safe_side, other_on_safe_side, question, inflation=inflation)
    safe = None if safe is None else max(safe, factor)
    now = detectable_now(of_pilot, question)
    return _Factors(factor, safe, now, planned.sentence_of_two_runs(pilot, goal, _needed(pilot, factor), safe, now))


def _for_pair(pilot: Measured, goal: Goal) -> _Factors:
    of_pilot = pilot.pilot
    if pilot.choice.measure.name != _TESTED:
        message = f"a test is planned of the {_TESTED} of two systems, not of {pilot.choice.measure.name}"
        raise UsageError(message, remedy="Leave the metric out, or name what is compared.")
    question = goal.question(of_pilot.confidence)
    error, number = of_pilot.error(), of_pilot.units
    deviation = error * math.sqrt(number)
    skewness = float(pilot.choice.row.get("skewness") or 0.0)
    degrees = max(2 / (2 / (number - 1) + _SQUARED_SKEWNESS * skewness**2 / number), 1.0)
    units = units_for(question, deviation, degrees)
    if units is None:
        raise _unreachable(pilot, "this test sure enough")
    safe = units_for(question, deviation * math.sqrt(inflation_limit(degrees)))
    safe = None if safe is None else max(safe, units)
    now = detectable(question, error, number - 1)
    cautious_factor = None if safe is None else safe / number
    sentence = planned.sentence_of_pair(pilot, goal, (units, units / number), cautious_factor, now)
    return _Factors(units / number, cautious_factor, now, sentence)


def _needed(pilot: Measured, factor: float) -> tuple[int | None, float]:
    return (None if pilot.now is None else _whole(pilot.now, factor)), factor


def _whole(number: int, factor: float) -> int:
    """So many times a number, rounded up; what is whole but for the last digits of the factor stays so."""
    return max(math.ceil(number * factor * (1 - _ROUNDING)), 1)


def _unreachable(pilot: Measured, what: str) -> UsageError:
    message = f"no number of {pilot.noun} makes {what}, as far as this pilot tells"
    return UsageError(message, remedy="Ask for less.")


def _plan(pilot: Measured, goal: Goal, factors: _Factors) -> SamplePlan:
    of_pilot, choice = pilot.pilot, pilot.choice
    level = goal.level(of_pilot.confidence)
    effect, correlation = _alike(pilot)
    notes = (*choice.notes, *pilot.notes, *_notes(pilot, goal, factors, correlation))
    if goal.name != "width":
        notes = (*notes, *planned.notes_of_test(goal, level))
    threshold = choice.row.get("threshold", choice.row.get("tolerance_km"))
    return SamplePlan(
        stage=pilot.stage.name,
        kind=pilot.stage.stage.kind,
        metric=pilot.metric,
        group=choice.group_words,
        threshold=None if threshold is None else float(threshold),
        value=of_pilot.value,
        lower=of_pilot.lower,
        upper=of_pilot.upper,
        confidence=level,
        goal=goal.name,
        now=factors.now,
        wanted=abs(goal.wanted),
        power=None if goal.name == "width" else goal.power,
        factor=factors.needed,
        factor_cautious=factors.cautious,
        units=tuple(_units(pilot, factors, effect)),
        sentence=factors.sentence,
        notes=(*notes, planned.ON_THE_SAFE_SIDE),
        design_effect=effect,
        correlation=correlation,
    )


def _alike(pilot: Measured) -> tuple[float | None, float | None]:
    """Return the design effect of a share, and the correlation of two rows of a cluster; None where not known."""
    of_pilot = pilot.pilot
    if of_pilot.scale not in {"share", "jaccard"} or math.isnan(of_pilot.rows) or of_pilot.share in {0.0, 1.0}:
        return None, None
    effect = of_pilot.rows / of_pilot.binomial_size
    if math.isinf(of_pilot.effective):
        return effect, None
    correlation = intracluster_correlation(effect, of_pilot.rows_per_cluster)
    return effect, None if math.isnan(correlation) else correlation


def _notes(pilot: Measured, goal: Goal, factors: _Factors, correlation: float | None) -> list[str]:
    of_pilot = pilot.pilot
    cut = [limit for limit in (of_pilot.lower, of_pilot.upper) if of_pilot.is_cut(limit)]
    notes = [planned.note_of_cut(limit) for limit in cut]
    effective = of_pilot.effective * factors.needed
    if effective < FEWEST_CLUSTERS:
        notes.append(planned.note_of_few(effective, FEWEST_CLUSTERS))
    if goal.name == "width" and correlation is not None and factors.needed > 1:
        notes.append(_more_rows(pilot, goal, correlation))
    return notes


def _more_rows(pilot: Measured, goal: Goal, correlation: float) -> str:
    if correlation < _ALIKE:
        return planned.note_of_unlike_rows(pilot)
    of_pilot, level = pilot.pilot, goal.level(pilot.pilot.confidence)
    rows = of_pilot.rows_per_cluster

    def width(rows_times: float) -> float:
        return of_pilot.width_with(1.0, level, inflation=variance_with_more_rows(rows_times, correlation, rows))

    precision = smallest_factor(lambda times: of_pilot.width_with(1.0, level, inflation=1 / times) <= goal.wanted)
    enough = math.inf if precision is None else rows_for_variance(1 / precision, correlation, rows)
    return planned.note_of_rows(pilot, goal.wanted, (width(2.0), width(math.inf)), enough)


def _units(pilot: Measured, factors: _Factors, effect: float | None) -> list[PlannedUnits]:
    """Return what is independent, and what there is more of with it."""
    planned = [_scaled(pilot.noun, pilot.now, factors, _basis(pilot, effect))]
    return planned + [_scaled(noun, number, factors, "in proportion") for noun, number in pilot.counts.items()]


def _basis(pilot: Measured, effect: float | None) -> str:
    of_pilot: Pilot = pilot.pilot
    words = ["independent"]
    if math.isfinite(of_pilot.effective) and round(of_pilot.effective) != of_pilot.units:
        words.append(f"count as {of_pilot.effective:,.0f}")
    if effect is not None:
        words.append(f"design effect {planned.times(effect)}")
    return ", ".join(words)


def _scaled(noun: str, now: int | None, factors: _Factors, basis: str) -> PlannedUnits:
    needed = None if now is None else _whole(now, factors.needed)
    safe = None if now is None or factors.cautious is None else _whole(now, factors.cautious)
    return PlannedUnits(noun, now, needed, safe, basis)


def plans_of(
    results: str | None,
    stage: str,
    run: str,
    wish: Wish,
    expectation: Expectation,
    goal: Goal,
    spell: Callable[[str], str],
) -> Planned:
    """Return the plans that are asked for, from the command line or from Python.

    Args:
        results: The output of a pilot run, a folder or an address; None: there is no pilot.
        stage: Name of its stage; empty: every one that has the number.
        run: A kept run; empty: the latest.
        wish: The number of the pilot.
        expectation: What is expected without one.
        goal: What is wanted.
        spell: How a parameter is written where the person writes it.

    Raises:
        ThresherError: what is asked for does not fit together, the results cannot be read, or nothing can be planned.
    """
    goal = goal.checked(spell)
    if results is None:
        # refuse what chooses among the numbers of a pilot where there is none
        chosen = {
            "stage": bool(stage),
            "run": bool(run),
            "criterion": bool(wish.criterion),
            "group": bool(wish.group),
            "threshold": wish.threshold is not None,
        }
        for name, is_there in chosen.items():
            if is_there:
                message = f"{spell(name)} chooses among the numbers of a pilot, and there is none"
                raise UsageError(message, remedy="Name its results.")
        return plan_expectation(expectation, goal, spell)
    # refuse what is expected where a pilot tells it, and two ways of choosing a threshold
    for field in fields(expectation):
        if field.name != "metric" and getattr(expectation, field.name) is not None:
            message = f"{spell(field.name)} says what is expected without a pilot, which tells it itself"
            raise UsageError(message, remedy="Leave it out, or the results.")
    if wish.criterion and wish.threshold is not None:
        message = f"{spell('criterion')} and {spell('threshold')} both choose a threshold"
        raise UsageError(message, remedy="Give one of them.")
    with results_at(results) as folder:
        published = published_run(folder, run or None)
        return plan_run(published, stage, wish, goal)
