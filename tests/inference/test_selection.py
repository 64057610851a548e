"""Greedy selection of columns against its definition, by whole matrices and one relabelling at a time."""

import functools
import math

import naive
import numpy as np
import pandas as pd
import pytest
from mixed_columns import mixed_frame
from scipy.stats import pearson3
from tolerances import assert_close

from kerntest import hsic_select


def frame_of(n, seed, target="number"):
    """Return five columns, and a target that is a number or a word."""
    frame = mixed_frame(n, seed)[["ties", "wide", "city", "new", "plain", "y"]]
    return frame if target == "number" else frame.assign(y=np.where(frame["y"] > frame["y"].median(), "high", "low"))


def distances(values):
    """Return distances in units of their median over different rows, or mismatches of a category."""
    values = np.asarray(values)
    if values.dtype.kind not in "fi":
        return None, (values[:, None] != values).astype(float)
    d = np.abs(values[:, None] - values)
    return d / np.median(d[np.triu_indices(len(d), 1)][d[np.triu_indices(len(d), 1)] > 0]), None


def factor_of(values, columns):
    """Return exp(-d^2 / (2 c s^2)) for numbers, exp(-mismatch / c) for categories."""
    d, mismatch = distances(values)
    return np.exp(-mismatch / columns) if d is None else np.exp(-(d**2) / (2 * columns))


def product(frame, names, columns):
    ones = np.ones((len(frame), len(frame)))
    return functools.reduce(np.multiply, (factor_of(frame[name], columns) for name in names), ones)


def relabelled(weights, K, places):
    values, n = [], len(K)
    for order in places:
        for shift in range(n):
            p = np.array(naive.partners(places[0].tolist(), order.tolist(), n, shift))
            values.append(float((weights * K[p][:, p]).sum()))
    return values


def log_scores(table):
    """Return -log p of Pearson III curves through the moments of the relabelled values; 0 where all are one."""
    z = table - table.mean(axis=1, keepdims=True)
    z /= np.sqrt(np.mean(z**2, axis=1, keepdims=True))
    return np.array([-pearson3.logsf(row, np.mean(row**3)) for row in z])


def oracle(frame, target, permutations, seed):
    """Return (column, unbiased HSIC, effect, p_value, p_alone) of every step."""
    n, names = len(frame), [name for name in frame.columns if name != target]
    rng = np.random.default_rng((seed, 0))
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / n))]
    L = factor_of(frame[target], 1)
    U = np.array(naive.u_centred(L.tolist()))
    taken, steps, alone = [], [], None
    for _ in names:
        left, columns = [name for name in names if name not in taken], len(taken) + 1
        together = {name: product(frame, [*taken, name], columns).tolist() for name in left}
        effects = {name: naive.hsic_effect(K, L.tolist()) for name, K in together.items()}
        weights = product(frame, taken, columns) * U
        table = np.array([relabelled(weights, factor_of(frame[name], columns), places) for name in left])
        p = dict(zip(left, naive.step_down(log_scores(table)), strict=True))
        alone = alone or p
        best = max(effects, key=effects.get)
        unbiased = naive.matrix_inner(naive.u_centred(together[best]), U.tolist()) / (n * (n - 3))
        steps.append((best, unbiased, effects[best], p[best], alone[best]))
        taken.append(best)
    return steps


@pytest.mark.parametrize(("target", "permutations", "seed"), [("number", 20, 0), ("text", 60, 3), ("number", 50, 1)])
def test_every_step_is_that_of_the_definition(target, permutations, seed):
    frame = frame_of(23, seed, target)
    found = hsic_select(frame, "y", 9, permutations=permutations, seed=seed, threads=1)
    expected = oracle(frame, "y", permutations, seed)
    assert len(found.selected) == len(expected)
    before, going = 0.0, True
    for step, (column, unbiased, effect, p_value, p_alone) in zip(found.selected, expected, strict=True):
        assert step.column == column
        assert_close(step.hsic_unbiased, unbiased)
        assert_close(step.effect_size, effect)
        np.testing.assert_allclose(step.gain, effect - before, rtol=1e-7, atol=1e-12)
        assert_close(step.p_value, p_value)
        assert_close(step.p_alone, p_alone)
        going = going and p_value <= 0.05 and effect > before
        assert step.significant == going
        before = effect
    assert found.significant == sum(step.significant for step in found.selected)
    assert found.reject == (found.significant > 0)
    assert found.null.permutations == 1 / found.null.p_floor == 23 * math.ceil(permutations / 23)


def test_more_candidates_than_are_done_in_one_pass_give_the_same():
    """Transforms are made of 32 candidates at a time."""
    X = np.random.default_rng(3).normal(size=(8, 41))
    whole = hsic_select(X, "x1", 1, permutations=8, threads=1).selected[0]
    few = hsic_select(X[:, [0, int(whole.column[1:]) - 1]], "x1", 1, permutations=8, threads=1).selected[0]
    assert_close([whole.effect_size, whole.hsic_unbiased], [few.effect_size, few.hsic_unbiased])
    assert whole.p_value >= few.p_value


def test_of_two_columns_that_matter_only_together_the_second_is_found_once_the_first_is_in():
    """With y = sign(a b) neither says anything alone: no order of the two has a significant first step."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] * frame["b"] > 0, "plus", "minus")
    first, second = hsic_select(frame, "y", 2, threads=1).selected
    assert min(first.p_value, second.p_alone) > 0.05
    assert second.p_value <= 0.01
    assert second.gain > 0.1
    # Nothing after a step that is not significant is called so.
    assert (first.significant, second.significant) == (False, False)


def test_a_copy_of_a_selected_column_adds_nothing():
    """The product of its kernel with that of the column, both at sqrt(2) times the median, is the kernel it was."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    frame["copy"] = frame["a"]
    for columns in (["a", "copy"], ["copy", "a"]):
        copied = hsic_select(frame[["a", "copy"]].assign(y=frame["a"])[[*columns, "y"]], "y", 2, threads=1)
        # Of two that are equal the first is taken.
        assert [step.column for step in copied.selected] == columns
        assert_close(copied.selected[1].gain, 0.0, scale=1.0)
        assert copied.significant == 1
        # Its p-value is small all the same.
        assert copied.selected[1].p_value <= 0.05
        assert copied.decision == f"'y' depends on {columns[0]!r}; with no further column does the effect grow."
    # One that acts together with it adds more.
    frame["y"] = frame["a"] + frame["b"]
    found = hsic_select(frame, "y", 3, threads=1)
    assert {found.selected[0].column, found.selected[1].column} in ({"a", "b"}, {"copy", "b"})
    assert found.selected[1].gain > 0.1
    assert found.selected[2].gain < 0
    assert found.significant == 2
