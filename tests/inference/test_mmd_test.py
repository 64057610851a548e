"""The two-sample test as one Python call."""

import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close
from two_samples import arrays, frames

from kerntest import compute_on, hsic_pairs, mmd_test
from kerntest.errors import DataError, UsageError


def outcome(result):
    return result.p_value, result.statistic, result.kernel


# What it takes


def test_columns_are_chosen_before_anything_else():
    x, y = frames()
    alone = mmd_test(x[["price"]], y[["price"]])
    assert outcome(mmd_test(x, y, columns="price")) == outcome(alone)
    assert outcome(mmd_test(x, y, exclude=["weight", "city", "new"])) == outcome(alone)
    assert outcome(mmd_test(x[["price"]], y, common=True)) == outcome(alone)
    assert mmd_test(x, y, columns="price").columns == ("price",)
    # Nothing that is named is not everything.
    for none in ({"columns": []}, {"columns": 0}):
        with pytest.raises(UsageError):
            mmd_test(x, y, **none)
    for none in ({"x_columns": []}, {"columns": []}):
        with pytest.raises(UsageError):
            hsic_pairs(x, **none)
    by_number = x.rename(columns={"price": 0}), y.rename(columns={"price": 0})
    assert outcome(mmd_test(*by_number, columns=0))[:2] == outcome(alone)[:2]


def test_rows_have_their_numbers_where_others_were_left_out(tmp_path):
    x, y = frames()
    holed = x.copy()
    holed.loc[[0, 3], "price"] = np.nan
    options = {"columns": "price,weight", "explain": True}
    found = mmd_test(holed, y, missing="drop", witness=tmp_path / "w.csv", **options)
    left = mmd_test(holed.drop(index=[0, 3]), y, **options)
    numbers = np.delete(np.arange(1, len(x) + 1), [0, 3])
    told, without = ([row.row for row in one.explanation.rows if row.sample == "x"] for one in (found, left))
    assert told == numbers[np.array(without) - 1].tolist() != without
    rows = pd.read_csv(tmp_path / "w.csv").groupby("sample")["row"].apply(list)
    assert rows["x"] == numbers.tolist()
    assert rows["y"] == list(range(1, len(y) + 1))


# What it says


def test_few_rows_have_the_p_value_of_all_their_splits_whatever_the_seed():
    x, y = np.array([0.0, 0.1, 0.3]), np.array([5.0, 5.1, 5.3])
    found = [mmd_test(x, y, kernel="gaussian(1)", permutations=6, seed=seed) for seed in range(3)]
    assert {(result.p_value, result.null.permutations, result.null.resampling) for result in found} == {
        (0.1, 20, "all permutations")
    }


def test_a_plan_adds_up_what_an_explanation_takes():
    plans = []
    with compute_on(threads=1, planned=plans.append):
        for explain in (False, True):
            mmd_test(*arrays(), explain=explain)
    assert [len(plan.work) for plan in plans] == [2, 4]
    assert plans[1].work[0] == plans[0].work[0]
    assert plans[1].seconds > 1.1 * plans[0].seconds


# What it warns of


def test_a_p_value_near_alpha_has_no_error_over_all_relabellings():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=5), rng.normal(size=6) + 0.5
    by_all = mmd_test(x, y, kernel="gaussian(1)")
    assert by_all.null.resampling == "all permutations"
    assert 0.05 < by_all.p_value < 0.95
    assert mmd_test(x, y, kernel="gaussian(1)", alpha=by_all.p_value).warnings == ()


# Random permutations, for those who must


@pytest.mark.parametrize(("n_x", "n_y", "floor"), [(3, 3, 2 / 20), (3, 4, 1 / 35)])
def test_the_floor_of_all_splits_knows_that_samples_of_one_size_may_change_places(n_x, n_y, floor):
    result = mmd_test(np.arange(n_x) * 1.0, np.arange(n_y) + 50.0, alpha=0.01)
    assert_close([result.p_value, result.null.p_floor], [floor, floor])
    assert result.warnings[-1].endswith("above alpha = 0.01: the test cannot reject; it takes more rows")


# What it refuses


@pytest.mark.parametrize(
    ("x", "message", "code"),
    [
        (np.zeros((1, 2)), "^x has 1 row; the test needs at least 2 in each table$", "data.too_few_rows"),
        (np.zeros((3, 1)), "^x and y have 1 and 2 columns$", "data.columns_differ"),
        (np.array([[1, 2], [np.nan, 4.0]]), r"^x has 1 missing value \(NaN\): x1 1", "data.missing_values"),
        (
            pd.DataFrame({"a": [f"case {k}" for k in range(30)]}),
            "^no column of x and y is left to compare",
            "data.no_columns",
        ),
    ],
)
def test_data_that_cannot_be_used(x, message, code):
    with pytest.raises(DataError, match=message) as caught:
        mmd_test(x, x + "!" if code == "data.no_columns" else arrays()[1])
    assert (caught.value.code, caught.value.exit_code) == (code, 3)


def test_the_moments_need_four_rows_and_that_is_the_fewest_there_are():
    x, y = np.array([0.0, 1.0]), np.array([0.5, 3.0])
    assert 0 < mmd_test(x, y, null="moments").p_value <= 1


def test_gaps_of_a_column_that_identifies_rows_stop_nothing():
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame({"id": [f"{name}{place}" for place in range(60)], "v": rng.normal(size=60)}) for name in "ab"
    ]
    whole = mmd_test(*tables)
    tables[0].loc[[3, 5], "id"] = None
    found = mmd_test(*tables)
    assert found.p_value == whole.p_value
    assert (found.columns, found.columns_left_out, found.n_x) == (("v",), ("id",), 60)
    assert any("it identifies rows and is left out" in one for one in found.warnings)
    assert mmd_test(*tables, missing="drop").n_x == 60


@pytest.mark.parametrize("null", ["permutation", "moments", "pearson", "spectral", "gamma"])
def test_equal_rows_have_p_1_under_every_null(null):
    x, y = (pd.DataFrame({"v": np.zeros(n)}) for n in (30, 20))
    found = mmd_test(x, y, null=null)
    assert (found.p_value, found.reject) == (1.0, False)
    assert "all rows are equal, in both x and y: no test can see more than that" in found.warnings
