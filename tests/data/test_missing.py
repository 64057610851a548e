"""Missing values as information: every command does what it would do with columns that somebody filled by hand."""

import numpy as np
import pandas as pd
import pytest

from kerntest import (
    hsic_joint,
    hsic_pairs,
    hsic_select,
    hsic_test,
    inspect_model,
    mmd_test,
    predict_file,
    train_kpca,
    train_ridge,
    train_svm,
    train_unmix,
)
from kerntest.errors import DataError, UsageError

GAPS = ("price", "city", "same")


def frame(n=120, seed=0, holes=0.2):
    """Return a table with gaps in a number, a category, and a column that is one number or missing."""
    rng = np.random.default_rng(seed)
    gone = rng.random((n, 3)) < holes
    table = pd.DataFrame(
        {
            "price": rng.normal(5, 2, n).round(3),
            "size": rng.normal(size=n).round(3),
            "city": rng.choice(["a", "b", "c"], n),
            "same": np.ones(n),
        }
    )
    table["y"] = (table["size"] + 3 * gone[:, 0] + 0.1 * rng.normal(size=n)).round(3)
    table["kind"] = np.where(gone[:, 0], "gone", "there")
    for k, name in enumerate(GAPS):
        table.loc[gone[:, k], name] = None
    return table


def by_hand(table, mean):
    """Return what the columns with gaps become."""
    price = table["price"]
    told = {"price": price.fillna(mean), "price missing": np.where(price.isna(), "missing", "present")}
    rest = {"size": table["size"], "city": table["city"].fillna("(missing)")}
    same = np.where(table["same"].isna(), "(missing)", "1")
    return pd.DataFrame({**told, **rest, "same": same, "y": table["y"], "kind": table["kind"]})


def numbers(result):
    """Return what a test found, but how its kernels are called."""
    return result.p_value, result.statistic, result.effect_size


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_test_of_two_samples_is_that_of_columns_filled_with_the_mean_of_both(method, tmp_path):
    x, y = frame(260, 1, 0.1)[[*GAPS, "size"]], frame(220, 2, 0.5)[[*GAPS, "size"]]
    mean = float(pd.concat([x, y])["price"].mean())
    filled = [
        by_hand(one.assign(y=0, kind="a"), mean)[["price", "price missing", "city", "same", "size"]] for one in (x, y)
    ]
    expected = mmd_test(*filled, method=method, seed=3)
    for paths in ((x, y), [tmp_path / "x.csv", tmp_path / "y.csv"]):
        if not isinstance(paths, tuple):
            for one, path in zip((x, y), paths, strict=True):
                one.to_csv(path, index=False)
        result = mmd_test(*paths, method=method, missing="indicator", seed=3)
        assert numbers(result) == pytest.approx(numbers(expected), rel=1e-9)
        assert result.columns == ("price", "price missing", "city", "same", "size")


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_test_of_independence_is_that_of_filled_columns(method):
    table = frame(250, 4)
    expected = by_hand(table, float(table["price"].mean()))
    options = {"method": method, "seed": 1}
    found = hsic_test(table, x_columns="price,city", y_columns="size,same", missing="indicator", **options)
    again = hsic_test(expected, x_columns="price,price missing,city", y_columns="size,same", **options)
    assert numbers(found) == pytest.approx(numbers(again), rel=1e-9)


def test_screens_take_gaps_as_columns_of_their_own():
    table = frame(150, 5).drop(columns="kind")
    expected = by_hand(table.assign(kind="a"), float(table["price"].mean())).drop(columns="kind")
    found = {frozenset((one.x, one.y)): one.p_value for one in hsic_pairs(table, missing="indicator").pairs}
    values = expected.assign(price=table["price"])
    own = frozenset(("price", "price missing"))
    pairs = {frozenset((one.x, one.y)): one.p_value for one in hsic_pairs(values).pairs}
    del pairs[own]
    assert found == pytest.approx(pairs, rel=1e-9)
    target = hsic_pairs(table, target="price", missing="indicator")
    assert {one.x for one in target.pairs} == {"size", "city", "same", "y"}
    chosen = hsic_select(table, "y", 2, missing="indicator").selected
    assert {one.column for one in chosen} == {"size", "price missing"}
    groups = [["price"], ["y"]]
    joint = hsic_joint(table, groups, missing="indicator").p_value
    assert joint == hsic_joint(expected, [["price", "price missing"], ["y"]]).p_value


def test_gaps_that_become_many_are_found_and_named():
    x, y = (frame(200, seed, holes)[["price", "size"]] for seed, holes in ((6, 0.05), (7, 0.95)))
    assert mmd_test(x, y, missing="drop").p_value > 0.05
    result = mmd_test(x, y, missing="indicator", explain=True)
    first = result.explanation.columns[0]
    assert result.reject
    assert first.column == "price missing"
    assert first.p_adjusted == pytest.approx(0.001)


def test_a_model_is_that_of_columns_filled_with_the_mean_of_its_training_rows(tmp_path):
    table, new = frame(160, 8), frame(40, 9)
    mean = float(table["price"].mean())
    options = {"kernel": "gaussian(2)", "lambda_": 0.1, "exclude": "kind"}
    for name, one, more in (("own", table, {"missing": "indicator"}), ("hand", by_hand(table, mean), {})):
        train_ridge(one, "y", output=tmp_path / f"{name}.kt", **options, **more)
    new.to_csv(tmp_path / "own.csv", index=False)
    by_hand(new, mean).to_csv(tmp_path / "hand.csv", index=False)
    made = []
    for name in ("own", "hand"):
        report = predict_file(tmp_path / f"{name}.kt", tmp_path / f"{name}.csv", output=tmp_path / f"{name}.out.csv")
        assert report.predicted == 40
        made.append(pd.read_csv(tmp_path / f"{name}.out.csv")["y"])
    np.testing.assert_allclose(made[0], made[1], rtol=1e-8)
    price, _, city, same = inspect_model(tmp_path / "own.kt").columns
    assert price.filled == pytest.approx(mean)
    assert price.indicator
    assert city.levels == ("(missing)", "a", "b", "c")
    assert same.levels == ("(missing)", "1")
    # Where no training row had a gap, new rows must have none.
    new.loc[3, "size"] = np.nan
    new.to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(DataError, match="line 5: column 'size' has no value"):
        predict_file(tmp_path / "own.kt", tmp_path / "own.csv", output=tmp_path / "never.csv")


def test_the_mean_is_that_of_the_rows_that_are_learned_from(tmp_path):
    table = frame(100, 10)
    result = train_ridge(
        table,
        "y",
        missing="indicator",
        exclude="kind",
        test_fraction=0.4,
        output=tmp_path / "m.kt",
        kernel="gaussian(2)",
    )
    filled = inspect_model(tmp_path / "m.kt").columns[0].filled
    assert (result.n_train, result.n_test) == (60, 40)
    assert filled != pytest.approx(float(table["price"].mean()), rel=1e-6)
    assert abs(filled - float(table["price"].mean())) < 1
    # The price is shuffled together with whether it is there.
    assert {one.name: one.mean for one in result.importance.columns}["price"] > 0.5


def test_a_gap_that_only_held_out_rows_have_stops_nobody():
    table = frame(60, 11)[["size", "city", "price", "y"]]
    table[["city", "price"]] = table[["city", "price"]].ffill().bfill()
    for row in range(60):
        holed = table.copy()
        holed.loc[row, ["city", "price"]] = None
        result = train_ridge(holed, "y", missing="indicator", test_fraction=0.3, kernel="gaussian(2)", lambda_=0.1)
        assert result.n_test == 18
        if "price missing" in result.columns_left_out:
            return
    pytest.fail("no gap was held out")


def test_every_learner_takes_gaps_and_rows_without_a_target_are_left_out():
    table = frame(120, 12)
    table.loc[:4, "kind"] = None
    found = train_svm(table, "kind", missing="indicator", exclude="y", test_fraction=0.3)
    assert found.n_train + found.n_test == 115
    assert found.accuracy > 0.9
    assert train_svm(table, task="one-class", missing="indicator").n_train == 120
    assert train_kpca(table, missing="indicator").n_train == 120
    with pytest.raises(UsageError, match="whether a value is there is none"):
        train_unmix(table, missing="indicator")


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_column_without_any_value_is_to_be_left_out(method):
    x, y = (pd.DataFrame({"v": np.arange(300.0) % 17, "w": np.arange(300) % 5, "none": [None] * 300}) for _ in "xy")

    def hint(**options):
        with pytest.raises(DataError) as told:
            mmd_test(x, y, method=method, **options)
        return told.value.hint

    assert hint() == "exclude='none' leaves out what has no values"
    x.loc[3, "w"] = np.nan
    assert hint() == "exclude='none' leaves out what has no values, then missing='drop' rows that miss others"
    assert hint(exclude="none") == (
        "missing='drop' leaves those rows out, missing='indicator' keeps them; exclude='w' leaves the column out"
    )
    assert mmd_test(x, y, method=method, exclude="none", missing="drop").n_x == 299
    # Of one column there is nothing else to compare.
    assert hint(columns="w") == "missing='drop' leaves those rows out, missing='indicator' keeps them"


def test_rows_with_gaps_are_not_to_be_left_out_where_all_of_a_class_have_one():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "y": ["n", "p"] * 20})
    drop, keep = (
        "missing='drop' leaves those rows out, ",
        "missing='indicator' keeps them; exclude='b' leaves the column out",
    )

    def hints():
        for ask in (lambda: train_svm(table, target="y"), lambda: mmd_test(table, by="y")):
            with pytest.raises(DataError) as told:
                ask()
            yield told.value.hint

    table.loc[table.index[::4], "b"] = np.nan
    assert [*hints()] == [drop + keep] * 2
    table.loc[table.y == "n", "b"] = np.nan
    assert [*hints()] == [keep] * 2


def test_a_target_without_any_value_is_needed():
    data = pd.DataFrame({"v": np.arange(30.0), "w": np.arange(30.0) ** 2, "y": [np.nan] * 30})
    with pytest.raises(DataError) as told:
        train_ridge(data, target="y")
    assert told.value.hint == "column 'y' is needed and has no values: fill it in"


def test_a_column_of_the_name_that_is_made_is_refused():
    table = frame().rename(columns={"size": "price missing"})
    with pytest.raises(DataError, match="more than one column named 'price missing'"):
        hsic_test(table, x_columns="price,price missing", y_columns="y", missing="indicator")


def test_columns_that_lack_values_in_the_same_rows_do_not_depend_for_that_alone():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(150, 4)), columns=["left", "right", "weight", "age"])
    table.loc[rng.random(150) < 0.3, ["left", "right"]] = np.nan
    table.loc[rng.random(150) < 0.2, "weight"] = np.nan
    found = hsic_pairs(table, missing="indicator")
    tested = {frozenset((one.x, one.y)): one for one in found.pairs}
    plain = {frozenset((one.x, one.y)): one.p_value for one in hsic_pairs(table).pairs}
    assert {pair: tested[pair].p_value for pair in plain} == pytest.approx(plain, rel=1e-9)
    # Gaps against values: not against gaps, and not against values of columns with the same gaps.
    gaps = [pair for pair in tested if pair not in plain]
    assert all(sum(name.endswith(" missing") for name in pair) == 1 for pair in gaps)
    assert frozenset(("left missing", "right")) not in tested
    assert frozenset(("left missing", "weight")) in tested
    assert found.tests == len(tested) == 6 + 2 + 2 + 3
    assert "the same rows have no value in left, right" in found.warnings
    assert not found.reject
