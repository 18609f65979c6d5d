"""scikit-learn on a Parquet file of predictions: the script that a person would write.

python benchmarks/sklearn_peer.py FILE average_precision_score|precision_recall_curve…
"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from sklearn import metrics


def main() -> None:
    """Read the columns and call the functions."""
    path, *names = sys.argv[1:]
    table = pq.read_table(path, columns=["label", "score"])
    labels, scores = table["label"].to_numpy(), table["score"].to_numpy()
    for name in names:
        print(getattr(metrics, name)(labels, scores))


if __name__ == "__main__":
    main()
