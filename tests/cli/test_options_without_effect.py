"""Options that others leave without effect, and outputs that have no place to go, are refused, not ignored."""

import pytest
from example_svm import svm_result

import kerntest as package

PLAIN = ["shop.csv", "--target", "bought"]
USELESS = [
    (["--C", "2", "--nu", "0.1"], "--C does not go with --nu"),
    (["--C", "2", "--hard-margin"], "--C does not go with --hard-margin"),
    (["--C", "2", "--grid"], "--C does not go with --grid"),
    (["--C", "2", "--task", "one-class"], "--C does not go with --task one-class"),
    (["--C", "2", "--method", "mean"], "--C does not go with --method mean"),
    (["--tolerance", "1e-9", "--method", "perceptron"], "--tolerance does not go with --method perceptron"),
    (["--bandwidth", "2", "--grid"], "--bandwidth does not go with --grid"),
    (["--epsilon", "0"], "--epsilon does not go with --task classify"),
    (["--epsilon", "0", "--task", "one-class"], "--epsilon does not go with --task one-class"),
]
USEFUL = [
    ["--C", "2", "--cv", "3"],
    ["--epsilon", "0", "--task", "regress"],
    ["--bandwidth", "2", "--cv", "3"],
    ["--grid", "--kernel", "gaussian(2)"],
    ["--tolerance", "1e-9", "--nu", "0.2"],
]


@pytest.fixture
def calls(monkeypatch):
    found = []
    monkeypatch.setattr(package, "train_svm", lambda train, **_: found.append(train) or svm_result(), raising=False)
    return found


@pytest.mark.parametrize(("arguments", "message"), USELESS)
def test_an_option_without_effect_is_refused_before_anything_is_read(kerntest, calls, arguments, message):
    outcome = kerntest("svm", *PLAIN, *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {message}\nhint: ")
    assert not calls


@pytest.mark.parametrize("arguments", USEFUL)
def test_options_that_work_together_are_taken(kerntest, calls, arguments):
    assert kerntest("svm", *PLAIN, *arguments).code == 0
    assert calls == ["shop.csv"]


@pytest.mark.parametrize("arguments", [["-o", "-"], ["--plot", "-"]])
def test_a_model_or_picture_is_not_written_into_a_file_called_dash(kerntest, calls, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    outcome = kerntest("svm", *PLAIN, *arguments)
    assert outcome.code == 2
    assert "writes a file, not the standard output" in outcome.err
    assert not calls
    assert list(tmp_path.iterdir()) == []


def test_predictions_and_their_report_do_not_share_stdout(kerntest):
    outcome = kerntest("predict", "m.kt", "new.csv", "--report", "-")
    assert outcome.code == 2
    assert "--report - would go between the predictions" in outcome.err


def test_a_learner_takes_one_bandwidth(kerntest, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(10)))
    outcome = kerntest("svm", table, "--target", "y", "--bandwidth", "1,2")
    assert outcome.code == 2
    assert outcome.err == "error: a learner has one bandwidth, not 1.0, 2.0\nhint: --grid tries several\n"


def test_components_take_one_bandwidth_and_say_which(kerntest):
    for wrong in ("auto", "1,2", "0", "nan", "broad"):
        outcome = kerntest("kpca", "t.csv", "--bandwidth", wrong)
        assert outcome.code == 2
        assert f"error: --bandwidth must be median or a positive number, not '{wrong}'" in outcome.err
