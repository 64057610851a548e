"""Models with explicit features whose arrays do not fit one another are refused, and never index into nothing."""

import numpy as np
import pytest
from learning.svm_cases import clouds
from model_archives import array_of, rewritten

from kerntest import SVM
from kerntest.errors import ModelError

X, Y = clouds(60, 3)
KINDS = ("nystroem:20", "fourier:30")
BEYOND = [lambda columns: columns + 1, lambda columns: columns + 2**40, lambda columns: columns[::-1] + 1]
OFFSETS = [lambda offsets: offsets[:-1], lambda offsets: np.append(offsets, 0.5)]


@pytest.fixture
def changed(tmp_path):
    """Return a function that reads a model again with another array in the place of one."""

    def read(features, name, change):
        path = tmp_path / "m.kt"
        SVM(features=features).fit(X, Y).save(path)
        content = path.read_bytes()
        path.write_bytes(rewritten(content, arrays={name: change(array_of(content, name))}))
        return SVM.load(path)

    return read


@pytest.mark.parametrize("features", KINDS)
def test_a_model_put_together_again_is_read(changed, features):
    machine = changed(features, "centres", lambda columns: columns)
    assert len(machine.predict(X)) == len(X)


@pytest.mark.parametrize("features", KINDS)
@pytest.mark.parametrize("change", BEYOND)
def test_coefficients_of_features_that_are_not_there_are_refused(changed, features, change):
    with pytest.raises(ModelError, match="do not fit together"):
        changed(features, "centres", change)


@pytest.mark.parametrize("change", OFFSETS)
def test_offsets_are_as_many_as_the_features(changed, change):
    with pytest.raises(ModelError, match="do not fit together"):
        changed("fourier:30", "offsets", change)


def test_landmarks_have_no_offsets(changed):
    with pytest.raises(ModelError, match="do not fit together"):
        changed("nystroem:20", "offsets", OFFSETS[1])
