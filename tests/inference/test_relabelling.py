"""The independence statistic under every relabelling: against the textbook statistic of rows paired that way."""

import itertools
import math

import naive
import numpy as np
import pytest
from catalogue_kernels import GROUPED, UNBOUND, kernel_of, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError
from kerntest.inference import relabelling
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.relabelling import centred_matrix, relabelled_sums, shifted_statistics
from kerntest.inference.statistic import factor
from kerntest.kernels.base import Points

ENGINE = LocalEngine(1)
ESTIMATORS = ("unbiased", "biased")
SEED_X, SEED_Y = 1, 2


def orders_of(n, count, seed):
    rng = np.random.default_rng((seed, n))
    return [rng.permutation(n) for _ in range(count)]


def side(texts, n, seed):
    return [(mixed_points(n, seed), [kernel_of(text) for text in texts])]


def shifted(texts_x, texts_y, orders, circle, estimator):
    """Return the estimates for every order and shift, shape (F, G, C, circle)."""
    n = len(orders[0])
    sums = shifted_statistics(
        side(texts_x, n, SEED_X),
        side(texts_y, n, SEED_Y),
        orders[0],
        orders,
        circle=circle,
        estimator=estimator,
        engine=ENGINE,
    )
    return factor(n, estimator) * sums.reshape(len(texts_x), len(texts_y), len(orders), circle)


def expected_for(K, L, orders, circle, estimator):
    first = orders[0].tolist()
    return [
        [
            naive.hsic[estimator](K, naive.rearranged(L, naive.partners(first, order.tolist(), circle, shift)))
            for shift in range(circle)
        ]
        for order in orders
    ]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", [*UNBOUND, *GROUPED])
def test_every_shift_of_every_order_equals_the_textbook_statistic(text, estimator):
    n, circle = 7, 6
    orders = orders_of(n, 2, 1)
    K, L = naive_matrix(text, n, SEED_X), naive_matrix("laplacian(0.7)", n, SEED_Y)
    found = shifted([text], ["laplacian(0.7)"], orders, circle, estimator)[0, 0]
    expected = expected_for(K, L, orders, circle, estimator)
    assert_close(found, expected, scale=np.abs(K).max())


def of_centred(K, L, orders, circle, estimator):
    """Return the same from products of centred matrices: quick enough for more rows."""
    A, B = (np.array(naive.centred[estimator](M.tolist())) for M in (K, L))
    first = orders[0].tolist()
    found = np.empty((len(orders), circle))
    for order, shift in np.ndindex(found.shape):
        p = np.array(naive.partners(first, orders[order].tolist(), circle, shift))
        found[order, shift] = np.vdot(A, B[p][:, p]) * factor(len(K), estimator)
    return found


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(4, 22), st.integers(0, 6), st.integers(1, 3)),
    estimator=st.sampled_from(ESTIMATORS),
    counts=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_sizes_orders_and_families(sizes, estimator, counts, seed):
    n, left_over, count = sizes
    circle = max(n - left_over, 2)
    orders = orders_of(n, count, seed)
    texts = ["gaussian(1.5)", "linear", "delta", "polynomial(2)", "gaussian(1.5)*hamming(2)"]
    texts_x, texts_y = texts[: counts[0]], texts[-counts[1] :]
    found = shifted(texts_x, texts_y, orders, circle, estimator)
    x, y = mixed_points(n, SEED_X), mixed_points(n, SEED_Y)
    for f, g in np.ndindex(counts):
        K, L = kernel_of(texts_x[f])(x), kernel_of(texts_y[g])(y)
        expected = of_centred(K, L, orders, circle, estimator)
        size = np.abs(K).max() * np.abs(L).max()
        assert_close(found[f, g], expected, scale=size)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("circle", [200, 187])
def test_variables_on_columns_of_their_own_share_the_relabellings(circle, estimator):
    n = 200
    orders = orders_of(n, 2, 0)
    texts = (("gaussian(1.5)", "linear"), ("delta",), ("laplacian(0.7)",))
    first = [(mixed_points(n, seed), [kernel_of(text) for text in texts[seed]]) for seed in range(3)]
    second = [(mixed_points(n, 10 + seed), [kernel_of(text) for text in texts[seed]]) for seed in range(2)]
    sums = shifted_statistics(
        first, second, orders[0], orders, circle=circle, estimator=estimator, engine=LocalEngine(2)
    ).reshape(4, 3, 2, circle)
    left, right = (
        [(kernel, points) for points, kernels in sources for kernel in kernels] for sources in (first, second)
    )
    for f, g in np.ndindex(4, 3):
        alone = shifted_statistics(
            [(left[f][1], [left[f][0]])],
            [(right[g][1], [right[g][0]])],
            orders[0],
            orders,
            circle=circle,
            estimator=estimator,
            engine=ENGINE,
        )
        assert_close(sums[f, g].ravel(), alone[0, 0])


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("resampling", ["shifts", "random"])
def test_every_value_is_that_of_some_pairing_of_the_rows(resampling, estimator):
    """Of all 720 pairings of six rows: the observed one first, and none that is not there."""
    n = 6
    texts = "gaussian(1.5)", "polynomial(3)"
    K, L = naive_matrix(texts[0], n, SEED_X), naive_matrix(texts[1], n, SEED_Y)
    found = relabelled_sums(
        side(texts[:1], n, SEED_X),
        side(texts[1:], n, SEED_Y),
        estimator=estimator,
        relabellings=2000,
        seed=0,
        engine=ENGINE,
        resampling=resampling,
    )
    values = found.factor * found.sums[0, 0]
    assert len(values) == (2004 if resampling == "shifts" else 2000)
    assert found.orders == (334 if resampling == "shifts" else None)
    assert_close(values[0], naive.hsic[estimator](K, L))
    A, B = (naive.centred[estimator](M) for M in (K, L))
    possible = np.sort(naive.permuted_inner_products(A, B)) * found.factor
    places = np.clip(np.searchsorted(possible, values), 1, len(possible) - 1)
    nearest = np.minimum(np.abs(possible[places] - values), np.abs(possible[places - 1] - values))
    assert nearest.max() < 1e-12 * np.abs(possible).max()
    # 2,000 draws miss few of the 720: each is missed with probability exp(-2.8).
    assert len(np.unique(np.round(values / np.abs(possible).max(), 9))) > 600


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_random_permutations_one_by_one(monkeypatch, estimator):
    n = 7
    texts_x, texts_y = ("gaussian(1.5)", "linear"), ("laplacian(0.7)", "polynomial(3)", "city: delta")
    drawn = [np.arange(n), *orders_of(n, 36, 5)]
    # Batches of five, the last of them not full.
    monkeypatch.setattr(relabelling, "TOGETHER", 5)
    sums = relabelling._random_sums(
        side(texts_x, n, SEED_X),
        side(texts_y, n, SEED_Y),
        drawn,
        estimator=estimator,
        engine=LocalEngine(2),
        progress=None,
    )
    for (f, text_x), (g, text_y) in itertools.product(enumerate(texts_x), enumerate(texts_y)):
        K, L = naive_matrix(text_x, n, SEED_X), naive_matrix(text_y, n, SEED_Y)
        expected = [naive.hsic[estimator](K, naive.rearranged(L, p.tolist())) for p in drawn[:8]]
        found = factor(n, estimator) * sums[f, g]
        assert_close(found[:8], expected)
        A, B = (np.array(naive.centred[estimator](M)) for M in (K, L))
        assert_close(sums[f, g], [np.vdot(A, B[p][:, p]) for p in drawn])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_centred_matrices(estimator):
    K = kernel_of("polynomial(3)")(mixed_points(30, 1))
    kept = K.copy()
    assert_close(centred_matrix(K, estimator), naive.centred[estimator](K.tolist()))
    np.testing.assert_array_equal(K, kept)


def test_random_permutations_have_a_limit_of_memory(monkeypatch):
    monkeypatch.setattr(relabelling, "DENSE_ENTRIES", 2 * 19**2)
    options = {"estimator": "unbiased", "relabellings": 10, "seed": 0, "engine": ENGINE, "resampling": "random"}
    relabelled_sums(side(["linear"], 19, 1), side(["linear"], 19, 2), **options)
    with pytest.raises(
        UndecidedError, match=r"^random permutations of two kernels .* 20 rows are more than 19$"
    ) as caught:
        relabelled_sums(side(["linear"], 20, 1), side(["linear"], 20, 2), **options)
    assert caught.value.code == "undecided.memory"
    assert "--resampling shifts" in caught.value.hint
    with pytest.raises(UndecidedError, match=r"of 3 kernels .* 19 rows are more than 15"):
        relabelled_sums(side(["linear", "gaussian(1)"], 19, 1), side(["linear"], 19, 2), **options)


def test_the_seed_decides_which_relabellings():
    def values(seed, resampling):
        found = relabelled_sums(
            side(["linear"], 40, 1),
            side(["gaussian(1.5)"], 40, 2),
            estimator="unbiased",
            relabellings=100,
            seed=seed,
            engine=ENGINE,
            resampling=resampling,
        )
        return found.sums[0, 0]

    for resampling in ("shifts", "random"):
        assert_close(values(3, resampling), values(3, resampling), share=SAME_MACHINE)
        one, other = values(3, resampling), values(4, resampling)
        assert_close(other[0], one[0])
        assert not np.isclose(np.sort(one)[1:], np.sort(other)[1:], rtol=1e-9).all()


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("text_y", ["gaussian(1.5)", "delta"])
@pytest.mark.parametrize("text_x", ["gaussian(1.5)", "laplacian(0.01)", "linear", "polynomial(3)", "exponential(0.2)"])
def test_rounding_stays_below_the_tolerance_for_ties(text_x, text_y, offset):
    n = 240
    points = mixed_points(n, 7)
    if text_x == "exponential(0.2)" and offset:
        # Beyond the range of numbers there.
        offset = 10.0
    x, y = Points(points.numeric + offset, points.codes), Points(points.numeric[::-1, :1].round(), points.codes[::-1])
    kernels = kernel_of(text_x), kernel_of(text_y)
    order = np.arange(n)
    for estimator in ESTIMATORS:
        found = shifted_statistics(
            [(x, kernels[:1])], [(y, kernels[1:])], order, [order], circle=n, estimator=estimator, engine=ENGINE
        )[0, 0]
        # A selection of the sums in extended precision.
        K, L = (kernel(points).astype(np.longdouble) for kernel, points in zip(kernels, (x, y), strict=True))
        A, B = (extended_centring(M, estimator) for M in (K, L))
        exact = [float((A * np.roll(B, (-t, -t), axis=(0, 1))).sum()) for t in range(0, n, 13)]
        largest = [float(kernel.diagonal(points).max()) for kernel, points in zip(kernels, (x, y), strict=True)]
        # Two sums that are equal may part by as much as the errors spread.
        assert np.ptp(found[::13] - exact) < 0.75 * tie_tolerance(largest[0], n, largest[1] * n)


def extended_centring(M, estimator):
    n = len(M)
    A = M.copy()
    if estimator == "biased":
        rows = A.mean(axis=1)
        return A - rows[:, None] - rows + rows.mean()
    np.fill_diagonal(A, 0)
    rows = A.sum(axis=1)
    A += rows.sum() / ((n - 1) * (n - 2)) - (rows[:, None] + rows) / (n - 2)
    np.fill_diagonal(A, 0)
    return A


@given(n=st.integers(4, 40), relabellings=st.integers(1, 300))
@settings(max_examples=30, deadline=None)
def test_as_many_relabellings_as_were_asked_for_or_one_order_more(n, relabellings):
    found = relabelled_sums(
        side(["linear"], n, 1),
        side(["linear"], n, 2),
        estimator="biased",
        relabellings=relabellings,
        seed=0,
        engine=ENGINE,
    )
    used = found.sums.shape[2]
    assert used == found.orders * n
    assert found.orders == math.ceil(relabellings / n)
