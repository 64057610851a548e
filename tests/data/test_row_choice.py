"""Rows that are chosen by a condition and at random: one choice for whole tables, for files in pieces, and for all commands."""

import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from learning.files_to_apply import rows

import kerntest
from kerntest import DataWarning, KerntestError, hsic_test, inspect_table, mmd_test, predict_file, read_table, train_svm
from kerntest.errors import DataError, UsageError

TODAY = "2024-05-01"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return 300 rows with columns of every kind, as a frame and as a CSV file; every tenth weight is missing."""
    frame = rows(300).drop(columns=["note"])
    frame["unit price"] = np.arange(300) % 7 / 2
    frame.loc[frame["id"] % 10 == 3, "weight"] = np.nan
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(path, index=False)
    return frame, path


# What a condition means for one row, in Python; None where a value is missing and nothing can be said.
MEANINGS = {
    "size > 0": lambda row: row["size"] > 0,
    "size > 0 and flag": lambda row: row["size"] > 0 and row["flag"] == "true",
    "not flag": lambda row: row["flag"] == "false",
    "flag == TRUE or size<=-.5": lambda row: row["flag"] == "true" or row["size"] <= -0.5,
    "colour == 'red'": lambda row: row["colour"] == "red",
    'colour = "red"': lambda row: row["colour"] == "red",
    "colour != 'red' and colour <> 'green'": lambda row: row["colour"] not in {"red", "green"},
    "colour in ('red', 'a,b')": lambda row: row["colour"] in {"red", "a,b"},
    "colour not in ('red', 'a,b')": lambda row: row["colour"] not in {"red", "a,b"},
    "colour == 1": lambda row: row["colour"] == "1",
    "colour > 'b'": lambda row: row["colour"] > "b",
    "-0.5 < size <= 5e-1": lambda row: -0.5 < row["size"] <= 0.5,
    "0.5 >= size": lambda row: row["size"] <= 0.5,
    f"day >= '{TODAY}'": lambda row: date.fromisoformat(row["day"]) >= date.fromisoformat(TODAY),
    f"day < '{TODAY}'": lambda row: date.fromisoformat(row["day"]) < date.fromisoformat(TODAY),
    "`unit price` = 1.5": lambda row: row["unit price"] == 1.5,
    '"unit price" >= size': lambda row: row["unit price"] >= row["size"],
    "size < `unit price` and (flag or id > 200) and not (colour = 'red')": lambda row: (
        row["size"] < row["unit price"] and (row["flag"] == "true" or row["id"] > 200) and row["colour"] != "red"
    ),
    "flag or size > 0 and colour == 'red'": lambda row: (
        row["flag"] == "true" or (row["size"] > 0 and row["colour"] == "red")
    ),
    "weight is missing": lambda row: np.isnan(row["weight"]),
    "weight is not NULL": lambda row: not np.isnan(row["weight"]),
    "weight > 0": lambda row: row["weight"] > 0,
    "not weight > 0": lambda row: row["weight"] <= 0,
    "weight not in (3, 4)": lambda row: not np.isnan(row["weight"]) and row["weight"] not in {3.0, 4.0},
    "weight != 3": lambda row: not np.isnan(row["weight"]) and row["weight"] != 3,
    "weight > 0 or id < 100": lambda row: row["weight"] > 0 or row["id"] < 100,
    "weight > size": lambda row: row["weight"] > row["size"],
    "3 < id": lambda row: row["id"] > 3,
    "3 <= id": lambda row: row["id"] >= 3,
    "3 > id": lambda row: row["id"] < 3,
    "id in (3, 17, 299)": lambda row: row["id"] in {3, 17, 299},
    "true == flag": lambda row: row["flag"] == "true",
    "colour = flag": lambda row: row["colour"] == row["flag"],
}


def test_a_value_that_no_row_has_is_told_with_the_one_that_was_meant():
    table = pd.DataFrame({"sex": ["Female", "Male"] * 3, "v": range(6)})
    for where, meant in (
        ("sex == 'female'", "'Female'"),
        ("v >= 0 and sex in ('mael')", "'Male'"),
        ("sex == 'x'", None),
    ):
        with pytest.raises(DataError, match="no row for which") as caught:
            read_table(table, where=where)
        assert ("did you mean" in caught.value.hint) == (meant is not None)
        assert meant is None or caught.value.hint.startswith(f"did you mean {meant}?")


@pytest.mark.parametrize("where", MEANINGS)
def test_a_condition_means_what_it_says_row_by_row(table, where):
    frame, path = table
    expected = [place + 1 for place, row in frame.iterrows() if MEANINGS[where](row)]
    if not expected:
        with pytest.raises(DataError, match="no row for which"):
            read_table(path, where=where)
        return
    found = read_table(path, where=where)
    assert found.numbers().tolist() == expected
    assert (found.n_rows, found.chosen_from, found.chosen_by) == (len(expected), 300, where)
    (ids,) = (column for column in found.columns if column.name == "id")
    assert vars(ids)["values"].tolist() == [number - 1 for number in expected]
    assert found.place(0) == f"line {expected[0] + 1}"


def test_percents_units_and_codes_are_compared_as_they_are_read(tmp_path):
    path = tmp_path / "units.csv"
    path.write_text("share,length,code,when\n12%,3 kg,001,31/12/2024\n7%,4 kg,002,1/1/2025\n50%,5 kg,003,2/1/2025\n")
    chosen = {
        "share > '10%'": [1, 3],
        "share > 10": [1, 3],
        "length >= '4 kg'": [2, 3],
        "code = '002'": [2],
        "when > '31/12/2024'": [2, 3],
        "when <= '2025-01-01'": [1, 2],
    }
    for where, numbers in chosen.items():
        assert read_table(path, where=where).numbers().tolist() == numbers
    year = pd.DataFrame({"year": [2008, 2009, 2009, 2010], "x": [1.0, 2.0, 3.0, 4.0]})
    assert read_table(year, categorical="year", where="year == 2009").numbers().tolist() == [2, 3]
    assert read_table(year, categorical="year", where="year > 2008 and x < 4").numbers().tolist() == [2, 3]


@pytest.mark.parametrize(
    "days",
    [
        ["2014-12-31", "2015-01-01", "2015-03-31 18:00", "2015-04-01", "2016-01-01", ""],
        ["31 Dec 2014", "1 Jan 2015", "Mar 31, 2015 18:00", "1 Apr 2015", "1 Jan 2016", ""],
    ],
)
def test_a_date_compares_with_all_days_of_a_year_or_month(tmp_path, days):
    path = tmp_path / "days.csv"
    pd.DataFrame({"x": range(6), "day": days}).to_csv(path, index=False)
    chosen = {
        "day < 2015": [1],
        "day <= 2015": [1, 2, 3, 4],
        "day > 2015": [5],
        "2015 <= day": [2, 3, 4, 5],
        "day == '2015'": [2, 3, 4],
        "day != 2015": [1, 5],
        "day in (2014, 2016)": [1, 5],
        "day <= '2015-03'": [1, 2, 3],
        "day == '2015 Mar'": [3],
        "day > '2015 Q1'": [4, 5],
        "'2015-01' < day < '2016-01'": [3, 4],
        "day > '2015-03-31'": [3, 4, 5],
    }
    for where, numbers in chosen.items():
        assert read_table(path, where=where).numbers().tolist() == numbers, where


@pytest.mark.parametrize(
    ("where", "position", "message", "hint"),
    [
        ("sze > 0", 1, "no column of .* is 'sze'", "did you mean 'size'"),
        ("size > 0 and `unit` > 1", 14, "two values and no column", "name a column"),
        ("size >", 7, "a value is missing at the end", "write a column"),
        ("size > 0 &", 10, "'&' has no meaning", "write `and`"),
        ("size > 0 | flag", 10, "'\\|' has no meaning", "write `or`"),
        ("size > 0 flag", 10, "'flag' after a whole condition", "`and` or `or`"),
        ("(size > 0", 10, "the parenthesis at character 1 is not closed", "write \\)"),
        ("size > 'a", 8, "' is not closed", "close it"),
        ("size > 'a'", 8, "holds numbers, and 'a' is none", "size == 0"),
        ("day > 99", 7, "holds dates, and '99' is none", "day == '2025-12-31'"),
        ("fixed = 2.5 and flag > 3", 24, "column 'flag' holds text, and 3 is a number", "single quotes"),
        ("size", 1, "column 'size' is number, and neither", "size == 0"),
        ("colour", 1, "column 'colour' is text, and neither", "compare it"),
        ("size in 3", 9, "`in` without a list", "parentheses"),
        ("size in (3, id)", 13, "a column among values", "lists numbers"),
        ("size is", 8, "`is` without `missing`", "is missing"),
        ("size not 3", 10, "`not` without `in`", "whole comparison"),
        ("3 > 2", 1, "two values and no column", "name a column"),
        ("3 is missing", 1, "'3' is no column", "name one"),
        ("size > colour", 6, "cannot be compared", "one kind"),
        ("size > > 0", 8, "'>' instead of a value", "^one of ==, =, !="),
        ("size => 0", 7, "'>' instead of a value", "^one of ==, =, !="),
        ("__import__('os')", 11, "after a whole condition", "no functions"),
        ("colour != red", 11, "no column of .* is 'red'", "^a text stands between single quotes: 'red'$"),
        ("colour in (red, green)", 12, "no column of .* is 'red'", "^a text stands between single quotes: 'red'$"),
        (
            "colour = mauve",
            10,
            "no column of .* is 'mauve'",
            "^the columns are .*; a text stands between single quotes$",
        ),
        ("colour = colr", 10, "no column of .* is 'colr'", r"^did you mean 'colour'\?$"),
        ("weight == None", 11, "no column of .* is 'None'", "^write `is missing` or"),
        ("size between 0 and 1", 6, "'between' after", "^write both bounds: 2 <= items <= 4$"),
        ("id*2 > 7", 3, "'\\*' has no meaning", "^nothing is computed; .* between backquotes"),
        ("colour =~ 'r'", 9, "'~' has no meaning", "texts are compared whole: name = 'a'"),
        ("colour LIKE 'r%'", 8, "'LIKE' after", "^texts are compared whole"),
        ("id in [1, 2]", 7, "'\\[' has no meaning", "^write values between parentheses"),
        ("id > 2)", 7, "'\\)' after", "^leave it out"),
        ("day > 2024-03-01", 11, "'-03' after", "a text or a date between single quotes"),
        ("", 1, "a value is missing", "write a column"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(table, where, position, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        read_table(table[1], where=where)
    assert caught.value.where["position"] == position
    assert caught.value.where["text"] == where
    assert re.search(hint, caught.value.hint)


def test_a_condition_that_cannot_be_is_refused_before_a_file_is_read():
    for options in ({"where": "size >"}, {"where": 3}, {"sample": 0}, {"sample": 2.5}, {"sample": True}):
        with pytest.raises(UsageError):
            mmd_test("is_not_there.csv", "is_not_there.csv", **options)


def test_the_shell_points_at_the_place(kerntest, table):
    outcome = kerntest("inspect", str(table[1]), "--where", "size > 0 and nothing")
    assert (outcome.code, outcome.out) == (2, "")
    place = outcome.err.splitlines().index("  size > 0 and nothing")
    assert outcome.err.splitlines()[place + 1] == "  " + 13 * " " + "^"
    outcome = kerntest("inspect", str(table[1]), "--where", "id > 1000")
    assert outcome.code == 3
    assert "has no row for which id > 1000 holds" in outcome.err


def test_a_sample_is_uniform_nested_and_told_by_its_seed(table):
    whole, path = read_table(table[1]), table[1]

    def numbers(**options):
        return set(read_table(whole, **options).numbers().tolist())

    assert len(numbers(sample=40)) == 40
    assert numbers(sample=40) < numbers(sample=41)
    assert numbers(sample=40) != numbers(sample=40, seed=1)
    assert numbers(sample=300) == numbers(sample=1000) == set(range(1, 301))
    few = numbers(where="size > 0", sample=40)
    assert len(few) == 40
    assert few < numbers(where="size > 0")
    assert numbers(sample=40) & numbers(where="size > 0") < few
    counts = np.zeros(300)
    for seed in range(400):
        counts[[number - 1 for number in numbers(sample=30, seed=seed)]] += 1
    # Each row is drawn 40 times, give or take 6.
    assert abs(counts.mean() - 40) < 1e-9
    assert 4.5 < counts.std() < 7.5
    assert abs(counts[:150].mean() - 40) < 2
    found = read_table(path, sample=40, where="size > 0")
    assert (found.chosen_from, found.chosen_by) == (300, "size > 0; 40 rows at random")
    assert np.all(np.diff(found.numbers()) > 0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "choice", [{"where": "weight > 0 and colour = 'red'"}, {"sample": 60}, {"where": "flag", "sample": 50}]
)
def test_files_in_pieces_have_the_rows_of_whole_ones(tmp_path, ending, choice):
    frame = rows(500)
    train_svm(frame.drop(columns=["id", "note"]), "weight", task="regress", output=tmp_path / "m.kt")
    data, whole = tmp_path / f"new.{ending}", tmp_path / "whole.csv"
    frame = frame.assign(flag=frame["flag"] == "true")
    _ = frame.to_csv(data, index=False) if ending == "csv" else frame.to_parquet(data, row_group_size=64)
    predict_file(tmp_path / "m.kt", data, output=whole, keep="id")
    expected = pd.read_csv(whole)
    numbers = read_table(data, **choice, seed=3).numbers()
    for threads, block in ((1, 4000), (2, 700)):
        size = block if ending == "csv" else block // 40
        report = predict_file(
            tmp_path / "m.kt",
            data,
            output=tmp_path / "part.csv",
            keep="id",
            block=size,
            threads=threads,
            seed=3,
            **choice,
        )
        found = pd.read_csv(tmp_path / "part.csv")
        pd.testing.assert_frame_equal(found, expected[expected["row"].isin(numbers)].reset_index(drop=True))
        assert report.rows == len(found) == len(numbers)
        assert report.chosen_by == "; ".join(
            filter(None, [choice.get("where"), "sample" in choice and f"{choice['sample']} rows at random"])
        )


def test_a_condition_on_a_column_that_the_model_does_not_know(tmp_path):
    frame = rows(200)
    train_svm(frame[["size", "weight"]], "weight", task="regress", output=tmp_path / "m.kt")
    frame.assign(share=[f"{k % 50}%" for k in range(200)]).to_csv(tmp_path / "new.csv", index=False)
    predict_file(tmp_path / "m.kt", tmp_path / "new.csv", output=tmp_path / "p.csv", where="share >= '49%'", block=2000)
    assert pd.read_csv(tmp_path / "p.csv")["row"].tolist() == [50, 100, 150, 200]
    with pytest.raises(DataError, match="no row for which id > 5000 holds"):
        predict_file(tmp_path / "m.kt", tmp_path / "new.csv", output=tmp_path / "no.csv", where="id > 5000")
    assert not (tmp_path / "no.csv").exists()
    with pytest.raises(KerntestError, match="no column of"):
        predict_file(tmp_path / "m.kt", tmp_path / "new.csv", output=tmp_path / "no.csv", where="idd > 5000")


def test_both_methods_take_the_same_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in "xy":
        frame = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
        frame.assign(kind=rng.choice(["u", "v"], 3000)).to_csv(tmp_path / f"{name}.csv", index=False)
    x, y = tmp_path / "x.csv", tmp_path / "y.csv"
    choice = {"where": "a > -1 and kind = 'u'", "sample": 900, "exclude": "kind", "kernel": "linear"}
    exact = mmd_test(x, y, **choice, method="exact")
    # As if it were a large file: CSV is read in blocks of 4 kB.
    monkeypatch.setattr("kerntest.inference.features.inputs.SMALL_BYTES", 0)
    monkeypatch.setattr("kerntest.inference.features.inputs.CSV_BLOCK_BYTES", 4096)
    features = mmd_test(x, y, **choice, method="features", features="nystroem:600")
    assert (features.n_x, features.n_y) == (exact.n_x, exact.n_y) == (900, 900)
    assert features.mmd2_biased == pytest.approx(exact.mmd2_biased, rel=1e-6)
    assert [one.chosen_by for one in features.provenance.inputs] == 2 * [exact.provenance.inputs[0].chosen_by]
    with pytest.raises(DataError, match="no row for which a > 9 holds"):
        mmd_test(x, y, where="a > 9", method="features")


def test_rows_of_two_files_that_pair_are_chosen_together(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    left, right = pd.DataFrame({"a": a, "k": np.arange(200)}), pd.DataFrame({"b": a + 0.1 * rng.normal(size=200)})
    left.to_csv(tmp_path / "left.csv", index=False)
    right.to_csv(tmp_path / "right.csv", index=False)
    both = hsic_test(
        tmp_path / "left.csv", tmp_path / "right.csv", x_columns="a", where="k >= 50 and b > -5", sample=60, kernel_x="linear",
        kernel_y="linear",
    )  # fmt: skip
    alone = hsic_test(
        left.assign(b=right["b"]),
        x_columns="a",
        y_columns="b",
        where="k >= 50",
        sample=60,
        kernel_x="linear",
        kernel_y="linear",
    )
    assert both.n == 60
    assert both.hsic_unbiased == pytest.approx(alone.hsic_unbiased, rel=1e-9)
    assert both.p_value < 0.01


def test_a_condition_that_chooses_other_rows_of_either_side_is_refused():
    x, y = (pd.DataFrame({"g": [*pair] * 20, name: range(40)}) for pair, name in (("uv", "p"), ("vu", "q")))
    with pytest.raises(UsageError, match=r"chooses other rows of x than of y$") as caught:
        hsic_test(x, y, x_columns="p", y_columns="q", where="g == 'u'")
    assert caught.value.code == "usage.where"
    assert hsic_test(x, y.drop(columns="g"), x_columns="p", y_columns="q", where="g == 'u'").n == 20


@pytest.mark.parametrize("where", ["(" * 5000 + "a > 0" + ")" * 5000, "not " * 5000 + "a > 0"])
def test_conditions_deep_within_one_another_are_refused(where):
    with pytest.raises(UsageError, match="too many parentheses") as caught:
        read_table(pd.DataFrame({"a": [1.0, 2.0]}), where=where)
    assert caught.value.code == "usage.where"


def test_series_keep_no_gap():
    frame = pd.DataFrame({"a": np.arange(60) % 7.0, "b": np.arange(60) % 5.0, "k": np.arange(60)})
    inside = {"x_columns": "a", "y_columns": "b", "time_series": True}
    assert hsic_test(frame, where="k >= 10 and k < 50", **inside).n == 40
    for gap in ({"where": "k < 20 or k > 30"}, {"sample": 40}):
        with pytest.raises(DataError, match="inside the series") as caught:
            hsic_test(frame, **gap, **inside)
        assert "by where= and not sample=" in caught.value.hint


def test_messages_name_rows_as_the_file_has_them(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0, 5.0], "b": [1, 1, 2, 2, 2]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    for name, place in (("f.csv", "line 4"), ("f.parquet", "row 3")):
        with pytest.raises(DataError, match=place):
            mmd_test(tmp_path / name, tmp_path / name, where="b = 2", exclude="b")
    report = inspect_table(tmp_path / "f.csv", where="b = 2")
    assert (report.rows, report.complete_rows, report.chosen_from, report.chosen_by) == (3, 2, 5, "b = 2")
    assert "3 rows of 5 (b = 2)" in report.summary()


def test_learners_take_the_rows_of_both_files(table):
    frame, path = table
    with pytest.warns(DataWarning):
        result = train_svm(
            path, "colour", where="weight is not missing", sample=100, exclude="id,day", test=path, kernel="linear"
        )
    assert (result.n_train, result.n_test) == (100, 100)
    (train, test) = result.provenance.inputs
    assert train.chosen_from == test.chosen_from == 300
    assert train.chosen_by == "weight is not missing; 100 rows at random"
    assert "100 rows of 300 (weight is not missing; 100 rows at random)" in result.summary(width=300)
    # Rows of a table that was read before are chosen once.
    again = kerntest.train_ridge(path, "size", where="weight is not missing", sample=100, exclude="id,day,colour")
    assert again.provenance.inputs[0].chosen_by == train.chosen_by
    assert again.n_train == 100
    first = read_table(frame, where="flag")
    assert read_table(first, where="size > 0").chosen_by == "size > 0"
