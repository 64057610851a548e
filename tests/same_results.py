"""Two results of one test are the same: every word and count, and numbers as far as sums of floats repeat."""

import math

from tolerances import SAME_MACHINE


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
