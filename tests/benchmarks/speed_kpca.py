"""Speed of the leading kernel principal components against scikit-learn's KernelPCA, interleaved.

    python tests/benchmarks/speed_kpca.py [--rows 5000] [--components 10] [--repeats 3] [--large]

Whole fits on the same rows, kernel and number of components: the kernel matrix, its centring, the eigenvalues. Of
scikit-learn all three solvers; "dense" once only, for it takes a minute. The ratio is to the fastest of them.
--large: 200,000 rows by Nystroem's method, with the error of the features and the memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from kerntest import KernelPCA


def rows(n, p):
    """Return n rows near a curved surface of two dimensions in p columns, with noise."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, n))
    waves = [np.cos(3 * u * k) if k % 2 else np.sin(2 * v * k) for k in range(1, p + 1)]
    X = np.column_stack(waves) + 0.1 * rng.normal(size=(n, p))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def compare(n, k, repeats):
    from sklearn.decomposition import KernelPCA as Peer

    X = rows(n, 10)
    bandwidth = 4.0
    gamma = 1 / (2 * bandwidth**2)

    def peer(solver):
        return Peer(k, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0).fit(X)

    def ours():
        return KernelPCA(k, kernel=f"gaussian({bandwidth})", scale="none").fit(X)

    times = {"kerntest": [], "arpack": [], "randomized": []}
    for _ in range(repeats):
        # In turns: other work on the machine touches all of them.
        taken, mine = timed(ours)
        times["kerntest"].append(taken)
        for solver in ("arpack", "randomized"):
            taken, theirs = timed(lambda: peer(solver))  # noqa: B023 - called at once
            times[solver].append(taken)
    times["dense"] = [timed(lambda: peer("dense"))[0]]
    print(f"{n:,} rows, 10 columns, {k} components, {mine.fit_.solver}")
    for name, taken in times.items():
        print(f"  {name:10} {np.median(taken):7.2f} s  ({', '.join(f'{one:.2f}' for one in taken)})")
    best = min(np.median(taken) for name, taken in times.items() if name != "kerntest")
    print(f"  ratio to the fastest peer {np.median(times['kerntest']) / best:.3f}")
    difference = np.abs(mine.eigenvalues_ - theirs.eigenvalues_).max() / mine.eigenvalues_[0]
    print(f"  eigenvalues differ by {difference:.1e} of the largest")


def large(n, k, features):
    X = rows(n, 10)
    taken, found = timed(lambda: KernelPCA(k, features=f"nystroem:{features}", scale="none").fit(X))
    projected, scores = timed(lambda: found.transform(X))
    # The same landmarks' errors on rows few enough for the exact matrix.
    part = X[:: n // 4000]
    exact = KernelPCA(k, kernel=str(found.model.kernel), scale="none").fit(part)
    ratios = found.explained_variance_ratio_ - exact.explained_variance_ratio_
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{n:,} rows, 10 columns, {k} components, {features} Nystroem features: fit {taken:.1f} s")
    print(f"  projection of all rows {projected:.1f} s, {scores.shape}; at most {memory:.2f} GiB")
    print(f"  kernel values off by {found.fit_.feature_error:.1e} (RMS)")
    print(f"  shares of the variance off by at most {np.abs(ratios).max():.1e} from those of {len(part):,} rows, exact")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    if options.large:
        large(200_000, options.components, 500)
    else:
        compare(options.rows, options.components, options.repeats)


if __name__ == "__main__":
    main()
