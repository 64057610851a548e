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
from kerntest.errors import UsageError


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


def first_step(frame, target, permutations, seed):
    """Return effect size, corrected p-value and unbiased HSIC of every column by itself."""
    n, names = len(frame), [name for name in frame.columns if name != target]
    rng = np.random.default_rng((seed, 0))
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / n))]
    L = factor_of(frame[target], 1)
    U = np.array(naive.u_centred(L.tolist()))
    table = np.array([relabelled(U, factor_of(frame[name], 1), places) for name in names])
    p = dict(zip(names, naive.step_down(log_scores(table)), strict=True))
    return {name: (naive.hsic_effect(factor_of(frame[name], 1).tolist(), L.tolist()), p[name]) for name in names}


@pytest.mark.parametrize(("target", "permutations", "seed"), [("number", 20, 0), ("text", 60, 3), ("number", 50, 1)])
def test_every_step_is_that_of_the_definition(target, permutations, seed):
    frame = frame_of(23, seed, target)
    found = hsic_select(frame, "y", 9, permutations=permutations, seed=seed, threads=1)
    alone = first_step(frame, "y", permutations, seed)
    L, (first, *others) = factor_of(frame["y"], 1), found.selected
    assert first.column == max(alone, key=lambda name: alone[name][0])
    assert_close([first.effect_size, first.partial_effect, first.p_value], [*[first.gain] * 2, first.p_alone])
    assert sorted([first.column, *(step.column for step in others)]) == sorted(alone)
    before, going, names = 0.0, True, []
    for step in found.selected:
        names.append(step.column)
        together = product(frame, names, len(names)).tolist()
        assert_close(step.effect_size, naive.hsic_effect(together, L.tolist()))
        unbiased = naive.matrix_inner(naive.u_centred(together), naive.u_centred(L.tolist())) / (23 * 20)
        assert_close(step.hsic_unbiased, unbiased)
        np.testing.assert_allclose(step.gain, step.effect_size - before, rtol=1e-7, atol=1e-12)
        assert_close(step.p_alone, alone[step.column][1])
        going = going and step.p_value <= 0.05
        assert step.significant == going
        before = step.effect_size
    assert found.significant == sum(step.significant for step in found.selected)
    assert found.reject == (found.significant > 0)
    assert found.null.permutations == 1 / found.null.p_floor == 23 * math.ceil(permutations / 23)


def test_columns_that_add_little_beside_a_strong_one_are_found():
    """The effect of both together is less than that of the strong one: a wider kernel sees less of it."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=["a", "b", "c", "d"])
    frame["y"] = frame["a"] + 0.5 * frame["b"] + 0.3 * rng.normal(size=400)
    found = hsic_select(frame, "y", 3, threads=1)
    assert [step.column for step in found.selected[:2]] == ["a", "b"]
    assert found.significant == 2
    assert found.selected[1].gain < 0
    assert found.selected[1].partial_effect > 0.4
    assert found.decision == "'y' depends on 'a', 'b'; no further column was found to add to it."


def test_columns_that_follow_a_selected_one_are_added_no_more_often_than_alpha():
    """Five columns that go with the first of two that matter; of 100 tables at most 12 add one, by chance with p < .005."""
    added = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a, b, e = rng.normal(size=(3, 80))
        noise = 0.7 * a[:, None] + 0.7 * rng.normal(size=(80, 5))
        frame = pd.DataFrame(noise).add_prefix("n").assign(a=a, b=b, y=a + 0.7 * b + 0.3 * e)
        found = hsic_select(frame, "y", 3, permutations=200, seed=seed, threads=1)
        assert {step.column for step in found.selected[:2]} == {"a", "b"}
        assert found.significant >= 2
        added += found.significant > 2
    assert added <= 12


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
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    frame["copy"] = frame["a"]
    for columns in (["a", "copy"], ["copy", "a"]):
        copied = hsic_select(frame[["a", "copy"]].assign(y=frame["a"])[[*columns, "y"]], "y", 2, threads=1)
        # Of two that are equal the first is taken.
        assert [step.column for step in copied.selected] == columns
        # The product of both kernels, at sqrt(2) times the median, is the kernel that it was.
        assert_close(copied.selected[1].gain, 0.0, scale=1.0)
        assert copied.significant == 1
        assert copied.decision == f"'y' depends on {columns[0]!r}; no further column was found to add to it."
    # One that acts together with it adds more.
    frame["y"] = frame["a"] + frame["b"]
    found = hsic_select(frame, "y", 3, threads=1)
    assert {found.selected[0].column, found.selected[1].column} in ({"a", "b"}, {"copy", "b"})
    assert found.selected[1].gain > 0.1
    assert found.selected[2].gain < 0
    assert found.significant == 2


def test_more_columns_than_there_are_is_said():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=[*"abcd"])
    found = hsic_select(table, "d", 9)
    assert len(found.selected) == 3
    assert "3 columns can be selected, not 9: all of them stand in their order" in found.warnings
    assert not any("can be selected" in text for text in hsic_select(table, "d", 3).warnings)


def test_only_a_near_name_is_offered():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["arr_time", "dep_delay", "origin"])
    for name, hint in (
        ("carrier", "the columns are arr_time, dep_delay, origin"),
        ("delay", "did you mean 'dep_delay'?"),
        ("orgin", "did you mean 'origin'?"),
        ("rr_time", "did you mean 'arr_time'?"),
    ):
        with pytest.raises(UsageError) as caught:
            hsic_select(table, name, 1)
        assert hint in caught.value.hint
