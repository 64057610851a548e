"""A small test must start at once: what it does not need is not imported."""

import json
import subprocess
import sys

from command_line import environment

LOADED = """
import sys
from kerntest.cli.main import run
loaded = []
for arguments in (sys.argv[1:] + ["--json"], sys.argv[1:]):
    assert run(arguments) == 0
    loaded.append(sorted(sys.modules))
sys.stdout.flush()
import json
print(json.dumps(loaded), file=sys.stderr)
"""


def test_a_small_test_loads_only_what_it_uses(shop):
    files = [str(shop / name) for name in ("gaussian.csv", "laplace.csv")]
    command = [sys.executable, "-c", LOADED, "mmd", *files]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=600)
    as_json, as_table = map(set, json.loads(done.stderr.splitlines()[-1]))
    # Older SciPy imports scipy.linalg and scipy.sparse from scipy.special by itself.
    assert as_table.isdisjoint({"pandas", "scipy.stats", "scipy.spatial", "matplotlib", "pyarrow.parquet"})
    assert {"numpy", "pyarrow"} <= as_json
    assert "rich" not in as_json
    assert "rich" in as_table
