"""Time to start, as ratios in one run.

    python tests/benchmarks/startup.py [--runs 15]

Every figure is the median processor time of several interleaved runs, each a process of its own: first `kerntest --help`
against `import click` (aim: at most 1.5), then the first test of the README against importing numpy and pyarrow.csv
(aim: at most 2.0).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
from pathlib import Path

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
SMALL_TEST = ["mmd", str(SAMPLE_DATA / "before.csv"), str(SAMPLE_DATA / "after.csv")]
COMPARISONS = (
    ("kerntest --help", ["-m", "kerntest", "--help"], "import click", 1.5),
    ("kerntest mmd, 400 + 450 rows", ["-m", "kerntest", *SMALL_TEST], "import numpy, pyarrow.csv", 2.0),
)


def milliseconds(arguments):
    """Run Python with these arguments and return how long processors were busy with it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def medians(commands, runs):
    """Return the median of each command over interleaved runs, after one run to warm the caches."""
    for command in commands:
        milliseconds(command)
    times = [[milliseconds(command) for command in commands] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def main():
    parser = argparse.ArgumentParser(description="Time to start, as ratios.")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for name, command, imports, aim in COMPARISONS:
        ours, baseline = medians([command, ["-c", imports]], runs)
        print(f"{name}: {ours:.0f} ms; {imports}: {baseline:.0f} ms; ratio {ours / baseline:.2f} (aim: {aim:g})")


if __name__ == "__main__":
    main()
