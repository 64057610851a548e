"""Kernel matrices as products of a few columns, K ~ G G', without forming them; and features."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, cast

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import one_blas_thread
from kerntest.engines.plan import added
from kerntest.errors import UsageError, option
from kerntest.kernels.algebra import OnColumns, terms
from kerntest.kernels.base import Array, DensePairs, Kernel, Points, squared_norms
from kerntest.kernels.counting import work_of_values
from kerntest.kernels.elementary import Gaussian
from kerntest.matrices.different import few_different
from kerntest.matrices.matrix import SHARED_ROWS, ZERO, KernelMatrix, Matrix, largest_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress


# Of the rows that a sample has missed so many take part next, so many times.
WORST, ROUNDS = 200, 8
# The first pivots are taken one at a time: the rows that stand out most are then often neighbours, one of which makes
# the others superfluous. Later several together, which is one matrix product instead of many.
SINGLE_PIVOTS = 64
TOGETHER = 32
# Room for so many columns at first, and for as many as there may be when it is full.
ROOM = 128
# A row is taken along with others while it stands out at least so much of what the first of them does.
STANDS_OUT = 0.5
# Diagonals below minus this share of the largest are no rounding: the kernel is not positive definite.
NEGATIVE = 1e-8
# Diagonals that differ by less than this share are equal to rounding, until hardly anything is left of them.
EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class Factor:
    """A matrix of low rank near a kernel matrix: K ~ G G' for G of shape (n, r), and K - G G' is positive semi-definite.

    `residual` is tr(K - G G'), which bounds every entry and every eigenvalue of the difference; `complete` says whether it
    is within the tolerance. It never is for a kernel that is not known to be positive definite: a small trace then says
    nothing of the other entries. With the columns centred it is one of HKH.
    """

    columns: Array
    residual: float = 0.0
    complete: bool = True

    @property
    def rank(self) -> int:
        """The number of columns r."""
        return int(self.columns.shape[1])

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of G G'."""
        return squared_norms(self.columns)

    @cached_property
    def lengths(self) -> Array:
        """The squared lengths of the columns; their sum is the trace."""
        return squared_norms(self.columns.T)


class _Cholesky:
    """An incomplete Cholesky factor under way, K ~ G G', and what is left of the diagonal of K."""

    def __init__(self, matrix: Matrix, most: int) -> None:
        self.matrix, self.most = matrix, min(most, matrix.n)
        self.left = matrix.diagonal.copy()
        self.rank = 0
        self._transposed = np.empty((min(self.most, ROOM), matrix.n))

    @property
    def columns(self) -> Array:
        """G, shape (n, rank)."""
        return self._transposed[: self.rank].T

    def add(self, candidates: NDArray[np.intp], least: float) -> int:
        """Take those candidates as pivots of which more than `least` is left by the others; return how many.

        With d what is left of the diagonal, a single pivot i adds the column (K_.i - G G_i.') / sqrt(d_i). None are taken
        where there is no room for all.
        """
        from scipy.linalg.blas import dtrsm  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load
        from scipy.linalg.lapack import dpstrf  # noqa: PLC0415 - as above

        known = self._transposed[: self.rank]
        if len(candidates) == 1:
            pivots, lower = candidates, np.sqrt(self.left[candidates])[:, None]
        else:
            block = self.matrix.block(candidates, candidates) - known[:, candidates].T @ known[:, candidates]
            np.fill_diagonal(block, self.left[candidates])
            lower, order, added, _ = dpstrf(block.T, tol=least, lower=1, overwrite_a=1)
            pivots, lower = candidates[order[:added] - 1], lower[:added, :added]
        if not len(pivots) or self.rank + len(pivots) > self.most:
            return 0
        grown = self.rank + len(pivots)
        if grown > len(self._transposed):
            # Of room that stays empty no page is taken.
            wider = np.empty((self.most, self.matrix.n))
            wider[: self.rank] = known
            self._transposed, known = wider, wider[: self.rank]
        found = self._transposed[self.rank : grown]
        for start in range(0, len(pivots), TOGETHER):
            some = slice(start, start + TOGETHER)
            found[some] = self.matrix.rows(pivots[some])
            if self.rank:
                found[some] -= known[:, pivots[some]].T @ known
        # In place: the transpose is in the order that BLAS wants.
        dtrsm(1.0, lower, found.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.left -= squared_norms(found.T)
        self.left[pivots] = 0.0
        self.rank = grown
        return len(pivots)


@one_blas_thread()
def kernel_factor(kernel: Kernel, points: Points, *, tolerance: float = 1e-12, most: int = 1000) -> Factor:
    """Return an incomplete Cholesky factor of a kernel matrix that leaves at most this share of its trace.

    The next pivots are the rows with the largest diagonals left (Fine and Scheinberg 2001; Bach and Jordan 2002). It is
    not complete if `most` columns are too few, if the kernel overflows, or where a diagonal turns negative, as it does
    for kernels that are not positive definite. Cost: O(n r (p + r)) time, O(n r) memory; K is never formed. Of few different
    rows n is their number.
    """
    few = few_different(points)
    different = points if few is None else few[0]
    counts = np.ones(len(points)) if few is None else np.bincount(few[1])
    cholesky = _Cholesky(KernelMatrix(kernel, different), most)
    left, width = cholesky.left, 1
    trace, largest = float(counts @ left), float(left.max(initial=0.0))
    while math.isfinite(trace) and cholesky.rank < cholesky.most and counts @ left > tolerance * trace:
        width = min(width, cholesky.most - cholesky.rank)
        candidates = _largest(left, width)
        added = cholesky.add(candidates, STANDS_OUT * float(left[candidates].max()))
        if not added or not left.min() > -NEGATIVE * largest:
            break
        np.maximum(left, 0.0, out=left)
        if cholesky.rank >= SINGLE_PIVOTS:
            # Twice as many next time if all of them served.
            width = min(2 * width, TOGETHER) if added == width else added
    residual = float(counts @ left)
    complete = kernel.positive_definite and math.isfinite(trace) and left.min(initial=0.0) >= 0.0
    columns = cholesky.columns if few is None else cholesky.columns[few[1]]
    return Factor(columns, residual, bool(complete and residual <= tolerance * trace))


def pivoted_factor(matrix: Matrix, tolerance: float, most: int, sample: NDArray[np.intp]) -> Array | None:
    """Return G with 0 <= (K - G G')_ii <= tolerance; None if that takes more than `most` columns.

    Pivots come from a sample first; then the rows of which most is left take part, until none is left.
    """
    cholesky, candidates = _Cholesky(matrix, most), sample
    for _ in range(ROUNDS):
        if not cholesky.add(candidates, tolerance):
            return None
        missed = np.flatnonzero(cholesky.left > tolerance)
        if not len(missed):
            return cholesky.columns
        candidates = missed[np.argsort(-cholesky.left[missed], kind="stable")[:WORST]]
    return None


def _largest(left: Array, width: int) -> NDArray[np.intp]:
    """Return the rows with the largest diagonals; of those equal to rounding the first, whatever the processor."""
    least = np.partition(left, len(left) - width)[len(left) - width]
    larger = np.flatnonzero(left > least * (1.0 + EQUAL))
    tied = np.flatnonzero((left >= least * (1.0 - EQUAL)) & (left <= least * (1.0 + EQUAL)))
    return np.concatenate([larger, tied[: width - len(larger)]])


def centred(columns: Array) -> Array:
    """Return the columns minus their means: with K ~ G G', that is HG, and HKH ~ HG (HG)'."""
    moved: Array = columns - columns.mean(axis=0)
    return moved


# What a factor may leave of the trace: less than rounding moves the sums over the whole matrices.
TOLERANCE = 1e-15
# And what those of a family may leave, of a trace or of the product of two: it moves sums by less than their promised
# digits, and counts in the tolerance for ties.
LEFT_OUT = 1e-12
# So many columns are tried first. Where they do not do, a matrix of so many rows, and of so many for each column there
# may be, shows whether more will.
FIRST_COLUMNS = 32
SAMPLED, SAMPLED_PER_COLUMN = 400, 4
# A factor costs more than the shifts that it saves beyond so many columns, in units of sqrt(n).
MOST_COLUMNS = 1.5
# The columns of a sum may be as many in all, as a share of the rows: those of more cost what the whole matrix does.
MOST_OF_SUM = 1 / 3
# Rows by which a rank is expected, those among them that are farthest from the middle; and which shares of them are a rank
# that is small, and one that is full.
EXPECTED_ROWS, FARTHEST, SMALL_SHARE, FULL_SHARE = 600, 200, 0.3, 0.9
# Of so few rows the whole matrix is looked at in the time that finding out takes.
FEW_ROWS = 2000


def low_rank_factor(kernel: Kernel, points: Points, tolerance: float = TOLERANCE) -> Factor | None:
    """Return a kernel matrix as a product of few columns, but for so much of its trace; None where it has no such form.

    Cost: O(32 n (p + 32)) time to find out, O(n r (p + r)) to do, with r up to 1.5 sqrt(n); O(n r) memory. A sum has
    the columns of its terms.
    """
    if not kernel.positive_definite:
        return None
    if isinstance(kernel, OnColumns):
        return low_rank_factor(kernel.kernel, points.select(kernel.columns), tolerance)
    if terms(kernel) != (kernel,):
        factors, rank = list[Factor](), 0
        for term in terms(kernel):
            found = low_rank_factor(term, points, tolerance)
            if found is None or rank > MOST_OF_SUM * len(points):
                return None
            factors.append(found)
            rank += found.rank
        residual, columns, last = sum(factor.residual for factor in factors), np.empty((rank, len(points))), rank
        # Each is gone once it has its place.
        del found
        while factors:
            first = last - factors[-1].rank
            columns[first:last], last = factors.pop().columns.T, first
        return Factor(columns.T, residual)
    most = int(MOST_COLUMNS * math.sqrt(len(points)))
    first = min(FIRST_COLUMNS, most) if few_different(points) is None else most
    with np.errstate(over="ignore", invalid="ignore"):
        factor = kernel_factor(kernel, points, tolerance=tolerance, most=first)
        if not factor.complete:
            sampled = max(SAMPLED, SAMPLED_PER_COLUMN * most)
            if _rank(kernel, _spread_rows(points, sampled), tolerance) <= most:
                factor = kernel_factor(kernel, points, tolerance=tolerance, most=most)
    return factor if factor.complete else None


def expected_rank(kernel: Kernel, points: Points, tolerance: float, most: float | None = None) -> tuple[float, float]:
    """Return about how many columns a factor of at most so many has, least and most, by a sample of the rows; infinite for none.

    A rank that is small beside the sample hardly grows with more rows; one of nearly all of them grows as they do. By
    default as `low_rank_factor` finds it. Cost: 10 ms for each kernel and each of a few terms of a sum.
    """
    if isinstance(kernel, OnColumns):
        return expected_rank(kernel.kernel, points.select(kernel.columns), tolerance, most)
    if (every := terms(kernel)) != (kernel,):
        # Those of few different values are known; of the others a few tell.
        known = [isinstance(one, OnColumns) and few_different(points.select(one.columns)) is not None for one in every]
        others = [term for term, one in zip(every, known, strict=True) if not one]
        some = others[:: max(1, len(others) // 3)]
        ranks = [
            (1.0, expected_rank(term, points, tolerance, most)) for term, one in zip(every, known, strict=True) if one
        ]
        ranks += [(len(others) / len(some), expected_rank(term, points, tolerance, most)) for term in some]
        least, most_ = (sum(times * ends[end] for times, ends in ranks) for end in (0, 1))
        return least, most_
    if not kernel.positive_definite or (most is None and len(points) <= FEW_ROWS):
        return math.inf, math.inf
    few = few_different(points)
    most = MOST_COLUMNS * math.sqrt(len(points)) if most is None else most
    rows = _spread_rows(points if few is None else few[0], EXPECTED_ROWS - FARTHEST)
    with np.errstate(over="ignore", invalid="ignore"):
        rank = float(_rank(kernel, rows, tolerance))
    if few is not None and rank <= most:
        return rank, rank
    if rank > min(most, FULL_SHARE * len(rows)):
        return math.inf, math.inf
    return (rank, rank) if rank <= SMALL_SHARE * len(rows) else (rank, math.inf)


def _spread_rows(points: Points, count: int) -> Points:
    """Return so many evenly spaced rows, and those that are farthest from the middle, each of which may have a column of its own."""
    distances = -squared_norms(centred(points.numeric))
    farthest = np.argpartition(distances, min(FARTHEST, len(points) - 1))[:FARTHEST]
    spaced = np.linspace(0, len(points) - 1, min(count, len(points))).astype(np.intp)
    return points.take(np.union1d(spaced, farthest))


def _rank(kernel: Kernel, points: Points, tolerance: float) -> int:
    """Return after how many columns no diagonal has more than such a share left. Cost: O(n^2 r) time, O(n^2) memory."""
    from scipy.linalg.lapack import dpstrf  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

    with one_blas_thread():
        matrix = kernel(points)
        least = max(tolerance, len(points) * np.finfo(np.float64).eps) * float(matrix.diagonal().max())
        return int(dpstrf(matrix, tol=least, lower=1)[2])


def low_rank(kernel: Kernel, points: Points) -> Factor | None:
    """Return the centred matrix of a kernel as a product of few columns; None where it has no such form.

    Cost: as of `low_rank_factor`.
    """
    factor = low_rank_factor(kernel, points)
    return None if factor is None else centred_factor(factor)


def centred_factor(factor: Factor) -> Factor:
    """Return HKH as a product of few columns from K as one: orthogonal columns, the longest first."""
    # Twice: what is left of the means after once is rounding of large columns.
    columns = centred(centred(factor.columns))
    return Factor(columns @ np.linalg.eigh(columns.T @ columns)[1][:, ::-1], factor.residual)


# Work beyond which explicit features take the place of kernel matrices where nobody says otherwise, in nanoseconds on one
# processor of 2.1 GHz: two minutes on two. It is counted from rows, columns and kernels alone, so that the same data take
# the same way on every machine.
MOST_WORK = 240e9

FeatureKind: TypeAlias = Literal["nystroem", "fourier"]
FEATURE_STREAM = 4
# Pairs of rows at which the error of the features is measured.
ERROR_ROWS = 400
# So many directions of most variance stand for a side that is normalised: what others have counts for little beside a penalty.
MOST_DIRECTIONS = 300
# Entries of the features of one block of rows.
BLOCK = 2**19
# Eigenvalues of K(C, C) below this share of the largest are rounding.
SMALLEST = 1e-12


def row_blocks(rows: int, width: int, entries: int) -> list[slice]:
    """Return rows in parts of about so many entries."""
    step = max(16, entries // max(width, 1))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features z(x) of a kernel with <z(x), z(y)> near k(x, y), for more rows than kernel matrices bear.

    K(x, C) K(C, C)^(-1/2) for M random rows C, the `landmarks` (Williams and Seeger 2001), with K(C, C)^(-1/2) the
    `projection`; or sqrt(2/M) cos(W x + c) with random frequencies W, the transposed `projection`, and `offsets` c, for the
    Gaussian (Rahimi and Recht 2007).
    """

    kind: FeatureKind
    kernel: Kernel
    landmarks: Points
    projection: Annotated[Array, 2]
    offsets: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        inputs, offsets = len(self.landmarks), 0
        if self.kind == "fourier":
            inputs, offsets = self.landmarks.numeric.shape[1], self.size
        fits = len(self.projection) == inputs and len(self.offsets) == offsets
        return None if fits else "its features do not fit together"

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.projection.shape[1])

    @property
    def width(self) -> int:
        """Numbers that the features of a row are made of: kernel values of all landmarks, though fewer features may be left."""
        return max(self.size, len(self.landmarks))

    def __call__(self, points: Points, engine: Engine) -> Array:
        """Return the features of n rows, shape (n, size). Cost: O(n M (p + size)) time."""
        result, parts = np.empty((len(points), self.size)), row_blocks(len(points), self.width, BLOCK)
        made = engine.here.map(lambda part: self.of_block(points.take(part)), parts)
        for part, values in zip(parts, made, strict=True):
            result[part] = values
        return result

    def work(self, rows: float) -> dict[str, float]:
        """Return the units of work of the features of so many rows."""
        if self.kind == "fourier":
            return added({"product": len(self.projection), "exp": 1.0, "entry": 2.0}, times=rows * self.size)
        values = added(work_of_values([self.kernel], self.landmarks), {"product": self.size})
        return added(values, times=rows * len(self.landmarks))

    def diagonal(self, points: Points) -> Array:
        """Return the prior variance of a function at n rows, shape (n,).

        k(x, x) for Nystroem, whose features lack a part of it that no row of the centres tells of; |z(x)|^2 for random
        Fourier features, which are a process of their own. Cost: O(n M p) for these.
        """
        if self.kind == "nystroem":
            return self.kernel.diagonal(points)
        parts = row_blocks(len(points), self.size, BLOCK)
        return np.concatenate([np.empty(0), *(squared_norms(self.of_block(points.take(part))) for part in parts)])

    def of_block(self, points: Points, onto: Array | None = None) -> Array:
        """Return the features of a few rows, all at once; or their products with a matrix, shape (size, k)."""
        if self.kind == "fourier":
            waves: Array = points.numeric @ self.projection + self.offsets
            np.cos(waves, out=waves)
            waves *= math.sqrt(2.0 / self.size)
            return waves if onto is None else waves @ onto
        projection = self.projection if onto is None else self.projection @ onto
        values: Array = self.kernel.evaluate(DensePairs(points, self.landmarks)) @ projection
        return values


def parse_features(text: str) -> tuple[FeatureKind, int]:
    """Return the kind and the number of features that a text like 'nystroem:500' asks for."""
    kind, _, count = str(text).strip().lower().partition(":")
    if kind not in {"nystroem", "fourier"} or not count.isdigit() or not 1 <= int(count) <= 10**5:
        hint = f"write {option('features', 'nystroem:500')} or {option('features', 'fourier:2000')}"
        raise UsageError(f"{text!r} are no features", hint=hint, code="usage.features")
    return cast("FeatureKind", kind), int(count)


def nystroem(kernel: Kernel, landmarks: Points, smallest: float) -> FeatureMap:
    """Return features on landmarks, without those of eigenvalues below so small a share of the largest."""
    values, vectors = _spectrum(kernel(landmarks))
    kept = values > smallest * float(values[-1])
    return FeatureMap("nystroem", kernel, landmarks, vectors[:, kept] / np.sqrt(values[kept]), np.empty(0))


def _spectrum(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues, ascending, and eigenvectors; for small matrices threads of BLAS only wait for each other."""
    with nullcontext() if len(matrix) > SHARED_ROWS else one_blas_thread():
        return np.linalg.eigh(matrix)


def make_features(text: str, kernel: Kernel, points: Points, seed: int, *, smallest: float = SMALLEST) -> FeatureMap:
    """Return features for a kernel; Fourier features are for the Gaussian of numbers."""
    kind, count = parse_features(text)
    rng = np.random.default_rng((seed, FEATURE_STREAM))
    if kind == "nystroem":
        chosen = np.sort(rng.choice(len(points), min(count, len(points)), replace=False))
        return nystroem(kernel, points.take(chosen), smallest)
    if not isinstance(kernel, Gaussian) or points.codes.shape[1] or kernel.bandwidth is None:
        message = f"random Fourier features are for the Gaussian of numbers, not for '{kernel}'"
        raise UsageError(
            message, hint=f"{option('features', f'nystroem:{count}')} is for every kernel", code="usage.features"
        )
    frequencies = rng.normal(size=(points.numeric.shape[1], count)) / kernel.bandwidth
    nothing = Points.of(np.empty((0, points.numeric.shape[1])))
    return FeatureMap(kind, kernel, nothing, frequencies, rng.uniform(0.0, 2.0 * np.pi, count))


def feature_error(features: FeatureMap, points: Points, engine: Engine, seed: int) -> float:
    """Return the root mean square of <z(x), z(y)> - k(x, y) over pairs of up to 400 random rows."""
    rng = np.random.default_rng((seed, FEATURE_STREAM, 1))
    rows = np.sort(rng.choice(len(points), min(ERROR_ROWS, len(points)), replace=False))
    sample = points.take(rows)
    Z = features(sample, engine)
    return float(np.sqrt(np.mean((Z @ Z.T - features.kernel(sample)) ** 2)))


def as_points(rows: Points | Array) -> Points:
    """Return rows that are points as such; TypeError if they are rows of a matrix."""
    if not isinstance(rows, Points):
        message = "this model takes points, not rows of a matrix"
        raise TypeError(message)
    return rows


# Rows from whose mean deviations are taken.
FIRST = 256


@dataclass(frozen=True, eq=False)
class Directions:
    """Orthonormal axes (r, k) of largest variance and their eigenvalues (k,); the mean of the rows (r,), the trace of Z'HZ."""

    values: Array
    axes: Array
    mean: Array
    trace: float


def leading_directions(
    rows: Callable[[slice], Array],
    n: int,
    count: int,
    engine: Engine,
    *,
    projected: Callable[[slice, Array], Array] | None = None,
    held: int = 0,
    progress: Progress | None = None,
) -> Directions:
    """Return the leading eigenvectors of Z'HZ, for the features Z that `rows` gives for a slice of the n rows.

    `projected` gives their products with axes, where that is cheaper; `held` numbers are held for a row on the way, if these
    are more than its features. Products are those of deviations from the mean of
    the first rows, so that far-off rows keep the digits in which they differ, and the mean of all is put right afterwards:
    each feature is computed once. Cost: O(n r^2 + r^3) time, O(r^2) memory for each thread.
    """
    first = rows(slice(0, min(n, FIRST)))
    width, near = first.shape[1], first.mean(axis=0)
    parts = row_blocks(n, max(width, held), BLOCK)

    def scatter(part: slice) -> tuple[Array, Array]:
        moved = rows(part) - near
        return moved.T @ moved, moved.sum(axis=0)

    products, rest = np.zeros((width, width)), np.zeros(width)
    # Not sent anywhere: for wide features the products are larger than what they are made of.
    for product, remainder in engine.here.map(scatter, parts, progress):
        products += product
        rest += remainder
    products -= np.outer(rest, rest) / n
    mean = near + rest / n
    values, vectors = _spectrum(products)
    best = slice(None, -min(count, n - 1) - 1, -1)
    values, axes = values[best], vectors[:, best]
    kept = values > ZERO * float(values.max(initial=0.0))
    values, axes = values[kept], axes[:, kept]

    def extreme(part: slice) -> Array:
        """Return the score that is largest in size on each axis, shape (k,)."""
        scores = (rows(part) @ axes if projected is None else projected(part, axes)) - mean @ axes
        return np.asarray(scores[largest_entries(scores), np.arange(axes.shape[1])])

    if axes.shape[1]:
        # The sign of the largest score of all: as of the eigenvectors of HZZ'H.
        extremes = np.stack(list(engine.here.map(extreme, parts)))
        axes = axes * np.where(extremes[largest_entries(extremes), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return Directions(values, axes, mean, float(np.trace(products)))
