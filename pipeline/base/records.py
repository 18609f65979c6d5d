"""Data classes whose methods are written here once, for all of them.

`dataclasses` writes and compiles the methods of every class when it is imported, a millisecond for each of hundreds of
classes in every command. The fields, and what reads them (`fields`, `replace`, `asdict`), are made by `dataclasses`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, *, frozen=False, eq=True, repr=True, kw_only=False):  # noqa: A002, ANN001, ANN201
        """Do what the decorator of `dataclasses` does, with the same arguments."""
        if cls is None:
            return lambda decorated: dataclass(decorated, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        has_own_hash = cls.__dict__.get("__hash__") is not None
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        cls.__record__ = _Record(cls)
        methods = {"__init__": _init} | ({"__repr__": _repr} if repr else {}) | ({"__eq__": _eq} if eq else {})
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(cls, name, method)
        if eq and not has_own_hash:
            cls.__hash__ = _hash if frozen else None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
        return cls


class _Record:
    """The fields of a class, by name, and their defaults."""

    def __init__(self, cls: Any) -> None:  # noqa: ANN401 - a class of `dataclasses`
        fields = dataclasses.fields(cls)
        arguments = [field for field in fields if field.init]
        self.in_order = tuple(field.name for field in arguments if not field.kw_only)
        self.names = frozenset(field.name for field in arguments)
        filled = [field for field in fields if field.init or field.default_factory is not MISSING]
        self.values = {field.name: field.default for field in filled}
        self.factories = [(field.name, field.default_factory) for field in filled if field.default is MISSING]
        self.shown = tuple(field.name for field in fields if field.repr)
        compared = [field.name for field in fields if field.compare]
        # of a single name it would not be a tuple
        self.compared = attrgetter(*compared, compared[0]) if compared else lambda _: ()


def _init(self: Any, *values: object, **named: object) -> None:  # noqa: ANN401 - every data class
    record, held = self.__record__, self.__dict__
    held.update(record.values)  # in the order of the fields
    held.update(zip(record.in_order, values, strict=False))
    held.update(named)
    is_known = len(values) <= len(record.in_order) and record.names.issuperset(named)
    if not is_known or (values and not named.keys().isdisjoint(record.in_order[: len(values)])):
        raise _misfit(self, values, named)
    for name, factory in record.factories:
        if held[name] is MISSING:
            if factory is MISSING:
                raise _misfit(self, values, named)
            held[name] = factory()
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _misfit(self: Any, values: tuple[object, ...], named: dict[str, object]) -> TypeError:  # noqa: ANN401
    names = ", ".join(self.__record__.in_order)
    received = f"{len(values)} values and the names {', '.join(named)}" if named else f"{len(values)} values"
    return TypeError(f"{type(self).__qualname__}() takes {names}, not {received}")


@recursive_repr()
def _repr(self: Any) -> str:  # noqa: ANN401
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record__.shown)
    return f"{type(self).__qualname__}({values})"


def _eq(self: Any, other: Any) -> Any:  # noqa: ANN401
    compared = self.__record__.compared
    return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(self.__record__.compared(self))


def _refuse_to_set(_self: object, name: str, _value: object) -> NoReturn:
    message = f"cannot assign to field {name!r}"
    raise FrozenInstanceError(message)


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    message = f"cannot delete field {name!r}"
    raise FrozenInstanceError(message)
