"""Two results of one test are the same: every word and count, and numbers as far as sums of floats repeat."""

import math

import numpy as np
from tolerances import SAME_MACHINE, assert_close

from kerntest.matrices import passes


def numbers(result):
    """Return everything that a result says, without what names its inputs or takes time."""
    plain = result.to_dict()
    del plain["provenance"]
    return plain


def assert_same(found, expected, *, share=SAME_MACHINE, at="result"):
    """Fail unless two plain values, or two records, are the same: floats within a share of themselves or of 1.

    Kernel values, z and p-values have a scale of 1; one relabelling more moves a p-value by far more than the share.
    """
    if hasattr(expected, "to_dict"):
        found, expected = numbers(found), numbers(expected)
    assert type(found) is type(expected), at
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), at
        for key, value in expected.items():
            assert_same(found[key], value, share=share, at=f"{at}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), at
        for place, value in enumerate(expected):
            assert_same(found[place], value, share=share, at=f"{at}[{place}]")
    elif isinstance(expected, float):
        same = math.isclose(found, expected, rel_tol=share, abs_tol=share) or (
            math.isnan(found) and math.isnan(expected)
        )
        assert same, f"{at}: {found!r}, not {expected!r}"
    else:
        assert found == expected, at


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


def small_blocks(circle, fixed, held=1):
    """Stand in for `plan_blocks`, with blocks of 37 lags."""
    del held
    lines = circle // 2 + 1
    return [passes.Block("lags", start, min(37, lines - start)) for start in range(0, lines, 37)] + [
        passes.Block("fixed", start, 1) for start in range(fixed)
    ]
