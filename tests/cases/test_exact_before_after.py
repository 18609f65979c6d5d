"""The expected tables of before_after hold what exact fractions make of their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cases.exact_before_after import folders, tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_expected_ratios_are_exact_fractions_of_the_counts(folder: Path) -> None:
    for name, text in tables(folder).items():
        assert (folder / "expected" / name).read_text(encoding="utf-8") == text
