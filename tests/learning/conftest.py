"""A valid model, a reader of those that are not, and models to be applied."""

import pytest
from learning.files_to_apply import write_models
from model_archives import ARRAYS, MANIFEST, valid_model

from kerntest import inspect_model
from kerntest.errors import ModelError


@pytest.fixture
def valid():
    return valid_model(MANIFEST, ARRAYS)


@pytest.fixture
def refused(tmp_path):
    """Return a function that reads bytes as a model and returns the ModelError that this raises."""

    def read(content):
        path = tmp_path / "m.model"
        path.write_bytes(content)
        with pytest.raises(ModelError) as caught:
            inspect_model(path)
        error = caught.value
        assert error.exit_code == 5
        assert error.message.isprintable()
        assert str(path) in error.message
        assert error.hint
        return error

    return read


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a folder with models of every kind, and rows to apply them to."""
    path = tmp_path_factory.mktemp("applied")
    write_models(path)
    return path
