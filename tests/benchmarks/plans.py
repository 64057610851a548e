"""What `--dry-run` says beside what a run then takes: time, memory, and what the dry run itself takes.

    python tests/benchmarks/plans.py [NAME ...] [--large] [--threads 1]

Each case is a command of its own over tables made for it. Seconds are those of processors, so that other work on the machine
does not count; a dry run says seconds of the clock, which are the same on one thread of an idle machine; of cases with two
threads the clock is taken to lie between half of them and all. Memory is the peak of the process, as `time -v` shows it. A number that the dry run gives as a range is right anywhere in it, and its ratio is that to the nearer end.
Aims: time within a factor of 2, memory within 1.3, the dry run itself within 2 s besides reading the table. Without --large
it takes some ten minutes; with names only the cases with one of them in their line.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from measure import parser_of


def normal(rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def two(rows, columns):
    """Two samples, of which the second is wider."""
    return {"x.csv": normal(rows, columns), "y.csv": 1.1 * normal(rows, columns, 1)}


def dependent(rows, columns):
    """Columns of which the last follow the first."""
    X = normal(rows, columns)
    X[:, -1] += np.sin(2 * X[:, 0])
    return {"x.csv": X}


def classes(rows, columns, count=2, noise=0.5):
    """Classes by the angle of the first two columns, with some labels wrong, in a column `label`."""
    X = normal(rows, columns)
    angle = np.arctan2(X[:, 1], X[:, 0]) + noise * normal(rows, 1, 1)[:, 0]
    label = np.floor((angle + math.pi) / (2 * math.pi) * count).astype(int) % count
    return {"x.csv": (X, {"label": [f"c{one}" for one in label]})}


def overlapping(rows, columns):
    """Two classes of which one is small, and no column tells them apart."""
    rare = np.random.default_rng(1).random(rows) < 0.1
    return {"x.csv": (normal(rows, columns), {"label": np.where(rare, "rare", "usual").tolist()})}


def counts(rows, columns, classes=2):
    """Columns of counts with few different rows, and classes by their sum, with noise."""
    X = np.random.default_rng(5).poisson(3.0, (rows, columns)).astype(float)
    score = X.sum(axis=1) + 3.0 * normal(rows, 1)[:, 0]
    label = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return {"x.csv": (X, {"label": [f"c{one}" for one in label]})}


def tails(rows, columns):
    """Columns with long tails of which the last follow the first."""
    return {
        "x.csv": np.random.default_rng(4).exponential(size=(rows, columns)) + 0.3 * dependent(rows, columns)["x.csv"]
    }


def clusters(rows, count):
    """Many classes of few rows around points of their own."""
    label = np.arange(rows) % count
    return {"x.csv": (3 * normal(count, 8, 1)[label] + normal(rows, 8), {"label": [f"c{one}" for one in label]})}


def units(rows, columns, each, *, shared):
    """Two samples of units of some rows each, which have rows in both or in one of them."""
    tables = two(rows, columns).items()
    numbers = np.arange(rows) // each
    return {name: (X, {"unit": [f"{'' if shared else name[0]}{one}" for one in numbers]}) for name, X in tables}


def levels(rows, columns, count):
    """Two samples of numbers and as many columns of categories, whose frequencies differ a little."""
    found = {}
    for seed, (name, X) in enumerate(two(rows, columns).items()):
        drawn = np.random.default_rng(seed).integers(0, count + seed, size=(rows, columns))
        found[name] = (X, {f"k{place}": [f"l{one}" for one in drawn[:, place]] for place in range(columns)})
    return found


def gaps(rows, columns):
    """Columns of which the last follow the first, a tenth of the values missing in every second column."""
    X = dependent(rows, columns)["x.csv"]
    X[:, ::2] = np.where(np.random.default_rng(3).random(X[:, ::2].shape) < 0.1, np.nan, X[:, ::2])
    return {"x.csv": X}


def mixed(rows, columns):
    """Mixtures of uniform sources."""
    sources = np.random.default_rng(2).uniform(-1, 1, (rows, columns))
    return {"x.csv": sources @ normal(columns, columns, 1)}


def curve(rows, columns):
    """Numbers to predict, in the last column."""
    X = normal(rows, columns)
    return {"x.csv": np.column_stack([X, np.sin(2 * X[:, 0]) + X[:, -1] ** 2 + 0.3 * normal(rows, 1, 1)[:, 0]])}


def both(columns):
    """Options of hsic for x of the first half of the columns."""
    half = columns // 2
    return f"--x x1:x{half} --y x{half + 1}:x{columns}"


LEARN = "--target label"
MEDIAN = "--kernel gaussian --bandwidth median"
# Each: the command, its tables; of a model that is applied, first the command that makes it.
CASES = (
    ("mmd x.csv y.csv", lambda: two(1_000, 5)),
    ("mmd x.csv y.csv", lambda: two(5_000, 5)),
    ("mmd x.csv y.csv --kernel gaussian --bandwidth median", lambda: two(10_000, 5)),
    ("mmd x.csv y.csv --permutations 20000 --kernel gaussian --bandwidth median", lambda: two(5_000, 5)),
    ("mmd x.csv y.csv", lambda: two(20_000, 1)),
    ("mmd x.csv y.csv", lambda: two(1_500, 57)),
    ("mmd x.csv y.csv --explain", lambda: two(1_000, 10)),
    ("mmd x.csv y.csv --explain", lambda: two(500, 800)),
    ("mmd x.csv y.csv --null moments", lambda: two(2_000, 5)),
    ("mmd x.csv y.csv --null spectral", lambda: two(2_000, 5)),
    ("mmd x.csv y.csv --null pearson", lambda: two(4_000, 5)),
    ("mmd x.csv y.csv --resampling random", lambda: two(1_500, 5)),
    ("mmd x.csv y.csv --method features", lambda: two(100_000, 5)),
    ("mmd x.csv y.csv", lambda: two(60, 3)),
    ("mmd x.csv y.csv", lambda: two(4_000, 178)),
    ("mmd x.csv y.csv", lambda: levels(3_000, 4, 6)),
    ("mmd x.csv y.csv", lambda: levels(20_000, 4, 6)),
    ("mmd x.csv y.csv --permutations 300000", lambda: two(1_000, 5)),
    (f"mmd x.csv y.csv --permutations 300000 {MEDIAN}", lambda: two(1_000, 5)),
    ("mmd x.csv y.csv --threads 2", lambda: two(10_000, 5)),
    ("mmd x.csv y.csv --threads 2", lambda: two(20_000, 1)),
    ("mmd x.csv --by label", lambda: classes(3_000, 5, 4)),
    ("mmd x.csv --by label", lambda: classes(330, 3, 5)),
    ("mmd x.csv --by label", lambda: counts(20_000, 1, 6)),
    ("mmd x.csv y.csv z.csv", lambda: two(2_000, 5) | {"z.csv": normal(2_000, 5, 2)}),
    ("mmd x.csv y.csv --cluster unit", lambda: units(4_000, 5, 8, shared=False)),
    ("mmd x.csv y.csv --cluster unit", lambda: units(1_000, 3, 50, shared=False)),
    ("mmd x.csv y.csv --paired unit", lambda: units(4_000, 5, 8, shared=True)),
    ("mmd x.csv y.csv --strata unit", lambda: units(4_000, 5, 400, shared=True)),
    ("mmd x.csv y.csv --strata unit", lambda: units(1_000, 5, 4, shared=True)),
    ("mmd x.csv y.csv --strata unit --threads 2", lambda: units(1_500, 5, 3, shared=True)),
    ("mmd x.csv y.csv --missing indicator", lambda: gaps(4_000, 6) | {"y.csv": gaps(4_000, 6)["x.csv"]}),
    (f"hsic x.csv {both(6)}", lambda: dependent(1_000, 6)),
    (f"hsic x.csv {both(6)}", lambda: dependent(5_000, 6)),
    (f"hsic x.csv {both(6)} --kernel-x gaussian --kernel-y gaussian --bandwidth median", lambda: dependent(15_000, 6)),
    (f"hsic x.csv {both(2)}", lambda: dependent(5_000, 2)),
    (f"hsic x.csv {both(2)} --kernel-x gaussian --kernel-y gaussian --bandwidth median", lambda: dependent(50_000, 2)),
    (f"hsic x.csv {both(2)}", lambda: tails(27_178, 2)),
    (f"hsic x.csv {both(2)}", lambda: counts(20_000, 2)),
    (f"hsic x.csv {both(2)} --time-series", lambda: dependent(3_000, 2)),
    (f"hsic x.csv {both(6)} --statistic coco", lambda: dependent(2_000, 6)),
    (f"hsic x.csv {both(6)} --statistic kcc", lambda: dependent(2_000, 6)),
    (f"hsic x.csv {both(6)} --statistic kmi", lambda: dependent(2_000, 6)),
    (f"hsic x.csv {both(6)} --null moments", lambda: dependent(2_000, 6)),
    (f"hsic x.csv {both(6)} --resampling random", lambda: dependent(600, 6)),
    (f"hsic x.csv {both(6)} --method features", lambda: dependent(100_000, 6)),
    (f"hsic x.csv {both(6)}", lambda: dependent(100, 6)),
    (f"hsic x.csv {both(178)}", lambda: dependent(3_000, 178)),
    (f"hsic x.csv {both(6)} --threads 2", lambda: dependent(10_000, 6)),
    (f"hsic x.csv {both(6)} --missing indicator", lambda: gaps(3_000, 6)),
    ("hsic x.csv --x x1,x2,x3 --y x4,x5 --cluster unit", lambda: units(1_500, 5, 8, shared=False)),
    ("hsic x.csv --x x1,x2,k1 --y x3,k0,k2", lambda: levels(3_000, 4, 6)),
    ("hsic x.csv --pairwise", lambda: dependent(2_000, 30)),
    ("hsic x.csv --pairwise", lambda: dependent(300, 150)),
    ("hsic x.csv --pairwise", lambda: tails(3_000, 40)),
    ("hsic x.csv --target x60", lambda: dependent(2_000, 60)),
    ("hsic x.csv --target x20 --select 3", lambda: dependent(1_000, 20)),
    ("hsic x.csv --joint x1,x2,x3", lambda: dependent(1_000, 3)),
    (f"svm x.csv {LEARN}", lambda: classes(1_000, 5)),
    (f"svm x.csv {LEARN}", lambda: classes(5_000, 5)),
    (f"svm x.csv {LEARN}", lambda: classes(20_000, 5)),
    (f"svm x.csv {LEARN}", lambda: classes(3_000, 50, noise=0.1)),
    (f"svm x.csv {LEARN}", lambda: classes(5_000, 5, 8)),
    (f"svm x.csv {LEARN}", lambda: clusters(2_140, 214)),
    (f"svm x.csv {LEARN} --probability", lambda: counts(8_000, 2)),
    (f"svm x.csv {LEARN} --nu 0.7", lambda: counts(4_000, 2)),
    (f"svm x.csv {LEARN} --grid", lambda: counts(8_000, 2, 5)),
    (f"svm x.csv {LEARN} --cv 5", lambda: classes(2_000, 5)),
    (f"svm x.csv {LEARN} --cv 5", lambda: overlapping(4_000, 10)),
    (f"svm x.csv {LEARN} --nu 0.05", lambda: overlapping(3_000, 30)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(1_000, 5)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(1_000, 5, 4)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(4_000, 5)),
    (f"svm x.csv {LEARN} --features nystroem:300", lambda: classes(30_000, 5)),
    (f"svm x.csv {LEARN}", lambda: classes(3_000, 178)),
    (f"svm x.csv {LEARN}", lambda: classes(100, 5)),
    (f"svm x.csv {LEARN} --bandwidth 0.1", lambda: classes(4_000, 5)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(1_500, 2, noise=2.0)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(1_500, 57, noise=0.1)),
    (f"svm x.csv {LEARN} --grid --threads 2", lambda: classes(4_000, 5)),
    (f"svm x.csv {LEARN} --threads 2", lambda: classes(10_000, 5)),
    ("svm x.csv --target k0", lambda: levels(3_000, 4, 4)),
    ("svm x.csv --target x6 --task regress", lambda: curve(3_000, 5)),
    ("svm x.csv --task one-class --nu 0.1", lambda: two(4_000, 5)),
    ("ridge x.csv --target x6", lambda: curve(500, 5)),
    ("ridge x.csv --target x6", lambda: curve(2_000, 5)),
    ("ridge x.csv --target x6 --bandwidth median", lambda: curve(4_000, 5)),
    ("ridge x.csv --target x2", lambda: curve(3_000, 1)),
    ("ridge x.csv --target x6 --features nystroem:300", lambda: curve(50_000, 5)),
    ("ridge x.csv --target x6 --features nystroem:1000", lambda: curve(50_000, 5)),
    ("ridge x.csv --target x6", lambda: curve(2_600, 5)),
    ("ridge x.csv --target x6 --threads 2", lambda: curve(2_600, 5)),
    ("ridge x.csv --target x58", lambda: curve(1_500, 57)),
    ("ridge x.csv --target x6 --bandwidth 0.1", lambda: curve(3_000, 5)),
    ("kpca x.csv", lambda: two(2_000, 5)),
    ("kpca x.csv", lambda: two(10_000, 5)),
    ("kpca x.csv --components 20", lambda: two(4_000, 50)),
    ("kpca x.csv --features nystroem:500", lambda: two(50_000, 5)),
    ("kpca x.csv", lambda: two(2_000, 178)),
    ("kpca x.csv", lambda: levels(3_000, 4, 6)),
    ("kpca x.csv --bandwidth 0.1", lambda: two(4_000, 5)),
    ("kpca x.csv --threads 2", lambda: two(10_000, 5)),
    (f"cca x.csv {both(6)}", lambda: dependent(900, 6)),
    (f"cca x.csv {both(6)}", lambda: dependent(20_000, 6)),
    (f"cca x.csv {both(20)}", lambda: dependent(50_000, 20)),
    ("unmix x.csv", lambda: mixed(10_000, 4)),
    ("unmix x.csv", lambda: mixed(3_000, 12)),
    ("unmix x.csv --contrast hsic", lambda: mixed(10_000, 6)),
    ("unmix x.csv", lambda: tails(600, 30)),
    ("unmix x.csv --contrast hsic", lambda: tails(10_000, 6)),
    ("unmix x.csv", lambda: two(5_000, 10)),
    ("unmix x.csv", lambda: two(2_000, 30)),
    ("predict m.kt y.csv -o out.csv", lambda: classes(5_000, 5) | {"y.csv": normal(200_000, 5)}, f"svm x.csv {LEARN} -o m.kt"),
    ("predict m.kt y.csv -o out.csv --threads 2", lambda: classes(5_000, 5) | {"y.csv": normal(200_000, 5)}, f"svm x.csv {LEARN} -o m.kt"),
    ("predict m.kt y.csv -o out.csv", lambda: curve(2_000, 5) | {"y.csv": normal(100_000, 5)}, "ridge x.csv --target x6 -o m.kt"),
    ("transform m.kt y.csv -o out.csv", lambda: two(2_000, 5) | {"y.csv": normal(100_000, 5)}, "kpca x.csv -o m.kt"),
    ("transform m.kt y.csv -o out.csv", lambda: two(500, 5), "kpca x.csv -o m.kt"),
    ("transform m.kt y.csv -o out.csv --reconstruct", lambda: two(1_000, 5) | {"y.csv": normal(2_000, 5)}, "kpca x.csv -o m.kt"),
)  # fmt: skip
LARGE = (
    ("mmd x.csv y.csv", lambda: two(40_000, 5)),
    ("hsic x.csv --pairwise", lambda: dependent(5_000, 100)),
    (f"svm x.csv {LEARN}", lambda: classes(50_000, 5)),
    (f"svm x.csv {LEARN} --grid", lambda: classes(10_000, 5)),
    ("ridge x.csv --target x6", lambda: curve(5_000, 5)),
    ("kpca x.csv", lambda: two(50_000, 5)),
)


def shapes(tables):
    """Return the shape of the first table, in words."""
    rows, columns = next(X[0] if isinstance(X, tuple) else X for X in tables.values()).shape
    return f"{rows:,} x {columns}"


def write(folder, made):
    """Write tables as CSV, and the shape of the first."""
    tables = made()
    for name, table in tables.items():
        X, more = table if isinstance(table, tuple) else (table, {})
        columns = {
            f"x{place}": ["" if np.isnan(one) else f"{one:.6g}" for one in X[:, place - 1]]
            for place in range(1, X.shape[1] + 1)
        } | more
        lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "shape").write_text(shapes(tables))


def elsewhere(work):
    """Run a function in a process of its own: the peak of a process counts that of the one that it was started from."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("a table could not be written")


def run(folder, words):
    """Run a command; return its standard output, the seconds of processors and the bytes of its peak."""
    command = [sys.executable, "-m", "kerntest", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: exit {os.waitstatus_to_exitcode(status)}\n{err.decode()}")
    return out, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def off(said, taken):
    """Return by what factor what was said differs from what was taken; 1 inside of a range."""
    low, high = said if isinstance(said, (list, tuple)) else (said, said)
    return taken / high if taken > high else taken / low if taken < low else 1.0


def distance(ratio):
    return max(ratio, 1.0 / ratio)


def shown(said, scale):
    low, high = said
    return f"{low / scale:.2g}" if high < 1.05 * low else f"{low / scale:.2g}-{high / scale:.2g}"


def main():
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--threads", default="1")
    arguments = parser.parse_args()
    print(
        f"{'case':86} {'dry run':>7} {'said s':>10} {'taken':>6} {'ratio':>6} {'said MB':>9} {'taken':>6} {'ratio':>6}"
    )
    ratios = {}
    for words, tables, *before in (*CASES, *(LARGE if arguments.large else ())):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if arguments.names and not any(one in words for one in arguments.names):
                continue
            elsewhere(partial(write, folder, tables))
            size = (folder / "shape").read_text()
            for command in before:
                run(folder, [*command.split(), "-q"])
            asked = words.split() if "--threads" in words else [*words.split(), "--threads", arguments.threads]
            plan, dry, _ = run(folder, [*asked, "--dry-run", "--json"])
            _, seconds, memory = run(folder, asked)
        plan = json.loads(plan)
        times = plan.get("seconds_range") or [plan["seconds"]] * 2
        bytes_said = plan.get("memory_range") or [plan["memory_bytes"]] * 2
        # By the clock several threads take at least their share of the processors' seconds, and at most all of them.
        least = seconds / int(asked[asked.index("--threads") + 1])
        found = off(times, min(max(math.sqrt(times[0] * times[1]), least), seconds)), off(bytes_said, memory)
        ratios[f"{words}, {size}"] = found
        line = f"{words.replace('x.csv ', '')[:70]}, {size}"
        told = f"{dry:7.2f} {shown(times, 1):>10} {seconds:6.2f} {found[0]:6.2f}"
        print(f"{line:86} {told} {shown(bytes_said, 1e6):>9} {memory / 1e6:6.0f} {found[1]:6.2f}", flush=True)
    for place, (quantity, aim) in enumerate((("time", 2.0), ("memory", 1.3))):
        sizes = {what: distance(found[place]) for what, found in ratios.items()}
        worst = max(sizes, key=sizes.get)
        within = sum(one <= aim for one in sizes.values())
        for what in (one for one in sizes if sizes[one] > aim):
            print(f"outside: {quantity} by {sizes[what]:.3g}: {what}")
        print(f"{quantity}: {within} of {len(sizes)} within a factor of {aim}; the worst {sizes[worst]:.3g}: {worst}")


if __name__ == "__main__":
    main()
