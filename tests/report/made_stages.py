"""Stages of published runs that are made of a few rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.report.published import PublishedStage
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np


def stage_of(kind: str, tables: Mapping[str, pl.DataFrame], **facts: Any) -> PublishedStage:  # noqa: ANN401
    entry = find_stage(kind)
    assert entry is not None
    stage = PublishedStage(
        name="s",
        stage=entry.load(),
        parameters={"name": "s", "confidence": 0.95},
        groupings=((),),
        tables=tables,
        omitted={},
        warnings=(),
        seconds=0.0,
        accounts={},
    )
    return replace(stage, **facts)


def queries(values: np.ndarray, first: int = 0, group: str | None = None) -> pl.DataFrame:
    """A table ranking_queries with three measures."""
    columns = ("average_precision", "r_precision", "reciprocal_rank")
    return pl.DataFrame(
        {
            "grouping": ["system" if group else "all"] * len(values),
            "by:system": [group] * len(values),
            "query_id": range(first, first + len(values)),
            **{name: values[:, number] for number, name in enumerate(columns)},
        },
        schema_overrides={"by:system": pl.String},
    )


def documents(counts: np.ndarray) -> pl.DataFrame:
    """A table entity_recognition_documents."""
    frame = pl.DataFrame(counts, schema=["tp", "fp", "fn"], orient="row").cast(pl.Int64)
    names = pl.Series([f"d{number}" for number in range(len(counts))])
    return frame.select(pl.lit("all").alias("grouping"), names.alias("doc_id"), "tp", "fp", "fn")
