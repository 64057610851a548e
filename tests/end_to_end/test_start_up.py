"""Starting is loading: what a command does not need is not imported. How long it takes is measured by `speed.py start`."""

import pytest
from command_line import modules_of

RUN = "from kerntest.cli.main import run; run(sys.argv[1:])"


@pytest.mark.parametrize("arguments", [["--help"], ["mmd", "--help"], ["mmd", "a"]], ids=" ".join)
def test_without_work_nothing_heavy_is_loaded(arguments):
    loaded = modules_of(RUN, *arguments)
    assert not loaded & {"numpy", "scipy", "pandas", "pyarrow", "matplotlib", "threadpoolctl"}
    assert {"click", "kerntest"} <= loaded


def test_help_loads_little_more_than_click():
    assert len(modules_of(RUN, "--help")) <= 2 * len(modules_of("import click"))


def test_a_small_test_loads_only_what_it_uses(shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    as_table, as_json = modules_of(RUN, "mmd", *files), modules_of(RUN, "mmd", *files, "--json")
    # Older SciPy imports scipy.linalg and scipy.sparse from scipy.special by itself.
    assert as_table.isdisjoint({"pandas", "scipy.stats", "scipy.spatial", "matplotlib", "pyarrow.parquet"})
    assert {"numpy", "pyarrow"} <= as_json
    assert "kerntest.report.drawing" not in as_json
    assert "kerntest.report.drawing" in as_table
