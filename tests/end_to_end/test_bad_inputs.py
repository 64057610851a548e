"""Whatever is wrong: the right exit code, one line that says what, one that says what to do, and nothing on stdout."""

import json
import os

import numpy as np
import pytest
from command_line import run_process

BAD_FILES = {
    "empty": (b"", "bad.csv is empty"),
    "header_only": (b"a,b\n", "bad.csv has a header but no rows"),
    "ragged": (b"a,b\n1,2\n3\n4,5\n", "bad.csv, line 3: expected 2 fields, found 1"),
    "binary": (bytes(range(256)) * 8, "bad.csv is neither CSV nor Parquet"),
    "duplicate_headers": (b"a,a\n1,2\n3,4\n", "bad.csv has more than one column named 'a'"),
    "text_among_numbers": (
        b"a,b\n" + b"1,2\n" * 20 + b"oops,4\n",
        "bad.csv, line 22: column 'a' holds 'oops', which is not a number (20 of 21 values are)",
    ),
    "missing_value": (b"a,b\n1,2\nNaN,4\n5,6\n", "bad.csv has 1 missing value: a 1 (the first in line 3)"),
    "infinity": (b"a,b\n1,2\ninf,4\n5,6\n", "bad.csv, line 3: column 'a' holds 'inf', which is not a finite number"),
    "one_row": (b"a,b\n1,2\n", "bad.csv has 1 row; the test needs at least 2 in each table"),
    "no_common_column": (b"c,d\n1,2\n3,4\n5,7\n", "bad.csv and y.csv have no column in common"),
    "another_column": (b"a,b,c\n1,2,3\n3,4,1\n", "bad.csv and y.csv have different columns: only in bad.csv: c"),
    "another_type": (b"a,b\nred,2\nblue,4\nred,1\n", "column 'a'"),
    "latin_1": ("a,b\n1,2\n3,4\n".replace("a", "größe").encode("latin-1"), "bad.csv, line 1: byte 0xf6 is not UTF-8"),
    "damaged_gzip": (b"\x1f\x8b\x08\x00rest", "bad.csv"),
}

BAD_OPTIONS = {
    "unknown_option": (["--bandwith", "1"], "no such option: --bandwith", "did you mean --bandwidth?"),
    "unknown_column": (["--columns", "aa"], "column 'aa' is in neither x.csv nor y.csv", "did you mean 'a'?"),
    "excluded_column_unknown": (["--exclude", "z"], "column 'z' is in neither x.csv nor y.csv", "columns are a, b"),
    "nothing_left": (["--exclude", "a,b"], "no column of x.csv and y.csv is selected", "exclude fewer"),
    "alpha_0": (["--alpha", "0"], "--alpha must be a number between 0 and 1, both excluded, not '0'", "--help"),
    "alpha_1": (["--alpha", "1"], "--alpha must be a number between 0 and 1, both excluded, not '1'", "--help"),
    "alpha_abc": (["--alpha", "abc"], "--alpha must be a number between 0 and 1, both excluded, not 'abc'", "--help"),
    "bandwidth_0": (["--bandwidth", "0"], "--bandwidth must be auto, median, or positive numbers", "--help"),
    "bandwidth_minus_1": (["--bandwidth", "-1"], "--bandwidth must be auto, median, or positive numbers", "--help"),
    "bandwidth_nan": (["--bandwidth", "nan"], "--bandwidth must be auto, median, or positive numbers", "--help"),
    "bandwidth_abc": (["--bandwidth", "abc"], "--bandwidth must be auto, median, or positive numbers", "--help"),
    "bandwidth_twice": (
        ["--kernel", "gaussian(1.5)", "--bandwidth", "2"],
        "the kernel 'gaussian(1.5)' leaves no bandwidth open: --bandwidth has nothing to set",
        "leave out one of the two",
    ),
    "several_for_moments": (
        ["--null", "moments", "--kernel", "gaussian", "--bandwidth", "1,2"],
        "this null judges one kernel: give one bandwidth",
        "--null permutation judges several bandwidths together",
    ),
}

# The caret must stand under this character of the text.
BAD_KERNELS = {
    "misspelt": ("gaussain(1.5)", 1, "unknown kernel 'gaussain'", "did you mean 'gaussian'?"),
    "inside": ("laplacian + 0.5*gauss!an", 17, "unknown kernel 'gauss' at character 17", ""),
    "unclosed": ("gaussian(1.5", 9, "never closed at character 9", "add a ')'"),
    "bad_bandwidth": ("gaussian(-1)", 10, "bandwidth of gaussian must be positive, not -1", "`kerntest kernels` shows"),
    "trailing": ("gaussian(1) gaussian(2)", 13, "character 13", ""),
    "unknown_column": ("z: gaussian; *: laplacian", 1, "'z'", ""),
}


def check_failure(outcome, code, message, hint=""):
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    hints = [line for line in lines if line.startswith("hint: ")]
    assert (outcome.code, outcome.out) == (code, "")
    assert len(errors) == 1
    assert lines[0] == errors[0]
    assert message in errors[0]
    assert hints == lines[-1:]
    assert len(hints[0]) > len("hint: ")
    assert hint in hints[0]
    assert "Traceback" not in outcome.err
    return lines


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_be_used_is_3(kerntest, good, name):
    content, message = BAD_FILES[name]
    (good / "bad.csv").write_bytes(content)
    lines = check_failure(kerntest("mmd", "bad.csv", "y.csv"), 3, message)
    assert len(lines) == 2
    # Nor is it better as the second file.
    assert kerntest("mmd", "x.csv", "bad.csv").code == 3


def test_a_file_that_is_not_there_is_3(kerntest, good):
    check_failure(kerntest("mmd", "y.cvs", "y.csv"), 3, "y.cvs does not exist", "did you mean 'y.csv'?")
    check_failure(kerntest("mmd", good / "no" / "x.csv", "y.csv"), 3, "does not exist")


def test_a_folder_without_parquet_is_3(kerntest, good):
    (good / "folder").mkdir()
    check_failure(kerntest("mmd", "folder", "y.csv"), 3, "folder is a folder without Parquet files", "name one file")


def test_text_named_parquet_is_3(kerntest, good):
    (good / "x.parquet").write_bytes((good / "x.csv").read_bytes())
    check_failure(kerntest("mmd", "x.parquet", "y.csv"), 3, "x.parquet is named .parquet but it is not Parquet", "CSV")


def test_a_damaged_parquet_is_3(kerntest, good, shop):
    content = (shop / "before.parquet").read_bytes()
    (good / "cut.parquet").write_bytes(content[: len(content) // 2])
    check_failure(kerntest("mmd", "cut.parquet", "y.csv"), 3, "cut.parquet")


def test_only_constant_columns_are_3(kerntest, good):
    for name in ("same.csv", "also.csv"):
        (good / name).write_text("a,b\n1,2\n1,2\n1,2\n", encoding="utf-8")
    check_failure(kerntest("mmd", "same.csv", "also.csv"), 3, "no column of same.csv and also.csv is left to compare")


def test_an_empty_stdin_is_3(kerntest, good):
    del good
    check_failure(kerntest("mmd", "-", "y.csv", stdin=os.devnull), 3, "<stdin> is empty")


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_an_option_that_makes_no_sense_is_2(kerntest, good, name):
    del good
    arguments, message, hint = BAD_OPTIONS[name]
    assert len(check_failure(kerntest("mmd", "x.csv", "y.csv", *arguments), 2, message, hint)) == 2


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_a_kernel_that_cannot_be_read_is_2_and_shows_where(kerntest, good, name):
    del good
    text, position, message, hint = BAD_KERNELS[name]
    lines = check_failure(kerntest("mmd", "x.csv", "y.csv", "--kernel", text), 2, message, hint)
    _, picture, caret, _ = lines
    assert picture == f"  {text}"
    assert caret == " " * (2 + position - 1) + "^"


@pytest.mark.parametrize("null", ["permutation", "moments"])
def test_a_kernel_that_sees_nothing_is_4(kerntest, good, null):
    rng = np.random.default_rng(0)
    for name in ("x.csv", "y.csv"):
        np.savetxt(good / name, rng.normal(size=(20, 2)), delimiter=",", header="a,b", comments="")
    outcome = kerntest("mmd", "x.csv", "y.csv", "--kernel", "gaussian(1e-9)", "--null", null)
    check_failure(outcome, 4, "the kernel 'gaussian(1e-09)' finds all pairs of different rows equally", "--bandwidth")


def test_a_kernel_that_overflows_is_4(kerntest, good):
    del good
    outcome = kerntest("mmd", "x.csv", "y.csv", "--kernel", "exponential(gain=1e6)")
    check_failure(outcome, 4, "overflows on these", "scale")


@pytest.mark.parametrize("output", ["no/such/folder.json", "."])
def test_an_output_that_cannot_be_written_is_3(kerntest, good, output):
    before = sorted(good.iterdir())
    check_failure(kerntest("mmd", "x.csv", "y.csv", "-o", output), 3, f"cannot write {output}")
    assert sorted(good.iterdir()) == before


def test_a_failure_leaves_the_old_result(kerntest, good):
    (good / "old.json").write_text("old", encoding="utf-8")
    check_failure(kerntest("mmd", "x.csv", "no.csv", "-o", "old.json", "--fail-on", "reject"), 3, "no.csv")
    assert (good / "old.json").read_text(encoding="utf-8") == "old"


def test_an_error_outranks_a_gate_and_json_errors_are_json(kerntest, good):
    del good
    outcome = kerntest("mmd", "x.csv", "no.csv", "--fail-on", "accept", "--json")
    assert (outcome.code, outcome.out) == (3, "")
    document = json.loads(outcome.err)
    assert document["schema"] == "kerntest.error/1"
    assert document["error"]["code"] == "data.missing_file"
    assert document["error"]["exit_code"] == 3
    assert document["error"]["where"] == {"file": "no.csv"}
    assert document["error"]["hint"]


@pytest.mark.thorough
def test_the_same_through_a_whole_process(good):
    outcome = run_process("mmd", "x.csv", "y.csv", "--kernel", "exponential(gain=1e6)", cwd=good)
    check_failure(outcome, 4, "overflows")
