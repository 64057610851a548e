"""The first pass over files finds what reading them whole finds."""

import gzip
import io
import pickle
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close
from two_samples import frames

from kerntest import read_table
from kerntest.data.columns import match_tables
from kerntest.data.diagnostics import counts_rows, misleading
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.rows import pool, standardize
from kerntest.engines.base import Engine
from kerntest.errors import DataError, UsageError
from kerntest.inference.sides import Reading, without_missing
from kerntest.inference.streamed import findings, rows, sources, tally
from kerntest.inference.streamed.survey import survey
from kerntest.inference.streamed.tally import NumberFacts


@pytest.fixture
def small_pieces(monkeypatch):
    """Read everything in many small pieces, and no CSV whole."""
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 3000)
    monkeypatch.setattr(sources, "PIECE_ROWS", 100)


def surveyed(*inputs, threads=2, sampled=2000, **reading):
    """Return what a survey finds, and all rows as it gives them."""
    with survey(inputs, Reading(**reading), "standardize", 0, Engine(threads), sampled=sampled) as found:
        pieces = list(found.pieces())
        points = [part for piece in pieces for part in found.read(piece)]
    numeric, codes = (np.concatenate([getattr(part, what) for part in points]) for what in ("numeric", "codes"))
    return found, numeric, codes


def written(folder, x, y):
    """Return the same two tables as inputs of every kind."""
    x.to_csv(folder / "x.csv", index=False)
    y.to_csv(folder / "y.csv", index=False)
    with gzip.open(folder / "x.csv.gz", "wt") as file:
        file.write((folder / "x.csv").read_text())
    x.to_parquet(folder / "x.parquet", index=False, row_group_size=70)
    y.to_parquet(folder / "y.parquet", index=False)
    (folder / "parts").mkdir()
    x[:200].to_parquet(folder / "parts" / "a.parquet", index=False)
    x[200:].to_parquet(folder / "parts" / "b.parquet", index=False, row_group_size=90)
    return {
        "frames": (x, y),
        "csv": (folder / "x.csv", folder / "y.csv"),
        "gzip": (str(folder / "x.csv.gz"), folder / "y.csv"),
        "parquet": (folder / "x.parquet", folder / "y.parquet"),
        "folder": (folder / "parts", folder / "y.csv"),
    }


@pytest.mark.usefixtures("small_pieces")
def test_the_rows_and_the_sample_are_the_same_from_everywhere(tmp_path):
    x, y = frames(450, 320)
    x["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(450) % 40, unit="D")
    y["when"] = pd.Timestamp("2024-03-05") + pd.to_timedelta(np.arange(320) % 40, unit="D")
    tables = written(tmp_path, x, y)
    pooled = pool(*match_tables(read_table(x, name="x"), read_table(y, name="y"))[:2])
    expected = standardize(pooled.numeric)[0]
    for kind, inputs in tables.items():
        for threads in (1, 2):
            found, numeric, codes = surveyed(*inputs, threads=threads, sampled=200)
            assert found.n_pieces > 2, kind
            assert found.n == (450, 320)
            assert found.layout.numeric_names == pooled.numeric_names
            assert found.layout.levels == pooled.levels
            assert_close(numeric, expected, scale=1.0)
            np.testing.assert_array_equal(codes, pooled.codes)
            if kind == "frames":
                sample = found.sample
            assert_close(found.sample.numeric, sample.numeric, scale=1.0)
            np.testing.assert_array_equal(found.sample.codes, sample.codes)


def test_the_record_of_an_input_is_that_of_reading_it_whole(tmp_path):
    for name, inputs in written(tmp_path, *frames(450, 320)).items():
        found, _, _ = surveyed(*inputs)
        for record, source, letter in zip(found.inputs, inputs, ("x", "y"), strict=True):
            whole = read_table(source, name=letter if name == "frames" else None)
            assert (record.name, record.format, record.rows) == (whole.name, whole.format, whole.n_rows)
            assert (record.sha256, record.delimiter, record.compression) == (
                whole.sha256,
                whole.delimiter,
                whole.compression,
            )
            assert record.files == (len(whole.files) or None)


def test_a_huge_row_group_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BATCH_ROWS", 64)
    x, y = frames(450, 320)
    x.to_parquet(tmp_path / "x.parquet", index=False)
    with survey((tmp_path / "x.parquet", y), Reading(), "standardize", 0, Engine(1)) as found:
        first = next(found.pieces())
        assert [len(points) for points in found.read(first)] == [64] * 7 + [2]


def test_the_sample_is_uniform_over_both_inputs():
    x, y = np.arange(3000.0), np.arange(3000.0, 5000.0)
    found, _, _ = surveyed(x, y, sampled=1000)
    values = np.round(found.sample.numeric[:, 0] * found.layout.spread[0] + found.layout.centre[0])
    assert len(np.unique(values)) == 1000
    counts = np.histogram(values, bins=10, range=(0, 5000))[0]
    # Chi-square with 9 degrees of freedom, once in 10,000 larger.
    assert np.sum((counts - 100) ** 2 / 100) / 0.8 < 34
    assert abs(np.corrcoef(np.arange(1000), values)[0, 1]) < 0.15


@pytest.mark.usefixtures("small_pieces")
def test_rows_with_missing_values_are_dropped_and_counted(tmp_path):
    x, y = frames(450, 320)
    x.loc[[3, 100, 449], "price"] = np.nan
    x.loc[[100, 200], "city"] = None
    x["empty_here_and_there"] = np.where(np.arange(450) == 7, np.nan, 1.0)
    y["empty_here_and_there"] = 1.0
    matched = match_tables(read_table(x, name="x"), read_table(y, name="y"))[:2]
    used, dropped = without_missing(matched, "drop")
    expected = standardize(pool(*used).numeric)[0]
    for inputs in written(tmp_path, x, y).values():
        found, numeric, _ = surveyed(*inputs, missing="drop")
        assert (found.rows, found.n) == ((450, 320), (445, 320))
        assert_close(numeric, expected, scale=1.0)
        assert dropped[0].split(": ")[1] in " ".join(found.warnings)
        assert found.left_out == ("empty_here_and_there",)
        pieces = [piece for piece in found.pieces() if piece.source == 0]
        for piece, later in pairwise(pieces):
            assert later.used_before == piece.used_before + sum(map(len, found.read(piece)))
    with pytest.raises(DataError, match="has 6 missing values: price 3, city 2, empty_here_and_there 1") as caught:
        surveyed(tmp_path / "x.parquet", y)
    assert caught.value.code == "data.missing_values"
    assert "the first in row 4)" in str(caught.value)


@pytest.mark.usefixtures("small_pieces")
def test_a_column_that_turns_out_to_be_text_is_text_from_the_beginning(tmp_path):
    x, y = frames(450, 320)
    for table in (x, y):
        table["code"] = np.arange(len(table)).astype(str)
        table["truth"] = "True"
        table.loc[5, "truth"] = "False"
        # Most of the first rows are numbers, but not most of all rows.
        table.loc[len(table) // 3 :, "code"] = "A" + table["code"]
        table.loc[310:, "truth"] = "maybe"
    tables = written(tmp_path, x, y)
    from_text, _, codes = surveyed(*tables["csv"])
    from_schema, _, expected = surveyed(*tables["parquet"])
    assert set(from_text.layout.category_names) == {"city", "new", "code", "truth"}
    np.testing.assert_array_equal(codes, expected)
    assert from_text.layout.levels == from_schema.layout.levels


@pytest.mark.usefixtures("small_pieces")
def test_a_stray_value_in_a_column_of_numbers_is_refused(tmp_path):
    x, y = frames(450, 320)
    x["price"] = x["price"].astype(str)
    x.loc[400, "price"] = "oops"
    tables = written(tmp_path, x, y)
    with pytest.raises(DataError, match="row 401: column 'price' holds 'oops', which is not a number"):
        surveyed(*tables["csv"])


@pytest.mark.usefixtures("small_pieces")
def test_a_column_of_two_kinds_is_refused(tmp_path):
    x, y = frames(450, 320)
    x["price"] = ["1.5"] * 200 + ["cheap", "dear"] * 125
    tables = written(tmp_path, x, y)
    with pytest.raises(DataError, match=r"column 'price' is text in one table and not in the other .*'cheap'"):
        surveyed(*tables["csv"])
    with pytest.raises(DataError, match=r"column 'price' is text in .*x\.parquet and number in"):
        surveyed(*tables["parquet"])
    assert "price" in surveyed(*tables["csv"], categorical="price")[0].layout.category_names


@pytest.mark.usefixtures("small_pieces")
def test_infinities_are_refused_wherever_they_are(tmp_path):
    x, y = frames(450, 320)
    x.loc[440, "price"] = np.inf
    x.to_parquet(tmp_path / "x.parquet", index=False)
    with pytest.raises(DataError, match="row 441: column 'price' holds 'inf'"):
        surveyed(tmp_path / "x.parquet", y)


def test_columns_are_matched_as_ever(tmp_path):
    x, y = frames(450, 320)
    y = y.rename(columns={"weight": "mass"})
    inputs = written(tmp_path, x, y)["parquet"]
    with pytest.raises(DataError, match=r"only in .*x\.parquet: weight") as caught:
        surveyed(*inputs)
    assert caught.value.code == "data.columns_differ"
    found, _, _ = surveyed(*inputs, common=True)
    assert found.columns == ("price", "city", "new")
    assert "columns in one table only are left out" in found.warnings[0]
    assert surveyed(*inputs, columns="price,new")[0].columns == ("price", "new")
    with pytest.raises(UsageError, match="column 'colour' is in neither"):
        surveyed(*inputs, columns="colour")


def test_columns_that_tell_nothing_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "MOST_LEVELS", 100)
    monkeypatch.setattr(findings, "MOST_LEVELS", 100)
    x, y = frames(450, 320)
    for table in (x, y):
        table["same"] = 3
        table["name"] = [f"row {i}" for i in range(len(table))]
    found, _, _ = surveyed(*written(tmp_path, x, y)["parquet"])
    assert found.left_out == ("same", "name")
    assert "one value in all rows" in found.warnings[-2]
    assert "more than 100 different values" in found.warnings[-1]


def test_warnings_about_time_and_counters_are_those_of_the_exact_test(tmp_path):
    x, y = frames(450, 320)
    x["id"], y["id"] = np.arange(450), np.arange(1000, 1320)
    x["clock"], y["clock"] = np.cumsum(np.arange(450) % 7 + 0.5), 1e6 + np.cumsum(np.arange(320) % 5 + 0.5)
    x["day"] = y["day"] = pd.Timestamp("2024-01-01")
    x.loc[3, "day"] = pd.Timestamp("2024-01-09")
    tables = tuple(read_table(table, name=name) for table, name in ((x, "x"), (y, "y")))
    expected = misleading(tables, tables, pool(*tables))
    assert len(expected) == 3
    found, _, _ = surveyed(*written(tmp_path, x, y)["frames"])
    assert found.warnings == expected
    few = surveyed(x, pd.concat([y] * 40, ignore_index=True), exclude="id,clock,day")[0]
    assert "28 times as many rows" in few.warnings[0]


def test_facts_about_numbers_do_not_depend_on_the_pieces():
    rng = np.random.default_rng(0)
    for values in (rng.normal(1e9, 1.0, 500), np.arange(500.0), -np.arange(500.0), np.repeat([1.0, 2.0, 3.0], 200)):
        whole = NumberFacts.of(values)
        for cuts in ([250], [1, 2, 3], np.arange(50, len(values), 50)):
            parts = [NumberFacts.of(part) for part in np.split(values, cuts)]
            for later in parts[1:]:
                parts[0].add(later)
            found = parts[0]
            assert_close(found.mean, values.mean())
            assert_close(np.sqrt(found.squares / found.count), values.std())
            assert (found.low, found.high, found.up, found.down, found.whole) == (
                whole.low,
                whole.high,
                whole.up,
                whole.down,
                whole.whole,
            )
        assert whole.counts_rows == counts_rows(values)


def test_one_input_alone(tmp_path):
    x, _ = frames(450, 320)
    x.to_parquet(tmp_path / "x.parquet", index=False)
    found, numeric, _ = surveyed(tmp_path / "x.parquet", exclude="weight")
    assert found.columns == ("price", "city", "new")
    assert_close(numeric.std(axis=0), np.ones(numeric.shape[1]))


def test_rows_are_read_alike_in_another_process(tmp_path):
    inputs = written(tmp_path, *frames(450, 320))["folder"]
    with survey(inputs, Reading(), "standardize", 0, Engine(1)) as found:
        for piece in found.pieces():
            reader, sent = pickle.loads(pickle.dumps((found.reader, piece)))
            for here, there in zip(found.read(piece), reader.read(sent), strict=True):
                assert_close(there.numeric, here.numeric, scale=1.0)
                np.testing.assert_array_equal(there.codes, here.codes)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_stdin_is_read_twice(tmp_path, monkeypatch, kind):
    tables = written(tmp_path, *frames(450, 320))[kind]
    expected, numeric, _ = surveyed(*tables)

    class Stdin:
        buffer = io.BytesIO(tables[0].read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin())
    found, again, _ = surveyed("-", tables[1])
    assert_close(again, numeric)
    assert found.names[0] == "<stdin>"
    assert found.inputs[0].sha256 == expected.inputs[0].sha256


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        surveyed(tmp_path / "nowhere.csv", tmp_path / "nor_here.csv")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(DataError, match="malformed Parquet"):
        surveyed(tmp_path / "bad.parquet", np.arange(10.0))
    x, y = frames(450, 320)
    (tmp_path / "parts").mkdir()
    x.to_parquet(tmp_path / "parts" / "a.parquet", index=False)
    y.drop(columns="city").to_parquet(tmp_path / "parts" / "b.parquet", index=False)
    with pytest.raises(DataError, match="has other columns or types than") as caught:
        surveyed(tmp_path / "parts", y)
    assert "column 'city'" in caught.value.hint


def test_values_mean_in_pieces_what_they_mean_in_a_whole_file(tmp_path, monkeypatch):
    for name, days in (("x.csv", 12), ("y.csv", 28)):
        lines = [
            f'{k % 100}%,{1 + k % 12}/{1 + k % days}/2024,{k % 24}:30,"{"NA" if k % 3 else "b"}"' for k in range(400)
        ]
        (tmp_path / name).write_text("share,day,at,t\n" + "\n".join(lines) + "\n?,1/1/2024,1:00,NA\n")
    inputs = (tmp_path / "x.csv", tmp_path / "y.csv")
    reading = {"csv": CsvOptions.of(na="?,NA"), "missing": "drop"}
    whole, numeric, codes = surveyed(*inputs, **reading)
    assert whole.layout.numeric_names == ("share", "day", "at")
    assert whole.layout.levels == (("NA", "b"),)
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 3000)
    found, *points = surveyed(*inputs, **reading)
    assert found.n == whole.n == (400, 400)
    np.testing.assert_allclose(points[0], numeric)
    np.testing.assert_array_equal(points[1], codes)


@pytest.mark.usefixtures("small_pieces")
def test_a_word_that_makes_many_values_missing_is_told_in_pieces_too(tmp_path):
    (tmp_path / "x.csv").write_text("a,t\n" + "".join(f"{k},{'x' if k % 3 else 'None'}\n" for k in range(300)))
    found, _, _ = surveyed(tmp_path / "x.csv", missing="drop")
    assert any("'None' in column 't' is taken as missing" in warning for warning in found.warnings)
