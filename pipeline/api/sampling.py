"""Rows to label, as a frame."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ThresherError
from ..runs.config import parse_config
from ..runs.sampling import SCORE, Wish, drawn_sheet
from .functions import as_rows, in_python

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import polars as pl

    from .functions import InputRows


def sample(
    *,
    predictions: InputRows,
    size: int,
    by: str | Sequence[str] = SCORE,
    labelled: InputRows | None = None,
    columns: Sequence[str] = (),
    seed: int = 0,
    resources: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Draw rows of predictions to label, by strata of scores, so that few labels tell most.

    The first k rows are a sample of size k, so that people may stop early.

    Args:
        predictions: Scored rows, as for `threshold_sweep`, with `id` and without labels.
        size: How many rows are drawn.
        by: `score`, and grouping columns: each group gets rows of its own.
        labelled: The frame or file of an earlier draw: this one goes on where that one ended.
        columns: Columns of the predictions that the sheet has besides, to look at.
        seed: Another seed draws other rows.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        `id`, `stratum`, `probability`, `score`, the empty column `label`, and the columns that were asked for, in the
        order in which rows are to be labelled.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
    stage = {"kind": "threshold_sweep", "predictions": as_rows("sample", "predictions", predictions)}
    document = {"stages": [stage]} | ({} if resources is None else {"resources": dict(resources)})
    before = None if labelled is None else as_rows("sample", "labelled", labelled)
    wish = Wish(size, (by,) if isinstance(by, str) else tuple(by), before, tuple(columns), seed)
    try:
        config = replace(parse_config(document, base=Path.cwd(), origin="thresher.sample"), output=Path())
        return drawn_sheet(config, "", wish, lambda text: warnings.warn(text, stacklevel=4))
    except ThresherError as error:
        error.remedy = error.remedy and in_python(error.remedy)
        raise
