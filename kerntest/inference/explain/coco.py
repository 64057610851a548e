"""The constrained covariance (COCO): the largest covariance of a function of x and a function of y of unit norm.

With K~ = HKH and L~ = HLH it is sqrt(lambda_max(K~ L~)) / n, the largest singular value of G_x' G_y / n for factors
K~ = G_x G_x' and L~ = G_y G_y' (Gretton et al. 2005, "Kernel methods for measuring independence"; as a
generalised eigenvalue problem, eq. 4.6 of Gretton's lecture notes on covariance operators).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from kerntest.engines.engine import Engine, enough_for
from kerntest.errors import UndecidedError, UsageError, option
from kerntest.inference.nulls.permutation import judge
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import dependence
from kerntest.inference.verdict import Verdict, degenerate, overflow, permutation_null, relabelling_warning
from kerntest.matrices.expansion import sum_of_kernels
from kerntest.matrices.factor import Factor, centred, kernel_factor
from kerntest.matrices.matrix import lanczos

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.inference.family import Family
    from kerntest.inference.relabelling.permuted_pairs import TwoVariables
    from kerntest.kernels.base import Array, Kernel, Points

# Up to so many rows kernel matrices may have full rank; of more rows, at most so many columns.
FULL_RANK_ROWS, MOST_COLUMNS = 2000, 1000
# The largest singular value of G_x' G_y is computed from the whole matrix where the harmonic mean of its sides is below
# this (measured: so it is cheaper), else by the Lanczos method.
SMALL_RANK = 80
# The share of the trace of HKH at which a factor ends. Where the trace of HKH is a small share of that of K, the
# first factor is too coarse; below the finest tolerance are the rounding errors of K.
TOLERANCE, MOSTLY_CONSTANT, FINEST_TOLERANCE = 1e-12, 0.1, 2e-15
# Beyond, the product of two traces overflows.
LARGEST_TRACE = 1e150
# Residuals of the Lanczos method, relative to lambda: of an observed value with its functions, of relabelled values.
OBSERVED_ACCURACY, RELABELLED_ACCURACY = 1e-13, 1e-11
# Relabelled values that should be equal differ by less than this share of them.
RELATIVE_ERROR = 1e-10
START_STREAM = 3
# Numbers in the arrays of one batch of permutations; permutations in a batch.
BATCH_NUMBERS = 2**18
FEWEST_TOGETHER, MOST_TOGETHER = 8, 64
# Values below so many units of rounding are 0.
ROUNDING_UNITS = 64.0


class Coco(NamedTuple):
    """The constrained covariance of n rows and the functions that attain it, at the rows; their correlation there.

    f and g have mean zero and unit norm in their spaces, and a positive correlation; the row with the largest |f| has a
    positive f. f = sum_i alpha_i (k(x_i, .) - mean_j k(x_j, .)), less its mean over the rows, and g with beta alike. All
    are zeros where the value is 0.
    """

    value: float
    f: Array
    g: Array
    alpha: Array
    beta: Array
    correlation: float


class CrossCovariance:
    """The cross-covariance of paired rows, through centred factors of both kernel matrices: HKH = X X', HLH = Y Y'.

    Cost: O(n r^2) time and O(n r) memory for kernel matrices of rank r <= n.
    """

    def __init__(self, kernels: tuple[Kernel, ...], points: tuple[Points, ...], engine: Engine | None = None) -> None:
        sides = list(zip(kernels, points, strict=True))
        (self.x, trace_x), (self.y, trace_y) = (engine or Engine(1)).here.map(
            lambda side: _centred_columns(*side), sides
        )
        self.n, ranks = len(self.x), (self.x.shape[1], self.y.shape[1])
        # Whether singular values are cheaper than Lanczos steps.
        self.small = 2 * math.prod(ranks) <= SMALL_RANK * sum(ranks)
        # How large rounding can make a singular value that is 0: the Lanczos method finds its square.
        units = ROUNDING_UNITS * float(np.finfo(np.float64).eps)
        self.rounding = math.sqrt(trace_x) * math.sqrt(trace_y) * (units if self.small else math.sqrt(units))
        self.start = np.random.default_rng(START_STREAM).normal(size=(1, 1, ranks[0]))

    def functions(self) -> Coco:
        """Return the constrained covariance and the functions that attain it."""
        x, y = self.x, self.y

        def operator(vectors: Array, _: NDArray[np.intp]) -> Array:
            return np.asarray((x.T @ (y @ (y.T @ (x @ vectors[0, 0]))))[None, None])

        with threadpool_limits(limits=1, user_api="blas"):
            if self.small:
                vectors, values, _ = np.linalg.svd(x.T @ y, full_matrices=False)
                singular, f = float(values[0]), x @ vectors[:, 0]
            else:
                found = lanczos(operator, self.start, accuracy=OBSERVED_ACCURACY)
                singular, f = math.sqrt(max(float(found.values[0, 0]), 0.0)), x @ found.vectors[0, 0]
            if singular <= self.rounding:
                f, g, alpha, beta = np.zeros((4, self.n))
                return Coco(0.0, f, g, alpha, beta, 0.0)
            # At the solution L~ beta = n coco alpha and K~ alpha = n coco beta (eqs. 4.4 and 4.5).
            beta = f / singular
            g = y @ (y.T @ beta)
            alpha = g / singular
            f = x @ (x.T @ alpha)
        largest = np.abs(f) >= (1.0 - RELATIVE_ERROR) * np.abs(f).max()
        sign = math.copysign(1.0, f[largest.argmax()])
        correlation = float(f @ g) / math.sqrt(float(f @ f) * float(g @ g))
        return Coco(singular / self.n, sign * f, sign * g, sign * alpha, sign * beta, min(correlation, 1.0))

    def relabelled(
        self, permutations: Sequence[NDArray[np.intp]], engine: Engine, progress: Progress | None = None
    ) -> Array:
        """Return the constrained covariance with row i of x paired with row p[i] of y, for every permutation p.

        To `RELATIVE_ERROR`; the same for any number of threads. Cost: O(R n r_x r_y) time for ranks up to about 80,
        O(R n (r_x + r_y) t) above, for t Lanczos steps, about 30; O(n (r_x + r_y)) memory.
        """
        if self.small:
            least, size, work = 1, self.y.size, self._decomposed
        else:
            least, size, work = FEWEST_TOGETHER, self.n, self._iterated
        together = max(least, min(BATCH_NUMBERS // size, MOST_TOGETHER))
        batches = [permutations[start : start + together] for start in range(0, len(permutations), together)]
        engine = enough_for(engine, len(permutations) * self.n)
        squares = np.concatenate([np.empty(0), *engine.map(work, batches, progress)])
        # What rounding made negative is 0.
        singular = np.sqrt(np.maximum(squares, 0.0))
        singular[singular <= self.rounding] = 0.0
        return np.asarray(singular / self.n)

    def _decomposed(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the squared largest singular values of X' Y, each from its own matrix."""
        moved = self.y[np.column_stack(permutations)].reshape(self.n, -1)
        products = (self.x.T @ moved).reshape(self.x.shape[1], len(permutations), -1).transpose(1, 0, 2)
        if products.shape[1] > products.shape[2]:
            products = products.transpose(0, 2, 1)
        return np.asarray(np.linalg.eigvalsh(products @ products.transpose(0, 2, 1))[:, -1])

    def _iterated(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the same by the Lanczos method, for all permutations of a batch."""
        x, y, forward = self.x, self.y, np.stack(permutations)
        backward = np.argsort(forward, axis=1)

        def operator(vectors: Array, numbers: NDArray[np.intp]) -> Array:
            moved = np.take_along_axis(vectors[:, 0] @ x.T, backward[numbers], axis=1)
            found: Array = np.take_along_axis((moved @ y) @ y.T, forward[numbers], axis=1) @ x
            return found[:, None]

        return lanczos(operator, np.repeat(self.start, len(forward), axis=0), accuracy=RELABELLED_ACCURACY).values[:, 0]


def coco_verdict(test: TwoVariables, family: Family) -> Verdict:
    """Judge one pair of kernels by its constrained covariance.

    Each relabelling needs an eigenvalue of its own, so that the relabellings are ordinary random permutations.
    """
    options, kernels, (x, y) = test.options, family.members[0], test.points
    if options.null != "permutation":
        raise UsageError(
            f"the null {options.null!r} is one of HSIC; the constrained covariance has the permutation null",
            hint=f"leave out {option('null')}, or {option('statistic', 'coco')}",
            code="usage.null",
        )
    pair = CrossCovariance(kernels, (x, y), test.engine)
    observed = pair.functions()
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    permutations = [rng.permutation(len(x)) for _ in range(options.permutations - 1)]
    values = np.concatenate([[observed.value], pair.relabelled(permutations, test.engine, test.progress)])
    judged = judge(values[None], np.array([RELATIVE_ERROR * float(values.max())]))
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate(*kernels)
    return Verdict(
        p_value=judged.p_value,
        kernels=kernels,
        found=dependence(kernels[0], x, kernels[1], y, test.engine),
        null=permutation_null(judged, len(values), options.permutations, resampling="random permutations"),
        relabelled=values,
        warnings=relabelling_warning(judged.p_value, len(values), options.alpha),
        coco=observed.value,
        witness_correlation=observed.correlation if observed.value > 0 else None,
    )


def coco_function(kernel: Kernel, points: Points, coefficients: Array, at: Points) -> Array:
    """Return a witness function at m points, from its `alpha` or `beta` at n rows, with mean zero over these.

    Cost: O(n (m + n) p) time, 2 MB.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        at_rows, values = (sum_of_kernels(kernel, points, coefficients, rows) for rows in (points, at))
    return np.asarray(values - at_rows.mean())


def _centred_columns(kernel: Kernel, points: Points) -> tuple[Array, float]:
    """Return G of HKH = G G', and tr K."""
    n, few = len(points), len(points) <= FULL_RANK_ROWS
    if not kernel.positive_definite:
        raise UsageError(
            f"the constrained covariance needs positive definite kernels, which '{kernel}' may not be",
            hint=f"{option('statistic', 'hsic')}, or another kernel",
            code="usage.indefinite_kernel",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(kernel.diagonal(points).sum())
    if not trace < LARGEST_TRACE:
        raise overflow(kernel)
    # A rank that a few of the rows exceed, all of them exceed: looking there first spares a long wait.
    some = points.take(slice(None, None, max(1, n // FULL_RANK_ROWS)))
    if few or kernel_factor(kernel, some, most=MOST_COLUMNS).complete:
        factor = _factor(kernel, points, most=n if few else MOST_COLUMNS)
        if factor.complete:
            return (centred(factor.columns) if factor.columns.size else np.zeros((n, 1))), trace
    if few:
        raise UndecidedError(
            f"rounding leaves the matrix of the kernel '{kernel}' on these rows with negative eigenvalues",
            hint=f"{option('scale', 'standardize')}, or another kernel",
            code="undecided.indefinite_matrix",
        )
    raise UndecidedError(
        f"the constrained covariance of more than {FULL_RANK_ROWS:,} rows needs kernels of low rank (few columns, or "
        f"large bandwidths); the rank of '{kernel}' on these {n:,} rows is above {MOST_COLUMNS:,}",
        hint=option("statistic", "hsic"),
        code="undecided.coco_rank",
    )


def _factor(kernel: Kernel, points: Points, *, most: int) -> Factor:
    """Return a factor of K that is as fine as HKH needs, of which K may be a large constant apart."""
    factor = kernel_factor(kernel, points, tolerance=TOLERANCE, most=most)
    trace = float(np.square(factor.columns).sum())
    share = float(np.square(centred(factor.columns)).sum()) / trace if trace > 0 else 1.0
    if not factor.complete or share > MOSTLY_CONSTANT:
        return factor
    finer = kernel_factor(kernel, points, tolerance=max(TOLERANCE * share, FINEST_TOLERANCE), most=most)
    return finer if finer.complete else factor
