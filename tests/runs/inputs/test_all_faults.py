"""Everything that is wrong with the inputs of a stage is said at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
import pytest
from running import run_before_after, run_threshold_sweep

from pipeline.base.errors import ConfigError, DataError, together

if TYPE_CHECKING:
    from pathlib import Path


def test_all_kinds_of_bad_scores_are_told_with_the_name_of_the_column(tmp_path: Path) -> None:
    good = [0.5] * 4
    score = [*good, *[None] * 5, *[math.nan] * 7, *[math.inf] * 5]
    frame = pl.DataFrame({"similarity": score, "label": [True] * len(score)})
    with pytest.raises(DataError) as caught:
        run_threshold_sweep(tmp_path, frame, predictions={"columns": {"score": "similarity"}})
    first, *lines, remedy = str(caught.value).splitlines()
    path = tmp_path / "predictions.parquet"
    assert first == "3 faults"
    assert lines == [
        f"input predictions: column 'similarity' is NULL in 5 rows (5 in {path}, first at row 5)",
        f"input predictions: column 'similarity' is NaN in 7 rows (7 in {path}, first at row 10)",
        f"input predictions: column 'similarity' is infinite in 5 rows (5 in {path}, first at row 17)",
    ]
    assert 'invalid_scores = "drop"' in remedy
    assert '"missed"' in remedy


def test_scores_keys_and_checks_of_several_inputs_are_told_together(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1, 2, None], "score": [0.5, None, 0.5], "lag_hours": [1.0, -1.0, 1.0]})
    events = pl.DataFrame({"event_id": [1, 2, 2], "n_before": [9, -9, 9], "n_after": [9, 9, 9]})
    with pytest.raises(DataError) as caught:
        run_before_after(tmp_path, {"pairs": pairs, "events": events}, thresholds=[0.5])
    message = str(caught.value)
    for words in (
        "4 faults",
        "input events: event_id repeats: event_id = 2 (2 rows)",
        "input events: column 'n_before' is negative in 1 row",
        "input pairs: column 'score' is NULL in 1 row",
        "input pairs: column 'event_id' is NULL or not finite in 1 row",
    ):
        assert words in message, message


def test_missing_columns_of_all_inputs_are_told_together(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event": [1], "similarity": [0.5], "lag_hours": [1.0]})
    events = pl.DataFrame({"id": [1], "many": ["many"], "n_after": [9]})
    columns = {"columns": {"n_before": "many"}}
    with pytest.raises(DataError) as caught:
        run_before_after(tmp_path, {"pairs": pairs, "events": events}, thresholds=[0.5], events=columns)
    message = str(caught.value)
    assert message.startswith("4 faults\n")
    for words in ("has no column 'event_id'", "has no column 'score'", "column 'many' in", "string, not an integer"):
        assert words in message, message


def test_beyond_ten_faults_only_their_number_is_told() -> None:
    faults = [DataError(f"fault {number}", remedy="Mend it.") for number in range(13)]
    lines = str(together([*faults, together(faults)])).splitlines()
    assert lines == ["13 faults", *(f"fault {number}" for number in range(10)), "Mend it.", "and 3 more faults"]


def test_one_fault_is_itself_and_the_first_decides_the_exit_code() -> None:
    fault = DataError("one")
    assert str(together([fault, DataError("one")])) == "one"
    assert together([ConfigError("two"), fault]).code == ConfigError.exit_code
