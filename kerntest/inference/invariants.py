"""What the nulls need to know of a kernel matrix: its centring, its invariants and its eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.low_rank_invariants import CANCELLED, low_rank_invariants, trace_cube
from kerntest.inference.nulls.moments import Invariants
from kerntest.inference.nulls.spectral import Spectrum, completed
from kerntest.matrices.factor import centred_factor, kernel_factor, low_rank
from kerntest.matrices.matrix import Centring, Sweep, sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel, Points

# Up to this many rows tr A^3 is computed exactly, from three sweeps with as many vectors as there are rows.
EXACT_TRACE_ROWS = 2000
# Random vectors for tr A^3 beyond: so many find the leading part of the matrix, and as many again measure the rest.
PROBES = 60
PROBE_STREAM = 2
# A factor serves for tr A^3 where the matrix of one column is of so low a rank, to this share of its trace.
LARGEST_RANK = 400
FACTOR_TOLERANCE = 1e-13


def centre(kernel: Kernel, points: Points, engine: Engine, *, hollow: bool) -> tuple[Centring, Array]:
    """Return the centring of a kernel matrix, and the diagonal of what it gives. Cost: one sweep."""
    rows = sweep(kernel, points, np.ones((len(points), 1)), engine).product[:, 0]
    return _centring(kernel, points, rows, hollow=hollow)


def _centring(kernel: Kernel, points: Points, rows: Array, *, hollow: bool) -> tuple[Centring, Array]:
    """Return the centring and the centred diagonal of a matrix with these row sums, its diagonal left out."""
    n = len(points)
    if hollow:
        centring = Centring(rows / (n - 2), float(rows.sum()) / ((n - 1) * (n - 2)), hollow=True)
        return centring, np.zeros(n)
    on_diagonal = kernel.diagonal(points)
    means = (rows + on_diagonal) / n
    centring = Centring(means, float(means.mean()), hollow=False)
    return centring, on_diagonal - 2.0 * means + centring.grand


def first_invariants(kernel: Kernel, points: Points, engine: Engine, *, hollow: bool) -> Invariants:
    """Return the invariants up to second order; the others are 0. Cost: two sweeps of O(n^2 p / 2) time."""
    centring, diagonal = centre(kernel, points, engine, hollow=hollow)
    swept = sweep(kernel, points, np.zeros((len(points), 0)), engine, centring=centring)
    return Invariants(float(diagonal.sum()), swept.total_square, float(diagonal @ diagonal), 0.0, 0.0, 0.0, 0.0, 0.0)


def kernel_invariants(
    kernel: Kernel,
    points: Points,
    engine: Engine,
    *,
    hollow: bool,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Invariants, bool]:
    """Return the invariants of a centred kernel matrix, and whether tr A^3 is exact.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n >= 4 rows.
    engine : Engine
    hollow : bool
        U-centring (zero diagonal, for the unbiased estimator) instead of HKH.
    seed : int
        Of the random vectors that estimate tr A^3 beyond 2,000 rows.
    progress : callable, optional

    Notes
    -----
    Cost: of a matrix of low rank r, such as that of a smooth kernel on one column, O(n r^3) time, exact; where the
    rank is some hundreds, O(n^2 + n r^2) for one column. Of others, O(n^3) time up to 2,000 rows; beyond, three sweeps of O(n^2 (p + 120)) time and O(120 n) memory. The estimate is
    Hutch++ (Meyer et al. 2021): the part of the matrix in the span of A S, for random signs S, exactly, and random
    signs for the rest.
    """
    n = len(points)
    factor = low_rank(kernel, points)
    by_factor = None if factor is None else low_rank_invariants(factor, hollow=hollow)
    if by_factor is not None:
        return by_factor, True
    centring, diagonal = centre(kernel, points, engine, hollow=hollow)

    def times(vectors: Array) -> Sweep:
        ones, together = np.ones((n, 1)), np.column_stack([vectors, diagonal])
        return sweep(
            kernel, points, together, engine, centring=centring, square_vectors=ones, cubes=True, progress=progress
        )

    swept, cube, exact = _of_one_column(kernel, points, times, hollow=hollow)
    if swept is None and n <= EXACT_TRACE_ROWS:
        swept = times(np.eye(n))
        A = swept.product[:, :n]
        cube, exact = float(np.einsum("ij,ij->", A @ A, A)), True
    elif swept is None:
        swept, cube = _by_probes(times, n, seed)
    invariants = Invariants(
        trace=float(diagonal.sum()),
        trace_square=swept.total_square,
        diagonal_square=float((diagonal**2).sum()),
        diagonal_cube=float((diagonal**3).sum()),
        diagonal_with_square=float(diagonal @ swept.squares[:, 0]),
        diagonal_form=float(diagonal @ swept.product[:, -1]),
        trace_cube=cube,
        entry_cubes=swept.cubes,
    )
    return invariants, exact


def _by_probes(times: Callable[[Array], Sweep], n: int, seed: int) -> tuple[Sweep, float]:
    """Return a sweep and the estimate of tr A^3 by Hutch++."""
    rng = np.random.default_rng((seed, PROBE_STREAM))
    swept = times(_signs(rng, n))
    basis = np.linalg.qr(swept.product[:, :-1])[0]
    probes = _signs(rng, n)
    probes -= basis @ (basis.T @ probes)
    once = times(np.column_stack([basis, probes])).product[:, :-1]
    twice = times(once).product[:, :-1]
    forms = np.einsum("ij,ij->j", once, twice)
    return swept, float(forms[:PROBES].sum() + forms[PROBES:].mean())


def _of_one_column(
    kernel: Kernel, points: Points, times: Callable[[Array], Sweep], *, hollow: bool
) -> tuple[Sweep | None, float, bool]:
    """Return a sweep and tr A^3 from a factor of low rank, where one column has one with enough digits; else None."""
    n = len(points)
    if points.numeric.shape[1] + points.codes.shape[1] > 1:
        return None, 0.0, False
    factor = kernel_factor(kernel, points, tolerance=FACTOR_TOLERANCE, most=min(LARGEST_RANK, n))
    if not factor.complete:
        return None, 0.0, False
    swept = times(np.empty((n, 0)))
    cube, doubt = trace_cube(centred_factor(factor), hollow=hollow)
    if doubt > CANCELLED * swept.total_square**1.5:
        # Centring takes nearly all of the matrix away: the factor has too few digits left.
        return None, 0.0, False
    return swept, cube, True


def kernel_spectrum(
    kernel: Kernel,
    points: Points,
    engine: Engine,
    *,
    hollow: bool,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Spectrum, bool]:
    """Return the eigenvalues of a centred kernel matrix, and whether they are all exact.

    Parameters
    ----------
    kernel, points, engine, hollow, seed, progress
        As in `kernel_invariants`.

    Notes
    -----
    Cost: O(n^3) time and n^2 memory up to 2,000 rows. Beyond, the leading 60 eigenvalues by one step of randomised
    subspace iteration (Halko et al. 2011), the rest stood for by one value with their sum and sum of squares: three
    sweeps of O(n^2 (p + 60)) time.
    """
    n = len(points)
    centring, diagonal = centre(kernel, points, engine, hollow=hollow)
    exact = n <= EXACT_TRACE_ROWS

    def times(vectors: Array) -> Sweep:
        return sweep(kernel, points, vectors, engine, centring=centring, progress=progress)

    if exact:
        values: Array = np.asarray(np.linalg.eigvalsh(times(np.eye(n)).product), dtype=np.float64)
        return Spectrum(values, np.ones(n)), True
    rng = np.random.default_rng((seed, PROBE_STREAM))
    basis = np.linalg.qr(times(_signs(rng, n)).product)[0]
    swept = times(basis)
    leading: Array = np.asarray(np.linalg.eigvalsh(basis.T @ swept.product), dtype=np.float64)
    return completed(leading, float(diagonal.sum()), swept.total_square, n), False


def _signs(rng: np.random.Generator, n: int) -> Array:
    return rng.choice(np.array([-1.0, 1.0]), (n, PROBES))
