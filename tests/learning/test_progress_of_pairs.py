"""Whoever waits for many pairs of classes is told how far the work is."""

import pandas as pd
from learning.svm_cases import clouds

from kerntest import train_svm


def test_every_pair_of_classes_is_counted():
    X, y = clouds(60, classes=4)
    seen = []
    train_svm(
        pd.DataFrame(X, columns=["a", "b"]).assign(y=y), "y", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(done, 6) for done in range(1, 7)]
