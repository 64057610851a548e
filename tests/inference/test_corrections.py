"""P-values adjusted for all pairs of a screen: Holm, and Benjamini and Hochberg."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control
from tolerances import assert_close

from kerntest import hsic_pairs


def naive_holm(p):
    """Return Holm's adjusted p-values by their definition, one test at a time."""
    m = len(p)
    order = sorted(range(m), key=lambda place: p[place])
    result, largest = [None] * m, 0.0
    for step, place in enumerate(order):
        largest = max(largest, (m - step) * p[place])
        result[place] = min(1.0, largest)
    return result


DEFINITIONS = {"holm": naive_holm, "bh": false_discovery_control, "none": list}


def table(n, seed):
    """Return columns whose pairs depend surely (p far below 1e-100), a little and not at all, copies among them."""
    rng = np.random.default_rng((seed, n))
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["a_again"] = -3 * frame["a"]
    frame["b_too"] = frame["b"] + 0.5 * rng.normal(size=n)
    # With most others it has three rows, too few for a test.
    frame["rare"] = np.where(np.arange(n) < 3, frame["c"], np.nan)
    return frame


@pytest.mark.parametrize("correction", DEFINITIONS)
@pytest.mark.parametrize(("n", "seed"), [(12, 0), (40, 1), (300, 2)])
def test_adjusted_p_values_are_their_definition_over_the_tests_that_were_made(correction, n, seed):
    found = hsic_pairs(table(n, seed), correction=correction, permutations=20)
    made = [pair for pair in found.pairs if pair.p_value is not None]
    assert found.tests == len(made) == 15
    assert [pair.p_adjusted for pair in found.pairs[15:]] == [None] * 6
    assert min(pair.p_value for pair in made) < (1e-60 if n == 300 else 0.001)
    assert_close([pair.p_adjusted for pair in made], DEFINITIONS[correction]([pair.p_value for pair in made]))
    assert [pair.reject for pair in made] == [pair.p_adjusted <= 0.05 for pair in made]
    assert all(pair.p_value <= pair.p_adjusted * (1 + 1e-12) <= 1 + 1e-9 for pair in made)
