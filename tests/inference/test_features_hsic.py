"""The independence test on features, from files to the result."""

import re

import numpy as np
import pandas as pd
import pytest
from same_results import assert_same, numbers
from tolerances import assert_close
from two_variables import arrays, columns_of, frame

from kerntest import hsic_test
from kerntest.errors import DataError, UndecidedError, UsageError

FEATURES = {"method": "features", "threads": 1}


def short(kernel):
    """Return a kernel with four digits of its numbers: columns may be scaled in another order."""
    return re.sub(r"\d+\.\d+", lambda digits: f"{float(digits[0]):.4g}", kernel)


def long_frame(n=3000, seed=0, strength=0.2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "c": rng.normal(size=n) + strength * x[:, 0] ** 2,
            "s": rng.choice(["u", "v", "w"], n),
        }
    )


@pytest.mark.parametrize("null", ["moments", "spectral", "gamma"])
def test_as_many_landmarks_as_rows_give_the_exact_test(null):
    """The features then lack nothing but eigenvalues below 1e-7 of the largest."""
    data = frame(300)
    options = {"y_columns": "price,city", "null": null}
    exact = hsic_test(data, **options)
    found = hsic_test(data, **options, **FEATURES, features="nystroem:300")
    assert short(found.kernel) == short(exact.kernel)
    assert found.hsic_unbiased == pytest.approx(exact.hsic_unbiased, rel=1e-4)
    assert found.hsic_biased == pytest.approx(exact.hsic_biased, rel=1e-4)
    assert found.effect_size == pytest.approx(exact.effect_size, rel=1e-4)
    # The eigenvalues of U(K) are those of a constant diagonal: right but for a share of 1/n.
    share = 1 / 300 if null == "spectral" else 1e-4
    assert found.null.standard_deviation == pytest.approx(exact.null.standard_deviation, rel=share)
    assert np.log(found.p_value) == pytest.approx(np.log(exact.p_value), rel=0.01)
    assert (found.method, exact.method, exact.approximation) == ("features", "exact", None)
    assert found.null.method == null


def test_features_find_what_the_exact_test_finds():
    data = long_frame(2200, strength=0.5)
    exact = hsic_test(data, x_columns="a,b", null="moments")
    found = hsic_test(data, x_columns="a,b", **FEATURES)
    assert found.null.method == "moments"
    assert found.hsic_unbiased == pytest.approx(exact.hsic_unbiased, rel=0.1)
    assert found.p_value < 1e-4
    assert exact.p_value < 1e-4
    assert found.approximation.rows_sampled == 2000
    assert found.approximation.kernel_error_x < 1e-3
    assert found.approximation.matrix_error_y < 0.02
    assert 10 < found.approximation.number_x < 200


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return one table as CSV, as one Parquet file with small row groups, as a folder of two, and in memory."""
    folder = tmp_path_factory.mktemp("stored")
    data = long_frame(600)
    data.to_csv(folder / "all.csv", index=False)
    data.to_parquet(folder / "all.parquet", index=False, row_group_size=140)
    (folder / "two").mkdir()
    for number, part in enumerate((data[:222], data[222:])):
        part.to_parquet(folder / "two" / f"{number}.parquet", index=False)
    return [folder / "all.csv", folder / "all.parquet", folder / "two", data]


def test_however_the_rows_are_stored_the_result_is_the_same(stored):
    options = {"x_columns": "a,b", "features": "nystroem:40"} | FEATURES
    first, *others = [hsic_test(data, **options) for data in stored]
    for other in others:
        assert_close(other.statistic, first.statistic)
        assert np.log(other.p_value) == pytest.approx(np.log(first.p_value), rel=1e-6)
        assert short(other.kernel) == short(first.kernel)
    assert len(first.provenance.inputs[0].sha256) == 64


def test_neither_threads_nor_the_names_of_the_sides_change_the_result():
    data = long_frame(900)
    options = {"features": "nystroem:40"} | FEATURES
    one = hsic_test(data, x_columns="a,b", y_columns="c,s", **options)
    more = hsic_test(data, x_columns="a,b", y_columns="c,s", **(options | {"threads": 2}))
    assert_same(numbers(more), numbers(one))
    turned = hsic_test(data, x_columns="c,s", y_columns="a,b", **options)
    assert_close(turned.statistic, one.statistic)
    assert turned.p_value == pytest.approx(one.p_value, rel=1e-6)
    assert (turned.kernel_x, turned.kernel_y) == (one.kernel_y, one.kernel_x)


def test_paired_arrays_are_one_table():
    x, y = arrays(500, 2, 1, strength=0.5)
    found = hsic_test(x, y, **FEATURES)
    together = hsic_test(columns_of(x, y), y_columns="y1", **FEATURES)
    assert_close(found.statistic, together.statistic)
    assert found.columns_x == ("x1", "x2")


def test_columns_of_one_name_in_two_tables_are_told_apart():
    data = long_frame(400)
    found = hsic_test(data[["a", "c"]], data[["c"]], **FEATURES)
    assert found.columns == ("a", "c of x", "c of y")
    assert found.reject


def test_rows_without_a_value_are_left_out_when_asked():
    data = long_frame(450)
    holes = data.copy()
    holes.loc[::9, "a"] = np.nan
    with pytest.raises(DataError, match="missing"):
        hsic_test(holes, x_columns="a,b", **FEATURES)
    options = {"x_columns": "a,b", "features": "nystroem:400"} | FEATURES
    found = hsic_test(holes, **options, missing="drop")
    fewer = hsic_test(data.drop(index=data.index[::9]), **options)
    assert found.n == fewer.n == 400
    # All rows are landmarks, in another order.
    assert found.hsic_biased == pytest.approx(fewer.hsic_biased, rel=1e-4)
    assert any("50 rows of 450" in warning for warning in found.warnings)


def null_p_values(tests, strength=0.0):
    """Return the p-values of tests of rows that are sorted by a mixture of both sides."""
    found = []
    for seed in range(tests):
        rng = np.random.default_rng((7, seed))
        x, y = rng.normal(size=(2, 200))
        y += strength * x**2
        order = np.argsort(x + y)
        data = columns_of(x[order, None], y[order, None])
        found.append(hsic_test(data, seed=seed, **FEATURES, features="nystroem:8", alpha=0.1).p_value)
    return np.array(found)


@pytest.mark.parametrize("tests", [25, pytest.param(100, marks=pytest.mark.thorough)])
def test_the_level_holds_in_sorted_files_too(tests):
    p = null_p_values(tests)
    # Five standard errors of a share, and of a mean of uniform numbers.
    assert np.mean(p <= 0.1) <= 0.1 + 5 * np.sqrt(0.09 / tests)
    assert abs(np.mean(p) - 0.5) < 5 * np.sqrt(1 / 12 / tests)
    assert p.min() > 1e-6


def test_a_dependence_is_found():
    assert np.mean(null_p_values(6, strength=0.8) <= 0.1) > 0.8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"plot": "a.png"}, "^--plot needs --method exact$"),
        ({"witness": "a.csv"}, "^--witness needs --method exact$"),
        ({"time_series": True}, "^--time-series needs --method exact$"),
        ({"statistic": "coco"}, "^--statistic coco needs --method exact$"),
        ({"min_lag": 3}, "^--min-lag needs --method exact$"),
        ({"resampling": "random"}, "^--resampling random needs --method exact$"),
        ({"null": "pearson"}, "^--null pearson needs relabelled values"),
        ({"null": "permutation"}, "^--null permutation needs relabelled values"),
        ({"bandwidth": (1.0, 2.0)}, "^features stand for one pair of kernels"),
        ({"method": "exact", "features": "nystroem:9"}, "^features 'nystroem:9' need method features$"),
    ],
)
def test_what_features_cannot_do_is_refused(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said) as caught:
        hsic_test(long_frame(100), y_columns="c", **(FEATURES | options))
    assert caught.value.code == "usage.method"
    assert caught.value.hint


def test_other_refusals(tmp_path):
    data = long_frame(100)
    data.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(UsageError, match=r"^--method features reads one file with the columns of both sides$"):
        hsic_test(tmp_path / "a.csv", tmp_path / "a.csv", **FEATURES)
    with pytest.raises(UsageError, match="is not positive definite"):
        hsic_test(data, y_columns="c", kernel_x="periodic(1)", kernel_y="polynomial(3, 1, -2)", **FEATURES)
    with pytest.raises(UsageError, match=r"^'nystrom' are no features$"):
        hsic_test(data, y_columns="c", features="nystrom", **FEATURES)
    with pytest.raises(UsageError, match=r"^there is no method|^method"):
        hsic_test(data, y_columns="c", method="fast")
    with pytest.raises(DataError, match="needs at least 4"):
        hsic_test(data[:3], x_columns="a", y_columns="c", **FEATURES)


def test_features_that_see_little_are_warned_of():
    found = hsic_test(long_frame(500), x_columns="a,b", kernel_x="gaussian(0.05)", **FEATURES, features="nystroem:20")
    assert any(warning.startswith("x: the features leave out ") for warning in found.warnings)


def test_errors_are_those_of_rows_that_had_no_say_in_the_features():
    """Every row that speaks for x is a landmark here: on such rows the features lack nothing."""
    options = FEATURES | {"features": "nystroem:1000", "kernel_x": "gaussian(0.05)", "kernel_y": "linear"}
    found = hsic_test(long_frame(2600), x_columns="a,b", y_columns="c", **options).approximation
    assert found.rows_sampled == 2000
    assert found.matrix_error_x > 0.2


def test_neighbouring_rows_that_are_alike_are_warned_of():
    walk = np.cumsum(np.random.default_rng(0).normal(size=(500, 2)), axis=0)
    found = hsic_test(walk, **FEATURES)
    assert any(warning.startswith("neighbouring rows are alike") for warning in found.warnings)


def test_a_side_without_dependence_of_any_pairing_is_refused():
    with pytest.raises(UndecidedError, match="give one value of the statistic only"):
        hsic_test(long_frame(300), x_columns="a", y_columns="b", kernel_x="gaussian(1e9)", **FEATURES)


def test_a_linear_kernel_sees_columns_of_any_origin():
    data = long_frame(500)
    options = {"x_columns": "a,b", "kernel_x": "linear", "scale": "none", "features": "nystroem:40"} | FEATURES
    near, far = (hsic_test(data.assign(a=data["a"] + origin), **options) for origin in (0.0, 1e6))
    np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-6)


def test_no_row_is_a_landmark_twice():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"level": rng.integers(0, 60, 2000).astype(str), "other": rng.normal(size=2000)})
    found = hsic_test(data, x_columns="level", method="features", features="nystroem:100", kernel_x="delta")
    assert found.approximation.number_x == 60
    assert found.approximation.matrix_error_x < 1e-9


def test_repeated_pairs_are_warned_of():
    def told(*data, **options):
        return [text for text in hsic_test(*data, **options).warnings if "repeat another row" in text]

    rng = np.random.default_rng(0)
    options = {"method": "features", "features": "nystroem:40"}
    x, y = np.repeat(rng.normal(size=(2, 150)), 20, axis=1)[:, rng.permutation(3000)]
    assert "of 2,000 sampled ones" in told(x, y, **options)[0]
    assert told(x[:600], y[:600], **options) == told(x[:600], y[:600])
    # Of so many rows a sample holds few copies, and they tell how many there are of each.
    (found,) = told(*np.tile(rng.normal(size=(2, 3000)), (1, 36)), **options)
    assert 25 < float(found.split("is there ")[1].split(" times")[0]) < 50
    assert not hsic_test(*rng.normal(size=(2, 3000)), **options).warnings
