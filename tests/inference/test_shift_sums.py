"""Sums over all cyclic relabellings of a label against the textbook statistic of every relabelled data set."""

import naive
import numpy as np
import pytest
from catalogue_kernels import CATEGORIES, GROUPED, NUMERIC, UNBOUND, kernel_of, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.inference import shifts
from kerntest.inference.relabelling import shifted_statistics
from kerntest.inference.shifts import circle_length, orders_needed, shift_sums
from kerntest.inference.statistic import discrepancy, label_matrix
from kerntest.kernels.base import Points
from kerntest.kernels.catalogue import KERNELS
from kerntest.kernels.columns import bind
from kerntest.kernels.text import parse_kernel
from kerntest.matrices import lags
from kerntest.matrices.lags import KernelStack

ESTIMATORS = ("unbiased", "biased")


def labels_of(n_x, n_y, seed):
    return np.random.default_rng(seed).permutation(np.repeat([1, 0], [n_x, n_y]).astype(np.uint8))


def relabelled(kernels, points, labels, *, estimator="unbiased", circle=None, orders=1, seed=0, threads=1):
    """Return the estimates of MMD^2 under every relabelling, shape (F, orders, circle), and the labels of each order.

    The label is a variable with a linear kernel: MMD is HSIC with it. Unlike the test itself this keeps the order of
    the rows: the oracle needs no undoing of it.
    """
    n, rng = len(points), np.random.default_rng(seed)
    circle = circle or n
    places = [np.arange(n), *(rng.permutation(n) for _ in range(orders - 1))]
    sums = shifted_statistics(
        [(points, kernels)],
        [(Points.of(labels.astype(float)), [kernel_of("linear")])],
        places[0],
        places,
        circle=circle,
        estimator=estimator,
        engine=LocalEngine(threads),
    )
    factor = label_matrix(int(labels.sum()), int((1 - labels).sum()), estimator).factor
    return factor * sums[:, 0].reshape(len(kernels), orders, circle), [labels[place] for place in places]


def naive_relabelled(K, labellings, circle, estimator):
    statistic = naive.mmd2[estimator]
    return [
        [statistic(K, naive.shifted(list(labels), circle, shift)) for shift in range(circle)] for labels in labellings
    ]


def assert_equal_to_rounding(found, expected, K):
    assert_close(found, expected, scale=np.abs(K).max())


def test_every_kernel_of_the_catalogue_is_here():
    assert {
        kernel.name for text in UNBOUND if isinstance((kernel := parse_kernel(text)), tuple(KERNELS.values()))
    } == set(KERNELS) - {"additive"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", [*UNBOUND, *GROUPED])
def test_every_relabelling_equals_the_naive_statistic(text, estimator):
    n, n_x = 13, 6
    points, labels = mixed_points(n, 3), labels_of(n_x, n - n_x, 4)
    K = naive_matrix(text, n, 3)
    found, labellings = relabelled([kernel_of(text)], points, labels, estimator=estimator, orders=2)
    assert_equal_to_rounding(found[0], naive_relabelled(K, labellings, n, estimator), K)


SIZES = [(2, 2), (2, 3), (3, 2), (5, 5), (5, 6), (2, 17), (17, 2), (8, 16), (11, 12), (16, 16)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_all_sizes_and_every_length_of_the_circle(n_x, n_y, estimator):
    n = n_x + n_y
    points, labels = mixed_points(n, n), labels_of(n_x, n_y, n)
    K = naive_matrix("polynomial(3)", n, n)
    for circle in {n, n - 1, max(n - 5, 2), max(n // 2, 2)}:
        found, labellings = relabelled(
            [kernel_of("polynomial(3)")], points, labels, estimator=estimator, circle=circle, orders=3
        )
        assert_equal_to_rounding(found[0], naive_relabelled(K, labellings, circle, estimator), K)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.tuples(st.integers(2, 12), st.integers(2, 12)),
    estimator=st.sampled_from(ESTIMATORS),
    orders_and_left_over=st.tuples(st.integers(1, 4), st.integers(0, 6)),
    tile=st.integers(1, 300),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_sizes_orders_and_tiles(sizes, estimator, orders_and_left_over, tile, seed):
    (n_x, n_y), (orders, left_over) = sizes, orders_and_left_over
    n = n_x + n_y
    circle = max(n - left_over, 2)
    points, labels = mixed_points(n, seed), labels_of(n_x, n_y, seed)
    kernels = [kernel_of("gaussian(1.5)"), kernel_of("linear")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lags, "TILE_ENTRIES", tile)
        found, labellings = relabelled(
            kernels, points, labels, estimator=estimator, circle=circle, orders=orders, seed=seed
        )
    for kernel, values in zip(kernels, found, strict=True):
        K = kernel(points)
        assert_equal_to_rounding(values, naive_relabelled(K.tolist(), labellings, circle, estimator), K)


def statistics(K, members, estimator):
    """Return the estimates for labels in the rows of `members`, by matrix products."""
    a, b = members.astype(float), 1.0 - members
    n_x, n_y = a.sum(axis=1), b.sum(axis=1)
    d = np.diag(K) if estimator == "unbiased" else np.zeros(len(K))
    less = 1 if estimator == "unbiased" else 0
    xx = np.einsum("ri,ri->r", a @ K, a) - a @ d
    yy = np.einsum("ri,ri->r", b @ K, b) - b @ d
    return xx / (n_x * (n_x - less)) + yy / (n_y * (n_y - less)) - 2 * np.einsum("ri,ri->r", a @ K, b) / (n_x * n_y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n", "circle"), [(300, 300), (401, 401), (443, 284)])
def test_several_blocks_of_lags_and_of_fixed_rows(n, circle, estimator):
    points, labels = mixed_points(n, n), labels_of(n // 3, n - n // 3, n)
    blocks = lags.plan_blocks(circle, n - circle)
    assert len(blocks) > 1
    for text in ("laplacian(0.7)*hamming(2)", "price, depth: gaussian(1.5); city: delta; *: hamming(2) + linear"):
        kernel = bind(parse_kernel(text), NUMERIC, CATEGORIES).kernel
        found, labellings = relabelled([kernel], points, labels, estimator=estimator, circle=circle, orders=2)
        for order, labels_here in enumerate(labellings):
            members = np.array([naive.shifted(labels_here, circle, shift) for shift in range(0, circle, 7)])
            K = kernel(points)
            assert_equal_to_rounding(found[0, order, ::7], statistics(K, members, estimator), K)


def test_a_family_gives_what_its_members_give():
    points, labels = mixed_points(30, 1), labels_of(11, 19, 1)
    kernels = [kernel_of(text) for text in UNBOUND]
    together, _ = relabelled(kernels, points, labels, circle=27, orders=2)
    for kernel, values in zip(kernels, together, strict=True):
        assert_close(relabelled([kernel], points, labels, circle=27, orders=2)[0][0], values, share=SAME_MACHINE)


def test_orders_beyond_what_is_held_are_done_in_further_passes(monkeypatch):
    points, labels = mixed_points(40, 1), labels_of(15, 25, 1)
    kernels = [kernel_of("gaussian(1.5)")]
    at_once, _ = relabelled(kernels, points, labels, circle=36, orders=7)
    monkeypatch.setattr(shifts, "HELD_ENTRIES", 2 * 36 * 19)
    in_passes, _ = relabelled(kernels, points, labels, circle=36, orders=7)
    assert_close(in_passes, at_once, scale=1.0)


def test_progress_covers_all_passes(monkeypatch):
    points, rng = mixed_points(300, 1), np.random.default_rng(0)
    blocks = len(lags.plan_blocks(300, 0))
    monkeypatch.setattr(shifts, "HELD_ENTRIES", 2 * 300 * 128)
    source, places = (points, [kernel_of("linear")]), [rng.permutation(300) for _ in range(5)]
    calls = []
    shift_sums(
        KernelStack([source], places[:1], 300),
        KernelStack([source], places, 300),
        n=300,
        circle=300,
        orders=5,
        engine=LocalEngine(2),
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(done, 3 * blocks) for done in range(1, 3 * blocks + 1)]


def test_the_same_on_any_number_of_threads():
    points, labels = mixed_points(700, 1), labels_of(300, 400, 1)
    kernels = [kernel_of("gaussian(1.5)"), kernel_of("laplacian(0.7)")]
    one, _ = relabelled(kernels, points, labels, circle=650, orders=2)
    several, _ = relabelled(kernels, points, labels, circle=650, orders=2, threads=3)
    assert_close(several, one, share=SAME_MACHINE)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", ["gaussian(1.5)", "polynomial(3)", "normalise(polynomial(2))", "delta"])
def test_the_first_sum_is_the_statistic_of_the_data(text, estimator):
    points, labels = mixed_points(37, 5), labels_of(14, 23, 5)
    kernel = kernel_of(text)
    found = discrepancy(kernel, points, labels, LocalEngine(1))
    first = relabelled([kernel], points, labels, estimator=estimator, circle=32)[0][0, 0, 0]
    assert_close(first, getattr(found, estimator), scale=kernel(points).max())


@given(n=st.integers(4, 100_000))
def test_circle_length(n):
    length = circle_length(n)
    assert n * 0.98 < length <= n
    if n <= shifts.SMALL_CIRCLE:
        assert length == n
    else:
        rest = length
        for prime in range(2, shifts.LARGEST_FACTOR + 1):
            while rest % prime == 0:
                rest //= prime
        assert rest == 1


@pytest.mark.parametrize(("n", "length"), [(512, 512), (521, 520), (10_007, 10_000), (1009, 1008), (529, 528)])
def test_circle_length_of_some_primes(n, length):
    assert circle_length(n) == length


@given(relabellings=st.integers(1, 10**6), circle=st.integers(2, 10**5))
def test_orders_needed_is_the_fewest_that_are_enough(relabellings, circle):
    orders = orders_needed(relabellings, circle)
    assert (orders - 1) * circle < relabellings <= orders * circle


@given(circle=st.integers(2, 40_000), fixed=st.integers(0, 400))
def test_blocks_cover_every_line_once(circle, fixed):
    blocks = lags.plan_blocks(circle, fixed)
    for kind, lines in (("lags", circle // 2 + 1), ("fixed", fixed)):
        covered = [
            line for block in blocks if block.kind == kind for line in range(block.start, block.start + block.count)
        ]
        assert covered == list(range(lines))
    assert all(0 < block.count <= 128 for block in blocks)
    assert blocks == lags.plan_blocks(circle, fixed)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_the_label_matrix_is_the_centred_label(n_x, n_y, estimator):
    labels = labels_of(n_x, n_y, 1)
    matrix = label_matrix(n_x, n_y, estimator)
    expected = naive.centred[estimator](naive.label_gram(labels.tolist()))
    B = matrix.between[labels[:, None] + labels[None, :]]
    np.fill_diagonal(B, matrix.diagonal[labels])
    assert_close(B, expected)
    assert_close(matrix.squared_norm, naive.matrix_inner(expected, expected))
    assert_close(matrix.factor, naive.identity_factor(n_x, n_y, estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_mmd_is_hsic_with_the_label(n_x, n_y, estimator):
    """The identity that the whole engine rests on, in the oracle alone."""
    labels = labels_of(n_x, n_y, 2).tolist()
    K = naive_matrix("polynomial(3)", n_x + n_y, 2)
    A, B = naive.centred[estimator](K), naive.centred[estimator](naive.label_gram(labels))
    expected = naive.identity_factor(n_x, n_y, estimator) * naive.matrix_inner(A, B)
    assert_close(naive.mmd2[estimator](K, labels), expected, scale=np.abs(K).max())
