"""Gates on numbers of a report: the grammar of --fail-on, and what it does with what is not there."""

import json
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "sample_data"
IRIS, MACHINES = str(SAMPLES / "iris.csv"), str(SAMPLES / "machines.csv")
SVM = ["svm", IRIS, "--target", "species", "--test-fraction", "0.3", "-q"]
RIDGE = ["ridge", MACHINES, "--target", "wear_um", "--columns", "temp_c", "--lambda", "1", "--bandwidth", "1", "-q"]
REGRESS = ["svm", *RIDGE[1:6], "--task", "regress", "--cv", "3"]
MMD = ["mmd", str(SAMPLES / "iris_versicolor.csv"), str(SAMPLES / "iris_virginica.csv"), "--permutations", "20", "-q"]


@pytest.mark.parametrize(
    ("arguments", "gate", "code"),
    [
        (SVM, "accuracy<0.99", 1),
        (SVM, "accuracy<0.5", 0),
        (SVM, " test.accuracy >= 0.5 ", 1),
        (SVM, "test.classes.setosa.recall<1", 0),
        (SVM, "test.confusion.0.0<=15", 1),
        (SVM, "n_test>45", 0),
        (SVM, "C<=1e0", 1),
        (RIDGE, "r2<0.999", 1),
        (RIDGE, "lambda>1", 0),
        (["kpca", IRIS, "-q"], "explained>0.5", 1),
        (MMD, "effect_size>0.2", 1),
        (MMD, "p_value<0.001", 0),
        (["hsic", MACHINES, "--pairwise", "--columns", "temp_c,wear_um", "-q"], "rejected>=1", 1),
    ],
)
def test_a_number_beyond_its_limit_is_1(kerntest, arguments, gate, code):
    outcome = kerntest(*arguments, "--fail-on", gate, "--json")
    assert outcome.code == code
    assert json.loads(outcome.out)["schema"].startswith("kerntest.")


def test_the_reason_is_told_and_the_model_is_there(kerntest, tmp_path):
    model = tmp_path / "m.kt"
    outcome = kerntest(*SVM[:-1], "--fail-on", "accuracy<0.99", "-o", model)
    assert outcome.code == 1
    assert "exit code 1, because of --fail-on accuracy<0.99: accuracy is 0.955556" in outcome.err
    assert model.exists()
    applied = kerntest("predict", model, IRIS, "--fail-on", "predictions.setosa<60")
    assert applied.code == 1
    assert applied.out.startswith("row,prediction\n")
    assert kerntest("predict", model, IRIS, "--fail-on", "incomplete>0", "-o", tmp_path / "o.csv").code == 0


def test_the_share_of_outliers_is_a_number_of_predictions(kerntest, tmp_path):
    model, out = tmp_path / "m.kt", tmp_path / "o.csv"
    kerntest("svm", IRIS, "--task", "one-class", "--exclude", "species", "--nu", "0.2", "-o", model)
    outcome = kerntest("predict", model, IRIS, "-o", out, "--fail-on", "outliers>0.1", "--json")
    assert outcome.code == 1
    found = json.loads(outcome.out)
    assert found["outliers"] == found["predictions"]["false"] / 150 > 0.1
    assert "exit code 1, because of --fail-on outliers>0.1: outliers is 0.1" in outcome.err
    assert kerntest("predict", model, IRIS, "-o", tmp_path / "p.csv", "--fail-on", "outliers>0.2").code == 0
    # A model of classes has none.
    kerntest(*SVM, "-o", tmp_path / "classes.kt")
    other = kerntest("predict", tmp_path / "classes.kt", IRIS, "-o", tmp_path / "q.csv", "--fail-on", "outliers>0.2")
    assert (other.code, "outliers is null in the report" in other.err) == (4, True)


def test_gates_on_drifted_data_pass_clean_data(kerntest, tmp_path):
    """Totals and lists are there whether or not there is anything in them."""
    rows = [f"{i % 7},{i % 5},{'ab'[i % 2]},{i % 3}\n" for i in range(60)]
    (tmp_path / "old.csv").write_text("x,z,kind,y\n" + "".join(rows))
    # Of 60 rows two have a number far off, one of these in both columns, and one a letter of its own beside.
    (tmp_path / "new.csv").write_text("x,z,kind,y\n900,900,c,0\n900,1,a,0\n1,1,c,0\n" + "".join(rows[3:]))
    assert kerntest("ridge", tmp_path / "old.csv", "--target", "y", "-o", tmp_path / "m.kt", "-q").code == 0
    gates = {"outside_rows": 2, "unknown_rows": 2, "outside": 2, "unknown": 1, "warnings": 3}
    for name, count in gates.items():
        predict = ["predict", tmp_path / "m.kt", "--unknown", "ignore", "-o", tmp_path / "p.csv", "--json"]
        clean = kerntest(*predict, tmp_path / "old.csv", "--fail-on", f"{name}>0")
        assert (clean.code, clean.err) == (0, kerntest(*predict, tmp_path / "old.csv").err)
        found = kerntest(*predict, tmp_path / "new.csv", "--fail-on", f"{name}>0")
        assert (found.code, f"because of --fail-on {name}>0: {name} is {count}\n" in found.err) == (1, True)
    assert {json.loads(clean.out)[name] for name in ("outside_rows", "unknown_rows")} == {0}
    entry = kerntest(*predict[:-1], tmp_path / "old.csv", "--fail-on", "outside.0.rows>0")
    assert entry.code == 2
    assert "hint: 'outside_rows' (rows with any of them) and 'outside' (how many entries it has)" in entry.err
    assert kerntest(*predict, tmp_path / "new.csv", "--fail-on", "outside.0.rows>1").code == 1
    assert "did you mean 'warnings'?" in kerntest(*MMD, "--fail-on", "warning>0").err
    assert kerntest(*MMD, "--fail-on", "warnings>0").code == 0


@pytest.mark.parametrize("gate", ["rmse>1", "test.log_loss>1"])
def test_a_gate_on_a_number_that_is_null_is_4(kerntest, gate):
    outcome = kerntest(*SVM, "--fail-on", gate)
    assert outcome.code == 4
    assert f"--fail-on {gate} has nothing to decide on: {gate.partition('>')[0]} is null in the report" in outcome.err
    assert "Support vector machine" in outcome.out


@pytest.mark.parametrize(
    ("gate", "hint"),
    [
        ("test.accuracy<0.9", "--test-fraction 0.3, or a file as --test, gives rows to judge by"),
        ("grid.mean<0.9", "--cv 5, or --grid, judges by rows held out in folds"),
    ],
)
def test_a_gate_on_what_was_not_asked_for_is_told_how_to_ask(kerntest, gate, hint):
    outcome = kerntest("svm", IRIS, "--target", "species", "-q", "--fail-on", gate)
    assert outcome.code == 4
    assert f"hint: {hint}\n" in outcome.err


@pytest.mark.parametrize(
    ("share", "hint"), [("30", "did you mean 0.3?"), ("5", "did you mean 0.05?"), ("1", "see"), ("130%", "see")]
)
def test_a_share_may_be_in_percents(kerntest, share, hint):
    given = ["svm", IRIS, "--target", "species", "--json", "-q", "--test-fraction"]
    assert json.loads(kerntest(*given, "30%").out)["n_test"] == 45 == json.loads(kerntest(*given, "0.3").out)["n_test"]
    outcome = kerntest(*given, share)
    assert (outcome.code, f'"hint": "{hint}' in outcome.err) == (2, True)


def test_a_gate_where_nothing_was_tested_is_4(kerntest, tmp_path):
    # No row has both.
    rows = "".join(f"{i},\n" if i % 2 else f",{i}\n" for i in range(30))
    (tmp_path / "apart.csv").write_text(f"a,b\n{rows}")
    screen = ["hsic", tmp_path / "apart.csv", "--pairwise", "--missing", "drop", "-q"]
    for gate in ("reject", "accept", "rejected>0"):
        outcome = kerntest(*screen, "--fail-on", gate)
        assert outcome.code == 4
        assert f"--fail-on {gate} has nothing to decide on: nothing was tested" in outcome.err
        assert "Decision: No pair could be tested: nothing is known of their dependence." in outcome.out
    assert kerntest(*screen, "--fail-on", "tests<1").code == 1
    assert kerntest(*screen).code == 0


@pytest.mark.parametrize(
    ("arguments", "gate", "way_out"),
    [
        ([*SVM[:4], "--cv", "3"], "accuracy<0.5", "grid.mean is the accuracy of rows held out"),
        ([*SVM[:4], "--cv", "3", "--select-by", "auc"], "accuracy<0.5", "grid.mean is the ROC AUC of rows held out"),
        (REGRESS, "r2<0", "grid.r2 is of rows held out"),
        (REGRESS, "rmse<0", "grid.mean is the negative RMSE of rows held out"),
        ([*RIDGE[:-1], "--cv", "3"], "rmse<0", "grid.rmse is of rows held out"),
        (SVM[:4], "accuracy<0.5", "--test-fraction 0.3 holds rows out"),
        (SVM[:4], "train.accuracy<0.5", "--test-fraction 0.3 holds rows out"),
        (RIDGE[:-1], "rmse<0", "loo_rmse is of rows held out"),
    ],
)
def test_a_gate_on_rows_learned_from_is_told(kerntest, arguments, gate, way_out):
    outcome = kerntest(*arguments, "--fail-on", gate)
    assert outcome.code == 0
    assert f"--fail-on {gate} judges the rows that were learned from, which is too good; {way_out}" in outcome.err
    held_out = way_out.partition(" ")[0]
    if not held_out.startswith("--"):
        assert (
            "learned from, which"
            not in kerntest(*arguments, "--fail-on", f"{held_out}<0").err.partition("--fail-on")[2]
        )


@pytest.mark.parametrize(
    ("gate", "hint"),
    [
        ("reject,same", "--fail-on same with --margin, or --fail-on reject without it"),
        ("same,differnt", "--fail-on same,differ"),
        ("reject,accept", "--fail-on reject"),
        ("margin.verdict=same", "--fail-on same: the verdict alone"),
        ("reject == true", "--fail-on reject: the verdict alone"),
        ("p_value=0.3", "a number is below or above a limit: --fail-on 'p_value<0.3' or 'p_value>0.3'"),
        ("rejct", "did you mean 'reject'?"),
        ("accuracy", "quote it for the shell, such as 'accuracy<0.9'"),
    ],
)
def test_a_gate_that_is_none_is_told_what_to_type(kerntest, gate, hint):
    outcome = kerntest(*MMD, "--fail-on", gate)
    assert outcome.code == 2
    assert outcome.err.splitlines()[1] == f"hint: {hint}"


def test_a_gate_on_the_first_word_of_a_number_is_told_its_whole_name(kerntest):
    outcome = kerntest(*MMD, "--fail-on", "p<0.05")
    assert outcome.code == 2
    assert outcome.err.splitlines() == ["error: --fail-on: the report has no 'p'", "hint: did you mean 'p_value'?"]


def test_a_gate_on_what_no_such_report_can_have_is_refused_before_the_fit(kerntest, monkeypatch):
    monkeypatch.setattr("kerntest.train_svm", lambda *_args, **_options: pytest.fail("it was fitted"))
    outcome = kerntest("svm", "no_such_file.csv", "--target", "y", "--fail-on", "test.auc<0.9")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "error: --fail-on: the report has no 'test.auc'",
        "hint: did you mean 'test.roc_auc'?",
    ]


@pytest.mark.parametrize(("name", "meant"), [("test.rsq", "test.r2"), ("r_squared", "r2"), ("Rsq", "r2")])
def test_a_gate_on_r_squared_is_told_its_name(kerntest, name, meant):
    told = kerntest(*RIDGE[:-1], "--test-fraction", "0.3", "--fail-on", f"{name}<0.8").err
    assert told.splitlines()[1] == f"hint: did you mean {meant!r}?"


def test_a_gate_on_the_score_in_folds_is_told_its_name(kerntest):
    for name in ("cv.accuracy", "cv", "grid.accuracy", "folds.accuracy"):
        told = kerntest(*SVM[:4], "--cv", "5", "--fail-on", f"{name}<0.9")
        assert told.err.splitlines()[1] == "hint: did you mean 'grid.mean', the score of rows held out in folds?"
    told = kerntest(*RIDGE[:-1], "--cv", "3", "--fail-on", "cv_rmse>1")
    assert told.err.splitlines()[1] == "hint: did you mean 'grid.rmse', the RMSE of rows held out in folds?"
    assert kerntest(*SVM[:4], "--cv", "5", "--fail-on", "grid.mean<0.99").code == 1
    # Other numbers of a grid, and of what has none.
    assert "did you mean 'grid.fits'?" in kerntest(*SVM[:4], "--fail-on", "grid.fit<1").err
    assert "folds" not in kerntest(*MMD, "--fail-on", "cv<1").err


@pytest.mark.parametrize(
    ("command", "name", "hint"),
    [
        ("ridge", "test.recall", "numbers are test.n, test.rmse, test.mae, test.r2, test.max_error, test.coverage"),
        ("svm", "test.recall", "did you mean 'test.classes.NAME.recall'?"),
        ("svm", "recall", "did you mean 'test.classes.NAME.recall'?"),
        ("svm", "test.acuracy", "did you mean 'test.accuracy'?"),
        ("ridge", "tst.rmse", "did you mean 'test.rmse'?"),
    ],
)
def test_a_number_that_is_not_there_is_met_with_what_is(kerntest, command, name, hint):
    outcome = kerntest(*(SVM if command == "svm" else RIDGE), "--fail-on", f"{name}<0.9")
    assert outcome.code == 2
    assert outcome.err.splitlines()[1] == f"hint: {hint}"


def test_hints_name_no_option_that_the_command_lacks(kerntest):
    """Components hold no rows out, and so nothing is said of those that they judge."""
    components = ["kpca", IRIS, "--exclude", "species"]
    passed = kerntest(*components, "--fail-on", "explained<0")
    assert (passed.code, passed.err) == (0, kerntest(*components).err)
    null = kerntest(*components, "--fail-on", "test.explained<0.9")
    assert null.code == 4
    assert "hint: numbers are n_train" in null.err
    assert "--test" not in null.err.partition("hint: ")[2]
