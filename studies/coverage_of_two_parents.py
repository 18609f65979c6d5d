"""Coverage of before_after where events share articles and days, which differ in how often they match.

    python studies/coverage_of_two_parents.py [--datasets 300] [--events 30,100,300] [--design TEXT] [--seed 1]

Every event lies in an archive of articles; all pairs in its window are compared. How often a pair matches by chance
depends on the event, the article and the day of the article. The table compares intervals that know events alone with
those that know events and articles, and events and days: coverage of nominal 95 % intervals, and how often the placebo
test, whose null hypothesis is true, rejects at 5 %: at each of three thresholds, and `joint`, the test of all of them.
Of each line the Monte Carlo error is that of independent data sets with three dependent thresholds each.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.before_after.assumption import NearAndFar, placebo, placebo_joint
from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.uncertainty.clusters import CELLS_OF_BOTH, Cycle, InTime, replicate_of_both
from pipeline.stages.before_after.groups import MOST_REPLICATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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
    """Compared pairs of one data set.

    Attributes:
        event: Number of the event.
        article: Number of the article.
        day: Number of the day of the article.
        lag: Days from the event to the article.
        matches: Shape (pairs, T): whether the pair matches at each threshold.
    """

    event: NDArray[np.int64]
    article: NDArray[np.int64]
    day: NDArray[np.int64]
    lag: NDArray[np.float64]
    matches: NDArray[np.bool_]


def _effects(rng: np.random.Generator, variation: float, size: int) -> NDArray[np.float64]:
    """Lognormal numbers with mean 1."""
    square = np.log1p(variation**2)
    return np.asarray(rng.lognormal(-square / 2, np.sqrt(square), size))


def _effects_of_days(rng: np.random.Generator, design: Design) -> NDArray[np.float64]:
    """Lognormal numbers with mean 1, whose logarithms are an autoregression of first order."""
    if not design.persistent:
        return _effects(rng, design.day, DAYS)
    square, normal = np.log1p(design.day**2), rng.standard_normal(DAYS)
    for day in range(1, DAYS):
        normal[day] = design.persistent * normal[day - 1] + np.sqrt(1 - design.persistent**2) * normal[day]
    return np.asarray(np.exp(np.sqrt(square) * normal - square / 2))


def true_rates(design: Design) -> NDArray[np.float64]:
    """False positive rate at each threshold; below `rates` where effects would make a match more than certain."""
    rng, rates = np.random.default_rng(0), np.asarray(design.rates)
    effect = np.ones(DRAWS_OF_TRUTH)
    for variation in (design.event, design.article, design.day):
        effect *= _effects(rng, variation, DRAWS_OF_TRUTH)
    effect /= effect.mean()
    return np.asarray([np.minimum(effect * rate, 1.0).mean() for rate in rates])


def draw(design: Design, n_events: int, rng: np.random.Generator) -> Pairs:
    """One data set of a design."""
    per_day = rng.poisson(design.per_day * _effects(rng, design.busy, DAYS)) + 1
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
    effect = _effects(rng, design.event, n_events)[event] * _effects(rng, design.article, len(day))[article]
    effect *= _effects_of_days(rng, design)[day[article]]
    uniform, rates = rng.random(len(event)), np.asarray(design.rates)
    matches = uniform[:, None] < effect[:, None] * rates
    after = np.flatnonzero(lag >= 0)
    is_true = np.zeros(len(event), dtype=bool)
    is_true[after] = rng.random(len(after)) < COVERED * _effects(rng, 1.0, n_events)[event[after]] / (
        AFTER * design.per_day
    )
    is_retrieved = rng.random(len(event))[:, None] < np.asarray(RECALL)
    return Pairs(event, article, day[article], lag, np.where(is_true[:, None], is_retrieved, matches))


def sides(pairs: Pairs, replicate: NDArray[np.int64], cycle: int | None = None) -> tuple[Sides, NearAndFar]:
    """Counts by the replicates of one clustering, of which there are so many if they follow each other in time."""
    replicates, numbers = np.unique(replicate, return_inverse=True)
    n_replicates = int(numbers.max()) + 1

    def count(inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def outcomes(design: Design, pairs: Pairs, rates: NDArray[np.float64]) -> Iterator[tuple[str, str, float]]:
    """Whether each interval holds the truth, and whether each placebo test rejects, at every threshold."""
    share, recall = COVERED / (AFTER * design.per_day), np.asarray(RECALL)
    truth = {
        "fpr": rates,
        "precision": share * recall / (share * recall + (1 - share) * rates),
        "recall": recall,
    }
    for way, counts in clusterings(pairs).items():
        limits = intervals([sides for sides, _ in counts], reference=0, confidence=0.95)
        for name, values in truth.items():
            interval = limits[name]
            for lower, upper, value in list(zip(interval.lower, interval.upper, values, strict=True))[
                name == "recall" :
            ]:
                yield way, name, 1.0 if np.isnan(lower) else float(lower <= value <= upper)
        (_, events), crossed = counts[0], tuple(periods for _, periods in counts[1:])
        tests = placebo(events.m_far, events.m_near, events.n_far, events.n_near, confidence=0.95, crossed=crossed)
        for p_value in tests.p_value:
            yield way, "placebo", float(p_value < 0.05)
        joint = placebo_joint(events.m_far, events.m_near, events.n_far, events.n_near, crossed=crossed, flips=FLIPS)
        if not np.isnan(joint):
            yield way, "joint", float(joint <= 0.05)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=300)
    parser.add_argument("--events", default="30,100,300")
    parser.add_argument("--design", default="", help="only the designs whose name holds this text")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'design':32}{'events':>7}  {'intervals know':22}" + "".join(f"{name:>11}" for name in NAMES))
    for design in (design for design in DESIGNS if options.design in design.name):
        for n_events in map(int, options.events.split(",")):
            rng, rates = np.random.default_rng([options.seed, n_events]), true_rates(design)
            totals: dict[tuple[str, str], list[float]] = {}
            for _ in range(options.datasets):
                for way, name, value in outcomes(design, draw(design, n_events, rng), rates):
                    totals.setdefault((way, name), []).append(value)
            for way in WAYS:
                shares = [np.mean(totals.get((way, name), [np.nan])) for name in NAMES]
                print(
                    f"{design.name:32}{n_events:7}  {way:22}" + "".join(f"{share:11.3f}" for share in shares),
                    flush=True,
                )


if __name__ == "__main__":
    main()
