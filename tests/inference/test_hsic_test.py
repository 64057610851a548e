"""The independence test as one Python call: its numbers, and what its record says."""

import json
import math
from dataclasses import FrozenInstanceError

import naive
import numpy as np
import pandas as pd
import pytest
from catalogue_kernels import CATEGORIES, GROUPED, NUMERIC, UNBOUND, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from same_results import assert_same, numbers
from tolerances import assert_close
from two_variables import arrays, columns_of, frame

import kerntest
from kerntest import hsic_test

ESTIMATORS = ("unbiased", "biased")
ONE_PAIR = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


def mixed_frame(n, seed):
    """Return the rows of `mixed_points` under their names."""
    points = mixed_points(n, seed)
    codes = {
        name: [f"level {code}" for code in column] for name, column in zip(CATEGORIES, points.codes.T, strict=True)
    }
    return pd.DataFrame(dict(zip(NUMERIC, points.numeric.T, strict=True)) | codes)


def scaled_rows(x):
    return ((x - x.mean(axis=0)) / x.std(axis=0)).tolist()


# The numbers


@pytest.mark.parametrize("text", [*UNBOUND, *GROUPED])
def test_the_numbers_of_every_kernel_are_those_of_the_textbook(text):
    """Kernels on groups of columns see numbers and categories; the others the three numbers."""
    n = 9
    x = mixed_frame(n, 1)[[*NUMERIC, *(CATEGORIES if text in GROUPED else ())]]
    y = mixed_frame(n, 2)[list(NUMERIC)]
    if text == "delta":
        x = x.round()
    K = naive.gram((UNBOUND | GROUPED)[text], x.assign(**dict.fromkeys(CATEGORIES, "")).to_numpy().tolist())
    if text in GROUPED:
        K = naive_matrix(text, n, 1)
    L = naive_matrix("laplacian(0.7)", n, 2)
    result = hsic_test(x, y, kernel_x=text, kernel_y="laplacian(0.7)", scale="none", permutations=20)
    size = np.abs(K).max()
    assert_close(result.hsic_unbiased, naive.hsic_unbiased(K, L), scale=size)
    assert_close(result.hsic_biased, naive.hsic_biased(K, L), scale=size)
    assert_close(result.effect_size**2, naive.hsic_effect(K, L) ** 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("scale", ["standardize", "none"])
def test_the_numbers_on_scaled_and_raw_columns(scale, estimator):
    x, y = arrays(10, 2, 1)
    result = hsic_test(
        3 * x, y, kernel_x="gaussian(1.5)", kernel_y="polynomial(2)", scale=scale, estimator=estimator, permutations=20
    )
    rows_x, rows_y = (scaled_rows(x), scaled_rows(y)) if scale == "standardize" else ((3 * x).tolist(), y.tolist())
    K = naive.gram(lambda a, b: naive.gaussian(a, b, bandwidth=1.5), rows_x)
    L = naive.gram(lambda a, b: naive.polynomial(a, b, degree=2), rows_y)
    assert_close(result.hsic_unbiased, naive.hsic_unbiased(K, L))
    assert_close(result.hsic_biased, naive.hsic_biased(K, L))
    assert result.statistic == (result.hsic_unbiased if estimator == "unbiased" else result.hsic_biased)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(4, 30), p=st.integers(1, 3), q=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_limits_of_the_numbers(n, p, q, seed):
    x, y = arrays(n, p, q, strength=seed % 3, seed=seed)
    result = hsic_test(x, y, permutations=50, threads=1)
    assert 1 / result.null.permutations <= result.p_value <= 1
    assert 0 <= result.effect_size <= 1
    assert result.hsic_biased >= 0
    assert (result.effect_size == 0) == (result.hsic_unbiased <= 0)
    assert result.null.p_floor == 1 / min(result.null.permutations, math.factorial(n))


# What the record says


def test_fields_of_the_record():
    x, y = arrays(45, 2, 1)
    result = hsic_test(x, y, kernel_x="gaussian(2)", kernel_y="laplacian(0.5)", alpha=0.1, seed=5, threads=1)
    assert (result.schema, result.command) == ("kerntest.hsic/1", "hsic")
    assert (result.statistic_name, result.estimator) == ("hsic", "unbiased")
    assert (result.n, result.alpha, result.reject) == (45, 0.1, result.p_value <= 0.1)
    assert (result.kernel_x, result.kernel_y) == ("gaussian(2)", "laplacian(0.5)")
    assert result.kernel == "gaussian(2) on x, laplacian(0.5) on y"
    assert (result.bandwidth_x, result.gamma_x) == (2.0, 0.125)
    assert result.bandwidth_y == 0.5
    assert (result.columns_x, result.columns_y, result.columns) == (("x1", "x2"), ("y1",), ("x1", "x2", "y1"))
    assert (result.family, result.lags, result.coco, result.witness_correlation) == (None, None, None, None)
    null = result.null
    assert (null.method, null.exact, null.resampling) == ("permutation", True, "cyclic shifts")
    assert (null.permutations, null.requested, null.orders) == (1035, 1000, 23)
    assert null.p_floor == 1 / 1035
    # The permutation mean of the unbiased estimate is 0.
    assert abs(null.mean) < null.standard_deviation / 4
    made = result.provenance
    assert (made.version, made.seed, made.threads, made.scale) == (kerntest.__version__, 5, 1, "standardize")
    assert (made.kernel, made.bandwidth) == ("x: gaussian(2); y: laplacian(0.5)", "in the kernel")
    assert [(one.name, one.format, one.rows, one.rows_used) for one in made.inputs] == [
        ("x", "array", 45, 45),
        ("y", "array", 45, 45),
    ]
    assert made.seconds > 0
    with pytest.raises(FrozenInstanceError):
        result.p_value = 0.0


def test_the_decision_is_a_sentence_about_the_columns():
    data = frame()
    found = hsic_test(data, x_columns="weight", y_columns="price")
    assert found.reject
    assert found.decision.startswith("'weight' and 'price' depend on each other (p = ")
    rng = np.random.default_rng(0)
    nothing = hsic_test(rng.normal(size=30), rng.normal(size=30), alpha=0.001)
    assert not nothing.reject
    assert nothing.decision.startswith("No dependence found between 'x1' and 'y1' at alpha = 0.001")
    several = hsic_test(data, y_columns="price")
    assert several.decision.startswith("'weight' and 4 more columns (x) and 'price' (y) depend on each other")
    two = hsic_test(data, x_columns="weight,city", y_columns="price")
    assert two.decision.startswith("'weight', 'city' (x) and 'price' (y) depend on each other")


def test_the_decision_tells_columns_of_one_name_apart(tmp_path):
    rng = np.random.default_rng(0)
    paths = [str(tmp_path / name) for name in ("x.csv", "y.csv")]
    for path in paths:
        pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]).to_csv(path, index=False)
    several = hsic_test(*paths, alpha=0.001).decision
    assert f"between 'a', 'b' of {paths[0]} and 'a', 'b' of {paths[1]} at" in several
    one = hsic_test(paths[0], paths[0], x_columns="a", y_columns="a").decision
    assert one.startswith("'a' (x) and 'a' (y) depend")


def test_a_family_reports_its_pairs():
    result = hsic_test(*arrays())
    members = {(member.kernel_x, member.kernel_y): member for member in result.family.members}
    assert len(members) == len(result.family.members) > 4
    reported = members[result.kernel_x, result.kernel_y]
    assert reported.z > 0
    # Reported is a pair for which the joint p-value pays.
    assert result.p_value >= reported.p_value
    assert all(1 / result.null.permutations <= member.p_value <= 1 for member in members.values())
    assert (result.family.judge, "towards an excess" in result.family.combination) == ("together", True)


def test_a_pair_alone_has_the_p_value_that_it_has_in_the_family():
    x, y = arrays(strength=0.5)
    for member in hsic_test(x, y).family.members[::7]:
        alone = hsic_test(x, y, kernel_x=member.kernel_x, kernel_y=member.kernel_y)
        assert alone.p_value == member.p_value


@pytest.mark.parametrize(
    "options", [{}, {"null": "moments"}, {"time_series": True}, {"statistic": "coco", "permutations": 100}], ids=str
)
def test_to_dict_is_strict_json_and_to_frame_is_one_row(options):
    result = hsic_test(frame(), y_columns="price", **options)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["p_value"] == result.p_value
    assert plain["null"]["method"] == result.null.method
    assert plain["columns_x"] == ["weight", "depth", "city", "new", "sold"]
    assert plain["columns_y"] == ["price"]
    table = result.to_frame()
    assert len(table) == 1
    assert table.loc[0, "null.method"] == result.null.method
    assert table.loc[0, "columns_x"] == "weight;depth;city;new;sold"
    assert math.isclose(table.loc[0, "statistic"], result.statistic, rel_tol=1e-15)


REPORTED = [
    {},
    ONE_PAIR,
    {"kernel_x": "matern(nu=2.5) + 0.5*linear", "kernel_y": "student-t", "bandwidth": "median"},
    {"kernel_x": "weight: gaussian; city: delta; *: laplacian"},
    {"kernel_x": "weight, city: laplacian*delta", "bandwidth": 0.7},
    {"null": "moments"},
    {"null": "gamma"},
    {"x_columns": "city,new"},
    {"x_columns": "weight:city", "y_columns": "price,new,sold"},
    {"scale": "none", "kernel_x": "normalise(polynomial(2))", "kernel_y": "exponential(0.1)", "exclude": "sold"},
    {"time_series": True, "min_lag": 3},
    {"statistic": "coco", "permutations": 30},
    {"estimator": "biased"},
]


@pytest.mark.parametrize("options", REPORTED, ids=str)
def test_the_reported_kernels_given_back_give_the_same_statistic(options):
    data = frame()
    options = {"y_columns": "price"} | options
    result = hsic_test(data, **options)
    again = hsic_test(
        data, **{**options, "kernel_x": result.kernel_x, "kernel_y": result.kernel_y, "bandwidth": "auto"}
    )
    assert (again.kernel_x, again.kernel_y) == (result.kernel_x, result.kernel_y)
    for name in ("statistic", "hsic_unbiased", "hsic_biased", "effect_size"):
        assert_close(getattr(again, name), getattr(result, name))
    if options.get("null", "permutation") != "permutation":
        assert_close(again.p_value, result.p_value)


def test_a_kernel_object_is_as_good_as_its_text():
    x, y = arrays()
    objects = hsic_test(x, y, kernel_x=kerntest.parse_kernel("laplacian(2)"), kernel_y=kerntest.parse_kernel("linear"))
    texts = hsic_test(x, y, kernel_x="laplacian(2)", kernel_y="linear")
    assert_same(numbers(objects), numbers(texts))


def test_a_bandwidth_goes_to_the_kernel_that_leaves_one_open():
    x, y = arrays()
    result = hsic_test(x, y, kernel_x="gaussian(2)", kernel_y="laplacian", bandwidth=0.7)
    assert (result.kernel_x, result.kernel_y) == ("gaussian(2)", "laplacian(0.7)")
    several = hsic_test(x, y, kernel_x="gaussian", kernel_y="laplacian", bandwidth=[0.5, 1, 2])
    assert {(one.kernel_x, one.kernel_y) for one in several.family.members} == {
        (f"gaussian({a})", f"laplacian({b})") for a in ("0.5", "1", "2") for b in ("0.5", "1", "2")
    }


def test_progress_is_called_up_to_the_total():
    for options in ({}, {"null": "moments"}, {"resampling": "random"}, {"statistic": "coco", "permutations": 100}):
        calls = []
        hsic_test(*arrays(), progress=lambda done, total, calls=calls: calls.append((done, total)), **options)
        assert calls, options
        assert calls[-1][0] == calls[-1][1], options


def test_named_columns_and_arrays_give_the_same_test():
    x, y = arrays(60, 2, 2, strength=0.4)
    table = columns_of(x, y)
    named = hsic_test(table, x_columns="x*", y_columns="y*", **ONE_PAIR)
    plain = hsic_test(x, y, **ONE_PAIR)
    assert named.kernel == plain.kernel
    assert_close(named.hsic_biased, plain.hsic_biased)
    assert named.columns == plain.columns == ("x1", "x2", "y1", "y2")
