"""What a manifest says, checked field by field: whoever wrote it need not have been us."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kerntest.data.wording import listed, shown_value
from kerntest.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Choice = TypeVar("Choice", bound=str)
# Larger counts are no floats; larger whole numbers are not shown in messages.
LARGEST_COUNT = 2**53
_SHOWN_BITS = 64


def damaged(model: str, reason: str, *, code: str = "model.damaged") -> ModelError:
    """Return the error for a model that is not as it was written."""
    return ModelError(
        f"{model} is damaged: {reason}",
        hint="copy the file again from where it came, or train the model again",
        code=code,
        where={"file": model},
    )


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object of a manifest, whose fields are asked for by type.

    Every method raises ModelError, naming the model, the field and the value, if the field is not there or not so.

    Parameters
    ----------
    plain : mapping of str
        The object as JSON gave it.
    model : str
        How messages call the model.
    place : str
        Where in the manifest the object is, such as ``"encoder.columns[2]"``; empty for the manifest itself.
    """

    plain: Mapping[str, Any]
    model: str
    place: str = ""

    @classmethod
    def of(cls, plain: Any, model: str, place: str = "", *, names: Collection[str] | None = None) -> Fields:
        """Return the fields of what must be an object; `names` are those that it must have, and no others.

        A field that this version does not know may change what the others mean: hence no others.
        """
        if not isinstance(plain, dict):
            raise damaged(model, f"{place or 'manifest.json'} must be an object, not {_shown(plain)}")
        fields = cls(plain, model, place)
        if names is not None:
            for name in names:
                fields.get(name)
            strange = sorted(map(str, set(plain) - set(names)))
            if strange:
                raise damaged(model, f"{place or 'manifest.json'} has unknown fields: {listed(strange)}")
        return fields

    def refuse(self, name: str, should: str) -> ModelError:
        """Return the error for a field that should be something else."""
        return damaged(self.model, f"{self.path(name)} must be {should}, not {_shown(self.plain.get(name))}")

    def path(self, name: str) -> str:
        """Return the name of a field with the place of its object before it."""
        return f"{self.place}.{name}" if self.place else name

    def get(self, name: str) -> Any:
        """Return a field of any type."""
        if name not in self.plain:
            raise damaged(self.model, f"{self.path(name)} is missing in its manifest")
        return self.plain[name]

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.get(name)
        if not isinstance(value, str):
            raise self.refuse(name, "a text")
        return value

    def one_of(self, name: str, allowed: Sequence[Choice]) -> Choice:
        """Return one of the texts allowed."""
        value = self.get(name)
        for choice in allowed:
            if value == choice:
                return choice
        raise self.refuse(name, " or ".join(map(repr, allowed)))

    def number(self, name: str, *, positive: bool = False) -> float:
        """Return a finite number, if asked one above 0."""
        value = self.get(name)
        number = _as_float(value)
        if not math.isfinite(number) or (positive and not number > 0):
            raise self.refuse(name, "a positive number" if positive else "a finite number")
        return number

    def whole(self, name: str, *, at_least: int) -> int:
        """Return a whole number from `at_least` on, however large; 1.0 and true are none."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            raise self.refuse(name, f"a whole number of at least {at_least}")
        return value

    def count(self, name: str, *, at_least: int) -> int:
        """Return a whole number from `at_least` on to which floats can count."""
        value = self.whole(name, at_least=at_least)
        if value > LARGEST_COUNT:
            raise self.refuse(name, f"a whole number of at most {LARGEST_COUNT:,}")
        return value

    def items(self, name: str) -> list[Any]:
        """Return a list of anything."""
        value = self.get(name)
        if not isinstance(value, list):
            raise self.refuse(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.items(name)
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(name, "a list of texts")
        return tuple(values)


def _as_float(value: Any) -> float:
    """Return a number as float, whole ones too, as other writers of JSON may have them; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: Any) -> str:
    """Return a value of JSON for a message: short, and on one line."""
    if isinstance(value, str):
        return shown_value(value)
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return "a huge number"
    return json.dumps(value, default=repr)
