"""ranx on Parquet files of a ranking and its relevance: the script that a person would write.

    python benchmarks/ranx_peer.py RANKING RELEVANCE FOLDER

The measures of every query are those that the stage ranking gives too. FOLDER gets `ranx.parquet`, the average
precision of every query, and `ranx.json`, the seconds from reading the files to the last measure. numba compiles ranx
on first use, which takes most of a minute, and loads what it compiled in later processes, which takes seconds: a small
run does this before these seconds begin.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pandas as pd
from ranx import Qrels, Run, evaluate

CUTOFFS = (1, 5, 10, 100)
METRICS = ["map", "mrr", "r-precision", "bpref", *(f"{name}@{k}" for name in ("precision", "recall") for k in CUTOFFS)]
KEYS = {"q_id_col": "query_id", "doc_id_col": "doc_id"}


def measured(ranking: pd.DataFrame, relevance: pd.DataFrame) -> pd.DataFrame:
    """Every measure of every query."""
    texts = dict.fromkeys(KEYS.values(), object)  # ranx refuses the text type of pandas 3
    run = Run.from_df(ranking.astype(texts), **KEYS, score_col="score")
    qrels = Qrels.from_df(relevance.astype(texts), **KEYS, score_col="relevance")
    values = evaluate(qrels, run, METRICS, return_mean=False)
    return pd.DataFrame({"query_id": list(run.get_query_ids())} | values)


def warm_up() -> None:
    """Compile or load everything on 20 queries of 2 documents."""
    keys = {"query_id": [str(row // 2) for row in range(40)], "doc_id": [str(row % 2) for row in range(40)]}
    scores, labels = [row / 40 for row in range(40)], [row % 2 for row in range(40)]
    measured(pd.DataFrame(keys | {"score": scores}), pd.DataFrame(keys | {"relevance": labels}))


def main() -> None:
    """Read both files and take the measures of every query."""
    ranking, relevance, folder = (Path(word) for word in sys.argv[1:])
    warm_up()
    wall, cpu = time.perf_counter(), time.process_time()
    values = measured(pd.read_parquet(ranking), pd.read_parquet(relevance))
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    values[["query_id", "map"]].to_parquet(folder / "ranx.parquet", index=False)
    (folder / "ranx.json").write_text(json.dumps(took), encoding="utf-8")


if __name__ == "__main__":
    main()
