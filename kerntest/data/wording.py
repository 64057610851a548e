"""Small words for messages: counts with their noun, and lists that do not run off the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
