"""The p-value over a set of relabellings that contains the identity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import nnls
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.errors import UndecidedError
from kerntest.inference.nulls.permutation import POWER, RIDGES, SHARED, judge, scorer

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 40)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3)),
)


# Each example is several tests of both kinds.
FEWER = settings(max_examples=25)
HOW = pytest.mark.parametrize("how", ["together", "smallest"])


def judged(values, tolerance=0.0, how="together"):
    values = np.asarray(values, dtype=float)
    return judge(values, np.full(len(values), tolerance), how)


@HOW
@FEWER
@given(values=tables)
def test_a_multiple_of_one_relabelling_and_never_zero(how, values):
    found = judged(values, 1e-9, how)
    count = values.shape[1]
    for p in (found.p_value, *found.p_values):
        assert 1 / count <= p <= 1
        assert_close(p * count, round(p * count))
    assert found.z.shape == found.p_values.shape == (len(values),)
    assert 0 <= found.selected < len(values)


def test_of_members_that_are_the_same_up_to_rounding_the_first_is_selected():
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    values[0] = 2.5
    for sign in (-1, 1):
        same = values * (1 + sign * 1e-7 * rng.random(200))
        assert judged([rng.normal(size=200) - 1, values, same], 1e-6).selected == 1


@given(values=tables)
def test_one_member_gives_the_textbook_p_value(values):
    found = judged(values[:1])
    textbook = sum(value >= values[0, 0] for value in values[0]) / values.shape[1]
    assert found.p_value == found.p_values[0]
    assert_close(found.p_value, textbook)


@HOW
@settings(max_examples=20)  # each is as many tests as it has columns
@given(values=tables, data=st.data())
def test_exact_over_all_observed_labellings(how, values, data):
    """Whichever column is called observed: at most a share a of them gets a p-value up to a. For any values at all."""
    count = values.shape[1]
    tolerance = data.draw(st.sampled_from([0.0, 1e-4]))
    p = np.array([judged(np.roll(values, -first, axis=1), tolerance, how).p_value for first in range(count)])
    for alpha in (0.01, 0.05, 0.2, 0.5, 0.99):
        assert np.sum(p <= alpha) <= alpha * count + 1e-9


def test_ties_count_within_the_tolerance_and_not_beyond():
    values = [[1.0, 1.0 - 0.9e-6, 1.0 + 0.9e-6, 1.0 - 1.1e-6, 2.0, 0.0]]
    assert_close(judged(values, 1e-6).p_value, 4 / 6)
    assert_close(judged(values, 0.0).p_value, 3 / 6)
    assert judged(values, 10.0).p_value == 1.0


@HOW
def test_ties_count_in_a_family(how):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 40))
    values[:, 0] = [5.0, 4.0]
    assert judged(values, 1e-9, how).p_value == 1 / 40
    values[:, 7] = [5.0 - 1e-12, 4.0 + 1e-12]
    assert judged(values, 1e-9, how).p_value == 2 / 40


@HOW
def test_degenerate_members_change_nothing(how):
    values = np.random.default_rng(1).normal(size=(3, 200))
    values[1] = 0.5 + 1e-12 * values[1]
    found, without = judged(values, 1e-9, how), judged(values[[0, 2]], 1e-9, how)
    np.testing.assert_array_equal(found.degenerate, [False, True, False])
    assert found.p_value == without.p_value
    assert found.p_values[1] == 1.0
    assert found.z[1] == 0.0
    assert_close(found.z[[0, 2]], without.z)


@HOW
def test_the_member_with_the_largest_z_is_selected_and_no_degenerate_one(how):
    values = np.random.default_rng(2).normal(size=(5, 300))
    values[:, 0], values[0] = [0.0, 1.0, 5.0, 2.0, 0.0], 9.0
    found = judged(values, how=how)
    assert (found.selected, found.p_value) == (2, 1 / 300)


@HOW
def test_further_vectors_are_scored_as_the_family_was_judged(how):
    """The share of the relabellings with as large a score is the p-value: bounds stand for some of them where all count."""
    for seed in range(6):
        values = np.random.default_rng((5, seed)).gamma(2.0, size=(4, 400))
        values[:, 0] += seed / 3.0
        scored = scorer(values, how)(values)
        assert np.mean(scored >= scored[0]) == pytest.approx(judged(values, how=how).p_value, abs=0.01)


def naive_together(values, exponents):
    """The p-value by the formula, every minimum by non-negative least squares."""
    z = (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, keepdims=True)
    correlation = z @ z.T / z.shape[1]
    score = np.zeros(z.shape[1])
    for ridge in RIDGES:
        shared = ridge == max(RIDGES)
        ridges = ridge * (2.0 ** -np.minimum(exponents, 0).sum(axis=1) if shared else np.ones(len(z)))
        metric = np.linalg.inv(correlation + np.diag(ridges))
        root = np.linalg.cholesky(metric).T
        distances = np.array([(root @ one) @ (root @ one) - nnls(root, root @ one)[1] ** 2 for one in z.T])
        weight = SHARED if shared else 1.0
        score += (weight * distances / np.sqrt(np.trace(correlation @ metric))) ** POWER
    score[(z <= 0).all(axis=0)] = 0.0
    return np.mean(score >= score[0] * (1 - 1e-8))


@pytest.mark.parametrize(("widest", "sides"), [(2, 1), (1, 2)])
@pytest.mark.parametrize("members", [2, 5, 14])
def test_together_is_the_rank_of_the_distance_towards_an_excess(members, widest, sides):
    rng = np.random.default_rng(members)
    exponents = [(widest - place % 5, place % 3 - 1)[:sides] for place in range(members)]
    for shift in (0.0, 0.5, 1.0, 2.0):
        values = np.cumsum(rng.normal(size=(members, 150)), axis=0) + rng.normal(size=150)
        values[:, 0] += shift * rng.normal(size=members).cumsum()
        found = judge(values, np.zeros(members), exponents=exponents)
        assert_close(found.p_value, naive_together(values, exponents))
        assert_close(judged(values).p_value, naive_together(values, np.zeros((members, 1))))


def test_only_an_excess_counts():
    """Samples that are too much alike, as rows paired by design, have a distance in the other direction only."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=400) + 0.3 * rng.normal(size=(5, 400))
    values[:, 0] = values.min() - 3.0
    assert judged(values).p_value == 1.0


def test_the_excess_is_not_negative_and_only_of_those_judged_together():
    values = np.random.default_rng(7).normal(size=(4, 200))
    values[:, 0] = [3.0, 1.0, -1.0, 0.0]
    values[3] = 0.0
    found = judged(values)
    assert (found.excess >= 0).all()
    assert found.excess[0] > found.excess[1] >= 0
    assert found.excess[3] == 0.0
    assert judged(values, how="smallest").excess is None


def test_relabellings_are_judged_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 5)) @ rng.normal(size=(5, 200)) + rng.normal(size=(5, 1))
    for how in ("together", "smallest"):
        expected = judge(values, np.zeros(5), how)
        with monkeypatch.context() as few:
            few.setattr("kerntest.inference.nulls.permutation.AT_ONCE", 7)
            found = judge(values, np.zeros(5), how)
        assert found.p_value == expected.p_value
        assert found.selected == expected.selected


@pytest.mark.parametrize("way", [{}, {"method": "features"}, {"kernel": "gaussian(1)"}])
def test_relabellings_that_no_machine_holds_are_refused(way):
    x = np.random.default_rng(0).normal(size=(250, 2))
    with pytest.raises(UndecidedError, match=r"under 1,000,000,000,000 relabellings take") as refused:
        mmd_test(x, x + 0.1, permutations=10**12, **way)
    assert refused.value.code == "undecided.memory"
    number = int(refused.value.hint.partition(" is enough")[0].partition("=")[2])
    assert 10**5 <= number < 10**12
