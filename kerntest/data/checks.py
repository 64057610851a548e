"""Options checked one by one, for tests and learners alike."""

from __future__ import annotations

import math

import numpy as np

from kerntest.errors import UsageError, suggest


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed names.

    Raises
    ------
    UsageError
        With the name that was meant, if one is close.
    """
    if value not in allowed:
        meant = suggest(str(value), allowed)
        raise UsageError(
            f"{name} must be {' or '.join(allowed)}, not {value!r}",
            hint=f"did you mean '{meant}'?" if meant else None,
            code=f"usage.{name}",
        )


def positive(name: str, value: object, *, code: str | None = None) -> None:
    """Refuse what is not a positive, finite number; the code is usage.NAME if not given.

    Raises
    ------
    UsageError
        As above.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < math.inf:
        shown = f"{value:g}" if isinstance(value, (int, float, np.number)) else repr(value)
        raise UsageError(
            f"{name} must be positive and finite, not {shown}",
            hint="give a number above 0",
            code=code or f"usage.{name}",
        )


def whole_number(name: str, value: object, *, at_least: int) -> None:
    """Refuse a value that is not a whole number from `at_least` on.

    Raises
    ------
    UsageError
        As above.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise UsageError(
            f"{name} must be a whole number of at least {at_least}, not {value!r}",
            hint="give it without a decimal point",
            code=f"usage.{name}",
        )


def check_probability(probability: object) -> None:
    """Refuse what is no probability of an interval.

    Raises
    ------
    UsageError
        If it is not between 0 and 1.
    """
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 < probability < 1:
        raise UsageError(
            f"an interval has a probability between 0 and 1, not {probability!r}",
            hint="0.9 is usual",
            code="usage.interval",
        )
