"""Where a number of a result in memory comes from, and how much more data is needed, as people and notebooks see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..paths import path_text
from ..records import dataclass
from ..report import explanation, planned
from ..report.evidence import Wish
from ..report.pilots import Goal
from ..report.planning import Asked, Expectation, plans_of
from ..runs.stage_results import Run

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import polars as pl

    from ..report.explaining import Explanation
    from ..report.planned import Plans, SamplePlan


# Where a number of a result in memory comes from, as people and notebooks see it.


@dataclass(frozen=True, repr=False)
class Explained:
    """Where a number comes from: it shows itself as text, and in notebooks as HTML.

    Attributes:
        explanation: Everything that is said, as data.
    """

    explanation: Explanation

    @property
    def sections(self) -> dict[str, pl.DataFrame]:
        """The rows behind the number by name of the section, such as `false_positives`; none of frames."""
        return {section.name: section.rows for section in self.explanation.sections}

    def __repr__(self) -> str:
        """Say the same as `thresher explain`."""
        return explanation.written(self.explanation, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with tables, for notebooks."""
        return str(explanation.explanation_markup(self.explanation))


# How much more data is needed, as people and notebooks see it.


@dataclass(frozen=True, repr=False)
class Planned:
    """How much more data is needed: it shows itself as text, and in notebooks as HTML.

    Attributes:
        outcome: Everything that is said, as data.
    """

    outcome: Plans

    @property
    def plans(self) -> tuple[SamplePlan, ...]:
        """A plan for each stage that was asked for: `.sentence`, `.units`, `.factor` and more."""
        return self.outcome.plans

    @property
    def refused(self) -> dict[str, str]:
        """Why there is no plan, by stage."""
        return self.outcome.refused

    @property
    def table(self) -> pl.DataFrame:
        """One row for each thing that is planned, as `thresher plan --format csv` writes it."""
        return self.outcome.table

    def __repr__(self) -> str:
        """Say the same as `thresher plan`."""
        return planned.written(self.outcome, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        """Say it with a table, for notebooks."""
        return str(planned.markup_of(self.outcome))


def plan_sample(
    results: str | os.PathLike[str] | Run | None = None,
    *,
    width: float | None = None,
    difference: float | None = None,
    margin: float | None = None,
    claim: str = "not_worse",
    power: float = 0.8,
    confidence: float | None = None,
    stage: str = "",
    metric: str = "",
    criterion: str = "",
    threshold: float | None = None,
    group: Mapping[str, object] | None = None,
    run: str = "",
    expected: float | None = None,
    deviation: float | None = None,
    design_effect: float | None = None,
    share_positive: float | None = None,
) -> Planned:
    """Say how many events, documents, queries or labels an interval of a wanted width, or a test, needs.

    Args:
        results: The output of a pilot run, a folder or an address on a store; or the run itself. None: there is no
            pilot, and `expected` or `deviation` says what is expected.
        width: Wanted width of the interval, upper less lower limit.
        difference: Difference that a test is to find: between the systems of a stage of compare on the same units, else
            between two runs on units of their own. With `margin` the true difference, to the worse.
        margin: Difference of two systems that a test is to rule out.
        claim: What a test with a margin shows: `not_worse`, one-sided, or `equivalent`, both sides.
        power: Probability that the test shows it.
        confidence: Level of the interval, or 1 less the level of the test; default: that of the pilot, or 0.95.
        stage: Stage of the pilot; default: all.
        metric: The number; default: the main one of the stage.
        criterion: Operating point whose threshold is meant, such as `max_f1`; default: the first.
        threshold: Threshold in its place. The nearest at or below it is taken.
        group: The group by its grouping columns, None for NULL, or by other columns that tell rows apart; default: the
            total, or the first group.
        run: A kept run by generation, run id or folder; default: the latest.
        expected: Without a pilot: the expected share, or the area for `metric="roc_auc"`.
        deviation: Without a pilot: standard deviation of the values of units, or of the differences within units.
        design_effect: Without a pilot: variance over that of independent rows.
        share_positive: Without a pilot: share of positives among the rows.

    Returns:
        The plans; `.table` is a Polars frame, and `.plans[0].sentence` the answer in words.

    Raises:
        ThresherError: what is asked for does not fit together, the results cannot be read, or nothing can be planned.
    """
    wish = Wish.of_python(metric, threshold, group or {}, option="group ", criterion=criterion, verb="planned")
    expectation = Expectation(metric, expected, deviation, design_effect, share_positive)
    goal = Goal(width, difference, margin, claim, power, confidence)
    if isinstance(results, Run):
        pilot: str | None = str(results.path.parent.parent)
        run = run or results.path.name
    else:
        pilot = None if results is None else path_text(results, what="results")
    return Planned(plans_of(Asked(pilot, stage, run, wish, expectation, goal, str)))
