"""Hints about targets name ways out that lead out."""

import numpy as np
import pandas as pd
import pytest

from kerntest import SVM, train_svm
from kerntest.errors import DataError, UsageError

N = 40
ROWS = pd.DataFrame({"a": np.arange(N) * 1.5, "b": np.arange(N) % 3, "y": ["u", "v"] * (N // 2)})


def hint_of(table, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        train_svm(table, "y", **options)
    return caught.value.hint


def test_a_target_cannot_be_excluded_so_no_hint_says_so():
    gaps = ROWS.assign(y=[None, *ROWS["y"][1:]])
    assert hint_of(gaps) == "--missing drop leaves those rows out"
    # Without a the target still has one.
    assert hint_of(gaps.assign(a=[1.0, None, *ROWS["a"][2:]])) == "--missing drop leaves those rows out"
    assert hint_of(ROWS.assign(a=[1.0, None, *ROWS["a"][2:]])).endswith("; --exclude a leaves the column out")
    assert hint_of(ROWS, test=gaps) == "--missing drop leaves those rows out"


def test_a_target_without_a_value_is_to_be_filled_in():
    assert hint_of(ROWS.assign(y=None), missing="drop") == "column 'y' is needed: fill it in"


def test_texts_are_not_said_to_be_numbers_to_predict():
    table = pd.DataFrame({"a": np.arange(1200) % 7, "y": [f"k{k}" for k in range(1200)]})
    assert "regress" not in hint_of(table)
    assert "regress" in hint_of(table.assign(y=np.arange(1200) / 7))


def test_folds_that_nobody_asked_for_are_explained():
    hint = hint_of(ROWS[:4], probability=True)
    assert "folds" not in hint
    assert "5 rows" in hint


def test_a_class_has_one_weight():
    with pytest.raises(UsageError, match="'u' twice"):
        SVM(class_weight="u:1,v:2,u:3")


def test_numbers_that_hardly_repeat_are_no_classes():
    numbers = ROWS.assign(y=np.arange(N) / 7)
    assert "regress" in hint_of(numbers)
    assert "another --target" in hint_of(numbers.assign(y=[f"id{k}" for k in range(N)]))
    assert train_svm(numbers, "y", task="regress").n_train == N
    few = numbers[:20].assign(y=np.arange(20) // 2)
    assert len(train_svm(few, "y").classes) == 10
