"""Many tests at once: p-values adjusted for the size of their family.

An adjusted p-value is at most alpha exactly where the procedure at level alpha rejects. A NaN is a test that could not
be made: it stays NaN, and it is not counted in the family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from kerntest.kernels.base import Array

Correction: TypeAlias = Literal["holm", "bh", "none"]


def adjusted(p: ArrayLike, correction: Correction) -> Array:
    """Return p-values in [0, 1] or NaN, adjusted by the named procedure, each at its own place."""
    result = np.array(p, dtype=np.float64)
    (tested,) = np.nonzero(~np.isnan(result))
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(PROCEDURES[correction](result[order]), 1.0)
    return result


def holm(ascending: Array) -> Array:
    """Return max_{j <= i} (m - j + 1) p_(j): bounds the chance of any false rejection, whatever the dependence (Holm 1979)."""
    return np.maximum.accumulate(np.arange(len(ascending), 0, -1) * ascending)


def benjamini_hochberg(ascending: Array) -> Array:
    """Return min_{j >= i} (m / j) p_(j): bounds the expected share of false rejections among all.

    Where the tests are independent or positively dependent (Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001).
    """
    # The ratio first: it is 1 for the last, so that rounding takes no adjusted value below its own p.
    inflated = len(ascending) / np.arange(1, len(ascending) + 1) * ascending
    return np.minimum.accumulate(inflated[::-1])[::-1]


PROCEDURES: dict[Correction, Callable[[Array], Array]] = {"holm": holm, "bh": benjamini_hochberg, "none": np.copy}


def step_down(scores: Array) -> Array:
    """Return p-values adjusted by the step-down maximum (Westfall and Young 1993, algorithm 4.1), shape (F,).

    `scores` (F, R) are on one scale over shared relabellings, larger meaning further from the null; [:, 0] is observed.
    """
    order = np.argsort(-scores[:, 0], kind="stable")
    # Maxima over each score and all that are observed below it.
    maxima = np.maximum.accumulate(scores[order][::-1], axis=0)[::-1]
    p = np.mean(maxima >= scores[order, :1], axis=1)
    result = np.empty(len(scores))
    result[order] = np.maximum.accumulate(p)
    return result
