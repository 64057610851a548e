import csv
import io
import json
import os
import sys

import pytest
from command_line import CSV_AS_USUAL
from example_results import FAMILY, two_sample_result

from kerntest.data.columns import split_patterns
from kerntest.errors import DataError, ModelError, UndecidedError, UsageError


def test_the_defaults_reach_the_library(kerntest, mmd_test):
    assert kerntest("mmd", "before.csv", "after.csv").code == 0
    x, y, options = mmd_test.calls[0]
    assert (x, y) == ("before.csv", "after.csv")
    assert options == {
        "kernel": "auto",
        "bandwidth": "auto",
        "estimator": "unbiased",
        "null": "permutation",
        "permutations": 1000,
        "alpha": 0.05,
        "scale": "standardize",
        "seed": 0,
        "columns": None,
        "exclude": None,
        "common": False,
        "categorical": (),
        "missing": "error",
        **CSV_AS_USUAL,
        "judge": "together",
        "resampling": "blocks",
        "min_effect": None,
        "explain": False,
        "witness": None,
        "plot": None,
        "method": "exact",
        "threads": None,
        "progress": None,
    }


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--kernel", "gaussian(1.5) + linear"], "kernel", "gaussian(1.5) + linear"),
        (["--bandwidth", "2.5"], "bandwidth", 2.5),
        (["--bandwidth", "0.5, 1,2"], "bandwidth", (0.5, 1.0, 2.0)),
        (["--bandwidth", "Median"], "bandwidth", "median"),
        (["--estimator", "BIASED"], "estimator", "biased"),
        (["--null", "moments"], "null", "moments"),
        (["--permutations", "99"], "permutations", 99),
        (["--alpha", "1e-3"], "alpha", 0.001),
        (["--scale", "none"], "scale", "none"),
        (["--seed", "7"], "seed", 7),
        (["--threads", "3"], "threads", 3),
        (["--columns", "a,b", "--columns", "c*"], "columns", "a,b,c*"),
        (["--exclude", "'a"], "exclude", "'a"),
        (["--common"], "common", True),
        (["--categorical", "code"], "categorical", "code"),
        (["--missing", "drop"], "missing", "drop"),
        (["--resampling", "random"], "resampling", "random"),
        (["--judge", "smallest"], "judge", "smallest"),
        (["--min-effect", "0.1"], "min_effect", 0.1),
        (["--explain"], "explain", True),
        (["--witness", "w.csv"], "witness", "w.csv"),
        (["--plot", "p.png"], "plot", "p.png"),
    ],
)
def test_options_reach_the_library(kerntest, mmd_test, arguments, name, value):
    assert kerntest("mmd", "x", "y", *arguments).code == 0
    assert mmd_test.options[name] == value
    assert type(mmd_test.options[name]) is type(value)


def test_options_may_stand_between_the_files_and_a_file_may_begin_with_a_dash(kerntest, mmd_test):
    assert kerntest("mmd", "--seed", "1", "--", "-x.csv", "y.csv").code == 0
    assert mmd_test.calls[0][:2] == ("-x.csv", "y.csv")


TABLE = """\
Two-sample test (maximum mean discrepancy)
  X            before.csv: 400 of 420 rows used
  Y            after.csv: 450 rows
  columns      order_value, payment
  kernel       gaussian(0.7071)
               the clearest of 2 kernels that the test judged together
  statistic    MMD^2 = 0.01235 (unbiased), 0.0141 (biased)
  null         permutation: 1,000 relabellings by cyclic shifts, in 2 random orders, exact
  p-value      0.034
               3.4 % of tests show as much where there is no difference
  effect size  0.2105 on a scale from 0 (alike) to 1
  MMD          0.1111 +- 0.012 (standard error)
Decision: The two files differ (p = 0.034 <= alpha = 0.05).
Warnings:
  -  column 'city' has one value and was left out
"""


def test_the_table(kerntest, mmd_test):
    mmd_test.result = two_sample_result(warnings=("column 'city' has one value and was left out",))
    outcome = kerntest("mmd", "before.csv", "after.csv")
    assert outcome.out == TABLE
    assert outcome.err == ""


def test_json_is_the_record_and_warnings_go_to_stderr_too(kerntest, mmd_test):
    mmd_test.result = two_sample_result(warnings=("größe was left out",), mmd=float("nan"))
    for arguments in (["--format", "json"], ["--json"], ["--json", "--format", "json"]):
        outcome = kerntest("mmd", "x", "y", *arguments)
        assert json.loads(outcome.out) == mmd_test.result.to_dict()
        assert json.loads(outcome.out)["mmd"] is None
        assert "größe" in outcome.out
        assert outcome.out.endswith("}\n")
        assert outcome.err == "warning: größe was left out\n"
    assert kerntest("mmd", "x", "y", "--json", "-q").err == ""


def test_csv_is_a_header_and_one_row(kerntest, mmd_test):
    mmd_test.result = two_sample_result(names=('a,"b".csv', "after.csv"))
    outcome = kerntest("mmd", "x", "y", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(outcome.out))
    assert float(row["statistic"]) == mmd_test.result.statistic
    assert row["provenance.inputs.name"] == 'a,"b".csv;after.csv'
    assert row["reject"] == "true"
    assert row["null.trace"] == ""


@pytest.mark.parametrize(
    ("p_value", "fail_on", "failed"),
    [
        (0.01, "reject", True),
        (0.5, "reject", False),
        (0.01, "accept", False),
        (0.5, "accept", True),
    ],
)
class TestGate:
    def test_result_is_written_and_the_exit_code_tells(self, kerntest, mmd_test, p_value, fail_on, failed):
        mmd_test.result = two_sample_result(p_value=p_value)
        outcome = kerntest("mmd", "x", "y", "--json", "--fail-on", fail_on)
        assert outcome.code == (1 if failed else 0)
        assert json.loads(outcome.out) == mmd_test.result.to_dict()
        assert outcome.err == (f"exit code 1, because of --fail-on {fail_on}\n" if failed else "")

    def test_without_a_gate_the_exit_code_is_0(self, kerntest, mmd_test, p_value, fail_on, failed):
        del fail_on, failed
        mmd_test.result = two_sample_result(p_value=p_value)
        assert kerntest("mmd", "x", "y").code == 0


def test_a_failed_gate_still_writes_the_file_but_an_error_outranks_it(kerntest, mmd_test, tmp_path, monkeypatch):
    target = tmp_path / "result.json"
    arguments = ["mmd", "x", "y", "--json", "-q", "--fail-on", "reject", "-o", str(target)]
    assert kerntest(*arguments).code == 1
    assert json.loads(target.read_text()) == mmd_test.result.to_dict()
    monkeypatch.setattr(os, "fsync", _full_disk)
    assert kerntest(*arguments).code == 3


def _full_disk(*_):
    raise OSError(28, "No space left on device")


def test_output_goes_to_a_file_and_stderr_says_so(kerntest, mmd_test, tmp_path):
    mmd_test.result = two_sample_result(warnings=("careful",))
    target = tmp_path / "result.txt"
    outcome = kerntest("mmd", "before.csv", "after.csv", "-o", str(target))
    assert outcome.out == ""
    assert outcome.err == f"wrote {target}\nwarning: careful\n"
    assert "Decision: The two files differ" in target.read_text()
    assert kerntest("mmd", "x", "y", "-q", "-o", str(target)).err == ""
    assert kerntest("mmd", "x", "y", "--json", "-o", "-").out.startswith("{")


def test_an_output_that_cannot_be_written_is_told_before_the_work(kerntest, mmd_test, tmp_path):
    outcome = kerntest("mmd", "x", "y", "-o", str(tmp_path / "no" / "result.json"))
    assert (outcome.code, outcome.out) == (3, "")
    assert "does not exist" in outcome.err
    assert kerntest("mmd", "x", "y", "-o", str(tmp_path)).code == 3
    assert kerntest("mmd", "x", "y", "-o", "").code == 2
    assert mmd_test.calls == []


def test_the_result_is_not_written_over_its_data(kerntest, mmd_test, tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    outcome = kerntest("mmd", "x.csv", "y.csv", "-o", "./x.csv")
    assert outcome.code == 2
    assert "would replace the data in x.csv" in outcome.err
    assert mmd_test.calls == []


def test_verbose_explains_on_stderr(kerntest, mmd_test):
    outcome = kerntest("mmd", "x", "y", "-v", "--json")
    assert "csv with delimiter ';', 420 rows read" in outcome.err
    assert "columns left out: order_id" in outcome.err
    assert json.loads(outcome.out) == mmd_test.result.to_dict()


def test_a_terminal_is_no_table(kerntest, mmd_test, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    outcome = kerntest("mmd", "x", "-")
    assert outcome.code == 2
    assert "stdin is a terminal" in outcome.err
    monkeypatch.setattr(sys, "stdin", None)
    assert "stdin is closed" in kerntest("mmd", "x", "-").err
    assert mmd_test.calls == []


ERRORS = [
    (UsageError("no such column", hint="look"), 2),
    (DataError("bad line", where={"file": "x", "line": 3}), 3),
    (FileNotFoundError(2, "No such file or directory", "x.csv"), 3),
    (UndecidedError("degenerate"), 4),
    (MemoryError(), 4),
    (ModelError("truncated"), 5),
    (ZeroDivisionError("oops"), 70),
    (EOFError(), 70),
    (RecursionError("deep"), 70),
    (KeyboardInterrupt(), 130),
]


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=lambda value: type(value).__name__)
def test_every_error_has_its_exit_code_and_leaves_stdout_empty(kerntest, mmd_test, error, code):
    mmd_test.error = error
    outcome = kerntest("mmd", "x", "y")
    assert (outcome.code, outcome.out) == (code, "")
    assert "Traceback" not in outcome.err
    as_json = kerntest("mmd", "x", "y", "--json")
    assert (as_json.code, as_json.out) == (code, "")
    document = json.loads(as_json.err)
    assert document["schema"] == "kerntest.error/1"
    assert sorted(document["error"]) == ["code", "exit_code", "hint", "message", "where"]
    assert document["error"]["exit_code"] == code


def test_a_bug_is_short_and_with_debug_complete(kerntest, mmd_test, monkeypatch):
    mmd_test.error = ZeroDivisionError("oops")
    outcome = kerntest("mmd", "x", "y")
    assert outcome.err.startswith("error: internal error: ZeroDivisionError: oops\nhint: this is a bug")
    monkeypatch.setenv("KERNTEST_DEBUG", "1")
    assert "Traceback" in kerntest("mmd", "x", "y").err


def test_an_error_in_a_kernel_text_points_at_the_character(kerntest, mmd_test):
    mmd_test.error = UsageError("unknown kernel 'gausian'", hint="did you mean 'gaussian'?", where={"position": 10})
    outcome = kerntest("mmd", "x", "y", "--kernel", "linear + gausian(1.5)")
    assert outcome.err == (
        "error: unknown kernel 'gausian'\n  linear + gausian(1.5)\n           ^\nhint: did you mean 'gaussian'?\n"
    )  # fmt: skip - one line of the message to a line


@pytest.mark.usefixtures("mmd_test")
def test_a_failing_write_leaves_the_old_file(kerntest, tmp_path, monkeypatch):
    target = tmp_path / "result.json"
    target.write_text("old")
    monkeypatch.setattr(os, "fsync", _full_disk)
    outcome = kerntest("mmd", "x", "y", "--json", "-o", str(target))
    assert (outcome.code, outcome.out) == (3, "")
    assert json.loads(outcome.err)["error"]["message"].endswith("no space left on device")
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_names_are_printed_as_they_are(kerntest, mmd_test):
    name = "[bold]data[/bold] :smile: [link=x]y.csv"
    mmd_test.result = two_sample_result(names=(name, "b\x1b[31m.csv"), columns=("[red]a", "b"), family=FAMILY)
    outcome = kerntest("mmd", name, "y")
    assert f"X            {name}: 400" in outcome.out
    assert r"b\x1b[31m.csv" in outcome.out
    assert "[red]a, b" in outcome.out
    mmd_test.error = DataError(f"no such file: {name}\x1b[2J")
    assert kerntest("mmd", name, "y").err == f"error: no such file: {name}\\x1b[2J\n"


def test_two_outputs_into_one_file_are_refused(kerntest, mmd_test, tmp_path):
    out = str(tmp_path / "w.csv")
    outcome = kerntest("mmd", "x.csv", "y.csv", "--witness", out, "-o", f"{tmp_path}/../{tmp_path.name}/w.csv")
    assert outcome.code == 2
    assert "would both write" in outcome.err
    assert not mmd_test.calls


def test_a_list_of_columns_may_be_wrapped(kerntest, mmd_test):
    assert kerntest("mmd", "x.csv", "y.csv", "--columns", "a,\nb").code == 0
    assert split_patterns(mmd_test.options["columns"]) == ["a", "b"]
    assert split_patterns('"new\nline",c') == ["new\nline", "c"]


@pytest.mark.parametrize(
    ("null", "option"),
    [
        ("moments", "--permutations"),
        ("gamma", "--resampling"),
        ("spectral", "--permutations"),
        ("pearson", "--resampling"),
        ("moments", "--judge"),
    ],
)
def test_a_null_without_relabellings_takes_no_option_about_them(kerntest, mmd_test, null, option):
    value = {"--permutations": "99", "--resampling": "blocks", "--judge": "smallest"}[option]
    result = kerntest("mmd", "a.csv", "b.csv", "--null", null, option, value)
    assert result.code == 2
    assert f"error: {option} does not go with --null {null}" in result.err
    assert "--null permutation" in result.err
    assert not mmd_test.calls
    assert kerntest("mmd", "a.csv", "b.csv", "--null", "pearson", "--permutations", "99").code == 0


def test_every_file_that_was_written_is_named(kerntest, mmd_test):
    err = kerntest("mmd", "x.csv", "y.csv", "--plot", "p.png", "--witness", "w.csv").err
    assert err.splitlines()[-2:] == ["wrote w.csv", "wrote p.png"]
    assert "wrote" not in kerntest("mmd", "x.csv", "y.csv", "--plot", "p.png", "-q").err
    assert len(mmd_test.calls) == 2
