"""``kerntest svm``, ``ridge`` and ``kpca``: what reaches the library, and what is made of its result."""

import csv
import io
import json
import re
import shlex
from functools import cache
from inspect import Parameter, signature

import numpy as np
import pandas as pd
import pytest
from command_line import CSV_AS_USUAL, ROOT

import kerntest as package
from kerntest.cli.drawing import summary_text
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.learning.machines import ridge_machine
from kerntest.learning.solvers import falkon
from kerntest.report.summaries.learner_summary import ridge_summary, svm_summary

SVM = ["shop.csv", "--target", "bought"]
ARGUMENTS = {"svm": SVM, "ridge": ["shop.csv", "--target", "wear"], "kpca": ["shop.csv"]}
TRAIN = {"svm": package.train_svm, "ridge": package.train_ridge, "kpca": package.train_kpca}
every = pytest.mark.parametrize("command", TRAIN)


@cache
def result_of(command):
    drawn = np.random.default_rng(0).normal(size=(40, 3))
    table = pd.DataFrame(drawn, columns=["a", "b", "c"]).assign(wear=np.sin(drawn[:, 0]), same=1.0)
    if command == "svm":
        return TRAIN["svm"](table.assign(bought=table["wear"] > 0), "bought", exclude="wear", cv=2)
    return TRAIN[command](table, *(["wear"] if command == "ridge" else []))


class StandIn:
    """Stands in for the functions of the library: keeps what they were asked, and gives back a result or an error."""

    def __init__(self):
        self.calls, self.error = [], None

    def __call__(self, command):
        def train(data, **options):
            self.calls.append((data, options))
            if self.error is not None:
                raise self.error
            return result_of(command)

        return train


@pytest.fixture
def stand_in(monkeypatch):
    made = StandIn()
    for command in TRAIN:
        monkeypatch.setattr(package, f"train_{command}", made(command), raising=False)
    return made


@pytest.mark.parametrize(
    ("command", "arguments", "changes"),
    [
        ("svm", "", {}),
        (
            "svm",
            "--test new.csv --grid --cv 5 --probability",
            {"test": "new.csv", "grid": True, "cv": 5, "probability": True},
        ),
        ("svm", "--test-fraction 0.3 --C 10 --cv 3", {"test_fraction": 0.3, "C": 10.0, "cv": 3}),
        ("svm", "--task REGRESS --epsilon 0", {"task": "regress", "epsilon": 0.0}),
        ("svm", "--nu 1 --tolerance 1e-9", {"nu": 1.0, "tolerance": 1e-9}),
        ("svm", "--hard-margin --cluster shop", {"hard_margin": True, "cluster": "shop"}),
        ("svm", "--class-weight no:1,yes:5", {"class_weight": "no:1,yes:5"}),
        ("svm", "--method mean", {"method": "mean"}),
        ("svm", "--grid --kernel gaussian(2)", {"grid": True, "kernel": "gaussian(2)"}),
        ("ridge", "", {}),
        ("ridge", "--test new.csv --lambda 1e-3", {"test": "new.csv", "lambda_": 1e-3}),
        ("ridge", "--test-fraction 0.3 --criterion Evidence", {"test_fraction": 0.3, "criterion": "evidence"}),
        ("ridge", "--weights w --interval 0.5 --cv 7", {"weights": "w", "interval": 0.5, "cv": 7}),
        ("ridge", "--no-intervals --bandwidth MEDIAN", {"intervals": False, "bandwidth": "median"}),
        ("ridge", "--cluster shop --target power", {"cluster": "shop", "target": ("wear", "power")}),
        ("kpca", "", {}),
        ("kpca", "--components 5 --color kind --solver Dense", {"components": 5, "color": "kind", "solver": "dense"}),
        *(
            (command, arguments, changes)
            for command in TRAIN
            for arguments, changes in (
                ("-o m.kt --force --plot p.png", {"output": "m.kt", "force": True, "plot": "p.png"}),
                ("--kernel laplacian --bandwidth 2.5", {"kernel": "laplacian", "bandwidth": 2.5}),
                ("--features nystroem:50 --scale none", {"features": "nystroem:50", "scale": "none"}),
                ("--seed 7 --threads 3 --missing drop", {"seed": 7, "threads": 3, "missing": "drop"}),
                ("--columns a,b --columns c* --exclude id", {"columns": "a,b,c*", "exclude": "id"}),
                ("--categorical code --decimal ,", {"categorical": "code", "decimal": ","}),
            )
        ),
    ],
)
def test_options_reach_the_library_and_its_defaults_are_those_of_the_command(
    kerntest, stand_in, command, arguments, changes
):
    assert kerntest(command, *ARGUMENTS[command], *shlex.split(arguments)).code == 0
    shown = signature(TRAIN[command]).parameters.values()
    usual = {one.name: one.default for one in shown if one.kind is Parameter.KEYWORD_ONLY} | CSV_AS_USUAL
    usual |= {"svm": {"target": "bought"}, "ridge": {"target": "wear"}, "kpca": {}}[command]
    assert stand_in.calls == [("shop.csv", usual | changes)]
    assert all(type(stand_in.calls[0][1][name]) is type(value) for name, value in changes.items())


@every
def test_json_csv_and_a_report_have_the_fields_of_the_result(kerntest, stand_in, command, tmp_path):
    del stand_in
    # As JSON has it: lists for tuples.
    arguments, expected = [command, *ARGUMENTS[command]], json.loads(json.dumps(result_of(command).to_dict()))
    assert json.loads(kerntest(*arguments, "--json").out) == expected
    outcome = kerntest(*arguments, "--json", "--report", tmp_path / "r.json")
    assert (outcome.code, outcome.out) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text()) == expected
    (row,) = csv.DictReader(io.StringIO(kerntest(*arguments, "--format", "csv").out))
    assert (row["columns"], row["train.n"]) == (";".join(expected["columns"]), "40")


@every
def test_verbose_says_what_was_chosen_and_quiet_nothing(kerntest, stand_in, command):
    del stand_in
    told = kerntest(command, *ARGUMENTS[command], "-v").err
    own = {"svm": "of the grid was chosen", "ridge": "of the grid was chosen", "kpca": "trace of HKH: "}[command]
    for text in ("columns left out: ", "kernel as resolved: ", "seed 0", own):
        assert text in told
    assert kerntest(command, *ARGUMENTS[command], "-q", "--json").err == ""


@every
@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("no", hint="look"), 2), (DataError("no", hint="look"), 3), (UndecidedError("no", hint="look"), 4)],
)
def test_errors_are_two_lines_and_an_exit_code(kerntest, stand_in, command, error, code):
    stand_in.error = error
    outcome = kerntest(command, *ARGUMENTS[command])
    assert (outcome.code, outcome.out, outcome.err) == (code, "", "error: no\nhint: look\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "ridge shop.csv",
        "ridge shop.csv --target wear --lambda 0",
        "ridge shop.csv --target wear --lambda small",
        "ridge shop.csv --target wear --criterion aic",
        "ridge shop.csv --target wear --interval 90",
        "ridge shop.csv --target wear --cv 1",
        "ridge shop.csv --target wear --bandwidth 0",
        "ridge shop.csv --target wear -o m.kt --plot m.kt",
        "ridge shop.csv --target wear -o shop.csv --force",
        "ridge - --target wear --test -",
        "kpca shop.csv --components 0",
        "kpca shop.csv --bandwidth auto",
        "kpca shop.csv -o shop.csv",
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(kerntest, stand_in, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.csv").write_text("a,wear\n1,2\n")
    outcome = kerntest(*shlex.split(arguments))
    assert (outcome.code, outcome.out, stand_in.calls) == (2, "", [])
    assert outcome.err.startswith("error: ")
    assert len(outcome.err.splitlines()) <= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--C 2 --nu 0.1", "--C does not go with --nu"),
        ("--C 2 --hard-margin", "--C does not go with --hard-margin"),
        ("--C 2 --grid", "--C does not go with --grid"),
        ("--C 2 --task one-class", "--C does not go with --task one-class"),
        ("--C 2 --method mean", "--C does not go with --method mean"),
        ("--tolerance 1e-9 --method perceptron", "--tolerance does not go with --method perceptron"),
        ("--bandwidth 2 --grid", "--bandwidth does not go with --grid"),
        ("--epsilon 0", "--epsilon does not go with --task classify"),
        ("-o -", "--output writes a file, not the standard output"),
        ("--plot -", "--plot writes a file, not the standard output"),
    ],
)
def test_an_option_without_effect_is_refused_before_anything_is_read(kerntest, stand_in, arguments, message):
    outcome = kerntest("svm", *SVM, *shlex.split(arguments))
    assert (outcome.code, stand_in.calls) == (2, [])
    assert outcome.err.startswith(f"error: {message}")
    assert "\nhint: " in outcome.err


@pytest.mark.parametrize("wrong", ["auto", "1,2", "0", "nan", "broad"])
def test_components_take_one_bandwidth_and_say_which(kerntest, wrong):
    outcome = kerntest("kpca", "t.csv", "--bandwidth", wrong)
    assert outcome.code == 2
    assert f"error: --bandwidth must be median or a positive number, not '{wrong}'" in outcome.err


def test_a_learner_takes_one_bandwidth(kerntest, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(10)))
    outcome = kerntest("svm", tmp_path / "t.csv", "--target", "y", "--bandwidth", "1,2")
    assert outcome.err == "error: a learner has one bandwidth, not 1.0, 2.0\nhint: --grid tries several\n"


def test_an_error_in_a_kernel_shows_its_place(kerntest, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(10)))
    outcome = kerntest("svm", tmp_path / "t.csv", "--target", "y", "--kernel", "gausian")
    assert "  gausian\n  ^\n" in outcome.err


def of_rows(counts, names=None, **options):
    """Return the result of classes of so many rows each, far from one another."""
    codes = np.repeat(np.arange(len(counts)), counts)
    names = np.array(names or [f"class number {k:02} with a long name" for k in range(len(counts))])
    table = pd.DataFrame({"a": 9.0 * codes + np.arange(len(codes)) % 7, "y": names[codes]})
    return TRAIN["svm"](table, "y", method="mean", **options)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_many_classes_with_long_names_fit_the_screen(width):
    text = summary_text(svm_summary(of_rows([4] * 12)), width=width, colour=False)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    assert ("too wide: --json has it" in " ".join(text.split())) == (width == 40)
    if width > 40:
        # The names do not fit side by side: letters stand for them.
        assert "  a class number 00 w...  " in text
        assert re.search(r"\n +a +b +c +d", text)
        assert re.search(r"\n  l class number 11.*(0 +){11}4", text)


def test_of_very_many_classes_the_most_frequent_are_shown():
    text = summary_text(svm_summary(of_rows(1 + np.arange(30))), width=80, colour=False)
    assert "and 18 more classes: --json has all" in text
    assert "  class number 29 w...  " in text
    assert "number 05 w..." not in text
    assert "Confusion" not in text


def test_colours_and_names_change_nothing_else():
    result = of_rows([4, 4], ("\x1b[2Jno", "[red]yes"), cv=2)
    plain, coloured = (summary_text(svm_summary(result), width=100, colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\\x1b[2Jno" in plain
    assert "[red]yes" in plain
    assert "\x1b" in coloured


def test_conjugate_gradients_are_told(kerntest, monkeypatch):
    for module, name, value in ((ridge_machine, "DIRECT", 0), (falkon, "STEPS", 1), (falkon, "ROWS_PER_CENTRE", 1)):
        monkeypatch.setattr(module, name, value)
    given = ("--features", "nystroem:50", "--lambda", "0.1", "--bandwidth", "2")
    outcome = kerntest("ridge", ROOT / "sample_data" / "machines.csv", "--target", "wear_um", *given)
    assert outcome.code == 0
    told = " ".join(outcome.out.split())
    for text in (
        "1 step of conjugate gradients, not converged",
        "by generalised cross-validation",
        "conjugate gradients stopped after 1 steps before they had converged",
        "leave-one-out of 300 rows is not computed with conjugate gradients",
    ):
        assert text in told


def test_a_narrow_page_shows_the_neighbours_of_the_best_bandwidth():
    narrow, wide = (summary_text(ridge_summary(result_of("ridge")), width=width, colour=False) for width in (50, 140))
    assert "columns: --json has all" in " ".join(narrow.split())
    assert "*" in narrow.split("across (* chosen)")[1]
    assert "--json has all" not in wide
