"""What holds for every matrix, each against a double loop: blocks, products, the centred operator, its eigenpairs, factors.

It looks inside, at the floor under both wings: what a test or a learner shows of a matrix is a few sums.
"""

import functools

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from tolerances import assert_close

from kerntest.engines.engine import Engine
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.matrices.factor import kernel_factor, make_features, pivoted_factor
from kerntest.matrices.matrix import CentredMatrix, FactorMatrix, GivenMatrix, Repeated, leading_eigenpairs, matrix_of

N = 24
ENGINE = Engine(2)
NUMBERS = Points.of(np.random.default_rng(1).normal(size=(N, 3)))
# Rows that expanded squares would not tell apart: they lie within rounding of one another, far out.
FAR = Points.of(np.r_[np.random.default_rng(2).normal(size=(N - 1, 2)) * 1e-3, [[1e6, 0.0]]])


def looped(kernel, points):
    """Every entry from a pair of single rows."""
    rows = [points.take(np.array([i])) for i in range(len(points))]
    return np.array([[kernel(x, y)[0, 0] for y in rows] for x in rows])


def of_kernel(text, points):
    kernel = kernel_of(text)
    return matrix_of(kernel, points), looped(kernel, points)


def given():
    K = looped(kernel_of("laplacian(0.7)"), NUMBERS)
    return GivenMatrix(K), K


def repeated():
    origin = np.r_[np.arange(N), np.arange(N)[::-1]]
    matrix, K = of_kernel("gaussian(1.5)", NUMBERS)
    return Repeated(matrix, origin), np.array([[K[i, j] for j in origin] for i in origin])


def of_features(text):
    """Features of all rows, and the inner products of those of one row after another."""
    features = make_features(text, Gaussian(1.5), NUMBERS, 0)
    single = [features.of_block(NUMBERS.take(np.array([i])))[0] for i in range(N)]
    return FactorMatrix(features(NUMBERS, ENGINE)), np.array([[float(z @ w) for w in single] for z in single])


def low_rank():
    return FactorMatrix(kernel_factor(kernel_of("gaussian(1.5)"), NUMBERS).columns), looped(Gaussian(1.5), NUMBERS)


MATRICES = {
    "Gaussian": lambda: of_kernel("gaussian(1.5)", NUMBERS),
    "Gaussian of rows far from a crowd": lambda: of_kernel("gaussian(1.5)", FAR),
    "numbers and categories": lambda: of_kernel("gaussian(1.5)*hamming(2)", mixed_points(N, 1)),
    "Laplacian": lambda: of_kernel("laplacian(0.7)", NUMBERS),
    "polynomial": lambda: of_kernel("polynomial(2)", NUMBERS),
    "given": given,
    "repeated": repeated,
    "low-rank factor": low_rank,
    "all rows as landmarks": lambda: (of_features("nystroem:24")[0], looped(Gaussian(1.5), NUMBERS)),
    "Nystroem": lambda: of_features("nystroem:7"),
    "Fourier": lambda: of_features("fourier:40"),
}


@functools.cache
def made(name):
    return MATRICES[name]()


@pytest.fixture(params=MATRICES)
def matrix(request):
    return made(request.param)


SELECTIONS = [
    (slice(None), slice(None)),
    (slice(3, 9), slice(3, 24)),
    (np.array([4, 0, 23]), slice(None)),
    (slice(0, 5), np.array([7, 7, 1])),
    (np.array([2, 8, 8, 1]), np.array([23, 2])),
]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_blocks_are_the_entries_and_arrays_of_their_own(matrix, selection):
    matrix, K = matrix
    rows, columns = selection
    expected = K[rows][:, columns]
    found = matrix.block(rows, columns)
    assert_close(found, expected, scale=np.abs(K).max())
    out = np.full(expected.shape, np.nan)
    assert matrix.block(rows, columns, out=out) is out
    assert_close(out, expected, scale=np.abs(K).max())
    single = matrix.block(rows, columns, np.float32)
    assert single.dtype == np.float32
    if matrix.single:
        np.testing.assert_allclose(single, expected, rtol=0, atol=2e-5 * np.abs(K).max())
    found[:] = -7.0
    assert_close(matrix.block(rows, columns), expected, scale=np.abs(K).max())


@pytest.mark.parametrize("rows", [None, np.array([3, 3, 0]), np.empty(0, dtype=int)])
def test_products_and_outputs(matrix, rows, monkeypatch):
    matrix, K = matrix
    monkeypatch.setattr("kerntest.matrices.matrix.STRIP", 100)
    monkeypatch.setattr("kerntest.matrices.matrix.FEWEST_ROWS", 1)
    beta = np.where(np.arange(len(K)) % 3, np.linspace(-1, 2, len(K)), 0.0)
    chosen = np.flatnonzero(beta)
    expected = (K @ beta)[slice(None) if rows is None else rows]
    assert_close(matrix.products(chosen, beta[chosen], rows), expected, scale=len(K) * np.abs(K).max())
    assert_close(matrix.outputs(beta, rows), expected, scale=len(K) * np.abs(K).max())
    assert not matrix.outputs(np.zeros(len(K))).any()
    for ascending in (np.arange(len(K)), np.arange(1, len(K), 2), np.empty(0, dtype=int)):
        square = matrix.square(ascending)
        assert_close(square, K[np.ix_(ascending, ascending)], scale=np.abs(K).max())
        assert matrix.square(ascending, np.float32).dtype == np.float32


@pytest.mark.parametrize("kept_bytes", [0, 2**31])
@pytest.mark.parametrize("strip", [70, 2**18])
def test_the_centred_operator_is_that_of_the_doubly_centred_matrix(matrix, kept_bytes, strip, monkeypatch):
    matrix, K = matrix
    monkeypatch.setattr("kerntest.matrices.matrix.STRIP", strip)
    monkeypatch.setattr("kerntest.matrices.matrix.KEPT_BYTES", kept_bytes)
    told = []
    centred = CentredMatrix(matrix, ENGINE, progress=lambda *done: told.append(done))
    A, V = np.array(naive.doubly_centred(K.tolist())), np.random.default_rng(0).normal(size=(len(K), 3))
    scale = len(K) * np.abs(K).max()
    assert_close(centred(V), A @ V, scale=scale)
    assert_close(centred.dense(), A, scale=scale)
    assert_close(centred.row_means, K.mean(axis=1), scale=scale)
    assert_close(centred.trace, np.trace(A), scale=scale)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert all(done < total for done, total in told)


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_the_leading_eigenpairs_are_those_of_jacobi_rotations(matrix, solver):
    matrix, K = matrix
    A = naive.doubly_centred(K.tolist())
    values = np.array(naive.eigenpairs(A)[0])
    found = leading_eigenpairs(CentredMatrix(matrix, ENGINE), 4, solver=solver)
    expected = values[:4][values[:4] > 1e-12 * values[0]]
    assert found.solver == solver
    assert found.converged
    assert_close(found.values, expected, scale=values[0])
    assert_close(np.array(A) @ found.vectors, found.vectors * found.values, scale=values[0] * len(K))
    assert_close(found.vectors.T @ found.vectors, np.eye(len(expected)), scale=1.0, condition=1e3)
    assert_close(found.vectors.sum(axis=0), np.zeros(len(expected)), scale=1.0)
    largest = found.vectors[np.abs(found.vectors).argmax(axis=0), np.arange(len(expected))]
    assert (largest > 0).all() or np.ptp(np.sort(np.abs(found.vectors), axis=0)[-2:], axis=0).min() < 1e-8


@pytest.mark.parametrize("tolerance", [0.3, 1e-3, 1e-9])
def test_a_pivoted_factor_leaves_so_much_of_every_diagonal(matrix, tolerance):
    matrix, K = matrix
    tolerance *= float(np.diag(K).max())
    G = pivoted_factor(matrix, tolerance, len(K), np.arange(0, len(K), 4))
    missing = K - G @ G.T
    assert (np.diag(missing) <= tolerance * (1 + 1e-6)).all()
    assert np.linalg.eigvalsh(missing).min() > -1e-12 * len(K) * np.abs(K).max()
    rank = G.shape[1]
    assert pivoted_factor(matrix, tolerance, rank - 1, np.arange(0, len(K), 4)) is None
    assert rank <= np.linalg.matrix_rank(K, tol=1e-12 * len(K) * np.abs(K).max())


def test_what_a_gaussian_matrix_makes_of_equal_rows_is_exactly_one():
    """Large costs multiply what rounding makes of the zeros."""
    rows = Points.of(np.repeat(np.random.default_rng(0).normal(size=(10, 2)) * 60, 2, axis=0))
    K = matrix_of(Gaussian(1.0), rows).block(slice(None), slice(None))
    assert (K[np.arange(0, 20, 2), np.arange(1, 20, 2)] == 1.0).all()
