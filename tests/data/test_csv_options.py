"""CSV that needed another tool first: encodings, headers, comments, delimiters; JSON lines; whole and in blocks."""

import json
import sys

import numpy as np
import pytest

import kerntest
from kerntest import read_table
from kerntest.data.formats.dialect import header_names
from kerntest.data.read import open_blocks
from kerntest.errors import DataError, UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def streamed(path, names, **csv):
    """Return columns of numbers, read in small blocks."""
    with open_blocks(path, block_bytes=64, **csv) as reader:
        assert list(reader.names) == names
        blocks = [
            block.table for piece in reader.pieces(dict.fromkeys(names, "number")).items for block in piece.blocks()
        ]
    return {name: np.concatenate([table[name].values for table in blocks]).tolist() for name in names}


ROWS = "".join(f"{i}~{i * i}\n" for i in range(40))


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (f"a~b\n{ROWS}".encode(), {"delimiter": "~"}),
        (f"a~b\n{ROWS}".replace("~", " ").encode(), {"delimiter": "space"}),
        (f"a~b\n{ROWS}".replace("~", "\t").encode("utf-16"), {"encoding": "utf-16"}),
        (
            f"# größe\na~b\n{ROWS}# the end\n".encode("latin-1"),
            {"encoding": "latin-1", "comment": "#", "delimiter": "~"},
        ),
        (f"//x,y\na~b\n{ROWS}".replace("~", ",").encode(), {"comment": "//"}),
    ],
)
def test_what_text_alone_does_not_tell_can_be_said(folder, content, options):
    (folder / "a.csv").write_bytes(content)
    table = read_table("a.csv", **options)
    assert table.names == ("a", "b")
    assert table["b"].values.tolist() == [i * i for i in range(40)]
    assert streamed("a.csv", ["a", "b"], **options) == {name: table[name].values.tolist() for name in "ab"}


def test_rows_without_a_header(folder):
    (folder / "a.csv").write_text("1,2\n3,4\n")
    assert "--no-header reads it as a row" in read_table("a.csv").warnings[0]
    table = read_table("a.csv", header=False)
    assert (table.names, table.lines.tolist(), table.warnings) == (("x1", "x2"), [1, 2], ())
    assert streamed("a.csv", ["x1", "x2"], header=False) == {"x1": [1, 3], "x2": [2, 4]}


def test_comments_keep_the_numbers_of_lines_and_are_none_between_quotes(folder):
    (folder / "a.csv").write_text('# it\'s 5" long\na,t\n1,"x\n#y"\n# a\n2,z\n')
    table = read_table("a.csv", comment="#")
    assert table.lines.tolist() == [3, 6]
    assert table["t"].levels == ("x\n#y", "z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "ab"}, "delimiter must be one character"),
        ({"delimiter": "1"}, "delimiter must be one character"),
        ({"encoding": "utf8000"}, "no encoding is called 'utf8000'"),
        ({"encoding": "rot13"}, "no encoding is called 'rot13'"),
        ({"comment": '"'}, "comment must be a few characters"),
    ],
)
def test_options_without_a_meaning_are_refused(options, message):
    for read in (lambda: read_table("a.csv", **options), lambda: kerntest.mmd_test("a.csv", "b.csv", **options)):
        with pytest.raises(UsageError, match=message) as caught:
            read()
        assert (caught.value.exit_code, bool(caught.value.hint)) == (2, True)


def test_text_of_another_encoding_is_refused(folder):
    (folder / "a.csv").write_bytes("a\n1\nü\n".encode("latin-1"))
    for options in ({"comment": "#"}, {"encoding": "ascii"}):
        with pytest.raises(DataError, match=r"is not .* text, in line") as caught:
            read_table("a.csv", **options)
        assert caught.value.exit_code == 3


# JSON lines

OBJECTS = [{"carat": i / 4, "cut": "Ideal" if i % 2 else "Good", "day": f"2025-01-{i + 1:02}"} for i in range(8)]


def write_lines(path, objects):
    path.write_text("".join(f"{json.dumps(one)}\n" for one in objects))


def test_json_lines_are_a_table(folder):
    write_lines(folder / "a.csv", [*OBJECTS, {"cut": None, "carat": 5}])
    table = read_table("a.csv")
    assert [(column.name, column.kind) for column in table.columns] == [
        ("carat", "number"),
        ("cut", "text"),
        ("day", "date"),
    ]
    assert (table.format, table.n_rows, table["day"].n_missing) == ("json", 9, 1)
    assert table["carat"].values.tolist() == [*(i / 4 for i in range(8)), 5]
    assert header_names("a.csv") == ("carat", "cut", "day")
    assert streamed("a.csv", ["carat", "cut", "day"])["carat"] == table["carat"].values.tolist()
    report = kerntest.inspect_table("a.csv")
    assert (report.format, report.delimiter) == ("json", None)


def test_json_that_cannot_be_read_says_where(folder):
    (folder / "a.jsonl").write_text('{"a": 1}\n{"a": 2\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2 is malformed JSON: ") as caught:
        read_table("a.jsonl")
    assert (caught.value.exit_code, caught.value.code) == (3, "data.malformed_json")
    write_lines(folder / "a.jsonl", [{"a": 1}, {"a": "x"}])
    changed = r"a\.jsonl, line 2 is malformed JSON: column 'a' changed from number to string$"
    with pytest.raises(DataError, match=changed) as caught:
        read_table("a.jsonl")
    assert "one type" in caught.value.hint
    for text in (json.dumps(OBJECTS), json.dumps(OBJECTS, indent=1), json.dumps(OBJECTS[0], indent=1)):
        (folder / "a.json").write_text(text)
        with pytest.raises(DataError, match=r"a\.json is JSON, but not one object a line") as caught:
            read_table("a.json")
        assert "jq" in caught.value.hint


def test_a_header_in_braces_is_csv(folder):
    (folder / "a.csv").write_text("{a},b\n1,2\n")
    assert read_table("a.csv").names == ("{a}", "b")


def test_json_lines_from_a_pipe(folder, monkeypatch):
    write_lines(folder / "a.jsonl", OBJECTS)
    with (folder / "a.jsonl").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert streamed("-", ["carat", "cut", "day"])["carat"][:2] == [0, 0.25]


def test_a_file_with_blanks_between_fields_is_told(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b c\n1 2 3\n2 3 4\n")
    assert any("--delimiter space reads its words as 3 columns" in warning for warning in read_table(path).warnings)
    assert read_table(path, delimiter="space").names == ("a", "b", "c")
    path.write_text("full name\nJane Doe\nMadonna\n")
    assert not any("--delimiter" in warning for warning in read_table(path).warnings)
