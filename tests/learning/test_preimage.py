"""Pre-images: stationary, at least as near as where they began, and refused where there are none."""

import numpy as np
import pandas as pd
import pytest

from kerntest import KernelPCA
from kerntest.errors import UsageError

NAMES = ["a", "b", "c"]
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
    "matern(1.5) + rational-quadratic(2)",
    "gaussian(2) + matern(1.5, nu=1)",
    "a, c: gaussian(1); b: student-t(2)",
]
KINKED = ["laplacian2(2)", "laplacian(3)", "matern(1.5, nu=0.5)", "matern(1.5, nu=0.7)", "gaussian(2) + laplacian2(2)"]


def rows(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def named(values):
    return pd.DataFrame(values, columns=NAMES[: values.shape[1]])


def distance(found, table, scores):
    """Return |phi(z) - P|^2 of rows from the points that scores stand for: what is off the axes, and along them."""
    return found.residuals(table) + ((found.transform(table) - scores) ** 2).sum(axis=1)


def moved(z, step):
    """Return rows that lie a step ahead and a step behind in each column, shape (2, columns, rows, columns)."""
    return np.array([[z + sign * step * np.eye(z.shape[1])[c] for c in range(z.shape[1])] for sign in (1, -1)])


@pytest.mark.parametrize("text", [*SMOOTH, *KINKED])
def test_pre_images_are_stationary_and_nearer_than_any_training_row(text):
    X, new = rows(80), rows(4, seed=3)
    found = KernelPCA(4, text, scale="none").fit(named(X))
    scores = found.transform(named(new))
    z = found.denoise(named(new))
    reached = distance(found, named(z), scores)
    # Centres that are hit attract as if they were a millionth of the bandwidth away.
    slack = 1e-9 if text in SMOOTH else 1e-6
    for row, score in enumerate(scores):
        assert reached[row] <= distance(found, named(X), score).min() + slack
    step = 1e-4
    around = np.array([[distance(found, named(one), scores) for one in side] for side in moved(z, step)])
    # Where a centre is hit, a kink is lower than what lies around it.
    assert (around >= reached - slack).all()
    if text in SMOOTH:
        np.testing.assert_allclose((around[0] - around[1]) / (2 * step), 0, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    "text", ["polynomial(degree=2)", "exponential", "periodic", "gaussian(1) + linear", "student-t(1)^0.5"]
)
def test_kernels_without_pre_images_are_refused_with_those_that_have_some(text):
    found = KernelPCA(2, text).fit(rows(30))
    with pytest.raises(UsageError, match="pre-images") as caught:
        found.denoise(rows(3))
    assert "student-t" in caught.value.hint
    with pytest.raises(UsageError, match="pre-images"):
        KernelPCA(2, features="fourier:50").fit(rows(30)).denoise(rows(3))


def test_linear_beside_categories_and_numbers_compared_by_equality_are_refused():
    table = pd.DataFrame({"a": rows(40)[:, 0], "b": np.arange(40) % 4, "c": np.where(np.arange(40) % 3, "x", "y")})
    with pytest.raises(UsageError, match="'linear' has pre-images only by itself"):
        KernelPCA(2, "linear").fit(table).denoise(table)
    with pytest.raises(UsageError, match="only tells equal ones from others"):
        KernelPCA(2, "a: gaussian(1); b: delta; c: delta").fit(table).denoise(table)
