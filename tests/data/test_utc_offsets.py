"""Times with a UTC offset are those of UTC, wherever they stand."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kerntest import mmd_test, read_table
from kerntest.data.read import open_blocks
from kerntest.errors import DataError, UsageError

TIMES = [f"2024-03-{day:02}T{hour:02}:00:00+02:00" for day in range(1, 11) for hour in (0, 6, 12, 18)]
WITHOUT = [time.removesuffix("+02:00") for time in TIMES]
DAYS = [19783 - 2 / 24 + k / 4 for k in range(40)]


def lines(times, form="csv"):
    """Return times as text of CSV or of JSON lines."""
    if form == "csv":
        return "t,v\n" + "".join(f"{time},{k % 7}\n" for k, time in enumerate(times))
    return "".join(json.dumps({"t": time, "v": k % 7}) + "\n" for k, time in enumerate(times))


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "frame", "text", "arrow"])
@pytest.mark.parametrize(
    "change", [str, lambda time: time.replace("T", " ").replace("+02:00", " +0200"), lambda time: time[:16] + time[19:]]
)
def test_times_are_moved_to_utc(csv, form, change):
    """Whoever reads them: Arrow, pandas or the forms of text."""
    times = list(map(change, TIMES))
    frame = pd.DataFrame({"t": times, "v": range(40)})
    typed = frame.assign(t=pd.to_datetime(frame["t"]))
    if form in {"csv", "json"}:
        source = csv(lines(times, form))
    elif form == "parquet":
        typed.to_parquet(source := "x.parquet")
    else:
        source = {"frame": typed, "text": frame, "arrow": pa.table(typed)}[form]
    table = read_table(source)
    assert (table["t"].kind, table["t"].written) == ("date", "date, with UTC offset")
    np.testing.assert_allclose(table["t"].values, DAYS, rtol=1e-15)
    for text, rows in (
        ("t == '2024-03-01T00:00:00+02:00'", 1),
        ("t == '2024-02-29T23:00:00+02'", 0),
        ("t == '2024-02-29T17:00:00-0500'", 1),
        ("t == '2024-02-29T22:00Z'", 1),
        ("t == '2024-02-29 22:00'", 1),
        ("t < '2024-03-01T00:00:01+02:00'", 1),
        ("t < '2024-03-01'", 1),
        ("t < '2024-03'", 1),
    ):
        if rows:
            assert read_table(source, where=text).n_rows == rows
        else:
            with pytest.raises(DataError, match="has no row"):
                read_table(source, where=text)


def test_a_condition_has_no_offset_where_the_column_has_none(csv):
    csv(lines(WITHOUT))
    with pytest.raises(UsageError, match=r"column 't' has no UTC offsets, and '2024-03-01T00:00:00Z' has one"):
        read_table("a.csv", where="t > '2024-03-01T00:00:00Z'")


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("count", [1, 20, 39])
def test_times_of_which_some_have_an_offset_are_refused(csv, refused, form, count):
    times = [*TIMES[:-count], *WITHOUT[-count:]]
    csv(lines(times, form))
    error = refused("a.csv", "UTC offset, and", "data.mixed_offsets")
    first = 0 if count >= 20 else 40 - count
    assert f"a.csv, line {first + 1 + (form == 'csv')}: column 't' holds '{times[first]}', which has" in error.message
    assert f"{max(count, 40 - count)} of 40 values have" in error.message


def test_further_blocks_have_offsets_as_the_first_one(csv):
    csv(lines([*TIMES, *WITHOUT]))
    with open_blocks("a.csv", block_bytes=400) as reader:
        blocks = [block.table for piece in reader.pieces({"t": "date"}).items for block in piece.blocks()]
    problems = [block["t"].problem for block in blocks]
    assert problems[0] is None
    assert "which has no UTC offset, and values above have one" in problems[-1].error.message
    assert {block["t"].kind for block in blocks[:2]} == {"date"}


def test_offsets_in_one_of_two_files_are_told(csv, kerntest):
    csv(lines(TIMES), "x.csv")
    csv(lines(WITHOUT), "y.csv")
    said = "column 't' has UTC offsets in x.csv and none in y.csv"
    assert any(said in one for one in mmd_test("x.csv", "y.csv").warnings)
    assert not any("offset" in one for one in mmd_test("x.csv", "x.csv").warnings)
    assert kerntest("ridge", "x.csv", "--target", "v", "-o", "m.kt", "--columns", "t").code == 0
    assert "UTC offset" not in kerntest("predict", "m.kt", "x.csv").err
    outcome = kerntest("predict", "m.kt", "y.csv")
    assert (outcome.code, "has UTC offsets in m.kt and none in y.csv" in outcome.err) == (0, True)


def test_truth_values_and_numbers_are_to_be_written_alike(csv, refused):
    csv("f,v\n" + "".join(f"{k % 2 == 0},{k % 7}\n" for k in range(40)), "x.csv")
    csv("f,v\n" + "".join(f"{k % 2},{k % 7}\n" for k in range(40)), "y.csv")
    error = refused(lambda: mmd_test("x.csv", "y.csv"), "is boolean in x.csv and number in y.csv", "data.types_differ")
    assert "write 'f' alike in both" in error.hint
    assert "categorical" not in error.hint
