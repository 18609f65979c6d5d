"""False alarms of gates in nights without a change, and how soon a real fall is found, on data whose truth is known.

    python studies/gates.py [--years 40] [--confidence 0.95] [--seed 1] [--only TEXT]… [--whole 0]

Every night every group has new data, drawn from the same truth, and every gate is judged as in a run, from values and
95% intervals, over 1, 10 and 50 groups. The designs:

- `precision, 500 rows`, `precision, 100 rows`, `recall, 300 positives`: counts of threshold_sweep, rows independent;
- `precision, 40 documents`: documents of 12 rows differ in their share of right rows (beta, standard deviation 0.15);
- `before_after precision`, `before_after recall`: 100 events that differ (CV 1), at the third of ten thresholds.

`min at the truth` is a minimum that equals the truth, `min below` one that lies below it by half of the fall, `drop` is
max_drop = 0 since the night before, and `drop allowed` one with an allowance of half of the fall. `alarms` are nights
with a failed gate in 365 nights without a change, with the Monte Carlo error; 365 × (1 - confidence) are allowed. Then
one group falls: `at once` is the share of falls that fail the gate in the first night, `in 7` in the first seven, where
`drop` is held against a fixed run.

With `--whole`, so many nights of a config with ten groups are run from files to published results in a temporary
folder, and then one in which a group has fallen.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
from before_after_counts import Counts, Setting, simulate, truth
from harness import Asked, Bools, Floats, Integers, Table, options, report

from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.comparison.pooled import Estimates, p_values_below, p_values_of_drop
from pipeline.metrics.uncertainty.clusters import effective_number
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows
from pipeline.runs import runner
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Row

    Draw: TypeAlias = Callable[[int, float, np.random.Generator], Estimates]

NIGHTS, WEEK, GROUPS = 365, 7, (1, 10, 50)
LEVEL = 0.95  # of the published intervals
MOST_TESTS = 20_000  # of one gate where no two tests are alike
N_FALLS = 400
EVENTS, AT = Setting(100, heterogeneity=1.0), 2  # and the threshold
DOCUMENTS, ROWS, BETWEEN = 40, 12, 0.15


@dataclass(frozen=True)
class Design:
    """Numbers of a kind: their truth, by how much one falls, how so many of them are drawn that have fallen by so much.

    A pool of them is drawn, of which nights are made.
    """

    name: str
    true: float
    fall: float
    draw: Draw
    pool: int = 4_000


def of_rows(true: float, size: int) -> Draw:
    """Shares of independent rows."""

    def draw(number: int, fall: float, rng: np.random.Generator) -> Estimates:
        hits = rng.binomial(size, true - fall, number).astype(np.float64)
        none = np.zeros(number)
        counts = Confusion(hits, size - hits, none, none)
        lower, upper = intervals_of_rows(counts, None, LEVEL, names=("precision",))["precision"]
        return Estimates(hits / size, lower, upper, np.full(number, np.inf), LEVEL)

    return draw


def of_documents(true: float) -> Draw:
    """Shares of rows of documents that differ."""

    def draw(number: int, fall: float, rng: np.random.Generator) -> Estimates:
        mean = true - fall
        together = mean * (1 - mean) / BETWEEN**2 - 1
        shares = rng.beta(mean * together, (1 - mean) * together, (DOCUMENTS, number))
        hits = rng.binomial(ROWS, shares).astype(np.float64)
        none = np.zeros_like(hits)
        counts = Confusion(hits, ROWS - hits, none, none)
        lower, upper = intervals_of_clusters(counts, LEVEL, names=("precision",))["precision"]
        degrees = effective_number(np.full((DOCUMENTS, number), float(ROWS))) - 1
        return Estimates(hits.sum(axis=0) / (DOCUMENTS * ROWS), lower, upper, degrees, LEVEL)

    return draw


def of_events(name: str) -> Draw:
    """Precision or recall without labels.

    A fall of recall is that to the next threshold, one of precision that from doubling the false positive rate.
    """

    def draw(number: int, fall: float, rng: np.random.Generator) -> Estimates:
        setting = EVENTS if name == "recall" or not fall else Setting(100, heterogeneity=1.0, fpr_reference=WORSE)
        at = AT + 1 if name == "recall" and fall else AT
        rows = [_of_events(name, at, counts) for counts in simulate(setting, number, rng)]
        value, lower, upper = np.array(rows, dtype=np.float64).T
        return Estimates(value, lower, upper, np.full(number, float(EVENTS.events - 1)), LEVEL)

    return draw


WORSE = 0.2  # false positive rate at the reference that makes precision fall


def _of_events(name: str, at: int, counts: Counts) -> tuple[float, float, float]:
    interval = intervals([counts.sides], reference=0, confidence=LEVEL)[name]
    true, positives = counts.corrected()
    value = true[at] / counts.totals[1][at] if name == "precision" else min(true[at] / positives, 1.0)
    return float(value), float(interval.lower[at]), float(interval.upper[at])


@cache
def designs() -> dict[str, Design]:
    """All of them, by name."""
    usual = truth(EVENTS)
    worse = truth(Setting(100, heterogeneity=1.0, fpr_reference=WORSE))
    precision = float(usual["precision"][AT])
    step = float(usual["recall"][AT] - usual["recall"][AT + 1])
    fall = precision - float(worse["precision"][AT])
    every = (
        Design("precision, 500 rows", 0.8, 0.08, of_rows(0.8, 500), 400_000),
        Design("precision, 100 rows", 0.95, 0.1, of_rows(0.95, 100), 400_000),
        Design("recall, 300 positives", 0.7, 0.1, of_rows(0.7, 300), 400_000),
        Design("precision, 40 documents", 0.8, 0.12, of_documents(0.8), 20_000),
        Design("before_after precision", precision, fall, of_events("precision")),
        Design("before_after recall", float(usual["recall"][AT]), step, of_events("recall")),
    )
    return {design.name: design for design in every}


def taken(estimates: Estimates, index: Integers) -> Estimates:
    """Some of the numbers, in one row."""
    value, lower, upper = (limits[index.ravel()] for limits in (estimates.value, estimates.lower, estimates.upper))
    return Estimates(value, lower, upper, estimates.degrees[index.ravel()], LEVEL)


def below(estimates: Estimates, index: Integers, limit: float) -> Floats:
    """P-values of a minimum, of the shape of the index; numbers that come again are tested once."""
    return np.asarray(p_values_below(estimates, limit)[index])


def dropped(before: Estimates, first: Integers, after: Estimates, second: Integers, allowance: float) -> Floats:
    """P-values of falls between numbers of two pools, of the shape of the indexes; equal pairs are tested once."""
    pairs, inverse = np.unique(np.stack([first.ravel(), second.ravel()], axis=1), axis=0, return_inverse=True)
    p_values = p_values_of_drop(taken(before, pairs[:, 0]), taken(after, pairs[:, 1]), allowance)
    return np.asarray(p_values[inverse.ravel()].reshape(first.shape))


def alike(estimates: Estimates) -> tuple[Estimates, Integers]:
    """The different numbers of a pool, and which of them each is."""
    columns = np.stack([estimates.value, estimates.lower, estimates.upper], axis=1)
    _, first, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return taken(estimates, first), np.asarray(inverse.ravel())


def fails(p_values: Floats, level: float) -> Bools:
    """Whether a gate fails in each night, of p-values of shape (nights, groups): Holm's smallest adjusted p-value."""
    return np.asarray(np.nanmin(p_values, axis=1) * p_values.shape[1] <= level)


def measure(name: str, asked: Asked) -> Table:
    """A row for each gate over each number of groups."""
    design = designs()[name]
    rng = np.random.default_rng([asked.seed, list(designs()).index(name)])
    for groups in GROUPS:
        yield from of_groups(design, groups, asked, rng)


def of_groups(design: Design, groups: int, asked: Asked, rng: np.random.Generator) -> Table:
    """A row for each gate."""
    drawn = design.draw(design.pool, 0.0, rng)
    pool, number = alike(drawn)
    fallen = design.draw(N_FALLS * WEEK, design.fall, rng)
    n_nights = asked.years * NIGHTS
    if len(pool.value) > len(drawn.value) / 2:
        n_nights = min(n_nights, MOST_TESTS // groups)
    nights = number[rng.integers(0, len(number), (n_nights + 1, groups))]
    fixed = np.repeat(number[rng.integers(0, len(number), N_FALLS)], WEEK)  # the baseline of one fall is one night
    first = np.arange(N_FALLS * WEEK)
    level, half = 1 - asked.confidence, design.fall / 2
    for gate, limit in (("min at the truth", design.true), ("min below", design.true - half)):
        is_found = below(fallen, first, limit) * groups <= level  # of the fallen group alone
        yield row_of(design, gate, groups, fails(below(pool, nights[1:], limit), level), np.asarray(is_found))
    for gate, allowance in (("drop", 0.0), ("drop allowed", half)):
        quiet = fails(dropped(pool, nights[:-1], pool, nights[1:], allowance), level)
        p_first = dropped(pool, fixed, fallen, first, allowance)
        yield row_of(design, gate, groups, quiet, np.asarray(p_first * groups <= level))


def row_of(design: Design, gate: str, groups: int, quiet: Bools, is_found: Bools) -> Row:
    """A row of the table."""
    share = quiet.mean()
    of_group = 1 - (1 - share) ** (1 / groups)  # how often one group fails, which the pool tells
    of_pool = groups**2 * of_group * (1 - of_group) / design.pool
    error = np.sqrt(max(share * (1 - share), 1 / len(quiet)) / len(quiet) + of_pool)
    at_once, in_week = is_found[::WEEK].mean(), is_found.reshape(-1, WEEK).any(axis=1).mean()
    alarms = (f"{NIGHTS * share:.1f}", f"{NIGHTS * error:.1f}", f"{at_once:.2f}", f"{in_week:.2f}")
    return design.name, f"{design.true:.2f}", f"{design.fall:.2f}", gate, str(groups), *alarms


def whole(n_nights: int, confidence: float, rng: np.random.Generator) -> None:
    """Run nights without a change, and one in which a group has fallen, from files to published results."""
    gate = {"by": ["source"], "confidence": confidence}
    gates = [
        gate | {"name": "minimum", "metric": "precision", "threshold": 0.5, "min": PRECISION},
        gate | {"name": "drop", "metric": "average_precision", "max_drop": 0.0, "baseline": "previous"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        stage = {"kind": "threshold_sweep", "predictions": str(path), "by": ["source"], "thresholds": [0.3, 0.5, 0.7]}
        config = {"output": f"{folder}/results", "stages": [stage], "gates": gates}
        alarms = {"minimum": 0, "drop": 0}
        for night in range(n_nights + 1):
            night_of(rng, fall=0.0 if night < n_nights else 0.3).write_parquet(path)
            run = runner.run(parse_config(config, base=Path(folder)))
            failed = {str(row["gate"]) for row in run.gates if row["outcome"] == "failed"}
            if night < n_nights:
                alarms = {name: number + (name in failed) for name, number in alarms.items()}
        expected = (1 - confidence) * n_nights
        print(f"{n_nights} whole runs, 10 groups: {alarms} alarms, {expected:.1f} allowed each")
        print(f"the night of the fall: {sorted(failed) or 'nothing'} failed, exit {run.exit_code}")


PRECISION = 0.8  # of scores of 0.5 or more, by design


def night_of(rng: np.random.Generator, *, fall: float) -> pl.DataFrame:
    """Ten groups of 600 rows: a score from 0 to 1, and a label that is right with the precision above 0.5."""
    source = np.repeat(np.arange(10), 600)
    score = rng.random(len(source))
    share = np.where(score >= 0.5, PRECISION - fall * (source == 3), 0.2)
    return pl.DataFrame({"score": score, "label": rng.random(len(source)) < share, "source": source})


def main() -> None:
    """Measure and print."""
    asked = options(__doc__, None, years=40, confidence=0.95, whole=0)
    if asked.whole:
        whole(asked.whole, asked.confidence, np.random.default_rng(asked.seed))
        return
    title = f"{NIGHTS * (1 - asked.confidence):.2f} alarms a year are allowed"
    head = ("numbers", "true", "fall", "gate", "groups", "alarms", "±", "at once", "in 7")
    report(title, head, measure, designs(), asked)


if __name__ == "__main__":
    main()
