"""The order of the rows: canonical, then random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerntest.data.columns import Arranged
from kerntest.inference.relabelling.permuted_blocks import random_orders
from kerntest.inference.sides import lay_out


def order(rows, n_x, names):
    """Return the rows of two samples, one below the other, as they are laid out; the first two columns are numbers."""
    rows = np.asarray(rows)
    pooled = Arranged(rows[:, :2].astype(float), rows[:, 2:].astype(np.int64), names[:2], names[2:], ((),), (), (), n_x)
    sample = lay_out(pooled, "none")
    return np.where(sample.labels == 1, sample.origin, sample.origin + n_x)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), n_x=st.integers(0, 40))
def test_canonical_order_depends_on_the_rows_of_each_sample_as_a_set(seed, n, n_x):
    n_x = min(n_x, n)
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, size=(n, 4))
    shuffle = np.r_[rng.permutation(n_x), n_x + rng.permutation(n - n_x)].astype(int)
    first, second = order(rows, n_x, tuple("bdac")), shuffle[order(rows[shuffle], n_x, tuple("bdac"))]
    np.testing.assert_array_equal(rows[first], rows[second])
    np.testing.assert_array_equal(first < n_x, second < n_x)
    # Of rows that are equal in every column those of Y come first.
    equal = (np.diff(rows[first], axis=0) == 0).all(axis=1)
    assert (np.diff((first < n_x).astype(int))[equal] >= 0).all()


@pytest.mark.parametrize(("names", "expected"), [("abc", [2, 0, 1]), ("bac", [2, 1, 0]), ("bca", [0, 1, 2])])
def test_columns_are_compared_in_the_order_of_their_names(names, expected):
    rows = [[1.0, 9.0, 0], [2.0, 1.0, 0], [1.0, 1.0, 1]]
    assert order(rows, 0, tuple(names)).tolist() == expected


@given(seed=st.integers(0, 2**32), orders=st.integers(1, 5))
def test_random_orders_rearrange_the_labels(seed, orders):
    labels = np.repeat([1, 0], [5, 9]).astype(np.uint8)
    order, labellings = random_orders(labels, orders, seed)
    assert sorted(order) == list(range(14))
    assert len(labellings) == orders
    np.testing.assert_array_equal(labellings[0], labels[order])
    assert all(one.sum() == 5 and len(one) == 14 for one in labellings)


def test_random_orders_are_blind_to_the_labels():
    """Swapped labels get the same rows and the swapped labellings: the draw looks at the number of rows alone."""
    labels = np.repeat([1, 0], [5, 9]).astype(np.uint8)
    order, labellings = random_orders(labels, 4, 3)
    other_order, swapped = random_orders(1 - labels, 4, 3)
    np.testing.assert_array_equal(order, other_order)
    np.testing.assert_array_equal(np.array(labellings), 1 - np.array(swapped))


def test_more_orders_begin_with_the_fewer():
    labels = np.repeat([1, 0], [5, 9]).astype(np.uint8)
    few, many = random_orders(labels, 2, 3)[1], random_orders(labels, 6, 3)[1]
    np.testing.assert_array_equal(few, many[:2])
