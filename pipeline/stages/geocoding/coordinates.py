"""Checks of coordinates that name the file and the row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...plan.checks import file_check
from ...sources.canonical import canonical_relation
from .contract import GOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import sqlglot.expressions as exp

    from ...plan.checks import Faults
    from ...plan.nodes import Check
    from ...sources.inputs import Field
    from ...sources.source import Source

PLACE = ("latitude", "longitude")


def coordinate_checks(source: Source, read: Mapping[str, Field]) -> Iterator[Check]:
    """Coordinates that are infinite or off the Earth, and places of which only one coordinate is known.

    Args:
        source: The input.
        read: The columns that are read of it, grouping columns too, by their names in its relation.
    """
    for name in PLACE:
        # elsewhere an infinite value is NULL, as an unknown one is; the columns are those that are read otherwise, too,
        # because files are grouped by what is read of them
        with_state = canonical_relation(source, read, score=name, located=True)
        yield _check("infinite_coordinate", source, {"coordinate": name}, {"input_read": with_state})
    yield _check("latitude", source, {})
    yield _check("longitude", source, {})
    for missing, other in (PLACE, PLACE[::-1]):
        yield _check("half_a_place", source, {"coordinate": missing, "other": other})


def _check(
    name: str, source: Source, columns: Mapping[str, str], relations: Mapping[str, exp.Query] | None = None
) -> Check:
    """A check of sql/geocoding/checks, whose message names the first file and row itself."""

    def words(faults: Faults) -> dict[str, object]:
        fault = faults[0]
        remedy = "Correct these rows, or leave them out with where."
        if source.name != GOLD.name:
            remedy = "Correct these rows, leave them out with where, or make both NULL: not located."
        if fault["n_exchangeable"] == fault["n_rows"]:
            both = " and ".join(repr(source.source_name(coordinate)) for coordinate in PLACE)
            remedy = f"{both} are most likely exchanged: map them with columns = {{ latitude = …, … }}."
        place, row = str(fault["source_file"]), fault["first_row"]
        if source.without_places is None and isinstance(row, int):
            place = f"{place}, first at row {row + 1:,}"
        return {"place": place, "remedy": remedy}

    check = file_check(f"geocoding/checks/{name}", source, columns=columns, relations=relations, words=words)
    return replace(check, problem=None)
