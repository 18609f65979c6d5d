"""Data classes behave as those of `dataclasses` do, whichever module their methods come from."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest

from pipeline.base import records


@records.dataclass(frozen=True)
class Place:
    """A frozen one with every kind of field."""

    name: str
    rank: int = 1
    notes: list[str] = field(default_factory=list, compare=False, repr=False)
    in_time: bool = field(default=False, kw_only=True)


@records.dataclass(frozen=True)
class Town(Place):
    """One that adds a field."""

    size: int = 0


@records.dataclass
class Tally:
    """One that changes, with a field that nobody gives and a check of what is given."""

    step: int
    total: int = field(default=0, init=False)
    seen: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.step < 0:
            raise ValueError(self.step)


@records.dataclass(frozen=True, eq=False)
class Alone:
    """One that equals itself only."""

    value: int


@records.dataclass(frozen=True, repr=False)
class Named:
    """One with words of its own."""

    value: int

    def __repr__(self) -> str:
        return "named"

    def __hash__(self) -> int:
        return 5


def of_the_library(cls: type) -> Any:  # noqa: ANN401
    """The same class as `dataclasses` makes it."""
    attributes = {name: value for name, value in vars(cls).items() if name in {"rank", "__annotations__"}}
    attributes |= {each.name: each for each in fields(Place) if each.name in {"notes", "in_time"}}
    place_class = type("Place", (), {**attributes, "notes": field(default_factory=list, compare=False, repr=False)})
    place_class.in_time = field(default=False, kw_only=True)  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True)(place_class)


@pytest.mark.parametrize(
    ("values", "named"), [(("a",), {}), (("a", 3), {"in_time": True}), ((), {"name": "b", "notes": ["x"]})]
)
def test_values_words_and_order_are_those_of_the_library(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Fields have the same values, in the same order, and are shown alike."""
    ours, theirs = Place(*values, **named), of_the_library(Place)(*values, **named)
    assert asdict(ours) == asdict(theirs)
    assert list(vars(ours)) == list(vars(theirs))
    assert repr(ours) == repr(theirs)
    assert Place.__match_args__ == theirs.__match_args__


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), (("a", 1, [], True), {}), (("a",), {"name": "b"}), (("a",), {"no": 1})]
)
def test_a_call_that_does_not_fit_is_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """As by the library: what lacks, is too much, comes twice or has no field."""
    for cls in (Place, of_the_library(Place)):
        with pytest.raises(TypeError):
            cls(*values, **named)


def test_frozen_ones_are_compared_hashed_and_copied() -> None:
    """Equal by what is compared, never equal to another class; nothing can be set or deleted."""
    amsterdam = Place("a", 2, ["x"])
    assert amsterdam == Place("a", 2, ["y"])
    assert hash(amsterdam) == hash(Place("a", 2))
    assert amsterdam != Place("a", 3)
    assert amsterdam != Town("a", 2)
    assert Town("a", size=3).size == 3
    assert replace(amsterdam, rank=5) == Place("a", 5)
    assert pickle.loads(pickle.dumps(amsterdam)) == copy.deepcopy(amsterdam) == amsterdam  # noqa: S301 - made here
    with pytest.raises(FrozenInstanceError):
        amsterdam.rank = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del amsterdam.rank
    assert Alone(1) != Alone(1)
    assert repr(Named(1)) == "named"
    assert hash(Named(1)) == 5


def test_one_that_changes_has_no_hash_and_its_own_lists() -> None:
    """Fields that nobody gives are there, and a check after making an object runs."""
    first, second = Tally(1), Tally(1)
    first.seen.append(1)
    assert (second.seen, second.total) == ([], 0)
    assert first != second
    with pytest.raises(TypeError):
        hash(first)
    with pytest.raises(TypeError):
        Tally(1, 2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="-1"):
        Tally(-1)
