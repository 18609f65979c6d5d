"""Plans in words: the answer in a sentence, and what must be known of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .goals import Goal
    from .pilots import Measured

_DIGITS = 3
ON_THE_SAFE_SIDE = (
    "on the safe side: in about 80 of 100 pilots like this one the true spread is no larger than this number allows for"
)


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


def answer(measured: Measured, needed: tuple[int | None, float], cautious: float | None) -> str:
    """Say how many units are needed, beside the pilot.

    Args:
        measured: The pilot.
        needed: How many, None where the pilot's number is not known, and how many times the pilot's.
        cautious: How many times the pilot's to be on the safe side; None if no number is enough.
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
    if needed[1] > 1:
        return f"For {interval} that is {amount(goal.wanted)} wide, {said}, whose interval is {_now(measured)} wide."
    return (
        f"The {measured.noun} of the pilot are enough: its interval is {_now(measured)} wide. For {interval} that is "
        f"{amount(goal.wanted)} wide, {said}."
    )


def _now(measured: Measured) -> str:
    return amount(measured.pilot.width)


def sentence_of_pair(
    measured: Measured, goal: Goal, needed: tuple[int | None, float], cautious: float | None, now: float | None
) -> str:
    """Say how many shared units a test of two systems needs; arguments as for `answer`.

    Args:
        measured: The pilot.
        goal: What is wanted.
        needed: As for `answer`.
        cautious: Likewise.
        now: What the units of the pilot would show; None where nothing.
    """
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
    where = f"on {measured.noun} of their own" if is_unpaired(row) else f"on the same {measured.noun}"
    return f"{claim}, with a probability of {level(goal.power)} and {where}, {said}{shown}."


def is_unpaired(row: Mapping[str, Any]) -> bool:
    """Whether the two systems of a row have units of their own."""
    of_both = (row.get("n_units_a"), row.get("n_units_b"))
    return None not in of_both and row["n_units"] == sum(number or 0 for number in of_both)


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

    Args:
        measured: The pilot.
        wanted: The width that is wanted.
        narrowed: Width with twice the rows in the same clusters, and with ever so many.
        enough: How many times the rows would do; infinite if no number does.
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
