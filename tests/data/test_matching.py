"""Columns of two tables find each other by name and agree on a type."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kerntest import read_table
from kerntest.data.columns import match_tables
from kerntest.errors import DataError, UsageError


@pytest.fixture
def tables(tmp_path):
    def write(text_x, text_y, **options):
        read = []
        for name, text in (("a.csv", text_x), ("b.csv", text_y)):
            (tmp_path / name).write_text(text)
            read.append(read_table(tmp_path / name, name=name, **options))
        return read

    return write


def refused(kind, match, code, *arguments, **options):
    with pytest.raises(kind, match=match) as caught:
        match_tables(*arguments, **options)
    assert caught.value.exit_code == (2 if kind is UsageError else 3)
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def kinds(table):
    return [column.kind for column in table.columns]


def test_matched_by_name_in_the_order_of_x(tables):
    x, y, warnings = match_tables(*tables("p,q,r\n1,2,3\n", "r,p,q\n3,1,2\n"))
    assert x.names == y.names == ("p", "q", "r")
    assert [column.values[0] for column in y.columns] == [1, 2, 3]
    assert warnings == ()


def test_columns_in_one_table_only(tables):
    pair = tables("p,q,r\n1,2,3\n", "p,s t\n1,2\n")
    error = refused(
        DataError,
        r"^a\.csv and b\.csv have different columns: only in a\.csv: q, r; only in b\.csv: s t$",
        "data.columns_differ",
        *pair,
    )
    assert "--common" in error.hint
    assert "--exclude 'q,r,s t'" in error.hint
    assert "--columns" in error.hint


def test_three_ways_to_settle_it(tables):
    pair = tables("p,q,r\n1,2,3\n", "p,s,r\n1,2,3\n")
    x, y, warnings = match_tables(*pair, common=True)
    assert x.names == y.names == ("p", "r")
    assert warnings == ("columns in one table only are left out: only in a.csv: q; only in b.csv: s",)
    for options in ({"exclude": "q,s"}, {"columns": "p,r"}, {"columns": ["r", "p"]}):
        x, y, warnings = match_tables(*pair, **options)
        assert (x.names, y.names, warnings) == (("p", "r"), ("p", "r"), ())


def test_common_needs_something_in_common(tables):
    pair = tables("p\n1\n", "q\n1\n")
    for common in (False, True):
        error = refused(
            DataError, r"^a\.csv and b\.csv have no column in common$", "data.columns_differ", *pair, common=common
        )
        assert error.hint == "a.csv has p; b.csv has q"


def test_columns_named_must_be_in_both(tables):
    pair = tables("size,temp_1,temp_2\n1,2,3\n", "size,temp_1,weight\n1,2,3\n")
    unknown = "usage.unknown_column"
    error = refused(UsageError, r"^column 'weight' is not in a\.csv, only in b\.csv$", unknown, *pair, columns="weight")
    assert error.where == {"file": "a.csv", "column": "weight"}
    error = refused(UsageError, r"^column 'temp_2' is not in b\.csv, only in a\.csv$", unknown, *pair, columns="temp_2")
    assert error.hint == "did you mean 'temp_1'?"
    refused(UsageError, r"not in b\.csv, only in a\.csv", unknown, *pair, columns="temp_2", common=True)
    error = refused(UsageError, r"^column 'sise' is in neither a\.csv nor b\.csv$", unknown, *pair, columns="sise")
    assert error.hint == "did you mean 'size'?"
    refused(UsageError, r"column 'zz\*' is in neither", unknown, *pair, columns="zz*")
    refused(UsageError, r"column 'wait' is in neither", unknown, *pair, exclude="wait")
    refused(UsageError, r"column 'tmp' is in neither", unknown, *pair, categorical="tmp")
    refused(UsageError, r"column 'temp_2' is not in b\.csv", unknown, *pair, columns="size:temp_2")


def test_one_file_against_itself_names_it_once(tables):
    x, _ = tables("p\n1\n", "p\n1\n")
    refused(UsageError, r"^column 'q' is not in a\.csv$", "usage.unknown_column", x, x, columns="q")


def test_a_wildcard_that_differs(tables):
    pair = tables("t_1,t_2,u\n1,2,3\n", "t_1,t_3,v\n1,2,3\n")
    refused(DataError, r"only in a\.csv: t_2; only in b\.csv: t_3$", "data.columns_differ", *pair, columns="t_*")
    x, y, warnings = match_tables(*pair, columns="t_*", common=True)
    assert x.names == y.names == ("t_1",)
    assert len(warnings) == 1


def test_nothing_selected(tables):
    pair = tables("p\n1\n", "p\n1\n")
    refused(UsageError, r"no column of a\.csv and b\.csv is selected", "usage.no_columns", *pair, exclude="p")
    refused(UsageError, "is selected", "usage.no_columns", *pair, columns="")


def test_arrays_of_different_width():
    x, y = read_table(np.zeros((3, 2)), name="x"), read_table(np.zeros((3, 5)), name="y")
    refused(DataError, "^x and y have 2 and 5 columns$", "data.columns_differ", x, y)
    assert match_tables(x, y, common=True)[0].names == ("x1", "x2")


def test_types_that_differ(tables):
    pair = tables("age,city,n\n30,a,1\n31,b,2\n", "age,city,n\n30,a,true\nold,b,false\nnew,c,true\nodd,c,true\n")
    error = refused(
        DataError,
        r"^column 'age' is number in a\.csv and text in b\.csv \(b\.csv, line 3: 'old'\); the types of n differ too$",
        "data.types_differ",
        *pair,
    )
    assert "--categorical age,n" in error.hint
    assert "--exclude age,n" in error.hint
    x, y, _ = match_tables(*pair, categorical="age,n")
    assert kinds(x) == kinds(y) == ["text"] * 3
    assert (x["age"].levels, y["age"].levels) == (("30", "31"), ("30", "new", "odd", "old"))


def test_leading_zero_and_dates_differ_from_numbers(tables):
    refused(DataError, r"b\.csv, line 3: '007'", "data.types_differ", *tables("z\n12\n", "z\n12\n007\n008\n"))
    refused(
        DataError,
        r"'d' is date in a\.csv and number in b\.csv$",
        "data.types_differ",
        *tables("d\n2024-01-01\n", "d\n20240101\n"),
    )
    refused(
        DataError,
        r"'d' is date in a\.csv and text in b\.csv \(b\.csv, line 3: 'soon'\)$",
        "data.types_differ",
        *tables("d\n2024-01-01\n", "d\n2024-01-01\nsoon\nlater\n"),
    )


def test_numbers_typed_as_text_are_shown():
    x, y = read_table(pa.table({"a": [1]})), read_table(pa.table({"a": [None, "1", "2"]}), name="y")
    refused(DataError, r"number in x and text in y \(y, row 2: '1'\)", "data.types_differ", x, y)


def test_boolean_and_text_meet_as_text(tables):
    x, y, _ = match_tables(*tables("b\ntrue\nFalse\n", "b\ntrue\nmaybe\n"))
    assert kinds(x) == kinds(y) == ["text"]
    assert (x["b"].levels, y["b"].levels) == (("false", "true"), ("maybe", "true"))


@pytest.mark.parametrize("other", ["1", "true", "abc", "2024-01-01"])
def test_an_empty_column_takes_the_type_of_the_other(tables, other):
    empty, full = tables("c,k\n,1\nNA,1\n", f"c,k\n{other},1\n")
    for first, second in ((empty, full), (full, empty)):
        x, y, _ = match_tables(first, second)
        assert x["c"].kind == y["c"].kind == full["c"].kind
        assert x["c"].values.dtype == y["c"].values.dtype
        assert {x["c"].n_missing, y["c"].n_missing} == {0, 2}


def test_problems_count_only_for_columns_that_take_part(tables):
    stray = "p,q\n" + "1,2\n" * 20 + "abc,2\n"
    pair = tables("p,q\n1,2\n", stray)
    refused(DataError, r"^b\.csv, line 22: column 'p' holds 'abc'", "data.not_a_number", *pair)
    assert match_tables(*pair, exclude="p")[0].names == ("q",)
    x, y, _ = match_tables(*pair, categorical="p")
    assert kinds(x) == kinds(y) == ["text", "number"]
    refused(
        DataError, r"b\.csv, line 3: column 'q' holds 'inf'", "data.infinite_values", *tables("q\n1\n", "q\n1\ninf\n")
    )


def test_categorical_does_not_cure_a_nested_type():
    x = read_table(pa.table({"a": [[1], [2]]}))
    refused(DataError, "column 'a' is of type list", "data.unusable_type", x, x, categorical="a")


def test_numbers_become_the_same_text_whatever_their_type():
    whole, mixed = read_table(np.array([1, 2, 3])), read_table(np.array([1.0, 2.5, np.nan]))
    x, y, _ = match_tables(whole, mixed, categorical="x1")
    assert (x["x1"].levels, y["x1"].levels) == (("1", "2", "3"), ("1", "2.5"))
    assert y["x1"].values.tolist() == [0, 1, -1]


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


def test_categories_of_which_none_is_in_both_tables_are_told(tmp_path):
    for name, values in {"a": ["yes", "no"], "b": ["Yes", "No"], "c": ["yes", "No"]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["flag,n", *(f"{values[k % 2]},{k}" for k in range(20))]))
    a, b, c = (read_table(tmp_path / f"{name}.csv") for name in "abc")
    (warning,) = match_tables(a, b)[2]
    assert warning.startswith("column 'flag' has no value in common: no, yes in ")
    assert match_tables(a, c)[2] == ()
