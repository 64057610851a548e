"""Many tests at once: p-values adjusted for the size of their family.

An adjusted p-value is at most alpha exactly where the procedure at level alpha rejects. A NaN is a test that could not
be made: it stays NaN, and it is not counted in the family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from kerntest.kernels.base import Array

Correction: TypeAlias = Literal["holm", "bh", "none"]


def holm(p: ArrayLike) -> Array:
    """Return p-values adjusted by Holm's step-down procedure.

    Rejecting where they are at most alpha keeps the probability of any false rejection at most alpha, whatever the
    dependence between the tests (Holm 1979). With p_(1) <= ... <= p_(m):

        adjusted_(i) = min(1, max_{j <= i} (m - j + 1) p_(j))

    Parameters
    ----------
    p : array_like, shape (m,)
        In [0, 1], or NaN for a test that could not be made.

    Returns
    -------
    ndarray, shape (m,)
        In the order of `p`.

    Notes
    -----
    Cost: O(m log m).
    """

    def ascending(ordered: Array) -> Array:
        remaining = np.arange(len(ordered), 0, -1)
        return np.maximum.accumulate(remaining * ordered)

    return _adjusted_in_order(p, ascending)


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Return p-values adjusted by the step-up procedure of Benjamini and Hochberg.

    Rejecting where they are at most alpha keeps the expected share of false rejections among all rejections at most
    alpha, where the tests are independent or positively dependent (Benjamini and Hochberg 1995; Benjamini and
    Yekutieli 2001, theorem 1.2). With p_(1) <= ... <= p_(m):

        adjusted_(i) = min(1, min_{j >= i} (m / j) p_(j))

    Parameters
    ----------
    p : array_like, shape (m,)
        In [0, 1], or NaN for a test that could not be made.

    Returns
    -------
    ndarray, shape (m,)
        In the order of `p`.

    Notes
    -----
    Cost: O(m log m).
    """

    def ascending(ordered: Array) -> Array:
        # The ratio first: it is 1 for the last, so that rounding takes no adjusted value below its own p.
        inflated = len(ordered) / np.arange(1, len(ordered) + 1) * ordered
        return np.minimum.accumulate(inflated[::-1])[::-1]

    return _adjusted_in_order(p, ascending)


def adjusted(p: ArrayLike, method: Correction) -> Array:
    """Return p-values adjusted by the named method; "none" gives a copy of them.

    Raises
    ------
    UsageError
        If there is no such method.
    """
    if method not in METHODS:
        raise UsageError(
            f"correction must be one of {', '.join(METHODS)}, not {method!r}",
            hint="holm bounds the chance of any false finding, bh the share of false findings among all",
            code="usage.correction",
        )
    return METHODS[method](p)


def _unadjusted(p: ArrayLike) -> Array:
    return np.array(p, dtype=np.float64)


def _adjusted_in_order(p: ArrayLike, ascending: Callable[[Array], Array]) -> Array:
    """Return what `ascending` makes of the sorted p-values that are there, capped at 1, each at its own place."""
    result = _unadjusted(p)
    (tested,) = np.nonzero(~np.isnan(result))
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(ascending(result[order]), 1.0)
    return result


METHODS: dict[Correction, Callable[[ArrayLike], Array]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": _unadjusted,
}
