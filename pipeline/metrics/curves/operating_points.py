"""Thresholds chosen by a criterion: best F-beta, highest recall at a precision, or highest precision at a recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.metrics.uncertainty.limits import of_chosen
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

CRITERION = "criterion"
NOT_REACHED, NOT_PROMISED = "not_reached", "not_promised"
MAX_DECIMALS = 9
MAX_BETA = 1e6  # above, F-beta is practically recall


class Criterion(BaseModel):
    """What a threshold is chosen for: exactly one of `min_precision`, `min_recall` and `beta`.

    Attributes:
        min_precision: Highest recall among the thresholds with at least this precision.
        confidence: Goes with `min_precision` and `min_recall`: the ratio is at least that high on new data with this
            confidence, even though the threshold is chosen after looking at all of them.
        min_recall: Highest precision among the thresholds with at least this recall.
        beta: Highest F-beta, for beta up to 1,000,000.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_precision: Annotated[float, Field(ge=0, le=1)] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    min_recall: Annotated[float, Field(ge=0, le=1)] | None = None
    beta: Annotated[float, Field(gt=0, le=MAX_BETA)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Criterion:
        if sum(value is not None for value in (self.min_precision, self.min_recall, self.beta)) != 1:
            message = "an operating point has exactly one of min_precision, min_recall and beta"
            raise ValueError(message)
        if self.confidence is not None and self.beta is not None:
            message = "confidence goes with min_precision or min_recall: a best F-beta keeps no minimum"
            raise ValueError(message)
        if self.min_precision is not None and round(self.min_precision, MAX_DECIMALS) != self.min_precision:
            message = f"min_precision has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        return self

    @property
    def text(self) -> str:
        """Text of the column `criterion`."""
        if self.beta is not None:
            short = f"{self.beta:g}"
            return f"max_f{short if float(short) == self.beta else repr(self.beta)}"
        name, value = (
            ("min_precision", self.min_precision) if self.min_recall is None else ("min_recall", self.min_recall)
        )
        return f"{name}={value!r}" if self.confidence is None else f"{name}={value!r},confidence={self.confidence!r}"


def each_once(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """The criteria, if there is one and none is given twice; else a ValueError that says so."""
    texts = [criterion.text for criterion in criteria]
    if not criteria or len(set(texts)) < len(texts):
        message = f"give each criterion once, and at least one: {', '.join(texts) or 'none is given'}"
        raise ValueError(message)
    return criteria


def pick(
    curve: pl.DataFrame,
    keys: Sequence[str],
    *,
    criterion: str,
    among: pl.Expr,
    best: pl.Expr,
    otherwise: str = NOT_REACHED,
    is_given: bool = False,
) -> pl.DataFrame:
    """The best row of every group; of several best rows, the one with the lowest threshold.

    Args:
        curve: One row per group × threshold.
        keys: Columns that identify a group.
        criterion: Text of the column `criterion`.
        among: Which rows are eligible; NULL counts as not eligible.
        best: What is maximised; rows in which it is NULL are never chosen.
        otherwise: What `undefined` says of a group in which no row is eligible.
        is_given: Whether the threshold was given, so that nothing was chosen.

    Returns:
        One row per group with the columns of the curve and `criterion`. A group in which no row is eligible keeps its
        row, with NULL in every column but these and `undefined`. Without a confidence in the criterion the quality of
        intervals says that the threshold was chosen on the same data.
    """
    eligible = curve.with_columns(best.alias("_best")).filter(
        among.fill_null(value=False), pl.col("_best").is_not_null()
    )
    chosen = eligible.sort(["_best", THRESHOLD], descending=[True, False]).unique(
        subset=list(keys), keep="first", maintain_order=True
    )
    groups = curve.select(keys).unique()
    rows = groups.join(chosen.drop("_best"), on=list(keys), how="left", nulls_equal=True)
    missing = pl.col(THRESHOLD).is_null()
    reason = pl.when(missing).then(pl.lit(otherwise)).otherwise(pl.col("undefined"))
    points = rows.with_columns(reason.alias("undefined"), pl.lit(criterion).alias(CRITERION))
    return points if is_given or "confidence=" in criterion else of_chosen(points)
