"""Names, wildcards and ranges."""

import numpy as np
import pytest

from kerntest import read_table
from kerntest.data.columns import find, match_names, select_columns, split_patterns
from kerntest.errors import DataError, UsageError

NAMES = ("price", "size", "weight", "temp_in", "temp_out", "a:b", "odd*", "odd_1", "x,y")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "sales.csv"
    header = ",".join(f'"{name}"' for name in NAMES)
    path.write_text(header + "\n" + ",".join("1" * len(NAMES)) + "\n" + ",".join("2" * len(NAMES)) + "\n")
    return read_table(path, name="sales.csv")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, NAMES),
        ((), NAMES),
        ("price", ("price",)),
        ("weight, price", ("price", "weight")),
        (["weight", "price"], ("price", "weight")),
        ("temp_*", ("temp_in", "temp_out")),
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
    assert select_columns(table, patterns).names == expected


def test_exclude(table):
    assert select_columns(table, "price:weight", "size").names == ("price", "weight")
    assert select_columns(table, None, 'temp_*,odd*,odd_1,a:b,"x,y"').names == ("price", "size", "weight")


@pytest.mark.parametrize(
    ("columns", "exclude", "column", "hint"),
    [
        ("wieght", None, "wieght", "did you mean 'weight'?"),
        (None, "wieght", "wieght", "did you mean 'weight'?"),
        ("size:wieght", None, "wieght", "did you mean 'weight'?"),
        ("zzz*", None, r"zzz\*", "the columns are price, size"),
        ("q", None, "q", "the columns are price, size, weight, temp_in"),
        ("q:r", None, "q:r", "the columns are"),
        (":", None, ":", "the columns are"),
    ],
)
def test_unknown_names(table, columns, exclude, column, hint):
    with pytest.raises(UsageError, match=rf"^column '{column}' is not in sales\.csv$") as caught:
        select_columns(table, columns, exclude)
    assert (caught.value.exit_code, caught.value.code) == (2, "usage.unknown_column")
    assert caught.value.hint.startswith(hint)
    assert caught.value.where["file"] == "sales.csv"


def test_backward_range(table):
    with pytest.raises(UsageError, match="the range 'weight:size' runs backwards") as caught:
        select_columns(table, "weight:size")
    assert (caught.value.exit_code, caught.value.code) == (2, "usage.backward_range")
    assert caught.value.hint == "write size:weight"


@pytest.mark.parametrize(("columns", "exclude"), [("price", "price"), (None, "*"), ("", None), (" , ", None)])
def test_nothing_selected(table, columns, exclude):
    with pytest.raises(UsageError, match=r"no column of sales\.csv is selected") as caught:
        select_columns(table, columns, exclude)
    assert (caught.value.exit_code, caught.value.code) == (2, "usage.no_columns")
    assert caught.value.hint


def test_split_and_find():
    assert split_patterns(None) == []
    assert split_patterns(' a , "b,c" ,,d') == ["a", "b,c", "d"]
    assert find("a.c", ["abc"]) == []
    assert find("a*", ["b"]) == []
    assert match_names(["b", "a"], ["a", "b", "c"], "t") == ["a", "b"]


def test_item_and_select_name_what_is_not_there(table):
    assert table["size"].values.tolist() == [1.0, 2.0]
    assert table.select(["weight", "price"]).names == ("weight", "price")
    for use in (lambda: table["pric"], lambda: table.select(["pric"])):
        with pytest.raises(UsageError, match=r"column 'pric' is not in sales\.csv"):
            use()


def test_take_rows(table):
    indices, mask = table.take(np.array([1])), table.take(np.array([False, True]))
    for taken in (indices, mask):
        assert (taken.n_rows, taken["size"].values.tolist(), taken.place(0)) == (1, [2.0], "line 3")


def test_a_column_with_a_problem_fails_only_when_selected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 20 + "x,2\n")
    table = read_table(path)
    assert select_columns(table, "b").names == ("b",)
    with pytest.raises(DataError, match="line 22: column 'a' holds 'x'"):
        select_columns(table, "a")
