"""Quoted globs and folders: which files they mean, and several files read as one table."""

import gzip
import hashlib
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from kerntest import read_table
from kerntest.data.columns import select_columns
from kerntest.errors import DataError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder; the function writes files into it."""
    monkeypatch.chdir(tmp_path)

    def write(**contents):
        for name, content in contents.items():
            path = tmp_path / name.replace("__", ".").replace("_in_", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def refused(path, match, code):
    with pytest.raises(DataError, match=match) as caught:
        select_columns(read_table(path))
    assert caught.value.exit_code == 3
    assert caught.value.code == code
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def test_a_glob_is_all_files_that_match_in_the_order_of_their_names(folder):
    folder(part2__csv="a,t\n3,x\n", part10__csv="a,t\n2,y\n", part1__csv="a,t\n1,z\n", other__csv="b\n1\n")
    table = read_table("part*.csv")
    assert table["a"].values.tolist() == [1, 2, 3]
    assert table["t"].levels == ("x", "y", "z")
    assert (table.name, table.files) == ("part*.csv", ("part1.csv", "part10.csv", "part2.csv"))
    assert table.size == 3 * len("a,t\n3,x\n")


def test_the_digest_is_that_of_the_digests_and_a_shell_can_check_it(folder):
    folder(a1__csv="a\n1\n", a2__csv=gzip.compress(b"a\n2\n", mtime=0))
    table = read_table("a*.csv")
    digests = "".join(
        hashlib.sha256(content).hexdigest() + "\n" for content in (b"a\n1\n", gzip.compress(b"a\n2\n", mtime=0))
    )
    assert table.sha256 == hashlib.sha256(digests.encode()).hexdigest()
    command = "sha256sum a*.csv | cut -d' ' -f1 | sha256sum | cut -d' ' -f1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    if done.stderr == "":
        assert done.stdout.strip() == table.sha256
    assert table.compression == "gzip"
    assert read_table("a1*").sha256 == hashlib.sha256(b"a\n1\n").hexdigest()


@pytest.mark.parametrize("name", ["a[1].csv", "what?.csv", "all*.csv"])
def test_a_path_that_exists_wins_over_a_glob(folder, name):
    base = folder(a1__csv="a\n1\n", whats__csv="a\n1\n", allow__csv="a\n1\n")
    (base / name).write_text("a\n7\n")
    assert read_table(name)["a"].values.tolist() == [7]


def test_globs_in_folders(folder):
    folder(x_in_a__csv="a\n1\n", y_in_b__csv="a\n2\n", y_in_z_in_c__csv="a\n3\n", y_in_d__csv_in_e="")
    assert read_table("*/?.csv")["a"].values.tolist() == [1, 2]
    assert read_table("**/[!d].csv")["a"].values.tolist() == [1, 2, 3]


def test_nothing_matches(folder):
    base = folder(a__csv="a\n1\n")
    error = refused("no*such.csv", r"^no file matches no\*such\.csv$", "data.missing_file")
    assert error.hint == f"looked in {base}"
    assert refused("x/*/y?.csv", "no file matches", "data.missing_file").hint == f"looked in {base / 'x'}"


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("a,c\n", r"^p2\.csv has another header than p1\.csv: it lacks b; it has c$"),
        ("a\n", "it lacks b$"),
        ("a,b,c\n", "it has c$"),
        ("b,a\n", "the columns stand in another order$"),
        ("a;b\n", r"it lacks a, b; it has a;b; its delimiter seems to be ';', not ','$"),
    ],
)
def test_another_header_names_the_file_that_differs(folder, header, match):
    folder(p1__csv="a,b\n1,2\n", p2__csv=header + "1,2\n", p3__csv="a,b\n1,2\n")
    assert refused("p*.csv", match, "data.headers_differ").where == {"file": "p2.csv", "line": 1}


def test_formats_do_not_mix(folder):
    base = folder(p1__csv="a\n1\n")
    parquet.write_table(pa.table({"a": [1]}), base / "p2.csv")
    refused("p*", r"p2\.csv is Parquet, but p1\.csv is CSV", "data.formats_differ")


def test_types_are_decided_on_all_files(folder):
    folder(p1__csv="a,b,c\n1,2024-01-01,\n", p2__csv="a,b,c\n1.5,soon,7\n", p3__csv="a,b,c\n001,x,8\n")
    table = read_table("p*.csv")
    assert [column.kind for column in table.columns] == ["text", "text", "number"]
    assert read_table("p[12].csv")["a"].values.tolist() == [1, 1.5]


def test_messages_name_the_file_and_its_line(folder):
    numbers = "".join(f"{i}\n" for i in range(10))
    folder(p1__csv="a\n\n" + numbers, p2__csv='"a"\n' + numbers + "abc\n")
    error = refused("p*.csv", r"^p\*\.csv, line 12 of p2\.csv: column 'a' holds 'abc'", "data.not_a_number")
    assert error.where == {"file": "p2.csv", "line": 12, "column": "a", "value": "abc"}
    folder(p2__csv="a\n1\n2,3\n")
    refused("p*.csv", r"^p2\.csv, line 3: expected 1 field, found 2$", "data.ragged_rows")
    folder(p2__csv='a\n1\n"2\n')
    refused("p*.csv", r"^p2\.csv, line 3: a quote is opened", "data.open_quote")
    folder(p2__csv="a\nZürich\n".encode("latin-1"))
    refused("p*.csv", r"^p2\.csv, line 2: byte 0xfc is not UTF-8", "data.not_utf8")
    folder(p2__csv="")
    refused("p*.csv", r"^p2\.csv is empty", "data.empty_file")


def test_files_without_rows_are_no_trouble_unless_all_are(folder):
    folder(p1__csv="a,b\n", p2__csv="a,b\n1,2", p3__csv="a,b\n\n \n", p4__csv="a,b\r\n3,4\r\n")
    table = read_table("p*.csv")
    assert table["b"].values.tolist() == [2, 4]
    assert [table.place(row) for row in range(2)] == ["line 2 of p2.csv", "line 2 of p4.csv"]
    refused("p[13].csv", r"has a header but no rows", "data.no_rows")


def test_rows_that_are_taken_keep_their_files(folder):
    folder(p1__csv="a\n1\n2\n", p2__csv="a\n3\n4\n")
    kept = read_table("p*.csv").take(np.array([1, 3]))
    assert [kept.where(row) for row in range(2)] == [{"file": "p1.csv", "line": 3}, {"file": "p2.csv", "line": 3}]


CELLS = st.lists(st.tuples(st.sampled_from(["x", "p\nq", 'a "b"', "\n\n"]), st.integers(0, 2)), max_size=5)


@given(st.lists(CELLS, min_size=2, max_size=4).filter(any), st.booleans())
def test_places_of_rows_agree_with_counting(tmp_path_factory, files, ends_with_newline):
    folder, expected = tmp_path_factory.mktemp("places"), []
    for index, cells in enumerate(files):
        text = '"h\ne",i\n'
        for value, n_blank in cells:
            expected.append((index, text.count("\n") + 1))
            quoted = value.replace('"', '""')
            text += f'"{quoted}",1\n' + "\n" * n_blank
        (folder / f"f{index}").write_text(text if ends_with_newline else text.rstrip("\n"))
    table = read_table(folder / "f*")
    assert list(zip(table.file_of.tolist(), table.lines.tolist(), strict=True)) == expected


def test_lines_that_cannot_be_told_are_counted_over_all_files(folder):
    folder(p1__csv='a,t\n1,5" x\n2,y\n', p2__csv="a,t\n\n3,z\n")
    table = read_table("p*.csv")
    assert (table.n_rows, table.lines, table.file_of, table.place(2)) == (3, None, None, "row 3")


# Folders of Parquet


def test_what_a_folder_holds_beside_parquet_is_told(folder):
    base = folder(d_in_readme__txt="x", d_in_2024_in_b__parquet="x")
    (base / "d" / "_SUCCESS").write_text("")
    (base / "d" / ".hidden.parquet").write_text("x")
    parquet.write_table(pa.table({"a": [1]}), base / "d" / "a.PARQUET")
    table = read_table("d/")
    assert table["a"].values.tolist() == [1]
    assert table.warnings == ("of the folder d/ only the Parquet files are read, not 2024/, readme.txt",)


def test_a_folder_of_folders_tells_the_glob_that_reads_them(folder):
    base = folder(d_in_note__txt="x")
    for month in ("month=1", "month=2"):
        (base / "d" / month).mkdir()
        parquet.write_table(pa.table({"a": [int(month[-1])]}), base / "d" / month / "p.parquet")
    error = refused("d", "d is a folder without Parquet files", "data.empty_folder")
    assert error.hint == "folders in it hold some: 'd/*/*.parquet' reads them"
    assert read_table("d/*/*.parquet")["a"].values.tolist() == [1, 2]
