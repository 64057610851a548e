"""What tables for people say of data that have more than fits; those of the sample data are goldens."""

import re

import numpy as np
import pytest

NAMES = [f"class number {k} with a long name" for k in range(12)]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Stand in a folder with small tables."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    for name, header, rows in (
        ("classes", "x,label", [(place % 12 + rng.normal(), NAMES[place % 12]) for place in range(48)]),
        ("many", "x,label", [(place % 30, f"c{place % 30}") for place in [*range(60), 29, 29, 29]]),
        ("numbers", "a,b,y", rng.normal(size=(40, 3)).round(3)),
        # No row has both a and b.
        ("apart", "a,b,c", [(i, "", i) if i % 2 else ("", i, i % 5) for i in range(31)]),
    ):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (
            "svm many.csv --target label",
            [r"^  c29 +5 ", r"and 18 more classes: --json has all, with the confusion matrix"],
        ),
        (
            "svm classes.csv --target label",
            [r"^  class number 0 with a long name ", r"^ +a +b +c +d +e", r"^ +j class number 9 with a long name "],
        ),
        (
            "hsic apart.csv --pairwise --missing drop",
            [r"not tested: a, b: 0 rows without missing values", r"^    x  y +n +effect", r"corrected by Holm"],
        ),
    ],
)
def test_a_table_says(kerntest, words, texts):
    outcome = kerntest(*words.split())
    assert outcome.code == 0, outcome.err
    for text in texts:
        assert re.search(text, outcome.out, re.MULTILINE), (text, outcome.out)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("svm classes.csv --target label", "too wide: --json has it"),
        ("ridge numbers.csv --target y", ": --json has all"),
    ],
)
def test_what_does_not_fit_is_left_to_the_json(kerntest, monkeypatch, words, text):
    for width, missing in (("40", True), ("120", False)):
        monkeypatch.setenv("COLUMNS", width)
        assert (text in " ".join(kerntest(*words.split()).out.split())) is missing
