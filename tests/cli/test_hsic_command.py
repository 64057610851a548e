import csv
import functools
import io
import json
import os
import sys

import pytest
from command_line import CSV_AS_USUAL
from example_independence import independence_result, joint_result, screen_result, selection_result

import kerntest as package
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.report.results.independence_record import Lags

# What is not given is left to the library.
GIVEN = {name: value for name, value in CSV_AS_USUAL.items() if value is not None}
RESULTS = {
    "hsic_test": independence_result,
    "hsic_pairs": screen_result,
    "hsic_select": selection_result,
    "hsic_joint": joint_result,
}
PAIRED = ["data.csv", "--x", "a", "--y", "b"]


class StandIns:
    """Stand in for the four functions of the library: keep what they were asked, and give back prepared results."""

    def __init__(self, monkeypatch):
        self.calls = []
        self.results = {name: make() for name, make in RESULTS.items()}
        self.error = None
        for name in RESULTS:
            monkeypatch.setattr(package, name, self.standing_in_for(name), raising=False)

    def standing_in_for(self, name):
        # With the signature of the function: it tells which options it takes.
        @functools.wraps(getattr(package, name))
        def call(**arguments):
            self.calls.append((name, arguments))
            if self.error is not None:
                raise self.error
            return self.results[name]

        return call

    @property
    def last(self):
        """The function of the last call, and what it was asked."""
        return self.calls[-1]


@pytest.fixture
def library(monkeypatch):
    return StandIns(monkeypatch)


def test_the_defaults_are_left_to_the_library(kerntest, library):
    assert kerntest("hsic", *PAIRED).code == 0
    assert library.calls == [
        (
            "hsic_test",
            {
                "x": "data.csv",
                "x_columns": "a",
                "y_columns": "b",
                "statistic": "hsic",
                "estimator": "unbiased",
                "method": "exact",
                "null": "permutation",
                "permutations": 1000,
                "resampling": "shifts",
                "judge": "together",
                "alpha": 0.05,
                "scale": "standardize",
                "seed": 0,
                **GIVEN,
                "progress": None,
            },
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--kernel-x", "gaussian(1.5) + linear"], "kernel_x", "gaussian(1.5) + linear"),
        (["--kernel-y", "delta"], "kernel_y", "delta"),
        (["--bandwidth", "2.5"], "bandwidth", 2.5),
        (["--bandwidth", "0.5,1"], "bandwidth", (0.5, 1.0)),
        (["--statistic", "COCO"], "statistic", "coco"),
        (["--estimator", "biased"], "estimator", "biased"),
        (["--null", "moments"], "null", "moments"),
        (["--permutations", "99"], "permutations", 99),
        (["--resampling", "random"], "resampling", "random"),
        (["--judge", "smallest"], "judge", "smallest"),
        (["--alpha", "1e-3"], "alpha", 0.001),
        (["--scale", "none"], "scale", "none"),
        (["--seed", "7"], "seed", 7),
        (["--threads", "3"], "threads", 3),
        (["--columns", "a,b", "--columns", "c*"], "columns", "a,b,c*"),
        (["--x", "c"], "x_columns", "a,c"),
        (["--y", "d:e"], "y_columns", "b,d:e"),
        (["--exclude", "'a"], "exclude", "'a"),
        (["--categorical", "code"], "categorical", "code"),
        (["--missing", "drop"], "missing", "drop"),
        (["--decimal", ","], "decimal", ","),
        (["--witness", "w.csv"], "witness", "w.csv"),
        (["--plot", "p.png"], "plot", "p.png"),
        (["--time-series"], "time_series", True),
        (["--time-series", "--min-lag", "9"], "min_lag", 9),
    ],
)
def test_options_reach_the_library(kerntest, library, arguments, name, value):
    assert kerntest("hsic", *PAIRED, *arguments).code == 0
    function, options = library.last
    assert function == "hsic_test"
    assert options[name] == value
    assert type(options[name]) is type(value)


def test_the_shift_test_gets_no_options_of_the_others(kerntest, library):
    assert kerntest("hsic", *PAIRED, "--time-series").code == 0
    assert not library.last[1].keys() & {"null", "permutations", "resampling", "statistic"}


@pytest.mark.parametrize(
    ("arguments", "kernels"),
    [
        ([], (None, None)),
        (["--kernel", "linear"], ("linear", "linear")),
        (["--kernel", "linear", "--kernel-x", "delta"], ("delta", "linear")),
        (["--kernel", "linear", "--kernel-y", "delta"], ("linear", "delta")),
        (["--kernel-x", "delta"], ("delta", None)),
    ],
)
def test_a_kernel_is_for_the_sides_that_have_none_of_their_own(kerntest, library, arguments, kernels):
    assert kerntest("hsic", *PAIRED, *arguments).code == 0
    options = library.last[1]
    assert (options.get("kernel_x"), options.get("kernel_y")) == kernels
    assert "kernel" not in options


def test_a_second_file_is_y(kerntest, library):
    assert kerntest("hsic", "x.csv", "y.csv").code == 0
    function, options = library.last
    assert (function, options["x"], options["y"]) == ("hsic_test", "x.csv", "y.csv")
    assert not options.keys() & {"x_columns", "y_columns"}


COMMON = {"data": "data.csv", "alpha": 0.05, "seed": 0, **GIVEN, "permutations": 1000, "progress": None}
CALLS = [
    (["--pairwise"], "hsic_pairs", {"estimator": "unbiased"}),
    (
        ["--pairwise", "--x", "a,b", "--y", "c", "--kernel", "laplacian", "--bandwidth", "2", "--plot", "p.png"],
        "hsic_pairs",
        {
            "x_columns": "a,b",
            "y_columns": "c",
            "kernel": "laplacian",
            "bandwidth": 2.0,
            "plot": "p.png",
            "estimator": "unbiased",
        },
    ),
    (
        ["--target", "y", "--correction", "BH", "--columns", "a", "--missing", "error"],
        "hsic_pairs",
        {"target": "y", "correction": "bh", "columns": "a", "missing": "error", "estimator": "unbiased"},
    ),
    (["--target", "y", "--select", "3"], "hsic_select", {"target": "y", "k": 3}),
    (["--joint", "a,b c,d"], "hsic_joint", {"groups": "a,b c,d", "scale": "standardize"}),
    (
        ["--joint", 'a,"b,c"', "--joint", "d*", "--scale", "none"],
        "hsic_joint",
        {"groups": [["a", "b,c"], ["d*"]], "scale": "none"},
    ),
]


@pytest.mark.parametrize(("arguments", "function", "options"), CALLS)
def test_each_kind_of_test_is_one_call_of_its_function(kerntest, library, arguments, function, options):
    assert kerntest("hsic", "data.csv", *arguments).code == 0
    assert library.calls == [(function, COMMON | options)]


CONTRADICTIONS = [
    (["--select", "2"], "--select needs --target", "--target NAME --select 3"),
    (["--correction", "bh", "--x", "a"], "--correction needs --pairwise or --target", "nothing to correct"),
    (["--min-lag", "2", "--x", "a"], "--min-lag needs --time-series", ""),
    (
        ["y.csv", "--null", "moments", "--permutations", "9"],
        "--permutations does not go with --null moments",
        "a curve",
    ),
    (["--pairwise", "--target", "a"], "--pairwise does not go with --target", "choose one"),
    (["--pairwise", "--select", "2"], "--select does not go with --pairwise", ""),
    (["y.csv", "--pairwise"], "a second file does not go with --pairwise", "give one file"),
    (["y.csv", "--joint", "a,b"], "a second file does not go with --joint", "give one file"),
    (["--time-series", "--null", "moments"], "--null does not go with --time-series", "one null"),
    (["--time-series", "--permutations", "9"], "--permutations does not go with --time-series", "--min-lag"),
    (["--time-series", "--resampling", "random"], "--resampling does not go with --time-series", "one null"),
    (["--time-series", "--statistic", "coco"], "--statistic does not go with --time-series", "HSIC"),
    (["--time-series", "--pairwise"], "--time-series does not go with --pairwise", ""),
    (["--joint", "a,b", "--x", "a"], "--x does not go with --joint", "--joint a,b,c"),
    (["--joint", "a,b", "--columns", "a"], "--columns does not go with --joint", "--joint a,b,c"),
    (["--joint", "a,b", "--time-series"], "--time-series does not go with --joint", ""),
    (["--joint", "a,b", "--null", "gamma"], "--null does not go with --joint", "one null"),
    (["--pairwise", "--witness", "w.csv"], "--witness does not go with --pairwise", "--x a --y b --witness FILE"),
    (["--pairwise", "--kernel-x", "delta"], "--kernel-x does not go with --pairwise", "--kernel is the kernel"),
    (["--pairwise", "--null", "moments"], "--null does not go with --pairwise", "moments p-value"),
    (["--pairwise", "--scale", "none"], "--scale does not go with --pairwise", "standardised"),
    (["--target", "a", "--y", "b"], "--y does not go with --target", "--columns"),
    (["--target", "a", "--select", "2", "--correction", "bh"], "--correction does not go with --select", ""),
    (["--target", "a", "--select", "2", "--kernel", "delta"], "--kernel does not go with --select", "of its own"),
    (["--target", "a", "--select", "2", "--plot", "p.png"], "--plot does not go with --select", "--target NAME --plot"),
    (["--kernel", "a", "--kernel-x", "b", "--kernel-y", "c"], "--kernel, --kernel-x and --kernel-y contradict", ""),
]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"), CONTRADICTIONS, ids=[" ".join(arguments) for arguments, _, _ in CONTRADICTIONS]
)
def test_options_that_make_no_sense_together_are_told(kerntest, library, arguments, message, hint):
    outcome = kerntest("hsic", "data.csv", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    error, way_out = outcome.err.splitlines()
    assert error.startswith(f"error: {message}")
    assert way_out.startswith("hint: ")
    assert hint in way_out
    assert library.calls == []


def test_a_default_that_nobody_typed_contradicts_nothing(kerntest, library):
    for arguments in (["--pairwise"], ["--time-series"], ["--joint", "a,b"], ["--target", "a", "--select", "1"]):
        assert kerntest("hsic", "data.csv", *arguments).code == 0
    assert len(library.calls) == 4


TABLE = """\
Independence test (Hilbert-Schmidt independence criterion)
  data         machines.csv: 300 of 320 rows used
  x            temp_c
  y            wear_um
  kernels      gaussian(0.7071) on x, laplacian(2) on y
               the clearest of 2 pairs that the test judged together
  statistic    HSIC = 0.01235 (unbiased), 0.0141 (biased)
  null         permutation: 1,000 relabellings by cyclic shifts, in 2 random orders, exact
  p-value      0.034
               3.4 % of tests show as much where x and y are independent
  effect size  0.2105 on a scale from 0 (independent) to 1
Decision: 'temp_c' and 'wear_um' depend on each other (p = 0.034 <= alpha = 0.05).
Warnings:
  -  careful
"""


def test_the_table(kerntest, library):
    library.results["hsic_test"] = independence_result(warnings=("careful",))
    outcome = kerntest("hsic", *PAIRED)
    assert outcome.out == TABLE
    assert outcome.err == ""


def test_series_tell_their_lags(kerntest, library):
    lags = Lags(minimum=20, shifts=361, strongest=-3, statistic_at_strongest=0.02)
    library.results["hsic_test"] = independence_result(lags=lags)
    text = kerntest("hsic", *PAIRED, "--time-series").out
    assert "shifts by 20 rows and more stand for independence" in text
    assert "the statistic is largest where x is taken 3 rows later than y" in text


def test_json_is_the_record_and_warnings_go_to_stderr_too(kerntest, library):
    library.results["hsic_test"] = independence_result(warnings=("größe was left out",), gamma_x=float("nan"))
    for arguments in (["--format", "json"], ["--json"]):
        outcome = kerntest("hsic", *PAIRED, *arguments)
        assert json.loads(outcome.out) == library.results["hsic_test"].to_dict()
        assert json.loads(outcome.out)["gamma_x"] is None
        assert outcome.err == "warning: größe was left out\n"
    assert kerntest("hsic", *PAIRED, "--json", "-q").err == ""


@pytest.mark.parametrize(
    ("arguments", "function", "rows"),
    [
        (["--x", "a"], "hsic_test", ""),
        (["--pairwise"], "hsic_pairs", "pairs"),
        (["--target", "a"], "hsic_pairs", "pairs"),
        (["--target", "a", "--select", "2"], "hsic_select", "selected"),
        (["--joint", "a,b,c"], "hsic_joint", ""),
    ],
)
def test_json_is_everything_and_lines_and_csv_are_the_rows(kerntest, library, arguments, function, rows):
    whole = library.results[function].to_dict()
    expected = whole[rows] if rows else [whole]
    assert json.loads(kerntest("hsic", "d.csv", *arguments, "--json").out) == whole
    lines = kerntest("hsic", "d.csv", *arguments, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == expected
    table = list(csv.DictReader(io.StringIO(kerntest("hsic", "d.csv", *arguments, "--format", "csv").out)))
    assert len(table) == len(expected)
    if rows:
        assert list(table[0]) == list(expected[0])
        assert [row["p_value"] for row in table] == [str(row["p_value"]) for row in expected]
    else:
        assert float(table[0]["p_value"]) == whole["p_value"]
        assert table[0]["null.method"] == "permutation"


def test_json_lines_are_of_this_command_alone_and_its_errors_are_json(kerntest, library):
    outcome = kerntest("hsic", "d.csv", "--pairwise", "--json", "--format", "jsonl")
    assert outcome.code == 2
    assert "contradict" in outcome.err
    library.error = DataError("bad")
    assert json.loads(kerntest("hsic", "d.csv", "--pairwise", "--format", "jsonl").err)["error"]["exit_code"] == 3
    assert kerntest("mmd", "a", "b", "--format", "jsonl").code == 2


@pytest.mark.parametrize(
    ("arguments", "function", "result"),
    [
        (["--x", "a"], "hsic_test", independence_result(p_value=0.01)),
        (["--x", "a"], "hsic_test", independence_result(p_value=0.5)),
        (["--pairwise"], "hsic_pairs", screen_result()),
        (["--pairwise"], "hsic_pairs", screen_result(reject=False)),
        (["--target", "a", "--select", "1"], "hsic_select", selection_result(reject=False)),
        (["--joint", "a,b"], "hsic_joint", joint_result(p_value=0.5)),
    ],
)
def test_a_gate_is_an_exit_code_and_the_result_is_written(kerntest, library, arguments, function, result):
    library.results[function] = result
    for fail_on in ("reject", "accept"):
        outcome = kerntest("hsic", "d.csv", *arguments, "--json", "--fail-on", fail_on)
        failed = result.reject == (fail_on == "reject")
        assert outcome.code == (1 if failed else 0)
        assert json.loads(outcome.out) == result.to_dict()
        assert outcome.err == (f"exit code 1, because of --fail-on {fail_on}\n" if failed else "")
    assert kerntest("hsic", "d.csv", *arguments).code == 0


def test_output_goes_to_a_file_and_stderr_says_so(kerntest, library, tmp_path):
    target = tmp_path / "pairs.csv"
    outcome = kerntest("hsic", "d.csv", "--pairwise", "--format", "csv", "-o", target)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"wrote {target}\n")
    assert len(target.read_text().splitlines()) == 1 + len(library.results["hsic_pairs"].pairs)


def test_outputs_are_not_written_over_one_another_or_over_the_data(kerntest, library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "y.csv").write_text("a\n1\n")
    for arguments in (["x.csv", "y.csv", "-o", "./y.csv"], ["x.csv", "--pairwise", "--plot", "x.csv"]):
        outcome = kerntest("hsic", *arguments)
        assert outcome.code == 2
        assert "would replace the data in" in outcome.err
    outcome = kerntest("hsic", "x.csv", "y.csv", "--witness", "w.csv", "-o", "w.csv")
    assert "would both write w.csv" in outcome.err
    assert kerntest("hsic", "x.csv", "-o", str(tmp_path / "no" / "r.json")).code == 3
    assert library.calls == []


@pytest.mark.parametrize(
    ("arguments", "function", "said"),
    [
        (["--x", "a"], "hsic_test", ["columns of x: temp_c", "pairs of kernels tried: 2", "z = 4.25", "seed 0"]),
        (["--pairwise"], "hsic_pairs", ["columns: temp_c", "corrected by holm"]),
        (["--target", "a", "--select", "1"], "hsic_select", ["candidates: load_percent", "columns left out: serial"]),
        (["--joint", "a,b"], "hsic_joint", ["null: permutation", "0.1235 seconds"]),
    ],
)
def test_verbose_explains_on_stderr(kerntest, library, arguments, function, said):
    outcome = kerntest("hsic", "d.csv", *arguments, "-v", "--json")
    assert "csv with delimiter ';', 320 rows read, 300 used" in outcome.err
    for part in said:
        assert part in outcome.err
    assert json.loads(outcome.out) == library.results[function].to_dict()


def test_stdin_is_read_once_and_not_from_a_terminal(kerntest, library, monkeypatch):
    outcome = kerntest("hsic", "-", "-")
    assert outcome.err.startswith("error: DATA and Y cannot both be read from stdin\n")
    monkeypatch.setattr(sys, "stdin", None)
    outcome = kerntest("hsic", "-", "--pairwise")
    assert outcome.code == 2
    assert "stdin is closed" in outcome.err
    assert library.calls == []


ERRORS = [
    (UsageError("no such column", hint="look"), 2),
    (DataError("bad line", where={"file": "x", "line": 3}), 3),
    (FileNotFoundError(2, "No such file or directory", "x.csv"), 3),
    (UndecidedError("degenerate"), 4),
    (MemoryError(), 4),
    (ZeroDivisionError("oops"), 70),
    (KeyboardInterrupt(), 130),
]


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("arguments", [["--x", "a"], ["--pairwise"], ["--joint", "a,b"]], ids=" ".join)
def test_every_error_has_its_exit_code_and_leaves_stdout_empty(kerntest, library, error, code, arguments):
    library.error = error
    outcome = kerntest("hsic", "d.csv", *arguments, "--fail-on", "accept")
    assert (outcome.code, outcome.out) == (code, "")
    assert "Traceback" not in outcome.err
    as_json = kerntest("hsic", "d.csv", *arguments, "--json")
    assert (as_json.code, as_json.out) == (code, "")
    assert json.loads(as_json.err)["error"]["exit_code"] == code


@pytest.mark.parametrize(
    ("message", "where", "shown"),
    [
        ("unknown kernel 'gausian' at character 1 of 'gausian(2)'", {"position": 1}, "gausian(2)"),
        ("there is no column 'z'", {"position": 1, "value": "z"}, "z: linear"),
    ],
)
def test_an_error_in_a_kernel_text_points_into_the_right_one(kerntest, library, message, where, shown):
    library.error = UsageError(message, where=where)
    kernels = ["linear", "gausian(2)", "z: linear"]
    for first in kernels:
        for second in kernels:
            if shown in {first, second}:
                outcome = kerntest("hsic", *PAIRED, "--kernel-x", first, "--kernel-y", second)
                assert outcome.err.splitlines()[1:3] == [f"  {shown}", "  ^"]
    assert "kerntest kernels" in outcome.err


@pytest.mark.usefixtures("library")
def test_a_failing_write_leaves_the_old_file(kerntest, tmp_path, monkeypatch):
    target = tmp_path / "result.json"
    target.write_text("old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    assert kerntest("hsic", "d.csv", "--pairwise", "--format", "jsonl", "-o", target, "--fail-on", "reject").code == 3
    assert target.read_text() == "old"
