"""``kerntest predict``: what reaches the library, and where rows and report go."""

import json

import pytest
from command_line import CSV_AS_USUAL

import kerntest as package
from kerntest import PredictionReport
from kerntest.errors import DataError, ModelError
from kerntest.report.results.row_reports import NumberSummary, UnknownLevels

DEFAULTS = {
    **dict.fromkeys(("output", "interval", "keep", "threads", "progress")),
    **dict.fromkeys(("proba", "decision", "std"), False),
    **dict.fromkeys(("missing", "unknown"), "error"),
    **CSV_AS_USUAL,
}
REPORT = {
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
    "output": None,
    "predictions": {"no": 900, "yes": 98},
    "numbers": None,
    "by_target": None,
    "columns": ("row", "prediction"),
    "columns_ignored": ("id",),
    "unknown": (UnknownLevels("city", ("Oz",), 3),),
    "warnings": ("careful",),
    "version": "0.1.0",
    "seconds": 0.5,
}


class StandIn:
    """Stands in for `predict_file`: keeps what it was asked, and gives back a prepared result or error."""

    def __init__(self):
        self.calls, self.error = [], None
        self.gives()

    def gives(self, **changes):
        self.result = PredictionReport(**(REPORT | changes))

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


@pytest.fixture
def predict(kerntest, predict_file):
    del predict_file
    return lambda *arguments: kerntest("predict", "m.kt", "new.csv", *arguments)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ("", {}),
        ("-o p.csv", {"output": "p.csv"}),
        ("--proba --decision --std", {"proba": True, "decision": True, "std": True}),
        ("--interval 0.9", {"interval": 0.9}),
        ("--keep id --keep a*", {"keep": "id,a*"}),
        ("--missing EMPTY --unknown ignore", {"missing": "empty", "unknown": "ignore"}),
        ("--decimal , --threads 2", {"decimal": ",", "threads": 2}),
    ],
)
def test_options_reach_the_library(predict, predict_file, arguments, changes):
    outcome = predict(*arguments.split())
    assert outcome.code == 0
    assert predict_file.calls == [("m.kt", "new.csv", DEFAULTS | changes)]
    if not changes:
        assert (outcome.out, outcome.err) == ("", "warning: careful\nnot used by m.kt: id\n")


def test_with_a_file_the_report_is_on_stdout(predict, predict_file):
    predict_file.gives(output="p.csv")
    outcome = predict("-o", "p.csv")
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
    outcome = predict("-o", "p.csv", "--json")
    assert json.loads(outcome.out) == predict_file.result.to_dict()
    assert outcome.err == "warning: careful\nnot used by m.kt: id\nwrote p.csv\n"


def test_numbers_are_told_by_their_range_target_by_target(predict, predict_file):
    one, other = NumberSummary(1.0, 2.0, 3.0), NumberSummary(-1.0, 0.5, 2.0)
    predict_file.gives(predictions=None, numbers=other, output="p.csv")
    assert "-1 to 2, mean 0.5" in predict("-o", "p.csv").out
    predict_file.gives(task="regress", predictions=None, by_target={"wear": one, "power": other}, output="p.csv")
    out = predict("-o", "p.csv").out
    assert "wear: 1 to 3, mean 2" in out
    assert "power: -1 to 2, mean 0.5" in out


def test_a_report_may_go_to_a_file_of_its_own(predict, tmp_path):
    path = tmp_path / "report.json"
    assert predict("--report", path, "--json").out == ""
    assert json.loads(path.read_text())["unknown"] == [{"column": "city", "values": ["Oz"], "rows": 3}]


@pytest.mark.parametrize(
    ("error", "code"), [(ModelError("damaged", hint="copy it"), 5), (DataError("missing", hint="copy it"), 3)]
)
def test_errors_become_exit_codes(predict, predict_file, error, code):
    predict_file.error = error
    outcome = predict()
    assert (outcome.code, outcome.out, outcome.err) == (code, "", f"error: {error.message}\nhint: copy it\n")


@pytest.mark.parametrize(
    "arguments", ["-o ./new.csv", "-o m.kt", "--report m.kt", "--interval 90", "--format json", "--report -"]
)
def test_neither_data_nor_model_can_be_written_over_and_stdout_has_room_for_one(
    predict, predict_file, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    for name in ("m.kt", "new.csv"):
        (tmp_path / name).write_text("x")
    assert predict(*arguments.split()).code == 2
    assert predict_file.calls == []
