"""gzip, zstd, bzip2 and xz: told by content, unpacked in pieces, and refused when they are damaged or too large."""

import bz2
import gzip
import hashlib
import io
import lzma
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import read_table
from kerntest.data import source as compression
from kerntest.data.source import head_of, largest_unpacked, unpacked
from kerntest.errors import DataError

SAMPLES = Path(__file__).parents[2] / "sample_data"


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACK = {"gzip": gzip.compress, "zstd": zstd, "bzip2": bz2.compress, "xz": lzma.compress}
both = pytest.mark.parametrize("method", sorted(PACK))


def refused(path, match, code):
    with pytest.raises(DataError, match=match) as caught:
        read_table(path)
    assert caught.value.exit_code == 3
    assert caught.value.code == code
    assert caught.value.hint
    assert "\n" not in caught.value.message


def same_values(one, other):
    assert one.names == other.names
    for name in one.names:
        assert one[name].kind == other[name].kind
        assert one[name].levels == other[name].levels
        np.testing.assert_array_equal(one[name].values, other[name].values)


@both
@pytest.mark.parametrize("name", ["before.csv", "before.parquet"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_compressed_files_are_read_whatever_they_are_called(tmp_path, method, name, suffix):
    stored = PACK[method]((SAMPLES / name).read_bytes())
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(stored)
    table = read_table(path)
    same_values(table, read_table(SAMPLES / name))
    assert (table.compression, table.size) == (method, len(stored))
    assert table.sha256 == hashlib.sha256(stored).hexdigest()
    assert table.format == Path(name).suffix[1:]
    assert read_table(SAMPLES / name).compression is None


@both
def test_compressed_stdin(monkeypatch, method):
    content = (SAMPLES / "before.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACK[method](content))))
    table = read_table("-")
    assert (table.n_rows, table.compression) == (400, method)


@both
def test_members_one_after_the_other_are_one_file(tmp_path, method):
    path = tmp_path / "a.csv"
    path.write_bytes(PACK[method](b"a\n1\n") + PACK[method](b"2\n3\n"))
    assert read_table(path)["a"].values.tolist() == [1, 2, 3]


@both
@pytest.mark.parametrize("kept", [0.2, 0.6, 0.98])
def test_a_truncated_file_is_refused(tmp_path, method, kept):
    stored = PACK[method]((SAMPLES / "before.csv").read_bytes())
    path = tmp_path / "a.csv"
    path.write_bytes(stored[: int(kept * len(stored))])
    refused(path, rf"a\.csv is compressed with {method}, but it is truncated or damaged: ", "data.damaged_compression")


@both
def test_a_damaged_file_is_refused(tmp_path, method):
    stored = bytearray(PACK[method]((SAMPLES / "before.csv").read_bytes()))
    # A frame of zstd may lack the checksum that gzip has; damage to its tables shows all the same.
    start = len(stored) // 2 if method == "gzip" else 10
    stored[start : start + 8] = b"\xff" * 8
    path = tmp_path / "a.csv"
    path.write_bytes(stored)
    refused(path, "truncated or damaged", "data.damaged_compression")
    path.write_bytes(PACK[method](b"a\n1\n") + b"junk")
    refused(path, "truncated or damaged", "data.damaged_compression")


@both
def test_nothing_in_a_compressed_file_and_text_named_parquet(tmp_path, method):
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(PACK[method](b""))
    refused(path, r"a\.parquet\.gz is empty", "data.empty_file")
    path.write_bytes(PACK[method](b"a\n1\n"))
    refused(path, r"is named \.parquet but it is not Parquet", "data.not_parquet")


@both
def test_a_bomb_is_refused_before_it_unfolds(tmp_path, monkeypatch, method):
    monkeypatch.setattr(compression, "LARGEST_UNPACKED", 1 << 20)
    path = tmp_path / "a.csv"
    path.write_bytes(PACK[method](b"a\n" + b"0\n" * (3 << 19)))
    reads = []
    monkeypatch.setattr(compression, "_opened", counting(compression._opened, reads))
    refused(path, r"a\.csv unpacks to more than 0\.0 GiB, which is not read into memory", "data.too_large")
    assert sum(reads) <= 2 << 20
    path.write_bytes(PACK[method](b"a\n" + b"0\n" * (1 << 16)))
    assert read_table(path).n_rows == 1 << 16


def counting(opened, reads):
    """Return the function that opens a stream, which then tells how many bytes were read from it."""

    class Counting:
        def __init__(self, stream):
            self.stream = stream

        def read1(self, size):
            chunk = self.stream.read1(size)
            reads.append(len(chunk))
            return chunk

    return lambda file, method: Counting(opened(file, method))


def test_the_limit_is_half_of_the_memory_at_most(monkeypatch):
    assert 0 < largest_unpacked() <= compression.LARGEST_UNPACKED
    monkeypatch.setattr(compression.os, "sysconf", lambda name: {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}[name])
    assert largest_unpacked() == 2_048_000

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(compression.os, "sysconf", unknown)
    assert largest_unpacked() == compression.LARGEST_UNPACKED


def test_a_small_parquet_of_very_many_rows_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": np.zeros(1_000_000), "b": np.zeros(1_000_000)}), path)
    assert path.stat().st_size < 10_000
    pages = {"SC_PHYS_PAGES": 4 * 1_000_000, "SC_PAGE_SIZE": 8}
    monkeypatch.setattr(compression.os, "sysconf", pages.__getitem__)
    assert read_table(path).n_rows == 1_000_000
    pages["SC_PHYS_PAGES"] -= 2
    refused(path, r"a\.parquet unpacks to more than 0\.0 GiB", "data.too_large")


def test_plain_bytes_stay_as_they_are():
    content = b"a,b\n1,2\n"
    assert unpacked(content, "a.csv") == (content, None)


@both
def test_the_head_of_a_large_file_needs_only_its_beginning(method):
    stored = PACK[method](b"name\n" + b"0123456789\n" * 250_000)
    assert head_of(io.BytesIO(stored), 12) == b"name\n0123456"
    half = io.BytesIO(stored[: len(stored) // 2])
    assert head_of(half, 5) == b"name\n"
    assert head_of(io.BytesIO(stored[:7]), 5) == b""
    assert head_of(io.BytesIO(b"plain text"), 5) == b"plain"


def test_a_compressed_parquet_inside_a_folder(tmp_path):
    stream = io.BytesIO()
    parquet.write_table(pa.table({"a": [1, 2]}), stream)
    (tmp_path / "a.parquet").write_bytes(gzip.compress(stream.getvalue()))
    (tmp_path / "b.parquet").write_bytes(stream.getvalue())
    table = read_table(tmp_path)
    assert (table.n_rows, table.compression) == (4, "gzip")
