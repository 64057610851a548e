"""CSV: delimiter, header, types decided on whole columns, forms of numbers and dates, and errors that name the line."""

import numpy as np
import pytest
from command_line import modules_of
from counted import calls_of
from hypothesis import given
from hypothesis import strategies as st

import kerntest
from kerntest import read_table
from kerntest.data.columns import check_usable, match_tables
from kerntest.data.gaps import apply_missing

NUMBERS = "".join(f"{i}\n" for i in range(1, 10))
OTHERS = "NA,N/A,NaN,nan,null,NULL,n/a,#N/A"


def rows(values, delimiter=";"):
    return f"v{delimiter}k\n" + "".join(f"{value}{delimiter}z\n" for value in values)


def kinds(table):
    return [column.kind for column in table.columns]


# Types


KINDS = {
    "number": ["0 0.5 -0.5 0e1", "+7 -1.5e-3 .5 5.", "1 NA 2.5", "NA n/a", "10:00:00 11:30:00"],
    "text": [
        *(
            "001 002",
            "12 +007",
            "00.5 1.5",
            "-01 1",
            "0x10 1",
            "true 1",
            "true yes",
            "1 a",
            "2024-01-31 soon",
            "1,5 x y",
        ),
        *("007,5 1,5", "1,2,3 4,5,6", "12,34,56 x", "192.168.1.1 10.0.0.1", "1.234.567 2.345.678", "13-Mar-70 x"),
    ],
    "boolean": ["true False TRUE tRuE NA"],
    "date": [
        *("2024-01-31 2024-01-31T10:00:00", "2024-01-31T10:00:00 2024-01-31T10:00:00.25"),
        "2024-01-31T10:00:00Z 2024-02-01T00:00:00.5Z",
    ],
}


FIXED_WIDTH = (
    "a.csv was read as one column, 'id   of year  x': it looks like columns of fixed width, which are not read; write it "
    "as CSV first, such as by pandas.read_fwf('a.csv').to_csv"
)


@pytest.mark.parametrize(("kind", "values"), [(kind, values) for kind, cases in KINDS.items() for values in cases])
def test_kind_of_a_column(csv, kind, values):
    for blank in ("", " ") if kind in {"text", "date"} else ("",):
        table = read_table(csv(rows(f"{blank}{value}" for value in values.split())))
        assert (table["v"].kind, table.n_rows) == (kind, len(values.split()))


def test_values_of_each_kind(csv):
    table = read_table(csv("n,b,t,d\n1.5,true,x,1970-01-02\nNA,,NA,\n-2,FALSE,w,1970-01-01T12:00:00\n"))
    np.testing.assert_array_equal(table["n"].values, [1.5, np.nan, -2])
    assert (table["b"].values.tolist(), table["b"].levels) == ([1, -1, 0], ("false", "true"))
    assert (table["t"].values.tolist(), table["t"].levels) == ([1, -1, 0], ("w", "x"))
    np.testing.assert_array_equal(table["d"].values, [1, np.nan, 0.5])
    assert [column.n_missing for column in table.columns] == [1, 1, 1, 1]
    assert all(column.values.dtype == (np.int64 if column.is_category else np.float64) for column in table.columns)


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [("1", "1.5", "number"), ("1", "001", "text"), ("", "5", "number"), ("true", "x", "text")],
)
def test_the_type_is_decided_on_the_whole_column(csv, first, last, kind):
    # More than one block of the parser, so that the last rows stand in another than the first.
    table = read_table(csv("c,d\n" + f"{first},1\n" * 300_000 + f"{last},2\n" * 300_000))
    column = table["c"]
    assert (column.kind, table.n_rows) == (kind, 600_000)
    assert (column.values[-1] == float(last)) if kind == "number" else (column.levels[column.values[-1]] == last)


def test_numbers_are_read_exactly(csv):
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-300, 300, 0.6)[:1000]
    table = read_table(csv("v\n" + "\n".join(map(repr, values.tolist()))))
    np.testing.assert_array_equal(table["v"].values, values)


def test_categorical_keeps_the_text_as_typed(csv, refused):
    path = csv("grade,size_1,size_2\n1.0,01,5\n2,1,abc\nNA,1,5\n")
    table = read_table(path, categorical="grade,size_*")
    assert kinds(table) == ["text"] * 3
    assert (table["grade"].levels, table["grade"].n_missing, table["size_1"].levels) == (("1.0", "2"), 1, ("01", "1"))
    error = refused(path, r"column 'grad' is not in .*a\.csv", "usage.unknown_column", categorical=["grad"])
    assert error.hint == "did you mean 'grade'?"
    table = read_table(csv(rows(["1,5", "2,5"])), categorical="v")
    assert (table["v"].levels, table.warnings) == (("1,5", "2,5"), ())
    assert read_table(csv("v,w\n,1\n,2\n"), categorical="v")["v"].n_missing == 2


# Other forms


@pytest.mark.parametrize(
    ("values", "read", "told"),
    [
        (["21.2%", "5 %", "-3%"], [21.2, 5, -3], "percents were read as numbers in v (-3% is -3)"),
        (["21,5 %", "5%"], [21.5, 5], "percents were read as numbers in v (21,5 % is 21.5)"),
        (["12:30", "0:15", "23:59:24"], [12.5, 0.25, 23.99], "times of day were read as hours in v (0:15 is 0.25)"),
        (["1h 30m", "45m", "2 h"], [1.5, 0.75, 2], "durations were read as hours in v (1h 30m is 1.5)"),
        (
            ["0 days 00:45:00", "-1 days +12:00:00", "2 days"],
            [0.75, -12, 48],
            "durations were read as hours in v (-1 days +12:00:00 is -12)",
        ),
        (["1:30 PM", "12:00 am"], [13.5, 0], "times of day were read as hours in v (12:00 am is 0)"),
        (["1/13/1970", "1/2/1970"], [12, 1], "dates were read month first in v (1/13/1970 is 1970-01-13)"),
        (["13/1/1970", "1/2/1970"], [12, 31], "dates were read day first in v (1/2/1970 is 1970-02-01)"),
        (["01.05.1970", "02.05.1970"], [120, 121], "dates were read day first in v (01.05.1970 is 1970-05-01)"),
        (["2 Jan 1970", "3 March 1970"], [1, 61], None),
        (["Jan 2, 1970", "March 3 1970"], [1, 61], None),
        (["2 Jan 1970", "Mar 3, 1970"], [1, 61], None),
        (["sep. 1 1970 6:00"], [243.25], None),
        (["1970 Q1", "1970 q3"], [0, 181], "quarters were read as their first days in v (1970 Q1 is 1970-01-01)"),
        (["1970 W02", "1970-w53"], [4, 361], "weeks were read as their Mondays in v (1970 W02 is 1970-01-05)"),
        (["1970 Jan", "1970-Mar."], [0, 59], "months were read as their first days in v (1970 Jan is 1970-01-01)"),
        (["1970/01/03"], [2], None),
        (
            ["1/13/70 18:00", "1/14/70 6:00"],
            [12.75, 13.25],
            "dates were read month first in v (1/13/70 18:00 is 1970-01-13T18:00:00)",
        ),
        (["1/13/69", "1/13/70"], [-353, 12], "dates were read month first in v (1/13/69 is 1969-01-13)"),
        (["2/2/1970", "2/2/1970"], [32, 32], "dates were read day first in v (2/2/1970 is 1970-02-02)"),
        (
            ["1,5", "-2", "+0,25", "1.234,5", ",5", "3,", " 7,0 ", "NA", "1,5e3"],
            [1.5, -2, 0.25, 1234.5, 0.5, 3, 7, np.nan, 1500],
            "numbers with a decimal comma were read as such in v (+0,25 is 0.25)",
        ),
        (
            ["1,234", "2,345", "7"],
            [1.234, 2.345, 7],
            (
                "1,234 in column 'v' was read as 1.234, but could be 1234; decimal='.' reads it so, "
                "exclude='v' leaves the column out"
            ),
        ),
    ],
)
def test_other_forms_are_read_and_told(csv, values, read, told):
    for delimiter in ";\t|":
        table = check_usable(read_table(csv(rows(values, delimiter))))
        dated = told is None or any(word in told for word in ("dates", "first days", "Mondays"))
        assert table["v"].kind == ("date" if dated else "number")
        np.testing.assert_allclose(table["v"].values, read, rtol=1e-15)
        assert table.warnings == (() if told is None else (f"a.csv: {told}",))
        assert read_table("a.csv", categorical="v")["v"].kind == "text"


def test_the_decimal_mark_can_be_said(csv, streamed):
    path = csv(rows(["1,234", "2,345", "7"]))
    for decimal, values in ((".", [1234, 2345, 7]), (",", [1.234, 2.345, 7])):
        table = read_table(path, decimal=decimal)
        assert (table["v"].values.tolist(), table.warnings) == (values, ())
        assert streamed(path, "vk", decimal=decimal)["v"] == values
    assert read_table(csv('v,w\n"1,5",x\n"2,5",y\n'), decimal=",")["v"].values.tolist() == [1.5, 2.5]
    assert read_table(csv('v,w\n"1,234.5",x\n"2",y\n'), decimal=".")["v"].values.tolist() == [1234.5, 2]
    assert read_table(csv("v;n\n1,5;1.234.567\n2,5;7\n"), decimal=",")["n"].values.tolist() == [1_234_567, 7]


def test_points_in_a_file_with_decimal_commas(csv):
    table = read_table(csv("v;clear;point;whole\n1,5;1.234;0.123;1\n2,5;12.345;1.234;2\n3,5;7;2.5;3\n"))
    found = [table[name].values.tolist() for name in ("clear", "point", "whole")]
    assert found == [[1234, 12345, 7], [0.123, 1.234, 2.5], [1, 2, 3]]
    assert len(table.warnings) == 2
    assert "1.234 in column 'clear' was read as 1234, but could be 1.234" in table.warnings[1]
    assert read_table("a.csv", decimal=".")["clear"].values.tolist() == [1.234, 12.345, 7]
    # Without a decimal comma anywhere, a point is a decimal point.
    assert read_table(csv("v;w\n1.234;a\n2.345;b\n"))["v"].values.tolist() == [1.234, 2.345]
    assert read_table("a.csv", decimal=",")["v"].values.tolist() == [1234, 2345]
    table = read_table(csv("a;b;c\n1,5;2,5;x\n3;4,25;y\n"))
    assert table.warnings == ("a.csv: numbers with a decimal comma were read as such in a, b (1,5 is 1.5)",)


@given(st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=20), st.booleans())
def test_what_is_written_with_a_decimal_comma_is_read_back(tmp_path_factory, numbers, grouped):
    swap = str.maketrans({",": ".", ".": ","})
    path = tmp_path_factory.mktemp("numerals") / "a.csv"
    path.write_text(rows([(f"{value:,.4f}" if grouped else f"{value:.4f}").translate(swap) for value in numbers]))
    np.testing.assert_array_equal(read_table(path)["v"].values, [float(f"{value:.4f}") for value in numbers])


def test_both_files_together_decide_what_a_column_is(csv, refused):
    numbers = read_table(csv(rows(range(100))))
    marked = read_table(csv(rows(["?"] * 60 + ["7"] * 40), "b.csv"))
    assert marked["v"].problem is None
    for pair in ((numbers, marked), (marked, numbers)):
        refused(
            lambda pair=pair: match_tables(*pair),
            r"^b\.csv, line 2: column 'v' holds '\?', which is not a number \(140 of 200 values of both tables are\)$",
            "data.not_a_number",
        )
    csv(rows(["?"] * 100), "b.csv")
    refused(
        lambda: match_tables(numbers, read_table("b.csv")), "number in a.csv and text in b.csv", "data.types_differ"
    )
    # A column that is mostly numbers in a small file is text where the large one says so.
    words = read_table(csv(rows(["none"] * 900 + ["7"] * 100), "c.csv"))
    few = read_table(csv(rows(["1", "2", "none"]), "d.csv"))
    assert [table["v"].kind for table in match_tables(words, few)[:2]] == ["text", "text"]
    # A second file tells how dates are written.
    x = read_table(csv(rows(["1/2/2025", "3/4/2025"])))
    y = read_table(csv(rows(["1/13/2025", "1/2/2025"]), "b.csv"))
    for first, second in ((x, y), (y, x)):
        assert [table["v"].kind for table in match_tables(first, second)[:2]] == ["date", "date"]
    assert match_tables(x, y)[0]["v"].values[0] == match_tables(x, y)[1]["v"].values[1]
    x, y = read_table(csv(rows(["21%", "5%"]))), read_table(csv(rows(["0.21", "0.05"]), "b.csv"))
    assert match_tables(x, y)[2] == (
        "column 'v' is written as percent in a.csv and as plain number in b.csv: check that the units agree",
    )
    assert match_tables(x, read_table(csv(rows(["21,5%", "5%"]), "b.csv")))[2] == ()


# Missing values


def test_words_for_missing_values(csv, refused):
    for word in ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A"):
        table = read_table(csv(f"n,t\n1,x\n{word},{word}\n"))
        assert (table["n"].n_missing, table["t"].n_missing) == (1, 1)
    values, code = ["1", "2", "?", "-", "4", "5", ""], "data.not_a_number"
    # An empty field is missing, too: other words may be.
    hint = refused(csv(rows(values)), "holds '", code).hint
    assert hint.startswith("na='NA,N/A,NaN,nan,null,NULL,None,n/a,#N/A,-,?' reads them as missing; ")
    for na in ("?,-", ["?", "-"]):
        assert read_table("a.csv", na=na)["v"].n_missing == 3
    # The list takes the place of the usual one, and only the empty field is always missing.
    assert read_table(csv(rows(["NA", "None", "", "x"])), na="")["v"].levels == ("NA", "None", "x")
    hint = refused(csv(rows([*values, "NA"])), "holds 'NA'", code, na="?,-").hint
    assert hint.startswith("na='?,-,NA' reads it as missing; ")


@pytest.mark.parametrize(("form", "kind"), [("a", "text"), ("1", "number"), ("2025-01-01", "date"), ("5%", "number")])
def test_a_quoted_word_is_text_in_text_alone(csv, streamed, form, kind):
    table = read_table(csv(rows([f'"{form}"', f'"{form}"', f'"{form}"', '"NA"', "NA", '""', ""])))
    assert (table["v"].kind, table["v"].n_missing) == (kind, 3 if kind == "text" else 4)
    assert kind != "text" or table["v"].levels == ("NA", "a")
    assert streamed("a.csv", "vk", "text")["v"].count(-1) == 3


@pytest.mark.parametrize(
    ("odd", "others", "told"),
    [
        (["-999"] * 3, np.linspace(0, 30, 40), "-999 in 3 of 43 rows"),
        (["99999"] * 2, np.linspace(1800, 2100, 40), "99999 in 2 of 42 rows"),
        (["-99"] * 2 + [""], np.linspace(0, 30, 40), "-99 in 2 of 43 rows"),
        # Once it may be anything, beside such a spread it is a value, and few rows say nothing.
        (["-999"], np.linspace(0, 30, 40), None),
        (["-999"] * 3, np.linspace(0, 1200, 40), None),
        (["-999"] * 3, np.linspace(0, 30, 16), None),
        (["-998"] * 3, np.linspace(0, 30, 40), None),
        (["-999"] * 41, np.linspace(0, 30, 40), None),
    ],
)
def test_a_number_that_seems_to_stand_for_a_missing_value_is_told(csv, odd, others, told):
    path = csv(rows([*odd, *others]))
    table = read_table(path)
    expected = (
        ()
        if told is None
        else (f"a.csv: column 'v' holds {told}, far from its other values: if it stands for a missing one, ",)
    )
    assert tuple(text.partition("na=")[0] for text in table.warnings) == expected
    if told is not None:
        na = table.warnings[0].partition("na='")[2].partition("'")[0]
        again = read_table(path, na=na)
        assert (again["v"].n_missing, again.warnings) == (len(odd), ())


def test_a_word_that_empties_a_text_column_is_told(csv, refused):
    table = read_table(csv(rows(["None"] * 6 + ["child"] * 94)))
    told = "'None' in column 'v' is taken as missing, in 6 of 100 rows; if it is a value"
    assert table.warnings == (f"a.csv: {told}, na='{OTHERS}' takes it as such",)
    for values in (
        ["None"] * 5 + ["child"] * 95,
        [""] * 50 + ["child"] * 50,
        ["NA"] * 50 + ["1"] * 50,
        # What it nearly always is.
        ["NA"] * 50 + ["child"] * 50,
    ):
        assert read_table(csv(rows(values))).warnings == ()
    csv("v,k\n" + "".join(f"{'None' if k % 3 else 'one'},{k % 7}\n" for k in range(60)))
    columns = {"x_columns": "v", "y_columns": "k"}
    told = refused(lambda: kerntest.hsic_test("a.csv", **columns), "40 missing values: v 40", "data.missing_values")
    assert told.hint.endswith(f"; if 'None' is a value, na='{OTHERS}' takes it as such")
    assert kerntest.hsic_test("a.csv", **columns, na=OTHERS, permutations=50).n == 60


# What is refused


STRAY, COMMA = "which is not a number", "a number written with a comma"
REFUSED = {
    "data.not_a_number": [
        (f"c\n{NUMBERS}x\n", rf"line 11: column 'c' holds 'x', {STRAY} \(9 of 10 values are\)$"),
        (f"c\n{NUMBERS}" + "x\n" * 8, rf"line 11: column 'c' holds 'x', {STRAY} \(9 of 17 values are\)$"),
        ('c,t\n1,"two\nlines"\n\n2,x\r\n\r\n' + "3,y\n" * 20 + 'abc,"z"\n', "line 27: column 'c' holds 'abc'"),
        *(
            (f"c\n{NUMBERS}{value}\n", f"line 11: column 'c' holds '{value}', {STRAY}")
            for value in ("007", "0x10", "-01")
        ),
        ("p\n" + "5\n" * 20 + '"1,000"\n', f"line 22: column 'p' holds '1,000', {STRAY}"),
        *((f"v;w\n1,5;\n2,5;\n{value};\n", f"holds '1.*', {COMMA}") for value in ("1.5", "1,234.5", "1,234,567")),
        ('v,w\n"1,5",x\n"2,5",y\n', f"line 2: column 'v' holds '1,5', {COMMA}"),
        ("v;w\n" + "1,5;z\n" * 20 + "abc;z\n", rf"line 22: column 'v' holds 'abc', {STRAY} \(20 of 21"),
        ("v\n5%\n6%\n7\n", r"line 4: column 'v' holds '7', which is not a percentage \(2 of 3 values are\)$"),
        (
            "v\n" + NUMBERS.replace("\n", " kg\n") * 3 + "".join(f"{k} g\n" for k in range(12)),
            r"which is not a number with kg \(27 of",
        ),
        # A quote within a field opens nothing.
        ('c,t\n1,5" pipe\n\n' + "2,x\n" * 20 + "abc,y\n", "line 24: column 'c' holds 'abc'"),
    ],
    "data.not_a_date": [("v\n2025-01-01\n2025-01-02\n?\n", r"line 4: column 'v' holds '\?', which is not a date")],
    "data.ambiguous_dates": [
        (
            "v\n2/2/2025\n1/2/2025\n",
            "line 3: .* '1/2/2025', which is 2025-02-01 as .* day first and 2025-01-02 as .* month",
        )
    ],
    "data.infinite_values": [
        *(
            (f"a,b\n1,1\n2,{value}\n", f"line 3: column 'b' holds '{value}'.* not a finite")
            for value in ("inf", "-Infinity")
        ),
        ("a,b\n1,1\n2,1e400\n", "line 3: column 'b' holds '1e400', which is beyond 1.8e308, the largest"),
    ],
    "data.ragged_rows": [
        ('a,b\n1,"x\ny"\n\n2,z\n3\n4,5,6\n', r"line 6: expected 2 fields, found 1$"),
        ("a,b\n1,2\n4,5,6\n", r"line 3: expected 2 fields, found 3$"),
        ("a\n" + "x" * 200_000 + "\n1,2\n", r"line 3: expected 1 field, found 2$"),
        ("a,b\n1,2,\n3,4,\n", "line 2: expected 2 fields, found 3"),
        ('"a","b"\n' + '"r",1,2\n' * 101 + '"t",1\n', "line 103: expected 3 fields, found 2"),
    ],
    "data.open_quote": [
        ('a,b\n1,x\n2,"y\n' + "3,z\n" * rows, "line 3: a quote is opened and never closed") for rows in (2, 50_000)
    ],
    "data.no_rows": [(text, "has a header but no rows") for text in ("a,b\n", "a,b", "a,b\n\n\n", "a,b\r\n  \n")],
    "data.duplicate_columns": [
        ("a,b, a,c,b\n1,2,3,4,5\n", "more than one column named 'a', 'b'"),
        ("unnamed_2,\n1,2\n", "more than one column named 'unnamed_2'"),
    ],
    "data.malformed_csv": [
        ('"a' + "x" * 200_000 + '\n"\n1\n', "line 1: the header cannot be read"),
        ("a,b\rc,d\n1,2\n", "a carriage return stands in it"),
    ],
    "data.empty_file": [
        (text, "is empty") for text in (b"", b"\n", b"  \r\n\t\n", b"\xef\xbb\xbf", b" " * 5000, b'""\n')
    ],
    "data.not_text": [(b"\x7fELF\0\0\0", "holds binary data")],
    "data.not_utf8": [
        ("city\nParis\nZürich\n".encode("latin-1"), r"a\.csv, line 3: byte 0xfc is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16, not UTF-8"),
    ],
}


@pytest.mark.parametrize(
    ("code", "place"), [(code, place) for code, cases in REFUSED.items() for place in range(len(cases))]
)
def test_what_cannot_be_used_names_the_line(csv, refused, code, place):
    text, match = REFUSED[code][place]
    error = refused(csv(text), match, code)
    line = error.message.partition(", line ")[2].partition(":")[0]
    assert error.where["file"] == "a.csv"
    assert not line or error.where["line"] == int(line)
    if "column" in error.where and code != "data.duplicate_columns":
        column, value = error.where["column"], error.where["value"]
        assert f"column {column!r} holds {value!r}" in error.message
        assert f"exclude='{column}'" in error.hint or "decimal=" in error.hint
        assert read_table("a.csv", categorical=column)[column].kind == "text"


def test_hints_say_what_to_do(csv, refused):
    assert "delimiter was taken to be ','" in refused(csv("a,b\n1\n"), "line 2", "data.ragged_rows").hint
    latin = refused(csv("a\nZürich\n".encode("latin-1")), "line 2", "data.not_utf8")
    assert latin.hint == "if it is Latin-1, encoding='latin-1' reads it"
    assert "Windows-1252" in refused(csv("a\n5 €\n".encode("windows-1252")), "line 2", "data.not_utf8").hint
    assert refused(csv("a\n1\n".encode("utf-16")), "UTF-16", "data.not_utf8").hint == "encoding='utf-16' reads it"
    hint = refused(csv(f"c\n{NUMBERS}x\n"), "holds 'x'", "data.not_a_number").hint
    assert hint.startswith("na='x' reads it as missing; correct it")
    zero = refused(csv(f"c\n{NUMBERS * 3}007\n"), "holds '007'", "data.not_a_number")
    assert zero.message.endswith(" values are): it has a leading zero")
    assert zero.hint == "treat the column as text with categorical='c', or leave it out with exclude='c'"


def test_few_numbers_raise_no_doubt(csv):
    assert kinds(read_table(csv(f"c\n{NUMBERS}" + "x\n" * 9))) == ["text"]
    assert kinds(read_table(csv("zip\n" + "12345\n" * 50 + "01234\n" * 50 + "N1 4AB\n"))) == ["text"]
    half = read_table(csv(rows(["1,5", "2,5", "x", "y"])))["v"]
    assert (half.kind, half.problem) == ("text", None)
    # A quote inside a field opens nothing.
    assert read_table(csv('a,b\n1,5" pipe\n2,x\n'))["b"].levels == ('5" pipe', "x")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delimiter": "ab"}, "delimiter must be one character"),
        ({"delimiter": "1"}, "delimiter must be one character"),
        ({"encoding": "utf8000"}, "no encoding is called 'utf8000'"),
        ({"encoding": "rot13"}, "no encoding is called 'rot13'"),
        ({"comment": '"', "encoding": "rot13"}, "comment must be a few characters"),
        ({"delimiter": "ab", "comment": '"'}, "delimiter must be one character"),
        ({"decimal": "comma"}, r"decimal must be auto, '\.' or ',', not 'comma'"),
    ],
)
def test_options_without_a_meaning_are_refused(csv, refused, options, match):
    csv("a\n1\n")
    refused("a.csv", match, "usage.choice", **options)
    refused(lambda: kerntest.mmd_test("a.csv", "b.csv", **options), match, "usage.choice")


# Header, options and lines


@pytest.mark.parametrize(
    ("text", "names", "warning"),
    [
        (
            "b,a,\n0,1,2\n1,1,2\n",
            ("b", "a", "unnamed_3"),
            "column 3 has no name and is called 'unnamed_3'; if it numbers the rows, leave it out with exclude='unnamed_3'",
        ),
        *(
            (text, ("index", "t"), "the first column of a.csv has no name and is left out; with a name it is used")
            for text in (
                ",index,t\n0,1,x\n1,2,y\n",
                '"","index","t"\n"a",1,"x"\n"b",2,"y"\n',
                '"index","t"\n"1",1,"x"\n"2",2,"y"\n',
                '"index";"t"\n"1";1;"x"\n"2";2;"y"\n',
            )
        ),
        (
            "1.5,2\n1,2\n3,4\n",
            ("1.5", "2"),
            "the first line of a.csv was taken as the header, but all its names are numbers; header=False reads it as a row",
        ),
        (
            "a b c\n1 2 3\n2 3 4\n",
            ("a b c",),
            "a.csv was read as one column, 'a b c'; delimiter='space' reads its words as 3 columns",
        ),
        (
            "a b c\n1 1 2 3\n2 2 3 4\n",
            ("a b c",),
            "a.csv was read as one column, 'a b c'; delimiter='space' reads its words as 3 columns",
        ),
        ("full name\nJane van Doe\nJohn van Doe\n", ("full name",), None),
        (
            "id   of year  x\n 1   1-2 years  3\n 2  < 1 year     4\n",
            ("id   of year  x",),
            FIXED_WIDTH,
        ),
        ("a,2\n1,2\n", ("a", "2"), None),
        ("full name\nJane Doe\nMadonna\n", ("full name",), None),
        ("größe,城市\n1,東京\n2,Zürich\n", ("größe", "城市"), None),
        ("{a},b\n1,2\n", ("{a}", "b"), None),
    ],
)
def test_names_and_what_is_told_of_them(csv, text, names, warning):
    table = read_table(csv(text))
    assert table.names == names
    assert [told.removeprefix("a.csv: ") for told in table.warnings] == ([warning] if warning else [])
    assert table.lines.tolist() == list(range(2, 2 + table.n_rows))
    if "index" in names:
        assert table["index"].values.tolist() == [1, 2]


def test_numbers_between_blanks_are_told_without_a_header_too(csv):
    (told,) = read_table(csv("1 2 3\n2 3 4\n"), header=False).warnings
    assert told == "a.csv was read as one column, 'x1'; delimiter='space' reads its words as 3 columns"
    # Texts without a name may have as many words each.
    assert not read_table(csv("Jane Doe\nJohn Doe\n"), header=False).warnings


def test_columns_that_are_aligned_by_spaces(csv):
    """Several spaces are one delimiter, and none at the ends of a line; what stands between quotes stays."""
    text = '  size   name  n\n  1.5  "a  b"  10 \r\n\n -2    c        7\n  3   "say ""x  y"""  8\n 4  5" 6'
    for table in (read_table(csv(text), delimiter="space"), read_table(csv(text.replace(" ", " " * 3)), delimiter=" ")):
        assert table.names == ("size", "name", "n")
        assert [table[name].values.tolist() for name in ("size", "n")] == [[1.5, -2, 3, 4], [10, 7, 8, 6]]
        assert table.lines.tolist() == [2, 4, 5, 6]
    levels = read_table(csv(text), delimiter="space")["name"].levels
    assert levels == ('5"', "a  b", "c", 'say "x  y"')
    wide = "\n".join(f"{row:>9}{row % 7:>5}" for row in range(5000))
    table = read_table(csv(wide), delimiter="space", header=False)
    assert (table.names, table.n_rows, table["x2"].values[-1]) == (("x1", "x2"), 5000, 4999 % 7)
    # Read in blocks they are the same.
    found = kerntest.mmd_test(
        csv(wide), csv(wide), delimiter="space", header=False, method="features", features="nystroem:5", permutations=20
    )
    assert (found.n_x, found.columns) == (5000, ("x1", "x2"))
    with pytest.raises(kerntest.errors.DataError, match=r"line 3: expected 2 fields, found 3"):
        read_table(csv("a  b\n1  2\n 1 2  3\n"), delimiter="space")


def test_byte_order_mark_quotes_and_line_ends(csv):
    table = read_table(csv(b'\xef\xbb\xbf"size, cm",t\r\n1,"a ""b"""\r\n2,"c\r\nd"\r\n'))
    assert table.names == ("size, cm", "t")
    assert (table["t"].levels, table.lines.tolist()) == (('a "b"', "c\r\nd"), [2, 3])
    assert read_table(csv(b"a,b\r1,2\r3,4\r"))["b"].values.tolist() == [2.0, 4.0]
    table = read_table(csv('\n\n"si\nze",b\n1,2\n\n3,4'))
    assert (table.names, table.lines.tolist()) == (("si\nze", "b"), [5, 7])
    table = read_table(csv('a,t\n1,"' + "line\n" * 600_000 + '"\n2,x\n'))
    assert (table.n_rows, len(table["t"].levels[0])) == (2, 3_000_000)


def test_names_of_columns_cannot_break_a_message(csv, refused):
    table = read_table(csv('"p\nq",r\n,1\n2,1\n'))
    refused(lambda: apply_missing(table, "error"), r"1 missing value: 'p\\nq' 1 ", "data.missing_values")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        *((f'"a"{mark}"b"\n"1"{mark}"x, y; z"\n"3"{mark}"p|q\tr"\n', mark) for mark in ",;\t|"),
        ("name\nalpha\nbeta\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("a;b, c\n1;2\n3;4\n", ";"),
        ("a,b;c\n1,2\n3,4\n", ","),
        # The sample is cut.
        ("a;b\n1;" + "x" * 70_000 + "\n", ";"),
    ],
)
def test_most_rows_tell_the_delimiter(csv, text, delimiter):
    assert read_table(csv(text)).delimiter == delimiter


ROWS = "".join(f"{i}~{i * i}\n" for i in range(40))


@pytest.mark.parametrize(
    ("content", "options", "lines"),
    [
        (f"a~b\n{ROWS}".encode(), {"delimiter": "~"}, range(2, 42)),
        (f"a~b\n{ROWS}".replace("~", " ").encode(), {"delimiter": "space"}, range(2, 42)),
        (f"a~b\n{ROWS}".replace("~", "\t").encode("utf-16"), {"encoding": "utf-16"}, range(2, 42)),
        (
            f"# größe\na~b\n{ROWS}# the end\n".encode("latin-1"),
            {"encoding": "latin-1", "comment": "#", "delimiter": "~"},
            range(3, 43),
        ),
        (f"//x,y\na~b\n{ROWS}".replace("~", ",").encode(), {"comment": "//"}, range(3, 43)),
        (ROWS.replace("~", ",").encode(), {"header": False}, range(1, 41)),
    ],
)
def test_what_text_alone_does_not_tell_can_be_said(csv, streamed, content, options, lines):
    table = read_table(csv(content), **options)
    names = table.names
    assert names == (("a", "b") if options.get("header", True) else ("x1", "x2"))
    assert (table[names[1]].values.tolist(), table.lines.tolist()) == ([i * i for i in range(40)], list(lines))
    assert table.warnings == ()
    assert streamed("a.csv", names, **options) == {name: table[name].values.tolist() for name in names}


def test_comments_are_none_between_quotes(csv, refused):
    table = read_table(csv('# it\'s 5" long\na,t\n1,"x\n#y"\n# a\n2,z\n'), comment="#")
    assert (table.lines.tolist(), table["t"].levels) == ([3, 6], ("x\n#y", "z"))
    for options in ({"comment": "#"}, {"encoding": "ascii"}):
        refused(csv("a\n1\nü\n".encode("latin-1")), "is not .* text, in line", "data.not_in_encoding", **options)


def test_quotes_within_fields_open_nothing(csv, streamed):
    table = read_table(csv("n,t\n" + '1,5" pipe\n2,"two\nlines"\n3,12"\n' * 20))
    assert table.lines.tolist() == [line + 4 * k for k in range(20) for line in (2, 3, 5)]
    assert streamed("a.csv", ("n", "t"))["n"] == table["n"].values.tolist() == [1, 2, 3] * 20


def test_blanks_before_quotes_are_no_part_of_a_file_that_has_them_everywhere(csv, streamed):
    """Also where delimiters and lines stand between the quotes, after the header, in the first field, and in blocks."""
    name = csv('n, "the t",  u\n' + '1, "JAM, x",   "two\nlines"\n 2,  "a ""b"", ""c""", "z"\n' * 20, "a.csv")
    table = read_table(name)
    assert table.names == ("n", "the t", "u")
    assert (table["the t"].levels, table["u"].levels) == (("JAM, x", 'a "b", "c"'), ("two\nlines", "z"))
    assert table.lines.tolist() == [line + 3 * k for k in range(20) for line in (2, 4)]
    assert streamed(name, table.names)["n"] == table["n"].values.tolist() == [1, 2] * 20
    same = read_table(csv('n,"the t",u\n' + '1,"JAM, x","two\nlines"\n2,"a ""b"", ""c""",z\n' * 20, "b.csv"))
    for column, other in zip(table.columns, same.columns, strict=True):
        assert (column.kind, column.levels, column.values.tolist()) == (other.kind, other.levels, other.values.tolist())


@pytest.mark.parametrize(
    ("row", "level"),
    [
        ('1,"x, ""y"""', 'x, "y"'),
        ('1, "approx" 5', '"approx" 5'),
        ('1,5" pipe', '5" pipe'),
        ('1,"say, ""no"" "', 'say, "no"'),
    ],
)
def test_quotes_after_blanks_stay_where_they_are_no_way_to_quote(csv, row, level):
    assert read_table(csv("n,t\n" + f"{row}\n2,z\n" * 20))["t"].levels == tuple(sorted({level, "z"}))


CELLS = st.lists(st.tuples(st.sampled_from(["x", "a b", "p\nq", 'a "b"', "\n\n,"]), st.integers(0, 2)), max_size=6)


@given(st.lists(CELLS, min_size=1, max_size=4).filter(any), st.booleans())
def test_places_of_rows_agree_with_counting(tmp_path_factory, files, ends_with_newline):
    folder, expected = tmp_path_factory.mktemp("places"), []
    for index, cells in enumerate(files):
        text = '"h\ne",i\n'
        for value, n_blank in cells:
            expected.append((index, text.count("\n") + 1))
            quoted = value.replace('"', '""')
            text += f'"{quoted}",1\n' + "\n" * n_blank
        (folder / f"f{index}").write_text(text if ends_with_newline else text.rstrip("\n"))
    table = read_table(folder / "f*")
    file_of = [0] * table.n_rows if len(files) == 1 else table.file_of.tolist()
    assert list(zip(file_of, table.lines.tolist(), strict=True)) == expected


# Speed


def test_a_small_test_imports_only_what_it_needs(csv):
    for name in ("a.csv", "b.csv"):
        csv("a,t,b,d\n" + "1,x,true,2024-01-01\n2.5,NA,,2024-01-02T10:00:00\n7,y,false,2024-01-05\n" * 9, name)
    loaded = modules_of("import kerntest; kerntest.mmd_test('a.csv', 'b.csv', missing='drop', permutations=20)")
    assert loaded.isdisjoint({"numpy.ma", "pandas", "scipy", "pyarrow.compute", "pyarrow.parquet"})


def test_the_work_grows_with_different_values_and_not_with_rows(csv):
    line = ",".join(map(repr, np.random.default_rng(0).standard_normal(5).tolist()))
    numbers = [f"{value:.6f};1\n".replace(".", ",") for value in np.random.default_rng(0).random(4000).tolist()]
    for texts, most in (
        (["a,b,c,d,e\n" + f"{line}\n" * n for n in (200, 20_000)], 1.5),
        (["v;w\n" + "".join(numbers[:n]) for n in (2000, 4000)], 2.2),
    ):
        paths = [csv(text, f"{k}.csv") for k, text in enumerate(texts)]
        read_table(paths[0])
        few, many = (calls_of(read_table, path) for path in paths)
        assert many < most * few


ORANGE = "sepal\tkind\tsize\tnote\nc\tsmall large\td\tstring\n\tclass\t\tmeta\n"


def test_lines_of_types_and_roles_below_the_names_are_no_rows(csv):
    rows = "".join(f"{row % 9}\t{'large' if row % 2 else 'small'}\t{row % 3}\tn{row}\n" for row in range(400))
    table = read_table(csv(ORANGE + rows))
    assert (table.n_rows, table.lines[0], table.lines[-1]) == (400, 4, 403)
    assert [column.kind for column in table.columns] == ["number", "text", "number", "text"]
    assert table.warnings == ("lines 2 and 3 of a.csv, which give types and roles of columns, are left out",)
    found = kerntest.mmd_test(csv(ORANGE + rows), by="kind", exclude="note", method="features", permutations=20)
    assert (found.n_x, found.n_y) == (200, 200)
    # Without such a third line the second one is a row, and so it is after another delimiter.
    for text in ("a\tb\nc\td\n1\t2\n", ORANGE.replace("\t", ","), "a\tb\nx\ty\n\tclass\n"):
        assert read_table(csv(text)).n_rows == 2


def test_a_first_row_that_may_belong_to_the_header_is_told(csv):
    with pytest.raises(kerntest.errors.DataError, match="line 2: column 'a' holds 'cm'") as caught:
        check_usable(read_table(csv("a,b\ncm,kg\n" + "1,2\n3,4\n" * 9)))
    assert caught.value.hint.startswith(
        "if that line belongs to the header, as one of units does, take it out; correct it"
    )
    with pytest.raises(kerntest.errors.DataError) as caught:
        check_usable(read_table(csv("a,b\n1,2\ncm,kg\n" + "1,2\n3,4\n" * 9)))
    assert "header" not in caught.value.hint


def test_a_question_mark_among_categories_may_stand_for_a_missing_value(csv):
    text = "a,b\n" + "1,?\n2,x\n" * 3 + "3,y\n"
    (told,) = read_table(csv(text)).warnings
    assert told.removeprefix("a.csv: ") == (
        "column 'b' holds ? in 3 of 7 rows, a category like the others: if it stands for a missing one, na='?' reads it so"
    )
    assert not read_table(csv(text), na="?").warnings
