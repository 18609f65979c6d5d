"""A plan as data: how many units are needed, and on what that rests."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

import polars as pl

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


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


@dataclass(frozen=True)
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

    stage: str
    kind: str
    metric: str
    group: str
    threshold: float | None
    value: float | None
    lower: float | None
    upper: float | None
    confidence: float
    goal: str
    now: float | None
    wanted: float
    power: float | None
    factor: float | None
    factor_cautious: float | None
    units: tuple[PlannedUnits, ...]
    sentence: str
    notes: tuple[str, ...] = ()
    design_effect: float | None = None
    correlation: float | None = None


@dataclass(frozen=True)
class Plans:
    """Plans of a run, or of what is expected.

    Attributes:
        run: Name of the folder of the run; empty without one.
        plans: A plan for each stage that was asked for.
        refused: Why there is none, by stage.
    """

    run: str
    plans: tuple[SamplePlan, ...]
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def goal(self) -> str:
        """What is wanted in all plans: `width`, `difference` or `margin`."""
        return self.plans[0].goal

    @property
    def table(self) -> pl.DataFrame:
        """All plans, one row for each thing that is planned."""
        rows = [_row(plan, units) for plan in self.plans for units in plan.units]
        return pl.DataFrame(rows, schema=_schema(self.goal), orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All plans as JSON holds them."""
        return {"run": self.run or None, "plans": [_facts(plan) for plan in self.plans], "refused": self.refused}


def _facts(plan: SamplePlan) -> dict[str, Any]:
    facts = asdict(plan)
    return {name: value if value != "" else None for name, value in facts.items()}


def _schema(goal: str) -> dict[str, pl.DataType]:
    words, numbers, counts = pl.String(), pl.Float64(), pl.Int64()
    about = {"stage": words, "metric": words, "group": words, "threshold": numbers, "unit": words}
    needed = dict.fromkeys(("now", "needed", "needed_cautious"), counts)
    reached = dict.fromkeys(("factor", "factor_cautious", f"{goal}_now", f"{goal}_wanted"), numbers)
    return {**about, **needed, **reached, "basis": words}


def _row(plan: SamplePlan, units: PlannedUnits) -> Sequence[object]:
    about = (plan.stage or None, plan.metric, plan.group or None, plan.threshold, units.unit)
    numbers = (units.now, units.needed, units.needed_cautious, plan.factor, plan.factor_cautious)
    return (*about, *numbers, plan.now, plan.wanted, units.basis)
