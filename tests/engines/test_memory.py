"""Amounts of memory, as people write and read them."""

import gzip
import io
import sys

import numpy as np
import pytest

import kerntest
from kerntest.errors import UndecidedError, UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("4 gb", 4 * 10**9),
        ("4g", 4 * 10**9),
        ("1.5G", 1_500_000_000),
        (".5GB", 500_000_000),
        ("500MB", 500_000_000),
        ("2GiB", 2 * 2**30),
        ("700MiB", 700 * 2**20),
        ("1TB", 10**12),
        ("300000kB", 300_000_000),
        ("250000000", 250_000_000),
        (3 * 10**9, 3 * 10**9),
    ],
)
def test_amounts_are_read(text, size):
    with kerntest.compute_on(memory=text) as engine:
        assert engine.memory == size


@pytest.mark.parametrize("text", ["", "GB", "four GB", "-4GB", "4 XB", "4GB and more", "nan", "inf", 1.5])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(UsageError, match="no amount of memory") as caught, kerntest.compute_on(memory=text):
        pass
    assert caught.value.code == "usage.memory"


@pytest.mark.parametrize("text", ["0", "1", "100MB", "0GB", 10**6])
def test_too_little_for_the_program_is_refused(text):
    with pytest.raises(UsageError, match="too little"), kerntest.compute_on(memory=text):
        pass


# Reading within the limit: the program takes 130 of 200 MB


def rows(count):
    return b"a,b\n" + b"1,2\n" * count


def refused(*sources):
    with kerntest.compute_on(memory="200MB"), pytest.raises(UndecidedError) as caught:
        kerntest.mmd_test(*sources)
    assert caught.value.code == "undecided.memory"
    assert caught.value.exit_code == 4
    assert "--method features" in caught.value.hint
    return caught.value.message


def test_a_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "wide.csv"
    with path.open("wb") as file:
        file.truncate(10**9)
    assert refused(path, path) == f"reading {path} takes at least 1.13 GB, and --memory allows 200 MB"
    path.write_bytes(rows(850_000))
    assert refused(path, path) == f"reading {path} takes at least 215 MB, and --memory allows 200 MB"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 10**8)))
    assert refused("-", path) == "reading <stdin> takes at least 200 MB, and --memory allows 200 MB"


def test_a_compressed_file_is_refused_while_it_unpacks(tmp_path):
    path = tmp_path / "small.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + bytes(10**8), 1))
    assert path.stat().st_size < 10**6
    assert refused(path, path) == f"reading {path} takes at least 200 MB, and --memory allows 200 MB"


def test_a_parquet_file_is_refused_by_what_it_says_of_itself(tmp_path):
    import pyarrow as pa  # noqa: PLC0415 - for this test only
    from pyarrow import parquet  # noqa: PLC0415 - the same

    path = tmp_path / "ones.parquet"
    parquet.write_table(pa.table({"a": np.ones(10**7)}), path)
    assert path.stat().st_size < 10**6
    assert "takes at least" in refused(path, path)


def test_tables_that_are_still_there_count(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows(650_000))
    with kerntest.compute_on(memory="200MB"):
        first = kerntest.read_table(path)
        with pytest.raises(UndecidedError, match="takes at least 205 MB"):
            kerntest.read_table(path)
        del first
        assert kerntest.read_table(path).n_rows == 650_000
