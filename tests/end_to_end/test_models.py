"""From a table to a model, to its predictions or projections, by the commands, on the sample data."""

import csv
import io
import json
import re
import shlex
import shutil

import numpy as np
import pytest
from tolerances import assert_close

# Of sums of as many terms as the tables have rows: it is multiplied by the condition of the system.
ROUNDING = 400 * np.finfo(float).eps


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


def test_classes_probabilities_and_outliers(shell, report):
    assert report("svm iris.csv --target species --test-fraction 0.3 -o iris.kt")["accuracy"] > 0.9
    rows = rows_of(shell("predict iris.kt iris.csv --keep species"))
    assert sum(row["species"] == row["prediction"] for row in rows) >= 140
    shell("svm wine.csv --target cultivar --probability -q -o v.kt")
    alike = 0
    for row in rows_of(shell("predict v.kt wine.csv --proba")):
        chances = {name.removeprefix("p:"): float(value) for name, value in row.items() if name.startswith("p:")}
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
        alike += row["prediction"] == max(chances, key=chances.get)
    # Between classes the votes of their pairs may be for another one.
    assert alike >= 0.95 * len(rows_of(shell("predict v.kt wine.csv")))
    unlike = shell("svm before.csv --task one-class --nu 0.05 --test after.csv -o u.kt")
    assert "% of 450 test rows are outliers." in unlike.out
    counts = report("predict u.kt before.csv -o u.csv")["predictions"]
    assert counts["false"] <= 0.05 * 400 + 1
    assert counts["true"] + counts["false"] == 400


def test_the_sample_model_is_what_its_recipe_gives(shell, report):
    fitted = report("ridge machines.csv --target wear_um --columns temp_c --test-fraction 0.3 -o again.kt")
    for name in ("wear", "again"):
        shell(f"predict {name}.kt machines.csv --interval 0.9 -o {name}.csv -q")
    tables = [numbers_of(f"{name}.csv", slice(-4, None)) for name in ("wear", "again")]
    assert_close(*tables, share=ROUNDING, condition=fitted["condition_number"])


def test_what_is_said_of_the_judgement_is_true(shell, here):
    told = " ".join(shell("svm iris.csv --target species --cv 3").out.split())
    assert "accuracy and classes are of the rows that it has learned from" in told
    assert "the decision is of rows held out in 3 folds" in told
    assert "which they chose" not in told
    told = " ".join(shell("svm iris.csv --target species --cv 3 --grid").out.split())
    assert re.search(r"held out in 3 folds, of the best of \d+ cells, which they chose: a little too good", told)
    rng = np.random.default_rng(0)
    lines = [f"{a},{b},{'bad' if row % 8 == 0 else 'good'}" for row, (a, b) in enumerate(rng.normal(size=(160, 2)))]
    (here / "unequal.csv").write_text("\n".join(["a,b,c", *lines]), encoding="utf-8")
    unequal = "svm unequal.csv --target c --test-fraction 0.5 --json"
    way_out = "--class-weight balanced makes the smaller classes count"
    assert way_out in shell(unequal).err
    assert way_out not in shell(f"{unequal} --class-weight balanced").err
    assert "--grid looks for better" in shell(f"{unequal} --kernel 'gaussian(0.01)'").err
    assert "--grid" not in shell(f"{unequal} --kernel 'gaussian(0.01)' --grid").err
