"""Which columns a text like ``price,size:weight,temp_*`` names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from kerntest.data.table import unknown_column
from kerntest.errors import UsageError

Patterns = str | Sequence[str] | None


def split_patterns(patterns: Patterns) -> list[str]:
    """Return the single patterns: a text is split at its commas, outside double quotes; blanks around are dropped."""
    if patterns is None:
        return []
    if isinstance(patterns, str):
        # A list may be wrapped over several lines of a script: every line adds its names.
        lines = csv.reader(io.StringIO(patterns, newline=""), skipinitialspace=True)
        return [field.strip() for fields in lines for field in fields if field.strip()]
    return [str(pattern) for pattern in patterns]


def find(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that one pattern means, in the order of `names`; empty where it means none.

    A name that exists wins over being a pattern. ``*`` stands for any characters; ``size:weight`` for the names from
    the one to the other, inclusive, and an end left out for the first or the last name.

    Raises
    ------
    UsageError
        The range runs backwards.
    """
    if pattern in names:
        return [pattern]
    if ":" in pattern:
        found = _find_range(pattern, list(names))
        if found:
            return found
    if "*" in pattern:
        wildcard = re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
        return [name for name in names if wildcard.fullmatch(name)]
    return []


def _find_range(pattern: str, names: list[str]) -> list[str]:
    """Return the names of a range; a name may itself contain colons, so every colon is tried."""
    for colon in (match.start() for match in re.finditer(":", pattern)):
        first, last = pattern[:colon].strip(), pattern[colon + 1 :].strip()
        if (first and first not in names) or (last and last not in names) or not (first or last):
            continue
        start = names.index(first) if first else 0
        stop = names.index(last) if last else len(names) - 1
        if start > stop:
            raise UsageError(
                f"the range {pattern!r} runs backwards: {first!r} stands after {last!r}",
                hint=f"write {last}:{first}",
                code="usage.backward_range",
                where={"column": pattern},
            )
        return names[start : stop + 1]
    return []


def missing_name(pattern: str, names: Sequence[str]) -> str:
    """Return the part of a pattern that is not there: of a range with one good end, the other end."""
    if pattern.count(":") == 1:
        absent = [end for end in (part.strip() for part in pattern.split(":")) if end and end not in names]
        if len(absent) == 1:
            return absent[0]
    return pattern


def match_names(patterns: Patterns, names: Sequence[str], table_name: str) -> list[str]:
    """Return all names that the patterns mean, in the order of `names`.

    Raises
    ------
    UsageError
        A pattern means no column of the table.
    """
    wanted: set[str] = set()
    for pattern in split_patterns(patterns):
        found = find(pattern, names)
        if not found:
            raise unknown_column(missing_name(pattern, names), table_name, names)
        wanted.update(found)
    return [name for name in names if name in wanted]
