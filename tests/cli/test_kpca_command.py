import csv
import io
import json

import pytest
from command_line import CSV_AS_USUAL

import kerntest as package
from kerntest import KpcaResult, TransformReport
from kerntest.cli.drawing import summary_text
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.report.results.learning_record import ComponentAssociation, KpcaPart
from kerntest.report.results.record import InputRecord, Provenance
from kerntest.report.results.row_reports import ColumnError
from kerntest.report.summaries.learner_summary import SHOWN, goes_with, kpca_sentence, kpca_summary

DEFAULTS = {
    "components": 2,
    "color": None,
    "output": None,
    "force": False,
    "plot": None,
    "kernel": "gaussian",
    "bandwidth": "median",
    "features": None,
    "solver": "auto",
    "scale": "standardize",
    "seed": 0,
    "columns": None,
    "exclude": None,
    "categorical": (),
    "missing": "error",
    **CSV_AS_USUAL,
    "threads": None,
    "progress": None,
}
TRANSFORM_DEFAULTS = {
    "output": None,
    "components": None,
    "reconstruct": False,
    "residual": False,
    "keep": None,
    "missing": "error",
    "unknown": "error",
    **CSV_AS_USUAL,
    "threads": None,
    "progress": None,
}


def kpca_result(**changes):
    made = {
        "schema": "kerntest.kpca/1",
        "command": "kpca",
        "n_train": 80,
        "n_test": 0,
        "judged_on": "train",
        "components": 2,
        "components_requested": 2,
        "eigenvalues": (20.0, 5.0),
        "explained_variance_ratio": (0.4, 0.1),
        "explained": 0.5,
        "trace": 50.0,
        "train": KpcaPart(80, 0.5, 0.3125),
        "test": None,
        "associations": (
            ComponentAssociation("price", "pearson", (-0.91, 0.2)),
            ComponentAssociation("colour", "eta", (0.5, None)),
        ),
        "kernel": "price: gaussian(1.4142135); colour: hamming(1)",
        "bandwidth": None,
        "gamma": None,
        "solver": "lanczos",
        "features": None,
        "feature_error": None,
        "color": None,
        "model": None,
        "columns": ("price", "colour"),
        "columns_left_out": ("id",),
        "warnings": (),
        "provenance": Provenance(
            "0.1.0",
            0,
            (InputRecord("shop.csv", "csv", 80, 80, "ab" * 32, ",", None, 1),),
            "gaussian",
            "median heuristic",
            "standardize",
            "float64",
            2,
            {"numpy": "2"},
            0.5,
        ),
    }
    return KpcaResult(**(made | changes))


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


class StandIn:
    """Stands in for a function of the library: keeps what it was asked, gives back a prepared result or error."""

    def __init__(self, result):
        self.calls, self.result, self.error = [], result, None

    def __call__(self, *arguments, **options):
        self.calls.append((*arguments, options))
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def train_kpca(monkeypatch):
    stand_in = StandIn(kpca_result())
    monkeypatch.setattr(package, "train_kpca", stand_in, raising=False)
    return stand_in


@pytest.fixture
def transform_file(monkeypatch):
    stand_in = StandIn(transform_report())
    monkeypatch.setattr(package, "transform_file", stand_in, raising=False)
    return stand_in


def test_the_defaults_reach_the_library(kerntest, train_kpca, transform_file):
    assert kerntest("kpca", "shop.csv").code == 0
    assert train_kpca.calls == [("shop.csv", DEFAULTS)]
    assert kerntest("transform", "m.kt", "new.csv").code == 0
    assert transform_file.calls == [("m.kt", "new.csv", TRANSFORM_DEFAULTS)]


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--components", "5"], "components", 5),
        (["--color", "kind"], "color", "kind"),
        (["-o", "m.kt"], "output", "m.kt"),
        (["--force"], "force", True),
        (["--plot", "p.png"], "plot", "p.png"),
        (["--kernel", "laplacian"], "kernel", "laplacian"),
        (["--bandwidth", "2.5"], "bandwidth", 2.5),
        (["--features", "nystroem:50"], "features", "nystroem:50"),
        (["--solver", "Dense"], "solver", "dense"),
        (["--scale", "none"], "scale", "none"),
        (["--seed", "7"], "seed", 7),
        (["--columns", "a,b", "--columns", "c*"], "columns", "a,b,c*"),
        (["--exclude", "id"], "exclude", "id"),
        (["--categorical", "code"], "categorical", "code"),
        (["--missing", "drop"], "missing", "drop"),
        (["--decimal", ","], "decimal", ","),
        (["--threads", "3"], "threads", 3),
    ],
)
def test_options_reach_the_library(kerntest, train_kpca, arguments, name, value):
    assert kerntest("kpca", "shop.csv", *arguments).code == 0
    options = train_kpca.calls[-1][-1]
    assert options[name] == value
    assert {key for key in options if options[key] != DEFAULTS[key]} <= {name}


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--components", "1"], "components", 1),
        (["--reconstruct"], "reconstruct", True),
        (["--denoise"], "reconstruct", True),
        (["--residual"], "residual", True),
        (["--keep", "id", "--keep", "x*"], "keep", "id,x*"),
        (["--missing", "empty"], "missing", "empty"),
        (["--unknown", "ignore"], "unknown", "ignore"),
        (["-o", "out.csv"], "output", "out.csv"),
        (["--threads", "3"], "threads", 3),
    ],
)
def test_options_of_transform_reach_the_library(kerntest, transform_file, arguments, name, value):
    assert kerntest("transform", "m.kt", "new.csv", *arguments).code == 0
    options = transform_file.calls[-1][-1]
    assert options[name] == value
    assert {key for key in options if options[key] != TRANSFORM_DEFAULTS[key]} <= {name}


def test_the_table_tells_eigenvalues_shares_and_what_goes_with_them(kerntest, train_kpca):
    train_kpca.result = kpca_result(model="m.kt", warnings=("careful",))
    outcome = kerntest("kpca", "shop.csv")
    assert (outcome.code, outcome.err) == (0, "wrote m.kt\n")
    for text in (
        "Kernel principal components\n",
        "  kernel   price: gaussian(1.414); colour: hamming(1)\n",
        "  solver   Lanczos\n",
        "  pc1                20           40.0      40.0  price (-0.91), colour (0.50)\n",
        "  pc2                 5           10.0      50.0  -\n",
        "Result: 2 components explain 50 % of the variance in feature space.\n",
        "  -  careful\n",
    ):
        assert text in outcome.out


def test_the_linear_kernel_has_no_feature_space_of_its_own():
    linear = kpca_result(
        kernel="linear", components=1, eigenvalues=(20.0,), explained_variance_ratio=(0.4,), explained=0.4
    )
    assert kpca_sentence(linear) == "1 component explains 40 % of the variance."
    assert summary_text(kpca_summary(linear), width=80, colour=False).startswith("Principal components\n")


def test_features_and_their_error_are_told():
    text = summary_text(
        kpca_summary(kpca_result(features="nystroem:300", feature_error=0.00123)), width=100, colour=False
    )
    assert "300 Nystroem features, kernel values off by 0.0012 (RMS)" in text


def test_more_components_than_fit_are_summed_up():
    ratios = (0.02,) * (SHOWN + 5)
    many = kpca_result(
        components=len(ratios), eigenvalues=ratios, explained_variance_ratio=ratios, explained=0.34, associations=()
    )
    text = summary_text(kpca_summary(many), width=80, colour=False)
    assert f"pc{SHOWN} " in text
    assert f"pc{SHOWN + 1} " not in text
    assert "and 5 more, in all 34.0 %: --json has them" in text
    assert goes_with(many, 0) == "-"


def test_json_and_csv_have_everything(kerntest, train_kpca):
    plain = json.loads(kerntest("kpca", "shop.csv", "--json").out)
    assert plain == train_kpca.result.to_dict()
    assert plain["eigenvalues"] == [20.0, 5.0]
    rows = list(csv.DictReader(io.StringIO(kerntest("kpca", "shop.csv", "--format", "csv").out)))
    assert rows[0]["eigenvalues"] == "20.0;5.0"
    assert rows[0]["train.explained"] == "0.5"


def test_verbose_explains_and_quiet_says_nothing(kerntest, train_kpca):
    train_kpca.result = kpca_result(model="m.kt", warnings=("careful",))
    loud = kerntest("kpca", "shop.csv", "-v").err
    for text in ("columns left out: id", "bandwidth: median heuristic", "trace of HKH: 50"):
        assert text in loud
    assert kerntest("kpca", "shop.csv", "-q", "--json").err == ""


def test_the_report_of_a_transformation(kerntest, transform_file):
    outcome = kerntest("transform", "m.kt", "new.csv", "--denoise", "-o", "out.csv")
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
    transform_file.result = transform_report(reconstructed=False, reconstruction_error=None, by_column=(), output=None)
    outcome = kerntest("transform", "m.kt", "new.csv", "--report", "-", "-o", "out.csv")
    assert outcome.out.startswith("Projection\n")
    assert "have scores." in outcome.out


def test_without_an_output_stdout_is_for_the_rows(kerntest, transform_file):
    outcome = kerntest("transform", "m.kt", "new.csv")
    assert outcome.out == ""
    assert outcome.err == "warning: careful\nnot used by m.kt: id\nwrote out.csv\n"
    for arguments in (["--json"], ["--report", "-"]):
        refused = kerntest("transform", "m.kt", "new.csv", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert "-o FILE.csv puts the scores into a file" in refused.err
    assert len(transform_file.calls) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such column", hint="look"), 2),
        (DataError("no such file", hint="look"), 3),
        (UndecidedError("no component", hint="look"), 4),
    ],
)
def test_errors_are_two_lines_and_a_code(kerntest, train_kpca, error, code):
    train_kpca.error = error
    outcome = kerntest("kpca", "shop.csv")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", f"error: {error.message}\nhint: look\n")
