"""Errors of independent components: kerntest's against FastICA of scikit-learn, on the same draws.

    python tests/benchmarks/unmix.py [--draws 100] [--densities abc] [--sizes 2x250] [--contrast likelihood]

Sources of each of the 18 densities of Bach and Jordan (2002), "Kernel independent component analysis", figure 5, are mixed
by random matrices of condition numbers between 1 and 2: 2 and 4 of them, 250 and 1,000 rows. In the last line, *, each source
has a density of its own, drawn at random; the means are without it. Other letters are other densities, and mixtures with a
Gaussian (1) or with outliers (%). Told is the mean error of Amari, in hundredths: 0 where each source is found, 100 at most.
Beside FastICA as scikit-learn has it (logcosh, symmetric, 200 steps to a tolerance of 1e-4) stands the best of its three
contrasts for each density, which who uses it cannot know. `off` is by how many standard errors kerntest is worse than
logcosh: of the differences draw by draw. With 100 draws it takes some ten minutes.
"""

import math
import time
import warnings
from argparse import ArgumentParser

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from kerntest import KernelICA, KerntestWarning

# Mixtures of Gaussians: weights, means, standard deviations.
MIXTURES = {
    "g": ([1, 1], [-0.5, 0.5], [0.15, 0.15]),
    "h": ([1, 1], [-0.5, 0.5], [0.4, 0.4]),
    "i": ([1, 1], [-0.5, 0.5], [0.5, 0.5]),
    "j": ([1, 3], [-0.5, 0.5], [0.15, 0.15]),
    "k": ([1, 2], [-0.7, 0.5], [0.4, 0.4]),
    "l": ([1, 2], [-0.7, 0.5], [0.5, 0.5]),
    "m": ([1, 2, 2, 1], [-1.0, -0.33, 0.33, 1.0], [0.16, 0.16, 0.16, 0.16]),
    "n": ([1, 2, 2, 1], [-1.0, -0.2, 0.2, 1.0], [0.2, 0.3, 0.3, 0.2]),
    "o": ([1, 2, 2, 1], [-0.7, -0.2, 0.2, 0.7], [0.2, 0.3, 0.3, 0.2]),
    "p": ([1, 1, 2, 1], [-1.0, 0.3, -0.3, 1.1], [0.2, 0.2, 0.2, 0.2]),
    "q": ([1, 3, 2, 0.5], [-1.0, -0.2, 0.3, 1.0], [0.2, 0.3, 0.2, 0.2]),
    "r": ([1, 2, 2, 1], [-0.8, -0.2, 0.2, 0.5], [0.22, 0.3, 0.3, 0.2]),
}
DENSITIES = {
    "a": lambda rng, n: rng.standard_t(3, n),
    "b": lambda rng, n: rng.laplace(size=n),
    "c": lambda rng, n: rng.uniform(-1, 1, n),
    "d": lambda rng, n: rng.standard_t(5, n),
    "e": lambda rng, n: rng.exponential(size=n),
    # Two double exponentials of variance 1/2 around -1 and 1.
    "f": lambda rng, n: rng.choice([-1.0, 1.0], n) + rng.laplace(scale=0.5, size=n),
}
CLASSICAL = "abcdefghijklmnopqr"
OTHERS = {
    "A": lambda rng, n: np.sin(2 * np.pi * rng.uniform(size=n)),
    "B": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "C": lambda rng, n: rng.standard_cauchy(n),
    "D": lambda rng, n: rng.choice([0.0, 1.0, 2.0], n, p=[0.5, 0.3, 0.2]),
    "G": lambda rng, n: rng.gamma(1.0, size=n),
    "H": lambda rng, n: rng.gamma(4.0, size=n),
    "L": lambda rng, n: np.exp(0.7 * rng.normal(size=n)),
    "O": lambda rng, n: rng.uniform(-1, 1, n) * np.where(rng.uniform(size=n) < 0.01, 10, 1),
    "P": lambda rng, n: rng.poisson(2.0, n).astype(float),
    "Q": lambda rng, n: rng.beta(2, 2, size=n),
    # Twice as wide to the right.
    "S": lambda rng, n: (values := rng.laplace(size=n)) * np.where(values > 0, 2, 1),
    "T": lambda rng, n: rng.logistic(size=n),
    "U": lambda rng, n: rng.uniform(-1, 1, n) + 0.3 * rng.normal(size=n),
    "W": lambda rng, n: rng.choice([-1.0, 1.5], n, p=[0.8, 0.2]) + 0.25 * rng.normal(size=n),
    "X": lambda rng, n: rng.laplace(size=n) * np.where(rng.uniform(size=n) < 0.01, 10, 1),
    "Y": lambda rng, n: rng.triangular(-1, 0, 1, n),
}
CONTRASTS = ("logcosh", "exp", "cube")


def drawn(density, rng, n):
    """Return n values of a density."""
    if density in DENSITIES or density in OTHERS:
        return {**DENSITIES, **OTHERS}[density](rng, n)
    weights, means, deviations = map(np.array, MIXTURES[density])
    which = rng.choice(len(weights), n, p=weights / weights.sum())
    return means[which] + deviations[which] * rng.normal(size=n)


def mixing(rng, m):
    """Return a random matrix with a condition number that is uniform between 1 and 2."""
    left, right = (np.linalg.qr(rng.normal(size=(m, m)))[0] for _ in range(2))
    condition = rng.uniform(1, 2)
    return left * np.linspace(1, condition, m) @ right


def amari(product):
    """Return the error of Amari of an estimated unmixing matrix times the mixing matrix."""
    sizes, m = np.abs(product), len(product)
    down, across = sizes / sizes.max(axis=0), sizes / sizes.max(axis=1, keepdims=True)
    return (down.sum() + across.sum() - 2 * m) / (2 * m * (m - 1))


def mixed(density, rng, m, n):
    """Return m sources of a density, of several (*, %), or of several and one Gaussian (1), and a matrix that mixes them."""
    if density in "*%":
        names = rng.choice(list(CLASSICAL), m)
    elif density == "1":
        gaussian = rng.normal(size=n)
        others = [drawn(name, rng, n) for name in rng.choice(list(CLASSICAL), m - 1)]
        return np.column_stack([gaussian, *others]), mixing(rng, m)
    else:
        names = density * m
    return np.column_stack([drawn(name, rng, n) for name in names]), mixing(rng, m)


def errors_of(density, m, n, draw, contrast):
    """Return the errors of kerntest and of FastICA with each contrast, and the processor's seconds of the first two."""
    rng = np.random.default_rng([ord(density), m, n, draw])
    sources, matrix = mixed(density, rng, m, n)
    rows, found, seconds = sources @ matrix.T, [], []
    if density == "%":
        rows -= rows.mean(axis=0)
        rows[rng.uniform(size=n) < 0.01] *= 10
    learners = [KernelICA(contrast=contrast, threads=1)]
    learners += [FastICA(fun=fun, whiten="unit-variance", random_state=draw) for fun in CONTRASTS]
    for learner in learners:
        started = time.process_time()
        found.append(amari(learner.fit(rows).components_ @ matrix))
        seconds.append(time.process_time() - started)
    return found, seconds[:2]


def table_of(densities, m, n, draws, contrast):
    """Print the errors of each density, and return the mean of kerntest's, of logcosh, and of the best of FastICA's."""
    print(f"\n{m} sources, {n:,} rows, {draws} draws: 100 x mean error of Amari")
    print("density  kerntest  logcosh    best  ratio   off")
    means, worst, seconds = [], (-math.inf, ""), np.zeros(2)
    for density in densities:
        every, taken = zip(*(errors_of(density, m, n, draw, contrast) for draw in range(draws)), strict=True)
        every, seconds = 100 * np.array(every), seconds + np.mean(taken, axis=0) / len(densities)
        ours, logcosh, *_ = mean = every.mean(axis=0)
        error = (every[:, 0] - every[:, 1]).std() / math.sqrt(draws)
        off = (ours - logcosh) / max(error, 1e-12)
        best = mean[1:].min()
        if density != "*":
            means.append((ours, logcosh, best))
        worst = max(worst, (off, density))
        print(
            f"{density:7}  {ours:8.2f}  {logcosh:7.2f}  {best:6.2f}  {ours / logcosh:5.2f}  {off:4.1f}",
            flush=True,
        )
    ours, logcosh, best = np.mean(means or [(ours, logcosh, best)], axis=0)
    print(f"{'mean':7}  {ours:8.2f}  {logcosh:7.2f}  {best:6.2f}  {ours / logcosh:5.2f}", end="")
    print(f"   the worst: {worst[1]}, {worst[0]:.1f}; seconds {seconds[0]:.3f} against {seconds[1]:.3f}", flush=True)
    return ours, logcosh, best


def main():
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--densities", default=CLASSICAL + "*")
    parser.add_argument("--sizes", default="2x250,4x250,2x1000,4x1000")
    parser.add_argument("--contrast", default="likelihood", choices=("likelihood", "hsic"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", KerntestWarning)
    sizes = [tuple(map(int, size.split("x"))) for size in asked.sizes.split(",")]
    means = [table_of(asked.densities, *size, asked.draws, asked.contrast) for size in sizes]
    ours, logcosh, best = np.mean(means, axis=0)
    print(f"\nall: {ours:.2f}, logcosh {logcosh:.2f}, ratio {ours / logcosh:.2f}; the best for each density {best:.2f}")


if __name__ == "__main__":
    main()
