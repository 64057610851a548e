"""BLAS by one thread, for matrices as small as these."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Keep BLAS from waiting for its own threads, which takes most of the time on a machine that is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield
