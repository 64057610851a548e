"""Where samples differ: columns, rows, the witness function, minimum effects, and pictures."""

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.errors import DataError, MissingExtraError, UsageError

MODULE = "kerntest.inference.explain.differences"


@pytest.fixture
def columns_alone(monkeypatch):
    """Leave out the tests of all columns without each, which take longest: for tests that do not look at them."""
    monkeypatch.setattr(f"{MODULE}.NUMBERS_WITHOUT", 0)


def frames(seed=0, rows=120):
    rng = np.random.default_rng(seed)

    def draw(spread, city):
        wider = {"same": rng.normal(size=rows), "wider": rng.normal(size=rows) * spread}
        cities = rng.choice(["rome", "oslo", "lima"], size=rows, p=city)
        return pd.DataFrame(wider | {"city": cities, "also_same": rng.exponential(size=rows)})

    return draw(1.0, [0.4, 0.3, 0.3]), draw(3.0, [0.1, 0.1, 0.8])


def effects_of(x, y, **options):
    return {effect.column: effect for effect in mmd_test(x, y, explain=True, **options).explanation.columns}


@pytest.mark.usefixtures("columns_alone")
def test_the_columns_that_differ_come_first_and_only_they_are_named_each_as_its_own_test_says():
    x, y = frames()
    columns = effects_of(x, y)
    assert set(list(columns)[:2]) == {"wider", "city"}
    for name, effect in columns.items():
        assert effect.p_adjusted >= effect.p_value >= 1 / 1000
        assert effect.p_adjusted <= 0.01 if name in {"wider", "city"} else effect.p_adjusted > 0.05
    for name in ("wider", "city"):
        alone = mmd_test(x[[name]], y[[name]], kernel=columns[name].kernel)
        assert_close(columns[name].effect_size, alone.effect_size)
        assert columns[name].p_value == pytest.approx(alone.p_value, abs=0.002)


def test_the_others_are_tested_without_each_column():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(2, 150, 3))
    y[:, 1] *= 3
    effects = effects_of(x, y)
    # Of the same rows in the same order.
    assert effects["x2"].p_without == mmd_test(x[:, [0, 2]], y[:, [0, 2]]).p_value
    assert effects["x2"].p_without > 0.05
    assert effects["x1"].p_without <= 0.01
    assert effects_of(x[:, 0], y[:, 0])["x1"].p_without is None


@pytest.mark.usefixtures("columns_alone")
def test_a_column_is_told_as_it_was_and_as_it_is():
    rng = np.random.default_rng(4)

    def table(rows, shift, share, missing):
        frame = pd.DataFrame(
            {
                "value": rng.normal(size=rows) + shift,
                "city": rng.choice(["lima", "oslo", "rome"], rows, p=[share, (1 - share) / 2, (1 - share) / 2]),
                "paid": rng.random(rows) < share,
                "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 50, rows), unit="D"),
            }
        )
        frame.loc[: missing - 1, "value"] = np.nan
        return frame

    x, y = table(200, 0.0, 0.8, 5), table(300, 1.0, 0.5, 60)
    effects = effects_of(x, y, missing="drop", permutations=50)
    for frame, side in ((x, "x"), (y, "y")):
        value, city, paid, day = (getattr(effects[name], side) for name in ("value", "city", "paid", "day"))
        used = frame.dropna()
        assert value.missing == frame["value"].isna().mean()
        assert_close([value.mean, value.standard_deviation], [used["value"].mean(), used["value"].std()])
        quartiles = [value.lower_quartile, value.median, value.upper_quartile]
        assert_close(quartiles, used["value"].quantile([0.25, 0.5, 0.75]))
        assert (value.value, value.share) == (None, None)
        assert (city.value, city.mean, city.missing) == ("lima", None, 0.0)
        assert city.share == (used["city"] == "lima").mean()
        assert (paid.value, paid.share) == ("true", used["paid"].mean())
        assert day.median == str(used["day"].median())[:16].replace(" 00:00", "").replace(" ", "T")
        assert_close(day.standard_deviation, used["day"].std() / pd.Timedelta(days=1))


@pytest.mark.parametrize(("rows", "columns", "tested"), [(30, 3, 3), (80, 30, 2), (150, 30, 0)])
def test_the_others_are_tested_for_as_many_columns_as_the_table_allows(rows, columns, tested, monkeypatch):
    # A hundredth, for a tenth of the rows.
    monkeypatch.setattr(f"{MODULE}.NUMBERS_WITHOUT", 1_000_000)
    x, y = np.random.default_rng(6).normal(size=(2, rows, columns))
    effects = effects_of(x, y, kernel="gaussian", bandwidth="median", permutations=20).values()
    assert [effect.p_without is not None for effect in effects] == [place < tested for place in range(columns)]


@pytest.mark.usefixtures("columns_alone")
def test_rows_of_two_samples_of_one_name_are_told_apart(tmp_path):
    rows, _ = frames(rows=30)
    for number, part in enumerate((rows[:15], rows[15:])):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    pattern, witness = str(tmp_path / "*.csv"), tmp_path / "witness.parquet"
    result = mmd_test(pattern, pattern, explain=True, witness=witness, permutations=50)
    names = [f"{pattern} ({letter})" for letter in "XY"]
    assert [row.sample for row in result.explanation.rows] == [name for name in names for _ in range(5)]
    assert list(pd.read_parquet(witness)["sample"].unique()) == names
    for row in result.explanation.rows:
        assert (row.file, row.line) == (str(tmp_path / f"{(row.row - 1) // 15}.csv"), (row.row - 1) % 15 + 2)


def test_the_witness_is_that_of_the_other_rows(tmp_path):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=(9, 2))
    mmd_test(x, y, kernel="gaussian(1)", scale="none", permutations=20, witness=tmp_path / "w.csv")
    K = np.array(naive.gram(lambda a, b: naive.gaussian(a, b, 1.0), [*x.tolist(), *y.tolist()]))
    np.fill_diagonal(K, np.nan)
    table = pd.read_csv(tmp_path / "w.csv")
    assert_close(table["witness"], np.nanmean(K[:, :7], axis=1) - np.nanmean(K[:, 7:], axis=1))
    assert list(table["sample"]) == ["x"] * 7 + ["y"] * 9
    assert table["line"].isna().all()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_witness_file_has_every_row_in_the_order_of_the_files(tmp_path, kind):
    paths = [str(tmp_path / f"{name}.csv") for name in "xy"]
    for frame, path in zip(frames(rows=30), paths, strict=True):
        frame.to_csv(path, index=False)
    found = []
    for inputs in (paths, paths[::-1]):
        mmd_test(*inputs, witness=tmp_path / f"witness.{kind}")
        found.append(getattr(pd, f"read_{kind}")(tmp_path / f"witness.{kind}"))
    table, swapped = found
    assert list(table.columns) == ["sample", "row", "line", "witness"]
    assert list(table["row"]) == [*range(1, 31), *range(1, 31)]
    assert list(table["line"]) == [*range(2, 32), *range(2, 32)]
    assert list(table["sample"].unique()) == paths
    assert_close(swapped["witness"][:30], -table["witness"][30:])


def test_equal_rows_and_columns_stand_in_the_order_of_their_tables():
    """What rounding alone tells apart: which comes first must not hang on the processor."""
    rng = np.random.default_rng(8)
    order = rng.permutation(30)
    x, y = (np.repeat(rng.normal(size=6), 5)[order] + shift for shift in (0.7, 0.0))
    columns = (np.column_stack([values] * 3) for values in (x, y))
    explanation = mmd_test(*columns, explain=True, permutations=60).explanation
    assert [effect.column for effect in explanation.columns] == ["x1", "x2", "x3"]
    for name, values in (("x", x), ("y", y)):
        shown = [row.row - 1 for row in explanation.rows if row.sample == name]
        assert len(set(values[shown])) == 1
        assert shown == sorted(np.flatnonzero(values == values[shown[0]]))


def test_a_minimum_effect_must_be_reached_to_reject():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(400, 1)), rng.normal(size=(400, 1)) + 0.4
    small, large = mmd_test(x, y, min_effect=0.01), mmd_test(x, y, min_effect=0.9)
    found = small.minimum_effect
    assert (small.reject, found.reached, large.reject) == (True, True, False)
    assert large.p_value <= 0.05
    assert "not surely by enough" in large.decision
    # A little more than by the normal law, for the error is less where MMD is.
    assert found.lower_bound == pytest.approx(
        found.mmd - 1.6448536 * found.standard_error, abs=0.5 * found.standard_error
    )
    assert found.lower_bound > found.mmd - 1.6448536 * found.standard_error
    with pytest.raises(UsageError, match="min_effect must be positive"):
        mmd_test(x, y, min_effect=0.0)


def test_bad_outputs_are_refused_before_the_work(tmp_path, monkeypatch):
    x, y = frames(rows=20)
    for option, path, kind, message in (
        ("plot", "a.gif", UsageError, "picture cannot be drawn"),
        ("witness", "a.txt", UsageError, "witness function cannot be written"),
        ("witness", "no/a.csv", DataError, "does not exist"),
    ):
        with pytest.raises(kind, match=message):
            mmd_test(x, y, **{option: tmp_path / path})
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib") as caught:
        mmd_test(x, y, plot=tmp_path / "a.png")
    assert caught.value.hint == "`pip install '.[plot]'` in the folder of kerntest, or `pip install matplotlib`"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [30, 3000])
def test_a_test_and_its_explanation_have_one_progress(n):
    rng, seen = np.random.default_rng(0), []
    x, y = rng.normal(size=(n, 4)), rng.normal(size=(n, 4)) + 0.2
    mmd_test(x, y, explain=True, permutations=100, progress=lambda done, total: seen.append((done, total)))
    assert len({total for _, total in seen}) == 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_of_a_single_column_there_is_one_p_value():
    rng = np.random.default_rng(0)
    found = mmd_test(rng.normal(size=(40, 1)), rng.normal(0.4, 1, size=(40, 1)), explain=True)
    assert "p alone" not in found.summary()
    # Pictures and JSON have that of the test, too.
    (column,) = found.explanation.columns
    assert (column.p_value, column.p_adjusted, column.effect_size) == (found.p_value, found.p_value, found.effect_size)
    assert column.kernel == found.kernel
    (clearest,) = [one for one in found.family.members if one.kernel == found.kernel]
    assert_close(column.z, clearest.z)
    two = mmd_test(rng.normal(size=(40, 2)), rng.normal(0.4, 1, size=(40, 2)), explain=True)
    assert "p alone" in two.summary()
    assert "Each column, the largest effect first:" in two.summary()


def test_columns_without_an_effect_are_in_no_order():
    x = np.random.default_rng(2).normal(size=(40, 2))
    assert "Each column, none with an effect:" in mmd_test(x, x, explain=True, permutations=50).summary()


def test_what_a_column_with_gaps_holds_is_told_of_the_values_that_are_there():
    rng = np.random.default_rng(0)
    x, y = (pd.DataFrame({"age": rng.normal(60.0, 9.0, 80), "size": rng.normal(size=80)}) for _ in range(2))
    x["town"], y["town"] = "rome", "oslo"
    y.loc[::2, "age"] = np.nan
    x.loc[::4, "town"] = None
    found = mmd_test(x, y, missing="indicator", explain=True)
    (age,) = [one for one in found.explanation.columns if one.column == "age"]
    np.testing.assert_allclose(
        [age.x.standard_deviation, age.y.standard_deviation], [x.age.std(), y.age.std()], rtol=1e-12
    )
    np.testing.assert_allclose(age.y.median, y.age.median(), rtol=1e-12)
    shares = {one.column: (one.x.missing, one.y.missing) for one in found.explanation.columns}
    assert (shares["age"], shares["size"], shares["town"]) == ((0.0, 0.5), (0.0, 0.0), (0.25, 0.0))


@pytest.mark.parametrize("strata", [None, "shop"])
def test_a_column_alone_is_tested_by_its_values_and_where_they_are_by_the_column_beside_it(strata):
    rng = np.random.default_rng(3)
    x, y = (pd.DataFrame(rng.normal(size=(200, 2)), columns=["same", "moved"]) for _ in range(2))
    for frame in (x, y):
        frame["shop"] = np.repeat(["north", "south"], 100)
        frame.loc[:99, "same"] += 3.0
    y["moved"] += 1.0
    gaps = rng.random((200, 2)) < 0.4
    y.loc[gaps[:, 0], "same"] = np.nan
    y.loc[gaps[:, 1], "moved"] = np.nan
    effects = effects_of(x, y, missing="indicator", exclude=None if strata else "shop", strata=strata, scale="none")
    assert effects["same"].p_value > 0.1
    assert max(effects[name].p_value for name in ("same missing", "moved missing", "moved")) <= 0.002
    if strata is None:
        # Of the values that are there, as if no other rows were.
        kernel = effects["moved"].kernel
        own = mmd_test(x[["moved"]], y[["moved"]].dropna(), kernel=kernel, scale="none", permutations=50).effect_size
        assert_close(effects["moved"].effect_size, own)


def test_within_strata_columns_are_told_as_if_both_sides_had_as_much_of_each():
    """Of all rows y is larger, and more often new, because it is mostly of the south: in each shop it is smaller."""
    rng = np.random.default_rng(8)
    sides = []
    for n_north, n_south, lower in ((90, 30, 0.0), (20, 110, 1.0)):
        shop = np.repeat(["north", "south"], [n_north, n_south])
        level = np.where(shop == "north", 0.0, 5.0) - lower
        new = rng.random(len(shop)) < np.where(shop == "north", 0.3, 0.9) - 0.2 * lower
        sides.append(
            pd.DataFrame({"shop": shop, "v": level + rng.normal(size=len(shop)), "new": np.where(new, "yes", "no")})
        )
    x, y = sides
    effects = effects_of(x, y, strata="shop")
    counts = np.array([[np.sum(side["shop"] == shop) for shop in ("north", "south")] for side in sides])
    shares = counts.prod(axis=0) / counts.sum(axis=0)
    shares /= shares.sum()
    for side, told in zip(sides, (effects["v"].x, effects["v"].y), strict=True):
        of_shops = [side["v"][side["shop"] == shop] for shop in ("north", "south")]
        mean = shares @ [one.mean() for one in of_shops]
        assert_close(told.mean, float(mean))
        square = shares @ [np.mean((one - mean) ** 2) for one in of_shops]
        assert_close(told.standard_deviation, float(np.sqrt(square * len(side) / (len(side) - 1))))
    assert y["v"].mean() > x["v"].mean()
    assert effects["v"].y.mean < effects["v"].x.mean
    assert effects["v"].y.median < effects["v"].x.median
    for side, told in zip(sides, (effects["new"].x, effects["new"].y), strict=True):
        of_shops = [np.mean(side["new"][side["shop"] == shop] == told.value) for shop in ("north", "south")]
        assert_close(told.share, float(shares @ of_shops))


@pytest.mark.usefixtures("columns_alone")
def test_gaps_do_not_dilute_what_the_few_values_that_are_there_tell():
    """With other values in the gaps 7 of 20 were found; and where one sample has many more gaps none is found too often."""
    found, level = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = (pd.DataFrame(rng.normal(size=(30, 2)), columns=["moved", "same"]) for _ in range(2))
        y["moved"] += 2.0
        for frame, gaps in ((x, 0.7), (y, 0.2)):
            frame.loc[rng.permutation(30)[:20], "moved"] = np.nan
            frame.loc[rng.random(30) < gaps, "same"] = np.nan
        effects = effects_of(x, y, missing="indicator", permutations=199, kernel="gaussian", bandwidth="median")
        found += effects["moved"].p_value <= 0.05
        level += effects["same"].p_value <= 0.05
    assert found >= 16
    assert level <= 4


@pytest.mark.usefixtures("columns_alone")
@pytest.mark.parametrize("there", [0, 1])
def test_a_column_that_is_hardly_there_in_one_sample_has_no_effect_of_its_own(there):
    rng = np.random.default_rng(3)
    x, y = (pd.DataFrame(rng.normal(size=(60, 2)), columns=["gone", "same"]) for _ in range(2))
    y.loc[there:, "gone"] = np.nan
    effects = effects_of(x, y, missing="indicator", permutations=200)
    assert effects["gone"].effect_size == 0.0
    assert effects["gone missing"].p_value == 1 / 200
