"""What the nulls need to know of a kernel matrix: its centring, its invariants and its eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.moments import Invariants
from kerntest.inference.nulls.spectral import Spectrum, completed
from kerntest.matrices.factor import LowRank, centred_factor, kernel_factor, low_rank
from kerntest.matrices.matrix import Centring, Sweep, sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.statistic import LabelMatrix
    from kerntest.kernels.base import Array, Kernel, Points

# Up to this many rows tr A^3 is computed exactly, from three sweeps with as many vectors as there are rows.
EXACT_TRACE_ROWS = 2000
# Random vectors for tr A^3 beyond: so many find the leading part of the matrix, and as many again measure the rest.
PROBES = 60
PROBE_STREAM = 2
# A factor serves for tr A^3 where the matrix of one column is of so low a rank, to this share of its trace.
LARGEST_RANK = 400
FACTOR_TOLERANCE = 1e-13
# The cubes cost q^3 products a row: more than the n kernel values that they save beyond so many per row.
CUBES_PER_ROW = 40
# A cubic trace with a doubt beyond this share of |A|^3 is computed otherwise.
CANCELLED = 1e-10


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
    """Return the invariants of a centred kernel matrix, U(K) where it is `hollow`, else HKH, and whether tr A^3 is exact.

    Cost: of a matrix of low rank r, such as that of a smooth kernel on one column, O(n r^3) time, exact; where the
    rank is some hundreds, O(n^2 + n r^2) for one column. Of others, O(n^3) time up to 2,000 rows; beyond, three sweeps of
    O(n^2 (p + 120)) time and O(120 n) memory. The estimate is Hutch++ (Meyer et al. 2021): the part of the matrix in the
    span of A S, for random signs S, exactly, and random signs for the rest.
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


def label_invariants(label: LabelMatrix) -> Invariants:
    """Return the invariants of a centred label matrix: HLH is of one column."""
    n = label.n_x + label.n_y
    column = np.repeat([label.n_y / n, -label.n_x / n], [label.n_x, label.n_y])[:, None]
    factor = LowRank(column, np.square(column[:, 0]), 0.0)
    return _of_hollow(factor) if label.hollow else _of_double_centred(factor)


def low_rank_invariants(factor: LowRank, *, hollow: bool) -> Invariants | None:
    """Return the invariants of the centring of a kernel matrix, HKH = G G' or U(K). Cost: O(n r^3) time, O(n r) memory.

    With M = W C W' for W of shape (n, q), and D its diagonal:

        sum_ij M_ij^2 = tr(N N),  tr M^3 = tr(N N N)    for N = C W'W
        sum_ij M_ij^3 = sum_abc T_abc^2                 for T_abc = sum_i W_ia W_ib W_ic and C = I, signs elsewhere

    HKH = G G' is one such matrix. Its U-centring A is another but for its diagonal, which is zero: with the diagonal d of
    G G' and row means r = -d / (n - 2), A = G G' - r 1' - 1 r' + g 1 1' beside it. None where a sweep over the whole
    matrix costs less, or where centring takes nearly all of the matrix away and the factor has too few digits left.
    """
    n, rank = factor.columns.shape
    if rank**3 > CUBES_PER_ROW * n:
        return None
    if not hollow:
        return _of_double_centred(factor)
    found = _of_hollow(factor)
    doubt = trace_cube(factor, hollow=True)[1]
    return found if doubt <= CANCELLED * max(found.trace_square, 0.0) ** 1.5 else None


def trace_cube(factor: LowRank, *, hollow: bool) -> tuple[float, float]:
    """Return tr A^3 of the centring of a kernel matrix, and how far rounding can move it. Cost: O(n r^2) time."""
    eps = float(np.finfo(np.float64).eps)
    if not hollow:
        S = factor.columns.T @ factor.columns
        cube = float(np.vdot(S @ S, S))
        return cube, eps * abs(cube)
    terms = _hollow_cube(_Hollow.of(factor))
    return sum(terms), eps * sum(abs(term) for term in terms)


def _of_double_centred(factor: LowRank) -> Invariants:
    """Return the invariants of HKH = G G'."""
    G, d = factor.columns, factor.diagonal
    S = G.T @ G
    return Invariants(
        trace=float(d.sum()),
        trace_square=float(np.vdot(S, S)),
        diagonal_square=float(d @ d),
        diagonal_cube=float((d**3).sum()),
        # sum_i d_i sum_j A_ij^2 with sum_j A_ij^2 = G_i S G_i'.
        diagonal_with_square=float(d @ np.einsum("ir,ir->i", G @ S, G)),
        diagonal_form=float(np.square(G.T @ d).sum()),
        trace_cube=trace_cube(factor, hollow=False)[0],
        entry_cubes=_entry_cubes(G, np.ones(G.shape[1])),
    )


def _of_hollow(factor: LowRank) -> Invariants:
    """Return the invariants of the U-centring, whose diagonal is zero."""
    A = _Hollow.of(factor)
    square = float(np.trace(A.N @ A.N)) - float(A.diagonal @ A.diagonal)
    cube = sum(_hollow_cube(A))
    values, vectors = np.linalg.eigh(A.C[-2:, -2:])
    signed = np.column_stack([A.W[:, :-2], A.W[:, -2:] @ (vectors * np.sqrt(np.abs(values)))])
    signs = np.concatenate([np.ones(A.W.shape[1] - 2), np.sign(values)])
    entry_cubes = _entry_cubes(signed, signs) - float((A.diagonal**3).sum())
    return Invariants(0.0, square, 0.0, 0.0, 0.0, 0.0, cube, entry_cubes)


@dataclass(frozen=True, slots=True, eq=False)
class _Hollow:
    """U(K) = W C W' minus its diagonal; N = C W'W."""

    W: Array
    C: Array
    N: Array
    diagonal: Array

    @classmethod
    def of(cls, factor: LowRank) -> _Hollow:
        """Return it from HKH = G G'."""
        n, rank = factor.columns.shape
        row = -factor.diagonal / (n - 2)
        grand = float(row.sum()) / (n - 1)
        # r 1' = (r t)(1/t)', with both of one length: where all entries are tiny, sums of cubes of r +- 1 would cancel.
        length = float(np.linalg.norm(row))
        t = np.sqrt(np.sqrt(n) / length) if length > 0 else 1.0
        W = np.column_stack([factor.columns, row * t, np.full(n, 1.0 / t)])
        C = np.eye(rank + 2)
        C[rank:, rank:] = [[0.0, -1.0], [-1.0, grand * t**2]]
        return cls(W, C, C @ (W.T @ W), factor.diagonal - 2.0 * row + grand)


def _hollow_cube(A: _Hollow) -> tuple[float, float, float]:
    """Return the terms of tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3, with (M^2)_ii = W_i N C W_i'."""
    on_square = np.einsum("ir,ir->i", A.W @ (A.N @ A.C), A.W)
    return (
        float(np.trace(A.N @ A.N @ A.N)),
        -3.0 * float(on_square @ A.diagonal),
        2.0 * float((A.diagonal**3).sum()),
    )


def _entry_cubes(W: Array, signs: Array) -> float:
    """Return sum_ij M_ij^3 for M = W diag(signs) W'.

    That is sum_abc s_a s_b s_c T_abc^2, T_abc = sum_i W_ia W_ib W_ic. T has no order: of each a only b, c >= a are
    computed, and stand for all orders of the three.
    """
    across = np.ascontiguousarray(W.T)
    total = 0.0
    for a, (column, sign) in enumerate(zip(across, signs, strict=True)):
        squares = np.square((across[a:] * column) @ across[a:].T)
        squares *= sign * np.outer(signs[a:], signs[a:])
        # Three orders of each (b, c), or of the (a, c) that are met twice; one of (a, a, a).
        squares[1:, 1:] *= 3.0
        squares[0, 1:] *= 1.5
        squares[1:, 0] *= 1.5
        total += float(squares.sum())
    return total
