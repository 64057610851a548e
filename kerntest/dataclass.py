"""Data classes that compile no code of their own: loading one takes a tenth of the time.

The standard library writes and compiles the methods of each data class, which takes 0.7 ms; a small test loads 75 of them.
Here they share methods that look the fields up when they are called. What they do is the same, but they have no slots and
know no `InitVar`.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, eq: bool = True, kw_only: bool = False) -> Callable[[type], type]:
        """Return the decorator, with these options of the standard library's."""
        methods = {"__init__": _initialise, "__repr__": _shown}
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}

        def made(cls: type) -> type:
            with_fields = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)
            for name, method in methods.items():
                if name not in vars(cls):
                    setattr(cls, name, method)
            return with_fields(cls)

        return made


class _Fields(NamedTuple):
    """The fields of a class: those that may be given without their names, all, what most are by default, and who makes some."""

    order: list[str]
    every: frozenset[str]
    usual: Mapping[str, Any]
    made: Mapping[str, Callable[[], Any]]


@cache
def _fields(kind: Any) -> _Fields:
    fields, missing = sorted(dataclasses.fields(kind), key=lambda field: field.kw_only is True), dataclasses.MISSING
    made = {one.name: one.default_factory for one in fields if one.default_factory is not missing}
    usual = {one.name: one.default for one in fields if one.default is not missing}
    return _Fields([one.name for one in fields if not one.kw_only], frozenset(one.name for one in fields), usual, made)


def _initialise(self: Any, *given: Any, **named: Any) -> None:
    """Set the fields that are given in their order or by name, and all others to their defaults."""
    order, every, usual, made = _fields(self.__class__)
    # Not by setting attributes, which the class may refuse, and which takes longer.
    values = self.__dict__
    values.update(usual)
    values.update(zip(order, given, strict=False))
    values.update(named)
    for name in made:
        if name not in values:
            values[name] = made[name]()
    wrong = named and not (named.keys() <= every and named.keys().isdisjoint(order[: len(given)]))
    if wrong or len(given) > len(order) or len(values) < len(every):
        told = [f" got an unexpected keyword argument {name!r}" for name in named if name not in every]
        told.append(f" takes {', '.join(order)}, each once, and not {given} {named}")
        raise TypeError(type(self).__name__ + told[0])
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _shown(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


@cache
def _compared(kind: Any) -> list[str]:
    return [one.name for one in dataclasses.fields(kind) if one.compare]


def _key(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in _compared(self.__class__))


def _equal(self: Any, other: object) -> bool:
    return _key(self) == _key(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_key(self))


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    """Refuse to set or delete anything."""
    del value
    message = f"cannot assign to field {name!r} of {type(self).__name__}"
    raise dataclasses.FrozenInstanceError(message)
