import json

import pytest
from command_line import CSV_AS_USUAL

import kerntest as package
from kerntest import PredictionReport
from kerntest.errors import DataError, ModelError
from kerntest.report.results.row_reports import NumberSummary, UnknownLevels

DEFAULTS = {
    "output": None,
    "proba": False,
    "decision": False,
    "std": False,
    "interval": None,
    "keep": None,
    "missing": "error",
    "unknown": "error",
    **CSV_AS_USUAL,
    "threads": None,
    "progress": None,
}


def report(**changes):
    values = {
        "schema": "kerntest.predict/1",
        "command": "predict",
        "model": "m.kt",
        "kind": "svm",
        "task": "classify",
        "target": "bought",
        "data": "new.csv",
        "rows": 1000,
        "predicted": 998,
        "incomplete": 2,
        "predictions": {"no": 900, "yes": 98},
        "numbers": None,
        "by_target": None,
        "output": None,
        "columns": ("row", "prediction"),
        "columns_ignored": ("id",),
        "unknown": (UnknownLevels("city", ("Oz",), 3),),
        "warnings": ("careful",),
        "version": "0.1.0",
        "seconds": 0.5,
    }
    return PredictionReport(**(values | changes))


class StandIn:
    """Stands in for `predict_file`: keeps what it was asked, and gives back a prepared result or error."""

    def __init__(self):
        self.calls = []
        self.result = report()
        self.error = None

    def __call__(self, model, data, **options):
        self.calls.append((model, data, options))
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def predict_file(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(package, "predict_file", stand_in, raising=False)
    return stand_in


def test_the_defaults_reach_the_library(kerntest, predict_file):
    outcome = kerntest("predict", "m.kt", "new.csv")
    assert (outcome.code, outcome.out) == (0, "")
    assert predict_file.calls == [("m.kt", "new.csv", DEFAULTS)]
    assert outcome.err == "warning: careful\nnot used by m.kt: id\n"


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["-o", "p.csv"], "output", "p.csv"),
        (["--proba"], "proba", True),
        (["--decision"], "decision", True),
        (["--std"], "std", True),
        (["--interval", "0.9"], "interval", 0.9),
        (["--keep", "id", "--keep", "a*"], "keep", "id,a*"),
        (["--missing", "EMPTY"], "missing", "empty"),
        (["--unknown", "ignore"], "unknown", "ignore"),
        (["--decimal", ","], "decimal", ","),
        (["--threads", "2"], "threads", 2),
    ],
)
def test_options_reach_the_library(kerntest, predict_file, arguments, name, value):
    assert kerntest("predict", "m.kt", "new.csv", *arguments).code == 0
    assert predict_file.calls[-1][2] == DEFAULTS | {name: value}


def test_with_a_file_the_report_is_on_stdout(kerntest, predict_file):
    predict_file.result = report(output="p.csv")
    outcome = kerntest("predict", "m.kt", "new.csv", "-o", "p.csv")
    assert outcome.err == "wrote p.csv\n"
    for text in (
        "m.kt: svm, classify, predicts bought",
        "new.csv: 1,000 rows",
        "not used    id",
        "no 900, yes 98",
        "2 rows with missing values",
        "Result: 998 of 1,000 rows have a prediction.",
        "-  careful",
    ):
        assert text in outcome.out
    outcome = kerntest("predict", "m.kt", "new.csv", "-o", "p.csv", "--json")
    assert json.loads(outcome.out) == predict_file.result.to_dict()
    assert outcome.err == "warning: careful\nnot used by m.kt: id\nwrote p.csv\n"


def test_numbers_are_told_by_their_range(kerntest, predict_file):
    predict_file.result = report(predictions=None, numbers=NumberSummary(-1.0, 0.5, 2.0), output="p.csv")
    assert "-1 to 2, mean 0.5" in kerntest("predict", "m.kt", "new.csv", "-o", "p.csv").out


def test_a_report_may_go_to_a_file_of_its_own(kerntest, predict_file, tmp_path):
    del predict_file
    path = tmp_path / "report.json"
    assert kerntest("predict", "m.kt", "new.csv", "--report", path, "--json").out == ""
    assert json.loads(path.read_text())["unknown"] == [{"column": "city", "values": ["Oz"], "rows": 3}]


def test_json_needs_somewhere_for_the_predictions(kerntest, predict_file):
    outcome = kerntest("predict", "m.kt", "new.csv", "--format", "json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "usage.contradiction" in outcome.err
    assert not predict_file.calls


@pytest.mark.parametrize(
    ("error", "code"), [(ModelError("damaged", hint="copy it"), 5), (DataError("missing", hint="copy it"), 3)]
)
def test_errors_become_exit_codes(kerntest, predict_file, error, code):
    predict_file.error = error
    outcome = kerntest("predict", "m.kt", "new.csv")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", f"error: {error.message}\nhint: copy it\n")


def test_neither_the_data_nor_the_model_can_be_written_over(kerntest, predict_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m.kt", "new.csv"):
        (tmp_path / name).write_text("x")
    assert kerntest("predict", "m.kt", "new.csv", "-o", "./new.csv").code == 2
    assert kerntest("predict", "m.kt", "new.csv", "-o", tmp_path / "m.kt").code == 2
    assert kerntest("predict", "m.kt", "new.csv", "--report", "m.kt").code == 2
    assert not predict_file.calls


def test_several_targets_are_told_one_by_one(kerntest, predict_file):
    ranges = {"wear": NumberSummary(1.0, 2.0, 3.0), "power": NumberSummary(-1.0, 0.5, 2.0)}
    predict_file.result = report(task="regress", predictions=None, by_target=ranges, output="p.csv")
    outcome = kerntest("predict", "m.kt", "new.csv", "-o", "p.csv")
    assert "wear: 1 to 3, mean 2" in outcome.out
    assert "power: -1 to 2, mean 0.5" in outcome.out


def test_an_interval_is_a_probability(kerntest, predict_file):
    assert kerntest("predict", "m.kt", "new.csv", "--interval", "90").code == 2
    assert predict_file.calls == []
