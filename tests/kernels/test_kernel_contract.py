"""What every kernel must do, inherited by each of them."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerntest.kernels.algebra import Constant, Normalised, Power, Product, Sum
from kerntest.kernels.base import Columns, DensePairs, Points
from kerntest.kernels.catalogue import KERNELS
from kerntest.kernels.columns import OnColumns
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Exponential, Linear, Polynomial
from kerntest.kernels.stationary import (
    Gaussian,
    Laplacian,
    Laplacian2,
    Matern,
    Periodic,
    RationalQuadratic,
    StudentT,
)
from kerntest.kernels.text import parse_kernel


def mixed_points(n, seed):
    """Rows with three numeric columns, in which some values repeat, and two category columns."""
    rng = np.random.default_rng(seed)
    return Points(np.round(rng.normal(size=(n, 3)), 1), rng.integers(0, 3, size=(n, 2)))


def rows_of(points, kind):
    numeric, codes = points.numeric.tolist(), points.codes.tolist()
    return numeric if kind == "numeric" else [a + b for a, b in zip(numeric, codes, strict=True)]


class Frozen(DensePairs):
    """Pairs whose shared quantities cannot be written into."""

    def _keep(self, name, compute):
        values = super()._keep(name, compute)
        values.flags.writeable = False
        return values


class KernelContract:
    """Parametrise `case`: (kernel, the naive function of two rows)."""

    X, Y = mixed_points(12, 1), mixed_points(9, 2)

    @pytest.fixture
    def kernel(self, case):
        return case[0]

    def test_matches_naive(self, case):
        kernel, function = case
        kind = "discrete" if "discrete" in kernel.kinds else "numeric"
        expected = naive.gram(function, rows_of(self.X, kind), rows_of(self.Y, kind))
        np.testing.assert_allclose(kernel(self.X, self.Y), expected, rtol=1e-9, atol=1e-12)

    def test_symmetric(self, kernel):
        np.testing.assert_allclose(kernel(self.X, self.Y), kernel(self.Y, self.X).T, rtol=1e-12, atol=1e-12)

    def test_diagonal(self, kernel):
        # The square root of a rounded zero distance is of the order 1e-8.
        np.testing.assert_allclose(kernel.diagonal(self.X), np.diag(kernel(self.X)), rtol=1e-6, atol=1e-12)

    def test_positive_definite_where_it_claims(self, kernel):
        K = kernel(self.X)
        smallest = np.linalg.eigvalsh((K + K.T) / 2)[0]
        assert not kernel.positive_definite or smallest >= -1e-7 * np.trace(np.abs(K))

    def test_text_round_trip(self, kernel):
        again = parse_kernel(str(kernel))
        assert again == kernel
        assert str(again) == str(kernel)
        assert hash(again) == hash(kernel)

    def test_new_array_and_shared_quantities_untouched(self, kernel):
        pairs = Frozen(self.X, self.Y)
        first = kernel.evaluate(pairs)
        kept = first.copy()
        first[:] = -7.0
        second = kernel.evaluate(pairs)
        np.testing.assert_allclose(second, kept, rtol=1e-12, atol=1e-12)
        assert second.shape == pairs.shape
        assert second.dtype == np.float64

    def test_does_not_change_the_points(self, kernel):
        before = self.X.numeric.copy()
        kernel(self.X)
        kernel.diagonal(self.X)
        np.testing.assert_array_equal(self.X.numeric, before)

    def test_resolve_keeps_what_is_chosen(self, kernel):
        def rule(_metric, _columns):
            raise AssertionError

        assert not kernel.free
        assert kernel.resolve(rule) == kernel

    def test_no_rows(self, kernel):
        none = self.X.take(slice(0, 0))
        assert kernel(none, self.Y).shape == (0, 9)
        assert kernel.diagonal(none).shape == (0,)


def named(kernel_class, **parameters):
    function = naive.naive_kernels[kernel_class.name]
    return kernel_class(**parameters), lambda x, y: function(x, y, **parameters)


ATOMS = [
    named(Gaussian, bandwidth=1.5),
    named(Laplacian, bandwidth=0.7),
    named(Laplacian2, bandwidth=2.0),
    named(StudentT, bandwidth=1.5),
    named(StudentT, bandwidth=1.5, df=3.0),
    named(RationalQuadratic, bandwidth=1.5),
    named(RationalQuadratic, bandwidth=0.5, alpha=2.5),
    named(Matern, bandwidth=1.5, nu=0.5),
    named(Matern, bandwidth=1.5),
    named(Matern, bandwidth=1.5, nu=2.5),
    named(Matern, bandwidth=1.5, nu=1.2),
    named(Matern, bandwidth=1.5, nu=7.0),
    named(Periodic),
    named(Periodic, period=2.0, bandwidth=0.5),
    named(Linear),
    named(Polynomial),
    named(Polynomial, degree=2, gain=0.5, offset=0.0),
    named(Polynomial, degree=2, gain=1.0, offset=-1.0),
    named(Exponential),
    named(Exponential, gain=0.25),
    named(Delta),
    named(Hamming, bandwidth=2.0),
]


def on_both(function):
    """Apply a naive function of numeric rows to rows that carry codes behind their three numbers."""
    return lambda x, y: function(x[:3], y[:3])


g, lin = ATOMS[0][1], ATOMS[14][1]
COMPOSED = [
    (Constant(2.5), lambda _x, _y: 2.5),
    (Gaussian(1.5) + Linear(), lambda x, y: g(x, y) + lin(x, y)),
    (1 + Linear() + 0.5 * Gaussian(1.5), lambda x, y: 1 + lin(x, y) + 0.5 * g(x, y)),
    (Gaussian(1.5) * Linear() * 3, lambda x, y: 3 * g(x, y) * lin(x, y)),
    ((1 + Linear()) * Gaussian(1.5), lambda x, y: (1 + lin(x, y)) * g(x, y)),
    (Linear() ** 3, lambda x, y: lin(x, y) ** 3),
    (Gaussian(1.5) ** 0.5, lambda x, y: g(x, y) ** 0.5),
    ((Gaussian(1.5) + 1) ** 70, lambda x, y: (g(x, y) + 1) ** 70),
    (Normalised(Polynomial(2)), lambda x, y: normalised(naive.polynomial, x, y)),
    (Normalised(Linear()), lambda x, y: normalised(lin, x, y)),
    (Gaussian(1.5) * Delta(), lambda x, y: on_both(g)(x, y) * naive.delta(x, y)),
    (Constant(2) * Constant(3), lambda _x, _y: 6.0),
    (Constant(2) + 3, lambda _x, _y: 5.0),
]


def normalised(function, x, y):
    parameters = {"degree": 2} if function is naive.polynomial else {}
    scale = function(x, x, **parameters) * function(y, y, **parameters)
    return function(x, y, **parameters) / scale**0.5 if scale else 0.0


@pytest.mark.parametrize("case", ATOMS, ids=lambda case: str(case[0]))
class TestAtoms(KernelContract):
    pass


@pytest.mark.parametrize("case", COMPOSED, ids=lambda case: str(case[0]))
class TestComposed(KernelContract):
    pass


def test_every_kernel_of_the_catalogue_meets_the_contract():
    # The additive kernel is one of known columns: see test_additive.py.
    assert {kernel.name for kernel, _ in ATOMS} == set(KERNELS) - {"additive"}
    assert set(naive.naive_kernels) == set(KERNELS)


STATIONARY = [kernel for kernel, _ in ATOMS if type(kernel).__module__.endswith("stationary")]


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
@given(shift=st.floats(-100, 100))
def test_stationary_kernels_ignore_translation(kernel, shift):
    X, Y = KernelContract.X.numeric, KernelContract.Y.numeric
    np.testing.assert_allclose(kernel(X + shift, Y + shift), kernel(X, Y), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_stationary_kernels_stay_between_0_and_1_at_any_distance(kernel):
    X = np.array([0.0, 1e-150, 1e-10, 1.0, 1e3, 1e100, 1e150, -1e153])
    K = kernel(X)
    assert np.isfinite(K).all()
    assert K.min() >= 0
    assert K.max() <= 1 + 1e-12
    if not isinstance(kernel, Periodic):
        assert K[0, -1] <= 1e-100


def test_extreme_arguments_give_finite_values():
    X = np.array([0.0, 1.0, 1e3])
    for bandwidth in (1e-75, 1e75):
        for kernel in (
            Gaussian(bandwidth),
            StudentT(bandwidth, 1e75),
            StudentT(bandwidth, 1e-75),
            Matern(bandwidth, 2.5),
        ):
            K = kernel(X)
            assert np.isfinite(K).all()
            np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)


def test_student_t_with_many_degrees_of_freedom_is_gaussian():
    X = KernelContract.X.numeric
    np.testing.assert_allclose(StudentT(1.5, 1e12)(X), Gaussian(1.5)(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(RationalQuadratic(1.5, 1e12)(X), Gaussian(1.5)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_closed_forms_agree_with_bessel_functions(nu):
    X = np.concatenate([[0.0], np.geomspace(1e-8, 1e3, 50)])
    np.testing.assert_allclose(Matern(1.0, nu)(X), Matern(1.0, nu + 1e-12)(X), rtol=1e-8, atol=1e-10)


def test_matern_is_laplacian2_at_one_half_and_nearly_gaussian_at_100():
    X = np.linspace(0, 4, 41)
    np.testing.assert_allclose(Matern(1.5, 0.5)(X), Laplacian2(1.5)(X), rtol=1e-12, atol=0)
    np.testing.assert_allclose(Matern(1.5, 100)(X), Gaussian(1.5)(X), rtol=0, atol=0.01)


@pytest.mark.parametrize("nu", [1.0, 3.0, 20.0, 60.5, 100.0])
def test_matern_falls_smoothly_where_the_bessel_function_overflows(nu):
    # k(z) = 1 - z^2/(4 (nu - 1)) + ... for small z, whichever branch computes it.
    z = np.geomspace(1e-160, 0.3, 400)
    K = Matern(float(np.sqrt(2 * nu)), nu)(np.array([0.0]), z)[0]
    assert np.isfinite(K).all()
    assert (np.diff(K) <= 1e-12).all()
    if nu > 2:
        # The next term of the series, z^2 / (8 (nu - 2)) of this one, is up to 1.2 % at z = 0.3.
        np.testing.assert_allclose(1 - K[z > 0.05], z[z > 0.05] ** 2 / (4 * (nu - 1)), rtol=0.0125, atol=0)


def test_periodic_does_not_see_whole_periods():
    X = KernelContract.X.numeric
    np.testing.assert_allclose(Periodic(2.0)(X + 10.0, X), Periodic(2.0)(X), rtol=1e-10, atol=0)


def test_normalised_zero_row_gives_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(Normalised(Linear())(X), [[0, 0], [0, 1]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(Normalised(Linear()).diagonal(Points.of(X)), [0, 1], rtol=0, atol=1e-12)


def test_on_columns_sees_only_its_columns():
    X = KernelContract.X
    kernel = OnColumns(Gaussian(1.5), Columns((0, 2), ()))
    np.testing.assert_allclose(kernel(X), Gaussian(1.5)(X.numeric[:, [0, 2]]), rtol=1e-11, atol=0)
    np.testing.assert_allclose(kernel.diagonal(X), 1.0, rtol=1e-12)


def test_classes_of_composed_kernels():
    assert isinstance(Gaussian(1) + 1, Sum)
    assert isinstance(2 * Gaussian(1), Product)
    assert isinstance(Gaussian(1) ** 2, Power)
