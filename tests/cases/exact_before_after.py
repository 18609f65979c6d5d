"""The ratios of the expected tables of before_after, by exact fractions (`tests/reference_estimates.py`).

The counts in `expected/` were counted by hand from the inputs of each case. Everything that follows from them is
computed here without thresher; after a change of the columns, write the tables anew, from the folder `tests`:

    python -m cases.exact_before_after
"""

from __future__ import annotations

import csv
import io
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference_estimates import Row, chosen_by, reaches, reference_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reference_estimates import Ratios

FOLDER = Path(__file__).parent / "before_after"
ESTIMATES, POINTS = "before_after_estimates.csv", "before_after_operating_points.csv"
COUNTS = ("n_before", "n_after", "m_before", "m_after")
NAMES = ("fp", "tp", "precision", "recall", "recall_raw", "f1")
RATIOS = ("fpr", *NAMES, *(f"{name}_uncorrected" for name in NAMES), "is_reference", "undefined")
Cells = dict[str, str]
Group = list[tuple[Cells, Row, "Ratios"]]


def tables(folder: Path) -> dict[str, str]:
    """The expected estimates and operating points of a case as CSV, by the name of the file."""
    stage = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["stages"][0]
    header, cells = _read(folder / "expected" / ESTIMATES)
    labels = header[: header.index("threshold")]
    groups = _groups(cells, labels, stage.get("recall_reference", {}))
    lines = [of_row | _texts(ratios) for group in groups.values() for of_row, _, ratios in group]
    written = {ESTIMATES: _csv([*labels, "threshold", *COUNTS, *RATIOS], lines)}
    path = folder / "expected" / POINTS
    if path.exists():
        names, points = _read(path)
        chosen = [_point(point, groups[_label(point, labels[1:])]) for point in points]
        written[POINTS] = _csv(names, [{name: line.get(name, "") for name in names} for line in chosen])
    return written


def _groups(cells: Sequence[Cells], labels: Sequence[str], reference: dict[str, Any]) -> dict[tuple[str, ...], Group]:
    """The rows of every group with their ratios, in the order of the table."""
    by_label: dict[tuple[str, ...], list[tuple[Cells, Row]]] = {}
    for line in cells:
        counts = [int(line[name]) for name in COUNTS]
        row = Row(None, float(line["threshold"]), *counts)
        by_label.setdefault(_label(line, labels[1:]), []).append((line, row))
    minimum = Fraction(str(reference.get("min_precision", "0.05")))
    ends = reference.get("recall", 1)
    recalls = [Fraction(str(end)) for end in (ends if isinstance(ends, list) else [ends])]
    recall = sum(recalls, Fraction(0)) / len(recalls)  # of a range the middle
    groups = {}
    for label, members in by_label.items():
        rows = [row for _, row in members]
        at = reference_of(rows, reference.get("rule", "lowest"), minimum, reference.get("threshold"))
        groups[label] = [(line, row, row.expected(at, recall)) for line, row in members]
    return groups


def _label(line: Cells, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(line[name] for name in labels)


def _point(point: Cells, group: Group) -> Cells:
    """The row that a criterion chooses, by exact fractions."""
    kind, _, least = point["criterion"].partition("=")
    rows = [(row, ratios) for _, row, ratios in group]
    chosen = {
        "max_f1": lambda: chosen_by(rows, lambda _: True, "f1"),
        "min_precision": lambda: chosen_by(rows, reaches("precision", Fraction(least)), "recall"),
        "min_recall": lambda: chosen_by(rows, reaches("recall", Fraction(least)), "precision"),
        "recall_reference": lambda: next((each for each in rows if each[1]["is_reference"]), None),
    }[kind]()
    label = {name: text for name, text in point.items() if name not in {"threshold", "undefined", *COUNTS, *RATIOS}}
    if chosen is None:
        return label | {"undefined": "not_reached"}
    line = next(line for line, row, _ in group if row == chosen[0])
    return label | {name: line[name] for name in ("threshold", *COUNTS)} | _texts(chosen[1])


def _texts(ratios: Ratios) -> Cells:
    return {name: _text(ratios[name]) for name in RATIOS}


def _text(value: Fraction | str | bool | None) -> str:  # noqa: FBT001 - a cell
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _read(path: Path) -> tuple[list[str], list[Cells]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = (row for row in csv.reader(file) if row)
    return header, [dict(zip(header, row, strict=True)) for row in rows]


def _csv(names: Sequence[str], lines: Sequence[Cells]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([line[name] for name in names] for line in lines)
    return text.getvalue()


def folders() -> list[Path]:
    """The cases, in order."""
    return sorted(path.parent for path in FOLDER.glob("*/config.toml"))


if __name__ == "__main__":
    for folder in folders():
        for name, text in tables(folder).items():
            (folder / "expected" / name).write_text(text, encoding="utf-8")
