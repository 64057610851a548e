"""From a table to a model, to its predictions or projections, by the commands, on the sample data."""

import csv
import io
import json
import shlex
import shutil

import numpy as np
import pytest
from pyarrow import parquet
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelPCA

# Of sums of as many terms as the tables have rows: it is multiplied by the condition of the system.
ROUNDING = 400 * np.finfo(float).eps
FIXED = "--lambda 0.1 --bandwidth median"


@pytest.fixture
def here(tmp_path, shop, monkeypatch):
    """Stand in a copy of the sample data."""
    shutil.copytree(shop, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def shell(kerntest, here):
    """Run a line among the sample data, and return its outcome, which is no failure."""
    del here

    def run(line, **options):
        outcome = kerntest(*shlex.split(line), **options)
        assert outcome.code == 0, outcome.err
        return outcome

    return run


@pytest.fixture
def report(shell):
    """Return the report of a line as JSON."""
    return lambda line: json.loads(shell(f"{line} --json").out)


def rows_of(outcome):
    return list(csv.DictReader(io.StringIO(outcome.out)))


def numbers_of(path, columns):
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, columns]


def test_classes(shell, report, here):
    fitted = shell("svm iris.csv --target species --test-fraction 0.3 -o iris.kt --json")
    assert fitted.err == "wrote iris.kt\n"
    result = json.loads(fitted.out)
    assert result["accuracy"] > 0.9
    assert result["accuracy"] >= result["baseline"]["accuracy"]
    assert result["converged"]
    assert 0 <= result["duality_gap"] <= 1e-6
    assert (result["n_train"], result["n_test"], result["model"]) == (105, 45, "iris.kt")
    rows = rows_of(shell("predict iris.kt iris.csv --keep species"))
    assert [int(row["row"]) for row in rows] == list(range(1, 151))
    assert sum(row["species"] == row["prediction"] for row in rows) >= 140
    shell("predict iris.kt iris.csv -o out.parquet --keep species")
    stored = parquet.read_table(here / "out.parquet")
    assert stored.column_names == ["row", "species", "prediction"]
    assert stored["prediction"].to_pylist() == [row["prediction"] for row in rows]
    told = report("inspect iris.kt")
    assert (told["classes"], told["kernel"]) == (result["classes"], result["kernel"])
    old = (here / "iris.kt").read_bytes()
    shell("svm iris.csv --target species -o iris.kt --force")
    assert (here / "iris.kt").read_bytes() != old


def test_numbers_probabilities_and_outliers(shell, report):
    assert report("svm machines.csv --target wear_um --task regress --test-fraction 0.3 -o w.kt")["r2"] > 0
    numbers = report("predict w.kt machines.csv -o w.csv")["numbers"]
    assert numbers["minimum"] < numbers["mean"] < numbers["maximum"]
    shell("svm wine.csv --target cultivar --probability -q -o v.kt")
    for row in rows_of(shell("predict v.kt wine.csv --proba")):
        chances = {name.removeprefix("p:"): float(value) for name, value in row.items() if name.startswith("p:")}
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
        assert row["prediction"] == max(chances, key=chances.get)
    unlike = shell("svm before.csv --task one-class --nu 0.05 --test after.csv -o u.kt")
    assert "% of 450 test rows are outliers." in unlike.out
    counts = report("predict u.kt before.csv -o u.csv")["predictions"]
    assert counts["false"] <= 0.05 * 400 + 1
    assert counts["true"] + counts["false"] == 400


def test_a_table_of_its_own_judges_and_weights_are_a_column(shell, here):
    header, *lines = (here / "machines.csv").read_text().splitlines()
    weighted = [f"{header},w", *(f"{line},{k % 3}" for k, line in enumerate(lines[:200]))]
    (here / "train.csv").write_text("\n".join(weighted))
    (here / "test.csv").write_text("\n".join([header, *lines[200:]]))
    outcome = shell(f"ridge train.csv --target wear_um --test test.csv --weights w {FIXED} --json")
    assert "67 rows of weight 0 left out" in outcome.err
    result = json.loads(outcome.out)
    assert (result["n_train"], result["n_test"], result["weights"]) == (133, 100, "w")
    assert "w" not in result["columns"]
    assert (result["grid"], result["criterion"]) == (None, "none")


def test_components(shell, report, here):
    fitted = shell("kpca wine.csv --color cultivar --components 4 --plot w.svg -o w.kt --json")
    assert fitted.err == "wrote w.svg\nwrote w.kt\n"
    assert (here / "w.svg").read_bytes().startswith(b"<?xml")
    result = json.loads(fitted.out)
    ratios = result["explained_variance_ratio"]
    assert (result["components"], result["n_train"], result["model"]) == (4, 178, "w.kt")
    assert sum(ratios) == pytest.approx(result["explained"], rel=SAME_MACHINE)
    assert result["eigenvalues"][0] / result["trace"] == pytest.approx(ratios[0], rel=SAME_MACHINE)
    rows = rows_of(shell("transform w.kt wine.csv --keep cultivar"))
    assert list(rows[0]) == ["row", "cultivar", "pc1", "pc2", "pc3", "pc4"]
    found = [[float(row[f"pc{k}"]) for k in range(1, 5)] for row in rows]
    # A file holds all digits: what differs is two runs of the same sums.
    assert_close(found, KernelPCA.load("w.kt").transform("wine.csv"), share=SAME_MACHINE)
    denoised = report("transform w.kt wine.csv --denoise -o d.parquet")
    assert (denoised["reconstructed"], len(denoised["by_column"])) == (True, 13)
    assert parquet.read_table("d.parquet").num_rows == 178
    told = report("inspect w.kt")
    assert (told["kind"], told["kernel"]) == ("kpca", result["kernel"])
    for name in ("eigenvalues", "explained_variance_ratio"):
        assert_close(told[name], result[name], share=SAME_MACHINE)
    again = report(f"kpca wine.csv --color cultivar --components 4 --kernel '{result['kernel']}'")
    assert again["eigenvalues"] == pytest.approx(result["eigenvalues"], rel=SAME_MACHINE)


def test_the_sample_model_is_what_its_recipe_gives(shell, report):
    fitted = report("ridge machines.csv --target wear_um --columns temp_c --test-fraction 0.3 -o again.kt")
    for name in ("wear", "again"):
        shell(f"predict {name}.kt machines.csv --interval 0.9 -o {name}.csv -q")
    tables = [numbers_of(f"{name}.csv", slice(-4, None)) for name in ("wear", "again")]
    assert_close(*tables, share=ROUNDING, condition=fitted["condition_number"])


@pytest.mark.parametrize("line", ["predict species.kt {} --decision", "transform shop.kt {}"])
def test_stdin_is_read(shell, here, line):
    file = "iris.csv" if line.startswith("predict") else "after.csv"
    piped, named = (rows_of(shell(line.format(one), stdin=here / file)) for one in ("-", file))
    for name in piped[0]:
        columns = [[row[name] for row in rows] for rows in (piped, named)]
        if name == "prediction":
            assert columns[0] == columns[1]
        else:
            assert_close(*(list(map(float, column)) for column in columns), share=SAME_MACHINE)


def test_what_is_said_of_the_judgement_is_true(shell, here):
    told = " ".join(shell("svm iris.csv --target species --cv 3").out.split())
    assert "accuracy and classes are of the rows that it has learned from" in told
    assert "the decision is of rows held out in 3 folds" in told
    rng = np.random.default_rng(0)
    lines = [f"{a},{b},{'bad' if row % 8 == 0 else 'good'}" for row, (a, b) in enumerate(rng.normal(size=(160, 2)))]
    (here / "unequal.csv").write_text("\n".join(["a,b,c", *lines]), encoding="utf-8")
    unequal = "svm unequal.csv --target c --test-fraction 0.5 --json"
    way_out = "--class-weight balanced makes the smaller classes count"
    assert way_out in shell(unequal).err
    assert way_out not in shell(f"{unequal} --class-weight balanced").err
    assert "--grid looks for better" in shell(f"{unequal} --kernel 'gaussian(0.01)'").err
    assert "--grid" not in shell(f"{unequal} --kernel 'gaussian(0.01)' --grid").err
