"""Spectra on which Lanczos methods break, and directions of features."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest.engines.engine import Engine
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.matrices.factor import leading_directions
from kerntest.matrices.matrix import (
    CHECKED,
    CentredMatrix,
    GivenMatrix,
    lanczos,
    leading_eigenpairs,
    matrix_of,
)

ENGINE = Engine(2)


def gaussian(points, bandwidth):
    return CentredMatrix(matrix_of(Gaussian(bandwidth), points), ENGINE)


def given_matrix(K):
    return CentredMatrix(GivenMatrix(np.asarray(K, dtype=float)), ENGINE)


def matrices_with(*eigenvalues):
    rng = np.random.default_rng(0)
    axes = [np.linalg.qr(rng.normal(size=(len(values), len(values))))[0] for values in eigenvalues]
    return np.array([(Q * values) @ Q.T for Q, values in zip(axes, eigenvalues, strict=True)])


def started(matrices, seed=1):
    return np.random.default_rng(seed).normal(size=matrices.shape[:2])[:, None]


SPECTRA = {
    "rank one": np.r_[np.zeros(80), 1.0],
    "repeated": np.r_[np.zeros(80), 1.0, 1.0, 1.0],
    "close above many": np.r_[np.linspace(0, 1, 80), 1.0 + 1e-7],
    "close pair above a cluster": np.r_[np.full(80, 1.0), 1.0 + 1e-3, 1.0 + 1e-3 + 1e-6],
    "decay": 1.0 / np.arange(1, 101) ** 2,
    "far from zero": np.r_[np.linspace(0.6, 1.2, 99), 1.3],
    "identity": np.ones(50),
    "one": np.ones(1),
    "three": np.array([0.5, 1.0, 2.0]),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_the_largest_eigenvalue_of_operators_side_by_side(name):
    matrices = matrices_with(SPECTRA[name], 1e-3 * SPECTRA[name], 0.0 * SPECTRA[name])
    found = lanczos(lambda vectors, numbers: vectors @ matrices[numbers], started(matrices))
    assert found.values[2, 0] == 0.0
    for k, size in enumerate((1.0, 1e-3)):
        value, vector = found.values[k, 0], found.vectors[k, 0]
        assert_close(value, size * SPECTRA[name].max())
        assert_close(matrices[k] @ vector, value * vector, scale=value)
        assert_close(np.linalg.norm(vector), 1.0)


def test_operators_that_have_converged_are_applied_no_more():
    matrices, asked = matrices_with(np.r_[np.zeros(99), 1.0], np.linspace(0, 1, 100)), []

    def operator(vectors, numbers):
        asked.append(numbers.tolist())
        return vectors @ matrices[numbers]

    found = lanczos(operator, started(matrices), accuracy=1e-11)
    residuals = found.vectors @ matrices - found.values[..., None] * found.vectors
    assert np.linalg.norm(residuals, axis=2).max() < 1.1e-11
    assert asked == [[0, 1]] * CHECKED + [[1]] * (len(asked) - CHECKED)
    assert CHECKED < len(asked) < 100


def test_a_full_basis_is_condensed_and_still_converges():
    # Eigenvalues close together, blocks of two: more steps than a basis has room for.
    (A,) = matrices_with(1.0 + np.linspace(0.0, 0.02, 600))
    found = lanczos(lambda V, _: V @ A, np.random.default_rng(0).normal(size=(1, 2, 600)), 3, room=60)
    assert found.converged
    assert_close(found.values[0], 1.0 + np.linspace(0.0, 0.02, 600)[:-4:-1])


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_eigenvalues_of_any_multiplicity_are_all_found_and_no_more_than_the_rank_has(solver):
    # A circle: but for the mean, eigenvalues come in pairs; and the identity, where all are 1.
    angle = 2 * np.pi * np.arange(450) / 450
    found = leading_eigenpairs(
        gaussian(Points.of(np.column_stack([np.cos(angle), np.sin(angle)])), 0.5), 9, solver=solver
    )
    np.testing.assert_allclose(found.values[0:8:2], found.values[1:8:2], rtol=1e-9, atol=0)
    assert (found.values[0:6:2] > 1.1 * found.values[2:8:2]).all()
    ones = leading_eigenpairs(given_matrix(np.eye(450)), 60, solver=solver)
    np.testing.assert_allclose(ones.values, np.ones(60), rtol=1e-12, atol=0)
    np.testing.assert_allclose(ones.vectors.T @ ones.vectors, np.eye(60), rtol=0, atol=1e-12)
    Z = np.random.default_rng(0).normal(size=(450, 3))
    repeated = Points.of(np.repeat(np.arange(5.0), 90)[:, None])
    for matrix, rank in (
        (given_matrix(Z @ Z.T), 3),
        (gaussian(repeated, 1.0), 4),
        (given_matrix(np.ones((450, 450))), 0),
        (given_matrix([[2.0]]), 0),
    ):
        assert len(leading_eigenpairs(matrix, 10, solver=solver).values) == rank


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_directions_of_features_are_those_of_a_singular_value_decomposition(offset, monkeypatch):
    monkeypatch.setattr("kerntest.matrices.factor.BLOCK", 600)
    Z = np.random.default_rng(0).normal(size=(500, 6)) @ np.diag([3, 2, 1, 0.5, 0.1, 0.01]) + offset
    found = leading_directions(lambda part: Z[part], 500, 4, ENGINE)
    moved = Z - Z.mean(axis=0)
    _, lengths, axes = np.linalg.svd(moved, full_matrices=False)
    np.testing.assert_allclose(found.values, lengths[:4] ** 2, rtol=1e-9, atol=0)
    assert found.trace == pytest.approx((lengths**2).sum(), rel=1e-9)
    scores = moved @ found.axes
    assert (scores[np.argmax(np.abs(scores), axis=0), range(4)] > 0).all()
    np.testing.assert_allclose(np.abs(np.sum(found.axes * axes[:4].T, axis=0)), 1.0, rtol=0, atol=1e-9)
