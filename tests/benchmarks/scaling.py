"""How time and memory grow with the rows: exact tests and tests by features, on each engine, as commands of their own.

    python tests/benchmarks/scaling.py                      sizes 10^4 and 10^5
    python tests/benchmarks/scaling.py --sizes 1e6 1e7 --only features
    python tests/benchmarks/scaling.py --engines local dask

Rows are standard Gaussians in 5 columns, in Parquet files of 10^6 rows at most; the two samples of `mmd` have half of
the rows each, and `hsic` tests 2 columns against the other 3. Seconds are those of the whole command. Memory is the
largest sum over the process and its children. The error of features is the root mean square of what they miss of kernel
values, and of the exact ones that of float64.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from measure import parser_of
from pyarrow import parquet

COLUMNS = ("a", "b", "c", "d", "e")
ROWS_PER_FILE = 10**6
# Exact tests beyond take hours on two cores.
LARGEST_EXACT = 10**5
LARGEST_EXACT_OF_ONE_COLUMN = 10**6


def write_rows(folder, rows, seed):
    """Write standard Gaussians into Parquet files of a folder."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for part, start in enumerate(range(0, rows, ROWS_PER_FILE)):
        count = min(ROWS_PER_FILE, rows - start)
        table = pa.table({name: rng.normal(size=count) for name in COLUMNS})
        parquet.write_table(table, folder / f"part{part:03}.parquet", row_group_size=2**17)


def peak_of(process):
    """Wait for a process; return the largest memory of it and its children, in bytes."""
    peak, watched = 0, psutil.Process(process.pid)
    while process.poll() is None:
        total = 0
        try:
            for one in (watched, *watched.children(recursive=True)):
                total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
        peak = max(peak, total)
        time.sleep(0.05)
    return peak


def measured(arguments):
    """Run one command; return its seconds, its peak memory and its result."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, "-m", "kerntest", *arguments, "--json", "-q"], stdout=out)
        peak = peak_of(process)
        seconds = time.perf_counter() - started
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}")
    return seconds, peak, json.loads(text)


def error_of(result):
    """Return what the result says of its error, as text."""
    approximation = result.get("approximation")
    if approximation is None:
        return "rounding of float64"
    errors = [value for name, value in sorted(approximation.items()) if name.startswith("kernel_error")]
    return ", ".join(f"{value:.2g}" for value in errors if value is not None)


def cases(folder, rows, engines, only):
    """Yield what to measure at a number of rows: its name and its arguments."""
    x, y, both = (str(folder / name) for name in ("x", "y", "both"))
    exact = ["--kernel", "gaussian", "--bandwidth", "median"]
    tests = {
        "mmd": ["mmd", x, y],
        "mmd, 1 column": ["mmd", x, y, "--columns", "a"],
        "hsic": ["hsic", both, "--x", "a,b", "--y", "c,d,e"],
        "hsic, 1 + 1 columns": ["hsic", both, "--x", "a", "--y", "b"],
    }
    for name, arguments in tests.items():
        narrow = "column" in name
        if only != "features" and rows <= (LARGEST_EXACT_OF_ONE_COLUMN if narrow else LARGEST_EXACT):
            for engine in engines:
                yield f"{name}, exact, {engine}", [*arguments, *exact, "--engine", engine]
        if only != "exact" and not narrow:
            for engine in engines:
                if engine != "gpu":
                    yield f"{name}, features, {engine}", [*arguments, "--method", "features", "--engine", engine]


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e4, 1e5])
    parser.add_argument("--engines", nargs="+", default=["local"], choices=["local", "dask", "gpu"])
    parser.add_argument("--only", choices=["exact", "features"])
    parser.add_argument("--folder", help="where the files go; a temporary folder by default")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{'rows':>12}  {'what':<34}{'seconds':>10}{'MB':>9}{'p':>9}  error")
    for size in options.sizes:
        rows = int(size)
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            write_rows(folder / "x", rows // 2, 1)
            write_rows(folder / "y", rows // 2, 2)
            write_rows(folder / "both", rows, 3)
            for what, arguments in cases(folder, rows, options.engines, options.only):
                seconds, peak, result = measured(arguments)
                print(
                    f"{rows:>12,}  {what:<34}{seconds:>10.2f}{peak / 1e6:>9.0f}{result['p_value']:>9.3g}  {error_of(result)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
