"""A loop over series with the metric of ruptures: the script that a person would write.

python benchmarks/ruptures_peer.py ANNOTATIONS PREDICTIONS N_SERIES MARGIN
"""

from __future__ import annotations

import sys

import polars as pl
from made_points import LENGTH
from ruptures.metrics import precision_recall


def main() -> None:
    """Precision and recall of every series, one after the other, all predictions together."""
    marks, found, count, margin = sys.argv[1:]
    sides = []
    for path in (marks, found):
        rows = pl.scan_parquet(path).filter(pl.col("series_id") < int(count), pl.col("position") < LENGTH).collect()
        sides.append(
            rows.group_by("series_id").agg(pl.col("position").unique().sort()).sort("series_id")["position"].to_list()
        )
    total = [
        precision_recall([*true, LENGTH], [*predicted, LENGTH], int(margin))
        for true, predicted in zip(*sides, strict=True)
    ]
    print(sum(precision for precision, _ in total) / len(total))


if __name__ == "__main__":
    main()
