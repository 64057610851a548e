"""Decimal commas and marks between thousands: read where they are clear, and told where they are not."""

import numpy as np
import pytest
from counted import calls_of
from hypothesis import given
from hypothesis import strategies as st

from kerntest import read_table
from kerntest.data.columns import select_columns
from kerntest.errors import DataError, UsageError


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "a.csv").write_text(text)
        return "a.csv"

    return write


def column(values, delimiter=";"):
    return f"v{delimiter}w\n" + "".join(f"{value}{delimiter}z\n" for value in values)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_numbers_with_a_decimal_comma_are_numbers_with_a_warning(csv, delimiter):
    table = read_table(csv(column(["1,5", "-2", "+0,25", "1.234,5", ",5", "3,", " 7,0 ", "NA", "1,5e3"], delimiter)))
    assert table["v"].kind == "number"
    np.testing.assert_array_equal(table["v"].values, [1.5, -2, 0.25, 1234.5, 0.5, 3, 7, np.nan, 1500])
    assert len(table.warnings) == 1
    assert table.warnings[0].startswith("a.csv: numbers with a decimal comma were read as such in v (")


def test_the_warning_names_all_columns_and_an_example(csv):
    table = read_table(csv("a;b;c\n1,5;2,5;x\n3;4,25;y\n"))
    assert table.warnings == ("a.csv: numbers with a decimal comma were read as such in a, b (1,5 is 1.5)",)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1,5", "x", "y"], "text"),
        (["007,5", "1,5"], "text"),
        (["1,2,3", "4,5,6"], "text"),
        (["a,b", "c"], "text"),
        (["1;5"], "text"),
        (["12,34,56", "x"], "text"),
        (["192.168.1.1", "10.0.0.1"], "text"),
        (["1.234.567", "2.345.678"], "text"),
    ],
)
def test_what_is_no_number_stays_text(csv, values, kind):
    table = read_table(csv(column([f'"{value}"' for value in values])))
    assert table["v"].kind == kind
    assert table.warnings == ()


@pytest.mark.parametrize("value", ["1.5", "1,234.5", "1,234,567"])
def test_contradictory_notations_are_refused_when_used(csv, value):
    # Mostly decimal commas, and one value that cannot have one.
    path = csv(column(["1,5", "2,5", value]))
    with pytest.raises(
        DataError, match=r"a\.csv, line \d: column 'v' holds '1,.*', a number written with a comma"
    ) as error:
        select_columns(read_table(path))
    assert "--decimal" in error.value.hint
    assert "--categorical v" in error.value.hint
    assert read_table(path).warnings == ()


def test_a_stray_value_among_decimal_commas_is_named(csv):
    values = [f"{i},5" for i in range(1, 40)]
    values[20] = "abc"
    with pytest.raises(
        DataError, match=r"line 22: column 'v' holds 'abc', which is not a number \(38 of 39 values are\)"
    ):
        select_columns(read_table(csv(column(values))))


def test_thousands_or_thousandths_is_said_and_can_be_settled(csv):
    path = csv(column(["1,234", "2,345", "7"]))
    table = read_table(path)
    np.testing.assert_array_equal(table["v"].values, [1.234, 2.345, 7])
    assert table.warnings == (
        (
            "a.csv: 1,234 in column 'v' was read as 1.234, but could be 1234; "
            "--decimal . reads it so, --exclude v leaves the column out"
        ),
    )
    pointed = read_table(path, decimal=".")
    np.testing.assert_array_equal(pointed["v"].values, [1234, 2345, 7])
    assert pointed.warnings == ()
    settled = read_table(path, decimal=",")
    np.testing.assert_array_equal(settled["v"].values, [1.234, 2.345, 7])
    assert settled.warnings == ()


def test_points_in_a_file_with_decimal_commas(csv):
    text = "v;clear;point;whole\n1,5;1.234;0.123;1\n2,5;12.345;1.234;2\n3,5;7;2.5;3\n"
    table = read_table(csv(text))
    np.testing.assert_array_equal(table["clear"].values, [1234, 12345, 7])
    np.testing.assert_array_equal(table["point"].values, [0.123, 1.234, 2.5])
    assert table["whole"].values.tolist() == [1, 2, 3]
    assert len(table.warnings) == 2
    assert "1.234 in column 'clear' was read as 1234, but could be 1.234" in table.warnings[1]
    assert read_table("a.csv", decimal=".")["clear"].values.tolist() == [1.234, 12.345, 7]
    # Without a decimal comma anywhere, a point is a decimal point.
    assert read_table(csv("v;w\n1.234;a\n2.345;b\n"))["v"].values.tolist() == [1.234, 2.345]
    assert read_table("a.csv", decimal=",")["v"].values.tolist() == [1234, 2345]


def test_groups_of_thousands_in_a_file_with_decimal_commas(csv):
    assert read_table(csv("v;n\n1,5;1.234.567\n2,5;7\n"), decimal=",")["n"].values.tolist() == [1_234_567, 7]


def test_where_the_comma_is_the_delimiter_nothing_is_guessed(csv):
    path = csv('v,w\n"1,5",x\n"2,5",y\n')
    with pytest.raises(DataError, match="a number written with a comma") as caught:
        select_columns(read_table(path))
    assert caught.value.code == "data.not_a_number"
    assert read_table(path, decimal=",")["v"].values.tolist() == [1.5, 2.5]
    assert read_table(csv('v,w\n"1,234.5",x\n"2",y\n'), decimal=".")["v"].values.tolist() == [1234.5, 2]


def test_categorical_columns_keep_their_text(csv):
    table = read_table(csv(column(["1,5", "2,5"])), categorical="v")
    assert table["v"].levels == ("1,5", "2,5")
    assert table.warnings == ()


def test_an_unknown_mark_is_a_usage_error(csv):
    with pytest.raises(UsageError, match=r"decimal must be auto, '\.' or ',', not 'comma'") as caught:
        read_table(csv("a\n1\n"), decimal="comma")
    assert (caught.value.exit_code, caught.value.code) == (2, "usage.choice")


@given(st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=20), st.booleans())
def test_what_is_written_in_that_notation_is_read_back(tmp_path_factory, numbers, grouped):
    swap = str.maketrans({",": ".", ".": ","})
    texts = [(f"{value:,.4f}" if grouped else f"{value:.4f}").translate(swap) for value in numbers]
    path = tmp_path_factory.mktemp("numerals") / "a.csv"
    path.write_text(column(texts))
    read = read_table(path)["v"].values
    np.testing.assert_array_equal(read, [float(f"{value:.4f}") for value in numbers])


def test_the_work_for_many_different_numbers_grows_as_their_number(csv):
    numbers = np.random.default_rng(0).random(4000)
    lines = [f"{value:.6f};1\n".replace(".", ",") for value in numbers.tolist()]
    calls = []
    for n in (2000, 4000):
        path = csv("v;w\n" + "".join(lines[:n]))
        np.testing.assert_allclose(read_table(path)["v"].values, numbers[:n], rtol=0, atol=1e-6)
        calls.append(calls_of(read_table, path))
    assert calls[1] < 2.2 * calls[0]
