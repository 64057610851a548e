"""JSON to and from dataclasses: what a manifest says, checked against the names and types of fields.

A dataclass may say more of itself: `flaw()`, what is wrong with a value whose types are right, and `stored_fields()`,
which of its fields are written where that depends on others. Else fields that hold their defaults are left out.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kerntest.data.wording import listed, one_line, shown_value
from kerntest.errors import ModelError

# Larger counts are no floats; larger whole numbers are not shown in messages.
LARGEST_COUNT = 2**53
_SHOWN_BITS = 64
_hints = cache(get_type_hints)


def damaged(model: str, reason: str) -> ModelError:
    """Return the error for a model that is not as it was written."""
    return ModelError(
        f"{model} is damaged: {reason}",
        hint="copy the file again from where it came, or train the model again",
        code="model.damaged",
        where={"file": model},
    )


def to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if is_dataclass(value):
        return {name: to_plain(getattr(value, name)) for name in _stored(value)}
    return [to_plain(one) for one in value] if isinstance(value, tuple) else value


def _stored(value: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass that are written."""
    if hasattr(value, "stored_fields"):
        return tuple(value.stored_fields())
    return tuple(one.name for one in fields(value) if one.default is MISSING or getattr(value, one.name) != one.default)


def from_plain(kind: Any, plain: Any, model: str, place: str) -> Any:
    """Return the value of a type that `to_plain` wrote; ModelError, which says where, if it is none."""
    if (kind is str and isinstance(plain, str)) or (kind is int and type(plain) is int and 0 <= plain <= LARGEST_COUNT):
        return plain
    if kind is float and math.isfinite(number := _as_float(plain)):
        return number
    if is_dataclass(kind):
        return _record(kind, plain, model, place)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return None if plain is None else from_plain(inner[0], plain, model, place)
    if origin is tuple and isinstance(plain, list):
        kinds = inner[:1] * len(plain) if inner[1:] == (...,) else inner
        if len(kinds) == len(plain):
            pairs = zip(kinds, plain, strict=True)
            return tuple(from_plain(one, item, model, f"{place}[{k}]") for k, (one, item) in enumerate(pairs))
    if origin is dict and isinstance(plain, dict):
        return {key: from_plain(inner[1], one, model, f"{place}.{one_line(key)[:40]}") for key, one in plain.items()}
    if origin is Literal and isinstance(plain, str) and plain in inner:
        return plain
    raise damaged(model, f"{place} must be {_wanted(kind)}, not {_shown(plain)}")


def _record(kind: Any, plain: Any, model: str, place: str) -> Any:
    """Return the dataclass that an object stands for."""
    if not isinstance(plain, dict):
        raise damaged(model, f"{place} must be an object, not {_shown(plain)}")
    within = f"{place}." if place else ""
    hints, names = _hints(kind), {one.name: one.default is MISSING for one in fields(kind)}
    _check_names(plain, names, [name for name, required in names.items() if required], model, within)
    made = kind(
        **{name: from_plain(hints[name], plain[name], model, f"{within}{name}") for name in names if name in plain}
    )
    if hasattr(made, "stored_fields"):
        _check_names(plain, made.stored_fields(), made.stored_fields(), model, within)
    if flaw := made.flaw() if hasattr(made, "flaw") else None:
        raise damaged(model, f"{within}{flaw}")
    return made


def _check_names(plain: dict[str, Any], known: Any, required: Any, model: str, within: str) -> None:
    """Refuse an object without its fields, or with others, which may change what these mean."""
    for name in required:
        if name not in plain:
            raise damaged(model, f"{within}{name} is missing in its manifest")
    if strange := sorted(plain.keys() - set(known)):
        raise damaged(model, f"{within.rstrip('.')} has unknown fields: {listed(strange)}")


def _as_float(value: Any) -> float:
    """Return a number as float, whole ones too, as other writers of JSON may have them; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _wanted(kind: Any) -> str:
    """Return what a type is called in messages."""
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    known = {
        str: "a text",
        int: f"a whole number from 0 to {LARGEST_COUNT:,}",
        float: "a finite number",
        dict: "an object",
        tuple: "a list",
    }
    return known[get_origin(kind) or kind]


def _shown(value: Any) -> str:
    """Return a value of JSON for a message: short, and on one line."""
    if isinstance(value, str):
        return shown_value(value)
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return "a huge number"
    return json.dumps(value)
