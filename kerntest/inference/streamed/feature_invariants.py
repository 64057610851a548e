"""The invariants of the kernel matrix that features stand for, from sums over all rows and from a sample of them.

With S = sum_i g_i g_i' over the centred features, d = |g|^2, and HKH = G G':

    tr HKH = tr S,  sum_ij (HKH)_ij^2 = |S|^2,  tr (HKH)^3 = tr S^3,  sum_ij d_i (HKH)_ij d_j = |sum_i d_i g_i|^2

come from the sums alone, exactly. What is left, sums of cubes of single entries and with them of d, has a share of
order 1/n in the third moment (the triangles tr A^3 have the rest): it is scaled up from sampled rows, exact where these
are all rows. The U-centring is W C W' less its diagonal D, as in `low_rank_invariants`; D too has a share of order 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.moments import Invariants
from kerntest.inference.nulls.spectral import Spectrum

if TYPE_CHECKING:
    from kerntest.inference.streamed.feature_sums import SideFeatures, SideSums
    from kerntest.kernels.base import Array, Points


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """Centred features of some of the rows, drawn at random.

    Parameters
    ----------
    features : ndarray, shape (m, r)
        g.
    diagonal : ndarray, shape (m,)
        d = |g|^2.
    """

    features: Array
    diagonal: Array

    @classmethod
    def of(cls, side: SideFeatures, sums: SideSums, rows: Points) -> SampledRows:
        """Return the rows with the mean of all rows taken from their features."""
        values = side(rows) - sums.mean
        return cls(values, np.einsum("ir,ir->i", values, values))

    def entries(self, sums: SideSums, *, hollow: bool) -> Array:
        """Return the entries of HKH, or of U(K), between the rows, shape (m, m); their diagonal is set to 0.

        U(K)_ij = <g_i, g_j> + (d_i + d_j) / (n - 2) - tr / ((n - 1)(n - 2)), with the trace of all n rows.
        """
        n = sums.n
        entries: Array = self.features @ self.features.T
        if hollow:
            entries += (self.diagonal[:, None] + self.diagonal) / (n - 2)
            entries -= sums.trace / ((n - 1) * (n - 2))
        np.fill_diagonal(entries, 0.0)
        return entries

    def scaled_pairs(self, total: float, n: int) -> float:
        """Return the sum over all pairs of n different rows that a sum over the sampled ones stands for."""
        m = len(self.diagonal)
        return total * (n * (n - 1)) / (m * (m - 1))

    def cubes(self, sums: SideSums, *, hollow: bool) -> float:
        """Return the sum of the cubes of the entries of HKH, or of U(K), beside the diagonal."""
        entries = self.entries(sums, hollow=hollow)
        return self.scaled_pairs(float(np.vdot(np.square(entries), entries)), sums.n)

    def scaled_rows(self, values: Array, n: int) -> float:
        """Return the sum over all n rows that a sum over the sampled ones stands for."""
        return float(values.mean()) * n


def feature_invariants(sums: SideSums, sampled: SampledRows, *, hollow: bool) -> Invariants:
    """Return the invariants of HKH, or of U(K).

    Parameters
    ----------
    sums : SideSums
        Over all n rows.
    sampled : SampledRows
        m of them.
    hollow : bool
        U(K) instead of HKH.

    Notes
    -----
    Cost: O(r^3 + m r^2 + m^2 r) time, O(m^2) memory.
    """
    return _of_hollow(sums, sampled) if hollow else _of_double_centred(sums, sampled)


def first_feature_invariants(sums: SideSums, *, hollow: bool) -> Invariants:
    """Return the invariants up to second order, which are exact; the others are 0."""
    S = sums.scatter
    if hollow:
        return Invariants(0.0, sums.hollow_square, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return Invariants(sums.trace, float(np.vdot(S, S)), sums.diagonal_square, 0.0, 0.0, 0.0, 0.0, 0.0)


def feature_spectrum(sums: SideSums, *, hollow: bool) -> Spectrum:
    """Return the eigenvalues of HKH that are not 0; or those of U(K), as if its diagonal were the same in every row.

    Cost: O(r^3) time.
    """
    values: Array = np.asarray(np.linalg.eigvalsh(sums.scatter), dtype=np.float64)
    if not hollow:
        return Spectrum(values, np.ones(len(values)))
    mean = sums.trace / sums.n
    rest = max(sums.n - len(values), 0)
    return Spectrum(np.append(values - mean, -mean), np.append(np.ones(len(values)), rest))


def _of_double_centred(sums: SideSums, sampled: SampledRows) -> Invariants:
    """Return the invariants of HKH = G G'."""
    n, S, d = sums.n, sums.scatter, sampled.diagonal
    cubes = sampled.scaled_rows(d**3, n)
    on_square = np.einsum("ir,ir->i", sampled.features @ S, sampled.features)
    first = first_feature_invariants(sums, hollow=False)
    return Invariants(
        trace=first.trace,
        trace_square=first.trace_square,
        diagonal_square=first.diagonal_square,
        diagonal_cube=cubes,
        diagonal_with_square=sampled.scaled_rows(d * on_square, n),
        diagonal_form=float(sums.with_diagonal @ sums.with_diagonal),
        trace_cube=float(np.vdot(S @ S, S)),
        entry_cubes=sampled.cubes(sums, hollow=False) + cubes,
    )


def _of_hollow(sums: SideSums, sampled: SampledRows) -> Invariants:
    """Return the invariants of U(K) = W C W' - D, with W = (G, row, 1)."""
    n = sums.n
    C, N = _hollow_form(sums)
    row = -sampled.diagonal / (n - 2)
    grand = -sums.trace / ((n - 2) * (n - 1))
    W = np.column_stack([sampled.features, row, np.ones(len(row))])
    D = sampled.diagonal - 2.0 * row + grand
    on_square = np.einsum("ir,ir->i", W @ (N @ C), W)
    # tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3.
    cube = float(np.trace(N @ N @ N))
    cube += -3.0 * sampled.scaled_rows(D * on_square, n) + 2.0 * sampled.scaled_rows(D**3, n)
    entry_cubes = sampled.cubes(sums, hollow=True)
    return Invariants(0.0, sums.hollow_square, 0.0, 0.0, 0.0, 0.0, cube, entry_cubes)


def _hollow_form(sums: SideSums) -> tuple[Array, Array]:
    """Return C and N = C W'W with U(K) + D = W C W', W = (G, row, 1) and row = -d / (n - 2)."""
    n, rank = sums.n, len(sums.scatter)
    grand = -sums.trace / ((n - 2) * (n - 1))
    C = np.eye(rank + 2)
    C[rank:, rank:] = [[0.0, -1.0], [-1.0, grand]]
    # Of (g, d, 1): the features are centred, so that they have no sum.
    products = np.zeros((rank + 2, rank + 2))
    products[: rank + 1, : rank + 1] = sums.gram
    products[rank, rank + 1] = products[rank + 1, rank] = sums.trace
    products[rank + 1, rank + 1] = n
    scale = np.ones(rank + 2)
    scale[rank] = -1.0 / (n - 2)
    return C, C @ (scale[:, None] * products * scale)
