"""CSV: delimiter, header, types decided on whole columns, and errors that name the line."""

import subprocess
import sys

import numpy as np
import pytest
from counted import calls_of

from kerntest import read_table
from kerntest.data.columns import select_columns
from kerntest.data.formats.dialect import sniff_delimiter
from kerntest.data.rows import apply_missing
from kerntest.errors import DataError, UsageError


@pytest.fixture
def csv(tmp_path):
    def write(text, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def refused(path, match, code, **options):
    with pytest.raises(DataError, match=match) as caught:
        select_columns(read_table(path, **options))
    assert caught.value.exit_code == 3
    assert caught.value.code == code
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def kinds(table):
    return [column.kind for column in table.columns]


# Types


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2"], "number"),
        (["0", "1"], "number"),
        (["0", "0.5", "-0.5", "0e1"], "number"),
        (["+7", "-1.5e-3", ".5", "5."], "number"),
        ([" 1", "2 "], "number"),
        (["1", "NA", "2.5"], "number"),
        (["001", "002"], "text"),
        (["12", "+007"], "text"),
        (["00.5", "1.5"], "text"),
        (["-01", "1"], "text"),
        ([" 01", "1"], "text"),
        (["0x10", "1"], "text"),
        (["true", "False", "TRUE", "tRuE"], "boolean"),
        (["true", "NA"], "boolean"),
        (["true", "1"], "text"),
        (["true", "yes"], "text"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["2024-01-31T10:00:00", "2024-01-31 10:00:00.25"], "date"),
        (["2024-01-31T10:00:00Z", "2024-02-01T00:00:00.5Z"], "date"),
        (["2024-01-31", "2024-01-31 10:00:00"], "date"),
        (["2024-01-31", "soon"], "text"),
        (["10:00:00", "11:30:00"], "number"),
        (["a", "b"], "text"),
        (["1", "a"], "text"),
        (["NA", "n/a"], "number"),
    ],
)
def test_kind_of_a_column(csv, values, kind):
    table = select_columns(read_table(csv("c,other\n" + "".join(f"{value},1\n" for value in values))))
    assert table["c"].kind == kind
    assert table.n_rows == len(values)


def test_values_of_each_kind(csv):
    table = read_table(csv("n,b,t,d\n1.5,true,x,1970-01-02\nNA,,NA,\n-2,FALSE,w,1970-01-01T12:00:00\n"))
    np.testing.assert_array_equal(table["n"].values, [1.5, np.nan, -2])
    assert (table["b"].values.tolist(), table["b"].levels) == ([1, -1, 0], ("false", "true"))
    assert (table["t"].values.tolist(), table["t"].levels) == ([1, -1, 0], ("w", "x"))
    np.testing.assert_array_equal(table["d"].values, [1, np.nan, 0.5])
    assert [column.n_missing for column in table.columns] == [1, 1, 1, 1]
    assert [column.is_category for column in table.columns] == [False, True, True, False]
    assert all(column.values.dtype == (np.int64 if column.is_category else np.float64) for column in table.columns)


@pytest.mark.parametrize("spelling", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A"])
def test_spellings_of_missing(csv, spelling):
    table = read_table(csv(f"n,t\n1,x\n{spelling},{spelling}\n"))
    assert (table["n"].n_missing, table["t"].n_missing) == (1, 1)


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [
        ("1", "1.5", "number"),
        ("1", "001", "text"),
        ("", "5", "number"),
        ("true", "x", "text"),
        ("2024-01-01", "x", "text"),
    ],
)
def test_the_type_is_decided_on_the_whole_column(csv, first, last, kind):
    # More than one block of the parser, so that the last rows stand in another than the first.
    n_first = 300_000
    table = read_table(csv("c,d\n" + f"{first},1\n" * n_first + f"{last},2\n" * n_first))
    assert table["c"].kind == kind
    assert table.n_rows == 2 * n_first
    column = table["c"]
    if kind == "number":
        assert column.values[-1] == float(last)
    else:
        assert column.levels[column.values[-1]] == last
        assert column.levels[column.values[0]] == first


def test_numbers_are_read_exactly(csv):
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-300, 300, 0.6)[:1000]
    table = read_table(csv("v\n" + "\n".join(map(repr, values.tolist()))))
    np.testing.assert_array_equal(table["v"].values, values)


def test_categorical_keeps_the_text_as_typed(csv):
    table = read_table(csv("grade,size_1,size_2\n1.0,01,5\n2,1,abc\nNA,1,5\n"), categorical="grade,size_*")
    assert kinds(table) == ["text"] * 3
    assert table["grade"].levels == ("1.0", "2")
    assert table["grade"].n_missing == 1
    assert table["size_1"].levels == ("01", "1")


def test_categorical_names_an_unknown_column(csv):
    with pytest.raises(UsageError, match=r"column 'grad' is not in .*a\.csv") as caught:
        read_table(csv("grade\n1\n"), categorical=["grad"])
    assert (caught.value.exit_code, caught.value.code) == (2, "usage.unknown_column")
    assert caught.value.hint == "did you mean 'grade'?"


# Numbers with something else among them


def test_stray_value_is_an_error_when_used(csv):
    rows = [f"{i},{i % 3}\n" for i in range(1000)]
    for row in (35, 400, 500):
        rows[row] = "abc,1\n" if row == 35 else "?,1\n"
    path = csv("price,size\n" + "".join(rows))
    error = refused(
        path,
        r"a\.csv, line 37: column 'price' holds 'abc', which is not a number \(997 of 1,000 values are\)$",
        "data.not_a_number",
    )
    assert "--categorical price" in error.hint
    assert "--exclude price" in error.hint
    assert error.where == {"file": path, "line": 37, "column": "price", "value": "abc"}
    assert select_columns(read_table(path), exclude="price").names == ("size",)
    assert read_table(path, categorical="price")["price"].kind == "text"


@pytest.mark.parametrize("others", [1, 2, 4, 8])
def test_more_than_half_are_a_mistake_and_fewer_are_text(csv, others):
    numbers = "".join(f"{i}\n" for i in range(1, 10))
    error = refused(
        csv("c\n" + numbers + "x\n" * others),
        rf"line 11: column 'c' holds 'x', which is not a number \(9 of {9 + others} values are\)$",
        "data.not_a_number",
    )
    assert error.hint.startswith("--na x reads it as missing; ")
    assert kinds(read_table(csv("c\n" + numbers + "x\n" * 9))) == ["text"]


def test_stray_line_after_quoted_newlines_and_blank_lines(csv):
    head = 'c,t\n1,"two\nlines"\n\n2,x\r\n\r\n'
    text = head + "".join(f"{i},y\n" for i in range(20)) + 'abc,"z"\n'
    refused(csv(text), r"line 27: column 'c' holds 'abc'", "data.not_a_number")
    assert text.split("\n")[26].startswith("abc")


@pytest.mark.parametrize("value", ["007", "0x10", "-01"])
def test_one_leading_zero_makes_no_code_of_a_column_of_numbers(csv, value):
    error = refused(
        csv("age,k\n" + "".join(f"{i},1\n" for i in range(20, 60)) + f"{value},1\n"),
        rf"line 42: column 'age' holds '{value}', which is not a number \(40 of 41 values are\)$",
        "data.not_a_number",
    )
    assert "--na" not in error.hint
    assert "--categorical age" in error.hint


def test_leading_zeros_in_most_values_raise_no_doubt(csv):
    assert kinds(read_table(csv("zip\n" + "12345\n" * 50 + "01234\n" * 50 + "N1 4AB\n"))) == ["text"]


def test_one_number_with_a_comma_among_many(csv):
    refused(
        csv("p\n" + "5\n" * 20 + '"1,000"\n'),
        r"line 22: column 'p' holds '1,000', which is not a number",
        "data.not_a_number",
    )


@pytest.mark.parametrize("value", ["inf", "-inf", "Infinity", "1e400"])
def test_infinity_is_an_error_when_used(csv, value):
    path = csv(f"a,b\n1,1\n2,{value}\n3,3\n")
    said = "beyond 1.8e308, the largest number" if value == "1e400" else "not a finite number"
    error = refused(path, rf"a\.csv, line 3: column 'b' holds '{value}', which is {said}", "data.infinite_values")
    assert "--exclude b" in error.hint
    assert select_columns(read_table(path), exclude="b").names == ("a",)


# Shape


def test_ragged_rows_name_the_true_line(csv):
    path = csv('a,b\n1,"x\ny"\n\n2,z\n3\n4,5,6\n')
    error = refused(path, r"a\.csv, line 6: expected 2 fields, found 1$", "data.ragged_rows")
    assert error.where == {"file": path, "line": 6}
    assert "delimiter" in error.hint
    refused(csv("a,b\n1,2\n4,5,6\n"), r"line 3: expected 2 fields, found 3$", "data.ragged_rows")


def test_open_quote(csv):
    refused(csv('a,b\n1,x\n2,"y\n3,z\n4,w\n'), r"line 3: a quote is opened and never closed", "data.open_quote")
    # A quote inside a field opens nothing.
    assert read_table(csv('a,b\n1,5" pipe\n2,x\n'))["b"].levels == ('5" pipe', "x")


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n\n", "a,b\r\n  \n"])
def test_header_only(csv, text):
    refused(csv(text), r"a\.csv has a header but no rows", "data.no_rows")


def test_duplicate_names(csv):
    refused(csv("a,b, a,c,b\n1,2,3,4,5\n"), r"more than one column named 'a', 'b'", "data.duplicate_columns")


def test_unnamed_columns_get_a_name_and_a_warning(csv):
    table = read_table(csv("b,a,\n0,1,2\n1,1,2\n"))
    assert table.names == ("b", "a", "unnamed_3")
    assert "column 3 has no name" in table.warnings[0]
    assert "--exclude unnamed_3" in table.warnings[0]
    refused(csv("unnamed_2,\n1,2\n"), "more than one column named 'unnamed_2'", "data.duplicate_columns")


@pytest.mark.parametrize(
    "text",
    [
        ",index,t\n0,1,x\n1,2,y\n",
        '"","index","t"\n"a",1,"x"\n"b",2,"y"\n',
        '"index","t"\n"1",1,"x"\n"2",2,"y"\n',
        '"index";"t"\n"1";1;"x"\n"2";2;"y"\n',
    ],
)
def test_an_index_without_a_name_is_left_out_and_told(csv, text):
    path = csv(text)
    table = select_columns(read_table(path))
    assert table.names == ("index", "t")
    assert table["index"].values.tolist() == [1, 2]
    assert table.lines.tolist() == [2, 3]
    assert table.warnings == (f"the first column of {path} has no name: it is taken for row names and left out",)


def test_a_delimiter_at_the_end_of_each_row_makes_no_row_names(csv):
    refused(csv("a,b\n1,2,\n3,4,\n"), "line 2: expected 2 fields, found 3", "data.ragged_rows")


def test_numbers_for_names_raise_a_warning(csv):
    table = read_table(csv("1.5,2\n1,2\n3,4\n"))
    assert len(table.warnings) == 1
    assert table.warnings[0].endswith(
        "a.csv was taken as the header, but all its names are numbers; --no-header reads it as a row"
    )
    assert read_table(csv("a,2\n1,2\n")).warnings == ()


def test_byte_order_mark_quotes_and_line_ends(csv):
    table = read_table(csv(b'\xef\xbb\xbf"size, cm",t\r\n1,"a ""b"""\r\n2,"c\r\nd"\r\n'))
    assert table.names == ("size, cm", "t")
    assert table["t"].levels == ('a "b"', "c\r\nd")
    assert table.lines.tolist() == [2, 3]
    assert read_table(csv(b"a,b\r1,2\r3,4\r"))["b"].values.tolist() == [2.0, 4.0]


def test_header_with_a_newline_and_blank_lines_before(csv):
    table = read_table(csv('\n\n"si\nze",b\n1,2\n\n3,4'))
    assert table.names == ("si\nze", "b")
    assert table.lines.tolist() == [5, 7]


def test_header_that_never_ends(csv):
    path = csv('"a' + "x" * 200_000 + '\n"\n1\n')
    refused(path, r"the header of .*a\.csv cannot be read", "data.malformed_csv")
    refused(csv("a,b\rc,d\n1,2\n"), "a carriage return stands in it", "data.malformed_csv")


def test_names_of_columns_cannot_break_a_message(csv):
    table = read_table(csv('"p\nq",r\n,1\n2,1\n'))
    with pytest.raises(DataError, match=r"1 missing value: 'p\\nq' 1 ") as caught:
        apply_missing(table, "error")
    assert "\n" not in caught.value.message + caught.value.hint


def test_only_errors_of_ours_escape(csv):
    pieces = [
        b'"',
        b",",
        b";",
        b"\n",
        b"\r\n",
        b"\r",
        b"a",
        b"1",
        b"0",
        b".",
        b" ",
        b"\t",
        b"NA",
        b"true",
        b"inf",
        b"2024-01-01",
        b"|",
    ]
    rng = np.random.default_rng(0)
    refusals = []
    for _ in range(500):
        path = csv(b"".join(pieces[i] for i in rng.integers(len(pieces), size=rng.integers(1, 30))))
        try:
            table = read_table(path)
        except DataError as error:
            refusals.append(error)
        else:
            assert all(len(column.values) == table.n_rows for column in table.columns)
            assert table.lines is None or len(table.lines) == table.n_rows
    assert 0 < len(refusals) < 500
    assert all(error.hint and "\n" not in error.message for error in refusals)


def test_a_row_longer_than_a_block_of_the_parser(csv):
    table = read_table(csv('a,t\n1,"' + "line\n" * 600_000 + '"\n2,x\n'))
    assert table.n_rows == 2
    assert len(table["t"].levels[0]) == 3_000_000


def test_unicode(csv):
    table = read_table(csv("größe,城市\n1,東京\n2,Zürich\n"))
    assert table.names == ("größe", "城市")
    assert table["城市"].levels == ("Zürich", "東京")


# Delimiter and lines


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_each_delimiter_is_found(csv, delimiter):
    rows = [["a", "b", "c"], ["1", "x, y; z", "2"], ["3", "p|q\tr", "4"]]
    text = "\n".join(delimiter.join(f'"{field}"' for field in row) for row in rows)
    table = read_table(csv(text))
    assert table.delimiter == delimiter
    assert table["b"].levels == ("p|q\tr", "x, y; z")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        (b"a\n1\n2\n", ","),
        (b"name\nalpha\nbeta\n", ","),
        (b"a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        (b"a;b, c\n1;2\n3;4\n", ";"),
        (b"a|b\n1|2\n", "|"),
        (b"a;b", ";"),
        (b"a,b;c\n1,2\n3,4\n", ","),
        (b"a,b\n1,2\n3\n4,5\n", ","),
    ],
)
def test_sniffing(text, delimiter):
    assert sniff_delimiter(text) == delimiter


def test_sniffing_looks_at_a_cut_sample():
    assert sniff_delimiter(b"a;b\n" + b"1;" + b"x" * 70_000 + b"\n") == ";"


def test_without_known_lines_messages_count_rows(csv):
    # The quote within a field spoils the counting of quotes; Arrow reads the file all the same.
    text = 'c,t\n1,5" pipe\n\n' + "2,x\n" * 20 + "abc,y\n"
    refused(csv(text), r"a\.csv, row 22: column 'c' holds 'abc'", "data.not_a_number")


def test_rows_that_python_cannot_read_are_refused_all_the_same(csv):
    refused(csv("a\n" + "x" * 200_000 + "\n1,2\n"), "a.csv is malformed CSV: ", "data.malformed_csv")


# Speed


def test_small_csv_imports_neither_pandas_nor_the_compute_module(csv):
    path = csv("a,t,b,d,e\n1,x,true,2024-01-01,\n2.5,NA,,2024-01-02T10:00:00,\n")
    program = (
        "import sys; from kerntest.data.rows import apply_missing; from kerntest.data.read import read_table; from kerntest.data.columns import select_columns\n"
        f"select_columns(read_table({path!r}))\n"
        "print(sorted({'pandas', 'scipy', 'pyarrow.compute', 'pyarrow.parquet'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_reading_takes_no_more_calls_for_many_rows_than_for_few(csv):
    row = ",".join(map(repr, np.random.default_rng(0).standard_normal(5).tolist()))
    paths = [csv("a,b,c,d,e\n" + f"{row}\n" * n, f"{n}.csv") for n in (200, 20_000)]
    read_table(paths[0])
    few, many = (calls_of(read_table, path) for path in paths)
    assert many < 1.5 * few
