"""Measured coverage of the intervals of differences, and error rates of the tests, on taggers with known differences.

    python studies/error_rates_of_tests.py [--datasets 2000] [--confidence 0.95] [--seed 1]

The taggers are those of the demo. Coverage is of the interval of the difference between the first two, which differ.
Error rates are shares of data sets in which a test calls the last two different, which are equally good: p-values up to
1 - confidence, and a posterior probability that far from 1/2. Power is the same share for the first two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import Asked, Table, Tally, options, report

from pipeline.stages.compare.contract import CompareParameters
from pipeline.stages.compare.stage import derive
from pipeline.stages.simulations.compare import TAGGERS, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

SIZES = (20, 50, 200)
TESTS = ("paired_t", "wilcoxon", "sign", "randomization", "bayes")


def tables(documents: int, seed: int, params: CompareParameters) -> dict[str, pl.DataFrame]:
    """The tables of the stage on one data set."""
    frame = simulate(seed=seed, documents=documents)
    names = {"doc_id": "unit", "tagger": "system", "overlap": "metric:overlap"}
    units = frame.rename(names | {name: f"count:{name}" for name in ("tp", "fp", "fn")})
    return derive(params, {"units": units})


def outcomes(results: dict[str, pl.DataFrame], level: float) -> Iterator[tuple[str, bool]]:
    """What is so or not in one data set, by kind, metric and test."""
    truth = {tagger.name: tagger.truth() for tagger in TAGGERS}
    kinds = {("lexicon", "neural"): "power", ("neural", "retrained"): "error"}
    for name in ("compare_tests", "compare_posteriors"):
        for row in results[name].iter_rows(named=True):
            kind, metric = kinds.get((row["system_a"], row["system_b"])), row["metric"]
            if kind is None:
                continue
            if name == "compare_posteriors":
                yield f"{kind} | {metric}, bayes", abs(row["probability_a_better"] - 0.5) >= (1 - level) / 2
                continue
            yield f"{kind} | {metric}, {row['test']}", row["p_value"] <= level
            if kind == "power" and row["test"] == "randomization":
                true = truth[row["system_a"]][metric] - truth[row["system_b"]][metric]
                yield f"coverage | {metric}", row["difference_lower"] <= true <= row["difference_upper"]


def measure(documents: int, asked: Asked) -> Table:
    """A row for each kind, metric and test."""
    settings = {"units": "-", "tests": TESTS, "resamples": 999, "confidence": asked.confidence}
    params, tally = CompareParameters.model_validate({"name": "compare"} | settings), Tally()
    for number in range(asked.datasets):
        results = tables(documents, asked.seed * 1_000_000 + number, params)
        for name, is_so in outcomes(results, 1 - asked.confidence):
            tally.add({name: is_so})
    for name in sorted(tally):
        yield f"{documents} | {name}", float(tally.mean(name))


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 2000, confidence=0.95)
    report(f"{asked.datasets} data sets", ("documents", "share", "metric and test", ""), measure, SIZES, asked)


if __name__ == "__main__":
    main()
