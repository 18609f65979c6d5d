"""nervaluate on Parquet files of mentions: the script that a person would write.

python benchmarks/nervaluate_peer.py FOLDER
"""

from __future__ import annotations

import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def main() -> None:
    """Read both files, put the mentions into lists of documents, and evaluate."""
    from nervaluate import Evaluator  # type: ignore[import-not-found]  # noqa: PLC0415 - a peer that may be missing

    gold, predicted = (_documents(Path(sys.argv[1]) / f"{name}.parquet") for name in ("gold", "predicted"))
    print(Evaluator(gold, predicted, tags=["LOC", "ORG", "PER"]).evaluate())


def _documents(path: Path) -> list[list[dict[str, Any]]]:
    rows = pq.read_table(path, columns=["doc_id", "start", "end", "type"]).to_pylist()
    return [
        [{"label": row["type"], "start": row["start"], "end": row["end"]} for row in part]
        for _, part in groupby(sorted(rows, key=itemgetter("doc_id")), itemgetter("doc_id"))
    ]


if __name__ == "__main__":
    main()
