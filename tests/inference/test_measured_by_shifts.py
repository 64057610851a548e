"""What pairs of kernels measure, from the sums over the shifts, against direct sums."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest import hsic_test
from kerntest.engines.local import LocalEngine
from kerntest.inference import relabelling, shifts
from kerntest.inference.dependence import dependence
from kerntest.inference.relabelling import relabelled_sums
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ENGINE = LocalEngine(1)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("kernels", [1, 4], ids=["pair by pair", "stacked"])
@pytest.mark.parametrize("n", [60, 62], ids=["all rows on the circle", "two fixed rows"])
def test_every_pair_measures_what_direct_sums_say(n, kernels, estimator, monkeypatch):
    monkeypatch.setattr(relabelling, "FEW_ROWS", 10)
    monkeypatch.setattr(shifts, "SMALL_CIRCLE", 8)
    rng = np.random.default_rng(n)
    x, y = Points.of(rng.normal(size=(n, 3))), Points.of(rng.normal(size=(n, 4)))
    first = [parse_kernel(text) for text in ("gaussian(1)", "linear", "laplacian(2)", "exponential(0.2)")[:kernels]]
    second = [parse_kernel(text) for text in ("polynomial(2)", "gaussian(3)", "student-t(1)", "matern(1)")[:kernels]]
    found = relabelled_sums(
        [(x, first)], [(y, second)], estimator=estimator, relabellings=200, seed=1, engine=ENGINE
    ).dependences
    assert found is not None
    for f, kernel_x in enumerate(first):
        for g, kernel_y in enumerate(second):
            direct = dependence(kernel_x, x, kernel_y, y, ENGINE)
            size = float(kernel_x.diagonal(x).max() * kernel_y.diagonal(y).max())
            for name in ("unbiased", "biased"):
                assert_close(getattr(found[f][g], name), getattr(direct, name), scale=size)
            assert_close(found[f][g].effect_size ** 2, direct.effect_size**2)


def test_few_rows_are_measured_directly():
    """So that every null gives the same digits."""
    rng = np.random.default_rng(0)
    x, y = Points.of(rng.normal(size=(80, 3))), Points.of(rng.normal(size=(80, 3)))
    kernel = parse_kernel("gaussian(1)")
    found = relabelled_sums(
        [(x, [kernel])], [(y, [kernel])], estimator="unbiased", relabellings=80, seed=0, engine=ENGINE
    )
    assert found.dependences is None


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_a_test_of_many_rows_reports_the_same(estimator, monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2100, 3))
    y = np.column_stack([x[:, 0] ** 2 + rng.normal(size=2100), rng.normal(size=(2100, 2))])
    options = {"kernel_x": "gaussian(1.5)", "kernel_y": "gaussian(1.5)", "estimator": estimator}
    fast = hsic_test(x, y, **options)
    monkeypatch.setattr(relabelling, "FEW_ROWS", 10_000)
    direct = hsic_test(x, y, **options)
    assert fast.p_value == direct.p_value
    for name in ("statistic", "hsic_biased", "hsic_unbiased", "effect_size"):
        assert_close(getattr(fast, name), getattr(direct, name))
