"""The order of the rows: canonical, then random."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kerntest.inference.relabelling.permuted_blocks import random_orders
from kerntest.inference.sides import canonical_order


def data(n, seed, *, values=4):
    rng = np.random.default_rng(seed)
    numeric = rng.integers(0, values, size=(n, 2)).astype(float)
    return numeric, rng.integers(0, 2, size=(n, 2)), rng.integers(0, 2, n).astype(np.uint8)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40))
def test_canonical_order_depends_on_the_rows_as_a_set(seed, n):
    numeric, codes, labels = data(n, seed)
    shuffle = np.random.default_rng(seed).permutation(n)
    names = (("b", "d"), ("a", "c"))
    first = canonical_order(numeric, codes, *names, labels)
    second = shuffle[canonical_order(numeric[shuffle], codes[shuffle], *names, labels[shuffle])]
    for values in (numeric, codes, labels):
        np.testing.assert_array_equal(values[first], values[second])


def test_columns_are_compared_in_the_order_of_their_names():
    numeric = np.array([[1.0, 9.0], [2.0, 1.0], [1.0, 1.0]])
    codes = np.array([[0], [0], [1]])
    labels = np.zeros(3, dtype=np.uint8)

    def order(numeric_names, category_names):
        return canonical_order(numeric, codes, numeric_names, category_names, labels).tolist()

    assert order(("a", "b"), ("c",)) == [2, 0, 1]
    assert order(("b", "a"), ("c",)) == [2, 1, 0]
    assert order(("b", "c"), ("a",)) == [0, 1, 2]


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
