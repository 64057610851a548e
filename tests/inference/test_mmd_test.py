"""The two-sample test as one Python call."""

import json
from dataclasses import FrozenInstanceError

import naive
import numpy as np
import pyarrow as pa
import pytest
from tolerances import assert_close
from two_samples import arrays, frames

import kerntest
from kerntest import mmd_test


def outcome(result):
    return result.p_value, result.statistic, result.kernel


# What it takes


def test_arrays_of_one_and_two_dimensions():
    x, y = arrays(p=1)
    assert outcome(mmd_test(x, y)) == outcome(mmd_test(x[:, 0], y[:, 0]))
    assert mmd_test(x, y).columns == ("x1",)
    assert mmd_test(*arrays()).columns == ("x1", "x2")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_arrays_of_other_numbers(dtype):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (20, 2)).astype(dtype), rng.integers(0, 2, (25, 2)).astype(dtype)
    assert outcome(mmd_test(x, y)) == outcome(mmd_test(x.astype(float), y.astype(float)))


def test_the_same_data_from_everywhere(tmp_path):
    x, y = frames()
    expected = outcome(mmd_test(x, y))
    paths = tmp_path / "x.csv", tmp_path / "y.csv"
    parquet = tmp_path / "x.parquet", tmp_path / "y.parquet"
    for frame, csv, columns in zip((x, y), paths, parquet, strict=True):
        frame.to_csv(csv, index=False)
        frame.to_parquet(columns)
    assert outcome(mmd_test(*paths)) == expected
    assert outcome(mmd_test(str(paths[0]), str(paths[1]))) == expected
    assert outcome(mmd_test(*parquet)) == expected
    assert outcome(mmd_test(pa.Table.from_pandas(x), pa.Table.from_pandas(y))) == expected
    assert outcome(mmd_test(kerntest.read_table(paths[0]), kerntest.read_table(y))) == expected
    assert outcome(mmd_test(paths[0], parquet[1])) == expected


def test_inputs_are_named_and_hashed_where_they_are_files(tmp_path):
    x, y = frames()
    path = tmp_path / "x.csv"
    x.to_csv(path, index=False)
    first, second = mmd_test(path, y).provenance.inputs
    assert (first.name, first.format, first.rows, first.rows_used) == (str(path), "csv", 30, 30)
    assert len(first.sha256) == 64
    assert (second.name, second.format, second.rows, second.sha256) == ("y", "frame", 40, None)


def test_columns_are_chosen_before_anything_else():
    x, y = frames()
    alone = mmd_test(x[["price"]], y[["price"]])
    assert outcome(mmd_test(x, y, columns="price")) == outcome(alone)
    assert outcome(mmd_test(x, y, exclude=["weight", "city", "new"])) == outcome(alone)
    assert outcome(mmd_test(x[["price"]], y, common=True)) == outcome(alone)
    assert mmd_test(x, y, columns="price").columns == ("price",)


def test_numbers_can_be_categories():
    x, y = arrays()
    x, y = x.round(), y.round()
    result = mmd_test(x, y, categorical="x2")
    assert "x1: " in result.kernel
    assert "x2: hamming(" in result.kernel


def test_a_kernel_object_is_as_good_as_its_text():
    x, y = arrays()
    assert outcome(mmd_test(x, y, kernel=kerntest.parse_kernel("laplacian(2)"))) == outcome(
        mmd_test(x, y, kernel="laplacian(2)")
    )


def test_missing_values_can_be_dropped():
    x, y = arrays(p=1)
    holed = np.concatenate([x, [[np.nan]]])
    result = mmd_test(holed, y, missing="drop")
    assert outcome(result) == outcome(mmd_test(x, y))
    assert result.warnings[0] == "x: 1 row of 21 with missing values left out"
    assert [(one.rows, one.rows_used) for one in result.provenance.inputs] == [(21, 20), (25, 25)]


def test_progress_is_called_up_to_the_total():
    calls = []
    mmd_test(*arrays(), progress=lambda done, total: calls.append((done, total)))
    assert calls
    assert calls[-1][0] == calls[-1][1]


# What it says


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("scale", ["standardize", "none"])
def test_the_numbers_are_those_of_the_textbook(scale, estimator):
    x, y = arrays(12, 15)
    result = mmd_test(x, y, kernel="gaussian(1.5)", scale=scale, estimator=estimator)
    pooled = np.concatenate([x, y]) * 1.0
    if scale == "standardize":
        pooled = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0)
    K = naive.gram(lambda a, b: naive.gaussian(a, b, bandwidth=1.5), pooled.tolist())
    labels = [1] * 12 + [0] * 15
    assert_close(result.mmd2_unbiased, naive.mmd2_unbiased(K, labels))
    assert_close(result.mmd2_biased, naive.mmd2_biased(K, labels))
    assert result.statistic == (result.mmd2_unbiased if estimator == "unbiased" else result.mmd2_biased)
    assert_close(result.mmd, max(result.mmd2_unbiased, 0) ** 0.5)


def test_fields_of_the_record():
    x, y = arrays()
    result = mmd_test(x, y, kernel="gaussian(2)", alpha=0.1, seed=5, threads=1)
    assert (result.schema, result.command) == ("kerntest.mmd/1", "mmd")
    assert (result.n_x, result.n_y) == (20, 25)
    assert (result.alpha, result.reject) == (0.1, result.p_value <= 0.1)
    assert (result.kernel, result.bandwidth, result.gamma) == ("gaussian(2)", 2.0, 0.125)
    assert result.family is None
    null = result.null
    assert (null.method, null.exact, null.resampling) == ("permutation", True, "random permutations")
    assert (null.permutations, null.requested, null.orders) == (1000, 1000, None)
    assert null.p_floor == 1 / 1000
    # The permutation mean of the unbiased estimate is 0.
    assert abs(null.mean) < null.standard_deviation / 4
    assert null.standard_deviation > 0
    made = result.provenance
    assert (made.version, made.seed, made.threads, made.scale, made.dtype) == (
        kerntest.__version__,
        5,
        1,
        "standardize",
        "float64",
    )
    assert (made.kernel, made.bandwidth) == ("gaussian(2)", "in the kernel")
    assert made.libraries["numpy"] == np.__version__
    assert made.seconds > 0
    with pytest.raises(FrozenInstanceError):
        result.p_value = 0.0


def test_a_family_reports_its_members_and_the_one_that_saw_most():
    result = mmd_test(*arrays())
    members = {member.kernel: member for member in result.family.members}
    assert len(members) > 4
    assert result.kernel in members
    assert members[result.kernel].z == max(member.z for member in members.values())
    smallest = mmd_test(*arrays(), judge="smallest")
    assert smallest.p_value >= min(member.p_value for member in members.values())
    assert {member.excess is None for member in smallest.family.members} == {True}
    assert (result.family.judge, "towards an excess" in result.family.combination) == ("together", True)


def test_a_member_alone_has_the_p_value_it_has_in_the_family():
    x, y = arrays()
    for member in mmd_test(x, y).family.members:
        alone = mmd_test(x, y, kernel=member.kernel)
        assert alone.p_value == member.p_value


@pytest.mark.parametrize("null", ["permutation", "moments"])
def test_to_dict_is_strict_json(null):
    x, y = frames()
    result = mmd_test(x, y, null=null)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["p_value"] == result.p_value
    assert plain["null"]["method"] == null
    assert plain["columns"] == ["price", "weight", "city", "new"]
    assert result.to_frame().loc[0, "null.method"] == null


def test_the_moments_null_says_what_it_is():
    result = mmd_test(*arrays(), null="moments")
    null = result.null
    assert (null.method, null.exact, null.trace) == ("moments", False, "exact")
    assert (null.permutations, null.p_floor, null.orders) == (None, None, None)
    assert result.kernel.startswith("gaussian(")
    assert result.provenance.bandwidth == "median heuristic"


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_both_nulls_agree(estimator):
    options = {"kernel": "gaussian", "bandwidth": "median", "estimator": estimator}
    exact = mmd_test(*arrays(), permutations=8000, **options)
    curve = mmd_test(*arrays(), null="moments", **options)
    assert_close(curve.statistic, exact.statistic)
    # The long run has a standard error of some per cent itself; the curve is right to some per cent.
    np.testing.assert_allclose(curve.p_value, exact.p_value, rtol=0.15)
    np.testing.assert_allclose(curve.null.standard_deviation, exact.null.standard_deviation, rtol=0.05)


REPORTED = [
    {},
    {"kernel": "gaussian"},
    {"kernel": "matern(nu=2.5) + 0.5*linear", "bandwidth": "median"},
    {"kernel": "price: gaussian; weight: laplacian; city: delta; *: hamming"},
    {"kernel": "price, city: laplacian*delta", "bandwidth": 0.7},
    {"null": "moments"},
    {"columns": "city,new"},
    {"scale": "none", "kernel": "normalise(polynomial(2))"},
]


@pytest.mark.parametrize("options", REPORTED, ids=str)
def test_the_reported_kernel_given_back_gives_the_same_statistic(options):
    x, y = frames()
    result = mmd_test(x, y, **options)
    again = mmd_test(x, y, **{**options, "kernel": result.kernel, "bandwidth": "auto"})
    assert again.kernel == result.kernel
    assert_close(again.statistic, result.statistic)
    assert_close(again.effect_size, result.effect_size)


def test_no_standard_error_where_nothing_was_found():
    rng = np.random.default_rng(3)
    result = mmd_test(rng.normal(size=30), rng.normal(size=30))
    assert not result.reject
    assert result.mmd_standard_error is None


def test_all_splits_of_very_few_rows_tie():
    """Two against two of four rows: three different splits, so that no p-value is below 1/3 but by luck of the draw."""
    result = mmd_test(np.array([0.0, 0.1]), np.array([5.0, 5.1]), kernel="gaussian(1)")
    assert 0.25 < result.p_value < 0.42


def test_few_rows_have_the_p_value_of_all_their_splits_whatever_the_seed():
    x, y = np.array([0.0, 0.1, 0.3]), np.array([5.0, 5.1, 5.3])
    found = [mmd_test(x, y, kernel="gaussian(1)", permutations=6, seed=seed) for seed in range(3)]
    assert {(result.p_value, result.null.permutations, result.null.resampling) for result in found} == {
        (0.1, 20, "all permutations")
    }


# What it warns of


def warnings_of(*data, **options):
    return " | ".join(mmd_test(*data, **options).warnings)


def test_no_warning_where_nothing_is_odd():
    assert mmd_test(*arrays()).warnings == ()


def test_what_the_clearest_kernel_does_not_see_others_of_its_family_do():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100, 20))
    y[:, 3] *= 2.0
    result = mmd_test(x, y)
    assert result.kernel.startswith("additive(")
    assert result.warnings == ()
    assert warnings_of(x, y, kernel="additive").startswith("'additive' sees each column alone")


def test_a_kernel_that_does_not_see_everything():
    found = warnings_of(*arrays(), kernel="linear")
    assert found == (
        "'linear' sees only differences of means: a value of zero does not mean that the distributions are equal"
    )


def test_columns_that_no_group_names():
    x, y = frames()
    result = mmd_test(x, y, kernel="price: gaussian; city: delta")
    assert "columns that the kernel does not name are left out: weight, new" in " | ".join(result.warnings)
    assert result.columns == ("price", "city")
    assert result.columns_left_out == ("weight", "new")


def test_a_constant_column():
    x, y = (np.column_stack([each, np.ones(len(each))]) for each in arrays())
    result = mmd_test(x, y)
    assert result.warnings == ("column 'x3' has one value in all rows and is left out",)
    assert result.columns_left_out == ("x3",)
    assert outcome(result)[:2] == outcome(mmd_test(*arrays()))[:2]


def test_a_floor_above_alpha():
    found = warnings_of(*arrays(), permutations=45, alpha=0.01)
    assert found.startswith("the smallest p-value that 45 relabellings can give is 0.0222, above alpha = 0.01")
    assert "--permutations" in found
    assert warnings_of(*arrays(), permutations=100, alpha=0.01) == ""


def test_a_p_value_near_alpha_has_no_error_over_all_relabellings():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=5), rng.normal(size=6) + 0.5
    by_all = mmd_test(x, y, kernel="gaussian(1)")
    assert by_all.null.resampling == "all permutations"
    assert 0.05 < by_all.p_value < 0.95
    assert mmd_test(x, y, kernel="gaussian(1)", alpha=by_all.p_value).warnings == ()
    x, y = rng.normal(size=50), rng.normal(size=60) + 0.2
    some = mmd_test(x, y, kernel="gaussian(1)")
    (warning,) = mmd_test(x, y, kernel="gaussian(1)", alpha=some.p_value).warnings
    assert "lies within two Monte-Carlo standard errors" in warning
    assert mmd_test(x, y, kernel="gaussian(1)", null="moments", alpha=some.p_value).warnings == ()


def test_a_kernel_that_is_not_positive_definite():
    found = warnings_of(*arrays(), kernel="polynomial(2, 1, -1)")
    assert "is not positive definite: MMD^2 is then no squared distance" in found


# Random permutations, for those who must


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_random_permutations_agree_with_shifts(estimator):
    x, y = arrays(shift=0.35)
    options = {"kernel": "gaussian", "bandwidth": "median", "estimator": estimator, "permutations": 4000}
    shifts, random = mmd_test(x, y, **options), mmd_test(x, y, resampling="random", **options)
    assert_close(random.statistic, shifts.statistic)
    assert (random.null.resampling, random.null.permutations) == ("random permutations", 4000)
    # Two independent estimates of one p-value: five standard errors of their difference.
    p = (shifts.p_value + random.p_value) / 2
    assert abs(random.p_value - shifts.p_value) <= 5 * np.sqrt(2 * p * (1 - p) / 4000)
    # Two estimates from 4,000 values each; those of shifts are correlated.
    np.testing.assert_allclose(random.null.standard_deviation, shifts.null.standard_deviation, rtol=0.1)


@pytest.mark.parametrize(("n_x", "n_y", "floor"), [(3, 3, 2 / 20), (3, 4, 1 / 35)])
def test_the_floor_of_all_splits_knows_that_samples_of_one_size_may_change_places(n_x, n_y, floor):
    result = mmd_test(np.arange(n_x) * 1.0, np.arange(n_y) + 50.0, alpha=0.01)
    assert_close([result.p_value, result.null.p_floor], [floor, floor])
    assert result.warnings[-1].endswith("above alpha = 0.01: the test cannot reject; it takes more rows")
