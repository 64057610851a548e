"""Tests by features of files of any size: rows read in pieces mean what they mean in a table that is read whole."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from records import assert_same, numbers
from tolerances import assert_close
from two_samples import frames

from kerntest import compute_on, hsic_test, mmd_test, read_table
from kerntest.errors import DataError, UsageError

QUICK = {"method": "features", "features": "nystroem:20", "permutations": 100, "threads": 1}
# A CSV file of some thousand rows of so many characters is read in pieces.
PAD = "z" * 5000


def padded(table, path, pad=PAD, **options):
    table.assign(pad=pad).to_csv(path, index=False, **options)
    assert path.stat().st_size > 1 << 24
    return path


def two_frames():
    x, y = frames(4000, 3600)
    x["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(4000) % 40, unit="D")
    y["when"] = pd.Timestamp("2024-03-05") + pd.to_timedelta(np.arange(3600) % 40, unit="D")
    return x, y


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the same two tables as inputs of every kind."""
    folder = tmp_path_factory.mktemp("stored")
    x, y = two_frames()
    padded(x, folder / "x.csv")
    padded(x, folder / "x;.csv", sep=";", decimal=",")
    y.to_csv(folder / "y.csv", index=False)
    noise = np.random.default_rng(0)
    with gzip.open(folder / "x.csv.gz", "wt", compresslevel=1) as file:
        x.assign(pad=[noise.bytes(700).hex() for _ in range(4000)]).to_csv(file, index=False)
    assert (folder / "x.csv.gz").stat().st_size > 1 << 21
    x.to_parquet(folder / "x.parquet", index=False, row_group_size=70)
    y.to_parquet(folder / "y.parquet", index=False)
    x.to_json(folder / "x.jsonl", orient="records", lines=True, date_format="iso", double_precision=15)
    (folder / "parts").mkdir()
    x[:2000].to_parquet(folder / "parts" / "a.parquet", index=False)
    x[2000:].to_parquet(folder / "parts" / "b.parquet", index=False, row_group_size=90)
    names = {"csv": "x.csv", "semicolons": "x;.csv", "gzip": "x.csv.gz", "parquet": "x.parquet", "folder": "parts"}
    names |= {"glob": "parts/*.parquet", "json": "x.jsonl"}
    others = {kind: folder / ("y.csv" if "csv" in name else "y.parquet") for kind, name in names.items()}
    return {"frames": (x, y)} | {kind: (str(folder / name), others[kind]) for kind, name in names.items()}


@pytest.mark.parametrize("kind", ["csv", "semicolons", "gzip", "parquet", "folder", "glob", "json"])
def test_the_same_result_from_everywhere(stored, kind):
    expected, found = (mmd_test(*stored[one], **QUICK, common=True) for one in ("frames", kind))
    assert found.p_value == expected.p_value
    assert found.columns == expected.columns == ("price", "weight", "city", "new", "when")
    for name in ("statistic", "effect_size", "mmd_standard_error"):
        assert_close(getattr(found, name), getattr(expected, name))
    assert_same(numbers(mmd_test(*stored[kind], **QUICK | {"threads": 3}, common=True)), numbers(found))
    for record, source in zip(found.provenance.inputs, stored[kind], strict=True):
        whole = read_table(source)
        assert (record.rows, record.files) == (whole.n_rows, len(whole.files))
        for name in ("name", "format", "sha256", "delimiter", "compression"):
            assert getattr(record, name) == getattr(whole, name)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_stdin_is_read_twice(stored, monkeypatch, kind):
    x, y = stored[kind]

    class Stdin:
        buffer = io.BytesIO(Path(x).read_bytes())

    expected = mmd_test(x, y, **QUICK, common=True)
    monkeypatch.setattr(sys, "stdin", Stdin())
    found = mmd_test("-", y, **QUICK, common=True)
    assert_close(found.statistic, expected.statistic)
    record, other = found.provenance.inputs[0], expected.provenance.inputs[0]
    assert (record.name, record.sha256) == ("<stdin>", other.sha256)


def test_rows_with_missing_values_are_dropped_and_counted(tmp_path):
    x, y = two_frames()
    x.loc[[3, 100, 3999], "price"] = np.nan
    x.loc[[100, 200], "city"] = None
    x["here_and_there"] = np.where(np.arange(4000) == 3500, np.nan, 1.0)
    y["here_and_there"] = 1.0
    x.to_parquet(tmp_path / "x.parquet", index=False, row_group_size=500)
    options = QUICK | {"kernel": "price: gaussian(1); city: hamming(1)"}
    without, expected = (mmd_test(table, y, **options, missing="drop") for table in (x.dropna(), x))
    # Their numbers choose the sampled rows: others.
    np.testing.assert_allclose(expected.statistic, without.statistic, rtol=0.2)
    for data in (x, tmp_path / "x.parquet", padded(x, tmp_path / "x.csv")):
        found = mmd_test(data, y, **options, missing="drop", common=True)
        assert (found.provenance.inputs[0].rows, found.n_x) == (4000, 3995)
        assert_close(found.statistic, expected.statistic)
        assert "here_and_there" in found.columns_left_out
        message = "has 6 missing values: price 3, city 2, here_and_there 1"
        with pytest.raises(DataError, match=message) as caught:
            mmd_test(data, y, **QUICK, common=True)
        assert caught.value.code == "data.missing_values"
        assert f"the first in {'line 5' if str(data).endswith('.csv') else 'row 4'})" in str(caught.value)


def test_a_column_that_turns_out_to_be_text_is_text_from_the_beginning(tmp_path):
    tables = two_frames()
    for table, name in zip(tables, "xy", strict=True):
        half, rows = len(table) // 2, range(len(table))
        # More than half of the first rows are numbers, but not of all rows; and a value has two lines.
        table["code"] = [str(k % 7) if k < half - 100 else f"A{k % 5}" for k in rows]
        table["truth"] = ["True" if k < half else "maybe" for k in rows]
        table.loc[5, "truth"] = "False"
        padded(table, tmp_path / f"{name}.csv", pad=f"{PAD}\n{PAD}")
    found = mmd_test(tmp_path / "x.csv", tmp_path / "y.csv", **QUICK, exclude="pad")
    expected = mmd_test(*tables, **QUICK)
    assert "code, truth: hamming" in expected.kernel
    assert found.p_value == expected.p_value
    assert_close(found.statistic, expected.statistic)


def refused(message, code, *data, **options):
    with pytest.raises((DataError, UsageError), match=message) as caught:
        mmd_test(*data, **QUICK, **options)
    assert caught.value.code == code
    return caught.value


def test_values_that_cannot_be_used_are_refused_with_their_place(tmp_path):
    x, y = two_frames()
    x.assign(price=np.where(np.arange(4000) == 3440, np.inf, x["price"])).to_parquet(tmp_path / "x.parquet")
    refused("row 3441: column 'price' holds 'inf'", "data.infinite_values", tmp_path / "x.parquet", y)
    x[:0].to_parquet(tmp_path / "empty.parquet")
    refused("empty.parquet has no rows", "data.no_rows", tmp_path / "empty.parquet", y)
    texts = x["price"].astype(str)
    stray = padded(x.assign(price=texts.where(np.arange(4000) != 3400, "oops")), tmp_path / "stray.csv")
    message = "line 3402: column 'price' holds 'oops', which is not a number"
    error = refused(message, "data.not_a_number", stray, y, common=True)
    assert (error.where["line"], error.where["column"], error.where["value"]) == (3402, "price", "oops")
    mixed = x.assign(price=["1.5"] * 1800 + ["cheap", "dear"] * 1100)
    path = padded(mixed, tmp_path / "mixed.csv")
    error = refused(
        "column 'price' is text in .* and number in", "data.types_differ", path, padded(y, tmp_path / "y.csv")
    )
    assert "mixed.csv, line 1802: 'cheap'; categorical='price'" in error.hint
    found = mmd_test(path, y, **QUICK, common=True, categorical="price")
    assert "price" in found.columns
    for data in (path, tmp_path / "x.parquet"):
        refused("column 'colour' is not in", "usage.unknown_column", data, y, categorical="colour")
    mixed.to_parquet(tmp_path / "mixed.parquet", index=False)
    refused(r"is text in .*mixed\.parquet and number in", "data.types_differ", tmp_path / "mixed.parquet", y)


def test_warnings_about_the_columns_are_those_of_the_exact_test():
    tables = []
    for table, start in zip(two_frames(), (0, 1000), strict=True):
        n = 450 if start == 0 else 320
        rows, steps = np.arange(n), 7 if start == 0 else 5
        told = {"same": 3, "name": [f"row {k} of {n}" for k in rows], "id": start + rows, "flat": start + rows // 9}
        tables.append(table[:n].assign(**told, clock=1000 * start + np.cumsum(rows % steps + 0.5)))
    options = QUICK | {"features": None}
    exact, found = (mmd_test(*tables, **options | {"method": method}) for method in ("exact", "features"))
    assert found.warnings == exact.warnings
    assert len(found.warnings) == 6
    assert found.columns_left_out == exact.columns_left_out == ("same", "name")
    x, y = (table[["price"]] for table in two_frames())
    (warning,) = mmd_test(x[:450], pd.concat([y[:320]] * 40, ignore_index=True), **QUICK).warnings[:1]
    assert "28 times as many rows" in warning
    rows = np.arange(12_000)
    many = pd.DataFrame({"a": rows % 7, "name": [f"row {k % 11_000}" for k in rows]})
    found = hsic_test(many.assign(b=rows % 5), x_columns="a,name", **QUICK)
    assert any("'name' has more than 10,000 different values" in text for text in found.warnings)
    # Neither table has so many, but both together.
    halves = (many.assign(name=[f"{side} {k % 6000}" for k in rows]) for side in "xy")
    found = mmd_test(*halves, **QUICK | {"kernel": "a: gaussian(1)"})
    assert any("'name' has more than 10,000 different values" in text for text in found.warnings)


def test_files_that_begin_with_the_same_rows_are_told_where_samples_hardly_meet(tmp_path):
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=60_000).round(6), "b": rng.choice(["u", "v", "w"], 60_000)})
    x.to_csv(tmp_path / "x.csv", index=False)
    x.to_parquet(tmp_path / "copy.parquet", index=False)
    x[::-1].to_csv(tmp_path / "others.csv", index=False)
    # Sorted values of few levels are the same in many files.
    for name, table in (("sorted", x), ("too", x[::2])):
        table[["b"]].sort_values("b").to_csv(tmp_path / f"{name}.csv", index=False)

    def told(x, y):
        found = mmd_test(tmp_path / x, tmp_path / y, features="nystroem:20", permutations=50)
        return [one for one in found.warnings if "of the files are the same" in one]

    (warning,) = told("x.csv", "copy.parquet")
    assert warning.endswith("the files are one and the same, and the p-value is not valid; compare different ones")
    assert told("x.csv", "others.csv") == []
    assert told("sorted.csv", "too.csv") == []


def test_values_mean_in_pieces_what_they_mean_in_a_whole_file(tmp_path):
    for name, days, pad in (("x.csv", 12, ""), ("y.csv", 28, ""), ("x_long.csv", 12, PAD)):
        lines = [
            f'{k % 100}%,{1 + k % 12}/{1 + k % days}/2024,{k % 24}:30,"{"NA" if k % 3 else "b"}",{pad}'
            for k in range(4000)
        ]
        lines.append(f"?,1/1/2024,1:00,NA,{pad}")
        (tmp_path / name).write_text("share,day,at,t,pad\n" + "\n".join(lines) + "\n")
    options = QUICK | {"na": "?,NA", "missing": "drop", "exclude": "pad"}
    found, whole = (mmd_test(tmp_path / name, tmp_path / "y.csv", **options) for name in ("x_long.csv", "x.csv"))
    assert (found.n_x, found.columns) == (4000, ("share", "day", "at", "t"))
    assert found.p_value == whole.p_value
    assert_close(found.statistic, whole.statistic)
    rows = "".join(f"{k},{('None', 'x', 'y')[k % 3]},{PAD}\n" for k in range(4000))
    (tmp_path / "none.csv").write_text("a,t,pad\n" + rows)
    found = hsic_test(tmp_path / "none.csv", **QUICK, columns="a,t", missing="drop", x_columns="a", y_columns="t")
    assert any("'None' in column 't' is taken as missing" in text for text in found.warnings)


def test_a_cluster_reads_the_parts_of_files_itself(stored):
    pytest.importorskip("distributed")
    expected = mmd_test(*stored["parquet"], **QUICK)
    with compute_on("dask", threads=2):
        for kind in ("parquet", "csv"):
            found = mmd_test(*stored[kind], **QUICK | {"threads": None}, common=True)
            assert_close(found.statistic, expected.statistic)
            assert found.p_value == expected.p_value


RUN = """
import sys
from pathlib import Path
from kerntest import hsic_test, mmd_test
options = {"method": "features", "features": "nystroem:10", "threads": 1}
for path, n in zip(sys.argv[1::2], sys.argv[2::2]):
    assert mmd_test(path, path, kernel="gaussian(1)", **options).n_x == int(n)
    assert hsic_test(path, x_columns="a,b", y_columns="c,d", **options).n == int(n)
    # The peak of this program: that of getrusage begins with the size of the process that started it.
    print(*(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    arguments = []
    for n in (70_000, 400_000):
        path = tmp_path / f"{n}.parquet"
        rng = np.random.default_rng(0)
        table = pd.DataFrame({name: rng.normal(size=n) for name in "abcd"})
        table.to_parquet(path, row_group_size=50_000, index=False)
        arguments += [path, str(n)]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    # The first peak is that of few rows, the second that of both.
    peaks = [int(peak) * 1024 for peak in done.stdout.split()]
    # Held, 2 x 400,000 rows of four numbers would take 26 MB, and some times that on the way.
    assert peaks[1] - peaks[0] < 20e6


def test_texts_of_a_typed_file_that_only_begin_like_times_stay_texts(tmp_path):
    x, y = (one[:3600].assign(start=["9:30"] * 1500 + ["early", "late"] * 1050) for one in two_frames())
    for name, one in (("x", x), ("y", y)):
        one.to_parquet(tmp_path / f"{name}.parquet")
    found = mmd_test(tmp_path / "x.parquet", tmp_path / "y.parquet", **QUICK, columns="start")
    assert found.kernel.startswith("hamming")


def test_rows_that_are_drawn_from_a_file_in_pieces_are_said_of_how_many(tmp_path, monkeypatch):
    monkeypatch.setattr("kerntest.inference.features.inputs.SMALL_BYTES", 0)
    for name, shift in (("x", 0.0), ("y", 1.0)):
        rows = np.random.default_rng(0).normal(size=(900, 2)) + shift
        pd.DataFrame(rows, columns=["a", "b"]).to_parquet(tmp_path / f"{name}.parquet")
    found = mmd_test(tmp_path / "x.parquet", tmp_path / "y.parquet", sample=400, method="features")
    assert [(one.chosen_from, one.chosen_by) for one in found.provenance.inputs] == [(900, "400 rows at random")] * 2
