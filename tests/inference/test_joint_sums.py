"""Joint independence against double loops, and the level and power of the test that is made of it."""

import tracemalloc
from fractions import Fraction

import naive
import naive_joint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError
from kerntest.inference import joint_sums
from kerntest.inference.joint_sums import (
    joint_bound,
    largest_rows,
    refuse_too_many,
    relabelled_joint,
)
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ONE = LocalEngine(1)
FALSE_ALARM = 1e-6


class Serial:
    """Runs the work as it comes: for many tests of few rows, where limiting BLAS would take most of the time."""

    threads = 1

    @property
    def here(self):
        return self

    def map(self, work, items, progress=None):
        del progress
        return map(work, items)


def codes(*columns):
    return Points(np.empty((len(columns[0]), 0)), np.column_stack(columns).astype(np.int64))


def of_kind(kind, n, rng):
    """Return a kernel, rows, and its kernel matrix by double loop."""
    if kind == "gaussian":
        X = rng.normal(size=(n, 2))
        return parse_kernel("gaussian(1.5)"), Points.of(X), naive.gram(lambda x, y: naive.gaussian(x, y, 1.5), X)
    if kind == "laplacian":
        # Rounded: some rows are equal.
        X = np.round(rng.normal(size=(n, 1)), 1)
        return parse_kernel("laplacian(0.8)"), Points.of(X), naive.gram(lambda x, y: naive.laplacian(x, y, 0.8), X)
    C = rng.integers(0, 3, n)
    return parse_kernel("delta"), codes(C), naive.gram(naive.delta, C[:, None])


def groups_of(kinds, n, seed):
    rng = np.random.default_rng(seed)
    return zip(*(of_kind(kind, n, rng) for kind in kinds), strict=True)


def random_permutations(relabellings, n, d, rng):
    """Return the identity and random permutations of all groups but the first."""
    drawn = [[rng.permutation(n) for _ in range(d - 1)] for _ in range(relabellings - 1)]
    return [[np.arange(n)] * (d - 1), *drawn]


def statistic(kernels, points):
    """Return dHSIC of the rows as they are paired."""
    return relabelled_joint(kernels, points, [[np.arange(len(points[0]))] * (len(points) - 1)], ONE)[0]


def p_value(kernels, points, relabellings, seed):
    rng = np.random.default_rng(seed)
    permutations = random_permutations(relabellings, len(points[0]), len(kernels), rng)
    values = relabelled_joint(kernels, points, permutations, Serial())
    return np.mean(values >= values[0] - joint_bound(kernels, points))


KINDS = ("gaussian", "laplacian", "delta")
MIXTURES = [
    ("gaussian", "delta"),
    ("delta", "gaussian"),
    ("gaussian", "laplacian", "delta"),
    ("delta", "delta", "laplacian"),
    ("laplacian", "delta", "gaussian", "gaussian"),
]


@pytest.fixture
def small_tiles(monkeypatch):
    """Cut matrices of a few rows into many pieces: 23 rows are 3 tiles, and 5 strips of which one is short."""
    monkeypatch.setattr(joint_sums, "TILE", 8)
    monkeypatch.setattr(joint_sums, "STRIP_ENTRIES", 1)
    monkeypatch.setattr(joint_sums, "FEWEST_STRIP_ROWS", 5)
    monkeypatch.setattr(joint_sums, "TOGETHER", 3)


@pytest.mark.parametrize("kinds", MIXTURES)
@pytest.mark.usefixtures("small_tiles")
def test_relabelled_statistics_are_those_of_the_double_loop(kinds):
    kernels, points, matrices = groups_of(kinds, 23, seed=2)
    permutations = random_permutations(5, 23, len(kinds), np.random.default_rng(3))
    expected = [naive_joint.relabelled(matrices, each) for each in permutations]
    found = relabelled_joint(kernels, points, permutations, ONE)
    assert_close(found, expected)


@settings(max_examples=40, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=4),
    n=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_groups_of_any_size_agree_with_the_double_loop(kinds, n, seed):
    kernels, points, matrices = groups_of(kinds, n, seed)
    permutations = random_permutations(3, n, len(kinds), np.random.default_rng(seed))
    expected = [naive_joint.relabelled(matrices, each) for each in permutations]
    assert_close(relabelled_joint(kernels, points, permutations, ONE), expected, scale=1.0)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_matrices_of_many_tiles_agree_with_whole_matrices(d):
    n = 600
    rng = np.random.default_rng(d)
    points = [Points.of(rng.normal(size=n)), *(codes(rng.integers(0, levels, n)) for levels in (3, 40, 500)[: d - 1])]
    kernels = [parse_kernel("gaussian(1)"), *[parse_kernel("delta")] * (d - 1)]
    matrices = np.stack([kernel(group) for kernel, group in zip(kernels, points, strict=True)])
    p = random_permutations(4, n, d, rng)
    for each, found in zip(p, relabelled_joint(kernels, points, p, ONE), strict=True):
        paired = np.stack([K[q][:, q] for K, q in zip(matrices, [np.arange(n), *each], strict=True)])
        means = paired.mean(axis=2)
        expected = paired.prod(axis=0).mean() + means.mean(axis=1).prod() - 2 * means.prod(axis=0).mean()
        assert_close(found, expected)


def test_two_groups_give_the_biased_hsic():
    rng = np.random.default_rng(4)
    n = 40
    kernels = [parse_kernel("gaussian(1)"), parse_kernel("laplacian(2)")]
    points = [Points.of(rng.normal(size=(n, 3))), Points.of(rng.normal(size=n))]
    K, L = (kernel(group) for kernel, group in zip(kernels, points, strict=True))
    H = np.eye(n) - 1 / n
    hsic = np.trace(K @ H @ L @ H) / n**2
    assert_close(statistic(kernels, points), hsic)


def test_all_columns_of_a_group_move_together():
    rng = np.random.default_rng(5)
    kernels = [parse_kernel("gaussian(1)")] * 3
    points = [Points.of(rng.normal(size=(30, 3))) for _ in kernels]
    p = random_permutations(4, 30, 3, rng)
    moved = [statistic(kernels, [points[0], points[1].take(a), points[2].take(b)]) for a, b in p]
    assert_close(relabelled_joint(kernels, points, p, ONE), moved)


def test_exclusive_or_is_independent_in_pairs_and_dependent_jointly():
    # Every pair of two of the three bits occurs equally often.
    x, y = np.tile([[0, 0, 1, 1], [0, 1, 0, 1]], 15)
    bits = [codes(bit) for bit in (x, y, x ^ y)]
    delta = parse_kernel("delta")
    for pair in (bits[:2], bits[1:], bits[::2]):
        assert statistic([delta] * 2, pair) == pytest.approx(0, abs=joint_bound([delta] * 2, pair))
        assert p_value([delta] * 2, pair, 500, seed=6) == 1
    assert p_value([delta] * 3, bits, 500, seed=6) < 0.01


def test_groups_that_hold_copies_of_a_column_keep_the_level():
    """Moving each column by itself would reject in one data set of five."""
    repetitions, alpha, rejections = 300, 0.05, 0
    kernels = [parse_kernel("linear")] * 3
    for repetition in range(repetitions):
        columns = np.random.default_rng((7, repetition)).normal(size=(3, 20))
        points = [Points.of(np.column_stack([z] * 3)) for z in columns]
        rejections += p_value(kernels, points, 40, seed=repetition) <= alpha
    assert bdtrc(rejections - 1, repetitions, alpha) > FALSE_ALARM
    assert bdtr(rejections, repetitions, alpha) > FALSE_ALARM


def test_results_do_not_depend_on_threads_or_on_what_is_asked_for_together():
    rng = np.random.default_rng(8)
    n = 530
    points = [Points.of(rng.normal(size=(n, 2))), codes(rng.integers(0, 5, n)), Points.of(rng.normal(size=n))]
    kernels = [parse_kernel(text) for text in ("gaussian(1)", "delta", "laplacian(1)")]
    p = random_permutations(40, n, 3, rng)
    two = LocalEngine(2)
    values = relabelled_joint(kernels, points, p, ONE)
    assert_close(relabelled_joint(kernels, points, p, two), values, share=SAME_MACHINE)
    assert_close(relabelled_joint(kernels, points, p[7:23], ONE), values[7:23], share=SAME_MACHINE)


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_counted_as_exact_arithmetic_counts_them(seed):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (3, 7))
    matrices = [[[Fraction(int(a == b)) for b in column] for a in column] for column in bits]
    permutations = random_permutations(200, 7, 3, rng)
    exact = [naive_joint.relabelled(matrices, each) for each in permutations]
    kernels, points = [parse_kernel("delta")] * 3, [codes(column) for column in bits]
    values = relabelled_joint(kernels, points, permutations, ONE)
    counted = values >= values[0] - joint_bound(kernels, points)
    assert counted.tolist() == [value >= exact[0] for value in exact]
    assert sum(value == exact[0] for value in exact) > 5


@pytest.mark.parametrize("text", ["hamming(3)", "gaussian(20)", "polynomial(3)", "linear"])
@pytest.mark.parametrize("n", [20, 400])
def test_rounding_stays_within_the_bound_where_relabellings_are_equal(text, n):
    rng = np.random.default_rng(9)
    if text.startswith("hamming"):
        points = [codes(*rng.integers(0, 2, (2, n))) for _ in range(3)]
    else:
        points = [Points.of(1.37 * rng.integers(0, 3, (n, 1)) + 0.1) for _ in range(3)]
    kernels = [parse_kernel(text)] * 3
    # One permutation for all other groups, among rows that are equal in the first: the same rows in another order.
    first = np.column_stack([points[0].numeric, points[0].codes])
    _, level = np.unique(first, axis=0, return_inverse=True)
    ascending = np.argsort(level, kind="stable")
    same = []
    for _ in range(30):
        p = np.empty(n, dtype=np.intp)
        p[ascending] = np.lexsort([rng.random(n), level])
        same.append([p, p])
    values = relabelled_joint(kernels, points, [[np.arange(n)] * 2, *same], ONE)
    difference = np.abs(values - values[0])
    assert difference.max() > 0
    assert difference.max() <= joint_bound(kernels, points)


def test_equal_rows_share_their_entries():
    rng = np.random.default_rng(10)
    m = joint_sums.TILE + 44
    X = np.tile(rng.normal(size=(m, 7)), (2, 1))
    table = joint_sums._table(parse_kernel("gaussian(1)"), Points.of(X), ONE)
    K = table.values[np.ix_(table.place, table.place)]
    assert table.values.shape == (m, m)
    np.testing.assert_array_equal(table.place, np.tile(table.place[:m], 2))
    assert_close(K, parse_kernel("gaussian(1)")(X))


def test_progress_counts_the_parts():
    rng = np.random.default_rng(11)
    points = [Points.of(rng.normal(size=10)) for _ in range(2)]
    seen = []
    p = random_permutations(joint_sums.TOGETHER * 2 + 1, 10, 2, rng)
    relabelled_joint([parse_kernel("gaussian(1)")] * 2, points, p, ONE, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def peak_memory(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_relabelling_holds_d_matrices():
    n, d = 1500, 3
    rng = np.random.default_rng(12)
    kernels = [parse_kernel("gaussian(1)")] * d
    points = [Points.of(rng.normal(size=n)) for _ in range(d)]
    p = random_permutations(2, n, d, rng)
    assert peak_memory(lambda: relabelled_joint(kernels, points, p, ONE)) < 8 * d * n**2


@pytest.mark.parametrize(("d", "most"), [(2, 8192), (3, 6688), (4, 5792), (10, 3663)])
def test_more_rows_than_matrices_have_room_for_are_refused(d, most):
    assert largest_rows(d) == most
    assert 8 * d * most**2 <= 2**30 < 8 * d * (most + 1) ** 2
    refuse_too_many(most, d)
    with pytest.raises(UndecidedError, match=f"{most + 1:,} rows are more than {most:,}") as caught:
        refuse_too_many(most + 1, d)
    assert "--pairwise" in caught.value.hint
    assert caught.value.code == "undecided.memory"


def test_relabelling_refuses_too_many_rows_before_it_starts():
    n = largest_rows(3) + 1
    points = [Points.of(np.zeros(n))] * 3
    kernels = [parse_kernel("gaussian(1)")] * 3
    with pytest.raises(UndecidedError, match="joint test of 3 groups holds 3 whole matrices"):
        relabelled_joint(kernels, points, [[np.arange(n)] * 2], ONE)
