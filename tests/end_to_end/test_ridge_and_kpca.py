"""Regressions and components from the shell, on the sample data, and whatever is wrong with that."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from command_line import run_process
from pyarrow import parquet
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelPCA


@pytest.fixture
def here(tmp_path, shop, monkeypatch):
    """Stand in a copy of the sample data."""
    shutil.copytree(shop, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    (tmp_path / "data" / "same.csv").write_text("a,b\n" + "1,2\n" * 20)
    return tmp_path / "data"


@pytest.fixture
def read(kerntest, here):
    """Return a function that runs a command and reads its JSON."""
    del here
    return lambda *arguments: json.loads(kerntest(*arguments, "--json").out)


def columns(path, count):
    """Return the last columns of a written table of numbers."""
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, -count:]


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
    assert result["lambda_per_row"] == pytest.approx(result["lambda"] / 210, rel=SAME_MACHINE)
    assert (result["n_train"], result["n_test"], result["model"]) == (210, 90, "w.kt")
    written = kerntest("predict", "w.kt", "machines.csv", "--interval", "0.9", "--keep", "line,shaft_x_um")
    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert list(rows[0]) == ["row", "line", "shaft_x_um", "wear_um", "wear_um_std", "wear_um_low", "wear_um_high"]
    with (here / "machines.csv").open(newline="") as file:
        truth = np.array([float(row["wear_um"]) for row in csv.DictReader(file)])
    low, high = (np.array([float(row[name]) for row in rows]) for name in ("wear_um_low", "wear_um_high"))
    assert 0.85 < np.mean((truth >= low) & (truth <= high)) < 1
    told = json.loads(kerntest("inspect", "w.kt", "--json").out)
    assert (told["kind"], told["lambda"], told["intervals"]) == ("ridge", result["lambda"], True)


def test_from_a_table_to_components_to_projections_to_rows(kerntest, read, here):
    kpca = ("kpca", "wine.csv", "--color", "cultivar", "--components", "4", "--plot", "w.svg", "-o", "w.kt", "--json")
    fitted = kerntest(*kpca)
    assert fitted.err == "wrote w.svg\nwrote w.kt\n"
    result = json.loads(fitted.out)
    assert (result["components"], result["n_train"], result["model"]) == (4, 178, "w.kt")
    assert sum(result["explained_variance_ratio"]) == pytest.approx(result["explained"], rel=SAME_MACHINE)
    assert result["eigenvalues"][0] / result["trace"] == pytest.approx(result["explained_variance_ratio"][0])
    assert (here / "w.svg").read_bytes().startswith(b"<?xml")
    assert kerntest("transform", "w.kt", "wine.csv", "--keep", "cultivar", "-o", "t.csv").code == 0
    assert (here / "t.csv").read_text().startswith("row,cultivar,pc1,pc2,pc3,pc4\n")
    # A file holds all digits: what differs is two runs of the same sums.
    assert_close(columns("t.csv", 4), KernelPCA.load("w.kt").transform("wine.csv"), share=SAME_MACHINE)
    report = read("transform", "w.kt", "wine.csv", "--denoise", "-o", "d.parquet")
    assert (report["reconstructed"], len(report["by_column"])) == (True, 13)
    assert parquet.read_table("d.parquet").num_rows == 178
    told = read("inspect", "w.kt")
    assert (told["kind"], told["kernel"]) == ("kpca", result["kernel"])
    for name in ("eigenvalues", "explained_variance_ratio"):
        assert_close(told[name], result[name], share=SAME_MACHINE)
    again = read("kpca", "wine.csv", "--exclude", "cultivar", "--components", "4", "--kernel", result["kernel"])
    assert again["eigenvalues"] == pytest.approx(result["eigenvalues"], rel=SAME_MACHINE)


def test_a_table_of_its_own_judges_and_weights_are_a_column(kerntest, here):
    first, *lines = (here / "machines.csv").read_text().splitlines()
    weighted = [f"{first},w", *(f"{line},{k % 3}" for k, line in enumerate(lines[:200]))]
    (here / "train.csv").write_text("\n".join(weighted))
    (here / "test.csv").write_text("\n".join([first, *lines[200:]]))
    arguments = ("ridge", "train.csv", "--target", "wear_um", "--test", "test.csv", "--weights", "w", *FIXED, "--json")
    outcome = kerntest(*arguments)
    assert "67 rows of weight 0 left out" in outcome.err
    result = json.loads(outcome.out)
    assert (result["n_train"], result["n_test"], result["weights"]) == (133, 100, "w")
    assert "w" not in result["columns"]
    assert (result["grid"], result["criterion"]) == (None, "none")


def test_the_same_seed_gives_the_same_regression_whatever_the_threads_or_the_pipe(kerntest, read, here):
    line = ("--target", "level_cm", "-q")
    first, second = (read("ridge", "river.csv", *line, "-o", f"{count}.kt", "--threads", count) for count in ("1", "2"))
    for name in ("1.kt", "2.kt"):
        assert kerntest("predict", name, "river.csv", "--interval", "0.9", "-o", f"{name}.csv").code == 0
    assert first["lambda"] == second["lambda"]
    assert_close(first["loo_rmse"], second["loo_rmse"], share=SAME_MACHINE)
    assert_close(columns("1.kt.csv", 3), columns("2.kt.csv", 3), share=ROUNDING, condition=first["condition_number"])
    with (here / "river.csv").open("rb") as stream:
        piped = json.loads(run_process("ridge", "-", *line, "--json", stdin=stream).out)
    assert piped["provenance"]["inputs"][0]["name"] == "<stdin>"
    assert_close(piped["loo_rmse"], first["loo_rmse"], share=SAME_MACHINE)


@pytest.mark.parametrize("extra", [[], ["--features", "nystroem:60"]], ids=["dense", "nystroem"])
def test_the_same_seed_gives_the_same_components_whatever_the_threads(read, extra):
    line = ("kpca", "before.csv", "--components", "3", "-q", *extra)
    first, second = (read(*line, "-o", f"{threads}.kt", "--threads", threads) for threads in ("1", "2"))
    for name in ("eigenvalues", "trace", "explained"):
        assert_close(first[name], second[name], share=SAME_MACHINE)
    # An axis turns by the error of the matrix over the distance of its eigenvalue to the next.
    gap = np.diff(-np.array(first["eigenvalues"])).min() / first["eigenvalues"][0]
    scores = (np.abs(KernelPCA.load(name).transform("after.csv")) for name in ("1.kt", "2.kt"))
    assert_close(*scores, share=SAME_MACHINE, condition=1 / gap)


def test_ill_conditioned_systems_are_told(kerntest, here):
    rows = [f"{k % 5},{k % 5 + k / 100}" for k in range(40)]
    (here / "repeats.csv").write_text("\n".join(["x,y", *rows]))
    outcome = kerntest("ridge", "repeats.csv", "--target", "y", "--lambda", "1e-14", "--bandwidth", "1", "--json")
    assert "ill-conditioned (condition number" in outcome.err
    assert "35 directions" in outcome.err
    assert abs(json.loads(outcome.out)["train"]["rmse"] - np.std(np.arange(8) * 0.05)) < 1e-6


def test_the_sample_model_is_what_its_recipe_gives(kerntest, read):
    recipe = ("ridge", "machines.csv", "--target", "wear_um", "--columns", "temp_c", "--test-fraction", "0.3")
    fitted = read(*recipe, "-o", "again.kt")
    for name in ("wear.kt", "again.kt"):
        assert kerntest("predict", name, "machines.csv", "--interval", "0.9", "-o", f"{name}.csv", "-q").code == 0
    tables = (columns(f"{name}.csv", 4) for name in ("wear.kt", "again.kt"))
    assert_close(*tables, share=ROUNDING, condition=fitted["condition_number"])


WEAR = "ridge machines.csv --target wear_um"
FAILURES = [
    ("ridge machines.csv", 2, "--target is missing", ""),
    ("ridge machines.csv --target wear", 2, "column 'wear' is not in machines.csv", ""),
    (f"{WEAR} --weights weight", 2, "column 'weight' is not in machines.csv", ""),
    (f"{WEAR} --weights wear_um", 2, "both target and weight", ""),
    (f"{WEAR} --test t.csv --test-fraction 0.5", 2, "contradict", ""),
    (f"{WEAR} --kernel precomputed", 2, "precomputed", ""),
    ("ridge river.csv --target level_cm --kernel gaussian(1) --bandwidth 2", 2, "no bandwidth open", ""),
    (f"{WEAR} --kernel gausian", 2, "unknown kernel 'gausian'", ""),
    (f"{WEAR} --cv 4 --criterion gcv", 2, "contradict", ""),
    (f"{WEAR} --features nystroem", 2, "features", ""),
    (f"{WEAR} --lambda 0.1 --bandwidth median --criterion gcv", 2, "nothing to choose", ""),
    ("ridge machines.csv --target line", 3, "not numbers to predict", ""),
    (f"{WEAR} --weights line", 3, "weights are positive", ""),
    (f"{WEAR} --weights shaft_x_um", 3, "weights are positive", ""),
    ("ridge machines_with_missing.csv --target wear_um", 3, "missing values", ""),
    ("ridge absent.csv --target wear_um", 3, "absent.csv does not exist", ""),
    (f"{WEAR} --test iris.csv", 2, "wear_um", ""),
    (f"{WEAR} --lambda 0.1 --bandwidth median -o species.kt", 3, "exists already", "--force"),
    (f"{WEAR} --kernel exponential(1) --scale none", 4, "overflows", ""),
    ("kpca no.csv", 3, "no.csv does not exist", ""),
    ("kpca iris.csv --color spesies", 2, "column 'spesies' is not in iris.csv", "'species'"),
    ("kpca with_missing.csv", 3, "6 missing values", "--missing drop"),
    ("kpca iris.csv --kernel exponental", 2, "unknown kernel 'exponental'", "'exponential'"),
    ("kpca iris.csv --bandwidth auto", 2, "--bandwidth must be median or a positive number, not 'auto'", "--help"),
    ("kpca iris.csv --components 0", 2, "--components must be a whole number from 1", "--help"),
    ("kpca iris.csv --features nystrom:50", 2, "'nystrom:50' are no features", "nystroem:500"),
    ("kpca before.csv --features fourier:50", 2, "random Fourier features are for the Gaussian", "nystroem"),
    ("kpca same.csv", 3, "no column is left to learn from", "two different values"),
    ("kpca iris.csv --kernel exponential(900)", 4, "overflows", "scale the columns"),
    ("kpca iris.csv --plot p.gif", 2, "cannot be drawn into p.gif", ".png"),
    ("kpca iris.csv -o iris.csv", 2, "would replace the data", "another file"),
    ("kpca iris.csv --exclude species -o shop.kt", 3, "shop.kt exists already", "--force"),
    ("transform species.kt iris.csv", 5, "species.kt holds a model of kind 'svm'", "kerntest predict"),
    ("predict shop.kt after.csv", 5, "kind 'kpca'", "kerntest transform shop.kt DATA"),
    ("transform shop.kt iris.csv", 3, "order_value_eur", ""),
    ("transform shop.kt with_missing.csv", 3, "with_missing.csv, line 8", "--missing drop"),
    ("transform shop.kt after.csv --components 9", 2, "shop.kt has 5 components, not 9", "fit it again"),
    ("transform p.kt iris.csv --denoise", 2, "has no pre-images", "gaussian"),
    ("transform shop.kt after.csv -o scores.txt", 2, ".csv or .parquet", "scores.csv"),
    ("transform shop.kt after.csv --denoise --keep items", 2, "'items' of after.csv cannot be kept", "rename"),
]


@pytest.mark.parametrize(("line", "code", "message", "hint"), FAILURES, ids=[one[0] for one in FAILURES])
def test_mistakes_are_told_in_two_lines_and_nothing_is_written(kerntest, here, *, line, code, message, hint):
    if "p.kt" in line.split():
        kerntest("kpca", "iris.csv", "--exclude", "species", "--kernel", "polynomial", "-q", "-o", "p.kt")
    before = {path.name for path in here.iterdir()}
    outcome = kerntest(*line.split())
    assert (outcome.code, outcome.out) == (code, "")
    lines = outcome.err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    # The place in the text of a kernel is shown between the two.
    assert len(lines) <= 2 + 2 * ("kernel" in message)
    assert hint in lines[-1]
    assert len(lines) == 1 or lines[-1].startswith("hint: ")
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize("damage", ["truncated", "corrupted", "newer", "text"])
@pytest.mark.parametrize("name", ["shop.kt", "wear.kt"])
def test_a_damaged_model_is_5_and_two_lines(kerntest, here, name, damage):
    content = (here / name).read_bytes()
    broken = {
        "truncated": content[: len(content) // 2],
        "corrupted": content[:9000] + bytes([content[9000] ^ 0xFF]) + content[9001:],
        "newer": content.replace(b'"format_version": 1', b'"format_version": 2'),
        "text": b"a,b\n1,2\n",
    }[damage]
    (here / "bad.kt").write_bytes(broken)
    for command in (["predict" if name == "wear.kt" else "transform", "bad.kt", "before.csv"], ["inspect", "bad.kt"]):
        outcome = kerntest(*command)
        assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (5, "", 2)
        assert "bad.kt" in outcome.err
