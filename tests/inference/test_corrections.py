"""P-values adjusted for many tests: Holm, and Benjamini and Hochberg."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from tolerances import STATISTIC, assert_close

from kerntest.errors import UsageError
from kerntest.inference.corrections import adjusted, benjamini_hochberg, holm

METHODS = ("holm", "bh", "none")
# Few different values among them, so that ties are common.
p_values = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1e-300, 1e-12, 0.01, 0.05, 0.5, 1.0]))
families = st.lists(p_values, min_size=1, max_size=30)


def naive_holm(p):
    """Return Holm's adjusted p-values by their definition, one test at a time."""
    m = len(p)
    order = sorted(range(m), key=lambda place: p[place])
    result, largest = [None] * m, 0.0
    for step, place in enumerate(order):
        largest = max(largest, (m - step) * p[place])
        result[place] = min(1.0, largest)
    return result


@settings(max_examples=40)
@given(families)
def test_holm_is_its_definition(p):
    assert_close(holm(p), naive_holm(p))


@settings(max_examples=40)
@given(families)
def test_benjamini_hochberg_is_that_of_scipy(p):
    assert_close(benjamini_hochberg(p), false_discovery_control(p))


def test_worked_examples():
    # m = 4: Holm's factors are 4, 3, 2, 1; those of Benjamini and Hochberg 4, 2, 4/3, 1.
    p = [0.04, 0.01, 0.03, 0.5]
    assert_close(holm(p), [0.09, 0.04, 0.09, 0.5])
    assert_close(benjamini_hochberg(p), [0.16 / 3, 0.04, 0.16 / 3, 0.5])


def test_holm_rejects_what_the_sequential_procedure_rejects():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.beta(0.3, 2.0, size=12)
        rejected = np.zeros(12, dtype=bool)
        for step, place in enumerate(np.argsort(p)):
            if p[place] > 0.05 / (12 - step):
                break
            rejected[place] = True
        np.testing.assert_array_equal(holm(p) <= 0.05, rejected)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(p=families)
@example(p=[0.1, 0.1, 0.1])
def test_adjusted_values_lie_between_the_raw_ones_and_1(method, p):
    found = adjusted(p, method)
    assert found.shape == (len(p),)
    assert (found >= np.asarray(p) * (1 - STATISTIC)).all()
    assert (found <= 1.0).all()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(p=families)
def test_the_order_is_kept_and_ties_stay_ties(method, p):
    found = adjusted(p, method)
    for i in range(len(p)):
        for j in range(len(p)):
            if p[i] <= p[j]:
                assert found[i] <= found[j]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(p=families, data=st.data())
def test_the_order_of_the_tests_does_not_matter(method, p, data):
    order = np.asarray(data.draw(st.permutations(range(len(p)))))
    assert_close(adjusted(np.asarray(p)[order], method), adjusted(p, method)[order])


@settings(max_examples=40)
@given(families)
def test_holm_is_never_below_benjamini_hochberg(p):
    # m - i + 1 >= m / i for every i: rounding is all that can part them where both are equal.
    assert (holm(p) >= benjamini_hochberg(p) * (1 - STATISTIC)).all()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(p=families, data=st.data())
def test_tests_that_could_not_be_made_are_not_counted(method, p, data):
    places = data.draw(st.lists(st.integers(0, len(p)), max_size=5))
    with_gaps = np.insert(np.asarray(p), places, np.nan)
    found = adjusted(with_gaps, method)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(with_gaps))
    assert_close(found[~np.isnan(with_gaps)], adjusted(p, method))


@pytest.mark.parametrize("method", METHODS)
def test_empty_families_and_families_of_nothing_but_gaps(method):
    assert adjusted([], method).shape == (0,)
    np.testing.assert_array_equal(adjusted([np.nan, np.nan], method), [np.nan, np.nan])


def test_tiny_p_values_keep_their_digits():
    p = np.array([3e-300, 1e-300, 0.2])
    assert_close(holm(p), [6e-300, 3e-300, 0.2])
    assert_close(benjamini_hochberg(p), [4.5e-300, 3e-300, 0.2])


def test_a_family_of_one_is_not_adjusted():
    for method in METHODS:
        assert adjusted([0.03], method)[0] == 0.03


@pytest.mark.parametrize("method", METHODS)
def test_what_is_given_is_not_changed(method):
    p = np.array([0.03, 0.01, np.nan])
    kept = p.copy()
    found = adjusted(p, method)
    assert not np.shares_memory(found, p)
    np.testing.assert_array_equal(p, kept)


def test_an_unknown_method_is_refused():
    with pytest.raises(UsageError, match="correction must be one of holm, bh, none, not 'sidak'"):
        adjusted([0.5], "sidak")
