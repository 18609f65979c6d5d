from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs.announcing.nights import Night

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="package")
def published(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Published once; tests only look at it."""
    night = Night(tmp_path_factory.mktemp("night"))
    assert night.run().status == "published"
    return night


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)
