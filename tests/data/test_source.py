"""Where bytes come from: files, folders, stdin, and everything that is refused."""

import gzip
import hashlib
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import read_table
from kerntest.errors import DataError


def write(path: Path, content: bytes | str) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refused(path: str | Path, match: str, code: str) -> DataError:
    with pytest.raises(DataError, match=match) as caught:
        read_table(path)
    assert caught.value.exit_code == 3
    assert caught.value.code == code
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def test_file_keeps_its_name_format_and_digest(tmp_path):
    path = write(tmp_path / "a.csv", "a,b\n1,x\n2,y\n")
    table = read_table(path)
    assert table.name == path
    assert (table.format, table.delimiter, table.n_rows, table.names) == ("csv", ",", 2, ("a", "b"))
    assert table.sha256 == hashlib.sha256(b"a,b\n1,x\n2,y\n").hexdigest()
    assert read_table(Path(path), name="reference").name == "reference"


def test_stdin_is_read_once_and_digested(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n1\n2\n")))
    table = read_table("-")
    assert table.name == "<stdin>"
    assert table["a"].values.tolist() == [1.0, 2.0]
    assert table.sha256 == hashlib.sha256(b"a\n1\n2\n").hexdigest()
    refused("-", "<stdin> is empty", "data.empty_file")


def test_parquet_on_stdin(monkeypatch):
    stream = io.BytesIO()
    parquet.write_table(pa.table({"a": [1, 2]}), stream)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.getvalue())))
    table = read_table("-")
    assert (table.format, table["a"].values.tolist()) == ("parquet", [1.0, 2.0])


def test_format_is_told_by_content(tmp_path):
    path = tmp_path / "really_parquet.csv"
    parquet.write_table(pa.table({"a": [1.5, 2.5]}), path)
    assert read_table(path).format == "parquet"


def test_text_named_parquet(tmp_path):
    error = refused(
        write(tmp_path / "a.parquet", "a,b\n1,2\n"),
        r"a\.parquet is named \.parquet but it is not Parquet",
        "data.not_parquet",
    )
    assert "looks like CSV" in error.hint
    junk = refused(write(tmp_path / "b.pq", b"\x01\0\x02\0"), r"named \.pq but it is not Parquet", "data.not_parquet")
    assert "damaged" in junk.hint


def test_missing_file_and_its_neighbour(tmp_path):
    write(tmp_path / "reference.csv", "a\n1\n")
    error = refused(tmp_path / "refrence.csv", r"refrence\.csv does not exist", "data.missing_file")
    assert error.hint == f"did you mean '{tmp_path / 'reference.csv'}'?"
    far = refused(tmp_path / "zzz" / "a.csv", r"a\.csv does not exist", "data.missing_file")
    assert "zzz is not there" in far.hint
    assert "looked in" in refused(tmp_path / "qqqq", "does not exist", "data.missing_file").hint
    refused("", "name of the file is empty", "data.missing_file")


def test_system_errors_never_escape(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", "a\n1\n")

    def denied(_):
        raise PermissionError(13, "Permission denied")

    def broken(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", denied)
    refused(path, r"a\.csv cannot be read: permission denied", "data.permission_denied")
    monkeypatch.setattr(Path, "read_bytes", broken)
    refused(path, r"a\.csv cannot be read: input/output error", "data.unreadable")
    monkeypatch.undo()
    refused("a\0b.csv", "cannot be read|does not exist", "data.unreadable")


@pytest.mark.parametrize("content", [b"", b"\n", b"  \r\n\t\n", b"\xef\xbb\xbf", b" " * 5000])
def test_empty_file(tmp_path, content):
    refused(write(tmp_path / "a.csv", content), r"a\.csv is empty", "data.empty_file")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (gzip.compress(gzip.compress(b"a\n1\n")), "is compressed twice, with gzip within gzip"),
        (gzip.compress(b"PK\x03\x04...."), "zip archive or an Excel workbook"),
        (b"PK\x03\x04....", "zip archive or an Excel workbook"),
    ],
)
def test_compressed_content_that_is_not_read(tmp_path, content, match):
    refused(write(tmp_path / "a.csv", content), match, "data.compressed")


def test_binary_and_other_encodings(tmp_path):
    refused(write(tmp_path / "a.csv", b"\x7fELF\0\0\0"), "holds binary data", "data.not_text")
    latin = refused(
        write(tmp_path / "b.csv", "city\nParis\nZürich\n".encode("latin-1")),
        r"b\.csv, line 3: byte 0xfc is not UTF-8",
        "data.not_utf8",
    )
    assert latin.hint == "if it is Latin-1, --encoding latin-1 reads it"
    wide = refused(write(tmp_path / "c.csv", "a,b\n1,2\n".encode("utf-16")), "is UTF-16, not UTF-8", "data.not_utf8")
    assert wide.hint == "--encoding utf-16 reads it"


def test_malformed_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": list(range(100))}), path)
    content = path.read_bytes()
    refused(write(tmp_path / "cut.parquet", content[:-20]), r"cut\.parquet .* truncated", "data.malformed_parquet")
    refused(write(tmp_path / "tiny.parquet", b"PAR1"), "truncated", "data.malformed_parquet")
    broken = content[:4] + b"\xff" * (len(content) - 12) + content[-8:]
    refused(write(tmp_path / "bad.parquet", broken), r"bad\.parquet is malformed Parquet", "data.malformed_parquet")


def test_parquet_with_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"t": ["needle"] * 3, "n": [[1]] * 3}), path, compression="none", store_schema=False)
    content = path.read_bytes()
    in_values = write(tmp_path / "values.parquet", content.replace(b"needle", b"ne\xffdle"))
    refused(in_values, r"values\.parquet is malformed Parquet", "data.malformed_parquet")
    in_names = write(tmp_path / "names.parquet", content.replace(b"element", b"el\xffment"))
    refused(in_names, r"names\.parquet is malformed Parquet", "data.malformed_parquet")


def test_folder_of_parquet_is_read_in_order_of_names(tmp_path):
    for name, values in (("b", [3, 4]), ("a", [1, 2])):
        parquet.write_table(pa.table({"v": values, "t": [name, name]}), tmp_path / f"{name}.parquet")
    (tmp_path / "notes.txt").write_text("not read")
    table = read_table(tmp_path)
    assert table["v"].values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table["t"].levels == ("a", "b")
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("a.parquet", "b.parquet")]
    assert table.sha256 == hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()
    assert table.files == (f"{tmp_path}/a.parquet", f"{tmp_path}/b.parquet")
    assert table.warnings == (f"of the folder {tmp_path} only the Parquet files are read, not notes.txt",)
    assert (table.place(2), table.where(2)) == (f"row 3 of {tmp_path}/b.parquet", {"file": str(tmp_path), "row": 3})


def test_folder_errors(tmp_path):
    error = refused(tmp_path, "is a folder without Parquet files", "data.empty_folder")
    assert error.where["file"] == str(tmp_path)
    parquet.write_table(pa.table({"v": [1]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"v": ["x"]}), tmp_path / "b.parquet")
    differing = refused(tmp_path, r"b\.parquet has other columns or types than .*a\.parquet", "data.schemas_differ")
    assert "column 'v' is string, not int64" in differing.message
    parquet.write_table(pa.table({"w": [1]}), tmp_path / "b.parquet")
    refused(tmp_path, "other columns or types than .*: it lacks v", "data.schemas_differ")
    write(tmp_path / "b.parquet", "v\n1\n")
    refused(tmp_path, r"b\.parquet is named \.parquet", "data.not_parquet")


def test_row_labels_of_pandas_are_left_out(tmp_path):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "__index_level_0__": [7, 9]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.names == ("a",)
    assert "row labels of pandas" in table.warnings[0]
