"""The table of a screen on a page of any width."""

import re

import numpy as np
import pytest

FIRST, SECOND = (f"a_rather_long_name_of_a_column_in_some_export_{year}" for year in (2025, 2026))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write 1,300 rows, of which some miss the last column."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 1300)).round(4)
    # As many on either side, so that no coefficient sees a square.
    x[650:] = -x[:650]
    gaps = ["" if row < 7 else value for row, value in enumerate(rng.normal(size=1300).round(4))]
    rows = zip(x, (x**2 + 0.1 * noise).round(4), gaps, strict=True)
    lines = [f"{FIRST},{SECOND},short", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("words", ["--pairwise", f"--target {SECOND}"])
def test_names_are_shortened_so_that_they_differ_and_numbers_never(kerntest, monkeypatch, width, words):
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = kerntest("hsic", "t.csv", *words.split(), "--permutations", "50")
    text = outcome.out
    assert outcome.code == 0, outcome.err
    assert max(map(len, text.splitlines())) <= width
    assert width < 80 or re.search(r" 1,300 .* 1,293 ", text.replace("\n", " "))
    told = "below 0.1 and not significant, corrected for all tests, in all marked: they miss the dependence"
    assert told in " ".join(text.split())
    lines = text.splitlines()
    heading = next(place for place, line in enumerate(lines) if {"effect", "p"} <= {*line.split()})
    ends = ("  * p at", "  no room for ")
    rows = lines[heading + 1 : next(place for place, line in enumerate(lines) if line.startswith(ends))]
    names = [re.split(" {2,}", line[4:])[0] for line in rows]
    # One line each, with the year at its end.
    assert sorted(name[-4:] for name in names) == (
        ["2025", "2025", "2026"] if words == "--pairwise" else ["2025", "hort"]
    )
    assert all(name in {FIRST, SECOND, "short"} or re.match(r"a_rather.*\.\.\..*202[56]$", name) for name in names)
    assert ("whole names: --json has all" in " ".join(text.split())) == any("..." in name for name in names)
    # A target is not told again in each row.
    assert ("2026" in " ".join(rows)) == (words == "--pairwise")


def test_columns_that_have_no_row_in_common_have_a_plan(kerntest, tmp_path):
    lines = [f"{k}," if k % 2 else f",{k}" for k in range(20_000)]
    (tmp_path / "apart.csv").write_text("\n".join(["a,b", *lines]))
    outcome = kerntest("hsic", str(tmp_path / "apart.csv"), "--pairwise", "--dry-run")
    assert outcome.code == 0, outcome.err
    assert "1 pairs of 2 columns" in outcome.out
