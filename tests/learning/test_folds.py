"""Rows into folds and into a training and a test part."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kerntest.errors import DataError, UsageError
from kerntest.learning.cross_validation import draw_folds, sparse_classes_warning, train_test_split

# Class sizes of at least 2, so that folds can be made.
sizes = st.lists(st.integers(2, 12), min_size=1, max_size=6)
seeds = st.integers(0, 2**32)


def labels_of(sizes, seed=0):
    """Return class codes 0, 1, ... of the given sizes, in random order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


def spread(counts):
    return int(max(counts) - min(counts))


@given(sizes, st.integers(2, 7), seeds)
def test_every_class_and_all_rows_are_spread_evenly(sizes, k, seed):
    labels = labels_of(sizes)
    assume(len(labels) >= k)
    folds = draw_folds(len(labels), k, seed, labels=labels)
    assert folds.shape == labels.shape
    assert set(folds) <= set(range(k))
    assert spread(np.bincount(folds, minlength=k)) <= 1
    for code in range(len(sizes)):
        assert spread(np.bincount(folds[labels == code], minlength=k)) <= 1


@given(sizes, st.integers(2, 7), seeds)
def test_what_a_fold_is_predicted_from_has_every_class(sizes, k, seed):
    labels = labels_of(sizes)
    assume(len(labels) >= k)
    folds = draw_folds(len(labels), k, seed, labels=labels)
    for fold in range(k):
        assert set(labels[folds != fold]) == set(labels)


@given(st.integers(2, 60), st.integers(2, 10), seeds)
def test_plain_folds_are_even(n, k, seed):
    assume(n >= k)
    folds = draw_folds(n, k, seed)
    counts = np.bincount(folds, minlength=k)
    assert len(folds) == n
    assert len(counts) == k
    assert spread(counts) <= 1


def test_folds_repeat_with_the_seed_and_differ_without():
    labels = labels_of([40, 60])
    for make in (lambda seed: draw_folds(len(labels), 5, seed, labels=labels), lambda seed: draw_folds(100, 5, seed)):
        np.testing.assert_array_equal(make(3), make(3))
        assert (make(3) != make(4)).any()


def test_folds_are_drawn_without_favour():
    # 4 folds of 2 + 3 rows: which fold gets the second row, and which rows stand together, is equally likely.
    labels = np.array([0, 0, 1, 1, 1])
    drawn = np.array([draw_folds(len(labels), 4, seed, labels=labels) for seed in range(2000)])
    for row in range(5):
        np.testing.assert_allclose(np.bincount(drawn[:, row], minlength=4) / 2000, 0.25, atol=0.05)
    together = (drawn[:, :2, None] == drawn[:, None, 2:]).any(axis=(1, 2)).mean()
    np.testing.assert_allclose(together, 1.0, atol=0.0)  # 5 rows in 4 folds: one pair, and of different classes
    pairs = (drawn[:, :2, None] == drawn[:, None, 2:]).mean(axis=0)
    np.testing.assert_allclose(pairs, 1 / 6, atol=0.03)


def test_codes_may_be_any_whole_numbers():
    labels = np.array([7, 7, 7, 3, 3, 3])
    folds = draw_folds(len(labels), 3, 0, labels=labels)
    for code in (3, 7):
        assert sorted(folds[labels == code]) == [0, 1, 2]


@pytest.mark.parametrize("k", [1, 0, -2, 2.0, True, "5"])
def test_folds_that_are_no_number_of_folds_are_refused(k):
    for make in (
        lambda: draw_folds(10, k, 0),
        lambda: draw_folds(len(np.zeros(10, int)), k, 0, labels=np.zeros(10, int)),
    ):
        with pytest.raises(UsageError, match="folds must be a whole number of at least 2") as caught:
            make()
        assert caught.value.hint


def test_fewer_rows_than_folds_are_refused():
    for make in (lambda: draw_folds(3, 5, 0), lambda: draw_folds(len(np.zeros(3, int)), 5, 0, labels=np.zeros(3, int))):
        with pytest.raises(DataError, match="3 rows cannot be divided into 5 folds") as caught:
            make()
        assert caught.value.hint == "ask for at most 3 folds"
    with pytest.raises(DataError, match="1 row cannot be divided into 2 folds") as caught:
        draw_folds(1, 2, 0)
    assert caught.value.hint == "at least 2 rows are needed"


def test_a_class_of_one_row_is_refused():
    with pytest.raises(DataError, match="only 1 row has class 'rare': of 5 folds") as caught:
        draw_folds(len(np.array([0] * 9 + [1])), 5, 0, labels=np.array([0] * 9 + [1]), classes=("common", "rare"))
    assert "leave out" in caught.value.hint
    with pytest.raises(DataError, match="only 1 row has class 1:"):
        draw_folds(len(np.array([0] * 9 + [1])), 5, 0, labels=np.array([0] * 9 + [1]))


def test_classes_with_fewer_rows_than_folds_are_told():
    labels = labels_of([2, 4, 5, 9])
    expected = "not every one of 5 folds has a row of each class: 'a' (2 rows), 'b' (4 rows)"
    assert sparse_classes_warning(labels, 5, ("a", "b", "c", "d")) == expected
    assert sparse_classes_warning(labels, 2, ("a", "b", "c", "d")) is None
    many = sparse_classes_warning(labels_of([2] * 8), 3, "abcdefgh")
    assert many.endswith("'e' (2 rows) and 3 more")
    assert "numpy" not in many
    assert "int64" not in many


@given(sizes, st.floats(0.05, 0.95), seeds)
def test_a_split_is_of_the_right_size_and_every_class_has_its_share(sizes, fraction, seed):
    labels = labels_of(sizes)
    n = len(labels)
    assume(0 < round(fraction * n) < n)
    train, test = train_test_split(labels, n, fraction, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    assert len(test) == round(fraction * n)
    if len(sizes) <= len(test) <= n - len(sizes):
        assert set(labels[train]) == set(labels[test]) == set(labels)


@given(st.lists(st.integers(20, 60), min_size=2, max_size=5), st.floats(0.2, 0.8), seeds)
def test_shares_of_large_classes_are_rounded_to_a_neighbour(sizes, fraction, seed):
    labels = labels_of(sizes)
    n = len(labels)
    _, test = train_test_split(labels, n, fraction, seed)
    for code, size in enumerate(sizes):
        assert abs(np.count_nonzero(labels[test] == code) - size * len(test) / n) < 1


def test_rare_classes_are_in_both_parts():
    labels = labels_of([2, 2, 96])
    for fraction in (0.1, 0.25, 0.9):
        train, test = train_test_split(labels, 100, fraction, 0)
        assert set(labels[train]) == set(labels[test]) == {0, 1, 2}


def test_the_only_row_of_a_class_is_for_training():
    labels = np.array([0] * 20 + [1])
    for seed in range(20):
        train, _ = train_test_split(labels, 21, 0.5, seed)
        assert 20 in train


def test_more_classes_than_test_rows_or_training_rows():
    labels = np.repeat(np.arange(6), 2)
    for fraction in (0.1, 0.25, 0.75, 0.9):
        train, test = train_test_split(labels, 12, fraction, 0)
        assert len(test) == round(12 * fraction)
        assert len(train) + len(test) == 12
    singles = np.arange(8)
    train, test = train_test_split(singles, 8, 0.25, 0)
    assert (len(train), len(test)) == (6, 2)


def test_a_split_without_labels():
    train, test = train_test_split(None, 10, 0.3, 1)
    assert (len(train), len(test)) == (7, 3)
    assert sorted([*train, *test]) == list(range(10))
    counts = np.zeros(10)
    for seed in range(2000):
        counts[train_test_split(None, 10, 0.3, seed)[1]] += 1
    np.testing.assert_allclose(counts / 2000, 0.3, atol=0.05)


def test_splits_repeat_with_the_seed_and_differ_without():
    labels = labels_of([40, 60])
    for given_labels in (labels, None):
        first, again, other = (train_test_split(given_labels, 100, 0.25, seed)[1] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert set(first) != set(other)


def test_every_row_of_a_class_is_as_likely_to_be_tested():
    labels = np.array([0, 1, 0, 1, 0, 0])
    counts = np.zeros(6)
    for seed in range(2000):
        counts[train_test_split(labels, 6, 0.5, seed)[1]] += 1
    np.testing.assert_allclose(counts / 2000, 0.5, atol=0.05)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_fractions_that_are_none_are_refused(fraction):
    with pytest.raises(UsageError, match="the test fraction must be between 0 and 1, not") as caught:
        train_test_split(None, 10, fraction, 0)
    assert caught.value.hint


def test_a_fraction_that_leaves_nothing_is_refused():
    with pytest.raises(DataError, match=r"a test fraction of 0.01 leaves none of 10 rows to test on") as caught:
        train_test_split(None, 10, 0.01, 0)
    assert caught.value.hint == "0.25 leaves rows to both"
    with pytest.raises(DataError, match=r"a test fraction of 0.99 leaves none of 3 rows to train on") as caught:
        train_test_split(np.array([0, 1, 0]), 3, 0.99, 0)
    assert caught.value.hint == "0.5 leaves rows to both"
    with pytest.raises(DataError, match="leaves none of 1 row to train on") as caught:
        train_test_split(None, 1, 0.6, 0)
    assert caught.value.hint == "at least 2 rows are needed"


@pytest.mark.parametrize("n", range(2, 30))
def test_the_fraction_that_the_hint_names_works(n):
    with pytest.raises(DataError) as caught:
        train_test_split(None, n, 0.001, 0)
    named = float(caught.value.hint.split()[0])
    train, test = train_test_split(None, n, named, 0)
    assert len(train) >= 1
    assert len(test) >= 1
