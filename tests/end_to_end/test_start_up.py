"""A small test must start at once: what it does not need is not imported."""

import json
import subprocess
import sys

import pytest
from command_line import environment

LOADED = """
import sys
from kerntest.cli.main import run
code = run(sys.argv[1:])
sys.stdout.flush()
import json
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def loaded_by(*arguments):
    command = [sys.executable, "-c", LOADED, *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_loads_nothing_heavy():
    loaded = loaded_by("--help")
    assert loaded.isdisjoint({"numpy", "scipy", "pandas", "pyarrow", "rich", "threadpoolctl"})
    assert "click" in loaded


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_small_test_loads_only_what_it_uses(shop, output):
    loaded = loaded_by("mmd", shop / "gaussian.csv", shop / "laplace.csv", "--format", output)
    # Older SciPy imports scipy.linalg and scipy.sparse from scipy.special by itself.
    unwanted = {"pandas", "scipy.stats", "scipy.spatial", "matplotlib", "pyarrow.parquet"}
    assert loaded.isdisjoint(unwanted)
    assert {"numpy", "pyarrow"} <= loaded
    assert ("rich" in loaded) == (output == "table")
