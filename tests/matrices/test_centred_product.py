"""The product of a centred kernel matrix with another, laid out for the shifts, against whole matrices."""

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close

from kerntest.engines.engine import Engine
from kerntest.inference.nulls.moments import centre
from kerntest.inference.relabelling.shifts import shift_sums
from kerntest.matrices import passes
from kerntest.matrices.passes import Block, CentredProduct, KernelStack

ENGINE = Engine(1)


def centred_product(factor, target, order, circle):
    """Return the stack for kernels given as texts, and the matrix it stands for along the places of `order`."""
    n = len(order)
    x, y = mixed_points(n, 1), mixed_points(n, 2)
    goal = kernel_of(target)
    centring = centre(goal, y, ENGINE, hollow=True)[0]
    M = np.array(naive.u_centred(goal(y).tolist()))
    if factor is not None:
        M = M * kernel_of(factor)(x)
    rows, kernel = CentredProduct.of(goal, y, centring, None if factor is None else (kernel_of(factor), x))
    return KernelStack([(rows, (kernel,))], [order], circle, hollow=True), M[order][:, order]


def lines_of(M, block, circle):
    """Return the entries of a block by its definition."""
    rows = range(block.start, block.start + block.count)
    if block.kind == "fixed":
        return np.array([[M[circle + row, i] for i in range(circle)] for row in rows])
    return np.array([[M[i, (i + lag) % circle] for i in range(circle)] for lag in rows])


TEXTS = (None, "gaussian(1.5)", "delta", "gaussian(1.5)*hamming(2)", "polynomial(2)")


@settings(max_examples=30, deadline=None)
@given(
    circle=st.integers(2, 40),
    fixed=st.integers(0, 6),
    texts=st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS[1:])),
    count=st.integers(1, 25),
    tile=st.integers(1, 200),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_line_of_a_centred_product(*, circle, fixed, texts, count, tile, seed):
    """Odd and even circles, with and without fixed rows, in blocks and tiles of any size."""
    n = max(circle + fixed, 4)
    circle = n - fixed
    order = np.random.default_rng(seed).permutation(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "TILE_ENTRIES", tile)
        stack, M = centred_product(*texts, order, circle)
        size = np.abs(M).max()
        for kind, lines in (("lags", circle // 2 + 1), ("fixed", fixed)):
            for start in range(0, lines, count):
                block = Block(kind, start, min(count, lines - start))
                out = np.full((block.count, circle), np.nan)
                assert list(stack.lines(0, block, out)) == [0]
                assert_close(out, lines_of(M, block, circle), scale=size)
    found = stack.fixed_entries(0)
    assert found.shape == (1, fixed, fixed)
    assert_close(found[0], M[circle:, circle:], scale=size)


@pytest.mark.parametrize("factor", TEXTS)
@pytest.mark.parametrize(("n", "circle"), [(12, 12), (13, 13), (14, 11), (300, 300), (301, 286)])
def test_shifts_move_the_second_matrix_alone(n, circle, factor):
    rng = np.random.default_rng(n)
    orders = [rng.permutation(n) for _ in range(2)]
    stack, M = centred_product(factor, "laplacian(0.7)", orders[0], circle)
    moved = mixed_points(n, 3)
    kernel = kernel_of("gaussian(1.5)*hamming(2)")
    others = KernelStack([(moved, (kernel,))], orders, circle)
    sums = shift_sums(stack, others, engine=Engine(2))
    found = sums.values[0, 0]
    K, back = kernel(moved), np.argsort(orders[0])
    for order in range(2):
        for shift in (0, 1, 5, circle - 1):
            # Row i of M's places is row orders[0][i] of the data.
            p = np.array(naive.partners(orders[0].tolist(), orders[order].tolist(), circle, shift))
            expected = np.vdot(M[back][:, back], K[p][:, p])
            assert_close(found[order, shift], expected, scale=n**2 * np.abs(M).max())
