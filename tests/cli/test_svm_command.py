import csv
import io
import json
import re

import pytest
from command_line import CSV_AS_USUAL
from example_svm import grid, metrics, regression_result, svm_result

import kerntest as package
from kerntest.cli.drawing import summary_text
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.report.summaries.learner_summary import svm_sentence, svm_summary
from kerntest.report.summaries.words import percent

PLAIN = ["shop.csv", "--target", "bought"]
DEFAULTS = {
    "target": "bought",
    "test": None,
    "test_fraction": None,
    "output": None,
    "force": False,
    "grid": False,
    "cv": None,
    "plot": None,
    "C": 1.0,
    "kernel": "gaussian",
    "bandwidth": "median",
    "task": "classify",
    "nu": None,
    "hard_margin": False,
    "epsilon": 0.1,
    "class_weight": None,
    "method": "svm",
    "probability": False,
    "features": None,
    "scale": "standardize",
    "tolerance": 1e-6,
    "seed": 0,
    "columns": None,
    "exclude": None,
    "categorical": (),
    "missing": "error",
    "cluster": None,
    **CSV_AS_USUAL,
    "threads": None,
    "progress": None,
}


class StandIn:
    """Stands in for `train_svm`: keeps what it was asked, and gives back a prepared result or error."""

    def __init__(self):
        self.calls = []
        self.result = svm_result()
        self.error = None

    def __call__(self, train, **options):
        self.calls.append((train, options))
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def train_svm(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(package, "train_svm", stand_in, raising=False)
    return stand_in


def test_the_defaults_reach_the_library(kerntest, train_svm):
    assert kerntest("svm", *PLAIN).code == 0
    assert train_svm.calls == [("shop.csv", DEFAULTS)]


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--test", "new.csv"], "test", "new.csv"),
        (["--test-fraction", "0.3"], "test_fraction", 0.3),
        (["-o", "m.kt"], "output", "m.kt"),
        (["--force"], "force", True),
        (["--grid"], "grid", True),
        (["--cv", "5"], "cv", 5),
        (["--plot", "p.png"], "plot", "p.png"),
        (["--C", "10"], "C", 10.0),
        (["--kernel", "laplacian"], "kernel", "laplacian"),
        (["--bandwidth", "2.5"], "bandwidth", 2.5),
        (["--task", "REGRESS"], "task", "regress"),
        (["--nu", "1"], "nu", 1.0),
        (["--hard-margin"], "hard_margin", True),
        (["--class-weight", "no:1,yes:5"], "class_weight", "no:1,yes:5"),
        (["--method", "mean"], "method", "mean"),
        (["--probability"], "probability", True),
        (["--features", "nystroem:50"], "features", "nystroem:50"),
        (["--scale", "none"], "scale", "none"),
        (["--tolerance", "1e-9"], "tolerance", 1e-9),
        (["--seed", "7"], "seed", 7),
        (["--columns", "a,b", "--columns", "c*"], "columns", "a,b,c*"),
        (["--exclude", "id"], "exclude", "id"),
        (["--categorical", "code"], "categorical", "code"),
        (["--missing", "drop"], "missing", "drop"),
        (["--decimal", ","], "decimal", ","),
        (["--cluster", "shop"], "cluster", "shop"),
        (["--threads", "3"], "threads", 3),
    ],
)
def test_options_reach_the_library(kerntest, train_svm, arguments, name, value):
    assert kerntest("svm", *PLAIN, *arguments).code == 0
    options = train_svm.calls[-1][1]
    assert options[name] == value
    assert type(options[name]) is type(value)
    assert {key for key in options if options[key] != DEFAULTS[key]} <= {name}


def test_the_table_tells_what_was_learned_and_how_good_it_is(kerntest, train_svm):
    train_svm.result = svm_result(grid=grid(), model="m.kt", warnings=("careful",))
    outcome = kerntest("svm", *PLAIN)
    assert (outcome.code, outcome.err) == (0, "wrote m.kt\n")
    for text in (
        "Support vector machine\n",
        "60 to learn from, 20 held out to judge by",
        "bought: no, yes",
        "gaussian(2)",
        "C = 1, lambda = 1/(2 n C) = 0.008333",
        "30 of 60 training rows, 12 of them at the bound",
        "converged: duality gap 1e-08 of the objective, 9 linear systems",
        "85 % of 20 test rows, 95 % interval 60 % to 95 %",
        "nearest mean: 80 %, balanced 79 %",
        "  bandwidth  C = 1  C = 10\n  1           70.0    75.0\n  2          *87.5    80.0\n",
        "tie rule: the best mean over the folds",
        "       no  yes\n  no    9    1\n  yes   2    8\n",
        "Decision: 85 % of 20 test rows are classified correctly (nearest mean: 80 %).",
        "-  careful",
    ):
        assert text in outcome.out


def test_a_regression_and_one_class_have_their_own_words(kerntest, train_svm):
    train_svm.result = regression_result()
    text = kerntest("svm", *PLAIN).out
    assert "Support vector machine for numbers" in text
    assert "Decision: Predictions of 60 training rows are off by 2.5 (root mean square, r2 = 0.75)." in text
    train_svm.result = svm_result(
        task="one-class", target=None, classes=(), accuracy=None, train=None, test=None, baseline=None, outliers=0.25
    )
    text = kerntest("svm", "shop.csv", "--task", "one-class").out
    assert "Decision: 25 % of 20 test rows are outliers." in text


def test_without_test_rows_the_cross_validated_score_is_the_answer():
    result = svm_result(grid=grid(), judged_on="train", n_test=0, test=None)
    assert svm_sentence(result) == "87.5 % of rows held out in 5 folds are classified correctly."


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.9999, "99.9 %"), (0.0, "0 %"), (1e-9, "0.1 %"), (0.5, "50 %"), (0.3333, "33.3 %")],
)
def test_a_share_is_all_or_nothing_only_if_it_is(share, text):
    assert percent(share) == text


def test_json_and_csv_hold_everything_and_warnings_go_to_stderr(kerntest, train_svm):
    train_svm.result = svm_result(grid=grid(), warnings=("careful",))
    outcome = kerntest("svm", *PLAIN, "--json")
    assert json.loads(outcome.out) == train_svm.result.to_dict()
    assert outcome.err == "warning: careful\n"
    rows = list(csv.DictReader(io.StringIO(kerntest("svm", *PLAIN, "--format", "csv").out)))
    assert len(rows) == 1
    assert (rows[0]["accuracy"], rows[0]["grid.cells.C"]) == ("0.85", "1.0;10.0;1.0;10.0")


def test_the_report_goes_where_it_is_told(kerntest, train_svm, tmp_path):
    del train_svm
    path = tmp_path / "report.json"
    outcome = kerntest("svm", *PLAIN, "--report", path, "--json")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"wrote {path}\n")
    assert json.loads(path.read_text())["schema"] == "kerntest.svm/1"


def test_quiet_says_nothing_and_verbose_explains(kerntest, train_svm):
    train_svm.result = svm_result(warnings=("careful",), model="m.kt")
    assert kerntest("svm", *PLAIN, "--json", "-q").err == ""
    notes = kerntest("svm", *PLAIN, "-v").err
    assert "shop.csv: csv with delimiter ',', 80 rows read, 80 used" in notes
    assert "kernel as resolved: gaussian(2.0000000001)" in notes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("wrong", hint="do this"), 2),
        (DataError("wrong", hint="do this"), 3),
        (UndecidedError("wrong", hint="do this"), 4),
    ],
)
def test_errors_become_exit_codes(kerntest, train_svm, error, code):
    train_svm.error = error
    outcome = kerntest("svm", *PLAIN)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err == "error: wrong\nhint: do this\n"


def test_an_error_in_a_kernel_shows_its_place(kerntest, train_svm):
    train_svm.error = UsageError("unknown kernel 'gausian' at character 1", where={"position": 1})
    assert "  gausian\n  ^\n" in kerntest("svm", *PLAIN, "--kernel", "gausian").err


def test_outputs_must_differ_from_the_data_and_from_one_another(kerntest, train_svm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.csv").write_text("a,bought\n1,no\n")
    assert kerntest("svm", *PLAIN, "-o", "shop.csv", "--force").code == 2
    assert kerntest("svm", *PLAIN, "--test", "shop.csv", "--report", "shop.csv").code == 2
    assert kerntest("svm", *PLAIN, "-o", "x", "--report", "x").code == 2
    assert not train_svm.calls


@pytest.mark.parametrize("width", [40, 80, 120])
def test_many_classes_with_long_names_fit_the_screen(width):
    names = [f"class number {k} with a long name" for k in range(12)]
    confusion = [[k * j for j in range(12)] for k in range(12)]
    judged = metrics(confusion, names)
    text = summary_text(svm_summary(svm_result(classes=tuple(names), test=judged)), width=width, colour=False)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    assert ("too wide: --json has it" in " ".join(text.split())) == (width == 40)
    if width > 40:
        # The names do not fit side by side: letters stand for them.
        assert "  a class number 0 wi...  " in text
        assert re.search(r"\n +a +b +c +d", text)
        assert re.search(r"\n  l class number 11.* 0 +11 +22", text)


def test_of_very_many_classes_the_most_frequent_are_shown():
    names = [f"c{k}" for k in range(30)]
    confusion = [[k if k == j else 0 for j in range(30)] for k in range(30)]
    text = summary_text(
        svm_summary(svm_result(classes=tuple(names), test=metrics(confusion, names))), width=80, colour=False
    )
    assert "and 18 more classes: --json has all" in text
    assert "  c29 " in text
    assert "  c5 " not in text
    assert "Confusion" not in text


def test_colours_and_names_change_nothing_else():
    names = ("\x1b[2Jno", "[red]yes")
    result = svm_result(classes=names, test=metrics(names=names), grid=grid("negative RMSE"))
    plain = summary_text(svm_summary(result), width=100, colour=False)
    assert "\x1b" not in plain
    assert "\\x1b[2Jno" in plain
    assert "[red]yes" in plain
    assert "\x1b" in summary_text(svm_summary(result), width=100, colour=True)
