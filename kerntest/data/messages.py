"""Checks of arguments, and words of messages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed names."""
    if value not in allowed:
        meant = suggest(str(value), allowed)
        raise UsageError(
            f"{name} must be {' or '.join(allowed)}, not {value!r}",
            hint=f"did you mean '{meant}'?" if meant else None,
            code=f"usage.{name}",
        )


def positive(name: str, value: object, *, code: str | None = None) -> None:
    """Refuse what is not a positive, finite number; the code is usage.NAME if not given."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < math.inf:
        shown = f"{value:g}" if isinstance(value, (int, float, np.number)) else repr(value)
        raise UsageError(
            f"{name} must be positive and finite, not {shown}",
            hint="give a number above 0",
            code=code or f"usage.{name}",
        )


def whole_number(name: str, value: object, *, at_least: int) -> None:
    """Refuse a value that is not a whole number from `at_least` on."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise UsageError(
            f"{name} must be a whole number of at least {at_least}, not {value!r}",
            hint="give it without a decimal point",
            code=f"usage.{name}",
        )


def check_probability(probability: object) -> None:
    """Refuse what is no probability of an interval."""
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 < probability < 1:
        raise UsageError(
            f"an interval has a probability between 0 and 1, not {probability!r}",
            hint="0.9 is usual",
            code="usage.interval",
        )


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural where due: ``"1 row"``, ``"1,200 rows"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def one_line(text: str) -> str:
    """Return the text as it is if it prints on one line, else with its odd characters escaped."""
    return text if text.isprintable() else repr(text)


def listed(words: Sequence[str], limit: int = 10) -> str:
    """Return the words joined by commas, the first `limit` of them and a count of the others."""
    shown = ", ".join(one_line(word) for word in words[:limit])
    return shown if len(words) <= limit else f"{shown} and {len(words) - limit:,} more"


def option_value(names: Sequence[str], limit: int | None = 10) -> str:
    """Return the names, at most `limit`, as one shell word: ``a,b``, or ``'unit price,b'`` where the shell needs quotes."""
    word = ",".join(f'"{name}"' if "," in name else name for name in map(one_line, names[:limit]))
    word += ",..." if limit is not None and len(names) > limit else ""
    plain = word and all(character.isalnum() or character in "_-.,:/" for character in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


def shown_value(text: str) -> str:
    """Return a cell's text in quotes, on one line and cut to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def taken_as_value(word: str, na: Sequence[str]) -> str:
    """Return the hint how a word for a missing value is taken as a value, and the other words are not."""
    others = [other for other in na if other != word]
    return f"--na {option_value(others, None)} takes it as such"
