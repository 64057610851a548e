"""Options of learners, checked one by one."""

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
        raise UsageError(f"{name} must be positive and finite, not {shown}", code=code or f"usage.{name}")


def check_seed(seed: object) -> None:
    """Refuse what is not a whole number from 0 up.

    Raises
    ------
    UsageError
        As above.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise UsageError(f"seed must be a whole number of at least 0, not {seed!r}", code="usage.seed")


def check_probability(probability: object) -> None:
    """Refuse what is no probability of an interval.

    Raises
    ------
    UsageError
        If it is not between 0 and 1.
    """
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 < probability < 1:
        raise UsageError(f"an interval has a probability between 0 and 1, not {probability!r}", code="usage.interval")
