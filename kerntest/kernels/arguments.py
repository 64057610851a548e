"""The numbers that kernels take: which are allowed, and how they are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from kerntest.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Domain:
    """The values an argument may take: `words` complete the sentence "must be ..."."""

    words: str
    contains: Callable[[float], bool]


# Squares of a bandwidth, products with a shape parameter and products of weights must neither vanish nor overflow.
SMALLEST, LARGEST = 1e-75, 1e75

POSITIVE: Mapping[str, Domain] = {"domain": Domain("positive", lambda value: value > 0)}
NOT_NEGATIVE: Mapping[str, Domain] = {"domain": Domain("zero or positive", lambda value: value >= 0)}
FINITE: Mapping[str, Domain] = {"domain": Domain("finite", lambda _: True)}
WHOLE: Mapping[str, Domain] = {
    "domain": Domain("a whole number from 1 to 1000", lambda value: value.is_integer() and 1 <= value <= 1000),
}
SMOOTHNESS: Mapping[str, Domain] = {
    # Beyond 100 the kernel differs from a gaussian by less than 1 % and the Bessel function overflows.
    "domain": Domain("positive and at most 100", lambda value: 0 < value <= 100),
}


def check_number(value: object, owner: str, argument: str, domain: Domain) -> float:
    """Return `value` as a float after checking that it is a finite number in `domain`.

    Parameters
    ----------
    value : object
        What the user gave.
    owner, argument : str
        Whose argument this is and how it is called, for the message.
    domain : Domain
        The allowed values.

    Raises
    ------
    UsageError
        If it is no number, not finite or outside the domain.
    """
    number = _as_float(value)
    if number is None:
        raise _wrong(owner, argument, "a number", repr(value))
    if not math.isfinite(number):
        raise _wrong(owner, argument, "a finite number", str(value))
    if not domain.contains(number):
        raise _wrong(owner, argument, domain.words, format_number(number))
    if number != 0 and not SMALLEST <= abs(number) <= LARGEST:
        raise _wrong(owner, argument, f"between {SMALLEST} and {LARGEST} in size", format_number(number))
    return number


def _as_float(value: object) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _wrong(owner: str, argument: str, words: str, value: str) -> UsageError:
    return UsageError(
        f"{argument} of {owner} must be {words}, not {value}",
        hint=f"{'left out, it is found from the data; ' if argument == 'bandwidth' else ''}"
        "`kerntest kernels` shows how each kernel is written",
        code="usage.kernel_argument",
        where={"argument": argument, "value": value},
    )


def format_number(value: float) -> str:
    """Return the shortest text that reads back as `value`; whole numbers without a decimal point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
