"""Compare records, tables and texts with computed numbers in them: the numbers by a tolerance, all else to the letter."""

import math
import re
from itertools import zip_longest

import numpy as np
from tolerances import SAME_MACHINE, assert_close

# Rounding of the entries of a kernel matrix, times its condition, 1 / lambda, and what leaving rows out loses besides.
CONDITIONED = 1e-13
# Numbers of so many digits are printed whole, as floats are; shorter ones were rounded on purpose.
LONG_NUMBER = re.compile(r"-?\d+\.\d{8,}(?:e[-+]?\d+)?")


def differences(found, expected, *, share=SAME_MACHINE, place=""):
    """Yield where two records differ: floats by more than `share` of their size, and anything else.

    Kernels, statistics, shares and p-values have the scale 1, so that a smaller float is compared on that scale too.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        share = max(share, CONDITIONED / expected.get("lambda", math.inf) if "score" in expected else 0.0)
        for name in [*expected, *(name for name in found if name not in expected)]:
            one, other = (record.get(name, "nothing") for record in (found, expected))
            yield from differences(one, other, share=share, place=f"{place}.{name}")
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        for number, (one, other) in enumerate(zip_longest(found, expected, fillvalue="nothing")):
            yield from differences(one, other, share=share, place=f"{place}[{number}]")
    elif type(found) is float and type(expected) is float:
        both_missing = found != found and expected != expected  # noqa: PLR0124 - NaN
        if not (both_missing or found == expected or abs(found - expected) <= share * max(1.0, abs(expected))):
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


def numbers(result):
    """Return everything that a result says, without what names its inputs or takes time."""
    plain = result.to_dict()
    del plain["provenance"]
    return plain


def assert_same(found, expected, *, share=SAME_MACHINE):
    """Fail unless two results of one test, or two plain values, are alike, whatever names their inputs."""
    if hasattr(expected, "to_dict"):
        found, expected = numbers(found), numbers(expected)
    assert_alike(found, expected, share=share)


def assert_same_statistic(found, expected):
    """Fail unless statistics agree and p-values lie within the Monte-Carlo error of two sets of relabellings."""
    for name in ("mmd2_unbiased", "mmd2_biased", "hsic_unbiased", "hsic_biased"):
        if hasattr(expected, name):
            # Sums over entries of at most 1, the smaller for the differences they are made of.
            assert_close(getattr(found, name), getattr(expected, name), scale=1.0)
    if expected.null.exact:
        p = (found.p_value + expected.p_value) / 2
        assert abs(found.p_value - expected.p_value) <= 5 * np.sqrt(2 * p * (1 - p) / expected.null.permutations)
    else:
        assert_close(found.p_value, expected.p_value, condition=10)
