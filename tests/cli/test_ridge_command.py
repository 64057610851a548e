import json

import pytest
from command_line import CSV_AS_USUAL
from example_ridge import metrics, ridge_grid, ridge_result, target_fit

import kerntest as package
from kerntest.cli.drawing import summary_text
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.report.summaries.learner_summary import learner_notes, ridge_sentence, ridge_summary

PLAIN = ["shop.csv", "--target", "wear"]
DEFAULTS = {
    "target": "wear",
    "test": None,
    "test_fraction": None,
    "output": None,
    "force": False,
    "plot": None,
    "lambda_": None,
    "kernel": "gaussian",
    "bandwidth": "auto",
    "criterion": "loo",
    "cv": None,
    "weights": None,
    "interval": 0.9,
    "intervals": True,
    "features": None,
    "scale": "standardize",
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
    """Stands in for `train_ridge`: keeps what it was asked, and gives back a prepared result or error."""

    def __init__(self):
        self.calls = []
        self.result = ridge_result()
        self.error = None

    def __call__(self, train, **options):
        self.calls.append((train, options))
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def train_ridge(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(package, "train_ridge", stand_in, raising=False)
    return stand_in


def test_the_defaults_reach_the_library(kerntest, train_ridge):
    assert kerntest("ridge", *PLAIN).code == 0
    assert train_ridge.calls == [("shop.csv", DEFAULTS)]


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--test", "new.csv"], "test", "new.csv"),
        (["--test-fraction", "0.3"], "test_fraction", 0.3),
        (["-o", "m.kt"], "output", "m.kt"),
        (["--force"], "force", True),
        (["--plot", "p.png"], "plot", "p.png"),
        (["--lambda", "1e-3"], "lambda_", 1e-3),
        (["--kernel", "laplacian"], "kernel", "laplacian"),
        (["--bandwidth", "2.5"], "bandwidth", 2.5),
        (["--bandwidth", "MEDIAN"], "bandwidth", "median"),
        (["--criterion", "Evidence"], "criterion", "evidence"),
        (["--cv", "7"], "cv", 7),
        (["--weights", "w"], "weights", "w"),
        (["--interval", "0.5"], "interval", 0.5),
        (["--no-intervals"], "intervals", False),
        (["--features", "nystroem:50"], "features", "nystroem:50"),
        (["--scale", "none"], "scale", "none"),
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
def test_options_reach_the_library(kerntest, train_ridge, arguments, name, value):
    assert kerntest("ridge", *PLAIN, *arguments).code == 0
    options = train_ridge.calls[-1][1]
    assert options[name] == value
    assert type(options[name]) is type(value)
    assert {key for key in options if options[key] != DEFAULTS[key]} <= {name}


def test_the_table_tells_what_was_learned_and_how_good_it_is(kerntest, train_ridge):
    train_ridge.result = ridge_result(grid=ridge_grid(), model="m.kt", weights="w", warnings=("careful",))
    outcome = kerntest("ridge", *PLAIN)
    assert (outcome.code, outcome.err) == (0, "wrote m.kt\n")
    for text in (
        "Kernel ridge regression\n",
        "60 to learn from, 20 held out to judge by",
        "  target     wear\n",
        "gaussian(2)",
        "  weights    w\n",
        "0.3, lambda/n = 0.005",
        "exact leave-one-out: RMSE 3.375, the best of 4 cells",
        "12.5 effective degrees of freedom, condition number 1.2e+04\n",
        "RMSE       2.5 on 20 test rows",
        "of 90 % hold 85 % of 20 test rows",
        "standard deviation 2.25, estimated",
        "RMSE 2.75 of training rows left out, one at a time",
        "RMSE 1.5, r2 0.9\n",
        "Grid, RMSE, bandwidths across (* chosen):\n",
        "  lambda      1       2\n  0.1         3    3.25\n  1       3.125  *3.375\n",
        "tie rule: the best score; of equal ones the smoothest",
        "Decision: Predictions of 20 test rows are off by 2.5 (root mean square, r2 = 0.75).",
        "-  careful",
    ):
        assert text in outcome.out


def test_without_test_rows_leave_one_out_is_the_answer():
    result = ridge_result(judged_on="train", n_test=0, test=None, fits=(target_fit(test=None),))
    assert ridge_sentence(result) == (
        "Predictions of rows left out, one at a time, are off by 2.75 (root mean square, r2 = 0.7)."
    )
    text = summary_text(ridge_summary(result), width=100, colour=False)
    assert "of 90 % hold 90 % of rows left out, one at a time" in text
    assert "RMSE       1.5 on 60 training rows" in text


def test_several_targets_have_a_line_each():
    fits = (target_fit("wear"), target_fit("power", test=metrics(rmse=9.5, coverage=None)))
    text = summary_text(ridge_summary(ridge_result(targets=("wear", "power"), fits=fits)), width=100, colour=False)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "target wear, power" in lines
    assert "wear RMSE 2.5 on 20 test rows, r2 0.75, intervals of 90 % hold 85 %" in lines
    assert "power RMSE 9.5 on 20 test rows, r2 0.75" in lines
    assert "Decision: Predictions of 20 test rows have r2 = 0.75, the mean over 2 targets." in text


def test_conjugate_gradients_and_features_are_told():
    result = ridge_result(
        solver="conjugate gradients",
        iterations=31,
        converged=False,
        features="nystroem:50",
        feature_error=0.001,
        grid=ridge_grid(n_rows=40, criterion="cv", folds=5),
        loo_rmse=None,
    )
    text = summary_text(ridge_summary(result), width=120, colour=False)
    assert "31 steps of conjugate gradients, not converged" in text
    assert "50 Nystroem features, kernel values off by 0.001 (RMS)" in text
    assert "exact 5-fold cross-validation of 40 rows: RMSE" in text
    assert "left out   RMSE 2.7 by generalised cross-validation" in text


def test_a_narrow_page_shows_the_neighbours_of_the_best_bandwidth():
    grid = ridge_grid(multiples=(0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4))
    text = summary_text(ridge_summary(ridge_result(grid=grid)), width=50, colour=False)
    assert "5 of 7 columns: --json has all" in " ".join(text.split())
    assert "*3.375" in text
    whole = summary_text(ridge_summary(ridge_result(grid=grid)), width=100, colour=False)
    assert "--json has all" not in whole


def test_the_json_has_the_names_that_the_notes_use(kerntest, train_ridge):
    train_ridge.result = ridge_result(grid=ridge_grid())
    plain = json.loads(kerntest("ridge", *PLAIN, "--json").out)
    assert plain == train_ridge.result.to_dict()
    assert (plain["lambda"], plain["lambda_per_row"], plain["loo_rmse"], plain["effective_df"]) == (
        0.3,
        0.005,
        2.75,
        12.5,
    )
    assert plain["test"]["coverage"] == 0.85
    assert plain["grid"]["cells"][0]["lambda"] == 0.1


def test_a_report_may_go_to_a_file(kerntest, train_ridge, tmp_path):
    del train_ridge
    outcome = kerntest("ridge", *PLAIN, "--json", "--report", tmp_path / "r.json")
    assert (outcome.code, outcome.out) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["target"] == "wear"


def test_verbose_says_what_was_chosen(kerntest, train_ridge):
    train_ridge.result = ridge_result(grid=ridge_grid(), columns_left_out=("id",))
    assert "columns left out: id" in kerntest("ridge", *PLAIN, "-v").err
    assert any("of the grid was chosen" in note for note in learner_notes(train_ridge.result))


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("no"), 2), (DataError("no"), 3), (UndecidedError("no"), 4), (ValueError("no"), 70)],
)
def test_errors_become_exit_codes(kerntest, train_ridge, error, code):
    train_ridge.error = error
    outcome = kerntest("ridge", *PLAIN)
    assert (outcome.code, outcome.out) == (code, "")
    assert "no" in outcome.err.splitlines()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["shop.csv"],
        [*PLAIN, "--lambda", "0"],
        [*PLAIN, "--lambda", "small"],
        [*PLAIN, "--criterion", "aic"],
        [*PLAIN, "--interval", "90"],
        [*PLAIN, "--cv", "1"],
        [*PLAIN, "--bandwidth", "0"],
        [*PLAIN, "-o", "m.kt", "--plot", "m.kt"],
        [*PLAIN, "-o", "shop.csv", "--force"],
        ["-", "--target", "wear", "--test", "-"],
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(kerntest, train_ridge, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.csv").write_text("a,wear\n1,2\n")
    outcome = kerntest("ridge", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert len(outcome.err.splitlines()) <= 4
    assert outcome.err.startswith("error: ")
    assert train_ridge.calls == []


def test_targets_given_one_by_one_add_up(kerntest, train_ridge):
    kerntest("ridge", "shop.csv", "--target", "wear", "--target", "power")
    assert train_ridge.calls[-1][1]["target"] == ("wear", "power")
