"""A verdict on two variables from explicit features: what a null says of the kernels that these stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.curves import curve_p_value
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.statistic import factor
from kerntest.inference.streamed.feature_invariants import (
    SampledRows,
    feature_invariants,
    feature_spectrum,
    first_feature_invariants,
)
from kerntest.inference.verdict import Verdict, degenerate_pair, overflow

if TYPE_CHECKING:
    from kerntest.errors import UndecidedError
    from kerntest.inference.nulls.moments import Invariants
    from kerntest.inference.nulls.spectral import Spectrum
    from kerntest.inference.sides import Estimator, Options
    from kerntest.inference.streamed.feature_sums import CentredSums, PairFeatures
    from kerntest.kernels.base import Array, Kernel, Points


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What the pass over the rows has found.

    Parameters
    ----------
    features : PairFeatures
    sums : CentredSums
        Over all n rows.
    rows : Points
        A random sample of them.
    others : (Points, Points)
        Those of the sample that had no say in the features of x, and of y; all of few rows.
    """

    features: PairFeatures
    sums: CentredSums
    rows: Points
    others: tuple[Points, Points]

    @property
    def kernels(self) -> tuple[Kernel, Kernel]:
        """The kernels of x and of y."""
        return self.features.x.features.kernel, self.features.y.features.kernel


def curve_verdict(found: Found, options: Options) -> Verdict:
    """Judge the observed statistic by the curve that the null names.

    Parameters
    ----------
    found : Found
    options : Options
        The null is "moments", "gamma" or "spectral".

    Raises
    ------
    UndecidedError
        If no relabelling changes the statistic, a kernel overflows, or there are too few rows for the curve.

    Notes
    -----
    Cost: O(r^3 + m^2 r) time for a sample of m rows; nothing that grows with n.
    """
    refuse_overflow(found)
    pair = _FeaturePair(found, options.estimator)
    p_value, null = curve_p_value(options.null, pair, permutations=options.permutations)
    warnings: tuple[str, ...] = ()
    if options.null == "gamma" and len(found.rows) < found.sums.n:
        warnings = (f"the variance of the Gamma null is that of {len(found.rows):,} rows drawn at random",)
    return Verdict(p_value, found.kernels, found.sums.dependence(), null, warnings=warnings)


def refuse_overflow(found: Found) -> None:
    """Refuse sums that are not finite.

    Raises
    ------
    UndecidedError
        Naming the kernel.
    """
    for kernel, sums in zip(found.kernels, (found.sums.x, found.sums.y), strict=True):
        if not np.isfinite(sums.gram).all():
            raise overflow(kernel)


class _FeaturePair:
    """The centred matrices of two kernels that features stand for: a `MatrixPair`."""

    def __init__(self, found: Found, estimator: Estimator) -> None:
        self.found = found
        self.n = found.sums.n
        self.hollow = estimator == "unbiased"
        self.factor = factor(self.n, estimator)
        self.value = found.sums.inner(hollow_matrices=self.hollow)

    @cached_property
    def sampled(self) -> tuple[SampledRows, SampledRows]:
        """Features of the sampled rows."""
        features, sums, rows = self.found.features, self.found.sums, self.found.rows
        return SampledRows.of(features.x, sums.x, rows), SampledRows.of(features.y, sums.y, rows)

    @property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""
        largest = [float(one.diagonal.max()) for one in self.sampled]
        return tie_tolerance(largest[0], self.n, largest[1] * self.n)

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of both matrices; the cubic traces are exact but for a share of 1/n."""
        x, y = self.sampled
        sums = self.found.sums
        a, b = (feature_invariants(*side, hollow=self.hollow) for side in ((sums.x, x), (sums.y, y)))
        return a, b, True

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order."""
        sums = self.found.sums
        return (
            first_feature_invariants(sums.x, hollow=self.hollow),
            first_feature_invariants(sums.y, hollow=self.hollow),
        )

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of both matrices, and whether all are exact."""
        sums = self.found.sums
        a, b = (feature_spectrum(side, hollow=self.hollow) for side in (sums.x, sums.y))
        return a, b, not self.hollow

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2, scaled up from the sampled rows."""
        x, y = self.sampled
        product = x.entries(self.found.sums.x, hollow=self.hollow)
        product *= y.entries(self.found.sums.y, hollow=self.hollow)
        return x.scaled_pairs(float(np.vdot(product, product)), self.n)

    def relabelled(self, at_least: int) -> Array:
        """Refuse: the features of no row are held."""
        del at_least
        raise NotImplementedError

    def degenerate(self) -> UndecidedError:
        """Return the error for kernels that cannot tell rows apart."""
        return degenerate_pair(*self.found.kernels)
