"""The constrained covariance (COCO): the largest covariance of a function of x and a function of y of unit norm.

With K~ = HKH and L~ = HLH it is sqrt(lambda_max(K~ L~)) / n, the largest singular value of G_x' G_y / n for factors
K~ = G_x G_x' and L~ = G_y G_y' (Gretton et al. 2005, "Kernel methods for measuring independence"; as a
generalised eigenvalue problem, eq. 4.6 of Gretton's lecture notes on covariance operators).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from kerntest.engines.engine import enough_for
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.nulls.permutation import judge
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import dependence
from kerntest.inference.verdict import Verdict, degenerate_pair, overflow, permutation_null, relabelling_warning
from kerntest.kernels.base import DensePairs
from kerntest.matrices.eigen import lanczos
from kerntest.matrices.factor import Factor, centred, kernel_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.family import Family
    from kerntest.inference.relabelling.pairings import TwoVariables
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
# Entries of one block of kernel values.
BLOCK = 2**20
# Values below so many units of rounding are 0.
ROUNDING_UNITS = 64.0


@dataclass(frozen=True, slots=True, eq=False)
class Coco:
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


def coco(kernel_x: Kernel, points_x: Points, kernel_y: Kernel, points_y: Points) -> Coco:
    """Return the constrained covariance of paired rows.

    Cost: O(n r^2) time and O(n r) memory for kernel matrices of rank r <= n.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        x, y = _side(kernel_x, points_x), _side(kernel_y, points_y)
        singular, f = _leading_function(x, y)
        if singular <= _rounding(x, y):
            f, g, alpha, beta = np.zeros((4, len(f)))
            return Coco(0.0, f, g, alpha, beta, 0.0)
        # At the solution L~ beta = n coco alpha and K~ alpha = n coco beta (eqs. 4.4 and 4.5).
        beta = f / singular
        g = y.times(beta)
        alpha = g / singular
        f = x.times(alpha)
    largest = np.abs(f) >= (1.0 - RELATIVE_ERROR) * np.abs(f).max()
    sign = math.copysign(1.0, f[largest.argmax()])
    correlation = float(f @ g) / math.sqrt(float(f @ f) * float(g @ g))
    return Coco(singular / len(f), sign * f, sign * g, sign * alpha, sign * beta, min(correlation, 1.0))


def relabelled_coco(  # noqa: PLR0917 - two pairs that belong together, then what is done with them
    kernel_x: Kernel,
    points_x: Points,
    kernel_y: Kernel,
    points_y: Points,
    permutations: Sequence[NDArray[np.intp]],
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return the constrained covariance with row i of x paired with row p[i] of y, for every permutation p.

    To `RELATIVE_ERROR`; the same for any number of threads.

    Cost: that of `coco`, and O(R n r_x r_y) time for ranks up to about 80, O(R n (r_x + r_y) t) above, for t Lanczos
    steps, about 30; O(n (r_x + r_y)) memory, and n^2 where r_y > n / 2.
    """
    x, y = engine.here.map(lambda side: _side(*side), [(kernel_x, points_x), (kernel_y, points_y)])
    with threadpool_limits(limits=1, user_api="blas"):
        work = _Decompositions(x, y) if _small(x, y) else _Iterations.of(x, y)
    together = work.together()
    batches = [permutations[start : start + together] for start in range(0, len(permutations), together)]
    engine = enough_for(engine, len(permutations) * len(points_x))
    singular = np.concatenate([np.empty(0), *engine.map(work, batches, progress)])
    singular[singular <= _rounding(x, y)] = 0.0
    return singular / len(points_x)


def coco_verdict(test: TwoVariables, family: Family) -> Verdict:
    """Judge one pair of kernels by its constrained covariance.

    Each relabelling needs an eigenvalue of its own, so that the relabellings are ordinary random permutations.

    """
    options, kernels = test.options, family.members[0]
    if options.null != "permutation":
        raise UsageError(
            f"the null {options.null!r} is one of HSIC; the constrained covariance has the permutation null",
            hint="leave out --null, or --statistic coco",
            code="usage.null",
        )
    x, y = test.points
    observed = coco(kernels[0], x, kernels[1], y)
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    permutations = [rng.permutation(len(x)) for _ in range(options.permutations - 1)]
    others = relabelled_coco(kernels[0], x, kernels[1], y, permutations, test.engine, test.progress)
    values = np.concatenate([[observed.value], others])
    judged = judge(values[None], np.array([RELATIVE_ERROR * float(values.max())]))
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate_pair(*kernels)
    null = permutation_null(judged, len(values), options.permutations, resampling="random permutations")
    return Verdict(
        p_value=judged.p_value,
        kernels=kernels,
        found=dependence(kernels[0], x, kernels[1], y, test.engine),
        null=null,
        relabelled=values,
        warnings=relabelling_warning(judged.p_value, len(values), options.alpha),
        coco=observed.value,
        witness_correlation=observed.correlation if observed.value > 0 else None,
    )


def coco_function(kernel: Kernel, points: Points, coefficients: Array, at: Points) -> Array:
    """Return a witness function at any points, from its `alpha` or `beta`, with mean zero over the rows.

    Cost: O(n (m + min(n, 2000)) p) time, 8 MB.
    """
    weights = coefficients - coefficients.mean()
    with threadpool_limits(limits=1, user_api="blas"):
        if len(points) <= FULL_RANK_ROWS:
            level = _expansion(kernel, points, weights, points).mean()
        else:
            columns = _factor(kernel, points, most=MOST_COLUMNS).columns
            level = columns.mean(axis=0) @ (columns.T @ weights)
        values = _expansion(kernel, points, weights, at)
    values -= level
    return values


def _expansion(kernel: Kernel, points: Points, weights: Array, at: Points) -> Array:
    """Return sum_i w_i k(x_i, z) at the points z."""
    values = np.empty(len(at))
    step = max(1, BLOCK // len(points))
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        values[block] = kernel.evaluate(DensePairs(at.take(block), points)) @ weights
    return values


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One of the two variables: HKH = G G' with the columns G, and tr K."""

    columns: Array
    trace: float

    @property
    def rank(self) -> int:
        """The number of columns r."""
        return int(self.columns.shape[1])

    def times(self, vector: Array) -> Array:
        """Return HKH v, shape (n,)."""
        product: Array = self.columns @ (self.columns.T @ vector)
        return product


def _side(kernel: Kernel, points: Points) -> _Side:
    """Return the factor of one kernel matrix, centred."""
    n = len(points)
    if not kernel.positive_definite:
        raise UsageError(
            f"the constrained covariance needs positive definite kernels, which '{kernel}' may not be",
            hint="--statistic hsic, or another kernel",
            code="usage.indefinite_kernel",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(kernel.diagonal(points).sum())
    if not trace < LARGEST_TRACE:
        raise overflow(kernel)
    if n > FULL_RANK_ROWS:
        # A rank that a few of the rows exceed, all of them exceed: looking there first spares a long wait.
        some = points.take(slice(None, None, n // FULL_RANK_ROWS))
        factor = kernel_factor(kernel, some, most=MOST_COLUMNS)
        if factor.complete:
            factor = _factor(kernel, points, most=MOST_COLUMNS)
    else:
        factor = _factor(kernel, points, most=n)
    if not factor.complete:
        raise _no_factor(kernel, n)
    columns = centred(factor.columns) if factor.columns.size else np.zeros((n, 1))
    return _Side(columns, trace)


def _no_factor(kernel: Kernel, n: int) -> UndecidedError:
    if n <= FULL_RANK_ROWS:
        return UndecidedError(
            f"rounding leaves the matrix of the kernel '{kernel}' on these rows with negative eigenvalues",
            hint="--scale standardize, or another kernel",
            code="undecided.indefinite_matrix",
        )
    return UndecidedError(
        f"the constrained covariance of more than {FULL_RANK_ROWS:,} rows needs kernels of low rank (few columns, or "
        f"large bandwidths); the rank of '{kernel}' on these {n:,} rows is above {MOST_COLUMNS:,}",
        hint="--statistic hsic",
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


def _small(x: _Side, y: _Side) -> bool:
    """Return whether singular values are cheaper than Lanczos steps."""
    return 2 * x.rank * y.rank <= SMALL_RANK * (x.rank + y.rank)


def _rounding(x: _Side, y: _Side) -> float:
    """Return how large rounding can make a singular value that is 0."""
    norms = math.sqrt(x.trace) * math.sqrt(y.trace)
    units = ROUNDING_UNITS * float(np.finfo(np.float64).eps)
    # The Lanczos method finds its square.
    return norms * (units if _small(x, y) else math.sqrt(units))


def _leading_function(x: _Side, y: _Side) -> tuple[float, Array]:
    """Return the largest singular value of G_x' G_y, and the function of x that belongs to it, at the rows."""
    if _small(x, y):
        vectors, values, _ = np.linalg.svd(x.columns.T @ y.columns, full_matrices=False)
        return float(values[0]), x.columns @ vectors[:, 0]
    found = lanczos(
        lambda vectors, _: (x.columns.T @ y.times(x.columns @ vectors[0, 0]))[None, None],
        _start(x),
        accuracy=OBSERVED_ACCURACY,
    )
    return math.sqrt(max(float(found.values[0, 0]), 0.0)), x.columns @ found.vectors[0, 0]


def _start(x: _Side) -> Array:
    """Return a generic vector, shape (1, 1, r)."""
    return np.random.default_rng(START_STREAM).normal(size=(1, 1, x.rank))


@dataclass(frozen=True, slots=True, eq=False)
class _Decompositions:
    """The largest singular values of G_x' G_y under permutations, each from its own matrix."""

    x: _Side
    y: _Side

    def together(self) -> int:
        """Return how many permutations make a batch."""
        return max(1, min(BATCH_NUMBERS // self.y.columns.size, MOST_TOGETHER))

    def __call__(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the singular values, shape (b,)."""
        moved = self.y.columns[np.column_stack(permutations)].reshape(len(self.y.columns), -1)
        products = (self.x.columns.T @ moved).reshape(self.x.rank, len(permutations), self.y.rank).transpose(1, 0, 2)
        if self.x.rank > self.y.rank:
            products = products.transpose(0, 2, 1)
        squares: Array = np.asarray(np.linalg.eigvalsh(products @ products.transpose(0, 2, 1)), dtype=np.float64)
        return _roots(squares[:, -1])


@dataclass(frozen=True, slots=True, eq=False)
class _Iterations:
    """The same by the Lanczos method, for all permutations of a batch."""

    x: _Side
    y: _Side
    whole: Array | None

    @classmethod
    def of(cls, x: _Side, y: _Side) -> _Iterations:
        """Form HLH where one product with it is cheaper than two with its factor."""
        whole = y.columns @ y.columns.T if 2 * y.rank > len(y.columns) else None
        return cls(x, y, whole)

    def together(self) -> int:
        """Return how many permutations make a batch."""
        return max(FEWEST_TOGETHER, min(BATCH_NUMBERS // len(self.y.columns), MOST_TOGETHER))

    def __call__(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the singular values, shape (b,)."""
        x, y = self.x.columns, self.y.columns
        forward = np.stack(permutations)
        backward = np.argsort(forward, axis=1)

        def operator(vectors: Array, numbers: NDArray[np.intp]) -> Array:
            moved = np.take_along_axis(vectors[:, 0] @ x.T, backward[numbers], axis=1)
            moved = (moved @ y) @ y.T if self.whole is None else moved @ self.whole
            found: Array = np.take_along_axis(moved, forward[numbers], axis=1) @ x
            return found[:, None]

        start = np.repeat(_start(self.x), len(forward), axis=0)
        return _roots(lanczos(operator, start, accuracy=RELABELLED_ACCURACY).values[:, 0])


def _roots(squares: Array) -> Array:
    """Return square roots; what rounding made negative is 0."""
    roots: Array = np.sqrt(np.maximum(squares, 0.0))
    return roots
