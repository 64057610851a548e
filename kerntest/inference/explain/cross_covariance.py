"""Measures of dependence from the singular values of the cross-covariance of x and y: COCO, KCC and KMI.

With factors K~ = HKH = X X' and L~ = HLH = Y Y' each is a function of the singular values s of A' B, where A is X and B is Y,
normalised. What normalises a side depends on that side alone, so that no relabelling changes it: values of all are alike.

coco, the constrained covariance: s_1 / n with A = X, the largest covariance of a function of x and one of y of unit norm
(Gretton et al. 2005, "Kernel methods for measuring independence"; as a generalised eigenvalue problem, eq. 4.6 of Gretton's
lecture notes on covariance operators).
kcc, the kernel canonical correlation: s_1 with A = X (X'X + p I)^(-1/2), p = n e, the largest singular value of
(S_xx + e I)^(-1/2) S_xy (S_yy + e I)^(-1/2) with covariance operators S (Fukumizu, Bach and Gretton 2007, "Statistical
consistency of kernel canonical correlation analysis"; e -> 0 more slowly than n^(-1/3) makes it consistent).
kmi, the kernel mutual information: -1/2 sum_i log(1 - s_i^2) with A = X / sqrt(v), that is -1/2 log det(I - K~ L~ / (v_x v_y))
(Gretton et al. 2005). There v is the smallest row sum of K, which gives a positive determinant near independence only; here
it is lambda_max(K~) + p, which always does.

p is the `penalty` of a side: the share 0.03 n^(-1/4) of the trace of its centred matrix, so that it has its units.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from kerntest.engines.engine import Engine, enough_for, one_blas_thread
from kerntest.errors import UndecidedError, UsageError, option
from kerntest.inference.nulls.permutation import judge
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import dependence
from kerntest.inference.verdict import Verdict, degenerate, permutation_null, relabelling_warning
from kerntest.kernels.algebra import overflow
from kerntest.matrices.expansion import sum_of_kernels
from kerntest.matrices.factor import MOST_DIRECTIONS, Factor, centred, kernel_factor
from kerntest.matrices.matrix import lanczos
from kerntest.report.summaries.test_summary import SPECTRAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.inference.family import Family
    from kerntest.inference.relabelling.permuted_pairs import TwoVariables
    from kerntest.kernels.base import Array, Kernel, Points

Spectral: TypeAlias = Literal["coco", "kcc", "kmi"]

# Up to so many rows kernel matrices may have full rank; of more rows, at most so many columns.
FULL_RANK_ROWS, MOST_COLUMNS = 2000, 1000
# The penalty of a side as a share of the trace of HKH, times n^(-1/4).
PENALTY = 0.03
# A larger share of the trace that is left out is told.
TOLD_LOSS = 0.05
# The largest singular value of X' Y is computed from the whole matrix where the harmonic mean of its sides is below
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


class Measure(NamedTuple):
    """Whether a measure is a covariance, a mean over the rows, and what it makes of all of A'B B'A if not of the largest value."""

    of_covariance: bool = False
    of_all: Callable[[Array], Array] | None = None


def _mutual_information(squares: Array) -> Array:
    """Return -1/2 log det(I - M) of matrices M."""
    return np.asarray(-0.5 * np.linalg.slogdet(np.eye(squares.shape[-1]) - squares)[1])


MEASURES: dict[Spectral, Measure] = {
    "coco": Measure(of_covariance=True),
    "kcc": Measure(),
    "kmi": Measure(of_all=_mutual_information),
}


class Association(NamedTuple):
    """A measure of n rows and the functions that attain its largest singular value, at the rows; their correlation there.

    f and g have mean zero and a positive correlation, and unit norm in their spaces; of kcc p |f|^2 + sum_i f(x_i)^2 is 1. The
    row with the largest |f| has a positive f. f = sum_i alpha_i (k(x_i, .) - mean_j k(x_j, .)), less its mean over the rows,
    and g with beta alike. All are zeros where the value is 0.
    """

    value: float
    f: Array
    g: Array
    alpha: Array
    beta: Array
    correlation: float


class NormalisedSide(NamedTuple):
    """One side: the columns of A with A A' = K~ (K~ + p I)^-1 of kcc, else `scale` K~, and the trace of what K is divided by.

    `lost` is the share of the variance that is left out.
    """

    columns: Array
    trace: float
    scale: float = 1.0
    penalty: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, kernel: Kernel, points: Points, statistic: Spectral) -> NormalisedSide:
        """Return a side for a measure: of one that normalises, the directions of most variance."""
        columns, trace = _centred_columns(kernel, points, SPECTRAL[statistic][0])
        if statistic == "coco":
            return cls(columns, trace)
        values, vectors = np.linalg.eigh(columns.T @ columns)
        whole = float(values.sum())
        penalty = PENALTY * len(columns) ** -0.25 * whole
        best = np.flatnonzero(values > TOLERANCE * whole)[: -MOST_DIRECTIONS - 1 : -1]
        if not len(best):
            return cls(np.zeros((len(columns), 1)), trace)
        kept = values[best]
        lengths = kept + penalty if statistic == "kcc" else np.full(len(kept), kept[0] + penalty)
        normalised = columns @ (vectors[:, best] / np.sqrt(lengths))
        scale = 0.0 if statistic == "kcc" else 1.0 / float(lengths[0])
        return cls(normalised, trace / float(lengths[-1]), scale, penalty, max(0.0, 1.0 - float(kept.sum()) / whole))

    def coefficients(self, own: Array, other: Array, singular: float) -> Array:
        """Return a with K~ a = f, from f = A A' g / s and g at the rows."""
        if self.penalty:
            # What lies outside the directions that take part has no part in f; the columns are orthogonal.
            other = self.columns @ ((self.columns.T @ other) / np.einsum("ij,ij->j", self.columns, self.columns))
        return np.asarray(other * (self.scale / singular) if self.scale else (other / singular - own) / self.penalty)


class CrossCovariance:
    """The cross-covariance of paired rows, through normalised factors A and B of both centred kernel matrices.

    Cost: O(n r^2) time and O(n r) memory for kernel matrices of rank r <= n.
    """

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        points: tuple[Points, ...],
        statistic: Spectral = "coco",
        engine: Engine | None = None,
    ) -> None:
        self.measure, sides = MEASURES[statistic], zip(kernels, points, strict=True)
        self.sides = tuple(
            (engine or Engine(1)).here.map(lambda side: NormalisedSide.of(*side, statistic), list(sides))
        )
        first, second = self.sides
        self.x, self.y = first.columns, second.columns
        self.n, ranks = len(self.x), (self.x.shape[1], self.y.shape[1])
        # Whether singular values are cheaper than Lanczos steps.
        self.small = self.measure.of_all is not None or 2 * math.prod(ranks) <= SMALL_RANK * sum(ranks)
        # How large rounding can make a singular value that is 0: the Lanczos method finds its square.
        units = ROUNDING_UNITS * float(np.finfo(np.float64).eps)
        self.rounding = math.sqrt(first.trace) * math.sqrt(second.trace) * (units if self.small else math.sqrt(units))
        if self.measure.of_all:
            self.rounding = units * min(ranks)
        self.start = np.random.default_rng(START_STREAM).normal(size=(1, 1, ranks[0]))

    def functions(self) -> Association:
        """Return the measure and the functions that attain the largest singular value."""
        x, y = self.x, self.y

        def operator(vectors: Array, _: NDArray[np.intp]) -> Array:
            return np.asarray((x.T @ (y @ (y.T @ (x @ vectors[0, 0]))))[None, None])

        with one_blas_thread():
            if self.small:
                vectors, values, _ = np.linalg.svd(x.T @ y, full_matrices=False)
                singular, f = float(values[0]), x @ vectors[:, 0]
            else:
                lead = lanczos(operator, self.start, accuracy=OBSERVED_ACCURACY)
                singular, f = math.sqrt(max(float(lead.values[0, 0]), 0.0)), x @ lead.vectors[0, 0]
            if singular <= self.rounding:
                f, g, alpha, beta = np.zeros((4, self.n))
                return Association(0.0, f, g, alpha, beta, 0.0)
            # Each is the image of the other: of coco L~ beta = n coco alpha and K~ alpha = n coco beta (eqs. 4.4 and 4.5).
            g = y @ (y.T @ f) / singular
            f = x @ (x.T @ g) / singular
            alpha, beta = self.sides[0].coefficients(f, g, singular), self.sides[1].coefficients(g, f, singular)
            found = self._decomposed([np.arange(self.n)]) if self.measure.of_all else np.array([singular**2])
        largest = np.abs(f) >= (1.0 - RELATIVE_ERROR) * np.abs(f).max()
        sign = math.copysign(1.0, f[largest.argmax()])
        correlation = float(f @ g) / math.sqrt(float(f @ f) * float(g @ g))
        return Association(
            float(self._values(found)[0]), sign * f, sign * g, sign * alpha, sign * beta, min(correlation, 1.0)
        )

    def relabelled(
        self, permutations: Sequence[NDArray[np.intp]], engine: Engine, progress: Progress | None = None
    ) -> Array:
        """Return the measure with row i of x paired with row p[i] of y, for every permutation p.

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
        return self._values(np.concatenate([np.empty(0), *engine.map(work, batches, progress)]))

    def _values(self, found: Array) -> Array:
        """Return the measure from squares of the largest singular value, or from what it made of all; rounding is 0."""
        values = found if self.measure.of_all else np.sqrt(np.maximum(found, 0.0))
        values = np.where(values <= self.rounding, 0.0, values)
        return np.asarray(values / self.n if self.measure.of_covariance else values)

    def _decomposed(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the squared largest singular values of A' B, each from its own matrix, or what the measure makes of all."""
        moved = self.y[np.column_stack(permutations)].reshape(self.n, -1)
        products = (self.x.T @ moved).reshape(self.x.shape[1], len(permutations), -1).transpose(1, 0, 2)
        if products.shape[1] > products.shape[2]:
            products = products.transpose(0, 2, 1)
        squares = products @ products.transpose(0, 2, 1)
        return self.measure.of_all(squares) if self.measure.of_all else np.asarray(np.linalg.eigvalsh(squares)[:, -1])

    def _iterated(self, permutations: Sequence[NDArray[np.intp]]) -> Array:
        """Return the same by the Lanczos method, for all permutations of a batch."""
        x, y, forward = self.x, self.y, np.stack(permutations)
        backward = np.argsort(forward, axis=1)

        def operator(vectors: Array, numbers: NDArray[np.intp]) -> Array:
            moved = np.take_along_axis(vectors[:, 0] @ x.T, backward[numbers], axis=1)
            found: Array = np.take_along_axis((moved @ y) @ y.T, forward[numbers], axis=1) @ x
            return found[:, None]

        return lanczos(operator, np.repeat(self.start, len(forward), axis=0), accuracy=RELABELLED_ACCURACY).values[:, 0]


def spectral_verdict(test: TwoVariables, family: Family, statistic: Spectral) -> Verdict:
    """Judge one pair of kernels by singular values of their cross-covariance.

    Each relabelling needs singular values of its own, so that the relabellings are ordinary random permutations.
    """
    options, kernels, (x, y) = test.options, family.members[0], test.points
    if options.null != "permutation":
        raise UsageError(
            f"the null {options.null!r} is one of HSIC; the {SPECTRAL[statistic][0]} has the permutation null",
            hint=f"leave out {option('null')}, or {option('statistic', statistic)}",
            code="usage.null",
        )
    pair = CrossCovariance(kernels, (x, y), statistic, test.engine)
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
        warnings=(*relabelling_warning(judged.p_value, len(values), options.alpha), *_told_of_lost(pair.sides)),
        spectral=observed.value,
        penalties=None if statistic == "coco" else (pair.sides[0].penalty, pair.sides[1].penalty),
        witness_correlation=observed.correlation if observed.value > 0 else None,
    )


def _told_of_lost(sides: Sequence[NormalisedSide]) -> Iterator[str]:
    """Yield of which side variance is left out that counts."""
    for name, side in zip("xy", sides, strict=True):
        if side.lost > TOLD_LOSS:
            yield (
                f"{name}: the {MOST_DIRECTIONS} directions of most variance take part, which have {1.0 - side.lost:.0%} of that "
                "in feature space: a larger bandwidth has fewer directions"
            )


def witness_function(kernel: Kernel, points: Points, coefficients: Array, at: Points) -> Array:
    """Return a witness function at m points, from its `alpha` or `beta` at n rows, with mean zero over these.

    Cost: O(n (m + n) p) time, 2 MB.
    """
    with one_blas_thread():
        at_rows, values = (sum_of_kernels(kernel, points, coefficients, rows) for rows in (points, at))
    return np.asarray(values - at_rows.mean())


def _centred_columns(kernel: Kernel, points: Points, called: str) -> tuple[Array, float]:
    """Return G of HKH = G G', and tr K."""
    n, few = len(points), len(points) <= FULL_RANK_ROWS
    if not kernel.positive_definite:
        raise UsageError(
            f"the {called} needs positive definite kernels, which '{kernel}' may not be",
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
        f"the {called} of more than {FULL_RANK_ROWS:,} rows needs kernels of low rank (few columns, or "
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
