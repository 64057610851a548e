"""The test of joint independence from table to record, against dHSIC by double loops over the same permutations."""

import functools
import itertools
import re
import tracemalloc
from fractions import Fraction

import naive_joint
import numpy as np
import pandas as pd
import pytest
from mixed_columns import mixed_frame
from tolerances import assert_close

from kerntest import hsic_joint, hsic_test
from kerntest.cli.main import run
from kerntest.engines import engine
from kerntest.errors import UndecidedError
from kerntest.inference.screens import joint


def median_of(distances):
    upper = distances[np.triu_indices(len(distances), 1)]
    return np.median(upper[upper > 0])


def kernel_matrix(frame):
    """Return the Gaussian at the median over the scaled numbers, times exp(-mismatches / median) over the others."""
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "fi"]
    others = [name for name in frame.columns if name not in numeric]
    K = np.ones((len(frame), len(frame)))
    if numeric:
        X = frame[numeric].to_numpy(dtype=float)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        d = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
        K *= np.exp(-((d / median_of(d)) ** 2) / 2)
    if others:
        C = frame[others].to_numpy(dtype=str)
        mismatches = (C[:, None] != C).sum(axis=2).astype(float)
        K *= np.exp(-mismatches / median_of(mismatches))
    return K.tolist()


@functools.cache
def oracle(n, groups, permutations, seed):
    """Return dHSIC under every relabelling, the observed first."""
    frame = mixed_frame(n)
    matrices = [kernel_matrix(frame[list(group)]) for group in groups]
    rng = np.random.default_rng((seed, 0))
    moved = len(groups) - 1
    drawn = [[list(range(n))] * moved]
    drawn += [[rng.permutation(n).tolist() for _ in range(moved)] for _ in range(permutations - 1)]
    return [naive_joint.relabelled(matrices, each) for each in drawn]


GROUPS = [
    (("plain",), ("sum",)),
    (("plain",), ("city",), ("sum",)),
    (("wide", "ties"), ("new",), ("plain", "sum"), ("city",)),
    (("city", "new"), ("plain", "wide"), ("ties",)),
    (("plain", "city"), ("sum", "new")),
]


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("groups", GROUPS)
def test_the_p_value_is_that_of_the_double_loop(groups, seed):
    n, permutations = 14, 40
    values = oracle(n, groups, permutations, seed)
    found = hsic_joint(mixed_frame(n), groups, permutations=permutations, seed=seed, threads=1)
    assert_close(found.dhsic, values[0])
    assert (found.statistic, found.statistic_name) == (found.dhsic, "dhsic")
    expected = sum(value >= values[0] * (1 - 1e-10) for value in values) / permutations
    assert_close(found.p_value, expected)
    assert found.reject == (expected <= 0.05)
    assert found.null.permutations == found.null.requested == 1 / found.null.p_floor == permutations
    assert_close([found.null.mean, found.null.standard_deviation], [np.mean(values), np.std(values)])
    assert tuple(set(group.columns) for group in found.groups) == tuple(set(group) for group in groups)
    assert sorted(found.columns) == sorted(name for group in groups for name in group)


@pytest.mark.parametrize("groups", [("plain", "city", "sum"), (("plain", "wide"), ("sum", "new"), ("ties", "city"))])
def test_every_two_groups_are_tested_by_themselves(groups):
    frame = mixed_frame()
    found = hsic_joint(frame, groups, permutations=20)
    for pair, (first, second) in zip(found.pairs, itertools.combinations(groups, 2), strict=True):
        alone = hsic_test(frame, x_columns=first, y_columns=second, null="moments", bandwidth="median")
        assert set(pair.first.split(", ")) == set(np.atleast_1d(first))
        assert set(pair.second.split(", ")) == set(np.atleast_1d(second))
        assert_close([pair.p_value, pair.hsic_unbiased], [alone.p_value, alone.hsic_unbiased])
        np.testing.assert_allclose(pair.effect_size, alone.effect_size, rtol=1e-7, atol=1e-9)


def test_too_few_permutations_for_the_level_are_said_so():
    found = hsic_joint(mixed_frame(), ["plain", "city"], permutations=10, alpha=0.05)
    assert any("0.1" in warning for warning in found.warnings)
    assert found.p_value >= 0.1
    assert hsic_joint(mixed_frame(), ["plain", "city"], permutations=1).p_value == 1


@pytest.mark.parametrize(("groups", "most"), [(2, 8192), (3, 6688), (4, 5792)])
def test_more_rows_than_there_is_room_for(groups, most):
    assert 8 * groups * most**2 <= 2**30 < 8 * groups * (most + 1) ** 2
    table = np.random.default_rng(0).normal(size=(most + 1, groups))
    message = rf"^the joint test of {groups} groups .*: {most + 1:,} rows are more than {most:,}$"
    with pytest.raises(UndecidedError, match=message) as caught:
        hsic_joint(table, "*", permutations=5)
    assert (caught.value.exit_code, caught.value.code) == (4, "undecided.memory")
    assert caught.value.hint.startswith(
        "`with compute_on(memory='2GB')` allows them; or test the pairs with hsic_pairs"
    )
    assert caught.value.hint.endswith(f"by sample={most}")


def test_the_memory_that_is_named_allows_the_joint_test(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(joint, "LARGEST_ENTRIES", 3 * 1000**2)
    np.savetxt(tmp_path / "x.csv", np.random.default_rng(0).normal(size=(7000, 3)), delimiter=",")
    words = ["hsic", str(tmp_path / "x.csv"), "--no-header", "--joint", "x1,x2,x3", "--permutations", "5", "--dry-run"]
    assert run(words) == 4
    (memory,) = re.findall(r"^hint: (--memory \d+GB) allows them; or ", capsys.readouterr().err, re.MULTILINE)
    assert run([*words, *memory.split()]) == 0
    monkeypatch.setattr(engine, "machine_bytes", lambda: 1e9)
    assert run(words) == 4
    assert "hint: test the pairs with --pairwise" in capsys.readouterr().err


@pytest.mark.parametrize("kernel", ["linear", "polynomial(3)", "delta"])
@pytest.mark.parametrize("seed", range(3))
def test_ties_are_counted_as_exact_arithmetic_counts_them(kernel, seed):
    n, permutations = 8, 200
    X = np.random.default_rng(seed).integers(0, 3, (n, 3))
    function = {
        "linear": lambda a, b: a * b,
        "polynomial(3)": lambda a, b: (a * b + 1) ** 3,
        "delta": lambda a, b: int(a == b),
    }[kernel]
    matrices = [[[Fraction(function(int(a), int(b))) for b in x] for a in x] for x in X.T]
    rng = np.random.default_rng((seed, 0))
    drawn = [[list(range(n))] * 2, *([rng.permutation(n).tolist() for _ in range(2)] for _ in range(permutations - 1))]
    values = [naive_joint.relabelled(matrices, each) for each in drawn]
    table = pd.DataFrame(X, columns=list("abc"))
    options = {"categorical": "*"} if kernel == "delta" else {"scale": "none"}
    found = hsic_joint(table, "*", kernel=kernel, permutations=permutations, seed=seed, **options)
    assert_close(found.dhsic, float(values[0]))
    assert_close(found.p_value, sum(value >= values[0] for value in values) / permutations)


def test_columns_that_the_kernel_does_not_name_are_left_out():
    groups = [["plain", "wide"], ["sum", "ties"]]
    found = hsic_joint(mixed_frame(), groups, kernel="*i*: gaussian(1)", permutations=10)
    assert (found.columns, found.columns_left_out) == (("plain", "wide", "ties"), ("sum",))


def test_relabelling_holds_a_matrix_for_each_group():
    table = np.random.default_rng(12).normal(size=(1500, 3))
    run = functools.partial(hsic_joint, table, "*", kernel="gaussian(1)", permutations=2, threads=1)
    # What it imports is no part of it.
    run()
    tracemalloc.start()
    try:
        run()
        assert tracemalloc.get_traced_memory()[1] < 8 * 3.2 * 1500**2
    finally:
        tracemalloc.stop()


def test_a_row_is_like_itself_under_the_narrowest_kernel():
    """A matrix says then which rows are equal, whatever rounding makes of the distance of a row from itself."""
    n = 40
    groups = np.random.default_rng(4).normal(size=(3, n, 4))
    groups[:, 1] = groups[:, 0]
    groups[0, 3] = groups[0, 2]
    same = [(group[:, None] == group).all(axis=2) for group in groups]
    frame = pd.DataFrame(np.hstack(list(groups)), columns=[f"{letter}{k}" for letter in "abc" for k in range(4)])
    found = hsic_joint(frame, ["a*", "b*", "c*"], kernel="gaussian(1e-12)", scale="none", permutations=20)
    rows = np.prod([one.mean(axis=1) for one in same], axis=0)
    expected = np.prod(same, axis=0).mean() + np.prod([one.mean() for one in same]) - 2 * rows.mean()
    assert_close(found.dhsic, expected, scale=1 / n)


def test_groups_that_are_crossed_have_a_statistic_of_0_not_of_rounding():
    table = pd.DataFrame([[a, b, c] for a in "mf" for b in "lh" for c in "xyz"] * 5, columns=["a", "b", "c"])
    found = hsic_joint(table, "a,b,c", permutations=20)
    assert (found.dhsic, found.statistic, found.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("n", "groups", "ways"), [(4, "abc", 576), (5, "ab", 120)])
def test_all_relabellings_of_few_rows_are_used(n, groups, ways):
    frame = pd.DataFrame(np.random.default_rng(6).normal(size=(n, 3)), columns=list("abc"))
    one, other = (hsic_joint(frame, list(groups), seed=seed) for seed in (0, 1))
    matrices = [kernel_matrix(frame[[name]]) for name in groups]
    orders = itertools.product(itertools.permutations(range(n)), repeat=len(groups) - 1)
    found = np.array([naive_joint.relabelled(matrices, each) for each in orders])
    assert one.p_value == pytest.approx(np.mean(found >= found[0] - 1e-12)) == other.p_value
    assert one.null.permutations == ways == len(found)
    assert one.null.resampling == "all permutations of whole groups"
