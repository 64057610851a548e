"""The two-sample test by features keeps its level, whatever the order of the rows, and the power of the exact test."""

import numpy as np
import pandas as pd
import pytest

from kerntest import mmd_test
from kerntest.inference.streamed import block_sums

OPTIONS = {
    "kernel": "gaussian(1.5)",
    "features": "nystroem:20",
    "permutations": 200,
    "method": "features",
    "threads": 1,
}


@pytest.fixture
def large_blocks(monkeypatch):
    monkeypatch.setattr(block_sums, "BLOCKS", 50)
    monkeypatch.setattr(block_sums, "FEWEST_BLOCKS", 20)


def rejections(tests, draw, alpha=0.1, **options):
    return sum(mmd_test(*draw(), alpha=alpha, seed=seed, **OPTIONS | options).reject for seed in range(tests))


@pytest.mark.usefixtures("large_blocks")
def test_sorted_files_keep_the_level_in_a_few_tests():
    rng = np.random.default_rng(1)
    found = rejections(24, lambda: (np.sort(rng.normal(size=500)), np.sort(rng.normal(size=400))), alpha=0.25)
    # Binomial(24, 0.25): outside of 1 to 14 twice in 1,000.
    assert 1 <= found <= 14


@pytest.mark.thorough
@pytest.mark.usefixtures("large_blocks")
def test_the_level_is_kept():
    rng = np.random.default_rng(0)
    found = rejections(100, lambda: (rng.normal(size=1000), rng.normal(size=1000)))
    # Binomial(100, 0.1): outside of 1 to 22 once in 5,000.
    assert 1 <= found <= 22


@pytest.mark.thorough
@pytest.mark.usefixtures("large_blocks")
def test_sorted_files_keep_the_level():
    rng = np.random.default_rng(1)
    found = rejections(100, lambda: (np.sort(rng.normal(size=1000)), np.sort(rng.normal(size=800))))
    assert 1 <= found <= 22


@pytest.mark.thorough
def test_the_level_is_kept_by_very_unequal_files(monkeypatch):
    monkeypatch.setattr(block_sums, "MOST_BLOCKS", 60)
    rng = np.random.default_rng(2)
    found = rejections(60, lambda: (rng.normal(size=3000), rng.normal(size=205)))
    # Binomial(60, 0.1): more than 15 once in 2,000.
    assert found <= 15


def test_rows_of_the_longer_file_beyond_the_blocks_stay_in_it(monkeypatch):
    monkeypatch.setattr(block_sums, "MOST_BLOCKS", 60)
    rng = np.random.default_rng(2)
    result = mmd_test(rng.normal(size=4000), rng.normal(size=205), **OPTIONS)
    assert result.approximation.fixed_rows > 3000


@pytest.mark.thorough
@pytest.mark.usefixtures("large_blocks")
def test_what_the_exact_test_sees_features_see():
    rng = np.random.default_rng(4)
    exact = features = 0
    for seed in range(15):
        x, y = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
        y[:, 0] *= 1.35
        exact += mmd_test(x, y, seed=seed, permutations=200).reject
        features += mmd_test(x, y, seed=seed, permutations=200, method="features", features="nystroem:60").reject
    assert exact >= 4
    assert abs(features - exact) <= 6


@pytest.mark.thorough
def test_sample_data_say_the_same():
    before, after = (pd.read_csv(f"sample_data/{name}.csv") for name in ("before", "after"))
    assert mmd_test(before, after, method="features").reject == mmd_test(before, after).reject
