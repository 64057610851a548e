"""The constrained covariance as the statistic of an independence test."""

import naive
import numpy as np
import pytest
from same_results import assert_same
from scipy.linalg import eigh
from tolerances import assert_close
from two_variables import arrays, frame

from kerntest import hsic_test, parse_kernel
from kerntest.inference.independence import analyse_pair
from kerntest.inference.sides import Options

KERNELS = [("gaussian(1)", "gaussian(0.5)"), ("gaussian(1)", "laplacian(1)"), ("linear", "polynomial(2)")]


def centred_matrices(x, y, kernels):
    return [
        np.array(naive.doubly_centred(parse_kernel(text)(side).tolist()))
        for text, side in zip(kernels, (x, y), strict=True)
    ]


def largest_generalised_eigenvalue(A, B):
    """Return the largest gamma of [0 AB/n; BA/n 0] u = gamma [A 0; 0 B] u (Gretton et al. 2005, section 4)."""
    n = len(A)
    zero = np.zeros((n, n))
    cross = np.block([[zero, A @ B / n], [B @ A / n, zero]])
    # The matrix on the right is singular: functions of no variance. A little of the identity takes them out.
    metric = np.block([[A, zero], [zero, B]]) + 1e-9 * np.eye(2 * n)
    return eigh(cross, metric, eigvals_only=True)[-1]


@pytest.mark.parametrize("kernels", KERNELS, ids=" and ".join)
@pytest.mark.parametrize("n", [4, 12, 50])
def test_the_statistic_is_the_largest_generalised_eigenvalue(n, kernels):
    x, y = arrays(n, 2, 1, seed=n)
    result = hsic_test(x, y, statistic="coco", kernel_x=kernels[0], kernel_y=kernels[1], scale="none", permutations=20)
    A, B = centred_matrices(x, y, kernels)
    assert result.coco == pytest.approx(largest_generalised_eigenvalue(A, B), rel=1e-4)
    # The same from the matrices alone: sqrt of the largest eigenvalue of AB, over n.
    assert_close(result.coco, np.sqrt(np.linalg.eigvals(A @ B).real.max()) / n)


def test_fields_of_the_record():
    result = hsic_test(*arrays(), statistic="coco", permutations=200, seed=3)
    assert (result.statistic_name, result.estimator) == ("coco", "biased")
    assert result.statistic == result.coco > 0
    assert 0 < result.witness_correlation <= 1
    assert result.family is None
    assert result.kernel_x.startswith("gaussian(")
    null = result.null
    assert (null.method, null.permutations, null.requested, null.p_floor) == ("permutation", 200, 200, 1 / 200)
    assert (null.exact, null.resampling, null.orders) == (True, "random permutations", None)
    assert null.mean > 0
    assert null.standard_deviation > 0
    # The other estimates are there as in a test of HSIC itself.
    plain = hsic_test(*arrays(), kernel_x=result.kernel_x, kernel_y=result.kernel_y)
    assert_close([result.hsic_unbiased, result.hsic_biased], [plain.hsic_unbiased, plain.hsic_biased])
    assert (plain.coco, plain.witness_correlation, plain.statistic_name) == (None, None, "hsic")


def test_the_p_value_is_the_share_of_permutations_that_reach_it():
    x, y = arrays(30, strength=0.3)
    options = Options("biased", "permutation", 300, 0.05, "standardize", 0)
    analysis = analyse_pair(x, y, options, kernels=("gaussian(1)", "gaussian(1)"), statistic="coco")
    values = analysis.verdict.relabelled
    assert values[0] == analysis.result.coco
    assert len(values) == 300
    assert analysis.result.p_value == np.mean(values >= values[0])
    assert 1 / 300 < analysis.result.p_value < 1


def test_every_relabelled_value_is_that_of_a_pairing():
    """The matrices of each permutation of the rows of the second variable, one by one."""
    x, y = arrays(8, 2, 1, strength=0.3)
    kernels = ("gaussian(1)", "gaussian(1)")
    options = Options("biased", "permutation", 40, 0.05, "none", 0)
    analysis = analyse_pair(x, y, options, kernels=kernels, statistic="coco")
    A, B = centred_matrices(*(variable.points for variable in analysis.paired.variables), kernels)
    rng = np.random.default_rng((0, 0))
    drawn = [np.arange(8), *(rng.permutation(8) for _ in range(39))]
    expected = [np.sqrt(np.linalg.eigvals(A @ B[p][:, p]).real.max()) / 8 for p in drawn]
    assert_close(analysis.verdict.relabelled, expected)


def test_coco_finds_what_hsic_finds():
    data = frame(60)
    strong = hsic_test(data, x_columns="weight", y_columns="price", statistic="coco", permutations=200)
    assert strong.p_value == 1 / 200
    rng = np.random.default_rng(0)
    p = [
        hsic_test(*rng.normal(size=(2, 20)), statistic="coco", permutations=40, seed=seed, threads=1).p_value
        for seed in range(24)
    ]
    # One in 24 at the level 0.05 if nothing depends: 7 or more have a probability below 2e-4.
    assert np.sum(np.array(p) <= 0.05) < 7
    assert 3 < np.sum(np.array(p) <= 0.5) < 21


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_nothing(threads):
    options = {"statistic": "coco", "permutations": 100}
    one, other = hsic_test(*arrays(80), threads=1, **options), hsic_test(*arrays(80), threads=threads, **options)
    assert_same(other, one)


def test_which_is_x_does_not_matter():
    x, y = arrays(50, strength=0.3)
    one, other = (hsic_test(*pair, statistic="coco", permutations=200) for pair in ((x, y), (y, x)))
    # Each within its Monte-Carlo error: five standard errors of the difference of two shares of 200.
    assert abs(other.p_value - one.p_value) <= 5 * np.sqrt(0.5 / 200)
    assert_close(other.coco, one.coco)
    assert (one.kernel_x, one.kernel_y) == (other.kernel_y, other.kernel_x)
