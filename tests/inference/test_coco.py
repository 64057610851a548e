"""The constrained covariance against the generalised eigenvalue problem that defines it."""

import naive
import naive_coco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.explain import coco as module
from kerntest.inference.explain.coco import RELATIVE_ERROR, CrossCovariance, coco_function
from kerntest.kernels.base import Points

ENGINE = Engine(1)
KERNELS = [
    ("gaussian(1)", "gaussian(0.7)"),
    ("gaussian(20)", "gaussian(0.3)"),
    ("laplacian(1.5)", "linear"),
    ("linear", "polynomial(2)"),
    ("exponential(0.3)", "0.5*gaussian(1) + laplacian(1)"),
]
# The largest singular values of G_x' G_y from the whole matrix, and by the Lanczos method.
WAYS = {"decomposition": 10**6, "Lanczos": 0}


def coco(kernel_x, x, kernel_y, y):
    return CrossCovariance((kernel_x, kernel_y), (x, y)).functions()


def relabelled_coco(kernel_x, x, kernel_y, y, permutations, *, engine=ENGINE, progress=None):
    return CrossCovariance((kernel_x, kernel_y), (x, y), engine).relabelled(permutations, engine, progress)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setattr(module, "SMALL_RANK", WAYS[request.param])
    return request.param


def dependent(n, seed=0, p=2):
    """Return rows of x and y that depend on each other, a little."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    y = np.column_stack([np.sin(2 * x[:, 0]) + rng.normal(size=n), rng.normal(size=(n, p - 1))])
    return Points.of(x), Points.of(y)


def categories(codes):
    return Points(np.empty((len(codes), 0)), np.asarray(codes)[:, None])


def kernels(texts):
    return tuple(parse_kernel(text) for text in texts)


def permutations_of(n, count, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(count)]


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.parametrize("n", [3, 10, 120])
@pytest.mark.usefixtures("way")
def test_the_value_is_the_largest_generalised_eigenvalue(n, texts):
    (kx, ky), (x, y) = kernels(texts), dependent(n)
    assert_close(coco(kx, x, ky, y).value, naive_coco.coco(kx(x), ky(y)))


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.usefixtures("way")
def test_the_functions_are_the_generalised_eigenvectors(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    found = coco(kx, x, ky, y)
    K, L = naive_coco.doubly_centred(kx(x)), naive_coco.doubly_centred(ky(y))
    _, alpha, beta = naive_coco.solve(kx(x), ky(y))
    for ours, theirs in ((found.f, K @ alpha), (found.g, L @ beta)):
        size = np.abs(theirs).max()
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, rtol=0, atol=1e-7 * size)


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.usefixtures("way")
def test_the_functions_have_mean_zero_and_unit_norm_and_the_value_as_covariance(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    found = coco(kx, x, ky, y)
    K, L = naive_coco.doubly_centred(kx(x)), naive_coco.doubly_centred(ky(y))
    assert_close(found.alpha @ K @ found.alpha, 1.0)
    assert_close(found.beta @ L @ found.beta, 1.0)
    assert_close(K @ found.alpha, found.f, scale=np.abs(found.f).max())
    assert_close(L @ found.beta, found.g, scale=np.abs(found.g).max())
    assert_close([found.f.mean(), found.g.mean()], [0.0, 0.0], scale=1.0)
    assert_close(np.mean(found.f * found.g), found.value)
    assert_close(np.corrcoef(found.f, found.g)[0, 1], found.correlation)


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.usefixtures("way")
def test_the_coefficients_solve_both_equations_of_the_notes(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    found = coco(kx, x, ky, y)
    K, L = naive_coco.doubly_centred(kx(x)), naive_coco.doubly_centred(ky(y))
    left = [K @ L @ found.beta / 60, L @ K @ found.alpha / 60]
    right = [found.value * K @ found.alpha, found.value * L @ found.beta]
    assert_close(left, right, scale=np.abs(right).max())


def test_the_row_with_the_largest_f_has_a_positive_one_and_f_and_g_go_together():
    for seed in range(10):
        x, y = dependent(40, seed)
        found = coco(*kernels(["gaussian(1)"]), x, *kernels(["gaussian(1)"]), y)
        assert found.f[np.abs(found.f).argmax()] > 0
        assert 0 < found.correlation <= 1


def test_the_sign_of_a_function_with_two_values_of_one_size_is_that_of_the_first_row():
    codes = categories([0, 1] * 20)
    delta = parse_kernel("delta")
    assert coco(delta, codes, delta, codes).f[0] > 0
    other = categories([1, 0] * 20)
    assert coco(delta, other, delta, other).f[0] > 0


@pytest.mark.parametrize("texts", KERNELS)
def test_a_function_at_the_rows_is_that_of_the_result(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    found = coco(kx, x, ky, y)
    for kernel, points, coefficients, expected in ((kx, x, found.alpha, found.f), (ky, y, found.beta, found.g)):
        at_rows = coco_function(kernel, points, coefficients, points)
        assert_close(at_rows, expected, scale=np.abs(expected).max())


def test_a_function_elsewhere_is_its_definition():
    k = parse_kernel("gaussian(1)")
    x, y = dependent(15)
    found = coco(k, x, k, y)
    at = np.array([[0.3, -1.0], [5.0, 5.0], [0.0, 0.0]])

    def uncentred(z):
        to_rows = [naive.gaussian(row, z, 1.0) for row in x.numeric]
        return sum(a * (value - np.mean(to_rows)) for a, value in zip(found.alpha, to_rows, strict=True))

    level = np.mean([uncentred(row) for row in x.numeric])
    expected = [uncentred(z) - level for z in at]
    assert_close(coco_function(k, x, found.alpha, Points.of(at)), expected)


def test_linear_kernels_have_the_covariance():
    rng = np.random.default_rng(2)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    linear = parse_kernel("linear")
    found = coco(linear, Points.of(x), linear, Points.of(-y))
    assert_close(found.value, np.mean((x - x.mean()) * (y - y.mean())))
    assert_close(found.correlation, np.corrcoef(x, y)[0, 1])
    assert_close(np.abs(found.f), np.abs(x - x.mean()))


def test_delta_kernels_of_two_categories_have_twice_the_covariance():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 80)
    b = np.where(rng.random(80) < 0.3, a, rng.integers(0, 2, 80))
    delta = parse_kernel("delta")
    found = coco(delta, categories(a), delta, categories(b))
    assert_close(found.value, 2 * abs(np.mean((a - a.mean()) * (b - b.mean()))))
    assert_close(found.correlation, abs(np.corrcoef(a, b)[0, 1]))
    assert len(np.unique(np.round(found.f, 10))) == 2


@pytest.mark.usefixtures("way")
def test_delta_kernels_of_many_categories():
    rng = np.random.default_rng(4)
    x, y = categories(rng.integers(0, 30, 200)), categories(rng.integers(0, 12, 200))
    delta = parse_kernel("delta")
    assert_close(coco(delta, x, delta, y).value, naive_coco.coco(delta(x), delta(y)))


@pytest.mark.usefixtures("way")
def test_a_category_and_a_number():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 5, 90)
    x, y = categories(codes), Points.of(codes + rng.normal(size=90))
    kx, ky = kernels(["delta", "gaussian(1)"])
    assert_close(coco(kx, x, ky, y).value, naive_coco.coco(kx(x), ky(y)))


@pytest.mark.parametrize("text", ["gaussian(1)", "linear", "laplacian(0.3)"])
@pytest.mark.usefixtures("way")
def test_a_constant_column_has_nothing_to_do_with_any_other(text):
    kernel = parse_kernel(text)
    x, constant = dependent(40)[0], Points.of(np.full(40, 0.1))
    for points in ((x, constant), (constant, x), (constant, constant)):
        found = coco(kernel, points[0], kernel, points[1])
        assert found.value == 0
        assert found.correlation == 0
        for values in (found.f, found.g, found.alpha, found.beta):
            np.testing.assert_array_equal(values, np.zeros(40))
        relabelled = relabelled_coco(kernel, points[0], kernel, points[1], permutations_of(40, 5))
        np.testing.assert_array_equal(relabelled, np.zeros(5))


def test_a_kernel_that_is_zero_on_all_rows():
    linear = parse_kernel("linear")
    zeros = Points.of(np.zeros(10))
    assert coco(linear, zeros, linear, zeros).value == 0


@pytest.mark.usefixtures("way")
def test_a_balanced_design_has_exactly_none():
    """Every category of x with every category of y equally often."""
    a, b = np.divmod(np.arange(60), 6)
    delta = parse_kernel("delta")
    assert coco(delta, categories(a), delta, categories(b % 3)).value == 0


@pytest.mark.usefixtures("way")
def test_x_and_y_may_be_swapped():
    (kx, ky), (x, y) = kernels(["gaussian(1)", "laplacian(0.5)"]), dependent(50)
    one, other = coco(kx, x, ky, y), coco(ky, y, kx, x)
    assert_close(other.value, one.value)
    sign = np.sign(one.f @ other.g)
    assert_close(sign * other.g, one.f, scale=1.0)
    assert_close(sign * other.f, one.g, scale=1.0)
    assert_close(other.correlation, one.correlation)


@pytest.mark.usefixtures("way")
def test_the_order_of_rows_changes_the_order_of_the_functions_alone():
    (kx, ky), (x, y) = kernels(["gaussian(1)", "laplacian(0.5)"]), dependent(50)
    order = np.random.default_rng(6).permutation(50)
    one, other = coco(kx, x, ky, y), coco(kx, x.take(order), ky, y.take(order))
    assert_close(other.value, one.value)
    assert_close(other.f, one.f[order], scale=1.0)
    assert_close(other.beta, one.beta[order], scale=1.0)


def test_a_factor_of_a_kernel_is_one_of_the_value_squared():
    x, y = dependent(40)
    k = parse_kernel("gaussian(1)")
    one, other = coco(k, x, k, y), coco(parse_kernel("9*gaussian(1)"), x, k, y)
    assert_close(other.value, 3 * one.value)
    assert_close(other.correlation, one.correlation)


def test_the_value_is_at_most_the_root_of_hsic():
    """The largest singular value of an operator, and its Hilbert-Schmidt norm."""
    k = parse_kernel("gaussian(1)")
    x, y = dependent(40)
    hsic = np.sum(naive_coco.doubly_centred(k(x)) * naive_coco.doubly_centred(k(y))) / 40**2
    value = coco(k, x, k, y).value
    assert 0.5 * np.sqrt(hsic) < value <= np.sqrt(hsic)


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.usefixtures("way")
def test_relabelled_values_are_those_of_relabelled_rows(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    permutations = permutations_of(60, 9)
    found = relabelled_coco(kx, x, ky, y, permutations)
    assert_close(found, naive_coco.relabelled(kx(x), ky(y), permutations))
    again = [coco(kx, x, ky, y.take(p)).value for p in permutations]
    np.testing.assert_allclose(found, again, rtol=RELATIVE_ERROR)


@pytest.mark.parametrize("texts", KERNELS)
@pytest.mark.usefixtures("way")
def test_the_identity_gives_the_value_itself(texts):
    (kx, ky), (x, y) = kernels(texts), dependent(60)
    found = relabelled_coco(kx, x, ky, y, [np.arange(60), np.arange(60)[::-1]])
    assert_close(found[0], coco(kx, x, ky, y).value)


def test_high_ranks_are_left_to_the_lanczos_method():
    k = parse_kernel("gaussian(1)")
    x, y = dependent(200, p=6)
    permutations = permutations_of(200, 5)
    expected = naive_coco.relabelled(k(x), k(y), permutations)
    for points, ranks in (((x, y), True), ((Points.of(x.numeric[:, 0]), y), False)):
        assert CrossCovariance((k, k), points).small != ranks
    assert_close(relabelled_coco(k, x, k, y, permutations), expected)


@pytest.mark.usefixtures("way")
def test_a_kernel_near_the_identity_matrix():
    """All singular values are close to each other and far from 0."""
    k = parse_kernel("gaussian(0.8)")
    x, y = dependent(120, p=8)
    permutations = permutations_of(120, 8)
    found = relabelled_coco(k, x, k, y, permutations)
    assert_close(found, naive_coco.relabelled(k(x), k(y), permutations))


@pytest.mark.usefixtures("way")
def test_a_kernel_that_is_nearly_constant_keeps_its_digits():
    """Most of its matrix is taken away by centring; a factor to a share of the whole would be too coarse."""
    k = parse_kernel("gaussian(30)")
    x, y = dependent(200, p=4)
    assert_close(coco(k, x, k, y).value, naive_coco.coco(k(x), k(y)))


@pytest.mark.usefixtures("way")
def test_the_number_of_threads_changes_nothing():
    (kx, ky), (x, y) = kernels(["gaussian(0.5)", "laplacian(1)"]), dependent(130)
    permutations = permutations_of(130, 60)
    one = relabelled_coco(kx, x, ky, y, permutations, engine=Engine(1))
    other = relabelled_coco(kx, x, ky, y, permutations, engine=Engine(3))
    assert_close(other, one, share=SAME_MACHINE)


@pytest.mark.usefixtures("way")
def test_permutations_that_pair_equal_rows_tie():
    rng = np.random.default_rng(7)
    x, y = (Points.of(np.repeat(rng.normal(size=(30, 2)), 3, axis=0)) for _ in range(2))
    k = parse_kernel("gaussian(0.5)")
    permutations = permutations_of(90, 40)
    # Copies of a row change places on either side.
    groups = np.arange(90).reshape(30, 3)
    within = rng.permuted(groups, axis=1).ravel()
    equal = [within[p] for p in permutations] + [p[within] for p in permutations]
    found = relabelled_coco(k, x, k, y, permutations + equal).reshape(3, 40)
    np.testing.assert_allclose(found[1:], np.stack([found[0]] * 2), rtol=RELATIVE_ERROR)


def test_progress_is_told_of_every_batch_and_no_permutation_is_none():
    k = parse_kernel("gaussian(1)")
    x, y = dependent(30)
    told = []
    relabelled_coco(k, x, k, y, permutations_of(30, 150), progress=lambda done, every: told.append((done, every)))
    assert told == [(i + 1, len(told)) for i in range(len(told))]
    assert len(told) > 1
    assert relabelled_coco(k, x, k, y, []).shape == (0,)


def test_dependence_that_no_covariance_shows():
    rng = np.random.default_rng(8)
    x = rng.normal(size=300)
    k = parse_kernel("gaussian(0.5)")
    points, y = Points.of(x), Points.of(x**2 + 0.1 * rng.normal(size=300))
    observed = coco(k, points, k, y)
    others = relabelled_coco(k, points, k, y, permutations_of(300, 99))
    assert observed.value > 1.5 * others.max()
    assert observed.correlation > 0.9
    assert abs(np.corrcoef(np.abs(x), observed.f)[0, 1]) > 0.8


def test_more_rows_than_a_matrix_may_have():
    rng = np.random.default_rng(9)
    n = 5000
    x = rng.normal(size=(n, 3))
    y = x[:, :2] + rng.normal(size=(n, 2))
    linear = parse_kernel("linear")
    covariance = (x - x.mean(axis=0)).T @ (y - y.mean(axis=0)) / n
    x, y = Points.of(x), Points.of(y)
    found = coco(linear, x, linear, y)
    assert_close(found.value, np.linalg.svd(covariance)[1][0])
    assert_close(coco_function(linear, x, found.alpha, x), found.f, scale=1.0)
    p = rng.permutation(n)
    (relabelled,) = relabelled_coco(linear, x, linear, y, [p])
    assert_close(relabelled, coco(linear, x, linear, y.take(p)).value)


@pytest.mark.usefixtures("way")
def test_low_ranks_beyond_the_rows_of_a_whole_matrix(monkeypatch):
    k = parse_kernel("gaussian(1)")
    x, y = (Points.of(points.numeric[:, 0]) for points in dependent(150))
    expected = naive_coco.coco(k(x), k(y))
    monkeypatch.setattr(module, "FULL_RANK_ROWS", 40)
    found = coco(k, x, k, y)
    assert_close(found.value, expected)
    at_rows = coco_function(k, x, found.alpha, x)
    assert_close(at_rows, found.f, scale=1.0)


@pytest.mark.parametrize("most", [20, 80])
def test_beyond_that_a_high_rank_is_refused(most, monkeypatch):
    """Whether the rows that are looked at first show it (20) or all of them (80)."""
    monkeypatch.setattr(module, "FULL_RANK_ROWS", 50)
    monkeypatch.setattr(module, "MOST_COLUMNS", most)
    wide, narrow = kernels(["gaussian(1)", "laplacian(0.1)"])
    x, y = (Points.of(points.numeric[:, 0]) for points in dependent(150))
    with pytest.raises(UndecidedError, match=r"needs kernels of low rank .* rank of 'laplacian\(0.1\)'") as refusal:
        coco(wide if most == 80 else narrow, x, narrow, y)
    assert refusal.value.hint == "--statistic hsic"
    assert refusal.value.code == "undecided.coco_rank"
    with pytest.raises(UndecidedError, match="these 150 rows"):
        relabelled_coco(narrow, x, narrow, y, permutations_of(150, 2))


def test_kernels_that_are_not_positive_definite_are_refused():
    x, y = dependent(20)
    with pytest.raises(UsageError, match=r"positive definite kernels, which 'polynomial\(.*offset=-1\)' may not be"):
        coco(*kernels(["polynomial(2, offset=-1)"]), x, *kernels(["linear"]), y)


def test_a_matrix_that_is_not_positive_definite_to_rounding_is_refused(monkeypatch):
    kernel = parse_kernel("polynomial(2, offset=-1)")
    monkeypatch.setattr(type(kernel), "positive_definite", True)
    x, y = dependent(20)
    with pytest.raises(UndecidedError, match="negative eigenvalues") as refusal:
        coco(kernel, x, kernel, y)
    assert refusal.value.code == "undecided.indefinite_matrix"


def test_kernels_that_overflow_are_refused():
    x, y = dependent(20)
    huge = Points.of(x.numeric * 1e100)
    with pytest.raises(UndecidedError, match="overflows"):
        coco(*kernels(["linear"]), huge, *kernels(["linear"]), y)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=2, max_size=25),
    st.sampled_from(["gaussian(1)", "laplacian(2)", "delta", "linear"]),
    st.sampled_from([0, 10**6]),
)
def test_any_table_with_many_ties(rows, text, small):
    kernel = parse_kernel(text)
    x, y = (Points.of(np.array(column, dtype=float)) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL_RANK", small)
        found = coco(kernel, x, kernel, y)
    K, L = naive_coco.doubly_centred(kernel(x)), naive_coco.doubly_centred(kernel(y))
    # Beside the eigenvalue problem itself, which has no solution where a column is constant.
    largest = np.sqrt(np.abs(np.linalg.eigvals(K @ L)).max()) / len(rows)
    np.testing.assert_allclose(found.value, largest, rtol=1e-7, atol=1e-7)
    assert found.value <= np.sqrt(np.sum(K * L).clip(0)) / len(rows) + 1e-7
