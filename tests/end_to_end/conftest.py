import pytest
from command_line import ROOT


@pytest.fixture(scope="session")
def shop():
    """Return where the sample data are."""
    return ROOT / "sample_data"
