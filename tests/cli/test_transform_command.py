"""``kerntest transform``: what reaches the library, and where rows and report go."""

import shlex

import pytest
from command_line import CSV_AS_USUAL

import kerntest as package
from kerntest import TransformReport
from kerntest.report.results.row_reports import ColumnError

DEFAULTS = {
    **dict.fromkeys(("output", "components", "keep", "threads", "progress")),
    **dict.fromkeys(("reconstruct", "residual"), False),
    **dict.fromkeys(("missing", "unknown"), "error"),
    **CSV_AS_USUAL,
}


def transform_report(**changes):
    made = {
        "schema": "kerntest.transform/1",
        "command": "transform",
        "model": "m.kt",
        "kind": "kpca",
        "data": "new.csv",
        "rows": 10,
        "transformed": 9,
        "incomplete": 1,
        "components": 2,
        "residual": 0.25,
        "reconstructed": True,
        "reconstruction_error": 1.5,
        "by_column": (ColumnError("price", 2.5, None), ColumnError("colour", None, 0.125)),
        "not_converged": 0,
        "output": "out.csv",
        "columns": ("row", "price", "colour", "reconstruction_error"),
        "columns_ignored": ("id",),
        "unknown": (),
        "warnings": ("careful",),
        "version": "0.1.0",
        "seconds": 0.1,
    }
    return TransformReport(**(made | changes))


@pytest.fixture
def asked(monkeypatch):
    """Return what `transform_file` was asked; what it gives back may be changed."""
    calls = {"result": transform_report(), "options": []}

    def transform_file(model, data, **options):
        calls["options"].append(options)
        assert (model, data) == ("m.kt", "new.csv")
        return calls["result"]

    monkeypatch.setattr(package, "transform_file", transform_file, raising=False)
    return calls


@pytest.fixture
def transform(kerntest):
    return lambda *arguments: kerntest("transform", "m.kt", "new.csv", *arguments)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ("", {}),
        ("--components 1 --denoise", {"components": 1, "reconstruct": True}),
        ("--reconstruct --residual", {"reconstruct": True, "residual": True}),
        ("--keep id --keep x* -o out.csv", {"keep": "id,x*", "output": "out.csv"}),
        ("--missing empty --unknown ignore", {"missing": "empty", "unknown": "ignore"}),
        ("--threads 3", {"threads": 3}),
    ],
)
def test_options_reach_the_library(transform, asked, arguments, changes):
    assert transform(*shlex.split(arguments)).code == 0
    assert asked["options"] == [DEFAULTS | changes]


def test_the_report_of_a_transformation(transform, asked):
    outcome = transform("--denoise", "-o", "out.csv")
    for text in (
        "Reconstruction\n",
        "m.kt: kpca, 2 components\n",
        "1.5 from row to pre-image, in scaled units (RMS)\n",
        "price: 2.5 (RMS)\n",
        "colour: 12.5 % changed\n",
        "0.25 in feature space (mean square)\n",
        "1 row with missing values\n",
        "Result: 9 of 10 rows have a pre-image.\n",
    ):
        assert text in outcome.out
    assert outcome.err == "wrote out.csv\n"
    asked["result"] = transform_report(reconstructed=False, reconstruction_error=None, by_column=(), output=None)
    outcome = transform("--report", "-", "-o", "out.csv")
    assert outcome.out.startswith("Projection\n")
    assert "have scores." in outcome.out


def test_without_an_output_stdout_is_for_the_rows(transform, asked):
    outcome = transform()
    assert outcome.out == ""
    assert outcome.err == "warning: careful\nnot used by m.kt: id\nwrote out.csv\n"
    for arguments in (["--json"], ["--report", "-"]):
        refused = transform(*arguments)
        assert (refused.code, refused.out) == (2, "")
        assert "-o FILE.csv puts the scores into a file" in refused.err
    assert len(asked["options"]) == 1
