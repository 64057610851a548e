"""How far computed numbers may lie apart: sums of floats have no bits to promise, on any processor."""

import numpy as np

# Statistics, nulls and objectives, as a share of their scale, between engines, runs, processors and versions of BLAS.
STATISTIC = 1e-8
# The same between two runs on one machine (threads, block sizes, engines).
SAME_MACHINE = 1e-10


def assert_close(found, expected, *, scale=None, condition=1.0, share=STATISTIC):
    """Fail unless all of `found` is within share x condition of the scale, which is the largest |expected| unless given."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    size = float(np.abs(expected).max(initial=0.0)) if scale is None else scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=share * condition * size)
