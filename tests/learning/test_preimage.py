"""Pre-images: stationary, at least as near as where they began, and digits without their noise."""

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from kerntest import KernelPCA
from kerntest.engines.local import LocalEngine
from kerntest.errors import UsageError
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.columns import bind
from kerntest.kernels.text import parse_kernel
from kerntest.learning.solvers import preimage
from kerntest.learning.solvers.preimage import attractions, preimages

ENGINE = LocalEngine(1)
SMOOTH = [
    "gaussian(1.5)",
    "student-t(1.5)",
    "student-t(1.5, df=4)",
    "rational-quadratic(1.5)",
    "rational-quadratic(1.5, alpha=3)",
    "matern(1.5)",
    "matern(1.5, nu=2.5)",
    "matern(1.5, nu=1)",
    "matern(1.5, nu=3.2)",
    "0.5*gaussian(1) + student-t(2)",
    "2*gaussian(3)*rational-quadratic(1)",
    "student-t(2)^2.5",
    "a, c: gaussian(1); b: student-t(2)",
]
KINKED = ["laplacian2(2)", "laplacian(3)", "matern(1.5, nu=0.5)", "matern(1.5, nu=0.7)"]


def bound(text, names=("a", "b", "c"), categories=()):
    return bind(parse_kernel(text), names, categories).kernel


def rows(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def gradient(kernel, x, z, step=1e-6):
    """Return dk(x, z)/dz by central differences."""
    found = []
    for c in range(len(z)):
        ahead, behind = z.copy(), z.copy()
        ahead[c] += step
        behind[c] -= step
        found.append((kernel(x[None], ahead[None])[0, 0] - kernel(x[None], behind[None])[0, 0]) / (2 * step))
    return np.array(found)


@pytest.mark.parametrize("text", [*SMOOTH, *KINKED])
def test_weights_are_those_of_the_gradient(text):
    kernel = bound(text)
    X, Z = rows(4), rows(3, seed=1)
    weights = np.full((3, 4, 3), np.nan)
    for columns, one in attractions(kernel, DensePairs(Points.of(Z), Points.of(X))):
        weights[:, :, columns] = one[:, :, None]
    for i, z in enumerate(Z):
        for j, x in enumerate(X):
            expected = gradient(kernel, x, z)
            np.testing.assert_allclose(-weights[i, j] * (z - x), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("text", SMOOTH)
def test_pre_images_are_stationary_and_nearer_than_any_training_row(text):
    X, new = rows(80), rows(4, seed=3)
    names = ["a", "b", "c"]
    table = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    found = KernelPCA(4, text, scale="none").fit(pd.DataFrame(table))
    model, kernel = found.model, found.model.kernel
    scores = found.transform(pd.DataFrame(new, columns=names))
    ended = model.preimages(scores, ENGINE, Points.of(new))
    assert ended.converged.all()
    weights = scores @ model.expansion.coefficients.T + model.mean
    for z, g in zip(ended.points.numeric, weights, strict=True):
        ends = z + 1e-6 * np.vstack([np.eye(3), -np.eye(3)])
        value = g @ kernel(X, np.vstack([z, X, ends]))
        np.testing.assert_allclose((value[-6:-3] - value[-3:]) / 2e-6, 0, rtol=0, atol=1e-6)
        assert value[0] >= value[1:81].max() - 1e-9


def test_the_pre_image_of_a_row_that_the_components_say_all_of_is_the_row():
    X = rows(25)
    found = KernelPCA(24, "gaussian(1)", scale="none").fit(X)
    np.testing.assert_allclose(found.denoise(X), X, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.inverse_transform(found.transform(X)), X, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.reconstruction_error(X), 0, rtol=0, atol=1e-6)


def test_noise_is_taken_off_a_circle():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 400)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.1 * rng.normal(size=circle.shape)
    found = KernelPCA(4, "gaussian(1)", scale="none").fit(noisy)
    radii, before = (np.linalg.norm(points, axis=1) for points in (found.denoise(noisy), noisy))
    # What is left is mostly a circle that is a little too small.
    assert radii.std() < 0.3 * before.std()
    assert 0.9 < radii.mean() < 1.0


def weighted(centres, weights, start=None, text="gaussian(1)", nearest=None):
    """Return the pre-image of one sum of images; `nearest` are scores, which say where to begin."""
    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    places = Points.of(np.asarray(centres, dtype=float))
    scores = np.zeros((len(weights), 1))
    centre_scores = np.zeros((len(places), 1)) if nearest is None else np.asarray(nearest, dtype=float)[:, None]
    start = None if start is None else Points.of(np.asarray(start, dtype=float))
    kernel = parse_kernel(text)
    return preimages(kernel, places, weights, scores=scores, centre_scores=centre_scores, engine=ENGINE, start=start)


def test_where_weights_cancel_the_search_goes_on_from_the_next_place():
    # At 5 the only centre near repels: the weighted mean there is none. From 0 it stays at once.
    found = weighted([[0.0], [5.0]], [1.0, -0.5], start=[[5.0]])
    assert found.converged.all()
    np.testing.assert_allclose(found.points.numeric, [[0.0]], rtol=0, atol=1e-4)


def test_where_all_weights_repel_the_best_place_is_given_and_said_not_to_have_settled():
    found = weighted([[0.0], [1.0]], [-1.0, -0.5])
    assert not found.converged.any()
    assert np.isfinite(found.points.numeric).all()


def test_without_rows_there_are_no_pre_images():
    found = weighted([[0.0], [1.0]], np.empty((0, 2)))
    assert len(found.points) == 0


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(["gaussian(1)", "student-t(1)", "laplacian2(1)"]))
def test_no_pre_image_is_further_than_where_it_began(seed, text):
    rng = np.random.default_rng(seed)
    centres, weights, start = rng.normal(size=(12, 2)), rng.normal(size=(3, 12)), rng.normal(size=(3, 2))
    found = weighted(centres, weights, start, text)
    kernel = parse_kernel(text)

    def value(Z):
        return np.einsum("ij,ij->i", weights, kernel(Z, centres))

    began = value(start)
    assert (value(found.points.numeric) >= began - 1e-9 * np.abs(began)).all()


def test_of_a_category_the_level_is_taken_that_fits_best():
    rng = np.random.default_rng(0)
    kernel = bound("gaussian(1)", ("a",), ("b", "c"))
    centres = Points(rng.normal(size=(30, 1)), rng.integers(0, 3, (30, 2)))
    kernel = kernel.resolve(lambda metric, columns: 1.0)  # noqa: ARG005 - the signature is the kernels'
    weights = rng.normal(size=(5, 30))
    search = preimage._Search(kernel, centres)
    here = Points(rng.normal(size=(5, 1)), rng.integers(0, 3, (5, 2)))
    first = search._levels(Points(here.numeric, here.codes[:, :]), weights)[:, 0]
    for row in range(5):
        tried = [
            float(
                weights[row] @ kernel(Points(here.numeric[[row]], np.array([[level, here.codes[row, 1]]])), centres)[0]
            )
            for level in range(3)
        ]
        assert first[row] == int(np.argmax(tried))


@pytest.mark.parametrize(
    "text", ["polynomial(degree=2)", "exponential", "periodic", "gaussian(1) + linear", "student-t(1)^0.5"]
)
def test_kernels_without_pre_images_are_refused_with_those_that_have_some(text):
    found = KernelPCA(2, text).fit(rows(30))
    with pytest.raises(UsageError, match="pre-images") as caught:
        found.denoise(rows(3))
    assert "student-t" in caught.value.hint


def test_linear_beside_categories_and_numbers_compared_by_equality_are_refused():
    table = pd.DataFrame({"a": rows(40)[:, 0], "b": np.arange(40) % 4, "c": np.where(np.arange(40) % 3, "x", "y")})
    with pytest.raises(UsageError, match="'linear' has pre-images only by itself"):
        KernelPCA(2, "linear").fit(table).denoise(table)
    with pytest.raises(UsageError, match="only tells equal ones from others"):
        KernelPCA(2, "a: gaussian(1); b: delta; c: delta").fit(table).denoise(table)


def test_digits_lose_more_of_their_noise_than_with_ordinary_components():
    spec = importlib.util.spec_from_file_location("denoise_digits", ROOT / "tests" / "benchmarks" / "denoise_digits.py")
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    train, clean, noisy, _ = script.digits()
    ordinary = script.linear(train, noisy, clean)[0]
    assert ordinary == pytest.approx(0.027, abs=0.0005)
    assert script.squared_error(script.kernel(train, noisy), clean) < 0.020
