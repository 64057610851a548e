"""Pearson, Spearman and Kendall, for one pair of columns and for many."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from kerntest.inference import coefficients
from kerntest.inference.coefficients import Coefficients, coefficients_of_pairs


def pearson(x, y):
    return of_one_pair(x, y).pearson


def spearman(x, y):
    return of_one_pair(x, y).spearman


def kendall(x, y):
    return of_one_pair(x, y).kendall


def of_one_pair(x, y):
    (found,) = coefficients_of_pairs(np.column_stack([x, y]), [(0, 1)])
    return found


FUNCTIONS = {"pearson": pearson, "spearman": spearman, "kendall": kendall}
PEERS = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}


def naive_kendall(x, y):
    """Return tau-b over all pairs of rows."""

    def sign(value):
        return (value > 0) - (value < 0)

    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    balance = sum(sign(x[i] - x[j]) * sign(y[i] - y[j]) for i, j in pairs)
    untied_x, untied_y = (sum(z[i] != z[j] for i, j in pairs) for z in (x, y))
    return balance / math.sqrt(untied_x * untied_y)


def exact_pearson(x, y):
    """Return Pearson's correlation of these doubles, computed in rational numbers but for the last root."""
    x, y = ([Fraction(float(value)) for value in z] for z in (x, y))
    x, y = ([value - sum(z) / len(z) for value in z] for z in (x, y))
    product = sum(a * b for a, b in zip(x, y, strict=True))
    size = math.sqrt(product**2 / (sum(a * a for a in x) * sum(b * b for b in y)))
    return size if product >= 0 else -size


def draw(kind, n, rng):
    x = rng.normal(size=n)
    y = 0.4 * x + rng.normal(size=n)
    if kind == "ties":
        x, y = np.round(x), np.round(2 * y)
    if kind == "ties in x":
        x = np.round(x)
    if kind == "two values":
        x, y = (x > 0).astype(float), (y > 0.3).astype(float)
    if kind == "offset":
        x, y = x + 1e9, y - 1e9
    if kind == "huge":
        x, y = 1e300 * x, 1e299 * y
    return x, y


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ["plain", "ties", "ties in x", "two values"])
@pytest.mark.parametrize("n", [7, 8, 9, 16, 17, 100, 1000])
def test_the_coefficients_are_those_of_scipy(name, kind, n):
    x, y = draw(kind, n, np.random.default_rng(n))
    assert_close(FUNCTIONS[name](x, y), PEERS[name](x, y))


@pytest.mark.parametrize("kind", ["offset", "huge"])
def test_offsets_and_huge_values_cost_no_digits(kind):
    x, y = draw(kind, 60, np.random.default_rng(1))
    assert_close(pearson(x, y), exact_pearson(x, y))
    assert_close(spearman(x, y), PEERS["spearman"](x, y))
    assert_close(kendall(x, y), naive_kendall(x.tolist(), y.tolist()))


def test_tiny_values_cost_no_digits():
    x, y = draw("plain", 60, np.random.default_rng(2))
    assert pearson(2.0**-1000 * x, 2.0**-900 * y) == pearson(x, y)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300, -5e-324]), st.integers(-3, 3)), min_size=2, max_size=40
    )
)
def test_kendall_is_its_definition(rows):
    x, y = ([float(row[place]) for row in rows] for place in (0, 1))
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert kendall(x, y) is None
    else:
        assert_close(kendall(x, y), naive_kendall(x, y))


@settings(deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=200))
def test_inversions_are_counted_one_by_one(values):
    n = len(values)
    row = [value % n for value in values]
    expected = sum(row[i] > row[j] for i in range(n) for j in range(i + 1, n))
    found = coefficients._inversions(np.array([row, sorted(row), sorted(row, reverse=True)]))
    tied = sum(row[i] == row[j] for i in range(n) for j in range(i + 1, n))
    assert found.tolist() == [expected, 0, n * (n - 1) // 2 - tied]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30))
def test_symmetries(rows):
    x, y = (np.array([float(row[place]) for row in rows]) for place in (0, 1))
    for function in FUNCTIONS.values():
        found = function(x, y)
        assert function(y, x) == found
        if found is None:
            continue
        assert -1.0 <= found <= 1.0
        assert_close(function(-x, y), -found)
        assert_close(function(x, x), 1.0)
        assert_close(function(x, -x), -1.0)
    for function in (spearman, kendall):
        assert function(np.exp(x), y) == function(x, y)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_constant_columns_and_single_rows_have_none(function):
    assert function([], []) is None
    assert function([1.0], [2.0]) is None
    assert function([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert function([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]) is None
    assert function([0.0, -0.0], [1.0, 2.0]) is None
    assert_close(function([1.0, 3.0], [5.0, 4.0]), -1.0)


def test_many_pairs_are_the_pairs_one_by_one(monkeypatch):
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(50, 6))
    columns[:, 1] = np.round(columns[:, 1])
    columns[:, 2] += 1e9
    columns[:, 3] = 7.0
    columns[:, 5] = columns[:, 1] ** 2
    pairs = [(i, j) for i in range(6) for j in range(6)]
    # Blocks of two pairs, the last of them not full for an odd number of pairs.
    monkeypatch.setattr(coefficients, "BLOCK", 100)
    for asked in (pairs, pairs[:7], [(4, 0)]):
        found = coefficients_of_pairs(columns, asked)
        assert len(found) == len(asked)
        for (i, j), one in zip(asked, found, strict=True):
            for name, function in FUNCTIONS.items():
                expected = function(columns[:, i], columns[:, j])
                assert (getattr(one, name) is None) == (expected is None)
                if expected is not None:
                    assert_close(getattr(one, name), expected, scale=1.0)
            assert (one.kendall is None) == (3 in (i, j))


def test_no_pairs_and_too_few_rows():
    assert coefficients_of_pairs(np.zeros((5, 2)), []) == []
    for rows in (0, 1):
        assert coefficients_of_pairs(np.zeros((rows, 2)), [(0, 1)]) == [Coefficients(None, None, None)]


def test_what_is_given_is_not_changed():
    columns = np.random.default_rng(4).normal(size=(20, 3)) + 5
    kept = columns.copy()
    coefficients_of_pairs(columns, [(0, 1), (1, 2)])
    np.testing.assert_array_equal(columns, kept)


def test_counts_beyond_32_bits():
    # 200,000 rows make 2e10 pairs; only the first two rows are out of order.
    x = np.arange(200_000.0)
    y = x.copy()
    y[[0, 1]] = y[[1, 0]]
    total = 200_000 * 199_999 // 2
    assert_close(kendall(x, y), (total - 2) / total)
    assert 1.0 - kendall(x, y) == pytest.approx(2 / total, rel=1e-5)
