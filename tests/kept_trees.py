"""Whether the trees of SQL that are kept in the process are what they were.

A shared tree that somebody changes is another query everywhere, which its kept text hides from the test that did it.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from pipeline.base import dialect
from pipeline.base.dialect import _rendered

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MOST_SECONDS = 0.8


@pytest.fixture(scope="session", autouse=True)
def kept_trees_stay_as_they_are() -> Generator[None]:
    """At the end of a session no kept tree may have been changed since its text was written."""
    yield
    assert not list(changed_trees()), "a kept tree was changed, see pipeline/queries/dialect.py: copy it first"


def changed_trees(seconds: float = MOST_SECONDS) -> Iterator[tuple[str, str]]:
    """Yield the text of each kept tree that is no longer that of the tree, with the text that it has now.

    Args:
        seconds: How long trees are looked at, in random order; those that are left are not.
    """
    deadline = time.monotonic() + seconds
    trees = {number: tree for tree, number in dialect._by_id.values()}
    keys = [key for key in dialect._texts if isinstance(key, tuple) and key[0] in trees]
    for number, language, pretty in random.Random(0).sample(keys, len(keys)):  # noqa: S311 - a sample, no secret
        now = _rendered(trees[number], language, pretty=pretty, copy=True)
        before = dialect._texts[number, language, pretty]
        if now != before:
            yield before, now
        if time.monotonic() > deadline:
            return
