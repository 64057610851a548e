"""Where bytes come from: files, globs, folders, stdin, compressed or not, JSON lines; and everything that is refused."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kerntest
from kerntest import read_table
from kerntest.data import source
from kerntest.data.formats.dialect import header_names
from kerntest.data.read import open_blocks
from kerntest.data.source import largest_unpacked
from kerntest.errors import DataError

SAMPLES = Path(__file__).parents[2] / "sample_data"


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACK = {
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zstd": zstd,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
both = pytest.mark.parametrize("method", sorted(PACK))


def digest(content):
    return hashlib.sha256(content).hexdigest()


def parquet_bytes(columns, **options):
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


@pytest.fixture
def stdin(monkeypatch):
    """Return what puts bytes on the standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# One file


def test_a_file_keeps_its_name_format_and_digest(csv, tmp_path, stdin, refused):
    content = b"a,b\n1,x\n2,y\n"
    table = read_table(csv(content))
    assert (table.name, table.format, table.delimiter, table.n_rows, table.names) == (
        "a.csv",
        "csv",
        ",",
        2,
        ("a", "b"),
    )
    assert (table.sha256, table.size, table.compression) == (digest(content), len(content), None)
    assert read_table(tmp_path / "a.csv", name="reference").name == "reference"
    stdin(content)
    table = read_table("-")
    assert (table.name, table["a"].values.tolist(), table.sha256) == ("<stdin>", [1.0, 2.0], digest(content))
    refused("-", "<stdin> is empty", "data.empty_file")
    stdin(parquet_bytes({"a": [1, 2]}))
    table = read_table("-")
    assert (table.format, table["a"].values.tolist()) == ("parquet", [1.0, 2.0])
    # A file is what it holds, not what it is called.
    assert read_table(csv(parquet_bytes({"a": [1.5]}))).format == "parquet"


@pytest.mark.parametrize(
    ("name", "content", "match", "code", "hint"),
    [
        ("a.parquet", b"a,b\n1,2\n", r"is named \.parquet but it is not Parquet", "data.not_parquet", "looks like CSV"),
        ("b.pq", b"\x01\0\x02\0", r"named \.pq but it is not Parquet", "data.not_parquet", "damaged"),
        *(
            (f"a.parquet.{end}", PACK[method](b"a\n1\n"), r"is named \.parquet", "data.not_parquet", "CSV")
            for method, end in (("gzip", "gz"), ("xz", "xz"))
        ),
        *(("a.gz", PACK[method](b""), r"a\.gz is empty", "data.empty_file", "0 bytes") for method in PACK),
        ("a.csv", PACK["gzip"](b"PK\x03\x04...."), "zip archive or an Excel workbook", "data.compressed", "unpack"),
        ("a.csv", b"PK\x03\x04....", "zip archive or an Excel workbook", "data.compressed", "unpack"),
        ("a.json", b'[{"a": 1}]', "is JSON, but not one object a line", "data.json", "jq"),
        ("a.json", b'{\n"a": 1}', "is JSON, but not one object a line", "data.json", "jq"),
        ("a.jsonl", b'{"a": 1}\n{"a": 2\n', "line 2: malformed JSON: ", "data.malformed_json", "one object"),
        (
            "a.jsonl",
            b'{"a": 1}\n\n{"a": "x"}\n',
            "line 3: malformed JSON: column 'a' changed from number to string$",
            "data.malformed_json",
            "one type",
        ),
        (
            "a.jsonl",
            b'{"a": 1}\n[2]\n',
            "line 2: malformed JSON: it holds no object$",
            "data.malformed_json",
            "one type",
        ),
        ("tiny.parquet", b"PAR1", "truncated", "data.malformed_parquet", "again"),
        (
            "cut.parquet",
            parquet_bytes({"a": range(100)})[:-20],
            r"cut\.parquet .* truncated",
            "data.malformed_parquet",
            "again",
        ),
        ("no_rows.parquet", parquet_bytes({"a": pa.array([], pa.int64())}), "has no rows", "data.no_rows", "one row"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("data.") else "",
)
def test_contents_that_are_not_read(csv, refused, *, name, content, match, code, hint):
    error = refused(csv(content, name), match, code)
    assert error.where["file"] == name
    assert hint in error.hint


def test_damage_in_parquet(csv, refused):
    content = parquet_bytes({"a": range(100)})
    broken = content[:4] + b"\xff" * (len(content) - 12) + content[-8:]
    refused(csv(broken, "a.parquet"), r"a\.parquet is malformed Parquet", "data.malformed_parquet")
    content = parquet_bytes({"t": ["needle"] * 3, "n": [[1]] * 3}, compression="none", store_schema=False)
    for there, damaged in ((b"needle", b"ne\xffdle"), (b"element", b"el\xffment")):
        path = csv(content.replace(there, damaged), "a.parquet")
        refused(path, r"a\.parquet is malformed Parquet", "data.malformed_parquet")


def test_row_labels_of_pandas_are_left_out(csv):
    table = read_table(csv(parquet_bytes({"a": [1.0, 2.0], "__index_level_0__": [7, 9]}), "a.parquet"))
    assert table.names == ("a",)
    assert "row labels of pandas" in table.warnings[0]


@pytest.mark.parametrize(
    ("asked", "there", "hint"),
    [
        ("sales.csv", ["sale.csv", "after.csv"], "did you mean '{}/sale.csv'?"),
        ("sales.csv", ["sale.kt", "sale.csv"], "did you mean '{}/sale.csv'?"),
        ("sales.csv", ["sales.kt"], "did you mean '{}/sales.kt'?"),
        ("sales1.csv.bz2", ["sales1.csv", "sales.csv.bz2"], "did you mean '{}/sales1.csv'?"),
        ("nothere.csv", ["after.csv", "before.csv"], "looked in {}"),
        ("zzz/a.csv", [], "the folder {}/zzz is not there or cannot be listed"),
    ],
)
def test_a_missing_file_and_its_neighbour(csv, tmp_path, refused, *, asked, there, hint):
    for name in there:
        csv("a\n1\n", name)
    error = refused(tmp_path / asked, "does not exist", "data.missing_file")
    assert error.hint == hint.format(tmp_path)


def test_system_errors_never_escape(csv, monkeypatch, refused):
    path = csv("a\n1\n")
    for error, match, code in (
        (PermissionError(13, "Permission denied"), "permission denied", "data.permission_denied"),
        (OSError(5, "Input/output error"), "input/output error", "data.unreadable"),
    ):

        def failing(*_, error=error):
            raise error

        monkeypatch.setattr(Path, "open", failing)
        refused(path, rf"a\.csv cannot be read: {match}", code)
    monkeypatch.undo()
    refused("a\0b.csv", "cannot be read|does not exist", "data.unreadable")
    refused("", "name of the file is empty", "data.missing_file")


# Compression


@both
@pytest.mark.parametrize("name", ["before.csv", "before.parquet"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_compressed_files_are_read_whatever_they_are_called(csv, stdin, *, method, name, suffix):
    content = (SAMPLES / name).read_bytes()
    stored = PACK[method](content)
    stdin(stored)
    for path in (csv(stored, f"{name}{suffix}"), "-"):
        table, plain = read_table(path), read_table(SAMPLES / name)
        assert table.names == plain.names
        for one, other in zip(table.columns, plain.columns, strict=True):
            assert (one.kind, one.levels) == (other.kind, other.levels)
            np.testing.assert_array_equal(one.values, other.values)
        assert (table.compression, table.size, table.sha256) == (method, len(stored), digest(stored))
        assert table.format == Path(name).suffix[1:]


@both
def test_members_and_damage(csv, refused, streamed, method):
    path = csv(PACK[method](b"a\n" + b"".join(b"%d\n" % k for k in range(5000))))
    assert streamed(path, "a")["a"] == list(range(5000))
    assert read_table(csv(PACK[method](b"a\n1\n") + PACK[method](b"2\n3\n")))["a"].values.tolist() == [1, 2, 3]
    stored = PACK[method]((SAMPLES / "before.csv").read_bytes())
    # A frame of zstd may lack the checksum that gzip has; damage to its tables shows all the same.
    start = len(stored) // 2 if method == "gzip" else 10
    damaged = [stored[: int(kept * len(stored))] for kept in (0.2, 0.6, 0.98)]
    damaged += [stored[:start] + b"\xff" * 8 + stored[start + 8 :], PACK[method](b"a\n1\n") + b"junk"]
    for content in damaged:
        match = rf"a\.csv is compressed with {method}, but it is truncated or damaged: "
        refused(csv(content), match, "data.damaged_compression")


@both
def test_a_bomb_is_refused_before_it_unfolds(csv, monkeypatch, refused, method):
    monkeypatch.setattr(source, "LARGEST_UNPACKED", 1 << 20)
    path = csv(PACK[method](b"a\n" + b"0\n" * (1 << 23)))
    tracemalloc.start()
    refused(path, r"a\.csv unpacks to more than 0\.0 GiB, which is not read into memory", "data.too_large")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    assert read_table(csv(PACK[method](b"a\n" + b"0\n" * (1 << 16)))).n_rows == 1 << 16


def test_the_limit_is_half_of_the_memory_at_most(csv, monkeypatch, refused):
    assert 0 < largest_unpacked() <= source.LARGEST_UNPACKED
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(source.os, "sysconf", pages.__getitem__)
    assert largest_unpacked() == 2_048_000
    # Run lengths make a million rows very small.
    path = csv(parquet_bytes({"a": np.zeros(1_000_000), "b": np.zeros(1_000_000)}), "a.parquet")
    assert Path(path).stat().st_size < 10_000
    pages |= {"SC_PHYS_PAGES": 4 * 1_000_000, "SC_PAGE_SIZE": 8}
    assert read_table(path).n_rows == 1_000_000
    pages["SC_PHYS_PAGES"] -= 2
    refused(path, r"a\.parquet unpacks to more than 0\.0 GiB", "data.too_large")

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(source.os, "sysconf", unknown)
    assert largest_unpacked() == source.LARGEST_UNPACKED


# Several files


def test_a_glob_is_all_files_that_match_in_the_order_of_their_names(csv):
    contents = {"part1.csv": b"a,t\n1,z\n", "part10.csv": PACK["gzip"](b"a,t\n2,y\n"), "part2.csv": b"a,t\n3,x\n"}
    for name, content in {**contents, "other.csv": b"b\n1\n"}.items():
        csv(content, name)
    table = read_table("part*.csv")
    assert table["a"].values.tolist() == [1, 2, 3]
    assert (table["t"].levels, table.name, table.files) == (("x", "y", "z"), "part*.csv", tuple(contents))
    assert (table.size, table.compression) == (sum(map(len, contents.values())), "gzip")
    assert table.sha256 == digest("".join(f"{digest(content)}\n" for content in contents.values()).encode())
    command = "sha256sum part*.csv | cut -d' ' -f1 | sha256sum | cut -d' ' -f1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr or done.stdout.strip() == table.sha256
    assert read_table("part1.*").sha256 == digest(contents["part1.csv"])
    kept = table.take(np.array([0, 2]))
    assert [kept.where(row) for row in range(2)] == [{"file": name, "line": 2} for name in ("part1.csv", "part2.csv")]


@pytest.mark.parametrize("name", ["a[1].csv", "what?.csv", "all*.csv"])
def test_a_path_that_exists_wins_over_a_glob(csv, name):
    for other in ("a1.csv", "whats.csv", "allow.csv"):
        csv("a\n1\n", other)
    assert read_table(csv("a\n7\n", name))["a"].values.tolist() == [7]


def test_globs_in_folders(csv, tmp_path, refused):
    for k, name in enumerate(("a/x.csv", "b/y.csv", "c/z/y.csv", "d.csv/e"), start=1):
        csv(f"a\n{k}\n", name)
    assert read_table("*/?.csv")["a"].values.tolist() == [1, 2]
    assert read_table("**/[!d].csv")["a"].values.tolist() == [1, 2, 3]
    for pattern, folder in (("no*such.csv", tmp_path), ("a/*/y?.csv", tmp_path / "a")):
        error = refused(
            pattern, f"^no file matches {pattern.replace('*', '[*]').replace('?', '[?]')}$", "data.missing_file"
        )
        assert error.hint == f"looked in {folder}"


@pytest.mark.parametrize(
    ("second", "match", "code"),
    [
        ("a,c\n1,2\n", r"^p2\.csv has another header than p1\.csv: it lacks b; it has c$", "data.headers_differ"),
        ("a\n1\n", "it lacks b$", "data.headers_differ"),
        ("a,b,c\n1,2,3\n", "it has c$", "data.headers_differ"),
        ("b,a\n1,2\n", "its columns stand in another order$", "data.headers_differ"),
        ("a;b\n1;2\n", r"it lacks a, b; it has a;b; its delimiter seems to be ';', not ','$", "data.headers_differ"),
        (parquet_bytes({"a": [1]}), r"p2\.csv is Parquet, but p1\.csv is CSV", "data.formats_differ"),
        (
            '"a",b\n' + "1,2\n" * 9 + "abc,2\n",
            r"^p\*\.csv, line 11 of p2\.csv: column 'a' holds 'abc'",
            "data.not_a_number",
        ),
        ("a,b\n1,2\n2,3,4\n", r"^p2\.csv, line 3: expected 2 fields, found 3$", "data.ragged_rows"),
        ('a,b\n1,2\n"2,3\n', r"^p2\.csv, line 3: a quote is opened", "data.open_quote"),
        ("a,b\nZürich,1\n".encode("latin-1"), r"^p2\.csv, line 2: byte 0xfc is not UTF-8", "data.not_utf8"),
        ("", r"^p2\.csv is empty", "data.empty_file"),
    ],
)
def test_messages_name_the_file_that_differs_and_its_line(csv, refused, second, match, code):
    for name, content in (("p1.csv", "a,b\n\n1,2\n"), ("p2.csv", second), ("p3.csv", "a,b\n1,2\n")):
        csv(content, name)
    assert refused("p*.csv", match, code).where["file"] == "p2.csv"


def test_types_and_places_are_those_of_all_files(csv, refused):
    for k, row in enumerate(("1,2024-01-01,", "1.5,soon,7", "001,x,8", "", " "), start=1):
        csv(f"a,{' ' * (k == 2)}b,c\n{row}\n", f"p{k}.csv")
    table = read_table("p*.csv")
    assert [column.kind for column in table.columns] == ["text", "text", "number"]
    assert [table.place(row) for row in range(3)] == [f"line 2 of p{k}.csv" for k in (1, 2, 3)]
    assert read_table("p[12].csv")["a"].values.tolist() == [1, 1.5]
    refused("p[45].csv", "has a header but no rows", "data.no_rows")
    # A quote within a field opens nothing.
    csv('a,b,c\n1,5" x,1\n2,y,1\n', "p1.csv")
    csv("a,b,c\n\n3,z,1\n", "p2.csv")
    table = read_table("p[12].csv")
    assert [table.place(row) for row in range(3)] == ["line 2 of p1.csv", "line 3 of p1.csv", "line 3 of p2.csv"]


def test_a_folder_of_parquet_is_read_in_the_order_of_names(csv, tmp_path, refused):
    assert refused(tmp_path, "is a folder without Parquet files", "data.empty_folder").where["file"] == str(tmp_path)
    contents = [
        parquet_bytes({"v": [1, 2], "t": ["a", "a"]}),
        PACK["gzip"](parquet_bytes({"v": [3, 4, 5], "t": ["b", "b", "b"]})),
    ]
    for name, content in zip(("d/a.PARQUET", "d/b.parquet"), contents, strict=True):
        csv(content, name)
    for name in ("d/readme.txt", "d/2024/c.parquet", "d/_SUCCESS", "d/.hidden.parquet"):
        csv("x", name)
    table = read_table("d/")
    assert (table["v"].values.tolist(), table["t"].levels) == ([1, 2, 3, 4, 5], ("a", "b"))
    assert (table.files, table.compression) == (("d/a.PARQUET", "d/b.parquet"), "gzip")
    assert table.sha256 == digest("".join(f"{digest(content)}\n" for content in contents).encode())
    assert table.warnings == ("of the folder d/ only the Parquet files are read, not 2024/, readme.txt",)
    assert (table.place(2), table.where(2)) == ("row 1 of d/b.parquet", {"file": "d/b.parquet", "row": 1})


@pytest.mark.parametrize(
    ("other", "match", "code"),
    [
        (
            parquet_bytes({"v": ["x"]}),
            r"b\.parquet has other columns or types than .*a\.parquet: column 'v' is string, not int64",
            "data.schemas_differ",
        ),
        (parquet_bytes({"w": [1]}), "other columns or types than .*: it lacks v; it has w$", "data.schemas_differ"),
        (parquet_bytes({"v": [1], "w": [1]}), "other columns or types than .*: it has w$", "data.schemas_differ"),
        (b"v\n1\n", r"b\.parquet is named \.parquet", "data.not_parquet"),
    ],
)
def test_files_of_a_folder_that_do_not_fit(csv, refused, other, match, code):
    csv(parquet_bytes({"v": [1]}), "d/a.parquet")
    csv(other, "d/b.parquet")
    refused("d", match, code)


def test_a_folder_of_folders_tells_the_glob_that_reads_them(csv, refused):
    for month in (1, 2):
        csv(parquet_bytes({"a": [month]}), f"d/month={month}/p.parquet")
    error = refused("d", "d is a folder without Parquet files", "data.empty_folder")
    assert error.hint == "folders in it hold some: 'd/*/*.parquet' reads them"
    assert read_table("d/*/*.parquet")["a"].values.tolist() == [1, 2]


# JSON lines


def test_json_lines_are_a_table(csv, streamed, stdin):
    objects = [{"carat": k / 4, "cut": "Ideal" if k % 2 else "Good", "day": f"2025-01-{k + 1:02}"} for k in range(8)]
    content = "\n".join(json.dumps(one) for one in [*objects, {"cut": None, "carat": 5}])
    table = read_table(csv(content))
    names = ("carat", "cut", "day")
    assert (table.names, [column.kind for column in table.columns]) == (names, ["number", "text", "date"])
    assert (table.format, table.n_rows, table["day"].n_missing) == ("json", 9, 1)
    assert table["carat"].values.tolist() == [*(k / 4 for k in range(8)), 5]
    assert header_names("a.csv") == names
    stdin(content.encode())
    for path in ("a.csv", "-"):
        assert streamed(path, names)["carat"] == table["carat"].values.tolist()
    report = kerntest.inspect_table("a.csv")
    assert (report.format, report.delimiter) == ("json", None)


def test_a_name_twice_in_parquet_is_told(tmp_path):
    parquet.write_table(pa.table([[1.0, 2.0], [3.0, 4.0]], names=["t", "t"]), tmp_path / "twice.parquet")
    with pytest.raises(kerntest.errors.DataError, match="more than one column named 't'"):
        read_table(tmp_path / "twice.parquet")


@pytest.mark.skipif(not Path("/dev/urandom").exists(), reason="a device of Unix")
def test_what_never_ends_is_refused():
    for read in (read_table, lambda path: open_blocks(path).__enter__()):
        with pytest.raises(
            DataError, match="/dev/urandom is a device, of which nobody knows whether it ends"
        ) as caught:
            read("/dev/urandom")
        assert caught.value.code == "data.device"
        with pytest.raises(DataError, match="is empty"):
            read("/dev/null")


def test_a_first_line_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(source, "LONGEST_LINE", 1 << 21)
    chunk = 1 << 20
    for content, fits in (
        (b"x" * (chunk - 1), True),
        (b"x" * 3 * chunk, False),
        (b"a\n" + b"x" * 3 * chunk, True),
        (b"x" * (2 * chunk - 1) + b"\r" + b"x" * chunk, True),
        (b"PAR1" + b"x" * 3 * chunk, True),
        (b"\x1f\x8b" + b"x" * 3 * chunk, True),
    ):
        chunks = source.chunks_with_lines(io.BytesIO(content), "pipe")
        if fits:
            assert b"".join(chunks) == content
        else:
            with pytest.raises(DataError, match="pipe is no table: its first line does not end within 2 MiB"):
                list(chunks)
