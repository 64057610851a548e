"""What the values of a CSV column are meant to be: missing, percents, dates, times; decided over both files, and told."""

import numpy as np
import pytest

import kerntest
from kerntest import read_table
from kerntest.data.columns import match_tables, select_columns
from kerntest.errors import DataError


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(values, name="a.csv"):
        (tmp_path / name).write_text("v;k\n" + "".join(f"{value};1\n" for value in values), encoding="utf-8")
        return name

    return write


def refused(act, code):
    with pytest.raises(DataError) as caught:
        act()
    assert (caught.value.exit_code, caught.value.code) == (3, code)
    assert "--categorical v" in caught.value.hint
    return caught.value


OTHERS = "NA,N/A,NaN,nan,null,NULL,n/a,#N/A"

# Forms


@pytest.mark.parametrize(
    ("values", "read", "kind", "told"),
    [
        (["21.2%", "5 %", "-3%"], [21.2, 5, -3], "number", "percents were read as numbers in v (-3% is -3)"),
        (["21,5 %", "5%"], [21.5, 5], "number", "percents were read as numbers in v (21,5 % is 21.5)"),
        (
            ["12:30", "0:15", "23:59:24"],
            [12.5, 0.25, 23.99],
            "number",
            "times of day were read as hours in v (0:15 is 0.25)",
        ),
        (["1:30 PM", "12:00 am"], [13.5, 0], "number", "times of day were read as hours in v (12:00 am is 0)"),
        (
            ["1/13/1970", "1/2/1970"],
            [12, 1],
            "date",
            "dates were read month first in v (1/13/1970 is 1970-01-13)",
        ),
        (["13/1/1970", "1/2/1970"], [12, 31], "date", "dates were read day first in v (1/2/1970 is 1970-02-01)"),
        (["01.05.1970", "02.05.1970"], [120, 121], "date", "dates were read day first in v (01.05.1970 is 1970-05-01)"),
        (["2 Jan 1970", "13-Mar-70"], None, "text", None),
        (["2 Jan 1970", "3 March 1970"], [1, 61], "date", "dates were read day first in v (2 Jan 1970 is 1970-01-02)"),
        (["1970/01/03"], [2], "date", "dates were read year first in v (1970/01/03 is 1970-01-03)"),
        (
            ["1/13/70 18:00", "1/14/70 6:00"],
            [12.75, 13.25],
            "date",
            "dates were read month first in v (1/13/70 18:00 is 1970-01-13T18:00:00.000000)",
        ),
        (["2/2/1970", "2/2/1970"], [32, 32], "date", "dates were read day first in v (2/2/1970 is 1970-02-02)"),
    ],
)
def test_other_forms_are_read_and_told(csv, values, read, kind, told):
    table = select_columns(read_table(csv(values)))
    assert table["v"].kind == kind
    if read is not None:
        np.testing.assert_allclose(table["v"].values, read)
        assert table.warnings == (f"a.csv: {told}",)
    assert select_columns(read_table(csv(values), categorical="v"))["v"].kind == "text"


def test_ambiguous_dates_are_refused_with_both_readings(csv):
    error = refused(lambda: select_columns(read_table(csv(["2/2/2025", "1/2/2025"]))), "data.ambiguous_dates")
    assert error.message == (
        "a.csv, line 3: column 'v' holds '1/2/2025', which is 2025-02-01 as a date with the day first and 2025-01-02 as a "
        "date with the month first, and no value tells which"
    )


def test_a_second_file_tells_how_dates_are_written(csv):
    x, y = read_table(csv(["1/2/2025", "3/4/2025"])), read_table(csv(["1/13/2025", "1/2/2025"], "b.csv"))
    for first, second in ((x, y), (y, x)):
        for table in match_tables(first, second)[:2]:
            assert table["v"].kind == "date"
    assert match_tables(x, y)[0]["v"].values[0] == match_tables(x, y)[1]["v"].values[1]


def test_a_stray_value_in_another_form_is_refused(csv):
    error = refused(lambda: select_columns(read_table(csv(["5%", "6%", "7"]))), "data.not_a_number")
    assert error.message == "a.csv, line 4: column 'v' holds '7', which is not a percentage (2 of 3 values are)"
    error = refused(lambda: select_columns(read_table(csv(["2025-01-01", "2025-01-02", "?"]))), "data.not_a_date")
    assert error.hint.startswith("--na '?' reads it as missing; ")


# Missing values


def test_words_for_missing_values_can_be_set(csv):
    values = ["1", "2", "?", "-", "4", "5", ""]
    error = refused(lambda: select_columns(read_table(csv(values))), "data.not_a_number")
    # An empty field is missing, too: other words may be.
    assert error.hint.startswith("--na 'NA,N/A,NaN,nan,null,NULL,None,n/a,#N/A,-,?' reads them as missing; ")
    for na in ("?,-", ["?", "-"]):
        assert read_table("a.csv", na=na)["v"].n_missing == 3
    # The list takes the place of the usual one, and only the empty field is always missing.
    assert read_table(csv(["NA", "None", "", "x"]), na="")["v"].levels == ("NA", "None", "x")
    error = refused(lambda: select_columns(read_table(csv([*values, "NA"]), na="?,-")), "data.not_a_number")
    assert error.hint.startswith("--na '?,-,NA' reads it as missing; ")


@pytest.mark.parametrize(("form", "kind"), [("a", "text"), ("1", "number"), ("2025-01-01", "date"), ("5%", "number")])
def test_a_quoted_word_is_text_in_text_alone(csv, form, kind):
    table = read_table(csv([f'"{form}"', f'"{form}"', f'"{form}"', '"NA"', "NA", '""', ""]))
    assert (table["v"].kind, table["v"].n_missing) == (kind, 3 if kind == "text" else 4)
    if kind == "text":
        assert table["v"].levels == ("NA", "a")


def test_a_word_that_empties_a_text_column_is_told(csv):
    table = read_table(csv(["None"] * 6 + ["child"] * 94))
    assert table.warnings == (
        (
            "a.csv: 'None' in column 'v' is taken as missing, in 6 of 100 rows; if it is a value, "
            "--na 'NA,N/A,NaN,nan,null,NULL,n/a,#N/A' takes it as such"
        ),
    )
    assert read_table(csv(["None"] * 5 + ["child"] * 95)).warnings == ()
    assert read_table(csv([""] * 50 + ["child"] * 50)).warnings == ()
    assert read_table(csv(["NA"] * 50 + ["1"] * 50)).warnings == ()


# Both files together


def test_both_files_together_decide_what_a_column_is(csv):
    numbers = read_table(csv([str(i) for i in range(100)]))
    marked = read_table(csv(["?"] * 60 + ["7"] * 40, "b.csv"))
    assert marked["v"].problem is None
    for pair in ((numbers, marked), (marked, numbers)):
        error = refused(lambda pair=pair: match_tables(*pair), "data.not_a_number")
        assert error.message == (
            "b.csv, line 2: column 'v' holds '?', which is not a number (140 of 200 values of both tables are)"
        )
    # A column that is mostly numbers in a small file is text where the large one says so.
    words = read_table(csv(["none"] * 900 + ["7"] * 100, "c.csv"))
    few = read_table(csv(["1", "2", "none"], "d.csv"))
    for table in match_tables(words, few)[:2]:
        assert table["v"].kind == "text"


# Models


def test_a_model_reads_new_rows_by_its_rule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def rows(n, day):
        share, hour = rng.integers(0, 100, n), rng.integers(0, 24, n)
        lines = [f"{s}%,{day(k)},{h}:30,{s + h}" for k, (s, h) in enumerate(zip(share, hour, strict=True))]
        return "share,day,at,y\n" + "\n".join(lines) + "\n"

    (tmp_path / "train.csv").write_text(rows(60, lambda k: f"{1 + k % 12}/{1 + k % 28}/2024") + "?,1/1/2024,1:00,5\n")
    # By themselves these dates would be ambiguous.
    (tmp_path / "new.csv").write_text(rows(12, lambda k: f"{1 + k % 12}/{1 + k % 5}/2024") + "?,1/1/2024,1:00,5\n")
    trained = kerntest.train_ridge("train.csv", target="y", output="m.kt", na="?", missing="drop")
    assert any("percents were read as numbers in share" in text for text in trained.warnings)
    forms = {column.name: column.written for column in kerntest.inspect_model("m.kt").columns}
    assert forms == {"share": "percent", "day": "date, month first", "at": "time of day"}
    kerntest.predict_file("m.kt", "new.csv", output="out.csv", missing="drop")
    found = read_table("out.csv")["y"].values
    assert len(found) == 12
    new = read_table("new.csv", na="?", categorical="day")
    assert np.corrcoef(found, new["y"].values[:12])[0, 1] > 0.9
    with pytest.raises(DataError, match=r"line 14: column 'share' holds '\?', which is not a percentage \(12 of 13"):
        kerntest.predict_file("m.kt", "new.csv", output="other.csv", missing="drop", na="none")


def test_test_rows_are_read_by_the_rule_of_the_training_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{1 + k % 12}/{1 + k % 28}/2024,{k % 12 + (k % 28) / 28}" for k in range(84)]
    (tmp_path / "train.csv").write_text("day,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "test.csv").write_text("day,y\n" + "\n".join(row for k, row in enumerate(rows) if k % 28 < 12) + "\n")
    refused_alone = read_table("test.csv")["day"].problem
    assert refused_alone is not None
    result = kerntest.train_ridge("train.csv", target="y", test="test.csv")
    assert result.test.r2 > 0.9


def test_the_way_out_of_a_word_that_is_a_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{'None' if k % 3 else 'one'},{k % 7}" for k in range(60)]
    (tmp_path / "a.csv").write_text("children,k\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"a\.csv has 40 missing values: children 40") as caught:
        kerntest.hsic_test("a.csv", x_columns="children", y_columns="k")
    assert caught.value.hint.endswith(f"; if 'None' is a value, --na '{OTHERS}' takes it as such")
    found = kerntest.hsic_test("a.csv", x_columns="children", y_columns="k", na=OTHERS, permutations=50)
    assert found.n == 60


def test_percents_in_one_file_alone_are_told(csv):
    x, y = read_table(csv(["21%", "5%"])), read_table(csv(["0.21", "0.05"], "b.csv"))
    assert match_tables(x, y)[2] == (
        "column 'v' is written as percent in a.csv and as plain number in b.csv: check that the units agree",
    )
    assert match_tables(x, read_table(csv(["21,5%", "5%"], "b.csv")))[2] == ()
