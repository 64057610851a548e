"""Speed of the support vector solver against scikit-learn's SVC (LIBSVM), both on one thread, interleaved.

    python tests/benchmarks/speed_svm.py [--quick | --large] [--only moons_5000_0.3] [--repeats 3]

Times are medians of whole fits, in processor seconds of this process with --processor. SVC stops at its default
tolerance; ours at a relative duality gap of 1e-6, computed in double precision within the time. "better" is by how much
the dual objective is above that of SVC, relative to it, where the matrix is small enough to say. The geometric mean of
the ratios is given for all rows, and for those of at least 2,000 cases.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

# The libraries read them when they are loaded.
import numpy as np  # noqa: E402 - see above

from kerntest.kernels.base import Points  # noqa: E402 - see above
from kerntest.kernels.stationary import Gaussian  # noqa: E402 - see above
from kerntest.learning.solvers.hinge import solve_hinge  # noqa: E402 - see above
from kerntest.learning.solvers.problem import Problem  # noqa: E402 - see above
from kerntest.matrices.matrix import GivenMatrix, matrix_of  # noqa: E402 - see above

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
QUICK = ("bc", "moons_1000_0.3", "moons_5000_0.3", "mclass", "gmix", "checker")
USUAL = ("bc", "moons_1000_0.2", "moons_1000_0.3", "moons_5000_0.2", "moons_5000_0.3", "mclass", "gmix", "checker")
MIDDLE = ("gauss_5000_5", "ring_5000_8")
LARGE = ("moons_20000_0.2", "moons_20000_0.3")


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def data(name):
    """Return X, labels of 1 and -1, and gamma."""
    from sklearn.datasets import load_breast_cancer, make_classification, make_moons

    rng = np.random.default_rng(0)
    kind, *numbers = name.split("_")
    if kind == "bc":
        X, y = load_breast_cancer(return_X_y=True)
    elif kind == "moons":
        X, y = make_moons(int(numbers[0]), noise=float(numbers[1]), random_state=0)
    elif kind == "mclass":
        X, y = make_classification(5000, 20, n_informative=10, random_state=0)
    elif kind == "checker":
        X = 4 * rng.random((5000, 2))
        return X, np.where(np.floor(X).sum(axis=1) % 2, 1.0, -1.0), 5.0
    elif kind == "gauss":
        n, d = map(int, numbers)
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, d)) + y[:, None]
    elif kind == "ring":
        n, d = map(int, numbers)
        X = rng.normal(size=(n, d))
        r = np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=n)
        y = r > np.median(r)
    else:
        centres = 1.5 * rng.normal(size=(8, 50))
        chosen = rng.integers(0, 8, 5000)
        X, y = centres[chosen] + rng.normal(size=(5000, 50)), chosen % 2
    return standardised(X), np.where(y > 0, 1.0, -1.0), 1 / X.shape[1]


class Row:
    """Interleaved times of one row of the table."""

    ratios: list[tuple[int, float]] = []  # noqa: RUF012 - one table for each run

    def __init__(self, name, C, n, *, repeats, clock):
        self.name, self.C, self.n, self.repeats, self.clock = name, C, n, repeats, clock

    def timed(self, call):
        start = self.clock()
        result = call()
        return self.clock() - start, result

    def run(self, peer, ours, better):
        theirs, mine = [], []
        for _ in range(self.repeats):
            taken, fitted = self.timed(peer)
            theirs.append(taken)
            taken, solved = self.timed(ours)
            mine.append(taken)
        ratio = float(np.median(mine) / np.median(theirs))
        Row.ratios.append((self.n, ratio))
        print(
            f"{self.name:18} C = {self.C:<6g} SVC {np.median(theirs):8.4f} s   ours {np.median(mine):8.4f} s"
            f"   ratio {ratio:6.3f}   {better(fitted, solved)}",
            flush=True,
        )

    @classmethod
    def summary(cls):
        for least, words in ((0, "all rows"), (2000, "n >= 2000")):
            chosen = [np.log(ratio) for n, ratio in cls.ratios if n >= least]
            if chosen:
                print(f"geometric mean of the ratios, {words}: {np.exp(np.mean(chosen)):.3f} ({len(chosen)} rows)")


def ours(X, y, C, gamma):
    n = len(y)
    matrix = matrix_of(Gaussian((1 / (2 * gamma)) ** 0.5), Points.of(X))
    return solve_hinge(matrix, Problem(y, np.full(n, C), np.ones(n)))


def gaussian_row(name, C, options):
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    X, y, gamma = data(name)

    def better(fitted, solved):
        beta = fitted.dual_coef_[0]
        f = rbf_kernel(X[fitted.support_], gamma=gamma) @ beta
        dual = float(np.abs(beta).sum() - 0.5 * beta @ f)
        return (
            f"gap {solved.gap:.1e}{'' if solved.converged else ' NOT CONVERGED'}   better {solved.dual_objective / dual - 1:+.1e}"
            f"   {np.count_nonzero(solved.coefficients)} vectors   {solved.iterations} systems   {solved.method}"
        )

    row = Row(name, C, len(y), **options)
    row.run(lambda: SVC(C=C, gamma=gamma).fit(X, y), lambda: ours(X, y, C, gamma), better)


def digits_row(C, options):
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    X, labels = load_digits(return_X_y=True)
    X = standardised(X)
    gamma = 1 / X.shape[1]
    pairs = []
    for first in range(10):
        for second in range(first + 1, 10):
            chosen = (labels == first) | (labels == second)
            pairs.append((X[chosen], np.where(labels[chosen] == second, 1.0, -1.0)))

    def better(_fitted, solved):
        return f"worst gap {max(one.gap for one in solved):.1e}"

    Row("digits, 45 pairs", C, 360, **options).run(
        lambda: [SVC(C=C, gamma=gamma).fit(*pair) for pair in pairs],
        lambda: [ours(*pair, C, gamma) for pair in pairs],
        better,
    )


def linear_row(n, d, C, options):
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    y = np.where(rng.integers(0, 2, n), 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.3 * y[:, None]
    problem = Problem(y, np.full(n, C), np.ones(n))
    matrix = LinearMatrix(X)
    row = Row(f"linear n={n} d={d}", C, n, **options)
    row.run(
        lambda: SVC(C=C, kernel="linear").fit(X, y),
        lambda: solve_hinge(matrix, problem, factor=X),
        lambda _fitted, solved: f"gap {solved.gap:.1e}{'' if solved.converged else ' NOT CONVERGED'}",
    )


class LinearMatrix(GivenMatrix):
    """X X', never made whole."""

    def __init__(self, X):
        self.X, self.n = X, len(X)
        self.diagonal = np.einsum("ij,ij->i", X, X)

    def block(self, rows, columns, dtype=np.float64, out=None):
        product = np.matmul(self.X[rows], self.X[columns].T, out=out)
        return product.astype(dtype, copy=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer data sets, C = 1 and 100 only")
    parser.add_argument("--large", action="store_true", help="also 20,000 rows and linear kernels: minutes")
    parser.add_argument("--only", action="append", help="only this data set; may be given again")
    parser.add_argument("--costs", type=float, nargs="+", default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="processor time: steadier on a shared machine")
    arguments = parser.parse_args()
    options = {"repeats": arguments.repeats, "clock": time.process_time if arguments.processor else time.perf_counter}
    costs = arguments.costs or ((1.0, 100.0) if arguments.quick else COSTS)
    names = arguments.only or (QUICK if arguments.quick else USUAL + MIDDLE + (LARGE if arguments.large else ()))
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
    for name in names:
        if name == "digits":
            continue
        for C in costs:
            # SVC alone needs many seconds there.
            if not (C == 1000 and name in LARGE + MIDDLE and not arguments.large):
                gaussian_row(name, C, options)
    if not arguments.only or "digits" in arguments.only:
        for C in costs:
            digits_row(C, options)
    if arguments.large and not arguments.only:
        for n, d, C in ((5000, 10, 0.1), (5000, 10, 1.0), (5000, 50, 0.1), (20000, 10, 0.1)):
            linear_row(n, d, C, options | {"repeats": 1})
    Row.summary()


if __name__ == "__main__":
    main()
