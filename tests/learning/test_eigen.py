"""The leading eigenvalues of HKH, and the directions of explicit features."""

from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.kernels.base import Points
from kerntest.kernels.stationary import Gaussian, Laplacian
from kerntest.matrices.eigen import lanczos, leading_directions, leading_eigenpairs, signed
from kerntest.matrices.matrix import FEWEST_ROWS, STRIP, CentredMatrix, GivenMatrix, _edges, matrix_of

ENGINE = LocalEngine(2)


def points(n, p=4, seed=0):
    return Points.of(np.random.default_rng(seed).normal(size=(n, p)))


def gaussian(n, bandwidth=2.0, **options):
    return CentredMatrix(matrix_of(Gaussian(bandwidth), points(n)), ENGINE, **options)


def given_matrix(K):
    return CentredMatrix(GivenMatrix(np.asarray(K, dtype=float)), ENGINE)


def centring(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def same_pairs(one, two):
    """Fail unless eigenpairs agree: vectors to the accuracy over the smallest difference of eigenvalues."""
    assert_close(one.values, two.values, share=SAME_MACHINE)
    nearest = float(-np.diff(one.values).max())
    assert_close(one.vectors, two.vectors, scale=1.0, condition=one.values[0] / nearest, share=SAME_MACHINE)


def orthonormal(vectors):
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_they_are_those_of_jacobi_rotations(solver):
    rows = points(24)
    K = Gaussian(1.5)(rows)
    found = leading_eigenpairs(CentredMatrix(matrix_of(Gaussian(1.5), rows), ENGINE), 5, solver=solver)
    values, vectors = naive.eigenpairs(naive.doubly_centred(K.tolist()))
    np.testing.assert_allclose(found.values, values[:5], rtol=1e-11, atol=0)
    for mine, theirs in zip(found.vectors.T, vectors, strict=False):
        sign = np.sign(mine @ np.array(theirs))
        np.testing.assert_allclose(mine, sign * np.array(theirs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 33, 700])
def test_products_from_one_triangle_are_those_of_the_whole_matrix(n):
    matrix = gaussian(n)
    K = Gaussian(2.0)(points(n))
    vectors = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(matrix(vectors), centring(K) @ vectors, rtol=0, atol=1e-11)
    np.testing.assert_allclose(matrix.dense(), centring(K), rtol=0, atol=1e-12)
    np.testing.assert_allclose(matrix.row_means, K.mean(axis=1), rtol=1e-12, atol=0)
    assert matrix.trace == pytest.approx(np.trace(centring(K)), rel=1e-12)


def test_a_matrix_that_is_not_kept_gives_the_same(monkeypatch):
    kept = leading_eigenpairs(gaussian(600), 6, solver="lanczos")
    matrix = gaussian(600, kept_bytes=0)
    evaluated = []
    block = matrix._matrix.block
    monkeypatch.setattr(matrix._matrix, "block", lambda *args: evaluated.append(args) or block(*args))
    again = leading_eigenpairs(matrix, 6, solver="lanczos")
    assert evaluated
    same_pairs(kept, again)


def test_no_strip_is_wider_than_its_share_and_they_cover_every_row():
    for n in (1, 2, 17, 5000, 100_000):
        edges = _edges(n)
        assert edges[0][0] == 0
        assert edges[-1][1] == n
        assert all(first[1] == second[0] for first, second in pairwise(edges))
        assert all((b - a) * (n - a) <= max(STRIP, FEWEST_ROWS * (n - a)) for a, b in edges)


def test_threads_change_nothing():
    one, two = (
        leading_eigenpairs(CentredMatrix(matrix_of(Laplacian(3.0), points(900)), LocalEngine(threads)), 4)
        for threads in (1, 2)
    )
    same_pairs(one, two)


@pytest.mark.parametrize("bandwidth", [0.2, 0.7, 2.0, 50.0])
def test_lanczos_and_lapack_agree_for_flat_and_for_steep_spectra(bandwidth):
    one = leading_eigenpairs(gaussian(500, bandwidth), 10, solver="lanczos")
    two = leading_eigenpairs(gaussian(500, bandwidth), 10, solver="dense")
    assert one.converged
    np.testing.assert_allclose(one.values, two.values, rtol=0, atol=1e-11 * two.values[0])
    orthonormal(one.vectors)


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_eigenvalues_of_any_multiplicity_are_all_found(solver):
    # A circle: but for the mean, eigenvalues come in pairs; and the identity, where all are 1.
    angle = 2 * np.pi * np.arange(500) / 500
    circle = Points.of(np.column_stack([np.cos(angle), np.sin(angle)]))
    found = leading_eigenpairs(CentredMatrix(matrix_of(Gaussian(0.5), circle), ENGINE), 9, solver=solver)
    np.testing.assert_allclose(found.values[0:8:2], found.values[1:8:2], rtol=1e-9, atol=0)
    assert (found.values[0:6:2] > 1.1 * found.values[2:8:2]).all()
    ones = leading_eigenpairs(given_matrix(np.eye(450)), 60, solver=solver)
    np.testing.assert_allclose(ones.values, np.ones(60), rtol=1e-12, atol=0)
    orthonormal(ones.vectors)
    np.testing.assert_allclose(ones.vectors.sum(axis=0), 0.0, rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_no_more_are_delivered_than_the_rank_has(solver):
    Z = np.random.default_rng(0).normal(size=(450, 3))
    assert len(leading_eigenpairs(given_matrix(Z @ Z.T), 10, solver=solver).values) == 3
    repeated = Points.of(np.repeat(np.arange(5.0), 90)[:, None])
    five = CentredMatrix(matrix_of(Gaussian(1.0), repeated), ENGINE)
    assert len(leading_eigenpairs(five, 10, solver=solver).values) == 4
    assert len(leading_eigenpairs(given_matrix(np.ones((450, 450))), 3, solver=solver).values) == 0
    assert len(leading_eigenpairs(given_matrix([[2.0]]), 3, solver=solver).values) == 0


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_of_an_indefinite_matrix_the_positive_ones_are_found_and_a_negative_one_is_seen(solver):
    A = np.random.default_rng(3).normal(size=(450, 450))
    found = leading_eigenpairs(given_matrix((A + A.T) / 2), 5, solver=solver)
    exact = np.linalg.eigvalsh(centring((A + A.T) / 2))
    np.testing.assert_allclose(found.values, exact[::-1][:5], rtol=1e-10, atol=0)
    assert found.smallest < -0.9 * found.values[0]


def test_a_full_basis_is_condensed_and_still_converges():
    # Eigenvalues close together, blocks of two: more steps than a basis has room for.
    spectrum = 1.0 + np.linspace(0.0, 0.02, 599)
    Q = np.linalg.qr(np.column_stack([np.ones(600), np.random.default_rng(0).normal(size=(600, 599))]))[0][:, 1:]
    A = (Q * spectrum) @ Q.T
    start = np.random.default_rng(0).normal(size=(1, 2, 600))
    start -= start.mean(axis=2, keepdims=True)
    found = lanczos(lambda V, _: V @ A, start, 3, rank=599, room=60)
    assert found.converged
    np.testing.assert_allclose(found.values[0], spectrum[::-1][:3], rtol=1e-12, atol=0)


def test_a_vector_whose_largest_entry_is_negative_is_turned():
    turned = signed(np.array([[1.0, 1.0, 0.0], [-2.0, 2.0, 0.0]]))
    np.testing.assert_array_equal(turned, [[-1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])


@settings(deadline=None, max_examples=40)
@given(arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.floats(-3, 3, width=16)))
def test_eigenvalues_are_positive_descending_and_sum_up_to_the_trace_at_most(X):
    matrix = CentredMatrix(matrix_of(Gaussian(1.0), Points.of(X)), ENGINE)
    found = leading_eigenpairs(matrix, len(X))
    assert (found.values > 0).all()
    assert (np.diff(found.values) <= 0).all()
    assert found.values.sum() == pytest.approx(max(matrix.trace, 0.0), rel=1e-9, abs=1e-9)
    orthonormal(found.vectors)
    np.testing.assert_allclose(found.vectors.sum(axis=0), 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_directions_of_features_are_those_of_a_singular_value_decomposition(offset):
    Z = np.random.default_rng(0).normal(size=(500, 6)) @ np.diag([3, 2, 1, 0.5, 0.1, 0.01]) + offset
    found = leading_directions(lambda part: Z[part], 500, 4, ENGINE)
    moved = Z - Z.mean(axis=0)
    _, lengths, axes = np.linalg.svd(moved, full_matrices=False)
    np.testing.assert_allclose(found.values, lengths[:4] ** 2, rtol=1e-9, atol=0)
    assert found.trace == pytest.approx((lengths**2).sum(), rel=1e-9)
    scores = moved @ found.axes
    largest = scores[np.argmax(np.abs(scores), axis=0), range(4)]
    assert (largest > 0).all()
    np.testing.assert_allclose(np.abs(np.sum(found.axes * axes[:4].T, axis=0)), 1.0, rtol=0, atol=1e-9)


def test_progress_never_goes_back_and_never_beyond_its_total():
    told = []
    matrix = gaussian(700, progress=lambda done, total: told.append((done, total)))
    leading_eigenpairs(matrix, 5, solver="lanczos")
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert all(done < total for done, total in told)
    passes = len(told) // len(matrix._edges)
    assert passes * len(matrix._edges) == len(told)
    assert passes > 3


def test_lanczos_finds_multiple_eigenvalues_and_no_others_where_images_are_exhausted():
    n, rng = 26, np.random.default_rng(3)
    axes = np.linalg.qr(rng.normal(size=(n, n)))[0]
    twice = (axes * np.repeat([3.0, 2.0, 1.0, 1e-9], [2, 2, 2, n - 6])) @ axes.T
    pair, groups = np.eye(n), rng.integers(0, 8, n)
    pair[0, 1] = pair[1, 0] = 0.4
    # Eigenvalues this close to others leave images of rounding's size.
    pair[2, 3] = pair[3, 2] = 1e-11
    for K in (pair, np.eye(n), (groups[:, None] == groups) + 1e-9 * np.eye(n), (twice + twice.T) / 2):
        centred = CentredMatrix(GivenMatrix(K), ENGINE)
        exact = leading_eigenpairs(centred, n, solver="dense")
        for seed in range(2):
            for wanted in (1, 2, 3, 6, 10, 24):
                found = leading_eigenpairs(centred, wanted, solver="lanczos", seed=seed)
                assert found.converged
                np.testing.assert_allclose(found.values, exact.values[:wanted], rtol=0, atol=1e-11 * exact.values[0])
                assert found.smallest >= -1e-11 * exact.values[0]


def test_of_entries_equal_but_for_rounding_the_first_gives_the_sign():
    for off in (-1e-15, 0.0, 1e-15):
        turned = signed(np.array([[-0.5, 0.1], [0.5 + off, -0.7], [0.2, 0.7 - off]]))
        np.testing.assert_allclose(turned[:, 0], [0.5, -0.5, -0.2], rtol=0, atol=1e-14)
        np.testing.assert_allclose(turned[:, 1], [-0.1, 0.7, -0.7], rtol=0, atol=1e-14)
