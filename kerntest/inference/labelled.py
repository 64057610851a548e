"""The two matrices of a two-sample test, kernel and label, as the curves see them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.curves import curve_p_value
from kerntest.inference.invariants import centre, first_invariants, kernel_invariants, kernel_spectrum
from kerntest.inference.nulls.moments import Invariants, label_invariants
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.nulls.spectral import Spectrum, label_spectrum
from kerntest.inference.statistic import LabelMatrix, discrepancy, label_matrix
from kerntest.inference.verdict import Verdict, degenerate_kernel, overflow, relabel
from kerntest.matrices.matrix import sweep

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress
    from kerntest.errors import UndecidedError
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Options, Sample
    from kerntest.kernels.base import Array, Kernel


def curve_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge one kernel of a two-sample test by the curve that the null names.

    Raises
    ------
    UndecidedError
        If the kernel is degenerate, or there are too few rows for the curve.
    """
    (kernel,) = family.kernels
    n, n_x = len(sample.points), int(sample.labels.sum())
    label = label_matrix(n_x, n - n_x, options.estimator)
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    value = (found.unbiased if options.estimator == "unbiased" else found.biased) / label.factor
    if not math.isfinite(value):
        raise overflow(kernel)
    pair = _KernelAndLabel(kernel, sample, options, engine, progress, family, label, value)
    try:
        p_value, null = curve_p_value(options.null, pair, permutations=options.permutations)
    except OverflowError as error:
        raise overflow(kernel) from error
    return Verdict(p_value, kernel, found, null, None, None, ())


@dataclass(slots=True, eq=False)
class _KernelAndLabel:
    """One kernel matrix on the rows of a test, and their label: a `MatrixPair`."""

    kernel: Kernel
    sample: Sample
    options: Options
    engine: Engine
    progress: Progress | None
    family: Family
    label: LabelMatrix
    value: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.sample.points)

    @property
    def factor(self) -> float:
        """What turns <A, B> into MMD^2."""
        return self.label.factor

    @property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""
        largest = float(self.kernel.diagonal(self.sample.points).max())
        return tie_tolerance(largest, self.n, math.sqrt(self.label.squared_norm))

    @property
    def hollow(self) -> bool:
        """Whether the estimator is the unbiased one."""
        return self.options.estimator == "unbiased"

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of both matrices, and whether tr A^3 is exact."""
        invariants, exact = kernel_invariants(
            self.kernel,
            self.sample.points,
            self.engine,
            hollow=self.hollow,
            seed=self.options.seed,
            progress=self.progress,
        )
        return invariants, label_invariants(self.label), exact

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order."""
        invariants = first_invariants(self.kernel, self.sample.points, self.engine, hollow=self.hollow)
        return invariants, label_invariants(self.label)

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of both matrices, and whether those of A are all exact."""
        a, exact = kernel_spectrum(
            self.kernel,
            self.sample.points,
            self.engine,
            hollow=self.hollow,
            seed=self.options.seed,
            progress=self.progress,
        )
        return a, label_spectrum(self.label), exact

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2 from the sums of A_ij^2 by the kind of the pair."""
        n, sample = self.n, self.sample
        centring, diagonal = centre(self.kernel, sample.points, self.engine, hollow=self.hollow)
        in_x = sample.labels == 1
        sides = np.column_stack([in_x, ~in_x]).astype(np.float64)
        swept = sweep(
            self.kernel,
            sample.points,
            np.zeros((n, 0)),
            self.engine,
            centring=centring,
            square_vectors=sides,
            progress=self.progress,
        )
        squares = sides.T @ swept.squares - np.diag([(diagonal[in_x] ** 2).sum(), (diagonal[~in_x] ** 2).sum()])
        none, one, both = self.label.between
        return float(squares[0, 0] * both**2 + squares[1, 1] * none**2 + 2.0 * squares[0, 1] * one**2)

    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under so many relabellings."""
        blocks = replace(self.options, resampling="blocks")
        sums: Array = relabel((self.kernel,), self.sample, blocks, self.engine, None, relabellings=at_least).sums[0]
        return sums

    def degenerate(self) -> UndecidedError:
        """Return the error for a kernel that cannot tell rows apart."""
        return degenerate_kernel(self.family)
