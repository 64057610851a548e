"""What tables for people say: each line of this list is of one command on small tables."""

import re
import shutil

import numpy as np
import pytest

NAMES = [f"class number {k} with a long name" for k in range(12)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a folder with small tables."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(2)

    def write(name, header, rows):
        lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    a, b, noise = rng.normal(size=(3, 40)).round(6)
    kind = np.where(a + 0.7 * noise > 0, "yes", "no")
    write("data.csv", ["a", "b", "kind", "y"], zip(a, a + b, kind, np.sin(2 * a) + 0.2 * noise, strict=True))
    write("classes.csv", ["x", "label"], [(place % 12 + rng.normal(), NAMES[place % 12]) for place in range(48)])
    write("many.csv", ["x", "label"], [(place % 30, f"c{place % 30}") for place in [*range(60), 29, 29, 29]])
    write("wide.csv", [f"v{k}" for k in range(10)], rng.normal(size=(20, 10)).round(3))
    # No row has both a and b.
    write("apart.csv", ["a", "b", "c"], [(i, "", i) if i % 2 else ("", i, i % 5) for i in range(31)])
    return folder


SAID = [
    (
        "svm data.csv --target kind --test-fraction 0.3",
        [
            r"^Support vector machine$",
            r"28 to learn from, 12 held out to judge by",
            r"target +kind: no, yes",
            r"cost +C = 1, lambda = 1/\(2 n C\) = 0\.01786",
            r"\d+ of 28 training rows, \d+ of them at the bound",
            r"converged: duality gap \S+ of the objective, \d+ linear systems",
            r"% of 12 test rows, 95 % interval \S+ % to \S+ %",
            r"baseline +nearest mean: \S+ %, balanced",
            r"^  class  rows  precision  recall +F1$",
            r"^ +no +yes\n +no +\d+ +\d+\n +yes +\d+ +\d+$",
            r"^Decision: \S+ % of 12 test rows are classified correctly \(nearest mean: \S+ %\)\.$",
        ],
    ),
    (
        "svm data.csv --target kind --grid --cv 3",
        [
            r"3-fold cross-validation of the training rows: \S+ % correct \+- \d(\.\d+)? %, the best of 25",
            r"\*\d",
            r"tie rule: ",
            r"^Decision: \S+ % of rows held out in 3 folds are classified correctly\.$",
        ],
    ),
    (
        "svm data.csv --target y --task regress",
        [
            "^Support vector machine for numbers$",
            r"^Decision: Predictions of 40 training rows are off by \S+ \(root mean",
        ],
    ),
    ("svm data.csv --task one-class --nu 0.2", [r"^Decision: \S+ % of 40 training rows are outliers\.$"]),
    ("svm many.csv --target label", [r"^  c29 +5 ", r"and 18 more classes: --json has all, with the confusion matrix"]),
    (
        "svm classes.csv --target label",
        [r"^  class number 0 wi\.\.\. ", r"^ +a +b +c +d +e", r"^ +l class number 9 wi\.\.\. "],
    ),
    (
        "ridge data.csv --target y,b --columns a --test-fraction 0.3 --lambda 1 --bandwidth 2",
        [
            r"lambda +1, lambda/n = 0\.03571",
            r"^  y +RMSE \S+ on 12 test rows, r2 \S+, intervals of 90 % hold \S+ %$",
            r"^  b +RMSE",
            r"^Decision: Predictions of 12 test rows have r2 = \S+, the mean over 2 targets\.$",
        ],
    ),
    (
        "ridge data.csv --target y --columns a,b",
        [
            r"exact leave-one-out: RMSE \S+, the best of 200 cells",
            r"effective degrees of freedom, condition number",
            r"of 90 % hold \S+ % of rows left out, one at a time",
            r"^Grid, RMSE, bandwidths across \(\* chosen\):$",
            r"^Decision: Predictions of rows left out, one at a time, are off by \S+ \(root mean square, r2",
        ],
    ),
    (
        "ridge data.csv --target y --columns a,b --features nystroem:9",
        [r"9 Nystroem features, kernel values off by \S+ \(RMS\)"],
    ),
    (
        "kpca data.csv --columns a,b --kernel linear --components 1",
        [
            r"^Principal components$",
            r"^  pc1 .* a \(-?0\.\d+\), b \(-?0\.\d+\)$",
            r"^Result: 1 component explains \S+ % of the variance\.$",
        ],
    ),
    (
        "kpca data.csv --components 15",
        [
            r"^  pc12 ",
            r"and 3 more, in all \S+ %: --json has them",
            r"^Result: 15 components explain \S+ % of the variance in feature space\.$",
        ],
    ),
    (
        "hsic data.csv --x a --y b --time-series",
        [r"shifts by 2 rows and more stand for independence", r"the statistic is largest where"],
    ),
    (
        "hsic wide.csv --pairwise",
        [r"and 15 more: --format csv shows all", r"^Decision: No dependence found among 45 pairs"],
    ),
    (
        "hsic apart.csv --pairwise --missing drop",
        [r"not tested: a, b: 0 rows without missing values", r"^    x  y +n +effect", r"corrected by Holm"],
    ),
    (
        "hsic data.csv --target y --columns a,b",
        [
            r"^  +column +effect +p +p exact +p perm\. +r +rho +tau$",
            r"p exact: corrected over relabellings",
        ],
    ),
]


@pytest.mark.parametrize(("words", "texts"), SAID, ids=[words for words, _ in SAID])
def test_a_table_says(kerntest, tables, monkeypatch, words, texts):
    monkeypatch.chdir(tables)
    outcome = kerntest(*words.split())
    assert outcome.code == 0, outcome.err
    for text in texts:
        assert re.search(text, outcome.out, re.MULTILINE), (text, outcome.out)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("svm classes.csv --target label", "too wide: --json has it"),
        ("ridge data.csv --target y --columns a,b", ": --json has all"),
    ],
)
def test_what_does_not_fit_is_left_to_the_json(kerntest, tables, monkeypatch, words, text):
    monkeypatch.chdir(tables)
    for width, missing in (("40", True), ("120", False)):
        monkeypatch.setenv("COLUMNS", width)
        assert (text in " ".join(kerntest(*words.split()).out.split())) is missing


@pytest.mark.parametrize(
    ("fit", "apply", "texts"),
    [
        (
            "svm data.csv --target kind",
            "predict m.kt new.csv",
            [
                r"m\.kt: svm, classify, predicts kind",
                r"new\.csv: 3 rows",
                r"not used +id",
                r"predicted +(no|yes) \d",
                r"1 row with missing values",
                r"^Result: 2 of 3 rows have a prediction\.$",
            ],
        ),
        (
            "ridge data.csv --target y,b --columns a",
            "predict m.kt new.csv",
            [r"y: \S+ to \S+, mean", r"b: \S+ to \S+, mean"],
        ),
        (
            "kpca data.csv --columns a,b",
            "transform m.kt new.csv",
            [r"^Projection$", r"m\.kt: kpca, 2 components$", r"have scores\."],
        ),
        (
            "kpca data.csv --columns a,b,kind",
            "transform m.kt new.csv --denoise --residual",
            [
                r"^Reconstruction$",
                r"\S+ from row to pre-image, in scaled units \(RMS\)$",
                r"a: \S+ \(RMS\)$",
                r"kind: \S+ % changed$",
                r"\S+ in feature space \(mean square\)$",
                r"^Result: 2 of 3 rows have a pre-image\.$",
            ],
        ),
    ],
)
def test_the_report_of_rows_applied_says(kerntest, tables, tmp_path, monkeypatch, *, fit, apply, texts):
    monkeypatch.chdir(tmp_path)
    shutil.copy(tables / "data.csv", tmp_path)
    (tmp_path / "new.csv").write_text("id,a,b,kind,y\n7,0.5,1,yes,0\n8,,0,no,1\n9,-1,0.5,no,2\n", encoding="utf-8")
    assert kerntest(*fit.split(), "-o", "m.kt", "-q").code == 0
    outcome = kerntest(*apply.split(), "-o", "rows.csv", "--missing", "empty")
    assert (outcome.code, outcome.err) == (0, "wrote rows.csv\n")
    for text in texts:
        assert re.search(text, outcome.out, re.MULTILINE), (text, outcome.out)
    shown = kerntest(*apply.split(), "--missing", "empty")
    assert shown.out == (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert "not used by m.kt: id" in shown.err
