"""Measured coverage and width of limits from few labels, in designs whose populations are known to the last row.

    python studies/few_labels.py [--datasets 300] [--draws 500] [--seed 1] [--only TEXT]…

Scores of false rows are N(0, 1), those of true rows N(shift, 1), handed over as the probabilities that they are if not
said otherwise. Each data set is a new sample, of a population that ten samples share; the truth is that of the
population. Thresholds are those at which recall is .9, .7, .5 and .3 on average. `recall`, `precision` and `f1` are
means over the four, `middle` is recall at .5, `ap` is average precision; `worst` is the lowest coverage of a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, held, options, report
from scipy.special import expit, logit, ndtri

from pipeline.metrics.few_labels.curve import Judge, estimated_curve
from pipeline.metrics.few_labels.draws import (
    Labelled,
    Population,
    allocation,
    further,
    places,
    strata_of_cells,
    worth_after_labels,
    worth_of_cells,
)

RECALLS = np.array([0.9, 0.7, 0.5, 0.3])
MIDDLE = 2
NAMES = ("recall", "precision", "f1", "ap")
SAMPLES = 10  # of one population


@dataclass(frozen=True)
class Setting:
    """A population, and how it is sampled and labelled."""

    name: str
    rows: int = 200_000
    share: float = 0.0068
    shift: float = 2.0
    labels: int = 1_000
    scores: str = "probabilities"
    proxy: str = ""
    strata: bool = True
    stop: int = 0
    batches: bool = False
    weights: bool = False
    documents: int = 0
    checked: int = 0

    def __str__(self) -> str:
        return self.name


SETTINGS = (
    Setting("simple random", strata=False),
    Setting("rare"),
    Setting("common", rows=20_000, share=0.3, labels=300),
    Setting("documents", rows=40_000, share=0.2, labels=1_000, strata=False, documents=4_000),
    Setting("weights", rows=50_000, share=0.05, labels=600, weights=True),
    Setting("empty strata", rows=100_000, share=0.01, shift=4.0, labels=500),
    Setting("useless proxy", proxy="useless"),
    Setting("good proxy", proxy="good"),
    Setting("perfect proxy", proxy="perfect"),
    Setting("judge", rows=50_000, share=0.2, labels=1_000, checked=400),
    Setting("no probabilities", scores="raw"),
    Setting("overconfident", scores="overconfident"),
    Setting("useless scores", rows=50_000, share=0.05, shift=0.0, labels=500, scores="raw"),
    Setting("ties", scores="ties"),
    Setting("thirty labels", rows=5_000, share=0.2, labels=30),
    Setting("stopped early", stop=437),
    Setting("two batches", batches=True),
)


@dataclass(frozen=True)
class Rows:
    """A population, in rising order of scores."""

    score: Floats
    label: Bools
    weight: Floats
    proxy: Floats | None
    document: Integers

    def true_numbers(self, thresholds: Floats) -> dict[str, Floats]:
        """What the sample is to find."""
        weight, true = self.weight, self.weight * self.label
        retrieved = self.score >= thresholds[:, None]
        n, tp, positives = retrieved @ weight, retrieved @ true, true.sum()
        ends = np.append(np.diff(self.score[::-1]) != 0, True)
        upto, above = np.cumsum(true[::-1])[ends], np.cumsum(weight[::-1])[ends]
        ap = (np.diff(upto, prepend=0) * upto / above).sum() / positives
        return {"recall": tp / positives, "precision": tp / n, "f1": 2 * tp / (n + positives), "ap": np.array([ap])}


def simulate(setting: Setting, random: np.random.Generator) -> Rows:
    """Draw a population."""
    document = random.integers(setting.documents, size=setting.rows) if setting.documents else np.arange(setting.rows)
    effect = random.standard_normal((2, setting.documents or 1))[:, document if setting.documents else 0]
    alike = 0.25 if setting.documents else 0.0
    share = expit(logit(setting.share) + 2 * np.sqrt(alike) * effect[0])
    label = random.random(setting.rows) < share
    seen = (
        random.standard_normal(setting.rows) * np.sqrt(1 - alike) + np.sqrt(alike) * effect[1] + setting.shift * label
    )
    score = scores(setting, seen)
    order = np.argsort(score, kind="stable")
    weight = random.lognormal(0, 0.8, setting.rows) if setting.weights else np.ones(setting.rows)
    proxy = None
    if setting.proxy:
        proxy = {
            "useless": random.random(setting.rows),
            "good": np.where(random.random(setting.rows) < np.where(label, 0.85, 0.998), label, ~label).astype(float),
            "perfect": label.astype(float),
        }[setting.proxy][order]
    return Rows(score[order], label[order], weight, proxy, document[order])


def scores(setting: Setting, seen: Floats) -> Floats:
    """The scores of what is seen."""
    if setting.scores == "raw":
        return 300 + 70 * seen
    right = logit(setting.share) + setting.shift * seen - setting.shift**2 / 2
    if setting.scores == "ties":
        right = np.round(right)
    return np.asarray(expit(2 * right if setting.scores == "overconfident" else right))


def sampled(setting: Setting, rows: Rows, random: np.random.Generator) -> tuple[Integers, Integers]:
    """Strata of all rows, and indices of the labelled ones."""
    cell, number = np.unique(rows.score, return_counts=True)
    worth = worth_of_cells(cell, number)
    of_cells = strata_of_cells(worth, setting.labels)
    stratum = np.repeat(of_cells, number)
    if setting.documents:
        chosen = random.permutation(setting.documents)[: setting.labels * setting.documents // setting.rows]
        return stratum, np.flatnonzero(np.isin(rows.document, chosen))
    if not setting.strata:
        return stratum, random.choice(setting.rows, setting.labels, replace=False)
    sizes = np.bincount(stratum)
    rank = np.empty(setting.rows, dtype=np.int64)
    for index, size in enumerate(sizes):
        rank[stratum == index] = random.permutation(size)
    first = setting.labels * 3 // 10 if setting.batches else setting.labels
    of_strata = np.bincount(of_cells, worth).astype(np.float64)
    numbers = allocation(of_strata, sizes, first)
    drawn = np.flatnonzero(rank < numbers[stratum])
    if setting.batches:
        trues = np.bincount(stratum[drawn], rows.label[drawn], len(sizes)).astype(np.int64)
        of_strata = worth_after_labels(of_strata, sizes, numbers, trues)
        numbers = numbers + further(of_strata, sizes, numbers, setting.labels - first)
        drawn = np.flatnonzero(rank < numbers[stratum])
    order = np.argsort(places(stratum[drawn], rank[drawn], numbers), kind="stable")
    return stratum, drawn[order][: setting.stop or None]


def measured(setting: Setting, rows: Rows, random: np.random.Generator, draws: int) -> dict[str, Floats]:
    """By number, whether the limits of a sample hold the truth; and how wide they are."""
    thresholds = scores(setting, setting.shift - ndtri(RECALLS))
    stratum, drawn = sampled(setting, rows, random)
    cuts = np.unique(np.concatenate([thresholds, rows.score[drawn]]))[::-1]
    judged, judge = judged_labels(setting, rows.label[drawn], random)
    population = Population(
        cuts,
        retrieved(rows, stratum, cuts, rows.weight),
        np.bincount(stratum, rows.weight).astype(np.float64),
        np.bincount(stratum).astype(np.float64) if setting.weights else None,
        None if rows.proxy is None else retrieved(rows, stratum, cuts, rows.proxy),
        None if rows.proxy is None else np.bincount(stratum, rows.proxy).astype(np.float64),
    )
    labelled = Labelled(
        stratum[drawn],
        rows.score[drawn],
        judged,
        rows.weight[drawn],
        None if rows.proxy is None else rows.proxy[drawn],
        rows.document[drawn] if setting.documents else None,
    )
    wanted, seed = np.searchsorted(-cuts, -thresholds), int(random.integers(2**31))
    curve = estimated_curve(population, labelled, wanted=wanted, judge=judge, draws=draws, seed=seed)
    limited = {name: curve.at[name] for name in NAMES[:3]} | {"ap": curve.areas["average_precision"]}
    true = rows.true_numbers(thresholds)
    holds = {name: held((limits.lower, limits.upper), true[name], 1e-12) for name, limits in limited.items()}
    return holds | {f"{name} width": np.atleast_1d(limits.upper - limits.lower) for name, limits in limited.items()}


def retrieved(rows: Rows, stratum: Integers, cuts: Floats, values: Floats) -> Floats:
    """Sums of values over the rows of each stratum that each cut retrieves, shape (H, K)."""
    sums = []
    for index in range(stratum.max() + 1):
        members = stratum == index
        running = np.append(np.cumsum(values[members][::-1])[::-1], 0.0)
        sums.append(running[np.searchsorted(rows.score[members], cuts, side="left")])
    return np.array(sums)


def judged_labels(setting: Setting, label: Bools, random: np.random.Generator) -> tuple[Bools, Judge | None]:
    """Labels, with 5 % errors if they are a judge's, and what people found of the judge among them."""
    if not setting.checked:
        return label, None
    said = label ^ (random.random(len(label)) < 0.05)
    checked = random.choice(len(label), setting.checked, replace=False)
    pairs = np.bincount(2 * label[checked] + said[checked], minlength=4).astype(float)
    return said, Judge(pairs[3], pairs[2], pairs[0], pairs[1])


def measure(setting: Setting, asked: Asked) -> Table:
    """A row of the table."""
    random, tally = np.random.default_rng(asked.seed), Tally()
    for number in range(asked.datasets):
        if number % SAMPLES == 0:
            rows = simulate(setting, random)
        tally.add(measured(setting, rows, random, asked.draws))
    means = {name: (tally.mean(name), tally.mean(f"{name} width")) for name in NAMES}
    cells = {name: " ".join(f"{mean.mean():.3f}" for mean in pair) for name, pair in means.items()}
    middle = " ".join(f"{mean[MIDDLE]:.3f}" for mean in means["recall"])
    worst = min(float(holds.min()) for holds, _ in means.values())
    yield setting.name, cells.pop("recall"), middle, *cells.values(), worst


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 300, draws=500)
    title = f"{asked.datasets} data sets, {asked.draws} draws: coverage and mean width of 95 % limits"
    report(title, ("design", "recall", "middle", *NAMES[1:], "worst"), measure, SETTINGS, asked)


if __name__ == "__main__":
    main()
