"""A valid model, and a reader of those that are not; BLAS by one thread, for matrices as small as these."""

import pytest
from model_archives import ARRAYS, MANIFEST
from threadpoolctl import threadpool_limits

from kerntest.errors import ModelError
from kerntest.learning.modelfile import model_bytes, read_model


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Keep BLAS from waiting for its own threads, which takes most of the time on a machine that is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def valid():
    return model_bytes(MANIFEST, ARRAYS)


@pytest.fixture
def refused(tmp_path):
    """Return a function that reads bytes as a model and returns the ModelError that this raises."""

    def read(content):
        path = tmp_path / "m.model"
        path.write_bytes(content)
        with pytest.raises(ModelError) as caught:
            read_model(path)
        error = caught.value
        assert error.exit_code == 5
        assert error.message.isprintable()
        assert str(path) in error.message
        assert error.hint
        return error

    return read
