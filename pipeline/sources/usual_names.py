"""What columns are usually called by other programs, to propose bindings. Nothing is bound by these names alone."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from .inputs import InputContract, Kind

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "score": ("similarity", "sim", "weight", "prob", "probability", "proba", "confidence", "p", "pred", "prediction"),
    "label": ("y_true", "y", "truth", "target", "gold", "is_match", "is_true", "correct", "positive"),
    "weight": ("sample_weight", "w"),
    "id": ("item_id", "row_id", "example_id"),
    "event_id": ("event", "from", "x", "from_id"),
    "article_id": ("article", "to", "y", "to_id", "doc_id"),
    "lag_hours": ("hourdiff", "hour_diff", "lag", "hours"),
    "lag_days": ("daydiff", "day_diff", "days"),
    "event_time": ("event_date", "from_date", "date", "time", "timestamp"),
    "article_time": ("article_date", "to_date", "date", "published", "published_at", "time", "timestamp"),
    "n_before": ("before",),
    "n_after": ("after",),
    "is_match": ("match", "label", "verdict"),
    "query_id": ("qid", "query", "topic", "topic_id"),
    "doc_id": ("docno", "doc", "document", "document_id", "docid", "pid", "file"),
    "rank": ("position",),
    "relevance": ("rel", "qrel", "label", "grade", "judgment", "judgement"),
    "start": ("begin", "start_char", "offset", "start_offset", "begin_offset"),
    "end": ("stop", "end_char", "end_offset"),
    "text": ("mention", "surface", "span", "toponym", "entity"),
    "type": ("label", "entity_type", "tag", "class"),
    "mention_id": ("id", "toponym_id", "mention"),
    "latitude": ("lat", "y"),
    "longitude": ("lon", "lng", "long", "x"),
    "series_id": ("series", "dataset", "name", "ts_id"),
    "position": ("changepoint", "change_point", "index", "location", "loc", "cp", "t", "time"),
    "annotator_id": ("annotator", "coder", "user", "rater"),
    "n_obs": ("n", "length", "n_observations"),
    "unit": ("unit_id", "document", "doc_id", "query_id", "id"),
    "system": ("model", "method", "run", "tagger", "name"),
}
SYSTEMS = {"system", "model", "method", "run", "tagger", "classifier", "algorithm", "matcher"} | {
    *("dataset", "data_set", "corpus", "benchmark"),
}
SAME, SAME_IN_LOWER_CASE, USUAL, ALIKE = 4.0, 3.0, 2.0, 1.0
NAMED = 3.0
LEAST_ALIKE = 0.75


def proposed(
    contract: InputContract, schema: pa.Schema, *, can_be: Callable[[str, Kind], bool], called: Mapping[str, str]
) -> dict[str, tuple[str, float]]:
    """Propose which columns are the fields of an input: by field, the column and how well it fits, highest first taken.

    Args:
        contract: The input.
        schema: Columns of a file.
        can_be: Whether a column can be read as what a field expects.
        called: What columns are called for what they hold, where their names do not say so; empty: they fit no field.
    """
    likenesses = (
        (-_likeness(field.name, called.get(column.name, column.name), number), order, number, field.name, column.name)
        for order, field in enumerate(contract.fields)
        for number, column in enumerate(schema)
    )
    kinds = {field.name: field.kind for field in contract.fields}
    candidates = sorted(each for each in likenesses if each[0] < 0 and can_be(each[4], kinds[each[3]]))
    fields: dict[str, tuple[str, float]] = {}
    for negative, _, _, field_name, column_name in candidates:
        taken = {column for column, _ in fields.values()}
        if field_name not in fields and column_name not in taken:
            fields[field_name] = column_name, -negative
    return fields


def _lowered(column: str) -> str:
    return column.lower().replace(" ", "_").replace(".", "_").replace("-", "_")


def _likeness(field: str, column: str, number: int) -> float:
    """How well a name fits a field: above 0 if it fits at all; of equals, the one that is first among usual names."""
    if field == column:
        return SAME
    lowered = _lowered(column)
    if field == lowered:
        return SAME_IN_LOWER_CASE
    usual = USUAL_NAMES.get(field, ())
    if lowered in usual:
        return USUAL - usual.index(lowered) / 100
    alike = SequenceMatcher(None, field, lowered).ratio()
    return ALIKE * alike - number / 1e6 if alike >= LEAST_ALIKE else 0.0


def fit(contract: InputContract, fields: Mapping[str, tuple[str, float]], file_name: str) -> float:
    """How well a file fits an input as a whole: 0 if a required field finds no column.

    Args:
        contract: The input.
        fields: The columns proposed for its fields.
        file_name: Name of the file, which may be that of the input.
    """
    if any(field.name not in fields for field in contract.fields if field.required):
        return 0.0
    unmatched = len(contract.fields) - len(fields)
    named = NAMED if contract.name in file_name.lower() else 0.0
    return sum(likeness for _, likeness in fields.values()) + named - unmatched / 100


def is_usual_id(column: str) -> bool:
    """Whether a column is called as one that names what a row is about: `id`, `uuid`, `key`, `…_id`."""
    lowered = _lowered(column)
    return lowered in {"id", "uuid", "guid", "key", *USUAL_NAMES["id"]} or lowered.endswith(("_id", "_uuid", "_key"))


def is_usual_name(field: str, column: str) -> bool:
    """Whether a column is called as one that is usual for a field."""
    return _lowered(column) in {field, *USUAL_NAMES[field]}


def is_usual_system(column: str) -> bool:
    """Whether a column is called as one that names systems or data sets."""
    return _lowered(column) in SYSTEMS
