"""Everything that `thresher plan` is asked, from the command line or from Python."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...records import dataclass
from ...runs.places import results_at
from ..published import kept_run, latest_run
from .expectations import plan_expectation
from .planning import plan_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..explain.choosing import Wish
    from .expectations import Expectation
    from .goals import Goal
    from .sample_plan import Plans


@dataclass(frozen=True)
class Asked:
    """A plan that is asked for.

    Attributes:
        results: The output of a pilot run, a folder or an address; None: there is no pilot.
        stage: Name of its stage; empty: every one that has the number.
        run: A kept run; empty: the latest.
        wish: The number of the pilot.
        expectation: What is expected without one.
        goal: What is wanted.
        spell: How a parameter is written where the person writes it.
    """

    results: str | None
    stage: str
    run: str
    wish: Wish
    expectation: Expectation
    goal: Goal
    spell: Callable[[str], str]


def plans_of(asked: Asked) -> Plans:
    """Return the plans.

    Raises:
        ThresherError: what is asked for does not fit together, the results cannot be read, or nothing can be planned.
    """
    goal = asked.goal.checked(asked.spell)
    if asked.results is None:
        _refuse_choices(asked)
        return plan_expectation(asked.expectation, goal, asked.spell)
    _refuse_expectations(asked)
    with results_at(asked.results) as folder:
        published = kept_run(folder, asked.run) if asked.run else latest_run(folder)
        return plan_run(published, asked.stage, asked.wish, goal)


def _refuse_choices(asked: Asked) -> None:
    """Refuse what chooses among the numbers of a pilot where there is none."""
    wish = asked.wish
    chosen = {
        "stage": bool(asked.stage),
        "run": bool(asked.run),
        "criterion": bool(wish.criterion),
        "group": bool(wish.group),
        "threshold": wish.threshold is not None,
    }
    for name, is_there in chosen.items():
        if is_there:
            message = f"{asked.spell(name)} chooses among the numbers of a pilot, and there is none"
            raise UsageError(message, remedy="Name its results.")


def _refuse_expectations(asked: Asked) -> None:
    """Refuse what is expected where a pilot tells it, and two ways of choosing a threshold."""
    for field in fields(asked.expectation):
        if field.name != "metric" and getattr(asked.expectation, field.name) is not None:
            message = f"{asked.spell(field.name)} says what is expected without a pilot, which tells it itself"
            raise UsageError(message, remedy="Leave it out, or the results.")
    if asked.wish.criterion and asked.wish.threshold is not None:
        message = f"{asked.spell('criterion')} and {asked.spell('threshold')} both choose a threshold"
        raise UsageError(message, remedy="Give one of them.")
