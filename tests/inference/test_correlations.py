"""Pearson, Spearman and Kendall beside the pairs of a screen."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from kerntest import hsic_pairs

NAMES = ("pearson", "spearman", "kendall")
PEERS = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}


def screened(frame, **options):
    """Return the pairs of a screen by their names."""
    found = hsic_pairs(pd.DataFrame(frame), kernel="gaussian(1)", permutations=1, threads=1, **options)
    return {(pair.x, pair.y): pair for pair in found.pairs}


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


def columns(n):
    """Return columns that depend on each other: plain, with ties, of two values, far from 0 and huge."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = 0.4 * x + rng.normal(size=n)
    whole = np.round(2 * y)
    shown = {"x": x, "y": y, "whole": whole, "sign": whole > 0.0}
    return shown if n == 1000 else shown | {"far": y + 1e9, "huge": 1e300 * x, "tiny": 1e-300 * y}


@pytest.mark.parametrize("n", [7, 8, 9, 16, 17, 100, 1000])
def test_they_are_those_of_scipy_whatever_the_offset_and_the_unit(n):
    frame = columns(n)
    found = screened(frame)
    assert len(found) == (6 if n == 1000 else 21)
    for (a, b), pair in found.items():
        first, second = (np.asarray(frame[name], dtype=float) for name in (a, b))
        for name in NAMES:
            exact = name == "pearson" and n < 1000
            assert_close(
                getattr(pair, name), exact_pearson(first, second) if exact else PEERS[name](first, second), scale=1.0
            )


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300, -5e-324]), st.integers(-3, 3)), min_size=4, max_size=25
    )
)
def test_kendall_is_its_definition_with_any_ties(rows):
    x, y = ([float(row[place]) for row in rows] for place in (0, 1))
    # Two further columns, so that there are two where the others are constant.
    values = {"x": x, "y": y, "row": list(range(len(rows))), "even": [row % 2 for row in range(len(rows))]}
    found = screened(values)
    for a, b in itertools.combinations(values, 2):
        if len(set(values[a])) > 1 and len(set(values[b])) > 1:
            assert_close(found[a, b].kendall, naive_kendall(values[a], values[b]), scale=1.0)


@pytest.mark.parametrize("target", [None, "x"])
def test_of_missing_values_only_the_complete_rows_count_and_text_has_none(target):
    frame = pd.DataFrame(columns(60))[["x", "whole", "sign"]].assign(word=["a", "b"] * 30)
    frame.loc[:6, "x"] = np.nan
    frame.loc[4:20, "whole"] = np.nan
    for (a, b), pair in screened(frame, target=target).items():
        both = frame[[a, b]].dropna()
        assert pair.n == len(both)
        for name in NAMES:
            if "word" in (a, b):
                assert getattr(pair, name) is None
            else:
                assert_close(getattr(pair, name), PEERS[name](both[a].astype(float), both[b].astype(float)))


def test_counts_beyond_32_bits():
    # 100,000 rows make 5e9 pairs; only the first two rows are out of order.
    x = np.arange(100_000.0)
    y = x.copy()
    y[[0, 1]] = y[[1, 0]]
    (pair,) = screened({"x": x, "y": y}).values()
    total = 100_000 * 99_999 // 2
    assert_close(pair.kendall, (total - 2) / total)
    assert 1.0 - pair.kendall == pytest.approx(2 / total, rel=1e-5)
