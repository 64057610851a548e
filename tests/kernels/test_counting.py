"""The work of a value of a kernel is counted for any kernel, by the numbers of columns alone."""

import numpy as np
import pytest

from kerntest import parse_kernel
from kerntest.kernels.base import Points
from kerntest.kernels.counting import DISTANCE, work_of_values
from kerntest.kernels.text import bind


def work(*texts, numbers=3, categories=0, seed=0, **options):
    rng = np.random.default_rng(seed)
    rows = Points(rng.normal(size=(9, numbers)), rng.integers(0, 3, size=(9, categories)))
    names = [f"n{place}" for place in range(numbers)], [f"c{place}" for place in range(categories)]
    return work_of_values([bind(parse_kernel(text), *names).kernel for text in texts], rows, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian(1)", {"product": 5, "entry": DISTANCE + 1, "exp": 1}),
        ("laplacian(1)", {"entry": 9, "exp": 1}),
        ("linear", {"product": 3, "entry": 1}),
        ("polynomial(2)", {"product": 3, "entry": 5}),
        ("hamming(1)", {"entry": 8, "exp": 1}),
        ("gaussian(1) + linear", {"product": 8, "entry": DISTANCE + 3, "exp": 1}),
    ],
)
def test_a_kernel_is_counted_by_its_formula(text, expected):
    found = work(text) if "hamming" not in text else work(text, numbers=0, categories=2)
    assert {unit: count for unit, count in found.items() if count} == pytest.approx(expected, abs=1)


def test_counts_hang_on_the_columns_and_not_on_the_rows():
    assert work("gaussian(1)*laplacian(2)", seed=1) == work("gaussian(1)*laplacian(2)", seed=2)
    few, many = (work("laplacian(1)", numbers=numbers)["entry"] for numbers in (2, 20))
    assert many - few == 3 * 18


def test_kernels_share_distances_and_halved_bandwidths_their_exponentials():
    one, two = work("gaussian(2)"), work("gaussian(2)", "gaussian(1)")
    assert two["product"] == one["product"]
    assert two["exp"] == 2 * one["exp"]
    halved = work("gaussian(2)", "gaussian(1)", halved=True)
    assert halved["exp"] == one["exp"]
    assert one["entry"] < halved["entry"] < two["entry"] + 4


def test_a_sum_of_many_terms_is_counted_by_a_few_of_them():
    few, many = (work("additive(1)", numbers=numbers) for numbers in (8, 80))
    assert many["exp"] == pytest.approx(10 * few["exp"])
    assert many["entry"] == pytest.approx(10 * few["entry"], rel=0.1)


def test_a_bessel_function_counts_as_many_exponentials():
    assert work("matern(1, nu=0.7)")["exp"] > 50 * work("matern(1)")["exp"]
