"""Rows to label, as a frame."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ThresherError
from ..runs.config import parse_config
from ..runs.sampling import SCORE, Wish, drawn_sheet
from .functions import as_rows, in_python

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from .functions import InputRows

_INPUTS = ("predictions", "pairs", "events", "articles", "predicted", "documents", "gold")
_UNREAD = {"entity_recognition": {"gold": "gold.parquet"}}  # inputs that a stage needs, and a draw does not read


def sample(
    stage: str = "threshold_sweep",
    *,
    size: int,
    by: str | Sequence[str] = SCORE,
    labelled: InputRows | None = None,
    columns: Sequence[str] = (),
    seed: int = 0,
    resources: Mapping[str, Any] | None = None,
    **keys: Any,  # noqa: ANN401 - inputs and parameters of the stage
) -> pl.DataFrame:
    """Draw rows to label, by strata of scores, so that few labels tell most.

    The first k rows are a sample of size k, so that people may stop early.

    Args:
        stage: What the rows are for: `threshold_sweep`: predictions to label; `before_after`: matches to check;
            `entity_recognition`: documents to judge whole.
        size: How many rows are drawn.
        by: `score`, and grouping columns: each group gets rows of its own.
        labelled: The frame or file of an earlier draw: this one goes on where that one ended.
        columns: Columns of the inputs that the sheet has besides, to look at.
        seed: Another seed draws other rows.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.
        keys: The inputs and parameters of the stage, as for its function: `predictions`, which need no labels; of
            `before_after` `pairs`, `events`, `articles`, `window`, `thresholds` and `audit`; of `entity_recognition`
            `predicted` and `documents`.

    Returns:
        The key of each row, `stratum`, `probability`, `score`, the empty column `label`, and the columns that were
        asked for, in the order in which rows are to be labelled. Documents have `n_predicted` and `judged` in the place
        of `score` and `label`.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    told = {name: as_rows("sample", name, value) if name in _INPUTS else value for name, value in keys.items()}
    told = _UNREAD.get(stage, {}) | told
    document = {"stages": [{"kind": stage, **told}]} | ({} if resources is None else {"resources": dict(resources)})
    before = None if labelled is None else as_rows("sample", "labelled", labelled)
    wish = Wish(size, (by,) if isinstance(by, str) else tuple(by), before, tuple(columns), seed)
    try:
        config = replace(parse_config(document, base=Path.cwd(), origin="thresher.sample"), output=Path())
        return drawn_sheet(config, "", wish, lambda text: warnings.warn(text, stacklevel=4))
    except ThresherError as error:
        error.remedy = error.remedy and in_python(error.remedy)
        raise
