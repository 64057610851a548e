"""Speed, as ratios to peers in one run.

    python tests/benchmarks/speed.py [mmd hsic screens svm classes predict ridge kpca start gpu grid] [--large] [--runs 3] [--processor]

Needs the extra `benchmark`; a peer that is not installed is left out. Every figure is the median of interleaved runs of the
whole work, in seconds of the clock or, with --processor, of processors. The ratio is to the fastest peer; below 1 kerntest
is faster; the last line of every table names its worst line. Without names all but `gpu` are measured: minutes.

mmd, hsic  with as many relabellings as rows, against scikit-learn's rbf_kernel, that is the Gram matrix of all rows (for
           hsic, that of each side) once; and against all those relabellings by scipy and hyppo, reckoned from a few
svm        a fit to a relative duality gap of 1e-6 against SVC with its default tolerance, on one thread, over bandwidths of
           1/8 to 8 medians of the distances and costs of .01 to 1000. "better" is by how much the dual objective is above that
           of SVC, relative to it
classes    fits and predictions of many classes, one against one, against those of SVC
predict    new rows on many support vectors against SVC, and that of scikit-learn-intelex where it is installed
ridge      a grid of 20 lambdas and 10 bandwidths by leave-one-out against GridSearchCV(KernelRidge) with 5 folds of it
kpca       the leading components, against the solvers of scikit-learn's KernelPCA
start      processor time of a command against that of importing what it needs (aims: 1.5 and 2)
grid       costs and bandwidths by 5 folds against GridSearchCV(SVC) on the same cells, on one thread
gpu        tests on a GPU against the threads of this machine; KERNTEST_DEVICE=cpu runs its code without one

--large adds what takes minutes each.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from measure import Case, clock, compare, installed, parser_of, processor_seconds
from threadpoolctl import threadpool_limits

from kerntest import SVM, DataWarning, KernelPCA, KernelRidge, compute_on, hsic_pairs, hsic_test, mmd_test, train_svm

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
SHAPES = tuple(product((400, 2_000, 10_000), (1, 5, 20)))


def normal(rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def gram(*sides):
    """One Gram matrix of each side, by scikit-learn."""
    from sklearn.metrics.pairwise import rbf_kernel

    return [rbf_kernel(side, gamma=1 / 8) for side in sides]


def halves(X):
    return X[: len(X) // 2], X[len(X) // 2 :]


def members(result, _):
    return f"{len(result.family.members)} kernels" if result.family else ""


def mmd(*, large):
    peers = installed("sklearn")
    for n, d in SHAPES:
        X = normal(n, d)
        test = partial(mmd_test, *halves(X), permutations=n)
        matrix = {"Gram matrix": partial(gram, X)} if peers else {}
        for name, options in (("gaussian", {"kernel": "gaussian(2)"}), ("auto", {})):
            yield Case(f"mmd {name}, {n:,} rows, {d} columns", partial(test, **options), matrix, members)
    X = normal(4_600, 57)
    test = partial(mmd_test, *halves(X), kernel="gaussian", bandwidth="median")
    yield Case("mmd explained, 4,600 rows, 57 columns", partial(test, explain=True), {"not explained": test})
    X = normal(10_000, 5)
    ours = partial(mmd_test, *halves(X), kernel="gaussian(2)", permutations=10_000)
    yield Case("mmd, 10,000 relabellings", ours, {"scipy": scipy_permutations(X, 3)}, runs=1, factor=10_000 / 4)
    X = normal(2_000, 5)
    ours = partial(mmd_test, *halves(X), kernel="gaussian(2)", permutations=2_000)
    if installed("hyppo"):
        from hyppo.ksample import MMD

        peer = partial(MMD().test, *halves(X), reps=10, auto=False)
        yield Case("mmd, 2,000 relabellings of 2,000 rows", ours, {"hyppo": peer}, runs=1, factor=200)
    if large:
        yield Case(
            "mmd, 100,000 rows",
            partial(mmd_test, *halves(normal(100_000, 5)), kernel="gaussian(2)", permutations=100_000),
        )


def scipy_permutations(X, count):
    """So many relabellings, and the observed one, over a ready Gram matrix."""
    from scipy.stats import permutation_test

    K = np.exp(-((X[:, None, 0] - X[None, :, 0]) ** 2) / 8)

    def statistic(left, right):
        left, right = left.astype(int), right.astype(int)
        within_x, within_y = K[np.ix_(left, left)], K[np.ix_(right, right)]
        return within_x.mean() + within_y.mean() - 2.0 * K[np.ix_(left, right)].mean()

    labels = halves(np.arange(len(X)))
    return partial(permutation_test, labels, statistic, n_resamples=count, alternative="greater", rng=0)


def hsic(*, large):
    peers = installed("sklearn")
    for n, d in SHAPES:
        x, y = normal(n, d), normal(n, d, 1)
        matrices = {"two Gram matrices": partial(gram, x, y)} if peers else {}
        for name, options in (("gaussian", {"kernel_x": "gaussian(2)", "kernel_y": "gaussian(2)"}), ("auto", {})):
            ours = partial(hsic_test, x, y, permutations=n, **options)
            yield Case(f"hsic {name}, {n:,} rows, {d} + {d} columns", ours, matrices, members)
    x, y = normal(2_000, 5), normal(2_000, 5, 1)
    ours = partial(hsic_test, x, y, kernel_x="gaussian(2)", kernel_y="gaussian(2)", permutations=2_000)
    if installed("hyppo"):
        from hyppo.independence import Hsic

        peer = partial(Hsic().test, x, y, reps=3, auto=False)
        yield Case("hsic, 2,000 relabellings of 2,000 rows", ours, {"hyppo": peer}, runs=1, factor=2_000 / 3)
    if large:
        for d in (1, 5):
            x, y = normal(100_000, d), normal(100_000, d, 1)
            test = partial(hsic_test, x, y, kernel_x="gaussian(2)", kernel_y="gaussian(2)", permutations=100_000)
            yield Case(f"hsic, 100,000 rows, {d} + {d} columns", test, runs=1)


def screens(*, large):
    X = normal(2_000, 50)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.01, np.nan, X)
    for what, table in (("", X), (", missing values of their own", holes if large else holes[:, :12])):
        yield Case(f"all pairs of {table.shape[1]} columns, 2,000 rows{what}", partial(hsic_pairs, table), runs=1)


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def two_classes(*, large):
    """Yield a name, columns and labels of 1 and -1."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons

    rng = np.random.default_rng(0)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    X, digit = load_digits(return_X_y=True)
    pair = np.isin(digit, (3, 8))
    yield "digits 3 and 8", X[pair], digit[pair] == 3
    for n, noise in ((500, 0.25), (2000, 0.25), *([(20_000, 0.2)] if large else [])):
        yield f"moons {n:,}", *make_moons(n, noise=noise, random_state=0)
    X = rng.normal(size=(4000, 20))
    yield "noisy sign, 20 columns", X, X[:, 0] + rng.normal(size=4000) > 0
    X = rng.normal(size=(1500, 8))
    r = np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=1500)
    yield "ring, 8 columns", X, r > np.median(r)
    for n, d in ((2000, 2), (2000, 6), *([(10_000, 6)] if large else [])):
        X = rng.normal(size=(n, d))
        yield f"a tenth told by little, {n:,} rows, {d} columns", X, rng.random(n) < 0.1 * (1 + 0.8 * np.tanh(X[:, 0]))
    if large:
        yield "20 columns", *make_classification(5000, 20, n_informative=10, random_state=0)
        X = 4 * rng.random((5000, 2))
        yield "chess board", X, np.floor(X).sum(axis=1) % 2
        y = rng.integers(0, 2, 5000)
        yield "2 Gaussians, 5 columns", rng.normal(size=(5000, 5)) + y[:, None], y


def svm(*, large):
    if not installed("sklearn"):
        return
    from scipy.spatial.distance import pdist
    from sklearn.svm import SVC

    # Threads are held back around all: to do it takes 3 ms.
    with threadpool_limits(1):
        for name, X, y in two_classes(large=large):
            X, y = standardised(X), np.where(y > 0, 1.0, -1.0)  # noqa: PLW2901 - the same, scaled
            median = float(np.median(pdist(X[:1000])))
            for width, C in product(2.0 ** np.arange(-3, 4), 10.0 ** np.arange(-2, 4)):
                bandwidth = float(width * median)
                peer = SVC(C=C, gamma=1 / (2 * bandwidth**2))
                ours = SVM(C=C, kernel=f"gaussian({bandwidth!r})", scale="none", threads=1)
                yield Case(
                    f"svm {name}, {width:g} medians, C = {C:g}",
                    partial(ours.fit, X, y),
                    {"SVC": partial(peer.fit, X, y)},
                    partial(certified, X),
                )


def certified(X, ours, theirs):
    from sklearn.metrics.pairwise import rbf_kernel

    peer, solved = theirs["SVC"], ours.fit_
    beta = peer.dual_coef_[0]
    dual = np.abs(beta).sum() - 0.5 * beta @ rbf_kernel(X[peer.support_], gamma=peer.gamma) @ beta
    better = f"gap {solved.gap:.1e}, better {solved.dual_objective / dual - 1:+.1e}, {solved.solutions[0].method}"
    return better if solved.converged else f"{better} NOT CONVERGED"


def classes(*, large):
    if not installed("sklearn"):
        return
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    cases = [("digits", standardised(X), y, gamma, C) for gamma in (1 / 64, 1 / 8) for C in (0.1, 1.0, 10.0, 1000.0)]
    for count, d, C in ((60, 20, 0.1), (60, 20, 1.0), (60, 20, 100.0), (60, 5, 1.0), (60, 2, 1.0), (300, 20, 1.0)):
        y = np.repeat(np.arange(count), 10)
        X = normal(count, d, 1)[y] * (3.0 if d == 2 else 1.0) + normal(len(y), d, 2)
        cases += [(f"{count} classes of 10 rows, {d} columns", X, y, 1 / (2 * d), C)] if count < 100 or large else []
    with threadpool_limits(1):
        for name, X, y, gamma, C in cases:
            machine = SVM(C=C, kernel=f"gaussian({(0.5 / gamma) ** 0.5!r})", scale="none", threads=1)
            peer, what = SVC(C=C, gamma=gamma), f"{name}, gamma = {gamma:.3g}, C = {C:g}"
            yield Case(f"fit {what}", partial(machine.fit, X, y), {"SVC": partial(peer.fit, X, y)}, gap)
            yield Case(f"predict {what}", partial(machine.predict, X), {"SVC": partial(peer.predict, X)}, alike)


def predict(*, large):
    """Many new rows on many support vectors, one thread each."""
    if not installed("sklearn"):
        return
    from sklearn.svm import SVC

    kinds = {"SVC": SVC}
    if installed("sklearnex"):
        from daal4py import daalinit
        from sklearnex import svm as vectorised

        daalinit(1)
        kinds["scikit-learn-intelex"] = vectorised.SVC
    with threadpool_limits(1):
        for n, d, C in ((2500, 20, 1.0), (4000, 20, 1.0), (4000, 20, 10.0), (4000, 5, 1.0))[: 4 if large else 2]:
            X, new = normal(n, d), normal(5000, d, 1)
            y = X[:, 0] + normal(n, 1, 2)[:, 0] > 0
            bandwidth = float(np.sqrt(2 * d))
            machine = SVM(C=C, kernel=f"gaussian({bandwidth!r})", scale="none", threads=1).fit(X, y)
            peers = {name: kind(C=C, gamma=1 / (2 * bandwidth**2)).fit(X, y) for name, kind in kinds.items()}
            yield Case(
                f"predict 5,000 rows, {len(machine.fit_.support):,} support vectors, {d} columns",
                partial(machine.predict, new),
                {name: partial(peer.predict, new) for name, peer in peers.items()},
                alike,
                runs=9,
            )


def gap(ours, _):
    return f"gap {ours.fit_.gap:.1e}" + ("" if ours.fit_.converged else " NOT CONVERGED")


def alike(ours, theirs):
    return f"{np.mean(ours == theirs['SVC']):.2%} alike"


# The grid that kerntest searches, too.
MULTIPLES = tuple(float(f"{10.0 ** (k / 5):.2g}") for k in range(-5, 5))
LAMBDAS = tuple(float(f"{10.0 ** (k / 2):.3g}") for k in range(-13, 7))


def wave(n, d, seed=0):
    """Columns and a target: a wave, a slope, noise of standard deviation 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1:].sum(axis=1) + 0.2 * rng.normal(size=n)


def ridge(*, large):
    for n, d in ((500, 1), (500, 5), (2000, 5)):
        X, y = wave(n, d)
        peers = {"GridSearchCV": partial(grid_search, standardised(X), y)} if installed("sklearn") else {}
        yield Case(
            f"ridge, 200 cells, {n:,} rows, {d} columns",
            partial(KernelRidge(threads=2).fit, X, y),
            peers,
            chosen,
            runs=1,
        )
    if large:
        ours = partial(KernelRidge(features="nystroem:2000", threads=2).fit, *wave(100_000, 5))
        yield Case("ridge, 100,000 rows, 2,000 centres", ours, {}, new_rows, runs=1)


def grid_search(X, y):
    from joblib.externals.loky import get_reusable_executor
    from scipy.spatial.distance import pdist
    from sklearn.kernel_ridge import KernelRidge as PeerRidge
    from sklearn.model_selection import GridSearchCV

    gammas = [1 / (2 * (np.median(pdist(X)) * multiple) ** 2) for multiple in MULTIPLES]
    cells = {"alpha": list(LAMBDAS), "gamma": gammas}
    search = GridSearchCV(PeerRidge(kernel="rbf"), cells, cv=5, scoring="neg_root_mean_squared_error", n_jobs=2)
    found = search.fit(X, y - y.mean())
    # Its processes end, so that their processor time counts.
    get_reusable_executor().shutdown(wait=True)
    return found


def chosen(ours, theirs):
    told = f"RMSE {ours.loo_rmse_:.4f}"
    return told + "".join(f", {name} {-one.best_score_:.4f}" for name, one in theirs.items())


def new_rows(ours, _):
    X, truth = wave(10_000, 5, seed=1)
    error = np.sqrt(np.mean((ours.predict(X) - truth) ** 2))
    low, high = ours.predict_interval(X, 0.9)
    covered = np.mean((truth >= low) & (truth <= high))
    return f"RMSE of new rows {error:.4f} (noise 0.2), 90 % intervals hold {covered:.3f}"


def surface(n, p):
    """Rows near a curved surface of two dimensions in p columns, with noise."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, n))
    waves = [np.cos(3 * u * k) if k % 2 else np.sin(2 * v * k) for k in range(1, p + 1)]
    return standardised(np.column_stack(waves) + 0.1 * rng.normal(size=(n, p)))


def kpca(*, large):
    for n, k in product((1000, 5000), (2, 10)):
        X = surface(n, 10)
        peers = {}
        if installed("sklearn"):
            from sklearn.decomposition import KernelPCA as Peer

            for solver in ("arpack", "randomized", "dense")[: 3 if n == 1000 else 2]:
                peer = Peer(k, kernel="rbf", gamma=1 / 32, eigen_solver=solver, random_state=0)
                peers[solver] = partial(peer.fit, X)
        ours = KernelPCA(k, kernel="gaussian(4)", scale="none")
        yield Case(f"kpca, {n:,} rows, {k} components", partial(ours.fit, X), peers, eigenvalues)
    if large:
        ours = KernelPCA(10, features="nystroem:500", scale="none")
        yield Case("kpca, 200,000 rows, 500 Nystroem features", partial(ours.fit, surface(200_000, 10)), runs=1)


def eigenvalues(ours, theirs):
    if "arpack" not in theirs:
        return ""
    difference = np.abs(ours.eigenvalues_ - theirs["arpack"].eigenvalues_).max() / ours.eigenvalues_[0]
    return f"eigenvalues differ by {difference:.1e} of the largest"


def start(**_):
    small = ["mmd", str(SAMPLE_DATA / "before.csv"), str(SAMPLE_DATA / "after.csv")]
    for what, arguments, imports in (
        ("kerntest --help", ["--help"], "import click"),
        ("kerntest mmd, 400 + 450 rows", small, "import numpy, pyarrow.csv"),
    ):
        ours, peer = partial(python, "-m", "kerntest", *arguments), partial(python, "-c", imports)
        yield Case(what, ours, {imports: peer}, runs=15)


def python(*arguments):
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)


def gpu(*, large):
    for n in (10_000, 100_000, 1_000_000) if large else (10_000,):
        X, y = normal(n, 5), normal(n, 5, 1)
        for name, test in (
            ("mmd", partial(mmd_test, *halves(X), kernel="gaussian", permutations=n)),
            ("hsic", partial(hsic_test, X, y, kernel_x="gaussian", kernel_y="gaussian", permutations=n)),
        ):
            here, there = partial(on, "local", test), partial(on, "gpu", test)
            yield Case(f"{name} on a GPU, {n:,} rows", there, {"threads": here}, same, runs=1)


def on(engine, test):
    with compute_on(engine):
        return test()


def same(ours, theirs):
    here = theirs["threads"]
    return (
        f"p {ours.p_value:.6f} and {here.p_value:.6f}, statistics differ by {abs(ours.statistic - here.statistic):.1e}"
    )


def grid(*, large):
    """Costs and bandwidths by 5 folds, the cells of both sides the same."""
    if not installed("sklearn"):
        return
    from scipy.spatial.distance import pdist
    from sklearn.datasets import make_classification, make_moons

    made_of = {"n_features": 20, "n_informative": 8, "n_redundant": 4, "flip_y": 0.05, "class_sep": 0.7}
    cases = [
        (name, made, count)
        for n, count in ((1000, 10), (5000, 5))[: 1 + large]
        for name, made in (
            (f"moons, {n:,} rows", make_moons(2 * n, noise=0.3, random_state=0)),
            (f"20 columns, {n:,} rows", make_classification(2 * n, **made_of, random_state=0)),
        )
    ]
    if large:
        cases.append(("overlapping counts, 4,601 rows, 57 columns", counts(2 * 4601, 57), 5))
    for name, (columns, y), count in cases:
        n, X = len(columns) // 2, standardised(columns)
        median = np.median(pdist(X[:1000]))
        costs = tuple(np.logspace(-2 if count == 10 else -1, 3, count).tolist())
        multiples = tuple((2.0 ** np.linspace(*((-3, 3) if count == 10 else (-2, 2)), count)).tolist())
        peers = {"GridSearchCV": partial(svc_grid, X[:n], y[:n], costs, median * np.array(multiples))}
        ours = partial(svm_grid, X[:n], y[:n], costs, multiples)
        told = partial(chosen_cell, X[n:], y[n:])
        with threadpool_limits(1):
            yield Case(f"grid of {count * count} cells, {name}", ours, peers, told, runs=1)


def counts(n, d, seed=0):
    """Rates of words in percent, most of them zero, in two classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.394
    base, shift = rng.gamma(0.5, 0.4, d), np.exp(rng.normal(0, 0.6, d) * (rng.random(d) < 0.5))
    rate = np.where(y[:, None], base * shift, base / shift) * rng.gamma(0.5, 2.0, (n, d))
    return np.where(rng.random((n, d)) < 0.35, rate * rng.gamma(1.0, 1.0, (n, d)), 0.0), y.astype(int)


def svm_grid(X, y, costs, multiples):
    import kerntest.learning.machines.svm as machines

    usual = machines.COSTS, machines.MULTIPLES
    machines.COSTS, machines.MULTIPLES = costs, multiples
    try:
        names = [f"x{place}" for place in range(X.shape[1])]
        with TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            table = pd.DataFrame(X, columns=names).assign(y=y)
            found = train_svm(table, "y", grid=True, scale="none", threads=1, output=model)
            return found, SVM.load(model)
    finally:
        machines.COSTS, machines.MULTIPLES = usual


def svc_grid(X, y, costs, widths):
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    return GridSearchCV(SVC(), {"C": list(costs), "gamma": (1 / (2 * widths**2)).tolist()}, cv=5).fit(X, y)


def chosen_cell(X, y, ours, theirs):
    """Errors of new rows, ours and theirs."""
    found, machine = ours
    own = np.mean(machine.predict(pd.DataFrame(X, columns=machine.model.encoder.names)) != y)
    told = f"error of new rows {own:.4f}, {found.grid.fits} fits"
    return told + "".join(f", {name} {np.mean(one.predict(X) != y):.4f}" for name, one in theirs.items())


TABLES = {table.__name__: table for table in (mmd, hsic, screens, svm, classes, predict, ridge, kpca, start, gpu, grid)}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="of those above")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only", default="", help="lines with this text alone")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="processor time: steadier on a shared machine")
    arguments = parser.parse_args()
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
    for name in arguments.tables or [name for name in TABLES if name != "gpu"]:
        cases = (case for case in TABLES[name](large=arguments.large) if arguments.only in case.what)
        seconds = processor_seconds if name == "start" else clock(processor=arguments.processor)
        compare(cases, arguments.runs, seconds)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
