"""Speed of ridge regression: the whole grid of lambdas and bandwidths by exact leave-one-out, and very many rows.

    python tests/benchmarks/speed_ridge.py [--rows 2000] [--columns 5] [--threads 2] [--large]

The peer is scikit-learn's GridSearchCV(KernelRidge) with 5 folds over the same 20 lambdas and 10 bandwidths, on as many
processes as there are threads here. --large fits 100,000 rows with 2,000 centres by conjugate gradients, and prints the
time and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from kerntest import KernelRidge

# The grid that is searched here too.
MULTIPLES = tuple(float(f"{10.0 ** (k / 5):.2g}") for k in range(-5, 5))
LAMBDAS = tuple(float(f"{10.0 ** (k / 2):.3g}") for k in range(-13, 7))


def data(n, d, seed=0):
    """Return columns and a target: a wave, a slope, noise of standard deviation 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1:].sum(axis=1) + 0.2 * rng.normal(size=n)


def processors():
    """Return the processor seconds of this process and of those that it started and that have ended."""
    return sum(
        getattr(resource.getrusage(who), name)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        for name in ("ru_utime", "ru_stime")
    )


def timed(call):
    wall, used = time.perf_counter(), processors()
    result = call()
    return result, time.perf_counter() - wall, processors() - used


def peer(X, y, median, threads):
    """Return scikit-learn's search over the same cells."""
    from sklearn.kernel_ridge import KernelRidge as PeerRidge
    from sklearn.model_selection import GridSearchCV

    gammas = [1 / (2 * (median * multiple) ** 2) for multiple in MULTIPLES]
    cells = {"alpha": list(LAMBDAS), "gamma": gammas}
    from joblib.externals.loky import get_reusable_executor

    search = GridSearchCV(
        PeerRidge(kernel="rbf"), cells, cv=5, scoring="neg_root_mean_squared_error", n_jobs=threads, refit=True
    )
    found = search.fit(X, y - y.mean())
    # Its processes end, so that their processor time counts.
    get_reusable_executor().shutdown(wait=True)
    return found


def compare(n, d, threads):
    X, y = data(n, d)
    ours, taken, processor = timed(lambda: KernelRidge(threads=threads).fit(X, y))
    median = ours.grid_.cells[0].bandwidth / MULTIPLES[0]
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    found, other, used = timed(lambda: peer(standardised, y, median, threads))
    chosen = ours.grid_.cells[ours.grid_.chosen]
    print(f"{n:,} rows, {d} columns, {len(LAMBDAS)} lambdas x {len(MULTIPLES)} bandwidths, {threads} threads")
    print(
        f"  kerntest, leave-one-out of all cells: {taken:8.2f} s ({processor:.2f} s of processors)   "
        f"lambda {chosen.lambda_:g}, bandwidth {chosen.bandwidth:.4g}, RMSE {ours.loo_rmse_:.4f}"
    )
    width = (2 * found.best_params_["gamma"]) ** -0.5
    print(
        f"  scikit-learn, 5 folds:                {other:8.2f} s ({used:.2f} s of processors)   "
        f"lambda {found.best_params_['alpha']:g}, bandwidth {width:.4g}, RMSE {-found.best_score_:.4f}"
    )
    print(f"  ratio {taken / other:.4f}, of processor times {processor / used:.4f}", flush=True)


def large(n, centres, d, threads):
    X, y = data(n, d)
    rest, truth = data(10_000, d, seed=1)
    ours, taken, processor = timed(lambda: KernelRidge(features=f"nystroem:{centres}", threads=threads).fit(X, y))
    fit = ours.fit_
    error = float(np.sqrt(np.mean((ours.predict(rest) - truth) ** 2)))
    low, high = ours.predict_interval(rest, 0.9)
    covered = float(np.mean((truth >= low) & (truth <= high)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{n:,} rows, {centres:,} centres, {threads} threads: {taken:.1f} s ({processor:.1f} s of processors)")
    print(
        f"  lambda {ours.lambda_:g}, {fit.iterations} steps, converged {fit.converged}, kernel values off by "
        f"{fit.feature_error:.1e}, {fit.degrees:.0f} effective degrees of freedom"
    )
    print(
        f"  RMSE of 10,000 new rows {error:.4f} (noise 0.2), 90 % intervals hold {covered:.3f}, {memory:.2f} GB at most"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--large", action="store_true", help="only 100,000 rows with 2,000 centres")
    arguments = parser.parse_args()
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
    if arguments.large:
        large(100_000, 2000, arguments.columns, arguments.threads)
    else:
        compare(arguments.rows, arguments.columns, arguments.threads)


if __name__ == "__main__":
    main()
