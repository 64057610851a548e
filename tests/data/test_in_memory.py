"""Arrays, frames, Arrow tables and Parquet types; what is written reads back the same."""

import datetime as dt
import decimal
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import modules_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import kerntest
from kerntest import Table, mmd_test, read_table
from kerntest.data.columns import named_columns
from kerntest.errors import DataError, UsageError


def values_of(table, name):
    return table[name].values  # noqa: PD011  (a column of ours, not of pandas)


def same(left: Table, right: Table) -> None:
    assert left.names == right.names
    for one, other in zip(left.columns, right.columns, strict=True):
        assert (one.kind, one.levels) == (other.kind, other.levels)
        np.testing.assert_array_equal(one.values, other.values)


# Arrays and frames


def test_arrays():
    values = np.arange(6.0).reshape(3, 2)
    table = read_table(values, name="y")
    assert (table.name, table.names, table.format, table.sha256) == ("y", ("x1", "x2"), "array", None)
    np.testing.assert_array_equal(values_of(table, "x2"), [1, 3, 5])
    values_of(table, "x2")[0] = 99
    assert values[0, 1] == 1
    assert read_table(np.arange(3)).names == ("x1",)
    assert values_of(read_table(np.array([True, False])), "x1").tolist() == [1.0, 0.0]
    assert read_table(np.ma.masked_equal([1, 2], 2))["x1"].n_missing == 1
    assert read_table(np.array([1.0, 2.0, 0.5]), categorical="x1")["x1"].levels == ("0.5", "1", "2")


def test_a_table_passes_through():
    table = read_table(np.array([1.0, 2.0]))
    assert read_table(table).columns[0] is table.columns[0]
    renamed = read_table(table, name="y", categorical="x1")
    assert (renamed.name, renamed["x1"].kind, renamed["x1"].levels) == ("y", "text", ("1", "2"))


def test_arrays_need_neither_arrow_nor_pandas():
    program = "import numpy, kerntest; kerntest.mmd_test(*numpy.random.default_rng(0).normal(size=(2, 50, 3)))"
    assert modules_of(program).isdisjoint({"pandas", "pyarrow", "scipy", "matplotlib", "click", "rich"})


@pytest.mark.parametrize(
    ("source", "match", "code"),
    [
        (np.array(["a"]), "x is an array of <U1, not of numbers", "data.not_numeric"),
        (np.array([1j]), "is an array of complex128", "data.not_numeric"),
        (np.array([None]), "is an array of object", "data.not_numeric"),
        (np.zeros((2, 2, 2)), "is an array of 3 dimensions", "data.wrong_shape"),
        (np.array(1.0), "is an array of 0 dimensions", "data.wrong_shape"),
        (np.zeros((0, 2)), "x has no rows", "data.no_rows"),
        (np.zeros((2, 0)), "x has no columns", "data.no_columns"),
        (pd.DataFrame(), "x has no columns", "data.no_columns"),
        (pd.DataFrame({"a": []}), "x has no rows", "data.no_rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "x has more than one column named 'a'", "data.duplicate_columns"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "x has more than one column named '1'", "data.duplicate_columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column named 'a'", "data.duplicate_columns"),
        ({}, "x is a dict, which cannot be read as a table", "usage.unknown_source"),
    ],
    ids=lambda value: value if str(value).startswith(("data.", "usage.")) else "",
)
def test_sources_that_are_refused(refused, source, match, code):
    refused(lambda: read_table(source), match, code)


def test_frames():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "f": [0.5, None],
            "t": ["b", None],
            "b": [True, False],
            "d": pd.to_datetime(["1970-01-02", None]),
            "c": pd.Categorical(["u", "v"], categories=["v", "unused", "u"]),
            7: [1, 2],
        }
    )
    table = read_table(frame)
    assert (table.name, table.format, table.n_rows, " ".join(table.names)) == ("x", "frame", 2, "n f t b d c 7")
    assert " ".join(column.kind for column in table.columns) == "number number text boolean date text number"
    assert [column.n_missing for column in table.columns] == [0, 1, 1, 0, 1, 0, 0]
    assert (values_of(table, "d")[0], table["c"].levels, values_of(table, "c").tolist()) == (1.0, ("u", "v"), [0, 1])
    assert read_table(pd.Series([1, 2], name="s")).names == ("s",)
    frame = pd.DataFrame({"i": pd.array([1, None], dtype="Int64"), "b": pd.array([True, None], dtype="boolean")})
    table = read_table(frame)
    assert [column.n_missing for column in table.columns] == [1, 1]
    same(table, read_table(frame.convert_dtypes(dtype_backend="pyarrow")))


def test_texts_of_typed_tables_are_read_as_in_a_file(tmp_path):
    days = [f"{1 + k:02d}" for k in range(28)]
    frame = pd.DataFrame(
        {
            "iso": [f"2024-01-{day}" for day in days],
            "us": [f"1/{day}/2024" for day in days],
            "named": [f"Jan {day}, 2024" for day in days],
            "either": [f"0{1 + k % 9}/0{1 + k % 8}/2024" for k in range(28)],
            "number": [str(k) for k in range(28)],
            "percent": [f"{day}%" for day in days],
            "city": ["Ulm", "Bonn"] * 14,
            "thousands": [f"{1000 + 79 * k:,}" for k in range(28)],
        }
    )
    frame["time"] = [f"9:{day}" for day in days]
    frame["listed"] = frame["percent"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet")
    read = ["iso", "us", "named", "percent", "time"]
    frame[read].to_csv(tmp_path / "a.csv", index=False)
    for source in (frame, tmp_path / "a.parquet"):
        table = read_table(source, name="x")
        assert [column.kind for column in table.columns] == [
            *["date"] * 3,
            "text",
            "text",
            "number",
            "text",
            "text",
            "number",
            "text",
        ]
        assert table.warnings == (
            "x: dates were read month first in us (1/01/2024 is 2024-01-01)",
            "x: numbers in column 'number' are stored as text, such as 0, and taken for names; stored as numbers they are amounts",
            "x: percents were read as numbers in percent (01% is 1)",
            "x: numbers in column 'thousands' are stored as text, such as 1,000, and taken for names; stored as numbers they are amounts",
            "x: times of day were read as hours in time (9:01 is 9.01667)",
        )
        same(read_table(tmp_path / "a.csv"), table.select(read))
        assert read_table(source, categorical="iso")["iso"].kind == "text"
    # Row group by row group.
    path = tmp_path / "many.parquet"
    pd.concat([frame] * 8).to_parquet(path)
    told = mmd_test(path, path, columns=["time", "us"], method="features")
    assert any("times of day" in warning for warning in told.warnings)
    assert "hamming" not in told.kernel


def test_times_of_day_and_durations_are_hours_and_fractions_are_numbers_as_in_a_csv(tmp_path):
    took = pd.to_timedelta([90.001 * k for k in range(30)], "s")
    frame = pd.DataFrame({"time": [dt.time(9, k, 2 * k) for k in range(30)], "took": took})
    frame["price"], frame["item"] = [f"{k}.5" for k in range(30)], [f"{k}" for k in range(30)]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (frame, tmp_path / "a.parquet"):
        table = read_table(source)
        assert [column.kind for column in table.columns] == ["number"] * 3 + ["text"]
        for column, other in zip(table.columns[:3], read_table(tmp_path / "a.csv").columns, strict=False):
            # The same to the last digit, so that copies of rows are found across formats.
            np.testing.assert_array_equal(column.values, other.values)
        assert [column.written for column in table.columns[:2]] == ["time of day", "duration"]
        assert "numbers stored as text were read as numbers in price (0.5 is 0.5)" in table.warnings[0]


def test_dates_that_no_value_tells_have_the_day_first_as_is_said(tmp_path):
    texts = ["2/2/1970", "1/2/1970", "3/1/1970"]
    lines, csv = tmp_path / "a.jsonl", tmp_path / "a.csv"
    lines.write_text("".join(f'{{"v": "{text}"}}\n' for text in texts))
    csv.write_text("v\n" + "".join(f"{text}\n" for text in texts))
    for source in (csv, lines, pd.DataFrame({"v": texts})):
        for dayfirst, days in ((True, [32, 31, 2]), (False, [32, 1, 59])):
            table = read_table(source, dayfirst=dayfirst)
            assert table["v"].kind == "date"
            assert values_of(table, "v").tolist() == days
            assert ("day first" if dayfirst else "month first") in table.warnings[0]
        assert read_table(source)["v"].kind == "text"
    hint = read_table(csv)["v"].problem.error.hint
    assert hint.startswith("dayfirst=True reads the day first, dayfirst=False the month, or treat")
    # What values tell is not asked.
    told = read_table(pd.DataFrame({"v": ["1/13/1970", "1/2/1970"]}), dayfirst=True)
    assert values_of(told, "v").tolist() == [12, 1]
    with pytest.raises(UsageError, match=r"^dayfirst must be True, False or None, not 'yes'$"):
        read_table(csv, dayfirst="yes")


def test_dates_of_files_in_pieces_have_the_day_first_as_is_said(tmp_path):
    rng, paths = np.random.default_rng(0), [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        days = [f"{day}/{month}/2020" for day, month in rng.integers(1, 13, (300, 2))]
        pd.DataFrame({"d": days, "v": rng.normal(size=300)}).to_csv(path, index=False)
    options = {"dayfirst": False, "kernel": "gaussian(1)", "permutations": 100}
    for method in ("exact", "features"):
        result = mmd_test(*paths, method=method, **options)
        assert result.columns == ("d", "v")
        assert any("month first" in text for text in result.warnings)


class Stream:
    """What hands over Arrow data, as tables of Polars and DuckDB do."""

    def __init__(self, data, name=None):
        self.data, self.name = data, name

    def __arrow_c_stream__(self, requested_schema=None):
        return self.data.__arrow_c_stream__(requested_schema)


def test_whatever_hands_over_arrow_data():
    arrow = pa.table({"n": [1.5, None], "t": ["b", "a"]})
    same(read_table(Stream(arrow)), read_table(arrow))
    assert read_table(Stream(pa.chunked_array([[1, 2], [3]]), "n")).names == ("n",)
    assert read_table(Stream(pa.chunked_array([[1, 2], [3]]))).names == ("x1",)


def test_frames_of_polars(refused):
    polars = pytest.importorskip("polars")
    days = [dt.date(2024, 1, 1 + k % 28) for k in range(60)]
    columns = {"n": np.arange(60.0) % 7, "t": ["a", "b", "c"] * 20, "b": [True, False] * 30, "d": days}
    frame = polars.DataFrame(columns).with_columns(c=polars.col("t").cast(polars.Categorical))
    expected = pd.DataFrame(columns | {"c": pd.Categorical(columns["t"])})
    same(read_table(frame), read_table(expected.assign(d=pd.to_datetime(expected["d"]))))
    assert read_table(frame["n"]).names == ("n",)
    refused(lambda: read_table(frame.lazy()), "x is a LazyFrame", "usage.unknown_source")
    machine = kerntest.SVM().fit(frame.select("n", "b"), frame["t"])
    assert machine.predict(frame.select("n", "b")).tolist() == machine.predict(expected[["n", "b"]]).tolist()


# Arrow and Parquet types


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1, None, 3], pa.int8()), "number", [1, np.nan, 3]),
        (pa.array([1, 2, 200], pa.uint8()), "number", [1, 2, 200]),
        (pa.array([2**53 + 1, None, -1]), "number", [2.0**53, np.nan, -1]),
        (pa.array([2**64 - 1, 0, None], pa.uint64()), "number", [2.0**64, 0, np.nan]),
        (pa.array([0.5, None, -2], pa.float32()), "number", [0.5, np.nan, -2]),
        (pa.array(np.array([0.5, 1, 2], np.float16)), "number", [0.5, 1, 2]),
        (pa.array([0.5, float("nan"), 1]), "number", [0.5, np.nan, 1]),
        (pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2.50")]), "number", [1.25, np.nan, 2.5]),
        (pa.array([None, None, None]), "number", [np.nan] * 3),
        (pa.array([True, None, False]), "boolean", [1, -1, 0]),
        (pa.array(["b", None, "a"]), "text", [1, -1, 0]),
        (pa.array(["b", None, "a"], pa.large_string()), "text", [1, -1, 0]),
        (pa.array(["b", None, "a"], pa.string_view()), "text", [1, -1, 0]),
        (pa.array(["b", None, "a"]).dictionary_encode(), "text", [1, -1, 0]),
        (pa.array([5, None, 30]).dictionary_encode(), "text", [1, -1, 0]),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, 0, 2], pa.int8()), pa.array(["b", None, "a"])),
            "text",
            [-1, 1, 0],
        ),
        (pa.array([dt.date(1970, 1, 3), None, dt.date(1969, 12, 31)]), "date", [2, np.nan, -1]),
        (pa.array([dt.date(1970, 1, 3), None, dt.date(1970, 1, 1)], pa.date64()), "date", [2, np.nan, 0]),
        (pa.array([43200, None, 0], pa.timestamp("s")), "date", [0.5, np.nan, 0]),
        (pa.array([43200 * 10**9, None, 0], pa.timestamp("ns", "UTC")), "date", [0.5, np.nan, 0]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_arrow_types(tmp_path, values, kind, expected, offset):
    # A slice has an offset into its buffers, and chunks may have dictionaries of their own.
    chunks = [values, values] if not offset else [pa.concat_arrays([values[2:], values])[offset:], values]
    arrow = pa.table({"v": pa.chunked_array(chunks)})
    table = read_table(arrow)
    assert table["v"].kind == kind
    np.testing.assert_array_equal(values_of(table, "v"), expected * 2)
    if str(values.type) in {"string_view", "halffloat"} or pa.types.is_dictionary(values.type):
        # Parquet gives these back as another type, or does not take them.
        return
    parquet.write_table(arrow, tmp_path / "v.parquet")
    same(table, read_table(tmp_path / "v.parquet"))


@pytest.mark.parametrize(
    "odd",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"a", b"b"]),
        pa.array([b"a", b"b"]).dictionary_encode(),
        [1, "a"],
        [object(), 1],
    ],
    ids=lambda values: str(getattr(values, "type", "mixed")),
)
def test_types_that_cannot_be_used_fail_when_used(tmp_path, refused, odd):
    source, match = tmp_path / "a.parquet", r"a\.parquet: column 'odd' is of type .*, which is neither number"
    if isinstance(odd, list):
        source, match = (
            pd.DataFrame({"odd": odd, "n": [1, 2]}),
            "x: column 'odd' holds values of mixed or unknown types",
        )
    else:
        parquet.write_table(pa.table({"odd": odd, "n": [1, 2]}), source)
    assert named_columns(read_table(source), exclude="odd").names == ("n",)
    assert "exclude='odd'" in refused(source, match, "data.unusable_type").hint


def test_categorical_of_typed_sources():
    moments = np.array(["2024-01-31T00:00", "2024-01-31T12:30"], dtype="datetime64[us]")
    columns = {"i": [2**60 + 1, 7], "f": [1.0, 0.1], "b": [True, False], "d": moments, "t": ["x", None]}
    table = read_table(pa.table(columns | {"s": pa.array([dt.date(2024, 1, 31)] * 2)}), categorical="*")
    assert [column.kind for column in table.columns] == ["text"] * 6
    assert [column.levels for column in table.columns] == [
        ("1152921504606846977", "7"),
        ("0.1", "1"),
        ("false", "true"),
        ("2024-01-31", "2024-01-31T12:30:00"),
        ("x",),
        ("2024-01-31",),
    ]


# Round trips

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(
    lambda word: ("w" + word).rstrip(" ")
) | st.just('a "b"\n, c')
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DAYS = st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)).map(pd.Timestamp)

WHOLE, CODES = st.integers(-(2**53), 2**53), st.sampled_from(["007", "7"])
ROWS = st.tuples(FLOATS | st.none(), WHOLE, WORDS | st.none(), st.booleans(), DAYS, CODES)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(ROWS, min_size=1, max_size=20),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_csv_parquet_and_frame_read_the_same(rows, delimiter):
    frame = pd.DataFrame(rows, columns=["f", "i", "t", "b", "d", "z"])
    frame["f"] = frame["f"].astype(float)
    frame.loc[0, ["t", "z"]] = ["word", "007"]
    frame.loc[0, "f"] = 1.5
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder) / "a.csv", index=False, sep=delimiter)
        frame.to_parquet(Path(folder) / "a.parquet", index=False)
        from_csv, from_parquet = read_table(Path(folder) / "a.csv"), read_table(Path(folder) / "a.parquet")
    assert from_csv.delimiter == delimiter
    assert [column.kind for column in from_csv.columns] == ["number", "number", "text", "boolean", "date", "text"]
    same(from_csv, from_parquet)
    same(from_csv, read_table(frame))


def test_categories_that_look_like_dates_stay_categories_and_texts_among_dates_are_refused_with_a_way_out():
    days = pd.date_range("2024-01-01", periods=80).strftime("%Y-%m-%d")
    numbers = np.random.default_rng(0).normal(size=80)
    frame = pd.DataFrame({"text": days, "category": pd.Categorical(days), "v": numbers})
    assert [column.kind for column in read_table(frame).columns] == ["date", "text", "number"]
    coded = pa.table({"text": list(days), "category": pa.array(list(days)).dictionary_encode()})
    assert [column.kind for column in read_table(coded).columns] == ["date", "text"]
    dates, odd = (pd.DataFrame({"day": days, "v": numbers}) for _ in range(2))
    odd.loc[7, "day"] = "unknown"
    with pytest.raises(DataError, match=r"row 8: column 'day' holds 'unknown', which is not a date") as caught:
        mmd_test(dates, odd)
    assert caught.value.hint == "None in its place is missing; correct it, or leave the column out with exclude='day'"
    assert mmd_test(dates, odd.replace({"unknown": None}), missing="drop").n_y == 79
    assert mmd_test(dates, odd, exclude="day").columns == ("v",)
