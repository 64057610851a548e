"""Sums over blocks give what explicit features of all rows and explicit relabellings give."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from tolerances import assert_close

from kerntest.data.table import Column, Table
from kerntest.engines.base import Engine
from kerntest.inference.sides import ORDER_STREAM, Reading
from kerntest.inference.streamed.assignment import Blocks, RandomOrder
from kerntest.inference.streamed.block_features import make_block_features, values_at
from kerntest.inference.streamed.block_sums import BlockSummer, block_sums, plan_blocks
from kerntest.inference.streamed.blocked import Blocked
from kerntest.inference.streamed.survey import survey
from kerntest.kernels.base import Points
from kerntest.kernels.columns import bind
from kerntest.kernels.text import parse_kernel

N = 230, 310
SIZE = 11
BLOCKS = Blocks(N[0], 20, SIZE, 4), Blocks(N[1], 28, SIZE, 1)
RELABELLINGS = 4
GAUSSIAN = "city: hamming(1); *: gaussian(1.5)"


def two_tables():
    rng = np.random.default_rng(0)

    def table(n, shift, name):
        numbers = [Column(f"a{j}", "number", rng.normal(size=n) * 3.0 + shift) for j in range(3)]
        city = Column("city", "text", rng.integers(0, 3, n), ("Bern", "Oslo", "Rome"))
        return Table(name, (*numbers, city), n, "array")

    return table(N[0], 0.4, "x"), table(N[1], 0.0, "y")


def made(kernel_text, features, tables=None):
    """Return the sums over blocks, and what they are of: features, and the points of both files."""
    engine = Engine(2)
    with survey(tables or two_tables(), Reading(), "standardize", 0, engine) as found:
        kernel = bind(parse_kernel(kernel_text), found.layout.numeric_names, found.layout.category_names).kernel
        features = make_block_features(features, (kernel,), found.sample, 0)
        work = BlockSummer(found.reader, features, BLOCKS, 0)
        sums = block_sums(work, found.pieces(), engine, None, total=found.n_pieces)
        points = [part for piece in found.pieces() for part in found.read(piece)]
    blocked = Blocked.of(features.projected(0, sums[0][:, 0]), features.projected(0, sums[1][:, 0]), BLOCKS)
    numeric, codes = (np.concatenate([getattr(part, what) for part in points]) for what in ("numeric", "codes"))
    return blocked, features, Points(numeric, codes)


def explicit_estimates(Z, estimator):
    """Return the estimates of all relabellings from the features of every row."""
    block = np.concatenate(
        [
            blocks.of(RandomOrder(n, 0, k).places(np.arange(n)))
            for k, (n, blocks) in enumerate(zip(N, BLOCKS, strict=True))
        ]
    )
    block[N[0] :] += BLOCKS[0].count
    in_x = np.repeat([True, False], [each.count for each in BLOCKS])
    free = np.concatenate([np.arange(each.count) < each.free for each in BLOCKS])
    observed = in_x[free].astype(float)
    labellings = np.random.default_rng((0, ORDER_STREAM)).permuted(np.tile(observed, (RELABELLINGS, 1)), axis=1)
    labellings[0] = observed
    K, different = Z @ Z.T, block[:, None] != block[None, :]
    values = []
    for labelling in labellings:
        of_block = in_x.copy()
        of_block[free] = labelling == 1
        label = of_block[block]
        if estimator == "biased":
            values.append(naive.mmd2_biased(K, label.astype(int).tolist()))
            continue
        means = {}
        for first, left in (("x", label), ("y", ~label)):
            for second, right in (("x", label), ("y", ~label)):
                counted = different[np.ix_(left, right)]
                means[first + second] = (K[np.ix_(left, right)] * counted).sum() / counted.sum()
        values.append(means["xx"] + means["yy"] - means["xy"] - means["yx"])
    return np.array(values)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize(
    ("kernel", "features"),
    [
        (GAUSSIAN, "nystroem:30"),
        ("a0: laplacian(2); city: delta; *: matern(1)", "nystroem:60"),
        ("city: hamming(1); *: linear", "nystroem:20"),
    ],
)
def test_estimates_are_those_of_explicit_relabellings(kernel, features, estimator):
    blocked, made_features, points = made(kernel, features)
    Z = made_features.projected(0, values_at(made_features, points)[:, 0])
    found = blocked.relabelled(estimator, RELABELLINGS, 0)
    expected = explicit_estimates(Z, estimator)
    assert_close(found, expected)
    assert_close(blocked.observed(estimator), found[0])
    assert np.ptp(found) > 0


def test_fourier_features_go_the_same_way():
    numbers = tuple(replace(table, columns=table.columns[:3]) for table in two_tables())
    blocked, features, points = made("student-t(2, df=3)", "fourier:50", numbers)
    Z = features.projected(0, values_at(features, points)[:, 0])
    assert_close(np.square(Z).sum(axis=1), np.ones(len(Z)))
    for estimator in ("unbiased", "biased"):
        assert_close(blocked.relabelled(estimator, RELABELLINGS, 0), explicit_estimates(Z, estimator))


@pytest.mark.parametrize(
    "kernel",
    ["gaussian(1.5)", "laplacian(2)", "laplacian2(2)", "matern(1.5)", "student-t(2)", "rational-quadratic(1, alpha=2)"],
)
def test_random_frequencies_average_to_the_kernel(kernel):
    points = Points.of(np.random.default_rng(0).normal(size=(40, 3)))
    parsed = parse_kernel(kernel)
    features = make_block_features("fourier:40000", (parsed,), points, 1)
    Z = features.projected(0, values_at(features, points)[:, 0])
    # 20,000 frequencies: a standard error of at most 1 / sqrt(40,000) for each of 780 pairs.
    np.testing.assert_allclose(Z @ Z.T, parsed(points), rtol=0.0, atol=5 / np.sqrt(40_000))


def test_the_standard_error_is_that_of_means_of_blocks():
    blocked, _, _ = made(GAUSSIAN, "nystroem:30")
    means, sizes = blocked.means, blocked.sizes
    x, y = blocked.in_x & blocked.free, ~blocked.in_x & blocked.free
    difference = blocked.sums[blocked.in_x].sum(axis=0) / N[0] - blocked.sums[~blocked.in_x].sum(axis=0) / N[1]
    of_x, of_y = means[x] @ difference, means[y] @ difference
    variance = 4 * SIZE * (of_x.var(ddof=1) / N[0] + of_y.var(ddof=1) / N[1])
    unbiased = blocked.observed("unbiased")
    assert_close(blocked.standard_error(unbiased), np.sqrt(variance / unbiased) / 2)
    assert sizes.sum() == sum(N)
    assert np.isnan(blocked.standard_error(-1.0))


@pytest.mark.parametrize(
    ("n", "size"), [((200, 200), 1), ((1000, 1000), 2), ((5_000_000, 5_000_000), 10_000), ((10**7, 200), 4)]
)
def test_blocks_are_planned_for_any_sizes(n, size):
    blocks = plan_blocks(n, ("x", "y"))
    assert blocks[0].size == blocks[1].size == size
    assert [each.n for each in blocks] == list(n)
    assert all(50 <= each.free <= 2000 for each in blocks)


def test_few_rows_lie_beyond_whole_blocks():
    rng = np.random.default_rng(0)
    for n in rng.integers(10_000, 200_000, (20, 2)):
        blocks = plan_blocks(n.tolist(), ("x", "y"))
        assert sum(each.fixed_rows for each in blocks) < 0.005 * n.sum()
