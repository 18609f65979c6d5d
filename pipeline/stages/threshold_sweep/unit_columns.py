"""Columns of the table threshold_sweep_units."""

from __future__ import annotations

from ...tables.schemas import Column, Table

TABLE = "threshold_sweep_units"
CELLS = ("tp", "fp", "fn", "tn")
CONFUSION = (*CELLS, *(f"{name}_weight" for name in CELLS))

_NO_THRESHOLD = "NULL: no threshold was chosen"
_WORDS = {
    "tp": "rows with a true label that the threshold retrieves",
    "fp": "retrieved rows with a false label",
    "fn": "other rows with a true label",
    "tn": "other rows with a false label",
}


def _contribution(area: str, never: str) -> Column:
    return Column(
        area,
        "DOUBLE",
        f"its [contribution](methods/threshold_sweep.md#units) to `{area}`, whose mean over the units is the area; "
        f"NULL: {never}, no weight, or a single unit with positives or with negatives",
        nullable=True,
    )


COLUMNS = (
    Column("unit", "KEY", "the value of the (first) cluster column, else the id"),
    Column("n", "BIGINT", "rows of the unit"),
    Column("n_positive", "BIGINT", "of these, rows with a true label"),
    Column("weight", "DOUBLE", "weight of its rows; NULL: no weights", nullable=True),
    Column("weight_positive", "DOUBLE", "weight of its rows with a true label; NULL: no weights", nullable=True),
    Column(
        "threshold",
        "DOUBLE",
        "the threshold of its group: that of the first operating point that has one; NULL: none was chosen",
        nullable=True,
    ),
    *(Column(name, "BIGINT", f"{words}; {_NO_THRESHOLD}", nullable=True) for name, words in _WORDS.items()),
    *(
        Column(f"{name}_weight", "DOUBLE", f"weight of the {name}; {_NO_THRESHOLD}, or no weights", nullable=True)
        for name in CELLS
    ),
    _contribution("average_precision", "no positive"),
    _contribution("pr_auc", "no positive"),
    _contribution("roc_auc", "no positive or no negative"),
)
UNITS = Table(TABLE, "one row per group and unit", COLUMNS, ("unit",))
COST = Column(
    "cost_per_row",
    "DOUBLE",
    "its [contribution](methods/threshold_sweep.md#units) to the cost per row at the threshold, whose mean over the "
    "units is that cost; NULL: the threshold was not chosen for a cost, no weight, or a single unit",
    nullable=True,
)
