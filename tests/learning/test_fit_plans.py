"""The plan of a fit: what it says about memory is what the method holds."""

import numpy as np
import pytest

from kerntest import compute_on
from kerntest.engines.setting import PlanOnlyError
from kerntest.learning.ridge_train import train_ridge


def bytes_of_ridge(n, features):
    rows = np.random.default_rng(0).normal(size=(n, 3))
    with pytest.raises(PlanOnlyError) as caught, compute_on(planned=stop):
        train_ridge(rows, "x3", kernel="gaussian", bandwidth=1.0, features=features)
    return caught.value.args[0].memory_bytes


def stop(plan):
    raise PlanOnlyError(plan)


def test_the_memory_of_ridge_by_features_grows_as_two_square_matrices_of_them():
    few, more = bytes_of_ridge(320, "nystroem:40"), bytes_of_ridge(320, "nystroem:80")
    assert more - few >= 2 * 8 * (80**2 - 40**2)
    # Rows pass in blocks, and none of their matrices is held as a whole.
    assert more - few < 8 * 320 * 80
