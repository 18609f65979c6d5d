"""Coverage of before_after where events share articles and days, which differ in how often they match.

    python studies/coverage_of_two_parents.py [--datasets 300] [--events 30,100,300] [--only TEXT]… [--seed 1]

Every event lies in an archive of articles; all pairs in its window are compared. How often a pair matches by chance
depends on the event, the article and the day of the article. The table compares intervals that know events alone with
those that know events and articles, and events and days: coverage of nominal 95 % intervals, and how often the placebo
test, whose null hypothesis is true, rejects at 5 %: at each of three thresholds, and `joint`, the test of all of them.
Of each line the Monte Carlo error is that of independent data sets with three dependent thresholds each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, options, print_error, report
from labelled_rows import autoregression, lognormal

from pipeline.metrics.before_after.assumption import NearAndFar, placebo, placebo_joint
from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.uncertainty.clusters import CELLS_OF_BOTH, Cycle, InTime, replicate_of_both
from pipeline.stages.before_after.groups import MOST_REPLICATES

if TYPE_CHECKING:
    from collections.abc import Iterator


DAYS, BEFORE, AFTER, NEAR = 90, 7, 3, 3  # length of the archive and of the parts of the window
WAYS = ("events", "events and articles", "events and days")
NAMES = ("fpr", "precision", "recall", "placebo", "joint")
FLIPS = 199
DRAWS_OF_TRUTH = 1_000_000


@dataclass(frozen=True)
class Design:
    """How pairs depend on each other.

    Attributes:
        name: For the table.
        event: Coefficient of variation of the false positive rates of events.
        article: The same of articles.
        day: The same of days.
        per_day: Articles of an average day.
        busy: Coefficient of variation of the numbers of articles of the days.
        rates: False positive rate at each threshold, falling.
        bunches: Days on which events happen; None: on any.
        persistent: Correlation of the logarithms of the rates of neighbouring days.
    """

    name: str
    event: float
    article: float
    day: float
    per_day: int = 15
    busy: float = 0.3
    rates: tuple[float, ...] = (0.05, 0.01, 0.003)
    bunches: int | None = None
    persistent: float = 0.0


DESIGNS = (
    Design("independent pairs", 0.0, 0.0, 0.0),
    Design("events differ", 1.0, 0.0, 0.0),
    Design("articles differ", 0.5, 1.5, 0.0),
    Design("articles differ much", 0.5, 3.0, 0.0, per_day=8),
    Design("days differ", 0.5, 0.5, 0.7),
    Design("days differ, few articles", 0.5, 0.5, 0.7, per_day=4, busy=0.8),
    Design("days differ, events on 20 days", 0.5, 0.5, 0.7, bunches=20),
    Design("events differ much", 2.0, 0.5, 0.5),
    Design("all differ, busy days", 1.0, 1.0, 1.0, per_day=10, busy=1.0),
    Design("days differ, and last", 0.5, 0.5, 0.7, persistent=0.64),
    Design("days differ less, and last", 0.5, 0.5, 0.4, persistent=0.8),
    Design("days differ, and last long", 0.5, 0.5, 0.7, persistent=0.9),
)
RECALL = (1.0, 0.9, 0.6)  # of the true pairs at each threshold
COVERED = 1.0  # mean number of true pairs of an event


@dataclass(frozen=True)
class Pairs:
    """Compared pairs of one data set: their events, articles and days of articles, and days from event to article.

    `matches` has the shape (pairs, T): whether the pair matches at each threshold.
    """

    event: Integers
    article: Integers
    day: Integers
    lag: Floats
    matches: Bools


def _effects_of_days(rng: np.random.Generator, design: Design) -> Floats:
    """Lognormal numbers with mean 1, whose logarithms are an autoregression of first order."""
    if not design.persistent:
        return lognormal(rng, design.day, DAYS)
    square, normal = np.log1p(design.day**2), autoregression(rng.standard_normal(DAYS), design.persistent)
    return np.asarray(np.exp(np.sqrt(square) * normal - square / 2))


def true_rates(design: Design) -> Floats:
    """False positive rate at each threshold; below `rates` where effects would make a match more than certain."""
    rng, rates = np.random.default_rng(0), np.asarray(design.rates)
    effect = np.ones(DRAWS_OF_TRUTH)
    for variation in (design.event, design.article, design.day):
        effect *= lognormal(rng, variation, DRAWS_OF_TRUTH)
    effect /= effect.mean()
    return np.asarray([np.minimum(effect * rate, 1.0).mean() for rate in rates])


def draw(design: Design, n_events: int, rng: np.random.Generator) -> Pairs:
    """One data set of a design."""
    per_day = rng.poisson(design.per_day * lognormal(rng, design.busy, DAYS)) + 1
    day = np.repeat(np.arange(DAYS), per_day)
    timestamps = day + rng.random(len(day))
    order = np.argsort(timestamps)
    day, timestamps = day[order], timestamps[order]
    events = rng.uniform(BEFORE, DAYS - AFTER, n_events)
    if design.bunches is not None:
        days = rng.choice(np.arange(BEFORE, DAYS - AFTER), design.bunches, replace=False)
        events = rng.choice(days, n_events) + rng.random(n_events)
    start = np.searchsorted(timestamps, events - BEFORE)
    size = np.searchsorted(timestamps, events + AFTER) - start
    event = np.repeat(np.arange(n_events), size)
    article = np.arange(size.sum()) - np.repeat(size.cumsum() - size, size) + np.repeat(start, size)
    lag = timestamps[article] - events[event]
    effect = lognormal(rng, design.event, n_events)[event] * lognormal(rng, design.article, len(day))[article]
    effect *= _effects_of_days(rng, design)[day[article]]
    uniform, rates = rng.random(len(event)), np.asarray(design.rates)
    matches = uniform[:, None] < effect[:, None] * rates
    after = np.flatnonzero(lag >= 0)
    is_true = np.zeros(len(event), dtype=bool)
    is_true[after] = rng.random(len(after)) < COVERED * lognormal(rng, 1.0, n_events)[event[after]] / (
        AFTER * design.per_day
    )
    is_retrieved = rng.random(len(event))[:, None] < np.asarray(RECALL)
    return Pairs(event, article, day[article], lag, np.where(is_true[:, None], is_retrieved, matches))


def sides(pairs: Pairs, replicate: Integers, cycle: int | None = None) -> tuple[Sides, NearAndFar]:
    """Counts by the replicates of one clustering, of which there are so many if they follow each other in time."""
    replicates, numbers = np.unique(replicate, return_inverse=True)
    n_replicates = int(numbers.max()) + 1

    def count(inside: Bools) -> tuple[Integers, Integers]:
        matches = [np.bincount(numbers[inside], column[inside], n_replicates) for column in pairs.matches.T]
        return np.array(matches, dtype=np.int64).T, np.bincount(numbers[inside], minlength=n_replicates)

    before, near = pairs.lag < 0, (pairs.lag < 0) & (pairs.lag >= -NEAR)
    (m_before, n_before), (m_after, n_after), (m_near, n_near) = count(before), count(~before), count(near)
    periods = NearAndFar(m_before - m_near, m_near, n_before - n_near, n_near)
    in_time = None if cycle is None else InTime(replicates, Cycle(cycle, BEFORE))
    return Sides(m_before, m_after, n_before, n_after, in_time), periods


def clusterings(pairs: Pairs) -> dict[str, list[tuple[Sides, NearAndFar]]]:
    """Counts by events; by events, articles and pairs; by events, days and both."""
    by_event = sides(pairs, pairs.event)
    by_pair = sides(pairs, (pairs.event * 7919 + pairs.article) % CELLS_OF_BOTH)
    day = pairs.day % MOST_REPLICATES
    by_both = sides(pairs, replicate_of_both(pairs.event, day))
    return {
        WAYS[0]: [by_event],
        WAYS[1]: [by_event, sides(pairs, pairs.article % 1000), by_pair],
        WAYS[2]: [by_event, sides(pairs, day, MOST_REPLICATES), by_both],
    }


def outcomes(design: Design, pairs: Pairs, rates: Floats) -> Iterator[tuple[str, dict[str, Floats | float]]]:
    """By way, which intervals hold the truth at every threshold, and which placebo tests reject; nan: no test."""
    share, recall = COVERED / (AFTER * design.per_day), np.asarray(RECALL)
    precision = share * recall / (share * recall + (1 - share) * rates)
    truth = {"fpr": rates, "precision": precision, "recall": recall}
    for way, counts in clusterings(pairs).items():
        limits = intervals([sides for sides, _ in counts], reference=0, confidence=0.95)
        says: dict[str, Floats | float] = {}
        for name, values in truth.items():
            lower, upper = limits[name].lower, limits[name].upper
            is_held = np.isnan(lower) | ((lower <= values) & (values <= upper))
            says[name] = is_held[name == "recall" :].astype(np.float64)  # 1 by definition at the first
        (_, events), crossed = counts[0], tuple(periods for _, periods in counts[1:])
        arguments = (events.m_far, events.m_near, events.n_far, events.n_near)
        says["placebo"] = np.float64(placebo(*arguments, confidence=0.95, crossed=crossed).p_value < 0.05)
        joint = placebo_joint(*arguments, crossed=crossed, flips=FLIPS)
        yield way, says | {"joint": np.nan if np.isnan(joint) else float(joint <= 0.05)}


def measure(task: tuple[Design, int], asked: Asked) -> Table:
    """A row for each way."""
    design, n_events = task
    rng, rates, tallies = (
        np.random.default_rng([asked.seed, n_events]),
        true_rates(design),
        {way: Tally() for way in WAYS},
    )
    for _ in range(asked.datasets):
        for way, says in outcomes(design, draw(design, n_events, rng), rates):
            tallies[way].add(says)
    for way, tally in tallies.items():
        yield design.name, str(n_events), way, *(float(np.nanmean(tally[name])) for name in NAMES)


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 300, events="30,100,300")
    print_error(asked.datasets)
    tasks = product(DESIGNS, map(int, asked.events.split(",")))
    report("events, articles and days", ("design", "events", "intervals know", *NAMES), measure, list(tasks), asked)


if __name__ == "__main__":
    main()
