"""Ridge regressions from the shell, on the sample data, and whatever is wrong with that."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from command_line import run_process
from tolerances import SAME_MACHINE, assert_close


@pytest.fixture
def here(tmp_path, shop, monkeypatch):
    """Stand in a copy of the sample data."""
    shutil.copytree(shop, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path / "data"


# Of sums of as many terms as the tables have rows: it is multiplied by the condition of the system.
ROUNDING = 400 * np.finfo(float).eps
FIXED = ("--lambda", "0.1", "--bandwidth", "median")


def test_from_a_table_to_predictions_with_intervals(kerntest, here):
    fitted = kerntest("ridge", "machines.csv", "--target", "wear_um", "--test-fraction", "0.3", "-o", "w.kt", "--json")
    assert (fitted.code, fitted.err.splitlines()[-1]) == (0, "wrote w.kt")
    result = json.loads(fitted.out)
    assert result["test"]["r2"] > 0.7
    assert 0.8 < result["test"]["coverage"] <= 1
    assert result["train"]["rmse"] < result["loo_rmse"] < 1.5
    assert 1 < result["effective_df"] < 210
    assert result["lambda_per_row"] == pytest.approx(result["lambda"] / 210, rel=SAME_MACHINE)
    assert (result["n_train"], result["n_test"], result["model"]) == (210, 90, "w.kt")
    assert len(result["grid"]["cells"]) == 200
    written = kerntest("predict", "w.kt", "machines.csv", "--interval", "0.9", "--keep", "line")
    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert list(rows[0]) == ["row", "line", "wear_um", "wear_um_std", "wear_um_low", "wear_um_high"]
    with (here / "machines.csv").open(newline="") as file:
        truth = np.array([float(row["wear_um"]) for row in csv.DictReader(file)])
    low, high = (np.array([float(row[name]) for row in rows]) for name in ("wear_um_low", "wear_um_high"))
    assert 0.85 < np.mean((truth >= low) & (truth <= high)) < 1
    told = json.loads(kerntest("inspect", "w.kt", "--json").out)
    assert (told["kind"], told["lambda"], told["intervals"]) == ("ridge", result["lambda"], True)
    assert "Kernel ridge regression" in kerntest("inspect", "w.kt").out


def test_a_table_of_its_own_judges_and_weights_are_a_column(kerntest, here):
    lines = (here / "machines.csv").read_text().splitlines()
    (here / "train.csv").write_text(
        "\n".join([f"{lines[0]},w", *(f"{line},{k % 3}" for k, line in enumerate(lines[1:201]))])
    )
    (here / "test.csv").write_text("\n".join([lines[0], *lines[201:]]))
    arguments = ("ridge", "train.csv", "--target", "wear_um", "--test", "test.csv", "--weights", "w", *FIXED, "--json")
    outcome = kerntest(*arguments)
    assert outcome.code == 0
    assert "67 rows of weight 0 left out" in outcome.err
    result = json.loads(outcome.out)
    assert (result["n_train"], result["n_test"], result["weights"]) == (133, 100, "w")
    assert "w" not in result["columns"]
    assert result["grid"] is None
    assert result["criterion"] == "none"


def test_pictures_of_one_column_and_of_several_targets(kerntest, here):
    pytest.importorskip("matplotlib")
    for name, arguments in {
        "two.pdf": ("--target", "wear_um,power_kw", "--bandwidth", "median"),
        "plain.svg": ("--target", "wear_um", "--columns", "temp_c", "--no-intervals", *FIXED),
    }.items():
        assert kerntest("ridge", "machines.csv", *arguments, "--plot", name, "-q").code == 0
        assert (here / name).read_bytes()[:4] in {b"\x89PNG", b"<?xm", b"%PDF"}


def test_features_for_many_rows(kerntest, here):
    del here
    outcome = kerntest("ridge", "machines.csv", "--target", "wear_um", "--features", "nystroem:100", *FIXED, "--json")
    result = json.loads(outcome.out)
    assert result["features"] == "nystroem:100"
    assert 0 < result["feature_error"] < 0.1
    exact = json.loads(kerntest("ridge", "machines.csv", "--target", "wear_um", *FIXED, "--json").out)
    assert abs(result["loo_rmse"] / exact["loo_rmse"] - 1) < 0.1


def test_the_same_seed_gives_the_same_model_whatever_the_threads(kerntest, here):
    line = ("ridge", "river.csv", "--target", "level_cm", "-q", "--json")
    results, tables = [], []
    for name, threads in (("a.kt", "1"), ("b.kt", "2")):
        results.append(json.loads(kerntest(*line, "-o", name, "--threads", threads).out))
        assert kerntest("predict", name, "river.csv", "--interval", "0.9", "-o", f"{name}.csv").code == 0
        tables.append(np.genfromtxt(here / f"{name}.csv", delimiter=",", skip_header=1)[:, -3:])
    assert results[0]["lambda"] == results[1]["lambda"]
    assert_close(results[0]["loo_rmse"], results[1]["loo_rmse"], share=SAME_MACHINE)
    assert_close(*tables, share=ROUNDING, condition=results[0]["condition_number"])


def test_ill_conditioned_systems_are_told(kerntest, here):
    rows = [f"{k % 5},{k % 5 + k / 100}" for k in range(40)]
    (here / "repeats.csv").write_text("\n".join(["x,y", *rows]))
    outcome = kerntest("ridge", "repeats.csv", "--target", "y", "--lambda", "1e-14", "--bandwidth", "1", "--json")
    assert outcome.code == 0
    assert "ill-conditioned (condition number" in outcome.err
    assert "35 directions" in outcome.err
    assert abs(json.loads(outcome.out)["train"]["rmse"] - np.std(np.arange(8) * 0.05)) < 1e-6


FAILURES = [
    (("machines.csv",), 2, "--target is missing"),
    (("machines.csv", "--target", "wear"), 2, "column 'wear' is not in machines.csv"),
    (("machines.csv", "--target", "wear_um", "--weights", "weight"), 2, "column 'weight' is not in machines.csv"),
    (("machines.csv", "--target", "wear_um", "--weights", "wear_um"), 2, "both target and weight"),
    (("machines.csv", "--target", "wear_um", "--test", "t.csv", "--test-fraction", "0.5"), 2, "contradict"),
    (("machines.csv", "--target", "wear_um", "--kernel", "precomputed"), 2, "precomputed"),
    (("river.csv", "--target", "level_cm", "--kernel", "gaussian(1)", "--bandwidth", "2"), 2, "no bandwidth open"),
    (("machines.csv", "--target", "wear_um", "--kernel", "gausian"), 2, "unknown kernel 'gausian'"),
    (("machines.csv", "--target", "wear_um", "--cv", "4", "--criterion", "gcv"), 2, "contradict"),
    (("machines.csv", "--target", "wear_um", "--features", "nystroem"), 2, "features"),
    (("machines.csv", "--target", "wear_um", *FIXED, "--criterion", "gcv"), 2, "nothing to choose"),
    (("machines.csv", "--target", "line"), 3, "not numbers to predict"),
    (("machines.csv", "--target", "wear_um", "--weights", "line"), 3, "weights are positive"),
    (("machines.csv", "--target", "wear_um", "--weights", "shaft_x_um"), 3, "weights are positive"),
    (("machines_with_missing.csv", "--target", "wear_um"), 3, "missing values"),
    (("absent.csv", "--target", "wear_um"), 3, "absent.csv does not exist"),
    (("machines.csv", "--target", "wear_um", "--test", "iris.csv"), 2, "wear_um"),
    (("machines.csv", "--target", "wear_um", *FIXED, "-o", "species.kt"), 3, "exists already"),
    (("machines.csv", "--target", "wear_um", "--kernel", "exponential(1)", "--scale", "none"), 4, "overflows"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), FAILURES, ids=[" ".join(one[0]) for one in FAILURES])
def test_mistakes_are_told_in_two_lines(kerntest, here, arguments, code, message):
    del here
    outcome = kerntest("ridge", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    lines = outcome.err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert len(lines) == 1 or lines[-1].startswith("hint: ")


def test_a_damaged_model_ends_with_5(kerntest, here):
    assert kerntest("ridge", "river.csv", "--target", "level_cm", *FIXED, "-o", "r.kt", "-q").code == 0
    content = (here / "r.kt").read_bytes()
    (here / "r.kt").write_bytes(content[: len(content) // 2])
    for arguments in (("predict", "r.kt", "river.csv"), ("inspect", "r.kt")):
        assert kerntest(*arguments).code == 5


def test_as_a_process_with_a_pipe(here):
    with (here / "river.csv").open("rb") as stream:
        outcome = run_process("ridge", "-", "--target", "level_cm", *FIXED, "--json", stdin=stream)
    assert outcome.code == 0
    assert json.loads(outcome.out)["provenance"]["inputs"][0]["name"] == "<stdin>"


def test_the_sample_model_is_what_its_recipe_gives(kerntest, here):
    recipe = ("ridge", "machines.csv", "--target", "wear_um", "--columns", "temp_c", "--test-fraction", "0.3")
    fitted = json.loads(kerntest(*recipe, "-o", "again.kt", "--json").out)
    for name in ("wear.kt", "again.kt"):
        assert kerntest("predict", name, "machines.csv", "--interval", "0.9", "-o", f"{name}.csv", "-q").code == 0
    tables = [
        np.genfromtxt(here / f"{name}.csv", delimiter=",", skip_header=1)[:, -4:] for name in ("wear.kt", "again.kt")
    ]
    assert_close(tables[0], tables[1], share=ROUNDING, condition=fitted["condition_number"])
