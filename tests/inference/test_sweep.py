"""Products and sums of a kernel matrix in tiles, against dense algebra."""

import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.kernels.base import Points
from kerntest.matrices import passes as sweeping
from kerntest.matrices.passes import Centring, sweep

ENGINE = Engine(1)


@pytest.mark.parametrize("hollow", [None, False, True])
@pytest.mark.parametrize("n", [3, 16, 17, 90])
def test_sweep_by_dense_algebra(n, hollow, monkeypatch):
    """With small tiles, so that all kinds of tiles and, at 90 rows, several tiles a strip occur."""
    monkeypatch.setattr(sweeping, "TILE", 8 if n < 90 else 1)
    rng = np.random.default_rng(n)
    points, kernel = Points.of(rng.normal(size=(n, 2))), parse_kernel("polynomial(2)")
    vectors, weights = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    M = kernel(points)
    centring = None
    if hollow is not None:
        centring = Centring(rng.normal(size=n), 0.3, hollow=hollow)
        M = M - centring.row[:, None] - centring.row[None, :] + centring.grand
    if hollow is not False:
        np.fill_diagonal(M, 0.0)
    found = sweep(kernel, points, vectors, ENGINE, centring=centring, square_vectors=weights, cubes=True)
    assert_close(found.product, M @ vectors)
    assert_close(found.total_square, (M**2).sum())
    assert_close(found.squares, M**2 @ weights)
    assert_close(found.cubes, (M**3).sum())
    plain = sweep(kernel, points, vectors, ENGINE, centring=centring)
    assert_close(plain.product, found.product, share=SAME_MACHINE)
    assert plain.squares.shape == (n, 0)
    assert plain.cubes == 0.0


def test_sweep_is_the_same_on_any_number_of_threads():
    points = Points.of(np.random.default_rng(0).normal(size=(700, 3)))
    kernel, vectors = parse_kernel("gaussian(1)"), np.ones((700, 2))
    one, three = (
        sweep(kernel, points, vectors, Engine(threads), square_vectors=vectors, cubes=True) for threads in (1, 3)
    )
    assert_close(one.product, three.product, share=SAME_MACHINE)
    assert_close(one.squares, three.squares, share=SAME_MACHINE)
    assert_close([one.total_square, one.cubes], [three.total_square, three.cubes], share=SAME_MACHINE)
