"""Measures by singular values against dense matrices: COCO against the eigenvalue problem that defines it, KCC and KMI."""

import naive_coco
import numpy as np
import pandas as pd
import pytest
from records import assert_same
from tolerances import assert_close
from two_variables import arrays

from kerntest import hsic_test, parse_kernel
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.explain.cross_covariance import CrossCovariance
from kerntest.kernels.base import Points

MODULE = "kerntest.inference.explain.cross_covariance"
KERNELS = [
    ("gaussian(1)", "gaussian(0.7)"),
    ("gaussian(20)", "gaussian(0.3)"),
    ("laplacian(1.5)", "linear"),
    ("linear", "polynomial(2)"),
    ("exponential(0.3)", "0.5*gaussian(1) + laplacian(1)"),
]
# Rows of low rank take singular values; others the Lanczos method, with HLH whole or as its factor (of 400 rows).
CASES = [(n, p, kernels) for kernels in KERNELS for n, p in ((4, 2), (12, 1), (40, 2), (130, 8))]
CASES += [(400, 2, KERNELS[0])]


def coco_of(x, y, kernels, statistic="coco", **options):
    kernel_x, kernel_y = kernels
    options = {"kernel_x": kernel_x, "kernel_y": kernel_y, "scale": "none", "permutations": 20, "seed": 1} | options
    return hsic_test(x, y, statistic=statistic, **options)


def relabelled(K, L, permutations, seed, measure=naive_coco.coco):
    """Return the value, and those of random permutations of the rows of y."""
    n, rng = len(K), np.random.default_rng((seed, 0))
    drawn = [np.arange(n), *(rng.permutation(n) for _ in range(permutations - 1))]
    return naive_coco.relabelled(K, L, drawn, measure)


def functions(path):
    table = pd.read_parquet(path)
    return table["f"].to_numpy(), table["g"].to_numpy()


@pytest.mark.parametrize(("n", "p", "kernels"), CASES)
def test_value_functions_and_null_are_those_of_the_eigenvalue_problem(n, p, kernels, tmp_path):
    x, y = arrays(n, p, 2, strength=0.3, seed=n + p)
    permutations = 4 if n > 100 else 20
    found = coco_of(x, y, kernels, permutations=permutations, witness=tmp_path / "w.parquet")
    K, L = (parse_kernel(text)(side) for text, side in zip(kernels, (x, y), strict=True))
    values = relabelled(K, L, permutations, 1)
    assert_close(found.coco, values[0])
    assert_close([found.null.mean, found.null.standard_deviation], [values.mean(), values.std()], scale=values[0])
    assert found.p_value == np.mean(values >= values[0] * (1 - 1e-9))
    f, g = functions(tmp_path / "w.parquet")
    _, alpha, beta = naive_coco.solve(K, L)
    for ours, theirs in ((f, naive_coco.doubly_centred(K) @ alpha), (g, naive_coco.doubly_centred(L) @ beta)):
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, rtol=0, atol=1e-6 * np.abs(theirs).max())
    assert_close([f.mean(), g.mean()], [0.0, 0.0], scale=1.0)
    assert_close(np.mean(f * g), found.coco)
    assert_close(np.corrcoef(f, g)[0, 1], found.witness_correlation)
    # The row with the largest |f| has a positive one.
    assert f[np.abs(f).argmax()] > 0


def test_a_kernel_that_is_nearly_constant_keeps_its_digits():
    """Most of its matrix is taken away by centring; a factor to a share of the whole would be too coarse."""
    x, y = arrays(200, 4, 4)
    K, L = (parse_kernel("gaussian(1000)")(side) for side in (x, y))
    assert_close(coco_of(x, y, ["gaussian(1000)"] * 2).coco, naive_coco.coco(K, L))


def test_any_table_with_many_ties():
    """Beside the eigenvalue problem itself, which has no solution where a column is constant."""
    for seed in range(24):
        n, text = 4 + seed % 9, ("gaussian(1)", "laplacian(2)", "linear")[seed % 3]
        x, y = np.random.default_rng(seed).integers(-2, 3, (2, n)).astype(float)
        x[:2], y[:2] = (0.0, 1.0), (0.0, 1.0)
        K, L = (naive_coco.doubly_centred(parse_kernel(text)(side[:, None])) for side in (x, y))
        rng = np.random.default_rng((1, 0))
        drawn = [np.arange(n), *(rng.permutation(n) for _ in range(99))]
        values = np.array([np.sqrt(np.abs(np.linalg.eigvals(K @ L[p][:, p])).max()) / n for p in drawn])
        found = coco_of(x, y, [text] * 2, permutations=100)
        np.testing.assert_allclose(found.coco, values[0], rtol=1e-7, atol=1e-7)
        # Permutations that pair equal rows tie.
        assert found.p_value == np.mean(values >= values[0] - 1e-7)


@pytest.mark.parametrize(("of_x", "of_y"), [(10, 3), (82, 82)], ids=["singular values", "Lanczos"])
def test_a_balanced_design_has_exactly_none(of_x, of_y, tmp_path):
    """Every category of x with every category of y equally often."""
    x, y = np.divmod(np.arange(of_x * of_y), of_y)
    table = pd.DataFrame({"x": x.astype(str), "y": y.astype(str)})
    found = coco_of(table, None, ("delta", "delta"), permutations=2, witness=tmp_path / "w.parquet")
    assert (found.coco, found.witness_correlation) == (0.0, None)
    assert not np.any(functions(tmp_path / "w.parquet"))


def test_the_sign_of_a_function_with_two_values_of_one_size_is_that_of_the_first_row(tmp_path):
    for first in "ab", "ba":
        table = pd.DataFrame({"x": list(first) * 20, "y": list("cd") * 20})
        coco_of(table, None, ("delta", "delta"), witness=tmp_path / "w.parquet")
        assert functions(tmp_path / "w.parquet")[0][0] > 0


def test_neither_the_number_of_threads_nor_which_is_x_matters():
    x, y = arrays(80, strength=0.3)
    options = {"statistic": "coco", "permutations": 200}
    one, *more = (hsic_test(x, y, **options, threads=threads) for threads in (1, 2, 3))
    for other in more:
        assert_same(other, one)
    turned = hsic_test(y, x, **options)
    # Each within its Monte-Carlo error: five standard errors of the difference of two shares of 200.
    assert abs(turned.p_value - one.p_value) <= 5 * np.sqrt(0.5 / 200)
    assert_close([turned.coco, turned.witness_correlation], [one.coco, one.witness_correlation])


@pytest.mark.parametrize("most", [20, 80])
def test_beyond_so_many_rows_a_high_rank_is_refused(most, monkeypatch):
    """Whether the rows that are looked at first show it (20) or all of them (80); with the limits of a small table."""
    monkeypatch.setattr(f"{MODULE}.FULL_RANK_ROWS", 50)
    monkeypatch.setattr(f"{MODULE}.MOST_COLUMNS", most)
    wide, narrow = "gaussian(1)", "laplacian(0.1)"
    x, y = arrays(150)
    if most == 80:
        expected = naive_coco.coco(parse_kernel(wide)(x), parse_kernel(wide)(y))
        assert_close(coco_of(x, y, (wide, wide)).coco, expected)
    with pytest.raises(UndecidedError, match=r"rank of 'laplacian\(0.1\)' on these 150 rows is above") as refusal:
        coco_of(x, y, (wide if most == 80 else narrow, narrow))
    assert (refusal.value.hint, refusal.value.code) == ("statistic='hsic'", "undecided.coco_rank")


def test_kernels_that_are_not_positive_definite_or_overflow_are_refused(monkeypatch):
    x, y = arrays(20, 2)
    indefinite = "polynomial(2, offset=-1)"
    with pytest.raises(UsageError, match=r"positive definite kernels, which 'polynomial\(.*offset=-1\)' may not be"):
        coco_of(x, y, (indefinite, "linear"))
    with pytest.raises(UndecidedError, match="overflows"):
        coco_of(x * 1e100, y, ("linear", "linear"))
    with pytest.raises(UndecidedError, match="one value of the statistic only"):
        coco_of(x, y, ("gaussian(1e8)", "gaussian(1)"))
    # One that says it is, but whose matrix is not, as rounding may leave it.
    monkeypatch.setattr(type(parse_kernel(indefinite)), "positive_definite", True)
    with pytest.raises(UndecidedError, match="negative eigenvalues") as refusal:
        coco_of(x, y, (indefinite, "linear"))
    assert refusal.value.code == "undecided.indefinite_matrix"


NORMALISED = {"kcc": naive_coco.kcc, "kmi": naive_coco.kmi}


@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize(("n", "p", "kernels"), CASES)
def test_normalised_measures_and_their_null_are_those_of_dense_matrices(name, n, p, kernels):
    x, y = arrays(n, p, 2, strength=0.3, seed=n + p)
    permutations = 4 if n > 100 else 20
    found = coco_of(x, y, kernels, name, permutations=permutations)
    K, L = (parse_kernel(text)(side) for text, side in zip(kernels, (x, y), strict=True))
    # The directions that count are those of most variance.
    measure = NORMALISED[name] if n <= 300 else lambda K, L: NORMALISED[name](K, L, 300)
    values = relabelled(K, L, permutations, 1, measure)
    assert_close(found.statistic, values[0])
    assert_close([found.null.mean, found.null.standard_deviation], [values.mean(), values.std()], scale=values[0])
    assert found.p_value == np.mean(values >= values[0] * (1 - 1e-9))
    assert_close(found.penalties, [naive_coco.penalty(K), naive_coco.penalty(L)])
    assert (found.statistic_name, found.coco) == (name, None)


@pytest.mark.parametrize("name", NORMALISED)
def test_of_many_directions_those_of_most_variance_count_and_what_is_lost_is_told(name, monkeypatch):
    monkeypatch.setattr(f"{MODULE}.MOST_DIRECTIONS", 6)
    x, y = arrays(80, 3, 2, strength=0.5)
    found = coco_of(x, y, KERNELS[0], name)
    K, L = (parse_kernel(text)(side) for text, side in zip(KERNELS[0], (x, y), strict=True))
    assert_close(found.statistic, NORMALISED[name](K, L, 6))
    assert any(warning.startswith("x: the 6 directions of most variance") for warning in found.warnings)


@pytest.mark.parametrize("strength", [0.0, 0.4, 1.0])
def test_of_two_columns_and_linear_kernels_they_are_functions_of_the_correlation(strength):
    """KCC is the correlation, shrunk, and KMI nearly the mutual information of two Gaussians; neither ends at infinity."""
    x, y = arrays(90, strength=strength)
    y = x if strength == 1.0 else y
    shrunk = np.corrcoef(x.ravel(), y.ravel())[0, 1] / (1 + 0.03 * 90**-0.25)
    assert_close(coco_of(x, y, ("linear", "linear"), "kcc").statistic, abs(shrunk))
    assert_close(coco_of(x, y, ("linear", "linear"), "kmi").statistic, -0.5 * np.log1p(-(shrunk**2)))
    # The units of a kernel do not matter, nor do those of a column.
    assert_close(coco_of(x, 7 * y, ("5*linear", "linear"), "kcc").statistic, abs(shrunk))


@pytest.mark.parametrize("most", [300, 6])
@pytest.mark.parametrize(
    ("name", "kernels"), [("coco", KERNELS[0]), *((name, k) for name in NORMALISED for k in KERNELS)]
)
def test_functions_are_those_of_their_coefficients_and_each_other(name, kernels, most, monkeypatch):
    """Inside, as pictures alone use the coefficients: f = K~ alpha, and f is the smoothed g, g the smoothed f."""
    monkeypatch.setattr(f"{MODULE}.MOST_DIRECTIONS", most)
    x, y = arrays(60, 2, 2, strength=0.5)
    bound, points = [parse_kernel(text) for text in kernels], (Points.of(x), Points.of(y))
    found = CrossCovariance(tuple(bound), points, name).functions()
    K, L = (
        naive_coco.leading(kernel(side), most if name != "coco" else 60)
        for kernel, side in zip(bound, (x, y), strict=True)
    )
    sides = ((K, found.alpha, found.f, found.g), (L, found.beta, found.g, found.f))
    for kernel, (matrix, coefficients, own, other), side in zip(bound, sides, (x, y), strict=True):
        np.testing.assert_allclose(
            naive_coco.doubly_centred(kernel(side)) @ coefficients, own, atol=1e-6 * np.abs(own).max()
        )
        smoothed = matrix @ other
        if name == "kcc":
            smoothed = np.linalg.solve(matrix + naive_coco.penalty(kernel(side)) * np.eye(60), smoothed)
        assert np.corrcoef(smoothed, own)[0, 1] == pytest.approx(1.0, abs=1e-9)
    assert found.correlation > 0
