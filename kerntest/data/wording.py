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


def option_value(names: Sequence[str]) -> str:
    """Return the names, at most ten, as one shell word: ``a,b``, or ``'unit price,b'`` where the shell needs quotes."""
    word = ",".join(f'"{name}"' if "," in name else name for name in map(one_line, names[:10])) + (
        ",..." if len(names) > 10 else ""
    )
    plain = all(character.isalnum() or character in "_-.,:/" for character in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


def shown_value(text: str) -> str:
    """Return a cell's text in quotes, on one line and cut to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
