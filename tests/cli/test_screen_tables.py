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
    gaps = ["" if row < 7 else value for row, value in enumerate(rng.normal(size=1300).round(4))]
    rows = zip(x, (x**2 + 0.1 * noise).round(4), gaps, strict=True)
    lines = [f"{FIRST},{SECOND},short", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("words", ["--pairwise", f"--target {SECOND}"])
def test_long_names_are_broken_after_their_parts_and_numbers_never(kerntest, monkeypatch, width, words):
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = kerntest("hsic", "t.csv", *words.split(), "--permutations", "50")
    text = outcome.out
    assert outcome.code == 0, outcome.err
    assert max(map(len, text.splitlines())) <= width
    assert re.search(r" 1,300 .* 1,293 ", text.replace("\n", " "))
    assert "r, rho and tau are all below 0.1 in all marked: they miss the dependence" in " ".join(text.split())
    lines = text.splitlines()
    heading = next(place for place, line in enumerate(lines) if " effect " in line and "  p " in line)
    ends = ("  * p at", "  no room for ")
    rows = lines[heading + 1 : next(place for place, line in enumerate(lines) if line.startswith(ends))]
    pieces = [re.split(" {2,}", line[4:])[0] for line in rows]
    names = "".join(pieces)
    assert names.startswith(FIRST)
    assert all(piece.endswith(("_", "2025", "2026", "short")) for piece in pieces if piece)
    # A target is not told again in each row.
    assert ("2026" in " ".join(rows)) == (words == "--pairwise")
