"""Compare records, tables and texts with computed numbers in them: the numbers by a tolerance, all else to the letter."""

import re
from itertools import zip_longest

from tolerances import SAME_MACHINE

# Numbers of so many digits are printed whole, as floats are; shorter ones were rounded on purpose.
LONG_NUMBER = re.compile(r"-?\d+\.\d{8,}(?:e[-+]?\d+)?")


def differences(found, expected, *, share=SAME_MACHINE, place=""):
    """Yield where two records differ: floats by more than `share` of their size, and anything else.

    Kernels, statistics, shares and p-values have the scale 1, so that a smaller float is compared on that scale too.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in [*expected, *(name for name in found if name not in expected)]:
            one, other = (record.get(name, "nothing") for record in (found, expected))
            yield from differences(one, other, share=share, place=f"{place}.{name}")
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        for number, (one, other) in enumerate(zip_longest(found, expected, fillvalue="nothing")):
            yield from differences(one, other, share=share, place=f"{place}[{number}]")
    elif type(found) is float and type(expected) is float:
        if not (found == expected or abs(found - expected) <= share * max(1.0, abs(expected))):
            yield f"{place}: {found!r}, not {expected!r}"
    elif isinstance(expected, str) and isinstance(found, str):
        if LONG_NUMBER.sub("#", found) != LONG_NUMBER.sub("#", expected):
            yield f"{place}: {found!r}, not {expected!r}"
            return
        numbers = ([float(text) for text in LONG_NUMBER.findall(text)] for text in (found, expected))
        yield from differences(*numbers, share=share, place=place)
    elif found != expected or type(found) is not type(expected):
        yield f"{place}: {found!r}, not {expected!r}"


def assert_alike(found, expected, *, share=SAME_MACHINE):
    """Fail unless two records have the same names, texts and counts, and floats within `share` of their size."""
    found = list(differences(found, expected, share=share))
    assert not found, "\n".join(found)
