"""All pairs of a table: each is the single test of its two columns, and all together have the right level."""

import itertools
import math

import naive
import numpy as np
import pandas as pd
import pytest
from mixed_columns import mixed_frame
from scipy.stats import false_discovery_control, pearson3
from tolerances import assert_close

from kerntest import hsic_pairs, hsic_test, parse_kernel


def frame_of(n=45, seed=0, *, holes=False):
    """Return seven columns; with `holes`, values missing here and there."""
    frame, rng = mixed_frame(n, seed).drop(columns=["sum", "y"]), np.random.default_rng(seed)
    if holes:
        frame.loc[rng.choice(n, 5, replace=False), "plain"] = np.nan
        frame.loc[rng.choice(n, 9, replace=False), "city"] = None
        frame.loc[rng.choice(n, 1), "square"] = np.nan
    return frame


def single_test(frame, x, y, *, kernel="gaussian", bandwidth="median", **options):
    """Return the test of two columns by themselves."""
    both = frame[[x, y]].dropna()
    sides = zip(("kernel_x", "kernel_y"), (x, y), strict=True)
    kernels = {side: kernel if both[name].dtype.kind == "f" else "auto" for side, name in sides}
    return hsic_test(both, x_columns=x, y_columns=y, bandwidth=bandwidth, null="moments", **kernels, **options)


def assert_same_kernel(found, expected):
    one, other = parse_kernel(found), parse_kernel(expected)
    assert one.name == other.name
    if hasattr(one, "bandwidth"):
        assert_close(one.bandwidth, other.bandwidth)


@pytest.mark.parametrize(
    ("options", "holes"),
    [
        ({}, True),
        ({}, False),
        ({"estimator": "biased"}, False),
        ({"kernel": "laplacian"}, False),
        ({"bandwidth": 0.5}, True),
        ({"kernel": "matern(nu=2.5)", "bandwidth": 2.0}, False),
    ],
)
def test_every_pair_is_the_test_of_its_two_columns(options, holes):
    frame = frame_of(holes=holes)
    found = hsic_pairs(frame, permutations=100, threads=1, **options)
    assert len(found.pairs) == math.comb(7, 2)
    for pair in found.pairs:
        alone = single_test(frame, pair.x, pair.y, **options)
        assert pair.n == alone.n
        for name in ("p_value", "hsic_unbiased", "hsic_biased"):
            assert_close(getattr(pair, name), getattr(alone, name))
        assert_close(pair.effect_size**2, alone.effect_size**2)
        assert_same_kernel(pair.kernel_x, alone.kernel_x)
        assert_same_kernel(pair.kernel_y, alone.kernel_y)
        assert pair.note is None


def matrix_of(values, text):
    """Return the kernel matrix of a column: numbers scaled, others by their mismatches."""
    kernel = parse_kernel(text)
    if pd.api.types.is_float_dtype(values):
        x = values.to_numpy()
        return np.array(kernel(((x - x.mean()) / x.std())[:, None]))
    different = values.to_numpy()[:, None] != values.to_numpy()
    return np.where(different, math.exp(-1 / kernel.bandwidth), 1.0)


def relabelled(frame, pair, permutations, seed, *, estimator="unbiased"):
    """Return the statistic of a pair under every shift of every random order, by whole centred matrices.

    523 is a prime: 520 rows, of which transforms are fast, lie on the circle, and the others keep their partner.
    """
    rng, n = np.random.default_rng((seed, 0)), len(frame)
    circle = 520 if n == 523 else n
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / circle))]
    K, L = (
        np.array(naive.centred[estimator](matrix_of(frame[name], text).tolist()))
        for name, text in ((pair.x, pair.kernel_x), (pair.y, pair.kernel_y))
    )
    scale = 1 / (n * (n - 3)) if estimator == "unbiased" else 1 / n**2
    values = []
    for order in places:
        for shift in range(circle):
            p = np.array(naive.partners(places[0].tolist(), order.tolist(), circle, shift))
            values.append(scale * np.vdot(K, L[np.ix_(p, p)]))
    return np.array(values)


@pytest.mark.parametrize(
    ("n", "permutations", "estimator"),
    [(23, 13, "unbiased"), (23, 40, "unbiased"), (23, 40, "biased"), (523, 521, "unbiased")],
)
def test_p_values_are_those_of_whole_matrices_under_every_relabelling(n, permutations, estimator):
    frame = frame_of(n)[["plain", "ties", "city", "square", "new"] if n == 23 else ["plain", "ties"]]
    for pair in hsic_pairs(frame, estimator=estimator, permutations=permutations, seed=7).pairs:
        values = relabelled(frame, pair, permutations, 7, estimator=estimator)
        assert pair.permutations == len(values)
        assert pair.p_permutation == np.mean(values >= values[0] - 1e-12)
        assert_close(values[0], pair.hsic_unbiased if estimator == "unbiased" else pair.hsic_biased)


def test_pairs_of_columns_that_are_not_held_together_are_the_same():
    """Transforms are held for 32 columns at a time."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 40)) + rng.normal(size=(8, 1))
    X[:, 1] = np.round(X[:, 1])
    found = {(pair.x, pair.y): pair for pair in hsic_pairs(X, permutations=16, threads=1).pairs}
    assert len(found) == math.comb(40, 2)
    for a, b in ((0, 1), (1, 39), (31, 32), (38, 39), (3, 32)):
        (alone,) = hsic_pairs(X[:, [a, b]], permutations=16, threads=1).pairs
        pair = found[f"x{a + 1}", f"x{b + 1}"]
        assert (pair.p_permutation, pair.permutations) == (alone.p_permutation, alone.permutations)
        assert_close([pair.p_value, pair.hsic_biased], [alone.p_value, alone.hsic_biased])


@pytest.mark.parametrize(("permutations", "columns"), [(25, 1), (60, 1), (60, 12)])
def test_with_a_target_step_down_p_values_are_those_of_the_table_of_all_relabellings(permutations, columns):
    n, seed = 25, 2
    frame = frame_of(n, 5)[["plain", "ties", "city", "square", "new"]]
    for k in range(1, columns):
        frame[f"noise{k}"] = np.random.default_rng(k).normal(size=n)
    found = hsic_pairs(frame, target="plain", permutations=permutations, seed=seed, threads=1)
    assert {pair.y for pair in found.pairs} == {"plain"}
    table = np.array([relabelled(frame, pair, permutations, seed) for pair in found.pairs])
    # -log p of a Pearson III curve through the mean, variance and skewness of the relabelled values.
    z = (table - table.mean(axis=1, keepdims=True)) / table.std(axis=1, keepdims=True)
    scored = [-pearson3.logsf(row, np.mean(row**3)) for row in z]
    assert_close([pair.p_step_down for pair in found.pairs], naive.step_down(scored))
    assert all(pair.p_step_down >= pair.p_permutation - 1e-12 for pair in found.pairs)


def test_equal_columns_are_ranked_in_the_order_of_the_table():
    """What rounding alone tells apart: which comes first must not hang on the processor."""
    frame = frame_of(40)[["plain", "square"]]
    copies = pd.DataFrame({name: frame["square"] * unit for name, unit in (("c", 3.0), ("a", 1.0), ("b", 1e-3))})
    found = hsic_pairs(copies.assign(plain=frame["plain"]), target="plain", permutations=50)
    assert [pair.x for pair in found.pairs] == ["c", "a", "b"]
    assert len({pair.p_step_down for pair in found.pairs}) == 1


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
    # Equal ones but for rounding stand in the order of the table.
    assert all(one.p_value <= other.p_value * (1 + 1e-5) for one, other in itertools.pairwise(made))
    assert found.rejected == sum(pair.reject for pair in made) > 0
    assert found.reject
    assert found.tests == len(made) == 15
    assert [pair.p_adjusted for pair in found.pairs[15:]] == [None] * 6
    assert min(pair.p_value for pair in made) < (1e-60 if n == 300 else 0.001)
    assert_close([pair.p_adjusted for pair in made], DEFINITIONS[correction]([pair.p_value for pair in made]))
    assert [pair.reject for pair in made] == [pair.p_adjusted <= 0.05 for pair in made]
    assert all(pair.p_value <= pair.p_adjusted * (1 + 1e-12) <= 1 + 1e-9 for pair in made)


def test_p_values_at_the_end_of_the_range_of_numbers_are_told_as_below_it():
    x = np.random.default_rng(0).normal(size=3000)
    frame = pd.DataFrame({"x": x, "y": x + 1e-3, "z": np.random.default_rng(1).normal(size=3000)})
    found = hsic_pairs(frame, correction="none")
    assert 0.0 < found.pairs[0].p_value < 1e-300
    assert "< 1e-300" in found.summary()
    assert "e-30" not in found.summary().replace("< 1e-300", "")
    alone = hsic_test(frame, x_columns="x", y_columns="y", null="moments", kernel_x="gaussian", kernel_y="gaussian")
    assert "(p < 1e-300 <= alpha = 0.05" in alone.decision
