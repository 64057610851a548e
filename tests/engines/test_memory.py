"""Amounts of memory, as people write and read them."""

import gzip
import io
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kerntest
from kerntest.errors import UndecidedError, UsageError

SIZES = {
    "4GB": 4e9,
    "4 gb": 4e9,
    "4g": 4e9,
    "1.5G": 1.5e9,
    ".5GB": 5e8,
    "500MB": 5e8,
    "2GiB": 2 * 2**30,
    "700MiB": 700 * 2**20,
}
SIZES |= {"1TB": 1e12, "300000kB": 3e8, "250000000": 2.5e8, 3 * 10**9: 3e9}


@pytest.mark.parametrize("text", SIZES)
def test_amounts_are_read(text):
    with kerntest.compute_on(memory=text) as engine:
        assert engine.memory == SIZES[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "no amount of memory") for text in ("", "GB", "four GB", "-4GB", "4 XB", "4GB and more", "nan", 1.5)),
        *((text, "of memory is too little") for text in ("0", "1", "100MB", "0GB", 10**6)),
    ],
)
def test_what_is_no_amount_or_too_little_is_refused(text, message):
    with pytest.raises(UsageError, match=message) as caught, kerntest.compute_on(memory=text):
        pass
    assert caught.value.code == "usage.memory"


# Reading within the limit: the program takes 110 of 200 MB


def rows(count):
    return b"a,b\n" + b"1,2\n" * count


def refused(*sources):
    with kerntest.compute_on(memory="200MB"), pytest.raises(UndecidedError) as caught:
        kerntest.mmd_test(*sources, method="exact")
    assert caught.value.code == "undecided.memory"
    assert caught.value.exit_code == 4
    assert "method='features'" in caught.value.hint
    return caught.value.message


def test_a_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "wide.csv"
    with path.open("wb") as file:
        file.write(rows(10))
        file.truncate(10**9)
    assert refused(path, path) == f"reading {path} takes at least 1.11 GB, and memory= allows 200 MB"
    path.write_bytes(rows(1_000_000))
    assert refused(path, path) == f"reading {path} takes at least 210 MB, and memory= allows 200 MB"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows(25 * 10**6))))
    assert refused("-", path) == "reading <stdin> takes at least 200 MB, and memory= allows 200 MB"


def test_a_compressed_file_is_refused_while_it_unpacks(tmp_path):
    path = tmp_path / "small.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + bytes(10**8), 1))
    assert path.stat().st_size < 10**6
    assert refused(path, path) == f"reading {path} takes at least 200 MB, and memory= allows 200 MB"


def test_a_parquet_file_is_refused_by_what_it_says_of_itself(tmp_path):
    path = tmp_path / "ones.parquet"
    parquet.write_table(pa.table({"a": np.ones(10**7)}), path)
    assert path.stat().st_size < 10**6
    assert "takes at least" in refused(path, path)


def test_what_reads_files_in_pieces_is_named_where_it_does(tmp_path):
    """Groups of one file, several files and fits are read whole, by features too."""
    path = tmp_path / "rows.csv"
    path.write_bytes(rows(1_000_000))
    files, way_out = "a file of fewer rows or columns", "; two files, a sample in each, may be of any size with method="
    for hint, called in [
        (
            f"{files}; method='features' reads files of any size",
            lambda: kerntest.hsic_test(path, x_columns="a", y_columns="b", method="exact"),
        ),
        (f"{files}{way_out}'features'", lambda: kerntest.mmd_test(path, by="a", method="features")),
        (f"{files}{way_out}'features'", lambda: kerntest.mmd_test(path, path, path, method="features")),
        (files, lambda: kerntest.mmd_test(path, path, paired="a")),
        (files, lambda: kerntest.train_svm(path, "b")),
    ]:
        with kerntest.compute_on(memory="200MB"), pytest.raises(UndecidedError, match="reading") as caught:
            called()
        assert caught.value.hint == f"give it more memory=, or {hint}"


def test_tables_that_are_still_there_count(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows(800_000))
    with kerntest.compute_on(memory="200MB"):
        first = kerntest.read_table(path)
        with pytest.raises(UndecidedError, match="takes at least 203 MB"):
            kerntest.read_table(path)
        del first
        assert kerntest.read_table(path).n_rows == 800_000
