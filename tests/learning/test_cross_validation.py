"""Rows into folds and into a training and a test part. Inside: the draws decide what is held out, and take arrays."""

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


@given(sizes, st.integers(2, 7), seeds)
def test_every_class_and_all_rows_are_spread_evenly(sizes, k, seed):
    labels = labels_of(sizes)
    n = len(labels)
    assume(n >= k)
    folds = draw_folds(n, k, seed, labels=labels)
    for drawn in (folds, draw_folds(n, k, seed)):
        assert set(drawn) <= set(range(k))
        assert np.ptp(np.bincount(drawn, minlength=k)) <= 1
    for code in range(len(sizes)):
        assert np.ptp(np.bincount(folds[labels == code], minlength=k)) <= 1
    # What a fold is predicted from has every class.
    assert all(set(labels[folds != fold]) == set(labels) for fold in range(k))


def test_folds_are_drawn_without_favour_and_repeat_with_the_seed():
    # 4 folds of 2 + 3 rows: which fold gets the second row, and which rows stand together, is equally likely.
    labels = np.array([0, 0, 1, 1, 1])
    drawn = np.array([draw_folds(5, 4, seed, labels=labels) for seed in range(2000)])
    for row in range(5):
        np.testing.assert_allclose(np.bincount(drawn[:, row], minlength=4) / 2000, 0.25, atol=0.05)
    pairs = (drawn[:, :2, None] == drawn[:, None, 2:]).mean(axis=0)
    np.testing.assert_allclose(pairs, 1 / 6, atol=0.03)
    np.testing.assert_array_equal(drawn[3], draw_folds(5, 4, 3, labels=labels))


def raised(error, match, call):
    with pytest.raises(error, match=match) as caught:
        call()
    return caught.value.hint


def test_folds_that_cannot_be_are_refused():
    for k in (1, 0, -2, 2.0, True, "5"):
        assert raised(UsageError, "a whole number of at least 2", lambda k=k: draw_folds(10, k, 0))
    hint = raised(DataError, "3 rows cannot be divided into 5 folds", lambda: draw_folds(3, 5, 0))
    assert hint == "ask for at most 3 folds"
    hint = raised(DataError, "1 row cannot be divided into 2 folds", lambda: draw_folds(1, 2, 0))
    assert hint == "at least 2 rows are needed"
    rare, names = np.array([0] * 9 + [1]), ("common", "rare")
    hint = raised(DataError, "class 'rare' has only 1 row", lambda: draw_folds(10, 5, 0, labels=rare, classes=names))
    assert "leave out" in hint
    several: dict = {
        "labels": np.repeat([0, 1, 2, 3], [1, 8, 1, 1]),
        "classes": ("it's", "common", "7", "x"),
        "target": "a b",
    }
    told = "each of the classes \"it's\", '7', 'x' has only 1 row"
    hint = raised(DataError, told, lambda: draw_folds(11, 5, 0, **several))
    condition = "`a b` not in ('it''s', 7, 'x')"
    assert hint == f"where={condition!r} leaves them out, or merge with other classes"


def test_classes_with_fewer_rows_than_folds_are_told():
    labels = labels_of([2, 4, 5, 9])
    expected = "not every one of 5 folds has a row of each class: 'a' (2 rows), 'b' (4 rows)"
    assert sparse_classes_warning(labels, 5, "abcd") == expected
    assert sparse_classes_warning(labels, 2, "abcd") is None
    assert sparse_classes_warning(labels_of([2] * 8), 3, "abcdefgh").endswith("'e' (2 rows) and 3 more")


@given(sizes, st.floats(0.05, 0.95), seeds)
def test_a_split_is_of_the_right_size_and_every_class_has_its_share(sizes, fraction, seed):
    labels = labels_of(sizes)
    n = len(labels)
    assume(0 < round(fraction * n) < n)
    train, test = train_test_split(labels, n, fraction, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    assert len(test) == len(train_test_split(None, n, fraction, seed)[1]) == round(fraction * n)
    if len(sizes) <= len(test) <= n - len(sizes):
        assert set(labels[train]) == set(labels[test]) == set(labels)
    large = np.repeat(labels, 10)
    _, test = train_test_split(large, 10 * n, fraction, seed)
    for code, size in enumerate(np.bincount(large)):
        assert abs(np.count_nonzero(large[test] == code) - size * len(test) / (10 * n)) < 1


def test_rare_classes_and_small_parts():
    labels = labels_of([2, 2, 96])
    for fraction in (0.1, 0.25, 0.9):
        train, test = train_test_split(labels, 100, fraction, 0)
        assert set(labels[train]) == set(labels[test]) == {0, 1, 2}
    many = np.repeat(np.arange(6), 2)
    assert [len(train_test_split(many, 12, share, 0)[1]) for share in (0.1, 0.25, 0.75, 0.9)] == [1, 3, 9, 11]
    assert len(train_test_split(np.arange(8), 8, 0.25, 0)[1]) == 2


def test_fractions_that_leave_nothing_are_refused():
    for fraction in (0.0, 1.0, -0.5, 1.5, float("nan")):
        assert raised(UsageError, "between 0 and 1, not", lambda f=fraction: train_test_split(None, 10, f, 0))
    hint = raised(DataError, "leaves none of 10 rows to test on", lambda: train_test_split(None, 10, 0.01, 0))
    assert hint == "0.25 leaves rows to both"
    hint = raised(DataError, "leaves none of 3 rows to train on", lambda: train_test_split(None, 3, 0.99, 0))
    assert hint == "0.5 leaves rows to both"
    hint = raised(DataError, "leaves none of 1 row to train on", lambda: train_test_split(None, 1, 0.6, 0))
    assert hint == "at least 2 rows are needed"


@pytest.mark.parametrize("seed", range(5))
def test_folds_and_parts_keep_clusters_whole_and_even(seed):
    drawn = np.random.default_rng(seed)
    clusters = drawn.permutation(np.repeat(np.arange(60), drawn.integers(1, 12, 60)))
    labels = (drawn.random(60) < 0.3)[clusters].astype(int)
    n = len(clusters)
    by_class = draw_folds(n, 5, seed, labels=labels, clusters=clusters)
    for folds in (by_class, draw_folds(n, 5, seed, clusters=clusters)):
        assert all(len(np.unique(folds[clusters == k])) == 1 for k in range(60))
        assert np.ptp(np.bincount(folds)) < 0.06 * n
    assert np.ptp([labels[by_class == k].mean() for k in range(5)]) < 0.15
    for given_labels in (labels, None):
        train, test = train_test_split(given_labels, n, 0.3, seed, clusters)
        assert sorted([*train, *test]) == list(range(n))
        assert not set(clusters[train]) & set(clusters[test])
        assert abs(len(test) - 0.3 * n) < 0.05 * n


def test_too_few_clusters():
    clusters, labels = np.repeat([0, 1, 2], 5), np.repeat([0, 1, 1], 5)
    names = ("rare", "other")
    hint = raised(DataError, "3 clusters cannot be divided into 5", lambda: draw_folds(15, 5, 0, clusters=clusters))
    assert hint == "ask for at most 3 folds"
    one = {"labels": labels, "classes": names, "clusters": clusters}
    raised(DataError, "class 'rare' has only 1 cluster", lambda: draw_folds(15, 2, 0, **one))
    raised(DataError, "all rows are in one", lambda: train_test_split(None, 15, 0.5, 0, np.zeros(15, dtype=int)))
    raised(DataError, "has all rows of a class", lambda: train_test_split(clusters, 15, 0.5, 0, clusters))
    assert "'rare' (1 cluster)" in sparse_classes_warning(labels, 2, names, clusters)
    # The class of one cluster is learned from.
    assert set(labels[train_test_split(labels, 15, 0.3, 0, clusters)[0]]) == {0, 1}
    # A cluster is tested on even where each is more than the share that is asked for.
    assert len(train_test_split(None, 10, 0.1, 0, np.repeat([0, 1], 5))[1]) == 5
