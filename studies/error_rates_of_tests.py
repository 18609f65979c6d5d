"""Measured coverage of the intervals of differences, and error rates of the tests, on taggers with known differences.

    python studies/error_rates_of_tests.py [--datasets 2000] [--confidence 0.95] [--seed 1]

The taggers are those of the demo. Coverage is of the interval of the difference between the first two, which differ.
Error rates are shares of data sets in which a test calls the last two different, which are equally good: p-values up to
1 - confidence, and a posterior probability that far from 1/2. Power is the same share for the first two.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from pipeline.simulations.compare import TAGGERS, simulate
from pipeline.stages.compare.contract import CompareParameters
from pipeline.stages.compare.stage import derive

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


def outcomes(results: dict[str, pl.DataFrame], level: float) -> Iterator[tuple[str, str, float]]:
    """(what, metric and test, 1 if so) of one data set."""
    truth = {tagger.name: tagger.truth() for tagger in TAGGERS}
    kinds = {("lexicon", "neural"): "power", ("neural", "retrained"): "error"}
    for row in results["compare_tests"].iter_rows(named=True):
        kind = kinds.get((row["system_a"], row["system_b"]))
        if kind is None:
            continue
        yield kind, f"{row['metric']}, {row['test']}", float(row["p_value"] <= level)
        if kind == "power" and row["test"] == "randomization":
            metric = row["metric"]
            true = truth[row["system_a"]][metric] - truth[row["system_b"]][metric]
            yield "coverage", metric, float(row["difference_lower"] <= true <= row["difference_upper"])
    for row in results["compare_posteriors"].iter_rows(named=True):
        kind = kinds.get((row["system_a"], row["system_b"]))
        if kind is not None:
            far = abs(row["probability_a_better"] - 0.5) >= (1 - level) / 2
            yield kind, f"{row['metric']}, bayes", float(far)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    settings = {"units": "-", "tests": TESTS, "resamples": 999, "confidence": asked.confidence}
    params = CompareParameters.model_validate({"name": "compare"} | settings)
    for documents in SIZES:
        collected: dict[tuple[str, str], list[float]] = defaultdict(list)
        for number in range(asked.datasets):
            results = tables(documents, asked.seed * 1_000_000 + number, params)
            for what, name, so in outcomes(results, 1 - asked.confidence):
                collected[what, name].append(so)
        print(f"\n{documents} documents, {asked.datasets} data sets")
        for (what, name), values in sorted(collected.items()):
            print(f"  {what:<10}{name:<34}{np.mean(values):8.3f}")


if __name__ == "__main__":
    main()
