"""Time to start, as ratios in one run.

    python tests/benchmarks/startup.py [--runs 15]

Every figure is the median of several interleaved runs, each a process of its own: first `kerntest --help` against
`import click` (aim: at most 2.5), then a test of 500 and 500 rows with default options against importing numpy,
scipy.fft and pyarrow.csv (aim: at most 3).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
SMALL_TEST = ["mmd", str(SAMPLE_DATA / "gaussian.csv"), str(SAMPLE_DATA / "laplace.csv")]
COMPARISONS = (
    ("kerntest --help", ["-m", "kerntest", "--help"], "import click", 2.5),
    ("kerntest mmd, 500 + 500 rows", ["-m", "kerntest", *SMALL_TEST], "import numpy, scipy.fft, pyarrow.csv", 3.0),
)


def milliseconds(arguments):
    """Run Python with these arguments and return how long the whole process took."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    return 1000 * (time.perf_counter() - started)


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
