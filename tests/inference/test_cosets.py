"""Many relabellings of two samples: random labels and blocks anew for each thousand of them, and what a p-value then hangs on."""

import math
import re

import naive
import numpy as np
import pytest
from command_line import run_process
from scipy.special import bdtr, bdtrc
from tolerances import assert_close
from two_samples import frames

from kerntest import mmd_test
from kerntest.engines.engine import Engine
from kerntest.inference.family import Family
from kerntest.inference.relabelling import designs
from kerntest.inference.relabelling.designs import BlockedRows, Cosets, block_variance
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Options, Sample
from kerntest.inference.statistic import LabelMatrix
from kerntest.inference.verdict import MonteCarloError, relabelling_warning
from kerntest.inference.work_of_tests import step_of_test
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ONE = {"kernel": "gaussian", "bandwidth": "median", "threads": 1}
FALSE_ALARM = 1e-6


@pytest.fixture
def small(monkeypatch):
    """Blocks of several rows, and cosets of few relabellings, for few rows."""
    for name, value in {"BLOCKS": 14, "FEWEST": 4, "ALL": 1, "OF_COSET": 40}.items():
        monkeypatch.setattr(designs, name, value)


def sample_of(n_x, n_y):
    rng = np.random.default_rng(n_x)
    labels = rng.permutation(np.repeat([1, 0], [n_x, n_y])).astype(np.uint8)
    points = Points.of(rng.normal(size=(n_x + n_y, 2)))
    return Sample(points, np.zeros(2), np.ones(2), ("u", "v"), (), labels=labels, origin=np.arange(n_x + n_y))


def counts(n, seed):
    """Return rows of which most are 0, as those of earnings."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, 2)) < 0.5, 0.0, rng.lognormal(0, 1, (n, 2)))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize(("n_x", "n_y"), [(21, 14), (13, 30)])
def test_every_relabelling_of_every_coset(n_x, n_y, estimator):
    """By double loops over the rows as they are labelled then; the observed labels are the very first, and only there."""
    sample = sample_of(n_x, n_y)
    options = Options(estimator, "permutation", 110, 0.05, "none", 5, "blocks")
    test, kernel = TwoSamples(options, Engine(1), None, sample), parse_kernel("gaussian(1)")
    found = test.relabelled(Family(((kernel,),)), options.permutations)
    cosets = list(Cosets(sample, options.permutations, options.seed))
    # As many of each, and no fewer in all than were asked for.
    assert (found.orders, found.sums.shape, [len(moved) for _, moved in cosets]) == (3, (1, 111), [37, 37, 37])
    labellings = []
    for blocks, moved in cosets:
        assert blocks.starts[1] > 1
        fixed = np.broadcast_to(blocks.in_x[blocks.free :], (len(moved), len(blocks.in_x) - blocks.free))
        labels = np.empty((len(moved), n_x + n_y), dtype=np.uint8)
        labels[:, blocks.order] = np.repeat(np.hstack([moved, fixed]), blocks.sizes, axis=1)
        labellings.append(labels)
    every = np.concatenate(labellings)
    assert (every.sum(axis=1) == n_x).all()
    np.testing.assert_array_equal(every[0], sample.labels)
    assert [bool((labels == sample.labels).all(axis=1).any()) for labels in labellings[1:]] == [False, False]
    K = kernel(sample.points).tolist()
    expected = [naive.mmd2[estimator](K, labels.tolist()) for labels in every]
    assert_close(LabelMatrix(n_x, n_y, estimator).factor * found.sums[0], expected, scale=1.0)


@pytest.mark.usefixtures("small")
def test_the_first_labels_of_a_coset_are_any_of_all_rows():
    """A row of X is one with the share of X among all rows, whatever it was: not blocks of X and of Y that change places."""
    sample, n_x = sample_of(20, 20), 20
    first = np.array(
        [blocks.in_x[blocks.of_rows()] for seed in range(60) for blocks, _ in list(Cosets(sample, 110, seed))[1:]]
    )
    stayed = int(first[:, sample.labels == 1].sum())
    # Of each labelling the number is hypergeometric, of which the binomial distribution is wider.
    assert bdtrc(stayed - 1, len(first) * n_x, 0.5) > FALSE_ALARM
    assert bdtr(stayed, len(first) * n_x, 0.5) > FALSE_ALARM


@pytest.mark.parametrize("judge", ["together", "smallest"])
def test_a_p_value_is_a_count_of_relabellings_on_any_number_of_threads(judge):
    x, y = counts(180, 1), counts(250, 2) * 1.2
    options = {"permutations": 2003, "judge": judge, "bandwidth": (0.5, 1.0), "kernel": "gaussian"}
    one, more = (mmd_test(x, y, threads=threads, **options) for threads in (1, 3))
    null = one.null
    assert (null.permutations, null.requested, null.orders, null.exact) == (2004, 2003, 3, True)
    assert null.p_floor == 1 / 2004
    assert one.p_value * 2004 == pytest.approx(round(one.p_value * 2004), abs=1e-9)
    assert one.p_value == more.p_value
    assert "permuted blocks of 3 random rows, in 3 random orders, exact" in " ".join(one.summary().split())


@pytest.mark.parametrize(
    ("n", "options"),
    [
        pytest.param((90, 110), {}, id="a block is a row"),
        pytest.param((20, 500), {}, id="all rows of a small file"),
        pytest.param((250, 250), {"resampling": "random"}, id="random permutations"),
        pytest.param((250, 250), {"permutations": 1000}, id="as many as one set of blocks has"),
    ],
)
def test_one_set_of_blocks_is_enough(n, options):
    x, y = (np.random.default_rng(side).normal(size=count) for side, count in enumerate(n))
    assert mmd_test(x, y, **ONE | {"permutations": 2000} | options).null.orders is None


def test_columns_are_explained_over_the_same_relabellings():
    x, y = frames(180, 240)
    result = mmd_test(x, y, permutations=3000, explain=True, threads=1)
    p = np.array([[one.p_value, one.p_adjusted] for one in result.explanation.columns])
    assert p.min() == 1 / 3000
    np.testing.assert_allclose(p * 3000, np.rint(p * 3000), rtol=0, atol=1e-9)


@pytest.mark.usefixtures("without_shifts")
def test_rejections_over_several_cosets_keep_the_level(monkeypatch):
    """Of few large blocks, of which other ones would give quite another p-value."""
    for name, value in {"BLOCKS": 12, "FEWEST": 4, "ALL": 1, "OF_COSET": 25}.items():
        monkeypatch.setattr(designs, name, value)
    p = []
    for repetition in range(300):
        x, y = np.random.default_rng((7, repetition)).exponential(size=(2, 60, 1))
        found = mmd_test(x, y, seed=repetition, permutations=100, **ONE)
        assert found.null.orders == 4
        p.append(found.p_value)
    for alpha in (0.05, 0.1, 0.2, 0.5):
        rejections = np.sum(np.array(p) <= alpha + 1e-9)
        assert bdtrc(rejections - 1, len(p), alpha) > FALSE_ALARM, alpha
        assert bdtr(rejections, len(p), alpha) > FALSE_ALARM, alpha


# The error that is told


def told(x, y, seed, **options):
    """Return the p-value, and the standard error that a warning tells where alpha is near to it."""
    result = mmd_test(x, y, seed=seed, **ONE | options)
    found = re.search(r"standard errors \(about ([0-9.e-]+) each", " ".join(result.warnings))
    return result.p_value, math.nan if found is None else float(found[1])


@pytest.mark.parametrize(("permutations", "seeds"), [(1000, 40), (4000, 40)])
def test_p_values_of_other_seeds_vary_as_the_warning_says(permutations, seeds):
    """One set of blocks, and several, whose shares tell how far they vary."""
    x, y = counts(185, 5), counts(260, 6) * 1.2
    p, errors = np.array([told(x, y, seed, permutations=permutations, alpha=ALPHA) for seed in range(seeds)]).T
    assert abs(p.mean() - ALPHA) < 0.01
    assert np.isfinite(errors).sum() > seeds // 2
    assert 1 / 1.5 < p.std(ddof=1) / np.nanmean(errors) < 1.5
    # The draw of the relabellings alone would give less.
    assert p.std(ddof=1) > 1.25 * math.sqrt(ALPHA * (1 - ALPHA) / permutations)


ALPHA = 0.05


def error_of(p, variance):
    return MonteCarloError(p, 0.012, variance)


@pytest.mark.parametrize(("p", "alpha", "advised"), [(0.04, 0.05, 5000), (0.047, 0.05, 50_000), (0.07, 0.05, 2000)])
def test_what_a_warning_advises_settles_it(p, alpha, advised):
    error = error_of(p, lambda permutations: 1 / 200 / math.ceil(permutations / 1000))
    (found,) = relabelling_warning(p, 1000, alpha, error=error)
    assert f"permutations={advised} would tell more surely" in found
    if advised < 50_000:
        assert relabelling_warning(p, advised, alpha, error=error) == ()
    assert 2 * error(advised // 2.4) > abs(p - alpha)


def test_more_relabellings_of_the_same_blocks_are_not_advised():
    error = error_of(0.04, lambda _: 1 / 200)
    (found,) = relabelling_warning(0.04, 100_000, 0.05, error=error)
    assert found.endswith("other relabellings might decide otherwise, however many there are")


def test_blocks_of_which_some_keep_their_sample_have_a_larger_error():
    assert block_variance(200, (500, 500), (0, 0)) == 1 / 200
    moved, kept = block_variance(552, (40, 512), (0, 0)), block_variance(552, (40, 3000), (0, 2488))
    # Means of 552 and of 2,488 rows differ by a quarter of the deviation of what is compared.
    offset = (2488 / 3000) ** 2 * (1 / 552 + 1 / 2488) / (1 / 40 + 1 / 3000)
    assert kept == pytest.approx(moved + offset**2)
    blocks = BlockedRows.of(np.repeat([1, 0], [40, 3000]).astype(np.uint8), 0)
    assert (blocks.free, int(blocks.sizes[blocks.free :].sum())) == (552, 2488)


# The plan


def test_the_plan_counts_a_pass_for_each_coset():
    points, kernels = Points.of(np.random.default_rng(0).normal(size=3000)), [parse_kernel("laplacian(0.01)")]
    options = Options("unbiased", "permutation", 5000, 0.05, "standardize", 0, "blocks")
    one, five = (step_of_test([(points, kernels)], options, cosets=count) for count in (1, 5))
    assert five.most["exp"] == 5 * one.most["exp"]
    assert five.most["call"] == 5 * one.most["call"]
    assert five.most["product"] < 5 * one.most["product"]
    assert five.what == f"{one.what}, in 5 random orders"


def test_a_dry_run_tells_how_many(tmp_path):
    for side in (0, 1):
        np.savetxt(
            tmp_path / f"{side}.csv",
            np.random.default_rng(side).normal(size=(300, 2)),
            delimiter=",",
            header="a,b",
            comments="",
        )
    found = run_process("mmd", tmp_path / "0.csv", tmp_path / "1.csv", "--permutations", "4000", "--dry-run")
    assert "in 4 random orders" in " ".join(found.out.split())
