import pytest
from command_line import ROOT


@pytest.fixture(scope="session")
def shop():
    """Return where the sample data are."""
    return ROOT / "sample_data"


@pytest.fixture
def good(tmp_path, monkeypatch):
    """Stand in an empty folder but for two good files, `x.csv` and `y.csv`, with the columns a and b."""
    rows = [(0.5, 2), (1.25, 3), (-0.75, 5), (2.0, 1), (0.25, 4), (1.5, 2.5)]
    for name, shift in (("x.csv", 0.0), ("y.csv", 0.125)):
        lines = ["a,b", *(f"{a + shift},{b - 2 * shift}" for a, b in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
