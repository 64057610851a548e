"""Rows go to blocks at random, each row to one place and each place to one row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerntest.inference.streamed.assignment import Blocks, RandomOrder


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 100, 1023, 1024, 1025, 40_000])
def test_every_place_is_taken_once(n):
    places = RandomOrder(n, 0, 0).places(np.arange(n))
    np.testing.assert_array_equal(np.sort(places), np.arange(n))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 1))
def test_every_place_is_taken_once_for_any_seed(n, seed, stream):
    assert len(np.unique(RandomOrder(n, seed, stream).places(np.arange(n)))) == n


def test_any_part_can_be_asked_for():
    order = RandomOrder(10**12, 3, 1)
    rows = np.array([5, 10**12 - 1, 17, 123_456_789_012])
    np.testing.assert_array_equal(order.places(rows)[[2, 0]], order.places(rows[[2, 0]]))
    assert order.places(rows).max() < 10**12


def test_seeds_and_streams_have_orders_of_their_own():
    rows = np.arange(1000)
    first = RandomOrder(1000, 0, 0).places(rows)
    for seed, stream in ((1, 0), (0, 1)):
        # Two random orders agree in one place on average.
        assert np.count_nonzero(first == RandomOrder(1000, seed, stream).places(rows)) < 10


@pytest.mark.parametrize("n", [3000, 4096, 70_000])
def test_neighbours_are_spread_over_all_blocks(n):
    """Any run of rows falls into the blocks like a sample without replacement: hypergeometric counts."""
    blocks, part = 30, n // 10
    for start in (0, n // 3, n - part):
        found = np.bincount(RandomOrder(n, 0, 0).places(np.arange(start, start + part)) * blocks // n, minlength=blocks)
        expected = part / blocks
        chi_square = float(np.sum((found - expected) ** 2) / expected) / (1 - part / n)
        # Chi-square with 29 degrees of freedom lies in here but once in 10,000.
        assert 8.0 < chi_square < 68.0


def test_the_correlation_of_row_and_place_is_none():
    n = 100_000
    places = RandomOrder(n, 5, 0).places(np.arange(n))
    assert abs(np.corrcoef(np.arange(n), places)[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 5 / np.sqrt(n)


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 9))
def test_blocks_have_the_sizes_that_they_say(n, size, fixed):
    free = min(12, n // size)
    beyond = n - free * size
    blocks = Blocks(n, free, size, min(beyond, fixed))
    found = np.bincount(blocks.of(np.arange(n)), minlength=blocks.count)
    np.testing.assert_array_equal(found, blocks.sizes())
    assert (found[:free] == size).all()
    assert (found > 0).all()
    assert blocks.fixed_rows == beyond
