"""Places of mentions that the rule of matching does not need: shown as they are, and no reason to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import read_table, run_stages, stage_config

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = [(None, None), (1, None), (None, 3), (5, 3), (2**40, 2**40 + 1), (-(2**62), 2**62)]


def outcomes(folder: Path, kind: str, gold: pl.DataFrame, predicted: pl.DataFrame, **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    frames = {"gold": gold, "predicted": predicted}
    run = run_stages(stage_config(folder, kind, frames, match="text", **keys))
    return read_table(run, f"{kind}_outcomes", kind)


def mentions(*rows: tuple[str, int | None, int | None], **more: Any) -> pl.DataFrame:  # noqa: ANN401 - any values
    """Mentions of (text, start, end) in one document."""
    types = {"text": pl.String, "start": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(list(rows), schema=types, orient="row").with_columns(doc_id=pl.lit("d"), **more)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("place", UNKNOWN, ids=str)
def test_matched_mentions_show_the_places_that_they_have(tmp_path: Path, place: tuple[int | None, int | None]) -> None:
    gold, predicted = mentions(("a", 5, 6), ("b", *place)), mentions(("a", *place), ("b", 7, 8), ("c", *place))
    found = outcomes(tmp_path, "entity_recognition", gold, predicted).sort("gold_text", nulls_last=True)
    shown = found.select("outcome", "gold_start", "gold_end", "predicted_start", "predicted_end").rows()
    assert shown == [("tp", 5, 6, *place), ("tp", *place, 7, 8), ("fp", None, None, *place)]
    located = {"latitude": 1.0, "longitude": 2.0}
    gold, predicted = (
        each.with_columns(**{name: pl.lit(value) for name, value in located.items()}) for each in (gold, predicted)
    )
    found = outcomes(tmp_path / "places", "geocoding", gold, predicted).sort("text")
    assert found.select("outcome", "start", "end").rows() == [("tp", 5, 6), ("tp", *place)]


def test_an_unknown_place_is_not_the_same_as_another_unknown_place(tmp_path: Path) -> None:
    """A prediction at a known place is taken before one whose place nobody knows."""
    gold, predicted = mentions(("a", None, None)), mentions(("a", None, None), ("a", 7, 8))
    found = outcomes(tmp_path, "entity_recognition", gold, predicted)
    assert found.select("outcome", "predicted_start").sort("outcome").rows() == [("fp", None), ("tp", 7)]
