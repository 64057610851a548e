"""The Lanczos method for many operators against all their eigenvalues."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest.matrices.eigen import CHECKED, lanczos


def matrices_with(eigenvalues, seed=0):
    """Return one symmetric matrix for each row of eigenvalues."""
    rng = np.random.default_rng(seed)
    found = []
    for values in np.atleast_2d(eigenvalues):
        Q = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
        found.append((Q * values) @ Q.T)
    return np.array(found)


def leading(matrices, accuracy=1e-12, seed=1):
    start = np.random.default_rng(seed).normal(size=matrices.shape[:2])[:, None]
    return lanczos(lambda vectors, numbers: vectors @ matrices[numbers], start, accuracy=accuracy)


def assert_leading(matrices, found):
    assert_close(found.values[:, 0], np.linalg.eigvalsh(matrices)[:, -1])
    assert_close(np.linalg.norm(found.vectors[:, 0], axis=1), np.ones(len(matrices)))
    applied = found.vectors @ matrices
    assert_close(applied, found.values[..., None] * found.vectors, scale=found.values.max())


@pytest.mark.parametrize("size", [1, 2, 3, CHECKED, 17, 60, 130])
def test_random_matrices(size):
    rng = np.random.default_rng(size)
    columns = rng.normal(size=(5, size, size))
    matrices = columns @ columns.transpose(0, 2, 1)
    assert_leading(matrices, leading(matrices))


@pytest.mark.parametrize(
    "eigenvalues",
    [
        np.r_[np.zeros(80), 1.0],
        np.r_[np.zeros(80), 1.0, 1.0, 1.0],
        np.r_[np.linspace(0, 1, 80), 1.0 + 1e-7],
        np.r_[np.full(80, 1.0), 1.0 + 1e-3, 1.0 + 1e-3 + 1e-6],
        np.r_[1.0 / np.arange(1, 101) ** 2],
        np.r_[np.linspace(0.6, 1.2, 99), 1.3],
        np.ones(50),
    ],
    ids=[
        "rank one",
        "repeated",
        "close above many",
        "close pair above a cluster",
        "decay",
        "far from zero",
        "identity",
    ],
)
def test_spectra_that_are_hard_to_separate(eigenvalues):
    matrices = matrices_with([eigenvalues, eigenvalues])
    assert_leading(matrices, leading(matrices))


def test_operators_of_different_difficulty_do_not_disturb_each_other():
    eigenvalues = [np.r_[np.zeros(99), 1.0], np.linspace(0, 1, 100), np.zeros(100), 1e-6 * np.linspace(0.9, 1, 100)]
    matrices = matrices_with(eigenvalues)
    together = leading(matrices)
    assert_close(together.values[:, 0], [1.0, 1.0, 0.0, 1e-6])
    start = np.random.default_rng(1).normal(size=(4, 1, 100))
    for k, matrix in enumerate(matrices):
        alone = lanczos(lambda v, _: v @ matrix, start[k : k + 1], accuracy=1e-12)  # noqa: B023 - used at once
        assert_close(alone.values[0], together.values[k])


def test_converged_operators_are_applied_no_more():
    matrices = matrices_with([np.r_[np.zeros(99), 1.0], np.linspace(0, 1, 100)])
    asked = []

    def operator(vectors, numbers):
        asked.append(numbers.tolist())
        return vectors @ matrices[numbers]

    lanczos(operator, np.random.default_rng(0).normal(size=(2, 1, 100)), accuracy=1e-11)
    assert asked[:CHECKED] == [[0, 1]] * CHECKED
    assert asked[CHECKED:] == [[1]] * (len(asked) - CHECKED)
    assert CHECKED < len(asked) < 100


def test_a_coarser_accuracy_takes_fewer_steps_and_keeps_what_it_says():
    matrices = matrices_with(np.linspace(0, 1, 200))
    steps = {}
    for accuracy in (1e-2, 1e-6, 1e-12):
        count = []

        def operator(vectors, _, count=count):
            count.append(1)
            return vectors @ matrices[0]

        found = lanczos(operator, np.random.default_rng(0).normal(size=(1, 1, 200)), accuracy=accuracy)
        steps[accuracy] = len(count)
        residual = np.linalg.norm(found.vectors @ matrices[0] - found.values[..., None] * found.vectors)
        assert residual <= 1.01 * accuracy
    assert steps[1e-2] < steps[1e-6] < steps[1e-12] < 200
