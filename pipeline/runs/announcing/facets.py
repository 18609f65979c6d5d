"""Facets: the pieces of which events and datasets of OpenLineage are made."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

Facet = dict[str, Any]
_SPECIFICATION = "https://openlineage.io/spec/facets/"


@cache
def producer() -> str:
    """Return the URI of the program that makes events."""
    return f"urn:thresher:{version('thresher')}"


def facet(edition: str, schema: str, /, **content: Any) -> Facet:  # noqa: ANN401 - whatever JSON can hold
    """Return a facet with what all facets have: its producer and its schema.

    Args:
        edition: Version of its schema.
        schema: Name of its schema.
        content: Its own fields.
    """
    return {
        "_producer": producer(),
        "_schemaURL": f"{_SPECIFICATION}{edition}/{schema}.json#/$defs/{schema}",
        **content,
    }
