"""nervaluate on Parquet files of mentions: the script that a person would write.

python benchmarks/nervaluate_peer.py FOLDER COUNTS.json
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from made_mentions import TYPES


def main() -> None:
    """Read both files, put the mentions into lists of documents, evaluate, and write the strict counts."""
    from nervaluate import Evaluator  # type: ignore[import-not-found]  # noqa: PLC0415 - a peer that may be missing

    folder, output = map(Path, sys.argv[1:])
    gold, predicted = (_documents(folder / f"{name}.parquet") for name in ("gold", "predicted"))
    documents = sorted(gold.keys() | predicted.keys())
    sides = [[side.get(document, []) for document in documents] for side in (gold, predicted)]
    strict = Evaluator(*sides, tags=list(TYPES), loader="dict").evaluate()["overall"]["strict"]
    confusion = {"tp": strict.correct, "fp": strict.actual - strict.correct, "fn": strict.possible - strict.correct}
    output.write_text(json.dumps(confusion), encoding="utf-8")


def _documents(path: Path) -> dict[int, list[dict[str, Any]]]:
    names = ["doc_id", "start", "end", "type"]
    table = pq.read_table(path, columns=names)
    documents = defaultdict(list)
    for document, start, end, label in zip(*(table[name].to_pylist() for name in names), strict=True):
        documents[document].append({"label": label, "start": start, "end": end})
    return documents


if __name__ == "__main__":
    main()
