"""Columns: named by patterns, found in two tables by name, agreed on a type; missing values; rows laid below one another."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kerntest import mmd_test, read_table
from kerntest.data.columns import check_usable, find, match_tables, named_columns, pool, split_patterns, standardize
from kerntest.data.gaps import apply_missing

NAMES = ("price", "size", "weight", "temp_in", "temp_out", "a:b", "odd*", "odd_1", "x,y")
UNKNOWN, DIFFER = "usage.unknown_column", "data.columns_differ"


@pytest.fixture
def table(csv):
    lines = [",".join(f'"{name}"' for name in NAMES), *(",".join(value * len(NAMES)) for value in "12")]
    return read_table(csv("\n".join(lines), "sales.csv"))


@pytest.fixture
def tables(csv):
    return lambda *texts: [read_table(csv(text, name)) for text, name in zip(texts, ("a.csv", "b.csv"), strict=True)]


@pytest.fixture
def unmatched(refused):
    """Return what checks that two tables are refused."""
    return lambda match, code, *pair, **options: refused(lambda: match_tables(*pair, **options), match, code)


def kinds(table):
    return [column.kind for column in table.columns]


# Names, wildcards and ranges


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, NAMES),
        ((), NAMES),
        ("price", ("price",)),
        ("weight, price", ("price", "weight")),
        (["weight", "price"], ("price", "weight")),
        ("*_in,*ou*", ("temp_in", "temp_out")),
        ("*", NAMES),
        ("size:temp_in", ("size", "weight", "temp_in")),
        ("size:size", ("size",)),
        (":size", ("price", "size")),
        ("odd_1:", ("odd_1", "x,y")),
        ("a:b", ("a:b",)),
        ("a:b:odd_1", ("a:b", "odd*", "odd_1")),
        ("temp_out:a:b", ("temp_out", "a:b")),
        ("odd*", ("odd*",)),
        ("o*", ("odd*", "odd_1")),
        ('"x,y",price', ("price", "x,y")),
        (["x,y"], ("x,y",)),
        ("price,price,p*,", ("price",)),
    ],
)
def test_patterns(table, patterns, expected):
    assert named_columns(table, patterns).names == expected
    assert named_columns(table, None, "size").names == tuple(name for name in NAMES if name != "size")
    assert split_patterns(' a , "b,c" ,,d') == ["a", "b,c", "d"]
    assert find("a.c", ["abc"]) == []


@pytest.mark.parametrize(
    ("columns", "exclude", "match", "code", "hint"),
    [
        ("wieght", None, "^column 'wieght' is not in sales.csv$", UNKNOWN, "did you mean 'weight'?"),
        (None, "wieght", "^column 'wieght' is not in sales.csv$", UNKNOWN, "did you mean 'weight'?"),
        ("size:wieght", None, "^column 'wieght' is not in sales.csv$", UNKNOWN, "did you mean 'weight'?"),
        ("zzz*", None, r"^column 'zzz\*' is not", UNKNOWN, "the columns are price, size, weight, temp_in"),
        ("q:r", None, "^column 'q:r' is not", UNKNOWN, "the columns are"),
        (":", None, "^column ':' is not", UNKNOWN, "the columns are"),
        ("weight:size", None, "the range 'weight:size' runs backwards", "usage.backward_range", "write size:weight"),
        *(
            (columns, exclude, r"no column of sales\.csv is selected", "usage.no_columns", "name at least one")
            for columns, exclude in (("price", "price"), (None, "*"), ("", None), (" , ", None))
        ),
    ],
)
def test_patterns_that_mean_nothing(table, refused, *, columns, exclude, match, code, hint):
    error = refused(lambda: named_columns(table, columns, exclude), match, code)
    assert error.hint.startswith(hint)
    assert error.where.get("file") == (None if code == "usage.backward_range" else "sales.csv")


def test_items_and_rows(table, refused):
    assert table["size"].values.tolist() == [1.0, 2.0]
    assert table.select(["weight", "price"]).names == ("weight", "price")
    for use in (lambda: table["pric"], lambda: table.select(["pric"])):
        refused(use, r"column 'pric' is not in sales\.csv", UNKNOWN)
    for rows in (np.array([1]), np.array([False, True])):
        taken = table.take(rows)
        assert (taken.n_rows, taken["size"].values.tolist(), taken.place(0)) == (1, [2.0], "line 3")


# Two tables


def test_columns_are_matched_by_name_in_the_order_of_x(tables):
    x, y, warnings = match_tables(*tables("p,q,r\n1,2,3\n", "r,p,q\n3,1,2\n"))
    assert x.names == y.names == ("p", "q", "r")
    assert ([column.values[0] for column in y.columns], warnings) == ([1, 2, 3], ())


def test_columns_in_one_table_only(tables, unmatched):
    pair = tables("p,q,r\n1,2,3\n", "p,s t,r\n1,2,3\n")
    error = unmatched(
        r"^a\.csv and b\.csv have different columns: only in a\.csv: q; only in b\.csv: s t$", DIFFER, *pair
    )
    assert (
        error.hint == "common=True uses the shared ones; exclude='q,s t' leaves these out; columns= names those to use"
    )
    x, y, warnings = match_tables(*pair, common=True)
    assert x.names == y.names == ("p", "r")
    assert warnings == ("columns in one table only are left out: only in a.csv: q; only in b.csv: s t",)
    for options in ({"exclude": "q,s t"}, {"columns": "p,r"}, {"columns": ["r", "p"]}):
        x, y, warnings = match_tables(*pair, **options)
        assert (x.names, y.names, warnings) == (("p", "r"), ("p", "r"), ())
    pair = tables("p\n1\n", "q\n1\n")
    for common in (False, True):
        error = unmatched(r"^a\.csv and b\.csv have no column in common$", DIFFER, *pair, common=common)
        assert error.hint == "a.csv has p; b.csv has q"


@pytest.mark.parametrize(
    ("options", "match", "code", "hint"),
    [
        ({"columns": "weight"}, r"^column 'weight' is not in a\.csv, only in b\.csv$", UNKNOWN, "the columns are"),
        (
            {"columns": "temp_2"},
            r"^column 'temp_2' is not in b\.csv, only in a\.csv$",
            UNKNOWN,
            "did you mean 'temp_1'?",
        ),
        ({"columns": "temp_2", "common": True}, r"not in b\.csv, only in a\.csv", UNKNOWN, "did"),
        ({"columns": "size:temp_2"}, r"column 'temp_2' is not in b\.csv", UNKNOWN, "the columns are"),
        ({"columns": "sise"}, r"^column 'sise' is in neither a\.csv nor b\.csv$", UNKNOWN, "did you mean 'size'?"),
        ({"columns": "zz*"}, r"column 'zz\*' is in neither", UNKNOWN, "the columns are"),
        ({"exclude": "wait"}, "column 'wait' is in neither", UNKNOWN, ""),
        ({"categorical": "tmp"}, "column 'tmp' is in neither", UNKNOWN, ""),
        ({"columns": "t*"}, r"only in a\.csv: temp_2$", DIFFER, "common=True"),
        ({"columns": "size,w*"}, r"only in b\.csv: weight$", DIFFER, "common=True"),
        ({"exclude": "*"}, r"no column of a\.csv and b\.csv is selected", "usage.no_columns", "name"),
        ({"columns": ""}, "is selected", "usage.no_columns", "name"),
    ],
)
def test_columns_named_must_be_in_both(tables, unmatched, *, options, match, code, hint):
    pair = tables("size,temp_1,temp_2\n1,2,3\n", "size,temp_1,weight\n1,2,3\n")
    assert unmatched(match, code, *pair, **options).hint.startswith(hint)
    assert match_tables(*pair, columns="t*", common=True)[0].names == ("temp_1",)
    unmatched(r"^column 'q' is not in a\.csv$", UNKNOWN, pair[0], pair[0], columns="q")


def test_arrays_of_different_width(unmatched):
    x, y = read_table(np.zeros((3, 2)), name="x"), read_table(np.zeros((3, 5)), name="y")
    unmatched("^x and y have 2 and 5 columns$", DIFFER, x, y)
    assert match_tables(x, y, common=True)[0].names == ("x1", "x2")


def test_types_that_differ(tables, unmatched):
    pair = tables("age,city,n\n30,a,1\n31,b,2\n", "age,city,n\n30,a,true\nold,b,false\nnew,c,true\nodd,c,true\n")
    match = (
        r"^column 'age' is number in a\.csv and text in b\.csv \(b\.csv, line 3: 'old'\); the types of n differ too$"
    )
    error = unmatched(match, "data.types_differ", *pair)
    assert error.hint == "categorical='age,n' compares as text; exclude='age,n' leaves out"
    x, y, _ = match_tables(*pair, categorical="age,n")
    assert kinds(x) == kinds(y) == ["text"] * 3
    assert (x["age"].levels, y["age"].levels) == (("30", "31"), ("30", "new", "odd", "old"))
    for texts, match in (
        (("z\n12\n", "z\n12\n007\n008\n"), r"b\.csv, line 3: '007'"),
        (("d\n2024-01-01\n", "d\n20240101\n"), r"'d' is date in a\.csv and number in b\.csv$"),
        (("d\n2024-01-01\n", "d\n2024-01-01\nsoon\nlater\n"), r"text in b\.csv \(b\.csv, line 3: 'soon'\)$"),
    ):
        unmatched(match, "data.types_differ", *tables(*texts))
    x, y = read_table(pa.table({"a": [1]})), read_table(pa.table({"a": [None, "1", "2"]}), name="y")
    unmatched(r"number in x and text in y \(y, row 2: '1'\)", "data.types_differ", x, y)


def test_types_that_meet(tables):
    x, y, _ = match_tables(*tables("b\ntrue\nFalse\n", "b\ntrue\nmaybe\n"))
    assert kinds(x) == kinds(y) == ["text"]
    assert (x["b"].levels, y["b"].levels) == (("false", "true"), ("maybe", "true"))
    whole, mixed = read_table(np.array([1, 2, 3])), read_table(np.array([1.0, 2.5, np.nan]))
    x, y, _ = match_tables(whole, mixed, categorical="x1")
    assert (x["x1"].levels, y["x1"].levels, y["x1"].values.tolist()) == (("1", "2", "3"), ("1", "2.5"), [0, 1, -1])


@pytest.mark.parametrize("other", ["1", "true", "abc", "2024-01-01"])
def test_an_empty_column_takes_the_type_of_the_other(tables, other):
    empty, full = tables("c,k\n,1\nNA,1\n", f"c,k\n{other},1\n")
    for pair in ((empty, full), (full, empty)):
        x, y, _ = match_tables(*pair)
        assert x["c"].kind == y["c"].kind == full["c"].kind
        assert x["c"].values.dtype == y["c"].values.dtype
        assert (x["c"].n_missing, y["c"].n_missing) == ((2, 0) if pair[0] is empty else (0, 2))


def test_problems_count_only_for_columns_that_take_part(tables, unmatched):
    pair = tables("p,q\n1,2\n", "p,q\n" + "1,2\n" * 20 + "abc,2\n")
    unmatched(r"^b\.csv, line 22: column 'p' holds 'abc'", "data.not_a_number", *pair)
    assert match_tables(*pair, exclude="p")[0].names == ("q",)
    assert kinds(match_tables(*pair, categorical="p")[1]) == ["text", "number"]
    assert named_columns(pair[1], "q").names == ("q",)
    x = read_table(pa.table({"a": [[1], [2]]}))
    unmatched("column 'a' is of type list", "data.unusable_type", x, x, categorical="a")


def test_categories_of_which_none_is_in_both_tables_are_told(csv):
    texts = {"a": ["yes", "no"], "b": ["Yes", "No"], "c": ["yes", "No"]}
    a, b, c = (
        read_table(csv("\n".join(["flag,n", *(f"{values[k % 2]},{k}" for k in range(20))]), name))
        for name, values in texts.items()
    )
    (warning,) = match_tables(a, b)[2]
    assert warning.startswith("column 'flag' has no value in common: no, yes in a, No, Yes in b; check")
    assert match_tables(a, c)[2] == ()


class Name(str):
    """A name that counts how often it is compared with another."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_many_columns_do_not_take_quadratic_time():
    x = read_table(np.zeros((1, 1000)))
    x = replace(x, columns=tuple(replace(column, name=Name(column.name)) for column in x.columns))
    Name.compared = 0
    assert len(match_tables(x, x, exclude="x1")[0].columns) == 999
    # A search through all names for every name would take half a million.
    assert Name.compared < 50_000


# Missing and infinite values


def test_missing_values_are_counted_or_their_rows_left_out(csv, refused):
    rows = ["1,a,true,2024-01-01"] * 40
    for row in (5, 6, 7):
        rows[row] = "NA,a,true,2024-01-01" if row < 7 else ",,,"
    table = read_table(csv("price,city,ok,day\n" + "\n".join(rows)))
    match = r"^a\.csv has 6 missing values: price 3, city 1, ok 1, day 1 \(the first in line 7\)$"
    error = refused(lambda: apply_missing(table, "error"), match, "data.missing_values")
    assert error.hint == "missing='drop' leaves those rows out, missing='indicator' keeps them"
    assert error.where == {"file": "a.csv", "line": 7, "column": "price"}
    complete, n_dropped = apply_missing(table, "drop")
    assert (n_dropped, complete.n_rows, complete.place(5)) == (3, 37, "line 10")
    assert all(column.n_missing == 0 and len(column.values) == 37 for column in complete.columns)
    assert apply_missing(complete, "error") == (complete, 0)
    # Only selected columns count.
    assert apply_missing(table.select(["city"]), "drop")[1] == 1


def test_missing_values_of_frames(refused):
    table = read_table(pa.table({"a": [1.0, 2.0], "unit price": [1.0, None]}))
    match = r"^x has 1 missing value: unit price 1 \(the first in row 2\)$"
    error = refused(lambda: apply_missing(table, "error"), match, "data.missing_values")
    assert error.hint.endswith("exclude='unit price' leaves the column out")
    table = read_table(pa.table({"a": [1.0, None], "b": [None, None]}), name="y")
    match = "^every row of y has a missing value: b 2, a 1$"
    hint = "exclude='b' leaves that column out, missing='indicator' keeps every row"
    assert refused(lambda: apply_missing(table, "drop"), match, "data.no_rows_left").hint == hint
    match = "^every row of y has a missing value: b 2, a 1$"
    hint = "column 'b' is needed: fill it in"
    assert refused(lambda: apply_missing(table, "drop", ["b"]), match, "data.no_rows_left").hint == hint


def test_what_leaves_no_row_is_named_at_once(refused):
    """Of both tables, and no more than that: a column in which half of the values are missing stays."""
    some, none = [1.0, 2.0, None, None], [None] * 4
    here = read_table(pa.table({"a": some, "b": none, "c": [1.0, 2.0, 3.0, 4.0], "d": none}), name="x")
    there = read_table(pa.table({"a": some, "b": none, "c": none, "d": some}), name="y")
    found = refused(lambda: apply_missing(here, "drop", among=[here, there]), "^every row of x", "data.no_rows_left")
    assert found.hint == "exclude='b,d,c' leaves those columns out, missing='indicator' keeps every row"


def test_infinities_of_arrays_name_the_row(refused):
    table = read_table(np.array([[1.0, 2.0], [3.0, -np.inf], [np.inf, -np.inf]]))
    for names, row, match in (
        (["x1", "x2"], 3, r"^x, row 3: column 'x1' holds 'inf', .* \(1 such value\)$"),
        (["x2"], 2, r"^x, row 2: column 'x2' holds '-inf', .* \(2 such values\)$"),
    ):
        error = refused(lambda names=names: check_usable(table.select(names)), match, "data.infinite_values")
        assert error.where["row"] == row
    assert check_usable(read_table(np.array([1.0, np.nan]))).n_rows == 2


def test_integers_that_differ_beyond_sixteen_digits(csv):
    for name, more in (("x.csv", 0), ("y.csv", 10)):
        csv("id,v\n" + "".join(f"{2**60 + more + k % 2},{k % 7}\n" for k in range(40)), name)
    assert mmd_test("x.csv", "y.csv").p_value == mmd_test("x.csv", "y.csv", categorical="id").p_value < 0.01


# Rows of two tables, one below the other


def pooled(x, y):
    return pool(read_table(pa.table(x), name="x"), read_table(pa.table(y), name="y"))


def test_rows_of_x_first_and_levels_of_both():
    result = pooled(
        {"a": [1.0, 2.0], "t": ["m", "z"], "b": [True, True], "d": np.array([0, 2], "datetime64[D]")},
        {"a": [3.0, 4.0, 5.0], "t": ["a", "m", "m"], "b": [False, True, True], "d": np.array([4] * 3, "datetime64[D]")},
    )
    assert (result.n_x, result.n_y) == (2, 3)
    assert (result.numeric_names, result.category_names) == (("a", "d"), ("t", "b"))
    np.testing.assert_array_equal(result.numeric, [[1, 0], [2, 2], [3, 4], [4, 4], [5, 4]])
    np.testing.assert_array_equal(result.codes, [[1, 1], [2, 1], [0, 0], [1, 1], [1, 1]])
    assert result.levels == (("a", "m", "z"), ("false", "true"))
    assert (result.left_out, result.warnings) == ((), [])
    assert (result.numeric.dtype, result.codes.dtype) == (np.float64, np.int64)
    assert pooled({"a": [1, 2]}, {"a": [3, 4]}).codes.shape == (4, 0)
    assert pooled({"a": ["p", "q"]}, {"a": ["p", "p"]}).numeric.shape == (4, 0)


def test_columns_that_tell_nothing_are_left_out():
    same = {"version": [3, 3], "a": [1, 2], "t": ["u", "u"], "b": [True, True]}
    result = pooled(same, same)
    assert result.left_out == ("version", "t", "b")
    assert result.warnings == ["columns 'version', 't', 'b' have one value each in all rows and are left out"]
    # Constant within each table, but not over both: the plainest difference there is.
    assert pooled({"a": [1, 1]}, {"a": [2, 2]}).left_out == ()
    assert pooled({"a": ["u", "u"]}, {"a": ["v", "v"]}).left_out == ()

    def batch(start, n_different, n):
        return {"id": [f"id{start + min(i, n_different - 1)}" for i in range(n)], "a": list(range(n))}

    result = pooled(batch(0, 20, 20), batch(100, 20, 20))
    assert result.warnings == ["column 'id' has 40 different values in 40 rows: it identifies rows and is left out"]
    # 36 of 40 is not more than 90 %; of fewer than 20 rows all must differ, and of fewer than 10 nothing can be told.
    for first, second, left_out in ((18, 18, ()), (10, 10, ("id",)), (5, 5, ("id",)), (4, 5, ())):
        rows = [20 if n == 18 else n for n in (first, second)]
        assert pooled(batch(0, first, rows[0]), batch(100, second, rows[1])).left_out == left_out
    assert pooled(batch(0, 8, 9), batch(100, 9, 9)).left_out == ()
    numbers = {"a": np.arange(50.0)}
    assert pooled(numbers, numbers).left_out == ()


@pytest.mark.parametrize(
    ("x", "y", "match", "code"),
    [
        (
            {"v": [1, 1]},
            {"v": [1, 1]},
            "no column of x and y is left to compare: column 'v' has one",
            "data.no_columns",
        ),
        ({"a": [1]}, {"a": [1, 2]}, "^x has 1 row; the test needs at least 2", "data.too_few_rows"),
        ({"a": [1, 2]}, {"a": [1]}, "^y has 1 row; the test needs at least 2", "data.too_few_rows"),
        ({"a": [1, 2]}, {"a": [1, None]}, "^y has 1 missing value: a 1", "data.missing_values"),
    ],
)
def test_tables_that_cannot_be_pooled(refused, x, y, match, code):
    refused(lambda: pooled(x, y), match, code)


# Mean 0, standard deviation 1, whatever the offset and the magnitude


@pytest.mark.parametrize("magnitude", [1e-310, 1e-300, 1e-160, 1.0, 1e160, 1e300, 8e307])
@pytest.mark.parametrize("offset", [0.0, 0.4, -1.3])
def test_scaling_agrees_with_the_textbook_at_any_magnitude(magnitude, offset):
    base = np.array([[-0.5], [0.25], [0.5], [0.75]])
    before = (base + offset) * magnitude
    numeric = before.copy()
    scaled, mean, scale = standardize(numeric)
    np.testing.assert_array_equal(numeric, before)
    np.testing.assert_allclose(scaled, (base - base.mean()) / base.std(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean / magnitude, [base.mean() + offset], rtol=1e-12, atol=0)
    np.testing.assert_allclose(scale / magnitude, base.std(axis=0), rtol=1e-12, atol=0)


def test_a_huge_offset_does_not_cost_the_digits():
    base = np.random.default_rng(1).integers(0, 2, size=(1000, 1)).astype(float)
    scaled, mean, scale = standardize(base + 1e15)
    np.testing.assert_allclose(scaled, standardize(base)[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose([scale[0], mean[0]], [base.std(), base.mean() + 1e15], rtol=1e-12, atol=0)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-310])
def test_constant_columns_become_zero(value):
    scaled, mean, scale = standardize(np.full((7, 2), value))
    np.testing.assert_array_equal([*scaled, mean, scale], [[0, 0]] * 7 + [[value, value], [1, 1]])
    assert [part.shape for part in standardize(np.empty((5, 0)))] == [(5, 0), (0,), (0,)]


def test_one_of_a_few_categories_that_is_written_as_an_amount_makes_no_numbers_of_them(tmp_path):
    classes = ["$25000 or more"] * 60 + ["$10000 - 14999"] * 20 + ["lt $1000"] * 10 + ["$15000 - 19999"] * 10
    path = tmp_path / "income.csv"
    path.write_text("income,k\n" + "".join(f"{one},{k}\n" for k, one in enumerate(classes)))
    column = read_table(path)["income"]
    assert (column.kind, column.problem, len(column.levels)) == ("text", None, 4)
