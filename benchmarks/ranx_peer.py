"""ranx on Parquet files of a ranking and its relevance: the script that a person would write.

python benchmarks/ranx_peer.py RANKING RELEVANCE
"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from ranx import Qrels, Run, evaluate

METRICS = ["map", "mrr", "r-precision", "bpref", *(f"{name}@{k}" for name in ("precision", "recall") for k in (1, 10))]


def main() -> None:
    """Read both files and take the measures of every query."""
    ranking, relevance = (pq.read_table(path).to_pandas() for path in sys.argv[1:])
    keys = {"q_id_col": "query_id", "doc_id_col": "doc_id"}
    run = Run.from_df(ranking, **keys, score_col="score")
    print(evaluate(Qrels.from_df(relevance, **keys, score_col="relevance"), run, METRICS))


if __name__ == "__main__":
    main()
