"""An explanation as JSON: everything in it, numbers at full precision."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from .evidence import ShownSection
    from .explaining import Explanation
    from .profiles import Compared

_AS_THEY_ARE = (
    "run",
    "published_at",
    "stage",
    "kind",
    "metric",
    "group",
    "threshold",
    "value",
    "lower",
    "upper",
    "meaning",
)


def json_of(explanation: Explanation) -> str:
    """Return an explanation as one JSON object."""
    steps = [{"name": step.name, "formula": step.formula, "value": step.value} for step in explanation.steps]
    facts = {name: getattr(explanation, name) for name in _AS_THEY_ARE}
    facts |= {"undefined": explanation.undefined or None, "interval": explanation.interval or None, "steps": steps}
    facts |= {"parameters": dict(explanation.parameters), "inputs": list(explanation.inputs)}
    facts |= {"bindings": dict(explanation.bindings), "notes": list(explanation.notes)}
    facts |= {"warnings": list(explanation.warnings), "sections": list(map(_section, explanation.sections))}
    facts |= {"sql": explanation.sql} if explanation.sql else {}
    facts |= {"profile": _compared(explanation.compared)} if explanation.compared is not None else {}
    return f"{json.dumps(facts, ensure_ascii=False, default=str, indent=2)}\n"


def _section(section: ShownSection) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "sentence": section.sentence,
        "absent": section.absent or None,
        "n_rows": section.n_rows,
        "rows": section.rows.with_columns(_finite(section.rows)).to_dicts(),
    }


def _finite(rows: pl.DataFrame) -> list[pl.Expr]:
    """The columns of floating numbers without NaN and infinity, which JSON does not know: they are null."""
    columns = (pl.col(name) for name, dtype in rows.schema.items() if dtype.is_float())
    return [pl.when(column.is_finite()).then(column) for column in columns]


def _compared(compared: Compared) -> dict[str, Any]:
    """The number of a tool."""
    names = ("tool", "name", "ours", "theirs", "exactly")
    effects = [dataclasses.asdict(effect) for effect in compared.effects]
    return {name: getattr(compared, name) for name in names} | {
        "refused": compared.refused or None,
        "conventions": effects,
    }
